"""Ledger of Li and Li 2023: differentially private random projections and sign projections."""

from dpverify.auditing.claims import Claim

from . import definitions, gaussian_signs, inner_products, noise, sign_flips

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = (
    *definitions.CLAIMS,
    *noise.CLAIMS,
    *inner_products.CLAIMS,
    *gaussian_signs.CLAIMS,
    *sign_flips.CLAIMS,
)
