"""How many draws the formulas are checked with, where a configuration doesn't say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpverify.certificate import derive
from dpverify.certificate.certify import certify, configured, requested
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.derive import AuditPlan, with_enough_draws
from dpverify.certificate.schema import Certificate
from dpverify.estimation.moments import Moments, draw_estimates, enough_draws
from dpverify_mechanisms.linear.estimators import SquaredDistance

HEAVY: dict[str, Any] = {
    "mechanism": "raw-data-g-opt",
    "noise": "laplace",
    "epsilon": 4,
    "domain": {"low": 0, "high": 1},
    "adjacency": {"kind": "attribute", "beta": 1},
}
RECORDS = np.random.default_rng(4).random((9, 8))


def test_the_number_follows_from_draws_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    aside = range(2**24 - 30, 2**24)
    monkeypatch.setattr(derive, "_ASIDE", aside)
    _, inputs, mechanism = configured(
        requested(RECORDS, None, None, {**HEAVY, "audit": {"draws": 100}})
    )
    plan = AuditPlan.of(inputs, mechanism)
    made = {}
    for draws in (10**5, 2000, 100):
        as_many = replace(plan, inputs=inputs.model_copy(update={"draws": draws}))
        made[draws] = with_enough_draws(as_many, workers=1).inputs.moment_draws
    values = draw_estimates(
        mechanism, plan.estimators, plan.probes[-1], draws=30, seed=0, start=aside.start
    )
    exact = [Moments.of(values[place]) for place in (0, 1)]
    assert [estimator.order for estimator in plan.estimators] == ["exact", "exact", "delta method"]
    assert made[10**5] == enough_draws(exact, plan.moment_level) > 2000
    assert (made[2000], made[100]) == (2000, derive.PILOT)


def certified(folder: Path) -> Certificate:
    made = certify(RECORDS, folder, accept=lambda _: True, audit={"draws": 20_000}, **HEAVY)
    return made.certificate


@pytest.mark.nightly
@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_heavy_tails_are_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    right = SquaredDistance.variance
    monkeypatch.setattr(SquaredDistance, "variance", lambda *given: factor * right(*given))
    certificate = certified(tmp_path / "out")
    distance, product, _ = certificate.derived.estimators
    assert (distance.mean_verdict, product.mean_verdict) == ("confirmed_within_margin",) * 2
    assert product.variance_verdict == "confirmed_within_margin"
    expected = "confirmed_within_margin" if factor == 1 else "refuted"
    assert distance.variance_verdict == expected
    found = check_certificate(certificate.to_dict(), tmp_path / "out")
    assert {check.status for check in found} == {"agrees"}
