from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
import scipy
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.data.domain import is_sparse
from dpverify.enclosure import squared
from dpverify.errors import NumericalError, ParameterError
from dpverify.sampling.coins import uniform_below
from dpverify_mechanisms.projections._spectral import squared_spectral_norm
from dpverify_mechanisms.projections.base import single_is_exact
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
from dpverify_mechanisms.projections.sjlt import SJLT, DKSProjection
from tests.helpers.profiles import thinned

KINDS: dict[str, Callable[..., Projection]] = {
    "oporp": OPORP,
    "rademacher": RademacherProjection,
    "gaussian": GaussianProjection,
    "identity": lambda p, k, seed: IdentityProjection(p=p, k=p, seed=seed),
    "uniform": UniformProjection,
    "achlioptas": SparseProjection,
    "very sparse": partial(SparseProjection, sparsity=10),
    "dks": partial(DKSProjection, copies=3),
    "sjlt blocks": partial(SJLT, sparsity=2),
    "sjlt graph": partial(SJLT, sparsity=3, construction="graph"),
    "sjlt hashed": partial(SJLT, sparsity=2, hashing=5),
    "fjlt": partial(FJLT, density=Fraction(1)),
    "sparse fjlt": partial(FJLT, density=Fraction(1, 10)),
}
DRAWN = [kind for kind in KINDS if kind != "identity"]
# A change of one of these breaks every published certificate that rests on it.
PINNED = {
    "oporp": "405ab8fc464e32f92ead41d064e3da47c390ccf004e838bd7ac3df04f07e2de9",
    "rademacher": "954c61735f1b6885cef970f8924ccbcc4d6d647430d499ddea3c7c089040c345",
    "gaussian": "4f6ca96fcac78b94f28fac12f9282fe58f07cb65356eb5b7c166f9db900cf134",
    "uniform": "134a408e15d2b683ef761b4114b3eefdd1bed91ebe54f0d9e2a91fab798f52a2",
    "achlioptas": "90c2772e5355efdbd575ff921824d70891fb09d77b79347f8aeebcf899cb223d",
    "very sparse": "a9c78da9026fe13bc764595d31250977fe7d51fe88496de6ce86c092f7e3b061",
    "dks": "4c9e6a16f6d86a6dbfe429b639d1bfb14b78688b4cca47aea326226274d6c652",
    "sjlt blocks": "ee1d863672ee34e1bd872c015d56eb540314096ffcbee4f778454acbd6bef139",
    "sjlt graph": "45fddbb78c1efc4b5eaefa73a29f35eb8c82e7d5ca57e8b8b3dc9ac743b54fdb",
    "sjlt hashed": "463bcbb7e93b8387527db735297c94454a7ffc917034f4c08420ff099fef5179",
    "fjlt": "3a84fde94307d6a7158dce6e03a86333fa4a926d6bc15e8d922d8cf1cd13d20a",
    "sparse fjlt": "91b437c6246481aaa924496662e778279a284cbd81525491d449c481acb22f8e",
}


def dense(projection: Projection) -> np.ndarray[Any, Any]:
    return np.asarray(sparse.csr_array(projection.matrix).todense())


@pytest.mark.parametrize("kind", DRAWN)
def test_realisation_is_pinned(kind: str) -> None:
    projection = KINDS[kind](p=10, k=4, seed=2023)
    assert projection.sha256() == PINNED[kind]
    again, other = (KINDS[kind](p=10, k=4, seed=seed) for seed in (2023, 2024))
    assert (dense(projection) == dense(again)).all()
    assert again.sha256() == projection.sha256() != other.sha256()
    assert (dense(projection) != dense(other)).any()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "fjlt" not in kind])
