"""Replays of what a script or a session defines: code that runs, without an address."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

import dpverify as dpv
from dpverify.auditing.replay import audit_code, call_code

SCRIPT = """
from dataclasses import dataclass

def shifted(x):
    return x + 1

@dataclass(frozen=True)
class Scaled:
    by: int

if __name__ == "__main__":
    raise SystemExit("what is for the script alone runs again")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("__main__")
    module.__file__ = str(tmp_path / "mine.py")
    Path(module.__file__).write_text(SCRIPT, encoding="utf-8")
    exec(SCRIPT.partition("if __name__")[0], vars(module))  # noqa: S102  # as Python runs a script
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def printed(code: str, **names: object) -> str:
    output = StringIO()
    with redirect_stdout(output):
        exec(code, names)  # noqa: S102  # what a report says can be run
    return output.getvalue().strip()


def test_a_function_of_a_script_is_taken_from_its_file(script: ModuleType) -> None:
    code = call_code(script.shifted, {"x": 1}, name="shifted")
    assert printed(code) == "2"
    assert "mechanism = Scaled(by=3)" in audit_code(script.Scaled(by=3))


def test_one_of_a_session_is_named(script: ModuleType) -> None:
    del script.__file__
    assert audit_code(script.shifted).splitlines()[:3] == [
        "# shifted: of the session that audited",
        "from dpverify import audit",
        "mechanism = shifted",
    ]


def test_one_that_a_module_of_its_own_ran_is_imported(script: ModuleType) -> None:
    script.__spec__ = dpv.__spec__
    assert "from dpverify import shifted" in audit_code(script.shifted)


def inner() -> Callable[[int], int]:
    return lambda x: x


class Plain:
    """Without a representation of its own."""


@pytest.mark.parametrize(
    "value", [inner(), Plain(), Plain, inner], ids=["lambda", "plain", "", "f"]
)
def test_nothing_is_told_by_its_address(value: object) -> None:
    assert " at 0x" not in audit_code(value)
    assert call_code(value, {}, name="mine").startswith(("mine(", "from "))
