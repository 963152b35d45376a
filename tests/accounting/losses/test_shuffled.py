"""Shuffled answers' loss: places next to ties, and all atoms."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from dpverify.accounting.losses.shuffled import ShuffledLoss


def test_a_loss_of_the_least_size_is_certain() -> None:
    """A tie below 0: all tokens of kind 2."""
    loss = ShuffledLoss(epsilon=Fraction(1), users=5)
    with ctx.workprec(128):
        own, other = loss.tails(arb(-1))
        assert 1 - own < 1e-30
        assert 1 - other < 1e-30


def test_ties_in_places_that_are_known_badly_are_left_open() -> None:
    """A ball that holds a tie's place holds the tails without the tie, and with it."""
    loss = ShuffledLoss(epsilon=Fraction(1), users=6)
    with ctx.workprec(128):
        tie = arb(0).union(arb(2) ** -60)
        own, other = loss.tails(tie)
        for place in (arb(0), arb(2) ** -70):
            for found, exact in zip((own, other), loss.tails(place), strict=True):
                assert found.overlaps(exact)
                assert not found.is_exact()


@pytest.mark.parametrize("response", [False, True])
def test_atoms_are_those_of_all_tokens(response: bool) -> None:
    """Enumerated: n − 1 users' tokens, of two kinds, and that of the last one."""
    loss, users = ShuffledLoss(epsilon=Fraction(1), users=6, response=response), 6
    atoms = loss.atoms_in_doubles(-40.0)
    with mpmath.workdps(40):
        e = mpmath.exp(-1)
        rate = 2 * e / (1 + e) if response else e
        exact = []
        for tokens in range(1, users + 1):
            chance = mpmath.binomial(users - 1, tokens - 1) * rate ** (tokens - 1)
            chance *= (1 - rate) ** (users - tokens)
            for a in range(tokens + 1):
                one = mpmath.binomial(tokens - 1, a - 1) if a else mpmath.mpf(0)
                two = mpmath.binomial(tokens - 1, a)
                p, q = one + e * two, e * one + two
                weight = chance / mpmath.mpf(2) ** (tokens - 1) * p / (1 + e)
                exact.append((mpmath.log(p / q), weight))
        exact.sort()
        assert len(exact) == len(atoms.places)
        for epsilon in (-1.5, -0.5, 0.1, 0.6):
            own = sum(weight for place, weight in exact if place > epsilon)
            found = atoms.weights[atoms.places > epsilon].sum()
            assert abs(found / own - 1) <= atoms.relative + 1e-15
        for (place, _), found in zip(exact, atoms.places, strict=True):
            assert abs(place - found) <= atoms.shift
    assert atoms.outside < 1e-17
    assert atoms.shift < 1e-13


@pytest.mark.parametrize("log_rest", [-5.0, -40.0, -720.0])
def test_atoms_add_up_to_all_but_what_is_left_out(log_rest: float) -> None:
    """Also where most binomials are below all doubles."""
    atoms = ShuffledLoss(epsilon=Fraction(1, 2), users=3000).atoms_in_doubles(log_rest)
    missing = 1 - math.fsum(atoms.weights)
    assert -atoms.relative <= missing <= atoms.outside + atoms.relative
    assert atoms.outside < 1.1 * math.exp(log_rest) + 1e-303
    assert (np.diff(atoms.places) >= 0).all()
