"""Gaussian noise on Poisson samples, by lattices of losses in doubles: no code is shared.

The loss of a removal, L(x) = ln(1 − q + q·e^{(x − ½)/σ²}), rises with the output x, and an
addition loses −L(x). Both laws are cut into cells of the loss of length h, of masses P and R.

**From above.** Splitting a cell between its two ends, so that both masses are kept, says more of
which law it was (Doroshenko et al. 2022, arXiv:2207.04380, section 4).

**From below.** Merging a cell into one point, of loss ln(P/R), says less. The lattice begins with
the lowest cell's. A cell around another point comes near it, and a part of the cell on the other
side of the point is mixed in until it is there; where too much would be needed, it is rounded down.

**T releases.** With the masses wₖ = pₖ·e^{cLₖ}/M(c), and N points of the lattice, a discrete
Fourier transform gives W, the T-fold convolution of w but for what is N points apart, and

    δ(ε) = M(c)^T·e^{−cε}·Σ W(L)·e^{−c(L − ε)}·(1 − e^{ε − L}),     ε < L < ε + Nh.

Near the saddle point c that is a sum of large terms, so that round-off is small beside it. What
wraps round only adds to the sum: an upper bound gains e^{−cNh}, for what lies beyond, and a lower
one loses what Chernoff's bounds leave of both ends. Where T·q is small no c makes terms near ε the
large ones; there the masses are convolved directly, on fewer points, and all terms are positive,
unless the law of all losses is many times as wide as that of one.

A transform is taken to be right to 4·log₂(N) units of round-off, and scipy's logarithm of the
normal distribution function to 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

__all__ = ["SampledOracle"]

Doubles = NDArray[np.float64]
_Bound = Callable[[float], float]
_UNIT = 2.0**-53
_CUT = 1e-12  # of δ, at the ends of all laws together
_MOST_MIXED = 0.25  # part of a cell
_DIRECTLY = 1 << 13  # points
_LONGEST = 1 << 15  # law that is convolved directly
_MOST_SAMPLED = 2  # records in all samples, up to which masses are convolved directly
_WIDE = 1e-3  # relative width of ε from which on masses are convolved directly


@dataclass(frozen=True, slots=True)
class _Law:
    """Logarithms of the masses of the losses `start` + i·`step`, and of what is infinite."""

    log_masses: Doubles
    start: float
    step: float
    log_infinite: float
    errors: Doubles  # of the logarithms

    @property
    def losses(self) -> Doubles:
        return _points(self.start, self.step, len(self.log_masses))

    def log_moment(self, c: float) -> float:
        return float(logsumexp(self.log_masses + c * self.losses))

    def tilted(self, c: float) -> Doubles:
        found: Doubles = np.exp(self.log_masses + c * self.losses - self.log_moment(c))
        return found

    def deviation(self, c: float) -> float:
        weights = self.tilted(c)
        return math.sqrt(float(weights @ (self.losses - weights @ self.losses) ** 2))

    def reversed(self) -> _Law:
        """Of the pair in the other order, but for its infinite losses."""
        return _Law(
            (self.log_masses - self.losses)[::-1],
            -float(self.losses[-1]),
            self.step,
            -math.inf,
            self.errors[::-1],
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two laws of one release; outputs beyond `reach`·σ are its ends."""

    sigma: float
    q: float
    reach: float

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest loss that count."""
        least = self._loss(-self.reach * self.sigma) if self.q == 1 else math.log1p(-self.q)
        return least, self._loss(1 + self.reach * self.sigma)

    def _loss(self, x: float) -> float:
        ell = (x - 0.5) / self.sigma**2
        if self.q == 1:
            return ell
        return float(np.logaddexp(math.log1p(-self.q), math.log(self.q) + ell))

    def _place(self, loss: Doubles) -> Doubles:
        """The x of a loss."""
        if self.q == 1:
            return self.sigma**2 * loss + 0.5
        floor = math.log1p(-self.q)
        above = np.maximum(loss - floor, 0.0)
        with np.errstate(divide="ignore"):
            ell = floor - math.log(self.q) + above + np.log(-np.expm1(-above))
        found: Doubles = self.sigma**2 * ell + 0.5
        return found

    def _masses(self, x: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """Logarithms of both between the points, and what they are off by together."""
        none, off = _normal_masses(x / self.sigma)
        one, more = _normal_masses((x - 1) / self.sigma)
        if self.q < 1:
            one = np.logaddexp(math.log1p(-self.q) + none, math.log(self.q) + one)
        return one, none, off + more

    def law(self, step: float, *, added: bool, above: bool) -> _Law:
        """Of losses that are at least, or at most, those of one release."""
        return self._above(step, added=added) if above else self._below(step, added=added)

    def _above(self, step: float, *, added: bool) -> _Law:
        start, end = self.ends
        edges = _points(start, step, max(math.ceil((end - start) / step), 1) + 1)
        x = self._place(edges)
        p, r, errors = self._masses(x)
        low_p, low_r, _ = self._masses(np.array([-math.inf, x[0]]))
        high_p, high_r, _ = self._masses(np.array([x[-1], math.inf]))
        up = np.clip(np.expm1(edges[:-1] - p + r) / math.expm1(-step), 0, 1)
        split = np.full(len(edges), -math.inf)
        with np.errstate(divide="ignore"):
            split[:-1] = p + np.log1p(-up)
            split[1:] = np.logaddexp(split[1:], p + np.log(up))
        law = _Law(split, start, step, float(high_p[0]), np.append(errors, errors[-1]))
        lowest = low_p
        if added:
            law, lowest = replace(law.reversed(), log_infinite=float(low_r[0])), high_r
        law.log_masses[0] = np.logaddexp(law.log_masses[0], lowest[0])
        return law

    def _below(self, step: float, *, added: bool) -> _Law:
        start, end = self.ends
        count = max(math.ceil((end - start) / step), 1) + 2
        part = np.full(count, 0.5)
        for _ in range(3):
            points = _points(start, step, count)
            edges = np.append(points - part * step, points[-1] + step / 2)
            if self.q < 1:
                edges[0] = self.ends[0]
            p, r, errors = self._masses(self._place(edges))
            part = _part_below_mean(p)
            if self.q < 1:
                start = float(p[0] - r[0])
        points = _points(start, step, count)
        off = p - r - points
        good, factors = _on_lattice(off, r, step, added=added)
        first, rounded = (r, np.ceil(off / step)) if added else (p, np.floor(off / step))
        with np.errstate(divide="ignore"):
            masses = first + np.log(factors)
        places = np.flatnonzero(~good)
        moved, to = masses[places], places + rounded[places].astype(np.int64)
        masses[places] = -math.inf
        inside = (to >= 0) & (to < count)
        np.logaddexp.at(masses, to[inside], moved[inside])
        if added:
            return _Law(masses[::-1], -float(points[-1]), step, -math.inf, errors[::-1])
        return _Law(masses, start, step, -math.inf, errors)


def _points(start: float, step: float, count: int) -> Doubles:
    return start + step * np.arange(count, dtype=np.float64)


def _normal_masses(z: Doubles) -> tuple[Doubles, Doubles]:
    """Logarithms of what a normal law has between the points, and what they are off by."""
    left = z[:-1] + z[1:] < 0
    most = log_ndtr(np.where(left, z[1:], -z[:-1]))
    least = log_ndtr(np.where(left, z[:-1], -z[1:]))
    with np.errstate(divide="ignore", invalid="ignore"):
        part = -np.expm1(np.where(least > -math.inf, least - most, -math.inf))
        return most + np.log(part), 20 * _UNIT * (1 + np.abs(most)) / part


def _part_below_mean(logs: Doubles) -> Doubles:
    """Which part of a cell lies below its mean, were the density to fall as the masses do."""
    falls = logs[:-1] - logs[1:]
    falls = np.concatenate([[0.0], falls[1:2], (falls[1:-1] + falls[2:]) / 2, falls[-1:]])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.where(np.abs(falls) < 1e-3, 0.5 - falls / 12, 1 / falls - 1 / np.expm1(falls))


def _on_lattice(
    off: Doubles, r: Doubles, step: float, *, added: bool
) -> tuple[NDArray[np.bool_], Doubles]:
    """Which cells can be put on their points, and by which factors the masses of all change.

    A cell whose loss is off its point by η keeps the share s of itself and gets the share t of the
    neighbour n on the other side: s·r·(e^η − 1) + t·rₙ·(e^{ηₙ ± h} − 1) = 0.
    """
    k = np.arange(len(off))
    side = -np.sign(off).astype(np.int64)
    near = np.clip(k + side, 0, len(off) - 1)
    apart = side * step + off[near]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(side == 0, 0.0, np.abs(np.expm1(off) / np.expm1(apart)))
        taken = np.where(side == 0, 0.0, share * np.exp(r - r[near]))
    good = (taken < _MOST_MIXED) & ((near != k) | (side == 0)) & (apart * side >= 0)
    taken, share = np.where(good, taken, 0.0), np.where(good, share, 0.0)
    kept: Doubles = np.ones(len(off))
    for _ in range(100):
        given = np.bincount(near, weights=kept * taken, minlength=len(off)).astype(np.float64)
        before, kept = kept, 1 - given
        if np.max(np.abs(before - kept)) < _UNIT:
            break
    if not added:
        share *= np.exp(np.where(good, apart - off, 0.0))
    return good, kept * (1 + share)


def _transformed(law: _Law, times: int, c: float, points: int, *, above: bool) -> _Bound:
    """δ(ε) of T releases, by the transform: at most or at least."""
    log_moment, weights = law.log_moment(c), law.tilted(c)
    transform = np.fft.rfft(np.bincount(np.arange(len(weights)) % points, weights, points))
    size = np.abs(transform)
    masses = np.fft.irfft(transform**times, points)
    noise = times * float(np.mean(size ** (times - 1))) + math.sqrt(np.mean(size ** (2 * times)))
    noise *= 4 * math.log2(points) * _UNIT / -math.expm1(-c * law.step)
    off = 8 * _UNIT * times * (abs(log_moment) + 1)
    off += times * (1 + 2 * c) * float(weights @ law.errors)
    steps, window = law.step * np.arange(points), law.step * points
    factors = np.exp(-c * steps)
    tilts = np.geomspace(0.001, 2, 9) * c
    moments = {d: law.log_moment(c + d) for d in (*tilts, *-tilts)}

    def tail(above: float, *, right: bool) -> float:
        """Chernoff's bound on what the tilted law has beyond a loss."""
        logs = [
            times * (moment - log_moment) - d * above
            for d, moment in moments.items()
            if (d > 0) == right
        ]
        return math.exp(min(0.0, *logs))

    def delta(epsilon: float) -> float:
        log_scale = times * log_moment - c * epsilon
        if log_scale > 700:  # far from the saddle point
            return math.inf if above else -math.inf
        first = math.ceil((epsilon - times * law.start) / law.step)
        over = times * law.start + first * law.step - epsilon
        total = float((np.roll(masses, -first) * factors) @ -np.expm1(-over - steps))
        total *= math.exp(-c * over)
        if above:
            total = total * math.exp(off) + noise + math.exp(-c * window)
            return times * math.exp(law.log_infinite) + math.exp(log_scale) * total
        wrapped = tail(epsilon - window / 2, right=False) + tail(epsilon + window, right=True)
        wrapped += math.exp(-c * window / 2)
        return math.exp(log_scale) * (total * math.exp(-off) - noise - wrapped)

    return delta


