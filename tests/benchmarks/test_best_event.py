"""The best event: laws that are those of the draws, and a limit as the delta method has it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import best_event
from benchmarks.best_event import best, laws
from benchmarks.published import ROWS, Row


def named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


@pytest.mark.parametrize("name", ["TruncatedGeometric", "ReportNoisyMax1", "ReportNoisyMax2"])
def test_laws_of_places_are_those_of_the_draws(name: str) -> None:
    row, n = named(name), 20_000
    rng = np.random.default_rng(0)
    for side, law in zip(row.sides, laws(row), strict=True):
        drawn = np.bincount(row.many(side, n, rng).astype(int), minlength=law.size) / n
        assert np.max(np.abs(drawn - law)) <= 5 * 0.5 / np.sqrt(n)


@pytest.mark.parametrize("name", ["SVT1", "SVT4", "Rappor", "OneTimeRappor"])
def test_listed_laws_keep_the_true_epsilon(name: str) -> None:
    row = named(name)
    p, q = laws(row)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    assert np.max(np.abs(np.log(p / q))) <= row.epsilon * (1 + 1e-3)


@pytest.mark.parametrize("name", ["LaplaceMechanism", "NoisyHist1", "PrefixSum", "LaplaceParallel"])
def test_drawn_laws_add_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios of wrong sign or scale would move the sums away from 1."""
    monkeypatch.setattr(best_event, "_OUTPUTS", 5_000)
    row = named(name)
    p, q = laws(row)
    assert np.max(np.abs(np.log(p / q))) <= row.epsilon * (1 + 1e-9) or name == "PrefixSum"
    # Half of the outputs are the record's: they have more of its law than the others.
    own, other = np.split(p - q, 2)
    assert own.sum() == pytest.approx(-other.sum(), abs=0.1)
    assert own.sum() > 0 > other.sum()


def test_the_limit_of_laplace_noise() -> None:
    """Half of the outputs, at ε = 0.1: by the delta method 0.1 less 1.28 standard errors."""
    error = np.sqrt(1 + (1 - 0.5 * np.exp(-0.1)) / (0.5 * np.exp(-0.1))) / 1_000
    assert best(named("LaplaceMechanism"), 10**6, 0.1) == pytest.approx(
        0.1 - 1.2816 * error, abs=3e-4
    )


@pytest.mark.parametrize("threshold", [2.5, 3.0, 5.0])
def test_rare_events_of_a_maximum_are_by_its_law(threshold: float) -> None:
    """Of a million draws 22, 52 and 530 on one side, 2, 8 and 196 on the other: too few to draw."""
    p, q = laws(named("ReportNoisyMax4"))
    p, q = p[p + q > 0], q[p + q > 0]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(q) - np.log(p))
    hits, false_hits = ((1 - np.exp(-(threshold - answer) / 20)) ** 5 for answer in (0, 1))
    summed = np.cumsum(q[order]), np.cumsum(p[order])
    assert np.interp(false_hits, *summed) == pytest.approx(hits, rel=0.01)
