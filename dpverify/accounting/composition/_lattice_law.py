"""The law of a sum of independent signs on a lattice, in doubles whose round-off is charged.

A privacy loss ±k·h, plus with odds e^(kh), is a lattice step; T of them have a law that T passes
over one array compute. Turning all signs exchanges the two neighbours' laws P and Q, so that one
array serves both.

**Round-off on the lattice.** A step replaces a by p·(a shifted) + q·a, on non-negative doubles, p
and q being within a relative 2u of exact, u = 2⁻⁵³. With the product and the sum that makes four
roundings a step, so T steps and `math.fsum` stay within a factor (1 ± u)^(4T+1). A product that
underflows is off by at most 2⁻¹⁰⁷⁵ more; as p + q = 1 but for u, a sum of N entries is off by at
most 2TN·2⁻¹⁰⁷⁴ for that. Both are charged with twice that or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.solve import certified_solution
from dpverify.enclosure import Enclosure, enclose, to_arb

__all__ = ["LATTICE_PRECISION", "Doubles", "LatticeLaw"]

Doubles = NDArray[np.float64]

LATTICE_PRECISION = 96
"""Bits for what is computed from the array; it holds no more than 53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeLaw:
    """Λ = step·(2J − N): J is a sum of independent moves, k with odds e^(k·step) against 0."""

    step: Fraction
    moves: tuple[tuple[int, int], ...]  # k and its multiplicity

    def excess(self, eps: Fraction) -> arb:
        """δ*(ε)."""
        first = math.floor((eps / self.step + self._cells()) / 2) + 1
        if first > self._cells():
            return arb(0)
        own, other = self._tails(first)
        return (own - to_arb(eps).exp() * other).max(arb(0))

    def epsilon_at(self, rest: Fraction) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ*(ε) ≤ rest."""
        if rest == 0:
            return Enclosure.of_exact(self.step * self._cells())
        with ctx.workprec(LATTICE_PRECISION):
            if self.excess(Fraction(0)) <= to_arb(rest):
                return Enclosure(0.0, 0.0)
            own, other = self._tails(self._proposal(float(rest)))
            found = Enclosure.of_ball(((own - to_arb(rest)) / other).log())
            return certified_solution(found, lambda eps: bool(self.excess(eps) <= to_arb(rest)))

    def _cells(self) -> int:
        return sum(k * count for k, count in self.moves)

    def _tails(self, first: int) -> tuple[arb, arb]:
        """P and Q of J ≥ first, round-off included; Q mirrors P."""
        law = _law(self.step, self.moves)
        return (
            self._with_round_off(law[first:]),
            self._with_round_off(law[: self._cells() - first + 1]),
        )

    def _with_round_off(self, terms: Doubles) -> arb:
        total = math.fsum(terms.tolist())
        moves = sum(count for _, count in self.moves)
        underflow = arb(2) ** -1070 * moves * len(terms)
        return arb(total, arb(total) * (4 * moves + 2) * arb(2) ** -52 + underflow)

    def _proposal(self, rest: float) -> int:
        """First J of the line P − e^ε·Q that is the highest one where δ*(ε) = rest."""
        law = _law(self.step, self.moves)
        own, other = np.cumsum(law[::-1])[::-1], np.cumsum(law)[::-1]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            lines = np.where((own > rest) & (other > 0), np.log((own - rest) / other), -math.inf)
        return int(np.argmax(lines))


@lru_cache(maxsize=8)
def _law(step: Fraction, moves: tuple[tuple[int, int], ...]) -> Doubles:
    """Probabilities of J = 0, …, N, within what `LatticeLaw` charges for round-off."""
    law = np.zeros(1 + sum(k * count for k, count in moves))
    law[0], last = 1.0, 0
    for k, count in moves:
        move, stay = _coin(k * step), _coin(-k * step)
        for _ in range(count):
            moved = move * law[: last + 1]
            law[: last + 1] *= stay
            last += k
            law[k : last + 1] += moved
    law.flags.writeable = False
    return law


def _coin(odds: Fraction) -> float:
    """1/(1 + e^(−odds)) within 2⁻⁵², two of a step's four roundings."""
    return enclose(lambda: 1 / (1 + to_arb(-odds).exp())).lower
