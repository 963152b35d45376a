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

from dpverify.accounting.gaussian import GaussianCurve, sigma_gaussian
from dpverify.auditing.binomial import lower_limit, upper_limit
from dpverify.auditing.whitebox import Counts, Event, Finding, ceiling, events, judge
from dpverify.enclosure import Enclosure, Real

PAIRS = 2
TESTS = 4 * PAIRS
"""Two events in both orders for every pair, as a certificate plans them."""

MILLIONTH = Fraction(1, 10**6)
TARGETS = (
    (Fraction(5), MILLIONTH),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(2), MILLIONTH),
)
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True)
class QuickClaim:
    """A Gaussian claim with δ(ε) in doubles: thousands of audits in seconds, and nothing proven."""

    exact: GaussianCurve

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction) -> QuickClaim:
        """The claim of noise that just meets the target."""
        sigma = Fraction(sigma_gaussian(epsilon, delta).upper)
        return cls(GaussianCurve(mu_squared=1 / sigma**2))

    def delta(self, epsilon: Real) -> Enclosure:
        eps, mu = float(epsilon), math.sqrt(self.exact.mu_squared)
        value = ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)
        return Enclosure(max(float(value), 0.0), max(float(value), 0.0))

    def epsilon(self, delta: Real) -> Enclosure:
        return _epsilon(self.exact, Fraction(delta))

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        return self.exact.rates(threshold, noise=noise)


@lru_cache
def _epsilon(curve: GaussianCurve, delta: Fraction) -> Enclosure:
    return curve.epsilon(delta)


@lru_cache(maxsize=1 << 16)
def finding(counts: Counts, claim: QuickClaim, delta: Fraction, level: float) -> Finding:
    """The auditor's, made once for counts that come again."""
    return judge(counts, claim, delta, level)


def level(alpha: Fraction) -> float:
    """Each event's share: half of alpha is the attack's, split evenly."""
    return float(alpha / 2 / TESTS)


def audits(
    claim: QuickClaim, tests: Sequence[Event], draws: int, runs: int
) -> Iterator[list[tuple[Event, Counts]]]:
    """Counts of every event of every pair, one list an audit."""
    tail = tests[0].threshold
    rng = np.random.default_rng(17)
    # Cells of the loss, from above: [tail, ∞), [0, tail), (−tail, 0), (−∞, −tail].
    own, other = (
        _multinomial(rng, claim, tail, side, draws, (runs, PAIRS)).tolist() for side in (0, 1)
    )
    for run in range(runs):
        rows = []
        for a, b in zip(own[run], other[run], strict=True):
            above = {("tail", False): (a[0], b[0]), ("tail", True): (b[3], a[3])}
            above["middle", False] = (a[0] + a[1], b[0] + b[1])
            above["middle", True] = (b[2] + b[3], a[2] + a[3])
            for event in tests:
                hits, false_hits = above[event.name, event.swapped]
                rows.append((event, Counts(hits=hits, false_hits=false_hits, draws=draws)))
        yield rows


def _multinomial(
    rng: np.random.Generator,
    claim: QuickClaim,
    tail: float,
    side: int,
    draws: int,
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    at_least = [1.0, *(claim.rates(t)[side] for t in (-tail, 0.0, tail)), 0.0]
    cells = np.maximum(-np.diff(at_least), 0.0)[::-1]
    return rng.multinomial(draws, cells / cells.sum(), size=shape)


def at_most(count: int, runs: int, rate: float) -> bool:
    """Whether so many are compatible with a probability of at most `rate`."""
    return bool(binom.sf(count - 1, runs, rate) > FALSE_ALARM)


def statement_fails(claim: QuickClaim, audit: Sequence[tuple[Event, Counts]], share: float) -> bool:
    """Whether a true rate lies outside its limit, for any event: what alpha is the level of."""
    for event, counts in audit:
        p, q = claim.rates(event.threshold)
        if p < lower_limit(counts.hits, counts.draws, share / 2):
            return True
        if q > upper_limit(counts.false_hits, counts.draws, share / 2):
            return True
    return False


def errors(
    claim: QuickClaim, audit: Sequence[tuple[Event, Counts]], delta: Fraction, share: float
) -> tuple[bool, bool]:
    """Whether an audit of a true claim reports a violation, or a lower bound above its ε(δ)."""
    found = [finding(counts, claim, delta, share) for _, counts in audit]
    return (
        any(f.refuted_at is not None for f in found),
        max(f.epsilon_lower for f in found) > claim.epsilon(delta).upper,
    )


SIZES = [400, *(pytest.param(size, marks=pytest.mark.nightly) for size in (3000, 100_000))]


def test_the_share_is_the_one_that_certificates_use(certificate: dict[str, Any]) -> None:
    planned = certificate["derived"]["white_box"]
    alpha = Fraction(certificate["inputs"]["alpha"])
    assert planned["tests"] == TESTS
    assert float(planned["level_per_test"]) == pytest.approx(level(alpha), rel=1e-8)


@pytest.mark.parametrize("draws", SIZES)
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_all_limits_hold_at_once(epsilon: Fraction, delta: Fraction, draws: int) -> None:
    claim, alpha, runs = QuickClaim.of(epsilon, delta), Fraction(1, 5), 2000
    share = level(alpha)
    tests = events(claim, delta, draws, share)
    drawn = list(audits(claim, tests, draws, runs))
    failures = sum(statement_fails(claim, audit, share) for audit in drawn)
    assert at_most(failures, runs, float(alpha / 2)), failures
    # The control: without Bonferroni's correction the level isn't kept, and this test sees it.
    uncorrected = sum(statement_fails(claim, audit, share * TESTS) for audit in drawn)
    assert not at_most(uncorrected, runs, float(alpha / 2)), uncorrected


@pytest.mark.parametrize("draws", SIZES)
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_true_claims_are_seldom_accused(epsilon: Fraction, delta: Fraction, draws: int) -> None:
    claim, alpha, runs = QuickClaim.of(epsilon, delta), Fraction(1, 5), 2000
    share = level(alpha)
    tests = events(claim, delta, draws, share)
    drawn = list(audits(claim, tests, draws, runs))
    made = [errors(claim, audit, delta, share) for audit in drawn]
    violations, bounds = (sum(error[kind] for error in made) for kind in (0, 1))
    assert at_most(violations, runs, float(alpha / 2)), violations
    assert at_most(bounds, runs, float(alpha / 2)), bounds
    # A bound above the claim is a violation, in the same audit.
    assert all(violation or not bound for violation, bound in made)
    # The control: limits that are little more than the observed rates do accuse.
    careless = sum(errors(claim, audit, delta, 0.9)[0] for audit in drawn[:100])
    assert not at_most(careless, 100, float(alpha / 2)), careless


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_lower_bound_comes_near_its_ceiling(epsilon: Fraction, delta: Fraction) -> None:
    """At the size of a published audit the split of alpha costs less than a tenth."""
    claim, alpha, draws = QuickClaim.of(epsilon, delta), Fraction(1, 100), 100_000
    share = level(alpha)
    tests = events(claim, delta, draws, share)
    bounds = [
        max(finding(counts, claim, delta, share).epsilon_lower for _, counts in audit)
        for audit in audits(claim, tests, draws, 30)
    ]
    best = ceiling(claim, delta, draws, float(alpha))
    ratio = float(np.median(bounds)) / best
    assert ratio >= 0.9, f"{ratio:.3f} of the ceiling {best:.3f} at {epsilon=!s}, {delta=!s}"
    assert best < claim.epsilon(delta).lower
