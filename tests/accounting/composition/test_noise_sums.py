"""Noise next to a few bounded discrete losses: a closed form for each of their sums."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import mpmath
import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._noise_sums import (
    has_gaussian_sums,
    has_laplace_sums,
    laplace_sums,
)
from dpverify.accounting.curves import _laplace_halves
from dpverify.accounting.curves._laplace_halves import LaplaceSums
from dpverify.accounting.losses.discrete import AtomicLoss
from dpverify.enclosure import Enclosure

MIXED = [
    (dpv.Laplace(scale=1), Fraction(1), Fraction(0)),
    (dpv.Laplace(scale=Fraction(5, 2)), Fraction(7, 10), Fraction(1, 1000)),
]


def by_quadrature(shift: Fraction, epsilon: Fraction, step: Fraction, leak: Fraction) -> mpmath.mpf:
    """One Laplace release and one point, from the densities of both outputs."""
    a, eps, s = (mpmath.mpf(x.numerator) / x.denominator for x in (shift, epsilon, step))
    told = mpmath.exp(s) / (1 + mpmath.exp(s))
    rest = 1 - mpmath.mpf(leak.numerator) / leak.denominator
    total = 1 - rest
    for own, other in ((told, 1 - told), (1 - told, told)):

        def gap(x: mpmath.mpf, own: mpmath.mpf = own, other: mpmath.mpf = other) -> mpmath.mpf:
            p, q = (mpmath.exp(-abs(y)) / 2 for y in (x, x - a))
            return max(own * p - mpmath.exp(eps) * other * q, 0)

        # The integrand has corners at 0, a, and where it becomes 0 between them.
        corner = (a - eps + mpmath.log(own / other)) / 2
        ends = sorted({mpmath.mpf(0), a, min(max(corner, mpmath.mpf(0)), a)})
        total += rest * mpmath.quad(gap, [-mpmath.inf, *ends, mpmath.inf])
    return total


@pytest.mark.parametrize(("noise", "step", "leak"), MIXED)
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 2), Fraction(1)])
def test_it_is_the_integral(
    noise: dpv.Laplace, step: Fraction, leak: Fraction, epsilon: Fraction
) -> None:
    total = noise + dpv.ApproxDP(epsilon=step, delta=leak)
    with mpmath.workdps(30):
        true = by_quadrature(noise.shifts[0][0], epsilon, step, leak)
        found = total.delta_at(epsilon)
        assert found.lower * (1 - 1e-15) <= true <= found.upper * (1 + 1e-15)
    assert found.width <= 1e-13


def test_below_zero_it_is_the_other_order() -> None:
    """f(t) = E[1 − e^{t − L}] far below, and the value at 0 from both sides."""
    shifts = ((Fraction(1, 2), 2),)
    f = LaplaceSums.of(shifts, []).value
    assert f(arb(-5)).overlaps(1 - arb(-5).exp())
    at = f(arb(0, 1e-20))
    assert at.overlaps(f(arb(0)))
    assert float(at.rad()) < 1e-15
    for t in range(1, 16):
        eps, curve = arb(t) / 10, dpv.Laplace.of_shifts(shifts)
        assert f(eps).overlaps(as_ball(curve.delta_at(Fraction(t, 10))))
        assert f(-eps).overlaps(1 - (-eps).exp() + (-eps).exp() * f(eps))
    assert f(arb(2)) == 0


def as_ball(found: Enclosure) -> arb:
    return arb(found.lower).union(arb(found.upper))


def test_sums_together_are_the_sums_apart() -> None:
    """In each half there is noise and an answer."""
    answers = [2 * dpv.ApproxDP(epsilon="0.7"), dpv.RandomizedResponse(keep="0.5", other="0.25")]
    noise = 2 * dpv.Laplace(scale=2) + dpv.Laplace(scale=3)
    total = noise + answers[0] + answers[1]
    with ctx.workprec(96):
        found, alone = laplace_sums(total.losses()), laplace_sums(noise.losses())
        atoms = [(arb(1), arb(0))]
        for answer in answers:
            ((loss, count),) = answer.losses()
            assert isinstance(loss, AtomicLoss)
            for _ in range(count):
                atoms = [(w * v, x + y) for w, x in atoms for v, y in loss.atoms()]
        for epsilon in (arb(-3), arb(0), arb(1) / 3, arb(2), arb(3.5)):
            apart = sum((w * alone.value(epsilon - place) for w, place in atoms), arb(0))
            together = found.value(epsilon)
            assert together.overlaps(apart)
            assert together.rad() < 1e-24
            # What is rounded by so much may have been lost.
            wide = replace(found, rounded=arb("0.1")).value(epsilon)
            assert wide.overlaps(together)
            assert wide.overlaps(found.value(epsilon - arb("0.2")))


@pytest.mark.parametrize("delta", ["1e-6", "1e-20", "1e-100"])
def test_tiny_deltas_are_no_harder(delta: str) -> None:
    """Near the largest sum, where a smoothing knew the first digits alone."""
    total = 10 * dpv.Laplace(scale=2) + 10 * dpv.ApproxDP(epsilon=1)
    found = total.epsilon_at(delta)
    assert found.width <= 1e-14
    assert total.delta_at(found.upper).lower <= float(delta)
    assert total.epsilon_at(0).upper == 15


def test_a_wrong_weight_is_noticed() -> None:
    """Planted: the atoms' weights of the reversed order."""
    ((loss, _),) = dpv.ApproxDP(epsilon=1).losses()
    assert isinstance(loss, AtomicLoss)
    (up, high), (down, low) = loss.atoms()
    right, swapped = (
        LaplaceSums.of(((Fraction(1), 1),), [atoms]).value(arb(1))
        for atoms in ([(up, high), (down, low)], [(up, low), (down, high)])
    )
    true = by_quadrature(Fraction(1), Fraction(1), Fraction(1), Fraction(0))
    assert math.isclose(float(right.mid()), true, rel_tol=1e-12)
    assert not math.isclose(float(swapped.mid()), true, rel_tol=1e-2)


