"""The analytic Gaussian mechanism: δ(ε, σ), ε(δ, σ) and σ(ε, δ), each an enclosure.

Everything depends on μ = Δ/σ alone. With a = μ/2 − ε/μ and b = −μ/2 − ε/μ,

    δ(ε; μ) = Φ(a) − e^ε Φ(b)                      Balle and Wang 2018, theorem 8,

and since a² − b² = −2ε gives φ(a) = e^ε φ(b), its derivatives are short:

    ∂δ/∂ε = −e^ε Φ(b) < 0,        ∂δ/∂μ = φ(a) > 0.

Hence δ falls strictly in ε and rises strictly in μ, and a root is certified by two signs: if
δ(x₋) ≤ δ₀ ≤ δ(x₊) is decided by ball arithmetic at two doubles, the solution of δ(x) = δ₀ lies
between them. Newton's method only proposes the doubles, first in doubles and then with a step or
two in ball arithmetic; whether it converged is never trusted.

In doubles δ comes from s = −a and Mills' ratio m(t) = Φ(−t)/φ(t), where nothing underflows:

    δ(ε; μ) = φ(s)·(m(s) − m(s + μ)),        e^ε Φ(b) = φ(s)·m(s + μ),        φ(a) = φ(s).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.targets import check_delta, check_target
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import (
    Enclosure,
    Exact,
    Real,
    SquareRoot,
    enclose,
    rational,
    short_string,
    squared,
    to_arb,
)
from dpverify.errors import NumericalError, require
from dpverify.guarantee import PrivacyCurve, group_adjacency, to_adjacency
from dpverify.numbers import count, positive, positive_rational, to_positive

__all__ = [
    "Gaussian",
    "delta_gaussian",
    "epsilon_gaussian",
    "gaussian_excess",
    "sigma_gaussian",
]

THEOREM = "Balle and Wang 2018 (arXiv:1805.06530v2), theorem 8"


def delta_gaussian(
    epsilon: Real, sigma: Real | SquareRoot, *, sensitivity: Real | SquareRoot = 1
) -> Enclosure:
    """Privacy curve of the Gaussian mechanism.

    Encloses δ(ε) = Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ), the hockey-stick divergence between
    N(0, σ²) and N(Δ, σ²): Balle and Wang 2018 (arXiv:1805.06530v2), theorem 8.

    Parameters
    ----------
    epsilon : real, ≥ 0, in nats
    sigma : real, same unit as `sensitivity`, of which it is at least 2**-500
    sensitivity : real, > 0, ℓ2-sensitivity Δ of the query

    Returns
    -------
    Enclosure
        Relative width at most 1e-13 while δ ≥ 2.3e-308; below that, where doubles end, the upper
        end is still above the truth.

    Raises
    ------
    ParameterError
        If a value is outside its domain. NaN always is.
    NumericalError
        If no enclosure is reached; not seen for ε ≤ 1e4 and 1e-4 ≤ σ/Δ ≤ 1e8.
    """
    eps = _epsilon(epsilon)
    mu = _mu(sigma, sensitivity)
    # Chernoff: δ(ε) ≤ P[L > ε] ≤ exp(−(ε − μ²/2)²/2μ²), here below e^(−745) < 2⁻¹⁰⁷⁴.
    beyond = eps - mu.radicand / 2
    if beyond > 0 and beyond**2 >= 2 * 745 * mu.radicand:
        return Enclosure(0.0, math.ulp(0.0))
    value = enclose(lambda: _delta_and_slope(to_arb(eps), to_arb(mu))[0])
    return Enclosure(value.lower, min(value.upper, 1.0))


def epsilon_gaussian(
    delta: Real, sigma: Real | SquareRoot, *, sensitivity: Real | SquareRoot = 1
) -> Enclosure:
    """Smallest ε ≥ 0 at which the Gaussian mechanism is (ε, δ)-differentially private.

    The inverse of `delta_gaussian` in ε: exactly 0 where already δ(0) ≤ δ. The root is sought by
    Newton's method on ln δ(ε), which is concave (the privacy loss has a log-concave density and
    δ(ε) = E[(1 − e^(ε−L))₊] convolves it with a log-concave function), so that iterates started
    above the root fall towards it; then it is certified by two signs
    (docs/accounting-gaussian.md, section 3).

    Parameters
    ----------
    delta : real, in [1e-300, 1 - 1e-15]
    sigma : real, same unit as `sensitivity`, of which it is at least 2**-500
    sensitivity : real, > 0, ℓ2-sensitivity Δ of the query

    Returns
    -------
    Enclosure of relative width at most 1e-13, or the point 0.

    Raises
    ------
    ParameterError
        If a value is outside its domain; δ = 0 is unreachable with Gaussian noise at any ε.
    NumericalError
        If no root is certified, as can happen far outside ε ≤ 1e4, δ ≥ 1e-300, σ/Δ ≥ 1e-4.
    """
    target = _delta_target(delta)
    mu = _mu(sigma, sensitivity)
    with ctx.workprec(_FIRST_PRECISION):
        m, log_target = float(to_arb(mu)), float(to_arb(target).log())
        quantile = _quantile(target)

    def step(eps: float) -> float:
        log_delta, gap, after = _in_doubles(eps, m)
        return eps + (log_delta - log_target) * gap / after

    # δ < Φ(a), so that μ/2 − ε/μ is above the quantile of δ, and this start above the root.
    start = m * m / 2 - m * quantile
    guess = _newton(step, start) if log_target < _NEAR_ONE else start

    def curve() -> Curve:
        size = to_arb(mu)
        return lambda eps: _delta_and_slope(eps, size)

    _, _, after = _in_doubles(guess, m)
    return _certified(curve, target, guess, _precision(guess, m, guess * after))


def sigma_gaussian(epsilon: Real, delta: Real, *, sensitivity: Real | SquareRoot = 1) -> Enclosure:
    """Smallest σ at which the Gaussian mechanism is (ε, δ)-differentially private.

    Solves δ(ε; μ) = δ for μ by Newton's method on ln δ, certifies μ by two signs, and returns Δ/μ.

    Parameters
    ----------
    epsilon : real, in [0, 1e100], in nats
    delta : real, in [1e-300, 1 - 1e-15]
    sensitivity : real, > 0, ℓ2-sensitivity Δ of the query

    Returns
    -------
    Enclosure of relative width at most 1e-13; its upper end is the noise to use.

    Raises
    ------
    ParameterError
        If a value is outside its domain; δ = 0 is unreachable with Gaussian noise at any σ.
    NumericalError
        If no root is certified: not seen for the targets that `check_target` admits.
    """
    eps = _epsilon(epsilon)
    target = _delta_target(delta)
    check_target(eps, target)
    size = positive("sensitivity", sensitivity)
    with ctx.workprec(_FIRST_PRECISION):
        e, log_target = float(to_arb(eps)), float(to_arb(target).log())
        quantile = _quantile(target)

    def step(mu: float) -> float:
        log_delta, gap, _ = _in_doubles(e, mu)
        return mu - (log_delta - log_target) * gap

    # Both are below the root: δ(ε; μ) ≤ δ(0; μ) < μ/√(2π), and δ < Φ(μ/2 − ε/μ).
    root = math.hypot(quantile, math.sqrt(2 * e))
    start = quantile + root if quantile >= 0 else 2 * e / (root - quantile)
    start = max(start, math.exp(log_target) * _ROOT_TWO_PI)
    guess = _newton(step, start) if log_target < _NEAR_ONE else start

    def curve() -> Curve:
        ball = to_arb(eps)
        return lambda mu: (_delta_and_slope(ball, mu)[0], _density(mu / 2 - ball / mu))

    mu = _certified(curve, target, guess, _precision(e, guess, guess))
    with ctx.workprec(_FIRST_PRECISION):
        ends = (to_arb(size) / arb(mu.upper)).union(to_arb(size) / arb(mu.lower))
        return Enclosure.of_ball(ends)


@frozen(kw_only=True)
class Gaussian(PrivacyCurve):
    """Privacy curve of noise N(0, σ²) on a query of ℓ2-sensitivity Δ, a function of μ² = Δ²/σ².

    μ² is rational whenever Δ² and σ² are, so an irrational Δ (a row norm) costs no width. Equal μ²
    are equal curves.

    Parameters
    ----------
    sigma : σ > 0, exact
    sensitivity : Δ > 0, exact, in the same unit
    adjacency : whom it protects
    is_bound : whether its move bounds those of all neighbours, and none may make it

    Examples
    --------
    >>> import dpverify as dpv
    >>> round(dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6).upper, 6)
    1.060702
    """

    statements: ClassVar[tuple[str, ...]] = ("li2023.theorem-3.5",)

    sigma: Exact = field(converter=to_positive, eq=False)
    sensitivity: Exact = field(default=Fraction(1), converter=to_positive, eq=False)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)
    is_bound: bool = field(default=False, eq=False, repr=False)
    mu_squared: Fraction = field(init=False, repr=False)

    @mu_squared.default
    def _(self) -> Fraction:
        return _mu(self.sigma, self.sensitivity).radicand

    @classmethod
    def from_mu_squared(cls, mu_squared: Real) -> Self:
        """The curve for a known μ², exact."""
        square = positive_rational("mu_squared", mu_squared)
        rule = "at most 2**1000"
        require(square <= _MOST_MU_SQUARED, "mu_squared", short_string(square), rule)
        return cls(sigma=1, sensitivity=SquareRoot(square))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return delta_gaussian(epsilon, 1, sensitivity=SquareRoot(self.mu_squared))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return epsilon_gaussian(delta, 1, sensitivity=SquareRoot(self.mu_squared))

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] for L ~ N(±μ²/2, μ²), or of variance (noise·μ)² with scaled noise."""
        mu = float(self.mu_squared) ** 0.5
        own, other = ((side * mu / 2 - threshold / mu) / noise for side in (1, -1))
        return math.erfc(-own / 2**0.5) / 2, math.erfc(-other / 2**0.5) / 2

    def group(self, size: int) -> Gaussian:
        """The noise against so many times the sensitivity: exact."""
        return Gaussian(
            sigma=self.sigma,
            sensitivity=SquareRoot(count("size", size) ** 2 * squared(self.sensitivity)),
            adjacency=group_adjacency(self.adjacency, size),
            is_bound=self.is_bound,
        )

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((GaussianLoss(mu_squared=self.mu_squared), 1),)


