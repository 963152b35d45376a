"""Questions and answers between the benchmark and a library: JSON on standard input and output.

Each question is answered in a fork of the process that has imported the library. So it starts from
cold caches, as a user's single question would; its memory is its own; and a time limit or a crash
ends it alone. Seconds leave out the imports. With ``"repeat": n`` the fork answers n times in a row
and the median counts, which is what a program that asks often pays.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Literal

__all__ = ["Case", "Method", "Reply", "answered", "serve"]

_MEMORY_LIMIT = 6 << 30  # bytes of address space


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Releases of one mechanism together, all numbers being doubles that are meant exactly.

    Attributes
    ----------
    mechanism : what is released, each time on the worst neighbours
    parameter : σ at ℓ2-sensitivity 1, b at ℓ1-sensitivity 1, or the probability of the truth
    count : releases with each parameter
    others : further parameters
    solve : what is asked; `given` is the other one of ε (in nats) and δ
    """

    mechanism: Literal["gaussian", "laplace", "randomized-response"]
    parameter: float
    count: int
    solve: Literal["epsilon", "delta"]
    given: float
    others: tuple[float, ...] = ()

    @property
    def parameters(self) -> tuple[float, ...]:
        """All of them."""
        return (self.parameter, *self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way in which a library answers.

    Attributes
    ----------
    claim : ``upper`` where the documentation calls the value a bound or a guarantee, ``estimate``
        where it doesn't
    answer : the value, or None where the library offers none by this method
    """

    claim: Literal["upper", "estimate"]
    answer: Callable[[Case], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A value or an error, or neither where the method offers none; seconds, and bytes at peak."""

    value: float | None
    error: str
    seconds: float
    memory: int


def answered(python: str, module: str, *arguments: str, question: str) -> str:
    """What a module of these prints, in a process of its own on one core.

    Parameters
    ----------
    python : the interpreter of an environment that has the library
    module, arguments : what is run: one of `benchmarks.peers`
    question : its standard input
    """
    done = subprocess.run(  # noqa: S603  # the interpreter is the user's choice
        [python, "-m", f"benchmarks.peers.{module}", *arguments],
        input=question,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return done.stdout


def serve(package: str, methods: dict[str, Method]) -> None:
    """Answer ``{"limit": seconds, "repeat": n, "cases": […]}`` by every method, in order."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no reply
    questions = json.load(sys.stdin)
    cases = [
        Case(**{**case, "others": tuple(case.get("others", ()))}) for case in questions["cases"]
    ]
    limit, repeat = questions["limit"], questions["repeat"]
    found = {
        name: {
            "claim": method.claim,
            "replies": [asdict(_isolated(method, case, limit, repeat)) for case in cases],
        }
        for name, method in methods.items()
    }
    with replies:
        json.dump({"version": version(package), "methods": found}, replies)


def _isolated(method: Method, case: Case, limit: int, repeat: int) -> Reply:
    reader, writer = os.pipe()
    start = perf_counter()
    child = os.fork()
    if child == 0:
        signal.alarm(limit)
        os.write(writer, json.dumps(_answered(method, case, repeat)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    memory = usage.ru_maxrss * 1024
    if text:
        return Reply(**json.loads(text), memory=memory)
    killer = os.WTERMSIG(status)
    error = f"over {limit} s" if killer == signal.SIGALRM else signal.Signals(killer).name
    return Reply(value=None, error=error, seconds=perf_counter() - start, memory=memory)


def _answered(method: Method, case: Case, repeat: int) -> dict[str, object]:
    value, error, seconds = None, "", []
    for _ in range(repeat):
        start = perf_counter()
        try:
            value = method.answer(case)
        except BaseException as exception:  # a Rust panic is no Exception
            error = " ".join(f"{type(exception).__name__}: {exception}".split())[:160]
        seconds.append(perf_counter() - start)
    return {"value": value, "error": error, "seconds": median(seconds)}
