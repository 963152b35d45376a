"""Work in processes of this machine."""

from __future__ import annotations

import time

import pytest

from dpverify.execution.parallel import spread


def test_a_result_that_is_late_is_pythons_own_error() -> None:
    with pytest.raises(TimeoutError):
        list(spread(time.sleep, [(5.0,), (5.0,)], workers=2, timeout=0.05))
