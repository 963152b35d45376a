"""Sums along hyperbolas, against integrals over both numbers and lattices of losses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._rays import (
    _PRECISION,
    RaySum,
    _Hyperbola,
    _moments,
    _ray,
    ray_delta,
    ray_epsilon,
    ray_losses,
)
from dpverify.accounting.losses._ray_laws import RayLaw
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import crossed, day_and_night
from tests.helpers.sampled_oracle import SampledOracle
from tests.helpers.sampled_pairs import Batch, Normal, Removal, Replaced

Kind = type[Batch | Replaced | Removal]
KINDS: tuple[Kind, ...] = (Batch, Replaced, Removal)
BATCH = RayLaw(mu_squared=Fraction(1), rate=Fraction(1, 1000), replaced=False, mirrored=True)


def made(kind: Kind, sigma: str, rate: str) -> PrivacyCurve:
    noise, q = dpv.Gaussian(sigma=sigma), Fraction(rate)
    if kind is Batch:
        return noise.sampled_without_replacement(size=q.numerator, out_of=q.denominator)
    return noise.poisson_sampled(rate=q, replaced=kind is Replaced)


def moment(kind: Kind, mu: float, q: float, s: complex) -> complex:
    """E[e^{sL}] − 1 by quadrature, in doubles, of what is analytic between the kinks of the law."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    starts = mu / 2 + np.arange(0 if kind is Batch else -24, 48) / 2
    z, step = (starts[:, None] + (1 + nodes) / 4).ravel(), np.tile(weights / 4, len(starts))
    none, up, down = (np.exp(-((z - a) ** 2) / 2) / math.sqrt(2 * math.pi) for a in (0.0, mu, -mu))
    own, other = (1 - q) * none + q * up, none
    if kind is Replaced:
        other = (1 - q) * none + q * down
    loss = np.log(own / other)
    found = step @ (own * np.expm1(s * loss))
    if kind is Batch:
        found += step @ (other * np.expm1(-s * loss))
    return complex(found)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_along_the_path(kind: Kind) -> None:
    known = ray_losses(made(kind, "1", "0.001").losses())
    assert known is not None
    path = _Hyperbola(c=9.0, bend=9.0, angle=0.2, step=1.2, count=5)
    with ctx.workprec(_PRECISION):
        found = _moments(known[0][1], path, 5, 40.0)
        assert found is not None
        nodes = [complex(s) for s, _ in path.nodes()]
    # On the real line noise that never occurs outweighs all else from the next node on.
    for s, value in list(zip(nodes, found, strict=True))[:2]:
        truth = moment(kind, 1.0, 0.001, s)
        radius = float(abs(value - value.mid()).upper())
        assert abs(complex(value.mid()) - truth) <= radius + 1e-13 * abs(truth) + 1e-15
        assert radius < 1e-10 * abs(truth)


@pytest.mark.parametrize(
    ("c", "angle"), [(0.0, 0.06), (3.0, 0.2), (10.0, 0.6), (-1.0, 0.4), (-11.0, 0.2)]
)
def test_norms_are_bounded_closely(c: float, angle: float) -> None:
    ray = _ray(BATCH, angle, 3)
    tau = np.linspace(math.log(BATCH.scale()) - 20, math.log(20), 601)
    with ctx.workprec(64):
        turn = acb(math.cos(angle), math.sin(angle))
        logs = [float(BATCH.log_density(math.exp(t) * turn).real.mid()) + t for t in tau]
    values = np.exp(np.array(logs) + c * math.cos(angle) * np.exp(tau))
    truth = float(np.trapezoid(values, tau))
    assert truth < math.exp(ray.log_norm(c)) < 1.05 * truth


def one(kind: Kind, mu: float, q: float, eps: np.ndarray) -> np.ndarray:
    """δ of one release at any real ε, from both laws on a fine lattice of noise."""
    own, other = _masses(kind, mu, q)
    loss = np.log(own / other)
    order = np.argsort(loss)[::-1]
    tops = np.cumsum(own[order]), np.cumsum(other[order])
    count = np.searchsorted(-loss[order], -eps)
    above = [np.where(count > 0, top[np.maximum(count, 1) - 1], 0.0) for top in tops]
    found: np.ndarray = above[0] - np.exp(eps) * above[1]
    return found


