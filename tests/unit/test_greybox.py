"""The grey-box check: what it accuses, and the twins that it must not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.accounting.gaussian import GaussianCurve
from dpverify.accounting.point import PointCurve
from dpverify.adjacency import AttributeAdjacency
from dpverify.auditing.greybox import grey_box, grey_box_search
from dpverify.auditing.recording import RecordingWords, recorded
from dpverify.domain import Box
from dpverify.mechanism import Pair
from dpverify_audits.planted import SUITE

PURE = PointCurve(bound=Fraction(1))
NORMAL = GaussianCurve(mu_squared=Fraction(1, 4))
DELTA = Fraction(1, 10**6)
PAIR = Pair(
    name="first row",
    record=np.array([[0.0, 0.5], [1.0, 0.0]]),
    neighbour=np.array([[1.0, 0.5], [1.0, 0.0]]),
)
MATRIX = np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])  # rows of ℓ2 norm 1, ℓ1 norm 1.4


def laplace(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 1.0, x.shape)


def normal(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.normal(0.0, 2.0, (len(x), 3))


def standard(x: Any, rng: Any) -> Any:
    return x @ MATRIX + 2 * rng.standard_normal((len(x), 3))


def at_the_input(x: Any, rng: Any) -> Any:
    return (x + rng.laplace(0.0, 1.0, x.shape)) @ MATRIX


def wide_at_the_input(x: Any, rng: Any) -> Any:
    return (x + rng.laplace(0.0, 1.0, x.shape)) @ np.array([[1.0], [0.5]])


def located(x: Any, rng: Any) -> Any:
    return rng.laplace(x, 1.0)


def scale_halved(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 0.5, x.shape)


def wrong_norm(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.laplace(0.0, 1.0, (len(x), 3))  # ε = 1.4 by the ℓ1 norm


def one_vector_for_all_rows(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 1.0, x.shape[1])


def half_the_coordinates(x: Any, rng: Any) -> Any:
    y = x.copy()
    y[:, 1:] += rng.laplace(0.0, 1.0, (len(x), 1))
    return y


def bound_read_off(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, max(np.abs(x[0]).max(), 0.1) * 4, x.shape)


def early_exit(x: Any, rng: Any) -> Any:
    return x if not x[0].all() and not x[0, 0] else laplace(x, rng)


def noiseless(x: Any, rng: Any) -> Any:
    return x * 1.0


def raises_on_data(x: Any, rng: Any) -> Any:
    if x[0, 0] == 1:
        raise ValueError("no")
    return laplace(x, rng)


def shape_by_data(x: Any, rng: Any) -> Any:
    return laplace(x, rng)[: 1 + int(x[0, 0])]


def variance_for_deviation(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.normal(0.0, 2.0**0.5, (len(x), 3))


@pytest.mark.parametrize("function", [laplace, at_the_input, wide_at_the_input, located])
def test_correct_laplace_is_not_accused(function: Any) -> None:
    finding = grey_box(function, [PAIR], PURE)
    assert finding.verdict == "no_violation_found"
    assert finding.evidence["distance"] == pytest.approx(1.0)


@pytest.mark.parametrize("function", [normal, standard])
def test_correct_normal_is_not_accused(function: Any) -> None:
    finding = grey_box(function, [PAIR], NORMAL, delta=DELTA)
    assert finding.verdict == "no_violation_found"
    assert finding.evidence["distance"] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (scale_halved, "2 scales"),
        (wrong_norm, "1.4 scales"),
        (one_vector_for_all_rows, "no independent noise"),
        (half_the_coordinates, "no independent noise"),
        (bound_read_off, "noise call 0 depends on the data"),
        (early_exit, "number of noise calls"),
        (noiseless, "no noise was asked for"),
        (raises_on_data, "one side alone"),
        (shape_by_data, "shape"),
    ],
)
def test_bugs_are_accused(function: Any, reason: str) -> None:
    finding = grey_box(function, [PAIR], PURE)
    assert finding.verdict == "violation"
    assert reason in finding.statement
    assert finding.pair is PAIR


def test_a_variance_for_a_deviation_is_accused() -> None:
    finding = grey_box(variance_for_deviation, [PAIR], NORMAL, delta=DELTA)
    assert finding.verdict == "violation"
    assert finding.evidence["distance"] == pytest.approx(0.5**0.5, rel=1e-12)


def test_normal_noise_has_no_pure_epsilon() -> None:
    assert grey_box(normal, [PAIR], PURE).verdict == "violation"


def test_a_hair_above_the_claim_is_accused_and_a_hair_below_is_not() -> None:
    def scaled(scale: float) -> Any:
        return lambda x, rng: x + rng.laplace(0.0, scale, x.shape)

    assert grey_box(scaled(1 - 1e-7), [PAIR], PURE).verdict == "violation"
    assert grey_box(scaled(1 + 1e-7), [PAIR], PURE).verdict == "no_violation_found"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: np.clip(x + rng.laplace(0.0, 1.0, x.shape), 0, 1),
        lambda x, rng: x + rng.gumbel(0.0, 1.0, x.shape),
        lambda x, rng: [][0],
        lambda x, rng: (x > 0) ^ (rng.random(x.shape) < 0.25),
    ],
)
def test_outside_the_model_is_inconclusive(function: Any) -> None:
    assert grey_box(function, [PAIR], PURE).verdict == "inconclusive"


def test_search_shrinks_to_a_minimal_pair() -> None:
    """A sensitivity that only holds where a record isn't negative."""

    def broken(x: Any, rng: Any) -> Any:
        return np.where(x < 0, 3 * x, x) + rng.laplace(0.0, 1.0, x.shape)

    options: dict[str, Any] = {
        "adjacency": AttributeAdjacency(beta=Fraction(1)),
        "domain": Box(low=Fraction(-1), high=Fraction(1)),
        "claim": PURE,
        "attributes": 2,
    }
    finding = grey_box_search(broken, **options)
    assert finding.verdict == "violation"
    assert finding.pair is not None
    # Minimal: one value off 0 on one side, none on the other.
    assert np.count_nonzero(finding.pair.record) + np.count_nonzero(finding.pair.neighbour) == 1
    assert grey_box_search(laplace, **options).verdict == "no_violation_found"


