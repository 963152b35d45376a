"""Statements of papers, checked by machine: the verdict is what the check computes.

A `Statement` holds what is printed, what else may have been meant, and a check that tries one
formula: it returns an `Evidence`, never a verdict. What is printed is judged first, at the settings
that it covers; readings and corrections stand beside it, as claims that the same check has to
confirm. `judge` derives the verdict by one rule:

| printed | beside it | verdict |
|---|---|---|
| an equality that holds, or a bound that is reached, exactly | – | confirmed_exactly |
| the same, by simulation at a stated level | – | confirmed_statistically |
| a bound that holds and is reached at no case, or at named ends alone | – | conservative |
| fails | a `Reading` holds | holds_under_reading |
| fails | a `Correction` by one change of the paper's own holds | misprint |
| fails | neither holds | refuted |
| no check is possible | – | not_checkable |

- A condition that the paper doesn't have stands under no statement that holds: it is that of a
  reading or a correction. A symbol that the text leaves open is no condition: it is taken from
  where the text sends its reader for it, which `conditions` quotes.
- A `Reading` needs the place of the paper that supports it, quoted, and why it covers the settings
  that the paper itself uses. A condition that the paper doesn't have is no reading.
- A `Correction` names the place of the paper that has it, or it is ours and has a proof. If it
  changes one symbol, sign, constant or missing word of what is printed, as that place has it, it
  names the change too. A statement that only other corrections make true is refuted.
- Where a reading or a correction stands, the statement says why in words, and what to do instead.

A statement that lacks what the rule asks for is an error when it is made. A formula that is changed
in the ledger's source changes its verdict; `perturbed` formulas and `mistaken` oracles show that
every check can fail.

One fact has one verdict: a guarantee whose proof draws something that is public and is drawn once
is asked for both uses, over the draw and for the one that was drawn. Where the first holds and the
second doesn't, it holds under the reading that its proof has, in every paper alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from dpverify.errors import ClusterError, ParameterError, require
from dpverify.execution.parallel import spread
from dpverify.ledger.checks import Check, Evidence, Formula
from dpverify.ledger.letters import Quotient

__all__ = [
    "Correction",
    "Judgement",
    "Reading",
    "Statement",
    "Verdict",
    "judge",
    "judge_all",
    "known_papers",
    "known_statement",
    "known_statements",
    "mistaken",
    "perturbed",
]

Verdict = Literal[
    "confirmed_exactly",
    "confirmed_statistically",
    "conservative",
    "misprint",
    "refuted",
    "holds_under_reading",
    "not_checkable",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a paper means, by its own text, where it leaves something open.

    Attributes
    ----------
    formula : what is printed, under this reading
    place : where the paper supports it, with the words quoted
    covers : why its condition covers the settings that the paper itself uses
    """

    formula: Formula
    _: KW_ONLY
    place: str
    covers: str

    def __post_init__(self) -> None:
        quoted = "“" in self.place and "”" in self.place
        require(quoted, "place", self.place, "a place of the paper, with its words in “quotes”")
        require(
            bool(self.covers), "covers", self.covers, "why the paper's own settings are covered"
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """A formula that is true in place of the printed one.

    Either the paper has it, at a place, or it is ours, with its proof.

    Attributes
    ----------
    formula : what is true
    place : where the paper has it so; empty if it is ours
    change : the one symbol, sign, constant or word that changes; empty if more does
    proof : why ours is true, in words; empty if it is the paper's
    """

    formula: Formula
    _: KW_ONLY
    place: str = ""
    change: str = ""
    proof: str = ""

    def __post_init__(self) -> None:
        one = bool(self.place) != bool(self.proof)
        rule = "given where the paper has it, or else a proof; this one has"
        require(one, "place", self.place, f"{rule} {'both' if self.place else 'neither'}")
        rule = "that of the paper that has the change"
        require(bool(self.place) or not self.change, "place", self.place, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a paper.

    Attributes
    ----------
    id : paper, statement and part: ``li2023.theorem-3.9.variance``
    where : section and page, or equation, for someone who holds the paper
    text : what it says, in our own words and notation
    printed : the formula as printed
    check : tries a formula; None where nothing can be tried (then `reason` says why)
    conditions : what the statement supposes
    readings : what the paper means by its own text, by what they are
    corrections : formulas that are true in its place, by what they are
    mechanisms : names of mechanisms that rely on it
    reason : why it isn't checkable, or what is true and where that shows
    instead : what someone who follows the paper does instead
    """

    id: str
    where: str
    text: str
    printed: Formula | None = None
    check: Check | None = None
    conditions: str = ""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ()
    reason: str = ""
    instead: str = ""

    def __post_init__(self) -> None:
        good = self.id.count(".") >= 1 and self.id == self.id.lower() and " " not in self.id
        require(good, "id", self.id, "paper.statement or paper.statement.part, in lower case")
        require(
            (self.check is None) == (self.printed is None),
            "check",
            self.id,
            "given together with the printed formula",
        )
        require(
            self.check is not None or bool(self.reason),
            "reason",
            self.id,
            "given where there is no check",
        )
        told = bool(self.reason and self.instead)
        beside = bool(self.readings or self.corrections)
        require(told or not beside, "reason", self.id, "given, and `instead`, beside a correction")
        ours = self.check is not None and "not stated" in self.conditions
        rule = "the paper's own, where neither a reading nor a correction has it"
        require(beside or not ours, "conditions", self.conditions, rule)

    @property
    def formulas(self) -> dict[str, Formula]:
        """Every formula by what it is: the printed one, the readings', the corrections'."""
        beside: dict[str, Reading | Correction] = {**self.readings, **self.corrections}
        printed = {} if self.printed is None else {"printed": self.printed}
        return {**printed, **{name: one.formula for name, one in beside.items()}}

    @property
    def paper(self) -> str:
        """The paper's name."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A statement with its verdict, and the evidence for the printed formula and the others."""

    statement: Statement
    verdict: Verdict
    printed: Evidence | None
    others: Mapping[str, Evidence]

    @property
    def holds(self) -> bool:
        """Whether a mechanism may rely on what is printed."""
        return self.verdict in ("confirmed_exactly", "confirmed_statistically", "conservative")

    @property
    def shown(self) -> str:
        """Where what is printed fails, or how it was confirmed."""
        if self.printed is None:
            return ""
        return self.printed.counterexample or self.printed.how

    def reading(self) -> str:
        """Name of the reading under which the statement holds; empty if none is needed."""
        names = [name for name in self.statement.readings if self.others[name].holds]
        return names[0] if names and self.verdict == "holds_under_reading" else ""

    def correction(self) -> str:
        """Name of the formula that holds in place of the printed one; empty if none does."""
        if self.verdict not in ("misprint", "refuted"):
            return ""
        names = [name for name in self.statement.corrections if self.others[name].holds]
        known = self.statement.corrections
        return min(names, key=lambda n: (not known[n].change, not known[n].place), default="")


def judge(statement: Statement, *, seed: int = 0) -> Judgement:
    """Run the check on every formula of a statement and read off the verdict.

    Parameters
    ----------
    statement : what to check
    seed : of the replayable randomness of a check that draws; the others take none
    """
    if statement.check is None or statement.printed is None:
        return Judgement(statement=statement, verdict="not_checkable", printed=None, others={})
    printed, *rest = (
        statement.check(formula, seed=seed) for formula in statement.formulas.values()
    )
    others = dict(zip([*statement.readings, *statement.corrections], rest, strict=True))
    one = [name for name, correction in statement.corrections.items() if correction.change]
    verdict: Verdict
    if not printed.holds:
        read = any(others[name].holds for name in statement.readings)
        corrected = any(others[name].holds for name in one)
        verdict = "holds_under_reading" if read else "misprint" if corrected else "refuted"
    elif not printed.tight:
        verdict = "conservative"
    elif printed.oracle == "simulation":
        verdict = "confirmed_statistically"
    else:
        verdict = "confirmed_exactly"
    return Judgement(statement=statement, verdict=verdict, printed=printed, others=others)


def judge_all(
    statements: Sequence[Statement],
    *,
    seed: int = 0,
    workers: int = -1,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Judgement]:
    """Judge many statements, by many workers.

    Parameters
    ----------
    statements : of installed ledgers, unless there is one worker
    seed : as for `judge`
    workers : processes, −1 for all cores; no effect on the result (see `parallel.spread`)
    progress : called with 1 after each statement

    Returns
    -------
    list of `Judgement`, in the order of the statements

    Raises
    ------
    ClusterError
        If a check ends its process, or as for `parallel.spread`.
    """
    outcomes: Iterator[_Outcome]
    if workers == 1:
        outcomes = (_outcome(statement, seed) for statement in statements)
    else:
        outcomes = spread(_known_outcome, [(each.id, seed) for each in statements], workers=workers)
    found = []
    try:
        for statement, (verdict, printed, others) in zip(statements, outcomes, strict=True):
            found.append(
                Judgement(statement=statement, verdict=verdict, printed=printed, others=others)
            )
            progress(1)
    except BrokenExecutor as error:
        raise ClusterError(
            f"the check of {statements[len(found)].id}, or of a later one, ended its process: "
            "use workers=1."
        ) from error
    return found


_Outcome = tuple[Verdict, Evidence | None, Mapping[str, Evidence]]


def _outcome(statement: Statement, seed: int) -> _Outcome:
    found = judge(statement, seed=seed)
    return found.verdict, found.printed, found.others


def _known_outcome(id: str, seed: int) -> _Outcome:  # noqa: A002
    # Formulas may hold what can't be pickled, so a worker takes them from the ledger.
    known = _known()
    require(id in known, "id", id, "in an installed ledger", "Judge others with workers=1.")
    return _outcome(known[id], seed)


@cache
def _known() -> Mapping[str, Statement]:
    return {statement.id: statement for statement in known_statements()}


def known_statement(id: str) -> Statement:  # noqa: A002
    """The statement of an installed ledger that has this id.

    Examples
    --------
    >>> judge(known_statement("li2023.theorem-4.7")).verdict
    'confirmed_exactly'
    """
    require(id in _known(), "id", id, "in an installed ledger", "`dpverify claims` lists them.")
    return _known()[id]


def perturbed(statement: Statement, factor: Fraction) -> Statement:
    """The statement with another printed formula, and nothing else to fall back on.

    Every number that the formula gives is multiplied by the factor, a 0 becomes the factor less 1,
    and a yes a no; of tuples, lists and mappings every part is changed so.

    Parameters
    ----------
    statement : with a printed formula
    factor : exact; numbers that aren't are multiplied by the double next to it
    """
    printed = statement.printed
    if printed is None:
        raise ParameterError("statement", statement.id, "one with a printed formula")

    def changed(*arguments: Any, **named: Any) -> Any:
        return _changed(printed(*arguments, **named), factor)

    return replace(statement, printed=changed, conditions="", readings={}, corrections={})


def mistaken(statement: Statement, factor: Fraction) -> Statement:
    """The statement with another oracle: every number of the truth is changed as `perturbed` does.

    Of a value and the bound on it, the value alone is.

    Parameters
    ----------
    statement : with a check
    factor : exact; numbers that aren't are multiplied by the double next to it
    """
    check = statement.check
    if check is None:
        raise ParameterError("statement", statement.id, "one with a check")

    def changed(value: Any) -> Any:
        if check.bound and value is not None:
            return _changed(value[0], factor), *value[1:]
        return _changed(value, factor)

    return replace(statement, check=check.mistaken(changed))


def _changed(value: Any, factor: Fraction) -> Any:
    match value:
        case bool():
            return not value
        case int() | Fraction() | Quotient():
            return value * factor if value else factor - 1
        case tuple():
            return tuple(_changed(part, factor) for part in value)
        case list():
            return [_changed(part, factor) for part in value]
        case Mapping():
            return {key: _changed(part, factor) for key, part in value.items()}
        case None:
            return None
    return value * float(factor) if value != 0 else value + float(factor - 1)


def known_statements() -> Iterator[Statement]:
    """Every statement of every installed ledger, by the entry-point group ``dpverify.claims``."""
    for entry in sorted(entry_points(group="dpverify.claims"), key=lambda entry: entry.name):
        yield from entry.load()


def known_papers() -> dict[str, str]:
    """What each installed ledger is about, by the name of its entry point.

    A ledger lies in a module whose docstring's first line names the paper: "Ledger of …".
    """
    titles = {}
    for entry in sorted(entry_points(group="dpverify.claims"), key=lambda entry: entry.name):
        first = (import_module(entry.module).__doc__ or entry.name).strip().partition("\n")[0]
        titles[entry.name] = first.removeprefix("Ledger of ").removesuffix(".")
    return titles
