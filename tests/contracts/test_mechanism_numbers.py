"""Every constructor of a mechanism reads numbers of any kind, and refuses others by a message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.errors import DPVerifyError
from dpverify.privacy import Certifiable
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.exponential import ExponentialMinHash
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.min_hash.rules import BucketResponse
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    OPORP,
    IdentityProjection,
    SparseProjection,
)
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.projections.sjlt import SJLT, DKSProjection
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.profiles import sampled

BOX = dpv.Box(0, 1)
SIZE = {"p": 8, "k": 4, "seed": 1}
TARGET: dict[str, Any] = {"epsilon": 2, "delta": Fraction(1, 1024)}
NEAR: dict[str, Any] = {"domain": BOX, "adjacency": dpv.Attribute(1)}
SETS: dict[str, Any] = {"domain": dpv.Sets(min_size=2), "adjacency": dpv.Items(1)}
HASHES = {"items": 9, "functions": 3, "buckets": 4, "seed": 1}
"""What each constructor takes; its numbers are those that are no bool, text or object."""
CONSTRUCTORS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "oporp": (OPORP, SIZE),
    "identity": (IdentityProjection, {"p": 8, "k": 8, "seed": 0}),
    "repeated oporp": (RepeatedOPORP, SIZE | {"repetitions": 2}),
    "sparse": (SparseProjection, SIZE | {"sparsity": 3}),
    "sjlt": (SJLT, SIZE | {"sparsity": 2}),
    "dks": (DKSProjection, SIZE | {"copies": 2}),
    "fjlt": (FJLT, SIZE | {"density": Fraction(1, 2)}),
    "hashes": (KeyedHashes, HASHES),
    "bucket response": (BucketResponse, {"keep": Fraction(3, 4)}),
    "geometric noise": (GeometricNoise, {"ratio": Fraction(1, 2)}),
    "exponential": (
        ExponentialMinHash,
        {
            "hashes": KeyedHashes(items=9, functions=3, buckets=4, seed=1),
            "ratio": Fraction(1, 2),
            "domain": dpv.Sets(min_size=2),
            "choices": 2,
        },
    ),
    "randomized response": (
        RandomizedResponse,
        {"p": 8, "flip": Fraction(1, 4), "domain": BOX, "adjacency": dpv.BitFlip()},
    ),
    "randomized response, calibrated": (
        RandomizedResponse.calibrated,
        {"p": 8, "domain": BOX, "adjacency": dpv.BitFlip()} | TARGET,
    ),
    "noise addition": (
        NoiseAddition.calibrated,
        {"rows": 4, "p": 8, "grid_steps": 4} | NEAR | TARGET,
    ),
    "dp-oporp": (LinearSketch.dp_oporp, SIZE | NEAR | TARGET | {"grid_steps": 16}),
    "dp-signrp-rr": (
        SignSketch.dp_signrp_rr,
        SIZE | NEAR | TARGET | {"least_norm": Fraction(1, 2)},
    ),
    "rr-min-hash": (MinHash.rr_min_hash, {"p": 9, "k": 3, "buckets": 4, "seed": 1} | SETS | TARGET),
    "cuts": (CutSketch, {"p": 6, "sketch_rows": 4, "w": Fraction(1, 2)}),
    "cuts, calibrated": (CutSketch.calibrated, {"p": 9, "sketch_rows": 4} | TARGET),
    "covariance": (
        CovarianceSketch,
        {"p": 3, "sketch_rows": 4, "w_squared": Fraction(1, 2), "domain": dpv.Ball(1)},
    ),
    "covariance, calibrated": (
        CovarianceSketch.calibrated,
        {"p": 3, "sketch_rows": 16, "domain": dpv.Ball(1)} | TARGET,
    ),
    "by name": (dpv.mechanism, {"name": "dp-oporp"} | SIZE | NEAR | TARGET),
}


FORMS: Mapping[str, Callable[[int | Fraction], Any]] = {
    "fraction": Fraction,
    "decimal": lambda value: Decimal(value.numerator) / value.denominator,
    "float": float,
    "text": lambda value: str(Decimal(value.numerator) / value.denominator),
    "double of numpy": lambda value: np.float64(float(value)),
    "integer of numpy": lambda value: np.uint8(value) if value.denominator == 1 else float(value),
}
"""The same number, as users write it: all of these are dyadic, so that doubles hold them."""


def numbers(arguments: Mapping[str, Any]) -> list[str]:
    return [name for name, value in arguments.items() if isinstance(value, int | Fraction)]


def test_every_mechanism_is_among_them() -> None:
    tried = {getattr(make, "__self__", make) for make, _ in CONSTRUCTORS.values()}
    kinds = [*Certifiable.__subclasses__()]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    announced = {
        kind
        for kind in kinds
        if kind.__module__.startswith("dpverify_mechanisms.") and not inspect.isabstract(kind)
    }
    missing = {kind.__name__ for kind in announced - tried}
    assert SignSketch in announced
    assert not missing, f"give {missing} numbers in CONSTRUCTORS"


@pytest.mark.parametrize(
    "case", sampled(CONSTRUCTORS, CONSTRUCTORS.keys() - {"covariance, calibrated"})
)
def test_every_form_of_a_number_makes_the_same(case: str) -> None:
    make, arguments = CONSTRUCTORS[case]
    expected = make(**arguments)
    for form in FORMS.values():
        made = make(**arguments | {name: form(arguments[name]) for name in numbers(arguments)})
        assert made == expected
        assert repr(made) == repr(expected)


JUNK = st.one_of(
    st.none(),
    st.text(alphabet="xe/ .-", max_size=4),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 1j, [], {}, object(), b"1"]),
    st.sampled_from([np.float64("nan"), np.array([1, 2]), Decimal("NaN"), -1, 0.3, "1e999999"]),
)


@pytest.mark.parametrize("case", CONSTRUCTORS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_junk_is_refused_by_name(case: str, data: st.DataObject) -> None:
    make, arguments = CONSTRUCTORS[case]
    name = data.draw(st.sampled_from(numbers(arguments)))
    junk = data.draw(JUNK)
    with suppress(DPVerifyError):  # anything else, a TypeError say, fails the test
        make(**arguments | {name: junk})
