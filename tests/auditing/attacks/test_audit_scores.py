"""Bounds from scores that somebody has: what they find, print, plot and refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.errors import ParameterError


def test_one_side_of_few_scores_and_ties() -> None:
    audit = dpv.audit_scores([1.0] * 40, [0.0] * 400, delta=0)
    assert audit.epsilon_lower > 3
    assert (audit.draws, audit.false_draws) == (40, 400)
    assert dpv.audit_scores([0.0] * 400, [1.0] * 40, delta=0).epsilon_lower > 1  # the other sign
    assert dpv.audit_scores([7] * 30, [7] * 50, delta=0).epsilon_lower == 0


def test_infinities_are_scores_and_the_order_is_nothing() -> None:
    rng = np.random.default_rng(3)
    own, other = rng.normal(3, 1, 200), rng.normal(0, 1, 200)
    own[:50], other[:50] = np.inf, -np.inf
    audit = dpv.audit_scores(own, other, delta="1e-5")
    assert audit.epsilon_lower > 2
    again = dpv.audit_scores(np.sort(own), np.sort(other), delta="1e-5")
    assert again.epsilon_lower == pytest.approx(audit.epsilon_lower, abs=0.5)


def test_rates_lie_within_their_limits() -> None:
    rng = np.random.default_rng(4)
    audit = dpv.audit_scores(rng.normal(2, 1, 3000), rng.normal(0, 1, 3000), delta="1e-5")
    for rate, true in zip(audit.rates, (0.1378, 0.3721), strict=True):  # 1 − Φ(z − 2)
        assert rate.lower <= rate.tpr <= rate.upper
        assert rate.lower < true < rate.upper
    assert audit.rates[1].lower > 0.2
    assert audit.auc_limits is not None
    assert audit.auc_limits[0] < 0.9214 < audit.auc_limits[1]  # Φ(2/√2)
    assert audit.band is not None
    lower, upper = audit.band.roc
    for false, true in audit.roc[::40]:  # the scores' own ROC lies in the band
        assert max((t for f, t in lower if f <= false), default=0.0) <= true
        assert true <= min((t for f, t in upper if f > false), default=1.0)


def test_a_model_is_labelled_and_guarded() -> None:
    """Null scores give a library's model 3.5 and more; here they give none, or next to nothing."""
    rng = np.random.default_rng(5)
    audit = dpv.audit_scores(rng.normal(0, 1, 1000), rng.normal(0, 1, 1000), delta="1e-5")
    assert audit.gaussian_model is not None
    assert (audit.gaussian_model.epsilon_lower or 0) < 0.3
    assert "under a Gaussian model, which they don't reject" in str(audit)
    audit = dpv.audit_scores(rng.laplace(1, 1, 1000), rng.laplace(0, 1, 1000), delta="1e-5")
    assert "a Gaussian model doesn't fit" in str(audit)


@pytest.mark.parametrize("delta", ["1/123457", "2/3", "0.123456789", "1e-6", "1/4"])
def test_the_bound_is_printed_at_no_larger_delta(delta: str) -> None:
    """Where epsilon is at least less: of 1/123457 it was printed at 8.09999e-06."""
    head = str(dpv.audit_scores([*range(30, 60)], [*range(30)], delta=delta)).splitlines()[0]
    printed = head.partition(" at delta ")[2].partition(",")[0]
    assert Fraction(printed) == Fraction(delta)


def test_what_it_prints() -> None:
    rng = np.random.default_rng(6)
    audit = dpv.audit_scores(rng.normal(3, 1, 300), rng.normal(0, 1, 300), delta="1e-5")
    assert str(audit).startswith("epsilon is at least 3.")
    assert audit._repr_html_().startswith("<p>epsilon is at least 3.")
    plain = audit.to_dict()
    assert plain["rates"][0]["fpr"] == 0.001
    assert "band" not in plain
    one_run = dpv.audit_scores([1, 2, 3, 4], [0, 0, 0, 0], delta=0, design="one-run")
    assert one_run.band is None
    assert "AUC 1.0000\n" not in str(one_run)
    assert str(one_run).endswith("AUC 1.0000")


def test_the_plot_has_the_claimed_region() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    audit = dpv.audit_scores([3.0] * 20, [0.0] * 20, delta=0)
    axes = audit.plot(claim=dpv.ApproxDP(epsilon=1))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[0] == "allowed by ApproxDP(epsilon=1, delta=0)"
    assert len(labels) == 4
    (region,) = axes.collections
    corners = region.get_paths()[0].vertices
    top = corners[np.isclose(corners[:, 0], 1 / (1 + math.e), atol=5e-3)][:, 1].max()
    assert top == pytest.approx(math.e / (1 + math.e), abs=2e-2)


RUNS = (["a", "b", "b"], ["c", "d", "e"])
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"delta": 1}, r"delta=1 must be in \[0, 1\)"),
    ({"alpha": 0}, "alpha=0 must be in"),
    ({"design": "paired"}, "design=paired must be independent or one-run"),
    ({"without": [0.0, math.nan]}, r"without\[1\]=nan must be a number."),
    ({"with_": [0, 1, 2**53]}, r"with_\[2\]=9007199254740992 must be a number that a double holds"),
    ({"with_": np.array([1, 2, 3]) + np.longdouble(2) ** -60}, r"with_\[0\]=1.00000000000000000"),
    ({"without": ["a", "b"]}, "must be a row of at least 2 numbers"),
    ({"with_": [1.0]}, "must be a row of at least 2 numbers"),
    ({"with_": [[1.0], [2.0, 3.0]]}, "rows of several lengths must be a row"),
    ({"with_": np.ma.array([1.0, 2.0, 3.0], mask=[False, False, True])}, "Leave the masked out"),
    ({"delta": "0.9999999999999999999"}, "must be below 1 as a double"),
    ({"with_": [[1.0, 2], [3, 4]]}, "Reduce each run to one score, or say design='one-run'"),
    ({"runs": RUNS}, "runs=2 scores of run b must be different for independent scores"),
    ({"runs": ([[1], [2], [2]], [[3], [4], [5]])}, r"runs=2 scores of run \[2\] must be different"),
    ({"runs": ([math.nan, 1, float("nan")], [2, 3, 4])}, "runs=2 scores of run nan"),
    ({"runs": (["a"], ["b"])}, r"runs=of lengths \(1, 1\) must be .* one for each score, 3 and 3"),
    ({"runs": 3}, "runs=3 must be two rows of names"),
    ({"design": "one-run", "with_": [1.0] * 100}, "100 canaries in and 3 out must be with as many"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    words: dict[str, Any] = {"with_": [1.0, 2, 3], "without": [0.0, 0, 1], "delta": Fraction(0)}
    words |= changes
    with pytest.raises(ParameterError, match=message):
        dpv.audit_scores(words.pop("with_"), words.pop("without"), **words)


def test_canaries_of_one_run_may_be_of_one_run() -> None:
    dpv.audit_scores([1.0, 2, 3], [0.0, 0, 1], delta=0, design="one-run", runs=RUNS)


@pytest.mark.parametrize("number", [8, 9, 12])
def test_a_single_score_to_learn_from_has_no_spread(number: int) -> None:
    """Where warnings are errors, as they are here, it ended in one."""
    told = dpv.audit_scores(-np.zeros(number), np.random.default_rng(1).normal(size=20), delta=0)
    assert told.epsilon_lower > 0
