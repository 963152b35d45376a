"""Declared columns of a table: what each may hold, and how many attributes it becomes.

A column is declared, never read off the data, and stands in the certificate as it was declared. Its
values become attributes of a record by `encoding`, so that for every column

    two values that it may have, or be missing, are at most 1 apart in l1 distance,

which is what makes one cell of the table (one column of one record) a unit of privacy: whatever it
changes to, the record moves by at most 1 in l1 distance, whether the column is one attribute or a
hundred. (At full height, a category that changes would move two attributes by 1 each, which
protection of one attribute doesn't cover.)

=====================  ===================================================================
column                 attributes
=====================  ===================================================================
real, whole, date      one, (x − low)/(high − low): 0 to 1
boolean                one: 0 or 1
category               one each, ½ for the category that it is and 0 for the others
text                   one for each word or bucket: its share of the first `most` tokens, halved
missing = "indicator"  one more: ½ where the value is missing. One of numbers is ½ there too, so
                       that it is at most ½ from any other; a category and a text are all 0
=====================  ===================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from dpverify._exact import Exact
from dpverify._refusals import refusals
from dpverify.data.adjacency import Attribute, L1Ball
from dpverify.data.columns import Booleans, Categories, Column, Dates, Integers, Reals
from dpverify.data.domain import LARGEST, PROBES, uniform
from dpverify.enclosure import exact_string, rational
from dpverify.errors import ConfigurationError, ParameterError, did_you_mean, place
from dpverify.sampling.words import Words
from dpverify.visible import hidden

__all__ = [
    "MOST_ATTRIBUTES",
    "TEXT_STEPS",
    "TYPES",
    "BooleanColumn",
    "CategoryColumn",
    "DateColumn",
    "DeclaredColumn",
    "NumberColumn",
    "Stand",
    "TextColumn",
    "cell",
    "declared",
    "is_dropped",
    "synthetic_rows",
]

MOST_ATTRIBUTES = 4096
"""Categories, words or buckets of one column."""

TEXT_STEPS = 2**20
"""Shares of tokens are whole numbers of this part, so that their sum is exact."""


def _plain(text: str) -> str:
    if character := hidden(text):
        raise ValueError(f"holds the hidden character {character}: leave it out")
    return text


def _iso(text: str) -> str:
    try:
        written = date.fromisoformat(text).isoformat()
    except ValueError:
        written = ""
    if written != text:
        raise ValueError('must be a date as "2020-01-31"')
    return text


_Text = Annotated[str, Field(max_length=200), AfterValidator(_plain)]
_Day = Annotated[str, AfterValidator(_iso)]
_Several = Annotated[list[_Text], Field(min_length=2, max_length=MOST_ATTRIBUTES)]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_serialization_defaults_required=True,  # a certificate has every key
    )


class Stand(_Part):
    """A declared value that stands where one is missing, as text."""

    value: _Text


class _Declared(_Part):
    """What all columns have: a name, the unit of its values, and what is done with missing ones."""

    name: _Text
    unit: _Text = ""
    missing: Literal["refuse", "indicator"] | Stand = "refuse"

    @property
    def attributes(self) -> list[str]:
        """Names of its attributes, in order."""
        return [*self._values(), *([f"{self.name} missing"] if self.indicated else [])]

    @property
    def indicated(self) -> bool:
        """Whether its last attribute says that a value is missing."""
        return self.missing == "indicator"

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        raise NotImplementedError

    def _values(self) -> list[str]:
        return [self.name]

    def drawn(self, rng: Words) -> NDArray[np.float64]:
        """Attributes of any value, all alike: for audits' inputs."""
        attributes = np.zeros(len(self.attributes))
        attributes[0] = uniform(1, rng)[0]
        return attributes

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        match self.missing:
            case "refuse":
                missing = ""
            case "indicator":
                missing = ", or missing"
            case Stand(value=value):
                missing = f", {value or 'empty'} where it is missing"
        return f"{self.name}: {self.allowed}{unit}{missing}"


