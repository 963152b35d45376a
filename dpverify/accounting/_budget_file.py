"""A budget's file: an SQLite database of settings and a chain of spends, read and checked whole."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from dpverify._decimals import context
from dpverify.accounting.composition.compose import Release, guarantee_of
from dpverify.accounting.composition.filters import FILTERS, Cost, Filter
from dpverify.data.atomic_files import new_file
from dpverify.enclosure import exact_string, rational
from dpverify.errors import BudgetError, BudgetExceededError, OutputError, ParameterError, require
from dpverify.execution.process import this_process
from dpverify.guarantee import Guarantee, PrivacyCurve, check_no_draw

__all__ = ["Spend", "State", "Store", "curve_of", "now", "rounded"]

_APPLICATION, _VERSION = 0x44504247, 1  # "DPBG"
_TABLES = (
    "CREATE TABLE budget (settings TEXT NOT NULL)",
    "CREATE TABLE spends (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
)
_ENTRY: Mapping[str, Any] = {
    "date": str,
    "label": str,
    "release": str,
    "unit": str | None,
    "draws": list,
    "given": list,
}
_SCHEMA = "SELECT sql FROM sqlite_schema ORDER BY name"
_OWN = [(table,) for table in _TABLES]
_WAIT = 10.0  # seconds for another process to finish its spend
_MOST_DIGITS = 10_000
_SHOWN = 6  # significant digits
_SHARED = "give it a path, and all processes spend from one file"
# In one process one transaction at a time, and no fork within: the child's copy would never end.
_alone = threading.RLock()
os.register_at_fork(
    before=_alone.acquire, after_in_parent=_alone.release, after_in_child=_alone.release
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """A release that was spent.

    Attributes
    ----------
    number : its place in the history, from 1
    date : when it was spent, UTC
    label : what its owner calls it
    release : its curve in words
    cost : of each resource of the filter, exact
    unit : whom it protects, where that is known
    draws, given : sources of public draws that it averages over, or knows the realised numbers of
    hash : of this entry, which holds the hash of the one before
    """

    number: int
    date: str
    label: str
    release: str
    cost: Cost
    unit: str | None
    draws: tuple[str, ...]
    given: tuple[str, ...]
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "number": self.number,
            "date": self.date,
            "label": self.label,
            "release": self.release,
            "cost": {key: exact_string(value) for key, value in self.cost.items()},
            "unit": self.unit,
            "draws": list(self.draws),
            "given": list(self.given),
            "hash": self.hash,
        }


class Store:
    """The database, in a file or in memory; one transaction at a time.

    Attributes
    ----------
    path : of the file; None in memory
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any] | None = None) -> None:
        """A new one with these settings; without any, the one that is there."""
        self.path = path
        self._place = None if path is None else path.absolute()  # wherever the process goes
        self._process = this_process()
        self._memory: sqlite3.Connection | None = None
        if settings is None:
            return
        made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        made.executescript(";".join(_TABLES))
        made.execute("INSERT INTO budget VALUES (?)", (_json(settings),))
        made.execute(f"PRAGMA application_id = {_APPLICATION}")
        made.execute(f"PRAGMA user_version = {_VERSION}")
        if path is None:
            self._memory = made
        else:
            with closing(made):
                _check_new(path)
                new_file(path, made.serialize())

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        """A file is shared by all who know its place; what is in memory would be spent twice."""
        if self._place is None:
            raise BudgetError(f"A budget in memory can't be copied or pickled: {_SHARED}.")
        return Store, (self._place,)

    def state(self) -> State:
        """What it holds now, checked."""
        with self._transaction("DEFERRED") as connection:
            return _read(connection)

    def add(
        self,
        release: Release,
        delta: Fraction | None,
        label: str,
        unit: str | None,
        *,
        undone: bool = False,
    ) -> Spend:
        """Spend a release in one transaction, if it fits; `undone`, see whether that would do."""
        with self._transaction("IMMEDIATE", undone=undone) as connection:
            entry = _read(connection).entry(release, delta, label, unit)
            text = _json(entry)
            hashed = _hash(text)
            row = entry["number"], text, hashed
            connection.execute("INSERT INTO spends VALUES (?, ?, ?)", row)
        return _spend(entry, hashed)

    @contextmanager
    def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"], *, undone: bool = False
    ) -> Iterator[sqlite3.Connection]:
        """One transaction, undone after an error; SQLite's errors as ours."""
        try:
            with _alone, self._connected() as connection:
                connection.execute(f"BEGIN {kind}")
                try:
                    yield connection
                except BaseException:
                    if connection.in_transaction:  # a full disk ends it
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("ROLLBACK" if undone else "COMMIT")
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", None)  # none of texts that aren't UTF-8
            busy = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            problem = f"another process holds it for more than {_WAIT:g} s" if busy else str(error)
            raise BudgetError(f"{self.path}: {problem}; nothing was spent.") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise BudgetError(
                f"{self.path}: is damaged, or is not a budget: {error}. Nothing was spent."
            ) from None
        except _DamageError as error:
            raise BudgetError(f"{self.path or 'budget'}: {error}. Nothing was spent.") from None

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            if this_process() != self._process:
                raise BudgetError(
                    f"A budget in memory can only be used in the process that made it: {_SHARED}."
                )
            yield self._memory
            return
        assert self._place is not None  # noqa: S101
        if not os.path.isfile(self._place):  # noqa: PTH113  # never raises
            raise BudgetError(f"{self.path}: there is no such file. dpverify budget new makes one.")
        place = self._place.resolve()
        if place.stat().st_nlink > 1:  # what a kill leaves half done lies beside one name alone
            raise BudgetError(
                f"{self.path}: has several names (hard links), and what is spent under one of them "
                "may be lost under another. Remove all names but one. Nothing was spent."
            )
        uri = f"{place.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_WAIT)
        with closing(connection):
            connection.execute(
                "PRAGMA synchronous = EXTRA"
            )  # a committed spend survives a power cut
            yield connection


