"""A `dask.distributed` cluster as joblib's workers.

Joblib has a backend of this name, which hangs on a task that can't be pickled, that a
worker can't load, or that ended its workers (joblib 1.6.0), and which gives a large argument to one
worker to keep, so that the work is lost with that worker. This one sends each task whole and
returns its result or its error. The scheduler sees a task as bytes.

**The same numbers.** A worker must have the versions that a replay depends on (`versions`), and the
same Python. It must work alone in its process, as the precision of ball arithmetic belongs to the
process. All workers are asked before anything is sent, and each again with every task, for workers
may join at any time.

**Lost workers.** The scheduler gives their tasks to others. It gives up on a task during which
several workers were lost (its setting ``allowed-failures``, 3), and that is then the task's fault.
A cluster that has lost all its workers is waited for.

**Trust.** Tasks and results are pickles: whoever may talk to the scheduler can run code on its
workers and here. A task holds the mechanism and synthetic records, or says where a part of the data
lies, which its worker then reads; real records and the keys of a release never travel.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from typing import Any

import cloudpickle
from joblib.parallel import ParallelBackendBase

from dpverify.errors import ClusterError, extra, require
from dpverify.execution.versions import versions

__all__ = ["Cluster", "joined"]

_START = "Start them with `dask worker ADDRESS --nworkers N --nthreads 1`."


@contextmanager
def joined(scheduler: str, patience: float) -> Iterator[Cluster]:
    """The cluster at an address, once its workers have been found fit.

    Parameters
    ----------
    scheduler : its address, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``
    patience : seconds in which it must answer, and have a worker

    Raises
    ------
    ParameterError
        If that isn't the form of the address.
    ClusterError
        If no scheduler answers there, it has no worker, or a worker is unfit.
    """
    with extra("dask", "backend=dask"):
        from distributed import Client
    rule = "an address, as tcp://HOST:PORT"
    formed = re.fullmatch(r"([a-z]+://)?[^\s/]+:\d+", scheduler)
    require(formed is not None, "scheduler", scheduler, rule)
    try:
        client = Client(scheduler, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:  # a time-out is an OSError
        raise ClusterError(
            f"scheduler={scheduler} doesn't answer within {patience:g} s: start one with "
            "`dask scheduler`, which prints its address."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise ClusterError(
                f"scheduler={scheduler} has no worker within {patience:g} s. {_START}"
            ) from error
        _inspect(client)
        yield Cluster(client)


def _inspect(client: Any) -> None:
    """Refuse a cluster of which a worker is unfit."""
    found = client.run(_described, on_error="return")
    for worker, described in sorted(found.items()):
        if isinstance(described, BaseException):
            raise ClusterError(
                f"worker {worker} can't load dpverify ({described}). Install dpverify "
                f"{versions()['dpverify']} there, with the same libraries as here."
            ) from described
        _check(worker, described, _described())
    processes = Counter(described["process"] for described in found.values())
    shared, times = processes.most_common(1)[0]
    if times > 1:
        raise ClusterError(
            f"process {shared} holds {times} workers, and must hold one: the precision of ball "
            f"arithmetic belongs to the process. {_START}"
        )


def _described(dask_worker: Any = None) -> dict[str, Any]:
    """What decides whether a process gives the numbers of another.

    Parameters
    ----------
    dask_worker : whose process this is, which `Client.run` gives by this name; None for no worker
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {
        "versions": versions() | {"python": python},
        "process": f"{os.getpid()} on {socket.gethostname()}",
        "threads": 1 if dask_worker is None else dask_worker.state.nthreads,
    }


def _check(worker: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    for name, version in here["versions"].items():
        other = there["versions"].get(name)
        if other != version:
            raise ClusterError(
                f"worker {worker} has {name} {other}, and must have {version} as here: "
                "the same seed may give other numbers."
            )
    if there["threads"] != 1:
        raise ClusterError(
            f"worker {worker} has {there['threads']} threads, and must have one: the precision of "
            f"ball arithmetic belongs to the process. {_START}"
        )


def _carried_out(packed: bytes, sender: Mapping[str, Any]) -> Any:
    """On a worker: do what was sent, if this worker would do it as its sender does."""
    from distributed import get_worker

    worker = get_worker()
    _check(worker.address, _described(worker), sender)
    try:
        call: Callable[[], Any] = cloudpickle.loads(packed)
    except Exception as error:  # whatever the making anew of someone's object raises
        raise ClusterError(
            f"worker {worker.address} can't load its task ({error}): the audited code must be "
            "installed there, or be defined in the script that you run."
        ) from error
    return call()


class Cluster(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Joblib's view of a cluster: tasks go in, and futures come out that end in every case.

    Parameters
    ----------
    client : connected, and closed by whoever made it
    """

    supports_retrieve_callback = True
    default_n_jobs = -1
    remote = True

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client
        self._sender = _described()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Workers there are: they all take part, however many were asked for.

        At least 2, as joblib itself does the work of one, in this process.
        """
        return max(2, len(self._client.nthreads()))

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None]) -> Any:
        """Send a task; the callback gets its future when it has ended, well or not."""
        try:
            packed = cloudpickle.dumps(func)
            future = self._client.submit(_carried_out, packed, self._sender, pure=False)
        except Exception as error:  # joblib calls this in threads, where no one would hear of it
            future = Future()
            future.set_exception(error)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """Result of a future that has ended."""
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        try:
            return out.result()
        except KilledWorker as error:
            raise BrokenExecutor(str(error)) from error
        except (CancelledError, CommClosedError) as error:
            raise ClusterError(
                f"the cluster at {self._client.scheduler.address} was lost ({error}): run the "
                "command again; an audit with a journal resumes."
            ) from error
