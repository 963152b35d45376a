"""The best bettor: valid, better than any other bet, on the laws of the techniques."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import laplace

from benchmarks.best_bettor import best, log_ratios, mean_law, nearest
from benchmarks.published import EPSILON, Sparse
from benchmarks.sequential import mean
from tests.helpers.profiles import day_and_night

P, Q = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.4, 0.5])
SIDES = (np.array([0.0, 1.0]), np.array([1.0, 0.0]))


def divergence(law: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.sum(law * np.log(law / other)))


def test_the_nearest_pair_is_that_of_a_general_optimiser() -> None:
    one, other = nearest(P, Q, 1.0)
    assert one.sum() == pytest.approx(1)
    assert other.sum() == pytest.approx(1)
    assert np.max(np.abs(np.log(one / other))) <= 1 + 1e-9
    third = np.eye(3)
    sums = np.repeat(np.eye(2), 3, axis=1)
    kept = np.vstack([np.hstack([third, -math.e * third]), np.hstack([-math.e * third, third])])

    def far(x: NDArray[np.float64]) -> float:
        return divergence(P, x[:3]) + divergence(Q, x[3:])

    found = minimize(
        far,
        np.full(6, 1 / 3),
        bounds=[(1e-9, 1)] * 6,
        constraints=[LinearConstraint(sums, 1, 1), LinearConstraint(kept, ub=0)],
        method="SLSQP",
    )
    assert np.allclose(found.x, np.concatenate([one, other]), atol=1e-4)


def test_its_bet_wins_nothing_where_the_claim_is_true() -> None:
    one, other = nearest(P, Q, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        true = rng.dirichlet(np.ones(3))
        neighbour = true * np.exp(rng.uniform(-0.5, 0.5, 3))
        neighbour /= neighbour.sum()  # within e of each other
        assert true @ (P / one) * (neighbour @ (Q / other)) <= 1 + 1e-9


@pytest.mark.parametrize("numeric", [False, True])
def test_ratios_are_those_of_the_integral(numeric: bool) -> None:
    technique = Sparse(scales=(0.1, 0.1), numeric=numeric)
    scale = 0.1 / 0.5 / EPSILON

    def probability(answers: NDArray[np.float64], output: tuple[float, ...]) -> float:
        def given(bar: float) -> float:
            value = float(laplace.pdf(bar - 1, scale=scale))
            for answer, told in zip(answers, output, strict=True):
                if told in (-1, -2000):
                    continue
                if told in (0, -1000):
                    value *= laplace.cdf(bar - answer, scale=scale)
                elif numeric:
                    value *= laplace.pdf(told - answer, scale=scale) * (bar <= told)
                else:
                    value *= laplace.sf(bar - answer, scale=scale)
            return value

        ends = max((told for told in output if told > -1), default=0) if numeric else 60
        return float(quad(given, -60, ends, points=[0, 1] if ends > 1 else [0], limit=200)[0])

    outputs = (
        [(-1000.0, 0.5), (2.5, -2000.0), (-1000.0, 2.0)] if numeric else [(0.0, 1.0), (1.0, -1.0)]
    )
    told = log_ratios(technique, SIDES, np.array(outputs))
    exact = [
        math.log(probability(SIDES[0], output) / probability(SIDES[1], output))
        for output in outputs
    ]
    assert told.tolist() == pytest.approx(exact, abs=5e-3)


@pytest.mark.nightly
def test_the_median_is_that_of_an_enumeration() -> None:
    """A noisy threshold alone: with one answer of 0 and one of 1 there are three outputs."""
    technique = Sparse(scales=(0.1, 0), most=None)
    both, one_only = (
        float(laplace.sf(1, scale=2)),
        float(laplace.sf(0, scale=2) - laplace.sf(1, scale=2)),
    )
    p, q = np.array([both, one_only, 1e-300, 0.5]), np.array([both, 1e-300, one_only, 0.5])
    first, second = nearest(p, q, 1.0)
    growth = divergence(p, first) + divergence(q, second)
    median, least = best(technique, SIDES, epsilon=1.0, alpha=0.05)
    assert median == pytest.approx(math.log(20) / growth, rel=0.15)
    assert least == pytest.approx(-math.log(4 * 0.05 * 0.95) / 2 / growth, rel=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize("noise", day_and_night("normal", "laplace"))
def test_the_law_of_a_mean_is_that_of_its_outputs(noise: str) -> None:
    rng, rows = np.random.default_rng(0), np.array([0.0, 1.0])
    drawn = np.array([mean(rows, rng, noise=noise, epsilon=0.1, noisy=True) for _ in range(4_000)])
    law = mean_law(rows, 0.1, noise=noise)
    assert law.sum() == pytest.approx(1)
    ends = np.sinh(np.linspace(-9, 9, 1_201)) + 0.25
    sure = law[:-1].cumsum()[[550, 600, 650]]  # up to these ends
    share = (drawn[:, None] <= ends[[550, 600, 650]]).mean(axis=0)
    # Where the count isn't positive there is noise without an end, half of it on each side.
    assert share == pytest.approx(sure + law[-1] / 2, abs=4 * 0.5 / math.sqrt(4_000))
