"""What an attack is: a name, whether it applies, and a run that gives findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding
from dpverify.auditing.outputs.samples import over_the_draw
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.spaces.base import Space
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Pair

__all__ = ["Attack", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A mechanism, and the neighbours at which it is attacked.

    Attributes
    ----------
    mechanism : drawn from through its `release`, one data set a call
    pairs : neighbours
    undrawable : names of the pairs at which releases failed; some attacks count failures too
    space : what data sets are made of, where pairs may be searched for
    """

    mechanism: Any
    pairs: Sequence[Pair]
    undrawable: frozenset[str] = frozenset()
    space: Space | None = None

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


class Attack(ABC):
    """One kind of audit; its options are fields.

    Attributes
    ----------
    name : of the kind
    weight : its part of the level of an audit; 0 where it needs none
    counts_failures : whether a pair that can't be drawn from may tell it something
    """

    name: ClassVar[AuditKind]
    weight: ClassVar[float] = 1.0
    counts_failures: ClassVar[bool] = False

    def applies(self, mechanism: Any) -> bool:
        """Whether it can be made of this mechanism."""
        return not over_the_draw(mechanism)

    def unasked(self, mechanism: Any) -> bool:
        """Whether it is made where nobody names kinds, given that it applies."""
        return True

    @abstractmethod
    def run(self, target: Target, config: AuditConfig) -> Iterable[Finding]:
        """Attack the target, at the level `config.alpha` for all that is said.

        Raises
        ------
        DPVerifyError
            If nothing can be said of any pair.
        """
