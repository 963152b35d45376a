"""What every privacy curve must satisfy, whatever proves it."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from dpverify.accounting.composition.compose import compose
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.composition.parallel import parallel
from dpverify.accounting.composition.theorems import (
    AdvancedBound,
    ApproximateOptimalBound,
    BasicBound,
    OptimalBound,
    SimplifiedOptimalBound,
)
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.partition_selection import PartitionSelection
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
)
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.curves.selection import BoundedRange, sparse_vector
from dpverify.accounting.curves.shuffled import Shuffled
from dpverify.accounting.curves.staircase import Staircase
from dpverify.accounting.curves.truncated_laplace import TruncatedLaplace
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.accounting.notions.fdp import FiniteTradeOff, GaussianTradeOff
from dpverify.accounting.notions.renyi import RDP, GaussianRenyi, PureRenyi
from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.data.adjacency import Attribute, Record
from dpverify.enclosure import Enclosure, SquareRoot
from dpverify.errors import NumericalError, ParameterError
from dpverify.guarantee import PrivacyBound, PrivacyCurve
from dpverify_mechanisms.baselines.geometric_noise import Geometric
from tests.helpers.profiles import crossed, day_and_night, examples
from tests.ledger.test_links import bounds

ADJACENCIES = (Attribute(1), Record())
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
POINTS = (ApproxDP(epsilon=HALF, delta=Fraction(1, 10**6)),) * 3
CURVES: list[PrivacyCurve] = [
    Gaussian(sigma=2),
    DiscreteGaussian(sigma=3, sensitivity=2),
    Laplace(scale=1),
    Laplace.of_row([1, 1, 2], scale=4),
    ApproxDP(epsilon=1, delta=Fraction(1, 10**5)),
    ApproxDP.from_odds(3),
    DiscretePair(p=[HALF, THIRD, 1 - HALF - THIRD], q=[THIRD, HALF, 1 - HALF - THIRD]),
    RandomizedResponse(keep=Fraction(3, 4), positions=3),
    RandomizedResponse.of_values(4, keep=HALF, positions=2),
    RankOneNormal(rows=100, gamma=Fraction(1, 10)),
    RankTwoNormal(rows=100, gamma=Fraction(1, 20)),
    Geometric(ratio=HALF, positions=2, shifts=((1, HALF), (2, THIRD))),
    DiscreteLaplace(scale=2, sensitivity=3),
    Staircase(epsilon=1, gamma=Fraction(1, 4)),
    sparse_vector(scale=4, threshold_scale=4),
]
ALONE: list[PrivacyCurve] = [  # of which no sum is proven, or one that takes its time
    MixedResponse(keep=Fraction(3, 4), other=Fraction(1, 4), positions=3, differ=THIRD),
    BoundedRange(epsilon=1),
    TruncatedLaplace(scale=1, bound=6),
    PartitionSelection(noise=Laplace(scale=1), threshold=8),
    Shuffled(answer=RandomizedResponse(keep=Fraction(3, 4)), users=20),
]
BIT = RandomizedResponse(keep=Fraction(3, 4))
DERIVED: list[PrivacyCurve] = [  # which print as what they are derived by
    BIT + RandomizedResponse(keep=Fraction(3, 5), positions=2),
    BIT.poisson_sampled(rate=THIRD),
    BIT.poisson_sampled(rate=THIRD, replaced=True),
    BIT.sampled_without_replacement(size=1, out_of=3),
    parallel(BIT, Laplace(scale=2)),
]
BOUNDS: list[PrivacyBound] = [
    RDP(parts=((GaussianRenyi(mu_squared=1), 2), (PureRenyi(epsilon=HALF), 1))),
    ZCDP(rho=HALF),
    ZCDP(rho=HALF, conversion="bun-steinke"),
    GaussianTradeOff(mu_squared=1),
    ApproxDP(epsilon=HALF, delta=Fraction(1, 10**5)).group(3),
    FiniteTradeOff.of_pair([(HALF, THIRD), (HALF, 1 - THIRD)]),
    BasicBound(points=POINTS),
    AdvancedBound(points=POINTS),
    SimplifiedOptimalBound(points=POINTS),
    OptimalBound(points=POINTS),
    ApproximateOptimalBound(points=POINTS),
]
UNBOUNDED = (
    Gaussian,
    DiscreteGaussian,
    RankOneNormal,
    RankTwoNormal,
    RDP,
    ZCDP,
    GaussianTradeOff,
)
every_curve = pytest.mark.parametrize("curve", [*CURVES, *DERIVED[:1]], ids=str)
single = pytest.mark.parametrize("curve", [*CURVES, *ALONE, *DERIVED], ids=str)
everything = pytest.mark.parametrize("curve", [*CURVES, *ALONE, *DERIVED, *BOUNDS], ids=str)


def test_every_curve_and_bound_is_among_them() -> None:
    tried = {type(curve) for curve in (*CURVES, *ALONE, *DERIVED, *BOUNDS)}
    missing = {kind.__name__ for kind in bounds() if kind not in tried}
    assert not missing, f"add one of each of {missing} to CURVES, ALONE, DERIVED or BOUNDS"


@everything
def test_wrong_numbers_are_refused_by_name(curve: PrivacyBound) -> None:
    for epsilon in (math.nan, math.inf, -1, -1e-300, Fraction(-1, 10**400), "one", None):
        with pytest.raises(ParameterError, match=r"^epsilon="):
            curve.delta_at(epsilon)  # type: ignore[arg-type]
    for delta in (math.nan, math.inf, -0.1, Fraction(-1, 10**400), 1, 1.5, "one", None):
        with pytest.raises(ParameterError, match=r"^delta="):
            curve.epsilon_at(delta)  # type: ignore[arg-type]


@everything
def test_a_delta_of_zero_is_reached_or_refused(curve: PrivacyBound) -> None:
    """By its largest loss, which may be infinite; or the rule says that it is unbounded."""
    if isinstance(curve, UNBOUNDED):
        with pytest.raises(ParameterError, match=r"^delta=0 must be .*(unbounded|no largest)"):
            curve.epsilon_at(0)
        return
    largest = curve.epsilon_at(0)
    if largest.upper < math.inf:
        assert curve.delta_at(math.nextafter(largest.upper, math.inf)).upper <= 5e-324


@everything
def test_both_fall_and_invert_each_other(curve: PrivacyBound) -> None:
    deltas = [curve.delta_at(epsilon) for epsilon in (0, "0.3", 1, 2.5, 5)]
    assert all(0 <= one.lower <= one.upper <= 1 for one in deltas)
    assert all(after.lower <= before.upper for before, after in pairwise(deltas))
    targets = [Fraction(1, 10**4), Fraction(1, 100), HALF]
    epsilons = [curve.epsilon_at(delta) for delta in targets]
    assert all(after.lower <= before.upper for before, after in pairwise(epsilons))
    for delta, epsilon in zip(targets, epsilons, strict=True):
        if 0 < epsilon.upper < math.inf:
            assert curve.delta_at(epsilon.upper * (1 + 1e-9)).lower <= delta
        if 0 < epsilon.lower < math.inf:
            assert curve.delta_at(epsilon.lower * (1 - 1e-9)).upper >= delta


@everything
def test_it_prints_itself_and_travels(curve: PrivacyBound) -> None:
    plain = json.loads(json.dumps(curve.to_dict()))
    assert plain["curve"] == type(curve).__name__
    if curve not in DERIVED:
        assert str(curve).startswith(f"{plain['curve']}(")
    printed = re.findall("at most ([^<]*)<", curve._repr_html_())
    for exponent, text in zip((3, 6, 9), printed, strict=True):
        upper = curve.epsilon_at(Fraction(1, 10**exponent)).upper
        assert upper <= float(text) <= upper * (1 + 1e-5)
    again = pickle.loads(pickle.dumps(curve))  # noqa: S301
    assert again == curve
    assert hash(again) == hash(curve)


@everything
def test_numbers_at_the_edge_of_doubles_have_an_answer(curve: PrivacyBound) -> None:
    """Without a warning, which is an error here."""
    farthest: list[float | Fraction] = [
        5e-324,
        1e-20,
        710,
        1e155,
        math.nextafter(math.inf, 0),
        Fraction(10**400),
    ]
    deltas = [curve.delta_at(epsilon) for epsilon in farthest]
    assert all(0 <= one.lower <= one.upper <= 1 for one in deltas)
    assert all(after.lower <= before.upper for before, after in pairwise(deltas))
    for delta in (5e-324, Fraction(1, 10**400), 1 - 2**-53, 1 - Fraction(1, 10**400)):
        with suppress(ParameterError, NumericalError):
            assert 0 <= curve.epsilon_at(delta).lower <= curve.epsilon_at(delta).upper


@single
def test_rates_at_the_edge_of_doubles_have_an_answer(curve: PrivacyCurve) -> None:
    """Beyond all losses the test says yes to what is infinite alone, and below them to all."""
    for far in (710, 1e155, math.nextafter(math.inf, 0), Fraction(10**400), math.inf):
        own, other = curve.rates(far)
        assert other == pytest.approx(0, abs=1e-12)
        assert own == pytest.approx(curve.delta_at(10**9).upper, abs=1e-9)
        below = curve.rates(-far)
        assert below[0] == pytest.approx(1, abs=1e-9)
        assert 1 - own - 1e-9 <= below[1] <= 1  # all but what the second law has alone
    for noise in (2**-20, 2**20):
        assert all(0 <= rate <= 1 for rate in curve.rates(1, noise=noise))
    with pytest.raises(ParameterError, match=r"^threshold=nan must be a real number, or infinite"):
        curve.rates(math.nan)
    wrong: list[Any] = [math.nan, "one", None]
    for number in wrong:
        with pytest.raises(ParameterError, match=r"^threshold="):
            curve.rates(number)
    for number in [*wrong, 0, -1, math.inf, 1e-300]:
        with pytest.raises(ParameterError, match=r"^noise="):
            curve.rates(1, noise=number)


SAMPLES: list[Callable[[PrivacyCurve, Fraction], PrivacyCurve]] = [
    lambda curve, rate: curve.poisson_sampled(rate=rate),
    lambda curve, rate: curve.poisson_sampled(rate=rate, replaced=True),
    lambda curve, rate: curve.sampled_without_replacement(
        size=rate.numerator, out_of=rate.denominator
    ),
]


@pytest.mark.parametrize(
    ("sampled", "curve"), crossed(SAMPLES, [Gaussian(sigma=1), Laplace(scale=1), BIT])
)
def test_rates_of_samples_at_the_edge_of_doubles_have_an_answer(
    curve: PrivacyCurve, sampled: Callable[[PrivacyCurve, Fraction], PrivacyCurve]
) -> None:
    """Of two releases: a rate next to 1 costs as much as the rate 1, but for what it leaves out."""
    tiny = Fraction(1, 10**25)
    whole, nearly = (2 * sampled(curve, rate) for rate in (Fraction(1), 1 - tiny))
    truth, found = whole.delta_at(HALF), nearly.delta_at(HALF)
    assert found.lower <= truth.upper + 1e-20
    assert found.upper >= truth.lower - 1e-20
    assert found.width < 1e-8
    rates, least = (2 * sampled(curve, tiny)).rates(1), (2 * sampled(curve, tiny)).rates(-1)
    assert (*rates, *least) == pytest.approx((0, 0, 1, 1), abs=1e-9)


@pytest.mark.parametrize(
    "curve",
    [
        10**6 * RandomizedResponse(keep=HALF + Fraction(1, 10**300)).poisson_sampled(rate=HALF),
        pytest.param(
            2 * DiscreteGaussian(sigma="0.01").poisson_sampled(rate=1 - Fraction(1, 10**25)),
            marks=pytest.mark.nightly,
        ),
        2 * Laplace(scale=Fraction(1, 10**30)).poisson_sampled(rate=1 - Fraction(1, 10**25)),
    ],
    ids=str,
)
def test_parameters_at_the_edge_of_doubles_have_an_answer_or_a_clear_error(
    curve: PrivacyCurve,
) -> None:
    for ask in (lambda: curve.delta_at(1), lambda: curve.delta_at(0), lambda: curve.rates(1)):
        with suppress(NumericalError):
            found = ask()
            low, high = (found.lower, found.upper) if isinstance(found, Enclosure) else found[::-1]
            assert 0 <= low <= high <= 1


@single
def test_rates_attain_the_curve(curve: PrivacyCurve) -> None:
    """The likelihood-ratio test at ε has P − e^ε·Q = δ(ε); of sums, the normal law's estimate."""
    for epsilon in (0.0, 0.25, 1.5):
        own, other = curve.rates(epsilon)
        assert 0 <= other <= own + 1e-12 <= 1 + 2e-12
        close = 0.05 if isinstance(curve, Composed) else 2e-3
        assert own - math.exp(epsilon) * other == pytest.approx(
            curve.delta_at(epsilon).upper, abs=close
        )


