"""Corrections and readings are under the same checks, and a changed one fails there.

A misprint's correction must be as exact as a printed formula that is confirmed: changed by 5 %, or
by a power of ten for a bound, nothing of it may be left standing. Readings that name cases must
fall on either side: some hold and some don't, or the check would say nothing.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpverify.auditing.claims import Claim, Formula, judged
from dpverify_audits import aumuller2020, kenthapadi2013, slides2025

_FACTORS = [Fraction(21, 20), Fraction(19, 20), *(Fraction(10) ** n for n in (-1, 1, -3, 3, -7, 7))]
_DOUBTED = [
    claim
    for ledger in (aumuller2020, kenthapadi2013, slides2025)
    for claim in ledger.CLAIMS
    if claim.readings or claim.corrections
]


def _times(value: Any, factor: Fraction) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_times(part, factor) for part in value)
    exact = isinstance(value, Fraction | int)
    return value * (factor if exact else float(factor))


def _changed(formula: Formula, factor: Fraction) -> Formula:
    return lambda *case: _times(formula(*case), factor)


@pytest.mark.parametrize("claim", _DOUBTED, ids=lambda claim: claim.id)
def test_what_holds_instead_fails_when_changed(claim: Claim) -> None:
    found = judged(claim)
    assert found.printed is not None
    assert {evidence.holds for evidence in (found.printed, *found.others.values())} == {True, False}
    for name, formula in claim.corrections.items():
        assert found.others[name].holds
        alone = replace(claim, readings={}, corrections={})
        verdicts = {
            judged(replace(alone, printed=_changed(formula, factor))).verdict for factor in _FACTORS
        }
        assert "refuted" in verdicts
