"""Who chooses bets from earlier outputs, by events or by odds.

The choice only decides how fast a bug is found. Outputs are rows of scores.

**By events.** Beside the columns there is one linear score fitted to earlier outputs. That of each
tenth of the earlier outputs is by weights of the others, as one that was fitted to it would promise
too much. Thresholds are the quantiles of earlier scores, rates are estimated there and drawn
together a little, and in each order the event and the line with the largest
E ln(1 + λ(1[own output in A] − a·1[other output in A] − b)) are taken; then the two stakes of the
largest estimated growth E ln f + E ln g (Kelly 1956), and of these a part.

**By odds.** The share of the record's outputs among outputs alike is estimated by logistic
regression on functions of the columns, with a normal prior of a given scale; what isn't known of
the weights draws the share to a half (MacKay 1992), so that little is at stake at first. Of the
lines, and of a few places to cut the bet off, those are taken by which the wealth would grow most
if the estimated shares were the true ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._bets import Bet, Event, EventBet, OddsBet, stakes, with_fitted

__all__ = ["ALONE", "Basis", "Bettor", "EventBettor", "OddsBettor", "standardised", "waves"]

Scores = NDArray[np.float64]
Basis = Callable[[Scores], Callable[[Scores], Scores]]
"""From earlier outputs, of both sides, how rows of scores become functions of the columns."""

ALONE = 2
"""Columns with nothing to combine: a number, and its distance from the centre."""
_QUANTILES = np.arange(1, 16) / 16
_STAKES = np.arange(1, 40) / 40  # parts of the largest stake 1/(a + b)
_CAUTION = 0.85  # part of the estimated best stake
_DRAWN_TOGETHER = 4.0  # imaginary draws at the mean of both rates
_LEAST_ALONE = 0.05  # of a column's variance: what it doesn't share with the others
_CONSTANT = 1e-7  # deviations that round-off alone may leave
_PARTS = 10  # of few earlier outputs, each with a score that is fitted to the others
_FEW = 1000  # of more of them no score learns what it shouldn't
_UNSEEN = 6  # pairs before the first bet
_FIRST = 4  # of odds, which the prior keeps small
_PARTLY = np.array([1 / 64, 1 / 16, 1 / 4, 1])  # of the most where δ > 0
_SAFE = 0.98  # of the most that leaves both factors positive
_LEVELS = 64  # of shares, when a line is chosen
_STEPS = 4  # of Newton's
_LARGEST_STEP = 4.0  # in log odds
_FAR = 4.0  # standard deviations, beyond which all is alike


class Bettor(Protocol):
    """Chooses bets from earlier scores of both sides, of which there are ever more."""

    def choose(self, own: Scores, other: Scores) -> Bet | None:
        """A bet that promises growth; None where none does."""
        ...


class EventBettor:
    """Bets on events of some columns, against any of the lines."""

    def __init__(self, lines: NDArray[np.float64], columns: slice) -> None:
        slope, base = lines.T[:, :, None]
        stakes = _STAKES / (slope + base)
        self.lines, self.columns = lines, columns
        # Logarithms of the factor of one order for (own, other) inside: 10, 01, 11, 00.
        self.logs = np.stack(
            [
                np.log1p(stakes * (inside - slope * outside - base))
                for inside, outside in ((1, 0), (0, 1), (1, 1), (0, 0))
            ]
        ).reshape(4, -1)

    def choose(self, own: Scores, other: Scores) -> EventBet | None:
        """The bet of the largest estimated growth; None where none seems to grow."""
        seen = len(own)
        if seen < _UNSEEN:
            return None
        sides, weights = _with_fitted(own[:, self.columns], other[:, self.columns])
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
    ) -> Event:
        """The event and the line by which a bet in this order alone would grow most."""
        # Of events that were counted alike, as those of bits between equal quantiles, the first.
        events = np.sort(np.unique(hits * (seen + 1) + false_hits, return_index=True)[1])
        p, q = _drawn_together(hits.ravel()[events], false_hits.ravel()[events], seen)
        chances = np.stack([p * (1 - q), (1 - p) * q, p * q, (1 - p) * (1 - q)], axis=1)
        growth = chances @ self.logs
        event, choice = np.unravel_index(int(np.argmax(growth)), growth.shape)
        above, place, column = np.unravel_index(int(events[event]), hits.shape)
        slope, base = self.lines[int(choice) // _STAKES.size]
        return Event(
            column=int(column),
            threshold=float(thresholds[place, column]),
            above=bool(above),
            slope=float(slope),
            base=float(base),
        )


def _staked(
    events: tuple[Event, Event], sides: Sequence[Scores], weights: Scores
) -> EventBet | None:
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
    return EventBet(
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
    if own.shape[1] <= ALONE:
        return [own, other], np.zeros(0)
    seen = len(own)
    (weights,) = _fits(own, other, [slice(0)])
    if seen > _FEW:
        return [with_fitted(scores, weights) for scores in (own, other)], weights
    learned = _fits(own, other, [slice(part, None, _PARTS) for part in range(_PARTS)])
    by_others = learned[np.arange(seen) % _PARTS]
    fitted = [np.einsum("ij,ij->i", scores, by_others) for scores in (own, other)]
    return [np.column_stack(both) for both in zip((own, other), fitted, strict=True)], weights


def _fits(own: Scores, other: Scores, left_out: Sequence[slice]) -> Scores:
    """Weights of linear scores, in units of their spread: Fisher's, for columns of one factor.

    What all columns have in common, as noise of one threshold, is taken out: correlations are those
    of a model in which it is their mean. There is a row for each part that is left out.
    """
    sides = np.stack([own, other])
    means = sides.mean(axis=1)
    units = sides - means[:, None]
    with np.errstate(over="ignore"):  # beyond 1e150 the spread is infinite, and the weight 0
        spread = np.sqrt(np.mean(units**2, axis=(0, 1)))
    still = spread == 0  # in units of what lies between the sides, so that the score is a number
    spread[still] = np.maximum(np.abs(means[0] - means[1]), 1.0)[still]
    units /= spread
    parts = [units[:, part] for part in left_out]
    kept = np.array([[len(own) - part.shape[1]] for part in parts])
    # Of what is kept: both means, and covariances within sides.
    moved = np.stack([-part.sum(axis=1) for part in parts]) / kept[:, None]
    products = np.einsum("sij,sik->jk", units, units, optimize=True) - np.stack(
        [np.einsum("sij,sik->jk", part, part, optimize=True) for part in parts]
    )
    covariances = (products / kept[:, None] - np.einsum("psj,psk->pjk", moved, moved)) / 2
    deviations = np.sqrt(np.einsum("pjj->pj", covariances).clip(0))
    deviations[deviations < _CONSTANT] = 1.0
    correlations = covariances / (deviations[:, :, None] * deviations[:, None])
    gap = ((means[0] - means[1]) / spread + moved[:, 0] - moved[:, 1]) / deviations
    shared = correlations.mean(axis=2)
    size = shared.mean(axis=1, keepdims=True)
    loads = shared / np.where(size > _CONSTANT, size, np.inf)
    alone = np.maximum(1 - loads**2 * size, _LEAST_ALONE)
    scaled = loads / alone
    # The inverse of diag(alone) + size·loads loadsᵀ, by Sherman and Morrison.
    common, whole = (np.einsum("pj,pj->p", scaled, each)[:, None] for each in (gap, loads))
    weights = gap / alone - scaled * common * size / (1 + size * whole)
    variance = np.einsum("pj,pjk,pk->p", weights, correlations, weights)[:, None]
    return np.asarray(
        weights / (spread * deviations) / np.sqrt(np.where(variance > 0, variance, 1.0))
    )


def standardised(earlier: Scores) -> Callable[[Scores], Scores]:
    """Columns in standard deviations from their means."""
    with np.errstate(over="ignore"):
        centre, spread = earlier.mean(axis=0), earlier.std(axis=0)
    spread[spread == 0] = 1.0
    return lambda scores: np.clip((scores - centre) / spread, -_FAR, _FAR)


def waves(most: int, decay: float = 0.0) -> Basis:
    """Cosines of each column's rank among earlier outputs, of 1 to `most` half waves.

    The j-th has 1/j^decay of the first one's scale. Columns of two values have one half wave.
    """

    def basis(earlier: Scores) -> Callable[[Scores], Scores]:
        ordered = np.sort(earlier, axis=0)
        several = np.count_nonzero(np.diff(ordered, axis=0), axis=0) > 1
        kept = [several if j else np.full(several.shape, True) for j in range(most)]

        def of(scores: Scores) -> Scores:
            ranks = np.empty(scores.shape)
            for values, column, rank in zip(scores.T, ordered.T, ranks.T, strict=True):
                below, upto = (np.searchsorted(column, values, side) for side in ("left", "right"))
                rank[:] = (below + upto + 1) / (2 * len(column) + 2)
            return np.concatenate(
                [
                    math.sqrt(2) / j**decay * np.cos(math.pi * j * ranks[:, columns])
                    for j, columns in enumerate(kept, start=1)
                ],
                axis=1,
            )

        return of

    return basis


class OddsBettor:
    """Bets by the odds that logistic regression finds.

    Parameters
    ----------
    lines : of the claim
    columns : of the scores
    basis : of the functions of them whose sum is the log odds
    scale : of the normal prior of each weight
    """

    def __init__(
        self, lines: NDArray[np.float64], columns: slice, basis: Basis, scale: float
    ) -> None:
        self.columns, self.basis, self.scale = columns, basis, scale
        self.choices = np.array(
            [
                (slope, base, part * _SAFE / (slope + 2 * base))
                for slope, base in lines.tolist()
                for part in (_PARTLY if base else [1.0])
            ]
        )
        self.levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
        f, g = stakes(self.levels, *self.choices.T[:, :, None])
        self.logs = self.levels * np.log(f) + (1 - self.levels) * np.log(g)
        self.weights = np.zeros(0)

    def choose(self, own: Scores, other: Scores) -> OddsBet | None:
        """The bet of the odds that were seen; None where it wouldn't have grown."""
        if len(own) < _FIRST:
            return None
        both = np.concatenate([own, other])[:, self.columns]
        of = self.basis(both)
        inputs = of(both)
        if inputs.shape[1] != self.weights.size:
            self.weights = np.zeros(inputs.shape[1])
        mine = np.repeat([1.0, 0.0], len(own))
        weights, unknown = _regression(inputs, mine, self.weights, self.scale)
        self.weights = weights
        columns = self.columns

        def shares(scores: Scores) -> Scores:
            return _shares(of(scores[:, columns]), weights, unknown)

        often = np.bincount(
            (_LEVELS * _shares(inputs, weights, unknown)).astype(int), minlength=_LEVELS
        )
        growth = self.logs @ often
        best = int(np.argmax(growth))
        if not growth[best] > 0:
            return None
        slope, base, most = self.choices[best].tolist()
        return OddsBet(
            shares=shares, slope=slope, base=base, most=most, growth=float(growth[best] / len(own))
        )


