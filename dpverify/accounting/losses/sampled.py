"""Privacy losses of releases on samples, by their tails.

Let ℓ be the loss of a release that reads the record, its own reverse, and q the probability that
the record is in the sample. `PoissonSampled` and `SampledWithoutReplacement` prove which pairs
dominate; here are their tails. With A(t) and B(t) the probabilities of ℓ ≥ t on both sides:

**A record removed**, by a coin: L = ln(1 − q + q·e^ℓ). So L ≥ x is ℓ ≥ t(x) = ln(1 + (e^x − 1)/q),
of probabilities (1 − q)·B + q·A and B, and certain where e^x ≤ 1 − q.

**Added**: −L on exchanged sides. L ≤ −x is ℓ ≤ t(−x), and ℓ ≤ t has the probabilities A(−t) on the
second side and B(−t) on the first one, since ℓ is its own reverse.

**A record replaced, without replacement**: what the removal's loss is above 0, its mirror image
below, and the rest of both sides at 0.

**A record replaced, by a coin**: one number z with noise of a symmetric density f that isn't moved
with probability 1 − q, and otherwise by a on one side and by −a on the other. Both sides' ratio

    ((1 − q)·f(z) + q·f(z − a))/((1 − q)·f(z) + q·f(z + a))

rises with z, so that L ≥ x is z ≥ z(x). Under normal noise with μ = a/σ and u = e^{μz/σ} the ratio
is e^x at the positive root of q·k·u² = (1 − q)(e^x − 1)·u + e^x·q·k, k = e^{−μ²/2}. Under Laplace
noise of scale 1 it is ((1 − q) + q·e^{2z − a})/((1 − q) + q·e^{−a}) for 0 ≤ z ≤ a, and stays there:
the largest loss is 2a at q = 1, a at q = ½, and an irrational number otherwise (Lindemann).
"""

from __future__ import annotations

from fractions import Fraction

from attrs import evolve, field, frozen
from flint import arb

from dpverify.accounting.losses.base import TailedLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.enclosure import number_string, to_arb
from dpverify.errors import require
from dpverify.numbers import to_rational

__all__ = ["BatchLoss", "ReplacedSampleLoss", "SampledLoss", "sampled_tails"]

_CERTAIN, _NEVER = (arb(1), arb(1)), (arb(0), arb(0))


def sampled_tails(base: TailedLoss, rate: Fraction, place: arb, *, added: bool) -> tuple[arb, arb]:
    """P[L ≥ place] and the same of q, for one record that a coin puts into the sample."""
    q = to_arb(rate)
    shift = (-place if added else place).expm1() / q
    if shift <= -1:
        return _NEVER if added else _CERTAIN
    own, other = base.tails(-shift.log1p() if added else shift.log1p())
    mixed = (1 - q) * other + q * own
    return (own, (1 - q) * own + q * other) if added else (mixed, other)


class _OnSample(TailedLoss):
    """What the losses of samples check."""

    __slots__ = ()

    base: TailedLoss
    rate: Fraction

    @property
    def is_law(self) -> bool:
        """Whether that of the base is."""
        return self.base.is_law

    def __attrs_post_init__(self) -> None:
        require(0 < self.rate <= 1, "rate", self.rate, "in (0, 1]")
        require(
            self.base == self.base.reverse(),
            "base",
            self.base,
            "a loss that is the same in both orders",
        )


@frozen(kw_only=True)
class SampledLoss(_OnSample):
    """The loss of a release on a Poisson sample, for one record that is removed or added.

    Parameters
    ----------
    base : loss of the release where it reads the record, its own reverse
    rate : q in (0, 1], exact
    added : whether the record is added, and the first law the one without it
    """

    base: TailedLoss
    rate: Fraction = field(converter=to_rational)
    added: bool = False

    def __str__(self) -> str:
        order = ", reversed" if self.added else ""
        return f"{self.base}.poisson_sampled(rate={number_string(self.rate)}){order}"

    @property
    def infinity_mass(self) -> Fraction:
        """That of the base, in the sample; what shows the record's absence shows nothing more."""
        return Fraction(0) if self.added else self.rate * self.base.infinity_mass

    def max_loss(self) -> arb | None:
        """That of the base on the sample; −ln(1 − q) at most where the record is added."""
        most, q = self.base.max_loss(), to_arb(self.rate)
        if self.added:
            rest = arb(0) if most is None or self.base.infinity_mass else q * (-most).exp()
            return -(1 - q + rest).log() if 1 - q + rest > 0 else None
        return None if most is None else (1 - q + q * most.exp()).log()

    def tails(self, place: arb) -> tuple[arb, arb]:
        """From those of the base."""
        return sampled_tails(self.base, self.rate, place, added=self.added)

    def reverse(self) -> SampledLoss:
        """Removed for added."""
        return evolve(self, added=not self.added)


