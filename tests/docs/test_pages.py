"""The README and the pages of docs/ run: every command prints what is shown, every link leads on.

Blocks of a page form one session, in a folder of their own that has the repository's examples:

- `pycon` is a doctest;
- of `console` each command exits with 0, and prints what follows it (nothing shown, nothing
  compared; `...` stands for any text, as in doctest); by day `dpverify` runs in this process, where
  a line needs nothing of the shell but a pipe;
- `python` is run, in one namespace a page; tests that it defines are run by pytest, by day with few
  draws and few pairs to choose from;
- `toml` is parsed;
- `math` is LaTeX, which the site shows as MathML.

A comment in the line above a block changes that: ``<!-- file: NAME -->`` writes the block to a
file, ``<!-- nightly: REASON -->`` leaves it to the nightly run, and ``<!-- unrun: REASON -->``
leaves it out.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from bisect import bisect
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from dpverify.auditing import search
from dpverify.cli import _run
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.usefixtures("own_figures", "all_candidates")

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/*.md")),
]
LONG = {"accounting-subsampling", "auditing-anything", "choosing", "composition", "mechanisms"}
"""Pages of seconds each, which are run by night alone."""
PRINTED = ("claims", "planted-bugs")  # `make claims`, `python -m benchmarks.planted`
QUICK = 'draws = 100\nwithout = ["determinism", "precision-of-doubles"]\n'  # no other processes
FEW = 8  # pairs to choose from
ALONE = [f"-pno:{name}" for name in ("cacheprovider", "faulthandler", "randomly", "xdist")]
KINDS = {"console", "math", "pycon", "python", "toml", "text"}
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[a-z]+): (?P<text>.+?) -->\n+)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)
_OF_SHELL = set("|&;<>$*?`~#(){}\\")
_OPTIONS = doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE | doctest.REPORT_UDIFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    kind: str
    body: str
    place: str
    mark: str | None
    text: str | None


@cache
def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    lines = [0, *(end.end() for end in re.finditer("\n", text))]
    return [
        Block(
            kind=found["kind"],
            body=found["body"],
            place=f"{page.name}:{bisect(lines, found.start('kind'))}",
            mark=found["mark"],
            text=found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a block, and what it shall print."""
    assert block.body.startswith("$ "), f"{block.place}: a console block begins with a command"
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def compare(place: str, command: str, shown: str, printed: str) -> None:
    checker = doctest.OutputChecker()
    if shown and not checker.check_output(shown, printed, _OPTIONS):
        example = doctest.Example(command, shown)
        difference = checker.output_difference(example, printed, _OPTIONS)
        pytest.fail(f"{place}: $ {command}\n{difference}", pytrace=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("examples", "benchmarks", "docs", "pyproject.toml", "constraints.txt", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    if (ROOT / ".venv").exists():  # else `make` makes one
        (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # of help texts
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("DPVERIFY_PROFILE", raising=False)
    return tmp_path


def ran(command: list[str], place: str, read: str | None = None) -> str:
    done = subprocess.run(
        command,
        check=False,
        text=True,
        input=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, f"{place}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def ran_here(command: str, place: str) -> str:
    ours, _, others = command.partition(" | ")
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO() if others else said):
        code = _run(shlex.split(ours)[1:])
    if others:  # whose exit code is that of the pipe
        return ran(["bash", "-c", others], place, said.getvalue())
    assert code == 0, f"{place}: exit code {code}\n{said.getvalue()}"
    return said.getvalue()


def run(block: Block, folder: Path, namespace: dict[str, object], *, nightly: bool) -> None:
    match block.kind:
        case "console":
            for command, shown in commands(block):
                if command.startswith("cd "):
                    os.chdir(command.removeprefix("cd "))
                    continue
                place = f"{block.place}: $ {command}"
                first = command.partition(" | ")[0]
                if first.startswith("dpverify ") and not _OF_SHELL & {*first} and not nightly:
                    printed = ran_here(command, place)
                else:
                    printed = ran(["bash", "-c", command], place)
                compare(block.place, command, shown, printed)
        case "pycon":
            test = doctest.DocTestParser().get_doctest(
                block.body, namespace, block.place, block.place, 0
            )
            report: list[str] = []
            runner = doctest.DocTestRunner(optionflags=_OPTIONS)
            runner.run(test, out=report.append, clear_globs=False)
            namespace.update(test.globs)
            if runner.failures:
                pytest.fail("".join(report), pytrace=False)
        case "python" if "def test_" in block.body:
            tests = folder / "shown"
            tests.mkdir(exist_ok=True)
            (tests / "test_shown.py").write_text(block.body, encoding="utf-8")
            (tests / "dpverify.toml").write_text("" if nightly else QUICK)
            words = ["-q", "--rootdir=shown", "shown"]
            if nightly:
                ran([sys.executable, "-m", "pytest", *words], block.place)
            else:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(search, "CANDIDATES", FEW)
                    assert pytest.main([*ALONE, *words]) == 0, block.place
        case "python":
            exec(compile(block.body, block.place, "exec"), namespace)  # noqa: S102
        case "toml":
            tomllib.loads(block.body)


def run_page(page: Path, folder: Path, *, nightly: bool) -> None:
    namespace: dict[str, object] = {"__name__": "__page__"}
    for block in blocks(page):
        if block.mark == "file":
            assert block.text is not None
            (folder / block.text).write_text(block.body, encoding="utf-8")
        if block.mark not in ("nightly", "unrun") or (nightly and block.mark == "nightly"):
            run(block, folder, namespace, nightly=nightly)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in KINDS, f"{block.place}: ```{block.kind}"
        assert block.mark in (None, "file", "nightly", "unrun"), f"{block.place}: {block.mark}"
    fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "a block that the pattern doesn't see"


@pytest.mark.parametrize(
    ("page", "nightly"),
    [
        pytest.param(
            page,
            nightly,
            id=f"{page.name}-{'night' if nightly else 'day'}",
            marks=pytest.mark.nightly if nightly else (),
        )
        for page in filter(blocks, PAGES)
        for nightly in (False, True)
        if nightly or page.stem not in LONG
    ],
)
def test_blocks_run(page: Path, folder: Path, nightly: bool) -> None:
    run_page(page, folder, nightly=nightly)


def test_a_false_block_is_found(tmp_path: Path, folder: Path) -> None:
    page = tmp_path / "page.md"
    good = (
        "```console\n$ echo one; echo two\none\n...\n```\n\n```pycon\n>>> x = 2\n>>> x\n2\n\n```\n"
    )
    page.write_text(good)
    run_page(page, folder, nightly=False)
    for number, (was, wrong) in enumerate(
        [
            ("one\n...", "two\n..."),
            ("echo two", "false"),
            ("x\n2", "x\n3"),
            ("$ ", "$ #\n$ exit 3;"),
        ]
    ):
        page = tmp_path / f"page{number}.md"
        page.write_text(good.replace(was, wrong))
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            run_page(page, folder, nightly=False)


@pytest.mark.nightly
def test_few_pairs_are_for_the_page_alone(tmp_path: Path, folder: Path) -> None:
    page, usual = tmp_path / "page.md", search.CANDIDATES
    few = f"def test_few():\n    assert search.CANDIDATES == {FEW}\n"
    page.write_text(f"```python\nfrom dpverify.auditing import search\n\n\n{few}```\n")
    run_page(page, folder, nightly=False)
    assert search.CANDIDATES == usual > FEW


def test_headline_numbers() -> None:
    """Those of pages that a command prints."""
    claims, planted = ((ROOT / f"docs/{name}.md").read_text("utf-8") for name in PRINTED)
    table = [line.split("|") for line in claims.splitlines() if line.startswith("| ")]
    counted = {
        verdict.strip(): sum(int(row[column].strip() or 0) for row in table[1:])
        for column, verdict in enumerate(table[0])
        if verdict.strip() in ("refuted", "misprint")
    }
    (statements,) = re.findall(r"^(\d+) statements, each", claims, flags=re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8")
    refuted, misprints = counted["refuted"], counted["misprint"]
    line = f"{statements}, of which {refuted} are refuted and {misprints} misprinted"
    assert f"| {line} |" in readme, f"docs/claims.md has changed: write “{line}” in the README"
    (bugs,) = re.findall(r"holds (\d+) broken mechanisms", planted)
    assert "Found by no kind: none." in planted
    assert f"at least one kind of audit | [{bugs}]" in readme


@pytest.mark.parametrize(
    "rows",
    [
        "(?:release of 5,000 .*? signs?|release of 5,000 .*?|randomized response .*?)"
        r" \| .* \| textbook doubles",
        "Gaussian, .*, secure words included .* numpy, inexact and replayable",
    ],
)
def test_headline_times(rows: str) -> None:
    """The README's ranges are those of the benchmarks' page."""
    measured = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    ratios = re.findall(rf"^\| {rows} \| [\d.]+ \| ([\d.]+) \|", measured, flags=re.MULTILINE)
    least, most = (f"{end(map(float, ratios)):.2f}" for end in (min, max))
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"[{least} to {most} times]" in readme


def anchors(page: Path) -> set[str]:
    """Of headings, as both GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        known = anchors(target) if target.suffix == ".md" and target.exists() else {anchor}
        if not target.exists() or (anchor and anchor not in known):
            broken.append(link)
    assert broken == []
