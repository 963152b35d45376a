"""What is said of a table that isn't one: where, what to do, and no more of it than needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpverify.data.loading import load_records
from dpverify.errors import RecordsError


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a;b\n31;1\n", "line 2: the values look separated by semicolons"),
        ("31;1,5\n", "line 1: the values look separated by semicolons"),
        ("a\tb\n31\t1\n", "line 2: the values look separated by tabs"),
        ("a,b\n31,\n", "line 2, column 2 (b): the value is missing. Leave such rows"),
        ("a,b\n31,n/a\n", "line 2, column 2 (b): 'n/a' is not a number. Leave such a row"),
        ("a,b\n31,1_0\n", "line 2, column 2 (b): '1_0' is not a number"),
        ("a,b\n31,٥\n", "line 2, column 2 (b): '٥' is not a number"),
        ("a,b\n31,1,2\n4,5\n", "line 3: has 2 values, and the first record has 3"),
    ],
)
def test_the_message_says_where_and_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordsError) as caught:
        load_records(path)
    said = str(caught.value).removeprefix(str(path))
    assert says in said
    assert "31" not in said  # of the record it shows what is no number, at most
