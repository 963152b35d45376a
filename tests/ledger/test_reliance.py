"""A statement that fails its check blocks the certificates of the mechanisms that stand on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpverify.catalogue import family_of
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.compose import compose
from dpverify.cli import _run
from dpverify.errors import ConfigurationError
from dpverify.ledger import reliance
from dpverify.ledger.statements import Correction, Reading, Statement, known_statements, perturbed
from tests.helpers.cases import CASES, made

STOOD_ON = "li2023.theorem-3.5"
Change = Callable[[Statement], Statement | None]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    reliance._judgement.cache_clear()
    yield
    reliance._judgement.cache_clear()


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Ledgers in which one statement is another one."""

    def planted(change: Change) -> None:
        statements = [
            change(statement) if statement.id == STOOD_ON else statement
            for statement in known_statements()
        ]
        monkeypatch.setattr(
            "dpverify.ledger.reliance.known_statements",
            lambda: (statement for statement in statements if statement is not None),
        )
        reliance._judgement.cache_clear()

    return planted


def wrong(statement: Statement) -> Statement:
    return perturbed(statement, Fraction(21, 20))


def told(statement: Statement) -> Statement:
    return replace(wrong(statement), reason="A factor too much.", instead="Leave it out.")


def misprinted(statement: Statement) -> Statement:
    assert statement.printed is not None
    own = Correction(statement.printed, place="the proof", change="without the factor")
    return replace(told(statement), corrections={"without the factor": own})


def narrower(statement: Statement) -> Statement:
    assert statement.printed is not None
    reading = Reading(statement.printed, place="section 1: “one”", covers="one")
    return replace(told(statement), readings={"without the factor": reading})


def unchecked(statement: Statement) -> Statement:
    return replace(statement, printed=None, check=None, reason="an opinion")


def certify(workplace: Path, folder: Path, **changed: str) -> int:
    """Exit code of certifying the workplace's release into another folder."""
    text = (workplace / "release.toml").read_text()
    text = text.replace('"records.npy"', f'"{(workplace / "records.npy").as_posix()}"')
    for old, new in changed.items():
        text = text.replace(f"{old} =", f"{new}\n{old} =")
    (folder / "release.toml").write_text(text)
    command = ["certify", str(folder / "release.toml"), "--out", str(folder / "out")]
    return _run([*command, "--allow-inconclusive"])


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (wrong, "refuted"),
        (misprinted, "misprint"),
        (narrower, "holds_under_reading"),
        (unchecked, "not_checkable"),
        (lambda statement: None, "in no installed ledger"),
    ],
)
def test_a_failing_statement_blocks_certification(
    change: Change,
    verdict: str,
    plant: Callable[[Change], None],
    workplace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(change)
    assert certify(workplace, tmp_path) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"dp-oporp can't be certified: its guarantee uses {STOOD_ON}" in error
    assert verdict in error
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
@pytest.mark.usefixtures("no_figures")
def test_only_with_that_theorem(
    plant: Callable[[Change], None], workplace: Path, tmp_path: Path
) -> None:
    """The same mechanism with Laplace noise stands on another one."""
    plant(wrong)
    assert certify(workplace, tmp_path, k='noise = "laplace"') == 0
    assert (tmp_path / "out").exists()


def test_a_certificate_made_before_the_refutation_fails(
    certificate: dict[str, Any], plant: Callable[[Change], None], tmp_path: Path
) -> None:
    (stated,) = certificate["derived"]["guarantee"]["statements"]
    assert stated == {"id": STOOD_ON, "verdict": "confirmed_exactly"}
    plant(wrong)
    last = check_certificate(certificate, tmp_path)[-1]
    assert last.status == "differs"
    assert STOOD_ON in last.detail


def test_nothing_is_composed_of_it_either(
    certificate: dict[str, Any], plant: Callable[[Change], None]
) -> None:
    plant(wrong)
    with pytest.raises(ConfigurationError, match=STOOD_ON):
        compose([certificate, certificate])


def test_a_changed_verdict_is_named(certificate: dict[str, Any], tmp_path: Path) -> None:
    changed = deepcopy(certificate)
    changed["derived"]["guarantee"]["statements"][0]["verdict"] = "conservative"
    fields = [field for check in check_certificate(changed, tmp_path) for field in check.fields]
    assert "derived.guarantee.statements[0].verdict" in fields


@pytest.mark.parametrize("case", CASES)
def test_what_a_guarantee_stands_on_holds_and_names_the_mechanism(case: str) -> None:
    name = case.split(maxsplit=1)[0]
    guarantee = made(case).guarantee()
    relied = reliance.relied_on(name, guarantee)
    assert [found.statement.id for found in relied] == list(guarantee.statements)
    proven_here = name == "jl-covariance"
    assert relied or proven_here, "its guarantee() names no `statements` that it stands on"
    users = {statement.id: statement.mechanisms for statement in known_statements()}
    silent = [statement for statement in guarantee.statements if name not in users[statement]]
    assert not silent, f"name {name} in the `mechanisms` of {silent}"


def test_the_error_names_the_way_out(plant: Callable[[Change], None]) -> None:
    plant(wrong)
    build = family_of("dp-oporp").build
    assert build is not None
    guarantee = build(CASES["dp-oporp"]).guarantee()
    with pytest.raises(ConfigurationError, match=f"dpverify claims show {STOOD_ON}"):
        reliance.relied_on("dp-oporp", guarantee)


def test_a_mechanism_names_what_its_paper_has_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """And the statement names the mechanism."""
    assert _run(["mechanisms", "dp-signrp-rr-smooth"]) == 0
    assert "li2023.algorithm-7: Use √k|xⱼ| above the line" in capsys.readouterr().out
    assert _run(["claims", "show", "li2023.algorithm-7"]) == 0
    assert "dp-signrp-rr-smooth" in capsys.readouterr().out
