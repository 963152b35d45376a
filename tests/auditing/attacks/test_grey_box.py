"""The grey-box check: what it proposes and confirms, and the twins that it must not accuse."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks._probing import noise_matrix, run_with
from dpverify.auditing.attacks._recording import RecordingGenerator
from dpverify.auditing.attacks.grey_box import GreyBoxAttack
from dpverify.auditing.audit import audit
from dpverify.auditing.finding import Finding
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.data.adjacency import Adjacency, Attribute
from dpverify.data.domain import Box
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words
from dpverify_audits.planted import SUITE
from tests.helpers.attacks import evidence_of, finding_of
from tests.helpers.profiles import thinned

UNIT = Attribute(beta=Fraction(1))
PURE = ApproxDP(epsilon=Fraction(1))
NORMAL = Gaussian.from_mu_squared(Fraction(1, 4))
DELTA = Fraction(1, 10**6)
PAIR = Pair(
    name="first row",
    record=np.array([[0.0, 0.5], [1.0, 0.0]]),
    neighbour=np.array([[1.0, 0.5], [1.0, 0.0]]),
)
MATRIX = np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])  # rows of ℓ2 norm 1, ℓ1 norm 1.4
OUTSIDE = "outside the model: "


@dataclass(frozen=True, slots=True)
class Generated(Mechanism):
    """A function of a whole data set and numpy's generator."""

    function: Any
    claim: PrivacyCurve = PURE
    adjacency: Adjacency = UNIT

    def release(self, records: Any, *, rng: Words) -> Any:
        seed = np.random.SeedSequence(rng.words(4).tolist())
        return self.function(records, np.random.Generator(np.random.PCG64(seed)))

    def with_generator(self, records: Any, rng: Any) -> Any:
        return self.function(records, rng)

    def privacy(self) -> PrivacyCurve:
        return self.claim


OPTIONS: dict[str, Any] = {"delta": Fraction(0), "draws": 1000, "workers": 1}


def checked(function: Any, claim: PrivacyCurve = PURE, **options: Any) -> Finding:
    settings: dict[str, Any] = {"alpha": 1e-4, "draws": 400} | options
    return finding_of(GreyBoxAttack(), Generated(function, claim), [PAIR], **OPTIONS | settings)


def laplace(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 1.0, x.shape)


def normal(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.normal(0.0, 2.0, (len(x), 3))


def standard(x: Any, rng: Any) -> Any:
    return x @ MATRIX + 2 * rng.standard_normal((len(x), 3))


def at_the_input(x: Any, rng: Any) -> Any:
    return (x + rng.laplace(0.0, 1.0, x.shape)) @ MATRIX


def wide_at_the_input(x: Any, rng: Any) -> Any:
    return (x + rng.laplace(0.0, 1.0, x.shape)) @ np.array([[1.0], [0.5]])


def located(x: Any, rng: Any) -> Any:
    return rng.laplace(x, 1.0)


def scale_halved(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 0.5, x.shape)


def wrong_norm(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.laplace(0.0, 1.0, (len(x), 3))  # ε = 1.4 by the ℓ1 norm


def one_vector_for_all_rows(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, 1.0, x.shape[1])


def half_the_coordinates(x: Any, rng: Any) -> Any:
    y = x.copy()
    y[:, 1:] += rng.laplace(0.0, 1.0, (len(x), 1))
    return y


def bound_read_off(x: Any, rng: Any) -> Any:
    return x + rng.laplace(0.0, max(np.abs(x[0]).max(), 0.1) * 4, x.shape)


def early_exit(x: Any, rng: Any) -> Any:
    return x if not x[0].all() and not x[0, 0] else laplace(x, rng)


def noiseless(x: Any, rng: Any) -> Any:
    return x * 1.0


def raises_on_data(x: Any, rng: Any) -> Any:
    if x[0, 0] == 1:
        raise ValueError("no")
    return laplace(x, rng)


def shape_by_data(x: Any, rng: Any) -> Any:
    return laplace(x, rng)[: 1 + int(x[0, 0])]


def variance_for_deviation(x: Any, rng: Any) -> Any:
    return x @ MATRIX + rng.normal(0.0, 2.0**0.5, (len(x), 3))


@pytest.mark.parametrize("function", [laplace, at_the_input, wide_at_the_input, located])
def test_correct_laplace_is_not_accused(function: Any) -> None:
    finding = checked(function)
    assert finding.verdict == "no_violation_found"
    assert evidence_of(finding).distance == pytest.approx(1.0)


@pytest.mark.parametrize("function", [normal, standard])
def test_correct_normal_is_not_accused(function: Any) -> None:
    finding = checked(function, NORMAL, delta=DELTA)
    assert finding.verdict == "no_violation_found"
    assert evidence_of(finding).distance == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (scale_halved, "2 scales"),
        pytest.param(wrong_norm, "1.4 scales", marks=pytest.mark.nightly),
        (one_vector_for_all_rows, "no independent noise"),
        pytest.param(half_the_coordinates, "no independent noise", marks=pytest.mark.nightly),
        (bound_read_off, OUTSIDE + "noise call 0 depends on the data"),
        (early_exit, OUTSIDE + "the number of noise calls depends on the data: 0 or 1"),
        (noiseless, "no noise was asked for"),
        (raises_on_data, "raised ValueError: no on the neighbour alone"),
        (shape_by_data, "shape"),
    ],
)
def test_bugs_are_confirmed_on_fresh_draws(function: Any, reason: str) -> None:
    finding = checked(function)
    assert finding.verdict == "violation", finding.statement
    assert reason in finding.statement
    assert finding.pair is PAIR
    # Nothing is certain: it has a level, counts, and what they show.
    assert finding.level == 1e-4
    assert finding.epsilon_lower is not None
    assert finding.epsilon_lower > 1
    assert evidence_of(finding).hits > evidence_of(finding).false_hits


