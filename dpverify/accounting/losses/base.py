"""What a privacy loss is: the law of L = ln p(X)/q(X), X ~ p, for one pair of output laws p and q.

A law is known by its moment generating function M(s) = E[e^{sL}; L < ∞] = ∫ p^{1+s} q^{−s}, and by
`infinity_mass` = P[L = ∞], the mass of p where q is 0. Independent losses add, so M multiplies:
that is composition. With p and q exchanged M(s) becomes M(−1 − s) where nothing escapes.

**Doubles with a bound.** `characteristic` evaluates M(c + iy)/M(c), the characteristic function of
the law tilted by c, in doubles together with a bound on its error. Throughout, u = 2⁻⁵³, a sum,
product or elementary function of doubles errs by at most 4u relative (numpy's are within 2 units in
the last place), and the given y may itself be off by 4u relative; the bounds of the laws double
what these assumptions add up to.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from dpverify.accounting.losses.nodes import Nodes
from dpverify.enclosure import SquareRoot, to_arb
from dpverify.errors import require
from dpverify.execution.threads import one_thread

__all__ = [
    "ROUND_OFF",
    "Characteristic",
    "Doubles",
    "EvenHeights",
    "ExponentialLoss",
    "Log",
    "Losses",
    "PrivacyLoss",
    "Step",
    "Support",
    "TailedLoss",
    "TransformedLoss",
    "Transforms",
    "escaping",
    "exact_most_lost",
    "half_inverse",
    "log_moment",
    "most_lost",
    "power",
    "step_ball",
    "sum_error",
    "sum_string",
    "transform",
    "transform_along",
    "transforms",
]

Doubles = NDArray[np.float64]
Characteristic = tuple[NDArray[np.complex128], Doubles]
ROUND_OFF = 2.0**-48
"""32u: eight roundings of 4u each."""
_SHOWN = 6  # terms of a sum
_MOST_BITS = 1 << 23  # of a probability
_MOST_HELD = 1 << 20  # numbers at once
_TOGETHER = 24  # terms of a product of matrices, which adds up their round-off
_IN_ALL = 1e-18  # share that terms left out may make


@dataclass(frozen=True, slots=True)
class Log:
    """The logarithm of a rational above 1, kept unevaluated: the loss of a randomized response."""

    argument: Fraction

    def __post_init__(self) -> None:
        require(self.argument > 1, "argument", self.argument, "above 1")


Step = Fraction | SquareRoot | Log
"""A positive loss in nats, exact."""


def step_ball(step: Step) -> arb:
    """Ball that holds `step`, at the current precision."""
    return to_arb(step.argument).log() if isinstance(step, Log) else to_arb(step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Where a discrete loss lives: in Σ base + the sums of whole multiples of `spacings`.

    Attributes
    ----------
    base : pairs of a step and a whole number of them
    spacings : generators of the differences between atoms
    """

    base: tuple[tuple[Step, int], ...]
    spacings: tuple[Step, ...]


