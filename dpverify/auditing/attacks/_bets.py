"""Bets against a claim on pairs of outputs, and why none of them wins where the claim is true.

**The bet.** A claim (ε, δ) says of every event A and of both orders of two neighbours that
p ≤ e^ε q + δ, where p and q are A's probabilities on its own side and on the other; and of the
complement, 1 − q ≤ e^ε(1 − p) + δ. Both are lines p ≤ a·q + b (`two_sample_binomial.claim_lines`,
rounded up). A function h with values in [0, c] is c times an average of the events {h > ct},
0 ≤ t < 1, so that its means on both sides are as near: P h ≤ a·Q h + b·c.

Let x be an output of the record and y one of the neighbour, drawn by separate releases; h with
values in [0, c] and a, b a line for the record as the own side, and k, d and a′, b′ those for the
neighbour. Where these are positive for all outputs,

    f(x) = 1 + h(x) − a′k(x) − b′d  and  g(y) = 1 + k(y) − a·h(y) − b·c,

and the claim is true, their means add up to at most 2, so that the factor f(x)g(y) is of mean
E f·E g ≤ ((E f + E g)/2)² ≤ 1, whatever the functions and lines are, as long as they were chosen
from *earlier* outputs alone. So the wealth, the product of all factors, is a non-negative
supermartingale from 1, and so is the mean of the wealths of several bettors. By Ville's inequality
it passes 1/α with probability at most α **at any time**: looking after each pair is free.

**Which bet.** Let a share π of outputs alike be the record's. The pair of laws that keeps ε and is
nearest to the true one, in Kullback and Leibler's sense, has π = e^ε/(1 + e^ε) where π is more, and
in the other order likewise; the likelihood ratio to it is the bet that grows fastest,

    h = max((1 + e^−ε)π − 1, 0)  and  k = max((1 + e^−ε)(1 − π) − 1, 0),

but for a constant factor. `OddsBet` makes it with an estimated π and cuts it off at c = d, which
are paid for where δ > 0. `EventBet` has multiples of two events.

**Round-off.** Slopes and intercepts are rounded up and factors down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.formatting import bound

__all__ = ["Bet", "Event", "EventBet", "OddsBet", "factor", "stakes", "with_fitted"]

Scores = NDArray[np.float64]
_ROUNDING = 2e-15  # of a factor that is at most 2, by half a dozen operations


class Bet(Protocol):
    """What multiplies the wealth: a function of rows of scores on both sides."""

    @property
    def growth(self) -> float:
        """Of the logarithm of the wealth with each pair, estimated."""
        ...

    def factors(self, own: Scores, other: Scores) -> Scores:
        """Of pairs of outputs, of shape (pairs,)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of the scores, and the line that the claim says of it.

    It is {score > threshold} if `above`, else {score ≤ threshold}, of the column `column`.
    """

    column: int
    threshold: float
    above: bool
    slope: float
    base: float

    def inside(self, scores: Scores) -> NDArray[np.bool_]:
        """Which rows of scores are in the event."""
        values = scores[:, self.column]
        return values > self.threshold if self.above else values <= self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBet(Bet):
    """An event with the record as its own side, one with the neighbour, and their stakes.

    `weights` make the fitted score of the last column.
    """

    events: tuple[Event, Event]
    stakes: tuple[float, float]
    growth: float
    weights: Scores

    def factors(self, own: Scores, other: Scores) -> Scores:
        first, second = self.events
        sides = [with_fitted(scores, self.weights) for scores in (own, other)]
        f = factor(first, second, *self.stakes, sides[0])
        g = factor(second, first, *self.stakes[::-1], sides[1])
        return np.asarray((f - _ROUNDING) * (g - _ROUNDING))

    @property
    def main(self) -> int:
        """The order, of 0 and 1, in which more is at stake."""
        return int(self.stakes[1] > self.stakes[0])

    def words(self) -> str:
        """The event of that order, for a person."""
        event = self.events[self.main]
        fitted = 0 < self.weights.size == event.column
        name = "the fitted score" if fitted else f"score {event.column}"
        return f"{name} {'>' if event.above else '<='} {bound(event.threshold)}"


def factor(own: Event, other: Event, stake: Any, charged: Any, scores: Scores) -> Any:
    """Of a side: what it wins on its own event, less what it is charged for the other's."""
    won = stake * own.inside(scores)
    return 1 + won - charged * (other.slope * other.inside(scores) + other.base)


def with_fitted(scores: Scores, weights: Scores) -> Scores:
    """The score by these weights of the first columns after them; none without weights."""
    if weights.size == 0:
        return scores
    weighed = scores[:, : weights.size]
    return np.column_stack([weighed, weighed @ weights])


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsBet(Bet):
    """The bet of a share π of the record's outputs among outputs alike.

    Attributes
    ----------
    shares : π of rows of scores
    slope, base : of the line that is bet against, in both orders
    most : at which h and k are cut off
    """

    shares: Callable[[Scores], Scores]
    slope: float
    base: float
    most: float
    growth: float

    def factors(self, own: Scores, other: Scores) -> Scores:
        line = self.slope, self.base, self.most
        f, _ = stakes(self.shares(own), *line)
        _, g = stakes(self.shares(other), *line)
        return np.asarray((f - _ROUNDING) * (g - _ROUNDING))


def stakes(shares: Any, slope: Any, base: Any, most: Any) -> tuple[Any, Any]:
    """The factors f and g of outputs of which such shares are the record's."""
    h, k = (np.clip(share * (1 + 1 / slope) - 1, 0, most) for share in (shares, 1 - shares))
    paid = 1 - base * most
    return paid + h - slope * k, paid + k - slope * h
