"""The second checker seeks noise where certify does: the same sizes of a sketch, the same ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.certificate.build import build
from dpverify.certificate.certify import configured, requested
from dpverify.certificate.derive import synthetic
from dpverify.certificate.meaning import size_errors
from dpverify_check import dpverify_check as second

AUDIT = {"draws": 100, "moment_draws": 50}
SETS = {
    "data": {"domain": {"kind": "sets", "min_size": 4, "max_size": 4}},
    "projection": {"seed": 77},
    "audit": AUDIT,
}
ITEM = {"kind": "attribute", "beta": 1}
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "Gaussian noise finer than the grid at one size": (
        1,
        {
            **SETS,
            "mechanism": {"name": "dp-rp-g-opt-b", "k": 2},
            "privacy": {"epsilon": "0.5", "delta": "0.3", "adjacency": ITEM},
        },
    ),
    "Laplace noise finer than a 64th of the grid at one size": (
        1,
        {
            **SETS,
            "mechanism": {"name": "dp-rp-g-opt-b", "k": 2, "noise": "laplace"},
            "privacy": {"epsilon": 90, "delta": 0, "adjacency": ITEM},
        },
    ),
    "a floor in the last half of what may be": (
        0,
        {
            "data": {"domain": {"kind": "graph"}},
            "mechanism": {"name": "jl-graph-cuts", "sketch_rows": 40},
            "privacy": {
                "epsilon": "0.5",
                "delta": "1e-6",
                "adjacency": {"kind": "edge", "weight": "1/3"},
            },
            "audit": AUDIT,
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_sizes_are_allowed(case: str) -> None:
    value, configuration = CASES[case]
    _, inputs, mechanism = configured(requested(np.full((4, 4), value), configuration, None, {}))
    probe = synthetic(inputs, mechanism)[-1]
    certified = [each.size for each in size_errors(inputs, probe, build)]
    assert certified == [each["size"] for each in second._sizes(inputs.model_dump_json())]


def test_no_loss_of_laplace_noise_is_beyond_its_largest() -> None:
    curve = second.LaplaceCurve(
        ((Fraction(1, 100), 1), (Fraction(2, 100), 2), (Fraction(5, 100), 1))
    )
    beyond = float(np.nextafter(float(curve.most), 1))
    assert curve.rates(beyond) == (0.0, 0.0)
    assert curve.rates(-beyond) == (1.0, 1.0)
    assert curve.quantile(0.01) <= beyond


def test_a_double_that_is_not_below_0_is_not_minus_0() -> None:
    assert str(second.above(Fraction(0))) == "0.0"
