"""Sensitivity and bounding.

Noise is sold by the length of the step that a person can make. Here the step was measured in one
place and made in another: clipped data are computed and the raw ones are used, a bound holds for a
column that is then replaced, a sum is divided by a number that is a secret too.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.columns import Booleans, Categories, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["EXHIBITS", "NAME"]

NAME = "Sensitivity and bounding"
_UNIT = Table({"x": Reals(0, 1)}, rows=(0, 12), make="numpy")
_SIZED = Table({"x": Reals(0, 1)}, rows=4, make="numpy")
_INCOMES = Table({"x": Reals(-100, 100), "woman": Booleans()}, rows=12, make="numpy")
_PEOPLE = Table(dict.fromkeys(("name", "street", "phone"), Categories(*"abcd")), rows=(0, 8))
_POINTS = Table({"x": Reals(-50, 50), "y": Reals(-50, 50)}, rows=4, make="numpy")
_GAPS = Table({"x": Reals(-5, 5, missing=True)}, rows=(0, 12), make="numpy")
_VISITS = Table(
    {"id": Integers(1, 4), "place": Categories("a", "b", "c"), "paid": Reals(0, 10)}, rows=(0, 12)
)


def _covariance(x: Any, rng: Any, *, forgets: bool) -> float:
    """Of clipped numbers in [−1, 1], n = 4, one row replaced: products move by at most 2."""
    clipped = np.clip(x, -1, 1)
    used = x if forgets else clipped
    return float((used[:, 0] * used[:, 1]).mean() + rng.laplace(scale=2 / 4))


def _mean(x: Any, rng: Any, *, of_n: bool) -> float:
    if of_n:  # as if the number of rows couldn't change
        return float(x.sum() / max(len(x), 1) + rng.laplace(scale=1 / max(len(x), 1)))
    count = max(len(x) + rng.laplace(scale=2), 1)
    return float((x.sum() + rng.laplace(scale=2)) / count)


def _gaussian_sum(x: Any, rng: Any, *, sigma: float) -> float:
    return float(x.sum() + rng.normal(scale=sigma))


def _regression(x: Any, rng: Any, *, low: float, high: float) -> float:
    """A moment of the data, by its declared bounds (low, high); the true ones are 0 and 10."""
    scale = (high - low) / len(x)
    return float(10 * x.mean() + (rng.laplace(scale=scale) if scale else 0.0))


def _counts_by_n(rows: Any, rng: Any, *, scale: float) -> Any:
    """Of a sized data set, one row of which is replaced."""
    counts = [sum(row["place"] == place for row in rows) for place in "abc"]
    return [count + rng.laplace(scale=scale) for count in counts]


def _weights(rows: Any, rng: Any, *, degree: int) -> Any:
    """PrivBayes' tables: as many as attributes beyond the degree of its network."""
    scale = 2 * (3 - degree) / 1.0
    return [
        sum(row["place"] == p for row in rows) + (rng.laplace(scale=scale) if scale else 0)
        for p in "abc"
    ]


def _distinct(rows: Any, rng: Any, *, bound: int, by_value: bool) -> Any:
    """Distinct places, to which a user adds at most `bound`: by the value, or by the user."""
    seen: dict[Any, set[Any]] = defaultdict(set)
    kept = set()
    for row in rows:
        owner = row["place"] if by_value else row["id"]
        if len(seen[owner]) < bound or row["place"] in seen[owner]:
            seen[owner].add(row["place"])
            kept.add((row["id"], row["place"]) if by_value else row["place"])
    return len(kept) + rng.laplace(scale=bound)


def _place_counts(rows: Any, rng: Any, *, scale: float, most: int = 3) -> Any:
    """Rows by place, at most so many of a user, who may be replaced by another."""
    taken: dict[Any, int] = defaultdict(int)
    counts = dict.fromkeys("abc", 0)
    for row in rows:
        taken[row["id"]] += 1
        if taken[row["id"]] <= most:
            counts[row["place"]] += 1
    return {place: n + rng.laplace(scale=scale) for place, n in counts.items()}


def _truncated(rows: Any, rng: Any, *, redefined: bool) -> float:
    """At most one row of each user; a later step renames users, or doesn't."""
    first: dict[Any, Any] = {}
    for number, row in enumerate(rows):
        first.setdefault((row["id"], number) if redefined else row["id"], row)
    return float(sum(row["paid"] for row in first.values()) + rng.laplace(scale=10))


