"""The privacy loss of one answer among shuffled ones: two counts, by which a pair of laws differs.

Of n users, n − 1 leave C ~ Bin(n − 1, ρ) tokens, each of kind 1 or 2 by a fair coin. The last one
leaves a token 1 with probability 1/(1 + e), e = e^(−ε₀), and else a token 2; under the other law he
does the opposite. Let a of the m = C + 1 tokens be of kind 1. As C(c, a − 1) = C(m, a)·a/m, the
ratio of the laws is

    (a + e(m − a))/(ea + m − a),

which rises with a, and is e^x where a = θm with θ = (1 + tanh(x/2)/tanh(ε₀/2))/2. So L ≥ x says
that a ≥ k = ⌈θm⌉: that the last user's token 1 is joined by k − 1 others, or his token 2 by k. With
b(c, j) and T(c, j) for the probabilities of j, and of at least j, heads of c fair coins,

    P[L ≥ x] = S + R/(1 + e),    Q[L ≥ x] = S + R·e/(1 + e),
    R = Σ_c P[C = c]·b(c, k − 1),    S = Σ_c P[C = c]·T(c, k).

**One term from the next.** For x ≥ 0, k stays or falls by one from c to c − 1, since 1/2 ≤ θ ≤ 1.
With h = b(c, k − 1)·(c − k + 1)/c, which is b(c − 1, k − 1)/2,

    T(c − 1, k) = T(c, k) − h,        b(c − 1, k − 1) = 2h,
    T(c − 1, k − 1) = T(c, k) + h,    b(c − 1, k − 2) = b(c, k − 1)·2(k − 1)/c.

For x < 0 the tails are 1 less those of the opposite side beyond −x.

**What is left out.** For any z ≥ 1, as k − 1 ≥ θ(c + 1) − 1, Markov's inequality for z^heads gives

    b(c, k − 1) + T(c, k) = T(c, k − 1) ≤ z^(1 − θ)·v^c,    v = z^(−θ)·(1 + z)/2.

So what lies beyond a c is less than z^(1 − θ) times the same part of Σ_c P[C = c]·v^c, which falls
at least geometrically from its largest term on: below r/(1 − r) times the last term that was kept,
with r its ratio to that. z = θ/(1 − θ) is the best one.

**Ties.** Where a ball for θm holds a whole number j, k is j or j + 1: of both sums at most b(c, j)
is open, and b(c, j) ≤ b(c, j − 1) since j ≥ m/2. A tie is at x = 0, where θ = 1/2 is known exactly,
and at no other rational x between −ε₀ and ε₀ (Lindemann and Weierstrass), so that precision ends
it, and "from x on" is the same as "beyond x" there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Doubles, TailedLoss
from dpverify.enclosure import number_string, rational_of, to_arb
from dpverify.errors import require
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["MAX_USERS", "Atoms", "ShuffledLoss"]

MAX_USERS = 2**30
"""Twice the time for four times as many: δ of a million takes 50 ms, of so many about 2 s."""

_STEEPEST = 2.0**40  # z, where θ is near 1
_PRECISION = 128  # of what all atoms of a row have in common
_U, _NORMAL, _LEAST = 2.0**-53, 2.0**-1021, 2.0**-1072


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atoms:
    """Weights of the first law.

    Attributes
    ----------
    weights, places : of each atom, by rising places
    relative, shift : what weights, and places, are off by
    outside : bound on the mass of all other atoms
    """

    weights: Doubles
    places: Doubles
    relative: float
    shift: float
    outside: float


@frozen(kw_only=True)
class ShuffledLoss(TailedLoss):
    """The loss of one answer among those of other users, by its pair of laws of tokens.

    Parameters
    ----------
    epsilon : ε₀ > 0 of each answer, exact
    users : n in [1, 2**30], the last one included
    response : whether ρ is 2e/(1 + e), that of randomized response; by default it is e
    """

    epsilon: Fraction = field(converter=to_positive_rational)
    users: int = field(converter=to_count)
    response: bool = False

    def __attrs_post_init__(self) -> None:
        require(self.users <= MAX_USERS, "users", self.users, f"at most {MAX_USERS}")

    def __str__(self) -> str:
        kind = ", response=True" if self.response else ""
        return f"Shuffled(epsilon={number_string(self.epsilon)}, users={self.users}{kind})"

    def max_loss(self) -> arb:
        """ε₀, where all tokens are of kind 1."""
        return to_arb(self.epsilon)

    def tails(self, place: arb) -> tuple[arb, arb]:
        """By the sums of the module's docstring."""
        epsilon = to_arb(self.epsilon)
        if place <= -epsilon:
            return arb(1), arb(1)
        if place > epsilon:
            return arb(0), arb(0)
        if place < 0:
            own, other = self._from(-place)
            return 1 - other, 1 - own
        return self._from(place)

    def atoms_in_doubles(self, log_rest: float) -> Atoms:
        """All atoms but for a mass of about e^`log_rest`."""
        with ctx.workprec(_PRECISION):
            return self._atoms(math.log(8) - log_rest)

    def _atoms(self, sought: float) -> Atoms:
        others, epsilon = self.users - 1, to_arb(self.epsilon)
        odds, fall = (2 if self.response else 1) / epsilon.expm1(), (-epsilon).exp()
        e = float(fall.mid())
        first, last = _kept(others, float(odds / (1 + odds)), sought)
        rows, logs, small = [], [], 0.0
        for count in range(first, last + 1):
            chance = _binomial(others, count) * odds**count / (1 + odds) ** others
            tokens = count + 1
            reach = math.ceil(count / 2 + math.sqrt(count * sought / 2)) + 1
            middle = (tokens + 1) // 2
            a = np.arange(middle, min(reach, tokens) + 1)
            scale = 2 * chance * _binomial(tokens, middle) / arb(2) ** tokens / (1 + fall)
            ratios = np.concatenate([[float(scale.mid())], (tokens - a[:-1]) / a[1:]])
            half = np.cumprod(ratios)
            up, down = (a + e * (tokens - a)) / tokens, (e * a + (tokens - a)) / tokens
            loss, mirrored = np.log(up / down), a > tokens - a
            for weights, places, kept in (
                (half * up, loss, half >= _NORMAL),
                ((half * down)[mirrored], -loss[mirrored], half[mirrored] >= _NORMAL),
            ):
                known = kept & (weights >= _NORMAL)
                small += float(weights[~known].sum()) + tokens**2 * _LEAST * len(weights)
                rows.append(weights[known])
                logs.append(places[known])
        weights, places = np.concatenate(rows), np.concatenate(logs)
        order = np.argsort(places)
        return Atoms(
            weights=weights[order],
            places=places[order],
            relative=(2 * self.users + 16) * _U,
            shift=32 * _U * (1 + float(self.epsilon)),
            outside=(4 * math.exp(-sought) + small) * (1 + 2.0**-20),
        )

    def _from(self, place: arb) -> tuple[arb, arb]:
        """The tails from a place on that isn't negative, a tie there or not."""
        epsilon = to_arb(self.epsilon)
        share = (1 + (place / 2).tanh() / (epsilon / 2).tanh()) / 2
        joined, more = self._sums(share, (2 if self.response else 1) / epsilon.expm1())
        other = (-epsilon).exp()
        found = more + joined / (1 + other), more + joined * other / (1 + other)
        return found if place <= epsilon else (found[0].union(arb(0)), found[1].union(arb(0)))

    def _sums(self, share: arb, odds: arb) -> tuple[arb, arb]:
        """R and S, of the share θ of tokens and the odds ρ/(1 − ρ)."""
        others = self.users - 1
        steep = (share / (1 - share)).mid()
        if not steep < _STEEPEST:
            steep = arb(_STEEPEST)
        base = steep ** (-share) * (1 + steep) / 2
        tilted = odds * base  # P[C = c]·v^c is Bin(n − 1, ·) of these odds but for a constant
        first, last = _kept(others, float(tilted / (1 + tilted)), ctx.prec * math.log(2) + 10)

        low, high, scale = _scaled(share)
        weight = _binomial(others, last) * odds**last / (1 + odds) ** others
        needed = _needed(low, last, scale)
        heads = _binomial(last, needed - 1) / arb(2) ** last
        tail = _tail(heads, last, needed)
        outside = arb(0)
        if last < others:
            outside += weight * base**last * _rest(tilted * (others - last) / (last + 1))
        joined = more = undecided = arb(0)
        for count in range(last, first - 1, -1):
            part = weight * heads
            joined += part
            more += weight * tail
            if _needed(high, count, scale) != needed:
                undecided += part
            if count == first:
                break
            weight = weight * count / (others - count + 1) / odds
            half = heads * (count - needed + 1) / count
            if _needed(low, count - 1, scale) == needed:
                tail -= half
                heads = 2 * half
            else:
                tail += half
                heads = heads * (2 * needed - 2) / count
                needed -= 1
        if first:
            outside += weight * base**first * _rest(first / (others - first + 1) / tilted)
        left_out = (-undecided).union(steep ** (1 - share) * outside)
        return joined + left_out, more + left_out


