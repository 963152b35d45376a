"""Lattice bounds on the privacy curve of independent Laplace noise, for shifts of any number.

Notation as in `laplace`: coordinate i moves by aᵢ noise scales, its privacy loss is aᵢ − 2Sᵢ with
Sᵢ in [0, aᵢ], and the law of Sᵢ has mass ½e^(−s)·νᵢ(ds) under the first neighbour P and
½e^(s−aᵢ)·νᵢ(ds) under the second Q, where νᵢ = δ₀ + ds + δ_{aᵢ}. The law of S = ΣSᵢ is the
convolution of measures; here each factor is replaced by one on the lattice hℤ, so that convolving
is multiplying polynomials with ball coefficients, which proves its own round-off.

**From above.** The hockey-stick divergence is E_Q[(R − e^ε)₊] with R = ΠRᵢ the likelihood ratio, a
convex function of each Rᵢ. So it can only rise if the mass at s in [t, t + h] is spread over t and
t + h keeping its mass under P and under Q (E_Q[Rᵢ′ | Rᵢ] = Rᵢ; Doroshenko et al. 2022,
arXiv:2207.04380v1, connect the dots). A unit of ν goes to sinh(t + h − s)/sinh h at t and
sinh(s − t)/sinh h at t + h. The largest loss, s = 0, stays where it is, hence so does ε₀.

**From below.** Merging outcomes is post-processing, so it can only lower the divergence. If aᵢ is a
whole number of 2h, the cells [2kh, (2k + 2)h] of ν = ds fill (0, aᵢ), and each merges exactly into
its midpoint, with mass 2 sinh h (as both e^s and e^(−s) show); the atoms are on the lattice. For
shifts a that are not, let b be a rounded to such multiples, up and down so that Σbᵢ = Σaᵢ.
−ln(1 − δ) is convex in the shifts (`laplace`) and b is midway between a and 2b − a, hence

    1 − δ(a) ≤ (1 − δ(b))²/(1 − δ(2b − a)),

where δ(b) is enclosed from below and δ(2b − a) from above.

Both errors are of second order in h, but where ε lies within a few h of a loss that has positive
probability (all coordinates at their atoms): δ has a kink there, and the error is that probability
times h. Masses are balls, so the convolution's round-off is in the ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul

from flint import arb, arb_poly, ctx

from dpverify.enclosure import Enclosure, to_arb

__all__ = ["LatticeBounds", "Shifts", "lattice_bounds"]

_PRECISION = 160  # absolute errors of about 2⁻¹⁴⁰, so that δ down to 1e-30 loses no digit

Shifts = tuple[tuple[Fraction, int], ...]
"""Pairs of a shift > 0, in noise scales, and the number of coordinates that move by it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """Law of a privacy loss with the values reach − 2k·step, k = 0, 1, …, as far as it is ≥ 0.

    Attributes
    ----------
    reach : the largest loss
    step : h
    own, other : P[S ≤ k·step] and Q[S ≤ k·step]
    """

    reach: Fraction
    step: Fraction
    own: tuple[arb, ...]
    other: tuple[arb, ...]

    def delta_at(self, epsilon: Fraction) -> arb:
        """Hockey-stick divergence at ε ≥ 0: the sum over the losses above ε."""
        last = (self.reach - epsilon) // (2 * self.step)
        if last < 0:
            return arb(0)
        return self.own[last] - to_arb(epsilon).exp() * self.other[last]


