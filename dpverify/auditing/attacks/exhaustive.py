"""Exhaustive checks: every output of every neighbouring pair of a small domain, in fractions.

Nothing is drawn and nothing is estimated: for a mechanism whose outputs are finitely many, with
exact probabilities, the largest likelihood ratio is e^ε of pure differential privacy, and the
largest hockey-stick divergence Σ max(p − e^ε q, 0) is δ(ε), for the data sets that were tried. That
is a proof for that size, and a refutation of every claim that it exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import permutations, product
from typing import Any, ClassVar, Protocol

import cloudpickle
import numpy as np
from flint import arb

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import ExactEvidence, Finding
from dpverify.auditing.outputs.foreign import foreign_code
from dpverify.auditing.outputs.samples import over_the_draw
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import POINTS, curve_points
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import is_sparse
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import DPVerifyError, ParameterError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Exhaustive, Pair
from dpverify.visible import shown

__all__ = [
    "ExactMoments",
    "Exhaustion",
    "ExhaustiveAttack",
    "FiniteMechanism",
    "Worst",
    "exact_moments",
    "exhaust",
]

LARGEST = 1_000_000
"""Probabilities (data sets times outputs) that are held at once."""

_FEW_OUTPUTS = 6  # values of a release that is small enough to be enumerated unasked
_PATIENCE = 6  # times the limit of one release, for one pair

_PLAIN = (int, str, bytes, Fraction, type(None))

Law = Mapping[Any, Fraction]


class FiniteMechanism(Protocol):
    """What can be enumerated."""

    @property
    def adjacency(self) -> Adjacency:
        """Whom the claim protects."""
        ...

    def distribution(self, record: Any) -> Law:
        """Exact probability of every output for one data set."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """Where a maximum is reached.

    Attributes
    ----------
    value : the maximum; None where a ratio is infinite
    record, neighbour : places of the two data sets among those given, in this order
    event : the outputs that show it, with their probabilities on both sides
    """

    value: Fraction | None
    record: int
    neighbour: int
    event: Mapping[Any, tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhaustion:
    """The exact laws of all data sets of a small domain, and which of them are neighbours.

    Attributes
    ----------
    laws : law of the output for each data set
    pairs : places of neighbouring data sets, in both orders
    """

    laws: tuple[Law, ...]
    pairs: tuple[tuple[int, int], ...]

    def ratio(self) -> Worst:
        """Largest p/q over all outputs and pairs: e^ε of pure differential privacy, exactly."""
        worst = Worst(value=Fraction(0), record=0, neighbour=0, event={})
        for first, second in self.pairs:
            for output, p in self.laws[first].items():
                q = self.laws[second].get(output, Fraction(0))
                if p == 0:
                    continue
                value = p / q if q else None
                if value is None or value > (worst.value or 0):
                    event = {output: (p, q)}
                    worst = Worst(value=value, record=first, neighbour=second, event=event)
                    if value is None:
                        return worst
        return worst

    def epsilon(self) -> Enclosure:
        """Encloses the smallest ε of pure differential privacy; infinite where there is none."""
        largest = self.ratio().value
        if largest is None:
            return Enclosure(float("inf"), float("inf"))
        if largest <= 1:
            return Enclosure(0.0, 0.0)
        return enclose(partial(_logarithm, largest))

    def delta(self, ratio: Fraction) -> Worst:
        """Largest Σ max(p − ratio·q, 0) over all pairs, exactly; `ratio` stands for e^ε."""
        require(ratio >= 1, "ratio", ratio, "at least 1, as e^epsilon is")
        worst = Worst(value=Fraction(-1), record=0, neighbour=0, event={})
        for first, second in self.pairs:
            event = self._excess(first, second, ratio)
            value = sum((p - ratio * q for p, q in event.values()), Fraction(0))
            if worst.value is None or value > worst.value:
                worst = Worst(value=value, record=first, neighbour=second, event=event)
        return worst

    def exceeds(self, claim: PrivacyCurve, epsilon: Real) -> bool:
        """Whether δ(ε) is proven to be above what the claim allows there."""
        eps = rational("epsilon", epsilon)
        allowed = claim.delta_at(eps).upper
        for pair in self.pairs:
            surely = [
                (p, q)
                for p, q in self._excess(*pair, Fraction(1)).values()
                if not q or _surely_above(p / q, eps)
            ]

            def excess(surely: Any = surely) -> arb:
                return sum((to_arb(p) - to_arb(eps).exp() * to_arb(q) for p, q in surely), arb(0))

            if surely and (allowed == 0 or enclose(excess).lower > allowed):
                return True
        return False

    def most_above(self, claim: PrivacyCurve, points: Sequence[float]) -> float:
        """Where δ(ε) is most above the claim, by doubles.

        Looked for at these ε, at losses of outputs, between which δ is a line of e^ε, and where the
        claim falls below what one side alone gives.
        """
        best, place = -math.inf, 0.0
        for first, second in self.pairs:
            other = self.laws[second]
            both = [(float(p), float(other.get(out, 0))) for out, p in self.laws[first].items()]
            p, q = np.array(both).T
            alone = float(p[q == 0].sum())
            with np.errstate(divide="ignore"):
                losses = np.unique(np.log(p[(p > q) & (q > 0)] / q[(p > q) & (q > 0)]))
            kept = losses[np.linspace(0, losses.size - 1, min(losses.size, POINTS)).astype(int)]
            far = [claimed_epsilon(claim, Fraction(alone) / 2)] if alone else []
            for at in {*points, *kept.tolist(), *filter(math.isfinite, far)}:
                rest = np.where(q > 0, p - np.exp(np.log(np.maximum(q, 5e-324)) + at), p)
                above = float(np.maximum(rest, 0).sum()) - claim.delta_at(at).upper
                best, place = max((best, place), (above, at))
        return place

    def _excess(
        self, first: int, second: int, ratio: Fraction
    ) -> dict[Any, tuple[Fraction, Fraction]]:
        other = self.laws[second]
        found = {}
        for output, p in self.laws[first].items():
            q = other.get(output, Fraction(0))
            if p > ratio * q:
                found[output] = (p, q)
        return found


def _logarithm(ratio: Fraction) -> arb:
    return to_arb(ratio).log()


@lru_cache(maxsize=4096)
def _surely_above(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ln(ratio) > ε, to a double's last digit; many outputs have one ratio."""
    return enclose(partial(_logarithm, ratio)).lower > epsilon


