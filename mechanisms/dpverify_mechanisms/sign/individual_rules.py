"""Individual differential privacy: only the signs that a record's neighbours change are randomized.

Algorithms 9 to 11 randomize only A(u) = {j : |V_j| ≤ d_j},
the signs that some neighbour of u changes, by an amount that depends on |A(u)|. Both are read off
the data. Theorems 6.1 and 6.2 hold for the mechanism M_u whose set and amount are held at those of
one record u, between u and its neighbours: outside A(u) no neighbour has another sign, inside it is
an ordinary mechanism for |A(u)| values. They don't hold for the algorithm as it runs, in which a
neighbour u′ has its own A(u′), and hence not by the letter of definition 2.6: with k = 1 and
V = 2d the sign is released bare, at V′ = d it is flipped with probability f > 0, and the flipped
sign has ratio f/0. No (ε, δ) with δ < f holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import scipy
from attrs import evolve, frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.accounting.curves.randomized_response import keep_probability
from dpverify.enclosure import SquareRoot, exact_string
from dpverify.guarantee import Notion, PrivacyCurve
from dpverify.sampling.coins import flips
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import Words
from dpverify_mechanisms.sign.flip_rules import UNIT, CoinRule, FlipRule, Sums, first_flip

__all__ = ["IndividualNoise", "IndividualResponse"]

_INDIVIDUAL = (
    "The noise set and its size are held at those of the record that is protected, as in the proof "
    "of the theorem: it says nothing of other records, and isn't differential privacy.",
    "As it runs, the mechanism reads the noise set off each record, and a neighbour has its own: "
    "for these two outputs no finite epsilon holds.",
)


@frozen(kw_only=True)
class _Individual(FlipRule):
    """What the individual rules share: the noise set A = {j : |V_j| ≤ d_j}.

    Parameters
    ----------
    held : a noise set that is used for every record, or None for each record's own
    """

    notion: ClassVar[Notion] = "individual differential privacy"
    assumptions: ClassVar[tuple[str, ...]] = _INDIVIDUAL

    held: tuple[bool, ...] | None = None

    def noise_set(self, sums: Sums, divisors: Sums) -> NDArray[np.bool_]:
        """A of every row, or the one that is held: Li and Li 2023, algorithm 10."""
        if self.held is not None:
            return np.broadcast_to(np.array(self.held), sums.shape)
        return np.asarray(np.abs(sums) <= divisors)

    def held_at(self, sums: Sums, divisors: Sums) -> Self:
        """The rule whose noise set is held at that of one record."""
        chosen = self.noise_set(sums, divisors)
        return evolve(self, held=tuple(chosen.tolist()))


@frozen(kw_only=True)
class IndividualResponse(_Individual, CoinRule):
    """Randomized response on the noise set alone: Li and Li 2023, algorithm 11.

    Parameters
    ----------
    epsilon : the individual claim
    flips : flip numerators for noise sets of 0, 1, 2, … values; the last one holds beyond, where
        fewer values than the set has can change together (one, for one OPORP)
    """

    theorem: ClassVar[str] = "Li and Li 2023, theorem 6.2, for the noise set of one record"

    epsilon: Fraction
    flips: tuple[int, ...]

    @classmethod
    def of(cls, epsilon: Fraction, *, positions: int) -> Self:
        """Flip probabilities for noise sets in which at most `positions` signs change together."""
        keeps = [keep_probability(epsilon, positions=n) for n in range(1, positions + 1)]
        return cls(epsilon=epsilon, flips=(0, *(first_flip(keep) for keep in keeps)))

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT`."""
        chosen = self.noise_set(sums, divisors)
        sizes = np.minimum(chosen.sum(axis=-1, keepdims=True), len(self.flips) - 1)
        table = np.array(self.flips, dtype=np.uint64)
        drawn = np.where(chosen, table[sizes], np.uint64(0))
        return np.where(sums == 0, np.uint64(UNIT // 2), drawn)

    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """ε for every size of the noise set."""
        return ApproxDP(epsilon=self.epsilon)

    def facts(self) -> Mapping[str, str]:
        """The coins."""
        return {
            "distribution": "independent coins of 64 bits that flip the signs of the noise set",
            "flip_of_a_single_sign": f"{self.flips[1]}/2**64",
            "flip_of_the_largest_set": f"{self.flips[-1]}/2**64",
        }


@frozen(kw_only=True)
class IndividualNoise(_Individual):
    """Signs of the noise set are taken after Gaussian noise: Li and Li 2023, algorithm 9.

    The noise is exactly rounded, V + Z is the rounding of a noisy sum, and its sign (evenly drawn
    at 0) a post-processing of it.

    Parameters
    ----------
    distance : ℓ2 distance per root of the noise set's size, in steps: moves·max|W_ij|
    scales : noise scale for noise sets of 1, 2, … values; the last one holds beyond
    """

    theorem: ClassVar[str] = (
        "Li and Li 2023, theorem 6.1, for the noise set of one record; "
        "Balle and Wang 2018 (arXiv:1805.06530v2), theorem 8"
    )

    distance: int
    scales: tuple[float, ...]

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, *, distance: int, positions: int) -> Self:
        """Least noise for sets in which at most `positions` values change together."""
        distances = [SquareRoot(Fraction(distance**2 * n)) for n in range(1, positions + 1)]
        scales = [sigma_gaussian(epsilon, delta, sensitivity=d).upper for d in distances]
        return cls(distance=distance, scales=tuple(max(scale, 1.0) for scale in scales))

    def draw(self, sums: Sums, divisors: Sums, *, rng: Words) -> NDArray[np.bool_]:
        """Whether each sign is flipped."""
        chosen, scales = self._noise(sums, divisors)
        noisy = np.abs(sums)
        for scale in np.unique(scales).tolist():
            rows = np.flatnonzero(scales[..., 0] == scale)
            noise = RoundedGaussian(scale=scale).sample((rows.size, sums.shape[1]), rng=rng)
            noisy[rows] += np.where(chosen[rows], noise, 0)
        even = flips(UNIT // 2, sums.shape, rng=rng)
        return np.asarray((noisy < 0) | ((noisy == 0) & even))

    def probabilities(self, sums: Sums, divisors: Sums) -> NDArray[np.float64]:
        """Flip probabilities: the mean of Φ((±½ − |V|)/s), as V + Z = 0 is shared evenly."""
        chosen, scales = self._noise(sums, divisors)
        below = scipy.special.ndtr((-0.5 - np.abs(sums)) / scales)
        above = scipy.special.ndtr((0.5 - np.abs(sums)) / scales)
        return np.where(chosen, (below + above) / 2, np.where(sums == 0, 0.5, 0.0))

    def _noise(self, sums: Sums, divisors: Sums) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        chosen = self.noise_set(sums, divisors)
        sizes = np.clip(chosen.sum(axis=-1, keepdims=True), 1, len(self.scales))
        return chosen, np.array(self.scales)[sizes - 1]

    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """The Gaussian curve of the size whose noise is least for it."""
        sizes = enumerate(self.scales, start=1)
        return Gaussian.from_mu_squared(
            max(self.distance**2 * n / Fraction(scale) ** 2 for n, scale in sizes)
        )

    def facts(self) -> Mapping[str, str]:
        """The noise."""
        return {
            "distribution": "Gaussian, rounded exactly, on the values of the noise set",
            "scale_for_one_value_in_steps": exact_string(Fraction(self.scales[0])),
            "scale_for_the_largest_set_in_steps": exact_string(Fraction(self.scales[-1])),
        }