Curve = Callable[[arb], tuple[arb, arb]]
"""δ and its slope as functions of one unknown, ε or μ."""

_FIRST_PRECISION, _LAST_PRECISION = 80, 1 << 14
_NEWTON_STEPS = 200
_MOST_MU_SQUARED = 2**1000  # ε is about half of it, and a double
_NEAR_ONE = -0.01  # ln δ from which on doubles lose it
_FAR = 25.0  # from here on the series of Mills' ratio has ten digits
_OVERFLOW = -37.5  # below it exp(t²/2) is beyond doubles
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_LOG_ROOT_TWO_PI = math.log(_ROOT_TWO_PI)


def _epsilon(epsilon: Real) -> Fraction:
    value = rational("epsilon", epsilon)
    require(value >= 0, "epsilon", epsilon, "at least 0")
    return value


def _delta_target(delta: Real) -> Fraction:
    value = rational("delta", delta)
    require(0 <= value < 1, "delta", delta, "in [0, 1)")
    check_delta(value)
    require(
        value != 0,
        "delta",
        delta,
        "positive with Gaussian noise, whose privacy loss is unbounded",
        "Laplace noise or randomized response reach delta=0.",
    )
    return value


def _mu(sigma: Real | SquareRoot, sensitivity: Real | SquareRoot) -> SquareRoot:
    size, scale = positive("sensitivity", sensitivity), positive("sigma", sigma)
    mu_squared = squared(size) / squared(scale)
    rule = "at least 2**-500 (3.1e-151) times the sensitivity"
    require(mu_squared <= _MOST_MU_SQUARED, "sigma", _short(scale), rule)
    return SquareRoot(mu_squared)


