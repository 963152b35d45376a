from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import evolve, frozen
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import binom

from dpverify.accounting.curves.randomized_response import MixedResponse, keep_probability
from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.designs import Design, design
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError, RecordsError
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.baselines import geometric_noise
from dpverify_mechanisms.baselines.geometric_noise import Geometric, GeometricNoise, _table
from dpverify_mechanisms.min_hash import hashing, worst_pairs
from dpverify_mechanisms.min_hash.estimators import CollisionSimilarity, DistanceSimilarity
from dpverify_mechanisms.min_hash.hashing import KeyedHashes, TabledHashes
from dpverify_mechanisms.min_hash.levels import PAPER_DELTA, published_differing
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketResponse, BucketRule, Plain
from dpverify_mechanisms.min_hash.sketch import MinHash, Reading
from dpverify_mechanisms.min_hash.worst_pairs import farthest_sets
from tests.helpers.loops import RUNNERS, By, run_loops
from tests.helpers.profiles import day_and_night

DOMAIN, ONE = Sets(min_size=20), Items(changes=1)
DELTA = Fraction(1, 10**4)
READINGS: list[Reading] = ["over the draw", "realised"]
KINDS: list[type[BucketResponse | BucketNoise]] = [BucketResponse, BucketNoise]


def keyed(**parameters: int) -> KeyedHashes:
    return KeyedHashes(**{"items": 500, "functions": 16, "buckets": 3, "seed": 5} | parameters)


def calibrated(
    kind: type[BucketResponse | BucketNoise] = BucketResponse,
    reading: Reading = "over the draw",
    *,
    delta: Fraction = DELTA,
    **parameters: int,
) -> MinHash:
    return MinHash.calibrated(
        keyed(**parameters),
        rule=kind,
        epsilon=Fraction(4),
        delta=delta,
        domain=DOMAIN,
        adjacency=ONE,
        reading=reading,
    )


def random_sets(rows: int, seed: int, *, items: int = 500) -> sparse.csr_array:
    dense = np.random.default_rng(seed).random((rows, items)) < 0.2
    return sparse.csr_array(dense.astype(np.float64))


# Hash functions


