"""Docstrings: every public method has or inherits one, and what they name is there."""

from __future__ import annotations

import builtins
import inspect
import re
from functools import cache
from pathlib import Path

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
