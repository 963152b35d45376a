"""Properties of the Gaussian mechanism's curve, its domain, and bugs that its oracle catches."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given
from hypothesis import strategies as st

from dpverify.accounting.curves import gaussian
from dpverify.accounting.curves.gaussian import (
    Gaussian,
    delta_gaussian,
    epsilon_gaussian,
    sigma_gaussian,
)
from dpverify.enclosure import Enclosure, SquareRoot, enclose, rational, to_arb
from dpverify.errors import NumericalError, ParameterError
from tests.helpers.gaussian_oracle import delta_fault, epsilon_fault, sigma_fault
from tests.helpers.profiles import crossed, examples

moderate = examples(100)


def powers_of_ten(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: float(10.0**exponent))


epsilons = powers_of_ten(-6, 3)
deltas = st.one_of(powers_of_ten(-300, -0.01), st.floats(0.5, 0.99))
sigmas = powers_of_ten(-1.5, 3)
rationals = st.fractions(Fraction(1, 1000), Fraction(1000), max_denominator=10**6)


# --- the curve


@given(epsilons, epsilons, sigmas)
@moderate
def test_delta_falls_in_epsilon(one: float, other: float, sigma: float) -> None:
    small, large = sorted((one, other))
    assert delta_gaussian(small, sigma).upper >= delta_gaussian(large, sigma).lower


@given(epsilons, sigmas, sigmas)
@moderate
def test_delta_rises_in_mu(epsilon: float, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert delta_gaussian(epsilon, small).upper >= delta_gaussian(epsilon, large).lower
    assert (
        delta_gaussian(epsilon, 1, sensitivity=Fraction(1) / Fraction(small)).upper
        >= delta_gaussian(epsilon, 1, sensitivity=Fraction(1) / Fraction(large)).lower
    )


def test_points_apart_have_enclosures_apart() -> None:
    # The comparisons above would let enclosures pass that are merely wide.
    in_epsilon = [delta_gaussian(Decimal(k) / 10, 1) for k in range(100)]
    for before, after in pairwise(in_epsilon):
        assert before.lower > after.upper
    in_mu = [delta_gaussian(1, 1, sensitivity=Decimal(k) / 20) for k in range(1, 100)]
    for before, after in pairwise(in_mu):
        assert before.upper < after.lower


@given(st.one_of(st.just(0.0), epsilons), sigmas)
@moderate
def test_delta_is_a_probability_with_few_digits_lost(epsilon: float, sigma: float) -> None:
    found = delta_gaussian(epsilon, sigma)
    assert 0 <= found.lower < 1
    assert found.lower < found.upper <= math.nextafter(1, 2)
    assert found.lower < 2.3e-308 or found.width <= 1e-13


# --- the inverses


@given(epsilons, sigmas)
@moderate
def test_epsilon_inverts_delta(epsilon: float, sigma: float) -> None:
    at = delta_gaussian(epsilon, sigma)
    assume(at.lower > 1e-300 and at.upper <= 1 - 1e-15)  # the targets that are accepted
    # ε falls in δ, so the curve's two ends bound ε from the two sides.
    assert epsilon_gaussian(at.upper, sigma).lower <= epsilon
    assert epsilon <= epsilon_gaussian(at.lower, sigma).upper


@given(epsilons, deltas)
@moderate
def test_sigma_inverts_delta(epsilon: float, delta: float) -> None:
    noise = sigma_gaussian(epsilon, delta)
    assert noise.width <= 1e-13
    # The safe end first; then that the other end is no more than needed.
    assert delta_gaussian(epsilon, noise.upper).lower <= delta
    assert delta <= delta_gaussian(epsilon, noise.lower).upper


@given(epsilons, deltas)
@moderate
def test_epsilon_inverts_sigma(epsilon: float, delta: float) -> None:
    noise = sigma_gaussian(epsilon, delta)
    assert epsilon_gaussian(delta, noise.upper).lower <= epsilon
    assert epsilon <= epsilon_gaussian(delta, noise.lower).upper


@given(sigmas.filter(lambda sigma: sigma > 0.1))
@moderate
def test_epsilon_is_exactly_zero_from_delta_at_zero_on(sigma: float) -> None:
    start = delta_gaussian(0, sigma)
    assert epsilon_gaussian(start.upper, sigma) == Enclosure(0.0, 0.0)
    assert epsilon_gaussian((1 + start.upper) / 2, sigma) == Enclosure(0.0, 0.0)
    just_below = epsilon_gaussian(start.lower, sigma)
    assert just_below.lower > 0
    assert just_below.width <= 1e-13


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    crossed(["1e-100", "1e6", "1e8"], ["1e-100", "1e-6", "0.5", "0.999999"]),
)
def test_sigma_beyond_the_range_that_is_promised(epsilon: str, delta: str) -> None:
    eps, target = Decimal(epsilon), Decimal(delta)
    assert sigma_gaussian(eps, target).width <= 1e-13
    assert sigma_fault(sigma_gaussian, eps, target) is None


# --- the proof rests on ball arithmetic alone


@pytest.mark.parametrize("off", [(1e-3, 1.0), (0.0, 1.001), (-50.0, 0.3), (math.nan, 1.0)])
def test_wrong_doubles_cost_an_answer_or_nothing(
    off: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = gaussian._in_doubles

    def wrong(epsilon: float, mu: float) -> tuple[float, float, float]:
        log_delta, gap, after = right(epsilon, mu)
        return log_delta + off[0], gap * off[1], after

    monkeypatch.setattr(gaussian, "_in_doubles", wrong)
    for eps, delta, sigma in POINTS:
        for fault in (
            partial(sigma_fault, sigma_gaussian, Decimal(eps), Decimal(delta)),
            partial(epsilon_fault, epsilon_gaussian, Decimal(delta), Decimal(sigma)),
        ):
            with suppress(NumericalError):
                assert fault() is None


def mills(t: Any) -> Any:
    return mpmath.erfc(t / mpmath.sqrt(2)) * mpmath.exp(t * t / 2) * mpmath.sqrt(mpmath.pi / 2)


@pytest.mark.parametrize("t", [-37.0, -5.0, -0.5, 0.0, 1.0, 24.9, 25.0, 25.1, 60.0, 1e6])
def test_mills_ratio_has_more_than_ten_digits(t: float) -> None:
    with mpmath.workdps(40):
        assert gaussian._mills(t) == pytest.approx(float(mills(mpmath.mpf(t))), rel=2e-12)


@pytest.mark.parametrize("probability", ["1e-300", "0.01", "0.5", "0.99"])
def test_a_search_starts_from_the_normal_quantile(probability: str) -> None:
    found = gaussian._quantile(Fraction(probability))
    assert found == pytest.approx(NormalDist().inv_cdf(float(probability)), rel=1e-8, abs=1e-15)


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.0, 1.0), (1.0, 1.0), (0.1, 0.01), (5.0, 2.0), (1e-3, 1e-6), (300.0, 8.0)]
)
def test_what_is_planned_in_doubles_has_nine_digits(epsilon: float, mu: float) -> None:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        s = e / m - m / 2
        log_delta = mpmath.log(mpmath.ncdf(-s) - mpmath.exp(e) * mpmath.ncdf(-s - m))
        exact = [float(x) for x in (log_delta, mills(s) - mills(s + m), mills(s + m))]
    assert gaussian._in_doubles(epsilon, mu) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.3", 5, 1000])
@pytest.mark.parametrize("delta", ["1e-60", "1e-6", "0.4", "0.9999"])
def test_the_planned_precision_decides_at_once(
    epsilon: Any, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search in doubles at most, and one in balls of few bits."""
    used: list[int] = []
    search = gaussian._newton

    def counted(step: Any, start: float) -> float:
        used.append(ctx.prec)
        return search(step, start)

    monkeypatch.setattr(gaussian, "_newton", counted)
    sigma = sigma_gaussian(epsilon, delta)
    epsilon_gaussian(delta, Fraction(sigma.upper))
    assert len(used) <= 4
    assert max(used) <= 100


