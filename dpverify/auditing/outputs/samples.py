"""Releases drawn for an audit, on both sides of a pair, whatever the mechanism does.

Draws come in chunks, each with a stream of words named by (seed, kind, pair, side, chunk), so that
no result depends on the number of workers or on their order. The first chunk is drawn in this
process; the rest goes to workers (joblib, loky) only where it takes longer than starting them.

Record and neighbour are released in turn, in an order that is drawn for each two releases, and each
side has a stream of its own. What a mechanism keeps from one release to the next (a budget that
runs out, a count) then affects both sides alike, and isn't taken for a difference between them.

Any Python value is an output, and so is an exception (`values`). Nothing that a mechanism does
passes silently: one that always raises, on both sides, a release that takes longer than its time
limit, outputs of another structure from some release on, a worker that dies and a mechanism that
breaks on its way to one all end in a `DrawError` that names the mechanism and the pair. What can't
be pickled (a pointer into another library, the system's entropy source) is drawn from in this
process, with the same result. So is what changes as it releases: copies of a generator that it
keeps would give each chunk the same noise. The time limit interrupts Python code (`time_limit`); a
call that hangs outside the interpreter is ended with its worker.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from time import perf_counter
from types import FunctionType
from typing import Any, NamedTuple

import cloudpickle
from numpy.typing import NDArray

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.arrays import Drawn, always_raises, joined, stacked, valued
from dpverify.auditing.outputs.foreign import (
    OVERDUE,
    alone,
    display_name,
    draw_error,
    foreign_code,
    several,
)
from dpverify.auditing.outputs.time_limit import time_left
from dpverify.auditing.outputs.values import Value, kept, objects, value_of
from dpverify.data.rows import copied, copies
from dpverify.errors import PASSING, DrawError, require
from dpverify.execution.parallel import remote, spread
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words
from dpverify.visible import raised

__all__ = [
    "CHUNK",
    "AlwaysRaisedError",
    "Sampled",
    "both_sides",
    "by_chunks",
    "dumped",
    "one_side",
    "over_the_draw",
    "packed",
    "prepares",
    "releaser",
    "sample_pair",
    "sampled",
]

CHUNK = 1000
"""Draws that share a stream of words."""
_INLINE = 1.5  # seconds of work that are done here sooner than workers would have started
_OBJECT = 2000  # bytes of a value
_STARTED = 60.0  # seconds within which a process has started, also on a busy machine


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
        If every release raises, unless what it raises tells the sides.
    DrawError
        If a release is late, or outputs change their structure once and for all; if a worker dies,
        or the mechanism breaks on its way to one.
    """
    return sampled(mechanism, pair, config, stream, draws=draws).told_apart(like)


