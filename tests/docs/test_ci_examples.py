"""Workflows and pre-commit hooks, ours and the examples', call commands that exist."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
import yaml

from dpverify.auditing.settings import PROFILES, VARIABLE
from dpverify.cli import _run, cli
from tests.helpers.paths import ROOT

FOLDER = ROOT / "examples" / "ci"
WORKFLOW = FOLDER / "github-workflow.yml"
HOOKS = FOLDER / "pre-commit-config.yaml"
NIGHTLY = FOLDER / "library-nightly.yml"


def loaded(path: Path) -> Any:
    # In YAML 1.1 the key `on` is a truth value; nothing here reads it.
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def shell_lines(value: Any) -> Iterator[str]:
    """Whatever a file has run, by the keys that both kinds of file use."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("run", "entry"):
                yield from str(inner).splitlines()
            else:
                yield from shell_lines(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from shell_lines(inner)


def parsed(line: str) -> click.Context:
    """The context of a dpverify line, with every argument and option read and nothing run."""
    program, name, *arguments = shlex.split(line)
    assert program == "dpverify"
    with click.Context(cli, info_name="dpverify") as context:
        command = cli.get_command(context, name)
        assert command is not None
        return command.make_context(name, arguments, parent=context)


LINES = [line for path in (WORKFLOW, HOOKS, NIGHTLY) for line in shell_lines(loaded(path))]


def test_all_that_they_run() -> None:
    assert [line.split()[0] for line in LINES] == [
        *("pip", "pytest", "dpverify", "dpverify", "dpverify"),
        *("dpverify", "dpverify"),
        *("pip", "dpverify"),
    ]


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("dpverify ")])
def test_the_commands_take_their_options(line: str) -> None:
    parsed(line)


@pytest.mark.parametrize(
    "line",
    ["dpverify audt", "dpverify audit --formt junit", "dpverify audit --format html"],
)
def test_a_wrong_line_would_be_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(line)


def test_what_is_uploaded_is_written() -> None:
    (job,) = loaded(WORKFLOW)["jobs"].values()
    (uploaded,) = [
        step["with"]["path"].split() for step in job["steps"] if "path" in step.get("with", {})
    ]
    audit, certify = (
        parsed(next(line for line in LINES if line.startswith(f"dpverify {name} "))).params
        for name in ("audit", "certify")
    )
    (tests,) = re.findall(r"--junit-xml=(\S+)", "\n".join(LINES))
    assert audit["style"] == "junit"
    folder = certify["out"]
    assert uploaded == [
        tests,
        str(audit["output"]),
        f"{folder}/certificate.json",
        f"{folder}/report.html",
    ]


def test_the_nightly_job_uploads_what_it_writes() -> None:
    (job,) = loaded(NIGHTLY)["jobs"].values()
    (line,) = (line for line in shell_lines(job) if line.startswith("dpverify "))
    audit = parsed(line).params
    steps = {
        step["uses"].split("@")[0]: step.get("with") for step in job["steps"] if "uses" in step
    }
    assert steps["actions/upload-artifact"]["path"] == str(audit["output"])
    assert steps["actions/cache"]["path"] == str(audit["journal"])
    assert audit["style"] == "junit"
    (target,) = audit["targets"]
    assert (FOLDER / f"{target.partition(':')[0]}.py").exists()


@pytest.mark.nightly
def test_the_nightly_job_audits_the_suite_beside_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (line,) = (line for line in shell_lines(loaded(NIGHTLY)) if line.startswith("dpverify "))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "audited", raising=False)
    few = ["--draws", "200", "--kind", "black-box", "--workers", "1"]
    assert _run([*shlex.split(line)[1:], *few]) == 0
    suites = ElementTree.parse(tmp_path / "audit.xml").iter("testsuite")  # noqa: S314
    assert [suite.get("name") for suite in suites] == ["count", "spent"]


def test_the_profiles_exist() -> None:
    named = re.findall(r"'(\w+)'", loaded(WORKFLOW)["env"][VARIABLE].split("&&", 1)[1])
    assert set(named) == {"nightly", "ci"} <= set(PROFILES)


def test_the_hooks_have_what_pre_commit_asks_for() -> None:
    hooks = [hook for repository in loaded(HOOKS)["repos"] for hook in repository["hooks"]]
    for hook in hooks:
        assert {"id", "name", "entry", "language"} <= hook.keys()
        re.compile(hook["files"])
    settings, _ = hooks
    assert [bool(re.search(settings["files"], name)) for name in ("pyproject.toml", "x.toml")] == [
        True,
        False,
    ]


def test_our_workflow_runs_what_developers_run() -> None:
    path = ROOT / ".github" / "workflows" / "ci.yml"
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    lines = list(shell_lines(loaded(path)))
    made = {line.split()[1] for line in lines if line.startswith("make ")}
    assert {"lint", "types", "docs", "test", "nightly", "certify"} <= made <= set(targets)
    for line in set(lines) - {f"make {target}" for target in made}:
        script, *arguments = shlex.split(line)
        if script == ".venv/bin/dpverify":
            parsed(shlex.join(["dpverify", *arguments]))
        elif script != "git":
            assert os.access(ROOT / script, os.X_OK)
    actions = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert [action for action in actions if not re.search(r"@[0-9a-f]{40}$", action)] == []


def test_our_hooks_run_pinned_tools() -> None:
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    for line in shell_lines(loaded(ROOT / ".pre-commit-config.yaml")):
        tool = line.split()[0].removeprefix(".venv/bin/")
        assert re.search(f"^{tool}==", pinned, flags=re.M)
