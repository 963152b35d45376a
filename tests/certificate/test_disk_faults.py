"""Full discs, folders that can't be written, and lost workers: one error, and nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.data.atomic_files import check_writable, replacing, sha256_file, write_file
from dpverify.errors import OutputError
from tests.helpers.command_line import run
from tests.helpers.paths import ROOT

# -B: a compiled module that is cut off on the full disc would end all later runs.
PYTHON = [sys.executable, "-B", "-c"]
COMMAND = [*PYTHON, "from dpverify.cli import main; main()"]


def small_files(size: int) -> Any:
    """For a child: no file may grow beyond this, as on a disc that is full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.fixture
def place(workplace: Path, tmp_path: Path) -> Path:
    for name in ("release.toml", "records.npy"):
        shutil.copy(workplace / name, tmp_path)
    shutil.copytree(workplace / "out", tmp_path / "out")
    return tmp_path


def test_two_at_once_do_not_mix_their_files(tmp_path: Path) -> None:
    """The second ends with an error, whenever it comes, and the first is published whole."""
    out = tmp_path / "out"
    for turn in ("first", "second"):  # without an old release, and with one
        with replacing(out) as new:
            (new / "mine").write_text(turn, encoding="utf-8")
            for late in (
                lambda: check_writable(out, ours="mine".__eq__),
                replacing(out).__enter__,
            ):
                with pytest.raises(OutputError, match=f"^{out}: another process is writing it"):
                    late()
        assert [path.read_text(encoding="utf-8") for path in out.iterdir()] == [turn]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_whoever_comes_at_any_moment_disturbs_nobody(tmp_path: Path) -> None:
    """A folder that was being filled could be removed by a check, and filled by two at once."""
    out, end, said = tmp_path / "out", time.monotonic() + 0.5, set[str]()

    def replaced(number: int) -> None:
        with replacing(out) as new:
            for name in "ab":
                assert not (new / name).exists()
                write_file(new / name, bytes([number]))

    def again(work: Callable[[], None]) -> None:
        while time.monotonic() < end:
            try:
                work()
            except OutputError as error:
                said.add(str(error))

    checked = partial(check_writable, out, ours="ab".__contains__)
    works = [partial(replaced, 1), partial(replaced, 2), checked]
    with ThreadPoolExecutor() as pool:
        list(pool.map(again, works))
    assert said <= {f"{out}: another process is writing it. Wait for it, or choose another."}
    assert len({path.read_bytes() for path in out.iterdir()}) == 1


def test_errors_name_the_folder_that_the_user_gave(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(OutputError, match=f"^{out}/a/b: can't be written"), replacing(out) as new:
        write_file(new / "a" / "b", b"")


@pytest.mark.nightly
@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_a_full_disc_leaves_the_old_release(place: Path, size: int) -> None:
    """The sketch, the certificate or the report doesn't fit: all is as it was."""
    before = {path.name: path.read_bytes() for path in (place / "out").iterdir()}
    command = [*COMMAND, "certify", str(place / "release.toml"), "--out", str(place / "out")]
    command += ["--workers", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=small_files(size)
    )
    assert done.returncode == 2, done.stderr
    assert "can't be written: File too large" in done.stderr
    assert ".partial" not in done.stderr
    assert {path.name: path.read_bytes() for path in (place / "out").iterdir()} == before
    assert {path.name for path in place.iterdir()} == {"release.toml", "records.npy", "out"}
    # With room again the next run goes on.
    assert run(*command[len(COMMAND) :], "--allow-inconclusive") == 0
    fields = json.loads((place / "out" / "certificate.json").read_text())
    assert sha256_file(place / "out" / "sketch.npz") == fields["release"]["sha256"]
    assert fields["release"]["sha256"] not in str(before)


def test_a_full_disc_leaves_a_journal_that_goes_on(tmp_path: Path) -> None:
    path, identity = tmp_path / "journal", {"mechanism": "one"}
    AuditJournal(path).kept(identity, "first", lambda: [1])
    code = (
        "import sys; from pathlib import Path\n"
        "from dpverify.auditing.outputs.journal import AuditJournal\n"
        "from dpverify.errors import OutputError\n"
        "identity = {'mechanism': 'one'}\n"
        "try: AuditJournal(Path(sys.argv[1])).kept(identity, 'second', lambda: [2] * 9)\n"
        "except OutputError as error: sys.exit(str(error))"
    )
    size = path.stat().st_size + 20  # room for a torn line
    done = subprocess.run(
        [*PYTHON, code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=small_files(size),
    )
    assert "can't be written" in done.stderr
    assert path.stat().st_size == size
    assert AuditJournal(path).kept(identity, "first", lambda: "lost") == [1]
    assert AuditJournal(path).kept(identity, "second", lambda: [3]) == [3]
    assert AuditJournal(path).kept(identity, "second", lambda: "twice") == [3]


@pytest.mark.skipif(not Path("/proc/sys").is_dir(), reason="needs a folder that nobody can write")
def test_a_folder_that_nobody_can_write(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("certify", place / "release.toml", "--out", "/proc/sys/out") == 2
    said = capsys.readouterr().err
    assert said.startswith("dpverify: /proc/sys/out: can't be written: ")
    assert said.count("\n") == 1
    with pytest.raises(OutputError, match="can't be written"):
        AuditJournal(Path("/proc/sys/journal")).kept({"a": "b"}, "step", lambda: 1)


def fatal(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Slow enough for workers, of which it ends one: the first to make the marker."""
    time.sleep(1e-3)
    if not current_process().name.startswith("Loky"):
        return record + rng.laplace(scale=1.0, size=record.shape)
    marker = Path(os.environ["DPVERIFY_TEST_MARKER"])
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return record + rng.laplace(scale=1.0, size=record.shape)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.nightly
def test_a_lost_worker_says_so_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker lost is inconclusive and isn't kept: no verdict comes of it."""
    marker = tmp_path / "marker"
    monkeypatch.setenv("DPVERIFY_TEST_MARKER", str(marker))
    monkeypatch.chdir(ROOT)
    command = [*COMMAND, "audit", "tests.certificate.test_disk_faults:MECHANISM", "--draws", "3000"]
    command += ["--kind", "black-box", "--workers", "2", "--json", "--journal"]
    runs = [tmp_path / "one", tmp_path / "one", tmp_path / "two"]
    lost, again, undisturbed = (
        subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        for path in runs
    )
    assert marker.exists()
    assert lost.returncode == 3
    assert again.returncode == undisturbed.returncode == 0
    assert again.stdout == undisturbed.stdout


MECHANISM = adapt(
    fatal,
    adjacency=Attribute(beta=Fraction(1)),
    claim=ApproxDP(epsilon=Fraction(1)),
    of="record",
    attributes=2,
    name="fatal",
)