def test_a_finding_names_the_line_that_asks_for_noise() -> None:
    assert "test_grey_box.py:" in checked(scale_halved).statement
    assert "test_grey_box.py:" in checked(early_exit).statement
    line = scale_halved.__code__.co_firstlineno + 1
    assert f"test_grey_box.py:{line})" in checked(scale_halved).statement


@pytest.mark.nightly
def test_a_variance_for_a_deviation_is_accused() -> None:
    finding = checked(variance_for_deviation, NORMAL, delta=DELTA, draws=1000)
    assert finding.verdict == "violation"
    assert evidence_of(finding).distance == pytest.approx(0.5**0.5, rel=1e-12)


def test_normal_noise_has_no_pure_epsilon() -> None:
    """ε = 1 at δ = 0 is refuted where the noise is small enough for the draws."""
    assert checked(lambda x, rng: x + rng.normal(0, 0.5, x.shape)).verdict == "violation"


def scaled(scale: float) -> Any:
    return lambda x, rng: x + rng.laplace(0.0, scale, x.shape)


def test_a_hair_above_the_claim_is_said_and_not_accused_and_a_hair_below_is_cleared() -> None:
    above, below = checked(scaled(1 - 1e-7)), checked(scaled(1 + 1e-7))
    assert above.verdict == below.verdict == "no_violation_found"
    assert "is claimed" in above.statement
    assert "draws are too few to tell" in above.statement
    assert "is claimed" not in below.statement
    assert not hasattr(below.evidence, "hits")


def test_more_draws_are_taken_where_the_model_says_that_it_takes_them() -> None:
    finding = checked(scaled(0.7), alpha=0.01, draws=600)
    assert finding.verdict == "violation"
    assert evidence_of(finding).draws in (1200, 2400, 4800)


OWN = random.SystemRandom()


def from_elsewhere(x: Any, rng: Any) -> Any:
    return x + np.random.laplace(size=x.shape)  # noqa: NPY002 (of all generators the least seen)


def from_the_stream(x: Any, rng: Any) -> Any:
    return x + np.random.Generator(rng.bit_generator).laplace(size=x.shape)


def two_routes(x: Any, rng: Any) -> Any:
    """Laplace noise, as numpy draws it or as a difference of exponentials."""
    if x[0, 0]:
        return x + rng.laplace(size=x.shape)
    return x + rng.exponential(size=x.shape) - rng.exponential(size=x.shape)


def above_threshold(x: Any, rng: Any) -> float:
    """The place of the first count above a noisy threshold: Lyu, Su and Li 2017, Algorithm 1."""
    threshold = 1 + rng.laplace(scale=2)
    for place, count in enumerate(x.ravel()):
        if count + rng.laplace(scale=4) >= threshold:
            return float(place)
    return float(x.size)


