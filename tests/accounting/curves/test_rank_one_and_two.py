"""Curves of secret normal rows against mpmath's integrals of densities, and known limits."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2 as chi_squared
from scipy.stats import norm as normal

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal, replaced_row_gamma
from dpverify.errors import ParameterError
from dpverify_check import dpverify_check as second
from tests.helpers.profiles import crossed, day_and_night

CASES = [(1, Fraction(1, 2)), (3, Fraction(1, 10)), (8, Fraction(2)), (40, Fraction(1, 20))]
EPSILONS = [Fraction(0), Fraction(1, 10), Fraction(1)]


def chi2(x: mp.mpf, rows: int) -> mp.mpf:
    half = mp.mpf(rows) / 2
    return x ** (half - 1) * mp.exp(-x / 2) / (2**half * mp.gamma(half))


def one(rows: int, gamma: Fraction, epsilon: Fraction) -> tuple[mp.mpf, mp.mpf]:
    """∫ (p − e^ε q)₊ over the sum of squares, in both directions."""
    g, odds = mp.mpf(gamma.numerator) / gamma.denominator, mp.exp(mp.mpf(float(epsilon)))

    def wide(x: mp.mpf) -> mp.mpf:
        return chi2(x / (1 + g), rows) / (1 + g)

    def narrow(x: mp.mpf) -> mp.mpf:
        return chi2(x, rows)

    def crossing(sign: int) -> mp.mpf:
        return 2 * (1 + g) / g * (sign * mp.mpf(float(epsilon)) + mp.mpf(rows) / 2 * mp.log(1 + g))

    top = rows * (1 + g) * 4 + 400
    up = crossing(1)
    wider = mp.quad(lambda x: wide(x) - odds * narrow(x), mp.linspace(up, up + top, 12))
    down = crossing(-1)
    if down <= 0:
        return wider, mp.mpf(0)
    narrower = mp.quad(lambda x: narrow(x) - odds * wide(x), mp.linspace(0, down, 12))
    return wider, narrower


@pytest.mark.parametrize(("case", "epsilon"), crossed(CASES, EPSILONS))
def test_delta_of_rank_one_by_integration(case: tuple[int, Fraction], epsilon: Fraction) -> None:
    rows, gamma = case
    # 1/10 as a double, so that both sides have the same ε.
    eps = Fraction(float(epsilon))
    value = RankOneNormal(rows=rows, gamma=gamma).delta_at(eps)
    assert value.width < 1e-13
    with mp.workdps(25):
        wider, narrower = one(rows, gamma, epsilon)
        assert mp.almosteq(value.upper, max(wider, narrower), rel_eps=1e-9, abs_eps=0)
        if epsilon > 0:  # only one direction: a planted bug that this oracle sees
            assert min(wider, narrower) < 0.999 * mp.mpf(value.lower)


@pytest.mark.parametrize("noise", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("threshold", [-2.5, -0.2, 0.1, 1.5])
def test_rates_of_rank_one_by_the_laws_of_both_orders(threshold: float, noise: float) -> None:
    """Where the densities have that ratio, and how often the real noise is beyond."""
    rows, gamma = 5, 0.75
    wide, narrow = chi_squared(rows, scale=1 + gamma), chi_squared(rows)
    own, other = chi_squared(rows, scale=noise + gamma), chi_squared(rows, scale=noise)

    def place(loss: float) -> float:
        found = brentq(lambda x: wide.logpdf(x) - narrow.logpdf(x) - loss, 1e-12, 200, xtol=1e-14)
        return float(found)

    least = wide.logpdf(1e-12) - narrow.logpdf(1e-12)
    up = place(threshold) if threshold > least else 0.0
    down = place(-threshold) if -threshold > least else 0.0
    orders = (own.sf(up), other.sf(up)), (other.cdf(down), own.cdf(down))
    larger = max(orders, key=lambda order: order[0] - np.exp(threshold) * order[1])
    curve = RankOneNormal(rows=rows, gamma=Fraction(gamma))
    assert curve.rates(threshold, noise=noise) == pytest.approx(larger, rel=1e-9)


@pytest.mark.parametrize("noise", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("gamma", [Fraction(1, 10**6), Fraction(1, 3), Fraction(9)])
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_rates_of_rank_one_at_0_are_of_the_wider_law(
    rows: int, gamma: Fraction, noise: float
) -> None:
    """Where both orders are as good and round-off is not to choose, in both checkers."""
    rates = RankOneNormal(rows=rows, gamma=gamma).rates(0, noise=noise)
    place = (1 + float(gamma)) / float(gamma) * rows * np.log1p(float(gamma))
    assert rates[1] == pytest.approx(chi_squared(rows, scale=noise).sf(place), rel=1e-9)
    assert second.NormalRowsCurve(rows, gamma).rates(0.0, noise) == pytest.approx(rates, rel=1e-9)


@pytest.mark.parametrize("noise", [1.0, 0.5, 3.0])
def test_rates_of_rank_two_by_draws(noise: float) -> None:
    """One row's loss is a difference of squares of normal numbers: by a grid of their quantiles."""
    gamma = Fraction(3, 4)
    squares = normal.ppf((np.arange(400) + 0.5) / 400) ** 2
    shear = float(gamma) / float(1 + gamma) ** 0.5 / noise
    ratio = 1 + shear**2 / 2 + shear * (1 + shear**2 / 4) ** 0.5  # of the variances, on one axis
    # Between both laws the variances are √ratio and 1/√ratio, and the other way round.
    weight = float(gamma) / float(1 + gamma) ** 0.5 / 2
    sides = [
        weight * (up * squares[:, None] - squares[None, :] / up) for up in (ratio**0.5, ratio**-0.5)
    ]
    for threshold in (-1.0, 0.5):
        rates = RankTwoNormal(rows=1, gamma=gamma).rates(threshold, noise=noise)
        counted = [float((side >= threshold).mean()) for side in sides]
        assert rates == pytest.approx(counted, abs=6e-3)


