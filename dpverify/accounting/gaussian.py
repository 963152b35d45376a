"""The analytic Gaussian mechanism: δ(ε, σ), ε(δ, σ) and σ(ε, δ), each an enclosure.

Everything depends on μ = Δ/σ alone. With a = μ/2 − ε/μ and b = −μ/2 − ε/μ,

    δ(ε; μ) = Φ(a) − e^ε Φ(b)                      Balle and Wang 2018, theorem 8,

and since a² − b² = −2ε gives φ(a) = e^ε φ(b), its derivatives are short:

    ∂δ/∂ε = −e^ε Φ(b) < 0,        ∂δ/∂μ = φ(a) > 0.

Hence δ falls strictly in ε and rises strictly in μ, and a root is certified by two signs: if
δ(x₋) ≤ δ₀ ≤ δ(x₊) is decided by ball arithmetic at two doubles, the solution of δ(x) = δ₀ lies
between them. Newton's method only proposes the doubles; whether it converged is never trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from dpverify.accounting.loss import GaussianLoss, Losses
from dpverify.enclosure import (
    Enclosure,
    Exact,
    Real,
    SquareRoot,
    enclose,
    exact,
    rational,
    squared,
    to_arb,
)
from dpverify.errors import NumericalError, require

__all__ = ["GaussianCurve", "delta_gaussian", "epsilon_gaussian", "sigma_gaussian"]

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
    sigma : real, > 0, same unit as `sensitivity`
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
    value = enclose(lambda: _delta(to_arb(eps), to_arb(mu)))
    return Enclosure(value.lower, min(value.upper, 1.0))


def epsilon_gaussian(
    delta: Real, sigma: Real | SquareRoot, *, sensitivity: Real | SquareRoot = 1
) -> Enclosure:
    """Smallest ε ≥ 0 at which the Gaussian mechanism is (ε, δ)-differentially private.

    The inverse of `delta_gaussian` in ε: exactly 0 where already δ(0) ≤ δ. The root is sought by
    Newton's method on ln δ(ε), which is concave (the privacy loss has a log-concave density and
    δ(ε) = E[(1 − e^(ε−L))₊] convolves it with a log-concave function), so that iterates started
    above the root fall towards it; then it is certified by two signs.

    Parameters
    ----------
    delta : real, in (0, 1)
    sigma : real, > 0, same unit as `sensitivity`
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
    with ctx.workprec(_SEARCH_PRECISION):
        m, d0 = to_arb(mu), to_arb(target)
        # Chernoff: δ(ε) ≤ P[L > ε] ≤ exp(−(ε − μ²/2)²/2μ²), so this start is above the root.
        start = m * m / 2 + m * (-2 * d0.log()).sqrt()

        def step(eps: arb) -> arb:
            value, tail = _delta_and_tail(eps, m)
            return eps + (value / d0).log() * value / tail

        guess = _newton(step, start)
    return _certify(
        guess,
        lambda eps: to_arb(target) - _delta(eps, to_arb(mu)),
        least=lambda: to_arb(target) - _delta(arb(0), to_arb(mu)),
    )


