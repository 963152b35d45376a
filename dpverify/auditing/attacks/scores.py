"""An audit of scores that somebody has: of canaries, say, or of any membership inference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.auditing.attacks.trade_off import Band, band
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import require

__all__ = ["ScoreAudit", "audit_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAudit:
    """What scores of both sides show of any mechanism that they were computed from.

    Attributes
    ----------
    delta : where ε is bounded by `epsilon_lower`
    alpha : probability with which any of the bounds is wrong
    draws, false_draws : numbers of scores with and without
    band : on the whole ROC, for bounds at other δ and ε
    """

    delta: Fraction
    alpha: float
    draws: int
    false_draws: int
    band: Band

    @property
    def epsilon_lower(self) -> float:
        """Lower confidence limit of ε at delta, in nats."""
        return self.band.epsilon_lower(Enclosure.of_exact(self.delta).upper)

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types."""
        return {
            "delta": float(self.delta),
            "alpha": self.alpha,
            "draws": self.draws,
            "false_draws": self.false_draws,
            "epsilon_lower": self.epsilon_lower,
        }

    def __str__(self) -> str:
        return (
            f"epsilon is at least {self.epsilon_lower:.6g} at delta {float(self.delta):g}, at "
            f"level {self.alpha:g}, by {self.draws} scores with and {self.false_draws} without"
        )


def audit_scores(
    with_canary: ArrayLike, without: ArrayLike, *, delta: Real, alpha: float = 0.05
) -> ScoreAudit:
    """Bound ε from below by scores that somebody has.

    The scores of each side are independent: of separate runs, or of canaries whose scores are so.
    The function that scores is fixed before they are drawn. Both signs of the score and both orders
    of the sides are looked at, at every threshold, within the one level (`band`).

    Parameters
    ----------
    with_canary, without : array_like of shape (n,) and (m,)
        Scores of runs with the record, and of runs without it.
    delta : real in [0, 1)
        Where ε is bounded.
    alpha : float in (0, 1)
        Probability with which the bound is above the true ε.

    Raises
    ------
    ParameterError
        If the scores aren't two arrays of numbers, at least 8 each, or a value is outside its
        domain.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> audit_scores(rng.normal(3, 1, 500), rng.normal(0, 1, 500), delta="1e-5").epsilon_lower > 1
    True
    """
    exact = rational("delta", delta)
    require(0 <= exact < 1, "delta", delta, "in [0, 1)")
    own, other = _scores("with_canary", with_canary), _scores("without", without)
    return ScoreAudit(
        delta=exact,
        alpha=alpha,
        draws=own.size,
        false_draws=other.size,
        band=band(own, other, alpha=alpha),
    )


def _scores(name: str, given: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(given)
    rule = "a row of at least 8 numbers"
    numbers = scores.ndim == 1 and scores.size >= 8 and scores.dtype.kind in "biuf"
    require(numbers, name, f"{scores.dtype} of shape {scores.shape}", rule)
    require(not np.isnan(scores).any(), name, "NaN", "numbers")
    return scores.astype(np.float64)
