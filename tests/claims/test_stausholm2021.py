"""The ledger of Stausholm 2021: its verdicts come out of checks that notice a changed formula."""

from collections.abc import Callable
from fractions import Fraction

import pytest

import dpverify_audits.stausholm2021
from dpverify.auditing.claims import Claim, Formula, judged
from dpverify_audits.stausholm2021 import CLAIMS
from dpverify_audits.stausholm2021.comparison import noise_at_input
from dpverify_audits.stausholm2021.fast import input_moments
from dpverify_audits.stausholm2021.privacy import gaussian_claim
from dpverify_audits.truth import number

_CHECKED = [claim for claim in CLAIMS if claim.check is not None]
# Formulas that are lists of cases or rules, with another one that must fail.
_OTHER: dict[str, Formula] = {
    "stausholm2021.note-2": lambda: (1,),
    "stausholm2021.note-3": lambda: [(1, 0), (0, -1)],
    "stausholm2021.definition-1.histograms": lambda: [((1, 0), (0, 1))],
    "stausholm2021.equation-5": lambda: [(Fraction(1, 10), Fraction(1, 1000), 4)],
}


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
def test_what_holds_fails_when_changed(claim: Claim, never_fails: Callable[..., list[str]]) -> None:
    assert never_fails(claim, _OTHER) == []


def test_a_lost_term_is_noticed(survivors: Callable[..., list[str]]) -> None:
    assert survivors(dpverify_audits.stausholm2021) == []


def test_unchecked_claims_say_why() -> None:
    unchecked = [claim for claim in CLAIMS if claim.check is None]
    assert {judged(claim).verdict for claim in unchecked} == {"not_checkable"}


def test_the_classical_noise_needs_its_condition() -> None:
    claim = gaussian_claim("here", "here", "here", (Fraction(1),))
    assert judged(claim).verdict == "holds_under_reading"


@pytest.mark.parametrize("z", [(0, 0), (1, 0), (2, -1)])
def test_the_variance_of_a_noisy_input_is_that_of_all_draws(z: tuple[int, ...]) -> None:
    added = input_moments(3, 2, Fraction(1), z, 1)[1] - input_moments(3, 2, Fraction(1), z)[1]
    norm = Fraction(sum(a * a for a in z))
    assert float(noise_at_input(number(Fraction(1, 3)), 3, 2, norm)) == pytest.approx(
        float(added), 1e-12
    )


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"stausholm2021"}
