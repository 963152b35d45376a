"""A real cluster on loopback: two worker processes, some of which are killed on the way.

One of these tests runs with every change, the others by night.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from dpverify._fields import field_values
from dpverify.auditing.attacks.white_box import EventCounts
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs import samples
from dpverify.auditing.report import Report
from dpverify.auditing.statistics.power import Event
from dpverify.certificate import _releasing, checks
from dpverify.certificate._releasing import write_release
from dpverify.certificate.archive import Contents
from dpverify.certificate.certify import certify
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.manifest import MANIFEST, part_name, read_array
from dpverify.certificate.schema import Certificate
from dpverify.cli import _run
from dpverify.data.atomic_files import write_file
from dpverify.data.records import Table
from dpverify.errors import ClusterError, DrawError, MissingExtraError, ParameterError
from dpverify.execution import cluster as clusters
from dpverify.execution.parallel import spread, workplace
from dpverify.execution.versions import versions
from dpverify.ledger.statements import judge_all, known_statements
from dpverify.privacy import Mechanism
from dpverify.sampling.words import Words
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.attacks import counted
from tests.helpers.fixtures import CONFIGURATION
from tests.helpers.paths import ROOT
from tests.helpers.textbook import SUBJECTS

HALVED = SUBJECTS[2]
# Without pages, but not without a server for them, which would listen everywhere.
_QUIET = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
CLAIMS = [statement for statement in known_statements() if statement.paper == "kenthapadi2013"]


@dataclass
class LocalCluster:
    """Processes of a scheduler and of workers, none of which comes back when it is killed."""

    folder: Path
    address: str = ""
    scheduler: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        # Two workers lost to one task, and it is given up.
        once = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        said = self.folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", *_QUIET]
        self.scheduler.append(
            _started(self.folder, "scheduler", *options, "--scheduler-file", str(said), **once)
        )
        _wait(said.exists)
        self.address = json.loads(said.read_text())["address"]

    def worker(self, *options: str, threads: int = 1, **environment: str) -> None:
        own = ["--host", "127.0.0.1", "--nthreads", str(threads), "--no-nanny", *_QUIET]
        folder = ["--local-directory", str(self.folder)]
        self.workers.append(
            _started(self.folder, "worker", self.address, *own, *folder, **environment)
        )

    def with_workers(self, number: int) -> None:
        from distributed import Client

        self.workers = self.living()
        while len(self.workers) < number:
            self.worker()
        with Client(self.address, set_as_default=False) as client:
            _wait(lambda: len(client.scheduler_info()["workers"]) == number)

    def living(self) -> list[subprocess.Popen[bytes]]:
        time.sleep(0.1)  # for a signal on its way
        return [worker for worker in self.workers if worker.poll() is None]

    def stop_workers(self) -> None:
        _end(self.workers)
        self.workers = []


def _started(folder: Path, what: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait(done: Any) -> None:
    end = time.monotonic() + 180  # a busy machine starts a worker in a minute
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    made = LocalCluster(folder=tmp_path_factory.mktemp("cluster"))
    made.start()
    yield made
    _end([*made.workers, *made.scheduler])


@pytest.fixture
def two(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> LocalCluster:
    """The cluster with two good workers, to which even the least work is sent."""
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    cluster.with_workers(2)
    return cluster


@dataclass(frozen=True, kw_only=True)
class Deadly(Mechanism):
    """Noise of half the claimed scale; a release elsewhere kills its process, once or always."""

    marker: Path
    home: int
    once: bool = True
    adjacency = HALVED.mechanism.adjacency

    def privacy(self) -> Any:
        return HALVED.mechanism.privacy()

    def release(self, records: Any, *, rng: Any) -> Any:
        if os.getpid() != self.home and not (self.once and self.marker.exists()):
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return HALVED.mechanism.release(records, rng=rng)


def audited(mechanism: Any, **given: Any) -> Any:
    options: dict[str, Any] = {"kinds": ["black-box", "precision"], "draws": 2500} | given
    return audit(mechanism, seed=5, pairs=[HALVED.pair], **options)


def results(report: Report) -> Report:
    """A report without its code, which names the number of workers."""
    findings = tuple(replace(finding, replay="") for finding in report.findings)
    return replace(report, findings=findings, replay="")


@pytest.mark.nightly
def test_a_worker_that_dies_in_the_middle_of_a_task(two: LocalCluster, tmp_path: Path) -> None:
    mechanism = Deadly(marker=tmp_path / "died", home=os.getpid())
    with workplace(backend="dask", scheduler=two.address):
        there = audited(mechanism)
    assert mechanism.marker.exists()
    assert len(two.living()) == 1
    here = audited(mechanism, workers=1)
    assert results(there) == results(here)
    assert here.verdict == "violation"


@pytest.mark.nightly
def test_a_worker_that_is_killed_between_claims(two: LocalCluster) -> None:
    def kill(_: int) -> None:
        done.append(1)
        if len(done) == 3:
            two.workers[0].kill()

    done: list[int] = []
    with workplace(backend="dask", scheduler=two.address):
        there = judge_all(CLAIMS, progress=kill)
    assert len(done) == len(CLAIMS) > 10
    assert len(two.living()) == 1
    assert there == judge_all(CLAIMS, workers=1) == judge_all(CLAIMS, workers=2)


@pytest.mark.nightly
def test_a_worker_that_is_killed_in_a_white_box_attack(
    two: LocalCluster, small_sketch: Callable[..., LinearSketch]
) -> None:
    def attack(**options: Any) -> EventCounts:
        return counted(small_sketch(), tests, draws=600, seed=3, **options)

    tests = [
        Event(name="middle", threshold=0.0, swapped=swapped, ordering=1e-3)
        for swapped in (False, True)
    ]
    with workplace(backend="dask", scheduler=two.address):
        there = attack(progress=lambda _: two.workers[0].kill())
    assert len(two.living()) == 1
    assert there == attack(workers=1)


@pytest.mark.nightly
def test_a_worker_that_is_killed_while_certifying(
    two: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release.toml").write_text(CONFIGURATION.replace("draws = 200", "draws = 1100", 1))
    np.save(tmp_path / "records.npy", np.zeros((7, 18)))
    configuration = load_configuration(tmp_path / "release.toml")
    assert configuration.audit.draws == 1100

    def certified(name: str, **options: Any) -> Certificate:
        return certify(configuration, tmp_path / name, base=tmp_path, **options).certificate

    with workplace(backend="dask", scheduler=two.address):
        there = certified("there", announce=lambda *_: lambda _: two.workers[0].kill())
    assert len(two.living()) == 1
    here = certified("here", workers=1)
    assert (there.evidence, there.derived) == (here.evidence, here.derived)
    printed = []
    for options in (["--backend", "dask", "--scheduler", two.address], ["--workers", "1"]):
        path = str(tmp_path / "there" / "certificate.json")
        assert _run(["verify", path, "--json", *options]) == 0
        printed.append(json.loads(capsys.readouterr().out)["result"])
    assert printed[0] == printed[1]
    assert {"name": "replay", "status": "agrees"}.items() <= printed[0][2].items()


def dying_part(folder: Path, number: int, *, deadly: bool) -> Table:
    """A part that notes who begins to read it; a worker that reads a deadly one dies in the middle.

    It dies once, unless the folder has a file "always".
    """
    values = np.random.default_rng(number).random((3000, 12))

    def read() -> Iterator[Any]:
        with (folder / f"attempts-{number}").open("a") as file:
            file.write(f"{os.getpid()}\n")
        yield values[:2000]
        died = folder / "died"
        if deadly and (not died.exists() or (folder / "always").exists()):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield values[2000:]

    return Table(shape=values.shape, read=read)


def in_dying_parts(folder: Path, numbers: int = 5) -> Table:
    parts = tuple(dying_part(folder, number, deadly=number == 2) for number in range(numbers))
    return Table(shape=(3000 * numbers, 12), read=lambda: iter(()), parts=parts)


def attempts(folder: Path, number: int) -> list[int]:
    """Processes that began to read a part; none of them is this one."""
    found = list(map(int, (folder / f"attempts-{number}").read_text().split()))
    assert os.getpid() not in found
    return found


@pytest.mark.nightly
def test_a_worker_that_dies_in_the_middle_of_a_part(
    two: LocalCluster, tmp_path: Path, small_sketch: Callable[..., LinearSketch]
) -> None:
    sketch, out = small_sketch(), tmp_path / "out"
    out.mkdir()
    with workplace(backend="dask", scheduler=two.address):
        released = write_release(sketch, in_dying_parts(tmp_path), out, workers=-1)
    assert len(two.living()) == 1
    assert len(set(attempts(tmp_path, 2))) == 2  # begun by two workers, and published once
    names = {file.name for file in out.iterdir()}
    assert names == {MANIFEST, *(part_name(number) for number in range(5))}
    whole = Contents(sketch.shape(15_000), sketch.dtype(), sketch.possible)
    assert read_array(out / MANIFEST, whole, sha256=released.sha256).shape == (15_000, 4)
    assert released.owner_notes["pairs_compared"] == 5 * 200


@pytest.mark.nightly
def test_a_part_that_ends_every_worker_leaves_no_release(
    two: LocalCluster, tmp_path: Path, small_sketch: Callable[..., LinearSketch]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "always").touch()
    with (
        workplace(backend="dask", scheduler=two.address),
        pytest.raises(ClusterError, match="a part of the data ended the workers that read it"),
    ):
        write_release(small_sketch(), in_dying_parts(tmp_path, 3), out, workers=-1)
    assert not (out / MANIFEST).exists()


@pytest.mark.nightly
def test_a_part_that_is_done_twice_on_the_cluster_is_published_once(
    two: LocalCluster,
    tmp_path: Path,
    small_sketch: Callable[..., LinearSketch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    discarded = []

    def twice(function: Any, tasks: Any, **options: Any) -> Iterator[Any]:
        doubled = [task for task in tasks for _ in range(2)]
        for number, result in enumerate(spread(function, doubled, **options)):
            if number % 2:
                yield result
            else:
                discarded.append(result[0])

    monkeypatch.setattr(_releasing, "spread", twice)
    (tmp_path / "died").touch()
    with workplace(backend="dask", scheduler=two.address):
        write_release(small_sketch(), in_dying_parts(tmp_path), tmp_path, workers=-1)
    assert all(len(attempts(tmp_path, number)) == 2 for number in range(5))
    written = [file.read_bytes() for file in tmp_path.glob("sketch-*")]
    assert len({*written, *discarded}) == 10


@pytest.mark.nightly
def test_a_worker_that_is_killed_while_parts_are_released(
    two: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was doing, and with what it had done: the certificate is that of one machine."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = np.random.default_rng(3).random((40_000, 18))
    (tmp_path / "data").mkdir()
    for number, part in enumerate(np.array_split(values, 8)):
        columns = {str(place): column for place, column in enumerate(part.T)}
        parquet.write_table(pa.table(columns), tmp_path / "data" / f"{number}.parquet")
    np.save(tmp_path / "records.npy", values)
    made = {}
    for name in ("records.npy", "data"):
        file = tmp_path / f"{name}.toml"
        file.write_text(CONFIGURATION.replace("records.npy", name))
        made[name] = file

    def killing(path: Path, content: bytes, **options: Any) -> None:
        two.workers[0].kill()
        write_file(path, content, **options)

    monkeypatch.setattr(_releasing, "write_file", killing)
    with workplace(backend="dask", scheduler=two.address):
        there = certify(made["data"], tmp_path / "there")
    assert len(two.living()) == 1
    here = certify(made["records.npy"], tmp_path / "here", workers=1)
    own = {"release", "environment", "digest"}
    assert there.certificate.model_dump(exclude=own) == here.certificate.model_dump(exclude=own)
    assert len(list(there.folder.glob("sketch-*"))) == 8
    found = checks.check_certificate(there.certificate.to_dict(), there.folder, workers=1)
    assert {check.status for check in found} == {"agrees"}


def test_a_cluster_that_is_lost_accuses_no_certificate(
    certificate: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise ClusterError("the cluster was lost")

    monkeypatch.setattr(checks, "collect", lost)
    with pytest.raises(ClusterError, match="was lost"):
        checks.check_certificate(certificate, None)


@frozen(kw_only=True)
class Hanging(LinearSketch):
    """Releases at home alone."""

    home: int

    def release(self, records: ArrayLike, *, rng: Words | None = None) -> NDArray[np.int64]:
        while os.getpid() != self.home:
            pass
        return LinearSketch.release(self, records, rng=rng)


@pytest.mark.nightly
def test_a_release_that_hangs_on_a_worker(
    two: LocalCluster, small_sketch: Callable[..., LinearSketch]
) -> None:
    honest = small_sketch()
    mechanism = Hanging(**field_values(honest), home=os.getpid())
    with workplace(backend="dask", scheduler=two.address):
        report = audit(mechanism, kinds=["white-box"], draws=1100, seed=1, time_limit=0.5)
        # The workers are free again.
        assert list(spread(abs, [(-1,), (2,), (-3,)])) == [1, 2, 3]
    assert len(two.living()) == 2
    (finding,) = report.findings
    assert (report.verdict, finding.verdict) == ("inconclusive", "inconclusive")
    assert "Hanging took longer than 0.5 s for one release" in finding.statement


@pytest.mark.nightly
def test_on_the_command_line(two: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for options in (["--backend", "dask", "--scheduler", two.address], ["--workers", "1"]):
        assert _run(["claims", "--paper", "kenthapadi2013", "--json", *options]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert len(json.loads(printed[0])["result"]) == len(CLAIMS)


@pytest.mark.nightly
def test_nothing_listens_but_on_loopback(two: LocalCluster) -> None:
    import psutil

    with workplace(backend="dask", scheduler=two.address):
        pids = [os.getpid(), *(process.pid for process in [*two.scheduler, *two.workers])]
        heard = [
            connection.laddr.ip
            for pid in pids
            for connection in psutil.Process(pid).net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        ]
    assert len(heard) >= 3
    assert set(heard) == {"127.0.0.1"}


@pytest.mark.nightly
def test_a_task_that_ends_every_worker_is_given_up(two: LocalCluster, tmp_path: Path) -> None:
    # Two chunks of training, the first of which is drawn here: with more tasks, all workers might
    # be lost to different ones.
    mechanism = Deadly(marker=tmp_path / "died", home=os.getpid(), once=False)
    with workplace(backend="dask", scheduler=two.address):
        report = audited(mechanism, kinds=["black-box"], draws=1200)  # and 2,400 for training
    assert report.verdict == "inconclusive"
    assert "ended its worker process" in report.findings[0].statement


@pytest.mark.nightly
def test_what_cannot_be_sent(two: LocalCluster) -> None:
    held = (value for value in range(3))  # generators can't be pickled
    mechanism: Any = types.SimpleNamespace(
        release=lambda records, rng: 0.0 if held else 1.0, privacy=None, adjacency=None
    )
    pair = HALVED.pair
    with workplace(backend="dask", scheduler=two.address):
        with pytest.raises(DrawError, match="workers=1 draws without"):
            samples.sample_pair(mechanism, pair, AuditConfig(draws=2000, seed=1), "test")
        assert list(spread(abs, [(-1,), (2,)])) == [1, 2]


@pytest.mark.nightly
def test_what_a_worker_cannot_load(two: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("installed_only_here")
    exec("def function(): return 1", vars(module))  # noqa: S102
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with workplace(backend="dask", scheduler=two.address):
        with pytest.raises(ClusterError, match=r"can't load its task.*installed_only_here"):
            list(spread(module.function, [()]))
        with pytest.raises(ZeroDivisionError):
            list(spread(divmod, [(1, 0)]))


@pytest.mark.nightly
def test_other_versions_are_refused(two: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    own = versions()
    for name in own:
        monkeypatch.setattr(clusters, "versions", lambda name=name: own | {name: "0.0"})
        with (
            pytest.raises(ClusterError, match=f"has {name} {own[name]}, and must have 0.0"),
            workplace(backend="dask", scheduler=two.address),
        ):
            pass
    # And so by a worker that came after all were asked.
    monkeypatch.setattr(clusters, "_inspect", lambda client: None)
    with (
        workplace(backend="dask", scheduler=two.address),
        pytest.raises(ClusterError, match=r"must have 0\.0"),
    ):
        list(spread(abs, [(-1,)]))


@pytest.mark.nightly
def test_unfit_workers_are_refused(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.stop_workers()
    with (
        pytest.raises(ClusterError, match=r"has no worker within 0\.5 s"),
        workplace(backend="dask", scheduler=cluster.address, patience=0.5),
    ):
        pass
    (tmp_path / "dpverify.py").write_text("raise ImportError('none of that here')")
    for message, options in (
        ("has 2 threads, and must have one", {"threads": 2}),
        ("can't load dpverify .*none of that here", {"PYTHONPATH": str(tmp_path)}),
    ):
        cluster.worker(**options)
        with (
            pytest.raises(ClusterError, match=message),
            workplace(backend="dask", scheduler=cluster.address, patience=60),
        ):
            pass
        cluster.stop_workers()


def test_a_scheduler_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    start = time.monotonic()
    with (
        pytest.raises(ClusterError, match=r"doesn't answer within 0\.5 s: start one"),
        workplace(backend="dask", scheduler="tcp://127.0.0.1:1", patience=0.5),
    ):
        pass
    assert time.monotonic() - start < 30
    with pytest.raises(ParameterError, match="scheduler=nothing must be an address"):
        workplace(backend="dask").__enter__()
    assert _run(["claims", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "left out with the backend loky" in capsys.readouterr().err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"install 'dpverify\[dask\]'"):
        workplace(backend="dask", scheduler="tcp://127.0.0.1:1").__enter__()
