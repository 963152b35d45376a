"""δ(ε) of noise with few bounded losses of finitely many values, by conditioning on these.

Let A be the sum of the discrete losses, X that of the noise, independent of it and all Laplace, all
Gaussian or all of normal rows. Then f(ε) = E[(1 − e^{ε − A − X})₊] = Σ_a P[A = a]·f_X(ε − a), where
f_X is known for every real argument: in closed form (`gaussian_excess`), or by an integral that has
no aliases (`rows_excess`). Next to Laplace noise the sums are added up together (`LaplaceSums`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.accounting.composition._enumeration import Atoms, has_few_atoms, sums_of_atoms
from dpverify.accounting.curves._laplace_halves import LaplaceEnd, LaplaceSums, has_halves
from dpverify.accounting.curves._rows_integral import rows_excess
from dpverify.accounting.curves.gaussian import gaussian_excess
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.enclosure import to_arb

__all__ = [
    "NoiseSums",
    "has_closed_sums",
    "has_gaussian_sums",
    "has_laplace_sums",
    "has_rows_sums",
    "laplace_end",
    "laplace_sums",
]

_Noise = LaplaceLoss | GaussianLoss | NormalRowsLoss

_MOST_GAUSSIAN = 100  # sums, up to which this is no slower than an integral
_MOST_CLOSED = 500  # sums
_MOST_ROWS = 50  # sums, of some milliseconds each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseSums:
    """f(ε), by what is known of the noise for each value of the discrete losses' sum.

    Attributes
    ----------
    excess : f_X
    atoms : of A
    """

    excess: Callable[[arb], arb]
    atoms: Atoms

    @classmethod
    def of(cls, losses: Losses) -> NoiseSums:
        """At the current precision, for losses with Gaussian or rows' sums."""
        squares = [n * x.mu_squared for x, n in losses if isinstance(x, GaussianLoss)]
        atoms = sums_of_atoms(_without_noise(losses))
        if squares:
            mu = to_arb(sum(squares, Fraction(0))).sqrt()
            return cls(excess=lambda eps: gaussian_excess(eps, mu), atoms=atoms)
        rows = [(x, n) for x, n in losses if isinstance(x, NormalRowsLoss)]
        changes = [(gamma, n * x.rows) for x, n in rows for gamma in x.gammas]
        return cls(excess=lambda eps: rows_excess(changes, eps), atoms=atoms)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        terms = (weight * self.excess(epsilon - place) for weight, place in self.atoms)
        return sum(terms, arb(0))


def laplace_sums(losses: Losses) -> LaplaceSums:
    """The same at the current precision, for losses with Laplace sums."""
    return LaplaceSums.of(
        _shifts(losses), [sums_of_atoms((pair,)) for pair in _without_noise(losses)]
    )


def laplace_end(losses: Losses, eps: float, margin: float) -> LaplaceEnd | None:
    """The same of Laplace losses alone, where few subsets matter to within a margin of ε."""
    shifts, near = _shifts(losses), Fraction(max(eps - margin, 0.0))
    alone = len(shifts) == len(losses)
    return LaplaceEnd(shifts=shifts) if alone and has_halves(shifts, near) else None


def has_gaussian_sums(losses: Losses) -> bool:
    """Whether these are Gaussian losses, and discrete ones with few sums."""
    return _has_noise(losses, GaussianLoss) and has_few_atoms(
        _without_noise(losses), most=_MOST_GAUSSIAN
    )


def has_laplace_sums(losses: Losses) -> bool:
    """Whether these are Laplace losses, and discrete ones, whose sums are few in two halves."""
    others = _without_noise(losses)
    if not _has_noise(losses, LaplaceLoss) or not all(has_few_atoms((pair,)) for pair in others):
        return False
    return has_halves(_shifts(losses), others=[len(sums_of_atoms((pair,))) for pair in others])


def has_closed_sums(losses: Losses) -> bool:
    """Whether f is a sum of so few terms in closed form that it is faster than an integral."""
    discrete = _without_noise(losses)
    known = len(discrete) == len(losses) or has_laplace_sums(losses)
    return known and has_few_atoms(discrete, most=_MOST_CLOSED)


def has_rows_sums(losses: Losses) -> bool:
    """Whether these are losses of normal rows, and discrete ones with few sums."""
    return _has_noise(losses, NormalRowsLoss) and has_few_atoms(
        _without_noise(losses), most=_MOST_ROWS
    )


def _shifts(losses: Losses) -> tuple[tuple[Fraction, int], ...]:
    return tuple(sorted((x.shift, n) for x, n in losses if isinstance(x, LaplaceLoss)))


def _has_noise(losses: Losses, kind: type[_Noise]) -> bool:
    """Whether there is noise, all of one kind."""
    noise = [loss for loss, _ in losses if isinstance(loss, _Noise)]
    return bool(noise) and all(isinstance(loss, kind) for loss in noise)


def _without_noise(losses: Losses) -> Losses:
    return tuple(pair for pair in losses if not isinstance(pair[0], _Noise))
