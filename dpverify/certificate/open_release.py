"""Use a certified release: its mechanism, rebuilt from public numbers, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from dpverify.certificate.archive import read_array
from dpverify.certificate.checks import certificate_path, check_terms, read_certificate, released
from dpverify.certificate.derive import build
from dpverify.certificate.schema import Certificate
from dpverify.errors import CertificateError, ParameterError, place
from dpverify.privacy import Certifiable

__all__ = ["OpenedRelease", "open_release"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRelease:
    """What was released, and what it says.

    Attributes
    ----------
    mechanism : which released, with its estimators; its `step` is the size of a released integer
    rows : array of shape (rows, …), as it was released
    certificate : of the release
    """

    mechanism: Certifiable
    rows: NDArray[Any]
    certificate: Certificate

    def estimate(self, name: str, first: ArrayLike, second: ArrayLike) -> NDArray[Any]:
        """What released rows say of their records, by the name of the mechanism's estimator.

        Parameters
        ----------
        name : as "squared distance"; the certificate lists the estimators
        first, second : released rows, one of each or as many, or a release and a public query

        Raises
        ------
        ParameterError
            If the mechanism has no such estimator.
        """
        known = {estimator.name: estimator for estimator in self.mechanism.estimators()}
        if name not in known:
            raise ParameterError("name", repr(name), f"one of {', '.join(known)}")
        return known[name].estimate(first, second)  # type: ignore[arg-type]

    def squared_distance(self, first: ArrayLike, second: ArrayLike) -> NDArray[Any]:
        """Squared distance of the records of two released rows, or of each two of them."""
        return self.estimate("squared distance", first, second)

    def __str__(self) -> str:
        return str(self.certificate)

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_()  # a protocol's name


def open_release(certificate: Path | str) -> OpenedRelease:
    """Open the release of a certificate, to estimate from it.

    The file is checked as `dpverify verify` checks it: its hash, and that it holds the array that
    this mechanism releases and nothing else. Of the certificate nothing is proven again.

    Parameters
    ----------
    certificate : its file, or the folder that `certify` wrote; the released file lies next to it

    Raises
    ------
    CertificateError
        If the certificate can't be read, released nothing, or belongs to another file.

    Examples
    --------
    >>> import dpverify as dpv
    >>> release = dpv.open_release("out")  # doctest: +SKIP
    >>> release.squared_distance(release.rows[0], release.rows[1])  # doctest: +SKIP
    """
    path = certificate_path(certificate)
    try:
        stated = Certificate.model_validate(read_certificate(path))
    except ValidationError as error:
        problem = error.errors()[0]
        where = place(problem["loc"])
        raise CertificateError(f"{path}: {where}: {problem['msg']}.") from None
    release = stated.release
    if release is None:
        raise CertificateError(f"{path}: nothing was released.")
    mechanism = build(stated.inputs)
    for check in check_terms(stated.inputs, release, mechanism):
        if check.status != "agrees":
            raise CertificateError(f"{path}: {', '.join(check.fields)}: not {check.detail}.")
    file = path.parent / release.file
    try:
        rows = read_array(file, released(stated.inputs, mechanism), sha256=release.sha256)
    except CertificateError as error:
        raise CertificateError(f"{file}: {error}.") from None
    except OSError as error:
        raise CertificateError(f"{file}: can't be read: {error.strerror}.") from None
    return OpenedRelease(mechanism=mechanism, rows=rows, certificate=stated)
