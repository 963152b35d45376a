"""The checks of a verification: rebuild, replay, recompute, and compare field by field."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from dpverify._json import each_once
from dpverify._refusals import refusals
from dpverify.auditing.statistics.noise_floor import (
    LEVEL,
    Sizes,
    least_root_mean_square,
    too_small,
)
from dpverify.catalogue import families, family_of
from dpverify.certificate.archive import Contents
from dpverify.certificate.build import build, canonical
from dpverify.certificate.certify import CERTIFICATE, REPORT, document_digest, environment
from dpverify.certificate.checklist import answers
from dpverify.certificate.derive import AuditPlan, collect, derive, misfits
from dpverify.certificate.manifest import MANIFEST, release_files, released_blocks
from dpverify.certificate.own_files import MAX_BYTES, read_own_file
from dpverify.certificate.report.check import likeness
from dpverify.certificate.rounding import about, at_least, percent_at_most
from dpverify.certificate.schema import (
    Certificate,
    Ends,
    Environment,
    Evidence,
    Inputs,
    Release,
)
from dpverify.enclosure import Enclosure
from dpverify.errors import (
    CertificateError,
    ClusterError,
    ConfigurationError,
    DPVerifyError,
    MissingExtraError,
    NumericalError,
    did_you_mean,
)
from dpverify.execution.progress import Announce
from dpverify.execution.versions import drawing_versions, versions
from dpverify.paths import to_path
from dpverify.privacy import Certifiable, SymmetricNoise

__all__ = [
    "Check",
    "certificate_path",
    "check_certificate",
    "check_digest",
    "check_noise",
    "check_terms",
    "differences",
    "made_with",
    "misfit",
    "read_certificate",
    "recomputed",
    "released",
]

_CHANCE = about(str(LEVEL))
_LISTED = 3  # files that are named
_FORM = "each input must be there in the one form in which certify writes it"

_ANOTHERS = "Install the package that has it, and check again."
_LOOSE = (
    ": all that is stated there holds, and this version states it more closely. Other code of its "
    "number wrote it, or it was changed"
)

Status = Literal["agrees", "differs", "violation", "not_checked", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a verification.

    Attributes
    ----------
    name : what was checked
    status : "agrees", "differs", "violation" (the claim is refuted by its own evidence),
        "not_checked" (there is nothing to check), or "inconclusive" (it could not be checked here)
    detail : how it was checked, or why it wasn't
    fields : names of the fields that no longer agree
    """

    name: str
    status: Status
    detail: str
    fields: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON holds it."""
        return {**asdict(self), "fields": list(self.fields)}


def read_certificate(path: Path | str) -> dict[str, Any]:
    """JSON object of a certificate file of limited size; of a folder, of the one in it.

    Raises
    ------
    CertificateError
        If the file can't be read or isn't one JSON object.
    """
    path = certificate_path(path)
    if path.name == MANIFEST:
        raise CertificateError(
            f"{path}: lists the parts of a release. Name the {CERTIFICATE} beside it."
        )
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise CertificateError(f"{path}: is not a file, but a pipe or a device.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CertificateError(f"{path}: is larger than {MAX_BYTES} bytes.")
        fields = json.loads(
            content.decode("utf-8"), object_pairs_hook=each_once, parse_constant=_no_number
        )
    except FileNotFoundError:
        raise CertificateError(
            f"{path}: there is no such file. Name a certificate, or the folder that certify wrote."
        ) from None
    except CertificateError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"{path}: can't be read as JSON: {error}. "
            "Name a certificate, such as the certificate.json of `dpverify certify`."
        ) from None
    if not isinstance(fields, dict):
        raise CertificateError(f"{path}: must hold one JSON object.")
    return fields


def certificate_path(path: Path | str) -> Path:
    """The certificate's file, which may be named by the folder that `certify` wrote."""
    path = to_path("certificate", path)
    return path / CERTIFICATE if os.path.isdir(path) else path  # noqa: PTH112  # never raises


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def check_certificate(
    fields: dict[str, Any],
    folder: Path | None,
    *,
    own: bool = True,
    replay: bool = True,
    announce: Announce = lambda *_: lambda _: None,
    workers: int = -1,
) -> list[Check]:
    """Verify a certificate against itself, this code, and the released file in `folder`.

    Parameters
    ----------
    fields : as `read_certificate` returns them
    folder : where the released file lies; None where it wasn't found
    own : whether that is this certificate's folder, so that a report there is its own
    replay : whether to draw the audits again; if not, the recorded counts are taken as they are
    announce : called with what is done and the number of draws to replay; see `Announce`
    workers : processes that replay, −1 for all cores; no effect on the result

    Returns
    -------
    list of `Check`; the certificate stands if none differs.

    Raises
    ------
    ClusterError
        If the cluster that replays is lost or unfit.
    """
    try:
        certificate = Certificate.model_validate(fields)
    except ValidationError as error:
        return [misfit(error)]
    checks = [Check(name="schema", status="agrees", detail=certificate.schema_version)]
    checks.append(check_digest(fields))
    name = certificate.inputs.mechanism
    try:
        family_of(name)
    except ConfigurationError:
        hint = did_you_mean(name, families(), otherwise=_ANOTHERS)
        detail = f"no mechanism {name} is installed. {hint}"
        return [*checks, Check(name="inputs", status="inconclusive", detail=detail)]
    try:
        mechanism = build(certificate.inputs)
    except DPVerifyError as error:
        return [
            *checks,
            Check(name="inputs", status="differs", detail=str(error), fields=("inputs",)),
        ]
    form = _compare("inputs", "inputs", certificate.inputs, canonical(certificate.inputs), _FORM)
    if form.fields:
        return [*checks, form]
    try:
        plan = AuditPlan.of(certificate.inputs, mechanism)
        unfit = misfits(plan, certificate.evidence)
        if unfit:
            detail = "the audits recorded are not the ones that the inputs lay down"
            return [
                *checks,
                Check(name="replay", status="differs", detail=detail, fields=tuple(unfit)),
            ]
        evidence, replayed = _replay(certificate, plan, announce, wanted=replay, workers=workers)
        checks.append(replayed)
        checks.extend(_recompute(certificate, plan, evidence))
    except ClusterError:  # which says nothing of the certificate
        raise
    except (DPVerifyError, ValueError) as error:
        # Built from the certificate's own numbers: what can't be computed doesn't agree.
        return [
            *checks,
            Check(
                name="bounds", status="differs", detail=str(error), fields=("inputs", "evidence")
            ),
        ]
    refuted = any(check.status == "violation" for check in checks)
    checks.extend(_release(certificate, mechanism, folder, own=own, refuted=refuted))
    if not any(check.fields for check in checks):  # else there is nothing to compare it with
        checks.append(_report(certificate, folder if own else None))
    return checks


