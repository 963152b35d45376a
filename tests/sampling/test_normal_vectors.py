"""Rounded normal vectors: their law, at levels of 1e-6 a test, and the bounds that decide."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from dpverify.errors import NumericalError
from dpverify.sampling import normal_vectors
from dpverify.sampling.normal_vectors import RoundedNormals
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords

LEVEL = 1e-6
MATRIX = np.array([[5, 3], [3, 4]], dtype=np.int64)
SCALE = Fraction(1, 2)
LEAST = Fraction(7, 10)  # the smallest eigenvalue is (9 − √37)/4 = 0.729…
DRAWS = 20_000


def probabilities(covariance: np.ndarray, reach: int) -> np.ndarray:
    """Of every rounded point in [−reach, reach]², by scipy's bivariate distribution function."""
    edges = np.arange(-reach - 0.5, reach + 1)
    law = multivariate_normal(mean=[0, 0], cov=covariance)
    cdf = np.array([[law.cdf([x, y]) for y in edges] for x in edges])
    return np.diff(np.diff(cdf, axis=0), axis=1)


def p_value(drawn: np.ndarray, expected: np.ndarray, reach: int) -> float:
    counts = np.zeros_like(expected)
    inside = np.abs(drawn).max(axis=1) <= reach
    np.add.at(counts, tuple((drawn[inside] + reach).T), 1)
    large = expected * len(drawn) >= 10
    observed = np.append(counts[large], len(drawn) - counts[large].sum())
    means = np.append(expected[large], 1 - expected[large].sum()) * len(drawn)
    return float(chi2.sf(((observed - means) ** 2 / means).sum(), len(means) - 1))


def coarse_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of width 1/16, with which most coordinates are undecided and need more digits."""
    monkeypatch.setattr(normal_vectors, "_CELL_BITS", 4)
    monkeypatch.setattr(normal_vectors, "_CELLS", RoundedGaussian(scale=16.0))


@pytest.mark.parametrize("coarse", [False, True])
def test_draws_have_the_law_of_rounded_normals(
    coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[int] = []
    settle = normal_vectors._settle

    def counted(*arguments: Any) -> list[int]:
        settled.append(1)
        return settle(*arguments)

    monkeypatch.setattr(normal_vectors, "_settle", counted)
    if coarse:
        coarse_cells(monkeypatch)
    drawn = RoundedNormals(MATRIX, scale=SCALE, least=LEAST).sample(DRAWS, rng=ReplayableWords(5))
    assert (len(settled) > DRAWS / 20) == coarse
    expected = probabilities(MATRIX * 0.5, 6)
    assert p_value(drawn, expected, 6) > LEVEL
    control = probabilities(MATRIX * 0.5 + [[0, 0.2], [0.2, 0]], 6)
    assert p_value(drawn, control, 6) < LEVEL


def test_cells_without_digits_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the centre of the cell is published, so that y has a lattice law."""
    coarse_cells(monkeypatch)
    monkeypatch.setattr(
        normal_vectors,
        "_settle",
        lambda cells, open_ones, key, rng: [
            round(float(normal_vectors._factor(*key, 0).doubles[i] @ np.array(cells)) / 16)
            for i in open_ones
        ],
    )
    fine = Fraction(400)  # sixteen cells a step become many steps a cell
    normals = RoundedNormals(MATRIX, scale=SCALE * fine, least=LEAST * fine)
    drawn = normals.sample(2000, rng=ReplayableWords(5))
    first = float(np.sqrt(2.5) * 20 / 16)  # one cell of the first coordinate, in steps
    off = np.abs(drawn[:, 0] - first * np.rint(drawn[:, 0] / first))
    assert off.max() <= 0.5  # a lattice, that the real law does not keep to:
    monkeypatch.undo()
    coarse_cells(monkeypatch)
    drawn = normals.sample(2000, rng=ReplayableWords(5))
    off = np.abs(drawn[:, 0] - first * np.rint(drawn[:, 0] / first))
    assert off.max() > 0.8


