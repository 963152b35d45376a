"""The two laws of a release on a sample, in doubles: masses between losses, in logarithms.

Noise of scale 1 is moved by a = Δ/σ, or Δ/b. Which laws stand against one another is said in
docs/accounting-subsampling.md; here they are written down as densities of the output z, but for
batches, where a pair is made of the removal's above 0, its mirror image below, and the rest at 0.
A law's atoms stand apart, and lie on its lattice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

__all__ = [
    "Batch",
    "Doubles",
    "Laplace",
    "Lattice",
    "Normal",
    "Pair",
    "Removal",
    "Replaced",
    "answers",
]

Doubles = NDArray[np.float64]
Masses = tuple[Doubles, Doubles, Doubles]
"""Logarithms of both laws' masses, and what they are off by together."""
Pairs = list[list[tuple[float, float]]]
"""Probabilities under both laws, of the pair in each order."""
_UNIT = 2.0**-53


class Lattice(NamedTuple):
    """Losses `start` + i·`step` for 0 ≤ i ≤ `cells`."""

    start: float
    step: float
    cells: int


class Atom(NamedTuple):
    """A loss, and the logarithms of both laws' masses there."""

    loss: float
    p: float
    r: float


class Noise(Protocol):
    """One number's; `reach` is where it ends for practical purposes."""

    @property
    def a(self) -> float: ...
    @property
    def most(self) -> float:
        """The largest loss."""
        ...

    def log_masses(self, z: Doubles) -> tuple[Doubles, Doubles]:
        """Logarithms of what lies between the points, and what they are off by."""
        ...

    def place(self, ell: Doubles) -> Doubles:
        """Where the loss of noise at a against noise at 0 is ℓ."""
        ...


@dataclass(frozen=True, slots=True)
class Normal:
    a: float

    @property
    def most(self) -> float:
        return math.inf

    def log_masses(self, z: Doubles) -> tuple[Doubles, Doubles]:
        left = z[:-1] + z[1:] < 0
        most = log_ndtr(np.where(left, z[1:], -z[:-1]))
        least = log_ndtr(np.where(left, z[:-1], -z[1:]))
        with np.errstate(divide="ignore", invalid="ignore"):
            part = -np.expm1(np.where(least > -math.inf, least - most, -math.inf))
            return most + np.log(part), 20 * _UNIT * (1 + np.abs(most)) / part

    def place(self, ell: Doubles) -> Doubles:
        return ell / self.a + self.a / 2


@dataclass(frozen=True, slots=True)
class Laplace:
    a: float

    @property
    def most(self) -> float:
        return self.a

    def log_masses(self, z: Doubles) -> tuple[Doubles, Doubles]:
        near = np.minimum(np.abs(z[:-1]), np.abs(z[1:]))
        part = -np.expm1(-np.diff(z))
        with np.errstate(divide="ignore", invalid="ignore"):
            across = np.log(-np.expm1(-np.abs(z[:-1])) - np.expm1(-np.abs(z[1:])))
            inside = np.where(z[:-1] * z[1:] < 0, across, np.log(part) - near)
            return inside - math.log(2), 20 * _UNIT * (1 + near) / part

    def place(self, ell: Doubles) -> Doubles:
        return np.clip((ell + self.a) / 2, 0.0, self.a)


