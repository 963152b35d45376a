"""Mutants: small changes of the sources that tests must notice.

``python -m benchmarks.mutants`` takes a sample of all changes of a comparison, an operator, a whole
number, a truth value or a negation in the functions of `PLACES`, and makes each in a copy of the
project. Of the tests that run with every change it runs there those that reach the changed
statement (`benchmarks.reached`), for the others can't notice it: of the folders that mirror those
of `PLACES`, and of the contracts that all curves, losses and mechanisms keep to. What a cache keeps
is reached by the first test that asks for it alone, which kills fewer mutants and never more. The
mutants that live are printed, and the command exits with 1 where the tests kill fewer than `LEAST`
of the sample, those left out that `HARMLESS` lists: they change no result, or only how sharp or
fast a correct one is, for the reason that stands there. What is done is kept in
``out/mutants.jsonl``, from which an interrupted run goes on; remove it after changes of sources or
tests.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.kept import Kept
from benchmarks.reached import TESTS, Reached, environment

__all__ = [
    "HARMLESS",
    "LEAST",
    "PLACES",
    "change",
    "harmless",
    "main",
    "mirroring",
    "mutant",
    "places",
]

LEAST = 0.85
PLACES = (
    "dpverify/accounting",
    "dpverify/sampling",
    "dpverify/auditing/statistics",
    "dpverify/data/grid.py",
    "mechanisms/dpverify_mechanisms/linear/sketch.py",
)
HARMLESS = Path(__file__).with_name("harmless_mutants.toml")
"""Mutants that no test should notice, each with the reason."""
Change = tuple[str, str]
_ROOT = Path(__file__).parents[1]
_COPIED = ("dpverify", "mechanisms", "audits", "benchmarks", "tests", "examples", "docs")
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    one: other
    for pair in (
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.Add, ast.Sub),
        (ast.Mult, ast.Div),
        (ast.And, ast.Or),
    )
    for one, other in (pair, pair[::-1])
}


def _changed(node: ast.AST) -> ast.AST | None:
    """Another node in its place; None where there is nothing to change."""
    match node:
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.operator() | ast.cmpop() | ast.boolop() if type(node) in _SWAPPED:
            return _SWAPPED[type(node)]()
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """Of a node that can be changed.

    Attributes
    ----------
    parent, field, index : the node's; the index is None where the field holds one node
    lines : one of which is run where the changed node is: a statement's, or where others stand in
        it, its first and the parent's
    """

    parent: ast.AST
    field: str
    index: int | None
    lines: Sequence[int]


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that aren't those of a statement in it."""
    yield statement
    waiting: list[ast.AST] = [statement]
    while waiting:
        children = ast.iter_child_nodes(waiting.pop(0))
        inner = [child for child in children if not isinstance(child, ast.stmt)]
        yield from inner
        waiting += inner


def _lines(node: ast.AST) -> range:
    return range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", None) or -1) + 1)


