from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import ndtr

from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
    keep_probability,
    max_differing,
)
from dpverify.data.adjacency import Adjacency, Attribute, L1Ball, Record
from dpverify.data.domain import Box
from dpverify.enclosure import SquareRoot, squared, to_arb
from dpverify.errors import ParameterError, RecordsError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import WhiteBox
from dpverify.sampling.words import ReplayableWords, SecureWords
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign._angle_law import differing_probability, rounding_slack
from dpverify_mechanisms.sign.estimators import Angle, BitAgreement, SignCollision, SignCosine
from dpverify_mechanisms.sign.flip_rules import UNIT, Ladder, PrintedAlgorithm7
from dpverify_mechanisms.sign.individual_rules import IndividualNoise
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.profiles import thinned

SIGNED = Box(low=Fraction(-1), high=Fraction(1))
ONE = Attribute(beta=Fraction(1))
TARGET: dict[str, Any] = {"epsilon": Fraction(2), "domain": SIGNED, "adjacency": ONE}
DELTA = Fraction(1, 10**6)

SKETCHES = {
    "dp-signrp-rr": SignSketch.dp_signrp_rr(p=9, k=11, seed=1, **TARGET),
    "dp-signrp-rr, delta": SignSketch.dp_signrp_rr(p=9, k=11, seed=1, delta=DELTA, **TARGET),
    "dp-signrp-rr-smooth": SignSketch.dp_signrp_rr_smooth(p=9, k=11, seed=1, **TARGET),
    "gaussian smooth": SignSketch.dp_signrp_rr_smooth(
        p=9, k=11, seed=1, projection=GaussianProjection, **TARGET
    ),
    "dp-signoporp-rr": SignSketch.dp_signoporp_rr(p=12, k=11, seed=1, **TARGET),
    "dp-signoporp-rr-smooth": SignSketch.dp_signoporp_rr_smooth(
        p=12, k=12, seed=1, repetitions=4, **TARGET
    ),
    "steepest": SignSketch.calibrated(
        RademacherProjection(p=9, k=11, seed=1), ladder=Ladder.steepest, **TARGET
    ),
    "idp-signrp-rr": SignSketch.idp_signrp_rr(RademacherProjection(p=9, k=11, seed=1), **TARGET),
    "idp-signrp-g": SignSketch.idp_signrp_g(
        RademacherProjection(p=9, k=11, seed=1), delta=DELTA, **TARGET
    ),
    "idp-signoporp": SignSketch.idp_signrp_rr(OPORP(p=12, k=11, seed=1), **TARGET),
    "over the draw": SignSketch.dp_signrp_rr(
        p=40, k=11, seed=1, delta=DELTA, least_norm=Fraction(3), **TARGET
    ),
}


@pytest.fixture(params=SKETCHES)
def sketch(request: pytest.FixtureRequest) -> SignSketch:
    return SKETCHES[request.param]


# The claim


def test_the_claim_meets_its_target(sketch: SignSketch) -> None:
    assert isinstance(sketch, WhiteBox)
    guarantee = sketch.guarantee()
    assert guarantee.curve == sketch.privacy()
    assert isinstance(guarantee.curve, PrivacyCurve)
    assert Fraction(guarantee.curve.delta_at(2).upper) <= DELTA
    assert guarantee.adjacency == ONE
    assert guarantee.over_the_draw is (sketch.least_norm is not None)


def test_notions_are_told_apart() -> None:
    for name, sketch in SKETCHES.items():
        individual = name.startswith("idp")
        assert (sketch.guarantee().notion == "individual differential privacy") is individual
        assert bool(sketch.guarantee().assumptions) is (individual or sketch.least_norm is not None)


