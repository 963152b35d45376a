"""Contexts of decimals that say everything.

What a `Context` isn't told it takes from ``decimal.DefaultContext``, which a process may have
changed for all of its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    DecimalException,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)

__all__ = ["context"]

_FARTHEST = 999_999


def context(
    digits: int = 28,
    rounding: str = ROUND_HALF_EVEN,
    *,
    traps: Sequence[type[DecimalException]] = (InvalidOperation, DivisionByZero, Overflow),
) -> Context:
    """Python's own context, but for the digits, the rounding and what raises."""
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=-_FARTHEST,
        Emax=_FARTHEST,
        capitals=1,
        clamp=0,
        flags=[],
        traps=list(traps),
    )
