"""jax-privacy: clipped gradients and their noise, as its plans and its parts put them together.

The claim is what the accountant that it comes with says of the plan's own event, at a δ of ours.
Outputs are the noisy gradients of all steps. Keys are drawn by numpy's global generator, seeded by
the system's entropy: 31 bits of it, so that whoever tries all keys needs no audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from dp_accounting import DpEvent, NeighboringRelation, PrivacyAccountant
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from jax_privacy import clipped_grad
from jax_privacy.batch_selection import (
    FixedBatchSampling,
    PartitionType,
    split_and_pad_global_batch,
)
from jax_privacy.experimental.accounting import dpsgd_event, fixed_dpsgd_event
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from jax_privacy.noise_addition import gaussian_privatizer

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import AddRemove, Adjacency, Replace
from dpverify_audits.libraries.entry import DataSets, Entry, claimed

__all__ = ["entries"]

_DELTA = 0.001
_SIGMA = 2.0
_COMES = NeighboringRelation.ADD_OR_REMOVE_ONE
_ZEROED = NeighboringRelation.REPLACE_SPECIAL
_REPLACED = NeighboringRelation.REPLACE_ONE
_FEW = [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.0)]
_MORE = ([*_FEW, (0.0, 0.0)], [*_FEW, (9.0, 9.0)])
"""A row whose gradient is 0, and one whose gradient is clipped."""
_BATCH = 4


def _loss(weights: Any, x: Any, y: Any) -> Any:
    return jnp.sum((weights[0] * x + weights[1] - y) ** 2)


def _columns(rows: Any) -> tuple[Any, Any]:
    x, y = np.asarray(list(rows), np.float32).reshape(-1, 2).T
    return jnp.asarray(x), jnp.asarray(y)


def _gradient(gradient: Callable[..., Any], rows: Any, chosen: Any) -> Any:
    """The sum over the chosen rows, padded to batches of one size as the library wants them."""
    x, y = _columns([*rows, (0.0, 0.0)])
    total = jnp.zeros(2)
    for batch in split_and_pad_global_batch(np.asarray(chosen, int), _BATCH):
        total += gradient(jnp.zeros(2), x[batch], y[batch], is_padding_example=batch < 0)
    return total


def _planned(
    rows: Any, gradient: Callable[..., Any], config: Callable[[], BandMFExecutionPlanConfig]
) -> list[float]:
    """The gradients of all steps of one plan, which has a key of its own."""
    plan = config().plan
    noise, told = plan.noise_addition_transform.init(jnp.zeros(2)), []
    for chosen in plan.batch_selection_strategy.batch_iterator(len(rows)):
        noisy, noise = plan.noise_addition_transform.update(
            _gradient(gradient, rows, chosen), noise
        )
        told += [float(each) for each in noisy]
    return told


def _config(relation: NeighboringRelation, **options: Any) -> BandMFExecutionPlanConfig:
    comes = {"partition_type": PartitionType.INDEPENDENT} if relation is _COMES else {}
    settings = {"iterations": 1, "strategy": np.ones(1), "noise_multiplier": _SIGMA, **comes}
    return BandMFExecutionPlanConfig(
        epsilon=None, delta=None, accountant=PLDAccountant(relation), **{**settings, **options}
    )


def _claimed(event: DpEvent, accountant: PrivacyAccountant) -> ApproxDP:
    return claimed(float(accountant.compose(event).get_epsilon(_DELTA)), _DELTA)


def _clipped(**options: Any) -> Callable[..., Any]:
    gradient = clipped_grad(_loss, l2_clip_norm=1.0, batch_argnums=(1, 2), **options)
    return cast("Callable[..., Any]", jax.jit(gradient))


def _stepped(
    rows: Any, gradient: Callable[..., Any], privatizer: Callable[..., Any]
) -> list[float]:
    """One step by the library's parts: the gradient of all rows, and noise."""
    noise = privatizer(stddev=_SIGMA)
    noisy, _ = noise.update(gradient(jnp.zeros(2), *_columns(rows)), noise.init(jnp.zeros(2)))
    return [float(each) for each in noisy]


