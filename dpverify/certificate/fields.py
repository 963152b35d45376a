"""Types of the fields that documents are made of, and the rules that every document keeps to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    model_validator,
)

from dpverify.certificate.configuration import MAX_SEED, one_line
from dpverify.sampling.words import SecureWords
from dpverify.visible import hidden

__all__ = [
    "PROGRAMS",
    "Count",
    "Document",
    "OwnWords",
    "Program",
    "Secure",
    "Sha256",
    "Statistic",
    "Time",
    "Version",
    "WholeDocument",
]


class Document(BaseModel):
    """A document or a part of one, with its fields and no others, each of its own JSON type."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_serialization_defaults_required=True,  # a document that is read has every key
    )


Count = Annotated[int, Field(ge=0, le=MAX_SEED)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _nine_digits(text: str) -> str:
    if f"{float(text):.9g}" != text:
        raise ValueError("must be a number of nine significant digits in canonical form")
    return text


Statistic = Annotated[str, AfterValidator(_nine_digits)]


def _spaced(text: str) -> str:
    if one_line(text) != text:
        raise ValueError("must be words with single spaces between them")
    return text


OwnWords = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_spaced)]


class WholeDocument(Document):
    """A document with every key, none of whose text a terminal obeys or a reader doesn't see.

    Keys that have a default in Python are no others than the rest in a document that is read: of
    what it says there is one form.
    """

    @model_validator(mode="before")
    @classmethod
    def _visible(cls, fields: Any) -> Any:
        left = [fields]
        while left:  # no recursion: a document may be deep
            match left.pop():
                case dict() as part:
                    left += [*part, *part.values()]
                case list() as part:
                    left += part
                case str() as text if character := hidden(text):
                    raise ValueError(f"holds the hidden character {character}: no text may")
        return fields

    @model_validator(mode="wrap")
    @classmethod
    def _complete(cls, fields: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        document = read(fields)
        for absent in _absent("", document.model_dump(by_alias=True), fields):
            raise ValueError(f"needs the key {absent}")
        return document


def _absent(where: str, whole: Any, fields: Any) -> Iterator[str]:
    """Keys of a whole document that aren't among the fields that it was read from."""
    match whole, fields:
        case dict(), Mapping():
            for key, part in whole.items():
                if key in fields:
                    yield from _absent(f"{where}{key}.", part, fields[key])
                else:
                    yield f"{where}{key}"
        case list(), list():
            for number, (part, read) in enumerate(zip(whole, fields, strict=True)):
                yield from _absent(f"{where.removesuffix('.')}[{number}].", part, read)


def _secure(policy: str) -> str:
    if policy != SecureWords.policy:
        raise ValueError(f"must be {SecureWords.policy!r}: nothing else releases")
    return policy


Secure = Annotated[
    str, AfterValidator(_secure), Field(json_schema_extra={"const": SecureWords.policy})
]

Time = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\+00:00$")]
PROGRAMS = (
    *("dpverify", "numpy", "scipy", "python-flint", "python"),
    *("jinja2", "matplotlib", "kiwisolver", "freetype"),  # of the report
)
Program = Annotated[str, Field(pattern=f"^({'|'.join(PROGRAMS)})$")]
Version = Annotated[str, Field(pattern="^[0-9A-Za-z.!+_-]{1,100}$")]
