"""Budgets: what is spent stays spent, exactly once, by whoever spends it."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import dpverify as dpv
from dpverify.accounting import _budget_file
from dpverify.accounting.composition.filters import FILTERS
from dpverify.data.adjacency import Attribute, Record
from dpverify.errors import (
    BudgetError,
    BudgetExceededError,
    DPVerifyError,
    OutputError,
    ParameterError,
)
from dpverify.guarantee import Draw, Guarantee
from tests.helpers.profiles import crossed, thinned

TENTH = dpv.Laplace(scale=10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    dpv.Budget(epsilon=1, delta="1e-6", path=tmp_path / "team.db")
    return tmp_path / "team.db"


def promise(curve: dpv.PrivacyCurve, *sources: str, **options: Any) -> Guarantee:
    return Guarantee(
        curve=curve,
        adjacency=options.pop("adjacency", Attribute(1)),
        randomness="the noise",
        data_choice="at any time",
        theorem="a theorem",
        draws=tuple(Draw(source, source) for source in sources),
        **options,
    )


def taken(budget: dpv.Budget, release: dpv.PrivacyCurve = TENTH, delta: str = "0") -> int:
    """How many of a release are spent until one doesn't fit."""
    for number in itertools.count():
        try:
            budget.spend(release, delta=delta)
        except BudgetExceededError:
            return number
    raise AssertionError


@pytest.mark.parametrize(
    ("number", "least", "most"),
    [
        (Fraction(1, 3), "0.333333", "0.333334"),
        (Fraction(10**17 - 1), "99999900000000000", "1E+17"),
        (Fraction(10**17), "1E+17", "1E+17"),
        (Fraction(1, 10**6), "0.000001", "0.000001"),
        (Fraction(9, 10**7), "9E-7", "9E-7"),
        (Fraction(0), "0", "0"),
    ],
)
def test_amounts_are_rounded_to_the_safe_side(number: Fraction, least: str, most: str) -> None:
    assert _budget_file.rounded(number, ROUND_FLOOR) == least
    assert _budget_file.rounded(number, ROUND_CEILING) == most


@pytest.mark.parametrize("place", [None, "team.db"])
def test_ten_tenths_are_one(place: str | None, tmp_path: Path) -> None:
    budget = dpv.Budget(epsilon=1, path=place and tmp_path / place)
    for number in range(1, 11):
        assert budget.spend(TENTH, label=f"week {number}").number == number
    assert budget.left == {"epsilon": 0, "delta": 0}
    with pytest.raises(BudgetExceededError, match=r"^epsilon=1E-9 doesn't fit: 0 of 1 is left\."):
        budget.spend(dpv.Laplace(scale=10**9))
    assert [spend.label for spend in budget.history] == [f"week {n}" for n in range(1, 11)]
    assert budget.verify() == budget.head == budget.history[-1].hash
    assert "left: epsilon 0 of 1" in str(budget)
    assert budget._repr_html_().count("<tr>") == 3
    assert budget.to_dict()["spent"] == {"epsilon": "1", "delta": "0"}


def test_asking_spends_nothing() -> None:
    budget = dpv.Budget(epsilon=1, delta="1e-6")
    budget.check(TENTH)
    assert budget.cost(5 * TENTH) == {"epsilon": Fraction(1, 2), "delta": 0}
    with pytest.raises(BudgetExceededError):
        budget.check(11 * TENTH)
    assert budget.history == ()
    assert budget.left == budget.limits == {"epsilon": 1, "delta": Fraction(1, 10**6)}
    assert budget.epsilon == 1
    assert budget.delta == Fraction(1, 10**6)
    assert budget.composition == "basic"


