"""The fields of frozen data, whether attrs made its class or the standard library."""

from __future__ import annotations

import dataclasses
from typing import Any

import attrs

__all__ = ["changed", "field_values", "state_of"]


def field_values(value: Any) -> dict[str, Any]:
    """What its constructor took, by name; nothing of what isn't such data."""
    entries: Any = ()
    if attrs.has(type(value)):
        entries = attrs.fields(type(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = dataclasses.fields(value)
    return {
        getattr(entry, "alias", entry.name): getattr(value, entry.name)
        for entry in entries
        if entry.init
    }


def state_of(value: Any) -> dict[str, Any]:
    """Its fields by name, else what it holds as attributes and in slots."""
    slots = (vars(kind).get("__slots__", ()) for kind in type(value).__mro__)
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return field_values(value) or getattr(value, "__dict__", {}) | held


def changed(value: Any, **fields: Any) -> Any:
    """The same data with other values of these fields."""
    replace: Any = attrs.evolve if attrs.has(type(value)) else dataclasses.replace
    return replace(value, **fields)
