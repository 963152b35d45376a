"""`dpverify init`: from shape and type alone, with decisions that certify insists on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dpverify.certificate.checklist import check_answerable
from dpverify.certificate.configuration import UNDECIDED, load_configuration
from dpverify.cli import _run
from dpverify.cli.init import configuration_text
from dpverify.data.loading import Shape
from dpverify.errors import ConfigurationError

DECIDED = {
    r"low = \"DECIDE\"": "low = 0",
    r"high = \"DECIDE\"": "high = 10",
    r"epsilon = \"DECIDE\"": "epsilon = 2",
    r"delta = \"DECIDE\"": "delta = 1e-4",
    r"^adjacency = \"DECIDE\"": 'adjacency = { kind = "attribute", beta = 10 }',
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
        assert found == 1
    path.write_text(text)


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
    for key in ("data.domain.low", "data.domain.high", "privacy.epsilon", "privacy.adjacency"):
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
    assert set(result["decide"]) >= {"data.domain", "privacy.epsilon", "privacy.adjacency"}


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


def test_bits_have_their_domain_by_type(tmp_path: Path) -> None:
    data = tmp_path / "bits.npy"
    np.save(data, np.zeros((4, 5), dtype=bool))
    assert _run(["init", str(data)]) == 0
    assert "low = 0, high = 1" in (tmp_path / "bits.toml").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,age\nada,36\n", "line 2, column 1 (name): 'ada' is not a number"),
        ("a,b\n1,\n", "line 2, column 2 (b): the value is missing"),
        ("a,b\n", "no rows under its line of names"),
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
    shape = Shape(rows=5, attributes=5, only_bits=False)
    text = configuration_text(shape, path="a b.csv", config="a b.toml")
    assert '"a b.csv"' in text
    given = re.findall(r"^# ([\w-]+) = \{ answer", text, flags=re.MULTILINE)
    assert given
    check_answerable(given)


def test_every_placeholder_is_named(tmp_path: Path) -> None:
    shape = Shape(rows=5, attributes=500, only_bits=False)
    path = tmp_path / "x.toml"
    path.write_text(configuration_text(shape, path="x.csv", config="x.toml"))
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(path)
    values = re.sub(r"#.*", "", path.read_text())
    assert str(refused.value).count(",") + 1 == values.count(f'"{UNDECIDED}"') == 5
