"""Privacy losses of continuous noise: Gaussian, Laplace, and secret normal rows.

**Laplace.** Density e^{−|x|}/2 against the same moved by a: L = |x − a| − |x| is a on x ≤ 0, −a on
x ≥ a and a − 2x between, hence, with E(s) = e^{−(1+2s)a},

    M(s) = ½e^{sa}·(1 + E(s) + (1 − E(s))/(1 + 2s)).

**Normal rows.** r draws of a vector whose independent coordinates are N(0, 1 + γᵢ) under p and
N(0, 1) under q: L = ½Σᵢ(−r·ln(1 + γᵢ) + γᵢXᵢ) with Xᵢ ~ χ²_r, and E[e^{tX}] = (1 − 2t)^{−r/2} gives

    M(s) = Πᵢ ((1 + γᵢ)^{−s}/(1 − γᵢs))^{r/2},   Re γᵢs < 1.

Exchanging p and q turns γ into −γ/(1 + γ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from flint import acb, arb, ctx

from dpverify.accounting.losses.base import ROUND_OFF, Characteristic, Doubles
from dpverify.enclosure import Real, rational, to_arb
from dpverify.errors import NumericalError, require

__all__ = ["GaussianLoss", "LaplaceLoss", "NormalRowsLoss"]

_SMALLEST = Fraction(1, 2**400)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianLoss:
    """N(μ²/2, μ²): the loss between normal laws whose means are μ standard deviations apart.

    Parameters
    ----------
    mu_squared : μ² > 0, exact
    """

    mu_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu_squared", _of_any_use("mu_squared", self.mu_squared))

    @property
    def infinity_mass(self) -> Fraction:
        """Nothing."""
        return Fraction(0)

    @property
    def abscissa(self) -> float:
        """M is finite everywhere."""
        return math.inf

    @property
    def support(self) -> None:
        """No atoms."""
        return None

    def max_loss(self) -> None:
        """Unbounded."""

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Exp of μ²·s(s + 1)/2."""
        half = to_arb(self.mu_squared) / 2
        return [(half * s * (s + 1)).exp() for s in points]

    def log_moment(self, c: Doubles) -> Doubles:
        """μ²·c(c + 1)/2."""
        found: Doubles = float(self.mu_squared) / 2 * c * (c + 1)
        return found

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """Exp of −μ²y²/2 + iμ²(c + ½)y."""
        variance = float(self.mu_squared)
        decay, angle = variance * y * y / 2, variance * (c + 0.5) * y
        # |e^{−x + ia}| times the error of its exponent; x e^{−x} < 1.
        size = np.exp(-decay)
        return size * np.exp(1j * angle), ROUND_OFF * (2 + size * np.abs(angle))

    def envelope(self, c: float, y: float) -> float:
        """−μ²y²/2."""
        del c
        return -float(self.mu_squared) * y * y / 2 * (1 - ROUND_OFF)

    def reverse(self) -> Self:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceLoss:
    """The loss of one coordinate with Laplace noise, its own reverse.

    Parameters
    ----------
    shift : a > 0, how far it moves, in scales of the noise; exact
    """

    shift: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", _of_any_use("shift", self.shift))

    @property
    def infinity_mass(self) -> Fraction:
        """Nothing."""
        return Fraction(0)

    @property
    def abscissa(self) -> float:
        """M is finite everywhere."""
        return math.inf

    @property
    def support(self) -> None:
        """Not discrete."""
        return None

    def max_loss(self) -> arb:
        """The shift."""
        return to_arb(self.shift)

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Formula of the module's docstring."""
        a = to_arb(self.shift)
        found = []
        for s in points:
            twice = 1 + 2 * s
            decay = (-twice * a).exp()
            found.append((s * a).exp() / 2 * (1 + decay + (1 - decay) / twice))
        return found

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        a = float(self.shift)
        decay = np.exp(-(1 + 2 * c) * a)
        found: Doubles = a * c - math.log(2) + np.log(1 + decay + (1 - decay) / (1 + 2 * c))
        return found

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """In units of the atom at a; brackets have modulus at most 3, that of M(c) at least 1."""
        a = float(self.shift)
        twice = 1 + 2 * c + 2j * y
        decay = math.exp(-(1 + 2 * c) * a)
        turn = np.exp(-2j * a * y) * decay
        bracket = 1 + turn + (1 - turn) / twice
        value = np.exp(1j * a * y) * bracket / (1 + decay + (1 - decay) / (1 + 2 * c))
        return value, ROUND_OFF * 4 * (4 + a * (1 + 2 * c) + 3 * a * y)

    def envelope(self, c: float, y: float) -> float:
        """The atoms stay, what lies between falls with y."""
        decay = math.exp(-(1 + 2 * c) * float(self.shift))
        far = 1 + decay + (1 + decay) / math.hypot(1 + 2 * c, 2 * y)
        near = 1 + decay + (1 - decay) / (1 + 2 * c)
        return min(math.log(far / near) + 4 * ROUND_OFF, 0.0)

    def reverse(self) -> Self:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalRowsLoss:
    """r draws of N(0, diag(1 + γ)) against r draws of N(0, I).

    Parameters
    ----------
    rows : r ≥ 1
    gammas : γᵢ > −1, none 0, exact; a change of rank one has one, (γ, −γ/(1 + γ)) is the worst
        replacement of one record behind a secret projection
    """

    rows: int
    gammas: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        require(self.rows >= 1, "rows", self.rows, "at least 1")
        exact = tuple(rational("gammas", gamma) for gamma in self.gammas)
        object.__setattr__(self, "gammas", exact)
        good = bool(self.gammas) and all(g > -1 and g != 0 for g in self.gammas)
        require(good, "gammas", self.gammas, "numbers above -1, none of them 0")
        object.__setattr__(self, "gammas", tuple(sorted(self.gammas)))

    @property
    def infinity_mass(self) -> Fraction:
        """Nothing."""
        return Fraction(0)

    @property
    def abscissa(self) -> float:
        """1/γ of the largest γ, where M ends."""
        most = max(self.gammas)
        return math.nextafter(float(1 / most), 0) if most > 0 else math.inf

    @property
    def support(self) -> None:
        """No atoms."""
        return None

    def max_loss(self) -> arb | None:
        """Reached at 0 where every variance is smaller under p."""
        if max(self.gammas) > 0:
            return None
        total = sum(((1 + to_arb(g)).log() for g in self.gammas), arb(0))
        return -total * self.rows / 2

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Formula of the module's docstring, on the logarithm's main branch: Re(1 − γs) > 0."""
        known = [(to_arb(g), (1 + to_arb(g)).log()) for g in self.gammas]
        found = []
        for s in points:
            exponent = acb(0)
            for gamma, log in known:
                inside = 1 - gamma * s
                if not inside.real > 0:
                    raise NumericalError(f"the moment at {s} is not proven to be finite")
                exponent += s * log + inside.log()
            found.append((-exponent * self.rows / 2).exp())
        return found

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        total = np.zeros_like(c)
        for gamma in map(float, self.gammas):
            total -= self.rows / 2 * (c * math.log1p(gamma) + np.log1p(-gamma * c))
        return total

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """Exp of −(r/2)·Σ(ln(1 − iγy/(1 − γc)) + iy·ln(1 + γ))."""
        exponent = np.zeros(y.shape, dtype=np.complex128)
        error = np.zeros_like(y)
        for exact in self.gammas:
            gamma, log = float(exact), _log1p(exact)
            inside = float(1 - exact * Fraction(c))
            ratio = gamma * y / inside
            part = np.log1p(ratio * ratio) / 2 - 1j * np.arctan(ratio) + 1j * y * log
            exponent -= self.rows / 2 * part
            error += self.rows / 2 * (2 + np.abs(part) + np.abs(y * log))
        return np.exp(exponent), 4 * ROUND_OFF * (1 + error)

    def envelope(self, c: float, y: float) -> float:
        """−(r/4)·Σ ln(1 + (γy/(1 − γc))²)."""
        total = 0.0
        for exact in self.gammas:
            total -= math.log1p(float(exact * Fraction(y) / (1 - exact * Fraction(c))) ** 2)
        return total * self.rows / 4 * (1 - 4 * ROUND_OFF)

    def reverse(self) -> NormalRowsLoss:
        """γ becomes −γ/(1 + γ)."""
        return NormalRowsLoss(rows=self.rows, gammas=tuple(-g / (1 + g) for g in self.gammas))


def _of_any_use(name: str, value: Real) -> Fraction:
    """A size whose square is a double: planning is in doubles."""
    exact = rational(name, value)
    require(exact > 0, name, value, "positive")
    require(_SMALLEST <= exact <= 1 / _SMALLEST, name, value, "from 2**-400 to 2**400")
    return exact


def _log1p(value: Fraction) -> float:
    """Ln(1 + value) to within 2u relative."""
    with ctx.workprec(96):
        return float((1 + to_arb(value)).log().mid())
