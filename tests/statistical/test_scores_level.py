"""Bounds from scores are above the true ε as seldom as their level says.

The runs are those of `benchmarks.scores`, which prints the table; their seeds are fixed, and drawn
anew a bound that spends exactly its level would fail with probability 1e-4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpverify.auditing.attacks import scores
from tests.helpers.null_scores import ALPHA, NULLS, Null, above, bound_above, most

QUICK, RUNS = 10, 10_000

nulls = pytest.mark.parametrize("null", NULLS, ids=lambda null: str(null.name))


@nulls
def test_the_level_is_kept_with_few_scores(null: Null) -> None:
    assert above(null, 20, 0, QUICK) <= most(QUICK)


def test_the_bound_is_that_of_the_audit() -> None:
    # Of another ε, so that some of the bounds are above it.
    for null in (replace(NULLS[1], epsilon=0.5), replace(NULLS[4], epsilon=0.5)):
        for seed in range(4):
            own, other = null.law(100, np.random.default_rng(seed))
            audited = scores.audit_scores(
                own, other, delta=null.delta, alpha=ALPHA, design=null.design
            )
            higher = bound_above(null, own, other) > null.epsilon
            assert higher == (audited.epsilon_lower > null.epsilon)


@pytest.mark.nightly
@nulls
@pytest.mark.parametrize("count", [10, 100, 1000, 10_000])
def test_the_level_is_kept_over_ten_thousand_runs(null: Null, count: int) -> None:
    assert above(null, count, 0, RUNS) <= most(RUNS)


@pytest.mark.nightly
def test_parts_that_add_up_to_more_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("_ABOVE", "_BELOW", "_CHOSEN"):
        monkeypatch.setattr(scores, part, 15)
    assert above(NULLS[2], 40, 0, 40) > most(40)
