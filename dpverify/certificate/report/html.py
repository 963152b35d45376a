"""The report: a certificate for people to read, one HTML file that needs nothing else.

It is a pure function of the certificate. Nothing is computed here but roundings and ratios; what is
rounded is rounded to the safe side, or said to be about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import get_args

from dpverify._decimals import context
from dpverify.certificate.answered import Answered
from dpverify.certificate.configuration import AboutField
from dpverify.certificate.hazards import EDITION
from dpverify.certificate.meaning import SIZES, domain_in_words
from dpverify.certificate.report import plots
from dpverify.certificate.rounding import (
    about,
    at_least,
    at_most,
    decimal_of,
    exact,
    percent_at_most,
)
from dpverify.certificate.schema import Certificate, Ends, EventFinding, HazardAnswer
from dpverify.enclosure import exact_string
from dpverify.errors import extra
from dpverify.execution.arithmetic import usual_arithmetic

with extra("report", "a report"):
    from jinja2 import Environment, PackageLoader, StrictUndefined, Template

__all__ = ["render", "template"]

_NEARLY = Decimal("0.99999999")  # statistics have nine significant digits
_SECTIONS = ("grid", "projection", "sensitivity", "noise")
_SAID_AS = {
    "pass": "isn't so here",
    "fail": "is so here",
    "not_applicable": "can't be so here",
}
_WORTH = {
    "useful": " For its purpose the release is useful.",
    "coarse": " For its purpose the release is coarse: only averages over many estimates say much.",
    "useless": " For its purpose the release is useless.",
}
_SYMBOLS = {"l1": "ℓ1", "l2": "ℓ2", "sha256": "SHA-256", "sigma": "σ", "epsilon": "ε"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A tested event with its counts. `rows` is 0 but for the first event of a pair."""

    pair: str
    rows: int
    finding: EventFinding
    hits: int
    false_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """A public number: its safe end, and its enclosure where it has one."""

    label: str
    value: str
    side: str
    enclosure: Ends | None


@usual_arithmetic()
def render(certificate: Certificate, later: Sequence[Answered] = ()) -> str:
    """Report of a certificate, as one self-contained HTML page.

    Parameters
    ----------
    certificate : the only source; the same certificate gives the same bytes
    later : answers to its hazards that were given after the release, oldest first, whose signatures
        hold; the page with them isn't the one that belongs to the certificate

    Returns
    -------
    HTML without scripts and without anything to fetch. Every string of the certificate is escaped.
    """
    inputs, derived = certificate.inputs, certificate.derived
    attack, power = derived.white_box, derived.white_box.power
    ceiling = decimal_of(attack.ceiling)
    findings = list(_findings(certificate))
    factor = decimal_of(inputs.epsilon, ROUND_CEILING)
    excess = decimal_of(power.smallest_excess)
    answered = {hazard: answers for answers in later for hazard in answers.answers}
    asked = [
        answer
        for answer in certificate.checklist
        if answer.answer == "needs_owner" and answer.id not in answered
    ]
    return template("report.html.j2").render(
        certificate=certificate,
        later=answered,
        judgement=_judgement(certificate, asked),
        right=at_most(str(100 * plots.right_guesses(certificate)), 4),
        said_as=_SAID_AS,
        inputs=inputs,
        evidence=certificate.evidence,
        derived=derived,
        attack=attack,
        release=certificate.release,
        findings=findings,
        refuted=[row for row in findings if row.finding.refuted_at is not None],
        factor=str(context(50).exp(factor)) if factor < 1000 else None,
        whole_width=_is_whole_width(certificate),
        domain=domain_in_words(inputs),
        ratio=str(decimal_of(attack.epsilon_lower) / ceiling) if ceiling > 0 else None,
        bounded=decimal_of(attack.epsilon_lower) > 0,
        noise_scale=power.noise_scale,
        excess=power.smallest_excess if excess.is_finite() else None,
        whole_reach=power.reach is not None
        and decimal_of(power.reach) >= decimal_of(inputs.epsilon) * _NEARLY,
        moments=list(zip(derived.estimators, certificate.evidence.moments, strict=True)),
        moment_verdicts=Counter(
            verdict
            for finding in derived.estimators
            for verdict in (finding.mean_verdict, finding.variance_verdict)
        ),
        roc=list(zip(attack.roc_thresholds, certificate.evidence.roc, strict=True)),
        distances=list(zip(derived.predictions, certificate.evidence.probe_estimates, strict=True)),
        outside_band=plots.outside_band(certificate),
        facts=_sections(derived.facts),
        edition=EDITION,
        words=Counter(answer.answer for answer in certificate.checklist),
        owned=[answer for answer in certificate.checklist if answer.owner],
        asked=asked,
        about=[
            (field.replace("_", " "), inputs.about[field])
            for field in get_args(AboutField)
            if field in inputs.about
        ],
        chosen_size=next((inputs.parameters[n] for n in SIZES if n in inputs.parameters), None),
        best_size=min(derived.sizes, key=lambda point: float(point.error), default=None),
        figures={
            "people": None if attack.verdict == "violation" else plots.people_plot(certificate),
            "privacy": plots.privacy_plot(certificate),
            "roc": plots.roc_plot(certificate),
            "distances": plots.distance_plot(certificate),
            "sizes": plots.size_plot(certificate) if len(derived.sizes) > 1 else None,
        },
    )


