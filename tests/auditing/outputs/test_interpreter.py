"""What an audit needs of the interpreter is as before, whatever a mechanism did to it."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.outputs.foreign import foreign_code
from dpverify.errors import DrawError

PAIR = dpv.Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD]
TIMERS = [signal.ITIMER_VIRTUAL, signal.ITIMER_PROF]


def nothing(*_: Any) -> None: ...


ANSWERS: dict[str, Any] = {
    "answered": nothing,
    "ignored": signal.SIG_IGN,
    "by default": signal.SIG_DFL,
}


def settings() -> dict[str, Any]:
    return {
        "answers": [signal.getsignal(each) for each in SIGNALS],
        "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "timers": [signal.getitimer(each) for each in TIMERS],
        "trace": sys.gettrace(),
        "profile": sys.getprofile(),
        "digits": sys.get_int_max_str_digits(),
        "collected": gc.isenabled(),
        "finders": list(sys.meta_path),
        "hooks": list(sys.path_hooks),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "temporary files": tempfile.tempdir,
    }


@pytest.fixture
def before() -> Iterator[dict[str, Any]]:
    """The settings, which are so for the next test in any case."""
    found = settings()
    yield found
    for number, answer in zip(SIGNALS, found["answers"], strict=True):
        signal.signal(number, answer)
    signal.pthread_sigmask(signal.SIG_SETMASK, found["blocked"])
    for timer, (left, again) in zip(TIMERS, found["timers"], strict=True):
        signal.setitimer(timer, left, again)
    sys.settrace(found["trace"])
    sys.setprofile(found["profile"])
    sys.set_int_max_str_digits(found["digits"])
    gc.enable()
    sys.meta_path[:], sys.path_hooks[:] = found["finders"], found["hooks"]
    sys.stdin, sys.stdout, sys.stderr = found["streams"]
    tempfile.tempdir = found["temporary files"]


CARELESS: dict[str, Callable[[], object]] = {
    **{
        f"{number.name}, {said}": partial(signal.signal, number, answer)
        for number in SIGNALS
        for said, answer in ANSWERS.items()
    },
    "blocks Ctrl-C": partial(signal.pthread_sigmask, signal.SIG_BLOCK, [signal.SIGINT]),
    "blocks all": partial(signal.pthread_sigmask, signal.SIG_BLOCK, signal.valid_signals()),
    "starts a timer": partial(signal.setitimer, signal.ITIMER_VIRTUAL, 1000),
    "starts another timer": partial(signal.setitimer, signal.ITIMER_PROF, 1000),
    "traces": partial(sys.settrace, nothing),
    "profiles": partial(sys.setprofile, nothing),
    "writes few digits": partial(sys.set_int_max_str_digits, 640),
    "collects nothing": gc.disable,
    "finds nothing": sys.meta_path.clear,
    "knows no folders": sys.path_hooks.clear,
    "reads nothing": partial(setattr, sys, "stdin", None),
    "prints nowhere": partial(setattr, sys, "stdout", io.StringIO()),
    "says nothing": partial(delattr, sys, "stderr"),
    "has no room": partial(setattr, tempfile, "tempdir", "/nowhere"),
}


@pytest.mark.parametrize("name", CARELESS)
def test_what_an_audit_needs_is_as_before(name: str, before: dict[str, Any]) -> None:
    foreign_code(CARELESS[name], CARELESS[name], PAIR, 0, (), 1)
    assert settings() == before


@pytest.mark.usefixtures("before")
def test_what_a_mechanism_sets_up_once_is_not_undone_elsewhere() -> None:
    """Timers and answers of before go on; so do the places that it adds."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 1000)
    signal.signal(signal.SIGTERM, nothing)
    finder: Any = object()
    foreign_code(partial(sys.meta_path.append, finder), nothing, PAIR, 0, (), 1)
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    assert signal.getsignal(signal.SIGTERM) is nothing
    assert sys.meta_path[-1] is finder


def test_the_clock_ticks_while_its_signal_is_blocked() -> None:
    """Unblocked, it would end the process, in which no other thread takes it."""
    program = """
import signal
import dpverify as dpv
from dpverify.auditing.outputs.foreign import foreign_code

def blocks():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while signal.SIGALRM not in signal.sigpending():
        sum(range(1000))

pair = dpv.Pair(name="a row more", record=[0], neighbour=[])
foreign_code(blocks, blocks, pair, 0, (), 0.5)  # long enough to block it before it comes
assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
print("goes on")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert (run.stdout, run.stderr, run.returncode) == ("goes on\n", "", 0)


def test_a_thread_sets_no_signals() -> None:
    with ThreadPoolExecutor(1) as pool:
        for name in ("prints nowhere", "blocks all"):
            work = CARELESS[name]
            before = pool.submit(settings).result()
            pool.submit(foreign_code, work, work, PAIR, 0, (), 1).result()
            assert pool.submit(settings).result() == before
        work = CARELESS["SIGINT, ignored"]
        refused = pool.submit(foreign_code, work, work, PAIR, 0, (), 1)
        with pytest.raises(DrawError, match="main thread"):
            refused.result()


@pytest.mark.parametrize("way", ["close", "detach"])
def test_streams_that_are_closed_are_opened_again(way: str) -> None:
    """Elsewhere the report ends in an error, and the command in the exit code of a violation."""
    program = f"""
import sys
from dpverify.auditing.outputs.interpreter import restored
for name in ("stdin", "stdout", "stderr"):
    for _ in range(2):
        with restored():
            getattr(sys, name).{way}()
print("é")
print("ö", file=sys.stderr)
assert sys.stdin.read() == "ü"
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        input="ü",
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
    )
    assert (run.stdout, run.stderr, run.returncode) == ("é\n", "ö\n", 0)
