"""Formula (1) of `laplace` where many subsets of the coordinates differ: all of them at once.

With [pᵏ] for a coefficient of a power series in p, G_l(t) is the residue of
e^{pt}·(p + 1)^{m−l−1}(p − 1)^{l−1}/pᵐ at 0, which is [p^{m−1}] of the rest, and for l = 0 also that
at 1, which is 2^{m−1}e^t. So for 0 ≤ ε < ε₀, with A for the subsets and Λ_A < ε₀ for their sums,

    δ(ε) = 1 + 2^{1−m}e^{−T}·[p^{m−1}] e^{pT}·R(p)/(p² − 1),
    R(p) = Σ_A w_A(p) over Λ_A < T,     w_A(p) = (p + 1)^{m−|A|}(p − 1)^{|A|}·e^{−pΛ_A}.

The weight of a subset is the product of its weights in two halves of the coordinates. Hence R is
the sum over the subsets of one half of their weight times that of all subsets of the other half
whose sum is below what is left of T; in rising order these are partial sums, known beforehand. So
2^{m/2} products take the place of 2ᵐ terms. R changes only where T passes the sum of a subset:
which subsets are below is decided by whole numbers, exactly, and a root search computes few R.
Where T is small few subsets matter: only those below the least of ε₀/2, ε₀/4, … that is no less
are made. Subsets of equal sums have one weight together.

The series' coefficients cancel some 4m bits, which are added to the precision.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from flint import arb, arb_poly, ctx, fmpz_poly

from dpverify.accounting.curves._laplace_lattice import Shifts
from dpverify.enclosure import to_arb

__all__ = ["delta_by_halves", "has_halves"]

_MOST_WORK = 500_000  # products of series, times their length: some tenths of a second


def has_halves(shifts: Shifts, epsilon: Fraction = Fraction(0)) -> bool:
    """Whether few enough subsets of both halves matter from ε on."""
    return _is_little_work(shifts, _reach(shifts, epsilon))


def delta_by_halves(shifts: Shifts, epsilon: Fraction) -> arb:
    """Encloses δ(ε) for 0 ≤ ε < ε₀, at the current precision and some bits more."""
    size, t = _size(shifts), (_largest(shifts) - epsilon) / 2
    with ctx.workprec(ctx.prec + 4 * size):
        total = _sums(shifts, _reach(shifts, epsilon), ctx.prec).below(t)
        place = to_arb(t)
        powers = reversed(_exponential(place, size))
        residue = sum((x * y for x, y in zip(total, powers, strict=True)), arb(0))
        return 1 + residue * (-place).exp() / arb(2) ** (size - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Subsets of both halves, by rising sum.

    Attributes
    ----------
    unit : of which every sum is a whole multiple is its reciprocal
    size : m
    places : the sums in each half, in units
    weights : of the first half's subsets
    partial : sums of the first 0, 1, … weights of the second half
    known : R/(p² − 1) by the largest sum that is below
    """

    unit: int
    size: int
    places: tuple[Sequence[int], Sequence[int]]
    weights: Sequence[arb_poly]
    partial: Sequence[arb_poly]
    known: dict[int, list[arb]] = field(default_factory=dict)

    def below(self, t: Fraction) -> list[arb]:
        """The m coefficients of R/(p² − 1)."""
        limit = math.ceil(t * self.unit)
        first, second = self.places
        counts = [bisect_left(second, limit - place) for place in first]
        last = max(p + second[k - 1] for p, k in zip(first, counts, strict=True) if k)
        if last not in self.known:
            terms = (w * self.partial[k] for w, k in zip(self.weights, counts, strict=True) if k)
            series = sum(terms, arb_poly([])).truncate(self.size).coeffs()
            # 1/(p² − 1) = −(1 + p² + p⁴ + …)
            self.known[last] = [-sum(series[k % 2 : k + 1 : 2], arb(0)) for k in range(self.size)]
        return self.known[last]


@lru_cache(maxsize=8)
def _sums(shifts: Shifts, reach: Fraction, precision: int) -> _Sums:
    """Of subsets whose sum is below `reach`, at a precision, the one in force."""
    del precision
    unit, size = _unit(shifts), _size(shifts)
    first, second = (_weighted(half, unit, reach, size) for half in _halves(shifts))
    return _Sums(
        unit=unit,
        size=size,
        places=(list(first), list(second)),
        weights=list(first.values()),
        partial=list(accumulate(second.values(), initial=arb_poly([]))),
    )


def _weighted(half: Shifts, unit: int, reach: Fraction, size: int) -> dict[int, arb_poly]:
    """Sums of subsets, rising, with the weight of all that have it."""
    subsets = {0: arb_poly([1])}
    for shift, n in half:
        factors = []
        for k in range(n + 1):
            signs = math.comb(n, k) * fmpz_poly([1, 1]) ** (n - k) * fmpz_poly([-1, 1]) ** k
            factors.append(signs * arb_poly(_exponential(-k * to_arb(shift), size)))
        grown: dict[int, arb_poly] = {}
        for old, k, new in _moves(subsets, shift, n, unit, reach):
            weight = (subsets[old] * factors[k]).truncate(size)
            grown[new] = grown[new] + weight if new in grown else weight
        subsets = grown
    return dict(sorted(subsets.items()))


@lru_cache(maxsize=64)
def _is_little_work(shifts: Shifts, reach: Fraction) -> bool:
    unit, left = _unit(shifts), _MOST_WORK // _size(shifts)
    for half in _halves(shifts):
        subsets = {0}
        for shift, n in half:
            moves = list(_moves(subsets, shift, n, unit, reach))
            left -= len(moves)
            if left < 0:
                return False
            subsets = {new for _, _, new in moves}
    return True


def _moves(
    subsets: Iterable[int], shift: Fraction, n: int, unit: int, reach: Fraction
) -> Iterator[tuple[int, int, int]]:
    """A subset's sum, how many of n coordinates are taken, and the sum with these."""
    step, limit = int(shift * unit), math.ceil(reach * unit)
    for place in subsets:
        for taken in range(n + 1):
            if place + taken * step < limit:
                yield place, taken, place + taken * step


def _halves(shifts: Shifts) -> tuple[Shifts, Shifts]:
    """Kinds of coordinates parted so that both halves have about as many subsets."""
    halves: tuple[list[tuple[Fraction, int]], list[tuple[Fraction, int]]] = ([], [])
    subsets = [1, 1]
    for pair in sorted(shifts, key=lambda pair: -pair[1]):
        smaller = int(subsets[1] < subsets[0])
        halves[smaller].append(pair)
        subsets[smaller] *= pair[1] + 1
    return tuple(halves[0]), tuple(halves[1])


def _reach(shifts: Shifts, epsilon: Fraction) -> Fraction:
    """ε₀ over the largest power of 2 that leaves it at least T."""
    largest = _largest(shifts)
    return largest / (1 << int(largest / (largest - epsilon)).bit_length())


def _unit(shifts: Shifts) -> int:
    return math.lcm(*(shift.denominator for shift, _ in shifts))


def _size(shifts: Shifts) -> int:
    return sum(n for _, n in shifts)


def _largest(shifts: Shifts) -> Fraction:
    return sum((shift * n for shift, n in shifts), Fraction(0))


def _exponential(x: arb, size: int) -> list[arb]:
    """The first coefficients of e^{px}."""
    return list(accumulate(range(1, size), lambda term, k: term * x / k, initial=arb(1)))
