"""An audit of an accountant: a function that computes ε or δ, held against proven enclosures.

Both sides are numbers. So a claim that is below the lower end of the enclosure is below the truth
for certain, and no level is needed. An accountant that computes in doubles misses the truth by
their last digits; `tolerance` says how much of that is forgiven.

That is so where the curve is attained: some mechanism of that description loses so much. Of a bound
(of zCDP or Rényi divergences, of shuffled answers, of several selections, of a move that is larger
than any neighbour's) the truth may be below it, and a claim below it is unknown.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from html import escape
from inspect import signature
from itertools import product
from numbers import Rational
from typing import Any, Literal, get_args

import numpy as np

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.composition.parallel import Parallel
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.partition_selection import PartitionSelection
from dpverify.accounting.curves.poisson_replaced import PoissonReplaced
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.accounting.curves.selection import PureSelection
from dpverify.accounting.curves.shuffled import Shuffled
from dpverify.accounting.curves.without_replacement import SampledWithoutReplacement
from dpverify.accounting.losses.continuous import BoundedRangeLoss
from dpverify.accounting.losses.discrete import DominatingLoss, SelectionLoss
from dpverify.accounting.losses.sampled import BatchLoss
from dpverify.accounting.losses.shuffled import ShuffledLoss
from dpverify.auditing.finding import Finding, Verdict
from dpverify.auditing.formatting import jsonable
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.replay import call_code
from dpverify.enclosure import Enclosure, Real, decimal_string, rational
from dpverify.errors import PASSING, ParameterError, require, require_known
from dpverify.guarantee import PrivacyBound, PrivacyCurve
from dpverify.visible import raised, shown

__all__ = ["AccountantReport", "Cell", "audit_accountant"]

Solves = Literal["epsilon", "delta"]
CellVerdict = Literal["unsafe", "failed", "unknown", "loose", "tight"]

_VERDICTS: Mapping[CellVerdict, Verdict] = {
    "unsafe": "violation",
    "failed": "inconclusive",
    "unknown": "inconclusive",
    "loose": "no_violation_found",
    "tight": "no_violation_found",
}
_BOUNDING = BoundedRangeLoss, BatchLoss
"""Losses of single releases that are attained, and of several together not known to be."""
_TIGHT = 1.01
"""Times the truth, up to which a claim is tight."""
_LISTED = 5
_DIGITS = (6, 9, 12, 17)
_LARGEST = Fraction(sys.float_info.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One question to an accountant, with its answer and the truth.

    Attributes
    ----------
    parameters : with which it was called
    verdict : ``unsafe`` if the claim is below the truth, ``failed`` if it is no number that can be
        one, ``unknown`` if the enclosure of the truth holds it, or it is below a mere bound,
        ``loose`` if it is more than 1 % above the truth, else ``tight``
    claim : what it answered; None if it failed
    truth : encloses the right answer
    factor : the claim, as a multiple of the nearer end of the truth; None if that isn't known
    statement : all that in a sentence
    """

    parameters: Mapping[str, Any]
    verdict: CellVerdict
    claim: float | None
    truth: Enclosure
    factor: float | None
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types; an infinity, which JSON lacks, is the string "inf"."""
        return {
            "parameters": jsonable(self.parameters),
            "verdict": self.verdict,
            "claim": jsonable(self.claim),
            "truth": self.truth.as_json(),
            "factor": jsonable(self.factor),
            "statement": self.statement,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantReport:
    """What an audit of an accountant found.

    Attributes
    ----------
    mechanism : the accountant's name
    solves : what it computes, "epsilon" or "delta"
    tolerance : which relative error is forgiven
    cells : the worst first
    replay : a line that makes the worst claim again
    """

    mechanism: str
    solves: Solves
    tolerance: Fraction
    cells: tuple[Cell, ...]
    replay: str

    @property
    def verdict(self) -> Verdict:
        """A violation if a claim is below the truth; inconclusive if one fails or isn't decided."""
        return _VERDICTS[self.cells[0].verdict]

    @property
    def counts(self) -> dict[CellVerdict, int]:
        """How many cells have each verdict; those that none has are left out."""
        counts = Counter(cell.verdict for cell in self.cells)
        return {verdict: counts[verdict] for verdict in get_args(CellVerdict) if counts[verdict]}

    @property
    def head(self) -> str:
        """Name, verdict and counts, in two lines."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return (
            f"{self.mechanism}: {self.verdict.replace('_', ' ')}, certain\n"
            f"  claims of {self.solves}: {counts}"
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each cell as a finding, for reporters."""
        return tuple(
            Finding(
                audit="accountant",
                verdict=_VERDICTS[cell.verdict],
                statement=f"{self.mechanism}({_named(cell.parameters)}): {cell.statement}",
                epsilon_lower=cell.truth.lower if self.solves == "epsilon" else None,
            )
            for cell in self.cells
        )

    @property
    def failed(self) -> tuple[str, ...]:
        """Nothing: a question without an answer is a cell like any other."""
        return ()

    def __str__(self) -> str:
        listed = self.cells[:_LISTED]
        lines = [self.head]
        for cell in listed:
            lines += [f"  {cell.verdict}: {_named(cell.parameters)}", f"    {cell.statement}"]
        more = len(self.cells) - len(listed)
        lines += [f"  and {more} more, none of them worse"] if more else []
        return "\n".join([*lines, f"  replay: {self.replay}"])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(_named(cell.parameters))}</td><td>{cell.verdict}</td>"
            f"<td>{escape(cell.statement)}</td></tr>"
            for cell in self.cells
        )
        return f"<table><caption>{escape(self.head)}</caption>{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types."""
        return {
            "mechanism": self.mechanism,
            "verdict": self.verdict,
            "solves": self.solves,
            "tolerance": float(self.tolerance),
            "counts": dict(self.counts),
            "cells": [cell.to_dict() for cell in self.cells],
            "replay": self.replay,
        }


