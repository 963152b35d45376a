"""Checks: each compares a formula with an oracle, and knows what kind of oracle that is.

A check is data, `Check`: the truth, how it is compared, and the kind of oracle that the truth is.
So the engine can say how a verdict was reached, and can try the check on a wrong truth as well as
on a wrong formula. `equals`, `at_most`, `order`, `wherever` and `simulated` make checks.

Formulas return a `Fraction` (compared exactly) or an `arb` (two balls agree where they overlap and
both are narrow, to 12 digits). A bound is decided by certified comparison, and counts as reached
within 10⁻⁹. A formula that returns None doesn't speak of that case, as a reading with a narrower
condition. A double isn't an exact number: a check refuses it, and a ball where it says fractions,
an integral where it doesn't say quadrature. An identity is asked for in letters, and of an equality
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from inspect import Parameter, signature
from math import floor, log10
from statistics import NormalDist
from typing import Any, Literal, get_args

from flint import arb, ctx

from dpverify.errors import ParameterError, require, require_known
from dpverify.ledger.letters import Quotient
from dpverify.ledger.oracles import apart, integrals, number

__all__ = [
    "Check",
    "Evidence",
    "Formula",
    "Oracle",
    "at_most",
    "equals",
    "order",
    "simulated",
    "wherever",
]

Oracle = Literal["identity", "enumeration", "points", "enclosure", "quadrature", "simulation"]
"""What a truth is:

