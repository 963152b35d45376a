"""Checks of statements that hold or fail case by case: ranges, orders, and what is drawn once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from inspect import Parameter, Signature, signature
from typing import Any

from flint import arb, ctx

from dpverify.ledger.statements import Evidence, Formula, Means, Statement
from dpverify_audits.papers.checks import PRECISION, at_most, number

__all__ = ["order", "public_draw", "wherever"]

_DRAWN, _REALISED = "over the draw", "for the one drawn"


def wherever(
    statement: Callable[[Any], bool], means: Means, name: str = "case"
) -> Callable[[Formula], Evidence]:
    """A check that a statement is true for everything that the formula names."""

    def check(formula: Formula) -> Evidence:
        cases = list(formula())
        with ctx.workprec(PRECISION):
            failed = [case for case in cases if not statement(case)]
        return Evidence(
            holds=bool(cases) and not failed,
            means=means,
            cases=len(cases),
            numbers={"tried": "; ".join(_shown(case) for case in cases)},
            counterexample=f"{name} {_shown(failed[0])}" if failed else "",
        )

    return check


def order(
    truth: Formula, cases: Sequence[tuple[Any, ...]], means: Means, *, factor: Fraction | int
) -> Callable[[Formula], Evidence]:
    """A check that a formula is right up to a factor either way, the same one in every case."""

    def ratio(formula: Formula, *case: Any) -> tuple[Any, Any]:
        said, true = formula(*case), truth(*case)
        exact = all(isinstance(value, int | Fraction) for value in (said, true))
        said, true = (Fraction(value) if exact else number(value) for value in (said, true))
        return (said / true if said > true else true / said), factor

    return at_most(ratio, cases, means)


def public_draw(
    *,
    place: str,
    printed: Formula,
    drawn: Formula,
    realised: Formula,
    cases: Sequence[tuple[Any, ...]],
    **more: Any,
) -> Statement:
    """A statement of a guarantee whose proof draws something that is public and is drawn once.

    What is printed is asked for both uses, over the draw and for the one that was drawn; the
    reading speaks of the first alone. So the rule of `judged` gives this fact one verdict in every
    paper: ``holds_under_reading`` where the proof's use holds and the other one fails.

    Parameters
    ----------
    place : where the paper's own text takes the probability over the draw, quoted
    printed : the formula, from the parts of a case
    drawn, realised : (what the formula says, *case) to the value and its bound, for either use
    cases : settings that the paper covers
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
            f"over the draw, as in {place}": lambda use, *case: (
                printed(*case) if use == _DRAWN else None
            )
        },
        check=at_most(truth, [(use, *case) for use in truths for case in cases], "enclosure"),
        **more,
    )


def _shown(case: Any) -> str:
    """A case for a reader: parts of tuples one by one, so that fractions look like fractions."""
    if isinstance(case, tuple | list):
        return f"({', '.join(_shown(part) for part in case)})"
    return case.str(4, radius=False) if isinstance(case, arb) else str(case)
