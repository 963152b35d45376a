"""Hypothesis strategies for damaged inputs: JSON documents, TOML, bytes, and numpy headers."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import strategies as st

__all__ = ["HTML", "bytes_of", "json_of", "nodes", "npy", "npz", "toml_of"]

HTML = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7*7 }}", "</style>"]
_HUGE = [2**53, 2**63, 10**30, 10**400, -1, 10**9, 10**12]
_TEXTS = ["", "x", "NaN", "Infinity", "1e999", "1e-999", "1/0", "0x10", "9" * 500, "-0", "0.0"]
_TEXTS += ["../../etc/passwd", "\x00", "\ud800", "\u202e", "1_0", "１", *HTML]
_NASTY: list[Any] = [None, True, False, 0, 0.5, 1e308, float("nan"), float("-inf"), *_HUGE, *_TEXTS]
_NASTY += [[], {}, [[]], {"": {}}, [0] * 300]

_TIMES = st.sampled_from([1, 50])

Path_ = tuple[str | int, ...]


def nodes(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Paths of all values in a document, but for the document itself."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, part in items:
        yield (*path, key)
        yield from nodes(part, (*path, key))


def _holder(document: Any, path: Path_) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


@st.composite
def json_of(draw: st.DrawFn, document: Any) -> bytes:
    """The document with up to three values replaced, removed, added, exchanged or buried."""
    text, paths = _prepared(json.dumps(document))
    fields = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        path, edit = draw(st.sampled_from(paths)), draw(st.integers(0, 6))
        try:
            holder = _holder(fields, path)
            match edit:
                case 0 | 1:
                    holder[path[-1]] = deepcopy(draw(st.sampled_from(_NASTY)))
                case 2:
                    del holder[path[-1]]
                case 3:
                    other = draw(st.sampled_from(paths))
                    holder[path[-1]] = json.loads(json.dumps(_holder(fields, other)[other[-1]]))
                case 4:
                    holder[path[-1]] = _nudged(holder[path[-1]], draw(st.integers(0, 9)))
                case 5 if isinstance(holder, list):
                    holder.extend([_holder(fields, path)[path[-1]]] * draw(_TIMES))
                case 5 if isinstance(holder, dict):
                    holder[draw(st.sampled_from(_TEXTS))] = deepcopy(draw(st.sampled_from(_NASTY)))
                case _:
                    for _ in range(draw(st.sampled_from([1, 40, 300]))):
                        holder[path[-1]] = [holder[path[-1]]]
        except (KeyError, IndexError, TypeError):  # an earlier edit took the place away
            continue
    return draw(_damaged(json.dumps(fields).encode(), [str(path[0]) for path in paths]))


@st.composite
def _damaged(draw: st.DrawFn, content: bytes, keys: list[str]) -> bytes:
    """The bytes of a document, mostly as they are; else what no document writes."""
    match draw(st.integers(0, 15)):
        case 0:
            return draw(bytes_of(content))
        case 1:  # one key twice: the first counts for some readers, the last for others
            key = json.dumps(draw(st.sampled_from(keys))).encode()
            return b"{" + key + b": 0, " + content[1:]
        case 2:
            return content.replace(b"[", b"[" * draw(st.sampled_from([2, 900, 200_000])), 1)
    return content


_PREPARED: dict[str, list[Path_]] = {}


def _prepared(text: str) -> tuple[str, list[Path_]]:
    if text not in _PREPARED:
        _PREPARED[text] = list(nodes(json.loads(text)))
    return text, _PREPARED[text]


def _nudged(value: Any, digit: int) -> Any:
    """A value of the same kind, close by."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + digit - 4
    if isinstance(value, str) and any(c.isdigit() for c in value):
        places = [i for i, c in enumerate(value) if c.isdigit()]
        place = places[digit % len(places)]
        return value[:place] + str(digit) + value[place + 1 :]
    return value


@st.composite
def bytes_of(draw: st.DrawFn, content: bytes) -> bytes:
    """The content truncated, or with a few bytes replaced, removed, repeated or put in."""
    found = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if not found:
            break
        place = draw(st.integers(0, len(found) - 1))
        size = draw(st.sampled_from([1, 1, 2, 8, 64]))
        match draw(st.integers(0, 4)):
            case 0:
                found[place : place + size] = draw(st.binary(min_size=1, max_size=size))
            case 1:
                del found[place : place + size]
            case 2:
                found[place:place] = found[place : place + size] * draw(st.sampled_from([1, 40]))
            case 3:
                found[place] ^= 1 << draw(st.integers(0, 7))
            case _:
                if draw(st.integers(0, 3)) == 0:
                    del found[place:]
    return bytes(found)


