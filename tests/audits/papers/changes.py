"""Formulas and oracles changed on purpose.

A formula is changed by a factor, and by leaving out one term of one sum. An oracle, what a check
compares the formula with, is changed by a factor, on its own or together with the formula: each
function of the ledger that both of them use is.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dpverify.ledger.checks import Check, Evidence, Formula
from dpverify.ledger.statements import (
    Judgement,
    Statement,
    judge,
    known_statements,
    perturbed,
)

__all__ = [
    "alone",
    "evidence",
    "normalised",
    "reached",
    "scaled",
    "tried",
    "without_a_term",
]

Function = ast.FunctionDef | ast.Lambda
_OURS = ("dpverify_audits", "dpverify.ledger", "tests.audits")


def alone(statement: Statement, formula: Formula) -> Statement:
    """The statement as if this formula were printed, with nothing to fall back on."""
    return replace(statement, printed=formula, readings={}, corrections={})


def scaled(statement: Statement, formula: Formula, factor: Fraction) -> Formula:
    """Another formula, every number of which is multiplied by the factor."""
    changed = perturbed(alone(statement, formula), factor).printed
    assert changed is not None
    return changed


def tried(statement: Statement, formula: Formula) -> Evidence | None:
    """What the check finds; None where the formula has no value that it can read."""
    try:
        return judge(alone(statement, formula)).printed
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return None


def without_a_term(formula: Formula) -> Iterator[tuple[str, Formula]]:
    """A formula in each of the ways in which one of its sums or differences loses one side.

    Its source is parsed again and one side replaced with 0; what it encloses and its defaults stay
    the same.
    """
    function = inspect.unwrap(formula)
    if not isinstance(function, FunctionType):
        return
    node = _source(function)
    for place, sum_ in enumerate(ast.walk(node)):
        if not (isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Add | ast.Sub)):
            continue
        for side in ("left", "right"):
            changed = copy.deepcopy(node)
            mutated = list(ast.walk(changed))[place]
            setattr(mutated, side, ast.Constant(0))
            yield f"without {ast.unparse(getattr(sum_, side))}", _made(changed, function)


def reached(function: Any, found: set[FunctionType] | None = None) -> set[FunctionType]:
    """The ledgers' functions that one of them may call: by name, in its cells, or in lambdas."""
    found = set() if found is None else found
    if isinstance(function, Check):
        for part in (function.truth, function.of):
            reached(part, found)
        return found
    if isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else function
    ours = isinstance(function, FunctionType) and function.__module__.startswith(_OURS)
    if not ours or function in found:
        return found
    found.add(function)
    for cell in function.__closure__ or ():
        reached(cell.cell_contents, found)
    codes = [function.__code__]
    for code in codes:
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
        for name in code.co_names:
            reached(function.__globals__.get(name), found)
    return found


def normalised(function: Formula) -> str | None:
    """What a function of the ledger returns, with its parameters numbered; None where it's long."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        return None
    node = copy.deepcopy(_source(function))
    value = node.body if isinstance(node, ast.Lambda) else _returned(node.body)
    if value is None:
        return None
    numbers = {argument.arg: f"_{place}" for place, argument in enumerate(node.args.args)}
    for part in ast.walk(value):
        if isinstance(part, ast.Name):
            part.id = numbers.get(part.id, part.id)
    return ast.unparse(value)


def _returned(body: Sequence[ast.stmt]) -> ast.expr | None:
    *before, last = body
    texts = all(isinstance(part, ast.Expr) for part in before)
    return last.value if texts and isinstance(last, ast.Return) else None


@cache
def _functions(module: ModuleType) -> list[Function]:
    tree = ast.parse(inspect.getsource(module))
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _source(function: FunctionType) -> Function:
    """The innermost function of the module's source around all instructions of this one."""
    module = inspect.getmodule(function)
    assert module is not None
    spans = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in function.__code__.co_positions()
        if line and end_line and column is not None and end_column
    ]
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    around = [
        node
        for node in _functions(module)
        if (node.lineno, node.col_offset) <= first
        and last <= (node.end_lineno or 0, node.end_col_offset or 0)
    ]
    return max(around, key=lambda node: (node.lineno, node.col_offset))


def _made(node: Function, function: FunctionType) -> Formula:
    """The function of this source, in the scope of another one."""
    given = node.args
    given.defaults = [ast.Constant(None) for _ in given.defaults]
    given.kw_defaults = [default and ast.Constant(None) for default in given.kw_defaults]
    enclosed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        name, body = node.name, ast.unparse(node)
    else:
        name, body = "changed", f"changed = {ast.unparse(node)}"
    lines = [f"def outer({', '.join(enclosed)}):", *(f"    {line}" for line in body.splitlines())]
    scope: dict[str, Formula] = {}
    # the source of this package, less a term
    exec("\n".join([*lines, f"    return {name}"]), function.__globals__, scope)  # noqa: S102
    made: Any = scope["outer"](*(cell.cell_contents for cell in enclosed.values()))
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    result: Formula = made
    return result


@cache
def _judged(name: str) -> Judgement:
    return judge(next(statement for statement in known_statements() if statement.id == name))


def evidence(statement: Statement) -> dict[str, Evidence]:
    """What the check of a known statement finds for each formula, computed once."""
    found = _judged(statement.id)
    assert found.printed is not None
    return {"printed": found.printed, **found.others}
