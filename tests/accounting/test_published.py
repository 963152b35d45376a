"""Published Gaussian noise levels: as their papers print them, and only under their conditions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from mpmath import log, sqrt

from dpverify.accounting.curves.gaussian import sigma_gaussian
from dpverify.accounting.published import (
    published_delta,
    published_sigmas,
    sigma_classical,
    sigma_kenthapadi,
    sigma_kenthapadi_any_projection,
    sigma_li,
    sigma_li_any_projection,
)
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError

F = Fraction
HUNDREDTH, TINY = F(1, 100), F(1, 10**12)
LARGE = {"p": 1000, "k": 80}


def any_kenthapadi(epsilon: Fraction, delta: Fraction, *, sensitivity: Fraction) -> Enclosure:
    return sigma_kenthapadi_any_projection(epsilon, delta, beta=sensitivity, **LARGE)


def any_li(epsilon: Fraction, delta: Fraction, *, sensitivity: Fraction) -> Enclosure:
    return sigma_li_any_projection(epsilon, delta, beta=sensitivity, **LARGE)


EVERY = [sigma_classical, sigma_kenthapadi, sigma_li, any_kenthapadi, any_li]
PRINTED: list[tuple[Callable[..., Enclosure], Callable[[Any, Any], Any]]] = [
    (sigma_classical, lambda e, d: sqrt(2 * log(1.25 / d)) / e),
    (sigma_kenthapadi, lambda e, d: sqrt(2 * (log(1 / (2 * d)) + e)) / e),
    (sigma_li, lambda e, d: sqrt(2 * (log(1 / d) + e)) / e),
    (any_kenthapadi, lambda e, d: 4 * sqrt(log(1 / d)) / e),
    (
        any_li,
        lambda e, d: (
            sqrt(1 + 2 * sqrt(log(2000 / d) / 80) + 2 * log(2000 / d) / 80)
            * sqrt(2 * (log(2 / d) + e))
            / e
        ),
    ),
]


@pytest.mark.parametrize(("level", "printed"), PRINTED)
@pytest.mark.parametrize("delta", [F(1, 3), F(1, 10**9)])
def test_a_level_is_the_printed_one(
    level: Callable[..., Enclosure], printed: Callable[[Any, Any], Any], delta: Fraction
) -> None:
    found = level(F(3, 4), delta, sensitivity=F(7, 2))
    with mpmath.workdps(40):
        exact = printed(mpmath.mpf("0.75"), mpmath.mpf(1) / delta.denominator) * mpmath.mpf("3.5")
        assert found.lower <= exact <= found.upper
    assert found.width < 1e-14 * found.upper
    assert found.lower > sigma_gaussian(F(3, 4), delta, sensitivity=F(7, 2)).upper


@pytest.mark.parametrize(
    ("level", "inside", "beyond"),
    [
        (sigma_classical, (1 - TINY, HUNDREDTH), (F(1), HUNDREDTH)),
        *((level, (F(3), F(1, 2) - TINY), (F(3), F(1, 2))) for level in (sigma_li, any_li)),
        (sigma_kenthapadi, (F(3), F(1, 2) - TINY), (F(3), F(1, 2))),
        (any_kenthapadi, (F("4.6051"), HUNDREDTH), (F("4.6052"), HUNDREDTH)),  # ln 100 is between
        *((level, (TINY, F(1, 4)), (F(0), F(1, 4))) for level in EVERY),
        *((level, (F(1, 2), TINY), (F(1, 2), F(0))) for level in EVERY),
        *((level, (F(1, 2), F(1, 4)), (F(1, 2), F(1))) for level in EVERY),
    ],
)
def test_a_level_is_refused_where_its_conditions_end(
    level: Callable[..., Enclosure],
    inside: tuple[Fraction, Fraction],
    beyond: tuple[Fraction, Fraction],
) -> None:
    assert level(*inside, sensitivity=F(1)).lower > 0
    with pytest.raises(ParameterError, match="must be"):
        level(*beyond, sensitivity=F(1))
    with pytest.raises(ParameterError, match="sensitivity=0 must be positive"):
        level(*inside, sensitivity=F(0))


def test_lemma_2_needs_so_many_rows() -> None:
    """More than 2(ln 1000 + ln 200), which is 24.41."""
    sigma_kenthapadi_any_projection(F(1), HUNDREDTH, beta=F(1), p=1000, k=25)
    with pytest.raises(ParameterError, match="k=24 must be greater than"):
        sigma_kenthapadi_any_projection(F(1), HUNDREDTH, beta=F(1), p=1000, k=24)


def test_levels_whose_conditions_hold_are_shown() -> None:
    def shown(epsilon: Fraction, delta: Fraction, k: int) -> set[str]:
        levels = published_sigmas(
            epsilon, delta, sensitivity=F(1), any_gaussian=(F(1), LARGE["p"], k)
        )
        return {name.split(",")[0] for name in levels}

    every = {
        "kenthapadi2013 theorem 1",
        "li2023 theorem 3.1",
        "classical",
        "kenthapadi2013 lemma 2",
        "li2023 theorem 3.4",
    }
    assert shown(F(1, 2), HUNDREDTH, 80) == every
    assert shown(F(2), HUNDREDTH, 80) == every - {"classical"}
    assert shown(F(1, 2), HUNDREDTH, 24) == every - {"kenthapadi2013 lemma 2"}
    assert shown(F(1, 2), F(3, 4), 80) == {"classical"}
    assert len(published_sigmas(F(1, 2), HUNDREDTH, sensitivity=F(1))) == 3


def test_the_published_delta_ends_where_it_says_nothing() -> None:
    """At ε = 2μ², where it is 1/2."""
    found = published_delta(F(3), mu_squared=F(1))
    assert found is not None
    with mpmath.workdps(40):
        assert found.lower <= mpmath.exp(-1.5) / 2 <= found.upper
    assert found.width < 1e-15
    assert published_delta(F(3), mu_squared=F(3, 2)) is None
    assert published_delta(F(3), mu_squared=F(3, 2) - TINY) is not None
    assert published_delta(F(0), mu_squared=F(1)) is None
    for epsilon, mu_squared, name in ((-TINY, F(1), "epsilon"), (F(1), F(0), "mu_squared")):
        with pytest.raises(ParameterError, match=f"^{name}="):
            published_delta(epsilon, mu_squared=mu_squared)
