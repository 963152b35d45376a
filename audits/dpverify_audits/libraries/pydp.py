"""PyDP: Google's C++ algorithms of a list of numbers, their noise and their choice of partitions.

An algorithm claims the ε that it is made with, one element added or removed. All draw from the
system's entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pydp.algorithms import (
    laplacian,
    numerical_mechanisms,
    partition_selection,
)

from dpverify.data.adjacency import AddRemove, LInf
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_ROWS: Any = (([1, 2, 3], [1, 2, 3, 4]), ([4] * 8, [4] * 9), ([], [4]))
_READING = "epsilon of the algorithm; one element added or removed"
_NOISE = "epsilon (and delta) of the mechanism, at its sensitivity"
_SELECTION = "epsilon and delta of the strategy; a partition of n users against one of n - 1"


def _released(name: str, kind: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    """Of an algorithm that is made anew each time, as one answers only once with its budget."""
    made = getattr(laplacian, name)
    return lambda rows: made(epsilon=1, **options).quick_result([kind(x) for x in rows])


def entries() -> Iterator[Entry]:
    """All of them."""
    entry = partial(Entry, draws=300)
    data = partial(entry, reading=_READING, claim=claimed(1), adjacency=AddRemove())
    bounds = {"lower_bound": 0, "upper_bound": 4}
    signed = {"lower_bound": -2, "upper_bound": 4}
    far = (([1, 2, 3], [1, 2, 3, 9]), ([-9, 1], [1]), ([4] * 8, [4] * 7 + [4, -9]))
    for name in ("BoundedSum", "BoundedMean", "BoundedVariance", "BoundedStandardDeviation"):
        for dtype, kind in (("int", int), ("float", float)):
            options = {**bounds, "dtype": dtype}
            yield data(
                name=f"{name}, {dtype}", function=_released(name, kind, options), pairs=_ROWS
            )
        options = {**signed, "dtype": "float"}
        function = _released(name, float, options)
        yield data(name=f"{name}, values outside of the bounds", function=function, pairs=far)
    for name in ("Max", "Min", "Median"):
        function = _released(name, int, {**bounds, "dtype": "int"})
        yield data(name=f"{name}, bounded", function=function, pairs=_ROWS)
    for percentile in (0.1, 0.75):
        options = {**bounds, "percentile": percentile, "dtype": "float"}
        function = _released("Percentile", float, options)
        yield data(name=f"Percentile {percentile}", function=function, pairs=_ROWS)
    for name in ("BoundedSum", "BoundedMean"):
        options = {**bounds, "l0_sensitivity": 2, "linf_sensitivity": 3, "dtype": "int"}
        function = _released(name, int, options)
        yield data(name=f"{name}, l0 2 and linf 3", function=function, pairs=_ROWS)
    count = _released("Count", int, {"dtype": "int"})
    yield data(name="Count", function=count, pairs=_ROWS)
    unbounded = _released("BoundedSum", float, {"dtype": "float"})
    many = [1.0, 2.0, 3.0, 3.5] * 250
    yield data(
        name="BoundedSum, bounds by the library",
        draws=30,
        function=unbounded,
        pairs=((many, [*many, 1e6]), (many, many[:-1])),
    )

    numbers = (([0.0], [1.0]), ([3.0], [2.0]))
    noisy = partial(entry, reading=_NOISE, adjacency=LInf(1), pairs=numbers)
    laplace = numerical_mechanisms.LaplaceMechanism(1.0, 1.0)
    gaussian = numerical_mechanisms.GaussianMechanism(1.0, 0.01, 1.0)
    for name, made, curve in (
        ("LaplaceMechanism", laplace, claimed(1)),
        ("GaussianMechanism", gaussian, claimed(1, 0.01)),
    ):
        yield noisy(
            name=f"{name}, a float",
            function=lambda x, made=made: made.add_noise(float(x[0])),
            claim=curve,
        )
        yield noisy(
            name=f"{name}, a whole number",
            function=lambda x, made=made: made.add_noise(int(x[0])),
            claim=curve,
        )

    users = tuple((["u"] * n, ["u"] * (n + 1)) for n in (0, 3, 8))
    chosen = partial(entry, reading=_SELECTION, adjacency=AddRemove(), pairs=users)
    for name in ("truncated_geometric", "laplace", "gaussian"):
        create = getattr(partition_selection, f"create_{name}_partition_strategy")
        strategy = create(1.0, 0.05, 1)
        yield chosen(
            name=f"partition selection, {name.replace('_', ' ')}",
            function=lambda rows, strategy=strategy: strategy.should_keep(len(rows)),
            claim=claimed(1, 0.05),
        )