def test_a_wrong_proposal_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    search = gaussian._newton
    monkeypatch.setattr(gaussian, "_newton", lambda step, x: search(step, x) * (1 + 1e-14))
    with pytest.raises(NumericalError, match="no certified root near"):
        sigma_gaussian(1, Decimal("1e-6"))
    with pytest.raises(NumericalError, match="no certified root near"):
        epsilon_gaussian(Decimal("1e-6"), 1)


# --- scaling


@given(epsilons, deltas, rationals, rationals)
@moderate
def test_only_the_ratio_of_noise_to_sensitivity_counts(
    epsilon: float, delta: float, ratio: Fraction, unit: Fraction
) -> None:
    assume(ratio > Fraction(1, 20))
    scaled = {"sigma": ratio * unit, "sensitivity": unit}
    assert delta_gaussian(epsilon, **scaled) == delta_gaussian(epsilon, ratio)
    assert epsilon_gaussian(delta, **scaled) == epsilon_gaussian(delta, ratio)


def test_a_group_moves_so_many_times_as_far() -> None:
    one = Gaussian(sigma=2, sensitivity=3)
    assert one.group(4).mu_squared == Gaussian(sigma=2, sensitivity=12).mu_squared


@given(epsilons, deltas, rationals)
@moderate
def test_sigma_scales_with_the_sensitivity(epsilon: float, delta: float, unit: Fraction) -> None:
    one = sigma_gaussian(epsilon, delta)
    scaled = sigma_gaussian(epsilon, delta, sensitivity=unit)
    assert scaled.width <= 1e-13
    # Both hold the same truth, so that they meet.
    assert Fraction(one.lower) * unit <= Fraction(scaled.upper)
    assert Fraction(scaled.lower) <= Fraction(one.upper) * unit


