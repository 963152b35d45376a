"""Where to invert a moment generating function: proposals in doubles, none of which is trusted.

Any line proves bounds (`_inversion`); along the saddle point of M(s)e^{−sε}/(s(s + 1)) the
integrand falls fastest, and the period follows from what the aliases may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpverify.accounting.composition._inversion import Line
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.losses.base import Doubles, Transforms, log_moment

__all__ = ["MOST_NODES", "MOST_WORK", "Transform", "normal_epsilon"]

MOST_NODES = 1 << 20
MOST_WORK = 1_000_000
_STEEP = 100.0  # exponent of a variance
_USUAL = (1e-3, 300.0)  # between which most saddle points are
_FINE = 1.005  # ratio of neighbours on a grid that isn't refined


@dataclass(frozen=True, slots=True)
class Transform:
    """Ln M(c) in doubles for 0 < c < top."""

    log: Callable[[Doubles], Doubles]
    top: float

    @classmethod
    def of(cls, losses: Transforms) -> Transform:
        """That of a sum of losses."""
        return cls(
            log=lambda c: log_moment(losses, c), top=min(loss.abscissa for loss, _ in losses)
        )

    def saddle(self, objective: Callable[[Doubles, Doubles], Doubles]) -> float:
        """Where the objective of c and ln M(c) is least, on grids that are refined."""
        top = self.top * (1 - 1e-6)
        c, at = self._least(objective, min(_USUAL[0], top / 2), min(_USUAL[1], top))
        if at == 0 or (at == c.size - 1 and c[at] < top):
            c, at = self._least(objective, 1e-12, min(top, 1e60))
        while c[1] > _FINE * c[0]:
            c, at = self._least(objective, c[max(at - 1, 0)], c[min(at + 1, c.size - 1)])
        return float(c[at])

    def _least(
        self, objective: Callable[[Doubles, Doubles], Doubles], low: float, high: float
    ) -> tuple[Doubles, int]:
        """A grid, and at which of its points the objective is least."""
        c = np.geomspace(low, high, 24)
        return c, int(np.argmin(objective(c, self.log(c))))

    def saddle_at(self, eps: float) -> float:
        """Where M(c)e^{−cε}/(c(c + 1)) is least."""
        return self.saddle(lambda c, log: log - c * eps - np.log(c) - np.log1p(c))

    def log_size(self, c: float, eps: float) -> float:
        """Ln f(ε) by Laplace's method at the saddle point, for planning."""
        step = 1e-3 * c
        m = self.log(np.array([c - step, c, c + step]))
        second = max(float(m[0] - 2 * m[1] + m[2]) / step**2, 0.0)
        second += 1 / c**2 + 1 / (c + 1) ** 2
        peak = float(m[1]) - c * eps - math.log(c) - math.log1p(c)
        return peak - math.log(2 * math.pi * second) / 2

    def plan(self, c: float, eps: float, size: float, effort: float, log_mass: float = 0.0) -> Line:
        """The least period at which both aliases are e^−effort of f, and what may be left out then.

        `log_mass` bounds ln f everywhere.
        """
        grid = np.append(c, c + np.geomspace(1e-6, 1e6, 96) * c)
        if self.top < math.inf:
            grid = c + (self.top - c) * (1 - np.geomspace(1e-6, 1, 96)[:-1])
            grid = np.append(c, grid)
        log = self.log(grid)
        beyond, ends = log[1:] - grid[1:] * eps - size + effort, grid[1:]
        right = beyond / (ends - c)
        period = max((effort - size + log_mass) / c, float(right.min()), 4 / c)
        # The nearest b that does: farther ones suit other ε less.
        left_over = beyond - (ends - c) * period
        b = ends[int(np.argmax(left_over <= max(float(left_over.min()), 0.0)))]
        room = size - effort - (float(log[0]) - c * eps) + math.log(period)
        return Line(
            c=c,
            b=float(b),
            period=period,
            threshold=room - math.log(1e4),
            most_nodes=MOST_NODES,
            most_work=MOST_WORK,
        )


def normal_epsilon(samples: Iterable[tuple[Fraction, Fraction, int]], delta: Fraction) -> float:
    """The ε at which the normal law of Gaussian noise on samples has this δ.

    q²(e^{μ²} − 1) is the variance of p/q on samples, and about that of the loss.

    Parameters
    ----------
    samples : the μ² and the rate of each kind of release, and how many there are
    """
    spread = Fraction(0)
    for square, rate, n in samples:
        spread += n * rate**2 * Fraction(math.expm1(min(float(square), _STEEP)))
    return Gaussian.from_mu_squared(spread).epsilon_at(delta).upper
