"""Shuffled answers: the true laws of all data of a few users, and the tokens' laws, enumerated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night

HALF = Fraction(1, 2)
Law = Mapping[tuple[int, ...], Fraction]
Row = Sequence[Fraction]


def shuffled_law(rows: Sequence[Row]) -> Law:
    """Of how often each output was given, by users who answer by these laws."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        more: Counter[tuple[int, ...]] = Counter()
        for counts, mass in law.items():
            for output, share in enumerate(row):
                after = tuple(count + (place == output) for place, count in enumerate(counts))
                more[after] += mass * share  # type: ignore[assignment]
        law = dict(more)  # type: ignore[arg-type]
    return law


def divergence(p: Law, q: Law, ratio: Fraction) -> Fraction:
    zero = Fraction(0)
    return sum((max(p[key] - ratio * q.get(key, zero), zero) for key in p), zero)


def token_laws(users: int, e: Fraction, rho: Fraction) -> tuple[Law, Law]:
    """Of the numbers of both tokens, from every way in which all users may draw them."""
    laws: list[Law] = []
    for last in ((1 / (1 + e), e / (1 + e)), (e / (1 + e), 1 / (1 + e))):
        rows = [(*last, Fraction(0)), *[(rho / 2, rho / 2, 1 - rho)] * (users - 1)]
        laws.append(shuffled_law(rows))
    return laws[0], laws[1]


def above(epsilon: Fraction) -> Fraction:
    """A rational that is surely more than e^ε, by very little."""
    return Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))


def worst(rows: Sequence[Row], users: int, ratio: Fraction) -> Fraction:
    """The largest divergence over the data of all users, and both values of the one who changes."""
    return max(
        divergence(shuffled_law([one, *others]), shuffled_law([other, *others]), ratio)
        for one, other in permutations(rows, 2)
        for others in product(rows, repeat=users - 1)
    )


def response(values: int, keep: Fraction) -> list[Row]:
    rest = (1 - keep) / (values - 1)
    return [[keep if out == true else rest for out in range(values)] for true in range(values)]


@pytest.mark.parametrize(("values", "users"), [(2, 2), (2, 5), (3, 3)])
def test_shuffled_responses_are_never_told_apart_better(values: int, users: int) -> None:
    keep = Fraction(3, 5)
    curve = dpv.RandomizedResponse.of_values(values, keep=keep).shuffled(users=users)
    for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(3, 8)):
        truth = worst(response(values, keep), users, above(epsilon))
        assert 0 < truth <= curve.delta_at(epsilon).upper


def test_of_one_or_two_who_answer_yes_or_no_it_is_next_to_the_truth() -> None:
    """Others' honest answers are told apart from tokens, so that a bound it stays: by a little."""
    one = dpv.RandomizedResponse(keep=Fraction(3, 4))
    assert one.shuffled(users=1).delta_at(HALF) == one.delta_at(HALF)
    truth = worst(response(2, Fraction(3, 4)), 2, Fraction(1))
    assert truth <= one.shuffled(users=2).delta_at(0).upper <= truth * Fraction(3, 2)


randomizers = st.lists(
    st.lists(st.integers(1, 6), min_size=3, max_size=3).map(
        lambda parts: [Fraction(part, sum(parts)) for part in parts]
    ),
    min_size=3,
    max_size=3,
    unique_by=tuple,
)


@pytest.mark.parametrize("examples", day_and_night(5, 100))
def test_no_randomizer_is_told_apart_better(examples: int) -> None:
    """By any three laws of three outputs, of whatever ratio, and three users' data."""

    @settings(max_examples=examples, deadline=None)
    @given(randomizers, st.fractions(0, 1, max_denominator=20))
    def check(rows: list[list[Fraction]], share: Fraction) -> None:
        sides = (pair for both in permutations(rows, 2) for pair in zip(*both, strict=True))
        odds = max(own / other for own, other in sides)
        curve = dpv.ApproxDP.from_odds(odds).shuffled(users=3)
        epsilon = share * Fraction(math.log(odds))
        assert worst(rows, 3, above(epsilon)) <= curve.delta_at(epsilon).upper * (1 + 1e-15)

    check()


@pytest.mark.parametrize("kind", ["any randomizer", "randomized response"])
@pytest.mark.parametrize("users", [2, 3, 6])
def test_the_bound_is_that_of_the_tokens(kind: str, users: int) -> None:
    e, odds = Fraction(1, 3), 3
    if kind == "any randomizer":
        curve, rho = dpv.ApproxDP.from_odds(odds).shuffled(users=users), e
    else:
        keep = Fraction(odds, odds + 1)
        curve, rho = dpv.RandomizedResponse(keep=keep).shuffled(users=users), 2 * e / (1 + e)
    p, q = token_laws(users, e, rho)
    for epsilon in (Fraction(0), Fraction(1, 3), HALF, Fraction(1)):
        ratio = Fraction(math.exp(epsilon))
        exact = float(divergence(p, q, ratio))
        assert exact == pytest.approx(float(divergence(q, p, ratio)), rel=1e-14)
        found = curve.delta_at(epsilon)
        assert found.width < 1e-13
        assert found.upper == pytest.approx(exact, rel=1e-13)


