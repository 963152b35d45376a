"""Adapters: other people's mechanisms, audited as they stand.

An audit draws from anything that has `release(records, *, rng)`, an adjacency and a claim. `adapt`
makes that of a plain function, of a `Command`, of an object with `randomise` (diffprivlib), with
`quick_result` (PyDP) or with `fit` (scikit-learn), and of one with `input_carrier_type` that is
called (OpenDP). `interfaces` says how each is called, without importing those libraries.

**Of what it is a function.** A function of one record and a function of a data set are different
mechanisms, and neither can be told from the other by looking. So the adjacency says which it is
(`of`), or the caller does: `of="record"` gets one record of shape (p,), `of="dataset"` gets the
whole data set of a pair, as the pair holds it. A pair that doesn't fit is refused before anything
is drawn.

**Replay.** A function of a record and numpy's generator gets one that is seeded from the audit's
words, a new one for every call, so that its audit gives the same draws each time. Whatever draws
its own randomness can't be replayed: its audit keeps its level, but a second run may end otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.arrays import as_numbers
from dpverify.auditing.outputs.foreign import several
from dpverify.auditing.outputs.values import Value, kept
from dpverify.auditing.targets.command import Command
from dpverify.auditing.targets.interfaces import Element, Takes, interface_of
from dpverify.data.adjacency import Adjacency, Moves, Of
from dpverify.data.columns import Number
from dpverify.data.domain import Domain, is_sparse, shape_of
from dpverify.data.rows import copied, copies
from dpverify.data.table import Table
from dpverify.enclosure import Real
from dpverify.errors import ParameterError, require, require_known, require_text
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import count, truth
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.generators import generators
from dpverify.sampling.words import Words
from dpverify.visible import shown

__all__ = ["Adapted", "adapt"]

_MOST = 1_000_000  # items of an iterator that is released for one row of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted(Mechanism):
    """A mechanism made of a callable.

    Attributes
    ----------
    function : called once for each draw
    of : what with: one record, or a data set
    takes : the data themselves, one of Python's own numbers, or a list of them
    element : what each of Python's own numbers must be; "any" leaves it as it is recorded
    generator : how it takes numpy's generator: second ("") or by this name; None if it doesn't
    adjacency, claim : whom it says it protects, and how well
    domain : of the records; None where it is all numbers
    attributes, rows : p and the possible n of the data sets that an audit makes; None where it
        can't make any, and pairs must be named
    name : what a person calls it
    many : whether the function gives many outputs, as many as its second argument says
    pairs : at which it is audited where nobody names others
    """

    function: Callable[..., Any]
    of: Of
    takes: Takes
    element: Element
    generator: str | None
    adjacency: Adjacency
    claim: PrivacyCurve
    domain: Domain | Number | Table | None
    attributes: int | None
    rows: tuple[int, ...] | None
    name: str
    many: bool = False
    pairs: tuple[Pair, ...] = ()

    @property
    def replayable(self) -> bool:
        """Whether the audit's words decide all that it draws."""
        return self.generator is not None

    @property
    def _table(self) -> Table | None:
        """Of what data sets are rows, where they aren't matrices."""
        if isinstance(self.domain, Table) and not isinstance(self.adjacency, Moves):
            return self.domain
        return None

    @property
    def recordable(self) -> bool:
        """Whether its noise is asked of the generator in this process."""
        return not isinstance(self.function, Command)

    def privacy(self) -> PrivacyCurve:
        """The claim."""
        return self.claim

    def worst_pairs(self) -> Sequence[Pair]:
        """Those that it was made with; none, and they are searched for."""
        return self.pairs

    def admit(self, data: Any) -> None:
        """Refuse data that it can't be called with, as it is declared.

        Raises
        ------
        ParameterError
            If they are several records for a function of one, have other attributes than those
            that were declared, or hold what it doesn't take.
        """
        if self.of == "record":
            self._argument(_only_row(data))
            attributes = shape_of(data)[-1]
        elif self._table is not None:
            self._argument(self._table.admit(data))
            return
        elif self.takes == "data" and not isinstance(self.adjacency, Moves):
            return  # whatever the adjacency relates
        else:
            self._argument(data)
            if self.takes == "data":
                _require_rows(data)
            attributes = 1 if len(shape_of(data)) == 1 else shape_of(data)[1]
        require(
            self.attributes in (None, attributes),
            "attributes",
            self.attributes,
            f"{attributes}, as in the pairs",
            "Name pairs of so many, or leave out one of the two.",
        )

    def release(self, records: Any, *, rng: Words) -> Any:
        """One output of a data set, or of one record; of several records, one for each of them."""
        return self.releaser(records, 1, rng=rng)()

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], Any]:
        """Release the data set at each of so many calls; the generators' seeds are made at once."""
        if not self.replayable:
            return self._releaser(records, repeat(None))
        rows = 1 if self.of == "dataset" else len(np.atleast_2d(records))
        return self._releaser(records, generators(rng, rows * count))

    @property
    def release_many(self) -> Callable[..., Any]:
        """So many outputs at once, of a function that makes them so.

        Raises
        ------
        AttributeError
            If it makes one at a time.
        """
        if not self.many:
            raise AttributeError("release_many")

        def released(data: Any, count: int, *, rng: Words) -> Any:
            made = next(generators(rng, 1)) if self.replayable else None
            return self._answer(_only_row(data) if self.of == "record" else data, count, made)

        return released

    def with_generator(self, records: Any, rng: Any) -> Any:
        """Release with a generator of the caller's, which a grey-box check records."""
        return self._releaser(records, repeat(rng))()

    def _releaser(self, data: Any, made: Iterator[Any]) -> Callable[[], Any]:
        """Release with the generators that are made, one each time that the function is called."""
        if self.of == "dataset":
            return self._answering(data, made)
        answers = [self._answering(row, made) for row in np.atleast_2d(data)]
        return answers[0] if len(answers) == 1 else lambda: _stacked([give() for give in answers])

    def _answering(self, data: Any, made: Iterator[Any]) -> Callable[[], Any]:
        """One output at each call, with the next generator: how it is called is settled once."""
        if self.many:
            return lambda: several(self._answer(data, 1, next(made)), 1, self.name)[0]
        function, name = self.function, self.generator
        if self._table is not None and self.takes == "data":
            argument = self._table.maker(data)
        elif self.takes == "data":
            argument = copies(data)
        else:
            argument = partial(self._argument, data)
        match name:
            case None:
                return lambda: function(argument())
            case "":
                return lambda: function(argument(), next(made))
        return lambda: function(argument(), **{name: next(made)})

    def _answer(self, data: Any, count: int, generator: Any) -> Any:
        """What one call gives for so many outputs, which whoever draws them checks."""
        named = {self.generator: generator} if self.generator else {}
        second = (generator,) if self.generator == "" else ()
        return self.function(self._argument(data), count, *second, **named)

    def _argument(self, data: Any) -> Any:
        """What the function is called with for one record, or for a data set."""
        if self._table is not None:
            data = self._table.made(data)  # a new one each time
        elif self.takes == "data":
            data = copied(data)
        if self.takes == "data":
            return data
        if self.of == "dataset":
            _require_numbers(data)
        numbers = [_as_element(self.element, value) for value in np.asarray(data).ravel().tolist()]
        return numbers[0] if self.takes == "number" else numbers


