"""The δ at which a claim is audited is the claim's own, and rare events are found at it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.audit import audit
from dpverify.auditing.config import fitting_delta
from dpverify.auditing.statistics.claim_test import curve_lines, floor
from dpverify.auditing.statistics.two_sample_binomial import claim_lines
from dpverify.data.adjacency import AddRemove
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Pair
from tests.helpers.attacks import evidence_of
from tests.helpers.profiles import day_and_night
from tests.helpers.rare_events import FACTOR, SUBJECTS, Rare, finds, whole

ONE_HUNDREDTH = Fraction(1, 100)
DRAWS = 932
"""With which the test of the best event, at level 0.01 and δ of 0.01, has a power of 80 %."""


@pytest.mark.parametrize("leak", ["0", "1e-9", "2.5e-4", "1e-3", "0.3"])
def test_a_point_is_audited_at_its_own_delta(leak: str) -> None:
    assert fitting_delta(ApproxDP(epsilon=Fraction(1), delta=Fraction(leak))) == Fraction(leak)


@pytest.mark.parametrize(
    ("curve", "delta"),
    [
        (Gaussian(sigma=1), Fraction(1, 10**6)),
        (Gaussian.from_mu_squared(Fraction(10**4)), Fraction(1, 10**6)),
    ],
)
def test_a_curve_is_bounded_at_one_millionth(curve: PrivacyCurve, delta: Fraction) -> None:
    assert fitting_delta(curve) == delta


def test_the_report_says_which() -> None:
    report = whole(SUBJECTS[0], Fraction(1, 4000), 40, 1, factor=1.0)
    assert report.claim == (1.0, Fraction(1, 4000))
    assert "epsilon 1 at delta 0.00025" in str(report)


def test_no_point_of_a_curve_is_wasted_beyond_where_it_is_flat() -> None:
    """Those that are tested lie where δ(ε) falls, whatever δ the bound is at."""
    for delta in (ONE_HUNDREDTH, Fraction(1, 10)):
        curve = ApproxDP(epsilon=Fraction(1), delta=ONE_HUNDREDTH)
        assert floor(curve) == pytest.approx(ONE_HUNDREDTH)
        slopes = [slope for slope, _ in curve_lines(curve, delta)]
        assert max(slopes) == pytest.approx(np.e, rel=1e-3)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_the_rare_event_is_chosen(subject: Rare) -> None:
    """Against the claim; against none, a more frequent one that shows a larger ε."""
    rng = np.random.default_rng(1)
    at = FACTOR * float(ONE_HUNDREDTH)
    training = [subject.law(x, 2 * DRAWS, at, rng) for x in (0.0, 1.0)]
    allowed = claim_lines(1.0, 0.01)[:1]
    chosen = choose(*training, delta=0.01, lines=allowed)
    assert chosen.excess > 2
    assert chosen.rare == (chosen.p < 0.05) == ("Gaussian" not in subject.name)
    assert not choose(*training, delta=0.01).rare


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("subject", "runs", "least"),
    day_and_night((SUBJECTS[1], 6, 1), *((subject, 20, 7) for subject in SUBJECTS[:3])),
)
def test_most_bugs_that_the_best_event_shows_are_found(
    subject: Rare, runs: int, least: int
) -> None:
    """With a power of 72 % fewer of 20 runs find it with probability 1e-4, none of 6 with 5e-4."""
    found = sum(finds(subject, ONE_HUNDREDTH, DRAWS, seed, factor=FACTOR) for seed in range(runs))
    assert found >= least
    accused = sum(finds(subject, ONE_HUNDREDTH, DRAWS, seed, factor=1.0) for seed in range(runs))
    assert accused <= 3  # at level 0.01, more with probability 4e-5


@pytest.mark.nightly
def test_the_whole_audit_finds_one() -> None:
    """With half as many draws again, at which the test of the best event hardly misses."""
    report = whole(SUBJECTS[1], ONE_HUNDREDTH, 3 * DRAWS // 2, 1, factor=FACTOR)
    (found,) = (finding for finding in report.violations if finding.audit == "black-box")
    assert "Ada" in evidence_of(found).event
    assert whole(SUBJECTS[1], ONE_HUNDREDTH, 300, 1, factor=1.0).verdict == "no_violation_found"


def test_an_event_begins_where_a_frequent_value_ends() -> None:
    """All 51 outputs that only one side gives are in it, whatever their rank."""
    other = np.zeros((20_000, 1))
    own = np.where(np.arange(20_000) < 51, np.linspace(6, 900, 20_000), 0.0)[:, None]
    chosen = choose(own, other, delta=1e-3, lines=claim_lines(1.0, 1e-3)[:1])
    assert (chosen.p, chosen.q) == (51 / 20_000, 0)


def test_what_the_other_side_never_shows_is_found_at_two_in_a_hundred() -> None:
    """Under a pure claim, at which no event is rare beside δ."""

    def sometimes_exact(rows: list[float], draws: int, rng: np.random.Generator) -> list[float]:
        noise = rng.laplace(scale=10, size=draws)
        return (sum(rows) + np.where(rng.random(draws) < 0.02, 0.0, noise)).tolist()  # type: ignore[no-any-return]

    report = audit(
        sometimes_exact,
        epsilon=1,
        adjacency=AddRemove(),
        pairs=[Pair(name="one more", record=[1.0], neighbour=[1.0, 0.02])],
        search=False,
        many=True,
        kinds=["black-box"],
        draws=2000,
        alpha=1e-4,
        workers=1,
    )
    assert report.verdict == "violation"
    assert report.epsilon_lower > 1.1
