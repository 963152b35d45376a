"""``dpverify audit-scores``: files of scores, and one clear error for what isn't one."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import dpverify as dpv
from dpverify.cli import _run
from dpverify.cli.audit_scores import read_scores
from dpverify.errors import ConfigurationError

WITH, WITHOUT = [float(x) for x in range(5, 45)], [float(x) / 10 for x in range(40)]


def written(folder: Path, name: str) -> Path:
    """The same scores in a file of this kind."""
    file = folder / name
    lists = {"with": WITH, "without": WITHOUT}
    if file.suffix == ".json":
        file.write_text(json.dumps(lists))
    elif file.suffix == ".npz":
        np.savez(file, allow_pickle=False, **{side: np.array(x) for side, x in lists.items()})
    else:
        labels = ["In", "0"] if file.stem == "words" else ["1", "False"]
        rows = [
            f"{label},{x}" for label, side in zip(labels, lists.values(), strict=True) for x in side
        ]
        file.write_text("\n".join(["label,score", *rows]))
    return file


@pytest.mark.parametrize("name", ["a.csv", "words.csv", "a.json", "a.npz"])
def test_every_kind_of_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    file = written(tmp_path, name)
    assert _run(["audit-scores", str(file), "--delta", "1e-5", "--json"]) == 0
    envelope = json.loads(capsys.readouterr().out)
    assert envelope["command"] == "audit-scores"
    assert envelope["result"] == dpv.audit_scores(WITH, WITHOUT, delta="1e-5").to_dict()


@pytest.mark.parametrize(
    ("written_so", "read_so"),
    [(",", ", "), (",", ";"), (",", "\t"), ("\n1,", "\n1.0,"), ("\nFalse,", "\n-1,")],
)
def test_other_spellings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written_so: str, read_so: str
) -> None:
    file = written(tmp_path, "a.csv")
    file.write_text(file.read_text().replace(written_so, read_so))
    assert _run(["audit-scores", str(file), "--delta", "1e-5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result == dpv.audit_scores(WITH, WITHOUT, delta="1e-5").to_dict()


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    with ZipFile(file, "w") as archive:
        archive.writestr("with.npy", "no array")
    with pytest.raises(ConfigurationError, match="must have a list of scores"):
        read_scores(file)
    np.savez_compressed(file, allow_pickle=False, **{"with": WITH, "without": WITHOUT})
    content = bytearray(file.read_bytes())
    content[60] ^= 0xFF  # within the deflated numbers
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_scores(file)


def test_columns_of_a_matrix(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        allow_pickle=False,
        **{"with": np.array([WITH]).T, "without": np.array([WITHOUT])},
    )
    assert read_scores(tmp_path / "a.npz") == ((WITH, WITHOUT), None)


def test_a_claim_is_refuted_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit-scores", str(written(tmp_path, "a.csv")), "--delta", "0"]
    assert _run([*arguments, "--epsilon", "1"]) == 1
    assert "they refute the claimed epsilon of 1" in capsys.readouterr().out
    assert _run([*arguments, "--epsilon", "9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["refuted"] is False


def test_a_column_says_which_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    rows = [f"{place % 2},{place},{place // 2}" for place in range(20)]
    file.write_text("\n".join(["label,score,run", *rows]))
    assert _run(["audit-scores", str(file), "--delta", "0"]) == 2
    assert "runs=2 scores of run 0 must be different" in capsys.readouterr().err
    assert _run(["audit-scores", str(file), "--delta", "0", "--design", "one-run"]) == 0


WRONG = [
    ("a.txt", "", "must be a .csv, .json or .npz file of scores"),
    ("none.csv", None, "can't be read: No such file or directory"),
    ("a.csv", "lab,score\n1,2\n", "must have a column label."),
    ("a.csv", "", "Its first line names the columns, with commas, semicolons or tabs."),
    ("a.csv", "label,score,score\n1,2,3\n0,1,2\n", "must have one column score, and has several."),
    ("a.csv", "label;score\n1;0,5\n0;1\n", "score='0,5' must be a number."),
    ("a.csv", "label,score\n1,2\n1,3\n", "all labels are 1, and none is 0."),
    ("a.csv", "label,score\n0,2\n0,3\n", "all labels are 0, and none is 1."),
    ("a.csv", "label,score\n", "with the record and without it: it has no rows."),
    ("a.csv", "1,2\n0,3\n", "must have a column label. Its first line names the columns, with"),
    ("a.csv", "label,score\n1,2\n0,0,53\n", "row 3: it must have as many fields as the first line"),
    (
        "a.csv",
        "label,score\n1,9_007_199_254_740_993\n0,1\n",
        "row 2: score='9_007_199_254_740_993'",
    ),
    ("a.csv", "label,score\n1,2\n0,abc\n", "a.csv, row 3: score='abc' must be a number"),
    ("a.csv", "label,score\n1,2\n0,٣\n", "a.csv, row 3: score='٣' must be a number"),
    ("a.csv", "label,score\n1,2\n0\n", "a.csv, row 3: score=None must be a number"),
    ("a.csv", "label,score\n1,2\n0,nan\n", "a.csv, row 3: score='nan' must be a number"),
    ("a.csv", "label,score\n1,2\nmaybe,3\n", "a.csv, row 3: label=maybe must be 1 for"),
    ("a.json", "[1, 2]", 'must have a list of scores "with"'),
    ("a.json", "{", "can't be read: "),
    ("a.json", '{"with": [1, true], "without": []}', r"a.json, with[1]: score=True must be"),
    ("a.json", '{"with": [1], "with": [2], "without": [0]}', "an object has the same key twice"),
    ("a.json", "[" * 100_000, "can't be read: maximum recursion depth exceeded"),
    (
        "a.json",
        f'{{"with": [{2**53 + 1}], "without": [0]}}',
        "with[0]: score=9007199254740993",
    ),
    ("a.csv", f"label,score\n1,-{2**53}\n0,1\n", "score='-9007199254740992' must be a number that"),
    ("a.npz", "", "can't be read: No data left in file"),
    ("a.npz", "no archive", "must be an archive of numpy's arrays"),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG)
def test_what_is_no_file_of_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, message: str
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    assert _run(["audit-scores", str(file), "--delta", "0"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
