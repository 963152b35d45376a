"""Commands in processes of their own, which tests end on the way."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from dpverify.cli import _run
from dpverify.data.atomic_files import sha256_file

__all__ = ["assert_whole", "lasted"]

OUTPUTS = {"certificate.json", "report.html", "sketch.npz"}


def assert_whole(out: Path) -> str:
    """The folder holds one consistent set of outputs; returns the hash that names it."""
    assert {path.name for path in out.iterdir()} == OUTPUTS
    fields = json.loads((out / "certificate.json").read_text())
    assert sha256_file(out / "sketch.npz") == fields["release"]["sha256"]
    assert fields["digest"] in (out / "report.html").read_text()
    return str(fields["release"]["sha256"])


def _work(words: list[str]) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os._exit(_run(words))


def lasted(
    words: list[str],
    after: float | None = None,
    begun: Callable[[], bool] = lambda: True,
    how: signal.Signals = signal.SIGKILL,
) -> float | None:
    """Run a command line, and end it so many seconds after it has begun.

    It is forked from this process, which has imported everything: so the moment falls into the
    work, and not into start-up.

    Returns
    -------
    None if it was ended, else the seconds that it took: the machine's pace may change.
    """
    child = multiprocessing.get_context("fork").Process(target=_work, args=(words,))
    child.start()
    while not begun() and child.is_alive():
        time.sleep(1e-3)
    start = time.monotonic()
    child.join(after)
    took = time.monotonic() - start
    if child.exitcode is None:
        os.kill(int(child.pid or 0), how)
    child.join()
    ended = {-how, 130}  # the second: interrupted
    assert child.exitcode in {0, 1, 3} | ended  # 1: an audit found a violation; 3: inconclusive
    return None if child.exitcode in ended else took
