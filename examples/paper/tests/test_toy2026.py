"""The verdicts, and that no check holds whatever it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from toy2026 import CLAIMS

from dpverify.ledger.statements import Statement, judge, mistaken, perturbed

FACTORS = [Fraction(10) ** sign for ten in (1, 7) for sign in (ten, -ten)]
Change = Callable[[Statement, Fraction], Statement]


def test_the_verdicts() -> None:
    assert {statement.id: judge(statement).verdict for statement in CLAIMS} == {
        "toy2026.lemma-1": "misprint",
        "toy2026.theorem-1": "conservative",
        "toy2026.figure-1": "not_checkable",
    }


@pytest.mark.parametrize("change", [perturbed, mistaken], ids=["formula", "oracle"])
@pytest.mark.parametrize("statement", CLAIMS, ids=lambda statement: statement.id)
def test_what_holds_fails_with_a_wrong(change: Change, statement: Statement) -> None:
    for formula in statement.formulas.values():
        alone = replace(statement, printed=formula, readings={}, corrections={})
        if judge(alone).holds:
            assert not all(judge(change(alone, factor)).holds for factor in FACTORS)
