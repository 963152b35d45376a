"""`dpverify init`: from shape and type alone, with decisions that certify insists on."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from dpverify.catalogue import family_of
from dpverify.certificate.checklist import check_answerable
from dpverify.certificate.configuration import UNDECIDED, load_configuration
from dpverify.cli import _run
from dpverify.cli.init import configuration_text, draft
from dpverify.data.frame import Spelling
from dpverify.data.loading import Shape
from dpverify.data.proposals import propose
from dpverify.errors import ConfigurationError

DECIDED = {
    r"^(c\d) = .*$": r'\1 = { type = "whole", low = 0, high = 10 }',
    r"epsilon = \"DECIDE\"": "epsilon = 2",
    r"delta = \"DECIDE\"": "delta = 1e-4",
    r"^adjacency = \"DECIDE\"": 'adjacency = { kind = "cell" }',
    r"^draws = 100000": "draws = 200\nmoment_draws = 50",
}


def table(path: Path, seed: int, columns: int = 3) -> Path:
    values = np.random.default_rng(seed).integers(0, 11, (8, columns))
    lines = [",".join(f"c{i}" for i in range(columns)), *(",".join(map(str, r)) for r in values)]
    path.write_text("\n".join(lines) + "\n")
    return path


def decide(path: Path) -> None:
    text = path.read_text()
    for pattern, replacement in DECIDED.items():
        text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert found in (1, 3)
    path.write_text(text)


@pytest.mark.nightly
def test_from_a_table_to_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, config = table(tmp_path / "visits.csv", 1), tmp_path / "visits.toml"
    assert _run(["init", str(data)]) == 0
    said = capsys.readouterr()
    assert "8 rows, 3 columns" in said.out
    assert "privacy.adjacency: whose privacy" in said.out
    certify = [
        "certify",
        str(config),
        "--out",
        str(tmp_path / "out"),
        "--allow-inconclusive",
        "--yes",
    ]
    assert _run(certify) == 2
    refused = capsys.readouterr().err
    for key in ("data.columns.c0.low", "data.columns.c2.high", "privacy.epsilon"):
        assert key in refused
    assert not (tmp_path / "out").exists()
    decide(config)
    assert _run(certify) in (0, 3)
    assert (tmp_path / "out" / "certificate.json").exists()


@pytest.mark.parametrize("columns", [3, 100])
def test_values_leave_no_trace(tmp_path: Path, columns: int) -> None:
    """Two tables of one shape give the same bytes; another shape doesn't."""
    texts = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        data = table(folder / "visits.csv", seed, columns)
        assert _run(["init", str(data), "--out", str(folder / "x.toml")]) == 0
        texts.append((folder / "x.toml").read_text().replace(str(folder), ""))
    assert texts[0] == texts[1]
    assert ("dp-oporp" in texts[0]) == (columns == 100)


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["init", str(table(tmp_path / "visits.csv", 1)), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["rows"], result["attributes"]) == (8, 3)
    assert set(result["decide"]) >= {"data.columns", "privacy.epsilon", "privacy.adjacency"}


def test_quiet_and_verbose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for option in ("--quiet", "--json", "--verbose"):  # the second says nothing new
        out = tmp_path / f"x{option}.toml"
        assert _run(["init", str(table(tmp_path / "v.csv", 1)), "--out", str(out), option]) == 0
        said[option] = capsys.readouterr().err
    assert said["--quiet"] == said["--json"] == ""
    assert "no value" in said["--verbose"]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, config = table(tmp_path / "visits.csv", 1), tmp_path / "visits.toml"
    config.write_text("mine")
    assert _run(["init", str(data)]) == 2
    assert "never overwrites" in capsys.readouterr().err
    assert config.read_text() == "mine"