def _check_new(path: Path) -> None:
    """Refuse a place with another file's journal, which would be played into the new file."""
    for kind in ("journal", "wal", "shm"):
        left = path.with_name(f"{path.name}-{kind}")
        if os.path.lexists(left):
            raise OutputError(
                f"{left}: belongs to a budget that was at this place. Move it away, or choose "
                "another place."
            )


class _DamageError(Exception):
    """A file that isn't as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A budget at one moment."""

    settings: Mapping[str, Any]
    filter: Filter
    limits: Cost
    first: str
    spends: tuple[Spend, ...]

    @property
    def head(self) -> str:
        """The last entry's hash."""
        return self.spends[-1].hash if self.spends else self.first

    @property
    def spent(self) -> Cost:
        """The sums of all costs."""
        return {
            name: sum((spend.cost[name] for spend in self.spends), Fraction(0))
            for name in self.limits
        }

    @property
    def left(self) -> Cost:
        """The limits without what is spent."""
        spent = self.spent
        return {name: limit - spent[name] for name, limit in self.limits.items()}

    @property
    def odometer(self) -> Fraction:
        """The ε of what was spent."""
        return self.filter.odometer(self.spent, self.limits)

    @property
    def unit(self) -> str | None:
        """Whom it protects: what was stated, or what the first release says that knows it."""
        known = [self.settings["unit"], *(spend.unit for spend in self.spends)]
        return next((unit for unit in known if unit is not None), None)

    def check(self) -> None:
        """Refuse amounts that no budget comes to."""
        target = self.filter
        if not (0 <= target.slack <= target.delta < 1 and target.epsilon > 0):
            raise _DamageError("is of another target than a budget's")
        if not target.sets(self.limits):
            raise _DamageError("has other limits than its filter sets")
        if any(left < 0 for left in self.left.values()):
            raise _DamageError("more was spent than its limits allow")
        unit: str | None = self.settings["unit"]
        averaged, realised = set[str](), set[str]()
        for spend in self.spends:
            if unit not in {None, spend.unit}:
                other = spend.unit or "nobody that it names"
                raise _DamageError(f"entry {spend.number} protects {other}, the budget {unit}")
            if unit is None and spend.number > 1 and _replaces(spend.unit):
                raise _DamageError(f"entry {spend.number} is the first that says whom it protects")
            if _shared(spend.draws, spend.given, averaged, realised):
                raise _DamageError(f"entry {spend.number} shares a public draw with an earlier one")
            unit = spend.unit
            averaged.update(spend.draws)
            realised.update(spend.given)

    def entry(
        self, release: Release, delta: Fraction | None, label: str, unit: str | None
    ) -> dict[str, Any]:
        """The next entry, which fits."""
        curve = curve_of(release)
        promise = None if isinstance(release, PrivacyCurve) else guarantee_of(release)
        if promise is None:
            check_no_draw(curve)
        else:
            self._check_promise(promise)
        unit = unit or (curve.unit if promise is None else promise.adjacency.unit)
        if self.unit not in {None, unit}:
            hint = (
                "Guarantees for different neighbours don't add up. Where one change of the "
                "budget's unit makes at most one change in the records behind this release, state "
                "it: unit=…, on the command line --unit."
            )
            raise ParameterError("unit", unit or "unknown", f"the budget's, {self.unit}", hint)
        if self.unit is None and self.spends and _replaces(unit):
            hint = (
                "The noise that was spent before may be stated for what one record adds, half as "
                "far as the answer moves when one is replaced. Make a budget with its unit, and "
                "state it with each release that doesn't say it: unit=…, on the command line "
                "--unit."
            )
            raise ParameterError("unit", unit, "stated from the first release on", hint)
        cost, left = self.filter.cost(curve, delta), self.left
        for name, amount in cost.items():
            if amount > left[name]:
                raise BudgetExceededError(
                    f"{name}={rounded(amount, ROUND_CEILING)} doesn't fit: "
                    f"{rounded(left[name], ROUND_FLOOR)} of "
                    f"{rounded(self.limits[name], ROUND_FLOOR)} is left. Nothing was spent."
                )
        return {
            "number": len(self.spends) + 1,
            "date": now(),
            "label": label,
            "release": str(curve),
            "cost": {name: exact_string(amount) for name, amount in cost.items()},
            "unit": unit,
            "draws": sorted({draw.source for draw in promise.draws}) if promise else [],
            "given": sorted(set(promise.given)) if promise else [],
            "previous": self.head,
        }

    def _check_promise(self, promise: Guarantee) -> None:
        """Refuse a weaker notion, and a draw that isn't independent of an earlier release."""
        notion = promise.notion
        rule = "differential privacy"
        require(notion == rule, "notion", notion, rule, "No composition is proven for it.")
        sources = {draw.source for draw in promise.draws}
        for spend in self.spends:
            shared = _shared(sources, promise.given, set(spend.draws), set(spend.given))
            if shared:
                raise ParameterError(
                    "draws",
                    ", ".join(sorted(shared)),
                    f"another one than that of spend {spend.number}",
                    "On one public draw releases aren't independent: draw anew with another seed.",
                )


