"""Every mode of audit on true claims, whole runs of it, with a control that must be accused.

Runs are those of which `benchmarks.levels` prints the table of 10,000 of each; their seeds are
fixed, and drawn anew a mode that spends exactly its level would fail with probability 1e-4.
"""

from __future__ import annotations

import pytest

from tests.helpers.levels import MODES, SEARCHED, Mode, accusations, most

QUICK, CONTROLS, SEARCHES, RUNS = 100, 40, 300, 10_000

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
@pytest.mark.parametrize("mode", SEARCHED, ids=lambda mode: str(mode.name))
def test_audits_with_a_search_keep_their_level_too(mode: Mode) -> None:
    """What they draw to choose the pair, and when to stop, isn't counted."""
    assert accusations(mode, 0, SEARCHES, true=True) <= most(SEARCHES)
    assert accusations(mode, 0, CONTROLS, true=False) > most(CONTROLS)
