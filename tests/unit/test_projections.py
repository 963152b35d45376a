from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.enclosure import squared
from dpverify.errors import ParameterError
from dpverify_mechanisms.projections import (
    OPORP,
    GaussianProjection,
    Projection,
    RademacherProjection,
)

KINDS: list[type[Projection]] = [OPORP, RademacherProjection, GaussianProjection]
# A change of one of these breaks every published certificate that rests on it.
PINNED = {
    "oporp": "405ab8fc464e32f92ead41d064e3da47c390ccf004e838bd7ac3df04f07e2de9",
    "rademacher": "954c61735f1b6885cef970f8924ccbcc4d6d647430d499ddea3c7c089040c345",
    "gaussian": "4f6ca96fcac78b94f28fac12f9282fe58f07cb65356eb5b7c166f9db900cf134",
}


def dense(projection: Projection) -> np.ndarray[Any, Any]:
    return np.asarray(sparse.csr_array(projection.matrix).todense())


@pytest.mark.parametrize("kind", KINDS)
def test_realisation_is_pinned(kind: type[Projection]) -> None:
    projection = kind(p=10, k=4, seed=2023)
    assert projection.sha256() == PINNED[kind.name]
    assert (dense(projection) == dense(kind(p=10, k=4, seed=2023))).all()
    assert (dense(projection) != dense(kind(p=10, k=4, seed=2024))).any()


@pytest.mark.parametrize("kind", KINDS)
def test_digest_is_what_its_docstring_says(kind: type[Projection]) -> None:
    projection = kind(p=9, k=4, seed=5)
    matrix = dense(projection)
    rows = [[(j, int(v)) for j, v in enumerate(row) if v] for row in matrix.tolist()]
    streams: list[list[int]] = [
        [len(row) for row in rows],
        [j for row in rows for j, _ in row],
        [v for row in rows for _, v in row],
    ]
    digest = hashlib.sha256(b"9 4")
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


def test_permutations_are_uniform() -> None:
    """All 24 orders of four coordinates, chi-squared at level 1e-6 with 23 degrees of freedom."""
    counts: dict[tuple[int, ...], int] = {}
    draws = 4800
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
    ],
)
def test_bad_sizes(kind: type[Projection], p: int, k: int, seed: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(p=p, k=k, seed=seed)


def test_unequal_bins_collide_less_than_padding() -> None:
    """784 into 256: the certified example. Padding to 1024 would collide more."""
    projection = OPORP(p=784, k=256, seed=0)
    padded = OPORP(p=1024, k=256, seed=0)
    assert projection.pair_variance == Fraction(1632, 784 * 783)
    assert projection.pair_variance < padded.pair_variance
    assert OPORP(p=768, k=256, seed=0).pair_variance == Fraction(768 - 256, 256 * 767)
