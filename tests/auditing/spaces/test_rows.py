"""Candidates of data sets whose rows come and go, and what is simpler than they are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.search import shrunk
from dpverify.auditing.spaces.base import Space, related
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.spaces.rows import Rows
from dpverify.data.columns import Column
from dpverify.data.rows import slots
from dpverify.errors import ParameterError
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords

COLUMNS: dict[str, Column] = {
    "id": dpv.Integers(0, 9),
    "sex": dpv.Categories("f", "m", missing=True),
    "note": dpv.Text(length=5),
}
ADJACENCIES = [
    dpv.AddRemove(),
    dpv.AddRemove(k=2),
    dpv.AddRemove(user="id"),
    dpv.AddRemove(k=2, user="id"),
    dpv.Replace(),
    dpv.Replace(k=2),
    dpv.Replace(user="id"),
    dpv.Permutation(),
]
MATRIX = dict.fromkeys(range(2), dpv.Integers(0, 5))


def rows(adjacency: Any, **options: Any) -> Rows:
    return Rows(**{"adjacency": adjacency, "columns": COLUMNS, "rows": (0, 5)} | options)


@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=str)
def test_candidates_are_different_neighbours_of_the_table(adjacency: Any) -> None:
    space = rows(adjacency)
    extremes, drawn = space.extremes(40), space.drawn(30, ReplayableWords(1, "test"))
    assert len(extremes) > 8
    assert len({pair.name for pair in extremes}) == len(extremes)
    assert len(set(map(space.pair_key, drawn))) == len(drawn) == 30
    table = dpv.Table(COLUMNS, rows=(0, 5))
    for pair in [*extremes, *drawn]:
        for side in (pair.record, pair.neighbour):
            assert table.admit(side) == side
        assert adjacency.relates(pair.record, pair.neighbour)
        assert space.key(pair.record) != space.key(pair.neighbour)
    sizes = {len(pair.record) for pair in [*extremes, *drawn]}
    assert {2, 3, 5} <= sizes


def test_numbers_too_small_to_sum_to_the_end_of_a_type_are_tried() -> None:
    small = rows(dpv.AddRemove(), columns={"x": dpv.Reals(0, Fraction(1, 2**1074))})
    tried = [row for pair in small.extremes(40) for row in pair.record]
    assert {"x": 5e-324} in tried


def test_rows_that_the_code_clips_are_summed_to_the_end_of_a_type() -> None:
    space = rows(dpv.AddRemove(), columns={"x": dpv.Reals(0, 1e5)}, rows=(0, 20), constants=(9000,))
    sums = [
        sorted(sum(min(row["x"], 9000) for row in side) for side in (pair.record, pair.neighbour))
        for pair in space.extremes()
    ]
    assert any(low < 2**16 - 1 < high for low, high in sums)


@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=str)
def test_a_shrink_without_conditions_ends_at_few_simple_rows(adjacency: Any) -> None:
    space = rows(adjacency)
    for pair in space.drawn(5, ReplayableWords(2, "test")):
        small = shrunk(pair, space, lambda _: True)
        assert space.fits(small)
        k, swaps = getattr(adjacency, "k", 1), isinstance(adjacency, dpv.Permutation)
        assert len(small.record) + len(small.neighbour) <= 2 * k + 2 * swaps + (
            adjacency == dpv.Replace(user="id")
        )
        assert {row["note"] for row in [*small.record, *small.neighbour]} <= {"a", "b", "", "0"}


def test_all_rows_of_a_user_come_and_go_at_once() -> None:
    pairs = rows(dpv.AddRemove(user="id")).extremes()
    changes = {len(pair.neighbour) - len(pair.record) for pair in pairs}
    assert max(changes) == 5
    assert min(changes) < -1


def test_a_shrink_keeps_what_it_must() -> None:
    row = {"id": 7, "sex": None, "note": "xyz"}
    other = {"id": 3, "sex": "m", "note": "ab"}
    space = rows(dpv.AddRemove())
    pair = Pair(name="found", record=[other, row, other], neighbour=[other, row, other, row])

    def keeps(candidate: Pair) -> bool:
        longer = max(candidate.record, candidate.neighbour, key=len)
        return any(each["id"] >= 5 for each in longer) and len(longer) >= 2

    small = shrunk(pair, space, keeps)
    assert sorted([len(small.record), len(small.neighbour)]) == [1, 2]
    longer = max(small.record, small.neighbour, key=len)
    assert sorted((each["id"], each["sex"], each["note"]) for each in longer) == [
        (0, "f", "a"),
        (5, "f", "a"),
    ]


def test_constants_are_tried_first_and_numbers_beside_them() -> None:
    space = rows(dpv.AddRemove(), constants=(4, "key", 3.5, 999))
    added = [pair.neighbour[-1] for pair in space.extremes() if pair.name.startswith("one row mo")]
    assert {3, 4, 5} <= {row["id"] for row in added}
    assert "key" in {row["note"] for row in added}


def test_matrices_of_rows_that_come_and_go() -> None:
    space = rows(dpv.AddRemove(), columns=MATRIX, rows=(1, 4), matrix=True)
    pairs = [*space.extremes(), *space.drawn(30, ReplayableWords(1, "test"))]
    for pair in pairs:
        assert pair.record.ndim == 2
        assert pair.record.shape[1] == 2
        assert np.array_equal(pair.record, np.rint(pair.record))
        assert 1 <= len(pair.neighbour) <= 4
    assert {5.0} <= {float(value) for pair in pairs for value in pair.neighbour[-1]}
    small = shrunk(pairs[-1], space, lambda _: True)
    assert sorted([len(small.record), len(small.neighbour)]) == [1, 2]


class OneName:
    """An adjacency of somebody's own that makes neighbours."""

    unit = "one note"

    def relates(self, data: Any, neighbour: Any) -> bool:
        return len(data) == len(neighbour)

    def candidates(self, data: Any, space: Space, choose: Any) -> Iterator[Any]:
        for row, new in zip(data, ("a", "b", "c"), strict=False):
            yield [{**row, "note": new}, *data[1:]]


