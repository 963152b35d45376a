"""Draws come from what a mechanism releases, however it prepares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.outputs.samples import releaser
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
