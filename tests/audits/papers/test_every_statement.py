"""No verdict is written by hand: a changed formula changes what comes out, for every statement.

A check that can't fail says nothing when it holds, and one that can't hold says nothing when it
fails. So what is printed is changed until it fails, an equality or a bound that is reached by 5 %,
a loose bound by at most 10⁷, and so are corrections; what fails has a correction or reading that
holds, or is changed until it holds. Of every sum in any of these formulas one term after the other
is left out, and the check notices.

Every sixteenth statement is tried with every change, the others by night: where you add some, run
this file without ``-m``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from itertools import chain, groupby
from math import comb
from types import FunctionType
from typing import Any

import pytest

from dpverify.ledger import oracles
from dpverify.ledger.checks import Evidence, Formula, equals
from dpverify.ledger.statements import Correction, Statement, judge, known_statements, mistaken
from dpverify_audits.papers.kenthapadi2013 import crossover
from tests.audits.papers.changes import (
    alone,
    altered,
    evidence,
    normalised,
    noticed,
    reached,
    scaled,
    tried,
    without_a_term,
)

CLAIMS = list(known_statements())
CHECKED = [statement for statement in CLAIMS if statement.check is not None]
NEAR = (Fraction(21, 20), Fraction(19, 20))
FAR = tuple(
    Fraction(ten) ** sign for ten in (2, 10, 10**2, 10**3, 10**4, 10**7) for sign in (1, -1)
)
HALF = Fraction(1, 2)
# What no factor turns: cases, rules and names, each with another formula of the opposite outcome.
OTHERS: Mapping[str, Formula] = {
    "aumuller2020.section-5.comparison.small-epsilon": lambda: [(Fraction(1, 100), Fraction(1))],
    "aumuller2020.section-6.1.range": lambda: 3,
    "aumuller2020.section-6.1.comparison": lambda: [("NoisyMinHash", "RRMinHash", 500, 4)],
    "aumuller2020.section-6.2.comparison": lambda: [("NoisyMinHash", "RRMinHash")],
    "aumuller2020.section-6.2.sizes": lambda: [(100, 500, 50, 100)],
    "kenthapadi2013.section-2.4.dimension": lambda: [(1000, Fraction(4))],
    "kenthapadi2013.section-3.2.2.matrices": lambda: [("normal", 1, (1, 1, 0))],
    "kenthapadi2013.section-4.3.3.projection-better": lambda: crossover._range(Fraction(99, 100)),
    "kenthapadi2013.section-4.3.3.responses-better": lambda: [
        (10**14, 256, 100, Fraction(1), Fraction(101, 100))
    ],
    "li2023.algorithm-7": lambda x: 3,
    "li2023.definition-2.3": lambda: [("signs of an OPORP",)],
    "li2023.definition-2.6.weaker": lambda: [(1, Fraction(2))],
    "li2023.section-2.2.local-noise": lambda: [(1, 2)],
    "li2023.section-3.6.literature": lambda: [(Fraction(200),)],
    "li2023.section-3.6.ratio-below-one": lambda: (500,),
    "li2023.section-4.4.repetitions": lambda x: 2,
    "li2023.theorem-4.7": lambda x: 3,
    "li2023.theorem-4.8.rr": lambda x: 2,
    "li2023.theorem-4.8.smooth": lambda x: 3,
    "li2023.theorem-6.1": lambda x, z: abs(z) <= Fraction(1, 8),
    "li2023.theorem-6.2": lambda x, z: abs(z) <= Fraction(1, 8),
    "stausholm2021.definition-1.histograms": lambda: [((1, 0), (0, 1))],
    "stausholm2021.equation-5": lambda: [(Fraction(1, 10), Fraction(1, 1000), 4)],
    "stausholm2021.note-2": lambda: [(1,)],
    "stausholm2021.note-3": lambda: [(1, 0), (0, -1)],
}
SENTENCE = re.compile(r"[.?!]”?(?= [^a-z]|$)")
BATCH = 25
# The checks that take seconds for all their changes.
SLOW = {
    "li2023.definition-2.3",
    "li2023.equation-7-8",
    "li2023.remark-3.1.reduces",
    "li2023.section-3.3.crossing",
    "li2023.theorem-6.1",
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


def draws(statement: Statement) -> bool:
    return statement.check is not None and statement.check.oracle == "simulation"


def changes(
    statement: Statement, formula: Formula, factors: tuple[Fraction, ...]
) -> Iterator[Formula]:
    """The known other formula of a statement, if there is one, then its own times each factor."""
    if statement.id in OTHERS:
        yield OTHERS[statement.id]
    yield from (scaled(statement, formula, factor) for factor in factors)


def turned(
    statement: Statement, formula: Formula, factors: tuple[Fraction, ...], *, to: bool
) -> bool:
    """Whether one of some changes of a formula makes it hold, or fail."""
    tries = (tried(statement, changed) for changed in changes(statement, formula, factors))
    return any(found is not None and found.holds is to for found in tries)


def names_cases(formula: Formula) -> bool:
    """Whether a formula is a list of cases, as of `wherever`."""
    return not signature(formula).parameters and isinstance(formula(), list)


def batches(statements: Sequence[Statement], every: int) -> Iterator[Any]:
    """Every so many statements with every change, a paper at a time; the others by night."""
    chosen = [statement for statement in CHECKED[::every] if statement.id not in SLOW]
    for paper, group in groupby(statements, lambda statement: statement.paper):
        of_paper = list(group)
        day = [statement for statement in of_paper if statement in chosen]
        night = [statement for statement in of_paper if statement not in chosen]
        if day:
            yield pytest.param(day, id=paper)
        for first in range(0, len(night), BATCH):
            batch = night[first : first + BATCH]
            yield pytest.param(batch, id=f"{batch[0].id} and on", marks=pytest.mark.nightly)


def each(
    statements: Sequence[Statement], every: int = 32
) -> Callable[[Callable[[Statement], None]], Any]:
    """Try a check on every statement; a failure names those on which it fails."""

    def over(check: Callable[[Statement], None]) -> Any:
        @pytest.mark.parametrize("batch", list(batches(statements, every)))
        def test(batch: Sequence[Statement]) -> None:
            failures = []
            for statement in batch:
                try:
                    check(statement)
                except AssertionError as error:
                    error.add_note(statement.id)
                    failures.append(error)
            if failures:
                raise ExceptionGroup(check.__name__, failures)

        return test

    return over


@each(CHECKED)
def test_every_check_can_hold_and_can_fail(statement: Statement) -> None:
    given, printed = evidence(statement), statement.formulas["printed"]
    for found in given.values():
        assert bool(found.counterexample) is not found.holds
        assert statement.check is not None
        assert found.oracle == statement.check.oracle
        assert found.digits is None or found.digits >= 3  # a ball that is true because it's huge
    if not any(found.holds for found in given.values()):
        assert turned(statement, printed, NEAR + FAR, to=True)
    elif all(found.holds for found in given.values()):
        exact = given["printed"].tight and given["printed"].oracle != "simulation"
        assert turned(statement, printed, NEAR if exact else NEAR + FAR, to=False)
    for correction in statement.corrections.values():
        if not names_cases(correction.formula):  # a range, of which what is printed is another one
            assert turned(statement, correction.formula, NEAR + FAR, to=False)


@each(CHECKED)
def test_what_is_printed_decides_what_is_found(statement: Statement) -> None:
    printed, *others = statement.formulas.values()
    tries = (
        tried(statement, one) for one in chain(others, changes(statement, printed, NEAR + FAR))
    )
    assert any(found != evidence(statement)["printed"] for found in tries)


def any_sum(formula: Formula) -> bool:
    return next(without_a_term(formula), None) is not None


def lost(statement: Statement, formula: Formula, before: Evidence) -> list[str]:
    """Terms of a formula whose loss the check doesn't notice."""
    unnoticed = []
    for text, changed in without_a_term(formula):
        after = tried(statement, changed)
        exact = before.holds and before.tight
        if after == before or (exact and after and after.holds and after.tight):
            unnoticed.append(text)
    return unnoticed


