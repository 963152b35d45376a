"""The Gaussian model of scores and its guard, against statsmodels and exact laws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import f, nct, norm
from statsmodels.stats.diagnostic import normal_ad

from dpverify.accounting.curves.gaussian import epsilon_gaussian
from dpverify.auditing.statistics.gaussian_model import _normality, gaussian_fit

DELTA = Fraction(1, 10**5)


def normal_scores(draws: int, *, mean: float = 0.0, bend: float = 1.0) -> Any:
    """Quantiles of a normal law, bent by a power."""
    z = norm.ppf((np.arange(draws) + 0.5) / draws)
    return mean + np.sign(z) * np.abs(z) ** bend


@pytest.mark.parametrize("bend", [0.6, 1, 1.2, 1.35, 1.5, 3])
def test_normality_is_judged_as_statsmodels_does(bend: float) -> None:
    scores = normal_scores(60, mean=3.0, bend=bend)[::-1]
    assert _normality(scores) == pytest.approx(normal_ad(scores)[1], rel=1e-9)


def test_scores_far_from_normal_have_no_p_value_to_speak_of() -> None:
    assert _normality(np.array([0.0] * 150 + [1.0] * 150)) < 1e-20


@pytest.mark.parametrize(("n", "m"), [(300, 800), (900, 250)])
@pytest.mark.parametrize("mean", [0.5, -3.0, 12.0])
def test_the_limit_has_the_spread_of_a_noncentral_t(n: int, m: int, mean: float) -> None:
    """μ̂/√(1/n + 1/m) has that law, whose spread scipy knows exactly."""
    own, other = normal_scores(n, mean=mean), normal_scores(m)
    fit = gaussian_fit(own, other, delta=DELTA, alpha=0.025)
    assert fit.mu == pytest.approx(abs(mean), rel=0.01)
    assert fit.mu is not None
    assert fit.mu_lower is not None
    unit = math.sqrt(1 / n + 1 / m)
    spread = unit * nct.std(n + m - 2, fit.mu / unit)
    assert fit.mu - fit.mu_lower == pytest.approx(-norm.ppf(0.025) * spread, rel=0.01)
    assert fit.epsilon_lower == epsilon_gaussian(DELTA, 1, sensitivity=fit.mu_lower).lower


@pytest.mark.parametrize("unit", [1e-6, 0.3, 250.0])
def test_the_fit_is_the_same_in_any_unit(unit: float) -> None:
    sides = normal_scores(90, mean=2.0), normal_scores(60)
    fit = gaussian_fit(*sides, delta=DELTA, alpha=0.05)
    scaled = gaussian_fit(*(unit * side + 7 * unit for side in sides), delta=DELTA, alpha=0.05)
    assert fit.mu == pytest.approx(2, rel=0.02)
    for name in ("p_value", "mu", "mu_lower", "epsilon_lower"):
        assert getattr(scaled, name) == pytest.approx(getattr(fit, name), rel=1e-6)


def test_sides_that_differ_in_nothing_show_nothing() -> None:
    fit = gaussian_fit(normal_scores(40), normal_scores(90), delta=DELTA, alpha=0.05)
    assert fit.p_value == 1
    assert fit.mu == pytest.approx(0, abs=1e-12)
    assert (fit.mu_lower, fit.epsilon_lower) == (0, 0)


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_the_guard_tests_the_variances(factor: float) -> None:
    own, other = factor * normal_scores(120), normal_scores(200)
    ratio = own.var(ddof=1) / other.var(ddof=1)
    law = f(119, 199)
    exact = 3 * 2 * min(law.cdf(ratio), law.sf(ratio))
    assert gaussian_fit(own, other, delta=DELTA, alpha=0.05).p_value == pytest.approx(exact)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("alpha", [0.001, 0.2])
@pytest.mark.parametrize("bend", [1.45, 1.55])
def test_the_guard_tests_either_side(swapped: bool, alpha: float, bend: float) -> None:
    """At 5 %, or at the level of the limit where that is larger."""
    bent = normal_scores(60, bend=bend)
    straight = bent.std() / normal_scores(60).std() * normal_scores(60)
    own, other = (straight, bent) if swapped else (bent, straight)
    fit = gaussian_fit(own, other, delta=DELTA, alpha=alpha)
    assert fit.p_value == pytest.approx(3 * normal_ad(bent)[1])
    assert (fit.mu is None) == (fit.p_value <= max(alpha, 0.05))


@pytest.mark.parametrize("odd", [math.inf, math.nan])
def test_what_is_no_normal_score_is_rejected(odd: float) -> None:
    scores = normal_scores(9)
    for strange in (np.append(scores, odd), np.ones(9)):
        for own, other in ((strange, scores), (scores, strange)):
            fit = gaussian_fit(own, other, delta=DELTA, alpha=0.05)
            assert (fit.p_value, fit.mu, fit.epsilon_lower) == (0, None, None)
