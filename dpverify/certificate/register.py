"""An entry for the Differential Privacy Deployments Registry, from a certificate.

The registry (opendp/deployments-registry-data) keeps a YAML file a deployment, of a public schema:
fields in three tiers, each with more detail. What a certificate proves or records is filled in
here; what only the curator knows is asked for, and stands as `UNDECIDED` where nobody said it. The
fields are those of the schema of July 2026 (commit 3e9c812).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import rfc8785

from dpverify.certificate.configuration import UNDECIDED
from dpverify.certificate.meaning import domain_in_words
from dpverify.certificate.rounding import at_most
from dpverify.certificate.schema import Certificate
from dpverify.errors import CertificateError, require_known

__all__ = ["SECTORS", "entry", "file_name", "yaml"]

SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


def entry(
    certificate: Certificate,
    *,
    name: str = "",
    curators: Sequence[str] = (),
    description: str = "",
    use: str = "",
    region: str = UNDECIDED,
    sector: str | None = None,
    authors: Sequence[str] = (UNDECIDED,),
    link: str = "",
    notes: str = "",
) -> dict[str, Any]:
    """The registry's entry for a certified release.

    Parameters
    ----------
    certificate : of one release
    name, curators, description, use, region : of the data product, as its readers should know it;
        where they are empty, what the owner says in the certificate's `about`
    sector : one of `SECTORS`
    authors : who fills in the entry
    link : where the certificate can be read
    notes : what else its readers should know, such as `dpverify.certificate.sign.standing`

    Returns
    -------
    the entry by the names of the registry's schema; `yaml` writes it

    Raises
    ------
    CertificateError
        If nothing was released.
    ParameterError
        If the registry has no such sector.

    Examples
    --------
    >>> entry(certificate, name="Digits", curators=["NIST"])["tier"]  # doctest: +SKIP
    3
    """
    if certificate.release is None:
        raise CertificateError("nothing was released: there is no deployment to register.")
    if sector is not None:
        require_known("sector", sector, SECTORS)
    inputs, derived = certificate.inputs, certificate.derived
    about = inputs.about
    name = name or about.get("title", UNDECIDED)
    curators = list(curators) or [about.get("organisation", UNDECIDED)]
    data = ", ".join(about[field] for field in ("data_set", "period") if field in about)
    sha256 = hashlib.sha256(rfc8785.dumps(certificate.model_dump(mode="json"))).hexdigest()
    created = certificate.environment.created[:10]
    basic = {
        "name": name,
        "data_curators": curators,
        "intended_use": use or about.get("purpose", UNDECIDED),
        "data_product_type": "Dataset",
        "data_product_region": region,
        "description": description or data or UNDECIDED,
        "publication_date": created,
        **({} if sector is None else {"data_product_sector": sector}),
    }
    return {
        "url_slug": _slug(name, curators, created),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(certificate),
            "privacy_loss": {
                "privacy_unit": derived.protects,
                "privacy_unit_details": f"Neighbouring data sets have {inputs.rows} records each, "
                f"and differ in {derived.protects}.",
                "privacy_parameters": {
                    "epsilon": _at_least(inputs.epsilon),
                    "delta": _at_least(inputs.delta),
                },
                "privacy_parameters_details": _parameters(certificate),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The curator holds the records and releases a sketch.",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "None is part of the release. Estimates from it cost nothing.",
                "composition": "One release. What else comes from these records adds to its loss.",
            },
            "implementation": _implementation(certificate),
            "administrative": {
                "sources": f"{link} " * bool(link) + "A certificate that anybody can check "
                "(`dpverify verify`): SHA-256 of its canonical JSON "
                f"{sha256}, of the released file {certificate.release.sha256}.",
                **({"notes": notes} if notes else {}),
                "registry_authors": list(authors),
            },
        },
    }


def file_name(fields: Mapping[str, Any]) -> str:
    """What the registry would call the file of an entry."""
    return str(fields["url_slug"]).replace("-", "_") + ".yaml"


def yaml(fields: Mapping[str, Any]) -> str:
    """An entry in YAML: nested by two spaces, every text in quotes, visible or escaped."""
    return "".join(f"{line}\n" for line in _lines(fields, ""))


def _lines(fields: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for key, value in fields.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *_lines(value, indent + "  ")]
        elif isinstance(value, list):
            lines += [f"{indent}{key}:", *(f"{indent}  - {_scalar(item)}" for item in value)]
        else:
            lines.append(f"{indent}{key}: {_scalar(value)}")
    return lines


def _scalar(value: str | float) -> str:
    if isinstance(value, float):  # YAML 1.1 reads a number with an exponent only with a point
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def _variant(certificate: Certificate) -> dict[str, str]:
    inputs, notion = certificate.inputs, certificate.derived.guarantee.notion
    usual = "Pure DP" if inputs.delta == 0 else "Approximate DP"
    return {
        "variant_name": usual if notion == "differential privacy" else "Custom",
        "data_domain": f"Data sets of {inputs.rows} records of {inputs.attributes} attributes, "
        f"{domain_in_words(inputs)}; declared beforehand and not read off the records.",
        "unprotected_quantities": "The number of records and of attributes, and the public seed.",
    }


def _parameters(certificate: Certificate) -> str:
    guarantee, rates = certificate.derived.guarantee, certificate.derived.attacker
    means = "".join(
        f" With false alarms in {rate.false_positive_rate} of the cases the strongest attacker "
        f"notices the change in at most {at_most(rate.true_positive_rate.upper, 4)}."
        for rate in rates
    )
    return (
        f"A proven upper bound on all of the privacy curve, by {guarantee.theorem}: "
        f"{guarantee.notion} over {guarantee.randomness}.{means}"
    )


def _implementation(certificate: Certificate) -> dict[str, str]:
    inputs, derived, release = certificate.inputs, certificate.derived, certificate.release
    assert release is not None  # noqa: S101  # `entry` refused it
    chosen = ", ".join(f"{name} = {value}" for name, value in sorted(inputs.parameters.items()))
    attack = derived.white_box
    verdict = attack.verdict.replace("_", " ")
    worth = "" if derived.usefulness is None else f" What it is worth: {derived.usefulness}."
    return {
        "mechanisms": f"{inputs.mechanism}{f' with {chosen}' if chosen else ''}, of dpverify "
        f"{certificate.environment.versions.get('dpverify', 'of an unknown version')}. Records are "
        "put on a public grid, products are exact in whole numbers, and noise is exactly rounded: "
        "the guarantee holds for the numbers that are released and not for ideal real ones. "
        f"Randomness: {release.randomness}. Running time is not protected. Before the release the "
        "code was attacked by likelihood ratios with "
        f"{certificate.evidence.draws} draws a side: {verdict}.",
        "justification": f"{UNDECIDED}.{worth}",
    }


def _at_least(number: Fraction) -> float:
    """The first double that is written as the number, or as a larger one."""
    double = float(number)
    while Fraction(repr(double)) < number:
        double = math.nextafter(double, math.inf)
    return double


def _slug(name: str, curators: Sequence[str], created: str) -> str:
    text = "-".join([name, *curators, created[:4]]).lower()
    return "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in text).split())
