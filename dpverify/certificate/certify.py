"""Certify a release: build, attack, release, and put certificate, report and sketch in place."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import rfc8785

from dpverify._registry import ADJACENCIES, DOMAINS
from dpverify._tables import html_table, text_table
from dpverify.accounting.budget import Budget
from dpverify.catalogue import family_of
from dpverify.certificate._releasing import Released, check_records, write_release
from dpverify.certificate.archive import ARRAY
from dpverify.certificate.build import build, canonical
from dpverify.certificate.checklist import answers, check_answerable
from dpverify.certificate.configuration import (
    MAX_SEED,
    Configuration,
    DataSettings,
    described,
    load_configuration,
)
from dpverify.certificate.derive import PILOT, AuditPlan, collect, derive, with_enough_draws, worth
from dpverify.certificate.manifest import release_files
from dpverify.certificate.schema import (
    SCHEMA,
    Certificate,
    Derived,
    Ends,
    Environment,
    Evidence,
    Inputs,
    KindInput,
    OwnerAnswer,
    Range,
    Release,
    Usefulness,
)
from dpverify.data.atomic_files import (
    check_own,
    check_writable,
    make_own,
    replacing,
    write_file,
)
from dpverify.data.domain import is_sparse
from dpverify.data.encoding import encoded, numbers
from dpverify.data.frame import ending, located
from dpverify.data.frames import DATABASES, frame_of
from dpverify.data.loading import load_source, open_frame_of, open_records
from dpverify.data.records import Table, scaled
from dpverify.data.text_files import TEXTS
from dpverify.enclosure import exact_string, rational
from dpverify.errors import CertificateError, ConfigurationError
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.execution.progress import Announce, notebook_line, phases
from dpverify.execution.versions import drawing_versions, versions
from dpverify.ledger.reliance import relied_on
from dpverify.paths import to_path
from dpverify.privacy import Certifiable
from dpverify.sampling.words import SecureWords

__all__ = [
    "CERTIFICATE",
    "REPORT",
    "Asked",
    "Certified",
    "Empty",
    "certify",
    "configured",
    "document_digest",
    "environment",
    "requested",
]

CERTIFICATE, REPORT = "certificate.json", "report.html"
_OUTPUTS = re.compile(r"certificate\.json|report\.html|sketch(-[0-9]{5,})?\.npz|manifest\.json")

_OWNER_WARNING = (
    "OWNER ONLY. DO NOT RELEASE. What follows was computed from the real records and is not "
    "protected by any privacy guarantee."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """A certificate, and the files that certify wrote.

    Attributes
    ----------
    certificate : as written
    folder : where certificate, report and (unless an audit found a violation) sketch are
    owner_file : holds facts about the real records, for the owner's eyes; outside `folder`
    """

    certificate: Certificate
    folder: Path
    owner_file: Path | None

    @property
    def files(self) -> dict[str, Path]:
        """What was written, by its kind; without a release where an audit found a violation.

        A manifest lists the files of the parts, which are beside it.
        """
        release = self.certificate.release
        names = [CERTIFICATE, REPORT, *([release.file] if release else [])]
        return {name.partition(".")[0]: self.folder / name for name in names}

    def to_dict(self) -> dict[str, Any]:
        """What the certificate says, in short, and where the files are."""
        files = {path.name: str(path) for path in self.files.values()}
        return {**self.certificate.short(), "files": files}

    def __str__(self) -> str:
        return text_table(self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        files = {name: str(path) for name, path in self.files.items()}
        release = self.certificate.release
        if release is not None and "manifest" in files:
            path, rows = self.folder / release.file, release.shape[0]
            parts = len(release_files(path, rows=rows, sha256=release.sha256))
            files["manifest"] += f", of {parts} parts in files of their own beside it"
        signature = ("signature", "none yet: nobody stands by it until dpverify sign")
        return [*self.certificate.summary(), signature, *files.items()]


@usual_arithmetic()
def certify(
    source: Any,
    out: Path | str,
    *,
    configuration: Configuration | Path | str | Mapping[str, Any] | None = None,
    base: Path | str | None = None,
    budget: Budget | Path | str | None = None,
    accept: Callable[[Usefulness], bool] = lambda judged: judged.verdict != "useless",
    announce: Announce | None = None,
    workers: int = -1,
    **settings: Any,
) -> Certified:
    """Certify a release: that a configuration describes, or of data that are given.

    Builds the mechanism, proves its guarantee, attacks it on synthetic neighbours, and releases the
    records with fresh secure noise.

    Parameters
    ----------
    source : a configuration, as a TOML file or its tables as dictionaries; or data, with their
        configuration or settings beside them: a data frame of pandas, polars or any library with
        the Arrow interface, a matrix, a path
    out : folder for the outputs; replaced as a whole, at the very end
    configuration : of data that are given; they take the place of its path
    base : folder that a relative data path starts from; the configuration file's by default
    budget : of which the release is spent, or its file. It is asked first, and spent just before
        the draw, at the release's δ where it needs one. What fails after that stays spent: nobody
        can tell how much was seen. Nothing is spent where an audit finds a violation
    accept : called before anything is drawn with what one estimate will be worth; where it returns
        False nothing is released. By default what is useless is refused
    announce : called at the start of each phase, reading, auditing and releasing; see `Announce`.
        By default a line below a notebook's cell shows them, and nothing elsewhere
    workers : processes that audit, −1 for all cores; no effect on the result. On a cluster
        (`workplace`) a table in parts is also read and released by its workers, unless this is 1
    settings : in place of a configuration: `mechanism` and its own parameters, `epsilon`, `delta`,
        `adjacency`, `columns` or `domain`, and as in `described`

    Raises
    ------
    DPVerifyError
        With nothing written, if anything is wrong with the configuration, records or folder, or
        if the extra `report` isn't installed.

    Examples
    --------
    >>> import dpverify as dpv
    >>> print(dpv.certify("release.toml", out="out"))  # doctest: +SKIP
    >>> certified = dpv.certify(
    ...     people,
    ...     out="out",
    ...     columns={"age": dpv.Integers(0, 120), "sex": dpv.Categories("f", "m")},
    ...     mechanism="raw-data-g-opt",
    ...     noise="laplace",
    ...     epsilon=8,
    ...     adjacency="cell",
    ... )  # doctest: +SKIP
    >>> dpv.open_release(certified).to_pandas()  # doctest: +SKIP
    """
    from dpverify.certificate.report.html import render  # late: it needs the extra

    out = to_path("out", out)
    check_writable(out, ours=_OUTPUTS.fullmatch)
    check_own(_owner_folder(out))
    asked = requested(source, configuration, base, settings)
    table, inputs, mechanism = configured(asked)
    judged = worth(inputs, mechanism)
    if judged is not None and not accept(judged):
        raise ConfigurationError(
            f"nothing was drawn or released, since the release would be {judged}. dpverify plan "
            "says what would help; to release it nevertheless, give --yes, in Python "
            "accept=lambda _: True."
        )
    with notebook_line(wanted=announce is None) as line:
        announce = announce or phases(line)
        rows = table.shape[0]
        check_records(mechanism, table, progress=announce("reading", rows), workers=workers)
        if budget is not None and not isinstance(budget, Budget):
            budget = Budget.open(budget)
        label = f"certify {inputs.mechanism} in {out.name}"
        if budget is not None:  # refuse before the long part
            budget.check(mechanism.guarantee(), delta=inputs.delta, label=label)
        plan = AuditPlan.of(inputs, mechanism)
        if asked.configuration.audit.moment_draws is None:
            plan = with_enough_draws(plan, workers=workers)
            inputs = plan.inputs
        evidence = collect(plan, progress=announce("auditing", plan.draws), workers=workers)
        derived = derive(plan, evidence)
        release = owner_file = None
        notes: dict[str, Any] = {}
        with replacing(out) as new:
            if derived.white_box.verdict != "violation":
                if budget is not None:
                    budget.spend(mechanism.guarantee(), delta=inputs.delta, label=label)
                told = announce("releasing", rows)
                released = write_release(mechanism, table, new, progress=told, workers=workers)
                notes = released.owner_notes
                release = _stated(released, mechanism)
            fields = _document(inputs, evidence, derived, release)
            certificate = Certificate.model_validate(fields)
            write_file(new / CERTIFICATE, rfc8785.dumps(fields) + b"\n")
            write_file(new / REPORT, render(certificate).encode())
            if release is not None:
                owner_file = _write_owner_file(out, release.sha256, notes)
    return Certified(certificate=certificate, folder=out, owner_file=owner_file)


def _stated(released: Released, mechanism: Certifiable) -> Release:
    """What a certificate says of the files that were written."""
    step = mechanism.step()
    return Release(
        file=released.file,
        sha256=released.sha256,
        array=ARRAY,
        shape=list(released.shape),
        dtype=released.dtype,
        step=None if step is None else Ends.of(step),
        randomness=SecureWords.policy,
    )


def _document(
    inputs: Inputs, evidence: Evidence, derived: Derived, release: Release | None
) -> dict[str, Any]:
    """A certificate with its digest, as its file holds it."""
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "inputs": inputs.model_dump(),
        "evidence": evidence.model_dump(),
        "derived": derived.model_dump(),
        "checklist": [answer.model_dump() for answer in answers(inputs, derived)],
        "release": None if release is None else release.model_dump(),
        "environment": environment().model_dump(),
    }
    return {**fields, "digest": document_digest(fields)}


@dataclass(frozen=True, slots=True)
class Empty:
    """In place of data: a number of rows of the declared columns, for a plan, which reads none."""

    rows: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A configuration, and the data that were given with it, or None where it says where they are.

    `base` is the folder that a relative path starts from.
    """

    configuration: Configuration
    data: Any
    base: Path


