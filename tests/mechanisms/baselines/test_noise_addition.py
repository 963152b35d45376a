"""Noisy pairwise distances: sensitivity by exhaustive search, exactness, the published σ."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from dpverify.data.adjacency import Attribute, BitFlip
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify.errors import ParameterError, RecordsError
from dpverify.privacy import WhiteBox
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords, SecureWords
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition, published_sigma

BITS = Box(low=Fraction(0), high=Fraction(1))
WIDE = Box(low=Fraction(-1), high=Fraction(2))


def make(
    rows: int = 5,
    p: int = 4,
    adjacency: BitFlip | Attribute | None = None,
    grid_steps: int = 8,
    domain: Box = BITS,
) -> NoiseAddition:
    return NoiseAddition.calibrated(
        rows=rows,
        p=p,
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        domain=domain,
        adjacency=adjacency or BitFlip(),
        grid_steps=grid_steps,
    )


def bits(rows: int, p: int) -> Any:
    words = ReplayableWords(3, "bits").words(rows * p)
    return (words >> np.uint64(63)).astype(np.float64).reshape(rows, p)


def squared_sensitivity(mechanism: NoiseAddition) -> Fraction:
    mu_squared = mechanism.privacy().mu_squared
    return mu_squared * Fraction(mechanism.noise.scale) ** 2


def largest_move(mechanism: NoiseAddition, values: list[float], most: float) -> int:
    """Largest squared change of the exact distances over every data set on the given values."""
    shape = (mechanism.rows, mechanism.p)
    largest = 0
    for data in itertools.product(values, repeat=mechanism.rows * mechanism.p):
        record = np.array(data).reshape(shape)
        before = mechanism.noiseless(record)
        for place in np.ndindex(shape):
            for target in values:
                if abs(target - record[place]) <= most:
                    neighbour = record.copy()
                    neighbour[place] = target
                    change = mechanism.noiseless(neighbour) - before
                    largest = max(largest, int(change @ change))
    return largest


@pytest.mark.parametrize(("rows", "p"), [(2, 2), (3, 2), (4, 1)])
def test_sensitivity_to_a_bit_is_attained_and_no_more(rows: int, p: int) -> None:
    """In steps of 1: n − 1, not the n of the paper's section 4.1."""
    mechanism = make(rows=rows, p=p, grid_steps=1)
    found = largest_move(mechanism, [0.0, 1.0], 1.0)
    assert found == squared_sensitivity(mechanism) == rows - 1


@pytest.mark.parametrize(
    ("beta", "grid_steps"), [(Fraction(1, 2), 1), (Fraction(1), 2), (Fraction(3, 2), 3)]
)
def test_sensitivity_to_an_attribute_is_attained_and_no_more(
    beta: Fraction, grid_steps: int
) -> None:
    """Every data set of three records on the grid of a half in [0, 3/2]: Δ² = 2(B(6 − B))²."""
    domain = Box(low=Fraction(0), high=Fraction(3, 2))
    mechanism = make(
        rows=3, p=1, adjacency=Attribute(beta=beta), grid_steps=grid_steps, domain=domain
    )
    found = largest_move(mechanism, [0.0, 0.5, 1.0, 1.5], float(beta))
    assert found == squared_sensitivity(mechanism) == 2 * (grid_steps * (6 - grid_steps)) ** 2


@pytest.mark.parametrize(
    "mechanism",
    [make(), make(rows=2, p=1), make(adjacency=Attribute(beta=Fraction(2)), domain=WIDE)],
)
def test_worst_pairs_attain_the_sensitivity(mechanism: NoiseAddition) -> None:
    for pair in mechanism.worst_pairs():
        change = mechanism.noiseless(pair.record) - mechanism.noiseless(pair.neighbour)
        assert int(change @ change) == squared_sensitivity(mechanism)
        assert np.count_nonzero(change) == mechanism.rows - 1
        assert np.count_nonzero(pair.record != pair.neighbour) == 1