- ``identity``: another derivation in letters, the same rational function of them;
- ``enumeration``: every outcome or every case of a size, added up in fractions;
- ``points``: another derivation in fractions, compared at some points;
- ``enclosure``: another derivation, in proven balls, compared at some points;
- ``quadrature``: an integral over the noise, in proven balls, to a stated number of digits;
- ``simulation``: draws, at a stated level.
"""
Formula = Callable[..., Any]
"""What a statement says, as a function of its parameters: a number, a law, a bound, a rule."""

PRECISION = 128
_NARROW = 1e-12
_UNSPOKEN = "no case is spoken of"
Case = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a check found for one formula.

    Attributes
    ----------
    holds : whether the statement with this formula is true wherever it was tried
    oracle : what the truth is that it was compared with
    cases : in how many cases or at how many points
    digits : of balls and quadrature, to how many digits the worst one is proven
    level : of a simulation, the probability that a true formula fails
    ratios : for a bound that holds, the least and the largest value over its bound
    ends : degenerate cases, told apart when the check is made, at which a bound is reached
    numbers : what was computed, by name
    counterexample : the smallest one found, in words with numbers
    """

    holds: bool
    oracle: Oracle
    cases: int = 1
    digits: int | None = None
    level: float | None = None
    ratios: tuple[float, float] | None = None
    ends: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    counterexample: str = ""

    @property
    def tight(self) -> bool:
        """Whether a bound is reached beside its ends, within 10⁻⁹; an equality is."""
        return self.ratios is None or self.ratios[1] > 1 - 1e-9

    @property
    def slack(self) -> str:
        """By how much a bound is off, in words; empty for an equality."""
        if self.ratios is None:
            return ""
        low, high = self.ratios
        ends = f"; reached at {' and '.join(self.ends)}" if self.ends else ""
        return f"{low:.3g} to {high:.3g} of the bound{ends}"

    @property
    def how(self) -> str:
        """The oracle and the number of cases, in words."""
        some = "one case" if self.cases == 1 else f"{self.cases} cases"
        digits = "" if self.digits is None else f" to {self.digits} digits"
        match self.oracle:
            case "identity":
                return f"by algebra, an identity in letters, {some}"
            case "enumeration":
                return f"by enumeration in fractions, {some}"
            case "points":
                return f"by another derivation, in fractions at {some.replace('case', 'point')}"
            case "enclosure":
                return f"by another derivation, in proven enclosures{digits}, {some}"
            case "quadrature":
                return f"by proven quadrature{digits}, {some}"
            case "simulation":
                return f"by simulation at level {self.level:g}, {some}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Compares formulas with an oracle.

    Attributes
    ----------
    oracle : what kind of thing the truth is
    truth : the oracle
    compare : of a truth and a formula, what is found
    of : what is compared of a formula, where that isn't the formula itself
    bound : whether the truth gives a value and the bound on it
    ends : cases at which nothing is at stake, and the printed bound is reached
    """

    oracle: Oracle
    truth: Formula
    compare: Callable[..., Evidence]
    of: Callable[[Formula], Formula] | None = None
    bound: bool = False
    ends: Sequence[Case] = ()

    def __post_init__(self) -> None:
        require_known("oracle", self.oracle, get_args(Oracle))
        good = not (self.bound and self.oracle == "identity")
        require(good, "oracle", self.oracle, "another kind of oracle if the truth has a bound")

    def __call__(self, formula: Formula, *, seed: int = 0) -> Evidence:
        """What is found for a formula; the seed is that of the draws of a simulation."""
        said = formula if self.of is None else self.of(formula)
        if self.oracle == "simulation":
            return self.compare(self.truth, said, seed=seed)
        return self.compare(self.truth, said)

    def mistaken(self, change: Callable[[Any], Any]) -> Check:
        """The check with another truth: what `change` makes of each of its values."""

        def other(*arguments: Any, **named: Any) -> Any:
            return change(self.truth(*arguments, **named))

        other.__signature__ = signature(self.truth)  # type: ignore[attr-defined]
        return replace(self, truth=other)


def equals(
    truth: Formula,
    cases: Sequence[Case],
    oracle: Oracle,
    *,
    of: Callable[[Formula], Formula] | None = None,
) -> Check:
    """A check that a formula equals the truth in every case that it speaks of.

    Parameters
    ----------
    truth : the oracle, a function of a case
    cases : arguments of the truth and of what is compared with it
    oracle : what the truth is
    of : what is compared of the formula, where that isn't the formula itself
    """
    for case in cases:
        lettered = any(isinstance(part, Quotient) for part in _parts(case))
        rule = "an identity where a case has letters, and only there"
        require((oracle == "identity") == lettered, "oracle", oracle, rule)

    def compare(truth: Formula, formula: Formula) -> Evidence:
        numbers: dict[str, Any] = {}
        failed: list[str] = []
        spoken, digits = 0, _Digits(oracle)
        names = _parameters(truth) or _parameters(formula)
        with ctx.workprec(PRECISION):
            for case in cases:
                with integrals() as integrated:
                    said = formula(*case)
                if said is None:
                    continue
                true, place = digits.of(truth, *case), _name(case, names)
                _exact(said, oracle)
                _integrates(of is not None and bool(integrated), oracle)
                spoken += 1
                numbers[place] = f"{_show(said)} against {_show(true)}"
                if not _same(said, true):
                    failed.append(f"{_at(place)}{_show(said)} in place of {_show(true)}")
        return Evidence(
            holds=bool(numbers) and not failed,
            oracle=oracle,
            cases=spoken,
            digits=digits.least,
            numbers=numbers,
            counterexample=failed[0] if failed else "" if numbers else _UNSPOKEN,
        )

    return Check(oracle=oracle, truth=truth, compare=compare, of=of)


def at_most(
    truth: Formula,
    cases: Sequence[Case],
    oracle: Oracle,
    *,
    of: Callable[[Formula], Formula] | None = None,
    ends: Sequence[Case] = (),
) -> Check:
    """A check that the truth of every case, given the formula, is at most its bound.

    ``truth(formula, *case)`` returns two numbers, the true value and the bound on it, or None where
    the formula doesn't speak of the case. At `ends`, more cases, both are the same for a reason of
    its own, as nothing is at stake there: a bound that is reached at ends alone is conservative.
    """

    def compare(truth: Formula, formula: Formula) -> Evidence:
        names = _parameters(truth)[1:] or _parameters(formula)
        return _bounded(partial(truth, apart(formula)), cases, names, oracle, ends)

    return Check(oracle=oracle, truth=truth, compare=compare, of=of, bound=True, ends=ends)


def wherever(truth: Formula, oracle: Oracle) -> Check:
    """A check that a value is at most its bound in every case that the formula names.

    ``truth(*case)`` returns two numbers, the value and the bound on it.
    """

    def compare(truth: Formula, formula: Formula) -> Evidence:
        return _bounded(truth, formula(), _parameters(truth), oracle)

    return Check(oracle=oracle, truth=truth, compare=compare, bound=True)


def _bounded(
    truth: Formula,
    cases: Sequence[Case],
    names: Sequence[str],
    oracle: Oracle,
    ends: Sequence[Case] = (),
) -> Evidence:
    numbers: dict[str, Any] = {}
    failed: list[str] = []
    ratios: list[float] = []
    reached: list[str] = []
    digits = _Digits(oracle)
    with ctx.workprec(PRECISION):
        for case in (*cases, *ends):
            pair = digits.of(truth, *case)
            if pair is None:
                continue
            value, bound = (number(part) for part in pair)
            place = _name(case, names)
            numbers[place] = f"{_show(value)} of at most {_show(bound)}"
            if _same(value, bound) and case in ends:
                reached.append(place)
            elif _same(value, bound):
                ratios.append(1.0)
            elif value <= bound:
                ratios.append(float(value) / float(bound))
            else:
                failed.append(f"{_at(place)}{_show(value)} above {_show(bound)}")
    return Evidence(
        holds=bool(numbers) and not failed,
        oracle=oracle,
        cases=len(numbers),
        digits=digits.least,
        ratios=(min(ratios), max(ratios)) if ratios and not failed else None,
        ends=tuple(reached),
        numbers=numbers,
        counterexample=failed[0] if failed else "" if numbers else _UNSPOKEN,
    )


def order(
    truth: Formula, cases: Sequence[Case], oracle: Oracle, *, factor: Fraction | int
) -> Check:
    """A check that a formula is right up to a factor either way, the same one in every case."""

    def compare(truth: Formula, formula: Formula) -> Evidence:
        def ratio(formula: Formula, *case: Any) -> tuple[Any, Any] | None:
            said, true = formula(*case), truth(*case)
            if said is None:
                return None
            exact = all(isinstance(value, int | Fraction) for value in (said, true))
            said, true = (Fraction(value) if exact else number(value) for value in (said, true))
            return (said / true if said > true else true / said), factor

        return at_most(ratio, cases, oracle)(formula)

    return Check(oracle=oracle, truth=truth, compare=compare)


def simulated(truth: Formula, cases: Sequence[Case], *, level: float) -> Check:
    """A check that a formula's interval meets a confidence interval from draws.

    Parameters
    ----------
    truth : of a case and ``seed=``, a mean and its standard error
    cases : arguments of the truth and of the formula, which returns the ends of what it says
    level : probability that a true formula fails in some case, by the normal approximation
    """
    deviations = NormalDist().inv_cdf(1 - level / len(cases) / 2)

    def compare(truth: Formula, formula: Formula, *, seed: int) -> Evidence:
        numbers: dict[str, Any] = {}
        failed: list[str] = []
        for case in cases:
            mean, error = truth(*case, seed=seed)
            low, high = formula(*case)
            drawn = f"{mean:.4f} ± {deviations * error:.4f}"
            numbers["; ".join(map(_show, case))] = f"simulated {drawn}"
            if not (low - deviations * error <= mean <= high + deviations * error):
                failed.append(f"simulated {drawn}, said {float((low + high) / 2):.3g}")
        return Evidence(
            holds=not failed,
            oracle="simulation",
            cases=len(cases),
            level=level,
            numbers=numbers,
            counterexample=failed[0] if failed else "",
        )

    return Check(oracle="simulation", truth=truth, compare=compare)


class _Digits:
    """Calls a truth, refuses what isn't of the oracle's kind, and remembers the widest ball."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._widest: float | None = None

    def of(self, truth: Formula, *arguments: Any) -> Any:
        with integrals() as integrated:
            value = truth(*arguments)
        _integrates(bool(integrated), self._oracle)
        if value is not None:
            _exact(value, self._oracle)
        for part in _parts(value):
            if isinstance(part, arb) and (size := abs(float(part))):
                self._widest = max(self._widest or 0.0, float(part.rad()) / size)
        return value

    @property
    def least(self) -> int | None:
        """Digits of the widest ball; None where there was none."""
        if self._widest is None:
            return None
        most = floor(PRECISION * log10(2))
        return min(most, floor(-log10(self._widest))) if self._widest else most


def _integrates(integrated: bool, oracle: Oracle) -> None:
    if integrated and oracle != "quadrature":
        raise ParameterError("oracle", oracle, "quadrature where the truth is an integral")


def _exact(value: Any, oracle: Oracle) -> None:
    """Refuse what the word for the oracle doesn't cover."""
    kinds = {"identity": Quotient, "enclosure": arb, "quadrature": arb}
    rule = f"a fraction, a ball of an enclosure or letters of an identity; the oracle is {oracle}"
    for part in _parts(value):
        good = isinstance(part, int | Fraction | str | kinds.get(oracle, int))
        require(good, "value", part, rule)


def _parts(value: Any) -> Iterator[Any]:
    """What a case is made of, those of tuples and lists one by one."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from _parts(part)
    else:
        yield value


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
        shown = [
            part if part == name else f"{name}={part}"  # a letter has the name already
            for name, part in zip(parameters, shown, strict=True)
        ]
    return "; ".join(shown)


def _parameters(function: Formula) -> list[str]:
    named = Parameter.POSITIONAL_OR_KEYWORD
    found = signature(function).parameters.values()
    return [part.name for part in found] if all(part.kind == named for part in found) else []
