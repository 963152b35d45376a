"""Ten million draws against the exact probabilities of the rounded distribution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords

DRAWS = 10_000_000
LEVEL = 1e-6  # probability that a correct sampler is accused by one test


def refuted(drawn: NDArray[np.int64], scale: float) -> bool:
    """Chi-squared test at `LEVEL` on every value within 4.5 scales, and both tails as one cell."""
    sampler, reach = RoundedGaussian(scale=scale), int(4.5 * scale)
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


@pytest.mark.parametrize("scale", [16.0, 1003.5701763166312])
def test_law(scale: float) -> None:
    drawn = RoundedGaussian(scale=scale).sample((DRAWS,), rng=ReplayableWords(2026, "law"))
    assert not refuted(drawn, scale)


@pytest.mark.parametrize("bug", ["scale one per cent off", "floor", "halves to even", "no sign"])
def test_a_wrong_law_is_refuted(bug: str) -> None:
    ideal = 16.0 * np.random.default_rng(4).standard_normal(DRAWS)
    wrong = {
        "scale one per cent off": np.rint(0.99 * ideal),
        "floor": np.floor(ideal),
        "halves to even": 2 * np.rint(ideal / 2),
        "no sign": np.abs(np.rint(ideal)),
    }[bug]
    assert refuted(wrong.astype(np.int64), 16.0)
    if bug == "floor":
        # The control of the control: rounded right, numpy's normals are good enough to stand.
        assert not refuted(np.rint(ideal).astype(np.int64), 16.0)
