"""smartnoise-sql: queries of a data frame, with the metadata declared (OpenDP's entropy)."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
import snsql

from dpverify.data.adjacency import AddRemove
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_PEOPLE = [{"id": n, "age": 20 + n, "city": "ab"[n % 2], "pay": 1.0 * n} for n in range(4)]
_NEW = {"id": 9, "age": 100, "city": "a", "pay": 4.0}
_PAIRS = ((_PEOPLE, [*_PEOPLE, _NEW]),)
_COLUMNS = {
    "id": {"type": "int", "private_id": True},
    "age": {"type": "int", "lower": 0, "upper": 100},
    "city": {"type": "string"},
    "pay": {"type": "float", "lower": 0.0, "upper": 4.0},
}


def _answered(rows: Any, query: str, options: dict[str, Any], delta: float) -> Any:
    table = {"rows": 100, "row_privacy": False, "max_ids": 1, **options, **_COLUMNS}
    metadata = {"": {"people": {"people": table}}}
    privacy = snsql.Privacy(epsilon=1.0, delta=delta)
    frame = pd.DataFrame(list(rows), columns=list(_COLUMNS))
    reader = snsql.from_df(frame, privacy=privacy, metadata=copy.deepcopy(metadata))
    _header, *answers = reader.execute(query)
    return sorted(answers, key=str)


def entries() -> Iterator[Entry]:
    """All of them."""
    logging.disable(logging.WARNING)
    spent = "epsilon and delta of `Privacy` for one column of noise; one user comes or goes"
    entry = partial(
        Entry, reading=spent, adjacency=AddRemove(user="id"), pairs=_PAIRS[:1], draws=30
    )
    free = {"censor_dims": False}
    for name, query, options, epsilon, delta in (
        ("COUNT(*)", "SELECT COUNT(*) FROM people.people", free, 1, 0.001),
        ("COUNT(DISTINCT id)", "SELECT COUNT(DISTINCT id) FROM people.people", free, 1, 0.001),
        ("SUM of integers", "SELECT SUM(age) FROM people.people", free, 1, 0.001),
        ("SUM of floats", "SELECT SUM(pay) FROM people.people", free, 1, 0.001),
        ("AVG: a sum and a count", "SELECT AVG(age) FROM people.people", free, 2, 0.002),
        (
            "GROUP BY, rare keys censored",
            "SELECT city, COUNT(*) FROM people.people GROUP BY city",
            {"censor_dims": True},
            2,
            0.1,
        ),
    ):
        release = partial(_answered, query=query, options=options, delta=delta)
        yield entry(name=name, function=release, claim=claimed(epsilon, delta))
