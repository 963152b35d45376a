"""How many positions of two neighbours differ, as two papers bound it: kept to be shown, not used.

A loss per position times such a number is a claim only if the number is a bound. Each function
decides that exactly and refuses where it isn't one; `max_differing` is the least that always is.
"""

from __future__ import annotations

from fractions import Fraction

from flint import acb, arb

from dpverify.accounting.curves.randomized_response import max_differing
from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import ParameterError, require

__all__ = ["differing_hashes", "differing_signs"]


def differing_hashes(positions: int, differ: Fraction, delta: Fraction) -> Enclosure:
    """K·p + √(3 ln(1/δ)·K·p): Aumüller et al. 2020, lemma 1.

    Chernoff's bound in that form needs K·p ≥ 3 ln(1/δ), which the paper leaves out. What decides
    here is the exact binomial tail, not that condition.

    Parameters
    ----------
    positions : K
    differ : p, probability that a hash differs
    delta : probability with which more may differ, in (0, 1)

    Raises
    ------
    ParameterError
        If more differ with a probability above delta.
    """
    require(0 < delta < 1, "delta", delta, "in (0, 1)")
    require(0 < differ <= 1, "differ", differ, "in (0, 1]")
    mean = positions * differ
    bound = enclose(lambda: to_arb(mean) + (-3 * to_arb(mean) * to_arb(delta).log()).sqrt())
    needed = max_differing(positions, differ, delta)
    if needed > bound.upper:
        raise ParameterError(
            "delta",
            delta,
            f"one for which lemma 1 holds: it allows {bound.upper:.6g} of {positions} hashes to "
            f"differ, and {needed} are needed",
            "Chernoff's bound is used outside its range there; the exact tail isn't.",
        )
    return bound


def differing_signs(positions: int, attributes: int, ratio: Fraction, delta: Fraction) -> Enclosure:
    """Fk + ½(ln(1/δ) + √(ln²(1/δ) + 8Fk·ln(1/δ))): Li and Li 2023, proposition 4.5.

    F is the integral (18), ∫ 2p(2Φ(t) − 1)^{p−1}(2Φ(rt) − 1)φ(t) dt over t > 0: the probability
    that the largest of p independent |N(0, r²)| exceeds an independent |N(0, 1)|. The paper takes
    it for a bound where the latter is their combination, x = w·u. For u = (1, 1)/√2 this is
    (2/π)(arctan(√2·r − 1) + π/4), from the angle of (w₁, w₂), and where this is above F the
    inequality is false. Elsewhere it isn't proven here: no claim rests on it.

    Parameters
    ----------
    positions : k, signs
    attributes : p ≥ 2
    ratio : r = β/m in (0, 1]
    delta : in (0, 1)

    Raises
    ------
    ParameterError
        If (18) is false there.
    """
    require(0 < delta < 1, "delta", delta, "in (0, 1)")
    require(0 < ratio <= 1, "ratio", ratio, "in (0, 1]")
    require(attributes >= 2, "attributes", attributes, "at least 2")

    def integral() -> arb:
        r, reach = to_arb(ratio), 40

        def density(t: acb, _: bool) -> acb:
            # 2Φ(t) − 1 = erf(t/√2)
            most = (t / acb(2).sqrt()).erf() ** (attributes - 1)
            other = (r * t / acb(2).sqrt()).erf()
            return 2 * attributes * most * other * (-t * t / 2).exp() / acb(2 * arb.pi()).sqrt()

        found: arb = acb.integral(density, acb(0), acb(reach)).real
        return found

    def along() -> arb:
        return 2 / arb.pi() * ((arb(2).sqrt() * to_arb(ratio) - 1).atan() + arb.pi() / 4)

    share = enclose(integral, width=1e-10)
    if enclose(along).lower > share.upper:
        raise ParameterError(
            "ratio",
            ratio,
            f"smaller: inequality (18) allows a sign to change with probability {share.upper:.6g}, "
            f"and for u = (1, 1)/√2 it is {enclose(along).lower:.6g}",
            "The exact probability for a pair of records needs no such inequality.",
        )

    def count() -> arb:
        mean, log = positions * integral(), -to_arb(delta).log()
        return mean + (log + (log * log + 8 * mean * log).sqrt()) / 2

    found = enclose(count, width=1e-10)
    return Enclosure(min(found.lower, float(positions)), min(found.upper, float(positions)))
