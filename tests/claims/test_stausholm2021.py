"""The ledger of Stausholm 2021: its verdicts come out of checks that notice a changed formula."""

from fractions import Fraction

import pytest

from dpverify.auditing.claims import Claim, judged, perturbed
from dpverify_audits.stausholm2021 import CLAIMS

_CHECKED = [claim for claim in CLAIMS if claim.check is not None]


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    found = judged(claim)
    if found.verdict == "confirmed_exactly":
        changed = judged(perturbed(claim, Fraction(21, 20))).verdict
        assert changed in ("refuted", "conservative")
    elif found.verdict == "conservative":
        assert judged(perturbed(claim, Fraction(1, 10))).verdict == "refuted"
    else:
        # what holds instead of the printed formula passes the same check, and not when changed
        assert any(evidence.holds for evidence in found.others.values())
        assert judged(perturbed(claim, Fraction(21, 20))).verdict == "refuted"


def test_unchecked_claims_say_why() -> None:
    unchecked = [claim for claim in CLAIMS if claim.check is None]
    assert {judged(claim).verdict for claim in unchecked} == {"not_checkable"}


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"stausholm2021"}
