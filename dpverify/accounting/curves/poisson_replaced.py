"""A mechanism that reads a Poisson sample, of which one record is replaced.

The sample S of the others has one law on both sides, and H is jointly convex, so that S may be
given. Let F, G and G′ be the laws of the output on S, with the one record and with the other. For α
≥ 1, and likewise with both exchanged,

    H_α((1 − q)F + qG ‖ (1 − q)F + qG′) = q·sup_A (G − w·F − α·G′)(A),   w = (α − 1)(1 − q)/q ≥ 0.

Let the pair (P, Q) dominate the addition of a record, and g(t) be the largest P(A) of all tests
with Q(A) = t, which is concave. Where F(A) = t, hence, G(A) ≤ g(t), and 1 − G′(A) ≤ g(1 − t) by the
complement. So

    H_α ≤ q·sup_t (g(t) − wt − α·(1 − g(1 − t))).                                              (1)

**It is attained.** Let F be uniform on [0, 1], and G and G′ have the densities g′(t) and g′(1 − t),
and what g jumps by at 0 on an output of their own. Their tests against F are no better than g, and
since g′(t) − w − αg′(1 − t) falls in t, the best A is some [0, t], of which the value stands in
(1). So this pair, mixed with F, dominates for α ≥ 1. Mirrored it is its own reverse, so that it
dominates at all α, for H_α(A ‖ B) = 1 − α + αH_{1/α}(B ‖ A), and its products dominate
compositions, adaptive ones too (Zhu, Dong and Wang 2022, arXiv:2106.08567, theorem 10).

**Noise on one number**, of a symmetric log-concave density f that a record moves by Δ: the tests
are {z ≥ c}, so that t = ∫_c f, g′(t) = f(c − Δ)/f(c), and g′(1 − t) is that at −c, f(c + Δ)/f(c).
So F, G and G′ are the noise at 0, Δ and −Δ: two records that pull in opposite ways. Gaussian noise
on a vector, and Laplace noise on one that moves by Δ in the ℓ1 norm, have that g too.

**Finitely many outputs**: g′ has steps, and the laws finitely many parts.

**Any curve, one release.** With H_β(P ‖ Q) = D(β), g(t) is the least D(β) + βt, so that (1) is

    q·min_{0 ≤ s} (D(w + αe^{−s}) + αe^{−s}·δ(s)),

a least value instead of a largest one by convexity (Sion's theorem), where 1 − D(e^{−s}) − e^{−s}
was written by its reverse. It is enough to look at s ≥ 0 where P and Q are each other's mirror
image: for t > 1/2 the value in (1) falls, and at t ≤ 1/2 the slope of g at 1 − t is at most 1. At q
= 1 that is the curve of groups of two. What stands in brackets is convex in u = e^{−s}, as D and
u·δ(−ln u) are, the divergence of u times the first law; neither is steeper than 1.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from itertools import accumulate, combinations_with_replacement, pairwise

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.convex import Ends, enclose_least
from dpverify.accounting.curves._by_tails import (
    delta_by_tails,
    epsilon_by_tails,
    largest_loss,
)
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.poisson_sampled import (
    amplified_delta,
    amplified_epsilon,
    delta_near,
    finite_kind,
    mirrored_pairs,
    of_one_record,
    single_loss,
    to_rate,
)
from dpverify.accounting.losses.base import Losses, TailedLoss, escaping
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import AtomicLoss, FiniteLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss
from dpverify.accounting.losses.sampled import ReplacedSampleLoss
from dpverify.accounting.losses.smooth_samples import SmoothReplacedLoss
from dpverify.accounting.solve import falling_root, lowest
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.enclosure import Enclosure, enclose, number_string, to_arb
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve

__all__ = ["PoissonReplaced"]

_PRECISION = 256
_MOST_EPSILON = 2**500
_NARROW = 1e-8  # of the place of the least value
_MOST_VALUES = 64  # of a loss, at which all is tried


def _to_base(value: PrivacyCurve) -> PrivacyCurve:
    return of_one_record(
        value,
        "State the noise for what one record adds; that the sample has another one instead is "
        "counted here.",
    )


@frozen(kw_only=True)
class PoissonReplaced(PrivacyCurve):
    """Curve of a mechanism on a Poisson sample, for one record that is replaced.

    The least that the curve of adding a record proves, also of several releases.

    Parameters
    ----------
    curve : of the mechanism on its sample, for one record added or removed
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
        if epsilon > _MOST_EPSILON:  # δ falls
            least = amplified_delta(self.curve, self.rate, epsilon).lower
            return Enclosure(least, self._delta(Fraction(_MOST_EPSILON)).upper)
        loss = self._known_loss()
        return self._least(epsilon) if loss is None else delta_by_tails(loss, epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        loss = self._known_loss()
        if loss is not None:
            return epsilon_by_tails(loss, delta)
        removed = amplified_epsilon(self.curve, self.rate, delta)
        if math.isinf(removed.lower):
            return removed
        if not delta:
            return self._end()
        if self.rate < 1 and self._values() and delta == self.rate * escaping(self.curve.losses()):
            return enclose(self._largest)  # δ stays at what no ε takes away
        return falling_root(lambda eps: self._least(Fraction(eps)), delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; the noise is scaled by `noise`."""
        if threshold < 0:
            own, other = self._rates(-threshold, noise)
            return 1 - other, 1 - own
        loss = self._known_loss()
        if isinstance(loss, ReplacedSampleLoss):
            end = largest_loss(loss)
            if end is not None and threshold > end.lower:
                return 0.0, 0.0
            with ctx.workprec(64):
                own_ball, other_ball = loss.above(loss.boundary(arb(threshold)), noise)
                return float(own_ball.mid()), float(other_ball.mid())
        if loss is not None:
            own_masses, other_masses = zip(*loss.pairs, strict=True)
            return DiscretePair(p=own_masses, q=other_masses).rates(threshold, noise=noise)
        q, s = float(self.rate), self._place(Fraction(threshold))
        with ctx.workprec(64):
            near = float(self._slope(Fraction(threshold), s).log().mid())
        (own, both), (kept, _) = (self.curve.rates(at, noise=noise) for at in (near, -s))
        return (1 - q) * both + q * own, (1 - q) * both + q * (1 - kept)

    def losses(self) -> Losses:
        """The loss of the pair that dominates every release.

        Raises
        ------
        ParameterError
            If the noise is neither Gaussian nor Laplace and its laws aren't known to be finite.
        """
        base = self._known_base()
        if self.rate == 1 and isinstance(base, GaussianLoss):
            return ((GaussianLoss(mu_squared=4 * base.mu_squared), 1),)
        if self.rate == 1 and isinstance(base, LaplaceLoss):
            return ((LaplaceLoss(shift=2 * base.shift), 1),)
        loss = self._known_loss()
        if loss is None:
            raise ParameterError(
                "curve",
                str(self.curve),
                "Gaussian or Laplace noise, or laws of finitely many rational probabilities",
                "Of other noise one release is known: compose an ApproxDP of one of its points.",
            )
        return ((loss, 1),)

    def _known_base(self) -> TailedLoss | None:
        try:
            return single_loss(self.curve)
        except ParameterError:
            return None

    def _known_loss(self) -> ReplacedSampleLoss | FiniteLoss | None:
        base = self._known_base()
        if isinstance(base, GaussianLoss) and self.rate < 1:
            return PoissonReplacedLoss(base=base, rate=self.rate)
        if isinstance(base, LaplaceLoss) and self.rate < 1:
            return SmoothReplacedLoss(base=base, rate=self.rate)
        if isinstance(base, GaussianLoss | LaplaceLoss):
            return ReplacedSampleLoss(base=base, rate=self.rate)
        pairs = None if base is None else mirrored_pairs(base)
        if base is None or pairs is None:
            return None
        return finite_kind(base)(pairs=_replaced_pairs(pairs, self.rate))

    def _slope(self, epsilon: Fraction, s: float | arb) -> arb:
        """The slope w + αe^{−s}."""
        return self._rest(epsilon) + (to_arb(epsilon) - arb(s)).exp()

    def _rest(self, epsilon: Fraction) -> arb:
        """The slope where s is infinite, w."""
        q = to_arb(self.rate)
        return to_arb(epsilon).expm1() * (1 - q) / q

    def _bound(self, epsilon: Fraction, s: float | arb) -> arb:
        """Encloses what is to be least, at s ≥ 0, times q."""
        rest = (to_arb(epsilon) - arb(s)).exp() * delta_near(self.curve, arb(s))
        return to_arb(self.rate) * (self._profile(self._slope(epsilon, s)) + rest)

    def _profile(self, slope: arb) -> arb:
        """Encloses D at a slope of at least 0."""

        def at(beta: arb) -> arb:
            if beta >= 1:
                return delta_near(self.curve, beta.log())
            if not beta > 0:
                return arb(1)
            return 1 - beta + beta * delta_near(self.curve, -beta.log())

        return at(slope.upper()).union(at(slope.lower()))

    def _place(self, epsilon: Fraction) -> float:
        """About where it is least."""

        def bound(s: float) -> float:
            with ctx.workprec(_PRECISION):
                return float(self._bound(epsilon, s).log().mid())

        most = float(epsilon) + 1
        while bound(2 * most) < bound(most):
            most *= 2
        return lowest(bound, 0.0, 2 * most, width=_NARROW * most)

    def _values(self) -> list[arb] | None:
        """Those of the privacy loss, where they are few and known, and the same in both orders."""
        try:
            losses = self.curve.losses()
        except ParameterError:
            return None
        sums = [arb(0)]
        for loss, count in losses:
            if not isinstance(loss, AtomicLoss) or loss != loss.reverse():
                return None
            values = [value for _, value in loss.atoms()]
            if len(sums) * math.comb(count + len(values) - 1, count) > _MOST_VALUES:
                return None
            many = [sum(each, arb(0)) for each in combinations_with_replacement(values, count)]
            sums = [one + other for one in sums for other in many]
        return sums

    def _least(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), which is no less than where the record is removed."""
        with suppress(ParameterError):  # the loss is unbounded
            if epsilon >= self._end().upper:
                return Enclosure(0.0, 0.0)
        with ctx.workprec(_PRECISION):
            q = to_arb(self.rate)
            steep = q * to_arb(epsilon).exp()  # both D and u·δ have slopes of at most 1
            first = Enclosure.of_ball(q * self._profile(self._rest(epsilon)))

        def at(x: float) -> Enclosure:
            with ctx.workprec(_PRECISION):
                return Enclosure.of_ball(self._bound(epsilon, -x))

        starts, ends = [0.0, -float(epsilon) - 1], Ends(first=first, fall=-steep, rise=steep)
        found = enclose_least(at, starts, ends)
        removed = amplified_delta(self.curve, self.rate, epsilon)
        return Enclosure(max(found.lower, removed.lower), found.upper)

    def _largest(self) -> arb:
        """The largest finite loss, where the other order has outputs of its own: slope 0."""
        q, values = to_arb(self.rate), self._values()
        assert values  # noqa: S101
        return ((1 - q + q * reduce(arb.max, values).exp()) / (1 - q)).log()

    def _end(self) -> Enclosure:
        """The largest loss: that of g′ = e^{ε₀} on one side and e^{−ε₀} on the other."""
        pure, q = self.curve.epsilon_at(0), to_arb(self.rate)
        if math.isinf(pure.upper):
            return pure
        ends = [
            Enclosure.of_ball(((1 - q + q * arb(x).exp()) / (1 - q + q * (-arb(x)).exp())).log())
            for x in (pure.lower, pure.upper)
        ]
        return Enclosure(max(ends[0].lower, 0.0), ends[1].upper)


def _replaced_pairs(
    pairs: list[tuple[Fraction, Fraction]], rate: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """Probabilities of all parts of [0, 1] on both sides, and of the outputs of their own."""
    shown = sum((p for p, q in pairs if not q), Fraction(0))
    steps = sorted(((p / q, q) for p, q in pairs if q), reverse=True)
    ends = list(accumulate((q for _, q in steps), initial=Fraction(0)))
    cuts = sorted({*ends, *(1 - end for end in ends)})

    def slope(t: Fraction) -> Fraction:
        return next(ratio for (ratio, _), end in zip(steps, ends[1:], strict=True) if t < end)

    found = [(rate * shown, Fraction(0)), (Fraction(0), rate * shown)] if shown else []
    for low, high in pairwise(cuts):
        middle, size = (low + high) / 2, high - low
        own, other = slope(middle), slope(1 - middle)
        found.append((size * (1 - rate + rate * own), size * (1 - rate + rate * other)))
    return found
