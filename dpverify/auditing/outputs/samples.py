"""Releases drawn for an audit, on both sides of a pair, whatever the mechanism does.

Draws come in chunks, each with a stream of words named by (seed, kind, pair, side, chunk), so that
no result depends on the number of workers or on their order. The first chunk is drawn in this
process; the rest goes to workers (joblib, loky) only where it is work enough to pay for starting
them.

Nothing that a mechanism does passes silently: an exception, a release that takes longer than its
time limit, a NaN, a change of shape, an output that is neither numbers nor a set, a worker that
dies and a mechanism that breaks on its way to one all end in a `DrawError` that names the mechanism
and the pair. What can't be pickled (a pointer into another library, the system's entropy source) is
drawn from in this process, with the same result. The time limit interrupts Python code
(`patience`); a call that hangs outside the interpreter is ended with its worker.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import BrokenExecutor
from numbers import Number
from time import perf_counter
from typing import Any, TypeVar

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.time_limit import Late, within
from dpverify.errors import DrawError, require
from dpverify.execution.parallel import remote, spread
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words
from dpverify.visible import raised, shown

__all__ = [
    "CHUNK",
    "as_numbers",
    "by_chunks",
    "copied",
    "display_name",
    "foreign_code",
    "one_side",
    "over_the_draw",
    "releaser",
    "sample_pair",
    "whole",
]

_T = TypeVar("_T")

CHUNK = 1000
"""Draws that share a stream of words."""
_INLINE = 1.5  # seconds of work that are done here sooner than workers would have started


def display_name(mechanism: object) -> str:
    """What a person calls the mechanism: its name, else a function's own, else its class's."""
    own = getattr(mechanism, "__name__", type(mechanism).__name__)
    return str(getattr(mechanism, "name", own))


def over_the_draw(mechanism: Any) -> bool:
    """Whether its guarantee is over the draw of public randomness, and says nothing of one draw."""
    return hasattr(mechanism, "guarantee") and bool(mechanism.guarantee().over_the_draw)


def whole(outputs: NDArray[Any]) -> bool:
    """Whether all of them are whole numbers, by type or by value."""
    return outputs.dtype.kind in "biu" or (
        outputs.dtype.kind == "f" and bool(np.all(outputs == np.floor(outputs)))
    )


def sample_pair(
    mechanism: Mechanism,
    pair: Pair,
    config: AuditConfig,
    stream: str,
    *,
    draws: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Independent releases of the pair's record and of its neighbour, by separate calls.

    Parameters
    ----------
    mechanism : drawn from through its `release`
    pair : whose name is part of the streams' names
    config : a release that takes longer than its time limit is stopped before twice as long
    stream : what the draws are for, in at least 3 letters; different streams are independent
    draws : on each side, if not the configured number

    Returns
    -------
    For each side an array of shape (draws, …), or of `frozenset` objects, of shape (draws,).

    Raises
    ------
    DrawError
        If a release raises, is late, holds a NaN, changes its shape, or is neither numbers nor a
        set; if a worker dies, or the mechanism breaks on its way to one.
    """
    draws = config.draws if draws is None else draws
    require(draws >= 1, "draws", draws, "at least 1")
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    case = (config.seed, stream, f"pair {pair.name!r}")
    tasks = [
        (mechanism, pair, side, size, (*case, side, number), config.time_limit)
        for side in (0, 1)
        for number, size in enumerate(sizes)
    ]
    chunks = list(by_chunks(one_side, tasks, config))
    shapes = list(dict.fromkeys(chunk.shape[1:] for chunk in chunks))
    if len(shapes) > 1:
        raise _error(mechanism, pair, f"changed the shape of its release: {shapes[0]}, {shapes[1]}")
    own, other = chunks[: len(sizes)], chunks[len(sizes) :]
    return _joined(own, mechanism, pair), _joined(other, mechanism, pair)


