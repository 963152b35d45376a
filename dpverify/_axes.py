"""Matplotlib's axes, for `plot` methods."""

from __future__ import annotations

from typing import Any

from dpverify.errors import extra

__all__ = ["axes_or_new"]


def axes_or_new(axes: Any) -> Any:
    """These axes, or those of a new figure where there are none.

    Raises
    ------
    MissingExtraError
        If matplotlib isn't installed.
    """
    with extra("report", "a plot"):
        from matplotlib import pyplot
    return pyplot.figure(layout="constrained").add_subplot() if axes is None else axes
