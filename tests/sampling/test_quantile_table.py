"""The table of quantiles: a few words are rounded as many are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.sampling import _quantile_table
from dpverify.sampling._quantile_table import _FEW, Polynomials
from dpverify.sampling._rounded_noise import RoundedNoise
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords
from tests.helpers.loops import RUNNERS, By, run_loops


def words() -> NDArray[np.uint64]:
    """Uniform ones, of every size, and at the ends of the table's rows."""
    drawn = ReplayableWords(1).words(4000)
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    ends = [powers + np.uint64(step) for step in (0, 1, 2)] + [powers - np.uint64(1), ~powers]
    return np.concatenate([drawn, drawn >> (drawn % np.uint64(64)), *ends])


@pytest.mark.parametrize("scale", [1.0, 1234.5, 2.0**36, 2.0**44])
@pytest.mark.parametrize("kind", ["coarse", "fine"])
@pytest.mark.parametrize("noise", [RoundedGaussian, RoundedLaplace])
def test_few_words_are_rounded_as_many_are(
    noise: type[RoundedNoise], kind: str, scale: float
) -> None:
    polynomials: Polynomials = getattr(noise(scale=scale)._table(), kind)
    given = words()
    together, apart = np.empty((2, given.size), np.int64)
    undecided = polynomials.round(given, scale, together).tolist()
    left = []
    for start in range(0, given.size, _FEW):
        part = slice(start, start + _FEW)
        left += (start + polynomials.round(given[part], scale, apart[part])).tolist()
    assert left == undecided
    assert 0 < len(undecided) < given.size
    assert np.array_equal(together, apart)


@pytest.mark.parametrize("by", RUNNERS)
@pytest.mark.parametrize("noise", [RoundedGaussian, RoundedLaplace])
def test_one_word_after_the_other_is_rounded_as_arrays_are(
    monkeypatch: pytest.MonkeyPatch, noise: type[RoundedNoise], by: By
) -> None:
    given = words()[3500:]
    for scale in (1.0, 1234.5, 2.0**40):
        for kind in ("coarse", "fine"):
            polynomials: Polynomials = getattr(noise(scale=scale)._table(), kind)
            arrays, single = np.empty((2, given.size), np.int64)
            run_loops(monkeypatch, _quantile_table, "numpy")
            expected = polynomials.round(given, scale, arrays)
            met = run_loops(monkeypatch, _quantile_table, by)
            undecided = polynomials.round(given, scale, single)
            assert met == [given.size]
            assert np.array_equal(single, arrays)
            assert np.array_equal(undecided, expected)
            assert undecided.size
