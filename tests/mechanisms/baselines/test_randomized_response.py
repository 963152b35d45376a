"""Randomized response: the curve's interface, the released bits, what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpverify.accounting.curves.randomized_response import (
    MAX_KEEP,
    MixedResponse,
    keep_probability,
    keep_probability_curve,
    max_differing,
)
from dpverify.accounting.curves.randomized_response import RandomizedResponse as ResponseCurve
from dpverify.data.adjacency import BitFlip, Record
from dpverify.data.domain import Box
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError, RecordsError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Exhaustive, WhiteBox
from dpverify.sampling.words import ReplayableWords, SecureWords
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse

BITS = Box(low=Fraction(0), high=Fraction(1))
RESPONSES: list[ResponseCurve | MixedResponse] = [
    ResponseCurve(keep=Fraction(3, 4), other=Fraction(1, 4), positions=1),
    ResponseCurve(keep=Fraction(5, 8), other=Fraction(1, 8), positions=30),
    ResponseCurve(keep=Fraction(51, 100), other=Fraction(49, 100), positions=200),
    MixedResponse(keep=Fraction(3, 4), other=Fraction(1, 4), positions=50, differ=Fraction(1, 10)),
]


def make(
    p: int = 11, adjacency: BitFlip | Record | None = None, epsilon: int = 1
) -> RandomizedResponse:
    return RandomizedResponse.calibrated(
        p=p,
        epsilon=Fraction(epsilon),
        delta=Fraction(0),
        domain=BITS,
        adjacency=adjacency or BitFlip(),
    )


def bits(rows: int, p: int) -> Any:
    words = ReplayableWords(3, "bits").words(rows * p)
    return (words >> np.uint64(63)).astype(np.float64).reshape(rows, p)


# The curves


@pytest.mark.parametrize("curve", RESPONSES)
def test_curves_keep_the_protocol(curve: PrivacyCurve) -> None:
    assert isinstance(curve, PrivacyCurve)
    assert hash(curve) == hash(curve)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        own, other = curve.rates(epsilon)
        assert own - math.exp(epsilon) * other == pytest.approx(
            curve.delta_at(epsilon).upper, abs=1e-12
        )


@pytest.mark.parametrize("curve", RESPONSES)
def test_curves_end_where_the_loss_does(curve: PrivacyCurve) -> None:
    end = curve.epsilon_at(0)
    assert end.width <= 1e-13
    assert curve.delta_at(end.upper) == Enclosure(0.0, 0.0)
    assert curve.delta_at(end.lower * (1 - 1e-9)).lower > 0


def test_rates_on_the_lattice_count_their_own_point() -> None:
    curve = ResponseCurve(keep=Fraction(5, 8), other=Fraction(1, 8), positions=30)
    step = curve.loss().upper
    at, above = curve.rates(7 * step), curve.rates(math.nextafter(7 * step, math.inf))
    assert at[0] > above[0]
    assert at[0] / at[1] > 5**7  # P[L ≥ t] ≥ e^t Q[L ≥ t]
    for lattice in range(-30, 31):  # quotients of doubles round to either side
        point = lattice * step
        assert curve.rates(point) == curve.rates((lattice - 0.5) * step)
        assert curve.rates(math.nextafter(point, math.inf)) == curve.rates((lattice + 0.5) * step)
    assert curve.rates(31 * step) == (0.0, 0.0)
    assert curve.rates(-31 * step) == pytest.approx((1.0, 1.0))


def test_rates_of_less_noise_are_those_of_coins_with_larger_log_odds() -> None:
    """Half the noise squares the odds: 3 to 9, and 5 to 25 where a third value is left."""
    own, other = RESPONSES[0].rates(1.0, noise=0.5)
    assert (own, other) == pytest.approx((9 / 10, 1 / 10))
    one = ResponseCurve(keep=Fraction(5, 8), other=Fraction(1, 8), positions=1)
    assert one.rates(1.0, noise=0.5) == pytest.approx((25 / 28, 1 / 28))
    assert one.rates(0.0, noise=0.5) == pytest.approx((27 / 28, 3 / 28))


def test_delta_of_a_tie_is_epsilon_0() -> None:
    """δ(0) = 1/3 isn't a double: the tie can't be seen, and costs the smallest double at most."""
    curve = ResponseCurve(keep=Fraction(2, 3), other=Fraction(1, 3), positions=1)
    assert curve.epsilon_at(Fraction(1, 3)).upper <= math.ulp(0.0)
    assert curve.epsilon_at(Fraction(1, 2)) == Enclosure(0.0, 0.0)


def test_a_delta_short_of_a_tie_is_a_small_epsilon() -> None:
    """e^ε = (3/4 − δ)/(1/4) for δ just below 1/2."""
    gap = Fraction(1, 10**9)
    found = RESPONSES[0].epsilon_at(Fraction(1, 2) - gap)
    assert found.width <= 1e-13
    assert found.lower == pytest.approx(math.log1p(4e-9), rel=1e-14)


def test_fair_coins_lose_nothing() -> None:
    curve = ResponseCurve(keep=Fraction(1, 2), other=Fraction(1, 2), positions=9)
    assert curve.loss() == curve.delta_at(0) == curve.epsilon_at(0) == Enclosure(0.0, 0.0)
    assert curve.rates(0.0) == (1.0, 1.0)
    assert curve.rates(0.1) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("keep", "other", "positions"),
    [
        (Fraction(1, 4), Fraction(3, 4), 1),
        (Fraction(3, 4), Fraction(1, 2), 1),
        (Fraction(1), Fraction(0), 1),
        (Fraction(3, 4), Fraction(1, 4), 0),
    ],
)
def test_wrong_coins_are_refused(keep: Fraction, other: Fraction, positions: int) -> None:
    with pytest.raises(ParameterError):
        ResponseCurve(keep=keep, other=other, positions=positions)
    with pytest.raises(ParameterError):
        MixedResponse(keep=keep, other=other, positions=positions, differ=Fraction(1))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.1])
def test_wrong_arguments_are_refused(wrong: float) -> None:
    with pytest.raises(ParameterError):
        keep_probability(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        max_differing(5, Fraction(1, 2), wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("differ", [Fraction(0), Fraction(-1, 2), Fraction(3, 2)])
def test_wrong_shares_are_refused(differ: Fraction) -> None:
    with pytest.raises(ParameterError, match="differ"):
        MixedResponse(keep=Fraction(3, 4), other=Fraction(1, 4), positions=2, differ=differ)


def test_coins_stop_short_of_certainty() -> None:
    for epsilon in (28, 1000, 10**5, 10**6, 10**300):
        assert keep_probability(Fraction(epsilon)) == MAX_KEEP
    assert keep_probability(Fraction(0)) == Fraction(1, 2)
    with pytest.raises(ParameterError, match="epsilon"):
        keep_probability(Fraction(0), values=3)  # no whole number of 2⁻⁶⁴ is a third
    assert keep_probability(Fraction(0), values=4) == Fraction(1, 4)


def test_a_delta_buys_a_better_coin() -> None:
    pure = keep_probability(Fraction(2), positions=100)
    better = keep_probability_curve(Fraction(2), Fraction(1, 10**6), positions=100)
    assert keep_probability_curve(Fraction(2), Fraction(0), positions=100) == pure
    assert better > pure
    curve = ResponseCurve(keep=better, other=1 - better, positions=100)
    assert Fraction(curve.delta_at(2).upper) <= Fraction(1, 10**6)


def test_most_differing_at_its_ends() -> None:
    assert max_differing(9, Fraction(1), Fraction(1, 2)) == 9
    assert max_differing(9, Fraction(1), Fraction(1)) == 0
    assert max_differing(9, Fraction(0), Fraction(0)) == 0
    assert max_differing(1, Fraction(1, 2), Fraction(1, 2)) == 0  # a tie that balls can see
    assert max_differing(9, Enclosure(0.01, 0.5), Fraction(1, 512)) == 8


# The mechanism


@pytest.mark.parametrize("adjacency", [BitFlip(), Record()])
def test_the_claim_meets_its_epsilon_and_no_more(adjacency: BitFlip | Record) -> None:
    mechanism = make(adjacency=adjacency)
    assert isinstance(mechanism, WhiteBox)
    assert isinstance(mechanism, Exhaustive)
    assert mechanism.guarantee().curve == mechanism.privacy()
    assert mechanism.privacy().epsilon_at(0).upper <= 1
    assert mechanism.privacy().epsilon_at(0).lower > 1 - 1e-12
    assert mechanism.facts()["loss"]["bits_that_may_differ"] == (
        1 if isinstance(adjacency, BitFlip) else 11
    )
    assert mechanism.redrawn(5) is mechanism
    assert mechanism.step() is None


def test_every_bit_has_a_coin_of_its_own() -> None:
    """The release is the records' bits, flipped where the words in order are below 2⁶⁴·f."""
    mechanism, x = make(), bits(5, 11)
    released = mechanism.release(x, rng=ReplayableWords(8))
    numerator = np.uint64(int(mechanism.flip * 2**64))
    flipped = ReplayableWords(8).words(55).reshape(5, 11) < numerator
    assert released.shape == (5, 2)
    assert released.dtype == np.uint8
    assert np.array_equal(np.unpackbits(released, axis=1, count=11), (x != 0) ^ flipped)
    assert 0 < flipped.sum() < 55


