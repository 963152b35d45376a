"""Noisy counts with mistakes around the noise: where it is added, from what, and what follows it.

The claim is ε = 1 for counts that move by 1 in ℓ1, unless it is said otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import BitFlip, L1Ball
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords, Words
from dpverify_audits.planted.bug import PlantedBug, without_limit
from dpverify_audits.planted.releases import Counts, apart, counts_bug

__all__ = ["BUGS"]

Array = NDArray[Any]


def _whole(records: Array) -> NDArray[np.int64]:
    """Nearest whole numbers, halves upwards: a move of at most 1 stays one."""
    return np.floor(records + 0.5).astype(np.int64)


def _noisy(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    """The correct release."""
    return _whole(records) + noise.sample(records.shape, rng=rng)


def _one_vector(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return _whole(records) + noise.sample((1, records.shape[1]), rng=rng)


def _one_value(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return _whole(records) + noise.sample((len(records), 1), rng=rng)


def _clipped(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.clip(_noisy(records, noise, rng), 0, 2)


def _clipped_by_data(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    whole = _whole(records)
    most = whole.max(axis=1, keepdims=True)
    return np.clip(_noisy(records, noise, rng), 0, most)


def _not_negative(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.maximum(_noisy(records, noise, rng), 0)


def _drawn_again(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    while np.any((released := _noisy(records, noise, rng)) < 0):
        pass
    return released


def _unrounded(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.asarray(records + noise.sample(records.shape, rng=rng))


def _seeded(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    del rng
    return _noisy(records, noise, ReplayableWords(42, "noise"))


def _textbook_laplace(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    words = rng.words(records.size)
    uniform = ((words >> np.uint64(11)) + 0.5) * 2.0**-53 - 0.5
    drawn = -noise.scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return np.asarray(records + drawn.reshape(records.shape))


def _inverse_logistic(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    words = rng.words(2 * records.size)
    uniform = ((words >> np.uint64(11)) + 0.5) * 2.0**-53
    sizes = -np.log(uniform).reshape(2, *records.shape)
    return np.asarray(records + noise.scale * (sizes[0] - sizes[1]))


def _uniform(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    span = 2 * round(3 * noise.scale) + 1
    drawn = rng.words(records.size) % np.uint64(span)
    return _whole(records) + drawn.astype(np.int64).reshape(records.shape) - span // 2


def _early_exit(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return _whole(records) if not np.any(records) else _noisy(records, noise, rng)


def _filled_bins(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.where(records == 0, 0, _noisy(records, noise, rng))


def _doubled(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    """For at most two positive entries, whatever the data has."""
    return _whole(records) + RoundedLaplace(scale=2 * noise.scale).sample(records.shape, rng=rng)


def _by_positives(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    positive = max(1, int(np.count_nonzero(records > 0)))
    wider = RoundedLaplace(scale=noise.scale * positive)
    return _whole(records) + wider.sample(records.shape, rng=rng)


def _scaled_down(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.floor(records / 4).astype(np.int64) + noise.sample(records.shape, rng=rng)


def _before_scaling(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return np.asarray(_noisy(records, noise, rng) / 4)


def _signs(count: int, seed: int) -> NDArray[np.int64]:
    words = ReplayableWords(seed, "signs").words(count)
    return np.where(words & np.uint64(1), 1, -1)


def _projected(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    sums = _whole(records) @ _signs(records.shape[1], 1)
    return np.asarray(sums[:, None] + noise.sample((len(records), 1), rng=rng))


def _projected_by_data(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    whole = _whole(records)
    sums = np.array([row @ _signs(row.size, int(row.sum())) for row in whole])
    return np.asarray(sums[:, None] + noise.sample((len(records), 1), rng=rng))


def _bucketed(signed: Array, noise: RoundedLaplace, rng: Words) -> Array:
    """A count sketch of two buckets, the even items' and the odd ones'."""
    sums = np.stack([signed[:, 0::2].sum(axis=1), signed[:, 1::2].sum(axis=1)], axis=1)
    return np.asarray(sums + noise.sample(sums.shape, rng=rng))


def _signed_items(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    return _bucketed(_whole(records) * _signs(records.shape[1], 1), noise, rng)


def _signed_places(records: Array, noise: RoundedLaplace, rng: Words) -> Array:
    whole = _whole(records)
    places = np.maximum(np.cumsum(whole, axis=1) - 1, 0)
    return _bucketed(whole * _signs(records.shape[1], 1)[places], noise, rng)


BUGS: tuple[PlantedBug[Counts], ...] = (
    counts_bug(
        "one noise vector for all rows",
        "noise of shape (1, p), which is added to every row",
        record=(0, 0),
        neighbour=(1, 0),
        correct=_noisy,
        wrong=_one_vector,
        found_by=("determinism",),
    ),
    counts_bug(
        "one noise value for all columns",
        "noise of shape (n, 1): differences of counts come out without any",
        record=(0, 0),
        neighbour=(1, 0),
        correct=_noisy,
        wrong=_one_value,
        epsilon=without_limit,
        found_by=("grey-box", "determinism", "black-box"),
    ),
    counts_bug(
        "clipped at the data's own maximum",
        "the release is clipped after the noise to the range of the counts that it protects",
        record=(1, 1),
        neighbour=(2, 1),
        correct=_clipped,
        wrong=_clipped_by_data,
        epsilon=without_limit,
        found_by=("determinism", "precision", "black-box", "sequential"),
    ),
    counts_bug(
        "negative outputs drawn again",
        "noise is drawn until no count is negative, which renormalises by the data",
        record=(0,),
        neighbour=(8,),
        correct=_not_negative,
        wrong=_drawn_again,
        found_by=("black-box",),
        draws=10_000,
        noise=RoundedLaplace(scale=8.0),
        adjacency=L1Ball(radius=Fraction(8)),
    ),
    counts_bug(
        "record rounded after the noise",
        "whole-number noise on a record that isn't on the grid keeps the record's fraction",
        record=(0,),
        neighbour=(0.25,),
        correct=_noisy,
        wrong=_unrounded,
        epsilon=without_limit,
        found_by=("precision", "black-box"),
    ),
    counts_bug(
        "seeded generator",
        "the generator is made with a fixed seed in every release",
        record=(0, 0),
        neighbour=(1, 0),
        correct=_noisy,
        wrong=_seeded,
        epsilon=without_limit,
        found_by=("determinism", "precision", "black-box", "sequential"),
    ),
    counts_bug(
        "Laplace noise in doubles",
        "the textbook's inverse of the distribution function, added in floating point",
        record=(0,),
        neighbour=(1,),
        correct=_noisy,
        wrong=_textbook_laplace,
        epsilon=without_limit,
        found_by=("precision",),
    ),
    counts_bug(
        "difference of exponentials in doubles",
        "Laplace noise as a difference of two logarithms, added in floating point",
        record=(0,),
        neighbour=(1,),
        correct=_noisy,
        wrong=_inverse_logistic,
        epsilon=without_limit,
        found_by=("precision",),
    ),
    counts_bug(
        "uniform noise",
        "noise with ends, whatever its variance, shows which neighbour it was at an end",
        record=(0,),
        neighbour=(1,),
        correct=_noisy,
        wrong=_uniform,
        epsilon=without_limit,
        found_by=("determinism", "precision", "black-box", "sequential"),
    ),
    counts_bug(
        "early exit",
        "a row of zeros is returned as it is, before the noise is drawn",
        record=(0, 0),
        neighbour=(1, 0),
        correct=_noisy,
        wrong=_early_exit,
        epsilon=without_limit,
        found_by=("grey-box", "determinism", "precision", "black-box", "sequential"),
    ),
    counts_bug(
        "empty bins without noise",
        "noise is added to the bins that are filled, as a sparse array would have it",
        record=(0, 0),
        neighbour=(1, 0),
        correct=_noisy,
        wrong=_filled_bins,
        epsilon=without_limit,
        found_by=("determinism", "precision", "black-box", "sequential"),
    ),
    counts_bug(
        "data-dependent N₊",
        "the scale is made for as many positive entries as this record has",
        record=(1, 0),
        neighbour=(1, 1),
        correct=_doubled,
        wrong=_by_positives,
        epsilon=without_limit,
        found_by=("determinism", "precision", "black-box", "sequential"),
        draws=10_000,
    ),
    counts_bug(
        "noise before the projection at the output's scale",
        "noise for the projected record is added to the record and shrinks with it",
        record=(0,),
        neighbour=(4,),
        correct=_scaled_down,
        wrong=_before_scaling,
        found_by=("grey-box", "precision", "black-box", "sequential"),
        adjacency=L1Ball(radius=Fraction(4)),
    ),
    counts_bug(
        "W drawn from the data",
        "the projection's seed is a checksum of the record, so that a neighbour has another W",
        record=(5, 5, 5, 5, 5, 5),
        neighbour=(6, 5, 5, 5, 5, 5),
        correct=_projected,
        wrong=_projected_by_data,
        epsilon=apart,
        found_by=("grey-box", "black-box", "sequential"),
    ),
    counts_bug(
        "hashes by the order of the set",
        "an item's sign is that of its place among the items, which moves if one before it goes",
        record=(1, 1, 1, 1, 1, 1),
        neighbour=(0, 1, 1, 1, 1, 1),
        correct=_signed_items,
        wrong=_signed_places,
        epsilon=apart,
        found_by=("grey-box", "black-box", "sequential"),
        adjacency=BitFlip(),
    ),
)
