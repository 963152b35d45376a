"""Privacy losses with finitely many values: any finite mechanism, and randomized response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np
from attrs import evolve, field, frozen
from flint import acb, arb, ctx

from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    EvenHeights,
    Log,
    Step,
    Support,
    TailedLoss,
    TransformedLoss,
    step_ball,
)
from dpverify.accounting.losses.nodes import Nodes
from dpverify.enclosure import Real, SquareRoot, exact, number_string, rational, squared, to_arb
from dpverify.errors import require
from dpverify.numbers import to_count, to_positive_rational, to_rational

__all__ = [
    "AtomicLoss",
    "DiscreteLaplaceLoss",
    "DominatingLoss",
    "FiniteLoss",
    "ResponseLoss",
    "SelectionLoss",
    "StaircaseLoss",
]

_MOST_ATOMS = 1 << 14
_MANY = 32  # atoms, from which on a product of matrices takes less time than turns


class AtomicLoss(TransformedLoss, TailedLoss):
    """What all laws with finitely many atoms share."""

    __slots__ = ()

    @abstractmethod
    def atoms(self) -> list[tuple[arb, arb]]:
        """Weight > 0 and loss of every finite atom, at the current precision."""

    def max_loss(self) -> arb | None:
        """That of the atoms."""
        return reduce(arb.max, (loss for _, loss in self.atoms()))

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Σ weight·e^{s·loss}."""
        atoms = self.atoms()
        return [sum((w * (s * loss).exp() for w, loss in atoms), acb(0)) for s in points]

    def transform_along(self, nodes: Nodes) -> list[acb]:
        """The same as a product of matrices."""
        atoms = self.atoms()
        weights = [acb(w * (nodes.c * loss).exp()) for w, loss in atoms]
        return nodes.sums(weights, [acb(loss) for _, loss in atoms])

    def tails(self, place: arb) -> tuple[arb, arb]:
        """Sums over the atoms; one that may lie on either side of the place counts with a ball."""
        own, other = to_arb(self.infinity_mass), arb(0)
        for weight, loss in self.atoms():
            if not loss < place:
                mirrored = weight * (-loss).exp()
                sure = bool(loss >= place)
                own += weight if sure else weight.union(arb(0))
                other += mirrored if sure else mirrored.union(arb(0))
        return own, other

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        logs, losses = _doubles(self)
        exponents = logs[:, None] + losses[:, None] * c
        most = exponents.max(axis=0)
        sums: Doubles = most + np.log(np.exp(exponents - most).sum(axis=0))
        return sums

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """A finite trigonometric sum."""
        weights, error = self._weights(c, y)
        real, imaginary = np.zeros_like(y), np.zeros_like(y)
        for weight, loss in zip(weights, _doubles(self)[1], strict=True):
            angle = loss * y
            real += weight * np.cos(angle)
            imaginary += weight * np.sin(angle)
        return real + 1j * imaginary, error

    def _weights(self, c: float, y: Doubles) -> tuple[Doubles, Doubles]:
        """Of the atoms at c, and a bound on what they and the angles make a sum err by.

        A weight's relative error is at most that of its exponent, an angle's error is relative.
        """
        logs, losses = _doubles(self)
        exponents = logs + losses * c
        weights = np.exp(exponents - exponents.max())
        most = float(np.abs(losses).max())
        fixed = len(losses) + 1 + float(np.abs(logs).max()) + 2 * abs(c) * most
        return weights / weights.sum(), ROUND_OFF * (fixed + most * y)

    def characteristic_along(self, c: float, heights: EvenHeights) -> Characteristic:
        """The same: one turn for each size of a loss, or of many atoms a product of matrices."""
        losses = _doubles(self)[1]
        weights, error = self._weights(c, heights.y)
        if len(losses) >= _MANY:
            values, off = heights.sum(weights.astype(np.complex128), losses.astype(np.complex128))
            return values, off + error
        sides: dict[float, list[float]] = {}
        for weight, loss in zip(weights, losses, strict=True):
            sides.setdefault(abs(loss), [0.0, 0.0])[int(loss < 0)] += weight
        values = np.zeros(heights.y.shape, dtype=np.complex128)
        for size, (up, down) in sides.items():
            turn = heights.turns(size)
            values.real += (up + down) * turn.real
            values.imag += (up - down) * turn.imag
        return values, error + ROUND_OFF * (1 + float(np.abs(losses).max()) * heights.y)

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


