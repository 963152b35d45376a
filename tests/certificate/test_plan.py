"""The plan of a release: nothing read, nothing spent, and the same verdict as the certificate's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.certificate import certify as certifying
from dpverify.certificate.plan import Plan
from dpverify.certificate.schema import Usefulness
from dpverify.cli import main
from dpverify.errors import ConfigurationError


def configuration(folder: Path, **changes: Any) -> dict[str, Any]:
    np.save(folder / "records.npy", np.full((200, 6), 0.5))
    return {
        "data": {"path": str(folder / "records.npy"), "domain": {"low": 0, "high": 1}},
        "mechanism": {"name": "raw-data-g-opt"},
        "privacy": {"epsilon": 1, "delta": 1e-6, "adjacency": {"kind": "record"}},
        "audit": {"draws": 100, "moment_draws": 50},
    } | changes


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return dpv.plan(configuration(tmp_path_factory.mktemp("plan")))


def test_whole_records_at_epsilon_1_are_useless(plan: Plan) -> None:
    assert plan.usefulness is not None
    assert plan.recall is not None
    assert plan.usefulness.verdict == "useless"
    found, chance = plan.recall
    assert chance == 10 / 200
    assert found < 1.1 * chance


def test_every_estimator_has_its_error(plan: Plan) -> None:
    """Noise of variance v in p places: about 8pv² in a distance, pv² in an inner product."""
    assert plan.usefulness is not None
    inner, cosine = plan.others
    assert (inner.quantity, cosine.quantity) == ("inner product", "cosine")
    assert float(plan.usefulness.error) / float(inner.error) == pytest.approx(8**0.5, rel=0.05)
    assert "also" in str(plan)


def test_errors_fall_as_epsilon_grows(plan: Plan) -> None:
    errors = [float(forecast.usefulness.error) for forecast in plan.by_epsilon]
    assert errors == sorted(errors, reverse=True)
    assert [forecast.usefulness.verdict for forecast in plan.by_epsilon[-2:]] == ["useful"] * 2
    asked = next(f for f in plan.by_epsilon if f.choice == "1")
    assert asked.usefulness == plan.usefulness


def test_other_mechanisms_estimate_the_same(plan: Plan) -> None:
    assert [f.choice for f in plan.by_mechanism] == [
        "raw-data-g-opt laplace",
        "raw-data-g-opt gaussian",
    ]


def test_advice_is_for_what_isnt_useful(plan: Plan, tmp_path: Path) -> None:
    assert "epsilon = 256" in plan.advice[0]
    assert any("one attribute" in text for text in plan.advice)
    assert "OpenDP" in plan.advice[-1]
    better = dpv.plan(configuration(tmp_path, purpose={"low": 0, "high": 10**6}))
    assert better.advice == ()
    assert better.others == plan.others  # the purpose is that of squared distances


def test_no_value_is_read(tmp_path: Path) -> None:
    content = configuration(tmp_path)
    np.save(tmp_path / "records.npy", np.full((200, 6), np.nan))
    assert dpv.plan(content).inputs.rows == 200


def test_a_plan_prints_its_verdict_as_text_html_and_json(plan: Plan) -> None:
    text = str(plan)
    assert "useless: one estimate of the squared distance is off by about 742" in text
    assert plan._repr_html_().startswith("<table>")
    assert json.loads(json.dumps(plan.to_dict()))["usefulness"]["verdict"] == "useless"


@pytest.mark.usefixtures("no_figures")
def test_what_is_useless_is_released_only_on_purpose(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("something was drawn")

    with monkeypatch.context() as patch:
        patch.setattr(certifying, "collect", never)
        with pytest.raises(ConfigurationError, match=r"nothing was drawn or released.*useless"):
            dpv.certify(configuration(tmp_path), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    asked: list[Usefulness] = []

    def accept(judged: Usefulness) -> bool:
        asked.append(judged)
        return True

    certified = dpv.certify(configuration(tmp_path), out=tmp_path / "out", accept=accept)
    assert asked == [plan.usefulness]
    assert certified.certificate.derived.usefulness == plan.usefulness


CONFIGURATION = """
[data]
path = "records.npy"
domain = { low = 0, high = 1 }
[mechanism]
name = "raw-data-g-opt"
[privacy]
epsilon = 1
delta = 1e-6
adjacency = { kind = "record" }
[audit]
draws = 100
moment_draws = 50
"""


def test_the_command_line_plans_and_refuses_what_is_useless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration(tmp_path)
    path = tmp_path / "release.toml"
    path.write_text(CONFIGURATION)
    with pytest.raises(SystemExit) as ended:
        main(["plan", str(path)])
    assert ended.value.code == 0
    assert "verdict" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["certify", str(path), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    refusal = capsys.readouterr().err
    assert "--yes" in refusal
    assert refusal.count("useless") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_yes_releases_what_is_useless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration(tmp_path)
    path = tmp_path / "release.toml"
    path.write_text(CONFIGURATION)
    with pytest.raises(SystemExit) as ended:
        main(["certify", str(path), "--out", str(tmp_path / "out"), "--yes", "-q"])
    assert ended.value.code in (0, 3)
    assert "useless: one estimate" in capsys.readouterr().out
    assert "Useless" in (tmp_path / "out" / "report.html").read_text()