def adapt(
    function: Any,
    *,
    adjacency: Adjacency,
    claim: PrivacyCurve,
    of: Of | None = None,
    domain: Domain | Number | Table | None = None,
    attributes: Real | None = None,
    rows: Real | Sequence[Real] | None = None,
    name: str | None = None,
    many: bool = False,
    pairs: Sequence[Pair] = (),
) -> Mechanism:
    """Make a mechanism of a function, a command, or an object of another library.

    Parameters
    ----------
    function : f(data, rng) with numpy's generator, f(data), a `Command`, an object with
        `randomise`, `quick_result` or `fit`, or a measurement with `input_carrier_type`. These, and
        objects with `randomise` or `quick_result`, get Python's own numbers: floats, whole ones or
        truth values as they want them: a measurement says what it takes, an object with
        `randomise` is asked once, by a call with 0. Of an object with `fit` a copy is fitted for
        every draw, and what it learned, attributes that end in `_`, is the output; data that are a
        tuple (X, y) are its two arguments. A function's second parameter without a default, or one
        named `rng` or `generator`, is the generator.
    adjacency, claim : whom it says it protects, and how well; the adjacency is one of
        `dpverify.data.adjacency`, or an object with `unit` and `relates(data, neighbour)`
    of : "record" for a function of one record, called with an array of shape (p,); "dataset" for
        one of a whole data set, called with a copy of what a pair holds: a matrix of shape (n, p)
        or, with an adjacency of your own, anything. An adjacency of graphs or matrices says so
        itself; an object that takes a single number is of one record; anything else is declared.
    domain : of the records, or a Table, whose rows are then those of a data set; None where it is
        all numbers
    attributes : p of the data that an audit makes; needed unless pairs are named; of a Table its
        columns
    rows : n of the data sets that an audit makes, one or several sizes; needed for a function of a
        data set unless pairs are named. Some bugs show at some sizes only.
    name : for messages; by default the function's own
    many : whether the function makes many draws at once: f(data, n, rng) or f(data, n), which gives
        n outputs. That they are independent is the caller's word, which no audit of them tests.
    pairs : neighbours at which it is audited where the audit names no others; by default they are
        searched for

    Raises
    ------
    ParameterError
        If it isn't said of what it is a function, or the adjacency says otherwise; if the function
        can't be called with data, or data and a generator; if a measurement or object takes
        something else than numbers.
    """
    for part in ("unit", "relates"):
        good = hasattr(adjacency, part) and not isinstance(adjacency, type)
        require(good, "adjacency", adjacency, "an object with `unit` and `relates`", _ADJACENCY)
    require(
        domain is None or isinstance(domain, Domain | Number | Table),
        "domain",
        domain,
        "a Table, Integers or Reals, or a domain (dpverify.data.domain)",
    )
    call = interface_of(function, many=truth("many", many))
    if name is not None:
        require_text("name", name)
    listed = isinstance(pairs, Sequence) and all(isinstance(pair, Pair) for pair in pairs)
    require(listed, "pairs", shown(pairs), "a list of pairs")
    own = function.name if isinstance(function, Command) else type(function).__name__
    name = name or str(getattr(function, "__name__", own))
    kind = _declared(of, adjacency, call.takes, tabular=isinstance(domain, Table))
    attributes, sizes = _sizes(kind, call.takes, domain, attributes, rows)
    return Adapted(
        function=call.function,
        of=kind,
        takes=call.takes,
        element=call.element,
        generator=call.generator,
        adjacency=adjacency,
        claim=claim,
        domain=domain,
        attributes=attributes,
        rows=sizes,
        name=name,
        many=call.many,
        pairs=tuple(pairs),
    )