def smooth(x: Any, rng: Any) -> Any:
    """A scale that the data moves by less than the claim allows."""
    return x + rng.laplace(scale=4 if x[0, 0] else 4.4, size=x.shape)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (from_elsewhere, "it draws from elsewhere"),
        (from_the_stream, "bit_generator"),
        (lambda x, rng: x + OWN.expovariate(1) - OWN.expovariate(1), "it draws from elsewhere"),
        (lambda x, rng: np.zeros(2), "no noise was asked for that can be recorded"),
        (lambda x, rng: np.clip(x + rng.laplace(0.0, 1.0, x.shape), 0, 1), "isn't affine"),
        (lambda x, rng: x + rng.gumbel(0.0, 1.0, x.shape), "gumbel"),
        (lambda x, rng: x[99], "it raised IndexError"),
        (lambda x, rng: (x > 0) ^ (rng.random(x.shape) < 0.25), "random"),
        (lambda x, rng: {"a": 1}, "isn't an array of numbers"),
        (
            lambda x, rng: x + np.random.default_rng(rng.integers(1 << 60)).laplace(size=x.shape),
            "integers",
        ),
        (lambda x, rng: x + rng.spawn(1)[0].laplace(size=x.shape), "spawn"),
    ],
)
def test_outside_the_model_is_inconclusive(function: Any, reason: str) -> None:
    finding = checked(function)
    assert finding.verdict == "inconclusive"
    assert OUTSIDE in finding.statement
    assert reason in finding.statement


@pytest.mark.parametrize("function", [two_routes, above_threshold, smooth])
def test_calls_that_depend_on_the_data_are_said_and_counted_and_no_violation(function: Any) -> None:
    finding = checked(function)
    assert finding.verdict == "no_violation_found"
    assert OUTSIDE in finding.statement
    assert "depends on the data" in finding.statement
    assert "doesn't refute" in finding.statement


def raises_at_random(x: Any, rng: Any) -> Any:
    """Noise that no run without noise shows decides whether it raises: ε = 1."""
    if x[0, 0] + rng.laplace() > 0.5:
        raise ValueError("above")
    return 0.0


@pytest.mark.parametrize("budget", range(200, 1001, 200))
def test_a_budget_that_ends_falls_on_both_sides(budget: int) -> None:
    """Before, between or after the releases that are counted."""
    left = iter(range(budget))

    def alarmed(x: Any, rng: Any) -> float:
        """Raises above a noisy threshold: ε = 1, as long as it answers."""
        if next(left, None) is None:
            raise RuntimeError("the budget has ended")
        if x[0, 0] + rng.laplace() < 0.5:
            raise ValueError("below")
        return 0.0

    finding = finding_of(GreyBoxAttack(), Generated(alarmed), [PAIR], **OPTIONS | {"draws": 300})
    assert "it doesn't raise" in finding.statement
    assert finding.verdict == "no_violation_found"


def test_an_exception_on_one_side_of_the_noiseless_runs_is_counted() -> None:
    finding = checked(raises_at_random)
    assert "on the neighbour alone" in finding.statement
    assert finding.verdict == "no_violation_found"
    assert finding.level > 0


@pytest.mark.parametrize(
    "function", thinned([from_elsewhere, above_threshold, two_routes, smooth], 4)
)
def test_a_correct_mechanism_outside_the_model_is_green_by_default(function: Any) -> None:
    """Whatever it says of itself, the check doesn't keep a report from a verdict."""
    report = audit(
        Generated(function), pairs=[PAIR], draws=300, alpha=1e-3, workers=1, without=["precision"]
    )
    assert report.verdict == "no_violation_found"
    (found,) = (finding for finding in report.findings if finding.audit == "grey-box")
    assert OUTSIDE in found.statement


def test_a_broken_mechanism_outside_the_model_is_found() -> None:
    """The twins of the test above: half of the noise."""

    def half(x: Any, rng: Any) -> Any:
        return x + 0.3 * (two_routes(x, rng) - x)

    assert checked(half, draws=1000).verdict == "violation"


def test_search_shrinks_to_a_minimal_pair() -> None:
    """A sensitivity that only holds where a record isn't negative."""

    def broken(x: Any, rng: Any) -> Any:
        return np.where(x < 0, 3 * x, x) + rng.laplace(0.0, 1.0, x.shape)

    start = Pair(name="start", record=np.zeros((1, 2)), neighbour=np.array([[0.0, 0.5]]))
    options = OPTIONS | {
        "space": Matrices(adjacency=UNIT, domain=Box(low=-1, high=1), attributes=2),
        "draws": 400,
    }

    def searched(function: Any) -> Finding:
        return finding_of(GreyBoxAttack(), Generated(function), [start], **options)

    finding = searched(broken)
    assert finding.verdict == "violation"
    assert finding.pair is not None
    # Minimal: one value off 0 on one side, none on the other.
    assert np.count_nonzero(finding.pair.record) + np.count_nonzero(finding.pair.neighbour) == 1
    assert searched(laplace).verdict == "no_violation_found"


LINEAR = [bug for bug in SUITE if type(bug.twin()).__name__ in ("LinearSketch", "NoiseAddition")]