def audit_accountant(
    accountant: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]],
    *,
    curve: Callable[..., PrivacyBound],
    solves: Solves,
    tolerance: Real = 0,
    name: str | None = None,
) -> AccountantReport:
    """Hold an accountant against proven enclosures, on a grid of parameters.

    Parameters
    ----------
    accountant : function
        Called with each parameter of the grid by its name; what it returns is its claim.
    grid : mapping of names to values
        Every combination is asked for. One of the names is ``delta`` where ε is computed (without
        it, δ is 0), and ``epsilon`` where δ is.
    curve : function
        From the other parameters to the privacy curve that is true for them, and attained: below a
        bound that isn't, nothing is unsafe.
    solves : "epsilon" or "delta"
        What the accountant computes.
    tolerance : real, at least 0
        By how much a claim may be below the truth, relatively: the last digits of doubles, say.
    name : str, optional
        Of the accountant in the report; by default the function's own.

    Raises
    ------
    ParameterError
        If the grid is empty or doesn't say where ε or δ is asked for, or a parameter is one that
        the curve doesn't take. What the accountant raises is in the report.

    Examples
    --------
    >>> import math
    >>> import dpverify as dpv
    >>> def textbook(sigma, delta):
    ...     return math.sqrt(2 * math.log(1.25 / delta)) / sigma
    >>> report = dpv.audit_accountant(
    ...     textbook,
    ...     {"sigma": [0.2, 8], "delta": [1e-5]},
    ...     curve=lambda sigma: dpv.Gaussian(sigma=sigma),
    ...     solves="epsilon",
    ... )
    >>> report.verdict
    'violation'
    >>> for cell in report.cells:
    ...     print(cell.verdict, dict(cell.parameters), cell.statement)
    unsafe {'sigma': 0.2, 'delta': 1e-05} epsilon 24.224 is claimed, and it is at least 33.1037
    loose {'sigma': 8, 'delta': 1e-05} epsilon 0.605601 is claimed, 1.394 times the truth
    """
    require_known("solves", solves, get_args(Solves))
    forgiven = rational("tolerance", tolerance)
    require(forgiven >= 0, "tolerance", tolerance, "at least 0")
    require(callable(accountant), "accountant", shown(accountant), "a function of the parameters")
    own = display_name(accountant, name)
    given = "delta" if solves == "epsilon" else "epsilon"
    named = isinstance(grid, Mapping) and all(isinstance(name, str) for name in grid)
    require(named and bool(grid), "grid", grid, "parameters by their names")
    if solves == "delta":
        require(given in grid, "grid", ", ".join(grid), f"one with {given}, where δ is asked for")
    axes = {key: _listed(key, values) for key, values in grid.items()}
    try:
        signature(curve).bind(**{key: None for key in axes if key != given})
    except (TypeError, ValueError) as error:  # not called so, or no one can say how
        names = ", ".join(key for key in axes if key != given) or "nothing"
        require(False, "curve", shown(curve), f"a function of {names}: {error}")
    cells = []
    for values in product(*axes.values()):
        parameters = dict(zip(axes, values, strict=True))
        true = curve(**{key: value for key, value in parameters.items() if key != given})
        require(isinstance(true, PrivacyBound), "curve", true, "one that returns a privacy curve")
        at = parameters.get(given, 0)
        truth = true.epsilon_at(at) if solves == "epsilon" else true.delta_at(at)
        attained = _attained(true, largest=solves == "epsilon" and at == 0)
        cells.append(_cell(accountant, parameters, truth, solves, forgiven, attained=attained))
    cells.sort(key=_badness)
    worst = cells[0]
    call = call_code(accountant, worst.parameters, name=own)
    return AccountantReport(
        mechanism=own,
        solves=solves,
        tolerance=forgiven,
        cells=tuple(cells),
        replay=f"{call}  # {worst.statement}",
    )


