"""Correct mechanisms of other libraries, as `dpverify_audits.control_flow` has them of our own.

Each library that isn't installed gives none. They draw from randomness of their own, whatever
generator they are handed; claims are the libraries'. What they are audited for is the law of their
outputs, not the low bits of their doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify_audits.control_flow import Case
from dpverify_audits.control_flow.case import Close, case, claim

__all__ = ["cases"]

_NUMBER = (((0,), (1,)), ((3,), (2,)))
_SEVERAL = (((0, 0, 1, 1, 1, 1, 1, 1), (1, 0, 1, 1, 1, 1, 1, 1)),)
_PEOPLE = (((1, 2, 3, 4), (1, 2, 3)), ((4,) * 8, (4,) * 9))
_ANSWERS = (((0, 0, 0, 0), (1, 1, 1, 1)), ((0, 1, 1, 1), (1, 0, 0, 0)))
_CATEGORY = (((0,), (1,)), ((2,), (3,)))

Draw = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _AddRemove:
    """One value more or less."""

    unit: str = "one value, added or removed"

    def relates(self, first: Any, second: Any) -> bool:
        """Whether they are neighbours: the one is the other without its last value."""
        few, many = sorted((list(first), list(second)), key=len)
        return len(many) == len(few) + 1 and many[: len(few)] == few


class _Any(Close):
    """One category for any other."""

    def relates(self, first: Any, second: Any) -> bool:
        """Always."""
        return True


def _made(
    library: str, flow: str, adjacency: Any, data: Any, draws: dict[str, tuple[Draw, ApproxDP]]
) -> Iterator[Case]:
    for name, (draw, curve) in draws.items():

        def function(x: Any, rng: Any, draw: Draw = draw) -> Any:
            return draw(x)

        made = case(name, flow, function, curve=curve, adjacency=adjacency, data=data)
        yield replace(made, library=library)


def _diffprivlib() -> Iterator[Case]:
    from diffprivlib import mechanisms, tools

    def number(mechanism: Any) -> Draw:
        return lambda x: mechanism.randomise(x[0].item())

    def whole(mechanism: Any) -> Draw:
        return lambda x: mechanism.randomise(int(x[0]))

    one = claim(1)
    plain = {"epsilon": 1, "sensitivity": 1}
    yield from _made(
        "diffprivlib",
        "own generator",
        Close(),
        _NUMBER,
        {
            "Laplace": (number(mechanisms.Laplace(**plain)), one),
            "Snapping": (number(mechanisms.Snapping(**plain, lower=-4, upper=8)), one),
            "Staircase": (number(mechanisms.Staircase(**plain)), one),
            "Geometric": (whole(mechanisms.Geometric(**plain)), one),
            "GeometricTruncated": (
                whole(mechanisms.GeometricTruncated(**plain, lower=0, upper=5)),
                one,
            ),
            "GeometricFolded": (whole(mechanisms.GeometricFolded(**plain, lower=0, upper=5)), one),
            "Gaussian": (number(mechanisms.Gaussian(**plain, delta=0.02)), claim(1, 0.02)),
            "GaussianDiscrete": (
                whole(mechanisms.GaussianDiscrete(epsilon=1, delta=0.02)),
                claim(1, 0.02),
            ),
            "LaplaceBoundedDomain": (
                number(mechanisms.LaplaceBoundedDomain(**plain, lower=0, upper=4)),
                one,
            ),
            "LaplaceBoundedNoise": (
                number(mechanisms.LaplaceBoundedNoise(**plain, delta=0.05)),
                claim(1, 0.05),
            ),
        },
    )

    def chosen(kind: Any) -> Draw:
        return lambda x: kind(epsilon=1, sensitivity=1, utility=x.tolist()).randomise()

    yield from _made(
        "diffprivlib",
        "selection",
        Close(),
        _ANSWERS,
        {
            "Exponential": (chosen(mechanisms.Exponential), one),
            "PermuteAndFlip": (chosen(mechanisms.PermuteAndFlip), one),
        },
    )
    options = {"epsilon": 1, "bounds": (0, 1)}
    yield from _made(
        "diffprivlib",
        "data set",
        Close(),
        _SEVERAL,
        {
            "tools.mean": (lambda x: tools.mean(x, **options), one),
            "tools.sum": (lambda x: tools.sum(x, **options), one),
            "tools.var": (lambda x: tools.var(x, **options), one),
            "tools.count_nonzero": (lambda x: tools.count_nonzero(x, epsilon=1), one),
        },
    )


def _opendp() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    vector = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    laplace, geometric = dp.m.make_laplace(*number, scale=1.0), dp.m.make_laplace(*whole, scale=1.0)
    report = dp.m.make_randomized_response_bool(prob=0.7)
    count = vector >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    total = vector >> dp.t.then_clamp((0, 4)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=4.0)
    yield from _made(
        "OpenDP",
        "native code",
        Close(),
        _NUMBER,
        {
            "Laplace": (lambda x: laplace(float(x[0])), claim(laplace.map(1.0))),
            "Laplace of whole numbers": (lambda x: geometric(int(x[0])), claim(geometric.map(1))),
        },
    )
    yield from _made(
        "OpenDP",
        "native code",
        Close(),
        (((0,), (1,)),),
        {"randomized response": (lambda x: report(bool(x[0])), claim(report.map(1)))},
    )
    yield from _made(
        "OpenDP",
        "native code",
        _AddRemove(),
        _PEOPLE,
        {
            "count": (lambda x: count([int(v) for v in x]), claim(count.map(1))),
            "clamped sum": (lambda x: total([int(v) for v in x]), claim(total.map(1))),
        },
    )


def _pydp() -> Iterator[Case]:
    from pydp.algorithms import laplacian

    def released(name: str, **options: Any) -> Draw:
        kind = getattr(laplacian, name)
        return lambda x: kind(epsilon=1, **options).quick_result([int(v) for v in x])

    bounds = {"lower_bound": 0, "upper_bound": 4, "dtype": "int"}
    names = ("BoundedSum", "BoundedMean", "BoundedVariance", "BoundedStandardDeviation")
    draws = {
        name: (released(name, **bounds), claim(1)) for name in (*names, "Max", "Min", "Median")
    }
    draws["Count"] = (released("Count", dtype="int"), claim(1))
    yield from _made("PyDP", "native code", _AddRemove(), _PEOPLE, draws)


def _pipeline_dp() -> Iterator[Case]:
    import pipeline_dp as pdp

    extractors = pdp.DataExtractors(
        partition_extractor=lambda row: 0,
        privacy_id_extractor=lambda row: row[0],
        value_extractor=lambda row: row[1],
    )

    def released(metric: Any) -> Draw:
        params = pdp.AggregateParams(
            metrics=[metric],
            noise_kind=pdp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0,
            max_value=4,
        )

        def draw(x: Any) -> float:
            accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
            engine = pdp.DPEngine(accountant, pdp.LocalBackend())
            rows = list(enumerate(x.tolist()))
            result = engine.aggregate(rows, params, extractors, public_partitions=[0])
            accountant.compute_budgets()
            return float(next(iter(result))[1][0])

        return draw

    yield from _made(
        "PipelineDP",
        "native code",
        _AddRemove(),
        _PEOPLE,
        {
            "COUNT": (released(pdp.Metrics.COUNT), claim(1, 1e-6)),
            "SUM": (released(pdp.Metrics.SUM), claim(1, 1e-6)),
        },
    )


def _multi_freq_ldpy() -> Iterator[Case]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    def indicators(values: Any) -> Any:
        return np.isin(np.arange(4), values).astype(int)

    def of(x: Any) -> int:
        return int(x[0])

    yield from _made(
        "multi-freq-ldpy",
        "compiled by numba",
        _Any(unit="one category for any other"),
        _CATEGORY,
        {
            "GRR": (lambda x: GRR.GRR_Client(of(x), 4, 1.0), claim(1)),
            "SUE": (lambda x: UE.UE_Client(of(x), 4, 1.0, False), claim(1)),
            "OUE": (lambda x: UE.UE_Client(of(x), 4, 1.0, True), claim(1)),
            "SS": (lambda x: indicators(SS.SS_Client(of(x), 4, 1.0)), claim(1)),
            "OLH": (lambda x: np.array(LH.LH_Client(of(x), 4, 1.0, True)), claim(1)),
        },
    )


def _diffpriv_pure() -> Iterator[Case]:
    import diffpriv_pure as dpp

    yield from _made(
        "diffpriv-pure",
        "own generator",
        Close(),
        _SEVERAL,
        {
            "private_sum": (lambda x: dpp.private_sum(x.tolist(), (0, 1), 1.0), claim(1)),
            "private_mean": (lambda x: dpp.private_mean(x.tolist(), (0, 1), 1.0), claim(1)),
        },
    )
    (one,) = _made(
        "diffpriv-pure",
        "own generator",
        Close(),
        _NUMBER,
        {"Laplace noise": (lambda x: x[0] + dpp.laplace_noise(1.0, 1.0), claim(1))},
    )
    # A real mistake: its noise on counts is never negative.
    wrong = replace(one.mechanism, function=lambda x, rng: dpp.private_count(int(x[0]), 1.0))
    yield replace(one, broken=wrong)


_LIBRARIES: Sequence[Callable[[], Iterator[Case]]] = (
    _diffprivlib,
    _opendp,
    _pydp,
    _pipeline_dp,
    _multi_freq_ldpy,
    _diffpriv_pure,
)


def cases() -> list[Case]:
    """Those of every library that is installed."""
    made: list[Case] = []
    for library in _LIBRARIES:
        with suppress(ImportError):
            made += library()
    return made
