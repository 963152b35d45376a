"""The test for missing noise: its level by enumeration, its laws by mpmath, planted frauds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import factorial, prod
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.auditing.statistics import noise_floor
from dpverify.auditing.statistics.noise_floor import Sizes, least_root_mean_square, too_small
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.privacy import SymmetricNoise
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP
from tests.helpers.profiles import day_and_night, thinned

LAWS: list[Any] = [
    RoundedGaussian(scale=1.0),
    RoundedGaussian(scale=1003.5625),
    RoundedLaplace(scale=2.0**-6),
    RoundedLaplace(scale=700.25),
    GeometricNoise(ratio=Fraction(1, 2**10)),
    GeometricNoise(ratio=1 - Fraction(1, 2**10)),
]


def test_the_sizes_are_all_of_six_significant_bits() -> None:
    short = {digits << shift for digits in range(1, 64) for shift in range(64)}
    assert sorted(size for size in short if size <= 2**63) == noise_floor._BOUNDS


def sizes_of(numbers: Any) -> Sizes:
    sizes = Sizes()
    sizes.add(np.asarray(numbers, dtype=np.int64))
    return sizes


def by_mpmath(law: Any, size: int) -> Any:
    """P[|Z| < size], as the sum or the integral that defines it."""
    edge = mpmath.mpf(size) - mpmath.mpf(1) / 2
    match law:
        case RoundedGaussian():
            return mpmath.erf(edge / (mpmath.mpf(law.scale) * mpmath.sqrt(2)))
        case RoundedLaplace():
            density = [0, edge / mpmath.mpf(law.scale)]
            return mpmath.quad(lambda x: mpmath.exp(-x), density)
    q = mpmath.mpf(law.ratio.numerator) / law.ratio.denominator
    return (1 - q) / (1 + q) * (1 + 2 * mpmath.fsum(q**z for z in range(1, size)))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_probabilities_below_a_size_are_enclosed(law: Any) -> None:
    with mpmath.workdps(50):
        for size in (1, 2, 40, 1500):
            due, found = by_mpmath(law, size), law.within(size)
            assert found.lower <= due <= found.upper
            assert found.width <= 1e-13


def outcomes(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """How `total` draws can fall into cells."""
    for counts in product(range(total + 1), repeat=cells - 1):
        if sum(counts) <= total:
            yield (*counts, total - sum(counts))


@pytest.mark.parametrize("shift", [0, 1, 5])
@pytest.mark.parametrize("total", day_and_night(3, 5, 8))
def test_the_level_by_enumeration(total: int, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All outcomes of numbers `shift` + Z with their exact probabilities; no data beat none."""
    monkeypatch.setattr(noise_floor, "LEVEL", Fraction(1, 10))
    noise = GeometricNoise(ratio=Fraction(1, 2))

    def probability(counts: tuple[int, ...], shift: int) -> Fraction:
        laws = [noise.probability(z - shift) for z in range(-2, 3)]
        cells = [laws[2], laws[1] + laws[3], laws[0] + laws[4]]
        cells.append(1 - sum(cells, Fraction(0)))
        ways = factorial(total) // prod(map(factorial, counts))
        return ways * prod((p**c for p, c in zip(cells, counts, strict=True)), start=Fraction(1))

    accused = {0: Fraction(0), shift: Fraction(0)}
    for counts in outcomes(total, 4):  # numbers of size 0, 1, 2 and more
        if too_small(sizes_of(np.repeat([0, -1, 2, 9], counts)), noise):
            for data in accused:
                accused[data] += probability(counts, data)
    assert accused[shift] <= accused[0] <= Fraction(1, 10)
    assert accused[0] > 0  # or nothing was shown


@given(st.lists(st.integers(-70, 70) | st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_sizes_are_counted(numbers: list[int]) -> None:
    sizes = sizes_of(numbers)
    assert sizes.total == len(numbers)
    for size, count in [*sizes.below()][:50] + [*sizes.below()][50::97]:
        assert count == sum(abs(number) < size for number in numbers)


@pytest.mark.parametrize("total", day_and_night(10**6, 11, 40, 5000))
def test_what_is_smaller_than_the_bound_is_found(total: int) -> None:
    """The largest numbers that pass have the bound's root mean square, or more."""
    noise: SymmetricNoise = RoundedGaussian(scale=300.0)
    bound = least_root_mean_square(noise, total)
    square = before = 0.0
    slack = float(mpmath.sqrt(mpmath.log(10**9) / (2 * total)))
    for size in noise_floor._BOUNDS:
        passing = 1 - float(by_mpmath(noise, size)) - slack
        square, before = square + (size**2 - before) * max(0.0, passing), float(size**2)
    assert bound == pytest.approx(square**0.5, rel=1e-9)


def sketch(epsilon: str) -> LinearSketch:
    return LinearSketch.calibrated(
        OPORP(p=64, k=16, seed=3),
        epsilon=epsilon,
        delta=1e-6,
        domain=Box(0, 1),
        adjacency=Attribute(1),
    )


def test_frauds_are_found() -> None:
    rng = np.random.default_rng(1)
    records = rng.random((60, 64)) ** 4
    strict, lax = sketch("0.1"), sketch("5")
    noise = strict.added_noise()
    assert noise is not None
    honest = strict.release(records, rng=ReplayableWords(2))
    assert too_small(sizes_of(honest), noise) is None
    assert too_small(sizes_of(lax.release(records, rng=ReplayableWords(2))), noise)
    product = strict.noiseless(records)
    assert too_small(sizes_of(product), noise)
    least = least_root_mean_square(noise, product.size)
    just_below = np.full(product.shape, int(least))
    assert too_small(sizes_of(just_below), noise)
    halved = np.where(rng.random(product.shape) < 0.5, product, honest)  # every second has none
    assert too_small(sizes_of(halved), noise)
    # What no test can find that holds for all data: no noise, and data beyond it.
    assert too_small(sizes_of(product + 10 * noise.scale), noise) is None


@pytest.mark.parametrize("block", thinned(range(100), 100))
def test_honest_releases_pass(block: int) -> None:
    """Ten a block, on records of nothing, which bring the numbers closest to 0."""
    noise = sketch("0.5").added_noise()
    assert noise is not None
    for number in range(10):
        drawn = noise.sample((200,), rng=ReplayableWords(10 * block + number))
        assert too_small(sizes_of(drawn), noise) is None


@pytest.mark.nightly
def test_the_level_is_kept_by_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """At level 0.05 on records of nothing: 2,000 runs accuse at most 140 times (P < 1e-4)."""
    monkeypatch.setattr(noise_floor, "LEVEL", Fraction(1, 20))
    noise = RoundedGaussian(scale=500.0)
    runs = (sizes_of(noise.sample((300,), rng=ReplayableWords(run))) for run in range(2000))
    accused = sum(too_small(sizes, noise) is not None for sizes in runs)
    assert 0 < accused <= 140
