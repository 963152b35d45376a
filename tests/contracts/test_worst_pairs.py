"""Pairs that a mechanism names are neighbours, also where a bound is no double.

Decimals such as 0.1 lie between two doubles: an end plus a bound that is rounded is a neighbour at
some bounds, and at others a rounding too far.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpverify.auditing.targets.pairs import known_pairs
from dpverify.catalogue import family_of
from dpverify.data.adjacency import Attribute, Edge, Row
from dpverify.data.domain import Ball, Box, Sets
from dpverify.errors import ConfigurationError, ParameterError
from tests.helpers.cases import CASES

BOUNDS = ("0.1", "0.3", "1/3")
DOMAINS = (Box(low="-0.7", high="0.9"), Ball(radius="0.3"))


BOUNDED = [
    name
    for name, asked in CASES.items()
    if isinstance(asked.adjacency, Attribute | Edge | Row) and not isinstance(asked.domain, Sets)
]


@pytest.mark.parametrize("case", BOUNDED)
def test_pairs_of_a_mechanism_are_neighbours_at_any_bound(case: str) -> None:
    family, asked = family_of(case.partition(" ")[0]), CASES[case]
    kind: Any = type(asked.adjacency)
    domains = DOMAINS if kind is Attribute else (asked.domain,)
    audited = 0
    for bound in map(Fraction, BOUNDS):
        for domain in domains:
            try:
                made = family.make(replace(asked, adjacency=kind(bound), domain=domain))
            except (ConfigurationError, ParameterError):  # not made for a ball, or so small a bound
                continue
            for pair in known_pairs(made, None):
                for side in (pair.record, pair.neighbour):
                    domain.admit(side)
            audited += 1
    assert audited