def _drawn(rows: Any, gradient: Callable[..., Any]) -> list[float]:
    """Two steps, each of two rows drawn without replacement."""
    noise, told = gaussian_privatizer(stddev=2 * _SIGMA), []
    state = noise.init(jnp.zeros(2))
    for chosen in FixedBatchSampling(batch_size=2, iterations=2).batch_iterator(len(rows)):
        noisy, state = noise.update(_gradient(gradient, rows, chosen), state)
        told += [float(each) for each in noisy]
    return told


def entries() -> Iterator[Entry]:
    """All of them."""
    added: DataSets = (_FEW, _MORE[1])
    step = partial(Entry, reading="", draws=200)
    plans: tuple[tuple[str, NeighboringRelation, dict[str, Any]], ...] = (
        ("one step, of all rows", _COMES, {}),
        ("one step, clipped to 3 and scaled to 1", _COMES, {"l2_clip_norm": 3.0}),
        (
            "one step, clipped to 3, divided by 2",
            _COMES,
            {"l2_clip_norm": 3.0, "rescale_to_unit_norm": False, "normalize_by": 2.0},
        ),
        ("two steps, each of half of the rows", _COMES, {"iterations": 2, "sampling_prob": 0.5}),
        (
            "four steps, two bands",
            _COMES,
            {"iterations": 4, "strategy": np.array([1.0, 0.5]), "sampling_prob": 0.5},
        ),
        (
            "four steps, two bands, all columns as long",
            _COMES,
            {"iterations": 4, "strategy": np.array([1.0, 0.5]), "column_normalize": True},
        ),
        ("one step, of all rows", _REPLACED, {}),
        ("one step, of all rows", _ZEROED, {}),
        (
            "two steps, of two rows at most",
            _ZEROED,
            {
                "iterations": 2,
                "sampling_prob": 0.5,
                "truncated_batch_size": 2,
                "num_examples": len(_MORE[0]),
            },
        ),
    )
    relations: dict[NeighboringRelation, tuple[str, Adjacency, DataSets]] = {
        _COMES: ("comes or goes", AddRemove(), added),
        _REPLACED: ("is replaced", Replace(), ([*_FEW, (9.0, -9.0)], _MORE[1])),
        _ZEROED: ("is replaced by one whose gradient is 0", Replace(), _MORE),
    }
    for name, relation, options in plans:
        said, adjacency, pair = relations[relation]
        config = partial(_config, relation, **options)
        plan = config().plan
        gradient = jax.jit(plan.clipped_grad(_loss, batch_argnums=(1, 2)))
        yield step(
            name=f"{name}; one row {said}",
            reading=f"dp_event of the plan, by PLDAccountant({relation.name}); one row {said}",
            function=partial(_planned, gradient=gradient, config=config),
            claim=_claimed(plan.dp_event, PLDAccountant(relation)),
            adjacency=adjacency,
            pairs=(pair,),
        )
    part = partial(
        step,
        reading="stddev of the privatizer, sensitivity of clipped_grad; one row comes or goes",
        function=partial(_stepped, gradient=_clipped(), privatizer=gaussian_privatizer),
        claim=_claimed(dpsgd_event(_SIGMA, 1, sampling_prob=1.0), PLDAccountant(_COMES)),
        adjacency=AddRemove(),
        pairs=(added,),
    )
    yield part(name="clipped_grad, gaussian_privatizer")
    yield part(
        name="clipped_grad, gaussian_privatizer, a gradient that is no number",
        pairs=((_FEW, [*_FEW, (math.nan, 1.0)]),),
    )
    yield part(
        name="clipped_grad of one row at a time, gaussian_privatizer",
        function=partial(
            _stepped, gradient=_clipped(microbatch_size=1), privatizer=gaussian_privatizer
        ),
    )
    yield step(
        name="clipped_grad, FixedBatchSampling, gaussian_privatizer",
        reading="fixed_dpsgd_event, by RdpAccountant(REPLACE_ONE); one row is replaced",
        function=partial(_drawn, gradient=_clipped()),
        claim=_claimed(
            fixed_dpsgd_event(_SIGMA, 2, dataset_size=4, batch_size=2),
            RdpAccountant(neighboring_relation=_REPLACED),
        ),
        adjacency=Replace(),
        pairs=(relations[_REPLACED][2],),
    )
