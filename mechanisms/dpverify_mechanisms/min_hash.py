"""MinHash sketches of sets: range-B MinHash, RRMinHash and NoisyMinHash.

Aumüller, Bourgeat and Schmurr 2020: K public hash functions map a set to one of B buckets each, so
that two sets of Jaccard similarity J have equal buckets with probability J + (1 − J)/B (`hashing`),
and a rule randomises the buckets (`min_hash_rules`).

**Neighbours.** ‖x − y‖₁ = d ≤ α and |x|, |y| ≥ τ. The union has u = (|x| + |y| + d)/2 items and
1 − J = d/u. |x| + |y| has the parity of d, hence u ≥ τ + ⌈d/2⌉, with equality for two sets of τ
items, or of τ and τ + 1 where d is odd. d/(τ + ⌈d/2⌉) rises with d up to disjoint sets at d = 2τ,
so

    1 − J ≤ α/(τ + ⌈α/2⌉),      attained,

and the paper's J ≥ 1 − α/τ (section 3) is true but never tight. A universe of m items allows
d ≤ 2(m − τ) only, and sets of one declared size even d only.

**Two readings.**
"over the draw": the hash functions are random, revealed, and independent of the data. Then each
position differs with probability at most p = (1 − J)(1 − 1/B), independently, and δ(ε) is the exact
mixture over the number of differing positions, attained by the pair above up to ties. It rises with
p, so that this pair is the worst.
"realised": the functions are given, and the data may depend on them. Then all K positions may
differ, and the claim is the curve of K differing ones; it needs no assumption.

**The paper's levels.** Lemma 1 says P[N > Kp′ + √(3 ln(1/δ)Kp′)] ≤ δ with p′ = α/τ·(1 − 1/B). It
uses a Chernoff bound that is proven up to twice the mean; beyond, at Kp′ < 3 ln(1/δ), where all of
the paper's experiments are, it fails. (The ceiling that NoisyMinHash leaves out would do no harm if
the bound were one, N being whole; as it is, more settings fail.) `levels` has the published ε of
the same coins, the ε by the exact tail of N, and the ε of the exact mixture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from statistics import fmean
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpverify.accounting.randomized_response import most_differing
from dpverify.adjacency import ItemAdjacency
from dpverify.domain import Sets, indicator, is_sparse
from dpverify.enclosure import Enclosure, enclose, rational, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.mechanism import Pair
from dpverify.sampling.words import Words
from dpverify_mechanisms.design import Design, DesignPoint
from dpverify_mechanisms.hashing import HashFamily, KeyedHashes
from dpverify_mechanisms.min_hash_estimators import CollisionSimilarity, DistanceSimilarity
from dpverify_mechanisms.min_hash_rules import BucketNoise, BucketResponse, BucketRule, Plain

__all__ = ["PAPER_DELTA", "MinHash", "Reading", "design", "farthest_sets", "published_differing"]

PAPER_DELTA = Fraction(1, 10**4)
"""δ of all experiments of the paper, at which `facts` states the levels."""

Reading = Literal["over the draw", "realised"]

_CANDIDATES = 2048  # items that the search for a bad pair looks at
_STARTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MinHash:
    """Release of randomised buckets of sets.

    Parameters
    ----------
    hashes : K realised range-B hash functions, public
    rule : how buckets are randomised; `Plain` is not private and has no guarantee
    domain : declared sizes of the sets; `least` is τ
    adjacency : `changes` is α
    reading : what `privacy` claims, "over the draw" of the hash functions or "realised"

    Raises
    ------
    ParameterError
        If no set of the domain has a neighbour, or the rule doesn't fit the number of buckets.
    """

    hashes: HashFamily
    rule: BucketRule
    domain: Sets
    adjacency: ItemAdjacency
    reading: Reading = "over the draw"

    def __post_init__(self) -> None:
        rule = '"over the draw" or "realised"'
        require(self.reading in ("over the draw", "realised"), "reading", self.reading, rule)
        farthest_sets(self.domain, self.adjacency, self.hashes.items)
        if not isinstance(self.rule, Plain):
            self.privacy()  # refuses coins that don't fit B

    @classmethod
    def calibrated(
        cls,
        hashes: HashFamily,
        *,
        rule: type[BucketResponse | BucketNoise] = BucketResponse,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
        domain: Sets,
        adjacency: ItemAdjacency,
        reading: Reading = "over the draw",
    ) -> Self:
        """The sketch with the least randomness that is (ε, δ)-differentially private.

        Parameters
        ----------
        hashes, domain, adjacency, reading : as in the class; with δ = 0 both readings agree
        rule : the kind of rule
        epsilon, delta : the target, exact
        """
        target = rational("delta", delta)
        require(0 <= target < 1, "delta", delta, "in [0, 1)")
        draft = cls(
            hashes=hashes, rule=Plain(), domain=domain, adjacency=adjacency, reading=reading
        )
        made = rule.calibrated(
            rational("epsilon", epsilon),
            target,
            positions=hashes.functions,
            buckets=hashes.buckets,
            differ=draft.differ() if reading == "over the draw" else None,
        )
        return replace(draft, rule=made)

    # The paper's names

    @classmethod
    def range_b(
        cls,
        *,
        items: int,
        k: int,
        buckets: int,
        seed: int,
        domain: Sets,
        adjacency: ItemAdjacency,
    ) -> Self:
        """Range-B MinHash, section 3.1: not private, for comparison."""
        hashes = KeyedHashes(items=items, functions=k, buckets=buckets, seed=seed)
        return cls(hashes=hashes, rule=Plain(), domain=domain, adjacency=adjacency)

    @classmethod
    def rr_min_hash(cls, *, items: int, k: int, buckets: int, seed: int, **target: Any) -> Self:
        """RRMinHash, section 4. `target`: see `calibrated`."""
        hashes = KeyedHashes(items=items, functions=k, buckets=buckets, seed=seed)
        return cls.calibrated(hashes, rule=BucketResponse, **target)

    @classmethod
    def noisy_min_hash(cls, *, items: int, k: int, buckets: int, seed: int, **target: Any) -> Self:
        """NoisyMinHash, section 5, with discrete Laplace noise. `target`: see `calibrated`."""
        hashes = KeyedHashes(items=items, functions=k, buckets=buckets, seed=seed)
        return cls.calibrated(hashes, rule=BucketNoise, **target)

    # The claim

    def privacy(self) -> PrivacyCurve:
        """The exact curve of the reading.

        Raises
        ------
        ParameterError
            If the rule is `Plain`.
        """
        return self._curve(self.reading)

    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""
        return self.over_the_draw() if self.reading == "over the draw" else self.realised()

    def over_the_draw(self) -> Guarantee:
        """What holds for data that doesn't depend on the hash functions."""
        return Guarantee(
            curve=self._curve("over the draw"),
            adjacency=self.adjacency,
            randomness="the randomised buckets and the draw of the public hash functions",
            data_choice="before the hash functions were drawn, without knowledge of their seed",
            theorem=f"{self.rule.theorem}; mixed over the exact law of their number",
            assumptions=self.hashes.assumptions,
            over_the_draw=True,
        )

    def realised(self) -> Guarantee:
        """What holds for any hash functions, without an assumption: all K buckets may differ."""
        return Guarantee(
            curve=self._curve("realised"),
            adjacency=self.adjacency,
            randomness="the randomised buckets alone, for any public hash functions",
            data_choice="at any time, also by someone who has seen the hash functions",
            theorem=self.rule.theorem,
        )

    def differ(self) -> Fraction:
        """Largest probability that neighbours' buckets differ: (1 − J)(1 − 1/B), over the draw."""
        return (1 - self.least_similarity()) * (1 - Fraction(1, self.hashes.buckets))

    def least_similarity(self) -> Fraction:
        """Smallest Jaccard similarity of neighbours."""
        differing, union = farthest_sets(self.domain, self.adjacency, self.hashes.items)
        return 1 - Fraction(differing, union)

    def levels(self, delta: Fraction) -> Mapping[str, Enclosure]:
        """ε over the draw at this δ for the same randomness, by three theorems.

        "published" is lemma 1 of the paper as it stands in section 4 (with its ceiling) or 5
        (without), and no theorem; "exact_tail" takes lemma 1's step with the exact binomial tail;
        "exact_mixture" is the curve that `over_the_draw` claims.
        """
        k, b = self.hashes.functions, self.hashes.buckets
        loss = self.rule.loss(b)
        noisy = isinstance(self.rule, BucketNoise)
        published = published_differing(
            k, Fraction(self.adjacency.changes, self.domain.least) * Fraction(b - 1, b), delta
        )
        if not noisy:
            published = Enclosure(*np.ceil([published.lower, published.upper]).tolist())
        tail = most_differing(k, self.differ(), delta)
        steps = b - 1 if noisy else 1  # largest loss of a position
        return {
            "published": _product(published, loss, steps),
            "exact_tail": _product(Enclosure(tail, tail), loss, steps),
            "exact_mixture": self._curve("over the draw").epsilon(delta),
        }

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on."""
        hashes, differing = self.hashes, Fraction(self.adjacency.changes, self.domain.least)
        facts: dict[str, dict[str, Any]] = {
            "projection": {
                "kind": hashes.name,
                "rows": hashes.items,
                "columns": hashes.functions,
                "buckets": hashes.buckets,
                "sha256": hashes.sha256(),
            },
            "sensitivity": {
                "least_similarity_of_neighbours": str(self.least_similarity()),
                "published_least_similarity": str(1 - differing),
                "bucket_differs_with_probability_at_most": str(self.differ()),
            },
            "noise": dict(self.rule.facts()),
        }
        if not isinstance(self.rule, Plain):
            facts["noise"]["loss_step"] = self.rule.loss(hashes.buckets)
            facts["sensitivity"] |= {
                f"epsilon_over_the_draw_at_delta_1e-4_{name}": level
                for name, level in self.levels(PAPER_DELTA).items()
            }
            facts["sensitivity"]["epsilon_realised"] = self._curve("realised").epsilon(0)
        return facts

    def step(self) -> Enclosure | None:
        """Nothing: buckets have no unit."""
        return None

    def _curve(self, reading: Reading) -> PrivacyCurve:
        differ = self.differ() if reading == "over the draw" else None
        return self.rule.curve(self.hashes.functions, self.hashes.buckets, differ)

    # The release

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Randomised buckets of every set.

        Parameters
        ----------
        records : (n, items) rows of zeros and ones inside the domain, dense or scipy sparse
        rng : `SecureWords` for anything that leaves the machine

        Returns
        -------
        (n, K) array: the smallest unsigned type that holds B − 1, or int64 with noise.

        Raises
        ------
        RecordsError
            If a record isn't a set of the domain.
        """
        return self.rule.draw(self.values(records), self.hashes.buckets, rng=rng)

    def shape(self, rows: int) -> tuple[int, ...]:
        """Shape of the release of so many sets."""
        return rows, self.hashes.functions

    def values(self, records: Any) -> NDArray[np.int64]:
        """Buckets before the rule: for likelihoods and tests, never for release."""
        return self.hashes.values(self.admitted(records))

    def admitted(self, records: Any) -> sparse.csr_array:
        """Sets of the domain as CSR rows; one record may be a single row of shape (items,)."""
        rows = records if is_sparse(records) else np.atleast_2d(records)
        return self.domain.admit(rows, attributes=self.hashes.items)

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour), given the realised hash functions.

        `outputs` has shape (draws, 1, K). The loss is a whole number of steps times the upper end
        of `rule.loss`, as the curves' `rates` count it.
        """
        own, other = self.values(record)[0], self.values(neighbour)[0]
        scores = self.rule.scores(outputs.reshape(len(outputs), -1), own, other)
        return np.asarray(scores * self.rule.loss(self.hashes.buckets).upper)

    def distribution(self, record: Any) -> Mapping[tuple[int, ...], Fraction]:
        """Exact probability of every output given the hash functions, for tiny B and K.

        Noisy values are clamped to 0, …, B − 1, which leaves every divergence between two sets
        what it is for the values released.
        """
        laws = [
            self.rule.law(value, self.hashes.buckets) for value in self.values(record)[0].tolist()
        ]
        outputs: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for law in laws:
            outputs = {
                (*output, bucket): share * chance
                for output, share in outputs.items()
                for bucket, chance in enumerate(law)
            }
        return outputs

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbours to attack.

        Over the draw: two sets of the least similarity, chosen without the hash functions; no pair
        is worse. For realised functions a search among synthetic sets finds one more, at which many
        positions are far apart. The claim allows for all K, which such a search seldom reaches:
        what it leaves is unused by these pairs, though perhaps not by all.
        """
        differing, union = farthest_sets(self.domain, self.adjacency, self.hashes.items)
        items = np.arange(union)
        more = -(-differing // 2)
        fixed = self._pair(
            f"least similar neighbours, {differing} of {union} items differ",
            items[: union - (differing - more)],
            items[more:],
        )
        return [fixed] if self.reading == "over the draw" else [self._searched(), fixed]

    def _searched(self) -> Pair:
        """Few items that most functions rank low, joined to a set that they rank high."""
        least, most = self.domain.least, self.domain.most or self.hashes.items
        added = min(self.adjacency.changes, min(most, self.hashes.items) - least)
        dropped = 0 if added else self.adjacency.changes // 2
        added = added or dropped
        ranks = self.hashes.ranks(np.arange(min(self.hashes.items, _CANDIDATES + least)))
        order = np.argsort((ranks * 2.0**-64).mean(axis=1), kind="stable")
        found: list[tuple[int, NDArray[Any], NDArray[Any]]] = []
        for first in order[:_STARTS].tolist():
            # The set that interferes least: its items seldom rank below the first one to join.
            beaten = np.count_nonzero(ranks < ranks[first], axis=1)
            beaten[first] = self.hashes.functions + 1
            record = np.argsort(beaten, kind="stable")[:least]
            joining = [first]
            kept = record[dropped:]
            while len(joining) < added:
                lowest = ranks[np.concatenate([kept, joining])].min(axis=0)
                gain = np.count_nonzero(ranks < lowest, axis=1)
                gain[np.concatenate([record, joining])] = -1
                joining.append(int(gain.argmax()))
            neighbour = np.concatenate([kept, joining])
            ends = [self.hashes.bucket(ranks[s].min(axis=0)[None])[0] for s in (record, neighbour)]
            found.append((int(self.rule.apart(*ends).sum()), record, neighbour))
        steps, record, neighbour = max(found, key=lambda pair: pair[0])
        return self._pair(
            f"searched for these hash functions: a loss of up to {steps} steps", neighbour, record
        )

    def _pair(self, name: str, record: NDArray[Any], neighbour: NDArray[Any]) -> Pair:
        sets = (indicator(np.sort(items), self.hashes.items) for items in (record, neighbour))
        return Pair(name=name, record=next(sets), neighbour=next(sets))

    # Utility

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic sets of the domain, from almost equal to nearly disjoint."""
        most = self.domain.most or max(self.domain.least, 256)
        pairs = self.domain.probes(min(self.hashes.items, 4 * most), rng)
        return [
            self._pair(f"synthetic {number}", record.indices, other.indices)
            for number, (record, other) in enumerate(pairs, start=1)
        ]

    def redrawn(self, seed: int) -> Self:
        """The same sketch with other hash functions of its family and the same rule."""
        return replace(self, hashes=self.hashes.redrawn(seed))

    def estimators(self) -> Sequence[CollisionSimilarity | DistanceSimilarity]:
        """The Jaccard similarity."""
        match self.rule:
            case BucketNoise(noise=noise):
                return (DistanceSimilarity(sketch=self, noise=noise),)
            case BucketResponse(keep=keep):
                return (CollisionSimilarity(sketch=self, keep=keep),)
            case Plain():
                return (CollisionSimilarity(sketch=self, keep=Fraction(1)),)
            case _:
                raise ParameterError("rule", type(self.rule).__name__, "one with an estimator")


def farthest_sets(domain: Sets, adjacency: ItemAdjacency, items: int) -> tuple[int, int]:
    """Numbers of differing items and of all items of the least similar neighbours.

    Raises
    ------
    ParameterError
        If no two sets of the domain are neighbours.
    """
    least = domain.least
    require(items >= least, "items", items, f"at least least={least}")
    differing = min(adjacency.changes, 2 * least, 2 * (items - least))
    if domain.most == least:
        differing -= differing % 2
    if differing < 1:
        raise ParameterError(
            "domain",
            domain,
            "one in which sets have neighbours",
            "Allow more sizes, more changes or more items.",
        )
    return differing, least + -(-differing // 2)


def published_differing(positions: int, differ: Fraction, delta: Fraction) -> Enclosure:
    """Lemma 1 of the paper: Kp + √(3 ln(1/δ)Kp), which is no bound where Kp < 3 ln(1/δ).

    Parameters
    ----------
    positions : K
    differ : p, in the paper α/τ·(1 − 1/B)
    delta : in (0, 1)
    """
    require(0 < delta < 1, "delta", delta, "in (0, 1)")
    mean = positions * differ
    return enclose(lambda: to_arb(mean) + (-3 * to_arb(mean) * to_arb(delta).log()).sqrt())


def design(
    *,
    epsilon: Fraction,
    delta: Fraction,
    domain: Sets,
    adjacency: ItemAdjacency,
    items: int,
    similarities: Sequence[Fraction],
    functions: Sequence[int],
    buckets: Sequence[int] = (2, 3, 4, 8),
    rules: Sequence[type[BucketResponse | BucketNoise]] = (BucketResponse,),
    reading: Reading = "over the draw",
    seed: int = 0,
) -> Design[MinHash]:
    """The K, the B and the rule with the least exact variance of the estimated similarity.

    Parameters
    ----------
    epsilon, delta, domain, adjacency, reading : the guarantee, the same for all candidates
    items : size of the universe
    similarities : of interest, in [0, 1]; the mean of their variances is minimised
    functions, buckets, rules : candidates
    seed : of every candidate's hash functions

    Raises
    ------
    ParameterError
        If there is no candidate, or a similarity is outside its range.
    """
    for similarity in similarities:
        require(0 <= similarity <= 1, "similarities", similarity, "in [0, 1]")
    require(len(similarities) > 0, "similarities", similarities, "non-empty")
    points = []
    for rule, b, k in product(rules, buckets, functions):
        sketch = MinHash.calibrated(
            KeyedHashes(items=items, functions=k, buckets=b, seed=seed),
            rule=rule,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            adjacency=adjacency,
            reading=reading,
        )
        estimator = sketch.estimators()[0]
        points.append(
            DesignPoint(
                parameters={"k": k, "buckets": b, "rule": rule.__name__},
                variance=fmean(float(estimator.variance_at(Fraction(s))) for s in similarities),
                mechanism=sketch,
            )
        )
    require(len(points) > 0, "functions", functions, "non-empty, like buckets and rules")
    return Design(curve=tuple(points))


def _product(count: Enclosure, loss: Enclosure, steps: int) -> Enclosure:
    ends = (
        Fraction(count.lower) * Fraction(loss.lower),
        Fraction(count.upper) * Fraction(loss.upper),
    )
    return Enclosure(
        Enclosure.of_exact(steps * ends[0]).lower, Enclosure.of_exact(steps * ends[1]).upper
    )
