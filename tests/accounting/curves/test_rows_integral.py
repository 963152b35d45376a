"""Few normal rows, whose integral turns, against closed forms of two rows and one quadrature."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from flint import arb, ctx

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves._rows_integral import rows_excess
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.losses.base import Log
from dpverify.accounting.losses.continuous import NormalRowsLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.enclosure import Enclosure, enclose, to_arb
from tests.helpers.profiles import crossed

F = Fraction
WIDE, NARROW = F(1, 3), F(-1, 4)  # one is the reverse of the other
PLACES = [F(-3, 2), F(-1, 100), F(1, 10), F(2)]


def two_rows(gamma: Fraction, place: Any) -> Any:
    """E[(1 − e^{x−L})₊] with L = −ln(1 + γ) + γY/2 and Y of density ½e^{−y/2}, for any real x."""
    g = mpmath.mpf(gamma.numerator) / gamma.denominator
    t = max(2 * (place + mpmath.log1p(g)) / g, mpmath.mpf(0))
    own, other = mpmath.exp(-t / 2), mpmath.exp(-(1 + g) * t / 2)
    if g > 0:
        return own - mpmath.exp(place) * other
    return (1 - own) - mpmath.exp(place) * (1 - other)


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def holds(found: Enclosure, true: Any) -> bool:
    slack = mpmath.mpf(10) ** -25
    return bool(found.lower - slack <= true <= found.upper + slack) and (
        found.width < 1e-12 or found.upper < 1e-12
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("gamma", [WIDE, NARROW])
def test_two_rows(gamma: Fraction, place: Fraction) -> None:
    with mpmath.workdps(40):
        found = enclose(lambda: rows_excess([(gamma, 2)], to_arb(place)) + 1)  # may be 0
        assert holds(found, two_rows(gamma, number(place)) + 1)


@pytest.mark.parametrize(("other", "place"), crossed([WIDE, NARROW, F(5)], PLACES))
def test_two_changes(other: Fraction, place: Fraction) -> None:
    """Conditioned on the first two rows."""
    gamma = F(1, 10)
    with mpmath.workdps(30):
        first, kink = number(gamma), number(place)
        least = -mpmath.log1p(number(other))  # of the second loss, or the largest
        jump = max(2 * (kink - least + mpmath.log1p(first)) / first, mpmath.mpf(0))

        def integrand(y: Any) -> Any:
            left = kink + mpmath.log1p(first) - first * y / 2
            return mpmath.exp(-y / 2) / 2 * two_rows(other, left)

        true = mpmath.quad(integrand, [0, jump, jump + 10, jump + 40, jump + 160])
        found = enclose(lambda: rows_excess([(gamma, 2), (other, 2)], to_arb(place)))
        assert found.width < 1e-12
        assert abs(true / found.upper - 1) < 1e-12


@pytest.mark.parametrize("epsilon", [F(0), F(1, 2), F(2)])
def test_two_rows_beside_answers(epsilon: Fraction) -> None:
    """Each sum of the answers by itself, in both orders of the pair."""
    losses = (
        (NormalRowsLoss(rows=2, gammas=[WIDE]), 1),
        (ResponseLoss(step=Log(F(3))), 2),
    )
    found = Composed(losses=losses).delta_at(epsilon)
    with mpmath.workdps(40):
        atoms = ((2, F(9, 16)), (0, F(6, 16)), (-2, F(1, 16)))
        true = max(
            sum(
                number(share) * two_rows(gamma, number(epsilon) - k * mpmath.log(3))
                for k, share in atoms
            )
            for gamma in (WIDE, NARROW)
        )
        assert holds(found, true)


@pytest.mark.parametrize("rows", [1, 7, 400])
def test_one_change_is_the_incomplete_gamma_function(rows: int) -> None:
    """Both orders, which turn to either side; what is below ε = 0 follows from the other order."""
    curve = RankOneNormal(rows=rows, gamma=WIDE)
    with ctx.workprec(192):
        for place in (F(1, 100), F(3, 2)):
            eps = to_arb(place)
            wide, narrow = (rows_excess([(g, rows)], eps) for g in (WIDE, NARROW))
            assert wide.overlaps(curve._wider(place))
            assert narrow.overlaps(curve._narrower(place))
            below = rows_excess([(WIDE, rows)], -eps)
            assert below.overlaps(1 - (-eps).exp() + (-eps).exp() * narrow)
            assert below.rad() / below < arb(2) ** -45
