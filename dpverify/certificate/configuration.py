"""The configuration of a certified release: what TOML may say, and nothing else.

Numbers with a point are read as exact decimals: 0.1 is one tenth. Any may be text, as "1/3".
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from dpverify._refusals import refusals
from dpverify._registry import ADJACENCIES, DOMAINS, Kinds
from dpverify.data.adjacency import Adjacency
from dpverify.data.declared import cell, declared, is_dropped
from dpverify.data.domain import Domain
from dpverify.data.frame import Spelling
from dpverify.enclosure import exact_string, rational
from dpverify.errors import (
    ConfigurationError,
    DPVerifyError,
    ParameterError,
    did_you_mean,
    place,
    require,
)
from dpverify.numbers import whole
from dpverify.paths import to_path
from dpverify.toml import read_toml
from dpverify.visible import hidden

__all__ = [
    "CELL",
    "MAX_SEED",
    "UNDECIDED",
    "AboutField",
    "AdjacencySettings",
    "AuditSettings",
    "Configuration",
    "DataSettings",
    "DomainSettings",
    "Line",
    "MechanismSettings",
    "OwnerSettings",
    "PrivacySettings",
    "ProjectionSettings",
    "PurposeSettings",
    "described",
    "load_configuration",
    "one_line",
]

MAX_SEED = 2**53 - 1
"""Seeds are JSON integers, which are exact up to here."""

CELL = "cell"
"""The kind of adjacency that protects one column of one record, whatever it changes to."""

UNDECIDED = "DECIDE"
"""Stands in a configuration for a value that its owner has yet to choose."""


def _read(read: Callable[[str, Any], Any], value: Any) -> Any:
    try:
        return read("it", value)
    except ParameterError as error:
        raise ValueError(f"must be {error.rule}") from None


def one_line(text: str) -> str:
    """The text with single spaces; hidden characters are refused, and a text without any other."""
    line = " ".join(text.split())
    if not line:
        raise ValueError("is empty: write something, or leave it out")
    if character := hidden(line):
        raise ValueError(f"holds the hidden character {character}: leave it out")
    return line


def _codec(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError(
            "is not an encoding that Python knows, such as utf-8, cp1252 or latin-1"
        ) from None
    return name


Number = Annotated[Fraction, BeforeValidator(partial(_read, rational))]
Whole = Annotated[int, BeforeValidator(partial(_read, whole))]
Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
Line = Annotated[str, Field(max_length=200), AfterValidator(one_line)]
AboutField = Literal["title", "organisation", "data_set", "purpose", "period", "contact"]
"""What the owner may say of a release in their own words, in the order in which it is shown."""


_UNIT = ("box", {"low": Fraction(0), "high": Fraction(1)})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Kind(BaseModel):
    """A kind by name, with its numbers beside it; which ones belong to it `Kinds` knows."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    __pydantic_extra__: dict[str, Number]

    def numbers(self) -> dict[str, Fraction]:
        """The numbers, exact."""
        return dict(self.model_extra or {})


class DomainSettings(_Kind):
    """Declared domain of the records."""

    kind: str = "box"


class AdjacencySettings(_Kind):
    """Whom the release protects."""