@each(CHECKED)
def test_a_lost_term_is_noticed(statement: Statement) -> None:
    for name, formula in filter(lambda named: any_sum(named[1]), statement.formulas.items()):
        assert lost(statement, formula, evidence(statement)[name]) == [], name


@each([statement for statement in CHECKED if statement.readings or statement.corrections])
def test_what_is_printed_fails_and_what_stands_beside_it_holds(statement: Statement) -> None:
    printed, *others = evidence(statement).values()
    assert (printed.holds, [other.holds for other in others]) == (False, [True] * len(others))


def test_a_misprint_is_one_change() -> None:
    """Two of them that are needed together make a statement refuted."""
    changes = [one.change for each in CHECKED for one in each.corrections.values() if one.change]
    assert [text for text in changes if " and " in text] == []


def test_a_correction_is_the_papers_own_or_has_a_proof() -> None:
    """Where there is none it says that it is tried; the check's cases are on the page."""
    bare = [
        statement.id
        for statement in CHECKED
        for one in statement.corrections.values()
        if not (one.place or one.proof)
    ]
    assert bare == []


def test_what_stands_beside_a_false_line_is_more_than_tried() -> None:
    """A correction that is tried in the middle of its range can be false at an end of it."""
    unproven = [
        statement.id
        for statement in CHECKED
        for one in statement.corrections.values()
        if "not proven" in one.proof
    ]
    assert unproven == []


