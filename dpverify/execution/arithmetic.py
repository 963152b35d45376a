"""Settings of arithmetic, numpy's errors and the context of decimals: ours and foreign code's.

They are the whole thread's. A process may have set them so that an underflow raises, or decimals
have six digits; and so may a mechanism, while it is audited. What is proven and counted is computed
with the defaults, foreign code with what was set before or by itself, and afterwards all is as it
was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Context, getcontext, localcontext
from typing import Any

import numpy as np

from dpverify._decimals import context
from dpverify.errors import DPVerifyError, NumericalError

__all__ = ["foreign_arithmetic", "usual_arithmetic", "usual_errors", "within_doubles"]


@dataclass(slots=True)
class _Settings:
    errors: Any = field(default_factory=np.geterr)
    decimals: Context = field(default_factory=lambda: getcontext().copy())


_foreign: ContextVar[_Settings | None] = ContextVar("_foreign", default=None)
"""What was set where `usual_arithmetic` began, and by foreign code since; None outside of it."""


def usual_errors() -> np.errstate:
    """What overflows or underflows is treated as numpy does by default."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


@contextmanager
def within_doubles() -> Iterator[None]:
    """Plan in doubles, and raise a `NumericalError` where they can't hold a number.

    Else it is a warning of numpy's, and a bare error where Python divides by 0, takes a logarithm
    or rounds what isn't finite.
    """
    try:
        with np.errstate(divide="raise", over="raise", under="ignore", invalid="raise"):
            yield
    except DPVerifyError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise NumericalError(f"a number is beyond doubles: {error}") from error


@contextmanager
def usual_arithmetic() -> Iterator[None]:
    """Compute with the defaults."""
    token = _foreign.set(_foreign.get() or _Settings())
    try:
        with usual_errors(), localcontext(context()):
            yield
    finally:
        _foreign.reset(token)


@contextmanager
def foreign_arithmetic() -> Iterator[None]:
    """Compute with what was set before `usual_arithmetic`, or here since then."""
    settings = _foreign.get() or _Settings()
    token = _foreign.set(None)
    try:
        with np.errstate(**settings.errors), localcontext(settings.decimals):
            try:
                yield
            finally:
                settings.errors, settings.decimals = np.geterr(), getcontext().copy()
    finally:
        _foreign.reset(token)