def test_keyed_hashes_are_the_cipher_block_by_block() -> None:
    hashes = keyed(functions=5, items=2**40, buckets=1000)
    key = ReplayableWords(5, "min-hash").words(2).astype("<u8").tobytes()

    def word(first: int, second: int, place: int) -> int:
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        block = cipher.update(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
        return int.from_bytes(block[8 * place : 8 * place + 8], "little")

    items = [3, 77, 2**40 - 1]
    ranks = [[word(item, f // 2, f % 2) for f in range(5)] for item in items]
    assert hashes.ranks(np.array(items)).tolist() == ranks
    least = [min(column) for column in zip(*ranks, strict=True)]
    record = sparse.csr_array((np.ones(3), np.array(items), np.array([0, 3])), shape=(1, 2**40))
    expected = [word(rank, 2**63 + f, 0) % 1000 for f, rank in enumerate(least)]
    assert hashes.values(record).tolist() == [expected]


def test_values_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = random_sets(40, 1)
    hashes = keyed()
    whole = hashes.values(sets)
    naive = [hashes.bucket(hashes.ranks(sets[[r]].indices).min(axis=0)[None])[0] for r in range(40)]
    assert (whole == naive).all()
    monkeypatch.setattr(hashing, "_CHUNK", 7 * 16)
    monkeypatch.setattr(hashing, "_ROWS", 3)
    assert (hashes.values(sets) == whole).all()
    assert (hashes.values(sets[[5, 6]]) == whole[5:7]).all()


@frozen(kw_only=True)
class _Rejecting(KeyedHashes):
    """Words of the first attempt are the largest, which no B but a power of two accepts."""

    def _cipher(self, size: int) -> Callable[[Any], Any]:
        encrypt = KeyedHashes._cipher(self, size)
        first = np.uint64(2**63 + 2**32)
        return lambda blocks: np.where(blocks < first, ~np.uint64(0), encrypt(blocks))[..., ::-1]


@pytest.mark.parametrize("by", RUNNERS)
@pytest.mark.parametrize("functions", [15, 16])  # an odd number leaves a word of the cipher over
@pytest.mark.parametrize("chunk", [16, 7 * 16, 2**15])
def test_item_after_item_has_the_minima_of_set_after_set(
    monkeypatch: pytest.MonkeyPatch, chunk: int, functions: int, by: By
) -> None:
    hashes = keyed(functions=functions)
    sizes = [1, 30, 1, 2, 25, 14, 1]
    items = ReplayableWords(6).words(sum(sizes)) % np.uint64(500)
    starts = np.cumsum([0, *sizes], dtype=np.int32)
    parts = np.ones(items.size), items.astype(np.int32), starts
    sets = sparse.csr_array(parts, shape=(len(sizes), 500))
    run_loops(monkeypatch, hashing, "numpy")
    monkeypatch.setattr(hashing, "_CHUNK", chunk)
    expected = hashes.values(sets)
    met = run_loops(monkeypatch, hashing, by)
    assert np.array_equal(hashes.values(sets), expected)
    assert met == [functions * items.size]
    monkeypatch.setattr(hashing, "_ROWS", 3)
    assert np.array_equal(hashes.values(sets), expected)
    by_set = [hashes.ranks(items[a:b]).min(axis=0) for a, b in pairwise(starts)]
    assert np.array_equal(hashes.bucket(np.stack(by_set)), expected)


def test_words_beyond_the_last_multiple_are_passed_over() -> None:
    hashes = _Rejecting(items=500, functions=2, buckets=3, seed=5)
    ranks = np.arange(60, dtype=np.uint64).reshape(30, 2)
    assert set(hashes.bucket(ranks).ravel().tolist()) == {0, 1, 2}
    assert (_Rejecting(items=5, functions=2, buckets=4, seed=5).bucket(ranks) == 3).all()


def test_neighbours_differ_as_often_as_claimed() -> None:
    """Binomial with the exact probability, of a false alarm below 1e-9 for a fresh seed."""
    sketch = calibrated(functions=500)
    pair = sketch.worst_pairs()[0]
    differing = sum(
        int((fresh.values(pair.record) != fresh.values(pair.neighbour)).sum())
        for fresh in (sketch.redrawn(seed) for seed in range(100))
    )
    share = float(sketch.differ())
    assert binom.ppf(5e-10, 50_000, share) <= differing <= binom.isf(5e-10, 50_000, share)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("items", 0), ("functions", 0), ("buckets", 1), ("buckets", 2**32 + 1), ("items", 2**63 + 1)],
)
def test_sizes_are_checked(name: str, wrong: int) -> None:
    with pytest.raises(ParameterError, match=name):
        keyed(**{name: wrong})


@pytest.mark.parametrize(
    ("orders", "marks"),
    [(((0, 0),), ((0, 1),)), (((0, 1),), ((0, 2),)), ((), ((0, 1),)), (((1, 0),), ((1,),))],
)
def test_tables_are_checked(orders: Any, marks: Any) -> None:
    with pytest.raises(ParameterError, match=r"orders|marks"):
        TabledHashes(items=2, functions=1, buckets=2, orders=orders, marks=marks)


# Noise


class _Given:
    policy: ClassVar[str] = "given"

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


RATIO = Fraction(2**63 + 12345, 2**64)


@pytest.mark.parametrize("ratio", [RATIO, 1 - Fraction(1, 2**10)])
def test_blocks_of_a_large_sample_are_drawn_as_its_words_are(ratio: Fraction) -> None:
    noise = GeometricNoise(ratio=ratio)
    words = ReplayableWords(1, "blocks").words(20_000)
    drawn = noise.sample((200, 100), rng=ReplayableWords(1, "blocks")).ravel()
    for word, value in zip(words[::97].tolist(), drawn[::97].tolist(), strict=True):
        tail = Fraction(word >> 1, 2**64)  # of one side
        assert noise.at_least(abs(value) + 1) <= tail < noise.at_least(abs(value)) + (value == 0)
        assert value == 0 or (value < 0) == bool(word & 1)


def test_thresholds_of_the_noise() -> None:
    noise = GeometricNoise(ratio=RATIO)
    table = _table(RATIO)[0][::-1].tolist()
    assert table[-1] == 0 < table[-2]
    for size, parts in enumerate(table, start=1):
        chance = 2 * noise.at_least(size)
        assert parts <= chance * 2**63 < parts + 1
        if parts == 0:
            continue
        below = 2 * (parts - 1)
        assert abs(noise.sample((1,), rng=_Given(below, 2**63))[0]) >= size
        # The cell that the threshold divides: decided by the next word.
        inner = int((chance * 2**63 - parts) * 2**64)
        for sign, (more, least) in product((1, -1), ((inner - 1, True), (inner + 1, False))):
            drawn = noise.sample((1,), rng=_Given(2 * parts + (sign < 0), more, 2**63))[0]
            assert (drawn * sign >= size) == least
    assert noise.sample((1,), rng=_Given(2**64 - 1))[0] == 0
    # Deep in the tail: a 0, and then words that stay open once and are decided.
    deep = int(noise.sample((1,), rng=_Given(1, 2**40, 0))[0])
    tail = Fraction(2**40, 2**127)
    assert 2 * noise.at_least(1 - deep) <= tail or 2 * noise.at_least(-deep) >= tail
    assert -deep >= len(table)


def test_law_of_the_noise() -> None:
    noise = GeometricNoise(ratio=RATIO)
    chances = {z: noise.probability(z) for z in range(-300, 301)}
    tail = 2 * noise.at_least(301)
    assert sum(chances.values()) + tail == 1
    assert noise.at_least(-3) == noise.at_least(301) + sum(chances[z] for z in range(-3, 301))
    for order, moment in ((2, noise.variance()), (4, noise.fourth_moment())):
        direct = sum(float(p) * z**order for z, p in chances.items())
        assert direct == pytest.approx(float(moment), rel=1e-12)
    drawn = noise.sample((100_000,), rng=ReplayableWords(8))
    for z in range(-5, 6):  # a false alarm below 1e-8 in all
        count, share = int((drawn == z).sum()), float(noise.probability(z))
        assert binom.ppf(4e-10, 100_000, share) <= count <= binom.isf(4e-10, 100_000, share)


@pytest.mark.parametrize(
    "ratio", [Fraction(0), Fraction(1), Fraction(1, 3), 1 - Fraction(1, 2**15)]
)
def test_ratio_is_checked(ratio: Fraction) -> None:
    with pytest.raises(ParameterError, match="ratio"):
        GeometricNoise(ratio=ratio)


SHIFTS = ((1, Fraction(1, 5)), (3, Fraction(1, 10)))
CURVES = [
    Geometric(ratio=Fraction(1, 2), positions=2, shifts=SHIFTS),
    Geometric(ratio=Fraction(3, 4), positions=3, shifts=((2, Fraction(1)),)),
]


@pytest.mark.parametrize("most_steps", [0, 1 << 10], ids=["by inversion", "by the whole law"])
@pytest.mark.parametrize("curve", CURVES)
def test_curve_by_enumeration(
    curve: Geometric, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometric_noise, "_MOST_STEPS", most_steps)
    noise = GeometricNoise(ratio=curve.ratio)
    rest = 1 - sum((share for _, share in curve.shifts), Fraction(0))
    moves = [(0, rest), *curve.shifts] if rest else list(curve.shifts)
    single: list[tuple[Fraction, Fraction]] = []
    for shift, share in moves:  # outputs clamped to 0, …, shift
        values = range(shift + 1)
        for o in values:
            both: list[Fraction] = []
            for centre in (0, shift):
                if shift == 0:
                    both.append(share)
                elif o == 0:
                    both.append(share * noise.at_least(centre))
                elif o == shift:
                    both.append(share * noise.at_least(shift - centre))
                else:
                    both.append(share * noise.probability(o - centre))
            single.append((both[0], both[1]))
    outcomes = [
        (math.prod(p for p, _ in chosen), math.prod(q for _, q in chosen))
        for chosen in product(single, repeat=curve.positions)
    ]
    assert sum(p for p, _ in outcomes) == 1
    for epsilon in (0.0, 0.4, 1.1, 2.0):
        exact = sum(max(float(p) - math.exp(epsilon) * float(q), 0.0) for p, q in outcomes)
        claimed = curve.delta_at(epsilon)
        assert claimed.upper == pytest.approx(exact, abs=1e-14)
        assert claimed.width < 1e-13 or claimed.upper == 0
        own, other = curve.rates(epsilon)
        assert own - math.exp(epsilon) * other == pytest.approx(exact, abs=1e-13)
        if exact > 0:
            back = curve.epsilon_at(Fraction(claimed.upper))
            assert back.upper == pytest.approx(epsilon, abs=1e-9)
    reach = curve.reach * curve.loss().upper
    assert curve.epsilon_at(0).upper == pytest.approx(reach)
    assert curve.delta_at(curve.epsilon_at(0).upper) == Enclosure(0.0, 0.0)
    assert curve.delta_at(curve.epsilon_at(0).lower * 0.999).lower > 0
    assert curve.epsilon_at(Fraction(99, 100)) == Enclosure(0.0, 0.0)
    own, other = curve.rates(reach * 0.99, noise=0.5)
    claimed_own, claimed_other = curve.rates(reach * 0.99)
    assert own > claimed_own
    assert other < claimed_other


# The claim


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("buckets", [2, 5])
def test_calibration_is_safe_and_not_wasteful(
    kind: type[BucketResponse | BucketNoise], reading: Reading, delta: Fraction, buckets: int
) -> None:
    sketch = calibrated(kind, reading, delta=delta, buckets=buckets)
    curve = sketch.privacy()
    assert Fraction(curve.delta_at(4).upper) <= delta
    assert 4 - 1e-9 < curve.epsilon_at(delta).upper <= 4
    if reading == "realised":
        pure = sketch.rule.loss(buckets).upper * 16
        assert curve.epsilon_at(0).upper == pytest.approx(
            pure * (buckets - 1) ** (kind is BucketNoise)
        )


def test_guarantees_say_what_they_rest_on() -> None:
    sketch = calibrated()
    assert sketch.guarantee() == sketch.over_the_draw()
    assert sketch.guarantee().over_the_draw
    assert sketch.guarantee().assumptions
    realised = calibrated(reading="realised").guarantee()
    assert not realised.over_the_draw
    assert realised.assumptions == ()
    assert realised.curve != sketch.privacy()


def test_plain_min_hash_claims_nothing() -> None:
    sketch = MinHash.range_b(p=500, k=4, buckets=2, seed=1, domain=DOMAIN, adjacency=ONE)
    released = sketch.release(random_sets(3, 1), rng=ReplayableWords(1))
    assert (released == sketch.values(random_sets(3, 1))).all()
    assert isinstance(sketch.rule, Plain)
    pair = sketch.worst_pairs()[0]
    for refused in (
        sketch.privacy,
        sketch.guarantee,
        lambda: sketch.log_likelihood_ratio(released[:, None], pair.record, pair.neighbour),
    ):
        with pytest.raises(ParameterError, match="one that randomizes"):
            refused()
    assert "epsilon_realised" not in sketch.facts()["sensitivity"]


@pytest.mark.parametrize(
    ("domain", "changes", "items", "found"),
    [
        (Sets(min_size=20), 1, 500, (1, 21)),
        (Sets(min_size=20), 4, 500, (4, 22)),
        (Sets(min_size=20), 5, 500, (5, 23)),
        (Sets(min_size=20), 99, 500, (40, 40)),
        (Sets(min_size=20), 99, 23, (6, 23)),
        (Sets(min_size=20, max_size=20), 3, 500, (2, 21)),
    ],
)
def test_the_farthest_sets_of_a_domain(
    domain: Sets, changes: int, items: int, found: tuple[int, int]
) -> None:
    assert farthest_sets(domain, Items(changes=changes), items) == found


@pytest.mark.parametrize(
    ("domain", "changes", "items"),
    [
        (Sets(min_size=3, max_size=3), 13, 6),
        (Sets(min_size=1, max_size=1), 1000, 6),
        (Sets(min_size=5, max_size=5), 9, 6),
        (Sets(min_size=1), 20, 40),
    ],
)
def test_more_changes_than_there_are_items_leave_neighbours(
    domain: Sets, changes: int, items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worst_pairs, "_CANDIDATES", 4)
    adjacency = Items(changes=changes)
    hashes = KeyedHashes(items=items, functions=4, buckets=2, seed=1)
    rule = BucketResponse(keep=Fraction(3, 4))
    pair = worst_pairs.searched(hashes, rule, domain=domain, adjacency=adjacency)
    for record in (pair.record, pair.neighbour):
        domain.admit(record, attributes=items)
    assert adjacency.relates(pair.record, pair.neighbour)


@pytest.mark.parametrize(
    ("domain", "items"),
    [(Sets(min_size=20, max_size=20), 500), (Sets(min_size=20), 20), (DOMAIN, 19)],
)
def test_domains_without_neighbours_are_refused(domain: Sets, items: int) -> None:
    with pytest.raises(ParameterError, match=r"domain|items"):
        MinHash.range_b(p=items, k=4, buckets=2, seed=1, domain=domain, adjacency=ONE)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("epsilon", float("nan")), ("delta", float("nan")), ("delta", 1), ("reading", "both")],
)
def test_targets_are_checked(name: str, wrong: Any) -> None:
    target = {"epsilon": Fraction(1), "delta": DELTA, "domain": DOMAIN, "adjacency": ONE}
    with pytest.raises(ParameterError, match=name):
        MinHash.rr_min_hash(p=500, k=4, buckets=2, seed=1, **target | {name: wrong})


