"""Checks that the ledger of Li and Li 2023 shares: balls from python-flint, and exact fractions.

Formulas return a `Fraction` (compared exactly) or an `arb` (two balls agree where they overlap and
both are narrow). A bound is decided by certified comparison, and counts as reached within 10⁻⁹.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx

from dpverify.auditing.claims import Evidence, Formula, Means
from dpverify.enclosure import to_arb

__all__ = ["at_most", "ball", "cdf", "density", "equals", "gaussian_delta", "integral", "number"]

PRECISION = 128
_NARROW = 1e-12
Case = tuple[Any, ...]


def number(value: Any) -> Any:
    """The ball of a fraction or integer; balls stay as they are."""
    return to_arb(Fraction(value)) if isinstance(value, Fraction | int) else value


def ball(text: str | int | Fraction) -> arb:
    """A ball around a rational number, written as a decimal string or a fraction."""
    return to_arb(Fraction(text))


def cdf(x: Any) -> Any:
    """Distribution function of the standard normal, at a real or complex ball."""
    return (-x / arb(2).sqrt()).erfc() / 2


def density(x: Any) -> Any:
    """Density of the standard normal, at a real or complex ball."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def integral(function: Callable[[acb], acb], low: Any, high: Any) -> arb:
    """A proven enclosure of an integral of a function that is analytic near the interval."""
    result: arb = acb.integral(lambda z, _: function(z), acb(low), acb(high)).real
    return result


def gaussian_delta(epsilon: arb, mu: arb) -> arb:
    """Least δ of N(0, 1) against N(μ, 1), integrated: ∫ (φ(x − μ) − e^ε φ(x)) over x > ε/μ + μ/2.

    The 40 standard deviations that the integral stops at leave less than 10⁻³⁰⁰.
    """
    start = epsilon / mu + mu / 2
    return integral(
        lambda x: density(x - mu) - (epsilon - x * x / 2).exp() / (2 * arb.pi()).sqrt(),
        start,
        start + mu + 40,
    )


def equals(truth: Formula, cases: Sequence[Case], means: Means) -> Callable[[Formula], Evidence]:
    """A check that a formula equals the truth in every case."""

    def check(formula: Formula) -> Evidence:
        found: dict[str, Any] = {}
        with ctx.workprec(PRECISION):
            for case in cases:
                said, true = formula(*case), truth(*case)
                found[_name(case)] = f"{_show(said)} against {_show(true)}"
                if not _same(said, true):
                    return Evidence(
                        holds=False,
                        means=means,
                        numbers=found,
                        counterexample=f"at {_name(case)}: {_show(said)}, in truth {_show(true)}",
                    )
        return Evidence(holds=True, means=means, numbers=found)

    return check


def at_most(truth: Formula, cases: Sequence[Case], means: Means) -> Callable[[Formula], Evidence]:
    """A check that the truth of every case, given the formula, is at most its bound.

    ``truth(formula, *case)`` returns two numbers: the true value, and the bound on it.
    """

    def check(formula: Formula) -> Evidence:
        found: dict[str, Any] = {}
        ratios: list[float] = []
        with ctx.workprec(PRECISION):
            for case in cases:
                value, bound = (number(end) for end in truth(formula, *case))
                found[_name(case)] = f"{_show(value)} of at most {_show(bound)}"
                if not (value <= bound or _same(value, bound)):
                    return Evidence(
                        holds=False,
                        means=means,
                        numbers=found,
                        counterexample=f"at {_name(case)}: {_show(value)} above {_show(bound)}",
                    )
                ratios.append(float(value) / float(bound))
        tight = max(ratios) > 1 - 1e-9
        slack = f"{min(ratios):.3g} to {max(ratios):.3g} of the bound"
        return Evidence(holds=True, means=means, tight=tight, slack=slack, numbers=found)

    return check


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, arb) or isinstance(other, arb)):
        return bool(one == other)
    one, other = number(one), number(other)
    scale = max(abs(float(other)), 1e-300)
    narrow = all(float(x.rad()) <= _NARROW * scale for x in (one, other))
    return bool(narrow and (one - other).contains(0))


def _show(value: Any) -> str:
    return f"{float(value):.6g}" if isinstance(value, arb) else str(value)


def _name(case: Case) -> str:
    return ", ".join(_show(part) for part in case)
