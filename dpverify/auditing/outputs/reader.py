"""Reading of any Python value: what it is made of, part by part, as leaves.

A list is read by place, and by what is in it: ``'ann' in output`` says that a text is there, and
the numbers beside it (of a row of a table, say) are named by it, wherever in the list it stands.
The structure tells the types of all parts.
"""

from __future__ import annotations

import ctypes
import datetime
import math
import re
import sys
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache, partial, partialmethod
from itertools import groupby
from numbers import Number
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.beside import beside, can_be_pickled
from dpverify.auditing.outputs.leaves import PLACE, PLAIN, Leaf, Leaves, cut, said
from dpverify.auditing.outputs.tables import parts_of
from dpverify.data.domain import is_sparse
from dpverify.errors import DrawError
from dpverify.visible import shown

__all__ = ["DEPTH", "PLACED", "Reader", "alike", "made_with", "name_of"]

_PARTS = 1_000_000  # of one output; more can't be read
_DEEP = 100  # parts that what lies deepest counts as, as it takes so long to say what it is
DEPTH = 8
"""Of what lies within one another."""
_UNREAD = (
    *(FunctionType, MethodType, staticmethod, classmethod, property, CodeType, partial),
    *(Awaitable, AsyncIterator),
)
"""What gives values when it is called or awaited, and may hold any."""
PLACED = re.compile(r"\.(?:keys|values)\(\)\[")
"""In the name of a leaf: of a mapping or an object, by place."""
_PLACES = 64  # of a set, a mapping or an object
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(slots=True)
class Reader(Leaves):
    """Collects the leaves of one output from all that lies within one another."""

    parts: int = 0
    last: bool = False  # whether it reads a list's last part by that name

    def beside(self, name: str, value: Any) -> None:
        """What pickle would write of it, and nothing that was read tells."""
        noted = beside(value)
        unplaced = (PLACE.sub("", word) for word in noted.words)
        words = [word for word in unplaced if word not in self.texts]
        if words:
            self.text(f"beside {name}", ", ".join(words))
        for place, checksum in enumerate(noted.checksums):
            self.word(f"bytes {place} beside {name}", str(checksum))
        numbers = []
        for number in noted.numbers:
            if self.read[number] > 0:
                self.read[number] -= 1
            elif not math.isnan(number):
                numbers.append(number)
        if numbers:
            self.array(f"numbers beside {name}", np.array(numbers))

    def walk(self, value: Any, name: str, depth: int) -> str:  # noqa: C901 - a type a line
        """Collect the leaves of a part; its structure."""
        kind = name_of(type(value))
        self.parts += 1 if depth or type(value) in PLAIN else _DEEP
        if self.parts > _PARTS:
            raise DrawError(f"What is released has more than {_PARTS:,} parts: release fewer.")
        if isinstance(value, int | float):
            with suppress(OverflowError):
                self.read[float(value)] += 1
        if type(value) in PLAIN:
            self.number(name, value)
            return kind
        if depth == 0:  # read as its representation says it, which also ends what holds itself
            self.text(name, said(value))
            return kind
        match value:
            case None | Enum() | np.ma.core.MaskedConstant():
                self.word(name, str(value))
            case np.generic() if value.dtype.kind in "Mm":
                self.number(name, int(value.astype(np.int64)))
                return str(value.dtype)
            case str():
                self.text(name, str(value))
            case bytes() | bytearray():
                self.array(name, np.frombuffer(bytes(value), dtype=np.uint8))
            case np.generic() if value.dtype.kind in "biufc":
                self.number(name, value.item())
            case Number():
                self.number(name, value)
            case datetime.datetime() | datetime.date() | datetime.timedelta():
                return self._time(value, name, kind)
            case AbstractSet():
                return self._members(value, name, kind, depth)
            case Mapping():
                return self._mapping(value, name, kind, depth)
            case tuple() if hasattr(value, "_fields"):
                fields = dict(zip(value._fields, value, strict=True))
                return f"{kind}({self._entries(fields, name, depth)})"
            case ModuleType() if sys.modules.get(value.__name__) is value:
                self.word(name, value.__name__)  # it was there before, as are classes
            case np.ma.MaskedArray():  # what lies under the mask is released with it
                mask = self.walk(np.ma.getmaskarray(value), f"mask of {name}", depth - 1)
                self.walk(np.asarray(value.fill_value).item(), f"fill of {name}", depth - 1)
                return f"{kind} of {self.walk(value.data, name, depth - 1)}, {mask}"
            case np.ndarray():
                return self._array(value, name, depth)
            case ctypes.Array() | ctypes.Structure() | ctypes.Union() | memoryview():
                memory = memoryview(value)  # types, and of a structure the names of its parts
                held = self.walk(np.array(value), name, depth - 1)
                return f"{kind} of {memory.format}, shape {memory.shape}: {held}"
            case _ if (parts := parts_of(value, _PARTS)) is not None:
                if isinstance(value, Iterator):  # which pickle can't follow
                    self.beside(name, parts)
                for own in ("name", "dtypes", "dtype", "schema", "type"):  # polars, pyarrow
                    if hasattr(value, own) and not hasattr(value, "reset_index"):
                        self.word(f"{own} of {name}", str(getattr(value, own)))
                return f"{kind}[{self._list(parts, name, depth)}]"
            case _ if hasattr(value, "__array__") and not isinstance(value, type):
                return f"{kind} of {self.walk(np.asarray(value), name, depth - 1)}"
            case _:
                return self._object(value, name, depth)
        return kind

    def _time(self, value: datetime.date | datetime.timedelta, name: str, kind: str) -> str:
        match value:
            case datetime.datetime():
                aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
                self.number(name, (aware - _EPOCH).total_seconds())
                self.number(f"{name}.microsecond", value.microsecond)
                self.number(f"{name}.fold", value.fold)
                return f"{kind} of {said(value.tzinfo)}"
            case datetime.date():
                self.number(name, value.toordinal())
            case _:
                self.number(name, value.total_seconds())
                self.number(f"{name}.microseconds", value.microseconds)
        return kind

    def _mapping(self, value: Mapping[Any, Any], name: str, kind: str, depth: int) -> str:
        self.number(f"len({name})", len(value))
        if len(value) > 1:  # dicts keep the order in which they were filled
            self.word(f"order of {name}", ", ".join(map(_label, value)))
        return f"{kind}{{{self._entries(value, name, depth)}}}"

    def _members(self, value: AbstractSet[Any], name: str, kind: str, depth: int) -> str:
        self.number(f"len({name})", len(value))
        for member in sorted(value, key=said):
            told = cut(said(member))
            self.add(f"{told} in {name}", 1.0)
            if getattr(member, "__dict__", None):
                self.beside(f"{told} in {name}", member)
        read, self.read = self.read, Counter()
        for place, member in enumerate(sorted(value, key=_order)[:_PLACES]):
            self.walk(member, f"sorted({name})[{place}]", depth - 1)
        self.read = read
        return kind

    def _entries(self, entries: Mapping[Any, Any], name: str, depth: int) -> str:
        return ", ".join(sorted(self._named(entries, name, depth, _label, "[]")))

    def _named(
        self,
        entries: Mapping[Any, Any],
        name: str,
        depth: int,
        label: Callable[[Any], str],
        signs: str,
    ) -> list[str]:
        """Read parts by the names that they have and by place, and the names; the structures."""
        self.texts.update(key for key in entries if isinstance(key, str))
        structures = []
        for place, (key, part) in enumerate(entries.items()):
            leaves, keys, told = len(self.leaves), len(self.keys), label(key)
            named = f"{name}{signs[0]}{told}{signs[1:]}"
            structure = self.walk(part, named, depth - 1)
            structures.append(f"{told}: {structure}")
            if place < _PLACES:
                placed = f"{name}.values()[{place}]"
                self.place(leaves, keys, named, placed)
                types = structure if len(self.keys) == keys else name_of(type(part))  # of no names
                self.keys.append((f"types of {placed}", cut(types)))
                by_place = f"{name}.keys()[{place}]"
                read = _text_key if type(key) is str else _key
                self.keys += read(key, by_place, depth - 1)
        return structures

    def _array(self, value: NDArray[Any], name: str, depth: int) -> str:
        dtype = f"{value.dtype}"
        if type(value) is not np.ndarray:
            held = self._entries(getattr(value, "__dict__", {}), name, depth)
            dtype = f"{type(value).__name__}{f'({held})' if held else ''} of {dtype}"
        if value.dtype.kind in "Mm":
            value = value.astype(np.int64)
        if value.dtype.kind == "c":
            self.array(f"{name}.real", value.real)
            self.array(f"{name}.imag", value.imag)
        elif value.dtype.kind in "biuf":
            self.array(name, value)
        else:
            return f"array of {self.walk(value.tolist(), name, depth)}"
        return f"{dtype} array of shape {value.shape}"

    def _list(self, parts: list[Any], name: str, depth: int) -> str:
        self.number(f"len({name})", len(parts))
        structures = []
        for place, part in enumerate(parts):
            told = -1 if self.last and place == len(parts) - 1 else place
            structures.append(self.walk(part, f"{name}[{told}]", depth - 1))
            self._keyed(part, name)
        if parts and not self.last:  # within it again would be twice at every depth
            self.last = True
            self.walk(parts[-1], f"{name}[-1]", depth - 1)
            self.last = False
        if parts and all(isinstance(part, int | float | np.number) for part in parts):
            with suppress(OverflowError):  # of whole numbers beyond doubles
                self.number(f"sum({name})", float(np.sum(np.array(parts, dtype=float))))
        return alike(structures)

    def _keyed(self, part: Any, name: str) -> None:
        """What stands in a list, whatever its place: a text, or the numbers in a row beside one."""
        if isinstance(part, str):
            self.add(f"{cut(part)!r} in {name}", 1.0)
            return
        if not isinstance(part, Mapping | list | tuple):
            return
        row = list(part.items() if isinstance(part, Mapping) else enumerate(part))
        texts = ", ".join(repr(cut(each)) for _, each in row if isinstance(each, str))
        if texts:
            self.add(f"{texts} in {name}", 1.0)
            for key, each in row:
                if isinstance(each, int | float | np.number):
                    self.number(f"{name}[{texts}][{key!r}]", each)

    def _object(self, value: Any, name: str, depth: int) -> str:
        kind = type(value).__name__
        if isinstance(value, _UNREAD) or callable(getattr(value, "collect", None)):  # polars
            raise self._unread(value)
        if is_sparse(value):
            held = value.tocoo()
            entries = zip(*(part.tolist() for part in (*held.coords, held.data)), strict=True)
            told = self._entries({tuple(place): n for *place, n in entries}, name, depth)
            self.number(f"stored in {name}", held.nnz)
            return f"{kind} of shape {value.shape}: {told}"
        if isinstance(value, BaseException):
            self.causes(f"cause of {name}", value)
        state: Any = None
        if not isinstance(value, type):
            with suppress(Exception):  # whatever an object says to being asked
                state = value.__getstate__()
            if state is None:  # which may be what pickle is told alone
                state = getattr(value, "__dict__", None)
        match state:
            case (None | Mapping() as own, Mapping() as slots):
                state = {**(own or {}), **slots}
        made = made_with(value if isinstance(value, type) else type(value))
        if made:
            state = {**(state if isinstance(state, Mapping) else {}), **made}
        if isinstance(state, Mapping) and state:
            held = {attribute: _taken(part, value) for attribute, part in state.items()}
            return f"{kind}({', '.join(self._named(held, name, depth, str, '.'))})"
        told = said(value)
        alone = type(value).__module__ == "_thread" or isinstance(value, BaseException)  # locks
        if state is None and not alone and not can_be_pickled(value):
            raise self._unread(value)
        self.text(name, told)
        return kind

    def causes(self, name: str, error: BaseException) -> None:
        """Collect what an exception was raised from."""
        for place, cause in enumerate(_causes(error)):
            self.text(f"{name} {place}", f"{type(cause).__name__}: {said(cause, str)}")
            self.beside(f"{name} {place}", cause)

    def _unread(self, value: Any) -> DrawError:
        return DrawError(
            f"What is released holds a {type(value).__name__}, {shown(value)}, and an audit reads "
            "values alone: release what it gives."
        )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What an exception was raised from, and that one in turn, as a traceback shows them."""
    told = {id(error)}
    while (
        cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    ) is not None and id(cause) not in told:
        told.add(id(cause))
        yield cause
        error = cause


def _order(member: Any) -> tuple[bool, Any]:
    """Numbers by their size, then all else as it shows itself."""
    numeric = isinstance(member, int | float | np.integer | np.floating)
    number = numeric and member == member  # noqa: PLR0124  # and not NaN
    return (False, member) if number else (True, said(member))


def name_of(kind: type) -> str:
    """A type's name, by which NumPy's bool is another than Python's."""
    return "np.bool" if kind is np.bool_ else kind.__name__


