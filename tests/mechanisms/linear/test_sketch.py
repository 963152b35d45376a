from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpverify.accounting import sigma_gaussian
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import Adjacency, Attribute, Items, L1Ball
from dpverify.data.blocks import ROWS
from dpverify.data.domain import Box, Sets, dense
from dpverify.enclosure import SquareRoot, squared
from dpverify.errors import ParameterError, RecordsError
from dpverify.sampling.words import ReplayableWords, SecureWords
from dpverify_mechanisms.linear import release
from dpverify_mechanisms.linear._dot import dot
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.linear.textbook import textbook_release
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    Projection,
    RademacherProjection,
)

PROJECTIONS = [
    OPORP(p=6, k=4, seed=1),
    RademacherProjection(p=6, k=3, seed=1),
    GaussianProjection(p=6, k=3, seed=1),
]
SIGNED = Box(low=Fraction(-1), high=Fraction(1))
ADJACENCIES: list[Adjacency] = [
    Attribute(beta=Fraction(1)),
    Attribute(beta=Fraction(1, 10)),
    L1Ball(radius=Fraction(1, 2)),
]


def calibrated(projection: Projection, adjacency: Adjacency = ADJACENCIES[0]) -> LinearSketch:
    return LinearSketch.calibrated(
        projection,
        epsilon=Fraction(1),
        delta=Fraction(Decimal("1e-6")),
        domain=SIGNED,
        adjacency=adjacency,
    )


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_calibration_is_safe_and_not_wasteful(projection: Projection, adjacency: Adjacency) -> None:
    mechanism = calibrated(projection, adjacency)
    curve, delta = mechanism.privacy(), Fraction(Decimal("1e-6"))
    assert Fraction(curve.delta_at(1).upper) <= delta
    assert curve.epsilon_at(delta).upper <= 1
    assert curve.delta_at(1).lower > float(delta) * (1 - 1e-12)
    # In the records' unit: the same σ as the accountant's for the exact sensitivity.
    sensitivity = mechanism.sensitivity()
    sigma = sigma_gaussian(1, Decimal("1e-6"), sensitivity=sensitivity)
    assert mechanism.noise.scale * mechanism.step().upper == pytest.approx(sigma.upper, rel=1e-12)
    mu_squared = squared(sensitivity) / (
        Fraction(mechanism.noise.scale) ** 2 * squared(SquareRoot(squared(mechanism._step())))
    )
    assert isinstance(curve, Gaussian)
    assert mu_squared == curve.mu_squared


@pytest.mark.parametrize(
    "projection", [OPORP(p=2, k=1, seed=1), RademacherProjection(p=2, k=8, seed=1)]
)
def test_single_precision_is_left_before_it_rounds(
    projection: Projection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of 2²⁴ − 2 fit into single precision, and one of 2²⁴ + 1 doesn't."""

    def wrong(steps: int) -> bool:
        sketch = LinearSketch.calibrated(
            projection,
            epsilon=Fraction(1),
            delta=Fraction(1, 10**6),
            domain=SIGNED,
            adjacency=ADJACENCIES[0],
            grid_steps=steps,
        )
        records = np.array([[1.0, 1 / steps], [1.0, -1 / steps], [1.0, 1.0], [1.0, -1.0]])
        whole = np.array([[steps, 1], [steps, -1], [steps, steps], [steps, -steps]])
        return not np.array_equal(
            sketch.noiseless(records), whole @ dense(projection.matrix).astype(np.int64)
        )

    monkeypatch.setenv("DPVERIFY_LOOPS", "numpy")  # machine code has no single precision
    assert not wrong(2**23 - 1)
    assert not wrong(2**24)
    monkeypatch.setattr(release, "_SINGLE", 2**53)
    assert wrong(2**24)


@pytest.mark.parametrize("projection", PROJECTIONS)
@given(data=st.data())
def test_product_is_exact(projection: Projection, data: st.DataObject) -> None:
    mechanism = calibrated(projection)
    values = st.lists(st.floats(-1, 1), min_size=6, max_size=6)
    records = np.array(data.draw(st.lists(values, min_size=1, max_size=4)))
    steps = mechanism.grid.round(records).astype(int).tolist()
    matrix = np.asarray(sparse.csr_array(projection.matrix).todense()).astype(int).tolist()
    exact = [
        [sum(a * row[j] for a, row in zip(x, matrix, strict=True)) for j in range(projection.k)]
        for x in steps
    ]
    assert mechanism.noiseless(records).tolist() == exact


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(data=st.data())
def test_no_neighbours_are_further_apart_than_claimed(
    projection: Projection, adjacency: Adjacency, data: st.DataObject
) -> None:
    mechanism = calibrated(projection, adjacency)
    record = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=6, max_size=6)))
    neighbour = record.copy()
    match adjacency:
        case Attribute(beta=bound):
            moved = {data.draw(st.integers(0, 5)): bound}
        case L1Ball(radius=bound):
            shares = data.draw(st.lists(st.integers(0, 8), min_size=6, max_size=6))
            moved = {i: bound * share / max(sum(shares), 1) for i, share in enumerate(shares)}
    for index, bound in moved.items():
        target = np.clip(record[index] + data.draw(st.sampled_from([-1, 1])) * float(bound), -1, 1)
        if abs(Fraction(float(target)) - Fraction(float(record[index]))) <= bound:
            neighbour[index] = target
    rows = mechanism.noiseless(np.stack([record, neighbour]))
    distance = sum(int(d) ** 2 for d in (rows[0] - rows[1]).tolist())
    assert distance <= int(mechanism.facts()["sensitivity"]["l2_squared_in_steps"])


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
def test_worst_pairs_attain_the_sensitivity(projection: Projection, adjacency: Adjacency) -> None:
    mechanism = calibrated(projection, adjacency)
    for pair in mechanism.worst_pairs():
        rows = mechanism.noiseless(np.concatenate([pair.record, pair.neighbour]))
        distance = sum(int(d) ** 2 for d in (rows[0] - rows[1]).tolist())
        assert distance == int(mechanism.facts()["sensitivity"]["l2_squared_in_steps"])
        assert np.count_nonzero(pair.record != pair.neighbour) == 1


