"""Exactly rounded noises: their laws, their tables, and the path that is rarely taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpverify.enclosure import to_arb
from dpverify.errors import ParameterError
from dpverify.sampling._quantile_table import Polynomials
from dpverify.sampling._quantile_table import Table as Tables
from dpverify.sampling.rounded_gaussian import RoundedGaussian, _derivative_at_integer
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords
from tests.helpers.profiles import day_and_night

Table = Literal["coarse", "fine"]
SCALES = (1.0, 1.5, 16.0, 1003.5701763166312, 2.0**20, 2.0**34, 2.0**44)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A noise of scale 1, in mpmath.

    Attributes
    ----------
    sampler : makes the noise of a scale
    tail : P[Z > x] for x ≥ 0
    quantile : z with P[Z > z] = p ≤ 1/2
    variance : of the real noise
    reach : the last draw of 64 bits lies within so many scales
    far : beyond so many scales lies less than 1e-60
    scales : at which the table is tested
    small : at which moments are summed up
    refused : a scale that is too small
    """

    sampler: Callable[..., Any]
    tail: Callable[[Any], Any]
    quantile: Callable[[Any], Any]
    variance: int
    reach: int
    far: int
    scales: tuple[float, ...]
    small: tuple[float, ...]
    refused: float

    def table(self) -> Tables:
        tables: Tables = self.sampler(scale=1.0)._table()
        return tables


GAUSSIAN = Law(
    sampler=RoundedGaussian,
    tail=lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2,
    quantile=lambda p: mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
    variance=1,
    reach=39,
    far=40,
    scales=SCALES,
    small=(1.0, 1.5, 16.0),
    refused=0.5,
)
LAPLACE = Law(
    sampler=RoundedLaplace,
    tail=lambda x: mpmath.exp(-x) / 2,
    quantile=lambda p: -mpmath.log(2 * p),
    variance=2,
    reach=50,
    far=200,
    scales=(2.0**-6, 0.3, *SCALES),
    small=(2.0**-6, 0.3, 1.0, 16.0),
    refused=0.015,
)
laws = pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=["Gaussian", "Laplace"])
tables = pytest.mark.parametrize("table", ["coarse", "fine"])


def of_each(select: Callable[[Law], tuple[float, ...]]) -> pytest.MarkDecorator:
    """Each law with each of its scales."""
    cases = [(law, scale) for law in (GAUSSIAN, LAPLACE) for scale in select(law)]
    ids = [f"{law.sampler.__name__}-{scale}" for law, scale in cases]
    return pytest.mark.parametrize(("law", "scale"), cases, ids=ids)


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workdps(80):
        yield


class Chosen:
    """Words that a test has written down, and how many of them were asked for."""

    policy: ClassVar[str] = "chosen"

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


def boundary(law: Law, value: int, scale: float) -> tuple[int, int]:
    """Cell of 64 bits where the draw passes from `value` + 1 to `value`, and the next 64 bits."""
    p = law.tail((mpmath.mpf(2 * value + 1) / 2) / mpmath.mpf(scale))
    bits = int(mpmath.floor(p * mpmath.mpf(2) ** 128))
    return bits >> 64, bits & (2**64 - 1)


def polynomials(law: Law, table: Table) -> Polynomials:
    found: Polynomials = getattr(law.table(), table)
    return found


def table_path(
    law: Law, words: list[int], scale: float, table: Table = "fine"
) -> tuple[list[int], list[int]]:
    drawn = np.zeros(len(words), dtype=np.int64)
    open_words = polynomials(law, table).round(np.array(words, dtype=np.uint64), scale, drawn)
    return drawn.tolist(), open_words.tolist()


def edge_words() -> list[int]:
    """Words at the ends of the table's rows and octaves, and at both ends of the range."""
    cells = {0, 1, 2**63 - 1, 2**63 - 2, 2**63 - 257, 2**63 - 600}
    for octave in range(36, 63):
        for row in (0, 1, 31, 63):
            edge = (2**octave * (64 + row)) // 64
            cells |= {edge - 1, edge, edge + 1}
    return [2 * cell + sign for cell in sorted(cells) for sign in (0, 1)]


