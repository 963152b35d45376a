"""The privacy curve of a composition of independent losses.

δ is the larger of the two directions of the pair, all losses forward and all reversed: neighbours
are the same pair throughout, in the same order. (What has the record in one release has it in all;
else a sum of losses that aren't their own reverse may be too low.) Within one direction
δ(ε) = P[L = ∞] + f(ε) (`_inversion`), and how f is computed depends on what the losses are:

 - all Gaussian, all Laplace and few, normal rows that change alike: one mechanism, in closed form
   (`_closed_form`);
 - all discrete with commensurable differences: exactly on their lattice;
 - all discrete with few atoms in either of two halves: by adding over every one (`_enumeration`);
 - Laplace losses next to the largest of all; Laplace, Gaussian or normal rows' losses with few
   atoms of others: each of their sums by itself (`_noise_sums`);
 - otherwise by inversion, direct where M decays (`_inversion`), between two sums over finitely many
   nodes where it doesn't (`_extremal`);
 - Gaussian noise on samples whose M hardly decays: along a contour that bends (`_rays`);
 - where these are too coarse, by the losses' drops from the largest, on a grid (`_drops`);
 - where tails of Gaussian noise on samples make moments that say little, and where such noise is
   discrete, without these tails: f is what the rest makes, or larger by at most the probability of
   any tail;
 - where a loss is known by its tails alone, or where moments of a sample's loss say little, between
   two laws on a lattice (`_grid`);
 - where none of these has an answer, by what the parts cost apart (`_apart`).

f falls strictly in ε until it is 0, so two decided signs enclose ε(δ).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Literal, Self

from attrs import evolve, field, frozen
from flint import arb, ctx

from dpverify.accounting.composition._apart import (
    delta_apart,
    epsilon_apart,
    still_delta,
    still_epsilon,
    unsampled,
)
from dpverify.accounting.composition._closed_form import closed_form
from dpverify.accounting.composition._direction import Direction, direction_of
from dpverify.accounting.composition._enumeration import has_few_sums
from dpverify.accounting.composition._grid import GridDirection
from dpverify.accounting.composition._sums import common_spacing
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.rank_one import NormalRows
from dpverify.accounting.losses.base import (
    Losses,
    PrivacyLoss,
    TailedLoss,
    escaping,
    exact_most_lost,
    sum_string,
)
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError, require
from dpverify.execution.arithmetic import within_doubles
from dpverify.guarantee import (
    PrivacyBound,
    PrivacyCurve,
    check_no_draw,
    common_adjacency,
    to_adjacency,
)

__all__ = ["Composed"]

_MOST_TIMES = 2**64
_MOST_EPSILON = 2**500
_TINY = 1e-300
_PRECISION = 384  # bits of a total variation


def _to_losses(value: Losses) -> Losses:
    require(bool(value), "losses", value, "not empty")
    for loss, count in value:
        whole = isinstance(count, int) and 1 <= count <= _MOST_TIMES
        require(whole, "multiplicity", count, "a whole number from 1 to 2**64")
        require(isinstance(loss, PrivacyLoss), "loss", loss, "a privacy loss")
    return _merged(value)


@frozen(kw_only=True)
class Composed(PrivacyCurve):
    """Curve of independent losses of the same pair of neighbours, in one order in all of them.

    Parameters
    ----------
    losses : pairs of a loss and how often it occurs. Equal losses are merged, and the order has no
        influence.
    adjacency : whom it protects
    drawn : whether it averages over public draws, of which it doesn't say which they are
    is_bound : whether a loss is for a move that bounds those of all neighbours, and none may make
    """

    _losses: Losses = field(converter=_to_losses)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)
    drawn: bool = field(default=False, repr=False)
    is_bound: bool = field(default=False, eq=False, repr=False)

    @classmethod
    def of(cls, curves: Sequence[PrivacyCurve], *, times: int = 1) -> Self:
        """The curve of all these releases together, `times` over."""
        require(times >= 1, "times", times, "at least 1")
        for curve in curves:
            check_no_draw(curve)
        return cls(
            losses=tuple((loss, times * n) for curve in curves for loss, n in curve.losses()),
            adjacency=common_adjacency([curve.adjacency for curve in curves]),
            is_bound=any(curve.is_bound for curve in curves),
        )

    def losses(self) -> Losses:
        """The losses, each with how often it occurs."""
        return self._losses

    def group(self, size: int) -> PrivacyBound:
        """That of the closed form, where there is one; else the bound that the sum alone proves."""
        closed = closed_form(self._losses)
        if isinstance(closed, Gaussian | Laplace):
            alike = evolve(closed, adjacency=self.adjacency, is_bound=self.is_bound)
            return alike.group(size)
        return super().group(size)

    def __str__(self) -> str:
        return sum_string(self._losses) + (f", {self.unit}" if self.unit else "")

    @property
    def method(
        self,
    ) -> Literal[
        "gaussian",
        "laplace",
        "normal rows",
        "one sample",
        "lattice",
        "enumeration",
        "inversion",
        "grid",
    ]:
        """How δ is computed; a lattice that is too fine is left for the methods after it."""
        closed = closed_form(self._losses)
        if closed is not None:
            match closed:
                case Gaussian():
                    return "gaussian"
                case Laplace():
                    return "laplace"
                case NormalRows():
                    return "normal rows"
            return "one sample"
        if isinstance(direction_of(self._losses), GridDirection):
            return "one sample" if self._losses[0][1] == len(self._losses) == 1 else "grid"
        if common_spacing(self._losses) is not None:
            return "lattice"
        return "enumeration" if has_few_sums(self._losses) else "inversion"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε).

        Relative width 1e-12 or better except between two sums, or by doubles for samples; there it
        is about c·ε·1e-9 with −c the slope of ln δ, and wider where hundreds of different losses
        are added up. What no ε takes away exactly, from the largest loss on, if that is rational.
        """
        end = exact_most_lost(self._losses)
        if end is not None and epsilon >= end:
            return Enclosure.of_exact(escaping(self._losses))
        closed = closed_form(self._losses)
        if closed is not None:
            return closed.delta_at(epsilon)
        if epsilon > _MOST_EPSILON:  # δ falls
            least = max(escaping(self._losses), escaping(_reversed(self._losses)))
            most = self._delta(Fraction(_MOST_EPSILON)).upper
            return Enclosure(Enclosure.of_exact(least).lower, most)
        found: list[Enclosure] = []
        try:
            with within_doubles():
                for direction in self._directions():
                    if not any(direction.is_below(epsilon, Fraction(x.lower)) for x in found):
                        found.append(direction.delta_at(epsilon))
        except NumericalError:
            apart = still_delta(self._losses, epsilon) or delta_apart(self._parts(), epsilon)
            with ctx.workprec(_PRECISION):
                *_, most = (Enclosure.of_ball(part).upper for part in self._distances())
            return Enclosure(apart.lower, min(apart.upper, most))
        return Enclosure(max(e.lower for e in found), max(e.upper for e in found))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ).

        Infinite below P[L = ∞], and at it where no finite bound on the loss exists; exact at it
        where the largest finite loss is rational.
        """
        end = exact_most_lost(self._losses)
        if end is not None and delta == escaping(self._losses):
            return Enclosure.of_exact(end)
        closed = closed_form(self._losses)
        if closed is not None and (delta or not isinstance(closed, Gaussian | NormalRows)):
            return closed.epsilon_at(delta)
        if self._is_hardly_seen(delta):
            return Enclosure(0.0, 0.0)
        found: list[Enclosure] = []
        try:
            with within_doubles():
                for direction in self._directions():
                    if any(math.isinf(other.lower) for other in found):
                        break  # nothing is larger
                    if not any(direction.is_below(Fraction(x.lower), delta) for x in found):
                        found.append(direction.epsilon_at(delta))
        except NumericalError:
            return still_epsilon(self._losses, delta) or epsilon_apart(self._parts(), delta)
        return Enclosure(max(e.lower for e in found), max(e.upper for e in found))

    def _is_hardly_seen(self, delta: Fraction) -> bool:
        """Whether the distance of both laws in total variation is at most δ."""
        with ctx.workprec(_PRECISION):
            return all(most <= to_arb(delta) for most in self._distances())

    def _distances(self) -> Iterator[arb]:
        """Bounds on it for ever more of the losses, the last one for all.

        Coupled, outputs at distances v are all equal but for 1 − Π(1 − v)ⁿ.
        """
        equal = arb(0)  # logarithm
        for loss, count in self._losses:
            own, other = arb(1), arb(0)
            if isinstance(loss, TailedLoss):
                with suppress(NumericalError):  # not resolved
                    own, other = loss.tails(arb(0))
            if not own - other < 1:
                yield arb(1)
                return
            equal += count * (other - own).log1p()
            yield -equal.expm1()

    def _parts(self) -> list[tuple[PrivacyCurve, PrivacyCurve]]:
        """Each kind of loss apart, with what it is no less than, where no method adds them up.

        Raises the error that is being handled where there is one kind, and no sample in it.
        """
        if len(self._losses) > 1:
            kinds = [Composed(losses=(pair,)) for pair in self._losses]
            return [(kind, kind) for kind in kinds]
        ((loss, count),) = self._losses
        whole = unsampled(loss)
        if whole is None or count == 1:
            raise  # noqa: PLE0704  # of a NumericalError
        return [(Composed(losses=((whole, count),)), Composed(losses=((loss, 1),)))]

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, by the normal law with the loss's mean and variance.

        With `noise` below 1 the standard deviation is scaled by it.
        """
        rates = []
        for losses, side in ((self._losses, 1.0), (_reversed(self._losses), -1.0)):
            with within_doubles():
                mean, deviation = direction_of(losses).mean_and_deviation()
                ahead, spread = side * mean - threshold, max(noise * deviation, _TINY)
                rates.append(math.erfc(-ahead / spread / math.sqrt(2)) / 2)
        return rates[0], rates[1]

    def _directions(self) -> list[Direction | GridDirection]:
        backward = _merged(_reversed(self._losses))
        both = [self._losses] if backward == self._losses else [self._losses, backward]
        return [direction_of(losses) for losses in both]


def _merged(losses: Losses) -> Losses:
    counts: Counter[PrivacyLoss] = Counter()
    for loss, count in losses:
        counts[loss] += count
    return tuple(sorted(counts.items(), key=repr))


def _reversed(losses: Losses) -> Losses:
    return tuple((loss.reverse(), count) for loss, count in losses)
