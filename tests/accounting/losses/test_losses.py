"""Privacy-loss laws: their transforms against integrals, their doubles against their balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.composition._lattice import common_unit
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import Log, PrivacyLoss, TransformedLoss, step_ball
from dpverify.accounting.losses.continuous import (
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    NormalRowsLoss,
)
from dpverify.accounting.losses.discrete import (
    AtomicLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    ResponseLoss,
    StaircaseLoss,
)
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.accounting.losses.shuffled import ShuffledLoss
from dpverify.accounting.losses.smooth_samples import (
    SmoothBatchLoss,
    SmoothReplacedLoss,
    SmoothSampledLoss,
)
from dpverify.enclosure import SquareRoot, to_arb
from dpverify.errors import NumericalError, ParameterError
from tests.helpers.profiles import day_and_night, examples, thinned

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
    PositionLoss(differ=F(1), losses=((LaplaceLoss(shift=F(1)), 3),)),
    PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 10)),
    PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1, 4)), rate=F(3, 4), added=True),
    PoissonReplacedLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 10)),
    PoissonReplacedLoss(base=GaussianLoss(mu_squared=F(4)), rate=F(9, 10)),
    SmoothSampledLoss(base=LaplaceLoss(shift=F(3, 2)), rate=F(1, 10)),
    SmoothSampledLoss(base=BoundedRangeLoss(epsilon=F(1)), rate=F(9, 10), added=True),
    SmoothBatchLoss(base=LaplaceLoss(shift=F(5)), rate=F(1, 100)),
    SmoothBatchLoss(base=GaussianLoss(mu_squared=F(1, 2)), rate=F(1, 2)),
    SmoothReplacedLoss(base=LaplaceLoss(shift=F(1, 3)), rate=F(1, 4)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_loss_reversed_twice_is_itself(law: TransformedLoss) -> None:
    assert isinstance(law, TransformedLoss)
    assert hash(law) == hash(law.reverse().reverse())
    assert law == law.reverse().reverse()


@pytest.mark.parametrize("law", thinned(LAWS, 3), ids=repr)
@examples(100, day=4)
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
        assert abs(difference) <= 1e-30


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


@pytest.mark.parametrize("size", [1, 2, 3, 97, 1000])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(97), Fraction(10**6)])
def test_the_transform_of_discrete_laplace_noise_is_the_sum_over_its_atoms(
    scale: Fraction, size: int
) -> None:
    law = DiscreteLaplaceLoss(scale=scale, sensitivity=size)
    points = [acb(-2.5, 1), acb(-0.5), acb(-0.5, 3e4), acb(0), acb(0.25, 1e-3), acb(7, 20)]
    with ctx.workprec(256):
        found, summed = law.transform(points), AtomicLoss.transform(law, points)
        for value, total in zip(found, summed, strict=True):
            assert value.overlaps(total)
            assert value.rel_accuracy_bits() > 128


def test_a_large_move_with_discrete_laplace_noise_is_no_sum_at_every_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AtomicLoss, "transform", None)
    law = DiscreteLaplaceLoss(scale=Fraction(97), sensitivity=97)
    assert 0.73 < Composed(losses=((law, 10),)).delta_at(1).upper < 0.74


def test_outputs_of_equal_ratio_are_merged() -> None:
    third = F(1, 3)
    spread = FiniteLoss(pairs=((third, third), (third, third), (third, third)))
    assert spread == FiniteLoss(pairs=((F(1), F(1)),))
    assert spread.infinity_mass == 0


@pytest.mark.parametrize(
    "law",
    [
        *(law for law in LAWS if isinstance(law, AtomicLoss)),
        FiniteLoss(pairs=((F(4, 7), F(1, 7)), (F(2, 7), F(2, 7)), (F(1, 7), F(4, 7)))),
        FiniteLoss(pairs=((F(1, 2), F(1, 4)), (F(1, 2), F(1, 8)), (F(0), F(5, 8)))),
        StaircaseLoss(epsilon=F(1), gamma=F(1, 3)),
        DiscreteLaplaceLoss(scale=F(3), sensitivity=1),
    ],
    ids=str,
)
def test_the_support_is_that_of_the_atoms(law: AtomicLoss) -> None:
    """Whole multiples of the spacings' unit from the base on, which have no common divisor."""
    support = law.support
    assert support is not None
    with ctx.workprec(128):
        unit = common_unit(support.spacings)
        assert unit is not None
        base = sum((n * step_ball(step) for step, n in support.base), arb(0))
        places = [(loss - base) / step_ball(unit) for _, loss in law.atoms()]
        assert all(abs(place - round(float(place))) < 1e-30 for place in places)
    first, *others = (round(float(place)) for place in places)
    assert math.gcd(*(place - first for place in others)) == 1


