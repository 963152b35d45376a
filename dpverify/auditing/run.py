"""One audit of one mechanism: every kind that applies, at one level.

**Level.** α is split in advance among the kinds that run (`findings.shares`), and within a kind
among its pairs, so that by Bonferroni a true claim is accused with probability at most α over all
of them. Exhaustive and grey-box checks draw nothing and need no share.

**What applies.** The likelihood-ratio attack where the mechanism has one, else the attack on
outputs; sequential, precision and determinism beside either; exhaustive where the outputs are few;
grey-box always, which is inconclusive outside its model. Where the guarantee is over the draw of
public randomness, releases at one draw may differ by more than is claimed, so only the white-box
attack is made, which draws it anew each time.

**Bad input.** A few releases at every pair come first. A pair at which they fail is left out and
makes the whole report inconclusive, unless another pair shows a violation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpverify.auditing.draws import DrawError, both_sides, named
from dpverify.auditing.findings import Finding, Verdict, combined, shares
from dpverify.auditing.kinds import KINDS, AuditKind
from dpverify.auditing.runners import RUNNERS, Plan
from dpverify.errors import DPVerifyError, ParameterError, require
from dpverify.guarantee import PrivacyCurve
from dpverify.mechanism import Exhaustive, Mechanism, Pair, WhiteBox

__all__ = ["KINDS", "Report", "applicable", "audit", "fitting_delta"]

_WEIGHTS: dict[str, float] = {
    "white-box": 4,
    "black-box": 4,
    "sequential": 1,
    "precision": 1,
    "determinism": 1,
}
_TRIALS = 3  # releases on each side of each pair before anything is counted
_FEW_OUTPUTS = 6  # values of a release that is small enough to be enumerated unasked


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit of one mechanism found.

    Attributes
    ----------
    mechanism : its name
    claim : the claimed ε and δ at which ε is bounded
    alpha : probability with which a true claim is accused by any of the findings
    findings : of all kinds, in the order of `KINDS`
    failed : pairs at which the mechanism couldn't be drawn from, each in a sentence
    replay : the line that repeats it
    """

    mechanism: str
    claim: tuple[float, Fraction]
    alpha: float
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    replay: str

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        found = combined(self.findings)
        return "inconclusive" if self.failed and found != "violation" else found

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that refute the claim."""
        return tuple(finding for finding in self.findings if finding.verdict == "violation")


def audit(
    mechanism: Mechanism,
    *,
    alpha: float = 0.01,
    delta: Fraction | None = None,
    draws: int = 10_000,
    seed: int = 0,
    kinds: Iterable[AuditKind] | None = None,
    without: Iterable[AuditKind] = (),
    pairs: Sequence[Pair] | None = None,
    workers: int = -1,
    time_limit: float = 10.0,
    replay: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit a mechanism's claim.

    Parameters
    ----------
    mechanism : anything with `release`, `adjacency` and `privacy`
    alpha : level of the whole report, in (0, 1)
    delta : at which ε is bounded; by default the one of `fitting_delta`
    draws : counted on each side of each pair by each kind
    seed : of the replayable randomness
    kinds : of `KINDS`; by default those that apply
    without : kinds that are left out unless `kinds` asks for them
    pairs : neighbours; by default the mechanism's own worst pairs
    workers : processes, −1 for all cores, no effect on the result; with 1 the mechanism never
        leaves this process
    time_limit : seconds that one release may take
    replay : the line that repeats the audit, for the report; by default a call of this function
    progress : told what runs

    Raises
    ------
    ParameterError
        If a value is outside its domain, a pair isn't one of neighbours, or a kind is asked for
        that can't be run on this mechanism.
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(draws >= 20, "draws", draws, "at least 20")
    require(time_limit > 0, "time_limit", time_limit, "positive")
    chosen = applicable(mechanism, kinds, without=without)
    curve = mechanism.privacy()
    at = fitting_delta(curve) if delta is None else delta
    claimed = curve.epsilon(at).upper
    require(math.isfinite(claimed), "delta", at, "one at which the claim has a finite epsilon")
    fit, failed = _trials(mechanism, _pairs(mechanism, pairs), seed, time_limit)
    weights = {str(kind): _WEIGHTS[kind] for kind in chosen if kind in _WEIGHTS}
    levels = shares(alpha, weights) if weights else {}
    plan = Plan(
        mechanism=mechanism,
        pairs=fit,
        own_pairs=pairs is None and not failed,
        delta=at,
        draws=draws,
        seed=seed,
        workers=workers,
        time_limit=time_limit,
        levels=levels,
    )
    findings: list[Finding] = []
    for kind in chosen if fit else ():
        progress(kind)
        try:
            findings += RUNNERS[kind](plan)
        except DPVerifyError as error:
            findings.append(
                Finding(
                    audit=kind,
                    verdict="inconclusive",
                    statement=f"Could not be run on {named(mechanism)}: {error}",
                    level=levels.get(kind, 0.0),
                )
            )
    own = (
        f"audit({named(mechanism)}, alpha={alpha}, delta=Fraction('{at}'), draws={draws}, "
        f"seed={seed}, kinds={chosen})"
    )
    if getattr(mechanism, "replayable", True) is False:
        own += "  # draws its own randomness: a second run gives other draws"
    return Report(
        mechanism=named(mechanism),
        claim=(claimed, at),
        alpha=alpha,
        findings=tuple(findings),
        failed=tuple(failed),
        replay=replay or own,
    )


def fitting_delta(curve: PrivacyCurve) -> Fraction:
    """The δ at which to audit a claim that names none.

    0 where it promises pure differential privacy, else the least power of ten from 10⁻⁶ on at which
    it promises anything.
    """
    candidates = [Fraction(0)] + [Fraction(1, 10**power) for power in range(6, 0, -1)]
    for delta in candidates:
        with suppress(ParameterError):  # some refuse a delta at which they promise nothing
            if math.isfinite(curve.epsilon(delta).upper):
                return delta
    raise ParameterError("claim", curve, "finite at some delta up to 0.1", "Name the delta.")


def applicable(
    mechanism: Mechanism,
    kinds: Iterable[AuditKind] | None = None,
    *,
    without: Iterable[AuditKind] = (),
) -> tuple[AuditKind, ...]:
    """Kinds of audit that are run on a mechanism: those asked for, or all that suit it.

    Where none is asked for, those `without` which it is audited are left out.

    Raises
    ------
    ParameterError
        If one is asked for that can't be run on it, or none applies.
    """
    over_the_draw = hasattr(mechanism, "guarantee") and mechanism.guarantee().over_the_draw
    white = isinstance(mechanism, WhiteBox)
    possible = set(KINDS)
    if not white:
        possible.discard("white-box")
    if not isinstance(mechanism, Exhaustive):
        possible.discard("exhaustive")
    if over_the_draw:
        possible &= {"white-box"}
    if kinds is None:
        if white:
            possible.discard("black-box")
        if "exhaustive" in possible and not _few_outputs(mechanism):
            possible.discard("exhaustive")
        possible -= set(without)
        require(bool(possible), "mechanism", named(mechanism), "one that some audit applies to")
        return tuple(kind for kind in KINDS if kind in possible)
    asked = set(kinds)
    require(
        bool(asked) and asked <= possible,
        "kinds",
        ", ".join(sorted(asked)) or "none",
        f"among those that apply to {named(mechanism)}: "
        + ", ".join(kind for kind in KINDS if kind in possible),
    )
    return tuple(kind for kind in KINDS if kind in asked)


def _few_outputs(mechanism: Any) -> bool:
    return hasattr(mechanism, "shape") and math.prod(mechanism.shape(1)) <= _FEW_OUTPUTS


def _pairs(mechanism: Any, pairs: Sequence[Pair] | None) -> Sequence[Pair]:
    if pairs is None:
        require(
            hasattr(mechanism, "worst_pairs"),
            "pairs",
            "missing",
            f"given, as {named(mechanism)} names none",
        )
        return tuple(mechanism.worst_pairs())
    require(bool(pairs), "pairs", pairs, "at least one")
    for pair in pairs:
        related = mechanism.adjacency.relates(pair.record, pair.neighbour)
        require(related, "pair", repr(pair.name), f"one of neighbours: {mechanism.adjacency.unit}")
    names = [pair.name for pair in pairs]
    require(len(set(names)) == len(names), "pairs", names, "of different names")
    return tuple(pairs)


def _trials(
    mechanism: Mechanism, pairs: Sequence[Pair], seed: int, time_limit: float
) -> tuple[list[Pair], list[str]]:
    fit, failed = [], []
    for pair in pairs:
        try:
            both_sides(
                mechanism,
                pair,
                draws=_TRIALS,
                seed=seed,
                kind="trial",
                workers=1,
                time_limit=time_limit,
            )
        except DrawError as error:
            failed.append(str(error))
        else:
            fit.append(pair)
    return fit, failed
