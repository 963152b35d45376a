"""Every hash function of a tiny universe, every pair of sets, every output: exact laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.enclosure import to_arb
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.min_hash.estimators import DistanceSimilarity, jaccard
from dpverify_mechanisms.min_hash.hashing import TabledHashes
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketResponse, BucketRule, Plain
from dpverify_mechanisms.min_hash.sketch import MinHash, Reading
from dpverify_mechanisms.min_hash.worst_pairs import farthest_sets
from tests.helpers.profiles import day_and_night, thinned

RESPONSE = BucketResponse(keep=Fraction(3, 4))
NOISE = BucketNoise(noise=GeometricNoise(ratio=Fraction(1, 4)))
RULES = (RESPONSE, NOISE)
EPSILONS = (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(3))

Setup = tuple[int, int, int, int, int]  # items, buckets, functions, least, changes
SETUPS: list[Setup] = [
    (3, 2, 2, 1, 1),
    (3, 2, 2, 1, 2),
    (3, 2, 2, 2, 2),
    (4, 2, 1, 2, 1),
    (4, 2, 1, 1, 3),
    (4, 3, 1, 2, 2),
    (4, 3, 1, 2, 3),
]

Values = tuple[int, ...]
Outcomes = Counter[tuple[Fraction, Fraction]]  # of (own, other probability), over all functions


def functions(items: int, buckets: int) -> list[tuple[Values, Values]]:
    """Every range-B MinHash function: all orders and all marks."""
    return list(product(permutations(range(items)), product(range(buckets), repeat=items)))


def families(items: int, buckets: int, count: int) -> Iterator[TabledHashes]:
    for chosen in product(functions(items, buckets), repeat=count):
        yield TabledHashes(
            items=items,
            functions=count,
            buckets=buckets,
            orders=tuple(order for order, _ in chosen),
            marks=tuple(marks for _, marks in chosen),
        )


def sets(items: int, least: int) -> list[NDArray[np.int64]]:
    rows = []
    for size in range(least, items + 1):
        for chosen in combinations(range(items), size):
            row = np.zeros(items, dtype=np.int64)
            row[list(chosen)] = 1
            rows.append(row)
    return rows


@cache
def sketches(
    setup: Setup,
) -> tuple[list[NDArray[np.int64]], Counter[tuple[Values, ...]], TabledHashes]:
    """All sets, and how often the realised functions give them these buckets."""
    items, buckets, count, least, _ = setup
    rows = sets(items, least)
    domain = Sets(min_size=least)
    matrix = domain.admit(np.array(rows))
    tally: Counter[tuple[Values, ...]] = Counter()
    for family in families(items, buckets, count):
        tally[tuple(map(tuple, family.values(matrix).tolist()))] += 1
    return rows, tally, family


def mechanism(setup: Setup, rule: BucketRule, reading: Reading = "over the draw") -> MinHash:
    return MinHash(
        hashes=sketches(setup)[2],
        rule=rule,
        domain=Sets(min_size=setup[3]),
        adjacency=Items(changes=setup[4]),
        reading=reading,
    )


def law(sketch: MinHash, values: Values) -> list[Fraction]:
    """Law of the outputs where the functions give these buckets, by `distribution`."""
    hashes = sketch.hashes
    assert isinstance(hashes, TabledHashes)
    marks = tuple((value,) * hashes.items for value in values)
    given = evolve(sketch, hashes=evolve(hashes, marks=marks))
    distribution = given.distribution(np.ones(hashes.items))
    assert sum(distribution.values()) == 1
    return [distribution[output] for output in sorted(distribution)]


def pairs(setup: Setup) -> list[tuple[int, int]]:
    rows = sketches(setup)[0]
    return [
        (i, j)
        for i, j in product(range(len(rows)), repeat=2)
        if 0 < np.abs(rows[i] - rows[j]).sum() <= setup[4]
    ]


@cache
def outcomes(sketch: MinHash, setup: Setup, pair: tuple[int, int]) -> dict[Any, Outcomes]:
    """Probabilities of all outputs on both sides, for every realised pair of sketches."""
    tally = sketches(setup)[1]
    laws: dict[Values, list[Fraction]] = {}
    found: dict[Any, Outcomes] = {}
    for values, times in tally.items():
        own, other = values[pair[0]], values[pair[1]]
        for given in (own, other):
            if given not in laws:
                laws[given] = law(sketch, given)
        counted = found.setdefault((own, other), Counter())
        for p, q in zip(laws[own], laws[other], strict=True):
            counted[p, q] += times
    return found


def divergence(counted: Outcomes, epsilon: Fraction, share: int) -> arb:
    """Hockey-stick divergence: the mean over `share` functions."""
    factor = to_arb(epsilon).exp()
    total = arb(0)
    for (p, q), times in counted.items():
        total += (to_arb(p) - factor * to_arb(q)).max(arb(0)) * times
    return total / share


def over_the_draw(sketch: MinHash, setup: Setup, epsilon: Fraction) -> arb:
    """Largest δ(ε) of all neighbours, over all realised functions together."""
    total = sum(sketches(setup)[1].values())
    worst = arb(0)
    for pair in pairs(setup):
        counted: Outcomes = sum(outcomes(sketch, setup, pair).values(), Counter())
        worst = worst.max(divergence(counted, epsilon, total))
    return worst


def realised(sketch: MinHash, setup: Setup, epsilon: Fraction) -> arb:
    """Largest δ(ε) of all neighbours and all realised functions."""
    worst = arb(0)
    for pair in pairs(setup):
        for counted in outcomes(sketch, setup, pair).values():
            times = counted.total() // setup[1] ** setup[2]
            worst = worst.max(divergence(counted, epsilon, times))
    return worst


def is_exact(sketch: MinHash, exact: arb, epsilon: Fraction) -> bool:
    claimed = sketch.privacy().delta_at(epsilon)
    tight = claimed.lower <= exact + 1e-30 and exact <= claimed.upper + arb(1e-30)
    return bool(tight) and claimed.upper - claimed.lower < 1e-12


def is_private(sketch: MinHash, exact: arb, epsilon: Fraction) -> bool:
    return bool(exact <= sketch.privacy().delta_at(epsilon).upper)


@pytest.mark.parametrize("setup", thinned(SETUPS, 3))
def test_least_similarity_is_attained(setup: Setup) -> None:
    rows, _, family = sketches(setup)
    domain = Sets(min_size=setup[3])
    admitted = [domain.admit(row[None]) for row in rows]
    least = min(jaccard(admitted[i], admitted[j]) for i, j in pairs(setup))
    assert least == mechanism(setup, RESPONSE).least_similarity()
    assert least > 1 - Fraction(setup[4], setup[3])  # the paper's bound is never attained
    assert farthest_sets(domain, Items(changes=setup[4]), family.items)


@pytest.mark.parametrize("rule", day_and_night(*RULES))
@pytest.mark.parametrize("setup", thinned(SETUPS, 4))
def test_claim_over_the_draw_is_exact(setup: Setup, rule: BucketRule) -> None:
    sketch = mechanism(setup, rule)
    with ctx.workprec(200):
        for epsilon in EPSILONS:
            exact = over_the_draw(sketch, setup, epsilon)
            assert is_exact(sketch, exact, epsilon), (epsilon, exact, sketch.privacy())


@pytest.mark.parametrize("rule", day_and_night(*RULES))
@pytest.mark.parametrize("setup", thinned(SETUPS[:1] + SETUPS[3:], 5))
def test_claim_for_realised_functions_is_exact(setup: Setup, rule: BucketRule) -> None:
    """Some realised functions put all buckets of some neighbours as far apart as can be."""
    sketch = mechanism(setup, rule, "realised")
    with ctx.workprec(200):
        for epsilon in EPSILONS:
            assert is_exact(sketch, realised(sketch, setup, epsilon), epsilon)
    ratios = [
        max(p / q for p, q in counted)
        for pair in pairs(setup)
        for counted in outcomes(sketch, setup, pair).values()
    ]
    reach = sketch.privacy().epsilon_at(0)
    with ctx.workprec(200):
        largest = to_arb(max(ratios)).log()
        assert reach.lower <= largest <= reach.upper


def test_a_realised_function_breaks_the_claim_over_the_draw() -> None:
    setup = SETUPS[3]
    sketch = mechanism(setup, RESPONSE)
    assert not is_private(sketch, realised(sketch, setup, Fraction(0)), Fraction(0))


# Planted bugs: each must be found by the checks above.


class _IgnoresBuckets(MinHash):
    """Takes (1 − J)/B for the probability that buckets differ."""

    __slots__ = ()

    def differ(self) -> Fraction:
        return (1 - self.least_similarity()) / self.hashes.buckets


class _IgnoresSimilarity(MinHash):
    """Takes 1 − J, as if different minima never met in a bucket: safe, and wasteful."""

    __slots__ = ()

    def differ(self) -> Fraction:
        return 1 - self.least_similarity()


@frozen(kw_only=True)
class _KeepsTooOften(BucketResponse):
    """Keeps with 2⁻¹⁰ more than it claims."""

    def law(self, value: int, buckets: int) -> list[Fraction]:
        true = BucketResponse(keep=self.keep + Fraction(1, 2**10))
        return true.law(value, buckets)


@frozen(kw_only=True)
class _ShiftsByOne(BucketNoise):
    """Claims as if buckets that differ were 1 apart."""

    def curve(self, positions: int, buckets: int, differ: Fraction | None) -> Any:
        return BucketNoise.curve(self, positions, 2, differ)


def _as(kind: type[MinHash], sketch: MinHash) -> MinHash:
    return kind(
        hashes=sketch.hashes, rule=sketch.rule, domain=sketch.domain, adjacency=sketch.adjacency
    )


@pytest.mark.parametrize(
    ("sketch", "private"),
    thinned(
        [
            (_as(_IgnoresBuckets, mechanism(SETUPS[6], RESPONSE)), False),
            (mechanism(SETUPS[6], _KeepsTooOften(keep=RESPONSE.keep)), False),
            (_as(_IgnoresSimilarity, mechanism(SETUPS[6], RESPONSE)), True),
            (mechanism(SETUPS[6], _ShiftsByOne(noise=NOISE.noise)), False),
        ],
        2,
        rows=True,
    ),
)
def test_planted_bugs_are_found(sketch: MinHash, private: bool) -> None:
    epsilon = Fraction(1)
    with ctx.workprec(200):
        exact = over_the_draw(sketch, SETUPS[6], epsilon)
        assert not is_exact(sketch, exact, epsilon)
        assert is_private(sketch, exact, epsilon) == private


# Estimators

MOMENTS: list[Setup] = [(4, 2, 1, 1, 1), (4, 3, 1, 1, 1), (3, 2, 2, 1, 1)]


def output_law(rule: BucketRule, value: int, buckets: int) -> dict[int, float]:
    """Law of one released value; noise beyond 40, of probability 4⁻⁴⁰, left out."""
    if isinstance(rule, BucketNoise):
        return {value + z: float(rule.noise.probability(z)) for z in range(-40, 41)}
    return {o: float(p) for o, p in enumerate(rule.law(value, buckets)) if p}


def moments(sketch: MinHash, setup: Setup, i: int, j: int) -> tuple[float, float]:
    """Mean and variance of the estimate over all functions and all outputs."""
    estimator = sketch.estimators()[0]
    tally: Counter[tuple[Values, Values]] = Counter()
    for values, times in sketches(setup)[1].items():
        tally[values[i], values[j]] += times
    first = second = 0.0
    for (own, other), times in tally.items():
        laws = [output_law(sketch.rule, value, setup[1]) for value in own + other]
        outputs = np.array(list(product(*laws)))
        chances = np.array(list(product(*(x.values() for x in laws)))).prod(axis=1)
        half = len(own)
        estimates = estimator.estimate(outputs[:, :half], outputs[:, half:])
        first += times * float(chances @ estimates)
        second += times * float(chances @ estimates**2)
    total = tally.total()
    return first / total, second / total - (first / total) ** 2


@pytest.mark.parametrize(
    ("setup", "rule"),
    # Two positions with noise have 81⁴ outputs.
    thinned(
        (case for case in product(MOMENTS, [*RULES, Plain()]) if case != (MOMENTS[2], NOISE)),
        2,
        rows=True,
    ),
)
def test_moments_of_the_estimate(setup: Setup, rule: BucketRule) -> None:
    sketch = mechanism(setup, rule)
    rows = sketches(setup)[0]
    estimator = sketch.estimators()[0]
    seen = set()
    for i, j in product(range(len(rows)), repeat=2):
        similarity = estimator.truth(rows[i], rows[j])
        if i == j or similarity in seen:
            continue
        seen.add(similarity)
        mean, variance = moments(sketch, setup, i, j)
        assert mean == pytest.approx(estimator.expectation(rows[i], rows[j]), abs=1e-12)
        assert variance == pytest.approx(estimator.variance(rows[i], rows[j]), rel=1e-9, abs=1e-14)
    assert len(seen) >= 3


def test_lemma_6_as_printed_is_wrong() -> None:
    """E(x* − y*)² is (1 − J)(B² − 1)/6, and not (B − 1)²(B + 1)(1 − J)/6."""
    setup = MOMENTS[1]
    rows, tally, _ = sketches(setup)
    i, j = 0, len(rows) - 1
    squares = sum(times * (v[i][0] - v[j][0]) ** 2 for v, times in tally.items())
    mean = Fraction(squares, tally.total())
    similarity, b = Fraction(1, 4), setup[1]
    assert mean == (1 - similarity) * Fraction(b * b - 1, 6)
    assert mean != (1 - similarity) * Fraction((b - 1) ** 2 * (b + 1), 6)
    estimator = mechanism(setup, NOISE).estimators()[0]
    assert isinstance(estimator, DistanceSimilarity)
    assert estimator._spread() == Fraction(b * b - 1, 6)


def test_noise_on_one_bit_is_randomized_response() -> None:
    keep = 1 / (1 + NOISE.noise.ratio)
    for value in (0, 1):
        law_of_noise = NOISE.law(value, 2)
        assert law_of_noise == [keep if o == value else 1 - keep for o in (0, 1)]
