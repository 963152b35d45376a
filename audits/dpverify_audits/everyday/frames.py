"""Data frames of pandas: group-bys, quantiles, joins and what their results carry along."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpverify.data.adjacency import Replace
from dpverify.data.columns import Categories, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, Release, exhibit

__all__ = ["EXHIBITS"]

_COLUMNS = {
    "age": Integers(0, 100),
    "city": Categories("Bath", "Hull", "York"),
    "paid": Reals(0, 10),
}
_PEOPLE = Table(_COLUMNS, rows=(0, 8), make="pandas")
_SIZED = Table(_COLUMNS, rows=6, make="pandas")
_CITIES = ["Bath", "Hull", "York"]


def _noisy(frame: Any, rng: Any, scale: float) -> Any:
    return frame + rng.laplace(scale=scale, size=frame.shape)


def _case(name: str, mistake: str, broken: Release, correct: Release, **words: Any) -> Exhibit:
    return exhibit(name, mistake, broken=broken, correct=correct, **{"domain": _PEOPLE} | words)


def _counts(people: Any, rng: Any) -> Any:
    return _noisy(people.groupby("city").size().reindex(_CITIES, fill_value=0), rng, 1)


def _sums(people: Any, rng: Any) -> Any:
    return _noisy(people.groupby("city").paid.sum().reindex(_CITIES, fill_value=0.0), rng, 10)


def _count(people: Any, rng: Any) -> float:
    return len(people) + float(rng.laplace())


def _public(people: Any) -> Any:
    """With what is known of the cities, in which York has two districts."""
    known = {"city": ["Bath", "Hull", "York", "York"], "district": [1, 1, 1, 2]}
    return people.merge(type(people)(known), on="city")


EXHIBITS: tuple[Exhibit, ...] = (
    _case(
        "a group-by's keys",
        "groupby lists the cities that are there.",
        lambda p, rng: _noisy(p.groupby("city").size(), rng, 1),
        _counts,
    ),
    _case(
        "value_counts in its order",
        "The most frequent comes first, before the noise.",
        lambda p, rng: list(
            _noisy(
                p.city.value_counts().reindex(
                    [*p.city.value_counts().index, *(c for c in _CITIES if c not in set(p.city))],
                    fill_value=0,
                ),
                rng,
                1,
            ).index
        ),
        _counts,
    ),
    _case(
        "a mean of each group",
        "Divided by the size of the group.",
        lambda p, rng: _noisy(p.groupby("city").paid.mean().reindex(_CITIES).fillna(0), rng, 1),
        _sums,
    ),
    _case(
        "a quantile by the noise of a mean",
        "A sixth of the range.",
        lambda p, rng: p.age.quantile(0.9) + float(rng.laplace(scale=100 / 6)),
        lambda p, rng: p.age.quantile(0.9) + float(rng.laplace(scale=100)),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "a median of ages",
        "The noise of a mean of six.",
        lambda p, rng: p.age.median() + float(rng.laplace(scale=100 / 6)),
        lambda p, rng: p.age.median() + float(rng.laplace(scale=100)),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "a join that multiplies",
        "Yorkers are in two districts, and counted in both.",
        lambda p, rng: len(_public(p)) + float(rng.laplace()),
        _count,
    ),
    _case(
        "an index that stays",
        "The rows that were kept are named by their places.",
        lambda p, rng: _noisy(p[p.age > 50][["age"]].clip(0, 1) * 0, rng, 1),
        _count,
    ),
    _case(
        "describe",
        "A noisy mean beside pandas' own count.",
        lambda p, rng: {
            "count": p.paid.describe()["count"],
            "sum": p.paid.sum() + float(rng.laplace(scale=10)),
        },
        lambda p, rng: {"sum": p.paid.sum() + float(rng.laplace(scale=10))},
    ),
    _case(
        "the most frequent city",
        "mode() is exact.",
        lambda p, rng: p.city.mode().tolist()[:1],
        lambda p, rng: str(
            _CITIES[
                int(
                    np.argmax(
                        _noisy(p.groupby("city").size().reindex(_CITIES, fill_value=0), rng, 2)
                    )
                )
            ]
        ),
    ),
    _case(
        "categories as they came",
        "Codes of a category that pandas made of the data.",
        lambda p, rng: (
            float(p.city.astype("category").cat.codes.sum()) + float(rng.laplace(scale=2))
        ),
        lambda p, rng: (
            float(p.city.map(_CITIES.index).sum() if len(p) else 0) + float(rng.laplace(scale=2))
        ),
    ),
    _case(
        "bins of equal size",
        "Quantiles of the data are the edges, and are told.",
        lambda p, rng: [*np.quantile(p.age, [0.25, 0.5, 0.75]), float(rng.laplace())],
        lambda p, rng: _noisy(np.histogram(p.age, bins=[0, 25, 50, 75, 100])[0], rng, 2),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "a correlation",
        "Pearson's, with noise for a bounded product.",
        lambda p, rng: (
            float(np.nan_to_num(p.age.corr(p.paid)) if p.age.std() * p.paid.std() > 0 else 0)
            + float(rng.laplace(scale=1 / 6))
        ),
        lambda p, rng: float((p.age / 100 * p.paid / 10).mean()) + float(rng.laplace(scale=1 / 6)),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "rows of the wrong city",
        "A filter that keeps what it meant to drop, and sums unclipped ages.",
        lambda p, rng: float(p[p.city != "York"].age.sum()) + float(rng.laplace(scale=10)),
        lambda p, rng: float(p[p.city == "York"].paid.sum()) + float(rng.laplace(scale=10)),
    ),
)
