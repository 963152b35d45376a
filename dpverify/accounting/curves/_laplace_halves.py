"""Formula (1) of `laplace` where many subsets of the coordinates differ: all of them at once.

With T = (ε₀ − ε)/2, A for the subsets of the m coordinates and Λ_A for their sums, the originals in
(1) are sums of residues, at every pole of the function of p, and so for every real ε

    f(ε) = E[(1 − e^{ε−L})₊] = Σ residues of 2^{1−m}e^{(p−1)T}·R(p)/(p^m(p² − 1)) at 0, 1 and −1,
    R(p) = Σ_A w_A(p) over Λ_A < T,     w_A(p) = (p + 1)^{m−|A|}(p − 1)^{|A|}·e^{−pΛ_A}.

That at 0 is a coefficient of a product of power series; those at 1 and −1 are 2^{−m}R(1) and
−(−2)^{−m}e^{−2T}R(−1).

**Discrete losses.** Let an independent loss be a − 2d with probability q_d, d ≥ 0. Conditioned on
it, T is that of the largest loss, ε₀ + a, less d. So R gets the sum over all pairs with Λ_A + d < T
of w_A(p)·q_d·e^{(1−p)d}, and nothing else changes. It has to be known exactly whether Λ_A + d < T:
d is rounded up to a multiple of 2⁻ᴮ, so that f falls, by no more than if T were as much smaller.

**Halves.** The weight of a subset is the product of its weights in two halves of the coordinates.
Hence R is the sum over the subsets of one half of their weight times that of all subsets of the
other half whose sum is below what is left of T; in rising order these are partial sums, known
beforehand. So 2^{m/2} products take the place of 2ᵐ terms. R changes only where T passes a sum:
which sums are below is decided by whole numbers, exactly, and a root search computes few R. Where T
is small few subsets matter: of Laplace losses alone, only those below the least of ε₀/2, ε₀/4, …
that is no less are made. Subsets of equal sums have one weight together.

The series' coefficients cancel some 4m bits, which are added to the precision.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, islice
from typing import TypeVar

from flint import arb, arb_poly, ctx, fmpz_poly

from dpverify.accounting.curves._laplace_lattice import Shifts
from dpverify.enclosure import rational_of, to_arb

__all__ = ["LaplaceEnd", "LaplaceSums", "delta_by_halves", "has_halves"]

_T = TypeVar("_T")

_MOST_WORK = 500_000  # of products of series: some tenths of a second
_TERMS = 64  # of a series, which make about as many digits as an answer has


def has_halves(shifts: Shifts, epsilon: Fraction = Fraction(0), others: Sequence[int] = ()) -> bool:
    """Whether few enough subsets of both halves matter from ε on.

    Parameters
    ----------
    others : how many values discrete losses have; next to them all subsets are made
    """
    if not others:
        return _is_little_work(shifts, _reach(shifts, epsilon))
    counts = [*(n + 1 for _, n in shifts), *others]
    products = sum(map(math.prod, _halves(counts, counts)))
    return 2 * products * _product_work(shifts) <= _MOST_WORK


def delta_by_halves(shifts: Shifts, epsilon: Fraction) -> arb:
    """Encloses δ(ε) for 0 ≤ ε < ε₀, at the current precision and some bits more."""
    with ctx.workprec(ctx.prec + 4 * _size(shifts)):
        return _value(shifts, (_largest(shifts) - epsilon) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEnd:
    """f(ε) of Laplace losses alone, next to the largest one, at the current precision."""

    shifts: Shifts

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε), which falls in ε."""
        with ctx.workprec(ctx.prec + 4 * _size(self.shifts)):
            t = (to_arb(_largest(self.shifts)) - epsilon) / 2
            low, high = (_value(self.shifts, rational_of(end)) for end in (t.lower(), t.upper()))
            return low.union(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaplaceSums:
    """f(ε) of Laplace losses and discrete ones.

    Attributes
    ----------
    sums : of the rounded losses, at some precision
    precision : of them
    largest : the largest loss
    rounded : how much d was rounded up at most, in all
    """

    sums: _Sums
    precision: int
    largest: arb
    rounded: arb

    @classmethod
    def of(cls, shifts: Shifts, atoms: Sequence[Sequence[tuple[arb, arb]]]) -> LaplaceSums:
        """At the current precision and some bits more.

        Parameters
        ----------
        atoms : weights and places of each discrete loss
        """
        size = _size(shifts)
        with ctx.workprec(ctx.prec + 4 * size):
            kinds = [_laplace_kind(shift, n, n, size) for shift, n in shifts]
            largest, rounded = to_arb(_largest(shifts)), arb(0)
            for weighted in atoms:
                most = reduce(arb.max, (place for _, place in weighted))
                kind, off = _discrete_kind(weighted, most, size)
                kinds.append(kind)
                largest, rounded = largest + most, rounded + off
            return cls(
                sums=_Sums.of(kinds, size), precision=ctx.prec, largest=largest, rounded=rounded
            )

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        with ctx.workprec(self.precision):
            t = (self.largest - epsilon) / 2
            ends = t.lower(), (t + self.rounded).upper()
            low, high = (self.sums.value(rational_of(end)) for end in ends)
            return low.union(high)


@dataclass(frozen=True, slots=True)
class _Weight:
    """A function of p: the first coefficients of its power series, and its values at 1 and −1."""

    series: arb_poly
    at_one: arb
    at_minus_one: arb

    @classmethod
    def zero(cls) -> _Weight:
        return cls(arb_poly([]), arb(0), arb(0))

    def __add__(self, other: _Weight) -> _Weight:
        return _Weight(
            self.series + other.series,
            self.at_one + other.at_one,
            self.at_minus_one + other.at_minus_one,
        )

    def times(self, other: _Weight, size: int) -> _Weight:
        return _Weight(
            (self.series * other.series).truncate(size),
            self.at_one * other.at_one,
            self.at_minus_one * other.at_minus_one,
        )


_Kind = list[tuple[Fraction, _Weight]]
"""Coordinates of one shift, or one discrete loss: sums, and the weight of each."""


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
    known : R by the largest sum that is below, its series over p² − 1
    """

    unit: int
    size: int
    places: tuple[Sequence[int], Sequence[int]]
    weights: Sequence[_Weight]
    partial: Sequence[_Weight]
    known: dict[int, tuple[Sequence[arb], arb, arb]] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Sequence[_Kind], size: int, reach: Fraction | None = None) -> _Sums:
        """Of subsets whose sum is below `reach`."""
        unit = math.lcm(*(place.denominator for kind in kinds for place, _ in kind))
        limit = math.inf if reach is None else math.ceil(reach * unit)
        halves = _halves(kinds, [len(kind) for kind in kinds])
        first, second = (_weighted(half, unit, limit, size) for half in halves)
        return cls(
            unit=unit,
            size=size,
            places=(list(first), list(second)),
            weights=list(first.values()),
            partial=list(accumulate(second.values(), initial=_Weight.zero())),
        )

    def value(self, t: Fraction) -> arb:
        """The three residues' sum."""
        if t <= 0:
            return arb(0)
        total, at_one, at_minus_one = self._below(t)
        place, scale = to_arb(t), arb(2) ** self.size
        powers = reversed(_exponential(place, self.size))
        residue = sum((x * y for x, y in zip(total, powers, strict=True)), arb(0))
        ends = at_one - (-1) ** self.size * (-2 * place).exp() * at_minus_one
        return (2 * (-place).exp() * residue + ends) / scale

    def _below(self, t: Fraction) -> tuple[Sequence[arb], arb, arb]:
        limit = math.ceil(t * self.unit)
        first, second = self.places
        counts = [bisect_left(second, limit - place) for place in first]
        last = max(p + second[k - 1] for p, k in zip(first, counts, strict=True) if k)
        if last not in self.known:
            pairs = [(w, self.partial[k]) for w, k in zip(self.weights, counts, strict=True) if k]
            series = sum((w.series * v.series for w, v in pairs), arb_poly([]))
            found = series.truncate(self.size).coeffs()
            self.known[last] = (
                # 1/(p² − 1) = −(1 + p² + p⁴ + …)
                [-sum(found[k % 2 : k + 1 : 2], arb(0)) for k in range(self.size)],
                sum((w.at_one * v.at_one for w, v in pairs), arb(0)),
                sum((w.at_minus_one * v.at_minus_one for w, v in pairs), arb(0)),
            )
        return self.known[last]


def _value(shifts: Shifts, t: Fraction) -> arb:
    """At the current precision, for T = t."""
    if t <= 0:
        return arb(0)
    reach = _reach(shifts, _largest(shifts) - 2 * t)
    return _laplace_sums(shifts, reach, ctx.prec).value(t)


@lru_cache(maxsize=8)
def _laplace_sums(shifts: Shifts, reach: Fraction, precision: int) -> _Sums:
    """Of Laplace losses alone, at a precision, the one in force."""
    del precision
    size = _size(shifts)
    kinds = [_laplace_kind(shift, _steps(shift, n, reach), n, size) for shift, n in shifts]
    return _Sums.of(kinds, size, reach)


def _steps(shift: Fraction, n: int, reach: Fraction) -> int:
    """How many of n coordinates have a sum below `reach`, at most."""
    return min(n, max(math.ceil(reach / shift) - 1, 0))


def _laplace_kind(shift: Fraction, most: int, n: int, size: int) -> _Kind:
    """Subsets of up to `most` of n coordinates, by their size."""
    kind = []
    for k in range(most + 1):
        signs = math.comb(n, k) * fmpz_poly([1, 1]) ** (n - k) * fmpz_poly([-1, 1]) ** k
        place = k * to_arb(shift)
        weight = _Weight(
            (signs * arb_poly(_exponential(-place, size))).truncate(size),
            arb(signs(1)) * (-place).exp(),
            arb(signs(-1)) * place.exp(),
        )
        kind.append((k * shift, weight))
    return kind


def _discrete_kind(atoms: Sequence[tuple[arb, arb]], most: arb, size: int) -> tuple[_Kind, arb]:
    """Every d, rounded up, and how far at most."""
    kind, rounded = [], arb(0)
    for weight, place in atoms:
        exact = (most - place) / 2
        units = (exact * arb(2) ** ctx.prec).upper().ceil().unique_fmpz()
        d = Fraction(int(units), 1 << ctx.prec)
        rounded = rounded.max((to_arb(d) - exact).upper())
        grown = to_arb(d)
        series = weight * grown.exp() * arb_poly(_exponential(-grown, size))
        kind.append((d, _Weight(series, weight, weight * (2 * grown).exp())))
    return kind, rounded


def _weighted(half: Sequence[_Kind], unit: int, limit: float, size: int) -> dict[int, _Weight]:
    """Sums of subsets, rising, with the weight of all that have it."""
    subsets = {0: _Weight(arb_poly([1]), arb(1), arb(1))}
    for kind in half:
        steps = [int(place * unit) for place, _ in kind]
        grown: dict[int, _Weight] = {}
        for old, k, new in _moves(subsets, steps, limit):
            weight = subsets[old].times(kind[k][1], size)
            grown[new] = grown[new] + weight if new in grown else weight
        subsets = grown
    return dict(sorted(subsets.items()))


@lru_cache(maxsize=64)
def _is_little_work(shifts: Shifts, reach: Fraction) -> bool:
    unit = math.lcm(*(shift.denominator for shift, _ in shifts))
    left, limit = _MOST_WORK // _product_work(shifts), math.ceil(reach * unit)
    for half in _halves(shifts, [n + 1 for _, n in shifts]):
        subsets = {0}
        for shift, n in half:
            step = int(shift * unit)
            most = _steps(shift, n, reach)
            if most >= left:
                return False
            steps = range(0, (most + 1) * step, step)
            moves = list(islice(_moves(subsets, steps, limit), left + 1))
            left -= len(moves)
            if left < 0:
                return False
            subsets = {new for _, _, new in moves}
    return True


def _moves(
    subsets: Iterable[int], steps: Sequence[int], limit: float
) -> Iterator[tuple[int, int, int]]:
    """A sum, the number of a step, and the sum after it."""
    for place in subsets:
        for k, step in enumerate(steps):
            if place + step < limit:
                yield place, k, place + step


def _halves(kinds: Sequence[_T], counts: Sequence[int]) -> tuple[list[_T], list[_T]]:
    """Kinds of so many subsets each, parted so that both halves have about as many."""
    halves: tuple[list[_T], list[_T]] = ([], [])
    subsets = [1, 1]
    for k in sorted(range(len(kinds)), key=lambda k: -counts[k]):
        smaller = int(subsets[1] < subsets[0])
        halves[smaller].append(kinds[k])
        subsets[smaller] *= counts[k]
    return halves


def _reach(shifts: Shifts, epsilon: Fraction) -> Fraction:
    """ε₀ over the largest power of 2 that leaves it at least T."""
    largest = _largest(shifts)
    if epsilon >= largest:  # no subset is below T
        return Fraction(0)
    return largest / (1 << int(largest / (largest - epsilon)).bit_length())


def _product_work(shifts: Shifts) -> int:
    """That of a product of two series: their terms, times their digits, which grow with them."""
    size = _size(shifts)
    return size * (1 + size // _TERMS)


def _size(shifts: Shifts) -> int:
    return sum(n for _, n in shifts)


def _largest(shifts: Shifts) -> Fraction:
    return sum((shift * n for shift, n in shifts), Fraction(0))


def _exponential(x: arb, size: int) -> list[arb]:
    """The first coefficients of e^{px}."""
    return list(accumulate(range(1, size), lambda term, k: term * x / k, initial=arb(1)))
