"""Paths as users write them, checked before anything is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpverify.errors import ParameterError, require
from dpverify.visible import shown

__all__ = ["to_path", "to_paths"]


def to_path(name: str, value: Path | str) -> Path:
    """The path that a parameter of this name has as a text or a Path.

    Raises
    ------
    ParameterError
        If it is of another type, or no file can be called so on this system.
    """
    try:
        possible = b"\0" not in os.fsencode(path := Path(value))
    except TypeError:
        raise ParameterError(name, shown(value), "a path, as text or a Path") from None
    except UnicodeEncodeError:  # half a character
        possible = False
    require(possible, name, shown(value), "a path that a file can have")
    return path


def to_paths(name: str, values: Sequence[Path | str]) -> list[Path]:
    """The paths in a list; a text alone, which is a sequence of letters, is refused.

    Raises
    ------
    ParameterError
        If they aren't a list, or as `to_path`.
    """
    several = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    require(several, name, shown(values), "a list of paths")
    return [to_path(name, value) for value in values]
