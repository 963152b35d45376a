"""Use a certified release: its mechanism, rebuilt from public numbers, and its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from dpverify._refusals import refusals
from dpverify._tables import html_table, text_table
from dpverify.certificate.build import build
from dpverify.certificate.certify import Certified
from dpverify.certificate.checks import certificate_path, check_terms, read_certificate, released
from dpverify.certificate.manifest import read_array
from dpverify.certificate.schema import Certificate
from dpverify.data.declared import DateColumn, NumberColumn
from dpverify.errors import CertificateError, extra, require_known
from dpverify.privacy import Certifiable, Estimator

__all__ = ["Release", "open_release"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What was released, and what it says.

    Attributes
    ----------
    mechanism : which released, with its estimators; its `step` is the size of a released integer
    rows : array of shape (rows, …), as it was released
    certificate : of the release

    Examples
    --------
    >>> release = open_release("out")  # doctest: +SKIP
    >>> release.errors  # doctest: +SKIP
    {'squared distance': 0.58, 'inner product': 0.31, 'cosine': 0.4}
    >>> release.to_pandas()  # doctest: +SKIP
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
        known = self.estimators
        require_known("name", name, known)
        return known[name].estimate(first, second)  # type: ignore[arg-type]

    def squared_distance(self, first: ArrayLike, second: ArrayLike) -> NDArray[Any]:
        """Squared distance of the records of two released rows, or of each two of them."""
        return self.estimate("squared distance", first, second)

    @property
    def names(self) -> list[str]:
        """Of the numbers of a released row: attributes where each is released, else places.

        Attributes are the declared columns', or numbered.
        """
        inputs, width = self.certificate.inputs, self.rows[0].size
        if not self._by_attribute:
            return [f"released {number}" for number in range(width)]
        if not inputs.columns:
            return [f"attribute {number}" for number in range(width)]
        return [name for column in inputs.columns for name in column.attributes]

    @property
    def _by_attribute(self) -> bool:
        """Whether a released row has a number for each attribute."""
        kind = self.certificate.derived.facts.get("projection", {}).get("kind")
        return kind == "identity" and self.rows[0].size == self.certificate.inputs.attributes

    @property
    def estimators(self) -> dict[str, Estimator]:
        """The mechanism's estimators by name."""
        return {estimator.name: estimator for estimator in self.mechanism.estimators()}

    @property
    def errors(self) -> dict[str, float]:
        """Root mean squared error of one estimate by each estimator, at a synthetic pair.

        The pair is of two independent records that are made up from the declared domain. A cosine's
        error is the delta method's, which holds where it is small. Above 1, by which not even a 0
        is off, it is left out: there the noise leaves nothing of the norms.
        """
        errors = {
            found.name: math.hypot(
                float(found.expectation) - float(found.truth), float(found.variance) ** 0.5
            )
            for found in self.certificate.derived.estimators
        }
        return {name: error for name, error in errors.items() if name != "cosine" or error <= 1}

    def to_numpy(self) -> NDArray[Any]:
        """The rows in the unit of the attributes as the mechanism reads them, as doubles.

        That is 0 to 1 for declared columns and ranges. Bits and hash values are as released.
        """
        step = self.mechanism.step()
        return self.rows if step is None else self.rows * float(step)

    def to_pandas(self) -> Any:
        """The rows as a data frame with `names`, numbers in the owner's unit (extra ``tables``).

        Where each attribute is released, a number is again in the unit of its column or range, and
        a date is a number of days since 1970. Shares of categories, of tokens and of missing values
        stay what `data.columns` makes of them, halves among zeros.
        """
        with extra("tables", "to_pandas"):
            import pandas as pd
        values = self.to_numpy().reshape(len(self.rows), -1)
        frame = pd.DataFrame(values, columns=self.names)
        for name, (low, high) in self._ends().items():
            frame[name] = low + (high - low) * frame[name]
        dates = [c.name for c in self.certificate.inputs.columns if isinstance(c, DateColumn)]
        return frame.rename(columns={name: f"{name} (days since 1970)" for name in dates})

    def _ends(self) -> dict[str, tuple[float, float]]:
        """What 0 and 1 stand for in the owner's unit, of attributes that have one."""
        inputs = self.certificate.inputs
        if not self._by_attribute:
            return {}
        if inputs.ranges:
            ends = [(float(own.low), float(own.high)) for own in inputs.ranges]
            return dict(zip(self.names, ends, strict=True))
        numbers = [c for c in inputs.columns if isinstance(c, NumberColumn | DateColumn)]
        return {column.attributes[0]: column.ends for column in numbers}

    def __str__(self) -> str:
        return text_table(self._summary())

    def _repr_html_(self) -> str:
        return html_table(self._summary())

    def _summary(self) -> list[tuple[str, str]]:
        certificate, names = self.certificate, self.names
        several = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        errors = [
            f"{name}: off by about {error:.3g} for two unlike records"
            for name, error in self.errors.items()
        ]
        rows = [
            ("rows", f"{len(self.rows):,} of {len(names):,} numbers: {several}"),
            *(("" if number else "estimators", text) for number, text in enumerate(errors)),
        ]
        return [*rows, *certificate.summary()]


def open_release(certificate: Certified | Path | str) -> Release:
    """Open the release of a certificate, to estimate from it.

    The file is checked as `dpverify verify` checks it: its hash, and that it holds the array that
    this mechanism releases and nothing else. Of the certificate nothing is proven again.

    Parameters
    ----------
    certificate : what `certify` returned, its file, or the folder that was written; the released
        file lies next to it

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
    where = certificate.folder if isinstance(certificate, Certified) else certificate
    path = certificate_path(where)
    try:
        stated = Certificate.model_validate(read_certificate(path))
    except ValidationError as error:
        raise CertificateError(f"{path}: {refusals(error)[0]}.") from None
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
    return Release(mechanism=mechanism, rows=rows, certificate=stated)