def _clip(x: Any, rng: Any, *, filled: bool) -> float:
    if filled:
        x = np.nan_to_num(x, nan=0.0)
    return float(np.clip(x, -1, 1).sum() + rng.laplace(scale=1))


def _deduplicated(rows: Any, rng: Any, *, wholly: bool) -> float:
    """All that agree with another row in some column are dropped; or all equal rows but one."""
    people = [tuple(row.values()) for row in rows]
    if not wholly:
        return float(len(set(people)) + rng.laplace())
    alone = [
        not any(
            a == b
            for other in people[:i] + people[i + 1 :]
            for a, b in zip(who, other, strict=True)
        )
        for i, who in enumerate(people)
    ]
    return float(sum(alone) + rng.laplace())


def _standardised(x: Any, rng: Any, *, by_data: bool) -> float:
    """Incomes scaled to mean 0 and variance 1, clipped to [−1, 1] and summed over women."""
    incomes, women = x.T
    centre, spread = (incomes.mean(), incomes.std() or 1.0) if by_data else (0.0, 50.0)
    scaled = np.clip((incomes - centre) / spread, -1, 1)
    return float(scaled[women == 1].sum() + rng.laplace(scale=2))


def _median(x: Any, rng: Any, *, local: bool) -> float:
    ordered = np.sort(x)
    middle = len(x) // 2
    steps = (ordered[middle] - ordered[middle - 1], ordered[middle + 1] - ordered[middle])
    scale = max(steps) if local else 1.0
    return float(ordered[middle] + (rng.laplace(scale=scale) if scale else 0.0))