def test_coins_must_prefer_the_true_bucket() -> None:
    with pytest.raises(ParameterError, match="other"):
        MinHash(
            hashes=keyed(), rule=BucketResponse(keep=Fraction(1, 4)), domain=DOMAIN, adjacency=ONE
        )


# What the paper says


def test_lemma_1_fails_in_the_papers_own_range() -> None:
    """B = 3, τ = 2000, K = 100, α = 1, δ = 1e-4: RRMinHash with its L isn't (8, 1e-4)-private."""
    k, tau, b, epsilon = 100, 2000, 3, Fraction(8)
    bound = math.ceil(published_differing(k, Fraction(b - 1, b * tau), PAPER_DELTA).upper)
    differ = Fraction(b - 1, b * (tau + 1))
    assert bound == 1
    assert binom.sf(bound, k, float(differ)) > 5 * float(PAPER_DELTA)
    keep = keep_probability(epsilon, positions=bound, values=b)
    curve = MixedResponse(keep=keep, other=(1 - keep) / (b - 1), positions=k, differ=differ)
    assert curve.delta_at(epsilon).lower > 5 * float(PAPER_DELTA)


def test_levels_of_the_same_coins() -> None:
    sketch = calibrated(functions=100)
    levels = sketch.levels(DELTA)
    assert levels["exact_mixture"].upper <= levels["exact_tail"].lower
    assert levels["exact_mixture"] == sketch.privacy().epsilon_at(DELTA)
    loss = sketch.rule.loss(3).upper
    tail = round(levels["exact_tail"].upper / loss)
    share = float(sketch.differ())
    assert binom.sf(tail, 100, share) <= float(DELTA) < binom.sf(tail - 1, 100, share)
    published = published_differing(100, Fraction(2, 60), DELTA).upper
    assert published == pytest.approx(10 / 3 + math.sqrt(10 * math.log(10**4)))
    assert levels["published"].upper == pytest.approx(math.ceil(published) * loss)
    noisy = calibrated(BucketNoise, functions=100)
    expected = published * 2 * noisy.rule.loss(3).upper
    assert noisy.levels(DELTA)["published"].upper == pytest.approx(expected)


