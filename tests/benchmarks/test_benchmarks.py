"""The arithmetic of the benchmark table, what it reads from peers, and our reading of one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.__main__ import kept, page, stored
from benchmarks.accountants import Answers
from benchmarks.peers import install
from benchmarks.peers.dpverify import ours
from benchmarks.peers.install import ENVIRONMENTS, HERE, Peer, installed, make, requirements
from benchmarks.peers.protocol import Case, Reply
from benchmarks.peers.sniper import snipe
from benchmarks.speed.accounting import bits, compared, medians
from benchmarks.speed.auditing import LADDER, by_release, by_the_million, reaching
from benchmarks.speed.draws import asked, irreducible
from benchmarks.speed.growth import costs
from benchmarks.speed.table import Growth, Row, growths, markdown
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.enclosure import Enclosure
from tests.helpers.textbook import SUBJECTS

ROW = Row(area="accounting", work="w", unit="ms", ours=1.0, peer="p", theirs=4.0, aim=0.2)
ABSENT = Row(area="auditing", work="w", unit="s", ours=1.0, peer="p", theirs=None, note="a|b")
GROWTH = Growth(
    work="w",
    what="rows",
    sizes=(10, 100, 1_000),
    seconds=(0.1, 0.1, 10.0),
    expected=2,
    why="theory",
)


def test_ratio_and_aim() -> None:
    assert (ROW.ratio, ROW.met) == (0.25, False)
    assert (ABSENT.ratio, ABSENT.met) == (None, None)
    table = markdown([ROW, ABSENT]).splitlines()
    assert table[2] == "| w | ms | 1 | p | 4 | 0.25 | 0.2 | **no** |  |"
    assert table[3] == r"| w | s | 1 | p |  |  |  |  | a\|b |"


def test_growth_is_the_slope_of_logarithms() -> None:
    assert math.isclose(GROWTH.exponent, 1.0)
    assert math.isclose(GROWTH.last, 2.0)
    line = "| w | 10, 100, 1,000 rows | 100, 100, 10000 | 1.00 | 2.00 | 2 | theory |"
    assert growths([GROWTH]).splitlines()[2] == line


def test_costs_are_those_of_each_size() -> None:
    made: list[int] = []

    def work(size: int) -> Any:
        return lambda: made.append(size)

    assert all(seconds >= 0 for seconds in costs(work, (3, 5)))
    assert made == [3] * 18 + [5] * 18  # to warm, to see how long it takes, to warm, and 15 times


def test_the_page_and_its_json_hold_every_row(tmp_path: Path) -> None:
    found: list[Row | Growth] = [ROW, ABSENT, GROWTH]
    text, again = page(found), json.loads(json.dumps(stored(found)))
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Accounting",
        "## Auditing",
        "## Growth",
    ]
    assert [(row["ratio"], row["met"]) for row in again["rows"]] == [(0.25, False), (None, None)]
    assert math.isclose(again["growth"][0]["exponent"], 1.0)
    assert "## Growth" not in page([ROW])
    path = tmp_path / "benchmarks.json"
    assert kept(path) == []
    path.write_text(json.dumps(again), encoding="utf-8")
    assert kept(path) == found
    again["machine"]["numpy"] = "1.0"
    path.write_text(json.dumps(again), encoding="utf-8")
    assert kept(path) == []


# --- peers


def test_every_pin_is_one_version() -> None:
    for file in ENVIRONMENTS.values():
        pins = requirements((HERE / file).read_text(encoding="utf-8"))
        assert pins
        assert all(pin.count("==") == 1 and " " not in pin for pin in pins)
    assert requirements("# a\nb==1  # c\n\nd==2\n") == ["b==1", "d==2"]


def test_one_that_fails_takes_no_other_with_it() -> None:
    asked: list[list[str]] = []

    def pip(environment: str, wanted: Sequence[str]) -> str:
        asked.append([environment, *wanted])
        return "no such thing" if "bad==2" in wanted else ""

    good, bad = make("e", ["good==1", "bad==2"], pip)
    assert (good.name, good.version, good.missing) == ("good", "1", "")
    assert (bad.name, bad.version, bad.missing) == ("bad", "2", "no such thing")
    assert asked == [["e", "good==1", "bad==2"], ["e", "good==1"], ["e", "bad==2"]]


def test_a_peer_is_what_the_installation_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "OUT", tmp_path)
    assert "benchmarks.peers.install" in installed("good").missing
    record = [
        {"name": "good", "version": "1", "environment": "e", "missing": ""},
        {"name": "bad", "version": "2", "environment": "e", "missing": "no such thing"},
    ]
    (tmp_path / "installed.json").write_text(json.dumps(record), encoding="utf-8")
    assert "benchmarks.peers.install" in installed("good").missing  # its environment was removed
    python = tmp_path / "e" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert installed("good") == Peer(name="good", version="1", environment="e")
    assert installed("bad").missing == "no such thing"
    assert "benchmarks.peers.install" in installed("other").missing


# --- accounting


def _reply(value: float | None, seconds: float, error: str = "") -> Reply:
    return Reply(value=value, error=error, seconds=seconds, memory=7 << 20)


def _answers(*replies: Reply) -> Answers:
    return Answers(library="l", version="1", method="m", claim="upper", replies=replies)


def test_medians_leave_out_what_was_not_asked_to_the_end() -> None:
    rounds = [
        [_answers(_reply(1.0, 5.0), _reply(None, 8.0, "over"))],
        [_answers(_reply(None, 1.0, "over"), _reply(None, 1.0, "over"))],
        [_answers(_reply(2.0, 7.0), _reply(None, 1.0, "over"))],
    ]
    (merged,) = medians(rounds)
    assert [(reply.value, reply.seconds) for reply in merged.replies] == [(1.0, 6.0), (None, 8.0)]


def test_a_row_compares_the_same_cases_and_counts_the_unsafe() -> None:
    own = [_reply(1.0, 0.001), _reply(1.0, 0.003), _reply(1.0, 0.1)]
    theirs = _answers(_reply(0.5, 0.01), _reply(1.25, 0.03), _reply(None, 9.0, "no"))
    (row,) = compared("w", own, theirs, slice(0, 3), [Enclosure(1.0, 1.0)] * 3)
    assert math.isclose(row.ours, 2.0)
    assert row.theirs is not None
    assert math.isclose(row.theirs, 20.0)
    assert row.note == (
        "1 of 2 unsafe, by at most 5e-01; at most 2e-01 above; 1 of 3 not answered (no); "
        "7 MiB against our 7"
    )
    nothing = _answers(_reply(None, 0.0), _reply(None, 0.0), _reply(None, 0.0))
    assert not list(compared("w", own, nothing, slice(0, 3), [Enclosure(1.0, 1.0)] * 3))
    (failed,) = compared(
        "w", own[:1], _answers(_reply(None, 9.0, "no")), slice(0, 1), [Enclosure(1.0, 1.0)]
    )
    assert (failed.theirs, failed.note) == (None, "1 of 1 not answered (no); 7 MiB against our 7")


def test_a_case_may_have_several_parameters() -> None:
    case = Case(
        mechanism="gaussian", parameter=1.0, others=(2.0,), count=3, solve="delta", given=1.0
    )
    assert case.parameters == (1.0, 2.0)
    assert ours(case) == Gaussian.from_mu_squared(3 + Fraction(3, 4)).delta_at(1)
    assert len(set(bits(256).parameters)) == 256


# --- auditing


def test_the_ladder_stops_where_the_bound_is_reached() -> None:
    def at(draws: int) -> tuple[float, float]:
        return draws / 1e5, draws * 1e-6

    assert reaching(0.15, at) == (LADDER[1], at(LADDER[1]))
    assert reaching(9.0, at) == (LADDER[-1], at(LADDER[-1]))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_draws_in_batches_have_the_law_of_the_release(subject: Any) -> None:
    """Means of every column on both sides, to six standard errors."""
    batched, released = by_the_million(subject, 1), by_release(subject)
    for side in (0, 1):
        many, few = batched(side, 20_000), released(side, 2_000)
        assert many.shape[1] == few.shape[1]
        error = 6 * few.std(axis=0) / math.sqrt(len(few)) + 6 * many.std(axis=0) / math.sqrt(20_000)
        assert np.all(np.abs(many.mean(axis=0) - few.mean(axis=0)) <= error)
    assert not np.array_equal(released(0, 10), released(0, 10))


def _laplace(shift: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)

    def draw(side: int, count: int) -> NDArray[Any]:
        return np.asarray(rng.laplace(side * shift, 1.0, (count, 1)))

    return draw


def test_a_draw_is_taken_apart_into_streams_words_and_noise() -> None:
    name, given = asked(HERE.parents[1] / "examples" / "mechanisms" / "raw-data-g-opt.toml")
    cost, what = irreducible(name, given)
    assert (name, given["attributes"], given["adjacency"]) == ("raw-data-g-opt", "4", "record")
    assert what == "4 words, 4 of them rounded to noise, 0.003 streams a draw"
    assert cost > 0


def test_sniping_finds_what_is_there_and_accuses_nobody() -> None:
    """At 50,000 draws the expected bound is about 1 less 1.96·(1/√500 + 1/√1,359) = 0.86."""
    found = [snipe(_laplace(1.0, seed), phase=50_000, alpha=0.05) for seed in range(9)]
    assert 0.75 < np.median(found) < 0.95
    alike = [snipe(_laplace(0.0, seed), phase=20_000, alpha=1e-6) for seed in range(3)]
    assert max(alike) <= 0
