"""Powers of a normal likelihood ratio that is mixed with 1, integrated with every error bounded.

With φ the standard normal density, g(x) = 1 − q + q·e^{μx − μ²/2} and a real a,

    N(a + iy) = ∫ φ(x)·g(x)^{a + iy} dx,   y ≥ 0,

is what the moment generating function of a `PoissonSampledLoss` is made of. For a record that is
replaced the ratio is r = g(x)/g(−x), and with a ≥ 1

    N(a + iy) = ∫ φ(x)·g(x)·r(x)^{a − 1 + iy} dx.

**Trapezoid rule on a shifted line.** g has no zero and 0 ≤ arg g(x + iv) ≤ vμ where 0 ≤ vμ < π, so
that the integrand f is analytic there, and may be integrated along Im z = d as well. On it

    |φ(x + iv)| = φ(x)·e^{v²/2},      |g^{a + iy}| = |g|^a·e^{−y·arg g} ≤ |g|^a,

so that nothing oscillates that isn't small: one set of points serves every y ≥ 0. The sum
S = h·Σ_j f(jh + id) differs from N by at most (‖f(· + 2id)‖₁ + ‖f(·)‖₁)/(e^{2πd/h} − 1), by the
residues of 1/(e^{∓2πi(z − id)/h} − 1) on either side of the line. With v = 2d the norms are at most

    a ≥ 0:   N(a)·e^{v²/2} and N(a), since |g(x + iv)| ≤ g(x);
    a < 0:   the same times cos(vμ/2)^a, since |g| ≥ Re g·e^{−ivμ/2} = g(x)·cos(vμ/2) (or more);
             or, where vμ ≤ π/2, at most (1 − q)^a·e^{v²/2}, since |g| ≥ Re g ≥ 1 − q.

**A record replaced.** With g₋(z) = g(−z), 0 ≤ arg r(x + iv) ≤ 2vμ, so that again nothing oscillates
that isn't small. |g| ≤ g(x) as before, and |g₋| ≥ g₋(x)·cos(vμ/2), for g₋ turned by e^{ivμ/2} has
that real part. So at v = 2d the norm is at most N(a)·e^{v²/2}·cos(vμ/2)^{1 − a}.

**Left out.** With the same bounds the terms fall geometrically beyond the ends: for a ≥ 0 to the
left as φ does, g^a falling too, and to the right of an end X > aμ by at least e^{−h(X − aμ)} each,
ln g having a slope of at most μ; for a < 0 on both sides as φ does, times (1 − q)^a. Where a record
is replaced g and 1/g₋ both rise, with slopes of their logarithms in [0, μ], so that it is the same,
but for the slope, with (2a − 1)μ in place of aμ, and the factor cos(dμ/2)^{1 − a}. Between the
ends, terms that are small enough are left out on the word of doubles, with a factor of e to spare.

**Window.** A factor Φ((x₂ − x)/w) cuts off smoothly what lies right of x₂, and Φ((x − x₁)/w) what
lies left of x₁. On a horizontal line

    |Φ(u + iv)| ≤ ∫_{−∞}^u |φ(t + iv)| dt = e^{v²/2}·Φ(u),

so that each multiplies the bounds above by e^{v²/2w²}, and N becomes what is left of it. To the
right of an end X > x₂, with u = (X − x₂)/w, Φ(−u) ≤ e^{−u²/2}/2 falls by at least e^{−hu/w} each.
To the left of the other end both factors are at most 1, as the first one is here.

**Modulus.** For all y′ ≥ y ≥ 0 the sum is at most h·Σ_j |f(jh + id)| with y in place of y′: every
term falls with y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from flint import acb, acb_mat, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses.base import ROUND_OFF, Doubles
from dpverify.accounting.losses.nodes import Nodes
from dpverify.enclosure import to_arb
from dpverify.errors import NumericalError

__all__ = ["NormalMixture", "PowerIntegral", "Window"]

_MOST_POINTS = 1 << 22
_FAR = 1e6  # from there on a shifted normal law is all that counts
_DEEP = 1e12  # on the other side
_CLOSE = 100.0  # up to which one grid serves all peaks
_SHARE = 0.55  # of the working precision, which the trapezoid rule is to reach
# Of integrals for planning: widths beyond what matters, and at most so many points, to a width.
_EDGE, _PLACES, _FINE = 12, 1200, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Φ((x − start)/width)·Φ((end − x)/width), without the first one where all begins at −∞."""

    start: float = -math.inf
    end: float
    width: float

    @property
    def bulge(self) -> float:
        """A b: terms on a line at height v are at most e^{bv²/2} times those on the real one."""
        return 1 + (1 if self.start == -math.inf else 2) / self.width**2

    def log(self, x: Doubles) -> Doubles:
        """Its logarithm at real points, in doubles."""
        found: Doubles = scipy.special.log_ndtr((self.end - x) / self.width)
        return found + scipy.special.log_ndtr((x - self.start) / self.width)

    def at(self, z: acb) -> acb:
        """Its value."""
        scale = self.width * arb(2).sqrt()
        found = ((z - self.end) / scale).erfc() / 2
        return found if self.start == -math.inf else found * ((self.start - z) / scale).erfc() / 2


