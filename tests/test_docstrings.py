"""Every public class and method is described: by its own docstring, or by the one it inherits."""

from __future__ import annotations

import inspect

import dpverify
import dpverify_audits
import dpverify_mechanisms
from tests.helpers.modules import modules


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
