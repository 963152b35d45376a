"""Guarantees over the draw of something public, used for the one that was drawn."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature, signature
from typing import Any

from dpverify.ledger.checks import Formula, Oracle, at_most
from dpverify.ledger.statements import Reading, Statement

__all__ = ["public_draw"]

_DRAWN, _REALISED = "over the draw", "for the one drawn"


def public_draw(
    *,
    place: str,
    covers: str,
    printed: Formula,
    drawn: Formula,
    realised: Formula,
    cases: Sequence[tuple[Any, ...]],
    oracle: Oracle = "quadrature",
    **more: Any,
) -> Statement:
    """A statement of a guarantee whose proof draws something that is public and is drawn once.

    What is printed is asked for both uses, over the draw and for the one that was drawn; the
    reading speaks of the first alone. So the rule of `judge` gives this fact one verdict in every
    paper: ``holds_under_reading`` where the proof's use holds and the other one fails.

    Parameters
    ----------
    place : where the paper's own text takes the probability over the draw, quoted
    covers : why the draw covers the settings that the paper itself uses
    printed : the formula, from the parts of a case
    drawn, realised : (what the formula says, *case) to the value and its bound, for either use
    cases : settings that the paper covers
    oracle : what the two values are
    more : what else a `Statement` has
    """
    truths = {_DRAWN: drawn, _REALISED: realised}

    def truth(formula: Formula, use: str, *case: Any) -> Any:
        said = formula(use, *case)
        return None if said is None else truths[use](said, *case)

    names = ("formula", "use", *list(signature(drawn).parameters)[1:])
    truth.__signature__ = Signature(  # type: ignore[attr-defined]  # what `at_most` shows
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return Statement(
        printed=lambda use, *case: printed(*case),
        readings={
            "over the draw": Reading(
                lambda use, *case: printed(*case) if use == _DRAWN else None,
                place=place,
                covers=covers,
            )
        },
        check=at_most(truth, [(use, *case) for use in truths for case in cases], oracle),
        **more,
    )