@dataclass(frozen=True, slots=True)
class NormalMixture:
    """q of a normal law moved by μ, mixed with 1 − q of the one that isn't.

    Attributes
    ----------
    replaced : whether the ratio is that to the mixture which is moved the other way
    """

    mu_squared: Fraction
    rate: Fraction
    replaced: bool = False

    @property
    def log_rest(self) -> float:
        """Ln(1 − q), also of a rate that is 1 as a double."""
        if (rate := float(self.rate)) < 0.5:
            return math.log1p(-rate)
        rest = 1 - self.rate
        return math.log(rest.numerator) - math.log(rest.denominator)

    def log_ratio(self, x: Doubles) -> Doubles:
        """Ln g, or ln r, at real points, in doubles."""
        return self.log_mixed(x) - self.log_mixed(-x) if self.replaced else self.log_mixed(x)

    def log_power(self, x: Doubles, a: Doubles | float) -> Doubles:
        """The logarithm of what φ is multiplied with, in doubles."""
        found: Doubles = a * self.log_mixed(x)
        return found - (a - 1) * self.log_mixed(-x) if self.replaced else found

    def reach(self, a: Doubles) -> Doubles:
        """The largest slope of that, which is where the last peak may be."""
        return math.sqrt(self.mu_squared) * (2 * a - 1 if self.replaced else a)

    def log_mixed(self, x: Doubles) -> Doubles:
        """Ln g."""
        q, mu = float(self.rate), math.sqrt(self.mu_squared)
        ell = mu * x - mu * mu / 2
        log, rest = math.log(q), self.log_rest
        few = 2 * self.rate > 1  # so that g may be as small as 1 − q, which is lost beside 1
        near = np.log1p(q * np.expm1(np.clip(ell, -1.0 if few else -np.inf, 30.0)))
        far = log + ell + np.log1p(math.exp(rest) / q * np.exp(-np.maximum(ell, 30.0)))
        if few:
            near = np.where(ell < -1, np.logaddexp(rest, log + ell), near)
        return np.where(ell < 30, near, far)

    def log_moments(self, a: Doubles, window: Window | None = None) -> Doubles:
        """Ln N at real points, in doubles: for planning.

        In a window for a ≥ 1 alone.
        """
        if window:
            low = max(-_EDGE, window.start - _EDGE * window.width)
            high = window.end + _EDGE * window.width
            most = high + window.width**2 * float(self.reach(a).max())  # where a peak may be
            places = min(_PLACES, math.ceil((high - low) * _FINE / min(window.width, 1.0)))
            tail = np.geomspace(high, most, places // 4)
            x = np.append(np.linspace(low, high, places), tail[1:])
            return _log_integrals(self.log_power(x, a[:, None]) + window.log(x), x)
        reach = self.reach(a)
        deep = reach < -_DEEP
        if deep.any():  # where g is least
            near = self.log_moments(np.where(deep, 0.0, a))
            return np.where(deep, a * self.log_rest, near)
        far = reach > _FAR
        if far.any():
            if self.mu_squared > _FAR**2:
                raise NumericalError(f"a shift of √{float(self.mu_squared)!r} is beyond doubles")
            near = self.log_moments(np.where(far, 1.0, a))
            beyond = a * math.log(self.rate) + float(self.mu_squared) * a * (a - 1) / 2
            if self.replaced:
                beyond -= (a - 1) * self.log_rest
            return np.where(far, beyond, near)
        close = np.abs(reach) <= _CLOSE
        if close.any() and not close.all():
            found = np.empty_like(a)
            for part in (close, ~close):
                found[part] = self.log_moments(a[part])
            return found
        if close.all():  # the peaks lie between 0 and aμ
            ends = np.array([min(reach.min(), 0.0) - 12, max(reach.max(), 0.0) + 12])
            first, last = np.rint(ends * 8)
            x = np.arange(first, last + 1)[None, :] / 8
        else:
            x = self._grid(a)
        return _log_integrals(self.log_power(x, a[:, None]), x)

    def share(self, x: Doubles) -> Doubles:
        """The slope of ln g over μ."""
        q, mu = float(self.rate), math.sqrt(self.mu_squared)
        up = q * np.exp(np.minimum(mu * x - mu * mu / 2, 700.0))
        found: Doubles = up / (math.exp(self.log_rest) + up)
        return found

    def _grid(self, a: Doubles) -> Doubles:
        """Points around the peaks of φ·g^a, where x = aμ·share(x), a row for each a."""
        if self.replaced:
            return self._grid_between(a)
        reach = a * math.sqrt(self.mu_squared)
        ends = np.array([np.zeros_like(a), np.maximum(reach, 0.0)])
        for _ in range(60):
            before, ends = ends, np.maximum(reach, 0.0) * self.share(ends)
            if np.abs(ends - before).max() < 1e-3:
                break
        first, last = ends
        if (a < 0).any():
            low, high = np.minimum(reach * self.share(np.zeros_like(a)), 0.0), np.zeros_like(a)
            for _ in range(90):
                middle = (low + high) / 2
                rising = middle < reach * self.share(middle)
                low, high = np.where(rising, middle, low), np.where(rising, high, middle)
            first, last = np.where(a >= 0, first, low), np.where(a >= 0, last, low)
        near = np.linspace(-12, 12, 193)
        along = np.linspace(0, 1, 385)
        span = (first - 12)[:, None] + (last - first + 24)[:, None] * along
        points = np.concatenate([first[:, None] + near, last[:, None] + near, span], axis=1)
        # On multiples of one step the rule converges exponentially, however often it has them.
        return np.sort(np.round(points * 8) / 8, axis=1)

    def _grid_between(self, a: Doubles) -> Doubles:
        """The same of φ·g·r^{a − 1}, around the largest of points in the range."""
        along = np.linspace(0, 1, 2001)
        span = -12 + (self.reach(a) + 24)[:, None] * along
        heights = self.log_power(span, a[:, None]) - span * span / 2
        peak = np.take_along_axis(span, heights.argmax(axis=1)[:, None], axis=1)
        points = np.concatenate([peak + np.linspace(-12, 12, 385), span], axis=1)
        return np.sort(np.round(points * 16) / 16, axis=1)


def _log_integrals(logs: Doubles, x: Doubles) -> Doubles:
    """Ln ∫ φ·e^logs in each row."""
    exponents = logs - x * x / 2
    most = exponents.max(axis=1, keepdims=True)
    values = np.trapezoid(np.exp(exponents - most), x, axis=1)
    found: Doubles = most[:, 0] + np.log(values / math.sqrt(2 * math.pi))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PowerIntegral:
    """N(a + iy) for one a and all y ≥ 0, or what a window leaves of it.

    Attributes
    ----------
    logs : ln g, or ln r, at the points
    weights : h·φ·g^a there, or h·φ·g·r^{a − 1}, times the window
    error : bound on what a sum is off by
    total : a ball around N(a), or what the window leaves of it
    """

    logs: Sequence[acb]
    weights: Sequence[acb]
    error: arb
    total: arb

    @classmethod
    def of(
        cls,
        mixture: NormalMixture,
        a: arb,
        window: Window | None = None,
        *,
        effort: float | None = None,
        most_bulge: float = math.inf,
        most_height: float = math.inf,
    ) -> PowerIntegral:
        """At the current precision.

        Parameters
        ----------
        window : for a ≥ 1
        effort : minus the logarithm of what sums may be off by, relative to N(a); by default
            what the precision is good for
        most_bulge : the logarithm of how much larger terms may be than on the real line, which
            takes digits of a sum in doubles
        most_height : of the line, where φ alone makes terms larger
        """
        effort = effort or _SHARE * ctx.prec * math.log(2)
        return _Rule.of(mixture, a, window, effort, most_bulge, most_height).integral()

    def along(self, nodes: Nodes) -> list[acb]:
        """The integrals at each node of a line, whatever its c."""
        off = acb(arb(0, self.error), arb(0, self.error))
        return [value + off for value in nodes.sums(self.weights, self.logs)]

    def at(self, heights: Sequence[arb]) -> list[acb]:
        """The integrals at any y ≥ 0."""
        off = acb(arb(0, self.error), arb(0, self.error))
        row = acb_mat(1, len(self.logs), list(self.weights))
        found = []
        for y in heights:
            turns = [(acb(0, y) * log).exp() for log in self.logs]
            found.append((row * acb_mat(len(turns), 1, turns))[0, 0] + off)
        return found

    def in_doubles(self) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Weights over N(a), ln g, and the error, also over N(a).

        N(a) itself is off by its radius, and the quotient, which is at most 1, by as much.
        """
        scale = self.total.mid()
        weights = np.array([complex(w / scale) for w in self.weights])
        logs = np.array([complex(log) for log in self.logs])
        error = (self.error + self.total.rad()) / scale
        return weights, logs, float(error.upper()) * (1 + 2.0**-40)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The trapezoid rule for one a: which points, and what it is off by at most."""

    mixture: NormalMixture
    a: arb
    window: Window | None
    height: float  # d
    step: float  # h
    effort: float

    @classmethod
    def of(
        cls,
        mixture: NormalMixture,
        a: arb,
        window: Window | None,
        effort: float,
        most_bulge: float = math.inf,
        most_height: float = math.inf,
    ) -> _Rule:
        mu, near = math.sqrt(mixture.mu_squared), float(a)
        heights = np.geomspace(1e-4, 6.0, 400)
        heights = heights[(2 * heights * mu <= 3.0) & (heights <= most_height)]
        bulge = window.bulge if window else 1.0
        bulges = heights**2 / 2 * bulge
        turned = near - 1 if mixture.replaced else max(-near, 0.0)
        bulges -= turned * np.log(np.cos(heights * mu / 2))
        if (bulges <= most_bulge).any():  # of huge powers every line bulges
            heights = heights[bulges <= most_bulge]
        if not heights.size:
            raise NumericalError(f"no line of integration for a shift of {mu} standard deviations")
        cost = 2 * heights**2 * bulge + effort
        if near < 0:
            turn = near * np.log(np.cos(heights * mu))
            flat = near * mixture.log_rest if mixture.rate < 1 else math.inf
            cost += np.where(2 * heights * mu <= 1.57, np.minimum(turn, flat), turn)
        if mixture.replaced:
            cost -= (near - 1) * np.log(np.cos(heights * mu))
        steps = 2 * math.pi * heights / cost
        best = int(np.argmax(steps))
        scale = 2.0 ** (math.floor(math.log2(steps[best])) - 12)
        return cls(
            mixture=mixture,
            a=a,
            window=window,
            height=float(heights[best]),
            step=math.floor(steps[best] / scale) * scale,  # its multiples are exact
            effort=effort,
        )

    def integral(self) -> PowerIntegral:
        mu, q = to_arb(self.mixture.mu_squared).sqrt(), to_arb(self.mixture.rate)
        base, height, h = to_arb(1 - self.mixture.rate), arb(self.height), arb(self.step)
        chosen, first, last, floor = self._points()
        half = mu * mu / 2
        front = h / (2 * arb.pi()).sqrt()
        logs, weights = [], []
        for j in chosen:
            z = acb(h * int(j), height)
            log = own = (base + q * (mu * z - half).exp()).log()
            if self.mixture.replaced:
                log = own - (base + q * (-mu * z - half).exp()).log()
            weight = front * (own + (self.a - 1) * log - z * z / 2).exp()
            logs.append(log)
            weights.append(weight * self.window.at(z) if self.window else weight)
        left_out = self._beyond(first, last) + arb(last - first) * h * arb(floor + 1).exp()
        total = sum((w.real for w in weights), arb(0))
        error = (self._discretisation(total, left_out) + left_out).upper()
        return PowerIntegral(logs=logs, weights=weights, error=error, total=total + arb(0, error))

    @property
    def _bulge(self) -> float:
        """At least that of the window, which is rounded."""
        return self.window.bulge * (1 + ROUND_OFF) if self.window else 1.0

    def _points(self) -> tuple[Sequence[int], int, int, float]:
        """Which multiples of h matter, the range that they were chosen from, and ln of the rest."""
        mu, a, h = math.sqrt(self.mixture.mu_squared), float(self.a), self.step
        turn = self.height * mu
        more = a * self.mixture.log_rest if a < 0 else 0.0
        if self.mixture.replaced:
            more = (1 - a) * math.log(math.cos(turn / 2))
        (log_total,) = self.mixture.log_moments(np.array([a]), self.window)
        effort = self.effort + self.height**2 * self._bulge + max(-float(log_total), 0.0)
        reach = math.sqrt(2 * (effort + more)) + 2
        tilt = max(float(self.mixture.reach(np.array(a))), 0.0)
        end = tilt + reach
        if self.window:
            width = self.window.width
            end = min(end, self.window.end + width * (width * tilt + reach))
        first, last = math.floor(-reach / h), math.ceil(end / h)
        if last - first > _MOST_POINTS:
            raise NumericalError(f"{last - first} points of a mixture are too many")
        j = np.arange(first, last + 1)
        x: Doubles = j.astype(np.float64) * h
        size = (self.height**2 * self._bulge - x * x) / 2 + a * self._log_modulus(x, turn)
        if self.mixture.replaced:
            size -= (a - 1) * self._log_modulus(-x, turn)
        if self.window:
            size += self.window.log(x)
        floor = float(log_total) - effort - math.log(len(j)) - math.log(h)
        return [int(k) for k in j[size > floor]], first, last, floor

    def _log_modulus(self, x: Doubles, turn: float) -> Doubles:
        """Ln |g(x + id)|, from |g|² = g² − 2(1 − q)q·e^ℓ·(1 − cos dμ)."""
        log = self.mixture.log_mixed(x)
        share = self.mixture.share(x)
        found: Doubles = log + np.log1p(-4 * share * (1 - share) * math.sin(turn / 2) ** 2) / 2
        return found

    def _beyond(self, first: int, last: int) -> arb:
        """Bound on the terms before the first and after the last point of the range."""
        mu, q = to_arb(self.mixture.mu_squared).sqrt(), to_arb(self.mixture.rate)
        base = to_arb(1 - self.mixture.rate)
        h, front = arb(self.step), (arb(self.height) ** 2 * self._bulge / 2).exp()
        total = arb(0)
        for end, is_left in ((first, True), (last, False)):
            x = h * end
            density = h * (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
            if self.a > 0:
                log = (base + q * (mu * x - mu * mu / 2).exp()).log()
                power, slope = (self.a * log).exp(), self.a * mu
                if self.mixture.replaced:
                    other = (base + q * (-mu * x - mu * mu / 2).exp()).log()
                    other += (arb(self.height) * mu / 2).cos().log()
                    power *= (-(self.a - 1) * other).exp()
                    slope += (self.a - 1) * mu
                slope = abs(x) if is_left else x - slope
                if not is_left and self.window and x > self.window.end:
                    u = (x - self.window.end) / self.window.width
                    power *= (-u * u / 2).exp() / 2
                    slope += u / self.window.width
            else:
                power, slope = (self.a * base.log()).exp(), abs(x)
            if not slope > 0:
                raise NumericalError(f"the range of a mixture ends too early, at {x}")
            total += front * density * power / (1 - (-h * slope).exp())
        return total

    def _discretisation(self, total: arb, left_out: arb) -> arb:
        mu, base = to_arb(self.mixture.mu_squared).sqrt(), to_arb(1 - self.mixture.rate)
        height, h = arb(self.height), arb(self.step)
        fall = 1 / ((2 * arb.pi() * height / h).exp() - 1)
        front = (2 * height * height * self._bulge).exp()
        if self.mixture.replaced:
            share = fall * (1 + front * ((1 - self.a) * (height * mu).cos().log()).exp())
        elif self.a > 0:
            share = fall * (1 + front)
        else:
            turn = height * mu
            share = fall * (1 + front * (self.a * turn.cos().log()).exp())
            if 2 * turn <= 1.57:
                flat = fall * (1 + front) * (self.a * base.log()).exp()
                if not share < 1 or flat < share * total:
                    return flat
        if not share < 1:
            raise NumericalError(f"the trapezoid rule proves nothing at {self.a}")
        # |S − N| ≤ share·N + left out, and so N ≤ (S + left out)/(1 − share).
        return share * (abs(total) + left_out) / (1 - share)
