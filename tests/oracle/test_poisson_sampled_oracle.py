"""Releases on samples, beside lattices of losses in doubles (`sampled_oracle`)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses import _normal_mixture
from tests.helpers.profiles import day_and_night
from tests.helpers.sampled_oracle import AnswersOracle, SampledOracle
from tests.helpers.sampled_pairs import Batch, Laplace, Normal, Removal, Replaced, answers

_SLACK = 1e-13


def _random(count: int) -> list[tuple[float, float, int, float]]:
    draw = np.random.default_rng(20261122)
    rows = []
    for _ in range(count):
        sigma = round(math.exp(draw.uniform(math.log(0.3), math.log(30))), 3)
        q = float(f"{10 ** draw.uniform(-4, 0):.3g}")
        times = round(math.exp(draw.uniform(0, math.log(2000))))
        rows.append((sigma, q, times, float(f"{10 ** draw.uniform(-12, -3):.3g}")))
    return rows


# σ, q, T, δ. The second to the fourth are of the kinds that other accountants are compared on.
ROWS = [
    (4.0, 0.5, 100, 1e-6),
    (0.5, 0.001, 100, 1e-10),
    (0.8, 0.01, 1000, 1e-5),
    (1.0, 0.001, 2000, 1e-7),
    (0.3, 0.1, 10, 1e-5),
    (2.0, 1.0, 10, 1e-5),
    *_random(60),
]
_POINTS = 1 << 14


def faults(row: tuple[float, float, int, float]) -> list[str]:
    """What contradicts the lattices of Gaussian noise."""
    sigma, q, times, delta = row
    oracle = SampledOracle(Removal(Normal(1 / sigma), q), times, _POINTS)
    curve = times * dpv.Gaussian(sigma=sigma).poisson_sampled(rate=Fraction(q))
    return contradictions(curve, oracle, delta)


def contradictions(curve: dpv.PrivacyCurve, oracle: SampledOracle, delta: float) -> list[str]:
    """Where the enclosures of ε(δ), and of δ at an ε nearby, contradict an oracle."""
    bounds = oracle.epsilon(delta)
    nearby = float(f"{0.9 * bounds[1]:.4g}")
    found = []
    for name, value, (least, most) in (
        (f"epsilon({delta})", curve.epsilon_at(delta), bounds),
        (f"delta({nearby})", curve.delta_at(nearby), oracle.delta(nearby, delta)),
    ):
        if value.upper < least * (1 - _SLACK):
            found.append(f"{name} <= {value.upper} is unsafe: at least {least}")
        if value.lower > most * (1 + _SLACK):
            found.append(f"{name} >= {value.lower} is too much: at most {most}")
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(("sigma", "q"), [(3.0, 0.4), (0.7, 0.01)])
def test_lattices_hold_a_single_release(sigma: float, q: float) -> None:
    """Whose δ is that of the noise at another ε, times q."""
    epsilon = mpmath.mpf("0.3")
    mu, shifted = 1 / mpmath.mpf(sigma), mpmath.log1p(mpmath.expm1(epsilon) / q)
    one, other = (mpmath.ncdf(s * mu / 2 - shifted / mu) for s in (1, -1))
    delta = float(q * (one - mpmath.exp(shifted) * other))
    least, most = SampledOracle(Removal(Normal(1 / sigma), q), 1, 1 << 12).epsilon(delta)
    assert 0.3 * (1 - 1e-3) <= least <= 0.3 <= most <= 0.3 * (1 + 1e-3)


@pytest.mark.parametrize("row", day_and_night(ROWS[0], *((row,) for row in ROWS[1:])))
def test_enclosures_agree_with_lattices(row: tuple[float, float, int, float]) -> None:
    assert not faults(row)


@pytest.mark.nightly
def test_a_removal_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    directions = Composed._directions
    monkeypatch.setattr(Composed, "_directions", lambda self: directions(self)[1:])
    assert any("unsafe" in fault for fault in faults(ROWS[0]))


@pytest.mark.nightly
@pytest.mark.parametrize("row", [ROWS[0], ROWS[2]])
def test_a_rule_too_coarse_for_its_bound_is_found(
    row: tuple[float, float, int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strip is taken for eight times as wide as it is; where others don't make up for that."""
    rule = _normal_mixture._Rule
    of, bound = rule.of, rule._discretisation

    def coarse(*arguments: Any) -> Any:
        found = of(*arguments)
        return replace(found, step=8 * found.step)

    monkeypatch.setattr(rule, "of", coarse)
    monkeypatch.setattr(
        rule, "_discretisation", lambda self, *rest: bound(replace(self, step=self.step / 8), *rest)
    )
    # It contradicts the lattices, or itself first.
    with pytest.raises((AssertionError, ValueError), match=r"unsafe|too much|empty intersection"):
        assert not faults(row)


