"""Reading TOML: numbers as the caller wants them, and every refusal as one error."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dpverify.errors import ConfigurationError

__all__ = ["MAX_BYTES", "read_toml"]

MAX_BYTES = 4 << 20
"""A larger file is not read: configurations have some tens of lines."""
_MOST_BITS = 4096
_Value = TypeVar("_Value")


def read_toml(path: Path, *, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tables of a TOML file.

    Parameters
    ----------
    path : of the file
    parse_float : reads the text of a number with a point or an exponent

    Raises
    ------
    ConfigurationError
        If the file can't be read, is too large, or isn't TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigurationError(f"{path}: is larger than {MAX_BYTES} bytes.")
        return _checked(tomllib.loads(content.decode("utf-8-sig"), parse_float=parse_float))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read: {error}.") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: is nested too deeply.") from None
    except ArithmeticError:  # a Decimal whose exponent has too many digits, a large whole number
        raise ConfigurationError(f"{path}: a number in it is too large or too small.") from None
    except ConfigurationError:
        raise
    except ValueError as error:  # TOMLDecodeError, and a whole number of thousands of digits
        way_out = (
            "" if path.suffix == ".toml" else f" Of records, `dpverify init {path}` makes one."
        )
        raise ConfigurationError(f"{path}: is not TOML: {error}.{way_out}") from None


def _checked(value: _Value) -> _Value:
    """The same, if Python prints its whole numbers: as 0xfff… one may have any number of digits."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise OverflowError
    for each in value.values() if isinstance(value, dict) else ():
        _checked(each)
    for each in value if isinstance(value, list) else ():
        _checked(each)
    return value