def test_digest_is_what_its_docstring_says(kind: str) -> None:
    projection = KINDS[kind](p=9, k=4, seed=5)
    matrix = dense(projection)
    rows = [[(j, int(v)) for j, v in enumerate(row) if v] for row in matrix.tolist()]
    streams: list[list[int]] = [
        [len(row) for row in rows],
        [j for row in rows for j, _ in row],
        [v for row in rows for _, v in row],
    ]
    digest = hashlib.sha256(f"9 {projection.k}".encode())
    for stream in streams:
        content = b"".join(value.to_bytes(8, "little", signed=True) for value in stream)
        digest.update(hashlib.sha256(content).digest())
    assert projection.sha256() == digest.hexdigest()


@pytest.mark.parametrize(("p", "k"), [(12, 4), (13, 4), (15, 4), (5, 5), (1, 1), (784, 256)])
def test_oporp_has_one_sign_a_row_and_balanced_bins(p: int, k: int) -> None:
    projection = OPORP(p=p, k=k, seed=1)
    sizes = np.abs(dense(projection))
    assert (sizes.sum(axis=1) == 1).all()
    assert sorted(sizes.sum(axis=0).tolist()) == sorted(
        [p // k] * (k - p % k) + [p // k + 1] * (p % k)
    )
    assert largest_row_norm(projection.matrix, 1) == 1


def test_rademacher_rows_have_norm_one() -> None:
    projection = RademacherProjection(p=50, k=7, seed=1)
    assert set(np.unique(projection.matrix)) == {-1.0, 1.0}
    assert squared(largest_row_norm(projection.matrix, 2)) * squared(projection.scale) == 1


def test_gaussian_entries_have_variance_one_over_k() -> None:
    projection = GaussianProjection(p=400, k=100, seed=1)
    entries = projection.matrix * float(squared(projection.scale)) ** 0.5
    # Standard deviation of the mean square of 40,000 normals is 0.7 %; six of them.
    assert abs((entries**2).mean() * 100 - 1) < 6 * (2 / 40_000) ** 0.5


@pytest.mark.nightly
def test_permutations_are_uniform() -> None:
    """All 24 orders of four coordinates, chi-squared at level 1e-6 with 23 degrees of freedom."""
    counts: dict[tuple[int, ...], int] = {}
    draws = 2400
    for seed in range(draws):
        columns = sparse.csr_array(OPORP(p=4, k=4, seed=seed).matrix).indices
        order = tuple(columns.tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert sum((c - draws / 24) ** 2 / (draws / 24) for c in counts.values()) < 73.6


@pytest.mark.parametrize(
    ("kind", "p", "k", "seed", "message"),
    [
        (OPORP, 4, 5, 0, "k=5 must be at most p=4 for OPORP"),
        (OPORP, 4, 0, 0, "k=0 must be at least 1"),
        (RademacherProjection, 0, 1, 0, "p=0 must be at least 1"),
        (GaussianProjection, 4, -1, 0, "k=-1 must be at least 1"),
        (RademacherProjection, 4, 2, -1, "seed=-1 must be"),
        (IdentityProjection, 4, 2, 0, "k=2 must be p=4 for the identity"),
        (partial(SparseProjection, sparsity=0), 4, 2, 0, "sparsity=0 must be at least 1"),
    ],
)
def test_sizes_that_make_no_projection_are_refused(
    kind: Callable[..., Projection], p: int, k: int, seed: int, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(p=p, k=k, seed=seed)


def test_unequal_bins_collide_less_than_padding() -> None:
    """784 into 256: the certified example. Padding to 1024 would collide more."""
    projection = OPORP(p=784, k=256, seed=0)
    padded = OPORP(p=1024, k=256, seed=0)
    assert projection.pair_variance == Fraction(1632, 784 * 783)
    assert projection.pair_variance < padded.pair_variance
    assert OPORP(p=768, k=256, seed=0).pair_variance == Fraction(768 - 256, 256 * 767)


def test_uniform_entries_are_the_odd_integers_of_their_range() -> None:
    entries = UniformProjection(p=300, k=200, seed=1).matrix
    assert (entries % 2 == 1).all()
    assert abs(entries).max() <= 2**16 - 1
    # Chi-squared of 60,000 entries in 64 equal cells, level 1e-6: 131.4.
    counts = np.bincount(((entries.ravel() + 2**16) // 2**11).astype(int), minlength=64)
    assert counts.size == 64
    assert ((counts - 937.5) ** 2 / 937.5).sum() < 131.4


class Listed:
    """A source of given words."""

    policy: ClassVar[str] = "listed"

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        drawn, self._words = self._words[:count], self._words[count:]
        assert len(drawn) == count
        return np.array(drawn, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 7, 1000, 2**32, 2**40 + 15])
def test_whole_numbers_below_a_bound_are_exactly_uniform(bound: int) -> None:
    """Words from the last multiple of the bound on are drawn again, and no others."""
    end = 2**64 // bound * bound
    rejected = [word for word in (end, 2**64 - 1) if end <= word < 2**64]
    given_words = [0, *rejected, end - 1, bound - 1]
    later = list(range(len(rejected)))
    found = uniform_below(bound, (len(given_words),), rng=Listed(*given_words, *later))
    expected = [0, *(word % bound for word in later), bound - 1, bound - 1]
    assert found.tolist() == expected


# --- the interface that every projection keeps


def integers(projection: Projection) -> list[list[int]]:
    return [[int(x) for x in row] for row in dense(projection).tolist()]


def product(records: list[list[int]], matrix: list[list[int]]) -> list[list[int]]:
    columns = list(zip(*matrix, strict=True))
    return [[sum(map(int.__mul__, row, column)) for column in columns] for row in records]


RECORDS = st.lists(st.lists(st.integers(-(2**20), 2**20), min_size=9, max_size=9), max_size=6)


@pytest.mark.parametrize("kind", KINDS)
@given(RECORDS, st.integers(0, 6), st.booleans())
def test_product_is_exact_for_dense_and_sparse_records_in_any_blocks(
    kind: str, records: list[list[int]], cut: int, is_sparse: bool
) -> None:
    projection = KINDS[kind](p=9, k=4, seed=3)
    steps: Any = np.array(records, dtype=np.float64).reshape(len(records), 9)
    steps = sparse.csr_array(steps) if is_sparse else steps
    found = projection.apply(steps)
    assert isinstance(found, np.ndarray)
    assert found.shape == (len(records), projection.k)
    assert found.tolist() == product(records, integers(projection))
    parts = [projection.apply(part) for part in (steps[:cut], steps[cut:])]
    assert (np.concatenate(parts) == found).all()


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_inside_the_product_have_no_seams(kind: str) -> None:
    """More records than the sparse product or the fast transform takes at once."""
    projection = KINDS[kind](p=9, k=4, seed=3)
    steps = np.random.default_rng(0).integers(-9, 10, (600, 9)).astype(np.float64)
    steps[:, 3:] *= np.random.default_rng(1).random((600, 6)) < 0.3
    steps[5] = 0  # an empty sparse row
    expected = steps @ dense(projection)
    assert (projection.apply(steps) == expected).all()
    assert (projection.apply(sparse.csr_array(steps)) == expected).all()
    assert (projection.apply(sparse.csc_array(steps)) == expected).all()


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(-(2**30), 2**30)), max_size=20),
)
def test_a_stream_of_updates_ends_where_the_batch_does(
    kind: str, stream: list[tuple[int, int]]
) -> None:
    projection = KINDS[kind](p=9, k=4, seed=3)
    sketch = np.zeros(projection.k, dtype=np.int64)
    record = [0] * 9
    for attribute, steps in stream:
        projection.update(sketch, attribute, steps)
        record[attribute] += steps
    assert sketch.tolist() == product([record], integers(projection))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_their_norms_are_the_matrix_s(kind: str) -> None:
    projection = KINDS[kind](p=9, k=4, seed=3)
    rows = integers(projection)
    for attribute, expected in enumerate(rows):
        columns, values = projection.row(attribute)
        assert len(set(columns.tolist())) == len(columns) == np.count_nonzero(values)
        row = np.zeros(projection.k, dtype=np.int64)
        row[columns] = values
        assert row.tolist() == expected
    assert projection.row_norm(1) == max(sum(map(abs, row)) for row in rows)
    assert squared(projection.row_norm(2)) == max(sum(x * x for x in row) for row in rows)
    assert projection.row_norm(2) is projection.row_norm(2)
    for outside in (-1, 9):
        with pytest.raises(ParameterError, match=r"attribute=.* must be in \[0, 9\)"):
            projection.row(outside)


def test_row_norms_beyond_exact_doubles() -> None:
    """16,384 squares of 2⁴⁰ and more don't add up exactly in doubles."""
    projection = GaussianProjection(p=3, k=16_384, seed=0)
    squares = [sum(x * x for x in row) for row in integers(projection)]
    assert max(squares) > 2**53
    assert squared(projection.row_norm(2)) == max(squares)


@pytest.mark.parametrize("kind", KINDS)
def test_largest_sum_bounds_every_sum(kind: str) -> None:
    projection = KINDS[kind](p=9, k=4, seed=3)
    columns = np.abs(dense(projection)).sum(axis=0)
    assert projection.largest_sum(1000) >= 1000 * columns.max()
    if "fjlt" not in kind:
        assert projection.largest_sum(1000) == 1000 * columns.max()


def check_spectral_norm(projection: Projection) -> None:
    """Against the eigenvalues of the exact Gram matrix, which are good to 50 digits."""
    rows = integers(projection)
    with mpmath.workdps(60):
        gram = mpmath.matrix(product([list(c) for c in zip(*rows, strict=True)], rows))
        true = mpmath.sqrt(max(mpmath.eigsy(gram, eigvals_only=True)))
        found = projection.spectral_norm()
        slack = mpmath.mpf("1e-50") * true  # matters where the enclosure is a single double
        assert found.lower - slack <= true <= found.upper + slack
    assert found.width < 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [4, 9, 16])
