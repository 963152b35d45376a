"""The checklist of a certificate: every hazard's answer, and who gave it."""

from __future__ import annotations

from collections.abc import Iterable

from dpverify.certificate.hazards import HAZARDS, Case
from dpverify.certificate.schema import Derived, HazardAnswer, Inputs
from dpverify.errors import ConfigurationError

__all__ = ["answers", "check_answerable"]


def check_answerable(given: Iterable[str]) -> None:
    """Refuse answers of the owner to what isn't the owner's to answer.

    Raises
    ------
    ConfigurationError
        If there is no such hazard, or the certificate answers it itself.
    """
    known = {hazard.id: hazard for hazard in HAZARDS}
    for name in given:
        if name not in known or known[name].requires == "certificate":
            theirs = ", ".join(h.id for h in HAZARDS if h.requires != "certificate")
            wrong = "is answered by the certificate itself" if name in known else "is not a hazard"
            raise ConfigurationError(f"owner.{name} {wrong}. The owner answers: {theirs}.")


def answers(inputs: Inputs, derived: Derived) -> list[HazardAnswer]:
    """Every hazard's answer; the owner's where the certificate can't tell and the owner did.

    Raises
    ------
    ConfigurationError
        As `check_answerable`.
    """
    check_answerable(inputs.owner)
    case = Case(inputs=inputs, derived=derived)
    found = []
    for hazard in HAZARDS:
        reply, given = hazard.check(case), inputs.owner.get(hazard.id)
        owned = reply.answer == "needs_owner" and given is not None
        found.append(
            HazardAnswer(
                id=hazard.id,
                title=hazard.title,
                section=hazard.section,
                answer=given.answer if owned and given else reply.answer,
                evidence=given.reason if owned and given else reply.evidence,
                owner=owned,
            )
        )
    return found
