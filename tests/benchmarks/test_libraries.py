"""The scoreboard of libraries: its page, and what a mechanism's row says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.libraries.__main__ import _RECORDER, _findings, main, page, results
from benchmarks.libraries.install import PINS, RESULTS, python_of, reasons
from benchmarks.libraries.measure import audited
from dpverify.data.adjacency import AddRemove
from dpverify_audits.libraries import LIBRARIES, Entry
from dpverify_audits.libraries.entry import claimed
from dpverify_audits.museum import SUITE as MUSEUM
from tests.helpers.paths import ROOT

CODE = re.compile("^```python.*?^```", re.DOTALL | re.MULTILINE)  # in documents the formatter's


def told(scale: float, **remarks: Any) -> dict[str, Any]:
    entry = Entry(
        name="count",
        reading="its documentation",
        function=lambda rows: int(len(rows) + np.random.default_rng().laplace(scale=scale) // 1),
        claim=claimed(1),
        adjacency=AddRemove(),
        pairs=(([], [1]),),
        draws=100,
        **remarks,
    )
    return audited(entry)


@pytest.mark.nightly
def test_a_claim_is_refuted_by_two_runs_and_the_page_says_by_what() -> None:
    row = told(0.05, known="issue 1", example="print(1)")
    assert row["verdict"] == "violation"
    assert row["lower"] > 1
    text = page({"opendp": {"count": row, "twin": told(2.0)}}, {"dpart": "no wheel"})
    assert "2 mechanisms of 1 libraries" in text
    assert "| count | ε = 1 | refuted |" in text
    assert "| twin | ε = 1 | none found |" in text
    assert "print(1)" in text
    assert "no wheel" in text


def test_the_page_is_that_of_the_results() -> None:
    found = results(RESULTS)
    published = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    texts = [CODE.sub("", text) for text in (page(found, reasons()), published)]
    assert texts[0] == texts[1]
    refuted = [told for each in found.values() for told in each.values() if told["found"]]
    assert all(0 < len(told["example"].splitlines()) <= 10 for told in refuted)


def test_live_bugs_are_found_and_mended_ones_are_not_accused() -> None:
    opendp = results(RESULTS)["opendp"]
    live = {told["known"]: told["verdict"] for told in opendp.values() if told["known"]}
    issues = [f"OpenDP issue {number}" for number in (2922, 2944, 2945, 2949)]
    assert live == dict.fromkeys(issues, "violation")
    mended = [told["verdict"] for name, told in opendp.items() if "mended" in name]
    assert mended == ["no_violation_found"] * 2


def test_every_finding_stands_in_one_table_with_what_is_known_of_it() -> None:
    found = results(RESULTS)
    text = _findings(found)
    rows = [
        (library, name, told)
        for library, each in found.items()
        for name, told in each.items()
        if told["verdict"] == "violation" or "(mended: " in name
    ]
    assert all(text.count(f"| {library} | {name} |") == 1 for library, name, _ in rows)
    assert text.count("\n| ") == len(rows) + 4  # heads
    assert all(told["known"] for _, _, told in rows if told["verdict"] == "violation")
    drafts = re.findall(r"\]\((reports/[^)]*)\)", text.partition("**By the")[0])
    assert all((ROOT / "docs" / draft).exists() for draft in drafts)
    assert len(set(drafts)) >= 6  # the index, and at least five findings that are new
    assert {told["verdict"] for _, name, told in rows if "(mended: " in name} == {
        "no_violation_found"
    }


def test_every_library_is_pinned() -> None:
    assert set(LIBRARIES) <= set(PINS)
    assert all("==" in pin for pins in PINS.values() for pin in pins)


@pytest.mark.parametrize(("library", "asks"), [("opendp", False), ("dpmm", True)])
def test_a_library_is_audited_in_its_environment_or_asked_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str, asks: bool
) -> None:
    runs: list[Any] = []
    monkeypatch.setattr(subprocess, "run", lambda *args, **words: runs.append((args, words)))
    python_of(library, tmp_path).parent.mkdir(parents=True)
    python_of(library, tmp_path).touch()
    main([library, "--environments", str(tmp_path), "--results", str(tmp_path)])
    [((command,), words)] = runs
    there = str(python_of(library, tmp_path))
    assert command[0] == (sys.executable if asks else there)
    assert (there in words["env"].values()) == asks


def test_what_others_found_hangs_in_the_museum() -> None:
    names = {exhibit.name for exhibit in MUSEUM}
    assert {exhibit for _, _, exhibit, _, _ in _RECORDER if exhibit} <= names
    verdict = {"verdict": "violation"} | dict.fromkeys(("reading", "unit", "known"), "")
    row = verdict | {"claim": [1, 0], "lower": 2.0, "reach": None, "low bits": "whole", "draws": 9}
    row |= {"seconds": 1.0, "found": "", "example": "", "by": "0.1.0, 2026-01-01"}
    text = page({"diffprivlib": {"GaussianNB, a class of one row": row}}, {})
    assert "| diffprivlib | refuted | Classes that were seen |" in text
    assert "| dpmm | – | The domain is what is there |" in text