def _places(tree: ast.Module) -> Iterator[_Place]:
    """Of each node in a function that can be changed."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for statement in dict.fromkeys(
        one
        for function in functions
        for body in function.body
        for one in ast.walk(body)
        if isinstance(one, ast.stmt)
    ):
        compound = any(isinstance(one, ast.stmt) for one in islice(ast.walk(statement), 1, None))
        for parent in _own(statement):
            lines = [statement.lineno, *_lines(parent)] if compound else [*_lines(statement)]
            for field, value in ast.iter_fields(parent):
                if field in ("annotation", "returns"):
                    continue
                several = value if isinstance(value, list) else [value]
                for index, node in enumerate(several):
                    if isinstance(node, ast.AST) and _changed(node) is not None:
                        place = index if isinstance(value, list) else None
                        yield _Place(parent, field, place, lines)


def places(text: str) -> list[Sequence[int]]:
    """The lines of each mutant of a module, in their order: one of them is run where it is."""
    return [place.lines for place in _places(ast.parse(text))]


def mutant(text: str, number: int) -> str:
    """The module with one change."""
    tree = ast.parse(text)
    place = next(islice(_places(tree), number, None))
    found = getattr(place.parent, place.field)
    if place.index is None:
        setattr(place.parent, place.field, _changed(found))
    else:
        found[place.index] = _changed(found[place.index])
    return ast.unparse(ast.fix_missing_locations(tree))


def change(text: str, number: int) -> Change:
    """The line of the module that is another one in a mutant, as `ast.unparse` writes both."""
    lines = zip(
        ast.unparse(ast.parse(text)).splitlines(), mutant(text, number).splitlines(), strict=True
    )
    return next((before.strip(), after.strip()) for before, after in lines if before != after)


def harmless() -> Mapping[tuple[str, str, str], str]:
    """Reasons by file, line before and line after."""
    with HARMLESS.open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    return {(each["file"], each["before"], each["after"]): each["why"] for each in entries}


def mirroring(path: Path) -> str:
    """The folder of tests that mirrors a file's own, with its slash."""
    root, _, inside = path.parent.as_posix().partition("/")
    return f"tests/{inside.replace('dpverify_', '', 1) if root != 'dpverify' else inside}/"


def _survives(copy: Path, path: Path, number: int, reached: Reached, tests: list[str]) -> bool:
    """Whether the tests that reach a mutant let it live."""
    text = (_ROOT / path).read_text(encoding="utf-8")
    (copy / path).write_text(mutant(text, number), encoding="utf-8")
    files = sorted({test.partition("::")[0] for test in tests})
    seconds = 60 + 3 * sum(reached.seconds[test] for test in tests)
    try:
        status = _status(copy, tests, seconds) if tests else pytest.ExitCode.OK
        # A change may give a parametrized test another name.
        if status == pytest.ExitCode.USAGE_ERROR:
            status = _status(copy, files, seconds)
    except subprocess.TimeoutExpired:
        return False
    finally:
        (copy / path).write_text(text, encoding="utf-8")
    return status == pytest.ExitCode.OK


def _status(copy: Path, tests: Sequence[str], seconds: float) -> int:
    names = copy / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *TESTS, f"@{names}"]
    return subprocess.run(  # noqa: S603  # this interpreter
        command, cwd=copy, env=environment(copy), check=False, capture_output=True, timeout=seconds
    ).returncode


def main() -> None:
    """Print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    given = parser.parse_args()
    found = [_ROOT / place for place in PLACES]
    files = [file for place in found for file in sorted(place.rglob("*.py")) or [place]]
    sources = {file.relative_to(_ROOT): file.read_text(encoding="utf-8") for file in files}
    everything = [
        (path, number, where)
        for path, text in sources.items()
        for number, where in enumerate(places(text))
    ]
    sample = random.Random(given.seed).sample(everything, given.count)  # noqa: S311
    copy = given.out.resolve() / "mutants"
    shutil.rmtree(copy, ignore_errors=True)
    for name in _COPIED:
        shutil.copytree(_ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_ROOT / "pyproject.toml", copy)
    folders = sorted({*map(mirroring, sources), "tests/contracts/"})
    reached = Reached.by(folders, list(sources), copy, given.out.resolve())
    kept, reasons = Kept(given.out / "mutants.jsonl"), harmless()
    alive = excused = 0
    for path, number, where in sample:
        own = mirroring(path)
        tests = sorted(reached.tests(path, where), key=lambda test: not test.startswith(own))
        survives = partial(_survives, copy, path, number, reached, tests)
        if kept.get(f"{given.seed}/{path}/{number}", survives):
            before, after = change(sources[path], number)
            if (path.as_posix(), before, after) in reasons:
                excused += 1
                continue
            alive += 1
            print(f"{path}:{where[0]}, {len(tests)} tests\n  - {before}\n  + {after}", flush=True)
    killed = 1 - alive / (given.count - excused)
    print(f"{killed:.1%} of {given.count - excused} mutants killed; {excused} more are harmless")
    sys.exit(killed < LEAST)


if __name__ == "__main__":
    main()