class NumberColumn(_Declared):
    """Numbers from `low` to `high`, both included."""

    type: Literal["real", "whole"]
    low: Exact
    high: Exact

    @model_validator(mode="after")
    def _in_order(self) -> NumberColumn:
        low, high = map(exact_string, (self.low, self.high))
        if self.type == "whole" and not self.low.denominator == self.high.denominator == 1:
            raise ValueError(f"low = {low} and high = {high} must be whole numbers numbers")
        if not -LARGEST <= self.low < self.high <= LARGEST or not self.ends[0] < self.ends[1]:
            raise ValueError(f"low = {low} must be below high = {high}, between ±2**100")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The doubles that count."""
        return float(self.low), float(self.high)

    @property
    def allowed(self) -> str:
        kind = "whole numbers" if self.type == "whole" else "numbers"
        return f"{kind} from {exact_string(self.low)} to {exact_string(self.high)}"


class DateColumn(_Declared):
    """Days from `first` to `last`, both included."""

    type: Literal["date"]
    first: _Day
    last: _Day

    @model_validator(mode="after")
    def _in_order(self) -> DateColumn:
        if not self.first < self.last:
            raise ValueError(f"first = {self.first} must be before last = {self.last}")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """Days since 1970."""
        epoch = date(1970, 1, 1)
        first, last = (date.fromisoformat(day) - epoch for day in (self.first, self.last))
        return float(first.days), float(last.days)

    @property
    def allowed(self) -> str:
        return f"dates from {self.first} to {self.last}"


class BooleanColumn(_Declared):
    """True or false."""

    type: Literal["boolean"]

    @property
    def ends(self) -> tuple[float, float]:
        """False and true."""
        return 0.0, 1.0

    @property
    def allowed(self) -> str:
        return "true or false"

    def drawn(self, rng: Words) -> NDArray[np.float64]:
        return np.round(super().drawn(rng))


class CategoryColumn(_Declared):
    """One of these texts; which there are is public."""

    type: Literal["category"]
    categories: _Several

    @model_validator(mode="after")
    def _different(self) -> CategoryColumn:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("categories must be all different")
        return self

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(self.categories)}"

    def drawn(self, rng: Words) -> NDArray[np.float64]:
        attributes = np.zeros(len(self.attributes))
        attributes[int(uniform(1, rng)[0] * len(self.categories))] = 0.5
        return attributes

    def _values(self) -> list[str]:
        return [f"{self.name} = {category}" for category in self.categories]


class TextColumn(_Declared):
    """Text, as a bag of tokens: declared words, or buckets that a public hash puts tokens into.

    Attributes
    ----------
    words : tokens that count, in lower case; None for buckets
    buckets : their number; None for words
    ngrams : characters of a token; None for words
    most : tokens that count of one text, the first ones
    """

    type: Literal["text"]
    words: _Several | None = None
    buckets: Annotated[int, Field(ge=2, le=MOST_ATTRIBUTES)] | None = None
    ngrams: Annotated[int, Field(ge=1, le=20)] | None = None
    most: Annotated[int, Field(ge=1, le=2**16)] = 100

    @model_validator(mode="after")
    def _one_way(self) -> TextColumn:
        if (self.words is None) == (self.buckets is None):
            raise ValueError("needs either words or buckets, and not both")
        if self.words is not None and self.words != sorted({word.lower() for word in self.words}):
            raise ValueError("words must be all different, in lower case and in order")
        if self.words is not None and self.ngrams is not None:
            raise ValueError("ngrams need buckets, and not words")
        return self

    @property
    def allowed(self) -> str:
        tokens = "words" if self.ngrams is None else f"pieces of {self.ngrams} characters"
        where = f"{self.buckets} buckets" if self.words is None else f"{len(self.words)} known ones"
        return f"text, its first {self.most} {tokens}, {where}"

    def drawn(self, rng: Words) -> NDArray[np.float64]:
        width = len(self._values())
        tokens = 1 + int(uniform(1, rng)[0] * self.most)
        places = (uniform(tokens, rng) * width).astype(np.intp)
        counts = np.bincount(places, minlength=len(self.attributes))
        return np.asarray(counts * (TEXT_STEPS // 2) // self.most / TEXT_STEPS)

    def _values(self) -> list[str]:
        if self.words is not None:
            return [f"{self.name}: {word}" for word in self.words]
        return [f"{self.name} {number}" for number in range(self.buckets or 0)]


DeclaredColumn = Annotated[
    NumberColumn | DateColumn | BooleanColumn | CategoryColumn | TextColumn,
    Field(discriminator="type"),
]
TYPES = ("real", "whole", "category", "date", "boolean", "text")
_READ: TypeAdapter[Any] = TypeAdapter(DeclaredColumn)


def is_dropped(column: Any) -> bool:
    """Whether a column is declared to be left out."""
    return isinstance(column, Mapping) and dict(column) == {"drop": True}


def declared(columns: Mapping[str, Any]) -> list[Any]:
    """The columns that are released, each checked, in the order in which they are declared.

    Parameters
    ----------
    columns : by name a `Column` of Python, or its settings as a configuration has them: its type,
        what belongs to it, and ``drop = true`` for one that is left out

    Raises
    ------
    ConfigurationError
        Naming the column and what is wrong.
    """
    made = [_declared(name, given) for name, given in columns.items() if not is_dropped(given)]
    if not made:
        raise ConfigurationError("data.columns leaves no column to release.")
    names = [attribute for column in made for attribute in column.attributes]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ConfigurationError(f"data.columns has two attributes {twice[0]!r}. Rename one.")
    return made


def cell(columns: Sequence[Any]) -> Attribute | L1Ball:
    """The adjacency of records that covers any change of one column of one row of the table.

    The column moves the record by at most 1 in l1 distance, and where every column is one
    attribute, that attribute alone.
    """
    single = all(len(column.attributes) == 1 for column in columns)
    return Attribute(1) if single else L1Ball(1)


def synthetic_rows(
    columns: Sequence[Any], rng: Words
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Pairs of records, each of shape (1, attributes), from almost equal to independent.

    Every value of a column is as likely, and none is missing; a text has any number of tokens.
    """
    for number in range(1, PROBES + 1):
        record, fresh = ([column.drawn(rng) for column in columns] for _ in range(2))
        changed = len(columns) * number // PROBES
        yield np.hstack(record)[None], np.hstack([*fresh[:changed], *record[changed:]])[None]


