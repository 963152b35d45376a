"""Composed curves: properties, methods, what is refused."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.composition._direction import Direction, direction_of
from dpverify.accounting.composition.curve import Composed, _reversed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
)
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.curves.selection import exponential_mechanism, sparse_vector
from dpverify.accounting.curves.staircase import Staircase
from dpverify.accounting.losses.base import Log, PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.data.adjacency import AddRemove
from dpverify.enclosure import Enclosure, SquareRoot
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import examples

F = Fraction
GAUSS = GaussianLoss(mu_squared=F(1, 4))
LAWS: dict[str, PrivacyLoss] = {
    "coin": ResponseLoss(step=Log(F(3))),
    "weaker coin": ResponseLoss(step=Log(F(6, 5))),
    "pure": ResponseLoss(step=F(1, 3)),
    "leak": ResponseLoss(step=F(1, 2), infinity_mass=F(1, 1000)),
    "finite": FiniteLoss(pairs=((F(1, 2), F(1, 8)), (F(1, 2), F(7, 8)))),
    "gauss": GAUSS,
    "laplace": LaplaceLoss(shift=F(1, 2)),
    "rows": NormalRowsLoss(rows=80, gammas=(F(1, 30),)),
    "position": PositionLoss(differ=F(1, 4), losses=((ResponseLoss(step=Log(F(3))), 2),)),
}
# Any choice of these has few atoms or a smooth part, so that a curve takes milliseconds.
names = st.lists(st.sampled_from(["coin", "weaker coin", "pure", "leak", "finite"]), max_size=3)
smooth = st.lists(st.sampled_from(["coin", "leak", "rows", "finite", "position"]), max_size=3)


@pytest.mark.parametrize("epsilon", [F(1, 20), F(1, 4), F(3)])
def test_a_tail_bound_shows_what_is_so_and_nothing_else(epsilon: Fraction) -> None:
    """It is off by a factor of some hundred at most, and proves no delta below the true one."""
    sampled = 1000 * Gaussian(sigma=1).poisson_sampled(rate="0.01")
    truth, direction = sampled.delta_at(epsilon), direction_of(sampled.losses())
    assert isinstance(direction, Direction)
    for share in (F(1, 10**6), F(1, 2), F(99, 100)):
        assert not direction.is_below(epsilon, share * Fraction(truth.lower))
    assert direction.is_below(epsilon, 1000 * Fraction(truth.upper))


def curve(*names: str) -> Composed:
    return Composed(losses=tuple((LAWS[name], 1) for name in names))


def above(first: Enclosure, second: Enclosure) -> bool:
    """Whether first ≥ second isn't refuted."""
    return first.upper >= second.lower


def test_a_composition_prints_itself_as_the_sum_that_makes_it() -> None:
    summed = (
        10 * Gaussian(sigma=F(5, 4))
        + Gaussian.from_mu_squared(2)
        + Laplace(scale=2, adjacency=None)
        + RandomizedResponse(keep=F(1, 2), other=F(1, 8))
        + 3 * RandomizedResponse(keep=F(3, 4))
        + ApproxDP(epsilon=F(1, 2), delta=F(1, 1024))
    )
    assert "10 * Gaussian(sigma=1.25) + " in str(summed)
    assert eval(str(summed), globals()) == summed  # noqa: S307
    assert str(Laplace.of_row(range(1, 9), scale=1) * 2).endswith(" + 2 other losses")
    assert str(curve("position")) == "(2 * RandomizedResponse(keep=0.75)) with probability 0.25"
    assert str(curve("rows")) == "80 normal rows of gammas 1/30"
    assert str(curve("finite")) == "laws (0.5, 0.5; 0.125, 0.875)"


@pytest.mark.parametrize(
    ("parts", "method"),
    [
        (("gauss", "gauss"), "gaussian"),
        (("laplace", "laplace"), "laplace"),
        (("coin", "coin"), "lattice"),
        (("position", "coin"), "lattice"),
        (("coin", "pure"), "enumeration"),
        (("coin", "gauss"), "inversion"),
        (("rows",), "normal rows"),
    ],
)
def test_methods(parts: tuple[str, ...], method: str) -> None:
    assert curve(*parts).method == method
    assert isinstance(curve(*parts), PrivacyCurve)


