"""The worst pair: a search over neighbours, and a shrink to a pair that a person can read.

**Search.** Candidates are the pairs that are given (the adjacency's extreme points, the mechanism's
own) and others drawn from the domain (`Space.drawn`). Where a data set has more places than there
are candidates, a change in each place is a candidate as well (`Space.swept`). The score of a pair
is the lower bound on ε that training draws promise (`black_box.choose`).

A glance comes first, of a handful of draws at each candidate. Half of those that it leaves are the
pairs at which outputs are farthest apart, in units of their spread: in turn by one feature and by
all together. The other half are the first in the list, whose differences may be too small for a
glance. More than 256 candidates are first reduced to 256, which get a second glance with four times
the draws. Successive halving then spends an equal part of the draws on each round: all that are
left get a few, the better half of them twice as many each, and so on (Karnin, Koren and Somekh
2013, "Almost optimal exploration in multi-armed bandits"). Better are in turn those of the largest
bound and those at which all features together are farthest apart: few draws show many small
differences so, of which a bound knows only when there are many.

Where all releases of all pairs raise, the search ends with the first glance.

A pair at which the releases of one side alone fail, or differ in shape, has the highest score;
whether it refutes the claim is for the draws that are counted. A pair at which both sides fail is
reported and left out, and the search goes on. One that the mechanism doesn't take (`admit`) is no
candidate.

**Shrink.** A simpler pair takes the place of the one that was found if on draws of its own it keeps
at least half of what that had beyond the claim; one that shows nothing beyond it stays as it is.
Simpler is what the space says (`Space.complexity`): of matrices, in this order, fewer places that
change, fewer that aren't at rest (the value nearest to zero), fewer values that aren't whole
numbers, smaller ones; of tables, fewer values that change, fewer rows, fewer values that aren't the
simplest. Each step makes it strictly simpler, so it ends, at a pair none of whose tried
simplifications keeps enough. Where the claim is exceeded, 250 draws or a quarter come first, if
there are more: few simpler pairs are in doubt after these.

**Brief** (`AuditConfig.brief`), for slow releases: glances end with the third pair at which outputs
never agree. The four pairs that are farthest apart come before the rounds, which are left out if
one of these shows clearly more than the claim. Else they have half of the draws, and end with such
a pair. It is shrunk with few draws for each of 20 simpler ones.

**Level.** Search and shrink come *before* the count, on streams of words of their own. So the pairs
that are audited are a function of draws that no test uses. Given those draws the pairs are fixed,
and the counted ones are independent of them; each audit errs with at most its level for fixed
pairs, whatever they are, hence also on average over what the search drew. Nothing is charged for
the number of candidates, and the counts in a report belong to the very pair that it shows. (A
shrink after the count would need draws for explanation alone, and its pair would have no counts.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.arrays import always_raises
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.samples import AlwaysRaisedError, sample_pair
from dpverify.auditing.spaces.base import Space
from dpverify.errors import DrawError, ParameterError, require
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["CANDIDATES", "LOST", "Searched", "search", "shrunk"]

CANDIDATES = 256
"""Pairs that are looked at, if there are as many."""
_COMPARED = 32  # pairs in the first round that compares bounds
_GLANCE = 5  # draws on a side, by which all candidates are compared before
_LEAST = 20  # draws on a side, below which a bound says nothing
_SILENT = 50  # draws on a side, where all that was drawn before raised the same
_SHRINKS = 40  # simpler pairs that are tried
_FEW_SHRINKS = 20  # where it is to be brief
_FIRST = 250  # draws on a side, or a quarter, that often tell enough of a simpler pair
_SURE = 50  # draws on a side that show that one side alone fails
_LEADERS = 4  # pairs that come before the rounds where it is to be brief
_LED = 125  # draws on a side of these
_ASUNDER = 3  # pairs at which outputs never agree, of which a brief search needs no more
_NEVER = 1e9  # the distance there
_CLEAR = 0.2  # nats above the claim, beyond which no other pair is needed
_WEAK = 0.25  # of what it has to show: with less on these draws, it isn't drawn from again
LOST = 9  # times the limit of one release that pairs may take to fail; the rest isn't tried then


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Where a search ended.

    Attributes
    ----------
    pair : the worst found, shrunk; None where no candidate can be drawn from
    bound : lower bound on ε that training draws promise there, in nats; infinite where the sides
        differ in what is raised or in shape
    candidates : all pairs of the first round
    failed : of those that can't be drawn from on either side, a sentence by the pair's name
    raised : what every release raised, if all raised the same; else empty
    """

    pair: Pair | None
    bound: float
    candidates: tuple[Pair, ...]
    failed: Mapping[str, str]
    raised: str = ""