_LITERALS = ["nan", "inf", "-1", "0", "1e-400", "1e400", "1e999999999", "9" * 400, "9" * 5000]
_LITERALS += ["0.5", "1", "true", '""', '"x"', "'DECIDE'", "[]", "{}", "1979-05-27", "0x7fffffff"]
_LITERALS += ['{ kind = "box" }', "{ low = 1, high = 0 }", '{ kind = "sets", min_size = 0.5 }']
_LITERALS += ['{ kind = "ball", radius = 1e300 }', "{ a = " * 2000, "[" * 2000 + "]" * 2000]
_LITERALS += ['"\\ud800"', '"\\u0000"', '"clip"', '"/dev/null"', '"../x.npy"', '"<script>"']
_KEYS = ["k", "delta", "low", "radius", "noise", "outside", "seed", "owner", "projection", '""']


@st.composite
def toml_of(draw: st.DrawFn, text: str, literals: Sequence[str] = ()) -> bytes:
    """TOML whose values are of other types, or whose lines are lost, doubled or damaged."""
    lines = text.strip().splitlines()
    values = [*_LITERALS, *literals]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[place].partition("=")
        match draw(st.integers(0, 5)):
            case 0 | 1 | 2 if equals:
                lines[place] = f"{key}= {draw(st.sampled_from(values))}"
            case 3:
                lines.insert(place, draw(st.sampled_from(lines)))
            case 4:
                new = f"{draw(st.sampled_from(_KEYS))} = {draw(st.sampled_from(values))}"
                lines.insert(place + 1, new)
            case _ if len(lines) > 1:
                del lines[place]
    content = "\n".join(lines).encode()
    return draw(bytes_of(content)) if draw(st.integers(0, 5)) == 0 else content


class _Bomb:
    """What a reader that unpickles would execute."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (_executed, ("unpickled",))


def _executed(_: str) -> None:
    raise AssertionError("something was executed")


_SHAPES: list[Any] = [(3, 2), (3,), (0, 2), (3, 0), (2, 3, 1), (), (10**9, 10**9), (2**62, 2)]
_SHAPES += [(2**31, 2**33), (-1, 2), (True, 2), (1.5, 2), ("a", 2), "x", (6, 1), (10**400, 1)]
_DTYPES: list[Any] = ["<f8", ">f8", "<f4", "|b1", "|u1", "<i8", "|O", "<U4", "<M8[ns]", "<c16"]
_DTYPES += ["|V8", [("a", "<f8"), ("b", "|O")], "", "<f16", "S5", "<f2", "x", 7, ["<f8"]]


@st.composite
def npy(draw: st.DrawFn) -> bytes:
    """A .npy file: header with any type and shape, and a body that may not fit it."""
    header = repr(
        {
            "descr": draw(st.sampled_from(_DTYPES)),
            "fortran_order": draw(st.sampled_from([False, False, True, 1, None])),
            "shape": draw(st.sampled_from(_SHAPES)),
        }
    )
    match draw(st.integers(0, 8)):
        case 0:
            header = header.replace("'shape'", draw(st.sampled_from(["'shaqe'", "shape", ""])))
        case 1:
            header = "(" * draw(st.sampled_from([5, 150, 5_000])) + header
        case 2:
            header = "__import__('os').system('touch executed') or " + header
    version = draw(st.sampled_from([b"\x01\x00"] * 5 + [b"\x02\x00", b"\x03\x00", b"\x09\x00"]))
    encoded = header.encode("latin-1", "replace") + b" " * 20 + b"\n"
    length = len(encoded) + draw(st.sampled_from([0] * 8 + [1, -1, 60_000]))
    size = 2 if version == b"\x01\x00" else 4
    content = b"\x93NUMPY" + version + max(length, 0).to_bytes(4, "little")[:size] + encoded
    numbers, bomb = np.linspace(0, 1, 6).tobytes(), pickle.dumps(_Bomb())
    content += draw(st.sampled_from([numbers, b"", b"\x00" * 47, b"\xff" * 48, bomb]))
    return draw(bytes_of(content)) if draw(st.integers(0, 4)) == 0 else content


_FILE = io.BytesIO()
np.save(_FILE, np.linspace(0, 1, 6).reshape(3, 2))
_GOOD = _FILE.getvalue()


@st.composite
def npz(draw: st.DrawFn) -> bytes:
    """A .npz file with other members than one array, or damaged ones; some unpack to much."""
    file = io.BytesIO()
    names = ["arr_0.npy", "steps.npy", "../up.npy", "/abs.npy", "x", "arr_0", "a" * 300 + ".npy"]
    with zipfile.ZipFile(file, "w", draw(st.sampled_from([zipfile.ZIP_STORED, 8]))) as archive:
        for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
            content = draw(st.one_of(st.just(_GOOD), npy()))
            if draw(st.integers(0, 60)) == 0:  # 16 MiB of zeros in some kilobytes
                archive.writestr(name, content + b"\x00" * (1 << 24), zipfile.ZIP_DEFLATED, 1)
            else:
                archive.writestr(name, content)
    content = file.getvalue()
    return draw(bytes_of(content)) if draw(st.integers(0, 2)) == 0 else content
