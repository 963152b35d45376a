"""Exactly rounded draws, words included, against inexact ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.speed.table import Row, timed
from dpverify.sampling.gaussian import RoundedGaussian
from dpverify.sampling.words import SecureWords

__all__ = ["rows"]

COUNT = 2_000_000


def rows() -> Iterator[Row]:
    """Every comparison."""
    for scale in (16.0, 1000.0, 2.0**30):
        yield _gaussian(scale)


def _gaussian(scale: float) -> Row:
    sampler, rng = RoundedGaussian(scale=scale), np.random.default_rng()
    ours, theirs = timed(
        lambda: sampler.sample((COUNT,), rng=SecureWords()),
        lambda: rng.normal(0.0, scale, COUNT),
    )
    return Row(
        area="noise",
        work=f"Gaussian, scale {scale:.0f} steps, secure words included",
        unit="ns a draw",
        ours=ours / COUNT * 1e9,
        peer="numpy normal",
        theirs=theirs / COUNT * 1e9,
    )
