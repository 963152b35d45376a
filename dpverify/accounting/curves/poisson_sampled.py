"""A mechanism that reads a Poisson sample: every record by a coin of its own, of probability q.

**One record more.** Let S be the sample without that record. With it, the output follows
(1 − q)·M(S) + q·M(S ∪ {x}), without it M(S). Write H_α(P ‖ Q) = sup_A P(A) − αQ(A), so that δ(ε) is
at α = e^ε. For α ≥ 1 − q, with β = 1 + (α − 1)/q,

    H_α((1 − q)·Q + q·P ‖ Q) = sup_A q·P(A) − (α − 1 + q)·Q(A) = q·H_β(P ‖ Q),

and for smaller α it is 1 − α for any P, Q. So where (P, Q) dominates (M(S ∪ {x}), M(S)) for every
S, which is H_β of the former being at least that of the latter for every β ≥ 0, then the pair
(1 − q)·Q + q·P, Q dominates one step; averaging over S changes nothing, as H is jointly convex. The
pair in reverse order dominates the addition, for H_α(B ‖ A) = 1 − α + α·H_{1/α}(A ‖ B).

**One release.** For α = e^ε ≥ 1, hence, the removal's is δ₁(ε) = q·δ(ln(1 + (e^ε − 1)/q)), and the
addition's H_α(Q ‖ (1 − q)·Q + q·P) = k·H_{1/k}(Q ‖ P)·qα = (1 − α(1 − q))·δ(−ln k) with
k = 1 − (1 − 1/α)/q, or 0 where k ≤ 0. The former is the larger one: 1 − α(1 − q) ≤ q, and δ falls
while 1/k ≥ β, for with u = 1 − 1/α

    kβ = (1 − u/q)(1 + u/(q(1 − u))) = 1 − u²(1 − q)/(q²(1 − u)) ≤ 1.

So one formula serves every curve (Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, theorem 8).

**T releases.** Which record differs, and whether it is there, is the same in every release. So the
T-fold product of the removal's pair, and that of the addition's, dominate the two orders (Zhu, Dong
and Wang 2022, arXiv:2106.08567, theorem 10), and δ is the larger of the two, whichever that is.
The pair has to dominate in both orders: its loss must be its own reverse.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Log, Losses, TailedLoss, sum_string
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import (
    AtomicLoss,
    DominatingLoss,
    FiniteLoss,
    ResponseLoss,
)
from dpverify.accounting.losses.discrete_samples import DiscreteSampledLoss
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.sampled import SampledLoss
from dpverify.accounting.losses.smooth_samples import SmoothSampledLoss
from dpverify.accounting.targets import MOST_DELTA
from dpverify.data.adjacency import AddRemove, Group
from dpverify.enclosure import Enclosure, Real, number_string, rational, rational_of, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, check_no_draw

__all__ = [
    "PoissonSampled",
    "amplified_delta",
    "amplified_epsilon",
    "amplified_rates",
    "delta_near",
    "finite_kind",
    "mirrored_pairs",
    "of_one_record",
    "single_loss",
    "to_rate",
]

_PRECISION = 256
_LEAST_RATE = Fraction(1, 10**300)  # sums are planned in doubles


def of_one_record(value: PrivacyCurve, way_out: str) -> PrivacyCurve:
    """The curve, unless it says that it protects something else than one record or user.

    Raises
    ------
    ParameterError
        If it isn't the curve of one row or user, added or removed; with this way out.
    """
    require(isinstance(value, PrivacyCurve), "curve", value, "a privacy curve")
    check_no_draw(value)
    known = value.adjacency
    if isinstance(known, Group):
        way_out = (
            "Sample first, and take the group of the sum: each record of a group has its own coin."
        )
    if known is not None and not (isinstance(known, AddRemove) and known.k == 1):
        raise ParameterError("adjacency", known.unit, "one row or user, added or removed", way_out)
    return value


def _to_base(value: PrivacyCurve) -> PrivacyCurve:
    return of_one_record(
        value,
        "Where a record is replaced, the samples of both data sets differ by two coins: say so "
        "with replaced=True, of the curve of adding or removing one.",
    )


def to_rate(value: Real) -> Fraction:
    """Read a probability to be in the sample."""
    rate = rational("rate", value)
    require(0 < rate <= 1, "rate", value, "in (0, 1]")
    require(rate >= _LEAST_RATE, "rate", value, "at least 1e-300")
    return rate


def amplified_delta(curve: PrivacyCurve, rate: Fraction, epsilon: Fraction) -> Enclosure:
    """Encloses q·δ(ε′) with e^ε′ = 1 + (e^ε − 1)/q, between two rationals next to ε′."""
    if rate == 1:
        return curve.delta_at(epsilon)
    with ctx.workprec(_PRECISION):
        q, exact = to_arb(rate), to_arb(epsilon)
        if epsilon > 1:  # where the exponential may be beyond all balls
            inner = exact - q.log() + (-(1 - q) * (-exact).exp()).log1p()
        else:
            inner = (exact.expm1() / q).log1p()
        found = Enclosure.of_ball(q * delta_near(curve, inner))
    return Enclosure(max(found.lower, 0.0), found.upper)


def delta_near(curve: PrivacyCurve, epsilon: arb) -> arb:
    """Encloses δ(ε) by its values at two rationals beside ε ≥ 0."""
    low, high = (max(rational_of(end), Fraction(0)) for end in (epsilon.lower(), epsilon.upper()))
    largest, least = curve.delta_at(low).upper, curve.delta_at(high).lower
    return arb(least).union(arb(largest))


def amplified_epsilon(curve: PrivacyCurve, rate: Fraction, delta: Fraction) -> Enclosure:
    """Encloses ln(1 + q·(e^ε′ − 1)) with δ(ε′) = delta/q."""
    if delta >= rate:
        return Enclosure(0.0, 0.0)
    inner = _epsilon_near_one(curve, delta / rate)
    if rate == 1 or math.isinf(inner.upper):
        return inner
    with ctx.workprec(_PRECISION):
        low, high = (
            Enclosure.of_ball((to_arb(rate) * arb(end).expm1()).log1p())
            for end in (inner.lower, inner.upper)
        )
    return Enclosure(max(low.lower, 0.0), high.upper)


def _epsilon_near_one(curve: PrivacyCurve, delta: Fraction) -> Enclosure:
    """Encloses ε(δ), and beyond the largest δ that is a target what lies between 0 and its ε."""
    if delta <= MOST_DELTA:
        return curve.epsilon_at(delta)
    return Enclosure(0.0, curve.epsilon_at(MOST_DELTA).upper)


def amplified_rates(
    curve: PrivacyCurve, rate: Fraction, threshold: float, noise: float
) -> tuple[float, float]:
    """Rates of the mechanism's own test at the inner threshold, mixed as its laws are."""
    q = float(rate)
    inner = -math.inf
    if threshold > 1:  # where the exponential may be beyond doubles
        inner = threshold - math.log(q) + math.log1p(-(1 - q) * math.exp(-threshold))
    elif math.expm1(threshold) > -q:
        inner = math.log1p(math.expm1(threshold) / q)
    own, other = (1.0, 1.0) if inner == -math.inf else curve.rates(inner, noise=noise)
    return (1 - q) * other + q * own, other


