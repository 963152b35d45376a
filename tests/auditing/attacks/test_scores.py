"""Features of outputs, and the scores that are learned from them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.auditing.attacks._scores import Score, learned
from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.outputs.features import features


def scores(own: NDArray[np.float64], other: NDArray[np.float64]) -> dict[str, Score]:
    """By the first word of their events."""
    names = [f"output[{column}]" for column in range(own.shape[1])]
    return {score.event(0.0, above=True): score for score in learned(own, other, names)}


def test_numbers() -> None:
    outputs = np.arange(24).reshape(4, 1, 2, 3)
    found = features(outputs)
    assert found.names[:2] == ("output[0, 0]", "output[0, 1]")
    assert np.array_equal(found.matrix(outputs), np.arange(24.0).reshape(4, 6))
    assert features(np.zeros(4)).names == ("output",)
    assert features(np.zeros((4, 2, 1))).names == ("output[0, 0]", "output[1, 0]")


@pytest.mark.parametrize("shape", [(), (1,), (1, 2)])
def test_bytes_are_bits_unless_they_are_numbers(shape: tuple[int, ...]) -> None:
    outputs = np.full((3, *shape), 0b1000_0010, dtype=np.uint8)
    found = features(outputs)
    count = int(np.prod(shape))
    assert found.matrix(outputs).tolist() == [[1, 0, 0, 0, 0, 0, 1, 0] * count] * 3
    assert len(found.names) == 8 * count
    assert found.names[6].startswith("bit[")
    assert features(outputs, unpack=False).matrix(outputs).tolist() == [[130.0] * count] * 3


def test_sets() -> None:
    outputs = np.empty(3, dtype=object)
    outputs[:] = [frozenset("ab"), frozenset("b"), frozenset()]
    found = features(outputs)
    assert found.names == ("contains 'b'", "contains 'a'", "size of the set")
    assert found.matrix(outputs).tolist() == [[1, 1, 2], [1, 0, 1], [0, 0, 0]]
    outputs[0] = frozenset("xyz")
    assert found.matrix(outputs)[0].tolist() == [0, 0, 3]


def test_every_score_looks_at_each_output_alone() -> None:
    rng = np.random.default_rng(1)
    own, other = rng.normal(size=(2, 300, 5))
    own[:, 2] += 1
    fresh = rng.normal(size=(7001, 5))
    for score in scores(own, other).values():
        whole = score(fresh)
        parts = np.concatenate([score(fresh[:1]), score(fresh[1:6000]), score(fresh[6000:])])
        assert np.array_equal(whole, parts)
        assert whole.shape == (7001,)


def test_events_say_what_is_counted() -> None:
    rng = np.random.default_rng(2)
    # Whole numbers, so that many lie on the edges of bins.
    own, other = np.round(4 * rng.laplace(size=(2, 2000, 1)))
    own += 4
    fresh = np.round(8 * rng.laplace(size=(500, 1)))
    histogram = next(s for s in learned(own, other, ["x"]) if " in " in s.event(0.1, above=True))
    for above in (True, False):
        words = histogram.event(0.1, above=above)
        values = histogram(fresh)
        inside = values >= 0.1 if above else values <= 0.1
        ends = [tuple(map(float, e)) for e in re.findall(r"\[([^,]+), ([^)]+)\)", words)]
        assert ends
        said = np.any([(fresh[:, 0] >= a) & (fresh[:, 0] < b) for a, b in ends], axis=0)
        assert np.array_equal(said, inside)
        assert 0 < inside.sum() < 500


def separation(
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    own: NDArray[np.float64],
    other: NDArray[np.float64],
) -> float:
    """Largest difference of the two distribution functions."""
    first, second = np.sort(score(own)), np.sort(score(other))
    values = np.concatenate([first, second])
    gap = np.searchsorted(first, values, "right") / len(first)
    return float(np.abs(gap - np.searchsorted(second, values, "right") / len(second)).max())


def test_the_telling_column_is_among_many() -> None:
    rng = np.random.default_rng(3)
    own, other = rng.normal(size=(2, 1000, 200))
    own[:, 121] += 0.5
    names = [
        score.event(0.0, above=True) for score in learned(own, other, list(map(str, range(200))))
    ]
    assert names[0] == "121 ≥ 0"


def test_the_linear_score_sums_up_small_shifts() -> None:
    rng = np.random.default_rng(4)
    shift = np.array([[[0.2]], [[0.0]]])
    own, other = rng.normal(size=(2, 2000, 50)) + shift
    tests = rng.normal(size=(2, 2000, 50)) + shift
    found = scores(own, other)
    assert separation(found.pop("linear score ≥ 0"), *tests) > 0.4
    single = [score for words, score in found.items() if words.startswith("output")]
    assert single
    assert all(separation(score, *tests) < 0.2 for score in single)


def test_log_odds_of_bits_are_found() -> None:
    rng = np.random.default_rng(8)
    rates = np.linspace(0.1, 0.9, 6)
    own, other = (rng.random((4000, 6)) < r for r in (rates, rates[::-1] / 2 + 0.25))
    score = scores(own.astype(float), other.astype(float))["additive score ≥ 0"]
    outcomes = np.unpackbits(np.arange(64, dtype=np.uint8)[:, None], axis=1)[:, 2:].astype(float)
    odds = np.log(rates / (1 - rates))
    truth = outcomes @ (odds + np.log(1 / (0.75 - rates / 2) - 1))
    assert np.std(score(outcomes) - truth) < 0.15 * np.std(truth)


def test_flags_are_no_numbers() -> None:
    rng = np.random.default_rng(9)
    # The flag comes more often on one side, other values are larger: they tell opposite things.
    own, other = (
        np.where(rng.random((4000, 2)) < rate, -1000.0, rng.normal(shift, 1, (4000, 2)))
        for rate, shift in ((0.6, 1.0), (0.4, 0.0))
    )
    found = scores(own[:2000], other[:2000])
    gaps = [
        separation(found[f"{name} score ≥ 0"], own[2000:], other[2000:])
        for name in ("additive", "shared", "linear")
    ]
    assert min(gaps[:2]) > gaps[2] + 0.1


@pytest.mark.parametrize("sign", [1, -1], ids=["flags below", "flags above"])
def test_answers_next_to_flags_have_events_of_their_own(sign: int) -> None:
    rng = np.random.default_rng(10)
    flags = rng.choice([-1000.0, -2000.0], (2, 8000, 1))
    answers = rng.uniform(0, 10, flags.shape)
    answers[0, ::2] /= 10  # smaller answers tell more than larger ones
    own, other = sign * np.where(rng.random(flags.shape) < 0.9, flags, answers)
    choice = choose(own[:4000], other[:4000])
    assert "and isn't" in choice.event
    threshold = choice.threshold
    for outputs in (own[4000:], other[4000:]):
        said = (np.abs(outputs) < 100) & (sign * outputs <= sign * threshold)
        assert choice.hits(outputs) == said.sum()


def test_flags_are_named_where_they_are_inside() -> None:
    values = np.where(np.arange(1000) % 2, -1000.0, np.arange(1000))[:, None]
    told = {
        score.event(threshold, above=above)
        for score in learned(values, values, ["x"])
        for threshold, above in ((math.inf, True), (7.0, True), (7.0, False))
    }
    assert {"x is -1000", "x ≥ 7, or is -1000", "x ≤ 7, and isn't -1000"} <= told


def test_sums_are_taken_apart_and_what_is_alike_is_learned_from_all() -> None:
    rng = np.random.default_rng(10)
    noise = rng.laplace(size=(2, 6000, 12)) + np.array([[[0.1]], [[0.0]]])
    own, other = noise.cumsum(axis=2)
    found = scores(own[:2000], other[:2000])
    gaps = {
        name: separation(found[f"{name} score ≥ 0"], own[2000:], other[2000:])
        for name in ("additive", "shared", "linear")
    }
    best = separation(lambda x: np.sign(np.diff(x, prepend=0) - 0.05).sum(axis=1), own, other)
    assert gaps["linear"] < gaps["additive"] < gaps["shared"]
    assert gaps["shared"] > 0.9 * best


def test_a_change_of_scale_shows() -> None:
    rng = np.random.default_rng(5)
    own, other = rng.normal(size=(2, 2000, 20)) * np.array([[[1.2]], [[1.0]]])
    found = scores(own, other)
    # 2Φ(ln 1.2/√(2/20)) − 1 = 0.44, nearly.
    assert separation(found["root mean square ≥ 0"], own, other) > 0.38
    assert separation(found["linear score ≥ 0"], own, other) < 0.2


def test_trees_see_what_no_line_does() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(6)
    own, other = rng.normal(size=(2, 4000, 3))
    # Equal signs on one side, opposite ones on the other.
    own[:, 1] = np.abs(own[:, 1]) * np.sign(own[:, 0])
    other[:, 1] = -np.abs(other[:, 1]) * np.sign(other[:, 0])
    found = scores(own[:2000], other[:2000])
    assert separation(found["tree score ≥ 0"], own[2000:], other[2000:]) > 0.9
    assert separation(found["linear score ≥ 0"], own[2000:], other[2000:]) < 0.2


def test_no_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    rng = np.random.default_rng(7)
    found = scores(*rng.normal(size=(2, 100, 3)))
    assert "linear score ≥ 0" in found
    assert "tree score ≥ 0" not in found


def test_constant_columns_are_no_trouble() -> None:
    own, other = np.zeros((40, 3)), np.zeros((40, 3))
    own[:, 1] = other[:, 1] = 7.0
    for score in scores(own, other).values():
        assert np.all(np.isfinite(score(own)))


def test_infinities_are_outputs_too() -> None:
    outputs = np.zeros((80, 2))
    outputs[:40:2, 0], outputs[1::2, 1] = np.inf, -np.inf
    matrix = features(outputs).matrix(outputs)
    own, other = matrix[:40], matrix[40:]
    found = scores(own, other)
    assert separation(found["output[0] ≥ 0"], own, other) == 0.5
    assert not any(np.any(np.isnan(score(own))) for score in found.values())


@pytest.mark.parametrize("leak", [slice(8_000, 12_000), slice(35_000, 40_000)])
def test_no_draw_is_too_late_to_be_learned_from(leak: slice) -> None:
    """Neither where scores are fitted, the first half of the draws, nor where they are compared."""
    rng = np.random.default_rng(4)
    own, other = rng.integers(2, size=(2, 40_000, 2)).astype(float)
    own[leak, 1] = own[leak, 0]
    half = slice(0, 20_000) if leak.stop <= 20_000 else slice(20_000, 40_000)
    matrix = learned(own[half], other[half], ("a", "b"))[-1]
    gap = matrix(np.array([[0.0, 0.0], [1.0, 1.0]])) - matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert np.all(gap > 0.1)
