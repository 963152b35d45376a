"""Planted bugs: broken mechanisms that an audit must find, each beside its correct twin.

A check that can't fail is a defect, so every audit is run on these before it is believed.
"""

from __future__ import annotations

from typing import Any

from dpverify_audits.planted import (
    calibration,
    counts,
    linear_sketch,
    min_hash,
    noise_addition,
    randomized_response,
    reports,
    secret_projection,
    sign_sketch,
)
from dpverify_audits.planted.bug import Mislabelled, PlantedBug

__all__ = ["SUITE", "Mislabelled", "PlantedBug"]

SUITE: tuple[PlantedBug[Any], ...] = (
    *linear_sketch.BUGS,
    *calibration.BUGS,
    *sign_sketch.BUGS,
    *randomized_response.BUGS,
    *min_hash.BUGS,
    *noise_addition.BUGS,
    *secret_projection.BUGS,
    *counts.BUGS,
    *reports.BUGS,
)
