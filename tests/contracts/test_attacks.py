"""What every attack does: a name, a level, refusals, findings that replay."""

from __future__ import annotations

import contextlib
import io
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.table import ATTACKS
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.report import _MEANINGS
from dpverify.auditing.settings import KINDS, AuditKind
from dpverify.data.adjacency import Record
from dpverify.errors import DPVerifyError, DrawError, ParameterError
from dpverify.privacy import Exhaustive, Pair, WhiteBox
from dpverify.sampling.words import Words
from tests.helpers.levels import MODES
from tests.helpers.paths import ROOT
from tests.helpers.profiles import thinned

PAIR = Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
ALL = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin(WhiteBox, Exhaustive):
    """Reports a bit truthfully with probability 7/8, and claims some ε: every attack applies."""

    epsilon: Fraction = Fraction(3)
    adjacency = Record()

    def release(self, records: Any, *, rng: Words) -> NDArray[np.int64]:
        flips = rng.words(len(records)) >> np.uint64(61) == 0
        return np.asarray(np.asarray(records).astype(np.int64).ravel() ^ flips)

    def with_generator(self, records: Any, rng: Any) -> NDArray[np.int64]:
        flips = rng.random(len(records)) < 1 / 8
        return np.asarray(np.asarray(records).astype(np.int64).ravel() ^ flips)

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=self.epsilon)

    def worst_pairs(self) -> Sequence[Pair]:
        return [PAIR]

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        sign = 1.0 if np.asarray(record).ravel()[0] else -1.0
        return np.asarray(sign * math.log(7) * (2 * outputs.reshape(len(outputs)) - 1))

    def distribution(self, record: Any) -> dict[int, Fraction]:
        bit = int(np.asarray(record).ravel()[0])
        return {bit: Fraction(7, 8), 1 - bit: Fraction(1, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Raising(Coin):
    """Fails on one side."""

    def release(self, records: Any, *, rng: Words) -> NDArray[np.int64]:
        raise KeyError("no record")

    def with_generator(self, records: Any, rng: Any) -> NDArray[np.int64]:
        raise KeyError("no record")

    def distribution(self, record: Any) -> dict[int, Fraction]:
        raise KeyError("no record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging(Coin):
    """Never comes back."""

    def release(self, records: Any, *, rng: Words) -> NDArray[np.int64]:
        time.sleep(60)
        raise AssertionError

    def with_generator(self, records: Any, rng: Any) -> NDArray[np.int64]:
        return self.release(records, rng=rng)

    def distribution(self, record: Any) -> dict[int, Fraction]:
        time.sleep(60)
        raise AssertionError


COIN, LIAR = Coin(), Coin(epsilon=Fraction(1, 100))


def test_the_table_has_every_kind_in_order() -> None:
    assert tuple(ATTACKS) == KINDS, "`AuditKind` has them in the order of the table"
    assert all(attack.name == name for name, attack in ATTACKS.items())
    missing = ATTACKS.keys() - _MEANINGS.keys()
    assert not missing, f"say in report._MEANINGS what a violation of {missing} means"
    assert list(_MEANINGS) == list(KINDS)


@ALL
def test_its_level_is_tried_and_a_page_describes_it(kind: AuditKind) -> None:
    modes = [mode.name.replace(" ", "-") for mode in MODES]
    assert any(name.startswith(kind) for name in modes), "give it a mode in tests/helpers/levels.py"
    page = (ROOT / "docs" / "auditing.md").read_text("utf-8").lower()
    assert kind in page.replace(" ", "-"), "describe it in docs/auditing.md"


@ALL
def test_it_applies_and_its_level_is_the_configured_one(kind: AuditKind) -> None:
    attack = ATTACKS[kind]
    assert attack.applies(COIN)
    config = AuditConfig(alpha=0.03, draws=100, seed=1, workers=1)
    findings = list(attack.run(Target(COIN, [PAIR]), config))
    assert findings
    assert {finding.audit for finding in findings} == {kind}
    assert sum(finding.level for finding in findings) <= 0.03
    assert (sum(finding.level for finding in findings) == 0) == (kind == "exhaustive")
    assert not [finding for finding in findings if finding.verdict == "violation"]


@ALL
def test_the_seed_decides_and_the_workers_do_not(kind: AuditKind) -> None:
    if kind == "determinism":
        pytest.skip("with more workers it compares processes too")
    attack, config = ATTACKS[kind], AuditConfig(draws=100, seed=1, workers=1)
    target = Target(COIN, [PAIR])
    once = list(attack.run(target, config))
    assert once == list(attack.run(target, evolve(config, workers=2)))
    assert once == list(attack.run(target, config))


@ALL
def test_an_audit_says_what_it_found_and_its_code_repeats_it(kind: AuditKind) -> None:
    report = audit(LIAR, kinds=[kind], draws=200, seed=2, workers=1)
    assert [finding.audit for finding in report.findings] == [kind] * len(report.findings)
    document = report.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    for finding in report.findings:
        assert finding.replay
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(finding.replay, {})  # noqa: S102
        assert str(finding) in out.getvalue()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(report.replay, {})  # noqa: S102
    assert out.getvalue() == f"{report}\n"


@ALL
def test_a_false_claim_is_refuted(kind: AuditKind) -> None:
    # Flips are no rounding, and not affine in the noise.
    expected = kind not in ("precision", "grey-box")
    report = audit(LIAR, kinds=[kind], draws=400, seed=2, workers=1)
    assert (report.verdict == "violation") == expected


@ALL
def test_a_mechanism_that_raises_is_named_and_not_accused(kind: AuditKind) -> None:
    report = audit(Raising(), kinds=[kind], draws=40, workers=1)
    assert report.verdict == "inconclusive"
    assert "raised KeyError" in "".join([*report.failed, *(f.statement for f in report.findings)])
    with contextlib.suppress(DPVerifyError):
        findings = ATTACKS[kind].run(Target(Raising(), [PAIR]), AuditConfig(draws=40, workers=1))
        assert {finding.verdict for finding in findings} == {"inconclusive"}


@ALL
def test_a_release_that_hangs_is_stopped(kind: AuditKind) -> None:
    config = AuditConfig(draws=40, workers=1, time_limit=0.02)
    start = time.perf_counter()
    try:
        findings = list(ATTACKS[kind].run(Target(Hanging(), [PAIR]), config))
        said = " ".join(finding.statement for finding in findings)
        assert {finding.verdict for finding in findings} == {"inconclusive"}
    except DrawError as error:
        said = str(error)
    assert "took longer than" in said
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("kind", thinned(KINDS, 3))
def test_its_findings_come_back_from_a_journal(kind: AuditKind, tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path / "journal")
    first, second = (
        audit(LIAR, kinds=[kind], draws=50, seed=2, workers=1, journal=journal) for _ in range(2)
    )
    assert first == second == audit(LIAR, kinds=[kind], draws=50, seed=2, workers=1)
    header, *steps = map(json.loads, (tmp_path / "journal").read_text().splitlines())
    assert header["dpverify"]
    assert [step["step"] for step in steps] == ["pace", "trials", kind]


@ALL
def test_no_pairs(kind: AuditKind) -> None:
    with pytest.raises(ParameterError, match="pairs"):
        Target(COIN, [])
    with pytest.raises(ParameterError, match="pairs"):
        audit(COIN, kinds=[kind], pairs=[])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.0),
        ("alpha", math.nan),
        ("draws", 0),
        ("draws", 2.5),
        ("draws", True),
        ("seed", -1),
        ("workers", 0),
        ("time_limit", 0.0),
        ("time_limit", math.nan),
        ("delta", Fraction(1)),
        ("delta", Fraction(-1)),
        ("delta", math.nan),
    ],
)
def test_settings_outside_their_domain(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name}="):
        AuditConfig(**{name: value})


class Foreign:
    """What the two strongest attacks need, without a base class of ours."""

    def release(self, records: Any, *, rng: Any) -> Any: ...

    def privacy(self) -> Any: ...

    def log_likelihood_ratio(self, outputs: Any, record: Any, neighbour: Any) -> Any: ...

    def worst_pairs(self) -> Any: ...

    def distribution(self, record: Any) -> Any: ...


def test_methods_decide_which_attacks_apply_and_no_base_class() -> None:
    assert isinstance(Foreign(), WhiteBox)
    assert isinstance(Foreign(), Exhaustive)
    assert not isinstance(object(), WhiteBox | Exhaustive)
