"""Composed certificates: what several certified releases reveal together about the same people.

A composed certificate holds the certificates of its parts whole, so that anyone can check both them
and the total again. The total is the composition of the mechanisms' exact privacy losses, rebuilt
from the inputs (`accounting.composition.compose`); nothing is taken over from a part's own bounds.

**What that needs.** Neighbours of the total must be neighbours, or equal, in every release. With
one adjacency for all that is its meaning for the same people. With all different only the owner
can say what one change of a person's data does to each release: the total then protects the unit
that the owner states.

**Public draws.** A guarantee over the draw of a projection or hash is no statement about the draw
that was realised, and two on one draw aren't independent. `compose` composes them draw by draw
where they are of one kind; that takes the same positions to differ in both, which is so for the
very same records, on the owner's word. Whether draws overlap is decided there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from dpverify._exact import Exact
from dpverify._refusals import refusals
from dpverify.accounting.composition import compose as composition
from dpverify.certificate._places import Places
from dpverify.certificate.certify import REPORT, document_digest, environment
from dpverify.certificate.checks import (
    Check,
    check_certificate,
    check_digest,
    made_with,
    misfit,
    recomputed,
)
from dpverify.certificate.fields import Document, Sha256, WholeDocument
from dpverify.certificate.schema import (
    Certificate,
    Ends,
    Environment,
    Inputs,
)
from dpverify.enclosure import Real, exact_string, rational
from dpverify.errors import CertificateError, DPVerifyError, require
from dpverify.execution.progress import Announce
from dpverify.guarantee import Guarantee

__all__ = [
    "SCHEMA",
    "Composition",
    "OwnersWord",
    "Total",
    "TotalPoint",
    "check_document",
    "compose",
    "composition_schema",
]

SCHEMA = "dpverify-composition/1"
_SAME_PEOPLE = (
    "all releases are about the same people: whoever changes in one may change in all of them, and "
    "one change of the protected unit makes at most one change in the records behind each release"
)
_ALL_OF_THEM = "the total covers the releases named here and no other release about these people"
_POINTS = 14


class OwnersWord(Document):
    """What the owner states and nothing here can check.

    Attributes
    ----------
    unit : the unit of privacy of the total, one change of which makes at most one change of its own
        adjacency in every release; null where all releases have one adjacency
    same_records : whether releases on one public draw are of the very same records
    """

    unit: Annotated[str, Field(min_length=1)] | None = None
    same_records: bool = False


class TotalPoint(Document):
    """One point of the privacy curve."""

    epsilon: str
    delta: Ends


class Total(Document):
    """What all releases together guarantee."""

    protects: str
    epsilon: Ends
    added_epsilon: str
    added_delta: str
    curve: list[TotalPoint]
    theorem: str
    randomness: str
    data_choice: str
    assumptions: list[str]
    draws: list[str]


class Composition(WholeDocument):
    """A whole composed certificate: `parts` are certificates, `delta` is the total's."""

    schema_version: Literal["dpverify-composition/1"] = Field(alias="schema")
    parts: Annotated[list[dict[str, Any]], Field(min_length=2, max_length=10_000)]
    delta: Exact
    owners_word: OwnersWord
    total: Total
    environment: Environment
    digest: Sha256


def composition_schema() -> dict[str, Any]:
    """JSON Schema of version 1, as published in ``schemas/composition-1.json``."""
    schema = Composition.model_json_schema(mode="serialization")
    schema["properties"]["parts"]["items"] = {"$ref": "urn:dpverify:certificate:1"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:dpverify:composition:1",
        **schema,
    }


def compose(
    parts: Sequence[Mapping[str, Any]],
    *,
    delta: Real | None = None,
    owners_word: OwnersWord = OwnersWord(),  # noqa: B008  # frozen
) -> dict[str, Any]:
    """The composed certificate of several certificates, which it doesn't verify.

    Parameters
    ----------
    parts : certificates as `read_certificate` returns them, two or more
    delta : at which the total's ε is stated, in [0, 1); the sum of the parts' by default, so that
        the total compares with adding up
    owners_word : needed for different adjacencies, and for releases on one public draw

    Returns
    -------
    dict
        That `rfc8785.dumps` writes and `Composition` models.

    Raises
    ------
    CertificateError
        If a part is no certificate of a release or has no canonical JSON, a release is named twice,
        or the parts compose on the owner's word alone and that isn't given.
    ConfigurationError
        If a statement that a part's guarantee stands on fails its check.
    ParameterError
        If no composition is proven for the parts, or δ is outside its domain.
    """
    read = _read_all(parts)
    chosen = sum((part.delta for part in read), Fraction(0)) if delta is None else delta
    target = rational("delta", chosen)
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "parts": [dict(part) for part in parts],
        "delta": exact_string(target),
        "owners_word": owners_word.model_dump(),
        "total": _total(read, target, owners_word).model_dump(),
        "environment": environment().model_dump(),
    }
    return {**fields, "digest": document_digest(fields)}