def _convolved(law: _Law, times: int, room: float, *, above: bool) -> _Bound | None:
    """The same by squaring; ends of mass `room` for each release are moved up, or left out.

    None where the law becomes too long.
    """
    one = np.exp(law.log_masses)
    masses, start, infinite, count, length = one, law.start, math.exp(law.log_infinite), 1, 0
    for bit in f"{times:b}"[1:]:
        masses, start, infinite, count = (
            np.convolve(masses, masses),
            2 * start,
            2 * infinite,
            2 * count,
        )
        if bit == "1":
            masses, start, count = np.convolve(masses, one), start + law.start, count + 1
            infinite += math.exp(law.log_infinite)
        length = max(length, len(masses))
        first = int(np.searchsorted(np.cumsum(masses), room * count))
        last = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), room * count))
        low, high = masses[:first].sum(), masses[last:].sum()
        masses, start = masses[first:last].copy(), start + first * law.step
        if above:
            masses[0] += low
            infinite += high
        if len(masses) > _LONGEST:
            return None
    losses = start + law.step * np.arange(len(masses))
    off = times * (2 * length * _UNIT + float(one @ law.errors))

    def delta(epsilon: float) -> float:
        lost = losses > epsilon
        total = float(masses[lost] @ -np.expm1(epsilon - losses[lost]))
        return infinite + total * math.exp(off) if above else total * math.exp(-off)

    return delta