def test_positions_that_a_neighbour_may_change() -> None:
    """All k bits of a dense matrix, one of an OPORP, one a repetition; all for whole records."""
    expected = {"dp-signrp-rr": 11, "dp-signoporp-rr": 1, "dp-signoporp-rr-smooth": 4}
    for name, count in expected.items():
        assert SKETCHES[name].positions() == count
    target = TARGET | {"adjacency": Record()}
    assert SignSketch.dp_signoporp_rr(p=12, k=8, seed=1, **target).positions() == 8
    target = TARGET | {"adjacency": L1Ball(radius=Fraction(1, 2))}
    assert SignSketch.dp_signoporp_rr(p=12, k=8, seed=1, **target).positions() == 8


@given(
    epsilon=st.fractions(Fraction(1, 1000), 12, max_denominator=1000),
    positions=st.integers(1, 600),
)
def test_ladders_have_the_ratio_of_their_first_step(epsilon: Fraction, positions: int) -> None:
    """The worst ratio over every change of level is that of the sign at level 1."""
    keep = keep_probability(epsilon, positions=positions)
    for make in (Ladder.response, Ladder.smooth, Ladder.steepest):
        ladder = make(keep)
        first = Fraction(UNIT - ladder.flips[1], ladder.flips[1])
        assert ladder.ratio() == first
        with ctx.workprec(2048):
            assert to_arb(first) ** positions <= to_arb(epsilon).exp()


def test_smooth_ladder_is_the_papers_and_steepest_is_below() -> None:
    keep = keep_probability(Fraction(1))
    smooth, steepest = Ladder.smooth(keep).flips, Ladder.steepest(keep).flips
    for level in range(1, 25):
        assert smooth[level] / UNIT == pytest.approx(1 / (math.exp(level) + 1), rel=1e-9)
    assert all(a <= b for a, b in zip(steepest[2:], smooth[2:], strict=False))
    assert steepest[2] / UNIT == pytest.approx(1 / (math.e**2 + math.e))
    assert min(smooth[-1], steepest[-1]) == 2**24


