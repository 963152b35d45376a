"""JSON reports of data that not every encoding holds."""

from __future__ import annotations

import json as standard_json
from typing import Any

import dpverify as dpv
from dpverify.auditing.reporters.json import json
from dpverify.privacy import Pair


def test_half_a_character_is_written_and_read() -> None:
    record = ["\ud800", "é\x00\u2028"]
    pair = Pair(name="one row more", record=record, neighbour=[*record, "b"])
    words: dict[str, Any] = {
        "epsilon": 1,
        "adjacency": dpv.AddRemove(),
        "pairs": [pair],
        "kinds": ["black-box"],
    }
    report = dpv.audit(lambda rows, rng: len(rows) + rng.laplace(), draws=40, workers=1, **words)
    read = standard_json.loads(json([report]).encode())
    assert read["result"] == standard_json.loads(standard_json.dumps([report.to_dict()]))
