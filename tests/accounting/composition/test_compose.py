"""Composition of guarantees: what adds, what shares a draw, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import cast

import pytest

import dpverify as dpv
from dpverify.accounting.composition.compare import compared
from dpverify.accounting.composition.compose import compose
from dpverify.accounting.composition.parallel import parallel
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
    keep_probability,
)
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.data.adjacency import Adjacency, Attribute, Record
from dpverify.errors import ParameterError
from dpverify.guarantee import Draw, Guarantee, PrivacyCurve

ONE = Attribute(beta=Fraction(1))
DELTA = Fraction(1, 10**6)


def guarantee(
    curve: PrivacyCurve, *draws: str, adjacency: Adjacency = ONE, **options: object
) -> Guarantee:
    return Guarantee(
        curve=curve,
        adjacency=adjacency,
        randomness="the noise",
        data_choice="before the draw" if draws else "at any time",
        theorem="a theorem",
        draws=tuple(Draw(draw.partition(", ")[0], draw) for draw in draws),
        **options,  # type: ignore[arg-type]
    )


def test_gaussians_add_their_squares() -> None:
    parts = [guarantee(Gaussian.from_mu_squared(Fraction(n, 7))) for n in (1, 2, 4)]
    total = compose(*parts)
    assert total.curve.epsilon_at(DELTA) == Gaussian(sigma=1).epsilon_at(DELTA)
    assert total.parts == tuple(parts)
    assert not total.over_the_draw


def test_a_release_alone_keeps_its_curve() -> None:
    curve = RandomizedResponse(keep=Fraction(3, 4), other=Fraction(1, 4), positions=5)
    alone = compose(guarantee(curve)).curve
    for epsilon in (0, 1, Fraction(5, 2)):
        assert alone.delta_at(epsilon).lower <= curve.delta_at(epsilon).upper
        assert alone.delta_at(epsilon).upper >= curve.delta_at(epsilon).lower


def test_order_and_grouping_do_not_matter() -> None:
    curves = (
        Gaussian.from_mu_squared(Fraction(1, 2)),
        ApproxDP(epsilon=Fraction(1, 3), delta=Fraction(1, 10**7)),
        RandomizedResponse(keep=Fraction(3, 5), other=Fraction(2, 5), positions=3),
    )
    parts = [guarantee(curve) for curve in curves]
    ends = [compose(*order).curve.epsilon_at(DELTA) for order in permutations(parts)]
    nested = compose(compose(*parts[:2]), parts[2]).curve.epsilon_at(DELTA)
    assert max(e.lower for e in [*ends, nested]) <= min(e.upper for e in [*ends, nested])


# The cell of Li and Li's DP-SignRP-RR: k = 512, norms at least 10·β.
K = 512
DIFFER = Fraction(2 * math.asin(0.05) / math.pi)
KEEP = keep_probability(Fraction("0.242"))
ON_AVERAGE = MixedResponse(keep=KEEP, other=1 - KEEP, positions=K, differ=DIFFER)


def test_ten_releases_on_one_draw_lose_more_than_on_ten() -> None:
    fresh = compose(*(guarantee(ON_AVERAGE, f"matrix {n}") for n in range(10)))
    shared = compose(*[guarantee(ON_AVERAGE, "matrix")] * 10, same_records=True)
    assert ON_AVERAGE.epsilon_at(DELTA).upper == pytest.approx(5, abs=0.005)
    assert fresh.curve.epsilon_at(DELTA).upper == pytest.approx(18.99, abs=0.005)
    assert shared.curve.epsilon_at(DELTA).upper == pytest.approx(22.83, abs=0.005)
    assert len(fresh.draws) == 10
    assert shared.draws == (Draw("matrix", "matrix"),)
    assert shared.data_choice == "before the draw"


def test_a_shared_draw_cannot_be_forgotten_by_grouping() -> None:
    one = guarantee(ON_AVERAGE, "matrix")
    pair = compose(one, one, same_records=True)
    nested = compose(pair, one, same_records=True).curve.epsilon_at(DELTA)
    flat = compose(one, one, one, same_records=True).curve.epsilon_at(DELTA)
    assert nested == flat


@pytest.mark.parametrize(
    "use",
    [
        lambda curve: 10 * curve,
        lambda curve: curve + Gaussian(sigma=1),
        lambda curve: compose(curve, curve),
        lambda curve: curve.poisson_sampled(rate=0.5),
        lambda curve: curve.poisson_sampled(rate=0.5, replaced=True),
        lambda curve: curve.sampled_without_replacement(size=1, out_of=2),
        lambda curve: curve.shuffled(users=9),
        lambda curve: parallel(curve, curve),
        lambda curve: dpv.Budget(epsilon=9, delta=DELTA).spend(curve, delta=DELTA),
    ],
)
def test_a_shared_draw_cannot_be_forgotten_by_the_curve(
    use: Callable[[PrivacyCurve], object],
) -> None:
    """Multiplied as of fresh draws, ten releases would cost 18.99 in place of 22.83."""
    alone = compose(guarantee(ON_AVERAGE, "matrix")).curve
    assert alone.epsilon_at(0) == ON_AVERAGE.epsilon_at(0)
    for curve in (ON_AVERAGE, alone):
        with pytest.raises(ParameterError, match="give the mechanism, or its guarantee"):
            use(curve)


UP = DiscretePair(p=["0.7", "0.3"], q=["0.1", "0.9"])
SAMPLED = RandomizedResponse(keep=Fraction(49, 50)).poisson_sampled(rate="0.5")
LIGHT, HEAVY = (RankOneNormal(rows=rows, gamma=Fraction(1, 2)) for rows in (1, 4))


@pytest.mark.parametrize("one", [UP, SAMPLED], ids=str)
def test_a_row_that_one_table_gains_as_another_loses_it_may_cost_more(one: PrivacyCurve) -> None:
    """So that it is assumed not to: by the product of laws, one of them in the other order."""
    ((loss, _),) = one.losses()
    pairs = tuple((float(p), float(q)) for p, q in cast("FiniteLoss", loss).pairs)
    mixed = [(p * b, q * a) for p, q in pairs for a, b in pairs]
    rows = [factor / 8 for factor in range(1, 40)]
    excess = [sum(max(p - math.exp(e) * q, 0.0) for p, q in mixed) for e in rows]
    assert any(own > (2 * one).delta_at(e).upper for own, e in zip(excess, rows, strict=True))


@pytest.mark.parametrize(
    ("curves", "ordered"),
    [
        ((SAMPLED, SAMPLED), True),
        ((UP, SAMPLED), True),
        ((LIGHT, HEAVY), True),
        ((LIGHT, Gaussian(sigma=1)), False),
        ((Gaussian(sigma=1), RandomizedResponse(keep=Fraction(3, 4))), False),
        ((SAMPLED,), False),
        ((Gaussian(sigma=1).poisson_sampled(rate="0.5", replaced=True),) * 2, False),
    ],
    ids=str,
)
def test_the_order_of_neighbours_is_assumed_where_it_matters(
    curves: tuple[PrivacyCurve, ...], ordered: bool
) -> None:
    total = compose(*map(guarantee, curves))
    assert any("takes nothing from" in said for said in total.assumptions) == ordered
    assert compose(total).assumptions == total.assumptions


def test_a_shared_draw_by_enumeration() -> None:
    """Two releases of two positions: all draws, all answers, in fractions."""
    keep, differ = Fraction(2, 3), Fraction(1, 4)
    curve = MixedResponse(keep=keep, other=1 - keep, positions=2, differ=differ)
    total = compose(*[guarantee(curve, "matrix")] * 2, same_records=True).curve
    for ratio in (1, 3, 10):
        exact = Fraction(0)
        for differing, chance in (
            (0, (1 - differ) ** 2),
            (1, 2 * differ * (1 - differ)),
            (2, differ**2),
        ):
            coins = 2 * differing
            for kept in range(coins + 1):
                p = keep**kept * (1 - keep) ** (coins - kept)
                q = keep ** (coins - kept) * (1 - keep) ** kept
                exact += chance * math.comb(coins, kept) * max(p - ratio * q, Fraction(0))
        found = total.delta_at(Fraction(math.log(ratio)))
        assert found.lower <= float(exact) * (1 + 1e-12)
        assert found.upper >= float(exact) * (1 - 1e-12)
        assert found.upper - found.lower <= 1e-12


def test_claims_for_what_was_realised_multiply() -> None:
    noise = guarantee(Gaussian.from_mu_squared(Fraction(1, 4)))
    total = compose(noise, guarantee(ON_AVERAGE, "matrix"))
    assert total.curve.epsilon_at(DELTA).lower > ON_AVERAGE.epsilon_at(DELTA).upper
    assert total.draws == (Draw("matrix", "matrix"),)


class NoLoss(ApproxDP):
    """A curve that says nothing of its loss."""

    losses = PrivacyCurve.losses


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "releases=none"),
        (
            [
                guarantee(ON_AVERAGE, "matrix"),
                guarantee(ON_AVERAGE, "matrix", adjacency=Record()),
            ],
            "the same for all releases",
        ),
        ([guarantee(ON_AVERAGE, notion="individual differential privacy")], "notion="),
        ([guarantee(NoLoss(epsilon=1))], "NoLoss"),
        (
            [guarantee(ON_AVERAGE, "m"), guarantee(Gaussian(sigma=1), "m")],
            "draws=m",
        ),
        (
            [
                guarantee(ON_AVERAGE, "m"),
                guarantee(
                    MixedResponse(keep=KEEP, other=1 - KEEP, positions=3, differ=DIFFER), "m"
                ),
            ],
            "draws=m",
        ),
    ],
)
def test_what_is_refused(parts: list[Guarantee], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        compose(*parts, same_records=True)


def test_every_theorem_gives_more_away_than_the_exact_losses() -> None:
    releases = [guarantee(Gaussian.from_mu_squared(Fraction(1, 50))) for _ in range(20)]
    found = compared(releases, DELTA)
    exact = found["exact privacy losses"]
    assert exact == compose(*releases).curve.epsilon_at(DELTA)
    kinds = [name.partition(":")[0] for name in found]
    assert kinds[:3] == ["exact privacy losses", "Rényi", "zCDP"]
    assert kinds[-1] == "basic composition"
    assert all(exact.lower <= bound.upper < math.inf for bound in found.values())


def test_theorems_are_compared_on_curves_alone() -> None:
    curves = [Gaussian(sigma=4), Gaussian(sigma=6), Gaussian(sigma=9)]
    assert compared(curves, DELTA) == compared([guarantee(curve) for curve in curves], DELTA)


def test_points_share_half_of_delta() -> None:
    """Basic composition gives the sum of each release's own epsilon at its share, exactly here."""
    curves = [Gaussian(sigma=4), Gaussian(sigma=6), Gaussian(sigma=9)]
    found = compared([guarantee(curve) for curve in curves], DELTA)
    (basic,) = (bound for name, bound in found.items() if name.startswith("basic"))
    shares = [Fraction(curve.epsilon_at(DELTA / 6).upper) for curve in curves]
    point = ApproxDP(epsilon=sum(shares), delta=DELTA / 2)
    assert basic == point.epsilon_at(DELTA)