def _short(value: Exact) -> str:
    return short_string(abs(value)) if isinstance(value, Fraction) else str(value)


def _cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def _delta_and_slope(epsilon: arb, mu: arb) -> tuple[arb, arb]:
    """δ(ε; μ) and its slope in ε."""
    tail = epsilon.exp() * _cdf(-mu / 2 - epsilon / mu)
    if not tail < 2:  # e^ε is out of reach: φ(s)·m(b) with b/(1 + b²) < m(b) < 1/b
        b = mu / 2 + epsilon / mu
        tail = _density(epsilon / mu - mu / 2) * (b / (1 + b * b)).union(1 / b)
    return _cdf(mu / 2 - epsilon / mu) - tail, -tail


def gaussian_excess(epsilon: arb, mu: arb) -> arb:
    """E[(1 − e^{ε − L})₊], at the current precision, for a ball of any real ε."""
    return _delta_and_slope(epsilon, mu)[0]


def _in_doubles(epsilon: float, mu: float) -> tuple[float, float, float]:
    """Ln δ, the gap m(s) − m(s + μ), and m(s + μ), to ten digits or so; NaN where doubles end.

    The slope of ln δ is −m(s + μ)/gap in ε, and 1/gap in μ.
    """
    if not mu > 0:
        return math.nan, math.nan, math.nan
    s = epsilon / mu - mu / 2
    after, middle = _mills(s + mu), s + mu / 2
    # A short gap is the slope in its middle times its length, up to a relative μ²/4 or less.
    gap = _mills(s) - after if mu > 1e-5 else mu * (1 - middle * _mills(middle))
    if not (gap > 0 and after > 0):
        return math.nan, math.nan, math.nan
    return math.log(gap) - _LOG_ROOT_TWO_PI - s * s / 2, gap, after


