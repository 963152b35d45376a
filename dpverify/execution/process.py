"""The identity of this process, which no fork shares."""

from __future__ import annotations

import os

__all__ = ["this_process"]

_forks = [0]  # how many forks lie between the first process and this one


def _count_fork() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_count_fork)


def this_process() -> tuple[int, int]:
    """What no process shares with one that it was forked from.

    In a new namespace of processes a child can have its parent's number; and a fork that Python
    doesn't see (in a C library) changes the number alone.
    """
    return os.getpid(), _forks[0]
