"""Group privacy: exact where it says so, above every chain elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.composition.group import GroupBound
from dpverify.accounting.composition.parallel import parallel
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.notions.fdp import FiniteTradeOff
from dpverify.data.adjacency import Attribute, Group, Record
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night

EXACT: list[Any] = [
    dpv.Gaussian(sigma=4),
    dpv.Laplace(scale=2),
    dpv.DiscreteGaussian(sigma=3),
]


def test_shares_of_the_least_target_are_no_targets() -> None:
    """Of a group of three each step has less, which the noise on the sample can't be asked for."""
    one = dpv.Gaussian(sigma=1).poisson_sampled(rate="0.9")
    assert one.group(3).epsilon_at("1e-300").lower == one.epsilon_at("1e-300").lower


def test_what_is_not_known_of_one_change_is_not_of_a_group() -> None:
    """A threshold so far up that its δ is no double: whether 0 is above it isn't found."""
    one = dpv.curves.gaussian_threshold(sigma="0.6", threshold=36)
    assert one.epsilon_at(0) == one.group(2).epsilon_at(0) == Enclosure(0.0, math.inf)


@pytest.mark.parametrize("curve", EXACT, ids=str)
@pytest.mark.parametrize("size", day_and_night(2, 5))
def test_the_bound_attains_what_is_exact(curve: dpv.PrivacyCurve, size: int) -> None:
    """Noise against more shifts: the chain proves that much, and from below there is no less."""
    exact, bound = curve.group(size), GroupBound(one=curve, size=size)
    for epsilon in (0, "0.3", 2):
        found, true = bound.delta_at(epsilon), exact.delta_at(epsilon)
        assert true.lower <= found.upper <= true.upper * (1 + 1e-4) + 1e-300
        assert curve.delta_at(epsilon).lower == found.lower
    assert exact.epsilon_at("1e-4").lower <= bound.epsilon_at("1e-4").upper
    assert bound.epsilon_at("1e-4").upper <= exact.epsilon_at("1e-4").upper * (1 + 1e-5)


def test_groups_of_noise_are_noise_against_more() -> None:
    three = Group(None, 3)
    large = dpv.Gaussian(sigma=4, sensitivity=6, adjacency=three)
    assert dpv.Gaussian(sigma=4, sensitivity=2).group(3) == large
    assert dpv.Laplace(scale=10).group(3) == dpv.Laplace(scale=10, sensitivity=3, adjacency=three)
    whole = dpv.DiscreteGaussian(sigma=4, sensitivity=3, adjacency=three)
    assert dpv.DiscreteGaussian(sigma=4).group(3) == whole
    coin = dpv.RandomizedResponse(keep="0.75", positions=2)
    assert coin.group(3) == dpv.RandomizedResponse(keep="0.75", positions=6, adjacency=three)
    assert (4 * dpv.Gaussian(sigma=4)).group(3).delta_at(1) == dpv.Gaussian(
        sigma=4, sensitivity=6
    ).delta_at(1)
    assert isinstance(dpv.Laplace.of_row([1, 2], scale=4).group(2), GroupBound)
    assert isinstance((dpv.Laplace(scale=1) + dpv.Gaussian(sigma=1)).group(2), GroupBound)


def test_of_separate_releases_the_sum_of_groups_is_sharper() -> None:
    gaussian, laplace = 4 * dpv.Gaussian(sigma=4), dpv.Laplace(scale=10)
    apart = gaussian.group(2), laplace.group(2)
    total = dpv.compose(*(curve for curve in apart if isinstance(curve, dpv.PrivacyCurve)))
    bound = (gaussian + laplace).group(2).delta_at(2)
    assert total.delta_at(2).lower <= bound.upper <= 1.2 * total.delta_at(2).upper


@pytest.mark.parametrize(("epsilon", "delta", "size"), [("0.5", "0", 3), ("1", "1e-9", 2)])
def test_a_point_is_at_most_the_classical_one(epsilon: str, delta: str, size: int) -> None:
    """(kε, δ(1 + e^ε + … + e^{(k − 1)ε})), and for fewer ε less than that of the point alone."""
    group = dpv.ApproxDP(epsilon=epsilon, delta=delta).group(size)
    factor = sum(math.exp(float(epsilon) * n) for n in range(size))
    end = size * Fraction(epsilon)
    assert group.delta_at(end).upper <= float(delta) * factor * (1 + 1e-12)
    naive = dpv.ApproxDP(epsilon=end, delta=float(delta) * factor)
    for share in (Fraction(1, 4), Fraction(3, 4)):
        assert group.delta_at(share * end).upper <= naive.delta_at(share * end).upper
    if delta == "0":
        assert group.epsilon_at(0).upper == pytest.approx(float(end), rel=1e-15)
    else:
        assert group.epsilon_at("1e-12").upper == math.inf