@given(epsilons, deltas, st.fractions(Fraction(1, 10**5), 400, max_denominator=10**6), rationals)
@moderate
def test_curve_agrees_with_the_functions(
    epsilon: float, delta: float, mu_squared: Fraction, sigma: Fraction
) -> None:
    size = SquareRoot(mu_squared * sigma**2)
    curve = Gaussian.from_mu_squared(mu_squared)
    assert curve.delta_at(epsilon) == delta_gaussian(epsilon, sigma, sensitivity=size)
    assert curve.epsilon_at(delta) == epsilon_gaussian(delta, sigma, sensitivity=size)


def test_irrational_sensitivity_loses_no_width() -> None:
    size = SquareRoot(Fraction(2))
    assert delta_gaussian(1, size, sensitivity=size) == delta_gaussian(1, 1)
    assert sigma_gaussian(1, Decimal("1e-6"), sensitivity=size).width <= 1e-13


# --- numbers as users write them


def test_decimals_are_exact_and_floats_are_their_binary_value() -> None:
    # Near enough for their enclosures to meet, but not the same question.
    assert delta_gaussian(Decimal("0.1"), 1) == delta_gaussian(Fraction(1, 10), 1)
    assert delta_gaussian(0.5, 2.0) == delta_gaussian(Decimal("0.5"), 2)
    assert sigma_gaussian(Decimal("1e-400"), 0.25).width <= 1e-13


def test_numpy_scalars_are_accepted() -> None:
    half, two, tenth = np.float64(0.5), np.int64(2), np.float64(0.1)
    for found, expected in [
        (delta_gaussian(half, two, sensitivity=two), delta_gaussian(0.5, 2, sensitivity=2)),  # type: ignore[arg-type]
        (epsilon_gaussian(tenth, two), epsilon_gaussian(0.1, 2)),  # type: ignore[arg-type]
        (sigma_gaussian(two, tenth), sigma_gaussian(2, 0.1)),  # type: ignore[arg-type]
    ]:
        assert found == expected
        assert type(found.lower) is float
        assert type(found.upper) is float


