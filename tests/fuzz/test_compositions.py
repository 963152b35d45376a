"""Random small compositions at extreme ε and δ: an enclosure or a documented refusal, never else.

The truth is known where every loss has finitely many values: all sums of them, in mpmath.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from dpverify.accounting import epsilon_gaussian
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import Log, TransformedLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night, thinned

FAR_OUT = ("0", "1e-300", "1e-100", "1e-26", "1e-22", "1e-17", "1e-12", "1e-6", "0.01", "0.7")
DELTAS = (*map(Fraction, FAR_OUT), 1 - Fraction(1, 10**12))


def losses(
    rng: np.random.Generator, kinds: tuple[int, ...] = tuple(range(6))
) -> tuple[tuple[TransformedLoss, int], ...]:
    """One to four losses of any kind and size, up to three of each."""
    count = int(rng.integers(1, 5))
    return tuple((loss(rng, kinds), int(rng.integers(1, 4))) for _ in range(count))


def loss(rng: np.random.Generator, kinds: tuple[int, ...]) -> TransformedLoss:
    kind = kinds[int(rng.integers(0, len(kinds)))]
    size = Fraction(float(f"{10.0 ** rng.uniform(-3, 1.2):.4g}")).limit_denominator(10**6)
    size = max(size, Fraction(1, 10**6))
    share = Fraction(int(rng.integers(1, 11)), 10)
    leak = Fraction(0) if rng.random() < 0.7 else Fraction(1, 10 ** int(rng.integers(2, 40)))
    if kind == 0:
        return GaussianLoss(mu_squared=size)
    if kind == 1:
        return LaplaceLoss(shift=size)
    if kind == 2:
        return ResponseLoss(step=size, share=share, infinity_mass=leak)
    if kind == 3:
        return ResponseLoss(step=Log(1 + size), share=share, infinity_mass=leak)
    if kind == 4:
        p, q = (Fraction(int(rng.integers(1, 100)), 100) for _ in range(2))
        return FiniteLoss(pairs=((p, q), (1 - p, 1 - q)))
    return PositionLoss(differ=share, losses=((loss(rng, kinds[:-1]), 1),))


def atoms(loss: TransformedLoss) -> list[tuple[Any, Any]] | None:
    """Loss and weight of every finite atom; None where there are others."""

    def real(value: Fraction) -> Any:
        return mpmath.mpf(value.numerator) / value.denominator

    match loss:
        case ResponseLoss(step=step, share=share, infinity_mass=leak):
            assert isinstance(step, Fraction | Log)
            size = mpmath.log(real(step.argument)) if isinstance(step, Log) else real(step)
            other = real((1 - leak) * share) / (1 + mpmath.exp(size))
            idle = real((1 - leak) * (1 - share))
            return [(size, other * mpmath.exp(size)), (-size, other), (mpmath.mpf(0), idle)]
        case FiniteLoss(pairs=pairs):
            return [(mpmath.log(real(p / q)), real(p)) for p, q in pairs if p and q]
        case PositionLoss(differ=differ, losses=((inner, 1),)):
            below = atoms(inner)
            if below is None:
                return None
            d = real(differ)
            return [(mpmath.mpf(0), 1 - d), *((at, d * weight) for at, weight in below)]
    return None


def enumerated(
    found: tuple[tuple[TransformedLoss, int], ...],
) -> tuple[list[tuple[Any, Any]], Any] | None:
    """All atoms of the sum and the mass at infinity; None where they can't be counted."""
    total, kept = [(mpmath.mpf(0), mpmath.mpf(1))], Fraction(1)
    for part, count in found:
        own = atoms(part)
        if own is None or len(total) * len(own) ** count > 3000:
            return None
        kept *= (1 - part.infinity_mass) ** count
        for _ in range(count):
            total = [(a + b, v * w) for a, v in total for b, w in own]
    infinity_mass = 1 - kept
    return total, mpmath.mpf(infinity_mass.numerator) / infinity_mass.denominator


