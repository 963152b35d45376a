"""Privacy losses of continuous laws: Gaussian, Laplace, bounded range, and secret normal rows.

**Laplace.** Density e^{−|x|}/2 against the same moved by a: L = |x − a| − |x| is a on x ≤ 0, −a on
x ≥ a and a − 2x between, hence, with E(s) = e^{−(1+2s)a},

    M(s) = ½e^{sa}·(1 + E(s) + (1 − E(s))/(1 + 2s)).

**Bounded range.** Density e^{ℓ/2}/(4 sinh(ε₀/2)) on [−ε₀, ε₀], see `selection`: with a = (c + ½)ε₀

    M(s) = sinh((s + ½)ε₀)/((2s + 1) sinh(ε₀/2)),
    M(c + iy)/M(c) = (cos ε₀y + i·coth(a)·sin ε₀y)/(1 + iy/(c + ½)).

**Normal rows.** r draws of a vector whose independent coordinates are N(0, 1 + γᵢ) under p and
N(0, 1) under q: L = ½Σᵢ(−r·ln(1 + γᵢ) + γᵢXᵢ) with Xᵢ ~ χ²_r, and E[e^{tX}] = (1 − 2t)^{−r/2} gives

    M(s) = Πᵢ ((1 + γᵢ)^{−s}/(1 − γᵢs))^{r/2},   Re γᵢs < 1.

Exchanging p and q turns γ into −γ/(1 + γ).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from attrs import field, frozen
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    EvenHeights,
    TailedLoss,
    TransformedLoss,
    half_inverse,
)
from dpverify.enclosure import Real, number_string, rational, root_string, to_arb
from dpverify.errors import NumericalError, require
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["BoundedRangeLoss", "GaussianLoss", "LaplaceLoss", "NormalRowsLoss"]

_SMALLEST = Fraction(1, 2**400)


@frozen(kw_only=True)
class GaussianLoss(TransformedLoss, TailedLoss):
    """N(μ²/2, μ²): the loss between normal laws whose means are μ standard deviations apart.

    Parameters
    ----------
    mu_squared : μ² > 0, exact
    """

    mu_squared: Fraction = field(converter=to_positive_rational)

    def __attrs_post_init__(self) -> None:
        _check_size("mu_squared", self.mu_squared)

    def __str__(self) -> str:
        sigma = root_string(1 / self.mu_squared)
        if sigma.startswith("√"):
            return f"Gaussian.from_mu_squared({number_string(self.mu_squared)})"
        return f"Gaussian(sigma={sigma})"

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Exp of μ²·s(s + 1)/2."""
        half = to_arb(self.mu_squared) / 2
        return [(half * s * (s + 1)).exp() for s in points]

    def tails(self, place: arb) -> tuple[arb, arb]:
        """Of N(μ²/2, μ²) and N(−μ²/2, μ²)."""
        half = to_arb(self.mu_squared) / 2
        unit = 2 * half.sqrt()
        return ((place - half) / unit).erfc() / 2, ((place + half) / unit).erfc() / 2

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


@frozen(kw_only=True)
class LaplaceLoss(TransformedLoss, TailedLoss):
    """The loss of one coordinate with Laplace noise, its own reverse.

    Parameters
    ----------
    shift : a > 0, how far it moves, in scales of the noise; exact
    """

    shift: Fraction = field(converter=to_positive_rational)

    def __attrs_post_init__(self) -> None:
        _check_size("shift", self.shift)

    def __str__(self) -> str:
        return f"Laplace(scale={number_string(1 / self.shift)})"

    @property
    def exact_max_loss(self) -> Fraction:
        """The shift."""
        return self.shift

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Formula of the module's docstring."""
        a = to_arb(self.shift)
        found = []
        for s in points:
            twice = 1 + 2 * s
            decay = (-twice * a).exp()
            found.append((s * a).exp() / 2 * (1 + decay + (1 - decay) / twice))
        return found

    def tails(self, place: arb) -> tuple[arb, arb]:
        """L ≥ x is where the noisy number is at most (a − x)/2."""
        a = to_arb(self.shift)
        if place <= -a:
            return arb(1), arb(1)
        if place > a:
            return arb(0), arb(0)
        tails = 1 - ((place - a) / 2).exp() / 2, ((-place - a) / 2).exp() / 2
        if -a < place <= a:
            return tails
        zero, one = arb(0), arb(1)  # next to a jump, which side of it stays open
        return (tails[0].union(zero).union(one), tails[1].union(zero).union(one))

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        a = float(self.shift)
        decay = np.exp(-(1 + 2 * c) * a)
        found: Doubles = a * c - math.log(2) + np.log(1 + decay + (1 - decay) / (1 + 2 * c))
        return found

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """In units of the atom at a; with them M has modulus at most 3, and M(c) at least 1."""
        angle = float(self.shift) * y
        turn: NDArray[np.complex128] = np.cos(angle) + 1j * np.sin(angle)
        return self._characteristic(c, y, turn, half_inverse(c, y))

    def characteristic_along(self, c: float, heights: EvenHeights) -> Characteristic:
        """The same at even heights."""
        turn = heights.turns(float(self.shift))
        return self._characteristic(c, heights.y, turn, heights.half_inverse(c))

    def _characteristic(
        self, c: float, y: Doubles, turn: NDArray[np.complex128], half: NDArray[np.complex128]
    ) -> Characteristic:
        """From e^{iay} and 1/(1 + 2s)."""
        a = float(self.shift)
        decay = math.exp(-(1 + 2 * c) * a)
        scale = 1 / (1 + decay + (1 - decay) / (1 + 2 * c))
        value = (scale + scale * half) * turn
        value += (scale * decay) * (1 - half) * np.conj(turn)
        return value, ROUND_OFF * 4 * (4 + a * (1 + 2 * c) + 3 * a * y)

    def envelope(self, c: float, y: float) -> float:
        """The atoms stay, what lies between falls with y."""
        decay = math.exp(-(1 + 2 * c) * float(self.shift))
        far = 1 + decay + (1 + decay) / math.hypot(1 + 2 * c, 2 * y)
        near = 1 + decay + (1 - decay) / (1 + 2 * c)
        return min(math.log(far / near) + 4 * ROUND_OFF, 0.0)


