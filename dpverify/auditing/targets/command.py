"""A program in any language, audited as it stands.

The program reads requests from its standard input, a line of JSON each, and answers each on its
standard output by one line of JSON, its output: any JSON value, with all digits of its numbers. How
it is written beyond that (white space, escapes in a text) is no part of it.

    {"data": [[0.5], [1.0]], "seed": 8155} → 0.73

The data are as a pair holds them: lists of numbers, or of objects with the columns' names; dates
are text (ISO 8601), and bytes are lists of numbers. There is a seed if the program is declared to
take one, below 2⁵³, and a number of draws if it is declared to take that: it answers with so many
lines then. What it says on its standard error is for people, and is watched as what a function
prints is.

**One process** is started for the first request and kept for the next ones; each worker has its
own. It ends with the object that started it, or with Python, and so do the processes that it
started (on POSIX systems), unless they began a session of their own. A program that ends, writes
what isn't JSON, or a line too many or too few, ends the audit as inconclusive, with what it said on
its standard error; one that is late is ended by the audit's time limit.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, ClassVar

import numpy as np

from dpverify._decimals import context
from dpverify._json import each_once
from dpverify.data.domain import is_sparse
from dpverify.errors import DrawError, require
from dpverify.numbers import truth
from dpverify.visible import escaped, raised

__all__ = ["Command"]

_TOLD = 500  # characters of what it said on its standard error, from the end
_LONGEST = 1 << 26  # bytes of a line
_READ = 1 << 16
_SETTLED = 0.1  # seconds after its first answer in which another line may come
_LOOK = 0.1  # seconds between two looks at the clock, while it doesn't answer
_GRACE = 1.0  # seconds
_NAMED = 40  # characters of an argument that messages repeat
_SEED = 2**53  # up to here every language has whole numbers


@dataclass(frozen=True)
class Command:
    """A program that reads data sets and writes outputs, as JSON lines.

    Parameters
    ----------
    args : the program and its arguments, or one line of them as a shell reads it; no shell is
        started
    seeded : whether it draws all its noise from the ``seed`` of a request, so that its audit can be
        replayed
    many : whether it takes ``draws`` and answers by so many lines. That these are independent is
        your word, which no audit of them tests.

    Examples
    --------
    >>> import sys
    >>> program = '''
    ... import json, random, sys
    ... for line in sys.stdin:
    ...     request = json.loads(line)
    ...     noise = random.Random(request["seed"])
    ...     answer = len(request["data"]) + noise.choice([-1, 0, 1])
    ...     print(json.dumps(answer), flush=True)
    ... '''
    >>> command = Command([sys.executable, "-c", program], seeded=True)
    >>> command([[1.0], [2.0]], np.random.default_rng(1)) in (1, 2, 3)
    True
    """

    apart: ClassVar[bool] = True
    """What it keeps is in a process of its own."""

    args: Sequence[str]
    seeded: bool = False
    many: bool = False

    def __post_init__(self) -> None:
        args = shlex.split(self.args) if isinstance(self.args, str) else self.args
        listed = isinstance(args, Sequence) and all(isinstance(each, str) for each in args)
        rule = 'a program and its arguments, as in ["node", "mean.js"]'
        require(listed and bool(args), "args", self.args, rule)
        object.__setattr__(self, "args", tuple(args))
        for name in ("seeded", "many"):
            object.__setattr__(self, name, truth(name, getattr(self, name)))
        self._forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return Command, (self.args, self.seeded, self.many)

    @property
    def name(self) -> str:
        """For messages."""
        parts = (part if len(part) < _NAMED else f"{part[:_NAMED]}…" for part in self.args)
        return escaped(shlex.join(parts))

    def __call__(self, data: Any, *more: Any) -> Any:
        """Answer to one request.

        Parameters
        ----------
        data : of a pair
        more : the number of draws if it takes `many`, then numpy's generator if it is `seeded`

        Returns
        -------
        Its output; if it takes `many`, a list of them.

        Raises
        ------
        DrawError
            If the program can't be started, ends, or answers otherwise; if JSON can't hold the data
            (NaN, infinities).
        """
        try:
            request = {"data": _plain(data)}
            if self.many:
                request["draws"] = int(more[0])
            if self.seeded:
                request["seed"] = int(more[-1].integers(_SEED))
            line = json.dumps(request, allow_nan=False, default=_plain) + "\n"
        except (TypeError, ValueError) as error:
            raise DrawError(f"{self.name}: JSON can't hold the data: {error}.") from None
        process = self._process()
        try:
            process.write(line.encode())
            answers = [process.answer() for _ in range(int(more[0]) if self.many else 1)]
            if not process.heeded:  # its first line may be a greeting
                process.silent(_SETTLED)
                process.heeded = True
        except BaseException as error:
            said = process.end()
            self._forget()
            if isinstance(error, _Failure | OSError):
                raise DrawError(f"{self.name} {error}{said}") from None
            raise
        return answers if self.many else answers[0]

    def said(self) -> str:
        """What it has said on its standard error since this was asked last."""
        held, owner = self._running
        return held.said() if held is not None and owner == os.getpid() else ""

    def close(self) -> None:
        """End the process, if there is one."""
        held, owner = self._running
        if held is not None and owner == os.getpid():
            held.end()
        self._forget()

    @property
    def _running(self) -> tuple[_Process | None, int]:
        """The process, and which one started it; no field, as it says nothing of the program."""
        running: tuple[_Process | None, int] = self.__dict__["_held"]
        return running

    def _forget(self, held: _Process | None = None) -> None:
        self.__dict__["_held"] = held, os.getpid()

    def _process(self) -> _Process:
        """The process of this one: what was forked leaves its parent's alone."""
        held, owner = self._running
        if held is None or owner != os.getpid():
            try:
                held = _Process(self.args)
            except OSError as error:
                raise DrawError(f"{self.name} can't be started: {error}.") from None
            self._forget(held)
        return held


