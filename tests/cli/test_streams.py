"""Streams that are full, closed or read by nobody: no exit code that says something else."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import pytest

from dpverify.cli import main
from tests.helpers.command_line import run

ANSWER = ("account", "gaussian", "-p", "sigma=1", "--delta", "1e-6")


@contextmanager
def full() -> Iterator[TextIO]:
    """A stream on a full device."""
    try:
        stream = Path("/dev/full").open("w")  # noqa: SIM115
    except OSError:
        pytest.skip("no full device here")
    try:
        yield stream
    finally:
        with suppress(OSError):
            stream.close()


@pytest.mark.parametrize("words", [ANSWER, (*ANSWER, "--json"), ("--help",)])
def test_full(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with full() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run(*words) == 2
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("plan", "none.toml"), ("plan", "none.toml", "--json"), ("x",)])
def test_all_full(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of an error, which can't be said."""
    with full() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        assert run(*words) == 2


@pytest.mark.parametrize("words", [ANSWER, (*ANSWER, "--json"), ("--help",)])
def test_nobody_reads(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    monkeypatch.setattr(sys, "stdout", stream)
    try:
        assert run(*words) == 128 + signal.SIGPIPE
    finally:
        with suppress(BrokenPipeError):
            stream.close()


def test_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``>&-`` does: Python has no streams then."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as left:
        main(list(ANSWER))
    assert left.value.code == 0
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_what_an_encoding_lacks(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = "größe 10⁻⁹ 𝜀"
    for number, options in enumerate(((), ("--json",))):
        written = io.BytesIO()
        stream = io.TextIOWrapper(written, encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        path = str(tmp_path / str(number))
        with pytest.raises(SystemExit) as left:
            main(["budget", "new", path, "--epsilon", "1", "--unit", unit, *options])
        assert left.value.code == 0
        text = written.getvalue().decode(encoding)
        if options:
            assert json.loads(text)["result"]["unit"] == unit
        else:
            assert "größe 10" in text
            assert (unit in text) == (encoding == "utf-8")


def test_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("click.termui.hidden_prompt_func", ended)
    assert run("key", "new", tmp_path / "signer.pem", "--encrypt") == 2
    assert "nobody can answer the question: stdin has ended" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_the_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert run("budget", "new", "new.db", "--epsilon", "1") == 2
    assert "the working folder was removed" in capsys.readouterr().err


def test_an_internal_error_with_its_details(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr("dpverify.cli.cli.main", broken)
    monkeypatch.setenv("DPVERIFY_TRACEBACK", "1")
    assert run("plan", "x.toml") == 4
    assert "in broken" in capsys.readouterr().err
