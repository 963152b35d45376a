"""Every public class and method is described: by its own docstring, or by the one it inherits."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import dpverify
import dpverify_audits
import dpverify_mechanisms


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            yield import_module(found.name)
        except ModuleNotFoundError:
            # Of one library each, whose environment this isn't: they define entries alone.
            assert found.name.startswith("dpverify_audits.libraries."), found.name


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
