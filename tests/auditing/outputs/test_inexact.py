"""Numbers that a double or 64 bits don't hold: never audited rounded, and refused in true words."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.outputs.samples import as_numbers
from dpverify.auditing.report import Report
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box

Function = Callable[[NDArray[np.float64], np.random.Generator], Any]


def parity(record: NDArray[np.float64], rng: np.random.Generator) -> int:
    """The secret in the last bit, on both sides of 2**63: doubles there are even."""
    return 2**63 + 2 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2


def beside(record: NDArray[np.float64], rng: np.random.Generator) -> list[float]:
    return [2**60 + 2 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2, 0.5]


def seldom(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    return 0.5 if rng.random() < 1e-3 else 2**60 + int(record[0]) % 2


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


INEXACT: dict[str, Function] = {
    "parity around 2**63": parity,
    "parity beside doubles": beside,
    "parity, seldom a double": seldom,
    "fraction": lambda record, rng: Fraction(int(rng.integers(9)), 7),
    "decimal": lambda record, rng: Decimal(int(rng.integers(9))),
    "fractions": lambda record, rng: [Fraction(1, 3), 0.5],
    "complex": lambda record, rng: complex(rng.random(), 1),
    "beyond 64 bits": lambda record, rng: 2**70 + int(rng.integers(9)),
    "too many digits": lambda record, rng: 10**5000 + int(rng.integers(9)),
}
OTHER: dict[str, Function] = {
    "none": lambda record, rng: None,
    "text": lambda record, rng: "x" * 10**6,
    "hostile": lambda record, rng: Hostile(),
}


def audited(function: Function) -> Report:
    mechanism = adapt(
        function,
        adjacency=Attribute(beta=Fraction(1)),
        claim=ApproxDP(epsilon=Fraction(1)),
        of="record",
        attributes=1,
        domain=Box(low=Fraction(0), high=Fraction(10)),
    )
    return audit(mechanism, seed=1, workers=1, draws=3000, kinds=["black-box"])


@pytest.mark.parametrize("name", INEXACT)
def test_refused_as_a_number(name: str) -> None:
    report = audited(INEXACT[name])
    said = "\n".join([*report.failed, *(finding.statement for finding in report.findings)])
    assert report.verdict == "inconclusive"
    assert "released a number that doubles and 64 bits don't hold" in said
    assert "numerator and denominator" in said
    assert len(said) < 4000


@pytest.mark.parametrize("name", OTHER)
def test_refused_as_no_number(name: str) -> None:
    report = audited(OTHER[name])
    said = "\n".join([*report.failed, *(finding.statement for finding in report.findings)])
    assert report.verdict == "inconclusive"
    assert "released neither numbers nor a set" in said
    assert len(said) < 4000


def test_what_is_exact_is_kept() -> None:
    for outputs, kind in (
        ([2**63 - 1, -(2**63)], "i"),
        ([np.uint64(2**62), np.uint64(1)], "i"),
        ([2**53, 0.5, np.nan], "f"),
        ([2**60, 0.5], "f"),
        ([np.longdouble(0.5)], "f"),
        ([np.uint8(3), np.uint8(4)], "u"),
    ):
        numbers = as_numbers(outputs)
        assert numbers.dtype.kind == kind
        assert all(x == y or x != x for x, y in zip(numbers.tolist(), outputs, strict=True))  # noqa: PLR0124
