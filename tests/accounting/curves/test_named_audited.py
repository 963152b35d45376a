"""Small implementations of selections, audited against their curves; and wrong twins, refuted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpverify as dpv

VOTES = "abc"
PEOPLE = dpv.Table({"vote": dpv.Categories(*VOTES)}, rows=(0, 12))

pytestmark = pytest.mark.nightly


def counts(rows: Any) -> dict[str, int]:
    return {vote: sum(str(row["vote"]) == vote for row in rows) for vote in VOTES}


def exponential(scale: float) -> Callable[..., str]:
    def choose(rows: Any, rng: np.random.Generator) -> str:
        weights = [math.exp(count / scale) for count in counts(rows).values()]
        return VOTES[int(rng.choice(3, p=[weight / sum(weights) for weight in weights]))]

    return choose


def flipped(scale: float) -> Callable[..., str]:
    def choose(rows: Any, rng: np.random.Generator) -> str:
        scores = counts(rows)
        best = max(scores.values())
        for vote in rng.permutation(list(VOTES)):
            if rng.random() <= math.exp((scores[vote] - best) / scale):
                return str(vote)
        raise AssertionError

    return choose


def thresholded(scale: float, threshold: float) -> Callable[..., list[str]]:
    def shown(rows: Any, rng: np.random.Generator) -> list[str]:
        there = [(vote, count) for vote, count in counts(rows).items() if count]
        return [vote for vote, count in there if count + rng.laplace(0, scale) >= threshold]

    return shown


def verdict(function: Callable[..., object], claim: dpv.PrivacyCurve, epsilon: float) -> str:
    report = dpv.audit(
        function,
        epsilon=epsilon,
        delta=claim.delta_at(epsilon).upper,
        adjacency=dpv.AddRemove(),
        domain=PEOPLE,
        kinds=["black-box"],
        draws=4000,
        workers=1,
    )
    return report.verdict


CLAIM = dpv.curves.exponential_mechanism(scale=1, monotonic=1)
PURE = dpv.curves.permute_and_flip(scale=1, monotonic=1)
GROUPS = dpv.curves.laplace_threshold(scale=1, threshold=6)


@pytest.mark.parametrize(
    ("right", "wrong", "claim", "epsilon"),
    [
        (exponential(1), exponential(0.5), CLAIM, 1),
        (exponential(1), exponential(0.5), CLAIM, 0.4),
        (flipped(1), flipped(0.4), PURE, 1),
        (thresholded(1, 6), thresholded(1, 3), GROUPS, 1),
    ],
    ids=["exponential", "exponential's curve", "permute-and-flip", "threshold"],
)
def test_an_implementation_keeps_to_its_curve_and_its_twin_does_not(
    right: Callable[..., object],
    wrong: Callable[..., object],
    claim: dpv.PrivacyCurve,
    epsilon: float,
) -> None:
    assert verdict(right, claim, epsilon) == "no_violation_found"
    assert verdict(wrong, claim, epsilon) == "violation"
