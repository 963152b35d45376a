"""trasgoDP: noise for each row of a column, and for places on a map (numpy's global generator)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from trasgodp.categorical import (
    dp_exponential,
    dp_exponential_array,
    dp_randomized_response_binary,
    dp_randomized_response_binary_array,
    dp_randomized_response_kary,
    dp_randomized_response_kary_array,
)
from trasgodp.geoindis import metric_privacy
from trasgodp.numerical import (
    dp_clip_gaussian,
    dp_clip_gaussian_array,
    dp_clip_laplace,
    dp_clip_laplace_array,
)

from dpverify.data.adjacency import Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_TO = {"lower_bound": 0, "upper_bound": 10}
_NUMBERS = (([0.0, 5.0], [10.0, 5.0]), ([-50.0, 5.0], [99.0, 5.0]))
_WHOLE = (([0, 5], [10, 5]),)
_LETTERS = (([*"aabc"], [*"babc"]), ([*"cabc"], [*"aabc"]))
_RARE = (([*"aabc"], [*"aabb"]),)
_PLACES = (([(0.0, 0.0)], [(0.008993216, 0.0)]),)
"""Degrees of latitude and longitude: 1,000 m apart on the equator."""


def _columned(call: Callable[..., Any], options: dict[str, Any], data: Any) -> Any:
    frame = pd.DataFrame({"value": list(data)})
    return call(frame, "value", **options)["value"].tolist()


def _listed(call: Callable[..., Any], options: dict[str, Any], data: Any) -> Any:
    return call(np.array(list(data)), **options).tolist()


def _moved(data: Any, *, seeded: bool, radius: bool) -> Any:
    """A place with noise; with its radius, the distance from the first of the two places."""
    frame = pd.DataFrame(list(data), columns=["lat", "lon"])
    options: dict[str, Any] = {} if seeded else {"seed": secrets.randbits(32)}
    told = metric_privacy(frame, "lat", "lon", 0.001, **options).iloc[0]
    distance = np.hypot(told["lat"], told["lon"]) * np.radians(6_371_000)
    return abs(distance - told["radius_m"]) < 1 if radius else [told["lat"], told["lon"]]


def entries() -> Iterator[Entry]:
    """All of them."""
    one = partial(
        Entry,
        reading="epsilon (and delta) of the call; the value of one row is replaced",
        claim=claimed(1),
        adjacency=Replace(),
        draws=300,
    )
    tilted = {"epsilon": 1.0, "delta": 0.05, **_TO}
    for kind, call in (("array", dp_clip_laplace_array), ("column", dp_clip_laplace)):
        given = partial(_listed if kind == "array" else _columned, call, {"epsilon": 1.0, **_TO})
        yield one(name=f"Laplace noise, {kind}", function=given, pairs=_NUMBERS)
        yield one(name=f"Laplace noise of whole numbers, {kind}", function=given, pairs=_WHOLE)
    for kind, call in (("array", dp_clip_gaussian_array), ("column", dp_clip_gaussian)):
        yield one(
            name=f"Gaussian noise, {kind}",
            function=partial(_listed if kind == "array" else _columned, call, tilted),
            pairs=_NUMBERS,
            claim=claimed(1, 0.05),
        )
    plain = {"epsilon": 1.0}
    for kind, call in (("array", dp_exponential_array), ("column", dp_exponential)):
        given = partial(_listed if kind == "array" else _columned, call, plain)
        yield one(name=f"exponential mechanism, {kind}", function=given, pairs=_LETTERS)
    for kind, call in (
        ("array", dp_randomized_response_kary_array),
        ("column", dp_randomized_response_kary),
    ):
        given = partial(_listed if kind == "array" else _columned, call, plain)
        yield one(name=f"randomized response, {kind}", function=given, pairs=_LETTERS)
    binary = (([*"aab"], [*"bab"]),)
    for kind, call in (
        ("array", dp_randomized_response_binary_array),
        ("column", dp_randomized_response_binary),
    ):
        given = partial(_listed if kind == "array" else _columned, call, plain)
        yield one(name=f"binary randomized response, {kind}", function=given, pairs=binary)
    report = "new: docs/reports/trasgodp.md"
    yield one(
        name="exponential mechanism, a category of one row",
        function=partial(_listed, dp_exponential_array, plain),
        pairs=_RARE,
        known=report,
        example=_CATEGORY,
    )
    yield one(
        name="randomized response, a category of one row",
        function=partial(_listed, dp_randomized_response_kary_array, plain),
        pairs=_RARE,
        known=report,
        example=_CATEGORY,
    )
    place = partial(
        one,
        reading="epsilon of the call, a metre; of two places 1,000 m apart",
        pairs=_PLACES,
        draws=150,
    )
    yield place(
        name="metric_privacy, fresh seed, the place alone",
        function=partial(_moved, seeded=False, radius=False),
    )
    yield place(
        name="metric_privacy, fresh seed, with its radius",
        function=partial(_moved, seeded=False, radius=True),
        known=report,
        example=_RADIUS,
    )
    yield place(
        name="metric_privacy, seed by default",
        function=partial(_moved, seeded=True, radius=False),
        known=report,
        example=_PLACE,
    )


_CATEGORY = """\
from trasgodp.categorical import dp_exponential_array, dp_randomized_response_kary_array
for values in (["a", "a", "b", "c"], ["a", "a", "b", "b"]):  # the last one is replaced
    told = [dp_exponential_array(values, epsilon=1) for _ in range(1000)]
    print("a c among them:", sum("c" in list(each) for each in told), "of 1,000")
    try:
        print(dp_randomized_response_kary_array(values, epsilon=1))
    except ValueError as error:
        print(error)
"""

_RADIUS = """\
import numpy as np, pandas as pd, secrets
from trasgodp.geoindis import metric_privacy
for latitude in (0.0, 0.009):  # about 1,000 m apart
    place = pd.DataFrame({"lat": [latitude], "lon": [0.0]})
    told = metric_privacy(place, "lat", "lon", 0.001, seed=secrets.randbits(32)).iloc[0]
    from_zero = np.hypot(told["lat"], told["lon"]) * np.radians(6_371_000)
    print("distance from (0, 0):", from_zero, "radius that is told:", told["radius_m"])
"""

_PLACE = """\
import pandas as pd
from trasgodp.geoindis import metric_privacy
for latitude in (0.0, 0.0, 0.009):
    place = pd.DataFrame({"lat": [latitude], "lon": [0.0]})
    print(metric_privacy(place, "lat", "lon", 0.001))
"""
