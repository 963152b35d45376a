"""Determinism: noise that isn't fresh and behaviour that depends on the data, and the twins."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing import engine
from dpverify.auditing.attacks import _coincidences
from dpverify.auditing.attacks._behaviour import Trial
from dpverify.auditing.attacks._coincidences import _fewest_draws
from dpverify.auditing.attacks.determinism import DeterminismAttack
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding
from dpverify.auditing.request import Selection
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words
from dpverify_audits.planted import SUITE
from tests.helpers.attacks import attacked, evidence_of
from tests.helpers.profiles import day_and_night, thinned

PAIR = Pair(name="0 or 1", record=np.zeros((1, 2)), neighbour=np.array([[1.0, 0.0]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Mechanism):
    """A function of (records, numpy generator), with a claim."""

    function: Callable[[Any, np.random.Generator], Any]
    epsilon: Fraction = Fraction(1)

    @property
    def adjacency(self) -> Attribute:
        return Attribute(beta=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> Any:
        seed = int(rng.words(1)[0])
        return self.function(records, np.random.Generator(np.random.PCG64(seed)))

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=self.epsilon)


def laplace(x: Any, rng: np.random.Generator) -> Any:
    return np.round((x + rng.laplace(0.0, 1.0, x.shape)) * 64) / 64


def flipped(x: Any, rng: np.random.Generator) -> Any:
    return (x[:, :1] > 0) ^ (rng.random((len(x), 1)) < 1 / (1 + np.e))


def constant(x: Any, rng: np.random.Generator) -> Any:
    return np.zeros(x.shape)


def one_vector_for_all_rows(x: Any, rng: np.random.Generator) -> Any:
    return x + rng.laplace(0.0, 1.0, x.shape[1])


def one_coin_for_all_rows(x: Any, rng: np.random.Generator) -> Any:
    return (x[:, :1] > 0) ^ (rng.random() < 1 / (1 + np.e))


def seeded_inside(x: Any, rng: np.random.Generator) -> Any:
    return x + np.random.default_rng(7).laplace(0.0, 1.0, x.shape)


def raises_on_data(x: Any, rng: np.random.Generator) -> Any:
    if x[0, 0] > 0:
        raise ValueError("too large")
    return laplace(x, rng)


def always_raises(x: Any, rng: np.random.Generator) -> Any:
    raise ValueError("never works")


def length_by_data(x: Any, rng: np.random.Generator) -> Any:
    return laplace(x, rng)[:, : 1 + np.count_nonzero(x)]


def type_by_data(x: Any, rng: np.random.Generator) -> Any:
    return laplace(x, rng).astype(np.float32 if x[0, 0] else np.float64)


def empty_bins_without_noise(x: Any, rng: np.random.Generator) -> Any:
    return np.where(x != 0, laplace(x, rng), 0.0)


class Reusing:
    """Uses every noise vector twice."""

    def __init__(self) -> None:
        self.kept: Any = None

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        if self.kept is None:
            self.kept = rng.laplace(0.0, 1.0, x.shape)
            return x + self.kept
        noise, self.kept = self.kept, None
        return x + noise


def audit(mechanism: Any, pairs: Any, *, processes: bool = True, **settings: Any) -> list[Finding]:
    workers = -1 if processes else 1
    return attacked(
        DeterminismAttack(), mechanism, pairs, **STANDARD | {"workers": workers} | settings
    )


STANDARD: dict[str, Any] = {"delta": Fraction(0), "draws": 1000}


def run(function: Any, *, processes: bool = False) -> dict[str, Finding]:
    findings = audit(Subject(function=function), [PAIR], processes=processes)
    return {evidence_of(finding).check: finding for finding in findings}


@pytest.mark.parametrize("function", [laplace, flipped, constant])
def test_correct_mechanisms_are_not_accused(function: Any) -> None:
    findings = run(function)
    assert {finding.verdict for finding in findings.values()} == {"no_violation_found"}


@pytest.mark.parametrize(
    ("function", "checks"),
    thinned(
        [
            (one_vector_for_all_rows, "rows"),
            (one_coin_for_all_rows, "rows"),
            (Reusing(), "consecutive releases"),
            (raises_on_data, "dependence"),
            (seeded_inside, "dependence, consecutive releases"),
            (type_by_data, "dependence"),
            (length_by_data, "dependence"),
            (empty_bins_without_noise, "dependence, consecutive releases, rows"),
        ],
        2,
        rows=True,
    ),
)
def test_bugs_are_accused(function: Any, checks: str) -> None:
    findings = run(function)
    accusing = {name for name, finding in findings.items() if finding.verdict == "violation"}
    assert accusing == set(checks.split(", "))


class Counting:
    """Gives the release's number, or what changes with every so many, beside a noisy bit."""

    def __init__(self, every: int) -> None:
        self.every, self.releases = every, 0

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        self.releases += 1
        return [[self.releases // self.every, *row] for row in flipped(x, rng)]


def in_a_code_of_the_release(x: Any, rng: np.random.Generator) -> Any:
    """A code that all rows share shows of them whether two are equal, and no more."""
    return rng.integers(2**32, size=2)[flipped(x, rng).astype(int)]


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(Counting(1), marks=pytest.mark.nightly),
        Counting(100),
        in_a_code_of_the_release,
    ],
)
def test_what_releases_share_beside_their_noise_is_no_violation(function: Any) -> None:
    """Each output is private whatever came before: equal ones alone prove nothing."""
    processes = isinstance(function, Counting) and function.every == 1
    findings = run(function, processes=processes)
    assert "violation" not in {finding.verdict for finding in findings.values()}, findings
    evidence = evidence_of(findings["rows"])
    assert evidence.hits > 0 < evidence.false_hits


