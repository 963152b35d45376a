"""SIGKILL at random moments: nothing is lost, nothing is published in part, the next run goes on.

Only kills count, not runs that ended before their moment. Figures aren't drawn, which is most of
the time of a small release and writes nothing. Every run of the tests makes one kill; the nightly
one 200 of each command.
"""

from __future__ import annotations

import random
import re
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.targets.functions import adapt
from dpverify.certificate.open_release import open_release
from dpverify.certificate.report import plots
from dpverify.data.adjacency import Attribute
from dpverify.data.atomic_files import sha256_file
from dpverify.data.domain import Box
from tests.helpers.processes import assert_whole, lasted
from tests.helpers.profiles import day_and_night

MANY, ROWS = 200, 100_000
Tell = Callable[[str, Counter[str]], None]


@pytest.fixture(params=day_and_night(1, MANY))
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], kills: int) -> Tell:
    """Prints where the kills fell; of many, they fell on more than one place."""

    def said(what: str, found: Counter[str]) -> None:
        assert found.total() == kills
        if kills == MANY:
            assert len(found) > 1
            with capsys.disabled():
                counts = ", ".join(f"{count} {where}" for where, count in found.most_common())
                print(f"\n{what}: {kills} kills: {counts}")

    return said


@pytest.fixture
def place(workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plots, "_drawn", lambda *_: "<svg></svg>")
    for name in ("release.toml", "records.npy"):
        shutil.copy(workplace / name, tmp_path)
    return tmp_path


def assert_nothing_else(place: Path, *, left: set[str]) -> None:
    """Beside inputs and outputs there is nothing, and among the owner's notes nothing torn."""
    owners = place / "out-OWNER-ONLY-do-not-release"
    ours = {"release.toml", "records.npy", "out", owners.name}
    assert {path.name for path in place.iterdir()} - ours <= left
    if not left and owners.exists():
        assert {path.suffix for path in owners.iterdir()} == {".txt"}


def files(folder: Path) -> set[str]:
    """The hashes of what is in there."""
    return {sha256_file(path) for path in folder.iterdir()}


def assert_for_the_owner_alone(left: Path, published: set[str]) -> None:
    """What a kill left can be read by nobody else, but for files that had been published.

    An old release is removed file by file.
    """
    if left.exists() and stat.S_IMODE(left.stat().st_mode) != 0o700:
        assert files(left) <= published


def test_a_killed_certify_leaves_the_old_release_or_the_new_one(
    place: Path, kills: int, tell: Tell
) -> None:
    """The old release or the new one, whole, whatever the moment."""
    out, left = place / "out", place / ".out.partial"
    words = ["certify", str(place / "release.toml"), "--out", str(out), "--allow-inconclusive"]
    lasts, moments, found = lasted(words) or 1, random.Random(8), Counter[str]()
    now = assert_whole(out)
    published, public = {now}, files(out)
    while found.total() < kills:
        before = now
        took = lasted(words, lasts * moments.uniform(0, 1.1))
        killed, lasts = took is None, took or lasts
        now = assert_whole(out)
        assert now not in published - {before}
        assert_nothing_else(place, left={left.name})
        assert_for_the_owner_alone(left, public)
        public |= files(out)
        if not killed:
            assert now != before
        elif now != before:
            found["after the exchange"] += 1
        else:
            found["while writing" if left.exists() else "before writing"] += 1
        published.add(now)
    assert lasted(words)
    assert assert_whole(out) not in published
    assert_nothing_else(place, left=set())
    tell("certify", found)


@pytest.mark.nightly
def test_a_killed_release_of_blocks_publishes_nothing(place: Path, kills: int, tell: Tell) -> None:
    """Nothing is published before the whole is; no later release holds a row of a killed one."""
    np.save(place / "records.npy", np.random.default_rng(3).random((ROWS, 18)))
    out, left = place / "out", place / ".out.partial"
    words = ["certify", str(place / "release.toml"), "--out", str(out), "--allow-inconclusive"]
    lasts, moments, found = lasted(words, begun=left.exists) or 1, random.Random(9), Counter[str]()
    torn: list[bytes] = []
    while found.total() < kills:
        shutil.rmtree(out, ignore_errors=True)  # the first release of these records
        took = lasted(words, lasts * moments.uniform(0, 1.1), left.exists)
        killed, lasts = took is None, took or lasts
        assert_nothing_else(place, left={left.name})
        assert_for_the_owner_alone(left, set())
        if out.exists():
            assert_whole(out)
            assert len(open_release(out / "certificate.json").rows) == ROWS
            sketch = (out / "sketch.npz").read_bytes()
            assert not any(sketch.startswith(part) for part in torn)
        else:
            assert killed
        if killed:
            part = left / ".sketch.npz.partial"
            written = part.read_bytes()[:4096] if part.exists() else b""
            if len(written) > 1000:  # beyond the archive's header, which tells two apart by time
                torn.append(written)
            where = "among the rows" if written else "after them" if left.exists() else ""
            found[where or "after the renaming"] += 1
    assert lasted(words)
    assert_whole(out)
    assert_nothing_else(place, left=set())
    tell("streaming release", found)


def noisy(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return record + rng.laplace(scale=0.5, size=record.shape)


MECHANISMS = [
    adapt(
        noisy,
        adjacency=Attribute(beta=Fraction(1)),
        claim=ApproxDP(epsilon=Fraction(bound)),
        domain=Box(low=Fraction(0), high=Fraction(8)),
        of="record",
        attributes=2,
        name=f"claims {bound}",
    )
    for bound in (1, 3)
]


def timeless(journal: bytes) -> bytes:
    """Without the seconds of a release, which no two runs measure alike."""
    return re.sub(rb'(?<="step": "pace", "gave": )[^}]+', b"", journal)


@pytest.mark.nightly
def test_an_audit_with_a_journal(tmp_path: Path, kills: int, tell: Tell) -> None:
    """However often it is killed, it ends with the report of an audit that wasn't."""
    words = ["audit", f"{__name__}:MECHANISMS", "--draws", "50", "--workers", "1", "--json"]
    report, journal = tmp_path / "report.json", tmp_path / "journal"
    words += ["--output", str(report), "--journal", str(journal)]
    if kills != MANY:
        words += ["--kind", "black-box", "--kind", "sequential"]
    lasts, moments, found = lasted(words) or 1, random.Random(10), Counter[str]()
    undisturbed, whole = report.read_bytes(), journal.read_bytes()
    while found.total() < kills:
        if report.exists():  # begin again
            report.unlink()
            journal.unlink()
        kept = journal.read_bytes().rpartition(b"\n")[0] if journal.exists() else b""
        took = lasted(words, lasts * moments.uniform(0, 0.6))
        killed = took is None
        lasts = lasts if took is None or kept else took  # what was kept isn't done again
        if killed:
            lines = journal.read_bytes() if journal.exists() else b""
            assert lines.startswith(kept)
            assert timeless(whole).startswith(timeless(lines[: lines.rfind(b"\n") + 1]))
            found[f"after {len(lines.splitlines())} lines"] += 1
        assert killed or report.exists()
        assert not report.exists() or report.read_bytes() == undisturbed
    assert lasted(words)
    assert report.read_bytes() == undisturbed
    assert timeless(journal.read_bytes()) == timeless(whole)
    tell("audit", found)