def test_every_theorem_on_randomized_response() -> None:
    """All of them apply, and Rényi's divergences are the exact ones of three outcomes."""
    curve = RandomizedResponse(keep=Fraction(3, 8), other=Fraction(1, 4), positions=2)
    found = compared([guarantee(curve)] * 30, DELTA)
    exact = found["exact privacy losses"].upper
    (renyi,) = (bound for name, bound in found.items() if name.startswith("Rényi"))
    assert exact < renyi.upper < 1.2 * exact
    assert len(found) == 7


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 100)])
@pytest.mark.parametrize(
    "pair",
    [
        (
            ("9/10", "1/10"),
            ("1/2", "1/2"),
        ),  # in one order at most ln 1.8 is lost, in the other ln 5
        (("1/2", "1/2", "0"), ("1/3", "1/3", "1/3")),
        (("1/2", "1/2"), ("1/2", "1/2")),
    ],
)
def test_every_theorem_covers_both_orders_of_a_pair(
    pair: tuple[tuple[str, ...], tuple[str, ...]], delta: Fraction, turned: bool
) -> None:
    p, q = reversed(pair) if turned else pair
    found = compared([guarantee(DiscretePair(p=p, q=q))] * 5, delta)
    exact = found["exact privacy losses"]
    assert all(bound.upper >= exact.lower for bound in found.values())
    assert (len(found) == 1) is (exact.upper == math.inf)


