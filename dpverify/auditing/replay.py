"""Python code that repeats an attack or an audit, imports included.

A value becomes the code that makes it again: numbers, arrays and containers of such, data classes,
and whatever its module holds by name. What a script defines, ``__main__``, is taken from its file,
which runs again for it, and of a session by its name. A lambda and a function inside another one
can't be imported: the code then begins with a comment that says so, and expects the object under
the name `mechanism`; so it is with `pairs` of such.
"""

from __future__ import annotations

import base64
import inspect
import sys
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import attrs
import numpy as np

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.data.domain import is_sparse
from dpverify.visible import shown

__all__ = ["attack_code", "audit_code", "call_code", "names_own"]

_LISTED = 64  # numbers of an array that are written one by one


def attack_code(attack: Attack, target: Target, config: AuditConfig, *, own: bool) -> str:
    """Code that makes the attack again and prints its findings.

    Parameters
    ----------
    attack, target, config : what is made
    own : whether the pairs are those that the mechanism names
    """
    writer = _Writer()
    mechanism = target.mechanism
    head = writer.mechanism(mechanism)
    pairs = "mechanism.worst_pairs()"
    if not own:
        head += writer.assigned("pairs", list(target.pairs))
        pairs = "pairs"
    options = ""
    if target.undrawable:
        options += f", undrawable={writer.code(target.undrawable)}"
    if target.spare:
        options += f", spare={writer.code(target.spare)}, refuted={target.refuted}"
    if target.space is not None:
        head += writer.assigned("space", target.space)
        options += ", space=space"
    body = [
        f"target = {writer.code(Target)}(mechanism, {pairs}{options})",
        f"config = {writer.code(config)}",
        f"for finding in {writer.code(attack)}.run(target, config):",
        "    print(finding)",
    ]
    return "\n".join([*writer.imports(), *head, *body])


def audit_code(mechanism: Any, **options: Any) -> str:
    """Code that calls `dpverify.audit` again and prints its report."""
    writer = _Writer()
    head = writer.mechanism(mechanism)
    if options.get("pairs") is not None:
        head += writer.assigned("pairs", list(options["pairs"]))
    named = [
        f"{name}={name if name == 'pairs' else writer.code(value)}"
        for name, value in options.items()
        if value is not None
    ]
    call = ", ".join(["mechanism", *named])
    return "\n".join(
        [*writer.imports(), "from dpverify import audit", *head, f"print(audit({call}))"]
    )


def call_code(function: Any, parameters: Mapping[str, Any], *, name: str) -> str:
    """A line that calls a function again and prints what it gives.

    Parameters
    ----------
    function, parameters : what is called
    name : of the function, where it can't be imported
    """
    writer = _Writer()
    try:
        given = ", ".join(f"{key}={writer.code(value)}" for key, value in parameters.items())
        call = f"print({writer.code(function)}({given}))"
    except _UnwritableError:
        return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in parameters.items())})"
    return "; ".join([*writer.imports(), call])


def names_own(target: Target) -> bool:
    """Whether the pairs are those that the mechanism names."""
    if not hasattr(target.mechanism, "worst_pairs"):
        return False
    own, pairs = target.mechanism.worst_pairs(), target.pairs
    return fingerprint(list(own)) == fingerprint(list(pairs))


def _literal(value: Any) -> str:
    match value:
        case int() if abs(value) >= 2**64:  # of many digits Python prints hexadecimal ones alone
            return hex(value)
        case float() if not np.isfinite(value):
            return f'float("{value}")'
    return repr(value)