@pytest.mark.parametrize("base", [Gaussian(sigma=1), Laplace(scale=1)], ids=str)
def test_one_release_on_a_sample_is_no_inversion(base: PrivacyCurve) -> None:
    for one in (
        base.poisson_sampled(rate="0.1"),
        base.poisson_sampled(rate="0.1", replaced=True),
        base.sampled_without_replacement(size=1, out_of=10),
    ):
        whole, several = (Composed.of([one], times=times) for times in (1, 2))
        assert (whole.method, several.method) == ("one sample", "inversion")


@examples(25)
@given(parts=st.one_of(names, smooth.map(lambda found: [*found, "gauss", "gauss"])), data=st.data())
def test_order_and_grouping_have_no_influence(parts: list[str], data: st.DataObject) -> None:
    parts = [*parts, "coin"]
    shuffled = data.draw(st.permutations(parts))
    assert curve(*parts) == curve(*shuffled)
    assert hash(curve(*parts)) == hash(curve(*shuffled))


@examples(25)
@given(
    parts=st.one_of(names, smooth.map(lambda found: [*found, "gauss", "gauss"])),
    more=st.sampled_from(["coin", "finite", "pure", "leak"]),
    epsilons=st.tuples(*[st.fractions(0, 3, max_denominator=50)] * 3),
)
def test_curves_fall_are_convex_and_rise_with_each_loss(
    parts: list[str], more: str, epsilons: tuple[Fraction, ...]
) -> None:
    one, two = curve(*parts, "coin"), curve(*parts, "coin", more)
    low, middle, high = sorted(epsilons)
    found = [one.delta_at(e) for e in (low, middle, high)]
    assert above(found[0], found[1])
    assert above(found[1], found[2])
    if low < middle < high:  # convex in e^ε
        x, y, z = (math.exp(e) for e in (low, middle, high))
        chord = ((z - y) * found[0].upper + (y - x) * found[2].upper) / (z - x)
        assert found[1].lower <= chord * (1 + 1e-9) + 1e-15
    assert above(two.delta_at(middle), found[1])


@examples(20)
@given(
    parts=st.one_of(names, smooth.map(lambda found: [*found, "gauss", "gauss"])),
    epsilon=st.fractions(F(1, 50), 2, max_denominator=50),
)
def test_epsilon_inverts_delta(parts: list[str], epsilon: Fraction) -> None:
    one = curve(*parts, "coin", "coin")
    delta = one.delta_at(epsilon)
    back = one.epsilon_at(delta.upper)
    assert back.lower <= epsilon + 1e-9
    assert one.delta_at(back.upper).lower <= delta.upper
    if back.lower > 0:
        assert one.delta_at(back.lower).upper >= delta.upper


@pytest.mark.parametrize(
    "parts", [("coin", "laplace", "gauss"), ("coin", "coin"), ("coin", "pure")]
)
def test_targets_near_the_largest_delta(parts: tuple[str, ...]) -> None:
    """Just below δ(0) the root is tiny; at it, 0 or next to it."""
    one = curve(*parts)
    at_zero = one.delta_at(0)
    assert one.epsilon_at(F(at_zero.upper)).upper < 1e-14
    near = one.epsilon_at(F(at_zero.lower) * (1 - F(1, 10**9)))
    assert 0 < near.lower <= near.upper < 1e-8
    assert near.width < 1e-4


