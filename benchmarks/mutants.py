"""Mutants: small changes of the sources that the tests named after a file must notice.

``python -m benchmarks.mutants`` takes a sample of all changes of a comparison, an operator, a whole
number, a truth value or a negation in the functions of `PLACES`, makes each in a copy of the
project and runs there, as with every change, the tests of the folder that mirrors the file's, those
named after the file first. It prints the mutants that these let live, and exits with 1 where they
kill fewer than `LEAST` of the sample. What is done is kept in ``out/mutants.jsonl``, from which an
interrupted run goes on.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.kept import Kept

__all__ = ["LEAST", "PLACES", "lines", "main", "mirroring", "mutant"]

LEAST = 0.85
PLACES = (
    "dpverify/accounting",
    "dpverify/sampling",
    "dpverify/auditing/statistics",
    "dpverify/data/grid.py",
    "mechanisms/dpverify_mechanisms/linear/sketch.py",
)
SECONDS = 120
"""For the tests of one folder; a mutant that takes longer is noticed."""
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


def _places(tree: ast.Module) -> Iterator[tuple[int, ast.AST, str, int | None]]:
    """Line, parent, field and place in it of each node in a function that can be changed."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {id(one) for node in functions for one in ast.walk(node) if one is not node}
    for function in (node for node in functions if id(node) not in inner):
        line = function.lineno
        for parent in (one for statement in function.body for one in ast.walk(statement)):
            line = getattr(parent, "lineno", line)
            for field, value in ast.iter_fields(parent):
                if field in ("annotation", "returns"):
                    continue
                several = value if isinstance(value, list) else [value]
                for place, node in enumerate(several):
                    if isinstance(node, ast.AST) and _changed(node) is not None:
                        yield line, parent, field, place if isinstance(value, list) else None


def lines(text: str) -> list[int]:
    """Of each mutant of a module, in their order."""
    return [line for line, *_ in _places(ast.parse(text))]


def mutant(text: str, number: int) -> str:
    """The module with one change."""
    tree = ast.parse(text)
    _, parent, field, place = next(islice(_places(tree), number, None))
    found = getattr(parent, field)
    if place is None:
        setattr(parent, field, _changed(found))
    else:
        found[place] = _changed(found[place])
    return ast.unparse(ast.fix_missing_locations(tree))


def mirroring(path: Path) -> list[str]:
    """The tests that are named after a file, and all of the folder that mirrors its own."""
    root, _, inside = path.parent.as_posix().partition("/")
    folder = Path("tests", inside.replace("dpverify_", "", 1) if root != "dpverify" else inside)
    named = sorted((_ROOT / folder).glob(f"test_{path.stem.lstrip('_')}*.py"))
    return [str(test.relative_to(_ROOT)) for test in named] + [str(folder)]


def _survives(copy: Path, path: Path, number: int) -> bool:
    text = (_ROOT / path).read_text(encoding="utf-8")
    (copy / path).write_text(mutant(text, number), encoding="utf-8")
    roots = [str(copy), str(copy / "mechanisms"), str(copy / "audits")]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p"]
    command += ["no:cacheprovider", "-m", "not nightly", *mirroring(path)]
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter
            command,
            cwd=copy,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)},
            check=False,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        (copy / path).write_text(text, encoding="utf-8")
    return done.returncode == 0


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
        (path, number, line)
        for path, text in sources.items()
        for number, line in enumerate(lines(text))
    ]
    sample = random.Random(given.seed).sample(everything, given.count)  # noqa: S311
    copy = given.out.resolve() / "mutants"
    shutil.rmtree(copy, ignore_errors=True)
    for name in _COPIED:
        shutil.copytree(_ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_ROOT / "pyproject.toml", copy)
    kept, alive = Kept(given.out / "mutants.jsonl"), 0
    for path, number, line in sample:
        if kept.get(f"{given.seed}/{path}/{number}", partial(_survives, copy, path, number)):
            alive += 1
            print(f"{path}:{line}: mutant {number} lives", flush=True)
    killed = 1 - alive / given.count
    print(f"{killed:.1%} of {given.count} mutants killed")
    sys.exit(killed < LEAST)


if __name__ == "__main__":
    main()
