"""Published numbers of differing positions: as printed where they hold, else refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

from dpverify.accounting.published_counts import differing_hashes, differing_signs
from dpverify.errors import ParameterError

MILLIONTH = Fraction(1, 10**6)


def test_the_papers_own_number() -> None:
    """Figure 5's cell: p = 1,024, k = 512, norms of 10·beta."""
    found = differing_signs(512, 1024, Fraction(1, 10), MILLIONTH)

    def density(t: float) -> float:
        twice = 2 * ndtr(t) - 1
        other = 2 * ndtr(t / 10) - 1
        return float(2048 * twice**1023 * other * np.exp(-t * t / 2) / np.sqrt(2 * np.pi))

    mean, log = 512 * quad(density, 0, 12, limit=200)[0], np.log(1e6)
    printed = mean + (log + np.sqrt(log**2 + 8 * mean * log)) / 2
    assert found.lower == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("ratio", [Fraction(9, 10), Fraction(1)])
def test_inequality_18_is_refused_where_it_is_false(ratio: Fraction) -> None:
    with pytest.raises(ParameterError, match=r"inequality \(18\)"):
        differing_signs(10, 2, ratio, MILLIONTH)
    # The refusal is right: two Gaussians, drawn.
    w = np.random.default_rng(1).normal(size=(400_000, 2))
    changed = float(ratio) * np.abs(w).max(axis=1) >= np.abs(w.sum(axis=1)) / np.sqrt(2)
    independent = np.random.default_rng(2).normal(size=(400_000, 3))
    allowed = float(ratio) * np.abs(independent[:, :2]).max(axis=1) > np.abs(independent[:, 2])
    assert changed.mean() > allowed.mean() + 0.02


@pytest.mark.parametrize(
    ("positions", "differ", "delta"),
    [
        (1000, Fraction(1, 10), Fraction(1, 10)),
        (40, Fraction(1, 333), Fraction(1, 10**4)),
        (100, Fraction(1, 100), Fraction(1, 10**6)),
        (500, Fraction(1, 2), Fraction(1, 10**3)),
    ],
)
def test_lemma_1_is_refused_where_the_tail_is_larger(
    positions: int, differ: Fraction, delta: Fraction
) -> None:
    mean = float(positions * differ)
    printed = mean + np.sqrt(3 * -np.log(float(delta)) * mean)
    holds = binom.sf(np.floor(printed), positions, float(differ)) <= float(delta)
    if holds:
        assert differing_hashes(positions, differ, delta).upper == pytest.approx(printed)
    else:
        with pytest.raises(ParameterError, match="lemma 1"):
            differing_hashes(positions, differ, delta)


def test_a_published_count_is_given_or_refused() -> None:
    differing_hashes(1000, Fraction(1, 10), Fraction(1, 10))
    with pytest.raises(ParameterError):
        differing_hashes(40, Fraction(1, 333), Fraction(1, 10**4))
