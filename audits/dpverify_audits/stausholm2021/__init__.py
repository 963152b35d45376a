"""Ledger of Stausholm 2021: improved differentially private Euclidean distance approximation."""

from dpverify.auditing.claims import Claim

from . import sparse, technical

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (*technical.CLAIMS, *sparse.CLAIMS)
