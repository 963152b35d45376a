"""The pairs of an audit: those that are given or that the mechanism names, checked.

Whatever isn't a pair of two different neighbours, or isn't what the mechanism is a function of, is
refused before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cloudpickle
import numpy as np

from dpverify.auditing.constants import constants_of
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.spaces.base import Space, both_copied, related, require_candidates
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.spaces.rows import Rows
from dpverify.data.adjacency import Edge, Moves
from dpverify.data.columns import Number, Reals
from dpverify.data.domain import Box, is_sparse, shape_of
from dpverify.data.rows import pickled
from dpverify.data.table import Table
from dpverify.errors import PASSING, DPVerifyError, ParameterError, RecordsError, require
from dpverify.privacy import Pair
from dpverify.visible import raised, shown

__all__ = ["known_pairs", "space_of"]

_ROWS = 10_000  # of a data set that a search makes: a thousand of them are copied and compared
_NUMBERS = 10_000_000  # of a matrix that it makes
_FEWER = "Name the pairs, or declare fewer."


def known_pairs(mechanism: Any, pairs: Sequence[Pair] | None) -> Sequence[Pair]:
    """Pairs that are given, or that the mechanism names."""
    if pairs is None:
        own = tuple(mechanism.worst_pairs()) if hasattr(mechanism, "worst_pairs") else ()
        if own and hasattr(mechanism, "admit"):
            return known_pairs(mechanism, own)
        for pair in own:
            _require_neighbours(mechanism, pair)
        return own
    require(isinstance(pairs, Sequence) and bool(pairs), "pairs", pairs, "at least one, in a list")
    pairs = [_of_table(mechanism, pair) for pair in pairs]
    for pair in pairs:
        _require_meant(mechanism, pair)
    names = [pair.name for pair in pairs]
    require(len(set(names)) == len(names), "pairs", names, "of different names")
    return tuple(pairs)


def _of_table(mechanism: Any, pair: Pair) -> Pair:
    """With rows as lists of dicts, where the mechanism's domain is a table of such."""
    table = getattr(mechanism, "domain", None)
    matrices = isinstance(mechanism.adjacency, Moves)
    if matrices or not isinstance(table, Table) or not isinstance(pair, Pair):
        return pair
    try:
        sides = [table.admit(side) for side in (pair.record, pair.neighbour)]
    except RecordsError as error:
        reason = f"of data sets of the table: {error}".removesuffix(".")
        raise ParameterError("pair", shown(pair.name), reason) from None
    return Pair(name=pair.name, record=sides[0], neighbour=sides[1])


def _require_meant(mechanism: Any, pair: Pair) -> None:
    """Refuse a pair that the mechanism isn't one of, or whose sides are no neighbours."""
    require(isinstance(pair, Pair), "pair", pair, _PAIR)
    name, sides = shown(pair.name), (pair.record, pair.neighbour)
    adjacency: Any = mechanism.adjacency
    domain: Any = getattr(mechanism, "domain", None)
    if hasattr(mechanism, "admit"):
        for side in sides:
            mechanism.admit(side)
    elif isinstance(adjacency, Moves):
        shapes = [shape_of(side) for side in sides]
        rule = "two data sets of shape (n, p), with a row for each record"
        flat = all(len(shape) == 2 for shape in shapes)
        require(flat, "pair", f"{name} of shapes {shapes}", rule)
    _require_neighbours(mechanism, pair)
    if domain is not None:
        try:
            for side in sides:
                domain.admit(side)
        except RecordsError as error:
            reason = f"in the declared domain: {error}".removesuffix(".")
            raise ParameterError("pair", name, reason) from None


_PAIR = "a Pair(name=…, record=…, neighbour=…)"