def by_chunks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], config: AuditConfig
) -> Iterator[Any]:
    """Results of ``function(*task)``, in the order of the tasks.

    Parameters
    ----------
    function : of a mechanism, a pair, and more, which makes at most `CHUNK` draws
    tasks : of one mechanism and pair
    config : says how many processes; the errors are those of `sample_pair`
    """
    start = perf_counter()
    first = function(*tasks[0])
    expected = (perf_counter() - start) * (len(tasks) - 1)
    yield first
    mechanism, pair = tasks[0][:2]
    if config.workers == 1 or expected < _INLINE or not (remote() or _sendable(mechanism)):
        yield from (function(*task) for task in tasks[1:])
        return
    # More than a chunk may take: its own clock speaks first, if it can.
    timeout = 2 * config.time_limit * CHUNK
    try:
        yield from spread(function, tasks[1:], workers=config.workers, timeout=timeout)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        reason = f"breaks on its way to a worker ({raised(error)}); workers=1 draws without"
        raise _error(mechanism, pair, reason) from error
    except BrokenExecutor as error:
        raise _error(mechanism, pair, "ended its worker process") from error
    except TimeoutError as error:
        raise _error(mechanism, pair, "hung outside the interpreter") from error


def _sendable(mechanism: Mechanism) -> bool:
    try:
        cloudpickle.dumps(mechanism)
    except Exception:  # whatever an object of another library says to being pickled
        return False
    return True


def one_side(
    mechanism: Mechanism,
    pair: Pair,
    side: int,
    size: int,
    key: tuple[int | str, ...],
    time_limit: float,
) -> NDArray[Any]:
    """Releases of the record (side 0) or of the neighbour (1) from one stream of words.

    Parameters
    ----------
    size : how many
    key : seed and case of the stream
    mechanism, pair, time_limit : as for `sample_pair`, with its result and its error
    """
    seed, *case = key
    rng = ReplayableWords(int(seed), *case)
    data = pair.neighbour if side else pair.record
    outputs: list[Any] = []

    def draw() -> None:
        release = releaser(mechanism, data, size, rng)
        for _ in range(size):
            outputs.append(release())  # noqa: PERF401

    foreign_code(draw, mechanism, pair, side, outputs, time_limit)
    return _stacked(outputs, mechanism, pair, side)


def releaser(mechanism: Any, data: Any, count: int, rng: Words) -> Callable[[], Any]:
    """Release the data set at each of so many calls, one after the other.

    The mechanism's own `releaser` prepares what doesn't change between them, if it has one.
    """
    if hasattr(mechanism, "releaser"):
        prepared: Callable[[], Any] = mechanism.releaser(data, count, rng=rng)
        return prepared
    return lambda: mechanism.release(copied(data), rng=rng)


def copied(data: Any) -> Any:
    """A copy: a release that changes its argument must not change the next one's."""
    if type(data) is np.ndarray and not data.dtype.hasobject:
        return data.copy("K")
    return copy.deepcopy(data)


def foreign_code(
    work: Callable[[], _T],
    mechanism: object,
    pair: Pair,
    side: int | None,
    outputs: Sized,
    time_limit: float,
    *,
    passed: type[Exception] = DrawError,
) -> _T:
    """Call foreign code: whatever it raises, or a wait for its next output, is a `DrawError`.

    Parameters
    ----------
    work : that code, a function of Python's
    mechanism, pair, side : what to name; of either side, None
    outputs : what it has given so far, which grows with each
    time_limit : seconds for each; it is stopped before twice as many
    passed : errors that go on as they are
    """
    try:
        return within(time_limit, outputs, work)
    except Late:
        reason = f"took longer than {time_limit:g} s for one release"
        raise _error(mechanism, pair, reason, side) from None
    except passed:
        raise
    except Exception as error:
        reason = f"raised {raised(error)}"
        raise _error(mechanism, pair, reason, side) from error


