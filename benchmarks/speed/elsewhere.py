"""Works of peers in an environment of their own, in turns with ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.speed.table import Elsewhere

__all__ = ["MISSING", "peer"]

MISSING = "not measured: DPVERIFY_PEERS_PYTHON names no interpreter that has it"


@contextmanager
def peer(work: str) -> Iterator[Callable[[], Elsewhere] | None]:
    """The work of that name in `benchmarks.peers.speed`, or None where it can't be done.

    DPVERIFY_PEERS_PYTHON is the interpreter of the environment.
    """
    python = os.environ.get("DPVERIFY_PEERS_PYTHON")
    if python is None:
        yield None
        return
    process = subprocess.Popen(  # noqa: S603
        [python, "-m", "benchmarks.peers.speed", work],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    given, answers = process.stdin, process.stdout
    assert given is not None
    assert answers is not None

    def once() -> Elsewhere:
        given.write("\n")
        given.flush()
        return Elsewhere(seconds=float(answers.readline()))

    try:
        once()  # prepares it
    except (BrokenPipeError, ValueError):  # it ended without an answer
        work_there = None
    else:
        work_there = once
    try:
        yield work_there
    finally:
        process.kill()
        process.communicate()
