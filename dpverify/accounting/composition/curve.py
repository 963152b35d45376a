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
 - where tails of Gaussian noise on samples make moments that say little, without these tails: f is
   what the rest makes, or larger by at most the probability of any tail;
 - where a loss is known by its tails alone, or where moments of a sample's loss say little, between
   two laws on a lattice (`_grid`);
 - where none of these has an answer, by what the parts cost apart (`_apart`).

f falls strictly in ε until it is 0, so two decided signs enclose ε(δ).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal, Self

import numpy as np
from attrs import evolve, field, frozen
from flint import acb, arb, ctx

from dpverify.accounting.composition._apart import (
    delta_apart,
    epsilon_apart,
    still_delta,
    still_epsilon,
    unsampled,
)
from dpverify.accounting.composition._closed_form import closed_form
from dpverify.accounting.composition._drops import Drops, has_drops
from dpverify.accounting.composition._enumeration import Enumeration, has_few_sums
from dpverify.accounting.composition._extremal import (
    NodesInDoubles,
    sum_in_doubles,
    sums_around,
)
from dpverify.accounting.composition._grid import GridDirection, require_few
from dpverify.accounting.composition._inversion import (
    WORK,
    Inversion,
    LatticeKernel,
    Line,
    PlainKernel,
    invert,
)
from dpverify.accounting.composition._lattice import common_unit
from dpverify.accounting.composition._noise_sums import (
    NoiseSums,
    has_gaussian_sums,
    has_laplace_sums,
    has_rows_sums,
    laplace_end,
    laplace_sums,
)
from dpverify.accounting.composition._rays import ray_delta, ray_epsilon, ray_losses
from dpverify.accounting.composition._root import WIDTH, root
from dpverify.accounting.composition._saddle import Transform
from dpverify.accounting.composition._sampled import (
    SAMPLED_EFFORTS,
    SampledSum,
    sampled_bounds,
    sampled_root,
    sampled_value,
)
from dpverify.accounting.curves._laplace_halves import LaplaceEnd, LaplaceSums
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.rank_one import NormalRows
from dpverify.accounting.losses.base import (
    ExponentialLoss,
    Losses,
    PrivacyLoss,
    Step,
    TailedLoss,
    Transforms,
    escaping,
    log_moment,
    most_lost,
    step_ball,
    sum_string,
    transform,
    transforms,
)
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.poisson_sampled import MixtureLoss
from dpverify.accounting.losses.smooth_samples import CutLoss, SmoothBatchLoss, SmoothLoss
from dpverify.accounting.solve import last_holding
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

