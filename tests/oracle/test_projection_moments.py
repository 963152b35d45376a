"""The law and the moments of the projections, against all their realisations, in exact numbers.

The covariance formula of the module `projection` is linear in each of its four vectors, so it
holds for all vectors if it holds for the unit vectors: that is, entry by entry of Cov(vec P Pᵀ).
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import chi2

from dpverify.enclosure import squared
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    Projection,
    RademacherProjection,
    SparseProjection,
    UniformProjection,
)
from dpverify_mechanisms.projections.sjlt import SJLT, BinaryField, DKSProjection, PolynomialHash
from tests.helpers.profiles import day_and_night
from tests.helpers.projection_oracle import (
    EVERY,
    bin_sizes,
    every_fjlt,
    every_oporp,
    every_product,
    times,
)

LEVEL = 1e-6
"""Probability that a right projection is accused by one test of its law."""

OPORPS = [(1, 1), (2, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (5, 2), (5, 3), (5, 4), (5, 5)]
CASES: list[Projection] = [
    *(OPORP(p=p, k=k, seed=0) for p, k in OPORPS),
    *(RademacherProjection(p=p, k=k, seed=0) for p, k in [(3, 2), (2, 3), (4, 2), (1, 4)]),
    *(SparseProjection(p=2, k=k, sparsity=s, seed=0) for k, s in [(2, 3), (1, 5), (2, 1)]),
    *(DKSProjection(p=p, k=k, copies=r, seed=0) for p, k, r in [(3, 2, 2), (2, 3, 2), (2, 2, 3)]),
    *(
        SJLT(p=p, k=k, sparsity=s, construction="block", seed=0)
        for p, k, s in [(3, 4, 2), (2, 6, 2), (3, 3, 1), (3, 3, 3), (4, 2, 1)]
    ),
    *(
        SJLT(p=p, k=k, sparsity=s, construction="graph", seed=0)
        for p, k, s in [(3, 3, 2), (2, 4, 2), (2, 4, 3), (3, 2, 1)]
    ),
]


def every(projection: Projection) -> NDArray[np.int64]:
    """All realisations of a projection, from the oracle."""
    p, k = projection.p, projection.k
    match projection:
        case SJLT(sparsity=s, construction=how):
            return EVERY[f"sjlt-{how}"](p, k, s)
        case SparseProjection(sparsity=s) | DKSProjection(copies=s):
            return EVERY[projection.name](p, k, s)
    return EVERY[projection.name](p, k)


def covariances(matrices: NDArray[np.int64], scale_squared: Fraction) -> dict[Any, Fraction]:
    """Cov(Aᵢⱼ, Aₖₗ) of A = P Pᵀ by its four indices, over equally likely matrices."""
    count, p, _ = matrices.shape
    grams = (matrices @ matrices.transpose(0, 2, 1)).reshape(count, p * p)
    means = [Fraction(total, count) for total in grams.sum(axis=0).tolist()]
    products = (grams.T @ grams).tolist()
    return {
        (*divmod(one, p), *divmod(two, p)): scale_squared**2
        * (Fraction(products[one][two], count) - means[one] * means[two])
        for one in range(p * p)
        for two in range(p * p)
    }


def holds(exact: dict[Any, Fraction], c: Fraction, d: Fraction, e: Fraction | int = 0) -> bool:
    """The module's formula for unit vectors i, j and k, m, at all of them."""
    return all(
        value
        == c * ((i == k) * (j == m) + (i == m) * (j == k) - 2 * (i == j == k == m))
        + d * (i == j == k == m)
        + e * ((i == j) * (k == m) - (i == j == k == m))
        for (i, j, k, m), value in exact.items()
    )


def label(projection: Projection) -> str:
    return repr(projection).replace(", seed=0", "")


