"""Docstrings: every public method has or inherits one, and what they name and list is there."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import FunctionType
from typing import Any

import attrs

import dpverify
import dpverify_audits
import dpverify_mechanisms
from tests.helpers.modules import modules
from tests.helpers.paths import ROOT

_TEXT = re.compile(r'"""(.*?)"""', re.DOTALL)
_QUOTED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")
_ELSEWHERE = {"bdtrc", "benchmarks", "dpv", "seed_seq_fe"}


def test_every_public_method_is_described() -> None:
    bare = [
        f"{module.__name__}.{name}.{method}"
        for package in (dpverify, dpverify_mechanisms, dpverify_audits)
        for module in modules(package)
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and not name.startswith("_")
        for method, value in vars(kind).items()
        if not method.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
        and not inspect.getdoc(getattr(kind, method))
    ]
    assert bare == []


class _Bare:
    def method(self) -> None: ...


def test_the_check_can_fail() -> None:
    assert inspect.getdoc(_Bare.method) is None


@cache
def _sources() -> dict[Path, str]:
    return {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for root in ("dpverify", "mechanisms", "audits")
        for path in sorted((ROOT / root).rglob("*.py"))
        if "papers" not in path.parts
    }


@cache
def _owners() -> dict[str, set[str]]:
    """The words of each module's and package's code by its name, and of all code by no name."""
    owners = {"": set(dir(builtins))}
    for path, source in _sources().items():
        parts = path.with_suffix("").parts
        code = re.sub("#.*", "", _TEXT.sub("", source))
        for owner in ("", *parts):
            owners.setdefault(owner, set()).update(re.findall(r"\w+", code), parts)
    return owners


def _is_there(quoted: str) -> bool:
    first, *rest = quoted.split(".")
    known = _owners()[""]
    in_first = _owners().get(first, known)
    return first in _ELSEWHERE or (first in known and all(word in in_first for word in rest))


def test_what_docstrings_name_is_there() -> None:
    gone = [
        f"{path}: {quoted}"
        for path, source in _sources().items()
        for text in _TEXT.findall(source)
        for quoted in _QUOTED.findall(text)
        if not _is_there(quoted)
    ]
    assert gone == []


def test_a_name_that_is_gone_is_noticed() -> None:
    assert _is_there("claim_test.judge")
    assert not _is_there("claim_test.judged")
    assert not _is_there("judging")


def strangers(described: Any, known: set[str]) -> set[str]:
    """Names that a docstring lists as parameters or attributes and that aren't among the known."""
    doc = inspect.cleandoc(described.__doc__ or "")
    sections = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n\S.*\n---|\Z)", doc, re.DOTALL | re.MULTILINE
    )
    lists = re.findall(r"^([*\w][*\w, ]*) :", "\n".join(sections), re.MULTILINE)
    return {name.strip("* ") for names in lists for name in names.split(",")} - known


def listed(owner: str, members: dict[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """What functions and classes of data list wrongly, with what they are themselves."""
    for name, value in members.items():
        where, plain = f"{owner}.{name}", getattr(value, "__func__", value)
        if getattr(plain, "__module__", None) != owner.partition(":")[0]:
            continue
        if isinstance(plain, FunctionType):
            yield where, strangers(plain, set(inspect.signature(plain).parameters))
        elif inspect.isclass(plain):
            if dataclasses.is_dataclass(plain) or attrs.has(plain):
                kinds = plain.__mro__
                known = {name for kind in kinds for name in {**vars(kind), **get_annotations(kind)}}
                yield where, strangers(plain, known | set(inspect.signature(plain).parameters))
            yield from listed(f"{owner}:{name}", dict(vars(plain)))


def test_what_a_docstring_lists_is_there() -> None:
    wrong = {
        where: names
        for package in (dpverify, dpverify_mechanisms, dpverify_audits)
        for module in modules(package)
        for where, names in listed(module.__name__, dict(vars(module)))
        if names
    }
    assert wrong == {}


@dataclasses.dataclass
class _Renamed:
    """Data of which a name was changed.

    Attributes
    ----------
    now : there
    before : not any more
    """

    now: int

    def method(self, now: int) -> None:
        """Do nothing.

        Parameters
        ----------
        before, now : one of which is there
            now or then : no names
        """


def test_a_name_that_is_gone_is_found() -> None:
    renamed = listed(__name__, {"_Renamed": _Renamed})
    assert {where: names for where, names in renamed if names} == {
        f"{__name__}._Renamed": {"before"},
        f"{__name__}:_Renamed.method": {"before"},
    }
