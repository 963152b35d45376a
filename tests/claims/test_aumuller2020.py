"""The ledger of Aumüller et al. 2020: its verdicts come out of checks that notice a change."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpverify.auditing.claims import Claim, judged, perturbed
from dpverify_audits.aumuller2020 import CLAIMS, experiments

_RULES: dict[str, Callable[..., Any]] = {  # not a number: another rule must fail
    "aumuller2020.appendix-a.bias": lambda x, y: False,
    "aumuller2020.appendix-a.mean": lambda x, y, r: False,
    "aumuller2020.section-6.1.comparison": lambda: [("NoisyMinHash", "RRMinHash", 500, 4.0)],
    "aumuller2020.section-6.2.comparison": lambda: [("NoisyMinHash", "RRMinHash")],
    "aumuller2020.section-6.2.sizes": lambda: [(100, 500, 50, 100)],
}
_CHECKED = [claim for claim in CLAIMS if claim.check is not None]
_UNCHECKED = {
    "aumuller2020.appendix-a.self-adaptation",
    "aumuller2020.section-6.data",
    "aumuller2020.table-1",
}
_BOUND_FACTORS = [Fraction(10) ** power for power in (-7, -3, -2, -1, 1, 2)]


@pytest.mark.parametrize("claim", _CHECKED, ids=lambda claim: claim.id)
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
    elif judgement.verdict == "confirmed_statistically":
        assert judged(perturbed(claim, Fraction(2))).verdict == "refuted"
    elif judgement.verdict in ("misprint", "holds_under_reading"):
        assert judgement.printed is not None
        found = (judgement.printed, *judgement.others.values())
        assert any(evidence.counterexample for evidence in found)
        assert any(evidence.holds for evidence in found)
    else:
        # the check fails as printed and passes something else
        assert judgement.verdict == "refuted"
        verdicts = {judged(perturbed(claim, factor)).verdict for factor in _BOUND_FACTORS}
        assert verdicts != {"refuted"}


def test_unchecked_claims_are_known_and_say_why() -> None:
    unchecked = [claim for claim in CLAIMS if claim.check is None]
    assert {claim.id for claim in unchecked} == _UNCHECKED
    assert all(claim.reason for claim in unchecked)


def test_another_seed_gives_the_same_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = [claim for claim in CLAIMS if ".noisy-" in claim.id]
    first = [judged(claim).verdict for claim in simulated]
    experiments._noisy_error.cache_clear()
    monkeypatch.setattr(experiments, "_SEED", 7)
    second = [judged(claim).verdict for claim in simulated]
    experiments._noisy_error.cache_clear()
    assert simulated
    assert first == second


def test_ids_are_unique_and_of_this_paper() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.paper for claim in CLAIMS} == {"aumuller2020"}
