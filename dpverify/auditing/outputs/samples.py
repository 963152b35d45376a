"""Releases drawn for an audit, on both sides of a pair, whatever the mechanism does.

Draws come in chunks, each with a stream of words named by (seed, kind, pair, side, chunk), so that
no result depends on the number of workers or on their order. The first chunk is drawn in this
process; the rest goes to workers (joblib, loky) only where it is work enough to pay for starting
them.

Record and neighbour are drawn in turn, each two of them in an order that is drawn, but each from
words of its own. What a mechanism keeps from one release to the next (a budget that ends, a count)
falls on both sides alike then, and isn't taken for a difference between them.

Any Python value is an output, and so is an exception (`values`). Nothing that a mechanism does
passes silently: one that always raises, on both sides, a release that takes longer than its time
limit, outputs of another structure from some release on, a worker that dies and a mechanism that
breaks on its way to one all end in a `DrawError` that names the mechanism and the pair. What can't
be pickled (a pointer into another library, the system's entropy source) is drawn from in this
process, with the same result. The time limit interrupts Python code (`time_limit`); a call that
hangs outside the interpreter is ended with its worker.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence, Sized
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.time_limit import Late, time_left, within
from dpverify.auditing.outputs.values import Value, kept, objects, types_of, value_of
from dpverify.errors import PASSING, DrawError, require
from dpverify.execution.parallel import remote, spread
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words
from dpverify.visible import raised

__all__ = [
    "CHUNK",
    "OVERDUE",
    "AlwaysRaisedError",
    "Drawn",
    "alone",
    "always_raises",
    "as_numbers",
    "both_sides",
    "by_chunks",
    "copied",
    "copies",
    "display_name",
    "foreign_code",
    "joined",
    "one_side",
    "over_the_draw",
    "prepares",
    "raised_in",
    "releaser",
    "require_numbers",
    "sample_pair",
    "valued",
    "whole",
]

_T = TypeVar("_T")

CHUNK = 1000
"""Draws that share a stream of words."""
OVERDUE = "took all the time that an audit may take"
_STRUCTURES = 5  # most frequent in a chunk, of which each may show that state is kept
_SUSPECT = 1e-8
_INLINE = 1.5  # seconds of work that are done here sooner than workers would have started
_STARTED = 60.0  # seconds within which a process has started, also on a busy machine


def display_name(mechanism: object) -> str:
    """What a person calls the mechanism: its name, else a function's own, else its class's."""
    own = getattr(mechanism, "__name__", type(mechanism).__name__)
    return str(getattr(mechanism, "name", own))


def over_the_draw(mechanism: Any) -> bool:
    """Whether its guarantee is over the draw of public randomness, and says nothing of one draw."""
    return hasattr(mechanism, "guarantee") and bool(mechanism.guarantee().over_the_draw)


def whole(outputs: NDArray[Any]) -> bool:
    """Whether all of them are whole numbers, by type or by value.

    Doubles beyond 2⁵³ are all whole: of those alone, nothing says that they were meant to be.
    """
    if valued(outputs):  # also of several types
        raws = (output.raw for output in outputs)
        return all(isinstance(raw, np.ndarray) and whole(raw) for raw in raws)
    return outputs.dtype.kind in "biu" or (
        outputs.dtype.kind == "f"
        and bool(np.all(outputs == np.floor(outputs)) and np.any(np.abs(outputs) < 2**53))
    )


def sample_pair(
    mechanism: Mechanism,
    pair: Pair,
    config: AuditConfig,
    stream: str,
    *,
    draws: int | None = None,
    like: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Independent releases of the pair's record and of its neighbour, by separate calls.

    Parameters
    ----------
    mechanism : drawn from through its `release`
    pair : whose name is part of the streams' names
    config : a release that takes longer than its time limit is stopped before twice as long
    stream : what the draws are for, in at least 3 letters; different streams are independent
    draws : on each side, if not the configured number
    like : training outputs: where these are of several types, so are the new ones told apart

    Returns
    -------
    For each side an array of shape (draws, …) of numbers of one type; or of shape (draws,) of sets,
    or of `Value` objects for anything else, also where outputs are of several types or shapes.

    Raises
    ------
    AlwaysRaisedError
        If every release raises.
    DrawError
        If a release is late, or outputs change their structure once and for all; if a worker dies,
        or the mechanism breaks on its way to one.
    """
    draws = config.draws if draws is None else draws
    require(draws >= 1, "draws", draws, "at least 1")
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    case = (config.seed, stream, f"pair {pair.name!r}")
    tasks = [
        (mechanism, pair, size, (*case, number), config.time_limit)
        for number, size in enumerate(sizes)
    ]
    chunks = list(by_chunks(both_sides, tasks, config))
    own, other = joined([side for sides in chunks for side in sides], like)
    if always_raises(own) and always_raises(other):
        raise AlwaysRaisedError(str(_error(mechanism, pair, f"raised {own[0].raised}")))
    return own, other