def _mills(t: float) -> float:
    """Mills' ratio Φ(−t)/φ(t), to ten digits; scipy.special would take longer to import."""
    if t > _FAR:
        u = 1 / (t * t)
        return (1 - u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u))))) / t
    if t < _OVERFLOW:
        return math.inf
    return math.exp(t * t / 2) * math.erfc(t / math.sqrt(2)) * _ROOT_TWO_PI / 2


def _quantile(probability: Fraction) -> float:
    return -float(arb(2).sqrt() * (2 * to_arb(probability)).erfcinv())


def _precision(epsilon: float, mu: float, signal: float) -> int:
    """Bits that are likely to decide the signs of δ − δ₀ a rounding error away from the root.

    A relative error of 2⁻ᵖ in ε and μ moves Φ(a) = φ(s)·m(s) and e^ε Φ(b) by about (1 + b²)·2⁻ᵖ
    of themselves; a relative step of 2⁻⁵³ in the unknown moves δ by `signal`·φ(s)·2⁻⁵³.
    """
    if not signal > 0:
        return 2 * _FIRST_PRECISION
    s, b = epsilon / mu - mu / 2, mu / 2 + epsilon / mu
    needed = (1 + b * b) * _mills(s) / signal
    return 72 + max(0, math.frexp(min(needed, 2.0**1000))[1])


def _newton(step: Callable[[float], float], start: float) -> float:
    """Iterate until two iterates agree to 1e-11, or to 1e-7 and round-off turns the steps back.

    The error of an iterate is about the square of the one before. An iterate that isn't positive
    stands for 0, and one that isn't finite for nothing.
    """
    x, before = start, 0.0
    for _ in range(_NEWTON_STEPS):
        following = step(x)
        if not following < math.inf:
            return x
        if following <= 0:
            return 0.0
        moved, x = following - x, following
        if abs(moved) <= (1e-7 if moved * before < 0 else 1e-11) * x:
            return x
        before = moved
    return x


def _certified(
    curve: Callable[[], Curve], target: Fraction, start: float, precision: int
) -> Enclosure:
    """Enclose the unknown at which a strictly monotone δ is `target`.

    Parameters
    ----------
    curve : makes δ and its slope at the precision in force
    start : where Newton's method begins; where it ends at 0, δ(0) < `target` makes 0 the answer
    precision : bits to begin with; more are taken until the two signs are decided and differ, or it
        is an error
    """
    guess = start
    while precision <= _LAST_PRECISION:
        with ctx.workprec(precision):
            goal, at = to_arb(target), curve()
            guess = _newton(partial(_step, at, goal), start)
            if guess <= 0:
                if at(arb(0))[0] < goal:
                    return Enclosure(0.0, 0.0)
            else:
                lower, upper = guess * (1 - 2**-52), guess * (1 + 2**-52)
                one, other = at(arb(lower))[0], at(arb(upper))[0]
                if one < goal < other or other < goal < one:
                    return Enclosure(lower, upper)
        precision *= 2
    raise NumericalError(f"no certified root near {guess!r}")


def _step(at: Curve, goal: arb, x: float) -> float:
    """Newton's step on ln δ."""
    value, slope = at(arb(x))
    return float(x - (value / goal).log() * value / slope)
