"""Each verdict that isn't what it was at first has a reason, on a page."""

from __future__ import annotations

from tests.audits.papers.verdicts import changed, first, now, page
from tests.helpers.paths import ROOT


def test_every_changed_verdict_is_explained() -> None:
    assert set(changed()) <= {name for name, (_, why) in first().items() if why}
    assert len(now()) > len(first()) == 563


def test_the_page_is_up_to_date() -> None:
    made = (ROOT / "docs" / "ledger-changes.md").read_text("utf-8")
    assert made == page(), "python -m tests.audits.papers.verdicts > docs/ledger-changes.md"
