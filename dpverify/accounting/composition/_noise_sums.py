"""δ(ε) of noise with few bounded losses of finitely many values, by conditioning on these.

Let A be the sum of the discrete losses, X that of the noise, independent of it and all Laplace, all
Gaussian or all of normal rows. Then f(ε) = E[(1 − e^{ε − A − X})₊] = Σ_a P[A = a]·f_X(ε − a), where
f_X is known for every real argument: in closed form (`excess` of `curves.laplace`,
`gaussian_excess`), or by an integral that has no aliases (`rows_excess`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.accounting.composition._enumeration import Atoms, has_few_atoms, sums_of_atoms
from dpverify.accounting.curves._rows_integral import rows_excess
from dpverify.accounting.curves.gaussian import gaussian_excess
from dpverify.accounting.curves.laplace import Laplace, excess
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.enclosure import to_arb

__all__ = ["NoiseSums", "has_gaussian_sums", "has_laplace_sums", "has_rows_sums"]

_Noise = LaplaceLoss | GaussianLoss | NormalRowsLoss

_MOST_TERMS = 4_000  # of the closed form, for all sums: some tens of milliseconds
_MOST_COORDINATES = 64  # whose cancelled bits, two each, are within the first precisions
_MOST_GAUSSIAN = 100  # sums, up to which this is no slower than an integral
_MOST_ROWS = 50  # sums, of some milliseconds each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseSums:
    """f(ε), by what is known of the noise for each value of the discrete losses' sum.

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
        """At the current precision, for losses with Laplace, Gaussian or rows' sums."""
        squares = [n * x.mu_squared for x, n in losses if isinstance(x, GaussianLoss)]
        shifts = sorted((x.shift, n) for x, n in losses if isinstance(x, LaplaceLoss))
        atoms = sums_of_atoms(_without_noise(losses))
        if squares:
            mu = to_arb(sum(squares, Fraction(0))).sqrt()
            return cls(excess=lambda eps: gaussian_excess(eps, mu), end=arb(math.inf), atoms=atoms)
        rows = [(x, n) for x, n in losses if isinstance(x, NormalRowsLoss)]
        if rows:
            changes = [(gamma, n * x.rows) for x, n in rows for gamma in x.gammas]
            return cls(excess=lambda eps: rows_excess(changes, eps), end=arb(math.inf), atoms=atoms)
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
    return _has_noise(losses, GaussianLoss) and has_few_atoms(
        _without_noise(losses), most=_MOST_GAUSSIAN
    )


def has_laplace_sums(losses: Losses) -> bool:
    """Whether these are Laplace losses with a closed form, and discrete ones with few sums."""
    shifts = tuple(sorted((x.shift, n) for x, n in losses if isinstance(x, LaplaceLoss)))
    if not _has_noise(losses, LaplaceLoss) or not Laplace.of_shifts(shifts).is_exact:
        return False
    if sum(count for _, count in shifts) > _MOST_COORDINATES:
        return False
    terms = math.prod(count + 1 for _, count in shifts)
    return has_few_atoms(_without_noise(losses), most=_MOST_TERMS // terms)


def has_rows_sums(losses: Losses) -> bool:
    """Whether these are losses of normal rows, and discrete ones with few sums."""
    return _has_noise(losses, NormalRowsLoss) and has_few_atoms(
        _without_noise(losses), most=_MOST_ROWS
    )


def _has_noise(losses: Losses, kind: type[_Noise]) -> bool:
    """Whether there is noise, all of one kind."""
    noise = [loss for loss, _ in losses if isinstance(loss, _Noise)]
    return bool(noise) and all(isinstance(loss, kind) for loss in noise)


def _without_noise(losses: Losses) -> Losses:
    return tuple(pair for pair in losses if not isinstance(pair[0], _Noise))