def test_more_changes_protect_less() -> None:
    curve = dpv.ApproxDP(epsilon="0.2", delta="1e-7")
    found = [curve.group(size).delta_at("0.3").upper for size in (1, 2, 3, 5)]
    assert found == sorted(found)
    assert found[0] == curve.delta_at("0.3").upper
    assert curve.group(1).epsilon_at("1e-3") == curve.epsilon_at("1e-3")


def excess(p: list[Fraction], q: list[Fraction], epsilon: float) -> float:
    with mpmath.workdps(40):
        factor = mpmath.exp(epsilon)
        return float(
            sum(
                max(
                    mpmath.mpf(a.numerator) / a.denominator - factor * b.numerator / b.denominator,
                    0,
                )
                for a, b in zip(p, q, strict=True)
            )
        )


laws = st.lists(st.integers(1, 20), min_size=3, max_size=3).map(
    lambda parts: [Fraction(part, sum(parts)) for part in parts]
)


class Chain(dpv.PrivacyCurve):
    """The largest δ of all neighbours of a chain of laws, in both orders."""

    def __init__(self, chain: list[list[Fraction]]) -> None:
        steps = pairwise(chain)
        self.steps = [DiscretePair(p=p, q=q) for p, q in steps]

    def _delta(self, epsilon: Fraction) -> dpv.Enclosure:
        return max((step.delta_at(epsilon) for step in self.steps), key=lambda e: e.upper)

    def _epsilon(self, delta: Fraction) -> dpv.Enclosure:
        return max((step.epsilon_at(delta) for step in self.steps), key=lambda e: e.upper)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        raise NotImplementedError


@pytest.mark.parametrize(("examples", "size"), day_and_night((2, 2), (60, 2), (40, 4)))
def test_no_chain_exceeds_the_bound(examples: int, size: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.lists(laws, min_size=size + 1, max_size=size + 1), st.sampled_from([0.0, 0.4, 1.5]))
    def check(chain: list[list[Fraction]], epsilon: float) -> None:
        bound = Chain(chain).group(size)
        for p, q in ((chain[0], chain[-1]), (chain[-1], chain[0])):
            assert excess(p, q, epsilon) <= bound.delta_at(epsilon).upper * (1 + 1e-12) + 1e-15

    check()


def test_a_bound_that_forgets_the_factors_is_noticed() -> None:
    """Planted: Σδ(εᵢ) without e^{ε₁ + …} is below the truth of randomized response on a chain."""
    steps = [[Fraction(n, 100), Fraction(100 - n, 100)] for n in (1, 10, 50)]
    curve = Chain(steps)
    found = excess(steps[-1], steps[0], 1.0)
    parts = [Fraction(1, 2)] * 2
    wrong = min(sum(curve.delta_at(part).upper for part in parts) / 4, 1.0)
    assert wrong < found <= curve.group(2).delta_at(1).upper


def test_whom_it_protects() -> None:
    one = Attribute(1)
    noise = dpv.Gaussian(sigma=1, adjacency=one).group(3)
    assert noise.adjacency == Group(one, 3)
    assert noise.unit == f"{one.unit}: up to 3 such changes"
    bound = dpv.ApproxDP(epsilon=1, adjacency=one).group(3)
    assert isinstance(bound, GroupBound)
    assert bound.adjacency == Group(one, 3)
    assert str(bound).startswith("GroupBound(one=ApproxDP(epsilon=1")
    with pytest.raises(ParameterError, match="the same for all releases"):
        noise + dpv.Gaussian(sigma=1, adjacency=one)
    assert Group(Record(), 2).relates([[1.0]], [[2.0]])
    with pytest.raises(ParameterError, match="from all changes at once"):
        Group(Record(), 2).relates([[1.0], [2.0]], [[2.0], [3.0]])


