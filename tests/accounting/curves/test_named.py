"""Noise and selections that deployments name, against enumeration; each with a wrong twin."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, permutations, product
from typing import Any, cast

import mpmath
import numpy as np
import pytest
from attrs import evolve

import dpverify as dpv
from dpverify.accounting.calibrate import DISTRIBUTIONS
from dpverify.accounting.named_noises import NAMED
from dpverify.accounting.targets import Target
from dpverify.data.adjacency import Group
from dpverify.enclosure import Enclosure, squared
from dpverify.errors import NumericalError, ParameterError
from tests.helpers.profiles import crossed, day_and_night

mpf = mpmath.mpf
Law = Sequence[mpmath.mpf]


def divergence(p: Law, q: Law, epsilon: float) -> mpmath.mpf:
    """The larger hockey-stick divergence of both orders."""
    factor = mpmath.exp(epsilon)
    return max(
        sum((max(x - factor * y, mpf(0)) for x, y in zip(one, other, strict=True)), mpf(0))
        for one, other in ((p, q), (q, p))
    )


def holds(found: Enclosure, exact: mpmath.mpf, slack: float = 1e-13) -> bool:
    return found.lower * (1 - slack) <= exact <= found.upper * (1 + slack) and found.width < 1e-9


# Discrete Laplace


def geometric(scale: float, reach: int) -> list[mpmath.mpf]:
    q = mpmath.exp(-1 / mpf(scale))
    return [(1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)]


@pytest.mark.parametrize(
    ("scale", "size"), day_and_night((2, 3), (1.5, 1), (3, 4), (1, 5), (0.5, 2))
)
def test_discrete_laplace_by_its_sum(scale: float, size: int) -> None:
    curve = dpv.curves.DiscreteLaplace(scale=scale, sensitivity=size)
    with mpmath.workdps(30):
        law = geometric(scale, int(40 * scale) + size)
        padding = [mpf(0)] * size
        for epsilon in (0, 0.25, 1.0):
            exact = divergence(law + padding, padding + law, epsilon)
            found = curve.delta_at(epsilon)
            if epsilon * scale >= size:  # no loss is larger; the sum is cut off at about e⁻⁴⁰
                assert exact < 1e-17
                exact = mpf(0)
            assert holds(found, exact)
            if exact:
                assert curve.epsilon_at(Fraction(found.upper)).upper == pytest.approx(epsilon)
                # The wrong twin: the curve of noise with twice the scale.
                twin = dpv.curves.DiscreteLaplace(scale=2 * scale, sensitivity=size)
                assert twin.delta_at(epsilon).upper < exact
    assert curve.epsilon_at(0) == Enclosure.of_exact(size / Fraction(scale))


@pytest.mark.parametrize("size", day_and_night(1, 3))
def test_two_counts_by_convolution(size: int) -> None:
    """Losses of the pair, added by hand; and with a pure answer beside."""
    curve = dpv.curves.DiscreteLaplace(scale=2, sensitivity=size)
    with mpmath.workdps(30):
        q = mpmath.exp(mpf(-1) / 2)
        single = {mpf(size) / 2: 1 / (1 + q), -mpf(size) / 2: q**size / (1 + q)}
        single |= {(mpf(size) - 2 * o) / 2: (1 - q) / (1 + q) * q**o for o in range(1, size)}
        pairs = list(product(single.items(), repeat=2))
        exact = sum(max(p * r * (1 - mpmath.exp(0.3 - x - y)), 0) for (x, p), (y, r) in pairs)
    assert holds((2 * curve).delta_at(0.3), exact, 1e-12)


# Staircase


def stairs(step: mpmath.mpf, gamma: mpmath.mpf) -> Callable[[mpmath.mpf], mpmath.mpf]:
    fall = mpmath.exp(-step)
    height = (1 - fall) / (2 * (gamma + fall * (1 - gamma)))

    def density(x: mpmath.mpf) -> mpmath.mpf:
        whole = mpmath.floor(abs(x))
        return height * fall**whole * (1 if abs(x) - whole < gamma else fall)

    return density


@pytest.mark.parametrize("gamma", ["0.25", "0.5", "0.75", "0", "1"])
def test_staircase_by_its_pieces(gamma: str) -> None:
    curve = dpv.curves.Staircase(epsilon=2, gamma=gamma)
    density = stairs(mpf(2), mpf(gamma))

    def moved(by: mpmath.mpf, epsilon: float) -> mpmath.mpf:
        corners = {s * (k + o) + m for k in range(22) for o in (0, mpf(gamma)) for s in (1, -1)
                   for m in (0, by)}  # fmt: skip
        points = sorted(corners)
        middles = [((a + b) / 2, b - a) for a, b in pairwise(points)]
        law, other = ([width * density(x - m) for x, width in middles] for m in (0, by))
        return divergence(law, other, epsilon)

    for epsilon in (0, 0.5, 1.5):
        found = curve.delta_at(epsilon)
        assert holds(found, moved(mpf(1), epsilon), 1e-12)
        assert moved(mpf("0.6"), epsilon) <= found.upper
    assert curve.epsilon_at(0).upper == 2
    # The wrong twin, a step that is a quarter shorter than the sensitivity, is above the curve.
    assert moved(mpf("1.25"), 0.5) > curve.delta_at(0.5).upper


# Exponential mechanism


def chosen(scores: Sequence[mpmath.mpf], scale: float) -> Law:
    weights = [mpmath.exp(score / mpf(scale)) for score in scores]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("monotonic", [0, 1])
def test_no_choice_exceeds_the_exponential_mechanisms_curve(monotonic: int) -> None:
    curve = dpv.curves.exponential_mechanism(scale=2, monotonic=monotonic)
    source = random.Random(3)
    for _ in range(60):
        scores = [mpf(source.uniform(0, 6)) for _ in range(4)]
        moves = [mpf(source.choice((0, 1) if monotonic else (-1, 0, 1))) for _ in scores]
        law, other = (chosen([s + f * m for s, m in zip(scores, moves, strict=True)], 2)
                      for f in (0, 1))  # fmt: skip
        for epsilon in (0, 0.2, 0.45):
            assert divergence(law, other, epsilon) <= curve.delta_at(epsilon).upper


@pytest.mark.parametrize("epsilon", [0, 0.3, 0.9])
def test_the_exponential_mechanism_attains_its_curve(epsilon: float) -> None:
    """Two outputs whose scores move apart, at the odds at which the larger loss is worst."""
    curve = dpv.curves.exponential_mechanism(scale=2)
    with mpmath.workdps(30):
        likely = (mpmath.e - mpmath.exp(mpf(1 + epsilon) / 2)) / (mpmath.e - 1)
        start = 2 * mpmath.log(likely / (1 - likely))
        law, other = chosen([start, mpf(0)], 2), chosen([start - 1, mpf(1)], 2)
        exact = divergence(law, other, epsilon)
        assert holds(curve.delta_at(epsilon), exact, 1e-12)
        # The wrong twin forgets that the sum of all weights moves too.
        assert dpv.curves.exponential_mechanism(scale=4).delta_at(epsilon).upper < exact


@pytest.mark.nightly
@pytest.mark.parametrize(("step", "epsilon"), [("1", "0.5"), ("0.1", "0.05"), ("3", "4")])
def test_two_choices_by_quadrature(step: str, epsilon: str) -> None:
    with mpmath.workdps(25):
        reach, eps = mpf(step), mpf(epsilon)

        def density(loss: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(loss / 2) / (4 * mpmath.sinh(reach / 2))

        def inner(first: mpmath.mpf) -> mpmath.mpf:
            low = max(eps - first, -reach)

            def both(second: mpmath.mpf) -> mpmath.mpf:
                return density(second) * (1 - mpmath.exp(eps - first - second))

            return density(first) * mpmath.quad(both, [low, reach])

        exact = mpmath.quad(inner, [eps - reach, max(eps - reach, 0), reach])
    curve = 2 * dpv.curves.BoundedRange(epsilon=step)
    found = curve.delta_at(epsilon)
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-5
    # Two of one kind with the same t: what the bound has to hold for.
    for share in (0.25, 0.5, 0.75):
        t = float(step) * share
        up = (math.exp(float(step)) - math.exp(t)) / math.expm1(float(step))
        worst = sum(
            max(0.0, math.comb(2, k) * up**k * (1 - up) ** (2 - k)
                * (1 - math.exp(float(epsilon) - 2 * t + (2 - k) * float(step))))
            for k in range(3)
        )  # fmt: skip
        assert worst <= found.upper


@pytest.mark.parametrize("times", day_and_night(100, 5))
def test_many_choices_are_bounded_more_tightly_than_by_pure_privacy(times: int) -> None:
    choice, pure = dpv.curves.BoundedRange(epsilon="0.1"), dpv.ApproxDP(epsilon="0.1")
    ours, theirs = (times * choice).epsilon_at(1e-6), (times * pure).epsilon_at(1e-6)
    assert 0 < ours.lower <= ours.upper < 0.86 * theirs.lower


# Noisy maximum


def laplace_wins(scores: Sequence[float], scale: float) -> Law:
    """How often each score is the largest under Laplace noise, by quadrature."""

    def below(x: mpmath.mpf) -> mpmath.mpf:
        tail = mpmath.exp(-abs(x)) / 2
        return tail if x < 0 else 1 - tail

    def wins(index: int) -> mpmath.mpf:
        others = [score for place, score in enumerate(scores) if place != index]

        def density(x: mpmath.mpf) -> mpmath.mpf:
            value = mpmath.exp(-abs(x - scores[index]) / scale) / (2 * scale)
            return value * mpmath.fprod(below((x - score) / scale) for score in others)

        return mpmath.quad(density, [-40, *sorted(map(mpf, scores)), 60])

    return [wins(index) for index in range(len(scores))]


@pytest.mark.nightly
def test_the_noisy_maximum_keeps_to_its_claim() -> None:
    epsilon = 1.0
    assert dpv.curves.noisy_max(scale=2).epsilon_at(0).upper == epsilon
    worst = broken = mpf(0)
    for scores, moves in (
        ((3, 2, 2), (-1, 1, 1)),
        ((8, 0, 0), (-1, 1, 1)),
        ((0, 6, 6), (1, -1, -1)),
    ):
        other = [score + move for score, move in zip(scores, moves, strict=True)]
        worst = max(worst, divergence(laplace_wins(scores, 2), laplace_wins(other, 2), epsilon))
        broken = max(broken, divergence(laplace_wins(scores, 1), laplace_wins(other, 1), epsilon))
    assert worst < 1e-9  # the quadrature's error
    assert broken > 1e-4  # the wrong twin, with noise for scores that move one way


@cache
def flipped(scores: tuple[int, ...], *, shuffled: bool = True) -> list[Fraction]:
    """Permute-and-flip with coins 2^(score − best); the wrong twin doesn't shuffle."""
    best, count = max(scores), len(scores)
    coins = [Fraction(1, 2 ** (best - score)) for score in scores]
    orders = list(permutations(range(count))) if shuffled else [tuple(range(count))]
    law = [Fraction(0)] * count
    for order in orders:
        left = Fraction(1, len(orders))
        for index in order:
            law[index] += left * coins[index]
            left *= 1 - coins[index]
    return law