def search(
    mechanism: Mechanism, known: Sequence[Pair], space: Space, config: AuditConfig
) -> Searched:
    """Find a pair at which much can be shown, and shrink it.

    Parameters
    ----------
    mechanism : drawn from through its `release`
    known : candidates of the caller's
    space : of the others that are drawn
    config : the search makes about as many draws on each side as it says, twice as many where there
        are more places than candidates; the shrink up to 8 times as many
    """
    candidates = _candidates(mechanism, known, space, config)
    bounds = _Bounds(mechanism=mechanism, config=config)
    left, leaders = _glanced(candidates, bounds)
    found, best, count = _led(leaders, bounds) or _raced(left, bounds)
    pair = None
    if found is not None:
        pair = _simplest(found, best, count, space, bounds)
        # Known by its own name, if it has one: audits look at both orders of a pair.
        turned = Pair(name=pair.name, record=pair.neighbour, neighbour=pair.record)
        keys = (space.pair_key(pair), space.pair_key(turned))
        pair = next((each for each in known if space.pair_key(each) in keys), pair)
    return Searched(
        pair=pair,
        bound=best,
        candidates=candidates,
        failed=bounds.failed,
        raised="" if pair else bounds.said,
    )


def _candidates(
    mechanism: Mechanism, known: Sequence[Pair], space: Space, config: AuditConfig
) -> tuple[Pair, ...]:
    """The known pairs, and others of the space, as far as the mechanism takes them."""
    rng = ReplayableWords(config.seed, "search candidates")
    others = space.drawn(max(CANDIDATES - len(known), 0), rng)
    # More places than that: a glance at each, as far as half the draws go.
    swept = space.swept()
    others += swept[: config.draws // (2 * _GLANCE)] if len(swept) > CANDIDATES else []
    given = {space.pair_key(pair) for pair in known}
    others = [pair for pair in others if space.pair_key(pair) not in given]
    candidates = tuple(pair for pair in (*known, *others) if _taken(mechanism, pair))
    rule = f"given, since {display_name(mechanism)} refused all pairs that the search made"
    require(bool(candidates), "pairs", "missing", rule)
    return candidates


class _Shown(NamedTuple):
    """What draws at a pair show, by one event or feature, and by all features together."""

    bound: float
    apart: float


_NOTHING = _Shown(-math.inf, -math.inf)


@dataclass(slots=True, kw_only=True)
class _Bounds:
    """What pairs show, and why some can't be drawn from.

    Attributes
    ----------
    mechanism, config : what is drawn from, and how
    failed : as in `Searched`
    lost : seconds that those pairs took
    raised : what every release of such a pair raised, and "" where it failed otherwise
    answered : whether some pair could be drawn from
    """

    mechanism: Mechanism
    config: AuditConfig
    failed: dict[str, str] = field(default_factory=dict)
    lost: float = 0.0
    raised: set[str] = field(default_factory=set)
    answered: bool = False

    @property
    def claimed(self) -> float:
        """The ε that is claimed, where it is bounded."""
        curve = self.mechanism.privacy()
        return curve.epsilon_at(self.config.delta_for(curve)).upper

    @property
    def said(self) -> str:
        """What all that fail raised, if it is the same."""
        return next(iter(self.raised)) if len(self.raised) == 1 else ""

    def __call__(self, pair: Pair, stage: str, count: int) -> float:
        """The bound that so many draws on a side show at the pair; −∞ where it fails."""
        return self._shown(pair, stage, count).bound

    def _shown(self, pair: Pair, stage: str, count: int) -> _Shown:
        start = perf_counter()
        if self.said and not self.answered:
            count = min(count, _SILENT)
        try:
            shown = _shown(self.mechanism, pair, self.config, stage, count)
        except DrawError as error:
            self.failed[pair.name] = str(error)
            self.raised |= error.raised if isinstance(error, AlwaysRaisedError) else {""}
            self.lost += perf_counter() - start
            return _NOTHING
        self.answered = True
        return shown

    def ranked(self, pairs: Sequence[Pair], stage: str, count: int) -> list[tuple[float, int]]:
        """What each pair shows, with its place, the most first; of equal ones the caller's first.

        That is in turn the most by one event or feature, and by all features. Once pairs that fail
        have taken too long, the rest isn't drawn from.
        """
        shown: list[_Shown] = []
        for pair in pairs:
            hopeless = self.lost > LOST * self.config.time_limit
            shown.append(_NOTHING if hopeless else self._shown(pair, stage, count))
            asunder = self.config.brief and stage == "glance" and shown[-1].bound >= _NEVER
            if asunder and sum(each.bound >= _NEVER for each in shown) == _ASUNDER:
                break
        orders = (
            sorted(range(len(shown)), key=lambda place: -shown[place][which]) for which in (0, 1)
        )
        in_turn = dict.fromkeys(chain.from_iterable(zip(*orders, strict=True)))
        return [(shown[place].bound, place) for place in in_turn]


def _glanced(candidates: Sequence[Pair], bounds: _Bounds) -> tuple[Sequence[Pair], Sequence[Pair]]:
    """Those that are compared by their bounds, after glances where there are more than that.

    Beside them those that are the farthest apart, the farthest first.
    """
    left, leaders, count = list(candidates), list[Pair](), _GLANCE
    while len(left) > _COMPARED:
        most = CANDIDATES if len(left) > CANDIDATES else _COMPARED
        ranked = bounds.ranked(left, "glance", count)
        first = sorted(place for shown, place in ranked if shown > -math.inf)[: _COMPARED // 2]
        chosen = list(dict.fromkeys([*first, *(place for _, place in ranked)]))[:most]
        if ranked[0][0] == -math.inf:
            return [], []
        leaders = [left[place] for shown, place in ranked[:_LEADERS] if shown > -math.inf]
        left, count = [left[place] for place in sorted(chosen)], 4 * count
    return left, leaders


def _led(leaders: Sequence[Pair], bounds: _Bounds) -> tuple[Pair, float, int] | None:
    """Where it is to be brief, a pair that needs no rounds, as `_raced` gives it."""
    if bounds.config.brief:
        for pair in leaders:
            shown = bounds(pair, "search", _LED)
            if shown > bounds.claimed + _CLEAR:
                return pair, shown, _LED
    return None


def _raced(left: Sequence[Pair], bounds: _Bounds) -> tuple[Pair | None, float, int]:
    """The best pair, what it showed last, and on how many draws; None where all fail."""
    best, count = -math.inf, _LEAST
    if not left:
        return None, best, count
    draws, rounds = bounds.config.draws, max(1, math.ceil(math.log2(len(left))))
    brief, clear = bounds.config.brief, bounds.claimed + _CLEAR
    draws = draws // 2 if brief else draws
    for number in range(rounds):
        count = max(_LEAST, draws // (rounds * len(left)))
        ranked = bounds.ranked(left, f"search {number}", count)
        best = ranked[0][0]
        if best == -math.inf:
            return None, best, count
        better = [left[place] for shown, place in ranked if shown > -math.inf]
        left = better[: max(1, len(left) // 2)]
        if brief and best > clear:
            break
    return left[0], best, count


def _simplest(found: Pair, best: float, count: int, space: Space, bounds: _Bounds) -> Pair:
    """The pair, shrunk while it keeps enough of what it shows on draws of its own."""
    claimed, brief = bounds.claimed, bounds.config.brief
    if best <= claimed:
        return found
    if brief:
        count = min(count, _FIRST) if math.isfinite(best) else _SURE
    most = _FEW_SHRINKS if brief else _SHRINKS
    # Drawn again: the best of many scores is more than the pair has.
    shows = best if math.isinf(best) else min(best, bounds(found, "shrink", count))
    if shows <= claimed:
        return found
    enough = (shows + claimed) / 2
    trial = iter(range(most))

    def keeps(pair: Pair) -> bool:
        if not _taken(bounds.mechanism, pair):
            return False
        number = next(trial)
        first = max(_FIRST, count // 4)
        if first < count:  # most simpler pairs show nothing, and soon
            glance = bounds(pair, f"shrink {number}, first", first)
            if not _WEAK * enough <= glance < enough:
                return glance >= enough
        return bounds(pair, f"shrink {number}", count) >= enough

    return shrunk(found, space, keeps, most=most)


def _taken(mechanism: Any, pair: Pair) -> bool:
    """Whether the mechanism can be called with both sides, as far as it says."""
    if hasattr(mechanism, "admit"):
        try:
            mechanism.admit(pair.record)
            mechanism.admit(pair.neighbour)
        except ParameterError:
            return False
    return True


def shrunk(pair: Pair, space: Space, keeps: Callable[[Pair], bool], *, most: int = 1000) -> Pair:
    """The simplest pair to be reached from this one by steps that keep what it shows.

    Parameters
    ----------
    pair : a data set of the space on each side
    space : the simpler ones are neighbours inside it too
    keeps : whether a simpler pair still shows it; called once for each that is tried
    most : pairs that are tried
    """
    best, size = pair, space.complexity(pair)
    tried: set[Hashable] = set()
    found = True
    while found and len(tried) < most:
        found = False
        for simpler in space.simpler(best):
            key = space.pair_key(simpler)
            if key in tried or not space.complexity(simpler) < size or not space.fits(simpler):
                continue
            if len(tried) == most:
                break
            tried.add(key)
            if keeps(simpler):
                best, size, found = simpler, space.complexity(simpler), True
                break
    return best


def _shown(
    mechanism: Mechanism,
    pair: Pair,
    config: AuditConfig,
    stage: str,
    count: int,
) -> _Shown:
    """Lower bound on ε at the pair, or of a glance a distance; infinite where one side alone fails.

    Raises
    ------
    DrawError
        If both sides fail.
    """
    sample = partial(sample_pair, mechanism, config=config, stream=stage, draws=count)
    try:
        own, other = sample(pair)
    except AlwaysRaisedError:
        raise
    except DrawError:
        for side in (pair.record, pair.neighbour):
            with suppress(DrawError):
                sample(Pair(name=pair.name, record=side, neighbour=side))
                return _Shown(math.inf, math.inf)
        raise
    if always_raises(own) != always_raises(other):
        return _Shown(math.inf, math.inf)
    farthest, apart = _distances(own, other)
    if stage == "glance":
        return _Shown(farthest, apart)
    delta = float(config.delta_for(mechanism.privacy()))
    return _Shown(choose(own, other, delta=delta, classifiers=False).bound, apart)


def _distances(own: NDArray[Any], other: NDArray[Any]) -> tuple[float, float]:
    """How far apart the outputs are in units of their spread: in some feature, and in all.

    The second is a sum of squares, less what is to be expected of outputs of one law.
    """
    columns = features(np.concatenate([own, other]), unpack=True)
    sides = [columns.matrix(side) for side in (own, other)]
    with np.errstate(all="ignore"):  # an infinite output, or one that never changes
        apart = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0))
        spread = np.sqrt(sides[0].var(axis=0) + sides[1].var(axis=0))
        distances = np.minimum(np.nan_to_num(apart / spread, nan=0.0), _NEVER)
    by_luck = np.count_nonzero(spread > 0) / max(len(own) - 2, 1)
    return float(distances.max(initial=0.0)), float((distances**2).sum() - by_luck)
