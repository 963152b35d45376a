"""Composed curves against exact enumeration, closed curves of other derivations, and mpmath."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
)
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.losses.base import Log, Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import crossed, day_and_night

Pairs = tuple[tuple[Fraction, Fraction], ...]
F = Fraction


def response(keep: Fraction, values: int = 2) -> Pairs:
    """Outcomes of generalised randomized response for two values that differ."""
    other = (1 - keep) / (values - 1)
    rest = 1 - keep - other
    return ((keep, other), (other, keep), *([(rest, rest)] if rest else []))


def product(*parts: tuple[Pairs, int]) -> Pairs:
    """All outcomes of independent releases, by brute force."""
    factors = [pairs for pairs, count in parts for _ in range(count)]
    total: Counter[tuple[Fraction, Fraction]] = Counter({(F(1), F(1)): 1})
    for pairs in factors:
        grown: Counter[tuple[Fraction, Fraction]] = Counter()
        for (p, q), ways in total.items():
            for a, b in pairs:
                grown[p * a, q * b] += ways
        total = grown
    return tuple((p * ways, q * ways) for (p, q), ways in total.items())


def hockey_stick(pairs: Pairs, epsilon: Fraction) -> mpmath.mpf:
    """The larger of both directions' Σ(p − e^ε q)₊, with 80 digits from exact probabilities."""
    with mpmath.workdps(80):
        odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)

        def number(x: Fraction) -> mpmath.mpf:
            return mpmath.mpf(x.numerator) / x.denominator

        sides = [pairs, tuple((q, p) for p, q in pairs)]
        return max(
            mpmath.fsum(max(number(p) - odds * number(q), 0) for p, q in side) for side in sides
        )


def holds(enclosure: Enclosure, value: mpmath.mpf) -> bool:
    return bool(mpmath.mpf(enclosure.lower) <= value <= mpmath.mpf(enclosure.upper))


def meet(first: Enclosure, second: Enclosure) -> bool:
    return first.lower <= second.upper and second.lower <= first.upper


def finite(pairs: Pairs) -> FiniteLoss:
    return FiniteLoss(pairs=pairs)


SKEW: Pairs = ((F(1, 2), F(1, 8)), (F(1, 4), F(1, 2)), (F(1, 4), F(3, 8)))
LEAKY: Pairs = ((F(1, 50), F(0)), (F(1, 2), F(1, 4)), (F(12, 25), F(73, 100)), (F(0), F(1, 50)))
GEOMETRIC: Pairs = ((F(4, 7), F(1, 7)), (F(2, 7), F(2, 7)), (F(1, 7), F(4, 7)))
CASES: dict[str, tuple[str, list[tuple[Pairs, int]]]] = {
    "one bit": ("lattice", [(response(F(3, 4)), 1)]),
    "nine bits": ("lattice", [(response(F(3, 5)), 9)]),
    "five values": ("lattice", [(response(F(1, 2), 5), 6)]),
    "commensurable": ("lattice", [(response(F(2, 3)), 3), (response(F(4, 5)), 2)]),
    "powers of two": ("lattice", [(GEOMETRIC, 3), (response(F(2, 3)), 3)]),
    "two atoms with an infinity_mass": ("lattice", [(LEAKY, 4)]),
    "three incommensurable ratios": ("enumeration", [(SKEW, 5)]),
    "no common lattice": ("enumeration", [(response(F(2, 3)), 4), (response(F(3, 5)), 4)]),
    "an infinity_mass among bits": ("enumeration", [(LEAKY, 2), (response(F(3, 5)), 3)]),
}
EPSILONS = (F(0), F(1, 100), F(1, 2), F(13, 10), F(5, 2))


@pytest.mark.parametrize("name", CASES)
def test_compositions_of_few_outcomes_by_enumeration(name: str) -> None:
    method, parts = CASES[name]
    curve = Composed(losses=tuple((finite(pairs), count) for pairs, count in parts))
    assert curve.method == method
    outcomes = product(*parts)
    for epsilon in EPSILONS:
        found, true = curve.delta_at(epsilon), hockey_stick(outcomes, epsilon)
        assert holds(found, true), (epsilon, found, true)
        assert found.upper - found.lower <= 1e-13
    infinity_mass = sum(p for p, q in outcomes if not q)
    for share in (F(1, 10), F(1, 10**6)):
        target = infinity_mass + share * (F(curve.delta_at(0).lower) - infinity_mass)
        found = curve.epsilon_at(target)
        for end, side in ((found.lower, 1), (found.upper, -1)):
            with mpmath.workdps(80):
                goal = mpmath.mpf(target.numerator) / target.denominator
                assert side * (hockey_stick(outcomes, F(end)) - goal) >= -1e-70
        assert found.width <= 1e-12


