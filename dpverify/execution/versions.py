"""Versions that results depend on: others may draw other numbers, or other lines in a figure."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from dpverify._version import __version__
from dpverify.errors import extra

__all__ = ["drawing_versions", "versions"]

_LIBRARIES = ("numpy", "scipy", "python-flint")
_DRAWING = ("jinja2", "matplotlib", "kiwisolver")
_version = cache(metadata.version)  # of what is loaded, which no installation changes


def versions() -> dict[str, str]:
    """Of this program and of the libraries that draw and compute for it, by name."""
    return {"dpverify": __version__} | {name: _version(name) for name in _LIBRARIES}


def drawing_versions() -> dict[str, str]:
    """Of what writes a report beside those, by name; matplotlib may be built with any FreeType."""
    with extra("report", "a document"):
        from matplotlib.ft2font import __freetype_version__ as freetype

    return {name: _version(name) for name in _DRAWING} | {"freetype": freetype}
