"""Numbers that stand in a text, and what a spelling says beside the number.

``1.50``, ``1.5`` and ``15e-1`` are one number, ``0.1`` and ``0.10000000000000000001`` one double.
Who writes a text chooses among them, and so can tell what isn't in the number.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from dpverify._decimals import context

__all__ = ["Spelling", "numerals", "spelling"]

_NUMERAL = re.compile(
    r"(?=[-+.\dni])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b)", flags=re.ASCII
)
"""A number as it is written, in digits from 0 to 9; where one can't begin is seen first."""
_DIGITS = re.compile(r"\d+", flags=re.ASCII)


class Spelling(NamedTuple):
    """What a numeral says.

    Attributes
    ----------
    number : its value, the nearest double
    form : how many digits stand where; empty for the shortest name of the double, and the numeral
        itself where it is 0 or beyond all doubles
    beyond : what the digits say beside the shortest name, in units of the last of them
    """

    number: float
    form: str = ""
    beyond: float = 0.0


@lru_cache(maxsize=256)
def numerals(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with # for each of its numerals, and these; draws often give the same text again.

    Examples
    --------
    >>> from dpverify.auditing.outputs.numerals import numerals
    >>> numerals("-1.50 of nan")
    ('# of #', ('-1.50', 'nan'))
    """
    parts = _NUMERAL.split(text)
    return "#".join(parts[::2]), tuple(parts[1::2])


def spelling(numeral: str) -> Spelling:
    """Read a numeral.

    Parameters
    ----------
    numeral : one of `numerals`

    Examples
    --------
    >>> from dpverify.auditing.outputs.numerals import spelling
    >>> spelling("+1.50")
    Spelling(number=1.5, form='+1.2', beyond=0.0)
    >>> spelling("9007199254740993")
    Spelling(number=9007199254740992.0, form='16', beyond=1.0)
    """
    number = float(numeral)
    if math.isnan(number) or numeral in (repr(number), f"{number:.0f}"):
        return Spelling(number)
    if number == 0 or math.isinf(number):
        return Spelling(number, form=numeral)
    exact = context(2 * len(numeral) + 40)
    written = exact.create_decimal(numeral)
    left = exact.subtract(written, Decimal(repr(number)))
    last = written.as_tuple().exponent
    assert isinstance(last, int)  # noqa: S101  # of a finite number
    return Spelling(
        number,
        form=_DIGITS.sub(lambda digits: str(len(digits[0])), numeral),
        beyond=float(exact.scaleb(left, -last)),
    )
