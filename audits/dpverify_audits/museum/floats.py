"""Floats and samplers.

On paper noise is a real number. In the machine it is one of finitely many doubles, and which of
them can come out depends on what was added to. The last digits say what the first ones hide.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import Permutation, Replace
from dpverify.data.columns import Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit
from dpverify_audits.museum.thresholds import discrete_laplace

__all__ = ["EXHIBITS", "NAME"]

NAME = "Floats and samplers"
_COUNTED = Table({"x": Integers(0, 1)}, rows=(0, 8), make="numpy")
_UNIT = Table({"x": Reals(0, 1)}, rows=2, make="numpy")
_BIG = Table({"x": Reals(2**23, 2**23 + 1)}, rows=(2, 8), make="numpy")
_MIXED = Table({"x": Reals(-1e6, 1e6)}, rows=(2, 8), make="numpy")
_TENS = Table({"x": Integers(0, 10)}, rows=(0, 20), make="numpy")
_GRID = 1024
"""Steps in 1 of a grid on which noise is added exactly."""


def _textbook(x: Any, rng: Any) -> float:
    """Inversion, as in every textbook."""
    u = rng.random() - 0.5
    return float(x.sum() - math.copysign(math.log1p(-2 * abs(u)), u))


def _library(x: Any, rng: Any) -> float:
    """Laplace noise of four uniform numbers, as diffprivlib draws it."""
    first, second, third, fourth = rng.random(4)
    noise = math.log(1 - first) * math.cos(math.pi * second)
    noise += math.log(1 - third) * math.cos(math.pi * fourth)
    return float(x.sum() - noise)


def _perfect(x: Any, rng: Any) -> float:
    """Noise that is exact to 2⁻⁶⁰, and an addition that rounds."""
    whole, part = discrete_laplace(rng, 1), int(rng.integers(2**60))
    return float(x.sum() + (whole + part / 2**60))


def _exact(x: Any, rng: Any) -> float:
    """Sums in whole steps of a grid, with whole noise."""
    steps = int(np.floor(x * _GRID).sum())
    return (steps + discrete_laplace(rng, _GRID)) / _GRID


def _count(x: Any, rng: Any) -> int:
    return int(x.sum()) + discrete_laplace(rng, 1)


def _box_muller(x: Any, rng: Any) -> float:
    u, v = rng.random(2)
    return float(x.sum() + math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v))


def _four(x: Any, rng: Any) -> float:
    """Opacus's secure mode: four normals for one."""
    return float(x.sum() + rng.standard_normal(4).sum() / 2)


def _rounded(x: Any, rng: Any) -> float:
    """Rounded to the grid after the noise, which is what a real number would become too."""
    return float(np.round((x.sum() + rng.normal()) * _GRID) / _GRID)


def _added(x: Any, rng: Any, *, dtype: Any) -> float:
    """Row by row, less a public number."""
    total = dtype(0)
    for each in x:
        total = dtype(total + dtype(each))
    return float(total - 2**23 * len(x) + rng.laplace())


def _ordered(x: Any, rng: Any, *, exact: bool) -> float:
    """Sums of numbers whose order nobody is to see."""
    total = math.fsum(x) if exact else float(np.add.reduce(x.astype(np.float32)))
    return float(total + rng.laplace(scale=0.01))


def _wrapping(x: Any, rng: Any, *, dtype: Any) -> float:
    """A sum in a type of few bits, or in one of many."""
    return float(np.sum(x, dtype=dtype) + rng.laplace(scale=10))


def _rational(x: Any, rng: Any, *, numerator: int, denominator: int, whole: bool) -> int:
    """Discrete Laplace noise whose scale is a ratio."""
    scale = numerator // denominator if whole else numerator / denominator
    return 2 * int(x.sum()) + discrete_laplace(rng, scale)