class AlwaysRaisedError(DrawError):
    """A mechanism of which every release raised."""


def by_chunks(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], config: AuditConfig
) -> Iterator[Any]:
    """Results of ``function(*task)``, in the order of the tasks.

    Parameters
    ----------
    function : of a mechanism, a pair, and more, which makes at most `CHUNK` draws of each side
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
    timeout = min(_STARTED + 4 * config.time_limit * CHUNK, max(time_left(), 1e-3))
    try:
        yield from spread(function, tasks[1:], workers=config.workers, timeout=timeout)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        reason = f"breaks on its way to a worker ({raised(error)}); workers=1 draws without"
        raise _error(mechanism, pair, reason) from error
    except BrokenExecutor as error:
        raise _error(mechanism, pair, "ended its worker process") from error
    except TimeoutError as error:
        reason = "hung outside the interpreter" if time_left() > 0 else OVERDUE
        raise _error(mechanism, pair, reason) from error


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
    outputs: list[Any] = []

    def draw() -> None:
        release = _releasing(mechanism, pair, side, size, key, outputs)
        while len(outputs) < size:
            release()

    foreign_code(draw, mechanism, pair, side, outputs, time_limit)
    return _stacked(outputs, mechanism, pair, side)


def releaser(mechanism: Any, data: Any, count: int, rng: Words) -> Callable[[], Any]:
    """Release the data set at each of so many calls, one after the other.

    The mechanism's own `releaser` prepares what doesn't change between them, if it has one; but
    not where a subclass releases in another way than the class that has it.
    """
    if prepares(mechanism, "releaser", "release", "release_blocks"):
        prepared: Callable[[], Any] = mechanism.releaser(data, count, rng=rng)
    else:
        copied_data = copies(data)

        def prepared() -> Any:
            return mechanism.release(copied_data(), rng=rng)

    return alone(prepared)


def prepares(mechanism: Any, short: str, *ways: str) -> bool:
    """Whether it has a method that stands for others, none of which a subclass has changed."""
    classes = [vars(each) for each in type(mechanism).__mro__]
    own, *others = (
        next((place for place, names in enumerate(classes) if name in names), len(classes))
        for name in (short, *ways)
    )
    return own < len(classes) and own <= min(others)


def alone(release: Callable[[], _T]) -> Callable[[], _T]:
    """What makes a release, to be called in this process alone.

    A process that a mechanism forked and that comes back from it ends there: it isn't the audit's.
    """
    this = os.getpid
    process = this()

    def called() -> _T:
        try:
            return release()
        finally:
            if this() != process:
                os._exit(0)

    return called


def copied(data: Any) -> Any:
    """A copy: a release that changes its argument must not change the next one's."""
    return copies(data)()


def copies(data: Any) -> Callable[[], Any]:
    """Make a copy at each call; how, is settled once."""
    if type(data) is np.ndarray and not data.dtype.hasobject:
        return data.copy if data.flags.c_contiguous else partial(data.copy, "K")
    return partial(copy.deepcopy, data)


def both_sides(
    mechanism: Mechanism,
    pair: Pair,
    size: int,
    key: tuple[int | str, ...],
    time_limit: float,
) -> tuple[Drawn, Drawn]:
    """Releases of both sides in turn, each side from a stream of its own.

    Parameters
    ----------
    size : of each side, how many
    key : seed and case of the streams, the last part of which is a number
    mechanism, pair, time_limit : as for `sample_pair`, with its result and its error
    """
    *case, number = key
    outputs: tuple[list[Any], list[Any]] = ([], [])
    seed, *names = case
    order = (ReplayableWords(int(seed), *names, "order", number).words(size) % 2).tolist()

    def draw() -> None:
        releases = [
            _releasing(mechanism, pair, side, size, (*case, side, number), outputs[side])
            for side in (0, 1)
        ]
        for first in order:
            releases[first]()
            releases[1 - first]()
            if len(outputs[0]) == size:
                break

    foreign_code(draw, mechanism, pair, None, _Total(outputs), time_limit)
    own, other = (Drawn.of(outputs[side], mechanism, pair, side) for side in (0, 1))
    return own, other


