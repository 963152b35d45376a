"""Determinism: noise that is not fresh, and behaviour that depends on the data.

**Coincidences.** Outputs that are equal more often between releases that share something than
between releases that don't: see `coincidences`.

**Dependence on the data.** What a release does is a label: the exception that it raised, or shape,
dtype and, as a second label, all the bytes of the output, and as a third the number of random words
it asked for. On half the draws the labels are found that one neighbour shows and the other never
does; on the other half they are counted and the claim is tested, as for `precision`. A seed fixed
inside `release` shows by its bytes: always the same, and others for the neighbour. The number of
words doesn't leave with the output, and a claim says nothing of it (a right sampler may ask for
more where the data say so): that it tells neighbours apart is a remark and no violation.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpverify.auditing.attacks import _coincidences
from dpverify.auditing.attacks._behaviour import LABELS, Trial
from dpverify.auditing.attacks.base import Attack, Target
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

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """Findings on rows (not of a data set), consecutive releases, processes, and each pair.

        Fresh processes and forked workers have one each; so has every pair, for its dependence on
        the data.
        """
        require(config.draws >= 20, "draws", config.draws, "at least 20")
        mechanism, pairs = target.mechanism, target.pairs
        starts = _coincidences.STARTS if config.workers != 1 else {}
        level = config.alpha / (2 + len(starts) + len(pairs)) * (1 - 1e-12)
        trial = Trial(mechanism=mechanism, config=config.at_level(level))
        first = pairs[0]
        # Two equal rows of a data set have no outputs of their own.
        by_row = getattr(mechanism, "of", "record") == "record"
        with ExitStack() as stack:
            begun = [
                stack.enter_context(_coincidences.between(trial, first, name)) for name in starts
            ]
            here = [
                *([_coincidences.rows(trial, first)] if by_row else []),
                _coincidences.consecutive(trial, first),
            ]
            dependence = [_dependence(trial, pair) for pair in pairs]
            return [*here, *(finding() for finding in begun), *dependence]


def _dependence(trial: Trial, pair: Pair) -> Finding:
    """Labels that one neighbour shows and the other doesn't, for each label in both orders."""
    try:
        own, other = trial.sides(pair)
    except DrawError as error:
        return trial.unable(pair, "dependence", f"{error}", failed=True)
    curve, config = trial.mechanism.privacy(), trial.config
    delta, share = config.delta_for(curve), config.alpha / (2 * (len(LABELS) - 1))
    half = config.draws // 2
    at = f"{display_name(trial.mechanism)}, at the pair “{pair.name}”: "
    statement = f"{at}nothing that it did depends on the data"
    evidence: Evidence = CheckEvidence(check="dependence")
    best, verdict, remark = 0.0, False, ""
    for name, meaning in LABELS.items():
        numbers: dict[bytes, int] = {}
        sides = [
            np.array([numbers.setdefault(label, len(numbers)) for label in runs.labels[name]])
            for runs in (own, other)
        ]
        texts = list(numbers)
        for swapped in (False, True):
            shown, absent = (side[:, None] for side in (sides[::-1] if swapped else sides))
            event = unreached(
                (shown[:half], np.zeros_like(shown[:half])),
                (absent[:half], np.zeros_like(absent[:half])),
            )
            hits, false_hits = (
                int(event.holds(side[half:], np.zeros_like(side[half:])).sum())
                for side in (shown, absent)
            )
            if hits <= false_hits:
                continue
            counts = Counts(hits=hits, false_hits=false_hits, draws=config.draws - half)
            judged = judge(counts, curve, delta, share)
            found = judged.refuted_at is not None
            side = "neighbour" if swapped else "record"
            told = (
                f"{meaning} tells the {side}, {hits} times of {counts.draws} and "
                f"{false_hits} times on the other side"
            )
            if name == "words":
                remark = f". Beside the output, {told}" if found else remark
            elif (found, judged.epsilon_lower) > (verdict, best):
                verdict, best = found, judged.epsilon_lower
                evidence = DependenceEvidence(
                    check="dependence",
                    event=name,
                    swapped=swapped,
                    seen=texts[int(event.cells[0])][:80].decode(errors="replace"),
                    hits=hits,
                    draws=counts.draws,
                    false_hits=false_hits,
                    false_draws=counts.draws,
                    refuted_at=judged.refuted_at,
                )
                statement = at + told
    failure = own.failure or other.failure
    if failure and not verdict:
        return trial.unable(pair, "dependence", failure)
    findable = smallest_share(curve, delta, config.draws - half, share)
    silent: Verdict = "no_violation_found" if findable is not None else "inconclusive"
    return Finding(
        audit="determinism",
        verdict="violation" if verdict else silent,
        statement=statement + remark,
        level=config.alpha,
        pair=pair,
        epsilon_lower=best,
        evidence=evidence,
        power={"smallest_share": findable},
    )
