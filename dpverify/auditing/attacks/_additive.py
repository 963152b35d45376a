"""Log odds that are a sum over columns: the likelihood ratio of outputs made of many small parts.

A column is taken apart (`_Part`): what comes often (a flag such as −1000, a bit, a code) has an
indicator each, and other values go through ramps between quantiles, clip((x − a)/(b − a), 0, 1).
Columns without frequent values that are correlated are replaced by what the columns before them
don't predict linearly, so that sums of ever more terms become their terms. One logistic regression
has a weight for each part of each column; another one has the same weights in all columns, so that
what they have in common is learned from all.

**Fitted** by Newton's steps from 0, each a pass over the rows, until one gains less than half a
unit of log-likelihood. The weights are drawn together as a normal prior asks, whose variance τ² is
the one of largest marginal likelihood at the first step (MacKay 1992): with g the gradient and G
the information there, g ~ N(0, G + τ²G²).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.outputs.features import Matrix

__all__ = ["Additive", "additive", "atoms", "sample"]

Floats = NDArray[np.float64]

_SAMPLE = 20_000  # rows that say what is frequent, and where quantiles are
_ATOMS = 4  # frequent values of a column
_OFTEN = 0.02  # their least share
_REST = 50  # other values of the sample that get ramps
_KNOTS = (0.05, 0.2, 0.35, 0.45, 0.55, 0.65, 0.8, 0.95)  # noise changes sides in the middle
_CORRELATED = 0.5
_LARGE = 1e100  # whose square is a number
_MOST = 256  # parts of all columns
_STEPS = 4
_GAIN = 0.5
_BLOCK = 5000
_VARIANCES = np.geomspace(1e-6, 1e2, 33)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One column, or what others don't predict of it: an indicator of each atom, and ramps."""

    column: int
    others: tuple[int, ...]
    weights: Floats
    atoms: tuple[float, ...]
    knots: Floats

    def __call__(self, matrix: Matrix) -> Iterator[Matrix]:
        values = matrix[:, self.column]
        for other, weight in zip(self.others, self.weights, strict=True):
            values = values - weight * matrix[:, other]
        flags = [values == atom for atom in self.atoms]
        yield from flags
        rest = ~np.logical_or.reduce(flags) if flags else 1.0
        for low, high in zip(self.knots, self.knots[1:], strict=False):
            yield (np.clip((values - low) / (high - low), 0, 1) - 0.5) * rest

    @property
    def kinds(self) -> list[Hashable]:
        """Of what it makes: equal ones of different columns mean the same."""
        ramps = max(self.knots.size - 1, 0)
        return [*self.atoms, *((place, ramps) for place in range(ramps))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive:
    """A weight for all that the parts make of an output."""

    parts: tuple[_Part, ...]
    weights: Floats

    def __call__(self, matrix: Matrix) -> Floats:
        # One after the other: a product of matrices may round differently from block to block.
        log_odds = np.zeros(len(matrix))
        made = (each for part in self.parts for each in part(matrix))
        for weight, each in zip(self.weights, made, strict=True):
            log_odds += weight * each
        return log_odds


def additive(own: Matrix, other: Matrix, order: Sequence[int]) -> list[Additive]:
    """Both regressions of which side an output is of, on training features of both sides.

    Parameters
    ----------
    own, other : of shape (draws, columns)
    order : of columns, in which they are taken as long as there is room
    """
    parts = _parts(own, other, order)
    kinds = [kind for part in parts for kind in part.kinds]
    names = list(dict.fromkeys(kinds))
    alike = np.array([[kind == name for name in names] for kind in kinds], dtype=np.float32)
    each = np.eye(len(kinds), dtype=np.float32)
    fits = [each] if len(names) == len(kinds) else [each, alike]
    return [
        Additive(parts=parts, weights=fit @ _regression(own, other, parts, fit))
        for fit in fits
        if fit.size
    ]


def _made(parts: Sequence[_Part], matrix: Matrix) -> NDArray[np.float32]:
    rows = [made for part in parts for made in part(matrix)]
    return np.array(rows, dtype=np.float32).T


def _parts(own: Matrix, other: Matrix, order: Sequence[int]) -> tuple[_Part, ...]:
    """Parts of as many columns as there is room for, in the columns' own order."""
    rows = sample(own, other)
    frequents = {column: atoms(rows[:, column]) for column in order[:_MOST]}
    chosen: list[int] = []
    room = _MOST
    for column, (frequent, smooth) in frequents.items():
        room -= len(frequent) + (len(_KNOTS) - 1) * smooth
        if room < 0:
            break
        chosen.append(column)
    chosen.sort()
    before = _predicted(rows, [c for c in chosen if frequents[c][1] and not frequents[c][0]])
    parts = []
    for column in chosen:
        frequent, smooth = frequents[column]
        others, weights = before.get(column, ((), np.zeros(0)))
        values = rows[:, column] - rows[:, others] @ weights
        rest = values[~np.isin(values, frequent)] if frequent else values
        knots = np.unique(np.quantile(rest, _KNOTS)) if smooth else np.zeros(0)
        parts.append(
            _Part(column=column, others=others, weights=weights, atoms=frequent, knots=knots)
        )
    return tuple(parts)


def sample(own: Matrix, other: Matrix) -> Floats:
    """Some outputs of both sides, evenly spaced."""
    return np.concatenate([side[:: -(-len(side) // _SAMPLE)] for side in (own, other)]).astype(
        np.float64
    )


def atoms(values: Floats) -> tuple[tuple[float, ...], bool]:
    """Frequent values, and whether there are enough others; one less where there are none."""
    distinct, counts = np.unique(values, return_counts=True)
    best = np.argsort(-counts, kind="stable")[: _ATOMS + 1]
    best = best[counts[best] >= _OFTEN * values.size]
    rest = values.size - int(counts[best[:_ATOMS]].sum())
    smooth = rest >= _REST and distinct.size > best.size
    frequent = best[:_ATOMS] if smooth else best[1:]
    return tuple(distinct[frequent].tolist()), smooth


def _predicted(sample: Matrix, columns: list[int]) -> dict[int, tuple[tuple[int, ...], Floats]]:
    """For each column those before it, with the weights of its best linear prediction."""
    if len(columns) < 2:
        return {}
    values = sample[:, columns]
    low, high = np.quantile(values, [0.001, 0.999], axis=0)
    inside = np.all((values >= low) & (values <= high), axis=1)
    if np.max(np.abs(values[inside]), initial=0.0) > _LARGE:
        return {}
    spread = np.cov(values[inside], rowvar=False)
    width = np.sqrt(np.diag(spread))
    if not (width > 0).all() or np.max(np.abs(np.triu(spread / np.outer(width, width), 1))) < (
        _CORRELATED
    ):
        return {}
    spread += 1e-9 * np.diag(width**2)
    return {
        column: (
            tuple(columns[:place]),
            np.linalg.solve(spread[:place, :place], spread[:place, place]),
        )
        for place, column in enumerate(columns)
        if place
    }


def _regression(
    own: Matrix, other: Matrix, parts: Sequence[_Part], fit: NDArray[np.float32]
) -> Floats:
    """Weights for the columns of `fit`, which says how they are put on what the parts make."""
    weights, prior = np.zeros(fit.shape[1] + 1), np.zeros(0)
    for _ in range(_STEPS):
        gradient, information = _derivatives(own, other, parts, fit, weights)
        if not prior.size:
            prior = _prior(gradient, information)
        gradient -= prior * weights
        step = np.linalg.solve(information + np.diag(prior), gradient)
        weights += step
        if gradient @ step < 2 * _GAIN:
            break
    return weights[:-1]


def _derivatives(
    own: Matrix,
    other: Matrix,
    parts: Sequence[_Part],
    fit: NDArray[np.float32],
    weights: Floats,
) -> tuple[Floats, Floats]:
    """Of the log-likelihood: its gradient, and its second derivative with the sign changed."""
    size = weights.size
    gradient, information = np.zeros(size), np.zeros((size, size))
    for matrix, label in ((own, 1.0), (other, 0.0)):
        for start in range(0, len(matrix), _BLOCK):
            made = _made(parts, matrix[start : start + _BLOCK]) @ fit
            rows = np.column_stack([made, np.ones(len(made), dtype=np.float32)])
            chance = scipy.special.expit(rows @ weights)
            gradient += (label - chance) @ rows
            spread = (chance * (1 - chance)).astype(np.float32)
            information += (rows * spread[:, None]).T @ rows
    return gradient, information


def _prior(gradient: Floats, information: Floats) -> Floats:
    """The precision of each weight, but for the last one, which is a constant's."""
    # In units of each column's own spread.
    units = np.sqrt(np.maximum(np.diag(information)[:-1], 1e-12) / np.diag(information)[-1])
    scaled = information[:-1, :-1] / np.outer(units, units)
    values, vectors = np.linalg.eigh(scaled)
    parts = (vectors.T @ (gradient[:-1] / units)) ** 2
    values = np.maximum(values, 1e-9 * max(float(values[-1]), 1e-9))

    def likelihood(variance: float) -> float:
        spread = values + variance * values**2
        return float(-np.sum(np.log(spread) + parts / spread))

    variance = max(_VARIANCES.tolist(), key=likelihood)
    return np.append(units**2 / variance, 1e-6)