def misfit(error: ValidationError) -> Check:
    """How a document doesn't fit its schema."""
    refused = refusals(error)
    wrong = tuple(each.where or "document" for each in refused)
    return Check(name="schema", status="differs", detail=refused[0].at(wrong[0]), fields=wrong)


def check_digest(fields: dict[str, Any]) -> Check:
    """Whether the digest that a document carries is its own."""
    try:
        computed = document_digest(fields)
    except CertificateError as error:
        return Check(name="digest", status="differs", detail=str(error), fields=("digest",))
    if computed == fields["digest"]:
        detail = "SHA-256 of the canonical JSON"
        return Check(name="digest", status="agrees", detail=detail)
    return Check(
        name="digest",
        status="differs",
        detail="the document was changed after it was written",
        fields=("digest",),
    )


def _replay(
    certificate: Certificate,
    plan: AuditPlan,
    announce: Announce,
    *,
    wanted: bool,
    workers: int,
) -> tuple[Evidence, Check]:
    """Evidence to derive from: drawn again, or as recorded where the draws may differ."""
    recorded = certificate.evidence
    if not wanted:
        detail = "left out as asked: bounds recomputed from the recorded counts"
        return recorded, Check(name="replay", status="not_checked", detail=detail)
    if other := made_with(certificate.environment):
        detail = f"made with {other}: bounds recomputed from the recorded counts"
        return recorded, Check(name="replay", status="inconclusive", detail=detail)
    evidence = collect(plan, progress=announce("replaying", plan.draws), workers=workers)
    detail = f"{recorded.draws} draws per side and pair, drawn again"
    return evidence, _compare("replay", "evidence", recorded, evidence, detail)


