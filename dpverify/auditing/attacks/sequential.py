"""Sequential audits: tests by betting, which may stop at any time.

Bets are made on pairs of outputs, one of each side, in such a way that none wins in the mean where
the claim is true (`_bets`); so a stake that became more than 1/α refutes it at level α, at any
time. Of two known laws the likelihood ratio to the nearest pair of laws that keep the claim grows
fastest; `benchmarks.sequential` prints how soon it would have been enough.

**Scores.** Every output becomes a row of scores: its own values and their sum (or the mechanism's
log-likelihood ratio). Of a single number the distance from a centre is a score too, which a change
of scale shows in. Where outputs have as many values as the records, or as a row of them, they are
also summed along the move from neighbour to record, which is known beforehand: the outputs, and for
each value that comes often the places where it came. The centre, these values, and for outputs that
aren't arrays of one shape the features (`features`) that are their values, are learned from a few
draws that are never bet on.

**Which outputs** are bet on: those that other attacks count, where there are such, else new ones,
no more than are needed. Each bet is by outputs before its own, so that nothing is chosen by what it
is tested on; and whatever the others do with the same draws, the levels of all add up.

**Bettors** learn from earlier scores (`_bettors`): one by events, and by odds several who expect
strong or weak, plain or winding differences. Each begins with an equal part of the stake. They
choose anew before each block; blocks grow in proportion to what was seen, so that the work stays
linear.

**Round-off.** The logarithm of a factor is between −8 and 2, and a sum of n of them errs by less
than n²·2⁻⁵⁰, which `_margin` takes off.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._bets import Bet, EventBet
from dpverify.auditing.attacks._bettors import (
    ALONE,
    Basis,
    Bettor,
    EventBettor,
    OddsBettor,
    standardised,
    waves,
)
from dpverify.auditing.attacks.base import Attack, Target, counted
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import BetEvidence, Finding, undrawn
from dpverify.auditing.outputs.arrays import always_raises, joined
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.samples import Sampled, both_sides, sample_pair
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import curve_lines
from dpverify.auditing.statistics.two_sample_binomial import Line
from dpverify.errors import DrawError, require
from dpverify.execution.threads import one_thread
from dpverify.privacy import Mechanism, Pair

__all__ = ["SequentialAttack", "bet", "columns"]

Scores = NDArray[np.float64]

CHUNK = 64
"""Pairs that share two streams of words, named by their place."""
_GROWTH = 0.06  # of a block, relative to what was seen
_MOST_COLUMNS = 64
_INFINITE = 1e150  # stands for infinities, whose sums and differences are no scores
_ENDS = -_INFINITE, _INFINITE
_LAYOUT = 32  # draws on each side that say of what kind outputs are
_FREQUENT = 1 / 20  # of all values of an output
_PLAIN, _WINDING, _EACH = waves(4, decay=1), waves(8), waves(2)


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
    beside : whether other attacks are made too, so that bets are on the draws that they count; by
        itself it draws no more than it needs
    """

    name: ClassVar[AuditKind] = "sequential"
    everywhere: ClassVar[bool] = False
    points: int = 8
    beside: bool = False

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where the stake passed 1/α."""
        claim, pairs = target.claim, target.drawable
        lines = curve_lines(claim, config.delta_for(claim), points=self.points)
        config = config.at_level(config.alpha / len(pairs))

        def attack(pair: Pair) -> Finding:
            try:
                drawn = counted(target, pair, config) if self.beside else None
                return bet(target.mechanism, pair, lines, config, drawn=drawn)
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
    drawn: Sampled | None = None,
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
    drawn : so many pairs, where they are there already

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
    like, moved = None, None
    if score is None:
        layout = sample_pair(mechanism, pair, config, "sequential layout", draws=_LAYOUT)
        score, like, moved = _scores_of(layout), layout[0], _moved(pair, layout)
    chunk: Callable[[int], Sequence[NDArray[Any]]] = partial(_drawn, mechanism, pair, like, config)
    if drawn is not None:
        chunk = partial(_cut, drawn.told_apart(like))
    seen, silent = 0, True
    own = other = np.empty((0, 0))
    goal = math.log(1 / config.alpha)
    for stop in _blocks(config.draws):
        while len(own) < stop:
            number = len(own) // CHUNK
            outputs = chunk(number)
            silent = silent and all(map(always_raises, outputs))
            scores = [_scored(mechanism, pair, side, score, moved) for side in outputs]
            if scores[0].shape != scores[1].shape or (
                len(own) and own.shape[1:] != scores[0].shape[1:]
            ):
                raise DrawError(
                    f"{display_name(mechanism)} changed the shape of its release, on the pair "
                    f"{pair.name!r}."
                )
            own = np.concatenate([own.reshape(-1, scores[0].shape[1]), scores[0]])
            other = np.concatenate([other.reshape(-1, scores[1].shape[1]), scores[1]])
        if seen == 0:
            purse = _Purse(_bettors(lines, own.shape[1], moved))
        with one_thread():
            wealth = purse.after(own[:stop], other[:stop], seen)
        margins = _margin(np.arange(seen, stop) + 1)
        (enough,) = np.nonzero(wealth >= goal + margins)
        if enough.size:
            first = int(enough[0])
            return _finding(
                pair, config.alpha, seen + first + 1, float(wealth[first]), purse, refuted=True
            )
        seen = stop
    if silent:
        raise DrawError(f"{display_name(mechanism)} always raised, on the pair {pair.name!r}.")
    return _finding(pair, config.alpha, seen, purse.wealth, purse, refuted=False)


class _Purse:
    """What bettors own together, who began with equal parts of one stake."""

    def __init__(self, bettors: Sequence[Bettor]) -> None:
        self.bettors = bettors
        self.bets: list[Bet | None] = [None for _ in bettors]
        self.logs = np.full(len(bettors), -math.log(len(bettors)))

    @property
    def wealth(self) -> float:
        """Its logarithm."""
        return float(np.logaddexp.reduce(self.logs))

    def after(self, own: Scores, other: Scores, seen: int) -> Scores:
        """Logarithms of the wealth after each pair, with bets chosen from the `seen` first ones."""
        self.bets = [bettor.choose(own[:seen], other[:seen]) for bettor in self.bettors]
        logs = np.zeros((len(self.bets), len(own) - seen))
        for bet, row in zip(self.bets, logs, strict=True):
            if bet is not None:
                row[:] = np.log(bet.factors(own[seen:], other[seen:]))
        owned = self.logs[:, None] + logs.cumsum(axis=1)
        self.logs = owned[:, -1]
        wealth: Scores = np.logaddexp.reduce(owned, axis=0)
        return wealth


def _bettors(lines: Sequence[Line], width: int, moved: _Moved | None) -> list[Bettor]:
    """Who bets on scores of so many columns."""
    against = np.array(lines, dtype=np.float64)
    plain = width - (0 if moved is None else moved.width)
    odds: list[tuple[slice, Basis, float]]
    if plain <= ALONE:
        odds = [(slice(1), _PLAIN, 2.0), (slice(1), _WINDING, 0.25), (slice(1), _WINDING, 0.1)]
    else:
        odds = [(slice(plain), _EACH, 0.5)]
    if moved is not None:
        odds.append((slice(plain, width), standardised, 2.0))
    return [
        EventBettor(against, slice(plain)),
        *(OddsBettor(against, *known) for known in odds),
    ]


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


@dataclass(frozen=True, slots=True)
class _Moved:
    """Sums of outputs along a move, of shape (values,), and of where frequent values stand."""

    move: Scores
    frequent: Scores

    @property
    def width(self) -> int:
        return 1 + self.frequent.size

    def __call__(self, outputs: NDArray[Any]) -> Scores:
        """Of shape (draws, width); zeros for an output that hasn't as many values."""
        if outputs.dtype != object and outputs[:1].size == self.move.size:
            return self._sums(outputs.reshape(len(outputs), -1))
        # Of each output alone, also where another one of its chunk made objects of all.
        raws = [getattr(each, "raw", each) for each in outputs]
        fits = [isinstance(raw, np.ndarray) and raw.size == self.move.size for raw in raws]
        scores = np.zeros((len(outputs), self.width))
        if any(fits):
            rows = [np.ravel(raw) for raw, fit in zip(raws, fits, strict=True) if fit]
            scores[fits] = self._sums(np.nan_to_num(np.stack(rows), posinf=np.inf, neginf=-np.inf))
        return scores

    def _sums(self, rows: NDArray[Any]) -> Scores:
        values = np.clip(rows.astype(np.float64), *_ENDS)
        there = [values == value for value in self.frequent]
        others = values if len(there) < 2 else np.where(np.any(there, axis=0), 0.0, values)
        return np.column_stack([np.einsum("ij,j->i", part, self.move) for part in (others, *there)])


