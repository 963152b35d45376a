"""Reports for a program: one JSON document."""

from __future__ import annotations

import json as standard_json
from collections.abc import Sequence

from dpverify._version import __version__
from dpverify.auditing.report import Reported

__all__ = ["json"]


def json(reports: Sequence[Reported]) -> str:
    """The document of all commands with `--json`; its result is a list of `Report.to_dict()`."""
    result = [report.to_dict() for report in reports]
    document = {"dpverify": __version__, "command": "audit", "result": result}
    text = standard_json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()  # half a character is escaped