class _Failure(Exception):  # noqa: N818 - private, and becomes a DrawError
    """Not an answer."""


class _Process:
    """A program that runs."""

    def __init__(self, args: Sequence[str]) -> None:
        with ExitStack() as opened:
            errors = opened.enter_context(tempfile.TemporaryFile())
            self.process = opened.enter_context(
                subprocess.Popen(  # noqa: S603 - what the user audits
                    args,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    bufsize=0,
                    start_new_session=True,
                )
            )
            self.buffer = bytearray()
            self.selector: selectors.BaseSelector | None = None
            if os.name != "nt":  # where pipes can't be waited for
                self.selector = opened.enter_context(selectors.DefaultSelector())
                self.selector.register(self.output, selectors.EVENT_READ)
            held = opened.pop_all()
        self.errors, self.heard, self.heeded = errors, 0, False
        self.finalizer = weakref.finalize(self, _ended, self.process, errors, held, os.getpid())

    @property
    def output(self) -> IO[bytes]:
        """What it writes."""
        assert self.process.stdout is not None  # noqa: S101 - for the type checker
        return self.process.stdout

    def write(self, line: bytes) -> None:
        """Send a request."""
        self.silent()
        assert self.process.stdin is not None  # noqa: S101 - for the type checker
        view = memoryview(line)
        while view:
            view = view[self.process.stdin.write(view) :]

    def silent(self, seconds: float = 0.0) -> None:
        """Refuse what it writes within so many seconds, which no request asked for.

        Taken for an answer, each later one would be that of the request before.
        """
        if not self.buffer and self.selector is not None and self.selector.select(seconds):
            self.buffer += os.read(self.output.fileno(), _READ)
        if self.buffer:
            raise _Failure("wrote a line that no request asked for: " + _shown(self.buffer))

    def answer(self) -> Any:
        """Its next line, read."""
        while b"\n" not in self.buffer:
            if self.selector is not None and not self.selector.select(_LOOK):
                continue
            read = os.read(self.output.fileno(), _READ)
            if not read:
                raise _Failure(f"ended, with exit status {self._status()}")
            self.buffer += read
            if len(self.buffer) > _LONGEST:
                raise _Failure(f"wrote a line of more than {_LONGEST} bytes")
        line, _, rest = self.buffer.partition(b"\n")
        self.buffer = rest
        try:
            return json.loads(
                line, object_pairs_hook=each_once, parse_float=_number, parse_int=_whole
            )
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise _Failure("wrote a line that isn't JSON: " + _shown(line)) from None
        except (ValueError, RecursionError, ArithmeticError) as error:
            # A key twice, or thousands of digits, of brackets or in an exponent.
            reason = raised(error)
            raise _Failure(
                f"wrote a line that Python can't read ({reason}): {_shown(line)}"
            ) from None

    def said(self) -> str:
        """What it has said as errors since this was asked last."""
        if not hasattr(os, "pread"):  # whose place in the file is the program's, too
            return ""
        text = os.pread(self.errors.fileno(), _READ, self.heard)
        self.heard = os.fstat(self.errors.fileno()).st_size
        return text.decode(errors="replace")

    def _status(self) -> str:
        """Its exit status, if it has ended; it may have closed its output alone."""
        try:
            return str(self.process.wait(_GRACE))
        except subprocess.TimeoutExpired:
            return "none: it closed its standard output"

    def end(self) -> str:
        """End it; what it said on its standard error, in words."""
        said = self.finalizer()
        return f". Its standard error: {said}" if said else "."


def _ended(process: subprocess.Popen[bytes], errors: IO[bytes], held: ExitStack, owner: int) -> str:
    """End a program and what it started, if this process started it; what it said as errors."""
    if owner != os.getpid():
        return ""
    with held:  # which waits for the program
        with suppress(OSError):  # it may have ended, and all of its own
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()[-_TOLD:]
    return escaped(said, lines=True)


def _number(text: str) -> float | Decimal:
    """The double that a numeral is of, at any number of digits; else all of its digits."""
    exact, nearest = Decimal(text), float(text)
    if math.isfinite(nearest):
        digits = context(len(exact.as_tuple().digits))
        if digits.create_decimal_from_float(nearest) == exact:
            return nearest
    return exact


def _whole(text: str) -> int | float:
    """A whole number; −0, which some languages write, is the double."""
    return -0.0 if text == "-0" else int(text)


def _shown(line: bytes | bytearray) -> str:
    return escaped(bytes(line[:80]).decode(errors="replace"))


def _plain(data: Any) -> Any:
    """As JSON holds it."""
    if is_sparse(data):
        data = data.toarray()
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    if isinstance(data, bytes):
        return list(data)
    if isinstance(data, set | frozenset):
        return sorted(data)
    if hasattr(data, "isoformat"):
        return data.isoformat()
    if isinstance(data, str | int | float | list | tuple | dict | None):
        return data
    raise TypeError(f"{type(data).__name__} has no form in it")