def test_releases_on_one_draw_count_as_one_for_every_theorem() -> None:
    """Their guarantees taken for independent would give less than the truth."""
    found = compared([guarantee(ON_AVERAGE, "matrix")] * 10, DELTA, same_records=True)
    exact = found["exact privacy losses"].lower
    assert all(bound.upper >= exact for bound in found.values())
    assert exact == pytest.approx(22.83, abs=0.005)


class Noisy:
    """A mechanism that claims a curve and says no more."""

    adjacency = ONE

    def privacy(self) -> PrivacyCurve:
        return Gaussian(sigma=4)


def test_curves_that_say_whom_they_protect_compose_with_guarantees() -> None:
    point = ApproxDP(epsilon=1, delta=DELTA, adjacency=ONE)
    total = compose(guarantee(Gaussian(sigma=4)), point, Noisy())
    same = 2 * Gaussian(sigma=4) + ApproxDP(epsilon=1, delta=DELTA)
    assert total.curve.epsilon_at(2 * DELTA) == same.epsilon_at(2 * DELTA)
    assert [part.theorem for part in total.parts][1:] == [
        f"stated, not derived: {curve}" for curve in (point, Gaussian(sigma=4))
    ]
    assert len(total.assumptions) == 2


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Gaussian(sigma=4), r"^release=Gaussian\(sigma=4.*Say whom it protects"),
        (ApproxDP(epsilon=1, adjacency=Record()), r"^adjacency=.* the same for all releases"),
        ((1, 1e-6), r"^release=\(1, 1e-06\) must be .*A published .epsilon, delta. is"),
        (ZCDP(rho=1), r"^release=ZCDP.*its own class adds bounds up, and groups are of a sum"),
        (3, r"^release=3 must be a curve, a guarantee"),
    ],
)
def test_what_does_not_compose_is_refused_in_words(other: object, said: str) -> None:
    for order in ((guarantee(Gaussian(sigma=4)), other), (other, guarantee(Gaussian(sigma=4)))):
        with pytest.raises(ParameterError, match=said):
            compose(*order)