# The most projections or functions of a paper's own experiments.
LARGEST = {"aumuller2020": 500, "li2023": 1024}


@pytest.mark.nightly
def test_a_reading_is_tried_at_the_papers_own_sizes() -> None:
    far = []
    for statement in CHECKED:
        for name in statement.readings if statement.paper in LARGEST else ():
            cases = evidence(statement)[name].numbers
            sizes = re.findall(r"(?:^|; )k=(\d+)", "\n".join(cases), re.MULTILINE)
            if sizes and min(map(int, sizes)) > LARGEST[statement.paper]:
                far.append((statement.id, name))
    assert far == []


@each(CHECKED)
def test_what_fails_says_why_and_what_to_do_instead(statement: Statement) -> None:
    if not evidence(statement)["printed"].holds:
        assert len(SENTENCE.findall(statement.reason)) >= 2
        assert statement.reason.endswith((".", "”"))
        assert statement.instead.endswith(".")


def beyond(found: Evidence) -> tuple[Fraction, ...]:
    """Factors of a truth that an equality, or a bound with its slack, can't survive."""
    little = Fraction(1, 10**6)
    if found.ratios is None:
        return 1 + little, 1 - little
    largest = Fraction(found.ratios[1])
    return ((1 + little) / largest if largest else Fraction(10**12),)


def survived(statement: Statement, formula: Formula, before: Evidence) -> bool:
    """Whether a formula holds against an oracle that is wrong by little more than the slack."""
    factors = beyond(before)
    if statement.check is not None and before.ratios and not statement.check.bound:
        factors = (*factors, *(1 / factor for factor in factors))  # it is right either way
        held = [tried(mistaken(alone(statement, formula), f), formula) for f in factors]
        return all(after is not None and after.holds for after in held)
    held = [tried(mistaken(alone(statement, formula), f), formula) for f in factors]
    return any(after is not None and after.holds for after in held)


