"""Checks of statements that hold or fail case by case: ranges of parameters, and orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from dpverify.auditing.claims import Evidence, Formula, Means
from dpverify_audits.truth import PRECISION, at_most, number

__all__ = ["order", "wherever"]


def wherever(
    claim: Callable[[Any], bool], means: Means, name: str = "case"
) -> Callable[[Formula], Evidence]:
    """A check that a statement is true for everything that the formula names."""

    def check(formula: Formula) -> Evidence:
        cases = list(formula())
        with ctx.workprec(PRECISION):
            failed = [case for case in cases if not claim(case)]
        return Evidence(
            holds=bool(cases) and not failed,
            means=means,
            numbers={"tried": "; ".join(_shown(case) for case in cases)},
            counterexample=f"{name} {_shown(failed[0])}" if failed else "",
        )

    return check


def order(
    truth: Formula, cases: Sequence[tuple[Any, ...]], means: Means, *, factor: Fraction | int
) -> Callable[[Formula], Evidence]:
    """A check that a formula is right up to a factor either way, the same one in every case."""

    def ratio(formula: Formula, *case: Any) -> tuple[Any, Any]:
        said, true = number(formula(*case)), number(truth(*case))
        return (said / true if said > true else true / said), factor

    return at_most(ratio, cases, means)


def _shown(case: Any) -> str:
    """A case for a reader: parts of tuples one by one, so that fractions look like fractions."""
    if isinstance(case, tuple | list):
        return f"({', '.join(_shown(part) for part in case)})"
    return case.str(4, radius=False) if isinstance(case, arb) else str(case)