def test_permute_and_flip_keeps_to_its_claim() -> None:
    """Scores fall by half for each unit short of the best: scale 1/ln 2, and so ε₀ = 2·ln 2."""
    scale = Fraction(1 / math.log(2)).limit_denominator(10**6)
    claim = dpv.curves.permute_and_flip(scale=scale).epsilon_at(0)
    assert claim.upper == pytest.approx(math.log(4))
    worst, broken = Fraction(0), Fraction(0)
    for scores in product(range(4), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            other = tuple(score + move for score, move in zip(scores, moves, strict=True))
            pairs = list(zip(flipped(scores), flipped(other), strict=True))
            worst = max(worst, *(p - 4 * q for p, q in pairs))
            twins = (flipped(each, shuffled=False) for each in (scores, other))
            first = zip(*twins, strict=True)
            broken = max(broken, *(p - 4 * q for p, q in first))
    assert worst <= 0 < broken


def above(scores: Sequence[float], first: float, each: float, *, noisy: bool = True) -> Law:
    """Sparse vector that ends at the first score above 0: where that is, or nowhere."""

    def tail(x: mpmath.mpf, scale: float) -> mpmath.mpf:
        if not noisy:
            return mpf(int(x <= 0))
        return mpmath.exp(-x / scale) / 2 if x > 0 else 1 - mpmath.exp(x / scale) / 2

    def at(place: int) -> mpmath.mpf:
        def density(z: mpmath.mpf) -> mpmath.mpf:
            value = mpmath.exp(-abs(z) / first) / (2 * first)
            for score in scores[:place]:
                value *= 1 - tail(z - score, each)
            return value * (tail(z - scores[place], each) if place < len(scores) else 1)

        return mpmath.quad(density, sorted({-40, 0, 40, *map(float, scores)}))

    return [at(place) for place in range(len(scores) + 1)]


@pytest.mark.nightly
def test_the_sparse_vector_keeps_to_its_claim() -> None:
    epsilon = dpv.curves.sparse_vector(scale=4, threshold_scale=2).epsilon_at(0).upper
    assert epsilon == 1.0
    pairs = [((1, 1, 0), (0, 0, 1)), ((3, 3, -3), (2, 2, -2)), ((0, 0, 0), (-1, -1, 1))]
    worst = max(divergence(above(p, 2, 4), above(q, 2, 4), epsilon) for p, q in pairs)
    broken = max(
        divergence(above(p, 2, 4, noisy=False), above(q, 2, 4, noisy=False), epsilon)
        for p, q in pairs
    )
    assert worst < 1e-9
    assert broken > 1e-3  # the wrong twin: scores without noise


# Truncated Laplace


@pytest.mark.parametrize(
    ("bound", "epsilon"),
    day_and_night((5, 0.3), (5, 0), (5, 1.2), (0.8, 0.5), (0.6, 0.1), (3, 0.99)),
)
def test_truncated_laplace_by_quadrature(bound: float, epsilon: float) -> None:
    curve = dpv.curves.TruncatedLaplace(scale=1, bound=bound)
    with mpmath.workdps(25):
        end = mpf(bound)
        size = 2 * (1 - mpmath.exp(-end))

        def inside(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-abs(x)) / size if abs(x) <= end else mpf(0)

        def gain(x: mpmath.mpf) -> mpmath.mpf:
            return max(inside(x) - mpmath.exp(epsilon) * inside(x - 1), mpf(0))

        points = sorted({-end, end, 1 - end, 1 + end, mpf(0), mpf(1), (1 - mpf(epsilon)) / 2})
        exact = mpmath.quad(gain, points)
    found = curve.delta_at(epsilon)
    assert holds(found, exact, 1e-12)
    own, other = curve.rates(epsilon)
    assert own - math.exp(epsilon) * other == pytest.approx(found.upper, abs=1e-12)
    if epsilon < min(1, 2 * bound - 1):
        again = curve.epsilon_at(Fraction(found.upper))
        assert again.upper == pytest.approx(epsilon, abs=1e-9)
    assert curve.epsilon_at(Fraction(curve.infinity_mass.lower) / 2).lower == math.inf
    # The wrong twin, Laplace noise that is cut off but counted as if it weren't.
    assert dpv.Laplace(scale=1).delta_at(epsilon).upper < exact


def test_the_published_bound_of_truncated_laplace_is_the_least() -> None:
    """Geng and others 2020, theorem 1."""
    noise = dpv.calibrate(dpv.curves.TruncatedLaplace, epsilon=1, delta="1e-6", scale=1)
    assert float(noise.bound) == pytest.approx(math.log1p(math.expm1(1) / 2e-6), rel=1e-12)
    assert noise.delta_at(1).upper <= 1e-6
    with pytest.raises(ParameterError, match=r"above 0\.2212, the delta of this noise where"):
        dpv.calibrate(dpv.curves.TruncatedLaplace, epsilon="0.5", delta="1e-6", scale=1)


@pytest.mark.parametrize("epsilon", ["0", "0.5", "0.999", "1", "3"])
@pytest.mark.parametrize("delta", ["0.4", "0.5", "0.6", "0.999"])
def test_the_least_bound_of_truncated_laplace_at_large_deltas(epsilon: str, delta: str) -> None:
    noise = dpv.calibrate(dpv.curves.TruncatedLaplace, epsilon=epsilon, delta=delta, scale=1)
    assert noise.delta_at(epsilon).lower <= Fraction(delta)
    less = evolve(noise, bound=noise.bound - (noise.bound - Fraction(1, 2)) / 10**9)
    assert less.delta_at(epsilon).lower > Fraction(delta)


# Partition selection


def shown(count: int | None, law: Sequence[float], threshold: int) -> list[float]:
    """Laws of what one group shows: nothing, or its noisy count; None if it has nobody."""
    reach = len(law) // 2
    values = [0.0] * (2 * reach + 62)
    for place, probability in enumerate(law if count is not None else []):
        noisy = (count or 0) + place - reach
        values[0 if noisy < threshold else noisy + reach + 1] += probability
    if count is None:
        values[0] = 1.0
    return values


@pytest.mark.parametrize(
    ("threshold", "epsilon"), day_and_night((4, 0.5), (4, 0), (2, 1), (1, 0.2))
)
def test_thresholded_counts_by_enumeration(threshold: int, epsilon: float) -> None:
    """One person in up to two groups, which have nobody else, or so many that they are shown."""
    noise = dpv.curves.DiscreteLaplace(scale="0.8")
    curve = dpv.curves.PartitionSelection(noise=noise, threshold=threshold, groups=2)
    law = [float(x) for x in geometric(0.8, 22)]
    new = shown(1, law, threshold), shown(None, law, threshold)
    many = shown(30, law, threshold), shown(29, law, threshold)

    def both(one: Sequence[list[float]], other: Sequence[list[float]]) -> float:
        laws = [np.outer(one[side], other[side]).ravel() for side in (0, 1)]
        factor = math.exp(epsilon)
        return max(float(np.maximum(p - factor * q, 0).sum()) for p, q in (laws, laws[::-1]))

    exact = max(both(new, new), both(new, many), both(many, many))
    found = curve.delta_at(epsilon)
    assert found.upper == pytest.approx(exact, rel=1e-8)
    # The wrong twin counts the noise alone, as if all groups were known beforehand.
    hidden = new[0][0] ** 2
    assert curve.delta_at(5).upper == pytest.approx(1 - hidden, rel=1e-8)
    assert (2 * noise).delta_at(5).upper == 0


def test_a_threshold_far_below_0_shows_all_but_never_all_for_certain() -> None:
    for curve in (
        dpv.curves.gaussian_threshold(sigma="0.2", threshold=-500, groups=2),
        dpv.curves.laplace_threshold(scale="0.1", threshold=-500),
    ):
        found = curve.delta_at(1)
        assert 1 - 1e-15 <= found.lower < found.upper == 1
        assert curve.epsilon_at("0.5").lower == math.inf
        assert curve.risk().tpr_at("0.01").upper == 1
    with pytest.raises(ParameterError, match="nearer to the sensitivity"):
        dpv.curves.gaussian_threshold(sigma="0.2", threshold=-(10**9))


@pytest.mark.parametrize("part", [0, -1e-17, 1e-17, 1e-15])
def test_a_delta_next_to_that_of_an_infinite_epsilon(part: float) -> None:
    """One person's group alone is shown; what is next to that may have no ε, and is none below."""
    curve = dpv.curves.laplace_threshold(scale="0.25", threshold="6.2")
    with mpmath.workdps(50):
        shown = mpmath.exp(-(mpf("6.2") - 1) * 4) / 2
        delta = Fraction(mpmath.nstr(shown, 40)) * (1 + Fraction(part))
    found = curve.epsilon_at(delta)
    assert found.lower <= 4 <= found.upper or (part < 0 and found.upper == math.inf)


@pytest.mark.parametrize(
    "curve",
    [
        dpv.DiscreteGaussian(sigma="0.23"),
        dpv.RandomizedResponse(keep=1 - Fraction(1, 10**12), positions=7),
        dpv.curves.PartitionSelection(
            noise=dpv.curves.DiscreteLaplace(scale=Fraction(39, 7), sensitivity=2), threshold=15
        ),
    ],
)
@pytest.mark.parametrize("below", ["1e-12", "1e-16", "1e-20", "1e-45"])
def test_a_delta_next_to_the_largest(curve: dpv.PrivacyCurve, below: str) -> None:
    """There ε is next to 0, and both ends of δ at it are one double."""
    most = Fraction(curve.delta_at(0).lower)
    delta = most * (1 - Fraction(below))
    found = curve.epsilon_at(delta)
    assert 0 <= found.lower <= found.upper < math.inf
    assert curve.delta_at(found.upper).lower <= delta
    assert found.upper == 0 or curve.delta_at(found.lower).upper >= delta


def test_a_delta_next_to_1() -> None:
    curve = dpv.RandomizedResponse(keep=1 - Fraction(1, 10**12), positions=7)
    found = curve.epsilon_at(1 - Fraction(1, 10**40))

    def missing(epsilon: float) -> mpmath.mpf:  # 1 - δ
        keep, other = 1 - mpf(10) ** -12, mpf(10) ** -12
        law = [math.comb(7, j) * keep**j * other ** (7 - j) for j in range(8)]
        return mpmath.fsum(min(p, mpmath.exp(epsilon) * law[7 - j]) for j, p in enumerate(law))

    with mpmath.workdps(150):
        assert missing(found.lower) <= mpf(10) ** -40 <= missing(found.upper)


def test_an_epsilon_next_to_0_is_found() -> None:
    curve = dpv.curves.PartitionSelection(
        noise=dpv.curves.DiscreteLaplace(scale=30), threshold=800, groups=2
    )
    start = curve.delta_at(0)
    found = curve.epsilon_at(start.lower)
    assert found.lower == 0
    assert 0 < found.upper <= 1e-13
    assert curve.delta_at(found.upper).upper <= start.lower


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-3"), ("0.2", "0.05")])
def test_the_best_selection_is_what_its_point_says(epsilon: str, delta: str) -> None:
    """The recursion of Desfontaines and others: all steps are (ε, δ)-close, the first exactly."""
    factor, share = math.exp(float(epsilon)), float(delta)
    rates = [0.0]
    while rates[-1] < 1:
        last = rates[-1]
        rates.append(min(factor * last + share, 1 - (1 - last - share) / factor, 1.0))
    claim = dpv.ApproxDP(epsilon=epsilon, delta=delta).delta_at(epsilon).upper
    worst = max(
        max(b - factor * a, a - factor * b, (1 - a) - factor * (1 - b), (1 - b) - factor * (1 - a))
        for a, b in pairwise(rates)
    )
    assert worst == pytest.approx(claim, rel=1e-9)


# The matrix mechanism


def test_norms_of_a_strategy_are_exact() -> None:
    prefix = [["1", "0", "0"], ["1", "0.5", "0"], ["1", "0.5", "0.1"]]
    assert squared(dpv.curves.matrix_mechanism(prefix, sigma=1).sensitivity) == 3
    far = 1 + 1 + Fraction(9, 10) ** 2
    small = dpv.curves.matrix_mechanism([["0.5"]], sigma=1)
    assert squared(small.sensitivity) == Fraction(1, 4)
    replaced = dpv.curves.matrix_mechanism(prefix, sigma=1, replaced=True)
    assert squared(replaced.sensitivity) == far
    assert (small.adjacency, replaced.adjacency) == (dpv.AddRemove(), dpv.Replace())
    both = dpv.curves.matrix_mechanism(prefix, sigma=1, together=[[0, 2], [1]])
    assert squared(both.sensitivity) == 3 + Fraction(1, 100) + 2 * Fraction(1, 10)
    # The wrong twin takes rows for columns.
    rows = max(sum(Fraction(x) ** 2 for x in row) for row in prefix)
    assert squared(dpv.curves.matrix_mechanism(prefix, sigma=1).sensitivity) > rows


def test_laplace_noise_on_a_strategy_covers_every_column() -> None:
    source = np.random.default_rng(5)
    for _ in range(5):
        strategy = source.integers(-3, 4, size=(4, 3)) / 4
        strategy[0] += 1
        curve = dpv.curves.matrix_mechanism(strategy, scale=2)
        for column in strategy.T:
            alone = dpv.Laplace.of_row([x for x in column.tolist() if x], scale=2)
            for epsilon in (0, 0.25, 0.5):
                assert alone.delta_at(epsilon).lower <= curve.delta_at(epsilon).upper
    tight = dpv.curves.matrix_mechanism([[1, 2], [1, 2]], scale=3)
    assert tight.delta_at(0.2) == dpv.Laplace.of_row([2, 2], scale=3).delta_at(0.2)


# What they share

TARGETS: dict[str, dict[str, Any]] = {
    "discrete-laplace": {"sensitivity": 2},
    "staircase": {"gamma": "0.3"},
    "truncated-laplace": {"scale": 2},
    "exponential": {},
    "noisy-max": {"monotonic": 1},
    "permute-and-flip": {"sensitivity": 3},
    "sparse-vector": {"threshold_scale": 4, "cutoff": 2},
    "laplace-threshold": {"scale": 3},
    "gaussian-threshold": {"sigma": 6, "groups": 2},
}


@pytest.mark.parametrize("name", NAMED)
def test_calibrated_noise_is_proven_and_no_more_than_needed(name: str) -> None:
    noise, query = DISTRIBUTIONS[name], TARGETS[name]
    curve = dpv.calibrate(noise.kind, epsilon=1, delta="1e-3", **query)
    found = curve.delta_at(1)
    assert found.upper <= 1e-3
    assert found.upper >= 1e-3 * (1 - 1e-6)


@pytest.mark.parametrize(
    "name",
    day_and_night(
        "permute-and-flip", "discrete-laplace", "staircase", "exponential", "sparse-vector"
    ),
)
def test_ten_releases_reach_a_target_together(name: str) -> None:
    query = {**TARGETS[name], "threshold_scale": 40} if name == "sparse-vector" else TARGETS[name]
    curve = dpv.calibrate(DISTRIBUTIONS[name].kind, epsilon=1, delta="1e-3", times=10, **query)
    assert 1e-3 * (1 - 1e-6) <= (10 * curve).delta_at(1).upper <= 1e-3


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (lambda: dpv.curves.DiscreteLaplace(scale=0), "scale=0"),
        (lambda: dpv.curves.DiscreteLaplace(scale=1, sensitivity=1.5), "sensitivity=1.5"),
        (lambda: dpv.curves.Staircase(epsilon=1, gamma=2), "gamma=2"),
        (lambda: dpv.curves.Staircase(epsilon=0, gamma=1), "epsilon=0"),
        (lambda: dpv.curves.BoundedRange(epsilon=-1), "epsilon=-1"),
        (lambda: dpv.curves.exponential_mechanism(scale=1, monotonic=2), "monotonic=2"),
        (lambda: dpv.curves.sparse_vector(scale=1, threshold_scale=0), "threshold_scale=0"),
        (lambda: dpv.curves.sparse_vector(scale=1, threshold_scale=1, cutoff=0), "cutoff=0"),
        (lambda: dpv.curves.TruncatedLaplace(scale=1, bound="0.5"), "bound=.*half the sensitivity"),
        (
            lambda: dpv.curves.PartitionSelection(noise=cast("Any", 1), threshold=1),
            "noise=",
        ),
        (lambda: dpv.curves.laplace_threshold(scale=1, threshold=3, groups=0), "groups=0"),
        (lambda: dpv.curves.matrix_mechanism([[1, 2], [3]], sigma=1), "strategy="),
        (lambda: dpv.curves.matrix_mechanism([[0]], sigma=1), "not 0 in all"),
        (lambda: dpv.curves.matrix_mechanism([[0]], scale=1), "not 0 in all"),
        (lambda: dpv.curves.matrix_mechanism([[1]]), "one of the two"),
        (lambda: dpv.curves.matrix_mechanism([[1]], sigma=1, together=[[0, 0]]), "together="),
        (lambda: dpv.curves.matrix_mechanism([[1]], sigma=1, together=[[1]]), "together="),
        (lambda: dpv.curves.matrix_mechanism([[1]], sigma=1, together=cast("Any", 5)), "together"),
        (
            lambda: dpv.curves.matrix_mechanism([[1]], sigma=1, together=cast("Any", [5])),
            "together",
        ),
        (lambda: dpv.curves.matrix_mechanism([[1]], scale=1, replaced=True), "of one column"),
        (lambda: dpv.calibrate(dpv.curves.laplace_threshold, epsilon=1), "scale=missing"),
        (
            lambda: dpv.calibrate(dpv.curves.Staircase, gamma=0, epsilon=1, delta="0.8"),
            "delta=0.8 must be below 0.5, which",
        ),
        (
            lambda: dpv.calibrate(dpv.curves.Staircase, gamma=0, epsilon=1, delta="0.8", times=2),
            "delta=0.8 must be below 0.7500, which",
        ),
        (
            lambda: dpv.calibrate(dpv.curves.Staircase, gamma=1, advantage="0.6"),
            "advantage=0.6 must be below 0.5, which",
        ),
        (
            lambda: dpv.calibrate(dpv.curves.Staircase, gamma="0.75", tpr="0.9", fpr="0.1"),
            "tpr=0.9 must be below 0.7667, which",
        ),
        (
            lambda: dpv.calibrate(
                dpv.curves.TruncatedLaplace, epsilon=1, delta="1e-6", scale=1, times=2
            ),
            "times=2 must be 1",
        ),
        (lambda: 2 * dpv.curves.TruncatedLaplace(scale=1, bound=2), "Compose an ApproxDP"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], refused: str) -> None:
    with pytest.raises(ParameterError, match=refused):
        make()


