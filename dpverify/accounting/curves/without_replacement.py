"""A mechanism that reads a batch of a fixed size, drawn without replacement from all records.

**One record replaced.** Let b of n records be drawn, q = b/n. With probability 1 − q the batch
doesn't hold the record x that is replaced by x′. Draw it as a set B of b − 1 others, and one more
record: x itself with probability q, and otherwise another one, y, that isn't in B. So given B and y

    (1 − q)·M(B ∪ {y}) + q·M(B ∪ {x})   stands against   (1 − q)·M(B ∪ {y}) + q·M(B ∪ {x′}),

with three laws F, G, G′ of which any two are neighbours. For α ≥ 1, with β = 1 + (α − 1)/q,

    H_α((1 − q)F + qG ‖ (1 − q)F + qG′) = q·sup_A (G − β·((1 − γ)F + γG′))(A),   γ = α/β in [0, 1],

and H is convex, so that this is at most q·H_β(P ‖ Q) where (P, Q) dominates all neighbours (Balle,
Barthe and Gaboardi 2018, arXiv:1807.01647). It is attained: where all other records are x′, F = G′.

**T releases.** That bound holds in both orders at every α ≥ 1, and decides the whole curve, since
H_α(A ‖ B) = 1 − α + αH_{1/α}(B ‖ A). So the pair of laws that has this curve in both orders
dominates each release (Zhu, Dong and Wang 2022, arXiv:2106.08567), and its products dominate
compositions, adaptive ones too. At losses above 0 it is the removal's pair of `PoissonSampled`,
since their curves agree there; below it is the mirror image, and what is left of both laws lies at
0. It is a pair of laws: with A and B the two sides' probabilities of ℓ > 0, the rest is
1 − ((1 − q)B + qA) − B = (1 − A − B) + (1 − q)(A − B) ≥ 0, as A + B ≤ 1 and A ≥ B.

One release of the worst data is the removal's pair, another one may be its reverse, if the other
records count for x there and for x′ here, and no single pair is the worst in all (Lebeda, Regehr,
Kamath and Steinke 2024, arXiv:2405.20769). So the composition is a proven bound, and not known to
be attained. Where all releases are of one order the curve of `PoissonSampled` is the truth.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from dpverify.accounting.curves.poisson_sampled import (
    amplified_delta,
    amplified_epsilon,
    amplified_rates,
    mirrored_pairs,
    single_loss,
)
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import AtomicLoss, DominatingLoss
from dpverify.accounting.losses.discrete_samples import DiscreteBatchLoss
from dpverify.accounting.losses.sampled import BatchLoss
from dpverify.accounting.losses.smooth_samples import Noise, SmoothBatchLoss
from dpverify.data.adjacency import Adjacency, Group, Record, Replace
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, check_no_draw
from dpverify.numbers import to_count

__all__ = ["SampledWithoutReplacement", "replacing_one"]


def _to_base(value: PrivacyCurve) -> PrivacyCurve:
    return replacing_one(
        value,
        "A batch of a fixed size holds another record where this one isn't in it: state the curve "
        "for replacing one, of noise for twice the norm that a record is clipped to.",
    )


def replacing_one(value: PrivacyCurve, way_out: str) -> PrivacyCurve:
    """Read a curve of one record that is replaced, or one that doesn't say whom it protects."""
    require(isinstance(value, PrivacyCurve), "curve", value, "a privacy curve")
    check_no_draw(value)
    known = value.adjacency
    if known is None or isinstance(known, Record) or known == Replace(user=_user(known)):
        return value
    if isinstance(known, Group):
        way_out = "A batch may hold some records of a group: sample first, and take its group."
    raise ParameterError("adjacency", known.unit, "one row or user, replaced", way_out)


def _user(adjacency: Adjacency) -> str | None:
    return adjacency.user if isinstance(adjacency, Replace) else None


@frozen(kw_only=True)
class SampledWithoutReplacement(PrivacyCurve):
    """Curve of a mechanism on a batch of a fixed size, for one record that is replaced.

    Exact for one release, a proven bound for several.

    Parameters
    ----------
    curve : of the mechanism on its batch, of replacing one record there
    size, out_of : records in a batch, and in all; users, each drawn with all rows, where the curve
        is of users

    Examples
    --------
    >>> import dpverify as dpv
    >>> clipped_to_1 = dpv.Gaussian(sigma=2, sensitivity=2)
    >>> step = clipped_to_1.sampled_without_replacement(size=1, out_of=100)
    >>> round(step.epsilon_at(delta=1e-6).upper, 4)
    0.3639
    """

    curve: PrivacyCurve = field(converter=_to_base)
    size: int = field(converter=to_count)
    out_of: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        require(self.size <= self.out_of, "size", self.size, f"at most out_of={self.out_of}")

    @property
    def rate(self) -> Fraction:
        """q, the probability of a record to be in the batch."""
        return Fraction(self.size, self.out_of)

    @property
    def adjacency(self) -> Adjacency:
        """One record replaced."""
        return self.curve.adjacency or Replace()

    def __str__(self) -> str:
        numbers = f"size={self.size}, out_of={self.out_of}"
        return f"{self.curve}.sampled_without_replacement({numbers})"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return amplified_delta(self.curve, self.rate, epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return amplified_epsilon(self.curve, self.rate, delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """The removal's above 0; below, those of its mirror image."""
        own, other = amplified_rates(self.curve, self.rate, abs(threshold), noise)
        return (own, other) if threshold > 0 else (1 - other, 1 - own)

    def losses(self) -> Losses:
        """The loss of the pair that dominates every release."""
        if self.rate == 1:
            return self.curve.losses()
        loss = single_loss(self.curve)
        pairs = mirrored_pairs(loss)
        if pairs is None:
            if isinstance(loss, Noise):
                return ((SmoothBatchLoss(base=loss, rate=self.rate), 1),)
            if isinstance(loss, AtomicLoss):
                return ((DiscreteBatchLoss(base=loss, rate=self.rate), 1),)
            return ((BatchLoss(base=loss, rate=self.rate), 1),)
        q = self.rate
        above = [((1 - q) * o + q * p, o) for p, o in pairs if p > o]
        rest = 1 - sum((p + o for p, o in above), Fraction(0))
        mirrored = [(o, p) for p, o in above]
        return ((DominatingLoss(pairs=[*above, (rest, rest), *mirrored]), 1),)
