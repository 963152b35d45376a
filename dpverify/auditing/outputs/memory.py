"""Mechanisms that keep state between releases, whose draws aren't independent.

Draws count as independent. Where a mechanism keeps its noise (a cache of answers, say), all
releases of one data set are one draw, however many are made, and prove nothing. They look just like
those of a mechanism without noise; what tells them apart is a copy that has kept nothing yet:
another draw comes out of it, where a function without noise gives the same output again.

Copies are made before the first release. In them are the state of the mechanism, of closures and of
the module's variables that its functions use, as they are then, and caches of `functools`, empty.
A class is itself in all of them, and has a copy's attributes as long as that is in use.
"""

from __future__ import annotations

import functools
import inspect
import io
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO, Any

import cloudpickle
import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.samples import one_side
from dpverify.errors import DrawError
from dpverify.privacy import Mechanism, Pair

__all__ = ["Copies", "constant", "copier", "remembers", "shares_noise"]

_SOME = 50  # releases that show most of what isn't constant
_CONSTANT = 1000  # equal releases, of each side, before copies are asked
_COPIES = 20
_SEVERAL = 4  # copies that give another number where all of 1,000 releases give one
_ALIKE = 20  # releases of each copy that are compared with those of others
_LATER = 100  # releases of a copy as it is now, and of one as it was
_CHANCE = 1e-8
_OWN = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a mechanism as it was.

    Attributes
    ----------
    packed : the mechanism
    classes : that are packed with it, attributes and all
    """

    packed: bytes
    classes: tuple[type, ...]

    @contextmanager
    def one(self) -> Iterator[Mechanism]:
        """A copy to use. Its classes then get their own attributes back."""
        before = [(each, dict(vars(each))) for each in self.classes]
        try:
            yield cloudpickle.loads(self.packed)
        finally:
            for each, own in before:
                for name in vars(each).keys() - own.keys():
                    type.__delattr__(each, name)
                for name, value in own.items():
                    if vars(each).get(name) is not value:
                        type.__setattr__(each, name, value)


def copier(mechanism: Mechanism) -> Copies | None:
    """Pack a mechanism as it is now, to make copies; None where it can't be copied."""
    function = getattr(mechanism, "function", mechanism)
    while isinstance(function, functools.partial):
        function = function.func
    module = inspect.getmodule(function if inspect.isroutine(function) else type(function))
    name = module.__name__ if module else ""
    others = ("", _OWN, *sys.stdlib_module_names)
    # A user's own request to pack the module with what it sends remains.
    asked = (
        name.partition(".")[0] not in others
        and name not in cloudpickle.list_registry_pickle_by_value()
    )
    packed = io.BytesIO()
    pickler = _Pickler(packed)
    try:
        if asked:
            cloudpickle.register_pickle_by_value(module)
        try:
            pickler.dump(mechanism)
        finally:
            if asked:
                cloudpickle.unregister_pickle_by_value(module)
        copies = Copies(packed.getvalue(), tuple(pickler.classes))
        with copies.one():
            return copies
    except Exception:  # whatever an object of another library says to being pickled
        return None


def remembers(
    mechanism: Mechanism,
    pair: Pair,
    copied: Copies | None,
    config: AuditConfig,
) -> str:
    """Say so if the mechanism gives its first output of a data set, or a part, again and again.

    A mechanism that keeps nothing is said to with probability at most 20/(1000 e) < 0.8 %, at the
    worst law there is: all of 1,000 releases equal, and one of 20 copies' another. Of a part of the
    output, of which there may be many, four copies' must be: at most 3e-8 for each. The audit is
    then inconclusive, and nobody accused.

    Of what can't be copied, nobody can tell whether it keeps its noise or has none, where all of
    1,000 releases of a data set are the same, and those of the neighbour others.

    Parameters
    ----------
    mechanism, pair : as for `one_side`
    copied : what `copier` made before the first release
    config : whose seed and time limit count

    Returns
    -------
    A sentence; empty if it doesn't.
    """
    if copied is None:
        return _still(mechanism, pair, config)
    for side in (0, 1):

        def outputs(source: Mechanism, draws: int, number: int, side: int = side) -> NDArray[Any]:
            key = (config.seed, "memory", side, number)
            return one_side(source, pair, side, draws, key, config.time_limit)

        try:
            if not constant(outputs(mechanism, _SOME, _COPIES + 1)).any():
                continue
            kept = outputs(mechanism, _CONSTANT, 0)
            same = constant(kept)
            if not same.any():
                continue
            others = np.zeros(same.shape, dtype=np.int64)
            for number in range(1, _COPIES + 1):
                with copied.one() as copy:
                    other = outputs(copy, 1, number)
                others += other.shape[1:] != kept.shape[1:] or ~constant(
                    np.append(kept[:1], other, 0)
                )
        except DrawError:
            continue
        if others[same].max() >= (1 if same.all() else _SEVERAL):
            part = "" if same.all() else ", or a part of it,"
            return (
                f"{display_name(mechanism)} keeps its output of a data set{part} or what decides "
                f"it (a budget that is used up) from one release to the next, on the pair "
                f"{pair.name!r}, so its draws are one draw. Give the audit a function that makes "
                "it anew, with nothing kept, and releases once."
            )
    return ""


