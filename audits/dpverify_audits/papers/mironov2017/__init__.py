"""Ledger of Mironov 2017: Rényi differential privacy (arXiv:1702.07476v3)."""

from dpverify.ledger.statements import Statement

from . import composition, definitions, discussion, divergences, mechanisms

__all__ = ["CLAIMS"]

CLAIMS: tuple[Statement, ...] = (
    *definitions.CLAIMS,
    *composition.CLAIMS,
    *mechanisms.CLAIMS,
    *discussion.CLAIMS,
    *divergences.CLAIMS,
)
