"""Secret projections: claims, releases, estimators, and planted bugs that must be caught."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen
from scipy.stats import multivariate_normal

from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.auditing.statistics.claim_test import judge as judge_attack
from dpverify.auditing.statistics.power import events
from dpverify.data.adjacency import Edge, Row
from dpverify.data.domain import Ball
from dpverify.designs import design
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.estimation.moments import Moments, draw_estimates, judge
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.secret.rows import rows_for_accuracy
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch
from tests.helpers.attacks import counted
from tests.helpers.profiles import day_and_night

EPSILON, DELTA = Fraction(1), Fraction(1, 1000)
CUTS = CutSketch.calibrated(p=6, sketch_rows=8, epsilon=EPSILON, delta=DELTA)
LINES = CovarianceSketch.calibrated(
    p=3,
    sketch_rows=16,
    epsilon=EPSILON,
    delta=DELTA,
    domain=Ball(radius=Fraction(1)),
    adjacency=Row(radius=Fraction(2)),
)
SKETCHES = [pytest.param(CUTS, id="cuts"), pytest.param(LINES, id="covariance")]


@pytest.mark.parametrize("sketch", SKETCHES)
def test_the_claim_meets_its_target_and_no_more(sketch: Any) -> None:
    white_box: object = sketch
    assert isinstance(white_box, WhiteBox)
    assert sketch.guarantee().curve == sketch.privacy()
    assert sketch.privacy().delta_at(EPSILON).upper <= DELTA
    assert sketch.privacy().delta_at(EPSILON).lower >= float(DELTA) * 0.98  # and no more
    facts = sketch.facts()
    assert facts["claim"]["epsilon"].upper < facts["claim"]["epsilon_published"].lower
    plain = {
        name: {k: v.as_json() if isinstance(v, Enclosure) else v for k, v in section.items()}
        for name, section in facts.items()
    }
    assert json.loads(json.dumps(plain)) == plain
    assert sketch.redrawn(3) is sketch


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.5])
def test_rates_are_the_curve(sketch: Any, threshold: float) -> None:
    curve = sketch.privacy()
    own, other = curve.rates(threshold)
    delta = curve.delta_at(Fraction(threshold)).upper
    assert own - np.exp(threshold) * other == pytest.approx(delta, abs=1e-12)


def test_rates_with_less_noise() -> None:
    """A smaller floor makes large losses of a replaced row likelier."""
    curve = LINES.privacy()
    for threshold in (0.5, 1.5):
        assert curve.rates(threshold, noise=0.8)[0] > curve.rates(threshold)[0]


@pytest.mark.parametrize("sketch", SKETCHES)
def test_release_and_ratio(sketch: Any) -> None:
    for pair in sketch.worst_pairs():
        released = sketch.release(pair.record, rng=ReplayableWords(1))
        assert released.dtype == np.int64
        assert released.shape == (sketch.sketch_rows, sketch.p)
        assert (released == sketch.release(pair.record, rng=ReplayableWords(1))).all()
        ratio = sketch.log_likelihood_ratio(released[None], pair.record, pair.neighbour)
        back = sketch.log_likelihood_ratio(released[None], pair.neighbour, pair.record)
        assert ratio.shape == (1,)
        assert ratio == pytest.approx(-back)


@pytest.mark.parametrize(
    ("sketch", "digest"), [(CUTS, "0d63d8e4b3b73325"), (LINES, "dff75ef99fe7d86e")]
)
def test_a_stream_gives_what_it_always_gave(sketch: Any, digest: str) -> None:
    """Evidence of earlier certificates is replayed: these digests are of earlier versions."""
    rng, record = ReplayableWords(1), sketch.worst_pairs()[0].record
    drawn = b"".join(sketch.release(record, rng=rng).tobytes() for _ in range(300))
    assert sha256(drawn).hexdigest()[:16] == digest


@pytest.mark.parametrize("sketch", SKETCHES)
def test_ratio_is_that_of_the_densities(sketch: Any) -> None:
    alike = sketch.worst_pairs()[0].record
    for pair in [*sketch.worst_pairs(), Pair(name="alike", record=alike, neighbour=alike)]:
        rng = ReplayableWords(2)
        drawn = np.stack([sketch.release(pair.record, rng=rng) for _ in range(5)])
        logs = []
        for data in (pair.record, pair.neighbour):
            matrix, unit = sketch.covariance(data)
            law = multivariate_normal(cov=matrix * float(unit))
            logs.append(law.logpdf(drawn * sketch.step().upper).sum(axis=1))
        ratio = sketch.log_likelihood_ratio(drawn, pair.record, pair.neighbour)
        assert ratio == pytest.approx(logs[0] - logs[1], abs=1e-9)


def test_covariance_of_a_graph_by_hand() -> None:
    """Σ = w·I + (1 − w/n)·L, from edge incidences of the smoothed graph plus (w/n)·J."""
    graph = np.zeros((6, 6))
    for u, v, weight in ((0, 1, 1.0), (1, 2, 0.5), (0, 5, 0.25)):
        graph[u, v] = graph[v, u] = weight
    w, n = float(CUTS.w), 6
    smoothed = np.full((n, n), w / n)
    for u in range(n):
        for v in range(u):
            weight = w / n + (1 - w / n) * graph[u, v]
            edge = np.zeros(n)
            edge[u], edge[v] = np.sqrt(weight), -np.sqrt(weight)
            smoothed += np.outer(edge, edge)
    matrix, unit = CUTS.covariance(graph)
    assert matrix * float(unit) == pytest.approx(smoothed, abs=1e-12)
    assert np.linalg.eigvalsh(matrix * float(unit)).min() == pytest.approx(w)


def test_truth_of_cut_and_of_direction() -> None:
    graph = np.zeros((6, 6))
    graph[0, 1] = graph[1, 0] = 1.0
    graph[1, 2] = graph[2, 1] = 0.5
    graph[3, 4] = graph[4, 3] = 0.75
    members = np.array([[0.0, 1, 0, 1, 1, 0]])
    (cut,) = CUTS.estimators()
    assert cut.truth(graph, members) == pytest.approx(1.5)
    assert cut.truth(graph, 1 - members) == pytest.approx(1.5)
    table = np.array([[0.5, 0, 0.25], [0, -0.5, 0.5]])
    x = np.array([[1.0, 2.0, -1.0]])
    (form,) = LINES.estimators()
    assert form.truth(table, x) == pytest.approx(float(((table @ x.T) ** 2).sum()))


@pytest.mark.parametrize("floor", [Fraction(1, 3), Fraction(7, 10), Fraction(5, 2)])
def test_no_digits_of_the_floor_are_left_in_a_cut(floor: Fraction) -> None:
    (cut,) = CutSketch(p=6, sketch_rows=1, w=floor).estimators()
    graph = np.zeros((6, 6))
    for one in np.eye(6):
        assert cut.truth(graph, one) == 0
    graph[0, 1] = graph[1, 0] = 2.0**-20
    assert cut.truth(graph, np.eye(6)[0]) == pytest.approx(2.0**-20, rel=1e-15, abs=0)


@pytest.mark.nightly
@pytest.mark.parametrize("sketch", day_and_night(CUTS, LINES), ids=["cuts", "covariance"])
def test_draws_confirm_the_moments_and_refute_wrong_ones(sketch: Any) -> None:
    probe = sketch.probes(ReplayableWords(8))[-1]
    estimators = sketch.estimators()
    (estimates,) = draw_estimates(sketch, estimators, probe, draws=3000, seed=4)
    moments = Moments.of(estimates)
    expectation, variance = (
        f(probe.record, probe.neighbour)
        for f in (estimators[0].expectation, estimators[0].variance)
    )
    for verdict in judge(moments, expectation, variance, 1e-6):
        assert verdict == "confirmed_within_margin"
    # The floor left in, as an estimator that forgets it would do; and half the variance.
    c = sketch.query(probe.neighbour).reshape(-1)
    shifted = expectation + float(sketch.floor / sketch.share) * float(c @ c)
    assert judge(moments, shifted, variance, 1e-6)[0] == "refuted"
    assert judge(moments, expectation, variance / 2, 1e-6)[1] == "refuted"


def test_gamma_of_the_worst_pair() -> None:
    pair = CUTS.worst_pairs()[0]
    empty, edge = (m * float(u) for m, u in map(CUTS.covariance, (pair.record, pair.neighbour)))
    ratios = np.linalg.eigvals(np.linalg.solve(empty, edge)).real
    assert ratios.max() - 1 == pytest.approx(float(CUTS.privacy().gamma))
    small = evolve(CUTS, adjacency=Edge(weight=Fraction(1, 4)))
    assert small.privacy().gamma == CUTS.privacy().gamma / 4


@pytest.mark.parametrize("radius", day_and_night(Fraction(5), Fraction(1), Fraction(400)))
@pytest.mark.parametrize("moved", day_and_night(Fraction(2), Fraction(1, 2)))
def test_relative_eigenvalues_stay_inside_the_claim(radius: Fraction, moved: Fraction) -> None:
    sketch = evolve(LINES, domain=Ball(radius=radius), adjacency=Row(radius=min(moved, 2 * radius)))
    bound = 1 + float(sketch.privacy().gamma)
    rng = np.random.default_rng(6)
    most = 1.0
    for _ in range(1000):
        first = rng.normal(size=3)
        first *= float(radius) * rng.uniform() ** 0.2 / np.linalg.norm(first)
        step = rng.normal(size=3)
        length = float(min(moved, radius)) * rng.uniform(0.8, 1) ** 0.5
        second = first + length * step / np.linalg.norm(step)
        if np.linalg.norm(second) > float(radius):
            continue
        a, b = (m * float(u) for m, u in map(sketch.covariance, (first[None], second[None])))
        ratios = np.linalg.eigvals(np.linalg.solve(a, b)).real
        most = max(most, ratios.max(), 1 / ratios.min())
    assert 1 + 0.4 * (bound - 1) < most <= bound


def test_worst_pair_of_replaced_rows_is_exact() -> None:
    pair = LINES.worst_pairs()[0]
    a, b = (m * float(u) for m, u in map(LINES.covariance, (pair.record, pair.neighbour)))
    ratios = np.sort(np.linalg.eigvals(np.linalg.solve(a, b)).real)
    bound = 1 + float(LINES.privacy().gamma)
    assert ratios == pytest.approx([1 / bound, 1, bound], rel=1e-4)


@pytest.mark.parametrize("radius", [Fraction(1, 10**4), Fraction(1000003), Fraction(2**40)])
def test_covariances_have_no_unit(radius: Fraction) -> None:
    """Data and radius in another unit get the same smoothing in that unit, and an exact Σ."""
    sketch = CovarianceSketch.calibrated(
        p=3,
        sketch_rows=16,
        epsilon=EPSILON,
        delta=DELTA,
        domain=Ball(radius=radius),
        adjacency=Row(radius=2 * radius),
    )
    assert float(sketch.w_squared / radius**2) == pytest.approx(float(LINES.w_squared), rel=1e-3)
    table = np.array([[0.5, 0, 0.25], [0, -0.5, 0.5]]) * float(radius)
    matrix, unit = sketch.covariance(table)
    expected = np.eye(3) * float(sketch.w_squared) + table.T @ table
    assert matrix * float(unit) == pytest.approx(expected, rel=1e-4)


def test_covariances_refuse_what_64_bits_cannot_hold() -> None:
    """The floor's denominator over the grid's squared step, 2⁸, multiplies the data as well."""
    big = evolve(LINES, domain=Ball(radius=Fraction(2**20)), w_squared=Fraction(7, 2**20))
    row = np.array([[2.0**20, 0, 0]])
    matrix, unit = big.covariance(row)
    assert unit == Fraction(1, 2**20)
    assert matrix[0, 0] == 2**60 + 7
    with pytest.raises(ParameterError, match="rows"):
        big.covariance(np.repeat(row, 4, axis=0))
    with pytest.raises(ParameterError, match="w_squared"):
        evolve(big, w_squared=Fraction(7, 2**25))


# Planted bugs: what the audit must refute, and the correct twin that it must not.


@frozen(kw_only=True)
class SmallerFloor(CutSketch):
    """Releases with half of the smoothing that it claims."""

    def release(self, records: Any, *, rng: Any = None) -> Any:
        return evolve(CUTS, w=self.w / 2).release(records, rng=rng)


@frozen(kw_only=True)
class Unsmoothed(CutSketch):
    """Puts the floor under the data without shrinking the weights: forgets 1 − w/n."""

    def covariance(self, records: Any) -> Any:
        matrix, unit = CutSketch.covariance(self, records)
        lift = np.eye(6, dtype=np.int64) * int(self.w / unit)
        return (matrix - lift) * 4 + lift, unit


def refuted(sketch: Any) -> bool:
    curve = CUTS.privacy()
    tests = events(curve, DELTA, 6000, 1e-4)
    found = counted(sketch, tests, draws=6000, seed=3, workers=1)
    return any(
        judge_attack(counts, curve, DELTA, 1e-4).refuted_at is not None
        for row in found.counts
        for counts in row
    )


@pytest.mark.nightly
@pytest.mark.parametrize("planted", [SmallerFloor, Unsmoothed])
def test_planted_bug_is_refuted(planted: type[CutSketch]) -> None:
    assert refuted(planted(p=6, sketch_rows=8, w=CUTS.w))


@pytest.mark.nightly
def test_correct_twin_is_not_accused() -> None:
    assert not refuted(CUTS)


def test_larger_sketches_have_smaller_errors() -> None:
    curve = design(
        "jl-graph-cuts",
        at=[(30, 50.0)],
        p=300,
        sketch_rows=[16, 32, 64, 128, 256, 512, 1024],
        epsilon=EPSILON,
        delta=Fraction(1, 10**6),
        adjacency=Edge(1),
    ).curve
    deviations = [point.mean_squared_error**0.5 for point in curve]
    assert deviations == sorted(deviations, reverse=True)
    sketch = curve[-1].mechanism
    ring = np.zeros((300, 300))
    ring[:30, 30] = 1.0
    ring[:20, 31] = 1.0
    members = (np.arange(300) < 30).astype(float)
    (cut,) = sketch.estimators()
    assert cut.truth(ring + ring.T, members) == pytest.approx(50)
    assert cut.variance(ring + ring.T, members) ** 0.5 == pytest.approx(deviations[-1])
    assert rows_for_accuracy(eta=Fraction(1, 10), nu=Fraction(1, 100)) == 4239


@pytest.mark.parametrize(
    "wrong", [{"w": Fraction(6)}, {"w": Fraction(0)}, {"sketch_rows": 0}, {"p": 1}]
)
def test_sizes_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        evolve(CUTS, **wrong)


def test_a_curve_without_noise_is_refused() -> None:
    with pytest.raises(ParameterError):
        RankOneNormal(rows=3, gamma=Fraction(0))


@pytest.mark.parametrize("vertices", [46_000, 50_000, 99_999, 1_000_000])
def test_large_graphs_are_calibrated_in_coarser_steps(vertices: int) -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    sketch = CutSketch.calibrated(p=vertices, sketch_rows=64, epsilon=epsilon, delta=delta)
    small = CutSketch.calibrated(p=40_000, sketch_rows=64, epsilon=epsilon, delta=delta)
    assert Fraction(sketch.privacy().delta_at(epsilon).upper) <= delta
    assert small.w <= sketch.w <= small.w + Fraction(1, 2)


def test_graphs_that_are_too_large_are_refused_by_their_own_name() -> None:
    with pytest.raises(ParameterError, match="p=2000000 must be smaller"):
        CutSketch.calibrated(
            p=2_000_000, sketch_rows=64, epsilon=Fraction(1), delta=Fraction(1, 10**6)
        )
    with pytest.raises(ParameterError, match=r"w=0\.0009765625 must be a fraction of"):
        CutSketch(p=50_000, sketch_rows=64, w=Fraction(1, 1024))


def test_published_smoothing_against_the_exact_one() -> None:
    """Blocki et al. at ε = 1, δ = 1e-6, η = 0.1, ν = 0.01: w = 33,043 where 399.97 suffices."""
    rows, delta = 4239, Fraction(1, 10**6)
    gamma = RankOneNormal.max_gamma(rows, epsilon=1, delta=delta)
    assert float(2 / gamma) == pytest.approx(399.97, abs=0.01)
    published = CutSketch(p=10**5, sketch_rows=rows, w=Fraction(33043))
    assert published.published(delta).epsilon_bound().upper == pytest.approx(1, abs=1e-4)
    assert published.privacy().delta_at(1).upper < 1e-300


@pytest.mark.parametrize("rows", [8, 100, 4239])
def test_published_points_are_conservative(rows: int) -> None:
    delta = Fraction(1, 1000)
    for sketch in (
        CutSketch(p=40_000, sketch_rows=rows, w=Fraction(20_000)),
        CovarianceSketch(
            p=2,
            sketch_rows=rows,
            w_squared=Fraction(10**6),
            domain=Ball(radius=Fraction(10**5)),
            adjacency=Row(radius=Fraction(1)),
        ),
    ):
        point = sketch.published(delta)
        assert sketch.privacy().delta_at(point.epsilon_bound().upper).upper <= delta


@pytest.mark.parametrize(
    ("w_squared", "radius"),
    [(Fraction(10**12), 2), (Fraction(1, 7**20), 2), (Fraction(1000), Fraction(1, 10**9))],
)
def test_a_lift_that_no_release_could_hold_is_refused_when_it_is_made(
    w_squared: Fraction, radius: Any
) -> None:
    with pytest.raises(ParameterError, match=r"w_squared=.* smaller, or a coarser fraction"):
        CovarianceSketch(p=2, sketch_rows=8, w_squared=w_squared, domain=Ball(radius))
