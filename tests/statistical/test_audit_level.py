"""Whole audits of true claims, simulated: how often they err, and how much they find.

Counts are drawn from their joint law at the claimed rates, so the events of a pair share their
draws as they do in an audit. A rate is judged by its exact binomial tail: each test here fails a
correct auditor with probability below 1e-6 (were its seed drawn anew).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.auditing.statistics.claim_test import curve_lines, judge
from dpverify.auditing.statistics.power import Event, ceiling, events, levels
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines, epsilon_limit
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import day_and_night

PAIRS = 2
TESTS = 6 * PAIRS
"""Three events in both orders for every pair, as a certificate plans them."""

MILLIONTH = Fraction(1, 10**6)
TARGETS = (
    (Fraction(5), MILLIONTH),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(2), MILLIONTH),
)
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True)
class QuickClaim(PrivacyCurve):
    """A Gaussian claim with δ(ε) in doubles: thousands of audits in seconds, and nothing proven."""

    exact: Gaussian

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction) -> QuickClaim:
        """The claim of noise that just meets the target."""
        sigma = Fraction(sigma_gaussian(epsilon, delta).upper)
        return cls(Gaussian.from_mu_squared(1 / sigma**2))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        eps, mu = float(epsilon), math.sqrt(self.exact.mu_squared)
        value = ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)
        return Enclosure(max(float(value), 0.0), max(float(value), 0.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return _epsilon(self.exact, delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        return self.exact.rates(threshold, noise=noise)


@lru_cache
def _epsilon(curve: Gaussian, delta: Fraction) -> Enclosure:
    return curve.epsilon_at(delta)


@lru_cache(maxsize=1 << 18)
def refuted(event: Event, counts: Counts, claim: QuickClaim, delta: Fraction, level: float) -> bool:
    """The auditor's, made once for counts that come again."""
    lines = curve_lines(claim, delta)
    return counts.refutes(lines, alpha=level, delta=event.ordering)


@lru_cache(maxsize=1 << 18)
def bound_is_false(
    event: Event, counts: Counts, claim: QuickClaim, delta: Fraction, level: float
) -> bool:
    """Whether the lower bound is above the true ε(δ): whether a claim as true is rejected."""
    lines = claim_lines(claim.epsilon_at(delta).upper, float(delta))
    return counts.refutes(lines, alpha=level, delta=event.ordering)


def shared(alpha: Fraction) -> list[float]:
    """Levels of all events of all pairs: the attack's part of alpha, as in a certificate."""
    return [level for row in levels(float(alpha) * 39 / 40, PAIRS) for level in row]


def audits(
    claim: QuickClaim, tests: Sequence[Event], draws: int, runs: int
) -> Iterator[list[tuple[Event, Counts]]]:
    """Counts of every event of every pair, one list an audit."""
    rng = np.random.default_rng(17)
    thresholds = sorted({sign * event.threshold for event in tests for sign in (-1, 1)})
    own, other = (_at_least(rng, claim, thresholds, side, draws, (runs, PAIRS)) for side in (0, 1))
    for run in range(runs):
        rows = []
        for pair in range(PAIRS):
            for event in tests:
                # {−L ≥ t} is all but {L > −t}; no loss equals a threshold.
                place = thresholds.index(-event.threshold if event.swapped else event.threshold)
                hits, false_hits = int(own[run, pair, place]), int(other[run, pair, place])
                if event.swapped:
                    hits, false_hits = draws - false_hits, draws - hits
                rows.append((event, Counts(hits=hits, false_hits=false_hits, draws=draws)))
        yield rows


