"""Randomized response: privacy loss on a lattice, hence exact curves.

A coordinate reports its true value with probability k (`keep`) and each particular other value with
probability o (`other`), k ≥ o > 0. Where two records differ in it, the loss is +s, −s or 0 with
s = ln(k/o), with probabilities k, o and 1 − k − o (a third value is reported). Over m independent
differing coordinates the loss is J·s, with

    P[J = m − i] = [xⁱ] f,     f = (k + (1 − k − o)x + o x²)^m,     P[J = −j] = (o/k)^j P[J = j].

From f′·(k + (1 − k − o)x + o x²) = m(1 − k − o + 2ox)·f the coefficients obey

    (i + 1)·k·c₍ᵢ₊₁₎ = (m − i)(1 − k − o)·cᵢ + (2m − i + 1)·o·c₍ᵢ₋₁₎,

whose terms are all non-negative for i ≤ m: upwards from c₀ = k^m no digit is lost, however small
the coefficient. `steps` makes the curve of the tails A(j) = P[J ≥ j] and B(j) = P[J ≤ −j], the
other side's probability of J ≥ j.

**Fewer coordinates, fairer coins.** One coordinate less is a post-processing, so δ rises with m. So
is a fairer coin (k lowered, o = (1 − k)/(B − 1)): report the outcome through a second randomized
response. Hence δ rises with k as well, and a bisection for k is legitimate.

**Mixtures.** If each of m positions differs with probability d by public randomness that is
revealed, δ(ε) = Σₙ P[N = n]·δₙ(ε) with N ~ Bin(m, d). Being an expectation over the loss alone, and
the loss being a sum of m independent steps +s, −s, 0 with probabilities dk, do and the rest, it is
the curve above with dk and do in the place of k and o. It rises with d: draw N ≤ N′ together from
m common uniform numbers; δₙ rises with n.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.curves._steps import step_delta, step_epsilon
from dpverify.accounting.losses.base import Log, Losses, transforms
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.accounting.solve import bisected
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real, enclose, floor_of, rational, short_string, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, group_adjacency, to_adjacency
from dpverify.numbers import COIN, count, to_count, to_rational, whole

__all__ = [
    "MAX_KEEP",
    "MAX_POSITIONS",
    "MixedResponse",
    "RandomizedResponse",
    "keep_probability",
    "keep_probability_curve",
    "max_differing",
]

MAX_KEEP = 1 - Fraction(1, 2**40)
"""Coins are never more honest than this, so that no probability comes near underflow."""

MAX_POSITIONS = 2**20
"""Of a curve: its balls take 2.8 KB for each, with those of its last eight questions."""


@frozen(kw_only=True)
class RandomizedResponse(PrivacyCurve):
    """Exact curve of `positions` independent answers that all differ.

    Parameters
    ----------
    keep : probability k of reporting the true value
    other : probability o of reporting one particular other value, 0 < o ≤ k and k + o ≤ 1; by
        default 1 − k, that of two values
    positions : m in [1, 2**20], how many answers differ
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> round(dpv.RandomizedResponse(keep=0.75).epsilon_at(delta=0).upper, 6)
    1.098612
    >>> f"{dpv.RandomizedResponse(keep=0.75, positions=64).epsilon_at(delta=1e-6):.4f}"
    '65.4866'
    """

    statements: ClassVar[tuple[str, ...]] = ("kenthapadi2013.lemma-3",)

    keep: Fraction = field(converter=to_rational)
    other: Fraction = field(converter=to_rational)
    positions: int = field(default=1, converter=to_count)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    @other.default
    def _(self) -> Fraction:
        return 1 - self.keep

    def __attrs_post_init__(self) -> None:
        require(0 < self.keep <= 1, "keep", self.keep, "in (0, 1)")
        keep, other = short_string(self.keep), short_string(self.other)
        require(0 < self.other <= self.keep, "other", other, f"in (0, keep={keep}]")
        require(self.keep + self.other <= 1, "keep", keep, f"at most 1 - {other}")
        most = MAX_POSITIONS
        require(self.positions <= most, "positions", self.positions, f"at most {most}")

    @classmethod
    def of_values(cls, values: Real, *, keep: Real, positions: Real = 1) -> Self:
        """The curve of answers with `values` values, the untrue ones equally likely."""
        count, kept = whole("values", values), rational("keep", keep)
        require(2 <= count <= COIN, "values", values, "from 2 to 2**64")
        require(Fraction(1, count) <= kept < 1, "keep", keep, f"in [1/{count}, 1)")
        return cls(keep=kept, other=(1 - kept) / (count - 1), positions=positions)

    def loss(self) -> Enclosure:
        """Encloses s = ln(keep/other), the loss of one coordinate that reports its true value."""
        if self.keep == self.other:
            return Enclosure(0.0, 0.0)
        return enclose(self._loss)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13 while δ is a normal double.

        Exactly 0 from ε = m·s on.
        """
        return step_delta(epsilon, step=self.loss(), reach=self._reach, tails=self._tails)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); m·s where δ is 0."""
        return step_epsilon(delta, reach=self._reach, tails=self._tails)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; the coins' log-odds are divided by `noise`.

        A lattice point j·s counts where the double j·s reaches the threshold, with s the upper end
        of `loss`: an audit that scores outputs by the same product has no ties to break.
        """
        return _rates(self, 1.0, threshold, noise)

    def group(self, size: int) -> RandomizedResponse:
        """So many times as many answers: exact where so many can differ."""
        return RandomizedResponse(
            keep=self.keep,
            other=self.other,
            positions=count("size", size) * self.positions,
            adjacency=group_adjacency(self.adjacency, size),
        )

    def losses(self) -> Losses:
        """The privacy losses of the coordinates, for composition."""
        if self.keep == self.other:
            return ((FiniteLoss(pairs=((Fraction(1), Fraction(1)),)), 1),)
        loss = ResponseLoss(step=Log(self.keep / self.other), share=self.keep + self.other)
        return ((loss, self.positions),)

    @property
    def _reach(self) -> int:
        return 0 if self.keep == self.other else self.positions

    def _loss(self) -> arb:
        return (to_arb(self.keep) / to_arb(self.other)).log()

    def _tails(self) -> tuple[list[arb], list[arb]]:
        return _tails(self.keep, self.other, self.positions, ctx.prec)


