"""eeprivacy: statistics of energy use, with noise of numpy's global generator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from eeprivacy import operations
from eeprivacy.mechanisms import GaussianMechanism, LaplaceMechanism

from dpverify.data.adjacency import AddRemove, LInf, Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_TO = {"lower_bound": 0.0, "upper_bound": 10.0}
_NUMBER = (([0.0], [1.0]), ([3.0], [2.0]))
_ROWS = (([0.0, 0.0, 5.0], [10.0, 0.0, 5.0]),)
_OUTSIDE = (([0.0, 0.0, 5.0], [1000.0, 0.0, 5.0]),)
_VECTORS = (([(0.0, 0.0), (5.0, 5.0)], [(10.0, 0.0), (5.0, 5.0)]),)
_COME = (([1.0, 6.0], [1.0, 6.0, 6.0]), ([99.0, 1.0], [1.0]))
_LOWEST = (([1.5, *[2.5] * 6, *[9.0] * 53], [0.5, 1.5, *[2.5] * 6, *[9.0] * 53]),)
"""60 values, of which 1 is below 2 and 7 are below 3, and one more below both."""


def _single(query: Any, data: Any) -> float:
    return float(query.execute(values=list(data), epsilon=1.0))


def _quantile(data: Any, quantile: float, options: list[float]) -> float:
    found = operations.PrivateQuantile(options=options)
    told = found.execute(values=np.array(data), epsilon=1.0, quantile=quantile)
    return float(told)


def entries() -> Iterator[Entry]:
    """All of them."""
    report = "new: docs/reports/eeprivacy.md"
    number = partial(
        Entry,
        reading="epsilon (and delta) of the mechanism, at its sensitivity",
        adjacency=LInf(1),
        pairs=_NUMBER,
        draws=1000,
    )
    yield number(
        name="LaplaceMechanism",
        claim=claimed(1),
        function=lambda x: LaplaceMechanism.execute(value=x[0], epsilon=1.0, sensitivity=1.0),
    )
    yield number(
        name="GaussianMechanism",
        claim=claimed(1, 0.05),
        function=lambda x: GaussianMechanism.execute(
            value=x[0], epsilon=1.0, delta=0.05, sensitivity=1.0
        ),
    )
    swap = partial(
        Entry,
        reading="epsilon (and delta) of the call; one row is replaced",
        claim=claimed(1),
        adjacency=Replace(),
        draws=1000,
    )
    total = partial(_single, operations.PrivateClampedSum(**_TO))
    mean = partial(_single, operations.PrivateClampedMean(**_TO))
    outside = "a value outside of the bounds"
    yield swap(name="PrivateClampedSum", function=total, pairs=_ROWS)
    yield swap(name=f"PrivateClampedSum, {outside}", function=total, pairs=_OUTSIDE)
    yield swap(name="PrivateClampedMean", function=mean, pairs=_ROWS)
    yield swap(
        name=f"PrivateClampedMean, {outside}",
        function=mean,
        pairs=_OUTSIDE,
        known=report,
        example=_MEAN,
    )
    size = {"k": 2, "N": 2}
    normal = operations.PrivateVectorClampedMeanGaussian(**_TO, **size)
    yield swap(
        name="PrivateVectorClampedMeanGaussian",
        function=lambda data: normal.execute(vectors=list(data), epsilon=1.0, delta=0.05).tolist(),
        claim=claimed(1, 0.05),
        pairs=_VECTORS,
    )
    vector = operations.PrivateVectorClampedMeanLaplace(**_TO, **size)
    yield swap(
        name="PrivateVectorClampedMeanLaplace, difference of both means",
        function=lambda data: float(
            round(np.diff(vector.execute(vectors=list(data), epsilon=1.0, delta=0.0))[0], 6)
        ),
        pairs=_VECTORS,
        known=report,
        example=_VECTOR,
    )
    come = partial(
        Entry,
        reading="epsilon of the call; one row comes or goes",
        claim=claimed(1),
        adjacency=AddRemove(),
        draws=1000,
    )
    counts = operations.PrivateHistogram(bins=[0.0, 5.0, 10.0])
    yield come(
        name="PrivateHistogram",
        function=lambda data: counts.execute(values=np.array(data), epsilon=1.0).tolist(),
        pairs=_COME,
    )
    yield come(
        name="PrivateQuantile, the median",
        function=partial(_quantile, quantile=0.5, options=[2.0, 5.0, 8.0]),
        pairs=_COME[:1],
    )
    yield come(
        name="PrivateQuantile, the lowest tenth",
        function=partial(_quantile, quantile=0.1, options=[2.0, 3.0]),
        pairs=_LOWEST,
        draws=10_000,
        known=report,
        example=_QUANTILE,
    )


_MEAN = """\
from eeprivacy.operations import PrivateClampedMean
mean = PrivateClampedMean(lower_bound=0, upper_bound=10)
for first in (0.0, 1000.0):  # one row is replaced; 1000 would be clamped to 10
    told = [mean.execute(values=[first, 0.0, 5.0], epsilon=1.0) for _ in range(1000)]
    print(first, "the mean is 10 in", told.count(10), "of 1,000")
"""

_VECTOR = """\
from eeprivacy.operations import PrivateVectorClampedMeanLaplace
mean = PrivateVectorClampedMeanLaplace(lower_bound=0, upper_bound=10, k=2, N=2)
for first in ([0.0, 0.0], [10.0, 0.0]):  # one row is replaced
    told = [mean.execute(vectors=[first, [5.0, 5.0]], epsilon=1.0, delta=0.0) for _ in range(3)]
    print(first, "first mean less second:", [float(one - two) for one, two in told])
"""

_QUANTILE = """\
import numpy as np
from eeprivacy.operations import PrivateQuantile
chosen = PrivateQuantile(options=[2.0, 3.0])
rows, low = np.array([1.5] + [2.5] * 6 + [9.0] * 53), []
for values in (rows, np.append(rows, 0.5)):  # one row is added
    told = [chosen.execute(values=values, epsilon=1.0, quantile=0.1) for _ in range(20_000)]
    low.append(told.count(2.0) / len(told))
print(low, "log of the ratio:", np.log(low[1] / low[0]), "epsilon claimed: 1")
"""
