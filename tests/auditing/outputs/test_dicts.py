"""A function of data frames that gets a list of dicts is told so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.samples import sample_pair
from dpverify.errors import DrawError
from dpverify.privacy import Pair

PAIR = Pair(name="one more", record=[{"age": 1}], neighbour=[{"age": 1}, {"age": 2}])


@dataclass(frozen=True)
class Released:
    function: Callable[[Any], Any]

    def release(self, records: Any, *, rng: Any) -> Any:
        return self.function(records)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda frame: frame["age"].sum(), True),
        (lambda frame: frame.groupby("age"), True),
        (lambda rows: rows[0]["ages"], False),
    ],
)
def test_what_it_got_is_said(function: Callable[[Any], Any], told: bool) -> None:
    mechanism: Any = Released(function)
    with pytest.raises(DrawError) as caught:
        sample_pair(mechanism, PAIR, AuditConfig(draws=4, workers=1), "told")
    assert ('say make="pandas"' in str(caught.value)) == told
