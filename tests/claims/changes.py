"""Formulas changed on purpose: by a factor, and by leaving out one term of one sum."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from dpverify.auditing.claims import (
    Claim,
    Evidence,
    Formula,
    Judgement,
    judged,
    known_claims,
    perturbed,
)

__all__ = ["alone", "evidence", "formulas", "scaled", "tried", "without_a_term"]

Function = ast.FunctionDef | ast.Lambda


def alone(claim: Claim, formula: Formula) -> Claim:
    """The claim as if this formula were printed, with nothing to fall back on."""
    return replace(claim, printed=formula, readings={}, corrections={})


def formulas(claim: Claim) -> dict[str, Formula]:
    """Every formula of a claim, by what it is."""
    assert claim.printed is not None
    return {"printed": claim.printed, **claim.readings, **claim.corrections}


def scaled(claim: Claim, formula: Formula, factor: Fraction) -> Formula:
    """Another formula, every number of which is multiplied by the factor."""
    changed = perturbed(alone(claim, formula), factor).printed
    assert changed is not None
    return changed


def tried(claim: Claim, formula: Formula) -> Evidence | None:
    """What the check finds; None where the formula has no value that it can read."""
    try:
        return judged(alone(claim, formula)).printed
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
    return judged(next(claim for claim in known_claims() if claim.id == name))


def evidence(claim: Claim) -> dict[str, Evidence]:
    """What the check of a known claim finds for each formula, computed once."""
    found = _judged(claim.id)
    assert found.printed is not None
    return {"printed": found.printed, **found.others}
