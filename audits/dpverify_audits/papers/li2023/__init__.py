"""Ledger of Li and Li 2023: differentially private random projections and sign projections."""

from dpverify.ledger.statements import Statement

from . import (
    bivariate,
    definitions,
    experiments,
    gaussian_signs,
    individual,
    inner_products,
    noise,
    projections,
    sign_flips,
    sign_privacy,
    smooth_flips,
)

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *definitions.CLAIMS,
    *noise.CLAIMS,
    *projections.CLAIMS,
    *inner_products.CLAIMS,
    *gaussian_signs.CLAIMS,
    *sign_flips.CLAIMS,
    *sign_privacy.CLAIMS,
    *smooth_flips.CLAIMS,
    *individual.CLAIMS,
    *bivariate.CLAIMS,
    *experiments.CLAIMS,
)
