"""Laws on a lattice of very many atoms: around the tails' own, and around what is enumerated."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._cells import Law
from dpverify.accounting.composition._many_atoms import ManyAtoms
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import PrivacyLoss
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.sampled import SampledLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.accounting.losses.shuffled import ShuffledLoss

F = Fraction
LOSSES = [
    ShuffledLoss(epsilon=F(1), users=2),
    ShuffledLoss(epsilon=F(2), users=9, response=True),
    ShuffledLoss(epsilon=F(1, 2), users=300),
    ShuffledLoss(epsilon=F(12), users=40),
]


def excess(law: Law, unit: float, epsilon: float) -> float:
    """Σ w(1 − e^{ε − x})₊ of the finite places."""
    return float(law.weights @ np.maximum(-np.expm1(epsilon - law.places * unit), 0))


@pytest.mark.parametrize("unit", [2.0**-3, 2.0**-9, 2.0**-20, 8.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_law_dominates_and_one_is_dominated(loss: ShuffledLoss, unit: float) -> None:
    """By the sums of balls, which share nothing with the atoms."""
    atoms, most = ManyAtoms.of(loss, -40.0), float(loss.epsilon)
    assert atoms.reach == pytest.approx(most)
    for tilt in (1.0, 200.0):
        above, below = atoms.above(unit), atoms.below(unit, tilt)
        for share in (-0.9, -0.01, 0.0, 1e-3, 0.02, 0.1, 0.4, 0.77, 0.999):
            epsilon = share * most
            with ctx.workprec(128):
                own, other = loss.tails(arb(epsilon))
                exact = float(own - arb(epsilon).exp() * other)
            high = excess(above, unit, epsilon) + above.infinite
            low = excess(below, unit, epsilon)
            assert low <= exact * (1 + 1e-12)
            assert exact <= high * (1 + 1e-12)
            assert high - low < 2 * unit


def test_many_atoms_are_off_by_less_than_they_are_moved() -> None:
    """Windows merge onto the lattice; atoms that only move down are off by half a unit."""
    loss, unit = LOSSES[2], 2.0**-12
    atoms = ManyAtoms.of(loss, -40.0)
    above, below = atoms.above(unit), atoms.below(unit)
    for epsilon in (0.0, 0.03, 0.07):
        own = float(atoms.atoms.weights[atoms.atoms.places > epsilon].sum())
        assert excess(above, unit, epsilon) - excess(below, unit, epsilon) < 0.06 * unit * own


@pytest.mark.parametrize("times", [2, 3])
def test_releases_are_around_all_their_outcomes(times: int) -> None:
    """Every outcome of so many polls of four users, in mpmath."""
    users, answer = 4, dpv.ApproxDP(epsilon=1)
    curve = times * answer.shuffled(users=users)
    with mpmath.workdps(40):
        e = mpmath.exp(-mpmath.mpf(answer.epsilon_at(0).upper))
        outcomes = []
        for tokens in range(1, users + 1):
            chance = mpmath.binomial(users - 1, tokens - 1) * e ** (tokens - 1)
            chance *= (1 - e) ** (users - tokens) / 2 ** (tokens - 1) / (1 + e)
            for a in range(tokens + 1):
                one = mpmath.binomial(tokens - 1, a - 1) if a else mpmath.mpf(0)
                two = mpmath.binomial(tokens - 1, a)
                outcomes.append((chance * (one + e * two), chance * (e * one + two)))
        for epsilon in ("0.25", "1.5"):
            factor, exact = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
            for several in itertools.product(outcomes, repeat=times):
                p, q = (mpmath.fprod(side) for side in zip(*several, strict=True))
                exact += max(p - factor * q, 0)
            found = curve.delta_at(epsilon)
            assert found.lower <= exact <= found.upper
            assert found.width < 1e-3 * exact


@pytest.mark.parametrize(("times", "users", "delta"), [(10, 50, "1e-250"), (2, 300, "1e-100")])
def test_next_to_the_largest_loss_its_own_mass_tells(times: int, users: int, delta: str) -> None:
    """A lattice, which resolves nothing there, had 0 as its lower end."""
    answer = dpv.ApproxDP(epsilon=2 if users == 300 else "0.5")
    found = (times * answer.shuffled(users=users)).epsilon_at(delta)
    largest = times * answer.epsilon_at(0).upper
    assert largest * (1 - 1e-9) < found.lower <= largest <= found.upper < largest * (1 + 1e-15)


def test_delta_next_to_the_largest_loss_is_known_from_below() -> None:
    """It had 0 as its lower end, or a value three quarters as large: enumerated."""
    losses = ((ShuffledLoss(epsilon=F(3, 2), users=2), 2),)
    share, largest = F(1, 10**10), F(3)
    with ctx.workprec(128):
        e = (-arb(3) / 2).exp()
        top = ((1 - e / 2) / (1 + e)) ** 2  # one token of the first kind, or both, in both releases
        exact = float(-top * (-arb(3) / 10**10).expm1())
    found = Composed(losses=losses).delta_at(largest * (1 - share))
    assert exact * (1 - 1e-4) < found.lower <= exact * (1 + 1e-12)
    assert exact < found.upper


SHUFFLED = ShuffledLoss(epsilon=F(1), users=20)
SAMPLED = SampledLoss(base=DiscreteGaussianLoss(sigma_squared=F(4), sensitivity=1), rate=F(1, 10))


@pytest.mark.parametrize(
    ("other", "times", "delta", "most", "width"),
    [
        (GaussianLoss(mu_squared=F(1, 9)), 1, "1e-60", 6.36, 1e-5),
        (SAMPLED, 3, "1e-300", 26.3, 1e-4),
        (BoundedRangeLoss(epsilon=F(1)), 1, "1e-60", 2, 1e-9),
        (BoundedRangeLoss(epsilon=F(1, 3)), 3, "1e-30", 2, 1e-5),
    ],
    ids=str,
)
def test_sums_with_other_losses_have_narrow_epsilons(
    other: PrivacyLoss, times: int, delta: str, most: float, width: float
) -> None:
    """Their lower ends were 0 or that of one part, and the upper one of a sample infinite."""
    found = Composed(losses=((other, times), (SHUFFLED, 1))).epsilon_at(delta)
    assert found.upper <= most * (1 + 1e-12)
    assert found.width < width


@pytest.mark.parametrize("delta", ["1e-6", "1e-300"])
def test_losses_known_by_moments_alone_cost_at_most_their_largest(delta: str) -> None:
    """They failed an assertion."""
    coin = ResponseLoss(step=F(1))
    shared = PositionLoss(differ=F(1, 2), losses=((coin, 1),))
    found = Composed(losses=((shared, 1), (SHUFFLED, 1))).epsilon_at(delta)
    assert found.upper <= 2