def decided(config: Path) -> Path:
    """Every decision as the comment of its line has it, or at 1; δ at a millionth."""
    text = config.read_text()
    (unit,) = re.findall(r"^#   (\{ kind = .* \}) ", text, flags=re.MULTILINE)
    text = text.replace('adjacency = "DECIDE"', f"adjacency = {unit}")
    text = text.replace('delta = "DECIDE"', "delta = 1e-6").replace('= "DECIDE"', "= 1")
    config.write_text(text)
    return config


def test_a_sparse_file_holds_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sp.save_npz(tmp_path / "visits.npz", sp.csr_array(np.eye(6, 40)))
    assert _run(["init", str(tmp_path / "visits.npz")]) == 0
    assert "data.domain: the least number of items" in capsys.readouterr().out
    configuration = load_configuration(decided(tmp_path / "visits.toml"))
    assert configuration.mechanism.name == "rr-min-hash"
    assert configuration.adjacency().unit == "at most 1 item of one record's set, added or removed"


def test_a_square_file_holds_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "calls.npy", np.ones((6, 6)) - np.eye(6))
    assert _run(["init", str(tmp_path / "calls.npy")]) == 0
    assert "data.domain" not in capsys.readouterr().out
    configuration = load_configuration(decided(tmp_path / "calls.toml"))
    assert configuration.mechanism.name == "jl-graph-cuts"
    assert (
        configuration.adjacency().unit == "one edge of the graph, its weight changed by at most 1"
    )


def test_bits_have_their_domain_by_type(tmp_path: Path) -> None:
    data = tmp_path / "bits.npy"
    np.save(data, np.zeros((4, 5), dtype=bool))
    assert _run(["init", str(data)]) == 0
    assert "low = 0, high = 1" in (tmp_path / "bits.toml").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n", "no rows below its header"),
        ("a,a\n1,2\n", "columns share a name: 'a'"),
        ("a,b\n1,2\n3\n", "1 rows (2) don't have 2 values"),
        ("1,2\n3,inf\n", "attribute 1 is inf"),
        ("1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
        ("1,2\n3,\n", "line 2, column 2: the value is missing"),
    ],
)
def test_what_is_no_table_of_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    data = tmp_path / "people.csv"
    data.write_text(content)
    assert _run(["init", str(data)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "people.toml").exists()


def test_answers_in_the_comments_are_the_owners_to_give() -> None:
    shape = Shape(rows=7, attributes=5, kind="numbers")
    text = configuration_text(shape, draft(shape), path="a b.csv", config="a b.toml")
    assert '"a b.csv"' in text
    given = re.findall(r"^# ([\w-]+) = \{ answer", text, flags=re.MULTILINE)
    assert given
    check_answerable(given)


def test_every_placeholder_is_named(tmp_path: Path) -> None:
    shape = Shape(rows=5, attributes=500, kind="numbers")
    path = tmp_path / "x.toml"
    path.write_text(configuration_text(shape, draft(shape), path="x.csv", config="x.toml"))
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(path)
    values = re.sub(r"#.*", "", path.read_text())
    assert str(refused.value).count(",") + 1 == values.count(f'"{UNDECIDED}"') == 5


HOSPITAL = """\
;Patient;Kosten;Tag;Alter;Raucher;Notiz
0;P-1;1.204,50;1.2.2020;31;true;Husten
1;P-2;17,5;17.12.2021;NA;false;
"""
PROPOSED = """\
encoding = "cp1252"
separator = ";"
decimal = ","
thousands = "."
dates = "%d.%m.%Y"
missing = ["", "NA"]
outside = "refuse"
"" = { drop = true }
Patient = { type = "category", categories = "DECIDE" }
Kosten = { type = "real", low = "DECIDE", high = "DECIDE" }
Tag = { type = "date", first = "DECIDE", last = "DECIDE" }
Alter = { type = "whole", low = "DECIDE", high = "DECIDE", missing = "DECIDE" }
Raucher = { type = "boolean" }
"Ärztin" = { type = "category", categories = "DECIDE", missing = "DECIDE" }
"""


@pytest.mark.parametrize("attributes", [4, 100])
@pytest.mark.parametrize("kind", ["numbers", "bits", "sets", "graph"])
def test_a_seed_is_proposed_where_something_reads_it(kind: Any, attributes: int) -> None:
    shape = Shape(rows=100, attributes=attributes, kind=kind)
    text = configuration_text(shape, draft(shape), path="x.npz", config="x.toml")
    tables = tomllib.loads(text)
    assert ("projection" in tables) == family_of(tables["mechanism"]["name"]).seeded


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_table_as_it_comes(tmp_path: Path, encoding: str) -> None:
    """Encoding, separator, spelling and types are proposed; no value is in the configuration."""
    data = tmp_path / "hospital.csv"
    data.write_text(HOSPITAL.replace("Notiz", "Ärztin").replace("Husten", "Müller"), encoding)
    assert _run(["init", str(data)]) == 0
    text = (tmp_path / "hospital.toml").read_text("utf-8")
    lines = [re.sub(r"    #.*", "", line) for line in text.splitlines()]
    for line in PROPOSED.replace("cp1252", encoding).splitlines():
        assert line in lines
    words = text.replace(str(tmp_path), "")  # the name of a folder has numbers of its own
    for value in ("P-1", "1.204", "17,5", "2020", "31", "Müller"):
        assert value not in words
    with pytest.raises(ConfigurationError, match=r"data\.columns\.Patient\.categories"):
        load_configuration(tmp_path / "hospital.toml")


def test_types_of_a_file_of_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "__index_level_0__": [0, 1],
            "age": [1, None],
            "weight": [0.5, 1.5],
            "born": [date(2000, 1, 1)] * 2,
            "sex": pl.Series(["f", "m"], dtype=pl.Categorical),
            "smokes": [True, False],
            "scan": [b"1", b"2"],
        }
    )
    frame.write_parquet(tmp_path / "x.parquet")
    proposals = propose(tmp_path / "x.parquet")
    assert [(column.kind, column.missing) for column in proposals.columns] == [
        *(("drop", False), ("whole", True), ("real", False), ("date", False)),
        *(("category", False), ("boolean", False), ("drop", False)),
    ]