class Names:
    """An adjacency of somebody's own."""

    unit = "one name"

    def relates(self, records: Any, neighbour: Any) -> bool:
        return bool(records == neighbour)


ONE = (dpv.AddRemove(), dpv.AddRemove(user="name"))
SEVERAL = (dpv.AddRemove(k=2), Group(dpv.AddRemove(), 2), dpv.Permutation())
OTHERS = (dpv.AddRemove(k=2), dpv.Replace(), dpv.Record(), dpv.Permutation())


def test_thresholds_are_for_one_who_comes_or_goes() -> None:
    make = dpv.curves.PartitionSelection
    noise = dpv.Laplace(scale=1)
    for adjacency in ONE:
        assert make(noise=noise, threshold=9, adjacency=adjacency).adjacency == adjacency
    for other in OTHERS:
        with pytest.raises(ParameterError, match=r"^adjacency=.* added or removed"):
            make(noise=noise, threshold=9, adjacency=other)
        with pytest.raises(ParameterError, match=r"^adjacency=.* added or removed"):
            make(noise=evolve(noise, adjacency=other), threshold=9)
    unsaid = make(noise=noise, threshold=40)
    assert unsaid.adjacency == dpv.AddRemove()
    assert make(noise=evolve(noise, adjacency=ONE[1]), threshold=9).adjacency == ONE[1]
    # Whoever is replaced moves two counts, and the batch's curve would be that of one.
    assert (2 * noise).delta_at("0.2").lower > unsaid.delta_at("0.2").upper
    with pytest.raises(ParameterError, match=r"^adjacency=.* replaced"):
        unsaid.sampled_without_replacement(size=1, out_of=1)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_matrix_is_for_the_neighbours_that_it_was_said_to_be_for(replaced: bool) -> None:
    make = partial(dpv.curves.matrix_mechanism, [[1, 2]], sigma=1, replaced=replaced)
    replacing = (dpv.Replace(), dpv.Record())
    entries = (*ONE, dpv.Attribute(1), dpv.L1Ball("0.5"), dpv.BitFlip())
    good, wrong = (replacing, entries) if replaced else (entries, replacing)
    for adjacency in (*good, Names()):
        assert make(adjacency=adjacency).adjacency == adjacency
    far = (dpv.Attribute(2), dpv.L1Ball(2), dpv.L2(1), dpv.LInf(1), *SEVERAL)
    for other in (*wrong, *far, dpv.Replace(k=2)):
        with pytest.raises(ParameterError, match=f"^adjacency=.*replaced={replaced} says"):
            make(adjacency=other)