class Sampled(NamedTuple):
    """Releases of both sides.

    Attributes
    ----------
    outputs : of the record and of the neighbour, as `sample_pair` gives them
    types : of each, where they are numbers of the same
    words : random words that each asked for; none of a mechanism that makes several at once
    chunks : of which they are made
    """

    outputs: tuple[NDArray[Any], NDArray[Any]]
    types: Hashable
    words: tuple[list[int], list[int]]
    chunks: Sequence[tuple[Drawn, Drawn]]

    @property
    def size(self) -> int:
        """Bytes that they take, about."""
        return sum(len(s) * _OBJECT if s.dtype == object else s.nbytes for s in self.outputs)

    def told_apart(self, like: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """The outputs, as values where others that are given are."""
        own, other = self.outputs
        if like is None or not valued(like) or valued(own):
            return own, other
        own, other = (
            objects([value_of(each, self.types) for each in side]) for side in (own, other)
        )
        return own, other


def sampled(
    mechanism: Mechanism,
    pair: Pair,
    config: AuditConfig,
    stream: str,
    *,
    draws: int | None = None,
    begun: Sequence[tuple[Drawn, Drawn]] = (),
) -> Sampled:
    """As `sample_pair`, and what they asked of their randomness; `begun` has the first chunks."""
    draws = config.draws if draws is None else draws
    require(draws >= 1, "draws", draws, "at least 1")
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    case = (config.seed, stream, f"pair {pair.name!r}")
    tasks = [
        (mechanism, pair, size, (*case, number), config.time_limit)
        for number, size in enumerate(sizes)
    ]
    rest = tasks[len(begun) :]
    chunks = [*begun, *(by_chunks(both_sides, rest, config) if rest else ())]
    own, other = joined([side for sides in chunks for side in sides])
    if always_raises(own) and always_raises(other) and not _told_by_errors(own, other):
        said = own[0].raised
        way_out = _FRAMES if _of_dicts(pair.record) and re.search(r"\blist\b", said) else ""
        error = draw_error(mechanism, pair, f"raised {said}", way_out=way_out)
        raise AlwaysRaisedError(str(error), {each.raised for side in (own, other) for each in side})
    own_words, other_words = ([n for each in chunks for n in each[side].words] for side in (0, 1))
    return Sampled((own, other), chunks[0][0].types, (own_words, other_words), chunks)


def _told_by_errors(own: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether each side raises always the same, and the other side something else."""
    record, neighbour = ({each.raised for each in side} for side in (own, other))
    return len(record) == len(neighbour) == 1 and record != neighbour


_FRAMES = (
    ' It got a list of dicts, one a row: where it takes data frames, say make="pandas", or another '
    "form, in the Table."
)


def _of_dicts(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(row, dict) for row in data)


class AlwaysRaisedError(DrawError):
    """A mechanism of which every release raised.

    Attributes
    ----------
    raised : all that was
    """

    def __init__(self, message: str, raised: Iterable[str] = ()) -> None:
        super().__init__(message, raised)
        self.raised = frozenset(raised)

    def __str__(self) -> str:
        return str(self.args[0])


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
    mechanism, pair = tasks[0][:2]
    inline = config.workers == 1 or len(tasks) == 1
    sent = None if inline else packed(mechanism)
    start = perf_counter()
    first = function(*tasks[0])
    expected = (perf_counter() - start) * (len(tasks) - 1)
    yield first
    here = 1
    inline = inline or expected < _INLINE or not (remote() or sent)
    if not inline and packed(mechanism) != sent:  # a cache was filled, or it goes on changing
        sent = packed(mechanism)
        yield function(*tasks[1])
        here = 2
        inline = here == len(tasks) or packed(mechanism) != sent
    if inline:
        yield from (function(*task) for task in tasks[here:])
        return
    # More than a chunk may take, so that the chunk's own time limit is the first to end it.
    timeout = min(_STARTED + 4 * config.time_limit * CHUNK, max(time_left(), 1e-3))
    try:
        yield from spread(function, tasks[here:], workers=config.workers, timeout=timeout)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        reason = f"breaks on its way to a worker ({raised(error)}); workers=1 draws without"
        raise draw_error(mechanism, pair, reason) from error
    except BrokenExecutor as error:
        raise draw_error(mechanism, pair, "ended its worker process") from error
    except TimeoutError as error:
        reason = "hung outside the interpreter" if time_left() > 0 else OVERDUE
        raise draw_error(mechanism, pair, reason) from error


def packed(mechanism: Mechanism) -> bytes | None:
    """The mechanism as it would be sent, with its state; None where it can't be."""
    try:
        return dumped(mechanism)
    except Exception:  # whatever an object of another library says to being pickled
        return None


def dumped(work: Any) -> bytes:
    """What another process can load.

    Raises
    ------
    Exception
        Whatever an object says to being pickled.
    """
    made = io.BytesIO()
    _Pickler(made).dump(work)
    return made.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Refuses what is sent by its name in a script or notebook, where no process finds it.

    Functions and classes of a script are sent whole, but not what `functools.lru_cache` makes.
    """

    def reducer_override(self, obj: Any) -> Any:
        of_script = getattr(obj, "__module__", None) == "__main__"
        if of_script and not isinstance(obj, type | FunctionType):
            whole = not isinstance(obj.__reduce_ex__(pickle.DEFAULT_PROTOCOL), str)
            require(whole, "mechanism", obj, "found by its name from other processes")
        return super().reducer_override(obj)


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
        release = _releasing(mechanism, pair, side, size, key, outputs, [])
        while len(outputs) < size:
            release()

    foreign_code(draw, mechanism, pair, side, outputs, time_limit)
    return stacked(outputs, mechanism, pair, side)


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
    words: tuple[list[int], list[int]] = ([], [])
    seed, *names = case
    order = (ReplayableWords(int(seed), *names, "order", number).words(size) % 2).tolist()

    def draw() -> None:
        releases = [
            _releasing(
                mechanism, pair, side, size, (*case, side, number), outputs[side], words[side]
            )
            for side in (0, 1)
        ]
        for first in order:
            releases[first]()
            releases[1 - first]()
            if len(outputs[0]) == size:
                break

    foreign_code(draw, mechanism, pair, None, _Total(outputs), time_limit)
    own, other = (Drawn.of(outputs[side], mechanism, pair, side, words[side]) for side in (0, 1))
    return own, other


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
    words: list[int],
) -> Callable[[], None]:
    """What adds one more release to the outputs at each call: what it gives, or what it raises.

    What it asked of its randomness is added to the words.

    Of a mechanism that makes several at once (`release_many`) one call adds them all, and what it
    raises goes on, since it belongs to no single release.
    """
    seed, *case = key
    rng = ReplayableWords(int(seed), *case)
    data = pair.neighbour if side else pair.record
    batch = getattr(mechanism, "release_many", None)
    if batch is not None:
        name = display_name(mechanism)
        return lambda: outputs.extend(
            map(kept, several(batch(copied(data), size, rng=rng), size, name))
        )
    released = releaser(mechanism, data, size, rng)

    def release() -> None:
        before = rng.taken
        try:
            output: Any = released()
        except (DrawError, *PASSING):
            raise
        except BaseException as error:
            output = Value.of_raised(error)
        outputs.append(kept(output))
        words.append(rng.taken - before)

    return release


def over_the_draw(mechanism: Any) -> bool:
    """Whether its guarantee is over the draw of public randomness, and says nothing of one draw."""
    return hasattr(mechanism, "guarantee") and bool(mechanism.guarantee().over_the_draw)


def releaser(mechanism: Any, data: Any, count: int, rng: Words) -> Callable[[], Any]:
    """Release the data set at each of so many calls, one after the other.

    A mechanism's own `releaser` makes them, if it has one, as it prepares once what doesn't change
    between them; unless a subclass of the class that defines it releases in another way.
    """
    if prepares(mechanism, "releaser", "release", "release_blocks"):
        prepared: Callable[[], Any] = mechanism.releaser(data, count, rng=rng)
    else:
        copied_data = copies(data)

        def prepared() -> Any:
            return mechanism.release(copied_data(), rng=rng)

    return alone(prepared)


def prepares(mechanism: Any, short: str, *ways: str) -> bool:
    """Whether it has the method `short`, which does faster what the methods `ways` do.

    It doesn't count where a subclass of the class that defines it has others of these.
    """
    classes = [vars(each) for each in type(mechanism).__mro__]
    own, *others = (
        next((place for place, names in enumerate(classes) if name in names), len(classes))
        for name in (short, *ways)
    )
    return own < len(classes) and own <= min(others)
