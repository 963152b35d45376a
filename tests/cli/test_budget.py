"""``dpverify budget``, and certificates that are spent from one."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpverify as dpv
from dpverify.certificate import certify as certifying
from dpverify.errors import OutputError
from tests.helpers.command_line import result, run
from tests.helpers.fixtures import CONFIGURATION


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    new = ("budget", "new", tmp_path / "team.db", "--epsilon", "3", "--delta", "1e-6")
    assert run(*new) == 0
    assert "basic budget of epsilon=3, delta=0.000001" in capsys.readouterr().out
    return tmp_path / "team.db"


def test_spend_show_and_verify(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("budget", "spend", path, "4 x laplace scale=10", "gaussian sigma=8", "--delta", "1e-7")
        == 0
    )
    assert run("budget", "spend", path, "approximate-dp epsilon=1", "--label", "vendor") == 0
    assert "left: epsilon" in capsys.readouterr().out
    assert run("budget", "show", path, "--json") == 0
    found = result(capsys, "budget show")
    assert [spend["label"] for spend in found["history"]] == [
        "4 x laplace scale=10; gaussian sigma=8",
        "vendor",
    ]
    whole = (4 * dpv.Laplace(scale=10) + dpv.Gaussian(sigma=8)).epsilon_at("1e-7").upper
    assert float(Fraction(found["spent"]["epsilon"])) == pytest.approx(1 + whole, rel=1e-11)
    assert Decimal(found["left"]["delta"]) == Decimal("9e-7")
    assert run("budget", "show", path) == 0
    shown = capsys.readouterr().out
    assert "vendor" in shown
    assert f"head: {found['head']}" in shown
    for head in ((), ("--head", found["head"])):
        assert run("budget", "verify", path, *head) == 0
        assert f"agrees: 2 entries; head: {found['head']}" in capsys.readouterr().out
    assert run("budget", "verify", path, "--head", "12", "--json") == 2
    assert "this is a different history" in capsys.readouterr().err
    assert run("budget", "verify", path, "--json") == 0
    assert result(capsys, "budget verify")["entries"] == 2


def test_what_does_not_fit_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert run("budget", "spend", path, "31 x laplace scale=10") == 1
    assert "epsilon=3.1 doesn't fit: 3 of 3 is left. Nothing was spent." in capsys.readouterr().err
    assert run("budget", "spend", path, "gaussian sigma=8") == 2
    assert "delta=None must be given" in capsys.readouterr().err
    assert run("budget", "spend", path, "laplace scale=-1") == 2
    assert run("budget", "spend", path.with_name("other.db"), "laplace scale=1") == 2
    assert "there is no such file" in capsys.readouterr().err
    assert run("budget", "new", path, "--epsilon", "3") == 2
    assert "exists, and is not replaced" in capsys.readouterr().err
    wrong = ("--epsilon", "3", "--composition", "gausian")
    assert run("budget", "new", path.with_name("new.db"), *wrong) == 2
    assert "Did you mean gaussian?" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["team.db"]


def test_another_composition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gaussian.db"
    options = ("--composition", "gaussian", "--slack", "1e-8", "--unit", "one person", "--json")
    assert run("budget", "new", path, "--epsilon", "3", "--delta", "1e-6", *options) == 0
    made = result(capsys, "budget new")
    assert (made["unit"], made["slack"]) == ("one person", "0.00000001")
    assert run("budget", "spend", path, "2 x gaussian sigma=4") == 2
    assert "unit=unknown must be the budget's, one person" in capsys.readouterr().err
    spend = ("budget", "spend", path, "2 x gaussian sigma=4", "--unit", "one person")
    assert run(*spend, "--json") == 0
    assert result(capsys, "budget spend")["cost"] == {"mu_squared": "0.125", "delta": "0"}


def test_certify_asks_the_budget_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", np.random.default_rng(3).random((7, 18)))
    small = dpv.Budget(epsilon=1, delta="1e-2", path=tmp_path / "small.db")
    monkeypatch.setattr(certifying, "collect", None)  # it isn't audited, nor drawn
    certify = ("certify", tmp_path / "release.toml", "--out", tmp_path / "out", "--yes")
    assert run(*certify, "--budget", tmp_path / "small.db") == 1
    assert "epsilon=2 doesn't fit: 1 of 1 is left" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert small.history == ()
    dpv.Budget(epsilon=9, delta="1e-2", path=tmp_path / "large.db")
    turned = (*certify[:3], tmp_path / "out\u202e", "--yes", "--budget", tmp_path / "large.db")
    assert run(*turned) == 2  # the spend's label would hold the folder's name
    assert r"label=\u202e must be left out" in capsys.readouterr().err


@pytest.mark.nightly
def test_certify_spends_before_it_draws(
    workplace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("release.toml", "records.npy"):
        shutil.copy(workplace / name, tmp_path)
    certify = ("certify", tmp_path / "release.toml", "--out", tmp_path / "out", "--yes")
    path = tmp_path / "team.db"
    budget = dpv.Budget(epsilon=3, delta="1e-2", path=path)
    options = ("--budget", path, "--allow-inconclusive", "--quiet")
    assert run(*certify, *options) == 0
    inputs = json.loads((tmp_path / "out" / "certificate.json").read_text())["inputs"]
    (spend,) = budget.history
    assert spend.label == f"certify {inputs['mechanism']} in out"
    assert spend.cost == {
        "epsilon": Fraction(inputs["epsilon"]),
        "delta": Fraction(inputs["delta"]),
    }

    # What fails after the spend stays spent.
    def fails(*_: object, **__: object) -> None:
        raise OutputError("the disk is full.")

    small = dpv.Budget(epsilon=2, delta="1e-2", path=tmp_path / "small.db")
    asked = (tmp_path / "release.toml", tmp_path / "other")
    with monkeypatch.context() as patched:
        patched.setattr(certifying, "write_release", fails)
        with pytest.raises(OutputError):
            dpv.certify(*asked, budget=small, accept=lambda _: True)
    assert len(small.history) == 1
    assert not (tmp_path / "other").exists()
    capsys.readouterr()

    # The certificate is a release like others, for the accountant and for another budget.
    certificate = tmp_path / "out" / "certificate.json"
    releases = (certificate, "laplace scale=10")
    assert run("account", "compose", *releases, "--delta", "1e-3", "--json") == 0
    together = result(capsys, "account")["epsilon"]
    assert 2 < float(together["upper"]) <= 2.1
    assert run("budget", "spend", tmp_path / "small.db", certificate, "--delta", "1e-3") == 1
    assert run("account", "compose", tmp_path / "missing.json", "--delta", "1e-6") == 2
