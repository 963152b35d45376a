"""Privacy targets that noise is calibrated for: outside, doubles that guide the proofs end.

A target is a point (ε, δ), or a risk that is at most so large (`Risk`). An advantage of at most a
is (0, a). At most s right guesses of a prior π are one point, as 1 − π + π·δ(ln(1/π − 1)) ≤ s for
π ≤ 1/2. At most a true positive rate t at a false positive rate f is any of the points

    (s, t − e^s f) for 0 ≤ s ≤ ln(t/f):

each proves it alone, and the best of them is the one that asks for the least noise. Where t + f > 1
it is the target (1 − f, 1 − t) turned round: the boundary of (f, t) is symmetric about f + t = 1,
where its slope is 1, so that on this side thresholds below 0 aren't needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TypeVar

from attrs import field, frozen
from attrs.converters import optional
from flint import ctx

from dpverify.accounting.solve import lowest
from dpverify.enclosure import rational_of, short_string, to_arb
from dpverify.errors import ParameterError, require
from dpverify.numbers import to_rational

__all__ = ["LEAST_DELTA", "MOST_DELTA", "Target", "check_delta", "check_target"]

LEAST_DELTA = Fraction(1, 10**300)
"""Smallest target but 0."""
MOST_DELTA = 1 - Fraction(1, 10**15)
"""Largest target."""
_MOST_EPSILON = Fraction(10**100)


def check_target(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse a target that no noise is calibrated for.

    Raises
    ------
    ParameterError
        Naming the value and the range.
    """
    require(0 <= epsilon <= _MOST_EPSILON, "epsilon", short_string(epsilon), "in [0, 1e100]")
    check_delta(delta)


def check_delta(delta: Fraction, *, least: Fraction = LEAST_DELTA) -> None:
    """Refuse a δ that isn't a target: outside [0, 1), or within reach of 0 or 1 but for 0 itself.

    Raises
    ------
    ParameterError
        Naming the value and the range.
    """
    good = delta == 0 or least <= delta <= MOST_DELTA
    require(good, "delta", _shown(delta), f"0, or in [{short_string(least)}, 1 - 1e-15]")


def _shown(share: Fraction) -> str:
    """In few digits, near 1 of what is missing to it."""
    near_one = Fraction(999, 1000) < share < 1
    return f"1 - {short_string(1 - share)}" if near_one else short_string(share)


_Noise = TypeVar("_Noise")
_PRECISION = 256
_SLACK = Fraction(1, 2**40)  # thresholds beside the proven one stay within the target too
_LAST_DIGIT = Fraction(1, 2**51)
_PLACES = 32  # where noise of some kinds reaches the target at some thresholds only
_KINDS = (("epsilon",), ("advantage",), ("success",), ("tpr", "fpr"))


