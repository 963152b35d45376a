"""How costs grow as the work grows by 10, 100 and 1,000, and why theory says so."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers.dpverify import ours
from benchmarks.peers.protocol import Case
from benchmarks.speed.accounting import bits
from benchmarks.speed.table import Growth, timed
from dpverify.auditing.attacks.exhaustive import exhaust
from dpverify.certificate._releasing import write_release
from dpverify.certificate.certify import CERTIFICATE, certify
from dpverify.certificate.checks import check_certificate, read_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.data.adjacency import Attribute, BitFlip
from dpverify.data.domain import Box
from dpverify.data.loading import open_records
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)
from tests.helpers.textbook import SUBJECTS, measured

__all__ = ["costs", "rows"]

UNIT = Box(low=Fraction(0), high=Fraction(1))
BY_TEN = (1, 10, 100, 1_000)
ASKED: dict[str, Any] = {"count": 1, "solve": "epsilon", "given": 1e-6}
QUICK, SLOW = 0.05, 0.5  # seconds up to which work is repeated 15 times, 3 times; else once


def rows() -> Iterator[Growth]:
    """Every growth."""
    yield from _releases()
    yield from _projections()
    yield from _noise()
    yield from _compositions()
    yield _audit()
    yield _exhaustive()
    yield _streaming()
    yield _verify()


def costs(make: Callable[[int], Callable[[], object]], sizes: Sequence[int]) -> tuple[float, ...]:
    """Median seconds of the work that is made for each size; what takes long is repeated less."""
    found = []
    for size in sizes:
        work = make(size)
        work()  # tables are made once
        start = perf_counter()
        work()
        once = perf_counter() - start
        if once < SLOW:
            (once,) = timed(work, repetitions=15 if once < QUICK else 3)
        found.append(once)
    return tuple(found)


def _grown(
    work: str,
    what: str,
    make: Callable[[int], Callable[[], object]],
    sizes: Sequence[int],
    expected: float,
    why: str,
) -> Growth:
    return Growth(
        work=work,
        what=what,
        sizes=tuple(sizes),
        seconds=costs(make, sizes),
        expected=expected,
        why=why,
    )


def _sketch(projection: Any) -> LinearSketch:
    return LinearSketch.calibrated(
        projection,
        epsilon=Fraction(5),
        delta=Fraction(1, 10**6),
        domain=UNIT,
        adjacency=Attribute(beta=Fraction(1)),
    )


def _release(sketch: LinearSketch, shape: tuple[int, int]) -> Callable[[], object]:
    records = np.random.default_rng(0).random(shape)
    return lambda: sketch.release(records, rng=SecureWords())


def _releases() -> Iterator[Growth]:
    sketch = _sketch(OPORP(p=784, k=256, seed=1))
    yield _grown(
        "release, DP-OPORP, p = 784, k = 256",
        "records",
        lambda n: _release(sketch, (n, 784)),
        [10 * by for by in BY_TEN],
        1,
        "p additions and k draws a record",
    )
    yield _grown(
        "release of 10 records, DP-OPORP, k = 64",
        "attributes",
        lambda p: _release(_sketch(OPORP(p=p, k=64, seed=1)), (10, p)),
        [1_000 * by for by in BY_TEN],
        1,
        "one addition an attribute; the draws stay",
    )
    yield _grown(
        "release of 10 records, Gaussian projection, k = 64",
        "attributes",
        lambda p: _release(_sketch(GaussianProjection(p=p, k=64, seed=1)), (10, p)),
        [100 * by for by in BY_TEN],
        1,
        "k products an attribute; the draws stay",
    )


def _projections() -> Iterator[Growth]:
    for kind in (RademacherProjection, GaussianProjection):
        yield _grown(
            f"{kind.name}: realised, row norms and SHA-256, k = 64",
            "attributes",
            partial(_measuring, kind),
            [100 * by for by in BY_TEN],
            1,
            "each of the p × k entries is drawn, squared and hashed once",
        )


def _measuring(kind: Any, p: int) -> Callable[[], object]:
    def measure() -> object:
        projection = kind(p=p, k=64, seed=1)  # a new one each time: it remembers its answers
        return projection.row_norm(2), projection.sha256()

    return measure


def _noise() -> Iterator[Growth]:
    samplers: dict[str, RoundedGaussian | RoundedLaplace] = {
        "Gaussian": RoundedGaussian(scale=1000.0),
        "Laplace": RoundedLaplace(scale=1000.0),
    }
    for name, sampler in samplers.items():
        yield _grown(
            f"{name} noise of scale 1,000 steps, secure words",
            "draws",
            partial(_drawing, sampler),
            [10_000 * by for by in BY_TEN],
            1,
            "one word a draw, and a second one seldom",
        )


def _drawing(sampler: RoundedGaussian | RoundedLaplace, size: int) -> Callable[[], object]:
    return lambda: sampler.sample((size,), rng=SecureWords())


def _compositions() -> Iterator[Growth]:
    power = "the T-th power of one transform a node; the nodes' spacing and reach shrink alike"
    coin = 1 / (1 + math.exp(-0.1))
    for one, why in (
        (Case(mechanism="gaussian", parameter=10.0, **ASKED), "μ² adds up: one Gaussian"),
        (Case(mechanism="laplace", parameter=10.0, **ASKED), f"from some hundred on {power}"),
        (Case(mechanism="randomized-response", parameter=coin, **ASKED), power),
    ):
        yield _grown(
            f"ε of T releases, {one.mechanism.replace('-', ' ')}, δ = 1e-6",
            "releases",
            partial(_composing, one),
            [10 * by for by in BY_TEN],
            0,
            why,
        )
    yield _grown(
        "ε of k bits, each with its own ε, δ = 1e-6",
        "bits",
        lambda count: partial(ours, bits(count)),
        (100, 1_000, 10_000),
        1,
        "k factors at each node; fewer nodes where more bits smooth the loss",
    )


def _composing(one: Case, count: int) -> Callable[[], object]:
    return partial(ours, replace(one, count=count))


def _audit() -> Growth:
    subject = SUBJECTS[0]
    measured(subject, 100, 0)  # loads what learns scores
    return _grown(
        "black-box audit of Laplace, with training",
        "draws a side",
        lambda draws: lambda: measured(subject, draws, 0),
        [100 * by for by in BY_TEN],
        1,
        "a call a draw, counted or learned from; the scores are sorted",
    )


def _exhaustive() -> Growth:
    return _grown(
        "exhaustive check of randomized response, worst ratio over all pairs",
        "data sets",
        _exhausting,
        [4, 32, 256],
        2,
        "n laws of n outputs each, and all n² pairs are asked whether they are neighbours; of "
        "these there are n·log₂ n, with n outputs each",
    )


def _exhausting(size: int) -> Callable[[], object]:
    positions = size.bit_length() - 1
    records = [np.array([bits], dtype=float) for bits in product((0, 1), repeat=positions)]
    mechanism = RandomizedResponse.calibrated(
        p=positions, epsilon=Fraction(1), delta=Fraction(0), domain=UNIT, adjacency=BitFlip()
    )
    return lambda: exhaust(mechanism, records).ratio()


def _streaming() -> Growth:
    sketch = _sketch(OPORP(p=64, k=16, seed=1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def make(count: int) -> Callable[[], object]:
            path = folder / "records.npy"
            np.save(path, np.random.default_rng(0).random((count, 64)))
            return lambda: write_release(sketch, open_records(path), folder)

        return _grown(
            "release from a file to a file, DP-OPORP, p = 64, k = 16",
            "records",
            make,
            [100 * by for by in BY_TEN],
            1,
            "each block is read, released, compressed and hashed once",
        )


CONFIGURATION = """
[data]
path = "records.npy"
domain = {{ low = 0, high = 1 }}
[mechanism]
name = "dp-oporp"
k = 16
[privacy]
epsilon = 5
delta = 1e-6
adjacency = {{ kind = "attribute", beta = 1 }}
[projection]
seed = 2023
[audit]
alpha = 0.01
draws = {draws}
seed = 7
"""


def _verify() -> Growth:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "records.npy", np.random.default_rng(0).random((100, 64)))

        def make(draws: int) -> Callable[[], object]:
            (folder / "c.toml").write_text(CONFIGURATION.format(draws=draws), encoding="utf-8")
            out = folder / f"out-{draws}"
            certify(load_configuration(folder / "c.toml"), out, base=folder)
            return lambda: check_certificate(read_certificate(out / CERTIFICATE), out)

        return _grown(
            "verify of a certificate of DP-OPORP, p = 64, k = 16",
            "draws a side of each audit",
            make,
            (1_000, 10_000, 100_000),
            1,
            "every audit is drawn again; workers are started and bounds enclosed once",
        )
