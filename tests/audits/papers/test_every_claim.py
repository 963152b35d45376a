"""No verdict is written by hand: a changed formula changes what comes out, for every claim.

A check that can't fail says nothing when it holds, and one that can't hold says nothing when it
fails. So what is printed is changed until it fails, an equality or a bound that is reached by 5 %,
a loose bound by at most 10⁷, and so are corrections; what fails has a correction or reading that
holds, or is changed until it holds. Of every sum in any of these formulas one term after the other
is left out, and the check notices.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from math import comb

import pytest
from flint import arb

from dpverify.ledger.statements import Claim, Evidence, Formula, judged, known_claims
from dpverify_audits.papers.checks import equals
from dpverify_audits.papers.li2023 import gaussian_signs
from tests.audits.papers.changes import (
    evidence,
    formulas,
    reached,
    scaled,
    tried,
    with_oracle,
    without_a_term,
)

CLAIMS = list(known_claims())
CHECKED = [claim for claim in CLAIMS if claim.check is not None]
NEAR = (Fraction(21, 20), Fraction(19, 20))
FAR = tuple(
    Fraction(ten) ** sign for ten in (2, 10, 10**2, 10**3, 10**4, 10**7) for sign in (1, -1)
)
HALF = Fraction(1, 2)
# What no factor turns: cases, rules and names, each with another formula of the opposite outcome.
OTHERS: Mapping[str, Formula] = {
    "aumuller2020.appendix-a.bias": lambda x, y: False,
    "aumuller2020.appendix-a.mean": lambda x, y, r: False,
    "aumuller2020.section-6.1.noisy-500": lambda: Fraction(21, 100),
    "aumuller2020.section-6.1.responses-50": lambda items, k: Fraction(34, 100),
    "aumuller2020.section-6.1.responses-500": lambda items, k: Fraction(17, 100),
    "aumuller2020.section-6.1.responses-2000": lambda items, k: Fraction(9, 100),
    "aumuller2020.section-6.1.comparison": lambda: [("NoisyMinHash", "RRMinHash", 500, 4.0)],
    "aumuller2020.section-6.2.comparison": lambda: [("NoisyMinHash", "RRMinHash")],
    "aumuller2020.section-6.2.sizes": lambda: [(100, 500, 50, 100)],
    "kenthapadi2013.section-2.4.dimension": lambda: [(1000, Fraction(4))],
    "kenthapadi2013.section-3.1.3.sparse": lambda d: (
        Fraction(3, 2) * (2 - Fraction(4, 9) ** d - Fraction(8, 9) ** d)
    ),
    "li2023.algorithm-10": lambda: [(HALF, Fraction(0))],
    "li2023.algorithm-7": lambda x: 3,
    "li2023.definition-2.3": lambda: ["signs of an OPORP"],
    "li2023.definition-2.6.weaker": lambda: [(2, Fraction(2))],
    "li2023.lemma-4.3.product": lambda p: Fraction(1, p + 1),
    "li2023.section-2.2.local-noise": lambda: [(1, 2)],
    "li2023.section-4.1.2.optimal-k": gaussian_signs._best_k,
    "li2023.section-3.6.literature": lambda: [Fraction(200)],
    "li2023.section-3.6.ratio-below-one": lambda: (500,),
    "li2023.section-4.2.safe": lambda: [(HALF, Fraction(0))],
    "li2023.section-4.4.repetitions": lambda x: 2,
    "li2023.theorem-4.7": lambda x: 3,
    "li2023.theorem-4.8.l1": lambda x: 0,
    "li2023.theorem-4.8.rr": lambda x: 2,
    "li2023.theorem-4.8.smooth": lambda x: 3,
    "li2023.theorem-6.1": lambda u, x: abs(x) <= Fraction(1, 8),
    "li2023.theorem-6.2": lambda u, x: abs(x) <= Fraction(1, 8),
    "slides2025.page-15.randomized-response.large": lambda: [(2, 4)],
    "slides2025.page-15.randomized-response.small": lambda: [(2, 1)],
    "slides2025.page-20.similar": lambda: [(100, 1)],
    "stausholm2021.appendix-c.fourth-moment.step": lambda x: (
        3 * x**4 + 18 * x * x + 9 + 12 * (x**3 + 2 * x) * (2 / arb.pi()).sqrt()
    ),
    "stausholm2021.definition-1.histograms": lambda: [((1, 0), (0, 1))],
    "stausholm2021.equation-5": lambda: [(Fraction(1, 10), Fraction(1, 1000), 4)],
    "stausholm2021.note-2": lambda: (1,),
    "stausholm2021.note-3": lambda: [(1, 0), (0, -1)],
}
# Statements that one number is at most itself after a change of the output: δ stands on both sides.
BOTH_SIDES = {"li2023.section-4.post-processing", "stausholm2021.lemma-4.post-processing"}
# The checks that take seconds for all their changes.
SLOW = {
    "li2023.definition-2.3",
    "li2023.equation-7-8",
    "li2023.remark-3.1.reduces",
    "li2023.section-3.3.crossing",
    "slides2025.appendix-e.rows",
    "stausholm2021.lemma-10",
    "stausholm2021.theorem-3.privacy",
    "li2023.equation-7-8.middle",
    "li2023.equation-7-8.text",
    "li2023.lemma-4.3",
    "li2023.lemma-4.3.density",
    "li2023.lemma-4.3.independent",
    "li2023.theorem-3.10.variance",
    "stausholm2021.lemma-10.construction-b",
    "stausholm2021.lemma-11.random",
}


def changes(claim: Claim, formula: Formula, factors: tuple[Fraction, ...]) -> Iterator[Formula]:
    """The known other formula of a claim, if there is one, then its own times each factor."""
    if claim.id in OTHERS:
        yield OTHERS[claim.id]
    yield from (scaled(claim, formula, factor) for factor in factors)


def turned(claim: Claim, formula: Formula, factors: tuple[Fraction, ...], *, to: bool) -> bool:
    """Whether one of some changes of a formula makes it hold, or fail."""
    tries = (tried(claim, changed) for changed in changes(claim, formula, factors))
    return any(found is not None and found.holds is to for found in tries)


def each(claims: list[Claim]) -> pytest.MarkDecorator:
    """One test a claim; the slowest wait for the night."""
    marks = {claim.id: [pytest.mark.nightly] if claim.id in SLOW else [] for claim in claims}
    return pytest.mark.parametrize(
        "claim", [pytest.param(claim, marks=marks[claim.id], id=claim.id) for claim in claims]
    )


@each(CHECKED)
def test_every_check_can_hold_and_can_fail(claim: Claim) -> None:
    given, printed = evidence(claim), formulas(claim)["printed"]
    for found in given.values():
        assert bool(found.counterexample) is not found.holds
        assert (found.means == "simulation") is claim.seeded
    if not any(found.holds for found in given.values()):
        assert turned(claim, printed, NEAR + FAR, to=True)
    elif all(found.holds for found in given.values()):
        exact = given["printed"].tight and given["printed"].means != "simulation"
        assert turned(claim, printed, NEAR if exact else NEAR + FAR, to=False)
    for correction in claim.corrections.values():
        assert turned(claim, correction, NEAR + FAR, to=False)


@each(CHECKED)
def test_what_is_printed_decides_what_is_found(claim: Claim) -> None:
    printed, *others = formulas(claim).values()
    tries = (tried(claim, one) for one in chain(others, changes(claim, printed, NEAR + FAR)))
    assert any(found != evidence(claim)["printed"] for found in tries)


def any_sum(formula: Formula) -> bool:
    return next(without_a_term(formula), None) is not None


def lost(claim: Claim, formula: Formula, before: Evidence) -> list[str]:
    """Terms of a formula whose loss the check doesn't notice."""
    unnoticed = []
    for text, changed in without_a_term(formula):
        after = tried(claim, changed)
        exact = before.holds and before.tight
        if after == before or (exact and after and after.holds and after.tight):
            unnoticed.append(text)
    return unnoticed