def check_document(
    fields: dict[str, Any],
    folder: Path,
    *,
    replay: bool = True,
    announce: Announce = lambda *_: lambda _: None,
    workers: int = -1,
) -> list[Check]:
    """Verify a certificate or a composed certificate, as its schema says.

    A composed certificate's parts are verified whole. Their released files are looked for beside
    each part's own certificate, and then by their hashes, in `folder` and in the folders directly
    below.

    Parameters
    ----------
    fields : as `read_certificate` returns them
    folder, replay, announce, workers : as for `check_certificate`
    """
    options: Any = {"replay": replay, "announce": announce, "workers": workers}
    if fields.get("schema") != SCHEMA:
        return check_certificate(fields, folder, **options)
    try:
        document = Composition.model_validate(fields)
    except ValidationError as error:
        return [misfit(error)]
    checks = [Check(name="schema", status="agrees", detail=SCHEMA), check_digest(fields)]
    places = Places(folder)
    for number, part in enumerate(document.parts, start=1):
        place = places.of(part)
        found = check_certificate(part, place.folder, own=place.own, **options)
        checks += [
            replace(
                check,
                name=f"release {number}: {check.name}",
                fields=tuple(f"parts[{number - 1}].{field}" for field in check.fields),
            )
            for check in found
        ]
    checks.append(_recomputed(document))
    if os.path.lexists(folder / REPORT):
        detail = f"the {REPORT} here is not this certificate's: a composed one has none"
        checks.append(Check(name="report", status="not_checked", detail=detail))
    return checks


def _recomputed(document: Composition) -> Check:
    wider = bool(made_with(document.environment))
    try:
        stated = Fraction(float(document.total.epsilon.upper)) if wider else None
        again = _total(_read_all(document.parts), document.delta, document.owners_word, stated)
    except (DPVerifyError, ValueError, OverflowError) as error:
        return Check(name="total", status="differs", detail=str(error), fields=("total",))
    both = "total", document.total.model_dump(), again.model_dump()
    wrong, remark = recomputed([both], wider=wider)
    detail = f"composed again from the parts' exact privacy losses{remark}"
    return Check(name="total", status="differs" if wrong else "agrees", detail=detail, fields=wrong)


class _Release(NamedTuple):
    """A part, as far as the total depends on it."""

    number: int
    inputs: Inputs
    sha256: str
    guarantee: Guarantee

    @property
    def epsilon(self) -> Fraction:
        return self.inputs.epsilon

    @property
    def delta(self) -> Fraction:
        return self.inputs.delta


def _read_all(parts: Sequence[Mapping[str, Any]]) -> list[_Release]:
    require(len(parts) >= 2, "certificates", len(parts), "at least two")
    return [_read(number, fields) for number, fields in enumerate(parts, start=1)]


def _read(number: int, fields: Mapping[str, Any]) -> _Release:
    if fields.get("schema") == SCHEMA:
        raise CertificateError(
            f"release {number}: is a composed certificate. Name the certificates of its parts."
        )
    try:
        certificate = Certificate.model_validate(fields)
    except ValidationError as error:
        raise CertificateError(f"release {number}: {refusals(error)[0]}.") from None
    try:
        guarantee = certificate.guarantee()
    except CertificateError as error:
        raise CertificateError(f"release {number}: {error}") from None
    assert certificate.release is not None  # noqa: S101  # or it has no guarantee
    return _Release(number, certificate.inputs, certificate.release.sha256, guarantee)