NOT_FINITE = [
    math.nan,
    math.inf,
    -math.inf,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    np.float64("nan"),
    "one",
    "1_000",
    "nan",
    None,
]
FINITE = "a finite real number"
REFUSED: list[tuple[str, Any, str]] = [
    *((name, value, FINITE) for name in ("epsilon", "delta") for value in NOT_FINITE),
    *((name, value, FINITE) for name in ("sigma", "sensitivity") for value in NOT_FINITE),
    *(("epsilon", value, "at least 0") for value in (-1, -1e-300, Decimal("-1e-400"))),
    *(("delta", value, "in [0, 1)") for value in (-0.1, Decimal("-1e-400"), 1, 1.5, 10**400)),
    *(("delta", value, "positive with Gaussian noise") for value in (0, 0.0, Decimal(0))),
    *(
        (name, value, "positive")
        for name in ("sigma", "sensitivity")
        for value in (0, -1, 0.0, -1e-300, Decimal("-0"), SquareRoot(Fraction(0)), np.int64(0))
    ),
]
FUNCTIONS: dict[Callable[..., Enclosure], tuple[str, ...]] = {
    delta_gaussian: ("epsilon", "sigma", "sensitivity"),
    epsilon_gaussian: ("delta", "sigma", "sensitivity"),
    sigma_gaussian: ("epsilon", "delta", "sensitivity"),
}


@pytest.mark.parametrize(("name", "value", "rule"), REFUSED)
def test_values_outside_the_domain_are_refused(name: str, value: Any, rule: str) -> None:
    for function, parameters in FUNCTIONS.items():
        if name in parameters:
            arguments: dict[str, Any] = dict.fromkeys(parameters, 0.5)
            function(**arguments)  # what is changed next is what is wrong
            with pytest.raises(ParameterError) as caught:
                function(**(arguments | {name: value}))
            assert caught.value.name == name
            assert caught.value.rule.startswith(rule)
            said = str(caught.value)
            assert said.startswith(f"{name}={str(value)[:200]}")
            assert f" must be {rule}" in said


def test_every_parameter_has_a_value_that_is_refused() -> None:
    assert {name for name, _, _ in REFUSED} == {n for names in FUNCTIONS.values() for n in names}


def test_delta_zero_names_the_way_out() -> None:
    way_out = "Laplace noise or randomized response"
    with pytest.raises(ParameterError, match=way_out):
        epsilon_gaussian(0, 1)
    with pytest.raises(ParameterError, match=way_out):
        sigma_gaussian(1, 0)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1), math.nan])
def test_curve_refuses_mu_that_is_not_positive(value: Any) -> None:
    rule = r"^mu_squared=.* must be (positive|a finite real number)"
    with pytest.raises(ParameterError, match=rule):
        Gaussian.from_mu_squared(value)


# --- planted bugs: the oracle's check must see each of them

# ε, δ and σ as users choose them; the first σ makes μ no double.
POINTS = [
    ("0.1", "1e-6", "3.7"),
    ("1", "1e-5", "0.9"),
    ("4", "1e-9", "1.3"),
    ("0.01", "0.001", "7"),
]


def cdf(x: Any) -> Any:
    return (-x / arb(2).sqrt()).erfc() / 2


def curve(formula: Callable[[Any, Any], Any]) -> Callable[..., Enclosure]:
    """A `delta_gaussian` with another formula in ε and μ, enclosed just as carefully."""

    def delta(epsilon: Any, sigma: Any, *, sensitivity: Any = 1) -> Enclosure:
        eps, mu = rational("epsilon", epsilon), rational("x", sensitivity) / rational("y", sigma)
        return enclose(lambda: formula(to_arb(eps), to_arb(mu)))

    return delta


def reworked(
    function: Callable[..., Enclosure], rework: Callable[[float, float], tuple[float, float]]
) -> Callable[..., Enclosure]:
    """`function` with other ends."""

    def broken(*arguments: Any, **keywords: Any) -> Enclosure:
        found = function(*arguments, **keywords)
        return Enclosure(*rework(found.lower, found.upper))

    return broken


def classical(epsilon: Any, delta: Any, *, sensitivity: Any = 1) -> Enclosure:
    """√(2 ln(1.25/δ)) Δ/ε: enough noise where ε ≤ 1, but not the least."""
    eps, target = rational("epsilon", epsilon), rational("delta", delta)
    return enclose(lambda: (2 * (arb(5) / 4 / to_arb(target)).log()).sqrt() / to_arb(eps))


def chernoff(delta: Any, sigma: Any, *, sensitivity: Any = 1) -> Enclosure:
    """μ²/2 + μ √(2 ln(1/δ)): enough ε, but not the least."""
    target, mu = rational("delta", delta), 1 / rational("sigma", sigma)
    return enclose(lambda: to_arb(mu) ** 2 / 2 + to_arb(mu) * (-2 * to_arb(target).log()).sqrt())


