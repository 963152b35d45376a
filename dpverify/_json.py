"""JSON that all readers read alike."""

from __future__ import annotations

from typing import Any

__all__ = ["each_once"]


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose keys are there once: of two, one reader takes the first, one the last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has one key twice")
    return made
