"""Everyday bugs of functions of data, each beside its correct twin: what nobody publishes.

They are audited as those of `dpverify_audits.museum` are, with no pair, event or feature given.
"""

from __future__ import annotations

from types import ModuleType

from dpverify_audits.everyday import analyses, frames, leaks, protocols, statistics
from dpverify_audits.museum import Exhibit

__all__ = ["PARTS", "SUITE"]

PARTS: tuple[ModuleType, ...] = (statistics, leaks, protocols, frames, analyses)
SUITE: tuple[Exhibit, ...] = tuple(exhibit for part in PARTS for exhibit in part.EXHIBITS)