NEXT_TO_NOTHING = GaussianLoss(mu_squared=F(1, 10**60)), 1
"""A loss that turns the closed form off and moves δ by nothing."""


def closed() -> Iterator[tuple[str, Losses, PrivacyCurve, float]]:
    for keep, positions in ((F(3, 4), 1), (F(5, 8), 30), (F(51, 100), 500)):
        curve = RandomizedResponse(keep=keep, other=1 - keep, positions=positions)
        yield f"bits {positions}", curve.losses(), curve, 1e-12
    values = RandomizedResponse(keep=F(5, 8), other=F(1, 8), positions=30)
    yield "four values", values.losses(), values, 1e-12
    mixed = MixedResponse(keep=F(3, 4), other=F(1, 4), positions=50, differ=F(1, 10))
    yield "mixture", mixed.losses(), mixed, 1e-12
    coin = ResponseLoss(step=Log(F(3)))
    shared = PositionLoss(differ=F(1, 10), losses=((coin, 1),))
    yield "mixture by position", ((shared, 50),), mixed, 1e-12
    point = ApproxDP(epsilon=F(3, 10), delta=F(1, 1000))
    yield "one point", point.losses(), point, 1e-12
    laplace = Laplace.of_shifts(((F(1, 2), 3), (F(1, 5), 2)))
    yield "laplace", laplace.losses(), laplace, 1e-12
    one = RankOneNormal(rows=100, gamma=F(1, 20))
    yield "rank one", (*one.losses(), NEXT_TO_NOTHING), one, 1e-12
    two = RankTwoNormal(rows=100, gamma=F(1, 20))
    yield "rank two", (*two.losses(), NEXT_TO_NOTHING), two, 1e-9
    halves = ((NormalRowsLoss(rows=60, gammas=(F(1, 20),)), 1),)
    rest = ((NormalRowsLoss(rows=40, gammas=(F(1, 20),)), 1),)
    yield "rank one in parts", (*halves, *rest, NEXT_TO_NOTHING), one, 1e-12


@pytest.mark.parametrize("case", list(closed()), ids=lambda case: case[0])
def test_compositions_meet_curves_in_closed_form(
    case: tuple[str, Losses, PrivacyCurve, float],
) -> None:
    _, losses, curve, width = case
    composed = Composed(losses=losses)
    for epsilon in (F(0), F(1, 10), F(1), F(2)):
        ours, theirs = composed.delta_at(epsilon), curve.delta_at(epsilon)
        assert meet(ours, theirs)
        assert ours.width <= width or ours.upper <= 1e-300
    start = 1e-3 if case[0] == "one point" else 0.0
    for target in (F(1, 100), F(1, 10**6), F(1, 10**30)):
        if target > start:
            ours, theirs = composed.epsilon_at(target), curve.epsilon_at(target)
            assert meet(ours, theirs)
            assert ours.width <= width


@pytest.mark.parametrize("mu_squared", [F(1, 10**12), F(1, 100), F(1), F(400)])
def test_gaussian_by_inversion(mu_squared: Fraction) -> None:
    """Beside a loss that is next to nothing."""
    tiny = F(1, 10**60)
    losses = ((GaussianLoss(mu_squared=mu_squared), 1), (LaplaceLoss(shift=tiny), 1))
    curve, closed_form = Composed(losses=losses), Gaussian.from_mu_squared(mu_squared)
    assert curve.method == "inversion"
    for epsilon in (F(0), F(mu_squared) / 2, F(mu_squared)):
        ours, theirs = curve.delta_at(epsilon), closed_form.delta_at(epsilon)
        assert meet(ours, theirs)
        assert ours.width <= 1e-12
    for target in (F(1, 10**6), F(1, 10**300)):
        if closed_form.delta_at(0).lower > target:
            ours, theirs = curve.epsilon_at(target), closed_form.epsilon_at(target)
            assert meet(ours, theirs)
            assert ours.width <= 1e-12