def _odd_geometric(x: Any, rng: Any, *, twice: bool) -> int:
    """Two-sided geometric noise by a sign and a size: 0 may come with either sign."""
    while True:
        size, sign = int(rng.geometric(-math.expm1(-1))) - 1, int(rng.integers(2))
        if twice or size or sign:
            return int(x.sum()) + (size if sign else -size)


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Textbook Laplace",
        "x + Laplace(1/ε), in doubles.",
        "A double that can't come from the neighbour's sum names the data set.",
        broken=_textbook,
        correct=_count,
        source="Mironov, CCS 2012",
        domain=_COUNTED,
        found_by=("precision",),
        without=(),
    ),
    exhibit(
        "Four uniforms for safety",
        "A longer formula for the same noise in doubles.",
        "The sum is still rounded where the data are.",
        broken=_library,
        correct=_count,
        source="diffprivlib, issue 94; Holohan and Braghin, ESORICS 2021",
        domain=_COUNTED,
        found_by=("precision",),
        without=(),
    ),
    exhibit(
        "Perfect noise, float addition",
        "The noise is exact to the last bit, and then it is added in doubles.",
        "Where the sum is larger its last bits are coarser.",
        broken=_perfect,
        correct=_exact,
        source="Haney and others, 2022 (arXiv:2207.13793), on diffprivlib, SmartNoise, OpenDP",
        domain=_UNIT,
        adjacency=Replace(),
        found_by=("precision",),
        without=(),
    ),
    exhibit(
        "Box–Muller in doubles",
        "x + σ √(−2 ln u) cos 2πv.",
        "The normals that can come out are few enough to be listed.",
        broken=_box_muller,
        correct=_rounded,
        source="Jin, McMurtry, Rubinstein and Ohrimenko, S&P 2022 (arXiv:2112.05307)",
        domain=_COUNTED,
        curve=Gaussian(sigma="0.999"),
        found_by=("precision",),
        without=(),
    ),
    exhibit(
        "Four normals for one",
        "A sum of four normals is hard to invert, and it is still added in doubles.",
        "It was the addition, and not the sampler.",
        broken=_four,
        correct=_rounded,
        source="Opacus, secure mode; issue 616",
        domain=_COUNTED,
        curve=Gaussian(sigma="0.999"),
        found_by=("precision",),
        without=(),
    ),
    exhibit(
        "2²⁴ + 1 = 2²⁴",
        "A sum in single precision rounds after every row.",
        "One row that moves by 1 moves the sum by 2, by 4, by 8.",
        broken=partial(_added, dtype=np.float32),
        correct=partial(_added, dtype=np.float64),
        source="Casacuberta and others, CCS 2022 (arXiv:2207.10635); google issue 126",
        domain=_BIG,
        adjacency=Replace(),
    ),
    exhibit(
        "The same rows in another order",
        "A float sum depends on the order of its rows, and the claim doesn't.",
        "Equal data sets, different sums.",
        broken=partial(_ordered, exact=False),
        correct=partial(_ordered, exact=True),
        source="Casacuberta and others, CCS 2022 (arXiv:2207.10635)",
        domain=_MIXED,
        adjacency=Permutation(),
        epsilon="0.01",
    ),
    exhibit(
        "Round the clock",
        "A sum of bytes wraps from 127 to −128.",
        "One row more, and the sum falls by 246.",
        broken=partial(_wrapping, dtype=np.int8),
        correct=partial(_wrapping, dtype=np.int64),
        source="Casacuberta and others, CCS 2022 (arXiv:2207.10635)",
        domain=_TENS,
    ),
    exhibit(
        "A ratio in whole numbers",
        "The scale 3/2 of the noise is divided in whole numbers.",
        "A third of the noise is gone.",
        broken=partial(_rational, numerator=3, denominator=2, whole=True),
        correct=partial(_rational, numerator=3, denominator=2, whole=False),
        source="after OpenDP before 0.14.2, additive noise; issue 2638 and pull request 2639",
        domain=_COUNTED,
        epsilon="1.3334",
    ),
    exhibit(
        "Two zeros",
        "A sign and a size: zero comes with both signs, twice as often as it should.",
        "An exact count is told too often.",
        broken=partial(_odd_geometric, twice=True),
        correct=partial(_odd_geometric, twice=False),
        source="after Canonne, Kamath and Steinke, 2020 (arXiv:2004.00010), who reject −0",
        domain=_COUNTED,
    ),
)
