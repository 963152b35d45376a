"""What releases do beside giving their outputs: print, write, ask, start, change their data.

An audit reads outputs. What a mechanism prints or writes is none, and a leak there would go unseen;
so a few releases are watched, none of which is counted, and the report says what they did. Python's
audit hooks tell of files, processes, connections and the environment, also where a thread that a
release starts does it. Such a hook stays for good: ours is installed with the first watched
release, and looks at nothing while none is watched. What is printed is read from `sys.stdout`,
`sys.stderr` and the descriptors below them, where libraries of other languages write; what is
written, from the files once the release is over; and log records as they are handled, wherever
they go. What was cut off from an array of pyarrow isn't among its values, but pickle writes it: it
is looked at here. Unseen stays what a variable of a module keeps, what else goes to a file that was
open before or is still open, and what a thread does that ran before or goes on after the release.

**Dependence.** Noise may be printed, and what is printed may then differ from release to release.
But a word, a number, a path or a host that is the same in all watched releases of one side, and
another in all of the other, depends on the data: under noise of any law that happens, for one of
them, with probability at most 2·4⁻⁸. Which side is released first is drawn, so that what is said
each other time is taken for the data's with probability 2⁻⁷. Nobody is accused of it, as a claim
may be of the output alone; the audit is inconclusive.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from attrs import evolve

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.beside import beside
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.outputs.leaves import Block
from dpverify.auditing.outputs.samples import releaser
from dpverify.auditing.outputs.values import kept, value_of
from dpverify.auditing.targets.command import Command
from dpverify.auditing.targets.encoded import Encoded
from dpverify.auditing.targets.estimators import Fitted
from dpverify.auditing.targets.functions import Adapted
from dpverify.auditing.targets.primitives import Declaration, taped
from dpverify.data.adjacency import Permutation
from dpverify.data.rows import copied, pickled
from dpverify.data.table import Row, Table
from dpverify.errors import PASSING
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import escaped

__all__ = ["SideEffects", "made_alike", "side_effects"]

_WATCHED = 8  # releases of each side
_QUOTED = 60  # characters of what is printed
_LISTED = 3  # things of one kind that are named
_READ = 10_000  # bytes that are read of what one release prints
_CUT = "what was cut off from its Arrow arrays, and is pickled with them,"
_WORD = 8  # bytes of it that are compared together
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class SideEffects:
    """What watched releases did.

    Attributes
    ----------
    notes : a sentence each
    leak : why the audit can't be conclusive; empty where nothing shows a dependence on the data
    declared : what their code declares, by `primitive` and `ensure_equal`, which outputs don't show
    """

    notes: tuple[str, ...]
    leak: str = ""
    declared: tuple[str, ...] = ()


def side_effects(mechanism: Mechanism, pair: Pair, config: AuditConfig) -> SideEffects:
    """Watch a few releases of both sides, which nothing counts.

    Raises
    ------
    DrawError
        If a release is late.
    """
    watched: tuple[list[_Effects], list[_Effects]] = ([], [])
    releases, silent, marks = [], True, _Marks()
    for side, data in enumerate((pair.record, pair.neighbour)):
        rng = ReplayableWords(config.seed, "watched", f"pair {pair.name!r}", side)
        releases.append(releaser(_made_unseen(mechanism), data, _WATCHED + 1, rng))
    program = _program(mechanism)
    if program:
        program.said()  # as it began
    order = ReplayableWords(config.seed, "watched", f"pair {pair.name!r}", "order")
    for first in (order.words(_WATCHED + 1) % 2).tolist():
        for side in (first, 1 - first):
            with _watching() as effects, taped(marks):
                work = partial(_tried, releases[side], effects)
                silent &= foreign_code(work, mechanism, pair, side, (), config.time_limit)
            if program:  # in a process of its own: what this one did was to start it
                effects.events.clear()
                effects.text += program.said()
            watched[side].append(effects)
    name = display_name(mechanism)
    everything = [effects for side in watched for effects in side]
    notes = [f"{name} {said}." for said in _said(everything)]
    if silent:
        notes.append(
            f"{name} returns nothing but None, where {len(everything)} calls were watched."
        )
    if unread := _unread(mechanism, pair, config):
        kept = ", ".join(map(escaped, unread))
        notes.append(f"{name} keeps {kept} of its fit: what ends in _ is its output.")
    if _changes(mechanism, pair, config):
        notes.append(f"{name} changes the data that it is given; each release got a copy.")
    # The first release may say what is said once: a warning, a banner.
    telling = _telling(*(side[1:] for side in watched))
    leak = (
        f"what {name} prints, writes or asks for depends on the data ({telling}), on the pair "
        f"{pair.name!r}, and isn't part of the output that is audited. Return it, or leave it out."
    )
    return SideEffects(tuple(notes), leak if telling else "", tuple(marks.names))


def _adapted(mechanism: Any) -> Adapted | None:
    """The function that it is made of, whoever encodes its outputs."""
    while isinstance(mechanism, Encoded):
        mechanism = mechanism.mechanism
    return mechanism if isinstance(mechanism, Adapted) else None


def _program(mechanism: Any) -> Command | None:
    """The program that it is, if it is one."""
    adapted = _adapted(mechanism)
    return adapted.function if adapted and isinstance(adapted.function, Command) else None


@dataclass(frozen=True, slots=True)
class _Marks:
    """A tape that notes what is declared, and calls all as it stands."""

    names: dict[str, None] = field(default_factory=dict)

    def marked(
        self,
        declared: Declaration,
        call: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        self.names[f"primitive {declared.name}"] = None
        return call(*arguments, **named)

    def fact(self, name: str, value: Any) -> None:
        self.names[f"ensure_equal(“{escaped(str(name))}”)"] = None


def made_alike(mechanism: Any, pair: Pair, config: AuditConfig) -> bool:
    """Whether a table's own function makes the same of both data sets, as where it drops them.

    Raises
    ------
    DrawError
        If it raises, or what it makes can't be read.
    """
    adapted = _adapted(mechanism)
    table = adapted.domain if adapted else None
    reordered = isinstance(mechanism.adjacency, Permutation)
    if not isinstance(table, Table) or not callable(table.make) or reordered:
        return False

    def contents() -> list[str]:
        return [_content(table.made(data)) for data in (pair.record, pair.neighbour)]

    with _watching():
        one, other = foreign_code(contents, mechanism, pair, None, (), config.time_limit)
    return one == other


def _made_unseen(mechanism: Any) -> Any:
    """The mechanism, of whose tables no making is seen: their files are none of its own."""
    if isinstance(mechanism, Encoded):
        return replace(mechanism, mechanism=_made_unseen(mechanism.mechanism))
    if not isinstance(mechanism, Adapted) or not isinstance(mechanism.domain, Table):
        return mechanism
    table = mechanism.domain

    def make(rows: list[Row]) -> Any:
        effects, _watch.effects = _watch.effects, None
        try:
            return table.made(rows)
        finally:
            _watch.effects = effects

    return replace(mechanism, domain=evolve(table, make=make))


def _tried(release: Callable[[], Any], effects: _Effects | None = None) -> bool:
    """Whether it returns, and nothing but None."""
    try:
        output = release()
    except PASSING:
        raise
    except BaseException:  # what is raised is an output, which others look at
        return False
    if effects:
        effects.cut = beside(output).cut
    return output is None


def _unread(mechanism: Any, pair: Pair, config: AuditConfig) -> tuple[str, ...]:
    """Attributes that an estimator has of its fit, and that no audit reads."""
    fitted = mechanism.function if isinstance(mechanism, Adapted) else None
    if not isinstance(fitted, Fitted):
        return ()

    def names() -> tuple[str, ...]:
        try:
            return fitted.unread(copied(pair.record))
        except PASSING:
            raise
        except BaseException:
            return ()

    with _watching():
        return foreign_code(names, mechanism, pair, 0, (), config.time_limit)


def _said(watched: Sequence[_Effects]) -> Iterator[str]:
    """Sentences on all of them, without their subject."""
    texts = [effects.text for effects in watched if effects.text]
    if texts:
        line = next((line for line in texts[-1].splitlines() if line.strip()), "")
        quoted = escaped(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…")
        yield f"prints “{quoted}”" if quoted else "prints empty lines"
    done = dict.fromkeys(event for effects in watched for event in effects.events)
    for verb in dict.fromkeys(verb for verb, _ in done):
        objects = [each for other, each in done if other == verb]
        more = f" and {len(objects) - _LISTED} others" if len(objects) > _LISTED else ""
        yield f"{verb} {', '.join(objects[:_LISTED])}{more}".rstrip()


def _telling(own: Sequence[_Effects], other: Sequence[_Effects]) -> str:
    """Something that tells the sides apart, in words; empty if nothing does."""
    sides = []
    for watched in (own, other):
        first, *others = [effects.leaves for effects in watched]
        same = {
            name: leaf
            for name, leaf in first.items()
            if all(name in leaves and leaves[name] == leaf for leaves in others)
        }
        sides.append((same, {name for leaves in (first, *others) for name in leaves}))
    for (same, _), (others_same, others_names) in (sides, sides[::-1]):
        for name, leaf in same.items():
            if name in others_same and others_same[name] != leaf:
                if name.startswith(_CUT):
                    return f"{_CUT} differs"
                if isinstance(leaf, Block):
                    return f"{name} differ"
                return f"{name} is {_shown(leaf)} or {_shown(others_same[name])}"
            if name not in others_names:
                return f"{name}, on one side alone"
    return ""


def _shown(leaf: Any) -> str:
    return escaped(str(leaf)[:_QUOTED])


def _changes(mechanism: Any, pair: Pair, config: AuditConfig) -> bool:
    """Whether a release changes its argument."""
    rng = ReplayableWords(config.seed, "watched", "data")
    seen: list[bool] = []

    def spied(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(data: Any, *more: Any, **named: Any) -> Any:
            before = _written(data)
            try:
                return function(data, *more, **named)
            finally:
                seen.append(_written(data) != before)

        return called

    spy: Any = SimpleNamespace(release=spied(mechanism.release))
    if isinstance(mechanism, Adapted):  # which hands on a copy
        spy = replace(mechanism, function=spied(mechanism.function))
    release = releaser(spy, pair.record, 1, rng)
    with _watching():
        foreign_code(partial(_tried, release), mechanism, pair, 0, (), config.time_limit)
    return any(seen)


def _written(data: Any) -> Any:
    """What pickle writes, as a path keeps its hash; or where it can't, what can be read."""
    try:
        return pickled(data)
    except Exception:  # whatever an object says to it
        return _content(data)


