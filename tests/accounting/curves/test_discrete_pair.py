"""Pairs of laws on finitely many outputs: exact, or of doubles that are a little off."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.errors import ParameterError
from tests.helpers.profiles import examples

laws = (
    st.lists(st.integers(0, 9), min_size=3, max_size=3)
    .filter(any)
    .map(lambda parts: [Fraction(part, sum(parts)) for part in parts])
)
epsilons = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])


def joint(masses: list[Fraction]) -> Fraction:
    return math.prod(masses, start=Fraction(1))


def enumerated(p: list[Fraction], q: list[Fraction], epsilon: Fraction, times: int) -> Any:
    """Both orders over all outputs of so many releases."""
    with mpmath.workdps(50):
        factor = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        found = []
        for own, other in ((p, q), (q, p)):
            total = mpmath.mpf(0)
            for places in itertools.product(range(len(p)), repeat=times):
                one, two = (
                    math.prod((law[n] for n in places), start=Fraction(1)) for law in (own, other)
                )
                total += max(
                    mpmath.mpf(one.numerator) / one.denominator
                    - factor * two.numerator / two.denominator,
                    0,
                )
            found.append(total)
        return max(found)


@examples(30)
@given(laws, laws, epsilons, st.integers(1, 3))
def test_it_is_the_enumerated_one(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction, times: int
) -> None:
    if not any(a and b for a, b in zip(p, q, strict=True)):
        with pytest.raises(ParameterError, match="possible on both sides"):
            DiscretePair(p=p, q=q)
        return
    pair = DiscretePair(p=p, q=q)
    found = (pair if times == 1 else times * pair).delta_at(epsilon)
    true = enumerated(p, q, epsilon, times)
    assert found.lower * (1 - 1e-15) <= true <= found.upper * (1 + 1e-15)
    assert found.upper - found.lower <= 1e-12
    delta = Fraction(found.upper)
    if times == 1 and 0 < delta < 1:
        assert pair.epsilon_at(delta).lower <= float(epsilon) * (1 + 1e-12) + 1e-12


def test_doubles_are_enclosed_whatever_they_hide() -> None:
    """The true law is moved by the error in every direction that keeps a law."""
    rng = np.random.default_rng(5)
    p, q = (rng.dirichlet(np.ones(8)) for _ in range(2))
    given_pair = DiscretePair(p=p, q=q, error="1e-3")
    for _ in range(20):
        laws = []
        for law in (p, q):
            moved = law * (1 + 9e-4 * rng.choice([-1.0, 1.0], 8))
            laws.append([Fraction(mass) / sum(map(Fraction, moved)) for mass in moved])
        if all(
            abs(true - Fraction(mass)) <= Fraction(mass) / 1000
            for law, moved in zip((p, q), laws, strict=True)
            for mass, true in zip(law, moved, strict=True)
        ):
            true = DiscretePair(p=laws[0], q=laws[1])
            for epsilon in (0, "0.5", 2):
                assert true.delta_at(epsilon).lower <= given_pair.delta_at(epsilon).upper
                twice = (2 * true).delta_at(epsilon), (2 * given_pair).delta_at(epsilon)
                assert twice[0].lower <= twice[1].upper


def test_an_error_is_charged_to_delta() -> None:
    masses = [0.7, 0.2, 0.1]
    exact = DiscretePair(p=["0.7", "0.2", "0.1"], q=["0.1", "0.2", "0.7"])
    close = DiscretePair(p=masses, q=masses[::-1], error=1e-15)
    assert close.delta_at(1).upper == pytest.approx(exact.delta_at(1).upper, rel=1e-14)
    assert exact.epsilon_at(0).upper == pytest.approx(math.log(7), rel=1e-15)
    assert close.epsilon_at(0).upper == math.inf
    assert close.epsilon_at("1e-14").upper == pytest.approx(math.log(7), rel=1e-12)
    assert (10 * exact).epsilon_at("1e-6").upper == pytest.approx(
        (10 * close).epsilon_at("1e-6").upper, rel=1e-6
    )


def test_outputs_that_one_side_never_gives() -> None:
    pair = DiscretePair(p=["0.7", "0.3", 0], q=["0.25", "0.5", "0.25"])
    assert pair.delta_at(20).upper == 0.25
    assert pair.epsilon_at("0.2").upper == math.inf
    assert pair.epsilon_at("0.25").upper == pytest.approx(math.log(1.8), rel=1e-15)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"p": [0.7, 0.2, 0.1], "q": [1, 0, 0]}, r"^sum of p=1-.* exactly 1.* error=1e-15"),
        ({"p": [0.5, 0.6], "q": [1, 0], "error": 1e-3}, r"^sum of p=1\+0\.1 must be 1 within"),
        ({"p": [0.5], "q": [1, 0]}, r"^p and q=1 and 2 must be of the same number of outputs"),
        ({"p": [-0.5, 1.5], "q": [1, 0]}, r"^probability=-0.5 must be in \[0, 1\]"),
        ({"p": [math.nan, 1], "q": [1, 0]}, r"^probability=nan"),
        ({"p": None, "q": [1]}, r"^probability=NoneType must be a list or an array"),
        ({"p": [], "q": []}, r"^probabilities=\(\) must be not empty"),
        ({"p": [1], "q": [1], "error": 1}, r"^error=1 must be in \[0, 1\)"),
        ({"p": [1, 0], "q": [0, 1]}, "possible on both sides"),
    ],
)
def test_what_is_no_pair_of_laws_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        DiscretePair(**options)


def test_randomized_response_is_one() -> None:
    coin = dpv.RandomizedResponse(keep="0.75")
    pair = DiscretePair(p=["0.75", "0.25"], q=["0.25", "0.75"])
    for epsilon in (0.0, 0.5, 1.0):
        found, true = pair.delta_at(epsilon).upper, coin.delta_at(epsilon).upper
        assert found == pytest.approx(true, rel=1e-14)
        known = coin.rates(epsilon, noise=0.5)
        assert pair.rates(epsilon, noise=0.5) == pytest.approx(known, rel=1e-12)
