"""The Laplace curve against numerical integration of its definition, with mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from flint import arb, fmpz_poly
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.curves import _laplace_halves, _laplace_lattice, laplace
from dpverify.accounting.curves._laplace_halves import delta_by_halves
from dpverify.accounting.curves._laplace_lattice import Shifts, lattice_bounds
from dpverify.accounting.curves.laplace import Laplace
from dpverify.enclosure import enclose, to_arb
from dpverify.errors import NumericalError
from tests.helpers.profiles import crossed, examples

EPSILONS = [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(9, 10), Fraction(2), Fraction(3)]
MANY = ((Fraction(1, 7), 4), (Fraction(3, 10), 2), (Fraction(11, 13), 1), (Fraction(1, 50), 3))
ALIGNED = ((Fraction(1, 8), 4), (Fraction(1, 4), 2), (Fraction(1, 2), 1))  # on the lattice
TWENTY = tuple((Fraction(1, k), 1) for k in range(20, 0, -1))
KINDS = st.dictionaries(
    st.fractions(min_value="0.05", max_value=2, max_denominator=30),
    st.integers(1, 3),
    min_size=1,
    max_size=5,
)


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workdps(25):
        yield


def divergence(shifts: Sequence[Any], epsilon: Any, *, nested: bool = False) -> Any:
    """E_P[(1 − e^(ε−L))₊], coordinate by coordinate over x; ε may be negative inside.

    The last coordinate inside another is the closed form that one coordinate alone is tested for.
    """
    if not shifts:
        return mpmath.mpf(0) if epsilon >= 0 else 1 - mpmath.exp(epsilon)
    a, others = shifts[0], shifts[1:]
    if epsilon >= sum(shifts):
        return mpmath.mpf(0)
    if not others and nested:
        return 1 - mpmath.exp(min((epsilon - a) / 2, epsilon))

    def integrand(x: Any) -> Any:
        loss = abs(x - a) - abs(x)
        return mpmath.exp(-abs(x)) / 2 * divergence(others, epsilon - loss, nested=True)

    # Kinks of the integrand: of the loss, and of what follows where a partial sum of shifts is met.
    kinks = {mpmath.mpf(0), a}
    for signs in range(2 ** len(others)):
        rest = sum((b if signs >> i & 1 else -b for i, b in enumerate(others)), mpmath.mpf(0))
        kinks.add((a - (epsilon - rest)) / 2)
    inside = sorted(x for x in kinks if 0 <= x <= a)
    # Beyond 0 and a the loss is constant.
    ends = divergence(others, epsilon - a, nested=True) / 2
    ends += mpmath.exp(-a) / 2 * divergence(others, epsilon + a, nested=True)
    return ends + mpmath.quad(integrand, inside)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "shifts", [["1.3"], ["0.6"], ["0.4", "0.9"], ["2.5", "0.3"], ["0.7", "0.7"]]
)
def test_one_and_two_coordinates(shifts: list[str], epsilon: Fraction) -> None:
    exact = divergence(
        [mpmath.mpf(a) for a in shifts], mpmath.mpf(epsilon.numerator) / epsilon.denominator
    )
    curve = Laplace.of_row([Fraction(a) for a in shifts], scale=1)
    enclosure = curve.delta_at(epsilon)
    assert enclosure.lower - 1e-20 <= exact <= enclosure.upper + 1e-20
    assert enclosure.width < 1e-13 or enclosure.upper == 0


@pytest.mark.parametrize(
    ("epsilon", "shifts"),
    crossed([Fraction(3, 5), Fraction(0)], [["0.5", "0.5", "0.5"], ["0.2", "0.55", "0.9"]]),
)
def test_three_coordinates(shifts: list[str], epsilon: Fraction) -> None:
    with mpmath.workdps(15):
        exact = divergence([mpmath.mpf(a) for a in shifts], mpmath.mpf(float(epsilon)))
    enclosure = Laplace.of_row([Fraction(a) for a in shifts], scale=1).delta_at(epsilon)
    assert abs(exact - enclosure.lower) < 1e-9


def test_a_curve_without_the_atom_on_the_far_side_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        laplace,
        "_subsets",
        lambda shifts: ((Fraction(0), 0, 1),),  # S = aᵢ never happens
    )
    with pytest.raises(AssertionError):
        test_one_and_two_coordinates(["2.5", "0.3"], Fraction(0))


@given(KINDS, st.integers(0, 2**15 - 2), st.booleans())
@examples(30)
def test_subsets_in_halves_are_those_one_by_one(
    kinds: dict[Fraction, int], number: int, at_a_sum: bool
) -> None:
    """Also where T is the sum of a subset, and next to it."""
    shifts = tuple(sorted(kinds.items()))
    each = [shift for shift, n in shifts for _ in range(n)]
    subset = sum((a for k, a in enumerate(each) if number >> k & 1), Fraction(0))
    epsilon = abs(sum(each) - 2 * subset) * (1 if at_a_sum else Fraction(99, 100))
    if epsilon < sum(each):
        one_by_one = enclose(lambda: laplace._one_by_one(shifts, epsilon))
        halves = enclose(lambda: delta_by_halves(shifts, epsilon))
        assert halves.lower <= one_by_one.upper
        assert one_by_one.lower <= halves.upper


@pytest.mark.parametrize("epsilon", ["0.3", "2.5"])
def test_twenty_shifts_are_within_the_lattice(epsilon: str) -> None:
    curve, place = Laplace.of_shifts(TWENTY), Fraction(epsilon)
    exact, bounded = curve.delta_at(place), lattice_bounds(TWENTY, 1000).delta_at(place)
    assert exact.width < 1e-14
    assert bounded.lower <= exact.lower <= exact.upper <= bounded.upper
    assert bounded.upper - bounded.lower < 1e-4


def test_halves_without_the_signs_of_their_subsets_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_laplace_halves, "fmpz_poly", lambda _: fmpz_poly([1, 1]))
    _laplace_halves._laplace_sums.cache_clear()
    with pytest.raises((AssertionError, NumericalError)):  # or δ is above 1
        test_twenty_shifts_are_within_the_lattice("0.3")
    _laplace_halves._laplace_sums.cache_clear()


@pytest.mark.parametrize(
    ("shifts", "points", "epsilon"), crossed([MANY, ALIGNED], [96, 1000, 96 << 6], EPSILONS)
)
def test_lattice_encloses_the_exact_curve(shifts: Shifts, points: int, epsilon: Fraction) -> None:
    """Two derivations that share nothing: the sum over subsets, and spreading and merging."""
    curve = Laplace.of_shifts(shifts)
    exact, bounded = curve.delta_at(epsilon), lattice_bounds(shifts, points).delta_at(epsilon)
    assert bounded.lower <= exact.lower
    assert exact.upper <= bounded.upper
    # Of second order, as if every coordinate's S were displaced by h; beside a loss of positive
    # probability (0 and 1/2 are, or nearly), also that probability, at most this product, times h.
    h = float(curve.epsilon_bound) / (2 * points)
    allowed = sum(count for _, count in shifts) * h**2
    if epsilon in (0, Fraction(1, 2)):
        allowed += h * math.prod(((1 + math.exp(-shift)) / 2) ** count for shift, count in shifts)
    assert bounded.upper - bounded.lower <= allowed


@pytest.mark.parametrize(
    ("name", "aligned", "wrong"),
    [
        ("_spread", True, lambda spread, merged: merged),
        ("_merged", True, lambda spread, merged: spread),
        ("_spread", False, lambda spread, merged: lambda a, h: spread(a - a % h, h)),
    ],
    ids=["merged for spread", "spread for merged", "shifts rounded down"],
)
def test_a_lattice_on_the_wrong_side_would_be_noticed(
    name: str, aligned: bool, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = (_laplace_lattice._spread, _laplace_lattice._merged)
    monkeypatch.setattr(_laplace_lattice, name, wrong(*pair))
    lattice_bounds.cache_clear()
    with pytest.raises((AssertionError, NumericalError)):  # or the ends cross
        test_lattice_encloses_the_exact_curve(ALIGNED if aligned else MANY, 96, Fraction(1, 2))
    lattice_bounds.cache_clear()


@pytest.mark.parametrize("shift", [Fraction(3, 10), Fraction(31, 100), Fraction(1, 70)])
def test_one_coordinate_on_the_lattice_keeps_both_its_laws(shift: Fraction) -> None:
    """Σ½e^(−kh)ν_k = Σ½e^(kh−a)ν_k = 1, for spreading and for merging."""
    step = Fraction(1, 100)
    cases = [(_laplace_lattice._spread, shift)]
    if shift >= 2 * step:
        cases.append((_laplace_lattice._merged, shift - shift % (2 * step)))
    for masses, a in cases:
        own = other = arb(0)
        for place, mass in enumerate(masses(a, step)):
            own += mass * to_arb(-place * step).exp() / 2
            other += mass * to_arb(place * step - a).exp() / 2
        for total in (own, other):
            assert total.contains(1)
            assert total.rad() < 1e-12
