"""A mechanism whose outputs are audited through a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpverify.auditing.outputs.foreign import display_name, several
from dpverify.auditing.outputs.samples import releaser
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words

__all__ = ["Encoded"]

_OF_OUTPUTS = ("log_likelihood_ratio", "distribution", "outputs", "with_generator")
"""What takes or gives the mechanism's own outputs, and isn't offered of others."""


@dataclass(frozen=True)
class Encoded(Mechanism):
    """The same mechanism, whose outputs are features of its outputs.

    Parameters
    ----------
    mechanism : whose claim holds for what is made of its outputs, as of any post-processing
    features : of one output
    """

    mechanism: Any
    features: Callable[[Any], Any]

    def __post_init__(self) -> None:
        require(callable(self.features), "features", self.features, "a function of an output")

    @property
    def name(self) -> str:
        """The mechanism's."""
        return display_name(self.mechanism)

    @property
    def adjacency(self) -> Any:
        """The mechanism's."""
        return self.mechanism.adjacency

    @property
    def replayable(self) -> bool:
        """As the mechanism is."""
        return getattr(self.mechanism, "replayable", True)

    @property
    def recordable(self) -> bool:
        """Never: what noise is asked for explains its outputs, not features of them."""
        return False

    def worst_pairs(self) -> Sequence[Pair]:
        """The mechanism's."""
        own: Callable[[], Sequence[Pair]] = getattr(self.mechanism, "worst_pairs", tuple)
        return own()

    def privacy(self) -> PrivacyCurve:
        """The mechanism's claim."""
        curve: PrivacyCurve = self.mechanism.privacy()
        return curve

    def release(self, records: Any, *, rng: Words) -> Any:
        """The features of one output."""
        return self.features(self.mechanism.release(records, rng=rng))

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], Any]:
        """As the mechanism prepares it, if it does."""
        released = releaser(self.mechanism, records, count, rng)
        return lambda: self.features(released())

    def __getattr__(self, name: str) -> Any:
        # Whatever else it says: its domain, its pairs, what data it admits.
        if name.startswith("_") or name in ("mechanism", *_OF_OUTPUTS):
            raise AttributeError(name)
        if name == "release_many":
            batch: Callable[..., Any] = self.mechanism.release_many

            def released(data: Any, count: int, *, rng: Words) -> Sequence[Any]:
                made = several(batch(data, count, rng=rng), count, self.name)
                return list(map(self.features, made))

            return released
        return getattr(self.mechanism, name)
