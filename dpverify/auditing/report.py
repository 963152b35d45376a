"""What an audit of one mechanism found, as people and programs read it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from textwrap import indent
from typing import Any, Protocol

from dpverify._axes import axes_or_new
from dpverify.auditing.finding import Finding, Verdict, combined
from dpverify.auditing.formatting import at_least, jsonable, number
from dpverify.auditing.pair_text import pair_lines
from dpverify.visible import escaped

__all__ = ["Report", "Reported"]

_MEANINGS: Mapping[str, str] = {
    "exhaustive": "exact probabilities of all outputs are further apart than the claim allows",
    "grey-box": "the noise asked for doesn't cover what changes without it, as fresh draws confirm",
    "frozen-outputs": "the code breaks a declaration of its own, or its calls lose too much",
    "determinism": "the noise isn't fresh, or the behaviour shows which neighbour it was",
    "precision": "low bits of the floats show which neighbour it was, whatever the scale",
    "white-box": "outputs of large likelihood ratio are too frequent for the claim",
    "black-box": "some outputs are too frequent at one neighbour for the claim",
    "trade-off": "an attacker tells the neighbours apart better than the claim allows",
    "sequential": "bets against the claim, output by output, have won too much",
}


class Reported(Protocol):
    """What reporters need: a report of a mechanism, or of who bounds one."""

    @property
    def mechanism(self) -> str:
        """Its name, or that of who bounds one."""
        ...

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, one thing each."""
        ...

    @property
    def failed(self) -> tuple[str, ...]:
        """What couldn't be audited, each in a sentence."""
        ...

    @property
    def replay(self) -> str:
        """The command, or the Python code, that repeats it."""
        ...

    @property
    def head(self) -> str:
        """Who was audited, with the verdict, in two lines."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit of one mechanism found.

    Attributes
    ----------
    mechanism : its name
    claim : the claimed ε, and the δ at which it is claimed and bounded: the claim's own if it is a
        point; of a whole curve one of its points, the rest of which is audited too
    alpha : probability with which a true claim is accused by any of the findings
    findings : of all kinds, in the order of `ATTACKS`
    failed : pairs at which the mechanism couldn't be drawn from, each in a sentence
    searched : among which pairs the worst was searched for, and at how many of them the mechanism
        couldn't be drawn from; empty where none was
    replay : the command, or the Python code, that repeats it
    notes : what releases do beside giving an output (they print, they write a file), which no audit
        looks at; a sentence each
    """

    mechanism: str
    claim: tuple[float, Fraction]
    alpha: float
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    replay: str
    searched: str = ""
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        verdict = combined(self.findings)
        failed = self.failed or any(finding.failed for finding in self.findings)
        return "inconclusive" if failed and verdict != "violation" else verdict

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that refute the claim."""
        return tuple(finding for finding in self.findings if finding.verdict == "violation")

    @property
    def epsilon_lower(self) -> float:
        """Lower confidence limit of ε at the claimed δ: the largest of all findings, or 0."""
        return max((finding.epsilon_lower or 0.0 for finding in self.findings), default=0.0)

    @property
    def head(self) -> str:
        """Mechanism, verdict and claim, in two lines."""
        epsilon, delta = self.claim
        return (
            f"{self.mechanism}: {self.verdict.replace('_', ' ')}, at level {self.alpha:g}\n"
            f"  claim: epsilon {epsilon:.6g} at delta {number(delta)}"
        )

    def __str__(self) -> str:
        """The verdict, what shows it, what would have been found, and the replay.

        Where the claim is refuted, only what refutes it is printed, pair by pair, so that a screen
        holds it; the other kinds have a line each. Where it isn't, each kind's largest bound comes
        with its power, which is then what a reader wants to know; `findings` has the others.
        """
        lines = [self.head]
        lines += _violations(self) if self.violations else []
        lines += [f"  not audited: {note}" for note in self.notes]
        remarks = dict.fromkeys(finding.remark for finding in self.findings if finding.remark)
        lines += [f"  remark: {remark}" for remark in remarks]
        lines += [f"  could not be audited: {reason}" for reason in self.failed[:1]]
        if len(self.failed) > 1:
            more = len(self.failed) - 1
            lines.append(f"  could not be audited {more} times more, on other draws")
        lines += [] if self.violations else _strongest(self)
        lines += [f"  searched: {self.searched}"] if self.searched else []
        several = "\n" in self.replay
        replay = "\n" + indent(self.replay, "    ") if several else f" {self.replay}"
        return escaped("\n".join([*lines, f"  replay:{replay}"]), lines=True)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def plot(self, axes: Any = None) -> Any:
        """Draw each kind's largest lower bound on ε beside the claim; return matplotlib's axes.

        Parameters
        ----------
        axes : where to draw; new ones by default

        Raises
        ------
        MissingExtraError
            If matplotlib isn't installed.
        """
        axes = axes_or_new(axes)
        claimed, delta = self.claim
        bounds = {finding.audit: 0.0 for finding in self.findings}
        for finding in self.findings:
            bounds[finding.audit] = max(bounds[finding.audit], finding.epsilon_lower or 0.0)
        broken = {finding.audit for finding in self.violations}
        reach = 1.2 * max(x for x in (claimed, *bounds.values(), 0.1) if math.isfinite(x))
        colours = ["#d55e00" if kind in broken else "#0072b2" for kind in bounds]
        bars = axes.barh([*bounds], [min(x, reach) for x in bounds.values()], color=colours)
        labels = [at_least(bound, ".3g") if bound else "no bound" for bound in bounds.values()]
        axes.bar_label(bars, labels, padding=3)
        axes.axvline(min(claimed, reach), color="black", linestyle="--", label="claimed")
        axes.invert_yaxis()
        axes.set(
            xlim=(0, 1.15 * reach),
            xlabel=f"ε at δ = {number(delta)}: lower bounds, and the claim",
            title=f"{self.mechanism}: {self.verdict.replace('_', ' ')}",
        )
        axes.legend()
        return axes

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types; an infinity, which JSON lacks, is the string "inf"."""
        epsilon, delta = self.claim
        return {
            "mechanism": self.mechanism,
            "verdict": self.verdict,
            "claim": {"epsilon": jsonable(epsilon), "delta": float(delta)},
            "alpha": self.alpha,
            "epsilon_lower": jsonable(self.epsilon_lower),
            "failed": list(self.failed),
            "searched": self.searched,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "replay": self.replay,
        }


