"""Noise at the edges of doubles: a number of the promised width, or a refusal with the rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import pytest

from dpverify.accounting.curves.gaussian import Gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.accounting.curves.laplace import Laplace, scale_laplace_curve
from dpverify.accounting.targets import Target, check_target
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError

SIZES = [Fraction(10) ** n for n in (-9000, -400, -320, -150, -20, 0, 20, 150, 320, 400, 9000)]
DELTAS = [Fraction(10) ** n for n in (-9000, -400, -300, -6)]
DELTAS += [1 - Fraction(1, 10**n) for n in (12, 19)]
TARGETS = list(product(DELTAS, [Fraction(0), Fraction(10**5), *SIZES]))


def laplace_epsilon(delta: Fraction, scale: Fraction) -> Enclosure:
    return Laplace.of_row([1], scale=scale).epsilon_at(delta)


def gaussian_sigma(delta: Fraction, epsilon: Fraction) -> Enclosure:
    return sigma_gaussian(epsilon, delta)


def laplace_scale(delta: Fraction, epsilon: Fraction) -> Enclosure:
    return scale_laplace_curve(epsilon, delta, row=[1])


def answers(ask: Callable[..., Enclosure], cells: Sequence[tuple[Fraction, ...]]) -> Iterator[bool]:
    for cell in cells:
        try:
            found = ask(*cell)
        except ParameterError:
            yield False
        else:
            # δ is compared in doubles, which near 1 are coarse in 1 - δ.
            width = 1e-12 if cell[0] < Fraction(1, 2) else 1e-4
            assert 0 <= found.lower <= found.upper <= found.lower * (1 + width) + 1.1e-19
            yield True


@pytest.mark.parametrize("ask", [gaussian_sigma, laplace_scale])
def test_a_target_is_reached_or_refused(ask: Callable[..., Enclosure]) -> None:
    reached = [cell for cell, good in zip(TARGETS, answers(ask, TARGETS), strict=True) if good]
    inside = [(d, e) for d, e in TARGETS if e <= 10**100 and d in DELTAS[2:5]]
    assert reached == inside


@pytest.mark.parametrize(("ask", "first"), [(epsilon_gaussian, 2), (laplace_epsilon, 0)])
def test_a_noise_has_an_epsilon_or_is_refused(ask: Callable[..., Enclosure], first: int) -> None:
    cells = list(product(DELTAS, SIZES))
    reached = [cell for cell, good in zip(cells, answers(ask, cells), strict=True) if good]
    assert reached == [(d, s) for d, s in cells if d in DELTAS[first:5] and s >= SIZES[3]]


def test_refusals_name_what_was_given() -> None:
    for ask, message in (
        (lambda: epsilon_gaussian(Fraction(1, 10**6), SIZES[1]), "sigma=1e-400 must be at "),
        (lambda: laplace_epsilon(Fraction(1, 10**6), SIZES[1]), "scale=1e-400 must be at "),
        (lambda: Gaussian.from_mu_squared(SIZES[-1]), "mu_squared=1.000e.9000 must be at most "),
        (lambda: sigma_gaussian(SIZES[-1], DELTAS[3]), "epsilon=1.000e.9000 must be in "),
        (lambda: laplace_scale(DELTAS[-1], Fraction(1)), "delta=1 - 1e-19 must be 0, or in "),
        (lambda: scale_laplace_curve(1, DELTAS[3], row=[0]), "row=0 must be a nonzero move"),
    ):
        with pytest.raises(ParameterError, match=message):
            ask()


TINY = Fraction(1, 10**30)
HALF, MOST = Fraction(1, 2), 1 - Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("made", "inside", "beyond"),
    [
        (lambda x: check_target(x, HALF), Fraction(0), -TINY),
        (lambda x: check_target(x, HALF), Fraction(10**100), Fraction(10**100) + 1),
        (lambda x: check_target(HALF, x), Fraction(0), TINY / 10**271),
        (lambda x: check_target(HALF, x), TINY / 10**270, TINY / 10**271),
        (lambda x: check_target(HALF, x), MOST, MOST + TINY),
        (lambda x: Gaussian(sigma=x), Fraction(1, 2**500), Fraction(1, 2**500) * (1 - TINY)),
        (Gaussian.from_mu_squared, Fraction(2**1000), Fraction(2**1000) + 1),
        (lambda x: Laplace(scale=x), Fraction(1, 2**1000), Fraction(1, 2**1000) * (1 - TINY)),
        (lambda x: Target(advantage=x).point(), TINY, Fraction(0)),
        (lambda x: Target(advantage=x).point(), 1 - TINY, Fraction(1)),
        (lambda x: Target(success=x).point(), HALF + TINY, HALF),
        (lambda x: Target(success=x, prior="0.25").point(), 3 * HALF / 2 + TINY, 3 * HALF / 2),
        (lambda x: Target(success=x).point(), 1 - TINY, Fraction(1)),
        (lambda x: Target(success=1 - TINY, prior=x).point(), 2 * TINY, Fraction(0)),
    ],
)
def test_a_number_is_taken_up_to_its_limit(
    made: Callable[[Fraction], object], inside: Fraction, beyond: Fraction
) -> None:
    made(inside)
    with pytest.raises(ParameterError, match="must be"):
        made(beyond)


def test_the_point_of_a_success_is_that_of_the_best_guess() -> None:
    """A success of 0.85 where the prior is 1/4: ε = ln 3, of which the curve leaves δ = 0.4."""
    point = Target(success="0.85", prior="0.25").point()
    assert point is not None
    assert point[0] <= math.log(3) <= float(point[0]) + 1e-15
    assert Fraction(2, 5) * (1 - Fraction(1, 10**11)) <= point[1] < Fraction(2, 5)
    prior = 1 - Fraction(1, 10**9)  # next to 1 no more is kept back than doubles need
    rare = Target(success=(1 + prior) / 2, prior=prior).point()
    assert rare is not None
    assert HALF * (1 - Fraction(1, 10**6)) <= rare[1] < HALF
    half = Target(success="0.75").point()
    assert half is not None
    assert half[0] == 0
    assert HALF * (1 - Fraction(1, 10**11)) <= half[1] < HALF


@pytest.mark.parametrize("size", SIZES[3:-3])
def test_the_scale_is_as_narrow_for_small_and_large_sensitivities(size: Fraction) -> None:
    scale, unit = (scale_laplace_curve(1, Fraction(1, 10**6), row=[s]) for s in (size, 1))
    assert Fraction(scale.upper) <= size * Fraction(unit.upper) * (1 + Fraction(1, 10**15))
    assert scale.upper <= scale.lower * (1 + 1e-12)


def test_no_delta_is_above_one() -> None:
    assert Laplace.of_row([1], scale=Fraction(1, 10**200)).delta_at(1).upper == 1