# Precision in bits, and the logarithm of the relative error that aliases and omitted nodes may
# make together; the next pair is tried where a result is wider than WIDTH.
_EFFORTS = ((128, 36.0), (192, 50.0), (384, 120.0), (1024, 400.0))
_FINEST = 1 << 22  # points of a lattice's period
_BETWEEN_EFFORT, _LEFT_OUT = 25.0, 1.0  # most nodes left out are far below the threshold
_MOST_BETWEEN, _ENOUGH_BETWEEN, _LEAST_BETWEEN = 1 << 18, 1 << 17, 1 << 10  # nodes of two sums
_BETWEEN_WORK = 1 << 24  # nodes times losses, as long as the nodes aren't enough
_RESOLUTION = 2e-10  # aim for the relative width of ε between two sums
_NARROW = 5e-10  # relative width of ε of samples, from which on no more effort is made
_ENOUGH = 1e-9  # relative width of ε or δ along rays, from which on slower ways aren't tried
_NEAR = 1e-12  # relative distance at which a search by values of δ ends
_COARSER = 1.5
_MOST_TIMES = 2**64
_FEW_BALLS = 500  # nodes of samples, from which on doubles are tried
_FEWER_BALLS, _MOST_SMOOTH = 60, 1 << 18  # of many terms each; nodes of these
_IN_DOUBLES = 1e-10  # relative width of ε by these
_FEW_NODES = 10_000  # that a sum over samples takes before large losses are split off
_WIDE = 1e-6  # relative width of δ or ε of samples, from which on a lattice is tried as well
_MOST_EPSILON = 2**500
_SHARP, _ROUNDS = 1e-8, 3  # relative width of ε between two sums, and tries to reach it
_TINY = 1e-300
_FEW_TIMES, _MOST_MU_SQUARED = 4, Fraction(1, 36)  # of samples that are nearly normal without tails
_COARSE = 1e-3  # relative width of δ from which on the grid of drops is tried as well


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
        if isinstance(_direction(self._losses), GridDirection):
            return "one sample" if self._losses[0][1] == len(self._losses) == 1 else "grid"
        if _unit(self._losses) is not None:
            return "lattice"
        return "enumeration" if has_few_sums(self._losses) else "inversion"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε).

        Relative width 1e-12 or better except between two sums, or by doubles for samples; there it
        is about c·ε·1e-9 with −c the slope of ln δ, and wider where hundreds of different losses
        are added up.
        """
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
            return still_delta(self._losses, epsilon) or delta_apart(self._parts(), epsilon)
        return Enclosure(max(e.lower for e in found), max(e.upper for e in found))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ).

        Infinite below P[L = ∞], and at it where no finite bound on the loss exists.
        """
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
        """Whether the distances of the laws in total variation, which add up, are at most δ."""
        with ctx.workprec(_EFFORTS[2][0]):
            total = arb(0)
            for loss, count in self._losses:
                if not isinstance(loss, TailedLoss) or not total <= to_arb(delta):
                    return False
                try:
                    own, other = loss.tails(arb(0))
                except NumericalError:  # not resolved
                    return False
                total += count * (own - other)
            return bool(total <= to_arb(delta))

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
                mean, deviation = _direction(losses).mean_and_deviation()
                ahead, spread = side * mean - threshold, max(noise * deviation, _TINY)
                rates.append(math.erfc(-ahead / spread / math.sqrt(2)) / 2)
        return rates[0], rates[1]

    def _directions(self) -> list[_Direction | GridDirection]:
        backward = _merged(_reversed(self._losses))
        both = [self._losses] if backward == self._losses else [self._losses, backward]
        return [_direction(losses) for losses in both]


