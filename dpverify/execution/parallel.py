"""Where parallel work runs: processes of this machine, or a cluster of the user's.

Work is a function and a list of arguments, and each result depends on its arguments alone: what is
drawn takes its randomness from a stream named in them. So neither the place nor the number of
workers, nor a task that is done twice because its worker was lost, changes a result. The release of
a part of the data is the exception: its noise is fresh in every attempt, and one result comes back.

`spread` hands tasks to joblib, which runs them where `workplace` says:

| backend | where | a worker that is lost |
|---|---|---|
| loky | processes of this machine, as many as `workers` says | ends the work with an error |
| dask | a `dask.distributed` cluster, on all its workers | its tasks are done again by others |

Whatever the place, one worker means this process: nothing is sent anywhere. Joblib, which takes a
tenth of a second to import, is imported where there are more.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

from dpverify.errors import require, require_known

__all__ = ["BACKENDS", "Backend", "remote", "spread", "workplace"]

Backend = Literal["loky", "dask"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""Places by the name of joblib's backend."""


@contextmanager
def workplace(
    *, backend: Backend = "loky", scheduler: str | None = None, patience: float = 10.0
) -> Iterator[None]:
    """Work that is spread inside this context, by this thread, runs there.

    Parameters
    ----------
    backend : see the table above
    scheduler : address of the cluster's scheduler, ``tcp://HOST:PORT``; with the backend dask alone
    patience : seconds in which the scheduler must answer, and have a worker

    Raises
    ------
    ParameterError
        If the backend is unknown, lacks its scheduler, or takes none.
    ClusterError
        If the cluster can't be reached, or its workers can't give the numbers that this process
        would (`cluster.joined`).
    """
    require_known("backend", backend, BACKENDS)
    if backend == "loky":
        rule = "left out with the backend loky"
        require(scheduler is None, "scheduler", scheduler, rule, "Name the backend dask.")
        yield
        return
    require(
        bool(scheduler), "scheduler", scheduler or "nothing", "an address with the backend dask"
    )
    from joblib import parallel_config

    from dpverify.execution.cluster import joined  # distributed takes a second to import

    with joined(str(scheduler), patience) as cluster, parallel_config(backend=cluster):
        yield


def remote() -> bool:
    """Whether work that is spread here goes to a cluster."""
    if "joblib" not in sys.modules:  # which `workplace` asks
        return False
    from joblib.parallel import get_active_backend

    return getattr(get_active_backend()[0], "remote", False)


def spread(
    function: Callable[..., Any],
    tasks: Iterable[Sequence[Any]],
    *,
    workers: int = -1,
    timeout: float | None = None,
) -> Iterator[Any]:
    """Results of ``function(*task)``, in the order of the tasks, each as soon as it is its turn.

    Parameters
    ----------
    function, tasks : picklable, unless there is one worker; a task's own parallel work is done by
        its worker alone
    workers : processes of this machine, −1 for one on each core; 1 is this process, wherever the
        others would be; of a cluster every worker takes part
    timeout : seconds that the next result may take, from when it is waited for

    Raises
    ------
    ParameterError
        If there can't be that many workers.
    BrokenExecutor
        If a task ends its process; on a cluster, if it ended several.
    ClusterError
        If the cluster is lost, or has a worker that can't give the numbers of this process.
    TimeoutError
        If the next result takes longer.
    Exception
        Whatever the function raises, or its pickling.
    """
    require(workers >= 1 or workers == -1, "workers", workers, "at least 1, or -1")
    if workers == 1:
        return (function(*task) for task in tasks)
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=workers,
        return_as="generator",
        timeout=timeout,
        initializer=_leave_interrupts_to_the_parent,
    )
    return _in_time(parallel(delayed(_alone)(function, task) for task in tasks))


def _in_time(results: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from results
    except multiprocessing.TimeoutError as error:  # joblib's, which isn't Python's own
        raise TimeoutError from error


def _alone(function: Callable[..., Any], task: Sequence[Any]) -> Any:
    from joblib import parallel_config

    # Joblib would have a task's own parallel work done by threads, which ball arithmetic can't
    # stand: its precision belongs to the process.
    with parallel_config(backend="sequential"):
        return function(*task)


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of a terminal; the parent answers alone and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
