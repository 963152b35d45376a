"""A mechanism that reads a Poisson sample, of which one record is replaced.

Let noise of a log-concave density f that falls with the distance, and depends on nothing else, be
added to a vector of the sample, which a record moves by at most Δ: Gaussian noise, or Laplace noise
on one number. The sample S of the others has one law on both sides, and H is jointly convex, so
that S may be given. Let the vector be 0 then, v with the one record and v′ with the other.
For α ≥ 1, and likewise with both exchanged,

    H_α((1 − q)f₀ + qf_v ‖ (1 − q)f₀ + qf_{v′}) = q·sup_A (f_v − w·f₀ − α·f_{v′})(A),
    w = (α − 1)(1 − q)/q ≥ 0,

subscripts being centres. Move the origin to v: let the centres be 0, a = −v and c = v′ − v, so that
|a| ≤ Δ and |c| ≤ 2Δ. It is largest at c = 2a of lengths 2Δ and Δ:

 - Reflect c at the hyperplane through 0 that exchanges the directions of a and c, where these
   differ. Let x and x′ be mirror images, x on a's side, so that f₀ is the same at both, f_a larger
   at x, and c on the other side. Then f₀ − wf_a − αf_c has at x and x′ the same sum, and is further
   apart, once c is reflected too: with (·)₊, which is convex, the integral has grown.
 - With a and c on one ray, f₀/f_a and f₀/f_c fall along it, f being log-concave, so that the best A
   is a half space {x ≤ t}. On it f_a(A) and f_c(A) fall as a and c move away.

So the pair of centres Δ and −Δ, mixed with 0, dominates for α ≥ 1, is met by two records that pull
in opposite ways, and is its own reverse. Hence it dominates at all α, for
H_α(A ‖ B) = 1 − α + αH_{1/α}(B ‖ A), and its products dominate compositions, adaptive ones too
(Zhu, Dong and Wang 2022, arXiv:2106.08567, theorem 10).

Then one release costs what the tails of its loss say, P[L ≥ ε] − e^ε·Q[L ≥ ε].
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.curves._by_tails import (
    delta_by_tails,
    epsilon_by_tails,
    largest_loss,
)
from dpverify.accounting.curves.poisson_sampled import single_loss, to_rate
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.sampled import ReplacedSampleLoss
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.enclosure import Enclosure, number_string
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve

__all__ = ["PoissonReplaced"]


def _to_base(value: PrivacyCurve) -> PrivacyCurve:
    require(isinstance(value, PrivacyCurve), "curve", value, "a privacy curve")
    known = value.adjacency
    if known is not None and not (isinstance(known, AddRemove) and known.k == 1):
        raise ParameterError(
            "adjacency",
            known.unit,
            "one row or user, added or removed",
            "State the noise for what one record adds; that the sample has another one instead is "
            "counted here.",
        )
    if not isinstance(single_loss(value), GaussianLoss | LaplaceLoss):
        rule = "Gaussian noise, or Laplace noise on one number"
        hint = "No dominating pair is proven for others."
        raise ParameterError("curve", str(value), rule, hint)
    return value


@frozen(kw_only=True)
class PoissonReplaced(PrivacyCurve):
    """Curve of noise on a Poisson sample, for one record that is replaced.

    Exact, also of several releases.

    Parameters
    ----------
    curve : of Gaussian noise, or Laplace noise on one number, for one record added or removed
    rate : q in (0, 1], exact, of a record; of a user with all rows, where the curve is of users

    Examples
    --------
    >>> import dpverify as dpv
    >>> step = dpv.Gaussian(sigma=1).poisson_sampled(rate="0.01", replaced=True)
    >>> round(step.epsilon_at(delta=1e-6).upper, 4)
    0.3739
    """

    curve: PrivacyCurve = field(converter=_to_base)
    rate: Fraction = field(converter=to_rate)

    @property
    def adjacency(self) -> Replace:
        """One record instead of another one."""
        known = self.curve.adjacency
        return Replace(user=known.user if isinstance(known, AddRemove) else None)

    def __str__(self) -> str:
        return f"{self.curve}.poisson_sampled(rate={number_string(self.rate)}, replaced=True)"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return delta_by_tails(self._loss, epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return epsilon_by_tails(self._loss, delta)

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; the noise is scaled by `noise`."""
        loss = self._loss
        end = largest_loss(loss)
        if end is not None and abs(threshold) > end.lower:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        with ctx.workprec(64):
            own, other = loss.above(loss.boundary(arb(threshold)), noise)
            return float(own.mid()), float(other.mid())

    def losses(self) -> Losses:
        """The loss of the pair that dominates, and that two records attain."""
        return ((self._loss, 1),)

    @property
    def _loss(self) -> ReplacedSampleLoss:
        base = single_loss(self.curve)
        assert isinstance(base, GaussianLoss | LaplaceLoss)  # noqa: S101
        return ReplacedSampleLoss(base=base, rate=self.rate)