@pytest.mark.parametrize("rows", [2, 7, 300])
def test_distances_are_those_of_scipy(rows: int) -> None:
    x = bits(rows, 13)
    mechanism = make(rows=rows, p=13)
    exact = pdist(x, "sqeuclidean") * 64
    assert np.array_equal(mechanism.noiseless(x), exact)
    assert np.array_equal(mechanism.noiseless(sparse.csr_array(x)), exact)


def test_distances_of_gridded_records_are_exact() -> None:
    """The largest distance that is accepted still comes out to the last digit."""
    mechanism = NoiseAddition(
        rows=2,
        p=3,
        noise=RoundedGaussian(scale=1.0),
        grid=Grid(step=Fraction(3, 2**25)),
        domain=WIDE,
        adjacency=Attribute(beta=Fraction(3)),
    )
    x = np.array([[-1.0, 2.0, -1.0], [2.0, -1.0, 2.0 - 3 / 2**25]])
    assert mechanism.largest_distance() == 3 * 2**50
    assert mechanism.noiseless(x).tolist() == [2**51 + (2**25 - 1) ** 2]  # an odd number


def test_release_adds_the_rounded_noise() -> None:
    mechanism, x = make(), bits(5, 4)
    released = mechanism.release(x, rng=ReplayableWords(4))
    noise = mechanism.noise.sample((10,), rng=ReplayableWords(4))
    assert released.dtype == np.int64
    assert np.array_equal(released, mechanism.noiseless(x) + noise)
    assert not np.array_equal(released, mechanism.release(x, rng=SecureWords()))


def test_claim_and_its_published_neighbour() -> None:
    mechanism = make(rows=50)
    assert isinstance(mechanism, WhiteBox)
    assert mechanism.guarantee().curve == mechanism.privacy()
    assert Fraction(mechanism.privacy().delta_at(1).upper) <= Fraction(1, 1000)
    assert mechanism.redrawn(9) is mechanism
    facts = mechanism.facts()
    assert facts["sensitivity"]["entries_changed"] == 49
    assert facts["sensitivity"]["l2"].lower <= 7 <= facts["sensitivity"]["l2"].upper
    assert facts["noise"]["published_sigma"].lower > facts["noise"]["sigma"].upper


def test_published_sigma_is_the_papers_formula() -> None:
    found = published_sigma(Fraction(1, 2), Fraction(1, 10**5), rows=30)
    assert found.width < 1e-13
    expected = math.sqrt(30 * 2 * (math.log(1 / 2e-5) + 0.5)) / 0.5
    assert found.upper == pytest.approx(expected, rel=1e-13)
    for epsilon, delta in ((Fraction(0), Fraction(1, 9)), (Fraction(1), Fraction(1, 2))):
        with pytest.raises(ParameterError):
            published_sigma(epsilon, delta, rows=3)


def test_likelihood_is_the_ratio_of_densities() -> None:
    mechanism = make()
    pair = mechanism.worst_pairs()[0]
    outputs = np.stack([mechanism.release(pair.record, rng=ReplayableWords(n)) for n in range(6)])
    first, second = mechanism.noiseless(pair.record), mechanism.noiseless(pair.neighbour)
    expected = (((outputs - second) ** 2).sum(1) - ((outputs - first) ** 2).sum(1)) / (
        2 * mechanism.noise.scale**2
    )
    losses = mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)
    assert losses == pytest.approx(expected, rel=1e-9)
    swapped = mechanism.log_likelihood_ratio(outputs, pair.neighbour, pair.record)
    assert swapped == pytest.approx(-losses)


def test_planted_noise_of_one_entry_is_seen_by_the_likelihood() -> None:
    """The mean loss of a worst pair is μ²/2; noise for one changed entry would make it smaller.

    20,000 draws of variance μ²: beyond five standard deviations with probability 6e-7.
    """
    mechanism = make(rows=5)
    pair, mu_squared = mechanism.worst_pairs()[0], float(mechanism.privacy().mu_squared)
    noiseless = mechanism.noiseless(pair.record)

    def mean_loss(scale: float) -> float:
        noise = RoundedGaussian(scale=scale).sample((20_000, 10), rng=ReplayableWords(2))
        losses = mechanism.log_likelihood_ratio(noiseless + noise, pair.record, pair.neighbour)
        return float((losses**2).mean())

    honest = mu_squared + mu_squared**2 / 4
    spread = 5 * math.sqrt(2 * mu_squared**2 + mu_squared**3) / math.sqrt(20_000)
    assert abs(mean_loss(mechanism.noise.scale) - honest) < spread
    assert abs(mean_loss(mechanism.noise.scale / 2) - honest) > spread


