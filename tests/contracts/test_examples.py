"""Every mechanism that can be certified has an example on real data, and it works."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpverify as dpv
from dpverify.catalogue import families
from dpverify.certificate.configuration import load_configuration

EXAMPLES = sorted(Path("examples/mechanisms").glob("*.toml"))


def test_there_is_one_for_each() -> None:
    certifiable = {name for name, family in families().items() if family.build is not None}
    missing = certifiable - {path.stem for path in EXAMPLES}
    assert not missing, f"give {missing} a configuration in examples/mechanisms, by its name"
    for path in EXAMPLES:
        assert load_configuration(path).mechanism.name in certifiable


@pytest.mark.nightly
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_certifies_and_verifies(path: Path, tmp_path: Path) -> None:
    derived = dpv.certify(path, tmp_path / "out", accept=lambda _: True).certificate.derived
    assert derived.white_box.verdict == "no_violation_found"
    for finding in derived.estimators:
        if finding.formulas == "exact":
            assert "refuted" not in (finding.mean_verdict, finding.variance_verdict)
    statuses = {check.name: check.status for check in dpv.verify(tmp_path / "out").checks}
    assert statuses.pop("signature") == "not_checked"
    assert statuses.pop("noise") in ("agrees", "not_checked")  # not all add it to every number
    assert set(statuses.values()) == {"agrees"}
