"""What every audit reports: a verdict with its evidence, its level and the line that replays it.

A verdict is never "passed". A finding with a level α′ reports a violation of a true claim with
probability at most α′. One without a level is certain, which only exact enumeration is: a few runs
of code prove nothing about its law. `combined` is the verdict of a whole family: the levels of its
findings add up to at most its α (Bonferroni, in shares fixed before anything is drawn). A kind that
has nothing to say (a mechanism outside its model) doesn't keep the others from a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dpverify.auditing.kinds import AuditKind
from dpverify.errors import DPVerifyError, DrawError, require
from dpverify.privacy import Pair

__all__ = ["AuditKind", "Finding", "Verdict", "combined", "shares", "undrawn"]

Verdict = Literal["violation", "no_violation_found", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one audit of one mechanism.

    Attributes
    ----------
    audit : its kind
    verdict : violation, no_violation_found or inconclusive
    statement : what was found, in one sentence for a person
    level : probability with which a true claim is accused; 0 for exact enumeration alone
    pair : the neighbours on which it rests, if on some
    epsilon_lower : lower confidence limit of ε at the claimed δ, if one is computed
    evidence : counts, probabilities and outputs that show it, by name
    power : what would have been found, by name
    failed : whether nothing could be said because the mechanism couldn't be drawn from
    replay : command or expression that repeats it
    """

    audit: AuditKind
    verdict: Verdict
    statement: str
    level: float = 0.0
    pair: Pair | None = None
    epsilon_lower: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    power: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    replay: str = ""


def undrawn(
    audit: AuditKind,
    error: DPVerifyError,
    *,
    level: float = 0.0,
    pair: Pair | None = None,
    replay: str = "",
) -> Finding:
    """Of an audit that couldn't be run: why, and that nothing can be said."""
    return Finding(
        audit=audit,
        verdict="inconclusive",
        statement=f"Could not be audited: {error}",
        level=level,
        pair=pair,
        failed=isinstance(error, DrawError),
        replay=replay,
    )


def combined(findings: Iterable[Finding]) -> Verdict:
    """A violation if one was found; inconclusive if nothing could be said; else none was found."""
    verdicts = {finding.verdict for finding in findings}
    if "violation" in verdicts:
        return "violation"
    return "no_violation_found" if "no_violation_found" in verdicts else "inconclusive"


def shares(alpha: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Levels that add up to at most alpha, in proportion to the weights.

    Raises
    ------
    ParameterError
        If alpha isn't in (0, 1), or a weight is negative or all are 0.
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(all(weight >= 0 for weight in weights.values()), "weights", weights, "at least 0")
    total = sum(weights.values())
    require(total > 0, "weights", weights, "not all 0")
    # Rounded down so that no sum of doubles passes alpha.
    return {name: alpha * weight / total * (1 - 1e-12) for name, weight in weights.items()}