def _told(value: Any) -> str:
    """Which value it is, in words that are the same in another process."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__} of {code.co_filename}, line {code.co_firstlineno},"
    text = shown(value)
    return f"a {type(value).__qualname__}" if " object at 0x" in text else text


class _UnwritableError(Exception):
    """No code makes this value."""


class _Writer:
    """Writes values as code, and notes what has to be imported for it."""

    def __init__(self) -> None:
        self._imports: set[str] = set()
        self._scripts: set[str] = set()

    def imports(self) -> list[str]:
        """Lines for all that was written so far."""
        return [*sorted(self._imports), *sorted(self._scripts)]

    def mechanism(self, mechanism: Any) -> list[str]:
        """The line that makes the mechanism, and what is to be said of it."""
        lines = self.assigned("mechanism", mechanism)
        if getattr(mechanism, "replayable", True) is False:
            lines.append("# It draws its own randomness: a second run gives other draws.")
        return lines

    def assigned(self, name: str, value: Any) -> list[str]:
        """The line that gives the value this name, or a comment that no code can."""
        try:
            return [f"{name} = {self.code(value)}"]
        except (_UnwritableError, RecursionError) as error:
            return [f"# {name}: as in the audit; {error}."]

    def code(self, value: Any) -> str:
        """An expression that makes the value again.

        Raises
        ------
        _UnwritableError
            If nothing does.
        """
        match value:
            case None | bool() | str() | bytes() | int() | float():
                return _literal(value)
            case np.generic():
                return self.code(value.item())
            case Fraction():
                return f"{self._from('fractions', 'Fraction')}({str(value)!r})"
            case list():
                return f"[{self._all(value)}]"
            case tuple() if hasattr(value, "_fields"):
                return f"{self.code(type(value))}({self._all(value)})"
            case tuple():
                return f"({self._all(value)}{',' if len(value) == 1 else ''})"
            case set() | frozenset():
                name = type(value).__name__
                return f"{name}([{self._all(sorted(value, key=repr))}])"
            case Mapping():
                entries = (f"{self.code(k)}: {self.code(v)}" for k, v in value.items())
                return f"{{{', '.join(entries)}}}"
            case np.ndarray():
                return self._array(value)
        if is_sparse(value):
            return f"{self._from('scipy.sparse', 'csr_array')}({self._array(value.toarray())})"
        return self._named(value) or self._made(value)

    def _all(self, values: Any) -> str:
        return ", ".join(map(self.code, values))

    def _array(self, values: Any) -> str:
        if values.dtype.kind not in "biuf":
            raise _UnwritableError(f"an array of {values.dtype} isn't written as code")
        self._imports.add("import numpy as np")
        if values.size <= _LISTED and np.all(np.isfinite(values)):
            return f"np.array({values.tolist()!r}, dtype={values.dtype.str!r})"
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes())).decode()
        self._imports |= {"import base64", "import zlib"}
        raw = f"zlib.decompress(base64.b64decode({packed!r}))"
        return f"np.frombuffer({raw}, {values.dtype.str!r}).reshape({values.shape}).copy()"

    def _from(self, module: str, name: str) -> str:
        self._imports.add(f"from {module} import {name}")
        return name

    def _named(self, value: Any) -> str | None:
        """The name under which a module holds it."""
        module = getattr(inspect.getmodule(value), "__name__", "__main__")
        qualified = getattr(value, "__qualname__", "")
        if not qualified:  # an instance: its function's module may hold it, or its class's
            makers = (getattr(value, "function", None), type(value))
            modules = [inspect.getmodule(maker) for maker in makers if maker is not None]
            for holder in modules:
                for name, held in vars(holder).items() if holder else ():
                    if held is value and holder and holder.__name__ != "__main__":
                        return self._from(holder.__name__, name)
            return None
        first, *rest = qualified.split(".")
        held = getattr(sys.modules.get(module), first, None)
        for part in rest:
            held = getattr(held, part, None)
        if held is not value:
            return None
        if module == "__main__":
            return self._of_script(first, qualified)
        if module == "builtins":
            return str(qualified)
        self._from(module, first)
        return str(qualified)

    def _of_script(self, first: str, qualified: str) -> str:
        """What ``__main__`` holds: its file gives it, without what is for ``__main__`` alone."""
        script = sys.modules["__main__"]
        file, spec = getattr(script, "__file__", None), getattr(script, "__spec__", None)
        if spec is not None:  # of python -m
            self._from(spec.name, first)
        elif file is None:
            self._scripts.add(f"# {first}: of the session that audited")
        else:
            run = self._from("runpy", "run_path")
            self._scripts.add(f"{first} = {run}({file!r})[{first!r}]")
        return qualified

    def _made(self, value: Any) -> str:
        """A data class, of attrs or of the standard library, by its fields; a partial function."""
        if isinstance(value, partial):
            named = (f"{key}={self.code(part)}" for key, part in value.keywords.items())
            given = [self.code(value.func), *map(self.code, value.args), *named]
            return f"{self._from('functools', 'partial')}({', '.join(given)})"
        if isinstance(value, type) or not (is_dataclass(value) or attrs.has(type(value))):
            raise _UnwritableError(f"{_told(value)} can't be imported")
        entries: Any = fields(value) if is_dataclass(value) else attrs.fields(type(value))
        parts = []
        for entry in entries:
            part = getattr(value, entry.name)
            usual = type(part) is type(entry.default) and part == entry.default
            if entry.init and not usual:
                parts.append(f"{getattr(entry, 'alias', entry.name)}={self.code(part)}")
        name = self._named(type(value))
        if name is None:
            raise _UnwritableError(f"{type(value).__qualname__} can't be imported")
        return f"{name}({', '.join(parts)})"