def test_it_takes_what_composes(path: Path) -> None:
    budget = dpv.Budget.open(path)
    unit = Attribute(1)
    budget.spend(dpv.ApproxDP(epsilon="0.1", delta="1e-7", adjacency=unit))
    budget.spend(promise(TENTH))

    class Noisy:
        adjacency = unit

        def privacy(self) -> dpv.PrivacyCurve:
            return TENTH

    budget.spend(Noisy())
    budget.spend(dpv.Gaussian(sigma=100), delta="1e-8", unit=unit)
    assert {spend.unit for spend in budget.history} == {unit.unit}
    assert budget.unit == unit.unit
    assert budget.left["delta"] == Fraction(89, 10**8)
    refused: list[Any] = [3, (1, 1e-6), dpv.ZCDP(rho=1)]
    for release in refused:
        with pytest.raises(ParameterError, match=r"^release="):
            budget.spend(release)
    assert len(budget.history) == 4


def test_units_that_differ_are_refused() -> None:
    for budget in (dpv.Budget(epsilon=1, unit=Attribute(1)), dpv.Budget(epsilon=1)):
        budget.spend(promise(TENTH))
        with pytest.raises(ParameterError, match=r"^unit=.* must be the budget's, one attribute"):
            budget.spend(promise(TENTH, adjacency=Record()))
        assert len(budget.history) == 1
    budget = dpv.Budget(epsilon=1, unit="one person")
    for release in (promise(TENTH), TENTH):
        with pytest.raises(ParameterError, match=r"^unit=.* must be the budget's, one person"):
            budget.spend(release)
        budget.check(release, unit="one person")
    with pytest.raises(ParameterError, match=r"^unit=a visit must be the budget's, one person"):
        budget.spend(TENTH, unit="a visit")
    assert len(budget.history) == 0
    assert budget.spend(promise(TENTH), unit="one person").unit == "one person"  # our word


@pytest.mark.parametrize("adjacency", [dpv.Replace(), dpv.Replace(user="name"), Record()])
def test_bare_noise_before_replaced_records_is_ambiguous(adjacency: Any) -> None:
    """As after them: its sensitivity may be what one record adds, or twice that."""
    budget = dpv.Budget(epsilon=1)
    budget.spend(TENTH)
    with pytest.raises(ParameterError, match=r"^unit=.* must be stated from the first release on"):
        budget.spend(promise(TENTH, adjacency=adjacency))
    budget.spend(promise(TENTH, adjacency=dpv.AddRemove()))
    named = dpv.Budget(epsilon=1, unit=adjacency)
    named.spend(TENTH, unit=adjacency)
    named.spend(promise(TENTH, adjacency=adjacency))
    assert len(budget.history) == len(named.history) == 2


def test_public_draws_that_are_not_independent_are_refused() -> None:
    budget = dpv.Budget(epsilon=1)
    budget.spend(promise(TENTH, "matrix 1"))
    budget.spend(promise(TENTH, given=("matrix 2",)))
    for other in (
        promise(TENTH, "matrix 1"),
        promise(TENTH, given=("matrix 1",)),
        promise(TENTH, "matrix 2"),
    ):
        with pytest.raises(
            ParameterError, match=r"^draws=matrix .* another one than that of spend"
        ):
            budget.spend(other)
    budget.spend(promise(TENTH, given=("matrix 2",)))
    weaker = promise(TENTH, notion="individual differential privacy")
    with pytest.raises(ParameterError, match="No composition is proven for it"):
        budget.spend(weaker)
    assert len(budget.history) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0}, r"^epsilon=0 must be positive"),
        ({"epsilon": float("nan")}, r"^epsilon=nan"),
        ({"epsilon": 1, "delta": 1}, r"^delta=1 must be in \[0, 1\)"),
        ({"epsilon": 1, "composition": "gausian"}, "Did you mean gaussian"),
        ({"epsilon": 1, "composition": "gaussian"}, r"^slack=0 must be below delta=0"),
        ({"epsilon": 1, "delta": "1e-6", "slack": "1e-7"}, r"^slack=.* must be left out for basic"),
        (
            {"epsilon": 1, "delta": "1e-6", "slack": 1, "composition": "zcdp"},
            r"^slack=1 must be in \[0, delta=0.000001\]",
        ),
        (
            {"epsilon": 1, "delta": "1e-400", "composition": "zcdp"},
            r"^delta=1e-400 must be 0, or in \[1e-300",
        ),
        ({"epsilon": 1, "unit": "a\nb"}, r"^unit=.* hidden character"),
        ({"epsilon": 1, "unit": 3}, r"^unit=3 must be text"),
        ({"epsilon": 1, "composition": ["basic"]}, "^composition=.* must be basic"),
    ],
)
def test_targets_that_are_none_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        dpv.Budget(**options)