def test_spectral_norm_is_enclosed_tightly(kind: str, p: int) -> None:
    check_spectral_norm(KINDS[kind](p=p, k=4, seed=3))


@pytest.mark.parametrize("kind", [kind for kind in DRAWN if kind != "oporp"])
def test_spectral_norm_of_a_wide_matrix(kind: str) -> None:
    check_spectral_norm(KINDS[kind](p=3, k=4, seed=3))


def test_spectral_norm_where_the_gram_matrix_is_rounded() -> None:
    projection = GaussianProjection(p=784, k=8, seed=0)
    assert 784 * int(abs(projection.matrix).max()) ** 2 > 2**53
    check_spectral_norm(projection)


@pytest.mark.parametrize("seed", range(20))
def test_squared_spectral_norm_of_a_rank_one_matrix(seed: int) -> None:
    """Where the norm is known as a whole number: the grid's neighbours of it, exactly compared."""
    a, b = (np.random.default_rng([seed, n]).integers(-(2**10), 2**10, 50) for n in (0, 1))
    lower, upper = squared_spectral_norm(np.outer(a, b).astype(np.float64))
    true = Fraction(int(a @ a) * int(b @ b))  # also the trace
    unit = Fraction(2) ** (math.floor(math.log2(true / 50)) - 20)
    assert lower < true <= upper == lower + 2 * unit
    assert (upper / unit).denominator == 1
    assert (upper / unit).numerator % 2 == 1
    assert squared_spectral_norm(np.zeros((3, 2))) == (Fraction(0), Fraction(0))


