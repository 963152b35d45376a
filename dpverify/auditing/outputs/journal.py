"""The journal of an audit: what it has found so far, so that an interrupted one can resume.

A file of JSON lines. The first says which audit it is of; each other one holds what one step gave
(the pace, the search, the trials, a kind of audit), written whole and synchronised to the disc
before the next step begins. A last line that was torn by the end of its process is dropped, and its
step done again; a line that was changed since, as its hash tells, is refused. Draws are named by
seed and place, not by time, so the steps that are left give what they would have given; and every
result goes through the form in which it is written, whether it is read back or not. So a resumed
audit ends with the very report of an uninterrupted one, if the mechanism draws from the audit's
words alone. One that draws its own randomness keeps its level: no step is done twice to an end. A
step in which the mechanism couldn't be drawn from, or a worker was lost, isn't kept.

**Which audit.** The level, seed, draws, kinds and pairs, and the mechanism: its fields, for
functions their code, and the files in which its code stands (`source_files`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from dpverify._fields import field_values, state_of
from dpverify._version import __version__
from dpverify.auditing import finding as finding_module
from dpverify.auditing.finding import Finding
from dpverify.data.domain import is_sparse
from dpverify.data.rows import pickled
from dpverify.errors import PASSING, ConfigurationError, OutputError, require, require_text
from dpverify.paths import to_path
from dpverify.privacy import Pair
from dpverify.visible import shown

__all__ = ["AuditJournal", "fingerprint", "from_plain", "pair_from_plain", "pair_plain", "to_plain"]

_DEPTH = 8  # of nested fields that are told apart


@dataclass(frozen=True, slots=True)
class AuditJournal:
    """Where audits keep what they have found.

    Parameters
    ----------
    path : of the file, which is made if there is none; None keeps nothing
    run : of several audits that share the file, the command that makes them; None for one audit
    """

    path: Path | None = None
    run: str | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            object.__setattr__(self, "path", to_path("path", self.path))
        if self.run is not None:
            require_text("run", self.run)

    def kept(
        self,
        identity: Mapping[str, str],
        step: str,
        make: Callable[[], Any],
        *,
        done: Callable[[Any], bool] = lambda _: True,
    ) -> Any:
        """What the step gave, as JSON gives it back: from the file, or made now and written.

        Parameters
        ----------
        identity : of the audit
        step : its name
        make : does it; of what JSON can hold
        done : whether what it gave is worth keeping; else the next run does it again

        Raises
        ------
        ConfigurationError
            If the file is the journal of another audit, or none at all.
        OutputError
            If it can't be written.
        """
        if self.path is None:
            return json.loads(json.dumps(make()))
        audit = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        header = {"dpverify": __version__, **({"run": self.run} if self.run else identity)}
        for line in self._lines(header):
            if line["audit"] == audit and line["step"] == step:
                return line["gave"]
        gave = json.loads(json.dumps(make()))
        if done(gave):
            line = {"audit": audit, "step": step, "gave": gave}
            self._append(json.dumps({**line, "sha256": _digest(line)}))
        return gave

    def _lines(self, header: dict[str, str]) -> list[Any]:
        """All whole lines but the header, which is written if there is none."""
        assert self.path is not None  # noqa: S101 - for the type checker
        there = os.path.lexists(self.path)
        if there and not self.path.is_file():  # a pipe would be waited for
            raise ConfigurationError(f"the journal {self.path} is not a file. Give another.")
        try:
            raw = self.path.read_bytes() if there else b""
        except OSError as error:
            raise OutputError(f"the journal {self.path} can't be read: {error}.") from error
        whole, newline, torn = raw.rpartition(b"\n")
        none = ConfigurationError(f"{self.path} is no journal. Give another file.")
        if not newline:
            if not json.dumps(header).encode().startswith(torn):
                raise none
            self._append(json.dumps(header), keep=0)
            return []
        try:
            first, *lines = [json.loads(line) for line in whole.split(b"\n")]
            known = first["dpverify"]
            changed = [number for number, line in enumerate(lines, 2) if not _is_whole(line)]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise none from error
        if first != header:
            names = [n for n in {**first, **header} if first.get(n) != header.get(n)]
            said = ", ".join(f"{n} was {first.get(n)} and is {header.get(n)}" for n in names)
            raise ConfigurationError(
                f"{self.path} is the journal of another audit (of dpverify {known}): {said}. "
                "Give another file, or remove it."
            )
        if changed:
            raise ConfigurationError(
                f"{self.path}: line {changed[0]} was changed after it was written, and a verdict "
                "may rest on it. Give another file, or remove that line: its step is done again."
            )
        if torn:
            self._append("", keep=len(whole + newline))
        return lines

    def _append(self, text: str, *, keep: int | None = None) -> None:
        """Add a line; of the file as it was, keep so many bytes if not all."""
        assert self.path is not None  # noqa: S101 - for the type checker
        try:
            with self.path.open("a", encoding="utf-8") as file:
                if keep is not None:
                    file.truncate(keep)
                file.write(text + "\n" if text else "")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"the journal {self.path} can't be written: {error}.") from error


def _digest(line: Mapping[str, Any]) -> str:
    """Of what a line says."""
    said = json.dumps([line["audit"], line["step"], line["gave"]])
    return hashlib.sha256(said.encode()).hexdigest()


def _is_whole(line: Mapping[str, Any]) -> bool:
    """Whether a line is as it was written."""
    said, digest = _digest(line), line["sha256"]
    return bool(said == digest)


def fingerprint(value: Any) -> str:
    """Digest of what something is made of: types, fields, numbers, and the code of functions."""
    return hashlib.sha256(_told(value, _DEPTH).encode()).hexdigest()[:16]


def to_plain(findings: Sequence[Finding], known: Sequence[Pair]) -> list[Any]:
    """Findings as JSON holds them; a known pair by its name alone, any other whole."""
    held = []
    for finding in findings:
        values = {
            entry.name: _plain(getattr(finding, entry.name))
            for entry in fields(finding)
            if entry.name != "pair"
        }
        pair = finding.pair
        named = any(pair is each for each in known)
        values["pair"] = pair and (pair.name if named else pair_plain(pair))
        held.append(values)
    return held


def from_plain(held: Sequence[Any], known: Sequence[Pair]) -> list[Finding]:
    """Findings as `to_plain` gave them, of the same known pairs."""
    names = {pair.name: pair for pair in known}
    found = []
    for entry in held:
        pair = entry["pair"]
        if pair is not None:
            pair = names[pair] if isinstance(pair, str) else pair_from_plain(pair)
        values = {name: _restored(value) for name, value in entry.items() if name != "pair"}
        found.append(Finding(**values, pair=pair))
    return found


def pair_plain(pair: Pair) -> dict[str, Any]:
    """A pair, whole: of dense or sparse numbers, or of lists of dicts."""
    sides = (pair.record, pair.neighbour)
    if not any(isinstance(x, np.ndarray) or is_sparse(x) for x in sides):
        return {"name": pair.name, "sides": [_data_plain(x) for x in sides]}
    arrays = [np.asarray(x.toarray() if is_sparse(x) else x) for x in sides]
    return {
        "name": pair.name,
        "dtype": str(arrays[0].dtype),
        "shapes": [x.shape for x in arrays],  # of no rows, nothing else says how many columns
        "sides": [x.tolist() for x in arrays],
    }


def pair_from_plain(held: Mapping[str, Any]) -> Pair:
    """The pair that `pair_plain` gave, dense."""
    if "dtype" in held:
        record, neighbour = (
            np.array(side, dtype=held["dtype"]).reshape(shape)
            for side, shape in zip(held["sides"], held["shapes"], strict=True)
        )
    else:
        record, neighbour = map(_data_restored, held["sides"])
    return Pair(name=held["name"], record=record, neighbour=neighbour)


def _data_plain(value: Any) -> Any:
    match value:
        case list() | tuple():
            return {type(value).__name__: [_data_plain(each) for each in value]}
        case Mapping():
            return {"dict": [[_data_plain(name), _data_plain(value[name])] for name in value]}
        case date():
            return {"date": value.isoformat()}
        case float() if not math.isfinite(value):
            return {"float": str(value)}
    plain = value is None or isinstance(value, bool | int | float | str)
    rule = "of lists, dicts, numbers, text and dates, where pairs are searched for"
    require(plain, "data set", value, rule, "Name the pairs.")
    return value


def _data_restored(held: Any) -> Any:
    match held:
        case {"list": parts}:
            return [_data_restored(part) for part in parts]
        case {"tuple": parts}:
            return tuple(_data_restored(part) for part in parts)
        case {"dict": parts}:
            return {_data_restored(name): _data_restored(part) for name, part in parts}
        case {"date": text}:
            return date.fromisoformat(text)
        case {"float": text}:
            return float(text)
    return held


def _plain(value: Any) -> Any:
    """As JSON holds it. What isn't plain comes back as the words that a report shows of it."""
    if is_dataclass(value):
        values = {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
        return {"class": type(value).__name__, "fields": values}
    if isinstance(value, Mapping):
        return {"mapping": [[str(name), _plain(each)] for name, each in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [_plain(each) for each in value]}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _restored(value: Any) -> Any:
    match value:
        case {"class": name, "fields": entries}:
            made = {field: _restored(each) for field, each in entries.items()}
            return getattr(finding_module, name)(**made)
        case {"mapping": entries}:
            return {name: _restored(each) for name, each in entries}
        case {"tuple": entries}:
            return tuple(_restored(each) for each in entries)
        case {"fraction": text}:
            return Fraction(text)
    return value


def _told(value: Any, depth: int, within: tuple[int, ...] = ()) -> str:
    """Everything that tells two mechanisms apart, without the places where they lie in memory.

    Data are told to their last item; other things that hold others, so many deep.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if depth == 0 or id(value) in within:
        return kind
    inner = partial(_told, depth=depth - 1, within=(*within, id(value)))
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
        return f"{value.__qualname__}{[inner(part) for part in parts]}"
    if isinstance(value, CodeType):
        return f"{value.co_code!r}{value.co_names}{inner(value.co_consts)}"
    if is_sparse(value) or isinstance(value, np.ndarray | np.generic):
        dense = np.asarray(value.toarray() if is_sparse(value) else value)
        held = inner(dense.tolist()) if dense.dtype == object else dense.tobytes().hex()
        return f"{kind}{dense.dtype}{dense.shape}{held}"
    data = partial(inner, depth=depth)
    if isinstance(value, Mapping):
        entries = [f"{_repr(name)}:{data(each)}" for name, each in value.items()]
        return f"{kind}{entries}"
    if isinstance(value, tuple | list):
        return f"{kind}{[data(each) for each in value]}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, set | frozenset):  # of an order that hashes make, in each process another
        return f"{kind}{sorted(map(data, value))}"
    if hasattr(value, "__array__"):  # a frame: its numbers alone don't say its names
        with suppress(Exception):  # whatever an object says to being pickled
            return f"{kind}{pickled(value).hex()}"
        return f"{kind}{inner(np.asarray(value))}"
    if own := field_values(value):
        return f"{kind}{inner(own)}"
    text = _repr(value)
    standard = kind.partition(".")[0] in sys.stdlib_module_names  # a logger holds the whole program
    told = "" if text == object.__repr__(value) else re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    state = {} if standard and told else state_of(value)
    return f"{kind}{told}{inner(state) if state else ''}"


def _repr(value: Any) -> str:
    """All of it; of what can't be shown, why."""
    try:
        return repr(value)
    except PASSING:
        raise
    except BaseException:  # whatever foreign code does; Python writes so many digits in hexadecimal
        return hex(value) if isinstance(value, int) else shown(value)