@pytest.mark.parametrize("bug", thinned(LINEAR, 2), ids=lambda bug: str(bug.name))
def test_twins_of_the_planted_bugs_are_not_accused(bug: Any) -> None:
    twin = bug.twin()
    finding = finding_of(GreyBoxAttack(), twin, twin.worst_pairs(), **OPTIONS | {"delta": DELTA})
    assert finding.verdict == "no_violation_found", finding.statement
    assert evidence_of(finding).distance > 0
    assert not hasattr(finding.evidence, "hits")  # the model alone clears it


def test_a_sketch_with_less_noise_is_accused() -> None:
    bug = next(bug for bug in LINEAR if bug.name == "delta dropped")
    broken: Any = bug.broken()
    finding = finding_of(
        GreyBoxAttack(),
        broken,
        broken.worst_pairs(),
        delta=Fraction(1, 1000),
        draws=2000,
        workers=1,
    )
    assert finding.verdict == "violation", finding.statement
    assert "linear/release.py:" in finding.statement


def test_noise_that_is_drawn_again_is_outside_the_model() -> None:
    """How many calls there are depends on the noise itself: no error, and no verdict either."""

    def not_negative(record: Any, rng: np.random.Generator) -> float:
        value = -1.0
        while value < 0:
            value = float(record[0, 0]) + rng.laplace()
        return value

    assert checked(not_negative).verdict == "inconclusive"


def test_pairs_are_given_up_where_every_run_is_late() -> None:
    """Each costs the limit of a release or more, and a hundred are tried."""
    runs = []

    def late(x: Any, rng: Any) -> Any:
        runs.append(x)
        time.sleep(0.1)
        return laplace(x, rng)

    finding = checked(
        late, space=Matrices(adjacency=UNIT, domain=None, attributes=2, rows=(2,)), time_limit=0.01
    )
    assert (finding.verdict, finding.failed) == ("inconclusive", True)
    assert "took longer than 0.01 s" in finding.statement
    assert len(runs) < 20


@pytest.mark.nightly
@pytest.mark.parametrize(("attributes", "place"), [(150, 140), (1000, 311), (1000, 977)])
def test_the_one_attribute_of_many_that_weighs_more(attributes: int, place: int) -> None:
    """Too many for each to be tried with draws; two runs without noise at each show which."""
    weights = np.ones(attributes)

    def total(record: Any, rng: Any) -> float:
        return float(record @ weights + rng.laplace())

    said: dict[str, Any] = {
        "epsilon": 1,
        "adjacency": UNIT,
        "of": "record",
        "attributes": attributes,
        "domain": Box(Fraction(0), Fraction(1)),
        "kinds": ["grey-box"],
        "draws": 300,
        "workers": 1,
    }
    assert audit(total, **said).verdict == "no_violation_found"
    weights[place] = 3.0
    (finding,) = audit(total, **said).findings
    assert finding.verdict == "violation"
    assert finding.pair is not None
    assert np.flatnonzero(finding.pair.record != finding.pair.neighbour).tolist() == [place]


@pytest.mark.parametrize("known", [None, "right", "wrong", "of another shape"])
def test_what_noise_does_at_another_pair_is_tried_first(known: str | None) -> None:
    """Four runs in place of one for each variable and these; what is wrong there is noticed."""
    turn = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    scales = np.array([0.5, 0.0, 2.0])
    pair = Pair(name="0 or 1", record=np.zeros(2), neighbour=np.ones(2))
    runs: list[Any] = []

    def function(data: Any, rng: Any) -> Any:
        return data + turn @ rng.laplace(0.0, scales)

    def run(data: Any, noise: Any = None) -> Any:
        runs.append(RecordingGenerator(noise))
        return run_with(function, data, runs[-1])

    own, other = run(pair.record), run(pair.neighbour)
    right = (turn * scales)[:, [0, 2]]
    guesses = {"right": right, "wrong": right * [1, 1.01], "of another shape": right[:, :1]}
    runs.clear()
    found = noise_matrix(run, pair, own, other, scales, guesses.get(known or ""))
    assert found is not None
    assert found == pytest.approx(right)
    assert len(runs) == {"right": 4, "wrong": 1 + 2 + 4}.get(known or "", 2 + 4)


def test_a_pair_at_which_noise_does_the_same_takes_few_runs() -> None:
    """Of 64 variables, at 100 drawn pairs: 72 runs at the first one alone, 8 at the others."""
    calls = itertools.count()

    def function(rows: Any, rng: Any) -> Any:
        next(calls)
        return np.asarray(rows, dtype=float).mean() + rng.laplace(0.0, 1.0, 64)

    domain = dpv.Table({"x": dpv.Reals(0, 1)}, rows=(1, 5), make="numpy")
    dpv.audit(
        function,
        epsilon=64,
        adjacency=dpv.Replace(),
        domain=domain,
        kinds=["grey-box"],
        draws=100,
        workers=1,
    )
    assert next(calls) < 8_000