def alike(structures: Iterable[str]) -> str:
    """Structures in order, each with how often it comes in a row."""
    alike = [(structure, len(list(group))) for structure, group in groupby(structures)]
    return ", ".join(f"{each} × {n}" if n > 1 else each for each, n in alike)


def _found(value: Any) -> bool:
    """Whether pickle finds it by its name: it was there before the output."""
    place: Any = sys.modules.get(value.__module__ or "")
    for name in value.__qualname__.split("."):
        place = getattr(place, name, None)
    return place is value


def made_with(kind: type) -> dict[str, Any]:
    """What a class holds that was made for the output: pickle doesn't find it by its name.

    That are its attributes, and what its methods and properties took along from where they stand.
    """
    held: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        for name, part in vars(each).items() if not _found(each) else ():
            taken = _taken(part, kind, each)
            given = taken is not part or not hasattr(type(part), "__get__")
            if given and not _of_itself(name, part, each):
                held[name] = taken
    return held


def _of_itself(name: str, part: Any, kind: type) -> bool:
    """Whether each class has it, or a library wrote it."""
    if name == "_abc_impl":
        return True
    if not name.startswith("__"):
        return False
    written = isinstance(part, FunctionType) and not part.__code__.co_filename.startswith("<")
    return not written or part.__globals__.get("__name__") != kind.__module__


