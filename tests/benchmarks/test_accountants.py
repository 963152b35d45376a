"""The benchmark of accountants: its truths, its counts, and the protocol with other libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

from benchmarks import truth as truths
from benchmarks.accountants import Answers, Summary, summary
from benchmarks.peers.dpverify import ours
from benchmarks.peers.protocol import Case, Reply
from benchmarks.truth import truth
from dpverify.accounting.curves.laplace import Laplace
from dpverify.enclosure import Enclosure
from dpverify.errors import NumericalError
from tests.helpers.paths import ROOT

GAUSSIAN = Case(mechanism="gaussian", parameter=10.0, count=1000, solve="epsilon", given=1e-12)
CURVE = Case(mechanism="gaussian", parameter=1.0, count=1, solve="delta", given=1.0)
COINS = Case(
    mechanism="randomized-response", parameter=0.525, count=300, solve="epsilon", given=1e-100
)

LIBRARY = """
import os, sys, time
from benchmarks.peers.protocol import Method, serve
def answer(case):
    print("noise")
    if case.count == 1:
        return case.given
    if case.count == 2:
        raise ValueError("no")
    if case.count == 3:
        time.sleep(60)
    if case.count == 4:
        os.abort()
serve("numpy", {"method": Method(claim="upper", answer=answer)})
"""


@pytest.mark.parametrize("case", [GAUSSIAN, CURVE, COINS])
@pytest.mark.parametrize("moved", [Fraction(1), 1 + Fraction(1, 10**12), 1 - Fraction(1, 10**12)])
def test_mpmath_confirms_only_the_truth(
    case: Case, moved: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ours(case)
    given = Enclosure(float(moved * Fraction(right.lower)), float(moved * Fraction(right.upper)))
    monkeypatch.setattr(truths, "ours", lambda _: given)
    if moved == 1:
        assert truth(case) == right
    else:
        with pytest.raises(NumericalError, match="contradicts"):
            truth(case)


@pytest.mark.parametrize(("count", "delta"), [(200, 1e-9), (400, 1e-12)])
def test_laplace_integral_agrees_with_the_closed_form(count: int, delta: float) -> None:
    integral = truths._contour_root(Fraction(1), count, delta)
    assert integral is not None
    closed = Laplace.of_shifts(((Fraction(1), count),)).epsilon_at(delta)
    assert max(integral.lower, closed.lower) <= min(integral.upper, closed.upper)
    assert integral.width < 1e-12


def test_summary_counts_each_kind_of_reply() -> None:
    def reply(value: float | None, error: str = "") -> Reply:
        return Reply(value=value, error=error, seconds=1.0, memory=1)

    exact = Enclosure(1.0, 1.0)
    replies = [reply(0.5), reply(1.25), reply(1.0), reply(None, "no"), reply(float("inf"))]
    replies += [reply(-1.0), reply(None, "no"), reply(None)]  # the last is not offered
    answers = Answers(library="x", version="1", method="m", claim="upper", replies=())
    assert summary("grid", answers, replies, [exact] * 8) == Summary(
        grid="grid",
        method="x: m",
        claim="upper",
        asked=7,
        answers=3,
        failures=4,
        reason="no",
        below=1,
        shortfall=0.5,
        excess=0.125,
        worst_excess=0.25,
        seconds=1.0,
        memory=1,
    )
    wide = summary("grid", answers, [reply(0.5), reply(2.0)], [Enclosure(1.0, 3.0)] * 2)
    assert wide is not None
    assert (wide.below, wide.excess) == (1, None)


def test_protocol_survives_noise_errors_time_limits_and_crashes() -> None:
    cases: list[dict[str, Any]] = [
        {"mechanism": "laplace", "parameter": 1.0, "count": n, "solve": "delta", "given": 0.1}
        for n in range(1, 6)
    ]
    done = subprocess.run(
        [sys.executable, "-c", LIBRARY],
        input=json.dumps({"limit": 1, "repeat": 1, "cases": cases}),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    replies = json.loads(done.stdout)["methods"]["method"]["replies"]
    assert [reply["value"] for reply in replies] == [0.1, None, None, None, None]
    errors = [reply["error"] for reply in replies]
    assert errors == ["", "ValueError: no", "over 1 s", "SIGABRT", ""]
