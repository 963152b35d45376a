"""Choosing one of many by noisy scores: exponential mechanism, noisy maximum, sparse vector.

**Bounded range.** The exponential mechanism gives r a probability like exp(u(r)/s). Between
neighbours a score moves by at most Δ, so that the privacy losses of any two outputs differ by at
most ε₀ = 2Δ/s, or Δ/s where all scores move the same way: it is ε₀-bounded range (Durfee and Rogers
2019, arXiv:1905.04273; Dong, Durfee and Rogers 2020, arXiv:1909.13830). The worst pair of laws
has the two losses t and t − ε₀ for some t in [0, ε₀], a convex function being largest at the ends,
and the larger one has the probability (e^ε₀ − e^t)/(e^ε₀ − 1), for both laws are of total 1. With
y = e^ε, r² = e^ε₀ and u = e^t,

    δ(ε) = sup over u of (r² − u)(1 − y/u)/(r² − 1) = (r − √y)²/(r² − 1),       at u = r√y.

That is exact for the exponential mechanism: two groups of outputs whose scores move apart by 2Δ
have these two losses, and the sizes of the groups any odds.

**Composition.** No single t is the worst at every ε. But 1 − y + y·δ(−ln y) = (r − √y)²/(r² − 1)
for 1/r² ≤ y < 1 too, and that is the whole curve of one pair of laws, the one whose loss has under
the first law the density

    e^(ℓ/2)/(4 sinh(ε₀/2))  on [−ε₀, ε₀],

as integrating (1 − y·e^(−ℓ))₊ over it shows. So this pair dominates, and its products dominate
compositions, adaptive ones and those with other mechanisms included (Zhu, Dong and Wang 2022,
arXiv:2106.08567, theorem 10). For several releases that is a bound, since each has a t of its own.

**Noisy maximum.** To return which score plus Gumbel noise of scale s is largest is the exponential
mechanism, in law. For Laplace or exponential noise of scale s, fix the noise of all but r: r wins
where its own exceeds some x, which between neighbours rises by at most 2Δ, or Δ where all scores
move the same way, and P[X > x + t] ≥ e^(−t/s) P[X > x]. So pure ε₀-differential privacy is proven
for the same ε₀, and nothing is claimed beyond it. Permute-and-flip (McKenna and Sheldon 2020,
arXiv:2010.12603) is the noisy maximum of exponential noise, in law (Ding, Kifer and others 2021,
arXiv:2105.07260).

**Sparse vector.** Noise Lap(b₁) on the threshold, drawn once; noise Lap(b₂) on each score; it shows
which scores are above, at most c, and no score. Let z be the threshold's noise. If scores move by
at most Δ, what was below z is below z + Δ on the other side, and a score above z there is above z +
Δ with at least e^(−2Δ/b₂) times the probability; the density at z + Δ is at least e^(−Δ/b₁) times
that at z. So it is (Δ/b₁ + 2cΔ/b₂)-differentially private. Where all scores rise, those above lose
Δ and not 2Δ; where all fall, compare at the same z: Δ/b₁ + cΔ/b₂. Variants that show scores, or
don't stop, have no such proof: Lyu, Su and Li 2017 (arXiv:1603.01699) list wrong ones.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen
from attrs.converters import optional
from flint import arb, ctx

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import BoundedRangeLoss
from dpverify.accounting.losses.discrete import SelectionLoss
from dpverify.data.adjacency import AddRemove, Adjacency, Group, Moves, Permutation, Replace
from dpverify.enclosure import Enclosure, Real, enclose, short_string, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import count, positive_rational, to_positive_rational

__all__ = [
    "BoundedRange",
    "PureSelection",
    "exponential_mechanism",
    "noisy_max",
    "permute_and_flip",
    "sparse_vector",
]

_PRECISION = 192
_KNOWN = AddRemove | Replace | Group | Permutation | Moves


@frozen(kw_only=True)
class BoundedRange(PrivacyCurve):
    """Exact curve of the worst mechanism whose losses all lie in an interval of length ε₀.

    Its sums and multiples are proven upper bounds, also where one release depends on another.

    Parameters
    ----------
    epsilon : ε₀ > 0, the range; exact
    scale : s of the exponential mechanism that it stands for, if it does
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> choice = dpv.curves.exponential_mechanism(scale=2, sensitivity=1)
    >>> f"{choice.delta_at(epsilon=0):.4f} {dpv.ApproxDP(epsilon=1).delta_at(epsilon=0):.4f}"
    '0.2450 0.4622'
    >>> pure = dpv.ApproxDP(epsilon=1)
    >>> f"{(100 * choice).epsilon_at(1e-6):.2f} {(100 * pure).epsilon_at(1e-6):.2f}"
    '41.50 83.54'
    """

    epsilon: Fraction = field(converter=to_positive_rational)
    scale: Fraction | None = field(default=None, converter=optional(to_positive_rational), eq=False)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        good = Fraction(1, 2**60) <= self.epsilon <= 2**60
        require(good, "epsilon", short_string(self.epsilon), "from 2**-60 to 2**60")

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13; exactly 0 from ε₀ on."""
        if epsilon >= self.epsilon:
            return Enclosure(0.0, 0.0)

        def value() -> arb:
            return to_arb((epsilon - self.epsilon) / 2).expm1() ** 2 / self._length()

        return enclose(value)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ) = ε₀ + 2 ln(1 − √(δ(1 − e^−ε₀)))."""
        if delta == 0:
            return Enclosure.of_exact(self.epsilon)

        def value() -> arb:
            return to_arb(self.epsilon) + 2 * (1 - (to_arb(delta) * self._length()).sqrt()).log()

        with ctx.workprec(_PRECISION):
            if value() <= 0:
                return Enclosure(0.0, 0.0)
            if not value() > 0:
                return Enclosure(0.0, Enclosure.of_ball(value()).upper)
        return enclose(value)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides of the pair that composes; ε₀/noise replaces ε₀."""
        reach = float(self.epsilon)
        if not -reach < threshold <= reach:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        with ctx.workprec(64):
            half, at = (
                to_arb(x / Fraction(noise) / 2) for x in (self.epsilon, Fraction(threshold))
            )
            at = at.max(-half).min(half)
            whole = 2 * half.sinh()
            return float((half.exp() - at.exp()) / whole), float(
                ((-at).exp() - (-half).exp()) / whole
            )

    def losses(self) -> Losses:
        """The loss of the pair that dominates all others."""
        return ((BoundedRangeLoss(epsilon=self.epsilon), 1),)

    def _length(self) -> arb:
        """1 − e^−ε₀."""
        return -to_arb(-self.epsilon).expm1()


