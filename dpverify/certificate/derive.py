"""Evidence from inputs, and derived numbers from both: what making and verifying share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks import white_box as whitebox
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.samples import by_chunks
from dpverify.auditing.statistics import power as planning
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.power import shares
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.certificate import meaning
from dpverify.certificate.build import build, protected_unit
from dpverify.certificate.schema import (
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
    ReliedOn,
    SizeError,
    Usefulness,
    WhiteBoxFinding,
)
from dpverify.certificate.usefulness import judge as judge_usefulness
from dpverify.data.declared import synthetic_rows
from dpverify.enclosure import Enclosure, decimal_string
from dpverify.errors import require
from dpverify.estimation import moments
from dpverify.ledger.reliance import relied_on
from dpverify.privacy import Certifiable, Estimator, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = [
    "PILOT",
    "AuditPlan",
    "collect",
    "derive",
    "misfits",
    "synthetic",
    "with_enough_draws",
    "worth",
]

Progress = Callable[[int], None]

_OUTSIDE = {
    "refuse": "A record outside the declared domain stops the release; whether there is one is not "
    "protected.",
    "clip": "Records outside the declared domain are moved to its nearest point first.",
}
PILOT = 1000
"""Draws of estimates that say how many are enough."""
_ASIDE = range(2**24 - PILOT, 2**24)  # their numbers: the last that a stream can be named by
_CHUNK = 250  # draws of estimates that one worker makes before it takes others
_SHARES = {"attack": 39.0, "moments": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """The audits that the inputs lay down for their mechanism before anything is drawn.

    Nearly all of alpha goes to the attack; the formulas share the rest evenly.
    """

    inputs: Inputs
    mechanism: Certifiable
    epsilon: Fraction
    delta: Fraction
    alpha: float
    pairs: Sequence[Pair]
    events: tuple[planning.Event, ...]
    levels: tuple[tuple[float, ...], ...]
    roc: Sequence[float]
    estimators: Sequence[Estimator]
    moment_level: float
    probes: Sequence[Pair]

    @classmethod
    def of(cls, inputs: Inputs, mechanism: Certifiable) -> AuditPlan:
        """The plan of inputs whose mechanism was built."""
        alpha, delta = inputs.alpha, inputs.delta
        require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
        pairs, estimators = mechanism.worst_pairs(), mechanism.estimators()
        level = shares(float(alpha), _SHARES)
        levels = planning.levels(level["attack"], len(pairs))
        curve = mechanism.privacy()
        return cls(
            inputs=inputs,
            mechanism=mechanism,
            epsilon=inputs.epsilon,
            delta=delta,
            alpha=float(alpha),
            pairs=pairs,
            events=planning.events(curve, delta, inputs.draws, levels[0][0]),
            levels=levels,
            roc=planning.roc_thresholds(curve),
            estimators=estimators,
            moment_level=level["moments"] / (2 * len(estimators)),
            probes=synthetic(inputs, mechanism),
        )

    @property
    def draws(self) -> int:
        """Draws that `collect` will report to its progress callback."""
        return 2 * self.inputs.draws * len(self.pairs) + self.inputs.moment_draws


def collect(plan: AuditPlan, *, progress: Progress = lambda _: None, workers: int = -1) -> Evidence:
    """Run every audit on the mechanism's own release, with replayable randomness.

    Parameters
    ----------
    plan : what to audit, and how often to draw
    progress : called with the number of draws done since the last call, of `AuditPlan.draws`
    workers : processes, −1 for all cores; no effect on the result
    """
    inputs, mechanism = plan.inputs, plan.mechanism
    config = AuditConfig(draws=inputs.draws, seed=inputs.audit_seed, workers=workers)
    attack = whitebox.count_events(
        mechanism, plan.pairs, plan.events, config, roc=plan.roc, progress=progress
    )
    estimates = _estimates(plan, range(inputs.moment_draws), config, progress)
    return Evidence(
        draws=inputs.draws,
        white_box=[
            PairEvidence(pair=worst.name, counts=[_counts(c) for c in counts])
            for worst, counts in zip(plan.pairs, attack.counts, strict=True)
        ],
        roc=[_counts(c) for c in attack.roc],
        moments=[
            _moments(estimator.name, moments.Moments.of(values))
            for estimator, values in zip(plan.estimators, estimates, strict=True)
        ],
        probe_estimates=_probe_estimates(plan),
    )


def _estimates(
    plan: AuditPlan, numbers: range, config: AuditConfig, progress: Progress = lambda _: None
) -> list[NDArray[np.float64]]:
    """What every estimator reads off releases of one synthetic pair, on several processes."""
    tasks = [
        (plan.mechanism, plan.probes[-1], plan.estimators, chosen.start, len(chosen))
        for chosen in (numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK))
    ]
    chunks = []
    for chunk in by_chunks(partial(_chunk_of_estimates, seed=config.seed), tasks, config):
        chunks.append(chunk)
        progress(chunk[0].size)
    return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]


def _chunk_of_estimates(
    mechanism: Certifiable,
    probe: Pair,
    estimators: Sequence[Estimator],
    start: int,
    draws: int,
    *,
    seed: int,
) -> list[NDArray[np.float64]]:
    return moments.draw_estimates(mechanism, estimators, probe, draws=draws, seed=seed, start=start)


def with_enough_draws(plan: AuditPlan, *, workers: int = -1) -> AuditPlan:
    """The plan with as many `moment_draws` as the tails of the estimates ask for.

    That is read off draws of the same synthetic records that the check doesn't see again, so that
    its level stays what it is. It takes no more draws than the attack does, or than were made here:
    where more would be needed, the check may be inconclusive.

    Parameters
    ----------
    plan, workers : as for `collect`
    """
    config = AuditConfig(draws=PILOT, seed=plan.inputs.audit_seed, workers=workers)
    pilot = _estimates(plan, _ASIDE, config)
    samples = [
        moments.Moments.of(values)
        for estimator, values in zip(plan.estimators, pilot, strict=True)
        if estimator.order == "exact"
    ]
    enough = moments.enough_draws(samples, plan.moment_level)
    chosen = min(enough, max(PILOT, plan.inputs.draws), _ASIDE.start)
    return replace(plan, inputs=plan.inputs.model_copy(update={"moment_draws": chosen}))


def misfits(plan: AuditPlan, evidence: Evidence) -> list[str]:
    """Names of the parts of the evidence that are not of the form that the plan lays down."""
    expected = {
        "draws": (evidence.draws, plan.inputs.draws),
        "white_box": (
            [(recorded.pair, len(recorded.counts)) for recorded in evidence.white_box],
            [(pair.name, len(plan.events)) for pair in plan.pairs],
        ),
        "roc": (len(evidence.roc), len(plan.roc)),
        "moments": (
            [
                (recorded.estimator, recorded.draws + recorded.undefined)
                for recorded in evidence.moments
            ],
            [(estimator.name, plan.inputs.moment_draws) for estimator in plan.estimators],
        ),
        "probe_estimates": (len(evidence.probe_estimates), len(plan.probes)),
    }
    return [f"evidence.{name}" for name, (found, due) in expected.items() if found != due]


def derive(plan: AuditPlan, evidence: Evidence) -> Derived:
    """Everything that follows from the inputs and the recorded counts."""
    inputs, mechanism, epsilon = plan.inputs, plan.mechanism, plan.epsilon
    guarantee = mechanism.guarantee()
    predicted = _predictions(plan.estimators[0], plan.probes)
    return Derived(
        protects=protected_unit(inputs, guarantee),
        guarantee=GuaranteeStatement(
            notion=guarantee.notion,
            epsilon=Ends.of(guarantee.curve.epsilon_at(plan.delta)),
            delta=Ends.of(guarantee.curve.delta_at(epsilon)),
            randomness=guarantee.randomness,
            data_choice=guarantee.data_choice,
            theorem=guarantee.theorem,
            assumptions=[*guarantee.assumptions, _OUTSIDE[inputs.outside or "refuse"]],
            statements=[
                ReliedOn.model_validate({"id": found.statement.id, "verdict": found.verdict})
                for found in relied_on(inputs.mechanism, guarantee)
            ],
        ),
        facts={
            section: {
                name: Ends.of(value) if isinstance(value, Enclosure) else value
                for name, value in numbers.items()
            }
            for section, numbers in mechanism.facts().items()
        },
        curve=meaning.curve_points(inputs, guarantee.curve, evidence, plan.alpha),
        far_delta=Ends.of(guarantee.curve.delta_at(meaning.FAR * epsilon)),
        attacker=meaning.attacker_rates(guarantee.curve),
        white_box=_white_box(plan, evidence),
        moment_level=_statistic(plan.moment_level),
        margin_mean=_statistic(moments.MARGIN_MEAN),
        margin_variance=_statistic(moments.MARGIN_VARIANCE),
        estimators=_estimators(plan, evidence),
        predictions=predicted,
        usefulness=judge_usefulness(inputs, plan.estimators[0], predicted),
        sizes=list(_sizes(inputs)),
    )


def _predictions(estimator: Estimator, probes: Sequence[Pair]) -> list[Prediction]:
    """Moments of an estimate for each of the synthetic records."""
    return [
        Prediction(
            truth=_statistic(estimator.truth(probe.record, probe.neighbour)),
            expectation=_statistic(estimator.expectation(probe.record, probe.neighbour)),
            deviation=_statistic(estimator.variance(probe.record, probe.neighbour) ** 0.5),
        )
        for probe in probes
    ]


def worth(inputs: Inputs, mechanism: Certifiable, *, of: int = 0) -> Usefulness | None:
    """What one estimate of an estimator will tell, before anything is drawn.

    The owner's purpose is a range of what the first one estimates, and of no other.
    """
    estimator = mechanism.estimators()[of]
    asked = inputs if of == 0 else inputs.model_copy(update={"purpose": None})
    return judge_usefulness(asked, estimator, _predictions(estimator, synthetic(inputs, mechanism)))


@lru_cache(maxsize=16)
def _sizes(inputs: Inputs) -> tuple[SizeError, ...]:
    """Kept: the documents of one release are often verified again and again."""
    probe = synthetic(inputs, build(inputs))[-1]
    return tuple(meaning.size_errors(inputs, probe, build))


def _white_box(plan: AuditPlan, evidence: Evidence) -> WhiteBoxFinding:
    curve, draws = plan.mechanism.privacy(), plan.inputs.draws
    found, bounds, refuted = [], [], False
    for recorded, levels in zip(evidence.white_box, plan.levels, strict=True):
        for event, counted, level in zip(plan.events, recorded.counts, levels, strict=True):
            counts = Counts(hits=counted.hits, false_hits=counted.false_hits, draws=evidence.draws)
            judged = judge(counts, curve, plan.delta, level, ordering=event.ordering)
            bounds.append(judged.epsilon_lower)
            refuted |= judged.refuted_at is not None
            found.append(
                EventFinding(
                    pair=recorded.pair,
                    event=event.name,
                    order=(
                        "neighbour against record" if event.swapped else "record against neighbour"
                    ),
                    threshold=_statistic(event.threshold),
                    level=_bound(level, ROUND_CEILING),
                    epsilon_lower=_bound(judged.epsilon_lower, ROUND_FLOOR),
                    refuted_at=(
                        None if judged.refuted_at is None else _statistic(judged.refuted_at)
                    ),
                )
            )
    in_order = plan.levels[0][: len(plan.events) // 2]
    power = planning.power(curve, plan.epsilon, plan.delta, draws, in_order)
    return WhiteBoxFinding(
        verdict=whitebox.verdict(refuted, power),
        tests=len(found),
        epsilon_lower=_bound(max(bounds), ROUND_FLOOR),
        ceiling=_statistic(planning.ceiling(curve, plan.delta, draws, plan.alpha)),
        findings=found,
        power=PowerStatement(
            noise_scale=None if power.noise_scale is None else _statistic(power.noise_scale),
            smallest_excess=_statistic(power.smallest_excess),
            reach=None if power.reach is None else _statistic(power.reach),
        ),
        roc_thresholds=[_statistic(t) for t in plan.roc],
    )


def _estimators(plan: AuditPlan, evidence: Evidence) -> list[EstimatorFinding]:
    probe = plan.probes[-1]
    rows = []
    for estimator, recorded in zip(plan.estimators, evidence.moments, strict=True):
        mean = estimator.expectation(probe.record, probe.neighbour)
        variance = estimator.variance(probe.record, probe.neighbour)
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
                truth=_statistic(estimator.truth(probe.record, probe.neighbour)),
                expectation=_statistic(mean),
                variance=_statistic(variance),
                mean_verdict=mean_verdict,
                variance_verdict=variance_verdict,
            )
        )
    return rows


def _probe_estimates(plan: AuditPlan) -> list[str]:
    """What the first estimator reads off one release of each synthetic probe."""
    first, seed = plan.estimators[0], plan.inputs.audit_seed
    words = (ReplayableWords(seed, "utility", number) for number in range(len(plan.probes)))
    return [
        _statistic(moments.read(first, plan.mechanism, probe, rng=rng))
        for probe, rng in zip(plan.probes, words, strict=True)
    ]


def synthetic(inputs: Inputs, mechanism: Certifiable) -> Sequence[Pair]:
    """Pairs of synthetic records, made from no data, whose estimates are predicted and drawn.

    Where columns are declared, these are records that the columns can form, which fill only a small
    part of their box. For a release of a whole data set the second of a pair is a query, which only
    the mechanism can make.
    """
    rng = ReplayableWords(inputs.audit_seed, "synthetic")
    if not inputs.columns or mechanism.estimators()[0].compares == "release and query":
        return mechanism.probes(rng)
    return [
        Pair(name=f"synthetic {number}", record=record, neighbour=other)
        for number, (record, other) in enumerate(synthetic_rows(inputs.columns, rng), start=1)
    ]


def _statistic(value: float) -> str:
    """Nine significant digits: the same under any order of summation."""
    return f"{value:.9g}"


def _bound(value: float, rounding: str) -> str:
    """Nine significant digits on the safe side."""
    return decimal_string(value, rounding, digits=9)


def _counts(counts: Counts) -> EventCounts:
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
