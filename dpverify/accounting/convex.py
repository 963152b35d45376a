"""The least value of a convex function, from both sides.

A convex function h lies above every line through two points of it, but between these. So between
two neighbours of some places it lies above one line from the left, and above one from the right:
the steepest ones through the nearer neighbour and any place beyond. Where the line from the left
falls and that from the right rises, the larger of both is, for any t, at least the smaller one of
their heights at t, as left of t it is no less than the one, right of t no less than the other. The
best t is where they cross, and that is also where h is looked at next: at a kink that is the kink,
and where h is smooth the lines on both sides come closer with every look.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from flint import arb, ctx

from dpverify.enclosure import Enclosure

__all__ = ["Ends", "enclose_least", "least_by_lines"]

_PRECISION = 1280  # lines that reach e^700 tell from 0 what is 1e-300
_CLOSE = 1e-12  # relative width from which on no look is worth its time
_UNRESOLVED = 3.0  # widths of h where it is least, below which another look tells nothing
_MOST_LOOKS = 128
_FAR = 8  # looks, of which one is far from all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What is known of h at the ends of its domain.

    Attributes
    ----------
    first : h(0)
    fall, rise : the least and the largest slope that it may have
    is_open : whether it has no last place, and lies above rise·y; else it ends at 1
    """

    first: Enclosure
    fall: arb
    rise: arb
    is_open: bool = False


def enclose_least(
    at: Callable[[float], Enclosure], starts: Iterable[float], ends: Ends
) -> Enclosure:
    """Enclose the least h(y) of y ≥ 0, to a relative 1e-12 where h itself is narrow.

    Parameters
    ----------
    at : encloses h(e^x), for any x, or x ≤ 0 where h ends at 1
    starts : x to begin with, 0 among them where h ends at 1
    """
    known = {x: at(x) for x in starts}
    for look in range(_MOST_LOOKS):
        lowest = min(known.values(), key=lambda bound: bound.upper)
        with ctx.workprec(_PRECISION):
            least, place = min(_crossings(known, ends), key=lambda found: float(found[0].mid()))
            x = float(place.log().mid()) if place > 0 else -math.inf
        aim = max(_CLOSE / 2 * lowest.upper, _UNRESOLVED * (lowest.upper - lowest.lower))
        if lowest.upper - float(least.mid()) <= aim:
            break
        if look % _FAR == _FAR - 1:
            x = _halfway(known, x, ends)
        elif look % 2:
            x = _beside_vertex(known, x, aim) or x
        unknown = [near for near in _doubles_at(x, ends) if near not in known]
        if not unknown or math.isinf(x):
            break
        known[unknown[0]] = at(unknown[0])
    return least_by_lines(known, ends)


def _halfway(known: Mapping[float, Enclosure], x: float, ends: Ends) -> float:
    """In the middle of the places around it, which may be of sizes that lines don't tell apart.

    Behind the last place is the one from where on h is no less than its least known value.
    """
    places = sorted(known)
    if ends.is_open:
        far = min(bound.upper for bound in known.values()) / ends.rise
        places += [float(far.log().mid())] if far > 0 else []
    k = bisect_right(places, x)
    return (places[k - 1] + places[k]) / 2 if 0 < k < len(places) else x


def _doubles_at(x: float, ends: Ends) -> list[float]:
    """It and its neighbours: a kink lies between two, and h may be far larger at one of them."""
    near = [x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf)]
    return near if ends.is_open else [each for each in near if each <= 0]


def _beside_vertex(known: Mapping[float, Enclosure], side: float, aim: float) -> float | None:
    """Where a parabola through the lowest point and its neighbours has risen by the aim."""
    places = sorted(known)
    k = min(range(len(places)), key=lambda k: known[places[k]].upper)
    if not 0 < k < len(places) - 1:
        return None
    x = places[k - 1 : k + 2]
    first, second = ((known[b].upper - known[a].upper) / (b - a) for a, b in itertools.pairwise(x))
    bend = (second - first) / (x[2] - x[0])
    if not bend > 0:
        return None
    vertex, away = (x[0] + x[1]) / 2 - first / (2 * bend), math.sqrt(aim / bend)
    found = vertex + (away if side > vertex else -away)
    return found if x[0] < found < x[2] and found not in known else None


def least_by_lines(known: Mapping[float, Enclosure], ends: Ends) -> Enclosure:
    """Enclose it by what is known of h(e^x) at some x; the lower end may be −∞."""
    upper = min(ends.first.upper, *(bound.upper for bound in known.values()))
    with ctx.workprec(_PRECISION):
        found = [least for least, _ in _crossings(known, ends)]
        # Values beyond doubles leave nothing to say.
        least = min(Enclosure.of_ball(x).lower if x.is_finite() else -math.inf for x in found)
    return Enclosure(min(least, upper), upper)


def _crossings(known: Mapping[float, Enclosure], ends: Ends) -> list[tuple[arb, arb]]:
    """A lower bound between any two neighbours, and where the lines cross that it is from."""
    y, bounds = [arb(0)], [ends.first]
    for x in sorted(known):
        place = arb(x).exp()
        if place > y[-1]:
            y.append(place)
            bounds.append(known[x])
    low, high = [arb(bound.lower) for bound in bounds], [arb(bound.upper) for bound in bounds]
    found, zero = [], arb(0)
    if ends.is_open:
        far = reduce(arb.min, high) / ends.rise  # from where on h is no less than that
        if far > y[-1]:
            y.append(far)
            low.append(ends.rise * far)
            high.append(arb("inf"))
        found.append((ends.rise * y[-1], y[-1]))
    before, after = _partners(y, low, high)
    for k in range(len(y) - 1):
        length, fall, rise = y[k + 1] - y[k], ends.fall, ends.rise
        if k:
            fall = fall.max((low[k] - high[before[k]]) / (y[k] - y[before[k]]))
        if k + 2 < len(y):
            j = after[k + 1]
            rise = rise.min((high[j] - low[k + 1]) / (y[j] - y[k + 1]))
        fall, rise = fall.min(zero), rise.max(zero)
        turn = (low[k] - low[k + 1] + rise * length) / (rise - fall) if rise > fall else zero
        turn = arb(turn.mid()).max(zero).min(length)
        least = (low[k] + fall * turn).min(low[k + 1] - rise * (length - turn))
        found.append((least, y[k] + turn))
    return found


def _partners(y: list[arb], low: list[arb], high: list[arb]) -> tuple[list[int], list[int]]:
    """Which other points make the steepest lines through each, to the left and to the right."""
    places, lower, upper = (np.array([float(x) for x in column]) for column in (y, low, high))
    with np.errstate(all="ignore"):
        slopes = (lower[:, None] - upper) / (places[:, None] - places)
    count, unknown = len(y), np.isnan(slopes)
    falls, rises = (np.where(unknown, end, slopes) for end in (-math.inf, math.inf))
    before = [0, *(int(np.argmax(falls[k, :k])) for k in range(1, count))]
    after = [*(k + 1 + int(np.argmin(rises[k, k + 1 :])) for k in range(count - 1)), count - 1]
    return before, after
