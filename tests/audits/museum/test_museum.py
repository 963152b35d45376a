"""Bugs of functions of data are found with nothing given but the claim; their twins aren't accused.

By day a few with few draws, by night all of them as `python -m benchmarks.museum` prints them.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks import museum
from benchmarks.kept import Kept
from benchmarks.museum import FEW, LEVEL, RESULTS, _key, measure, measured, page
from benchmarks.plaques import linked
from benchmarks.wings import picture
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.audit import audit
from dpverify.auditing.settings import KINDS, AuditKind
from dpverify.auditing.targets.pairs import space_of
from dpverify_audits.everyday import SUITE as EVERYDAY
from dpverify_audits.museum import EXHIBITS as MUSEUM
from dpverify_audits.museum import ROOMS, SUITE, AccountantExhibit, AuditorExhibit, Exhibit
from dpverify_audits.museum.accountants import EXHIBITS as ACCOUNTANTS
from dpverify_audits.museum.auditors import EXHIBITS as AUDITORS
from dpverify_audits.museum.training import DRAWN, SHUFFLED
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night, sampled

ALL = (*MUSEUM, *EVERYDAY)
UNFOUND = {"noise kept in a cache": "inconclusive"}
SHOWN_BY_DAY = ("A lie that may be true", "Less noise, less spent", "A negative ε")
BY_DAY = ("As many bits as people", "the total is public", "noise that only adds")


def named(exhibit: Exhibit | AccountantExhibit | AuditorExhibit) -> str:
    return exhibit.name


def test_every_exhibit_has_a_name_a_source_and_what_finds_it() -> None:
    assert len(MUSEUM) >= 60
    assert len(ALL) >= 150
    assert [
        name for name, count in Counter(map(named, (*SUITE, *EVERYDAY))).items() if count > 1
    ] == []
    assert all(exhibit.source and exhibit.leak for exhibit in SUITE)
    assert all(exhibit.mistake and set(exhibit.found_by) <= set(KINDS) for exhibit in ALL)
    assert all(room.NAME and room.__doc__ for room in ROOMS)
    for exhibit in ALL:  # the audit is told of no pair, and both make one claim
        broken, twin = exhibit.broken(), exhibit.twin()
        assert broken.privacy() == twin.privacy()
        assert not twin.worst_pairs()
        assert exhibit.draws == 10_000 or exhibit.why


@pytest.mark.parametrize(
    ("claim", "times", "sigma"), day_and_night((DRAWN, 1, 1), (SHUFFLED, 4, Fraction(1, 2)))
)
def test_claims_that_are_written_as_numbers(claim: Fraction, times: int, sigma: Any) -> None:
    step = Gaussian(sigma=sigma).poisson_sampled(rate=Fraction(1, 4))
    true = step if times == 1 else times * step
    assert claim - Fraction(1, 10**5) < Fraction(true.delta_at("0.5").upper) <= claim


@pytest.mark.parametrize("exhibit", sampled(ACCOUNTANTS, SHOWN_BY_DAY))
def test_an_accountant_is_shown_by_a_number(exhibit: AccountantExhibit) -> None:
    assert exhibit.held(broken=True).cells[0].verdict == exhibit.shown
    assert set(exhibit.held(broken=False).counts) <= {"tight", "loose"}


def test_most_accountants_say_too_little() -> None:
    shown = Counter(exhibit.shown for exhibit in ACCOUNTANTS)
    assert shown["unsafe"] >= 15
    assert set(shown) == {"unsafe", "loose", "failed"}


@pytest.mark.parametrize("exhibit", sampled(AUDITORS, ["Looking until it is found"]))
def test_an_auditor_is_refuted_by_null_scores(exhibit: AuditorExhibit) -> None:
    assert exhibit.tried(broken=True, alpha=1e-6, seed=2).verdict == "violation"
    assert exhibit.tried(broken=False, alpha=1e-6, seed=2).verdict == "no_violation_found"


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
    # What keeps state is in another one after an audit.
    if exhibit.name in UNFOUND:
        assert measured(exhibit, True, FEW, 2)["verdict"] == UNFOUND[exhibit.name]
        return
    # Some are found in most runs, as the page says.
    runs = ((draws, seed) for seed in (2, 3) for draws in sorted({FEW, exhibit.draws}))
    found = (measured(exhibit, True, draws, seed) for draws, seed in runs)
    assert any(set(exhibit.found_by) & set(each["kinds"]) for each in found)


@pytest.mark.nightly
@pytest.mark.parametrize("exhibit", ALL, ids=named)
def test_the_twin_is_not_accused(exhibit: Exhibit) -> None:
    assert measured(exhibit, False, FEW, 2)["verdict"] == "no_violation_found"


def test_results_are_of_what_was_audited() -> None:
    first, *_ = MUSEUM
    assert _key(first) == _key(replace(first, mistake="told in other words"))
    assert _key(first) != _key(replace(first, draws=first.draws + 1))
    assert _key(first) != _key(replace(first, plant=lambda twin: twin))


def test_a_later_run_goes_on_seed_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool, int, int]] = []

    def found(exhibit: Exhibit, broken: bool, draws: int, seed: int) -> dict[str, Any]:
        asked.append((exhibit.name, broken, draws, seed))
        return {"verdict": "violation" if draws > FEW else "no_violation_found"}

    monkeypatch.setattr(museum, "measured", found)
    both, kept = ALL[:2], Kept(tmp_path / "kept.jsonl")
    first, second = (exhibit.name for exhibit in both)
    measure(kept, both[:1], seeds=1, runs=0)
    assert asked == [(first, True, FEW, 1), (first, True, 10_000, 1), (first, False, FEW, 1)]
    del asked[:]
    measure(Kept(kept.path), both, seeds=2, runs=0)
    assert [(name, seed) for name, broken, draws, seed in asked if broken and draws == FEW] == [
        (second, 1),
        (first, 2),
        (second, 2),
    ]


def test_each_issue_that_is_named_has_a_link() -> None:
    sources = [linked(exhibit.source) for exhibit in SUITE]
    assert [source for source in sources if re.search(r"(issue|request)s? \d", source)] == []
    assert linked("OpenDP; issues 1 and 2").endswith(
        "/issues/1) and [2](https://github.com/opendp/opendp/issues/2)"
    )
    assert linked("dpart, pull request 6").endswith("(https://github.com/hazy/dpart/pull/6)")
    assert linked("they, 2024 (arXiv:2405.20769)") == (
        "they, 2024 ([arXiv:2405.20769](https://arxiv.org/abs/2405.20769))"
    )


@pytest.mark.nightly
def test_the_page_is_that_of_the_results(tmp_path: Path) -> None:
    kept = Kept(Path(shutil.copy(RESULTS, tmp_path)))
    assert page(kept, ALL) == (ROOT / "docs" / "museum.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_page_has_what_was_measured(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "museum.jsonl")
    exhibits = [exhibit for exhibit in ALL if exhibit.name == "NaN passes the clip"]
    measure(kept, exhibits, seeds=1, runs=10)
    text = page(kept, ALL)
    assert "**1 of 1 audited bugs are found (100.0%).**" in text
    assert "| short audits that accuse a twin; the level allows one in 20 | 0 of 10 |" in text
    assert "| NaN passes the clip | 1 | 1 of 1 |" in text
    assert "| A lie that may be true | p = 0.5 | ε = 0 | 1.099 | unsafe | 1.099 |" in text
    assert "| Looking until it is found | one run of coins, ε = 1 | 1 |" in text
    assert picture(kept).count("<text") > len(ACCOUNTANTS)
