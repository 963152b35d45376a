"""From inputs to evidence, and from both to everything else: one code for making and verifying."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from importlib.metadata import entry_points
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball
from dpverify.auditing import moments, whitebox
from dpverify.certificate.model import (
    CurvePoint,
    Derived,
    Ends,
    EstimatorFinding,
    EventCounts,
    EventFinding,
    Evidence,
    GuaranteeStatement,
    Inputs,
    MomentEvidence,
    PairEvidence,
    PowerStatement,
    Prediction,
    WhiteBoxFinding,
)
from dpverify.enclosure import Enclosure, decimal_string, exact_string
from dpverify.errors import ConfigurationError, ParameterError, require
from dpverify.grid import Domain
from dpverify.mechanism import Certifiable, MechanismFamily, Pair, Request
from dpverify.sampling.words import ReplayableWords

__all__ = ["build", "collect", "derive", "families", "misfits", "total_draws"]

Progress = Callable[[int], None]

_NUMBER = re.compile(r"-?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?(/\d{1,400})?")
_SYNTHETIC_PAIRS = 40
_SERIAL_DRAWS = 2_000  # fewer than this don't pay for starting processes


def families() -> Mapping[str, MechanismFamily]:
    """Every mechanism that an installed package announces, by name."""
    found = entry_points(group="dpverify.mechanisms")
    return {entry.name: entry.load() for entry in sorted(found, key=lambda entry: entry.name)}


def build(inputs: Inputs) -> Certifiable:
    """The mechanism that the inputs describe.

    Raises
    ------
    ConfigurationError
        If no such mechanism is installed, or its parameters aren't those given.
    ParameterError
        If a parameter is outside its domain.
    """
    known = {entry.name: entry for entry in entry_points(group="dpverify.mechanisms")}
    if inputs.mechanism not in known:
        raise ConfigurationError(
            f"mechanism.name={inputs.mechanism} must be one of {', '.join(sorted(known))}."
        )
    family: MechanismFamily = known[inputs.mechanism].load()
    names = {parameter.name for parameter in family.parameters}
    if set(inputs.parameters) != names:
        given = ", ".join(sorted(inputs.parameters)) or "nothing"
        raise ConfigurationError(
            f"{family.name} takes {', '.join(sorted(names))} beside its name, and got {given}."
        )
    if inputs.adjacency.kind not in family.adjacency:
        raise ConfigurationError(
            f"adjacency.kind={inputs.adjacency.kind} must be one of "
            f"{', '.join(family.adjacency)} for {family.name}."
        )
    return family.build(
        Request(
            attributes=inputs.attributes,
            domain=_domain(inputs),
            adjacency=_adjacency(inputs),
            epsilon=_fraction("epsilon", inputs.epsilon),
            delta=_fraction("delta", inputs.delta),
            seed=inputs.projection_seed,
            parameters=inputs.parameters,
        )
    )


class _Plan(NamedTuple):
    """The audits that the inputs lay down before anything is drawn."""

    delta: Fraction
    alpha: float
    tests: int
    level: float
    events: tuple[whitebox.Event, ...]
    moment_draws: int
    moment_level: float


def _plan(inputs: Inputs, mechanism: Certifiable) -> _Plan:
    """Half of alpha goes to the attack, half to the formulas, each split evenly."""
    alpha = _fraction("alpha", inputs.alpha)
    require(0 < alpha < 1, "alpha", inputs.alpha, "in (0, 1)")
    curve, delta = mechanism.privacy(), _fraction("delta", inputs.delta)
    per_pair = 4  # two events, in both orders
    tests = per_pair * len(mechanism.worst_pairs())
    level = Enclosure.of_exact(alpha / 2 / tests).lower
    return _Plan(
        delta=delta,
        alpha=float(alpha),
        tests=tests,
        level=level,
        events=whitebox.events(curve, delta, inputs.draws, level),
        moment_draws=max(50, inputs.draws // 50),
        moment_level=float(alpha / 2 / (2 * len(mechanism.estimators()))),
    )


def total_draws(inputs: Inputs, mechanism: Certifiable) -> int:
    """Draws that `collect` will report to its progress callback."""
    return 2 * inputs.draws * len(mechanism.worst_pairs()) + max(50, inputs.draws // 50)


def collect(
    inputs: Inputs, mechanism: Certifiable, *, progress: Progress = lambda _: None
) -> Evidence:
    """Run every audit on the mechanism's own release, with replayable randomness."""
    plan = _plan(inputs, mechanism)
    attack = whitebox.attack(
        mechanism,
        draws=inputs.draws,
        seed=inputs.audit_seed,
        tests=plan.events,
        roc=whitebox.roc_thresholds(mechanism.privacy()),
        progress=progress,
        workers=1 if inputs.draws < _SERIAL_DRAWS else -1,
    )
    pair = _moment_pair(inputs)
    estimators = mechanism.estimators()
    estimates = moments.draw_estimates(
        mechanism,
        estimators,
        pair.record,
        pair.neighbour,
        draws=plan.moment_draws,
        seed=inputs.audit_seed,
        progress=progress,
    )
    return Evidence(
        draws=inputs.draws,
        white_box=[
            PairEvidence(pair=worst.name, counts=[_counts(c) for c in counts])
            for worst, counts in zip(mechanism.worst_pairs(), attack.counts, strict=True)
        ],
        roc=[_counts(c) for c in attack.roc],
        moments=[
            _moments(estimator.name, moments.Moments.of(values))
            for estimator, values in zip(estimators, estimates, strict=True)
        ],
        distance_estimates=_distance_estimates(inputs, mechanism),
    )


