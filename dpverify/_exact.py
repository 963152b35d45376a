"""Exact numbers in documents, each by its one canonical text."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from dpverify.enclosure import exact_string

__all__ = ["EXACT", "Exact"]

EXACT = r"^-?[0-9]{1,1000}(\.[0-9]{1,1000})?(/[0-9]{1,1000})?$"


def _read(value: object) -> Fraction:
    """An exact number, or its canonical text; any other text is refused, however long it is."""
    text = exact_string(value) if isinstance(value, Fraction) else value
    if not isinstance(text, str) or not re.fullmatch(EXACT, text):
        raise ValueError("must be an exact number of at most 1000 digits")
    try:
        number = Fraction(text)
    except ZeroDivisionError:
        number = None
    if number is None or exact_string(number) != text:
        raise ValueError("must be an exact number in canonical form, as certify writes it")
    return number


Exact = Annotated[
    Fraction,
    BeforeValidator(_read),
    PlainSerializer(exact_string, return_type=str),
    WithJsonSchema({"pattern": EXACT, "type": "string"}),
]
"""A fraction that is read from, and written as, its one text."""
