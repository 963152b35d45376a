"""Laplace noise on a vector: its exact privacy curve, its scale, and its worst neighbours.

Independent noise of density e^(−|x|/b)/2b is added to a vector that moves by v between neighbours.
In units of b the shifts are aᵢ = |vᵢ|/b, ε₀ = Σaᵢ, and δ(ε) is the hockey-stick divergence.

**One formula.** The loss of coordinate i is |x − aᵢ| − |x| = aᵢ − 2Sᵢ, Sᵢ = min(max(x, 0), aᵢ),
whose law is ½e^(−s)νᵢ(ds) with νᵢ = δ₀ + ds on (0, aᵢ) + δ_{aᵢ}. (So the loss is aᵢ with
probability ½, −aᵢ with probability e^(−aᵢ)/2, and has density ¼e^((ℓ−aᵢ)/2) between.) With S = ΣSᵢ
of law 2^(−m)e^(−s)ν(ds), ν the convolution of m measures, L = ε₀ − 2S, and T = (ε₀ − ε)/2,

    δ(ε) = E[(1 − e^(ε−L))₊] = 2^(1−m) e^(−T) ∫ sinh(T − s)₊ ν(ds).                           (1)

In particular δ = 0 exactly from ε₀ on. The Laplace transform of νᵢ is
((p + 1) + (p − 1)e^(−aᵢp))/p and that of sinh is 1/(p² − 1), so the integral is a sum over subsets
of the coordinates, of size l and sum Λ < T, of G_l(T − Λ), where G_l is the original of
(p + 1)^(m−l−1)(p − 1)^(l−1)/p^m:

    G_l(t) = Σ_k c_k t^(m−1−k)/(m−1−k)!     with (p + 1)^(m−l−1)(p − 1)^(l−1) = Σ c_k pᵏ, 1 ≤ l < m,
    G_0(t) = 2^(m−1)e^t − Σ_{k<m} B_k t^(m−1−k)/(m−1−k)!     with B_k = Σ_{i≤k} C(m − 1, i).

(The full subset has Λ = ε₀ > T.) For m = 1: δ(ε) = 1 − e^((ε−a)/2). The sum cancels about 2m
bits, which ball arithmetic spends. Equal shifts are counted by binomials. Where many subsets
differ, `_laplace_halves` adds them up together; where too many do, `_laplace_lattice` encloses δ.

**The worst neighbour.** For noise with a log-concave density p,

    1 − δ_ε(v) = ∫ min(p(x), e^ε p(x − v)) dx.

The integrand is log-concave in (x, v), being the smaller of two log-concave functions, and so is
its marginal (Prékopa): −ln(1 − δ_ε(v)) is convex in v. The law of Laplace noise is invariant under
permutations and changes of sign of the coordinates, hence so is δ_ε(v), whose level sets are convex
besides. Therefore
 - δ_ε rises in every |vᵢ| and along every ray: the largest move of an attribute is the worst one;
 - over an ℓ1 ball of moves, v is a convex combination of the vectors ±(radius · a row of the
   projection), and the supremum is the largest of the rows' curves, as for one attribute;
 - a row that is weakly majorised by another (its k largest sizes never sum to more, for all k) is
   in the convex hull of the other's signed permutations, so its curve is below (`majorant`).
δ_ε itself is not convex: 1 − e^((ε−a)/2) is concave in a.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import ClassVar, Self

import numpy as np
from attrs import field, frozen
from flint import arb, arb_poly, fmpz, fmpz_poly
from numpy.typing import NDArray

from dpverify import numbers
from dpverify.accounting.curves._laplace_halves import delta_by_halves, has_halves
from dpverify.accounting.curves._laplace_lattice import Shifts, lattice_bounds
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import LaplaceLoss
from dpverify.accounting.solve import brentq
from dpverify.accounting.targets import check_delta, check_target
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import (
    Enclosure,
    Real,
    SquareRoot,
    enclose,
    rational,
    short_string,
    to_arb,
)
from dpverify.errors import NumericalError, ParameterError, require
from dpverify.guarantee import PrivacyBound, PrivacyCurve, group_adjacency, to_adjacency
from dpverify.numbers import positive, positive_rational, rationals, to_positive_rational, whole

__all__ = [
    "Laplace",
    "largest_sums",
    "majorant",
    "majorant_of_sums",
    "scale_laplace",
    "scale_laplace_curve",
]

_FEW_SUBSETS = 1_000  # that are added up one by one, for up to some hundred coordinates
_EXACT_WORK = 300_000  # subsets times degree
_POINTS = 1 << 15
_SEARCH_POINTS = 1 << 11
_RATE_POINTS = 1 << 14


def _to_moves(value: Iterable[tuple[Real, int]] | None) -> Shifts | None:
    if value is None:
        return None
    rule = "pairs of a positive size and a multiplicity of at least 1"
    try:
        pairs = [(size, count) for size, count in value]
    except (TypeError, ValueError):
        raise ParameterError("moves", value, rule) from None
    moves = tuple((rational("moves", size), whole("moves", count)) for size, count in pairs)
    require(bool(moves) and all(size > 0 and n >= 1 for size, n in moves), "moves", moves, rule)
    return moves


@frozen(kw_only=True)
class Laplace(PrivacyCurve):
    """Privacy curve of independent Laplace noise on a number, or on a vector.

    Curves of equal moves, in units of the scale, are equal.

    Parameters
    ----------
    scale : b > 0 of the noise, of density exp(-|x|/b)/2b; exact
    sensitivity : ℓ1-sensitivity Δ > 0 of the query, in the same unit; exact
    moves : how a vector moves: pairs of a size > 0 and how many coordinates move by it, of sum Δ
        (`of_row`). By default one coordinate moves by all of Δ, which is the worst case.
    adjacency : whom it protects
    is_bound : whether its move bounds those of all neighbours, and none may make it

    Examples
    --------
    >>> import dpverify as dpv
    >>> dpv.Laplace(scale=2).epsilon_at(delta=0).upper
    0.5
    >>> row = dpv.Laplace.of_row([1, 1, 1, 1], scale=2)
    >>> round(row.epsilon_at(delta=1e-6).upper, 4)
    2.0
    """

    statements: ClassVar[tuple[str, ...]] = ("slides2025.page-10.laplace",)

    scale: Fraction = field(converter=to_positive_rational, eq=False)
    sensitivity: Fraction = field(default=Fraction(1), converter=to_positive_rational, eq=False)
    moves: Shifts | None = field(default=None, converter=_to_moves, eq=False)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)
    is_bound: bool = field(default=False, eq=False, repr=False)
    shifts: Shifts = field(init=False, repr=False)

    @shifts.default
    def _(self) -> Shifts:
        moves = self.moves or ((self.sensitivity, 1),)
        return tuple((size / self.scale, count) for size, count in moves)

    def __attrs_post_init__(self) -> None:
        rule = "at least 2**-1000 (9.3e-302) times the sum of the moves"
        require(self.epsilon_bound <= 2**1000, "scale", short_string(self.scale), rule)
        total = self.epsilon_bound * self.scale
        require(
            total == self.sensitivity, "sensitivity", self.sensitivity, f"the moves' sum, {total}"
        )

    @classmethod
    def of_row(
        cls, row: Iterable[Real], *, scale: Real, adjacency: Adjacency | None = None
    ) -> Self:
        """Curve for a vector that moves by the entries of `row`, under noise of scale `scale`."""
        sizes = Counter(map(abs, rationals("row", row)))
        moves = tuple((size, n) for size, n in sorted(sizes.items()) if size)
        total = sum((size * n for size, n in moves), Fraction(0))
        return cls(scale=scale, sensitivity=total, moves=moves, adjacency=adjacency)

    @classmethod
    def of_shifts(cls, shifts: Shifts) -> Self:
        """Curve for moves in units of the scale: pairs of a shift and how many coordinates."""
        moves = _to_moves(shifts) or ()
        total = sum((shift * n for shift, n in moves), Fraction(0))
        return cls(scale=1, sensitivity=total, moves=moves)

    @property
    def epsilon_bound(self) -> Fraction:
        """ε₀, from which on δ is 0."""
        return sum((shift * count for shift, count in self.shifts), Fraction(0))

    @property
    def is_exact(self) -> bool:
        """Whether δ(ε) is evaluated by formula (1) for every ε; else a lattice encloses some."""
        return _is_exact(self.shifts, Fraction(0))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), of relative width 1e-13 where `is_exact`.

        On the lattice, of 32,768 points, the width is of second order in its step: for normally
        distributed shifts and ε₀ of 5 to 20, ε(1e-6) is enclosed to a relative 7e-7 for 64
        coordinates, 8e-6 for 256 and 1.2e-4 for 1,024. The first call takes seconds there (1.4, 2.5
        and 6 for these), the others none.
        """
        if epsilon >= self.epsilon_bound:
            return Enclosure(0.0, 0.0)
        if _is_exact(self.shifts, epsilon):
            value = enclose(lambda: _delta(self.shifts, epsilon))
            return Enclosure(value.lower, min(value.upper, 1.0))
        return lattice_bounds(self.shifts, _POINTS).delta_at(epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ): ε₀ exactly for δ = 0.

        Each end is proposed by a root search in doubles and moved outwards until δ there, enclosed,
        is on its side of delta. With g = ε₀ − ε, ln δ is almost a line in ln g: δ is at most
        1 − e^{−g} and at least 2⁻ᵐ of it. What is near ε₀ is computed fastest.
        """
        check_delta(delta, least=Fraction(0))
        target, bound = delta, Enclosure.of_exact(self.epsilon_bound)
        if target == 0:
            return bound
        reach, least = bound.upper, max(float(target), 5e-324)
        atoms = math.ldexp(least, min(_size(self.shifts), 1000))
        gap = min(max(atoms, reach / 2**50), reach / 16) or reach  # what is next to 0 has no parts
        while gap < reach and self.delta_at(reach - gap).upper <= target:
            gap = min(2 * gap, reach)
        start = self.delta_at(reach - gap)
        if start.upper <= target:
            return Enclosure(0.0, 0.0)

        def place(x: float) -> float:
            return max(reach - math.exp(-x), 0.0)

        def proposed(end: Callable[[Enclosure], float]) -> float:
            def falling(x: float) -> float:
                return end(self.delta_at(place(x)))

            return place(_root(falling, least, -math.log(gap), -math.log(least)))

        guess = proposed(lambda value: value.upper)
        upper = _outwards(guess, lambda e: self.delta_at(e).upper <= target, upwards=True)
        if gap == reach and start.lower <= target:
            return Enclosure(0.0, upper)
        if not self.is_exact:  # the lower bound has a root of its own
            guess = proposed(lambda value: value.lower)
        lower = _outwards(guess, lambda e: self.delta_at(e).lower >= target, upwards=False)
        return Enclosure(lower, min(upper, bound.upper))

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; with scaled noise, x is drawn from noise·Laplace.

        S = Σ min(max(x, 0), a) is convolved on a lattice by the fast Fourier transform, each value
        split between its neighbours, so that a threshold is off by about one part in 16,384 of ε₀.
        """
        reach = float(self.epsilon_bound)
        if abs(threshold) > reach:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        step = reach / _RATE_POINTS
        transform = np.ones(_RATE_POINTS + 1, dtype=np.complex128)
        for shift, count in self.shifts:
            masses = _masses(float(shift), step, noise)
            transform *= np.fft.rfft(masses, 2 * _RATE_POINTS) ** count
        law = np.fft.irfft(transform)
        below = np.clip(np.cumsum(law), 0.0, 1.0)

        def at_most(s: float) -> float:
            place = math.floor(s / step + 1e-6)
            return 0.0 if place < 0 else float(below[min(place, below.size - 1)])

        # Seen from the other side S is ε₀ − S, so L ≥ t there where S ≥ (ε₀ + t)/2 here.
        least = math.ceil((reach + threshold) / 2 / step - 1e-6) * step
        return at_most((reach - threshold) / 2), 1.0 - at_most(least - step)

    def group(self, size: int) -> PrivacyBound:
        """The noise against so many times the move: exact for one coordinate, else the bound."""
        if len(self.shifts) > 1 or self.shifts[0][1] > 1:
            return super().group(size)
        return Laplace(
            scale=self.scale,
            sensitivity=numbers.count("size", size) * self.sensitivity,
            adjacency=group_adjacency(self.adjacency, size),
            is_bound=self.is_bound,
        )

    def losses(self) -> Losses:
        """The privacy losses of the coordinates, for composition."""
        return tuple((LaplaceLoss(shift=shift), count) for shift, count in self.shifts)


