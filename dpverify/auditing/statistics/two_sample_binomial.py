"""An exact test of p ≤ g(q) from two independent binomial counts, for a claim's g.

An event happens x times in n draws on its own side, with probability p, and y times in m draws on
the other, with probability q. A claim (ε, δ) says p ≤ e^ε q + δ, and of the complement, the sides
exchanged, 1 − q ≤ e^ε(1 − p) + δ, so that both are lines over q: p ≤ min over lines =: g(q), which
rises. A whole curve is such a claim with more lines.

**The test.** Order all outcomes by one number,

    T(x, y) = ln(x/n − δ) − ln(ỹ/m) − z·√V,    V = p̂(1 − p̂)/(n(p̂ − δ)²) + 1/ỹ,    ỹ = y + z²/4,

the lower limit of ln((p − δ)/q) that the delta method gives, with the level's own z, or a smaller
one where few false hits are expected: at those the limit is far too low, so that outcomes without
any, which tell most, would rank too low as well. It is fixed beforehand, so that it
doesn't depend on the claim tested; it rises in x (so does each of its terms) and falls in y (its
derivative in ỹ is −1/ỹ + z/(2ỹ²√V) ≤ −1/ỹ + z/(2ỹ^{3/2}) ≤ 0, since √V ≥ ỹ^{−1/2} and ỹ ≥ z²/4).
With R the outcomes at least as extreme as the one seen, P[R] rises with p and falls with q. Under
the claim therefore P[R] ≤ F(g(q), q) for the true q, whatever it is, and

    p-value = γ + max over q in C of F(g(q), q)

with C the exact 1 − γ confidence interval of q from y: Berger and Boos 1994. The test is valid for
every (p, q) that the claim allows. For one fixed R the p-value rises with g, hence with ε: the ε's
that are rejected are an interval [0, ε₋), and ε₋ is a lower confidence limit (Buehler 1957).

**The maximum** is bounded, not searched for. On a ≤ q ≤ b take one line p = sq + c of the claim and
h(q) = F(sq + c, q) ≥ F(g(q), q). With ℓ the log-likelihood of the counts along the line,
h″ = E[1_R (ℓ′² + ℓ″)] ≥ E[1_R ℓ″], and −ℓ″ = s²(X/p² + (n − X)/(1 − p)²) + Y/q² + (m − Y)/(1 − q)²,
where with M the maximum on the interval, X for each of the four counts, N for its draws and p for
the probability of one, and for any c,

    E[1_R X] ≤ √(P[R]·E X²) ≤ √M·Np·√(1 + (1 − p)/(Np)),     E[1_R X] ≤ cM + E[X; X > c].

A function lies above its chord by at most max(−h″)(b − a)²/8. By the first,

    M ≤ max(h(a), h(b)) + κ√M,     κ = (b − a)²/8 · max over the interval of the sum above,

an inequality that √M ≤ κ/2 + √(κ²/4 + max(h(a), h(b))) solves. By the second, which is better at
small levels: E[X; X > c] = Np·P[Bin(N − 1, p) > c − 1] is at most Np·e^{−t} by Bernstein's
inequality for c = Np + u + 1, u = 2t/3 + √(2tNp) ≥ t/3 + √(t²/9 + 2t(N − 1)p(1 − p)), so that

    E[1_R X] ≤ Np·(ρM + e^{−t}),     ρ = 1 + (u + 1)/(Np),

and M ≤ max(h(a), h(b)) + λ(M + e^{−t}), with λ as κ but Np·ρ for each count: where λ < 1 that is
M ≤ (max(h(a), h(b)) + e^{−t})/(1 − λ). Where q ≈ 0 or p = 1 is an end neither says anything; there
M ≤ F(g(b), a). Intervals are halved where the bound is largest, until all are below the level, or
some F(g(q), q) is above it.

**Round-off.** With the weights wᵢ of a binomial law relative to its mode, products of ratios, any
probability is a sum of weights over the sum of all. Over a window of 10 standard deviations the
latter is bounded below by the window, the former's remainder by a geometric series. Every weight is
a product of at most K factors of four roundings each, and every sum has at most K terms, so that
each is right to a relative 8K·2⁻⁵²; `_margin` charges twice the total.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.accounting.solve import brentq
from dpverify.auditing.statistics.clopper_pearson import lower_limit, upper_limit
from dpverify.errors import require

__all__ = ["Counts", "Line", "claim_lines", "epsilon_limit"]

Line = tuple[float, float]
"""Slope and intercept of p ≤ slope·q + intercept, rounded up."""

_SHARE = 1 / 500  # γ/α: what Berger and Boos take off the level
_SPLITS = 4000  # halvings before the test gives up, without rejecting
_CLOSE = 1e-4  # relative: no interval is halved whose bound is that close to what it attains
_GRID = 17  # points of q in the suggestion
_SMALLEST = 1e-12  # q or p below which a chord is useless, and could underflow
_REACH = 10  # standard deviations in a window
_FAR = 80.0  # t, by which e^{−t} is below any level
_ULP = 2.0**-52


def claim_lines(epsilon: float, delta: float) -> tuple[Line, Line]:
    """Both lines of one (ε, δ), rounded up.

    Parameters
    ----------
    epsilon : ≥ 0, in nats
    delta : in [0, 1]
    """
    require(epsilon >= 0, "epsilon", epsilon, "at least 0")
    require(0 <= delta <= 1, "delta", delta, "in [0, 1]")
    ratio = math.exp(min(epsilon, 700.0))  # within 1 ulp by any C library, widened by 4
    up, down = ratio * (1 + 4 * _ULP), (1 / ratio) * (1 + 8 * _ULP)
    return (up, delta), (down, 1 - (1 - delta) / up * (1 - 8 * _ULP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often an event happened on its own side and on the other.

    Parameters
    ----------
    hits, draws : x of n, on the event's own side
    false_hits : y, on the other side
    false_draws : m, of which these are; n where nobody says
    """

    hits: int
    draws: int
    false_hits: int
    false_draws: int = None  # type: ignore[assignment]  # as many as `draws`

    def __post_init__(self) -> None:
        if self.false_draws is None:
            object.__setattr__(self, "false_draws", self.draws)
        require(self.draws >= 1, "draws", self.draws, "at least 1")
        require(self.false_draws >= 1, "false_draws", self.false_draws, "at least 1")
        rule = "between 0 and the number of draws"
        require(0 <= self.hits <= self.draws, "hits", self.hits, rule)
        require(0 <= self.false_hits <= self.false_draws, "false_hits", self.false_hits, rule)

    def refutes(
        self,
        lines: Sequence[Line],
        *,
        alpha: float,
        delta: float = 0.0,
        caution: float | None = None,
    ) -> bool:
        """Whether the claim p ≤ min over lines of slope·q + intercept is rejected at level alpha.

        Parameters
        ----------
        lines : a claim, as `claim_lines` makes it; of a curve, of several of its points
        alpha : level in (0, 1), kept exactly
        delta, caution : δ and z of the ordering, fixed beforehand; by default the level's z
        """
        return _Test(self, alpha, delta, caution).refutes(lines)

    def epsilon_lower(
        self, *, delta: float, alpha: float, caution: float | None = None, least: float = 0.0
    ) -> float:
        """Lower confidence limit of the ε at which the mechanism is (ε, δ)-private.

        The true ε is below it with probability at most alpha. What is returned was rejected itself,
        0 where not even ε = `least` is. It is next to the largest such ε: the root of the p-value
        that a grid of q suggests, less 1/300 of a standard error, and further where the proof fails
        there. Where a smaller limit is of no use, `least` spares the search for it.
        """
        share = self.hits / self.draws
        if share <= delta:
            return 0.0
        test = _Test(self, alpha, delta, caution)
        if not test.refutes(claim_lines(least, delta)):
            return 0.0
        # No limit is above this one, which takes both proportions at their ends.
        rare = lower_limit(self.false_hits, self.false_draws, alpha / 2) or 1e-300
        most = math.log(upper_limit(self.hits, self.draws, alpha / 2) / rare)
        guess = test.suggested(lambda eps: claim_lines(eps, delta), least, most)
        step = (
            math.sqrt((share * (1 - share) + 1 / self.draws) / self.draws) / (share - delta) / 300
        )
        for _ in range(20):
            guess -= step
            if guess <= least:
                return least
            if test.refutes(claim_lines(guess, delta)):
                return guess
            step *= 2
        return least


