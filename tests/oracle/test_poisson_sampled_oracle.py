"""Releases on Poisson samples, by convolving lattices of losses directly: no code is shared.

The loss of a removal, L(x) = ln(1 − q + q·e^{(x − ½)/σ²}), rises with the output x, and an
addition loses −L(x). Either law is cut into cells of equal length h of the loss, each with its
masses P and Q under both laws. Splitting a cell between its two ends, so that both masses are kept,
says more of which law it was; merging it into one point of loss ln(P/Q) says less, and so does
rounding that down. So the convolutions bound δ from above and from below, up to what is cut off at
the ends, which is added or left out, and to round-off: all terms are positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

import dpverify as dpv
from dpverify.accounting.composition import _sampled
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses import _normal_mixture
from tests.helpers.profiles import day_and_night

Doubles = NDArray[np.float64]
_CUT = 1e-9  # of δ, at the ends of all laws together
_ROUND_OFF = 1e-9


@dataclass(frozen=True)
class _Law:
    """Masses of the losses `start` + i·`step`, of all times `times`; the rest is infinite."""

    masses: Doubles
    start: float
    step: float
    infinite: float
    times: int

    def trimmed(self, room: float, *, above: bool) -> _Law:
        """Without ends of mass `room`: moved up and to infinity, or left out and moved down."""
        first = int(np.searchsorted(np.cumsum(self.masses), room))
        last = len(self.masses) - int(np.searchsorted(np.cumsum(self.masses[::-1]), room))
        first = min(first, last - 1)
        kept = self.masses[first:last].copy()
        low, high = self.masses[:first].sum(), self.masses[last:].sum()
        if above:
            kept[0] += low
        else:
            kept[-1] += high
        escaped = self.infinite + (high if above else 0.0)
        return _Law(kept, self.start + first * self.step, self.step, escaped, self.times)

    def __add__(self, other: _Law) -> _Law:
        return _Law(
            np.convolve(self.masses, other.masses),
            self.start + other.start,
            self.step,
            self.infinite + other.infinite,  # at most, and there is none in a lower bound
            self.times + other.times,
        )

    def repeated(self, times: int, room: float, *, above: bool) -> _Law:
        """Of that many releases, by squaring."""
        total = self
        for bit in f"{times:b}"[1:]:
            total = total + total + self if bit == "1" else total + total
            total = total.trimmed(room * total.times, above=above)
        return total

    def delta(self, epsilon: float) -> float:
        """δ(ε)."""
        losses = self.start + self.step * np.arange(len(self.masses))
        few = losses > epsilon
        lost = -np.expm1(epsilon - losses[few])
        return float(self.infinite + self.masses[few] @ lost)

    def epsilon(self, delta: float) -> float:
        """ε(δ)."""
        if self.delta(0.0) <= delta:
            return 0.0
        top = self.start + self.step * len(self.masses)
        return float(brentq(lambda x: self.delta(x) - delta, 0.0, top, xtol=1e-13, rtol=1e-14))


def _one(sigma: float, q: float, step: float, room: float, *, added: bool, above: bool) -> _Law:
    """One release."""
    reach = 1 + sigma * (1 + math.sqrt(-2 * math.log(room)))
    floor = math.log1p(-q) if q < 1 else 0.0
    far = np.logaddexp(math.log1p(-q), math.log(q) + (reach - 0.5) / sigma**2) if q < 1 else 0.0
    if q < 1:
        k = np.arange(math.ceil((far - floor) / step) + 1).astype(np.float64)
        with np.errstate(divide="ignore"):
            risen = k * step + np.log(-np.expm1(-k * step))
        x: Doubles = sigma**2 * (math.log1p(-q) - math.log(q) + risen) + 0.5
    else:
        most = math.ceil((reach / sigma**2) / step)
        k = np.arange(-most, most + 1).astype(np.float64)
        x = sigma**2 * k * step + 0.5
    edges: Doubles = floor + k * step

    def cells(mean: float) -> tuple[Doubles, float, float]:
        z = (x - mean) / sigma
        left = z[:-1] + z[1:] < 0
        inner = np.where(left, ndtr(z[1:]) - ndtr(z[:-1]), ndtr(-z[:-1]) - ndtr(-z[1:]))
        return inner, float(ndtr(z[0])), float(ndtr(-z[-1]))

    (none, none_low, none_high), (one, one_low, one_high) = cells(0.0), cells(1.0)
    mixed = (1 - q) * none + q * one
    low, high = (1 - q) * none_low + q * one_low, (1 - q) * none_high + q * one_high
    p, r = mixed, none
    if added:
        p, r = none[::-1], mixed[::-1]
        edges, low, high = -edges[::-1], none_high, none_low
    a, b = edges[:-1], edges[1:]
    if above:
        up = np.clip((p - r * np.exp(a)) / -np.expm1(a - b), 0, p)
        masses = np.append(p - up, 0.0)
        masses[1:] += up
        masses[0] += low
        return _Law(masses, float(a[0]), step, high, 1)
    filled = (p > 0) & (r > 0)
    p, places = p[filled], (np.log(p[filled] / r[filled]) - edges[0]) / step
    parts = places % 1
    chosen = np.sort(parts)[:: max(len(parts) // 200, 1)]
    offset = float(min(chosen, key=lambda o: float(p @ ((parts - o) % 1)))) - 1e-9
    at = np.floor(places - offset).astype(np.int64)
    merged: Doubles = np.bincount(at + 1, weights=p, minlength=len(edges) + 1).astype(np.float64)
    merged[len(edges)] += high  # every loss there is above the last edge
    return _Law(merged, float(edges[0]) + (offset - 1) * step, step, 0.0, 1)


@dataclass(frozen=True)
class Lattices:
    """Both orders of neighbours, on steps that fall by halves, and bounds on δ from below."""

    above: tuple[tuple[_Law, ...], ...]
    below: tuple[_Law, ...]

    @classmethod
    def of(cls, sigma: float, q: float, times: int, delta: float, cells: int) -> Lattices:
        """With about so many cells after the last release."""
        room = delta * _CUT / times

        def law(step: float, *, added: bool, above: bool) -> _Law:
            one = _one(sigma, q, step, room, added=added, above=above).trimmed(room, above=above)
            return one.repeated(times, room, above=above)

        reach = (2 + 9 * sigma) / sigma**2
        above, below = [], []
        for added in (False, True):
            step = reach / 400
            for _ in range(3):
                rough = law(step, added=added, above=True)
                step *= max(len(rough.masses), 4) / (cells / 4)
            above.append(tuple(law(step / n, added=added, above=True) for n in (1, 2, 4)))
            below.append(law(step / 4, added=added, above=False))
        return cls(tuple(zip(*above, strict=True)), tuple(below))

    def bounds(self, name: str, point: float) -> tuple[float, float, float, float]:
        """From below and above; extrapolated to no step, and how far that may be off."""
        least = max(getattr(law, name)(point) for law in self.below)
        rough, fine, most = (max(getattr(law, name)(point) for law in laws) for laws in self.above)
        near, before = most + (most - fine) / 3, fine + (fine - rough) / 3
        return least, most, near, 3 * abs(near - before) + (most - near) / 10 + 1e-8 * most


def _random(count: int) -> list[tuple[float, float, int, float]]:
    draw = np.random.default_rng(20261122)
    rows = []
    for _ in range(count):
        sigma = round(math.exp(draw.uniform(math.log(0.3), math.log(30))), 3)
        q = float(f"{10 ** draw.uniform(-4, 0):.3g}")
        times = round(math.exp(draw.uniform(0, math.log(2000))))
        rows.append((sigma, q, times, float(f"{10 ** draw.uniform(-12, -3):.3g}")))
    return rows


# σ, q, T, δ. The second to the fourth are of the kinds that other accountants are compared on.
ROWS = [
    (4.0, 0.5, 100, 1e-6),
    (0.5, 0.001, 100, 1e-10),
    (0.8, 0.01, 1000, 1e-5),
    (1.0, 0.001, 2000, 1e-7),
    (0.3, 0.1, 10, 1e-5),
    (2.0, 1.0, 10, 1e-5),
    *_random(60),
]
_CELLS = 6000


def faults(row: tuple[float, float, int, float]) -> list[str]:
    """Where the enclosures of ε(δ), and of δ at an ε nearby, contradict the lattices."""
    sigma, q, times, delta = row
    lattices = Lattices.of(sigma, q, times, delta, _CELLS)
    curve = times * dpv.Gaussian(sigma=sigma).poisson_sampled(rate=Fraction(q))
    epsilon = lattices.bounds("epsilon", delta)[1]
    nearby = float(f"{0.9 * epsilon:.4g}")
    found = []
    for name, point, value in (
        ("epsilon", delta, curve.epsilon_at(delta)),
        ("delta", nearby, curve.delta_at(nearby)),
    ):
        least, most, near, off = lattices.bounds(name, point)
        cut = 3 * _CUT * delta if name == "delta" else 3 * _CUT * epsilon
        if value.upper < least * (1 - _ROUND_OFF) - cut:
            found.append(f"{name}({point}) <= {value.upper} is unsafe: at least {least}")
        if value.lower > most * (1 + _ROUND_OFF) + cut:
            found.append(f"{name}({point}) >= {value.lower} is too much: at most {most}")
        if not value.lower - off <= near <= value.upper + off:
            found.append(f"{name}({point}) is {near} within {off}, not {value}")
    return found


@pytest.mark.parametrize("row", day_and_night(ROWS[0], *((row,) for row in ROWS[1:])))
def test_enclosures_agree_with_lattices(row: tuple[float, float, int, float]) -> None:
    assert not faults(row)


def test_a_removal_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    directions = Composed._directions
    monkeypatch.setattr(Composed, "_directions", lambda self: directions(self)[1:])
    assert any("unsafe" in fault for fault in faults(ROWS[0]))


@pytest.mark.nightly
@pytest.mark.parametrize("row", ROWS[:2])
def test_a_rule_too_coarse_for_its_bound_is_found(
    row: tuple[float, float, int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strip is taken for eight times as wide as it is."""
    rule = _normal_mixture._Rule
    of, bound = rule.of, rule._discretisation

    def coarse(*arguments: Any) -> Any:
        found = of(*arguments)
        return replace(found, step=8 * found.step)

    monkeypatch.setattr(rule, "of", coarse)
    monkeypatch.setattr(
        rule, "_discretisation", lambda self, *rest: bound(replace(self, step=self.step / 8), *rest)
    )
    # It contradicts the lattices, or itself first.
    with pytest.raises((AssertionError, ValueError), match=r"unsafe|too much|empty intersection"):
        assert not faults(row)


def test_masses_below_all_doubles_count_in_upper_sums() -> None:
    """At σ = 1/50 half of the sampled law lies where the other has no mass that is a double."""
    mixture = _normal_mixture.NormalMixture(mu_squared=Fraction(2500), rate=Fraction(1, 2))
    x, masses, ratios = _sampled._log_parts(mixture, 10.0, 20_000)
    assert x[-1] == 60
    # The whole of the law, and not much more, for cells on which the ratio rises by 19 percent.
    assert 1 - 1e-9 <= float(np.exp(masses + ratios).sum()) <= 1.2
