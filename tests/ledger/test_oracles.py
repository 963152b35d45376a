"""The oracles' own numbers, against closed forms in mpmath."""

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from dpverify.ledger.checks import PRECISION
from dpverify.ledger.oracles import gaussian_delta, number


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(Fraction(0), 1), (Fraction(1), 1), (Fraction(1, 10), 9), (14, 1), (Fraction(1), "0.07")],
)
def test_the_least_delta_has_all_its_digits_in_the_tail_too(epsilon: Fraction, mu: object) -> None:
    shift = Fraction(str(mu))
    with ctx.workprec(PRECISION):
        found = gaussian_delta(number(epsilon), number(shift))
        with mpmath.workdps(120):
            e, m = (mpmath.mpf(x.numerator) / x.denominator for x in (Fraction(epsilon), shift))
            closed = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            text = mpmath.nstr(closed, 30)
        assert float(found.rad()) < 1e-25 * float(found)
        assert abs(found / arb(text) - 1) < arb("1e-24")
