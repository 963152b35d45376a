"""The files in which a mechanism's code stands: for journals, a change makes another mechanism.

They begin with those of its functions and classes, of what these close over, and with those that
its texts name, as a program's arguments do; and go on with what a file imports. What is installed
is left out, as is this package; code that stands in no file, as a notebook's, isn't found.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import islice
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from dpverify._fields import state_of

__all__ = ["is_installed", "parts_of", "source_digest"]

_DEPTH = 8  # of nested fields that are looked at
_MOST = 100  # parts of a list or a dict


def source_digest(mechanism: Any) -> str:
    """Digest of what the files hold."""
    held: dict[Path, str] = {}
    module = cache(_module)
    left = [*_files_of(mechanism, _DEPTH, set())]
    while left:
        with suppress(OSError, ValueError):  # a text that can be no file's name
            path = left.pop().resolve()
            if path not in held and path.is_file() and not is_installed(path):
                content = path.read_bytes()
                held[path] = hashlib.sha256(content).hexdigest()
                left += _imported(path, content, module)
    return hashlib.sha256("".join(sorted(held.values())).encode()).hexdigest()[:16]


def _files_of(value: Any, depth: int, seen: set[int]) -> Iterator[Path]:
    """Files of a value's code, and of its parts'."""
    if depth == 0 or id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case FunctionType():
            yield Path(value.__code__.co_filename)
        case str():
            yield Path(value)
        case type():
            for each in value.__mro__:
                with suppress(TypeError, OSError):  # one of C, or of no file
                    yield Path(inspect.getfile(each))
    for part in parts_of(value):
        yield from _files_of(part, depth - 1, seen)


def parts_of(value: Any) -> Sequence[Any]:
    """In what else its code may stand: of an object its class and fields, of a class nothing."""
    match value:
        case FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
            return [*cells, value.__defaults__, value.__kwdefaults__, vars(value)]
        case MethodType():
            return [value.__func__, value.__self__]
        case partial():
            return [value.func, value.args, value.keywords]
        case staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [value.fget, value.fset]
        case Mapping():
            return [*islice(value.values(), _MOST)]
        case list() | tuple():
            return [*islice(value, _MOST)]
        case str() | type():
            return ()
    return [type(value), state_of(value)]


def _is_full(cell: Any) -> bool:
    with suppress(ValueError):
        cell.cell_contents  # noqa: B018 - raises where it is empty
        return True
    return False


def _imported(
    path: Path, content: bytes, module: Callable[[str], Iterable[Path]]
) -> Iterator[Path]:
    """Files of the modules that a file of Python's imports; `module` finds an absolute one."""
    for name, level in _names_imported(content):
        if level:
            place = path.parents[level - 1].joinpath(*name.split("."))
            yield from (place.with_suffix(".py"), place / "__init__.py")
        else:
            yield from module(name)


@lru_cache(maxsize=256)  # most audits of a process read the same files
def _names_imported(content: bytes) -> tuple[tuple[str, int], ...]:
    """What may be modules, each with its level: 0 where it is absolute."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a program of another language
        return ()
    names: dict[tuple[str, int], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= dict.fromkeys((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            of = node.module or ""
            parts = [of, *(f"{of}.{alias.name}" for alias in node.names)]
            names |= dict.fromkeys((part, node.level) for part in parts)
    return tuple(names)


def _module(name: str) -> tuple[Path, ...]:
    with suppress(ImportError, ValueError, AttributeError):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            return (Path(found.origin),)
    return ()


def is_installed(path: Path) -> bool:
    """Whether it is of a package that was installed, of Python's own, or of this one."""
    return any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    ours = Path(__file__).parents[2]
    return (ours.resolve(), *(Path(sysconfig.get_path(name)).resolve() for name in names))
