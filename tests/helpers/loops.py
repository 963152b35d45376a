"""Loops of `dpverify.execution.loops` run as they are written, or as machine code."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest

from dpverify.execution.compiled import compiled

__all__ = ["RUNNERS", "By", "run_loops"]

By = Literal["numpy", "python", "numba"]
RUNNERS: tuple[By, ...] = ("python", "numba")


def run_loops(monkeypatch: pytest.MonkeyPatch, module: ModuleType, by: By) -> list[int]:
    """Have a module's loops run so, however little there is to do; how many values each met.

    Skips the test where numba isn't installed and would run them.
    """
    met: list[int] = []
    if by == "numba":
        pytest.importorskip("numba")
        monkeypatch.setenv("DPVERIFY_LOOPS", "numba")

    def chosen(loop: Callable[..., Any], *, values: int) -> Callable[..., Any] | None:
        if by == "numpy":
            return None
        met.append(values)
        if by == "python":
            return np.errstate(all="ignore")(loop)  # machine code doesn't warn
        return compiled(loop, values=values)

    monkeypatch.setattr(module, "compiled", chosen)
    return met
