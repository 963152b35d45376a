"""Sequential audits: tests by betting, which may stop at any time.

**The bet.** A claim (ε, δ) says of every event A and of both orders of two neighbours that
p ≤ e^ε q + δ, where p and q are A's probabilities on its own side and on the other; and of the
complement, 1 − q ≤ e^ε(1 − p) + δ. Both are lines p ≤ a·q + b (`two_sample_binomial.claim_lines`,
rounded up). Let x be an output of the record and y one of the neighbour, drawn by separate
releases, A an event and a, b a line for the record as its own side, and B, a′, b′ those for the
neighbour. With stakes 0 ≤ λ < 1/(a + b) and 0 ≤ μ < 1/(a′ + b′)

    f(x) = 1 + λ·1[x in A] − μ(a′·1[x in B] + b′)  and  g(y) = 1 + μ·1[y in B] − λ(a·1[y in A] + b)

are positive. If the claim is true, their means add up to at most 2, so that the factor f(x)g(y) is
of mean E f·E g ≤ ((E f + E g)/2)² ≤ 1, whatever the events, lines and stakes are, as long as they
were chosen from *earlier* outputs alone. So the wealth, the product of all factors, is a
non-negative supermartingale from 1, and by Ville's inequality passes 1/α with probability at most α
**at any time**: looking after each pair is free. Of two known laws the likelihood ratio to the
nearest pair of laws that keep the claim grows fastest, and is of this kind, a function of x times
one of y: `benchmarks.sequential` prints how soon it would have been enough.

**The choice** only decides how fast a bug is found. Every output becomes a row of scores: its own
values, their sum, and one linear score fitted to earlier outputs (or the mechanism's log-likelihood
ratio). Of a single number the distance from a centre is a score too, which a change of scale shows
in. The centre, and for outputs that aren't arrays of one shape the features (`features`) that are
their values, are learned from a few draws that are never bet on. The linear score of each tenth of
the earlier outputs is by weights of the others, as one that was fitted to it would promise too
much. Before each block, thresholds are the quantiles of earlier scores, rates are estimated
there and drawn together a little, and in each order the event and the line with the largest
E ln(1 + λ(1[own output in A] − a·1[other output in A] − b)) are taken; then the two stakes of the
largest estimated growth E ln f + E ln g (Kelly 1956), and of these a part. Blocks grow in
proportion to what was seen, so that the work stays linear.

**Round-off.** Slopes and intercepts are rounded up and factors down; a sum of n logarithms errs by
less than n²·2⁻⁵⁰, which `_margin` takes off.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import BetEvidence, Finding, undrawn
from dpverify.auditing.outputs.arrays import always_raises, joined
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.samples import both_sides, sample_pair
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import curve_lines
from dpverify.auditing.statistics.two_sample_binomial import Line
from dpverify.errors import DrawError, require
from dpverify.privacy import Mechanism, Pair

__all__ = ["SequentialAttack", "bet", "columns"]

Scores = NDArray[np.float64]

CHUNK = 64
"""Pairs that share two streams of words, named by their place."""
_QUANTILES = np.arange(1, 16) / 16
_STAKES = np.arange(1, 40) / 40  # parts of the largest stake 1/(a + b)
_CAUTION = 0.85  # part of the estimated best stake
_DRAWN_TOGETHER = 4.0  # imaginary draws at the mean of both rates
_LEAST_ALONE = 0.05  # of a column's variance: what it doesn't share with the others
_ROUNDING = 2e-15  # of a factor that is at most 2, by half a dozen operations
_PARTS = 10  # of few earlier outputs, each with a score that is fitted to the others
_FEW = 1000  # of more of them no score learns what it shouldn't
_UNSEEN = 6  # pairs before the first bet
_GROWTH = 0.03  # of a block, relative to what was seen
_MOST_COLUMNS = 64
_INFINITE = 1e150  # stands for infinities, whose sums and differences are no scores
_LAYOUT = 32  # draws on each side that say of what kind outputs are


def columns(outputs: NDArray[Any]) -> Scores:
    """Scores of outputs of shape (draws, …): their values in order, at most 64, and their sum.

    Of sets, an item's value is 1 at its checksum modulo 64: a place for each that no draw decides.
    """
    if outputs.dtype == object:
        return _memberships(outputs)
    rows = np.asarray(outputs).reshape(len(outputs), -1)
    if rows.dtype == np.uint8:
        rows = np.unpackbits(rows, axis=1)
    values = np.clip(rows.astype(np.float64), -_INFINITE, _INFINITE)
    if values.shape[1] == 1:
        return values
    return np.column_stack([values[:, :_MOST_COLUMNS], values.sum(axis=1)])


def _memberships(outputs: NDArray[Any]) -> Scores:
    values = np.zeros((len(outputs), _MOST_COLUMNS + 1))
    for row, output in zip(values, outputs, strict=True):
        held = getattr(output, "raw", output)
        items = held if isinstance(held, set | frozenset) else ()
        row[[zlib.crc32(repr(item).encode()) % _MOST_COLUMNS for item in items]] = 1
        row[-1] = len(items)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialAttack(Attack):
    """Bets against the claim, pair of outputs by pair, at each pair of neighbours.

    Each has an equal share of the level. It ends early where the claim is refuted.

    Parameters
    ----------
    points : of the claimed curve, beside the claimed one, that are bet against
    """

    name: ClassVar[AuditKind] = "sequential"
    points: int = 8

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where the stake passed 1/α."""
        claim, pairs = target.claim, target.drawable
        lines = curve_lines(claim, config.delta_for(claim), points=self.points)
        config = config.at_level(config.alpha / len(pairs))

        def attack(pair: Pair) -> Finding:
            try:
                return bet(target.mechanism, pair, lines, config)
            except DrawError as error:
                return undrawn(self.name, error, level=config.alpha, pair=pair)

        return list(target.attacked(pairs, attack))