# Noise, its scale, q, T, δ; with Laplace noise most outputs have the largest or the least loss.
KINDS = [
    (Normal, 2.0, 0.05, 20, 1e-6),
    (Laplace, 1.0, 0.05, 20, 1e-5),
    (Normal, 0.7, 0.3, 5, 1e-30),
    (Laplace, 0.5, 0.002, 1000, 1e-4),
    (Laplace, 4.0, 0.7, 3, 1e-3),
]


def on_samples(base: Any, kind: Any, q: Fraction) -> dpv.PrivacyCurve:
    """The curve for which a pair of laws stands."""
    if kind is Batch:
        size, out_of = q.as_integer_ratio()
        return base.sampled_without_replacement(size=size, out_of=out_of)  # type: ignore[no-any-return]
    return base.poisson_sampled(rate=q, replaced=kind is Replaced)  # type: ignore[no-any-return]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", day_and_night(Replaced, Removal, Batch))
@pytest.mark.parametrize("row", KINDS)
def test_every_kind_of_samples_agrees_with_lattices(row: Any, kind: Any) -> None:
    noise, scale, q, times, delta = row
    base = (dpv.Gaussian(sigma=scale), dpv.Laplace(scale=scale))[noise is Laplace]
    oracle = SampledOracle(kind(noise(1 / scale), q), times, _POINTS)
    assert not contradictions(times * on_samples(base, kind, Fraction(q)), oracle, delta)
    wrong = (times + 1) * on_samples(base, kind, Fraction(q))
    assert any("too much" in fault for fault in contradictions(wrong, oracle, delta))


@pytest.mark.parametrize("kind", [Removal, Replaced, Batch])
def test_sums_of_answers_are_counted(kind: Any) -> None:
    keep, q, times, delta = 0.8, 0.05, 30, 1e-5
    step = on_samples(dpv.RandomizedResponse(keep=keep), kind, Fraction(q))
    least, most = AnswersOracle(answers(kind, keep, q), times).epsilon(delta)
    found = (times * step).epsilon_at(delta)
    assert least < found.lower <= found.upper < most < least * (1 + 1e-7)


@pytest.mark.parametrize("kind", day_and_night(Removal, Replaced, Batch))
@pytest.mark.parametrize("noise", day_and_night(Normal, Laplace))
def test_a_single_release_is_an_integral(kind: Any, noise: Any) -> None:
    """Of (p − e^ε·r)₊ over the outputs; of batches it is the removal's."""
    a, q, epsilon = 1.3, 0.3, 0.2
    z = np.linspace(-40, 40, 400_001)

    def density(moved: float) -> Any:
        shape = np.exp(-((z - moved) ** 2) / 2) if noise is Normal else np.exp(-abs(z - moved))
        return shape / np.trapezoid(shape, z)

    p = (1 - q) * density(0) + q * density(a)
    r = (1 - q) * density(0) + q * density(-a) if kind is Replaced else density(0)
    delta = float(np.trapezoid(np.maximum(p - math.exp(epsilon) * r, 0), z))
    least, most = SampledOracle(kind(noise(a), q), 1, 1 << 10).epsilon(delta)
    assert epsilon * (1 - 1e-2) < least <= epsilon * (1 + 1e-6)
    assert epsilon * (1 - 1e-6) <= most < epsilon * (1 + 1e-2)
