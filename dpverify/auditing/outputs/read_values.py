"""Values that a mechanism's code reads from elsewhere: for journals, others make another mechanism.

These are global variables that its functions name, also of other modules, and what its classes
have; and what is held by what lies in methods, partials and slots. They may change while the
process runs, where files stay as they are. Unseen stays what code reads by a name that it computes,
and what installed packages hold.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from dpverify.auditing.constants import names_of
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.auditing.outputs.source_files import is_installed, parts_of
from dpverify.visible import shown

__all__ = ["read_values"]

_MOST = 1000  # things that are looked into
_SHOWN = 40  # characters of a value


def read_values(mechanism: Any) -> dict[str, str]:
    """By the full name of each: a short value as it stands, of others a digest."""
    found: dict[str, str] = {}
    held: list[str] = []
    seen: dict[int, Any] = {}  # holds them, so that no two have the same identity
    left = [(mechanism, True)]  # and whether it is its own
    while left and len(seen) < _MOST:
        value, own = left.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        read, parts = dict(_read(value)), parts_of(value)
        found |= {name: _told(part) for name, part in read.items()}
        if own and not any(parts[1:]) and not isinstance(value, FunctionType | type):
            held.append(_told(value))
        left += [*((part, own) for part in parts), *((part, False) for part in read.values())]
    return found | {"all that it holds": fingerprint(held)}


def _told(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return text if plain and len(text := shown(value)) <= _SHOWN else fingerprint(value)


def _read(value: Any) -> Iterator[tuple[str, Any]]:
    """What a function or a class that isn't installed reads, by name."""
    if isinstance(value, FunctionType) and not is_installed(Path(value.__code__.co_filename)):
        names = [*names_of(value.__code__)]
        for name in names:
            held = value.__globals__.get(name)
            if not isinstance(held, ModuleType):
                yield from _of(str(value.__module__), value.__globals__, [name])
            elif _is_own(held):
                yield from _of(held.__name__, vars(held), names)
    elif isinstance(value, type):
        for each in value.__mro__:
            if _is_own(sys.modules.get(each.__module__)):
                own = [n for n, part in vars(each).items() if _is_written(n, part)]
                yield from _of(f"{each.__module__}.{each.__qualname__}", vars(each), own)


def _is_written(name: str, part: Any) -> bool:
    """Whether it stands in the body of a class, and Python didn't put it there."""
    return not name.startswith("__") or isinstance(part, FunctionType)


def _of(place: str, held: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    yield from ((f"{place}.{name}", held[name]) for name in names if name in held)


def _is_own(module: ModuleType | None) -> bool:
    if module is None or module.__name__ in sys.stdlib_module_names:
        return False
    path = getattr(module, "__file__", None)  # a notebook has none
    return path is None or not is_installed(Path(path))
