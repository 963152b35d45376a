"""Sign sketches: the randomized signs of x·P, for every projection and flip rule of the paper.

`RandomizedSigns` is what is computed and released, with its law; here are the claim, its
calibration and its use.

**For a realised projection** the claim is the curve of N answers, N being how many projected values
differ in sign or level between neighbours.

**Over the draw of a Gaussian projection**, for records of a declared least norm chosen before
it, the number of differing signs is binomial (`_angle_law`) and the claim a mixture of curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from attrs import evolve, field, frozen
from attrs.converters import optional

from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    keep_probability,
    keep_probability_curve,
)
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Box
from dpverify.enclosure import Enclosure, Real, exact_string, rational
from dpverify.errors import ParameterError, require
from dpverify.guarantee import Draw, Guarantee
from dpverify.numbers import to_rational, whole
from dpverify.privacy import Errors, Estimator, Pair
from dpverify_mechanisms.linear.distance import GRID_STEPS
from dpverify_mechanisms.projections.independent import (
    GaussianProjection,
    Projection,
    RademacherProjection,
)
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign._angle_law import differing_probability, rounding_slack
from dpverify_mechanisms.sign.estimators import (
    Angle,
    BitAgreement,
    SignCollision,
    SignCosine,
    agreement_errors,
)
from dpverify_mechanisms.sign.flip_rules import FlipRule, Ladder
from dpverify_mechanisms.sign.individual_rules import IndividualNoise, IndividualResponse
from dpverify_mechanisms.sign.law import bit_losses
from dpverify_mechanisms.sign.randomized_signs import RandomizedSigns, grid_of_signs
from dpverify_mechanisms.sign.worst_pairs import candidates

__all__ = ["SignSketch"]


_DECLARED = (
    "Every record, as it is projected but for its rounding to the grid (after scaling by "
    "data.ranges, where these are given), has an l2 norm of at least {}: that is declared, and "
    "refusing records can't establish it."
)
_DRAWN = (
    "Words of Philox-4x64 under numpy's SeedSequence stand for uniform ones, and the projection's "
    "seed was drawn at random, independently of the records."
)


@frozen(kw_only=True)
class SignSketch(RandomizedSigns):
    """Release of the signs of records @ P, randomized by a flip rule, with its claim.

    Parameters
    ----------
    projection, rule, grid, domain, adjacency : as in `RandomizedSigns`
    least_norm : if given, the claim is over the draw of a Gaussian projection, for records whose
        ℓ2 norm is at least this when they are projected, but for what rounding to the grid takes
        from it, which is charged. Nothing here can see to that: clipping can make any norm smaller,
        and refusing a record tells something about it. The domain must imply it, or those who
        declare it answer for it, and then no record is clipped. None claims for the realised
        projection and all records.

    Raises
    ------
    ParameterError
        If the parts don't fit one another, or the product could exceed exact doubles.
    """

    least_norm: Fraction | None = field(default=None, converter=optional(to_rational))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.least_norm is not None:
            require(self.least_norm >= 0, "least_norm", self.least_norm, "at least 0")
            self._require_angle_law()
            self._require_some_record()

    @classmethod
    def calibrated(
        cls,
        projection: Projection,
        *,
        ladder: Callable[[Fraction], Ladder] = Ladder.response,
        epsilon: Real,
        delta: Real = 0,
        domain: Box,
        adjacency: Adjacency,
        least_norm: Real | None = None,
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
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        least_norm = None if least_norm is None else rational("least_norm", least_norm)
        rule = ladder(Fraction(3, 4))
        draft = cls._draft(projection, rule, domain, adjacency, grid_steps, least_norm)
        if rule.graded and not draft._adjacent:  # noqa: SLF001  # of this class
            raise ParameterError(
                "ladder",
                "a graded one",
                "Ladder.response for whole records",
                "A record far from 0 can be replaced by one equally far on the other side.",
            )
        if least_norm is not None:
            require(delta > 0, "delta", delta, "positive for a claim over the draw")
            keep = keep_probability_curve(
                epsilon, delta, positions=projection.k, differ=draft.differ()
            )
        elif delta == 0:
            keep = keep_probability(epsilon, positions=draft.positions())
        else:
            keep = keep_probability_curve(epsilon, delta, positions=draft.positions())
        return evolve(draft, rule=ladder(keep))

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
        epsilon: Real,
        delta: Real,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """Li and Li 2023, algorithm 9 (iDP-SignOPORP with an OPORP)."""
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        any_rule = IndividualResponse.of(epsilon, positions=1)
        draft = cls._draft(projection, any_rule, domain, adjacency, grid_steps)
        rule = IndividualNoise.of(
            epsilon, delta, distance=int(draft.divisors().max()), positions=draft.positions()
        )
        return evolve(draft, rule=rule)

    @classmethod
    def idp_signrp_rr(
        cls,
        projection: Projection,
        *,
        epsilon: Real,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """Li and Li 2023, algorithm 11 (iDP-SignOPORP with an OPORP)."""
        epsilon = rational("epsilon", epsilon)
        any_rule = IndividualResponse.of(epsilon, positions=1)
        draft = cls._draft(projection, any_rule, domain, adjacency, grid_steps)
        return evolve(draft, rule=IndividualResponse.of(epsilon, positions=draft.positions()))

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
            grid=grid_of_signs(adjacency, domain, whole("grid_steps", grid_steps)),
            domain=domain,
            adjacency=adjacency,
            least_norm=least_norm,
        )

    # The claim

    def guarantee(self) -> Guarantee:
        """The claim for the realised projection, or over its draw if a least norm is declared."""
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
            given=(self.projection.source,),
            statements=self.rule.statements,
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
            assumptions=(*self._declared(self.least_norm), _DRAWN),
            draws=(Draw(self.projection.source, self._realisation()),),
            statements=("li2023.theorem-4.1.ratio", "li2023.equation-3"),
        )

    def _realisation(self) -> str:
        """The matrix, and the grid that records are put on before their signs are compared."""
        return f"{self.projection.sha256()}, records in steps of {exact_string(self.grid.step)}"

    def _declared(self, least_norm: Fraction) -> tuple[str, ...]:
        """What is assumed about norms: nothing where every attribute is far enough from 0."""
        low, high = (Fraction(end) for end in self.domain.ends)
        nearest = max(low, -high, Fraction(0))
        if nearest**2 * self.projection.p >= least_norm**2:
            return ()
        return (_DECLARED.format(exact_string(least_norm)),)

    def differ(self) -> Enclosure:
        """Bound on the probability that a neighbour's sign differs, over the draw."""
        self._require_angle_law()
        return differing_probability(
            self.grid.step * self._moves,
            self.least_norm or Fraction(0),
            p=self.projection.p,
            step=self.grid.step,
        )

    def _mixture(self, ladder: Ladder) -> MixedResponse:
        ratio = ladder.ratio()
        keep = ratio / (ratio + 1)
        return MixedResponse(
            keep=keep, other=1 - keep, positions=self.projection.k, differ=self.differ()
        )

    def _require_angle_law(self) -> Ladder:
        rule = self.rule
        if not self._adjacent:
            raise ParameterError(
                "least_norm",
                self.least_norm,
                "left out where whole records are replaced",
                "One far from 0 can be replaced by one equally far on the other side.",
            )
        if not (
            isinstance(self.projection, GaussianProjection)
            and isinstance(rule, Ladder)
            and not rule.graded
        ):
            raise ParameterError(
                "least_norm",
                self.least_norm,
                "left out, unless for randomized response on a Gaussian projection",
                "The angle's law is proven for no other; the claim for the realised projection "
                "needs no least norm.",
            )
        if self.domain.outside == "clip" and self._declared(self.least_norm or Fraction(0)):
            raise ParameterError(
                "outside",
                "clip",
                "refuse where a least norm is declared that the domain doesn't imply",
                "Clipping can take a record's norm below it.",
            )
        return rule

    def _require_some_record(self) -> None:
        """Refuse a least norm that no record of the domain has: all of them would break it."""
        farthest = max(abs(Fraction(end)) for end in self.domain.ends)
        least = self.least_norm or Fraction(0)
        require(
            farthest**2 * self.projection.p >= least**2,
            "least_norm",
            least,
            "at most the largest norm in the domain, sqrt(attributes) times its larger end",
        )

    def facts(self) -> Mapping[str, Any]:
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
                "steps_moved": self._moves,
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

    # The attack

    def worst_pairs(self) -> Sequence[Pair]:
        """The neighbours at which the loss is largest among `worst_pairs.candidates`."""
        pairs = candidates(self, self.least_norm)
        losses = [
            bit_losses(self.positive(pair.record), self.positive(pair.neighbour)).max(axis=0).sum()
            for pair in pairs
        ]
        return [pairs[int(np.argmax(losses))]]

    # Utility

    def errors_at(self, at: Sequence[Any], *, draws: int = 16) -> Errors:
        """Error of the probability that signs agree; `at` are pairs of records.

        Their angles are what counts, and with other projections than Gaussian or graded flips the
        records themselves: `overlapping_pairs` has some for given cosines. See `agreement_errors`.
        """
        return agreement_errors(self, at, draws)

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
