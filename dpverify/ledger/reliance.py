"""A guarantee stands on statements of papers: no certificate where one of them failed its check.

A mechanism's guarantee names the statements that its proof uses as printed
(`Guarantee.statements`). Before anything is drawn, and again when a certificate is verified, each
is looked up in the installed ledgers and its check is run: milliseconds, once per process.
"""

from __future__ import annotations

from functools import cache

from dpverify.errors import ConfigurationError
from dpverify.guarantee import Guarantee
from dpverify.ledger.statements import Judgement, judge, known_statements

__all__ = ["relied_on"]


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
        f"{name} can't be certified: its guarantee uses {id_}, and the verdict on that is "
        f"{found.verdict}. `dpverify claims show {id_}` has the numbers."
    )


@cache
def _judgement(id_: str) -> Judgement | None:
    statement = next((statement for statement in known_statements() if statement.id == id_), None)
    return None if statement is None else judge(statement)
