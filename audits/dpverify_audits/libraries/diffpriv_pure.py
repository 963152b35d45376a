"""diffpriv-pure: sums, means and counts (Python's generator)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import diffpriv_pure as library

from dpverify.data.adjacency import AddRemove, LInf, Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_ROWS = (([0.0, 0.0, 1.0], [1.0, 0.0, 1.0]),)
_OUTSIDE = (([-9.0, 0.0, 1.0], [99.0, 0.0, 1.0]),)
_NUMBER = (([0.0], [1.0]), ([3.0], [2.0]))


def entries() -> Iterator[Entry]:
    """All of them."""
    row = partial(
        Entry,
        reading="epsilon (and delta) of the call; one row is replaced",
        adjacency=Replace(),
        draws=1000,
    )
    for name, query in (
        ("private_sum", library.private_sum),
        ("private_mean", library.private_mean),
    ):
        for noise, delta in (("Laplace", 0.0), ("Gaussian", 0.05)):
            for what, pairs in (("", _ROWS), (", values outside of the bounds", _OUTSIDE)):

                def told(data: Any, query: Any = query, delta: float = delta) -> float:
                    return float(query(list(data), (0, 1), 1.0, delta))

                yield row(
                    name=f"{name}, {noise}{what}",
                    function=told,
                    claim=claimed(1, delta),
                    pairs=pairs,
                )
    number = partial(
        Entry,
        reading="epsilon (and delta) of the noise, at sensitivity 1",
        adjacency=LInf(1),
        pairs=_NUMBER,
        draws=1000,
    )
    yield number(
        name="laplace_noise",
        claim=claimed(1),
        function=lambda x: float(x[0] + library.laplace_noise(1.0, 1.0)),
    )
    sigma = library.gaussian_sigma(1.0, 1.0, 0.05)
    yield number(
        name="gaussian_noise with gaussian_sigma",
        claim=claimed(1, 0.05),
        function=lambda x: float(x[0] + library.gaussian_noise(sigma)),
    )
    yield Entry(
        name="private_count",
        reading="epsilon of the call; one row comes or goes",
        function=lambda rows: library.private_count(len(rows), 1.0),
        claim=claimed(1),
        adjacency=AddRemove(),
        pairs=(([1], [1, 2]),),
        known="new: docs/reports/diffpriv-pure-count.md",
        example=_COUNT,
    )


_COUNT = """\
from collections import Counter
from diffpriv_pure import private_count
for count in (3, 4):  # one row is added
    told = Counter(private_count(count, epsilon=1.0) for _ in range(10_000))
    print(count, "rows: 3 is told", told[3], "times of 10,000; least:", min(told))
"""
