"""Every record of a small lattice, every neighbour, every coin: the sign sketches' exact laws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import evolve, frozen
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import keep_probability
from dpverify.data.adjacency import Adjacency, Attribute, L1Ball, Record
from dpverify.data.domain import Box
from dpverify.enclosure import Exact, to_arb
from dpverify_mechanisms.projections.independent import OPORP, Projection
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign.flip_rules import UNIT, CoinRule, Ladder, PrintedAlgorithm7, Sums
from dpverify_mechanisms.sign.individual_rules import IndividualResponse
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.profiles import crossed, thinned

ONE = Fraction(1)
EPSILON = ONE
BOX = Box(low=Fraction(-2), high=Fraction(2))
ATTRIBUTE = Attribute(beta=Fraction(1))
LADDERS = (Ladder.response, Ladder.smooth, Ladder.steepest)


@frozen(kw_only=True)
class Given(Projection):
    """A projection of chosen entries."""

    name: ClassVar[str] = "given"

    entries: tuple[tuple[int, ...], ...]

    def _realise(self, rng: Any) -> NDArray[np.float64]:
        return np.array(self.entries, dtype=np.float64)

    @property
    def scale(self) -> Exact:
        return Fraction(1)

    @property
    def pair_variance(self) -> Fraction:
        return Fraction(0)

    @property
    def diagonal_variance(self) -> Fraction:
        return Fraction(0)


def given(*rows: Sequence[int]) -> Given:
    entries = tuple(tuple(row) for row in rows)
    return Given(p=len(entries), k=len(entries[0]), seed=0, entries=entries)


RADEMACHER = [given(s[:2], s[2:]) for s in product((-1, 1), repeat=4)]
OPORPS = [
    given(*rows)
    for a, b in product((-1, 1), repeat=2)
    for rows in (((a, 0), (0, b)), ((0, a), (b, 0)))
]
UNEVEN = [given((3, 1), (1, -2)), given((2, -1, 1), (-3, 1, 0)), given((1, 1), (-1, 2), (1, 0))]
PROJECTIONS = [
    *RADEMACHER,
    *OPORPS,
    *UNEVEN,
    OPORP(p=3, k=2, seed=5),
    RepeatedOPORP(p=2, k=4, repetitions=2, seed=3),
]


def calibrated(
    projection: Projection,
    ladder: Any,
    *,
    steps: int = 2,
    domain: Box = BOX,
    adjacency: Adjacency = ATTRIBUTE,
) -> SignSketch:
    if projection.p > 2:
        domain = evolve(domain, low=domain.low / 2, high=domain.high / 2)
    return SignSketch.calibrated(
        projection,
        ladder=ladder,
        epsilon=EPSILON,
        domain=domain,
        adjacency=adjacency,
        grid_steps=steps,
    )


def lattice(sketch: SignSketch) -> list[tuple[int, ...]]:
    """Every record of the domain in grid steps."""
    low, high = (sketch.grid.steps(Fraction(end)) for end in sketch.domain.ends)
    return list(product(range(low, high + 1), repeat=sketch.projection.p))


def law(sketch: SignSketch, steps: Sequence[int]) -> tuple[Fraction, ...]:
    """Probability of every released bit, through the code path of `positive`."""
    return tuple(sketch.positive([float(s * sketch.grid.step) for s in steps]))


def laws(sketch: SignSketch) -> dict[tuple[int, ...], tuple[Fraction, ...]]:
    return {steps: law(sketch, steps) for steps in lattice(sketch)}


def neighbours(
    steps: tuple[int, ...], records: Any, adjacency: Adjacency, moves: int
) -> Iterator[tuple[int, ...]]:
    for other in records:
        apart = [abs(a - b) for a, b in zip(steps, other, strict=True)]
        match adjacency:
            case Attribute():
                close = sum(d > 0 for d in apart) == 1 and max(apart) <= moves
            case L1Ball():
                close = 0 < sum(apart) <= moves
            case Record():
                close = max(apart) > 0
            case _:
                raise AssertionError
        if close:
            yield other


def ratio(own: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction | None:
    """Largest ratio over all outputs; None if it is infinite."""
    total = Fraction(1)
    for q, r in zip(own, other, strict=True):
        if (q > 0 and r == 0) or (q < 1 and r == 1):
            return None
        total *= max(a / b if b else Fraction(0) for a, b in ((q, r), (1 - q, 1 - r)))
    return total


def worst(sketch: SignSketch, *, adjacency: Adjacency | None = None) -> Fraction | None:
    """Largest ratio over every record, neighbour and output; None if infinite."""
    table = laws(sketch)
    relation = adjacency or sketch.adjacency
    moves = sketch.grid.bound(ATTRIBUTE)
    found = Fraction(1)
    cache: dict[Any, Fraction | None] = {}
    for steps, own in table.items():
        for other in neighbours(steps, table, relation, moves):
            pair = (own, table[other])
            if pair not in cache:
                cache[pair] = ratio(*pair)
            if (value := cache[pair]) is None:
                return None
            found = max(found, value)
    return found


def at_most(value: Fraction | None, epsilon: Fraction) -> bool:
    """Whether value ≤ e^ε, decided by ball arithmetic."""
    with ctx.workprec(4096):
        return value is not None and bool(to_arb(value) <= to_arb(epsilon).exp())


@pytest.mark.parametrize("ladder", LADDERS, ids=["response", "smooth", "steepest"])
@pytest.mark.parametrize("projection", thinned(PROJECTIONS, 20), ids=repr)
def test_no_neighbour_loses_more_than_epsilon(projection: Projection, ladder: Any) -> None:
    for steps in (1, 2, 3) if projection.k == 2 == projection.p else (2,):
        sketch = calibrated(projection, ladder, steps=steps)
        found = worst(sketch)
        assert at_most(found, EPSILON)
        assert found is not None
        assert isinstance(sketch.rule, Ladder)
        assert found <= sketch.rule.ratio() ** sketch.positions()


@pytest.mark.parametrize("ladder", LADDERS, ids=["response", "smooth", "steepest"])
@pytest.mark.parametrize("projection", [RADEMACHER[1], OPORPS[3], UNEVEN[0]])
def test_the_claim_is_attained_and_the_search_finds_it(projection: Projection, ladder: Any) -> None:
    """At 0 all touched signs cross: the bound is the truth, and `worst_pairs` is such a pair."""
    sketch = calibrated(projection, ladder)
    assert isinstance(sketch.rule, Ladder)
    truth = worst(sketch)
    assert truth == sketch.rule.ratio() ** sketch.positions()
    (pair,) = sketch.worst_pairs()
    assert sketch.largest_ratio(pair.record, pair.neighbour) == truth


@pytest.mark.parametrize(
    ("projection", "ladder"), crossed([RADEMACHER[6], OPORPS[0], UNEVEN[1]], LADDERS)
)
def test_whole_curve(projection: Projection, ladder: Any) -> None:
    """No event of any pair exceeds e^ε q + δ(ε), at several ε."""
    sketch = calibrated(projection, ladder)
    curve = sketch.privacy()
    table = laws(sketch)
    for epsilon in (Fraction(0), Fraction(1, 4), Fraction(3, 5)):
        e_up = Fraction(float(arb(to_arb(epsilon).exp()).upper()) * (1 + 1e-15))
        delta = Fraction(curve.delta_at(epsilon).upper)
        seen = set()
        for steps, own in table.items():
            for other in neighbours(steps, table, ATTRIBUTE, 2):
                seen.add((own, table[other]))
        for own, far in seen:
            excess = Fraction(0)
            for bits in product((0, 1), repeat=projection.k):
                chances = [
                    [v if b else 1 - v for b, v in zip(bits, side, strict=True)]
                    for side in (own, far)
                ]
                p, q = (math.prod(side, start=ONE) for side in chances)
                excess += max(p - e_up * q, Fraction(0))
            assert excess <= delta


@pytest.mark.parametrize("projection", [RADEMACHER[5], OPORPS[2], UNEVEN[0]])
def test_whole_records(projection: Projection) -> None:
    sketch = calibrated(projection, Ladder.response, adjacency=Record(), steps=8)
    assert sketch.positions() == projection.k
    assert at_most(worst(sketch), EPSILON)


@pytest.mark.parametrize("ladder", LADDERS, ids=["response", "smooth", "steepest"])
def test_whole_records_cross_from_level_to_level(ladder: Any) -> None:
    """With 4 attributes of two steps, level 2 can be replaced by level 2 of the other sign."""
    plain = calibrated(given((1,), (1,), (1,), (1,)), Ladder.response, adjacency=Record(), steps=2)
    rule = ladder(keep_probability(EPSILON))
    flip = rule.flips[min(2, len(rule.flips) - 1)]
    found = worst(evolve(plain, rule=rule))
    assert found == Fraction(UNIT - flip, flip)
    assert found <= rule.ratio(adjacent=False)
    assert at_most(found, EPSILON) is (ladder == Ladder.response)


def test_columns_that_never_change_sign_are_not_charged() -> None:
    """On [1, 2]² the column (1, 1) is positive throughout."""
    domain = Box(low=Fraction(1), high=Fraction(2))
    sketch = calibrated(given((1, 1), (1, -1)), Ladder.response, domain=domain, steps=4)
    assert sketch.positions() == 1
    assert at_most(worst(sketch), EPSILON)
    # A smooth rule's level still changes there, so that both columns are charged.
    assert calibrated(given((1, 1), (1, -1)), Ladder.smooth, domain=domain).positions() == 2


@pytest.mark.nightly
def test_one_bin_is_not_enough_for_the_l1_ball() -> None:
    """Theorem 4.8 is for one attribute: an ℓ1 move of β can cross 0 in every bin."""
    sketch = calibrated(OPORPS[0], Ladder.response, steps=4)
    assert sketch.positions() == 1
    assert not at_most(worst(sketch, adjacency=L1Ball(radius=Fraction(1))), EPSILON)
    assert at_most(worst(sketch, adjacency=L1Ball(radius=Fraction(1))), 2 * EPSILON)
    ball = calibrated(OPORPS[0], Ladder.response, adjacency=L1Ball(radius=Fraction(1)))
    assert ball.positions() == 2


# Planted bugs


class _Changed(CoinRule):
    """A ladder with one thing wrong."""

    __slots__ = ("ladder",)

    theorem: ClassVar[str] = "none"

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder

    def curve(self, positions: int, *, adjacent: bool) -> Any:
        raise AssertionError

    def facts(self) -> Any:
        raise AssertionError


class BareZero(_Changed):
    """The sign of 0 is +1 and released as it is."""

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        return np.where(sums == 0, np.uint64(0), self.ladder.numerators(sums, divisors))


class FloorAndOne(_Changed):
    """⌊|V|/d⌋ + 1 in place of ⌈|V|/d⌉: another level at whole multiples of d alone."""

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        levels = np.where(sums == 0, 0, np.abs(sums) // divisors + 1)
        return np.array(self.ladder.flips, dtype=np.uint64)[levels]


class CeilingFirst(_Changed):
    """⌈|V|/moves⌉ without the column's largest entry."""

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        return self.ladder.numerators(sums, np.full_like(divisors, divisors.min()))


