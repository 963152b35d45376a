"""Noise sources that record what is requested and answer with noise of our choice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpverify._fields import changed, field_values
from dpverify.auditing.outputs.foreign import display_name
from dpverify.privacy import Mechanism
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords

__all__ = [
    "Call",
    "Recorder",
    "RecordingGenerator",
    "RecordingWords",
    "asking_line",
    "placed",
    "recorded",
]

Law = Literal["normal", "laplace"]
_OTHERS = frozenset(
    name
    for name in dir(np.random.Generator)
    if not name.startswith("_")
    and name not in {"normal", "laplace", "standard_normal", "bit_generator", "spawn"}
)
_NOT_CALLERS = (
    "dpverify.auditing.attacks._recording.",
    "dpverify.auditing.attacks._tape.",
    "dpverify.auditing.attacks._taped_call.",
    "dpverify.auditing.attacks._taped_sources.",
    "dpverify.auditing.targets.primitives.",
    "dpverify.sampling.",
    "numpy.",
    "random.",
)
"""Modules through which a mechanism asks for noise, each with its dot."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a noise source.

    Attributes
    ----------
    method : "normal", "laplace", "words", or the name of another method of numpy's generator
    scale : of the noise, broadcast and flattened; empty for others than normal and Laplace
    shape : of the noise
    line : file and number of the mechanism's line; calls are equal whatever theirs is
    """

    method: str
    scale: tuple[float, ...]
    shape: tuple[int, ...]
    line: tuple[str, int] = field(default=("", 0), compare=False)

    @property
    def place(self) -> str:
        """The line, for a person."""
        return placed(self.line)


@dataclass(slots=True)
class Recorder:
    """Notes calls and gives out chosen noise, in units of each variable's scale.

    Attributes
    ----------
    noise : for each variable, in the order of the calls; beyond its end there is none
    calls : what was asked for
    given : noise really given, in the mechanism's unit (whole numbers are rounded)
    """

    noise: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    calls: list[Call] = field(default_factory=list)
    given: list[NDArray[Any]] = field(default_factory=list)

    def ask(self, method: Law, scale: Any, shape: tuple[int, ...], *, whole: bool) -> NDArray[Any]:
        """Note a call for noise, and give the chosen noise of this shape."""
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), shape).ravel()
        self.calls.append(Call(method, tuple(scales.tolist()), shape, asking_line()))
        start, count = sum(given.size for given in self.given), scales.size
        units = np.zeros(count)
        chosen = self.noise[start : start + count]
        units[: chosen.size] = chosen
        drawn: NDArray[Any] = units * scales
        if whole:
            drawn = np.rint(drawn).astype(np.int64)
        self.given.append(drawn)
        return drawn.reshape(shape)

    def other(self, method: str, shape: tuple[int, ...]) -> None:
        """Note a call for anything else."""
        self.calls.append(Call(method, (), shape, asking_line()))


def placed(line: tuple[str, int]) -> str:
    """File and number of a line, for a person."""
    path, number = line
    relative = Path(path).is_relative_to(Path.cwd())
    return f"{Path(path).relative_to(Path.cwd()) if relative else Path(path).name}:{number}"


def asking_line() -> tuple[str, int]:
    """Where the mechanism asks: the innermost line that isn't a noise source's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not f"{frame.f_globals.get('__name__')}.".startswith(_NOT_CALLERS):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


class RecordingGenerator(np.random.Generator):
    """A numpy generator that notes what is asked of it and adds the chosen noise, none by default.

    `normal`, `standard_normal` and `laplace` return their location plus the chosen noise. Every
    other method is noted and answers from a fixed stream, so that control flow is the same in every
    run.
    """

    def __init__(self, noise: NDArray[np.float64] | None = None) -> None:
        super().__init__(np.random.PCG64(0))
        self.recorder = Recorder() if noise is None else Recorder(noise=noise)

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in _OTHERS:
            return method

        def noted(*args: Any, **options: Any) -> Any:
            drawn = method(*args, **options)
            self.recorder.other(name, np.shape(drawn))
            return drawn

        return noted

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The location plus chosen noise of this scale."""
        return self._around("normal", loc, scale, size)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Chosen noise of scale 1."""
        drawn = np.asarray(self._around("normal", 0.0, 1.0, size), dtype=dtype)
        if out is not None:
            out[...] = drawn
            return out
        return drawn if drawn.shape else drawn[()]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """The location plus chosen noise of this scale."""
        return self._around("laplace", loc, scale, size)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Generators of fixed streams, what is drawn from which isn't recorded."""
        self.recorder.other("spawn", (n_children,))
        return [np.random.Generator(np.random.PCG64(place)) for place in range(n_children)]

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """The fixed stream itself, what is drawn from which isn't recorded."""
        self.recorder.other("bit_generator", ())
        return super().bit_generator

    def _around(self, method: Law, loc: Any, scale: Any, size: Any) -> Any:
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale))
        if size is not None:
            shape = tuple(np.atleast_1d(size).tolist())
        drawn = loc + self.recorder.ask(method, scale, shape, whole=False)
        return drawn if shape else float(drawn)


class RecordingWords:
    """Random words that are noted, and the recorder of the noise that is drawn from them."""

    policy: ClassVar[str] = "replayable: recorded"

    def __init__(self, noise: NDArray[np.float64] | None = None) -> None:
        self.recorder = Recorder() if noise is None else Recorder(noise=noise)
        self._source = ReplayableWords(0, "grey-box")

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of a fixed stream."""
        self.recorder.other("words", (count,))
        return self._source.words(count)


class _RecordedGaussian(RoundedGaussian):
    def sample(self, shape: tuple[int, ...], *, rng: Any) -> NDArray[np.int64]:
        recorder: Recorder = rng.recorder
        return recorder.ask("normal", self.scale, shape, whole=True)


class _RecordedLaplace(RoundedLaplace):
    def sample(self, shape: tuple[int, ...], *, rng: Any) -> NDArray[np.int64]:
        recorder: Recorder = rng.recorder
        return recorder.ask("laplace", self.scale, shape, whole=True)


def _asking(mechanism: Any) -> Any:
    """The mechanism with noise that asks the recorder."""
    asking: dict[str, Any] = {}
    for name, value in field_values(mechanism).items():
        if isinstance(value, RoundedGaussian):
            asking[name] = _RecordedGaussian(scale=value.scale)
        elif isinstance(value, RoundedLaplace):
            asking[name] = _RecordedLaplace(scale=value.scale)
        elif hasattr(value, "release"):
            asking[name] = _asking(value)
    return changed(mechanism, **asking) if asking else mechanism


def recorded(mechanism: Mechanism) -> Callable[[Any, RecordingWords], NDArray[Any]]:
    """The mechanism's release, as a function of a data set and recording words.

    Rounded Gaussian and Laplace noise among its fields, and among those of a mechanism that it
    wraps, is replaced by noise that asks the recorder; of all other randomness only the words are
    noted.
    """
    stands = _asking(mechanism)

    def release(records: Any, rng: RecordingWords) -> NDArray[Any]:
        released: NDArray[Any] = stands.release(records, rng=rng)
        return released

    release.__name__ = display_name(mechanism)
    return release
