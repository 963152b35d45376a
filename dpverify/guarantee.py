"""Claims: the privacy curve δ(ε), and the guarantee that a mechanism makes with it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol, runtime_checkable

from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real

__all__ = ["Draw", "Guarantee", "PrivacyCurve", "claimed_epsilon"]


@dataclass(frozen=True, slots=True)
class Draw:
    """A public projection or hash, as far as composition has to know it.

    Attributes
    ----------
    source : the random words that it is made from, as a projection's kind and seed name them. Draws
        from one source overlap, whatever their sizes.
    realised : what was made of them, and all else that decides at which positions records differ
    """

    source: str
    realised: str


@runtime_checkable
class PrivacyCurve(Hashable, Protocol):
    """A certified δ(ε): the least function that its theorem proves for all neighbouring pairs.

    Where the theorem is exact, that is the supremum of their hockey-stick divergences. Both ends
    are proven, so ``delta(e).upper`` and ``epsilon(d).upper`` are what may be promised.
    """

    def delta_at(self, epsilon: Real) -> Enclosure:
        """Encloses δ(ε), for ε ≥ 0 in nats."""
        ...

    def epsilon_at(self, delta: Real) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in [0, 1)."""
        ...

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] of the worst pair's privacy loss L, on its own side and the other.

        In doubles, for planning an audit and its power, not for proof. With `noise` below 1 the
        noise is scaled by that factor, the loss still being computed for the claimed noise.
        """
        ...


@lru_cache(maxsize=256)
def claimed_epsilon(curve: PrivacyCurve, delta: Fraction) -> float:
    """Upper end of the curve's ε(δ), the one that may be promised; found once for every curve.

    An audit asks for it at each event that it judges, and a root of a curve can take a second.
    """
    return curve.epsilon_at(delta).upper


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
    notion : differential privacy, or a weaker notion that must not be called so.
    assumptions : what it rests on beside the secrecy of the noise, each a sentence.
    draws : the public projections or hashes that count as random, none where the guarantee holds
        for what was realised. Over a draw it says nothing of the one that was realised, an audit
        draws it anew for every release, and releases that share it aren't independent: `compose`
        looks here.
    given : sources of the projections whose realised numbers the curve is for; for others it may be
        a different one, so that it can't be averaged over them.
    parts : the guarantees that this one composes, if it does.
    statements : of papers, which the proof uses as printed, by their ids in the ledger.
        Where the check of one doesn't find it true, nothing is certified by this guarantee.
    """

    curve: PrivacyCurve
    adjacency: Adjacency
    randomness: str
    data_choice: str
    theorem: str
    notion: Literal["differential privacy", "individual differential privacy"] = (
        "differential privacy"
    )
    assumptions: tuple[str, ...] = ()
    draws: tuple[Draw, ...] = ()
    given: tuple[str, ...] = ()
    parts: tuple[Guarantee, ...] = ()
    statements: tuple[str, ...] = ()

    @property
    def over_the_draw(self) -> bool:
        """Whether public randomness counts as random."""
        return bool(self.draws)