def _stacked(outputs: list[Any], mechanism: Mechanism, pair: Pair, side: int) -> NDArray[Any]:
    """One array of all, numbers or frozensets."""
    if _as_set(outputs[0]) is not None:
        stacked = np.empty(len(outputs), dtype=object)
        stacked[:] = [_as_set(output) for output in outputs]
        if any(output is None for output in stacked):
            raise _error(mechanism, pair, "released a set, and then none", side)
        return stacked
    if any(map(np.ma.isMaskedArray, outputs)):
        way = " Let it return an array without a mask, as `filled` makes one."
        raise _error(mechanism, pair, "released a masked array", side, way)
    try:
        numbers = as_numbers(outputs)
    except ValueError:  # ragged
        shapes = list(dict.fromkeys(np.shape(output) for output in outputs))
        reason = f"changed the shape of its release: {shapes[0]}, {shapes[-1]}"
        raise _error(mechanism, pair, reason, side) from None
    if numbers.dtype.kind in "Oc" and all(isinstance(n, Number) for n in numbers.ravel().tolist()):
        raise _inexact(mechanism, pair, numbers, side)
    if numbers.dtype.kind not in "biuf" or not numbers.size:
        reason = f"released neither numbers nor a set: {_first(outputs[0])}"
        way = " Let it return a number, an array of numbers of one shape, or a set."
        raise _error(mechanism, pair, reason, side, way)
    if np.any(np.isnan(numbers)):
        way = " Let it return a number that stands for it, and how often that appears is audited."
        raise _error(mechanism, pair, "released a NaN", side, way)
    return numbers


def _as_set(output: Any) -> frozenset[Any] | None:
    if isinstance(output, np.ndarray) and output.dtype == object and output.size == 1:
        output = output.item()
    return frozenset(output) if isinstance(output, set | frozenset) else None


def as_numbers(outputs: Sequence[Any]) -> NDArray[Any]:
    """One array of all; of objects where doubles or 64 bits would hold other numbers."""
    numbers = np.array(outputs)
    if numbers.dtype == np.uint64 and numbers.size:  # beside which signed ones become doubles
        return numbers.astype(np.int64 if numbers.max() < 2**63 else object)
    if numbers.dtype.kind == "f":
        rounded = any(float(n) != n for output in outputs for n in _whole(output))
        if rounded or not (
            numbers.dtype.itemsize <= 8
            or np.array_equal(numbers.astype(np.float64), numbers, equal_nan=True)
        ):
            return np.array(outputs, dtype=object)
    return numbers


def _whole(output: Any) -> Iterator[int]:
    """Whole numbers in an output, which doubles beside them make doubles."""
    if type(output) is float or (type(output) is np.ndarray and output.dtype.kind == "f"):
        return  # nearly all outputs, sooner than by the patterns
    match output:
        case list() | tuple():
            for part in output:
                yield from _whole(part)
        case np.ndarray() if output.dtype.kind in "iu":
            yield from output.ravel().tolist()
        case int() | np.integer():
            yield int(output)


def _joined(chunks: Sequence[NDArray[Any]], mechanism: object, pair: Pair) -> NDArray[Any]:
    joined = np.concatenate(chunks)
    if joined.dtype.kind == "f" and any(float(n) != n for chunk in chunks for n in _whole(chunk)):
        raise _inexact(mechanism, pair, np.concatenate([c.astype(object) for c in chunks]))
    return joined


def _inexact(
    mechanism: object, pair: Pair, numbers: NDArray[Any], side: int | None = None
) -> DrawError:
    every = numbers.ravel().tolist()
    first = next((n for n in every if not isinstance(n, float)), every[0])
    reason = f"released a number that doubles and 64 bits don't hold, or not beside: {shown(first)}"
    way = " Let it return parts that they hold: numerator and denominator, or divmod(n, 2**32)."
    return _error(mechanism, pair, reason, side, way)


def _first(output: Any) -> str:
    """An output as the function returned it: adapters put it into an array."""
    alone = isinstance(output, np.ndarray) and output.size == 1
    return shown(output.item() if alone else output)


def _error(
    mechanism: object, pair: Pair, reason: str, side: int | None = None, way_out: str = ""
) -> DrawError:
    where = "" if side is None else (" (on its neighbour)" if side else " (on its record)")
    return DrawError(
        f"{display_name(mechanism)} {reason}, on the pair {pair.name!r}{where}.{way_out}"
    )
