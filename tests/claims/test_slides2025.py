"""The ledger of the slides: its verdicts come out of checks that notice a changed formula."""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from dpverify.auditing.claims import Claim, judged, perturbed
from dpverify_audits.slides2025 import CLAIMS, rows

_CHECKED = [claim for claim in CLAIMS if claim.check is not None]
_FACTORS = [Fraction(10) ** power for power in (-1, 1, -2, 2, -3, 3, -7, 7)]
_OTHER_RULES: dict[str, Iterable[Any]] = {  # what a statement on named cases must not hold for
    "slides2025.page-15.randomized-response.large": [(2, 4)],
    "slides2025.page-20.similar": [(100, 1)],
}
_REFUTED = {"slides2025.page-15.randomized-response.small"}
_OTHER_MATRICES = {
    "slides2025.appendix-d.covariance",
    "slides2025.appendix-e.matrix",
}


def _changed(claim: Claim) -> Claim:
    """The claim with another formula, of the same kind."""
    printed = claim.printed
    assert printed is not None
    if claim.id in _OTHER_RULES:
        return replace(claim, printed=lambda: _OTHER_RULES[claim.id])
    if claim.id in _OTHER_MATRICES:

        def scaled(*case: Any) -> Any:
            return tuple(entry * Fraction(21, 20) for entry in printed(*case))

        return replace(claim, printed=scaled)
    return perturbed(claim, Fraction(21, 20))


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
def test_a_changed_formula_changes_the_verdict(claim: Claim) -> None:
    judgement = judged(claim)
    if judgement.verdict == "confirmed_exactly":
        assert judged(_changed(claim)).verdict != "confirmed_exactly"
    if judgement.verdict == "conservative":
        changed = (perturbed(claim, factor) for factor in _FACTORS)
        assert any(judged(other).verdict == "refuted" for other in changed)
    if judgement.verdict in ("misprint", "holds_under_reading"):
        alone = replace(claim, readings={}, corrections={})
        assert judged(alone).verdict != judgement.verdict
    assert (judgement.verdict == "refuted") == (claim.id in _REFUTED)
    if judgement.verdict == "refuted":
        assert judgement.printed is not None
        assert judgement.printed.counterexample


@pytest.mark.parametrize("ratio", [2, 5])
@pytest.mark.parametrize("count", [2, 32])
def test_the_bound_for_two_columns_is_above_the_exact_account_of_one(
    ratio: int, count: int
) -> None:
    for tenths in (1, 20, 80):
        epsilon = arb(tenths) / 10
        exact = rows._exact_delta(count, arb(ratio - 1), epsilon)
        above = [
            rows._chernoff(count, pair, epsilon)
            for pair in ((arb(ratio), arb(1)), (1 / arb(ratio), arb(1)))
        ]
        assert exact <= above[0].max(above[1])


def test_unchecked_claims_are_known_and_say_why() -> None:
    unchecked = [claim for claim in CLAIMS if claim.check is None]
    assert {claim.id for claim in unchecked} == {"slides2025.page-18.table"}
    assert all(claim.reason for claim in unchecked)


def test_ids_are_unique_and_of_these_slides() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"slides2025"}