def misfits(inputs: Inputs, mechanism: Certifiable, evidence: Evidence) -> list[str]:
    """Names of the parts of the evidence that are not of the form that the inputs lay down."""
    plan = _plan(inputs, mechanism)
    expected = {
        "draws": (evidence.draws, inputs.draws),
        "white_box": (
            [(recorded.pair, len(recorded.counts)) for recorded in evidence.white_box],
            [(pair.name, len(plan.events)) for pair in mechanism.worst_pairs()],
        ),
        "roc": (len(evidence.roc), len(whitebox.roc_thresholds(mechanism.privacy()))),
        "moments": (
            [
                (recorded.estimator, recorded.draws + recorded.undefined)
                for recorded in evidence.moments
            ],
            [(estimator.name, plan.moment_draws) for estimator in mechanism.estimators()],
        ),
        "distance_estimates": (len(evidence.distance_estimates), _SYNTHETIC_PAIRS),
    }
    return [f"evidence.{name}" for name, (found, due) in expected.items() if found != due]


def derive(inputs: Inputs, mechanism: Certifiable, evidence: Evidence) -> Derived:
    """Everything that follows from the inputs and the recorded counts."""
    plan = _plan(inputs, mechanism)
    guarantee = mechanism.guarantee()
    epsilon = _fraction("epsilon", inputs.epsilon)
    distance = mechanism.estimators()[0]
    return Derived(
        protects=guarantee.adjacency.unit,
        guarantee=GuaranteeStatement(
            epsilon=Ends.of(guarantee.curve.epsilon(plan.delta)),
            delta=Ends.of(guarantee.curve.delta(epsilon)),
            randomness=guarantee.randomness,
            data_choice=guarantee.data_choice,
            theorem=guarantee.theorem,
        ),
        facts={
            section: {
                name: Ends.of(value) if isinstance(value, Enclosure) else value
                for name, value in numbers.items()
            }
            for section, numbers in mechanism.facts().items()
        },
        curve=[
            CurvePoint(epsilon=exact_string(point), delta=Ends.of(guarantee.curve.delta(point)))
            for point in (epsilon * step / 20 for step in range(27))
        ],
        white_box=_white_box(inputs, mechanism, evidence, plan, epsilon),
        moment_level=_statistic(plan.moment_level),
        margin_mean=_statistic(moments.MARGIN_MEAN),
        margin_variance=_statistic(moments.MARGIN_VARIANCE),
        estimators=_estimators(inputs, mechanism, evidence, plan),
        distance_predictions=[
            Prediction(
                truth=_statistic(distance.truth(pair.record, pair.neighbour)),
                deviation=_statistic(distance.variance(pair.record, pair.neighbour) ** 0.5),
            )
            for pair in _synthetic_pairs(inputs)
        ],
    )


def _white_box(
    inputs: Inputs, mechanism: Certifiable, evidence: Evidence, plan: _Plan, epsilon: Fraction
) -> WhiteBoxFinding:
    curve = mechanism.privacy()
    found, bounds, refuted = [], [], False
    for recorded in evidence.white_box:
        for event, counted in zip(plan.events, recorded.counts, strict=True):
            counts = whitebox.Counts(
                hits=counted.hits, false_hits=counted.false_hits, draws=evidence.draws
            )
            finding = whitebox.judge(counts, curve, plan.delta, plan.level)
            bounds.append(finding.epsilon_lower)
            refuted |= finding.refuted_at is not None
            found.append(
                EventFinding(
                    pair=recorded.pair,
                    event=event.name,
                    order=(
                        "neighbour against record" if event.swapped else "record against neighbour"
                    ),
                    threshold=_statistic(event.threshold),
                    p_lower=_bound(finding.p_lower, ROUND_FLOOR),
                    q_upper=_bound(finding.q_upper, ROUND_CEILING),
                    epsilon_lower=_bound(finding.epsilon_lower, ROUND_FLOOR),
                    refuted_at=(
                        None if finding.refuted_at is None else _statistic(finding.refuted_at)
                    ),
                )
            )
    power = whitebox.power(curve, epsilon, plan.delta, inputs.draws, plan.level)
    return WhiteBoxFinding(
        # An audit that could have refuted no part of the curve has not run to any purpose.
        verdict=(
            "violation"
            if refuted
            else "inconclusive"
            if power.reach is None
            else "no_violation_found"
        ),
        tests=plan.tests,
        level_per_test=_statistic(plan.level),
        epsilon_lower=_bound(max(bounds), ROUND_FLOOR),
        ceiling=_statistic(whitebox.ceiling(curve, plan.delta, inputs.draws, plan.alpha)),
        findings=found,
        power=PowerStatement(
            noise_scale=None if power.noise_scale is None else _statistic(power.noise_scale),
            smallest_excess=_statistic(power.smallest_excess),
            reach=None if power.reach is None else _statistic(power.reach),
        ),
        roc_thresholds=[_statistic(t) for t in whitebox.roc_thresholds(curve)],
    )


