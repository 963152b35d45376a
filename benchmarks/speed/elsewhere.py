"""Works that are done elsewhere: by peers in environments of their own, or by machine code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from benchmarks.peers.install import installed
from benchmarks.speed.table import Elsewhere

__all__ = ["loops_by_each", "peer"]


@contextmanager
def peer(library: str, work: str) -> Iterator[tuple[Callable[[], Elsewhere] | None, str]]:
    """A work of `benchmarks.peers.speed`, or None where it can't be done, and why."""
    found = installed(library)
    if found.missing:
        yield None, found.missing
        return
    process = subprocess.Popen(  # noqa: S603
        [found.python, "-m", "benchmarks.peers.speed", work],
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

    reason = ""
    try:
        once()  # prepares it
    except (BrokenPipeError, ValueError):  # it ended without an answer
        reason = f"{library} {found.version} failed"
    try:
        yield (None if reason else once), reason
    finally:
        process.kill()
        process.wait()
        answers.close()


def loops_by_each() -> Iterator[str]:
    """Have the innermost loops run by numpy and, where it is installed, by numba."""
    before = os.environ.get("DPVERIFY_LOOPS")
    try:
        for runner in ("numpy", "numba")[: 2 if find_spec("numba") else 1]:
            os.environ["DPVERIFY_LOOPS"] = runner
            yield runner
    finally:
        os.environ.pop("DPVERIFY_LOOPS", None)
        if before is not None:
            os.environ["DPVERIFY_LOOPS"] = before
