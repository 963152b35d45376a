"""The worst pair: a search over neighbours, and a shrink to a pair that a person can read.

**Search.** Candidates are the pairs that are given (the adjacency's extreme points, the mechanism's
own) and others drawn from the domain (`neighbours.drawn_pairs`). The score of a pair is the lower
bound on ε that training draws promise (`blackbox.choose`). Successive halving spends an equal part
of the draws on each round: all candidates get a few, the better half of them twice as many each,
and so on (Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed bandits"). A
pair at which the releases of one side alone fail, or differ in shape, scores above all, for that is
where to look; whether it refutes the claim is for the draws that are counted. A pair at which both
fail is counted and left out, and the search goes on; one that the mechanism doesn't take (`admit`)
is no candidate.

**Shrink.** A simpler pair takes the place of the one that was found if on draws of its own it keeps
at least half of what that had beyond the claim (all of its score, if that was below the claim).
Simpler means, in this order: fewer places that change, fewer that aren't at rest (the value nearest
to zero), fewer values that aren't whole numbers, smaller ones. Each step makes it strictly simpler,
so it ends, at a pair none of whose tried simplifications keeps enough.

**Level.** Search and shrink come *before* the count, on streams of words of their own. So the pairs
that are audited are a function of draws that no test uses. Given those draws the pairs are fixed,
and the counted ones are independent of them; each audit errs with at most its level for fixed
pairs, whatever they are, hence also on average over what the search drew. Nothing is charged for
the number of candidates, and the counts in a report belong to the very pair that it shows. (A
shrink after the count would need draws for explanation alone, and its pair would have no counts.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.neighbours import Space, drawn_pairs, fits, start_of
from dpverify.auditing.outputs.samples import always_raises, display_name, sample_pair
from dpverify.data.adjacency import Adjacency, Edge
from dpverify.data.domain import Domain, is_sparse
from dpverify.errors import DrawError, ParameterError, require
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["CANDIDATES", "LOST", "Searched", "search", "shrunk"]

CANDIDATES = 32
"""Pairs in the first round, if there are as many."""
_LEAST = 20  # draws on a side, below which a bound says nothing
_SHRINKS = 24  # simpler pairs that are tried
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
    """

    pair: Pair | None
    bound: float
    candidates: tuple[Pair, ...]
    failed: Mapping[str, str]


