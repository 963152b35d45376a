"""MinHash sketches of sets: range-B MinHash, RRMinHash and NoisyMinHash.

Aumüller, Bourgeat and Schmurr 2020: K public hash functions map a set to one of B buckets each, so
that two sets of Jaccard similarity J have equal buckets with probability J + (1 − J)/B (`hashing`),
and a rule randomizes the buckets (`rules`).

**Two readings.**
"over the draw": the hash functions are random, revealed, and independent of the data. Then each
position differs with probability at most p = (1 − J)(1 − 1/B), independently, and δ(ε) is the exact
mixture over the number of differing positions, attained by the least similar neighbours
(`worst_pairs`) up to ties. It rises with p, so that they are the worst.
"realised": the functions are given, and the data may depend on them. Then all K positions may
differ, and the claim is the curve of K differing ones; it needs no assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import fmean
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy
from attrs import evolve, frozen
from numpy.typing import NDArray

from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import ParameterError, require, require_known
from dpverify.guarantee import Draw, Guarantee, PrivacyCurve
from dpverify.privacy import Errors, Exhaustive, Pair, Redrawable
from dpverify.sampling.words import Words
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.min_hash.estimators import CollisionSimilarity, DistanceSimilarity
from dpverify_mechanisms.min_hash.hashing import HashFamily, KeyedHashes
from dpverify_mechanisms.min_hash.levels import PAPER_DELTA, levels
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketResponse, BucketRule, Plain
from dpverify_mechanisms.min_hash.worst_pairs import (
    farthest_sets,
    least_similar,
    pair_of_sets,
    searched,
)

__all__ = ["MinHash", "Reading"]

Reading = Literal["over the draw", "realised"]


@frozen(kw_only=True)
class MinHash(Redrawable, Exhaustive):
    """Release of randomized buckets of sets.

    Parameters
    ----------
    hashes : K realised range-B hash functions, public
    rule : how buckets are randomized; `Plain` is not private and has no guarantee
    domain : declared sizes of the sets; `min_size` is τ
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
    adjacency: Items
    reading: Reading = "over the draw"

    def __attrs_post_init__(self) -> None:
        require_known("reading", self.reading, get_args(Reading))
        farthest_sets(self.domain, self.adjacency, self.hashes.items)
        if not isinstance(self.rule, Plain):
            self.privacy()  # refuses coins that don't fit B

    @classmethod
    def calibrated(
        cls,
        hashes: HashFamily,
        *,
        rule: type[BucketResponse | BucketNoise] = BucketResponse,
        epsilon: Real,
        delta: Real = 0,
        domain: Sets,
        adjacency: Items,
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
        return evolve(draft, rule=made)

    # The paper's names

    @classmethod
    def range_b(
        cls,
        *,
        p: int,
        k: int,
        buckets: int,
        seed: int,
        domain: Sets,
        adjacency: Items,
    ) -> Self:
        """Range-B MinHash, section 3.1: not private, for comparison."""
        hashes = KeyedHashes(items=p, functions=k, buckets=buckets, seed=seed)
        return cls(hashes=hashes, rule=Plain(), domain=domain, adjacency=adjacency)

    @classmethod
    def rr_min_hash(cls, *, p: int, k: int, buckets: int, seed: int, **target: Any) -> Self:
        """RRMinHash, section 4. `target`: see `calibrated`."""
        hashes = KeyedHashes(items=p, functions=k, buckets=buckets, seed=seed)
        return cls.calibrated(hashes, rule=BucketResponse, **target)

    @classmethod
    def noisy_min_hash(cls, *, p: int, k: int, buckets: int, seed: int, **target: Any) -> Self:
        """NoisyMinHash, section 5, with discrete Laplace noise. `target`: see `calibrated`."""
        hashes = KeyedHashes(items=p, functions=k, buckets=buckets, seed=seed)
        return cls.calibrated(hashes, rule=BucketNoise, **target)

    @property
    def p(self) -> int:
        """Number of items that a set may hold."""
        return self.hashes.items

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
        return self.over_the_draw() if self.reading == "over the draw" else self.realised()

    def over_the_draw(self) -> Guarantee:
        """What holds for data that doesn't depend on the hash functions."""
        return Guarantee(
            curve=self._curve("over the draw"),
            adjacency=self.adjacency,
            randomness="the randomized buckets and the draw of the public hash functions",
            data_choice="before the hash functions were drawn, without knowledge of their seed",
            theorem=f"{self.rule.theorem}; mixed over the exact law of their number",
            assumptions=self.hashes.assumptions,
            draws=(Draw(self.hashes.source, self.hashes.sha256()),),
            statements=(*self.rule.statements, "aumuller2020.section-3.1.range-b"),
        )

    def realised(self) -> Guarantee:
        """What holds for any hash functions, without an assumption: all K buckets may differ."""
        return Guarantee(
            curve=self._curve("realised"),
            adjacency=self.adjacency,
            randomness="the randomized buckets alone, for any public hash functions",
            data_choice="at any time, also by someone who has seen the hash functions",
            theorem=self.rule.theorem,
            statements=self.rule.statements,
        )

    def differ(self) -> Fraction:
        """Largest probability that neighbours' buckets differ: (1 − J)(1 − 1/B), over the draw."""
        return (1 - self.least_similarity()) * (1 - Fraction(1, self.hashes.buckets))

    def least_similarity(self) -> Fraction:
        """Smallest Jaccard similarity of neighbours."""
        differing, union = farthest_sets(self.domain, self.adjacency, self.hashes.items)
        return 1 - Fraction(differing, union)

    def levels(self, delta: Fraction) -> Mapping[str, Enclosure]:
        """ε over the draw at this δ by three theorems; see `levels.levels`."""
        return levels(
            self.rule,
            self.hashes,
            differ=self.differ(),
            relative_change=Fraction(self.adjacency.changes, self.domain.min_size),
            mixture=self._curve("over the draw"),
            delta=delta,
        )

    def facts(self) -> Mapping[str, Any]:
        hashes, differing = self.hashes, Fraction(self.adjacency.changes, self.domain.min_size)
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
            facts["sensitivity"]["epsilon_realised"] = self._curve("realised").epsilon_at(0)
        return facts

    def _curve(self, reading: Reading) -> PrivacyCurve:
        differ = self.differ() if reading == "over the draw" else None
        return _curve(self.rule, self.hashes.functions, self.hashes.buckets, differ)

    # The release

    def before(self, admitted: scipy.sparse.csr_array) -> NDArray[np.int64]:
        """Buckets before the rule."""
        return self.hashes.values(admitted)

    def randomized(self, buckets: NDArray[np.int64], rng: Words) -> NDArray[Any]:
        """Buckets as the rule gives them out."""
        return self.rule.draw(buckets, self.hashes.buckets, rng=rng)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.hashes.functions

    def dtype(self) -> np.dtype[Any]:
        return self.rule.dtype(self.hashes.buckets)

    def possible(self, released: NDArray[Any]) -> bool:
        """Whether all are buckets, or there is noise: that can lead anywhere."""
        noisy = isinstance(self.rule, BucketNoise)
        return noisy or bool((released < self.hashes.buckets).all())

    def added_noise(self) -> GeometricNoise | None:
        """The noise on every bucket, where the rule is noise."""
        return self.rule.noise if isinstance(self.rule, BucketNoise) else None

    def values(self, records: Any) -> NDArray[np.int64]:
        """Buckets before the rule: for likelihoods and tests, never for release."""
        return self.before(self.admitted(records))

    # The attack

    def ratios(
        self, outputs: NDArray[Any], own: NDArray[np.int64], other: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Ln p(output | own buckets) − ln p(output | the other's), for one record each.

        `outputs` has shape (draws, 1, K). The loss is a whole number of steps times the upper end
        of `BucketRule.loss`, as the curves' `rates` count it.
        """
        scores = self.rule.scores(outputs.reshape(len(outputs), -1), own[0], other[0])
        return np.asarray(scores * _step(self.rule, self.hashes.buckets))

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

        Over the draw: the least similar ones, chosen without the hash functions; no pair is worse.
        For realised functions a search among synthetic sets finds one more (`searched`).
        """
        fixed = least_similar(self.domain, self.adjacency, self.hashes.items)
        if self.reading == "over the draw":
            return [fixed]
        found = searched(self.hashes, self.rule, domain=self.domain, adjacency=self.adjacency)
        return [found, fixed]

    # Utility

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic sets of the domain, from almost equal to sharing half of their items."""
        most = self.domain.max_size or max(self.domain.min_size, 256)
        pairs = self.domain.probes(min(self.hashes.items, 4 * most), rng)
        return [
            pair_of_sets(
                f"synthetic {number}", record.indices, other.indices, items=self.hashes.items
            )
            for number, (record, other) in enumerate(pairs, start=1)
        ]

    def errors_at(self, at: Sequence[Any], *, draws: int = 16) -> Errors:
        """Error of the Jaccard similarity; `at` are similarities of interest, in [0, 1]."""
        del draws
        for similarity in at:
            require(0 <= similarity <= 1, "at", similarity, "in [0, 1]")
        (estimator,) = self.estimators()
        exact = [rational("at", similarity) for similarity in at]
        return Errors(variance=fmean(float(estimator.variance_at(one)) for one in exact))

    def redrawn(self, seed: int) -> Self:
        """The same sketch with other hash functions of its family and the same rule."""
        return evolve(self, hashes=self.hashes.redrawn(seed))

    def estimators(self) -> Sequence[CollisionSimilarity | DistanceSimilarity]:
        """The Jaccard similarity."""
        of: dict[str, Any] = {"hashes": self.hashes, "domain": self.domain}
        match self.rule:
            case BucketNoise(noise=noise):
                return (DistanceSimilarity(noise=noise, **of),)
            case BucketResponse(keep=keep):
                return (CollisionSimilarity(keep=keep, **of),)
            case Plain():
                return (CollisionSimilarity(keep=Fraction(1), **of),)
            case _:
                raise ParameterError("rule", type(self.rule).__name__, "one with an estimator")


@lru_cache(maxsize=16)
def _curve(rule: BucketRule, functions: int, buckets: int, differ: Fraction | None) -> PrivacyCurve:
    """Its curve, made once for all functions that are drawn."""
    return rule.curve(functions, buckets, differ)


@lru_cache(maxsize=16)
def _step(rule: BucketRule, buckets: int) -> float:
    """One step of the loss, rounded up."""
    return rule.loss(buckets).upper
