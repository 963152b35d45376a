"""δ(ε) of many releases on Poisson samples: what few large losses make of it, and the rest.

Where T times the rate is small, M(s)^T hardly falls along its line, since most losses are almost
equal: the record was not in the sample. But f(ε) is made by the few that are large. So split the
first law of one release smoothly by a window 0 ≤ χ ≤ 1 that rises with the loss, M = A + B with

    A(s) = E[(1 − χ)·e^{sL}],      B(s) = E[χ·e^{sL}],

and the law of T releases into its part where 1 − χ is taken T times, and the rest. Both are
positive measures, so that f = f₀ + f₁ with f₀, f₁ ≥ 0. The transform of f₁ is
(M^T − A^T)/(s(s + 1)), which falls as B does, and that is smooth; its trapezoid sum has the aliases
of `_inversion`, for f₁ ≤ f. Everywhere f₁ is at most the second part's mass, 1 − A(0)^T. What is
left is, for every x₂ and b > 0,

    f₀(ε) ≤ T·E[1 − χ; x > x₂] + A₂(b)^T·e^{−bε},      A₂(b) = E[e^{bL}; x ≤ x₂],

since either one of the T is above x₂, or none, where Chernoff's bound holds. χ is a normal
distribution function from x₁ < x₂, far enough for the first term, and x₂ the largest that makes the
second one small. A₂ is bounded by an upper sum in doubles, L rising with x, of logarithms, since
masses that are below all doubles count where L is large. The logarithm of scipy's normal
distribution function is taken to be right to fourteen digits.

Nodes beyond the last one are bounded by |M^T − A^T| ≤ T·|B|·M(c)^{T − 1}, for |M|, |A| ≤ M(c), or
by |M|^T where there is no window; |B| and |M| by what falls with y on the shifted line of
`NormalMixture`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from flint import acb, arb, ctx

from dpverify.accounting.composition._inversion import EveryNode, Line
from dpverify.accounting.composition._saddle import Transform, normal_epsilon
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.poisson_replaced import PoissonReplaced
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.accounting.losses._normal_mixture import NormalMixture, PowerIntegral, Window
from dpverify.accounting.losses.base import ROUND_OFF, Doubles
from dpverify.accounting.losses.poisson_sampled import MixtureLoss
from dpverify.accounting.targets import LEAST_DELTA
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError

__all__ = [
    "SAMPLED_EFFORTS",
    "SampledSum",
    "sampled_bounds",
    "sampled_guess",
    "sampled_root",
    "sampled_value",
]

_CELLS, _REACH = 20_000, 12.0
_POWERS = 72  # that are tried in Chernoff's bound
_MOST_WORK = 100_000_000  # nodes times points
_SLACK, _TINY = 1e-9, 1e-300
_WIDEST = 0.5  # window
_ROUNDS = 5
_MOST_STEPS = 30
_ROOT_EFFORT = 8.0
_NEAR = 0.1  # of a move in ε, in units of 1/c, that needs no other one
_DIGITS = 7.0  # −ln of what bounds that need few digits may be off by
# Precision in bits, and the effort of `SampledSum.near`.
SAMPLED_EFFORTS = ((128, 26.0), (160, 34.0), (256, 45.0))
_WIDTH = 1e-10


@dataclass(frozen=True, slots=True)
class _Rest:
    """Bound on f₀: e^`log_above` + e^{`log_power` − bε}."""

    window: Window
    log_above: float
    log_power: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledSum:
    """f(ε) of T equal releases, for every ε near the one that it was made for.

    The nodes outweigh f where M falls slowly along the line, and are added up at the precision that
    they were made for.
    """

    inversion: EveryNode
    rest: _Rest | None
    precision: int

    @classmethod
    def near(
        cls,
        loss: MixtureLoss,
        times: int,
        eps: float,
        effort: float,
        log_size: float | None = None,
    ) -> SampledSum:
        """For values of about e^log_size at about ε, of which the sum is off by about e^−effort."""
        sums = _Sum(loss=loss, times=times, eps=eps, effort=effort)
        split = None if loss.added else sums.split(log_size)
        if split and log_size is None:
            log_size = split[0].size
        tries = [sums.along(sums.plan(None, log_size), None)]
        if split:
            tries.append(sums.along(*split))
        found = [line for line in tries if line.last is not None]
        if not found:
            raise NumericalError(f"delta near epsilon={eps!r} takes more than {_MOST_WORK} terms")
        best = min(found, key=lambda line: line.work)
        with ctx.workprec(best.precision):
            return cls(inversion=best.inversion(), rest=best.rest, precision=best.precision)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        with ctx.workprec(self.precision):
            found = self.inversion.value(epsilon)
            if self.rest is None:
                return found
            power = (arb(self.rest.log_power) - arb(self.rest.b) * epsilon).exp()
            return found.union(found + arb(self.rest.log_above).exp() + power)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """What is asked for."""

    loss: MixtureLoss
    times: int
    eps: float
    effort: float

    def plan(self, window: Window | None, log_size: float | None) -> _Plan:
        """The line of the least period, and so of the fewest nodes, near the saddle point."""
        transform = Transform(
            log=lambda c: _log_transform(self.loss, self.times, c, window), top=math.inf
        )
        middle = transform.saddle_at(self.eps)
        size = transform.log_size(middle, self.eps)
        aim = self.effort - (size if log_size is None else log_size)
        points = np.append(1e-9 * middle, middle * np.geomspace(0.2, 50, 160))
        logs = transform.log(points)
        log_mass = min(float(logs[0]), 0.0)
        c, b = np.meshgrid(points[1:90], points[1:])
        with np.errstate(divide="ignore"):
            right = (logs[1:, None] - b * self.eps + aim) / (b - c)
        right[b <= c] = math.inf
        ends = np.argmin(right, axis=0)
        across = np.arange(c.shape[1])
        periods = np.maximum(np.maximum(aim + log_mass, 4.0) / c[0], right[ends, across])
        at = int(np.argmin(periods))
        here, period = float(c[0, at]), float(periods[at])
        threshold = -aim - (float(logs[1 + at]) - here * self.eps) + math.log(period) - 9
        line = Line(
            c=here,
            b=float(points[1 + ends[at]]),
            period=period,
            threshold=threshold,
            most_nodes=0,
            most_work=0,
        )
        return _Plan(line=line, size=size)

    def split(self, log_size: float | None) -> tuple[_Plan, _Rest] | None:
        """The window depends on the size of f, and the size of f₁ on the window."""
        plan, rest = self.plan(None, log_size), None
        size = plan.size if log_size is None else log_size
        for _ in range(_ROUNDS):
            rest = _rest(self.loss.mixture, self.times, self.eps, size - self.effort, plan.line.c)
            if rest is None:
                return None
            plan = self.plan(rest.window, log_size)
            if abs(plan.size - size) < 2 or log_size is not None:
                break
            size = plan.size
        return None if rest is None else (plan, rest)

    def along(self, plan: _Plan, rest: _Rest | None) -> _Along:
        """The integral for a plan, and how many nodes it takes."""
        window, line = rest.window if rest else None, plan.line
        c = np.array([line.c])
        whole = self.times * float(self.loss.log_moment(c)[0])
        effort = whole - float(_log_transform(self.loss, self.times, c, window)[0]) - line.threshold
        effort += math.log(self.times) + 5
        precision = max(ctx.prec, _bits(effort))
        with ctx.workprec(precision):
            power = self.loss.power(arb(line.c))
            integral = PowerIntegral.of(self.loss.mixture, power, window, effort=effort)
            last, beyond = _last_node(integral, self.times, line)
        return _Along(
            loss=self.loss,
            times=self.times,
            line=line,
            rest=rest,
            integral=integral,
            precision=precision,
            last=last,
            beyond=beyond,
        )


def _bits(effort: float) -> int:
    return int(effort / math.log(2)) + 40


def _log_transform(loss: MixtureLoss, times: int, c: Doubles, window: Window | None) -> Doubles:
    """Ln(M^T − A^T) at real points, in doubles."""
    whole = loss.log_moment(c)
    if window is None:
        return times * whole
    inside = loss.mixture.log_moments(1 + c, window) - whole
    left = times * np.log1p(-np.minimum(np.exp(inside), 1 - 1e-16))
    few = np.log(-np.expm1(np.minimum(left, -1e-16)))
    found: Doubles = times * whole + np.where(inside < -36, math.log(times) + inside, few)
    return found


@dataclass(frozen=True, slots=True)
class _Plan:
    line: Line
    size: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Along:
    """A line, and what is known of the nodes on it."""

    loss: MixtureLoss
    times: int
    line: Line
    rest: _Rest | None
    integral: PowerIntegral
    precision: int
    last: int | None
    beyond: arb

    @property
    def work(self) -> int:
        """Nodes times points."""
        assert self.last is not None  # noqa: S101
        return (self.last + 1) * len(self.integral.logs) * len(self.integral.weights)

    def inversion(self) -> EveryNode:
        """The sum."""
        assert self.last is not None  # noqa: S101
        c, b, period = arb(self.line.c), arb(self.line.b), arb(self.line.period)
        step = 2 * arb.pi() / period
        powers = _powers(self.integral.values(step, self.last + 1), self.times)
        if self.loss.added:
            powers = [p.conjugate() for p in powers]
        points = (acb(c, step * k) for k in range(self.last + 1))
        weights = [p / (s * (s + 1)) for p, s in zip(powers, points, strict=True)]
        return EveryNode.of(
            weights,
            c=c,
            b=b,
            period=period,
            dropped=2 / period * self.beyond,
            beyond=self._far(),
            most=self._mass(),
        )

    @property
    def _window(self) -> Window | None:
        return self.rest.window if self.rest else None

    def _far(self) -> arb:
        """Bound on what is integrated at b, to a few digits."""
        c = np.array([self.line.b])
        whole = self.times * float(self.loss.log_moment(c)[0])
        effort = whole - float(_log_transform(self.loss, self.times, c, self._window)[0])
        effort = max(effort, 0.0) + math.log(self.times) + _DIGITS
        with ctx.workprec(_bits(effort)):
            power = self.loss.power(arb(self.line.b))
            far = PowerIntegral.of(self.loss.mixture, power, self._window, effort=effort)
            (end,) = _powers([[acb(total)] for total in far.total], self.times)
            return abs(end).upper()

    def _mass(self) -> arb:
        """Bound on f₁ everywhere, to a few digits."""
        mixture, window = self.loss.mixture, self._window
        if window is None:
            return arb(1)
        effort = max(-float(mixture.log_moments(np.ones(1), window)[0]), 0.0) + _DIGITS
        with ctx.workprec(_bits(effort)):
            inside = PowerIntegral.of(mixture, arb(1), window, effort=effort).total[1]
            if not inside < 1:
                return arb(1)
            return (-(self.times * (-inside.upper()).log1p()).expm1()).upper()


def sampled_value(loss: MixtureLoss, times: int, epsilon: Fraction) -> arb:
    """Encloses f(ε), to a relative 1e-10 where a few tries reach that.

    Where a sum takes too many nodes, what basic composition and a single release prove is left.
    """
    one = _one(loss)
    least = Enclosure(0.0, 0.0) if loss.added else one.delta_at(epsilon)
    most = one.delta_at(epsilon / times)
    best = arb(least.lower).union((arb(times) * arb(most.upper)).min(arb(1)))
    size = None
    for precision, effort in SAMPLED_EFFORTS:
        with ctx.workprec(precision):
            try:
                sums = SampledSum.near(loss, times, float(epsilon), effort, size)
            except NumericalError:
                break
            best = best.intersection(sums.value(to_arb(epsilon)))
        if best.rad() <= _WIDTH * best.lower():
            break
        size = float(best.upper().log())
    return best


def sampled_bounds(loss: MixtureLoss, times: int, delta: Fraction) -> Enclosure:
    """Encloses ε(δ) by one release and, where shares of δ are targets, by basic composition."""
    one = _one(loss)
    least = 0.0 if loss.added else one.epsilon_at(delta).lower
    if delta / times < LEAST_DELTA:
        return Enclosure(least, math.inf)
    most = arb(times) * arb(one.epsilon_at(delta / times).upper)
    return Enclosure(least, Enclosure.of_ball(most).upper)


def _one(loss: MixtureLoss) -> PoissonSampled | PoissonReplaced:
    kind = PoissonReplaced if loss.mixture.replaced else PoissonSampled
    return kind(curve=Gaussian.from_mu_squared(loss.base.mu_squared), rate=loss.rate)


def sampled_guess(loss: MixtureLoss, times: int, delta: Fraction, guess: float) -> float:
    """An ε with f(ε) near δ, by formulas alone; a proposal.

    That is where Laplace's method at the saddle point of M^T has f = δ, if at that of M^T − A^T, of
    large losses, it has about the same. Else few of them count: it is that of the one large loss
    that makes δ, or that of the normal law, or the guess where that is less.
    """
    with ctx.workprec(128):
        log_delta = float(to_arb(delta).log())
        large = _one(loss).epsilon_at(max(delta / times, LEAST_DELTA)).upper
        normal = normal_epsilon([(loss.base.mu_squared, loss.rate, times)], delta)
        few = min(max(large, normal), guess) or guess
        if loss.added:
            return few
        whole = Transform(log=lambda c: _log_transform(loss, times, c, None), top=math.inf)
        many = guess
        for _ in range(_MOST_STEPS):
            c = whole.saddle_at(many)
            move = (whole.log_size(c, many) - log_delta) / c
            many = max(many + move, many / 4)
            if abs(move) * c < _NEAR:
                break
        split = _Sum(loss=loss, times=times, eps=many, effort=_ROOT_EFFORT).split(None)
        return many if split and abs(split[0].size - log_delta) < 1 else few


def sampled_root(
    loss: MixtureLoss, times: int, delta: Fraction, guess: float
) -> tuple[float, SampledSum]:
    """An ε with f(ε) near δ, and the last of the sums that lead there; a proposal."""
    with ctx.workprec(128):
        log_delta = float(to_arb(delta).log())
        low, high, eps = 0.0, math.inf, guess
        for _ in range(_MOST_STEPS):
            sums = SampledSum.near(loss, times, eps, _ROOT_EFFORT, log_delta)
            c = float(sums.inversion.c)
            here, after = (sums.value(arb(x)) for x in (eps, eps + 1e-3 / c))
            if not here.rad() < 0.1 * abs(here.mid()):  # far below δ
                eps, high = max((low + eps) / 2, eps / 4), eps
                continue
            log = float(here.mid().log())
            slope = (log - float(after.mid().log())) / (1e-3 / c) if after.mid() > 0 else c
            move = (log - log_delta) / max(slope, c / 10)
            low, high = (eps, high) if move > 0 else (low, eps)
            following = min(eps + move, 3 * eps + 1 / c)
            if not low < following < high:
                following = (low + min(high, 2 * low + 1 / c)) / 2
            steepest = max(c, sums.rest.b if sums.rest else 0.0)
            if abs(following - eps) * steepest < 0.5 or following * c < 1e-6:
                return following, sums
            eps = following
    raise NumericalError(f"no epsilon is found for delta={float(delta)!r}")


def _powers(columns: Sequence[Sequence[acb]], times: int) -> list[acb]:
    """M^T, or M^T − A^T."""
    if len(columns) == 1:
        return [m**times for m in columns[0]]
    # A power of a real ball around 0 itself is NaN in flint.
    return [m**times - acb(m - inside) ** times for m, inside in zip(*columns, strict=True)]


def _last_node(integral: PowerIntegral, times: int, line: Line) -> tuple[int | None, arb]:
    """The last node, and a bound on Σ |M^T − A^T|/|s(s + 1)| over those after it."""
    windowed = len(integral.weights) > 1
    weights, logs, error = integral.in_doubles(-1)
    sizes, angles = np.abs(weights), logs.imag
    step = 2 * math.pi / line.period
    most = _MOST_WORK // len(integral.logs)
    (total,) = _powers([[acb(t)] for t in integral.total], times)
    log_whole = times * float(integral.total[0].log().upper())
    log_total = float(abs(total).upper().log())

    def log_beyond(last: int) -> float:
        modulus = float(sizes @ np.exp(-last * step * angles)) * (1 + _SLACK) + error + _TINY
        fall = math.log(times) + math.log(modulus) if windowed else times * math.log(modulus)
        # Σ_{k > K} 1/(kη)² < 1/(η²K)
        return log_whole + fall - math.log(step * step * last) + _SLACK * (1 + abs(log_whole))

    last = 16
    while log_beyond(last) - log_total > line.threshold:
        last += max(last // 8, 1)
        if last > most:
            return None, arb(0)
    return last, arb(log_beyond(last)).exp()


def _rest(mixture: NormalMixture, times: int, eps: float, room: float, c: float) -> _Rest | None:
    """The window, and the bound of what is left; None where all is inside."""
    mu, q = math.sqrt(mixture.mu_squared), float(mixture.rate)
    reach = math.sqrt(2 * max(-room, 40.0)) + 2
    near = c * np.geomspace(0.125, 1e4, _POWERS)
    coarse = _log_parts(mixture, reach, _CELLS // 40)
    bounds = [times * np.logaddexp.accumulate(coarse[1] + b * coarse[2]) - b * eps for b in near]
    good = np.flatnonzero(np.min(bounds, axis=0) <= room)
    if not good.size:
        return None
    b = float(near[int(np.argmin([bound[good[-1]] for bound in bounds]))])
    x, log_cells, log_ratio = _log_parts(mixture, reach, _CELLS)
    # ln g errs as μx and μ² do, and is added at most twice.
    off = ROUND_OFF * (1 + 2 * b) * (np.abs(mixture.log_mixed(np.abs(x))) + mu * (np.abs(x) + mu))
    sums = np.logaddexp.accumulate(log_cells + b * log_ratio + off) + _SLACK
    good = np.flatnonzero(times * sums - b * eps <= room)
    if not good.size:
        return None
    at, width = good[-1], min(_WIDEST, 1 / (7 * mu))
    end = float(x[at])
    above = math.log(times) + float(
        np.logaddexp(
            mixture.log_rest + scipy.special.log_ndtr(-end),
            math.log(q) + scipy.special.log_ndtr(mu - end),
        )
    )
    distance = max(-float(scipy.special.ndtri_exp(min(room - above, -1e-300))), 0.0)
    log_above = above + float(scipy.special.log_ndtr(-distance))
    return _Rest(
        window=Window(start=end - width * distance, width=width),
        log_above=log_above + _SLACK + ROUND_OFF * abs(log_above),
        log_power=times * float(sums[at]),
        b=b,
    )


def _log_parts(
    mixture: NormalMixture, reach: float, cells: int
) -> tuple[Doubles, Doubles, Doubles]:
    """Right ends of cells from −∞ on, ln of a bound on the mass of each, and the loss there."""
    x = np.linspace(-reach, reach + math.sqrt(mixture.mu_squared), cells + 1)
    # From the side where it is relatively exact, in logarithms: masses may be below all doubles.
    left = x[1:] <= 0
    most = scipy.special.log_ndtr(np.where(left, x[1:], -x[:-1]))
    least = scipy.special.log_ndtr(np.where(left, x[:-1], -x[1:]))
    masses = most + np.log(-np.expm1(least - most))
    masses = np.concatenate([[scipy.special.log_ndtr(x[0])], masses])
    # Of φ; the first law has g times as much, which rises with x, as the loss does.
    return x, masses + mixture.log_mixed(x), mixture.log_ratio(x)
