"""Noisy pairwise squared distances: Kenthapadi et al. 2013, section 4.1, algorithms 3 and 4.

The data set is taken as one: what is released is the strict upper triangle of its n × n matrix of
squared distances, with Gaussian noise on every entry.

**The exact path.** Records become whole numbers of grid steps h (`Grid`), the squared distances are
computed without error in units of h², and the noise is an exactly rounded Gaussian on the integers.
So what leaves is the rounding of the ideal mechanism's output, and its curve holds.

**Sensitivity.** Let the domain be W steps wide, and let one attribute of record i move by D steps,
from u to u + D, while record j has v there. The squared distance of the two changes by

    (u + D − v)² − (u − v)² = D(2(u − v) + D),

and by nothing for pairs without i. With u, u + D and v in the domain, |2(u − v) + D| is at most
2W − |D|, when u or u + D is at one end and v at the other; and D(2W − D) rises up to D = W. So for
moves of at most B steps, with B ≤ W, each of the n − 1 entries of record i changes by at most
B(2W − B), all of them at once where all others sit at the far end:

    Δ = √(n − 1)·B(2W − B) steps of h².

Bits are the case B = W: Δ = √(n − 1), whatever the other records are. The paper says that one bit
causes n changes; those are one too many in the strict triangle that algorithm 3 publishes (and the
full matrix would have 2(n − 1)). Its σ is safe, and too large by √(n/(n − 1)) for that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.curves.gaussian import THEOREM, Gaussian, sigma_gaussian
from dpverify.data.adjacency import Attribute, BitFlip, largest_move
from dpverify.data.blocks import admitted_blocks, joined
from dpverify.data.domain import Box, dense, uniform
from dpverify.data.grid import Grid
from dpverify.enclosure import Enclosure, Real, SquareRoot, enclose, exact_string, rational, to_arb
from dpverify.errors import RecordsError, require
from dpverify.guarantee import Guarantee
from dpverify.numbers import to_count, whole
from dpverify.privacy import Certifiable, Estimator, Pair
from dpverify.sampling.coins import uniform_below
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import Words, release_words
from dpverify_mechanisms.linear._dot import dot
from dpverify_mechanisms.linear.distance import GRID_STEPS, check_bound

__all__ = ["NoiseAddition", "PairDistance", "published_sigma"]


_ROWS = 128  # records a block of the matrix product
_PROBES = 4  # synthetic data sets
_LARGEST = 2**26  # numbers of a data set: 512 MiB of doubles


def published_sigma(
    epsilon: Fraction, delta: Fraction, *, rows: int, change: Real = 1
) -> Enclosure:
    """Encloses section 4.1's noise, √(2n(ln(1/2δ) + ε))/ε times the change of one entry.

    Parameters
    ----------
    epsilon : > 0; delta : in (0, ½)
    rows : n, for which the paper has n changed entries where there are n − 1
    change : of one entry, 1 for bits
    """
    eps, target = rational("epsilon", epsilon), rational("delta", delta)
    size = rational("change", change)
    require(eps > 0, "epsilon", epsilon, "positive")
    require(0 < target < Fraction(1, 2), "delta", delta, "in (0, 1/2)")
    return enclose(
        lambda: (
            to_arb(size)
            * (2 * rows * (to_arb(eps) - (2 * to_arb(target)).log())).sqrt()
            / to_arb(eps)
        )
    )


@frozen(kw_only=True)
class NoiseAddition(Certifiable):
    """Release of all pairwise squared distances of one data set, plus Gaussian noise, exactly.

    Parameters
    ----------
    rows, p : n records of p attributes; both are public
    noise : exactly rounded noise, in steps of h²
    grid : fixed-point grid of the records, of step h
    domain : declared range of every attribute; [0, 1] where a bit flips
    adjacency : one bit flips, or one attribute moves by at most β

    Raises
    ------
    ParameterError
        If the adjacency doesn't fit the grid or the domain, or a distance could exceed exact
        doubles.
    """

    rows: int = field(converter=to_count)
    p: int = field(converter=to_count)
    noise: RoundedGaussian
    grid: Grid
    domain: Box
    adjacency: BitFlip | Attribute

    def __attrs_post_init__(self) -> None:
        self._distance()  # refuses a single row, and a grid that doesn't fit the adjacency
        table = self.rows * self.p
        require(
            table <= _LARGEST,
            "rows * p",
            table,
            f"at most {_LARGEST}, since all are in memory together",
        )
        check_bound(self.domain, self.adjacency)
        if isinstance(self.adjacency, BitFlip):
            low, high = self.domain.low, self.domain.high
            require(low == 0 and high == 1, "domain", f"[{low}, {high}]", "[0, 1] for bits")
        self.grid.check_reach(self.domain)
        largest = self.largest_distance()
        require(
            largest < 2**53,
            "step",
            self.grid.step,
            f"coarser: distances reach {largest} steps, beyond 2**53",
            "Fewer grid steps keep the distances exact.",
        )

    @classmethod
    def calibrated(
        cls,
        *,
        rows: int,
        p: int,
        epsilon: Real,
        delta: Real,
        domain: Box,
        adjacency: BitFlip | Attribute,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """The mechanism with the least noise that is (ε, δ)-differentially private.

        Parameters
        ----------
        rows, p, domain, adjacency : as in the class
        epsilon, delta : the target, exact
        grid_steps : steps that the adjacency's bound is divided into
        """
        bound = adjacency.beta if isinstance(adjacency, Attribute) else Fraction(1)
        grid = Grid.dividing(bound, steps=whole("grid_steps", grid_steps))
        rows = whole("rows", rows)
        distance = _distance(rows, grid, domain, adjacency)
        return cls(
            rows=rows,
            p=p,
            noise=RoundedGaussian(scale=sigma_gaussian(epsilon, delta, sensitivity=distance).upper),
            grid=grid,
            domain=domain,
            adjacency=adjacency,
        )

    # The claim

    def privacy(self) -> Gaussian:
        """Exact curve."""
        return Gaussian.from_mu_squared(self._distance().radicand / Fraction(self.noise.scale) ** 2)

    def guarantee(self) -> Guarantee:
        return Guarantee(
            curve=self.privacy(),
            adjacency=self.adjacency,
            randomness="the noise alone: there is no other randomness",
            data_choice="at any time: nothing is drawn before the data",
            theorem=THEOREM,
            statements=Gaussian.statements,
        )

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on.

        "published_sigma" is section 4.1's for the ε that this curve has at δ = 1e-6.
        """
        unit = self.grid.step**2
        delta = Fraction(1, 10**6)
        epsilon = self.privacy().epsilon_at(delta).upper
        return {
            "grid": {
                "step": exact_string(self.grid.step),
                "width_in_steps": self._width(),
                "largest_distance_in_steps": str(self.largest_distance()),
            },
            "sensitivity": {
                "entries_changed": self.rows - 1,
                "change_of_an_entry_in_steps": str(_change(self.grid, self.domain, self.adjacency)),
                "l2_squared_in_steps": str(self._distance().radicand),
                "l2": Enclosure.of_exact(SquareRoot(self._distance().radicand * unit**2)),
            },
            "noise": {
                "distribution": "Gaussian, rounded exactly to the grid of the distances",
                "scale_in_steps": exact_string(Fraction(self.noise.scale)),
                "sigma": Enclosure.of_exact(Fraction(self.noise.scale) * unit),
                "variance_in_steps": self.noise.variance(),
                "published_sigma": published_sigma(
                    Fraction(epsilon),
                    delta,
                    rows=self.rows,
                    change=_change(self.grid, self.domain, self.adjacency) * unit,
                ),
            },
        }

    def step(self) -> Enclosure:
        """Size h² of one step of the released integers."""
        return Enclosure.of_exact(self.grid.step**2)

    def largest_distance(self) -> int:
        """Largest squared distance of two records, in steps of h²."""
        return self.p * self._width() ** 2

    def _width(self) -> int:
        return self.grid.width(self.domain)

    def _distance(self) -> SquareRoot:
        return _distance(self.rows, self.grid, self.domain, self.adjacency)

    # The release

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[np.int64]:
        """Noisy squared distances of all pairs of records, in steps of h².

        Parameters
        ----------
        records : (n, p) array inside the domain, dense or sparse, or an iterable of such arrays:
            blocks of rows, which are put together; n as declared
        rng : secure words by default; replayable ones for audits alone

        Returns
        -------
        (n(n − 1)/2,) int64 array: the strict upper triangle row by row, the order of scipy's
        condensed distance matrices; `step` is the size of one step.

        Raises
        ------
        RecordsError
            If the records don't fit the shape or the domain.
        """
        return self.releaser(records, 1, rng=release_words(rng))()

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], NDArray[np.int64]]:
        """Release the records at each call; their distances are computed once."""
        del count
        exact = cache(partial(self.noiseless, records))

        def release() -> NDArray[np.int64]:
            return exact() + self.noise.sample(exact().shape, rng=rng)

        return release

    def shape(self, rows: int) -> tuple[int, ...]:
        return (rows * (rows - 1) // 2,)

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)  # whole numbers of steps

    def added_noise(self) -> RoundedGaussian:
        """The noise on every distance."""
        return self.noise

    def noiseless(self, records: Any) -> NDArray[np.int64]:
        """Exact squared distances in steps: for likelihoods and tests, never for release."""
        x = self._gridded(records)
        squares = np.vecdot(x, x)
        distances = np.empty(self.rows * (self.rows - 1) // 2, dtype=np.int64)
        filled = 0
        for start in range(0, self.rows - 1, _ROWS):
            stop = min(start + _ROWS, self.rows - 1)
            # Exact: no partial sum of these non-negative steps passes 2⁵³; the rest is in int64.
            products = (x[start:stop] @ x[start:].T).astype(np.int64)
            sums = squares[start:stop, None].astype(np.int64) + squares[start:].astype(np.int64)
            block = sums - 2 * products
            for row in range(stop - start):
                entries = block[row, row + 1 :]
                distances[filled : filled + entries.size] = entries
                filled += entries.size
        return distances

    def _gridded(self, records: Any) -> NDArray[np.float64]:
        """Steps from the domain's low end, as whole doubles of shape (n, p)."""
        x = dense(joined(admitted_blocks(records, self.domain, attributes=self.p)))
        if x.shape[0] != self.rows:
            raise RecordsError(
                f"{x.shape[0]} records were given to a mechanism made for {self.rows}: its "
                "noise depends on their number."
            )
        if isinstance(self.adjacency, BitFlip) and not np.all((x == 0) | (x == 1)):
            raise RecordsError("records must be bits, zeros and ones, where a bit is protected.")
        steps: NDArray[np.float64] = self.grid.round(x)
        return steps - self.grid.steps(Fraction(self.domain.ends[0]))

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour) of the noise before rounding.

        Only the n − 1 entries that change count; outputs of shape (draws, n(n − 1)/2).
        """
        first, second = self.noiseless(record), self.noiseless(neighbour)
        changed = np.flatnonzero(first != second)
        first, second = first[changed], second[changed]
        # Twice the distance from the middle of both, which is a whole number.
        offsets = 2 * outputs[:, changed] - (first + second)
        return np.asarray(dot(offsets, first - second) / (2 * self.noise.scale**2))

    def worst_pairs(self) -> Sequence[Pair]:
        """One attribute of one record moves by β away from an end at which no other record sits.

        That record starts at one end and all others are at the other one, so that all n − 1 entries
        change by the most they can.
        """
        low, high = self.domain.ends
        bound = self.grid.bound(self.adjacency) * self.grid.step
        pairs = []
        for name, row, own, move, others in (
            ("first record, first attribute, from the low end", 0, low, bound, high),
            ("last record, last attribute, from the high end", -1, high, -bound, low),
        ):
            record = np.full((self.rows, self.p), others)
            record[row] = own
            neighbour = record.copy()
            neighbour[row, row] = min(max(largest_move(own, move), low), high)
            pairs.append(Pair(name=name, record=record, neighbour=neighbour))
        return pairs

    # Utility

    def estimators(self) -> Sequence[Estimator]:
        """The squared distance of a pair of records."""
        return (PairDistance(mechanism=self),)

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic data sets of the domain, each with the numbers of two records as its query."""
        low, high = self.domain.ends
        pairs = []
        for number in range(1, _PROBES + 1):
            unit = uniform(self.rows * self.p, rng).reshape(self.rows, self.p)
            if isinstance(self.adjacency, BitFlip):
                unit = np.rint(unit)
            first = int(uniform_below(self.rows, (1,), rng=rng)[0])
            shift = 1 + int(uniform_below(self.rows - 1, (1,), rng=rng)[0])
            query = np.array([[first, (first + shift) % self.rows]])
            data = np.clip(low + (high - low) * unit, low, high)
            pairs.append(Pair(name=f"synthetic {number}", record=data, neighbour=query))
        return pairs


