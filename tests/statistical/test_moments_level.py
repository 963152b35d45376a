"""Size and power of the moment checks, early stops included, on laws with heavy tails.

The quick profile has a tenth of the nightly one's runs. A false verdict's rate is held under its
level by an exact upper bound that a true rate at the level misses with probability 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.auditing.statistics.clopper_pearson import judge_at_least, judge_at_most
from dpverify.estimation.moments import Margin, MomentFinding, check_draws
from tests.helpers.profiles import day_and_night, sampled

ALPHA = 0.05
SLACK = Fraction(3, 2)
"""The level is asymptotic: at a first look of 500 draws it may be off by a half."""
FAR_OFF = Fraction(9, 10)
CONFIRMED = "confirmed_within_margin"


class Law(NamedTuple):
    """A law by its sampler, mean and variance."""

    sample: Callable[[np.random.Generator, int], NDArray[np.float64]]
    mean: float
    variance: float


LAWS = {
    "normal": Law(lambda rng, n: rng.normal(size=n), 0.0, 1.0),
    "laplace": Law(lambda rng, n: rng.laplace(size=n), 0.0, 2.0),
    "chi-square of 8": Law(lambda rng, n: rng.chisquare(8, size=n), 8.0, 16.0),
    "chi-square of 1": Law(lambda rng, n: rng.chisquare(1, size=n), 1.0, 2.0),
    "laplace times normal": Law(lambda rng, n: rng.laplace(size=n) * rng.normal(size=n), 0.0, 2.0),
}
profiles = pytest.mark.parametrize("runs", day_and_night(200, 2000))
laws = pytest.mark.parametrize("name", sampled(LAWS, ("normal", "laplace", "chi-square of 8")))


def check(law: Law, seed: int, **options: Any) -> MomentFinding:
    rng = np.random.default_rng(seed)
    said = {"truth": law.mean, "expectation": law.mean, "variance": law.variance}
    return check_draws(
        lambda _, count: law.sample(rng, count),
        **{"alpha": ALPHA, "first": 500, "draws": 8000, **said, **options},
    )


@profiles
@laws
def test_right_formulas_are_refuted_as_seldom_as_the_level_says(name: str, runs: int) -> None:
    found = [check(LAWS[name], seed) for seed in range(runs)]
    false = sum("refuted" in (f.unbiased, f.mean, f.variance) for f in found)
    assert judge_at_most(false, runs, SLACK * Fraction(ALPHA), 1e-4) != "refuted", false
    # and the check isn't idle: light tails are known before the last look
    if name == "normal":
        done = sum((f.mean, f.variance) == (CONFIRMED, CONFIRMED) for f in found)
        assert judge_at_least(done, runs, FAR_OFF, 1e-4) != "refuted"
        assert np.mean([f.draws for f in found]) < 4000


@profiles
@laws
def test_formulas_at_the_margin_are_confirmed_as_seldom(name: str, runs: int) -> None:
    """Both are wrong by the margin itself, the worst case of the equivalence tests."""
    law, margin = LAWS[name], Margin(mean=0.3, variance=0.5)
    predicted = law.variance / (1 + margin.variance)
    said = {
        "expectation": law.mean - margin.mean * predicted**0.5,
        "variance": predicted,
    }
    found = [check(law, seed, margin=margin, **said) for seed in range(runs)]
    false = sum(CONFIRMED in (f.mean, f.variance) for f in found)
    assert judge_at_most(false, runs, SLACK * Fraction(ALPHA), 1e-4) != "refuted", false


@profiles
@laws
def test_formulas_that_are_far_off_are_refuted(name: str, runs: int) -> None:
    law = LAWS[name]
    deviation = law.variance**0.5
    shifted = [check(law, seed, expectation=law.mean + deviation / 4) for seed in range(runs)]
    caught = sum(f.mean == "refuted" for f in shifted)
    assert judge_at_least(caught, runs, FAR_OFF, 1e-4) == "confirmed", caught
    doubled = [check(law, seed, variance=2 * law.variance) for seed in range(runs)]
    caught = sum(f.variance == "refuted" for f in doubled)
    assert judge_at_least(caught, runs, FAR_OFF, 1e-4) == "confirmed", caught