def test_several_responses_are_any_randomizer() -> None:
    """Those that differ in one of two answers agree in the other, which others give less often."""
    several = dpv.RandomizedResponse(keep=Fraction(3, 4), positions=2)
    known = dpv.ApproxDP(epsilon=several.epsilon_at(0).upper)
    assert several.shuffled(users=9).losses() == known.shuffled(users=9).losses()


@pytest.mark.nightly
def test_two_releases_by_the_same_users_are_a_product() -> None:
    e = Fraction(1, 3)
    both = 2 * dpv.ApproxDP.from_odds(3).shuffled(users=12)
    p, q = token_laws(12, e, e)
    twice = [{(*a, *b): law[a] * law[b] for a in law for b in law} for law in (p, q)]
    exact = float(divergence(twice[0], twice[1], Fraction(math.exp(HALF))))
    found = both.delta_at(HALF)
    assert found.lower <= exact * (1 + 1e-12)
    assert found.upper >= exact * (1 - 1e-12)
    assert found.width < 1e-2


def test_published_bounds() -> None:
    """What the authors' program prints for 100,000 users of ε₀ = 4: between .16754 and .17280."""
    found = dpv.ApproxDP(epsilon=4).shuffled(users=100_000).epsilon_at("1e-6")
    assert 0.1675385583317841 < found.lower <= found.upper < 0.172790550755978
    assert found.width < 1e-13


def test_it_is_never_worse_than_without_a_shuffler() -> None:
    noise = dpv.Laplace(scale=1)
    curve = noise.shuffled(users=2)
    assert curve.delta_at(HALF).upper == noise.delta_at(HALF).upper
    assert curve.delta_at(0).upper < noise.delta_at(0).lower
    assert curve.rates(0.5) == noise.rates(0.5)
    assert curve.epsilon_at(0) == noise.epsilon_at(0)
    for epsilon in (0, 1000, "1e300"):  # nothing to hide, or none to hide among
        alone = dpv.ApproxDP(epsilon=epsilon)
        assert alone.shuffled(users=10**6).delta_at(HALF).upper <= alone.delta_at(HALF).upper


def test_more_users_hide_better() -> None:
    curve = dpv.RandomizedResponse(keep=Fraction(3, 4))
    found = [curve.shuffled(users=10**n).epsilon_at("1e-6") for n in range(5)]
    assert all(more.upper < less.lower for less, more in pairwise(found))
    any_kind = dpv.ApproxDP.from_odds(3).shuffled(users=100)
    assert curve.shuffled(users=100).delta_at(HALF).upper < any_kind.delta_at(HALF).lower


def test_tiny_deltas_and_many_users_keep_their_digits() -> None:
    curve = dpv.ApproxDP(epsilon=1).shuffled(users=10_000)
    epsilon = curve.epsilon_at("1e-100")
    assert epsilon.width < 1e-13
    assert curve.delta_at(epsilon.upper).upper == pytest.approx(1e-100, rel=1e-11)


def test_rates_under_less_noise() -> None:
    """A weaker randomized response behind the tokens, for the same sets of outputs."""
    curve = dpv.RandomizedResponse(keep=Fraction(3, 4)).shuffled(users=50)
    own, other = curve.rates(0.25)
    weak_own, weak_other = curve.rates(0.25, noise=0.5)
    assert weak_own - weak_other > own - other
    assert curve.rates(2.0) == (0.0, 0.0)
    assert curve.rates(-2.0) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda one: one.shuffled(users=0), r"^users=0 must be at least 1"),
        (lambda one: one.shuffled(users=2.5), r"^users=2.5 must be a whole number"),
        (lambda one: one.shuffled(users=math.inf), r"^users="),
        (lambda one: one.shuffled(users=2**30 + 1), r"^users=1073741825 must be at most"),
        (lambda one: 2 * one.shuffled(users=10**5), r"^users=100000 .* added up\. Compose an"),
        (lambda _: dpv.Gaussian(sigma=1).shuffled(users=9), r"^curve=Gaussian.* finite epsilon"),
        (lambda _: dpv.ApproxDP(epsilon=1, delta="1e-9").shuffled(users=9), r"^curve=ApproxDP"),
        (
            lambda _: dpv.ApproxDP(epsilon=1, adjacency=dpv.AddRemove()).shuffled(users=9),
            r"^adjacency=one row, added or removed must be .* replaced\. A user's answer",
        ),
        (
            lambda _: dpv.ApproxDP(epsilon=1, adjacency=dpv.Attribute(1)).shuffled(users=9),
            r"^adjacency=",
        ),
    ],
)
def test_what_is_refused(make: Callable[[dpv.ApproxDP], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make(dpv.ApproxDP(epsilon=1))


def test_whom_it_protects() -> None:
    curve = dpv.ApproxDP(epsilon=1, adjacency=dpv.Record()).shuffled(users=9)
    assert (curve.adjacency, str(curve)[:25]) == (dpv.Record(), "Shuffled(answer=ApproxDP(")
    assert dpv.ApproxDP(epsilon=1).shuffled(users=9).unit == "one row, replaced by any other"