def check(found: tuple[tuple[TransformedLoss, int], ...], rng: np.random.Generator) -> None:
    curve = Composed(losses=found)
    roots = []
    for delta in DELTAS:
        root = curve.epsilon_at(delta)
        assert 0 <= root.lower <= root.upper
        roots.append(root)
    for (less, root), (more, after) in pairwise(zip(DELTAS, roots, strict=True)):
        assert after.lower <= root.upper, (less, more)
    epsilons = [Fraction(0)]
    epsilons += [Fraction(r.upper) for r in roots[1::2] if r.upper < math.inf]
    epsilons += [Fraction(float(rng.uniform(0, 1.1)) * float(max(epsilons)))]
    epsilons.sort()
    values = [curve.delta_at(epsilon) for epsilon in epsilons]
    for value, after in pairwise(values):
        assert 0 <= after.lower <= value.upper <= 1
    with mpmath.workdps(700):
        directions = [enumerated(found), enumerated(tuple((p.reverse(), n) for p, n in found))]
        if None in directions:
            return

        def truth(epsilon: Fraction) -> Any:
            at = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            return max(
                infinity_mass
                + mpmath.fsum(w * (1 - mpmath.exp(at - place)) for place, w in total if place > at)
                for total, infinity_mass in (d for d in directions if d is not None)
            )

        for epsilon, value in zip(epsilons, values, strict=True):
            exact = truth(epsilon)
            assert value.lower * (1 - mpmath.mpf("1e-600")) <= exact, epsilon
            assert exact <= value.upper * (1 + mpmath.mpf("1e-600")), epsilon
        for delta, root in zip(DELTAS, roots, strict=True):
            target = mpmath.mpf(delta.numerator) / delta.denominator
            if root.upper < math.inf:
                assert truth(Fraction(root.upper)) <= target + mpmath.mpf("1e-600")
            if 0 < root.lower < math.inf:
                assert truth(Fraction(math.nextafter(root.lower, 0))) >= target


@pytest.mark.parametrize("seed", thinned((5, *range(5), *range(6, 10)), 10))
def test_random_compositions_of_atoms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(losses(rng, (2, 3, 4)), rng)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_random_compositions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(losses(rng), rng)


LAPLACE, RESPONSE = LaplaceLoss(shift=Fraction(1)), ResponseLoss(step=Fraction(1))
COINS = [ResponseLoss(step=Log(Fraction(3 * n + 7, 2 * n + 5))) for n in range(15)]


@pytest.mark.parametrize("delta", day_and_night("1e-22", "1e-300"))
@pytest.mark.parametrize(
    "parts",
    [
        [LAPLACE, RESPONSE],
        COINS[:12],
        COINS,
        [LAPLACE, LaplaceLoss(shift=Fraction(2, 3)), RESPONSE, COINS[0]],
    ],
    ids=["one of each", "12 coins", "15 coins", "two of each"],
)
def test_few_losses_far_out(parts: list[TransformedLoss], delta: str) -> None:
    """Too few to be smoothed: their drops from the largest. The truth is all but at the end."""
    curve = Composed(losses=tuple((part, 1) for part in parts))
    most, found = curve.epsilon_at(0), curve.epsilon_at(Fraction(delta))
    assert found.lower <= most.upper
    assert found.upper <= most.upper
    assert found.upper - found.lower <= 1e-12
    near = curve.delta_at(Fraction(most.lower) - Fraction(1, 10**9))
    assert 0 < near.lower <= near.upper <= 1.01 * near.lower


@pytest.mark.nightly
@pytest.mark.parametrize("count", [300, 719, 999])
def test_a_lattice_that_is_finer_than_doubles(count: int) -> None:
    """Pure points 1/t have a common unit, one by the least common multiple."""
    parts = tuple((ResponseLoss(step=Fraction(1, t)), 1) for t in range(1, count + 1))
    found = Composed(losses=parts).epsilon_at(Fraction(1, 10**6))
    assert 3 < found.lower <= found.upper <= found.lower * (1 + 1e-6)


def test_a_gaussian_of_almost_no_noise() -> None:
    assert epsilon_gaussian(1e-6, 1e-150).upper == pytest.approx(5e299, rel=1e-15)


def test_numbers_are_read_when_a_loss_is_made() -> None:
    assert GaussianLoss(mu_squared=0.25) == GaussianLoss(mu_squared=Fraction(1, 4))
    for make, message in (
        (lambda: LaplaceLoss(shift="x"), "shift=x must be a finite real number"),
        (lambda: GaussianLoss(mu_squared=Fraction(10**400)), r"from 2\*\*-400 to 2\*\*400"),
        (lambda: Composed(losses=((LAPLACE, 2.5),)), "multiplicity=2.5"),  # type: ignore[arg-type]
        (lambda: Composed(losses=((LAPLACE, "3"),)), "multiplicity=3"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match=message):
            make()


def test_an_unbounded_loss_reaches_its_escape_nowhere() -> None:
    for other in (LAPLACE, GaussianLoss(mu_squared=Fraction(2))):
        parts = ((GaussianLoss(mu_squared=Fraction(1)), 1), (other, 1))
        assert Composed(losses=parts).epsilon_at(0).lower == math.inf
