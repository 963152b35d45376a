"""What the counts of one event prove of a claimed privacy curve, at one level for all of it.

An event of the output has probability p on its own side and q on the other; of n draws each it
happened x and y times. A claim g is a set of lines p ≤ g(q), which `two_sample_binomial` tests:
with R the outcomes at least as extreme as the one seen and C an interval that misses q with
probability at most γ, it is rejected where P[R] ≤ α′ − γ at (g(q), q) for all q in C. Neither R nor
C depends on the claim: R comes from an ordering of the outcomes by a lower limit of ln((p − δ′)/q),
with a δ′ that was fixed with the event. It suits the line p ≤ e^ε q + δ′ best, whose points have
one such ratio: δ′ = δ for the lower bound on ε at δ, δ′ = δ(t) for the curve at the event {L ≥ t},
which touches its boundary there.

**One level for everything.** Let V be the outcomes with q outside C or with P[R] ≤ α′ − γ at the
true (p, q). The probability of V is at most γ + (α′ − γ) = α′, since the regions R are nested. If a
true claim is rejected then, with q in C and p ≤ g(q), P[R] at (p, q) is at most P[R] at (g(q), q),
for it rises with p; so the outcome is in V. All false rejections, of whatever claims and however
many, lie in this one event. Hence with probability at least 1 − α′ at once

- the claimed curve isn't refuted if it is true, by any number of its points together: their lines
  are one claim, whose null is the intersection of theirs;
- ε at the claimed δ, and at any other, isn't below its lower bound, the ε's rejected.

A bound above the curve's ε(δ) has rejected what the curve implies: it is a refutation as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.statistics.two_sample_binomial import Counts, Line, claim_lines
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve, claimed_epsilon

__all__ = ["POINTS", "Judgement", "curve_lines", "curve_points", "floor", "judge", "refuted_part"]

POINTS = 64
"""Points of the claimed curve that are tested, evenly spaced from ε = 0, beside the claimed one."""

_FARTHEST = Fraction(1, 10**9)  # δ below which no number of draws sees anything of a curve
_LARGEST = 50.0  # nats; a curve is not tested beyond, where no draws reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one event's counts prove at its share of the level.

    Attributes
    ----------
    epsilon_lower : lower bound on the mechanism's epsilon at the claimed delta
    refuted_at : None, or where the claimed curve is refuted the ε of its point that allows the
        fewest hits at the counted share of false hits: the place, of a statement about the whole
    """

    epsilon_lower: float
    refuted_at: float | None


def refuted_part(proven: Judgement, curve: PrivacyCurve, delta: Fraction) -> str:
    """What of the claim the counts refute, in words: its ε at δ, or a curve somewhere else."""
    claimed = claimed_epsilon(curve, delta)
    elsewhere = proven.refuted_at is not None and proven.epsilon_lower <= claimed
    if elsewhere and not isinstance(curve, ApproxDP):  # which is nothing but that ε and δ
        return f"the claimed curve near ε = {proven.refuted_at:.4g}"
    return f"the claim of ε = {claimed:.6g} at δ = {float(delta):g}"


def curve_lines(curve: PrivacyCurve, delta: Fraction, *, points: int = POINTS) -> tuple[Line, ...]:
    """What the claimed curve allows, by so many points of it and the claimed one.

    They go from ε = 0 to where δ(ε) falls no further or is too small for any draws to show, each
    with the upper end of δ(ε).
    """
    return tuple(
        line for eps, d in curve_points(curve, delta, points) for line in claim_lines(eps, d)
    )


def floor(curve: PrivacyCurve) -> Fraction:
    """δ below which the curve doesn't fall, as far as draws can reach."""
    return Fraction(curve.delta_at(_LARGEST).upper)


@lru_cache(maxsize=4096)
def judge(
    counts: Counts,
    curve: PrivacyCurve,
    delta: Fraction,
    level: float,
    *,
    ordering: float | None = None,
    caution: float | None = None,
) -> Judgement:
    """What the counts prove, simultaneously at the given level.

    Parameters
    ----------
    counts : of an event chosen beforehand
    curve, delta : the claim, and where ε is bounded below
    level : of everything
    ordering, caution : δ′ and z of the ordering, fixed with the event; delta and the level's z if
        not given

    """
    claimed = Enclosure.of_exact(delta).upper
    if ordering is None or ordering == claimed:
        ordering = claimed
        bound = counts.epsilon_lower(delta=claimed, alpha=level, caution=caution)
    else:
        bound = _epsilon_lower(counts, claimed, level, ordering, caution)
    lines = curve_lines(curve, delta)
    refuted = bound > claimed_epsilon(curve, delta) or counts.refutes(
        lines, alpha=level, delta=ordering, caution=caution
    )
    return Judgement(
        epsilon_lower=bound, refuted_at=_place(counts, curve, delta) if refuted else None
    )


def _epsilon_lower(
    counts: Counts, delta: float, level: float, ordering: float, caution: float | None
) -> float:
    """An ε that is rejected at delta, next to the largest, or 0; by another ordering than its own.

    Halving in place of `Counts.epsilon_lower`, up to the ratio of the counts themselves.
    """
    least, most = counts.false_hits + 1, counts.hits + 1
    own, other = most / least, (counts.draws + 2 - least) / (counts.draws + 2 - most)
    low, high = 0.0, math.log(max(own, other))
    rejects = partial(counts.refutes, alpha=level, delta=ordering, caution=caution)
    if not rejects(claim_lines(low, delta)):
        return low  # as most events at a small level
    while high - low > 1e-3 * (1 + low):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(claim_lines(middle, delta)) else (low, middle)
    return low


@lru_cache(maxsize=64)
def curve_points(
    curve: PrivacyCurve, delta: Fraction, points: int = POINTS
) -> tuple[tuple[float, float], ...]:
    """So many ε of the claimed curve and the claimed one, each with the upper end of δ(ε)."""
    claimed = _claimed(curve, delta)
    last = max(claimed, _claimed(curve, min(max(floor(curve), _FARTHEST), delta)))
    grid = {claimed, *np.linspace(0.0, last, points).tolist()}
    return tuple((eps, curve.delta_at(eps).upper) for eps in sorted(grid))


def _place(counts: Counts, curve: PrivacyCurve, delta: Fraction) -> float:
    share = counts.false_hits / counts.false_draws

    def allowed(point: tuple[float, float]) -> float:
        return min(slope * share + base for slope, base in claim_lines(*point))

    return min(curve_points(curve, delta), key=allowed)[0]


def _claimed(curve: PrivacyCurve, delta: Fraction) -> float:
    """ε(δ) of the claim, rounded up, as far as draws can reach."""
    return min(claimed_epsilon(curve, delta), _LARGEST)