@pytest.mark.parametrize(("rows", "gamma"), day_and_night((4, Fraction(1, 2)), (9, Fraction(1, 5))))
@pytest.mark.parametrize("epsilon", day_and_night(Fraction(1, 2), Fraction(0)))
def test_delta_of_rank_two_by_integration(rows: int, gamma: Fraction, epsilon: Fraction) -> None:
    """E over X₂ of the tail in X₁, by one numerical integral."""
    value = RankTwoNormal(rows=rows, gamma=gamma).delta_at(epsilon)
    assert value.width < 1e-9
    with mp.workdps(20):
        g, e = mp.mpf(gamma.numerator) / gamma.denominator, mp.mpf(float(epsilon))
        half = mp.mpf(rows) / 2

        def tail(x: mp.mpf) -> mp.mpf:
            return mp.gammainc(half, x / 2, mp.inf, regularized=True)

        def inside(y: mp.mpf) -> mp.mpf:
            s = 2 / g * (e + y / 2 * g / (1 + g))
            # E[(1 − e^(ε − L))₊] in X₁: the exponential tilts χ² to a scaled one.
            tilt = mp.exp(e + y / 2 * g / (1 + g)) * (1 + g) ** -half
            return chi2(y, rows) * (tail(s) - tilt * tail(s * (1 + g)))

        truth = mp.quad(inside, mp.linspace(0, 60 + 8 * rows, 30))
        assert mp.almosteq(value.upper, truth, rel_eps=1e-8, abs_eps=0)


