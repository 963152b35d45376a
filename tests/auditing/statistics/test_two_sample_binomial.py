"""The exact test of two binomials: valid at every nuisance parameter, by enumeration."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpverify.auditing.statistics import two_sample_binomial
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines, epsilon_limit
from dpverify.errors import ParameterError
from tests.helpers.profiles import crossed, examples

ALPHA = 0.05


def true_epsilon(p: float, q: float, delta: float) -> float:
    """Smallest ε ≥ 0 with p ≤ e^ε q + δ and 1 − q ≤ e^ε(1 − p) + δ."""
    own = math.log(max(p - delta, 1e-300) / q)
    other = math.log(max(1 - q - delta, 1e-300) / (1 - p))
    return max(own, other, 0.0)


@cache
def limits(n: int, m: int, delta: float, caution: float | None = None) -> np.ndarray:
    return np.array(
        [
            [
                Counts(hits=x, draws=n, false_hits=y, false_draws=m).epsilon_lower(
                    delta=delta, alpha=ALPHA, caution=caution
                )
                for y in range(m + 1)
            ]
            for x in range(n + 1)
        ]
    )


def error(n: int, m: int, delta: float, p: float, q: float, caution: float | None = None) -> float:
    """P[limit > true ε], exactly."""
    weights = np.outer(binom.pmf(range(n + 1), n, p), binom.pmf(range(m + 1), m, q))
    return float(weights[limits(n, m, delta, caution) > true_epsilon(p, q, delta)].sum())


SIZES = [(8, 8, 0.0), (8, 8, 0.05), (12, 5, 0.0)]
GRID = [0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.99]


@pytest.mark.parametrize(("size", "caution"), crossed(SIZES, [None, 1.0]))
def test_level_at_every_nuisance_parameter(
    size: tuple[int, int, float], caution: float | None
) -> None:
    n, m, delta = size
    worst = max(error(n, m, delta, p, q, caution) for p, q in product(GRID, GRID))
    assert worst <= ALPHA
    # And the level is used: a test that never rejects would keep it too.
    assert worst >= 0.02


def test_a_test_that_forgets_the_nuisance_parameter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """With q set to its estimate in place of the interval's maximum."""
    correct = two_sample_binomial._Test.__init__

    def careless(self, outcome, alpha, delta, caution=None):  # type: ignore[no-untyped-def]
        correct(self, outcome, alpha, delta, caution)
        estimate = (outcome.false_hits + 1e-3) / (outcome.false_draws + 2e-3)
        self.ends = estimate * (1 - 1e-6), estimate
        self.level = alpha

    monkeypatch.setattr(two_sample_binomial._Test, "__init__", careless)
    limits.cache_clear()
    worst = max(error(8, 8, 0.0, p, q) for p, q in product(GRID, GRID))
    limits.cache_clear()
    assert worst > ALPHA


@pytest.mark.parametrize("m", [3, 8, 40])
def test_what_the_interval_misses_and_the_region_may_take_add_up_to_alpha(m: int) -> None:
    """At every q just outside an interval, where most are missed."""
    tests = [
        two_sample_binomial._Test(Counts(hits=1, draws=1, false_hits=y, false_draws=m), ALPHA, 0.0)
        for y in range(m + 1)
    ]
    ends = [test.ends for test in tests]
    edges = [low * (1 - 1e-12) for low, _ in ends] + [high * (1 + 1e-12) for _, high in ends]
    for q in (edge for edge in edges if 0 < edge < 1):
        missed = sum(
            float(binom.pmf(y, m, q)) for y, (low, high) in enumerate(ends) if not low <= q <= high
        )
        assert missed + tests[0].level <= ALPHA * (1 + 1e-9)
    assert tests[0].level > 0.99 * ALPHA


@pytest.mark.parametrize(("hits", "delta"), [(0, 0.0), (2, 0.25), (1, 0.25)])
def test_everything_is_as_extreme_as_an_outcome_without_excess(hits: int, delta: float) -> None:
    for y in (0, 3, 8):
        outcome = Counts(hits=hits, draws=8, false_hits=y, false_draws=8)
        assert not two_sample_binomial._Test(outcome, ALPHA, delta).least.any()


def test_limits_rise_with_hits_and_fall_with_false_hits() -> None:
    table = limits(8, 8, 0.0)
    # Each limit stops at its own small distance below its root.
    assert np.all(np.diff(table, axis=0) >= -0.01 * (1 + table[:-1]))
    assert np.all(np.diff(table, axis=1) <= 0.01 * (1 + table[:, :-1]))


@examples(50)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_bound_is_the_probability_of_the_region(
    n: int, m: int, u: float, v: float, p: float, w: float
) -> None:
    outcome = Counts(hits=round(u * n), draws=n, false_hits=round(v * m), false_draws=m)
    test = two_sample_binomial._Test(outcome, ALPHA, 0.0)
    q = test.ends[0] + w * (test.ends[1] - test.ends[0])
    counts = np.arange(test.first, test.first + test.least.size)
    inside = binom.pmf(counts, m, q) @ binom.sf(test.least - 1, n, p)
    bound = test.bound(p, q)
    assert bound >= inside * (1 - 1e-11)
    assert bound <= inside * (1 + 1e-9) + 1e-15