def made_with(environment: Environment) -> str:
    """The versions that numbers depend on, where they are others than here, in words."""
    return _other(environment.versions, versions())


def _other(recorded: Mapping[str, str], here: Mapping[str, str]) -> str:
    """What is recorded otherwise than it is here, in words."""
    return ", ".join(
        f"{name} {recorded[name]} (here {current})"
        for name, current in here.items()
        if recorded[name] != current
    )


def _recompute(certificate: Certificate, plan: AuditPlan, evidence: Evidence) -> Iterator[Check]:
    derived = derive(plan, evidence)
    wider = bool(made_with(certificate.environment))
    sections = {
        "projection and sensitivity": ("facts", "protects"),
        "guarantee and curve": ("guarantee", "curve", "far_delta", "attacker"),
        "attack": ("white_box",),
        "estimators": (
            "moment_level",
            "margin_mean",
            "margin_variance",
            "estimators",
            "predictions",
            "usefulness",
            "sizes",
        ),
    }
    stored, again = certificate.derived.model_dump(), derived.model_dump()
    differing = False
    for name, parts in sections.items():
        both = [(f"derived.{part}", stored[part], again[part]) for part in parts]
        fields, remark = recomputed(both, wider=wider)
        if "guarantee" in parts and _misses_target(certificate):
            fields = (*fields, "derived.guarantee.delta.upper")
        differing = differing or bool(fields)
        yield Check(
            name=name,
            status="differs" if fields else "agrees",
            detail=f"recomputed from inputs and counts{remark}",
            fields=fields,
        )
    # If they agree, by the numbers that it states: those of another version may be further out.
    numbers = derived if differing else certificate.derived
    answered = [answer.model_dump() for answer in answers(certificate.inputs, numbers)]
    listed = [answer.model_dump() for answer in certificate.checklist]
    fields = tuple(differences("checklist", listed, answered))
    yield Check(
        name="checklist",
        status="differs" if fields else "agrees",
        detail="answered again, from the certificate and the owner's words in it",
        fields=fields,
    )
    if derived.white_box.verdict == "violation":
        detail = "the audit refutes the claim" + (
            "" if certificate.release is None else ", and yet something was released"
        )
        yield Check(name="verdict", status="violation", detail=detail)


def recomputed(
    parts: Sequence[tuple[str, Any, Any]], *, wider: bool
) -> tuple[tuple[str, ...], str]:
    """Names of what differs, and a remark on bounds that are wider than today's.

    Parts are compared as `differences` compares a name, what is stored and what follows again.
    """

    def fields(*, wider: bool) -> tuple[str, ...]:
        return tuple(field for part in parts for field in differences(*part, wider=wider))

    if wider:
        return fields(wider=True), ", where other versions may enclose less closely"
    other = fields(wider=False)
    return other, _LOOSE if other and not fields(wider=True) else ""


def _misses_target(certificate: Certificate) -> bool:
    """Whether the δ that is stated is above the one that was asked for, as doubles have it."""
    most = Enclosure.of_exact(certificate.inputs.delta).upper
    return not float(certificate.derived.guarantee.delta.upper) <= most