def _replaces(unit: str | None) -> bool:
    """Whether a record is replaced, by the words of `Replace` and `Record`."""
    return unit is not None and "replaced by any other" in unit


def _shared(
    draws: Iterable[str], given: Iterable[str], averaged: set[str], realised: set[str]
) -> set[str]:
    """Sources that a release averages over and an earlier one used, or the other way round."""
    return (averaged | realised).intersection(draws) | averaged.intersection(given)


def _read(connection: sqlite3.Connection) -> State:
    """The whole file, checked: who changed a row by hand finds out here."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise _DamageError("is not a budget")
    if version != _VERSION:
        raise _DamageError(f"is of version {version}; this dpverify reads version {_VERSION}")
    if connection.execute(_SCHEMA).fetchall() != _OWN:  # a trigger could undo a spend
        raise _DamageError("has tables, views or triggers that don't belong in a budget")
    # What other modes commit may lie in a second file, which a copy or a move leaves behind.
    if connection.execute("PRAGMA journal_mode").fetchone() not in (("delete",), ("memory",)):
        raise _DamageError("was set to another journal_mode: set it back to DELETE, in sqlite3")
    # Of a page that was lost, or written twice, the chain of hashes may know nothing.
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise _DamageError("its database pages are inconsistent")
    rows = connection.execute("SELECT settings FROM budget").fetchall()
    try:
        ((text,),) = rows
        settings = json.loads(text)
        _check_types(settings, {"unit": str | None, "created": str, "id": str})
        kind = FILTERS[settings["composition"]]
        target = {name: _number(settings[name]) for name in ("epsilon", "delta", "slack")}
        limits = {name: _number(value) for name, value in settings["limits"].items()}
        first = previous = _hash(text)
        spends = []
        for number, (place, entry, hashed) in enumerate(
            connection.execute("SELECT number, entry, hash FROM spends ORDER BY number"), start=1
        ):
            fields = json.loads(entry)
            same = place == number == fields["number"] and fields["previous"] == previous
            if not (same and hashed == _hash(entry)):
                raise _DamageError(f"entry {number} was changed, or its hash doesn't match")
            _check_types(fields, _ENTRY)
            spends.append(_spend(fields, hashed))
            if any(amount < 0 for amount in spends[-1].cost.values()):
                raise _DamageError(f"entry {number} has a negative cost")
            previous = hashed
        resources = {kind.resource, "delta"}
        if any(cost.keys() != resources for cost in (limits, *(spend.cost for spend in spends))):
            raise _DamageError("has resources that aren't those of its filter")
        state = State(
            settings=settings,
            filter=kind(**target),
            limits=limits,
            first=first,
            spends=tuple(spends),
        )
        state.check()
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise _DamageError(
            f"has values that don't belong in a budget ({type(error).__name__})"
        ) from None
    except RecursionError:
        raise _DamageError("has values that are nested too deeply for a budget") from None
    return state


def _check_types(fields: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    for name, kind in types.items():
        if not isinstance(fields[name], kind):
            raise TypeError(name)
        if kind is list and not all(isinstance(one, str) for one in fields[name]):
            raise TypeError(name)


def _spend(fields: Mapping[str, Any], hashed: str) -> Spend:
    return Spend(
        number=fields["number"],
        date=fields["date"],
        label=fields["label"],
        release=fields["release"],
        cost={name: _number(amount) for name, amount in fields["cost"].items()},
        unit=fields["unit"],
        draws=tuple(fields["draws"]),
        given=tuple(fields["given"]),
        hash=hashed,
    )


def _number(text: str) -> Fraction:
    """An exact decimal or fraction, of no more digits than `exact_string` may write."""
    if "/" in text and len(text) <= _MOST_DIGITS:
        return Fraction(text)
    return rational("amount", text)


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def curve_of(release: Release) -> PrivacyCurve:
    """The curve of a release."""
    return release if isinstance(release, PrivacyCurve) else guarantee_of(release).curve


def now() -> str:
    """The time of an entry."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def rounded(value: Fraction, rounding: str) -> str:
    """A few digits, rounded in this direction."""
    few = context(_SHOWN, rounding)
    number = few.divide(Decimal(value.numerator), Decimal(value.denominator))
    number = few.normalize(number)
    return f"{number:f}" if -7 < number.adjusted() < 17 else f"{number:E}"
