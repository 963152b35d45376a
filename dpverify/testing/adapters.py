"""Adapters: other people's mechanisms, audited as they stand.

An audit draws from anything that has `release(records, *, rng)`, an adjacency and a claim. `adapt`
makes that of a plain function, of an object with `randomise` (diffprivlib) and of an object with
`input_carrier_type` that is called (OpenDP). Those libraries aren't imported.

**Replay.** A function of a record and numpy's generator gets one that is seeded from the audit's
words, a new one for every record, so that its audit gives the same draws each time. Whatever draws
its own randomness can't be replayed: its audit keeps its level, but a second run may end otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpverify.adjacency import Adjacency
from dpverify.domain import Domain
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve
from dpverify.mechanism import Mechanism
from dpverify.sampling.words import Words

__all__ = ["Adapted", "adapt"]

Takes = Literal["record and rng", "record", "number", "numbers"]
Element = Literal["any", "float", "whole", "truth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """A mechanism made of a callable.

    Attributes
    ----------
    function : called once for each record
    takes : a record of shape (p,) and numpy's generator, the record alone, one of Python's own
        numbers, or a list of them
    element : what each of Python's own numbers must be; "any" leaves it as it is recorded
    adjacency, claim : whom it says it protects, and how well
    domain : of the records; None where it is all numbers
    attributes : p of the data sets that are made for the audit
    name : what a person calls it
    """

    function: Callable[..., Any]
    takes: Takes
    element: Element
    adjacency: Adjacency
    claim: PrivacyCurve
    domain: Domain | None
    attributes: int
    name: str

    @property
    def replayable(self) -> bool:
        """Whether the audit's words decide all that it draws."""
        return self.takes == "record and rng"

    def privacy(self) -> PrivacyCurve:
        """The claim."""
        return self.claim

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Release of records of shape (n, p), a row each; of sets, an array of n sets."""

        def generator() -> np.random.Generator:
            entropy = rng.words(4).tolist()
            return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

        return _stacked([self._answer(row, generator) for row in np.atleast_2d(records)])

    def with_generator(self, records: Any, rng: Any) -> NDArray[Any]:
        """Release with a generator of the caller's, which a grey-box check records."""
        return _stacked([self._answer(row, lambda: rng) for row in np.atleast_2d(records)])

    def _answer(self, row: NDArray[Any], generator: Callable[[], Any]) -> Any:
        # A copy: a function that changes its argument must not change the next call's.
        if self.takes == "record and rng":
            return self.function(row.copy(), generator())
        if self.takes == "record":
            return self.function(row.copy())
        numbers = [_as_element(self.element, value) for value in row.tolist()]
        return self.function(numbers[0] if self.takes == "number" else numbers)


def adapt(
    function: Any,
    *,
    adjacency: Adjacency,
    claim: PrivacyCurve,
    domain: Domain | None = None,
    attributes: int = 1,
    name: str | None = None,
) -> Mechanism:
    """Make a mechanism of a function, an OpenDP measurement or a diffprivlib mechanism.

    Parameters
    ----------
    function : f(record, rng) with numpy's generator, f(record), an object with `randomise`, or a
        measurement with `input_carrier_type`. The last two get Python's own numbers, and floats,
        whole ones or truth values as they want them: a measurement says what it takes, an object
        with `randomise` is asked once, by a call with 0.
    adjacency, claim : whom it says it protects, and how well
    domain : of the records; None where it is all numbers
    attributes : p of the data sets that are made for the audit
    name : for messages; by default the function's own

    Raises
    ------
    ParameterError
        If the function can't be called with a record, or a record and a generator; if a
        measurement or object takes something else than numbers.
    """
    require(attributes >= 1, "attributes", attributes, "at least 1")
    takes: Takes
    element: Element = "any"
    called = function
    if callable(getattr(function, "randomise", None)):
        require(attributes == 1, "attributes", attributes, "1, as `randomise` takes one number")
        called, takes, element = function.randomise, "number", _asked(function)
    elif hasattr(function, "input_carrier_type"):
        takes, element = _carried(str(function.input_carrier_type))
        require(
            takes == "numbers" or attributes == 1, "attributes", attributes, "1 for a single number"
        )
    else:
        takes = _takes(function)
    return Adapted(
        function=called,
        takes=takes,
        element=element,
        adjacency=adjacency,
        claim=claim,
        domain=domain,
        attributes=attributes,
        name=name or str(getattr(function, "__name__", type(function).__name__)),
    )


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
    except TypeError:
        try:
            mechanism.randomise(0)
        except TypeError as error:
            raise ParameterError(
                "function", mechanism, f"one that takes a number: {error}", "Wrap it in a function."
            ) from None
        return "whole"
    return "any"


def _as_element(element: Element, value: Any) -> Any:
    match element:
        case "any":
            return value
        case "float":
            return float(value)
        case "whole":
            require(value == int(value), "record", value, "whole, as this mechanism takes them")
            return int(value)
        case "truth":
            require(value in (0, 1), "record", value, "0 or 1, as this mechanism takes them")
            return bool(value)


def _takes(function: Any) -> Takes:
    rule = "a function of a record, or of a record and numpy's generator"
    require(callable(function), "function", function, rule)
    try:
        signature = inspect.signature(function)
    except ValueError as error:  # some functions of extension modules have none
        raise ParameterError("function", function, rule, "Wrap it in one.") from error
    choices: tuple[tuple[Takes, int], ...] = (("record and rng", 2), ("record", 1))
    for takes, count in choices:
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        # A second argument with a default is a generator only if it is called so.
        second = list(signature.parameters.values())[1:2]
        if count == 2 and second and second[0].default is not second[0].empty:
            named = second[0].name in ("rng", "generator")
            if not named:
                continue
        return takes
    raise ParameterError("function", function, rule, "Wrap it in one.")


def _stacked(answers: Sequence[Any]) -> NDArray[Any]:
    if isinstance(answers[0], set | frozenset):
        sets = np.empty(len(answers), dtype=object)
        sets[:] = answers
        return sets
    return np.array(answers)
