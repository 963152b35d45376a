"""Sign sketches: the randomised signs of x·P, for every projection and flip rule of the paper.

**The exact path.** Records become whole numbers of grid steps, P is a whole-number matrix and their
product is exact (`LinearSketch` has the same), so that signs, levels ⌈|V|/d⌉ and zeros are decided
in integers and every coin has a dyadic probability. What is released are packed bits.

**For a realised projection** a neighbour changes only projected values of columns that touch the
attribute that moves, and among these only columns that are *live*: whose (sign, level) isn't the
same all over the domain. Both are read off the matrix, so the claim is the curve of N answers with

    N = max over attributes of the number of live columns with a non-zero entry in its row

(all live columns where whole records or several attributes move). N is k for a dense matrix on a
domain around 0, where u = 0 attains it; 1 for an OPORP; t for t OPORPs side by side. Note that 1 is
for β-adjacency alone: for ‖u − u′‖₁ ≤ β many bins can change at once, so the remark of Li and Li
2023, section 2.1, that β-adjacency covers the ℓ1 ball doesn't extend to theorem 4.8.

**Over the draw of a Gaussian projection**, for records of a declared least norm chosen before
it, the number of differing signs is binomial (`angle_law`) and the claim a mixture of curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dpverify.accounting.randomized_response import (
    MixedResponseCurve,
    keep_probability,
    keep_probability_curve,
)
from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball, RecordAdjacency
from dpverify.domain import Box, is_sparse
from dpverify.enclosure import Enclosure, exact_string
from dpverify.errors import ParameterError, require
from dpverify.grid import Grid
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.mechanism import Estimator, Pair
from dpverify.sampling.words import Words
from dpverify_mechanisms.angle_law import (
    differing_probability,
    mixed_keep_probability,
    rounding_slack,
)
from dpverify_mechanisms.flip_rules import (
    UNIT,
    CoinRule,
    FlipRule,
    Ladder,
    column_maxima,
)
from dpverify_mechanisms.individual_rules import IndividualNoise, IndividualResponse
from dpverify_mechanisms.projections import (
    GaussianProjection,
    Projection,
    RademacherProjection,
)
from dpverify_mechanisms.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign_estimators import Angle, BitAgreement, SignCollision, SignCosine
from dpverify_mechanisms.sign_law import (
    bit_losses,
    largest_ratio,
    packed_distribution,
    total_losses,
)
from dpverify_mechanisms.sign_pairs import candidates

__all__ = ["GRID_STEPS", "SignSketch"]

GRID_STEPS = 1024
"""Steps that the adjacency's bound is divided into unless the caller says otherwise."""

_DECLARED = (
    "Every record has an l2 norm of at least {}: that is declared, and neither clipping nor "
    "refusing records can establish it."
)
_ROWS = 128  # records a block: their doubles stay in the cache between the steps


