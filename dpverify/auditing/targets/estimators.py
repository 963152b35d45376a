"""Estimators that learn from a data set (scikit-learn's style): what they learned is the output."""

from __future__ import annotations

import copy
import gc
import inspect
import random
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dpverify.errors import DrawError, ParameterError, require

__all__ = ["Fitted"]

_SOURCES = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
    random.Random,
    ModuleType,
)


@dataclass(frozen=True)
class Fitted:
    """A function of a data set that fits a copy of an estimator, and gives what that learned.

    Parameters
    ----------
    estimator : with `fit(X)`, `fit(X, y=None)` or `fit(X, y)`; its copies share the generators that
        it holds, as a copy of one would repeat its noise

    Raises
    ------
    ParameterError
        If its noise is fixed (a `random_state` other than None), so that all draws would be one; if
        `fit` takes something else.
    """

    estimator: Any

    def __post_init__(self) -> None:
        estimator = self.estimator
        ways = "Wrap it in a function: lambda data, rng: …"
        require(callable(estimator.fit), "fit", estimator.fit, "a method", ways)
        state = getattr(estimator, "random_state", None)
        rule = "None, since a fixed one gives the same noise for every data set"
        way = "Or audit a function that makes the estimator with a seed from rng at each call."
        require(state is None, "random_state", state, rule, way)
        try:
            inspect.signature(estimator.fit).bind(*([None] * (2 if self.labelled else 1)))
        except (TypeError, ValueError):
            rule = "called with X, or with X and y"
            raise ParameterError("fit", estimator, rule, ways) from None

    @cached_property
    def labelled(self) -> bool:
        """Whether it wants labels."""
        try:
            inspect.signature(self.estimator.fit).bind(None)
        except TypeError:
            return True
        return False

    @cached_property
    def sources(self) -> tuple[Any, ...]:
        """What it holds that draws, wherever it holds it."""
        found, seen, left = [], set(), [self.estimator]
        while left:
            held = left.pop()
            if id(held) in seen or isinstance(held, type | FunctionType):
                continue
            seen.add(id(held))
            if isinstance(held, _SOURCES):
                found.append(held)
            else:
                left += gc.get_referents(held)
        return tuple(found)

    def __call__(self, data: Any) -> dict[str, Any]:
        """Attributes that end in ``_`` of a copy that was fitted to the data."""
        fresh = self._fitted(data)
        learned = {name: value for name, value in vars(fresh).items() if _learned(name)}
        if not learned:
            raise DrawError(
                f"{type(self.estimator).__name__} has no attributes that end in _ after fit. Wrap "
                "it in a function that returns what is published."
            )
        return learned

    def unread(self, data: Any) -> tuple[str, ...]:
        """Names of what a fitted copy has besides, and the estimator hadn't, or only as None."""
        had, has = vars(self.estimator), vars(self._fitted(data))
        new = (name for name, value in has.items() if type(had.get(name)) is not type(value))
        return tuple(name for name in new if not _learned(name))

    def _fitted(self, data: Any) -> Any:
        apart = isinstance(data, tuple) and len(data) == 2
        if self.labelled and not apart:
            raise DrawError(
                f"{type(self.estimator).__name__} learns from X and y, and the data set isn't a "
                "tuple of the two. Name pairs of such, or wrap it in a function that takes the "
                "labels from the rows."
            )
        fresh = copy.deepcopy(self.estimator, {id(source): source for source in self.sources})
        fresh.fit(*(data if apart else (data,)))
        return fresh


def _learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")