@frozen(kw_only=True)
class PureSelection(ApproxDP):
    """What is proven of a selection: the curve of `ApproxDP`, and the scale that it is for.

    Parameters
    ----------
    epsilon, delta, adjacency : as there
    scale : of the noise on each score
    """

    scale: Fraction | None = field(default=None, converter=optional(to_positive_rational), eq=False)

    def losses(self) -> Losses:
        """The loss of randomized response, marked as a bound."""
        return ((SelectionLoss(step=self.epsilon, infinity_mass=self.delta), 1),)


def exponential_mechanism(
    *, scale: Real, sensitivity: Real = 1, monotonic: Real = 0, adjacency: Adjacency | None = None
) -> BoundedRange:
    """The curve of choosing r with a probability like exp(score/scale), or of adding Gumbel noise.

    Parameters
    ----------
    scale : s > 0, of the scores, or of the Gumbel noise whose largest sum wins
    sensitivity : Δ > 0, how far a score moves between neighbours
    monotonic : 1 where all scores move the same way between neighbours, as counts do where a row
        comes or goes, else 0
    adjacency : whom it protects; with `monotonic` one row, added or removed, unless it is all rows
        of a user
    """
    epsilon = _range(scale, sensitivity, monotonic, adjacency)
    return BoundedRange(epsilon=epsilon, scale=scale, adjacency=_whom(monotonic, adjacency))


def noisy_max(
    *, scale: Real, sensitivity: Real = 1, monotonic: Real = 0, adjacency: Adjacency | None = None
) -> PureSelection:
    """What is proven of returning which score with Laplace noise is largest: pure ε₀.

    Parameters
    ----------
    scale : b > 0 of the Laplace noise, which is drawn anew for each score
    sensitivity, monotonic, adjacency : as for `exponential_mechanism`
    """
    epsilon = _range(scale, sensitivity, monotonic, adjacency)
    return PureSelection(epsilon=epsilon, scale=scale, adjacency=_whom(monotonic, adjacency))


def permute_and_flip(
    *, scale: Real, sensitivity: Real = 1, monotonic: Real = 0, adjacency: Adjacency | None = None
) -> PureSelection:
    """What is proven of permute-and-flip, or of the largest score with exponential noise: pure ε₀.

    Parameters
    ----------
    scale : s > 0: a candidate that falls short of the best by x is taken with probability e^(−x/s)
    sensitivity, monotonic, adjacency : as for `exponential_mechanism`
    """
    return noisy_max(scale=scale, sensitivity=sensitivity, monotonic=monotonic, adjacency=adjacency)


def sparse_vector(
    *,
    scale: Real,
    threshold_scale: Real,
    cutoff: Real = 1,
    sensitivity: Real = 1,
    monotonic: Real = 0,
    adjacency: Adjacency | None = None,
) -> PureSelection:
    """What is proven of the sparse vector technique, which shows what is above and no score: pure.

    Parameters
    ----------
    scale : b₂ > 0 of the Laplace noise on each score
    threshold_scale : b₁ > 0 of the Laplace noise on the threshold, drawn once
    cutoff : c, after how many scores above the threshold it ends
    sensitivity, monotonic, adjacency : as for `exponential_mechanism`
    """
    size = positive_rational("sensitivity", sensitivity)
    first = size / positive_rational("threshold_scale", threshold_scale)
    epsilon = first + count("cutoff", cutoff) * _range(scale, size, monotonic, adjacency)
    return PureSelection(epsilon=epsilon, scale=scale, adjacency=_whom(monotonic, adjacency))


def _whom(monotonic: Real, adjacency: Adjacency | None) -> Adjacency | None:
    return adjacency or (AddRemove() if monotonic else None)


def _range(
    scale: Real, sensitivity: Real, monotonic: Real, adjacency: Adjacency | None
) -> Fraction:
    require(monotonic in (0, 1), "monotonic", monotonic, "0 or 1")
    one_way = isinstance(adjacency, AddRemove) and adjacency.k == 1
    if monotonic and isinstance(adjacency, _KNOWN) and not one_way:
        hint = "Where a row is replaced, one count rises and another falls: leave monotonic out."
        rule = "one row or user, added or removed, where monotonic=1"
        raise ParameterError("adjacency", adjacency.unit, rule, hint)
    ways = 1 if monotonic else 2
    size = positive_rational("sensitivity", sensitivity)
    return ways * size / positive_rational("scale", scale)
