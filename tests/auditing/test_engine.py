"""One audit of every kind that applies: its level, its findings, its words."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

import dpverify as dpv
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing import engine, search
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.sequential import SequentialAttack
from dpverify.auditing.attacks.white_box import WhiteBoxAttack
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import BandEvidence, Finding
from dpverify.auditing.outputs import leaves, values
from dpverify.auditing.report import Report
from dpverify.auditing.settings import KINDS, AuditKind
from dpverify.auditing.statistics.two_sample_binomial import claim_lines
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify_audits.planted.min_hash import drawn
from tests.helpers.attacks import evidence_of, finding_of
from tests.helpers.profiles import thinned

UNIT = Attribute(beta=Fraction(1))
EIGHT = Box(low=Fraction(0), high=Fraction(8))
DELTA = Fraction(1, 1000)
GAUSSIAN = Gaussian(sigma=1)


PACES: list[tuple[float, dict[str, Any], bool]] = [
    (1e-2, {}, True),
    (1e-4, {}, False),
    (1e-2, {"brief": False}, False),
    (1e-2, {"pairs": [Pair(name="one more", record=[], neighbour=[{"old": True}])]}, False),
]
PAIR = Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


def gaussian(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return record + rng.normal(size=record.shape)


def laplace(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return record + rng.laplace(size=record.shape)


def tripled_inside(record: NDArray[np.float64], rng: np.random.Generator) -> Any:
    """Its sensitivity is too large away from the ends, which extreme pairs don't try."""
    inside = (record > 1) & (record < 7)
    return np.where(inside, 3 * record, record) + rng.laplace(size=record.shape)


def audited(function: Any, claim: PrivacyCurve, **options: Any) -> Report:
    mechanism = adapt(
        function, adjacency=UNIT, claim=claim, of="record", domain=EIGHT, attributes=1
    )
    return audit(mechanism, workers=1, **{"draws": 1000, "seed": 1} | options)


def test_trade_off_and_its_model_are_part_of_an_audit() -> None:
    assert "trade-off" in KINDS
    report = audited(gaussian, GAUSSIAN, delta=DELTA, kinds=["trade-off", "sequential"])
    assert report.verdict == "no_violation_found"
    (found, *_) = (f for f in report.findings if f.audit == "trade-off")
    assert "claimed curve" in found.statement
    assert "Under a Gaussian model, which they don't reject" in found.statement
    assert "no verdict rests on it" in found.statement
    assert found.power["reach"] is not None
    assert isinstance(found.evidence, BandEvidence)
    assert max(len(line) for line in str(report).splitlines()) < 600  # a person reads it


@pytest.mark.nightly
def test_the_model_gives_no_number_for_laplace_noise_however_cautious_the_audit() -> None:
    claim = ApproxDP(epsilon=Fraction(1), delta=DELTA)
    report = audited(laplace, claim, delta=DELTA, kinds=["trade-off"], alpha=1e-6, draws=4000)
    assert all("A Gaussian model doesn't fit" in f.statement for f in report.findings)


def test_half_the_noise_is_found_by_the_curve_and_by_bets() -> None:
    narrow = Gaussian.from_mu_squared(Fraction(1, 4))
    report = audited(gaussian, narrow, delta=DELTA, kinds=["trade-off", "sequential"])
    assert {finding.audit for finding in report.violations} == {"trade-off", "sequential"}


@pytest.mark.parametrize("kind", get_args(AuditKind))
def test_every_kind_says_what_it_refuted(kind: AuditKind) -> None:
    found = Finding(audit=kind, verdict="violation", statement="It is wrong.", level=0.01)
    report = Report(
        mechanism="mine",
        claim=(1.0, Fraction(0)),
        alpha=0.01,
        findings=(found,),
        failed=(),
        replay="again",
    )
    assert any(line.startswith(f"    {kind}  ") for line in str(report).splitlines())


def at(row: int, column: int, value: float) -> NDArray[np.float64]:
    data = np.zeros((20, 30))
    data[row, column] = value
    return data


