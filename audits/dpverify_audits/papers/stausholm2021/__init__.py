"""Ledger of Stausholm 2021: improved differentially private Euclidean distance approximation."""

from dpverify.ledger.statements import Statement

from . import comparison, fast, noisy_input, privacy, sparse, technical

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *privacy.CLAIMS,
    *technical.CLAIMS,
    *fast.CLAIMS,
    *noisy_input.CLAIMS,
    *sparse.CLAIMS,
    *comparison.CLAIMS,
)