def scale_laplace(epsilon: Real, *, sensitivity: Real | SquareRoot = 1) -> Enclosure:
    """Smallest scale b of Laplace noise that is ε-differentially private: Δ₁/ε.

    Dwork, McSherry, Nissim and Smith 2006, proposition 1; the least one, since δ(ε) > 0 below ε₀.

    Parameters
    ----------
    epsilon : real, > 0, in nats
    sensitivity : real, > 0, ℓ1-sensitivity Δ₁ of the query

    Returns
    -------
    Enclosure, the point Δ₁/ε where that is a double.
    """
    eps = positive_rational("epsilon", epsilon)
    size = positive("sensitivity", sensitivity)
    if isinstance(size, SquareRoot):
        return Enclosure.of_exact(SquareRoot(size.radicand / eps**2))
    return Enclosure.of_exact(size / eps)


def scale_laplace_curve(
    epsilon: Real, delta: Real, *, row: Iterable[Real], times: int = 1
) -> Enclosure:
    """Smallest scale b at which Laplace noise on a vector that moves by `row` is (ε, δ)-private.

    Found on the exact curve, which falls in b since δ rises along rays; for delta = 0 it is Δ₁/ε.

    Parameters
    ----------
    epsilon : real, in [0, 1e100], in nats; positive where delta is 0
    delta : real, 0 or in [1e-300, 1 - 1e-15]
    row : the move of every coordinate
    times : how many such vectors there are, which move together
    """
    eps, target = rational("epsilon", epsilon), rational("delta", delta)
    require(eps >= 0, "epsilon", epsilon, "at least 0")
    require(0 <= target < 1, "delta", delta, "in [0, 1)")
    check_target(eps, target)
    entries = [abs(entry) for entry in rationals("row", row)]
    size = times * sum(entries, Fraction(0))
    require(size > 0, "row", 0, "a nonzero move in at least one coordinate")
    if target == 0:
        return scale_laplace(eps, sensitivity=size)
    # δ ≤ TV ≤ Σaᵢ/2 puts b below Δ₁/2δ; the pure bound puts it at most at Δ₁/ε.
    unit = size / max(eps, target)
    once = Laplace.of_row(entries, scale=unit)
    moves = Laplace.of_shifts(tuple((shift, times * count) for shift, count in once.shifts))

    def at(scale: float) -> Laplace:  # in units of about itself, where doubles are fine
        b = Fraction(scale)
        return Laplace.of_shifts(tuple((shift / b, count) for shift, count in moves.shifts))

    def proposed(scale: float) -> float:
        curve = at(scale)
        if curve.is_exact:
            return curve.delta_at(eps).upper
        return lattice_bounds(curve.shifts, _SEARCH_POINTS).delta_at(eps).upper

    least = most = 1.0
    while proposed(least) <= target:
        least /= 2
    guess = _root(proposed, float(target), least, most)
    if not moves.is_exact:  # the coarse lattice's error at its own root corrects the root
        error = proposed(guess) / at(guess).delta_at(eps).upper
        guess = _root(proposed, float(target) * error, least, most)
    first = 53 if moves.is_exact else 24
    least = _outwards(
        guess, lambda b: at(b).delta_at(eps).lower >= target, upwards=False, first=first
    )
    most = _outwards(
        guess, lambda b: at(b).delta_at(eps).upper <= target, upwards=True, first=first
    )
    ends = [Enclosure.of_exact(Fraction(end) * unit) for end in (least, most)]
    return Enclosure(ends[0].lower, ends[1].upper)


