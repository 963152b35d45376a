"""What shows that the checks of a ledger can fail: changed formulas, and lost terms."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from dpverify.auditing.claims import Claim, Evidence, Formula, judged

Mutant = tuple[str, str, Formula]
_NEAR = [Fraction(21, 20), Fraction(20, 21)]
_FAR = [Fraction(10) ** power for power in (-1, 1, -2, 2, -3, 3, -7, 7)]


def _scaled(formula: Formula, factor: Fraction) -> Formula:
    def scaled(*case: Any) -> Any:
        value = formula(*case)
        exact = isinstance(value, Fraction | int)
        return None if value is None else value * (factor if exact else float(factor))

    return scaled


@pytest.fixture(scope="session")
def never_fails() -> Callable[..., list[str]]:
    """The formulas of a claim that hold and that no change of theirs makes fail.

    What is reached must fail within 5 %, a loose bound within 10⁷; `other` is another rule, for
    formulas that aren't numbers.
    """

    def find(claim: Claim, other: Mapping[str, Formula]) -> list[str]:
        found = judged(claim)
        assert claim.printed is not None
        given = {"printed": claim.printed, **claim.readings, **claim.corrections}
        seen = {"printed": found.printed, **found.others}
        names = []
        for name, formula in given.items():
            evidence = seen[name]
            assert evidence is not None
            if not evidence.holds:
                assert evidence.counterexample, f"{claim.id} {name}"
                continue
            factors = _NEAR if evidence.tight else _FAR
            changes = [_scaled(formula, factor) for factor in factors]
            if claim.id in other:
                changes = [other[claim.id]]
            alone = (replace(claim, printed=c, readings={}, corrections={}) for c in changes)
            if not any(judged(changed).verdict == "refuted" for changed in alone):
                names.append(name)
        return names

    return find


def _without_a_term(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Copies of a function in each of which one sum or difference has lost one side."""
    for place, found in enumerate(ast.walk(node)):
        if not (isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add | ast.Sub)):
            continue
        for side in ("left", "right"):
            changed = copy.deepcopy(node)
            mutated = list(ast.walk(changed))[place]
            assert isinstance(mutated, ast.BinOp)
            lost = getattr(mutated, side)
            text = ast.unparse(lost)
            # x + 0, 0 + y or 0 − y in place of the sum
            setattr(mutated, side, ast.copy_location(ast.Constant(0), lost))
            yield f"without {text}", changed


def mutants(module: ModuleType) -> Iterator[Mutant]:
    """(claim, what is left out, formula) for every sum in a printed formula of the module."""
    tree = ast.parse(inspect.getsource(module))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Claim"):
            continue
        given = {word.arg: word.value for word in call.keywords}
        name, printed = given["id"], given.get("printed")
        if not isinstance(name, ast.Constant):
            continue
        if isinstance(printed, ast.Name) and printed.id in functions:
            for text, changed in _without_a_term(functions[printed.id]):
                scope = dict(vars(module))
                assert isinstance(changed, ast.FunctionDef)
                changed.decorator_list = []
                block = ast.Module(body=[changed], type_ignores=[])
                exec(compile(ast.fix_missing_locations(block), module.__name__, "exec"), scope)  # noqa: S102
                yield str(name.value), text, scope[printed.id]
        elif isinstance(printed, ast.Lambda):
            for text, changed in _without_a_term(printed):
                assert isinstance(changed, ast.Lambda)
                whole = ast.fix_missing_locations(ast.Expression(changed))
                code = compile(whole, module.__name__, "eval")
                # both are the source of this package, less a term
                yield str(name.value), text, eval(code, dict(vars(module)))  # noqa: S307


def _tried(claim: Claim) -> tuple[str, Evidence | None]:
    try:
        found = judged(claim)
    except (ArithmeticError, AttributeError, ValueError, TypeError) as error:
        # a formula without a value
        return repr(error), None
    return found.verdict, found.printed


@pytest.fixture(scope="session")
def survivors() -> Callable[..., list[str]]:
    """Mutants of a package's modules that the checks don't notice.

    A lost term must change the verdict of what is confirmed exactly, and the evidence of the rest.
    """

    def find(package: ModuleType) -> list[str]:
        claims: dict[str, Claim] = {claim.id: claim for claim in package.CLAIMS}
        found = []
        modules = [m for m in vars(package).values() if isinstance(m, ModuleType)]
        before: dict[str, Any] = {}
        tried = 0
        for module in modules:
            for name, text, formula in mutants(module):
                alone = replace(claims[name], readings={}, corrections={})
                if name not in before:
                    before[name] = _tried(alone)
                after = _tried(replace(alone, printed=formula))
                tried += 1
                same = after == before[name]
                if same or before[name][0] == after[0] == "confirmed_exactly":
                    found.append(f"{name} {text}")
        assert tried, "no formula was changed"
        return found

    return find