def _at_least(
    rng: np.random.Generator,
    claim: QuickClaim,
    thresholds: Sequence[float],
    side: int,
    draws: int,
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """Counts of {L ≥ t} for every threshold, in their joint law."""
    rates = [1.0, *(claim.rates(t)[side] for t in thresholds), 0.0]
    cells = np.maximum(-np.diff(rates), 0.0)
    drawn = rng.multinomial(draws, cells / cells.sum(), size=shape)
    return np.cumsum(drawn[..., ::-1], axis=-1)[..., ::-1][..., 1:]


def at_most(count: int, runs: int, rate: float) -> bool:
    """Whether so many are compatible with a probability of at most `rate`."""
    return bool(binom.sf(count - 1, runs, rate) > FALSE_ALARM)


def errors(
    claim: QuickClaim,
    audit: Sequence[tuple[Event, Counts]],
    delta: Fraction,
    each: Sequence[float],
) -> tuple[bool, bool]:
    """Whether an audit of a true claim reports a violation, or a lower bound above its ε(δ)."""
    cases = [(*case, claim, delta, level) for case, level in zip(audit, each, strict=True)]
    return any(refuted(*c) for c in cases), any(bound_is_false(*c) for c in cases)


BY_DAY = day_and_night(*TARGETS)
SIZES = day_and_night((100, 60), (100, 600), (3000, 600), (100_000, 600))


def test_the_levels_are_those_of_certificates(certificate: dict[str, Any]) -> None:
    alpha = Fraction(certificate["inputs"]["alpha"])
    findings = certificate["derived"]["white_box"]["findings"]
    assert certificate["derived"]["white_box"]["tests"] == len(findings) == TESTS
    stated = [float(finding["level"]) for finding in findings]
    assert stated == pytest.approx(shared(alpha), rel=1e-8)
    formulas = 2 * len(certificate["derived"]["estimators"])
    total = math.fsum(stated) + formulas * float(certificate["derived"]["moment_level"])
    assert total == pytest.approx(float(alpha), rel=1e-8)


@pytest.mark.parametrize(("draws", "runs"), SIZES)
@pytest.mark.parametrize(("epsilon", "delta"), BY_DAY)
def test_true_claims_are_seldom_accused(
    epsilon: Fraction, delta: Fraction, draws: int, runs: int
) -> None:
    """All events together keep the level; each at the whole of it, they don't."""
    claim, alpha = QuickClaim.of(epsilon, delta), Fraction(1, 5)
    each = shared(alpha)
    tests = events(claim, delta, draws, each[0])
    drawn = list(audits(claim, tests, draws, runs))
    made = [errors(claim, audit, delta, each) for audit in drawn]
    violations, bounds = (sum(error[kind] for error in made) for kind in (0, 1))
    assert at_most(violations, runs, float(alpha)), violations
    assert at_most(bounds, runs, float(alpha)), bounds
    careless = [float(alpha)] * TESTS
    uncorrected = sum(errors(claim, audit, delta, careless)[0] for audit in drawn)
    assert not at_most(uncorrected, runs, float(alpha)), uncorrected


@pytest.mark.nightly
@pytest.mark.parametrize(("epsilon", "delta"), BY_DAY)
def test_what_is_judged_is_what_was_counted_as_an_error(epsilon: Fraction, delta: Fraction) -> None:
    """A judgement is those two tests; a bound above the claim is a violation."""
    claim, draws = QuickClaim.of(epsilon, delta), 150
    tests = events(claim, delta, draws, 0.4)
    for audit in audits(claim, tests, draws, 3):
        for event, counts in audit:
            found = judge(counts, claim, delta, 0.4, ordering=event.ordering)
            above = found.epsilon_lower > claim.epsilon_at(delta).upper
            assert above <= bound_is_false(event, counts, claim, delta, 0.4)
            expected = refuted(event, counts, claim, delta, 0.4) or above
            assert (found.refuted_at is not None) == expected


@pytest.mark.nightly
@pytest.mark.parametrize("draws", day_and_night(10_000, 100_000))
@pytest.mark.parametrize(("epsilon", "delta"), BY_DAY)
def test_the_lower_bound_comes_near_its_best(
    epsilon: Fraction, delta: Fraction, draws: int
) -> None:
    """The leading event alone, in median, against the best one tested at the whole level."""
    claim, alpha, runs = QuickClaim.of(epsilon, delta), Fraction(1, 100), 11
    level = shared(alpha)[0]

    def median(event: Event, level: float) -> float:
        rng = np.random.default_rng(5)
        p, q = claim.rates(event.threshold)
        drawn = [(int(rng.binomial(draws, p)), int(rng.binomial(draws, q))) for _ in range(runs)]
        bounds = [epsilon_limit(h, f, draws, delta=event.ordering, alpha=level) for h, f in drawn]
        return float(np.median(bounds))

    led = median(events(claim, delta, draws, level)[0], level)
    best = median(events(claim, delta, draws, float(alpha))[0], float(alpha))
    assert led >= 0.99 * best, f"{led:.4f} of {best:.4f}"
    assert ceiling(claim, delta, draws, float(alpha)) < claim.epsilon_at(delta).lower
