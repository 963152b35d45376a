"""One audit of one mechanism: every kind that applies (`request`), at one level.

**Level.** α is split in advance among the kinds that run (`power.shares`), and within a kind among
its pairs, so that by Bonferroni a true claim is accused with probability at most α over all of
them. Nearly all of it goes to the strongest attack, which thereby has nearly the power of a test of
the best event at the full level. The other kinds look for bugs that show clearly, also at a small
level. Exhaustive checks draw nothing and need no share.

**Where.** At the pairs that are given, else at the mechanism's own worst pairs. Where it names
none, or if asked, pairs are searched for (`search`) with training draws: the audit is then made at
the one that was found and at those that are known, or else at the first candidate of all, which is
the adjacency's extreme point near zero, where floating point shows most. One of the two is spare,
and audited for precision alone: the first training draws at both say which (`most_telling`). What
is looked at there is left out once the claim is refuted, and keeps its part of the level.

**Order.** What runs in processes of its own begins first. The strongest attack is made first, and
what it drew serves the others: trade-off, sequential, precision and determinism look at the draws
that it counted. Bonferroni's bound needs no independence of kinds. Each is valid of these draws by
itself: the pairs and the other kinds' events are functions of draws that aren't counted, bets on
two outputs are made by those before them, and precision and determinism choose by the first part of
the draws and count the rest.

**Bad input.** A few releases at every pair come first (`trials`). A pair that can't be drawn from
is left out of all kinds but grey-box and determinism, and makes the whole report inconclusive,
unless something shows a violation; and so does a mechanism that fails later, in any kind, or one
that does something beside its outputs that depends on the data. An audit isn't begun if it would
take longer than it may (`AuditConfig.longest`) at the pace of the first releases; one that turns
out to take longer is ended, and is inconclusive.

**Slow releases.** Where pairs are searched for and a release takes 0.3 ms or more, the audit is
brief (`AuditConfig.brief`): training draws decide how many are needed, and attacks that are left
once the claim is refuted aren't made. A replay in Python says so (`brief=True`), and repeats it at
any pace; one by `dpverify audit` or pytest finds out again how slow releases are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from attrs import evolve

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.attacks.black_box import most_telling
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, undrawn
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.journal import (
    AuditJournal,
    from_plain,
    pair_from_plain,
    pair_plain,
    to_plain,
)
from dpverify.auditing.outputs.memory import copier
from dpverify.auditing.outputs.read_values import read_values
from dpverify.auditing.outputs.source_files import source_digest
from dpverify.auditing.replay import attack_code, names_own
from dpverify.auditing.report import Report
from dpverify.auditing.request import Request, Selection
from dpverify.auditing.search import Searched, search
from dpverify.auditing.spaces.base import Space
from dpverify.auditing.statistics.power import shares
from dpverify.auditing.trials import first_releases, pace
from dpverify.errors import ClusterError, DPVerifyError, ParameterError, require
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.execution.progress import duration
from dpverify.privacy import Mechanism, Pair

__all__ = ["run"]

_SLOW = 3e-4  # seconds of a release, from which on an audit with a search is brief
_LISTED = 3  # declarations that are named
_NONE = (
    "{} was not audited at all: its outputs are not all whole numbers, the precision of others is "
    "left out, and so is every other kind of audit."
)
_SOON = 60.0  # seconds, beyond which an audit says how long it takes


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
    asked = Request.of(mechanism, config, selection)
    config, pairs, space = asked.config, asked.known, asked.space
    journal = journal or AuditJournal()
    code = {}
    if journal.path is not None:
        code = {"source": source_digest(mechanism), **read_values(mechanism)}
    kept = partial(journal.kept, asked.identity | code)
    report = partial(
        Report,
        mechanism=display_name(mechanism),
        claim=asked.claim,
        alpha=config.alpha,
    )
    copied = copier(mechanism)
    seconds_each = kept("pace", lambda: pace(mechanism, pairs, space, config), done=bool)
    if config.brief is None and space is not None and seconds_each >= _SLOW:
        asked = replace(asked, config=evolve(config, brief=True))
        config = asked.config
    seconds = asked.seconds(seconds_each)
    report = partial(report, replay=replay or asked.code)
    if seconds > config.longest:
        return report(findings=(), failed=(asked.too_slow(seconds),))
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
    first = kept(
        "trials",
        lambda: first_releases(mechanism, pairs, copied, config),
        done=lambda first: not first["unfit"],
    )
    unfit, remembering = first["unfit"], first["remembers"]
    target = Target(mechanism, pairs, frozenset(unfit), space, spare)
    own_pairs = (selection.pairs is None and space is None) or names_own(target)
    told = not (remembering or first.get("silent"))
    attacks = asked.attacks(whole=first["whole"]) if told else []
    none = [_NONE.format(display_name(mechanism))] if told and not attacks else []
    weights = {str(attack.name): attack.weight for attack in attacks}
    levels = shares(config.alpha, weights) if any(weights.values()) else weights

    target, telling = _told_apart(target, attacks, config, kept)

    possible = [each for each in attacks if target.drawable or each.counts_failures]
    making = _Making(config=config, levels=levels, telling=telling, own=own_pairs)
    found = making.findings(target, possible, kept, progress)
    if changed := asked.changed():  # and nobody knows which one was tested where
        return report(findings=(), failed=(changed,), searched=searched)
    return report(
        findings=tuple(finding for attack in possible for finding in found.get(attack.name, ())),
        failed=(*unfit.values(), *remembering, *first["leaks"], *none),
        notes=(*first["notes"], *_unchecked(mechanism, first.get("declared", ()), attacks)),
        searched=searched,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """How attacks are made.

    Attributes
    ----------
    config : of all of them
    levels : by the names of attacks, each one's part of the level; 0 where it needs none
    telling : the pair at which those are made that aren't everywhere; empty for all
    own : whether code that repeats an attack takes the mechanism's own pairs
    """

    config: AuditConfig
    levels: Mapping[str, float]
    telling: str
    own: bool

    def findings(
        self,
        target: Target,
        attacks: Sequence[Attack],
        kept: Callable[..., Any],
        progress: Callable[[str], None],
    ) -> dict[str, list[Finding]]:
        """Of each attack, by its name; none of those that are spared."""
        found: dict[str, list[Finding]] = {}
        with ExitStack() as stack:

            @cache
            def begin() -> None:
                for attack in attacks:
                    stack.enter_context(attack.begun(*self._aimed(attack, target)))

            for attack in sorted(attacks, key=lambda each: -each.weight):
                progress(attack.name)

                def made(attack: Attack = attack, target: Target = target) -> list[Any]:
                    begin()
                    return to_plain(self._of(attack, target), target.pairs)

                plain = kept(
                    attack.name,
                    made,
                    done=lambda plain: not any(finding["failed"] for finding in plain),
                )
                found[attack.name] = from_plain(plain, target.pairs)
                if any(finding.verdict == "violation" for finding in found[attack.name]):
                    target = replace(target, refuted=True)
                    if self.config.brief:
                        break
        return found

    def _aimed(self, attack: Attack, target: Target) -> tuple[Target, AuditConfig]:
        """Where the attack is made, and at its level."""
        level = self.levels[attack.name]
        at = target.at(self.telling) if self.telling and not attack.everywhere else target
        return at, self.config.at_level(level) if level else self.config

    def _of(self, attack: Attack, target: Target) -> list[Finding]:
        """Of one attack, with the code that repeats it; where it can't be made, the reason."""
        target, config = self._aimed(attack, target)
        code = attack_code(attack, target, config, own=self.own)
        try:
            return [replace(finding, replay=code) for finding in attack.run(target, config)]
        except ClusterError:  # says nothing of the mechanism
            raise
        except DPVerifyError as error:
            return [
                replace(undrawn(attack.name, error, level=self.levels[attack.name]), replay=code)
            ]


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
