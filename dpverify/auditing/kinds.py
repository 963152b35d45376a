"""The kinds of audit by name, where nothing heavy is imported to know them."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["KINDS", "OMITTABLE", "AuditKind", "Omittable"]

AuditKind = Literal[
    "exhaustive",
    "grey-box",
    "determinism",
    "precision",
    "white-box",
    "black-box",
    "trade-off",
    "sequential",
    "moments",
]

KINDS: tuple[AuditKind, ...] = tuple(kind for kind in get_args(AuditKind) if kind != "moments")
"""Kinds of audit that test a privacy claim, in the order in which they run."""

Omittable = AuditKind | Literal["precision-of-doubles"]
OMITTABLE: tuple[Omittable, ...] = (*KINDS, "precision-of-doubles")
"""What an audit may be made without: a kind, or the precision of outputs that aren't all whole."""
