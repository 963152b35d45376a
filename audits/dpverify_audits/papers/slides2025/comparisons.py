"""Pages 5 and 15: distances in many dimensions, and projections beside two other mechanisms.

The other mechanisms' errors are enumerated, or follow from independent bits. What has no number on
the slides says where it turns round, by the variance of appendix B.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from dpverify.ledger.checks import equals
from dpverify.ledger.statements import Statement

__all__ = ["CLAIMS"]


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
        reason=(
            "The slide says neither how near to equal nor for points of which law. Squared "
            "distances of independent fair bits vary 64 times less, relatively, in 64 dimensions "
            "than in one; those of coordinates that are all equal vary as in one."
        ),
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
        reason=(
            "The slide says neither by how much nor in which scenarios. At ε = 1, δ = 10⁻⁶ and "
            "‖x − y‖² = 100 it has more variance than a noisy projection to 64 numbers from "
            "about 15,000 users on, and less below."
        ),
    ),
    Statement(
        id="slides2025.page-15.randomized-response.small",
        where="Comparisons, randomized response",
        text="Flipped bits are good for very small differences.",
        reason="No measure of the error is named. By relative error very small distances are told "
        "worst. By the absolute one all are told alike, and where estimates are cut to [0, d] the "
        "smallest and the largest best, at d = 100 and p = 1/4.",
    ),
    Statement(
        id="slides2025.page-15.randomized-response.large",
        where="Comparisons, randomized response",
        text="Flipped bits are good for very large differences.",
        reason="No measure of the error is named. By relative error very large distances are told "
        "best. By the absolute one all are told alike, and where estimates are cut to [0, d] the "
        "smallest and the largest best, at d = 100 and p = 1/4.",
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