def test_sparse_records_and_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, x = make(), bits(7, 11)
    whole = mechanism.release(x, rng=ReplayableWords(8))
    assert np.array_equal(whole, mechanism.release(sparse.csr_array(x), rng=ReplayableWords(8)))
    monkeypatch.setattr("dpverify_mechanisms.baselines.randomized_response._BLOCK", 30)
    assert np.array_equal(whole, mechanism.release(x, rng=ReplayableWords(8)))


def test_flips_are_as_frequent_as_claimed() -> None:
    """400,000 coins: beyond five standard deviations with probability 6e-7."""
    mechanism = make(p=400)
    released = np.bitwise_count(mechanism.release(np.zeros((1000, 400)), rng=SecureWords())).sum()
    share = float(mechanism.flip)
    assert abs(int(released) - 400_000 * share) < 5 * math.sqrt(400_000 * share * (1 - share))


@pytest.mark.parametrize("value", [-1.0, 2.0, math.nan])
def test_records_are_in_the_domain(value: float) -> None:
    x = bits(3, 11)
    x[2, 4] = value
    for records in (x, sparse.csr_array(x)):
        with pytest.raises(RecordsError, match="record 2, attribute 4"):
            make(p=11).release(records)


@pytest.mark.parametrize("value", [0.5, 1e-300, 0.9999999])
def test_records_must_be_bits(value: float) -> None:
    x = bits(3, 11)
    x[2, 4] = value
    for records in (x, sparse.csr_array(x)):
        with pytest.raises(RecordsError, match="record 2, bit 4"):
            make().release(records, rng=ReplayableWords(1))


