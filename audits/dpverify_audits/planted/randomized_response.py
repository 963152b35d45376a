"""Randomized response that flips too rarely, or not all bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.data.adjacency import BitFlip
from dpverify.data.domain import Box
from dpverify.privacy import Certifiable
from dpverify.sampling.words import Words
from dpverify_audits.planted.bug import Enumerable, PlantedBug, by_enumeration, noise_times
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse

__all__ = ["BUGS", "bits", "flipping", "whole_bytes"]

_EPSILON = Fraction(3, 2)
_TAIL = Fraction(math.exp(-float(_EPSILON)) / 2)
_APPROXIMATION = Fraction(1, 2) - _EPSILON / 4


def bits() -> RandomizedResponse:
    """Twelve bits, of which the last four share a byte with nothing."""
    return RandomizedResponse.calibrated(
        p=12,
        epsilon=_EPSILON,
        delta=Fraction(0),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=BitFlip(),
    )


def flipping(mechanism: RandomizedResponse, flip: Fraction) -> Certifiable:
    """The mechanism with another flip probability."""
    return Enumerable(claim=mechanism, actual=evolve(mechanism, flip=flip))


@frozen(kw_only=True)
class _WholeBytes(RandomizedResponse):
    """Flips the bits of whole bytes alone."""

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[np.uint8]:
        """The correct release with its last byte as it was, unless that is full."""
        released = RandomizedResponse.release(self, records, rng=rng)
        whole = self.p // 8
        released[:, whole:] = self.packed(records)[:, whole:]
        return released

    def distribution(self, record: ArrayLike) -> Mapping[bytes, Fraction]:
        """Exact probability of every released row of bytes."""
        own = self.packed(np.atleast_2d(record))[0]
        flipped = 8 * (self.p // 8)
        law = {}
        for flips in product((0, 1), repeat=flipped):
            padded = np.zeros(8 * own.size, dtype=np.uint8)
            padded[:flipped] = flips
            count = sum(flips)
            share = self.flip**count * (1 - self.flip) ** (flipped - count)
            law[(own ^ np.packbits(padded)).tobytes()] = share
        return law


def whole_bytes(mechanism: RandomizedResponse) -> Certifiable:
    """The mechanism that forgets the last byte's bits."""
    actual = _WholeBytes(
        p=mechanism.p,
        flip=mechanism.flip,
        domain=mechanism.domain,
        adjacency=mechanism.adjacency,
    )
    return Enumerable(claim=mechanism, actual=actual)


def _certain(mechanism: RandomizedResponse, threshold: float) -> tuple[float, float]:
    """The last bit comes out as it is."""
    loss = mechanism.privacy().loss().upper
    return float(threshold <= loss), float(threshold <= -loss)


def _equivalent(flip: Fraction) -> float:
    """The claim's log-odds over those of this flip probability."""
    return float(_EPSILON) / math.log((1 - flip) / flip)


BUGS: tuple[PlantedBug[RandomizedResponse], ...] = (
    PlantedBug(
        name="flips with e^-ε/2",
        mistake="keep probability 1 − e^−ε/2, a Laplace tail, in place of e^ε/(1 + e^ε)",
        twin=bits,
        plant=lambda mechanism: flipping(mechanism, _TAIL),
        found_by=("white-box", "moments", "exhaustive", "black-box", "sequential"),
        draws=2000,
        rates=noise_times(_equivalent(_TAIL)),
        epsilon=by_enumeration,
    ),
    PlantedBug(
        name="flips with 1/2 - ε/4",
        mistake="the approximation of Kenthapadi et al. 2013, section 4.3.3, which is too small",
        twin=bits,
        plant=lambda mechanism: flipping(mechanism, _APPROXIMATION),
        found_by=("white-box", "moments", "exhaustive"),
        draws=2000,
        rates=noise_times(_equivalent(_APPROXIMATION)),
        epsilon=by_enumeration,
    ),
    PlantedBug(
        name="the last byte is not flipped",
        mistake="the flips were made for p // 8 whole bytes, which leaves the rest as they are",
        twin=bits,
        plant=whole_bytes,
        found_by=(
            "white-box",
            "moments",
            "exhaustive",
            "determinism",
            "precision",
            "black-box",
            "sequential",
        ),
        rates=_certain,
        epsilon=by_enumeration,
    ),
)