def _estimators(
    inputs: Inputs, mechanism: Certifiable, evidence: Evidence, plan: _Plan
) -> list[EstimatorFinding]:
    pair = _moment_pair(inputs)
    rows = []
    for estimator, recorded in zip(mechanism.estimators(), evidence.moments, strict=True):
        mean = estimator.expectation(pair.record, pair.neighbour)
        variance = estimator.variance(pair.record, pair.neighbour)
        sample = moments.Moments(
            mean=float(recorded.mean),
            variance=float(recorded.variance),
            kurtosis=float(recorded.kurtosis),
            draws=recorded.draws,
            undefined=recorded.undefined,
        )
        mean_verdict, variance_verdict = moments.judge(sample, mean, variance, plan.moment_level)
        if estimator.order != "exact":
            # Draws can confirm an approximation within its margin; they can't refute what it
            # doesn't claim.
            mean_verdict, variance_verdict = (
                "inconclusive" if verdict == "refuted" else verdict
                for verdict in (mean_verdict, variance_verdict)
            )
        rows.append(
            EstimatorFinding(
                name=estimator.name,
                formulas=estimator.order,
                truth=_statistic(estimator.truth(pair.record, pair.neighbour)),
                expectation=_statistic(mean),
                variance=_statistic(variance),
                mean_verdict=mean_verdict,
                variance_verdict=variance_verdict,
            )
        )
    return rows


def _distance_estimates(inputs: Inputs, mechanism: Certifiable) -> list[str]:
    """Squared distances of synthetic pairs, as the first estimator reads them off one release."""
    pairs = _synthetic_pairs(inputs)
    rng = ReplayableWords(inputs.audit_seed, "utility")
    first = mechanism.release(np.stack([pair.record for pair in pairs]), rng=rng)
    second = mechanism.release(np.stack([pair.neighbour for pair in pairs]), rng=rng)
    estimates = mechanism.estimators()[0].estimate(first, second)
    return [_statistic(float(value)) for value in estimates]


def _synthetic_pairs(inputs: Inputs) -> list[Pair]:
    """Pairs of records drawn from the domain: from almost equal to independent."""
    rng = ReplayableWords(inputs.audit_seed, "synthetic")
    pairs = []
    for number in range(1, _SYNTHETIC_PAIRS + 1):
        record, fresh = _uniform(inputs, rng), _uniform(inputs, rng)
        changed = int(inputs.attributes * number / _SYNTHETIC_PAIRS)
        other = np.where(np.arange(inputs.attributes) < changed, fresh, record)
        pairs.append(Pair(name=f"synthetic {number}", record=record, neighbour=other))
    return pairs


def _moment_pair(inputs: Inputs) -> Pair:
    """Two independent synthetic records."""
    return _synthetic_pairs(inputs)[-1]


def _uniform(inputs: Inputs, rng: ReplayableWords) -> NDArray[np.float64]:
    domain = _domain(inputs)
    unit = (rng.words(inputs.attributes) >> np.uint64(11)) * 2.0**-53
    low, high = domain.ends
    record: NDArray[np.float64] = np.clip(low + (high - low) * unit, low, high)
    return record


def _domain(inputs: Inputs) -> Domain:
    return Domain(
        low=_fraction("low", inputs.low),
        high=_fraction("high", inputs.high),
        outside=inputs.outside,
    )


def _adjacency(inputs: Inputs) -> Adjacency:
    bound = _fraction("adjacency.bound", inputs.adjacency.bound or "0")
    match inputs.adjacency.kind:
        case "attribute":
            return AttributeAdjacency(beta=bound)
        case "l1-ball":
            return L1Ball(radius=bound)
        case "bit-flip":
            return BitFlip()


def _fraction(name: str, text: str) -> Fraction:
    """Exact number of a certificate, which may be anyone's: huge exponents are refused unread."""
    if not _NUMBER.fullmatch(text):
        raise ParameterError(name, repr(text[:80]), "an exact number of at most 400 digits")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ParameterError(name, repr(text), "an exact number") from None


def _statistic(value: float) -> str:
    """Nine significant digits: the same under any order of summation."""
    return f"{value:.9g}"


def _bound(value: float, rounding: str) -> str:
    """Nine significant digits on the safe side."""
    return decimal_string(value, rounding, digits=9)


def _counts(counts: whitebox.Counts) -> EventCounts:
    return EventCounts(hits=counts.hits, false_hits=counts.false_hits)


def _moments(name: str, sample: moments.Moments) -> MomentEvidence:
    return MomentEvidence(
        estimator=name,
        mean=_statistic(sample.mean),
        variance=_statistic(sample.variance),
        kurtosis=_statistic(sample.kurtosis),
        draws=sample.draws,
        undefined=sample.undefined,
    )