def test_running_example() -> None:
    """Appendix C: 3 values collide, not 2, so that equation 1 gives 1.6 and not 0.64."""
    hashes = keyed(functions=4, items=6)
    sketch = MinHash(
        hashes=hashes,
        rule=BucketResponse(keep=Fraction(3, 4)),
        domain=Sets(min_size=3),
        adjacency=ONE,
    )
    estimator = sketch.estimators()[0]
    x, y = np.array([2, 0, 2, 2]), np.array([0, 0, 2, 2])
    assert estimator.estimate(x, y) == pytest.approx(1.6)
    y[1] = 1  # two collisions
    assert estimator.estimate(x, y) == pytest.approx(0.64)
    x_set, y_set = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 0, 1, 0, 1, 1])
    assert estimator.truth(x_set, y_set) == 0.5

    class _Laplace:
        def variance(self) -> Fraction:
            return 2 * Fraction(1, 10) ** 2

    noisy = DistanceSimilarity(hashes=sketch.hashes, domain=sketch.domain, noise=_Laplace())  # type: ignore[arg-type]
    first, second = np.array([1.98, 0.02, 1.23, 1.08]), np.array([2.49, 1.68, 2.03, 1.50])
    assert noisy.estimate(first, second) == pytest.approx(0.3115, abs=1e-4)  # printed: 0.32


