"""Formulas and oracles changed on purpose.

A formula is changed by a factor, and by leaving out one term of one sum. An oracle, what a check
compares the formula with, is changed by a factor, on its own or together with the formula: each
function of the ledger that both of them use is. Whatever functions either side calls are changed in
their source, one place at a time: a term or a factor is lost, a power or a sign is, a comparison is
turned round, a least is taken for a largest.
"""

from __future__ import annotations

import ast
import copy
import gc
import inspect
import random
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    "altered",
    "evidence",
    "normalised",
    "noticed",
    "reached",
    "scaled",
    "tried",
    "without_a_term",
]

Function = ast.FunctionDef | ast.Lambda
_OURS = ("dpverify_audits", "dpverify.ledger", "tests.audits")


def alone(statement: Statement, formula: Formula) -> Statement:
    """The statement as if this formula were printed, with nothing to fall back on."""
    return replace(statement, printed=formula, conditions="", readings={}, corrections={})


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


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    one: other
    for pair in ((ast.Lt, ast.Gt), (ast.LtE, ast.GtE), (ast.Eq, ast.NotEq))
    for one, other in (pair, pair[::-1])
}
_LOST = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1, ast.Pow: 1}


def _edits(part: ast.AST) -> Iterator[tuple[str, str, Any]]:
    """What a place of a function can be changed to: in words, an attribute and its new value."""
    match part:
        case ast.BinOp(op=op) if type(op) in _LOST:
            for side in ("right",) if isinstance(op, ast.Pow) else ("left", "right"):
                lost, new = getattr(part, side), ast.Constant(_LOST[type(op)])
                if ast.dump(lost) != ast.dump(new):
                    yield f"without {ast.unparse(lost)} in {ast.unparse(part)}", side, new
        case ast.Compare(ops=[op]) if type(op) in _TURNED:
            yield f"turned {ast.unparse(part)}", "ops", [_TURNED[type(op)]()]
        case ast.UnaryOp(op=ast.USub()):
            yield f"without the sign of {ast.unparse(part)}", "op", ast.UAdd()
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            other = {"min": "max", "max": "min"}[name]
            yield f"{other} for {ast.unparse(part)}", "func", ast.Name(other)


def altered(
    functions: Iterable[FunctionType], most: int, seed: str
) -> list[tuple[str, FunctionType, CodeType]]:
    """Some of the ways to change one place of one of these functions: in words, and its code."""
    found = []
    for function in sorted(
        functions, key=lambda one: (one.__module__, one.__code__.co_firstlineno)
    ):
        node = _source(function)
        for place, part in enumerate(ast.walk(node)):
            for text, attribute, new in _edits(part):
                changed = copy.deepcopy(node)
                setattr(list(ast.walk(changed))[place], attribute, new)
                found.append((f"{function.__name__}: {text}", function, changed))
    chosen = random.Random(seed).sample(found, min(most, len(found)))
    made = ((text, one, inspect.unwrap(_made(node, one)).__code__) for text, one, node in chosen)
    # what a function encloses can't change with its code
    return [each for each in made if each[2].co_freevars == each[1].__code__.co_freevars]


@contextmanager
def _swapped(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Meanwhile the function has this code, and nothing that was computed before is kept."""
    before = function.__code__
    function.__code__ = code
    for cached in _caches():
        cached.cache_clear()
    try:
        yield
    finally:
        function.__code__ = before
        for cached in _caches():
            cached.cache_clear()


@cache
def _caches() -> list[Any]:
    """What the ledgers' functions remember."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_OURS[0])]
    values = (value for module in modules for value in vars(module).values())
    return [value for value in values if hasattr(value, "cache_clear")]


def noticed(
    statement: Statement, names: Sequence[str], function: FunctionType, code: CodeType
) -> bool:
    """Whether the check finds something else for one of the formulas; or nothing, or no end."""
    check, before = statement.check, evidence(statement)
    assert check is not None

    def stop(*_: Any) -> None:
        raise TimeoutError

    handler = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()  # what is raised in a callback of the collector is lost
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)
    try:
        with _swapped(function, code):
            return any(check(statement.formulas[name]) != before[name] for name in names)
    except (ArithmeticError, AttributeError, LookupError, OSError):
        return True
    except (RuntimeError, SystemError, TypeError, ValueError):  # an integral's is a SystemError
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
        signal.signal(signal.SIGVTALRM, handler)


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
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    around = [
        node
        for node in _functions(module)
        if (node.lineno, node.col_offset) <= first
        and last <= (node.end_lineno or 0, node.end_col_offset or 0)
        and tuple(argument.arg for argument in node.args.args) == names
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