@pytest.mark.parametrize("bits", [2, 4, 40])
def test_chords_are_within_their_bound(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The balls of the quantiles lie in what is said of the chords, and twice that isn't needed."""
    monkeypatch.setattr(normal_vectors, "_CELL_BITS", bits)
    rng = ReplayableWords(3, "places")
    cells = [0, 1, -1, 3 << bits, *RoundedGaussian(scale=2.0**bits).sample((12,), rng=rng).tolist()]
    places = rng.words(len(cells)).tolist()
    places[:3] = [0, 2**64 - 1, 2**63]
    loosest = 0.0
    for cell, place in zip(cells, places, strict=True):
        (rough, (one,)), (close, (other,)) = (
            (radius, centres)
            for centres, radius in normal_vectors._points([cell], [place], 64, bits + 72)
        )
        assert abs(one - other) + close <= rough
        loosest = max(loosest, abs(one - other) / rough)
    assert loosest > 0.5


@pytest.mark.parametrize(
    ("row", "centres", "radius", "error", "ends"),
    [
        ([3], [10], 0, 0.0, (30, 30)),
        ([1], [10], 10, 0.5, (-10, 30)),  # (1 + 1/2)·(10 + 10) is the farthest
        ([2], [-4], 1, 0.25, (-13, -3)),  # 2·(1/4·(4 + 1) + 1) = 4.5 to either side of −8
        ([3, 4], [1, 1], 1, 0.0, (0, 14)),  # 7 ± 5·√2
        ([3, 4], [1], 0, 0.4, (1, 5)),  # 3 ± 5·0.4, of what is known of the first alone
    ],
)
def test_both_ends_of_a_coordinate_hold_all_that_it_may_be(
    row: list[int], centres: list[int], radius: int, error: float, ends: tuple[int, int]
) -> None:
    """By how far a row times the known numbers may be off: in ℓ by `error`, in g by `radius`."""
    factor = normal_vectors._Factor(
        integers=[row],
        bits=0,
        doubles=np.array([row], dtype=float),
        norms=np.array([np.hypot.reduce(row)]),
        residual=np.zeros((1, 1)),
        error=error,
    )
    assert normal_vectors._ends(factor, 0, centres, radius, 0) == ends


def test_same_vectors_on_a_finer_grid() -> None:
    """The cells come first from the stream: a finer grid rounds the same real vectors."""
    n = 30
    rng = np.random.default_rng(2)
    x = rng.integers(-50, 50, (60, n))
    matrix = (x.T @ x + 400 * np.eye(n)).astype(np.int64)
    draws = [
        RoundedNormals(matrix, scale=Fraction(4) ** k, least=400 * Fraction(4) ** k).sample(
            200, rng=ReplayableWords(9)
        )
        for k in (0, 4, 36)  # at the last one every coordinate is undecided
    ]
    assert np.abs(draws[1] / 2.0**4 - draws[0]).max() <= 0.5 + 2.0**-5
    assert np.abs(draws[2] / 2.0**36 - draws[0]).max() <= 0.5 + 2.0**-20


def test_level_of_the_factor_improves_and_is_proven() -> None:
    key = MATRIX.tobytes(), 2, SCALE, LEAST
    errors = [normal_vectors._factor(*key, level).error for level in range(3)]
    assert errors[0] < 1e-14
    assert errors[1] < 1e-24
    assert errors[2] < 1e-36
    exact = normal_vectors._factor(*key, 2)
    # By hand: L = √½·[[√5, 0], [3/√5, √(11/5)]].
    assert Fraction(exact.integers[0][0], 1 << exact.bits) ** 2 == pytest.approx(Fraction(5, 2))
    assert Fraction(exact.integers[1][1], 1 << exact.bits) ** 2 == pytest.approx(Fraction(11, 10))


def test_nearly_singular_is_refused() -> None:
    matrix = np.array([[2**55, 2**55 - 1], [2**55 - 1, 2**55]], dtype=np.int64)
    with pytest.raises(NumericalError):
        RoundedNormals(matrix, scale=Fraction(1), least=Fraction(1))