@tables
@of_each(lambda law: law.scales)
def test_table_agrees_with_ball_arithmetic_alone(law: Law, scale: float, table: Table) -> None:
    words = edge_words() + ReplayableWords(1, "table", f"scale {scale}").words(400).tolist()
    drawn, open_words = table_path(law, words, scale, table)
    sampler = law.sampler(scale=scale)
    for index in set(range(len(words))) - set(open_words):
        assert drawn[index] == sampler.decide(words[index], rng=Chosen()), words[index]


@laws
@tables
def test_a_table_that_is_wrong_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, law: Law, table: Table
) -> None:
    found = polynomials(law, table)
    worse = found.coefficients.copy()
    worse[:, 2:] = 0
    wrong = replace(law.table(), **{table: replace(found, coefficients=worse)})
    monkeypatch.setattr(law.sampler, "_table", lambda self: wrong)
    with pytest.raises(AssertionError):
        test_table_agrees_with_ball_arithmetic_alone(law, 2.0**20, table)


@laws
@tables
@pytest.mark.parametrize("points", day_and_night(100, 300))
def test_bounds_hold_between_the_rows_ends(law: Law, table: Table, points: int) -> None:
    """|ẑ − z(p)| ≤ E at random points, with the quantile from mpmath."""
    found = polynomials(law, table)
    rows = 1 << found.row_bits
    cells = (ReplayableWords(2, "rows").words(points) >> np.uint64(1)).astype(np.int64).tolist()
    cells += [
        2**47 + 12345,
        2**39 + 12345,
        2**40 - 1,
        2**41 + 7,
    ]  # the last octaves, where cells are wide
    cells += [2**62 + row * 2**62 // rows for row in range(0, rows, rows // 64)]  # rows' ends
    for cell in cells:
        least = 63 - found.octaves
        if cell < 2**least:
            continue
        double = float(cell)
        mantissa, exponent = np.frexp(double)
        relative = float(mantissa) * 2 - 1
        row = int(relative * rows)
        place = relative - row / rows - 1 / (2 * rows)
        index = 1 + (int(exponent) - 1 - least) * rows + row
        value = 0.0
        for coefficient in found.coefficients[index, ::-1].tolist():
            value = value * place + coefficient
        for p in (mpmath.mpf(cell), mpmath.mpf(cell) + 1 - mpmath.mpf(2) ** -40):
            probability = p / mpmath.mpf(2) ** 64
            assert abs(law.quantile(probability) - value) <= found.bounds[index]


@laws
@pytest.mark.parametrize(("octave", "place"), [(0, 0), (5, 0), (23, 63)])
def test_a_fine_bound_has_room_for_all_that_may_go_wrong(law: Law, octave: int, place: int) -> None:
    """Each part by itself in mpmath; together they are nearly all of it."""
    found, index = law.table().fine, 1 + 64 * octave + place
    rounded = found.coefficients[index].tolist()
    with mpmath.workdps(40):
        u, radius = mpmath.mpf(2) ** -53, mpmath.mpf(2) ** -7
        unit = mpmath.mpf(2) ** (octave - 25)
        start = unit * (1 + mpmath.mpf(place) / 64)

        def quantile(t: Any) -> Any:
            return law.quantile(start + unit * (radius + t))

        exact = mpmath.taylor(quantile, 0, 6)
        cut_off = max(
            abs(quantile(t) - sum(c * t**i for i, c in enumerate(exact))) for t in (-radius, radius)
        )
        sizes = [abs(a) * radius**i for i, a in enumerate(rounded)]
        pairs = zip(exact, rounded, strict=True)
        inexact = sum(abs(c - a) * radius**i for i, (c, a) in enumerate(pairs))
        horner = u * sum(n * size for n, size in zip((1, 3, 5, 7, 9, 11, 12), sizes, strict=True))
        moved = (u * (start + unit / 64) + mpmath.mpf(2) ** -64) * -mpmath.diff(law.quantile, start)
        parts = cut_off + inexact + horner + moved
        total = parts + u * (sum(sizes) + parts)
        assert total <= found.bounds[index] <= 1.1 * total


@laws
def test_a_bound_that_forgets_what_was_cut_off_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, law: Law
) -> None:
    right = law.table()
    fine = np.repeat(right.fine.bounds, 8)[1 - right.coarse.bounds.size :]
    bounds = np.concatenate([[np.inf], fine])
    wrong = replace(right, coarse=replace(right.coarse, bounds=bounds))
    monkeypatch.setattr(law.sampler, "_table", lambda self: wrong)
    with pytest.raises(AssertionError):
        test_bounds_hold_between_the_rows_ends(law, "coarse", points=100)


