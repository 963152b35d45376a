"""``python -m benchmarks.peers.mixtures LIBRARY``: unlike releases together, by one library.

Cells are read as JSON, answers are written as JSON: an optimistic and a pessimistic ε, or one that
is documented as an upper bound. A library that doesn't know a release answers infinity.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from functools import reduce
from time import process_time
from typing import Any, NamedTuple

__all__ = ["LIBRARIES", "Answer", "Cell", "Release", "timed"]


class Release(NamedTuple):
    """One kind: σ or b at sensitivity 1, or the probability of the truth; the rate of a sample.

    "sampled" is Gaussian noise on a Poisson sample; "NOISE on SAMPLES" is of others.
    """

    kind: str
    parameter: float
    times: int
    rate: float = 1.0


class Cell(NamedTuple):
    """What is composed, and the δ; whether a record is replaced, and not added or removed."""

    releases: tuple[Release, ...]
    delta: float
    replaced: bool

    def as_json(self) -> list[Any]:
        """Lists."""
        return [[list(release) for release in self.releases], self.delta, self.replaced]


class Answer(NamedTuple):
    """ε, and seconds of the processor."""

    value: float
    seconds: float


def dpverify(cell: Cell) -> list[float]:
    import dpverify as dpv

    whom = dpv.Replace() if cell.replaced else dpv.AddRemove()

    def curve(release: Release) -> Any:
        kind, _, samples = release.kind.partition(" on ")
        whose = None if samples else whom
        match kind:
            case "gaussian":
                noise: Any = dpv.Gaussian(sigma=release.parameter, adjacency=whose)
            case "laplace":
                noise = dpv.Laplace(scale=release.parameter, adjacency=whose)
            case "randomized-response":
                noise = dpv.RandomizedResponse(keep=release.parameter, adjacency=whose)
            case _:
                noise, samples = dpv.Gaussian(sigma=release.parameter), "samples"
        if samples == "batches":
            size, out_of = release.rate.as_integer_ratio()
            return noise.sampled_without_replacement(size=size, out_of=out_of)
        if samples:
            return noise.poisson_sampled(rate=release.rate, replaced=cell.replaced)
        return noise

    together = dpv.compose(*(release.times * curve(release) for release in cell.releases))
    found = together.epsilon_at(cell.delta)
    return [found.lower, found.upper]


def dp_accounting(cell: Cell) -> list[float]:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import (
        privacy_loss_distribution as pld,
    )

    replaced = NeighboringRelation.REPLACE_ONE
    relation = replaced if cell.replaced else NeighboringRelation.ADD_OR_REMOVE_ONE

    def law(release: Release, *, pessimistic: bool) -> Any:
        x = release.parameter
        match release.kind:
            case "gaussian":
                one = pld.from_gaussian_mechanism(x, pessimistic_estimate=pessimistic)
            case "laplace":
                one = pld.from_laplace_mechanism(x, pessimistic_estimate=pessimistic)
            case "randomized-response":
                one = pld.from_randomized_response(2 * (1 - x), 2, pessimistic_estimate=pessimistic)
            case _:
                one = pld.from_gaussian_mechanism(
                    x,
                    pessimistic_estimate=pessimistic,
                    sampling_prob=release.rate,
                    neighboring_relation=relation,
                )
        return one.self_compose(release.times)

    found = []
    for pessimistic in (False, True):
        laws = (law(release, pessimistic=pessimistic) for release in cell.releases)
        together = reduce(lambda one, other: one.compose(other), laws)
        found.append(float(together.get_epsilon_for_delta(cell.delta)))
    return found


def prv_accountant(cell: Cell) -> list[float]:
    import prv_accountant as prv

    if cell.replaced:
        return [math.inf]

    def variable(release: Release) -> Any:
        x = release.parameter
        match release.kind:
            case "gaussian":
                return prv.GaussianMechanism(x)
            case "laplace":
                return prv.LaplaceMechanism(mu=1 / x)
            case "randomized-response":
                return prv.PureDPMechanism(math.log(x / (1 - x)))
        return prv.PoissonSubsampledGaussianMechanism(
            sampling_probability=release.rate, noise_multiplier=x
        )

    counts = [release.times for release in cell.releases]
    accountant = prv.PRVAccountant(
        prvs=[variable(release) for release in cell.releases],
        max_self_compositions=counts,
        eps_error=0.1,
        delta_error=1e-3 * cell.delta,
    )
    return [float(accountant.compute_epsilon(cell.delta, counts)[2])]


def autodp(cell: Cell) -> list[float]:
    from autodp.mechanism_zoo import (
        GaussianMechanism,
        LaplaceMechanism,
        RandresponseMechanism,
    )
    from autodp.transformer_zoo import (
        AmplificationBySampling,
        Composition,
    )

    if cell.replaced:
        return [math.inf]

    def mechanism(release: Release) -> Any:
        x = release.parameter
        match release.kind:
            case "gaussian":
                return GaussianMechanism(x)
            case "laplace":
                return LaplaceMechanism(x)
            case "randomized-response":
                return RandresponseMechanism(x)
        noise = GaussianMechanism(x)
        return AmplificationBySampling(PoissonSampling=True)(noise, release.rate)

    composed = Composition()(
        [mechanism(release) for release in cell.releases],
        [release.times for release in cell.releases],
    )
    return [float(composed.get_approxDP(cell.delta))]


LIBRARIES: dict[str, Callable[[Cell], list[float]]] = {
    "dpverify": dpverify,
    "dp_accounting": dp_accounting,
    "prv_accountant": prv_accountant,
    "autodp": autodp,
}


def timed(answer: Callable[[Cell], list[float]], cell: Cell) -> list[Answer]:
    """Values of a cell, and their seconds; infinity where the library fails."""
    start = process_time()
    try:
        values = answer(cell)
    except Exception as error:  # a library's failure is an answer
        print(cell, error, file=sys.stderr)
        values = [math.inf]
    return [Answer(value, (process_time() - start) / len(values)) for value in values]


def main() -> None:
    """Answer all cells, after one that isn't timed."""
    answer = LIBRARIES[sys.argv[1]]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no reply
    cells = [
        Cell(tuple(Release(*one) for one in releases), delta, replaced)
        for releases, delta, replaced in json.load(sys.stdin)
    ]
    answer(cells[1])
    with replies:
        json.dump([timed(answer, cell) for cell in cells], replies)


if __name__ == "__main__":
    main()