def search(
    mechanism: Mechanism, known: Sequence[Pair], space: Space, config: AuditConfig
) -> Searched:
    """Find a pair at which much can be shown, and shrink it.

    Parameters
    ----------
    mechanism : drawn from through its `release`
    known : candidates of the caller's
    space : of the others that are drawn
    config : the search makes about as many draws on each side as it says, the shrink up to 3 times
        as many
    """
    adjacency, (domain, attributes, rows) = mechanism.adjacency, space
    rng = ReplayableWords(config.seed, "search candidates")
    room = max(CANDIDATES - len(known), 0)
    others = drawn_pairs(adjacency, domain, attributes, count=room, rng=rng, rows=rows)
    others = [pair for pair in others if not any(_same(pair, each) for each in known)]
    candidates = tuple(pair for pair in (*known, *others) if _taken(mechanism, pair))
    require(
        bool(candidates),
        "pairs",
        "missing",
        f"given, as {display_name(mechanism)} takes none of ours",
    )
    failed: dict[str, str] = {}
    lost = 0.0

    def bound(pair: Pair, stage: str, count: int) -> float:
        nonlocal lost
        start = perf_counter()
        try:
            return _bound(mechanism, pair, config, stage, count)
        except DrawError as error:
            failed[pair.name] = str(error)
            lost += perf_counter() - start
            return -math.inf

    rounds = max(1, math.ceil(math.log2(len(candidates))))
    left, scores, count = list(candidates), [0.0], _LEAST
    for number in range(rounds):
        count = max(_LEAST, config.draws // (rounds * len(left)))
        scores = []
        for pair in left:
            hopeless = lost > LOST * config.time_limit
            scores.append(-math.inf if hopeless else bound(pair, f"search {number}", count))
        # Stable: of equal pairs the first, the caller's.
        order = sorted(range(len(left)), key=lambda place: -scores[place])
        best = scores[order[0]]
        if best == -math.inf:
            return Searched(pair=None, bound=best, candidates=candidates, failed=failed)
        better = [left[place] for place in order if scores[place] > -math.inf]
        left = better[: max(1, len(left) // 2)]
    curve = mechanism.privacy()
    claimed = curve.epsilon_at(config.delta_for(curve)).upper
    enough = best if best <= claimed or math.isinf(best) else (best + claimed) / 2
    trial = iter(range(_SHRINKS))

    def keeps(pair: Pair) -> bool:
        number = next(trial, None) if _taken(mechanism, pair) else None
        return number is not None and bound(pair, f"shrink {number}", count) >= enough

    pair = shrunk(left[0], adjacency, domain, keeps)
    # Known by its own name, if it has one: audits look at both orders of a pair.
    turned = Pair(name=pair.name, record=pair.neighbour, neighbour=pair.record)
    pair = next((each for each in known if _same(each, pair) or _same(each, turned)), pair)
    return Searched(pair=pair, bound=best, candidates=candidates, failed=failed)


def _taken(mechanism: Any, pair: Pair) -> bool:
    """Whether the mechanism can be called with both sides, as far as it says."""
    if hasattr(mechanism, "admit"):
        try:
            mechanism.admit(pair.record)
            mechanism.admit(pair.neighbour)
        except ParameterError:
            return False
    return True


def shrunk(
    pair: Pair, adjacency: Adjacency, domain: Domain | None, keeps: Callable[[Pair], bool]
) -> Pair:
    """The simplest pair to be reached from this one by steps that keep what it shows.

    Parameters
    ----------
    pair : of numbers, one data set of shape (n, p) on each side
    adjacency, domain : the simpler ones are neighbours inside it too
    keeps : whether a simpler pair still shows it; called once for each that is tried
    """
    best = _dense(pair)
    start = start_of(adjacency, domain)
    tried: set[bytes] = set()
    found = True
    while found:
        found = False
        for simpler in _simpler(best, adjacency, start):
            key = simpler.record.tobytes() + simpler.neighbour.tobytes()
            smaller = _complexity(simpler, start) < _complexity(best, start)
            if key in tried or not smaller or not fits(simpler, adjacency, domain):
                continue
            tried.add(key)
            if keeps(simpler):
                best, found = simpler, True
                break
    return pair if _same(best, pair) else best


def _bound(
    mechanism: Mechanism,
    pair: Pair,
    config: AuditConfig,
    stage: str,
    count: int,
) -> float:
    """Lower bound on ε at the pair; infinite where one side alone fails.

    Raises
    ------
    DrawError
        If both sides fail.
    """
    sample = partial(sample_pair, mechanism, config=config, stream=stage, draws=count)
    try:
        own, other = sample(pair)
    except DrawError:
        for side in (pair.record, pair.neighbour):
            with suppress(DrawError):
                sample(Pair(name=pair.name, record=side, neighbour=side))
                return math.inf
        raise
    if always_raises(own) != always_raises(other):
        return math.inf
    return choose(
        own, other, delta=float(config.delta_for(mechanism.privacy())), classifiers=False
    ).bound


def _simpler(pair: Pair, adjacency: Adjacency, start: float) -> Iterator[Pair]:
    """Pairs that may be simpler, the boldest first."""
    record, other = pair.record, pair.neighbour
    places = _places(record, adjacency)
    changed = [place for place in places if record[place][0] != other[place][0]]
    still = [
        place
        for place in places
        if record[place][0] == other[place][0] and record[place][0] != start
    ]

    def at(values: Sequence[tuple[Any, float, float]]) -> Pair:
        first, second = record.copy(), other.copy()
        for place, a, b in values:
            first[place], second[place] = a, b
        return Pair(name="found by search", record=first, neighbour=second)

    size = len(still)
    while size:  # all at once, then halves, quarters, …
        for begin in range(0, len(still), size):
            yield at([(place, start, start) for place in still[begin : begin + size]])
        size //= 2
    for place in changed if len(changed) > 1 else []:
        yield at([(place, record[place][0], record[place][0])])
        yield at([(place, start, start)])
    for place in changed:
        a, b = float(record[place][0]), float(other[place][0])
        moves = (b - a, 1.0 if b > a else -1.0)
        for first, second in ((start, start + moves[1]), (start - moves[1], start)):
            yield at([(place, first, second)])
        for first, second in ((start, start + moves[0]), (start - moves[0], start)):
            yield at([(place, first, second)])
        nearest = min(a, b, key=lambda value: abs(value - start))
        for towards in ((start - nearest) / 2, math.copysign(1.0, start - nearest)):
            yield at([(place, a + _rounded(towards), b + _rounded(towards))])
        yield from (at([(place, f(a), f(b))]) for f in (_rounded, math.floor, math.ceil))
        yield at([(place, a, _rounded(b))])
    for place in still:
        a = float(record[place][0])
        for value in (
            start + 1,
            _rounded(a),
            start + (a - start) / 2,
            a - 1 if a > start else a + 1,
        ):
            yield at([(place, value, value)])


def _places(record: NDArray[Any], adjacency: Adjacency) -> list[Any]:
    """What may be changed apart: single values, or both cells of an edge."""
    if isinstance(adjacency, Edge):
        edges = zip(*np.triu_indices(len(record), 1), strict=True)
        return [(np.array([a, b]), np.array([b, a])) for a, b in edges]
    return [(np.array([row]), np.array([column])) for row, column in np.ndindex(record.shape)]


def _complexity(pair: Pair, start: float) -> tuple[float, ...]:
    both = np.stack([pair.record, pair.neighbour])
    with np.errstate(invalid="ignore"):  # ∞ − ∞ is as complicated as can be
        size = float(np.abs(both - start).sum())
    return (
        int(np.count_nonzero(pair.record != pair.neighbour)),
        int(np.count_nonzero(both != start)),
        int(np.count_nonzero(both != np.floor(both))),
        size if math.isfinite(size) else math.inf,
    )


def _rounded(value: float) -> float:
    return float(round(value))


def _dense(pair: Pair) -> Pair:
    sides = (pair.record, pair.neighbour)
    record, other = (np.array(x.toarray() if is_sparse(x) else x) for x in sides)
    return Pair(name=pair.name, record=np.atleast_2d(record), neighbour=np.atleast_2d(other))


def _same(first: Pair, second: Pair) -> bool:
    a, b = _dense(first), _dense(second)
    return np.array_equal(a.record, b.record) and np.array_equal(a.neighbour, b.neighbour)
