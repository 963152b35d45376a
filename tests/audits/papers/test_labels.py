"""Labels follow one rule: no threshold of ours for a vague word, no two verdicts for one line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dpverify.ledger.checks import at_most
from dpverify.ledger.statements import Correction, Reading, Statement, known_statements
from tests.audits.papers.changes import evidence, normalised

CLAIMS = list(known_statements())
CHECKED = [statement for statement in CLAIMS if statement.check is not None]
VAGUE = re.compile(
    r"\b(approximately|essentially|good|inaccurate|much (better|larger|less|smaller)|nearly|poorly"
    r"|roughly|significantly|slightly|stringent|typical(ly)?|concentrated)\b"
)
# What stands before a number or a formula that is not meant to the last digit.
HEDGE = re.compile(r"≈|∼|\babout\b|\baround\b")
ORDER = re.compile(r"\bO\(")
UNBOUNDED = re.compile(r"[Nn]o (constant|O)\b|without end")
# Where a place of the paper stands in the advice beside a correction of ours, and isn't it.
PLACE = re.compile(
    r"(?<!'s )\b([Aa]lgorithm|appendix|equation|item|lemma|[Nn]ote|[Ss]ection|theorem)\b"
    r"|\b(display|line) of the proof\b|\bwhich (is|are|has|have) (it|both|right)\b"
)
BESIDE_OURS = {
    "li2023.equation-26": "where the printed formula is right",
    "li2023.section-4.1.2.optimal-k": "what is to be minimised",
    "mironov2017.proposition-4.large": "from which the proposition is proven otherwise",
    "stausholm2021.appendix-c.fourth-moment.step": "the bound that needs the step",
}
# What has a vague word, and a number of its own or the paper's as well.
NUMBERED = {
    "aumuller2020.section-6.1.nearly": "a ratio that is read off a figure",
}
_ONE_NUMBER = re.compile(r"δ (of|is) \d")


def vague(statements: Sequence[Statement]) -> list[str]:
    """Statements that are tried though their words name neither a measure nor a number."""
    return [
        statement.id
        for statement in statements
        if statement.check is not None and VAGUE.search(f"{statement.where} {statement.text}")
    ]


def unread(statements: Sequence[Statement]) -> list[str]:
    """Statements that fail, with a hedge of which nothing says how it is read."""
    return [
        statement.id
        for statement in statements
        if statement.readings or statement.corrections
        for hedge in HEDGE.findall(statement.text)
        if f"“{hedge}”" not in statement.conditions + statement.reason
    ]


def bounded(statements: Sequence[Statement]) -> list[str]:
    """Orders that fail by a correction alone, where nothing says that no constant does."""
    return [
        statement.id
        for statement in statements
        if statement.corrections and not statement.readings and ORDER.search(statement.text)
        if not UNBOUNDED.search(statement.reason)
    ]


def placed(statements: Sequence[Statement]) -> list[str]:
    """Statements that send the reader to a place of the paper, with a correction of ours."""
    return [
        statement.id
        for statement in statements
        if any(correction.proof for correction in statement.corrections.values())
        and PLACE.search(statement.instead)
    ]


def without_setting(statements: Sequence[Statement]) -> list[str]:
    """Reasons that state a δ and not at which ε."""
    return [
        statement.id
        for statement in statements
        if _ONE_NUMBER.search(statement.reason) and "ε = " not in statement.reason
    ]


def lines(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Statements of a paper with one formula and one oracle, whatever the cases."""
    groups = defaultdict(list)
    for statement in statements:
        if statement.check is not None and statement.printed is not None:
            of = statement.check.truth
            said = normalised(statement.printed) or id(statement.printed)
            groups[statement.paper, said, normalised(of) or id(of)].append(statement)
    yield from (group for group in groups.values() if len(group) > 1)


def doubled(statements: Sequence[Statement]) -> list[list[str]]:
    """Of such statements those of which one is true as printed and another one is read."""
    return [
        [statement.id for statement in group]
        for group in lines(statements)
        if len({bool(statement.readings) for statement in group}) > 1
    ]


def test_vague_words_are_not_refuted_by_a_threshold_of_ours() -> None:
    assert vague(CLAIMS) == list(NUMBERED)


def test_a_hedge_is_read_where_the_statement_fails() -> None:
    assert unread(CLAIMS) == []


def test_an_order_fails_where_no_constant_does() -> None:
    assert bounded(CLAIMS) == []


def test_what_the_paper_has_is_not_said_to_be_ours() -> None:
    assert set(placed(CLAIMS)) <= set(BESIDE_OURS)


def test_a_delta_is_at_an_epsilon() -> None:
    assert without_setting(CLAIMS) == []


def test_one_line_has_one_verdict() -> None:
    assert doubled(CLAIMS) == []


def test_what_the_extraction_may_have_lost_is_not_held_against_the_authors() -> None:
    beside = [statement for statement in CHECKED if statement.readings or statement.corrections]
    hedged = [one.id for one in beside if re.search("our text|in print", one.reason)]
    assert hedged == []


def test_a_bound_is_reached_at_each_of_its_ends_and_nowhere_else() -> None:
    ended = [statement for statement in CHECKED if statement.check and statement.check.ends]
    assert ended
    for statement in ended:
        found = evidence(statement)["printed"]
        assert statement.check is not None
        assert len(found.ends) == len(statement.check.ends), statement.id
        assert not found.tight, statement.id


def planted(text: str = "P(S) ≤ δ.", reason: str = "", **more: Any) -> Statement:
    check = at_most(lambda f, n: (n, f(n)), [(1,)], "enumeration")
    return Statement(
        id="a.b", where="", text=text, printed=lambda n: 2 * n, check=check, reason=reason, **more
    )


def test_each_fault_is_found_where_it_is_planted() -> None:
    named = Correction(lambda n: 2 * n, proof="by definition")
    read = Reading(lambda n: 2 * n, place="page 1: “so”", covers="all")
    one = planted()
    beside = planted(reason="So.", instead="So.", readings={"so": read}, corrections={"": named})
    other = replace(beside, id="a.c", printed=one.printed, check=one.check)
    ours = {"so": named}
    about = planted("It is about 1.", "So.", instead="So.", corrections=ours)
    assert vague([planted("Both methods perform poorly."), one]) == ["a.b"]
    assert unread([about]) == ["a.b"]
    assert unread([replace(about, conditions="“about” is within 1 %"), one]) == []
    sent = replace(about, instead="Take β, as algorithm 5 does.")
    assert placed([sent, about, replace(sent, corrections={})]) == ["a.b"]
    order = planted("It is O(n).", "So.", instead="So.", corrections=ours)
    assert bounded([order]) == ["a.b"]
    assert bounded([replace(order, reason="It grows without end."), one]) == []
    assert without_setting([planted(reason="A long row has a δ of 0.03."), one]) == ["a.b"]
    assert without_setting([planted(reason="At ε = 1 it has a δ of 0.03.")]) == []
    assert doubled([one, other]) == [["a.b", "a.c"]]
    assert doubled([one, replace(one, id="a.c")]) == []