def _total(
    releases: Sequence[_Release], delta: Fraction, word: OwnersWord, stated: Fraction | None = None
) -> Total:
    """The total, with points of its curve as far as its ε reaches, or one that was stated."""
    for first, second in combinations(releases, 2):
        _check_pair(first, second, word)
    parts = [release.guarantee for release in releases]
    if word.unit is not None:
        # On the owner's word neighbours in that unit are neighbours in every release: what they
        # are called there no longer matters.
        parts = [replace(part, adjacency=parts[0].adjacency) for part in parts]
    total = composition.compose(*parts, same_records=word.same_records)
    epsilon = total.curve.epsilon_at(delta)
    rule = "larger: the privacy loss of these releases is unbounded with at least this probability"
    require(epsilon.upper < math.inf, "delta", delta, rule)
    largest = Fraction(epsilon.upper) if stated is None else stated
    return Total(
        protects=word.unit or total.adjacency.unit,
        epsilon=Ends.of(epsilon),
        added_epsilon=exact_string(sum((r.epsilon for r in releases), Fraction(0))),
        added_delta=exact_string(sum((r.delta for r in releases), Fraction(0))),
        curve=[
            TotalPoint(epsilon=exact_string(point), delta=Ends.of(total.curve.delta_at(point)))
            for point in (_rounded(largest * step / 10) for step in range(_POINTS))
        ],
        theorem=total.theorem,
        randomness=total.randomness,
        data_choice=total.data_choice,
        assumptions=[_SAME_PEOPLE, _ALL_OF_THEM, *_stated(releases, word), *total.assumptions],
        draws=[f"{draw.source}: {draw.realised}" for draw in total.draws],
    )


def _stated(releases: Sequence[_Release], word: OwnersWord) -> Iterator[str]:
    if word.unit is not None:
        units = "; ".join(f"release {r.number}: {r.guarantee.adjacency.unit}" for r in releases)
        yield f"on the owner's word, one change of {word.unit} is at most one change of {units}"
    if word.same_records:
        yield "on the owner's word, releases on one public draw are of the very same records"
    if len({_domain(r) for r in releases}) > 1:
        declared = "; ".join(f"release {r.number}: {_domain(r)}" for r in releases)
        yield f"one change is measured in each release's own domain, {declared}"


def _domain(release: _Release) -> str:
    domain = release.inputs.domain
    return " ".join(
        [domain.kind, *(f"{n} = {exact_string(domain.numbers[n])}" for n in sorted(domain.numbers))]
    )


def _check_pair(first: _Release, second: _Release, word: OwnersWord) -> None:
    """Refuse two releases whose composition isn't proven, or is on a word that wasn't given."""
    both = f"releases {first.number} and {second.number}"
    if first.sha256 == second.sha256:
        raise CertificateError(
            f"{both} are the same release: both certificates name the file with SHA-256 "
            f"{first.sha256}. "
            "A release counts once: leave one out."
        )
    units = [release.guarantee.adjacency for release in (first, second)]
    if word.unit is None and units[0] != units[1]:
        raise CertificateError(
            f"{both} protect different units: {units[0].unit}, and {units[1].unit}. Guarantees for "
            "different neighbours don't add up. If one change of something that you can name is at "
            'most one change of both, state it: --unit "one patient\'s record".'
        )
    # One whole record is one whatever its columns' ranges; smaller changes are measured in them.
    scales = [(release.inputs.ranges, release.inputs.columns) for release in (first, second)]
    if word.unit is None and scales[0] != scales[1] and first.inputs.adjacency.kind != "record":
        raise CertificateError(
            f"{both} brought their attributes to [0, 1] from different ranges, and so a change of "
            "one size is of different sizes in the original units. If one change of something that "
            'you can name is at most one change of both, state it: --unit "one answer, of any '
            'size".'
        )
    draws = first.guarantee.draws
    for name in ("rows", "attributes", "domain", "ranges", "columns"):
        if draws and draws == second.guarantee.draws:
            values = [getattr(release.inputs, name) for release in (first, second)]
            if values[0] != values[1]:
                raise CertificateError(
                    f"{both} share a public draw but differ in {name}, and so are of different "
                    "records. On one draw they are not independent, and no composition is proven "
                    "for different records. Release one again with a seed of its own."
                )


def _rounded(value: Fraction) -> Fraction:
    """A short decimal nearby, for a point of a curve."""
    return Fraction(f"{float(value):.6g}")