def requested(
    source: Any,
    configuration: Configuration | Path | str | Mapping[str, Any] | None,
    base: Path | str | None,
    settings: Mapping[str, Any],
) -> Asked:
    """What the arguments of `certify` and `plan` ask for.

    Raises
    ------
    ConfigurationError
        If they don't fit, or anything is wrong with the configuration.
    """
    alone = configuration is None and not settings
    if configuration is not None and settings:
        names = ", ".join(settings)
        raise ConfigurationError(f"give a configuration or settings ({names}), and not both.")
    if alone and not isinstance(source, Configuration | Path | str | Mapping):
        raise ConfigurationError(
            "data need a configuration, or settings: columns, mechanism, epsilon, adjacency."
        )
    try:
        content: Any = described(**settings) if settings else source if alone else configuration
    except TypeError as error:  # a setting is missing
        raise ConfigurationError(f"{str(error).partition(') ')[2] or error}.") from None
    if base is None:
        base = Path(content).parent if isinstance(content, Path | str) else Path()
    base = to_path("base", base)
    if not isinstance(content, Configuration):
        content = load_configuration(content)
    data = None if alone else located(source) if isinstance(source, str) else source
    return Asked(content, data, base)


def configured(asked: Asked) -> tuple[Table, Inputs, Certifiable]:
    """The records that are asked for, their inputs in canonical form, and their mechanism.

    Raises
    ------
    DPVerifyError
        If anything is wrong, but for the values of the records, which aren't read.
    """
    configuration = asked.configuration
    check_answerable(configuration.owner)
    table = _load(configuration, asked.base, asked.data)
    inputs = _inputs(configuration, table)
    mechanism = build(inputs)
    inputs = canonical(inputs)
    relied_on(inputs.mechanism, mechanism.guarantee())  # refuse before the long part
    return table, inputs, mechanism


