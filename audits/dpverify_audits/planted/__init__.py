"""Planted bugs: broken mechanisms that an audit must find, each beside its correct twin.

A check that can't fail is a defect, so every audit is run on these before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpverify.mechanism import Certifiable
from dpverify_audits.planted.linear_sketch import half_sensitivity, noise_scaled
from dpverify_mechanisms.linear_sketch import LinearSketch

__all__ = ["SUITE", "PlantedBug"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A mistake that people make.

    Attributes
    ----------
    name : short
    mistake : what was done wrong
    plant : makes the broken mechanism from its correct twin
    """

    name: str
    mistake: str
    plant: Callable[[LinearSketch], Certifiable]


SUITE = (
    PlantedBug(
        name="noise scaled by 0.8",
        mistake="the noise's standard deviation is 0.8 of what the claim needs",
        plant=lambda sketch: noise_scaled(sketch, 0.8),
    ),
    PlantedBug(
        name="sensitivity halved",
        mistake="noise calibrated to a move of beta/2, as if records moved both ways from a middle",
        plant=half_sensitivity,
    ),
)
