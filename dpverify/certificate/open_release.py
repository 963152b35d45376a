"""Use a certified release: its mechanism, rebuilt from public numbers, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ValidationError

from dpverify.certificate.archive import read_array
from dpverify.certificate.derive import build
from dpverify.certificate.schema import Certificate
from dpverify.certificate.verify import check_terms, read_certificate, released
from dpverify.errors import CertificateError, place
from dpverify.privacy import Certifiable

__all__ = ["open_release"]


def open_release(path: Path | str) -> tuple[Certifiable, NDArray[Any]]:
    """Mechanism and released rows of a certificate.

    The mechanism's estimators turn two rows into an estimate; `step` is the size of one of the
    integers. The file is checked as `dpverify verify` checks it: its hash, and that it holds the
    array that this mechanism releases and nothing else. Of the certificate nothing is proven again.

    Parameters
    ----------
    path : of certificate.json; the released file lies beside it

    Returns
    -------
    mechanism, and an array of shape (rows, columns)

    Raises
    ------
    CertificateError
        If the certificate can't be read, released nothing, or belongs to another file.
    """
    path = Path(path)
    try:
        certificate = Certificate.model_validate(read_certificate(path))
    except ValidationError as error:
        problem = error.errors()[0]
        where = place(problem["loc"])
        raise CertificateError(f"{path}: {where}: {problem['msg']}.") from None
    release = certificate.release
    if release is None:
        raise CertificateError(f"{path}: nothing was released.")
    mechanism = build(certificate.inputs)
    for check in check_terms(certificate.inputs, release, mechanism):
        if check.status != "agrees":
            raise CertificateError(f"{path}: {', '.join(check.fields)}: not {check.detail}.")
    file = path.parent / release.file
    try:
        contents = released(certificate.inputs, mechanism)
        return mechanism, read_array(file, contents, sha256=release.sha256)
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}.") from None
    except OSError as error:
        raise CertificateError(f"{file}: can't be read: {error.strerror}.") from None
