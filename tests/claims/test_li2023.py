"""The ledger of Li and Li 2023: its verdicts come out of checks that notice a changed formula."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpverify.auditing.claims import Claim, Formula, judged, perturbed
from dpverify_audits.li2023 import CLAIMS

# Formulas that are rules or ranges, with another rule that must fail.
_RULES: dict[str, Formula] = {
    "li2023.theorem-4.7": lambda x: 3,
    "li2023.theorem-4.8.smooth": lambda x: 3,
    "li2023.theorem-4.8.rr": lambda x: 2,
    "li2023.theorem-6.2": lambda u, x: abs(x) <= Fraction(1, 8),
}
_FAILING_ANYWAY = ("refuted", "misprint")
_BOUND_FACTORS = [Fraction(10) ** power for power in (-7, -4, -3, -2, -1, 1, 2, 3, 7)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    verdict = judged(claim).verdict
    assert verdict != "not_checkable"
    if claim.id in _RULES:
        assert judged(
            replace(claim, printed=_RULES[claim.id], readings={}, corrections={})
        ).verdict == ("refuted")
    elif verdict == "confirmed_exactly":
        assert judged(perturbed(claim, Fraction(21, 20))).verdict == "refuted"
    elif verdict == "conservative":
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert "refuted" in verdicts
    else:
        # what holds instead of the printed formula, where something does, passes the same check
        others = judged(claim).others
        assert not others or any(evidence.holds for evidence in others.values())
        assert verdict in (*_FAILING_ANYWAY, "holds_under_reading")


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"li2023"}
