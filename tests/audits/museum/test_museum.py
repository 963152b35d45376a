"""Bugs of functions of data are found with nothing given but the claim; their twins aren't accused.

By day a few with few draws, by night all of them as `python -m benchmarks.museum` prints them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kept import Kept
from benchmarks.museum import FEW, LEVEL, measure, measured, page
from dpverify.auditing.audit import audit
from dpverify.auditing.settings import KINDS, AuditKind
from dpverify.auditing.targets.pairs import space_of
from dpverify_audits.everyday import SUITE as EVERYDAY
from dpverify_audits.museum import ROOMS, Exhibit
from dpverify_audits.museum import SUITE as MUSEUM

ALL = (*MUSEUM, *EVERYDAY)
UNFOUND = {"noise kept in a cache": "inconclusive"}
BY_DAY = ("As many bits as people", "the total is public", "noise that only adds")


def named(exhibit: Exhibit) -> str:
    return exhibit.name


def test_the_museum() -> None:
    assert len(MUSEUM) >= 60
    assert len(ALL) >= 150
    assert [name for name, count in Counter(map(named, ALL)).items() if count > 1] == []
    assert all(exhibit.source and exhibit.leak for exhibit in MUSEUM)
    assert all(exhibit.mistake and set(exhibit.found_by) <= set(KINDS) for exhibit in ALL)
    assert all(room.NAME and room.__doc__ for room in ROOMS)
    for exhibit in ALL:  # the audit is told of no pair, and both make one claim
        broken, twin = exhibit.broken(), exhibit.twin()
        assert broken.privacy() == twin.privacy()
        assert not twin.worst_pairs()
        assert exhibit.draws == 10_000 or exhibit.why


def quick(mechanism: Any) -> str:
    """The verdict at the first pair that there is, which is enough for some."""
    pairs = space_of(mechanism, ()).extremes(1)
    kinds: tuple[AuditKind, ...] = ("determinism", "black-box")
    return audit(mechanism, pairs=pairs, draws=200, alpha=LEVEL, workers=1, kinds=kinds).verdict


@pytest.mark.parametrize("name", BY_DAY)
def test_a_few_by_day(name: str) -> None:
    (exhibit,) = (exhibit for exhibit in ALL if exhibit.name == name)
    assert quick(exhibit.broken()) == "violation"
    assert quick(exhibit.twin()) == "no_violation_found"


@pytest.mark.nightly
@pytest.mark.parametrize("exhibit", ALL, ids=named)
def test_the_bug_is_found(exhibit: Exhibit) -> None:
    for draws in sorted({FEW, exhibit.draws}):
        found = measured(exhibit, True, draws, 2)
        if found["verdict"] == "violation":
            break
    assert found["verdict"] == UNFOUND.get(exhibit.name, "violation")
    assert exhibit.name in UNFOUND or set(exhibit.found_by) & set(found["kinds"])


@pytest.mark.nightly
@pytest.mark.parametrize("exhibit", ALL, ids=named)
def test_the_twin_is_not_accused(exhibit: Exhibit) -> None:
    assert measured(exhibit, False, FEW, 2)["verdict"] == "no_violation_found"


@pytest.mark.nightly
def test_the_page_has_what_was_measured(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "museum.jsonl")
    exhibits = [exhibit for exhibit in ALL if exhibit.name == "NaN passes the clip"]
    measure(kept, exhibits, 1)
    text = page(kept.values, ALL, 1)
    assert "**1 of 1 bugs are found (100.0%)**" in text
    assert "| NaN passes the clip | 1 | refuted |" in text