@each([statement for statement in CHECKED if not draws(statement)])
def test_no_formula_survives_a_wrong_oracle(statement: Statement) -> None:
    """What is printed, a reading and a correction alike, wrong by 10⁻⁶ beyond the slack."""
    for name, formula in statement.formulas.items():
        before = evidence(statement)[name]
        if before.holds:
            assert not survived(statement, formula, before), name
        else:
            after = tried(mistaken(alone(statement, formula), Fraction(7)), formula)
            assert after != before, name


def of_a_probability(statement: Statement) -> bool:
    bound = statement.check is not None and statement.check.bound
    return bound and re.search(r"P\(|probability", statement.text) is not None


@each([statement for statement in CHECKED if of_a_probability(statement)])
def test_bounds_on_probabilities_say_something(statement: Statement) -> None:
    """A probability is at most 1: half of the cases at least have a bound that isn't above that."""
    numbers = evidence(statement)["printed"].numbers.values()
    compared = (re.fullmatch(r"(\S+) (?:of at most|above) (\S+)", one) for one in numbers)
    ends = [(Fraction(one[1]), Fraction(one[2])) for one in compared if one]
    empty = [(value, bound) for value, bound in ends if value <= 1 < bound]
    assert 2 * len(empty) <= len(ends) or any(value > bound for value, bound in ends)


def sides(statement: Statement) -> Iterator[tuple[str, set[FunctionType], list[str]]]:
    """The functions that the truth alone calls, and each formula; and what they are tried on."""
    said = {name: reached(formula) for name, formula in statement.formulas.items()}
    truth, formulas = reached(statement.check), set[FunctionType]().union(*said.values())
    for name, calls, others, tried_on in (
        ("truth", truth, formulas, list(said)),
        *((name, calls, truth, [name]) for name, calls in said.items()),
    ):
        own = {one for one in calls - others if one.__module__ != oracles.__name__}
        yield name, own, tried_on


PLACES = 5


@each([statement for statement in CHECKED if not draws(statement)], every=120)
def test_some_place_of_either_side_matters(statement: Statement) -> None:
    """Of some changes of one place at a time one at least is noticed, whichever side has it."""
    for side, functions, names in sides(statement):
        places = altered(functions, PLACES, f"{statement.id} {side}")
        seen = any(noticed(statement, names, function, code) for _, function, code in places)
        assert seen is bool(places), (side, [text for text, *_ in places])


# What both sides call, where the statement is of that function itself, and not of its value.
RELATIONS: Mapping[str, str] = {
    "aumuller2020.theorem-4.1": "of L, which says where the reading speaks",
    "aumuller2020.section-6.1.linear": "of one K at two sizes",
    "aumuller2020.section-6.1.integers": "of L, which says where the error rises",
    "kenthapadi2013.lemma-2.rows": "of the least k that the lemma asks for",
    "kenthapadi2013.section-4.3.3.far": "of one variance at two distances",
    "li2023.equation-23": "of the record, whose norm the formula takes",
    "li2023.lemma-4.3.monotone": "of one bound at two arguments",
    "slides2025.appendix-e.matrix": "of the Laplacian of other weights",
    "slides2025.appendix-e.additive.logarithm": "of the number of rows, a parameter",
    "slides2025.appendix-f.error.logarithm": "of the number of rows, a parameter",
    "stausholm2021.appendix-a.fourth-moment": "of E‖Sz‖⁴, which the formula names",
    "stausholm2021.appendix-a.unfolded": "of moments that the formula names",
    "stausholm2021.appendix-c.fourth-moment": "of moments of one enumerated law",
    "stausholm2021.equation-12": "of moments of one enumerated law",
    "stausholm2021.appendix-c.squared-mean": "of moments of one enumerated law",
    "stausholm2021.equation-5": "of a sparsity that stands on both sides",
    "stausholm2021.equation-7": "of moments of one enumerated law",
    "stausholm2021.equation-8": "of E[η²], which the formula names",
    "stausholm2021.lemma-11.random": "of moments of η, which the formula names",
    "stausholm2021.lemma-3.variance": "of Var‖Sz‖², which the formula names",
    "stausholm2021.theorem-1": "of the least k that the theorem asks for",
}
# Definitions of elementary things, which no oracle could do without.
ELEMENTARY = {
    "_length",
    "_log",
    "_squared_norm",
    "_times",
    "_transposed",
    "dot",
    "jaccard",
    "power",
}


