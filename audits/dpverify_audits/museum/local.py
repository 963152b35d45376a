"""Local protocols.

There is no curator to trust, and each report has to be private by itself. A report is a few coins,
so each coin has to be right.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from dpverify.data.adjacency import Replace
from dpverify.data.columns import Categories
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["EXHIBITS", "NAME", "kept_with"]

NAME = "Local protocols"
_CHOICES = tuple("abcdef")
_PERSON = Table({"colour": Categories(*_CHOICES)}, rows=1)
_DAYS = Table({"colour": Categories(*_CHOICES)}, rows=5)


def kept_with(epsilon: float) -> float:
    """With which probability randomized response tells the truth."""
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def _unary(rows: Any, rng: Any, *, one: float, zero: float) -> Any:
    """A bit for each choice: 1 with probability `one` at the true choice, else with `zero`."""
    coins = rng.random(len(_CHOICES))
    return [
        bool(coin < (one if choice == rows[0]["colour"] else zero))
        for coin, choice in zip(coins, _CHOICES, strict=True)
    ]


def _bits(rows: Any, rng: Any, *, flipped: int) -> Any:
    """The bits of the choice, of which so many are flipped by coins."""
    place = _CHOICES.index(rows[0]["colour"])
    bits = [bool(place >> i & 1) for i in range(3)]
    keep = kept_with(1 / 3)
    return [bit ^ bool(i < flipped and rng.random() > keep) for i, bit in enumerate(bits)]


def _coarse(rows: Any, rng: Any, *, steps: int) -> bool:
    """Whether the colour is warm, by a coin whose probability is rounded up to `steps` steps."""
    keep = math.ceil(kept_with(1) * steps) / steps if steps else kept_with(1)
    return bool((rows[0]["colour"] in "abc") ^ (rng.random() > keep))


def _every_day(rows: Any, rng: Any, *, memo: bool) -> Any:
    """A colour a day by randomized response: new coins, or those of the colour kept for later."""
    kept: dict[str, bool] = {}
    answers = []
    for row in rows:
        warm = row["colour"] in "abc"
        coin = bool(warm ^ (rng.random() > kept_with(1)))
        answers.append(kept.setdefault(row["colour"], coin) if memo else coin)
    return answers


def _monthly(rows: Any, rng: Any) -> Any:
    """One coin for the first colour, told every day."""
    coin = bool((rows[0]["colour"] in "abc") ^ (rng.random() > kept_with(1)))
    return [coin] * len(rows)


def _symmetric(epsilon: float) -> Any:
    keep = kept_with(epsilon / 2)
    return partial(_unary, one=keep, zero=1 - keep)


_OUE = partial(_unary, one=0.5, zero=1 / (math.e + 1))


class _AllDays:
    """All that one person does, day by day."""

    unit = "all values of one person"
    of = "dataset"

    def relates(self, first: Any, second: Any) -> bool:
        """Any two."""
        return len(first) == len(second)

    def candidates(self, data: Any, space: Any, choose: Any) -> Any:
        """Any other."""
        while True:
            yield space.data(choose)


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Unary encoding with one coin's odds",
        "Each bit is kept with e^ε/(1 + e^ε), where two bits differ between any two choices.",
        "Both bits speak at full strength: 2ε.",
        broken=_symmetric(2),
        correct=_symmetric(1),
        source="an LDP package; Arcolezi and Gambs, LDP-Auditor (arXiv:2309.01597)",
        domain=_PERSON,
        adjacency=Replace(),
    ),
    exhibit(
        "Optimised unary encoding, the wrong way round",
        "P[1] at the true choice is e^ε/(e^ε + 1), and at others ½: not 1/(e^ε + 1) and ½.",
        "The odds of the true choice's bit multiply with those of the other.",
        broken=partial(_unary, one=math.e / (math.e + 1), zero=1 / (math.e + 1)),
        correct=_OUE,
        source="after Wang, Blocki, Li and Jha, USENIX Security 2017, by LDP-Auditor",
        domain=_PERSON,
        adjacency=Replace(),
    ),
    exhibit(
        "The last bit in the clear",
        "The loop flips bits 1 to n − 1 of n.",
        "The last bit is told as it is.",
        broken=partial(_bits, flipped=2),
        correct=partial(_bits, flipped=3),
        source="OpenDP before 0.15, randomized response of bit vectors; issue 2707",
        domain=_PERSON,
        adjacency=Replace(),
        found_by=("determinism",),
    ),
    exhibit(
        "A coin of eight sides",
        "The probability to tell the truth is rounded up to what the sampler can draw.",
        "Six in eight is more than 0.731.",
        broken=partial(_coarse, steps=8),
        correct=partial(_coarse, steps=0),
        source="after OpenDP, randomized response of bools; pull requests 481 and 496",
        domain=_PERSON,
        adjacency=Replace(),
    ),
    exhibit(
        "New coins every day",
        "Five days of one colour are five reports, each ε-private.",
        "The majority of the reports is right.",
        broken=partial(_every_day, memo=False),
        correct=_monthly,
        source="Erlingsson, Pihur and Korolova, RAPPOR, CCS 2014, whose memory is against this",
        domain=_DAYS,
        adjacency=_AllDays(),
    ),
    exhibit(
        "Memory that tells of change",
        "A colour's coin is kept for good, so that equal days have equal reports.",
        "A report that changes says that the colour did, on that day.",
        broken=partial(_every_day, memo=True),
        correct=_monthly,
        source="Ding, Kulkarni and Yekhanin, NeurIPS 2017; Arcolezi and others (arXiv:2210.00262)",
        domain=_DAYS,
        adjacency=_AllDays(),
    ),
)
