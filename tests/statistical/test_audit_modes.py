"""Every mode of audit on true claims, whole runs of it, with a control that must be accused.

Runs are those of which `benchmarks.levels` prints the table of 10,000 of each; their seeds are
fixed, and drawn anew a mode that spends exactly its level would fail with probability 1e-4.
"""

from __future__ import annotations

import pytest

from tests.helpers.levels import BRIEF, MODES, Mode, accusations, most

QUICK, CONTROLS, BRIEFLY, RUNS = 100, 40, 300, 10_000

modes = pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.name))


@pytest.mark.nightly
@modes
def test_true_claims_are_seldom_accused(mode: Mode) -> None:
    assert accusations(mode, 0, QUICK, true=True) <= most(QUICK)


@pytest.mark.nightly
@modes
def test_the_control_is_accused(mode: Mode) -> None:
    assert accusations(mode, 0, CONTROLS, true=False) > most(CONTROLS)


@pytest.mark.nightly
@modes
def test_true_claims_are_seldom_accused_in_ten_thousand_runs(mode: Mode) -> None:
    assert accusations(mode, 0, RUNS, true=True) <= most(RUNS)


@pytest.mark.nightly
def test_brief_audits_keep_their_level_too() -> None:
    """What they draw to choose when to stop isn't counted."""
    assert accusations(BRIEF, 0, BRIEFLY, true=True) <= most(BRIEFLY)
    assert accusations(BRIEF, 0, CONTROLS, true=False) > most(CONTROLS)