def shared(statement: Statement) -> set[str]:
    """Functions of the ledger that the check's oracle and one of the formulas both call."""
    ours = {one for one in reached(statement.check) if one.__module__ != oracles.__name__}
    said = set[FunctionType]().union(*(reached(one) for one in statement.formulas.values()))
    return {one.__name__ for one in ours & said} - ELEMENTARY


def alike(statement: Statement) -> list[str]:
    """Formulas that are written as the truth is, up to the names of their parameters."""
    assert statement.check is not None
    truth = normalised(statement.check.truth)
    written = {name: normalised(one) for name, one in statement.formulas.items()}
    return [name for name, one in written.items() if truth and one == truth]


@pytest.mark.nightly
def test_no_oracle_shares_code_with_a_formula() -> None:
    assert {statement.id for statement in CHECKED if shared(statement)} == set(RELATIONS)
    assert [statement.id for statement in CHECKED if alike(statement)] == []


@pytest.mark.parametrize("itself", [True, False])
def test_a_formula_that_is_its_own_oracle_is_found(itself: bool) -> None:
    def oracle(n: int) -> Fraction:
        return Fraction(n * (n - 1), 2)

    planted = Statement(
        id="a.b",
        where="",
        text="",
        printed=lambda n: Fraction(n),
        check=equals(lambda n: oracle(n), [(3,), (5,)], "points"),
        corrections={
            "right": Correction(
                oracle if itself else lambda m: Fraction(m * (m - 1), 2), proof="by counting"
            )
        },
        reason="Printed without the other factor.",
        instead="Take it.",
    )
    assert shared(planted) == ({"oracle"} if itself else set())
    written = replace(planted, check=equals(oracle, [(3,)], "points"), corrections={})
    again = replace(written, printed=lambda k: Fraction(k * (k - 1), 2))
    assert (alike(written), alike(again)) == ([], ["printed"])


@pytest.mark.nightly
def test_one_fact_has_one_verdict_in_every_paper() -> None:
    """A guarantee over the draw of something public, used for the one that was drawn."""
    drawn = [
        statement
        for statement in CHECKED
        if any("over the draw" in name for name in statement.readings)
    ]
    assert {statement.paper for statement in drawn} == {
        "aumuller2020",
        "kenthapadi2013",
        "li2023",
        "stausholm2021",
    }
    for statement in drawn:
        printed, *others = evidence(statement).values()
        assert judge(statement).verdict == "holds_under_reading"
        assert (printed.holds, [other.holds for other in others]) == (False, [True])


def test_two_seeds_give_one_verdict() -> None:
    drawn = [statement for statement in CHECKED if draws(statement)]
    assert drawn
    for statement in drawn:
        first, second = judge(statement, seed=1), judge(statement, seed=2)
        assert first.printed != second.printed, statement.id
        assert first.verdict == second.verdict, statement.id


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(c.id for c in CLAIMS).items() if count > 1] == []


def test_the_exceptions_exist() -> None:
    assert {*OTHERS, *SLOW} <= {statement.id for statement in CHECKED}


def test_a_term_that_does_not_matter_is_found() -> None:
    """The choice of 6 is 0 in every case that the check tries."""
    (statement,) = (
        statement for statement in CHECKED if statement.id == "li2023.lemma-4.3.product"
    )

    def formula(p: int) -> Fraction:
        return Fraction(1, p + 1) + comb(p, 6)

    before = tried(statement, formula)
    assert before is not None
    assert before.holds
    assert lost(statement, formula, before) == ["without comb(p, 6)"]
