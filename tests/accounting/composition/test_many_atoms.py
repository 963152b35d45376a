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
