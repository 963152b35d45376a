"""Rows of the tables: what work costs here and elsewhere, and how its cost grows, in one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from time import perf_counter

__all__ = ["REPETITIONS", "Elsewhere", "Growth", "Row", "growths", "markdown", "timed"]

REPETITIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What a work returns that was done and timed in another process."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison of costs: seconds, bytes, errors; less is better.

    Attributes
    ----------
    area : module that measured it; ``python -m benchmarks AREA`` does so again
    work : what was done, with its sizes
    unit : of `ours` and `theirs`
    ours : median cost here
    peer : who or what it is compared with
    theirs : the peer's median cost, or None where it couldn't be measured, for `note`'s reason
    aim : largest ratio that we aim at, or None
    note : what a reader needs to know, or nothing
    """

    area: str
    work: str
    unit: str
    ours: float
    peer: str
    theirs: float | None
    aim: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our cost over the peer's: below 1 where ours is less."""
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without one."""
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The cost of some work at several sizes, most often 1, 10, 100 and 1,000 times the first.

    Attributes
    ----------
    work : what was done, with the sizes that stayed
    what : is counted by `sizes`
    sizes : ascending, two at least
    seconds : median cost at each
    expected : exponent that theory gives for large sizes
    why : in one line
    """

    work: str
    what: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    expected: float
    why: str

    @property
    def exponent(self) -> float:
        """Slope of ln(seconds) on ln(size) by least squares: fixed costs make it smaller."""
        x, y = ([math.log(value) for value in values] for values in (self.sizes, self.seconds))
        return linear_regression(x, y).slope

    @property
    def last(self) -> float:
        """Slope between the two largest sizes, where fixed costs matter least."""
        (first, second), (before, after) = self.sizes[-2:], self.seconds[-2:]
        return math.log(after / before) / math.log(second / first)


def timed(
    *works: Callable[[], object],
    repetitions: int = REPETITIONS,
    clock: Callable[[], float] = perf_counter,
) -> list[float]:
    """Median seconds of each, repeated in turns so that a slow moment meets all of them."""
    for work in works:
        work()
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(repetitions):
        for work, taken in zip(works, seconds, strict=True):
            start = clock()
            done = work()
            spent = clock() - start
            taken.append(done.seconds if isinstance(done, Elsewhere) else spent)
    return [median(taken) for taken in seconds]


def markdown(rows: Sequence[Row]) -> str:
    """Table of rows of one area."""
    lines = [
        "| work | unit | dpverify | peer | its cost | ratio | aim | met | remark |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        cells = [row.work, row.unit, _digits(row.ours), row.peer, _digits(row.theirs)]
        cells += [_digits(row.ratio), _digits(row.aim), met, row.note]
        lines.append(_line(cells))
    return "\n".join(lines)


def growths(rows: Sequence[Growth]) -> str:
    """Table of growths."""
    lines = [
        "| work | sizes | ms | fitted exponent | of the last step | theory | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        sizes = ", ".join(f"{size:,}" for size in row.sizes)
        taken = ", ".join(_digits(seconds * 1e3) for seconds in row.seconds)
        cells = [row.work, f"{sizes} {row.what}", taken, f"{row.exponent:.2f}", f"{row.last:.2f}"]
        lines.append(_line([*cells, f"{row.expected:g}", row.why]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    """A line of a table, whatever its cells hold."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _digits(value: float | None) -> str:
    """Three digits, as many as such medians have."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
