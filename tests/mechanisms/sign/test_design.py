"""The design helper of sign sketches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.designs import Design, DesignPoint, design
from dpverify.errors import ParameterError
from dpverify_mechanisms.projections.independent import (
    GaussianProjection,
    Projection,
    RademacherProjection,
)
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign.estimators import (
    Angle,
    BitAgreement,
    SignCollision,
    overlapping_pairs,
)
from dpverify_mechanisms.sign.flip_rules import LADDERS
from dpverify_mechanisms.sign.sketch import SignSketch

TARGET: dict[str, Any] = {
    "epsilon": Fraction(4),
    "domain": Box(low=Fraction(0), high=Fraction(1)),
    "adjacency": Attribute(beta=Fraction(1)),
}
PAIRS = overlapping_pairs([0.25, 0.75], p=16, nonzero=8)


def sketch_of(point: DesignPoint) -> SignSketch:
    assert isinstance(point.mechanism, SignSketch)
    return point.mechanism


def chosen(projections: Sequence[Projection], **given: Any) -> Design:
    """The best of some projections and ladders, response alone unless others are named."""

    def make(*, projection: Projection, ladder: str, **target: Any) -> SignSketch:
        return SignSketch.calibrated(projection, ladder=LADDERS[ladder], **target)

    options: dict[str, Any] = {"at": PAIRS, "ladder": ["response"]} | TARGET | given
    return design(make, projection=list(projections), **options)


def test_gaussian_optimum_is_the_least_exact_variance() -> None:
    sizes = [1, 2, 4, 8, 16, 32, 64]
    found = chosen([GaussianProjection(p=16, k=k, seed=3) for k in sizes], delta=Fraction(1, 10**6))
    assert [point.parameters["projection"].k for point in found.curve] == sizes
    for point in found.curve:
        collision = SignCollision(sketch=sketch_of(point), realised=False)
        exact = np.mean([collision.variance(*pair) for pair in PAIRS])
        assert point.variance == pytest.approx(exact, rel=1e-12)
        assert point.squared_bias == 0
        angle = Angle(sketch=sketch_of(point), realised=False)
        as_angle = np.mean([angle.variance(*pair) for pair in PAIRS])
        assert math.pi**2 * point.variance == pytest.approx(as_angle, rel=1e-12)
        assert point.mechanism.privacy().delta_at(TARGET["epsilon"]).upper <= 1e-6
    # From the probability of agreement alone: f(k) is what calibration by N = k gives.
    by_hand = {}
    for point in found.curve:
        k, c = point.parameters["projection"].k, float(sketch_of(point).retained())
        chances = [0.5 + c**2 * (0.5 - math.acos(cosine) / math.pi) for cosine in (0.25, 0.75)]
        by_hand[k] = np.mean([a * (1 - a) / (k * c**4) for a in chances])
    assert found.best.parameters["projection"].k == min(by_hand, key=lambda k: by_hand[k])
    assert found.best.variance == pytest.approx(min(by_hand.values()), rel=1e-9)


def enumerated(point: DesignPoint, draws: int) -> tuple[float, float]:
    """Variance and squared bias from the exact law of both releases, over all redrawn sketches."""
    gamma, k = point.parameters["contrast"], sketch_of(point).projection.k
    variances, biases = [], []
    for record, other in PAIRS:
        first = second = Fraction(0)
        for seed in range(draws):
            sketch = sketch_of(point).redrawn(seed)
            laws = [sketch.distribution(r).items() for r in (record, other)]
            for (a, chance), (b, chance_too) in product(*laws):
                differing = int.from_bytes(a, "big") ^ int.from_bytes(b, "big")
                estimate = Fraction(1, 2) + (
                    Fraction(k - differing.bit_count(), k) - Fraction(1, 2)
                ) / Fraction(gamma)
                share = chance * chance_too / draws
                first += share * estimate
                second += share * estimate**2
        x, y = np.asarray(record), np.asarray(other)
        angle = math.acos(x @ y / math.sqrt((x @ x) * (y @ y)))
        variances.append(float(second - first**2))
        biases.append((float(first) - (1 - angle / math.pi)) ** 2)
    return float(np.mean(variances)), float(np.mean(biases))


@pytest.mark.parametrize("ladder", LADDERS)
@pytest.mark.parametrize(
    "projection",
    [
        RademacherProjection(p=16, k=3, seed=5),
        RepeatedOPORP(p=16, k=4, seed=5, repetitions=2),
    ],
    ids=lambda projection: projection.name,
)
def test_moments_by_enumeration(projection: Projection, ladder: str) -> None:
    found = chosen([projection], ladder=[ladder], draws=3)
    variance, squared_bias = enumerated(found.best, draws=3)
    assert found.best.variance == pytest.approx(variance, rel=1e-9)
    assert found.best.squared_bias == pytest.approx(squared_bias, rel=1e-9)


def test_contrast_of_a_graded_ladder_is_the_least_squares_line() -> None:
    candidates = [RademacherProjection(p=16, k=8, seed=1)]
    found = chosen(candidates, ladder=["smooth"], draws=2).best
    sketches = [sketch_of(found).redrawn(seed) for seed in range(2)]
    agreement = [
        [float(BitAgreement(sketch=one, realised=True).truth(*pair)) for one in sketches]
        for pair in PAIRS
    ]
    truths = [SignCollision(sketch=sketches[0], realised=False).truth(*pair) for pair in PAIRS]
    line, *_ = np.linalg.lstsq(
        np.array(truths)[:, None] - 0.5, np.mean(agreement, axis=1) - 0.5, rcond=None
    )
    assert found.parameters["contrast"] == pytest.approx(line[0], rel=1e-12)


def test_best_of_all_kinds() -> None:
    candidates = [
        *(RademacherProjection(p=16, k=k, seed=1) for k in (2, 8, 32)),
        *(RepeatedOPORP(p=16, k=8, seed=1, repetitions=t) for t in (1, 2, 4)),
    ]
    ladders = list(LADDERS)
    found = chosen(candidates, ladder=ladders, draws=4)
    assert len(found.curve) == len(candidates) * len(ladders)
    errors = [point.variance + point.squared_bias for point in found.curve]
    assert found.best is found.curve[int(np.argmin(errors))]
    assert set(found.curve[0].parameters) == {"projection", "ladder", "contrast"}
    smooth = [point.parameters for point in found.curve if point.parameters["ladder"] == "smooth"]
    assert [parameters["projection"] for parameters in smooth] == candidates
    for point in found.curve:
        assert point.mechanism.privacy().epsilon_at(0).upper <= 4


def test_least_norm_is_a_claim_over_the_draw() -> None:
    delta = Fraction(1, 10**6)
    pairs = overlapping_pairs([0.5], p=64, nonzero=32)
    candidates = [GaussianProjection(p=64, k=16, seed=1)]
    realised = chosen(candidates, at=pairs, delta=delta)
    over = chosen(candidates, at=pairs, delta=delta, least_norm=Fraction(5))
    assert over.best.variance < realised.best.variance
    assert sketch_of(over.best).least_norm == 5


def test_overlapping_pairs_have_the_cosine() -> None:
    for cosine, (x, y) in zip(
        [0, 0.5, 1], overlapping_pairs([0, 0.5, 1], p=8, nonzero=4), strict=True
    ):
        first, second = np.asarray(x), np.asarray(y)
        assert first @ second / (np.linalg.norm(first) * np.linalg.norm(second)) == cosine


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"projections": []}, r"projection=\[\] must be non-empty"),
        ({"at": []}, r"at=\[\] must be non-empty"),
        ({"ladder": []}, r"ladder=\[\] must be non-empty"),
        ({"draws": 0}, "draws=0 must be at least 1"),
        (
            {"at": overlapping_pairs([0], p=16, nonzero=8), "ladder": ["smooth"]},
            "all orthogonal",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_what_can_not_be_chosen_from_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"projections": [RademacherProjection(p=16, k=3, seed=5)]} | change
    with pytest.raises(ParameterError, match=message):
        chosen(**given)


def test_refuses_cosines_that_do_not_fit() -> None:
    with pytest.raises(ParameterError, match=r"cosines=1\.5 must be in"):
        overlapping_pairs([1.5], p=8, nonzero=4)
    with pytest.raises(ParameterError, match="cosines=0 must be larger for 6 of 8"):
        overlapping_pairs([0], p=8, nonzero=6)
    with pytest.raises(ParameterError, match="nonzero=0 must be"):
        overlapping_pairs([0], p=8, nonzero=0)
