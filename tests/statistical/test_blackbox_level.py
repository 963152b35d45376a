"""Level of the black-box audit and of the band on true nulls, with controls that break it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binom

from dpverify.auditing.attacks import trade_off
from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.outputs.values import Value, objects, value_of
from tests.helpers.profiles import day_and_night

ALPHA = 0.05
FALSE_ALARM = 1e-4  # of each test here, for audits that keep their level exactly
RUNS, FEW = 1000, 150
DRAWS = 60


def laplace(
    rng: np.random.Generator, shift: float, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides of a Laplace mechanism whose ε is the shift."""
    record, neighbour = rng.laplace(size=(2, draws, 1))
    return record, neighbour + shift


def errors(runs: int, epsilon: float, *, fresh: bool, seed: int) -> int:
    """Lower bounds above the true ε."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(runs):
        training = laplace(rng, epsilon, DRAWS)
        counted = laplace(rng, epsilon, DRAWS) if fresh else training
        outcome = choose(*training).count(*counted)
        wrong += outcome.epsilon_lower(delta=0.0, alpha=ALPHA) > epsilon
    return wrong


def told(noisy: float) -> Any:
    """A function of a noisy number, of several types."""
    if noisy < -1:
        return Value.of_raised(ValueError(f"only {round(noisy)}"))
    if noisy > 2:
        return value_of(None)
    return value_of({"n": round(noisy, 1), "each": ["x"] * round(2 * noisy + 2)})


@pytest.mark.parametrize("runs", day_and_night(10, RUNS))
def test_level_of_outputs_of_any_kind(runs: int) -> None:
    """Keys, lengths, texts and messages are learned from training draws alone."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(runs):
        training, counted = (
            [objects([told(noisy) for noisy in side.ravel().tolist()]) for side in sides]
            for sides in (laplace(rng, 1.0, DRAWS), laplace(rng, 1.0, DRAWS))
        )
        outcome = choose(*training, classifiers=runs > 20).count(*counted)
        wrong += outcome.epsilon_lower(delta=0.0, alpha=ALPHA) > 1.0
    assert wrong <= allowed(runs)


def allowed(runs: int) -> float:
    return float(binom.ppf(1 - FALSE_ALARM, runs, ALPHA))


@pytest.mark.parametrize(("epsilon", "runs"), day_and_night((0.0, FEW), (0.0, RUNS), (1.0, RUNS)))
def test_true_claims_are_seldom_accused(epsilon: float, runs: int) -> None:
    assert errors(runs, epsilon, fresh=True, seed=1) <= allowed(runs)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_level_on_ten_thousand_runs(epsilon: float) -> None:
    assert errors(10 * RUNS, epsilon, fresh=True, seed=2) <= allowed(10 * RUNS)


@pytest.mark.nightly
@pytest.mark.parametrize("runs", day_and_night(FEW, RUNS))
def test_a_score_chosen_on_the_counted_draws_breaks_the_level(runs: int) -> None:
    assert errors(runs, 0.0, fresh=False, seed=3) > allowed(runs)


def outside(levels: NDArray[Any], ranks: NDArray[np.int64], runs: int) -> int:
    """Runs in which a limit of one of both sides is wrong, of uniform scores."""
    draws = np.sort(np.random.default_rng(4).random((runs, 2, DRAWS)), axis=2)[:, :, ranks - 1]
    wrong = (draws < levels) | (draws > 1 - levels[::-1])
    return int(np.count_nonzero(wrong.any(axis=(1, 2))))


def test_level_of_the_band() -> None:
    ranks, levels = map(np.array, trade_off._levels(DRAWS, ALPHA))
    wrong = outside(levels, ranks, 10 * RUNS)
    assert binom.ppf(FALSE_ALARM, 10 * RUNS, 0.99 * ALPHA) <= wrong <= allowed(10 * RUNS)


def test_limits_that_hold_one_by_one_do_not_hold_together() -> None:
    ranks = np.array(trade_off._levels(DRAWS, ALPHA)[0])
    levels = betaincinv(ranks, DRAWS - ranks + 1, ALPHA / 4)
    assert outside(levels, ranks, 10 * RUNS) > allowed(10 * RUNS)


def curve_errors(runs: int) -> int:
    """Bands above the true curve somewhere, of five outputs with losses −1 to 1: many ties."""
    rng = np.random.default_rng(5)
    weights = np.exp([0.0, 0.25, 0.5, 0.75, 1.0])
    law = weights / weights.sum()
    deltas = {
        eps: float(np.maximum(law - np.exp(eps) * law[::-1], 0).sum())
        for eps in np.linspace(0.0, 1.0, 9).tolist()
    }
    wrong = 0
    for _ in range(runs):
        own = rng.choice(5, size=200, p=law).astype(float)
        other = rng.choice(5, size=200, p=law[::-1]).astype(float)
        found = trade_off.band(own, other, alpha=ALPHA)
        wrong += any(found.delta_lower(eps) > delta for eps, delta in deltas.items())
    return wrong


@pytest.mark.parametrize("runs", day_and_night(FEW, RUNS))
def test_level_on_the_curve(runs: int) -> None:
    assert curve_errors(runs) <= allowed(runs)


@pytest.mark.parametrize("runs", day_and_night(FEW, RUNS))
def test_a_band_without_width_breaks_the_level(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    correct = trade_off._levels

    def medians(n: int, alpha: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
        ranks = np.array(correct(n, alpha)[0])
        return tuple(ranks.tolist()), tuple(betaincinv(ranks, n - ranks + 1, 0.5).tolist())

    monkeypatch.setattr(trade_off, "_levels", medians)
    assert curve_errors(runs) > allowed(runs)
