"""δ(ε) of many releases on Poisson samples, whose law has a heavy tail.

M(s)^T hardly falls along its line where T times the rate is small, since most losses are almost
equal: the record was not in the sample. And the line is near the real axis, since M grows with
losses that are far larger, and far too rare, than those that make f(ε). So split the first law of
one release smoothly at x₁ < x₂, L rising with x, with χ₁ and χ₂ normal distribution functions that
rise there, M = A + B + C,

    A(s) = E[(1 − χ₁)·e^{sL}],    B(s) = E[χ₁·(1 − χ₂)·e^{sL}],    C(s) = E[χ₁·χ₂·e^{sL}],

and the law of T releases into its part where 1 − χ₁ is taken T times, that where C is taken at
least once, and the rest. All are positive measures, so that f = f₀ + f₁ + f₂ with none below 0:

    f₀ ≤ A(b)^T·e^{−bε}, by Chernoff's bound, for every b > 0;
    f₁ has the transform ((A + B)^T − A^T)/(s(s + 1)), which falls as B does, and that is smooth;
    f₂ ≤ T·E[χ₂], where a normal law of x around m makes Φ((m − x₂)/√(1 + w²)), of χ₂'s width w.

The trapezoid sum of f₁ exceeds it by the aliases of `_inversion`. Those on the left are at most its
mass, (A + B)^T − A^T at 0, and those on the right are bounded by the same at b. x₂ is the least
place where f₂ is small enough, and x₁ where L is a share of ε and f₀ is. Without x₁ there is no A
and the sum is that of B^T; without both, B is M.

Nodes beyond the last one are bounded by |(A + B)^T − A^T| ≤ T·|B|·(|A| + |B|)^{T − 1}, and |A| and
|B| by A(c) and B(c), and by what falls with y on the shifted line of `NormalMixture`. The logarithm
of scipy's normal distribution function is taken to be right to fourteen digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from flint import acb, arb, ctx

from dpverify.accounting.composition._inversion import Inversion, Line
from dpverify.accounting.composition._saddle import Transform, normal_epsilon
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.poisson_replaced import PoissonReplaced
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.accounting.losses._normal_mixture import PowerIntegral, Window
from dpverify.accounting.losses.base import ROUND_OFF, Doubles
from dpverify.accounting.losses.nodes import Nodes
from dpverify.accounting.losses.poisson_sampled import MixtureLoss
from dpverify.accounting.targets import LEAST_DELTA
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError

__all__ = [
    "SAMPLED_EFFORTS",
    "SampledSum",
    "one_release",
    "sampled_bounds",
    "sampled_guess",
    "sampled_root",
    "sampled_value",
]

_LITTLE, _MUCH, _MOST_WORK = 100_000, 1_000_000, 100_000_000  # nodes times points
_SLACK, _TINY = 1e-9, 1e-300
_WIDTHS = tuple(2.0**-k for k in range(7))  # of χ, in units of min(1, 1/4μ)
_SHARES = (0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02)  # of ε, that the loss is at x₁
_PLACES, _POINTS = 4001, 64
_WORK = 350  # of a point, in nodes
_MOST_STEPS = 30
_ROOT_EFFORT = 8.0
_NEAR = 0.1  # of a move in ε, in units of 1/c, that needs no other one
_CLOSE = 2.0
_DIGITS = 7.0  # −ln of what bounds that need few digits may be off by
# Precision in bits, and the effort of `SampledSum.near`.
SAMPLED_EFFORTS = ((128, 26.0), (160, 34.0), (256, 45.0))
_WIDTH = 1e-10


Windows = Sequence[Window | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledSum:
    """f(ε) of T equal releases, for every ε near the one that it was made for.

    The nodes outweigh f where M falls slowly along the line, and are added up at the precision that
    they were made for.

    Attributes
    ----------
    inversion : f₁
    power, b : f₀ is at most power·e^{−bε}
    log_beyond : ln of a bound on f₂
    """

    inversion: Inversion
    precision: int
    power: arb
    b: float
    log_beyond: float

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
        size = sums.log_size() if log_size is None else log_size
        best = sums.along(sums.plan(size, [None]))
        if not loss.added:
            for most, kind in ((_LITTLE, sums.cuts), (_MUCH, sums.splits)):
                plan = sums.least_work(size, kind(size)) if best.work > most else None
                if plan:
                    best = min(best, sums.along(plan), key=lambda line: line.work)
        if best.work == math.inf:
            raise NumericalError(f"delta near epsilon={eps!r} takes more than {_MOST_WORK} terms")
        return sums.added_up(best)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        with ctx.workprec(self.precision):
            found = self.inversion.value(epsilon)
            left = arb(self.log_beyond).exp() + self.power * (-arb(self.b) * epsilon).exp()
            return found.union(found + left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """What is asked for."""

    loss: MixtureLoss
    times: int
    eps: float
    effort: float

    def log_size(self) -> float:
        """Ln f by Laplace's method, for planning: with the cut that belongs to it."""
        high = self.saddle([None])[1]
        if self.loss.added:
            return high
        step, low = _CLOSE, high
        while self.saddle(self.cuts(low)[-1])[1] < low - _CLOSE:
            high, low, step = low, low - step, 2 * step
        while high - low > _CLOSE:
            middle = (low + high) / 2
            found = self.saddle(self.cuts(middle)[-1])[1]
            low, high = (low, middle) if found < middle else (middle, high)
        return low

    def saddle(self, windows: Windows) -> tuple[float, float]:
        """The saddle point of a transform, and ln f by Laplace's method there."""
        transform = self._transform(windows)
        place = transform.saddle_at(self.eps)
        return place, transform.log_size(place, self.eps)

    def cuts(self, log_size: float) -> list[list[Window]]:
        """Windows of B alone of which f₂ is small enough."""
        unit = min(1.0, 1 / (4 * math.sqrt(self.loss.base.mu_squared)))
        share = log_size - self.effort - math.log(self.times) - math.log(2)
        found = []
        for width in (unit * part for part in _WIDTHS):
            end = max(
                middle
                - math.hypot(1, width) * float(scipy.special.ndtri_exp(min(share - log, -1.0)))
                for log, middle in self._laws
            )
            found.append([Window(end=end, width=width)])
        return found

    def splits(self, log_size: float) -> list[list[Window]]:
        """Windows of A and of B of which f₀ is small enough, too."""
        mixture, found, at = self.loss.mixture, [], 0
        for (whole,) in reversed(self.cuts(log_size)):  # softer ones let more of A through
            x = np.linspace(0, whole.end, _PLACES)
            places = np.interp(np.array(_SHARES) * self.eps, mixture.log_ratio(x), x)
            while at < len(places) and not self._is_small(
                bulk := Window(end=float(places[at]), width=whole.width), log_size
            ):
                at += 1
            if at < len(places):
                found.append([bulk, Window(start=bulk.end, end=whole.end, width=whole.width)])
        return found

    def _is_small(self, bulk: Window, log_size: float) -> bool:
        """Whether f₀ is, by Chernoff's bound."""
        transform = self._transform([bulk])
        b = transform.saddle_at(self.eps)
        bound = float(transform.log(np.array([b]))[0]) - b * self.eps
        return bound < log_size - self.effort - math.log(2)

    def log_beyond(self, window: Window) -> float:
        """Ln of the bound on f₂."""
        spread = math.hypot(1, window.width)
        logs = [
            log + scipy.special.log_ndtr((middle - window.end) / spread)
            for log, middle in self._laws
        ]
        found = math.log(self.times) + float(np.logaddexp.reduce(logs))
        return found + _SLACK + ROUND_OFF * abs(found)

    @property
    def _laws(self) -> list[tuple[float, float]]:
        """Ln of the share and the middle of both normal laws of x."""
        mixture = self.loss.mixture
        return [
            (mixture.log_rest, 0.0),
            (math.log(float(mixture.rate)), math.sqrt(mixture.mu_squared)),
        ]

    def least_work(self, log_size: float, kinds: Sequence[Windows]) -> _Plan | None:
        """The plan of least work, of windows that get sharper as long as that makes it less."""
        best = None
        for windows in kinds:
            plan = self.plan(log_size, windows)
            if best and plan.work >= best.work:
                break
            best = plan
        return best

    def plan(self, log_size: float, windows: Windows) -> _Plan:
        """The line of the least period, and so of the fewest nodes, near the saddle point."""
        transform = self._transform(windows)
        middle, aim = transform.saddle_at(self.eps), self.effort - log_size
        points = np.append(1e-9 * middle, middle * np.geomspace(0.2, 50, _POINTS))
        logs = transform.log(points)
        log_mass = min(float(logs[0]), 0.0)
        c, b = np.meshgrid(points[1 : _POINTS // 2], points[1:])
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
        height, work = self._work(line, windows)
        return _Plan(line=line, windows=windows, height=height, work=work)

    def _work(self, line: Line, windows: Windows) -> tuple[float, float]:
        """The height of a line of x for which least work is to be expected, and that: proposals.

        At a height d terms are as much as e^{d²/2} larger than on the real line. By that much,
        besides what may be left out, most of |M|^T has to fall with y, as e^{−yqμd}.
        """
        room, last = max(-line.threshold, 1.0), windows[-1]
        effort, bulge = room + math.log(self.times) + 5, last.bulge if last else 1.0
        if last and len(windows) > 1:  # B is small where it isn't smooth on this scale
            loss = self.loss.mixture.log_ratio(last.start + np.array([0.0, last.width]))
            rise = float(loss[1] - loss[0])
            height, highest = math.inf, math.sqrt(room) / rise if rise > 0 else math.inf
            points = math.sqrt(effort * bulge)
        else:
            most = room / self.times
            height = math.pow(most * effort / bulge, 0.25)
            slope = float(self.loss.rate) * math.sqrt(self.loss.base.mu_squared) * height
            highest = (height * height / 2 + most) / slope
            points = effort / height + 2 * bulge * height
        return height, (line.period * highest / (2 * math.pi) + _WORK) * points

    def along(self, plan: _Plan) -> _Along:
        """The integrals for a plan, and how many nodes it takes."""
        effort = max(-plan.line.threshold + math.log(self.times) + 5, _DIGITS)
        precision = max(ctx.prec, _bits(effort))
        with ctx.workprec(precision):
            power = self.loss.power(arb(plan.line.c))
            parts = [
                PowerIntegral.of(
                    self.loss.mixture, power, window, effort=effort, most_height=plan.height
                )
                for window in plan.windows
            ]
            last, beyond = _last_node(parts, self.times, plan.line)
        return _Along(
            loss=self.loss,
            times=self.times,
            plan=plan,
            parts=parts,
            precision=precision,
            last=last,
            beyond=beyond,
        )

    def added_up(self, line: _Along) -> SampledSum:
        """The sum along a line, and bounds on what it leaves out."""
        *bulk, last = line.plan.windows
        b, power = 0.0, arb(0)
        with ctx.workprec(line.precision):
            if bulk:
                b, _ = self.saddle(bulk)
                power = _bound(self.loss, self.times, b, bulk)
            return SampledSum(
                inversion=line.inversion(),
                precision=line.precision,
                power=power,
                b=b,
                log_beyond=self.log_beyond(last) if last else -math.inf,
            )

    def _transform(self, windows: Windows) -> Transform:
        """What is integrated, in doubles."""

        def part(c: Doubles, window: Window | None) -> Doubles:
            if window is None:
                return self.loss.log_moment(c)
            return self.loss.mixture.log_moments(1 + c, window)

        def log(c: Doubles) -> Doubles:
            first, *second = (part(c, window) for window in windows)
            if not second:
                return self.times * first
            few = second[0] - first
            many = np.maximum(self.times * np.logaddexp(0, few), _TINY)  # ln((1 + B/A)^T)
            less = np.where(few < -30, math.log(self.times) + few, np.log(many))
            more = many + np.log(-np.expm1(-np.maximum(many, ROUND_OFF)))
            found: Doubles = self.times * first + np.where(less < -30, less, more)
            return found

        return Transform(log=log, top=math.inf)


def _bits(effort: float) -> int:
    return int(effort / math.log(2)) + 40


def _bound(loss: MixtureLoss, times: int, c: float, windows: Windows) -> arb:
    """On what is integrated, at a real point, to a few digits."""
    effort, power = math.log(times) + _DIGITS, loss.power(arb(c))
    with ctx.workprec(_bits(effort)):
        parts = [PowerIntegral.of(loss.mixture, power, each, effort=effort) for each in windows]
        (end,) = _powers([[acb(part.total)] for part in parts], times)
        return abs(end).upper()


@dataclass(frozen=True, slots=True)
class _Plan:
    """A line of s, windows, the height of a line of x, and the work, in a unit of its kind."""

    line: Line
    windows: Windows
    height: float
    work: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Along:
    """A line, and what is known of the nodes on it."""

    loss: MixtureLoss
    times: int
    plan: _Plan
    parts: Sequence[PowerIntegral]
    precision: int
    last: int | None
    beyond: arb

    @property
    def work(self) -> float:
        """Nodes times points."""
        if self.last is None:
            return math.inf
        return (self.last + 1) * sum(len(part.logs) for part in self.parts)

    def inversion(self) -> Inversion:
        """The sum."""
        assert self.last is not None  # noqa: S101
        line, windows = self.plan.line, self.plan.windows
        c, period = arb(line.c), arb(line.period)
        nodes = Nodes.of(c, 2 * arb.pi() / period, range(self.last + 1))
        powers = _powers([part.along(nodes) for part in self.parts], self.times)
        if self.loss.added:
            powers = [p.conjugate() for p in powers]
        return Inversion.of(
            nodes,
            [[p / (s * (s + 1)) for p, s in zip(powers, nodes.points, strict=True)]],
            b=arb(line.b),
            period=period,
            dropped=2 / period * self.beyond,
            beyond=_bound(self.loss, self.times, line.b, windows),
            most=_bound(self.loss, self.times, 0.0, windows) if len(windows) > 1 else arb(1),
        )


def sampled_value(loss: MixtureLoss, times: int, epsilon: Fraction) -> arb:
    """Encloses f(ε), to a relative 1e-10 where a few tries reach that.

    Where a sum takes too many nodes, what basic composition and a single release prove is left.
    """
    one = one_release(loss)
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
    one = one_release(loss)
    least = 0.0 if loss.added else one.epsilon_at(delta).lower
    if delta / times < LEAST_DELTA:
        return Enclosure(least, math.inf)
    most = arb(times) * arb(one.epsilon_at(delta / times).upper)
    return Enclosure(least, Enclosure.of_ball(most).upper)


def one_release(loss: MixtureLoss) -> PoissonSampled | PoissonReplaced:
    """The curve of one."""
    kind = PoissonReplaced if loss.mixture.replaced else PoissonSampled
    return kind(curve=Gaussian.from_mu_squared(loss.base.mu_squared), rate=loss.rate)


def sampled_guess(loss: MixtureLoss, times: int, delta: Fraction, guess: float) -> float:
    """An ε with f(ε) near δ, by formulas alone; a proposal.

    That is where Laplace's method at the saddle point of M^T has f = δ, if it has about the same
    without losses that are far larger. Else few of these count: it is that of the one large loss
    that makes δ, or that of the normal law, or the guess where that is less.
    """
    with ctx.workprec(128):
        log_delta = float(to_arb(delta).log())
        large = one_release(loss).epsilon_at(max(delta / times, LEAST_DELTA)).upper
        normal = normal_epsilon([(loss.base.mu_squared, loss.rate, times)], delta)
        few = min(max(large, normal), guess) or guess
        if loss.added:
            return few
        whole = Transform(log=lambda c: times * loss.log_moment(c), top=math.inf)
        many, before = guess, math.inf
        for _ in range(_MOST_STEPS):
            c = whole.saddle_at(many)
            move = (whole.log_size(c, many) - log_delta) / c
            many = max(many + move, many / 4)
            if abs(move) * c < _NEAR or abs(move) > before:  # there and back
                break
            before = abs(move)
        sums = _Sum(loss=loss, times=times, eps=many, effort=_ROOT_EFFORT)
        cut = sums.saddle(sums.cuts(log_delta)[-1])[1]
        return many if abs(cut - log_delta) < _CLOSE else few


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
            if abs(following - eps) * c < 0.5 or following * c < 1e-6:
                return following, sums
            eps = following
    raise NumericalError(f"no epsilon is found for delta={float(delta)!r}")


def _powers(columns: Sequence[Sequence[acb]], times: int) -> list[acb]:
    """B^T, or (A + B)^T − A^T."""
    if len(columns) == 1:
        return [m**times for m in columns[0]]
    return [_grown(first, second, times) for first, second in zip(*columns, strict=True)]


def _grown(first: acb, second: acb, times: int) -> acb:
    """(A + B)^T − A^T, without the digits that the difference loses where B is small."""
    if abs(second) < abs(first) / 2:
        return first**times * (times * (second / first).log1p()).expm1()
    return (first + second) ** times - first**times


def _last_node(parts: Sequence[PowerIntegral], times: int, line: Line) -> tuple[int | None, arb]:
    """The last node, and a bound on Σ |(A + B)^T − A^T|/|s(s + 1)| over those after it."""
    step = 2 * math.pi / line.period
    most = _MOST_WORK // sum(len(part.logs) for part in parts)
    falls = [_fall(part) for part in parts]
    (total,) = _powers([[acb(part.total)] for part in parts], times)
    log_total = float(abs(total).upper().log())

    def log_beyond(last: int) -> float:
        *first, second = (fall(last * step) for fall in falls)
        found = times * second
        if first:
            found = math.log(times) + second + (times - 1) * float(np.logaddexp(first[0], second))
        # Σ_{k > K} 1/(kη)² < 1/(η²K)
        found -= math.log(step * step * last)
        return found + times * ROUND_OFF + _SLACK * (1 + abs(log_total))

    last = 16
    while not log_beyond(last) - log_total <= line.threshold:
        last += max(last // 8, 1)
        if last > most:
            return None, arb(0)
    return last, arb(log_beyond(last)).exp()


def _fall(part: PowerIntegral) -> Callable[[float], float]:
    """Ln of a bound on an integral, at every height from y on."""
    weights, logs, error = part.in_doubles()
    sizes, angles = np.abs(weights), logs.imag
    log_total = float(part.total.log().upper())

    def bound(y: float) -> float:
        modulus = float(sizes @ np.exp(-y * angles)) * (1 + _SLACK) + error + _TINY
        return log_total + min(math.log(modulus), 0.0)

    return bound
