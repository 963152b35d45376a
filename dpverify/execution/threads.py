"""Threads of numerical libraries: one, where matrices are small.

Threads of a small product wait for each other longer than they compute, and on busy cores several
times as long. The limit is the whole process's while it lasts.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[Any]:
    """Compute in this thread alone."""
    limits: AbstractContextManager[Any] = _pools("sklearn.ensemble" in sys.modules).limit(limits=1)
    return limits


@cache
def _pools(with_trees: bool) -> Any:
    """Found once, and again with scikit-learn's: looking takes longer than most products."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