def test_an_adjacency_of_ones_own_may_make_candidates() -> None:
    pairs = rows(OneName()).extremes()
    assert {pair.neighbour[0]["note"] for pair in pairs} >= {"b", "c"}


def test_candidates_may_be_made_in_place() -> None:
    class InPlace(OneName):
        def candidates(self, data: Any, space: Space, choose: Any) -> Iterator[Any]:
            for new in "bc" if data else "":
                data[0]["note"] = new
                yield data

    space = rows(InPlace())
    pairs = [*space.extremes(), *space.drawn(8, ReplayableWords(1, "test"))]
    assert all(map(space.fits, pairs))
    assert {pair.neighbour[0]["note"] for pair in pairs} == {"b", "c"}


@pytest.mark.parametrize("error", [KeyError("note"), SystemExit("note")])
@pytest.mark.parametrize("way", ["relates", "candidates"])
def test_what_an_adjacency_of_ones_own_raises_is_said(way: str, error: BaseException) -> None:
    """An exit, too: its code would be that of the audit."""

    def broken(*_: Any) -> Any:
        raise error

    adjacency = type("Broken", (OneName,), {way: broken})()
    said = rf"`{way}` .*it raised {type(error).__name__}: '?note'?. Or name"
    with pytest.raises(ParameterError, match=said):
        rows(adjacency).extremes()
    pair = dpv.Pair(name="a name", record=[{"note": "a"}], neighbour=[{"note": "b"}])
    if way == "relates":
        with pytest.raises(ParameterError, match=r"says whether the sides of 'a name' are neigh"):
            dpv.audit(len, epsilon=1, adjacency=adjacency, of="dataset", pairs=[pair])


@pytest.mark.parametrize("search", [False, True])
def test_an_adjacency_that_changes_what_it_compares_changes_no_data(search: bool) -> None:
    class Sorting(OneName):
        def relates(self, data: Any, neighbour: Any) -> bool:
            data.sort(key=str)
            neighbour.sort(key=str)
            return super().relates(data, neighbour)

    seen: list[Any] = []

    def first(people: Any, rng: Any) -> float:
        seen.append(people)
        return float(rng.laplace())

    sides = [{"note": "c"}, {"note": "b"}], [{"note": "b"}, {"note": "a"}]
    pair = dpv.Pair(name="a name", record=sides[0], neighbour=sides[1])
    settings: dict[str, Any] = {"draws": 20, "workers": 1, "kinds": ["black-box"]}
    table = dpv.Table({"note": dpv.Categories("a", "b", "c")}, rows=(1, 2))
    told = dpv.audit(
        first,
        epsilon=1,
        adjacency=Sorting(),
        domain=table,
        of="dataset",
        pairs=[pair],
        search=search,
        **settings,
    )
    assert told.verdict == "no_violation_found"
    assert [each for each in sides if each not in seen] == []