def exhaust(mechanism: FiniteMechanism, records: Sequence[Any]) -> Exhaustion:
    """Enumerate a mechanism over all data sets of a small domain.

    Parameters
    ----------
    mechanism : with `distribution`, exact; its adjacency says who is a neighbour
    records : all data sets of the domain, each as `distribution` takes it

    Raises
    ------
    ParameterError
        If there are no neighbours among them, a law's probabilities don't sum to exactly 1 or one
        is negative, or there are too many outputs to hold.
    """
    laws: list[Law] = []
    held = 0
    for number, record in enumerate(records):
        law = {
            output: p if isinstance(p, Fraction) else rational(f"probability of {shown(output)}", p)
            for output, p in mechanism.distribution(record).items()
        }
        for output in law:  # by which it is looked up
            rule = "equal to another one that is made like it, and NaN isn't"
            require(_equals_another(output), f"output of record {number}", output, rule)
        total = sum(law.values(), Fraction(0))
        if total != 1 or any(p < 0 for p in law.values()):
            raise ParameterError(
                f"distribution of record {number}", total, "probabilities that sum to exactly 1"
            )
        held += len(law)
        require(held <= LARGEST, "outputs", held, f"at most {LARGEST} over all records")
        laws.append(law)
    pairs = tuple(
        (first, second)
        for first, second in permutations(range(len(laws)), 2)
        if mechanism.adjacency.relates(records[first], records[second])
    )
    require(bool(pairs), "records", f"{len(laws)} without a neighbour", "some neighbours")
    return Exhaustion(laws=tuple(laws), pairs=pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustiveAttack(Attack):
    """Enumerates both laws of each pair: a proof for these pairs, without a level."""

    name: ClassVar[AuditKind] = "exhaustive"
    weight: ClassVar[float] = 0.0

    def applies(self, mechanism: Any) -> bool:
        return isinstance(mechanism, Exhaustive) and not over_the_draw(mechanism)

    def unasked(self, mechanism: Any) -> bool:
        return hasattr(mechanism, "shape") and math.prod(mechanism.shape(1)) <= _FEW_OUTPUTS

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where the exact δ is above the claim: at its ε, at 0, or where it is most."""
        mechanism, claim = target.mechanism, target.claim
        delta = config.delta_for(claim)
        claimed = Fraction(claimed_epsilon(claim, delta))
        findings = []
        for pair in target.drawable:
            work = partial(exhaust, mechanism, _records(pair))
            limit = _PATIENCE * config.time_limit
            laws = foreign_code(work, mechanism, pair, None, (), limit, passed=DPVerifyError)
            most = Fraction(laws.most_above(claim, [at for at, _ in curve_points(claim, delta)]))
            refuted = [at for at in (claimed, Fraction(0), most) if laws.exceeds(claim, at)]
            exact = laws.epsilon()
            excess = f", above the claim at ε = {float(refuted[0]):g}" if refuted else ""
            findings.append(
                Finding(
                    audit=self.name,
                    verdict="violation" if refuted else "no_violation_found",
                    statement=f"At the pair {pair.name!r}, over all outputs, ε at δ = 0 is "
                    f"{exact.upper:.6g}{excess}",
                    pair=pair,
                    # At a positive δ the largest ratio bounds ε from above alone.
                    epsilon_lower=exact.lower if delta == 0 else None,
                    evidence=ExactEvidence(
                        worst_event={str(k): v for k, v in laws.ratio().event.items()}
                    ),
                    power={"smallest_excess": 0.0},
                )
            )
        return findings


def _equals_another(output: Any) -> bool:
    """Whether one that is made like it, as by the other side's law, is the same output."""
    if isinstance(output, tuple):
        return all(map(_equals_another, output))
    if isinstance(output, _PLAIN) or (isinstance(output, float) and output == output):  # noqa: PLR0124
        return True
    made = cloudpickle.loads(cloudpickle.dumps(output))
    return bool(made == output) and hash(made) == hash(output)


def _records(pair: Pair) -> list[Any]:
    """Both sides, each as `distribution` takes it: of one record."""
    data = (pair.record, pair.neighbour)
    # The first row of several would be another data set.
    rule = "one of single records, where `distribution` is enumerated"
    require(all(np.shape(x)[:-1] in ((), (1,)) for x in data), "pair", pair.name, rule)
    return [x if is_sparse(x) else np.atleast_2d(x)[0] for x in data]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMoments:
    """Mean and variance, exactly, and how many outcomes were enumerated."""

    mean: Fraction
    variance: Fraction
    outcomes: int


def exact_moments(laws: Sequence[Law], value: Callable[..., Fraction | int]) -> ExactMoments:
    """Moments of a function of independent random arguments, over all that they can be.

    Parameters
    ----------
    laws : law of each argument, with probabilities that sum to exactly 1
    value : of one outcome of each argument, exact

    Raises
    ------
    ParameterError
        Before anything is enumerated, if there are too many combinations; the error says how many.
    """
    outcomes = math.prod(len(law) for law in laws)
    require(outcomes <= LARGEST, "outcomes", outcomes, f"at most {LARGEST} over all arguments")
    for number, law in enumerate(laws):
        total = sum(law.values(), Fraction(0))
        require(total == 1, f"law {number}", total, "probabilities that sum to exactly 1")
    mean = square = Fraction(0)
    for drawn in product(*(law.items() for law in laws)):
        weight = math.prod((p for _, p in drawn), start=Fraction(1))
        found = Fraction(value(*(outcome for outcome, _ in drawn)))
        mean += weight * found
        square += weight * found**2
    return ExactMoments(mean=mean, variance=square - mean**2, outcomes=outcomes)