@pytest.mark.parametrize(
    ("bug", "projection"),
    [(BareZero, RADEMACHER[1]), (FloorAndOne, OPORPS[0]), (CeilingFirst, given((3, 1), (1, 1)))],
)
def test_planted_rules_are_caught(bug: Any, projection: Projection) -> None:
    sketch = calibrated(projection, Ladder.smooth)
    assert at_most(worst(sketch), EPSILON)
    assert not at_most(worst(evolve(sketch, rule=bug(sketch.rule))), EPSILON)


def test_algorithm_7_as_printed_loses_its_level_times_epsilon() -> None:
    """L = ⌈√k/β⌉ = 2 for a 2 × 2 Rademacher matrix (scale 1/√2): twice the claim."""
    plain = given((1, 1), (1, -1))
    scaled = evolve(calibrated(plain, Ladder.smooth), projection=plain)
    ladder = scaled.rule
    assert isinstance(ladder, Ladder)
    printed = PrintedAlgorithm7(ladder=ladder, levels=(2, 2))
    found = worst(evolve(scaled, rule=printed))
    assert found == Fraction(UNIT - ladder.flips[2], ladder.flips[2]) ** 2
    assert not at_most(found, EPSILON)
    assert at_most(found, 2 * EPSILON + Fraction(1, 10**9))


