"""One attack on one mechanism, as tests make it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.attacks.white_box import EventCounts, count_events
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding
from dpverify.auditing.spaces.base import Space
from dpverify.auditing.statistics.power import Event
from dpverify.privacy import Pair, WhiteBox

__all__ = ["attacked", "counted", "evidence_of", "finding_of"]


def attacked(
    attack: Attack,
    mechanism: Any,
    pairs: Sequence[Pair],
    *,
    space: Space | None = None,
    **settings: Any,
) -> list[Finding]:
    """All findings; the settings are those of `AuditConfig`."""
    return list(attack.run(Target(mechanism, pairs, space=space), AuditConfig(**settings)))


def finding_of(attack: Attack, mechanism: Any, pairs: Sequence[Pair], **settings: Any) -> Finding:
    """The only finding."""
    (finding,) = attacked(attack, mechanism, pairs, **settings)
    return finding


def evidence_of(finding: Finding) -> Any:
    """Evidence of whatever class; a wrong name fails the test."""
    assert finding.evidence is not None
    return finding.evidence


def counted(
    mechanism: WhiteBox,
    tests: Sequence[Event],
    roc: Sequence[float] = (),
    progress: Any = lambda _: None,
    **settings: Any,
) -> EventCounts:
    """Counts of events at the mechanism's own pairs."""
    pairs, config = mechanism.worst_pairs(), AuditConfig(**settings)
    return count_events(mechanism, pairs, tests, config, roc=roc, progress=progress)
