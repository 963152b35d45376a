"""The certificate's schema, version 1: the one source of truth for report and verification.

Every number is one of three things. `Inputs` are what the owner chose. `Evidence` is what the
replayable randomness produced from them. `Derived` follows from both by the accountant and the
auditor alone. Nothing here is computed from the real records: the number of rows is public (the
adjacency replaces, it doesn't add), and the hash of the released file is the one exception.

Exact numbers are decimal strings or fractions, enclosures are pairs of decimal strings rounded
outwards, statistics are strings of nine significant digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from dpverify._exact import Exact
from dpverify._refusals import refusals
from dpverify._registry import ADJACENCIES, DOMAINS
from dpverify._tables import html_table, text_table
from dpverify.certificate.configuration import AboutField, OwnerSettings
from dpverify.certificate.fields import (
    PROGRAMS,
    Count,
    Document,
    OwnWords,
    Program,
    Secure,
    Sha256,
    Statistic,
    Time,
    Version,
    WholeDocument,
)
from dpverify.certificate.rounding import about
from dpverify.data.adjacency import Adjacency
from dpverify.data.declared import DeclaredColumn
from dpverify.data.domain import Domain
from dpverify.enclosure import Enclosure, exact_string
from dpverify.errors import ConfigurationError
from dpverify.guarantee import Guarantee

__all__ = [
    "SCHEMA",
    "Answer",
    "AttackerRate",
    "Certificate",
    "CurvePoint",
    "Derived",
    "Ends",
    "Environment",
    "EstimatorFinding",
    "EventCounts",
    "EventFinding",
    "Evidence",
    "GuaranteeStatement",
    "HazardAnswer",
    "Inputs",
    "KindInput",
    "MomentEvidence",
    "OwnerAnswer",
    "PairEvidence",
    "PowerStatement",
    "Prediction",
    "Range",
    "Release",
    "ReliedOn",
    "SizeError",
    "Usefulness",
    "WhiteBoxFinding",
    "json_schema",
]

SCHEMA = "dpverify-certificate/1"

Answer = Literal["pass", "fail", "needs_owner", "not_applicable"]
_ANSWERS: Final[dict[Answer, str]] = {
    "pass": "passed",
    "fail": "failed",
    "needs_owner": "for the owner to answer",
    "not_applicable": "not applicable",
}


class Ends(Document):
    """An enclosure: lower ≤ true value ≤ upper."""

    lower: str
    upper: str

    @classmethod
    def of(cls, enclosure: Enclosure) -> Ends:
        """The enclosure in decimal."""
        return cls(**enclosure.as_json())


class KindInput(Document):
    """An adjacency or a domain: its kind and its exact numbers."""

    kind: str
    numbers: dict[str, Exact]

    @classmethod
    def of(cls, kind: str, numbers: Mapping[str, Fraction]) -> KindInput:
        """A kind with its numbers."""
        return cls(kind=kind, numbers=dict(numbers))


class Range(Document):
    """The least and the largest value that the owner declares, exact."""

    low: Exact
    high: Exact


class OwnerAnswer(Document):
    """What the owner says of a hazard that no computation can judge."""

    answer: Literal["pass", "fail", "not_applicable"]
    reason: str

    @classmethod
    def of(cls, given: OwnerSettings) -> OwnerAnswer:
        """The answer as a configuration gives it."""
        return cls(answer=given.answer, reason=given.reason)


class Inputs(Document):
    """What the owner chose, and what the owner says.

    Where there are `ranges`, every column was brought from its own to [0, 1] before anything else,
    and all that a certificate says of records is of the scaled ones. Where there are `columns`,
    they became the attributes, in order (`dpverify.data.declared`). `purpose` is the range of what
    the first estimator estimates, of records as the mechanism reads them. `about` is what the
    owner calls the release; nothing follows from it.
    """

    mechanism: str
    parameters: dict[str, Count | str]
    rows: Annotated[int, Field(ge=1, le=10**12)]
    attributes: Annotated[int, Field(ge=1, le=10**9)]
    domain: KindInput
    outside: Literal["refuse", "clip"] | None
    ranges: list[Range] = Field(default_factory=list)
    columns: list[DeclaredColumn] = Field(default_factory=list)
    adjacency: KindInput
    epsilon: Exact
    delta: Exact
    projection_seed: Count
    alpha: Exact
    draws: Annotated[int, Field(ge=1, le=10**9)]
    moment_draws: Annotated[int, Field(ge=2, le=10**9)]
    audit_seed: Count
    purpose: Range | None = None
    about: dict[AboutField, OwnWords] = Field(default_factory=dict)
    owner: dict[str, OwnerAnswer] = Field(default_factory=dict)

    def __hash__(self) -> int:
        # Of what can be hashed: enough to tell releases apart.
        return hash((self.mechanism, self.rows, self.epsilon, self.delta, self.projection_seed))

    def declared_domain(self) -> Domain:
        """What a record may be."""
        outside = {} if self.outside is None else {"outside": self.outside}
        return DOMAINS.make(self.domain.kind, self.domain.numbers, **outside)

    def protected(self) -> Adjacency:
        """Whom the release protects."""
        return ADJACENCIES.make(self.adjacency.kind, self.adjacency.numbers)

    @classmethod
    def checked(cls, **fields: Any) -> Inputs:
        """Inputs that a user gives.

        Raises
        ------
        ConfigurationError
            If one isn't of its kind, or has more digits than a certificate holds.
        """
        try:
            return cls(**fields)
        except ValidationError as error:
            refused = refusals(error)[0]
            raise ConfigurationError(
                f"{refused.where} can't be in a certificate: it {refused.rule}."
            ) from None


class EventCounts(Document):
    """How often an event happened on its own side and on the other."""

    hits: Count
    false_hits: Count


class PairEvidence(Document):
    """Counts of every event for one pair of neighbours."""

    pair: str
    counts: list[EventCounts]


class MomentEvidence(Document):
    """Sample moments of one estimator over fresh projections and noise."""

    estimator: str
    mean: Statistic
    variance: Statistic
    kurtosis: Statistic
    draws: Count
    undefined: Count


class Evidence(Document):
    """What the replayable audits drew."""

    draws: Count
    white_box: list[PairEvidence]
    roc: list[EventCounts]
    moments: list[MomentEvidence]
    probe_estimates: list[Statistic]


class ReliedOn(Document):
    """A statement of a paper that the proof uses, and what its check found."""

    id: str
    verdict: Literal["confirmed_exactly", "confirmed_statistically", "conservative"]


class GuaranteeStatement(Document):
    """The claim with its conditions."""

    notion: Literal["differential privacy", "individual differential privacy"]
    epsilon: Ends
    delta: Ends
    randomness: str
    data_choice: str
    theorem: str
    assumptions: list[str]
    statements: list[ReliedOn]


class CurvePoint(Document):
    """One point of the privacy curve.

    `published` is the δ of the best known published theorem for this noise, where there is one;
    `shown` the δ that the audit's counts show to be reached, at a level of their own.
    """

    epsilon: str
    delta: Ends
    published: str | None
    shown: str


class AttackerRate(Document):
    """What the curve leaves to the strongest attacker, and the threshold that proves it."""

    false_positive_rate: str
    threshold: str
    true_positive_rate: Ends


class EventFinding(Document):
    """What one event's counts prove at its level, which was fixed before any draw."""

    pair: str
    event: str
    order: Literal["record against neighbour", "neighbour against record"]
    threshold: str
    level: str
    epsilon_lower: str
    refuted_at: str | None


