"""Numbers of a configuration: read as everywhere else, whether they are numbers or text."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpverify.certificate.configuration import load_configuration

THIRD = Fraction(1, 3)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1/3", THIRD), (THIRD, THIRD), ("0.5", Fraction(1, 2)), (Decimal("5e-1"), Fraction(1, 2))],
)
def test_one_grammar(written: Any, meant: Fraction) -> None:
    known = load_configuration(
        {
            "data": {"path": "x.npy", "domain": {"low": written, "high": "4/3"}},
            "mechanism": {"name": "dp-oporp"},
            "privacy": {
                "epsilon": written,
                "delta": written,
                "adjacency": {"kind": "attribute", "beta": written},
            },
            "projection": {"seed": 3.0},
            "audit": {"alpha": written, "draws": Decimal("1e3"), "moment_draws": "200", "seed": 4},
            "purpose": {"low": written, "high": "7/2"},
        }
    )
    assert known.data.domain
    assert known.data.domain.numbers() == {"low": meant, "high": Fraction(4, 3)}
    privacy, audit, purpose = known.privacy, known.audit, known.purpose
    assert purpose
    beta = privacy.adjacency.numbers()["beta"]
    assert {privacy.epsilon, privacy.delta, beta, audit.alpha, purpose.low} == {meant}
    assert purpose.high == Fraction(7, 2)
    whole = [known.projection.seed, audit.draws, audit.moment_draws, audit.seed]
    assert whole == [3, 1000, 200, 4]
    assert {type(each) for each in whole} == {int}