@pytest.mark.nightly
def test_copies_of_a_generator_are_no_seed_in_the_code() -> None:
    """What is sent to fresh processes has the state that it has here."""
    generator = np.random.default_rng()

    def noisy(x: Any, rng: np.random.Generator) -> Any:
        return x + generator.laplace(size=x.shape)

    found = run(noisy, processes=True)["fresh processes"]
    assert found.verdict == "inconclusive"
    assert "processes get copies" in found.statement


def at_its_claim(x: Any, rng: np.random.Generator) -> Any:
    """Equal outputs attain ε = 1: what isn't 0, e times as rare for one side, is never the same."""
    chance = np.where(x[:, :1] > 0, 1 / (1 + np.e), np.e / (1 + np.e))
    return np.where(rng.random((len(x), 1)) < chance, 0.0, 1 + rng.random((len(x), 1)))


def test_noise_that_is_too_little_is_not_said_to_be_none() -> None:
    """Fresh noise, but for a larger ε: outputs of the record are mostly 0, and 1 beside it."""

    def seldom_other(x: Any, rng: np.random.Generator) -> Any:
        return np.where(rng.random((len(x), 1)) < 0.98, x[:, :1], 1 - x[:, :1])

    findings = audit(Subject(function=seldom_other), [PAIR], processes=False, draws=400)
    said = [each.statement for each in findings if each.verdict == "violation"]
    assert said[0].endswith("of the neighbour do: the noise isn't fresh, or too little")


@pytest.mark.nightly
def test_equal_outputs_keep_the_level_where_they_attain_the_claim() -> None:
    runs, alpha, subject = 200, 0.2, Subject(function=at_its_claim)
    accused = 0
    for seed in range(runs):
        findings = audit(subject, [PAIR], processes=False, draws=120, alpha=alpha, seed=seed)
        accused += any(finding.verdict == "violation" for finding in findings)
    assert 0 < accused <= binom.ppf(1 - 1e-4, runs, alpha)


class Ending(Mechanism):
    """Its budget ends between, or after, the releases of the two sides."""

    adjacency = Attribute(beta=Fraction(1))

    def __init__(self, budget: int) -> None:
        self.left = budget

    def release(self, records: Any, *, rng: Words) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the budget has ended")
        return laplace(records, np.random.default_rng(int(rng.words(1)[0])))

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=Fraction(1))


