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

CORE = """
import ctypes, json, sys
how, library = sys.argv[1:3]
if how == "rounding":
    assert ctypes.CDLL(library).fesetround(int(sys.argv[3])) == 0
    one = float(sys.argv[2] != "")
    assert (one / 3, -one / 3, one / 10) != (0.3333333333333333, -0.3333333333333333, 0.1)
if how == "flush":
    ctypes.CDLL(library).flush()
    assert 5e-324 * 1.0 == 0
from dpverify.errors import DPVerifyError
from fractions import Fraction as F
from decimal import Decimal as D
from dpverify.accounting.curves.gaussian import delta_gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import GaussianProjection
import numpy as np

def sketch(which):
    made = LinearSketch.calibrated(
        GaussianProjection(p=40, k=12, seed=3), epsilon=F(2), delta=F(1, 10**6),
        domain=Box(low=F(0), high=F(1)), adjacency=Attribute(beta=F(1)),
    )
    if which == "curve":
        return str(made.privacy().epsilon_at(F(1, 10**6)))
    records = np.linspace(0, 1, 400).reshape(10, 40)
    return made.release(records, rng=ReplayableWords(5)).tolist()

answers = {}
for name, work in {
    "delta": lambda: str(delta_gaussian(D("1.3"), D("0.9"))),
    "tiny delta": lambda: str(delta_gaussian(D("30"), D("1.5"))),
    "epsilon": lambda: str(epsilon_gaussian(D("1e-300"), D("7.7"))),
    "sigma": lambda: str(sigma_gaussian(D("0.1"), D("1e-9"))),
    "sketch": lambda: sketch("curve"),
    "release": lambda: sketch("release"),
}.items():
    try:
        answers[name] = work()
    except DPVerifyError as error:
        answers[name] = f"refused: {error}"
print(json.dumps(answers))
"""
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


@pytest.mark.parametrize("threads", ["1", "2"])
def test_other_thread_counts(threads: str, usual: dict[str, object]) -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    assert core(**dict.fromkeys(names, threads)) == usual


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
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "to zero"])
def test_other_rounding_modes(mode: int, usual: dict[str, object]) -> None:
    library = str(ctypes.util.find_library("m"))
    assert_same_or_refused(core("rounding", library, str(mode)), usual)
