"""Laplace noise, noise at the input, whole records, sparse records and blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpverify.accounting.published import sigma_kenthapadi, sigma_li
from dpverify.auditing.statistics import claim_test
from dpverify.auditing.statistics import power as planning
from dpverify.data.adjacency import Adjacency, Attribute, Record
from dpverify.data.domain import Ball, Box
from dpverify.enclosure import squared
from dpverify.errors import ParameterError, RecordsError
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    Projection,
    RademacherProjection,
)
from tests.helpers.attacks import counted
from tests.helpers.profiles import day_and_night

UNIT = Box(low=Fraction(0), high=Fraction(1))
BETA = Attribute(beta=Fraction(1))


def calibrated(projection: Projection, **changes: Any) -> LinearSketch:
    target: dict[str, Any] = {
        "epsilon": Fraction(1),
        "delta": Fraction(1, 1000),
        "domain": UNIT,
        "adjacency": BETA,
    }
    return LinearSketch.calibrated(projection, **(target | changes))


def test_laplace_is_pure_on_every_output() -> None:
    """The log ratio of exact probabilities never exceeds ε, for the attribute that moves most."""
    sketch = calibrated(
        RademacherProjection(p=2, k=2, seed=1), noise="laplace", grid_steps=2, delta=Fraction(0)
    )
    gap = (sketch.noiseless([[1.0, 0.0]]) - sketch.noiseless([[0.0, 0.0]]))[0].astype(int)
    assert np.abs(gap).sum() == 4
    noise = sketch.noise
    worst = Fraction(0)
    for first in range(-20, 21):
        for second in range(-20, 21):
            ratio = Fraction(1)
            for value, shift in zip((first, second), gap.tolist(), strict=True):
                ratio *= Fraction(noise.probability(value).lower) / Fraction(
                    noise.probability(value - shift).upper
                )
            worst = max(worst, ratio)
    assert np.exp(1 - 1e-9) < float(worst) <= np.exp(1)
    assert sketch.privacy().delta_at(1).upper == 0
    # A scale that is a tenth too small breaks it.
    small = evolve(sketch, noise=RoundedLaplace(scale=noise.scale * 0.9))
    assert small.privacy().delta_at(1).lower > 0


def test_laplace_needs_no_delta() -> None:
    sketch = calibrated(OPORP(p=4, k=2, seed=1), noise="laplace", delta=Fraction(0))
    assert sketch.privacy().epsilon_at(0).upper <= 1
    with pytest.raises(ParameterError, match="delta=0"):
        calibrated(OPORP(p=4, k=2, seed=1), delta=Fraction(0))


def test_best_is_the_cheaper_noise() -> None:
    """For OPORP ℓ1 and ℓ2 sensitivity are equal: Laplace is cheaper for small δ, not for large."""
    projection = OPORP(p=8, k=4, seed=1)
    kinds = set()
    for delta in (Fraction(1, 10**9), Fraction(1, 3)):
        target = {"epsilon": Fraction(1), "delta": delta, "domain": UNIT, "adjacency": BETA}
        best = LinearSketch.best(projection, squared_distance=4.0, **target)
        costs = {
            kind: SquaredDistance(
                sketch=LinearSketch.calibrated(projection, noise=kind, **target)  # type: ignore[arg-type]
            ).noise_variance(4.0)
            for kind in ("gaussian", "laplace")
        }
        assert SquaredDistance(sketch=best).noise_variance(4.0) == min(costs.values())
        kinds.add(type(best.noise).__name__)
    assert kinds == {"RoundedLaplace", "RoundedGaussian"}


def test_noise_at_the_input_is_calibrated_to_the_identity() -> None:
    projection = GaussianProjection(p=6, k=40, seed=2)
    at_input = calibrated(projection, at="input")
    identity = calibrated(IdentityProjection(p=6, k=6))
    assert at_input.noise == identity.noise
    assert at_input.privacy() == identity.privacy()
    records = np.random.default_rng(1).random((300, 6))
    noisy = identity.release(records, rng=ReplayableWords(5))
    released = at_input.release(records, rng=ReplayableWords(5))
    assert (released == projection.apply(noisy.astype(float))).all()


ADJACENCIES: list[tuple[Any, Adjacency]] = [
    (UNIT, BETA),
    (UNIT, Record()),
    (Ball(radius=Fraction(2)), Record()),
    (Ball(radius=Fraction(2)), BETA),
]


@pytest.mark.parametrize(("domain", "adjacency"), ADJACENCIES)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("at", ["output", "input"])
def test_worst_pairs_are_neighbours_within_the_claim(
    domain: Any, adjacency: Adjacency, noise: Any, at: Any
) -> None:
    sketch = calibrated(
        RademacherProjection(p=5, k=3, seed=4),
        domain=domain,
        adjacency=adjacency,
        noise=noise,
        at=at,
    )
    bound = float(squared(sketch.sensitivity())) ** 0.5
    power = 2 if noise == "gaussian" else 1
    for pair in sketch.worst_pairs():
        both = np.concatenate([pair.record, pair.neighbour])
        domain.admit(both)
        if adjacency == BETA:
            assert np.abs(both[0] - both[1]).sum() <= 1
        gap = sketch.noiseless(pair.record) - sketch.noiseless(pair.neighbour)
        size = (np.abs(gap * sketch.step().upper) ** power).sum() ** (1 / power)
        if at == "output":
            assert size <= bound * (1 + 1e-12)
            assert size >= 0.5 * bound  # the pair is about as bad as the claim allows


@pytest.mark.parametrize(
    ("noise", "draws"), day_and_night(("gaussian", 1000), ("gaussian", 4000), ("laplace", 4000))
)
def test_the_attack_finds_noise_that_is_too_small(noise: Any, draws: int) -> None:
    sketch = calibrated(OPORP(p=6, k=2, seed=4), adjacency=Record(), noise=noise, grid_steps=64)
    claimed = sketch.privacy()
    weak = evolve(sketch, noise=evolve(sketch.noise, scale=sketch.noise.scale / 3))
    events = planning.events(claimed, Fraction(1, 1000), draws, 1e-3)
    refuted = {}
    for name, mechanism in (("right", sketch), ("weak", weak)):
        found = counted(mechanism, events, draws=draws, seed=1, workers=1)
        refuted[name] = any(
            claim_test.judge(
                counts, claimed, Fraction(1, 1000), 1e-3, ordering=event.ordering
            ).refuted_at
            is not None
            for event, counts in zip(events, found.counts[0], strict=True)
        )
    assert refuted == {"right": False, "weak": True}


@given(
    st.lists(st.integers(1, 150), min_size=1, max_size=5), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_blocks_and_sparseness_change_nothing(sizes: list[int], as_csr: bool, seed: int) -> None:
    sketch = calibrated(OPORP(p=20, k=4, seed=1))
    rng = np.random.default_rng(seed)
    records = rng.random((sum(sizes), 20)) * (rng.random((sum(sizes), 20)) < 0.2)

    def blocks() -> Iterator[Any]:
        start = 0
        for size in sizes:
            block = records[start : start + size]
            yield sparse.csr_array(block) if as_csr else block
            start += size

    whole = sketch.release(records, rng=ReplayableWords(3))
    assert (sketch.release(blocks(), rng=ReplayableWords(3)) == whole).all()
    assert (sketch.release(sparse.csr_array(records), rng=ReplayableWords(3)) == whole).all()


def test_blocks_that_hold_no_records_are_refused() -> None:
    sketch = calibrated(OPORP(p=3, k=2, seed=1))
    with pytest.raises(RecordsError, match=r"record 2, attribute 2 is 1\.5"):
        sketch.release(
            iter([np.zeros((2, 3)), np.full((1, 3), [0, 0, 1.5])]), rng=ReplayableWords(1)
        )
    with pytest.raises(RecordsError, match="there are no records"):
        sketch.release(iter([]), rng=ReplayableWords(1))
    with pytest.raises(RecordsError, match="must be an array or blocks of rows, and not 3"):
        sketch.release(3, rng=ReplayableWords(1))


def test_sparse_records_need_zero_in_the_domain() -> None:
    box = Box(low=Fraction(1), high=Fraction(2))
    sketch = calibrated(OPORP(p=3, k=2, seed=1), domain=box)
    with pytest.raises(RecordsError, match="has none"):
        sketch.release(sparse.csr_array(np.eye(3)), rng=ReplayableWords(1))


def test_published_levels_are_larger() -> None:
    projection = GaussianProjection(p=10, k=6, seed=3)
    exact = calibrated(projection)
    for level in (sigma_kenthapadi, sigma_li):
        published = calibrated(projection, level=level)
        assert published.noise.scale > exact.noise.scale
        assert published.privacy().delta_at(1).upper < 1e-3
    levels = exact.published_levels(Fraction(1, 2), Fraction(1, 1000))
    assert set(levels) == {
        "kenthapadi2013 theorem 1",
        "li2023 theorem 3.1",
        "classical, epsilon below 1",
        "li2023 theorem 3.4, any projection",
    }
    assert len(exact.published_levels(Fraction(1), Fraction(1, 1000))) == 3
    # Lemma 2 needs k > 2(ln p + ln(2/δ)), and both speak of one attribute and output noise alone.
    wide = calibrated(GaussianProjection(p=10, k=64, seed=3))
    assert len(wide.published_levels(Fraction(1), Fraction(1, 1000))) == 4
    whole = calibrated(GaussianProjection(p=10, k=64, seed=3), adjacency=Record())
    assert len(whole.published_levels(Fraction(1), Fraction(1, 1000))) == 2
    named = wide.facts()["published"]
    assert all(level.lower > wide.facts()["noise"]["sigma"].upper for level in named.values())


@pytest.mark.parametrize("low", ["0.1", "0.15", "0.3", "1", "-7.7"])
@pytest.mark.parametrize("beta", ["0.1", "0.2", "0.7", "1"])
def test_worst_pairs_are_neighbours_to_the_last_digit(low: str, beta: str) -> None:
    """A rounding upwards could carry the attribute over one more step than is claimed."""
    box = Box(low=Fraction(low), high=Fraction(low) + 1)
    adjacency = Attribute(beta=Fraction(beta))
    sketch = calibrated(OPORP(p=5, k=2, seed=1), domain=box, adjacency=adjacency, grid_steps=1)
    bound = squared(sketch._neighbours().apart(2))
    for pair in sketch.worst_pairs():
        assert adjacency.relates(pair.record, pair.neighbour)
        apart = sketch.noiseless(pair.record) - sketch.noiseless(pair.neighbour)
        assert int((apart**2).sum()) <= bound
