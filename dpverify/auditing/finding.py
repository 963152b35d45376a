"""What every audit reports: a verdict with its evidence, its level and the code that replays it.

A verdict is never "passed". A finding with a level α′ reports a violation of a true claim with
probability at most α′. One without a level is certain, which only exact enumeration is: a few runs
of code prove nothing about its law. `combined` is the verdict of a whole family: the levels of its
findings add up to at most its α (Bonferroni, in shares fixed before anything is drawn). A kind that
has nothing to say (a mechanism outside its model) doesn't keep the others from a verdict.

The evidence of each kind of audit is a class below. One thing has one name in all of them: an event
happened `hits` times of `draws` on its own side, and `false_hits` times of `false_draws` on the
other; the claimed curve is `refuted_at` an ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from dpverify.auditing.formatting import at_least, jsonable, named_numbers
from dpverify.auditing.pair_text import pair_lines
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.gaussian_model import GaussianFit
from dpverify.errors import DPVerifyError, DrawError
from dpverify.privacy import Pair
from dpverify.visible import escaped

__all__ = [
    "AuditKind",
    "BandEvidence",
    "BetEvidence",
    "CheckEvidence",
    "CoincidenceEvidence",
    "DeclarationEvidence",
    "DependenceEvidence",
    "EventEvidence",
    "Evidence",
    "ExactEvidence",
    "Finding",
    "LikelihoodRatioEvidence",
    "NoiseEventEvidence",
    "NoiseEvidence",
    "Verdict",
    "combined",
    "undrawn",
]

Verdict = Literal["violation", "no_violation_found", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a finding rests on; the audit of each kind has its own."""

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types."""
        values: dict[str, Any] = jsonable(self)
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEvidence(Evidence):
    """Of black-box and precision: how often an event happened on each side.

    Attributes
    ----------
    event : in words; of precision the view of the outputs that showed it, "" for none
    swapped : whether the neighbour is the event's own side
    hits, draws : on its own side
    false_hits, false_draws : on the other side
    refuted_at : an ε at which that refutes the claimed curve, or None
    """

    event: str
    swapped: bool
    hits: int
    draws: int
    false_hits: int
    false_draws: int
    refuted_at: float | None

    @property
    def own_side(self) -> str:
        """Where the event is more likely."""
        return "neighbour" if self.swapped else "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRatioEvidence(EventEvidence):
    """Of white-box: an event {L ≥ threshold}, or {−L ≥ threshold} if swapped."""

    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseEvidence(Evidence):
    """Of grey-box: how far apart the outputs are, in units of the noise, and the claimed ε."""

    distance: float
    claimed_epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseEventEvidence(EventEvidence):
    """Of grey-box, where an event was counted on fresh draws; distance as in `NoiseEvidence`."""

    distance: float
    claimed_epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEvidence(Evidence):
    """Of determinism: what was compared, by name."""

    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoincidenceEvidence(CheckEvidence):
    """Of determinism: outputs that equal a release of the record with which they share something.

    Attributes
    ----------
    hits, draws : of the record
    false_hits, false_draws : of the neighbour, in the same places
    """

    hits: int
    draws: int
    false_hits: int
    false_draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceEvidence(EventEvidence):
    """Of determinism: a label that tells the neighbours apart, the event, and its first value."""

    check: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationEvidence(Evidence):
    """Of frozen-outputs: a declaration in the code that two runs disprove.

    Attributes
    ----------
    declaration, place : which, and its line
    moved, allowed : by how much its value moved between the neighbours, and may; 1 and 0 of what
        must be equal
    """

    declaration: str
    place: str
    moved: float
    allowed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BandEvidence(Evidence):
    """Of trade-off: what the confidence band on the ROC of a score says of the claim.

    Attributes
    ----------
    score : in words
    draws : on each side
    claimed_epsilon : at the claimed δ
    delta_lower : lower confidence limit of δ at the claimed ε
    refuted_at : an ε at which the claimed curve is below the band, or None
    gaussian_model : beside it, where the claimed δ is positive; never a verdict
    """

    score: str
    draws: int
    claimed_epsilon: float
    delta_lower: float
    refuted_at: float | None
    gaussian_model: GaussianFit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BetEvidence(Evidence):
    """Of sequential: the wealth after so many draws of each side, and the last bet, if one is made.

    Attributes
    ----------
    draws : on each side
    log_wealth : logarithm of what the stake became (an e-value)
    event, swapped : on which is bet, and whether the neighbour is its own side
    slope, intercept : of the line p ≤ slope·q + intercept that is bet against
    """

    draws: int
    log_wealth: float
    event: str | None = None
    swapped: bool | None = None
    slope: float | None = None
    intercept: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactEvidence(Evidence):
    """Of exhaustive: the outputs of the largest ratio, with their probabilities on both sides."""

    worst_event: Mapping[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one audit of one mechanism.

    Attributes
    ----------
    audit : its kind; "accountant" or "auditor" where no mechanism was audited, but who bounds one
    verdict : violation, no_violation_found or inconclusive
    statement : what was found, in one sentence for a person
    level : probability with which a true claim is accused, or of frozen outputs a declaration in
        the code that holds; 0 for exact enumeration alone
    pair : the neighbours on which it rests, if on some
    epsilon_lower : lower confidence limit of ε at the claimed δ, if one is computed
    evidence : counts, probabilities and outputs that show it, if there are any
    power : what would have been found, by name
    failed : whether nothing could be said because the mechanism couldn't be drawn from
    replay : Python code that repeats the attack, with its imports
    remark : what was seen that no claim speaks of, in one sentence
    """

    audit: AuditKind | Literal["accountant", "auditor"]
    verdict: Verdict
    statement: str
    level: float = 0.0
    pair: Pair | None = None
    epsilon_lower: float | None = None
    evidence: Evidence | None = None
    power: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    replay: str = ""
    remark: str = ""

    def __str__(self) -> str:
        """Verdict, statement, and what shows it or would have been found; indented."""
        lines = [
            f"  {self.audit}: {self.verdict.replace('_', ' ')}",
            f"    {self.statement}",
        ]
        if self.pair is not None and self.verdict == "violation":
            lines += pair_lines(self.pair)
        if self.epsilon_lower is not None:
            lines.append(f"    epsilon is at least {at_least(self.epsilon_lower)}")
        if self.verdict == "violation" and self.evidence:
            lines.append(f"    evidence: {named_numbers(self.evidence.to_dict())}")
        if self.verdict != "inconclusive":
            lines.append(f"    {self.level_text}")
        if self.power:
            lines.append(f"    power: {named_numbers(self.power)}")
        if self.remark:
            lines.append(f"    remark: {self.remark}")
        return escaped("\n".join(lines), lines=True)

    @property
    def level_text(self) -> str:
        """The level in words."""
        return f"at level {self.level:.3g}" if self.level else "certain"

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types; an infinity, which JSON lacks, is the string "inf"."""
        pair = self.pair
        return {
            "audit": self.audit,
            "verdict": self.verdict,
            "statement": self.statement,
            "level": self.level,
            "pair": None if pair is None else jsonable(pair),
            "epsilon_lower": jsonable(self.epsilon_lower),
            "evidence": self.evidence.to_dict() if self.evidence else {},
            "power": jsonable(self.power),
            "replay": self.replay,
            "remark": self.remark,
        }


def undrawn(
    audit: AuditKind, error: DPVerifyError, *, level: float = 0.0, pair: Pair | None = None
) -> Finding:
    """Of an audit that couldn't be run: why, and that nothing can be said."""
    return Finding(
        audit=audit,
        verdict="inconclusive",
        statement=f"Could not be audited: {error}",
        level=level,
        pair=pair,
        failed=isinstance(error, DrawError),
    )


def combined(findings: Iterable[Finding]) -> Verdict:
    """A violation if one was found; inconclusive if nothing could be said; else none was found."""
    verdicts = {finding.verdict for finding in findings}
    if "violation" in verdicts:
        return "violation"
    return "no_violation_found" if "no_violation_found" in verdicts else "inconclusive"
