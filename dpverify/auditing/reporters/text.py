"""Reports for a person."""

from __future__ import annotations

from collections.abc import Sequence

from dpverify.auditing.report import Reported

__all__ = ["text"]


def text(reports: Sequence[Reported]) -> str:
    """The reports one after another, with an empty line between."""
    return "\n\n".join(map(str, reports))