def _root(bound: _Bound, delta: float, guess: float, scale: float) -> float:
    """Where a bound of δ(ε) falls to δ; 0 where it is nowhere larger."""

    def excess(epsilon: float) -> float:
        found = bound(epsilon)
        return math.log(min(found, 1e300) / delta) if found > 0 else -1e4

    low = high = max(guess, 0.0)
    reach = scale
    while excess(low) <= 0:
        if low == 0:
            return 0.0
        low, reach = max(low - reach, 0.0), 2 * reach
    reach = scale
    while excess(high) > 0:
        high, reach = high + reach, 2 * reach
    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14))


@dataclass(frozen=True, slots=True)
class SampledOracle:
    """T releases of Gaussian noise on Poisson samples, by lattices of N points."""

    sigma: float
    q: float
    times: int
    points: int

    def epsilon(self, delta: float) -> tuple[float, float]:
        """At least and at most ε(δ)."""

        def goal(c: Doubles, logs: Doubles) -> Doubles:
            found: Doubles = (logs - math.log(delta)) / c
            return found

        pair, ends = self._pair(delta), []
        for above in (False, True):
            found = []
            for added in (False, True):
                c, step, guess = self._line(pair, goal, added=added)
                law = pair.law(step, added=added, above=above)
                bound = _transformed(law, self.times, c, self.points, above=above)
                found.append(_root(bound, delta, guess, 1 / c))
            ends.append(max(found))
        if self._is_wide(ends):
            scale = ends[1]
            for above in (False, True):
                if bounds := self._direct(pair, delta, above=above):
                    found = [_root(bound, delta, scale, scale) for bound in bounds]
                    ends[above] = (min if above else max)(ends[above], max(found))
        return ends[0], ends[1]

    def delta(self, epsilon: float, near: float) -> tuple[float, float]:
        """At least and at most δ(ε), which is about `near`."""

        def goal(c: Doubles, logs: Doubles) -> Doubles:
            found: Doubles = logs - c * epsilon
            return found

        pair, ends = self._pair(near), []
        for above in (False, True):
            found = []
            for added in (False, True):
                c, step, _ = self._line(pair, goal, added=added)
                law = pair.law(step, added=added, above=above)
                found.append(_transformed(law, self.times, c, self.points, above=above)(epsilon))
            ends.append(max(found))
        if self._is_wide(ends):
            for above in (False, True):
                if bounds := self._direct(pair, near, above=above):
                    found = [bound(epsilon) for bound in bounds]
                    ends[above] = (min if above else max)(ends[above], max(found))
        return max(ends[0], 0.0), ends[1]

    def _is_wide(self, ends: list[float]) -> bool:
        few = self.times * self.q <= _MOST_SAMPLED
        return few and ends[1] > ends[0] * (1 + _WIDE)

    def _pair(self, delta: float) -> _Pair:
        reach = math.sqrt(2 * math.log(self.times / (_CUT * delta)))
        return _Pair(self.sigma, self.q, reach)

    def _line(
        self, pair: _Pair, goal: Callable[[Doubles, Doubles], Doubles], *, added: bool
    ) -> tuple[float, float, float]:
        """The c for which `goal` of it and ln M(c)^T/(c(c + 1)) is least, the step, and the goal.

        So many points of the step hold what counts of the T releases.
        """
        start, end = pair.ends
        c, step, least = 1.0, (end - start) / (1 << 11), 0.0
        for size in (1 << 14, self.points):
            law = pair.law(step, added=added, above=False)
            grid = np.geomspace(1e-6, 1e9, 120)
            for _ in range(2):
                logs = np.array([self.times * law.log_moment(float(c)) for c in grid])
                values = goal(grid, logs - np.log(grid) - np.log1p(grid))
                at = int(np.argmin(values))
                c, least = float(grid[at]), float(values[at])
                grid = np.geomspace(grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], 20)
            window = max(70 / c, 20 * law.deviation(c) * math.sqrt(self.times))
            step = max(window / size, (end - start) / (2 * size))
        return c, step, least

    def _direct(self, pair: _Pair, delta: float, *, above: bool) -> list[_Bound]:
        """Of both directions, or none."""
        start, end = pair.ends
        room = _CUT * delta / self.times
        laws = (
            pair.law((end - start) / _DIRECTLY, added=added, above=above) for added in (False, True)
        )
        found = [_convolved(law, self.times, room, above=above) for law in laws]
        return [bound for bound in found if bound] if all(found) else []
