"""How what is adapted is called: a function, a `Command`, or an object of another library.

Libraries aren't imported: their objects are known by the names of their methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpverify.auditing.targets.command import Command
from dpverify.auditing.targets.estimators import Fitted
from dpverify.errors import PASSING, ParameterError, require
from dpverify.visible import raised

__all__ = ["Element", "Interface", "Takes", "interface_of"]

Takes = Literal["data", "number", "numbers"]
Element = Literal["any", "float", "whole", "truth"]

_WRAPPED = "Wrap it in a function: lambda data, rng: …"
_IN_ONE = "Wrap it in one: lambda data, rng: …"
_GENERATORS = ("rng", "generator")
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """What is called for a draw, and with what.

    Attributes
    ----------
    function : called once for each draw
    takes : the data themselves, one of Python's own numbers, or a list of them
    element : what each of Python's own numbers must be; "any" leaves it as it is recorded
    generator : how it takes numpy's generator: second ("") or by this name; None if it doesn't
    many : whether a call gives many outputs, as many as its second argument says
    """

    function: Callable[..., Any]
    takes: Takes = "data"
    element: Element = "any"
    generator: str | None = None
    many: bool = False


def interface_of(function: Any, *, many: bool = False) -> Interface:
    """How a function, a command or an object of a library is called.

    Parameters
    ----------
    function : as `adapt` takes it
    many : whether it makes many draws at once, of a function; a command says so itself

    Raises
    ------
    ParameterError
        If it is a class, has the methods of several libraries, or can't be called with data, or
        with data and a generator.
    """
    made = not isinstance(function, type)
    require(made, "function", function, "an object or a function, and not a class", "Make one.")
    ways = ("randomise", "quick_result", "fit", "input_carrier_type")
    offered = [way for way in ways if getattr(function, way, None) is not None]
    rule = "only one of these, so that it is clear what is audited"
    require(len(offered) < 2, ", ".join(offered), function, rule, _WRAPPED)
    if isinstance(function, Command):
        require(not many, "many", many, "given to the Command itself")
        generator = "" if function.seeded else None
        return Interface(function=function, generator=generator, many=function.many)
    if not offered:
        return Interface(function=function, generator=_generator(function, many=many), many=many)
    require(not many, "many", many, "left out for an object", _WRAPPED)
    match offered[0]:
        case "randomise":
            element = _asked(function)
            return Interface(function=function.randomise, takes="number", element=element)
        case "quick_result":
            return Interface(function=function.quick_result, takes="numbers")
        case "fit":
            return Interface(function=Fitted(function))
    takes, element = _carried(str(function.input_carrier_type))
    return Interface(function=function, takes=takes, element=element)


_CARRIED: Mapping[str, Element] = {
    **dict.fromkeys(("f32", "f64"), "float"),
    **dict.fromkeys([f"{sign}{size}" for sign in "iu" for size in (8, 16, 32, 64, 128)], "whole"),
    "usize": "whole",
    "bool": "truth",
}


def _carried(carrier: str) -> tuple[Takes, Element]:
    """What a measurement of OpenDP takes, by its carrier type: ``f64``, ``Vec<i32>``."""
    inner = carrier.removeprefix("Vec<").removesuffix(">")
    rule = "numbers, truth values, or a vector of them"
    require(inner in _CARRIED, "input_carrier_type", carrier, rule, "Wrap it in a function.")
    return ("number" if inner == carrier else "numbers"), _CARRIED[inner]


def _asked(mechanism: Any) -> Element:
    """What an object with `randomise` takes: a float, or whole numbers alone (diffprivlib's)."""
    try:
        mechanism.randomise(0.0)
    except PASSING:
        raise
    except BaseException:  # each library has its own way to refuse
        try:
            mechanism.randomise(0)
        except PASSING:
            raise
        except BaseException as error:
            raise ParameterError(
                "function",
                mechanism,
                f"one that takes a number: {raised(error)}",
                "Wrap it in a function.",
            ) from None
        return "whole"
    return "any"


def _generator(function: Any, *, many: bool) -> str | None:
    """How a function takes numpy's generator: second (""), by this name, or not at all (None).

    Of a function that makes many draws at once the second parameter is their number.
    """
    rule = "a function of a record or a data set, alone or with numpy's generator"
    signature = _signature(function, rule)
    kinds, parameters = inspect.Parameter, list(signature.parameters.values())
    if many:
        takes = "one of data and a number of draws, and numpy's generator if it takes one"
        require(len(parameters) > 1, "function", function, takes, "Leave out `many`.")
        del parameters[1]
        signature = signature.replace(parameters=parameters)
    if any(parameter.kind == kinds.VAR_POSITIONAL for parameter in parameters):
        says = f"one that says its arguments: {signature} doesn't tell whether it takes a generator"
        raise ParameterError("function", function, says, _IN_ONE)
    first = parameters[0].name if parameters else None
    if first in _GENERATORS:
        data_first = f"one that takes data first, and {signature} takes {first!r} first"
        raise ParameterError("function", function, data_first, _IN_ONE)
    by_place = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    by_name = [p.name for p in parameters[1:] if p.name in _GENERATORS]
    generator: str | None = next(iter(by_name), None)
    second = by_place[1] if len(by_place) > 1 else None
    if second and (second.name in _GENERATORS or (second.default is kinds.empty and not by_name)):
        generator = ""
    options = {generator: None} if generator else {}
    try:
        signature.bind(*([None, None] if generator == "" else [None]), **options)
    except TypeError as error:
        raise ParameterError("function", function, rule, _IN_ONE) from error
    return generator


def _signature(function: Any, rule: str) -> inspect.Signature:
    """Of a function that returns its output; of a decorated one that takes anything, its own."""
    require(callable(function), "function", function, rule, _IN_ONE)
    # Called, these give an object that has drawn nothing yet.
    late = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_late(called) for is_late in late for called in (function, type(function).__call__)):
        raise ParameterError("function", function, "one that returns its output", _IN_ONE)
    try:
        signature = inspect.signature(function, follow_wrapped=False)
        if any(parameter.kind in _ANY for parameter in signature.parameters.values()):
            signature = inspect.signature(function)  # what a decorator hands on
    except ValueError as error:  # some functions of extension modules have none
        raise ParameterError("function", function, rule, _IN_ONE) from error
    return signature
