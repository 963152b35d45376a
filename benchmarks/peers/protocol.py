"""Questions and answers between the benchmark and a library: JSON on standard input and output.

Each question is answered in a fork of the process that has imported the library. So it starts from
cold caches, as a user's single question would; its memory is its own; and a time limit or a crash
ends it alone. Seconds leave out the imports.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Literal

__all__ = ["Case", "Method", "Reply", "serve"]

_MEMORY_LIMIT = 6 << 30  # bytes of address space


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`count` releases of one mechanism, all numbers being doubles that are meant exactly.

    Attributes
    ----------
    mechanism : what is released `count` times, each time on the worst neighbours
    parameter : σ at ℓ2-sensitivity 1, b at ℓ1-sensitivity 1, or the probability of the truth
    solve : what is asked; `given` is the other one of ε (in nats) and δ
    """

    mechanism: Literal["gaussian", "laplace", "randomized-response"]
    parameter: float
    count: int
    solve: Literal["epsilon", "delta"]
    given: float


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


def serve(package: str, methods: dict[str, Method]) -> None:
    """Answer ``{"limit": seconds, "cases": […]}`` with every method's replies, in order."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no reply
    questions = json.load(sys.stdin)
    cases = [Case(**case) for case in questions["cases"]]
    found = {
        name: {
            "claim": method.claim,
            "replies": [asdict(_isolated(method, case, questions["limit"])) for case in cases],
        }
        for name, method in methods.items()
    }
    with replies:
        json.dump({"version": version(package), "methods": found}, replies)


def _isolated(method: Method, case: Case, limit: int) -> Reply:
    reader, writer = os.pipe()
    start = perf_counter()
    child = os.fork()
    if child == 0:
        signal.alarm(limit)
        os.write(writer, json.dumps(_answered(method, case)).encode())
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


def _answered(method: Method, case: Case) -> dict[str, object]:
    value, error = None, ""
    start = perf_counter()
    try:
        value = method.answer(case)
    except BaseException as exception:  # a Rust panic is no Exception
        error = " ".join(f"{type(exception).__name__}: {exception}".split())[:160]
    return {"value": value, "error": error, "seconds": perf_counter() - start}
