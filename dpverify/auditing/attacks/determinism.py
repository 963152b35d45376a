"""Determinism: noise that is not fresh, and behaviour that depends on the data.

**Coincidences.** Outputs that are equal more often between releases that share something than
between releases that don't: see `_coincidences`.

**Dependence on the data.** What a release does is a label: the exception that it raised, or shape,
dtype and, as a second label, all the bytes of the output, and as a third the number of random words
it asked for. On half the draws the labels are found that one neighbour shows and the other never
does; on the other half they are counted and the claim is tested, as for `precision`. A seed fixed
inside `release` shows by its bytes: always the same, and others for the neighbour. The number of
words doesn't leave with the output, and a claim says nothing of it (a right sampler may ask for
more where the data say so): that it tells neighbours apart is a remark and no violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from dpverify.auditing.attacks import _coincidences
from dpverify.auditing.attacks._behaviour import LABELS, Runs, Trial
from dpverify.auditing.attacks.base import Attack, Target, counted
from dpverify.auditing.attacks.precision import smallest_share, unreached
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import CheckEvidence, DependenceEvidence, Evidence, Finding, Verdict
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.errors import DrawError, require
from dpverify.privacy import Pair

__all__ = ["DeterminismAttack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminismAttack(Attack):
    """Looks for noise that is not fresh, and for behaviour that depends on the data.

    Coincidences are sought at the first pair's record. Processes are started too, which takes
    seconds, unless there is to be one worker; a process has six times the time limit to answer.
    """

    name: ClassVar[AuditKind] = "determinism"
    counts_failures: ClassVar[bool] = True
    everywhere: ClassVar[bool] = False
    shares: ClassVar[bool] = True

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """Findings on rows (not of a data set), consecutive releases, processes, and each pair.

        Fresh processes and forked workers have one each; so has every pair, for its dependence on
        the data.
        """
        trial, first = _trial(target, config), target.pairs[0]
        # Two equal rows of a data set have no outputs of their own.
        by_row = getattr(target.mechanism, "of", "record") == "record"
        with self.begun(target, config) as compared:
            here = [
                *([_coincidences.rows(trial, first)] if by_row else []),
                _coincidences.consecutive(trial, first),
            ]
            dependence = list(target.attacked(target.pairs, partial(_dependence, trial, target)))
            return [*here, *(finding() for finding in compared), *dependence]

    @contextmanager
    def begun(
        self, target: Target, config: AuditConfig
    ) -> Iterator[Sequence[Callable[[], Finding]]]:
        """Processes, each with what gives the finding; those that are at work where some are."""
        key = (self.name, id(target.pairs[0]))
        if key in target.made:
            yield target.made[key]
            return
        trial = _trial(target, config)
        with ExitStack() as stack:
            target.made[key] = [
                stack.enter_context(_coincidences.between(trial, target.pairs[0], name))
                for name in _starts(config)
            ]
            stack.callback(target.made.pop, key)
            yield target.made[key]


def _starts(config: AuditConfig) -> Sequence[str]:
    return tuple(_coincidences.STARTS) if config.workers != 1 else ()


def _trial(target: Target, config: AuditConfig) -> Trial:
    """With the level of each finding, which is the same where no processes are started."""
    require(config.draws >= 20, "draws", config.draws, "at least 20")
    findings = 2 + len(_coincidences.STARTS) + len(target.pairs)
    level = config.alpha / findings * (1 - 1e-12)
    return Trial(mechanism=target.mechanism, config=config.at_level(level))


def _dependence(trial: Trial, target: Target, pair: Pair) -> Finding:
    """Labels that one neighbour shows and the other doesn't, for each label in both orders."""
    try:
        own, other = _runs(trial, target, pair)
    except DrawError as error:
        return trial.unable(pair, "dependence", f"{error}", failed=True)
    curve, config = trial.mechanism.privacy(), trial.config
    delta, level = config.delta_for(curve), config.alpha / (2 * (len(LABELS) - 1))
    half = config.draws // 2
    at = f"{display_name(trial.mechanism)}, at the pair “{pair.name}”: "
    statement = f"{at}nothing that it did depends on the data"
    evidence: Evidence = CheckEvidence(check="dependence")
    best, refuted, remark = 0.0, False, ""
    for (name, meaning), swapped in product(LABELS.items(), (False, True)):
        shown, absent = (other, own) if swapped else (own, other)
        seen, counts = _counted(shown.labels[name], absent.labels[name], half)
        if counts.hits <= counts.false_hits:
            continue
        judged = judge(counts, curve, delta, level)
        found = judged.refuted_at is not None
        side = "neighbour" if swapped else "record"
        told = (
            f"{meaning} tells the {side}, {counts.hits} times of {counts.draws} and "
            f"{counts.false_hits} times on the other side"
        )
        if name == "words":
            remark = f". Beside the output, {told}" if found else remark
        elif (found, judged.epsilon_lower) > (refuted, best):
            refuted, best = found, judged.epsilon_lower
            statement = at + told
            evidence = DependenceEvidence(
                check="dependence",
                event=name,
                swapped=swapped,
                seen=seen[:80].decode(errors="replace"),
                hits=counts.hits,
                draws=counts.draws,
                false_hits=counts.false_hits,
                false_draws=counts.draws,
                refuted_at=judged.refuted_at,
            )
    failure = own.failure or other.failure
    if failure and not refuted:
        return trial.unable(pair, "dependence", failure)
    findable = smallest_share(curve, delta, config.draws - half, level)
    silent: Verdict = "no_violation_found" if findable is not None else "inconclusive"
    return Finding(
        audit="determinism",
        verdict="violation" if refuted else silent,
        statement=statement + remark,
        level=config.alpha,
        pair=pair,
        epsilon_lower=best,
        evidence=evidence,
        power={"smallest_share": findable},
    )


def _runs(trial: Trial, target: Target, pair: Pair) -> Sequence[Runs]:
    """Of both sides: of the draws that all attacks count, or of others where these can't be had."""
    if pair.name not in target.undrawable:
        with suppress(DrawError):
            draws = counted(target, pair, trial.config)
            return [Runs.of(*side) for side in zip(draws.outputs, draws.words, strict=True)]
    return trial.sides(pair)


def _counted(shown: list[bytes], absent: list[bytes], half: int) -> tuple[bytes, Counts]:
    """A label that the first half shows on one side alone, and the counts of all such on the rest.

    Its counts are of the side that shows them and of the other; without any the label is empty.
    """
    labels = list(dict.fromkeys([*shown, *absent]))
    numbers = {label: number for number, label in enumerate(labels)}
    sides = [np.array([numbers[label] for label in side])[:, None] for side in (shown, absent)]
    event = unreached(*((side[:half], np.zeros_like(side[:half])) for side in sides))
    hits, false_hits = (
        int(event.holds(side[half:], np.zeros_like(side[half:])).sum()) for side in sides
    )
    counts = Counts(hits=hits, false_hits=false_hits, draws=len(shown) - half)
    return labels[int(event.cells[0])] if event.cells.size else b"", counts