@pytest.mark.nightly
def test_laplace_by_inversion() -> None:
    """Laplace losses beside others go through M; here beside one that is next to nothing."""
    losses = ((LaplaceLoss(shift=F(1, 2)), 12), (GaussianLoss(mu_squared=F(1, 10**40)), 1))
    curve, other = Composed(losses=losses), Laplace.of_shifts(((F(1, 2), 12),))
    for epsilon in (F(1, 4), F(3, 2)):
        ours, theirs = curve.delta_at(epsilon), other.delta_at(epsilon)
        assert meet(ours, theirs)
        assert ours.width <= 1e-5


@pytest.mark.nightly
def test_more_outcomes_than_calls_may_be_nested() -> None:
    """A move of 600, beside odds of no common lattice."""
    move, odds = 600, F(5, 3)
    with mpmath.workdps(60):
        fall = mpmath.exp(-mpmath.mpf(1) / 7)

        def noise(y: int) -> mpmath.mpf:
            return (1 - fall) / (1 + fall) * fall ** abs(y)

        own = [(1 / (1 + fall), fall**move / (1 + fall)), (fall**move / (1 + fall), 1 / (1 + fall))]
        own += [(noise(y), noise(y - move)) for y in range(1, move)]
        growth, exact = mpmath.exp(85), mpmath.mpf(0)
        for keep in (odds / (1 + odds), 1 / (1 + odds)):
            a, b = (mpmath.mpf(x.numerator) / x.denominator for x in (keep, 1 - keep))
            exact += sum(max(p * a - growth * q * b, 0) for p, q in own)
        bit = RandomizedResponse(keep=odds / (1 + odds), other=1 / (1 + odds))
        found = (DiscreteLaplace(scale=7, sensitivity=move) + bit).delta_at(85)
        assert found.lower <= exact <= found.upper
        assert found.width < 1e-12 * found.upper


def test_a_shared_draw_by_enumeration() -> None:
    """Two releases over one draw of three positions, against one draw each."""
    first, second, differ = response(F(3, 4)), response(F(2, 3)), F(1, 5)
    both = product((first, 1), (second, 1))
    position = (*((differ * p, differ * q) for p, q in both), (1 - differ, 1 - differ))
    losses = ((finite(first), 1), (finite(second), 1))
    shared = Composed(losses=((PositionLoss(differ=differ, losses=losses), 3),))
    outcomes = product((position, 3))
    separate = Composed(
        losses=tuple((PositionLoss(differ=differ, losses=(loss,)), 3) for loss in losses)
    )
    for epsilon in EPSILONS[1::2]:
        assert holds(shared.delta_at(epsilon), hockey_stick(outcomes, epsilon))
    assert shared.epsilon_at(F(1, 1000)).lower > separate.epsilon_at(F(1, 1000)).upper + 0.2


def test_many_multiples_of_one_unit() -> None:
    """Against a convolution of exact integers: weights are rational as 3/2 is the only ratio."""
    multiples = [1 + (7 * i) % 11 for i in range(24)]
    ratio = F(3, 2)
    curve = Composed(
        losses=tuple((ResponseLoss(step=Log(ratio**m)), 1) for m in multiples),
    )
    assert curve.method == "lattice"
    weights: dict[int, Fraction] = {0: F(1)}
    for m in multiples:
        keep = ratio**m / (1 + ratio**m)
        grown: dict[int, Fraction] = {}
        for place, weight in weights.items():
            grown[place + m] = grown.get(place + m, F(0)) + weight * keep
            grown[place - m] = grown.get(place - m, F(0)) + weight * (1 - keep)
        weights = grown
    pairs = tuple((w, w / ratio**place) for place, w in weights.items())
    for epsilon in (F(0), F(2), F(10)):
        found, true = curve.delta_at(epsilon), hockey_stick(pairs, epsilon)
        assert holds(found, true)
        assert found.width <= 1e-13
    found = curve.epsilon_at(F(1, 10**6))
    assert hockey_stick(pairs, F(found.lower)) >= 1e-6 >= hockey_stick(pairs, F(found.upper))
    assert found.width <= 1e-12