def _release(
    certificate: Certificate,
    mechanism: Certifiable,
    folder: Path | None,
    *,
    own: bool,
    refuted: bool,
) -> Iterator[Check]:
    release = certificate.release
    if release is None:
        if refuted:
            yield Check(name="release", status="not_checked", detail="nothing was released")
        else:
            detail = "nothing is said of it, and only a violation keeps certify from releasing"
            yield Check(name="release", status="differs", detail=detail, fields=("release",))
        if folder is not None and own:
            yield from _strangers(folder, set())
        return
    yield from check_terms(certificate.inputs, release, mechanism)
    path = None if folder is None else folder / release.file
    if path is None or not os.path.lexists(path):
        detail = f"{path} is not there" if path else f"no {release.file} with its SHA-256 was found"
        yield Check(name="released file", status="inconclusive", detail=detail)
        return
    sizes, contents = Sizes(), released(certificate.inputs, mechanism)
    wrong = _file_problem(path, contents, release.sha256, sizes)
    yield Check(
        name="released file",
        status="differs" if wrong else "agrees",
        detail=wrong or _file_detail(path, contents, release.sha256),
        fields=("release.sha256",) if wrong else (),
    )
    if wrong:
        return
    yield check_noise(mechanism.added_noise(), sizes)
    if own:
        parts = release_files(path, rows=contents.shape[0], sha256=release.sha256)
        yield from _strangers(path.parent, {path.name, *parts})


def _file_detail(path: Path, contents: Contents, sha256: str) -> str:
    """What was seen of a released file, or of each part of a release."""
    parts = len(release_files(path, rows=contents.shape[0], sha256=sha256))
    seen = "SHA-256, and nothing but the array, byte for byte as certify writes it"
    return seen if parts == 1 else f"{parts} parts and their manifest, of each: {seen}"


def _strangers(folder: Path, listed: set[str]) -> Iterator[Check]:
    """Files beside a certificate that are called as a release's are, and that it doesn't list."""
    try:
        names = {file.name for file in folder.iterdir()}
    except OSError:  # a folder that may be entered and not listed
        return
    alike = {name for name in names if name == MANIFEST or fnmatch(name, "sketch*.npz")}
    if others := sorted(alike - listed):
        shown = ", ".join(others[:_LISTED]) + (", ..." if len(others) > _LISTED else "")
        detail = f"{shown}: called as released files are, and this certificate knows none of them"
        yield Check(name="other files", status="not_checked", detail=detail)


def check_noise(noise: SymmetricNoise | None, sizes: Sizes) -> Check:
    """Whether released numbers can have the noise that was promised, whatever the data."""
    if noise is None:
        detail = "nothing is tested: this release isn't data with noise on every number"
        return Check(name="noise", status="not_checked", detail=detail)
    many = f"{sizes.total:,} numbers"
    if excess := too_small(sizes, noise):
        detail = (
            f"too small for this noise: {percent_at_most(str(excess.share))} of {many} are below "
            f"{excess.size} steps, where data with it have at most "
            f"{percent_at_most(str(Fraction(excess.at_most)))}, but for a chance of {_CHANCE}"
        )
        return Check(name="noise", status="differs", detail=detail, fields=("release.sha256",))
    least = at_least(str(Fraction(least_root_mean_square(noise, sizes.total))), 3)
    if least == "0":
        detail = f"{many} are too few to tell"
        return Check(name="noise", status="not_checked", detail=detail)
    detail = (
        f"{many} are not too small for it; a root mean square below {least} steps would be, "
        f"but for a chance of {_CHANCE}"
    )
    return Check(name="noise", status="agrees", detail=detail)


def released(inputs: Inputs, mechanism: Certifiable) -> Contents:
    """What the released file must hold."""
    return Contents(mechanism.shape(inputs.rows), mechanism.dtype(), mechanism.possible)