def test_zero_needs_its_own_level_only_for_fairness() -> None:
    """Algorithm 7 reads L = 0 as a fair coin, algorithm 8 says so: the ratio at 0 is below R."""
    keep = keep_probability(EPSILON)
    ladder = Ladder.response(keep)
    assert 2 * keep < ladder.ratio()
    assert Fraction(UNIT, 2 * ladder.flips[1]) < ladder.ratio()


# Individual differential privacy


@pytest.mark.parametrize(
    "projection", thinned([*RADEMACHER[:4], OPORPS[1], OPORP(p=3, k=2, seed=5)], 4)
)
def test_individual_claim_holds_with_the_noise_set_held(projection: Projection) -> None:
    domain = BOX if projection.p == 2 else Box(low=Fraction(-1), high=Fraction(1))
    sketch = SignSketch.idp_signrp_rr(
        projection, epsilon=EPSILON, domain=domain, adjacency=ATTRIBUTE, grid_steps=2
    )
    records = lattice(sketch)
    step = float(sketch.grid.step)
    for steps in records:
        held = sketch.held_at([s * step for s in steps])
        own = law(held, steps)
        assert own == law(sketch, steps)
        for other in neighbours(steps, records, ATTRIBUTE, 2):
            assert at_most(ratio(own, law(held, other)), EPSILON)
            assert at_most(ratio(law(held, other), own), EPSILON)


