"""Pages 5 and 15: distances in many dimensions, and projections beside two other mechanisms.

Noisy projections have the variance of appendix B, which `distances` checks; the other mechanisms'
errors are enumerated, or follow from independent bits.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import equals, wherever
from dpverify.ledger.statements import Statement

from .distances import Law, mapped, moment, sum_of, variance

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


_PRIVATE = Fraction(28)  # σ² of appendix A at ε = 1, δ = 10⁻⁶, w₂ = 1: 2·(ln(5·10⁵) + 1) < 28.3


def _projection_variance(k: int, squared: int) -> Fraction:
    return 2 * Fraction(squared) ** 2 / k + 8 * _PRIVATE * squared + 8 * _PRIVATE**2 * k


def _beats_direct_noise(users: int, k: int, squared: int) -> tuple[Fraction, Fraction]:
    """Noise on n − 1 squared distances that move by one each has variance (n − 1)σ²."""
    return _projection_variance(k, squared), (users - 1) * _PRIVATE


def _beats_flipped_bits(d: int, k: int, squared: int) -> tuple[Fraction, arb]:
    """Bits flipped with p = 1/(1 + e): variance d·q(1 − q)/(1 − 2q)², q = 2p(1 − p)."""
    p = 1 / (1 + arb(1).exp())
    q = 2 * p * (1 - p)
    return _projection_variance(k, squared), d * q * (1 - q) / (1 - 2 * q) ** 2


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


def _spread(shared: bool, d: int) -> Fraction:
    """Variance over squared mean of the squared distance of two points with bits as coordinates.

    Coordinates are fair bits, independent, or one bit that all d share.
    """
    coordinate: Law = {Fraction(0): Fraction(1, 2), Fraction(1): Fraction(1, 2)}
    law = mapped(coordinate, lambda x: d * x) if shared else sum_of(*[coordinate] * d)
    return variance(law) / moment(law, 1) ** 2


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-5.equidistant",
        where="Curse of Dimensionality Illustration, first and second items",
        text="In 64 dimensions squared distances vary 64 times less, relatively, than in one.",
        conditions="for independent coordinates; those that are all equal vary as in one dimension",
        printed=lambda: [(False,)],
        check=wherever(
            lambda shared: (_spread(shared, 64) * 64, _spread(shared, 1)), "enumeration"
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
        text="Noise on each distance has more variance than a noisy projection to 64 numbers.",
        conditions="“in typical scenarios”, here from a million users on; ε = 1, δ = 10⁻⁶, "
        "‖x − y‖² = 100",
        printed=lambda: [(10**6, 64, 100), (10**8, 64, 100)],
        check=wherever(_beats_direct_noise, "points"),
        reason="for 1,000 users it is the other way round",
    ),
    Statement(
        id="slides2025.page-15.randomized-response.small",
        where="Comparisons, randomized response",
        text="Flipped bits tell very small distances with less relative error than middling.",
        printed=lambda: [(1, 2)],
        check=wherever(_told_better, "enumeration"),
        reason="The variance of flipped bits is the same at every distance, so that by absolute "
        "error none is told better. By relative error very small distances are told worst.",
        instead="Use flipped bits for large distances only.",
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
        text="A noisy projection to 64 numbers has less variance than flipped bits.",
        conditions="“in typical scenarios”, here a million bits; ε = 1, δ = 10⁻⁶, ‖x − y‖² = 100",
        printed=lambda: [(10**6, 64, 100)],
        check=wherever(_beats_flipped_bits, "enclosure"),
        reason="for 10,000 bits it is the other way round",
    ),
)