# Release and attack


@pytest.mark.parametrize(
    ("kind", "buckets", "dtype"),
    [
        (BucketResponse, 2, np.uint8),
        (BucketResponse, 256, np.uint8),
        (BucketResponse, 257, np.uint16),
        (BucketNoise, 4, np.int64),
    ],
)
def test_a_release_has_the_smallest_type_that_holds_it(
    kind: type[BucketResponse | BucketNoise], buckets: int, dtype: type
) -> None:
    sketch = calibrated(kind, buckets=buckets)
    released = sketch.release(random_sets(5, 2), rng=ReplayableWords(1))
    assert released.shape == (5, 16)
    assert released.dtype == dtype
    assert (released == sketch.release(random_sets(5, 2).toarray(), rng=ReplayableWords(1))).all()


def test_small_sets_are_refused() -> None:
    with pytest.raises(RecordsError, match="items"):
        calibrated().release(np.eye(500), rng=ReplayableWords(1))


RULES: list[BucketRule] = [
    BucketResponse(keep=Fraction(5, 8)),
    BucketNoise(noise=GeometricNoise(ratio=Fraction(1, 2))),
]


@pytest.mark.parametrize("rule", RULES)
def test_likelihood_ratio_and_law(rule: BucketRule) -> None:
    """Against the exact distribution; and the release follows it (a false alarm below 1e-7)."""
    sketch = MinHash(
        hashes=keyed(functions=2, items=9), rule=rule, domain=Sets(min_size=2), adjacency=ONE
    )
    record, other = np.arange(9) < 2, np.arange(9) > 3
    assert (sketch.values(record) != sketch.values(other)).any()
    own, their = (sketch.distribution(x) for x in (record, other))
    outputs = np.array(sorted(own))[:, None]
    losses = sketch.log_likelihood_ratio(outputs, record, other)
    exact = [math.log(own[o] / their[o]) for o in sorted(own)]
    assert losses == pytest.approx(exact)
    draws = 20_000
    released = sketch.release(np.tile(record, (draws, 1)), rng=ReplayableWords(3))
    clamped = np.clip(released, 0, 2)
    for output, share in own.items():
        count = int((clamped == output).all(axis=1).sum())
        limits = binom.ppf(5e-9, draws, float(share)), binom.isf(5e-9, draws, float(share))
        assert limits[0] <= count <= limits[1]


