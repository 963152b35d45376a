"""Every planted release is found by the audits that it names; its correct twin isn't accused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from dpverify.auditing.findings import AuditKind, Verdict
from dpverify.auditing.run import audit
from dpverify_audits.planted import RELEASES, SUITE, PlantedRelease
from dpverify_audits.planted.releases import Counts

ALPHA = 0.01

CASES = [
    pytest.param(bug, kind, id=f"{bug.name}-{kind}") for bug in RELEASES for kind in bug.found_by
]
seeds = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3, 4, 5))]
)


@cache
def verdict(bug: PlantedRelease, *, broken: bool, kind: AuditKind, seed: int) -> Verdict:
    subject = bug.broken() if broken else bug.twin()
    report = audit(subject, alpha=ALPHA, draws=bug.draws, kinds=[kind], seed=seed, workers=1)
    return report.verdict


def test_there_are_forty_bugs_of_different_names() -> None:
    names = [bug.name for bug in SUITE] + [bug.name for bug in RELEASES]
    assert len(names) == len(set(names))
    assert len(names) >= 40


@pytest.mark.parametrize("bug", RELEASES, ids=lambda bug: str(bug.name))
def test_a_planted_release_changes_the_behaviour_and_not_the_claim(bug: PlantedRelease) -> None:
    correct, broken = bug.twin(), bug.broken()
    assert bug.found_by
    assert broken != correct
    if isinstance(correct, Counts):
        assert isinstance(broken, Counts)
        assert replace(broken, draw=correct.draw) == correct
    (pair,) = correct.worst_pairs()
    assert correct.adjacency.relates(pair.record, pair.neighbour)
    assert broken.privacy() == correct.privacy()


@seeds
@pytest.mark.parametrize(("bug", "kind"), CASES)
def test_the_audit_finds_the_bug(bug: PlantedRelease, kind: AuditKind, seed: int) -> None:
    assert verdict(bug, broken=True, kind=kind, seed=seed) == "violation"


@seeds
@pytest.mark.parametrize(("bug", "kind"), CASES)
def test_the_audit_does_not_accuse_the_twin(
    bug: PlantedRelease, kind: AuditKind, seed: int
) -> None:
    assert verdict(bug, broken=False, kind=kind, seed=seed) != "violation"