def _content(data: Any) -> str:
    value = value_of(kept(data))
    return f"{value.structure} {value.leaves!r}"


# --- one release ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Effects:
    """What one release did.

    Attributes
    ----------
    others : threads that ran before it, which aren't its own
    events : verb and object of each
    files : those that it opened to write to, with their length before
    text, written : what it printed, and what it wrote to files
    cut : memory of sliced arrays of its output
    """

    others: frozenset[int | None]
    events: list[tuple[str, str]] = field(default_factory=list)
    files: dict[Path, int] = field(default_factory=dict)
    text: str = ""
    written: str = ""
    cut: bytes = b""

    @property
    def leaves(self) -> Mapping[str, Any]:
        """All of it, by parts that have names."""
        said = {
            name.replace("output", called): leaf
            for called, text in (("what it prints", self.text), ("what it writes", self.written))
            for name, leaf in value_of(text).leaves
            if name != "structure"
        }
        words = range(0, len(self.cut), _WORD)
        cut = {f"{_CUT} at {start}": self.cut[start : start + _WORD].hex() for start in words}
        return said | cut | {" ".join(event).rstrip(): "done" for event in self.events}

    def read(self) -> None:
        """Read what files have that they hadn't before."""
        for path, start in self.files.items():
            if path.is_file():  # a pipe would be waited for
                with suppress(OSError), path.open("rb") as file:
                    file.seek(start)
                    self.written += file.read(_READ).decode(errors="replace")