LINEAR = [bug for bug in SUITE if type(bug.twin()).__name__ in ("LinearSketch", "NoiseAddition")]


@pytest.mark.parametrize("bug", LINEAR, ids=lambda bug: bug.name)
def test_twins_of_the_planted_bugs_are_not_accused(bug: Any) -> None:
    twin = bug.twin()
    finding = grey_box(
        recorded(twin), twin.worst_pairs(), twin.privacy(), delta=DELTA, source=RecordingWords
    )
    assert finding.verdict == "no_violation_found", finding.statement
    assert finding.evidence["distance"] > 0


def test_a_sketch_with_less_noise_is_accused() -> None:
    twin = next(bug.twin() for bug in LINEAR)
    broken = replace(twin, noise=type(twin.noise)(scale=twin.noise.scale * 0.99))
    finding = grey_box(
        recorded(broken), twin.worst_pairs(), twin.privacy(), delta=DELTA, source=RecordingWords
    )
    assert finding.verdict == "violation", finding.statement


def test_noise_that_is_drawn_again_is_outside_the_model() -> None:
    """How many calls there are depends on the noise itself: no error, and no verdict either."""

    def not_negative(record: Any, rng: np.random.Generator) -> float:
        value = -1.0
        while value < 0:
            value = float(record[0]) + rng.laplace()
        return value

    pair = Pair(name="0 against 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    found = grey_box(not_negative, [pair], PointCurve(bound=Fraction(1)))
    assert found.verdict == "inconclusive"