@frozen(kw_only=True)
class PairDistance(Estimator):
    """‖x_a − x_b‖² of the gridded records a and b: algorithm 4, the entry as it is.

    The rounded noise has mean 0, so the estimate is unbiased; its variance is that of the rounded
    noise, for which the paper has σ².
    """

    name: ClassVar[str] = "squared distance"
    compares: ClassVar[Literal["records", "release and query"]] = "release and query"

    mechanism: NoiseAddition

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates from releases (…, n(n − 1)/2) and pairs of numbers (…, 2).

        The leading dimensions broadcast; the two numbers of a pair may come in any order.
        """
        places = self._places(second)
        leading = np.broadcast_shapes(first.shape[:-1], places.shape)
        released = np.broadcast_to(first, (*leading, first.shape[-1]))
        chosen = np.broadcast_to(places, leading)[..., None]
        steps = np.take_along_axis(released, chosen, axis=-1)[..., 0]
        return np.asarray(steps * float(self.mechanism.grid.step**2))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x_a − x_b‖² of the gridded records."""
        place = int(self._places(np.asarray(other).reshape(2)))
        return int(self.mechanism.noiseless(record)[place]) * float(self.mechanism.grid.step**2)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Variance of the rounded noise, about σ² + h⁴/12."""
        return self.mechanism.noise.variance().upper * float(self.mechanism.grid.step**4)

    def _places(self, pairs: ArrayLike) -> NDArray[np.int64]:
        numbers = np.sort(np.asarray(pairs, dtype=np.int64), axis=-1)
        low, high = numbers[..., 0], numbers[..., 1]
        rows = self.mechanism.rows
        valid = bool(((low >= 0) & (low < high) & (high < rows)).all())
        require(valid, "query", pairs, f"two different numbers of records in [0, {rows})")
        return np.asarray(low * (2 * rows - low - 1) // 2 + high - low - 1)


def _change(grid: Grid, domain: Box, adjacency: BitFlip | Attribute) -> int:
    """Largest change B(2W − B) of one entry, in steps of h²."""
    width = grid.width(domain)
    moves = min(grid.moves(adjacency, domain, attributes=1), width)
    return moves * (2 * width - moves)


def _distance(rows: int, grid: Grid, domain: Box, adjacency: BitFlip | Attribute) -> SquareRoot:
    """ℓ2-sensitivity in steps of h²."""
    require(rows >= 2, "rows", rows, "at least 2, so that there is a distance")
    return SquareRoot(Fraction((rows - 1) * _change(grid, domain, adjacency) ** 2))
