"""The report is bound: edited anywhere it is noticed, signed or not."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpverify.certificate.certify import CERTIFICATE, REPORT, document_digest
from dpverify.certificate.checks import Check, check_certificate
from dpverify.certificate.report.check import likeness
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from dpverify.certificate.sign import add_signature, check_signatures, envelope_beside, statement
from tests.helpers.profiles import thinned

pytestmark = pytest.mark.usefixtures("own_figures")

Edit = Callable[[str], str]
EDITS: dict[str, tuple[str, Edit]] = {
    "another epsilon": ("text", lambda page: page.replace("ε = 2", "ε = 0.01")),
    "one digit": ("text", lambda page: page.replace("0.001", "0.002", 1)),
    "a comment": ("text", lambda page: page.replace("</body>", "<!-- x --></body>")),
    "a space": ("text", lambda page: page + " "),
    "a script": ("text", lambda page: page.replace("</main>", "<script>x</script></main>")),
    "another style": ("text", lambda page: page.replace("</style>", ".x{color:red}</style>")),
    "a figure less": ("text", lambda page: page.replace("<svg ", "<p ", 1)),
    "a figure's frame": ("text", lambda page: page.replace("<svg ", '<svg style="x" ', 1)),
    "text in a figure": (
        "text",
        lambda page: page.replace("</svg>", "<foreignObject>ε = 0.01</foreignObject></svg>", 1),
    ),
    "a link in a figure": ("text", lambda page: page.replace("</svg>", '<a href="x"/></svg>', 1)),
    # An attribute's value that browsers read on to the next quotation mark of the text.
    "an open quotation": ("text", lambda page: page.replace("</svg>", '<g id="</svg>', 1)),
    "a title in a title": (
        "text",
        lambda page: page.replace("</svg>", "<title><title/></title></svg>", 1),
    ),
    "a script in a figure": (
        "text",
        lambda page: page.replace("</svg>", '<g onclick="x"/></svg>', 1),
    ),
    "a line in a figure": ("figures", lambda page: page.replace('<path d="M', '<path d="M 1 1 L')),
    "a figure's size": ("figures", lambda page: page.replace('viewBox="0', 'viewBox="1', 1)),
}


@pytest.fixture(scope="module")
def page(workplace: Path) -> str:
    return (workplace / "out" / REPORT).read_text(encoding="utf-8")


@pytest.fixture
def folder(workplace: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workplace / "out", tmp_path / "out"))


def found(fields: dict[str, Any], folder: Path | None) -> Check:
    return next(c for c in check_certificate(fields, folder, replay=False) if c.name == "report")


@pytest.mark.parametrize("edit", EDITS)
def test_each_edit_of_a_page_is_told_as_what_it_is(edit: str, page: str) -> None:
    due, change = EDITS[edit]
    edited = change(page)
    assert edited != page
    assert likeness(edited.encode(), page.encode()) == due


def test_likeness_of_no_text(page: str) -> None:
    assert likeness(page.encode(), page.encode()) == "same"
    assert likeness(page.encode("utf-16"), page.encode()) == "text"
    assert likeness(b"", page.encode()) == "text"
    # A page that a search for figures would take hours for.
    assert likeness(page.encode() + b"<svg " * 200_000, page.encode()) == "text"
    hostile = page.replace("</svg>", "<svg viewBox='" * 100_000 + "</svg>", 1)
    assert likeness(hostile.encode(), page.encode()) == "text"


def test_an_edited_report_differs(certificate: dict[str, Any], folder: Path, page: str) -> None:
    assert found(certificate, folder).status == "agrees"
    for edit in ("another epsilon", "a line in a figure"):
        (folder / REPORT).write_text(EDITS[edit][1](page), encoding="utf-8")
        check = found(certificate, folder)
        assert (check.status, check.fields) == ("differs", ("report",))


def test_a_report_that_is_elsewhere(
    certificate: dict[str, Any], folder: Path, workplace: Path
) -> None:
    (folder / REPORT).unlink()
    assert found(certificate, folder).status == "not_checked"
    (folder / REPORT).symlink_to(workplace / "out" / REPORT)
    assert found(certificate, folder).status == "differs"


def test_without_the_extra_the_report_is_inconclusive(
    certificate: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "dpverify.certificate.report.html")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    check = found(certificate, folder)
    assert check.status == "inconclusive"
    assert check.detail == "a report needs jinja2: pip install 'dpverify[report]'."


@pytest.mark.parametrize(
    ("program", "drawing", "text"),
    thinned(
        [
            ("matplotlib", "not_checked", "differs"),
            ("freetype", "not_checked", "differs"),
            ("dpverify", "not_checked", "inconclusive"),
            ("jinja2", "not_checked", "inconclusive"),
            ("python", "differs", "differs"),
            ("numpy", "not_checked", "differs"),
        ],
        2,
        rows=True,
    ),
)
def test_what_other_versions_may_draw_otherwise_is_not_called_different(
    certificate: dict[str, Any], folder: Path, program: str, drawing: str, text: str
) -> None:
    fields = copy.deepcopy(certificate)
    fields["environment"]["versions"][program] = "0.0.1"
    fields["digest"] = document_digest(fields)
    page = render(Certificate.model_validate(fields))
    for edit, status in (
        (str, "agrees"),
        (EDITS["a line in a figure"][1], drawing),
        (EDITS["another epsilon"][1], text),
    ):
        (folder / REPORT).write_text(edit(page), encoding="utf-8")
        check = found(fields, folder)
        assert check.status == status
        if status in ("not_checked", "inconclusive"):
            assert f"{program} 0.0.1 (here " in check.detail


def test_a_signature_binds_the_report(certificate: dict[str, Any], folder: Path, page: str) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    path = envelope_beside(folder / CERTIFICATE)

    def signature() -> Check:
        (check,) = check_signatures(certificate, path, [key.public_key()])
        return check

    add_signature(certificate, path, key)
    assert signature().status == "agrees"
    assert "report" in signature().detail
    (folder / REPORT).write_text(page.replace("ε = 2", "ε = 0.01"), encoding="utf-8")
    assert signature().status == "differs"
    assert "statement.subject[1].digest.sha256" in signature().fields
    (folder / REPORT).unlink()  # what was signed need not be published
    assert signature().status == "agrees"
    path.unlink()
    add_signature(certificate, path, key)
    assert signature().status == "agrees"
    (folder / REPORT).write_text(page, encoding="utf-8")  # and what wasn't is not bound
    assert signature().status == "differs"
    names = [subject["name"] for subject in statement(certificate, "0" * 64)["subject"]]
    assert names == ["sketch.npz", REPORT]


@pytest.mark.nightly
def test_another_process_renders_the_same_bytes(folder: Path, page: str) -> None:
    """Other hashes of strings, another locale, another time zone, another working folder."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from dpverify.certificate.schema import Certificate\n"
        "from dpverify.certificate.report.html import render\n"
        "from dpverify.certificate.checks import read_certificate\n"
        "fields = read_certificate(Path(sys.argv[1]))\n"
        "sys.stdout.buffer.write(render(Certificate.model_validate(fields)).encode())\n"
    )
    other = {"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}
    path = os.environ.get("PYTHONPATH", os.getcwd())  # noqa: PTH109
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / CERTIFICATE)],
        check=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | other | {"PYTHONPATH": path},
    )
    assert done.stdout.decode() == page
