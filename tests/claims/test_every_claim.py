"""No verdict is written by hand: a changed formula changes what comes out, for every claim.

A check that can't fail says nothing when it holds, and one that can't hold says nothing when it
fails. So every check must both hold and fail: for the printed formula, for the readings and
corrections of the claim, or for the printed one changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from dpverify.auditing.claims import Claim, Formula, judged, known_claims, perturbed

CLAIMS = list(known_claims())
CHECKED = [claim for claim in CLAIMS if claim.check is not None]
NEAR = (Fraction(21, 20), Fraction(19, 20))
FAR = tuple(
    Fraction(base) ** (sign * power)
    for base, power in ((2, 1), (10, 1), (10, 2), (10, 3), (10, 4), (10, 7))
    for sign in (1, -1)
)
# Formulas that no factor changes into one with another outcome: cases, rules, and what is right.
OTHERS: Mapping[str, Formula] = {
    "kenthapadi2013.section-3.1.3.sparse": lambda d: (
        Fraction(3, 2) * (2 - Fraction(4, 9) ** d - Fraction(8, 9) ** d)
    ),
    "li2023.theorem-4.7": lambda x: 3,
    "li2023.theorem-4.8.rr": lambda x: 2,
    "li2023.theorem-4.8.smooth": lambda x: 3,
    "slides2025.page-15.randomized-response.large": lambda: [(2, 4)],
    "slides2025.page-15.randomized-response.small": lambda: [(2, 1)],
}


def alone(claim: Claim, formula: Formula) -> Claim:
    """The claim as if this formula were printed, with nothing to fall back on."""
    return replace(claim, printed=formula, readings={}, corrections={})


def holds(claim: Claim) -> bool | None:
    """Whether the printed formula holds; None where the check can't read a changed one."""
    try:
        evidence = judged(claim).printed
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return None
    assert evidence is not None
    return evidence.holds


@pytest.mark.parametrize("claim", CHECKED, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    found = judged(claim)
    assert found.printed is not None
    opposite = not found.printed.holds
    formulas = {**claim.readings, **claim.corrections}
    others = [formulas[name] for name in formulas if found.others[name].holds is opposite]
    if claim.id in OTHERS:
        others = [OTHERS[claim.id]]
    if others:
        assert holds(alone(claim, others[0])) is opposite
        return
    assert any(holds(perturbed(claim, factor)) is opposite for factor in (*NEAR, *FAR))
    if found.verdict == "confirmed_exactly":  # and so not five per cent off, to one side at least
        assert "refuted" in [judged(perturbed(claim, factor)).verdict for factor in NEAR]


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(c.id for c in CLAIMS).items() if count > 1] == []


def test_the_exceptions_exist() -> None:
    assert OTHERS.keys() <= {claim.id for claim in CHECKED}


def test_two_seeds_give_one_verdict() -> None:
    for claim in CHECKED:
        if claim.seeded:
            assert judged(claim, seed=1).verdict == judged(claim, seed=2).verdict, claim.id