def majorant(rows: NDArray[np.int64]) -> tuple[Fraction, ...]:
    """Smallest falling vector that weakly majorises every row.

    Its curve is therefore above the curves of all rows, for every scale of the noise; where one row
    majorises all others it is that row's own, and so the exact supremum.

    Parameters
    ----------
    rows : integers of shape (rows, coordinates); the sum of the sizes in a row stays below 2⁶²

    Returns
    -------
    Slopes of the least concave majorant of k ↦ max over the rows of the sum of the k largest sizes.
    """
    return majorant_of_sums(largest_sums(rows))


def largest_sums(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Largest sum of the k largest sizes in a row, for every k from 1 on; see `majorant`."""
    sizes = -np.sort(-np.abs(rows), axis=1)
    largest: NDArray[np.int64] = np.cumsum(sizes, axis=1).max(axis=0)
    return largest


def majorant_of_sums(sums: NDArray[np.int64]) -> tuple[Fraction, ...]:
    """`majorant` from the largest sums of all rows; coordinates of no size are left out."""
    sums = sums[: int(np.searchsorted(sums, sums[-1])) + 1]  # it rises no more
    hull = [(0, 0)]
    for point in enumerate(sums.tolist(), start=1):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(_slope(x, y) for x, y in pairwise(hull) for _ in range(y[0] - x[0]))


def _slope(x: tuple[int, int], y: tuple[int, int]) -> Fraction:
    return Fraction(y[1] - x[1], y[0] - x[0])


def _size(shifts: Shifts) -> int:
    return sum(count for _, count in shifts)


def _is_exact(shifts: Shifts, epsilon: Fraction) -> bool:
    """Whether formula (1) is little work at ε and above it."""
    if (subsets := _subset_count(shifts)) <= _FEW_SUBSETS:
        return subsets * _size(shifts) <= _EXACT_WORK
    return has_halves(shifts, epsilon)


def _subset_count(shifts: Shifts) -> int:
    """Subsets of the coordinates, those of equal shifts and sizes counted once."""
    return math.prod(count + 1 for _, count in shifts)


def _delta(shifts: Shifts, epsilon: Fraction) -> arb:
    """Formula (1) at the current precision."""
    if _subset_count(shifts) > _FEW_SUBSETS:
        return delta_by_halves(shifts, epsilon)
    return _one_by_one(shifts, epsilon)


def _one_by_one(shifts: Shifts, epsilon: Fraction) -> arb:
    """Formula (1), a term for each subset."""
    size = _size(shifts)
    t = (sum((shift * n for shift, n in shifts), Fraction(0)) - epsilon) / 2
    scale, place = 2 ** (size - 1) * arb(fmpz(math.factorial(size - 1))), to_arb(t)
    value = scale * place.exp() - arb_poly(_original(size, 0))(place)
    for subset, taken, ways in _subsets(shifts):
        if taken and subset < t:
            value += ways * arb_poly(_original(size, taken))(to_arb(t - subset))
    return value * (-place).exp() / scale


@lru_cache(maxsize=1024)
def _original(size: int, taken: int) -> fmpz_poly:
    """(m − 1)!·G_l; for l = 0 without its exponential and with the sign turned."""
    if taken == 0:
        transform = list(accumulate(math.comb(size - 1, k) for k in range(size)))
    else:
        factors = fmpz_poly([1, 1]) ** (size - taken - 1) * fmpz_poly([-1, 1]) ** (taken - 1)
        transform = [int(c) for c in factors.coeffs()] + [0]
    falling = accumulate(range(size - 1, 0, -1), mul, initial=1)  # (m − 1)!/(m − 1 − k)!
    return fmpz_poly([c * f for c, f in zip(transform, falling, strict=True)][::-1])


@lru_cache(maxsize=8)
def _subsets(shifts: Shifts) -> tuple[tuple[Fraction, int, int], ...]:
    """Sum, size and number of the subsets of coordinates that sum to less than ε₀/2."""
    half = sum((a * n for a, n in shifts), Fraction(0)) / 2
    found: Counter[tuple[Fraction, int]] = Counter({(Fraction(0), 0): 1})
    for shift, count in shifts:
        grown: Counter[tuple[Fraction, int]] = Counter()
        for (subset, taken), ways in found.items():
            for more in range(count + 1):
                if subset + more * shift < half:
                    grown[subset + more * shift, taken + more] += ways * math.comb(count, more)
        found = grown
    return tuple((subset, taken, ways) for (subset, taken), ways in found.items())


def _masses(shift: float, step: float, noise: float) -> NDArray[np.float64]:
    """Law of min(max(x, 0), shift) for x ~ noise·Laplace, split between lattice points."""
    cells = int(shift / step)
    ends = np.append(np.arange(cells + 1) * step, shift)
    inside = -np.diff(np.exp(-ends / noise)) / 2
    masses = np.zeros(cells + 2)
    masses[:-1] += inside / 2
    masses[1:] += inside / 2
    masses[0] += 0.5
    part = shift / step - cells
    masses[cells : cells + 2] += np.array([1 - part, part]) * math.exp(-shift / noise) / 2
    return masses


def _root(falling: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Root of falling = target by Brent's method on the logarithm; a proposal, not a proof."""
    goal = math.log(max(target, 5e-324))

    def excess(x: float) -> float:
        return math.log(max(falling(x), 5e-324)) - goal

    if excess(low) <= 0:
        return low
    return brentq(excess, low, high, xtol=1e-300, rtol=1e-15)


def _outwards(
    guess: float, holds: Callable[[float], bool], *, upwards: bool, first: int = 53
) -> float:
    """Nearest of a few points beyond `guess` at which a proof is found."""
    unit = max(guess, 2.0**-10) if upwards else -guess
    for step in range(first, 1, -2):
        point = guess + unit * 2.0**-step
        if holds(point):
            return point
    raise NumericalError(f"no certified point near {guess!r}")