def _still(mechanism: Mechanism, pair: Pair, config: AuditConfig) -> str:
    try:
        sides = [
            one_side(
                mechanism,
                pair,
                side,
                _CONSTANT,
                (config.seed, "memory", side, 0),
                config.time_limit,
            )
            for side in (0, 1)
        ]
    except DrawError:
        return ""
    alike = sides[0].shape == sides[1].shape and constant(np.concatenate(sides)).all()
    if alike or not all(constant(side).all() for side in sides):
        return ""
    return (
        f"{display_name(mechanism)} gives one output for a data set, and another for its "
        f"neighbour, on the pair {pair.name!r}. It holds what can't be copied, so that nobody can "
        "tell whether it has no noise or keeps it. Give the audit a function that makes it anew, "
        "with nothing kept, and releases once."
    )


def shares_noise(
    mechanism: Mechanism,
    pair: Pair,
    copied: Copies | None,
    config: AuditConfig,
) -> str:
    """Say so if releases of one copy are more alike than those of different copies.

    Asked only of a mechanism whose state is another one after its first releases; generators
    change too, but copies then start with the same ones, and are alike. What adds up from one
    release to the next is the same in such copies: it shows beside a copy of the mechanism as it is
    now. The state of a program shows beside one that is started anew; of what can't be copied, in
    the later of its own releases. By the test of Kruskal and Wallis at 1e-8 over all columns: it is
    asymptotic, and nobody is accused by it.

    Parameters and return value are those of `remembers`.
    """
    if copied is None or getattr(getattr(mechanism, "function", None), "apart", False):
        return _drifts(mechanism, pair, copied, config)
    now = copier(mechanism)
    if now is None or now.packed == copied.packed:
        return ""

    def draws(copies: Copies, number: int, size: int) -> NDArray[Any]:
        key = (config.seed, "copies", 0, number)
        with copies.one() as copy:
            return one_side(copy, pair, 0, size, key, config.time_limit)

    try:
        several = [draws(copied, number, _ALIKE) for number in range(_COPIES)]
        sooner_and_later = [
            draws(copies, _COPIES + number, _LATER) for number, copies in enumerate((copied, now))
        ]
    except DrawError:
        return ""
    if not (_differ(several) or _differ(sooner_and_later)):
        return ""
    return (
        f"{display_name(mechanism)} keeps noise, or what adds up, from one release to the next, on "
        f"the pair {pair.name!r}: those of one copy are more alike than those of all different, "
        "and an audit's draws must be independent. Give it a function that makes the mechanism "
        "anew, with nothing kept, and releases once."
    )


def _drifts(mechanism: Mechanism, pair: Pair, copied: Copies | None, config: AuditConfig) -> str:
    def draws(source: Mechanism, number: int) -> NDArray[Any]:
        key = (config.seed, "copies", 0, number)
        return one_side(source, pair, 0, _LATER, key, config.time_limit)

    try:
        with copied.one() if copied else nullcontext(mechanism) as fresh:
            sooner = draws(fresh, 0)
        draws(mechanism, 1)
        later = draws(mechanism, 2)
    except DrawError:
        return ""
    if not _differ([sooner, later]):
        return ""
    return (
        f"{display_name(mechanism)} gives others later than sooner, on the pair {pair.name!r}: it "
        "keeps what adds up from one release to the next, and an audit's draws must be "
        "independent. Give it one that keeps nothing."
    )


def _differ(groups: Sequence[NDArray[Any]]) -> bool:
    """Whether groups of numbers have different laws, in some column."""
    if len({each.shape for each in groups}) > 1 or any(each.dtype == object for each in groups):
        return False
    columns = np.stack(groups).reshape(len(groups), len(groups[0]), -1).transpose(2, 0, 1)
    tested = [column for column in columns.astype(np.float64) if np.unique(column).size > 1]
    return any(_chance(column) < _CHANCE / len(tested) for column in tested)


def _chance(groups: NDArray[np.float64]) -> float:
    """The p-value of the test of Kruskal and Wallis on rows of equal length.

    As ``scipy.stats.kruskal`` has it, which takes half a second to import.
    """
    _, places, often = np.unique(groups, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(often) - (often - 1) / 2)[places].reshape(groups.shape)
    size, each = groups.size, groups.shape[1]
    between = each * np.sum((ranks.mean(axis=1) - (size + 1) / 2) ** 2)
    within = size * (size + 1) / 12 * (1 - np.sum(often**3 - often) / (size**3 - size))
    return float(scipy.special.chdtrc(len(groups) - 1, between / within))


def constant(outputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Which numbers of an output are the same in all; a set is one."""
    flat = outputs.reshape(len(outputs), -1)
    same: NDArray[np.bool_] = np.all(flat == flat[0], axis=0)
    return same


_MADE: Mapping[type, Callable[[], Any]] = {
    type(made()): made for made in (threading.Lock, threading.RLock, threading.local)
}
"""What belongs to one process, and how it is made."""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Leaves out what caches of `functools` hold, has locks made anew, and notes classes."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.classes: list[type] = []  # that are packed with their attributes, not by name

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _MADE:
            return _MADE[type(obj)], ()
        if isinstance(obj, functools._lru_cache_wrapper):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        reduced = super().reducer_override(obj)
        if isinstance(obj, type) and reduced is not NotImplemented:
            self.classes.append(obj)
        return reduced


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    return functools.lru_cache(**parameters)(function)  # type: ignore[no-any-return]
