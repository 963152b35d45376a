"""What an audit was asked for: the claim, the kinds of attack, and where they are made.

**What applies.** The likelihood-ratio attack where the mechanism has one, else the attack on
outputs; trade-off, sequential, precision and determinism beside either; exhaustive where the
outputs are few; grey-box wherever the audit's words decide what is drawn, which is inconclusive
outside its model and leaves the report's verdict to the others; frozen outputs where it is asked
for by name. Where the guarantee is over the draw of public randomness, releases at one draw may
differ by more than is claimed, so only the white-box attack is made, which draws it anew each time.
Profiles leave out the precision of doubles: precision is then audited only if all outputs of trial
draws are whole numbers, and no violation is reported if an output that is counted isn't. Trial
draws aren't counted, so that whatever they decide the levels add up to at most α.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import evolve

from dpverify.auditing.attacks.base import Attack
from dpverify.auditing.attacks.precision import PrecisionAttack
from dpverify.auditing.attacks.sequential import SequentialAttack
from dpverify.auditing.attacks.table import ATTACKS
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.auditing.outputs.samples import over_the_draw
from dpverify.auditing.replay import audit_code
from dpverify.auditing.settings import KINDS, OMITTABLE, AuditKind, Omittable
from dpverify.auditing.spaces.base import Space
from dpverify.auditing.targets.pairs import known_pairs, space_of
from dpverify.enclosure import Enclosure
from dpverify.errors import PASSING, DPVerifyError, ParameterError, require, require_known
from dpverify.execution.progress import duration
from dpverify.guarantee import PrivacyCurve, claimed_epsilon, is_curve
from dpverify.privacy import Mechanism, Pair
from dpverify.visible import raised, shown

__all__ = ["Request", "Selection", "applicable"]

_LEAST = 20  # draws
_RELEASES = 6  # for each draw: training ones too, of both sides


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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
    def of(cls, mechanism: Mechanism, config: AuditConfig, selection: Selection) -> Request:
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
            "brief": str(self.config.brief),
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

    def seconds(self, pace: float) -> float:
        """About how long the audit takes, at so many seconds a release."""
        each = _RELEASES // 2 if self.config.brief else _RELEASES
        alone = len(
            [kind for kind in self.kinds if kind != "sequential" and not ATTACKS[kind].shares]
        )
        together = max(len(self.known), 1) if len(self.kinds) > alone else 0
        releases = each * (alone + together + (self.space is not None)) * self.config.draws
        workers = self.config.workers
        return releases * pace / ((os.cpu_count() or 1) if workers == -1 else workers)

    def too_slow(self, seconds: float) -> str:
        """What is said where that is longer than it may be."""
        config, name = self.config, display_name(self.mechanism)
        draws = int(config.draws * config.longest / seconds)
        fewer = f"Ask for {draws} draws, or for fewer kinds" if draws >= _LEAST else "Ask for less"
        return (
            f"{name} takes so long that its audit would take about {duration(seconds)}, and "
            f"{duration(config.longest)} are allowed, 1,000 times the time limit of "
            f"{config.time_limit:g} s for one release. {fewer}, or raise the limit."
        )

    def changed(self) -> str:
        """What is said where the claim isn't what it was before the first release."""
        (before, delta), now = self.claim, claimed_epsilon(self.mechanism.privacy(), self.claim[1])
        if now == before:
            return ""
        return (
            f"{display_name(self.mechanism)} claimed ε = {before:.6g} at δ = {float(delta):g} "
            f"before its first release, and claims ε = {now:.6g} after the last. Let `privacy()` "
            "be the claim of one release, whatever was released before."
        )

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
    answers = isinstance(curve, Hashable) and hasattr(curve.delta_at(0), "upper")
    rule = "hashable, and one whose `delta_at` and `epsilon_at` give a dpv.Enclosure"
    require(answers, "privacy()", shown(curve), rule)
    return curve


def _names(name: str, given: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """A list of known names."""
    try:
        names = None if isinstance(given, str) else tuple(given)
    except TypeError:
        names = None
    if names is None:
        raise ParameterError(name, shown(given), "a list", f"Write {name}=[{shown(given)}].")
    for each in names:
        require_known(name, each, known)
    return names
