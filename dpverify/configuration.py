"""The configuration of a certified release: what TOML may say, and nothing else.

Numbers with a point are read as exact decimals: 0.1 is one tenth.
"""

from __future__ import annotations

import difflib
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball
from dpverify.enclosure import rational
from dpverify.errors import ConfigurationError, DPVerifyError
from dpverify.grid import Domain

__all__ = [
    "AdjacencySettings",
    "AuditSettings",
    "Configuration",
    "DataSettings",
    "DomainSettings",
    "MechanismSettings",
    "PrivacySettings",
    "ProjectionSettings",
    "load_configuration",
]

MAX_SEED = 2**53 - 1
"""Seeds are JSON integers, which are exact up to here."""


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be a finite number")
    return Decimal(value)


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


Number = Annotated[Decimal, BeforeValidator(_number)]
Whole = Annotated[int, BeforeValidator(_whole)]
Seed = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MAX_SEED)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSettings(_Section):
    """Where the records are, and the range they are declared to keep to."""

    source: str | None = None
    path: str | None = None
    domain: DomainSettings
    outside: Literal["refuse", "clip"] = "refuse"

    @model_validator(mode="after")
    def _one_origin(self) -> DataSettings:
        if (self.source is None) == (self.path is None):
            raise ValueError("needs either source or path, and not both")
        return self


class DomainSettings(_Section):
    """Declared range of every attribute."""

    low: Number
    high: Number


class AdjacencySettings(_Section):
    """Whom the release protects; `beta` or `radius` by kind."""

    kind: Literal["attribute", "bit-flip", "l1-ball"]
    beta: Number | None = None
    radius: Number | None = None

    def adjacency(self) -> Adjacency:
        """The adjacency itself."""
        match self.kind, self.beta, self.radius:
            case "attribute", Decimal() as beta, None:
                return AttributeAdjacency(beta=rational("beta", beta))
            case "l1-ball", None, Decimal() as radius:
                return L1Ball(radius=rational("radius", radius))
            case "bit-flip", None, None:
                return BitFlip()
        needs = {"attribute": "beta", "l1-ball": "radius", "bit-flip": "no bound"}[self.kind]
        raise ConfigurationError(
            f'adjacency of kind "{self.kind}" needs {needs}, and nothing else.'
        )


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

    alpha: Annotated[Number, Field(gt=0, lt=1)] = Decimal("0.01")
    draws: Annotated[Whole, Field(ge=100, le=10**9)] = 100_000
    seed: Seed = 0


class MechanismSettings(BaseModel):
    """Name of the mechanism, and its own parameters beside it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    def parameters(self) -> dict[str, Any]:
        """What the mechanism itself takes."""
        return dict(self.model_extra or {})


class Configuration(_Section):
    """A whole configuration file."""

    data: DataSettings
    mechanism: MechanismSettings
    privacy: PrivacySettings
    projection: ProjectionSettings = ProjectionSettings()
    audit: AuditSettings = AuditSettings()

    def domain(self) -> Domain:
        """The declared domain."""
        return Domain(
            low=rational("low", self.data.domain.low),
            high=rational("high", self.data.domain.high),
            outside=self.data.outside,
        )


def load_configuration(path: Path) -> Configuration:
    """Read and check a configuration file.

    Raises
    ------
    ConfigurationError
        One line that names the file, the key, what is wrong, and the key probably meant.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not TOML: {error}.") from None
    try:
        return Configuration.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_first_problem(error)}") from None
    except DPVerifyError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {where}.{_suggestion(problem['loc'])}"
    if problem["type"] == "missing":
        return f"{where} is missing."
    message = problem["msg"].removeprefix("Value error, ")
    given = problem["input"]
    shown = f"={given}" if isinstance(given, str | int | Decimal) else ""
    return f"{where}{shown}: {message[0].lower()}{message[1:]}."


def _suggestion(location: tuple[int | str, ...]) -> str:
    fields = Configuration.model_fields
    for part in location[:-1]:
        fields = fields[str(part)].annotation.model_fields  # type: ignore[union-attr]
    close = difflib.get_close_matches(str(location[-1]), fields, n=1)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(fields)}."