@pytest.mark.parametrize("composition", ["gaussian", "zcdp"])
def test_many_releases_cost_less_than_their_sum(composition: Any) -> None:
    basic = dpv.Budget(epsilon=4, delta="1e-6")
    many = dpv.Budget(epsilon=4, delta="1e-6", composition=composition, slack="1e-8")
    few, more = (taken(budget, dpv.Gaussian(sigma=8), delta="1e-8") for budget in (basic, many))
    assert more > 4 * few
    many.verify()
    # No better than the curve of all, and in the Gaussian filter nothing is lost but the slack.
    whole = more * dpv.Gaussian(sigma=8)
    assert whole.epsilon_at("1e-6").upper <= 4
    if composition == "gaussian":
        assert (whole + dpv.Gaussian(sigma=8)).epsilon_at("1e-6").lower > 4


def test_a_new_one_replaces_nothing(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists, and is not replaced"):
        dpv.Budget(epsilon=9, path=path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with pytest.raises(OutputError, match="can't be written"):
        dpv.Budget(epsilon=9, path=path.parent / "missing" / "team.db")


def entry(connection: sqlite3.Connection, number: int, old: str, new: str) -> None:
    ((text,),) = connection.execute("SELECT entry FROM spends WHERE number = ?", (number,))
    changed = text.replace(old, new)
    assert changed != text
    connection.execute("UPDATE spends SET entry = ? WHERE number = ?", (changed, number))


TAMPERED: dict[str, tuple[Callable[[sqlite3.Connection], object], str]] = {
    "cost": (lambda c: entry(c, 2, '"0.1"', '"0.01"'), "entry 2 was changed"),
    "label": (lambda c: entry(c, 1, "first", "worst"), "entry 1 was changed"),
    "deleted": (
        lambda c: c.execute("DELETE FROM spends WHERE number = 2"),
        "entry 2 was changed, or its hash",
    ),
    "first deleted": (
        lambda c: c.execute("DELETE FROM spends WHERE number = 1"),
        "entry 1 was changed",
    ),
    "renumbered": (
        lambda c: c.executescript(
            "DELETE FROM spends WHERE number = 1; UPDATE spends SET number = number - 1;"
        ),
        "entry 1 was changed",
    ),
    "limit": (
        lambda c: c.execute("UPDATE budget SET settings = replace(settings, ':\"1\"', ':\"9\"')"),
        "entry 1 was changed",
    ),
    "settings": (
        lambda c: c.execute("UPDATE budget SET settings = '{}'"),
        "don't belong in a budget",
    ),
    "an endless limit": (
        lambda c: c.execute(
            "UPDATE budget SET settings = replace(settings, ':\"1\"', ':\"1e99999999\"')"
        ),
        "don't belong in a budget",
    ),
    "too deep": (
        lambda c: c.execute("UPDATE budget SET settings = ?", ("[" * 100_000,)),
        "nested too deeply",
    ),
    "no settings": (lambda c: c.execute("DELETE FROM budget"), "don't belong in a budget"),
    "not JSON": (lambda c: c.execute("UPDATE spends SET entry = 'x'"), "don't belong in a budget"),
    "version": (lambda c: c.execute("PRAGMA user_version = 2"), "is of version 2; this dpverify"),
    "application": (lambda c: c.execute("PRAGMA application_id = 0"), "is not a budget"),
    "table": (
        lambda c: c.execute("DROP TABLE spends"),
        "has tables, views or triggers that don't belong",
    ),
    "trigger": (
        lambda c: c.execute(
            "CREATE TRIGGER undo AFTER INSERT ON spends BEGIN DELETE FROM spends; END"
        ),
        "has tables, views or triggers that don't belong",
    ),
    "a second file": (lambda c: c.execute("PRAGMA journal_mode = wal"), "another journal_mode"),
}


@pytest.mark.parametrize("name", thinned(TAMPERED, 4))
def test_whoever_changes_the_file_is_noticed(name: str, path: Path) -> None:
    budget = dpv.Budget.open(path)
    for label in ("first", "second", "third"):
        budget.spend(TENTH, label=label)
    change, said = TAMPERED[name]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        change(connection)
    for use in (lambda: dpv.Budget.open(path), lambda: budget.spend(TENTH), budget.verify):
        with pytest.raises(BudgetError, match=rf"team\.db: .*{said}"):
            use()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, part in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from places(part, (*path, key))


def written_anew(path: Path, settings: Any, entry: Any) -> None:
    """A history of one spend whose hashes agree."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        text = json.dumps(settings)
        connection.execute("UPDATE budget SET settings = ?", (text,))
        if isinstance(entry, dict):
            entry = entry | {"previous": hashlib.sha256(text.encode()).hexdigest()}
        text = json.dumps(entry)
        row = text, hashlib.sha256(text.encode()).hexdigest()
        connection.execute("UPDATE spends SET entry = ?, hash = ?", row)


WRITTEN: tuple[Any, ...] = (None, [], -1, KeyError)
NUMBERS = ("-0", "1e-400", "1e308", "1e400", "NaN")
"""Tiny, huge, and none at all."""
AMOUNTS = {"epsilon", "delta", "slack", "mu_squared", "rho"}


@pytest.mark.parametrize(("of", "composition"), crossed(["settings", "entry"], FILTERS))
def test_whatever_was_written_anew_is_read_or_refused(
    of: str, composition: Any, tmp_path: Path
) -> None:
    """Values of other types, keys that are missing and odd numbers, with hashes that agree."""
    path = tmp_path / "team.db"
    dpv.Budget(epsilon=1, delta="1e-6", composition=composition, path=path)
    dpv.Budget.open(path).spend(TENTH, unit="a visit")
    with closing(sqlite3.connect(path)) as connection:
        texts = connection.execute("SELECT settings, entry FROM budget, spends").fetchone()
    whole = dict(zip(("settings", "entry"), map(json.loads, texts), strict=True))
    refused = 0
    for *holders, last in places(whole[of]):
        values = WRITTEN + (NUMBERS if last in AMOUNTS else ())
        for value in values:
            changed = copy.deepcopy(whole)
            holder = changed[of]
            for key in holders:
                holder = holder[key]
            if value is KeyError:
                del holder[last]
            else:
                holder[last] = value
            written_anew(path, **changed)
            try:
                found = dpv.Budget.open(path)
                found.check(TENTH, unit="a visit")
                shown = [found.history[0].label, found.history[0].date, str(found.to_dict())]
                assert all(text.isprintable() for text in shown)
            except DPVerifyError as error:
                assert error.exit_code != 4  # noqa: PT017  # or it is read
                refused += 1
    assert refused > 20


HISTORIES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "another unit": ([{"unit": "a visit"}, {"unit": "a row"}], "entry 2 protects a row"),
    "no unit": ([{"unit": "a visit"}, {"unit": None}], "entry 2 protects nobody that it names"),
    "later unit": ([{"unit": None}, {"unit": "a visit"}], ""),
    "later replaced": ([{"unit": None}, {"unit": dpv.Replace().unit}], "entry 2 is the first"),
    "one draw": ([{"draws": ["matrix 1"]}, {"draws": ["matrix 1"]}], "entry 2 shares a public"),
    "averaged": ([{"given": ["matrix 1"]}, {"draws": ["matrix 1"]}], "entry 2 shares a public"),
    "realised": ([{"draws": ["matrix 1"]}, {"given": ["matrix 1"]}], "entry 2 shares a public"),
    "realised twice": ([{"given": ["matrix 1"]}, {"given": ["matrix 1"]}], ""),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_no_budget_would_have_taken_is_refused(name: str, path: Path) -> None:
    """Every hash and sum agrees, but `spend` would have refused an entry."""
    changes, said = HISTORIES[name]
    budget = dpv.Budget.open(path)
    for _ in changes:
        budget.spend(TENTH)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((previous,),) = connection.execute("SELECT settings FROM budget")
        for number, change in enumerate(changes, start=1):
            hashed = hashlib.sha256(previous.encode()).hexdigest()
            ((text,),) = connection.execute("SELECT entry FROM spends WHERE number = ?", (number,))
            previous = json.dumps(json.loads(text) | change | {"previous": hashed})
            row = previous, hashlib.sha256(previous.encode()).hexdigest(), number
            connection.execute("UPDATE spends SET entry = ?, hash = ? WHERE number = ?", row)
    if not said:
        assert budget.verify() == budget.head
        return
    for use in (lambda: dpv.Budget.open(path), lambda: budget.spend(TENTH), budget.verify):
        with pytest.raises(BudgetError, match=rf"team\.db: {said}"):
            use()


def killed_while_spending(path: Path) -> None:
    """What a process leaves that is killed when its pages are written and not yet committed."""
    process = os.fork()
    if process == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN EXCLUSIVE")
        for number in range(2, 200):
            connection.execute("INSERT INTO spends VALUES (?, ?, '')", (number, "x" * 900))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    assert path.with_name(f"{path.name}-journal").exists()


def test_a_second_name_would_lose_what_is_spent_under_it(path: Path) -> None:
    """The journal of a killed process lies beside one name, and undoes what others have written."""
    dpv.Budget.open(path).spend(TENTH)
    other = path.with_name("link.db")
    os.link(path, other)
    killed_while_spending(path)
    for name in (other, path):
        with pytest.raises(BudgetError, match="several names"):
            dpv.Budget.open(name).spend(TENTH)
    other.unlink()
    assert dpv.Budget.open(path).spend(TENTH).number == 2


def test_an_older_journal_is_not_played_into_a_new_file(path: Path) -> None:
    dpv.Budget.open(path).spend(TENTH)
    killed_while_spending(path)
    path.unlink()
    with pytest.raises(OutputError, match=r"team\.db-journal: belongs to a budget that was"):
        dpv.Budget(epsilon=9, path=path)
    assert not path.exists()


def test_a_page_that_was_lost_takes_no_spend_with_it(path: Path) -> None:
    """A leaf of the tree of spends where its root was is a history that ends sooner."""
    budget = dpv.Budget.open(path)
    for _ in range(3):
        budget.spend(TENTH, label="x" * 2000)
    pages = [path.read_bytes()[at : at + 4096] for at in range(0, path.stat().st_size, 4096)]
    for page in pages[3:]:
        path.write_bytes(b"".join([*pages[:2], page, *pages[3:]]))
        with pytest.raises(BudgetError, match="Nothing was spent"):
            dpv.Budget.open(path)


def test_text_that_is_none_is_damage(path: Path) -> None:
    budget = dpv.Budget.open(path)
    budget.spend(TENTH, label="first")
    path.write_bytes(path.read_bytes().replace(b"first", b"fi\xffst"))
    with pytest.raises(BudgetError, match="othing was spent"):
        dpv.Budget.open(path)


def test_a_history_that_was_made_anew_lacks_the_head(path: Path) -> None:
    budget = dpv.Budget.open(path)
    heads = [budget.head]
    for _ in range(3):
        budget.spend(TENTH)
        heads.append(budget.head)
    assert len(set(heads)) == 4
    for head in heads:
        budget.verify(head=head)
    path.unlink()
    dpv.Budget(epsilon=1, delta="1e-6", path=path)
    dpv.Budget.open(path).spend(TENTH)
    for head in heads[1:]:
        with pytest.raises(BudgetError, match="this is a different history"):
            budget.verify(head=head)


@pytest.mark.parametrize(
    ("epsilon", "delta", "composition"),
    crossed(
        ["1e-400", "1e-320", "1e150", "1e300"],
        ["1e-300", "0.99999999999999999999", "1e-6"],
        FILTERS,
    ),
)
def test_targets_beyond_doubles(composition: Any, epsilon: str, delta: str) -> None:
    try:
        budget = dpv.Budget(epsilon=epsilon, delta=delta, composition=composition)
        budget.spend(dpv.ApproxDP(epsilon="1e-500"))
    except DPVerifyError as error:
        assert error.exit_code != 4  # noqa: PT017  # whichever it is
        return
    budget.verify()
    assert 0 < budget.odometer < 10**200


@pytest.mark.parametrize(
    ("epsilon", "delta", "slack"),
    crossed(["1e-200", "1/3", "700"], ["0.9", "0.999999"], ["0", "1e-7"]),
)
@pytest.mark.parametrize("composition", ["gaussian", "zcdp"])
def test_limits_are_proven_up_to_a_delta_of_1(
    composition: Any, epsilon: str, delta: str, slack: str
) -> None:
    goal = {"epsilon": epsilon, "delta": delta, "slack": slack}
    budget = dpv.Budget(composition=composition, **goal)
    assert budget.verify() == budget.head


@pytest.mark.parametrize("composition", FILTERS)
def test_limits_beyond_the_theorem_are_noticed(
    composition: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = FILTERS[composition]
    proven = kind.limits
    more = {"basic": "epsilon", "gaussian": "mu_squared", "zcdp": "rho"}[composition]

    def raised(self: Any) -> dict[str, Fraction]:
        limits = proven(self)
        return {**limits, more: limits[more] * Fraction(1001, 1000)}

    monkeypatch.setattr(kind, "limits", raised)
    budget = dpv.Budget(epsilon=1, delta="1e-6", composition=composition, path=tmp_path / "b.db")
    with pytest.raises(BudgetError, match="the limits aren't proven"):
        budget.verify()


@pytest.mark.parametrize(("composition", "least"), [("gaussian", 1e-5), ("zcdp", 1e-3)])
def test_the_odometer_holds_at_all_times(composition: Any, least: float) -> None:
    """The probability that the loss is ever above it, over all paths, against its δ."""
    budget = dpv.Budget(epsilon=8, delta="0.02", composition=composition)
    keep = Fraction(525, 1000)
    (step,) = (
        cost
        for name, cost in budget.cost(dpv.RandomizedResponse(keep=keep)).items()
        if name != "delta"
    )
    resource = next(iter(budget.limits))
    rule = FILTERS[composition](epsilon=budget.epsilon, delta=budget.delta)
    loss = math.log(keep / (1 - keep))
    alive, above = np.array([1.0]), 0.0  # by the number of answers that were kept
    for number in range(1, int(budget.limits[resource] / step) + 1):
        alive = np.append(alive, 0) * float(1 - keep) + np.append(0, alive) * float(keep)
        most = rule.odometer({resource: number * step, "delta": Fraction(0)}, budget.limits)
        over = (2 * np.arange(number + 1) - number) * loss > float(most)
        above, alive = above + float(alive[over].sum()), np.where(over, 0, alive)
    assert number > 300
    assert least < above <= 0.02
    for _ in range(2):
        budget.spend(dpv.RandomizedResponse(keep=keep))
    assert 0 < budget.odometer == rule.odometer(budget.spent, budget.limits) < most


def test_the_odometer_of_basic_composition_is_its_sum() -> None:
    budget = dpv.Budget(epsilon=1, delta="1e-6")
    assert budget.odometer == 0
    budget.spend(dpv.ApproxDP(epsilon="0.25", delta="1e-7"))
    assert budget.odometer == Fraction(1, 4)
    assert budget.to_dict()["odometer"] == "0.25"


@pytest.mark.parametrize("path", [3, None, "", "."])
def test_paths_that_are_none_are_refused(path: Any) -> None:
    with pytest.raises(ParameterError, match=r"^path=.*must be (the name of a file|a path)"):
        dpv.Budget.open(path)
    if path is not None:
        with pytest.raises(ParameterError, match=r"^path=.*must be (the name of a file|a path)"):
            dpv.Budget(epsilon=1, path=path)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"\1" * 4096])
def test_other_files_are_no_budgets(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(
        BudgetError, match=r"other\.db: is (not a budget|damaged, or is not a budget)"
    ):
        dpv.Budget.open(path)
    assert path.read_bytes() == content
    with pytest.raises(BudgetError, match="there is no such file"):
        dpv.Budget.open(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()


@contextmanager
def held(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def test_a_locked_file_is_waited_for_and_then_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_budget_file, "_WAIT", 0.05)
    budget = dpv.Budget.open(path)
    with held(path):
        with pytest.raises(BudgetError, match=r"another process holds it for more than 0\.05 s"):
            budget.spend(TENTH)
        with pytest.raises(BudgetError, match="another process holds it"):
            budget.check(TENTH)  # raises what a spend would
        assert budget.left["epsilon"] == 1  # who only reads doesn't wait
    assert budget.spend(TENTH).number == 1


def test_threads_with_connections_of_their_own_share_it(path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda _: taken(dpv.Budget.open(path)), range(4))) == 10
    assert dpv.Budget.open(path).left["epsilon"] == 0
    dpv.Budget.open(path).verify()


def test_threads_share_one_in_memory() -> None:
    budget = dpv.Budget(epsilon=1)
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda _: taken(budget), range(4))) == 10
    budget.verify()


def test_what_is_copied_or_sent_is_the_same_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    budget = dpv.Budget.open(path.name)
    sent = pickle.loads(pickle.dumps(budget))  # noqa: S301
    for other in (sent, copy.deepcopy(budget), copy.copy(budget)):
        other.spend(TENTH)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    dpv.Budget(epsilon=5, path=path.name)
    assert budget.spend(TENTH).number == 4
    assert dpv.Budget.open(path).left["epsilon"] == Fraction(6, 10)


@pytest.mark.parametrize("way", [pickle.dumps, copy.deepcopy])
def test_one_in_memory_is_there_once(way: Callable[[object], object]) -> None:
    with pytest.raises(BudgetError, match="can't be copied or pickled: give it a path"):
        way(dpv.Budget(epsilon=1))


def test_a_forked_process_spends_nothing_in_memory() -> None:
    budget = dpv.Budget(epsilon=1)
    assert _spent(budget)
    child = os.fork()
    if child == 0:
        os._exit(_spent(budget))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(budget.history) == 1


def test_a_forked_process_of_the_same_number_spends_nothing_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the first process of a new namespace may have, with a parent that was the first of its."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    test_a_forked_process_spends_nothing_in_memory()


def test_a_process_that_is_forked_while_a_thread_spends_can_spend(path: Path) -> None:
    budget, within, done = dpv.Budget.open(path), threading.Event(), threading.Event()

    def spend_slowly() -> None:
        with budget._store._transaction("IMMEDIATE"):
            within.set()
            done.wait(0.05)

    thread = threading.Thread(target=spend_slowly)
    thread.start()
    within.wait()
    child = os.fork()  # which waits for the thread
    if child == 0:
        signal.alarm(5)  # what hangs is ended
        os._exit(not _spent(budget))
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(budget.history) == 1


def _spent(budget: dpv.Budget) -> bool:
    try:
        budget.spend(TENTH)
    except BudgetError:
        return False
    return True


SPENDER = """
import sys
import dpverify as dpv
from dpverify.errors import BudgetExceededError
budget = dpv.Budget.open(sys.argv[1])
print("ready", flush=True)
try:
    while True:
        print(budget.spend(dpv.Laplace(scale=int(sys.argv[2]))).number, flush=True)
except BudgetExceededError:
    pass
"""


def started(path: Path, scale: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SPENDER, str(path), str(scale)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.nightly
def test_processes_never_spend_the_same(path: Path) -> None:
    runs = [started(path, 100) for _ in range(3)]
    numbers = [int(line) for run in runs for line in run.communicate()[0].split()[1:]]
    assert sorted(numbers) == list(range(1, 101))
    assert dpv.Budget.open(path).left["epsilon"] == 0
    dpv.Budget.open(path).verify()


@pytest.mark.nightly
@pytest.mark.parametrize("after", [1, 5, 20])
def test_a_killed_process_loses_nothing(after: int, path: Path) -> None:
    """What it said that it spent is there, and at most one more; and the next one can spend."""
    run = started(path, 10**6)
    assert run.stdout is not None
    said = [run.stdout.readline() for _ in range(after + 1)][1:]
    os.kill(run.pid, signal.SIGKILL)
    said += run.communicate()[0].split()
    budget = dpv.Budget.open(path)
    budget.verify()
    assert len(budget.history) - len(said) in {0, 1}
    budget.spend(TENTH)


class Spending(RuleBasedStateMachine):
    """A file and a plain list of numbers have to agree, whatever is done in which order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "team.db"
        self.budget = dpv.Budget(epsilon=2, delta="1e-3", path=self.path)
        self.costs: list[tuple[Fraction, Fraction]] = []
        self.heads = [self.budget.head]

    def teardown(self) -> None:
        self.folder.cleanup()

    def left(self) -> tuple[Fraction, Fraction]:
        return (
            2 - sum((cost[0] for cost in self.costs), Fraction(0)),
            Fraction(1, 1000) - sum((cost[1] for cost in self.costs), Fraction(0)),
        )

    @rule(
        epsilon=st.fractions(0, 1, max_denominator=12),
        delta=st.sampled_from([Fraction(0), Fraction(1, 10**4), Fraction(1, 3000)]),
        count=st.integers(1, 3),
    )
    def spend(self, epsilon: Fraction, delta: Fraction, count: int) -> None:
        release = count * dpv.ApproxDP(epsilon=epsilon, delta=delta)
        whole = count * epsilon, 1 - (1 - delta) ** count
        fits = all(cost <= left for cost, left in zip(whole, self.left(), strict=True))
        try:
            self.budget.spend(release, label=f"{count}")
        except BudgetExceededError:
            assert not fits
        else:
            assert fits
            self.costs.append(whole)
            self.heads.append(self.budget.head)

    @rule()
    def open_again(self) -> None:
        self.budget = dpv.Budget.open(self.path)

    @rule()
    def ask(self) -> None:
        self.budget.cost(TENTH)
        with pytest.raises(BudgetExceededError):
            self.budget.check(dpv.Laplace(scale="0.1"))

    @precondition(lambda self: len(self.heads) > 1)
    @rule(place=st.integers(0, 20))
    def verify(self, place: int) -> None:
        self.budget.verify(head=self.heads[place % len(self.heads)])

    @invariant()
    def agrees(self) -> None:
        assert tuple(self.budget.left.values()) == self.left()
        assert min(self.budget.left.values()) >= 0
        assert [tuple(s.cost.values()) for s in self.budget.history] == self.costs


TestSpending = Spending.TestCase
TestSpending.settings = settings(max_examples=3, stateful_step_count=8, deadline=None)
