"""What a privacy curve leaves to the strongest attacker, as rates of true and false positives.

An attacker knows everything but which of two neighbouring data sets was released from, and says
"the first" on a set S of outputs. Let t = P[S] be the rate at which that is right where it was the
first, and f = Q[S] the rate at which it is wrong where it was the second. For every ε ≥ 0 the curve
bounds the pair in both orders: S gives t ≤ e^ε f + δ(ε), and the complement of S in the other order
gives 1 − f ≤ e^ε (1 − t) + δ(ε). With the threshold s = ε in the first and s = −ε in the second,

    t ≤ e^s f + δ(s)                    for s ≥ 0,
    t ≤ 1 − e^s (1 − f − δ(−s))         for s < 0,

so the least of these over s bounds every attack, and any single s already does. Where the curve is
the exact one of a single pair of laws, the least is attained: by the likelihood-ratio test with
Q[L ≥ s] = f, by Neyman and Pearson's lemma; it is the trade-off function of Dong, Roth and Su 2022
(doi:10.1111/rssb.12454, proposition 2.13). For the Gaussian curve that is Φ(μ + Φ⁻¹(f)), for
randomized response of one bit min(e^ε f, 1 − e^−ε (1 − f)).

So s is *proposed* as the f-quantile of the loss, in doubles, by the curve's own planning rates, and
the bound at s is then enclosed by what the curve certifies. A poor proposal costs tightness, never
correctness.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve

__all__ = ["AttackerBound", "attacker_bound"]

_FARTHEST = 700.0  # nats: e^s is a double up to here
_HALVINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerBound:
    """A bound on every attack at one false positive rate.

    Attributes
    ----------
    false_positive_rate : f
    threshold : s, in nats, exact
    true_positive_rate : encloses the bound at s; its upper end is what may be promised
    """

    false_positive_rate: Fraction
    threshold: Fraction
    true_positive_rate: Enclosure


def attacker_bound(curve: PrivacyCurve, false_positive_rate: Real) -> AttackerBound:
    """Bound the true positive rate of every attack with this false positive rate.

    Parameters
    ----------
    curve : a claim that holds in both orders of the neighbours, as for every adjacency here
    false_positive_rate : f in (0, 1)

    Returns
    -------
    AttackerBound
        The best of the bounds next to the proposed threshold, and of 1.

    Raises
    ------
    ParameterError
        If the rate is outside its domain.
    """
    rate = rational("false_positive_rate", false_positive_rate)
    require(0 < rate < 1, "false_positive_rate", false_positive_rate, "in (0, 1)")
    # A lattice law has its kink at a jump of the rate, which lies between the two proposals.
    bounds = [
        AttackerBound(
            false_positive_rate=rate,
            threshold=Fraction(threshold),
            true_positive_rate=_at(curve, rate, Fraction(threshold)),
        )
        for threshold in _proposals(curve, float(rate))
    ]
    return min(bounds, key=lambda bound: bound.true_positive_rate.upper)


def _at(curve: PrivacyCurve, rate: Fraction, threshold: Fraction) -> Enclosure:
    """The bound at one threshold: it rises with δ, so δ's ends give its own."""

    def bound(delta: float) -> arb:
        ratio, exact = to_arb(threshold).exp(), to_arb(Fraction(delta))
        if threshold >= 0:
            return ratio * to_arb(rate) + exact
        return 1 - ratio * (1 - to_arb(rate) - exact)

    delta = curve.delta_at(abs(threshold))
    low, high = enclose(lambda: bound(delta.lower)), enclose(lambda: bound(delta.upper))
    return Enclosure(min(low.lower, 1.0), min(high.upper, 1.0))


def _proposals(curve: PrivacyCurve, rate: float) -> tuple[float, float]:
    """Neighbouring thresholds between which Q[L ≥ s] falls below the rate, in doubles."""
    low, high = -_FARTHEST, _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if curve.rates(middle)[1] >= rate:
            low = middle
        else:
            high = middle
    return low, high