@pytest.mark.parametrize("projection", CASES, ids=label)
def test_mean_is_the_identity_and_the_covariance_formula_is_exact(projection: Projection) -> None:
    matrices = every(projection)
    unit = squared(projection.scale)
    total = (matrices @ matrices.transpose(0, 2, 1)).sum(axis=0).tolist()
    identity = np.eye(projection.p, dtype=int).tolist()
    assert [[unit * Fraction(x, len(matrices)) for x in row] for row in total] == identity
    exact = covariances(matrices, unit)
    assert projection.diagonal_covariance == 0
    c, d = projection.pair_variance, projection.diagonal_variance
    assert holds(exact, c, d)
    if projection.p > 1:  # otherwise there is no pair, and nothing for a wrong one to miss
        assert not holds(exact, c + Fraction(1, 997), d)
    assert not holds(exact, c, d + Fraction(1, 997))


@pytest.mark.parametrize(("p", "k"), [case for case in OPORPS if case[0] > 1])
def test_other_collision_probabilities_of_oporp_are_wrong(p: int, k: int) -> None:
    """Independent columns, and padding with zeros to the next multiple of k.

    One padded coordinate changes nothing: it leaves the same bin sizes, in another order.
    """
    exact = covariances(every_oporp(p, k), Fraction(1))
    found = OPORP(p=p, k=k, seed=0).pair_variance
    padded = -(-p // k) * k
    padding = Fraction(padded - k, k * (padded - 1)) if padded > 1 else Fraction(0)
    assert holds(exact, Fraction(1, k), Fraction(0)) == (k == 1)
    assert holds(exact, padding, Fraction(0)) == (p % k in (0, k - 1))
    assert found <= padding
    assert (found == padding) == (p % k in (0, k - 1))


@given(
    st.sampled_from([case for case in CASES if case.p >= 3]),
    st.lists(st.lists(st.integers(-50, 50), min_size=5, max_size=5), min_size=4, max_size=4),
)
def test_covariance_of_two_inner_products(projection: Projection, vectors: list[list[int]]) -> None:
    """The formula as it is used, for vectors: nothing is lost on the way from the unit vectors."""
    a, b, c, d = (np.array(vector[: projection.p]) for vector in vectors)
    matrices = every(projection)
    first = ((a @ matrices) * (b @ matrices)).sum(axis=1).tolist()
    second = ((c @ matrices) * (d @ matrices)).sum(axis=1).tolist()
    products = sum(x * y for x, y in zip(first, second, strict=True))
    count, unit = len(matrices), squared(projection.scale)
    mean = unit * Fraction(sum(first), count)
    assert mean == int(a @ b)
    covariance = unit**2 * Fraction(products, count) - mean * unit * Fraction(sum(second), count)
    diagonal = int((a * b * c * d).sum())
    pairs = int(a @ c) * int(b @ d) + int(a @ d) * int(b @ c) - 2 * diagonal
    assert covariance == (
        projection.pair_variance * pairs + projection.diagonal_variance * diagonal
    )
    assert projection.form_covariance(a, b, c, d) == pytest.approx(float(covariance), rel=1e-9)


# --- the fast transform, whose diagonal is correlated


class FiniteFJLT(FJLT):
    """Entries that can be enumerated in place of the normal ones."""

    values: ClassVar[tuple[int, ...]] = (0, 0, -1, 1)

    def _moments(self) -> tuple[Fraction, Fraction]:
        second, fourth = (
            Fraction(sum(x**r for x in self.values), len(self.values)) for r in (2, 4)
        )
        return second, fourth


class HeavierFJLT(FiniteFJLT):
    values: ClassVar[tuple[int, ...]] = (0, -1, 1, -3, 3)


@pytest.mark.parametrize(
    ("kind", "p", "k"),
    [
        (FiniteFJLT, 1, 2),
        (FiniteFJLT, 2, 1),
        (FiniteFJLT, 2, 2),
        (FiniteFJLT, 3, 1),
        (FiniteFJLT, 4, 1),
        (HeavierFJLT, 2, 2),
        (HeavierFJLT, 3, 1),
        (HeavierFJLT, 4, 1),
    ],
)
def test_moments_of_the_fast_transform(kind: type[FiniteFJLT], p: int, k: int) -> None:
    projection = kind(p=p, k=k, seed=0, density=Fraction(1, 2))
    matrices = every_fjlt(p, k, kind.values)
    unit = squared(projection.scale)
    total = (matrices @ matrices.transpose(0, 2, 1)).sum(axis=0).tolist()
    assert [[unit * Fraction(x, len(matrices)) for x in row] for row in total] == np.eye(
        p, dtype=int
    ).tolist()
    exact = covariances(matrices, unit)
    c, d = projection.pair_variance, projection.diagonal_variance
    e = projection.diagonal_covariance
    assert e != 0
    assert holds(exact, c, d, e)
    assert not holds(exact, c, d + Fraction(1, 997), e)
    if p > 1:
        assert not holds(exact, c, d)  # the two numbers that do for all the others
        assert not holds(exact, Fraction(1, k), Fraction(2, k))  # a Gaussian projection's
    z = np.arange(1, p + 1)
    norms = ((z @ matrices) ** 2).sum(axis=1)
    mean = unit * Fraction(int(norms.sum()), len(norms))
    variance = unit**2 * Fraction(int((norms**2).sum()), len(norms)) - mean**2
    assert mean == int(z @ z)
    assert projection.form_covariance(z, z, z, z) == pytest.approx(float(variance), rel=1e-12)


def test_three_over_k_needs_a_density() -> None:
    """Stausholm's lemma 7 bounds Var‖zΦ‖² by 3‖z‖⁴/k for every q; it needs q of 9/(m + 9) or so."""
    flat = np.ones(64)

    def variance(density: Fraction) -> float:
        return FJLT(p=64, k=4, seed=0, density=density).form_covariance(flat, flat, flat, flat)

    assert variance(Fraction(9, 73)) < 3 / 4 * 64**2 < variance(Fraction(1, 12))


def test_moments_of_the_fast_transforms_entries() -> None:
    """An entry is a rounded normal with the realised probability, which is a multiple of 2⁻⁶³."""
    projection = FJLT(p=5, k=3, seed=0, density=Fraction(1, 3))
    hit = Fraction(-(-(2**63) // 3), 2**63)
    second = hit * (2**20 + Fraction(1, 12))
    fourth = hit * (3 * 2**40 + 2**19 + Fraction(1, 80))
    assert projection.entry.scale == 2.0**10
    assert squared(projection.scale) == 1 / (3 * 8 * second)
    assert projection.diagonal_covariance == (fourth / second**2 - 3) / 8 / 3


# --- hashing of limited independence, by every polynomial of a small field

GF4, GF8 = BinaryField(bits=2, modulus=0b111), BinaryField(bits=3, modulus=0b1011)


def every_value(field: BinaryField, t: int) -> NDArray[np.int64]:
    """Values of every polynomial of degree below t at every element, from the oracle's product."""
    size = 1 << field.bits
    coefficients = np.array(list(itertools.product(range(size), repeat=t)))
    table = np.array(
        [[times(a, b, field.bits, field.modulus) for b in range(size)] for a in range(size)]
    )
    points = np.arange(size)
    values = np.zeros((len(coefficients), size), dtype=np.int64)
    for coefficient in coefficients.T[::-1]:
        values = table[values, points] ^ coefficient[:, None]
    return values


@pytest.mark.parametrize(
    ("field", "t"), [(GF4, 2), (GF8, 2), (GF8, 3), *day_and_night((GF4, 4), (GF8, 4))]
)
def test_hash_is_exactly_uniform_and_t_wise_independent(field: BinaryField, t: int) -> None:
    size = 1 << field.bits
    values = every_value(field, t)
    coefficients = np.array(list(itertools.product(range(size), repeat=t)), dtype=np.uint64)
    hashed = PolynomialHash(field, coefficients)(np.arange(size, dtype=np.uint64))
    assert (hashed == values.astype(np.uint64)).all()
    for points in itertools.combinations(range(size), t):
        assert len({tuple(row) for row in values[:, points].tolist()}) == size**t
    if t < size:  # and no more than that
        points = tuple(range(t + 1))
        assert len({tuple(row) for row in values[:, points].tolist()}) == size**t


@pytest.mark.parametrize(("bins", "sparsity"), day_and_night((4, 1), (2, 1), (1, 1)))
def test_four_wise_hashing_has_the_moments_of_independence(bins: int, sparsity: int) -> None:
    """Eight attributes, so that four-wise isn't all; with three-wise hashing the formula fails."""

    class OverGF8(SJLT):
        base: ClassVar[BinaryField] = GF8

    projection = OverGF8(p=8, k=bins * sparsity, sparsity=sparsity, hashing=4, seed=0)
    c = projection.pair_variance
    for t, right in ((4, True), (3, False), (2, False)):
        matrices = as_matrices(every_value(GF8, t), bins)
        assert holds(covariances(matrices, Fraction(1)), c, Fraction(0)) == right
    # And what the class makes of its own coefficients is one of them.
    coefficients = projection._realised._constants
    assert coefficients.shape == (1, 1)
    found = np.asarray(projection.matrix.todense()).astype(np.int64)
    assert (found == as_matrices(every_value(GF8, 4), bins)).all(axis=(1, 2)).any()


def test_two_hashed_blocks_have_the_moments_of_independence() -> None:
    block = as_matrices(every_value(GF4, 4), 2)
    pairs = np.concatenate(
        [np.repeat(block, len(block), axis=0), np.tile(block, (len(block), 1, 1))], axis=2
    )
    assert holds(covariances(pairs, Fraction(1, 2)), Fraction(1, 4), Fraction(0))


def as_matrices(values: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """One block: the last bit is the sign, the bits above it are the bin."""
    return np.eye(bins, dtype=np.int64)[values // 2 % bins] * (1 - 2 * (values % 2))[:, :, None]


# --- independent entries of any kurtosis, and the rounded normal's


@pytest.mark.parametrize(("p", "k"), [(2, 1), (2, 2), (3, 1)])
def test_independent_entries_have_the_stated_moments(p: int, k: int) -> None:
    """c = 1/k and d = (κ − 1)/k, here for entries −3, −1, 1, 3 of odds 1:3:3:1 and κ = 7/3."""
    values = (-3, -1, -1, -1, 1, 1, 1, 3)
    second, fourth = (Fraction(sum(x**r for x in values), len(values)) for r in (2, 4))
    kurtosis = fourth / second**2
    assert kurtosis == Fraction(7, 3)
    exact = covariances(every_product(values, p, k), 1 / (k * second))
    assert holds(exact, Fraction(1, k), (kurtosis - 1) / k)
    # A kurtosis that is forgotten, and a normal's.
    assert not holds(exact, Fraction(1, k), Fraction(0))
    assert not holds(exact, Fraction(1, k), Fraction(2, k))


def test_moments_of_uniform_entries() -> None:
    values = range(1 - 2**16, 2**16, 2)
    second, fourth = (Fraction(sum(x**r for x in values), len(values)) for r in (2, 4))
    projection = UniformProjection(p=2, k=3, seed=0)
    assert squared(projection.scale) == 1 / (3 * second)
    assert projection.diagonal_variance == (fourth / second**2 - 1) / 3
    assert projection.pair_variance == Fraction(1, 3)


def test_identity_is_not_random() -> None:
    projection = IdentityProjection(p=3, k=3)
    assert (projection.matrix.toarray() == np.eye(3)).all()
    assert projection.pair_variance == projection.diagonal_variance == 0


class OfScale3(GaussianProjection):
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=3.0)


class OfScale4(GaussianProjection):
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=4.0)


class OfScale5(GaussianProjection):
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=5.0)


def moment(order: int, scale: float) -> Any:
    """E[round(N(0, scale²))^order], summed term by term."""

    def probability(n: int) -> Any:
        low, high = ((mpmath.mpf(2 * n + side)) / (2 * mpmath.mpf(scale)) for side in (-1, 1))
        return (mpmath.erfc(low / mpmath.sqrt(2)) - mpmath.erfc(high / mpmath.sqrt(2))) / 2

    reach = int(24 * scale)  # beyond, less than e^(−288)
    return 2 * mpmath.fsum(n**order * probability(n) for n in range(1, reach))


@pytest.mark.parametrize("kind", [OfScale3, OfScale4, OfScale5])
def test_gaussian_moments_are_those_of_the_rounded_entries(kind: type[GaussianProjection]) -> None:
    """At three scales s, which settles them at the real one too.

    The moments are polynomials in s², of degree 1 and 2, up to e^(−2π²s²) < 1e-77: three points
    decide their three coefficients.
    """
    with mpmath.workdps(100):
        second, fourth = (moment(order, kind.entry.scale) for order in (2, 4))
        for k in (1, 3):
            projection = kind(p=2, k=k, seed=0)
            unit, d = squared(projection.scale), projection.diagonal_variance
            assert projection.pair_variance == Fraction(1, k)
            assert abs(k * second * unit.numerator / unit.denominator - 1) < mpmath.mpf("1e-70")
            true = (fourth / second**2 - 1) / k
            assert abs(true - mpmath.mpf(d.numerator) / d.denominator) < mpmath.mpf("1e-70")
            # Exactly normal entries would have 2/k, which is already wrong in the fourth digit.
            assert abs(true - mpmath.mpf(2) / k) > mpmath.mpf("1e-6")


def test_the_real_gaussian_projection_has_entries_of_scale_two_to_the_twenty() -> None:
    projection = GaussianProjection(p=3, k=2, seed=0)
    assert projection.entry.scale == 2.0**20
    second = 2**40 + Fraction(1, 12)
    fourth = 3 * Fraction(2) ** 80 + Fraction(2) ** 39 + Fraction(1, 80)
    assert squared(projection.scale) == 1 / (2 * second)
    assert projection.diagonal_variance == (fourth / second**2 - 1) / 2
    assert second in projection.entry.variance()
    assert fourth in projection.entry.fourth_moment()


# --- what is drawn is what was enumerated


def key(matrix: Any) -> bytes:
    return np.asarray(sparse.csr_array(matrix).todense()).astype(np.int64).tobytes()


@pytest.mark.parametrize(
    "projection",
    day_and_night(
        OPORP(p=3, k=2, seed=0),
        OPORP(p=3, k=3, seed=0),
        OPORP(p=4, k=1, seed=0),
        RademacherProjection(p=2, k=2, seed=0),
        SparseProjection(p=1, k=2, sparsity=3, seed=0),
        DKSProjection(p=1, k=3, copies=2, seed=0),
        SJLT(p=1, k=4, sparsity=2, seed=0),
        SJLT(p=2, k=3, sparsity=1, seed=0),
        SJLT(p=1, k=4, sparsity=3, construction="graph", seed=0),
        SJLT(p=2, k=3, sparsity=2, construction="graph", seed=0),
    ),
    ids=label,
)
def test_seeds_realise_every_matrix_as_often_as_they_should(projection: Projection) -> None:
    realisations = every(projection)
    weights = Counter(matrix.tobytes() for matrix in realisations)
    draws = 100 * len(weights)
    found = Counter(key(evolve(projection, seed=seed).matrix) for seed in range(draws))
    assert set(found) == set(weights)
    means = {name: draws * weight / len(realisations) for name, weight in weights.items()}
    statistic = sum((found[name] - mean) ** 2 / mean for name, mean in means.items())
    assert statistic < chi2.isf(LEVEL, len(weights) - 1)


@pytest.mark.parametrize(("p", "k"), [(5, 2), (7, 3), (11, 4), (12, 4)])
def test_the_first_bins_are_the_fuller_ones(p: int, k: int) -> None:
    for seed in range(5):
        sizes = abs(OPORP(p=p, k=k, seed=seed).matrix).sum(axis=0).astype(int).tolist()
        assert sizes == bin_sizes(p, k)