def test_buckets_are_kept_as_often_as_claimed() -> None:
    """A false alarm below 1e-9 for fresh words."""
    sketch, rows = calibrated(functions=64), random_sets(5000, 4)
    assert isinstance(sketch.rule, BucketResponse)
    kept = int((sketch.release(rows, rng=ReplayableWords(6)) == sketch.values(rows)).sum())
    share = float(sketch.rule.keep)
    assert binom.ppf(5e-10, 320_000, share) <= kept <= binom.isf(5e-10, 320_000, share)


def test_searched_pair_joins_new_items_even_where_none_helps() -> None:
    sketch = MinHash(
        hashes=keyed(functions=1), rule=RULES[0], domain=DOMAIN, adjacency=Items(changes=8)
    )
    pair = evolve(sketch, reading="realised").worst_pairs()[0]
    assert sorted((pair.record.nnz, pair.neighbour.nnz)) == [20, 28]
    assert abs(pair.record - pair.neighbour).nnz == 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    ("domain", "changes"),
    [
        (DOMAIN, 1),
        (DOMAIN, 3),
        (Sets(min_size=20, max_size=20), 3),
        (Sets(min_size=20, max_size=21), 4),
    ],
)
def test_worst_pairs_are_neighbours(
    kind: type[BucketResponse | BucketNoise], reading: Reading, domain: Sets, changes: int
) -> None:
    adjacency = Items(changes=changes)
    sketch = MinHash.calibrated(
        keyed(),
        rule=kind,
        epsilon=Fraction(4),
        delta=DELTA,
        domain=domain,
        adjacency=adjacency,
        reading=reading,
    )
    pairs = sketch.worst_pairs()
    for pair in pairs:
        x, y = (domain.admit(r).toarray()[0] for r in (pair.record, pair.neighbour))
        assert 0 < np.abs(x - y).sum() <= changes
    x, y = pairs[-1].record.toarray()[0], pairs[-1].neighbour.toarray()[0]
    similarity = Fraction(int((x * y).sum()), int(np.maximum(x, y).sum()))
    assert similarity == sketch.least_similarity()
    if reading == "realised":
        reached = [
            int(sketch.rule.apart(*(sketch.values(r)[0] for r in (p.record, p.neighbour))).sum())
            for p in pairs
        ]
        assert reached[0] >= reached[1]
        assert reached[0] > 0
        assert f"{reached[0]} steps" in pairs[0].name