@pytest.mark.parametrize(
    ("law", "printed"),
    [
        (GaussianLoss(mu_squared=F(1, 4)), "Gaussian(sigma=2)"),
        (GaussianLoss(mu_squared=F(2)), "Gaussian.from_mu_squared(2)"),
        (LaplaceLoss(shift=F(1, 4)), "Laplace(scale=4)"),
        (BoundedRangeLoss(epsilon=F(1, 2)), "BoundedRange(epsilon=0.5)"),
        (NormalRowsLoss(rows=5, gammas=(F(1, 2), F(-1, 4))), "5 normal rows of gammas -0.25, 0.5"),
        (FiniteLoss(pairs=((F(1, 2), F(1, 4)), (F(1, 2), F(3, 4)))), "laws (0.5, 0.5; 0.25, 0.75)"),
        (ResponseLoss(step=F(2)), "ApproxDP(epsilon=2)"),
        (ResponseLoss(step=F(2), infinity_mass=F(1, 8)), "ApproxDP(epsilon=2, delta=0.125)"),
        (
            ResponseLoss(step=Log(F(3)), infinity_mass=F(1, 8)),
            "ApproxDP.from_odds(3, delta=0.125)",
        ),
        (ResponseLoss(step=Log(F(3))), "RandomizedResponse(keep=0.75)"),
        (
            ResponseLoss(step=Log(F(3)), share=F(1, 2)),
            "RandomizedResponse(keep=0.375, other=0.125)",
        ),
        (DiscreteLaplaceLoss(scale=F(2), sensitivity=1), "DiscreteLaplace(scale=2)"),
        (DiscreteLaplaceLoss(scale=F(2), sensitivity=2), "DiscreteLaplace(scale=2, sensitivity=2)"),
        (StaircaseLoss(epsilon=F(1), gamma=F(1, 4)), "Staircase(epsilon=1, gamma=0.25)"),
        (
            DiscreteGaussianLoss(sigma_squared=F(4), sensitivity=1),
            "DiscreteGaussian(sigma=2, sensitivity=1)",
        ),
        (
            PositionLoss(
                differ=F(1, 4), losses=((ResponseLoss(step=F(2)), 1), (LaplaceLoss(shift=F(1)), 2))
            ),
            "(ApproxDP(epsilon=2) + 2 * Laplace(scale=1)) with probability 0.25",
        ),
        (
            SampledLoss(base=LaplaceLoss(shift=F(1)), rate=F(1, 4), added=True),
            "Laplace(scale=1).poisson_sampled(rate=0.25), reversed",
        ),
        (
            PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 4)),
            "Gaussian(sigma=1).poisson_sampled(rate=0.25)",
        ),
        (
            ReplacedSampleLoss(base=LaplaceLoss(shift=F(1)), rate=F(1, 4)),
            "Laplace(scale=1).poisson_sampled(rate=0.25, replaced=True)",
        ),
        (
            BatchLoss(base=LaplaceLoss(shift=F(1)), rate=F(1, 4)),
            "Laplace(scale=1).sampled_without_replacement(size=1, out_of=4)",
        ),
        (
            ShuffledLoss(epsilon=F(1), users=9, response=True),
            "Shuffled(epsilon=1, users=9, response=True)",
        ),
    ],
)
def test_a_loss_is_printed_as_the_curve_that_has_it(law: PrivacyLoss, printed: str) -> None:
    assert str(law) == printed


LEAST, MOST = F(1, 2**400), F(2**400)
NORMAL = GaussianLoss(mu_squared=F(1))


