"""δ(ε) of Laplace noise with few bounded losses of finitely many values, by conditioning on these.

Let A be the sum of the discrete losses, X that of the Laplace losses, independent of it. Then
f(ε) = E[(1 − e^{ε − A − X})₊] = Σ_a P[A = a]·f_X(ε − a), where f_X has a closed form for every real
argument (`excess` of `curves.laplace`). Both orders of the pair exchange the law of A
for that of its reverse and leave X as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.accounting.composition._enumeration import Atoms, has_few_atoms, sums_of_atoms
from dpverify.accounting.curves._laplace_lattice import Shifts
from dpverify.accounting.curves.laplace import Laplace, excess
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import LaplaceLoss
from dpverify.enclosure import to_arb

__all__ = ["LaplaceSums", "has_laplace_sums"]

_MOST_TERMS = 4_000  # of the closed form, for all sums: some tens of milliseconds
_MOST_COORDINATES = 64  # whose cancelled bits, two each, are within the first precisions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaplaceSums:
    """f(ε), a closed form for each value of the discrete losses' sum."""

    shifts: Shifts
    atoms: Atoms

    @classmethod
    def of(cls, losses: Losses) -> LaplaceSums:
        """At the current precision, for losses that `has_laplace_sums` admits."""
        shifts, others = _parted(losses)
        return cls(shifts=shifts, atoms=sums_of_atoms(others))

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        end = to_arb(sum((shift * count for shift, count in self.shifts), Fraction(0)))
        total = arb(0)
        for weight, place in self.atoms:
            if not (left := epsilon - place) >= end:
                total += weight * excess(self.shifts, left)
        return total


def has_laplace_sums(losses: Losses) -> bool:
    """Whether these are Laplace losses with a closed form, and discrete ones with few sums."""
    shifts, others = _parted(losses)
    if not shifts or not Laplace.of_shifts(shifts).is_exact:
        return False
    if sum(count for _, count in shifts) > _MOST_COORDINATES:
        return False
    terms = math.prod(count + 1 for _, count in shifts)
    return has_few_atoms(others, most=_MOST_TERMS // terms)


def _parted(losses: Losses) -> tuple[Shifts, Losses]:
    shifts = [(loss.shift, count) for loss, count in losses if isinstance(loss, LaplaceLoss)]
    others = tuple(pair for pair in losses if not isinstance(pair[0], LaplaceLoss))
    return tuple(sorted(shifts)), others
