"""A tape of a mechanism's calls for noise: recorded in one run, and replayed in another.

A recording run draws noise and notes every call: which method, its settings, the line, its input,
its output. A replay gives the recorded outputs to the same calls, whatever their inputs are, and
notes these. So everything that a mechanism does after a call is a function of its data and of
outputs that both runs share.

**The input of additive noise.** Normal and Laplace noise has its location for input. Code that adds
the noise itself (`x + rng.laplace()`) gets a `Noise`, which becomes a number when something is
added to it: that is the input, and the sum is the output that is frozen. Anything else that is
done to it makes it a plain number, whose input is its location alone, and the call is `raw`. So is
every other random number, but a choice with probabilities, whose input these are.

**What is taped**: numpy's generators that the mechanism is given or makes by `default_rng`, numpy's
and Python's global functions, `randomise` of diffprivlib's mechanisms and calls of OpenDP's
measurements where these libraries are loaded, and what is marked (`primitive`). Inside a taped call
nothing is. A generator that was made earlier isn't taped, which shows: its runs at one record
differ.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._recording import asking_line, placed
from dpverify.auditing.attacks._taped_call import (
    Diverged,
    Noise,
    TapedCall,
    digest,
    measured,
)
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.auditing.targets.primitives import Declaration

__all__ = ["Tape"]

Array = NDArray[np.float64]

_ADDITIVE = {"normal": "normal", "laplace": "laplace"}
_PYTHON = {"gauss": "normal", "normalvariate": "normal"}
_ORDERS = ("shuffle", "permutation")


class Tape:
    """Records a run, or replays one."""

    def __init__(self, seed: int, recorded: Tape | None = None) -> None:
        self.calls: list[TapedCall] = []
        self.facts: list[tuple[int, str, str, str]] = []  # calls so far, name, digest, line
        self.recorded = recorded
        self.differences: list[str] = []  # why it can't be a replay, the first of them first
        self.threads: set[int] = set()  # that made calls, or said facts
        self._inside = False
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self.legacy = np.random.RandomState(seed % 2**32)  # stands in for the global one
        self.python = random.Random(seed)  # noqa: S311  # stands in for the global one

    # --- what calls ask

    def ask(self, source: Any, name: str, arguments: tuple[Any, ...], named: Any) -> Any:
        """What a method of a source of random numbers gives."""
        if self._inside:
            return getattr(source, name)(*arguments, **named)
        if name in ("standard_normal", "randn"):
            sized = (arguments or None,) if name == "randn" else arguments
            return self._additive(source, "normal", 0.0, 1.0, *sized, **named)
        if name in _ADDITIVE or name in _PYTHON:
            return self._additive(source, name, *arguments, **named)
        if name in _ORDERS and source is not self.python and np.ndim(arguments[0]):
            return self._order(source, name, *arguments, **named)
        if name == "choice" and source is not self.python:
            return self._choice(source, *arguments, **named)
        return self._other(
            name, lambda: getattr(source, name)(*arguments, **named), arguments, named
        )

    def _additive(
        self,
        source: Any,
        name: str,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: Any = None,
        dtype: Any = None,
        out: Any = None,
        **python: Any,
    ) -> Any:
        loc, scale = python.get("mu", loc), python.get("sigma", scale)
        law = _ADDITIVE.get(name) or _PYTHON[name]
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale))
        if size is not None:
            shape = tuple(np.atleast_1d(size).tolist())
        inputs, scales = (
            np.broadcast_to(np.asarray(x, dtype=np.float64), shape).ravel().copy()
            for x in (loc, scale)
        )
        call = TapedCall(law, law, asking_line(), shape=shape, scales=scales, inputs=inputs)
        call.factors, call.used = np.ones(scales.size), np.zeros(scales.size, dtype=bool)
        before = self._enter(call)
        if before is None:
            drawn = getattr(self.generator, law)(0.0, 1.0, size=scales.size) * scales
            located = bool(np.any(inputs))
            call.output = (drawn, located)
        drawn, located = call.output
        if located:  # the location is the input, and the sum the output
            total = before.sums[()] if before else _shaped(inputs + drawn, shape)
            call.sums[()] = total
            return deepcopy(total)
        made = Noise(call, before, np.arange(scales.size).reshape(shape), 1.0)
        if out is not None:
            out[...] = np.asarray(made)
            return out
        return made

    def _choice(
        self,
        source: Any,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        **named: Any,
    ) -> Any:
        count = int(a) if np.ndim(a) == 0 else len(a)
        options = {"size": size, "replace": replace, **named}
        settings = f"choice {fingerprint([count, sorted(options.items(), key=str)])}"
        call = TapedCall("choice", settings, asking_line())
        if p is None:
            call.raw = "a choice"
        else:
            call.inputs = np.asarray(p, dtype=np.float64).ravel()
            single = size is None or np.size(np.zeros(size)) == 1
            call.raw = "" if single else "a choice of several"
        if self._enter(call) is None:
            call.output = source.choice(count, p=p, **options)
        places = deepcopy(call.output)
        return places if np.ndim(a) == 0 else np.asarray(a)[places]

    def _order(self, source: Any, name: str, x: Any, axis: int = 0) -> Any:
        call = TapedCall(name, f"{name} of {len(x)}", asking_line(), raw="a random order")
        if self._enter(call) is None:
            call.output = source.permutation(len(x))
        if name == "permutation":
            return np.take(np.asarray(x), call.output, axis=axis)
        if isinstance(x, np.ndarray):
            x[...] = x[call.output]
        else:
            x[:] = [x[place] for place in call.output]
        return None

    def _other(self, name: str, draw: Callable[[], Any], arguments: Any, named: Any) -> Any:
        settings = f"{name} {fingerprint([arguments, named])}"
        call = TapedCall(name, settings, asking_line(), raw=name)
        return self._drawn(call, draw)

    def marked(
        self,
        declared: Declaration,
        call: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Call a marked primitive, or give what it gave."""
        if self._inside:
            return call(*arguments, **named)
        value, *rest = arguments or (None,)
        others = [_plain(each) for each in (*rest, *named.values())]
        settings = f"{declared.name} {list(named)} {digest(others)}"
        taped = TapedCall("marked", settings, asking_line(), declared=declared)
        taped.inputs = measured(value)
        taped.shape = np.shape(value) if taped.inputs is not None else ()
        return self._once(taped, lambda: call(*arguments, **named))

    def library(self, taped: TapedCall, call: Callable[[], Any]) -> Any:
        """Call a library's mechanism, or give what it gave."""
        return call() if self._inside else self._once(taped, call)

    def _once(self, taped: TapedCall, call: Callable[[], Any]) -> Any:
        def draw() -> Any:
            self._inside = True
            try:
                return call()
            finally:
                self._inside = False

        return self._drawn(taped, draw)

    def _drawn(self, call: TapedCall, draw: Callable[[], Any]) -> Any:
        """What a call gives, or raises, which is frozen too."""
        if self._enter(call) is None:
            try:
                call.output = draw()
            except Exception as error:  # a primitive's own way to say something
                call.raised = error
        if call.raised is not None:
            raise call.raised
        try:
            return deepcopy(call.output)
        except Exception:  # whatever an object says to being copied
            named = f"call {call.number}, {call.kind} at {call.place}"
            kind = type(call.output).__name__
            raise call.differs(f"{named}, gives a {kind}, which can't be kept") from None

    def fact(self, name: str, value: Any) -> None:
        """Note what must not depend on the data."""
        if not self._inside:
            self.threads.add(threading.get_ident())
            self.facts.append((len(self.calls), name, digest(value), placed(asking_line())))

    def _enter(self, call: TapedCall) -> TapedCall | None:
        """The recorded call in the same place, whose output is taken over."""
        if self.differences:  # and the mechanism went on
            raise Diverged(self.differences[0])
        self.threads.add(threading.get_ident())
        self.calls.append(call)
        call.differences = self.differences
        number = call.number = len(self.calls)
        if self.recorded is None:
            return None
        if number > len(self.recorded.calls):
            raise call.differs(
                f"call {number}, {call.kind} at {call.place}, is made on one side alone"
            )
        before = self.recorded.calls[number - 1]
        if before.kind != call.kind:
            said = f"is {before.kind} at {before.place} or {call.kind} at {call.place}"
        elif before.shape != call.shape:
            said = f"({call.kind} at {call.place}) is of shape {before.shape} or {call.shape}"
        elif not np.array_equal(before.scales, call.scales):
            said = f"({call.kind} at {call.place}) has a scale that depends on the data"
        elif before.settings != call.settings:
            said = f"({call.kind} at {call.place}) has arguments that depend on the data"
        else:
            call.output, call.raised = before.output, before.raised
            return before
        raise call.differs(f"call {number} {said}")


def _shaped(values: Array, shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


def _plain(value: Any) -> Any:
    """An argument that can be compared: a generator is none."""
    return "generator" if isinstance(value, np.random.Generator | random.Random) else value
