"""A correct mechanism with its broken twin, and how a function of a data set becomes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import Adjacency
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words

__all__ = ["Case", "Close", "Function", "Release", "case", "claim"]

Release = Callable[[Any, np.random.Generator], Any]


@dataclass(frozen=True, slots=True)
class Close:
    """Data sets of one shape whose numbers each differ by at most 1, all in one direction if so.

    Answers of queries of sensitivity 1 to neighbouring tables are that close.
    """

    unit: str = "all answers move by at most 1"
    monotone: bool = False

    def relates(self, first: Any, second: Any) -> bool:
        """Whether they are neighbours."""
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if a.shape != b.shape or np.abs(a - b).max() > 1:
            return False
        return not self.monotone or bool(np.all(a <= b) or np.all(a >= b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Mechanism):
    """A function of a whole data set and numpy's generator, with its claim.

    Attributes
    ----------
    function : what is released
    adjacency, curve : whom it protects, and how well
    pairs : at which it is audited
    name : what a person calls it
    """

    function: Release
    adjacency: Adjacency
    curve: PrivacyCurve
    pairs: tuple[Pair, ...]
    name: str

    def release(self, records: Any, *, rng: Words) -> Any:
        """Release with a generator that is seeded from the words."""
        seed = np.random.SeedSequence(rng.words(4).tolist())
        return self.function(records.copy(), np.random.Generator(np.random.PCG64(seed)))

    def with_generator(self, records: Any, rng: Any) -> Any:
        """Release with a generator of the caller's."""
        return self.function(records.copy(), rng)

    def privacy(self) -> PrivacyCurve:
        """As claimed."""
        return self.curve

    def worst_pairs(self) -> Sequence[Pair]:
        """Those that it was made with."""
        return self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A correct mechanism.

    Attributes
    ----------
    name, flow : what it is, and the kind of control flow
    mechanism : correct
    broken : the same claim with a mistake; None where there is no natural one
    library : whose code it is
    """

    name: str
    flow: str
    mechanism: Any
    broken: Any = None
    library: str = "own"


def claim(epsilon: float, delta: float = 0.0) -> ApproxDP:
    """(ε, δ), rounded up by what round-off in their formulas may have lost."""
    slack = 1 + Fraction(1, 10**9)
    return ApproxDP(epsilon=Fraction(epsilon) * slack, delta=Fraction(delta) * slack)


def case(
    name: str,
    flow: str,
    correct: Release,
    broken: Release | None = None,
    *,
    curve: PrivacyCurve,
    adjacency: Any,
    data: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> Case:
    """A case of functions, at pairs of vectors."""
    pairs = tuple(
        Pair(name=f"pair {number}", record=np.array(a, float), neighbour=np.array(b, float))
        for number, (a, b) in enumerate(data, start=1)
    )
    settings: dict[str, Any] = {"adjacency": adjacency, "curve": curve, "pairs": pairs}
    return Case(
        name=name,
        flow=flow,
        mechanism=Function(function=correct, name=name, **settings),
        broken=None if broken is None else Function(function=broken, name=name, **settings),
    )
