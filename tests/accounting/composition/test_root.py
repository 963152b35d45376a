"""The search for where a falling function is a target: proven, narrow, and in few steps."""

from __future__ import annotations

import math

import pytest
from flint import arb, ctx

from dpverify.accounting.composition._root import WIDTH, root


@pytest.mark.parametrize("blur", [0.0, 1e-6])
@pytest.mark.parametrize("guess", [0.0, 0.5, 3.0, 3000.0])
def test_the_root_of_an_exponential(guess: float, blur: float) -> None:
    """From guesses on both sides, with few values of the function; wide where its balls are."""
    asked: list[float] = []

    def value(eps: arb) -> arb:
        asked.append(float(eps))
        return (-eps).exp() * arb(1, blur)

    with ctx.workprec(128):
        found = root(value, guess, 0.25, arb(-3).exp(), math.inf, is_exact=False)
        assert found is not None
        assert found.lower < 3 < found.upper
        assert value(arb(found.lower)) >= arb(-3).exp()
        assert value(arb(found.upper)) <= arb(-3).exp()
        assert found.width < 10 * WIDTH + 10 * blur
        assert len(asked) < 80
        exact = root(value, guess, 0.25, arb(-3).exp(), math.inf, is_exact=True)
        assert (exact is None) == bool(blur)


def test_a_target_above_all_values_is_met_at_zero() -> None:
    with ctx.workprec(128):
        found = root(lambda eps: (-eps).exp() / 2, 1.0, 1.0, arb(0.5), 9.0, is_exact=True)
        assert found is not None
        assert found.upper == 0.0
        assert (
            root(lambda eps: arb(1) + 0 * eps, 1.0, 1.0, arb(0.5), math.inf, is_exact=True) is None
        )


@pytest.mark.parametrize("end", [1.0, 4.0])
def test_beyond_the_ceiling_nothing_is_asked(end: float) -> None:
    """Where the function falls to 0 at the ceiling, and the target is reached just before it."""

    def value(eps: arb) -> arb:
        assert eps < end
        return arb(end) - eps

    with ctx.workprec(128):
        found = root(value, end * (1 - 2**-40), 1.0, arb(2) ** -45, end, is_exact=False)
        assert found is not None
        assert found.lower <= end - 2**-45 <= found.upper <= end
        assert found.width < 1e-12
