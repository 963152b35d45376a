"""Numbers at the ends of doubles: audits say of them what they say of others, without a warning."""

from __future__ import annotations

import math
import sys
import warnings
from copy import copy
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.privacy import Pair
from tests.helpers.profiles import day_and_night

MOST = sys.float_info.max
PAIR = Pair(name="one row more", record=[], neighbour=[1])

OUTPUTS: dict[str, tuple[Any, Any]] = {
    "infinities": (math.inf, -math.inf),
    "the largest": (MOST, math.inf),
    "no number": (math.nan, math.inf),
    "lists": ([MOST, 1.0], [-MOST, 2.0]),
    "arrays": (np.full(100, MOST), np.full(100, -math.inf)),
    "beside a text": (["a", MOST], ["a", -MOST]),
    "whole": (10**400, -(10**400)),
    "halves": (np.float16(6e4), np.float16("inf")),
    "complex": (complex(MOST, MOST), complex(math.inf, math.nan)),
}


@pytest.mark.parametrize("name", day_and_night(*OUTPUTS))
def test_far_numbers_are_told_apart_without_a_warning(name: str) -> None:
    for share, verdict in ((0.99, "violation"), (0.5, "no_violation_found")):

        def function(rows: Any, rng: Any, share: float = share) -> Any:
            return copy(OUTPUTS[name][(rng.random() < share) ^ len(rows)])

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = dpv.audit(
                function,
                epsilon=1,
                adjacency=dpv.AddRemove(),
                pairs=[PAIR],
                draws=100,
                workers=1,
                without=["determinism"],
            )
        assert report.verdict == verdict