@pytest.mark.parametrize("budget", day_and_night(3005, 2500, 3500, 4000))
def test_a_budget_that_ends_is_no_dependence_on_the_data(budget: int) -> None:
    findings = audit(Ending(budget), [PAIR], draws=1000, processes=False)
    assert "violation" not in {finding.verdict for finding in findings}


def test_a_number_of_words_that_depends_on_the_data_is_a_remark() -> None:
    @dataclass(frozen=True)
    class Hungry(Subject):
        def release(self, records: Any, *, rng: Words) -> Any:
            rng.words(1 + int(records.sum()))
            return Subject.release(self, records, rng=rng)

    found = {
        evidence_of(f).check: f for f in audit(Hungry(function=laplace), [PAIR], processes=False)
    }
    assert found["dependence"].verdict == "no_violation_found"
    assert "Beside the output, the number of random words" in found["dependence"].statement


def test_a_mechanism_that_never_works_is_inconclusive() -> None:
    assert {finding.verdict for finding in run(always_raises).values()} == {"inconclusive"}


def test_draws_too_few_for_the_claim_are_inconclusive() -> None:
    findings = audit(Subject(function=laplace, epsilon=Fraction(9)), [PAIR], processes=False)
    assert findings[-1].verdict == "inconclusive"


STATE = """
import numpy as np

seeded = np.random.default_rng(11)
entropy = np.random.default_rng()

def shared(x, rng):
    return x + seeded.laplace(0.0, 1.0, x.shape)

def inherited(x, rng):
    return x + entropy.laplace(0.0, 1.0, x.shape)

def fresh(x, rng):
    return x + rng.laplace(0.0, 1.0, x.shape)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "accused"),
    [
        ("shared", {"fresh processes"}),
        ("inherited", set()),
        ("fresh", set()),
    ],
)
def test_seeds_and_states_shared_by_processes(
    name: str, accused: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noise_state.py").write_text(STATE)
    (tmp_path / "noise_subject.py").write_text(SUBJECT)
    monkeypatch.syspath_prepend(str(tmp_path))
    function = getattr(importlib.import_module("noise_state"), name)
    subject = importlib.import_module("noise_subject").Subject(function)
    findings = audit(subject, [PAIR])
    found = {evidence_of(f).check for f in findings if f.verdict == "violation"}
    assert found == accused, [finding.statement for finding in findings]
    remarks = {finding.remark for finding in findings} - {""}
    assert bool(remarks) == (name != "fresh"), remarks


SUBJECT = """
from fractions import Fraction
import numpy as np
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import Attribute

class Subject:
    adjacency = Attribute(1)

    def __init__(self, function):
        self.function = function

    def release(self, records, *, rng):
        return self.function(records, np.random.Generator(np.random.PCG64(int(rng.words(1)[0]))))

    def privacy(self):
        return ApproxDP(epsilon=Fraction(1))
"""


def test_what_cannot_be_sent_to_a_process_is_inconclusive() -> None:
    lock = threading.Lock()

    def locked(x: Any, rng: np.random.Generator) -> Any:
        with lock:
            return laplace(x, rng)

    findings = run(locked, processes=True)
    assert findings["fresh processes"].verdict == "inconclusive"
    assert findings["forked workers"].verdict == "no_violation_found"


def test_findings_are_the_same_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unmade(trial: Trial, pair: Pair, name: str) -> Iterator[Callable[[], Finding]]:
        yield lambda: trial.unable(pair, name, "this test starts none")

    monkeypatch.setattr(_coincidences, "between", unmade)
    alone, beside = (run(laplace, processes=processes) for processes in (False, True))
    assert alone.items() <= beside.items()
    assert len(alone) == len(beside) - 2


def test_a_generator_that_forked_workers_share_is_remarked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each release keeps its claim: what workers would share is told, and accuses nobody."""

    def noisy(x: Any, rng: np.random.Generator) -> Any:
        return x + np.random.laplace(size=x.shape)  # noqa: NPY002 - as users write

    monkeypatch.delitem(_coincidences.STARTS, "fresh processes")  # which take seconds to start
    findings = run(noisy, processes=True)
    assert "violation" not in {finding.verdict for finding in findings.values()}
    assert "each of them needs a new seed" in findings["forked workers"].remark