def _direction(losses: Losses) -> _Direction | GridDirection:
    replaced = [isinstance(loss, MixtureLoss) and loss.mixture.replaced for loss, _ in losses]
    smooth = [isinstance(loss, SmoothLoss) for loss, _ in losses]
    if any(replaced) or any(smooth):
        require_few([count for _, count in losses])
    known = transforms(losses)
    alone = losses[0][1] == len(losses) == 1  # which is known by its tails
    if known is None or (alone and all(smooth)):
        return GridDirection(losses=losses)
    return _Direction(losses=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Direction:
    """δ and its inverse for the pair in one order."""

    losses: Transforms

    @property
    def sampled(self) -> tuple[MixtureLoss, int] | None:
        """The one loss, where it is that of a sample, and how often it occurs."""
        ((loss, count), *others) = self.losses
        return (loss, count) if isinstance(loss, MixtureLoss) and not others else None

    @property
    def is_smooth(self) -> bool:
        """Whether a loss has a law of which exponential sums and tails are known."""
        return any(isinstance(loss, SmoothLoss) for loss, _ in self.losses)

    @property
    def is_cut_first(self) -> bool:
        """Whether moments of Gaussian noise are made by noise that hardly occurs, as far as known.

        So they may be in batches; and on samples where the rest is nearly normal.
        """
        if self.sampled is not None:
            loss, count = self.sampled
            return count >= _FEW_TIMES and loss.base.mu_squared <= _MOST_MU_SQUARED
        return any(
            isinstance(loss, SmoothBatchLoss) and isinstance(loss.base, GaussianLoss)
            for loss, _ in self.losses
        )

    def mean_and_deviation(self) -> tuple[float, float]:
        """Of the sum, in doubles, by differences of ln M near 0."""
        step = 1e-4 * min(1.0, *(loss.abscissa for loss, _ in self.losses))
        at = log_moment(self.losses, step * np.arange(1.0, 4.0))
        second = max(float(at[2] - 2 * at[1] + at[0]) / step**2, 1e-300)
        return float(at[1] - at[0]) / step - 1.5 * step * second, math.sqrt(second)

    def is_below(self, eps: Fraction, delta: Fraction) -> bool:
        """Whether δ(ε) is at most `delta` by Chernoff's bound, which may fail to show it.

        (1 − e^{ε − L})₊ is at most e^{c(L − ε)} times its largest ratio to it, c^c/(1 + c)^{1 + c}.
        """
        sampled = [loss for loss, _ in self.losses if isinstance(loss, ExponentialLoss)]
        if delta <= 0 or not sampled:
            return False
        if self._beyond(eps):
            return self._clearly_beyond(eps)
        c = self._saddle(eps)
        with ctx.workprec(128), suppress(NumericalError):
            for loss in sampled:
                most = loss.max_loss()
                if most is not None:  # near it, c would grow without an end
                    c = min(c, 300 / float(most.mid()))
            moment = transform(self.losses, [acb(c)])[0].real
            factor = arb(c) ** arb(c) / (1 + arb(c)) ** (1 + arb(c))
            return bool(moment * (-arb(c) * to_arb(eps)).exp() * factor <= to_arb(delta))
        return False

    def _saddle(self, eps: Fraction) -> float:
        return Transform.of(self.losses).saddle(
            lambda c, log: log - c * float(eps) - np.log(c) - np.log1p(c)
        )

    def delta_at(self, eps: Fraction, target: Fraction | None = None) -> Enclosure:
        """Encloses δ(ε), and no more narrowly than what tells it from a target."""
        if not self.is_smooth:
            return self.delta_by_moments(eps)
        ball = self._along_rays(eps)
        if ball is not None:
            found = Enclosure.of_ball(ball)
            return Enclosure(max(found.lower, 0.0), min(found.upper, 1.0))
        return self._or_others(
            lambda: self.delta_by_moments(eps), lambda other: other.delta_at(eps), target=target
        )

    def _along_rays(self, eps: Fraction) -> arb | None:
        """The value f(ε) of Gaussian noise on samples by `_rays`; None where that isn't narrow."""
        ball = ray_delta(self.losses, eps)
        return None if ball is None or not ball.rad() <= _ENOUGH * ball.lower() else ball

    def _epsilon_along_rays(self, delta: Fraction) -> Enclosure | None:
        """Where f is δ, likewise; None also of what is nearly normal without tails."""
        known = ray_losses(self.losses) or ()
        wide = any(law.mu_squared > _MOST_MU_SQUARED for _, law, _ in known)
        few = sum(count for _, _, count in known) < _FEW_TIMES
        return ray_epsilon(self.losses, delta) if wide or few else None

    def delta_by_moments(self, eps: Fraction) -> Enclosure:
        """The same, from nothing but moment generating functions; of samples alone also others."""
        infinity_mass = escaping(self.losses)
        if self._beyond(eps):
            end = Enclosure.of_exact(infinity_mass)
            return end if self._clearly_beyond(eps) else Enclosure(end.lower, _up(end.upper))
        c = self._saddle(eps)
        if self._underflows(c, eps):
            end = Enclosure.of_exact(infinity_mass)
            return Enclosure(end.lower, _up(end.upper))
        size = Transform.of(self.losses).log_size(c, float(eps))
        if self.sampled is not None:
            ball = self._by_few_nodes(c, eps, size)
            if ball is None:
                ball = self._along_rays(eps)
            if ball is None:
                ball = sampled_value(*self.sampled, eps)
            value = Enclosure.of_ball(ball)
            value = Enclosure(max(value.lower, 0.0), min(value.upper, 1.0))
            return self._or_others(lambda: value, lambda other: other.delta_at(eps))
        return self._delta_by_sums(c, eps, size)

    def _or_others(
        self,
        find: Callable[[], Enclosure],
        ask: Callable[[_CutDirection | GridDirection], Enclosure],
        *,
        delta: Fraction | None = None,
        target: Fraction | None = None,
    ) -> Enclosure:
        """What is found, and what others say where that is nothing, or wide around a target.

        These are a sum without the tails of Gaussian noise, and a lattice.

        Parameters
        ----------
        delta : that is asked for, where it is ε that is found
        """
        found, first, answered = Enclosure(0.0, math.inf), None, False

        def cut() -> Enclosure | None:
            other = self._cut(delta or Fraction(min(found.upper, 1.0)))
            return None if other is None else ask(other)

        def by_lattice() -> Enclosure:
            return ask(GridDirection(losses=self.losses))

        ways: list[Callable[[], Enclosure | None]] = [find, cut, by_lattice]
        if delta is not None and self.is_cut_first:
            ways[:2] = [cut, find]
        for way in ways:
            if found.width <= _WIDE or not (target is None or target in found):
                break
            try:
                with within_doubles():
                    answer = way()
            except NumericalError as error:
                first = first or error
                continue
            if answer is not None:
                answered = True
                found = Enclosure(max(found.lower, answer.lower), min(found.upper, answer.upper))
        if first is not None and not answered:
            raise first
        return found

    def _cut(self, delta: Fraction) -> _CutDirection | None:
        """The same without tails that make a small share of δ; None where nothing is cut."""
        count = sum(count for _, count in self.losses)
        losses, beyond, cut = [], arb(0), False
        with ctx.workprec(_EFFORTS[0][0]):
            most = to_arb(delta) * arb(-_EFFORTS[0][1]).exp() / count
            for loss, times in self.losses:
                found = CutLoss.of(loss, most)
                losses.append((loss if found is None else found[0], times))
                beyond += 0 if found is None else times * found[1]
                cut = cut or found is not None
        return _CutDirection(whole=_Direction(losses=tuple(losses)), beyond=beyond) if cut else None

    def _delta_by_sums(self, c: float, eps: Fraction, size: float) -> Enclosure:
        infinity_mass = escaping(self.losses)
        for precision, effort in _EFFORTS:
            with ctx.workprec(precision):
                try:
                    sums = _Sums.near(self.losses, c, float(eps), size, effort)
                except NumericalError:
                    if (least := self._far_above(eps)) > 0:
                        return Enclosure(least, 1.0)
                    raise
                ball = sums.value(to_arb(eps))
                if not ball.rad() <= _COARSE * ball.lower() and has_drops(self.losses):
                    ball = ball.intersection(Drops(losses=self.losses).value(to_arb(eps)))
                total = ball + to_arb(infinity_mass)
                if sums.is_between or total.rad() <= WIDTH * total.lower():
                    value = Enclosure.of_ball(total)
                    least = Enclosure.of_exact(infinity_mass).lower
                    return Enclosure(max(value.lower, least), min(value.upper, 1.0))
        raise NumericalError(f"delta({eps}) is only known to be {total}")

    def _far_above(self, eps: Fraction) -> float:
        """A lower bound on δ that is near 1 where nearly all losses are above ε, and else below 0.

        1 − δ(ε) = E min(1, e^{ε − L}) ≤ e^{cε} E e^{−cL} for c in [0, 1].
        """
        c = np.geomspace(1e-12, 0.5, 64)
        at = float(c[np.argmin(c * float(eps) + log_moment(self.losses, -c))])
        most = transform(self.losses, [acb(-at)])[0].real * (arb(at) * to_arb(eps)).exp()
        return Enclosure.of_ball(1 - most).lower if most.is_finite() else 0.0

    def epsilon_at(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""
        if not self.is_smooth:
            return self.epsilon_by_moments(delta)
        rays = self._epsilon_along_rays(delta)
        if rays is not None and rays.width <= _WIDE:
            return rays
        return self._or_others(
            lambda: self.epsilon_by_moments(delta),
            lambda other: other.epsilon_at(delta),
            delta=delta,
        )

    def epsilon_by_moments(self, delta: Fraction) -> Enclosure:
        """The same, as for δ."""
        target = delta - escaping(self.losses)
        if target < 0:
            return Enclosure(math.inf, math.inf)
        if target == 0:
            return self._largest()
        log = _log(target)
        c = Transform.of(self.losses).saddle(lambda c, m: (m - np.log(c) - np.log1p(c) - log) / c)
        moment = float(log_moment(self.losses, np.array([c]))[0])
        guess = max((moment - math.log(c) - math.log1p(c) - log) / c, 0.0)
        if guess == 0:
            if Fraction(self.delta_at(Fraction(0), delta).upper) <= delta:
                return Enclosure(0.0, 0.0)
            c = self._saddle(Fraction(0))  # of losses that are small, far from the other one
        ceiling = self._ceiling()
        guess = min(guess, ceiling * (1 - 2**-40))
        if math.isfinite(ceiling):  # next to it, doubles resolve no steeper slope
            c = min(c, 2**53 / ceiling)
        if self.sampled is not None:
            with ctx.workprec(_EFFORTS[0][0]):
                few = _Sums.of_few_nodes(self.losses, c, guess, log, _EFFORTS[0][1])
                found = few and root(
                    few.value, guess, 1 / c, to_arb(target), ceiling, is_exact=not few.is_between
                )
            rays = None if found else self._epsilon_along_rays(target)
            if rays is not None and rays.width > _ENOUGH:
                found = self._sampled_epsilon(target, guess, ceiling)
                return Enclosure(max(found.lower, rays.lower), min(found.upper, rays.upper))
            return found or rays or self._sampled_epsilon(target, guess, ceiling)
        return self._epsilon_by_sums(delta, c, guess, ceiling)

    def _epsilon_by_sums(
        self, delta: Fraction, c: float, guess: float, ceiling: float
    ) -> Enclosure:
        target = delta - escaping(self.losses)
        log = _log(target)
        end = Enclosure(min(self._below_the_end(target), ceiling), ceiling)
        if end.width <= _NARROW:
            return end
        for precision, effort in _EFFORTS:
            with ctx.workprec(precision):
                sums = _Sums.near(self.losses, c, guess, log, effort)
                found = root(
                    sums.value, guess, 1 / c, to_arb(target), ceiling, is_exact=not sums.is_between
                )
                if found is not None:
                    return self._sharper(found, target, ceiling) if sums.is_between else found
                if sums.is_between:  # more precision is no help
                    break
        return self._by_values(delta, guess, ceiling)

    def _below_the_end(self, target: Fraction) -> float:
        """A lower bound on ε from the mass p at the largest loss ε₀ of samples alone.

        There f(ε) ≥ p·(1 − e^{ε − ε₀}).
        """
        with ctx.workprec(_EFFORTS[0][0]):
            mass, most = arb(1), most_lost(self.losses)
            for loss, count in self.losses:
                mass *= (loss.ratio.top() if isinstance(loss, SmoothLoss) else arb(0)) ** count
            if most is None or not mass > to_arb(target):
                return 0.0
            return max(Enclosure.of_ball(most + (-to_arb(target) / mass).log1p()).lower, 0.0)

    def _sharper(self, found: Enclosure, target: Fraction, ceiling: float) -> Enclosure:
        """By sums for an ε that is known better, as long as they help."""
        for _ in range(_ROUNDS):
            if found.width <= _SHARP:
                break
            guess = (found.lower + found.upper) / 2
            c = self._saddle(Fraction(guess))
            if math.isfinite(ceiling):
                c = min(c, 2**53 / ceiling)
            try:
                sums = _Sums.near(self.losses, c, guess, _log(target), _EFFORTS[0][1])
            except NumericalError:
                break
            better = root(sums.value, guess, 1 / c, to_arb(target), ceiling, is_exact=False)
            if better is None:
                break
            before = found.width
            found = Enclosure(max(found.lower, better.lower), min(found.upper, better.upper))
            if not found.width < before / 2:
                break
        return found

    def _by_values(self, delta: Fraction, guess: float, ceiling: float) -> Enclosure:
        """By values of δ, each by a sum of its own, where one sum doesn't reach from guess to root.

        That is so where δ hardly falls over a long way, as below the losses that make all of it.
        """

        @cache
        def sign(eps: float) -> int:
            """Of δ(ε) − `delta`, 0 where it isn't proven."""
            value = self.delta_at(Fraction(eps))
            return (Fraction(value.lower) >= delta) - (Fraction(value.upper) <= delta)

        high = min(max(guess, 1.0), ceiling)
        while sign(high) >= 0 and high < ceiling:
            high = min(2 * high, ceiling)
        return Enclosure(
            last_holding(lambda eps: sign(eps) > 0, high, width=_NEAR)[0],
            last_holding(lambda eps: sign(eps) >= 0, high, width=_NEAR)[1],
        )

    def _by_few_nodes(self, c: float, eps: Fraction, log_size: float) -> arb | None:
        """The value f(ε) where M falls fast along its line; None where it doesn't, or is wide."""
        precision, effort = _EFFORTS[0]
        with ctx.workprec(precision):
            sums = _Sums.of_few_nodes(self.losses, c, float(eps), log_size, effort)
            if sums is None:
                return None
            ball = sums.value(to_arb(eps))
            return ball if sums.is_between or ball.rad() <= WIDTH * ball.lower() else None

    def _sampled_epsilon(self, target: Fraction, guess: float, ceiling: float) -> Enclosure:
        return self._or_others(
            lambda: self._by_windows(target, guess, ceiling),
            lambda other: other.epsilon_at(target),
            delta=target,
        )

    def _by_windows(self, target: Fraction, guess: float, ceiling: float) -> Enclosure:
        assert self.sampled is not None  # noqa: S101
        found = sampled_bounds(*self.sampled, target)
        try:
            guess = sampled_root(*self.sampled, target, guess)
            for precision, effort in SAMPLED_EFFORTS:
                with ctx.workprec(precision):
                    near = SampledSum.near(*self.sampled, guess, effort, _log(target))
                    scale = 1 / float(near.inversion.c)
                    better = root(near.value, guess, scale, to_arb(target), ceiling, is_exact=False)
                if better is not None:
                    ends = max(found.lower, better.lower), min(found.upper, better.upper)
                    found = Enclosure(*ends)
                    if found.width <= _NARROW:
                        break
        except NumericalError:  # too many nodes: the bounds stay
            pass
        return found

    def _underflows(self, c: float, eps: Fraction) -> bool:
        """Whether f(ε) ≤ P[L > ε] ≤ M(c)e^(−cε) is below all doubles."""
        with ctx.workprec(128):
            moment = transform(self.losses, [acb(c)])[0].real
            return bool(moment * (-arb(c) * to_arb(eps)).exp() < arb(2) ** -1074)

    def _ceiling(self) -> float:
        """A double at or above the largest loss."""
        with ctx.workprec(128):
            most = most_lost(self.losses)
            return math.inf if most is None else Enclosure.of_ball(most).upper

    def _largest(self) -> Enclosure:
        with ctx.workprec(128):
            most = most_lost(self.losses)
            if most is None:
                return Enclosure(math.inf, math.inf)
            end = Enclosure.of_ball(most)
            return Enclosure(max(end.lower, 0.0), max(end.upper, 0.0))

    def _beyond(self, eps: Fraction) -> bool:
        """Whether ε is at the largest loss or beyond, as far as 2,048 bits tell."""
        with ctx.workprec(2048):
            most = most_lost(self.losses)
            return most is not None and not to_arb(eps) < most

    def _clearly_beyond(self, eps: Fraction) -> bool:
        with ctx.workprec(2048):
            most = most_lost(self.losses)
            return most is not None and bool(to_arb(eps) >= most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CutDirection:
    """What the sum of losses without their tails says: f is as large, or larger by a probability.

    Attributes
    ----------
    whole : of the measures that are left
    beyond : bound on the probability that a loss is in its tail
    """

    whole: _Direction
    beyond: arb

    def delta_at(self, eps: Fraction) -> Enclosure:
        """Encloses δ(ε)."""
        found = self.whole.delta_by_moments(eps)
        return Enclosure(found.lower, Enclosure.of_ball(arb(found.upper) + self.beyond).upper)

    def epsilon_at(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""
        rest = delta - Fraction(Enclosure.of_ball(self.beyond).upper)
        ends = self.whole.epsilon_by_moments(delta), self.whole.epsilon_by_moments(rest)
        return Enclosure(ends[0].lower, ends[1].upper)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """f(ε) by one sum, or by one that is above and one that is below."""

    sums: tuple[
        NodesInDoubles
        | Inversion
        | Enumeration
        | NoiseSums
        | LaplaceEnd
        | LaplaceSums
        | Drops
        | SampledSum,
        ...,
    ]

    @classmethod
    def near(
        cls, losses: Transforms, c: float, eps: float, log_size: float, effort: float
    ) -> _Sums:
        """Sums for values of about e^log_size at about ε, at the current precision."""
        unit = _unit(losses)
        line = Transform.of(losses).plan(c, eps, log_size, effort)
        # A lattice may be finer than doubles are.
        if unit is not None and line.period < _FINEST * float(step_ball(unit).mid()):
            kernel = LatticeKernel(base=_base(losses), unit=step_ball(unit))
            on_lattice = replace(
                line,
                most_nodes=_FINEST // 2,
                threshold=line.threshold - c * float(kernel.unit.mid()),
            )
            found = invert(losses, kernel, on_lattice)
            if found is not None:
                return cls(sums=(found,))
        if has_few_sums(losses):
            return cls(sums=(Enumeration.of(losses),))
        end = laplace_end(losses, eps, 2 / c)
        if end is not None:
            return cls(sums=(end,))
        if has_gaussian_sums(losses):
            return cls(sums=(NoiseSums.of(losses),))
        inverted = cls._inverted(losses, line, eps)
        if inverted is not None:
            return inverted
        if has_laplace_sums(losses):
            return cls(sums=(laplace_sums(losses),))
        if has_rows_sums(losses):
            return cls(sums=(NoiseSums.of(losses),))
        # δ is off by a share of c(c + 1)h²/8, and ε by a share of (c + 1)h²/8.
        aim = _RESOLUTION * max(eps, 1 / (c + 1))
        line = Transform.of(losses).plan(c, eps, log_size, _BETWEEN_EFFORT)
        line = replace(line, threshold=line.threshold + _LEFT_OUT)
        nodes = line.period / math.sqrt(8 * aim / (c + 1))
        most = max(min(_BETWEEN_WORK // len(losses), _MOST_BETWEEN), _ENOUGH_BETWEEN)
        nodes = int(min(max(nodes, _ENOUGH_BETWEEN), most)) if line.is_finite else 0
        while nodes >= _LEAST_BETWEEN and line.is_finite:
            between = sums_around(losses, line, nodes)
            if between is not None:
                return cls(sums=between)
            nodes = int(nodes / _COARSER)
        if has_drops(losses):
            return cls(sums=(Drops(losses=losses),))
        raise NumericalError(
            f"delta near epsilon={eps!r} needs a line that is beyond doubles, or more than "
            f"{_MOST_BETWEEN} nodes"
        )

    @classmethod
    def of_few_nodes(
        cls, losses: Transforms, c: float, eps: float, log_size: float, effort: float
    ) -> _Sums | None:
        """One sum where M falls fast along its line; None where it doesn't."""
        line = replace(
            Transform.of(losses).plan(c, eps, log_size, effort),
            most_nodes=_FEW_NODES,
            most_work=_FEW_NODES * 10,
        )
        return cls._inverted(losses, line, eps)

    @classmethod
    def _inverted(cls, losses: Transforms, line: Line, eps: float) -> _Sums | None:
        """By balls, but for many nodes of samples where doubles are sharp enough."""
        smooth = any(isinstance(loss, SmoothLoss) for loss, _ in losses)
        if smooth:
            line = replace(line, most_nodes=min(line.most_nodes, _MOST_SMOOTH))
        if any(isinstance(loss, ExponentialLoss) for loss, _ in losses):
            balls = _FEWER_BALLS if smooth else _FEW_BALLS
            few = replace(line, most_work=min(line.most_work, balls * (len(losses) + WORK)))
            found = invert(losses, PlainKernel(), few)
            if found is not None:
                return cls(sums=(found,))
            doubles = sum_in_doubles(losses, line)
            if doubles is not None:
                near = doubles.value(arb(eps))
                if near.rad() <= _IN_DOUBLES * max(line.c * eps, 1.0) * near.lower():
                    return cls(sums=(doubles,))
            if smooth:  # terms are many
                return None
        found = invert(losses, PlainKernel(), line)
        return None if found is None else cls(sums=(found,))

    @property
    def is_between(self) -> bool:
        """Whether the result's width is that of two sums, of doubles or of a grid."""
        return isinstance(self.sums[0], Drops | SampledSum | NodesInDoubles)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        balls = [found.value(epsilon) for found in self.sums]
        return balls[0].upper().union(balls[1].lower()) if len(balls) == 2 else balls[0]


def _merged(losses: Losses) -> Losses:
    counts: Counter[PrivacyLoss] = Counter()
    for loss, count in losses:
        counts[loss] += count
    return tuple(sorted(counts.items(), key=repr))


def _reversed(losses: Losses) -> Losses:
    return tuple((loss.reverse(), count) for loss, count in losses)


@lru_cache(maxsize=64)
def _unit(losses: Losses) -> Step | None:
    """The common unit of all differences between atoms, if there is one."""
    spacings: dict[Step, None] = {}
    for loss, _ in losses:
        support = loss.support
        if support is None:
            return None
        spacings.update(dict.fromkeys(support.spacings))
    return common_unit(spacings) if spacings else None


def _base(losses: Losses) -> arb:
    total = arb(0)
    for loss, count in losses:
        support = loss.support
        assert support is not None  # noqa: S101
        total += count * sum((n * step_ball(step) for step, n in support.base), arb(0))
    return total


def _log(value: Fraction) -> float:
    with ctx.workprec(64):
        return float(to_arb(value).log().mid())


def _up(value: float) -> float:
    return min(math.nextafter(value, math.inf), 1.0)
