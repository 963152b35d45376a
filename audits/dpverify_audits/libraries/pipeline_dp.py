"""PipelineDP: aggregations of a DPEngine with its local backend, and its choice of partitions.

The budget is that of the accountant, and one privacy id with all its rows comes or goes. All draw
from the system's entropy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pipeline_dp as pdp

from dpverify.data.adjacency import AddRemove
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]


def _row(user: int, partition: str, value: float) -> dict[str, Any]:
    return {"user": user, "partition": partition, "value": value}


_FEW = [_row(n, "a", value) for n, value in enumerate([1.0, 2.0, 3.0])]
_OWN = ((_FEW, [*_FEW, _row(9, "a", 4.0)]), ([_row(9, "a", 4.0)] * 2 + _FEW[:1], _FEW[:1]))
_GREEDY = [_row(9, name, 9.0) for name in "aab"]
_BOUNDED = ((_FEW, [*_FEW, *_GREEDY]), ([*_FEW, _row(8, "b", 1.0)], _FEW))
_EXTRACT = pdp.DataExtractors(
    partition_extractor=lambda row: row["partition"],
    privacy_id_extractor=lambda row: row["user"],
    value_extractor=lambda row: row["value"],
)


def _aggregated(
    rows: Any,
    metrics: Sequence[Any],
    noise: Any,
    delta: float,
    public: Sequence[str] | None,
    bounds: dict[str, int],
) -> Any:
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    params = pdp.AggregateParams(
        metrics=list(metrics), noise_kind=noise, min_value=0, max_value=4, **bounds
    )
    result = engine.aggregate(list(rows), params, _EXTRACT, public_partitions=public)
    accountant.compute_budgets()
    return {partition: list(values) for partition, values in result}


def _partitions(rows: Any, strategy: Any) -> Any:
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=0.05)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    params = pdp.SelectPartitionsParams(
        max_partitions_contributed=1, partition_selection_strategy=strategy
    )
    chosen = engine.select_partitions(list(rows), params, _EXTRACT)
    accountant.compute_budgets()
    return sorted(chosen)


_EMPTY = """\
import pipeline_dp as pdp
extract = pdp.DataExtractors(partition_extractor=lambda row: "a", value_extractor=lambda row: 1,
                             privacy_id_extractor=lambda row: row)
params = pdp.AggregateParams(metrics=[pdp.Metrics.COUNT], max_partitions_contributed=1,
                             max_contributions_per_partition=1)
for rows in ([1], []):
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    result = pdp.DPEngine(accountant, pdp.LocalBackend()).aggregate(rows, params, extract, ["a"])
    accountant.compute_budgets(); print(list(result))
"""


def entries() -> Iterator[Entry]:
    """All of them."""
    entry = partial(
        Entry,
        reading="the accountant's total budget; all rows of one privacy id",
        adjacency=AddRemove(user="user"),
        draws=150,
    )
    kinds, metrics = pdp.NoiseKind, pdp.Metrics
    one = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    two = {"max_partitions_contributed": 2, "max_contributions_per_partition": 2}
    named = {
        "COUNT": [metrics.COUNT],
        "SUM": [metrics.SUM],
        "MEAN": [metrics.MEAN],
        "PRIVACY_ID_COUNT": [metrics.PRIVACY_ID_COUNT],
        "VARIANCE": [metrics.VARIANCE],
        "COUNT, SUM and MEAN": [metrics.COUNT, metrics.SUM, metrics.MEAN],
        "PERCENTILE(50)": [metrics.PERCENTILE(50)],
    }
    for name, wanted in named.items():
        for noise, delta in ((kinds.LAPLACE, 0.001), (kinds.GAUSSIAN, 0.01)):
            label = f"{name}, {noise.value} noise, public partitions"
            release = partial(
                _aggregated, metrics=wanted, noise=noise, delta=delta, public=["a"], bounds=one
            )
            yield entry(name=label, function=release, claim=claimed(1, delta), pairs=_OWN)
    for name in ("COUNT", "SUM"):
        release = partial(
            _aggregated,
            metrics=named[name],
            noise=kinds.LAPLACE,
            delta=0.001,
            public=["a", "b"],
            bounds=two,
        )
        label = f"{name}, two partitions and two rows for a user"
        yield entry(name=label, function=release, claim=claimed(1, 0.001), pairs=_BOUNDED)
    release = partial(
        _aggregated,
        metrics=named["COUNT"],
        noise=kinds.LAPLACE,
        delta=0.05,
        public=None,
        bounds=one,
    )
    alone = ((_FEW, [*_FEW, _row(9, "c", 1.0)]), ([_FEW[0], _row(1, "b", 1.0)], _FEW[:1]))
    label = "COUNT, laplace noise, private partitions"
    yield entry(name=label, function=release, claim=claimed(1, 0.05), pairs=alone)
    yield entry(
        name="COUNT, public partitions, of no rows or one",
        function=partial(
            _aggregated,
            metrics=named["COUNT"],
            noise=kinds.LAPLACE,
            delta=0.001,
            public=["a"],
            bounds=one,
        ),
        claim=claimed(1, 0.001),
        pairs=(([], [_row(9, "a", 4.0)]),),
        known="new: docs/reports/pipeline-dp-empty.md",
        example=_EMPTY,
    )
    for strategy in pdp.PartitionSelectionStrategy:
        yield entry(
            name=f"select_partitions, {strategy.value}",
            function=partial(_partitions, strategy=strategy),
            claim=claimed(1, 0.05),
            pairs=alone,
        )