# Estimators


@pytest.mark.nightly
@pytest.mark.parametrize("rule", day_and_night(*RULES, Plain()))
def test_estimates_agree_with_their_moments(rule: BucketRule) -> None:
    """Through release and fresh hash functions: 5 standard errors, and 20 % for the variance."""
    sketch = MinHash(hashes=keyed(functions=64), rule=rule, domain=DOMAIN, adjacency=ONE)
    estimator = sketch.estimators()[0]
    probe = sketch.probes(ReplayableWords(1))[12]
    estimates = []
    for seed in range(1000):
        fresh, rng = sketch.redrawn(seed), ReplayableWords(seed, "noise")
        rows = [fresh.release(r, rng=rng)[0] for r in (probe.record, probe.neighbour)]
        estimates.append(estimator.estimate(rows[0], rows[1]))
    truth = estimator.truth(probe.record, probe.neighbour)
    variance = estimator.variance(probe.record, probe.neighbour)
    assert 0.2 < truth < 0.8
    assert np.mean(estimates) == pytest.approx(truth, abs=5 * math.sqrt(variance / 1000))
    assert np.var(estimates) == pytest.approx(variance, rel=0.2)


def test_probes_cover_the_range_and_stay_small() -> None:
    sketch = calibrated(items=10**9)
    similarities = [
        sketch.estimators()[0].truth(p.record, p.neighbour)
        for p in sketch.probes(ReplayableWords(1))
    ]
    assert similarities == sorted(similarities, reverse=True)
    assert similarities[0] > 0.9
    # The last one tests the formulas: sets with nothing in common collide whatever the coins are.
    assert similarities[-1] == pytest.approx(1 / 3, abs=0.01)


def test_packed_bits_give_the_same_estimate() -> None:
    sketch = calibrated(functions=13, buckets=2)
    estimator = sketch.estimators()[0]
    assert isinstance(estimator, CollisionSimilarity)
    released = sketch.release(random_sets(6, 3), rng=ReplayableWords(1))
    packed = np.packbits(released, axis=-1)
    assert estimator.estimate_packed(packed[:3], packed[3:]) == pytest.approx(
        estimator.estimate(released[:3], released[3:])
    )
    other = calibrated(functions=13).estimators()[0]
    assert isinstance(other, CollisionSimilarity)
    with pytest.raises(ParameterError, match="buckets"):
        other.estimate_packed(packed[:3], packed[3:])


def _design(k: Sequence[int], at: Sequence[Fraction]) -> Design:
    def make(*, k: int, rule: str) -> MinHash:
        named = MinHash.rr_min_hash if rule == "response" else MinHash.noisy_min_hash
        return named(
            p=10**6,
            k=k,
            buckets=2,
            seed=0,
            epsilon=Fraction(4),
            delta=DELTA,
            domain=Sets(min_size=500),
            adjacency=ONE,
        )

    return design(make, at=at, k=list(k), rule=["response", "noise"])


@pytest.mark.nightly
def test_design_minimises_the_exact_variance() -> None:
    similarities = (Fraction(1, 4), Fraction(1, 2))
    found = _design((20, 320, 1280), similarities)
    assert len(found.curve) == 6
    for point in found.curve:
        assert isinstance(point.mechanism, MinHash)
        (estimator,) = point.mechanism.estimators()
        exact = sum(estimator.variance_at(s) for s in similarities) / 2
        assert point.variance == pytest.approx(float(exact))
        assert Fraction(point.mechanism.privacy().delta_at(4).upper) <= DELTA
        assert point.mechanism.hashes.functions == point.parameters["k"]
        assert point.variance >= found.best.variance
    assert found.best.parameters == {"k": 320, "rule": "response"}
    for bad in (((), (Fraction(1, 2),)), ((8,), ()), ((8,), (Fraction(2),))):
        with pytest.raises(ParameterError):
            _design(*bad)
