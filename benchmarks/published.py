"""The mechanisms of DP-Sniper's and StatDP's papers, with their figures.

As in DP-Sniper's published code: Bichsel, Steffen, Bogunovic and Vechev 2021, "DP-Sniper: Black-Box
Discovery of Differential Privacy Violations using Classifiers"; Ding, Wang, Wang, Zhang and Kifer
2018, "Detecting Violations of Differential Privacy"; Lyu, Su and Li 2017, "Understanding the Sparse
Vector Technique for Differential Privacy". Figures are the best of DP-Sniper's two classifiers, and
of two runs of StatDP, each counted on 200 million draws a side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EPSILON", "ROWS", "Array", "Rng", "Row", "Sparse", "geometric_ends"]

Array = NDArray[Any]
Rng = np.random.Generator
Many = Callable[[Array, int, Rng], Array]
"""Draws n outputs at once for a vector of answers."""

EPSILON = 0.1


def laplace(answers: Array, n: int, rng: Rng) -> Array:
    """One answer with noise."""
    return np.asarray(answers[0] + rng.laplace(scale=1 / EPSILON, size=n))


def geometric_ends(count: int) -> list[int]:
    """Balcer and Vadhan's GeoSample of a count from 0 to 5: of so many numbers these are below."""
    most, k = 5, math.ceil(math.log(2 / EPSILON))
    base = 2**k
    total = (2 * base + 1) * (base + 1) ** (most - 1)
    steps = [base ** (count - z) * (base + 1) ** (most - count + z) for z in range(count)]
    steps += [
        total - base ** (z - count + 1) * (base + 1) ** (most - 1 - z + count)
        for z in range(count, most)
    ]
    return [*steps, total]


def truncated_geometric(answers: Array, n: int, rng: Rng) -> Array:
    """Of a count, by its distribution function."""
    *steps, total = geometric_ends(int(answers[0]))
    return np.searchsorted(steps, rng.integers(1, total + 1, size=n))


def histogram(answers: Array, n: int, rng: Rng, *, scale: float) -> Array:
    """Counts with noise."""
    return answers + rng.laplace(scale=scale, size=(n, answers.size))


