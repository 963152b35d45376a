"""Pages 5 and 15: distances in many dimensions, and projections beside two other mechanisms.

The other mechanisms' errors are enumerated, or follow from independent bits. What has no number on
the slides says where it turns round, by the variance of appendix B.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from dpverify.ledger.checks import equals, wherever
from dpverify.ledger.statements import Statement

from .distances import Law, sum_of, variance

__all__ = ["CLAIMS"]


def _relative_error(distance: int, d: int = 4, p: Fraction = Fraction(1, 4)) -> Fraction:
    """Variance over squared distance of the unbiased estimate from bits flipped with p."""
    differ = 2 * p * (1 - p)
    total: Law = {Fraction(0): Fraction(1)}
    for i in range(d):
        one = 1 - differ if i < distance else differ
        total = sum_of(total, {Fraction(1): one, Fraction(0): 1 - one})
    return variance(total) / (1 - 2 * differ) ** 2 / distance**2


def _told_better(better: int, worse: int) -> tuple[Fraction, Fraction]:
    return _relative_error(better), _relative_error(worse)


def _moved_distances(users: int) -> int:
    """Most of the n(n−1)/2 squared distances that one bit of one user moves, two bits a user."""
    tables = list(product(product((0, 1), repeat=2), repeat=users))

    def distances(t: Any) -> list[int]:
        return [
            sum(a != b for a, b in zip(t[i], t[j], strict=True))
            for i in range(users)
            for j in range(i)
        ]

    first = tables[0]
    return max(
        sum(a != b for a, b in zip(distances(first), distances(t), strict=True))
        for t in tables
        if sum(a != b for x, y in zip(first, t, strict=True) for a, b in zip(x, y, strict=True))
        == 1
    )


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-5.equidistant",
        where="Curse of Dimensionality Illustration, first and second items",
        text="In many dimensions points tend to become nearly equidistant.",
        reason="“Nearly” is no number, and no law of the points is named. Squared distances of "
        "independent fair bits vary 64 times less, relatively, in 64 dimensions than in one; those "
        "of coordinates that are all equal vary as in one.",
    ),
    Statement(
        id="slides2025.page-15.direct-noise.sensitivity",
        where="Comparisons, direct noise addition",
        text="A bit moves many distances: all n − 1 of its user.",
        printed=lambda users: users - 1,
        check=equals(_moved_distances, [(2,), (3,), (4,)], "enumeration"),
    ),
    Statement(
        id="slides2025.page-15.direct-noise",
        where="Comparisons, direct noise addition",
        text="Noise on each distance has to be significantly larger.",
        reason="“Significantly” and “typical scenarios” are no numbers. At ε = 1, δ = 10⁻⁶ and "
        "‖x − y‖² = 100 it has more variance than a noisy projection to 64 numbers from about "
        "15,000 users on, and less below.",
    ),
    Statement(
        id="slides2025.page-15.randomized-response.small",
        where="Comparisons, randomized response",
        text="Flipped bits are good for very small differences.",
        reason="No measure of the error is named. By relative error very small distances are told "
        "worst; by the absolute one all alike, or the smallest and the largest best where "
        "estimates are cut to [0, d].",
    ),
    Statement(
        id="slides2025.page-15.randomized-response.large",
        where="Comparisons, randomized response",
        text="Flipped bits tell very large distances with less relative error than middling.",
        printed=lambda: [(4, 2), (3, 2)],
        check=wherever(_told_better, "enumeration"),
    ),
    Statement(
        id="slides2025.page-15.outperforms",
        where="Comparisons, last item",
        text="Noisy projections outperform noise on distances and flipped bits in typical "
        "scenarios.",
        reason="“Typical” is no setting. At ε = 1, δ = 10⁻⁶ and ‖x − y‖² = 100 a projection to 64 "
        "numbers has less variance than flipped bits from about 82,000 bits on, and more below.",
    ),
)
