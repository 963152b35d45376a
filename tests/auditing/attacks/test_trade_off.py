"""Bands on the ROC: their coverage against enumeration and simulation, and what they show."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian, epsilon_gaussian
from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.auditing.attacks import trade_off as tradeoff
from dpverify.auditing.attacks.trade_off import TradeOffAttack, band, coverage
from dpverify.auditing.audit import audit
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.gaussian_model import gaussian_fit
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.errors import ParameterError
from dpverify.privacy import Pair
from tests.helpers.attacks import finding_of
from tests.helpers.textbook import SUBJECTS

ALPHA = 0.05
DELTA = Fraction(1, 10**5)


def enumerated(n: int, ranks: list[int], levels: list[float]) -> float:
    """P[E] from the multinomial counts of the cells between all constraints."""
    times = sorted({*levels, *(1 - a for a in levels)})
    ends = [0.0, *times, 1.0]
    widths = np.diff(ends)
    total = 0.0
    for counts in product(range(n + 1), repeat=len(widths)):
        if sum(counts) != n:
            continue
        reached = dict(zip(times, np.cumsum(counts).tolist(), strict=False))
        good = all(reached[a] <= r - 1 for r, a in zip(ranks, levels, strict=True))
        mirrored = zip(ranks, levels[::-1], strict=True)
        if good and all(reached[1 - a] >= r for r, a in mirrored):
            ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
            total += ways * float(np.prod(widths ** np.array(counts)))
    return total


@pytest.mark.parametrize(
    ("n", "ranks", "levels"),
    [
        (1, [1], [0.1]),
        (2, [1, 2], [0.05, 0.3]),
        (3, [1, 2, 3], [0.02, 0.2, 0.45]),
        (5, [1, 5], [0.03, 0.4]),
    ],
)
def test_coverage_is_the_probability(n: int, ranks: list[int], levels: list[float]) -> None:
    value = coverage(n, np.array(ranks), np.array(levels))
    exact = enumerated(n, ranks, levels)
    assert value <= exact
    assert value == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 50, 10_000])
def test_the_level_is_used(n: int) -> None:
    ranks, levels = tradeoff._levels(n, ALPHA)
    assert list(ranks) == sorted({n + 1 - rank for rank in ranks})
    reached = coverage(n, np.array(ranks), np.array(levels)) ** 2
    assert 1 - ALPHA <= reached <= 1 - 0.99 * ALPHA


def test_no_level_is_taken_on_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no coverage can be shown, Bonferroni's limits are left."""
    monkeypatch.setattr(tradeoff, "coverage", lambda *_: 0.5)
    ranks, levels = tradeoff._levels.__wrapped__(100, ALPHA)
    each = betaincinv(ranks[0], 101 - ranks[0], ALPHA / (4 * len(ranks)))
    assert levels[0] == pytest.approx(each, rel=0.03)


def test_the_band_is_narrower_than_bonferroni() -> None:
    n = 10_000
    ranks, levels = tradeoff._levels(n, ALPHA)
    each = betaincinv(ranks[0], n - ranks[0] + 1, ALPHA / (4 * len(ranks)))
    assert levels[0] > 1.3 * each


def test_limits_hold_for_every_event_of_the_samples() -> None:
    """Points are the limits of {score ≥ t}, found here by going through the definition."""
    own, other = np.array([3.0, 1, 4, 1, 5, 9, 2, 6]), np.array([2.0, 7, 1, 8, 2, 8, 1, 8])
    found = band(own, other, alpha=ALPHA)
    table = dict(zip(found.ranks, found.levels, strict=True))
    for t in {*own, *other}:
        inside = int(np.sum(own >= t))
        outside = int(np.sum(other < t))
        p = max((table[r] for r in table if r <= inside), default=0.0)
        q = 1 - max((table[r] for r in table if r <= outside), default=0.0)
        assert any(a >= p * (1 - 1e-8) and b <= q * (1 + 1e-8) for a, b in found.points)
    for p, q in found.points:
        assert 0 <= p <= 1
        assert 0 < q <= 1


def test_what_a_band_shows_of_randomized_response() -> None:
    n = 10_000
    keep = round(n * math.e / (1 + math.e))
    own = np.repeat([1.0, 0.0], [keep, n - keep])
    found = band(own, 1 - own, alpha=ALPHA)
    assert 0.85 <= found.epsilon_lower(0.0) <= 1
    tilt = (math.e - math.exp(0.5)) / (1 + math.e)
    assert tilt - 0.08 <= found.delta_lower(0.5) <= tilt
    claim = ApproxDP(epsilon=Fraction(1))
    assert found.refuted_at(claim, Fraction(0)) is None
    low = found.refuted_at(ApproxDP(epsilon=Fraction(1, 2)), Fraction(0))
    assert low is not None
    assert found.epsilon_lower(0.0) > 0.5


def test_which_part_of_the_claim_was_in_reach() -> None:
    rng = np.random.default_rng(5)
    own, other = rng.normal(0.5, 1, 10_000), rng.normal(-0.5, 1, 10_000)
    curve = Gaussian(sigma=1)
    visible = band(own, other, alpha=ALPHA).visible(curve, DELTA)
    assert visible[0][1] < 1.2 * curve.delta_at(0).upper
    # Nobody sees a δ of 1e-5 in 1e4 draws.
    assert visible[-1][1] > 50 * float(DELTA)


