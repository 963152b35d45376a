"""The clock over foreign code, in the main thread and in others."""

from __future__ import annotations

import dis
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import pytest

from dpverify.auditing.outputs import time_limit
from dpverify.auditing.outputs.foreign import foreign_code
from dpverify.auditing.outputs.time_limit import Late, within
from dpverify.errors import DrawError
from tests.helpers.profiles import day_and_night
from tests.helpers.textbook import SUBJECTS

LIMIT = 0.1
HALVED = SUBJECTS[2]
FOREVER = 10**6


def here(function: Callable[[], object]) -> object:
    return function()


def in_a_thread(function: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.fixture(params=[here, in_a_thread])
def place(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], object]:
    place: Callable[[Callable[[], object]], object] = request.param
    return place


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    threads = set(threading.enumerate())
    yield
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == before
    assert set(threading.enumerate()) <= threads


def test_an_output_that_never_comes(place: Callable[[Callable[[], object]], object]) -> None:
    def hang() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:  # noqa: S110  # a mechanism that swallows whatever it can
                pass

    with pytest.raises(Late):
        place(lambda: within(LIMIT, [], hang))
    with pytest.raises(DrawError, match=r"took longer than 0\.1 s for one release"):
        place(lambda: foreign_code(hang, hang, HALVED.pair, 0, [], LIMIT))


def swallowing_at_once() -> None:
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: S110  # whatever it is
            pass


def swallowing_in_a_context() -> None:
    while True:
        with suppress(BaseException):
            time.sleep(FOREVER)


def swallowing_twice() -> None:
    while True:
        with suppress(BaseException):
            swallowing_at_once()


@pytest.mark.parametrize(
    "swallowing", [swallowing_at_once, swallowing_in_a_context, swallowing_twice]
)
def test_who_swallows_what_the_alarm_raises_is_stopped(swallowing: Callable[[], None]) -> None:
    with pytest.raises(Late):
        within(LIMIT / 10, [], swallowing)


def test_what_was_swallowed_is_said_afterwards(
    place: Callable[[Callable[[], object]], object],
) -> None:
    def swallowing_once() -> str:
        with suppress(BaseException):
            while True:
                pass
        return "an output"

    with pytest.raises(Late):
        place(lambda: within(LIMIT / 10, [], swallowing_once))


def test_outputs_that_come_are_left_alone(place: Callable[[Callable[[], object]], object]) -> None:
    def slow() -> int:
        outputs: list[int] = []

        def draw() -> None:
            for number in range(15):
                time.sleep(LIMIT / 4)
                outputs.append(number)

        within(LIMIT, outputs, draw)
        return len(outputs)

    assert place(slow) == 15


class PlannedError(Exception):
    """What a mechanism raises of its own."""


@pytest.mark.parametrize("contexts", day_and_night(200, 100_000))
def test_nothing_is_raised_afterwards(
    place: Callable[[Callable[[], object]], object],
    contexts: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every exit, while another thread wants the interpreter and ticks fall on all of it."""

    def raising() -> None:
        sum(range(500))
        raise PlannedError

    def hanging() -> None:
        while True:
            pass

    exits: list[Callable[[], object]] = [partial(sum, range(size)) for size in (0, 500, 2000)]
    exits.append(raising)

    def hammered() -> dict[str, int]:
        ends = dict.fromkeys(("returned", "raised", "late"), 0)
        for number in range(contexts):
            work = hanging if number % 50 == 0 else exits[number % len(exits)]
            # From a tick or two in each context to one in a few.
            limit = (3e-5, 1e-4, 3e-4)[number % 3]
            try:
                within(limit, [], work)
                ends["returned"] += 1
            except PlannedError:
                ends["raised"] += 1
            except Late:
                ends["late"] += 1
        return ends

    monkeypatch.setattr(time_limit, "_FINEST", 3e-5)
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda each: told.append(str(each.exc_value)))
    idle = threading.Event()

    def load() -> None:
        while not idle.is_set():
            sum(range(1000))

    loaded = threading.Thread(target=load)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    loaded.start()
    try:
        ends = place(hammered)
        assert sum(range(200_000)) == 199_999 * 100_000
    finally:
        sys.setswitchinterval(interval)
        idle.set()
        loaded.join()
    assert all(each.endswith("ignored due to race condition") for each in told), told
    assert isinstance(ends, dict)
    assert all(ends.values()), ends
    assert sum(ends.values()) == contexts


def test_an_alarm_within_an_alarm_gives_it_back() -> None:
    def outer() -> None:
        assert within(FOREVER, [], partial(sum, range(10))) == 45
        while True:
            pass

    with pytest.raises(Late):
        within(LIMIT, [], outer)


def interrupted(instruction: int, interrupt: Callable[[FrameType], object]) -> tuple[str, bool]:
    """How a call of `within` ends that is interrupted before one of its instructions.

    Those of what it calls count as its own; says too whether there was so late an instruction.
    """
    count, done = itertools.count(), False

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        frame.f_trace_opcodes = True
        if event == "opcode" and not done and next(count) == instruction:
            done = True
            interrupt(frame)
        return trace

    def work() -> str:
        return "returned".strip()

    previous = sys.gettrace()
    try:
        sys.settrace(trace)
        ended = within(FOREVER, [], work)
    except Late:
        ended = "late"
    except KeyboardInterrupt:
        ended = "stopped"
    finally:
        sys.settrace(previous)
    return ended, done


def test_the_alarm_at_every_instruction() -> None:
    def tick(frame: FrameType) -> None:
        handler = signal.getsignal(signal.SIGALRM)
        if callable(handler):  # ours, as long as there is one
            handler(signal.SIGALRM, frame)
            handler(signal.SIGALRM, frame)

    def restored() -> bool:
        timer = signal.getitimer(signal.ITIMER_REAL)
        return signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and timer == (0, 0)

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    ends = []
    for instruction in itertools.count():
        ended, reached = interrupted(instruction, tick)
        assert restored(), instruction
        if not reached:
            break
        ends.append(ended)
    assert set(ends) == {"returned", "late"}
    assert len(ends) > len(list(dis.get_instructions(time_limit._by_alarm))) // 2


def test_the_clocks_thread_at_every_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises while it lives, wherever the thread that it watches is."""
    clocks: list[time_limit._Clock] = []
    due, ended = threading.Event(), threading.Event()

    def run(clock: time_limit._Clock) -> None:
        clocks.append(clock)
        while not clock.gate.acquire(timeout=1e-3):
            if due.is_set() and clock.running:
                clock.raise_late()
                break
        ended.set()

    def ring(frame: FrameType) -> None:
        due.set()
        while clocks and clocks[-1].running and not ended.is_set():
            time.sleep(0)

    def watched() -> list[str]:
        ends = []
        for instruction in itertools.count():
            clocks.clear()
            due.clear()
            ended.clear()
            end, reached = interrupted(instruction, ring)
            assert not clocks[-1].thread.is_alive(), instruction
            if not reached:
                break
            ends.append(end)
        return ends

    monkeypatch.setattr(time_limit._Clock, "run", run)
    ends = in_a_thread(watched)
    assert isinstance(ends, list)
    assert set(ends) == {"returned", "late"}