@pytest.mark.parametrize(("keep", "other"), [("0.57", "1e-17"), ("0.999999", "5e-20")])
def test_targets_next_to_the_largest_delta_where_it_hardly_falls(keep: str, other: str) -> None:
    """In doubles δ is the same for some way; as one curve the answers have a closed form."""
    parts, whole = (
        times * RandomizedResponse(keep=keep, other=other, positions=10 // times)
        for times in (5, 1)
    )
    target = F(whole.delta_at(0).lower)
    expected, found = whole.epsilon_at(target), parts.epsilon_at(target)
    assert max(expected.lower, found.lower) <= min(expected.upper, found.upper)
    assert found.width < 1e-9


def test_the_worse_direction_counts() -> None:
    """A rare output with a large ratio: one direction loses much more than the other."""
    pairs = ((F(1, 10), F(1, 1000)), (F(9, 10), F(999, 1000)))
    forward = Composed(losses=((FiniteLoss(pairs=pairs), 3),))
    backward = Composed(losses=((FiniteLoss(pairs=pairs).reverse(), 3),))
    found, other = forward.delta_at(2), backward.delta_at(2)
    assert found == other
    assert found.lower > 0.2


def test_an_infinity_mass() -> None:
    leak = F(1, 100)
    one = Composed(losses=((ResponseLoss(step=F(1, 2), infinity_mass=leak), 5),))
    infinity_mass = 1 - (1 - leak) ** 5
    assert infinity_mass in one.delta_at(F(5, 2))
    assert one.delta_at(F(5, 2)).width < 1e-15
    assert one.epsilon_at(infinity_mass) == Enclosure(2.5, 2.5)
    assert one.epsilon_at(infinity_mass / 2) == Enclosure(math.inf, math.inf)
    assert 0 < one.epsilon_at(infinity_mass * F(101, 100)).upper < 2.5


def test_pure_privacy_adds_up() -> None:
    one = Composed(
        losses=((ResponseLoss(step=F(1, 3)), 3), (ResponseLoss(step=SquareRoot(F(2))), 2)),
    )
    assert F(1) + 2 * F(math.sqrt(2)) in one.epsilon_at(0)
    assert one.epsilon_at(0).width < 1e-15
    assert one.delta_at(4).upper == 0


PURE = [
    ApproxDP(epsilon=Fraction(1, 3)),
    ApproxDP(epsilon=Fraction(1, 3), delta=Fraction(1, 10**9)),
    DiscreteLaplace(scale=3),
    DiscreteLaplace(scale=21, sensitivity=7),
    Laplace(scale=3),
    Staircase(epsilon=Fraction(1, 3), gamma=Fraction(1, 4)),
    exponential_mechanism(scale=6),
    sparse_vector(scale=24, threshold_scale=6, cutoff=2),
]


@pytest.mark.parametrize("other", [None, *PURE], ids=str)
@pytest.mark.parametrize("curve", PURE, ids=str)
def test_from_the_largest_loss_on_delta_is_exactly_what_no_epsilon_takes_away(
    curve: PrivacyCurve, other: PrivacyCurve | None
) -> None:
    total = 3 * curve if other is None else 3 * curve + other
    most = sum((n * Fraction(loss.exact_max_loss or 0) for loss, n in total.losses()), Fraction(0))
    left = 1 - Fraction(math.prod((1 - loss.infinity_mass) ** n for loss, n in total.losses()))
    assert most.denominator in {1, 2, 3, 6, 12}
    for epsilon in (most, 2 * most):
        assert total.delta_at(epsilon) == Enclosure.of_exact(left)
    assert total.epsilon_at(left) == Enclosure.of_exact(most)
    assert total.delta_at(most * (1 - Fraction(1, 2**20))).lower >= float(left)


def test_no_loss_at_all() -> None:
    nothing = Composed(losses=((FiniteLoss(pairs=((F(1), F(1)),)), 3),))
    assert nothing.delta_at(0) == Enclosure(0.0, 0.0)
    assert nothing.epsilon_at(F(1, 10)) == Enclosure(0.0, 0.0)
    assert nothing.epsilon_at(0) == Enclosure(0.0, 0.0)


@pytest.mark.parametrize(
    "one",
    [
        Gaussian.from_mu_squared(F(1, 4)),
        Laplace.of_shifts(((F(1, 2), 2),)),
        RandomizedResponse(keep=F(5, 8), other=F(1, 8), positions=3),
        RandomizedResponse(keep=F(1, 4), other=F(1, 4), positions=3),
        MixedResponse(keep=F(3, 4), other=F(1, 4), positions=4, differ=F(1, 5)),
        ApproxDP(epsilon=F(1, 2), delta=F(1, 50)),
        ApproxDP.from_odds(odds=F(3)),
        ApproxDP(epsilon=F(0), delta=F(1, 50)),
        ApproxDP(epsilon=SquareRoot(F(2))),
        RankOneNormal(rows=50, gamma=F(1, 20)),
        RankTwoNormal(rows=50, gamma=F(1, 20)),
    ],
    ids=repr,
)
def test_losses_of_curves(
    one: Gaussian
    | Laplace
    | RandomizedResponse
    | MixedResponse
    | ApproxDP
    | RankOneNormal
    | RankTwoNormal,
) -> None:
    composed = Composed(losses=one.losses())
    for epsilon in (F(0), F(3, 10), F(1)):
        ours, theirs = composed.delta_at(epsilon), one.delta_at(epsilon)
        assert above(ours, theirs)
        assert above(theirs, ours)
        assert ours.upper - ours.lower <= 1e-12


@pytest.mark.parametrize(
    ("kind", "gammas"),
    [(RankOneNormal, [F(1, 20)]), (RankTwoNormal, [F(1, 20), F(-1, 21)])],
)
def test_normal_rows_that_change_alike_are_more_rows(
    kind: type[RankOneNormal | RankTwoNormal], gammas: list[Fraction]
) -> None:
    """In closed form, which `tests.oracle` compares with the inversion, for either order."""
    whole = kind(rows=200, gamma=gammas[0])
    for change in (gammas, [-gamma / (1 + gamma) for gamma in gammas]):
        some, few = (NormalRowsLoss(rows=rows, gammas=change) for rows in (50, 25))
        composed = Composed(losses=((some, 3), (few, 2)))
        assert composed.method == "normal rows"
        assert composed.delta_at(F(1, 2)) == whole.delta_at(F(1, 2))
        assert composed.epsilon_at(0).lower == math.inf
        other = NormalRowsLoss(rows=50, gammas=[F(1, 30)])
        assert Composed(losses=((some, 1), (other, 1))).method == "inversion"


@pytest.mark.parametrize("parts", [("coin",) * 6, ("gauss", "coin"), ("rows",)])
def test_rates_are_near_the_curve(parts: tuple[str, ...]) -> None:
    """δ(t) ≥ P[L ≥ t] − e^t·Q[L ≥ t] holds for the true rates; the normal ones come near."""
    one = curve(*parts)
    own, other = one.rates(0.5)
    assert 0 <= other <= own <= 1
    assert abs(own - math.exp(0.5) * other - one.delta_at(0.5).upper) < 0.15
    assert one.rates(0.5, noise=0.5)[0] != own


@pytest.mark.nightly
def test_different_bits_on_no_common_lattice() -> None:
    """256 of them, to a relative 1e-7; twice the honest half must lie between halves and whole."""
    rng = random.Random(7)
    keeps = [F(1, 2) + F(rng.randrange(2**59), 2**63) for _ in range(256)]
    losses = tuple((ResponseLoss(step=Log(k / (1 - k))), 1) for k in keeps)
    whole, half = Composed(losses=losses), Composed(losses=losses[::2])
    assert whole.method == "inversion"
    found = whole.epsilon_at(F(1, 10**6))
    assert found.width < 1e-7
    assert half.epsilon_at(F(1, 10**6)).upper < found.lower


@pytest.mark.parametrize("scale", ["14.7", 3, 40])
def test_nearly_all_losses_of_more_releases_than_have_a_line_are_above(scale: str | int) -> None:
    """M is bounded left of 0, on both sides of a place where its formula has no value."""
    found = (10**12 * Laplace(scale=scale)).delta_at(1)
    assert 1 - 1e-15 < found.lower <= found.upper == 1


def test_an_unreachable_target() -> None:
    for kinds in (("gauss", "coin"), ("gauss",)):
        assert curve(*kinds).epsilon_at(0).lower == math.inf


def test_bad_losses() -> None:
    with pytest.raises(ParameterError, match="not empty"):
        Composed(losses=())
    with pytest.raises(ParameterError, match="multiplicity=0"):
        Composed(losses=((GAUSS, 0),))


def test_of_many_samples_no_finite_epsilon_holds_without_a_delta() -> None:
    sampled = 4 * Gaussian(sigma=F(1, 2)).poisson_sampled(rate=F(1, 4))
    assert sampled.epsilon_at(0) == Enclosure(math.inf, math.inf)


@pytest.mark.parametrize("delta", ["1e-40", "1.5e-52", "1e-300"])
@pytest.mark.parametrize(("times", "pure"), [(14, "0.0342"), (23, "0.0761"), (40, "0.3")])
def test_pure_releases_next_to_their_largest_loss(times: int, pure: str, delta: str) -> None:
    """All lose their ε together with a probability that is far above δ."""
    with mpmath.workdps(400):
        one = mpmath.mpf(pure)
        most = mpmath.exp(times * one) / (1 + mpmath.exp(one)) ** times
        exact = times * one + mpmath.log1p(-mpmath.mpf(delta) / most)
        found = (times * ApproxDP(epsilon=pure, delta=0)).epsilon_at(delta)
        assert found.lower <= exact <= found.upper
    assert found.width < 1e-11


@pytest.mark.parametrize(
    "sampled",
    [
        Gaussian(sigma=10).poisson_sampled(rate="0.2"),
        30 * Gaussian(sigma=2).poisson_sampled(rate="0.01", replaced=True),
        Laplace(scale=3).poisson_sampled(rate="0.2"),
    ],
    ids=str,
)
def test_an_output_of_one_law_alone_shows_all_beside_samples(sampled: PrivacyCurve) -> None:
    """Whichever law it is of: no bound on finite losses leaves its order out."""
    p, q = (F(0), F(1)), (F(2, 5), F(3, 5))
    pair = DiscretePair(p=p, q=q, adjacency=sampled.adjacency)
    total = pair + sampled
    assert total.epsilon_at("0.3").lower == math.inf
    orders = [direction_of(total.losses()), direction_of(_reversed(total.losses()))]
    for order, mass in zip(orders, (F(0), F(2, 5)), strict=True):
        for epsilon in (F(2), F(60)):
            assert order.is_below(epsilon, F(41, 100))
            assert order.is_below(epsilon, F(39, 100)) == (not mass)


def test_an_output_of_one_law_alone_is_the_delta_beside_samples() -> None:
    for own, other in (((0, 1), ("0.4", "0.6")), (("0.4", "0.6"), (0, 1))):
        pair = DiscretePair(p=own, q=other, adjacency=AddRemove())
        total = pair + Gaussian(sigma=10).poisson_sampled(rate="0.2")
        assert F(2, 5) in total.delta_at(60)
        assert F(2, 5) <= total.delta_at(2).upper


def test_a_delta_of_millions_of_digits_is_refused_with_a_bound_in_its_place() -> None:
    times = 10**12
    leaking = times * ApproxDP(epsilon="1e-8", delta="1e-15")
    for ask in (leaking.delta_at, leaking.epsilon_at):
        with pytest.raises(ParameterError, match=r"^times=1000000000000 must be at most \d+ for"):
            ask("0.1")
    pure, once = ApproxDP(epsilon="0.01", delta=0), ApproxDP(epsilon=0, delta="3e-6")
    instead = 3 * pure + once
    exact = 3 * ApproxDP(epsilon="0.01", delta="1e-6")
    for epsilon in ("0", "0.02", "1"):
        assert exact.delta_at(epsilon).upper <= instead.delta_at(epsilon).upper
        assert instead.delta_at(epsilon).upper <= exact.delta_at(epsilon).upper + 3e-12


def test_the_additions_of_a_mixture_are_left_out_where_chernoff_shows_less() -> None:
    """Beside other noise as well; and they are not where the removals are less than δ."""
    losses = (
        (PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 20), added=True), 50),
        (LaplaceLoss(shift=F(1, 5)), 8),
    )
    added, curve = Direction(losses=losses), Composed(losses=losses)
    found = curve.epsilon_at("1e-6")
    assert added.is_below(F(found.lower), F(1, 10**6))
    alone = added.epsilon_at(F(1, 10**6))
    assert alone.upper < found.lower
    assert not added.is_below(F(alone.lower), F(1, 10**6))