def check_terms(inputs: Inputs, release: Release, mechanism: Certifiable) -> Iterator[Check]:
    """Compare what a certificate says of the released array with what its mechanism releases."""
    due = released(inputs, mechanism)
    wrong = []
    if release.shape != list(due.shape):
        wrong += ["inputs.rows", "release.shape"]
    if release.dtype != due.dtype.name:
        wrong += ["release.dtype"]
    yield Check(
        name="shape and type",
        status="differs" if wrong else "agrees",
        detail="of what this mechanism releases of so many records",
        fields=tuple(wrong),
    )
    step = mechanism.step()
    due_step = None if step is None else Ends.of(step).model_dump()
    stated = None if release.step is None else release.step.model_dump()
    fields = tuple(differences("release.step", stated, due_step))
    yield Check(
        name="step",
        status="differs" if fields else "agrees",
        detail="size of a released integer's step",
        fields=fields,
    )


def _file_problem(path: Path, contents: Contents, sha256: str, sizes: Sizes) -> str:
    """What is wrong with a released file; the sizes of its whole numbers are counted."""
    try:
        for block in released_blocks(path, contents, sha256=sha256):
            if contents.dtype == np.int64:
                sizes.add(np.frombuffer(block, dtype=contents.stored()).astype(np.int64))
    except CertificateError as error:
        return f"{path} {error}"
    except OSError as error:
        return f"{path} can't be read: {error.strerror}"
    return ""


def _report(certificate: Certificate, folder: Path | None) -> Check:
    """Render the report again, and compare."""
    path = None if folder is None else folder / REPORT
    if path is None or not os.path.lexists(path):
        detail = f"there is no {REPORT} beside the certificate"
        return Check(name="report", status="not_checked", detail=detail)
    try:
        page = read_own_file(path)
    except CertificateError as error:
        return Check(name="report", status="differs", detail=str(error), fields=("report",))
    try:
        from dpverify.certificate.report.html import render
    except MissingExtraError as error:
        return Check(name="report", status="inconclusive", detail=str(error))
    recorded = certificate.environment
    here = versions() | drawing_versions()
    writing = _other(recorded.versions, {name: here[name] for name in ("dpverify", "jinja2")})
    drawing = _other(
        {**recorded.versions, "platform": recorded.platform},
        {**here, "platform": environment().platform},
    )
    status: Status
    match likeness(page, render(certificate).encode()):
        case "same":
            status, detail = "agrees", "rendered again from the certificate, byte for byte"
        case "figures" if drawing:
            status, detail = "not_checked", f"text and numbers agree; figures drawn with {drawing}"
        case "figures":
            status, detail = "differs", "its figures are not those of this certificate"
        case "text" if writing:
            status, detail = "inconclusive", f"another text, made with {writing}"
        case _:
            status, detail = "differs", "its text is not that of this certificate"
    fields = ("report",) if status == "differs" else ()
    return Check(name="report", status=status, detail=detail, fields=fields)


def _compare(name: str, prefix: str, stored: Any, again: Any, detail: str) -> Check:
    fields = tuple(differences(prefix, stored.model_dump(), again.model_dump()))
    return Check(name=name, status="differs" if fields else "agrees", detail=detail, fields=fields)


def differences(name: str, stored: Any, again: Any, *, wider: bool = False) -> Iterator[str]:
    """Names of the leaves that are not equal.

    With `wider`, an enclosure may also hold the one that is computed again: then it is proven, too.
    """
    if isinstance(stored, dict) and isinstance(again, dict):
        if wider and _holds(stored, again):
            return
        for key in stored.keys() | again.keys():
            yield from differences(f"{name}.{key}", stored.get(key), again.get(key), wider=wider)
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for index, (one, two) in enumerate(zip(stored, again, strict=True)):
            yield from differences(f"{name}[{index}]", one, two, wider=wider)
    elif stored != again:
        yield name


def _holds(stored: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Whether these are ends as `certify` writes them, and the first are as far out or further."""
    if not stored.keys() == again.keys() == {"lower", "upper"}:
        return False
    try:
        outer, inner = (Enclosure(float(e["lower"]), float(e["upper"])) for e in (stored, again))
    except (NumericalError, TypeError, ValueError):
        return False
    written = math.isfinite(outer.upper - outer.lower) and outer.as_json() == stored
    return written and outer.lower <= inner.lower and inner.upper <= outer.upper
