"""What both checkers say of a released file whose numbers lack the noise of its certificate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpverify.certificate.archive import SKETCH, Contents, write_array
from dpverify.certificate.certify import document_digest
from dpverify.certificate.checks import check_certificate
from dpverify.data.atomic_files import sha256_file
from dpverify_check import dpverify_check as second
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night

VECTORS = ROOT / "tests" / "conformance" / "vectors"


def forged(folder: Path, numbers: Any) -> dict[str, Any]:
    """The vector's certificate, bound to other numbers."""
    shutil.copytree(VECTORS / "oporp", folder)
    fields: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    with (folder / SKETCH).open("wb") as file:
        write_array(file, [numbers], Contents(numbers.shape, numbers.dtype))
    fields["release"]["sha256"] = sha256_file(folder / SKETCH)
    return fields | {"digest": document_digest(fields)}


@pytest.mark.parametrize(
    ("size", "status"), day_and_night((10, "differs"), (0, "differs"), (10**6, "agrees"))
)
def test_both_checkers_find_released_numbers_that_are_too_small_for_the_noise(
    tmp_path: Path, size: int, status: str
) -> None:
    fields = forged(tmp_path / "out", np.full((3, 4), size))
    checks = check_certificate(fields, tmp_path / "out", replay=False)
    found = {check.name: check for check in checks}
    assert found["released file"].status == "agrees"
    assert found["noise"].status == status
    lines = second.check_fields(fields, tmp_path / "out" / SKETCH)
    assert {line.name: line.status for line in lines}["noise"] == status


@pytest.mark.parametrize(
    ("case", "status"), day_and_night(("oporp", "agrees"), ("signs", "not_checked"))
)
def test_a_release_as_it_was_made(case: str, status: str) -> None:
    fields = json.loads((VECTORS / case / "certificate.json").read_text())
    checks = check_certificate(fields, VECTORS / case, replay=False)
    assert {check.name: check.status for check in checks}["noise"] == status
