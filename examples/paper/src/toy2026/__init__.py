"""Ledger of a toy paper of 2026 on pairs of vertices."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.statements import Correction, Statement

__all__ = ["CLAIMS"]


def _pairs(n: int) -> int:
    """The oracle: it counts, and shares nothing with what is printed."""
    return sum(1 for _ in combinations(range(n), 2))


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="toy2026.lemma-1",
        where="section 2, lemma 1",
        text="A graph of n vertices has n²/2 pairs.",
        printed=lambda n: Fraction(n * n, 2),
        corrections={
            "n(n − 1)/2": Correction(
                lambda n: Fraction(n * (n - 1), 2),
                place="the proof, which leaves the diagonal out",
                change="n − 1 for one n",
            )
        },
        check=equals(_pairs, [(n,) for n in range(1, 8)], "enumeration"),
        reason="The diagonal is counted too. At n = 1 half a pair is printed, and there is none.",
        instead="Use n(n − 1)/2.",
    ),
    Statement(
        id="toy2026.theorem-1",
        where="section 2, theorem 1",
        text="There are at most n² pairs.",
        printed=lambda n: n * n,
        check=at_most(
            lambda formula, n: (_pairs(n), formula(n)), [(n,) for n in range(2, 8)], "enumeration"
        ),
    ),
    Statement(
        id="toy2026.figure-1",
        where="section 3, figure 1",
        text="Pairs are far more than vertices.",
        reason="“Far more” is no number, so that nothing decides it.",
    ),
)
