"""Ledger of Mishra and Chandra 2025: slides on the Johnson-Lindenstrauss transform and privacy."""

from dpverify.ledger.statements import Statement

from . import comparisons, covariances, cuts, distances, graphs, noise, rows, summaries

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *noise.CLAIMS,
    *distances.CLAIMS,
    *comparisons.CLAIMS,
    *graphs.CLAIMS,
    *cuts.CLAIMS,
    *covariances.CLAIMS,
    *rows.CLAIMS,
    *summaries.CLAIMS,
)