class PowerStatement(Document):
    """What the audit would have found with probability 0.99."""

    noise_scale: str | None
    smallest_excess: str
    reach: str | None


class WhiteBoxFinding(Document):
    """The likelihood-ratio attack."""

    verdict: Literal["violation", "no_violation_found", "inconclusive"]
    tests: Count
    epsilon_lower: str
    ceiling: str
    findings: list[EventFinding]
    power: PowerStatement
    roc_thresholds: list[str]


class EstimatorFinding(Document):
    """An estimator's formulas at one synthetic pair, and whether draws refute them."""

    name: str
    formulas: Literal["exact", "delta method"]
    truth: str
    expectation: str
    variance: str
    mean_verdict: Literal["refuted", "confirmed_within_margin", "inconclusive"]
    variance_verdict: Literal["refuted", "confirmed_within_margin", "inconclusive"]

    def __str__(self) -> str:
        verdicts = f"mean {self.mean_verdict}, variance {self.variance_verdict}"
        if self.mean_verdict == self.variance_verdict:
            verdicts = f"mean and variance {self.mean_verdict}"
        return f"{self.name} ({self.formulas}): {verdicts.replace('_', ' ')}"


class Prediction(Document):
    """What the first estimator estimates for a synthetic pair, with its predicted moments."""

    truth: str
    expectation: str
    deviation: str