def test_monotonic_scores_are_those_of_one_who_comes_or_goes() -> None:
    """Counts of all data sets of few rows: every pair of neighbours, by the law of each choice."""
    choose = (dpv.curves.exponential_mechanism, dpv.curves.permute_and_flip)
    sets = [rows for n in range(4) for rows in product(range(3), repeat=n)]

    def worst(curve: Any, adjacency: dpv.Adjacency, law: Callable[..., Any]) -> float:
        laws = {rows: law([rows.count(value) for value in range(3)]) for rows in sets}
        found: float = max(
            sum(max(p - q, 0.0) for p, q in zip(laws[one], laws[two], strict=True))
            for one, two in product(sets, repeat=2)
            if adjacency.relates(list(one), list(two))
        )
        return found / float(curve.delta_at(0).upper)

    for make, law in zip(choose, (_exponential, _flipped), strict=True):
        assert worst(make(scale=1, monotonic=1), dpv.AddRemove(), law) <= 1 + 1e-12
        for two_ways in (dpv.Replace(), dpv.AddRemove(k=2)):
            assert worst(make(scale=1, monotonic=1), two_ways, law) > 1  # so it is refused
            assert worst(make(scale=1), two_ways, law) <= 1 + 1e-12


def _exponential(scores: Sequence[int]) -> list[float]:
    weights = [math.exp(score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def _flipped(scores: Sequence[int]) -> list[float]:
    """Of permute-and-flip, by all orders."""
    law = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            taken = math.exp(scores[place] - max(scores))
            law[place] += left * taken
            left *= 1 - taken
    return law


@pytest.mark.parametrize(
    "make",
    [
        dpv.curves.exponential_mechanism,
        dpv.curves.noisy_max,
        dpv.curves.permute_and_flip,
        partial(dpv.curves.sparse_vector, threshold_scale=1),
    ],
)
def test_monotonic_is_refused_where_scores_move_both_ways(make: Callable[..., Any]) -> None:
    for adjacency in (*ONE, Names()):
        assert make(scale=1, monotonic=1, adjacency=adjacency).adjacency == adjacency
    unsaid = make(scale=1, monotonic=1)
    assert (unsaid.adjacency, make(scale=1).adjacency) == (dpv.AddRemove(), None)
    with pytest.raises(ParameterError, match=r"^adjacency=.* replaced"):
        unsaid.sampled_without_replacement(size=1, out_of=1)
    for other in (dpv.Replace(), dpv.Record(), dpv.LInf(1), dpv.Attribute(1), *SEVERAL):
        assert make(scale=1, adjacency=other).adjacency == other
        with pytest.raises(ParameterError, match=r"^adjacency=.* where monotonic=1"):
            make(scale=1, monotonic=1, adjacency=other)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_no_noise_has_is_not_calibrated(name: str) -> None:
    """On the command line nothing but a number was printed: scale 0 for no answer, -2 for -1."""
    noise = DISTRIBUTIONS[name]
    good = dict.fromkeys(noise.query, Fraction(1)) | dict(noise.defaults)
    unlike = {"monotonic": ("2", "1/2", "-1"), "gamma": ("2", "-1"), "values": ("1", "3/2", "-2")}
    wholes = {"cutoff", "groups", "positions"}
    for parameter in noise.query:
        for bad in unlike.get(parameter, ("0", "-1", *(("3/2",) if parameter in wholes else ()))):
            values = good | {parameter: Fraction(bad)}
            for goal in ({"epsilon": 1, "delta": Fraction(1, 10**6)}, {"advantage": "0.9"}):
                with pytest.raises(ParameterError, match=rf"^{parameter}="):
                    noise.least(values, Target(**goal))


def test_rates_where_a_count_is_far_above_the_threshold() -> None:
    """The chance to be hidden is e^(−2e30), of which few bits don't tell the logarithm."""
    shown = dpv.curves.laplace_threshold(scale="0.5", threshold="1/3", sensitivity="1e30", groups=3)
    assert shown.rates(0) == (1.0, 0.0)
    assert shown.risk().tpr_at("0.001").upper == 1


def test_a_threshold_beyond_all_noise_is_refused_at_once() -> None:
    """A group of one person alone is then shown with a probability of e^−10¹³."""
    with pytest.raises(NumericalError, match="no enclosure"):
        dpv.curves.gaussian_threshold(sigma=9, threshold=5 * 10**7).delta_at(0)


@pytest.mark.parametrize(("times", "epsilon"), crossed([1, 10], ["1", "0.001"]))
def test_noise_for_a_delta_next_to_1(times: int, epsilon: str) -> None:
    """Where δ as a double hardly tells one σ from another."""
    delta = 1 - Fraction(1, 10**15)
    for kind in (dpv.Gaussian, dpv.Laplace, dpv.DiscreteGaussian):
        noise = dpv.calibrate(kind, epsilon=epsilon, delta=delta, times=times)
        assert (times * noise).delta_at(epsilon).upper <= math.nextafter(float(delta), 2)
