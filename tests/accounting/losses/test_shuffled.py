"""Shuffled answers' loss where places are next to ties."""

from __future__ import annotations

from fractions import Fraction

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