def sigma_gaussian(epsilon: Real, delta: Real, *, sensitivity: Real | SquareRoot = 1) -> Enclosure:
    """Smallest σ at which the Gaussian mechanism is (ε, δ)-differentially private.

    Solves δ(ε; μ) = δ for μ by Newton's method on ln δ against ln μ, certifies μ by two signs, and
    returns Δ/μ.

    Parameters
    ----------
    epsilon : real, ≥ 0, in nats
    delta : real, in (0, 1)
    sensitivity : real, > 0, ℓ2-sensitivity Δ of the query

    Returns
    -------
    Enclosure of relative width at most 1e-13; its upper end is the noise to use.

    Raises
    ------
    ParameterError
        If a value is outside its domain; δ = 0 is unreachable with Gaussian noise at any σ.
    NumericalError
        If no root is certified, as can happen far outside ε ≤ 1e4, δ ≥ 1e-300, σ/Δ ≥ 1e-4.
    """
    eps = _epsilon(epsilon)
    target = _delta_target(delta)
    size = _positive("sensitivity", sensitivity)
    with ctx.workprec(_SEARCH_PRECISION):
        e, d0 = to_arb(eps), to_arb(target)

        def step(mu: arb) -> arb:
            value, slope = _delta(e, mu), _density(mu / 2 - e / mu)
            return mu * ((d0 / value).log() * value / (slope * mu)).exp()

        # Both are below the root: δ(ε; μ) ≤ δ(0; μ) < μ/√(2π), and σ = √(2(ln(1/2δ) + ε))/ε is
        # enough noise for δ < ½ (Kenthapadi et al. 2013, theorem 1).
        start = d0 * (2 * arb.pi()).sqrt()
        if target < Fraction(1, 2) and eps > 0:
            classical = e / (2 * (e - (2 * d0).log())).sqrt()
            start = start.max(classical)
        guess = _newton(step, start)
    mu = _certify(guess, lambda m: _delta(to_arb(eps), m) - to_arb(target))
    with ctx.workprec(_SEARCH_PRECISION):
        ends = (to_arb(size) / arb(mu.upper)).union(to_arb(size) / arb(mu.lower))
        return Enclosure.of_ball(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCurve:
    """Privacy curve of noise N(0, σ²) on a query of ℓ2-sensitivity Δ, as a function of μ² = Δ²/σ².

    μ² is rational whenever Δ² and σ are, so an irrational Δ (a row norm) costs no width.
    """

    mu_squared: Fraction

    def __post_init__(self) -> None:
        require(self.mu_squared > 0, "mu_squared", self.mu_squared, "positive")

    def delta(self, epsilon: Real) -> Enclosure:
        """Encloses δ(ε): see `delta_gaussian`."""
        return delta_gaussian(epsilon, 1, sensitivity=SquareRoot(self.mu_squared))

    def epsilon(self, delta: Real) -> Enclosure:
        """Encloses ε(δ): see `epsilon_gaussian`."""
        return epsilon_gaussian(delta, 1, sensitivity=SquareRoot(self.mu_squared))

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] for L ~ N(±μ²/2, μ²), or of variance (noise·μ)² with scaled noise."""
        mu = float(self.mu_squared) ** 0.5
        own, other = ((side * mu / 2 - threshold / mu) / noise for side in (1, -1))
        return math.erfc(-own / 2**0.5) / 2, math.erfc(-other / 2**0.5) / 2

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((GaussianLoss(mu_squared=self.mu_squared), 1),)


# Enough for Newton's proposals on the whole accepted range: the cancellation in δ costs about
# 2 log₂(1/μ) bits where ε is small, and μ is at least about 1e-300 there only if δ is as well.
_SEARCH_PRECISION = 160
_NEWTON_STEPS = 200


def _epsilon(epsilon: Real) -> Fraction:
    value = rational("epsilon", epsilon)
    require(value >= 0, "epsilon", epsilon, "at least 0")
    return value


def _delta_target(delta: Real) -> Fraction:
    value = rational("delta", delta)
    require(0 <= value < 1, "delta", delta, "in [0, 1)")
    require(
        value != 0,
        "delta",
        delta,
        "positive with Gaussian noise, whose privacy loss is unbounded",
        "Laplace noise or randomized response reach delta=0.",
    )
    return value


def _positive(name: str, given: Real | SquareRoot) -> Exact:
    value = exact(name, given)
    positive = value.radicand > 0 if isinstance(value, SquareRoot) else value > 0
    require(positive, name, given, "positive")
    return value


def _mu(sigma: Real | SquareRoot, sensitivity: Real | SquareRoot) -> SquareRoot:
    size, scale = _positive("sensitivity", sensitivity), _positive("sigma", sigma)
    return SquareRoot(squared(size) / squared(scale))


def _cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def _delta_and_tail(epsilon: arb, mu: arb) -> tuple[arb, arb]:
    """δ(ε; μ) and e^ε Φ(b), its slope in ε with the sign turned."""
    tail = epsilon.exp() * _cdf(-mu / 2 - epsilon / mu)
    return _cdf(mu / 2 - epsilon / mu) - tail, tail


def _delta(epsilon: arb, mu: arb) -> arb:
    return _delta_and_tail(epsilon, mu)[0]


def _newton(step: Callable[[arb], arb], start: arb) -> float:
    """Iterate on midpoints until two agree to 2⁻⁵² or so; the caller certifies the result."""
    x = start.mid()
    for _ in range(_NEWTON_STEPS):
        following = step(x)
        if not following.is_finite():
            break
        following = following.mid()
        if abs(following - x) <= abs(following) * 1e-17:
            return float(following)
        x = following
    return float(x)


def _certify(
    guess: float, rising: Callable[[arb], arb], *, least: Callable[[], arb] | None = None
) -> Enclosure:
    """Enclose the root of a strictly rising function on the positive numbers, near `guess`.

    Widens the bracket from a relative 2⁻⁵² on each side to 2⁻⁴⁶ (1.4e-14); a sign that stays open
    or is wrong there is an error, never an answer. `least` is the function's value at 0, where it
    may already be positive: then there is no root and 0 is the smallest admissible point.
    """
    if least is not None and _sign(least) >= 0:
        return Enclosure(0.0, 0.0)
    if guess > 0:
        for step in (2**-52, 2**-50, 2**-46):
            lower, upper = guess * (1 - step), guess * (1 + step)
            if lower > 0 and _sign(rising, lower) <= 0 <= _sign(rising, upper):
                return Enclosure(lower, upper)
    raise NumericalError(f"no certified root near {guess!r}")


def _sign(function: Callable[..., arb], *at: float) -> int:
    """Sign of an exact point's value, at rising precision; 0 only if the value is exactly 0."""
    precision = _SEARCH_PRECISION
    while precision <= 1 << 14:
        with ctx.workprec(precision):
            value = function(*(arb(x) for x in at))
            if value > 0:
                return 1
            if value < 0:
                return -1
            if value.is_zero():
                return 0
        precision *= 2
    raise NumericalError(f"the sign at {at} stays open with {precision} bits")