def _listed(name: str, values: Any) -> list[Any]:
    listed: list[Any] = []
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    require(bool(listed), f"grid[{name!r}]", shown(values), "a list of one value or more")
    return listed


def _cell(
    accountant: Callable[..., Any],
    parameters: Mapping[str, Any],
    truth: Enclosure,
    solves: Solves,
    forgiven: Fraction,
    *,
    attained: bool,
) -> Cell:
    claim: Fraction | float | None = None
    factor: float | None = None
    verdict: CellVerdict
    try:
        claim, problem = _read(accountant(**parameters))
    except PASSING:
        raise
    except BaseException as error:  # whatever foreign code does
        problem = f"it raised {raised(error)}"
    if claim is None or claim < 0 or (math.isinf(claim) and math.isfinite(truth.upper)):
        verdict, said = "failed", problem or f"{solves} {float(claim or 0):.6g} is claimed"
    elif claim * (1 + forgiven) < truth.lower and not attained:
        verdict = "unknown"
        said = "{} {} is claimed, and a bound that needn't be attained is {}".format(
            solves, *_apart(claim, truth)
        )
    elif claim * (1 + forgiven) < truth.lower:
        verdict, factor = "unsafe", _ratio(claim, truth.lower)
        said = "{} {} is claimed, and it is at least {}".format(solves, *_apart(claim, truth))
    elif claim * (1 + forgiven) < truth.upper:
        verdict = "unknown"
        said = f"{solves} {claim!s} is claimed, and it is in [{truth.lower!r}, {truth.upper!r}]"
    else:
        factor = _ratio(claim, truth.upper)
        verdict = "tight" if factor <= _TIGHT else "loose"
        said = f"{solves} {float(claim):.6g} is claimed, {factor:.4g} times the truth"
    return Cell(
        parameters=parameters,
        verdict=verdict,
        claim=None if claim is None else float(claim),
        truth=truth,
        factor=factor,
        statement=said,
    )


def _attained(curve: PrivacyBound, *, largest: bool) -> bool:
    """Whether some mechanism loses so much, and it is no bound alone; or its `largest` loss."""
    if isinstance(curve, PrivacyCurve) and curve.is_bound:
        return False
    match curve:
        case PoissonSampled() | PoissonReplaced():
            return _mirrored(curve.curve) and _attained(curve.curve, largest=largest)
        case SampledWithoutReplacement():
            return _attained(curve.curve, largest=largest)
        case Parallel():
            return all(_attained(part, largest=largest) for part in curve.curves)
        case PureSelection():
            return largest
        case DiscretePair(error=error):
            return not error
        case Shuffled():
            return False
        case Composed():
            parts = curve.losses()
        case _:
            return isinstance(curve, PrivacyCurve)
    several = sum(times for _, times in parts) > 1
    return not any(
        isinstance(each, ShuffledLoss | DominatingLoss)
        or (several and isinstance(each, _BOUNDING))
        or (not largest and isinstance(each, SelectionLoss))
        for loss, _ in parts
        for each in (loss, getattr(loss, "base", loss))
    )


def _mirrored(curve: PrivacyCurve) -> bool:
    """Whether both orders are the same, or else a sample's curve may be of the wrong one."""
    try:
        return all(loss == loss.reverse() for loss, _ in curve.losses())
    except ParameterError:
        return not isinstance(curve, PartitionSelection)


def _read(value: Any) -> tuple[Fraction | float | None, str]:
    """The number that was claimed, exactly, or why it is none."""
    if isinstance(value, bool | np.bool_ | str):
        return None, f"it returned {shown(value)}, which is no number"
    if isinstance(value, Rational) or (isinstance(value, Decimal) and value.is_finite()):
        exact = Fraction(value)
        return (exact if abs(exact) <= _LARGEST else math.inf), ""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        return None, f"it returned {shown(value)}, which is no number"
    return Fraction(number) if math.isfinite(number) else number, ""


def _apart(claim: Fraction | float, truth: Enclosure) -> tuple[str, str]:
    """Both in as few digits as show that the claim is smaller."""
    for digits in _DIGITS:
        low = decimal_string(truth.lower, ROUND_FLOOR, digits=digits)
        texts = f"{float(claim):.{digits}g}", f"{float(low):.{digits}g}"
        if float(texts[0]) < float(texts[1]):
            break
    return texts


def _badness(cell: Cell) -> tuple[int, float]:
    """Sorts the worst cells first: the least safe ones, then the loosest."""
    factor = 1.0 if cell.factor is None else cell.factor
    place = get_args(CellVerdict).index(cell.verdict)
    return place, factor if cell.verdict == "unsafe" else -factor


def _ratio(claim: Fraction | float, end: float) -> float:
    if claim == end:
        return 1.0
    return float(claim) / end if end else math.inf


def _named(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in parameters.items())
