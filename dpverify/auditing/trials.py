"""A few releases before anything is counted: how long they take, and what they show.

An exception is an output like any other, so a pair fails only where every release raises, on both
sides and in 200 more draws, or where one is late or ends its process. A few releases are watched:
what they print, write or ask for is noted, and so is what depends on the data there
(`side_effects`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any

from attrs import evolve

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.arrays import valued, whole
from dpverify.auditing.outputs.foreign import LateError, display_name
from dpverify.auditing.outputs.leaves import MOST
from dpverify.auditing.outputs.memory import Copies, constant, remembers, shares_noise
from dpverify.auditing.outputs.samples import AlwaysRaisedError, sample_pair
from dpverify.auditing.side_effects import made_alike, side_effects
from dpverify.auditing.spaces.base import Space
from dpverify.errors import DrawError, ParameterError
from dpverify.privacy import Mechanism, Pair

__all__ = ["first_releases", "pace"]

_TRIALS = 3  # releases on each side of each pair before anything is counted
_RAISED = 200  # where all of those raised
_FAST = 0.001  # seconds of a release, below which several are timed


def pace(
    mechanism: Mechanism, known: Sequence[Pair], space: Space | None, config: AuditConfig
) -> float:
    """Seconds a release; 0 where the first pair can't be drawn from, which trials tell."""
    here = evolve(config, workers=1)
    seconds = math.inf
    with suppress(ParameterError, DrawError):
        pair = known[0] if known or space is None else space.extremes(1)[0]
        for draws in (1, 1, 1, 16, 16, 16):  # a first one takes longer
            if draws > 1 and seconds > _FAST:
                break
            start = perf_counter()
            sample_pair(mechanism, pair, here, "pace", draws=draws)
            seconds = min(seconds, (perf_counter() - start) / (2 * draws))
        return seconds
    return 0.0


def _told(error: DrawError) -> frozenset[str]:
    """What a pair's releases raised; of several things, more draws may tell more."""
    match error:
        case AlwaysRaisedError():
            return error.raised
        case LateError():  # each more takes as long again
            return frozenset({"late"})
    return frozenset({"", "otherwise"})


def first_releases(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    copied: Copies | None,
    config: AuditConfig,
) -> dict[str, Any]:
    """What a few releases at every pair show before anything is counted, in what JSON can hold.

    Returns
    -------
    unfit : by the names of pairs that can't be drawn from, why
    remembers : why draws aren't independent, if they aren't
    silent : whether every release raised the same, or the first of every pair was late
    whole : whether all outputs are whole numbers
    notes, leaks : what is done beside the outputs; leaks are what depends on the data there
    declared : what the code says of itself
    """
    unfit, still, all_whole, large = {}, [], True, False
    raised: set[str] = set()
    here = evolve(config, workers=1)
    for pair in pairs:
        sample = partial(sample_pair, mechanism, pair, here, "trial")
        try:
            try:
                sides = sample(draws=_TRIALS)
            except AlwaysRaisedError:
                sides = sample(draws=_RAISED)
        except DrawError as error:
            unfit[pair.name] = str(error)
            raised |= _told(error)
            continue
        all_whole = all_whole and all(whole(side) for side in sides)
        large = large or any(output.cut for side in sides for output in side if valued(side))
        if any(constant(side).any() for side in sides):
            still.append(pair)
    reasons = [remembers(mechanism, pair, copied, config) for pair in still]
    notes: tuple[str, ...] = ()
    leaks: list[str] = []
    declared: tuple[str, ...] = ()
    fit = next((pair for pair in pairs if pair.name not in unfit), None)
    if fit is not None:
        reasons.append(shares_noise(mechanism, fit, copied, config))
        with suppress(DrawError):  # what is late is so in an audit too, which then says so
            effects = side_effects(mechanism, fit, config)
            notes, leaks = effects.notes, [effects.leak] if effects.leak else []
            declared = effects.declared
    with suppress(DrawError):  # that is what an audit says, too
        if pairs and all(made_alike(mechanism, pair, config) for pair in pairs):
            said = "is given the same for both data sets of every pair, as `make` makes it"
            notes = (*notes, f"{display_name(mechanism)} {said}: no difference can show.")
    if large:
        said = f"releases more than {MOST:,} parts; those beyond are audited by their number"
        name = display_name(mechanism)
        notes = (*notes, f"{name} {said}, sum, extremes and checksum alone.")
    return {
        "unfit": unfit,
        "silent": len(unfit) == len(pairs) and len(raised) == 1,
        "remembers": [reason for reason in reasons if reason][:1],
        "whole": all_whole,
        "notes": notes,
        "leaks": leaks,
        "declared": declared,
    }
