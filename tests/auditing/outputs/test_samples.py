"""Draws come from what a mechanism releases, however it prepares them."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs import samples
from dpverify.auditing.outputs.samples import releaser
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import AddRemove, Attribute
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords


class Prepared:
    """Releases 1, prepared or not."""

    def release(self, records: Any, *, rng: Any) -> int:
        return 1

    def releaser(self, records: Any, count: int, *, rng: Any) -> Any:
        return lambda: 1


class ReleasesOtherwise(Prepared):
    def release(self, records: Any, *, rng: Any) -> int:
        return 2


class BlocksOtherwise(Prepared):
    def release(self, records: Any, *, rng: Any) -> int:
        return sum(self.release_blocks(records))

    def release_blocks(self, records: Any) -> list[int]:
        return [1, 1]


class PreparesOtherwise(Prepared):
    def releaser(self, records: Any, count: int, *, rng: Any) -> Any:
        return lambda: 3


@dataclass
class Wrapper:
    inner: Any = field(default_factory=Prepared)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def release(self, records: Any, *, rng: Any) -> int:
        return 2


@pytest.mark.parametrize(
    ("mechanism", "released"),
    [
        (Prepared(), 1),
        (ReleasesOtherwise(), 2),
        (BlocksOtherwise(), 2),
        (PreparesOtherwise(), 3),
        (Wrapper(), 2),
    ],
)
def test_who_releases_in_another_way_is_drawn_from_by_it(mechanism: Any, released: int) -> None:
    release = releaser(mechanism, np.zeros((1, 1)), 1, ReplayableWords(1, "key"))
    assert release() == released


class Keeping(Mechanism):
    """Laplace noise of a generator of its own, or of the audit's words after its first release."""

    adjacency = Attribute(beta=Fraction(1))

    def __init__(self, *, generates: bool) -> None:
        self.generator = np.random.default_rng() if generates else None
        self.cache: str = ""

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=1)

    def release(self, records: Any, *, rng: Any) -> Any:
        self.cache = "filled"
        source = self.generator or np.random.default_rng(int(rng.words(1)[0]))
        return records + source.laplace(size=records.shape)


@pytest.mark.parametrize("generates", [True, False])
def test_copies_of_a_generator_draw_no_chunk_twice(
    generates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the draws are enough for workers, to which state that goes on changing isn't sent."""
    sent: list[Any] = []

    def spread(function: Any, tasks: Any, **_: Any) -> Iterator[Any]:
        """Each task is of a mechanism as it is now."""
        for task in tasks:
            sent.append(task)
            yield function(*copy.deepcopy(task))

    monkeypatch.setattr(samples, "_INLINE", 0.0)
    monkeypatch.setattr(samples, "CHUNK", 10)
    monkeypatch.setattr(samples, "spread", spread)
    pair = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    config = AuditConfig(draws=50, workers=2)
    own, other = samples.sample_pair(Keeping(generates=generates), pair, config, "test")
    assert len(np.unique(own)) == len(np.unique(other)) == 50
    assert len(sent) == (0 if generates else 3)


def test_what_a_script_knows_by_name_is_drawn_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process finds a cached function of a script or notebook."""

    def size(rows: tuple[int, ...]) -> int:
        return len(rows)

    size.__module__, size.__qualname__ = "__main__", "size"
    cached = functools.lru_cache(size)
    monkeypatch.setattr(sys.modules["__main__"], "size", cached, raising=False)
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    monkeypatch.setattr(samples, "CHUNK", 10)
    pair = Pair(name="one more", record=[], neighbour=[1])
    config = AuditConfig(draws=30, workers=2)
    for function in (
        lambda rows, rng: cached(tuple(rows)) + rng.laplace(),
        functools.partial(lambda size, rows, rng: size(tuple(rows)) + rng.laplace(), cached),
    ):
        mechanism = adapt(function, adjacency=AddRemove(), claim=ApproxDP(epsilon=1))
        assert samples.packed(mechanism) is None
        own, other = samples.sample_pair(mechanism, pair, config, "test")
        assert len(np.unique(own)) == len(np.unique(other)) == 30
    mechanism = adapt(lambda rows: size(rows), adjacency=AddRemove(), claim=ApproxDP(epsilon=1))
    assert samples.packed(mechanism) is not None
