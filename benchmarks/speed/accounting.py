"""Certified answers of the accountant: time, memory, and distance from the truth, beside others'.

Other libraries are asked by the protocol of `benchmarks.accountants`, which has larger grids: each
answer in a fork of its own, so from cold caches, except where one is asked again and again.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from statistics import fmean, median
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.accountants import OURS, PEERS, Answers, Grid, ask, cases, grids, summary
from benchmarks.peers.dpverify import ours as enclosed
from benchmarks.peers.install import installed
from benchmarks.peers.protocol import Case, Reply
from benchmarks.speed.table import Row, timed
from benchmarks.truth import truth
from dpverify.accounting import delta_gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.accounting.fast import delta_gaussian_array
from dpverify.enclosure import Enclosure

__all__ = ["bits", "compared", "medians", "rows"]

AREA = "accounting"
EPSILONS = ["1e-8", "1e-6", "1e-4", "1e-2", "0.1", "1", "10", "20", "100", "1e3", "1e4"]
DELTAS = ["0.4", "0.1", "1e-3", "1e-6", "1e-10", "1e-30", "1e-100", "1e-300"]
MANY = 1_000_000  # values of one vectorised call
WARM = 3  # answers in a row
LEAST = 1e-100  # δ below which the printed formula is left alone
LONG = 1  # seconds after which an answer isn't asked for again
WIDEST = 1e-7  # of an enclosure of the truth; those of different bits are 1e-8 wide


def rows() -> Iterator[Row]:
    """Every comparison."""
    yield from _gaussian()
    yield from _vectorised()
    yield from _aims()
    for inquiry in _inquiries():
        yield from _asked(inquiry)


def _gaussian() -> Iterator[Row]:
    """Certified calls of the analytic Gaussian over a grid that reaches into the extremes."""
    cells = [(Decimal(e), Decimal(d)) for e in EPSILONS for d in DELTAS]
    sigmas = [sigma_gaussian(e, d).upper for e, d in cells]
    calls: dict[str, list[Callable[[], object]]] = {
        "σ": [partial(sigma_gaussian, e, d) for e, d in cells],
        "δ": [partial(delta_gaussian, e, s) for (e, _), s in zip(cells, sigmas, strict=True)],
        "ε": [partial(epsilon_gaussian, d, s) for (_, d), s in zip(cells, sigmas, strict=True)],
    }
    for name, works in calls.items():
        seconds = timed(*works)
        yield Row(
            area=AREA,
            work=f"certified {name} of one Gaussian, median of {len(works)} cells",
            unit="µs",
            ours=median(seconds) * 1e6,
            peer="aim",
            theirs=100,
            aim=1,
            note=f"slowest cell {max(seconds) * 1e6:.0f} µs",
        )


def _vectorised() -> Iterator[Row]:
    """The uncertified path for arrays, against the formula as it is printed."""
    rng = np.random.default_rng(0)
    epsilon, sigma = 10 ** rng.uniform(-4, 2, MANY), 10 ** rng.uniform(-1, 3, MANY)

    def printed() -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (sign / (2 * sigma) - epsilon * sigma for sign in (1, -1))
            return np.asarray(ndtr(low) - np.exp(epsilon) * ndtr(high))

    ours, theirs = timed(lambda: delta_gaussian_array(epsilon, sigma), printed, repetitions=5)
    right = delta_gaussian_array(epsilon, sigma)
    seen = right > LEAST
    worst = np.max(np.abs(printed()[seen] / right[seen] - 1))
    yield Row(
        area=AREA,
        work=f"δ of {MANY:,} different Gaussians in doubles, not certified",
        unit="ns a value",
        ours=ours / MANY * 1e9,
        peer="scipy, the printed formula",
        theirs=theirs / MANY * 1e9,
        note=f"where δ > {LEAST}, the formula is off by up to {worst:.0e} of it, ours by 1e-13",
    )


def bits(count: int) -> Case:
    """Randomized response on several bits, each with an ε of its own between 1/√k and 3/√k."""
    steps = [(1 + 2 * (i + 0.5) / count) / math.sqrt(count) for i in range(count)]
    truths = [1 / (1 + math.exp(-step)) for step in steps]
    return Case(
        mechanism="randomized-response",
        parameter=truths[0],
        others=tuple(truths[1:]),
        count=1,
        solve="epsilon",
        given=1e-6,
    )


def _aims() -> Iterator[Row]:
    """Compositions whose cost was set beforehand."""
    response = cases("randomized-response", [1 / (1 + math.exp(-0.1))], [10_000], "epsilon", [1e-6])
    for work, case, repetitions, aim in (
        ("exact ε of 10,000 randomized responses", response[0], 15, 0.01),
        ("certified ε of 4,096 bits, each with its own ε", bits(4_096), 3, 5.0),
    ):
        (seconds,) = timed(partial(enclosed, case), repetitions=repetitions)
        found = enclosed(case)
        width = Fraction(found.upper) / Fraction(found.lower) - 1
        yield Row(
            area=AREA,
            work=work,
            unit="ms",
            ours=seconds * 1e3,
            peer="aim",
            theirs=aim * 1e3,
            aim=1,
            note=f"relative width {float(width):.1e}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inquiry:
    """What all libraries are asked in one process each, and how.

    Attributes
    ----------
    grids : cases under the words of their rows
    rounds : how often everyone is asked, in turns; an answer that took long isn't asked for again
    repeat : answers in a row of which the median counts
    limit : seconds an answer
    """

    grids: tuple[Grid, ...]
    rounds: int
    repeat: int
    limit: int


def _inquiries() -> Iterator[_Inquiry]:
    one, *composed = grids(full=False)
    name = f"one Gaussian, {len(one.cases)} cells, asked {WARM} times in a row"
    alone = Grid(name=name, cases=one.cases)
    yield _Inquiry(grids=(alone,), rounds=1, repeat=WARM, limit=10)
    asked = []
    for grid in composed:
        kind, parameter = grid.cases[0].mechanism, grid.cases[0].parameter
        few = cases(kind, [parameter], (1, 100, 10_000), "epsilon", (1e-6, 1e-12))
        name = f"{grid.name}, T = 1, 100, 10,000, δ = 1e-6, 1e-12"
        asked.append(Grid(name=name, cases=tuple(few)))
    for count in (256, 4_096):
        name = f"{count:,} bits, each with its own ε, δ = 1e-6"
        asked.append(Grid(name=name, cases=(bits(count),)))
    yield _Inquiry(grids=tuple(asked), rounds=3, repeat=1, limit=8)


def _asked(inquiry: _Inquiry) -> Iterator[Row]:
    """One row for each method of each library that has an answer, or why there is none."""
    peers = {library: installed(library.replace("_", "-")) for library in PEERS}
    pythons = {OURS: sys.executable}
    pythons |= {library: peer.python for library, peer in peers.items() if not peer.missing}
    failed = {library: peer.missing for library, peer in peers.items() if peer.missing}
    every = [case for grid in inquiry.grids for case in grid.cases]
    rounds: dict[str, list[list[Answers]]] = {library: [] for library in pythons}
    for number in range(inquiry.rounds):
        limit = LONG if number else inquiry.limit
        for library in [name for name in pythons if name not in failed]:
            try:
                answers = ask(library, pythons[library], every, limit=limit, repeat=inquiry.repeat)
            except subprocess.CalledProcessError as error:
                failed[library] = f"its process ended with {error.returncode}"
            else:
                rounds[library].append(answers)
    (own,) = medians(rounds.pop(OURS))
    methods = [
        method for name, found in rounds.items() if name not in failed for method in medians(found)
    ]
    start = 0
    for grid in inquiry.grids:
        place = slice(start, start + len(grid.cases))
        start = place.stop
        truths = [truth(case) for case in grid.cases]
        for method in methods:
            yield from compared(grid.name, own.replies[place], method, place, truths)
        for library, reason in failed.items():
            ours = fmean(reply.seconds for reply in own.replies[place])
            yield _row(grid.name, ours, library.replace("_", "-"), None, reason)


def medians(rounds: Sequence[Sequence[Answers]]) -> list[Answers]:
    """The first round's answers with the median seconds of the rounds that had one."""
    return [
        replace(
            same[0],
            replies=tuple(
                replace(
                    replies[0],
                    seconds=median(
                        [reply.seconds for reply in replies if reply.value is not None]
                        or [replies[0].seconds]
                    ),
                )
                for replies in zip(*(answers.replies for answers in same), strict=True)
            ),
        )
        for same in zip(*rounds, strict=True)
    ]


