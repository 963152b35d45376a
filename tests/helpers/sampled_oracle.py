"""Noise on samples, by lattices of losses in doubles: no code is shared with the accountant.

Both laws of a pair of `sampled_pairs` are cut into cells of the loss of length h, of masses P, R.

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

**Answers of finitely many values** need no lattice: the sums of losses are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from tests.helpers.sampled_pairs import Batch, Doubles, Pair, Removal, Replaced

__all__ = ["AnswersOracle", "SampledOracle"]

_Bound = Callable[[float], float]
_UNIT = 2.0**-53
_CUT = 1e-12  # of δ, at the ends of all laws together
_MOST_MIXED = 0.25  # part of a cell
_DIRECTLY = 1 << 13  # points
_LONGEST = 1 << 15  # law that is convolved directly
_MOST_SAMPLED = 2  # records in all samples, up to which masses are convolved directly
_ANSWERS = 1e-9  # relative, what sums over answers are off by
_ROOT = 1e-14  # relative, of where a bound falls to δ
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


def _law(pair: Pair, step: float, *, added: bool, above: bool) -> _Law:
    """Of losses that are at least, or at most, those of one release."""
    return _above(pair, step, added=added) if above else _below(pair, step, added=added)


def _above(pair: Pair, step: float, *, added: bool) -> _Law:
    start, step, count = pair.lattice(step)
    edges = _points(start, step, count + 1)
    if pair.atoms:
        edges[-1] = pair.ends[1]
    p, r, errors = pair.masses(edges)
    (low_p, low_r), (high_p, high_r) = (
        [float(each[0]) for each in pair.masses(np.array(ends))[:2]]
        for ends in ((-math.inf, edges[0]), (edges[-1], math.inf))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.clip(np.nan_to_num(np.expm1(edges[:-1] - p + r) / math.expm1(-step)), 0, 1)
        split = np.full(len(edges), -math.inf)
        split[:-1] = p + np.log1p(-up)
        split[1:] = np.logaddexp(split[1:], p + np.log(up))
    errors = np.where(np.isfinite(errors), errors, 0.0)
    errors = np.append(errors, errors[-1])
    _put(split, errors, pair, start, step)
    law = _Law(split, start, step, high_p, errors)
    lowest = low_p
    if added:
        law, lowest = replace(law.reversed(), log_infinite=low_r), high_r
    law.log_masses[0] = np.logaddexp(law.log_masses[0], lowest)
    if pair.is_bounded:  # and what lies beyond is round-off
        law.log_masses[-1] = np.logaddexp(law.log_masses[-1], law.log_infinite)
        law = replace(law, log_infinite=-math.inf)
    return law


def _below(pair: Pair, step: float, *, added: bool) -> _Law:
    start, step, count = pair.lattice(step)
    count += 2
    part = np.full(count, 0.5)
    for _ in range(3):
        points = _points(start, step, count)
        edges = np.append(points - part * step, points[-1] + step / 2)
        if pair.floor > -math.inf:
            edges[0] = pair.floor
        p, r, errors = pair.masses(edges)
        part = _part_below_mean(p)
        if pair.floor > -math.inf:
            start = float(p[0] - r[0])
    points = _points(start, step, count)
    with np.errstate(invalid="ignore"):
        off = np.where(p > -math.inf, p - r - points, 0.0)
    good, factors = _on_lattice(off, r, step, added=added)
    first, rounded = (r, np.ceil(off / step)) if added else (p, np.floor(off / step))
    with np.errstate(divide="ignore"):
        masses = first + np.log(factors)
        wrong = masses + np.log(np.where(np.isfinite(errors), errors, 0.0))
    places = np.flatnonzero(~good)
    to = places + rounded[places].astype(np.int64)
    inside = (to >= 0) & (to < count)
    for logs in (masses, wrong):
        moved = logs[places]
        logs[places] = -math.inf
        np.logaddexp.at(logs, to[inside], moved[inside])
    with np.errstate(invalid="ignore"):
        errors = np.nan_to_num(np.exp(wrong - masses))
    _put(masses, errors, pair, start, step, added=added)
    if added:
        return _Law(masses[::-1], -float(points[-1]), step, -math.inf, errors[::-1])
    return _Law(masses, start, step, -math.inf, errors)


def _put(
    masses: Doubles,
    errors: Doubles,
    pair: Pair,
    start: float,
    step: float,
    *,
    added: bool = False,
) -> None:
    """The atoms, which lie on the lattice but for round-off."""
    for atom in pair.atoms:
        place = round((atom.loss - start) / step)
        with_it = np.logaddexp(masses[place], atom.r if added else atom.p)
        errors[place] = errors[place] * np.exp(masses[place] - with_it) + 20 * _UNIT
        masses[place] = with_it


def _points(start: float, step: float, count: int) -> Doubles:
    return start + step * np.arange(count, dtype=np.float64)


def _part_below_mean(logs: Doubles) -> Doubles:
    """Which part of a cell lies below its mean, were the density to fall as the masses do."""
    with np.errstate(invalid="ignore"):
        falls = np.nan_to_num(logs[:-1] - logs[1:], posinf=math.inf, neginf=-math.inf)
    with np.errstate(invalid="ignore"):
        middle = np.nan_to_num((falls[1:-1] + falls[2:]) / 2)
    falls = np.concatenate([[0.0], falls[1:2], middle, falls[-1:]])
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
    return float(brentq(excess, low, high, xtol=1e-300, rtol=_ROOT))


@dataclass(frozen=True, slots=True)
class SampledOracle:
    """T releases on samples, by lattices of N points."""

    pair: Removal | Replaced | Batch
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
            for added in self._orders:
                c, step, guess = self._line(pair, goal, added=added)
                law = _law(pair, step, added=added, above=above)
                bound = _transformed(law, self.times, c, self.points, above=above)
                found.append(_root(bound, delta, guess, 1 / c))
            ends.append(max(found))
        if self._is_wide(ends):
            scale = ends[1]
            for above in (False, True):
                if bounds := self._direct(pair, delta, above=above):
                    found = [_root(bound, delta, scale, scale) for bound in bounds]
                    ends[above] = (min if above else max)(ends[above], max(found))
        off = 2 * _ROOT * ends[1] + 8 * _UNIT * self.times  # of places of atoms, too
        return max(ends[0] - off, 0.0), ends[1] + off

    def delta(self, epsilon: float, near: float) -> tuple[float, float]:
        """At least and at most δ(ε), which is about `near`."""

        def goal(c: Doubles, logs: Doubles) -> Doubles:
            found: Doubles = logs - c * epsilon
            return found

        pair, ends = self._pair(near), []
        for above in (False, True):
            found = []
            for added in self._orders:
                c, step, _ = self._line(pair, goal, added=added)
                law = _law(pair, step, added=added, above=above)
                found.append(_transformed(law, self.times, c, self.points, above=above)(epsilon))
            ends.append(max(found))
        if self._is_wide(ends):
            for above in (False, True):
                if bounds := self._direct(pair, near, above=above):
                    found = [bound(epsilon) for bound in bounds]
                    ends[above] = (min if above else max)(ends[above], max(found))
        return max(ends[0], 0.0), ends[1]

    def _is_wide(self, ends: list[float]) -> bool:
        few = self.times * self.pair.q <= _MOST_SAMPLED
        return few and ends[1] > ends[0] * (1 + _WIDE)

    def _pair(self, delta: float) -> Pair:
        return replace(self.pair, reach=math.sqrt(2 * math.log(self.times / (_CUT * delta))))

    @property
    def _orders(self) -> Sequence[bool]:
        return (False,) if self.pair.is_mirrored else (False, True)

    def _line(
        self, pair: Pair, goal: Callable[[Doubles, Doubles], Doubles], *, added: bool
    ) -> tuple[float, float, float]:
        """The c for which `goal` of it and ln M(c)^T/(c(c + 1)) is least, the step, and the goal.

        So many points of the step hold what counts of the T releases.
        """
        start, end = pair.ends
        c, step, least = 1.0, (end - start) / (1 << 11), 0.0
        for size in (1 << 14, self.points):
            law = _law(pair, step, added=added, above=False)
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

    def _direct(self, pair: Pair, delta: float, *, above: bool) -> list[_Bound]:
        """Of both directions, or none."""
        start, end = pair.ends
        room = _CUT * delta / self.times
        laws = (
            _law(pair, (end - start) / _DIRECTLY, added=added, above=above)
            for added in self._orders
        )
        found = [_convolved(law, self.times, room, above=above) for law in laws]
        return [bound for bound in found if bound] if all(found) else []


@dataclass(frozen=True, slots=True)
class AnswersOracle:
    """T releases of two or three losses, every sum of which is counted.

    Attributes
    ----------
    orders : of the pair in one order, or in both: probabilities under both laws
    """

    orders: Sequence[Sequence[tuple[float, float]]]
    times: int

    def epsilon(self, delta: float) -> tuple[float, float]:
        """At least and at most ε(δ); losses err as logarithms of probabilities do."""
        bounds = [self._bound(order) for order in self.orders]
        least, most = (
            max(_root(bound, goal, 0.0, 1.0) for bound in bounds)
            for goal in (delta * (1 + _ANSWERS), delta * (1 - _ANSWERS))
        )
        smallest = min(min(pair) for order in self.orders for pair in order)
        off = 8 * _UNIT * self.times * (4 - math.log(smallest)) + 2 * _ROOT * most
        return max(least - off, 0.0), most + off

    def _bound(self, order: Sequence[tuple[float, float]]) -> _Bound:
        counts = np.indices((self.times + 1,) * (len(order) - 1)).reshape(len(order) - 1, -1)
        counts = np.vstack([counts, self.times - counts.sum(axis=0)])
        counts = counts[:, counts[-1] >= 0]
        p, r = np.log(np.array(order)).T
        logs = gammaln(self.times + 1) - gammaln(counts + 1).sum(axis=0) + p @ counts
        masses, losses = np.exp(logs), (p - r) @ counts

        def delta(epsilon: float) -> float:
            lost = losses > epsilon
            return float(masses[lost] @ -np.expm1(epsilon - losses[lost]))

        return delta