def test_estimator_reads_its_entry() -> None:
    mechanism, x = make(rows=6), bits(6, 4)
    estimator = mechanism.estimators()[0]
    exact = mechanism.noiseless(x)
    for a, b in itertools.permutations(range(6), 2):
        truth = float(((x[a] - x[b]) ** 2).sum())
        assert estimator.estimate(exact, np.array([a, b])) == truth
        assert estimator.truth(x, [[a, b]]) == estimator.expectation(x, [[a, b]]) == truth
    draws = np.stack([exact, exact + 64])
    assert estimator.estimate(draws, np.array([[0, 1], [5, 2]])).tolist() == [
        estimator.truth(x, [0, 1]),
        estimator.truth(x, [2, 5]) + 1,
    ]
    table = estimator.estimate(exact, np.array([[0, 1], [1, 2], [0, 5]]))
    assert table.tolist() == [estimator.truth(x, q) for q in ([0, 1], [1, 2], [0, 5])]
    for query in ([0, 6], [-1, 2], [3, 3]):
        with pytest.raises(ParameterError, match="query"):
            estimator.estimate(exact, np.array(query))


@pytest.mark.nightly
def test_variance_is_the_noises() -> None:
    """5,000 releases of one entry: mean and variance within five standard deviations."""
    mechanism, x = make(rows=2, p=4, grid_steps=2), bits(2, 4)
    estimator = mechanism.estimators()[0]
    rng = ReplayableWords(6)
    draws = np.stack([mechanism.release(x, rng=rng) for _ in range(5_000)])
    values = estimator.estimate(draws, np.array([0, 1]))
    variance = estimator.variance(x, [0, 1])
    assert abs(values.mean() - estimator.truth(x, [0, 1])) < 5 * math.sqrt(variance / 5_000)
    assert abs(values.var() / variance - 1) < 5 * math.sqrt(2 / 5_000)


@pytest.mark.parametrize("mechanism", [make(), make(rows=2, p=3)])
def test_probes_are_data_sets_with_a_query(mechanism: NoiseAddition) -> None:
    estimator = mechanism.estimators()[0]
    for probe in mechanism.probes(ReplayableWords(1)):
        assert estimator.truth(probe.record, probe.neighbour) >= 0
        assert estimator.variance(probe.record, probe.neighbour) > 0


def test_wrong_records_are_refused() -> None:
    with pytest.raises(RecordsError, match="4 records"):
        make().release(bits(4, 4), rng=ReplayableWords(1))
    with pytest.raises(RecordsError, match="bits"):
        make().release(bits(5, 4) / 2 + 0.25, rng=ReplayableWords(1))
    with pytest.raises(RecordsError):
        make().release(bits(5, 3), rng=ReplayableWords(1))


def test_wrong_mechanisms_are_refused() -> None:
    with pytest.raises(ParameterError, match="rows"):
        make(rows=1)
    with pytest.raises(ParameterError, match="domain"):
        make(domain=WIDE)
    with pytest.raises(ParameterError, match="beta"):
        make(adjacency=Attribute(beta=Fraction(2)))
    given: dict[str, Any] = {
        "rows": 3,
        "p": 2,
        "noise": RoundedGaussian(scale=9.0),
        "grid": Grid(step=Fraction(1, 8)),
        "domain": BITS,
        "adjacency": BitFlip(),
    }
    NoiseAddition(**given)
    for change, rule in (
        ({"p": 0}, "p=0"),
        ({"grid": Grid(step=Fraction(2, 3))}, "whole fraction"),
        ({"grid": Grid(step=Fraction(1, 2**26))}, "coarser: distances"),
    ):
        with pytest.raises(ParameterError, match=rule):
            NoiseAddition(**(given | change))
