"""Kept results: what is done stays done, and what was cut off is made again."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kept import Kept


def test_what_is_kept_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "kept.jsonl"
    made = []

    def make() -> tuple[int, None]:
        made.append(1)
        return len(made), None

    assert Kept(path).get("a", make) == [1, None]
    assert Kept(path).get("a", make) == [1, None]
    assert Kept(path).get("b", make) == [2, None]


def test_a_line_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    Kept(path).get("a", lambda: 1)
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole + '["b", 2', encoding="utf-8")
    again = Kept(path)
    assert again.values == {"a": 1}
    assert again.get("b", lambda: 3) == 3
    assert Kept(path).values == {"a": 1, "b": 3}
