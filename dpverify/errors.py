"""The one tree of errors.

Every message names the value and the rule, then the way out where there is one. ``exit_code`` is
what the command line returns for it: 2 where the user can mend it, 4 where the program is at fault,
and 1 for the one refusal that is an answer, of a release that a budget has no room for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, NoReturn

from dpverify._decimals import context

__all__ = [
    "PASSING",
    "BudgetError",
    "BudgetExceededError",
    "CertificateError",
    "ClusterError",
    "ConfigurationError",
    "DPVerifyError",
    "DrawError",
    "EntropyError",
    "Interruption",
    "KeyFileError",
    "MissingExtraError",
    "NumericalError",
    "OutputError",
    "ParameterError",
    "RecordsError",
    "did_you_mean",
    "extra",
    "place",
    "require",
    "require_known",
    "require_text",
]


_MOST_SHOWN = 200  # characters of a value


class Interruption(BaseException):
    """What stops foreign code from outside: a time limit, say. `except Exception` lets it pass."""


PASSING = (KeyboardInterrupt, Interruption)
"""What foreign code raises, of whatever base, is its own, but for these."""


class DPVerifyError(Exception):
    """Anything that dpverify refuses or can't do."""

    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:  # halves of characters, which a name may hold, as escapes
        return super().__str__().encode(errors="backslashreplace").decode()


class ParameterError(DPVerifyError, ValueError):
    """A value outside its domain.

    Attributes
    ----------
    name, value, rule : the parameter, what was given, and what it must be.
    """

    def __init__(self, name: str, value: object, rule: str, way_out: str = "") -> None:
        self.name, self.value, self.rule, self._way_out = name, value, rule, way_out
        super().__init__(
            f"{name}={_text(value)} must be {rule}." + (f" {way_out}" if way_out else "")
        )

    def __reduce__(self) -> tuple[object, ...]:  # exceptions cross process borders
        return (ParameterError, (self.name, self.value, self.rule, self._way_out))


class RecordsError(DPVerifyError, ValueError):
    """Records that can't be read or don't keep to the declared domain.

    Attributes
    ----------
    problem : what is wrong; it continues the record's number where there is one
    record : number of the first record at fault, from 0, where it is known
    """

    def __init__(self, problem: str, record: int | None = None) -> None:
        self.problem, self.record = problem, record
        super().__init__(problem if record is None else f"record {record}{problem}")

    def __reduce__(self) -> tuple[object, ...]:  # exceptions cross process borders
        return (RecordsError, (self.problem, self.record), vars(self))

    def in_block(self, number: int, first: int) -> RecordsError:
        """The same error of a block of records: its number and that of its first record."""
        if self.record is None:
            return RecordsError(f"block {number}: {self.problem}")
        return RecordsError(self.problem, self.record + first)


class ConfigurationError(DPVerifyError, ValueError):
    """A configuration that can't be read or says something unknown."""


class CertificateError(DPVerifyError, ValueError):
    """A certificate that can't be read at all (one that reads but disagrees is a finding)."""


class KeyFileError(DPVerifyError):
    """A signer's key that can't be used, or that others may read."""


class OutputError(DPVerifyError, OSError):
    """Outputs that can't be written where the user asked for them."""


class BudgetError(DPVerifyError):
    """A budget's file that can't be used, or doesn't agree with itself: nothing was spent."""


class BudgetExceededError(BudgetError):
    """A release that doesn't fit into what a budget has left: nothing was spent."""

    exit_code: ClassVar[int] = 1


class ClusterError(DPVerifyError):
    """A cluster that can't be reached, or whose workers can't give the numbers of this process."""


class MissingExtraError(DPVerifyError, ImportError):
    """A package that only some tasks need isn't installed; the message names the extra."""


class DrawError(DPVerifyError):
    """A mechanism that can't be drawn from: it raises, hangs, or releases what can't be read."""


class EntropyError(DPVerifyError, OSError):
    """The operating system gave no random bytes: nothing is drawn, and there is no fallback."""

    exit_code: ClassVar[int] = 4


class NumericalError(DPVerifyError, ArithmeticError):
    """A bound that could not be proven to the promised width: never answered by a guess."""

    exit_code: ClassVar[int] = 4


def require(condition: bool, name: str, value: object, rule: str, way_out: str = "") -> None:
    """Raise `ParameterError` unless `condition` holds.

    Conditions are written so that NaN fails them: ``require(0 <= delta < 1, …)``.
    """
    if not condition:
        _refuse(name, value, rule, way_out)


def require_known(name: str, value: object, known: Iterable[str]) -> None:
    """Raise `ParameterError` unless the value is one of these names; it says which was meant."""
    names = list(known)
    if not (isinstance(value, str) and value in names):
        rule = " or ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])
        _refuse(name, value, rule, did_you_mean(_text(value), names, otherwise=" ").strip())


def require_text(name: str, value: object) -> None:
    """Raise `ParameterError` unless the value is text: what stands in a report by that name."""
    if not isinstance(value, str):
        _refuse(name, value, "text", "")


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import what only the extra `name` installs: where it is missing, `purpose` needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}: pip install 'dpverify[{name}]'."
        ) from None


def did_you_mean(given: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """The way out where a name is unknown: the one that was probably meant.

    Where none is close it is what to do `otherwise`, by default to choose from all there are.
    """
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return otherwise or (f"Known: {', '.join(names)}." if names else "None is installed.")


def place(path: Iterable[str | int]) -> str:
    """Where something stands in a document, as in code: ``parts[0].file``."""
    return "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in path).lstrip(".")


def _text(value: object) -> str:
    """As a user would write it, on one line; else what it is.

    A fraction is written as its decimal, where that has at most 28 digits; of what is long, the
    beginning.
    """
    if isinstance(value, Fraction) and value.denominator > 1:
        decimal = context(28).divide(Decimal(value.numerator), Decimal(value.denominator))
        value = decimal if decimal == value else value
    try:
        text = str(value)
        if len(text) > _MOST_SHOWN:
            text = f"{text[:_MOST_SHOWN]}… ({len(text):,} characters)"
        return f"a {type(value).__name__}" if "\n" in text else text
    except PASSING:
        raise
    except BaseException:  # foreign code, or a whole number of more than 4,300 digits
        return f"a {type(value).__name__} that can't be shown"


def _refuse(name: str, value: object, rule: str, way_out: str) -> NoReturn:
    raise ParameterError(name, value, rule, way_out)