def _sizes(
    of: Of,
    takes: Takes,
    domain: Domain | Number | Table | None,
    attributes: Real | None,
    rows: Real | Sequence[Real] | None,
) -> tuple[int | None, tuple[int, ...] | None]:
    """Attributes of the data sets that an audit makes, and their possible numbers of rows."""
    if takes == "number" or (takes == "numbers" and of == "dataset"):
        rule = "1 for a function of a single number, or of a list of them"
        require(attributes in (None, 1), "attributes", attributes, rule)
        attributes = 1
    if isinstance(domain, Table):
        rule = "left out with a Table, which declares it"
        for what, said in (("attributes", attributes), ("rows", rows)):
            require(said is None, what, said, rule)
        attributes = len(domain.columns)
        rows = (max(domain.rows[0], 1), domain.rows[1]) if of == "dataset" else None
    return None if attributes is None else count("attributes", attributes), _rows(of, rows)


def _rows(of: Of, rows: Real | Sequence[Real] | None) -> tuple[int, ...] | None:
    """Possible numbers of rows; None where nobody says."""
    if of == "record":
        require(rows is None, "rows", rows, "left out for a function of one record", _WAYS)
        return (1,)
    if rows is None:
        return None
    several: Any = rows if isinstance(rows, list | tuple | range) else [rows]
    require(bool(several), "rows", rows, "at least one size")
    far = isinstance(rows, range) and abs(rows[-1] - rows[0]) > _MOST
    require(not far, "rows", rows, f"a range of at most {_MOST:,}", "Name a few sizes.")
    return tuple(count("rows", size) for size in several)