def test_what_is_called_visible_is_seen() -> None:
    """Counts at the promised quantiles refute the claim, and those of a smaller δ don't."""
    n, curve = 10_000, ApproxDP(epsilon=Fraction(1))
    found = band(np.zeros(n), np.zeros(n), alpha=ALPHA)
    eps, least = found.visible(curve, Fraction(0))[16]
    q = curve.rates(eps)[1]
    for factor, seen in ((1.01, True), (0.9, False)):
        hits = int(binom.ppf(0.005, n, math.exp(eps) * q + factor * least))
        false_hits = int(binom.ppf(0.995, n, q))
        own = np.repeat([1.0, 0.0], [hits, n - hits])
        other = np.repeat([1.0, 0.0], [false_hits, n - false_hits])
        above = band(own, other, alpha=ALPHA).delta_lower(eps) > curve.delta_at(eps).upper
        assert above == seen


def test_the_gaussian_model_bounds_most_samples_of_gaussians() -> None:
    rng = np.random.default_rng(6)
    bounds = []
    for _ in range(40):
        own, other = rng.normal(0.5, 1, 10_000), rng.normal(-0.5, 1, 10_000)
        fit = gaussian_fit(own, other, delta=DELTA, alpha=ALPHA)
        if fit.epsilon_lower is not None:
            bounds.append(fit.epsilon_lower)
    assert len(bounds) >= 33  # 38 expected; fewer with probability 1e-4
    assert 4.24 <= np.median(bounds) <= epsilon_gaussian(DELTA, 1).lower


def test_the_gaussian_model_is_refused_for_other_laws() -> None:
    rng = np.random.default_rng(7)
    laplace = rng.laplace(size=(2, 10_000))
    bits = (rng.random((2, 10_000)) < [[0.73], [0.27]]) * 1.0
    wider = rng.normal(size=(2, 10_000)) * [[1.0], [1.1]]
    loss = np.abs(laplace[0]) - np.abs(laplace[0] - 1), np.abs(laplace[1] + 1) - np.abs(laplace[1])
    for own, other in (laplace, bits, wider, loss, (bits[0] * 0, bits[1] * 0)):
        fit = gaussian_fit(own, other, delta=DELTA, alpha=ALPHA)
        assert fit.p_value <= ALPHA
        assert fit.mu is None
        assert fit.mu_lower is None
        assert fit.epsilon_lower is None


def test_the_guard_refuses_gaussians_at_its_level() -> None:
    rng = np.random.default_rng(8)
    fits = [gaussian_fit(*rng.normal(size=(2, 200)), delta=DELTA, alpha=ALPHA) for _ in range(1000)]
    refused = sum(fit.epsilon_lower is None for fit in fits)
    assert 20 <= refused <= binom.ppf(1 - 1e-4, 1000, ALPHA)


def test_halved_noise_is_found_and_its_twin_is_not_accused() -> None:
    correct, halved = (
        finding_of(
            TradeOffAttack(),
            SUBJECTS[place].mechanism,
            [SUBJECTS[place].pair],
            alpha=0.05,
            draws=2000,
            seed=3,
            workers=1,
        )
        for place in (0, 2)
    )
    assert correct.verdict == "no_violation_found"
    assert halved.verdict == "violation"
    assert halved.epsilon_lower is not None
    assert 1 < halved.epsilon_lower < 2
    assert halved.audit == "trade-off"


@pytest.mark.parametrize("kind", ["black-box", "trade-off", "sequential"])
def test_a_claim_of_concentrated_dp_is_audited(kind: AuditKind) -> None:
    bound: Any = ZCDP(rho="0.5")  # of which no law of losses is known
    mechanism = adapt(
        lambda x, rng: x + rng.normal(scale=0.25),
        claim=bound,
        adjacency=Attribute(1),
        attributes=1,
        of="record",
    )
    pair = Pair(name="up", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    report = audit(mechanism, pairs=[pair], draws=400, kinds=[kind], workers=1)
    assert report.verdict == "violation", str(report)


@pytest.mark.parametrize("n", [8, 50, 5000])
@pytest.mark.parametrize("alpha", [1e-12, 1e-17, 1e-100, 5e-324])
def test_levels_that_a_coverage_in_doubles_does_not_see(alpha: float, n: int) -> None:
    """They are at most Bonferroni's, each of which the rank's own tail confirms."""
    ranks, levels = map(np.array, tradeoff._levels.__wrapped__(n, alpha))
    missed = binom.logsf(ranks - 1, n, levels)
    assert np.all(missed <= math.log(alpha) - math.log(4 * ranks.size) + 1e-3)


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_levels_outside_their_range(alpha: float) -> None:
    with pytest.raises(ParameterError, match="alpha"):
        band(np.zeros(9), np.ones(9), alpha=alpha)


def test_a_bound_that_knows_no_rates_has_those_of_its_slope() -> None:
    bound = ZCDP(rho=Fraction(1, 2))
    below, above = (bound.delta_at(end).upper for end in (1.0, 1.001))
    slope = (below - above) / (math.exp(1.001) - math.exp(1.0))
    assert math.isclose(tradeoff._false_rate(bound, 1.0), slope)
    exact = Gaussian(sigma=1)
    assert tradeoff._false_rate(exact, 1.0) == exact.rates(1.0)[1]
