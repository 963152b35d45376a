"""The privacy hazards of NIST SP 800-226 as a checklist, each answered from a certificate.

NIST Special Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (Near,
Darais, Lefkovitz, Howarth; final edition March 2025, doi:10.6028/NIST.SP.800-226) warns of pitfalls
in boxes called privacy hazards. `HAZARDS` lists them: what may go wrong, what an answer requires,
and how the certificate answers it. Numbers of sections are those of the initial public draft of
December 2023, whose text the list was made from; the final edition may number or word some of them
otherwise. Titles are this package's own words.

An answer is `pass`, `fail`, `needs_owner` or `not_applicable`. What no computation can know, the
owner may answer in the configuration's table ``[owner]``, and the answer is then marked as the
owner's word. What the certificate answers itself, the owner can't.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

from dpverify.certificate.rounding import at_least, at_most, exact, percent_at_most
from dpverify.certificate.schema import Answer, Derived, Inputs
from dpverify.enclosure import exact_string

__all__ = ["EDITION", "HAZARDS", "Case", "Hazard", "Reply"]

EDITION = (
    "NIST SP 800-226 (final edition March 2025); sections numbered as in its initial public draft "
    "of December 2023"
)

Requires = Literal["certificate", "owner", "both"]


class Reply(NamedTuple):
    """An answer and the evidence for it."""

    answer: Answer
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a check may look at."""

    inputs: Inputs
    derived: Derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """A hazard.

    Attributes
    ----------
    id : as the configuration names it
    section : where the publication warns of it
    title : what may go wrong
    requires : "certificate" if the certificate answers alone, "owner" if it takes the owner's word,
        "both" if the owner is asked only where the certificate can't tell
    check : answers from the certificate
    """

    id: str
    section: str
    title: str
    requires: Requires
    check: Callable[[Case], Reply]


def _large_epsilon(case: Case) -> Reply:
    """ε ≤ 1 counts as conservative; above, its meaning depends on the case, so the owner says."""
    epsilon = case.derived.guarantee.epsilon.upper
    if Decimal(epsilon) <= 1:
        return Reply(
            "pass",
            f"ε is at most {at_most(epsilon)}, which the publication calls conservative.",
        )
    left = ", ".join(
        f"{percent_at_most(rate.true_positive_rate.upper)} "
        f"at {percent_at_most(rate.false_positive_rate)}"
        for rate in case.derived.attacker
    )
    return Reply(
        "needs_owner",
        f"ε is up to {at_most(epsilon)}. It leaves the strongest attacker a true positive rate "
        f"of at most {left} of false positives. Is that little enough here?",
    )


def _catastrophic_failure(case: Case) -> Reply:
    """δ must not be a chance of losing all protection: it has to fall as ε grows, or be tiny."""
    delta, far = case.inputs.delta, case.derived.far_delta.upper
    if delta == 0:
        return Reply("pass", "δ = 0: pure differential privacy.")
    if delta * case.inputs.rows >= 1:
        return Reply(
            "fail",
            f"δ times the {case.inputs.rows} records is 1 or more: a mechanism that publishes "
            "one record in clear would meet such a claim.",
        )
    if Fraction(far) * 1000 <= delta:
        return Reply(
            "pass",
            "The proven δ goes on falling: at ten times the asked ε it is at most "
            f"{at_most(far)}, less than a thousandth of the δ asked for.",
        )
    return Reply(
        "needs_owner",
        f"At ten times the asked ε the proven δ is still up to {at_most(far)}: a chance that "
        "protection fails altogether. Is that little enough here?",
    )


def _unit_of_privacy(case: Case) -> Reply:
    """Whatever two situations are to be kept apart, they must be neighbours."""
    return Reply(
        "needs_owner",
        f"Protected: {case.derived.protects}. Is every harm that matters such a change?",
    )


def _event_level(case: Case) -> Reply:
    """Protecting a row, or less, isn't protecting the person who has several."""
    part = (
        "A whole record is protected."
        if case.inputs.adjacency.kind == "record"
        else "Less than a whole record is protected."
    )
    return Reply("needs_owner", f"{part} How many records can come from one person?")


