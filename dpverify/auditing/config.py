"""How an audit is made: the numbers that every attack shares, checked once and passed whole."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.statistics.claim_test import floor
from dpverify.enclosure import rational
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon

__all__ = ["AuditConfig", "fitting_delta"]

_USUAL = Fraction(1, 10**6)  # the δ at which ε of a whole curve is bounded, if it can be


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """How hard an audit tries, at which level, and from which seed.

    Parameters
    ----------
    delta : real in [0, 1) or None
        Where ε is bounded, exactly; None for the δ that fits the claim (`fitting_delta`).
    alpha : float in (0, 1)
        Probability with which a true claim is accused.
    draws : int, at least 1
        Outputs that are counted on each side of each pair.
    seed : int, at least 0
        Of the replayable randomness.
    workers : int
        Processes, −1 for all cores; no effect on the result. With 1 the mechanism never leaves this
        process.
    time_limit : float, positive
        Seconds that one release may take; all of an audit may take 1,000 times as many (`longest`).

    Raises
    ------
    ParameterError
        If a value is outside its domain.

    Examples
    --------
    >>> AuditConfig(delta="1e-6", draws=2000).delta
    Fraction(1, 1000000)
    """

    delta: Fraction | None = None
    alpha: float = 0.01
    draws: int = 10_000
    seed: int = 0
    workers: int = -1
    time_limit: float = 10.0

    def __post_init__(self) -> None:
        if self.delta is not None:
            delta = rational("delta", self.delta)
            require(0 <= delta < 1, "delta", self.delta, "in [0, 1)")
            object.__setattr__(self, "delta", delta)
        require(_real(self.alpha) and 0 < self.alpha < 1, "alpha", self.alpha, "in (0, 1)")
        draws = _whole(self.draws) and self.draws >= 1
        require(draws, "draws", self.draws, "a whole number, at least 1")
        require(_whole(self.seed) and self.seed >= 0, "seed", self.seed, "a whole number, from 0")
        workers = _whole(self.workers) and (self.workers >= 1 or self.workers == -1)
        require(workers, "workers", self.workers, "a number of processes, or -1 for all cores")
        positive = _real(self.time_limit) and self.time_limit > 0
        require(positive, "time_limit", self.time_limit, "positive")

    @property
    def longest(self) -> float:
        """Seconds that all of an audit may take."""
        return 1000 * self.time_limit

    def delta_for(self, curve: PrivacyCurve) -> Fraction:
        """Where ε of this claim is bounded."""
        return fitting_delta(curve) if self.delta is None else self.delta

    def at_level(self, alpha: float) -> AuditConfig:
        """The same at another level."""
        return replace(self, alpha=alpha)


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _real(value: object) -> bool:
    return isinstance(value, float | np.floating) or _whole(value)


def fitting_delta(curve: PrivacyCurve) -> Fraction:
    """The δ at which to bound ε where nobody names one.

    Of a point, its own. Of a whole curve, all of which is audited whatever this is: 0 where it
    promises pure differential privacy, else 10⁻⁶, or 10⁻⁶ above the δ that it never falls below.
    """
    if isinstance(curve, ApproxDP):
        return curve.delta
    for delta in (Fraction(0), _USUAL, floor(curve) + _USUAL):
        with suppress(ParameterError):  # some refuse a delta at which they promise nothing
            if math.isfinite(claimed_epsilon(curve, delta)):
                return delta
    raise ParameterError("claim", curve, "finite at some delta", "Name the delta.")