def test_worst_pairs_of_a_domain_whose_ends_are_no_doubles() -> None:
    domain = Box(low=Fraction(0), high=Fraction(1, 10))
    mechanism = LinearSketch.calibrated(
        PROJECTIONS[0],
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        domain=domain,
        adjacency=Attribute(beta=Fraction(1, 10)),
    )
    for pair in mechanism.worst_pairs():
        rows = mechanism.noiseless(np.concatenate([pair.record, pair.neighbour]))
        assert np.abs(rows[0] - rows[1]).max() == 1024


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_release_is_product_plus_noise(projection: Projection) -> None:
    mechanism = calibrated(projection)
    records = np.random.default_rng(1).uniform(-1, 1, (300, 6))
    release = mechanism.release(records, rng=ReplayableWords(4, "release"))
    noise = mechanism.noise.sample(release.shape, rng=ReplayableWords(4, "release"))
    assert release.dtype == np.int64
    assert (release - noise == mechanism.noiseless(records)).all()
    assert (mechanism.release(records, rng=SecureWords()) != release).mean() > 0.99


@pytest.mark.parametrize("at", ["output", "input"])
@pytest.mark.parametrize("rows", [1, ROWS + 1])
def test_many_releases_are_those_of_separate_calls(at: Any, rows: int) -> None:
    mechanism = evolve(calibrated(PROJECTIONS[0]), at=at)
    records = np.random.default_rng(1).uniform(-1, 1, (rows, 6))
    together, apart = ReplayableWords(1, "key"), ReplayableWords(1, "key")
    release = mechanism.releaser(records, 3, rng=together)
    for _ in range(3):
        assert np.array_equal(release(), mechanism.release(records, rng=apart))


def test_records_are_refused_at_each_release() -> None:
    release = calibrated(PROJECTIONS[0]).releaser(np.full((1, 6), 2.0), 2, rng=ReplayableWords(1))
    for _ in range(2):
        with pytest.raises(RecordsError, match="outside"):
            release()


def test_likelihood_ratio_is_the_gaussians(small_sketch: Callable[..., LinearSketch]) -> None:
    mechanism = small_sketch()
    pair = mechanism.worst_pairs()[0]
    outputs = mechanism.release(np.repeat(pair.record, 4000, axis=0), rng=ReplayableWords(2))
    means = mechanism.noiseless(np.concatenate([pair.record, pair.neighbour]))
    s2 = mechanism.noise.scale**2
    direct = (((outputs - means[1]) ** 2).sum(axis=1) - ((outputs - means[0]) ** 2).sum(axis=1)) / (
        2 * s2
    )
    found = mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)
    assert found == pytest.approx(direct, abs=1e-9)
    curve = mechanism.privacy()
    assert isinstance(curve, Gaussian)
    mu2 = float(curve.mu_squared)
    # Mean μ²/2 and variance μ², six standard errors.
    assert abs(found.mean() - mu2 / 2) < 6 * (mu2 / 4000) ** 0.5


