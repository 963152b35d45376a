"""Numbers that a double or 64 bits don't hold: audited exactly, never rounded."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.outputs.arrays import Drawn, as_numbers, joined
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.values import kept, value_of
from dpverify.auditing.report import Report
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.privacy import Pair

Function = Callable[[NDArray[np.float64], np.random.Generator], Any]

ANY: Any = "for messages"
PAIR = Pair(name="even or odd", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


def parity(record: NDArray[np.float64], rng: np.random.Generator) -> int:
    """The secret in the last bit, on both sides of 2**63: doubles there are even."""
    return 2**63 + 2 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2


def beside(record: NDArray[np.float64], rng: np.random.Generator) -> list[float]:
    return [2**60 + 2 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2, 0.5]


def seldom(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    return 0.5 if rng.random() < 1e-2 else 2**60 + int(record[0]) % 2


def thirds(record: NDArray[np.float64], rng: np.random.Generator) -> Fraction:
    return Fraction(3 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2, 3)


def audited(function: Function, kind: AuditKind) -> Report:
    mechanism = adapt(
        function,
        adjacency=Attribute(beta=Fraction(1)),
        claim=ApproxDP(epsilon=Fraction(1)),
        of="record",
    )
    return audit(mechanism, pairs=[PAIR], seed=1, workers=1, draws=300, kinds=[kind])


@pytest.mark.parametrize("function", [parity, beside, seldom, thirds])
def test_the_last_digit_is_audited(function: Function) -> None:
    assert audited(function, "precision").verdict == "violation"


@pytest.mark.parametrize(
    ("number", "leaves"),
    [
        (2**70 + 5, {"output": 2.0**70, "output mod 2**32": 5.0}),
        (2**2000 + 7, {"output": np.inf, "output mod 2**32": 7.0}),
        (Decimal("2.5"), {"output": 2.5, "output.numerator": 5.0, "output.denominator": 2.0}),
        (1 + 2j, {"output.real": 1.0, "output.imag": 2.0}),
        ([2**60 + 1, 0.5], {"output[0]": 2.0**60, "output[0] mod 2**32": 1.0, "output[1]": 0.5}),
        (2.0**60, {"output": 2.0**60, "output mod 2**32": 0.0}),
        (Decimal("nan"), {"output": "NaN"}),
        (np.clongdouble(1 + 2j), {"output.real": 1.0, "output.imag": 2.0}),
    ],
)
def test_exact_parts(number: Any, leaves: dict[str, Any]) -> None:
    found = dict(value_of(number).leaves)
    assert found | leaves == found


NEIGHBOURS = [
    *((2**power, 2**power + 1) for power in (53, 62, 63, 64, 3000)),
    (-(2**53), -(2**53) - 1),
    (2**63 - 1, 2**63 - 2),
    (1e308, np.nextafter(1e308, np.inf)),
    *((sign * np.inf, sign * np.finfo(float).max) for sign in (1, -1)),
    (0.0, -0.0),
]
"""Numbers that doubles don't hold, or that are infinite, beside the nearest ones."""

HELD: dict[str, Callable[[Any], Any]] = {
    "alone": lambda number: number,
    "in a list": lambda number: [1, number],
    "beside a text": lambda number: ["a", number],
    "beside a fraction": lambda number: [0.5, number],
    "in a column": lambda number: pandas.DataFrame({"a": [number]}),
    "last of many": lambda number: [7] * 99 + [number],
    "last of an array": lambda number: {"a": np.array([7] * 99 + [number], np.array(number).dtype)},
}


@pytest.mark.parametrize("numbers", NEIGHBOURS)
@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_columns_tell_a_number_from_the_next(
    numbers: tuple[Any, Any], held: Callable[[Any], Any]
) -> None:
    outputs = [[kept(held(number))] * 6 for number in numbers]
    own, other = joined([Drawn.of(side, ANY, PAIR, 0, []) for side in outputs])
    learned = features(np.concatenate([own, other]))
    with np.errstate(all="raise"):
        told, otherwise = (learned.matrix(side) for side in (own, other))
    assert np.isfinite(told).all()
    assert np.isfinite(otherwise).all()
    assert not np.array_equal(told, otherwise)


def test_the_telling_one_of_many_zeros_has_a_column() -> None:
    """All of a hundred are −0 now and then, and the last one always is on one side."""
    sides = np.where(np.random.default_rng(1).random((400, 100)) < 0.5, 0.0, -0.0)
    sides[:200, -1], sides[200:, -1] = 0.0, -0.0
    assert "output[99] is -0.0" in features(sides).names


@pytest.mark.parametrize("base", [2**53, 2**60, -(2**60), 2**64])
def test_small_noise_on_large_numbers_is_seen(base: int) -> None:
    keep = 1 - np.exp(-2)

    def noisy(record: NDArray[np.float64], rng: np.random.Generator) -> int:
        return base + int(record[0]) + int(rng.geometric(keep)) - int(rng.geometric(keep))

    assert audited(noisy, "black-box").verdict == "violation"


def test_events_have_all_digits_of_whole_numbers() -> None:
    def told(record: NDArray[np.float64], rng: np.random.Generator) -> int:
        return 1_234_567 + int(record[0])

    (finding,) = audited(told, "black-box").findings
    assert "1234568" in finding.statement or "1234567" in finding.statement


@pytest.mark.skipif(np.finfo(np.longdouble).nmant == 52, reason="a longdouble is a double here")
@pytest.mark.parametrize("size", [0, 3, 100])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, np.nextafter(np.longdouble(1), 2)),
        (np.ldexp(np.longdouble(1), 16000), np.ldexp(np.longdouble(1), 16001)),
        (np.ldexp(np.longdouble(1), -16000), 0),
    ],
)
def test_what_a_longdouble_says_beyond_doubles(one: Any, other: Any, size: int) -> None:
    told = [
        value_of(kept(np.full(size, number, np.longdouble) if size else np.longdouble(number)))
        for number in (one, other)
    ]
    assert told[0].leaves != told[1].leaves


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