def in_another_unit(value: Any) -> Any:
    """The noise of a curve, and what it is added to, in a unit half as large."""
    if isinstance(value, tuple):
        return tuple(map(in_another_unit, value))
    if not isinstance(value, PrivacyBound):
        return value
    names = [field.name for field in getattr(type(value), "__attrs_attrs__", ()) if field.init]
    given = {name.lstrip("_"): in_another_unit(getattr(value, name)) for name in names}
    for name in given.keys() & {"sigma", "scale", "sensitivity"}:
        size = given[name]
        if size is None:  # a selection's, where it isn't known
            continue
        given[name] = SquareRoot(4 * size.radicand) if isinstance(size, SquareRoot) else 2 * size
    if given.get("moves"):
        given["moves"] = [(2 * size, count) for size, count in given["moves"]]
    return evolve(value, **given)  # type: ignore[misc]


@single
def test_curves_that_are_equal_are_one_function(curve: PrivacyCurve) -> None:
    """What is computed once for a curve is taken for all that equal it."""
    twin = in_another_unit(curve)
    for epsilon in (0, HALF, 5):
        assert twin != curve or twin.delta_at(epsilon) == curve.delta_at(epsilon)
    if isinstance(curve, Gaussian | Laplace):
        assert twin == curve


@every_curve
def test_losses_are_those_of_the_curve(curve: PrivacyCurve) -> None:
    for epsilon in (0, HALF):
        one, other = curve.delta_at(epsilon), (1 * curve).delta_at(epsilon)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper) * (1 + 1e-9)
    assert 2 * curve == curve + curve == curve * 2 == np.int64(2) * curve == compose(curve, curve)
    assert (2 * curve).delta_at(HALF).upper >= curve.delta_at(HALF).lower
    refused: list[Any] = [0, -1, HALF, 1.5, "two", None]
    for factor in refused:
        with pytest.raises(ParameterError, match=r"^times="):
            factor * curve
    with pytest.raises(TypeError):
        curve + 1  # type: ignore[operator]


