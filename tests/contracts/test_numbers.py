"""Every number of every class at the door: read exactly, or refused by its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.curves.randomized_response import MixedResponse
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.notions.fdp import GaussianTradeOff
from dpverify.auditing.config import AuditConfig
from dpverify.errors import DPVerifyError, ParameterError
from tests.helpers.profiles import examples

# How each is made, and numbers that it accepts, by name.
MADE: dict[Callable[..., Any], Mapping[str, int | str]] = {
    dpv.ApproxDP: {"epsilon": 1, "delta": "0.125"},
    dpv.ApproxDP.from_odds: {"odds": 3, "delta": 0},
    dpv.Gaussian: {"sigma": 4, "sensitivity": 1},
    dpv.Gaussian.from_mu_squared: {"mu_squared": 2},
    dpv.DiscreteGaussian: {"sigma": 2, "sensitivity": 1},
    dpv.Laplace: {"scale": 2, "sensitivity": 1},
    dpv.RandomizedResponse: {"keep": "0.75", "other": "0.125", "positions": 3},
    dpv.RandomizedResponse.of_values: {"values": 3, "keep": "0.75", "positions": 3},
    dpv.ZCDP: {"rho": "0.5"},
    GaussianTradeOff: {"mu_squared": 2},
    MixedResponse: {"keep": "0.75", "other": "0.25", "positions": 3, "differ": "0.5"},
    RankOneNormal: {"rows": 4, "gamma": 1},
    RankTwoNormal: {"rows": 4, "gamma": 1},
    dpv.Attribute: {"beta": 1},
    dpv.L1Ball: {"radius": 1},
    dpv.Items: {"changes": 2},
    dpv.Edge: {"weight": 1},
    dpv.Row: {"radius": 1},
    dpv.Box: {"low": 0, "high": 1},
    dpv.Ball: {"radius": 1},
    dpv.Sets: {"min_size": 2, "max_size": 5},
    dpv.AddRemove: {"k": 2},
    dpv.Replace: {"k": 2},
    dpv.LInf: {"radius": 1},
    dpv.L2: {"radius": 1},
    dpv.Integers: {"low": 0, "high": 5},
    dpv.Reals: {"low": 0, "high": "0.5"},
    dpv.Text: {"length": 5},
    AuditConfig: {
        "delta": "0.125",
        "alpha": "0.25",
        "draws": 64,
        "seed": 3,
        "workers": 2,
        "time_limit": "0.5",
    },
}
ANYTHING = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=8),
    st.floats(width=32).map(np.float32),
    st.integers(-100, 100).map(np.int64),
    st.sampled_from([None, [], (1, 2), {}, object(), 1j, np.array([1.0, 2.0]), np.bool_(True)]),
    st.sampled_from(["1e-6", "nan", "inf", "1e99999", "1_0", Decimal("sNaN"), 10**5000]),
)


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__qualname__)
def test_one_number_written_in_many_ways(make: Callable[..., Any]) -> None:
    numbers, made = MADE[make], make(**MADE[make])  # doubles, all of them
    for write in (lambda x: str(float(x)), float, lambda x: Decimal(float(x)), np.float64):
        assert make(**{name: write(float(x)) for name, x in numbers.items()}) == made


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__qualname__)
@given(st.data())
def test_anything_is_read_or_refused(make: Callable[..., Any], data: st.DataObject) -> None:
    numbers = dict[str, Any](MADE[make])
    name = data.draw(st.sampled_from(sorted(numbers)))
    numbers[name] = data.draw(ANYTHING)
    try:
        made = make(**numbers)
    except ParameterError:
        return
    assert hash(made) == hash(make(**numbers))


CURVES = [
    dpv.ApproxDP(epsilon=1, delta="0.001"),
    dpv.Gaussian(sigma=1),
    dpv.DiscreteGaussian(sigma=1),
    dpv.Laplace(scale=1),
    dpv.RandomizedResponse(keep="0.75", positions=3),
    2 * dpv.Laplace(scale=1),
    dpv.ZCDP(rho=1),
    GaussianTradeOff(mu_squared=1),
]


@pytest.mark.parametrize("curve", CURVES, ids=str)
@examples(25)
@given(ANYTHING)
def test_any_question_is_answered_or_refused(curve: Any, value: Any) -> None:
    for ask in (curve.delta_at, curve.epsilon_at):
        try:
            found = ask(value)
        except DPVerifyError:
            continue
        assert 0 <= found.lower <= found.upper
        assert not math.isnan(found.safe)


@pytest.mark.parametrize("curve", CURVES[:6], ids=str)
@examples(25)
@given(ANYTHING)
def test_any_factor_is_whole_or_refused(curve: Any, times: Any) -> None:
    try:
        total = times * curve
    except (ParameterError, TypeError):
        return
    assert total.losses() == tuple((loss, int(times) * n) for loss, n in (1 * curve).losses())