def _strongest(report: Report) -> list[str]:
    """Of each kind and verdict the finding with the largest bound, and how many there are."""
    groups: dict[tuple[str, Verdict], list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault((finding.audit, finding.verdict), []).append(finding)
    texts = []
    for findings in groups.values():
        best = max(findings, key=lambda finding: finding.epsilon_lower or 0.0)
        head, rest = str(best).split("\n", 1)
        which = "with the largest bound" if best.epsilon_lower else "the first"
        count = f", {len(findings)} times; {which}:" if len(findings) > 1 else ""
        texts.append(f"{head}{count}\n{rest}")
    return texts


def _violations(report: Report) -> list[str]:
    violations = report.violations
    kinds = list(dict.fromkeys(finding.audit for finding in violations))
    width = max(map(len, kinds))
    lines = ["  refuted by", *(f"    {kind:{width}}  {_MEANINGS[kind]}" for kind in kinds)]
    largest = max(violations, key=lambda finding: finding.epsilon_lower or 0.0)
    if largest.epsilon_lower:
        lines.append(f"  epsilon is at least {at_least(largest.epsilon_lower)}, by {largest.audit}")
    by_pair: dict[str, list[Finding]] = {}
    for finding in violations:
        by_pair.setdefault("" if finding.pair is None else finding.pair.name, []).append(finding)
    for findings in by_pair.values():
        pair = findings[0].pair
        lines += ["  at any pair:"] if pair is None else [line[2:] for line in pair_lines(pair)]
        for finding in findings:
            where = f"{report.mechanism}, at the pair “{pair.name}”: " if pair else ""
            lines += [
                f"    {finding.audit}, {finding.level_text}:",
                f"      {finding.statement.removeprefix(where)}",
            ]
    others = Counter(
        f"{finding.audit}: {finding.verdict.replace('_', ' ')}"
        for finding in report.findings
        if finding.verdict != "violation"
    )
    return lines + [f"  {kind}" + (f", {n} times" if n > 1 else "") for kind, n in others.items()]