@pytest.mark.parametrize(
    ("rows", "gamma", "epsilon"),
    [
        (4, Fraction(10), Fraction(100)),
        (4, Fraction(10**6), Fraction(0)),
        (8, Fraction(1, 100), Fraction(1)),
        (8, Fraction(141), Fraction(10**5)),
        (12, Fraction(1, 10**6), Fraction(1, 10**9)),
        (2, Fraction(1, 10**12), Fraction(1)),
    ],
)
def test_rank_two_by_its_residue(rows: int, gamma: Fraction, epsilon: Fraction) -> None:
    """Of an even number of rows, the only pole to the right of the line gives δ in closed form."""
    value = RankTwoNormal(rows=rows, gamma=gamma).delta_at(epsilon)
    with mp.workdps(60):
        g, e = (mp.mpf(x.numerator) / x.denominator for x in (gamma, epsilon))
        order = rows // 2

        def rest(t: mp.mpf) -> mp.mpf:
            s = (1 + t) / g
            return (1 + g / (1 + g) * s) ** -order * mp.exp(-t / g * e) / (s * (s + 1))

        truth = (-1) ** (order - 1) / g * mp.exp(-e / g) * mp.taylor(rest, 0, order - 1)[-1]
        assert value.lower <= truth <= value.upper
        assert value.width <= 1e-14 or value.upper == 5e-324


def test_many_rows_are_the_gaussian_mechanism() -> None:
    """γ√(r/2) = μ, and γ√r = μ for rank two, in the limit of many rows."""
    rows = 10**6
    gaussian = Gaussian.from_mu_squared(Fraction(1, 4)).delta_at(1).upper
    one_side = RankOneNormal(rows=rows, gamma=Fraction(1, 2 * 707)).delta_at(1).upper
    two_sides = RankTwoNormal(rows=rows, gamma=Fraction(1, 2000)).delta_at(1).upper
    assert one_side == pytest.approx(gaussian, rel=0.02)
    assert two_sides == pytest.approx(gaussian, rel=0.02)


@pytest.mark.parametrize("floor", day_and_night(Fraction(3), Fraction(1, 4), Fraction(50)))
def test_gamma_of_a_replaced_row_by_search(floor: Fraction) -> None:
    """Against the largest (w² + z′²)/(w² + z²) with |z′ − z| ≤ ρ and both at most R, on a grid."""
    for moved, norm in ((1, 2), (1, 3), (3, 2), (5, 6), (1, 100)):
        gamma = float(replaced_row_gamma(floor=floor, moved=Fraction(moved), norm=Fraction(norm)))
        best = max(
            (float(floor) + top**2) / (float(floor) + max(top - float(moved), 0) ** 2) - 1
            for top in (float(norm) * k / 20_000 for k in range(20_001))
        )
        assert best <= gamma * (1 + 1e-12)
        assert best == pytest.approx(gamma, rel=1e-3)


@pytest.mark.parametrize("kind", [RankOneNormal, RankTwoNormal])
@pytest.mark.parametrize("delta", [5e-324, Fraction(1, 10**400), 1 - Fraction(1, 10**16)])
def test_a_delta_beyond_all_targets_is_refused(
    kind: type[RankOneNormal | RankTwoNormal], delta: float | Fraction
) -> None:
    rule = r"must be 0, or in \[1e-300, 1 - 1e-15\]"
    with pytest.raises(ParameterError, match=rule):
        kind(rows=3, gamma=Fraction(1, 10)).epsilon_at(delta)
    with pytest.raises(ParameterError, match=rule):
        kind.max_gamma(3, epsilon=1, delta=delta)


@pytest.mark.parametrize("gamma", [Fraction(1, 1000), Fraction(1, 2), Fraction(50)])
def test_rates_of_rank_two_in_closed_form(gamma: Fraction) -> None:
    """Of one row at 0 by the ratio of two normal laws, of two rows by exponential ones."""
    g = float(gamma)
    rates = RankTwoNormal(rows=1, gamma=gamma).rates(0)
    slopes = np.sqrt([1 + g, 1 / (1 + g)])
    assert rates == pytest.approx((2 / np.pi * np.arctan(slopes)).tolist(), rel=1e-12)
    for threshold in (0.0, 0.3 * g, 4 * g):
        rates = RankTwoNormal(rows=2, gamma=gamma).rates(threshold)
        laws = [(1 + g) / (2 + g) * np.exp(-threshold / g), 1 / (2 + g)]
        laws[1] *= np.exp(-threshold * (1 + g) / g)
        assert rates == pytest.approx(laws, rel=1e-12)