def _require_neighbours(mechanism: Any, pair: Pair) -> None:
    """Refuse a pair, also of the mechanism's own, whose sides aren't two neighbours."""
    require(isinstance(pair, Pair), "pair", pair, _PAIR)
    name, sides = shown(pair.name), (pair.record, pair.neighbour)
    printable = isinstance(pair.name, str) and pair.name.isprintable()
    require(printable, "pair", name, "named by printable characters")
    adjacency: Any = mechanism.adjacency
    both_copied(sides)
    try:
        answers = [related(adjacency, *order) for order in (sides, sides[::-1])]
    except DPVerifyError as error:  # of an adjacency of ours: what it takes
        reason = f"of data sets that {type(adjacency).__name__} relates: {error}"
        raise ParameterError("pair", name, reason.removesuffix(".")) from None
    except PASSING:
        raise
    except BaseException as error:  # whatever an object of the caller's raises
        reason = (
            f"one whose `relates` says whether the sides of {name} are neighbours: {raised(error)}"
        )
        raise ParameterError("adjacency", adjacency, reason) from error
    require(any(answers), "pair", name, f"one of neighbours: {adjacency.unit}")
    require(
        all(answers),
        "adjacency",
        adjacency,
        f"the same in both orders, in which an audit looks at the pair {name}",
        "Let `relates(a, b)` hold where `relates(b, a)` does.",
    )
    require(
        pair.record is not pair.neighbour and not _equal(*map(_dense, sides)),
        "pair",
        name,
        "of two different data sets, and these are equal",
        "Copy one before you change it.",
    )


def _equal(first: Any, second: Any) -> bool:
    """Whether both surely hold the same, by their bytes: 0.0 and −0.0 are two rows."""
    with suppress(Exception):  # whatever entries that can't be written down say
        return pickled(first, cloudpickle.Pickler) == pickled(second, cloudpickle.Pickler)
    return False


def _dense(data: Any) -> Any:
    return data.toarray() if is_sparse(data) else data


def _searched(rows: tuple[int, int]) -> tuple[int, int]:
    """The fewest and the most rows of a data set that a search makes."""
    least, most = rows
    rule = f"at least one size of at most {_ROWS:,}, where pairs are searched for"
    require(least <= _ROWS, "rows", f"{least} to {most}", rule, _FEWER)
    return least, min(most, _ROWS)


def space_of(mechanism: Any, known: Sequence[Pair]) -> Space:
    """What the data sets of a search are made of: as the mechanism says, else as in its pairs."""
    adjacency: Any = mechanism.adjacency
    require_candidates(adjacency)
    domain = getattr(mechanism, "domain", None)
    made: dict[str, Any] = {"adjacency": adjacency, "constants": constants_of(mechanism)}
    if isinstance(domain, Table) and not isinstance(adjacency, Moves):
        return Rows(columns=domain.columns, rows=_searched(domain.rows), **made)
    alone = getattr(mechanism, "of", None) == "record"
    for pair in known:
        matrix = isinstance(pair.record, np.ndarray) or is_sparse(pair.record)
        rule = f"left out, since it makes matrices of numbers and {pair.name!r} holds other data"
        require(alone or matrix, "search", True, rule, "Or declare a Table as the domain.")
    shapes = [(1, *shape_of(pair.record))[-2:] for pair in known]
    attributes = getattr(mechanism, "attributes", None) or next((p for _, p in shapes), 0)
    if isinstance(domain, Table):
        attributes = len(domain.columns)
    rows = getattr(mechanism, "rows", None) or tuple(dict.fromkeys(n for n, _ in shapes))
    if alone or isinstance(adjacency, Edge):
        rows = (1,)
    for what, said in (("number of attributes", attributes), ("number of rows", rows)):
        require(
            bool(said),
            "pairs",
            "missing",
            f"given, since {display_name(mechanism)} names none and doesn't state its {what}",
            "Or declare `attributes` (p) and, for a data set, `rows` (n, one or several), and "
            "pairs are searched for.",
        )
    numbers = int(attributes) * (int(attributes) if isinstance(adjacency, Edge) else min(rows))
    rule = f"a data set of at most {_NUMBERS:,} numbers, where pairs are searched for"
    require(numbers <= _NUMBERS, "attributes, rows", f"{attributes}, {min(rows)}", rule, _FEWER)
    if isinstance(adjacency, Moves):
        rows = tuple(size for size in rows if size * int(attributes) <= _NUMBERS)
        return Matrices(domain=domain, attributes=int(attributes), rows=tuple(rows), **made)
    column: Any = Reals(domain.low, domain.high) if isinstance(domain, Box) else domain
    rule = "a Table, or for matrices a Box or Integers, if rows are added or removed"
    require(isinstance(column, Number), "domain", domain, rule, "Or name the pairs.")
    return Rows(
        **made,
        columns=dict.fromkeys(range(int(attributes)), column),
        rows=_searched((max(min(rows) - 1, 0), max(rows) + 1)),
        matrix=True,
    )
