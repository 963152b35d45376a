"""Claims: the privacy curve δ(ε), and the guarantee that a mechanism makes with it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dpverify.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real

__all__ = ["Guarantee", "PrivacyCurve"]


@runtime_checkable
class PrivacyCurve(Hashable, Protocol):
    """A certified δ(ε): the supremum of hockey-stick divergences over neighbouring pairs.

    Both ends are proven, so ``delta(e).upper`` and ``epsilon(d).upper`` are what may be promised.
    """

    def delta(self, epsilon: Real) -> Enclosure:
        """Encloses δ(ε), for ε ≥ 0 in nats."""
        ...

    def epsilon(self, delta: Real) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in [0, 1)."""
        ...

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] of the worst pair's privacy loss L, on its own side and the other.

        In doubles, for planning an audit and its power, not for proof. With `noise` below 1 the
        noise is scaled by that factor, the loss still being computed for the claimed noise.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a mechanism promises, to whom, and over which randomness.

    Attributes
    ----------
    curve : the whole claim; an (ε, δ) is one of its points.
    adjacency : whom it protects.
    randomness : over which randomness it holds ("the noise, for this realised projection").
    data_choice : what it assumes about when the data was chosen.
    theorem : the statement that proves it, with paper and version.
    """

    curve: PrivacyCurve
    adjacency: Adjacency
    randomness: str
    data_choice: str
    theorem: str
