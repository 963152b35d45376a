"""One audit of one mechanism: every kind that applies, at one level.

**Level.** α is split in advance among the kinds that run (`findings.shares`), and within a kind
among its pairs, so that by Bonferroni a true claim is accused with probability at most α over all
of them. Nearly all goes to the strongest attack, which then finds a bug with hardly less power than
the test of the best event has that is known beforehand; what the others look for shows at small
levels too. Exhaustive checks draw nothing and need no share.

**What applies.** The likelihood-ratio attack where the mechanism has one, else the attack on
outputs; trade-off, sequential, precision and determinism beside either; exhaustive where the
outputs are few; grey-box wherever the audit's words decide what is drawn, which is inconclusive
outside its model and leaves the report's verdict to the others. Where the guarantee is over the
draw of public randomness, releases at one draw may differ by more than is claimed, so only the
white-box attack is made, which draws it anew each time.
Profiles leave out the precision of doubles: trial draws then say whether all outputs are whole
numbers, which have it audited, and no violation is reported if a counted one isn't. Trials are no
counted draws, so the levels of what they let run add up to α whatever they were.

**Where.** At the pairs that are given, else at the mechanism's own worst pairs. Where it names
none, or if asked, pairs are searched for (`search`) with training draws: the audit is then made at
the one that was found and at those that are known, or else at the first candidate of all, which is
the adjacency's extreme point near zero, where floating point shows most.

**Bad input.** A few releases at every pair come first. A pair at which they fail is left out of all
kinds but grey-box and determinism, which count failures and shapes as they count outputs. It makes
the whole report inconclusive, unless something shows a violation; and so does a mechanism that
fails later, in any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import cloudpickle
import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.finding import (
    Finding,
    Verdict,
    combined,
    shares,
    undrawn,
)
from dpverify.auditing.kinds import KINDS, AuditKind, Omittable
from dpverify.auditing.neighbours import extreme_pairs, require_known
from dpverify.auditing.outputs.draws import both_sides, named, over_the_draw, whole
from dpverify.auditing.outputs.journal import (
    AuditJournal,
    fingerprint,
    from_plain,
    pair_from_plain,
    pair_plain,
    to_plain,
)
from dpverify.auditing.outputs.memory import constant, copier, remembers
from dpverify.auditing.runners import RUNNERS, Plan, Space
from dpverify.auditing.search import Searched
from dpverify.auditing.search import search as search_pairs
from dpverify.auditing.statistics.claim_test import floor
from dpverify.data.adjacency import Adjacency, Edge
from dpverify.data.domain import Box, is_sparse, shape_of
from dpverify.errors import (
    ClusterError,
    DPVerifyError,
    DrawError,
    ParameterError,
    RecordsError,
    require,
)
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Exhaustive, Mechanism, Pair, WhiteBox
from dpverify.visible import raised, shown

__all__ = ["KINDS", "Report", "applicable", "audit", "fitting_delta"]

_WEIGHTS: dict[str, float] = {
    "grey-box": 1,
    "white-box": 36,
    "black-box": 36,
    "trade-off": 1,
    "sequential": 1,
    "precision": 1,
    "determinism": 1,
}
_WITH_FAILURES = ("determinism", "grey-box")  # kinds to which a failure may tell something
_USUAL = Fraction(1, 10**6)  # the δ at which ε of a whole curve is bounded, if it can be
_TRIALS = 3  # releases on each side of each pair before anything is counted
_FEW_OUTPUTS = 6  # values of a release that is small enough to be enumerated unasked


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit of one mechanism found.

    Attributes
    ----------
    mechanism : its name
    claim : the claimed ε, and the δ at which it is claimed and bounded: the claim's own if it is a
        point; of a whole curve one of its points, the rest of which is audited too
    alpha : probability with which a true claim is accused by any of the findings
    findings : of all kinds, in the order of `KINDS`
    failed : pairs at which the mechanism couldn't be drawn from, each in a sentence
    searched : among which pairs the worst was searched for, and at how many of them the mechanism
        couldn't be drawn from; empty where none was
    replay : the line that repeats it
    """

    mechanism: str
    claim: tuple[float, Fraction]
    alpha: float
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    replay: str
    searched: str = ""

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        found = combined(self.findings)
        failed = self.failed or any(finding.failed for finding in self.findings)
        return "inconclusive" if failed and found != "violation" else found

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
    without: Iterable[Omittable] = (),
    pairs: Sequence[Pair] | None = None,
    search: bool | None = None,
    workers: int = -1,
    time_limit: float = 10.0,
    replay: str = "",
    journal: AuditJournal | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit a mechanism's claim.

    Parameters
    ----------
    mechanism : anything with `release`, `adjacency` and `privacy`
    alpha : level of the whole report, in (0, 1)
    delta : at which ε is bounded, exactly; by default the one of `fitting_delta`
    draws : counted on each side of each pair by each kind
    seed : of the replayable randomness
    kinds : of `KINDS`; by default those that apply
    without : kinds that are left out unless `kinds` asks for them; "precision-of-doubles" leaves
        precision out unless all outputs are whole numbers
    pairs : neighbours; by default the mechanism's own worst pairs, else those of a search
    search : whether to search for a worse pair beside those, in the mechanism's `domain` (None for
        all numbers) among data sets of its `rows` records of `attributes` values; what it doesn't
        say is that of its pairs; by default where it names no pairs
    workers : processes, −1 for all cores, no effect on the result; with 1 the mechanism never
        leaves this process
    time_limit : seconds that one release may take
    replay : the line that repeats the audit, for the report; by default a call of this function
    journal : keeps what was found, so that a killed audit goes on where it was
    progress : told what runs

    Raises
    ------
    ParameterError
        If a value is outside its domain, a pair isn't one of neighbours, or a kind is asked for
        that can't be run on this mechanism.
    ConfigurationError
        If the journal is that of another audit.
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(draws >= 20, "draws", draws, "at least 20")
    require(time_limit > 0, "time_limit", time_limit, "positive")
    without = tuple(without)
    parts = ("release", "adjacency", "privacy")
    claims = all(hasattr(mechanism, part) for part in parts) and not isinstance(mechanism, type)
    rule = "an object with `release`, `adjacency` and `privacy`"
    require(claims, "mechanism", repr(mechanism), rule, "Or adapt a function.")
    chosen = applicable(mechanism, kinds, without=without)
    only_whole = kinds is None and "precision-of-doubles" in without and "precision" in chosen
    curve = _claim(mechanism)
    at = fitting_delta(curve) if delta is None else delta
    claimed = claimed_epsilon(curve, at)
    require(math.isfinite(claimed), "delta", at, "one at which the claim has a finite epsilon")
    known = _known(mechanism, pairs)
    searching = search or (search is None and not known)
    require(not (searching and over_the_draw(mechanism)), "search", True, "left out over the draw")
    identity = {
        "mechanism": f"{named(mechanism)} ({fingerprint(mechanism)})",
        "alpha": repr(alpha),
        "delta": str(at),
        "draws": str(draws),
        "seed": str(seed),
        "kinds": ", ".join(chosen) + (" of whole numbers" if only_whole else ""),
        "pairs": fingerprint([(pair.name, pair.record, pair.neighbour) for pair in known]),
        "search": str(bool(searching)),
    }

    def kept(
        step: str, make: Callable[[], Any], done: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        return (journal or AuditJournal()).kept(identity, step, make, done=done)

    copied = copier(mechanism)
    searched = ""
    space = _space(mechanism, known) if searching else None
    if space is not None:
        progress("search")
        held = kept(
            "search",
            lambda: _searched(
                mechanism,
                known,
                space,
                delta=at,
                draws=draws,
                seed=seed,
                workers=workers,
                time_limit=time_limit,
            ),
            done=lambda held: not held["failed"],
        )
        own = {pair.name: pair for pair in known}
        known = [
            own[each] if isinstance(each, str) else pair_from_plain(each) for each in held["pairs"]
        ]
        searched = held["searched"]
    require(bool(known), "pairs", "missing", f"given, as {named(mechanism)} names none")
    trials = kept("trials", lambda: _trials(mechanism, known, copied, seed, time_limit))
    unfit, remembering = trials["unfit"], trials["remembers"]
    fit = [pair for pair in known if pair.name not in unfit]
    failed = (*unfit.values(), *remembering)
    if only_whole and not trials["whole"]:
        chosen = tuple(kind for kind in chosen if kind != "precision")
    if remembering:
        chosen = ()
    weights = {str(kind): _WEIGHTS[kind] for kind in chosen if kind in _WEIGHTS}
    levels = shares(alpha, weights) if weights else {}
    plan = Plan(
        mechanism=mechanism,
        pairs=fit,
        known_pairs=known,
        space=space,
        own_pairs=pairs is None and not searching and not failed,
        delta=at,
        draws=draws,
        seed=seed,
        workers=workers,
        time_limit=time_limit,
        levels=levels,
        only_whole=only_whole,
    )
    findings: list[Finding] = []
    for kind in chosen if fit else (kind for kind in chosen if kind in _WITH_FAILURES):
        progress(kind)
        found = kept(
            kind,
            lambda kind=kind: to_plain(_ran(kind, plan), known),  # type: ignore[misc]
            done=lambda found: not any(finding["failed"] for finding in found),
        )
        findings += from_plain(found, known)
    line = (
        f"audit({named(mechanism)}, alpha={alpha}, delta=Fraction('{at}'), draws={draws}, "
        f"seed={seed}, {f'{without=}' if only_whole else f'kinds={chosen}'})"
    )
    if getattr(mechanism, "replayable", True) is False:
        line += "  # draws its own randomness: a second run gives other draws"
    return Report(
        mechanism=named(mechanism),
        claim=(claimed, at),
        alpha=alpha,
        findings=tuple(findings),
        failed=failed,
        searched=searched,
        replay=replay or line,
    )


def _claim(mechanism: Mechanism) -> PrivacyCurve:
    """What the mechanism's own code says that it promises."""
    rule = "a privacy curve, with `delta_at` and `epsilon_at`"
    try:
        curve = mechanism.privacy()
    except DPVerifyError:
        raise
    except Exception as error:
        raise ParameterError("privacy()", f"it raised {raised(error)}", rule) from error
    whole = hasattr(curve, "delta_at") and hasattr(curve, "epsilon_at")
    require(whole, "privacy()", shown(curve), rule)
    return curve


def _ran(kind: AuditKind, plan: Plan) -> list[Finding]:
    try:
        return RUNNERS[kind](plan)
    except ClusterError:  # says nothing of the mechanism
        raise
    except DPVerifyError as error:
        return [undrawn(kind, error, level=plan.levels.get(kind, 0.0))]


def fitting_delta(curve: PrivacyCurve) -> Fraction:
    """The δ at which to bound ε where nobody names one.

    Of a point, its own. Of a whole curve, all of which is audited whatever this is: 0 where it
    promises pure differential privacy, else 10⁻⁶, or 10⁻⁶ above the δ that it never falls below.
    """
    if isinstance(curve, ApproxDP):
        return curve.delta
    for delta in (Fraction(0), _USUAL, floor(curve) + _USUAL):
        with suppress(ParameterError):  # some refuse a delta at which they promise nothing
            if math.isfinite(claimed_epsilon(curve, delta)):
                return delta
    raise ParameterError("claim", curve, "finite at some delta", "Name the delta.")


def applicable(
    mechanism: Mechanism,
    kinds: Iterable[AuditKind] | None = None,
    *,
    without: Iterable[Omittable] = (),
) -> tuple[AuditKind, ...]:
    """Kinds of audit that are run on a mechanism: those asked for, or all that suit it.

    Where none is asked for, those `without` which it is audited are left out.

    Raises
    ------
    ParameterError
        If one is asked for that can't be run on it, or none applies.
    """
    white = isinstance(mechanism, WhiteBox)
    possible = set(KINDS)
    if not white:
        possible.discard("white-box")
    if not isinstance(mechanism, Exhaustive):
        possible.discard("exhaustive")
    if over_the_draw(mechanism):
        possible &= {"white-box"}
    if kinds is None:
        if white:
            possible.discard("black-box")
        if "exhaustive" in possible and not _few_outputs(mechanism):
            possible.discard("exhaustive")
        if getattr(mechanism, "replayable", True) is False:  # nothing that it draws is recorded
            possible.discard("grey-box")
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


def _known(mechanism: Any, pairs: Sequence[Pair] | None) -> Sequence[Pair]:
    """Pairs that are given, or that the mechanism names."""
    if pairs is None:
        own = tuple(mechanism.worst_pairs()) if hasattr(mechanism, "worst_pairs") else ()
        for pair in own:
            _require_neighbours(mechanism, pair)
        return own
    require(isinstance(pairs, Sequence) and bool(pairs), "pairs", pairs, "at least one, in a list")
    for pair in pairs:
        _require_meant(mechanism, pair)
    names = [pair.name for pair in pairs]
    require(len(set(names)) == len(names), "pairs", names, "of different names")
    return tuple(pairs)


def _require_meant(mechanism: Any, pair: Pair) -> None:
    """Refuse a pair that the mechanism isn't one of, or whose sides are no neighbours."""
    require(isinstance(pair, Pair), "pair", pair, _PAIR)
    name, sides = repr(pair.name), (pair.record, pair.neighbour)
    adjacency: Any = mechanism.adjacency
    domain: Any = getattr(mechanism, "domain", None)
    if hasattr(mechanism, "admit"):
        for side in sides:
            mechanism.admit(side)
    elif isinstance(adjacency, Adjacency):
        shapes = [shape_of(side) for side in sides]
        rule = "of two data sets of shape (n, p), a row each record"
        flat = all(len(shape) == 2 for shape in shapes)
        require(flat, "pair", f"{name} of shapes {shapes}", rule)
    _require_neighbours(mechanism, pair)
    if domain is not None:
        try:
            for side in sides:
                domain.admit(side)
        except RecordsError as error:
            raise ParameterError("pair", name, f"in the declared domain: {error}") from None


_PAIR = "a Pair(name=…, record=…, neighbour=…)"


def _require_neighbours(mechanism: Any, pair: Pair) -> None:
    """Refuse a pair, also of the mechanism's own, whose sides aren't two neighbours."""
    require(isinstance(pair, Pair), "pair", pair, _PAIR)
    name, sides = repr(pair.name), (pair.record, pair.neighbour)
    printable = isinstance(pair.name, str) and pair.name.isprintable()
    require(printable, "pair", name, "named by printable characters")
    adjacency: Any = mechanism.adjacency
    try:
        related = [bool(adjacency.relates(*order)) for order in (sides, sides[::-1])]
    except Exception as error:  # whatever an object of the caller's raises
        reason = f"one whose `relates` says whether the sides of {name} are neighbours: {error!r}"
        raise ParameterError("adjacency", adjacency, reason) from error
    require(any(related), "pair", name, f"one of neighbours: {adjacency.unit}")
    require(
        all(related),
        "adjacency",
        adjacency,
        f"the same in both orders, in which an audit looks at the pair {name}",
        "Let `relates(a, b)` hold where `relates(b, a)` does.",
    )
    require(
        pair.record is not pair.neighbour and not _equal(*map(_dense, sides)),
        "pair",
        name,
        "of two different data sets, and these are equal",
        "Copy one before you change it.",
    )


def _equal(first: Any, second: Any) -> bool:
    """Whether both surely hold the same."""
    with suppress(Exception):  # whatever entries of another kind say to being compared
        if all(isinstance(data, np.ndarray | list | tuple) for data in (first, second)):
            return np.array_equal(first, second)
        return bool(cloudpickle.dumps(first) == cloudpickle.dumps(second))
    return False


def _dense(data: Any) -> Any:
    return data.toarray() if is_sparse(data) else data


def _space(mechanism: Any, known: Sequence[Pair]) -> Space:
    """What the data sets of a search are made of: as the mechanism says, else as in its pairs."""
    require_known(mechanism.adjacency)
    alone = getattr(mechanism, "of", None) == "record"
    for pair in known:
        matrix = isinstance(pair.record, np.ndarray) or is_sparse(pair.record)
        rule = f"left out, as it makes matrices of numbers and {pair.name!r} holds other data"
        require(alone or matrix, "search", True, rule)
    shapes = [(1, *shape_of(pair.record))[-2:] for pair in known]
    attributes = getattr(mechanism, "attributes", None) or next((p for _, p in shapes), 0)
    rows = getattr(mechanism, "rows", None) or tuple(dict.fromkeys(n for n, _ in shapes))
    if alone or isinstance(mechanism.adjacency, Edge):
        rows = (1,)
    for what, said in (("number of attributes", attributes), ("number of rows", rows)):
        require(
            bool(said),
            "pairs",
            "missing",
            f"given, as {named(mechanism)} names none and doesn't say its {what}",
            "Or declare `attributes` (p) and, for a data set, `rows` (n, one or several), and "
            "pairs are searched for.",
        )
    return Space(getattr(mechanism, "domain", None), int(attributes), tuple(rows))


def _searched(
    mechanism: Any, known: Sequence[Pair], space: Space, **options: Any
) -> dict[str, Any]:
    """What is audited after a search, among what it searched, and whether all failed.

    The worst pair that was found; and those that are known, or else the first candidate of all.
    """
    domain, attributes, rows = space
    try:
        extreme = extreme_pairs(mechanism.adjacency, domain, attributes, rows=rows)
    except ParameterError:
        if not known:
            raise
        extreme = ()
    options |= {"domain": domain, "attributes": attributes, "rows": rows}
    found = search_pairs(mechanism, (*known, *extreme), **options)
    names = {pair.name for pair in known}
    drawable = (pair for pair in found.candidates if pair.name not in found.failed)
    others = known or (next(drawable, found.candidates[0]),)
    best = found.pair or others[0]
    while best.name in names and not any(best is pair for pair in known):
        best = replace(best, name=f"{best.name}, found")
    pairs = [best, *(pair for pair in others if pair is not best)]
    return {
        "pairs": [pair.name if pair.name in names else pair_plain(pair) for pair in pairs],
        "searched": _told(mechanism, space, found),
        "failed": bool(found.failed),
    }


def _told(mechanism: Any, space: Space, found: Searched) -> str:
    """Among which pairs was searched, in words."""
    graph = isinstance(mechanism.adjacency, Edge)
    sizes = (space.attributes,) if graph else space.rows
    shape = f"({' or '.join(map(str, sizes))}, {space.attributes})"
    values = "any numbers" if space.domain is None else f"in {space.domain}"
    if isinstance(space.domain, Box):
        values = "in [{:g}, {:g}]".format(*space.domain.ends)
    told = f"{len(found.candidates)} pairs of shape {shape}, {values}"
    if found.failed:
        first = next(iter(found.failed.values()))
        told += f"; {len(found.failed)} of them could not be drawn from: {first}"
    return told


def _trials(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    copied: Callable[[], Mechanism] | None,
    seed: int,
    time_limit: float,
) -> dict[str, Any]:
    """Why pairs can't be drawn from, by name; whether draws are kept; whether all are whole."""
    unfit, still, all_whole = {}, [], True
    for pair in pairs:
        try:
            sides = both_sides(
                mechanism,
                pair,
                draws=_TRIALS,
                seed=seed,
                kind="trial",
                workers=1,
                time_limit=time_limit,
            )
        except DrawError as error:
            unfit[pair.name] = str(error)
            continue
        all_whole = all_whole and all(whole(side) for side in sides)
        if any(constant(side).any() for side in sides):
            still.append(pair)
    told = [
        remembers(mechanism, pair, copied, seed=seed, time_limit=time_limit)
        for pair in still
        if copied
    ]
    return {
        "unfit": unfit,
        "remembers": [text for text in told if text][:1],
        "whole": all_whole,
    }
