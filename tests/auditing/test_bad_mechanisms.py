"""Mechanisms that go wrong at a later draw: never a silent pass, in no kind of audit."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing import engine
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import AuditKind
from dpverify.auditing.outputs.foreign import foreign_code
from dpverify.auditing.outputs.samples import one_side
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.errors import DrawError
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import Words
from tests.helpers.profiles import crossed, day_and_night

PAIR = Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
UNIT = Attribute(beta=Fraction(1))
LATER = 250
KINDS: tuple[AuditKind, ...] = ("precision", "white-box", "black-box", "sequential")
CLAIM: dict[str, Any] = {
    "epsilon": 1,
    "adjacency": UNIT,
    "of": "record",
    "pairs": [PAIR],
    "search": False,
    "workers": 1,
}
LIMITS = {"hangs": 0.2}
_TURNED = "keeps state: from some release on it gave"
FAULTS = {
    "raises": f"{_TURNED} raises RuntimeError where it had given float64 array of shape (1, 1)",
    "hangs": "took longer than",
    "NaN": f"{_TURNED} float64 array of shape (1, 1), NaN among them",
    "shape": f"{_TURNED} float64 array of shape (2, 1)",
    "text": f"{_TURNED} array of list[list[str]] where it had given float64 array of shape (1, 1)",
}


@dataclass(frozen=True, slots=True)
class Tired(WhiteBox):
    """Whole numbers with Laplace noise, until it has released `LATER` times on both sides."""

    fault: str
    released: list[int] = field(default_factory=lambda: [0])
    adjacency: Attribute = UNIT
    noise: RoundedLaplace = field(default_factory=lambda: RoundedLaplace(scale=1.0))

    def release(self, records: Any, *, rng: Words) -> Any:
        self.released[0] += 1
        output = np.asarray(records) + self.noise.sample(records.shape, rng=rng)
        if self.released[0] <= LATER:
            return output
        match self.fault:
            case "raises":
                raise RuntimeError("no more")
            case "hangs":
                while True:
                    time.sleep(0.01)
            case "NaN":
                return output * np.nan
            case "shape":
                return np.concatenate([output, output])
        return np.array([["seven"]])

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=Fraction(1))

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        values = outputs.reshape(len(outputs)).astype(float)
        ratios: NDArray[np.float64] = abs(values - neighbour.item()) - abs(values - record.item())
        return ratios

    def worst_pairs(self) -> tuple[Pair, ...]:
        return (PAIR,)


@pytest.mark.parametrize(("fault", "kind"), crossed(FAULTS, KINDS))
def test_a_later_fault_is_named_with_its_pair_and_nothing_is_passed(
    fault: str, kind: AuditKind
) -> None:
    report = audit(
        Tired(fault), kinds=[kind], draws=400, workers=1, time_limit=LIMITS.get(fault, 10.0)
    )
    (finding,) = report.findings
    assert report.verdict == finding.verdict == "inconclusive"
    assert finding.failed
    assert f"Tired {FAULTS[fault]}" in finding.statement
    assert "on the pair '0 or 1'" in finding.statement


def test_one_kind_that_fails_makes_the_whole_inconclusive() -> None:
    report = audit(Tired("raises"), kinds=["white-box", "black-box"], draws=60, workers=1)
    assert [finding.verdict for finding in report.findings] == [
        "no_violation_found",
        "inconclusive",
    ]
    assert report.verdict == "inconclusive"


class FoundError(BaseException):
    """Of no base that `except Exception` catches."""


@pytest.mark.parametrize(
    ("kind", "base"),
    crossed(
        ["black-box", "determinism", "grey-box"],
        [FoundError, asyncio.CancelledError, GeneratorExit],
    ),
)
def test_what_is_raised_is_an_output_of_whatever_base(
    base: type[BaseException], kind: AuditKind
) -> None:
    def tells(data: Any, rng: Any) -> float:
        if data[0]:
            raise base("found")
        return float(rng.laplace())

    assert audit(tells, kinds=[kind], draws=100, **CLAIM).verdict == "violation"


def test_what_is_always_raised_is_said() -> None:
    def cancelled(data: Any, rng: Any) -> float:
        raise asyncio.CancelledError("no")

    report = audit(cancelled, draws=100, **CLAIM)
    assert report.verdict == "inconclusive"
    assert "raised CancelledError: no" in str(report)


SEARCHED = CLAIM | {"pairs": None, "search": True, "attributes": 1, "domain": Box(0, 1)}


@pytest.mark.parametrize("asked", [SEARCHED, CLAIM], ids=["searched", "pairs"])
def test_what_always_raises_is_not_drawn_from_for_long(asked: dict[str, Any]) -> None:
    calls = []

    def broken(data: Any, rng: Any) -> float:
        calls.append(data)
        raise LookupError("no column")

    report = audit(broken, draws=10_000, **asked)
    assert report.verdict == "inconclusive"
    assert "raised LookupError: no column" in report.failed[0]
    assert ("at all" in report.failed[0]) == asked["search"]
    assert len(calls) < 5_000


@pytest.mark.parametrize("fits", day_and_night(lambda v: v == 0, lambda v: v > 0.9))
def test_what_raises_at_most_data_sets_is_audited(fits: Callable[[float], bool]) -> None:
    def picky(data: Any, rng: Any) -> float:
        if not fits(data[0]):
            raise LookupError("no column")
        return float(rng.laplace())

    assert audit(picky, draws=200, **SEARCHED).verdict == "violation"


def test_what_is_always_late_is_not_waited_for_long() -> None:
    begun = 0

    def release(data: Any, rng: Any) -> float:
        nonlocal begun
        begun += 1
        time.sleep(100)
        return 0.0

    report = audit(release, **CLAIM | {"draws": 200, "workers": 1, "time_limit": 0.05})
    assert begun <= 2
    assert report.verdict == "inconclusive"
    assert "longer than 0.05 s" in report.failed[0]


def test_what_is_always_raised_in_other_words_is_an_output() -> None:
    def tells(data: Any, rng: Any) -> float:
        raise ValueError(f"{data[0] > 0}")

    assert audit(tells, draws=300, **CLAIM).verdict == "violation"


def test_an_interruption_from_the_keyboard_ends_the_audit() -> None:
    def interrupted(data: Any, rng: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(interrupted, draws=100, **CLAIM)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_comes_back_is_not_the_audits(tmp_path: Path) -> None:
    def forks(data: Any, rng: Any) -> float:
        if os.fork():
            os.wait()
        return float(rng.laplace())

    mechanism = adapt(forks, of="record", adjacency=UNIT, claim=ApproxDP(epsilon=Fraction(1)))
    outputs = one_side(mechanism, PAIR, 0, 3, (1, "fork"), 10.0)
    with (tmp_path / "processes").open("a") as file:
        file.write(f"{len(outputs)}\n")
    assert (tmp_path / "processes").read_text() == "3\n"


@pytest.mark.parametrize("kind", ["determinism", "grey-box"])
def test_a_later_wait_ends(kind: AuditKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "pace", lambda *_: 0.0)  # of as many releases as there is time for
    start = time.perf_counter()
    tired = Tired("hangs", released=[LATER - 29])
    report = audit(tired, kinds=[kind], draws=400, workers=1, time_limit=0.1)
    assert report.verdict == "inconclusive"
    assert any("took longer than 0.1 s" in finding.statement for finding in report.findings)
    assert time.perf_counter() - start < 20


@dataclass(frozen=True, slots=True)
class Shapes(Tired):
    """As many values as the data says."""

    def release(self, records: Any, *, rng: Words) -> Any:
        noisy = Tired.release(self, records, rng=rng)
        return np.repeat(noisy, 1 + int(records[0, 0]), axis=1)


@pytest.mark.parametrize("kind", ["determinism", "grey-box"])
def test_a_shape_that_depends_on_the_data_is_a_violation(kind: AuditKind) -> None:
    tired = Shapes("none", released=[-(10**6)])
    report = audit(tired, kinds=[kind], draws=200, workers=1)
    assert report.verdict == "violation"
    assert any("shape" in finding.statement for finding in report.violations)
    assert not report.failed


def test_no_exception_handler_of_a_mechanism_stops_the_clock() -> None:
    def stubborn() -> None:
        try:
            while True:
                time.sleep(0.01)
        except Exception:
            stubborn()

    with pytest.raises(DrawError, match="took longer"):
        foreign_code(stubborn, "stubborn", PAIR, 0, (), 0.05)


def test_an_audit_that_would_take_hours_is_not_begun() -> None:
    calls = []

    def slow(data: Any, rng: Any) -> float:
        calls.append(1)
        time.sleep(0.001)
        return float(rng.laplace())

    told: list[str] = []
    report = audit(slow, **CLAIM, draws=10**6, time_limit=1.0, progress=told.append)
    assert report.verdict == "inconclusive"
    assert not report.findings
    assert "1,000 times the time limit of 1 s for one release. Ask for" in report.failed[0]
    assert len(calls) < 100
    assert told == []
    audit(slow, **CLAIM, draws=20, kinds=["black-box"], time_limit=10.0)
    assert len(calls) > 100


def test_an_audit_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def slow_later(data: Any, rng: Any) -> float:
        calls.append(1)
        time.sleep(0.005 if len(calls) > 200 else 0)
        return float(rng.laplace())

    monkeypatch.setattr(AuditConfig, "longest", 1.0)
    monkeypatch.setattr(engine, "pace", lambda *_: 1e-5)  # as where nobody else uses the machine
    report = audit(slow_later, **CLAIM, kinds=["black-box"], draws=400, time_limit=0.05)
    assert report.verdict == "inconclusive"
    assert "slow_later took all the time that an audit may take" in str(report)
    assert len(calls) < 900


class UnsayableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("raised", "kind"),
    crossed([UnsayableError(), RuntimeError("x" * 12_000)], [*KINDS, "determinism", "grey-box"]),
)
def test_what_is_raised_is_said_in_short(raised: Exception, kind: AuditKind) -> None:
    """An exception whose own text fails, and one of twelve thousand characters."""

    class Raises(Tired):
        def release(self, records: Any, *, rng: Words) -> Any:
            raise raised

    report = audit(Raises("raises"), kinds=[kind], draws=60, workers=1)
    said = "".join([*report.failed, *(finding.statement for finding in report.findings)])
    assert report.verdict == "inconclusive"
    assert type(raised).__name__ in said
    assert len(said) < 10_000


def test_the_interpreter_is_as_an_audit_needs_it() -> None:
    """Later imports, our own calls and prints would end in a bare error."""
    depth, places = sys.getrecursionlimit(), list(sys.path)
    streams = [os.fstat(descriptor) for descriptor in (0, 1, 2)]

    def careless() -> None:
        sys.path = ["mine"]
        sys.setrecursionlimit(depth - 1)
        for descriptor in (0, 1, 2):
            os.close(descriptor)

    foreign_code(careless, careless, PAIR, 0, (), 1)
    try:
        assert sys.getrecursionlimit() == depth
        assert sys.path == ["mine", *places]
        assert [os.fstat(descriptor) for descriptor in (0, 1, 2)] == streams
    finally:
        sys.path = places


@pytest.mark.parametrize(
    ("kind", "leave"),
    crossed(["sequential", "determinism", "grey-box"], [sys.exit, os._exit]),
)
def test_a_release_that_exits_does_not_end_the_audit(
    kind: AuditKind, leave: Callable[[int], Any]
) -> None:
    name = leave.__name__

    def exits(data: Any, rng: Any) -> float:
        if np.sum(data) > 0.5:
            getattr(os, name, sys.exit)(3)  # by 0 pytest, too, would end as if all had passed
        return float(rng.laplace())

    report = audit(exits, **CLAIM, kinds=[kind], draws=200)
    assert report.verdict == "violation"
