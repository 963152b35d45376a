"""Where taped calls come from: generators, global functions, and libraries that are loaded."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpverify.auditing.attacks._recording import asking_line
from dpverify.auditing.attacks._tape import Tape
from dpverify.auditing.attacks._taped_call import Diverged, TapedCall, measured

__all__ = ["TapedGenerator", "patched"]

_NOT_NOISE = {"default_rng", "seed", "get_state", "set_state", "get_bit_generator"}
_NUMPY = tuple(
    name
    for name in dir(np.random.RandomState)
    if not name.startswith("_") and name not in _NOT_NOISE | {"set_bit_generator"}
)
_RANDOM = tuple(
    name
    for name in dir(random.Random)
    if not name.startswith("_") and name not in {"seed", "getstate", "setstate", "VERSION"}
)


class TapedGenerator(np.random.Generator):
    """A numpy generator whose calls are taped."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(np.random.PCG64(0))
        self._tape = tape

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattribute__(name)
        tape: Tape = super().__getattribute__("_tape")
        if name == "spawn":
            return lambda count: [TapedGenerator(tape) for _ in range(count)]
        if name == "bit_generator" or not callable(getattr(np.random.Generator, name, None)):
            return super().__getattribute__(name)
        return lambda *arguments, **named: tape.ask(tape.generator, name, arguments, named)


@contextmanager
def patched(tape: Tape) -> Iterator[None]:
    """Tape the calls of global functions and of loaded libraries."""

    def asked(source: Any, name: str) -> Callable[..., Any]:
        return lambda *arguments, **named: tape.ask(source, name, arguments, named)

    with ExitStack() as stack:

        def replace(owner: Any, names: Mapping[str, Any]) -> None:
            present = {name: value for name, value in names.items() if hasattr(owner, name)}
            stack.enter_context(patch.multiple(owner, **present))

        replace(np.random, {name: asked(tape.legacy, name) for name in _NUMPY})
        replace(np.random, {"default_rng": lambda *_: TapedGenerator(tape), "seed": _nothing})
        replace(random, {name: asked(tape.python, name) for name in _RANDOM} | {"seed": _nothing})
        replace(threading, {"excepthook": partial(_unless_ended, threading.excepthook)})
        for owner, names in _libraries(tape):
            replace(owner, names)
        yield


def _unless_ended(hook: Callable[[Any], Any], raised: threading.ExceptHookArgs) -> None:
    """Say nothing of a thread whose replay ended."""
    if not issubclass(raised.exc_type, Diverged):
        hook(raised)


def _nothing(*_: Any) -> None:
    """A seed that isn't set: the tape has its own."""


def _libraries(tape: Tape) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Owners of methods that are primitives, and the methods that tape them; none is imported."""
    opendp = sys.modules.get("opendp.mod")
    if opendp is not None:
        called = _called(tape, opendp.Measurement.__call__)
        yield opendp.Measurement, {"__call__": called, "invoke": called}
    diffprivlib = sys.modules.get("diffprivlib.mechanisms")
    for owner in vars(diffprivlib).values() if diffprivlib is not None else ():
        if isinstance(owner, type) and "randomise" in vars(owner):
            yield owner, {"randomise": _randomised(tape, vars(owner)["randomise"])}


def _called(tape: Tape, original: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Any, value: Any) -> Any:
        words = " ".join(map(str, (self.input_domain, self.input_metric, self.output_measure)))
        call = TapedCall("opendp", words, asking_line(), loss=self)
        call.inputs = measured(value)
        return tape.library(call, lambda: original(self, value))

    return called


def _randomised(tape: Tape, original: Callable[..., Any]) -> Callable[..., Any]:
    def randomise(self: Any, *values: Any) -> Any:
        names = ("epsilon", "delta", "sensitivity")
        numbers = {name: float(getattr(self, name, 0) or 0) for name in names}
        words = f"{type(self).__name__} {numbers}"
        call = TapedCall("diffprivlib", words, asking_line(), loss={"of": words, **numbers})
        call.inputs = measured(values[0]) if values else None
        return tape.library(call, lambda: original(self, *values))

    return randomise