def right(eps: Any, mu: Any) -> Any:
    return cdf(mu / 2 - eps / mu) - eps.exp() * cdf(-mu / 2 - eps / mu)


def narrower(lower: float, upper: float) -> tuple[float, float]:
    return lower, math.nextafter(upper, -math.inf)


def higher(lower: float, upper: float) -> tuple[float, float]:
    return math.nextafter(lower, math.inf), upper


def wider(lower: float, upper: float) -> tuple[float, float]:
    return lower * (1 - 1e-12), upper * (1 + 1e-12)


def closer(lower: float, upper: float) -> tuple[float, float]:
    middle = lower + (upper - lower) / 2
    return middle, middle


def shifted(lower: float, upper: float) -> tuple[float, float]:
    return lower * (1 - 1e-15), upper * (1 - 1e-15)


BROKEN_DELTAS: dict[str, Callable[..., Enclosure]] = {
    "upper end one double inwards": reworked(delta_gaussian, narrower),
    "lower end one double inwards": reworked(delta_gaussian, higher),
    "nearest double": reworked(delta_gaussian, closer),
    "too wide": reworked(delta_gaussian, wider),
    "second term dropped": curve(lambda e, m: cdf(m / 2 - e / m)),
    "exponential dropped": curve(lambda e, m: cdf(m / 2 - e / m) - cdf(-m / 2 - e / m)),
    "privacy loss dropped": curve(lambda e, m: cdf(m / 2) - e.exp() * cdf(-m / 2 - e / m)),
    "sign turned": curve(lambda e, m: cdf(m / 2 - e / m) - (-e).exp() * cdf(-m / 2 - e / m)),
    "variance for deviation": curve(lambda e, m: right(e, m * m)),
    "last digits lost": curve(lambda e, m: right(e, m) * (1 + arb(10) ** -14)),
}
BROKEN_EPSILONS: dict[str, Callable[..., Enclosure]] = {
    "nearest double": reworked(epsilon_gaussian, closer),
    "too low": reworked(epsilon_gaussian, shifted),
    "too wide": reworked(epsilon_gaussian, wider),
    "Chernoff": chernoff,
    "always zero": lambda delta, sigma, *, sensitivity=1: Enclosure(0.0, 0.0),
}
BROKEN_SIGMAS: dict[str, Callable[..., Enclosure]] = {
    "nearest double": reworked(sigma_gaussian, closer),
    "too little": reworked(sigma_gaussian, shifted),
    "too wide": reworked(sigma_gaussian, wider),
    "classical": classical,
}


def delta_faults(function: Callable[..., Enclosure]) -> list[str | None]:
    return [delta_fault(function, Decimal(e), Decimal(s)) for e, _, s in POINTS]


def epsilon_faults(function: Callable[..., Enclosure]) -> list[str | None]:
    return [epsilon_fault(function, Decimal(d), Decimal(s)) for _, d, s in POINTS]


def sigma_faults(function: Callable[..., Enclosure]) -> list[str | None]:
    return [sigma_fault(function, Decimal(e), Decimal(d)) for e, d, _ in POINTS]


def test_the_oracle_clears_the_right_ones() -> None:
    assert delta_faults(delta_gaussian) == [None] * len(POINTS)
    assert delta_faults(curve(right)) == [None] * len(POINTS)
    assert epsilon_faults(epsilon_gaussian) == [None] * len(POINTS)
    assert sigma_faults(sigma_gaussian) == [None] * len(POINTS)


@pytest.mark.parametrize("bug", BROKEN_DELTAS)
def test_the_oracle_catches_a_wrong_delta(bug: str) -> None:
    assert None not in delta_faults(BROKEN_DELTAS[bug])


@pytest.mark.parametrize("bug", BROKEN_EPSILONS)
def test_the_oracle_catches_a_wrong_epsilon(bug: str) -> None:
    assert None not in epsilon_faults(BROKEN_EPSILONS[bug])


@pytest.mark.parametrize("bug", BROKEN_SIGMAS)
def test_the_oracle_catches_a_wrong_sigma(bug: str) -> None:
    assert None not in sigma_faults(BROKEN_SIGMAS[bug])
