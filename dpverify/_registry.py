"""Adjacencies and domains by name: how configurations and certificates write them down.

Each is frozen data of exact numbers. A `Kinds` turns a kind's name and its numbers into the
object and back, so that neither the configuration nor the certificate mirrors the constructors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from attrs import NOTHING, fields
from attrs import Attribute as Field

from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Edge,
    Items,
    L1Ball,
    Record,
    Row,
)
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.errors import ConfigurationError, did_you_mean

__all__ = ["ADJACENCIES", "DOMAINS", "Kinds"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Kinds(Generic[_T]):
    """Classes by the name of their kind.

    Parameters
    ----------
    what : what they are, for error messages
    classes : attrs classes whose numeric fields are annotated Fraction, int or int | None
    """

    what: str
    classes: Mapping[str, type[Any]]

    def make(self, kind: str, numbers: Mapping[str, Fraction], **options: str) -> _T:
        """The object of a kind with these numbers; options that its class lacks are refused.

        Raises
        ------
        ConfigurationError
            If the kind is unknown, or a number or option is missing or doesn't belong to it.
        """
        if kind not in self.classes:
            raise ConfigurationError(
                f"{self.what}.kind={kind} is unknown. {did_you_mean(kind, self.classes)}"
            )
        known = {field.name: field for field in fields(self.classes[kind])}
        numeric = {name for name, field in known.items() if _is_number(field)}
        needed = {name for name in numeric if known[name].default is NOTHING}
        if not needed <= numbers.keys() <= numeric:
            wants = " and ".join(sorted(needed)) or "no number"
            given = ", ".join(sorted(numbers)) or "none"
            more = sorted(numeric - needed)
            also = f" ({', '.join(more)} may be given)" if more else ""
            raise ConfigurationError(
                f'{self.what} of kind "{kind}" needs {wants}{also}; given: {given}.'
            )
        for name, value in options.items():
            if name not in known:
                raise ConfigurationError(
                    f'{name}="{value}" is not for {self.what} of kind "{kind}": leave it out.'
                )
        made: _T = self.classes[kind](**numbers, **options)
        return made

    def kind(self, made: object) -> str:
        """The name of its kind, or of its class where it is of none of them."""
        names = (name for name, known in self.classes.items() if type(made) is known)
        return next(names, type(made).__name__)

    def describe(self, made: _T) -> tuple[str, dict[str, Fraction]]:
        """Kind and numbers that `make` would take."""
        kind = self.kind(made)
        values = {f.name: getattr(made, f.name) for f in fields(self.classes[kind])}
        numeric = {f.name for f in fields(self.classes[kind]) if _is_number(f)}
        return kind, {
            name: Fraction(value)
            for name, value in values.items()
            if name in numeric and value is not None
        }


def _is_number(field: Field[Any]) -> bool:
    kind: Any = field.type  # as it is written
    return kind in ("Fraction", "int", "int | None")


ADJACENCIES: Kinds[Adjacency] = Kinds(
    "adjacency",
    {
        "attribute": Attribute,
        "bit-flip": BitFlip,
        "l1-ball": L1Ball,
        "record": Record,
        "items": Items,
        "edge": Edge,
        "row": Row,
    },
)
DOMAINS: Kinds[Domain] = Kinds("domain", {"box": Box, "ball": Ball, "sets": Sets, "graph": Graphs})