@laws
@pytest.mark.parametrize(("table", "scale"), [("coarse", 2.0**33), ("fine", 2.0**40)])
def test_bounds_leave_few_words_undecided(law: Law, table: Table, scale: float) -> None:
    words = ReplayableWords(3, "share").words(100_000).tolist()
    assert len(table_path(law, words, scale, table)[1]) < 150


@laws
def test_blocks_of_a_large_sample_are_drawn_in_the_streams_order(law: Law) -> None:
    scale = 2.0**40  # where the fine table leaves some words undecided, too
    sampler = law.sampler(scale=scale)
    words = ReplayableWords(4, "blocks").words(20_000).tolist()
    drawn = sampler.sample((200, 100), rng=ReplayableWords(4, "blocks"))
    exact = [sampler.decide(word, rng=Chosen()) for word in words[::7]]
    assert drawn.ravel()[::7].tolist() == exact


@laws
@pytest.mark.parametrize("scale", [16.0, 1000.0, 2.0**30, 2.0**44])
@pytest.mark.parametrize("deviations", [0.0, 0.3, 1.7, 4.0])
def test_undecided_words_are_taken_and_right(law: Law, scale: float, deviations: float) -> None:
    """The cell with the boundary in it asks for 64 more bits; its neighbours don't."""
    value = int(deviations * scale)
    cell, more = boundary(law, value, scale)
    sampler = law.sampler(scale=scale)
    for sign, side in ((0, 1), (1, -1)):
        word = 2 * cell + sign
        assert table_path(law, [word], scale)[1] == [0]
        if more > 0:
            assert sampler.decide(word, rng=Chosen(more - 1)) == side * (value + 1)
        if more < 2**64 - 1:
            assert sampler.decide(word, rng=Chosen(more + 1)) == side * value
        assert sampler.decide(word - 2, rng=Chosen()) == side * (value + 1)
        assert sampler.decide(word + 2, rng=Chosen()) == side * value


@laws
def test_sample_gives_undecided_words_theirs_after_all_others(law: Law) -> None:
    scale = 1000.0
    (first, one), (second, two) = boundary(law, 700, scale), boundary(law, 1200, scale)
    easy = 2 * boundary(law, 900, scale)[0] + 2**40
    source = Chosen(2 * first, easy, 2 * second + 1, one - 1, two + 1)
    drawn = law.sampler(scale=scale).sample((3,), rng=source)
    assert drawn[0] == 701
    assert drawn[2] == -1200
    assert source.left == []


@laws
def test_a_cell_on_the_boundary_twice_is_split_twice(law: Law) -> None:
    p = law.tail(mpmath.mpf(5) / 2 / 16) * mpmath.mpf(2) ** 192
    bits = int(mpmath.floor(p))
    cell, more, last = bits >> 128, (bits >> 64) & (2**64 - 1), bits & (2**64 - 1)
    sampler = law.sampler(scale=16.0)
    assert sampler.decide(2 * cell, rng=Chosen(more, last - 1)) == 3
    assert sampler.decide(2 * cell, rng=Chosen(more, last + 1)) == 2


@laws
@given(word=st.integers(0, 2**64 - 1))
def test_sign_bit_negates(law: Law, word: int) -> None:
    sampler = law.sampler(scale=37.25)
    drawn, _ = table_path(law, [word, word ^ 1], 37.25)
    assert drawn[0] == -drawn[1]
    assert abs(sampler.decide(word | 2**63, rng=ReplayableWords(0))) < 37.25 * law.reach


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_derivatives_of_a_characteristic_function(place: int, order: int) -> None:
    """By differences, at a small scale, where the terms beyond the first can be seen."""
    square = Fraction(1, 50)

    def transform(t: Any) -> Any:
        return mpmath.exp(-2 * mpmath.pi**2 * t**2 / 50) * mpmath.sincpi(t)

    with mpmath.workdps(40), ctx.workprec(128):
        slope = mpmath.diff(transform, place, order)
        found = _derivative_at_integer(to_arb(square), place, order)
        assert abs(mpmath.mpf(str(found.mid().str(30, radius=False))) / slope - 1) < 1e-20


@of_each(lambda law: law.small[:-1])
def test_probabilities_and_moments(law: Law, scale: float) -> None:
    check_probabilities_and_moments(law, scale)


