"""How often an audit calls what it audits: kinds share their draws, and stop where all is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpverify.auditing.audit import audit
from dpverify.auditing.report import Report
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.columns import Integers
from dpverify.data.table import Table
from dpverify.privacy import Pair

DRAWS = 2000
PAIR = Pair(name="one more", record=[{"n": 1}], neighbour=[{"n": 1}, {"n": 1}])
PEOPLE = Table({"n": Integers(0, 1)}, rows=(0, 4))
Release = Callable[[Any, Any], Any]


def noisy(people: Any, rng: Any) -> float:
    return len(people) + float(rng.laplace(scale=2))


def halved(people: Any, rng: Any) -> float:
    return len(people) + float(rng.laplace(scale=0.25))


def exact(people: Any, rng: Any) -> list[float]:
    return [len(people), float(rng.laplace())]


def audited(release: Release, **words: Any) -> tuple[Report, int]:
    """The report, and how often the function was called for it."""
    calls = 0

    def counting(people: Any, rng: Any) -> Any:
        nonlocal calls
        calls += 1
        return release(people, rng)

    words = {"draws": DRAWS, "seed": 1, "workers": 1, "epsilon": 1} | words
    report = audit(counting, adjacency=AddRemove(), domain=PEOPLE, **words)
    return report, calls


@pytest.mark.parametrize("other", ["trade-off", "determinism"])
def test_kinds_that_look_at_outputs_share_their_draws(other: Any) -> None:
    words: Any = {"pairs": [PAIR], "draws": 200}
    alone, calls = audited(noisy, kinds=["black-box"], **words)
    single, _ = audited(noisy, kinds=[other], **words)
    both, together = audited(noisy, kinds=["black-box", other], **words)
    own = 200 if other == "determinism" else 0  # consecutive releases
    assert together <= calls + own
    for report in (alone, single):
        numbers = [finding.evidence for finding in report.findings]
        assert numbers == [f.evidence for f in both.findings if f.audit == report.findings[0].audit]


@pytest.mark.nightly
def test_precision_and_bets_draw_next_to_nothing_beside_others() -> None:
    words: Any = {"pairs": [PAIR], "draws": 400}
    _, calls = audited(noisy, kinds=["black-box"], **words)
    report, together = audited(noisy, kinds=["precision", "black-box", "sequential"], **words)
    layout = 2 * 32
    assert together == calls + layout
    assert "SequentialAttack(beside=True)" in report.findings[-1].replay
    alone, single = audited(noisy, kinds=["sequential"], **words)
    assert 2 * 400 <= single < calls
    assert "beside" not in alone.findings[0].replay


@pytest.mark.nightly
@pytest.mark.parametrize("release", [noisy, halved])
def test_of_two_pairs_that_a_search_leaves_one_is_attacked(release: Release) -> None:
    words: Any = {"draws": 400, "brief": False}
    report, calls = audited(release, kinds=["black-box", "sequential"], **words)
    assert len({finding.pair.name for finding in report.findings if finding.pair}) == 1
    assert [finding.audit for finding in report.findings] == ["black-box", "sequential"]
    _, more = audited(release, kinds=["black-box", "sequential", "precision"], **words)
    assert len(audited(noisy, kinds=["sequential"], **words)[0].findings) == 2  # no training
    # Precision looks at the other one too, unless the claim is refuted.
    assert report.verdict == ("violation" if release is halved else "no_violation_found")
    assert more - calls == (0 if release is halved else 2 * 400)


def test_pairs_that_are_given_are_all_attacked() -> None:
    turned = Pair(name="one less", record=PAIR.neighbour, neighbour=PAIR.record)
    report, _ = audited(halved, kinds=["black-box"], pairs=[PAIR, turned])
    assert [finding.verdict for finding in report.findings] == ["violation"] * 2


@pytest.mark.nightly
def test_what_tells_all_outputs_apart_needs_no_more_training() -> None:
    report, calls = audited(exact, kinds=["black-box"], pairs=[PAIR])
    assert report.epsilon_lower > 5
    _, others = audited(halved, kinds=["black-box"], pairs=[PAIR])
    memory = 2 * (50 + 1000)  # releases that show that what never changes isn't kept
    assert others - calls == 2 * (2 * DRAWS - 1000) - memory


@pytest.mark.nightly
def test_a_shrink_glances_first() -> None:
    calls, draws = 0, 10_000

    def release(people: Any, rng: Any) -> float:
        nonlocal calls
        calls += 1
        return float(sum(person["n"] >= 37 for person in people) + rng.laplace(scale=0.3))

    people = Table({"n": Integers(0, 100), "m": Integers(0, 9)}, rows=5)
    words: Any = {"epsilon": 1, "adjacency": Replace(), "domain": people, "workers": 1}
    report = audit(release, kinds=["sequential"], draws=draws, seed=1, **words)
    pair = report.violations[0].pair
    assert pair is not None
    assert sorted(row["n"] for side in (pair.record, pair.neighbour) for row in side)[-2:] == [
        0,
        37,
    ]
    glances, race, each = 2560, 2 * draws, 2 * draws // 10  # of up to 40 simpler pairs
    assert calls < glances + race + 20 * each + 600
