"""Pydantic's errors in our own words: the place, the value and the rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pydantic import ValidationError

from dpverify.errors import place

__all__ = ["Refusal", "refusals"]

_RULES = {
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "extra_forbidden": "is unknown",
    "float_type": "must be a number",
    "frozen_set_type": "must be a list",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "int_type": "must be a whole number",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_attributes_type": "must be a table",
    "model_type": "must be a table",
    "none_required": "must be left out",
    "string_pattern_mismatch": "must be of the form {pattern}",
    "string_too_long": "must have {max_length} characters at most",
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "string_unicode": "must be text",
    "too_long": "must have {max_length} entries at most, not {actual_length}",
    "too_short": "must have {min_length} entries or more, not {actual_length}",
    "tuple_type": "must be a list",
    "union_tag_invalid": "must be of one of the types {expected_tags}",
    "union_tag_not_found": "must say its type",
    "value_error": "{error}",
}
_SHOWN = 60  # characters of a value
_PREDICATE = re.compile(r"(must|has|have|holds|is|isn't|needs)\b")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One of the values that aren't what they have to be.

    Attributes
    ----------
    location : keys and numbers that lead to it, from the outside
    kind : pydantic's name of what is wrong
    rule : what it must be, without a full stop
    value : what stands there, where that is short
    """

    location: tuple[str | int, ...]
    kind: str
    rule: str
    value: str

    @property
    def where(self) -> str:
        """The place in a document, as in code."""
        return place(self.location)

    def __str__(self) -> str:
        return self.at(self.where or "the file")

    def at(self, where: str) -> str:
        """The refusal, with these words for the place."""
        joint = " " if _PREDICATE.match(self.rule) else ": "
        return f"{where}{self.value}{joint}{self.rule}"


def refusals(error: ValidationError) -> list[Refusal]:
    """All that an error says, in its order."""
    return [
        Refusal(
            location=problem["loc"],
            kind=problem["type"],
            rule=_rule(problem["type"], problem.get("ctx", {})),
            value=""
            if problem["type"] in ("missing", "extra_forbidden")
            else _value(problem["input"]),
        )
        for problem in error.errors()
    ]


def _rule(kind: str, context: dict[str, object]) -> str:
    # What no model asks for today is refused without a reason rather than in another's words.
    return _RULES.get(kind, "must be of another kind").format(**context).rstrip(".")


def _value(given: object) -> str:
    text = str(given) if isinstance(given, str | int | float | Decimal) else ""
    if not text.strip():
        return ""
    return f"={text}" if len(text) <= _SHOWN else f"={text[:_SHOWN]}…"