@frozen(kw_only=True)
class PoissonSampled(PrivacyCurve):
    """Curve of a mechanism on a sample that every record enters with the same probability.

    The neighbours are those of adding or removing one record: of a user's rows, if the curve's
    adjacency says so, and then a coin decides all of them together. For a record that is replaced
    see `PoissonReplaced`, for batches of a fixed size `SampledWithoutReplacement`. Several releases
    add up where the record is there in all or in none. Of a record that one table gains as another
    loses it a sum may be too low: take `PoissonReplaced`, whose orders are the same. A curve of
    groups is refused: of several records, each has its own coin, so that the sample may hold some
    of them. Sample first: `(1000 * curve.poisson_sampled(rate=0.01)).group(2)`.

    Parameters
    ----------
    curve : of the mechanism on its sample, of adding or removing one record
    rate : q in (0, 1], exact, of a record; of a user with all rows, where the curve is of users

    Examples
    --------
    >>> import dpverify as dpv
    >>> step = dpv.Gaussian(sigma=1).poisson_sampled(rate="0.01")
    >>> round(step.epsilon_at(delta=1e-6).upper, 4)
    0.3639
    >>> print(10_000 * step)
    10000 * Gaussian(sigma=1).poisson_sampled(rate=0.01), one row, added or removed
    """

    curve: PrivacyCurve = field(converter=_to_base)
    rate: Fraction = field(converter=to_rate)

    @property
    def adjacency(self) -> AddRemove:
        """One record more or less."""
        known = self.curve.adjacency
        return known if isinstance(known, AddRemove) else AddRemove()

    def __str__(self) -> str:
        try:
            inner = sum_string(self.curve.losses())
        except ParameterError:
            inner = str(self.curve)
        inner = f"({inner})" if " + " in inner or " * " in inner else inner
        return f"{inner}.poisson_sampled(rate={number_string(self.rate)})"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return amplified_delta(self.curve, self.rate, epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return amplified_epsilon(self.curve, self.rate, delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """Rates of the mechanism's own test at the inner threshold, mixed as its laws are."""
        return amplified_rates(self.curve, self.rate, threshold, noise)

    def losses(self) -> Losses:
        """The loss of the removal's pair, for composition; its reverse is the addition's."""
        if self.rate == 1:
            return self.curve.losses()
        loss = single_loss(self.curve)
        if isinstance(loss, GaussianLoss):
            return ((PoissonSampledLoss(base=loss, rate=self.rate), 1),)
        pairs = mirrored_pairs(loss)
        if pairs is None:
            if isinstance(loss, LaplaceLoss | BoundedRangeLoss):
                return ((SmoothSampledLoss(base=loss, rate=self.rate), 1),)
            if isinstance(loss, AtomicLoss):
                return ((DiscreteSampledLoss(base=loss, rate=self.rate), 1),)
            return ((SampledLoss(base=loss, rate=self.rate), 1),)
        q, kind = self.rate, finite_kind(loss)
        return ((kind(pairs=[((1 - q) * o + q * p, o) for p, o in pairs]), 1),)


def single_loss(curve: PrivacyCurve) -> TailedLoss:
    """The one loss of a curve, its own reverse; that of all Gaussian noise together."""
    known = curve.losses()
    squares = [n * loss.mu_squared for loss, n in known if isinstance(loss, GaussianLoss)]
    if len(squares) == len(known):
        return GaussianLoss(mu_squared=sum(squares, Fraction(0)))
    ((loss, count), *others) = known
    if count == 1 and not others and isinstance(loss, TailedLoss) and loss == loss.reverse():
        return loss
    raise ParameterError(
        "curve",
        str(curve),
        "one release whose privacy loss has a known law, the same in both orders",
        "No loss of another one's sample is known: compose an ApproxDP of one of its points.",
    )


def finite_kind(loss: TailedLoss) -> type[FiniteLoss]:
    """What a finite loss made of this one is: a bound, of a bound."""
    return DominatingLoss if isinstance(loss, DominatingLoss) else FiniteLoss


def mirrored_pairs(loss: TailedLoss) -> list[tuple[Fraction, Fraction]] | None:
    """Probabilities of all outputs under both laws, where they are rational and mirror images."""
    if isinstance(loss, ResponseLoss) and isinstance(loss.step, Log):
        rest, odds = 1 - loss.infinity_mass, loss.step.argument
        other = rest * loss.share / (1 + odds)
        zero, mass = rest * (1 - loss.share), loss.infinity_mass
        sides = [(odds * other, other), (other, odds * other), (zero, zero)]
        return [*sides, (mass, Fraction(0)), (Fraction(0), mass)]
    if isinstance(loss, FiniteLoss):
        return list(loss.pairs)
    return None
