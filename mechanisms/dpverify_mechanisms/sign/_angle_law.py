"""How often the signs of two neighbours differ under a Gaussian projection.

For a pair of records that was chosen before the projection was drawn, the signs of a column differ
with probability θ/π (Goemans and Williamson 1995; Li and Li 2023, equation 3), independently. With
both norms at least m and a distance of at most b ≤ 2m,

    sin(θ/2) ≤ b/(2m):  cos θ = (|u|² + |u′|² − b²)/(2|u||u′|) is least at |u| = |u′| = m.

**It is less than proposition 4.5 counts.** There N₊ bounds the signs that *some* neighbour of u
changes, with probability P₊(β/m, p) ≥ (2/π)·arctan(β/m) each; a privacy claim compares two records
at a time, and (2/π)·arcsin(β/2m) is about half of that for p = 1 and far less for large p.

**What is charged.** Rounding to a grid of step h moves a record by at most h√p/2, which is taken
from m. The realised matrix is round(2²⁰g): that moves a projected value by at most ½‖x‖₁ ≤ ½√p‖x‖₂
where it is N(0, 2⁴⁰‖x‖²), so a record has another sign, or 0, with probability at most

    η = √(2/π)·√p/2²¹ ≥ P[|N(0, 1)| ≤ √p/2²¹],

and a pair differs with probability at most θ/π + 2η.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpverify.enclosure import Enclosure, SquareRoot, enclose, to_arb
from dpverify_mechanisms.projections.independent import GaussianProjection

__all__ = ["differing_probability", "rounding_slack"]


def differing_probability(
    distance: Fraction, least_norm: Fraction, *, p: int, step: Fraction
) -> Enclosure:
    """Bound on the probability that the signs of a column differ; 1 where none is proven.

    Parameters
    ----------
    distance : largest ℓ2 distance of two neighbours on the grid
    least_norm : m, of every record before it is put on the grid
    p, step : number of attributes, and step of the grid
    """
    lost = SquareRoot(step**2 * p / 4)

    def half_sine() -> arb:
        return to_arb(distance) / (2 * (to_arb(least_norm) - to_arb(lost)))

    if least_norm**2 <= lost.radicand or not enclose(half_sine).upper < 1:
        return Enclosure(1.0, 1.0)
    bound = enclose(lambda: 2 * half_sine().asin() / arb.pi() + 2 * _slack(p))
    return Enclosure(min(bound.lower, 1.0), min(bound.upper, 1.0))


def rounding_slack(p: int) -> Enclosure:
    """η: bound on the probability that rounding the matrix changes a record's sign."""
    return enclose(lambda: _slack(p))


def _slack(p: int) -> arb:
    deviation = to_arb(Fraction(GaussianProjection.entry.scale))
    return (2 * p / arb.pi()).sqrt() / (2 * deviation)
