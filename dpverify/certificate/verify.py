"""Check a certificate again: rebuild, replay, recompute, and say field by field what agrees."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from dpverify.certificate.checklist import answers
from dpverify.certificate.derive import build, collect, derive, misfits
from dpverify.certificate.files import sha256_file
from dpverify.certificate.make import document_digest
from dpverify.certificate.model import Certificate, Ends, Evidence, Inputs, Release
from dpverify.errors import CertificateError, ClusterError, DPVerifyError
from dpverify.mechanism import Certifiable
from dpverify.versions import versions

__all__ = ["MAX_BYTES", "Check", "check_digest", "differences", "read_certificate", "verify"]

MAX_BYTES = 64 << 20
"""A larger file is not read: certificates have tens of kilobytes."""

Status = Literal["agrees", "differs", "violation", "not checked", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a verification.

    Attributes
    ----------
    name : what was checked
    status : "agrees", "differs", "violation" (the claim is refuted by its own evidence), "not
        checked" (there is nothing to check), or "inconclusive" (it could not be checked here)
    detail : how it was checked, or why it wasn't
    fields : names of the fields that no longer agree
    """

    name: str
    status: Status
    detail: str
    fields: tuple[str, ...] = ()


def read_certificate(path: Path) -> dict[str, Any]:
    """JSON object of a certificate file, of limited size.

    Raises
    ------
    CertificateError
        If the file can't be read or isn't one JSON object.
    """
    if path.is_dir():
        raise CertificateError(f"{path}: is a folder. Name the certificate.json in it.")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CertificateError(f"{path}: is larger than {MAX_BYTES} bytes.")
        fields = json.loads(
            content.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_no_number
        )
    except FileNotFoundError:
        raise CertificateError(f"{path}: there is no such file.") from None
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


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose keys are there once: of two, one reader takes the first, one the last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has one key twice")
    return made


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def verify(
    fields: dict[str, Any],
    folder: Path | None,
    *,
    replay: bool = True,
    announce: Callable[[Inputs, Certifiable], Callable[[int], None]] = lambda *_: lambda _: None,
    workers: int = -1,
) -> list[Check]:
    """Verify a certificate against itself, this code, and the released file in `folder`.

    Parameters
    ----------
    fields : as `read_certificate` returns them
    folder : where the released file lies; None where it wasn't found
    replay : whether to draw the audits again; if not, the recorded counts are taken as they are
    announce : called once with what will be replayed; returns the progress callback
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
        wrong = tuple(".".join(map(str, problem["loc"])) for problem in error.errors())
        detail = error.errors()[0]["msg"]
        return [Check(name="schema", status="differs", detail=detail, fields=wrong)]
    checks = [Check(name="schema", status="agrees", detail=certificate.schema_version)]
    checks.append(check_digest(fields))
    try:
        mechanism = build(certificate.inputs)
    except DPVerifyError as error:
        return [
            *checks,
            Check(name="inputs", status="differs", detail=str(error), fields=("inputs",)),
        ]
    try:
        unfit = misfits(certificate.inputs, mechanism, certificate.evidence)
        if unfit:
            detail = "the audits recorded are not the ones that the inputs lay down"
            return [
                *checks,
                Check(name="replay", status="differs", detail=detail, fields=tuple(unfit)),
            ]
        evidence, replayed = _replay(
            certificate, mechanism, announce, wanted=replay, workers=workers
        )
        checks.append(replayed)
        checks.extend(_recompute(certificate, mechanism, evidence))
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
    checks.extend(_release(certificate, mechanism, folder))
    return checks


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
    mechanism: Certifiable,
    announce: Callable[[Inputs, Certifiable], Callable[[int], None]],
    *,
    wanted: bool,
    workers: int,
) -> tuple[Evidence, Check]:
    """Evidence to derive from: drawn again, or as recorded where the draws may differ."""
    recorded = certificate.evidence
    if not wanted:
        detail = "left out as asked: bounds recomputed from the recorded counts"
        return recorded, Check(name="replay", status="not checked", detail=detail)
    here = versions()
    other = [
        f"{name} {certificate.environment.versions.get(name)} (here {current})"
        for name, current in here.items()
        if certificate.environment.versions.get(name) != current
    ]
    if other:
        detail = f"made with {', '.join(other)}: bounds recomputed from the recorded counts"
        return recorded, Check(name="replay", status="inconclusive", detail=detail)
    progress = announce(certificate.inputs, mechanism)
    evidence = collect(certificate.inputs, mechanism, progress=progress, workers=workers)
    detail = f"{recorded.draws} draws a side and pair, drawn again"
    return evidence, _compare("replay", "evidence", recorded, evidence, detail)


def _recompute(
    certificate: Certificate, mechanism: Certifiable, evidence: Evidence
) -> Iterator[Check]:
    derived = derive(certificate.inputs, mechanism, evidence)
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
            "sizes",
        ),
    }
    stored, again = certificate.derived.model_dump(), derived.model_dump()
    for name, parts in sections.items():
        fields = tuple(
            field
            for part in parts
            for field in differences(f"derived.{part}", stored[part], again[part])
        )
        yield Check(
            name=name,
            status="differs" if fields else "agrees",
            detail="recomputed from inputs and counts",
            fields=fields,
        )
    answered = [answer.model_dump() for answer in answers(certificate.inputs, derived)]
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


def _release(
    certificate: Certificate, mechanism: Certifiable, folder: Path | None
) -> Iterator[Check]:
    release = certificate.release
    if release is None:
        yield Check(name="release", status="not checked", detail="nothing was released")
        return
    due_shape = list(mechanism.shape(certificate.inputs.rows))
    yield Check(
        name="shape",
        status="agrees" if release.shape == due_shape else "differs",
        detail="of what this mechanism releases of so many records",
        fields=() if release.shape == due_shape else ("inputs.rows", "release.shape"),
    )
    step = mechanism.step()
    due = None if step is None else Ends.of(step).model_dump()
    stated = None if release.step is None else release.step.model_dump()
    fields = tuple(differences("release.step", stated, due))
    yield Check(
        name="step",
        status="differs" if fields else "agrees",
        detail="size of a released integer's step",
        fields=fields,
    )
    name = Path(release.file).name
    path = None if folder is None else folder / name
    if path is None or not path.is_file():
        detail = f"{path} is not there" if path else f"no {name} with its SHA-256 was found"
        yield Check(name="released file", status="inconclusive", detail=detail)
        return
    wrong = [] if sha256_file(path) == release.sha256 else ["release.sha256"]
    wrong += _shape_problems(path, release)
    yield Check(
        name="released file",
        status="differs" if wrong else "agrees",
        detail="SHA-256 and shape",
        fields=tuple(wrong),
    )


def _shape_problems(path: Path, release: Release) -> list[str]:
    # The header alone: the numbers may be more than memory holds, and have been hashed.
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{release.array}.npy") as member:
            np.lib.format.read_magic(member)
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    except Exception:  # a file that isn't ours can make the reader raise anything
        return ["release.array"]
    wrong = [] if dtype.name == release.dtype else ["release.dtype"]
    if len(shape) != len(release.shape):
        return [*wrong, "release.shape"]
    return wrong + [
        f"release.shape[{axis}]"
        for axis, (was, now) in enumerate(zip(release.shape, shape, strict=True))
        if was != now
    ]


def _compare(name: str, prefix: str, stored: Any, again: Any, detail: str) -> Check:
    fields = tuple(differences(prefix, stored.model_dump(), again.model_dump()))
    return Check(name=name, status="differs" if fields else "agrees", detail=detail, fields=fields)


def differences(name: str, stored: Any, again: Any) -> Iterator[str]:
    """Names of the leaves that are not equal."""
    if isinstance(stored, dict) and isinstance(again, dict):
        for key in stored.keys() | again.keys():
            yield from differences(f"{name}.{key}", stored.get(key), again.get(key))
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for index, (one, two) in enumerate(zip(stored, again, strict=True)):
            yield from differences(f"{name}[{index}]", one, two)
    elif stored != again:
        yield name
