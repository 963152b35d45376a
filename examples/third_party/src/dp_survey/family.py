"""What this package announces: a mechanism for configurations, and a suite for audits."""

from __future__ import annotations

from fractions import Fraction

from dp_survey.answers import SurveyAnswers
from dpverify.data.adjacency import Attribute, Record
from dpverify.data.domain import Box
from dpverify.errors import require
from dpverify.family import MechanismFamily, Parameter, Request


def _build(request: Request) -> SurveyAnswers:
    choices, domain, adjacency = request.parameters["choices"], request.domain, request.adjacency
    # What the family announces below is all that a request holds.
    assert isinstance(domain, Box)
    assert isinstance(adjacency, Attribute | Record)
    require(domain.low == 0, "low", domain.low, "0, the first choice")
    require(domain.high == choices - 1, "high", domain.high, f"{choices - 1}, the last choice")
    return SurveyAnswers.calibrated(
        questions=request.p,
        choices=choices,
        epsilon=request.epsilon,
        delta=request.delta,
        adjacency=adjacency,
        outside=domain.outside,
    )


CATALOGUE = (
    MechanismFamily(
        name="survey-answers",
        paper="Warner 1965, with several choices",
        guarantee="epsilon, or (epsilon, delta)",
        adjacency=("attribute", "record"),
        domain=("box",),
        estimates=("agreement",),
        parameters=(Parameter(name="choices", meaning="choices of an answer", min_=2),),
        build=_build,
    ),
)

SUITE = tuple(
    SurveyAnswers.calibrated(
        questions=2, choices=5, epsilon=Fraction(1), delta=Fraction(0), adjacency=adjacency
    )
    for adjacency in (Attribute(beta=Fraction(4)), Record())
)
