"""How an audit is made: the numbers that every attack shares, checked once and passed whole."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

from attrs import evolve, field, frozen

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.statistics.claim_test import floor
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.numbers import optional_delta, to_count, to_level, to_seconds, to_whole

__all__ = ["AuditConfig", "fitting_delta"]

_MOST_DRAWS = 10**12
_MOST_WORKERS = 1_000_000
_USUAL = Fraction(1, 10**6)  # the δ at which ε of a whole curve is bounded, if it can be


@frozen(kw_only=True)
class AuditConfig:
    """How hard an audit tries, at which level, and from which seed.

    Parameters
    ----------
    delta : real in [0, 1) or None
        Where ε is bounded, exactly; None for the δ that fits the claim (`fitting_delta`).
    alpha : real in (0, 1)
        Probability with which a true claim is accused.
    draws : int, at least 1
        Outputs that are counted on each side of each pair.
    seed : int, at least 0
        Of the replayable randomness.
    workers : int
        Processes, −1 for all cores; no effect on a finding. With 1 the mechanism never leaves this
        process, and those of the determinism audit that compare processes aren't made.
    time_limit : real, positive
        Seconds that one release may take; all of an audit may take 1,000 times as many (`longest`).
    brief : bool or None
        Whether fewer draws are made where these already tell much, and none once the claim is
        refuted; None where that depends on how long a release takes.

    Raises
    ------
    ParameterError
        If a value is outside its domain.

    Examples
    --------
    >>> AuditConfig(delta="1e-6", draws=2000).delta
    Fraction(1, 1000000)
    """

    delta: Fraction | None = field(default=None, converter=optional_delta)
    alpha: float = field(default=0.01, converter=to_level)
    draws: int = field(default=10_000, converter=to_count)
    seed: int = field(default=0, converter=to_whole)
    workers: int = field(default=-1, converter=to_whole)
    time_limit: float = field(default=10.0, converter=to_seconds)
    brief: bool | None = None

    def __attrs_post_init__(self) -> None:
        require(self.draws <= _MOST_DRAWS, "draws", self.draws, f"at most {_MOST_DRAWS:,}")
        require(self.seed >= 0, "seed", self.seed, "at least 0")
        processes = self.workers >= 1 or self.workers == -1
        rule = "a number of processes, or -1 for one on each core"
        require(processes, "workers", self.workers, rule)
        most = f"at most {_MOST_WORKERS:,}"
        require(self.workers <= _MOST_WORKERS, "workers", self.workers, most)
        truth = self.brief is None or isinstance(self.brief, bool)
        require(truth, "brief", self.brief, "True, False or None")

    @property
    def longest(self) -> float:
        """Seconds that all of an audit may take."""
        return 1000 * self.time_limit

    def delta_for(self, curve: PrivacyCurve) -> Fraction:
        """Where ε of this claim is bounded."""
        return fitting_delta(curve) if self.delta is None else self.delta

    def at_level(self, alpha: float) -> AuditConfig:
        """The same at another level."""
        return evolve(self, alpha=alpha)


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
