"""The ledger of Kenthapadi et al. 2013: its checks notice a changed formula."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpverify.auditing.claims import Claim, judged, perturbed
from dpverify_audits.kenthapadi2013 import CLAIMS

_RULES = {  # values that are zero, with another that must fail
    "kenthapadi2013.lemma-6.mean": lambda v: Fraction(1, 20),
}
_FAILING = {  # where the paper as printed doesn't hold, or not under every reading
    "kenthapadi2013.figure-1.point",
    "kenthapadi2013.lemma-1.inside",
    "kenthapadi2013.lemma-1.last-step",
    "kenthapadi2013.lemma-2",
    "kenthapadi2013.lemma-5.right",
    "kenthapadi2013.lemma-6",
    "kenthapadi2013.optimal-k.bound",
    "kenthapadi2013.optimal-k.error",
    "kenthapadi2013.section-2.3.concentrated",
    "kenthapadi2013.section-2.3.failure",
    "kenthapadi2013.section-2.4.dimension",
    "kenthapadi2013.section-3.1.3.concentrated",
    "kenthapadi2013.section-3.1.3.dasgupta",
    "kenthapadi2013.section-3.1.3.gaussian",
    "kenthapadi2013.section-3.1.3.sparse",
    "kenthapadi2013.section-3.2.2.matrices",
    "kenthapadi2013.section-4.1.entries",
    "kenthapadi2013.section-4.1.order",
    "kenthapadi2013.section-4.2.hamming",
    "kenthapadi2013.section-4.2.order-any-noise",
    "kenthapadi2013.section-4.2.users",
    "kenthapadi2013.section-4.3.3.crossover.any-epsilon",
    "kenthapadi2013.section-4.3.3.projection-better",
    "kenthapadi2013.section-4.3.3.responses-better",
    "kenthapadi2013.section-5.2.1.attribute",
    "kenthapadi2013.section-6.range",
    "kenthapadi2013.theorem-2.independence",
    "kenthapadi2013.theorem-2.proof.exponent",
}
_CHECKED = [claim for claim in CLAIMS if claim.check is not None]
_BOUND_FACTORS = [Fraction(10) ** power for power in (-7, -4, -3, -2, -1, 1, 2, 3, 7)]


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    verdict = judged(claim).verdict
    assert (claim.id in _FAILING) == (verdict in ("refuted", "misprint", "holds_under_reading"))
    if claim.id in _RULES:
        changed = replace(claim, printed=_RULES[claim.id], readings={}, corrections={})
        assert judged(changed).verdict == "refuted"
    elif verdict == "confirmed_exactly":
        assert judged(perturbed(claim, Fraction(21, 20))).verdict != "confirmed_exactly"
        assert judged(perturbed(claim, Fraction(19, 20))).verdict == "refuted"
    elif verdict == "conservative":
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert "refuted" in verdicts
    elif verdict == "refuted":
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert verdicts != {"refuted"}


def test_the_failing_claims_exist() -> None:
    assert {claim.id for claim in CLAIMS} >= _FAILING


def test_unchecked_claims_say_why() -> None:
    assert {claim.id for claim in CLAIMS if claim.reason and claim.check is None} == {
        "kenthapadi2013.figure-1"
    }


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"kenthapadi2013"}