class DataSettings(_Section):
    """Where the records are, and the domain they are declared to keep to.

    `ranges` has the least and the largest value of every column, in order, which are brought to 0
    and 1 before anything else; the domain and the adjacency are then of the scaled records. Where
    there are `columns`, by name, each says itself what it may hold and how it becomes attributes.
    """

    source: str | None = None
    path: str | None = None
    table: str = ""
    encoding: Annotated[str, AfterValidator(_codec)] = "utf-8"
    separator: Annotated[str, Field(max_length=1)] = ""
    decimal: Annotated[str, Field(min_length=1, max_length=1)] = "."
    thousands: Annotated[str, Field(max_length=1)] = ""
    dates: str = ""
    missing: list[str] = [""]
    domain: DomainSettings | None = None
    outside: Literal["refuse", "clip"] | None = None
    ranges: list[tuple[Number, Number]] = Field(default_factory=list)
    columns: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_origin(self) -> DataSettings:
        if self.source is not None and self.path is not None:
            raise ValueError("needs either source or path, and not both")
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}")
        if self.columns:
            if self.domain is not None or self.ranges or self.source is not None:
                raise ValueError(
                    "data.columns already declares the values: leave out domain, ranges and source"
                )
            return self
        if self.domain is None:
            raise ValueError("needs a domain, or columns by name")
        for column, (low, high) in enumerate(self.ranges, start=1):
            if not low < high:
                ends = f"{exact_string(low)} must be below {exact_string(high)}"
                raise ValueError(f"ranges: of column {column}, {ends}")
        if self.ranges and (self.domain.kind, self.domain.numbers()) != _UNIT:
            raise ValueError(
                "ranges bring every column to [0, 1], and need domain = { low = 0, high = 1 }"
            )
        return self

    def spelling(self) -> Spelling:
        """How a file of texts writes what it holds."""
        return Spelling(
            encoding=self.encoding,
            separator=self.separator,
            decimal=self.decimal,
            thousands=self.thousands,
            date=self.dates,
            missing=tuple(self.missing),
        )

    def released(self) -> list[Any]:
        """The declared columns, each checked, but for those that are dropped."""
        return declared(self.columns) if self.columns else []

    def dropped(self) -> list[str]:
        """Names of the columns that are left out."""
        return [name for name, column in self.columns.items() if is_dropped(column)]


class PrivacySettings(_Section):
    """The target."""

    epsilon: Annotated[Number, Field(gt=0)]
    delta: Annotated[Number, Field(ge=0, lt=1)]
    adjacency: AdjacencySettings


class ProjectionSettings(_Section):
    """Public randomness."""

    seed: Seed = 0


class AuditSettings(_Section):
    """How hard the release is attacked before it is signed."""

    alpha: Annotated[Number, Field(gt=0, lt=1)] = Fraction(1, 100)
    draws: Annotated[Whole, Field(ge=100, le=10**9)] = 100_000
    moment_draws: Annotated[Whole, Field(ge=50, le=10**9)] | None = None
    seed: Seed = 0