_ADJACENCY = "As dpv.Attribute(1) for functions of a record and dpv.AddRemove() of a data set are."
_WAYS = (
    'Declare of="record" for a function of one record, of shape (p,), or of="dataset" for a '
    "function of a whole data set, of shape (n, p)."
)


def _declared(of: Of | None, adjacency: Any, takes: Takes, *, tabular: bool) -> Of:
    """Of what it is a function: as its caller says, or its adjacency, or its own interface."""
    says: Of | None = getattr(adjacency, "of", None)
    who = type(adjacency).__name__
    if takes == "number":
        require(says != "dataset", "adjacency", adjacency, "of records, for a single number")
        says, who = "record", "a mechanism of a single number"
    of = says if of is None else of
    if of is not None:
        require_known("of", of, get_args(Of))
    rule = "one of rows that are added, removed or replaced, for rows of a Table"
    way_out = "Take AddRemove() or Replace(); or declare `of`, for numbers of the table's columns."
    require(of is not None or not tabular, "adjacency", adjacency, rule, way_out)
    if of is None:
        raise ParameterError("of", "missing", "declared", _WAYS)
    require(
        says in (None, of),
        "of",
        of,
        f"{says} for {who}",
        f"Leave it out if the function is one of a {says}; else take an adjacency of {of}s.",
    )
    return of


def _only_row(data: Any) -> NDArray[Any]:
    """The record of a data set of one, as a row of numbers."""
    shape = () if is_sparse(data) else shape_of(data)
    if shape and shape in ((shape[-1],), (1, shape[-1])):
        row = np.asarray(data).reshape(-1)
        if row.dtype.kind in "biuf":
            return row
    raise ParameterError(
        "pair",
        _described(data),
        "one record, of numbers and of shape (p,) or (1, p), for a function of one",
        'Name pairs of one record each; or declare of="dataset", and the function gets the whole.',
    )


def _require_rows(data: Any) -> None:
    require(
        len(shape_of(data)) == 2,
        "pair",
        _described(data),
        "a data set of shape (n, p), with a row for each record",
        "Make it a matrix: [[1], [2]] are two records of one number, and [[1, 2]] is one "
        "record of two numbers. "
        'For a function of one record of shape (p,) declare of="record"; with an adjacency of '
        "your own (`unit` and `relates`) a data set may be anything.",
    )


def _require_numbers(data: Any) -> None:
    shape = shape_of(data)
    require(
        len(shape) == 1 or (len(shape) == 2 and shape[1] == 1),
        "pair",
        _described(data),
        "a data set of single numbers, of shape (n,) or (n, 1), for a measurement of a vector",
        'For one record of p numbers declare of="record".',
    )


def _described(data: Any) -> str:
    kind = type(data).__name__
    return f"{kind} of shape {shape_of(data)}" if hasattr(data, "shape") else kind


def _as_element(element: Element, value: Any) -> Any:
    match element:
        case "any":
            return value
        case "float":
            return float(value)
        case "whole":
            require(value == int(value), "record", value, "a whole number, for this mechanism")
            return int(value)
        case "truth":
            require(value in (0, 1), "record", value, "0 or 1, for this mechanism")
            return bool(value)


def _stacked(answers: list[Any]) -> Any:
    """An array of numbers, a row each; of other answers a list, or the only one as it is."""
    if len(answers) == 1:
        return answers[0]
    # An iterator is read once: whoever looks at it again finds it empty.
    answers = [list(islice(a, _MOST)) if isinstance(a, Iterator) else a for a in answers]
    if all(type(answer) is type(answers[0]) for answer in answers) and not any(
        isinstance(kept(answer), set | frozenset | Value) for answer in answers
    ):
        with suppress(ValueError):  # ragged
            numbers = as_numbers(answers)
            if numbers.dtype != object:
                return numbers
    return answers
