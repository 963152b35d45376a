"""Numbers of reports: bounds are rounded to the side on which they hold."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dpverify.auditing.formatting import at_least, at_most


@pytest.mark.parametrize("spec", [".3g", ".4g", ".6g", ".4f"])
def test_a_bound_in_few_digits_still_holds(spec: str) -> None:
    source = random.Random(7)
    for _ in range(500):
        value = source.random() * 10.0 ** source.randint(-9, 3)
        low, high = at_least(value, spec), at_most(value, spec)
        assert Fraction(low) <= Fraction(value) <= Fraction(high)
        assert float(high) - float(low) <= 2 * max(10.0**-4, value * 10.0**-2)
    for value, text in ((0.0, "0"), (1.0, "1"), (2.5, "2.5"), (math.inf, "inf"), (40.0, "40")):
        assert [at_least(value), at_most(value)] == [text, text]
    assert at_least(0.99999999) == "0.999999"
    assert at_most(1.00000001) == "1.00001"
