"""Lower bounds on ε from scores of both sides, over all thresholds at one level.

**Independent scores** (`tail_bound`). A claim (ε, δ) says of each event p ≤ g(q), its probability p
on its own side against q on the other, where g is the least of two rising lines (`claim_lines`).
Let X₁, …, Xₙ be the scores of the own side and Y₍₁₎ ≥ … ≥ Y₍ₘ₎ those of the other, from the
largest, ties broken by coins. For a rank k let V = P[Y > Y₍ₖ₎ | Y₍ₖ₎]: it is the k-th smallest
of m uniform numbers, V ~ Beta(k, m + 1 − k), whatever the law of the scores. Given the Y's, the
number x of X's above Y₍ₖ₎ is Bin(n, p) with p ≤ g(V) under the claim (an event that a coin decides
at a tie is a mixture of two, and lies below the same lines). So x is at most, in law, a count whose
tail is

    P_k(x) = E[F_x(g(V))],    F_x(p) = P[Bin(n, p) ≥ x],

which therefore is a p-value, without a nuisance parameter. Strict inequality at ties counts fewer
X's, which makes it larger. It rises with ε, as g does: the ε's that it rejects at a level form an
interval. The ranks are 1, 2, 4, …, fixed by m alone, and the levels of their tests, fixed too, add
up to α (Bonferroni); so with probability at least 1 − α no test rejects the true ε, and ε is not
below the largest that any of them rejects. The event between two ranks is missed, at the price of a
count that is at most doubled; the number of tests grows with ln m alone. Rank 1, no score of the
other side being above, has 3/10 of the level: where scores are told apart whole, it decides.

P_k is computed as a sum: S falls and F_x(g) rises, so on cells [qᵢ, qᵢ₊₁) of V the upper end
q = qᵢ₊₁ gives at least the integral. The cells are narrow where V is large.

**Scores of one run** (`one_run_bound`). Each of m canaries was put into the training set by its own
fair coin, and one run scored them all. Theorem 5.2 of Steinke, Nasr and Jagielski 2023 needs no
independence of the scores: if guesses of r of the coins depend on the scores alone, W ~
Bin(r, e^ε/(1 + e^ε)) and the run is (ε, δ)-private for each canary, then

    P[at least v guesses are right] ≤ β + 2mδ · max over i ≤ v of P[v − i ≤ W < v]/i,  β = P[W ≥ v].

The guesses here are "in" for scores above a rank of all scores together, and either nothing else or
"out" for scores below the same rank from the other end; which scores those are doesn't depend on
the coins, nor do the ranks m/2, m/4, …; a score at both ends is left out. m/2ʲ has 1/(j(j + 1)) of
the level, which adds up to 1, and guesses at both ends 3/4 of that.

**Ties.** At δ = 0 the number of right guesses is at most W in law *given all scores*, so that r may
depend on them, and ties are guessed all or none. At δ > 0 it may not: what δ adds is bounded in the
mean over all scores, and could all fall on those whose r charges least for it. So ties are broken
by coins, and there are as many guesses as was fixed beforehand.

**Round-off.** Incomplete beta functions in doubles are right to about 1e-13 relatively (Boost's, in
scipy's `betainc`; Cephes' `bdtrc` loses up to 3e-9); 1e-9 is charged for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.statistics.two_sample_binomial import claim_lines

__all__ = ["Shown", "area_limits", "one_run_bound", "tail_bound"]

Array = NDArray[np.float64]

_FIRST = 0.3  # of the level, for rank 1
_BOTH = 0.75  # of a rank's level, for guesses at both ends
_CHARGE = 1 + 1e-9
_STEP = 1e-4  # of ε


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A lower bound on ε, and the counts that show it.

    Attributes
    ----------
    epsilon : of the bound, in nats
    event : in words, "" where nothing is shown
    """

    epsilon: float = 0.0
    event: str = ""


def tail_bound(
    own: Array, other: Array, *, delta: float, alpha: float, best: Shown | None = None
) -> Shown:
    """Lower bound on ε by how many scores of the own side are above ranks of the other's.

    Parameters
    ----------
    own, other : independent scores, of shapes (n,) and (m,)
    delta : in [0, 1)
    alpha : level of the bound, in (0, 1)
    best : another bound, given back where this one isn't larger
    """
    n, m = own.size, other.size
    falling = np.sort(other)[::-1]
    ranks = [2**power for power in range(m.bit_length())]
    rest = (1 - _FIRST) / max(len(ranks) - 1, 1)
    best = best or Shown()
    for k in ranks:
        level = alpha * (_FIRST if k == 1 else rest) * (1 - 1e-12)
        hits = int(np.count_nonzero(own > falling[k - 1]))
        p_value = _p_value(hits, n, k, m, delta=delta, level=level)
        epsilon = _largest_rejected(p_value, level, best.epsilon)
        if epsilon is not None:
            event = f"{hits} of {n} scores pass the rank {k} of {m} on the other side"
            best = Shown(epsilon=epsilon, event=event)
    return best


def _p_value(
    hits: int, n: int, k: int, m: int, *, delta: float, level: float
) -> Callable[[float], float]:
    """P_k(hits) as a function of ε."""
    q, survival = _cells(k, m, level)

    def p_value(epsilon: float) -> float:
        lines = claim_lines(epsilon, delta)
        g = np.minimum(np.min([slope * q + base for slope, base in lines], axis=0), 1.0)
        tail = np.minimum(_tail(hits, n, np.minimum(g * _CHARGE, 1.0)) * _CHARGE, 1.0)
        # Σ P[qᵢ ≤ V < qᵢ₊₁]·F(qᵢ₊₁), by parts: it rises with each P[V ≥ qᵢ], which is rounded up.
        steps = np.maximum(np.diff(np.concatenate([[0.0], tail[1:]])), 0.0)
        return float(survival @ steps) * _CHARGE

    return p_value if hits else lambda epsilon: 1.0