@frozen(kw_only=True)
class BatchLoss(_OnSample):
    """The loss of a release on a batch of a fixed size, for one record that is replaced.

    Parameters
    ----------
    base : loss of the release where one record of the batch is replaced, its own reverse
    rate : q in (0, 1], size of the batch over the number of records; exact
    """

    base: TailedLoss
    rate: Fraction = field(converter=to_rational)

    def __str__(self) -> str:
        size, out_of = self.rate.as_integer_ratio()
        return f"{self.base}.sampled_without_replacement(size={size}, out_of={out_of})"

    @property
    def infinity_mass(self) -> Fraction:
        """That of the base, in the sample."""
        return self.rate * self.base.infinity_mass

    def max_loss(self) -> arb | None:
        """The removal's."""
        return SampledLoss(base=self.base, rate=self.rate).max_loss()

    def tails(self, place: arb) -> tuple[arb, arb]:
        """The removal's above 0; below, those of its reverse, which is its mirror image."""
        return sampled_tails(self.base, self.rate, place, added=not place > 0)


@frozen(kw_only=True)
class ReplacedSampleLoss(_OnSample):
    """The loss of one noisy number on a Poisson sample, for one record that is replaced.

    Parameters
    ----------
    base : loss of the noise where a record is added
    rate : q in (0, 1], exact
    """

    base: GaussianLoss | LaplaceLoss
    rate: Fraction = field(converter=to_rational)

    def __str__(self) -> str:
        return f"{self.base}.poisson_sampled(rate={number_string(self.rate)}, replaced=True)"

    def max_loss(self) -> arb | None:
        """That beyond both moved centres, under Laplace noise."""
        if isinstance(self.base, GaussianLoss):
            return None
        q, a = to_arb(self.rate), to_arb(self.base.shift)
        if self.rate in {1, Fraction(1, 2)}:
            return 2 * q * a
        return (1 + q * (a.exp() - (-a).exp()) / (1 - q + q * (-a).exp())).log()

    def tails(self, place: arb) -> tuple[arb, arb]:
        """Those of {z ≥ z(x)}, on both sides."""
        most = self.max_loss()
        if most is not None and place <= -most:
            return _CERTAIN
        if most is not None and place > most:
            return _NEVER
        own, other = self.above(self.boundary(place))
        if most is None or -most < place <= most:
            return own, other
        zero, one = _NEVER[0], _CERTAIN[0]  # next to a jump, which side of it stays open
        return own.union(zero).union(one), other.union(zero).union(one)

    def boundary(self, place: arb) -> arb:
        """z(x), in units of the noise, for a loss x that is possible."""
        q, reach = to_arb(self.rate), abs(place)
        if isinstance(self.base, GaussianLoss):
            square = to_arb(self.base.mu_squared)
            k = (-square / 2).exp()
            middle = (1 - q) * reach.expm1()
            root = (middle + (middle**2 + 4 * reach.exp() * (q * k) ** 2).sqrt()) / (2 * q * k)
            found = root.log() / square.sqrt()
        else:
            a = to_arb(self.base.shift)
            found = (reach.expm1() * (1 - q + q * (-a).exp()) / q + (-a).exp()).log() / 2 + a / 2
        return -found if place < 0 else found

    def above(self, z: arb, noise: float = 1.0) -> tuple[arb, arb]:
        """Probabilities of more than z on both sides, with the noise scaled by a factor."""
        q, base = to_arb(self.rate), self.base
        normal = isinstance(base, GaussianLoss)
        a = to_arb(base.mu_squared).sqrt() if isinstance(base, GaussianLoss) else to_arb(base.shift)

        def beyond(x: arb) -> arb:
            if normal:
                return (x / noise / arb(2).sqrt()).erfc() / 2
            near = 1 - (-abs(x / noise)).exp() / 2
            return 1 - near if x > 0 else near if x <= 0 else near.union(1 - near)

        rest = (1 - q) * beyond(z)
        return rest + q * beyond(z - a), rest + q * beyond(z + a)
