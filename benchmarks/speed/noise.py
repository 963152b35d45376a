"""Exactly rounded draws against inexact ones, against OpenDP's, and against their random words.

Costs are processor time of one thread: what one core gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from time import thread_time
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.speed import DRAWS, SCALE
from benchmarks.speed.elsewhere import loops_by_each, peer
from benchmarks.speed.table import Row, timed
from dpverify.sampling.coins import flips
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise

__all__ = ["rows"]

COUNT = 1_000_000
TURNS = 101  # of about 10 ms each
AIM = 12.5  # ns a draw: 80 million a second on one core, words not counted
SCALES = (16.0, 1000.0, 2.0**30, 2.0**34, 2.0**40)
MET = 2.0**34  # up to here the aim stands
DECIDED = (
    "aim withdrawn: half of it is ball arithmetic for 7 to 9 of 10,000 words, of which the "
    "product's round-off alone leaves 2 open in doubles"
)


def rows() -> Iterator[Row]:
    """Every comparison."""
    for sampler in (RoundedGaussian, RoundedLaplace):
        for scale in SCALES:
            for runner in loops_by_each():
                yield _without_words(sampler(scale=scale), runner)
    rng = np.random.default_rng()
    for scale in SCALES[:3]:
        yield _against_numpy(RoundedGaussian(scale=scale), rng.normal)
        yield _against_numpy(RoundedLaplace(scale=scale), rng.laplace)
    for ratio in (Fraction(1, 2), 1 - Fraction(1, 2**7)):
        yield _geometric(ratio, rng)
    yield _coins(rng)
    yield from _words(rng)
    for law, sampler in (("gaussian", RoundedGaussian), ("laplace", RoundedLaplace)):
        yield _against_opendp(law, sampler(scale=SCALE))


Sampler = RoundedGaussian | RoundedLaplace


def _name(sampler: Sampler) -> str:
    law = "Gaussian" if isinstance(sampler, RoundedGaussian) else "Laplace"
    power = f"2^{sampler.scale.hex().split('p+')[1]}"
    return f"{law}, scale {power if sampler.scale >= 2**20 else f'{sampler.scale:.0f}'} steps"


class _Given:
    """Words that were drawn beforehand, over and over."""

    policy: ClassVar[str] = "given"

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words, self._next = words, 0

    def words(self, count: int) -> NDArray[np.uint64]:
        start = self._next if self._next + count <= self._words.size else 0
        self._next = start + count
        return self._words[start : self._next]


def _row(work: str, peer_name: str, *works: Callable[[], object]) -> Row:
    ours, theirs = timed(*works, repetitions=TURNS, clock=thread_time)
    return Row(
        area="noise",
        work=work,
        unit="CPU ns a draw",
        ours=ours / COUNT * 1e9,
        peer=peer_name,
        theirs=theirs / COUNT * 1e9,
    )


def _without_words(sampler: Sampler, runner: str) -> Row:
    words = _Given(SecureWords().words(COUNT))
    draw = partial(sampler.sample, (COUNT,), rng=words)
    (ours,) = timed(draw, repetitions=TURNS, clock=thread_time)
    return Row(
        area="noise",
        work=f"{_name(sampler)}, by {runner}, words not counted",
        unit="CPU ns a draw",
        ours=ours / COUNT * 1e9,
        peer="aim",
        theirs=AIM,
        aim=1 if sampler.scale <= MET else None,
        note=f"{COUNT / ours / 1e6:.0f} million draws a second"
        + (f"; {DECIDED}" if sampler.scale > MET else ""),
    )


def _against_numpy(sampler: Sampler, theirs: Callable[..., object]) -> Row:
    return _row(
        f"{_name(sampler)}, secure words included",
        "numpy, inexact and replayable",
        lambda: sampler.sample((COUNT,), rng=SecureWords()),
        lambda: theirs(0.0, sampler.scale, COUNT),
    )


def _geometric(ratio: Fraction, rng: np.random.Generator) -> Row:
    noise, p = GeometricNoise(ratio=ratio), float(1 - ratio)
    return _row(
        f"two-sided geometric, ratio {ratio}, secure words included",
        "numpy, the difference of two",
        lambda: noise.sample((COUNT,), rng=SecureWords()),
        lambda: rng.geometric(p, COUNT) - rng.geometric(p, COUNT),
    )


def _coins(rng: np.random.Generator) -> Row:
    share = Fraction(1, 10)
    numerator = np.uint64(int(share * 2**64))
    return _row(
        "coins, secure words included",
        "numpy random() < p",
        lambda: flips(numerator, (COUNT,), rng=SecureWords()),
        lambda: rng.random(COUNT) < float(share),
    )


def _words(rng: np.random.Generator) -> Iterator[Row]:
    yield _row(
        "secure random words",
        "numpy's raw words",
        lambda: SecureWords().words(COUNT),
        lambda: rng.bit_generator.random_raw(COUNT),
    )
    sampler = RoundedGaussian(scale=SCALE)
    yield _row(
        f"{_name(sampler)}, secure words included",
        "its words alone",
        lambda: sampler.sample((COUNT,), rng=SecureWords()),
        lambda: SecureWords().words(COUNT),
    )


def _against_opendp(law: str, sampler: Sampler) -> Row:
    theirs: float | None = None
    with peer("opendp", f"opendp-{law}") as (work, reason):
        if work is None:
            (ours,) = timed(lambda: sampler.sample((DRAWS,), rng=SecureWords()), clock=thread_time)
        else:
            ours, theirs = timed(
                lambda: sampler.sample((DRAWS,), rng=SecureWords()),
                work,
                repetitions=5,
                clock=thread_time,
            )
    return Row(
        area="noise",
        work=f"{_name(sampler)}, {DRAWS:,} whole numbers",
        unit="CPU ns a draw",
        ours=ours / DRAWS * 1e9,
        peer="OpenDP, a vector of integers",
        theirs=None if theirs is None else theirs / DRAWS * 1e9,
        note=reason,
    )