def _large_delta_in_conversion(case: Case) -> Reply:
    """A guarantee of another kind, converted at a large δ, seems to have a small ε."""
    return Reply(
        "pass",
        f"The curve δ(ε) is proven directly and given at {len(case.derived.curve)} points, "
        "with the numbers that it follows from: anyone can read it at another δ.",
    )


def _custom_implementation(case: Case) -> Reply:
    """Untested code tends to be wrong: here the code that releases is what was attacked."""
    found = case.derived.white_box
    how = (
        f"{found.verdict} by the likelihood-ratio attack on the code that releases, "
        f"{case.inputs.draws} draws per side, {found.tests} tests at level "
        f"{exact_string(case.inputs.alpha)}"
    )
    match found.verdict:
        case "violation":
            return Reply("fail", f"{how}.")
        case "no_violation_found":
            scale = found.power.noise_scale
            power = f"; noise scaled by {at_least(scale)} would have been found" if scale else ""
            return Reply("pass", f"{how}{power}. No attack proves that there is no mistake.")
        case "inconclusive":
            return Reply("needs_owner", f"{how}. What else speaks for this implementation?")


def _statistical_bias(case: Case) -> Reply:
    """The bias of a released estimate must be known."""
    exact = [found for found in case.derived.estimators if found.formulas == "exact"]
    names = ", ".join(found.name for found in exact)
    verdicts = {found.mean_verdict for found in exact}
    if "refuted" in verdicts:
        return Reply("fail", f"Draws refute a closed form of the mean (of {names}).")
    if verdicts == {"confirmed_within_margin"}:
        return Reply(
            "pass",
            f"Bias is known in closed form; draws confirm the means ({names}) within "
            f"{case.derived.margin_mean} predicted standard deviations. Clipped records bias "
            "estimates beside that.",
        )
    return Reply("needs_owner", "The draws don't confirm the closed forms of the means.")


def _declared_bounds(case: Case) -> Reply:
    """Bounds on the values must be given without looking at them (a key takeaway, not a hazard)."""
    domain = case.inputs.domain
    numbers = ", ".join(
        f"{name} = {exact(value)}" for name, value in sorted(domain.numbers.items())
    )
    ranges = ", and a range of each attribute" if case.inputs.ranges else ""
    ranges = ", and what each column may hold" if case.inputs.columns else ranges
    return Reply(
        "needs_owner",
        f"Declared: {domain.kind}{' with ' + numbers if numbers else ''}{ranges}. Where do "
        "these numbers come from, if not from the records?",
    )


def _floating_point(case: Case) -> Reply:
    """Real-number proofs don't hold for floating-point noise."""
    return Reply(
        "pass",
        "Records are read on a grid, and the release is drawn exactly on integers, bits or "
        "hash values; a mechanism that adds floating-point noise can't be certified.",
    )


def _asked(name: str, *, section: str, title: str, question: str) -> Hazard:
    """A hazard that only the owner can judge; the question is what the owner has to say."""
    reply = Reply("needs_owner", question)
    return Hazard(id=name, section=section, title=title, requires="owner", check=lambda _: reply)


def _absent(name: str, *, section: str, title: str, reason: str) -> Hazard:
    """A hazard of something that no release of this package does; the reason says what."""
    reply = Reply("not_applicable", reason)
    return Hazard(
        id=name, section=section, title=title, requires="certificate", check=lambda _: reply
    )