def test_individual_claim_fails_for_the_algorithm_as_it_runs() -> None:
    """V = 2d is released bare, its neighbour at d is flipped with probability f: δ ≥ f."""
    sketch = SignSketch.idp_signrp_rr(
        given((1,)), epsilon=EPSILON, domain=BOX, adjacency=ATTRIBUTE, grid_steps=2
    )
    rule = sketch.rule
    assert isinstance(rule, IndividualResponse)
    assert law(sketch, (4,)) == (Fraction(1),)
    assert law(sketch, (2,)) == (1 - Fraction(rule.flips[1], UNIT),)
    assert ratio(law(sketch, (2,)), law(sketch, (4,))) is None
    assert worst(sketch) is None
    # Nor does the mechanism held at one record protect others.
    held = sketch.held_at([2.0])
    assert ratio(law(held, (1,)), law(held, (-1,))) is None


def test_individual_set_must_hold_the_boundary() -> None:
    """|V| = d belongs to the set: its neighbour at 0 has another law."""
    sketch = SignSketch.idp_signrp_rr(
        given((1,)), epsilon=EPSILON, domain=BOX, adjacency=ATTRIBUTE, grid_steps=2
    )
    rule = sketch.rule
    assert isinstance(rule, IndividualResponse)
    bare = evolve(sketch, rule=evolve(rule, held=(False,)))
    assert ratio(law(bare, (0,)), law(bare, (2,))) is None


def test_individual_noise_with_the_noise_set_held() -> None:
    """Theorem 6.1 under the same reading: every event of every neighbour, at k = 2."""
    delta = Fraction(1, 50)
    sketch = SignSketch.idp_signrp_g(
        RADEMACHER[1],
        epsilon=EPSILON,
        delta=delta,
        domain=BOX,
        adjacency=ATTRIBUTE,
        grid_steps=2,
    )
    records = lattice(sketch)
    step = float(sketch.grid.step)
    worst_excess = 0.0
    for steps in records:
        held = sketch.held_at([s * step for s in steps])
        for other in neighbours(steps, records, ATTRIBUTE, 2):
            for pair in ((steps, other), (other, steps)):
                own, far = (law(held, side) for side in pair)
                excess = 0.0
                for bits in product((0, 1), repeat=2):
                    p, q = (
                        math.prod(float(v if b else 1 - v) for b, v in zip(bits, side, strict=True))
                        for side in (own, far)
                    )
                    excess += max(p - math.e * q, 0.0)
                worst_excess = max(worst_excess, excess)
    assert worst_excess <= float(delta)
    # As it runs it has no finite loss: bare at 2d, noisy at d.
    assert set(law(sketch, (4, 0))) == {Fraction(0)}
    assert all(0 < chance < 1 for chance in law(sketch, (2, 0)))