@pytest.mark.nightly
def test_a_script_is_not_run_again(tmp_path: Path) -> None:
    """By a process that is started for it, without a guard of the script's own."""
    script = tmp_path / "script.py"
    script.write_text("""
import dpverify as dpv

def noisy(x, rng):
    return x + rng.laplace(size=1)

report = dpv.audit(noisy, epsilon=1, adjacency=dpv.Attribute(1), of="record", attributes=1,
                   kinds=["determinism"], draws=40)
print([(finding.evidence.check, finding.verdict) for finding in report.findings])
""")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout.count("('fresh processes', 'no_violation_found')") == 1
    assert run.stdout.count("\n") == 1
    assert run.stderr == ""


@pytest.mark.nightly
@pytest.mark.parametrize("bug", SUITE, ids=lambda bug: bug.name)
def test_twins_of_the_planted_bugs_are_not_accused(bug: Any) -> None:
    twin = bug.twin()
    findings = audit(
        twin, twin.worst_pairs()[:1], delta=Fraction(1, 1000), draws=200, processes=False
    )
    for finding in findings:
        assert finding.verdict != "violation", finding.statement


def vector(record: Any, rng: np.random.Generator) -> Any:
    return (record + rng.laplace(size=2)).tolist()


def test_rows_of_a_function_that_gives_a_list_are_compared() -> None:
    """A single row's output stands as the function gives it, without a place for rows."""
    claim = ApproxDP(epsilon=1)
    mechanism = adapt(vector, adjacency=Attribute(1), claim=claim, of="record", attributes=2)
    first, *_ = attacked(DeterminismAttack(), mechanism, [PAIR], draws=40, workers=1)
    assert first.verdict == "no_violation_found"
    assert "rows: 0 of" in first.statement


class TestFewestDraws:
    """Processes and brief audits draw no more than tell noise that is always the same."""

    @staticmethod
    def fewest(epsilon: Fraction, draws: int) -> int:
        subject = Subject(function=laplace, epsilon=epsilon)
        config = AuditConfig(draws=draws, alpha=1e-4, seed=1)
        return _fewest_draws(Trial(mechanism=subject, config=config))

    def test_all_where_the_claim_allows_much(self) -> None:
        assert self.fewest(Fraction(8), 2000) == 2000

    def test_they_refute(self) -> None:
        for epsilon in (Fraction(1, 10), Fraction(1)):
            each = self.fewest(epsilon, 2000) // 2
            counts = Counts(hits=each, draws=each, false_hits=each // 4, false_draws=each)
            curve = ApproxDP(epsilon=epsilon)
            assert 2 * each < 2000
            assert judge(counts, curve, Fraction(0), 1e-4).refuted_at is not None

    def test_a_brief_audit_finds_kept_noise(self) -> None:
        brief = audit(Subject(function=Reusing()), [PAIR], processes=False, brief=True)
        consecutive = next(f for f in brief if evidence_of(f).check == "consecutive releases")
        assert consecutive.verdict == "violation"
        assert evidence_of(consecutive).draws < STANDARD["draws"] // 4


@pytest.mark.parametrize("function", [laplace, seeded_inside])
def test_processes_are_at_work_while_other_attacks_are_made(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin before the second one, and end with the audit, also where it ends early."""
    told: list[str] = []
    children: list[Any] = []

    def noted(start: Any, work: Any, sender: Any) -> Any:
        told.append("started")
        children.append(start(work, sender))
        return children[-1]

    starts = {"forked workers": partial(noted, _coincidences.STARTS["forked workers"])}
    monkeypatch.setattr(_coincidences, "STARTS", starts)  # the others take seconds to start
    report = engine.run(
        Subject(function=function),
        AuditConfig(draws=200, seed=1, brief=True),
        Selection(pairs=[PAIR]),
        progress=told.append,
    )
    broken = report.verdict == "violation"
    assert broken == (function is seeded_inside)
    assert told[:4] == [told[0], *["started"] * 3]
    assert broken == ("determinism" not in told)
    assert all(child.exitcode is not None for child in children)