@pytest.mark.parametrize(
    ("make", "good", "bad"),
    [
        (lambda x: GaussianLoss(mu_squared=x), [LEAST, MOST], [LEAST * F(1, 2), MOST + 1]),
        (lambda x: LaplaceLoss(shift=x), [LEAST, MOST], [LEAST * F(1, 2), MOST + 1]),
        (lambda x: BoundedRangeLoss(epsilon=x), [LEAST, MOST], [LEAST * F(1, 2), MOST + 1]),
        (lambda x: NormalRowsLoss(rows=1, gammas=(x,)), [F(-9, 10)], [F(-1), F(0)]),
        (lambda x: DiscreteLaplaceLoss(scale=1, sensitivity=x), [1, 2**14], [0, 2**14 + 1]),
        (lambda x: DiscreteGaussianLoss(sigma_squared=1, sensitivity=x), [1], [0]),
        (lambda x: ResponseLoss(step=x), [LEAST, SquareRoot(F(2))], [F(0), F(-1)]),
        (lambda x: ResponseLoss(step=1, share=x), [LEAST, 1], [0, F(11, 10)]),
        (lambda x: ResponseLoss(step=1, infinity_mass=x), [0, F(9, 10)], [F(-1, 2), 1]),
        (lambda x: PositionLoss(differ=x, losses=((NORMAL, 1),)), [LEAST, 1], [0, F(11, 10)]),
        (lambda x: PositionLoss(differ=1, losses=((NORMAL, x),)), [1], [0]),
        (lambda x: PoissonSampledLoss(base=NORMAL, rate=x), [LEAST, F(9, 10)], [0, 1]),
        (lambda x: SampledLoss(base=NORMAL, rate=x), [LEAST, 1], [0, F(11, 10)]),
        (lambda x: ShuffledLoss(epsilon=1, users=x), [1, 2**30], [0, 2**30 + 1]),
    ],
)
def test_what_a_loss_may_be_made_of(
    make: Callable[[Any], PrivacyLoss], good: list[Any], bad: list[Any]
) -> None:
    """The ends of every range, and next to them."""
    for value in good:
        make(value)
    for value in bad:
        with pytest.raises(ParameterError):
            make(value)


@pytest.mark.parametrize(
    ("law", "most"),
    [
        *((law, None) for law in (NORMAL, NormalRowsLoss(rows=1, gammas=(F(1), F(-1, 2))))),
        (NormalRowsLoss(rows=4, gammas=(F(-1, 2), F(-1, 4))), 2 * math.log(8 / 3)),
        (PoissonSampledLoss(base=NORMAL, rate=F(1, 4), added=True), math.log(4 / 3)),
        (PoissonSampledLoss(base=NORMAL, rate=F(1, 4)), None),
        (SampledLoss(base=NORMAL, rate=F(1, 4), added=True), math.log(4 / 3)),
        (SampledLoss(base=NORMAL, rate=F(1), added=True), None),
        (SampledLoss(base=NORMAL, rate=F(1, 4)), None),
        (SampledLoss(base=ResponseLoss(step=Log(F(3))), rate=F(1, 4)), math.log(3 / 2)),
        (
            SampledLoss(base=ResponseLoss(step=Log(F(3))), rate=F(1, 4), added=True),
            math.log(6 / 5),
        ),
        (
            SampledLoss(
                base=ResponseLoss(step=Log(F(3)), infinity_mass=F(1, 8)), rate=F(1, 4), added=True
            ),
            math.log(4 / 3),
        ),
        (ReplacedSampleLoss(base=NORMAL, rate=F(1, 4)), None),
        (ReplacedSampleLoss(base=LaplaceLoss(shift=2), rate=F(1)), 4.0),
        (ReplacedSampleLoss(base=LaplaceLoss(shift=2), rate=F(1, 2)), 2.0),
        (PositionLoss(differ=F(1, 2), losses=((LaplaceLoss(shift=2), 3),)), 6.0),
        (PositionLoss(differ=F(1, 2), losses=((NORMAL, 3),)), None),
        (ShuffledLoss(epsilon=2, users=9), 2.0),
    ],
    ids=str,
)
def test_the_largest_loss(law: PrivacyLoss, most: float | None) -> None:
    found = law.max_loss()
    assert found is None if most is None else float(found or 0) == pytest.approx(most, rel=1e-14)