@pytest.mark.parametrize("curve", CURVES[:12], ids=str)
def test_sums_of_unlike_things_are_refused(curve: PrivacyCurve) -> None:
    made: Any = curve
    one, other = (evolve(made, adjacency=adjacency) for adjacency in ADJACENCIES)
    assert (one.adjacency, one.unit) == (ADJACENCIES[0], ADJACENCIES[0].unit)
    assert (curve.adjacency, curve.unit) == (None, None)
    assert (one + one).adjacency == (3 * one).adjacency == ADJACENCIES[0]
    for unlike in (other, curve):
        with pytest.raises(ParameterError, match=r"^adjacency=.* the same for all releases"):
            one + unlike
    with pytest.raises(ParameterError, match=r"^adjacency=row must be an adjacency"):
        evolve(made, adjacency="row")


def test_a_plot_is_of_proven_upper_ends() -> None:
    axes = Gaussian(sigma=2).plot(Figure().add_subplot())
    (line,) = axes.get_lines()
    assert all(
        delta == Gaussian(sigma=2).delta_at(epsilon).upper
        for epsilon, delta in zip(*line.get_data(), strict=True)
    )


small = st.fractions(Fraction(1, 50), Fraction(2), max_denominator=50)
epsilons = st.fractions(0, 6, max_denominator=40)


