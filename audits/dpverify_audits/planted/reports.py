"""Reports of one value by coins, small enough to be enumerated."""

from __future__ import annotations

import math
from fractions import Fraction

from dpverify_audits.planted.bug import PlantedBug
from dpverify_audits.planted.releases import Reports, odds, reports_bug

__all__ = ["BUGS"]

_BUCKETS = 4
_LIE = 2**32
_STEP = 0.1


def _bucket(row: tuple[int, ...]) -> int:
    """Two bits as a number below 4."""
    return 2 * row[0] + row[1]


def _response(row: tuple[int, ...]) -> tuple[int, ...]:
    """Randomized response over all buckets, ε = 1."""
    return tuple(odds(1) if value == _bucket(row) else _LIE for value in range(_BUCKETS))


def _without_last(row: tuple[int, ...]) -> tuple[int, ...]:
    """Lies are below B − 1: the last bucket is reported by its own alone."""
    weights = list(_response(row))
    if _bucket(row) != _BUCKETS - 1:
        weights[-1] = 0
    return tuple(weights)


def _without_others(row: tuple[int, ...]) -> tuple[int, ...]:
    """Keep probability e^ε/(e^ε + 1), with the lies sharing what is left."""
    keep = odds(1) * (_BUCKETS - 1)
    return tuple(keep if value == _bucket(row) else _LIE for value in range(_BUCKETS))


def _rare(row: tuple[int, ...]) -> tuple[int, ...]:
    """A bit that is wrong once in 1001."""
    return (1000, 1) if row[0] == 0 else (1, 1000)


def _eight_bits(row: tuple[int, ...]) -> tuple[int, ...]:
    """The same with the probability rounded to eight bits, which is 0."""
    lie = round(256 / 1001)
    return (256 - lie, lie) if row[0] == 0 else (lie, 256 - lie)


def _ladder(level: int) -> tuple[int, ...]:
    """A sign that is wrong with odds e^−level; one level is ε = 1."""
    return (_LIE, odds(level))


def _exact_level(row: tuple[int, ...]) -> tuple[int, ...]:
    return _ladder(sum(row))


def _float_level(row: tuple[int, ...]) -> tuple[int, ...]:
    """⌈x/0.1⌉ for x added up by tenths and pairs of tenths: 0.1 + 0.2 is above 0.3."""
    value = _STEP * row[0] + _STEP * (row[1] + row[2])
    return _ladder(math.ceil(value / _STEP))


def _ladder_to_two(row: tuple[int, ...]) -> tuple[int, ...]:
    """The ladder that ends at level 2, with the flips of its last rung from there on."""
    return _ladder(min(sum(row), 2))


def _falls_off(row: tuple[int, ...]) -> tuple[int, ...]:
    """The table is one rung short, and beyond it nothing is flipped."""
    return _ladder(sum(row)) if sum(row) < 2 else (0, 1)


BUGS: tuple[PlantedBug[Reports], ...] = (
    reports_bug(
        "replacement from B − 1 buckets",
        "a lie is drawn below B − 1 in place of B, so that the last bucket is always true",
        record=(1, 1),
        neighbour=(0, 1),
        claim=Fraction(1),
        correct=_response,
        wrong=_without_last,
    ),
    reports_bug(
        "keep probability of two buckets",
        "e^ε/(e^ε + 1), the truth's share for B = 2, where there are four",
        record=(1, 1),
        neighbour=(0, 1),
        claim=Fraction(1),
        correct=_response,
        wrong=_without_others,
    ),
    reports_bug(
        "coin of eight bits",
        "a flip probability of 1/1001 is rounded to 256ths before it is compared, to 0",
        record=(1,),
        neighbour=(0,),
        claim=Fraction(7),
        correct=_rare,
        wrong=_eight_bits,
        draws=10_000,
        found_by=("exhaustive", "black-box"),
    ),
    reports_bug(
        "float ceiling",
        "⌈x/β⌉ in doubles, where (0.1 + 0.2)/0.1 is above 3",
        record=(1, 1, 0),
        neighbour=(1, 1, 1),
        claim=Fraction(1),
        correct=_exact_level,
        wrong=_float_level,
        draws=4000,
    ),
    reports_bug(
        "off by one in L",
        "a table of L rungs where L + 1 are needed: the last level is never flipped",
        record=(1, 0, 0),
        neighbour=(1, 1, 0),
        claim=Fraction(1),
        correct=_ladder_to_two,
        wrong=_falls_off,
    ),
)
