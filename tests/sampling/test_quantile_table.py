"""The table of quantiles: a few words are rounded as many are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpverify.sampling import _quantile_table
from dpverify.sampling._quantile_table import _FEW, Polynomials
from dpverify.sampling._rounded_noise import RoundedNoise
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords, Words
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


class Plain:
    """The words of a stream, of which nothing is made ahead."""

    policy: ClassVar[str] = "given"

    def __init__(self) -> None:
        self._source = ReplayableWords(3, "calls")

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._source.words(count)


@given(
    calls=st.lists(
        st.tuples(st.sampled_from(["small", "large", "Laplace", "words"]), st.integers(0, 60)),
        min_size=1,
        max_size=20,
    ),
    splits=st.booleans(),
)
@example(calls=[("large", 1)] * 100, splits=True)
def test_draws_of_many_calls_are_those_of_each(calls: list[tuple[str, int]], splits: bool) -> None:
    """A replayed stream gives the integers that one gives whose words are drawn call by call.

    Also where a word decides nothing and takes more of them from the stream.
    """
    noises: dict[str, RoundedNoise] = {
        "small": RoundedGaussian(scale=1.5),
        "large": RoundedGaussian(scale=2.0**44),
        "Laplace": RoundedLaplace(scale=2.0**44),
    }

    def halved(law: object, cell: int, bits: int, scale: object) -> int | None:
        return None if bits == 64 and cell % 2 else cell % 1000

    with pytest.MonkeyPatch.context() as patch:
        if splits:
            patch.setattr(_quantile_table, "_rounded_quantile", halved)
        streams: list[Words] = [ReplayableWords(3, "calls"), Plain()]
        for name, count in calls:
            drawn = [
                rng.words(count) if name == "words" else noises[name].sample((count,), rng=rng)
                for rng in streams
            ]
            assert drawn[0].tolist() == drawn[1].tolist()