@st.composite
def curves(draw: st.DrawFn) -> PrivacyCurve:
    keep = draw(st.fractions(Fraction(51, 100), Fraction(95, 100), max_denominator=100))
    positions = draw(st.integers(1, 5))
    made: list[PrivacyCurve] = [
        Gaussian.from_mu_squared(draw(small)),
        Laplace.of_shifts(((draw(small), positions),)),
        ApproxDP(epsilon=draw(small), delta=Fraction(1, 10**5)),
        RandomizedResponse(keep=keep, other=1 - keep, positions=positions),
        MixedResponse(keep=keep, other=1 - keep, positions=positions, differ=Fraction(1, 3)),
        RankOneNormal(rows=positions + 3, gamma=draw(small)),
    ]
    return draw(st.sampled_from(made))


@examples(40)
@given(curves(), epsilons, epsilons)
def test_delta_falls(curve: PrivacyCurve, first: Fraction, second: Fraction) -> None:
    low, high = sorted((first, second))
    assert curve.delta_at(high).lower <= curve.delta_at(low).upper
    assert 0 <= curve.delta_at(high).lower <= curve.delta_at(high).upper <= 1


@given(curves(), epsilons, epsilons)
def test_delta_is_convex_in_the_exponential(
    curve: PrivacyCurve, first: Fraction, second: Fraction
) -> None:
    """δ at the middle of e^ε₁ and e^ε₂ is at most the middle of both δ."""
    middle = math.log((math.exp(first) + math.exp(second)) / 2)
    between = Fraction(middle * (1 + 1e-15))  # δ falls, so a little further is no more
    chord = (curve.delta_at(first).upper + curve.delta_at(second).upper) / 2
    assert curve.delta_at(between).lower <= chord * (1 + 1e-12)