def bet(
    mechanism: Mechanism,
    pair: Pair,
    lines: Sequence[Line],
    config: AuditConfig,
    *,
    score: Callable[[NDArray[Any]], Scores] | None = None,
) -> Finding:
    """Draw pairs of outputs until the claim is refuted or all of `config.draws` were drawn.

    Parameters
    ----------
    mechanism : audited through its `release`, one data set a call
    pair : the neighbours
    lines : the claim, as `claim_lines` makes it; of a curve, of several points
    config : a true claim is ever accused with probability at most its level
    score : rows of scores from stacked outputs, by default `columns`, or features; the mechanism's
        log-likelihood ratio, as one column, makes the audit white-box

    Returns
    -------
    Finding
        Its evidence holds the draws, the wealth (an e-value) and the last bet.

    Raises
    ------
    DrawError
        If the mechanism can't be drawn from.
    """
    require(bool(lines), "lines", lines, "at least one")
    like = None
    if score is None:
        layout = sample_pair(mechanism, pair, config, "sequential layout", draws=_LAYOUT)
        score, like = _scores_of(layout), layout[0]
    bettor = _Bettor(np.array(lines, dtype=np.float64))
    seen, wealth, silent = 0, 0.0, True
    own = other = np.empty((0, 0))
    goal = math.log(1 / config.alpha)
    current: _Bet | None = None
    for stop in _blocks(config.draws):
        while len(own) < stop:
            number = len(own) // CHUNK
            sides = _drawn(mechanism, pair, number, like, config)
            silent = silent and all(map(always_raises, sides))
            scores = [_scored(mechanism, pair, side, score) for side in sides]
            if scores[0].shape != scores[1].shape or (
                len(own) and own.shape[1:] != scores[0].shape[1:]
            ):
                raise DrawError(
                    f"{display_name(mechanism)} changed the shape of its release, on the pair "
                    f"{pair.name!r}."
                )
            own = np.concatenate([own.reshape(-1, scores[0].shape[1]), scores[0]])
            other = np.concatenate([other.reshape(-1, scores[1].shape[1]), scores[1]])
        current = bettor.choose(own[:seen], other[:seen])
        for factor in [] if current is None else current.factors(own[seen:stop], other[seen:stop]):
            wealth += math.log(factor)
            seen += 1
            if wealth >= goal + _margin(seen):
                return _finding(pair, config.alpha, seen, wealth, current, refuted=True)
        seen = stop
    if silent:
        raise DrawError(f"{display_name(mechanism)} always raised, on the pair {pair.name!r}.")
    return _finding(pair, config.alpha, seen, wealth, current, refuted=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
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
class _Bet:
    """An event with the record as its own side, one with the neighbour, and their stakes.

    `weights` make the fitted score of the last column.
    """

    events: tuple[_Event, _Event]
    stakes: tuple[float, float]
    growth: float
    weights: Scores

    def factors(self, own: Scores, other: Scores) -> list[float]:
        first, second = self.events
        sides = [_fitted(scores, self.weights) for scores in (own, other)]
        f = _factor(first, second, *self.stakes, sides[0])
        g = _factor(second, first, *self.stakes[::-1], sides[1])
        factors: list[float] = ((f - _ROUNDING) * (g - _ROUNDING)).tolist()
        return factors

    @property
    def main(self) -> int:
        """The order, of 0 and 1, in which more is at stake."""
        return int(self.stakes[1] > self.stakes[0])

    def words(self) -> str:
        """The event of that order, for a person."""
        event = self.events[self.main]
        fitted = 0 < self.weights.size == event.column
        name = "the fitted score" if fitted else f"score {event.column}"
        return f"{name} {'>' if event.above else '<='} {event.threshold:.6g}"


def _factor(own: _Event, other: _Event, stake: Any, charged: Any, scores: Scores) -> Any:
    """Of a side: what it wins on its own event, less what it is charged for the other's."""
    won = stake * own.inside(scores)
    return 1 + won - charged * (other.slope * other.inside(scores) + other.base)


class _Bettor:
    """Chooses bets on any of the lines from earlier scores."""

    def __init__(self, lines: NDArray[np.float64]) -> None:
        slope, base = lines.T[:, :, None]
        stakes = _STAKES / (slope + base)
        self.lines = lines
        # Logarithms of the factor of one order for (own, other) inside: 10, 01, 11, 00.
        self.logs = np.stack(
            [
                np.log1p(stakes * (inside - slope * outside - base))
                for inside, outside in ((1, 0), (0, 1), (1, 1), (0, 0))
            ]
        ).reshape(4, -1)

    def choose(self, own: Scores, other: Scores) -> _Bet | None:
        """The bet of the largest estimated growth; None where none seems to grow."""
        seen = len(own)
        if seen < _UNSEEN:
            return None
        sides, weights = _with_fitted(own, other)
        thresholds = np.quantile(np.concatenate(sides), _QUANTILES, axis=0)
        low = [
            np.stack(
                [
                    np.searchsorted(np.sort(scores[:, c]), thresholds[:, c], side="right")
                    for c in range(scores.shape[1])
                ],
                axis=1,
            )
            for scores in sides
        ]
        # Not above and above, of both sides.
        first, second = (np.stack([below, seen - below]) for below in low)
        events = (
            self._event(first, second, seen, thresholds),
            self._event(second, first, seen, thresholds),
        )
        return _staked(events, sides, weights)

    def _event(
        self, hits: NDArray[Any], false_hits: NDArray[Any], seen: int, thresholds: Scores
    ) -> _Event:
        """The event and the line by which a bet in this order alone would grow most."""
        # Of events that were counted alike, as those of bits between equal quantiles, the first.
        events = np.sort(np.unique(hits * (seen + 1) + false_hits, return_index=True)[1])
        p, q = _drawn_together(hits.ravel()[events], false_hits.ravel()[events], seen)
        chances = np.stack([p * (1 - q), (1 - p) * q, p * q, (1 - p) * (1 - q)], axis=1)
        growth = chances @ self.logs
        event, choice = np.unravel_index(int(np.argmax(growth)), growth.shape)
        above, place, column = np.unravel_index(int(events[event]), hits.shape)
        slope, base = self.lines[int(choice) // _STAKES.size]
        return _Event(
            column=int(column),
            threshold=float(thresholds[place, column]),
            above=bool(above),
            slope=float(slope),
            base=float(base),
        )


def _staked(events: tuple[_Event, _Event], sides: Sequence[Scores], weights: Scores) -> _Bet | None:
    """The stakes on both events by which the wealth would have grown most; None for no growth."""
    first, second = events
    cells = [2 * first.inside(scores) + second.inside(scores) for scores in sides]
    counts = [np.bincount(cell, minlength=4) for cell in cells]
    p, q = _drawn_together(counts[0], counts[1], len(sides[0]))
    in_first, in_second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    parts = np.concatenate([[0.0], _STAKES])
    stake = (parts / (first.slope + first.base))[:, None, None]
    turned = (parts / (second.slope + second.base))[:, None]
    f = 1 + stake * in_first - turned * (second.slope * in_second + second.base)
    g = 1 + turned * in_second - stake * (first.slope * in_first + first.base)
    growth = np.log(f) @ p + np.log(g) @ q
    one, other = np.unravel_index(int(np.argmax(growth)), growth.shape)
    if not growth[one, other] > 0:
        return None
    return _Bet(
        events=events,
        stakes=(_CAUTION * float(stake[one, 0, 0]), _CAUTION * float(turned[other, 0])),
        growth=float(growth[one, other]),
        weights=weights,
    )


def _drawn_together(first: NDArray[Any], second: NDArray[Any], seen: int) -> tuple[Any, Any]:
    """Rates of counts on both sides, with a few draws of their mean added."""
    pooled = _DRAWN_TOGETHER * (first + second) / (2 * seen)
    return tuple((counts + pooled) / (seen + _DRAWN_TOGETHER) for counts in (first, second))


def _with_fitted(own: Scores, other: Scores) -> tuple[list[Scores], Scores]:
    """Scores with a fitted one, of each part by the other parts, and the weights of all."""
    weights = _fit(own, other)
    if weights.size == 0 or len(own) > _FEW:
        return [_fitted(scores, weights) for scores in (own, other)], weights
    fitted = np.empty((2, len(own)))
    parts = np.arange(len(own)) % _PARTS
    for part in range(_PARTS):
        inside = parts == part
        learned = _fit(own[~inside], other[~inside])
        fitted[:, inside] = [scores[inside] @ learned for scores in (own, other)]
    return [np.column_stack(both) for both in zip((own, other), fitted, strict=True)], weights


def _fit(own: Scores, other: Scores) -> Scores:
    """Weights of a linear score, in units of its spread: Fisher's, for columns of one factor.

    What all columns have in common, as noise of one threshold, is taken out: correlations are those
    of a model in which it is their mean.
    """
    if own.shape[1] <= 2:
        return np.zeros(0)  # nothing to combine: a number, with its distance from the centre
    centred = np.concatenate([own - own.mean(axis=0), other - other.mean(axis=0)])
    spread = centred.std(axis=0)
    spread[spread == 0] = 1.0
    units = centred / spread
    gap = (own.mean(axis=0) - other.mean(axis=0)) / spread
    factor = units.mean(axis=1)
    size = float(np.mean(factor**2))
    loads = units.T @ factor / (len(factor) * size) if size else np.zeros(len(gap))
    alone = np.maximum(1 - loads**2 * size, _LEAST_ALONE)
    scaled = loads / alone
    # The inverse of diag(alone) + size·loads loadsᵀ, by Sherman and Morrison.
    weights = gap / alone - scaled * (scaled @ gap) * size / (1 + size * (loads @ scaled))
    deviation = float((units @ weights).std())
    fitted: Scores = weights / spread / (deviation or 1.0)
    return fitted


def _fitted(scores: Scores, weights: Scores) -> Scores:
    if weights.size == 0:
        return scores
    return np.column_stack([scores, scores @ weights])


def _scores_of(sides: tuple[NDArray[Any], NDArray[Any]]) -> Callable[[NDArray[Any]], Scores]:
    """How outputs become scores, by draws of their own, which aren't bet on."""
    layout = features(np.concatenate(sides), unpack=False)
    centre = 0.0
    if sides[0].dtype != object:
        centre = float(np.median(layout.matrix(np.concatenate(sides))))

    def scores(outputs: NDArray[Any]) -> Scores:
        if sides[0].dtype != object:
            fits = outputs.dtype != object and outputs.shape[1:] == sides[0].shape[1:]
            values = columns(outputs if fits else layout.matrix(outputs))
            alone = values.shape[1] == 1
            return np.column_stack([values, np.abs(values - centre)]) if alone else values
        if isinstance(sides[0][0], set | frozenset):
            return columns(outputs if outputs.dtype == object else outputs.astype(object))
        return layout.matrix(outputs)[:, :_MOST_COLUMNS]

    return scores


def _drawn(
    mechanism: Mechanism, pair: Pair, number: int, like: NDArray[Any] | None, config: AuditConfig
) -> tuple[NDArray[Any], NDArray[Any]]:
    """A chunk of both sides."""
    key = (config.seed, "sequential", f"pair {pair.name}", number)
    drawn = both_sides(mechanism, pair, CHUNK, key, config.time_limit)
    return joined(drawn, like)


def _scored(
    mechanism: Mechanism,
    pair: Pair,
    outputs: NDArray[Any],
    score: Callable[[NDArray[Any]], Scores],
) -> Scores:
    scores = np.asarray(score(outputs), dtype=np.float64).reshape(CHUNK, -1)
    if np.isnan(scores).any():
        raise DrawError(
            f"{display_name(mechanism)} released what has no score, on the pair {pair.name!r}: "
            "infinities?"
        )
    return scores


def _blocks(draws: int) -> Iterator[int]:
    """Ends of blocks."""
    end = 0
    while end < draws:
        end = min(max(end + 1, math.ceil(end * (1 + _GROWTH))), draws)
        yield end


def _margin(seen: int) -> float:
    return seen * seen * 2.0**-50 + 1e-12


def _finding(
    pair: Pair, alpha: float, seen: int, wealth: float, bet: _Bet | None, *, refuted: bool
) -> Finding:
    power: dict[str, Any] = {}
    evidence = BetEvidence(draws=seen, log_wealth=wealth)
    if bet is None:
        statement = f"no promising bet against the claim was found in {seen} pairs of outputs"
    else:
        event, line = bet.words(), bet.events[bet.main]
        evidence = replace(
            evidence, event=event, swapped=bool(bet.main), slope=line.slope, intercept=line.base
        )
        power["growth_per_pair"] = bet.growth
        statement = (
            f"bets on {event} multiplied the stake by e^{wealth:.2f} in {seen} pairs of "
            f"outputs; a true claim lets it pass {1 / alpha:.4g} with probability {alpha:.4g}"
        )
    return Finding(
        audit="sequential",
        verdict="violation" if refuted else "no_violation_found",
        statement=statement,
        level=alpha,
        pair=pair,
        evidence=evidence,
        power=power,
    )
