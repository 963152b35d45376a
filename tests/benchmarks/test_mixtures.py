"""The comparison of unlike releases: what it asks, and that it sees a value on the wrong side."""

from __future__ import annotations

import pytest

from benchmarks.mixtures import cells, report
from benchmarks.peers.mixtures import LIBRARIES, Answer


def test_cells_are_the_same_in_every_run_and_of_every_kind() -> None:
    asked = cells(100)
    assert asked == cells(100)
    assert asked[:50] == cells(50)
    kinds = {release.kind for cell in asked for release in cell.releases}
    assert kinds == {"gaussian", "laplace", "randomized-response", "sampled"}
    assert sum(cell.replaced for cell in asked) == 4


def test_values_on_the_wrong_side_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    asked = cells(5)[1:]
    found = [LIBRARIES["dpverify"](cell) for cell in asked]
    ours = [[Answer(value, 0.1) for value in values] for values in found]
    right = [[Answer(low * 0.99, 0.2), Answer(high * 1.01, 0.2)] for low, high in found]
    wrong = [*right[1:], [Answer(found[0][0], 0.2), Answer(found[0][0] * 0.99, 0.2)]]
    report(asked, ours, {"right": right})
    said = capsys.readouterr().out
    assert "right: 4 answered; below the lower end 0; ours is lower in 4, faster in 4" in said
    assert "right, optimistic: above our upper end 0" in said
    report(asked[:1], ours[:1], {"wrong": wrong[-1:]})
    said = capsys.readouterr().out
    assert "wrong: 1 answered; below the lower end 1; ours is lower in 0" in said
