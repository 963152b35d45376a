"""A certificate in short: what `print` shows of it, and what `--json` gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpverify.certificate.schema import Certificate, Inputs, Release

__all__ = ["short", "summary"]

_ANSWERS = ("pass", "fail", "needs_owner", "not_applicable")


def short(certificate: Certificate) -> dict[str, Any]:
    """The results, as JSON holds them."""
    derived = certificate.derived
    return {
        "protects": derived.protects,
        "mechanism": certificate.inputs.mechanism,
        "epsilon": derived.guarantee.epsilon.model_dump(),
        "delta": derived.guarantee.delta.model_dump(),
        "sigma": _sigma(certificate),
        "verdict": derived.white_box.verdict,
        "epsilon_lower": derived.white_box.epsilon_lower,
        "ceiling": derived.white_box.ceiling,
        "estimators": [estimator.model_dump() for estimator in derived.estimators],
        "attacker": [rate.model_dump() for rate in derived.attacker],
        "hazards": {answer.id: answer.answer for answer in certificate.checklist},
    }


def summary(certificate: Certificate) -> list[tuple[str, str]]:
    """The results, as rows of a table."""
    inputs, derived, release = certificate.inputs, certificate.derived, certificate.release
    attack, guarantee = derived.white_box, derived.guarantee
    sigma = _sigma(certificate)
    released = "nothing" if release is None else _released(release)
    rows = [
        ("protects", derived.protects),
        ("mechanism", f"{_mechanism(inputs)}, released: {released}"),
        ("proven", f"{guarantee.notion}, epsilon = {inputs.epsilon}, delta = {inputs.delta}"),
        ("", f"by {guarantee.theorem}"),
        ("", f"delta({inputs.epsilon}) <= {guarantee.delta.upper}"),
    ]
    if isinstance(sigma, dict):
        rows.append(("noise", f"sigma = {sigma['upper']}, exactly rounded to the grid"))
    rows += [
        (
            "attacked",
            f"{attack.verdict}, at level {inputs.alpha} with {inputs.draws} draws per side",
        ),
        ("", f"epsilon >= {attack.epsilon_lower} shown, {attack.ceiling} to be expected at best"),
        ("", f"would have found noise scaled by: {attack.power.noise_scale or 'nothing'}"),
        ("", f"could have refuted the curve up to epsilon: {attack.power.reach or 'nowhere'}"),
    ]
    rows += [
        (
            "estimator" if number == 0 else "",
            f"{e.name} ({e.formulas}): mean {e.mean_verdict}, variance {e.variance_verdict}",
        )
        for number, e in enumerate(derived.estimators)
    ]
    counts: Counter[str] = Counter(answer.answer for answer in certificate.checklist)
    rows.append(("hazards", ", ".join(f"{counts[answer]} {answer}" for answer in _ANSWERS)))
    return rows


def _sigma(certificate: Certificate) -> Any:
    value = certificate.derived.facts.get("noise", {}).get("sigma")
    return value if value is None or isinstance(value, str | int) else value.model_dump()


def _mechanism(inputs: Inputs) -> str:
    settings = ", ".join(f"{name} = {value}" for name, value in inputs.parameters.items())
    return f"{inputs.mechanism} {settings}".rstrip()


def _released(release: Release) -> str:
    size = " x ".join(map(str, release.shape))
    return f"{size} {'bytes' if release.dtype == 'uint8' else 'whole numbers'}"
