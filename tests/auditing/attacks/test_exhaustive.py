"""Exhaustive checks: exact at their size, and able to refute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.exhaustive import Exhaustion, exact_moments, exhaust
from dpverify.auditing.audit import audit
from dpverify.data.adjacency import Adjacency, Attribute, BitFlip, Record
from dpverify.data.domain import Box
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Pair
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.projections.independent import RademacherProjection
from dpverify_mechanisms.sign.flip_rules import Ladder, PrintedAlgorithm7
from dpverify_mechanisms.sign.sketch import SignSketch

BITS = [np.array([bits], dtype=float) for bits in product((0, 1), repeat=3)]


def response(adjacency: BitFlip | Record) -> RandomizedResponse:
    return RandomizedResponse.calibrated(
        p=3,
        epsilon=Fraction(1),
        delta=Fraction(0),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=adjacency,
    )


@pytest.mark.parametrize("adjacency", [BitFlip(), Record()])
def test_randomized_response_is_exactly_as_private_as_claimed(
    adjacency: BitFlip | Record,
) -> None:
    mechanism = response(adjacency)
    found = exhaust(mechanism, BITS)
    keep = 1 - mechanism.flip
    positions = 1 if isinstance(adjacency, BitFlip) else 3
    assert found.ratio().value == (keep / mechanism.flip) ** positions
    assert len(found.pairs) == (8 * 3 if positions == 1 else 8 * 7)
    assert found.epsilon().upper <= 1
    for epsilon in (0, Fraction(1, 2), 1):
        assert not found.exceeds(mechanism.privacy(), epsilon)
        exact = mechanism.privacy().delta_at(epsilon)
        at = found.delta(Fraction(math.exp(epsilon))).value
        assert at is not None
        assert exact.lower - 1e-15 <= float(at) <= exact.upper + 1e-15


def test_a_claim_that_is_too_small_is_refuted() -> None:
    found = exhaust(response(BitFlip()), BITS)
    assert found.exceeds(ApproxDP(epsilon=Fraction(9, 10)), Fraction(9, 10))
    assert found.exceeds(ApproxDP(epsilon=Fraction(9, 10)), 0)


SIGNS = [
    np.array([record], dtype=float) for record in product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=2)
]


def signs() -> SignSketch:
    return SignSketch.calibrated(
        RademacherProjection(p=2, k=4, seed=3),
        ladder=Ladder.smooth,
        epsilon=Fraction(1),
        domain=Box(low=Fraction(-1), high=Fraction(1)),
        adjacency=Attribute(beta=Fraction(1, 2)),
        grid_steps=1,
    )


def test_the_printed_algorithm_is_refuted_and_its_twin_is_not() -> None:
    sketch = signs()
    assert not exhaust(sketch, SIGNS).exceeds(sketch.privacy(), 1)
    assert exhaust(sketch, SIGNS).epsilon().upper <= 1
    rule = PrintedAlgorithm7.of(sketch.rule, sketch.projection, Fraction(1, 2))  # type: ignore[arg-type]
    printed = exhaust(evolve(sketch, rule=rule), SIGNS)
    assert printed.exceeds(sketch.privacy(), 1)
    worst = printed.ratio()
    p, q = next(iter(worst.event.values()))
    assert worst.value == p / q
    assert sketch.adjacency.relates(SIGNS[worst.record], SIGNS[worst.neighbour])


@dataclass(frozen=True)
class Table:
    """Laws by their place."""

    laws: tuple[Mapping[Any, Fraction], ...]

    @property
    def adjacency(self) -> Adjacency:
        return Record()

    def distribution(self, record: Any) -> Mapping[Any, Fraction]:
        return self.laws[int(record[0, 0])]


PLACES = [np.array([[0.0]]), np.array([[1.0]])]


def table(*laws: Mapping[Any, Fraction]) -> Exhaustion:
    return exhaust(Table(laws), PLACES)


def test_an_output_of_one_side_alone_is_an_infinite_loss() -> None:
    found = table(
        {"a": Fraction(1, 2), "b": Fraction(1, 2)}, {"a": Fraction(3, 4), "c": Fraction(1, 4)}
    )
    assert found.ratio().value is None
    assert found.epsilon().lower == math.inf
    worst = found.delta(Fraction(1))
    assert worst.value == Fraction(1, 2)
    assert dict(worst.event) == {"b": (Fraction(1, 2), Fraction(0))}


TINY = Fraction(1, 10**14)
MIDDLE = ({0: Fraction(99, 100), 1: Fraction(1, 100)}, {0: Fraction(7, 10), 1: Fraction(3, 10)})
FAR = (
    {0: Fraction(1, 2), 1: Fraction(1, 2)},
    {0: Fraction(1, 2), 1: Fraction(1, 2) - TINY, 2: TINY},
)


@pytest.mark.parametrize(
    ("laws", "claim", "verdict"),
    [
        # δ is allowed at ε = 0 and at the claimed ε (4.9 at 1e-6), and not where losses are 3.4.
        (MIDDLE, Gaussian(sigma=1), "violation"),
        (MIDDLE, Gaussian(sigma=Fraction(1, 4)), "no_violation_found"),
        # What one side alone gives is above δ(ε) only for an ε beyond the claimed one.
        (FAR, Gaussian(sigma=3), "violation"),
        (FAR, ApproxDP(epsilon=0, delta=TINY), "no_violation_found"),
    ],
)
def test_the_whole_curve_is_checked(
    laws: tuple[Any, ...], claim: PrivacyCurve, verdict: str
) -> None:
    @dataclass(frozen=True)
    class Claiming(Table):
        def privacy(self) -> PrivacyCurve:
            return claim

        def release(self, records: Any, *, rng: Any) -> Any: ...

        def distribution(self, record: Any) -> Mapping[Any, Fraction]:
            return self.laws[int(record[0])]

    pair = Pair(name="a", record=PLACES[0], neighbour=PLACES[1])
    found = audit(Claiming(laws), pairs=[pair], kinds=["exhaustive"])
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        (({"a": Fraction(1)}, {"a": Fraction(1, 2)}), "sum to exactly 1"),
        (({"a": Fraction(1)}, {"a": Fraction(2), "b": Fraction(-1)}), "sum to exactly 1"),
    ],
)
def test_laws_that_are_none(laws: tuple[Mapping[Any, Fraction], ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        table(*laws)


def test_there_must_be_neighbours() -> None:
    with pytest.raises(ParameterError, match="without a neighbour"):
        exhaust(response(BitFlip()), [BITS[0], BITS[7]])


# --- moments


def test_exact_moments_of_dice() -> None:
    die = {side: Fraction(1, 6) for side in range(1, 7)}
    found = exact_moments([die, die, die], lambda a, b, c: a + b - c)
    assert (found.mean, found.variance) == (Fraction(7, 2), 3 * Fraction(35, 12))
    assert found.outcomes == 216
    assert exact_moments([], lambda: 7).variance == 0


@pytest.mark.parametrize("bits", [(0, 0, 0), (1, 0, 1)])
def test_exact_moments_are_the_estimators_formulas(bits: tuple[int, ...]) -> None:
    """The squared distance from two randomized responses, over both of their coins."""
    mechanism = response(BitFlip())
    other = np.array([[0.0, 1.0, 1.0]])
    record = np.array([bits], dtype=float)
    laws = [mechanism.distribution(record), mechanism.distribution(other)]
    estimator = mechanism.estimators()[0]
    shrink = 1 - 2 * mechanism.flip

    def estimate(first: bytes, second: bytes) -> Fraction:
        differing = (first[0] ^ second[0]).bit_count()
        both = (1 - shrink**2) / 2
        return (differing - 3 * both) / (1 - 2 * both)

    found = exact_moments(laws, estimate)
    assert float(found.mean) == pytest.approx(estimator.expectation(record, other), abs=1e-12)
    assert float(found.variance) == pytest.approx(estimator.variance(record, other), rel=1e-12)


def test_too_large_an_enumeration_is_refused_before_it_starts() -> None:
    coin = {0: Fraction(1, 2), 1: Fraction(1, 2)}

    def never(*_: int) -> int:
        raise AssertionError("enumerated")

    with pytest.raises(ParameterError, match=f"outcomes={2**30} must be at most 1000000"):
        exact_moments([coin] * 30, never)
    with pytest.raises(ParameterError, match=r"law 1=0.75 must be probabilities that sum"):
        exact_moments([coin, {0: Fraction(3, 4)}], never)


@dataclass(frozen=True)
class Written:
    """Laws that are written down; nothing is released."""

    laws: tuple[Mapping[Any, Any], ...]
    adjacency: Adjacency = field(default_factory=lambda: Attribute(1))

    def distribution(self, record: Any) -> Mapping[Any, Any]:
        return self.laws[int(record[0])]


@pytest.mark.parametrize("share", [Fraction(1, 10**size) for size in (3, 17, 20, 300, 400)])
def test_an_output_that_hardly_ever_comes_refutes_a_pure_claim(share: Fraction) -> None:
    records = [np.array([0.0]), np.array([1.0])]
    found = exhaust(Written(({"a": Fraction(1)}, {"a": 1 - share, "b": share})), records)
    for epsilon in (0, 1):
        assert found.exceeds(ApproxDP(epsilon=epsilon), epsilon)
        assert not found.exceeds(ApproxDP(epsilon=epsilon, delta=share), epsilon)
        small = float(share) < 1e-300  # where doubles end
        assert found.exceeds(ApproxDP(epsilon=epsilon, delta=share / 2), epsilon) or small
    odds = {"a": share, "b": 1 - share}, {"a": share / 3, "b": 1 - share / 3}
    found = exhaust(Written(odds), records)
    assert found.exceeds(ApproxDP(epsilon=Fraction("1.0986")), Fraction("1.0986"))
    assert not found.exceeds(ApproxDP(epsilon=Fraction("1.0987")), Fraction("1.0987"))


@dataclass(frozen=True)
class Equal:
    number: int


def test_probabilities_are_exact_numbers_and_outputs_equal_themselves() -> None:
    records = [np.array([0.0]), np.array([1.0])]
    assert exhaust(Written(({"a": 0.75, "b": 0.25},) * 2), records).ratio().value == 1
    with pytest.raises(ParameterError, match="probability of 'a'=one must be"):
        exhaust(Written(({"a": "one"},) * 2), records)
    for made in (
        lambda: (float("nan"),),
        lambda: (1, (float("nan"),)),
        lambda: frozenset([float("nan")]),
        lambda: type("Answer", (), {})(),
    ):
        laws = tuple({made(): Fraction(1)} for _ in range(2))
        with pytest.raises(ParameterError, match="must be equal to another one that is made like"):
            exhaust(Written(laws), records)
    equal = tuple({(1, b"a", Fraction(1, 3), Equal(2)): Fraction(1)} for _ in range(2))
    assert exhaust(Written(equal), records).ratio().value == 1
