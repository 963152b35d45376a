"""The report in a browser: headless Chromium complains of nothing and asks for nothing."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from dpverify.certificate.checklist import answers
from dpverify.certificate.configuration import AboutField
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from tests.helpers.browser import CHROMIUM

HOSTILE = (
    "<script>console.error('in')</script>\"'&<img src=http://example.invalid/x.png onerror=x()>"
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: install chromium to open the report"
)


class Visit(NamedTuple):
    """What a page said and asked for while it was loaded and printed."""

    console: list[str]
    requests: list[str]
    text: str
    pages: int


def visit(page: Path) -> Visit:
    """Open a page in headless Chromium, print it, and watch."""
    folder = page.parent
    log, pdf = folder / "net.json", folder / "page.pdf"
    common = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing leaves, whatever the page asks for
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
    ]
    command = [*common, f"--log-net-log={log}", "--dump-dom", page.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    command = [*common, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return Visit(
        console=[line for line in seen.stderr.splitlines() if "CONSOLE" in line],
        requests=requests_of(log, page.as_uri()),
        text=seen.stdout,
        pages=pdf.read_bytes().count(b"/Type /Page\n"),
    )


def requests_of(log: Path, page: str) -> list[str]:
    """Addresses that were asked for on behalf of the page, itself left out."""
    text = log.read_text(encoding="utf-8")
    try:
        events = json.loads(text)["events"]
    except json.JSONDecodeError:  # cut off where the browser was closed
        events = json.loads(text.rstrip().rstrip(",") + "]}")["events"]
    return [
        url
        for event in events
        if isinstance(parameters := event.get("params"), dict)
        and isinstance(url := parameters.get("url"), str)
        and url != page
        and str(parameters.get("initiator", "not an origin")) != "not an origin"
    ]


@pytest.mark.nightly
def test_report_of_a_hostile_configuration(certificate: dict[str, Any], tmp_path: Path) -> None:
    fields = copy.deepcopy(certificate)
    fields["inputs"]["owner"] = {"trust-model": {"answer": "pass", "reason": HOSTILE}}
    fields["inputs"]["mechanism"] = fields["derived"]["protects"] = HOSTILE
    read = Certificate.model_validate(fields)
    answered = [answer.model_dump() for answer in answers(read.inputs, read.derived)]
    page = tmp_path / "report.html"
    page.write_text(render(Certificate.model_validate(fields | {"checklist": answered})))
    seen = visit(page)
    assert seen.console == []
    assert seen.requests == []
    assert "The owner says:</b> &lt;script&gt;" in seen.text
    assert seen.pages > 2


@pytest.mark.nightly
def test_what_a_signer_reads_is_one_sheet_of_paper(
    certificate: dict[str, Any], tmp_path: Path
) -> None:
    """With every hazard left to the owner that the example leaves, and all of the owner's words."""
    about = dict.fromkeys(get_args(AboutField), 2 * "Visits per clinic, " + "2025")
    inputs = certificate["inputs"] | {"about": about}
    whole = render(Certificate.model_validate(certificate | {"inputs": inputs}))
    first, rest = whole.split('<section aria-labelledby="detail">')
    page = tmp_path / "report.html"
    page.write_text(first + "</main></body></html>")
    assert visit(page).pages == 1
    page.write_text(first + rest)
    assert visit(page).pages > 1


@pytest.mark.nightly
def test_a_page_that_complains_and_asks_is_noticed(tmp_path: Path) -> None:
    """The control: without it, a browser that says nothing would pass."""
    page = tmp_path / "bad.html"
    page.write_text(
        '<!DOCTYPE html><title>bad</title><img src="http://example.invalid/x.png">'
        "<script>console.error('planted'); undefined_function()</script>"
    )
    seen = visit(page)
    assert any("planted" in line for line in seen.console)
    assert any("undefined_function" in line for line in seen.console)
    assert "http://example.invalid/x.png" in seen.requests