def test_what_two_data_sets_share_is_shared_in_the_copies_that_an_adjacency_compares() -> None:
    """Rows without an equality of their own are equal where they are the same object."""

    class OneMore:
        def relates(self, data: Any, neighbour: Any) -> bool:
            return len(data) == len(neighbour) + 1 and data[: len(neighbour)] == neighbour

    class Person:
        pass

    people = [Person(), Person()]
    assert related(OneMore(), people, people[:1])
    assert not related(OneMore(), people, people[1:])


def test_an_adjacency_without_neighbours_there_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"no neighbours. Widen it, or name the pairs"):
        rows(dpv.AddRemove(), rows=(3, 3)).extremes()


def test_which_row_is_which() -> None:
    assert slots([1, 2, 3], [1, 3]) == [(0, 0), (2, 1), (1, None)]
    assert slots([1, 2], [1, 5]) == [(0, 0), (1, 1)]
    assert sorted(slots([1, 2], [2, 1])) == [(0, 1), (1, 0)]


# --- vectors of queries ---------------------------------------------------------------------------


def moves(adjacency: Any, attributes: int = 5, **options: Any) -> set[tuple[float, ...]]:
    space = Matrices(adjacency=adjacency, domain=None, attributes=attributes, **options)
    pairs = [pair for pair in space.extremes() if not pair.record.any()]
    return {tuple(pair.neighbour[0]) for pair in pairs}


def test_the_patterns_of_statdp() -> None:
    patterns = moves(dpv.LInf(1))
    one_above, one_below = (1, 0, 0, 0, 0), (-1, 0, 0, 0, 0)
    rest_below, rest_above = (1, -1, -1, -1, -1), (-1, 1, 1, 1, 1)
    assert {one_above, one_below, rest_below, rest_above} <= patterns
    assert {(1,) * 5, (-1,) * 5, (-1, -1, 1, 1, 1), (1, 1, -1, -1, -1)} <= patterns
    space = Matrices(adjacency=dpv.LInf(1), domain=None, attributes=5)
    both = {(tuple(p.record[0]), tuple(p.neighbour[0])) for p in space.extremes()}
    assert ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1)) in both  # X


def test_every_coordinate_is_tried() -> None:
    for adjacency in (dpv.Attribute(1), dpv.L1Ball(1), dpv.LInf(1), dpv.L2(1)):
        places = {
            np.flatnonzero(move)[0] for move in moves(adjacency) if np.count_nonzero(move) == 1
        }
        assert places == set(range(5))


def test_moves_in_l2_are_as_long_as_they_may_be() -> None:
    for move in moves(dpv.L2(3)):
        assert 2.999 < np.linalg.norm(move) <= 3


def test_whole_numbers_stay_whole() -> None:
    space = Matrices(adjacency=dpv.Attribute("2.5"), domain=dpv.Integers(0, 5), attributes=2)
    pairs = [*space.extremes(), *space.drawn(50, ReplayableWords(1, "test"))]
    for pair in pairs:
        for side in (pair.record, pair.neighbour):
            assert np.array_equal(side, np.rint(side))
    assert max(abs(pair.neighbour - pair.record).max() for pair in pairs) == 2


def test_each_column_has_its_range() -> None:
    table = dpv.Table({"age": dpv.Integers(0, 120), "x": dpv.Reals(-1, 1)}, rows=(1, 1))
    space = Matrices(adjacency=dpv.Record(), domain=table, attributes=2)
    pairs = [*space.extremes(), *space.drawn(50, ReplayableWords(1, "test"))]
    highest = np.max([pair.neighbour[0] for pair in pairs], axis=0)
    assert highest.tolist() == [120, 1]