def _masses(kind: Kind, mu: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    z, step = np.linspace(-12, 12 + mu, 1 << 18, retstep=True)
    z = z + mu / 2
    none, up, down = (
        np.exp(-((z - a) ** 2) / 2) / math.sqrt(2 * math.pi) * step for a in (0.0, mu, -mu)
    )
    if kind is Replaced:
        return (1 - q) * none + q * up, (1 - q) * none + q * down
    mixed = (1 - q) * none + q * up
    if kind is Removal:
        return mixed, none
    above = z > mu / 2
    rest = np.array([1 - mixed[above].sum() - none[above].sum()])
    return (
        np.concatenate([mixed[above], none[above], rest]),
        np.concatenate([none[above], mixed[above], rest]),
    )


@pytest.mark.parametrize("kind", day_and_night(*KINDS))
@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"),
    day_and_night(("1", "0.001", "0.02"), ("0.5", "1e-4", "0.06"), ("3", "1e-3", "0.0017")),
)
def test_two_releases(kind: Kind, sigma: str, rate: str, epsilon: str) -> None:
    """The mean of one's δ, by what the other one shows, on a quarter of a million points."""
    losses = (2 * made(kind, sigma, rate)).losses()
    found = ray_delta(losses, Fraction(epsilon))
    assert found is not None
    mu, q = 1 / float(sigma), float(rate)
    own, other = _masses(kind, mu, q)
    truth = float(own @ np.maximum(one(kind, mu, q, float(epsilon) - np.log(own / other)), 0))
    assert float(found.mid()) == pytest.approx(truth, rel=1e-5)
    assert found.rad() < 1e-10 * found.lower()


@pytest.mark.parametrize("kind", day_and_night(Replaced, Batch, Removal))
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta"),
    day_and_night(
        ("1", "0.01", 10, 1e-6),
        ("1", "1e-3", 30, 1e-6),
        ("0.5", "1e-3", 30, 1e-20),
        ("1", "0.1", 100, 1e-6),
    ),
)
def test_root_beside_lattices(kind: Kind, sigma: str, rate: str, times: int, delta: float) -> None:
    found = ray_epsilon((times * made(kind, sigma, rate)).losses(), Fraction(delta))
    assert found is not None
    pair = kind(Normal(1 / float(sigma)), float(Fraction(rate)))
    low, high = SampledOracle(pair, times, 1 << 8).epsilon(delta)
    assert low <= found.upper
    assert found.lower <= high
    assert found.width < 1e-9


@pytest.mark.parametrize(("kind", "effort"), crossed(KINDS, [1.0, 6.0]))
def test_errors_of_few_nodes_are_bounded(kind: Kind, effort: float) -> None:
    known = ray_losses((5 * made(kind, "1", "0.01")).losses())
    assert known is not None
    with ctx.workprec(_PRECISION):
        eps = arb("0.4")
        fine = RaySum.near(known, 0.4, -13.0, 33.0)
        coarse = RaySum.near(known, 0.4, -13.0, effort)
        assert fine is not None
        assert coarse is not None
        assert len(coarse.nodes) < len(fine.nodes)
        truth, value = fine.value(eps), coarse.value(eps)
        assert value.contains(truth)
        assert value.rad() < 30 * math.exp(-effort) * truth.mid()
        for far in (arb("0.3"), arb("0.8")):
            assert coarse.value(far).overlaps(fine.value(far))


def test_unlike_losses_together() -> None:
    """What is twice one loss is that and one of nearly the same noise, and more than one alone."""
    step = made(Batch, "1", "0.001")
    near = dpv.Gaussian(sigma="1.000001").sampled_without_replacement(size=1, out_of=1000)
    delta = Fraction(1, 10**6)
    both = ray_epsilon(dpv.compose(step, near).losses(), delta)
    twice = ray_epsilon((2 * step).losses(), delta)
    assert both is not None
    assert twice is not None
    assert twice.lower * (1 - 1e-5) < both.lower <= both.upper < twice.lower
    assert both.width < 1e-9


@pytest.mark.parametrize("kind", day_and_night(Removal, Batch, Replaced))
def test_curves_are_narrow(kind: Kind) -> None:
    curve = 3 * made(kind, "1", "1e-5")
    found = curve.epsilon_at(1e-9)
    assert found.width < 1e-9
    assert (
        curve.delta_at(Fraction(found.upper)).lower
        <= 1e-9
        <= (curve.delta_at(Fraction(found.lower)).upper)
    )


def test_what_is_out_of_reach_has_no_answer() -> None:
    assert ray_epsilon(dpv.Gaussian(sigma=1).losses(), Fraction(1, 100)) is None
    assert ray_delta((2 * made(Batch, "1", "0.001")).losses(), Fraction(0)) is None
    assert ray_epsilon((2 * made(Replaced, "0.02", "0.001")).losses(), Fraction(1, 10**9)) is None