def epsilon_limit(
    hits: int, false_hits: int, draws: int, *, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """`Counts.epsilon_lower` for equally many draws on both sides."""
    outcome = Counts(hits=hits, draws=draws, false_hits=false_hits)
    return outcome.epsilon_lower(delta=delta, alpha=alpha)


class _Test:
    """The region R of an outcome, and bounds on its probability."""

    def __init__(
        self, outcome: Counts, alpha: float, delta: float, caution: float | None = None
    ) -> None:
        require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
        require(0 <= delta < 1, "delta", delta, "in [0, 1)")
        self.n, self.m = outcome.draws, outcome.false_draws
        self.delta = delta
        self.z = max(float(-scipy.special.ndtri(alpha)), 0.5) if caution is None else caution
        gamma = alpha * _SHARE
        self.level = (alpha - gamma) * (1 - 4 * _ULP)
        low = lower_limit(outcome.false_hits, self.m, gamma / 2)
        high = upper_limit(outcome.false_hits, self.m, gamma / 2)
        self.ends = low, high
        self.known: dict[tuple[float, float], float] = {}
        # Windows move with q, but for the rounding of their ends; nearer to 0 and m than 60 they
        # are cut off there.
        self.first = max(_window(self.m, low)[0] - 2, 0)
        counts = np.arange(self.first, min(_window(self.m, high)[1] + 2, self.m) + 1)
        self.least = self._least_hits(counts, outcome)

    def suggested(
        self, claim: Callable[[float], Sequence[Line]], least: float, most: float
    ) -> float:
        """Root in ε of the p-value on a grid of q, above a rejected `least`: not proven."""
        known: dict[float, list[tuple[float, float]]] = {
            q: [] for q in np.linspace(*self.ends, _GRID).tolist()
        }

        def excess(epsilon: float) -> float:
            g = _claim(claim(epsilon))
            worst = 1e-300
            # P[R] rises with ε: what it is at a larger one tells which q can't be the worst here.
            most = {
                q: min((value for at, value in known[q] if at >= epsilon), default=1.0)
                for q in known
            }
            for q in sorted(known, key=most.__getitem__, reverse=True):
                if most[q] <= worst:
                    break
                value = self.bound(g(q), q)
                known[q].append((epsilon, value))
                worst = max(worst, value)
            return math.log(worst / self.level)

        if excess(most) < 0:
            return most
        return brentq(excess, least, most, xtol=1e-7)

    def refutes(self, lines: Sequence[Line]) -> bool:
        g = _claim(lines)

        def interval(a: float, b: float) -> tuple[float, float, float]:
            return -self._largest(lines, g, a, b), a, b

        grid = np.linspace(*self.ends, _GRID).tolist()
        if any(self.bound(g(q), q) > self.level for q in grid):
            return False
        queue = [interval(a, b) for a, b in pairwise(grid)]
        heapq.heapify(queue)
        for _ in range(_SPLITS):
            worst, a, b = queue[0]
            if -worst <= self.level:
                return True
            middle = (a + b) / 2
            attained = self.bound(g(middle), middle)
            if attained > self.level or -worst - attained < _CLOSE * self.level:
                return False
            heapq.heapreplace(queue, interval(a, middle))
            heapq.heappush(queue, interval(middle, b))
        return False

    def _largest(
        self, lines: Sequence[Line], g: Callable[[float], float], a: float, b: float
    ) -> float:
        """Bound on F(g(q), q) for a ≤ q ≤ b."""
        slope, base = min(lines, key=lambda line: line[0] * (a + b) / 2 + line[1])
        low, high = _claim([(slope, base)])(a), _claim([(slope, base)])(b)
        if not (min(a, low) > _SMALLEST and b < 1 and high < 1):
            return self.bound(g(b), a)
        ends = max(self.bound(low, a), self.bound(high, b))
        kappa, lambda_ = (
            (b - a) ** 2 / 8 * (slope**2 * own + other) * (1 + 1e-9)
            for own, other in zip(
                _information(self.n, low, high), _information(self.m, a, b), strict=True
            )
        )
        largest = (kappa / 2 + math.sqrt(kappa**2 / 4 + ends)) ** 2
        if lambda_ < 1:
            largest = min(largest, (ends + math.exp(-_FAR)) / (1 - lambda_))
        return min(largest * (1 + 1e-12), 1.0)

    def bound(self, p: float, q: float) -> float:
        """Upper bound on P[R] at (p, q), tight but for round-off."""
        if (p, q) in self.known:
            return self.known[p, q]
        start, weights, left_out = _weights(self.m, q)
        end = start + weights.size
        least = self.least[start - self.first : end - self.first]
        own = _at_least(self.n, p, least)
        total = float(weights @ own) + left_out
        value = min(1.0, total / float(weights.sum()) * _margin(weights.size))
        self.known[p, q] = value
        return value

    def _least_hits(self, counts: NDArray[np.int64], outcome: Counts) -> NDArray[np.int64]:
        """For each y the least x with (x, y) in R; n + 1 where there is none."""
        seen = self._statistic(np.array([outcome.hits]), np.array([outcome.false_hits]))[0]
        few = np.full(counts.size, -1)  # never in R
        many = np.full(counts.size, self.n + 1)  # in R, or beyond all
        while np.any(many - few > 1):
            middle = (few + many) // 2
            inside = self._statistic(middle, counts) >= seen
            many, few = np.where(inside, middle, many), np.where(inside, few, middle)
        # The outcome itself belongs to R however its statistic rounds, and R is monotone.
        many = np.where(counts <= outcome.false_hits, np.minimum(many, outcome.hits), many)
        return np.maximum.accumulate(many)

    def _statistic(
        self, hits: NDArray[np.int64], false_hits: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        share = hits / self.n
        excess = share - self.delta
        shifted = false_hits + self.z**2 / 4
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = share * (1 - share) / (self.n * excess**2) + 1 / shifted
            value = np.log(excess) - np.log(shifted / self.m) - self.z * np.sqrt(spread)
        return np.where(excess > 0, value, -np.inf)


def _information(draws: int, low: float, high: float) -> tuple[float, float]:
    """Of E[1_R(X/p² + (n − X)/(1 − p)²)] for low ≤ p ≤ high, what κ and λ have of it."""
    kappa = lambda_ = 0.0
    for p in (low, 1 - high):
        mean = draws * p
        kappa += draws / p * math.sqrt(1 + (1 - p) / mean)
        lambda_ += draws / p * (1 + (2 * _FAR / 3 + math.sqrt(2 * _FAR * mean) + 1) / mean)
    return kappa, lambda_


def _claim(lines: Sequence[Line]) -> Callable[[float], float]:
    return lambda q: min(1.0, min(slope * q + base for slope, base in lines) * (1 + 4 * _ULP))


def _margin(size: int) -> float:
    return 1 + 64 * (size + 4) * _ULP


def _window(draws: int, p: float) -> tuple[int, int]:
    """First and last count of a window that holds all but a negligible part of Bin(draws, p)."""
    reach = _REACH * math.sqrt(draws * p * (1 - p)) + 60
    mode = math.floor(min(p, 1.0) * (draws + 1))
    return max(0, math.floor(mode - reach)), min(draws, math.ceil(mode + reach))


@lru_cache(maxsize=128)
def _weights(draws: int, p: float) -> tuple[int, NDArray[np.float64], float]:
    """First count of the window, weights relative to the mode, and a bound on what is left out."""
    first, last = _window(draws, p)
    if p <= 0 or p >= 1:
        edge = 0 if p <= 0 else draws
        weights = np.zeros(last - first + 1)
        weights[edge - first] = 1.0
        return first, weights, 0.0
    odds = p / (1 - p)
    mode = min(max(math.floor(p * (draws + 1)), first), last)
    up = np.arange(mode, last, dtype=np.float64)
    down = np.arange(mode, first, -1, dtype=np.float64)
    weights = np.empty(last - first + 1)
    weights[mode - first] = 1.0
    ((draws - up) / (up + 1) * odds).cumprod(out=weights[mode - first + 1 :])
    (down / ((draws - down + 1) * odds)).cumprod(out=weights[: mode - first][::-1])
    left_out = 0.0
    if last < draws:
        left_out += _geometric(weights[-1], (draws - last) / (last + 1) * odds)
    if first > 0:
        left_out += _geometric(weights[0], first / ((draws - first + 1) * odds))
    return first, weights, left_out


def _geometric(weight: float, ratio: float) -> float:
    """Bound on all weights beyond one, each at most `ratio` times the one before."""
    return weight * ratio / (1 - ratio) * (1 + 1e-9) if ratio < 1 else math.inf


def _at_least(draws: int, p: float, least: NDArray[np.int64]) -> NDArray[np.float64]:
    """Upper bounds on P[Bin(draws, p) ≥ least], for each."""
    first, weights, left_out = _weights(draws, p)
    size, margin = weights.size, _margin(weights.size)
    tails = np.empty(size + 1)
    own = tails[:-1]
    weights[::-1].cumsum(out=own[::-1])
    total = own[0]
    own += left_out
    own /= total
    own *= margin
    tails[-1] = left_out / float(weights.sum()) * margin if first + size - 1 < draws else 0.0
    place = np.minimum(np.maximum(least - first, 0), size)
    return np.minimum(np.where(least > draws, 0.0, tails[place]), 1.0)
