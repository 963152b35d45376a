"""One audit of one mechanism: every kind that applies, at one level.

**Level.** α is split in advance among the kinds that run (`power.shares`), and within a kind among
its pairs, so that by Bonferroni a true claim is accused with probability at most α over all of
them. Nearly all of it goes to the strongest attack, which thereby has nearly the power of a test of
the best event at the full level. The other kinds look for bugs that show clearly, also at a small
level. Exhaustive checks draw nothing and need no share.

**What applies.** The likelihood-ratio attack where the mechanism has one, else the attack on
outputs; trade-off, sequential, precision and determinism beside either; exhaustive where the
outputs are few; grey-box wherever the audit's words decide what is drawn, which is inconclusive
outside its model and leaves the report's verdict to the others; frozen outputs where it is asked
for by name. Where the guarantee is over the draw of public randomness, releases at one draw may
differ by more than is claimed, so only the white-box attack is made, which draws it anew each time.
Profiles leave out the precision of doubles: precision is then audited only if all outputs of trial
draws are whole numbers, and no violation is reported if an output that is counted isn't. Trial
draws aren't counted, so that whatever they decide the levels add up to at most α.

**Where.** At the pairs that are given, else at the mechanism's own worst pairs. Where it names
none, or if asked, pairs are searched for (`search`) with training draws: the audit is then made at
the one that was found and at those that are known, or else at the first candidate of all, which is
the adjacency's extreme point near zero, where floating point shows most. One of the two is spare,
and audited for precision alone: the first training draws at both say which (`most_telling`). What
is looked at there is left out once the claim is refuted, and keeps its part of the level.

**Order.** The strongest attack comes first, and what it drew serves the others: trade-off,
sequential, precision and determinism look at the draws that it counted. Bonferroni's bound needs no
independence of kinds. Each is valid of these draws by itself: the pairs and the other kinds' events
are functions of draws that aren't counted, bets on two outputs are made by those before them, and
precision and determinism choose by the first part of the draws and count the rest.

**Bad input.** A few releases at every pair come first. An exception is an output like any other, so
a pair fails only where every release raises, on both sides and in 200 more draws, or where one is
late or ends its process. Such a pair is left out of all kinds but grey-box and determinism, and
makes the whole report inconclusive, unless something shows a violation; and so does a mechanism
that fails later, in any kind. An audit isn't begun if it would take longer than it may
(`AuditConfig.longest`) at the pace of the first releases; one that turns out to take longer is
ended, and is inconclusive.

**Slow releases.** Where pairs are searched for and a release takes 0.3 ms or more, the audit is
brief (`AuditConfig.brief`): training draws decide how many are needed, and attacks that are left
once the claim is refuted aren't made. The replay says so, and repeats it at any pace.

**Beside the outputs.** A few releases are watched: what they print, write or ask for is noted, and
where that depends on the data the report is inconclusive (`side_effects`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from attrs import evolve

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.attacks.black_box import most_telling
from dpverify.auditing.attacks.precision import PrecisionAttack
from dpverify.auditing.attacks.sequential import SequentialAttack
from dpverify.auditing.attacks.table import ATTACKS
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, undrawn
from dpverify.auditing.outputs.arrays import valued, whole
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.journal import (
    AuditJournal,
    fingerprint,
    from_plain,
    pair_from_plain,
    pair_plain,
    to_plain,
)
from dpverify.auditing.outputs.leaves import MOST
from dpverify.auditing.outputs.memory import constant, copier, remembers, shares_noise
from dpverify.auditing.outputs.samples import AlwaysRaisedError, over_the_draw, sample_pair
from dpverify.auditing.outputs.source_files import source_digest
from dpverify.auditing.replay import attack_code, audit_code, names_own
from dpverify.auditing.report import Report
from dpverify.auditing.search import Searched, search
from dpverify.auditing.settings import KINDS, OMITTABLE, AuditKind, Omittable
from dpverify.auditing.side_effects import made_alike, side_effects
from dpverify.auditing.spaces.base import Space
from dpverify.auditing.statistics.power import shares
from dpverify.auditing.targets.pairs import known_pairs, space_of
from dpverify.enclosure import Enclosure
from dpverify.errors import (
    PASSING,
    ClusterError,
    DPVerifyError,
    DrawError,
    ParameterError,
    require,
    require_known,
)
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.execution.progress import duration
from dpverify.guarantee import PrivacyCurve, claimed_epsilon, is_curve
from dpverify.privacy import Mechanism, Pair
from dpverify.visible import raised, shown

__all__ = ["Selection", "applicable", "run"]

_LEAST = 20  # draws
_TRIALS = 3  # releases on each side of each pair before anything is counted
_RAISED = 200  # where all of those raised
_RELEASES = 6  # for each draw: training ones too, of both sides
_FAST = 0.001  # seconds of a release, below which several are timed
_SLOW = 3e-4  # seconds of a release, from which on an audit with a search is brief
_LISTED = 3  # declarations that are named
_SOON = 60.0  # seconds, beyond which an audit says how long it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which attacks are made, and where.

    Attributes
    ----------
    kinds : of `KINDS`; by default those that apply
    without : kinds that are left out unless `kinds` asks for them; "precision-of-doubles" leaves
        out the audit of precision, unless all outputs are whole numbers
    pairs : neighbours; by default the mechanism's own worst pairs, else those of a search
    search : whether to search for a worse pair beside those, in the mechanism's `domain` (None for
        all numbers) among data sets of its `rows` records of `attributes` values, or of the sizes
        of its pairs where it doesn't state them; by default where it names no pairs
    """

    kinds: Iterable[AuditKind] | None = None
    without: Iterable[Omittable] = ()
    pairs: Sequence[Pair] | None = None
    search: bool | None = None


