"""Numbers with a certified lower and upper end, and the exact numbers that they come from.

An `Enclosure` promises ``lower <= true value <= upper``. It is made from ball arithmetic
(python-flint ``arb``) by exact comparison: ``float(x)`` of a ball's end rounds to nearest and is on
the wrong side half the time, so every end is compared exactly and stepped outwards where needed.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    Decimal,
    Inexact,
    InvalidOperation,
    localcontext,
)
from fractions import Fraction
from numbers import Integral
from numbers import Real as AnyReal
from typing import Any, ClassVar, Literal

from flint import arb, ctx, fmpq

from dpverify._decimals import context
from dpverify.errors import NumericalError, ParameterError, require_known

__all__ = [
    "Enclosure",
    "Exact",
    "Real",
    "SquareRoot",
    "decimal_string",
    "enclose",
    "exact",
    "exact_string",
    "floor_of",
    "number_string",
    "rational",
    "rational_of",
    "root_string",
    "short_string",
    "squared",
    "to_arb",
]

# Starting precision in bits, and where `enclose` gives up: e^(±10⁶) cancelled to the last digit
# would need three million bits, far beyond any parameter that the accountant accepts.
_FIRST_PRECISION = 96
_LAST_PRECISION = 1 << 16
_MOST_DIGITS = 4_000
_MOST_BITS = math.ceil(_MOST_DIGITS * math.log2(10))
_FRACTION = re.compile(r"[+-]?[0-9]{1,4000}/[0-9]{1,4000}")
_PRINTABLE = "a number of at most 4,000 digits before and behind the point"
_HALF_A_UNIT, _SMALLEST_NORMAL = 2.0**-53, 2.0**-1022
_EXACT_DECIMAL = context(40, traps=[Inexact])


@dataclass(frozen=True, slots=True)
class SquareRoot:
    """The non-negative square root of a rational: ℓ2 norms of integer rows, 1/√k scales.

    Kept unevaluated so that a bound that depends on its square loses nothing.
    """

    radicand: Fraction

    def __post_init__(self) -> None:
        if not self.radicand >= 0:
            raise ParameterError("radicand", self.radicand, "at least 0")

    def __str__(self) -> str:
        return f"√({self.radicand})"


Real = int | float | str | Decimal | Fraction
"""What a user may write: a float for its exact binary value, a string or Decimal for its decimal.

numpy's numbers are taken too, for their exact values."""
Exact = Fraction | SquareRoot
"""What the accountant computes from."""


def exact(name: str, value: Real | SquareRoot) -> Exact:
    """Read `value` exactly, keeping a square root as it is; see `rational`."""
    return value if isinstance(value, SquareRoot) else rational(name, value)


def rational(name: str, value: Real) -> Fraction:
    """Read `value` exactly; NaN and infinities are refused under the parameter's `name`.

    A text is a decimal, as "0.25" or "1e-6", or a fraction of whole numbers, as "1/3".
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return _printable(name, Fraction(int(value)))
    number = _of_text(value) if isinstance(value, str) else value
    if isinstance(number, Fraction):
        return _printable(name, number)
    if isinstance(number, Decimal):
        if number.is_finite():
            if abs(number.adjusted()) > _MOST_DIGITS:  # no memory may hold them
                raise ParameterError(name, value, _PRINTABLE)
            return _printable(name, Fraction(number))
    elif isinstance(number, AnyReal) and not isinstance(number, bool) and math.isfinite(number):
        ratio = getattr(number, "as_integer_ratio", None)
        if ratio:
            return Fraction(*ratio())
    raise ParameterError(name, value, "a finite real number")


def _printable(name: str, number: Fraction) -> Fraction:
    """A number that Python also prints: it does no whole one of more than 4,300 digits."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise ParameterError(name, number, _PRINTABLE)
    return number


def _of_text(text: str) -> Decimal | Fraction | None:
    if _FRACTION.fullmatch(text):
        over, under = map(int, text.split("/"))
        return Fraction(over, under) if under else None
    try:
        return Decimal(text) if text.isascii() and "_" not in text else None
    except InvalidOperation:
        return None


def squared(value: Exact) -> Fraction:
    """Square of an exact number, always rational."""
    return value.radicand if isinstance(value, SquareRoot) else value * value


