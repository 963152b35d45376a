"""The comparison of unlike releases: what it asks, and that it sees a value on the wrong side."""

from __future__ import annotations

import pytest

from benchmarks.mixtures import beside_lattices, cells, lattices, report, sampled_cells
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


def test_an_enclosure_beyond_the_lattices_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    asked = sampled_cells(9)[8:]
    ours, bounds = [LIBRARIES["dpverify"](cell) for cell in asked], [lattices(c) for c in asked]
    for factor, said in ((1.0, "upper end 0, below our lower end 0"), (0.99, "upper end 1, below")):
        moved = [[Answer(factor * value, 0.1) for value in values] for values in ours]
        beside_lattices(asked, moved, bounds)
        assert said in capsys.readouterr().out