@each([claim for claim in CHECKED if any(map(any_sum, formulas(claim).values()))])
def test_a_lost_term_is_noticed(claim: Claim) -> None:
    for name, formula in formulas(claim).items():
        assert lost(claim, formula, evidence(claim)[name]) == [], name


@each([claim for claim in CHECKED if claim.readings or claim.corrections])
def test_readings_fall_on_both_sides_and_corrections_hold(claim: Claim) -> None:
    given = evidence(claim)
    assert {found.holds for found in given.values()} == {True, False}
    assert [name for name in claim.corrections if not given[name].holds] == []


@each([claim for claim in CHECKED if not claim.seeded])
def test_what_is_true_decides_what_is_found(claim: Claim) -> None:
    """An oracle that is 7 times or a seventh of itself; for a loose bound, 10¹² times."""
    before = evidence(claim)["printed"]
    for factor in (Fraction(7), Fraction(1, 7)) if before.tight else (Fraction(10**12),):
        after = tried(with_oracle(claim, factor), formulas(claim)["printed"])
        assert after is not None
        assert after != before
        assert not (before.holds and before.tight and after.holds and after.tight)


def own_oracle(claim: Claim) -> list[str]:
    """Formulas of a claim that its check compares with themselves."""
    oracles = reached(claim.check)
    return [name for name, one in formulas(claim).items() if inspect.unwrap(one) in oracles]