def test_rounding_each_probability_by_itself_is_not_private() -> None:
    """Why the ladder is built downwards: nearest multiples of 2⁻⁶⁴ break the ratio."""
    keep = keep_probability(Fraction(1))
    odds = keep / (1 - keep)
    nearest = tuple(round(UNIT / (odds**n + 1)) for n in range(28))
    broken = Ladder(flips=(UNIT // 2, Ladder.smooth(keep).flips[1], *nearest[2:]))
    assert broken.ratio() > Ladder.smooth(keep).ratio()


def test_ladders_refuse_what_they_cannot_be() -> None:
    for wrong in ((UNIT // 2,), (UNIT // 3, 5), (UNIT // 2, 5, 6), (UNIT // 2, 0)):
        with pytest.raises(ParameterError):
            Ladder(flips=wrong)
    with pytest.raises(ParameterError):
        Ladder.response(Fraction(1, 3))


def test_repetitions_split_the_budget() -> None:
    single, four = (
        SignSketch.dp_signoporp_rr(p=16, k=8, seed=1, repetitions=t, **TARGET) for t in (1, 4)
    )
    curve = four.privacy()
    assert isinstance(curve, RandomizedResponse)
    assert curve.positions == 4
    odds = [UNIT / s.rule.flips[1] - 1 for s in (single, four)]  # type: ignore[attr-defined]
    assert math.log(odds[0]) == pytest.approx(4 * math.log(odds[1]))
    matrix = four.projection.matrix.toarray()
    assert matrix.shape == (16, 8)
    assert (np.abs(matrix).reshape(16, 4, 2).sum(axis=2) == 1).all()
    assert len({matrix[:, 2 * r : 2 * r + 2].tobytes() for r in range(4)}) == 4
    with pytest.raises(ParameterError, match="multiple of repetitions"):
        RepeatedOPORP(p=16, k=9, seed=1, repetitions=4)


def test_what_does_not_fit_is_refused() -> None:
    whole = TARGET | {"adjacency": Record()}
    with pytest.raises(ParameterError, match=r"Ladder\.response for whole records"):
        SignSketch.dp_signrp_rr_smooth(p=4, k=2, seed=1, **TARGET | {"adjacency": Record()})
    with pytest.raises(ParameterError, match="individual flip rule"):
        SignSketch.idp_signrp_rr(RademacherProjection(p=4, k=2, seed=1), **whole)
    with pytest.raises(ParameterError, match="least_norm"):
        SignSketch.dp_signoporp_rr(p=4, k=2, seed=1, least_norm=Fraction(1), delta=DELTA, **TARGET)
    with pytest.raises(ParameterError, match="left out where whole records are replaced"):
        SignSketch.dp_signrp_rr(p=4, k=2, seed=1, least_norm=Fraction(1), delta=DELTA, **whole)
    with pytest.raises(ParameterError, match="delta"):
        SignSketch.dp_signrp_rr(p=4, k=2, seed=1, least_norm=Fraction(1), **TARGET)
    with pytest.raises(ParameterError, match="least_norm=-1 must be at least 0"):
        SignSketch.dp_signrp_rr(p=4, k=2, seed=1, least_norm=-1, delta=DELTA, **TARGET)
    with pytest.raises(ParameterError, match="beta"):
        SignSketch.dp_signrp_rr(
            p=4, k=2, seed=1, **TARGET | {"adjacency": Attribute(beta=Fraction(3))}
        )
    with pytest.raises(ParameterError, match="individual one"):
        SKETCHES["dp-signrp-rr"].held_at(np.zeros(9))
    with pytest.raises(ParameterError, match="least_norm"):
        SKETCHES["dp-signrp-rr"].over_the_draw()


def test_printed_algorithm_7_cannot_be_certified() -> None:
    """Its levels: ⌈√k/(β·max|W_ij|)⌉ with W = the integers times scale·√k."""
    projection = GaussianProjection(p=50, k=64, seed=3)
    rule = PrintedAlgorithm7.of(Ladder.smooth(Fraction(3, 4)), projection, Fraction(1))
    entries = np.abs(projection.matrix).max(axis=0) * 2.0**-20
    assert rule.levels == tuple(np.ceil(8 / entries).astype(int))
    assert set(rule.levels) <= {2, 3, 4, 5}
    with pytest.raises(ParameterError, match="as printed"):
        rule.curve(64, adjacent=True)


# Over the draw


def test_angle_law_bounds_every_pair() -> None:
    """All pairs of a lattice, on both sides of the norm's bound: never above, and close to it."""
    values = np.array(list(product(range(-32, 33), repeat=2))) / 16
    worst = 0.0
    for m in (Fraction(1), Fraction(5, 4)):
        far = values[(values**2).sum(axis=1) >= float(m) ** 2]
        bound = differing_probability(Fraction(1), m, p=2, step=Fraction(1, 2**20)).upper
        for axis in (0, 1):
            for move in np.arange(-4, 5) / 4:
                moved = far + move * np.eye(2)[axis]
                kept = (moved**2).sum(axis=1) >= float(m) ** 2
                a, b = far[kept], moved[kept]
                cosines = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
                share = np.arccos(np.clip(cosines, -1, 1)).max() / math.pi
                assert share <= bound
                worst = max(worst, share / bound)
    assert worst > 0.95


def test_angle_law_charges_the_grid_and_the_matrix() -> None:
    mp.dps = 30
    p, m = 784, Fraction(10)
    bound = differing_probability(Fraction(1), m, p=p, step=Fraction(1, 8))
    norm = 10 - mp.sqrt(p) / 16
    eta = mp.sqrt(2 / mp.pi) * mp.sqrt(p) / 2**21
    exact = 2 * mp.asin(1 / (2 * norm)) / mp.pi + 2 * eta
    assert mp.mpf(bound.lower) <= exact <= mp.mpf(bound.upper)
    assert bound.width < 1e-13
    assert rounding_slack(p).upper == pytest.approx(float(eta))
    # η bounds the probability itself.
    assert mp.erf(mp.sqrt(p) / 2**21 / mp.sqrt(2)) <= eta
    assert differing_probability(Fraction(1), Fraction(1, 3), p=2, step=Fraction(1)).upper == 1
    assert differing_probability(Fraction(1), Fraction(1, 3), p=2, step=DELTA).upper == 1


def test_claim_over_the_draw() -> None:
    sketch = SKETCHES["over the draw"]
    curve = sketch.privacy()
    assert isinstance(curve, MixedResponse)
    assert curve.differ == differing_probability(
        Fraction(1), Fraction(3), p=40, step=Fraction(1, 1024)
    )
    assert sketch.guarantee() == sketch.over_the_draw()
    realised = sketch.realised().curve
    assert isinstance(realised, RandomizedResponse)
    assert realised.positions == 11
    assert realised.delta_at(2).lower > 1e-3  # what a realised projection alone can't promise
    # Theorem 4.1 with the pair's own N₊ needs more flips; the printed N₊ more still.
    count = max_differing(11, curve.differ, DELTA)
    assert count < 11
    assert curve.keep > keep_probability(Fraction(2), positions=count)
    (pair,) = sketch.worst_pairs()
    assert min(np.linalg.norm(pair.record), np.linalg.norm(pair.neighbour)) >= 3
    assert np.abs(pair.record - pair.neighbour).sum() == 1


def test_a_domain_away_from_0_implies_its_least_norm() -> None:
    domain = Box(low=Fraction(1), high=Fraction(2))
    declared = [
        SignSketch.dp_signrp_rr(
            p=9, k=4, seed=1, delta=DELTA, least_norm=m, **TARGET | {"domain": domain}
        )
        .guarantee()
        .assumptions
        for m in (Fraction(3), Fraction(31, 10))
    ]
    seed = "seed was drawn at random"
    assert [seed in text for text in declared[0]] == [True]
    assert "after scaling by data.ranges" in declared[1][0]
    assert seed in declared[1][1]


def test_pairs_of_a_least_norm_stay_in_a_domain_away_from_0() -> None:
    for low, high in ((1, 2), (-2, -1)):
        domain = Box(low=Fraction(low), high=Fraction(high))
        target = TARGET | {"domain": domain}
        sketch = SignSketch.dp_signrp_rr(
            p=9, k=4, seed=1, delta=DELTA, least_norm=Fraction(2), **target
        )
        for pair in sketch.worst_pairs():
            domain.admit(pair.record), domain.admit(pair.neighbour)


def test_a_least_norm_that_clipping_or_the_domain_breaks_is_refused() -> None:
    clip = TARGET | {"domain": Box(low=Fraction(-1), high=Fraction(1), outside="clip")}
    least: Any = {"p": 9, "k": 4, "seed": 1, "delta": DELTA}
    with pytest.raises(ParameterError, match="outside=clip must be refuse where a least norm"):
        SignSketch.dp_signrp_rr(least_norm=Fraction(2), **least, **clip)
    with pytest.raises(ParameterError, match="least_norm=100 must be at most the largest norm"):
        SignSketch.dp_signrp_rr(least_norm=Fraction(100), **least, **TARGET)


def test_signs_of_a_pair_differ_as_the_angle_law_says() -> None:
    """100,000 columns; the level of this test is 1e-6."""
    sketch = SignSketch.dp_signrp_rr(p=3, k=100_000, seed=8, **TARGET)
    x, y = np.array([1.0, 0.5, -0.25]), np.array([0.0, 0.5, -0.25])
    signs = np.sign(sketch.noiseless(np.stack([x, y])))
    angle = math.acos(x @ y / np.linalg.norm(x) / np.linalg.norm(y)) / math.pi
    spread = math.sqrt(angle * (1 - angle) / 100_000)
    assert abs((signs[0] != signs[1]).mean() - angle) < 4.9 * spread


# The release


def test_release_is_signs_and_coins(sketch: SignSketch) -> None:
    """Replayed by hand from the words: a coin a sign, row by row."""
    p, k = sketch.projection.p, sketch.projection.k
    x = np.random.default_rng(2).integers(-4, 5, (300, p)) / 4
    released = sketch.release(x, rng=ReplayableWords(3))
    assert released.shape == (300, -(-k // 8))
    assert released.dtype == np.uint8
    assert (np.unpackbits(released, axis=1)[:, k:] == 0).all()
    if isinstance(sketch.rule, IndividualNoise):
        return
    matrix = sketch.projection.matrix
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    sums = np.rint(x * 1024) @ matrix
    bits = np.unpackbits(released, axis=1, count=k).astype(bool)
    numerators = sketch.rule.numerators(sums.astype(np.int64), sketch.divisors())  # type: ignore[attr-defined]
    words = ReplayableWords(3).words(300 * k).reshape(300, k)
    assert (bits == ((sums >= 0) != (words < numerators))).all()
    if sketch.projection.name != "gaussian":
        assert (sums == 0).any()
    assert (numerators[sums == 0] == UNIT // 2).all()


def test_gaussian_noise_on_the_noise_set_alone() -> None:
    """The bits outside the set are bare; inside, Φ(−|V|/s) of them flip (level 1e-6)."""
    sketch = SKETCHES["idp-signrp-g"]
    x = np.random.default_rng(5).integers(-4, 5, (1, 9)) / 4
    sums = sketch.noiseless(x)[0]
    chosen = np.abs(sums) <= sketch.divisors()
    assert 0 < chosen.sum() < 11
    draws = 20_000
    released = sketch.release(np.repeat(x, draws, axis=0), rng=ReplayableWords(9))
    share = np.unpackbits(released, axis=1, count=11).mean(axis=0)
    assert (share[~chosen] == (sums[~chosen] > 0)).all()
    size = SquareRoot(Fraction(1024**2 * int(chosen.sum())))
    scale = sigma_gaussian(2, DELTA, sensitivity=size).upper
    expected = np.where(chosen, ndtr(sums / scale), sums > 0)
    assert (1 + sketch.means(x[0])) / 2 == pytest.approx(expected, abs=1e-6)
    spread = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(share - expected) <= 5.3 * spread + 1e-12).all()
    assert np.abs(2 * expected - 1)[chosen].max() > 0.05


def test_individual_noise_is_the_analytic_gaussian_mechanism() -> None:
    rule = SKETCHES["idp-signrp-g"].rule
    assert isinstance(rule, IndividualNoise)
    curve = SKETCHES["idp-signrp-g"].privacy()
    assert isinstance(curve, Gaussian)
    assert Fraction(curve.delta_at(2).upper) <= DELTA
    assert curve.delta_at(2).lower > float(DELTA) * (1 - 1e-11)
    for size, scale in enumerate(rule.scales, start=1):
        mu = squared(SquareRoot(Fraction(1024**2 * size))) / Fraction(scale) ** 2
        assert mu <= curve.mu_squared


def test_secure_words_and_wrong_records() -> None:
    sketch = SKETCHES["dp-signrp-rr"]
    x = np.zeros((2, 9))
    assert (sketch.release(x, rng=SecureWords()) != sketch.release(x, rng=SecureWords())).any()
    for wrong in (np.full((1, 9), 2.0), np.full((1, 9), np.nan), np.zeros((1, 8))):
        with pytest.raises(RecordsError):
            sketch.release(wrong, rng=SecureWords())


def test_sparse_records_give_the_same_release() -> None:
    from scipy import sparse

    sketch = SKETCHES["dp-signoporp-rr"]
    x = np.random.default_rng(1).integers(-1, 2, (200, 12)).astype(float)
    thin: Any = sparse.csr_array(x)
    dense, thin = (sketch.release(r, rng=ReplayableWords(1)) for r in (x, thin))
    assert (dense == thin).all()


# The attack


@pytest.mark.parametrize("sketch", thinned(SKETCHES, 3), indirect=True)
def test_likelihood_ratio_is_that_of_the_exact_law(sketch: SignSketch) -> None:
    if isinstance(sketch.rule, IndividualNoise) or sketch.projection.p > 12:
        return
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, sketch.projection.p) / 4
    y = x.copy()
    y[0] = 0.5 * (x[0] < 0)
    own, other = sketch.distribution(x), sketch.distribution(y)
    assert sum(own.values()) == 1
    keys = [key for key in own if own[key] or other[key]]
    outputs = np.array([np.frombuffer(key, dtype=np.uint8) for key in keys])[:, None]
    scores = sketch.log_likelihood_ratio(outputs, x[None], y[None])
    for key, score in zip(keys, scores.tolist(), strict=True):
        if own[key] and other[key]:
            assert score == pytest.approx(math.log(own[key] / other[key]), abs=1e-9)
        else:
            assert score == (math.inf if own[key] else -math.inf)
    swapped = sketch.log_likelihood_ratio(outputs, y[None], x[None])
    assert (swapped == -scores).all()
    if not sketch.rule.notion.startswith("individual"):
        assert sketch.largest_ratio(x, y) == max(own[key] / other[key] for key in keys)


def test_losses_are_whole_multiples_without_ties_to_break() -> None:
    """The audit's tail event counts j·s where the double j·s reaches the threshold."""
    sketch = SKETCHES["dp-signrp-rr"]
    (pair,) = sketch.worst_pairs()
    curve = sketch.privacy()
    assert isinstance(curve, RandomizedResponse)
    every = np.array(
        [np.frombuffer(key, dtype=np.uint8) for key in sketch.distribution(np.zeros(9))]
    )
    scores = sketch.log_likelihood_ratio(every[:, None], pair.record, pair.neighbour)
    assert set(scores) == {j * curve.loss().upper for j in range(-11, 12, 2)}


def test_worst_pairs_are_neighbours_of_the_domain(sketch: SignSketch) -> None:
    for pair in sketch.worst_pairs():
        assert pair.record.shape == (1, sketch.projection.p)
        assert np.abs(np.stack([pair.record, pair.neighbour])).max() <= 1
        assert np.count_nonzero(pair.record - pair.neighbour) == 1
        assert np.abs(pair.record - pair.neighbour).sum() <= 1


@pytest.mark.parametrize("adjacency", [ONE, Record()])
def test_worst_pairs_where_the_domain_ends_at_0(adjacency: Adjacency) -> None:
    """The background must be found: with zeros, no sign would cross."""
    domain = Box(low=Fraction(0), high=Fraction(1))
    target = TARGET | {"domain": domain, "adjacency": adjacency}
    sketch = SignSketch.dp_signrp_rr(p=60, k=12, seed=4, **target)
    (pair,) = sketch.worst_pairs()
    assert min(pair.record.min(), pair.neighbour.min()) >= 0
    lost = math.log(sketch.largest_ratio(pair.record, pair.neighbour))
    assert lost == pytest.approx(2, rel=1e-9)


# Utility


def moments(sketch: SignSketch, estimator: Any, x: Any, y: Any) -> tuple[float, float]:
    """Mean and variance over every pair of outputs."""
    total = square = 0.0
    second = sketch.distribution(y)
    for a, p in sketch.distribution(x).items():
        for b, q in second.items():
            value = float(
                estimator.estimate(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))
            )
            total += float(p * q) * value
            square += float(p * q) * value**2
    return total, square - total**2


@pytest.mark.parametrize("ladder", [Ladder.response, Ladder.smooth])
@pytest.mark.parametrize(
    "projection",
    [RademacherProjection(p=4, k=5, seed=2), OPORP(p=6, k=5, seed=1)],
    ids=["rademacher", "oporp"],
)
def test_realised_moments_by_enumeration(projection: Any, ladder: Any) -> None:
    sketch = SignSketch.calibrated(projection, ladder=ladder, **TARGET | {"epsilon": Fraction(8)})
    x, y = np.zeros(projection.p), np.linspace(1, -0.5, projection.p)
    x[:3] = 1, 0.5, -0.5
    assert (sketch.noiseless(np.stack([x, y])) == 0).any()
    kinds: list[Any] = [BitAgreement]
    if ladder is Ladder.response:
        kinds += [SignCollision, Angle, SignCosine]
    for kind in kinds:
        estimator = kind(sketch=sketch, realised=True)
        mean, variance = moments(sketch, estimator, x, y)
        assert estimator.expectation(x, y) == pytest.approx(mean)
        assert estimator.variance(x, y) == pytest.approx(variance)
        if kind is not SignCosine:
            assert estimator.truth(x, y) == pytest.approx(mean)


def test_zeros_agree_with_anything_by_half() -> None:
    sketch, zeros, ones = SKETCHES["dp-signrp-rr"], np.zeros(9), np.ones(9)
    for records in ((zeros, ones), (ones, zeros), (zeros, zeros)):
        for realised in (True, False):
            agreement = BitAgreement(sketch=sketch, realised=realised)
            assert agreement.truth(*records) == pytest.approx(0.5)


def test_moments_over_the_draw() -> None:
    """The agreeing bits are binomial with the paper's P̃; V_RR/k is theorem 4.6's."""
    sketch = SKETCHES["dp-signrp-rr"]
    x, y = np.random.default_rng(6).integers(-4, 5, (2, 9)) / 4
    collision, angle, cosine = sketch.estimators()
    theta = math.acos(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    odds = float(sketch.rule.ratio())  # type: ignore[attr-defined]
    share = (1 - theta / math.pi) * (odds - 1) ** 2 / (odds + 1) ** 2 + 2 * odds / (odds + 1) ** 2
    k = 11
    counts = np.arange(k + 1)
    chances = (
        np.array([math.comb(k, n) for n in counts]) * share**counts * (1 - share) ** (k - counts)
    )
    rows = np.packbits(counts[:, None] <= np.arange(k), axis=1)  # n bits agree with no bits at all
    for estimator, truth in ((collision, 1 - theta / math.pi), (angle, theta), (cosine, None)):
        values = estimator.estimate(rows, np.zeros((1, 2), dtype=np.uint8))
        mean = float(chances @ values)
        assert estimator.expectation(x, y) == pytest.approx(mean, abs=1e-9)
        assert estimator.variance(x, y) == pytest.approx(chances @ (values - mean) ** 2)
        if truth is not None:
            assert mean == pytest.approx(truth)
            assert estimator.truth(x, y) == pytest.approx(truth)
    assert cosine.truth(x, y) == pytest.approx(math.cos(theta))
    paper = theta * (math.pi - theta) + 2 * math.pi**2 * odds / (odds - 1) ** 2
    paper += 4 * math.pi**2 * odds**2 / (odds - 1) ** 4
    assert angle.variance(x, y) == pytest.approx(paper / k)


@pytest.mark.parametrize("opposite", [False, True])
@pytest.mark.parametrize("odds", [10**4, 10**9])
def test_the_cosines_variance_keeps_its_digits(odds: int, opposite: bool) -> None:
    """Of parallel records, of whose many bits few are flipped; a sum over all with 60 digits."""
    k = 300
    epsilon = k * Fraction(round(8 * math.log(odds)), 8)
    sketch = SignSketch.calibrated(
        GaussianProjection(p=2, k=k, seed=3), **TARGET | {"epsilon": epsilon}
    )
    with mp.workdps(60):
        flip = mp.mpf(sketch.rule.flips[1]) / 2**64  # type: ignore[attr-defined]
        differ, kept = 2 * flip * (1 - flip), (1 - 2 * flip) ** 2
        shares = [mp.binomial(k, n) * differ**n * (1 - differ) ** (k - n) for n in range(k + 1)]
        values = [mp.cos(mp.pi * (0.5 + (mp.mpf(n) / k - 0.5) / kept)) for n in range(k + 1)]
        due = float(mp.fdot(shares, [v * v for v in values]) - mp.fdot(shares, values) ** 2)
    x = np.ones(2)
    cosine = SignCosine(sketch=sketch, realised=False)
    assert cosine.variance(x, -x if opposite else x) == pytest.approx(due, rel=1e-6, abs=0)


def test_estimates_broadcast(sketch: SignSketch) -> None:
    x = np.stack([pair.record[0] for pair in sketch.probes(ReplayableWords(1))[:5]])
    released = sketch.release(x, rng=ReplayableWords(2))
    for estimator in sketch.estimators():
        table = estimator.estimate(released[:, None], released[None])
        assert table.shape == (5, 5)
        assert table[1, 3] == estimator.estimate(released[1], released[3])
        assert estimator.variance(x[0], x[1]) > 0
        dense_response = sketch.projection.name == "gaussian" and not sketch.rule.graded
        assert estimator.over == ("draw and noise" if dense_response else "noise")


def test_facts_and_redraws(sketch: SignSketch) -> None:
    other = sketch.redrawn(77)
    assert other.facts()["noise"] == sketch.facts()["noise"]
    assert other.facts()["projection"]["sha256"] != sketch.facts()["projection"]["sha256"]
    assert other.redrawn(sketch.projection.seed).facts() == sketch.facts()
    assert sketch.step() is None


@pytest.mark.parametrize(
    ("k", "norm", "epsilon", "delta", "best"),
    [
        (8, 500, "1", "1e-3", 1.2865),
        (1, 10, "0.1", "1e-2", 0.7268),
        (32, 1000, "1", "1e-3", 1.1359),
        (64, 50, "0.25", "1e-2", 0.2792),
        (64, 10**4, "1", "1e-4", 1.0617),
    ],
)
def test_least_flips_over_the_draw(
    k: int, norm: int, epsilon: str, delta: str, best: float
) -> None:
    """A bit may lose more than ε where few signs differ: an oracle by sums over all of them."""
    target = {"epsilon": Fraction(epsilon), "delta": Fraction(delta), "least_norm": Fraction(norm)}
    sketch = SignSketch.dp_signrp_rr(
        p=16,
        k=k,
        seed=0,
        **target,
        domain=Box(low=Fraction(-(10**5)), high=Fraction(10**5)),
        adjacency=Attribute(beta=Fraction(1)),
    )
    assert isinstance(sketch.rule, Ladder)
    flip = sketch.rule.flips[1] / 2**64
    per_bit = math.log((1 - flip) / flip)
    assert per_bit == pytest.approx(best, abs=1e-4)
    differ = sketch.differ().upper

    def summed(loss: float) -> float:
        keep, total = 1 / (1 + math.exp(-loss)), 0.0
        for n in range(1, k + 1):
            chance = math.comb(k, n) * differ**n * (1 - differ) ** (k - n)
            for kept in range(n + 1):
                own = keep**kept * (1 - keep) ** (n - kept)
                other = keep ** (n - kept) * (1 - keep) ** kept
                excess = max(own - math.exp(float(epsilon)) * other, 0.0)
                total += chance * math.comb(n, kept) * excess
        return total

    assert summed(per_bit) <= float(delta) * (1 + 1e-9)
    assert summed(per_bit * (1 + 1e-7)) > float(delta)
    assert Fraction(sketch.privacy().delta_at(Fraction(epsilon)).upper) <= Fraction(delta)