def _kept(others: int, rate: float, sought: float) -> tuple[int, int]:
    """Which c to add up: Bernstein's inequality leaves out e^−sought on either side."""
    spread = others * rate * (1 - rate)
    reach = sought / 3 + math.sqrt(sought**2 / 9 + 2 * spread * sought)
    middle = others * rate
    return max(math.floor(middle - reach), 0), min(math.ceil(middle + reach), others)


def _scaled(share: arb) -> tuple[int, int, int]:
    """Whole numbers below and above θ·2^scale, and the scale."""
    low, high = (rational_of(end) * 2**ctx.prec for end in (share.lower(), share.upper()))
    return math.floor(low), min(math.ceil(high), 2**ctx.prec), ctx.prec


def _needed(share: int, count: int, scale: int) -> int:
    """The least whole number that isn't below θm, for m = count + 1."""
    return -(-share * (count + 1) >> scale)


def _binomial(count: int, chosen: int) -> arb:
    parts = (arb(number + 1).lgamma() for number in (chosen, count - chosen))
    return (arb(count + 1).lgamma() - sum(parts, arb(0))).exp()


def _tail(before: arb, count: int, least: int) -> arb:
    """T(c, k) for k ≥ (c + 1)/2, from b(c, k − 1)."""
    term, total, smallest = before, arb(0), arb(2) ** -ctx.prec
    for heads in range(least, count + 1):
        term = term * (count - heads + 1) / heads
        total += term
        if term < smallest * total:
            return total + arb(0).union(term * _rest(arb(count - heads) / (heads + 1)))
    return total


def _rest(ratio: arb) -> arb:
    """What follows a term, by itself, where each is at most `ratio` times the one before."""
    return ratio / (1 - ratio) if ratio < 1 else arb.pos_inf()