def test_no_formula_is_its_own_oracle() -> None:
    assert {claim.id for claim in CHECKED if own_oracle(claim)} == BOTH_SIDES


def test_a_formula_that_is_its_own_oracle_is_found() -> None:
    def oracle(n: int) -> Fraction:
        return Fraction(n * (n - 1), 2)

    planted = Claim(
        id="a.b",
        where="",
        statement="",
        printed=lambda n: Fraction(n),
        check=equals(lambda n: oracle(n), [(3,), (5,)], "points"),
        corrections={"itself": oracle},
    )
    assert own_oracle(planted) == ["itself"]


def test_one_fact_has_one_verdict_in_every_paper() -> None:
    """A guarantee over the draw of something public, used for the one that was drawn."""
    drawn = [claim for claim in CHECKED if any("over the draw" in name for name in claim.readings)]
    assert {claim.paper for claim in drawn} == {
        "aumuller2020",
        "kenthapadi2013",
        "li2023",
        "stausholm2021",
    }
    for claim in drawn:
        printed, *others = evidence(claim).values()
        assert judged(claim).verdict == "holds_under_reading"
        assert (printed.holds, [other.holds for other in others]) == (False, [True])


def test_two_seeds_give_one_verdict() -> None:
    drawn = [claim for claim in CHECKED if claim.seeded]
    assert drawn
    for claim in drawn:
        first, second = judged(claim, seed=1), judged(claim, seed=2)
        assert first.printed != second.printed, claim.id
        assert first.verdict == second.verdict, claim.id


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(c.id for c in CLAIMS).items() if count > 1] == []


def test_the_exceptions_exist() -> None:
    assert {*OTHERS, *SLOW} <= {claim.id for claim in CHECKED}


def test_a_term_that_does_not_matter_is_found() -> None:
    """The choice of 6 is 0 in every case that the check tries."""
    (claim,) = (claim for claim in CHECKED if claim.id == "li2023.lemma-4.3.product")

    def formula(p: int) -> Fraction:
        return Fraction(1, p + 1) + comb(p, 6)

    before = tried(claim, formula)
    assert before is not None
    assert before.holds
    assert lost(claim, formula, before) == ["without comb(p, 6)"]