class Drawn(NamedTuple):
    """Outputs of one side.

    Attributes
    ----------
    outputs : of shape (draws, …), as `sample_pair` gives them
    types : of each, where outputs are numbers
    """

    outputs: NDArray[Any]
    types: Hashable

    @classmethod
    def of(cls, outputs: list[Any], mechanism: Mechanism, pair: Pair, side: int) -> Drawn:
        """One array of them; of values where they are of several types."""
        types = set(map(types_of, outputs))
        if len(types) > 1:
            outputs = [value_of(output) for output in outputs]
        return cls(_stacked(outputs, mechanism, pair, side), types.pop())

    def values(self) -> list[Value]:
        """Each output by itself."""
        return [value_of(output, self.types) for output in self.outputs]


@dataclass(frozen=True, slots=True)
class _Total:
    """As many as there are in all."""

    parts: tuple[list[Any], ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def _releasing(
    mechanism: Mechanism,
    pair: Pair,
    side: int,
    size: int,
    key: tuple[int | str, ...],
    outputs: list[Any],
) -> Callable[[], None]:
    """Make one release at each of so many calls, and keep what it gives or raises; or all at once.

    Where a mechanism makes several at once (`release_many`), what that raises is of no single draw.
    """
    seed, *case = key
    rng = ReplayableWords(int(seed), *case)
    data = pair.neighbour if side else pair.record
    batch = getattr(mechanism, "release_many", None)
    if batch is not None:
        return lambda: outputs.extend(map(kept, batch(copied(data), size, rng=rng)))
    released = releaser(mechanism, data, size, rng)

    def release() -> None:
        try:
            output: Any = kept(released())
        except (DrawError, *PASSING):
            raise
        except BaseException as error:
            output = Value.of_raised(error)
        outputs.append(output)

    return release


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
        late = f"took longer than {time_limit:g} s for one release"
        reason = late if time_left() > 0 else OVERDUE
        raise _error(mechanism, pair, reason, side) from None
    except (passed, *PASSING):
        raise
    except BaseException as error:
        reason = f"raised {raised(error)}"
        raise _error(mechanism, pair, reason, side) from error


def _stacked(outputs: list[Any], mechanism: Mechanism, pair: Pair, side: int) -> NDArray[Any]:
    """One array of all: numbers, sets, or values."""
    types = set(map(type, outputs))  # as `kept` gave them
    if types <= {set, frozenset}:
        return objects(outputs)
    if types.isdisjoint({set, frozenset, Value}):
        with suppress(ValueError):  # ragged
            numbers = as_numbers(outputs)
            if numbers.dtype.kind in "biuf" and numbers.size and not np.isnan(numbers).any():
                return numbers
    values = [value_of(output) for output in outputs]
    turned = _turned([value.structure for value in values])
    if turned:
        way = " Give the audit a function that makes it anew, with nothing kept, and releases once."
        reason = f"keeps state: from some release on it gave {turned}"
        first = next((value.raised for value in values if value.raised), "")
        raise _error(mechanism, pair, reason + (f" ({first})" if first else ""), side, "." + way)
    return objects(values)


def _turned(structures: Sequence[str]) -> str:
    """How outputs changed once and for all, in words; empty where draws may well come so.

    Independent draws come in any order with the same probability. Said with probability at most
    1e-8 for each of the most frequent structures: where all that have it come first, or all come
    last.
    """
    draws = len(structures)
    for structure, count in Counter(structures).most_common(_STRUCTURES):
        has = [each == structure for each in structures]
        changes = sum(a != b for a, b in pairwise(has))
        if changes == 1 and math.comb(draws, count) > 2 / _SUSPECT:
            after = structures[-1]
            return f"{after} where it had given {structures[0]}"
    return ""


def require_numbers(
    outputs: NDArray[Any], mechanism: Mechanism, pair: Pair, side: int
) -> NDArray[Any]:
    """Outputs as a score for arrays of one shape takes them, or sets.

    Raises
    ------
    DrawError
        If they are others.
    """
    if not valued(outputs):
        return outputs
    with suppress(ValueError):  # of several shapes, or none
        numbers = np.array([output.raw for output in outputs])
        if numbers.dtype.kind in "biuf" and not np.isnan(numbers).any():
            return numbers
    raising = next((value.raised for value in outputs if value.raised), "")
    structures = dict.fromkeys(value.structure for value in outputs)
    said = f"raised {raising}" if raising else f"released {' and '.join(structures)}"
    way = " Its likelihood ratio takes arrays of numbers, all of one shape, without NaN."
    raise _error(mechanism, pair, said, side, way)


def always_raises(outputs: NDArray[Any]) -> bool:
    """Whether all of them are exceptions."""
    return outputs.dtype == object and all(getattr(each, "raised", "") for each in outputs)


def raised_in(record: NDArray[Any], neighbour: NDArray[Any]) -> str:
    """What was raised, and how often, in a sentence; empty if nothing was."""
    counts = [
        Counter(output.raised for output in outputs if isinstance(output, Value) and output.raised)
        if outputs.dtype == object
        else Counter[str]()
        for outputs in (record, neighbour)
    ]
    both = (counts[0] + counts[1]).most_common()
    if not both:
        return ""
    often = f"{counts[0].total()} of {len(record)} times on the record"
    often += f" and {counts[1].total()} of {len(neighbour)} on the neighbour"
    others = f", and {len(both) - 1} other messages" if len(both) > 1 else ""
    return f"It raised {often}: {both[0][0]}{others}."


def as_numbers(outputs: Sequence[Any]) -> NDArray[Any]:
    """One array of all; of objects where doubles or 64 bits would hold other numbers."""
    numbers = np.array(outputs)
    if numbers.dtype == np.uint64 and numbers.size:  # beside which signed ones become doubles
        return numbers.astype(np.int64 if numbers.max() < 2**63 else object)
    if numbers.dtype.kind == "f":
        mixed = set(map(type, outputs)) != {float}
        rounded = mixed and any(float(n) != n for output in outputs for n in _whole(output))
        with np.errstate(over="ignore"):  # of a longdouble
            doubles = numbers.astype(np.float64) if numbers.dtype.itemsize > 8 else numbers
        if rounded or not np.array_equal(doubles, numbers, equal_nan=True):
            return np.array(outputs, dtype=object)
    return numbers


def _whole(output: Any) -> Iterator[int]:
    """Whole numbers in an output, which doubles beside them make doubles."""
    if type(output) is float or (type(output) is np.ndarray and output.dtype.kind == "f"):
        return  # nearly all outputs, sooner than by the patterns
    match output:
        case list() | tuple() if set(map(type, output)) != {float}:
            for part in output:
                yield from _whole(part)
        case np.ndarray() if output.dtype.kind in "iu":
            yield from output.ravel().tolist()
        case int() | np.integer():
            yield int(output)


def joined(
    chunks: Sequence[Drawn], like: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Chunks of both sides in turn: an array for each side, of values if they are of two kinds.

    Parameters
    ----------
    chunks : of record and neighbour in turn
    like : as for `sample_pair`
    """
    sides = chunks[0::2], chunks[1::2]
    kinds = {(chunk.types, chunk.outputs.dtype, chunk.outputs.shape[1:]) for chunk in chunks}
    if len(kinds) == 1 and (like is None or not valued(like)):
        own, other = (np.concatenate([chunk.outputs for chunk in side]) for side in sides)
    else:
        own, other = (objects([v for chunk in side for v in chunk.values()]) for side in sides)
    return own, other


def valued(outputs: NDArray[Any]) -> bool:
    """Whether they are of several types, or of such as have parts."""
    return outputs.dtype == object and isinstance(outputs[0], Value)


def _error(
    mechanism: object, pair: Pair, reason: str, side: int | None = None, way_out: str = ""
) -> DrawError:
    where = "" if side is None else (" (on its neighbour)" if side else " (on its record)")
    return DrawError(
        f"{display_name(mechanism)} {reason}, on the pair {pair.name!r}{where}.{way_out}"
    )
