"""δ(ε) of noise with few bounded losses of finitely many values, by conditioning on these.

Let A be the sum of the discrete losses, X that of the noise, independent of it and all Laplace or
all Gaussian. Then f(ε) = E[(1 − e^{ε − A − X})₊] = Σ_a P[A = a]·f_X(ε − a), where f_X has a closed
form for every real argument (`excess` of `curves.laplace`, `gaussian_excess`). Both orders of the
pair exchange the law of A for that of its reverse and leave X as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.accounting.composition._enumeration import Atoms, has_few_atoms, sums_of_atoms
from dpverify.accounting.curves.gaussian import gaussian_excess
from dpverify.accounting.curves.laplace import Laplace, excess
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.enclosure import to_arb

__all__ = ["NoiseSums", "has_gaussian_sums", "has_laplace_sums"]

_MOST_TERMS = 4_000  # of the closed form, for all sums: some tens of milliseconds
_MOST_COORDINATES = 64  # whose cancelled bits, two each, are within the first precisions
_MOST_GAUSSIAN = 100  # sums, up to which this is no slower than an integral


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseSums:
    """f(ε), a closed form for each value of the discrete losses' sum.

    Attributes
    ----------
    excess : f_X
    end : from where on f_X is 0; infinite where it never is
    atoms : of A
    """

    excess: Callable[[arb], arb]
    end: arb
    atoms: Atoms

    @classmethod
    def of(cls, losses: Losses) -> NoiseSums:
        """At the current precision, for losses with Laplace or Gaussian sums."""
        squares = [n * x.mu_squared for x, n in losses if isinstance(x, GaussianLoss)]
        shifts = sorted((x.shift, n) for x, n in losses if isinstance(x, LaplaceLoss))
        atoms = sums_of_atoms(_without_noise(losses))
        if squares:
            mu = to_arb(sum(squares, Fraction(0))).sqrt()
            return cls(excess=lambda eps: gaussian_excess(eps, mu), end=arb(math.inf), atoms=atoms)
        parts = tuple(shifts)
        end = to_arb(sum((shift * count for shift, count in parts), Fraction(0)))
        return cls(excess=lambda eps: excess(parts, eps), end=end, atoms=atoms)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        total = arb(0)
        for weight, place in self.atoms:
            if not (left := epsilon - place) >= self.end:
                total += weight * self.excess(left)
        return total


def has_gaussian_sums(losses: Losses) -> bool:
    """Whether these are Gaussian losses, and discrete ones with few sums."""
    others = _without_noise(losses)
    if any(isinstance(loss, LaplaceLoss) for loss, _ in losses) or len(others) == len(losses):
        return False
    return has_few_atoms(others, most=_MOST_GAUSSIAN)


def has_laplace_sums(losses: Losses) -> bool:
    """Whether these are Laplace losses with a closed form, and discrete ones with few sums."""
    shifts = tuple(sorted((x.shift, n) for x, n in losses if isinstance(x, LaplaceLoss)))
    if not shifts or any(isinstance(loss, GaussianLoss) for loss, _ in losses):
        return False
    if not Laplace.of_shifts(shifts).is_exact:
        return False
    if sum(count for _, count in shifts) > _MOST_COORDINATES:
        return False
    terms = math.prod(count + 1 for _, count in shifts)
    return has_few_atoms(_without_noise(losses), most=_MOST_TERMS // terms)


def _without_noise(losses: Losses) -> Losses:
    return tuple(pair for pair in losses if not isinstance(pair[0], LaplaceLoss | GaussianLoss))
