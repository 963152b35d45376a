"""The command line in this process: its exit code, and what it prints as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpverify import __version__
from dpverify.cli import _run

__all__ = ["result", "run"]


def run(*arguments: str | Path) -> int:
    """The exit code."""
    return _run([str(argument) for argument in arguments])


def result(capsys: pytest.CaptureFixture[str], command: str) -> Any:
    """What a command with ``--json`` printed, out of its envelope."""
    envelope = json.loads(capsys.readouterr().out)
    assert list(envelope) == ["dpverify", "command", "result"]
    assert (envelope["dpverify"], envelope["command"]) == (__version__, command)
    return envelope["result"]
