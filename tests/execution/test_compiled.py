"""Machine code where it pays, and numpy where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpverify.execution import compiled, loops


@pytest.fixture(autouse=True)
def _as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPVERIFY_LOOPS", raising=False)
    monkeypatch.setattr(compiled, "_met", [0])
    monkeypatch.setattr(compiled, "_in_use", [])
    monkeypatch.setattr(compiled, "_machine_code", cache(compiled._machine_code.__wrapped__))


def a_numba(monkeypatch: pytest.MonkeyPatch, *, error: Exception | None = None) -> None:
    """A compiler that returns the loop, or can't keep what it makes."""

    def njit(signature: str, *, cache: bool, nogil: bool) -> Any:
        assert signature == loops.SIGNATURES["add_up"]
        assert nogil
        if cache and error is not None:
            raise error
        return lambda loop: loop

    config = SimpleNamespace(DISABLE_JIT=False)
    fake = SimpleNamespace(njit=njit, config=config, __version__="0")
    monkeypatch.setitem(sys.modules, "numba", fake)


def test_numba_is_loaded_when_there_was_much_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    half = compiled._MUCH // 2
    assert compiled.compiled(loops.add_up, values=half) is None
    assert "numba" not in sys.modules
    asked: list[Any] = []
    monkeypatch.setattr(compiled, "_machine_code", asked.append)
    compiled.compiled(loops.add_up, values=half)
    assert asked == [loops.add_up]


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # importing it fails
    monkeypatch.setenv("DPVERIFY_LOOPS", "numba")
    assert compiled.compiled(loops.add_up, values=1) is None
    assert compiled.loops_by() == "numpy"


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    a_numba(monkeypatch)
    monkeypatch.setenv("DPVERIFY_LOOPS", "numpy")
    assert compiled.compiled(loops.add_up, values=2 * compiled._MUCH) is None
    monkeypatch.setenv("DPVERIFY_LOOPS", "numba")
    assert compiled.compiled(loops.add_up, values=1) is loops.add_up
    assert compiled.loops_by() == "numba 0"


@pytest.mark.parametrize("error", [RuntimeError("no locator"), OSError("disk full")])
def test_a_folder_that_cannot_be_written_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    a_numba(monkeypatch, error=error)
    assert compiled.compiled(loops.add_up, values=1) is loops.add_up


def test_loops_that_are_not_to_be_compiled_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    a_numba(monkeypatch)
    sys.modules["numba"].config.DISABLE_JIT = True
    assert compiled.compiled(loops.add_up, values=1) is None


@pytest.mark.nightly  # compiles every loop in a process of its own
def test_every_loop_is_compiled_where_nothing_can_be_kept(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    (tmp_path / "file").touch()
    program = (
        "from dpverify.execution import loops, compiled\n"
        "made = [compiled.compiled(getattr(loops, n), values=1) for n in loops.SIGNATURES]\n"
        "assert all(made) and set(loops.SIGNATURES) == set(loops.__all__) - {'SIGNATURES'}\n"
    )
    # A folder inside a file can't be made, whoever asks.
    environment = {"DPVERIFY_LOOPS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache")}
    subprocess.run([sys.executable, "-c", program], env=os.environ | environment, check=True)
