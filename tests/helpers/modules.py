"""The modules of a package."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

__all__ = ["modules"]


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """All in it, but those that are each of a library which isn't installed here."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            yield import_module(found.name)
        except ModuleNotFoundError:
            if not found.name.startswith("dpverify_audits.libraries."):
                raise