@pytest.mark.parametrize("above", [-1, 0, 1])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_norm_at_the_grid_is_decided_exactly(above: int, copies: int) -> None:
    """Squares that lie on the grid, or a 2⁻⁶⁴th beside it, which no double tells apart."""
    square = 4100**2 * 2**40  # an odd multiple, 1025², of the grid's unit, a power of two
    unit = Fraction(square, 1025**2)
    column, rest = [], square + above
    while rest:
        column.append(math.isqrt(rest))
        rest -= column[-1] ** 2
    matrix = np.kron(np.eye(copies), np.array(column, dtype=np.float64)[:, None])
    lower, upper = squared_spectral_norm(matrix)
    assert upper == square + (2 * unit if above > 0 else 0)
    assert upper - lower == 2 * unit


@pytest.mark.parametrize("kind", [GaussianProjection, RademacherProjection])
def test_the_norm_is_the_same_on_other_processors(
    kind: type[Projection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the digits of LAPACK are, and whichever way proves it."""
    known = kind(p=30, k=12, seed=2).spectral_norm()
    eigh = scipy.linalg.eigh

    def other(gram: Any, **options: Any) -> Any:
        values, vectors = eigh(gram, **options)
        return values, vectors + 1e-3 * np.arange(len(vectors))[:, None]

    def undecided(_: Any) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr("scipy.linalg.eigh", other)
    assert kind(p=30, k=12, seed=2).spectral_norm() == known
    monkeypatch.setattr("numpy.linalg.cholesky", undecided)
    assert kind(p=30, k=12, seed=2).spectral_norm() == known


@pytest.mark.parametrize("seed", thinned(range(20), 5))
def test_a_gram_matrix_beyond_exact_doubles(seed: int) -> None:
    """One long column, whose sum of squares is beyond 2⁵³."""
    column = np.random.default_rng(seed).integers(2**26, 2**27, (200_000, 1))
    lower, upper = squared_spectral_norm(column.astype(np.float64))
    assert lower < sum(x * x for x in column.ravel().tolist()) <= upper


def test_entries_too_large_for_exact_sums_are_refused() -> None:
    with pytest.raises(NumericalError, match="sums of 8 squares"):
        squared_spectral_norm(np.full((8, 1), 2.0**52))


@pytest.mark.parametrize("kind", KINDS)
def test_projections_are_plain_data(kind: str) -> None:
    projection = KINDS[kind](p=9, k=4, seed=3)
    projection.row_norm(1)
    copy = pickle.loads(pickle.dumps(projection))  # noqa: S301 (our own bytes)
    assert copy == projection
    assert copy.sha256() == projection.sha256()
    assert evolve(projection, seed=3).sha256() == projection.sha256()
    assert evolve(projection, seed=4) != projection


def test_very_sparse_projections_stay_sparse() -> None:
    projection = SparseProjection(p=20_000, k=16, seed=0, sparsity=141)
    count = projection.matrix.nnz
    mean = 20_000 * 16 / 141
    assert abs(count - mean) < 6 * math.sqrt(mean)
    assert sparse.issparse(projection.matrix)


def test_oporp_of_a_million_attributes_is_small() -> None:
    projection = OPORP(p=1_000_000, k=256, seed=0)
    matrix = projection.matrix
    assert matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes < 30e6
    assert projection.row_norm(1) == 1
    assert projection.spectral_norm().upper ** 2 == pytest.approx(3907, rel=1e-15)


@pytest.mark.parametrize("kind", [OPORP, GaussianProjection, RademacherProjection])
def test_a_realised_matrix_stays_what_its_norms_are_of(kind: type[Projection]) -> None:
    matrix = kind(p=6, k=3, seed=1).matrix
    values = matrix.data if is_sparse(matrix) else matrix
    with pytest.raises(ValueError, match="read-only"):
        values *= 3


def test_a_product_that_rounds_its_factors_is_found() -> None:
    """As bfloat16 and TF32 do: 8 and 11 bits of a single's 24 are left."""

    def rounded(bits: int) -> Callable[[Any, Any], Any]:
        def shorter(x: Any) -> Any:
            mantissa, exponent = np.frexp(x)
            return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)

        return lambda one, other: shorter(one) @ shorter(other)

    assert single_is_exact()
    assert single_is_exact(rounded(24))
    assert not single_is_exact(rounded(8))
    assert not single_is_exact(rounded(11))