def test_what_escapes_on_a_sample_is_its_share() -> None:
    base = ResponseLoss(step=F(1), infinity_mass=F(1, 8))
    assert SampledLoss(base=base, rate=F(1, 4)).infinity_mass == F(1, 32)
    assert BatchLoss(base=base, rate=F(1, 4)).infinity_mass == F(1, 32)
    assert SampledLoss(base=base, rate=F(1, 4), added=True).infinity_mass == 0
    assert PositionLoss(differ=F(1, 4), losses=((base, 2),)).infinity_mass == F(15, 256)


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
        lambda: Log(F(1)),
        lambda: NormalRowsLoss(rows=0, gammas=(F(1),)),
        lambda: NormalRowsLoss(rows=1, gammas=()),
        lambda: PositionLoss(differ=F(1, 2), losses=()),
        lambda: SampledLoss(base=SampledLoss(base=NORMAL, rate=F(1, 2)), rate=F(1, 2)),
    ],
)
def test_what_is_no_loss_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize("base", [LaplaceLoss(shift=F(1)), GaussianLoss(mu_squared=F(1))])
def test_tails_at_a_ball_hold_those_of_its_numbers(base: LaplaceLoss | GaussianLoss) -> None:
    """Around 0 and around the shift too, where Laplace's density has its kinks."""
    loss = ReplacedSampleLoss(base=base, rate=F(1, 3))
    for middle in (-1.0, 0.0, 0.4, 1.0):
        both = loss.above(arb(middle, 0.25))
        for place in (-0.25, -0.1, 0.0, 0.2, 0.25):
            exact = loss.above(arb(middle + place))
            assert all(ball.overlaps(one) for ball, one in zip(both, exact, strict=True))
            assert all(ball.rad() < 0.2 for ball in both)


@pytest.mark.parametrize(
    "pairs",
    [
        ((F(3, 5), F(1, 5)), (F(2, 5), F(1, 10)), (F(0), F(7, 10))),  # all losses above 0
        ((F(1, 5), F(3, 5)), (F(1, 10), F(2, 5)), (F(7, 10), F(0))),  # and below
        ((F(1, 2), F(1, 4)), (F(1, 2), F(3, 4))),
        ((F(1, 2), F(1, 2)), (F(1, 3), F(1, 4)), (F(1, 6), F(1, 4))),
    ],
)
def test_a_support_has_the_losses(pairs: tuple[tuple[Fraction, Fraction], ...]) -> None:
    """The least one, and how far the others lie above it."""
    law = FiniteLoss(pairs=pairs)
    base = math.fsum(count * float(step_ball(step).mid()) for step, count in law.support.base)
    above = [0.0, *(float(step_ball(step).mid()) for step in law.support.spacings)]
    losses = sorted(math.log(p / q) for p, q in pairs if p and q)
    assert [base + each for each in above] == pytest.approx(losses)


@pytest.mark.parametrize("square", day_and_night(F(1, 100), F(7), F(4000)))
def test_tails_of_discrete_gaussian_noise_are_relatively_exact(square: Fraction) -> None:
    """Far out, too, where they are far below all doubles; and next to an output both are kept."""
    loss = DiscreteGaussianLoss(sigma_squared=square, sensitivity=2)
    with mpmath.workdps(60), ctx.workprec(128):
        outputs = range(-3000, 3001)
        weights = {
            y: mpmath.exp(-y * y / (2 * mpmath.mpf(square.numerator) / square.denominator))
            for y in outputs
        }
        total = mpmath.fsum(weights.values())
        for last in (-900, -257, -256, -3, 0, 1, 300):
            place = (4 - 4 * (last + F(1, 3))) / (2 * square)
            own, other = loss.tails(to_arb(place))
            for ball, end in ((own, last), (other, last - 2)):
                exact = mpmath.fsum(w for y, w in weights.items() if y <= end) / total
                assert abs(mpmath.mpf(ball.mid().str(40, radius=False)) / exact - 1) < 1e-30
                assert ball.rad() < 1e-30 * ball.mid()
            at = loss.tails(to_arb((4 - 4 * F(last)) / (2 * square)).union(to_arb(place)))
            assert at[0].overlaps(own)
    with pytest.raises(NumericalError, match="are not resolved"):
        loss.tails(arb("nan"))


