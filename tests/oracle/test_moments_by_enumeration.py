"""Moments of the linear sketches by exact enumeration of all their public randomness."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_mechanisms.linear.estimators import InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    Projection,
    RademacherProjection,
)
from tests.helpers.profiles import thinned

Matrix = tuple[tuple[int, ...], ...]
VECTORS = [(1, 2, -1, 3, 2), (2, 0, 1, -1, 1), (0, 1, 3, 1, -2), (1, -1, 2, 2, 1)]


def oporps(p: int, k: int) -> Iterator[Matrix]:
    sizes = [p // k + (bin_ < p % k) for bin_ in range(k)]
    bins = [bin_ for bin_, size in enumerate(sizes) for _ in range(size)]
    for order in itertools.permutations(range(p)):
        for signs in itertools.product((-1, 1), repeat=p):
            rows = [[0] * k for _ in range(p)]
            for place, coordinate in enumerate(order):
                rows[coordinate][bins[place]] = signs[coordinate]
            yield tuple(map(tuple, rows))


def rademachers(p: int, k: int) -> Iterator[Matrix]:
    for signs in itertools.product((-1, 1), repeat=p * k):
        yield tuple(signs[i * k : (i + 1) * k] for i in range(p))


def dots(matrix: Matrix, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[int]:
    def image(x: tuple[int, ...]) -> list[int]:
        return [
            sum(a * row[j] for a, row in zip(x, matrix, strict=True)) for j in range(len(matrix[0]))
        ]

    return [sum(a * b for a, b in zip(image(x), image(y), strict=True)) for x, y in pairs]


def dot(*vectors: tuple[int, ...]) -> int:
    return int(np.prod(np.array(vectors), axis=0).sum())


def covariance(c: Fraction, d: Fraction, vectors: list[tuple[int, ...]]) -> Fraction:
    """The formula of the module `projections`."""
    a, b, a_, b_ = vectors
    diagonal = dot(a, b, a_, b_)
    return c * (dot(a, a_) * dot(b, b_) + dot(a, b_) * dot(b, a_) - 2 * diagonal) + d * diagonal


CASES = [
    (OPORP(p=4, k=2, seed=0), Fraction(1)),
    (OPORP(p=5, k=2, seed=0), Fraction(1)),
    (OPORP(p=5, k=3, seed=0), Fraction(1)),
    (OPORP(p=3, k=3, seed=0), Fraction(1)),
    (RademacherProjection(p=3, k=2, seed=0), Fraction(1, 2)),
    (RademacherProjection(p=4, k=3, seed=0), Fraction(1, 3)),
]


def enumerated(projection: Projection, scale: Fraction) -> tuple[list[Fraction], Fraction]:
    """Means of ⟨aP, bP⟩ and ⟨a′P, b′P⟩, and their covariance."""
    vectors = [v[: projection.p] for v in VECTORS]
    every = oporps if projection.name == "oporp" else rademachers
    total, one, two, product = 0, 0, 0, 0
    pairs = [(vectors[0], vectors[1]), (vectors[2], vectors[3])]
    for matrix in every(projection.p, projection.k):
        first, second = dots(matrix, pairs)
        total, one, two, product = total + 1, one + first, two + second, product + first * second
    means = [scale * Fraction(value, total) for value in (one, two)]
    return means, scale**2 * Fraction(product, total) - means[0] * means[1]


@pytest.mark.parametrize(("projection", "scale"), CASES)
def test_covariance_of_inner_products(projection: Projection, scale: Fraction) -> None:
    vectors = [v[: projection.p] for v in VECTORS]
    means, exact = enumerated(projection, scale)
    assert means == [dot(vectors[0], vectors[1]), dot(vectors[2], vectors[3])]
    formula = covariance(projection.pair_variance, projection.diagonal_variance, vectors)
    assert formula == exact
    if projection.name == "oporp" and projection.k < projection.p:
        # Li and Li's factor (p − k)/(p − 1) is right where k divides p, and only there.
        p, k = projection.p, projection.k
        printed = covariance(Fraction(p - k, k * (p - 1)), Fraction(0), vectors)
        assert (printed == exact) == (p % k == 0)
        assert covariance(Fraction(1, k), Fraction(0), vectors) != exact


def sketch(projection: Projection, scale: float = 40.0) -> LinearSketch:
    return LinearSketch(
        projection=projection,
        noise=RoundedGaussian(scale=scale),
        grid=Grid(step=Fraction(1, 8)),
        domain=Box(low=Fraction(-1), high=Fraction(1)),
        adjacency=Attribute(beta=Fraction(1)),
    )


@pytest.mark.parametrize(("projection", "scale"), thinned(CASES, 2, rows=True))
def test_inner_product_and_distance(projection: Projection, scale: Fraction) -> None:
    """Variances over P and noise against E over all P of the exact conditional moments."""
    mechanism = sketch(projection)
    x, y = (np.array(v[: projection.p]) / 4 for v in VECTORS[:2])
    step2 = scale * Fraction(1, 64)
    s = Fraction(40)
    # Moments of rounded noise of scale 40, up to e^(−2π²·1600).
    v, w = s**2 + Fraction(1, 12), 3 * s**4 + s**2 / 2 + Fraction(1, 80)
    k = projection.k
    every = oporps if projection.name == "oporp" else rademachers
    steps = [tuple((8 * vector).astype(int).tolist()) for vector in (x, y)]
    difference = tuple(a - b for a, b in zip(*steps, strict=True))
    pairs = [
        (steps[0], steps[1]),
        (steps[0], steps[0]),
        (steps[1], steps[1]),
        (difference, difference),
    ]
    total = 0
    inner: list[Fraction] = [Fraction(0)] * 3
    distance: list[Fraction] = [Fraction(0)] * 3
    for matrix in every(projection.p, k):
        xy, xx, yy, zz = dots(matrix, pairs)
        total += 1
        # Given P: mean, its square, and the variance over the noise.
        for sums, mean, variance in (
            (inner, Fraction(xy), v * (xx + yy) + k * v * v),
            (distance, Fraction(zz), 8 * v * zz + k * (2 * w + 6 * v * v - 4 * v * v)),
        ):
            sums[0] += mean
            sums[1] += mean * mean
            sums[2] += variance
    for estimator, sums in (
        (InnerProduct(sketch=mechanism), inner),
        (SquaredDistance(sketch=mechanism), distance),
    ):
        mean, square, noise = (value / total for value in sums)
        expectation, variance = mean * step2, (square - mean**2 + noise) * step2**2
        assert estimator.expectation(x, y) == pytest.approx(float(expectation), rel=1e-12)
        assert estimator.truth(x, y) == pytest.approx(float(expectation), rel=1e-12)
        assert estimator.variance(x, y) == pytest.approx(float(variance), rel=1e-12)
        # A term left out is seen at this tolerance.
        assert estimator.variance(x, y) != pytest.approx(
            float(variance - k * v * v * step2**2), rel=1e-12
        )


@pytest.mark.parametrize(
    "projection", [c[0] for c in CASES] + [GaussianProjection(p=6, k=3, seed=2)]
)
def test_given_the_realised_projection(projection: Projection) -> None:
    mechanism = sketch(projection, scale=max(40.0, 40.0 * float(np.abs(projection.matrix).max())))
    x, y = (np.resize(np.array(v), projection.p) / 4 for v in VECTORS[:2])
    unit = mechanism.step().upper
    a, b = (mechanism.noiseless(z[None])[0] * unit for z in (x, y))
    v = mechanism.noise.variance().upper * unit**2
    inner = InnerProduct(sketch=mechanism, realised=True)
    assert inner.expectation(x, y) == pytest.approx(float(a @ b), rel=1e-9)
    assert inner.variance(x, y) == pytest.approx(v * float(a @ a + b @ b) + projection.k * v * v)
    distance = SquaredDistance(sketch=mechanism, realised=True)
    assert distance.expectation(x, y) == pytest.approx(float((a - b) @ (a - b)), rel=1e-9)


def test_printed_formulas_of_the_papers() -> None:
    """Kenthapadi theorem 2 and Li and Li theorems 3.9, 3.10, up to the terms that rounding adds.

    Rounding adds 1/12 step² to the noise variance, a relative 2⁻²⁰/12 of it here and of its square
    twice that; with the Gaussian projection's finer grid the difference is below doubles.
    """
    x, y = np.linspace(-1, 1, 8), np.cos(np.arange(8.0))
    for projection in (
        GaussianProjection(p=8, k=4, seed=1),
        RademacherProjection(p=8, k=4, seed=1),
        OPORP(p=8, k=4, seed=1),
    ):
        entry = 2.0**20 if projection.name == "gaussian" else 1.0
        mechanism = sketch(projection, scale=1024.0 * entry)
        k, p = 4, 8
        sigma2 = (mechanism.noise.scale * mechanism.step().upper) ** 2
        u, v = (mechanism.grid.round(z[None])[0] / 8 for z in (x, y))
        z = u - v
        r2 = float(z @ z)
        spread = float((u @ u) * (v @ v) + (u @ v) ** 2)
        noise = sigma2 * float(u @ u + v @ v) + k * sigma2**2
        if projection.name == "gaussian":
            printed = 2 * r2**2 / k + 8 * sigma2 * r2 + 8 * sigma2**2 * k
            found = SquaredDistance(sketch=mechanism).variance(x, y)
        else:
            factor = (p - k) / (p - 1) if projection.name == "oporp" else 1.0
            printed = noise + (spread - 2 * float(u**2 @ v**2)) / k * factor
            found = InnerProduct(sketch=mechanism).variance(x, y)
        assert found == pytest.approx(printed, rel=2e-6)
        if projection.name != "gaussian":
            assert found != pytest.approx(printed, rel=1e-13)