@pytest.mark.nightly
@of_each(lambda law: law.small[-1:])
def test_probabilities_and_moments_of_many_values(law: Law, scale: float) -> None:
    check_probabilities_and_moments(law, scale)


def check_probabilities_and_moments(law: Law, scale: float) -> None:
    s = mpmath.mpf(scale)
    reach = int(law.far * scale) + 2
    total = second = fourth = mpmath.mpf(0)
    for n in range(-reach, reach + 1):
        low, high = (mpmath.mpf(2 * abs(n) + side) / 2 / s for side in (-1, 1))
        exact = law.tail(low) - law.tail(high) if n else 1 - 2 * law.tail(high)
        total, second, fourth = total + exact, second + n**2 * exact, fourth + n**4 * exact
        if abs(n) < 6 * scale:
            enclosure = law.sampler(scale=scale).probability(n)
            assert enclosure.lower <= exact <= enclosure.upper
            assert enclosure.width < 1e-13
    assert abs(total - 1) < mpmath.mpf(10) ** -60
    sampler = law.sampler(scale=scale)
    for enclosure, moment in ((sampler.variance(), second), (sampler.fourth_moment(), fourth)):
        assert enclosure.lower <= moment <= enclosure.upper
        assert enclosure.width < 1e-13
    # The naive variance is outside: that of the real noise is not what is drawn.
    assert not sampler.variance().lower <= law.variance * s * s <= sampler.variance().upper


@laws
def test_replays_and_depends_on_the_stream_alone(law: Law) -> None:
    sampler = law.sampler(scale=2.0**34)  # where some words are undecided
    one = sampler.sample((50, 400), rng=ReplayableWords(9, "one"))
    assert (one == sampler.sample((50, 400), rng=ReplayableWords(9, "one"))).all()
    assert (one != sampler.sample((50, 400), rng=ReplayableWords(9, "two"))).any()
    flat = sampler.sample((20_000,), rng=ReplayableWords(9, "one"))
    assert (one.ravel() == flat).all()
    assert sampler.sample((0, 3), rng=ReplayableWords(9)).shape == (0, 3)


@of_each(lambda law: (float("nan"), law.refused, 0.0, -3.0, 2.0**45, float("inf")))
def test_scale_outside_its_domain(law: Law, scale: float) -> None:
    with pytest.raises(ParameterError, match="scale="):
        law.sampler(scale=scale)


@pytest.mark.parametrize("scale", [2.0**-6, 0.3, 1.0, 7.25, 1000.0])
def test_rounding_keeps_pure_epsilon_and_does_not_lower_it(scale: float) -> None:
    """P[Z = n] ≤ e^(|a|/b) P[Z = n − a] for all n and a in reach, with equality somewhere."""
    probabilities = [ball_probability(scale, n) for n in range(61)]
    with ctx.workprec(256):
        rate = 1 / to_arb(Fraction(scale))
        for a in range(1, 31):
            tightest = arb(1)
            for n in range(-30, 31):
                allowed = (a * rate).exp() * probabilities[abs(n - a)]
                assert not probabilities[abs(n)] > allowed, (n, a)
                if n >= 0:
                    assert probabilities[abs(n)] < allowed, (n, a)
                tightest = tightest.min(1 - probabilities[abs(n)] / allowed)
            assert tightest.contains(0)
            assert tightest.rad() < 1e-40


def test_a_law_that_leaks_at_zero_would_be_noticed() -> None:
    """Truncation towards 0 in place of rounding: P[Z = 0]/P[Z = 1] exceeds e^(1/b)."""
    with ctx.workprec(256):
        rate = 1 / arb(7)
        at_zero, at_one = 1 - (-rate).exp(), (1 - (-rate).exp()) * (-rate).exp() / 2
        assert at_zero > rate.exp() * at_one


def ball_probability(scale: float, value: int) -> arb:
    """P[Z = value] as the difference of two tails, not by the closed form under test."""
    with ctx.workprec(256):
        low, high = (to_arb(Fraction(2 * value + side, 2) / Fraction(scale)) for side in (-1, 1))
        exact = 1 - (-high).exp() if value == 0 else ((-low).exp() - (-high).exp()) / 2
        claimed = RoundedLaplace(scale=scale).probability(value)
        assert claimed.lower <= exact
        assert exact <= claimed.upper
        return exact