@pytest.mark.parametrize("precision", day_and_night(64, 256))
@pytest.mark.parametrize("square", [F(900), F(10**5), F(4 * 10**6 + 1, 3)])
def test_tails_by_a_formula_and_by_terms_are_one(square: Fraction, precision: int) -> None:
    """From the middle, where the formula serves, to far out, where terms are few."""
    deviation = math.isqrt(int(square))
    loss = DiscreteGaussianLoss(sigma_squared=square, sensitivity=1)
    with mpmath.workprec(precision + 30), ctx.workprec(precision):
        variance = mpmath.mpf(square.numerator) / square.denominator
        for first in (1, 3 * deviation, 99 * deviation):
            term = mpmath.exp(-(first**2) / (2 * variance))
            ratio = mpmath.exp(-(2 * first + 1) / (2 * variance))
            fall, least, total = mpmath.exp(-1 / variance), term * 2.0**-precision, mpmath.mpf(0)
            while term > least / 10**6:
                total, term, ratio = total + term, term * ratio, ratio * fall
            exact = total / mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * variance)))
            own, _ = loss.tails(to_arb((2 * first + F(1, 3)) / (2 * square)))
            near = 2.0 ** (20 - precision)  # an exponent of 5,000 takes 13 bits
            assert abs(mpmath.mpf(own.mid().str(80, radius=False)) / exact - 1) < near
            assert own.rad() < own.mid() * near


@pytest.mark.parametrize("precision", [53, 64, 128, 333])
def test_tails_have_an_answer_where_the_formula_barely_serves(precision: int) -> None:
    """Each radius, also those at which no order reaches the precision, beside the next number."""
    square = F(10**4)
    loss = DiscreteGaussianLoss(sigma_squared=square, sensitivity=1)
    with ctx.workprec(precision):
        for first in range(100, 1400, 100):
            own, other = loss.tails(to_arb((2 * first + F(1, 3)) / (2 * square)))
            mass = (-(arb(first) ** 2) / (2 * to_arb(square))).exp()
            mass /= (2 * arb.pi() * to_arb(square)).sqrt()  # θ(0), but for e^−2π²σ²
            off = (own - other - mass).abs_upper()
            assert off < mass * arb(2) ** (
                20 - precision
            )  # the exponent takes 7 bits, the sum some


@pytest.mark.parametrize("exponent", [8, 40, 200, 1000])
@pytest.mark.parametrize("deviations", [F(1, 1000), 1, 8, 37])
def test_tails_of_wide_discrete_noise_are_normal(exponent: int, deviations: Fraction) -> None:
    """Σ f from m on, of f that falls and is convex far out, is next to the integral from m − ½."""
    sigma = F(10) ** (exponent // 2)
    first = math.floor(deviations * sigma)
    loss = DiscreteGaussianLoss(sigma_squared=sigma**2, sensitivity=1)
    with ctx.workprec(256), mpmath.workdps(80):
        own, _ = loss.tails(to_arb((2 * first + F(1, 3)) / (2 * sigma**2)))
        z = (first - mpmath.mpf(1) / 2) / mpmath.mpf(int(sigma))
        found = mpmath.mpf(own.mid().str(80, radius=False))
        off = abs(found / (mpmath.erfc(z / mpmath.sqrt(2)) / 2) - 1)
        assert off < (z + 1) ** 2 / int(sigma) ** 2 + mpmath.mpf(10) ** -60
        assert own.rad() < own.mid() * arb(2) ** -230


@pytest.mark.parametrize("sigma", [1, 10**3, 10**8, 10**20, 10**160])
@pytest.mark.parametrize("place", [F(1, 10), F(-1, 10), 1, 700])
def test_tails_of_discrete_gaussian_noise_have_no_end(sigma: int, place: Fraction) -> None:
    """So far out, too, that doubles hold neither an output nor its square."""
    loss = DiscreteGaussianLoss(sigma_squared=F(sigma) ** 2, sensitivity=1)
    own, other = loss.tails(to_arb(place))
    assert other.upper() >= 0
    assert own.lower() <= 1
    if sigma > 10**3:
        exact, near = (0, 1e-300) if place > 0 else (1, 1e-12)
        assert abs(own - exact) < near
        assert abs(other - exact) < near


def test_heights_that_tell_nothing_have_a_bound_too() -> None:
    """Of a shared draw: what an angle of 1e25 errs by is more than exponentials of doubles hold."""
    loss = PositionLoss(differ=F(1, 3), losses=((ResponseLoss(step=F(1, 2), share=F(1)), 3),))
    with np.errstate(over="raise"):
        values, errors = loss.characteristic(1.0, np.array([1.0, 1e25]))
    exact = complex(loss.transform([acb(1, 1)])[0] / loss.transform([acb(1)])[0])
    assert abs(values[0] - exact) <= errors[0] < 1e-10
    assert 0.5 <= errors[1] <= 3
