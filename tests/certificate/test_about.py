"""What the owner calls a release: its limits, where it goes, and that it is marked as theirs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpverify.certificate import register
from dpverify.certificate.certify import configured, document_digest, requested
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from dpverify.data.domain import Box
from dpverify.errors import ConfigurationError

WORDS = {
    "title": "Visits per clinic, <b>2025</b>",
    "organisation": "Office of Health",
    "data_set": "Register of visits",
    "purpose": "Comparing clinics",
    "period": "January to December 2025",
    "contact": "privacy@health.example",
}


@pytest.fixture
def made(certificate: dict[str, Any]) -> dict[str, Any]:
    """A certificate whose owner says something of it, with its own digest."""
    fields = copy.deepcopy(certificate)
    fields["inputs"]["about"] = WORDS
    return fields | {"digest": document_digest(fields)}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"title": "a\x1b[2J"}, r"about.title.* holds the hidden character \\x1b"),
        ({"title": "a\u202eb"}, r"holds the hidden character \\u202e"),
        ({"title": "a" * 201}, "about.title=.* must have 200 characters at most"),
        ({"title": "  "}, "about.title.* is empty"),
        ({"title": 3}, "about.title=3 must be text"),
        ({"headline": "a"}, "unknown key about.headline: it must be 'title', 'org"),
    ],
)
def test_words_that_are_refused(workplace: Path, about: dict[str, Any], message: str) -> None:
    tables = {
        "data": {"path": "records.npy", "domain": {"low": 0, "high": 1}},
        "mechanism": {"name": "dp-oporp", "k": 4},
        "privacy": {"epsilon": 2, "delta": 1e-3, "adjacency": {"kind": "record"}},
    }
    load_configuration(tables | {"about": {"title": "a"}})
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(tables | {"about": about})


def test_from_python_to_the_certificate() -> None:
    asked = requested(
        np.zeros((3, 4)),
        None,
        None,
        {
            "mechanism": "raw-data-g-opt",
            "epsilon": 1,
            "delta": 1e-6,
            "adjacency": "record",
            "domain": Box(0, 1),
            "about": {"title": "  Visits\n per   clinic "},
        },
    )
    _, inputs, _ = configured(asked)
    assert inputs.about == {"title": "Visits per clinic"}


def test_they_are_on_the_first_page_as_the_owners(made: dict[str, Any], no_figures: None) -> None:
    page = render(Certificate.model_validate(made))
    first = page[: page.index("In detail")]
    words = first[first.index("In the owner's words") : first.index("Who is protected")]
    assert "Title: “Visits per clinic, &lt;b&gt;2025&lt;/b&gt;”" in words
    assert all(f"“{text}”" in words for name, text in WORDS.items() if name != "title")
    assert "Nobody checked these words." in words


def test_they_are_bound_by_the_digest(made: dict[str, Any]) -> None:
    checks = check_certificate(made, None, replay=False)
    assert not any(check.fields for check in checks)
    made["inputs"]["about"]["title"] = "Visits"
    fields = [
        field for check in check_certificate(made, None, replay=False) for field in check.fields
    ]
    assert fields == ["digest"]


def test_the_registry_takes_them(made: dict[str, Any]) -> None:
    certificate = Certificate.model_validate(made)
    basic = register.entry(certificate)["deployment"]["basic"]
    assert basic["name"] == WORDS["title"]
    assert basic["data_curators"] == [WORDS["organisation"]]
    assert basic["intended_use"] == WORDS["purpose"]
    assert basic["description"] == "Register of visits, January to December 2025"
    assert basic["data_product_region"] == "DECIDE"
    assert register.entry(certificate, name="Visits")["deployment"]["basic"]["name"] == "Visits"
