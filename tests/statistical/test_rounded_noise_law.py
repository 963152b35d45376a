"""Many draws against the exact probabilities of exactly rounded noise.

As many as make the smallest of these mistakes plain; by night ten million.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords
from tests.helpers.profiles import crossed, day_and_night

Noise = RoundedGaussian | RoundedLaplace
FEW, DRAWS = 3_000_000, 10_000_000
REACH = {RoundedGaussian: 4.5, RoundedLaplace: 10}
"""Scales within which every value is a cell of the test."""
LEVEL = 1e-6  # probability that a correct sampler is accused by one test


def refuted(drawn: NDArray[np.int64], sampler: Noise) -> bool:
    """Chi-squared test at `LEVEL` on every value in reach, and both tails as one cell."""
    reach = int(REACH[type(sampler)] * sampler.scale)
    half = [sampler.probability(n).lower for n in range(reach + 1)]
    inner = np.array(half[:0:-1] + half)
    counts = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    observed = np.append(counts[1:-1], counts[0] + counts[-1])
    expected = drawn.size * np.append(inner, 1 - inner.sum())
    # Neighbours are merged until each cell expects enough for the limit law to hold far out.
    starts, total = [0], 0.0
    for index, value in enumerate(expected[:-1]):
        if total >= 50:
            starts.append(index)
            total = 0.0
        total += value
    starts.append(len(expected) - 1)
    merged_observed = np.add.reduceat(observed, starts)
    merged_expected = np.add.reduceat(expected, starts)
    statistic = ((merged_observed - merged_expected) ** 2 / merged_expected).sum()
    return bool(chi2.sf(statistic, len(starts) - 1) < LEVEL)


@pytest.mark.parametrize("draws", day_and_night(FEW, DRAWS))
@pytest.mark.parametrize(
    "sampler",
    [
        RoundedGaussian(scale=16.0),
        RoundedGaussian(scale=1003.5701763166312),
        RoundedLaplace(scale=0.5),
        RoundedLaplace(scale=16.0),
        RoundedLaplace(scale=1003.5701763166312),
    ],
    ids=str,
)
def test_draws_have_the_law_of_rounded_noise(sampler: Noise, draws: int) -> None:
    assert not refuted(sampler.sample((draws,), rng=ReplayableWords(2026, "law")), sampler)


@pytest.mark.parametrize("draws", day_and_night(FEW, DRAWS))
@pytest.mark.parametrize(
    ("sampler", "bug"),
    crossed(
        [RoundedGaussian(scale=16.0), RoundedLaplace(scale=16.0)],
        ["scale one per cent off", "floor", "halves to even", "no sign"],
    ),
)
def test_a_wrong_law_is_refuted(sampler: Noise, bug: str, draws: int) -> None:
    rng = np.random.default_rng(4)
    ideal = rng.normal if isinstance(sampler, RoundedGaussian) else rng.laplace
    noise = sampler.scale * ideal(size=draws)
    wrong = {
        "scale one per cent off": np.rint(0.99 * noise),
        "floor": np.floor(noise),
        "halves to even": 2 * np.rint(noise / 2),
        "no sign": np.abs(np.rint(noise)),
    }[bug]
    assert refuted(wrong.astype(np.int64), sampler)
    if bug == "floor":
        # The control of the control: rounded right, numpy's draws are good enough to stand.
        assert not refuted(np.rint(noise).astype(np.int64), sampler)