def _tail(count: Any, n: int, p: Any) -> Any:
    """P[Bin(n, p) ≥ count], elementwise."""
    least = np.maximum(count, 1)
    return np.where(np.asarray(count) <= 0, 1.0, scipy.special.betainc(least, n - least + 1, p))


@lru_cache(maxsize=256)
def _cells(k: int, m: int, level: float) -> tuple[Array, Array]:
    """Ends of cells of V, as narrow as this level needs, and P[V ≥ q] at the lower ones."""
    tails = np.concatenate([np.linspace(1, 0.1, 200)[1:-1], np.geomspace(0.1, level / 300, 360)])
    q = np.concatenate([[0.0], 1 - scipy.special.betaincinv(m + 1 - k, k, tails), [1.0]])
    q = np.maximum.accumulate(np.clip(q, 0.0, 1.0))
    return q, np.minimum(scipy.special.betaincc(k, m + 1 - k, q[:-1]) * _CHARGE, 1.0)


def _largest_rejected(
    p_value: Callable[[float], float], level: float, least: float
) -> float | None:
    """An ε above `least` that is rejected, next to the largest; None where there is none."""
    if p_value(least) > level:
        return None
    low, high = least, least + 1
    while p_value(high) <= level:
        low, high = high, high + 1
    while high - low > _STEP * max(low, 1e-2):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) <= level else (low, middle)
    return low if low > least else None


def one_run_bound(
    own: Array, other: Array, *, delta: float, alpha: float, best: Shown | None = None
) -> Shown:
    """Lower bound on ε by guesses of which canaries were in, from their scores in one run.

    Parameters
    ----------
    own, other : scores of canaries that were in, and of those that were out
    delta : in [0, 1)
    alpha : level of the bound, in (0, 1)
    best : another bound, given back where this one isn't larger
    """
    scores = np.concatenate([own, other])
    inside = np.arange(scores.size) < own.size
    m = scores.size
    if delta > 0:
        coins = np.random.Generator(np.random.PCG64(0)).permutation(m)
        scores = np.argsort(np.lexsort((coins, scores)))  # ranks, of which no two are equal
    best = best or Shown()
    for power, both in product(range(1, m.bit_length()), (True, False)):
        level = alpha * (_BOTH if both else 1 - _BOTH) / (power * (power + 1)) * (1 - 1e-12)
        k = m >> power
        above = _top(scores, k)
        below = _top(-scores, k) & both
        guessed = int(np.count_nonzero(above ^ below))
        right = int(np.count_nonzero((above ^ below) & (above == inside)))
        p_value = _one_run_p_value(right, guessed, m, delta)
        epsilon = _largest_rejected(p_value, level, best.epsilon)
        if epsilon is not None:
            best = Shown(epsilon=epsilon, event=f"{right} of {guessed} guesses are right")
    return best


def _top(scores: Array, count: int) -> NDArray[np.bool_]:
    """Which scores are among so many of the largest; of ties all or none, what comes nearer."""
    threshold = np.sort(scores)[-count]
    wide: NDArray[np.bool_] = scores >= threshold
    narrow: NDArray[np.bool_] = scores > threshold
    return wide if wide.sum() - count <= count - narrow.sum() else narrow


def _one_run_p_value(right: int, guessed: int, m: int, delta: float) -> Callable[[float], float]:
    def p_value(epsilon: float) -> float:
        q = min(1 / (1 + math.exp(-min(epsilon, 700.0))) * (1 + 1e-12), 1.0)
        beta = float(_tail(right, guessed, q)) * _CHARGE
        if delta == 0:
            return beta
        i = np.arange(1, right + 1)
        # P[v − i ≤ W < v] is at most P[W ≥ v − i] less a lower end of β.
        between = _tail(right - i, guessed, q) * _CHARGE - beta * (2 - _CHARGE**2)
        return beta + 2 * m * delta * float(np.max(between / i)) * _CHARGE

    return p_value if right else lambda epsilon: 1.0


def area_limits(own: Array, other: Array, *, alpha: float) -> tuple[float, float, float]:
    """Area under the ROC, P[X > Y] + ½ P[X = Y], with its lower and upper confidence limits.

    The estimate is an average over all pairs, and so a mixture of averages of r = min(n, m)
    independent numbers in [0, 1] with the area θ as their mean: with Hoeffding's (1963, section 5)
    convexity its deviations are bounded as those of one such average,

        P[estimate ≥ u] ≤ exp(−r·KL(u ‖ θ)) for u ≥ θ, and likewise below,

    with Kullback and Leibler's divergence of two coins. Half the level goes to each limit.
    """
    rising = np.sort(other)
    below = np.searchsorted(rising, own, side="left").sum()
    ties = np.searchsorted(rising, own, side="right").sum() - below
    area = float((below + ties / 2) / (own.size * other.size))
    reach = math.log(2 / alpha) / min(own.size, other.size) * _CHARGE
    upper = _farthest(area, reach)
    return area, 1 - _farthest(1 - area, reach), upper


def _farthest(mean: float, reach: float) -> float:
    """The least θ above the mean, to 1e-12, beyond which KL(mean ‖ θ) is above `reach`."""

    def divergence(theta: float) -> float:
        parts = ((mean, theta), (1 - mean, 1 - theta))
        return sum(a * math.log(a / b) for a, b in parts if a > 0)

    low, high = mean, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) <= reach else (low, middle)
    return high
