"""Where to integrate: stationary points, sizes, and lines whose aliases are small."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.composition._saddle import MOST_NODES, MOST_WORK, Transform
from dpverify.accounting.losses.continuous import GaussianLoss, NormalRowsLoss

F = Fraction
NORMAL = ((GaussianLoss(mu_squared=F(1, 4)), 12),)  # of mean and variance 3/2 and 3
ROWS = ((NormalRowsLoss(rows=40, gammas=(F(1, 4), F(-1, 5))), 1),)


@pytest.mark.parametrize("epsilon", [0.0, 1.5, 9.0, 200.0])
def test_the_saddle_is_a_stationary_point(epsilon: float) -> None:
    """Of ln M(c) − cε − ln c(c + 1), whose slope is 3(c + ½) − ε − 1/c − 1/(c + 1)."""
    transform = Transform.of(NORMAL)
    c = transform.saddle(lambda c, m: m - c * epsilon - np.log(c) - np.log1p(c))
    slopes = [3 * (x + 0.5) - epsilon - 1 / x - 1 / (x + 1) for x in (0.99 * c, 1.01 * c)]
    assert slopes[0] < 0 < slopes[1]


@pytest.mark.parametrize("epsilon", [1.5, 5.0, 12.0])
def test_the_size_is_about_that_of_delta(epsilon: float) -> None:
    transform, curve = Transform.of(NORMAL), 12 * dpv.Gaussian(sigma=2)
    c = transform.saddle(lambda c, m: m - c * epsilon - np.log(c) - np.log1p(c))
    exact = math.log(curve.delta_at(epsilon).upper)
    assert transform.log_size(c, epsilon) == pytest.approx(exact, abs=0.12)


@pytest.mark.parametrize("effort", [20.0, 36.0])
@pytest.mark.parametrize("losses", [NORMAL, ROWS], ids=["normal", "rows"])
def test_a_line_makes_both_aliases_small_with_the_least_period(
    losses: tuple[tuple[GaussianLoss | NormalRowsLoss, int], ...], effort: float
) -> None:
    """e^{−cT} on the left, and M(b)e^{−bε − (b − c)T} on the right, are e^−effort of f."""
    transform, epsilon = Transform.of(losses), 4.0
    c = transform.saddle(lambda c, m: m - c * epsilon - np.log(c) - np.log1p(c))
    size = transform.log_size(c, epsilon)
    line = transform.plan(c, epsilon, size, effort)
    moment, far = (float(transform.log(np.array([x]))[0]) for x in (c, line.b))
    left = -c * line.period
    right = far - line.b * epsilon - (line.b - c) * line.period
    assert line.c == c < line.b < transform.top
    assert left <= size - effort + 1e-9
    assert right <= size - effort + 1e-9
    assert max(left, right) >= size - effort - 0.5 or c * line.period == pytest.approx(4)
    # What is left out at a node, over T, is a ten-thousandth of what all may be off by.
    assert line.threshold + moment - c * epsilon - math.log(line.period) == pytest.approx(
        size - effort - math.log(1e4)
    )
    assert (line.most_nodes, line.most_work) == (MOST_NODES, MOST_WORK)