def compared(
    work: str,
    own: Sequence[Reply],
    theirs: Answers,
    place: slice,
    truths: Sequence[Enclosure],
) -> Iterator[Row]:
    """The row of a method, if it has one: mean seconds of what it answered, ours of the same."""
    replies = theirs.replies[place]
    counted = summary(work, theirs, replies, truths, widest=WIDEST)
    if counted is None:
        return
    pairs = [
        (mine.seconds, reply.seconds)
        for mine, reply in zip(own, replies, strict=True)
        if reply.value is not None and 0 <= reply.value < math.inf
    ]
    remarks = []
    if pairs:
        unsafe = "unsafe" if counted.claim == "upper" else "below the truth"
        remarks.append(f"{counted.below} of {counted.answers} {unsafe}")
    if counted.shortfall is not None:
        remarks[0] += f", by at most {counted.shortfall:.0e}"
    if counted.worst_excess is not None:
        remarks.append(f"at most {counted.worst_excess:.0e} above")
    if counted.failures:
        reason = shorten(counted.reason, 70, placeholder=" …")
        remarks.append(f"{counted.failures} of {counted.asked} not answered ({reason})")
    ours = max(reply.memory for reply in own)
    remarks.append(f"{counted.memory >> 20} MiB against our {ours >> 20}")
    yield _row(
        work,
        fmean(mine for mine, _ in pairs) if pairs else fmean(reply.seconds for reply in own),
        counted.method,
        fmean(other for _, other in pairs) if pairs else None,
        "; ".join(remarks),
    )


def _row(work: str, ours: float, peer: str, theirs: float | None, note: str) -> Row:
    return Row(
        area=AREA,
        work=work,
        unit="ms an answer",
        ours=ours * 1e3,
        peer=peer,
        theirs=None if theirs is None else theirs * 1e3,
        note=note,
    )
