"""Noisy pairwise distances with noise for a single one."""

from __future__ import annotations

from fractions import Fraction

from attrs import evolve

from dpverify.data.adjacency import BitFlip
from dpverify.data.domain import Box
from dpverify.privacy import Certifiable
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_audits.planted.bug import Mislabelled, PlantedBug, by_its_accountant, noise_times
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition

__all__ = ["BUGS", "distances", "for_one_distance"]

_ROWS = 5
_FACTOR = (_ROWS - 1) ** -0.5


def distances() -> NoiseAddition:
    """Five records of three bits."""
    return NoiseAddition.calibrated(
        rows=_ROWS,
        p=3,
        epsilon=Fraction(2),
        delta=Fraction(1, 1000),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=BitFlip(),
    )


def for_one_distance(mechanism: NoiseAddition) -> Certifiable:
    """The mechanism with noise for one entry that changes."""
    noise = RoundedGaussian(scale=mechanism.noise.scale * _FACTOR)
    return Mislabelled(claim=mechanism, actual=evolve(mechanism, noise=noise))


BUGS: tuple[PlantedBug[NoiseAddition], ...] = (
    PlantedBug(
        name="noise for one distance",
        mistake="the sensitivity of one distance, where all n − 1 of a record change at once",
        twin=distances,
        plant=for_one_distance,
        found_by=("white-box", "moments", "grey-box"),
        rates=noise_times(_FACTOR),
        epsilon=by_its_accountant,
    ),
)