def _judgement(certificate: Certificate, asked: Sequence[HazardAnswer]) -> str:
    """All of the page in a sentence or three."""
    derived = certificate.derived
    if derived.white_box.verdict == "violation":
        return "An attack refuted the protection that was claimed: don't use this."
    notion = derived.guarantee.notion
    decided = derived.white_box.verdict == "no_violation_found"
    attack = (
        "an attack on the program found nothing against it"
        if decided
        else "an attack on the program could neither refute it nor come near enough to"
    )
    worth = "" if derived.usefulness is None else _WORTH[derived.usefulness.verdict]
    hazards = f"{len(asked)} hazards" if len(asked) > 1 else "one hazard"
    left = f" Before you sign, ask the owner about {hazards}." if asked else ""
    return f"{notion.capitalize()} was proven, and {attack}.{worth}{left}"


@lru_cache(maxsize=2)
def template(name: str) -> Template:
    """A template of this package: escaped, and an error where a name is unknown."""
    environment = Environment(
        loader=PackageLoader("dpverify.certificate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "digits": exact_string,
        "about": about,
        "at_least": at_least,
        "at_most": at_most,
        "exact": exact,
        "percent": percent_at_most,
        "grouped": "{:,}".format,
        "sentence": lambda text: text[:1].upper() + text[1:],
        "magnitude": lambda text: text.removeprefix("-"),
        "deviations": _deviations,
        "excess_over": _excess_over,
    }
    return environment.get_template(name)


def _deviations(mean: str, expectation: str, variance: str) -> str:
    """Distance of a sample mean from its expectation, in predicted standard deviations."""
    spread = decimal_of(variance)
    if spread.is_nan() or spread <= 0:
        return "nan"
    return str((decimal_of(mean) - decimal_of(expectation)) / spread.sqrt())


def _excess_over(value: str, predicted: str) -> str:
    """Relative difference from a prediction."""
    expected = decimal_of(predicted)
    if expected.is_nan() or expected <= 0:
        return "nan"
    return str(decimal_of(value) / expected - 1)


def _findings(certificate: Certificate) -> Iterator[_Finding]:
    counted = [
        (pair.pair, len(pair.counts) if place == 0 else 0, counts)
        for pair in certificate.evidence.white_box
        for place, counts in enumerate(pair.counts)
    ]
    for (pair, rows, counts), finding in zip(
        counted, certificate.derived.white_box.findings, strict=True
    ):
        yield _Finding(
            pair=pair, rows=rows, finding=finding, hits=counts.hits, false_hits=counts.false_hits
        )


def _sections(facts: dict[str, dict[str, str | int | Ends]]) -> dict[str, list[_Fact]]:
    """Facts by section. Sorted, since an object read from JSON has lost the mechanism's order."""
    known = {name: place for place, name in enumerate(_SECTIONS)}
    names = sorted(facts, key=lambda name: (known.get(name, len(known)), name))
    return {_label(name): _facts(name, facts[name]) for name in names}


def _facts(section: str, numbers: dict[str, str | int | Ends]) -> list[_Fact]:
    # Less noise protects less, more sensitivity too: the other end is the safe one.
    safe_end, side = ("lower", "at least") if section == "noise" else ("upper", "at most")
    return [
        _Fact(
            label=_label(name),
            value=getattr(value, safe_end) if isinstance(value, Ends) else str(value),
            side=side if isinstance(value, Ends) and value.lower != value.upper else "",
            enclosure=value if isinstance(value, Ends) and value.lower != value.upper else None,
        )
        for name, value in sorted(numbers.items())
    ]


def _label(name: str) -> str:
    return " ".join(_SYMBOLS.get(word, word) for word in name.split("_"))


def _is_whole_width(certificate: Certificate) -> bool:
    """Whether the adjacency lets an attribute take any two values of the domain."""
    adjacency, domain = certificate.inputs.adjacency, certificate.inputs.domain
    if adjacency.kind != "attribute" or domain.kind != "box":
        return False
    width = domain.numbers["high"] - domain.numbers["low"]
    return adjacency.numbers["beta"] >= width
