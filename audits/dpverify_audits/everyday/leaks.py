"""What goes out beside the noise or instead of it: keys, types, texts, errors, seeds, branches."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.columns import Booleans, Categories, Dates, Integers, Reals, Text
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, Release, exhibit

__all__ = ["EXHIBITS"]

_LETTERS = Table({"letter": Categories(*"abcd")}, rows=(0, 10))
_AGES = Table({"age": Integers(0, 100)}, rows=(0, 10))
_PAID = Table({"paid": Reals(0, 10)}, rows=(0, 10))
_DAYS = Table({"on": Dates("2024-01-01", "2024-12-31")}, rows=(0, 8))
_NAMES = Table({"name": Text(8)}, rows=(0, 8))
_USERS = Table({"id": Integers(1, 4), "paid": Reals(0, 1), "new": Booleans()}, rows=(0, 10))


def _lap(rng: Any, scale: float = 1) -> float:
    return float(rng.laplace(scale=scale))


def _count(rows: Any, rng: Any) -> float:
    return len(rows) + _lap(rng)


def _letters(rows: Any, rng: Any) -> Any:
    counts = Counter(row["letter"] for row in rows)
    return {letter: counts[letter] + _lap(rng) for letter in "abcd"}


def _case(
    name: str, mistake: str, broken: Release, correct: Release = _count, **words: Any
) -> Exhibit:
    return exhibit(name, mistake, broken=broken, correct=correct, **{"domain": _AGES} | words)


def _by_count(rows: Any, rng: Any) -> Any:
    counts = Counter(dict.fromkeys("abcd", 0))
    counts.update(row["letter"] for row in rows)
    return {letter: n + _lap(rng) for letter, n in counts.most_common()}


def _zero_stays(rows: Any, rng: Any) -> Any:
    return {x: (n + _lap(rng) if n else 0.0) for x, n in _exact(rows).items()}


def _exact(rows: Any) -> dict[str, int]:
    counts = Counter(row["letter"] for row in rows)
    return {letter: counts[letter] for letter in "abcd"}


def _small_hidden(rows: Any, rng: Any) -> Any:
    return None if len(rows) < 3 else len(rows) + _lap(rng)


def _small_hidden_after(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + _lap(rng)
    return None if noisy < 3 else noisy


def _report(rows: Any, rng: Any) -> str:
    return f"{len(rows) + _lap(rng):.1f} visitors (from {len(rows)} records)"


def _report_of_noise(rows: Any, rng: Any) -> str:
    noisy = len(rows) + _lap(rng)
    return f"{noisy:.1f} visitors (from about {noisy:.0f} records)"


def _clamped(rows: Any, rng: Any, *, by_data: bool) -> float:
    return float(
        np.clip(sum(r["age"] > 50 for r in rows) + _lap(rng), 0, len(rows) if by_data else 10)
    )


def _until_inside(rows: Any, rng: Any) -> float:
    while not 0 <= (noisy := sum(r["age"] > 50 for r in rows) + _lap(rng)) <= max(len(rows), 1):
        pass
    return float(noisy)


def _old(rows: Any, rng: Any) -> float:
    return float(sum(row["age"] > 50 for row in rows) + _lap(rng))


def _own_seed(rows: Any, rng: Any) -> float:
    return len(rows) + _lap(np.random.default_rng(len(rows)))


_CACHE: dict[int, float] = {}


def _cached(rows: Any, rng: Any) -> float:
    """The noise is drawn once for each number of rows, and kept."""
    return len(rows) + _CACHE.setdefault(len(rows), _lap(rng))


def _branch(rows: Any, rng: Any) -> float:
    return len(rows) + (_lap(rng) if len(rows) < 5 else 0.0)


def _answer_to_all(rows: Any, rng: Any) -> float:
    if any(row["age"] == 42 for row in rows):
        return 42.0
    return len(rows) + _lap(rng)


def _exact_half(rows: Any, rng: Any) -> Any:
    return {"all": len(rows), "old": _old(rows, rng)}


def _digest(rows: Any, rng: Any) -> Any:
    text = repr(sorted(row["age"] for row in rows))
    return len(rows) + _lap(rng), hashlib.sha256(text.encode()).hexdigest()[:8]


def _one_row(rows: Any, rng: Any) -> Any:
    example = rows[int(rng.integers(len(rows)))]["age"] if rows else None
    return len(rows) + _lap(rng), example


def _typed(rows: Any, rng: Any) -> Any:
    total = sum(row["paid"] for row in rows)
    noisy = total + _lap(rng, 10)
    return round(noisy) if total == int(total) else noisy


def _total(rows: Any, rng: Any) -> float:
    return float(sum(row["paid"] for row in rows)) + _lap(rng, 10)


def _shaped(rows: Any, rng: Any) -> Any:
    return np.array([row["paid"] for row in rows]) + rng.laplace(scale=10, size=len(rows))


def _scale_told(rows: Any, rng: Any) -> Any:
    largest = max((row["paid"] for row in rows), default=0.0)
    return sum(row["paid"] for row in rows) + _lap(rng, max(largest, 0.1))


def _asserted(rows: Any, rng: Any) -> float:
    for row in rows:
        if row["paid"] > 9:
            raise ValueError(f"paid={row['paid']} is too much")
    return float(sum(row["paid"] for row in rows)) + _lap(rng, 9)


def _capped(rows: Any, rng: Any) -> float:
    return float(sum(min(row["paid"], 9) for row in rows)) + _lap(rng, 9)


def _empty(rows: Any, rng: Any) -> float:
    return float("nan") if not rows else len(rows) + _lap(rng)


def _uniform(rows: Any, rng: Any) -> float:
    return len(rows) + float(rng.uniform(-3, 3))


def _positive(rows: Any, rng: Any) -> float:
    return len(rows) + abs(_lap(rng))


def _cut(rows: Any, rng: Any) -> float:
    return len(rows) + float(np.clip(_lap(rng), -3, 3))


def _shared(rows: Any, rng: Any) -> Any:
    noise = _lap(rng)
    return {letter: n + noise for letter, n in _exact(rows).items()}


def _twice(rows: Any, rng: Any) -> Any:
    noise = _lap(rng)
    return len(rows) + noise, 2 * len(rows) + noise


def _as_two(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + _lap(rng)
    return noisy, 2 * noisy


def _latest(rows: Any, rng: Any) -> Any:
    return len(rows) + _lap(rng), max((row["on"] for row in rows), default=None)


def _weekdays(rows: Any, rng: Any) -> Any:
    counts = Counter(row["on"].weekday() for row in rows)
    return [counts[day] + _lap(rng) for day in range(7)]


def _weekdays_seen(rows: Any, rng: Any) -> Any:
    counts = Counter(row["on"].strftime("%A") for row in rows)
    return {day: n + _lap(rng) for day, n in sorted(counts.items())}


def _initials(rows: Any, rng: Any) -> Any:
    counts = Counter(row["name"][:1] for row in rows)
    return sorted(letter for letter, n in counts.items() if n + _lap(rng) > 0)


def _longest(rows: Any, rng: Any) -> Any:
    return len(rows) + _lap(rng), max((len(row["name"]) for row in rows), default=0)


def _rows_of_users(rows: Any, rng: Any, *, most: int, scale: float = 1) -> float:
    """What users paid, of so many rows of each."""
    taken: Counter[int] = Counter()
    total = 0.0
    for row in rows:
        taken[row["id"]] += 1
        total += row["paid"] if taken[row["id"]] <= most else 0
    return total + _lap(rng, scale)


def _active(rows: Any, rng: Any, *, distinct: bool) -> float:
    ids = [row["id"] for row in rows]
    return len(set(ids) if distinct else ids) + _lap(rng)


def _means_of_users(rows: Any, rng: Any, *, public: bool) -> float:
    """The mean over users of what each paid on average."""
    paid: dict[int, list[float]] = {}
    for row in rows:
        paid.setdefault(row["id"], []).append(row["paid"])
    means = [float(np.mean(each)) for each in paid.values()]
    if public:
        return sum(means) / 4 + _lap(rng, 1 / 4)
    return (float(np.mean(means)) if means else 0.0) + _lap(rng, 1 / 4)


def _new_users(rows: Any, rng: Any, *, ids: bool) -> Any:
    known = sorted({row["id"] for row in rows if row["new"]})
    return (known if ids else None), len(known) + _lap(rng)


def _not_noised(rows: Any, rng: Any) -> Any:
    return {x: (n + _lap(rng) if n < 5 else float(n)) for x, n in _exact(rows).items()}


def _relative(rows: Any, rng: Any) -> float:
    return len(rows) * (1 + _lap(rng, 0.1))


def _rounded(rows: Any, rng: Any) -> float:
    return 5 * round(len(rows) / 5) + _lap(rng)


def _rounded_after(rows: Any, rng: Any) -> float:
    return 5.0 * round((len(rows) + _lap(rng)) / 5)


_USER: dict[str, Any] = {"domain": _USERS, "adjacency": AddRemove(user="id")}
_LETTER: dict[str, Any] = {"domain": _LETTERS, "correct": _letters}
_PAY: dict[str, Any] = {"domain": _PAID, "correct": _total}

EXHIBITS: tuple[Exhibit, ...] = (
    _case(
        "keys by true counts",
        "Noisy counts, listed in the order of the true ones.",
        _by_count,
        **_LETTER,
    ),
    _case("nothing stays nothing", "A count of 0 gets no noise.", _zero_stays, **_LETTER),
    _case("large counts are safe", "Counts of five and more get no noise.", _not_noised, **_LETTER),
    _case("one noise for all keys", "The same noise is added to all counts.", _shared, **_LETTER),
    _case(
        "small data hidden",
        "None where the true number of rows is below 3.",
        _small_hidden,
        _small_hidden_after,
    ),
    _case(
        "a text with the number",
        "The report's small print has the exact number.",
        _report,
        _report_of_noise,
    ),
    _case(
        "clamped by the data",
        "A noisy count isn't larger than the true number of rows.",
        partial(_clamped, by_data=True),
        partial(_clamped, by_data=False),
    ),
    _case(
        "drawn again until it fits",
        "Noise is drawn again while the count is beyond the data.",
        _until_inside,
        _old,
    ),
    _case("seeded by the number of rows", "The generator is seeded by the data.", _own_seed),
    _case(
        "noise kept in a cache",
        "The noise is drawn once for each number of rows.",
        _cached,
        why="what keeps state between calls has no independent draws: the audit says so, and ends "
        "as inconclusive before it counts any",
    ),
    _case("no noise from five rows on", "A branch on the true count forgets the noise.", _branch),
    _case("if age == 42", "One value has an answer of its own.", _answer_to_all),
    _case("the total is public", "An exact total beside a noisy part.", _exact_half, _old),
    _case("a checksum", "A digest of the rows, for reproducibility.", _digest),
    _case("an example row", "One real row goes along as an illustration.", _one_row),
    _case("NaN for no rows", "An empty data set has an answer of its own.", _empty),
    _case("an int where all is whole", "The type of the answer follows the data.", _typed, **_PAY),
    _case(
        "a noisy value for each row",
        "The length of the answer is the number of rows.",
        _shaped,
        **_PAY,
    ),
    _case(
        "noise by the largest row",
        "The scale of the noise is that of the data.",
        _scale_told,
        **_PAY,
    ),
    _case("asserted, not clipped", "A row out of range raises.", _asserted, _capped, domain=_PAID),
    _case(
        "noise with ends", "Noise with ends: beyond them only the neighbour is possible.", _uniform
    ),
    _case("noise that only adds", "|Laplace| never falls below the truth.", _positive),
    _case("noise cut at three", "Laplace noise clipped to ±3, at δ = 0.", _cut),
    _case("one noise for two answers", "Their difference is exact.", _twice, _as_two),
    _case("noise relative to the count", "Ten per cent of the truth.", _relative),
    _case(
        "rounded before the noise", "One row moves a rounded count by 5.", _rounded, _rounded_after
    ),
    _case("the latest date", "A noisy count, and when the last row came.", _latest, domain=_DAYS),
    _case(
        "the weekdays that came",
        "Keys are those of the data.",
        _weekdays_seen,
        _weekdays,
        domain=_DAYS,
    ),
    _case(
        "the initials that came",
        "Positive noisy counts, of keys of the data.",
        _initials,
        domain=_NAMES,
    ),
    _case("the longest name", "The width of a column.", _longest, domain=_NAMES),
    _case(
        "rows for users",
        "A sum over rows, protected for one of them.",
        partial(_rows_of_users, most=99),
        partial(_rows_of_users, most=1),
        **_USER,
    ),
    _case(
        "five rows, noise for one",
        "Rows of a user are bounded, and the noise isn't raised.",
        partial(_rows_of_users, most=5),
        partial(_rows_of_users, most=5, scale=5),
        **_USER,
    ),
    _case(
        "visits for visitors",
        "Rows are counted where users were meant.",
        partial(_active, distinct=False),
        partial(_active, distinct=True),
        **_USER,
    ),
    _case(
        "a mean over secret users",
        "Divided by how many users there are.",
        partial(_means_of_users, public=False),
        partial(_means_of_users, public=True),
        **_USER,
    ),
    _case(
        "a list of new users",
        "Their numbers are listed.",
        partial(_new_users, ids=True),
        partial(_new_users, ids=False),
        **_USER,
    ),
    _case(
        "the first row",
        "A row by its place, with noise for a mean.",
        lambda rows, rng: rows[0]["age"] + _lap(rng, 10),
        lambda rows, rng: rows[0]["age"] + _lap(rng, 100),
        domain=Table(_AGES.columns, rows=4),
        adjacency=Replace(),
    ),
)