def _to_share(value: Real | Enclosure) -> Fraction | Enclosure:
    return value if isinstance(value, Enclosure) else rational("differ", value)


@frozen(kw_only=True)
class MixedResponse(PrivacyCurve):
    """Curve where each position differs with probability `differ`, by revealed public randomness.

    Parameters
    ----------
    keep, other, positions : as in `RandomizedResponse`
    differ : probability that a position differs, in (0, 1]; of an enclosure both ends are used,
        so that δ and ε are enclosed for every value in it
    """

    keep: Fraction = field(converter=to_rational)
    other: Fraction = field(converter=to_rational)
    positions: int = field(converter=to_count)
    differ: Fraction | Enclosure = field(converter=_to_share)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        least, most = _ends(self.differ)
        require(least >= 0 and 0 < most <= 1, "differ", self.differ, "in (0, 1]")
        self._curve(most)  # refuses wrong coins

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε) for every probability in `differ`."""
        least, most = _ends(self.differ)
        upper = self._curve(most).delta_at(epsilon)
        if least == most:
            return upper
        return Enclosure(self._curve(least).delta_at(epsilon).lower if least else 0.0, upper.upper)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ), for every probability in `differ`."""
        least, most = _ends(self.differ)
        upper = self._curve(most).epsilon_at(delta)
        if least == most:
            return upper
        return Enclosure(self._curve(least).epsilon_at(delta).lower if least else 0.0, upper.upper)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, at the upper end of `differ`; see the unmixed curve."""
        coin = RandomizedResponse(keep=self.keep, other=self.other, positions=self.positions)
        return _rates(coin, float(_ends(self.differ)[1]), threshold, noise)

    def losses(self) -> Losses:
        """The privacy losses of the positions at the upper end of `differ`, which dominate.

        For a draw of its own; releases that share one combine `position_loss`.
        """
        return self._curve(_ends(self.differ)[1]).losses()

    def position_loss(self) -> tuple[PositionLoss, int]:
        """The privacy loss of one position with the draw kept apart, and how many there are."""
        coin = RandomizedResponse(keep=self.keep, other=self.other, positions=1)
        losses = transforms(coin.losses()) or ()
        loss = PositionLoss(differ=_ends(self.differ)[1], losses=losses)
        return loss, self.positions

    def _curve(self, differ: Fraction) -> RandomizedResponse:
        return RandomizedResponse(
            keep=self.keep * differ, other=self.other * differ, positions=self.positions
        )


def keep_probability(epsilon: Fraction, *, positions: int = 1, values: int = 2) -> Fraction:
    """Largest k = n/2⁶⁴ with which `positions` differing coordinates lose at most ε in all.

    With o = (1 − k)/(values − 1), m·ln(k/o) ≤ ε is k ≤ e^(ε/m)/(e^(ε/m) + values − 1), which is
    irrational unless ε is 0, so that ball arithmetic finds its digits. k is at most `MAX_KEEP`.

    Raises
    ------
    ParameterError
        If a value is outside its domain, or no such k is at least 1/values: ε is then below the
        resolution of the coins.
    """
    return _coin(_pure_parts(epsilon, positions, values), values)


def _pure_parts(epsilon: Fraction, positions: int, values: int) -> int:
    """The largest n, which may be below 2⁶⁴/values."""
    eps = rational("epsilon", epsilon)
    require(eps >= 0, "epsilon", epsilon, "at least 0")
    require(positions >= 1, "positions", positions, "at least 1")
    require(values >= 2, "values", values, "at least 2")
    if eps == 0:
        return COIN // values

    def parts() -> arb:  # digits so near 1 that they would stay open are cut off
        kept = 1 / (1 + (values - 1) * (-to_arb(eps) / positions).exp())
        return kept.min(to_arb(MAX_KEEP)) * COIN

    return floor_of(parts)


def keep_probability_curve(
    epsilon: Fraction,
    delta: Fraction,
    *,
    positions: int,
    values: int = 2,
    differ: Fraction | Enclosure = Fraction(1),
) -> Fraction:
    """Largest k = n/2⁶⁴ with which δ(ε) ≤ delta is proven for `positions` coordinates.

    By bisection, since δ(ε) rises with k; the proof is the upper end of `delta_at`. All coordinates
    differ, or each with the probability `differ` by revealed public randomness: then few do, and a
    single one may lose more than ε. k is at most `MAX_KEEP`. See `keep_probability` for what is
    refused, unless the least coin above 1/values has δ(ε) ≤ delta.
    """
    target = rational("delta", delta)
    require(0 <= target < 1, "delta", delta, "in [0, 1)")
    pure = _pure_parts(epsilon, positions, values)
    if target == 0:
        return _coin(pure, values)
    return _bisected(pure, rational("epsilon", epsilon), target, positions, values, differ)


@lru_cache(maxsize=64)  # the same for every seed of a projection
def _bisected(
    pure: int,
    epsilon: Fraction,
    delta: Fraction,
    positions: int,
    values: int,
    differ: Fraction | Enclosure,
) -> Fraction:
    def holds(parts: int) -> bool:
        keep = Fraction(parts, COIN)
        other = (1 - keep) / (values - 1)
        curve = MixedResponse(keep=keep, other=other, positions=positions, differ=differ)
        return Fraction(curve.delta_at(epsilon).upper) <= delta

    fair = -(-COIN // values)
    least = fair if pure < fair and holds(fair) else int(_coin(pure, values) * COIN)
    return Fraction(bisected(least, int(MAX_KEEP * COIN) + 1, holds), COIN)


def max_differing(positions: int, differ: Fraction | Enclosure, delta: Fraction) -> int:
    """Smallest N for which P[Bin(positions, differ) > N] ≤ delta is proven.

    The tail rises with `differ`, so an enclosure's upper end is used. The sum runs from its
    smallest term, P[all differ], in balls of 192 bits; a tie that they can't see costs one.
    """
    share = _ends(differ)[1]
    target = rational("delta", delta)
    require(positions >= 1, "positions", positions, "at least 1")
    require(0 <= share <= 1, "differ", differ, "in [0, 1]")
    require(0 <= target <= 1, "delta", delta, "in [0, 1]")
    if share in (0, 1):
        return positions if share and target < 1 else 0
    with ctx.workprec(_PROOF_PRECISION):
        odds, allowed = to_arb((1 - share) / share), to_arb(target)
        term = to_arb(share) ** positions
        tail = term
        for count in range(positions, 0, -1):  # tail is P[Bin ≥ count]
            if not tail <= allowed:
                return count
            term = term * count / (positions - count + 1) * odds
            tail += term
    return 0


_PROOF_PRECISION = 192


def _ends(differ: Fraction | Enclosure) -> tuple[Fraction, Fraction]:
    if isinstance(differ, Enclosure):
        return rational("differ", differ.lower), rational("differ", differ.upper)
    value = rational("differ", differ)
    return value, value


def _coin(parts: int, values: int) -> Fraction:
    keep = min(Fraction(parts, COIN), MAX_KEEP)
    if not keep * values >= 1:
        raise ParameterError(
            "epsilon",
            "0 or nearly",
            f"large enough for a coin of 64 bits to prefer one of {values} values",
        )
    return keep


@lru_cache(maxsize=8)
def _tails(
    keep: Fraction, other: Fraction, positions: int, precision: int
) -> tuple[list[arb], list[arb]]:
    """A(j) and B(j) for 0 ≤ j ≤ m, in balls of the given precision (the one in force)."""
    middle = to_arb((1 - keep - other) / keep)
    low = to_arb(other / keep)
    up = to_arb(keep / other)
    ratio = low**positions  # P[J = −j]/P[J = j]
    before, weight = arb(0), to_arb(keep) ** positions
    own, opposite = [weight], [weight * ratio]
    for i in range(positions):
        before, weight = (
            weight,
            ((positions - i) * middle * weight + (2 * positions - i + 1) * low * before) / (i + 1),
        )
        ratio *= up
        own.append(own[-1] + weight)
        opposite.append(opposite[-1] + weight * ratio)
    own.reverse()
    opposite.reverse()
    return own, opposite


def _rates(
    coin: RandomizedResponse, differ: float, threshold: float, noise: float
) -> tuple[float, float]:
    step = coin.loss().upper
    if step == 0:
        return (1.0, 1.0) if threshold <= 0 else (0.0, 0.0)
    least = math.ceil(max(min(threshold / step, coin.positions + 1), -coin.positions))
    while least <= coin.positions and least * step < threshold:
        least += 1
    while least > -coin.positions and (least - 1) * step >= threshold:
        least -= 1
    # The other values are as likely among themselves as before; their odds to `keep` change.
    others = float((1 - coin.keep) / coin.other)
    odds = math.exp(min(step / noise, 700.0))
    keep, other = odds / (odds + others), 1 / (odds + others)
    binary = differ == 1 and coin.keep + coin.other == 1
    share = 1.0 if binary else differ * (keep + other)
    return _at_least(least, coin.positions, share, odds / (1 + odds))


@lru_cache(maxsize=4096)
def _at_least(least: int, positions: int, share: float, odds: float) -> tuple[float, float]:
    """P[J ≥ least] on both sides: Bin(m, share) steps are not 0, each of them up with `odds`."""
    from scipy.stats import binom  # takes half a second, and no bound needs it

    steps = np.arange(positions + 1) if share < 1 else np.array([positions])
    weights = binom.pmf(steps, positions, share)
    ups = np.ceil((steps + least) / 2) - 1  # J = 2·ups − steps
    own, other = (float(weights @ binom.sf(ups, steps, p)) for p in (odds, 1 - odds))
    return min(own, 1.0), min(other, 1.0)
