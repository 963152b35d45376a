"""Guarantees and accountants stand on statements of papers: who uses which, and that it holds.

A mechanism's guarantee names the statements that its proof uses as printed
(`Guarantee.statements`). Before anything is drawn, and again when a certificate is verified, each
is looked up in the installed ledgers and its check is run: milliseconds, once per process. No
certificate is made where one of them failed.

A curve or a bound of the accountant names the theorems that it computes (`statements` of its
class), and so does each published level of noise. `users` goes the other way: from a statement to
the mechanisms and accountants that use it, or have something else in its place where it fails.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from dpverify.accounting import published
from dpverify.accounting.composition.theorems import AdvancedBound
from dpverify.accounting.notions.renyi import RDP, FiniteRenyi, GaussianRenyi, LaplaceRenyi
from dpverify.curves import Gaussian, Laplace, RandomizedResponse, RankOneNormal
from dpverify.errors import ConfigurationError
from dpverify.guarantee import Guarantee
from dpverify.ledger.statements import Judgement, Statement, judge, known_statements

__all__ = ["accountants", "relation", "relied_on", "users"]

_COMPUTED: tuple[Any, ...] = (
    AdvancedBound,
    FiniteRenyi,
    Gaussian,
    GaussianRenyi,
    Laplace,
    LaplaceRenyi,
    RDP,
    RandomizedResponse,
    RankOneNormal,
)


@cache
def accountants() -> dict[str, tuple[str, ...]]:
    """Curves, bounds and published levels by their full names, with the statements they compute."""
    classes = {f"{one.__module__}.{one.__name__}": one.statements for one in _COMPUTED}
    levels = {f"{published.__name__}.{name}": ids for name, ids in published.STATEMENTS.items()}
    return {**classes, **levels}


def users(statement: Statement) -> tuple[str, ...]:
    """Mechanisms, by name, and accountants, by full name, that a statement is about.

    Examples
    --------
    >>> from dpverify.ledger.statements import known_statement
    >>> users(known_statement("kenthapadi2013.lemma-3"))
    ('randomized-response', 'dpverify.accounting.curves.randomized_response.RandomizedResponse')
    """
    computing = (name for name, ids in accountants().items() if statement.id in ids)
    return (*statement.mechanisms, *computing)


def relation(judgement: Judgement) -> str:
    """How the users of a statement stand to it: a false one is read otherwise, or replaced."""
    fails = judgement.printed is not None and not judgement.printed.holds
    return "read or replaced in" if fails else "used by"


def relied_on(name: str, guarantee: Guarantee) -> list[Judgement]:
    """What the checks found for the statements that a guarantee stands on.

    Parameters
    ----------
    name : of the mechanism, for the error
    guarantee : its `statements` are ids of the ledgers

    Raises
    ------
    ConfigurationError
        If a statement isn't true as printed (it is refuted, a misprint, or true under some readings
        only), can't be checked, or is in no installed ledger.
    """
    return [_true(name, id_) for id_ in guarantee.statements]


def _true(name: str, id_: str) -> Judgement:
    found = _judgement(id_)
    if found is None:
        raise ConfigurationError(
            f"{name} can't be certified: its guarantee uses {id_}, which is in no installed ledger "
            "of statements. Install the package that has it."
        )
    if found.holds:
        return found
    raise ConfigurationError(
        f"{name} can't be certified: its guarantee uses {id_}, which was judged "
        f"{found.verdict}. `dpverify claims show {id_}` has the numbers."
    )


@cache
def _judgement(id_: str) -> Judgement | None:
    statement = next((statement for statement in known_statements() if statement.id == id_), None)
    return None if statement is None else judge(statement)
