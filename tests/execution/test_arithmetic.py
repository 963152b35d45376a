"""Whatever a process, or what is audited, sets of numpy's errors and of decimals: nothing moves."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Context, Decimal, DefaultContext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify._decimals import context
from dpverify.accounting.budget import Budget
from dpverify.accounting.notions.people_figure import people
from dpverify.certificate.rounding import exact
from dpverify.enclosure import short_string
from dpverify.execution.arithmetic import foreign_arithmetic, usual_arithmetic

TRAPS = [decimal.Inexact, decimal.Rounded, decimal.FloatOperation, decimal.Subnormal]
CONTEXTS = {
    "six digits": Context(prec=6),
    "one digit": Context(prec=1, rounding=decimal.ROUND_UP),
    "all trapped": Context(traps=[*TRAPS, decimal.InvalidOperation]),
    "none trapped": Context(prec=2, traps=[]),
    "few exponents": Context(prec=3, Emax=3, Emin=-3),
}


PARTS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


@pytest.fixture
def restored() -> Iterator[None]:
    errors, decimals, default = np.geterr(), decimal.getcontext().copy(), DefaultContext.copy()
    yield
    np.seterr(**errors)
    decimal.setcontext(decimals)
    for part in PARTS:
        setattr(DefaultContext, part, getattr(default, part))
    DefaultContext.traps = default.traps


def numbers() -> list[Any]:
    """All that is written as decimals, or computed by them."""
    epsilon = dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6)
    written = [epsilon.as_json(), f"{epsilon:.3f}", short_string(dpv.Laplace(scale=3).scale / 7)]
    budgets = []
    for composition in ("gaussian", "zcdp"):
        kept = Budget(epsilon="1/3", delta="1e-6", slack="5e-7", composition=composition)
        kept.spend(dpv.Gaussian(sigma=40))
        kept.spend(dpv.Laplace(scale=300))
        budgets.append([kept.rows(), kept.left, kept.odometer])
    with pytest.raises(dpv.ParameterError) as refused:
        dpv.Gaussian(sigma=4).epsilon_at(delta=dpv.Laplace(scale=3).scale / 2)
    noise = dpv.calibrate(dpv.DiscreteGaussian, epsilon=1, delta=1e-6)
    return [written, budgets, str(refused.value), noise, people(0.123456), exact("-1.234567")]


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.usefixtures("restored")
def test_decimals(name: str) -> None:
    expected = numbers()
    decimal.setcontext(CONTEXTS[name].copy())
    assert numbers() == expected


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.usefixtures("restored")
def test_the_default_of_decimals(name: str) -> None:
    """What new threads take over, and contexts that aren't told otherwise."""
    expected = numbers()
    for part in PARTS:
        setattr(DefaultContext, part, getattr(CONTEXTS[name], part))
    DefaultContext.traps = CONTEXTS[name].traps
    decimal.setcontext(context())  # the thread's own, which is older
    assert numbers() == expected
    with usual_arithmetic():
        assert numbers() == expected
        assert decimal.getcontext().prec == 28


def test_only_one_place_makes_contexts() -> None:
    """Elsewhere, too, the default would show through."""
    sources = Path(dpv.__file__).parent
    made = {path.name for path in sources.rglob("*.py") if "Context(" in path.read_text()}
    assert made == {"_decimals.py"}


@pytest.mark.usefixtures("restored")
def test_an_upper_end_stays_above_with_few_digits() -> None:
    decimal.getcontext().prec = 6
    epsilon = dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6)
    assert float(epsilon.as_json()["upper"]) >= epsilon.upper


@pytest.mark.usefixtures("restored")
def test_errors_of_numpy() -> None:
    np.seterr(all="raise")
    release = 10 * dpv.Gaussian(sigma=4) + dpv.Laplace(scale=2)
    assert release.epsilon_at(1e-6).upper < 5
    people = dpv.Table({"age": dpv.Integers(0, 1)}, rows=(0, 3))

    def count(rows: list[Any], rng: np.random.Generator) -> float:
        np.seterr(all="raise")
        return len(rows) + rng.laplace()

    report = dpv.audit(
        count,
        epsilon=1,
        adjacency=dpv.AddRemove(),
        domain=people,
        kinds=["black-box", "trade-off"],
        draws=400,
        workers=1,
    )
    assert report.verdict == "no_violation_found"
    assert np.geterr()["under"] == "raise"


def count_down(rows: list[Any]) -> str:
    """Of six digits of a third, as was set outside, and one digit less from call to call."""
    decimal.getcontext().prec -= 1
    return str(Decimal(1) / 3)


@pytest.mark.usefixtures("restored")
def test_foreign_code_has_its_own() -> None:
    decimal.getcontext().prec = 6
    with usual_arithmetic():
        assert (decimal.getcontext().prec, np.geterr()["under"]) == (28, "ignore")
        for digits in (5, 4):
            with foreign_arithmetic():
                assert len(count_down([])) == digits + 2
                np.seterr(under="raise")
                with usual_arithmetic(), foreign_arithmetic():  # an audit in what is audited
                    assert decimal.getcontext().prec == digits
            assert (decimal.getcontext().prec, np.geterr()["under"]) == (28, "ignore")
        with foreign_arithmetic():
            assert np.geterr()["under"] == "raise"
    assert (decimal.getcontext().prec, np.geterr()["under"]) == (6, "ignore")
