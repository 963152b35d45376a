"""Privacy losses with finitely many values: any finite mechanism, and randomized response."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Self

import numpy as np
from flint import acb, arb, ctx

from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    Log,
    Step,
    Support,
    step_ball,
)
from dpverify.enclosure import SquareRoot, exact, rational, squared, to_arb
from dpverify.errors import require

__all__ = ["AtomicLoss", "FiniteLoss", "ResponseLoss"]


class AtomicLoss(ABC):
    """What all laws with finitely many atoms share."""

    __slots__ = ()

    @abstractmethod
    def atoms(self) -> list[tuple[arb, arb]]:
        """Weight > 0 and loss of every finite atom, at the current precision."""

    @property
    def abscissa(self) -> float:
        """M is finite everywhere."""
        return math.inf

    def max_loss(self) -> arb | None:
        """That of the atoms."""
        return reduce(arb.max, (loss for _, loss in self.atoms()))

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Σ weight·e^{s·loss}."""
        atoms = self.atoms()
        return [sum((w * (s * loss).exp() for w, loss in atoms), acb(0)) for s in points]

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        logs, losses = _doubles(self)
        exponents = logs[:, None] + losses[:, None] * c
        most = exponents.max(axis=0)
        sums: Doubles = most + np.log(np.exp(exponents - most).sum(axis=0))
        return sums

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """A finite trigonometric sum."""
        logs, losses = _doubles(self)
        exponents = logs + losses * c
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        real, imaginary = np.zeros_like(y), np.zeros_like(y)
        for weight, loss in zip(weights, losses, strict=True):
            angle = loss * y
            real += weight * np.cos(angle)
            imaginary += weight * np.sin(angle)
        # A weight's relative error is at most that of its exponent, an angle's error is relative.
        most = float(np.abs(losses).max())
        fixed = len(losses) + 1 + float(np.abs(logs).max()) + 2 * abs(c) * most
        return real + 1j * imaginary, ROUND_OFF * (fixed + most * y)

    def envelope(self, c: float, y: float) -> float:
        """Atoms never die out."""
        del c, y
        return 0.0


@lru_cache(maxsize=1 << 14)
def _doubles(law: AtomicLoss) -> tuple[Doubles, Doubles]:
    """Logarithms of the weights, and the losses, each within 2u relative."""
    with ctx.workprec(96):
        pairs = [(float(w.log().mid()), float(loss.mid())) for w, loss in law.atoms()]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteLoss(AtomicLoss):
    """The loss of a mechanism with finitely many outputs.

    Parameters
    ----------
    pairs : exact probabilities (p, q) of every output under the two neighbours, each side summing
        to 1. Outputs with the same ratio p/q are merged.
    """

    pairs: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        require(bool(self.pairs), "pairs", self.pairs, "not empty")
        exact_pairs = tuple((rational("p", p), rational("q", q)) for p, q in self.pairs)
        object.__setattr__(self, "pairs", exact_pairs)
        require(all(p >= 0 and q >= 0 for p, q in self.pairs), "pairs", self.pairs, "non-negative")
        for side, name in enumerate(("p", "q")):
            total = sum((pair[side] for pair in self.pairs), Fraction(0))
            require(total == 1, f"sum of {name}", total, "exactly 1")
        common = any(p and q for p, q in self.pairs)
        require(common, "pairs", self.pairs, "possible on both sides for one output at least")
        sides: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        for p, q in self.pairs:
            if not (p or q):
                continue
            key = (p / q).as_integer_ratio() if q else (1, 0)
            old = sides.get(key, (Fraction(0), Fraction(0)))
            sides[key] = (old[0] + p, old[1] + q)
        object.__setattr__(self, "pairs", tuple(sides[key] for key in sorted(sides)))

    @property
    def infinity_mass(self) -> Fraction:
        """Mass of p on outputs that q can't give."""
        return sum((p for p, q in self.pairs if not q), Fraction(0))

    @property
    def support(self) -> Support:
        """Differences from the smallest ratio."""
        ratios = sorted(p / q for p, q in self.pairs if p and q)
        least = ratios[0]
        base: tuple[tuple[Step, int], ...] = ()
        if least != 1:
            base = ((Log(least), 1),) if least > 1 else ((Log(1 / least), -1),)
        return Support(base=base, spacings=tuple(Log(r / least) for r in ratios[1:]))

    def atoms(self) -> list[tuple[arb, arb]]:
        """Weight and loss of every output that both sides can give."""
        return [(to_arb(p), to_arb(p / q).log()) for p, q in self.pairs if p and q]

    def reverse(self) -> FiniteLoss:
        """The pairs exchanged."""
        return FiniteLoss(pairs=tuple((q, p) for p, q in self.pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLoss(AtomicLoss):
    """Three-point loss ±step, 0, its own reverse: randomized response and pure ε-privacy.

    Parameters
    ----------
    step : the loss s > 0, exact: ln(keep/other), or ε
    share : probability, where nothing escapes, that the loss is not 0; then it is s with odds e^s.
        Randomized response with B values has share keep + other.
    infinity_mass : probability that the loss is infinite: δ₀ of the worst (ε₀, δ₀)-private pair
    """

    step: Step
    share: Fraction = Fraction(1)
    infinity_mass: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not isinstance(self.step, Log):
            object.__setattr__(self, "step", exact("step", self.step))
        for name in ("share", "infinity_mass"):
            object.__setattr__(self, name, rational(name, getattr(self, name)))
        positive = isinstance(self.step, Log) or squared(self.step) > 0
        require(positive and not _negative(self.step), "step", self.step, "positive")
        require(0 < self.share <= 1, "share", self.share, "in (0, 1]")
        require(0 <= self.infinity_mass < 1, "infinity_mass", self.infinity_mass, "in [0, 1)")

    @property
    def support(self) -> Support:
        """±s, with 0 between them where the share is below 1."""
        if self.share == 1:
            return Support(base=((self.step, -1),), spacings=(_twice(self.step),))
        return Support(base=(), spacings=(self.step,))

    def max_loss(self) -> arb:
        """The step."""
        return step_ball(self.step)

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """One exponential a point: the atoms are symmetric."""
        (up, step), (down, _), *zero = self.atoms()
        rest = zero[0][0] if zero else arb(0)
        turns = [(s * step).exp() for s in points]
        return [up * turn + down / turn + rest for turn in turns]

    def atoms(self) -> list[tuple[arb, arb]]:
        """Up, down and, where it occurs, 0."""
        step = step_ball(self.step)
        other = to_arb((1 - self.infinity_mass) * self.share) / (1 + step.exp())
        found = [(other * step.exp(), step), (other, -step)]
        if self.share < 1:
            found.append((to_arb((1 - self.infinity_mass) * (1 - self.share)), arb(0)))
        return found

    def reverse(self) -> Self:
        """Itself."""
        return self


def _twice(step: Step) -> Step:
    if isinstance(step, Log):
        return Log(step.argument**2)
    return SquareRoot(4 * step.radicand) if isinstance(step, SquareRoot) else 2 * step


def _negative(step: Step) -> bool:
    return isinstance(step, Fraction) and step < 0