def test_likelihood_is_that_of_the_distribution() -> None:
    mechanism = make(p=9)
    x, y = bits(2, 9)
    first, second = mechanism.distribution(x), mechanism.distribution(y)
    outputs = np.array([np.frombuffer(key, np.uint8) for key in first])[:, None]
    expected = [math.log(share / second[key]) for key, share in first.items()]
    losses = mechanism.log_likelihood_ratio(outputs, x, y)
    assert losses.shape == (512,)
    assert losses == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("adjacency", [BitFlip(), Record()])
def test_worst_pairs_have_the_curves_rates(adjacency: BitFlip | Record) -> None:
    """Each worst pair's loss has the claimed law, lattice points and all."""
    mechanism = make(p=5, adjacency=adjacency)
    curve = mechanism.privacy()
    for pair in mechanism.worst_pairs():
        first, second = (mechanism.distribution(x) for x in (pair.record, pair.neighbour))
        outputs = np.array([np.frombuffer(key, np.uint8) for key in first])[:, None]
        losses = mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)
        for lattice in range(-curve.positions, curve.positions + 1):
            threshold = lattice * curve.loss().upper
            beyond = [key for key, loss in zip(first, losses, strict=True) if loss >= threshold]
            own, other = (float(sum(law[key] for key in beyond)) for law in (first, second))
            assert curve.rates(threshold) == pytest.approx((own, other), abs=1e-12)


def test_estimators_broadcast() -> None:
    mechanism = make()
    released = mechanism.release(bits(6, 11), rng=ReplayableWords(2))
    for estimator in mechanism.estimators():
        table = estimator.estimate(released[:, None], released[None])
        assert table.shape == (6, 6)
        assert table[1, 4] == estimator.estimate(released[1], released[4])
    assert mechanism.estimators()[0].name == "squared distance"


def test_hoeffding_is_above_the_tail() -> None:
    estimator = make(p=60).estimators()[0]
    for deviation in (5, 20, 60, 100):
        exact = estimator.tail(20, deviation)  # type: ignore[attr-defined]
        bound = estimator.hoeffding(deviation)  # type: ignore[attr-defined]
        assert 0 < exact.upper < bound.lower


def test_probes_are_bits_and_end_independent() -> None:
    probes = make(p=200).probes(ReplayableWords(1))
    for probe in probes:
        make(p=200).packed(probe.record)
        make(p=200).packed(probe.neighbour)
    assert np.abs(probes[0].record - probes[0].neighbour).sum() <= 5
    assert 60 < np.abs(probes[-1].record - probes[-1].neighbour).sum() < 140


def test_wrong_mechanisms_are_refused() -> None:
    given: dict[str, Any] = {"p": 4, "flip": Fraction(1, 4), "domain": BITS, "adjacency": BitFlip()}
    RandomizedResponse(**given)
    for change in (
        {"p": 0},
        {"flip": Fraction(1, 2)},
        {"flip": Fraction(1, 3)},
        {"flip": Fraction(1, 2**41)},
        {"domain": Box(low=Fraction(-1), high=Fraction(1))},
    ):
        with pytest.raises(ParameterError):
            RandomizedResponse(**(given | change))
    with pytest.raises(ParameterError, match="p="):
        make(p=17).distribution(np.zeros(17))
