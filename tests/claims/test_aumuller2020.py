"""The ledger of Aumüller et al. 2020: its verdicts come out of checks that notice a change."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpverify.auditing.claims import Claim, judged, perturbed
from dpverify_audits.aumuller2020 import CLAIMS

_RULES: dict[str, Callable[..., Any]] = {  # not a number: another rule must fail
    "aumuller2020.appendix-a.bias": lambda x, y: False,
}
_BOUND_FACTORS = [Fraction(10) ** power for power in (-7, -3, -2, -1, 1, 2)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    judgement = judged(claim)
    if claim.id in _RULES:
        changed = replace(claim, printed=_RULES[claim.id], readings={}, corrections={})
        assert judged(changed).verdict == "refuted"
    elif judgement.verdict == "confirmed_exactly":
        assert judged(perturbed(claim, Fraction(21, 20))).verdict != "confirmed_exactly"
        nearby = (Fraction(21, 20), Fraction(19, 20))
        assert "refuted" in {judged(perturbed(claim, factor)).verdict for factor in nearby}
    elif judgement.verdict == "conservative":
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert "refuted" in verdicts
    elif judgement.verdict in ("misprint", "holds_under_reading"):
        assert judgement.printed is not None
        assert judgement.printed.counterexample
        assert any(evidence.holds for evidence in judgement.others.values())
    else:
        # the check fails as printed and passes something else
        assert judgement.verdict == "refuted"
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert verdicts != {"refuted"}


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"aumuller2020"}
