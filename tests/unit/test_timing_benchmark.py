"""The comparison of times sees a release whose time depends on the record."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.timing import compare


class _Leaky:
    def release(self, records: Any, *, rng: Any) -> Any:
        time.sleep(float(records.sum()) * 1e-3)
        return rng.words(1)


def test_a_leak_is_seen() -> None:
    zeros, ones = np.zeros((1, 1)), np.ones((1, 1))
    first, second, p = compare(_Leaky(), zeros, ones, 40)
    assert first < second
    assert p < 1e-6