class Pair(Protocol):
    """What lattices need of two laws."""

    @property
    def is_mirrored(self) -> bool:
        """Whether the pair in the other order has the same loss."""
        ...

    @property
    def is_bounded(self) -> bool:
        """Whether there is a largest loss."""
        ...

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest loss that count."""
        ...

    @property
    def atoms(self) -> Sequence[Atom]: ...

    @property
    def floor(self) -> float:
        """A loss that none is below, and none is; −∞ where there is none such."""
        ...

    def lattice(self, step: float) -> Lattice:
        """Of steps of about this length, from one end to the other."""
        ...

    def masses(self, losses: Doubles) -> Masses:
        """Between rising losses, without atoms."""
        ...


@dataclass(frozen=True, slots=True)
class _OnSample:
    noise: Noise
    q: float
    reach: float = 0.0

    @property
    def is_bounded(self) -> bool:
        return self.noise.most < math.inf

    def _mixed(self, z: Doubles, moved: float) -> tuple[Doubles, Doubles]:
        """Of noise that is moved with probability q."""
        one, off = self.noise.log_masses(z - moved)
        if self.q == 1:
            return one, off
        none, more = self.noise.log_masses(z)
        return np.logaddexp(math.log1p(-self.q) + none, math.log(self.q) + one), off + more

    def _beyond(self, z: float, moved: float) -> float:
        return float(self._mixed(np.array([z, math.inf]), moved)[0][0])

    def _before(self, z: float, moved: float) -> float:
        return float(self._mixed(np.array([-math.inf, z]), moved)[0][0])


@dataclass(frozen=True, slots=True)
class Removal(_OnSample):
    """Noise at a by a coin and otherwise at 0, against noise at 0."""

    is_mirrored = False

    @property
    def ends(self) -> tuple[float, float]:
        most, a = self.noise.most, self.noise.a
        if most < math.inf:
            return self._loss(-most), self._loss(most)
        last = self._loss(a * (a / 2 + self.reach))
        return (self._loss(-a * (self.reach + a / 2)) if self.q == 1 else self.floor), last

    @property
    def floor(self) -> float:
        return math.log1p(-self.q) if self.q < 1 and not self.is_bounded else -math.inf

    @property
    def atoms(self) -> Sequence[Atom]:
        if not self.is_bounded:
            return ()
        a, (low, high) = self.noise.a, self.ends
        none = math.log(0.5), -a - math.log(2)  # of noise at 0, before 0 and beyond a
        return Atom(low, self._before(0, a), none[0]), Atom(high, self._beyond(a, a), none[1])

    def lattice(self, step: float) -> Lattice:
        start, end = self.ends
        count = max(math.ceil((end - start) / step), 1)
        return Lattice(start, (end - start) / count if self.atoms else step, count)

    def masses(self, losses: Doubles) -> Masses:
        z = self.place(losses)
        p, off = self._mixed(z, self.noise.a)
        return p, self.noise.log_masses(z)[0], off

    def place(self, losses: Doubles) -> Doubles:
        """The z of a loss."""
        if self.q == 1:
            return self.noise.place(losses)
        floor = math.log1p(-self.q)
        above = np.maximum(losses - floor, 0.0)
        with np.errstate(divide="ignore"):
            ell = floor - math.log(self.q) + above + np.log(-np.expm1(-above))
        return self.noise.place(ell)

    def _loss(self, ell: float) -> float:
        if self.q == 1:
            return ell
        if ell < 1:
            return math.log1p(self.q * math.expm1(ell))
        return float(np.logaddexp(math.log1p(-self.q), math.log(self.q) + ell))


class _Mirrored(_OnSample):
    """A pair that is its own mirror image: its lattice holds 0 and both ends."""

    __slots__ = ()
    is_mirrored = True
    floor = -math.inf

    @property
    def ends(self) -> tuple[float, float]:
        return -self._most, self._most

    @property
    def _most(self) -> float:
        raise NotImplementedError

    def lattice(self, step: float) -> Lattice:
        count = max(math.ceil(self._most / step), 1)
        return Lattice(-self._most, self._most / count, 2 * count)


@dataclass(frozen=True, slots=True)
class Replaced(_Mirrored):
    """Noise at a by a coin and otherwise at 0, against noise at −a likewise."""

    @property
    def _most(self) -> float:
        z = self.noise.a + (self.reach if not self.is_bounded else 0.0)
        return self._loss(z)

    @property
    def atoms(self) -> Sequence[Atom]:
        if not self.is_bounded:
            return ()
        a, most = self.noise.a, self._most
        large, small = self._beyond(a, a), self._beyond(a, -a)
        return Atom(-most, small, large), Atom(most, large, small)

    def masses(self, losses: Doubles) -> Masses:
        z = np.where(np.isinf(losses), losses, np.sign(losses) * self._place(np.abs(losses)))
        if self.is_bounded:
            z = np.clip(z, -self.noise.a, self.noise.a)
        (p, off), (r, more) = (self._mixed(z, side * self.noise.a) for side in (1, -1))
        return p, r, off + more

    def _loss(self, z: float) -> float:
        """At z ≥ 0: the logarithm of both densities' ratio, over that of the noise at 0."""
        low, q, a = (
            (math.log1p(-self.q) if self.q < 1 else -math.inf),
            math.log(self.q),
            self.noise.a,
        )
        up, down = (z * a, -z * a) if not self.is_bounded else (2 * min(z, a), 0.0)
        edge = q - (a * a / 2 if not self.is_bounded else a)
        return float(np.logaddexp(low, edge + up) - np.logaddexp(low, edge + down))

    def _place(self, losses: Doubles) -> Doubles:
        """Halving, of what rises with z."""
        a = self.noise.a
        low, high = np.zeros_like(losses), np.full_like(losses, a + self.reach)
        if self.is_bounded:
            high = np.full_like(losses, a)
        coin, q = (math.log1p(-self.q) if self.q < 1 else -math.inf), math.log(self.q)
        normal = not self.is_bounded
        edge = q - (a * a / 2 if normal else a)
        for _ in range(60):
            z = (low + high) / 2
            up, down = (z * a, -z * a) if normal else (2 * z, np.zeros_like(z))
            rises = np.logaddexp(coin, edge + up) - np.logaddexp(coin, edge + down) < losses
            low, high = np.where(rises, z, low), np.where(rises, high, z)
        return high


@dataclass(frozen=True, slots=True)
class Batch(_Mirrored):
    """What the removal's loss is above 0, its mirror image below, and the rest at 0."""

    @property
    def _removal(self) -> Removal:
        return Removal(self.noise, self.q, self.reach)

    @property
    def _most(self) -> float:
        return self._removal.ends[1]

    @property
    def atoms(self) -> Sequence[Atom]:
        middle, a = self.noise.a / 2, self.noise.a
        above = self._beyond(middle, a), self._beyond(middle, 0)
        rest = math.log1p(-math.exp(above[0]) - math.exp(above[1]))
        found = [Atom(0.0, rest, rest)]
        for loss, p, r in self._removal.atoms[1:]:
            found += [Atom(-loss, r, p), Atom(loss, p, r)]
        return found

    def masses(self, losses: Doubles) -> Masses:
        p, r, off = self._removal.masses(np.maximum(losses, 0.0))
        q, s, more = (each[::-1] for each in self._removal.masses(np.maximum(-losses[::-1], 0.0)))
        off, more = (np.where(np.isfinite(each), each, 0.0) for each in (off, more))
        return np.logaddexp(p, s), np.logaddexp(r, q), off + more


def answers(kind: type[Removal | Replaced | Batch], keep: float, q: float) -> Pairs:
    """Both laws of a truthful bit on a sample, in one order or in both."""
    k, o = keep, 1 - keep
    if kind is Removal:
        removal = [((1 - q) * o + q * k, o), ((1 - q) * k + q * o, k)]
        return [removal, [(r, p) for p, r in removal]]
    large = (1 - q) * o + q * k
    if kind is Replaced:
        small = o * (1 - q + q * o / k)
        rest = (k - o) * (1 - q + q * o / k)
        return [[(large, small), (rest, rest), (small, large)]]
    rest = 1 - large - o
    return [[(large, o), (rest, rest), (o, large)]]
