"""Parts: a folder of Parquet files, released on a cluster of this machine, and verified.

``python -m benchmarks.parts ROWS COLUMNS FILES WORKERS`` makes such a folder, starts a scheduler
and workers of one thread each, certifies, and prints what each process took: the largest resident
memory that the system saw of it, and seconds of processor time. The folder is gone afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import numpy as np

from dpverify.certificate.certify import certify
from dpverify.certificate.verify import verify
from dpverify.execution.parallel import workplace

__all__ = ["main"]

_QUIET = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")


def main(rows: int, columns: int, files: int, workers: int) -> Iterator[str]:
    """Certify and verify, and say what it took, a line for each process."""
    with TemporaryDirectory(prefix="parts-") as place:
        folder = Path(place)
        _write(folder / "data", rows, columns, files)
        yield f"{rows:,} x {columns} in {files} files, {_gigabytes(folder / 'data'):.2f} GiB"
        with _cluster(folder, workers) as (address, processes):
            with workplace(backend="dask", scheduler=address, patience=60):
                made = certify(
                    folder / "data",
                    folder / "out",
                    mechanism="dp-oporp",
                    k=16,
                    epsilon=8,
                    delta=Fraction(1, 10**6),
                    domain={"low": 0, "high": 1},
                    adjacency={"kind": "attribute", "beta": 1},
                    audit={"draws": 20_000},
                    accept=lambda _: True,
                )
            yield f"released {_gigabytes(folder / 'out'):.2f} GiB in {len(_released(folder))} parts"
            yield from (f"{name}: {_taken(number)}" for name, number in processes.items())
        yield f"this process: {_taken('self')}"
        found = verify(made.folder, replay=False)
        (line,) = (check for check in found.checks if check.name == "released file")
        yield f"verify: {line.status}, {line.detail}; {_taken('self')}"


def _write(folder: Path, rows: int, columns: int, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    rng = np.random.default_rng(1)
    for number, chosen in enumerate(np.array_split(np.arange(rows), files)):
        values = {f"x{column}": rng.random(len(chosen)) for column in range(columns)}
        pq.write_table(pa.table(values), folder / f"part-{number:04}.parquet")


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[tuple[str, dict[str, int]]]:
    """Address of a scheduler with workers, and the processes by name."""
    said = folder / "scheduler.json"
    commands = {"scheduler": ["scheduler", "--port", "0", "--scheduler-file", str(said)]}
    for number in range(1, workers + 1):
        own = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        commands[f"worker {number}"] = ["worker", "--scheduler-file", str(said), *own]
    started = {}
    try:
        for name, (what, *options) in commands.items():
            module = f"distributed.cli.dask_{what}"
            started[name] = subprocess.Popen(  # noqa: S603 - of this file alone
                [sys.executable, "-m", module, *options, *_QUIET], stderr=subprocess.DEVNULL
            )
            while not said.exists():
                sleep(0.1)
        from distributed import Client

        with Client(scheduler_file=str(said), set_as_default=False) as client:
            client.wait_for_workers(workers)
            address = client.scheduler.address
        yield address, {name: process.pid for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def _taken(process: int | str) -> str:
    """The largest resident memory of a process so far, and its processor time."""
    status = Path(f"/proc/{process}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 2**20
    user, system = map(
        int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    )
    return f"peak {peak:.2f} GiB, {(user + system) / 100:.0f} s"


def _released(folder: Path) -> list[Path]:
    return list((folder / "out").glob("sketch-*.npz"))


def _gigabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**30


if __name__ == "__main__":
    for line in main(*map(int, sys.argv[1:])):
        print(line, flush=True)