@pytest.mark.parametrize(
    "use",
    [
        lambda pair, one: pair + one,
        lambda pair, one: one + 4 * pair,
        lambda pair, one: parallel(pair, pair),
        lambda pair, one: pair.poisson_sampled(rate=0.5),
        lambda pair, one: pair.sampled_without_replacement(size=1, out_of=2),
        lambda pair, one: pair.shuffled(users=9),
        lambda pair, one: dpv.curves.PartitionSelection(
            noise=dpv.Gaussian(sigma=1).group(2), threshold=9
        ),
    ],
)
@pytest.mark.parametrize("curve", [dpv.Laplace(scale=1), dpv.Laplace(scale=1) * 2], ids=str)
def test_a_group_is_none_of_one_change(
    curve: dpv.PrivacyCurve, use: Callable[[Any, dpv.PrivacyCurve], object]
) -> None:
    """Though it wasn't said whom the curve protects: two of a group have two coins, say."""
    pair = dpv.DiscreteGaussian(sigma=1).group(2)
    assert pair.unit == "one change: up to 2 such changes"
    assert (pair + pair).unit == pair.unit
    assert dpv.Laplace(scale=1).group(1) == dpv.Laplace(scale=1)
    with pytest.raises(ParameterError, match=r"^(adjacency|noise)="):
        use(pair, curve)
    budget = dpv.Budget(epsilon=99, delta="1e-6", composition="zcdp")
    budget.spend(pair)
    with pytest.raises(ParameterError, match=r"^unit=unknown"):
        budget.spend(curve)


@pytest.mark.parametrize("size", [0, -1, 2.5, "many", 1001])
def test_sizes_that_are_none_are_refused(size: Any) -> None:
    with pytest.raises(ParameterError, match=r"^size="):
        dpv.ApproxDP(epsilon=1).group(size)
    if size != 1001:
        for curve in (*EXACT, dpv.RandomizedResponse(keep="0.75")):
            with pytest.raises(ParameterError, match=r"^size="):
                curve.group(size)


def test_finite_trade_offs_iterate_to_the_same() -> None:
    """1 − f of randomized response composed with itself, by its vertices, at the kinks."""
    keep, flip = Fraction(3, 4), Fraction(1, 4)
    three = FiniteTradeOff.of_pair([(keep, flip), (flip, keep)])

    def twice(alpha: Fraction) -> Fraction:
        return 1 - three.type_two(1 - three.type_two(alpha))

    kinks = [Fraction(n, 144) for n in range(145)]
    bound = dpv.ApproxDP.from_odds(3).group(2)
    for epsilon in (0, "0.5", 1, 2):
        best = max(float(twice(a)) - math.exp(float(epsilon)) * float(a) for a in kinks)
        assert best <= bound.delta_at(epsilon).upper * (1 + 1e-12)
        # The least over chains isn't made convex, which costs up to a tenth here.
        assert bound.delta_at(epsilon).upper <= 1.1 * best + 1e-12


@pytest.mark.parametrize(
    "curve",
    [
        dpv.ApproxDP(epsilon=1, delta="1e-6"),
        dpv.ApproxDP(epsilon=1, delta="1e-6").poisson_sampled(rate="0.1"),
        dpv.curves.PartitionSelection(noise=dpv.Laplace(scale=1), threshold=14),
        dpv.curves.TruncatedLaplace(scale=1, bound=14),
        parallel(dpv.Laplace(scale=1), dpv.ApproxDP(epsilon="0.5", delta="1e-9")),
        dpv.Gaussian(sigma=3) + dpv.Laplace(scale=1),
    ],
    ids=str,
)
def test_far_away_the_bound_stays_at_the_least(curve: dpv.PrivacyCurve) -> None:
    """δ falls: what is proven for some ε holds for all larger ones."""
    bound = [curve.group(3).delta_at(epsilon).upper for epsilon in (4, 40, 10**6)]
    assert bound[1] <= bound[0] * (1 + 1e-6)
    assert bound[2] <= bound[1] * (1 + 1e-6) + 1e-280  # far below all targets


def test_of_a_point_the_far_end_is_what_a_chain_shows() -> None:
    """From three times the point's ε on, δ no longer changes."""
    bound = dpv.ApproxDP(epsilon=1, delta="1e-6").group(3)
    true = 1e-6 * (1 + math.e + math.e**2)
    for epsilon in (3, 4, 30, 10**6):
        assert true * (1 - 1e-12) <= bound.delta_at(epsilon).upper <= true * (1 + 1e-6)


@pytest.mark.parametrize("size", [2, 5])
def test_far_away_the_best_total_is_found(size: int) -> None:
    """Beside Gaussian noise a point's δ has its least bound where less than ε is parted."""
    bound = (dpv.Gaussian(sigma=3) + dpv.ApproxDP(epsilon="0.5", delta="1e-6")).group(size)
    near = min(bound.delta_at(2 * size + step).upper for step in (-1, 0, 1))
    assert bound.delta_at(40).upper < 1.25 * near


def test_epsilon_beyond_what_the_parts_can_take_is_cut_off() -> None:
    """From so many times the largest loss on, a larger ε proves no more, and split evenly less."""
    group = dpv.ApproxDP(epsilon=1, delta="1e-6").group(20)
    capped = group.delta_at(20).upper
    assert capped < 1
    assert group.delta_at(50).upper <= capped