@dataclass(frozen=True, slots=True, eq=False)
class LatticeBounds:
    """Losses that bound δ: `above` that of the shifts a, `middle` below b, `far` above 2b − a."""

    above: _Loss
    middle: _Loss
    far: _Loss

    def delta_at(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε) for ε ≥ 0."""
        with ctx.workprec(_PRECISION):
            upper = self.above.delta_at(epsilon)
            lower = 1 - (1 - self.middle.delta_at(epsilon)) ** 2 / (1 - self.far.delta_at(epsilon))
            ends = (Enclosure.of_ball(lower).lower, Enclosure.of_ball(upper).upper)
        return Enclosure(max(ends[0], 0.0), min(max(ends[1], 0.0), 1.0))


@lru_cache(maxsize=8)
def lattice_bounds(shifts: Shifts, points: int) -> LatticeBounds:
    """Lattice bounds with `points` lattice points between the largest loss and 0."""
    step = sum((shift * count for shift, count in shifts), Fraction(0)) / (2 * points)
    rounded, far = _rounded(shifts, step)
    with ctx.workprec(_PRECISION):
        return LatticeBounds(
            _convolved(shifts, step, _spread),
            _convolved(rounded, step, _merged),
            _convolved(far, step, _spread),
        )


def _rounded(shifts: Shifts, step: Fraction) -> tuple[Shifts, Shifts]:
    """Shifts b, rounded to multiples of 2h with the same sum, and |2b − a|."""
    parts = sorted(((shift % (2 * step), shift, count) for shift, count in shifts), reverse=True)
    upwards = sum((rest * count for rest, _, count in parts), Fraction(0)) / (2 * step)
    middle: Counter[Fraction] = Counter()
    far: Counter[Fraction] = Counter()
    for rest, shift, count in parts:  # the largest remainders go up
        raised = min(int(upwards), count)
        upwards -= raised
        for near, how_many in ((shift - rest + 2 * step, raised), (shift - rest, count - raised)):
            middle[near] += how_many
            far[abs(2 * near - shift)] += how_many
    return _positive(middle), _positive(far)


def _positive(counts: Counter[Fraction]) -> Shifts:
    return tuple((shift, count) for shift, count in sorted(counts.items()) if shift and count)


def _convolved(
    shifts: Shifts, step: Fraction, masses: Callable[[Fraction, Fraction], list[arb]]
) -> _Loss:
    """Loss of all coordinates, each with its ν on the lattice as `masses` gives it."""
    reach = sum((shift * count for shift, count in shifts), Fraction(0))
    length = int(reach // (2 * step)) + 1
    longest = min(length, max(int(shift // step) for shift, _ in shifts) + 2)
    decay = list(accumulate([(-to_arb(step)).exp()] * longest, mul, initial=arb(1)))
    factors = [
        _power(
            arb_poly([x * y / 2 for x, y in zip(masses(shift, step), decay, strict=False)]),
            count,
            length,
        )
        for shift, count in shifts
    ]
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        odd = factors[-1:] if len(factors) % 2 else []
        factors = [(x * y).truncate(length) for x, y in pairs] + odd
    own = factors[0].truncate(length).coeffs()
    own += [arb(0)] * (length - len(own))
    growth = (2 * to_arb(step)).exp()
    weights = accumulate([growth] * (length - 1), mul, initial=to_arb(-reach).exp())
    other = [mass * weight for mass, weight in zip(own, weights, strict=True)]
    return _Loss(reach, step, tuple(accumulate(own)), tuple(accumulate(other)))


def _spread(shift: Fraction, step: Fraction) -> list[arb]:
    """ν of one coordinate, spread over the lattice points 0, h, 2h and so on."""
    cells = int(shift // step)
    h, rest = to_arb(step), to_arb(shift - cells * step)
    edge = (h / 2).tanh()  # what a full cell gives to each of its ends
    masses = [2 * edge] * (cells + 2)
    masses[0] = arb(1) + (edge if cells else 0)
    masses[cells] = masses[cells] - edge if cells else masses[0]
    gap = h - rest
    masses[cells] += (h.cosh() - gap.cosh() + gap.sinh()) / h.sinh()
    masses[cells + 1] = (rest.cosh() - 1 + rest.sinh()) / h.sinh()
    return masses


def _merged(shift: Fraction, step: Fraction) -> list[arb]:
    """ν of one coordinate whose shift is a multiple of 2h, merged into 0, h, 3h, …, shift."""
    cells = int(shift / (2 * step))
    masses = [arb(0)] * (2 * cells + 1)
    masses[1::2] = [2 * to_arb(step).sinh()] * cells
    masses[0] = masses[-1] = arb(1)
    return masses


def _power(base: arb_poly, exponent: int, length: int) -> arb_poly:
    """Product of `exponent` ≥ 1 equal factors, cut to `length` coefficients, by squaring."""
    if exponent == 1:
        return base
    half = _power(base, exponent // 2, length)
    square = (half * half).truncate(length)
    return (square * base).truncate(length) if exponent % 2 else square