Pairs = tuple[tuple[Fraction, Fraction], ...]


def _to_pairs(values: Iterable[tuple[Real, Real]]) -> Pairs:
    pairs = tuple((rational("p", p), rational("q", q)) for p, q in values)
    require(bool(pairs), "pairs", pairs, "not empty")
    require(all(p >= 0 and q >= 0 for p, q in pairs), "pairs", pairs, "non-negative")
    for side, name in enumerate(("p", "q")):
        total = sum((pair[side] for pair in pairs), Fraction(0))
        require(total == 1, f"sum of {name}", total, "exactly 1")
    common = any(p and q for p, q in pairs)
    require(common, "pairs", pairs, "such that at least one output is possible on both sides")
    sides: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
    for p, q in pairs:
        if not (p or q):
            continue
        key = (p / q).as_integer_ratio() if q else (1, 0)
        old = sides.get(key, (Fraction(0), Fraction(0)))
        sides[key] = (old[0] + p, old[1] + q)
    return tuple(sides[key] for key in sorted(sides))


@frozen(kw_only=True)
class FiniteLoss(AtomicLoss):
    """The loss of a mechanism with finitely many outputs.

    Parameters
    ----------
    pairs : exact probabilities (p, q) of every output under the two neighbours, each side summing
        to 1. Outputs with the same ratio p/q are merged.
    """

    pairs: Pairs = field(converter=_to_pairs)

    def __str__(self) -> str:
        sides = (", ".join(map(number_string, side)) for side in zip(*self.pairs, strict=True))
        return f"laws ({'; '.join(sides)})"

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
        return evolve(self, pairs=tuple((q, p) for p, q in self.pairs))


@frozen(kw_only=True)
class DominatingLoss(FiniteLoss):
    """The same of a pair that dominates, and isn't known to be attained."""


def _to_step(value: Step | Real) -> Step:
    if isinstance(value, Log):  # of a number above 1
        return value
    step = exact("step", value)
    positive = squared(step) > 0 and (isinstance(step, SquareRoot) or step > 0)
    require(positive, "step", value, "positive")
    return step


@frozen(kw_only=True)
class ResponseLoss(AtomicLoss):
    """Three-point loss ±step, 0, its own reverse: randomized response and pure ε-privacy.

    Parameters
    ----------
    step : the loss s > 0, exact: ln(keep/other), or ε
    share : probability, where nothing escapes, that the loss is not 0; then it is s with odds e^s.
        Randomized response with B values has share keep + other.
    infinity_mass : probability that the loss is infinite: δ₀ of the worst (ε₀, δ₀)-private pair
    """

    step: Step = field(converter=_to_step)
    share: Fraction = field(default=Fraction(1), converter=to_rational)
    infinity_mass: Fraction = field(default=Fraction(0), converter=to_rational)

    def __attrs_post_init__(self) -> None:
        require(0 < self.share <= 1, "share", self.share, "in (0, 1]")
        require(0 <= self.infinity_mass < 1, "infinity_mass", self.infinity_mass, "in [0, 1)")

    def __str__(self) -> str:
        delta = f", delta={number_string(self.infinity_mass)}" if self.infinity_mass else ""
        if not isinstance(self.step, Log):
            step = self.step
            epsilon = number_string(step) if isinstance(step, Fraction) else str(step)
            return f"ApproxDP(epsilon={epsilon}{delta})"
        odds = self.step.argument
        if delta:
            return f"ApproxDP.from_odds({number_string(odds)}{delta})"
        other = self.share / (1 + odds)
        others = f", other={number_string(other)}" if self.share < 1 else ""
        return f"RandomizedResponse(keep={number_string(other * odds)}{others})"

    @property
    def support(self) -> Support:
        """±s, with 0 between them where the share is below 1."""
        if self.share == 1:
            return Support(base=((self.step, -1),), spacings=(_twice(self.step),))
        return Support(base=(), spacings=(self.step,))

    def max_loss(self) -> arb:
        """The step."""
        return step_ball(self.step)

    @property
    def exact_max_loss(self) -> Fraction | None:
        """The step, of nats."""
        return self.step if isinstance(self.step, Fraction) else None

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


@frozen(kw_only=True)
class SelectionLoss(ResponseLoss):
    """The same of a mechanism of which only its largest loss is proven: δ > 0 may be less."""


