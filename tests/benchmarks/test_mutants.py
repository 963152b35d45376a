"""Mutants of a small module."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.mutants import harmless, mirroring, mutant, places
from tests.helpers.paths import ROOT

SOURCE = '''"""Docstrings stay."""

LIMIT = 3


def inside(x: int, most: int = 4) -> bool:
    """Whether x is in a range of 2."""
    flag = not x < 0 and x + 2 <= most * 3
    return flag == True
'''


def test_each_change_is_made_once_and_alone() -> None:
    where = places(SOURCE)
    made = [mutant(SOURCE, number) for number in range(len(where))]
    ends = [text.splitlines()[-2:] for text in made]
    assert len(set(made)) == len(made) > 10
    assert {tuple(lines) for lines in where} == {(8,), (9,)}
    assert all(
        '"""Whether x is in a range of 2."""' in text and "LIMIT = 3" in text for text in made
    )
    shown = "\n".join(flag for flag, _ in ends)
    for changed in (
        "x <= 0",
        "flag = x < 0",
        "or x + 2",
        "x - 2",
        "2 < most",
        "most / 3",
        "most * 4",
    ):
        assert changed in shown
    returned = {last.strip() for _, last in ends}
    assert returned == {"return flag == True", "return flag != True", "return flag == False"}


COMPOUND = """
def inside(x):
    if (x < 0
            and x + 1):
        return [
            x,
            x * 2,
        ]
    return 0
"""


def test_a_mutant_is_reached_where_its_statement_is() -> None:
    reached = {mutant(COMPOUND, number): lines for number, lines in enumerate(places(COMPOUND))}
    for changed, lines in {
        "x <= 0": {3},
        "x < 0 or x + 1": {3, 4},
        "x + 2": {3, 4},
        "x / 2": {5, 6, 7, 8},
        "return 1": {9},
    }.items():
        assert [set(found) for text, found in reached.items() if changed in text] == [lines]


def test_the_tests_are_of_the_folder_that_mirrors_the_files() -> None:
    for source, tests in (
        ("dpverify/sampling/words.py", "tests/sampling/"),
        ("dpverify/data/grid.py", "tests/data/"),
        ("mechanisms/dpverify_mechanisms/linear/sketch.py", "tests/mechanisms/linear/"),
    ):
        assert mirroring(Path(source)) == tests
        assert (ROOT / tests).is_dir()


def test_lines_of_harmless_mutants_are_there() -> None:
    """A line that was changed is another one, of which the reason says nothing."""
    lines = {
        file: set(map(str.strip, ast.unparse(ast.parse((ROOT / file).read_text())).splitlines()))
        for file in {file for file, *_ in harmless()}
    }
    assert [(file, before) for file, before, _ in harmless() if before not in lines[file]] == []
    assert all(before != after and why for (_, before, after), why in harmless().items())
