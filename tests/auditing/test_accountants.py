"""Accountants held against enclosures: every verdict, what is printed, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.composition.parallel import parallel
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.matrix_mechanism import matrix_mechanism
from dpverify.auditing.accountants import AccountantReport, audit_accountant
from dpverify.auditing.reporters.json import json
from dpverify.auditing.reporters.junit import junit
from dpverify.auditing.reporters.text import text
from dpverify.data.adjacency import Attribute
from dpverify.errors import ParameterError

APART = [[1, -1], [1, 0]]
"""A matrix of two columns of which the product is negative."""


def gaussian(sigma: Any) -> dpv.PrivacyCurve:
    return dpv.Gaussian(sigma=sigma)


def held(accountant: Callable[..., Any], **options: Any) -> AccountantReport:
    given: dict[str, Any] = {
        "grid": {"sigma": [4], "delta": [1e-5]},
        "curve": gaussian,
        "solves": "epsilon",
    }
    return audit_accountant(accountant, **given | options)


def textbook(sigma: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / sigma


TRUE = gaussian(4).epsilon_at(1e-5)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (TRUE.lower * (1 - 1e-9), "unsafe"),
        (0, "unsafe"),
        (math.nextafter(TRUE.lower, 0), "unsafe"),
        (Fraction(TRUE.lower) - Fraction(1, 10**40), "unsafe"),
        (TRUE.lower, "unknown"),
        (TRUE.upper, "tight"),
        (TRUE, "tight"),
        (Decimal(TRUE.upper), "tight"),
        (np.float64(TRUE.upper * 1.009), "tight"),
        (np.array(TRUE.upper * 1.02), "loose"),
        (3, "loose"),
        (math.inf, "failed"),
        (10**400, "failed"),
        (math.nan, "failed"),
        (Decimal("NaN"), "failed"),
        (-1e-9, "failed"),
        (None, "failed"),
        (True, "failed"),
        ("0.9", "failed"),
        (1j, "failed"),
    ],
)
def test_the_verdict_on_a_claim(claim: Any, verdict: str) -> None:
    (cell,) = held(lambda sigma, delta: claim).cells
    assert cell.verdict == verdict
    assert cell.truth == TRUE


SHUFFLED = dpv.ApproxDP(epsilon=3).shuffled(users=50)
HONEST = dpv.RandomizedResponse(keep="0.9")
ROUNDED = DiscretePair(p=[0.9, 0.1], q=[0.1, 0.9], error="1e-15")


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [
        (dpv.ZCDP(rho="1/2"), "unknown"),  # which Gaussian noise of σ = 1 keeps, with a smaller ε
        (SHUFFLED, "unknown"),
        pytest.param(2 * SHUFFLED, "unknown", marks=pytest.mark.nightly),
        (2 * dpv.curves.exponential_mechanism(scale=1, sensitivity=1), "unknown"),
        (dpv.curves.noisy_max(scale=1), "unknown"),
        (dpv.curves.noisy_max(scale=1).poisson_sampled(rate=0.5), "unknown"),
        (parallel(dpv.Laplace(scale=9), dpv.curves.permute_and_flip(scale=1)), "unknown"),
        (2 * dpv.curves.sparse_vector(scale=1, threshold_scale=1), "unknown"),
        (dpv.curves.noisy_max(scale=1) + dpv.Gaussian(sigma=1), "unknown"),
        (SHUFFLED.sampled_without_replacement(size=1, out_of=2), "unknown"),
        (2 * dpv.curves.noisy_max(scale=1).poisson_sampled(rate=0.5), "unknown"),
        pytest.param(
            2 * dpv.curves.exponential_mechanism(scale=1).poisson_sampled(rate=0.5),
            "unknown",
            marks=pytest.mark.nightly,
        ),
        (2 * HONEST.sampled_without_replacement(size=1, out_of=2), "unknown"),
        (HONEST.sampled_without_replacement(size=1, out_of=2), "unsafe"),
        (2 * HONEST.poisson_sampled(rate=0.5), "unsafe"),
        (ROUNDED, "unknown"),
        (2 * ROUNDED, "unknown"),
        (2 * ROUNDED.poisson_sampled(rate=0.5), "unknown"),
        (2 * ROUNDED.poisson_sampled(rate=0.5, replaced=True), "unknown"),
        (DiscretePair(p=["0.1", "0.9"], q=["0.5", "0.5"]).poisson_sampled(rate=0.5), "unknown"),
        (DiscretePair(p=["0.1", "0.9"], q=["0.5", "0.5"]), "unsafe"),
        (dpv.curves.laplace_threshold(scale=1, threshold=9).poisson_sampled(rate=0.5), "unknown"),
        (dpv.curves.TruncatedLaplace(scale=1, bound=9).poisson_sampled(rate=0.5), "unsafe"),
        (dpv.ApproxDP(epsilon=3).poisson_sampled(rate=0.5), "unsafe"),
        (dpv.curves.exponential_mechanism(scale=1, sensitivity=1), "unsafe"),
        (dpv.Gaussian(sigma=1), "unsafe"),
        (2 * dpv.Gaussian(sigma=1) + dpv.Laplace(scale=1), "unsafe"),
        (matrix_mechanism(APART, sigma=2, together=[(0, 1)]), "unknown"),
        (3 * matrix_mechanism(APART, sigma=2, together=[(0, 1)]), "unknown"),
        ((3 * matrix_mechanism(APART, sigma=2, together=[(0, 1)])).group(2), "unknown"),
        (matrix_mechanism(APART, sigma=2, together=[(0, 1)]).poisson_sampled(rate=0.5), "unknown"),
        (parallel(matrix_mechanism(APART, sigma=2, together=[(0, 1)])), "unknown"),
        (matrix_mechanism(APART, sigma=2), "unsafe"),
        (matrix_mechanism([[1, 0], [1, 1]], sigma=2, together=[(0, 1)]), "unsafe"),
        (matrix_mechanism([[2, 0], [0, 3]], scale=2), "unsafe"),
        (matrix_mechanism([[1, 3, 0], [2, -1, 1]], scale=2), "unsafe"),
        (matrix_mechanism([[3, 2], [0, 2]], scale=2), "unknown"),
        (2 * matrix_mechanism([[3, 2], [0, 2]], scale=2), "unknown"),
        (matrix_mechanism([[1]], scale=2, adjacency=Attribute("0.5")), "unknown"),
        (matrix_mechanism([[1]], sigma=2, adjacency=Attribute(1)), "unsafe"),
    ],
    ids=str,
)
def test_below_a_bound_that_is_not_attained_nothing_is_unsafe(curve: Any, verdict: str) -> None:
    true = curve.epsilon_at("1e-3").lower
    report = audit_accountant(
        lambda delta: true * 0.9, {"delta": ["1e-3"]}, curve=lambda: curve, solves="epsilon"
    )
    assert report.cells[0].verdict == verdict
    assert report.verdict == ("violation" if verdict == "unsafe" else "inconclusive")


@pytest.mark.parametrize("times", [1, 2])
def test_the_largest_loss_of_a_selection_is_attained(times: int) -> None:
    curve = times * dpv.curves.noisy_max(scale=1)
    grid = {"delta": [0]}
    report = audit_accountant(lambda delta: times, grid, curve=lambda: curve, solves="epsilon")
    assert report.verdict == "violation"


@pytest.mark.parametrize("error", [ZeroDivisionError("no"), SystemExit(3)])
def test_what_raises_has_failed(error: BaseException) -> None:
    def raising(sigma: float, delta: float) -> float:
        raise error

    report = held(raising)
    assert report.verdict == "inconclusive"
    assert type(error).__name__ in str(report)


def test_where_the_truth_is_infinite_so_may_the_claim_be() -> None:
    def point(most: float) -> dpv.PrivacyCurve:
        return dpv.ApproxDP(epsilon=1, delta=most)

    grid = {"most": [0.1], "delta": [0.01]}
    assert held(lambda **_: math.inf, grid=grid, curve=point).counts == {"tight": 1}
    assert held(lambda **_: 1e300, grid=grid, curve=point).counts == {"unsafe": 1}


def test_the_last_digits_are_forgiven_where_that_is_said() -> None:
    below = TRUE.lower * (1 - 1e-12)
    assert held(lambda **_: below).verdict == "violation"
    assert held(lambda **_: below, tolerance="1e-9").verdict == "no_violation_found"
    assert held(lambda **_: below, tolerance="1e-13").verdict == "violation"


def test_delta_at_epsilon_and_a_grid_of_an_array() -> None:
    def delta(sigma: float, epsilon: float) -> float:
        return 1.5 * gaussian(sigma).delta_at(epsilon).upper

    grid = {"sigma": np.array([1.0, 2.0]), "epsilon": [0.5, 1]}
    report = held(delta, grid=grid, solves="delta")
    assert report.counts == {"loose": 4}
    assert report.cells[0].factor == pytest.approx(1.5)
    assert all(type(cell.parameters["sigma"]) is float for cell in report.cells)


def test_the_worst_comes_first_and_is_replayed() -> None:
    report = held(textbook, grid={"sigma": [8, 0.2, 0.05], "delta": [1e-5]})
    assert report.counts == {"unsafe": 2, "loose": 1}
    assert [cell.parameters["sigma"] for cell in report.cells] == [0.05, 0.2, 8]
    printed: list[Any] = []
    code, _, comment = report.replay.partition("  # ")
    exec(code, {"print": printed.append})  # noqa: S102
    assert printed == [report.cells[0].claim]
    assert comment == report.cells[0].statement
    assert "at least 284.3" in comment


def test_a_small_difference_is_printed_as_one() -> None:
    report = held(lambda **_: math.nextafter(TRUE.lower, 0))
    claimed, least = report.cells[0].statement.split(" is claimed, and it is at least ")
    assert float(claimed.removeprefix("epsilon ")) < float(least) <= TRUE.lower


def test_what_is_printed() -> None:
    report = held(textbook, grid={"sigma": [0.2, *range(4, 10)], "delta": [1e-5]}, name="book")
    lines = str(report).splitlines()
    assert lines[:2] == ["book: violation, certain", "  claims of epsilon: 1 unsafe, 6 loose"]
    assert "  and 2 more, none of them worse" in lines
    assert report._repr_html_().count("<tr>") == 7
    assert report.to_dict()["cells"][0]["truth"]["lower"].startswith("33.10")
    assert "book(sigma=0.2, delta=1e-05): epsilon 24.224 is claimed" in junit([report])
    assert '"unsafe": 1' in json([report])
    assert text([report]) == str(report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": {}}, "grid={} must be parameters by their names"),
        ({"grid": {1: [4], "delta": [0.1]}}, "must be parameters by their names"),
        ({"grid": {"sigma": 4, "delta": [0.1]}}, "must be a list of one value or more"),
        ({"grid": {"sigma": [], "delta": [0.1]}}, "must be a list of one value or more"),
        ({"grid": {"scale": [4], "delta": [0.1]}}, "must be a function of scale"),
        ({"grid": {"sigma": [-4], "delta": [0.1]}}, "sigma=-4 must be positive"),
        ({"grid": {"sigma": [4], "delta": [2]}}, "delta=2 must be in"),
        ({"solves": "delta"}, "one with epsilon"),
        ({"solves": "rho"}, "solves=rho must be epsilon or delta"),
        ({"tolerance": -1}, "tolerance=-1 must be at least 0"),
        ({"curve": lambda sigma: 1.0}, "must be one that returns a privacy curve"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        held(textbook, **options)
