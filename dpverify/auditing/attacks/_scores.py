"""Scores that are learned from the features of outputs.

Everything here is a fixed function of an output once it has been learned from training outputs:
post-processing, which cannot make a private release less private. So no choice made here can spoil
an audit's level as long as the draws that are counted are others; a bad choice costs power alone.
Every score learns from all training outputs: what shows once in 10,000 draws is not in the first
5,000. Time and memory grow in proportion to the draws.

They order the outputs, by likelihood ratio if they could. Of one column: its value, also with all
flags put at one end, its distance from the median, and the likelihood ratio of two histograms. Of
whole outputs that came more than once: how often on each side. Of many columns: those of the
columns that differ most, the root mean square of all, Fisher's linear discriminant, and log odds
that are a sum over columns (`_additive`). With scikit-learn installed, an ensemble of trees as
well.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._additive import Additive, additive, atoms, sample
from dpverify.auditing.formatting import bound
from dpverify.auditing.outputs.features import Matrix, Truth
from dpverify.execution.threads import one_thread

__all__ = ["Score", "learned"]

_COLUMNS = 8  # that are tried one by one
_BINS = 40  # of a histogram
_BLOCK = 5000  # rows that are scaled at once
_FISHER = 400  # columns up to which covariances are estimated
_LISTED = 4  # outputs that an event names
_ODD = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio: mixes bits
_REACH = 1e3  # in units of the interquartile range: what a classifier sees of an outlier


class Score(Protocol):
    """A function of the features, and its events in words.

    `fitted` says whether it was fitted to tell the sides apart, so that it tells the draws that it
    was fitted to apart too well.
    """

    fitted: ClassVar[bool]

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        """Scores of shape (draws,)."""
        ...

    def event(self, threshold: float, *, above: bool) -> str:
        """The event that the score is at least, or at most, the threshold."""
        ...


def learned(
    own: Matrix, other: Matrix, names: Sequence[str], *, classifiers: bool = True
) -> list[Score]:
    """Scores learned from training features of both sides, each of shape (draws, columns).

    Scikit-learn's, which take most of the time, are left out without `classifiers`.
    """
    scale = _Scale.of(own, other)
    first, second = scale(own), scale(other)
    order = _telling(first, second)
    columns = order[:_COLUMNS]
    scores: list[Score] = [_Column(name=names[column], column=column) for column in columns]
    for column in columns:
        values = own[:, column].astype(np.float64), other[:, column].astype(np.float64)
        if np.unique(values[0]).size > 2:
            scores += _Unflagged.all_of(names[column], column, *values)
            scores.append(_Distance.of(names[column], column, *values))
            scores.append(_Histogram.of(names[column], column, *values))
    repeated = _Repeated.of(own, other)
    scores += [repeated] if repeated.ratios else []
    if own.shape[1] > 1:
        scores.append(_Fitted(name="root mean square", scale=scale, function=_root_mean_square))
        if own.shape[1] <= _FISHER:
            linear = _Linear(weights=_fisher(first, second))
            scores.append(_Fitted(name="linear score", scale=scale, function=linear))
        if classifiers:
            sums = zip(
                ("additive score", "shared score"), additive(own, other, order), strict=False
            )
            scores += [_Sum(name=name, function=function) for name, function in sums]
            scores += _trees(scale, first, second)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The value of one column."""

    fitted: ClassVar[bool] = False
    name: str
    column: int

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        return matrix[:, self.column].astype(np.float64)

    def event(self, threshold: float, *, above: bool) -> str:
        """An inequality."""
        return _inequality(self.name, threshold, above=above)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unflagged:
    """The value of one column whose flags, such as −1000, are taken for one of its ends.

    So a small answer has an event of its own, although what says that there is none is smaller.
    """

    fitted: ClassVar[bool] = False
    name: str
    column: int
    flags: tuple[float, ...]
    end: float

    @classmethod
    def all_of(
        cls, name: str, column: int, own: NDArray[np.float64], other: NDArray[np.float64]
    ) -> list[_Unflagged]:
        """One for each end that some flag isn't at."""
        values = sample(own, other)
        flags, smooth = atoms(values)
        if not flags or not smooth:
            return []
        rest = values[~np.isin(values, flags)]
        ends = [(math.inf, min(flags) < rest.max()), (-math.inf, max(flags) > rest.min())]
        return [
            cls(name=name, column=column, flags=flags, end=end)
            for end, elsewhere in ends
            if elsewhere
        ]

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        values = matrix[:, self.column].astype(np.float64)
        values[np.isin(values, self.flags)] = self.end
        return values

    def event(self, threshold: float, *, above: bool) -> str:
        """An inequality, and whether flags are inside."""
        flags = " or ".join(map(bound, sorted(self.flags)))
        inside = (self.end > 0) == above
        if math.isinf(threshold) and inside:
            return f"{self.name} is {flags}"
        told = _inequality(self.name, threshold, above=above)
        return f"{told}, or is {flags}" if inside else f"{told}, and isn't {flags}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distance:
    """The distance of one column from a centre."""

    fitted: ClassVar[bool] = False
    name: str
    column: int
    centre: float

    @classmethod
    def of(
        cls, name: str, column: int, own: NDArray[np.float64], other: NDArray[np.float64]
    ) -> _Distance:
        return cls(name=name, column=column, centre=float(np.median(np.concatenate([own, other]))))

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        return np.abs(matrix[:, self.column].astype(np.float64) - self.centre)

    def event(self, threshold: float, *, above: bool) -> str:
        """An inequality."""
        return _inequality(f"|{self.name} - {bound(self.centre)}|", threshold, above=above)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Histogram:
    """ln((a + 1/2)/(b + 1/2)) for the training counts a and b of a column's bin.

    Inner edges are quantiles of all training values, so that frequent values have bins of their
    own; bin i is [edge i-1, edge i).
    """

    fitted: ClassVar[bool] = True
    name: str
    column: int
    edges: NDArray[np.float64]
    ratios: NDArray[np.float64]

    @classmethod
    def of(
        cls, name: str, column: int, own: NDArray[np.float64], other: NDArray[np.float64]
    ) -> _Histogram:
        values = np.sort(np.concatenate([own, other]))
        edges = np.unique(values[:: max(1, values.size // _BINS)])
        counts = [
            np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
            for side in (own, other)
        ]
        ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
        return cls(name=name, column=column, edges=edges, ratios=ratios)

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        values = matrix[:, self.column].astype(np.float64)
        ratios: NDArray[np.float64] = self.ratios[np.searchsorted(self.edges, values, side="right")]
        return ratios

    def event(self, threshold: float, *, above: bool) -> str:
        """The union of intervals that the bins make."""
        inside = self.ratios >= threshold if above else self.ratios <= threshold
        change = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        intervals = [f"[{bound(a)}, {bound(b)})" for a, b in ends[change].reshape(-1, 2).tolist()]
        return f"{self.name} in {' or '.join(intervals)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated:
    """ln((a + 1/2)/(b + 1/2)) for the training counts a and b of an output that came again.

    0 for all others. So a value that noise never repeats, such as a record released as it is, has
    an event of its own, however rare it is and whatever lies around it.
    """

    fitted: ClassVar[bool] = True
    ratios: Mapping[bytes, float]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, own: Matrix, other: Matrix) -> _Repeated:
        keys, often = np.unique(np.concatenate([_keys(own), _keys(other)]), return_counts=True)
        again = keys[often > 1]
        counts = [Counter(_rows(side[np.isin(_keys(side), again)])) for side in (own, other)]
        ratios = {
            row: math.log((counts[0][row] + 0.5) / (counts[1][row] + 0.5))
            for row in sorted(counts[0] | counts[1])
            if counts[0][row] + counts[1][row] > 1
        }
        return cls(ratios=ratios, dtype=own.dtype)

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        scores = np.zeros(len(matrix))
        known = np.frombuffer(b"".join(self.ratios), dtype=self.dtype)
        likely = np.isin(_keys(matrix), _keys(known.reshape(-1, matrix.shape[1])))
        scores[likely] = [self.ratios.get(row, 0.0) for row in _rows(matrix[likely])]
        return scores

    def event(self, threshold: float, *, above: bool) -> str:
        """One of a few outputs, or none of them."""
        others = (threshold <= 0) if above else (threshold >= 0)  # whether what has 0 is inside
        listed = [
            np.frombuffer(row, dtype=self.dtype)
            for row, ratio in self.ratios.items()
            if ((ratio >= threshold) if above else (ratio <= threshold)) != others
        ]
        shown = ", ".join(" ".join(map(bound, row)) for row in listed[:_LISTED])
        more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        return f"output is {'none' if others else 'one'} of {shown}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Columns in units of their own spread, outliers drawn in."""

    centre: NDArray[np.float64]
    width: NDArray[np.float64]

    @classmethod
    def of(cls, own: Matrix, other: Matrix) -> _Scale:
        quartiles = np.quantile(np.concatenate([own, other]), [0.25, 0.5, 0.75], axis=0)
        low, centre, high = quartiles
        return cls(centre=centre, width=np.where(high > low, high - low, 1.0))

    def __call__(self, matrix: Matrix) -> NDArray[np.float32]:
        """In single precision, which halves what a million draws take of memory."""

        def scaled(block: Matrix) -> NDArray[np.float32]:
            with np.errstate(over="ignore"):  # a width may be subnormal
                units = np.clip((block - self.centre) / self.width, -_REACH, _REACH)
            return np.asarray(units, dtype=np.float32)

        return _by_blocks(scaled, matrix)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """A function of all scaled columns."""

    fitted: ClassVar[bool] = True
    name: str
    scale: _Scale
    function: Callable[[NDArray[np.float32]], NDArray[np.float64]]

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        return _by_blocks(lambda block: self.function(self.scale(block)), matrix)

    def event(self, threshold: float, *, above: bool) -> str:
        """An inequality."""
        return _inequality(self.name, threshold, above=above)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """Log odds that are a sum over columns."""

    fitted: ClassVar[bool] = True
    name: str
    function: Additive

    def __call__(self, matrix: Matrix) -> NDArray[np.float64]:
        return _by_blocks(self.function, matrix)

    def event(self, threshold: float, *, above: bool) -> str:
        """An inequality."""
        return _inequality(self.name, threshold, above=above)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Linear:
    weights: NDArray[np.float64]

    def __call__(self, scaled: NDArray[np.float32]) -> NDArray[np.float64]:
        # A sum in a fixed order: a matrix product may round differently from block to block.
        product: NDArray[np.float64] = np.einsum("ij,j->i", scaled, self.weights)
        return product


def _rows(matrix: Matrix) -> Iterator[bytes]:
    # The sum makes one zero of both.
    return (row.tobytes() for row in matrix + matrix.dtype.type(0))


def _keys(matrix: Matrix) -> NDArray[np.uint64]:
    """A number of each row: equal rows have equal ones, and different rows nearly always don't."""
    zeroed = np.ascontiguousarray(matrix + matrix.dtype.type(0))
    bits = zeroed.view(f"u{matrix.dtype.itemsize}").astype(np.uint64, copy=False)
    key = np.zeros(len(matrix), dtype=np.uint64)
    for column in bits.T:
        key = (key ^ column) * _ODD
        key ^= key >> np.uint64(29)
    return key


def _by_blocks(function: Callable[[Matrix], Matrix], matrix: Matrix) -> Matrix:
    starts = range(0, len(matrix), _BLOCK)
    return np.concatenate([function(matrix[start : start + _BLOCK]) for start in starts])


def _inequality(name: str, threshold: float, *, above: bool) -> str:
    """An event of one column; of what holds or doesn't, in words."""
    if isinstance(name, Truth) and threshold == above:
        return str(name) if above else f"not: {name}"
    return f"{name} {'≥' if above else '≤'} {bound(threshold)}"


def _telling(first: NDArray[np.float32], second: NDArray[np.float32]) -> list[int]:
    """Columns by how much mean or mean distance from the median differ, in standard errors."""
    differences = np.zeros(first.shape[1])
    for a, b in ((first, second), (np.abs(first), np.abs(second))):
        spread = [side.var(axis=0, dtype=np.float64) / len(side) for side in (a, b)]
        error = np.sqrt(spread[0] + spread[1])
        gap = np.abs(a.mean(axis=0, dtype=np.float64) - b.mean(axis=0, dtype=np.float64))
        ratio = np.where(gap > 0, gap / np.maximum(error, 1e-300), 0.0)
        differences = np.maximum(differences, ratio)
    order: list[int] = np.argsort(-differences, kind="stable").tolist()
    return order


def _root_mean_square(scaled: NDArray[np.float32]) -> NDArray[np.float64]:
    rms: NDArray[np.float64] = np.sqrt(np.mean(scaled**2, axis=1, dtype=np.float64))
    return rms


def _fisher(own: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    """Weights of Fisher's linear discriminant, with a small ridge for constant columns."""
    spreads = [np.cov(each, rowvar=False, ddof=min(len(each) - 1, 1)) for each in (own, other)]
    within = spreads[0] + spreads[1]  # a single row has none
    ridge = 1e-9 * max(float(np.trace(within)), 1e-9)
    gap = own.mean(axis=0, dtype=np.float64) - other.mean(axis=0, dtype=np.float64)
    weights: NDArray[np.float64] = np.linalg.solve(within + ridge * np.eye(len(within)), gap)
    return weights


def _trees(scale: _Scale, own: NDArray[np.float32], other: NDArray[np.float32]) -> list[Score]:
    """Scikit-learn's ensemble, where it is installed."""
    if importlib.util.find_spec("sklearn") is None:
        return []
    from sklearn.ensemble import HistGradientBoostingClassifier

    with one_thread():
        trees = HistGradientBoostingClassifier(
            max_iter=20, max_leaf_nodes=8, early_stopping=False, random_state=0
        ).fit(np.concatenate([own, other]), np.repeat([1, 0], [len(own), len(other)]))

    def votes(scaled: NDArray[np.float32]) -> NDArray[np.float64]:
        with one_thread():
            decision: NDArray[np.float64] = trees.decision_function(scaled)
            return decision

    return [_Fitted(name="tree score", scale=scale, function=votes)]
