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

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpverify.auditing.attacks import _coincidences
from dpverify.auditing.attacks._behaviour import LABELS, Trial
from dpverify.auditing.attacks.precision import smallest_share, unreached
from dpverify.auditing.finding import Finding, Verdict
from dpverify.auditing.outputs.draws import named
from dpverify.auditing.statistics.claim_test import Counts, judge
from dpverify.errors import DrawError, require
from dpverify.privacy import Mechanism, Pair

__all__ = ["audit"]


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    *,
    delta: Fraction = Fraction(0),
    alpha: float = 0.01,
    draws: int = 1000,
    seed: int = 0,
    processes: bool = True,
    time_limit: float = 10.0,
) -> tuple[Finding, ...]:
    """Look for noise that is not fresh and for behaviour that depends on the data.

    Parameters
    ----------
    mechanism : audited through its `release`
    pairs : neighbours; coincidences are sought at the first pair's record
    delta : that of the claim, at which ε is bounded below
    alpha : level of all findings together
    draws : on each side of each pair
    seed : of the replayable randomness
    processes : whether to start processes too, which takes seconds
    time_limit : seconds that one release may take; a process, six times as many to answer

    Returns
    -------
    One finding for each of rows (not of a data set), consecutive releases, fresh processes and
    forked workers, and one for each pair's dependence on the data.

    Raises
    ------
    ParameterError
        If there are no pairs, or fewer than 20 draws.
    """
    require(bool(pairs), "pairs", pairs, "at least one pair of neighbours")
    require(draws >= 20, "draws", draws, "at least 20")
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    starts = _coincidences.STARTS if processes else {}
    trial = Trial(
        mechanism=mechanism,
        draws=draws,
        seed=seed,
        level=alpha / (2 + len(starts) + len(pairs)) * (1 - 1e-12),
        replay=(
            f"audit(mechanism, pairs, delta=Fraction('{delta}'), alpha={alpha}, draws={draws}, "
            f"seed={seed}, processes={processes})"
        ),
        time_limit=time_limit,
    )
    first = pairs[0]
    # Two equal rows of a data set have no outputs of their own.
    by_row = getattr(mechanism, "of", "record") == "record"
    return (
        *([_coincidences.rows(trial, first)] if by_row else []),
        _coincidences.consecutive(trial, first),
        *(_coincidences.between(trial, first, name) for name in starts),
        *(_dependence(trial, pair, delta) for pair in pairs),
    )


def _dependence(trial: Trial, pair: Pair, delta: Fraction) -> Finding:
    """Labels that one neighbour shows and the other doesn't, for each label in both orders."""
    try:
        own, other = trial.sides(pair)
    except DrawError as error:
        return trial.unable(pair, "dependence", f"{error}", failed=True)
    curve, share = trial.mechanism.privacy(), trial.level / (2 * (len(LABELS) - 1))
    half = trial.draws // 2
    at = f"{named(trial.mechanism)}, at the pair “{pair.name}”: "
    statement = f"{at}nothing that it did depends on the data"
    best, evidence, verdict, remark = 0.0, {}, False, ""
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
            counts = Counts(hits=hits, false_hits=false_hits, draws=trial.draws - half)
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
                evidence = {
                    "label": name,
                    "swapped": swapped,
                    "seen": texts[int(event.cells[0])][:80].decode(errors="replace"),
                    "hits": hits,
                    "false_hits": false_hits,
                    "draws": counts.draws,
                }
                statement = at + told
    failure = own.failure or other.failure
    if failure and not verdict:
        return trial.unable(pair, "dependence", failure)
    findable = smallest_share(curve, delta, trial.draws - half, share)
    silent: Verdict = "no_violation_found" if findable is not None else "inconclusive"
    return Finding(
        audit="determinism",
        verdict="violation" if verdict else silent,
        statement=statement + remark,
        level=trial.level,
        pair=pair,
        epsilon_lower=best,
        evidence={"check": "dependence", **evidence},
        power={"smallest_share": findable},
        replay=trial.replay,
    )