def noisy_max(answers: Array, n: int, rng: Rng, *, noise: str, value: bool) -> Array:
    """The place of the largest answer with noise, or the answer itself."""
    noisy = answers + getattr(rng, noise)(scale=2 / EPSILON, size=(n, answers.size))
    return np.asarray(noisy.max(axis=1) if value else noisy.argmax(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A sparse vector technique, as Lyu, Su and Li list them.

    Attributes
    ----------
    part : of ε for the threshold
    scales : of the noise of threshold and answers, in units of the inverse of their parts of ε
    threshold : that answers are compared to
    most : answers above, after which it ends; None for no end
    renewed : whether an answer above draws the threshold anew
    numeric : whether it gives the noisy answers above
    """

    part: float = 0.5
    scales: tuple[float, float]
    threshold: float = 1.0
    most: int | None = 1
    renewed: bool = False
    numeric: bool = False

    def __call__(self, answers: Array, n: int, rng: Rng) -> Array:
        """Per answer 1 or 0 and −1 after the end; or the number, −1000, and −2000."""
        first, second = self.scales[0] / self.part, self.scales[1] / (1 - self.part)
        bar = self.threshold + rng.laplace(scale=first / EPSILON, size=n)
        noisy = answers + (
            rng.laplace(scale=second / EPSILON, size=(n, answers.size)) if second else 0.0
        )
        noisy = np.broadcast_to(noisy, (n, answers.size))
        given = np.empty((n, answers.size))
        above = np.zeros(n, dtype=int)
        for place in range(answers.size):
            passed = noisy[:, place] >= bar
            ended = above >= (self.most or math.inf)
            number = noisy[:, place] if self.numeric else 1.0
            given[:, place] = np.where(passed, number, -1000.0 if self.numeric else 0.0)
            given[ended, place] = -2000.0 if self.numeric else -1.0
            above += passed
            if self.renewed:
                fresh = self.threshold + rng.laplace(scale=first / EPSILON, size=n)
                bar = np.where(passed, fresh, bar)
        return given


def numerical_sparse(answers: Array, n: int, rng: Rng) -> Array:
    """Wang et al.'s: two answers above with noise of their own, 0 for others, −1000 at the end."""
    size = (n, answers.size)
    bar = 1 + rng.laplace(scale=3 / EPSILON, size=(n, 1))
    passed = answers + rng.laplace(scale=12 / EPSILON, size=size) >= bar
    given = np.where(passed, answers + rng.laplace(scale=6 / EPSILON, size=size), 0.0)
    return np.where(passed.cumsum(axis=1) - passed >= 2, -1000.0, given)


def bloom(answers: Array, n: int, rng: Rng, *, f: float, once: bool) -> Array:
    """RAPPOR: twenty bits of a Bloom filter, each answered at random, for good and each time."""
    # Where MurmurHash3 puts "0" and "1", by seeds 0 to 3.
    ones = np.zeros(20)
    ones[[0, 11, 18] if answers[0] == 0 else [3, 10, 13]] = 1
    kept = f / 2 + (1 - f) * ones
    bits = rng.random((n, 20)) < (kept if once else 0.45 + 0.1 * kept)
    return bits.astype(float)


def parallel(answers: Array, n: int, rng: Rng, *, parts: Sequence[Many]) -> Array:
    """Outputs of all parts, side by side."""
    return np.column_stack([part(answers, n, rng) for part in parts])


def weak_laplace(answers: Array, n: int, rng: Rng) -> Array:
    """Twenty times one answer with noise, each with ε = 0.005."""
    return np.asarray(answers[0] + rng.laplace(scale=200, size=(n, 20)))


def prefix_sum(answers: Array, n: int, rng: Rng) -> Array:
    """Sums of ever more noisy answers."""
    return (answers + rng.laplace(scale=1 / EPSILON, size=(n, answers.size))).cumsum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A mechanism of the table.

    Attributes
    ----------
    name : in DP-Sniper's code
    many : its draws
    pair : answers on both sides
    epsilon : the true one, for any pair
    sniper, statdp : published, the estimate and its lower limit
    """

    name: str
    many: Many
    pair: tuple[str, str]
    epsilon: float
    sniper: tuple[float, float]
    statdp: tuple[float, float] | None

    @property
    def sides(self) -> tuple[Array, Array]:
        """The pair, as arrays."""
        record, neighbour = (np.array([float(digit) for digit in side]) for side in self.pair)
        return record, neighbour


_SVT34 = (
    Sparse(scales=(1, 2), most=2, numeric=True),
    Sparse(part=0.25, scales=(1, 1), most=2),
)
_FIRST, _LAST = "1111100000", "0000011111"
_ALL, _SPLIT = "1111111111", "2222200000"
_BLOOM = math.log(0.5125 / 0.4875), math.log(0.525 / 0.475)

ROWS = tuple(
    Row(name=name, many=many, pair=pair, epsilon=epsilon, sniper=sniper, statdp=statdp)
    for (name, many), pair, epsilon, sniper, statdp in (
        (("LaplaceMechanism", laplace), ("0", "1"), 0.1, (0.0999, 0.0976), (0.1001, 0.0998)),
        (
            ("TruncatedGeometric", truncated_geometric),
            ("2", "1"),
            math.log(9 / 8),
            (0.1178, 0.1156),
            (0.1179, 0.1169),
        ),
        (
            ("NoisyHist1", partial(histogram, scale=10)),
            ("01111", "11111"),
            0.1,
            (0.1, 0.0978),
            (0.0999, 0.0994),
        ),
        (
            ("NoisyHist2", partial(histogram, scale=0.1)),
            ("01111", "11111"),
            10,
            (4.6032, 4.602),
            (10.0341, 10.0022),
        ),
        (
            ("ReportNoisyMax1", partial(noisy_max, noise="laplace", value=False)),
            ("11111", "02222"),
            0.1,
            (0.0948, 0.0925),
            (0.0926, 0.0921),
        ),
        (
            ("ReportNoisyMax2", partial(noisy_max, noise="exponential", value=False)),
            ("11111", "02222"),
            0.1,
            (0.1002, 0.0979),
            (0.1001, 0.0997),
        ),
        (
            ("ReportNoisyMax3", partial(noisy_max, noise="laplace", value=True)),
            ("11111", "22222"),
            0.25,
            (0.251, 0.2488),
            (0.2001, 0.1991),
        ),
        (
            ("ReportNoisyMax4", partial(noisy_max, noise="exponential", value=True)),
            ("11111", "22222"),
            math.inf,
            (0.3556, 0.3534),
            (0.1998, 0.1988),
        ),
        (
            ("SVT1", Sparse(scales=(1, 2), threshold=0.5)),
            (_LAST, _FIRST),
            0.1,
            (0.0881, 0.0858),
            (0.0328, 0.0298),
        ),
        (
            ("SVT2", Sparse(scales=(1, 2), renewed=True)),
            (_LAST, _FIRST),
            0.1,
            (0.0882, 0.0859),
            (0.0433, 0.0407),
        ),
        (
            ("SVT3", Sparse(scales=(1, 1), numeric=True)),
            (_LAST, _FIRST),
            math.inf,
            (0.1844, 0.1822),
            (0.1986, 0.1793),
        ),
        (
            ("SVT4", Sparse(part=0.25, scales=(1, 1))),
            (_ALL, _SPLIT),
            0.175,
            (0.1718, 0.1696),
            (0.1738, 0.1719),
        ),
        (
            ("SVT5", Sparse(scales=(1, 0), most=None)),
            (_ALL, "0222222222"),
            math.inf,
            (1.7628, 1.7612),
            (math.inf, 14.3143),
        ),
        (
            ("SVT6", Sparse(scales=(1, 1), most=None)),
            (_LAST, _FIRST),
            math.inf,
            (0.2742, 0.272),
            (0.3256, 0.322),
        ),
        (
            ("Rappor", partial(bloom, f=0.75, once=False)),
            ("1", "0"),
            6 * _BLOOM[0],
            (0.303, 0.3008),
            (0.2495, 0.2416),
        ),
        (
            ("OneTimeRappor", partial(bloom, f=0.95, once=True)),
            ("0", "1"),
            6 * _BLOOM[1],
            (0.6019, 0.5999),
            (0.4763, 0.4706),
        ),
        (("LaplaceParallel", weak_laplace), ("1", "0"), 0.1, (0.0372, 0.035), (0.0143, 0.0135)),
        (
            ("SVT34Parallel", partial(parallel, parts=_SVT34)),
            (_ALL, _SPLIT),
            math.inf,
            (0.2638, 0.2616),
            (0.2214, 0.1963),
        ),
        (("PrefixSum", prefix_sum), (_ALL, "0000000000"), 1, (0.5795, 0.5774), (0.3522, 0.3516)),
        (("NumericalSVT", numerical_sparse), (_FIRST, _LAST), 0.1, (0.0368, 0.0345), None),
    )
)