def test_what_has_no_closed_form() -> None:
    answer = dpv.ApproxDP(epsilon=1)
    assert has_laplace_sums((dpv.Laplace(scale=1) + answer).losses())
    assert not has_laplace_sums((2 * answer).losses())
    assert not has_laplace_sums((dpv.Laplace(scale=1) + dpv.Gaussian(sigma=1)).losses())
    assert not has_laplace_sums((dpv.Laplace(scale=1) + 2 * 10**4 * answer).losses())
    distinct = dpv.Laplace.of_row(range(1, 31), scale=10)
    assert not has_laplace_sums((answer + distinct).losses())


@pytest.mark.parametrize(
    "epsilon", [*(pytest.param(x, marks=pytest.mark.nightly) for x in ("1e-3", "2", "30")), "44"]
)
def test_gaussian_noise_is_the_integral(epsilon: str) -> None:
    """By the densities of the noise, given what the two answers are."""
    keep, other, sigma, eps = (mpmath.mpf(x) for x in ("0.99", "1e-18", "25.7", epsilon))
    answer = dpv.RandomizedResponse(keep="0.99", other="1e-18")
    total = dpv.Gaussian(sigma="25.7") + 2 * answer
    with mpmath.workdps(40):
        chances = {1: keep, -1: other, 0: 1 - keep - other}
        places = {1: mpmath.log(keep / other), -1: mpmath.log(other / keep), 0: mpmath.mpf(0)}
        true = mpmath.mpf(0)
        for pair in product(chances, repeat=2):
            left = eps - sum(places[one] for one in pair)
            # The loss of an output x is (2x − 1)/2σ², and x is normal around 1.
            corner = max(left * sigma**2 + mpmath.mpf("0.5"), -30 * sigma)

            def gap(x: mpmath.mpf, left: mpmath.mpf = left) -> mpmath.mpf:
                ratio = mpmath.exp(left - (2 * x - 1) / (2 * sigma**2))
                return mpmath.npdf(x, 1, sigma) * (1 - ratio)

            ends = [corner, *(x for x in (-150, -50, 0, 50, 150) if x > corner)]
            ends.append(max(40 * sigma, corner + 40 * sigma))
            chance = mpmath.fprod(chances[one] for one in pair)
            true += chance * mpmath.quad(gap, ends)
        found = total.delta_at(epsilon)
        assert found.lower * (1 - 1e-13) <= true <= found.upper * (1 + 1e-13)
    assert found.width <= 1e-13


def test_where_delta_hardly_falls_epsilon_is_found() -> None:
    """Near δ(0), and on the steps below the largest losses."""
    answer = dpv.RandomizedResponse(keep="0.99", other=Fraction(1, 10**18))
    for total in (5 * answer, dpv.Gaussian(sigma="25.7207") + 5 * answer):
        most = total.delta_at(0)
        for delta in (math.nextafter(most.lower, 0), 0.999999):
            found = total.epsilon_at(delta)
            assert total.delta_at(found.upper).lower <= delta <= total.delta_at(found.lower).upper
            assert total.delta_at(0.99 * found.lower).lower >= delta
    assert has_gaussian_sums(total.losses())
    assert not has_gaussian_sums((total + dpv.Laplace(scale=1)).losses())


def test_many_equal_scales_are_inverted_where_series_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By both ways, where both are quick; digits grow with the terms of a series."""
    shifts = ((Fraction(1, 10), 300),)
    noise = 300 * dpv.Laplace(scale=10)
    assert _laplace_halves.has_halves(shifts)
    by_halves = noise.epsilon_at("1e-6")
    monkeypatch.setattr(_laplace_halves, "_MOST_WORK", 1000)
    inverted = noise.epsilon_at("1e-6")
    assert inverted.lower <= by_halves.upper
    assert by_halves.lower <= inverted.upper
    assert max(inverted.width, by_halves.width) < 1e-12
    monkeypatch.undo()
    assert not _laplace_halves.has_halves(((Fraction(1, 10), 1000),))
    assert (1000 * dpv.Laplace(scale=10)).epsilon_at("1e-6").width < 1e-12
