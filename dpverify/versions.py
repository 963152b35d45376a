"""Versions that a replay depends on: with others the same seed may give other numbers."""

from __future__ import annotations

from importlib.metadata import version

from dpverify import __version__

__all__ = ["versions"]

_LIBRARIES = ("numpy", "scipy", "python-flint")


def versions() -> dict[str, str]:
    """Of this program and of the libraries that draw and compute for it, by name."""
    return {"dpverify": __version__} | {name: version(name) for name in _LIBRARIES}
