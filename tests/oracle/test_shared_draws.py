"""Releases on public draws that aren't independent: what compose claims, against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from dpverify.accounting.composition.compose import compose
from dpverify.accounting.composition.curve import Composed
from dpverify.data.adjacency import Attribute, Items
from dpverify.data.domain import Box, Sets
from dpverify.errors import ParameterError
from dpverify.guarantee import Draw
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.min_hash.rules import BucketResponse
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    RademacherProjection,
    SparseProjection,
    UniformProjection,
)
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.projections.sjlt import SJLT, DKSProjection
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.cases import CASES, made
from tests.helpers.profiles import day_and_night
from tests.oracle.test_min_hash_exhaustive import RESPONSE, Setup, law, mechanism, pairs, sketches

TINY: Setup = (3, 2, 2, 1, 1)
SIGNS: dict[str, Any] = {
    "p": 8,
    "k": 4,
    "seed": 1,
    "epsilon": Fraction(2),
    "delta": Fraction(1, 1000),
    "domain": Box(low=Fraction(-1), high=Fraction(1)),
    "adjacency": Attribute(beta=Fraction(1)),
    "least_norm": Fraction(2),
}


def buckets(**changed: Any) -> MinHash:
    """The cell of Aumüller et al. that was reported."""
    options: dict[str, Any] = {
        "p": 4000,
        "k": 100,
        "buckets": 2,
        "seed": 0,
        "epsilon": Fraction(4),
        "delta": Fraction(1, 10**4),
        "domain": Sets(min_size=500),
        "adjacency": Items(changes=1),
        "reading": "over the draw",
    }
    return MinHash.rr_min_hash(**options | changed)


def signs(**changed: Any) -> SignSketch:
    return SignSketch.dp_signrp_rr(**SIGNS | changed)


@cache
def outputs(values: tuple[int, ...]) -> NDArray[np.float64]:
    """Probabilities of all outputs where the functions give these buckets."""
    return np.array(law(mechanism(TINY, RESPONSE), values), dtype=np.float64)


def enumerated(first: tuple[int, int], second: tuple[int, int], ratio: float) -> float:
    """δ(ln ratio) of one release of each pair's records, on one draw: all draws, all outputs."""
    tally: Counter[tuple[Any, ...]] = Counter()
    for values, times in sketches(TINY)[1].items():
        tally[tuple(values[record] for record in (*first, *second))] += times
    total = 0.0
    for (one, one_other, two, two_other), times in tally.items():
        own = np.outer(outputs(one), outputs(two))
        other = np.outer(outputs(one_other), outputs(two_other))
        total += times * float(np.maximum(own - ratio * other, 0).sum())
    return total / tally.total()


@pytest.mark.parametrize("ratios", day_and_night([2.0], [1.0, 2.0, 5.0]))
def test_one_draw_of_the_same_and_of_different_records(ratios: list[float]) -> None:
    """For the same records the claim is exact, and for different ones no bound at all."""
    sketch = mechanism(TINY, RESPONSE)
    claimed = compose(sketch, sketch, same_records=True).curve
    gaps = []
    for ratio in ratios:
        found = claimed.delta_at(Fraction(math.log(ratio)))
        same = max(enumerated(pair, pair, ratio) for pair in pairs(TINY))
        assert found.lower * (1 - 1e-12) <= same <= found.upper * (1 + 1e-12)
        assert found.upper - found.lower <= 1e-12
        different = max(enumerated(a, b, ratio) for a, b in product(pairs(TINY), repeat=2))
        gaps.append(different - found.upper)
    assert max(gaps) > 0.01
    with pytest.raises(ParameterError, match=r"same_records=False must be stated.*share"):
        compose(sketch, sketch)


@pytest.mark.nightly
def test_nested_hash_functions_are_not_independent() -> None:
    """The true δ is 24 times the one that independent draws would have."""
    hundred, fewer = buckets(), buckets(k=99)
    item = np.arange(50)
    assert np.array_equal(hundred.hashes.ranks(item)[:, :99], fewer.hashes.ranks(item))
    losses = (*hundred.privacy().losses(), *fewer.privacy().losses())
    claimed = Composed(losses=losses).epsilon_at(Fraction(1, 10**4)).upper
    assert claimed == pytest.approx(5.9016, abs=1e-4)

    differ = float(hundred.differ())
    first, second = (sketch.rule for sketch in (hundred, fewer))
    assert isinstance(first, BucketResponse)
    assert isinstance(second, BucketResponse)
    truth = 0.0
    for n in range(12):  # of the 99 common functions, and the hundredth alike: a lower bound
        chance = math.comb(99, n) * differ**n * (1 - differ) ** (100 - n)
        for i, j in product(range(n + 1), repeat=2):
            own = other = float(math.comb(n, i) * math.comb(n, j))
            for keep, kept in ((float(first.keep), i), (float(second.keep), j)):
                own *= keep**kept * (1 - keep) ** (n - kept)
                other *= keep ** (n - kept) * (1 - keep) ** kept
            truth += chance * max(own - math.exp(claimed) * other, 0.0)
    assert truth > 24e-4

    with pytest.raises(ParameterError, match=r"min-hash functions of seed 0 .*overlap"):
        compose(hundred, fewer, same_records=True)


