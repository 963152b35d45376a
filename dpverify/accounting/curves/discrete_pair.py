"""Two laws on finitely many outputs: a privacy curve from their probabilities.

Where the probabilities are exact, so is the curve: δ(ε) = Σ (p − e^ε q)₊, the larger one of both
orders. Where each is only known to be within a relative η of what is given, take a = (1 − η)·p and
b = (1 − η)·q, which are at most the true ones. The true p is a, and a rest of mass 1 − Σa that
nobody knows; so it is a post-processing of a law that shows which of the two it was, and whose rest
the other side never gives. Hence the pair

    (a₁, …, aₙ, 1 − Σa, 0)  and  (b₁, …, bₙ, 0, 1 − Σb)

dominates the true one, whatever that is, and may be composed in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import DominatingLoss, FiniteLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real, enclose, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import rationals, to_rational

__all__ = ["DiscretePair"]

Masses = tuple[Fraction, ...]
_FARTHEST = Fraction(2**60)  # no ratio of numbers that a machine can hold is as large as e to that
_PRECISION = 256


def _to_masses(values: Iterable[Real]) -> Masses:
    masses = rationals("probability", values)
    require(bool(masses), "probabilities", masses, "not empty")
    for mass in masses:
        require(0 <= mass <= 1, "probability", mass, "in [0, 1]")
    return masses


@frozen(kw_only=True)
class DiscretePair(PrivacyCurve):
    """Curve of a pair of laws that dominates all neighbours, by their probabilities.

    Releases are composed in one order of the pair, p against q in all of them or q against p in
    all. So the same neighbour has to be behind p in every release: the data with the record, as it
    is beside releases on samples. Where it may be p in one release and q in the next, the curve of
    several releases may be too low; state a pair that dominates both orders.

    Parameters
    ----------
    p, q : probabilities of the same outputs under the two neighbours, in the same order
    error : η ≥ 0, the relative error that each of them may have; 0 for exact ones, which sum to 1.
        With an error the curve is an upper bound, which charges (about) η to δ for each release
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> from dpverify.accounting.curves.discrete_pair import DiscretePair
    >>> answers = DiscretePair(p=["0.75", "0.25"], q=["0.25", "0.75"])
    >>> round((10 * answers).epsilon_at(delta="1e-3").upper, 4)
    10.9682
    >>> computed = DiscretePair(p=[0.7, 0.2, 0.1], q=[0.1, 0.2, 0.7], error=1e-15)
    >>> round(computed.epsilon_at(delta=1e-6).upper, 4)
    1.9459
    """

    p: Masses = field(converter=_to_masses)
    q: Masses = field(converter=_to_masses)
    error: Fraction = field(default=Fraction(0), converter=to_rational)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        require(0 <= self.error < 1, "error", self.error, "in [0, 1)")
        sizes = f"{len(self.p)} and {len(self.q)}"
        require(len(self.p) == len(self.q), "p and q", sizes, "of the same number of outputs")
        for name, masses in (("p", self.p), ("q", self.q)):
            total = sum(masses, Fraction(0))
            shown = 1 if total == 1 else f"1{float(total - 1):+.3g}"
            if not self.error:
                hint = "Of doubles say how far each may be off: error=1e-15."
                require(total == 1, f"sum of {name}", shown, "exactly 1", hint)
            least, most = total * (1 - self.error), total * (1 + self.error)
            require(least <= 1 <= most, f"sum of {name}", shown, "1 within the error")
        _ = self._loss  # which refuses laws that have no output in common

    @property
    def pairs(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Exact probabilities of a pair that dominates: the pair itself, without an error."""
        kept = 1 - self.error
        known = [(kept * p, kept * q) for p, q in zip(self.p, self.q, strict=True)]
        rests = [1 - sum(side, Fraction(0)) for side in zip(*known, strict=True)]
        zero = Fraction(0)
        return (*known, (rests[0], zero), (zero, rests[1]))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), exactly at ε = 0."""
        if epsilon == 0:
            excess = (max(p - q, Fraction(0)) for p, q in self.pairs)
            return Enclosure.of_exact(sum(excess, Fraction(0)))

        def value() -> arb:
            factor, zero = to_arb(min(epsilon, _FARTHEST)).exp(), arb(0)
            sums = [zero, zero]
            for pair in self.pairs:
                for side, (own, other) in enumerate((pair, pair[::-1])):
                    sums[side] += (to_arb(own) - factor * to_arb(other)).max(zero)
            return sums[0].max(sums[1])

        with ctx.workprec(_PRECISION):
            found = Enclosure.of_ball(value())
        return Enclosure(max(found.lower, 0.0), min(found.upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ): tests take outputs by falling ratio, and each says what it needs."""
        ratio = Fraction(1)
        for pairs in (self._loss.pairs, self._loss.reverse().pairs):
            own = other = Fraction(0)
            for p, q in sorted(pairs, key=lambda pair: pair[0] / (pair[0] + pair[1]), reverse=True):
                own, other = own + p, other + q
                if own > delta:
                    if other == 0:
                        return Enclosure(math.inf, math.inf)
                    ratio = max(ratio, (own - delta) / other)
        return enclose(lambda: to_arb(ratio).log())

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; the logarithms of the odds are divided by `noise`."""
        table = np.array([(float(p), float(q)) for p, q in self._loss.pairs])
        both = table[(table > 0).all(axis=1)]
        losses = np.log(both[:, 0] / both[:, 1])
        middle = np.sqrt(both.prod(axis=1))
        chosen, found = losses >= threshold, []
        for side, sign in ((0, 0.5), (1, -0.5)):
            exponents = sign * losses / noise
            weights = middle * np.exp(exponents - exponents.max(initial=-math.inf))
            alone = table[table[:, 1 - side] == 0, side].sum() if side == 0 else 0.0
            share = weights[chosen].sum() / weights.sum() * both[:, side].sum()
            found.append(float(alone + share))
        return found[0], found[1]

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((self._loss, 1),)

    @property
    def _loss(self) -> FiniteLoss:
        return (DominatingLoss if self.error else FiniteLoss)(pairs=self.pairs)
