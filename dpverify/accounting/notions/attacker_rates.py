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

For a single threshold s is *proposed* as the f-quantile of the loss, in doubles, by the curve's own
planning rates, and the bound at s is then enclosed by what the curve certifies, and so is that at
the largest loss. A poor proposal costs tightness, never correctness.

**From both sides.** With y = e^s, both bounds are h(y) = y·f + H(y), where H(y) = δ(ln y) for y ≥ 1
and 1 − y + y·δ(−ln y) for y < 1 is the supremum over the pairs, which come in both orders, of the
hockey-stick divergences H_y(P ‖ Q): convex in y, and so is h. It begins at h(0) = 1 with a slope of
at least f − 1, and nowhere rises faster than y·f, above which it lies. `convex` encloses the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from dpverify.accounting.convex import Ends, enclose_least
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyBound, PrivacyCurve

__all__ = ["AttackerBound", "attacker_bound", "trade_off"]

_FARTHEST = 700.0  # nats: e^s is a double up to here
_HALVINGS = 100
_PRECISION = 192


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
    rate = _to_rate(false_positive_rate)
    # A lattice law has its kink at a jump of the rate, which lies between the two proposals.
    bounds = [
        AttackerBound(
            false_positive_rate=rate,
            threshold=Fraction(threshold),
            true_positive_rate=_at_most_one(_at(curve, rate, Fraction(threshold))),
        )
        for threshold in (*_proposals(curve, float(rate)), *_largest(curve))
    ]
    return min(bounds, key=lambda bound: bound.true_positive_rate.upper)


def trade_off(curve: PrivacyBound, false_positive_rate: Real) -> Enclosure:
    """Enclose the largest true positive rate that the curve allows at a false positive rate.

    Parameters
    ----------
    curve : as for `attacker_bound`
    false_positive_rate : f in (0, 1)

    Returns
    -------
    Enclosure
        Of 1 − the trade-off function: the least bound over all thresholds, from both sides. Where
        the curve's own is narrow, its relative width is about 1e-12.

    Raises
    ------
    ParameterError
        If the rate is outside its domain.
    """
    rate = _to_rate(false_positive_rate)
    with ctx.workprec(_PRECISION):
        share = to_arb(rate)
        ends = Ends(first=Enclosure(1.0, 1.0), fall=share - 1, rise=share, is_open=True)
    starts = [0.0, *_largest(curve)]
    found = enclose_least(lambda s: _at(curve, rate, Fraction(s)), starts, ends)
    least = Enclosure.of_exact(rate).lower  # what guessing has
    return Enclosure(min(max(found.lower, least), found.upper), found.upper)


def _to_rate(value: Real) -> Fraction:
    rate = rational("false_positive_rate", value)
    require(0 < rate < 1, "false_positive_rate", value, "in (0, 1)")
    return rate


def _at(curve: PrivacyBound, rate: Fraction, threshold: Fraction) -> Enclosure:
    """The bound h at one threshold: it rises with δ, so δ's ends give its own."""

    def bound(delta: float) -> arb:
        ratio, exact = to_arb(threshold).exp(), to_arb(Fraction(delta))
        if threshold >= 0:
            return ratio * to_arb(rate) + exact
        return 1 - ratio * (1 - to_arb(rate) - exact)

    delta = curve.delta_at(abs(threshold))
    low, high = enclose(lambda: bound(delta.lower)), enclose(lambda: bound(delta.upper))
    return Enclosure(low.lower, high.upper)


def _at_most_one(bound: Enclosure) -> Enclosure:
    return Enclosure(min(bound.lower, 1.0), min(bound.upper, 1.0))


def _largest(curve: PrivacyBound) -> tuple[float, ...]:
    """The largest loss, if it is finite, whose chance doubles may not tell from 0."""
    try:
        largest = curve.epsilon_at(0).upper
    except ParameterError:  # the loss is unbounded
        return ()
    return (largest,) if largest <= _FARTHEST else ()


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