def document_digest(fields: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of everything but the digest itself.

    Raises
    ------
    CertificateError
        If there is none: a whole number beyond 2**53, half a surrogate pair, too deep a nesting.
    """
    body = {name: value for name, value in fields.items() if name != "digest"}
    try:
        return hashlib.sha256(rfc8785.dumps(body)).hexdigest()
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"it has no canonical JSON: {error}.") from None


def _load(configuration: Configuration, base: Path, given: Any) -> Table:
    data = configuration.data
    where = given if data.path is None or given is not None else located(data.path, base)
    _refuse_unread(data, data.path or where)
    if isinstance(where, Empty):
        width = sum(len(column.attributes) for column in data.released())
        return Table(shape=(where.rows, width), read=lambda: iter(()))
    if data.columns:
        if where is None:
            raise ConfigurationError("data needs a path.")
        columns, spelling = data.released(), data.spelling()
        names = [column.name for column in columns]
        frame = open_frame_of(where, names, spelling=spelling, table=data.table)
        return encoded(
            frame, columns, dropped=data.dropped(), spelling=spelling, clip=data.outside == "clip"
        )
    table = _numbers_of(where, data)
    if not data.ranges:
        return table
    ends = [(float(low), float(high)) for low, high in data.ranges]
    return scaled(table, ends, refuse=data.outside != "clip")


def _refuse_unread(data: DataSettings, where: Any) -> None:
    """Refuse settings that have no effect on a file of this kind."""
    kind = ending(where) if isinstance(where, Path | str) else ""
    origin = where if kind else "data that are given"
    of_others = {
        "table": (data.table, DATABASES),
        "encoding": (data.encoding != "utf-8", tuple(TEXTS)),
        "separator": (data.separator, tuple(TEXTS)),
    }
    for name, (said, kinds) in of_others.items():
        if said and kind not in kinds:
            raise ConfigurationError(
                f"data.{name} applies only to {', '.join(kinds)}, and not to {origin}: leave it "
                "out."
            )


def _numbers_of(where: Any, data: DataSettings) -> Table:
    """Records that are numbers alone, without declared columns."""
    if where is None:
        if data.source is None:
            raise ConfigurationError("data needs either source or path.")
        return Table.of(load_source(data.source))
    if isinstance(where, Path | str):
        return open_records(where, spelling=data.spelling(), table=data.table)
    if isinstance(where, np.ndarray) or is_sparse(where):
        return Table.of(where)
    return numbers(frame_of(where), data.spelling())


def _inputs(configuration: Configuration, table: Table) -> Inputs:
    privacy, audit, data = configuration.privacy, configuration.audit, configuration.data
    purpose = configuration.purpose
    seed, name = configuration.projection.seed, configuration.mechanism.name
    if seed and not family_of(name).seeded:
        raise ConfigurationError(
            f"projection.seed={seed} has no use: {name} makes nothing public from a seed. Leave "
            "it out."
        )
    parameters = {
        name: _parameter(name, value)
        for name, value in configuration.mechanism.parameters().items()
    }
    return Inputs.checked(
        mechanism=name,
        parameters=parameters,
        rows=table.shape[0],
        attributes=table.shape[1],
        domain=KindInput.of(*DOMAINS.describe(configuration.domain())),
        outside=configuration.data.outside,
        ranges=[Range(low=low, high=high) for low, high in data.ranges],
        columns=[column.model_dump() for column in data.released()],
        adjacency=KindInput.of(*ADJACENCIES.describe(configuration.adjacency())),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        projection_seed=seed,
        alpha=audit.alpha,
        draws=audit.draws,
        moment_draws=audit.moment_draws or PILOT,
        audit_seed=audit.seed,
        purpose=purpose and Range(low=purpose.low, high=purpose.high),
        about=configuration.about,
        owner={name: OwnerAnswer.of(given) for name, given in configuration.owner.items()},
    )


def _parameter(name: str, value: Any) -> int | str:
    """A parameter as a certificate holds it: whole numbers and words as they are."""
    match value:
        case bool():
            pass
        case str():
            return value
        case int() if 0 <= value <= MAX_SEED:
            return value
        case int():
            raise ConfigurationError(f"mechanism.{name} must be a whole number in [0, {MAX_SEED}].")
        case float() | Decimal() | Fraction():
            return exact_string(rational(f"mechanism.{name}", value))
    raise ConfigurationError(f"mechanism.{name}={value} must be a number or a word.")


def environment() -> Environment:
    """What made a document, and when."""
    return Environment(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions() | drawing_versions() | {"python": platform.python_version()},
        platform=f"{sys.platform} {platform.machine()}",
    )


def _owner_folder(out: Path) -> Path:
    return out.with_name(f"{out.name}-OWNER-ONLY-do-not-release")


def _write_owner_file(out: Path, sha256: str, notes: dict[str, Any]) -> Path:
    """One file for each release, named by its hash: written before the release is in place."""
    folder = _owner_folder(out)
    make_own(folder)
    lines = [_OWNER_WARNING, f"It describes the release with SHA-256 {sha256}.", ""]
    lines += [f"{name.replace('_', ' ')}: {value}" for name, value in notes.items()]
    path = folder / f"{sha256[:16]}.txt"
    write_file(path, ("\n".join(lines) + "\n").encode(), private=True)
    return path
