"""What a planted bug is: a mechanism that says one thing and does another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeVar

from numpy.typing import NDArray

from dpverify.adjacency import Adjacency
from dpverify.domain import Domain
from dpverify.enclosure import Enclosure
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.mechanism import Certifiable, Estimator, Pair
from dpverify.sampling.words import Words

__all__ = ["Audit", "Mislabelled", "PlantedBug", "noise_times"]

Audit = Literal["white-box", "moments"]
Rates = tuple[float, float]

_M = TypeVar("_M", bound=Certifiable)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug(Generic[_M]):
    """A mistake that people make.

    Attributes
    ----------
    name : short
    mistake : what was done wrong
    twin : makes the correct mechanism, a small one
    plant : makes the broken one from it: the same claim, other behaviour
    found_by : the audits that find it
    draws : of the white-box attack, on each side, with which it is found 99 times in 100
    rates : P[L ≥ t] of the broken release on its own side and on the other, at the worst pair in
        its worse order, with L the loss that is claimed: what that promise follows from. In
        doubles; None where the attack doesn't find the bug, as the release is private.
    """

    name: str
    mistake: str
    twin: Callable[[], _M]
    plant: Callable[[_M], Certifiable]
    found_by: tuple[Audit, ...] = ("white-box",)
    draws: int = 1000
    rates: Callable[[_M, float], Rates] | None = None

    def broken(self) -> Certifiable:
        """The broken mechanism."""
        return self.plant(self.twin())


@dataclass(frozen=True, slots=True, kw_only=True)
class Mislabelled:
    """Says what one mechanism says, and releases what another one releases.

    The likelihood ratio and the pairs are those of the claim too: an audit is handed a mechanism by
    whoever believes in it.

    Parameters
    ----------
    claim : what it says it is
    actual : whose releases it gives out
    """

    claim: Certifiable
    actual: Certifiable

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Release of the other mechanism."""
        return self.actual.release(records, rng=rng)

    def redrawn(self, seed: int) -> Self:
        """Both with the same new public randomness."""
        return type(self)(claim=self.claim.redrawn(seed), actual=self.actual.redrawn(seed))

    @property
    def adjacency(self) -> Adjacency:
        """As claimed."""
        return self.claim.adjacency

    @property
    def domain(self) -> Domain:
        """As claimed."""
        return self.claim.domain

    def privacy(self) -> PrivacyCurve:
        """As claimed."""
        return self.claim.privacy()

    def guarantee(self) -> Guarantee:
        """As claimed."""
        return self.claim.guarantee()

    def facts(self) -> Mapping[str, Any]:
        """As claimed."""
        return self.claim.facts()

    def step(self) -> Enclosure | None:
        """As claimed."""
        return self.claim.step()

    def shape(self, rows: int) -> tuple[int, ...]:
        """As claimed."""
        return self.claim.shape(rows)

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[Any]:
        """The loss as claimed."""
        return self.claim.log_likelihood_ratio(outputs, record, neighbour)

    def worst_pairs(self) -> Sequence[Pair]:
        """As claimed."""
        return self.claim.worst_pairs()

    def estimators(self) -> Sequence[Estimator]:
        """As claimed."""
        return self.claim.estimators()

    def probes(self, rng: Words) -> Sequence[Pair]:
        """As claimed."""
        return self.claim.probes(rng)


def noise_times(factor: float) -> Callable[[Certifiable, float], Rates]:
    """Rates of a bug that amounts to noise scaled by a factor (log-odds divided by it)."""
    return lambda twin, threshold: twin.privacy().rates(threshold, noise=factor)