@pytest.mark.parametrize("adjacency", [dpv.AddRemove(user="id"), dpv.Replace(user="id")], ids=str)
def test_rows_of_a_user_are_also_all_different(adjacency: Any) -> None:
    columns = {"id": dpv.Integers(0, 5), "minute": dpv.Integers(0, 1439), "paid": dpv.Reals(0, 1)}
    pairs = rows(adjacency, columns=columns, rows=(1, 12)).extremes()
    gaps = []
    for pair in pairs:
        users = [{row["id"] for row in side} for side in (pair.record, pair.neighbour)]
        for user in users[0] ^ users[1] or users[1]:
            minutes = sorted(row["minute"] for row in pair.neighbour if row["id"] == user)
            gaps.append(sum(np.diff(minutes) > 30))
    assert max(gaps) >= 8


def test_sizes_at_which_rounding_changes_are_tried() -> None:
    space = rows(dpv.AddRemove(), rows=(0, 200), constants=(50,))
    pairs = space.drawn(160, ReplayableWords(1, "test"))
    sizes = {frozenset((len(pair.record), len(pair.neighbour))) for pair in pairs}
    assert {frozenset((25, 26)), frozenset((50, 51)), frozenset((49, 50))} <= sizes


def test_a_user_is_named_by_a_column() -> None:
    with pytest.raises(ParameterError, match=r"user=ids must be a column.* Did you mean id\?"):
        rows(dpv.AddRemove(user="ids")).extremes()


class EndlesslyTheSame(dpv.AddRemove):
    """Makes one neighbour, again and again."""

    def candidates(self, data: Any, space: Any, choose: Any) -> Iterator[Any]:
        while True:
            yield [*data, {"id": 1, "sex": "f", "note": "a"}]


def test_an_adjacency_that_makes_one_neighbour_for_ever_has_few_extremes() -> None:
    pairs = rows(EndlesslyTheSame()).extremes()
    assert 1 <= len(pairs) <= len(list(rows(EndlesslyTheSame()).bases()))


@pytest.mark.nightly
def test_a_search_for_what_there_is_none_of_ends() -> None:
    class Unrelated(dpv.AddRemove):
        def relates(self, data: Any, neighbour: Any) -> bool:
            tried.append(1)
            return False

    tried: list[int] = []
    assert rows(Unrelated()).drawn(32, ReplayableWords(1, "test")) == []
    assert len(tried) <= 512 * 20


@pytest.mark.parametrize("column", [dpv.Integers(0, 10), dpv.Reals(-10, 3)], ids=str)
@pytest.mark.parametrize("adjacency", [dpv.AddRemove(), dpv.Replace()], ids=str)
def test_sums_cross_the_end_of_a_byte(adjacency: Any, column: Column) -> None:
    space = Rows(adjacency=adjacency, columns={"x": column}, rows=(0, 20))
    sums = [
        sorted(abs(sum(row["x"] for row in side)) for side in (pair.record, pair.neighbour))
        for pair in space.extremes()
    ]
    assert any(low < 128 <= high for low, high in sums)


def test_the_edges_of_a_graph_close_triangles() -> None:
    columns: dict[str, Column] = {"one": dpv.Integers(1, 5), "other": dpv.Integers(1, 5)}
    space = Rows(adjacency=dpv.AddRemove(), columns=columns, rows=(0, 9))
    (edges,) = [base for name, base in space.bases() if "each two values" in name]
    assert len({frozenset(row.values()) for row in edges}) == 9
    assert all(row["one"] != row["other"] for row in edges)


def test_one_row_is_known_among_missing_ones() -> None:
    column = {"x": dpv.Reals(0, 1, missing=True)}
    pairs = rows(dpv.AddRemove(), columns=column).extremes(40)
    assert any(
        len(known) == 1 and known[0] is not None and len(pair.neighbour) > 3
        for pair in pairs
        for known in [[row["x"] for row in pair.neighbour if row["x"] is not None]]
    )


@pytest.mark.parametrize("filled", ["forward", "backward"])
def test_a_row_that_comes_fills_those_that_lack_a_value(filled: str) -> None:
    """The known one before the missing, or behind them, moves the sum by far more than itself."""

    def total(data: Any) -> float:
        last, filled_sum = 0.0, 0.0
        for row in data if filled == "forward" else data[::-1]:
            last = last if row["x"] is None else row["x"]
            filled_sum += last
        return filled_sum

    column = {"x": dpv.Reals(0, 10, missing=True)}
    pairs = rows(dpv.AddRemove(), columns=column).extremes(40)
    assert max(abs(total(pair.record) - total(pair.neighbour)) for pair in pairs) > 25
