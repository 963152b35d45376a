"""Letters for numbers: a formula of them is a rational function, and equality is an identity.

A formula that adds, multiplies, divides and takes whole powers, an enumeration with its weights
included, can be called with letters in place of numbers. Its value is a quotient of two polynomials
with rational coefficients in lowest terms, which FLINT computes, so that two formulas that are
equal for all numbers give the same value. What compares or takes roots can't be called so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx

__all__ = ["Quotient", "letters"]


class Quotient:
    """A rational function of letters, in lowest terms.

    Parameters
    ----------
    top, bottom : polynomials with rational coefficients in the same letters, `bottom` not 0

    Examples
    --------
    >>> x, y = letters("x y")
    >>> print((x**2 - y**2) / (x - y))
    x + y
    >>> 1 / (1 - x) == 1 + x / (1 - x)
    True
    """

    __slots__ = ("_bottom", "_top")

    def __init__(self, top: Any, bottom: Any) -> None:
        if not bottom:
            raise ZeroDivisionError(f"({top})/0 in letters")
        common = top.gcd(bottom)
        top, bottom = divmod(top, common)[0], divmod(bottom, common)[0]
        unit = bottom.leading_coefficient()
        self._top, self._bottom = top / unit, bottom / unit

    def _like(self, other: Any) -> Quotient | None:
        if isinstance(other, Quotient):
            return other
        if not isinstance(other, int | Fraction):
            return None
        constant, one = self._bottom.context().constant, fmpq(1)
        return Quotient(constant(fmpq(other.numerator, other.denominator)), constant(one))

    def __add__(self, other: Any) -> Quotient:
        if (like := self._like(other)) is None:
            return NotImplemented
        top = self._top * like._bottom + like._top * self._bottom
        return Quotient(top, self._bottom * like._bottom)

    def __mul__(self, other: Any) -> Quotient:
        if (like := self._like(other)) is None:
            return NotImplemented
        return Quotient(self._top * like._top, self._bottom * like._bottom)

    def __pow__(self, power: int) -> Quotient:
        if power < 0:
            return Quotient(self._bottom**-power, self._top**-power)
        return Quotient(self._top**power, self._bottom**power)

    def __neg__(self) -> Quotient:
        return Quotient(-self._top, self._bottom)

    def __sub__(self, other: Any) -> Quotient:
        if (like := self._like(other)) is None:
            return NotImplemented
        return self + -like

    def __rsub__(self, other: Any) -> Quotient:
        return (-self).__add__(other)

    def __truediv__(self, other: Any) -> Quotient:
        if (like := self._like(other)) is None:
            return NotImplemented
        return Quotient(self._top * like._bottom, self._bottom * like._top)

    def __rtruediv__(self, other: Any) -> Quotient:
        return (self**-1).__mul__(other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        like = self._like(other)
        return like is not None and (self._top, self._bottom) == (like._top, like._bottom)

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        return bool(self._top)

    def __str__(self) -> str:
        top, bottom = (
            f"({part})" if set(part) & set(" */") else part
            for part in (str(self._top), str(self._bottom))
        )
        return str(self._top) if bottom == "1" else f"{top}/{bottom}"


def letters(names: str) -> tuple[Quotient, ...]:
    """One quotient for each name; those of one call can be combined.

    Parameters
    ----------
    names : with spaces between them, in Latin letters
    """
    context = fmpq_mpoly_ctx.get(tuple(names.split()), Ordering.lex)
    return tuple(Quotient(letter, context.constant(fmpq(1))) for letter in context.gens())
