"""What a person reads of a pair: which row and column moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpverify.auditing.pair_text import pair_lines
from dpverify.privacy import Pair

OLD, YOUNG, OTHER = ({"age": age, "sex": sex} for age, sex in ((41, "f"), (7, None), (42, "f")))
AGES = [{"age": age} for age in range(30)]
LISTED = "; ".join(f'{{"age": {age}}}' for age in range(24))
REVERSED = "; ".join(f"place {n}: {n} -> {29 - n}" for n in range(24))
MATRIX = np.zeros((1, 30))
RAISED = MATRIX + (np.arange(30) == 7)


@pytest.mark.parametrize(
    ("record", "neighbour", "says"),
    [
        (
            [YOUNG] * 3,
            [YOUNG] * 3 + [OLD],
            [
                'record    3 rows: 3 times {"age": 7, "sex": None}',
                'neighbour 4 rows: 3 times {"age": 7, "sex": None}; {"age": 41, "sex": \'f\'}',
                'one row more: {"age": 41, "sex": \'f\'}',
            ],
        ),
        (
            [OLD],
            [],
            [
                'record    1 row: {"age": 41, "sex": \'f\'}',
                "neighbour no rows",
                'one row less: {"age": 41, "sex": \'f\'}',
            ],
        ),
        ([YOUNG] * 3 + [OLD], [YOUNG] * 3 + [OTHER], ["", "", "row 3: age 41 -> 42"]),
        ([OLD, YOUNG], [YOUNG, OLD], ["", "", "the rows in another order: 1, 0"]),
        ([], [OLD, OLD], ["", "", '2 rows more: 2 times {"age": 41, "sex": \'f\'}']),
        (
            [YOUNG, OLD, OLD],
            [YOUNG],
            ["", "", '2 rows less: 2 times {"age": 41, "sex": \'f\'}'],
        ),
        (
            AGES,
            [],
            ["", "", f"30 rows less: {LISTED}; and 6 others"],
        ),
        (
            AGES,
            [{"age": row["age"] + 100} for row in AGES],
            ["", "", *(f"row {n}: age {n} -> {n + 100}" for n in range(24)), "and 6 other rows"],
        ),
        (
            list(range(30)),
            list(range(30))[::-1],
            ["", "", f"{REVERSED}; and 6 more"],
        ),
        (np.zeros((30, 1)), np.zeros((0, 1)), ["", "", "30 rows less: 30 times [0.]"]),
        (
            MATRIX,
            RAISED,
            [
                "record    of shape (1, 30): 0.0 in all places",
                "neighbour of shape (1, 30): 0.0 in all places, but for column 7: 1.0",
                "column 7: 0.0 -> 1.0",
            ],
        ),
        (np.zeros((5, 3)), np.eye(5, 3, -4), ["", "", "row 4, column 0: 0.0 -> 1.0"]),
        (np.zeros(2), np.ones(2), ["record    [0. 0.]", "neighbour [1. 1.]"]),
        (np.eye(2), np.eye(2)[:1], ["", "", "one row less: [0. 1.]"]),
        ([1, 2], [3], ["record    [1 2]", "neighbour [3]", "row 0: 1 -> 3", "one row less: 2"]),
        ([1, [2]], [[3]], ["", "", "of shapes (2,) and (1, 1)"]),
    ],
)
def test_what_moves_is_said(record: Any, neighbour: Any, says: list[str]) -> None:
    lines = pair_lines(Pair(name="found", record=record, neighbour=neighbour))
    assert lines[0] == "    pair 'found':"
    assert len(lines) == len(says) + 1
    for line, said in zip(lines[1:], says, strict=True):
        assert line.strip() == said or not said
        assert "…" not in line
        assert "..." not in line
