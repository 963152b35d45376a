"""Use a certified release: its mechanism, rebuilt from public numbers, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dpverify.certificate.derive import build
from dpverify.certificate.files import sha256_file
from dpverify.certificate.model import Certificate
from dpverify.certificate.verify import read_certificate
from dpverify.errors import CertificateError
from dpverify.mechanism import Certifiable

__all__ = ["open_release"]


def open_release(path: Path | str) -> tuple[Certifiable, NDArray[Any]]:
    """Mechanism and released rows of a certificate.

    The mechanism's estimators turn two rows into an estimate; `step` is the size of one of the
    integers. This checks the file's hash and nothing else: `dpverify verify` does the rest.

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
        where = ".".join(str(part) for part in problem["loc"])
        raise CertificateError(f"{path}: {where}: {problem['msg']}.") from None
    release = certificate.release
    if release is None:
        raise CertificateError(f"{path}: nothing was released.")
    file = path.parent / Path(release.file).name
    if not file.is_file() or sha256_file(file) != release.sha256:
        raise CertificateError(f"{file}: is not the file that {path} certifies.")
    with np.load(file, allow_pickle=False) as archive:
        return build(certificate.inputs), archive[release.array]
