"""A certificate says the same whatever the processor is: every case, certified under settings of
which each makes last digits of doubles different.

``python -m tests.conformance.test_processors`` prints the certificates, less what a release draws.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.cases import CASES
from tests.conformance.make import made
from tests.helpers.paths import ROOT

SIMD = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
PLAIN = {  # OpenBLAS's kernels and threads, numpy's loops, the logarithms and sines of glibc
    "OPENBLAS_CORETYPE": "Prescott",
    "OPENBLAS_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": " ".join(SIMD),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",
}


def main() -> None:
    """Certify all cases but the slowest, of covariances."""
    with tempfile.TemporaryDirectory() as name:
        for case, configuration in CASES.items():
            if case != "covariance":
                fields = made(configuration, Path(name))
                shutil.rmtree(Path(name) / "out")
                del fields["digest"], fields["release"], fields["environment"]
                print(json.dumps({case: fields}))


def printed(settings: dict[str, str]) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.conformance.test_processors"],
        env={**os.environ, **settings},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


@pytest.mark.nightly
def test_certificates_are_the_same_on_other_processors() -> None:
    known = printed({"OPENBLAS_NUM_THREADS": "2"})
    assert len(known) == len(CASES) - 1
    for one, other in zip(known, printed(PLAIN), strict=True):
        assert json.loads(one) == json.loads(other)


if __name__ == "__main__":
    main()
