"""The one tree of errors.

Every message names the value and the rule, then the way out where there is one. ``exit_code`` is
what the command line returns for it: 2 where the user can mend it, 4 where the program is at fault.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn

__all__ = [
    "CertificateError",
    "ConfigurationError",
    "DPVerifyError",
    "DrawError",
    "NumericalError",
    "OutputError",
    "ParameterError",
    "RecordsError",
    "require",
]


class DPVerifyError(Exception):
    """Anything that dpverify refuses or can't do."""

    exit_code: ClassVar[int] = 2


class ParameterError(DPVerifyError, ValueError):
    """A value outside its domain.

    Attributes
    ----------
    name, value, rule : the parameter, what was given, and what it must be.
    """

    def __init__(self, name: str, value: object, rule: str, way_out: str = "") -> None:
        self.name, self.value, self.rule, self._way_out = name, value, rule, way_out
        super().__init__(f"{name}={value} must be {rule}." + (f" {way_out}" if way_out else ""))

    def __reduce__(self) -> tuple[object, ...]:  # exceptions cross process borders
        return (ParameterError, (self.name, self.value, self.rule, self._way_out))


class RecordsError(DPVerifyError, ValueError):
    """Records that can't be read or don't keep to the declared domain."""


class ConfigurationError(DPVerifyError, ValueError):
    """A configuration that can't be read or says something unknown."""


class CertificateError(DPVerifyError, ValueError):
    """A certificate that can't be read at all (one that reads but disagrees is a finding)."""


class OutputError(DPVerifyError, OSError):
    """Outputs that can't be written where the user asked for them."""


class DrawError(DPVerifyError):
    """A mechanism that can't be drawn from: it raises, hangs, or releases what can't be read."""


class NumericalError(DPVerifyError, ArithmeticError):
    """A bound that could not be proven to the promised width: never answered by a guess."""

    exit_code: ClassVar[int] = 4


def require(condition: bool, name: str, value: object, rule: str, way_out: str = "") -> None:
    """Raise `ParameterError` unless `condition` holds.

    Conditions are written so that NaN fails them: ``require(0 <= delta < 1, …)``.
    """
    if not condition:
        _refuse(name, value, rule, way_out)


def _refuse(name: str, value: object, rule: str, way_out: str) -> NoReturn:
    raise ParameterError(name, value, rule, way_out)