@dataclass(frozen=True, slots=True, kw_only=True)
class SignSketch:
    """Release of the signs of records @ P, randomised by a flip rule and packed into bytes.

    Parameters
    ----------
    projection : realised, public
    rule : how a sign is randomised
    grid : fixed-point grid of the records; the adjacency's bound is a whole number of its steps
    domain : declared range of every attribute
    adjacency : whom the claim protects
    least_norm : if given, the claim is over the draw of a Gaussian projection, for records whose
        ℓ2 norm is at least this. Nothing here can see to that: clipping would have to know the
        norm, and refusing a record tells something about it. The domain must imply it, or those
        who declare it answer for it. None claims for the realised projection and all records.

    Raises
    ------
    ParameterError
        If the parts don't fit one another, or the product could exceed exact doubles.
    """

    projection: Projection
    rule: FlipRule
    grid: Grid
    domain: Box
    adjacency: Adjacency
    least_norm: Fraction | None = None

    def __post_init__(self) -> None:
        self._moves()
        bound = self.largest_sum()
        if not bound < 2**53:
            raise ParameterError(
                "step",
                self.grid.step,
                f"coarse enough: partial sums reach {bound}, beyond 2**53",
                "Fewer grid steps, or a narrower domain, keep the product exact.",
            )
        require(
            self._adjacent or self.rule.notion == "differential privacy",
            "adjacency",
            self.adjacency.unit,
            "one with a bound for an individual rule",
        )
        if self.least_norm is not None:
            self._require_angle_law()

    @classmethod
    def calibrated(
        cls,
        projection: Projection,
        *,
        ladder: Callable[[Fraction], Ladder] = Ladder.response,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
        domain: Box,
        adjacency: Adjacency,
        least_norm: Fraction | None = None,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """The sketch with the least flips that is (ε, δ)-differentially private.

        Parameters
        ----------
        projection, domain, adjacency, least_norm : as in the class
        ladder : `Ladder.response`, `Ladder.smooth` or `Ladder.steepest`
        epsilon, delta : the target, exact
        grid_steps : steps that the adjacency's bound (the domain's width for whole records) is
            divided into
        """
        rule = ladder(Fraction(3, 4))
        draft = cls._draft(projection, rule, domain, adjacency, grid_steps, least_norm)
        if rule.graded and not draft._adjacent:
            raise ParameterError(
                "ladder",
                "a graded one",
                "Ladder.response for whole records",
                "A record far from 0 can be replaced by one as far on the other side.",
            )
        if least_norm is not None:
            keep = mixed_keep_probability(
                epsilon, delta, positions=projection.k, differ=draft.differ()
            )
        elif delta == 0:
            keep = keep_probability(epsilon, positions=draft.positions())
        else:
            keep = keep_probability_curve(epsilon, delta, positions=draft.positions())
        return replace(draft, rule=ladder(keep))

    # The paper's names

    @classmethod
    def dp_signrp_rr(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """Li and Li 2023, algorithm 6. `target`: see `calibrated`."""
        return cls.calibrated(GaussianProjection(p=p, k=k, seed=seed), **target)

    @classmethod
    def dp_signrp_rr_smooth(
        cls,
        *,
        p: int,
        k: int,
        seed: int,
        projection: type[GaussianProjection | RademacherProjection] = RademacherProjection,
        **target: Any,
    ) -> Self:
        """Li and Li 2023, algorithm 7 as theorem 4.7 proves it, and section 4.3."""
        return cls.calibrated(projection(p=p, k=k, seed=seed), ladder=Ladder.smooth, **target)

    @classmethod
    def dp_signoporp_rr(
        cls, *, p: int, k: int, seed: int, repetitions: int = 1, **target: Any
    ) -> Self:
        """Li and Li 2023, algorithm 8, with its repetitions."""
        return cls.calibrated(RepeatedOPORP(p=p, k=k, seed=seed, repetitions=repetitions), **target)

    @classmethod
    def dp_signoporp_rr_smooth(
        cls, *, p: int, k: int, seed: int, repetitions: int = 1, **target: Any
    ) -> Self:
        """Li and Li 2023, algorithm 8 with smooth flips, with its repetitions."""
        return cls.dp_signoporp_rr(
            p=p, k=k, seed=seed, repetitions=repetitions, ladder=Ladder.smooth, **target
        )

    @classmethod
    def idp_signrp_g(
        cls,
        projection: Projection,
        *,
        epsilon: Fraction,
        delta: Fraction,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """Li and Li 2023, algorithm 9 (iDP-SignOPORP with an OPORP)."""
        any_rule = IndividualResponse.of(epsilon, positions=1)
        draft = cls._draft(projection, any_rule, domain, adjacency, grid_steps)
        rule = IndividualNoise.of(
            epsilon, delta, distance=int(draft.divisors().max()), positions=draft.positions()
        )
        return replace(draft, rule=rule)

    @classmethod
    def idp_signrp_rr(
        cls,
        projection: Projection,
        *,
        epsilon: Fraction,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """Li and Li 2023, algorithm 11 (iDP-SignOPORP with an OPORP)."""
        any_rule = IndividualResponse.of(epsilon, positions=1)
        draft = cls._draft(projection, any_rule, domain, adjacency, grid_steps)
        return replace(draft, rule=IndividualResponse.of(epsilon, positions=draft.positions()))

    @classmethod
    def _draft(
        cls,
        projection: Projection,
        rule: FlipRule,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int,
        least_norm: Fraction | None = None,
    ) -> Self:
        """A sketch whose rule is still to be calibrated for what the other parts need."""
        return cls(
            projection=projection,
            rule=rule,
            grid=_grid(adjacency, domain, grid_steps),
            domain=domain,
            adjacency=adjacency,
            least_norm=least_norm,
        )

    # The claim

    def privacy(self) -> PrivacyCurve:
        """The claim: for the realised projection, or over its draw if a least norm is declared."""
        return self.guarantee().curve

    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""
        return self.realised() if self.least_norm is None else self.over_the_draw()

    def realised(self) -> Guarantee:
        """What holds for this realised projection and every record of the domain."""
        return Guarantee(
            curve=self.rule.curve(self.positions(), adjacent=self._adjacent),
            adjacency=self.adjacency,
            randomness="the flips alone, for this realised public projection",
            data_choice="at any time, also by someone who has seen the projection",
            theorem=self.rule.theorem,
            notion=self.rule.notion,
            assumptions=self.rule.assumptions,
        )

    def over_the_draw(self) -> Guarantee:
        """What holds for records of a least norm that were chosen before the projection.

        Li and Li 2023, theorem 4.1, with the exact probability that a sign differs.

        Raises
        ------
        ParameterError
            If no least norm is declared.
        """
        if self.least_norm is None:
            raise ParameterError("least_norm", None, "declared for a claim over the draw")
        return Guarantee(
            curve=self._mixture(self._require_angle_law()),
            adjacency=self.adjacency,
            randomness="the flips and the draw of the public projection",
            data_choice="before the projection was drawn, without knowledge of its seed",
            theorem="Li and Li 2023, theorem 4.1, for the pair's own number of differing signs; "
            "the angle's law is equation 3",
            assumptions=self._declared(self.least_norm),
            over_the_draw=True,
        )

    def _declared(self, least_norm: Fraction) -> tuple[str, ...]:
        """What is assumed about norms: nothing where every attribute is far enough from 0."""
        low, high = (Fraction(end) for end in self.domain.ends)
        nearest = max(low, -high, Fraction(0))
        if nearest**2 * self.projection.p >= least_norm**2:
            return ()
        return (_DECLARED.format(exact_string(least_norm)),)

    def positions(self) -> int:
        """N: largest number of projected values that differ in sign or level between neighbours."""
        live = self.live()
        match self.adjacency:
            case AttributeAdjacency() | BitFlip():
                touching = sparse.csr_array(self.projection.matrix != 0).astype(np.int64) @ live
                return max(int(touching.max()), 1)
            case _:
                return max(int(live.sum()), 1)

    def live(self) -> NDArray[np.int64]:
        """Columns whose sign or level differs somewhere in the domain, from its interval there."""
        low, high = (self.grid.steps(Fraction(end)) for end in self.domain.ends)
        matrix = self.projection.matrix
        above, below = (
            np.asarray(part.sum(axis=0)).ravel().astype(np.int64)
            for part in ((abs(matrix) + matrix) / 2, (abs(matrix) - matrix) / 2)
        )
        ends = np.stack([low * above - high * below, high * above - low * below])
        levels = np.sign(ends)
        if self.rule.graded:
            levels = levels * -(-np.abs(ends) // self.divisors())
        return np.asarray(levels[0] != levels[1], dtype=np.int64)

    def differ(self) -> Enclosure:
        """Bound on the probability that a neighbour's sign differs, over the draw."""
        self._require_angle_law()
        return differing_probability(
            self.grid.step * self._moves(),
            self.least_norm or Fraction(0),
            p=self.projection.p,
            step=self.grid.step,
        )

    def _mixture(self, ladder: Ladder) -> MixedResponseCurve:
        ratio = ladder.ratio()
        keep = ratio / (ratio + 1)
        return MixedResponseCurve(
            keep=keep, other=1 - keep, positions=self.projection.k, differ=self.differ()
        )

    def _require_angle_law(self) -> Ladder:
        rule = self.rule
        if not (
            isinstance(self.projection, GaussianProjection)
            and isinstance(rule, Ladder)
            and not rule.graded
            and self._adjacent
        ):
            raise ParameterError(
                "least_norm",
                self.least_norm,
                "left out, unless for randomized response on a Gaussian projection",
                "The angle's law is proven for no other; the claim for the realised projection "
                "needs no least norm.",
            )
        return rule

    @property
    def _adjacent(self) -> bool:
        """Whether neighbours move projected values by at most their divisors."""
        return not isinstance(self.adjacency, RecordAdjacency)

    def _moves(self) -> int:
        if isinstance(self.adjacency, RecordAdjacency):
            low, high = (self.grid.steps(Fraction(end)) for end in self.domain.ends)
            return high - low
        return self.grid.moves(self.adjacency, attributes=self.projection.p)

    def divisors(self) -> NDArray[np.int64]:
        """d_j: how far a neighbour can move each projected value, in steps."""
        return self._moves() * column_maxima(self.projection)

    def largest_sum(self) -> int:
        """Bound on every partial sum of the product, from public numbers."""
        reach = self.grid.check_reach(self.domain)
        columns = abs(self.projection.matrix).sum(axis=0)
        return reach * int(np.asarray(columns).max())

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on."""
        facts = {
            "grid": {
                "step": exact_string(self.grid.step),
                "low_steps": self.grid.steps(Fraction(self.domain.ends[0])),
                "high_steps": self.grid.steps(Fraction(self.domain.ends[1])),
                "largest_partial_sum": str(self.largest_sum()),
            },
            "projection": {
                "kind": self.projection.name,
                "rows": self.projection.p,
                "columns": self.projection.k,
                "sha256": self.projection.sha256(),
            },
            "sensitivity": {
                "steps_moved": self._moves(),
                "live_columns": int(self.live().sum()),
                "signs_that_can_differ": self.positions(),
            },
            "noise": dict(self.rule.facts()),
        }
        if self.least_norm is not None:
            facts["draw"] = {
                "least_norm": exact_string(self.least_norm),
                "sign_differs_with_probability_at_most": self.differ(),
                "charged_for_rounding_the_matrix": rounding_slack(self.projection.p),
            }
        return facts

    def step(self) -> Enclosure | None:
        """Nothing: bits have no step."""
        return None

    # The release

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[np.uint8]:
        """Randomised signs of every record, packed; a set bit is a positive sign.

        Parameters
        ----------
        records : (n, p) array inside the domain
        rng : `SecureWords` for anything that leaves the machine

        Returns
        -------
        (n, ⌈k/8⌉) uint8 array; the bits of the last byte beyond k are 0.
        """
        sums = self.noiseless(records)
        flipped = self.rule.draw(sums, self.divisors(), rng=rng)
        return np.packbits((sums >= 0) ^ flipped, axis=-1)

    def noiseless(self, records: ArrayLike) -> NDArray[np.int64]:
        """Exact projected values in steps: for likelihoods and tests, never for release."""
        x = self.domain.admit(records, attributes=self.projection.p)
        sums = np.empty((x.shape[0], self.projection.k), dtype=np.int64)
        for start in range(0, x.shape[0], _ROWS):
            rows = slice(start, start + _ROWS)
            block = x[rows].toarray() if is_sparse(x) else x[rows]
            sums[rows] = self.grid.round(block) @ self.projection.matrix
        return sums

    def gridded(self, records: ArrayLike) -> NDArray[np.float64]:
        """Records in whole steps."""
        x = self.domain.admit(np.atleast_2d(records), attributes=self.projection.p)
        return self.grid.round(x)

    def means(self, record: ArrayLike) -> NDArray[np.float64]:
        """Mean of every released sign, of shape (k,): s_j(1 − 2f_j)."""
        sums = self.noiseless(np.atleast_2d(record))
        kept = 1 - 2 * self.rule.probabilities(sums, self.divisors())
        return np.asarray((np.sign(sums) * kept)[0])

    def held_at(self, record: ArrayLike) -> Self:
        """An individual mechanism with its noise set held at one record's.

        It is what theorems 6.1 and 6.2 speak of, between that record and its neighbours.
        """
        sums = self.noiseless(np.atleast_2d(record))[0]
        return replace(self, rule=self.rule.held_at(sums, self.divisors()))

    def redrawn(self, seed: int) -> Self:
        """The same sketch with another projection of its kind and the same flips."""
        return replace(self, projection=replace(self.projection, seed=seed))

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.uint8], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour); infinite where one can't be."""
        rows = outputs.reshape(len(outputs), -1)
        bits = np.unpackbits(rows, axis=-1, count=self.projection.k)
        return total_losses(bits, bit_losses(self.positive(record), self.positive(neighbour)))

    def positive(self, record: ArrayLike) -> list[Fraction]:
        """Probability that each released sign is positive.

        Exact for coins; for Gaussian noise it is that of the double next to the flip probability.
        """
        sums = self.noiseless(np.atleast_2d(record))
        flips = self.rule.fractions(sums, self.divisors())
        return [
            1 - flip if value >= 0 else flip
            for value, flip in zip(sums[0].tolist(), flips, strict=True)
        ]

    def distribution(self, record: ArrayLike) -> Mapping[bytes, Fraction]:
        """Exact probability of every packed output.

        Raises
        ------
        ParameterError
            If there are more than 2**16 outputs, or the rule's noise isn't a coin.
        """
        if not isinstance(self.rule, CoinRule):
            raise ParameterError("rule", type(self.rule).__name__, "one that flips exact coins")
        return packed_distribution(self.positive(record))

    def largest_ratio(self, record: ArrayLike, neighbour: ArrayLike) -> Fraction:
        """Largest p(output | record)/p(output | neighbour); its logarithm is the total loss.

        Raises
        ------
        ZeroDivisionError
            If an output of the record can't come from the neighbour: the loss is infinite.
        """
        return largest_ratio(self.positive(record), self.positive(neighbour))

    def worst_pairs(self) -> Sequence[Pair]:
        """The neighbours at which the loss is largest among `sign_pairs.candidates`."""
        pairs = candidates(self)
        losses = [
            bit_losses(self.positive(pair.record), self.positive(pair.neighbour)).max(axis=0).sum()
            for pair in pairs
        ]
        return [pairs[int(np.argmax(losses))]]

    # Utility

    def retained(self) -> float:
        """1 − 2f = c of randomized response: what a sign's mean keeps of it."""
        if not isinstance(self.rule, Ladder) or self.rule.graded:
            raise ParameterError("rule", type(self.rule).__name__, "randomized response")
        return 1 - 2 * self.rule.flips[1] / UNIT

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic records of the domain, from almost equal to independent."""
        pairs = self.domain.probes(self.projection.p, rng)
        return [
            Pair(name=f"synthetic {number}", record=record, neighbour=other)
            for number, (record, other) in enumerate(pairs, start=1)
        ]

    def estimators(self) -> Sequence[Estimator]:
        """What can be estimated: the angle for a Gaussian matrix and randomized response alone."""
        if self.rule.graded:
            return (BitAgreement(sketch=self, realised=True),)
        if not isinstance(self.projection, GaussianProjection):
            return (
                SignCollision(sketch=self, realised=True),
                BitAgreement(sketch=self, realised=True),
            )
        return (
            SignCollision(sketch=self, realised=False),
            Angle(sketch=self, realised=False),
            SignCosine(sketch=self, realised=False),
        )


def _grid(adjacency: Adjacency, domain: Box, steps: int) -> Grid:
    width = domain.high - domain.low
    match adjacency:
        case AttributeAdjacency(beta=bound):
            if bound > width:
                raise ParameterError(
                    "beta",
                    exact_string(bound),
                    f"at most {exact_string(width)}, the width of the domain",
                    "No attribute can move further, so the width gives the same protection.",
                )
        case L1Ball(radius=bound):
            pass
        case BitFlip():
            bound = Fraction(1)
        case RecordAdjacency():
            bound = width
        case _:
            raise ParameterError(
                "adjacency", adjacency.unit, "one between records: attribute, l1-ball or record"
            )
    return Grid.dividing(bound, steps=steps)
