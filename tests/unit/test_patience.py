"""The clock over foreign code, in the main thread and in others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.auditors import SUBJECTS
from dpverify.auditing.draws import guarded
from dpverify.auditing.patience import Late, watched
from dpverify.errors import DrawError

LIMIT = 0.1
HALVED = SUBJECTS[2]


def here(function: Callable[[], object]) -> object:
    return function()


def in_a_thread(function: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.fixture(params=[here, in_a_thread])
def place(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], object]:
    place: Callable[[Callable[[], object]], object] = request.param
    return place


def test_an_output_that_never_comes(place: Callable[[Callable[[], object]], object]) -> None:
    def hang() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:  # noqa: S110  # a mechanism that swallows whatever it can
                pass

    def late() -> None:
        with watched([], LIMIT):
            hang()

    with pytest.raises(Late):
        place(late)

    def named() -> None:
        with guarded(hang, HALVED.pair, 0, [], LIMIT):
            hang()

    with pytest.raises(DrawError, match=r"took longer than 0\.1 s for one release"):
        place(named)


def test_outputs_that_come_are_left_alone(place: Callable[[Callable[[], object]], object]) -> None:
    def slow() -> int:
        outputs: list[int] = []
        with watched(outputs, LIMIT):
            for number in range(15):
                time.sleep(LIMIT / 4)
                outputs.append(number)
        return len(outputs)

    assert place(slow) == 15


def test_nothing_is_raised_afterwards(place: Callable[[Callable[[], object]], object]) -> None:
    def short() -> int:
        for _ in range(200):
            try:
                with watched([], 1e-4):  # ends about when the clock looks
                    sum(range(2000))
            except Late:
                pass
        return sum(range(200_000))

    assert place(short) == sum(range(200_000))
    assert threading.active_count() < 20