def test_a_comma_that_separates_values_is_no_decimal_mark(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a,b\n"1,204",2\n"7,000",3\n')
    proposals = propose(tmp_path / "x.csv")
    assert proposals.spelling == Spelling(thousands=",")
    assert [column.kind for column in proposals.columns] == ["whole", "whole"]


@pytest.mark.parametrize(
    ("names", "told"), [("user,page", 1), ("from,to,weight", 1), ("a,b,c,d", 0)]
)
def test_lists_of_visits_and_edges_are_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: str, told: int
) -> None:
    (tmp_path / "list.csv").write_text(f"{names}\n{','.join('x' for _ in names.split(','))}\n")
    assert _run(["init", str(tmp_path / "list.csv")]) == 0
    assert capsys.readouterr().err.count("make one row of each person") == told


@pytest.mark.parametrize("name", ["visits.csv", "visits.tsv", "visits.csv.gz", "visits.parquet"])
@pytest.mark.parametrize("command", ["init", "plan"])
def test_without_the_extra_that_reads_tables(
    name: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / name).write_text("age,sex\n30,f\n", encoding="utf-8")
    config = tmp_path / "a.toml"
    config.write_text(PLANNED.format(name=name), encoding="utf-8")
    for module in [module for module in sys.modules if module.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert _run([command, str(tmp_path / name if command == "init" else config)]) == 2
    assert "reading a table needs pyarrow: pip install 'dpverify[arrow]'" in capsys.readouterr().err


PLANNED = """
[data]
path = "{name}"
[data.columns]
age = {{ type = "whole", low = 0, high = 120 }}
sex = {{ type = "category", categories = ["f", "m"] }}
[mechanism]
name = "raw-data-g-opt"
[privacy]
epsilon = 1
delta = 1e-6
adjacency = {{ kind = "cell" }}
"""
