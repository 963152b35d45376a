"""Ledger of Stausholm 2021: improved differentially private Euclidean distance approximation."""

from dpverify.ledger.statements import Claim

from . import comparison, fast, noisy_input, privacy, sparse, technical

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (
    *privacy.CLAIMS,
    *technical.CLAIMS,
    *fast.CLAIMS,
    *noisy_input.CLAIMS,
    *sparse.CLAIMS,
    *comparison.CLAIMS,
)