@pytest.mark.parametrize(
    ("record", "neighbour", "says"),
    [
        (at(13, 27, 1.0), at(13, 27, 5.0), "      row 13, column 27: 1.0 -> 5.0"),
        (at(13, 27, 1.0)[13], at(13, 27, 5.0)[13], "      place 27: 1.0 -> 5.0"),
        (
            at(0, 0, 1.0),
            at(0, 0, 0.0) + (np.arange(20) == 7)[:, None],
            "row 7, column 22: 0.0 -> 1.0; and 7 more",
        ),
        (at(0, 0, 1.0), at(0, 0, 1.0)[:19], "one row less: of shape (30,): 0.0 in all places"),
        ([[1], [2, 3]] * 9, [[1]], "of shapes (18,) and"),
    ],
)
def test_a_pair_too_large_to_be_shown_says_where_it_differs(
    record: Any, neighbour: Any, says: str
) -> None:
    pair = Pair(name="mine", record=record, neighbour=neighbour)
    found = Finding(audit="black-box", verdict="violation", statement="Wrong.", pair=pair)
    assert says in str(found)


def test_a_pair_that_is_shown_whole_says_no_more() -> None:
    pair = Pair(name="mine", record=np.zeros((2, 2)), neighbour=np.ones((2, 2)))
    found = Finding(audit="black-box", verdict="violation", statement="Wrong.", pair=pair)
    assert "->" not in str(found)


def test_parts_that_have_no_names_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (leaves, values):
        monkeypatch.setattr(module, "MOST", 20)

    def long(record: NDArray[np.float64], rng: np.random.Generator) -> Any:
        return [None] * 30 + [record[0] + rng.laplace() / 99]

    report = audited(long, GAUSSIAN, pairs=[PAIR], kinds=["black-box"], draws=20, delta=DELTA)
    (note,) = report.notes
    assert "releases more than 4,096 parts; those beyond are audited by their number" in note
    assert "beyond the first 4096 parts ≥" in report.findings[0].statement


def test_bets_are_against_the_whole_curve() -> None:
    """δ(ε) is violated where it is largest, while (ε, δ) at the claimed δ holds by far."""

    class Kinked(ApproxDP):
        """Claims more near ε = 0 than follows from its point."""

        def _delta(self, epsilon: Fraction) -> Enclosure:
            return ApproxDP(epsilon=Fraction(1, 10)).delta_at(epsilon)

    claim = Kinked(epsilon=3)
    report = audited(laplace, claim, kinds=["sequential"], delta=Fraction(0))
    assert report.verdict == "violation"
    assert evidence_of(report.violations[0]).slope < claim_lines(3.0, 0.0)[0][0]


@pytest.mark.parametrize("claim", [lambda: None, lambda: 1 / 0, lambda: dpv.Laplace])
def test_a_claim_that_is_none_is_refused(claim: Callable[[], Any]) -> None:
    class Claimless(Mechanism):
        adjacency = UNIT

        def release(self, records: Any, *, rng: Any) -> Any:
            return 0.0

        def privacy(self) -> Any:
            return claim()

    with pytest.raises(ParameterError, match=r"^privacy\(\)=.* must be a privacy curve"):
        audit(Claimless(), workers=1)


def test_a_curve_that_gives_no_enclosures_is_refused() -> None:
    class Doubles:
        def delta_at(self, epsilon: Any) -> float:
            return 0.0

        epsilon_at = delta_at

    doubles: Any = Doubles()
    with pytest.raises(ParameterError, match=r"^privacy\(\)=.* give a dpv.Enclosure"):
        audited(laplace, doubles)


@pytest.mark.parametrize("step", [1, Fraction(-1, 100)])
def test_a_claim_of_all_releases_so_far_is_not_that_of_one(step: Fraction) -> None:
    class Odometer:
        adjacency = dpv.AddRemove()
        released = 0

        def privacy(self) -> dpv.PrivacyCurve:
            return dpv.ApproxDP(epsilon=max(1 + step * self.released, Fraction(1, 10)))

        def release(self, records: Any, *, rng: Any) -> float:
            self.released += 1
            return len(records) + float(np.random.default_rng(int(rng.words(1)[0])).laplace())

    pair = dpv.Pair(name="one", record=[1], neighbour=[])
    found = dpv.audit(Odometer(), pairs=[pair], draws=100, kinds=["black-box"], workers=1)
    assert (found.verdict, found.findings) == ("inconclusive", ())
    assert "Odometer claimed ε = 1 at δ = 0 before its first release" in found.failed[0]


def test_levels_of_all_kinds_add_up_to_at_most_alpha() -> None:
    report = audited(laplace, ApproxDP(epsilon=Fraction(1)), alpha=0.05, draws=60)
    kinds = [finding.audit for finding in report.findings]
    assert set(kinds) == set(KINDS) - {"white-box", "exhaustive", "frozen-outputs"}
    assert 0.045 < sum(finding.level for finding in report.findings) <= 0.05