@frozen(kw_only=True)
class Target:
    """What noise has to reach: a point (ε, δ), or a risk.

    Parameters
    ----------
    epsilon, delta : the point; δ is 0 by default
    advantage : the largest true less false positive rate
    success, prior : how often a guess may be right, of what has the prior, by default 1/2
    tpr, fpr : the largest true positive rate at a false positive rate
    """

    epsilon: Fraction | None = field(default=None, converter=optional(to_rational))
    delta: Fraction | None = field(default=None, converter=optional(to_rational))
    advantage: Fraction | None = field(default=None, converter=optional(to_rational))
    success: Fraction | None = field(default=None, converter=optional(to_rational))
    prior: Fraction | None = field(default=None, converter=optional(to_rational))
    tpr: Fraction | None = field(default=None, converter=optional(to_rational))
    fpr: Fraction | None = field(default=None, converter=optional(to_rational))

    def __attrs_post_init__(self) -> None:
        chosen = [
            names for names in _KINDS if any(getattr(self, name) is not None for name in names)
        ]
        if len(chosen) != 1 or any(getattr(self, name) is None for name in chosen[0]):
            given = [name for names in _KINDS for name in names if getattr(self, name) is not None]
            rule = "one of epsilon (with delta), advantage, success (with prior), tpr with fpr"
            raise ParameterError("target", " and ".join(given) or "missing", rule)
        for name, partner in (("delta", self.epsilon), ("prior", self.success)):
            alone = getattr(self, name) is not None and partner is None
            require(not alone, name, getattr(self, name), f"left out for {chosen[0][0]}")

    def point(self) -> tuple[Fraction, Fraction] | None:
        """The one (ε, δ) that it is; None for rates."""
        if self.epsilon is not None:
            return self.epsilon, self.delta or Fraction(0)
        if self.advantage is not None:
            require(0 < self.advantage < 1, "advantage", self.advantage, "in (0, 1)")
            return Fraction(0), self.advantage
        if self.success is not None:
            prior = Fraction(1, 2) if self.prior is None else self.prior
            require(0 < prior < 1, "prior", prior, "in (0, 1)")
            most = max(prior, 1 - prior)
            rule = f"above {most}, which a guess without the release reaches, and below 1"
            require(most < self.success < 1, "success", self.success, rule)
            with ctx.workprec(_PRECISION):
                epsilon = rational_of((to_arb(most) / to_arb(1 - most)).log().lower())
            share = _within(self.success, most, _LAST_DIGIT)
            return max(epsilon, Fraction(0)), (share - most) / (1 - most)
        return None

    def least(
        self,
        noise_for: Callable[[Fraction, Fraction], _Noise],
        size: Callable[[_Noise], float],
        *,
        most: Fraction = Fraction(1),
        accuracy: float = 1e-8,
    ) -> _Noise:
        """The least noise that reaches it; of several points that prove it, by the best one.

        Parameters
        ----------
        noise_for : the least noise for a point (ε, δ), which proves that it keeps to it
        size : of some noise
        most : a δ that no noise of this kind exceeds, at any ε; 1 if there is none
        accuracy : relative, of the search among points, in which the noise is flat where it is best
        """
        point = self.point()
        share, rate = (Fraction(0), Fraction(0)) if point else self._rates()
        self._require_some_noise(most)
        if point is not None:
            return noise_for(*point)
        with ctx.workprec(_PRECISION):
            end = rational_of((to_arb(share) / to_arb(rate)).log().lower())

        def at(threshold: Fraction) -> _Noise:
            with ctx.workprec(_PRECISION):
                delta = rational_of(
                    (to_arb(share) - to_arb(threshold).exp() * to_arb(rate)).lower()
                )
            return noise_for(threshold, delta)

        def height(threshold: float) -> float:
            try:
                return size(at(Fraction(threshold)))
            except ParameterError:  # noise of this kind doesn't reach every point
                return math.inf

        from scipy import optimize  # takes its time, and only noise of two numbers needs it

        last, width = float(end) * (1 - 2.0**-30), accuracy * float(end)
        try:
            found = optimize.minimize_scalar(
                lambda threshold: size(at(Fraction(threshold))),
                bounds=(0.0, last),
                method="bounded",
                options={"xatol": width},
            )
            best = float(found.x)
        except ParameterError:
            near = min((last * place / _PLACES for place in range(_PLACES + 1)), key=height)
            if math.isinf(height(near)):
                raise
            reach = last / _PLACES
            best = lowest(height, max(near - reach, 0.0), min(near + reach, last), width=width)
            best = min(best, near, key=height)
        noises = [at(Fraction(best))]
        with suppress(ParameterError):  # noise of this kind may have no largest loss
            noises.append(noise_for(end, Fraction(0)))
        return min(noises, key=size)

    def _require_some_noise(self, most: Fraction) -> None:
        """Refuse a target that all noise reaches, as its δ never exceeds `most`."""
        limits = {"delta": most, "advantage": most}
        if self.success is not None:
            anyway = max(self.prior or Fraction(1, 2), 1 - (self.prior or Fraction(1, 2)))
            limits["success"] = anyway + (1 - anyway) * most
        if self.fpr is not None:
            limits["tpr"] = self.fpr + most
        for name, limit in limits.items():
            value = getattr(self, name)
            needed = most == 1 or value is None or value < limit
            rule = f"below {_shown(limit)}, which is never exceeded, however little noise there is"
            require(needed, name, value, rule)

    def _rates(self) -> tuple[Fraction, Fraction]:
        """The rates t and f, or those of the same target turned round."""
        share, rate = self.tpr, self.fpr
        if share is None or rate is None:
            raise ParameterError("target", "missing", "rates")
        require(0 < rate < 1, "fpr", rate, "in (0, 1)")
        require(
            rate < share < 1, "tpr", share, f"above fpr={rate}, which guessing has, and below 1"
        )
        share = _within(share, rate, _SLACK)
        return (share, rate) if share + rate <= 1 else (1 - rate, 1 - share)


def _within(share: Fraction, least: Fraction, slack: Fraction) -> Fraction:
    """Next below a share above `least`, so that what is proven of it in doubles is below it too."""
    return max(share * (1 - slack), (share + least) / 2)
