"""Results of a long benchmark, kept as they come, so that an interrupted run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpverify import __version__

__all__ = ["Kept", "stamp"]


def stamp() -> str:
    """By which version a result is made, and when."""
    return f"{__version__}, {datetime.now(UTC):%Y-%m-%d}"


@dataclass(slots=True)
class Kept:
    """A file of JSON lines, each a key with its value; a line that was cut off is forgotten.

    What a key stands for must not change while the file is kept: after a change to the code that
    is measured, remove it.

    Attributes
    ----------
    path : of the file; its folder is made
    """

    path: Path
    values: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        for line in whole.splitlines():
            key, value = json.loads(line)
            self.values[key] = value

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The value of this key, made and kept where there is none yet."""
        if key not in self.values:
            line = json.dumps([key, make()])
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            # Read back, so that a value is the same whether it is new or was kept.
            self.values[key] = json.loads(line)[1]
        return self.values[key]