_watch = SimpleNamespace(effects=None)
_ALONE = threading.RLock()
"""The descriptors are the whole process's."""


@contextmanager
def _watching() -> Iterator[_Effects]:
    """Note what this thread does, and those that it starts, and what is printed."""
    _install()
    effects = _Effects(
        frozenset(thread.ident for thread in threading.enumerate()) - {threading.get_ident()}
    )
    # Entered anew, it shows again a warning that Python shows once, if the filters let it pass.
    with _ALONE, warnings.catch_warnings(), tempfile.TemporaryFile() as printed:
        with _printing_to(printed), _logging_to(effects):
            _watch.effects = effects
            try:
                yield effects
            finally:
                _watch.effects = None
        effects.read()
        printed.seek(0)
        effects.text = printed.read(_READ).decode(errors="replace")


@contextmanager
def _logging_to(effects: _Effects) -> Iterator[None]:
    """Note what is logged, also where that goes to a file which was open before."""
    handle = logging.Logger.handle

    def noted(self: logging.Logger, record: logging.LogRecord) -> None:
        if _watch.effects is effects and threading.get_ident() not in effects.others:
            with suppress(Exception):  # a message that can't be made
                effects.written += f"{record.getMessage()}\n"[:_READ]
                effects.events.append(("logs to", escaped(record.name)))
        handle(self, record)

    logging.Logger.handle = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.handle = handle  # type: ignore[method-assign]


