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
from collections.abc import Callable, Sequence
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

Takes = Literal["record and rng", "record", "numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """A mechanism made of a callable.

    Attributes
    ----------
    function : called once for each record
    takes : a record of shape (p,) and numpy's generator, the record alone, or Python's own numbers
        (one if p is 1, else a list)
    adjacency, claim : whom it says it protects, and how well
    domain : of the records; None where it is all numbers
    attributes : p of the data sets that are made for the audit
    name : what a person calls it
    """

    function: Callable[..., Any]
    takes: Takes
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
        numbers = row.tolist()
        return self.function(numbers[0] if len(numbers) == 1 else numbers)


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
        measurement with `input_carrier_type`. The last two get Python's own numbers: whole ones
        where the records that are audited are of an integer type.
    adjacency, claim : whom it says it protects, and how well
    domain : of the records; None where it is all numbers
    attributes : p of the data sets that are made for the audit
    name : for messages; by default the function's own

    Raises
    ------
    ParameterError
        If the function can't be called with a record, or a record and a generator.
    """
    require(attributes >= 1, "attributes", attributes, "at least 1")
    takes: Takes = "numbers"
    called = function
    if callable(getattr(function, "randomise", None)):
        called = function.randomise
    elif not hasattr(function, "input_carrier_type"):
        takes = _takes(function)
    return Adapted(
        function=called,
        takes=takes,
        adjacency=adjacency,
        claim=claim,
        domain=domain,
        attributes=attributes,
        name=name or str(getattr(function, "__name__", type(function).__name__)),
    )


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