@pytest.mark.nightly
def test_different_bits_by_all_their_outcomes() -> None:
    """Fifteen bits on no common lattice: all 32,768 outcomes."""
    keeps = [F(1, 2) + F(3 * i * i + 17 * i + 40, 4000) for i in range(15)]
    curve = Composed(
        losses=tuple((ResponseLoss(step=Log(k / (1 - k))), 1) for k in keeps),
    )
    assert curve.method == "enumeration"
    with mpmath.workdps(40):
        outcomes = [
            (mpmath.fprod(own), mpmath.fprod(other))
            for own, other in _outcomes([mpmath.mpf(k.numerator) / k.denominator for k in keeps])
        ]
        for epsilon in (F(1, 2), F(2)):
            odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            true = mpmath.fsum(max(p - odds * q, 0) for p, q in outcomes)
            found = curve.delta_at(epsilon)
            assert holds(found, true)
            assert found.width <= 1e-13


def _outcomes(
    keeps: list[mpmath.mpf],
) -> Iterator[tuple[tuple[mpmath.mpf, ...], tuple[mpmath.mpf, ...]]]:
    for kept in itertools.product((False, True), repeat=len(keeps)):
        own = tuple(k if x else 1 - k for k, x in zip(keeps, kept, strict=True))
        yield own, tuple(1 - k for k in own)


@pytest.mark.nightly
def test_deep_tails_of_ten_thousand_bits() -> None:
    """δ = 1e-300 with exact integers in place of M: binomials of 51/49 odds."""
    keep, n = F(51, 100), 10_000
    curve = Composed(losses=((ResponseLoss(step=Log(keep / (1 - keep))), n),))
    found = curve.epsilon_at(F(1, 10**300))
    assert found.width <= 1e-13
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        step = math.log(51 / 49)
        least = n + int(end / step)
        with mpmath.workdps(400):
            odds = mpmath.exp(mpmath.mpf(end))
            total = mpmath.mpf(0)
            for ups in range(least // 2, n + 1):
                p = mpmath.mpf(51) ** ups * mpmath.mpf(49) ** (n - ups)
                q = mpmath.mpf(49) ** ups * mpmath.mpf(51) ** (n - ups)
                if p > odds * q:
                    total += math.comb(n, ups) * (p - odds * q)
                if ups > least // 2 + 2500:
                    break
            total /= mpmath.mpf(100) ** n
            assert sign * (total - mpmath.mpf(10) ** -300) >= 0


@pytest.mark.parametrize("coin", day_and_night(None, F(3, 4)))
@pytest.mark.parametrize(
    ("noises", "epsilon"),
    crossed(
        [[(F(1), 1), (F(1), 1), (F(1), 1)], [(F(3, 2), 2), (F(2), 1)], [(F(1, 5), 1), (F(2), 3)]],
        [F(0), F(1, 3), F(7)],
    ),
)
def test_discrete_gaussians_by_their_outputs(
    noises: list[tuple[Fraction, int]], coin: Fraction | None, epsilon: Fraction
) -> None:
    """Σ(p − e^ε q)₊ over all vectors of outputs, in doubles; with a coin there is no lattice."""
    losses: Losses = tuple(
        (DiscreteGaussianLoss(sigma_squared=variance, sensitivity=move), 1)
        for variance, move in noises
    )
    own, other = np.ones(1), np.ones(1)
    for variance, move in noises:
        outputs = np.arange(-60.0, 61.0)
        laws = [np.exp(-((outputs - at) ** 2) / (2 * float(variance))) for at in (0, move)]
        own, other = (
            np.outer(side, law / law.sum()).ravel()
            for side, law in zip((own, other), laws, strict=True)
        )
    if coin is not None:
        losses = (*losses, (FiniteLoss(pairs=response(coin)), 1))
        sides = np.array([float(coin), float(1 - coin)])
        own, other = np.outer(own, sides).ravel(), np.outer(other, sides[::-1]).ravel()
    truth = math.fsum(np.maximum(own - math.exp(epsilon) * other, 0))
    value = Composed(losses=losses).delta_at(epsilon)
    assert value.lower <= truth * (1 + 1e-11)
    assert value.upper >= truth * (1 - 1e-11)
    assert value.width < 1e-8