def to_arb(value: Exact) -> arb:
    """Ball that holds `value`, at the current precision."""
    if isinstance(value, SquareRoot):
        return arb(_fmpq(value.radicand)).sqrt()
    return arb(_fmpq(value))


def rational_of(point: arb) -> Fraction:
    """The number of a ball without radius."""
    mantissa, exponent = point.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Certified interval ``lower <= true value <= upper``, with doubles as ends.

    It is a number as well, that of its safe end: ``float`` gives it, ``format`` rounds it towards
    safety, and a comparison is certain or raises `NumericalError`. Equal enclosures have equal
    ends.

    An end may be infinite only where the caller documents it. None is made, but `NumericalError`
    raised, where the processor doesn't round as IEEE 754 does by default.

    Attributes
    ----------
    lower, upper : the ends
    safe_end : which of them may be promised: the upper one of ε, δ or σ, the lower one of a
        probability to answer truthfully

    Examples
    --------
    >>> import dpverify as dpv
    >>> epsilon = dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6)
    >>> epsilon.safe == float(epsilon) == epsilon.upper
    True
    >>> f"{epsilon:.4f}"
    '1.0608'
    >>> epsilon < 1.2
    True
    """

    lower: float
    upper: float
    safe_end: Literal["lower", "upper"] = field(default="upper", repr=False)

    __array_ufunc__: ClassVar[None] = None  # numpy's numbers leave comparisons to us

    def __post_init__(self) -> None:
        _require_usual_doubles()
        require_known("safe_end", self.safe_end, ("lower", "upper"))
        if not self.lower <= self.upper:
            raise NumericalError(f"no enclosure has ends {self.lower!r} and {self.upper!r}")

    @classmethod
    def of_ball(cls, ball: arb) -> Enclosure:
        """Outward rounding of a finite ball to doubles."""
        if not ball.is_finite():
            raise NumericalError(f"the ball {ball} is not finite")
        return cls(_below(ball.lower()), _above(ball.upper()))

    @classmethod
    def of_exact(cls, value: Exact) -> Enclosure:
        """Tightest enclosure of an exact number: one point where it is a double."""
        if isinstance(value, SquareRoot):
            return enclose(lambda: to_arb(value))
        nearest = _nearest(value)
        return cls(
            nearest if nearest <= value else math.nextafter(nearest, -math.inf),
            nearest if nearest >= value else math.nextafter(nearest, math.inf),
        )

    @property
    def width(self) -> float:
        """Relative width, 0 for a point; infinite where 0 lies inside."""
        if self.lower == self.upper:
            return 0.0
        smaller = min(abs(self.lower), abs(self.upper))
        if self.lower <= 0 <= self.upper or smaller == 0:
            return math.inf
        return (self.upper - self.lower) / smaller

    def __contains__(self, value: Real) -> bool:
        return self.lower <= rational("value", value) <= self.upper

    @property
    def safe(self) -> float:
        """The end that may be promised."""
        return self.lower if self.safe_end == "lower" else self.upper

    def __float__(self) -> float:
        return self.safe

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if not math.isfinite(self.safe):
            return format(self.safe, spec)
        rounding = ROUND_FLOOR if self.safe_end == "lower" else ROUND_CEILING
        with localcontext(context(_MOST_DIGITS, rounding)):  # and nobody else's traps
            return format(Decimal.from_float(self.safe), spec)

    def __lt__(self, other: object) -> bool:
        return self._certain(operator.lt, other)

    def __le__(self, other: object) -> bool:
        return self._certain(operator.le, other)

    def __gt__(self, other: object) -> bool:
        return self._certain(operator.gt, other)

    def __ge__(self, other: object) -> bool:
        return self._certain(operator.ge, other)

    def _certain(self, compare: Callable[[Any, Any], Any], other: Any) -> bool:
        """What all pairs of ends agree on, and so all numbers between them."""
        if not isinstance(other, Enclosure | AnyReal | Decimal):
            return NotImplemented  # type: ignore[no-any-return]
        if other != other:  # noqa: PLR0124  # NaN
            raise ParameterError("other", other, "a number")
        others = [other.lower, other.upper] if isinstance(other, Enclosure) else [other]
        answers = {bool(compare(end, each)) for end in (self.lower, self.upper) for each in others}
        if len(answers) > 1:
            raise NumericalError(f"{self} and {other} overlap: which is larger is not decided.")
        return answers.pop()

    def __str__(self) -> str:
        ends = f"[{self.lower!r}, {self.upper!r}]"
        return ends if self.safe_end == "upper" else f"{ends}, the lower end being the safe one"

    def as_json(self) -> dict[str, str]:
        """Ends as decimal strings, rounded outwards; reading them back gives the same doubles."""
        return {
            "lower": decimal_string(self.lower, ROUND_FLOOR),
            "upper": decimal_string(self.upper, ROUND_CEILING),
        }


def decimal_string(value: float, rounding: str, *, digits: int = 18) -> str:
    """Decimal of at most `digits` significant digits on the side of `value` that `rounding` names.

    18 digits put the decimal within 1e-17 of the double, closer than half a unit in its last
    place, so that ``float`` of the string is the double again.
    """
    number = Decimal.from_float(value)
    if number.is_finite():
        number = context(digits, rounding).normalize(number)
    return f"{number:f}" if -7 < number.adjusted() < 17 else f"{number:E}"


def exact_string(value: Fraction) -> str:
    """Exact decimal where there is one of at most 40 digits, else the fraction as ``a/b``."""
    try:
        quotient = _EXACT_DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator))
    except Inexact:
        return str(value)
    return f"{_EXACT_DECIMAL.normalize(quotient):f}"


def number_string(value: Fraction) -> str:
    """As a person reads it: exact where that is short, or the shortest name of the same double."""
    exact = exact_string(value)
    long = len(exact) > 20 and abs(value) < 2**1000
    return repr(float(value)) if long and Fraction(float(value)) == value else exact


def root_string(square: Fraction) -> str:
    """Square root of a fraction as in `number_string`, or ``√(a/b)`` where it is irrational."""
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    return number_string(root) if root * root == square else str(SquareRoot(square))


def short_string(value: Fraction) -> str:
    """Four significant digits, however large or small: for messages."""
    short = context(4).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{short:.4g}"


def enclose(compute: Callable[[], arb], *, width: float = 1e-14) -> Enclosure:
    """Evaluate `compute` at rising precision until its relative width is at most `width`.

    Parameters
    ----------
    compute : returns a ball that holds the value, at the precision in force when it is called.
    width : relative width to reach before rounding to doubles (which adds at most 2⁻⁵¹).

    Raises
    ------
    NumericalError
        If the precision limit is reached first.
    """
    precision = _FIRST_PRECISION
    while precision <= _LAST_PRECISION:
        with ctx.workprec(precision):
            ball = compute()
            if ball.is_finite() and (ball.is_exact() or ball.rad() <= width / 2 * abs(ball)):
                return Enclosure.of_ball(ball)
        precision *= 2
    raise NumericalError(f"no enclosure of relative width {width} with {_LAST_PRECISION} bits")


def floor_of(compute: Callable[[], arb]) -> int:
    """⌊x⌋ of a number that isn't whole, or is computed exactly, at rising precision.

    Parameters
    ----------
    compute : returns a ball that holds the value, at the precision in force when it is called.

    Raises
    ------
    NumericalError
        If the precision limit is reached first.
    """
    precision = _FIRST_PRECISION
    while precision <= _LAST_PRECISION:
        with ctx.workprec(precision):
            floor = compute().floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        precision *= 2
    raise NumericalError(f"a whole number stays undecided with {_LAST_PRECISION} bits")


def _require_usual_doubles() -> None:
    """Refuse other rounding modes than to nearest, and subnormals that are flushed to zero.

    Libraries that were compiled with ``-ffast-math`` set the latter for the whole process. A proof
    then ends in a wrong double: a tiny positive delta would be 0.
    """
    nearest = 1.0 + _HALF_A_UNIT == 1.0 < 1.0 + 1.5 * _HALF_A_UNIT
    if not (nearest and _SMALLEST_NORMAL * 0.5 * 2.0 == _SMALLEST_NORMAL):
        raise NumericalError(
            "the doubles of this process aren't those of IEEE 754 (rounding to nearest, with "
            "subnormals), so that no bound is proven. A library may have changed that: load "
            "dpverify without it."
        )


def _below(ball: arb) -> float:
    """Largest or second largest double that is not above the exact ball."""
    nearest = float(ball)
    return nearest if arb(nearest) <= ball else math.nextafter(nearest, -math.inf)


def _above(ball: arb) -> float:
    nearest = float(ball)
    return nearest if arb(nearest) >= ball else math.nextafter(nearest, math.inf)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
