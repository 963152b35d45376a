"""How each kind of audit is run on a mechanism: its pairs, its share of the level, its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpverify.auditing.attacks.exhaustive import exhaust
from dpverify.auditing.finding import AuditKind, Finding, undrawn
from dpverify.auditing.outputs.draws import guarded
from dpverify.auditing.statistics.claim_test import curve_lines
from dpverify.data.domain import Domain, is_sparse
from dpverify.errors import DPVerifyError, DrawError, ParameterError
from dpverify.guarantee import claimed_epsilon
from dpverify.privacy import Pair

__all__ = ["RUNNERS", "Plan", "Space"]

_BETS = 8  # points of the curve, beside the claimed one, that a sequential audit bets against
_PATIENCE = 6  # times the limit of one release, for an exhaustive check of a pair


class Space(NamedTuple):
    """What data sets are made of, for a search: their domain, p, and the possible n."""

    domain: Domain | None
    attributes: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a kind of audit needs to know.

    `pairs` can be drawn from on both sides; `known_pairs` are those and the others, whose failures
    may tell the sides apart. `space` is what data sets are made of where pairs are searched for,
    and None where they are named. `only_whole` leaves the precision of doubles out.
    """

    mechanism: Any
    pairs: Sequence[Pair]
    known_pairs: Sequence[Pair]
    own_pairs: bool
    space: Space | None
    delta: Fraction
    draws: int
    seed: int
    workers: int
    time_limit: float
    levels: dict[str, float]
    only_whole: bool

    @property
    def claimed(self) -> float:
        """The claimed ε at δ, its safe end."""
        return claimed_epsilon(self.mechanism.privacy(), self.delta)


def _exhaustive(plan: Plan) -> list[Finding]:
    claim = plan.mechanism.privacy()
    findings = []
    for pair in plan.pairs:
        data = (pair.record, pair.neighbour)
        # `distribution` is of one record: the first row of several is another data set.
        if any(np.shape(each)[:-1] not in ((), (1,)) for each in data):
            raise ParameterError(
                "pair", pair.name, "one of single records, where `distribution` is enumerated"
            )
        records = [each if is_sparse(each) else np.atleast_2d(each)[0] for each in data]
        limit = _PATIENCE * plan.time_limit
        found = guarded(
            partial(exhaust, plan.mechanism, records),
            plan.mechanism,
            pair,
            None,
            (),
            limit,
            passed=DPVerifyError,
        )
        refuted = [at for at in (Fraction(plan.claimed), Fraction(0)) if found.exceeds(claim, at)]
        exact = found.epsilon()
        excess = f", above the claim at ε = {float(refuted[0]):g}" if refuted else ""
        findings.append(
            Finding(
                audit="exhaustive",
                verdict="violation" if refuted else "no_violation_found",
                statement=f"At the pair {pair.name!r}, over all outputs, ε at δ = 0 is "
                f"{exact.upper:.6g}{excess}",
                pair=pair,
                # At a positive δ the largest ratio bounds ε from above alone.
                epsilon_lower=exact.lower if plan.delta == 0 else None,
                evidence={"worst event": {str(k): v for k, v in found.ratio().event.items()}},
                power={"smallest excess": 0.0},
            )
        )
    return findings


def _grey_box(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks.grey_box import grey_box

    found = grey_box(
        plan.mechanism,
        plan.known_pairs,
        space=plan.space,
        delta=plan.delta,
        alpha=plan.levels["grey-box"],
        draws=plan.draws,
        seed=plan.seed,
        workers=plan.workers,
        time_limit=plan.time_limit,
    )
    return [found]


def _determinism(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks import determinism

    found = determinism.audit(
        plan.mechanism,
        plan.known_pairs,
        delta=plan.delta,
        alpha=plan.levels["determinism"],
        draws=plan.draws,
        seed=plan.seed,
        time_limit=plan.time_limit,
        processes=plan.workers != 1,
    )
    return list(found)


def _precision(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks import precision

    found = precision.audit(
        plan.mechanism,
        plan.pairs,
        delta=plan.delta,
        alpha=plan.levels["precision"],
        draws=plan.draws,
        only_whole=plan.only_whole,
        seed=plan.seed,
        time_limit=plan.time_limit,
        workers=plan.workers,
    )
    return [found]


def _white_box(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks import white_box

    subject: Any = plan.mechanism if plan.own_pairs else _AtPairs(plan.mechanism, plan.pairs)
    found = white_box.audit(
        subject,
        delta=plan.delta,
        alpha=plan.levels["white-box"],
        draws=plan.draws,
        seed=plan.seed,
        workers=plan.workers,
        time_limit=plan.time_limit,
    )
    return [found]


def _black_box(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks.black_box import black_box

    return _at_every_pair(plan, "black-box", black_box)


def _trade_off(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks.trade_off import trade_off

    return _at_every_pair(plan, "trade-off", trade_off)


def _at_every_pair(plan: Plan, kind: AuditKind, attack: Callable[..., Finding]) -> list[Finding]:
    """An attack on outputs at each pair, by an equal share of its kind's level."""
    return [
        attack(
            plan.mechanism,
            pair,
            delta=plan.delta,
            alpha=plan.levels[kind] / len(plan.pairs),
            draws=plan.draws,
            seed=plan.seed,
            workers=plan.workers,
            time_limit=plan.time_limit,
        )
        for pair in plan.pairs
    ]


def _sequential(plan: Plan) -> list[Finding]:
    from dpverify.auditing.attacks.sequential import sequential_audit

    lines = curve_lines(plan.mechanism.privacy(), plan.delta, points=_BETS)
    found = []
    for pair in plan.pairs:
        level = plan.levels["sequential"] / len(plan.pairs)
        try:
            finding = sequential_audit(
                plan.mechanism,
                pair,
                lines,
                alpha=level,
                most=plan.draws,
                seed=plan.seed,
                time_limit=plan.time_limit,
            )
        except DrawError as error:
            finding = undrawn("sequential", error, level=level, pair=pair)
        found.append(finding)
    return found


@dataclass(frozen=True, slots=True)
class _AtPairs:
    """A mechanism at pairs that someone else chose."""

    mechanism: Any
    pairs: Sequence[Pair]

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "mechanism"), name)

    def worst_pairs(self) -> Sequence[Pair]:
        return self.pairs


RUNNERS: dict[AuditKind, Callable[[Plan], list[Finding]]] = {
    "exhaustive": _exhaustive,
    "grey-box": _grey_box,
    "determinism": _determinism,
    "precision": _precision,
    "white-box": _white_box,
    "black-box": _black_box,
    "trade-off": _trade_off,
    "sequential": _sequential,
}
