"""Ledger of Kenthapadi, Korolova, Mironov and Mishra 2013: privacy by projection and noise."""

from dpverify.auditing.claims import Claim

from . import comparison, privacy, responses, tails, utility

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (
    *privacy.CLAIMS,
    *utility.CLAIMS,
    *comparison.CLAIMS,
    *responses.CLAIMS,
    *tails.CLAIMS,
)
