"""Journals know a mechanism by the files in which its code stands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dpverify as dpv
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.outputs.source_files import source_digest
from dpverify.errors import ConfigurationError

CODE = """
import noises_of_mine
from noises_of_mine import noise

SCALE = {scale}


def other(rows, rng):
    return rng.laplace(scale=SCALE)


def counted(rows, rng):
    return len(rows) + noise(rng)


class Counts:
    scale = {scale}

    def __call__(self, rows, rng):
        return len(rows) + rng.laplace(scale=self.scale)

    def count(self, rows, rng):
        return self(rows, rng)
"""
NOISES = "def noise(rng):\n    return rng.laplace(scale={scale})\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Writes a module and one that it imports, and imports them anew."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(*, scale: int = 1, noise: int = 1) -> Any:
        (tmp_path / "counts_of_mine.py").write_text(CODE.format(scale=scale))
        (tmp_path / "noises_of_mine.py").write_text(NOISES.format(scale=noise))
        for name in ("counts_of_mine", "noises_of_mine"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("counts_of_mine")

    yield written
    for name in ("counts_of_mine", "noises_of_mine"):
        sys.modules.pop(name, None)


def closed_over(function: Any) -> Any:
    return lambda rows, rng: function(rows, rng)


@pytest.mark.parametrize(
    "made",
    [
        lambda m: m.counted,
        lambda m: m.Counts(),
        lambda m: m.Counts().count,
        lambda m: partial(m.counted, rng=None),
        lambda m: closed_over(m.counted),
        lambda m: {"held": [m.counted]},
        lambda m: dpv.Command([sys.executable, m.__file__]),
    ],
)
def test_a_changed_file_is_another_mechanism(write: Any, made: Any) -> None:
    first = source_digest(made(write()))
    assert source_digest(made(write())) == first
    digests = {first, source_digest(made(write(scale=2))), source_digest(made(write(noise=2)))}
    assert len(digests) == 3


def test_what_is_installed_is_left_out() -> None:
    ours = source_digest(dpv.Laplace(scale=1))
    assert source_digest(sorted) == source_digest(pytest.raises) == source_digest(3) == ours


def test_a_journal_of_changed_code_is_refused(write: Any, tmp_path: Path) -> None:
    journal = AuditJournal(tmp_path / "a.journal")
    pair = dpv.Pair(name="a row", record=[1.0], neighbour=[])

    def audited(function: Any) -> dpv.Report:
        return dpv.audit(
            function,
            epsilon=1,
            adjacency=dpv.AddRemove(),
            pairs=[pair],
            kinds=["black-box"],
            draws=20,
            workers=1,
            journal=journal,
        )

    first = audited(write().counted)
    assert str(audited(write().counted)) == str(first)
    with pytest.raises(ConfigurationError, match="is the journal of another audit"):
        audited(write(noise=2).counted)


def test_a_file_that_is_as_it_was_is_parsed_once(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = write(scale=7)
    before = source_digest(module.counted)
    monkeypatch.setattr("ast.parse", None)
    assert source_digest(module.counted) == before
