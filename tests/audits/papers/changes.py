"""Formulas and oracles changed on purpose.

A formula is changed by a factor, and by leaving out one term of one sum. An oracle, what a check
compares the formula with, is changed by a factor, on its own or together with the formula: each
function of the ledger that both of them use is.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, wraps
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from dpverify.ledger.statements import (
    Evidence,
    Formula,
    Judgement,
    Statement,
    judge,
    known_statements,
    perturbed,
)
from dpverify_audits.papers import cases as cases_module
from dpverify_audits.papers import checks as truth_module
from dpverify_audits.papers.aumuller2020.laws import mean_equals

__all__ = [
    "alone",
    "evidence",
    "formulas",
    "reached",
    "scaled",
    "tried",
    "with_oracle",
    "without_a_term",
]

Function = ast.FunctionDef | ast.Lambda
_OURS = ("dpverify_audits", "tests.audits")


def alone(statement: Statement, formula: Formula) -> Statement:
    """The statement as if this formula were printed, with nothing to fall back on."""
    return replace(statement, printed=formula, readings={}, corrections={})


def formulas(statement: Statement) -> dict[str, Formula]:
    """Every formula of a statement, by what it is."""
    assert statement.printed is not None
    return {"printed": statement.printed, **statement.readings, **statement.corrections}


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


def with_oracle(statement: Statement, factor: Fraction) -> Statement:
    """The statement with every oracle of its check multiplied by the factor; a yes becomes a no.

    The oracles are what `equals`, `at_most`, `order` and `wherever` are given, before the check is
    made (they are cells of its closure) or while it runs (it finds those functions as globals).
    """

    def scaled_oracle(truth: Formula) -> Formula:
        changed = perturbed(alone(statement, truth), factor).printed
        assert changed is not None
        return changed

    def scaled_value(truth: Formula) -> Formula:
        """Of a value and its bound the value alone."""

        @wraps(truth)
        def changed(*arguments: Any) -> Any:
            ends = truth(*arguments)
            return ends and (scaled_oracle(lambda: ends[0])(), ends[1])

        return changed

    makers: dict[str, Any] = {
        "equals": lambda truth, *rest: truth_module.equals(scaled_oracle(truth), *rest),
        "at_most": lambda truth, *rest: truth_module.at_most(scaled_value(truth), *rest),
        "wherever": lambda said, *rest: cases_module.wherever(lambda case: not said(case), *rest),
    }
    makers["mean_equals"] = lambda cases, law, target: mean_equals(
        cases, law, scaled_oracle(target)
    )

    def rebuilt(function: Any) -> Any:
        """A check with its oracles changed, wherever they are."""
        if not isinstance(function, FunctionType):
            return function
        made = function.__qualname__.partition(".")[0]
        names = function.__code__.co_freevars
        values = [cell.cell_contents for cell in function.__closure__ or ()]
        own = {
            "equals": "truth",
            "at_most": "truth",
            "mean_equals": "target",
            "wherever": "statement",
        }
        for place, name in enumerate(names):
            if name == own.get(made):
                change = scaled_value if made == "at_most" else scaled_oracle
                values[place] = change(values[place])
            else:
                values[place] = rebuilt(values[place])
        known = {**function.__globals__, **{n: m for n, m in makers.items()
                                            if n in function.__globals__}}  # fmt: skip
        copied = FunctionType(
            function.__code__,
            known,
            function.__name__,
            function.__defaults__,
            tuple(CellType(value) for value in values),
        )
        copied.__kwdefaults__ = function.__kwdefaults__
        return copied

    return replace(statement, check=rebuilt(statement.check))


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