@frozen(kw_only=True)
class BoundedRangeLoss(TransformedLoss, TailedLoss):
    """The loss of the pair that dominates all mechanisms of one range, its own reverse.

    Parameters
    ----------
    epsilon : ε₀ > 0, the range; exact
    """

    epsilon: Fraction = field(converter=to_positive_rational)

    def __attrs_post_init__(self) -> None:
        _check_size("epsilon", self.epsilon)

    def __str__(self) -> str:
        return f"BoundedRange(epsilon={number_string(self.epsilon)})"

    @property
    def exact_max_loss(self) -> Fraction:
        """The range."""
        return self.epsilon

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Formula of the module's docstring."""
        reach = to_arb(self.epsilon)
        # Both parts of 2·sinh(z) in units of e^z, which no power has to hold.
        below = -(-reach).expm1()
        found = []
        for s in points:
            decay = (-(1 + 2 * s) * reach).exp()
            found.append((s * reach).exp() * (1 - decay) / ((1 + 2 * s) * below))
        return found

    def tails(self, place: arb) -> tuple[arb, arb]:
        """The density's integral; beyond the range exactly, as cells end where little is left."""
        half = to_arb(self.epsilon) / 2
        if place >= 2 * half:
            return arb(0), arb(0)
        at = (place / 2).max(-half).min(half)
        share = (half - at).expm1() / (2 * half.sinh())
        return at.exp() * share, (-half).exp() * share

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        reach = float(self.epsilon)
        decay = -np.expm1(-(1 + 2 * c) * reach)
        found: Doubles = c * reach + np.log(decay / (1 + 2 * c)) - math.log(-math.expm1(-reach))
        return found

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """Formula of the module's docstring, of modulus at most 1.

        An angle's error is relative, and that of coth(a)·sin(ε₀y)/(1 + iy/(c + ½)) at most so many
        units of coth(a)·ε₀y·(c + ½)/y = a·coth(a) ≤ 1 + a.
        """
        reach = float(self.epsilon)
        a, angle = (c + 0.5) * reach, reach * y
        decay = math.exp(-2 * a)
        coth = (1 + decay) / -math.expm1(-2 * a)
        value = (np.cos(angle) + 1j * coth * np.sin(angle)) / (1 + 1j * y / (c + 0.5))
        return value, ROUND_OFF * 2 * (6 + 3 * a + angle)

    def envelope(self, c: float, y: float) -> float:
        """Ln coth(a) − ½·ln(1 + (y/(c + ½))²), at most 0."""
        a = (c + 0.5) * float(self.epsilon)
        coth = (1 + math.exp(-2 * a)) / -math.expm1(-2 * a)
        fall = math.log1p((y / (c + 0.5)) ** 2) / 2
        return min(math.log(coth) - fall * (1 - 4 * ROUND_OFF) + 4 * ROUND_OFF, 0.0)


def _to_gammas(values: Iterable[Real]) -> tuple[Fraction, ...]:
    gammas = tuple(sorted(rational("gammas", gamma) for gamma in values))
    good = bool(gammas) and gammas[0] > -1 and 0 not in gammas
    require(good, "gammas", gammas, "numbers above -1, none of them 0")
    return gammas


@frozen(kw_only=True)
class NormalRowsLoss(TransformedLoss):
    """r draws of N(0, diag(1 + γ)) against r draws of N(0, I).

    Parameters
    ----------
    rows : r ≥ 1
    gammas : γᵢ > −1, none 0, exact; a change of rank one has one, (γ, −γ/(1 + γ)) is the worst
        replacement of one record behind a secret projection
    """

    rows: int = field(converter=to_count)
    gammas: tuple[Fraction, ...] = field(converter=_to_gammas)

    def __str__(self) -> str:
        return f"{self.rows} normal rows of gammas {', '.join(map(number_string, self.gammas))}"

    @property
    def abscissa(self) -> float:
        """1/γ of the largest γ, where M ends."""
        most = max(self.gammas)
        return math.nextafter(float(1 / most), 0) if most > 0 else math.inf

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


def _check_size(name: str, value: Fraction) -> None:
    """Refuse a size whose square isn't a double: planning is in doubles."""
    require(_SMALLEST <= value <= 1 / _SMALLEST, name, value, "from 2**-400 to 2**400")


def _log1p(value: Fraction) -> float:
    """Ln(1 + value) to within 2u relative."""
    with ctx.workprec(96):
        return float((1 + to_arb(value)).log().mid())
