"""Repetitions of OPORP side by side."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import scipy
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import require
from dpverify.numbers import to_count
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.projections.independent import OPORP, Projection

__all__ = ["RepeatedOPORP"]


@frozen(kw_only=True)
class RepeatedOPORP(Projection):
    """Several independent OPORPs side by side, of k/repetitions bins each.

    Li and Li 2023, section 4.4, "Multiple repetitions": fewer bins stay empty, and an attribute
    touches one bin of each repetition.
    """

    name: ClassVar[str] = "repeated oporp"

    repetitions: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        require(
            self.k % self.repetitions == 0,
            "k",
            self.k,
            f"a multiple of repetitions={self.repetitions}",
        )
        super().__attrs_post_init__()

    def _realise(self, rng: ReplayableWords) -> scipy.sparse.csr_array:
        parts = [part.matrix for part in self._oporps(rng)]
        return scipy.sparse.csr_array(scipy.sparse.hstack(parts, format="csr"))

    def _oporps(self, rng: ReplayableWords) -> list[OPORP]:
        bins, seeds = self.k // self.repetitions, rng.words(self.repetitions).tolist()
        return [OPORP(p=self.p, k=bins, seed=seed) for seed in seeds]

    def apply(self, steps: Any) -> NDArray[Any]:
        """The products side by side, where records are dense; see `Projection.apply`."""
        if is_sparse(steps):
            return super().apply(steps)
        parts = self._remember("parts", lambda: self._oporps(self._words()))
        return np.concatenate([part.apply(steps) for part in parts], axis=1)

    @property
    def scale(self) -> Exact:
        """1/√repetitions."""
        return SquareRoot(Fraction(1, self.repetitions))

    @property
    def pair_variance(self) -> Fraction:
        """That of one OPORP over the number of repetitions."""
        single = OPORP(p=self.p, k=self.k // self.repetitions, seed=self.seed)
        return single.pair_variance / self.repetitions

    @property
    def diagonal_variance(self) -> Fraction:
        """0: every row has norm 1."""
        return Fraction(0)