class EvenHeights:
    """Heights y of nodes first, first + 1, … at one step, and what is computed at all of them.

    Attributes
    ----------
    y : the heights
    """

    def __init__(self, first: int, count: int, step: float) -> None:
        self.y: Doubles = np.arange(first, first + count, dtype=np.float64) * step
        self._columns = math.isqrt(count - 1) + 1
        self._parts = first * step, step
        self._halves: dict[float, NDArray[np.complex128]] = {}

    def turns(self, x: float) -> NDArray[np.complex128]:
        """e^{ixy} as a product of two, whose angles add up to xy: within 5u·xy + 16u."""
        start, step = self._parts
        columns = self._columns
        rows = -(-len(self.y) // columns)
        far, near = x * (start + step * columns * np.arange(rows)), x * step * np.arange(columns)
        table = np.outer(np.exp(1j * far), np.exp(1j * near))
        return table.ravel()[: len(self.y)]

    def sum(
        self, weights: NDArray[np.complex128], places: NDArray[np.complex128]
    ) -> Characteristic:
        """Σ w·e^{ixy} over places x of Im x ≥ 0, as a product of matrices of both factors."""
        start, step = self._parts
        columns = self._columns
        rows = -(-len(self.y) // columns)
        far = np.exp(np.outer(1j * (start + step * columns * np.arange(rows)), places))
        near = np.exp(np.outer(places, 1j * step * np.arange(columns)))
        far *= weights
        table = np.zeros((rows, columns), dtype=np.complex128)
        with one_thread():
            for first in range(0, len(places), _TOGETHER):
                part = slice(first, first + _TOGETHER)
                table += far[:, part] @ near[part]
        return table.ravel()[: len(self.y)], sum_error(weights, places, self.y)

    def half_inverse(self, c: float) -> NDArray[np.complex128]:
        """The same at the heights."""
        if c not in self._halves:
            self._halves[c] = half_inverse(c, self.y)
        return self._halves[c]


def sum_error(
    weights: NDArray[np.complex128], places: NDArray[np.complex128], y: Doubles
) -> Doubles:
    """Bound on what a sum Σ w·e^{ixy} over n places x of Im x ≥ 0 errs by, weights included.

    An angle errs by at most 9u·|x|y, also as a sum of two, a term by less than 32u, and a sum of k
    products, in any order, by ku in each part (Higham 2002, section 3.1). Products are added up for
    `_TOGETHER` complex terms, of two each, and then these sums: fewer than 3(48 + n/24)u in all.
    """
    sizes = np.abs(weights)
    off = (8 + 5 + len(places) / 240) * float(sizes.sum())
    bound: Doubles = ROUND_OFF * (off + float(sizes @ np.abs(places)) * y)
    return bound


def half_inverse(c: float, y: Doubles) -> NDArray[np.complex128]:
    """1/(1 + 2s) at s = c + iy."""
    return (1 / (1 + 2 * c + 2j * y)).astype(np.complex128, copy=False)


class PrivacyLoss:
    """The exact law of one pair's privacy loss, hashable.

    By default it is never infinite, it has no atoms and no largest value, and it is its own
    reverse. How a law is known is said by its subclasses, and it may be both.
    """

    __slots__ = ()

    @property
    def infinity_mass(self) -> Fraction:
        """P[L = ∞]."""
        return Fraction(0)

    @property
    def is_law(self) -> bool:
        """Whether probabilities add up to 1."""
        return True

    @property
    def support(self) -> Support | None:
        """The lattice structure of a law with finitely many atoms; None for any other."""
        return None

    def max_loss(self) -> arb | None:
        """The largest finite loss, at the current precision; None where there is none."""
        return None if self.exact_max_loss is None else to_arb(self.exact_max_loss)

    @property
    def exact_max_loss(self) -> Fraction | None:
        """The same of a law that is its own reverse, where it is known as a rational number."""
        return None

    def reverse(self) -> PrivacyLoss:
        """The law with the pair exchanged."""
        return self


class TransformedLoss(PrivacyLoss, ABC):
    """A law that is known by its moment generating function, finite everywhere by default."""

    __slots__ = ()

    @property
    def abscissa(self) -> float:
        """A double b > 0, so that M(s) is finite for 0 < Re s < b; infinite where it always is."""
        return math.inf

    @abstractmethod
    def transform(self, points: Sequence[acb]) -> list[acb]:
        """M at each point of the strip 0 < Re s < top, as balls of the current precision."""

    def transform_along(self, nodes: Nodes) -> list[acb]:
        """The same at each node of a line."""
        return self.transform(nodes.points)

    @abstractmethod
    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c) at real c in (0, top), in doubles: for planning, not for proof."""

    @abstractmethod
    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """M(c + iy)/M(c) in doubles, and a proven bound on the modulus of its error."""

    def characteristic_along(self, c: float, heights: EvenHeights) -> Characteristic:
        """The same at even heights."""
        return self.characteristic(c, heights.y)

    @abstractmethod
    def envelope(self, c: float, y: float) -> float:
        """A proven upper bound on ln |M(c + iy′)/M(c)| for all y′ ≥ y > 0; at most 0."""

    def reverse(self) -> TransformedLoss:
        """The law with the pair exchanged."""
        return self


class ExponentialLoss(TransformedLoss, ABC):
    """A law of which M is Σ w·e^{iyx} along a line, of places x with Im x ≥ 0."""

    __slots__ = ()

    @abstractmethod
    def exponentials(
        self, c: float, most: float
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
        """Weights over M(c), places, and what M(c + iy)/M(c) is off by for 0 ≤ y ≤ `most`."""

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """The sum, in blocks; the modulus of each term is at most its weight's."""
        weights, places, error = self._terms(c, y)
        values = np.empty(y.shape, dtype=np.complex128)
        rows = max(_MOST_HELD // max(len(places), 1), 1)
        for first in range(0, len(y), rows):
            part = np.exp(1j * y[first : first + rows, None] * places)
            values[first : first + rows] = (part * weights).sum(axis=1)
        return values, sum_error(weights, places, y) + error

    def characteristic_along(self, c: float, heights: EvenHeights) -> Characteristic:
        """The same as a product of matrices."""
        weights, places, error = self._terms(c, heights.y)
        values, off = heights.sum(weights, places)
        return values, off + error

    def _terms(
        self, c: float, y: Doubles
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
        """Those that matter at some of these heights; the others are part of the error."""
        weights, places, error = self.exponentials(c, float(y.max(initial=0.0)))
        sizes = np.abs(weights) * np.exp(-y.min(initial=math.inf) * places.imag)
        left_out = sizes <= _IN_ALL / len(sizes)
        off = float(sizes[left_out].sum()) * (1 + ROUND_OFF * len(sizes)) + error
        return weights[~left_out], places[~left_out], off


class TailedLoss(PrivacyLoss, ABC):
    """A law that is known by its tails on both sides of the pair."""

    __slots__ = ()

    @abstractmethod
    def tails(self, place: arb) -> tuple[arb, arb]:
        """P[L ≥ place], infinite losses included, and the same of q, at the current precision."""


Losses = tuple[tuple[PrivacyLoss, int], ...]
"""A composition: independent losses, each with its multiplicity."""
Transforms = tuple[tuple[TransformedLoss, int], ...]
"""One of which every moment generating function is known."""


def transforms(losses: Losses) -> Transforms | None:
    """The same losses, if every moment generating function is known."""
    known = tuple((loss, n) for loss, n in losses if isinstance(loss, TransformedLoss))
    return known if len(known) == len(losses) else None


def transform(losses: Transforms, points: Sequence[acb]) -> list[acb]:
    """M of the sum of independent losses at each point."""
    return _multiplied([(loss.transform(points), count) for loss, count in losses])


def transform_along(losses: Transforms, nodes: Nodes) -> list[acb]:
    """The same at each node of a line."""
    return _multiplied([(loss.transform_along(nodes), count) for loss, count in losses])


def _multiplied(factors: Sequence[tuple[list[acb], int]]) -> list[acb]:
    """The product of powers, at each point."""
    (first, count), *others = factors
    found = first if count == 1 else [factor**count for factor in first]
    for values, times in others:
        found = [
            product * (factor if times == 1 else factor**times)
            for product, factor in zip(found, values, strict=True)
        ]
    return found


def power(values: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """By squaring, which errs by 4u a factor, relative."""
    found = np.ones_like(values)
    while times:
        if times % 2:
            found = found * values
        times //= 2
        if times:
            values = values * values
    return found


def sum_string(losses: Losses) -> str:
    """A composition as a sum of curves that have these losses, of many the first ones."""
    terms = [str(loss) if count == 1 else f"{count} * {loss}" for loss, count in losses]
    more = [f"{len(terms) - _SHOWN} other losses"] if len(terms) > _SHOWN else []
    return " + ".join(terms[:_SHOWN] + more)


def most_lost(losses: Losses) -> arb | None:
    """The largest finite sum of independent losses, at the current precision; see `max_loss`."""
    total = arb(0)
    for loss, count in losses:
        most = loss.max_loss()
        if most is None:
            return None
        total += count * most
    return total


def exact_most_lost(losses: Losses) -> Fraction | None:
    """The same where all losses have an `exact_max_loss`."""
    largest = [loss.exact_max_loss for loss, _ in losses]
    known = [most for most in largest if most is not None]
    if len(known) < len(largest):
        return None
    return sum((count * most for (_, count), most in zip(losses, known, strict=True)), Fraction(0))


@lru_cache(maxsize=64)  # a search asks for it at each ε
def escaping(losses: Losses) -> Fraction:
    """P[L = ∞] of the sum of independent losses, exactly.

    Raises
    ------
    ParameterError
        If it has millions of digits.
    """
    finite = Fraction(1)
    for loss, count in losses:
        each = 1 - loss.infinity_mass
        most = _MOST_BITS // each.denominator.bit_length()
        rule = f"at most {most} for a delta of so many digits"
        hint = "Of a point, compose (epsilon, 0) that often, and (0, times * delta) once."
        require(each in (0, 1) or count <= most, "times", count, rule, hint)
        finite *= each**count
    return 1 - finite


def log_moment(losses: Transforms, c: Doubles) -> Doubles:
    """Ln M(c) of the sum of independent losses, in doubles."""
    total = np.zeros_like(c)
    for loss, count in losses:
        total += count * loss.log_moment(c)
    return total
