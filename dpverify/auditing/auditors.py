"""An audit of an auditor: a lower bound on ε, given scores whose ε is known.

A bound of level α may be above the true ε in a share α of all runs, and not more often. Here it is
run many times on scores that attain a known ε exactly, and the number of times that it is above is
tested by the exact binomial test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.finding import Finding, Verdict, combined
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.replay import call_code
from dpverify.auditing.statistics.clopper_pearson import judge_at_most
from dpverify.enclosure import Enclosure, rational
from dpverify.errors import PASSING, require
from dpverify.numbers import count, level, whole
from dpverify.visible import raised, shown

__all__ = [
    "NULLS",
    "AuditorReport",
    "Bound",
    "Null",
    "NullRuns",
    "Scores",
    "audit_auditor",
    "laplace",
    "normal",
    "response",
]

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
"""With the record, and without it."""


class Bound(Protocol):
    """What is audited: a lower bound on ε by scores of both sides, as `audit_scores` has them."""

    def __call__(
        self,
        with_: NDArray[np.float64],
        without: NDArray[np.float64],
        /,
        *,
        delta: float,
        alpha: float,
    ) -> float:
        """The bound, at this δ and level."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """Scores of a known ε.

    Attributes
    ----------
    name : in words
    law : draws so many scores of each side
    delta, epsilon : what they attain exactly: with that δ, no smaller ε holds, and this one does
    """

    name: str
    law: Callable[[int, np.random.Generator], Scores]
    delta: Fraction = Fraction(0)
    epsilon: float = 0.0


def normal(distance: float, number: int, rng: np.random.Generator) -> Scores:
    """Two normals so many standard deviations apart."""
    return rng.normal(distance, 1, number), rng.normal(0, 1, number)


def laplace(number: int, rng: np.random.Generator) -> Scores:
    """A number with Laplace noise, ε = 1."""
    return rng.laplace(1, 1, number), rng.laplace(0, 1, number)


def response(number: int, rng: np.random.Generator) -> Scores:
    """Randomized response with ε = 1: two values, and nothing but ties."""
    keep = math.e / (1 + math.e)
    own, other = rng.random((2, number)) < keep
    return own.astype(float), 1 - other.astype(float)


_MOST = 10_000_000  # runs, or scores of one
_TENTH = Fraction(1, 10)
NULLS = (
    Null(name="equal sides", law=partial(normal, 0.0), delta=Fraction(1, 10**5)),
    Null(name="Laplace, ε = 1", law=laplace, epsilon=1.0),
    Null(name="randomized response, ε = 1", law=response, epsilon=1.0),
    Null(
        name="Gaussian, Δ = σ, δ = 0.1",
        law=partial(normal, 1.0),
        delta=_TENTH,
        epsilon=Gaussian(sigma=1).epsilon_at(_TENTH).upper,
    ),
)
"""Scores of independent runs, by which a bound is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullRuns:
    """The runs of a bound on scores of one law.

    Attributes
    ----------
    null : the law
    verdict : a violation if the bound is above the true ε more often than its level allows
    above, runs : how often it was, of how many runs
    largest : the largest bound
    failure : what it raised or returned instead of a number, first; empty if nothing
    """

    null: Null
    verdict: Verdict
    above: int
    runs: int
    largest: float
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return f"{self.null.name}: no bound, {self.failure}"
        return (
            f"{self.null.name}: above the true epsilon {self.null.epsilon:.6g} in {self.above} of "
            f"{self.runs} runs, at most {self.largest:.6g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditorReport:
    """What an audit of an auditor found.

    Attributes
    ----------
    mechanism : the auditor's name
    claimed : its level, as it claims
    alpha : probability with which a bound that keeps its level is refuted
    parts : the runs on each law, refuted ones first
    replay : a line that repeats the audit
    """

    mechanism: str
    claimed: Fraction
    alpha: float
    parts: tuple[NullRuns, ...]
    replay: str

    @property
    def verdict(self) -> Verdict:
        """A violation if the level isn't kept on one of the laws; inconclusive if a run failed."""
        if any(part.failure for part in self.parts) and self.parts[0].verdict != "violation":
            return "inconclusive"
        return combined(self.findings)

    @property
    def head(self) -> str:
        """Name, verdict and claim, in two lines."""
        return (
            f"{self.mechanism}: {self.verdict.replace('_', ' ')}, at level {self.alpha:g}\n"
            f"  claim: bounds above the true epsilon in at most {float(self.claimed):g} of runs"
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One for each law, for reporters."""
        return tuple(
            Finding(
                audit="auditor",
                verdict=part.verdict,
                statement=str(part),
                level=self.alpha / len(self.parts),
            )
            for part in self.parts
        )

    @property
    def failed(self) -> tuple[str, ...]:
        """Of which laws there is no bound."""
        return tuple(str(part) for part in self.parts if part.failure)

    def __str__(self) -> str:
        lines = [f"  {part.verdict.replace('_', ' ')}: {part}" for part in self.parts]
        return "\n".join([self.head, *lines, f"  replay: {self.replay}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types."""
        parts = [
            {
                "scores": part.null.name,
                "epsilon": part.null.epsilon,
                "delta": float(part.null.delta),
                "verdict": part.verdict,
                "above": part.above,
                "runs": part.runs,
                "failure": part.failure,
            }
            for part in self.parts
        ]
        return {
            "mechanism": self.mechanism,
            "verdict": self.verdict,
            "claimed": float(self.claimed),
            "alpha": self.alpha,
            "parts": parts,
            "replay": self.replay,
        }


def audit_auditor(
    bound: Bound,
    *,
    nulls: Sequence[Null] = NULLS,
    claimed: float | Fraction = 0.05,
    scores: int = 500,
    runs: int = 200,
    alpha: float = 1e-6,
    seed: int = 0,
    name: str | None = None,
) -> AuditorReport:
    """Try a lower bound on ε on scores whose ε is known.

    Parameters
    ----------
    bound : function of scores with the record and without it, of ``delta`` and of ``alpha``
        What it returns should be above the true ε with probability at most its alpha.
    nulls : laws of scores, each of a known ε
    claimed : the level at which the bound is asked for, in (0, 1)
    scores : of each side, in each run
    runs : on each law
    alpha : level of this audit, in (0, 1): how likely a bound that keeps its level is refuted
    seed : of the scores
    name : of the auditor in the report; by default the function's own

    Raises
    ------
    ParameterError
        If a value is outside its domain. What the bound raises is in the report.

    Examples
    --------
    >>> import numpy as np
    >>> def largest_ratio(own, other, *, delta, alpha):  # no confidence limits at all
    ...     above = [np.mean([own > t, other > t], axis=1) for t in np.quantile(other, [0.5, 0.9])]
    ...     return max(0.0, *(np.log((true - delta) / false) for true, false in above))
    >>> audit_auditor(largest_ratio, runs=50).verdict
    'violation'
    """
    promised = rational("claimed", claimed)
    require(0 < promised < 1, "claimed", claimed, "in (0, 1)")
    alpha = level("alpha", alpha)
    seed = whole("seed", seed)
    require(seed >= 0, "seed", seed, "at least 0")
    laws = isinstance(nulls, Sequence) and all(isinstance(null, Null) for null in nulls)
    require(laws and bool(nulls), "nulls", shown(nulls), "a list of one law (`Null`) or more")
    require(callable(bound), "bound", shown(bound), "a function of scores with and without")
    own = display_name(bound, name)
    sizes = {"scores": count("scores", scores), "runs": count("runs", runs)}
    for size, number in sizes.items():
        require(number <= _MOST, size, number, f"at most {_MOST:,}")
    share = alpha / len(nulls)
    parts = [
        _runs(bound, null, promised, share, (seed, place), **sizes)
        for place, null in enumerate(nulls)
    ]
    parts.sort(key=lambda part: (part.verdict != "violation", not part.failure))
    given: dict[str, Any] = {
        "bound": bound,
        "claimed": claimed,
        **sizes,
        "alpha": alpha,
        "seed": seed,
    }
    if nulls is not NULLS:
        given["nulls"] = tuple(nulls)
    return AuditorReport(
        mechanism=own,
        claimed=promised,
        alpha=alpha,
        parts=tuple(parts),
        replay=call_code(audit_auditor, given, name=f"audit_auditor of {own}"),
    )


def _runs(
    bound: Bound,
    null: Null,
    level: Fraction,
    alpha: float,
    stream: tuple[int, int],
    *,
    scores: int,
    runs: int,
) -> NullRuns:
    delta = Enclosure.of_exact(null.delta).upper
    made = NullRuns(null=null, verdict="inconclusive", above=0, runs=runs, largest=0.0)
    above, largest = 0, 0.0
    for run in range(runs):
        rng = np.random.default_rng((*stream, run))
        own, other = null.law(scores, rng)
        try:
            value = float(bound(own, other, delta=delta, alpha=float(level)))
        except PASSING:
            raise
        except BaseException as error:  # whatever foreign code does
            return replace(made, failure=f"it raised {raised(error)}")
        if math.isnan(value):
            return replace(made, failure=f"it returned {shown(value)}")
        above += value > null.epsilon
        largest = max(largest, value)
    refuted = judge_at_most(above, runs, level, alpha) == "refuted"
    verdict: Verdict = "violation" if refuted else "no_violation_found"
    return replace(made, verdict=verdict, above=above, largest=largest)
