"""The answers of n users by one local randomizer, after a shuffler forgot who sent which.

Let R be ε₀-differentially private for any two values that a user may have, e = e^(−ε₀), and let one
user's value x be replaced by x′. The others' values are arbitrary.

**Two laws are left.** With P = R(x) and P′ = R(x′), the laws Q = (P − eP′)/(1 − e) and
Q′ = (P′ − eP)/(1 − e) are of no negative weight, and

    P = (Q + eQ′)/(1 + e),    P′ = (eQ + Q′)/(1 + e),    P + P′ = Q + Q′

(Kairouz, Oh and Viswanath 2015, arXiv:1311.0776v4, theorem 3.1). Assume that for all values v

    R(v) ≥ (ρ/2)·(Q + Q′).                                                                       (1)

Then draw another user's answer by first drawing a token: with probabilities ρ/2 each a 1 or a 2,
for which he answers by Q or Q′, and else by what is left of R(v). The user in question draws 1 or 2
with probabilities 1/(1 + e) and e/(1 + e), or exchanged. All users with a token answer by the
token's law, whoever they are. So whoever knows the numbers of both tokens can simulate the shuffled
answers: he draws which of the *others* have none, all sets of their size being equally likely under
both laws, draws as many answers of Q and Q′ as there are tokens, and shuffles. Therefore the pair
of laws of both numbers dominates, and its products dominate what is released again and again; it is
that of `ShuffledLoss`, its own mirror image.

**Any randomizer: ρ = e.** R(v) ≥ e·P and R(v) ≥ e·P′, hence R(v) ≥ (e/2)(P + P′), which is (1):
Feldman, McMillan and Talwar 2021 (arXiv:2012.12803), theorem 3.1, for a randomizer that is one for
all users.

**Randomized response: ρ = 2e/(1 + e).** With k the probability to report the true value, and o = ek
that of any particular other one: where x is reported, P + P′ = k + o = (1 + e)k, and R(v) ≥ ek
there; where x′ is, likewise; and where neither is, P + P′ = 2·R(v) or less, and 2e/(1 + e) ≤ 1. So
(1) holds. It is the pair of Feldman, McMillan and Talwar 2023 (arXiv:2208.04591), theorem 3.2.
Their errata withdraw it for randomizers at large, where part of R(x) and R(x′) agrees: the others
may give that part e times as often, and (1) fails. Here it isn't used for them.

**Never worse than without a shuffler**, which only processes what the user sent: δ(ε) is at most
the randomizer's own, and the curve is the lesser one of both.

It is a bound: the others' answers hide more than the tokens among them, so that its enclosures are
of the bound and not of what an attacker can reach.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrs import evolve, field, frozen
from flint import arb, ctx

from dpverify.accounting.curves._by_tails import delta_by_tails, epsilon_by_tails
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.curves.without_replacement import replacing_one
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.shuffled import MAX_USERS, ShuffledLoss
from dpverify.data.adjacency import Adjacency, Replace
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import to_count

__all__ = ["Shuffled"]

_PRECISION = 64
_LARGEST = 2**10  # ε₀, above which no clone is expected of any number of users
_MOST_COMPOSED = 10_000  # users, of whom several releases take a few seconds


def _to_base(value: PrivacyCurve) -> PrivacyCurve:
    curve = replacing_one(
        value, "A user's answer may be any other user's: state the curve for replacing his value."
    )
    try:
        largest = curve.epsilon_at(0).upper
    except ParameterError:  # which says that delta has to be positive
        largest = math.inf
    hint = "Shuffling answers of a delta of their own isn't implemented."
    require(largest < math.inf, "curve", str(curve), "one with a finite epsilon at delta=0", hint)
    return curve


@frozen(kw_only=True)
class Shuffled(PrivacyCurve):
    """A proven bound for the shuffled answers of users who all answer by one local randomizer.

    Parameters
    ----------
    answer : the curve of one user's answer, of replacing his value by any other; of a largest loss
    users : n in [1, 2**30], who answer; each once, by the same randomizer

    Examples
    --------
    >>> import dpverify as dpv
    >>> polled = dpv.RandomizedResponse(keep=0.75).shuffled(users=10_000)
    >>> round(polled.epsilon_at(delta=1e-6).upper, 4)
    0.049
    """

    answer: PrivacyCurve = field(converter=_to_base)
    users: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        require(self.users <= MAX_USERS, "users", self.users, f"at most {MAX_USERS}")

    @property
    def adjacency(self) -> Adjacency:
        """One user's value replaced."""
        return self.answer.adjacency or Replace()

    def __str__(self) -> str:
        return f"Shuffled(answer={self.answer}, users={self.users})"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13, or as wide as that of one answer."""
        alone, loss = self.answer.delta_at(epsilon), self._loss()
        return alone if loss is None else _least(alone, delta_by_tails(loss, epsilon))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); that of one answer where δ is 0."""
        alone, loss = self.answer.epsilon_at(delta), self._loss()
        return alone if loss is None else _least(alone, epsilon_by_tails(loss, delta))

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """Rates of the tokens' test, or of one answer's where that is the better bound.

        With `noise` the randomized response behind the tokens has ε₀/noise.
        """
        loss, epsilon = self._loss(), Fraction(max(threshold, 0.0))
        alone = self.answer.delta_at(epsilon)
        if loss is None or alone.upper < delta_by_tails(loss, epsilon).lower:
            return self.answer.rates(threshold, noise=noise)
        claimed, real = float(loss.epsilon), min(float(loss.epsilon) / noise, float(_LARGEST))
        if abs(threshold) > claimed:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        with ctx.workprec(_PRECISION + math.ceil(3 * max(real, claimed))):  # 1 − tanh is e^−ε₀
            own, other, at = ((arb(x) / 2).tanh() for x in (real, claimed, threshold))
            place = 2 * (at * own / other).atanh().mid()
            own, other = evolve(loss, epsilon=real).tails(place)
            return float(own), float(other)

    def losses(self) -> Losses:
        """The loss of the two laws of tokens, for composition.

        Raises
        ------
        ParameterError
            If there are more than 10,000 users.
        """
        loss = self._loss()
        if loss is None:
            return self.answer.losses()
        hint = "Compose an ApproxDP of one of its points instead."
        most = f"at most {_MOST_COMPOSED} for releases that are added up"
        require(self.users <= _MOST_COMPOSED, "users", self.users, most, hint)
        return ((loss, 1),)

    def _loss(self) -> ShuffledLoss | None:
        """Of the answers' ε₀, rounded upwards; None where there are no tokens to speak of."""
        largest = self.answer.epsilon_at(0).upper
        if not 0 < largest <= _LARGEST or self.users == 1:
            return None
        response = isinstance(self.answer, RandomizedResponse) and self.answer.positions == 1
        return ShuffledLoss(epsilon=Fraction(largest), users=self.users, response=response)


def _least(one: Enclosure, other: Enclosure) -> Enclosure:
    return Enclosure(min(one.lower, other.lower), min(one.upper, other.upper))
