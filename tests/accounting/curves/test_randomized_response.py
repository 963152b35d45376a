"""Randomized response against enumeration in fractions and against mpmath.

The oracle never uses the lattice's recurrence: it enumerates outcomes, or sums binomials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpverify.accounting.curves import randomized_response
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    keep_probability,
    keep_probability_curve,
    max_differing,
)
from dpverify.accounting.curves.randomized_response import RandomizedResponse as ResponseCurve
from dpverify.data.adjacency import BitFlip, Record
from dpverify.data.domain import Box
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Estimator
from dpverify_mechanisms.baselines.randomized_response import (
    HammingDistance,
    InnerProductOfBits,
    RandomizedResponse,
)
from tests.helpers.profiles import thinned

COINS = [
    (Fraction(3, 4), Fraction(1, 4)),
    (Fraction(9, 10), Fraction(1, 10)),
    (Fraction(3, 5), Fraction(1, 5)),  # three values
    (Fraction(1, 2), Fraction(1, 14)),  # eight values
    (Fraction(1, 3), Fraction(1, 3)),  # no loss at all
]
EPSILONS = [Fraction(n, 7) for n in (0, 1, 5, 11, 20, 60)]
BITS = Box(low=Fraction(0), high=Fraction(1))
DIGITS = mpmath.mpf(10) ** -45  # the oracle's own rounding


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def loss_law(keep: Fraction, other: Fraction, positions: int) -> Mapping[int, Fraction]:
    """P[J = j], by enumeration of what every coordinate reports."""
    law: dict[int, Fraction] = {}
    steps = {1: keep, -1: other, 0: 1 - keep - other}
    for outcome in itertools.product(steps.items(), repeat=positions):
        total = sum(step for step, _ in outcome)
        law[total] = law.get(total, Fraction(0)) + math.prod(
            (share for _, share in outcome), start=Fraction(1)
        )
    return law


def hockey_stick(law: Mapping[int, Fraction], ratio: Fraction, epsilon: Fraction) -> Any:
    """E[(1 − e^(ε − L))₊]."""
    step, eps = mpmath.log(number(ratio)), number(epsilon)
    return mpmath.fsum(
        number(share) * (1 - mpmath.exp(eps - j * step))
        for j, share in law.items()
        if j * step > eps
    )


def assert_encloses(enclosure: Enclosure, truth: Any, width: float = 1e-13) -> None:
    assert enclosure.lower <= truth * (1 + DIGITS)
    assert truth * (1 - DIGITS) <= enclosure.upper
    assert enclosure.width <= width


@pytest.mark.parametrize("positions", [1, 2, 5])
@pytest.mark.parametrize(("keep", "other"), COINS)
def test_delta_by_enumeration(keep: Fraction, other: Fraction, positions: int) -> None:
    curve = ResponseCurve(keep=keep, other=other, positions=positions)
    law = loss_law(keep, other, positions)
    for epsilon in EPSILONS:
        truth = hockey_stick(law, keep / other, epsilon)
        assert_encloses(curve.delta_at(epsilon), truth)


@pytest.mark.parametrize("positions", [1, 2, 5])
@pytest.mark.parametrize(("keep", "other"), COINS[:4])
def test_epsilon_inverts_delta(keep: Fraction, other: Fraction, positions: int) -> None:
    """ε(d) is where the enumerated δ passes d: tested a hair to both sides."""
    curve = ResponseCurve(keep=keep, other=other, positions=positions)
    law = loss_law(keep, other, positions)
    for target in (Fraction(1, 10**12), Fraction(1, 1000), Fraction(1, 10), Fraction(2, 5)):
        found = curve.epsilon_at(target)
        if hockey_stick(law, keep / other, Fraction(0)) <= number(target):
            assert found.lower == 0
            assert found.upper <= math.ulp(0.0)  # at a tie, that of balls with rational ends
            continue
        assert found.width <= 1e-13
        assert hockey_stick(law, keep / other, Fraction(found.upper)) <= number(target)
        assert hockey_stick(law, keep / other, Fraction(found.lower)) >= number(target)
    assert_encloses(curve.epsilon_at(0), positions * mpmath.log(number(keep / other)))


@pytest.mark.parametrize(
    "epsilon", thinned([Fraction(690), Fraction(0), Fraction(1190), Fraction(30)], 2)
)
def test_delta_of_many_positions(epsilon: Fraction) -> None:
    """1,200 bits: δ down to 1e-300 and below, against a sum of binomials in 900 digits."""
    positions, keep = 1200, Fraction(731, 1000)
    curve = ResponseCurve(keep=keep, other=1 - keep, positions=positions)
    with mpmath.workdps(900):
        step, eps = mpmath.log(number(keep / (1 - keep))), number(epsilon)
        truth = mpmath.fsum(
            math.comb(positions, ups)
            * number(keep) ** ups
            * number(1 - keep) ** (positions - ups)
            * (1 - mpmath.exp(eps - (2 * ups - positions) * step))
            for ups in range(positions + 1)
            if (2 * ups - positions) * step > eps
        )
    assert_encloses(curve.delta_at(epsilon), truth)


def test_delta_of_1e_300_is_as_sharp_as_any() -> None:
    curve = ResponseCurve(keep=Fraction(11, 20), other=Fraction(9, 20), positions=2000)
    found = curve.epsilon_at(Fraction(1, 10**300))
    back = curve.delta_at(Fraction(found.upper))
    assert found.width <= 1e-13
    assert 0.999e-300 < back.lower <= back.upper <= 1e-300


@pytest.mark.parametrize("differ", [Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize(("keep", "other"), COINS[:4])
def test_mixture_is_the_sum_over_the_number_that_differ(
    keep: Fraction, other: Fraction, differ: Fraction
) -> None:
    positions = 4
    curve = MixedResponse(keep=keep, other=other, positions=positions, differ=differ)
    for epsilon in EPSILONS:
        truth = mpmath.fsum(
            math.comb(positions, count)
            * number(differ**count * (1 - differ) ** (positions - count))
            * hockey_stick(loss_law(keep, other, count), keep / other, epsilon)
            for count in range(1, positions + 1)
        )
        assert_encloses(curve.delta_at(epsilon), truth)


def test_mixture_of_an_enclosure_holds_for_all_of_it() -> None:
    keep, other, positions = Fraction(4, 5), Fraction(1, 5), 6
    wide = MixedResponse(keep=keep, other=other, positions=positions, differ=Enclosure(0.25, 0.375))
    for share in (Fraction(1, 4), Fraction(1, 3), Fraction(3, 8)):
        one = MixedResponse(keep=keep, other=other, positions=positions, differ=share)
        for epsilon in EPSILONS:
            assert wide.delta_at(epsilon).lower <= one.delta_at(epsilon).lower
            assert one.delta_at(epsilon).upper <= wide.delta_at(epsilon).upper
        target = Fraction(1, 100)
        assert wide.epsilon_at(target).lower <= one.epsilon_at(target).lower
        assert one.epsilon_at(target).upper <= wide.epsilon_at(target).upper


@pytest.mark.parametrize("values", [2, 3, 7])
@pytest.mark.parametrize("positions", [1, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
def test_pure_coin_is_the_largest(epsilon: Fraction, positions: int, values: int) -> None:
    def total(keep: Fraction) -> Any:
        return positions * mpmath.log(number(keep * (values - 1) / (1 - keep)))

    keep = keep_probability(epsilon, positions=positions, values=values)
    assert (keep * 2**64).denominator == 1
    assert total(keep) <= number(epsilon) < total(keep + Fraction(1, 2**64))


@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(1, 10**30), Fraction(0)])
@pytest.mark.parametrize(("positions", "values"), [(1, 2), (3, 2), (4, 5), (2, 100)])
def test_coin_of_a_curve_is_the_largest(positions: int, values: int, epsilon: Fraction) -> None:
    delta = Fraction(1, 50)
    keep = keep_probability_curve(epsilon, delta, positions=positions, values=values)

    def truth(parts: int) -> Any:
        coin = Fraction(parts, 2**64)
        other = (1 - coin) / (values - 1)
        return hockey_stick(loss_law(coin, other, positions), coin / other, epsilon)

    assert truth(int(keep * 2**64)) <= number(delta)
    assert truth(int(keep * 2**64) + 2**12) > number(delta)


@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(1, 50), Fraction(9, 10)])
def test_most_differing_by_exact_sums(share: Fraction) -> None:
    positions = 40
    for delta in (Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**30), Fraction(0)):
        tails = [
            sum(
                math.comb(positions, n) * share**n * (1 - share) ** (positions - n)
                for n in range(least + 1, positions + 1)
            )
            for least in range(positions + 1)
        ]
        expected = next(n for n, tail in enumerate(tails) if tail <= delta)
        assert max_differing(positions, share, delta) == expected


# The mechanism, at sizes where every output can be enumerated.

FLIP = Fraction(3, 16)


def mechanism(p: int, adjacency: BitFlip | Record, flip: Fraction) -> RandomizedResponse:
    return RandomizedResponse(p=p, flip=flip, domain=BITS, adjacency=adjacency)


def neighbours(p: int, adjacency: BitFlip | Record) -> list[tuple[Any, Any]]:
    vectors = [np.array(bits, dtype=np.float64) for bits in itertools.product((0, 1), repeat=p)]
    most = 1 if isinstance(adjacency, BitFlip) else p
    return [(x, y) for x in vectors for y in vectors if 0 < np.count_nonzero(x != y) <= most]


def refutation(
    released: RandomizedResponse, claimed: PrivacyCurve, pairs: list[tuple[Any, Any]]
) -> str | None:
    """Where the enumerated mechanism breaks the claimed curve, or where the claim is loose."""
    laws = {x.tobytes(): released.distribution(x) for x, _ in pairs}
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2), Fraction(4)):
        factor = mpmath.exp(number(epsilon))
        worst = max(
            mpmath.fsum(
                max(number(share) - factor * number(laws[y.tobytes()][output]), 0)
                for output, share in laws[x.tobytes()].items()
            )
            for x, y in pairs
        )
        bound = claimed.delta_at(epsilon)
        if worst > bound.upper * (1 + DIGITS):
            return f"broken at {epsilon}"
        if worst < bound.lower * (1 - DIGITS):
            return f"loose at {epsilon}"
    return None


@pytest.mark.parametrize("differ", [0, "1.25", "-0.5", Enclosure(-0.5, 0.5), Enclosure(0.5, 1.5)])
def test_a_share_that_is_no_probability_is_refused(differ: Any) -> None:
    with pytest.raises(ParameterError, match=r"differ=.* must be in \(0, 1\]"):
        MixedResponse(keep="0.75", other="0.25", positions=2, differ=differ)


@pytest.mark.parametrize("keep", [Fraction(3, 5), Fraction(731, 1000), Fraction(9, 10)])
def test_an_outcome_at_the_threshold_counts(keep: Fraction) -> None:
    """Also where the quotient of two doubles is a whole number and a bit."""
    curve = ResponseCurve(keep=keep, positions=60)
    step = curve.loss().upper
    at = [count * step for count in range(-60, 61)]
    assert any(math.ceil(each / step) * step > each for each in at)
    for each in at:
        assert curve.rates(each) == curve.rates(each - step / 2)


@pytest.mark.parametrize("keep", ["0.333", 1, "1.5"])
def test_a_keep_probability_of_values_tells_less_than_all(keep: Any) -> None:
    with pytest.raises(ParameterError, match=r"keep=\S+ must be in \[1/3, 1\)"):
        ResponseCurve.of_values(3, keep=keep)


@pytest.mark.parametrize("adjacency", [BitFlip(), Record()])
@pytest.mark.parametrize("p", [1, 3])
def test_curve_is_the_supremum_over_all_neighbours(p: int, adjacency: BitFlip | Record) -> None:
    honest = mechanism(p, adjacency, FLIP)
    pairs = neighbours(p, adjacency)
    assert sum(honest.distribution(pairs[0][0]).values()) == 1
    assert refutation(honest, honest.privacy(), pairs) is None
    ratios = [
        share / honest.distribution(y)[output]
        for x, y in pairs
        for output, share in honest.distribution(x).items()
    ]
    assert max(ratios) == (honest.privacy().keep / FLIP) ** honest.privacy().positions


def test_planted_wrong_flip_probability_is_found() -> None:
    claim = mechanism(3, BitFlip(), FLIP).privacy()
    pairs = neighbours(3, BitFlip())
    rarer = mechanism(3, BitFlip(), FLIP - Fraction(1, 2**20))
    assert refutation(rarer, claim, pairs) == "broken at 0"
    fairer = mechanism(3, BitFlip(), FLIP + Fraction(1, 2**20))
    assert refutation(fairer, claim, pairs) == "loose at 0"
    # Paper's approximation 1/2 − ε/4 for ε = ln(13/3), which flips too rarely beyond small ε.
    rare = Fraction(1, 2) - Fraction(round(math.log(13 / 3) / 4 * 2**20), 2**20)
    assert refutation(mechanism(3, BitFlip(), rare), claim, pairs) == "broken at 0"


def moments(estimator: Estimator, x: Any, y: Any) -> tuple[float, float]:
    """Mean and variance of an estimate, over every pair of outputs of two records."""
    released: RandomizedResponse = estimator.mechanism  # type: ignore[attr-defined]
    first, second = released.distribution(x), released.distribution(y)
    mean = square = 0.0
    for (one, share), (two, other) in itertools.product(first.items(), second.items()):
        value = float(
            estimator.estimate(np.frombuffer(one, np.uint8), np.frombuffer(two, np.uint8))
        )
        mean += float(share * other) * value
        square += float(share * other) * value**2
    return mean, square - mean**2


@pytest.mark.parametrize("kind", [HammingDistance, InnerProductOfBits])
def test_moments_by_enumeration(kind: type[HammingDistance | InnerProductOfBits]) -> None:
    estimator = kind(mechanism=mechanism(3, BitFlip(), FLIP))
    for x, y in (([0, 0, 0], [0, 0, 0]), ([1, 0, 1], [1, 1, 0]), ([0, 0, 0], [1, 1, 1])):
        mean, variance = moments(estimator, np.array(x, float), np.array(y, float))
        assert mean == pytest.approx(estimator.expectation(x, y), abs=1e-12)
        assert variance == pytest.approx(estimator.variance(x, y), rel=1e-12)


def test_planted_wrong_unbiasing_is_found() -> None:
    """The shift of one flip, dp(1 − p), in place of the two that both records have."""

    class OneFlip(HammingDistance):
        @property
        def _change(self) -> Fraction:
            return super()._change / 2

    wrong = OneFlip(mechanism=mechanism(3, BitFlip(), FLIP))
    x, y = np.array([1.0, 0, 1]), np.array([1.0, 1, 0])
    mean, variance = moments(wrong, x, y)
    assert abs(mean - wrong.expectation(x, y)) > 0.1
    assert variance != pytest.approx(wrong.variance(x, y), rel=0.05)


@pytest.mark.parametrize("distance", [0, 2, 3])
def test_tail_by_enumeration(distance: int) -> None:
    estimator = HammingDistance(mechanism=mechanism(3, BitFlip(), FLIP))
    change = 2 * FLIP * (1 - FLIP)
    gamma = (1 - 2 * FLIP) ** 2
    law = {Fraction(0): Fraction(1)}
    for share in [1 - change] * distance + [change] * (3 - distance):
        law = {
            h: law.get(h, Fraction(0)) * (1 - share) + law.get(h - 1, Fraction(0)) * share
            for h in map(Fraction, range(4))
        }
    errors = {h: abs((h - change * 3) / gamma - distance) for h in law}
    for deviation in (Fraction(0), Fraction(1, 2), errors[Fraction(1)], Fraction(3), Fraction(99)):
        truth = sum(share for h, share in law.items() if errors[h] >= deviation)
        assert_encloses(estimator.tail(distance, deviation), number(Fraction(truth)))


def test_a_target_is_searched_for_once() -> None:
    """A sketch is calibrated anew for each seed of its projection."""
    randomized_response._bisected.cache_clear()
    found = {
        keep_probability_curve(epsilon, Fraction(1, 100), positions=4, differ=Fraction(1, 3))
        for epsilon in (Fraction(1, 2), Fraction("0.5"))
    }
    assert len(found) == randomized_response._bisected.cache_info().misses == 1