@cache
def _install() -> None:
    """Install the hook, once."""
    sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    effects: _Effects | None = _watch.effects
    if effects is None or event not in _EVENTS or threading.get_ident() in effects.others:
        return
    verb, place = _EVENTS[event]
    said = "" if place is None else _named(args[place])
    if event == "open":
        if not args[2] & _WRITING or "__pycache__" in said or said in _NOWHERE:
            return
        with suppress(OSError, TypeError):
            path = Path(os.fsdecode(args[0])).absolute()  # the working folder may change
            goes_on = path.is_file() and not args[2] & os.O_TRUNC
            effects.files.setdefault(path, path.stat().st_size if goes_on else 0)
    elif event == "os.rename":
        with suppress(KeyError, TypeError):
            old, new = (Path(os.fsdecode(name)).absolute() for name in args[:2])
            effects.files[new] = effects.files.pop(old)
    elif event == "os.putenv":
        said = f"{said}={_named(args[1])}"
    effects.events.append((verb, said))


# Verb, and which argument of the event is its object.
_EVENTS: Mapping[str, tuple[str, int | None]] = {
    "open": ("writes", 0),
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), ("removes", 0)),
    **dict.fromkeys(("os.rename", "os.truncate", "os.chmod", "os.utime"), ("changes", 0)),
    **dict.fromkeys(("os.mkdir", "sqlite3.connect"), ("writes", 0)),
    **dict.fromkeys(("os.link", "os.symlink"), ("writes", 1)),
    **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), ("connects to", 1)),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), ("looks up", 0)),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), ("changes the environment:", 0)),
    "os.chdir": ("changes the working folder to", 0),
    "syslog.syslog": ("logs", 1),
    **dict.fromkeys(("os.fork", "os.forkpty"), ("forks", None)),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"), ("starts", 0)),
}
_NOWHERE = (os.devnull, "")


def _named(thing: Any) -> str:
    """A path, an address or a program as text; empty for a descriptor, which was opened before."""
    match thing:
        case str():
            return escaped(thing)
        case bytes() | os.PathLike():
            return escaped(os.fsdecode(thing))
        case (host, port, *_):
            return escaped(f"{host}:{port}")
    return ""


@contextmanager
def _printing_to(file: IO[bytes]) -> Iterator[None]:
    with ExitStack() as restored:
        for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
            with suppress(Exception):  # whatever stands in their place
                stream.flush()
            with suppress(OSError):  # closed
                own = os.dup(descriptor)
                restored.callback(os.close, own)
                os.dup2(file.fileno(), descriptor)
                restored.callback(os.dup2, own, descriptor)
        text = open(file.fileno(), "w", 1, "utf-8", "replace", closefd=False)  # noqa: SIM115
        restored.callback(_close, text)
        with redirect_stdout(text), redirect_stderr(text):
            yield


def _close(stream: IO[Any]) -> None:
    with suppress(ValueError):  # detached
        stream.close()
