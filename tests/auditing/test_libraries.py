"""Adapters on the real libraries, where they are installed, and the example either way.

They need an environment of their own (benchmarks/peers): diffprivlib wants an older
scikit-learn than this project pins.
"""

from __future__ import annotations

import runpy
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute, BitFlip, Record
from dpverify.data.domain import Box
from dpverify.sampling.words import ReplayableWords
from tests.helpers.paths import ROOT

EXAMPLE = ROOT / "examples" / "audit_libraries.py"
ONE = Attribute(beta=Fraction(1))
CLAIM = ApproxDP(epsilon=Fraction(1))
MISSING = "{} is not installed: it needs an environment of its own (benchmarks.libraries)"


@pytest.fixture
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture
def opendp() -> Any:
    dp = pytest.importorskip("opendp.prelude", reason=MISSING.format("opendp"))
    dp.enable_features("contrib")
    return dp


@pytest.fixture
def ibm() -> Any:
    name = "diffprivlib.mechanisms"
    return pytest.importorskip(name, reason=MISSING.format("diffprivlib"))


def test_what_is_not_installed_is_said(
    example: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("opendp", "opendp.prelude", "diffprivlib"):
        monkeypatch.setitem(sys.modules, name, None)
    example["main"]()
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in shown] == [
        "opendp is left out",
        "diffprivlib is left out",
    ]


def released(mechanism: Any, records: Any) -> Any:
    return mechanism.release(np.array(records), rng=ReplayableWords(1, "key"))


def test_opendp_takes_what_it_is_given(opendp: Any) -> None:
    real = opendp.atom_domain(T=float, nan=False)
    whole = opendp.atom_domain(T=int)
    for domain, metric, kind, attributes in (
        (real, opendp.absolute_distance(T=float), "f", 1),
        (whole, opendp.absolute_distance(T=int), "i", 1),
        (opendp.vector_domain(real), opendp.l1_distance(T=float), "f", 1),
        (opendp.vector_domain(real), opendp.l1_distance(T=float), "f", 2),
        (opendp.vector_domain(whole), opendp.l1_distance(T=int), "i", 3),
    ):
        measurement = opendp.m.make_laplace(domain, metric, 1.0)
        mechanism = adapt(
            measurement, of="record", adjacency=ONE, claim=CLAIM, attributes=attributes
        )
        for pair in Matrices(adjacency=ONE, domain=None, attributes=attributes).extremes(2):
            assert released(mechanism, pair.record).dtype.kind == kind
    coin = opendp.m.make_randomized_response_bool(0.75)
    claim = ApproxDP.from_odds(odds=Fraction(3))
    mechanism = adapt(coin, adjacency=BitFlip(), claim=claim)
    report = audit(mechanism, draws=500, kinds=["black-box"], workers=2)
    assert report.verdict == "no_violation_found"


def test_opendp_of_a_data_set(opendp: Any) -> None:
    bounded = opendp.vector_domain(opendp.atom_domain(bounds=(0.0, 1.0)), size=10)
    domain = Box(low=Fraction(0), high=Fraction(1))
    for scale, verdict in ((1.0, "no_violation_found"), (0.4, "violation")):
        total = (bounded, opendp.symmetric_distance()) >> opendp.t.then_sum()
        measurement = total >> opendp.m.then_laplace(scale=scale)
        mechanism = adapt(
            measurement,
            of="dataset",
            rows=10,
            adjacency=Record(),
            claim=ApproxDP(epsilon=Fraction(1001, 1000)),
            domain=domain,
        )
        report = audit(mechanism, draws=500, kinds=["black-box"], workers=1)
        assert report.verdict == verdict


def test_opendp_false_claims_are_found(opendp: Any) -> None:
    real = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    halved = adapt(opendp.m.make_laplace(*real, 0.5), adjacency=ONE, claim=CLAIM)
    assert audit(halved, draws=500, kinds=["black-box"], workers=1).verdict == "violation"
    report = audit(
        adapt(opendp.m.make_laplace(*real, 1.0), adjacency=ONE, claim=CLAIM),
        draws=1000,
        kinds=["precision"],
        workers=2,
    )
    assert report.verdict == "no_violation_found"


def test_diffprivlib_takes_what_it_is_given(ibm: Any) -> None:
    pure = {"epsilon": 1, "sensitivity": 1}
    for made, kind in ((ibm.Laplace(**pure), "f"), (ibm.Geometric(**pure), "i")):
        mechanism = adapt(made, adjacency=ONE, claim=CLAIM)
        assert released(mechanism, [[0.0]]).dtype.kind == kind


def test_diffprivlib_in_doubles_is_flagged_and_whole_numbers_are_not(ibm: Any) -> None:
    pure = {"epsilon": 1, "sensitivity": 1}
    for made, verdict in (
        (ibm.Laplace(**pure), "violation"),
        (ibm.Geometric(**pure), "no_violation_found"),
    ):
        mechanism = adapt(made, adjacency=ONE, claim=CLAIM)
        # The system's entropy can't be pickled: it is drawn from in this process.
        report = audit(mechanism, draws=2000, kinds=["precision"], workers=2)
        assert report.verdict == verdict


def test_an_opendp_pipeline_in_five_lines(opendp: Any) -> None:
    rows = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.symmetric_distance()
    pair = dpv.Pair(name="one row more", record=[1, 2], neighbour=[1, 2, 4])
    for scale, verdict in ((4.0, "no_violation_found"), (1.0, "violation")):
        clamped = rows >> opendp.t.then_clamp((0, 4)) >> opendp.t.then_sum()
        total = clamped >> opendp.m.then_laplace(scale=scale)
        assert total.map(1) == 4 / scale
        words: Any = {"adjacency": dpv.AddRemove(), "pairs": [pair], "kinds": ["black-box"]}
        report = audit(total, epsilon=1, draws=500, alpha=1e-4, workers=1, **words)
        assert report.verdict == verdict


def test_a_bounded_mean_of_pydp_in_five_lines() -> None:
    laplacian = pytest.importorskip("pydp.algorithms.laplacian", reason=MISSING.format("pydp"))
    pair = dpv.Pair(name="one row more", record=[1.0, 3.0], neighbour=[1.0, 3.0, 4.0])
    for epsilon, verdict in ((1, "no_violation_found"), (12, "violation")):
        mean = laplacian.BoundedMean(epsilon=epsilon, lower_bound=0, upper_bound=4, dtype="float")
        words: Any = {"adjacency": dpv.AddRemove(), "pairs": [pair], "kinds": ["black-box"]}
        report = audit(mean, epsilon=1, draws=500, alpha=1e-4, workers=1, **words)
        assert report.verdict == verdict


def test_a_model_of_diffprivlib_in_five_lines() -> None:
    models = pytest.importorskip("diffprivlib.models", reason=MISSING.format("diffprivlib"))
    points, labels = np.array([[0.1], [0.9], [0.5]]), np.array([0, 0, 1])
    pair = dpv.Pair(name="a label", record=(points, labels), neighbour=(points, 0 * labels))
    words: Any = {"adjacency": dpv.Replace(), "pairs": [pair], "kinds": ["black-box"]}
    model = models.GaussianNB(epsilon=1, bounds=(0, 1))
    report = audit(model, epsilon=1, draws=100, alpha=1e-4, workers=1, **words)
    assert report.verdict == "violation"
    assert "row 2: y 1 -> 0" in str(report)