@frozen(kw_only=True)
class DiscreteLaplaceLoss(AtomicLoss):
    """The loss of a whole number with discrete Laplace noise, its own reverse.

    Parameters
    ----------
    scale : b > 0 of the noise, exact
    sensitivity : Δ, how far the number moves: L takes the values (Δ − 2o)/b for 0 ≤ o ≤ Δ
    """

    scale: Fraction = field(converter=to_positive_rational)
    sensitivity: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        rule = f"at most {_MOST_ATOMS} in a composition"
        require(self.sensitivity <= _MOST_ATOMS, "sensitivity", self.sensitivity, rule)

    def __str__(self) -> str:
        moved = f", sensitivity={self.sensitivity}" if self.sensitivity > 1 else ""
        return f"DiscreteLaplace(scale={number_string(self.scale)}{moved})"

    @property
    def support(self) -> Support:
        """Every second multiple of 1/b."""
        return Support(base=((1 / self.scale, -self.sensitivity),), spacings=(2 / self.scale,))

    @property
    def exact_max_loss(self) -> Fraction:
        """Of all outputs on one side."""
        return self.sensitivity / self.scale

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """The inner atoms are a geometric series of ratio v = qe^(−2s/b)."""
        step, size = to_arb(1 / self.scale), self.sensitivity
        q = (-step).exp()
        found = []
        for s in points:
            turn = (s * step).exp()
            up, down = turn**size, turn**-size
            v = q / turn**2
            inner = (1 - q) * up * v * _geometric(v, size - 1)
            found.append((up + q**size * down + inner) / (1 + q))
        return found

    def atoms(self) -> list[tuple[arb, arb]]:
        """One for each output between the two numbers, and one for all on either side."""
        step, size = to_arb(1 / self.scale), self.sensitivity
        q = (-step).exp()
        inner = (1 - q) / (1 + q)
        found = [(1 / (1 + q), size * step), (q**size / (1 + q), -size * step)]
        return found + [(inner * q**o, (size - 2 * o) * step) for o in range(1, size)]


@frozen(kw_only=True)
class StaircaseLoss(AtomicLoss):
    """The loss of staircase noise that moves by one step's length, its own reverse.

    Parameters
    ----------
    epsilon : ε₀ > 0, the loss but for its sign where it isn't 0; exact
    gamma : which part of a step is high
    """

    epsilon: Fraction = field(converter=to_positive_rational)
    gamma: Fraction = field(converter=to_rational)

    def __str__(self) -> str:
        numbers = f"epsilon={number_string(self.epsilon)}, gamma={number_string(self.gamma)}"
        return f"Staircase({numbers})"

    @property
    def support(self) -> Support:
        """±ε₀, with 0 between them unless half of a step is high."""
        if self.gamma == Fraction(1, 2):
            return Support(base=((self.epsilon, -1),), spacings=(2 * self.epsilon,))
        return Support(base=(), spacings=(self.epsilon,))

    @property
    def exact_max_loss(self) -> Fraction:
        """The step."""
        return self.epsilon

    def up(self) -> arb:
        """P[L = ε₀], at the current precision: δ(0)/(1 − e^(−ε₀))."""
        fall, high = to_arb(-self.epsilon).exp(), to_arb(self.gamma)
        near = high + fall * (arb("0.5") - high) if self.gamma <= Fraction(1, 2) else arb("0.5")
        return near / (high + fall * (1 - high))

    def atoms(self) -> list[tuple[arb, arb]]:
        """Up, down and, where it occurs, 0."""
        step, up = to_arb(self.epsilon), self.up()
        down = up * (-step).exp()
        found = [(up, step), (down, -step)]
        return found if self.gamma == Fraction(1, 2) else [*found, (1 - up - down, arb(0))]


def _geometric(ratio: acb, count: int) -> acb:
    """1 + v + … + v^(n − 1), by halves: nothing is divided by a 1 − v near 0."""
    total, last = acb(0), acb(1)  # of the terms so far, and the power after them
    for digit in f"{count:b}":
        total, last = total * (1 + last), last * last
        if digit == "1":
            total, last = total + last, last * ratio
    return total


def _twice(step: Step) -> Step:
    if isinstance(step, Log):
        return Log(step.argument**2)
    return SquareRoot(4 * step.radicand) if isinstance(step, SquareRoot) else 2 * step
