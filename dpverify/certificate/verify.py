"""Verify a certificate: read it, check all that it says again, and report what agrees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpverify._tables import html_table, text_table
from dpverify.certificate.answer import answers_beside, check_answers
from dpverify.certificate.checks import Check, certificate_path, read_certificate
from dpverify.certificate.compose import check_document
from dpverify.certificate.keys import load_public_key
from dpverify.certificate.sign import check_signatures, envelope_beside
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.execution.progress import Announce, notebook_line, phases
from dpverify.paths import to_paths
from dpverify.visible import escaped

__all__ = ["Verification", "overall", "verify"]

_HEADINGS = ("", "what", "how")
_UNSIGNED = "there is none: nobody stands by this certificate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification found.

    Attributes
    ----------
    path : of the certificate
    checks : in the order in which they were made
    """

    path: Path
    checks: tuple[Check, ...]

    @property
    def status(self) -> Literal["agrees", "differs", "inconclusive"]:
        """The worst of the checks; a refuted claim differs from what was certified."""
        return overall(self.checks)

    @property
    def ok(self) -> bool:
        """Whether everything was checked and agrees."""
        return self.status == "agrees"

    def to_dict(self) -> dict[str, Any]:
        """The status and every check, as JSON holds them."""
        return {"status": self.status, "checks": [check.to_dict() for check in self.checks]}

    def __str__(self) -> str:
        wrong = (f"no longer agrees: {field}" for check in self.checks for field in check.fields)
        return "\n".join([text_table(self._rows(), headings=_HEADINGS), *map(escaped, wrong)])

    def _repr_html_(self) -> str:
        return html_table(self._rows(), headings=_HEADINGS)

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(check.status, check.name, check.detail) for check in self.checks]


@usual_arithmetic()
def verify(
    certificate: Path | str,
    *,
    keys: Sequence[Path | str] = (),
    answer_keys: Sequence[Path | str] = (),
    replay: bool = True,
    announce: Announce | None = None,
    workers: int = -1,
) -> Verification:
    """Check a certificate, or a composed one, against itself, this code and its released files.

    Parameters
    ----------
    certificate : its file, or the folder that `certify` wrote. Released files, report and signature
        are looked for beside it; the released files of a composed certificate one folder below, too
    keys : files of public keys, each of which must have signed it
    answer_keys : those of people who signed answers to its hazards alone
    replay : whether to draw the audits again; if not, the recorded counts are taken as they are
    announce : called once per certificate with what is done and the number of draws to replay; by
        default a line below a notebook's cell shows it, and nothing elsewhere
    workers : processes that replay, −1 for all cores; no effect on the result

    Raises
    ------
    CertificateError
        If the file can't be read; a certificate that reads but disagrees is a finding.
    KeyFileError
        If a key can't be read.
    ClusterError
        If the cluster that replays is lost or unfit.

    Examples
    --------
    >>> import dpverify as dpv
    >>> dpv.verify("out").status  # doctest: +SKIP
    'agrees'
    """
    signers = [load_public_key(key) for key in to_paths("keys", keys)]
    answerers = [load_public_key(key) for key in to_paths("answer_keys", answer_keys)]
    path = certificate_path(certificate)
    fields = read_certificate(path)
    with notebook_line(wanted=announce is None) as line:
        told = announce or phases(line)
        checks = check_document(fields, path.parent, replay=replay, announce=told, workers=workers)
    envelope = envelope_beside(path)
    if signers or os.path.lexists(envelope):
        checks += check_signatures(fields, envelope, signers)
    else:
        checks.append(Check(name="signature", status="not_checked", detail=_UNSIGNED))
    if os.path.lexists(answers_beside(path)):
        checks += check_answers(fields, answers_beside(path), [*signers, *answerers])
    return Verification(path=path, checks=tuple(checks))


def overall(checks: Iterable[Check]) -> Literal["agrees", "differs", "inconclusive"]:
    """What checks say together."""
    statuses = {check.status for check in checks}
    if statuses & {"differs", "violation"}:
        return "differs"
    return "inconclusive" if "inconclusive" in statuses else "agrees"
