"""Privacy-loss laws: their transforms against integrals, their doubles against their balls."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import acb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.composition._lattice import common_unit
from dpverify.accounting.losses.base import Log, Step, TransformedLoss
from dpverify.accounting.losses.continuous import (
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    NormalRowsLoss,
)
from dpverify.accounting.losses.discrete import (
    DiscreteLaplaceLoss,
    FiniteLoss,
    ResponseLoss,
    StaircaseLoss,
)
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.enclosure import SquareRoot
from dpverify.errors import ParameterError

F = Fraction
LAWS: list[TransformedLoss] = [
    FiniteLoss(pairs=((F(1, 2), F(1, 4)), (F(1, 3), F(3, 4)), (F(1, 6), F(0)))),
    ResponseLoss(step=Log(F(3)), share=F(1, 2)),
    ResponseLoss(step=F(1, 7), infinity_mass=F(1, 9)),
    ResponseLoss(step=SquareRoot(F(2))),
    GaussianLoss(mu_squared=F(2)),
    LaplaceLoss(shift=F(3, 2)),
    LaplaceLoss(shift=F(20)),
    BoundedRangeLoss(epsilon=F(3, 2)),
    BoundedRangeLoss(epsilon=F(1, 100)),
    BoundedRangeLoss(epsilon=F(20)),
    DiscreteLaplaceLoss(scale=F(2), sensitivity=3),
    StaircaseLoss(epsilon=F(1), gamma=F(1, 4)),
    StaircaseLoss(epsilon=F(2), gamma=F(1, 2)),
    NormalRowsLoss(rows=5, gammas=(F(1, 5), F(-1, 6))),
    NormalRowsLoss(rows=4000, gammas=(F(-1, 400),)),
    DiscreteGaussianLoss(sigma_squared=F(1), sensitivity=1),
    DiscreteGaussianLoss(sigma_squared=F(300), sensitivity=7),
    DiscreteGaussianLoss(sigma_squared=F(1, 5), sensitivity=2),
    PositionLoss(
        differ=F(1, 3),
        losses=((ResponseLoss(step=F(1)), 2), (GaussianLoss(mu_squared=F(1)), 1)),
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_loss_reversed_twice_is_itself(law: TransformedLoss) -> None:
    assert isinstance(law, TransformedLoss)
    assert hash(law) == hash(law.reverse().reverse())
    assert law == law.reverse().reverse()


@pytest.mark.parametrize("law", LAWS, ids=repr)
@given(
    c=st.floats(0.01, 3), y=st.floats(1e-3, 1e5), beyond=st.floats(1, 100, allow_subnormal=False)
)
def test_doubles_stay_within_their_bounds(
    law: TransformedLoss, c: float, y: float, beyond: float
) -> None:
    with ctx.workprec(200):
        value, at_c, far = law.transform([acb(c, y), acb(c), acb(c, y * beyond)])
        (found,), (error,) = law.characteristic(c, np.array([y]))
        assert abs(value / at_c - acb(complex(found))) <= error
        assert error <= 1e-6
        assert float(at_c.real.log().mid()) == pytest.approx(
            law.log_moment(np.array([c]))[0], rel=1e-9, abs=1e-9
        )
        limit = law.envelope(c, y)
        assert limit <= 0
        assert far.abs_lower() <= at_c.real * acb(limit).exp().real


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_reversal_reflects_the_transform(law: TransformedLoss) -> None:
    """M_rev(s) = M(−1 − s), on the mass that both sides share, where the latter is defined."""
    with ctx.workprec(200):
        s = acb(0.25, 1.5)
        if law.abscissa < 10 or law.reverse().abscissa < 10:
            return
        difference = law.reverse().transform([s])[0] - law.transform([-1 - s])[0]
        assert abs(difference) <= 1e-50


@pytest.mark.parametrize(
    ("law", "density"),
    [
        (LaplaceLoss(shift=F(3, 2)), lambda x: mpmath.exp(-abs(x)) / 2),
        (GaussianLoss(mu_squared=F(9, 4)), lambda x: mpmath.npdf(x)),
    ],
)
def test_transforms_of_shifted_noise(law: TransformedLoss, density: object) -> None:
    """∫ p^{1+s} q^{−s} by quadrature, both laws being a shift by 3/2."""
    assert callable(density)
    with mpmath.workdps(30):
        s, shift = mpmath.mpc("0.75", "2.5"), mpmath.mpf("1.5")
        integral = mpmath.quad(
            lambda x: density(x) ** (1 + s) * density(x - shift) ** -s,
            [-30, -10, 0, 0.75, 1.5, 10, 30],
        )
    with ctx.workprec(120):
        found = complex(law.transform([acb(0.75, 2.5)])[0])
    assert abs(found - complex(integral)) < 1e-11


def test_the_transform_of_normal_rows() -> None:
    """One row, N(0, 1 + γ) against N(0, 1), by quadrature."""
    gamma = F(1, 3)
    with mpmath.workdps(30):
        wide = mpmath.sqrt(mpmath.mpf(4) / 3)
        s = mpmath.mpc("0.5", "1.25")
        integral = mpmath.quad(
            lambda x: mpmath.npdf(x, 0, wide) ** (1 + s) * mpmath.npdf(x) ** -s,
            [-40, -10, 0, 10, 40],
        )
    with ctx.workprec(120):
        found = complex(NormalRowsLoss(rows=1, gammas=(gamma,)).transform([acb(0.5, 1.25)])[0])
    assert abs(found - complex(integral)) < 1e-12


def test_outputs_of_equal_ratio_are_merged() -> None:
    third = F(1, 3)
    spread = FiniteLoss(pairs=((third, third), (third, third), (third, third)))
    assert spread == FiniteLoss(pairs=((F(1), F(1)),))
    assert spread.infinity_mass == 0


@pytest.mark.parametrize(
    ("steps", "unit"),
    [
        ([Log(F(13, 7) ** 6), Log(F(13, 7) ** 15), Log(F(13, 7) ** 10)], Log(F(13, 7))),
        ([Log(F(4)), Log(F(8))], Log(F(2))),
        ([Log(F(2)), Log(F(3))], None),
        ([Log(F(4)), Log(F(4, 3))], None),
        ([F(1, 3), F(1, 2)], F(1, 6)),
        ([SquareRoot(F(2)), SquareRoot(F(8)), SquareRoot(F(9, 2))], SquareRoot(F(1, 2))),
        ([SquareRoot(F(2)), F(1)], None),
        ([Log(F(3)), F(1)], None),
    ],
)
def test_the_common_unit_of_steps_in_any_order(steps: list[Step], unit: Step | None) -> None:
    assert common_unit(steps) == unit
    assert common_unit(reversed(steps)) == unit


@given(
    ratio=st.fractions(F(9, 8), 10, max_denominator=50),
    powers=st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_the_unit_is_common(ratio: Fraction, powers: list[int]) -> None:
    unit = common_unit(Log(ratio**power) for power in powers)
    assert isinstance(unit, Log)
    assert {unit.argument**k for k in range(1, 800)} >= {ratio**power for power in powers}


def test_probabilities_that_do_not_sum_to_one() -> None:
    with pytest.raises(ParameterError, match=r"sum of q=0\.75 must be exactly 1"):
        FiniteLoss(pairs=((F(1, 2), F(1, 2)), (F(1, 2), F(1, 4))))
    with pytest.raises(ParameterError, match="non-negative"):
        FiniteLoss(pairs=((F(3, 2), F(1, 2)), (F(-1, 2), F(1, 2))))
    with pytest.raises(ParameterError, match="both sides"):
        FiniteLoss(pairs=((F(1), F(0)), (F(0), F(1))))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ResponseLoss(step=F(0)),
        lambda: ResponseLoss(step=F(-1)),
        lambda: ResponseLoss(step=F(1), share=F(0)),
        lambda: ResponseLoss(step=F(1), infinity_mass=F(1)),
        lambda: Log(F(1)),
        lambda: GaussianLoss(mu_squared=F(0)),
        lambda: LaplaceLoss(shift=F(0)),
        lambda: NormalRowsLoss(rows=0, gammas=(F(1),)),
        lambda: NormalRowsLoss(rows=1, gammas=(F(-1),)),
        lambda: PositionLoss(differ=F(0), losses=((ResponseLoss(step=F(1)), 1),)),
        lambda: PositionLoss(differ=F(1, 2), losses=()),
    ],
)
def test_what_is_no_loss_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ParameterError):
        make()
