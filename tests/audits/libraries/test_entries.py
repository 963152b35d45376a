"""Mechanisms of other libraries: what an entry makes, and each library's where it is installed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.audit import audit
from dpverify.auditing.targets.pairs import known_pairs
from dpverify.cli import _run
from dpverify.data.adjacency import AddRemove, Adjacency, LInf
from dpverify.errors import ConfigurationError, ParameterError
from dpverify_audits.libraries import LIBRARIES, SUITE, Entry, apart
from dpverify_audits.libraries.apart import APART, variable
from dpverify_audits.libraries.entry import claimed
from tests.helpers.profiles import day_and_night


def counted(scale: float) -> Entry:
    return Entry(
        name="count",
        reading="its documentation",
        function=lambda rows: len(rows) + np.random.default_rng().laplace(scale=scale),
        claim=claimed(1),
        adjacency=AddRemove(),
        pairs=(([], [1]),),
    )


@pytest.mark.parametrize(
    ("scale", "verdict"), day_and_night((0.2, "violation"), (1.0, "no_violation_found"))
)
def test_an_entry_is_audited_at_its_pairs(scale: float, verdict: str) -> None:
    report = audit(counted(scale)(), draws=100, alpha=1e-4, kinds=["black-box"], workers=1)
    assert report.verdict == verdict
    assert not report.searched


@pytest.mark.parametrize(
    ("adjacency", "pair", "given"),
    [(LInf(1), ([0.0, 1.0], [1.0, 0.0]), "ndarray"), (AddRemove(), ([1], [1, 2]), "list")],
)
def test_a_record_is_an_array_and_a_data_set_stays_a_list(
    adjacency: Adjacency, pair: Any, given: str
) -> None:
    entry = Entry(
        name="kind",
        reading="",
        function=lambda data: type(data).__name__,
        claim=claimed(1),
        adjacency=adjacency,
        pairs=(pair,),
    )
    mechanism: Any = entry()
    (found,) = known_pairs(mechanism, None)
    assert mechanism.release(found.record, rng=None) == given


@pytest.mark.parametrize(("said", "draws"), [([], 100), (["--draws", "200"], 200)])
def test_each_mechanism_gets_as_many_draws_as_fit_it_where_nobody_says_how_many(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    said: list[str],
    draws: int,
) -> None:
    entry = replace(counted(0.2), draws=100)
    module = SimpleNamespace(entries=lambda: [entry, replace(entry, name="again", draws=120)])
    monkeypatch.setitem(sys.modules, "dpverify_audits.libraries.counts", module)
    monkeypatch.setitem(LIBRARIES, "counts", "counts")
    monkeypatch.chdir(tmp_path)
    fast = ["--kind", "black-box", "--workers", "1"]
    assert _run(["audit", "libraries", "--library", "counts", *fast, *said]) == 1
    shown = capsys.readouterr()
    assert f" of {draws} on the neighbour" in shown.out
    assert f"--draws {draws} " in shown.out
    sides = "200" if said else "100 to 120"
    assert shown.err.splitlines()[:2] == [
        "Making the mechanisms of counts",
        f"2 mechanisms, {sides} draws from each side of each pair; what is left is told after the "
        "first",
    ]


def test_pairs_that_are_no_neighbours_are_refused() -> None:
    entry = Entry(
        name="far",
        reading="",
        function=len,
        claim=claimed(1),
        adjacency=AddRemove(),
        pairs=(([], [1, 2]),),
    )
    with pytest.raises(ParameterError, match="neighbours"):
        audit(entry(), draws=100)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.delitem(sys.modules, "dpverify_audits.libraries.opendp", raising=False)
    with pytest.raises(ConfigurationError, match="library opendp isn't installed"):
        SUITE.part("opendp")
    with pytest.raises(ConfigurationError, match="Did you mean opendp"):
        SUITE.part("opndp")


def test_a_library_that_needs_another_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable("dpmm"), raising=False)
    with pytest.raises(ConfigurationError, match="set DPVERIFY_DPMM_PYTHON to its interpreter"):
        SUITE.part("dpmm")


def test_another_process_answers_by_the_release_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "answer.py").write_bytes((apart.HERE / "answer.py").read_bytes())
    (tmp_path / "dpmm.py").write_text("RELEASES = {'rows': lambda: len, 'sum': lambda: sum}")
    monkeypatch.setattr(apart, "HERE", tmp_path)
    monkeypatch.setenv(variable("dpmm"), sys.executable)
    for release, answer in (("rows", 2), ("sum", 7)):
        command = apart.command("dpmm", release)
        assert command([3, 4]) == answer
        command.close()


PACKAGES = {
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "python-dp": "pydp",
    "pipeline-dp": "pipeline_dp",
    "smartnoise-sql": "snsql",
    "DataSynthesizer": "DataSynthesizer",
    "pure-ldp": "pure_ldp",
    "multi-freq-ldpy": "multi_freq_ldpy",
    "ldp-toolbox": "ldp_toolbox",
    "trasgodp": "trasgodp",
    "eeprivacy": "eeprivacy",
    "diffpriv-pure": "diffpriv_pure",
    "opacus": "opacus",
    "jax-privacy": "jax_privacy",
    "smartnoise-synth": "snsynth",
}
MISSING = "{} is not installed: it has an environment of its own (benchmarks.libraries)"


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_mechanism_is_drawn_from_and_every_example_is_short(library: str) -> None:
    here = variable(library) in os.environ if library in APART else find_spec(PACKAGES[library])
    if not here:
        pytest.skip(MISSING.format(library))
    entries = SUITE.part(library)
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names)
    for entry in entries:
        mechanism: Any = entry()
        assert known_pairs(mechanism, None)
        assert entry.reading
        assert bool(entry.known) == bool(entry.example), entry.name
        assert len(entry.example.splitlines()) <= 10, entry.name
        compile(entry.example, entry.name, "exec")