@examples(30)
@given(
    st.integers(20, 400),
    st.floats(0.2, 1),
    st.floats(0, 0.8),
    st.floats(0.0, 3.0),
    st.floats(0.0, 0.05),
    st.sampled_from([ALPHA, 1e-7]),
    st.data(),
)
def test_no_interval_hides_a_larger_value(
    n: int, u: float, v: float, epsilon: float, delta: float, alpha: float, data: st.DataObject
) -> None:
    """The bound from chords holds between its ends, by scipy's own binomials."""
    outcome = Counts(hits=round(u * n), draws=n, false_hits=round(v * n), false_draws=n)
    test = two_sample_binomial._Test(outcome, alpha, delta)
    lines = claim_lines(epsilon, delta)
    g = two_sample_binomial._claim(lines)
    low, high = test.ends
    a, b = sorted(low + (high - low) * data.draw(st.floats(0, 1)) for _ in range(2))
    bound = test._largest(lines, g, a, b)
    counts = np.arange(test.first, test.first + test.least.size)
    for q in np.linspace(a, b, 9).tolist():
        inside = binom.pmf(counts, n, q) @ binom.sf(test.least - 1, n, g(q))
        assert inside <= bound * (1 + 1e-9) + 1e-80


@pytest.mark.parametrize("p", [0.003, 0.1, 0.97])
def test_what_bends_the_chord_is_bounded_on_every_tail(p: float) -> None:
    """E[1_R(X/p² + (n − X)/(1 − p)²)] by enumeration, for R = {X ≥ k} and {X ≤ k}."""
    n = 400
    counts = np.arange(n + 1)
    law = binom.pmf(counts, n, p)
    bend = law * (counts / p**2 + (n - counts) / (1 - p) ** 2)
    by_root, by_tail = two_sample_binomial._information(n, p, p)
    larger = False  # than if the tail told nothing of the counts
    for chosen in (slice(None), slice(None, None, -1)):
        probability, attained = np.cumsum(law[chosen]), np.cumsum(bend[chosen])
        assert np.all(attained <= by_root * np.sqrt(probability) * (1 + 1e-9))
        assert np.all(attained <= by_tail * (probability + math.exp(-two_sample_binomial._FAR)))
        larger |= bool(np.any(attained > n / (p * (1 - p)) * probability * 1.01))
    assert larger


def test_a_small_level_takes_few_halvings() -> None:
    test = two_sample_binomial._Test(Counts(hits=900, draws=2000, false_hits=200), 1e-6, 0.0)
    limit = test.suggested(lambda epsilon: claim_lines(epsilon, 0.0), 0.0, 2.0) - 1e-3
    test.known.clear()
    assert test.refutes(claim_lines(limit, 0.0))
    assert len(test.known) < 200


@pytest.mark.parametrize(
    ("p", "q", "least"),
    [(0.5, 0.5 * math.exp(-1), 0.9615), (math.e / (1 + math.e), 1 / (1 + math.e), 0.9708)],
)
def test_little_is_lost_at_ten_thousand(p: float, q: float, least: float) -> None:
    """Splitting Clopper and Pearson's limits gives 0.939 for the first."""
    assert least <= epsilon_limit(round(10_000 * p), round(10_000 * q), 10_000) <= 1


def test_a_curve_is_refuted_where_one_of_its_points_is() -> None:
    outcome = Counts(hits=600, draws=1000, false_hits=200, false_draws=1000)
    strict, loose = claim_lines(0.5, 0.01), claim_lines(2.0, 0.0)
    assert outcome.refutes(strict, alpha=ALPHA)
    assert not outcome.refutes(loose, alpha=ALPHA)
    assert outcome.refutes([*loose, *strict], alpha=ALPHA)


def test_few_false_hits_count_for_much_with_little_caution() -> None:
    """27 of 10,000 against none refute ε = 1 at δ = 0.001; by the level's own z they don't."""
    seen, claim = Counts(hits=27, draws=10_000, false_hits=0, false_draws=10_000), (1.0, 0.001)
    lines = claim_lines(*claim)
    assert seen.refutes(lines, alpha=0.01, delta=0.001, caution=1.0)
    assert not seen.refutes(lines, alpha=0.01, delta=0.001)


def test_the_complement_counts() -> None:
    """The line of the complement takes the nuisance parameters at which the first one is weak."""
    outcome = Counts(hits=900, draws=1000, false_hits=100, false_draws=1000)
    both = claim_lines(2.042, 0.0)
    assert outcome.refutes(both, alpha=ALPHA)
    assert not outcome.refutes(both[:1], alpha=ALPHA)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 1.0, 12.7, 690.0])
@pytest.mark.parametrize("delta", [0.0, 0.25, 1.0])
def test_lines_are_rounded_up(epsilon: float, delta: float) -> None:
    """By no more than the last digits."""
    (up, base), (down, other) = claim_lines(epsilon, delta)
    with mpmath.workdps(40):
        factor = mpmath.exp(epsilon)
        assert base == delta
        for line, exact in ((up, factor), (down, 1 / factor), (other, 1 - (1 - delta) / factor)):
            assert exact <= line <= exact + 1e-14 * max(exact, 1 / factor)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1e-300, 0.5), (1.0, -1e-300), (1.0, 1 + 1e-15)])
def test_claims_outside_their_range(epsilon: float, delta: float) -> None:
    with pytest.raises(ParameterError, match="must be"):
        claim_lines(epsilon, delta)


def test_nothing_is_shown_by_equal_counts() -> None:
    assert epsilon_limit(50, 50, 100) == 0.0
    assert epsilon_limit(0, 0, 100) == 0.0


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"hits": -1}, "hits"),
        ({"hits": 11}, "hits"),
        ({"false_hits": 11}, "false_hits"),
        ({"draws": 0}, "draws"),
        ({"false_draws": 0}, "false_draws"),
    ],
)
def test_counts_outside_their_range(values: dict[str, int], name: str) -> None:
    good = {"hits": 5, "draws": 10, "false_hits": 5, "false_draws": 10}
    with pytest.raises(ParameterError, match=name):
        Counts(**good | values)


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_levels_outside_their_range(alpha: float) -> None:
    with pytest.raises(ParameterError, match="alpha"):
        epsilon_limit(5, 1, 10, alpha=alpha)
