"""What an attack is: a name, whether it applies, and a run that gives findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding
from dpverify.auditing.outputs.samples import Sampled, over_the_draw, sampled
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.spaces.base import Space
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Pair

__all__ = ["COUNTED", "HELD", "Attack", "Target", "counted"]

COUNTED = "black-box counted"
"""Name of the stream of the draws that are counted."""
HELD = 2**28
"""Bytes of draws that are held for other attacks, at most."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Target:
    """A mechanism, and the neighbours at which it is attacked.

    Attributes
    ----------
    mechanism : drawn from through its `release`, one data set a call
    pairs : neighbours
    undrawable : names of the pairs at which releases failed; some attacks count failures too
    space : what data sets are made of, where pairs may be searched for
    spare : names of pairs that are attacked as long as the claim stands
    refuted : whether some attack has refuted it
    made : what attacks share, by its name (`once`)
    """

    mechanism: Any
    pairs: Sequence[Pair]
    undrawable: frozenset[str] = frozenset()
    space: Space | None = None
    spare: frozenset[str] = frozenset()
    refuted: bool = False
    made: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        require(bool(self.pairs), "pairs", self.pairs, "at least one pair of neighbours")

    @property
    def claim(self) -> PrivacyCurve:
        """What the mechanism says that it promises."""
        curve: PrivacyCurve = self.mechanism.privacy()
        return curve

    @property
    def drawable(self) -> Sequence[Pair]:
        """The pairs at which releases don't fail."""
        return [pair for pair in self.pairs if pair.name not in self.undrawable]

    def at(self, name: str) -> Target:
        """The same at the pair of this name alone."""
        pairs = [pair for pair in self.pairs if pair.name == name]
        return replace(self, pairs=pairs, spare=frozenset())

    def attacked(
        self, pairs: Sequence[Pair], attack: Callable[[Pair], Finding]
    ) -> Iterator[Finding]:
        """What is found at each of the pairs; at spare ones unless the claim has been refuted.

        Each has its part of the level all the same: what isn't attacked accuses nobody.
        """
        refuted = False
        for pair in pairs:
            if not self.spares(pair, refuted):
                finding = attack(pair)
                refuted = refuted or finding.verdict == "violation"
                yield finding

    def spares(self, pair: Pair, refuted: bool) -> bool:
        """Whether the pair is left out, as the claim is refuted: by another attack, or this one."""
        return (refuted or self.refuted) and pair.name in self.spare

    def once(
        self,
        name: Hashable,
        pair: Pair,
        config: AuditConfig,
        make: Callable[[], _T],
        *,
        small: Callable[[_T], bool] = lambda _: True,
    ) -> _T:
        """What attacks share, made by the first of them, and the same for all levels.

        Parameters
        ----------
        name : of what it is
        pair, config : of what it is made
        make : a function of these alone
        small : whether it is held; what isn't is made again, and is the same
        """
        key = (name, id(pair), config.at_level(0.5))
        if key in self.made:
            made: _T = self.made[key]
            return made
        made = make()
        if small(made):
            self.made[key] = made
        return made


def counted(target: Target, pair: Pair, config: AuditConfig) -> Sampled:
    """The draws that are counted; each attack's own test of them has its own part of the level.

    Raises
    ------
    DrawError
        If the mechanism can't be drawn from.
    """

    def made() -> Sampled:
        return sampled(target.mechanism, pair, config, COUNTED)

    return target.once(COUNTED, pair, config, made, small=lambda draws: draws.size <= HELD)


class Attack(ABC):
    """One kind of audit; its options are fields.

    Attributes
    ----------
    name : of the kind
    weight : its part of the level of an audit; 0 where it needs none
    counts_failures : whether a pair that can't be drawn from may tell it something
    everywhere : whether it is made at each pair, also beside a spare one
    shares : whether it looks at the draws that are counted once for all of these attacks
    trains : whether it chooses by training draws, which can tell two pairs apart
    """

    name: ClassVar[AuditKind]
    weight: ClassVar[float] = 1.0
    counts_failures: ClassVar[bool] = False
    everywhere: ClassVar[bool] = True
    shares: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def applies(self, mechanism: Any) -> bool:
        """Whether it can be made of this mechanism."""
        return not over_the_draw(mechanism)

    def unasked(self, mechanism: Any) -> bool:
        """Whether it is made where nobody names kinds, given that it applies."""
        return True

    def begun(self, target: Target, config: AuditConfig) -> AbstractContextManager[Any]:
        """What takes its time while other attacks are made, and is at work inside the context."""
        return nullcontext()

    @abstractmethod
    def run(self, target: Target, config: AuditConfig) -> Iterable[Finding]:
        """Attack the target, at the level `config.alpha` for all that is said.

        Raises
        ------
        DPVerifyError
            If nothing can be said of any pair.
        """
