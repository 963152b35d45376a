"""The comparisons see a release whose time or memory depends on the record."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from benchmarks.timing import compare, peak


class _Leaky:
    def release(self, records: Any, *, rng: Any) -> Any:
        time.sleep(float(records.sum()) * 1e-3)
        np.zeros(1000 + int(records.sum()) * 100).sum()
        return rng.words(1)


def test_a_leak_is_seen() -> None:
    zeros, ones = np.zeros((1, 1)), np.ones((1, 1))
    first, second, p = compare(_Leaky(), zeros, ones, 40)
    assert first < second
    assert p < 1e-6


def test_a_leak_of_memory_is_seen() -> None:
    zeros, ones = np.zeros((1, 1)), np.ones((1, 1))
    tracemalloc.start()
    try:
        first, second, p = compare(_Leaky(), zeros, ones, 40, peak)
        _, _, alike = compare(_Leaky(), zeros, zeros.copy(), 40, peak)
    finally:
        tracemalloc.stop()
    assert second - first == pytest.approx(800 / 1024, abs=0.2)
    assert p < 1e-6
    assert alike > 1e-6