class Usefulness(Document):
    """What one estimate tells of a quantity in a range of interest; see `usefulness`."""

    quantity: str
    low: Statistic
    high: Statistic
    declared: bool
    error: Statistic
    verdict: Literal["useful", "coarse", "useless"]

    def __str__(self) -> str:
        low, high, error = (about(number, 3) for number in (self.low, self.high, self.error))
        off = (
            f"one estimate of the {self.quantity} is off by about {error}, where a range from "
            f"{low} to {high} "
            + ("was declared" if self.declared else "is typical of the declared domain")
        )
        match self.verdict:
            case "useless":
                return f"useless: {off}, and a guess in the middle of it is nearer"
            case "coarse":
                share = float(self.error) / (float(self.high) - float(self.low))
                many = math.ceil((10 * share) ** 2)
                return (
                    f"coarse: {off}; the mean of about {many:,} independent estimates is known to "
                    "a tenth of that range"
                )
            case "useful":
                return (
                    f"useful: {off}; values a quarter of it apart are put in the right order in 9 "
                    "of 10 cases or more"
                )


class SizeError(Document):
    """Predicted root mean squared error of the first estimator for a sketch of another size."""

    size: Count
    error: str


class Derived(Document):
    """What follows from inputs and evidence."""

    protects: str
    guarantee: GuaranteeStatement
    facts: dict[str, dict[str, str | int | Ends]]
    curve: list[CurvePoint]
    far_delta: Ends
    attacker: list[AttackerRate]
    white_box: WhiteBoxFinding
    moment_level: str
    margin_mean: str
    margin_variance: str
    estimators: list[EstimatorFinding]
    predictions: list[Prediction]
    usefulness: Usefulness | None
    sizes: list[SizeError]


class HazardAnswer(Document):
    """A hazard of the checklist, how it is answered, and on what evidence.

    `owner` is true where the answer rests on the owner's word.
    """

    id: str
    title: str
    section: str
    answer: Answer
    evidence: str
    owner: bool


class Release(Document):
    """The released file, or the manifest of a release in parts; shape and type are of all rows."""

    file: Literal["sketch.npz", "manifest.json"]
    sha256: Sha256
    array: Literal["steps"]
    shape: list[Count]
    dtype: str
    step: Ends | None
    randomness: Secure

    def size(self) -> str:
        """Its shape and what its numbers are, in words."""
        shape = " x ".join(map(str, self.shape))
        return f"{shape} {'bytes' if self.dtype == 'uint8' else 'whole numbers'}"


class Environment(Document):
    """Versions, platform and time: held by the digest, and by a signature, alone."""

    created: Time
    versions: Annotated[dict[Program, Version], Field(min_length=len(PROGRAMS))]
    platform: Annotated[str, Field(pattern="^[!-~]{1,50} [!-~]{0,50}$")]


