"""Exact oracles and checks that the ledgers share: fractions, and balls from python-flint.

Formulas return a `Fraction` (compared exactly) or an `arb` (two balls agree where they overlap and
both are narrow, to 12 digits). A bound is decided by certified comparison, and counts as reached
within 10⁻⁹. A formula that returns None doesn't speak of that case, as a reading with a narrower
condition. A double is no exact number: a check refuses it, and a ball where it says fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from inspect import Parameter, signature
from itertools import product
from math import factorial
from typing import Any

from flint import acb, arb, ctx

from dpverify.enclosure import to_arb
from dpverify.errors import require
from dpverify.ledger.statements import Evidence, Formula, Means

__all__ = [
    "at_most",
    "ball",
    "cdf",
    "chi_square",
    "density",
    "drawn_delta",
    "equals",
    "gaussian_delta",
    "hockey_stick",
    "integral",
    "number",
    "rounded",
    "worst_event",
]

PRECISION = 128
_NARROW = 1e-12
_UNSPOKEN = "no case is spoken of"
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


def chi_square(n: int, x: arb) -> arb:
    """P(χ² of n degrees > x) for even n, the finite sum e^(−x/2) Σ_{i<n/2} (x/2)ⁱ/i!."""
    term = total = arb(1)
    for i in range(1, n // 2):
        term = term * (x / 2) / i
        total += term
    return (-x / 2).exp() * total


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


def drawn_delta(epsilon: arb, k: int, scale: arb) -> arb:
    """Least δ of (P, Px + noise) for normal P and unit noise, one attribute of x moved: exactly.

    The column of P that counts, times the move, has length r = scale·χ of k degrees, so that δ is
    the mean of `gaussian_delta` in closed form. What is left out, r/scale below 1/20 and above
    40 + √k, weighs less than 10⁻³⁰ for k of 20 or more; k is even.
    """
    half = 2 ** (k // 2 - 1) * factorial(k // 2 - 1)

    def weighted(r: acb) -> acb:
        mu = r * scale
        delta = cdf(mu / 2 - epsilon / mu) - epsilon.exp() * cdf(-epsilon / mu - mu / 2)
        return r ** (k - 1) * (-r * r / 2).exp() / half * delta

    return integral(weighted, arb(1) / 20, 40 + arb(k).sqrt())


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """Σ (pᵢ − factor·qᵢ)₊, the least δ of one law against another at e^ε = factor."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def worst_event(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """Largest P(S) − factor·Q(S) over all events S."""
    return max(
        sum((s * (a - factor * b) for s, a, b in zip(event, p, q, strict=True)), Fraction(0))
        for event in product((0, 1), repeat=len(p))
    )


def rounded(value: arb, digits: int) -> Fraction:
    """The decimal with so many digits after the point that is nearest to a ball, proven."""
    place = int((value * 10**digits + arb(1) / 2).floor().unique_fmpz())
    return Fraction(place, 10**digits)


def equals(truth: Formula, cases: Sequence[Case], means: Means) -> Callable[[Formula], Evidence]:
    """A check that a formula equals the truth in every case that it speaks of."""

    def check(formula: Formula) -> Evidence:
        found: dict[str, Any] = {}
        failed: list[str] = []
        cases_tried = 0
        names = _parameters(truth) or _parameters(formula)
        with ctx.workprec(PRECISION):
            for case in cases:
                said = formula(*case)
                if said is None:
                    continue
                true, place = truth(*case), _name(case, names)
                _exact(said, means)
                _exact(true, means)
                cases_tried += 1
                found[place] = f"{_show(said)} against {_show(true)}"
                if not _same(said, true):
                    failed.append(f"{_at(place)}{_show(said)}, in truth {_show(true)}")
        return Evidence(
            holds=bool(found) and not failed,
            means=means,
            cases=cases_tried,
            numbers=found,
            counterexample=failed[0] if failed else "" if found else _UNSPOKEN,
        )

    return check


def at_most(truth: Formula, cases: Sequence[Case], means: Means) -> Callable[[Formula], Evidence]:
    """A check that the truth of every case, given the formula, is at most its bound.

    ``truth(formula, *case)`` returns two numbers, the true value and the bound on it, or None where
    the formula doesn't speak of the case.
    """

    def check(formula: Formula) -> Evidence:
        found: dict[str, Any] = {}
        failed: list[str] = []
        ratios: list[float] = []
        cases_tried = 0
        names = _parameters(truth)[1:] or _parameters(formula)
        with ctx.workprec(PRECISION):
            for case in cases:
                ends = truth(formula, *case)
                if ends is None:
                    continue
                for end in ends:
                    _exact(end, means)
                cases_tried += 1
                value, bound = (number(end) for end in ends)
                place = _name(case, names)
                found[place] = f"{_show(value)} of at most {_show(bound)}"
                if value <= bound or _same(value, bound):
                    ratios.append(float(value) / float(bound))
                else:
                    failed.append(f"{_at(place)}{_show(value)} above {_show(bound)}")
        if failed or not found:
            counterexample = failed[0] if failed else _UNSPOKEN
            return Evidence(
                holds=False,
                means=means,
                cases=cases_tried,
                numbers=found,
                counterexample=counterexample,
            )
        tight = max(ratios) > 1 - 1e-9
        slack = f"{min(ratios):.3g} to {max(ratios):.3g} of the bound"
        return Evidence(
            holds=True, means=means, cases=cases_tried, tight=tight, slack=slack, numbers=found
        )

    return check


def _exact(value: Any, means: Means) -> None:
    """Refuse what the word for the means doesn't cover."""
    if isinstance(value, tuple | list):
        for part in value:
            _exact(part, means)
        return
    good = isinstance(value, int | Fraction | str) or (
        means == "enclosure" and isinstance(value, arb)
    )
    require(good, "value", value, f"a fraction, or a ball of an enclosure; the means is {means}")


def _at(place: str) -> str:
    return f"at {place}: " if place else ""


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, arb) or isinstance(other, arb)):
        return bool(one == other)
    one, other = number(one), number(other)
    scale = max(abs(float(other)), 1e-300)
    narrow = all(float(x.rad()) <= _NARROW * scale for x in (one, other))
    return bool(narrow and (one - other).contains(0))


def _show(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_show, value)) + ")"
    return f"{float(value):.6g}" if isinstance(value, arb) else str(value)


def _name(case: Case, parameters: Sequence[str]) -> str:
    """The case with the names of its parts, if the function names each of them."""
    shown = [_show(part) for part in case]
    if len(parameters) == len(case):
        shown = [f"{name}={part}" for name, part in zip(parameters, shown, strict=True)]
    return "; ".join(shown)


def _parameters(function: Formula) -> list[str]:
    named = Parameter.POSITIONAL_OR_KEYWORD
    found = signature(function).parameters.values()
    return [part.name for part in found] if all(part.kind == named for part in found) else []