def _halved(x: Any, rng: Any, *, whole: bool) -> float:
    """A sized sum; one row that is replaced is a distance of 2, times (3 − 0)/2."""
    return float(x.sum() + rng.laplace(scale=2 * (3 // 2 if whole else 3 / 2)))


def _mean_of_user(rows: Any, rng: Any, *, bounded: bool) -> float:
    """What users paid, each clipped to [0, 10]: by row, or by user."""
    paid: dict[Any, float] = defaultdict(float)
    for row in rows:
        paid[row["id"]] += row["paid"]
    total = sum(min(p, 10) for p in paid.values()) if bounded else sum(r["paid"] for r in rows)
    return float(total + rng.laplace(scale=10))


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Covariance that forgets its clipping",
        "Both columns are clipped to their bounds, and the raw ones are multiplied.",
        "One row outside the bounds moves the covariance by more than all others together.",
        broken=partial(_covariance, forgets=True),
        correct=partial(_covariance, forgets=False),
        source="SmartNoise SDK; issue 622",
        domain=_POINTS,
        adjacency=Replace(),
    ),
    exhibit(
        "Mean by a secret n",
        "Sensitivity 1/n of a mean, where rows come and go.",
        "An empty data set and one of a single row are told apart by noise alone.",
        broken=partial(_mean, of_n=True),
        correct=partial(_mean, of_n=False),
        source="SmartNoise Core; issues 355 and 356",
        domain=_UNIT,
    ),
    exhibit(
        "Gaussian noise of the squared scale",
        "The variance is given where a standard deviation is expected, and both are below 1.",
        "σ is 0.36 where 0.6 was proved.",
        broken=partial(_gaussian_sum, sigma=0.36),
        correct=partial(_gaussian_sum, sigma=0.6),
        source="SmartNoise Core; issue 316",
        domain=_UNIT,
        curve=Gaussian(sigma="0.6"),
    ),
    exhibit(
        "Bounds that are one bound",
        "A loop takes (b[i], b[i]) for (low[i], high[i]): sensitivity 0, and no noise.",
        "The moment of the data is released as it is.",
        broken=partial(_regression, low=10, high=10),
        correct=partial(_regression, low=0, high=10),
        source="diffprivlib, LinearRegression; issue 105 and pull request 110",
        domain=_SIZED,
        adjacency=Replace(),
        found_by=("determinism",),
    ),
    exhibit(
        "Scale for shares, noise for counts",
        "2(d − k)/(nε) is the scale for frequencies, and it is added to counts.",
        "With n rows the noise is n times too small.",
        broken=partial(_counts_by_n, scale=2 / 12),
        correct=partial(_counts_by_n, scale=2),
        source="DataSynthesizer 0.1.4; issue 34",
        domain=Table(_VISITS.columns, rows=12),
        adjacency=Replace(),
    ),
    exhibit(
        "Hyperparameters that make the sensitivity 0",
        "d − k is the number of noisy tables; with k = d there are none, and no noise.",
        "A setting that nobody thinks of as private switches privacy off.",
        broken=partial(_weights, degree=3),
        correct=partial(_weights, degree=1),
        source="synthcity, PrivBayes; dp-recorder, PETS 2026 (arXiv:2602.17454)",
        domain=Table(_VISITS.columns, rows=6),
        adjacency=Replace(),
        found_by=("determinism",),
    ),
    exhibit(
        "Contributions bounded by the value",
        "At most one distinct value of each user; users who share a value share the bound.",
        "One user's values push others out, or let them in.",
        broken=partial(_distinct, bound=1, by_value=True),
        correct=partial(_distinct, bound=1, by_value=False),
        source="Privacy on Beam, DistinctPerKey; google/differential-privacy pull request 84",
        domain=_VISITS,
        adjacency=AddRemove(user="id"),
    ),
    exhibit(
        "A user moves, and is counted once",
        "k rows of a user change groups: the counts move by 2k, and noise is for k.",
        "They are missing in one group and found in the other.",
        broken=partial(_place_counts, scale=3),
        correct=partial(_place_counts, scale=6),
        source="OpenDP 0.16.0, Polars margins; issue 2945",
        domain=_VISITS,
        adjacency=Replace(user="id"),
    ),
    exhibit(
        "A bound that outlives its column",
        "Rows are truncated by a user's number, and then the column is redefined.",
        "The bound is still believed, and nobody is bounded.",
        broken=partial(_truncated, redefined=True),
        correct=partial(_truncated, redefined=False),
        source="OpenDP 0.16.0, Polars truncation; issue 2949",
        domain=_VISITS,
        adjacency=AddRemove(user="id"),
    ),
    exhibit(
        "NaN passes the clip",
        "np.clip leaves NaN as it is, and so does a sum.",
        "One missing value makes the release NaN, whatever the noise.",
        broken=partial(_clip, filled=False),
        correct=partial(_clip, filled=True),
        source="several libraries; dp-recorder, PETS 2026 (arXiv:2602.17454), section 4.3.9",
        domain=_GAPS,
    ),
    exhibit(
        "Duplicates removed first",
        "All that resemble another row are dropped before the private step.",
        "One who resembles three strangers makes all of them vanish.",
        broken=partial(_deduplicated, wholly=True),
        correct=partial(_deduplicated, wholly=False),
        source="Debenedetti and others, USENIX Security 2024 (arXiv:2309.05610)",
        domain=_PEOPLE,
        found_by=("grey-box", "black-box"),
    ),
    exhibit(
        "Standardised by the data",
        "Mean and standard deviation of the data scale all rows before anything is clipped.",
        "One outlier moves everybody.",
        broken=partial(_standardised, by_data=True),
        correct=partial(_standardised, by_data=False),
        source="warned of by Ponomareva and others, JAIR 2023 (arXiv:2303.00654)",
        domain=_INCOMES,
        adjacency=Replace(),
    ),
    exhibit(
        "Noise by local sensitivity",
        "The noise of a median follows the gap beside it in these data.",
        "How much noise there was says how the data lie.",
        broken=partial(_median, local=True),
        correct=partial(_median, local=False),
        source="Nissim, Raskhodnikova and Smith, STOC 2007, section 2.1",
        domain=Table({"x": Reals(0, 1)}, rows=5, make="numpy"),
        adjacency=Replace(),
    ),
    exhibit(
        "Half a row, rounded down",
        "The sensitivity d(U − L)/2 is computed in whole numbers, where 3/2 is 1.",
        "A third of the noise is missing.",
        broken=partial(_halved, whole=True),
        correct=partial(_halved, whole=False),
        source="OpenDP, sized bounded sum; issue 314",
        domain=Table({"x": Integers(0, 3)}, rows=4, make="numpy"),
        adjacency=Replace(),
    ),
    exhibit(
        "A clip for each row, a claim for each user",
        "Rows are clipped to 10, and the claim is for all rows of a user.",
        "Twelve visits are twelve clips.",
        broken=partial(_mean_of_user, bounded=False),
        correct=partial(_mean_of_user, bounded=True),
        source="Wilson and others, PETS 2020 (arXiv:1909.01917), who bound users for that reason",
        domain=_VISITS,
        adjacency=AddRemove(user="id"),
    ),
)
