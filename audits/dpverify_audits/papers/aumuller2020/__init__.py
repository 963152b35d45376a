"""Ledger of Aumüller, Bourgeat and Schmurr 2020: private sketches for Jaccard similarity."""

from dpverify.ledger.statements import Statement

from . import appendices, experiments, laplace, responses, setup, steps, table

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *setup.CLAIMS,
    *responses.CLAIMS,
    *laplace.CLAIMS,
    *steps.CLAIMS,
    *experiments.CLAIMS,
    *table.CLAIMS,
    *appendices.CLAIMS,
)