def test_nested_projections_are_refused() -> None:
    wider = GaussianProjection(p=9, k=4, seed=1).matrix
    assert np.array_equal(wider[:8], GaussianProjection(p=8, k=4, seed=1).matrix)
    with pytest.raises(ParameterError, match=r"gaussian projections of seed 1 .*overlap"):
        compose(signs(), signs(p=9), same_records=True)


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (buckets, {"k": 101}),
        (buckets, {"buckets": 3}),
        (buckets, {"p": 4001}),
        (signs, {"p": 9}),
        (signs, {"k": 5}),
        (signs, {"grid_steps": 512}),  # other records are projected
    ],
)
def test_one_seed_of_other_sizes_is_refused(
    make: Callable[..., MinHash | SignSketch], changed: dict[str, Any]
) -> None:
    for other in (make(**changed), make(**changed).guarantee()):
        with pytest.raises(ParameterError, match="overlap"):
            compose(make(), other, same_records=True)
    # With a seed of its own it composes, and needs nobody's word.
    assert len(compose(make(), make(**changed, seed=2)).draws) == 2


def test_the_same_draw_composes_on_ones_word_alone() -> None:
    weaker = signs(epsilon=Fraction(1))
    with pytest.raises(ParameterError, match=r"releases 1 and 3 share .*--same-records"):
        compose(signs(), signs(seed=2), weaker)
    total = compose(signs(), weaker, signs(seed=2), same_records=True)
    assert len(total.draws) == 2


def test_what_is_realised_for_one_is_not_averaged_over_for_another() -> None:
    """Noise for the rows of one matrix is none for those of the others that it might have been."""
    noisy = LinearSketch.calibrated(
        GaussianProjection(p=8, k=4, seed=1),
        **{name: SIGNS[name] for name in ("epsilon", "delta", "domain", "adjacency")},
    )
    realised = evolve(signs(), least_norm=None)
    for one in (noisy, realised):
        orders: tuple[list[Any], ...] = ([one, signs()], [signs(), one])
        for order in orders:
            with pytest.raises(ParameterError, match="either averaged over or realised"):
                compose(*order)
    assert compose(noisy, signs(seed=2)).given == ("gaussian projections of seed 1",)
    # With the noise before the projection the matrix plays no part.
    assert compose(evolve(noisy, at="input"), signs()).draws


@pytest.mark.parametrize("case", CASES)
def test_a_claim_of_realised_numbers_names_what_was_realised(case: str) -> None:
    """Whoever has another curve for another seed, though all else is the same."""
    mechanism: Any = made(case)
    drawn: Any = getattr(mechanism, "projection", None)
    if not hasattr(drawn, "seed"):
        return
    others = (evolve(mechanism, projection=evolve(drawn, seed=seed)) for seed in range(8))
    own = mechanism.guarantee()
    if any(other.privacy() != own.curve for other in others):
        assert drawn.source in own.given


def test_tables_may_overlap_with_any_others() -> None:
    first = mechanism(TINY, RESPONSE)
    other = evolve(first, hashes=first.hashes.redrawn(1))
    with pytest.raises(ParameterError, match="overlap"):
        compose(first, other, same_records=True)


def test_sources_are_apart_exactly_where_the_words_are() -> None:
    """Every projection and hash: two of one source begin with the same words, others don't."""
    sizes: dict[str, Any] = {"p": 64, "k": 64}
    kinds: list[Callable[[int], Projection]] = [
        lambda seed: GaussianProjection(**sizes, seed=seed),
        lambda seed: RademacherProjection(**sizes, seed=seed),
        lambda seed: UniformProjection(**sizes, seed=seed),
        lambda seed: SparseProjection(**sizes, seed=seed),
        lambda seed: IdentityProjection(**sizes, seed=seed),
        lambda seed: OPORP(**sizes, seed=seed),
        lambda seed: RepeatedOPORP(**sizes, seed=seed, repetitions=2),
        lambda seed: FJLT(**sizes, seed=seed, density=Fraction(1, 4)),
        lambda seed: SJLT(**sizes, seed=seed, sparsity=4),
        lambda seed: DKSProjection(**sizes, seed=seed, copies=2),
    ]
    words: dict[str, bytes] = {}
    for make, seed in product(kinds, (0, 1)):
        projection = make(seed)
        first = ReplayableWords(seed, projection.name).words(4).tobytes()
        assert projection._words().words(4).tobytes() == first
        assert words.setdefault(projection.source, first) == first
    for seed in (0, 1):
        hashes = KeyedHashes(items=4, functions=2, buckets=2, seed=seed)
        words[hashes.source] = hashes._key()
    assert len(words) == len(set(words.values())) == 2 * (len(kinds) + 1)


def test_a_draw_names_its_source_and_what_was_made_of_it() -> None:
    (draw,) = signs().guarantee().draws
    assert draw == Draw("gaussian projections of seed 1", draw.realised)
    assert draw.realised.startswith(GaussianProjection(p=8, k=4, seed=1).sha256())
