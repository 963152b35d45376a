"""δ(ε) and ε(δ) of a sum of losses for the pair in one order.

Where a result is wide the next way is tried, and what several ways prove is intersected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from flint import acb, arb, ctx

from dpverify.accounting.composition._drops import Drops, has_drops
from dpverify.accounting.composition._grid import GridDirection, by_the_largest, require_few
from dpverify.accounting.composition._noise_sums import has_closed_sums
from dpverify.accounting.composition._rays import ray_delta, ray_epsilon, ray_losses
from dpverify.accounting.composition._root import WIDTH, root
from dpverify.accounting.composition._saddle import Transform
from dpverify.accounting.composition._sampled import (
    SAMPLED_EFFORTS,
    SampledSum,
    one_release,
    sampled_bounds,
    sampled_guess,
    sampled_root,
    sampled_value,
)
from dpverify.accounting.composition._sums import Sums, common_spacing
from dpverify.accounting.losses.base import (
    ExponentialLoss,
    Losses,
    PrivacyLoss,
    Transforms,
    escaping,
    log_moment,
    most_lost,
    transform,
    transforms,
)
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.discrete_samples import cut_discrete
from dpverify.accounting.losses.poisson_sampled import MixtureLoss
from dpverify.accounting.losses.smooth_samples import CutLoss, SmoothBatchLoss, SmoothLoss
from dpverify.accounting.solve import last_holding
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError
from dpverify.execution.arithmetic import within_doubles

__all__ = ["CutDirection", "Direction", "TailedDirection", "direction_of", "without_tails"]

# Precision in bits, and the logarithm of the relative error that aliases and omitted nodes may
# make together; the next pair is tried where a result is wider than WIDTH.
_EFFORTS = ((128, 36.0), (192, 50.0), (384, 120.0), (1024, 400.0))
_NARROW = 5e-10  # relative width of ε of samples, from which on no more effort is made
_ENOUGH = 1e-9  # relative width of ε or δ along rays, from which on slower ways aren't tried
_NEAR = 1e-12  # relative distance at which a search by values of δ ends
_WIDE = 1e-6  # relative width of δ or ε of samples, from which on a lattice is tried as well
_SHARP, _ROUNDS = 1e-8, 3  # relative width of ε between two sums, and tries to reach it
# Samples that are nearly normal without tails, and a rate where nothing else is as fast.
_FEW_TIMES, _MOST_MU_SQUARED, _LOW_RATE = 4, Fraction(1, 36), Fraction(1, 10_000)
# Samples with the record, a δ, and a μ² where rays are fast.
_RARE, _LARGE, _STEEP = 0.1, 1e-9, Fraction(1, 2)
_LESS = 20.0  # −ln of how far below an estimate δ may be
_COARSE = 1e-3  # relative width of δ from which on the grid of drops is tried as well


def direction_of(losses: Losses) -> Direction | GridDirection:
    """By what is known of all losses: their moments, or their tails alone."""
    replaced = [isinstance(loss, MixtureLoss) and loss.mixture.replaced for loss, _ in losses]
    smooth = [isinstance(loss, SmoothLoss) for loss, _ in losses]
    if any(replaced) or any(smooth):
        require_few([count for _, count in losses])
    known = transforms(losses)
    alone = losses[0][1] == len(losses) == 1  # which is known by its tails
    if alone and (known is None or all(smooth)):
        return GridDirection(losses=losses)
    return TailedDirection(losses=losses) if known is None else Direction(losses=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
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
            rare = count >= _FEW_TIMES and loss.rate < _LOW_RATE
            return rare and loss.base.mu_squared <= _MOST_MU_SQUARED
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
        rest = delta - escaping(self.losses)
        if rest <= 0 or not sampled:
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
            return bool(moment * (-arb(c) * to_arb(eps)).exp() * factor <= to_arb(rest))
        return False

    def _saddle(self, eps: Fraction) -> float:
        return Transform.of(self.losses).saddle_at(float(eps))

    def delta_at(self, eps: Fraction, target: Fraction | None = None) -> Enclosure:
        """Encloses δ(ε), and no more narrowly than what tells it from a target."""
        if not self.is_smooth:
            return self._by_few_outputs(eps) or self.delta_by_moments(eps)
        ball = self._along_rays(eps)
        if ball is not None:
            found = Enclosure.of_ball(ball)
            return Enclosure(max(found.lower, 0.0), min(found.upper, 1.0))
        return self._or_others(
            lambda: self.delta_by_moments(eps), lambda other: other.delta_at(eps), target=target
        )

    def _by_few_outputs(self, eps: Fraction) -> Enclosure | None:
        """The value δ(ε) by these; None where that isn't narrow."""
        if not self._is_off_lattice or self._beyond(eps):
            return None
        size = Transform.of(self.losses).log_size(self._saddle(eps), float(eps))
        cut = self._of_few_outputs(Fraction(math.exp(min(size, 0.0) - _LESS)))
        found = cut and cut.delta_at(eps)
        return found if found and found.width <= WIDTH else None

    @property
    def _is_off_lattice(self) -> bool:
        """Whether discrete Gaussian noise has neither a lattice nor noise that makes M fall."""
        kinds = [type(loss) for loss, _ in self.losses]
        if DiscreteGaussianLoss not in kinds or GaussianLoss in kinds:
            return False
        return common_spacing(self.losses) is None

    def _of_few_outputs(self, delta: Fraction) -> CutDirection | None:
        """The same with discrete Gaussian noise cut, where that gives sums in closed form."""
        if not (delta > 0 and self._is_off_lattice):
            return None
        cut = without_tails(self.losses, delta)
        return cut if cut and has_closed_sums(cut.whole.losses) else None

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
            loss, count = self.sampled
            rays_first = self._is_rare(count * one_release(loss).delta_at(eps).upper)
            ball = self._by_few_nodes(c, eps, size)
            if ball is None and rays_first:
                ball = self._along_rays(eps)
            if ball is None:
                ball = sampled_value(loss, count, eps)
                if not rays_first and not ball.rad() <= _ENOUGH * ball.lower():
                    ball = self._along_rays(eps) or ball
            value = Enclosure.of_ball(ball)
            value = Enclosure(max(value.lower, 0.0), min(value.upper, 1.0))
            return self._or_others(lambda: value, lambda other: other.delta_at(eps))
        return self._delta_by_sums(c, eps, size)

    def _or_others(
        self,
        find: Callable[[], Enclosure],
        ask: Callable[[CutDirection | GridDirection], Enclosure],
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

        def cut(found: Enclosure) -> Enclosure | None:
            other = without_tails(self.losses, delta or Fraction(min(found.upper, 1.0)))
            return None if other is None else ask(other)

        ways = [lambda _: find(), cut, lambda _: ask(GridDirection(losses=self.losses))]
        if delta is not None and self.is_cut_first:
            ways[:2] = [cut, lambda _: find()]
        return _together(ways, target)

    def _delta_by_sums(self, c: float, eps: Fraction, size: float) -> Enclosure:
        infinity_mass = escaping(self.losses)
        for precision, effort in _EFFORTS:
            with ctx.workprec(precision):
                try:
                    sums = Sums.near(self.losses, c, float(eps), size, effort)
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

        1 − δ(ε) = E min(1, e^{ε − L}) ≤ e^{cε} E e^{−cL} for c in [0, 1], of laws.
        """
        if not all(loss.is_law for loss, _ in self.losses):
            return 0.0
        c = np.geomspace(1e-12, 0.49, 64)
        at = float(c[np.argmin(c * float(eps) + log_moment(self.losses, -c))])
        most = transform(self.losses, [acb(-at)])[0].real * (arb(at) * to_arb(eps)).exp()
        return Enclosure.of_ball(1 - most).lower if most.is_finite() else 0.0

    def epsilon_at(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""
        if not self.is_smooth:
            cut = self._of_few_outputs(delta) if delta > escaping(self.losses) else None
            found = cut and cut.epsilon_at(delta)
            return found if found and found.width <= _ENOUGH else self.epsilon_by_moments(delta)
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
                few = Sums.of_few_nodes(self.losses, c, guess, log, _EFFORTS[0][1])
                found = few and root(
                    few.value, guess, 1 / c, to_arb(target), ceiling, is_exact=not few.is_between
                )
            return found or self._sampled_epsilon(target, guess, ceiling)
        return self._epsilon_by_sums(delta, c, guess, ceiling)

    def _epsilon_by_sums(
        self, delta: Fraction, c: float, guess: float, ceiling: float
    ) -> Enclosure:
        target = delta - escaping(self.losses)
        log = _log(target)
        with ctx.workprec(_EFFORTS[0][0]):
            least = by_the_largest(self.losses, to_arb(target))
        end = Enclosure(min(least, ceiling), ceiling)
        if end.width <= _NARROW:
            return end
        for precision, effort in _EFFORTS:
            with ctx.workprec(precision):
                sums = Sums.near(self.losses, c, guess, log, effort)
                found = root(
                    sums.value, guess, 1 / c, to_arb(target), ceiling, is_exact=not sums.is_between
                )
                if found is not None:
                    return self._sharper(found, target, ceiling) if sums.is_between else found
                if sums.is_between:  # more precision is no help
                    break
        return self._by_values(delta, guess, ceiling)

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
                sums = Sums.near(self.losses, c, guess, _log(target), _EFFORTS[0][1])
            except NumericalError:
                break
            better = root(sums.value, guess, 1 / c, to_arb(target), ceiling, is_exact=False)
            if better is None:
                break
            before = found.width
            found = _both(found, better)
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
            sums = Sums.of_few_nodes(self.losses, c, float(eps), log_size, effort)
            if sums is None:
                return None
            ball = sums.value(to_arb(eps))
            return ball if sums.is_between or ball.rad() <= WIDTH * ball.lower() else None

    def _is_rare(self, delta: float) -> bool:
        """Whether a record is hardly ever in a sample, seen well there, and this δ is large.

        So rays are fast.
        """
        assert self.sampled is not None  # noqa: S101
        loss, count = self.sampled
        return count * loss.rate < _RARE and loss.base.mu_squared >= _STEEP and delta >= _LARGE

    def _sampled_epsilon(self, target: Fraction, guess: float, ceiling: float) -> Enclosure:
        """By windows and along rays, the fast way first, and by others."""
        ways: list[Callable[[Enclosure], Enclosure | None]] = [
            lambda _: self._epsilon_along_rays(target),
            lambda _: self._by_windows_or_others(target, guess, ceiling),
        ]
        if not self._is_rare(float(target)):
            ways.reverse()
        return _together(ways, enough=_ENOUGH)

    def _by_windows_or_others(self, target: Fraction, guess: float, ceiling: float) -> Enclosure:
        return self._or_others(
            lambda: self._by_windows(target, guess, ceiling),
            lambda other: other.epsilon_at(target),
            delta=target,
        )

    def _by_windows(self, target: Fraction, guess: float, ceiling: float) -> Enclosure:
        assert self.sampled is not None  # noqa: S101
        found = sampled_bounds(*self.sampled, target)
        guess = sampled_guess(*self.sampled, target, guess)
        for sought in (False, True):
            with suppress(NumericalError):  # too many nodes: the bounds stay
                if sought:
                    guess, sums = sampled_root(*self.sampled, target, guess)
                    found = self._between(sums, guess, target, ceiling, found)
                for precision, effort in SAMPLED_EFFORTS if sought else SAMPLED_EFFORTS[:1]:
                    with ctx.workprec(precision):
                        sums = SampledSum.near(*self.sampled, guess, effort, _log(target))
                    found = self._between(sums, guess, target, ceiling, found)
                    if found.width <= _NARROW:
                        return found
        return found

    def _between(
        self, sums: SampledSum, guess: float, target: Fraction, ceiling: float, found: Enclosure
    ) -> Enclosure:
        """What is found, and what a sum near a guess shows."""
        with ctx.workprec(sums.precision):
            scale = 1 / float(sums.inversion.c)
            better = root(sums.value, guess, scale, to_arb(target), ceiling, is_exact=False)
        return found if better is None else _both(found, better)

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
class TailedDirection(GridDirection):
    """The same of losses that are known by their tails, also without outputs that hardly occur."""

    def delta_at(self, eps: Fraction) -> Enclosure:
        """Encloses δ(ε)."""

        def cut(found: Enclosure) -> Enclosure | None:
            size = found.lower or min(found.upper, 1.0)
            other = without_tails(self.losses, Fraction(size))
            return None if other is None else other.delta_at(eps)

        # A lattice may know a bound alone, and then the first cut says how small δ is.
        return _together([lambda _: GridDirection.delta_at(self, eps), cut, cut])

    def epsilon_at(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""
        cut = without_tails(self.losses, delta)
        found = [] if cut is None else [lambda _: cut.epsilon_at(delta)]
        return _together([*found, lambda _: GridDirection.epsilon_at(self, delta)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CutDirection:
    """What the sum of losses without their tails says: f is as large, or larger by a probability.

    Attributes
    ----------
    whole : of the measures that are left
    beyond : bound on the probability that a loss is in its tail
    """

    whole: Direction
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


def without_tails(losses: Losses, delta: Fraction) -> CutDirection | None:
    """The same without tails that make a small share of δ; None where nothing is cut."""
    count = sum(count for _, count in losses)
    left: list[tuple[PrivacyLoss, int]] = []
    beyond, cut = arb(0), False
    with ctx.workprec(_EFFORTS[0][0]):
        most = to_arb(delta) * arb(-_EFFORTS[0][1]).exp() / count
        for loss, times in losses:
            found = CutLoss.of(loss, most) or cut_discrete(loss, most)
            left.append((loss if found is None else found[0], times))
            beyond += 0 if found is None else times * found[1]
            cut = cut or found is not None
    known = transforms(tuple(left))
    return CutDirection(whole=Direction(losses=known), beyond=beyond) if cut and known else None


def _together(
    ways: Sequence[Callable[[Enclosure], Enclosure | None]],
    target: Fraction | None = None,
    enough: float = _WIDE,
) -> Enclosure:
    """What they prove, one after another as long as that is wide, or wide around a target.

    Parameters
    ----------
    ways : each is given what those before it have found, and may find nothing
    enough : relative width that is narrow
    """
    found, first, answered = Enclosure(0.0, math.inf), None, False
    for way in ways:
        if found.width <= enough or not (target is None or target in found):
            break
        try:
            with within_doubles():
                answer = way(found)
        except NumericalError as error:
            first = first or error
            continue
        if answer is not None:
            found, answered = _both(found, answer), True
    if first is not None and not answered:
        raise first
    return found


def _both(one: Enclosure, other: Enclosure) -> Enclosure:
    return Enclosure(max(one.lower, other.lower), min(one.upper, other.upper))


def _log(value: Fraction) -> float:
    with ctx.workprec(64):
        return float(to_arb(value).log().mid())


def _up(value: float) -> float:
    return min(math.nextafter(value, math.inf), 1.0)