def _moved(pair: Pair, sides: tuple[NDArray[Any], NDArray[Any]]) -> _Moved | None:
    """The move from neighbour to record, where outputs have its shape or that of its rows."""
    outputs = np.concatenate(sides)
    size = outputs[:1].size
    if outputs.dtype == object or size < 2:
        return None
    first, second = (_summed(side, size) for side in (pair.record, pair.neighbour))
    if first is None or second is None:
        return None
    move: Scores = first - second
    if not (np.isfinite(move).all() and move.any()):
        return None
    values, often = np.unique(outputs, return_counts=True)
    frequent = values[often >= _FREQUENT * outputs.size].astype(np.float64)
    return _Moved(move / np.max(np.abs(move)), frequent)


def _summed(data: Any, size: int) -> Scores | None:
    """A record of so many numbers, or the sum of such rows."""
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "biuf":
        return None
    if data.size == size:
        return np.asarray(data.ravel(), dtype=np.float64)
    rows = data.ndim == 2 and data.shape[1] == size
    return np.asarray(data.sum(axis=0), dtype=np.float64) if rows else None


def _drawn(
    mechanism: Mechanism, pair: Pair, like: NDArray[Any] | None, config: AuditConfig, number: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """A chunk of both sides."""
    key = (config.seed, "sequential", f"pair {pair.name}", number)
    drawn = both_sides(mechanism, pair, CHUNK, key, config.time_limit)
    return joined(drawn, like)


def _cut(sides: tuple[NDArray[Any], NDArray[Any]], number: int) -> Sequence[NDArray[Any]]:
    """A chunk of what was drawn."""
    return [side[number * CHUNK : (number + 1) * CHUNK] for side in sides]


def _scored(
    mechanism: Mechanism,
    pair: Pair,
    outputs: NDArray[Any],
    score: Callable[[NDArray[Any]], Scores],
    moved: _Moved | None,
) -> Scores:
    scores = np.asarray(score(outputs), dtype=np.float64).reshape(len(outputs), -1)
    if moved is not None:
        scores = np.column_stack([scores, moved(outputs)])
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


def _margin(seen: NDArray[np.int64]) -> Scores:
    return np.asarray(seen.astype(np.float64) ** 2 * 2.0**-50 + 1e-12)


def _finding(
    pair: Pair, alpha: float, seen: int, wealth: float, purse: _Purse, *, refuted: bool
) -> Finding:
    power: dict[str, Any] = {}
    evidence = BetEvidence(draws=seen, log_wealth=wealth)
    bets = [bet for bet in purse.bets if bet is not None]
    if bets:
        power["growth_per_pair"] = max(bet.growth for bet in bets)
    elif not wealth:
        statement = f"no promising bet against the claim was found in {seen} pairs of outputs"
    event = next((bet for bet in bets if isinstance(bet, EventBet)), None)
    if event is not None:
        line = event.events[event.main]
        evidence = replace(
            evidence,
            event=event.words(),
            swapped=bool(event.main),
            slope=line.slope,
            intercept=line.base,
        )
    if bets or wealth:
        example = "" if event is None else f", as those on {event.words()},"
        statement = (
            f"bets{example} multiplied the stake by e^{wealth:.2f} in {seen} pairs of "
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
