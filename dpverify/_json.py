"""Strict JSON: an object that has a key twice is refused."""

from __future__ import annotations

from typing import Any

__all__ = ["each_once"]


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; with a key twice it is refused, as readers differ in which value they take."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has the same key twice")
    return made