def _declared(name: str, given: Any) -> Any:
    where = "data.columns." + (name or '""')
    settings = _settings(given) if isinstance(given, Column) else given
    if not isinstance(settings, Mapping):
        raise ConfigurationError(
            f"{where} must be the settings of a column, as in "
            '{ type = "whole", low = 0, high = 120 }, or { drop = true }.'
        )
    kind = settings.get("type")
    if kind not in TYPES:
        said = " is missing" if kind is None else f"={kind} is unknown"
        raise ConfigurationError(f"{where}.type{said}. {did_you_mean(str(kind), TYPES)}")
    try:
        return _READ.validate_python(
            {"name": name, **{k: _exact(k, x) for k, x in settings.items()}}
        )
    except ParameterError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    except ValidationError as error:
        refused = refusals(error)[0]
        at = place([part for part in refused.location if part != kind])
        if "missing" in refused.location:
            said = '.missing must be "refuse", "indicator" or { value = ... }'
        elif refused.kind == "extra_forbidden":
            known = [field for field in _fields(str(kind)) if field != "name"]
            hint = did_you_mean(at, known).rstrip(".?")
            said = f".{at} isn't for a column of type {kind}. {hint}"
        else:
            said = refused.at(f".{at}" if at else "")
        raise ConfigurationError(f"{where}{said}.") from None


def _fields(kind: str) -> Sequence[str]:
    models = (NumberColumn, DateColumn, BooleanColumn, CategoryColumn, TextColumn)
    return next(
        list(model.model_fields)
        for model in models
        if kind in model.model_fields["type"].annotation.__args__  # type: ignore[union-attr]
    )


def _exact(key: str, value: Any) -> Any:
    """What is written as a number, as the certificate has it; `missing` and categories as text."""
    match key, value:
        case (("low" | "high"), _):
            return exact_string(rational(key, value))
        case (("first" | "last"), date()):
            return value.isoformat()
        case "missing", Mapping():
            return {name: _word(part) for name, part in value.items()}
        case "categories", list() | tuple():
            return [_word(part) for part in value]
        case "words", list() | tuple():
            return sorted({str(word).lower() for word in value})
    return value


def _word(value: Any) -> Any:
    """A number, a date or a truth value as the text that it is in a file."""
    match value:
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case int() | float() | Decimal() | Fraction():
            return exact_string(rational("value", value))
    return value if isinstance(value, str) else str(value)


def _settings(column: Column) -> Mapping[str, Any]:
    """Those of a column of a `Table`; where its values may be missing, an attribute says so."""
    missing = {"missing": "indicator" if column.missing else "refuse"}
    match column:
        case Integers(low=low, high=high):
            return {"type": "whole", "low": low, "high": high, **missing}
        case Reals(low=low, high=high):
            return {"type": "real", "low": low, "high": high, **missing}
        case Dates(first=first, last=last):
            return {"type": "date", "first": first, "last": last, **missing}
        case Booleans():
            return {"type": "boolean", **missing}
        case Categories(values=values):
            return {"type": "category", "categories": list(values), **missing}
    raise ConfigurationError(
        f"{column} doesn't say how it becomes attributes. Give its settings, as in "
        '{"type": "text", "buckets": 64}.'
    )