def _taken(part: Any, *owners: Any) -> Any:
    """An attribute; of a function, its name, or what it took along from where it stands.

    It is read apart from its owners, to which it may lead back.
    """
    held: list[Any]
    match part:
        case staticmethod() | classmethod():
            held = [part.__func__]
        case property():
            held = [part.fget, part.fset, part.fdel]
        case cached_property():
            held = [part.func]
        case partialmethod() | partial():
            held = [part.func, *part.args, *part.keywords.values()]
        case MethodType():
            held = [part.__func__, part.__self__]
        case FunctionType() if _found(part):
            return f"{part.__module__}.{part.__qualname__}"
        case FunctionType():
            cells = [each for each in part.__closure__ or () if each != CellType()]
            constants = [each for each in part.__code__.co_consts if not isinstance(each, CodeType)]
            given = [*(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values()]
            held = [
                *constants,
                *(each.cell_contents for each in cells),
                *given,
                *vars(part).values(),
            ]
        case ModuleType() if sys.modules.get(part.__name__) is part:
            return part.__name__
        case _:
            return part
    apart = (*owners, part)
    return [_taken(each, *apart) for each in held if not any(each is other for other in apart)]


def _label(key: Any) -> str:
    """A key in words."""
    return _text_label(key) if type(key) is str else cut(said(key))


@lru_cache(maxsize=4096)
def _text_label(key: str) -> str:
    return cut(said(key))


def _key(key: Any, name: str, depth: int) -> tuple[tuple[str, Leaf], ...]:
    """What a key says by itself."""
    reader = Reader()
    reader.walk(key, name, depth)
    return tuple(reader.leaves)


_text_key = lru_cache(maxsize=4096)(_key)