def test_textbook_path_is_the_same_sketch_in_doubles() -> None:
    mechanism = calibrated(PROJECTIONS[1])
    records = np.random.default_rng(1).uniform(-1, 1, (500, 6))
    textbook = textbook_release(mechanism, records, rng=np.random.default_rng(2))
    noiseless = mechanism.noiseless(records) * mechanism.step().upper
    residual = textbook - noiseless
    sigma = mechanism.noise.scale * mechanism.step().upper
    assert abs(residual.std() / sigma - 1) < 6 / (2 * residual.size) ** 0.5


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([[0.0] * 5], "must have 6 attributes"),
        ([0.0] * 6, "must form a matrix"),
        ([[0.0] * 5 + [float("nan")]], "attribute 5 is nan"),
        ([[0.0] * 5 + [1.5]], "outside the declared domain"),
    ],
)
def test_records_outside_the_domain_are_refused(records: Any, message: str) -> None:
    with pytest.raises(RecordsError, match=message):
        calibrated(PROJECTIONS[0]).release(records, rng=SecureWords())


def test_product_that_could_round_is_refused() -> None:
    with pytest.raises(ParameterError, match="partial sums reach"):
        LinearSketch.calibrated(
            GaussianProjection(p=6, k=3, seed=1),
            epsilon=Fraction(1),
            delta=Fraction(1, 1000),
            domain=Box(low=Fraction(0), high=Fraction(10**9)),
            adjacency=Attribute(beta=Fraction(1)),
        )


def test_bound_wider_than_the_domain_is_refused_for_attributes_alone() -> None:
    with pytest.raises(ParameterError, match="beta=3 must be at most 2, the width"):
        calibrated(PROJECTIONS[0], Attribute(beta=Fraction(3)))
    assert (
        calibrated(PROJECTIONS[0], L1Ball(radius=Fraction(3))).privacy().delta_at(1).upper <= 1e-6
    )


@given(
    st.integers(0, 62),
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)),
        min_size=1,
        max_size=9,
    ),
)
def test_dot_is_correctly_rounded(shift: int, pairs: list[tuple[int, int]]) -> None:
    small = [(a >> shift, b >> shift) for a, b in pairs]
    first, second = (np.array(side, dtype=np.int64) for side in zip(*small, strict=True))
    exact = sum(a * b for a, b in small)
    reach = max(abs(a) for a, _ in small) * max(abs(b) for _, b in small)
    found = float(dot(first, second))
    if reach * len(small) < 2**63:
        assert found == float(exact)
    else:
        # Operands and products are rounded once each before the exact sum.
        bound = 4 * 2.0**-53 * sum(abs(a * b) for a, b in small)
        assert abs(Fraction(found) - exact) <= bound
    assert float(dot(first[::-1], second[::-1])) == found


def test_dot_broadcasts() -> None:
    rows = np.arange(12, dtype=np.int64).reshape(4, 3) * 2**40
    assert dot(rows, rows[0]).shape == (4,)
    assert dot(rows, rows).tolist() == [
        float(sum(int(x) ** 2 for x in row)) for row in rows.tolist()
    ]


def test_gaussian_noise_finer_than_the_grid_is_refused_with_the_way_out() -> None:
    """An item is one step, so that at a large ε a deviation of less than a step would do."""
    target: dict[str, Any] = {"p": 8, "delta": "1e-6", "domain": Sets(), "adjacency": Items(1)}
    with pytest.raises(ParameterError, match=r"epsilon=5 must be smaller .* 0\.98 of a step") as no:
        LinearSketch.raw_data_g_opt(epsilon=5, **target)
    assert 'noise = "laplace"' in str(no.value)
    assert LinearSketch.raw_data_g_opt(epsilon=5, noise="laplace", **target).noise.scale < 1


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_noise_wider_than_can_be_drawn_is_refused_by_the_epsilon_that_asks_for_it(
    noise: Any,
) -> None:
    with pytest.raises(ParameterError, match="must be larger: the noise would be"):
        LinearSketch.raw_data_g_opt(
            epsilon="1e-18",
            noise=noise,
            p=8,
            delta="1e-30",
            domain=SIGNED,
            adjacency=ADJACENCIES[0],
        )