@usual_arithmetic()
def run(
    mechanism: Mechanism,
    config: AuditConfig,
    selection: Selection,
    *,
    replay: str = "",
    journal: AuditJournal | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit a mechanism's claim; for the arguments and the errors see `dpverify.audit`.

    Parameters
    ----------
    mechanism : anything with `release`, `adjacency` and `privacy`
    config, selection : how hard it tries, and which attacks are made where
    replay : the line that repeats the audit, for the report; by default a call of this function
    journal : keeps what was found, so that an interrupted audit resumes
    progress : told what runs
    """
    asked = _Asked.of(mechanism, config, selection)
    config, pairs, space = asked.config, asked.known, asked.space
    journal = journal or AuditJournal()
    source = {} if journal.path is None else {"source": source_digest(mechanism)}
    kept = partial(journal.kept, asked.identity | source)
    report = partial(
        Report,
        mechanism=display_name(mechanism),
        claim=asked.claim,
        alpha=config.alpha,
    )
    copied = copier(mechanism)
    pace = kept("pace", lambda: _pace(mechanism, pairs, space, config))
    if config.brief is None and space is not None and pace >= _SLOW:
        asked = replace(asked, config=evolve(config, brief=True))
        config = asked.config
    processes = (os.cpu_count() or 1) if config.workers == -1 else config.workers
    seconds = asked.releases * pace / processes
    report = partial(report, replay=replay or asked.code)
    if seconds > config.longest:
        return report(findings=(), failed=(_too_slow(mechanism, seconds, config),))
    if seconds > _SOON:
        progress(f"about {duration(seconds)} in all")
    searched, spare = "", frozenset[str]()
    if space is not None:
        progress("search")
        outcome = kept(
            "search",
            lambda: _searched(mechanism, asked.known, space, config),
            done=lambda outcome: not outcome["failed"],
        )
        own = {pair.name: pair for pair in asked.known}
        pairs = [
            own[each] if isinstance(each, str) else pair_from_plain(each)
            for each in outcome["pairs"]
        ]
        searched = outcome["searched"]
        if outcome.get("raises"):
            return report(findings=(), failed=(outcome["raises"],), searched=searched)
        spare = frozenset(outcome.get("spare", ()))  # of a journal that was begun before, none
    names_none = f"given, as {display_name(mechanism)} names none"
    require(bool(pairs), "pairs", "missing", names_none)
    trials = kept("trials", lambda: _trials(mechanism, pairs, copied, config))
    unfit, remembering = trials["unfit"], trials["remembers"]
    target = Target(mechanism, pairs, frozenset(unfit), space, spare)
    own_pairs = (selection.pairs is None and space is None) or names_own(target)
    told = not (remembering or trials.get("silent"))
    attacks = asked.attacks(whole=trials["whole"]) if told else []
    weights = {str(attack.name): attack.weight for attack in attacks if attack.weight}
    levels = shares(config.alpha, weights) if weights else {}

    target, telling = _told_apart(target, attacks, config, kept)

    def findings(attack: Attack, target: Target) -> list[Finding]:
        progress(attack.name)
        level = levels.get(attack.name, 0.0)
        target = target.at(telling) if telling and not attack.everywhere else target
        plain = kept(
            attack.name,
            lambda: to_plain(_findings(attack, target, config, level, own_pairs), pairs),
            done=lambda plain: not any(finding["failed"] for finding in plain),
        )
        return from_plain(plain, pairs)

    possible = [each for each in attacks if target.drawable or each.counts_failures]
    found: dict[str, list[Finding]] = {}
    for attack in sorted(possible, key=lambda each: -each.weight):
        found[attack.name] = findings(attack, target)
        if any(finding.verdict == "violation" for finding in found[attack.name]):
            target = replace(target, refuted=True)
            if config.brief:
                break
    return report(
        findings=tuple(finding for attack in possible for finding in found.get(attack.name, ())),
        failed=(*unfit.values(), *remembering, *trials["leaks"]),
        notes=(*trials["notes"], *_unchecked(mechanism, trials.get("declared", ()), attacks)),
        searched=searched,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What an audit was asked for, checked and settled before anything is drawn.

    Attributes
    ----------
    mechanism, selection : as they were given
    config : with the δ at which ε is bounded
    claim : the ε and δ that are claimed, at that δ
    kinds : attacks that are made
    only_whole : whether precision is audited only where all outputs are whole numbers
    known : the pairs that are given, else the mechanism's own
    space : of the data sets that a search draws; None where none is made
    """

    mechanism: Mechanism
    selection: Selection
    config: AuditConfig
    claim: tuple[float, Fraction]
    kinds: tuple[AuditKind, ...]
    only_whole: bool
    known: Sequence[Pair]
    space: Space | None

    @classmethod
    def of(cls, mechanism: Mechanism, config: AuditConfig, selection: Selection) -> _Asked:
        """Refuse what can't be audited so; for the errors see `dpverify.audit`."""
        require(config.draws >= _LEAST, "draws", config.draws, f"at least {_LEAST}")
        _require_mechanism(mechanism)
        left_out: Any = _names("without", selection.without, OMITTABLE)
        selection = replace(selection, without=left_out)
        kinds = applicable(mechanism, selection.kinds, without=selection.without)
        doubles = selection.kinds is not None or "precision-of-doubles" not in selection.without
        curve = _claim(mechanism)
        delta = config.delta_for(curve)
        claimed = claimed_epsilon(curve, delta)
        rule = "one at which the claim has a finite epsilon"
        require(math.isfinite(claimed), "delta", delta, rule)
        require(Enclosure.of_exact(delta).upper < 1, "delta", delta, "below 1 as a double")
        truth = selection.search is None or isinstance(selection.search, bool | np.bool)
        require(truth, "search", selection.search, "True, False or None")
        known = known_pairs(mechanism, selection.pairs)
        searching = selection.search or (selection.search is None and not known)
        fixed = not (searching and over_the_draw(mechanism))
        require(fixed, "search", True, "left out over the draw")
        return cls(
            mechanism=mechanism,
            selection=selection,
            config=evolve(config, delta=delta),
            claim=(claimed, delta),
            kinds=kinds,
            only_whole=not doubles and "precision" in kinds,
            known=known,
            space=space_of(mechanism, known) if searching else None,
        )

    @property
    def identity(self) -> dict[str, str]:
        """What a journal knows the audit by."""
        known = [(pair.name, pair.record, pair.neighbour) for pair in self.known]
        return {
            "mechanism": f"{display_name(self.mechanism)} ({fingerprint(self.mechanism)})",
            "alpha": repr(self.config.alpha),
            "delta": str(self.config.delta),
            "draws": str(self.config.draws),
            "seed": str(self.config.seed),
            "kinds": ", ".join(self.kinds) + (" of whole numbers" if self.only_whole else ""),
            "pairs": fingerprint(known),
            "search": str(self.space is not None),
        }

    @property
    def code(self) -> str:
        """Code that makes the same audit again."""
        config, selection = self.config, self.selection
        return audit_code(
            self.mechanism,
            alpha=config.alpha,
            delta=config.delta,
            draws=config.draws,
            seed=config.seed,
            kinds=None if self.only_whole else self.kinds,
            without=selection.without if self.only_whole else None,
            pairs=selection.pairs,
            search=selection.search,
            workers=None if config.workers == -1 else config.workers,
            brief=config.brief,
        )

    @property
    def releases(self) -> int:
        """About how many releases the audit makes."""
        each = _RELEASES // 2 if self.config.brief else _RELEASES
        alone = len(
            [kind for kind in self.kinds if kind != "sequential" and not ATTACKS[kind].shares]
        )
        together = max(len(self.known), 1) if len(self.kinds) > alone else 0
        return each * (alone + together + (self.space is not None)) * self.config.draws

    def attacks(self, *, whole: bool) -> list[Attack]:
        """Attacks of the kinds; `whole` says whether all outputs are whole numbers."""
        attacks: list[Attack] = [ATTACKS[kind] for kind in self.kinds]
        if "sequential" in self.kinds and any(attack.shares for attack in attacks):
            attacks[self.kinds.index("sequential")] = SequentialAttack(beside=True)
        if self.only_whole:
            audited: list[Attack] = [PrecisionAttack(only_whole=True)] if whole else []
            place = self.kinds.index("precision")
            attacks[place : place + 1] = audited
        return attacks


def _pace(
    mechanism: Mechanism, known: Sequence[Pair], space: Space | None, config: AuditConfig
) -> float:
    """Seconds a release; 0 where the first pair can't be drawn from, which trials tell."""
    here = evolve(config, workers=1)
    seconds = math.inf
    with suppress(ParameterError, DrawError):
        pair = known[0] if known or space is None else space.extremes(1)[0]
        for draws in (1, 1, 1, 16, 16, 16):  # a first one takes longer
            if draws > 1 and seconds > _FAST:
                break
            start = perf_counter()
            sample_pair(mechanism, pair, here, "pace", draws=draws)
            seconds = min(seconds, (perf_counter() - start) / (2 * draws))
        return seconds
    return 0.0


def _too_slow(mechanism: Mechanism, seconds: float, config: AuditConfig) -> str:
    draws = int(config.draws * config.longest / seconds)
    fewer = f"Ask for {draws} draws, or for fewer kinds" if draws >= _LEAST else "Ask for less"
    return (
        f"{display_name(mechanism)} takes so long that its audit would take about "
        f"{duration(seconds)}, and {duration(config.longest)} are allowed, 1,000 times the time "
        f"limit of {config.time_limit:g} s for one release. {fewer}, or raise the limit."
    )


def _require_mechanism(mechanism: Any) -> None:
    parts = ("release", "adjacency", "privacy")
    claims = all(hasattr(mechanism, part) for part in parts) and not isinstance(mechanism, type)
    rule = "an object with `release`, `adjacency` and `privacy`"
    require(claims, "mechanism", shown(mechanism), rule, "Or adapt a function.")


def _claim(mechanism: Mechanism) -> PrivacyCurve:
    """What the mechanism's own code says that it promises."""
    rule = "a privacy curve, with `delta_at` and `epsilon_at`, as dpv.Laplace(scale=2)"
    try:
        curve = mechanism.privacy()
    except (DPVerifyError, *PASSING):
        raise
    except BaseException as error:
        raise ParameterError("privacy()", f"it raised {raised(error)}", rule) from error
    require(is_curve(curve), "privacy()", shown(curve), rule)
    return curve


def _findings(
    attack: Attack, target: Target, config: AuditConfig, level: float, own: bool
) -> list[Finding]:
    """Of one attack, with the code that repeats it; where it can't be made, the reason."""
    config = config.at_level(level) if level else config
    code = attack_code(attack, target, config, own=own)
    try:
        return [replace(finding, replay=code) for finding in attack.run(target, config)]
    except ClusterError:  # says nothing of the mechanism
        raise
    except DPVerifyError as error:
        return [replace(undrawn(attack.name, error, level=level), replay=code)]


def _told_apart(
    target: Target, attacks: Sequence[Attack], config: AuditConfig, kept: Callable[..., Any]
) -> tuple[Target, str]:
    """Where one pair is spare: the target whose spare pair is the less telling one, and the other.

    Without a name where there is none, or none of these attacks trains.
    """
    trained = any(attack.trains for attack in attacks)
    if not target.spare or target.undrawable or not trained:
        return target, ""
    name = kept("telling", lambda: most_telling(target, config).name)
    others = frozenset(pair.name for pair in target.pairs if pair.name != name)
    return replace(target, spare=others), name


def _names(name: str, given: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """A list of known names."""
    listed = isinstance(given, Iterable) and not isinstance(given, str)
    require(listed, name, shown(given), "a list", f"Write {name}=[{shown(given)}].")
    names = tuple(given)
    for each in names:
        require_known(name, each, known)
    return names


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
    left_out = _names("without", without, OMITTABLE)
    possible = tuple(name for name, attack in ATTACKS.items() if attack.applies(mechanism))
    if kinds is None:
        chosen = tuple(k for k in possible if k not in left_out and ATTACKS[k].unasked(mechanism))
        rule = "one that some audit applies to"
        require(bool(chosen), "mechanism", display_name(mechanism), rule)
        return chosen
    asked = set(_names("kinds", kinds, KINDS))
    rule = f"among those that apply to {display_name(mechanism)}: {', '.join(possible)}"
    require(
        bool(asked) and asked <= set(possible), "kinds", ", ".join(sorted(asked)) or "none", rule
    )
    return tuple(kind for kind in possible if kind in asked)


def _searched(
    mechanism: Any, known: Sequence[Pair], space: Space, config: AuditConfig
) -> dict[str, Any]:
    """Search for a worse pair, and say what is audited, in what JSON can hold.

    Returns
    -------
    pairs : the worst that was found; then those that are known, by name, or else the first
        candidate that can be drawn from
    searched : among which pairs, in words
    spare : the name of that first candidate, where another one was found
    failed : whether some of them couldn't be drawn from
    raises : of what always raises the same, what and where
    """
    try:
        extreme = space.extremes()
    except ParameterError:
        if not known:
            raise
        extreme = ()
    found = search(mechanism, (*known, *extreme), space, config)
    names = {pair.name for pair in known}
    drawable = (pair for pair in found.candidates if pair.name not in found.failed)
    others = known or (next(drawable, found.candidates[0]),)
    best = found.pair or others[0]
    while best.name in names and not any(best is pair for pair in known):
        best = replace(best, name=f"{best.name}, found")
    pairs = [best, *(pair for pair in others if pair is not best)]
    return {
        "pairs": [pair.name if pair.name in names else pair_plain(pair) for pair in pairs],
        "searched": _told(space, found),
        "spare": [] if known or best is others[0] else [others[0].name],
        "failed": bool(found.failed),
        "raises": _raises(found),
    }


def _raises(found: Searched) -> str:
    """Where every release raised the same, that and the way out."""
    if not found.raised:
        return ""
    first, tried = next(iter(found.failed.values())), len(found.failed)
    return (
        f"{first} So did every other release, at all {tried} pairs that were tried. Give `pairs` "
        "at which it answers."
    )


def _told(space: Space, found: Searched) -> str:
    """Among which pairs was searched, in words."""
    told = f"{len(found.candidates)} pairs {space.described}"
    if found.failed:
        first = next(iter(found.failed.values()))
        told += f"; {len(found.failed)} of them could not be drawn from: {first}"
    return told


def _unchecked(
    mechanism: Mechanism, declared: Sequence[str], attacks: Sequence[Attack]
) -> Iterator[str]:
    """What its code declares, where nobody looks at that."""
    if declared and not any(attack.name == "frozen-outputs" for attack in attacks):
        more = f" and {len(declared) - _LISTED} more" if len(declared) > _LISTED else ""
        yield (
            f"{display_name(mechanism)} declares {', '.join(declared[:_LISTED])}{more}, which "
            'kinds=["frozen-outputs"] checks.'
        )


def _trials(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    copied: Callable[[], Mechanism] | None,
    config: AuditConfig,
) -> dict[str, Any]:
    """What a few releases at every pair show before anything is counted, in what JSON can hold.

    Returns
    -------
    unfit : by the names of pairs that can't be drawn from, why
    remembers : why draws aren't independent, if they aren't
    silent : whether every release raised the same
    whole : whether all outputs are whole numbers
    notes, leaks : what is done beside the outputs; leaks are what depends on the data there
    declared : what the code says of itself
    """
    unfit, still, all_whole, large = {}, [], True, False
    raised: set[str] = set()
    here = evolve(config, workers=1)
    for pair in pairs:
        sample = partial(sample_pair, mechanism, pair, here, "trial")
        try:
            try:
                sides = sample(draws=_TRIALS)
            except AlwaysRaisedError:
                sides = sample(draws=_RAISED)
        except DrawError as error:
            unfit[pair.name] = str(error)
            raised |= error.raised if isinstance(error, AlwaysRaisedError) else {"", "otherwise"}
            continue
        all_whole = all_whole and all(whole(side) for side in sides)
        large = large or any(output.cut for side in sides for output in side if valued(side))
        if any(constant(side).any() for side in sides):
            still.append(pair)
    reasons = [remembers(mechanism, pair, copied, config) for pair in still]
    notes: tuple[str, ...] = ()
    leaks: list[str] = []
    declared: tuple[str, ...] = ()
    fit = next((pair for pair in pairs if pair.name not in unfit), None)
    if fit is not None:
        reasons.append(shares_noise(mechanism, fit, copied, config))
        with suppress(DrawError):  # what is late is so in an audit too, which then says so
            effects = side_effects(mechanism, fit, config)
            notes, leaks = effects.notes, [effects.leak] if effects.leak else []
            declared = effects.declared
    with suppress(DrawError):  # that is what an audit says, too
        if pairs and all(made_alike(mechanism, pair, config) for pair in pairs):
            said = "is given the same for both data sets of every pair, as `make` makes it"
            notes = (*notes, f"{display_name(mechanism)} {said}: no difference can show.")
    if large:
        said = f"releases more than {MOST:,} parts; those beyond are audited by their number"
        name = display_name(mechanism)
        notes = (*notes, f"{name} {said}, sum, extremes and checksum alone.")
    return {
        "unfit": unfit,
        "silent": len(unfit) == len(pairs) and len(raised) == 1,
        "remembers": [reason for reason in reasons if reason][:1],
        "whole": all_whole,
        "notes": notes,
        "leaks": leaks,
        "declared": declared,
    }
