"""The certified core where doubles are not as usual: the same enclosures, or a refusal.

Other thread counts of the BLAS, subnormals flushed to zero, and the three other rounding modes of
the processor, each in a process of its own.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.core import CORE
from tests.helpers.profiles import day_and_night

FLUSH = """
#include <xmmintrin.h>
void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
"""


def core(*arguments: str, **environment: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", CORE, *(arguments or ("", ""))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, object] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="module")
def usual() -> dict[str, object]:
    found = core()
    assert not any(str(answer).startswith("refused") for answer in found.values())
    return found


def assert_same_or_refused(found: dict[str, object], usual: dict[str, object]) -> None:
    wrong = {
        name: (answer, usual[name])
        for name, answer in found.items()
        if answer != usual[name] and not str(answer).startswith("refused")
    }
    assert not wrong


@pytest.mark.nightly
@pytest.mark.parametrize("threads", ["1", "2"])
def test_other_thread_counts(threads: str, usual: dict[str, object]) -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    assert core(**dict.fromkeys(names, threads)) == usual


@pytest.mark.nightly
@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("cc") is None, reason="needs cc and x86-64"
)
def test_subnormals_flushed(tmp_path: Path, usual: dict[str, object]) -> None:
    source, library = tmp_path / "flush.c", tmp_path / "flush.so"
    source.write_text(FLUSH)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)  # noqa: S607
    assert_same_or_refused(core("flush", str(library)), usual)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or ctypes.util.find_library("m") is None,
    reason="the modes' numbers are those of x86-64",
)
@pytest.mark.parametrize("mode", day_and_night(0x800, 0x400, 0xC00), ids=["up", "down", "to zero"])
def test_other_rounding_modes(mode: int, usual: dict[str, object]) -> None:
    library = str(ctypes.util.find_library("m"))
    assert_same_or_refused(core("rounding", library, str(mode)), usual)