@given(curves(), st.fractions(Fraction(1, 10**4), Fraction(9, 10), max_denominator=10**4))
def test_epsilon_inverts_delta(curve: PrivacyCurve, delta: Fraction) -> None:
    found = curve.epsilon_at(delta)
    if math.isinf(found.upper):
        return
    assert curve.delta_at(Fraction(found.upper)).lower <= delta
    if found.lower > 0:
        assert curve.delta_at(Fraction(found.lower)).upper >= delta


@pytest.mark.parametrize("examples", day_and_night(2, 10))
def test_another_release_never_protects(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(curves(), curves(), epsilons)
    def check(curve: PrivacyCurve, other: PrivacyCurve, epsilon: Fraction) -> None:
        alone, more = curve.losses(), curve.losses() + other.losses()
        assert (
            Composed(losses=alone).delta_at(epsilon).lower
            <= Composed(losses=more).delta_at(epsilon).upper
        )

    check()


laws = st.lists(st.integers(1, 30), min_size=4, max_size=4).map(
    lambda parts: [Fraction(part, sum(parts)) for part in parts]
)


@examples(60)
@given(laws, laws, epsilons)
def test_post_processing_never_increases(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction
) -> None:
    """Outputs that are no longer told apart."""
    fine = Composed(losses=((FiniteLoss(pairs=tuple(zip(p, q, strict=True))), 2),))
    merged = ((p[0] + p[1], q[0] + q[1]), (p[2], q[2]), (p[3], q[3]))
    coarse = Composed(losses=((FiniteLoss(pairs=merged), 2),))
    assert coarse.delta_at(epsilon).lower <= fine.delta_at(epsilon).upper * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
@examples(30)
@given(mu_squared=small, epsilon=st.fractions(Fraction(1, 20), 2, max_denominator=20))
def test_group_privacy(size: int, mu_squared: Fraction, epsilon: Fraction) -> None:
    """k neighbours in a row: (kε, δ(e^{kε} − 1)/(e^ε − 1)), and Gaussian noise attains less."""
    one = Gaussian.from_mu_squared(mu_squared).delta_at(epsilon).upper
    group = Gaussian.from_mu_squared(size**2 * mu_squared).delta_at(size * epsilon).lower
    eps = float(epsilon)
    assert group <= one * math.expm1(size * eps) / math.expm1(eps) * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 4])
@examples(30)
@given(bound=small)
def test_group_privacy_of_laplace_noise_is_exact(size: int, bound: Fraction) -> None:
    group = Laplace.of_shifts(((size * bound, 1),))
    assert group.epsilon_at(0).upper >= size * bound
    assert group.delta_at(size * bound).upper == 0
    assert group.delta_at(size * bound * Fraction(99, 100)).lower > 0


def test_nothing_is_negative_next_to_the_bound() -> None:
    """ln 3 lies between two doubles; from the upper one on the curve is δ₀, and not the line."""
    for leak in (Fraction(0), Fraction(1, 1000)):
        curve = ApproxDP.from_odds(odds=Fraction(3), delta=leak)
        for epsilon in (
            math.log(3),
            math.nextafter(math.log(3), 2),
            math.nextafter(math.log(3), 0),
        ):
            found = curve.delta_at(epsilon)
            assert found.upper >= leak
            assert found.lower >= Enclosure.of_exact(leak).lower


def test_numbers_that_are_no_doubles_are_printed() -> None:
    assert str(Laplace(scale="1e400")) == "Laplace(scale=~1.000e+400, sensitivity=1)"
    assert str(ApproxDP(epsilon="1e-400")) == "ApproxDP(epsilon=~1e-400, delta=0)"
