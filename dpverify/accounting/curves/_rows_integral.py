"""f(ε) of normal rows by an integral along a line that turns to where the integrand falls.

The sum L of losses of normal rows (`NormalRowsLoss`) has M(s) = Π((1 + γᵢ)^{−s}/(1 − γᵢs))^{rᵢ/2},
and f(ε) = E[(1 − e^{ε−L})₊] the Laplace transform M(s)/(s(s + 1)). So for every real ε

    f(ε) = (1/2πi)·∫ F(s)ds,    F(s) = M(s)·e^{−sε}/(s(s + 1)),

along Re s = c for any c > 0 with γᵢc < 1. F has no singularity off the real axis, and the size

    |F(s)| = Π|1 − γᵢs|^{−rᵢ/2}·e^{−Λ·Re s}/|s(s + 1)|,    Λ = ε + Σ½rᵢ·ln(1 + γᵢ).

Hence |F(s)|·|s| goes to 0 in the right half plane where Λ > 0, and in the left one where Λ < 0, and
the line may turn there: from c up to c + iR and on along c + iR + t(±1 + i), t ≥ 0, and below the
axis in the mirror, whose share is the conjugate. The pieces are enclosed by the rigorous
integration of acb, over lengths that double. From where on every |1 − γᵢs| rises along the way,
|M(s)e^{−sε}| falls, and what is left out beyond s is at most that times ∫ |du|/(Im u)², upright or
on the slant at most √2·|M(s)e^{−sε}|/Im s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import scipy
from flint import acb, arb

from dpverify.enclosure import to_arb
from dpverify.errors import NumericalError

__all__ = ["Changes", "rows_excess"]

Changes = Sequence[tuple[Fraction, int]]
"""γᵢ and rᵢ."""

_LEAST = arb(2) ** -1074  # the smallest double
_FARTHEST = arb(2) ** 400  # of which doubles hold the square
_NEAR = 1e-9


def rows_excess(changes: Changes, epsilon: arb) -> arb:
    """Encloses f(ε) at the current precision, of a relative width of about 1e-15.

    Parameters
    ----------
    changes : one γᵢ > −1 at least, none 0
    epsilon : any real number
    """
    if epsilon > _FARTHEST:  # f falls
        return arb(0).union(rows_excess(changes, _FARTHEST))
    start, width = _path(changes, float(epsilon.mid()))
    known = [(to_arb(gamma), arb(rows) / 2) for gamma, rows in changes]
    ends = [1 / gamma for gamma, _ in known]
    rise = epsilon + sum((half * (1 + gamma).log() for gamma, half in known), arb(0))
    c, right = arb(start), max(changes)[0] > 0
    if rise >= 0 and not right:
        return arb(0)

    def log_moment(s: acb, analytic: bool) -> acb:
        logs = (half * (1 - gamma * s).log(analytic) for gamma, half in known)
        return -sum(logs, acb(0)) - s * rise

    # F is divided by a number of its own size, which keeps tolerances absolute.
    log_size = log_moment(acb(c), False).real
    scale = log_size.mid()

    def integrand(s: acb, analytic: bool) -> acb:
        return (log_moment(s, analytic) - scale).exp() / (s * (s + 1))

    tolerance = abs(integrand(acb(c), False)) * arb(width) * arb(2) ** -58
    room = 1 / to_arb(max(changes)[0]) - c if right else arb(1)
    if not (c > 0 and room > 0 and width > 0):
        raise NumericalError(f"no contour at {c}, {width} wide")
    if log_size.exp() < _LEAST:  # f ≤ P[L > ε] ≤ M(c)e^{−cε}
        return arb(0).union(log_size.exp())
    slant, turn = acb(0, 1), arb.pos_inf()
    if rise > 0:
        slant, turn = acb(1, 1), room
    elif rise < 0:
        slant, turn = acb(-1, 1), c
    place, length, direction = acb(c), arb(width), acb(0, 1)
    total, rest = acb(0), arb.pos_inf()
    while not rest < tolerance:
        if direction.real == 0 and place.imag + length >= turn:
            end, length, direction = acb(c, turn), turn, slant
        else:
            end, length = place + length * direction, 2 * length
        total += acb.integral(integrand, place, end, rel_tol=arb(2) ** -50, abs_tol=tolerance)
        place = end
        if all(direction.real * (place.real - a) + place.imag >= 0 for a in ends):
            rest = 2 * (log_moment(place, False).real - scale).exp() / place.imag
    value = total.imag + arb(0, rest.upper())
    return value / arb.pi() * scale.exp()


def _path(changes: Changes, eps: float) -> tuple[float, float]:
    """Where ln |F| is about least between 0 and the least 1/γ, and how wide its peak is across.

    Any c there is right; this one is fast, and by its correctly rounded logarithms the same on
    every processor, as are then the last digits of the curve.
    """
    most = max(float(max(changes)[0]), 0.0)
    known = [(float(gamma), (1 + to_arb(gamma)).log(), rows / 2) for gamma, rows in changes]

    def place(share: float) -> float:
        return share / (most + 1 - share)

    def log_size(c: float) -> float:
        logs = (half * (arb(-gamma * c).log1p() + c * log) for gamma, log, half in known)
        kernel = arb(c).log() + arb(c).log1p()
        return float((-sum(logs, kernel)).mid()) - c * eps

    found = scipy.optimize.minimize_scalar(
        lambda share: log_size(place(share)),
        bounds=(_NEAR, 1 - _NEAR),
        method="bounded",
        options={"xatol": _NEAR},
    )
    c = place(float(found.x))
    room = 1 / most - c if most else c
    step = 1e-3 * min(c, room)
    bend = (log_size(c - step) - 2 * log_size(c) + log_size(c + step)) / step**2
    return c, min(1 / math.sqrt(max(bend, 1e-300)), room)