def _regression(
    inputs: Scores, mine: Scores, weights: Scores, scale: float
) -> tuple[Scores, Scores]:
    """Weights of the largest posterior density, and their covariance, by Newton's steps."""
    precision = np.eye(weights.size) / scale**2
    for _ in range(_STEPS):
        shares = _logistic(inputs @ weights)
        bend = (inputs.T * (shares * (1 - shares))) @ inputs + precision
        step = np.linalg.solve(bend, inputs.T @ (mine - shares) - precision @ weights)
        largest = float(np.max(np.abs(inputs @ step)))
        weights = weights + step * min(1.0, _LARGEST_STEP / max(largest, 1e-9))
        if largest < 1e-3:
            break
    return weights, np.asarray(np.linalg.inv(bend), dtype=np.float64)


def _shares(inputs: Scores, weights: Scores, unknown: Scores) -> Scores:
    """With the weights' covariance: MacKay's approximation of the mean share."""
    # Sums in a fixed order: a matrix product may round differently from block to block.
    variance = np.einsum("ij,jk,ik->i", inputs, unknown, inputs)
    odds = np.einsum("ij,j->i", inputs, weights)
    return _logistic(odds / np.sqrt(1 + math.pi / 8 * variance))


def _logistic(odds: Scores) -> Scores:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))
