"""Ledger of Kenthapadi, Korolova, Mironov and Mishra 2013: privacy by projection and noise."""

from dpverify.ledger.statements import Statement

from . import (
    comparison,
    crossover,
    definitions,
    privacy,
    projections,
    responses,
    steps,
    tails,
    utility,
)

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *definitions.CLAIMS,
    *projections.CLAIMS,
    *privacy.CLAIMS,
    *utility.CLAIMS,
    *comparison.CLAIMS,
    *responses.CLAIMS,
    *crossover.CLAIMS,
    *steps.CLAIMS,
    *tails.CLAIMS,
)
