"""The ledger of Li and Li 2023: its verdicts come out of checks that notice a changed formula."""

from collections.abc import Callable
from fractions import Fraction

import pytest

import dpverify_audits.li2023
from dpverify.auditing.claims import Claim, Formula, judged
from dpverify_audits.li2023 import CLAIMS

_CHECKED = [claim for claim in CLAIMS if claim.check is not None]
_HALF = Fraction(1, 2)
# Formulas that are rules or lists of cases, with another one that must fail.
_OTHER: dict[str, Formula] = {
    "li2023.theorem-4.7": lambda x: 3,
    "li2023.algorithm-7": lambda x: 3,
    "li2023.theorem-4.8.smooth": lambda x: 3,
    "li2023.theorem-4.8.rr": lambda x: 2,
    "li2023.section-4.4.repetitions": lambda x: 2,
    "li2023.theorem-6.1": lambda u, x: abs(x) <= Fraction(1, 8),
    "li2023.theorem-6.2": lambda u, x: abs(x) <= Fraction(1, 8),
    "li2023.section-2.2.local-noise": lambda: [(1, 2)],
    "li2023.definition-2.3": lambda: ["signs of an OPORP"],
    "li2023.definition-2.6.weaker": lambda: [(2, Fraction(2))],
    "li2023.section-4.2.safe": lambda: [(_HALF, Fraction(0))],
    "li2023.algorithm-10": lambda: [(_HALF, Fraction(0))],
    "li2023.section-3.6.literature": lambda: [Fraction(200)],
    "li2023.section-3.6.ratio-below-one": lambda: (500,),
}


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
def test_what_holds_fails_when_changed(claim: Claim, never_fails: Callable[..., list[str]]) -> None:
    assert never_fails(claim, _OTHER) == []


def test_a_lost_term_is_noticed(survivors: Callable[..., list[str]]) -> None:
    assert survivors(dpverify_audits.li2023) == []


def test_unchecked_claims_say_why() -> None:
    unchecked = [claim for claim in CLAIMS if claim.check is None]
    assert {judged(claim).verdict for claim in unchecked} == {"not_checkable"}


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"li2023"}
