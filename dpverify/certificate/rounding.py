"""Numbers of a certificate as people read them, rounded to the side that is asked for."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from dpverify._decimals import context
from dpverify.enclosure import exact_string

__all__ = ["about", "at_least", "at_most", "decimal_of", "exact", "percent_at_most"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def about(text: str, digits: int = 4) -> str:
    """The number rounded to nearest, for where no side is safe."""
    return _rounded(text, digits, ROUND_HALF_EVEN)


def at_least(text: str, digits: int = 4) -> str:
    """The number rounded down."""
    return _rounded(text, digits, ROUND_FLOOR)


def at_most(text: str, digits: int = 4) -> str:
    """The number rounded up."""
    return _rounded(text, digits, ROUND_CEILING)


def percent_at_most(text: str, digits: int = 4) -> str:
    """A rate in percent, rounded up."""
    return at_most(str(Fraction(text) * 100), digits) + "\N{NO-BREAK SPACE}%"


def exact(number: str | Fraction) -> str:
    """The number with all of its digits, a fraction as it is."""
    text = exact_string(number) if isinstance(number, Fraction) else number
    return text if "/" in text else _written(decimal_of(text))


def _rounded(text: str, digits: int, rounding: str) -> str:
    number = decimal_of(text, rounding)
    return _written(context(digits, rounding).plus(number), largest=7)


def _written(number: Decimal, *, largest: int = 15) -> str:
    if number.is_infinite():
        return "∞" if number > 0 else "−∞"
    if number.is_nan():
        return "undefined"
    if number == 0:
        return "0"
    sign, number = "−" if number < 0 else "", number.copy_abs()
    exponent = number.adjusted()
    if -5 <= exponent < largest:
        return sign + _without_zeros(f"{number:f}")
    mantissa = _without_zeros(f"{number.scaleb(-exponent, context(60)):f}")
    power = "10" + str(exponent).translate(_SUPERSCRIPTS)
    return sign + (power if mantissa == "1" else f"{mantissa}×{power}")


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimal_of(number: str | Fraction, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """A number of a certificate; a fraction is divided out in the given direction."""
    text = exact_string(number) if isinstance(number, Fraction) else number
    if "/" not in text:
        return Decimal(text)
    value = Fraction(text)
    return context(60, rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