class Certificate(WholeDocument):
    """A whole certificate.

    `release` is null where an audit found a violation: then nothing was released.
    """

    schema_version: Literal["dpverify-certificate/1"] = Field(alias="schema")
    inputs: Inputs
    evidence: Evidence
    derived: Derived
    checklist: list[HazardAnswer]
    release: Release | None
    environment: Environment
    digest: Sha256

    def guarantee(self) -> Guarantee:
        """The guarantee of what was released, for `dpverify.compose`; see `rebuilt_guarantee`."""
        from dpverify.certificate.rebuilt import rebuilt_guarantee  # which imports this

        return rebuilt_guarantee(self)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as its file holds it."""
        return self.model_dump(by_alias=True)

    def __str__(self) -> str:
        return text_table(self.summary())

    def _repr_html_(self) -> str:
        return html_table(self.summary())

    def short(self) -> dict[str, Any]:
        """The results, as ``--json`` gives them."""
        derived = self.derived
        return {
            "protects": derived.protects,
            "mechanism": self.inputs.mechanism,
            "epsilon": derived.guarantee.epsilon.model_dump(),
            "delta": derived.guarantee.delta.model_dump(),
            "sigma": self._sigma(),
            "verdict": derived.white_box.verdict,
            "epsilon_lower": derived.white_box.epsilon_lower,
            "ceiling": derived.white_box.ceiling,
            "estimators": [estimator.model_dump() for estimator in derived.estimators],
            "attacker": [rate.model_dump() for rate in derived.attacker],
            "usefulness": derived.usefulness and derived.usefulness.model_dump(),
            "hazards": {answer.id: answer.answer for answer in self.checklist},
        }

    def summary(self) -> list[tuple[str, str]]:
        """The results, as rows of a table."""
        inputs, derived = self.inputs, self.derived
        attack, guarantee, sigma = derived.white_box, derived.guarantee, self._sigma()
        settings = ", ".join(f"{name} = {value}" for name, value in inputs.parameters.items())
        mechanism = f"{inputs.mechanism} {settings}".rstrip()
        epsilon, delta, alpha = map(exact_string, (inputs.epsilon, inputs.delta, inputs.alpha))
        released = "nothing" if self.release is None else self.release.size()
        verdict, sides = attack.verdict.replace("_", " "), f"{inputs.draws} draws per side"
        counts: Counter[str] = Counter(answer.answer for answer in self.checklist)
        checked = (f"{counts[name]} {words}" for name, words in _ANSWERS.items())
        return [
            ("protects", derived.protects),
            ("mechanism", f"{mechanism}, released: {released}"),
            ("proven", f"{guarantee.notion}, epsilon = {epsilon}, delta = {delta}"),
            ("", f"by {guarantee.theorem}"),
            ("", f"delta({epsilon}) <= {guarantee.delta.upper}"),
            *(
                [("noise", f"sigma = {sigma['lower']}, exactly rounded to the grid")]
                if isinstance(sigma, dict)
                else []
            ),
            ("attacked", f"{verdict}, at level {alpha} with {sides}"),
            (
                "",
                f"epsilon >= {attack.epsilon_lower} shown, {attack.ceiling} to be expected at best",
            ),
            ("", f"would have found noise scaled by: {attack.power.noise_scale or 'nothing'}"),
            ("", f"could have refuted the curve up to epsilon: {attack.power.reach or 'nowhere'}"),
            *(
                ("estimator" if number == 0 else "", str(estimator))
                for number, estimator in enumerate(derived.estimators)
            ),
            *([] if derived.usefulness is None else [("worth", str(derived.usefulness))]),
            ("checklist", ", ".join(checked)),
        ]

    def _sigma(self) -> Any:
        value = self.derived.facts.get("noise", {}).get("sigma")
        return value.model_dump() if isinstance(value, Ends) else value


def json_schema() -> dict[str, Any]:
    """JSON Schema of version 1, as published in ``schemas/certificate-1.json``."""
    schema = Certificate.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:dpverify:certificate:1",
        **schema,
    }
