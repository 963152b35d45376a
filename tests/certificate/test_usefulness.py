"""The verdict on a release's worth, and the recall that it predicts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from dpverify.certificate.certify import configured, requested
from dpverify.certificate.derive import worth
from dpverify.certificate.schema import Inputs, KindInput, Prediction, Range, Usefulness
from dpverify.certificate.usefulness import USEFUL, judge, recall
from dpverify.privacy import Estimator


def inputs(purpose: tuple[int, int] | None = None) -> Inputs:
    return Inputs(
        mechanism="raw-data-g-opt",
        parameters={},
        rows=100,
        attributes=2,
        domain=KindInput(kind="box", numbers={"low": Fraction(0), "high": Fraction(1)}),
        outside="refuse",
        adjacency=KindInput(kind="record", numbers={}),
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        projection_seed=0,
        alpha=Fraction(1, 100),
        draws=1000,
        moment_draws=100,
        audit_seed=0,
        purpose=purpose and Range(low=Fraction(purpose[0]), high=Fraction(purpose[1])),
    )


def predicted(truth: float, deviation: float, bias: float = 0.0) -> Prediction:
    return Prediction(
        truth=f"{truth:.9g}", expectation=f"{truth + bias:.9g}", deviation=f"{deviation:.9g}"
    )


@frozen(kw_only=True)
class Some(Estimator):
    """An estimator of which nothing but the name and the limits are asked."""

    name: str = "it"
    limits: tuple[float, float] | None = None

    def estimate(self, first: Any, second: Any) -> Any:
        raise NotImplementedError

    def truth(self, record: Any, other: Any) -> float:
        raise NotImplementedError

    def variance(self, record: Any, other: Any) -> float:
        raise NotImplementedError


def verdict(deviation: float, bias: float = 0.0, **given: Any) -> str:
    judged = judge(inputs(**given), Some(), [predicted(t, deviation, bias) for t in (0, 5, 10)])
    assert judged is not None
    return judged.verdict


@pytest.mark.parametrize(
    ("deviation", "expected"),
    [
        (10 * USEFUL * 0.999, "useful"),
        (10 * USEFUL * 1.001, "coarse"),
        (9.999, "coarse"),
        (10.001, "useless"),
        (math.inf, "useless"),
        (math.nan, "useless"),
    ],
)
def test_the_rule_at_its_edges(deviation: float, expected: str) -> None:
    assert verdict(deviation) == expected


def test_a_biased_estimate_is_less_useful() -> None:
    assert verdict(0.1) == "useful"
    assert verdict(0.1, bias=3.0) == "coarse"
    assert verdict(0.1, bias=-20.0) == "useless"


def test_a_declared_range_decides() -> None:
    assert verdict(9.0, purpose=(0, 1000)) == "useful"
    assert verdict(9.0, purpose=(4, 6)) == "useless"


def test_errors_count_where_the_range_is() -> None:
    predictions = [predicted(1, 0.1), predicted(100, 50.0)]
    near = judge(inputs((0, 2)), Some(), predictions)
    far = judge(inputs((90, 110)), Some(), predictions)
    beyond = judge(inputs((500, 600)), Some(), predictions)
    assert [float(one.error) for one in (near, far, beyond) if one] == [0.1, 50.0, 50.0]


def test_no_range_no_verdict() -> None:
    assert judge(inputs(), Some(), []) is None
    assert judge(inputs(), Some(), [predicted(0, 1), predicted(0, 1)]) is None


def test_records_that_are_all_alike_have_a_range_from_zero() -> None:
    """Two sets of one item each are equal, at distance 0, or at distance 2."""
    judged = judge(inputs(), Some(), [predicted(2, 1.5), predicted(2, 1.5)])
    assert judged is not None
    assert (judged.low, judged.high, judged.error, judged.verdict) == ("0", "2", "1.5", "coarse")


def test_limits_of_the_quantity_stand_in_for_a_declared_range() -> None:
    similarity = Some(limits=(0.0, 1.0))
    alike = [predicted(0.5, 0.9), predicted(0.5, 0.9)]
    judged = judge(inputs(), similarity, alike)
    assert judged is not None
    assert (judged.low, judged.high, judged.declared, judged.verdict) == ("0", "1", False, "coarse")
    assert judge(inputs((0, 10)), similarity, alike) == judge(inputs((0, 10)), Some(), alike)
    assert judge(inputs(), similarity, []) is None


@pytest.mark.parametrize("name", ["rr-min-hash", "noisy-min-hash"])
def test_sets_of_every_size_have_a_verdict(name: str) -> None:
    """Synthetic sets of one item are all disjoint, and give no range."""
    matrix = scipy.sparse.csr_array(np.eye(9, 4) + np.eye(9, 4, -4) + np.eye(9, 4, -5))
    settings: dict[str, Any] = {
        "mechanism": name,
        "k": 64,
        "buckets": 2,
        "domain": {"kind": "sets", "min_size": 1},
        "adjacency": {"kind": "items", "changes": 1},
    }
    verdicts = []
    for epsilon in (8, 10**4):
        _, given, mechanism = configured(
            requested(matrix, None, None, settings | {"epsilon": epsilon})
        )
        judged = worth(given, mechanism)
        assert judged is not None
        assert (judged.low, judged.high, judged.quantity) == ("0", "1", "Jaccard similarity")
        verdicts.append(judged.verdict)
    assert verdicts == ["useless", "useful"]


def test_useful_orders_a_quarter_of_the_range_in_nine_of_ten() -> None:
    rng = np.random.default_rng(1)
    errors = USEFUL * rng.standard_normal((2, 400_000))
    ordered = np.mean(0.25 + errors[0] > errors[1])
    assert abs(ordered - 0.9) < 5 * math.sqrt(0.09 / 400_000)


def useful(error: float) -> Usefulness:
    return Usefulness(
        quantity="it", low="2", high="12", declared=True, error=f"{error:.9g}", verdict="coarse"
    )


@pytest.mark.parametrize("error", [0.02, 0.3, 5.0, 80.0])
def test_recall_against_simulation(error: float) -> None:
    """The mean over 400 rankings: the ten best estimates among 500, of which ten are nearest."""
    rng, rows, runs = np.random.default_rng(2), 500, 400
    values = 2 + 10 * (np.arange(rows) + 0.5) / rows
    noisy = values + error * rng.standard_normal((runs, rows))
    found = (np.argpartition(noisy, 10, axis=1)[:, :10] < 10).mean(axis=1)
    # The formula's threshold is one for all rankings: beside five standard errors, a hundredth.
    assert abs(found.mean() - recall(useful(error), rows)) < 5 * found.std() / 20 + 0.01


@given(st.integers(11, 10**9), st.floats(1e-3, 1e9))
def test_recall_is_between_chance_and_one(rows: int, error: float) -> None:
    found = recall(useful(error), rows)
    assert 10 / rows * (1 - 1e-6) <= found <= 1


def test_recall_without_error_or_choice() -> None:
    assert recall(useful(0.0), 1000) == 1
    assert recall(useful(1e9), 10) == 1
    assert recall(useful(math.inf), 1000) == 0.01


def test_a_verdict_says_the_error_and_how_many_estimates_would_help() -> None:
    text = str(judge(inputs((0, 100)), Some(name="squared distance"), [predicted(50, 30.0)]))
    assert text.startswith("coarse: one estimate of the squared distance is off by about 30")
    assert "the mean of about 9 independent estimates" in text
