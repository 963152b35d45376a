"""What pydantic refuses is said in words of ours, whatever stands where."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from pydantic import ValidationError

from dpverify._refusals import refusals
from dpverify.certificate.answered import Answered
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.compose import compose
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.schema import Certificate
from dpverify.errors import DPVerifyError

LEAKS = re.compile(
    r"[Ii]nput should|String should|should (be|have|match)|[Ff]ield required|Extra inputs"
    r"|valid (string|integer|list|dictionary|number|tuple)|Value error|[Pp]ydantic|another kind"
)
JUNK: list[Any] = [None, True, -1, 1.5, 10**30, "", "x" * 3000, "\u202e", [], {}, [1], {"a": 1}]

CONFIGURATION: dict[str, Any] = {
    "data": {
        "path": "x.csv",
        "encoding": "utf-8",
        "separator": ",",
        "decimal": ".",
        "thousands": "",
        "missing": [""],
        "outside": "refuse",
        "columns": {
            "age": {"type": "whole", "low": 0, "high": 120, "missing": "refuse"},
            "day": {"type": "date", "first": "2020-01-01", "last": "2021-01-01"},
            "kind": {"type": "category", "categories": ["a", "b"]},
            "said": {"type": "text", "buckets": 8, "ngrams": 3},
            "name": {"drop": True},
        },
    },
    "mechanism": {"name": "dp-oporp", "k": 4},
    "privacy": {"epsilon": 1, "delta": 0, "adjacency": {"kind": "cell"}},
    "projection": {"seed": 1},
    "audit": {"alpha": 0.01, "draws": 1000, "moment_draws": 100, "seed": 1},
    "purpose": {"low": 0, "high": 1},
    "owner": {"unit-of-privacy": {"answer": "pass", "reason": "Because."}},
}
NUMBERS = {
    "path": "x.npy",
    "domain": {"kind": "box", "low": 0, "high": 1},
    "ranges": [[0, 1], [2, 3]],
}
ANSWERED = {"by": "Ada", "at": "2026-01-01T00:00:00Z", "answers": CONFIGURATION["owner"]}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in a document, itself left out."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in entries:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


def mutants(document: dict[str, Any], junk: list[Any]) -> Iterator[dict[str, Any]]:
    """The document with one place changed, one key left out, or one too many."""
    for path in places(document):
        for value in [*junk, ...]:
            changed = copy.deepcopy(document)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            if value is not ...:
                holder[path[-1]] = value
            else:
                del holder[path[-1]]
            yield changed


def said(refusing: Any, document: Any) -> str:
    try:
        refusing(document)
    except ValidationError as error:
        return "; ".join(map(str, refusals(error)))
    except DPVerifyError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("data", [CONFIGURATION["data"], NUMBERS], ids=["columns", "numbers"])
def test_configurations(data: dict[str, Any]) -> None:
    document = CONFIGURATION | {"data": data}
    texts = [said(load_configuration, each) for each in mutants(document, JUNK)]
    assert [text for text in texts if LEAKS.search(text)] == []
    assert [text for text in texts if text.count("\n")] == []
    assert sum(map(bool, texts)) > len(texts) / 2


def test_answers() -> None:
    texts = [said(Answered.model_validate, each) for each in mutants(ANSWERED, JUNK)]
    assert [text for text in texts if LEAKS.search(text)] == []
    assert "by=-1 must be text" in texts


@pytest.mark.nightly
def test_certificates(certificate: dict[str, Any]) -> None:
    some = islice(mutants(certificate, JUNK), None, None, 11)
    texts = [said(Certificate.model_validate, each) for each in some]
    assert [text for text in texts if LEAKS.search(text)] == []
    assert sum(map(bool, texts)) > len(texts) / 2


def test_doors_of_certificates(certificate: dict[str, Any]) -> None:
    broken = certificate | {"environment": {**certificate["environment"], "created": "now"}}
    (check,) = check_certificate(broken, None)
    with pytest.raises(DPVerifyError) as refused:
        compose([broken, broken])
    for text in (check.detail, str(refused.value)):
        assert "environment.created=now must be of the form" in text
        assert not LEAKS.search(text)