class MechanismSettings(BaseModel):
    """Name of the mechanism, and its own parameters beside it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    def parameters(self) -> dict[str, Any]:
        """What the mechanism itself takes."""
        return dict(self.model_extra or {})


class PurposeSettings(_Section):
    """What the release is for: the range of what its first estimator will estimate.

    Squared distances of records for linear sketches, similarities of sets, cuts of graphs; of the
    records as the mechanism reads them.
    """

    low: Number
    high: Number

    @model_validator(mode="after")
    def _in_order(self) -> PurposeSettings:
        if not self.low < self.high:
            raise ValueError(
                f"low = {exact_string(self.low)} must be below high = {exact_string(self.high)}"
            )
        return self


class OwnerSettings(_Section):
    """What the owner says of a hazard of the checklist."""

    answer: Literal["pass", "fail", "not_applicable"]
    reason: Annotated[str, Field(max_length=2000), AfterValidator(one_line)]


class Configuration(_Section):
    """A whole configuration file."""

    data: DataSettings
    mechanism: MechanismSettings
    privacy: PrivacySettings
    projection: ProjectionSettings = ProjectionSettings()
    audit: AuditSettings = AuditSettings()
    about: dict[AboutField, Line] = Field(default_factory=dict)
    purpose: PurposeSettings | None = None
    owner: dict[str, OwnerSettings] = Field(default_factory=dict)

    def domain(self) -> Domain:
        """The declared domain."""
        outside = {} if self.data.outside is None else {"outside": self.data.outside}
        declared = self.data.domain
        kind, numbers = (declared.kind, declared.numbers()) if declared else _UNIT
        return DOMAINS.make(kind, numbers, **outside)

    def adjacency(self) -> Adjacency:
        """Whom the release protects."""
        if self.privacy.adjacency.kind == CELL:
            if not self.data.columns or self.privacy.adjacency.numbers():
                raise ConfigurationError(
                    f'privacy.adjacency "{CELL}" is one column of one record, for data.columns, '
                    "and has no number."
                )
            return cell(self.data.released())
        known = [CELL, *ADJACENCIES.classes]
        if self.privacy.adjacency.kind not in known:
            raise ConfigurationError(
                f"adjacency.kind={self.privacy.adjacency.kind} is unknown. "
                f"{did_you_mean(self.privacy.adjacency.kind, known)}"
            )
        return ADJACENCIES.make(self.privacy.adjacency.kind, self.privacy.adjacency.numbers())


def load_configuration(source: Path | str | Mapping[str, Any]) -> Configuration:
    """Read and check a configuration.

    Parameters
    ----------
    source : a TOML file, or its tables as dictionaries, whose numbers may be of any kind

    Raises
    ------
    ConfigurationError
        One line that names the file, the key, what is wrong, and the key probably meant.
    """
    if isinstance(source, Mapping):
        path, content = Path("configuration"), dict(source)
    else:
        path = to_path("configuration", source)
        content = read_toml(path, parse_float=Decimal)
    undecided = list(_undecided(content))
    if undecided:
        raise ConfigurationError(
            f"{path}: still to be decided: {', '.join(undecided)}. "
            f'Replace each "{UNDECIDED}" by your decision; the comments beside it say which.'
        )
    try:
        configuration = Configuration.model_validate(content)
        configuration.data.released()
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_first_problem(error)}") from None
    except DPVerifyError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return configuration


def described(
    *,
    mechanism: str,
    epsilon: Any,
    delta: Any = 0,
    adjacency: Any,
    columns: Mapping[str, Any] | None = None,
    domain: Any = None,
    outside: str | None = None,
    seed: int = 0,
    **others: Any,
) -> dict[str, Any]:
    """The tables of a configuration from keywords, for data that are given with it.

    Parameters
    ----------
    mechanism : its name
    epsilon, delta : the target
    adjacency : whom the release protects: an `Adjacency`, or the name of a kind without numbers:
        "cell" for one column of one record, "record" for all of it
    columns : by name, as `dpv.Integers(0, 120)`, or settings as in the table ``[data.columns]``
    domain : of data that are numbers alone, in place of `columns`
    outside : "refuse" or "clip", for what lies outside
    seed : of the public randomness
    others : the mechanism's own parameters; `about`, `purpose`, `audit` and `owner` as in a
        configuration
    """
    require(
        columns is None or isinstance(columns, Mapping),
        "columns",
        columns,
        "a dictionary by name, such as {'age': dpv.Integers(0, 120)}",
    )
    named = {str(name): column for name, column in (columns or {}).items()}  # as of a frame
    data: dict[str, Any] = {"columns": named}
    if domain is not None:
        data["domain"] = _as_kind(DOMAINS, domain)
        outside = outside or getattr(domain, "outside", None)
    if outside is not None:
        data["outside"] = outside
    known = ("about", "purpose", "audit", "owner")
    tables = {name: others.pop(name) for name in known if name in others}
    return tables | {
        "data": data,
        "mechanism": {"name": mechanism, **others},
        "privacy": {
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": _as_kind(ADJACENCIES, adjacency),
        },
        "projection": {"seed": seed},
    }


def _as_kind(kinds: Kinds[Any], given: Any) -> Mapping[str, Any]:
    """What is given as a configuration has it: a kind by its name, with its numbers."""
    match given:
        case str():
            return {"kind": given}
        case Mapping():
            return given
    kind, numbers = kinds.describe(given)
    return {"kind": kind, **numbers}


def _undecided(value: Any, where: str = "") -> Iterator[str]:
    """Names of the keys that hold the placeholder."""
    match value:
        case dict():
            for key, part in value.items():
                yield from _undecided(part, f"{where}.{key}" if where else key)
        case list():
            for part in value:
                yield from _undecided(part, where)
        case str() if value == UNDECIDED:
            yield where


def _first_problem(error: ValidationError) -> str:
    refused = refusals(error)
    first = next((each for each in refused if each.kind == "extra_forbidden"), refused[0])
    if first.kind == "extra_forbidden":  # what is missing then may be misspelt
        return f"unknown key {first.where}. {_suggestion(first.location)}"
    if first.location[-1:] == ("[key]",):
        return f"unknown key {place(first.location[:-1])}: it {first.rule}."
    return f"{first}."


def _suggestion(location: tuple[int | str, ...]) -> str:
    fields = Configuration.model_fields
    for part in location[:-1]:
        annotation = fields[str(part)].annotation if str(part) in fields else OwnerSettings
        fields = getattr(annotation, "model_fields", OwnerSettings.model_fields)
    return did_you_mean(str(location[-1]), fields)
