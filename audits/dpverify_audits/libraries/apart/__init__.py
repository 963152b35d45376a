"""Libraries that no process can import beside the auditor: they want a NumPy older than its own.

Each is asked in a process of its own (`dpverify.Command`), whose interpreter has the library and
nothing of dpverify. A file of this folder has its ``RELEASES``: by their names what makes a
function of a data set, whose outputs are JSON. ``answer.py`` is what that interpreter runs.
"""

from __future__ import annotations

import os
from pathlib import Path

from dpverify.auditing.targets.command import Command
from dpverify.errors import ConfigurationError

__all__ = ["APART", "command", "variable"]

APART = {"dpmm": "dpmm", "tmlt-analytics": "tmlt"}
"""By the names of the package index: the file here that has its releases."""

HERE = Path(__file__).parent


def variable(library: str) -> str:
    """The environment variable that says which interpreter has the library."""
    return f"DPVERIFY_{APART[library].upper()}_PYTHON"


def command(library: str, release: str) -> Command:
    """The program that answers by this release of this library.

    Raises
    ------
    ConfigurationError
        If nobody says which interpreter has the library.
    """
    python = os.environ.get(variable(library))
    if not python:
        raise ConfigurationError(
            f"library {library} can't be installed here, since it needs a NumPy older than "
            "dpverify's. "
            f"Install it in another environment, and set {variable(library)} to its interpreter."
        )
    # Isolated, so that neither this folder nor dpverify's packages are on its path.
    file = HERE / f"{APART[library]}.py"
    return Command([python, "-I", str(HERE / "answer.py"), str(file), release])