HAZARDS = (
    Hazard(
        id="large-epsilon",
        section="2.2",
        title="A large ε may protect too little",
        requires="both",
        check=_large_epsilon,
    ),
    Hazard(
        id="catastrophic-failure",
        section="2.3",
        title="δ may be the probability of a complete failure",
        requires="both",
        check=_catastrophic_failure,
    ),
    Hazard(
        id="unit-of-privacy",
        section="2.4",
        title="The unit of privacy may not cover the harm that is feared",
        requires="owner",
        check=_unit_of_privacy,
    ),
    Hazard(
        id="event-level",
        section="2.4",
        title="Protecting a record doesn't protect a person who is in several",
        requires="owner",
        check=_event_level,
    ),
    _absent(
        "different-delta",
        section="2.5",
        title="Guarantees with different δ can't be compared",
        reason=(
            "One guarantee, compared with no other. Its whole curve is given, to compare at any δ."
        ),
    ),
    _absent(
        "different-units",
        section="2.5",
        title="Guarantees for different units of privacy can't be compared",
        reason="One guarantee, compared with no other.",
    ),
    Hazard(
        id="large-delta-in-conversion",
        section="2.5",
        title="A conversion at a large δ makes ε look small",
        requires="certificate",
        check=_large_delta_in_conversion,
    ),
    _asked(
        "other-releases",
        section="2.6",
        title="Other releases of the same data are not protected by this one",
        question="What else was or will be released from these records, with which guarantees?",
    ),
    Hazard(
        id="custom-implementation",
        section="3",
        title="An implementation may not do what was proven",
        requires="both",
        check=_custom_implementation,
    ),
    _asked(
        "systemic-bias",
        section="3.3.1",
        title="Noise can create or magnify bias against small groups",
        question="Who uses the estimates for what, and were errors for small groups considered?",
    ),
    _asked(
        "human-bias",
        section="3.3.2",
        title="Making results look plausible can distort them",
        question="Will negative or fractional estimates be cut off or rounded before use?",
    ),
    Hazard(
        id="statistical-bias",
        section="3.3.3",
        title="Estimates can be biased",
        requires="both",
        check=_statistical_bias,
    ),
    _absent(
        "bounded-contributions",
        section="3.4.1",
        title="Bounding a person's contributions needs more noise",
        reason=(
            "Contributions are not bounded here; for persons with several records see event-level."
        ),
    ),
    _absent(
        "histogram-bins",
        section="3.4.1",
        title="The bins of a histogram may reveal data",
        reason="No histogram: the shape of the release follows from public parameters alone.",
    ),
    Hazard(
        id="declared-bounds",
        section="3.4.2 (a key takeaway)",
        title="Bounds on the values may have been read off the data",
        requires="owner",
        check=_declared_bounds,
    ),
    _absent(
        "machine-learning",
        section="3.5",
        title="Machine learning doesn't protect privacy by itself",
        reason=(
            "No model is trained. Models trained on the release alone are covered by its guarantee."
        ),
    ),
    _absent(
        "synthetic-data",
        section="3.6 (two boxes)",
        title="Synthetic data may be unprotected, or of poor quality",
        reason="No synthetic data is released; that of the audits is made from the domain alone.",
    ),
    _asked(
        "unstructured-data",
        section="3.7",
        title="In text, images or sound the unit of privacy may mean little",
        question="Do the rows stand for text, images or sound, and whose are they?",
    ),
    _absent(
        "interactive-queries",
        section="4.1",
        title="Answering queries raises problems of budget and security",
        reason="One release of a fixed form. No queries on the records are answered afterwards.",
    ),
    _asked(
        "trust-model",
        section="4.2",
        title="The trust that the guarantee assumes may not hold",
        question=(
            "Central model: who holds the records and ran the release, and are they trusted?"
        ),
    ),
    Hazard(
        id="floating-point",
        section="4.3",
        title="Floating-point noise can reveal what it should hide",
        requires="certificate",
        check=_floating_point,
    ),
    _asked(
        "timing-channels",
        section="4.3",
        title="Running time or failures may reveal data",
        question=(
            "Running times are not protected, and error messages about records are for their "
            "owner. Could anyone else time or watch the release?"
        ),
    ),
    _asked(
        "data-security",
        section="4.4",
        title="A breach of the original records makes the guarantee void",
        question="How are the original records kept, at rest and during the release?",
    ),
    _asked(
        "access-control",
        section="4.4",
        title="Whoever may read the original records must be chosen",
        question="Who may read the original records and the folder that is for the owner only?",
    ),
    _asked(
        "data-collection",
        section="4.5",
        title="Differential privacy doesn't justify collecting more",
        question="Was all of this data needed?",
    ),
)
"""Every hazard, in the publication's order."""