def test_the_grey_box_is_searched_where_pairs_are_not_named() -> None:
    report = audited(tripled_inside, ApproxDP(epsilon=Fraction(1)), kinds=["grey-box"], draws=20)
    (found,) = report.violations
    assert found.pair is not None
    both = {found.pair.record.item(), found.pair.neighbour.item()}
    assert both == {1.0, 2.0}  # nothing smaller shows it


def test_the_white_box_attack_redraws_where_the_guarantee_is_over_the_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sketch = drawn()
    seeds: list[int] = []
    original = type(sketch).redrawn

    def redrawn(self: Any, seed: int) -> Any:
        seeds.append(seed)
        return original(self, seed)

    monkeypatch.setattr(type(sketch), "redrawn", redrawn)
    finding_of(
        WhiteBoxAttack(), sketch, sketch.worst_pairs(), delta=DELTA, draws=20, seed=1, workers=1
    )
    assert len(set(seeds)) == 2 * 20 * len(sketch.worst_pairs())


class Called:
    """A count with noise of some scale, and how often it was asked for."""

    def __init__(self, scale: float) -> None:
        self.scale, self.calls = scale, 0

    @property
    def adapted(self) -> Mechanism:
        def count(people: Any, rng: Any) -> float:
            self.calls += 1
            return len(people) + float(rng.laplace(scale=self.scale))

        people = dpv.Table({"old": dpv.Booleans()}, rows=(0, 6))
        claim = ApproxDP(epsilon=1)
        return adapt(count, adjacency=dpv.AddRemove(), claim=claim, domain=people)

    def audited(self, **options: Any) -> Report:
        usual: dict[str, Any] = {"kinds": ["black-box", "trade-off", "sequential"], "draws": 4000}
        return audit(self.adapted, **usual | {"workers": 1} | options)


@pytest.mark.nightly
def test_a_brief_audit_ends_once_the_claim_is_refuted() -> None:
    counts = Called(0.2), Called(1)
    broken, true = (count.audited(brief=True) for count in counts)
    assert (broken.verdict, true.verdict) == ("violation", "no_violation_found")
    assert [finding.audit for finding in broken.findings] == ["black-box"]
    assert len(true.findings) == 3  # at the more telling of two pairs
    assert counts[0].calls < 8000 < counts[1].calls
    assert "brief=True" in broken.replay
    assert "brief=True" in broken.findings[0].replay
    assert 1 < broken.epsilon_lower < 5


def test_a_brief_audit_needs_few_training_draws_of_a_rare_output() -> None:
    calls = 0

    def seldom(people: Any, rng: Any) -> bool:
        nonlocal calls
        calls += 1
        return bool(people) and rng.random() < 0.1

    report = dpv.audit(
        seldom,
        epsilon=1,
        delta="0.01",
        adjacency=dpv.AddRemove(),
        pairs=[Pair(name="one", record=[], neighbour=[1])],
        kinds=["black-box"],
        draws=4000,
        workers=1,
        brief=True,
    )
    assert report.verdict == "violation"
    assert calls < 3 * 4000  # where 4000 on each side are counted


def test_bets_on_shared_draws_are_repeated_by_their_code() -> None:
    pair = Pair(name="one more", record=[], neighbour=[{"old": True}])
    count = Called(1)
    report = count.audited(pairs=[pair], draws=500)
    finding = report.findings[-1]
    assert "SequentialAttack(beside=True)" in finding.replay
    config = AuditConfig(delta=0, draws=500, alpha=finding.level, workers=1)
    target = Target(count.adapted, [pair])
    (again,) = SequentialAttack(beside=True).run(target, config)
    assert again.evidence == finding.evidence


def test_a_pair_that_shows_nothing_beyond_the_claim_is_not_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shrunk: list[Any] = []

    def noted(pair: Pair, *_: Any, **__: Any) -> Pair:
        shrunk.append(pair)
        return pair

    monkeypatch.setattr(search, "shrunk", noted)
    for scale, times in ((2, 0), (0.1, 1)):
        Called(scale).audited(kinds=["black-box"], draws=2000)
        assert len(shrunk) == times


@pytest.mark.parametrize(("pace", "options", "brief"), thinned(PACES, 3, rows=True))
def test_slow_releases_make_a_search_brief(
    monkeypatch: pytest.MonkeyPatch, pace: float, options: dict[str, Any], brief: bool
) -> None:
    monkeypatch.setattr(engine, "pace", lambda *_: pace)
    report = Called(0.1).audited(**{"kinds": ["black-box"], "draws": 200} | options)
    assert ("brief=True" in report.replay) == brief
    assert report.verdict == "violation"
