"""``dpverify account`` and ``dpverify calibrate``: the accountant of a noise or a mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import click

from dpverify._decimals import context
from dpverify.accounting.calibrate import DISTRIBUTIONS
from dpverify.accounting.composition.filters import infinity_mass
from dpverify.accounting.targets import Target
from dpverify.cli.output import (
    NamedCommand,
    emit_json,
    emit_table,
    exact_number,
    json_option,
    key_values,
    parse_parameters,
    say,
)
from dpverify.cli.releases import Facts, Written, named, read, total_of
from dpverify.cli.risk import report_risk, risk_options, risk_wanted
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve

__all__ = ["account", "calibrate"]

_REPEATED = {
    "times": "how many releases there are together",
    "rate": "the probability of a record to be in the sample of each",
}

_name = click.argument("name", metavar="NAME")
_parameters = click.option(
    "-p", "parameters", multiple=True, metavar="KEY=VALUE", help="A parameter; may be repeated."
)
_epsilon = click.option("--epsilon", metavar="NUMBER", help="Find the delta at this epsilon.")
_delta = click.option("--delta", metavar="NUMBER", help="Find the epsilon at this delta.")


class _Account(NamedCommand):
    """`account`, and behind the word "compose" the command of that name."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """The context of the one that is meant."""
        if args[:1] == ["compose"]:
            return compose.make_context(f"{info_name} compose", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_Account, short_help="What noise or a mechanism guarantees.")
@_name
@_parameters
@_epsilon
@_delta
@risk_options
@json_option
def account(
    name: str,
    parameters: tuple[str, ...],
    epsilon: str | None,
    delta: str | None,
    risk: bool,
    prior: str | None,
    figure: str | None,
    as_json: bool,
) -> None:
    """What noise of a known scale guarantees, or a mechanism made for -p epsilon, -p delta.

    NAME is gaussian, laplace, discrete-gaussian, discrete-laplace, randomized-response, staircase,
    truncated-laplace, exponential, noisy-max, permute-and-flip, sparse-vector, laplace-threshold,
    gaussian-threshold, approximate-dp (a published point), or the name of a mechanism. Noise may
    also be on a Poisson sample (-p rate=…, and -p replaced=1 where one record is replaced), on a
    batch drawn without replacement (-p size=… -p out_of=…), or on the shuffled answers of
    -p users=…. For many releases see `account compose`.

    \b
    dpverify account gaussian -p sensitivity=1 -p sigma=4.2 --delta 1e-6
    dpverify account randomized-response -p keep=0.75 -p positions=64 --delta 1e-6
    dpverify account randomized-response -p keep=0.75 -p users=10000 --delta 1e-6
    dpverify account gaussian -p sigma=4.2 --risk --figure risk.svg
    dpverify account dp-oporp -p k=256 -p attributes=784 -p domain.low=0 \\
      -p domain.high=1 -p adjacency.beta=1 -p epsilon=5 -p delta=1e-6 --delta 1e-9
    """  # noqa: D301  # click keeps the lines after a backspace
    wanted = risk_wanted(risk=risk, prior=prior, figure=figure)
    target = None if wanted and epsilon is delta is None else _target(epsilon, delta)
    known = named(name, key_values(parameters))
    point = {} if target is None else target.point(known.curve)
    if wanted:
        report_risk(
            name, known.curve, known.about, point=point, prior=prior, figure=figure, as_json=as_json
        )
        return
    _report("account", name, {**point, **known.facts}, known.about, as_json=as_json)


@click.command(short_help="What many releases cost together.")
@click.argument("releases", nargs=-1, required=True, metavar="RELEASE…")
@_epsilon
@_delta
@risk_options
@click.option(
    "--same-records",
    is_flag=True,
    help="Your word: mechanisms on one public draw are of the very same records.",
)
@json_option
def compose(
    releases: tuple[str, ...],
    epsilon: str | None,
    delta: str | None,
    risk: bool,
    prior: str | None,
    figure: str | None,
    same_records: bool,
    as_json: bool,
) -> None:
    """What releases about the same people cost together, by their exact privacy losses.

    RELEASE is "COUNT x NAME key=value …" with the names and keys of `account`, or a .csv or .toml
    file with count, mechanism, parameters, label and date of each. What each costs alone is shown
    next to it, and the sum by basic composition.

    \b
    dpverify account compose "10 x gaussian sigma=4" "5 x laplace scale=2" --delta 1e-6
    dpverify account compose "10000 x gaussian sigma=1 rate=0.01" --delta 1e-6
    dpverify account compose "100 x gaussian sigma=2 sensitivity=2 size=64 out_of=6400" --delta 1e-6
    dpverify account compose year.csv "approximate-dp epsilon=1 delta=1e-6" --delta 1e-5
    """  # noqa: D301  # click keeps the lines after a backspace
    wanted = risk_wanted(risk=risk, prior=prior, figure=figure)
    target = None if wanted and epsilon is delta is None else _target(epsilon, delta)
    written = read(releases)
    total = total_of(written, same_records=same_records)

    def risks(point: Mapping[str, Enclosure]) -> None:
        about = total.about
        report_risk(
            "compose", total.curve, about, point=point, prior=prior, figure=figure, as_json=as_json
        )

    if target is None:
        risks({})
        return
    together = target.of(total.curve)
    if wanted:
        risks(target.with_answer(together))
        return
    alone = cache(target.of)  # a year of releases has the same ones again and again
    parts = [alone(each.curve) for each in written]
    added = target.added(written)
    if as_json:
        emit_json(
            "account",
            {
                "name": "compose",
                **total.about,
                **{key: value.as_json() for key, value in target.with_answer(together).items()},
                f"added_{target.answer}": None if added is None else added.as_json(),
                "releases": [
                    {**each.to_dict(), f"{target.answer}_alone": part.as_json()}
                    for each, part in zip(written, parts, strict=True)
                ],
            },
        )
        return
    rows = [
        [str(each), each.label, each.date, part.as_json()["upper"], ""]
        for each, part in zip(written, parts, strict=True)
    ]
    if added is not None:
        rows.append(["added up", "", "", added.as_json()["upper"], ""])
    ends = together.as_json()
    rows.append(["together", "", "", ends["upper"], ends["lower"]])
    shown = [
        column for column in range(5) if column in (0, 3, 4) or any(row[column] for row in rows)
    ]
    headings = ["release", "label", "date", f"{target.answer}, at most", "at least"]
    emit_table(
        [[row[column] for column in shown] for row in rows],
        headings=[headings[column] for column in shown],
    )
    say(f"at {target.given}={target.text}")
    _say_about(total.about)


@click.command(cls=NamedCommand, short_help="The noise that a guarantee needs.")
@_name
@_parameters
@click.option("--epsilon", metavar="NUMBER", help="The epsilon to reach, in nats.")
@click.option("--delta", metavar="NUMBER", help="The delta to reach with it; 0 by default.")
@click.option("--advantage", metavar="NUMBER", help="Or the advantage that an attacker may have.")
@click.option("--success", metavar="NUMBER", help="Or how often a guess may be right.")
@click.option("--prior", metavar="NUMBER", help="Prior of what is guessed; 0.5 by default.")
@click.option("--tpr", metavar="NUMBER", help="Or the true positive rate at a false positive rate.")
@click.option("--fpr", metavar="NUMBER", help="The false positive rate.")
@json_option
def calibrate(name: str, parameters: tuple[str, ...], as_json: bool, **goals: str | None) -> None:
    """The least noise that reaches (epsilon, delta), or leaves so little risk.

    NAME is as for `account`; a mechanism is calibrated to epsilon and delta. Use the safe end where
    one is printed. With -p times=… it is the noise of each of so many releases that reach the
    target together, and with -p rate=… each is on a Poisson sample.

    \b
    dpverify calibrate gaussian -p sensitivity=1 --epsilon 1 --delta 1e-6
    dpverify calibrate laplace -p times=10 --epsilon 1
    dpverify calibrate gaussian --advantage 0.05
    dpverify calibrate gaussian --tpr 0.1 --fpr 0.01
    dpverify calibrate dp-oporp -p k=256 -p attributes=784 -p domain.low=0 \\
      -p domain.high=1 -p adjacency.beta=1 --epsilon 5 --delta 1e-6
    """  # noqa: D301  # click keeps the lines after a backspace
    texts = {key: text for key, text in goals.items() if text is not None}
    numbers = {key: rational(key, exact_number(key, text)) for key, text in texts.items()}
    target = Target(**numbers)
    point = {key: Enclosure.of_exact(value) for key, value in numbers.items()}
    if name in DISTRIBUTIONS:
        noise = DISTRIBUTIONS[name]
        known = {**noise.query, **_REPEATED}
        defaults: dict[str, Real] = {**noise.defaults, "times": 1, "rate": 1}
        values = _exact(parse_parameters(key_values(parameters), known, defaults=defaults))
        repeated = {key: values.pop(key) for key in _REPEATED}
        least = noise.least(values, target, **repeated)
        facts: Facts = {
            noise.noise[0]: least
            if isinstance(least, Enclosure)
            else _safe_decimal(least, rounding=ROUND_FLOOR if noise.weakens else ROUND_CEILING)
        }
        about = {"theorem": noise.theorem}
    else:
        if target.epsilon is None or target.delta is None:
            rule = "epsilon and delta for a mechanism"
            raise ParameterError("target", " and ".join(texts), rule)
        made = named(name, key_values((*parameters, *(f"{k}={text}" for k, text in texts.items()))))
        facts, about = made.facts, dict(made.about)
    _report("calibrate", name, {**point, **facts}, about, as_json=as_json)


def _safe_decimal(noise: Fraction, *, rounding: str) -> str:
    """An exact number rounded to more noise, as a probability to keep is rounded down.

    A sigma that is a decimal of fewer digits stays as it is.
    """
    return str(context(18, rounding).divide(Decimal(noise.numerator), Decimal(noise.denominator)))


def _exact(values: Mapping[str, Real]) -> dict[str, Fraction]:
    return {name: rational(name, value) for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The one of ε and δ that is given, so that the other is the answer."""

    given: Literal["epsilon", "delta"]
    text: str
    value: Fraction

    @property
    def answer(self) -> Literal["epsilon", "delta"]:
        return "delta" if self.given == "epsilon" else "epsilon"

    def of(self, curve: PrivacyCurve) -> Enclosure:
        if self.given == "epsilon":
            return curve.delta_at(self.value)
        found = curve.epsilon_at(self.value)
        rule = "at least the probability with which everything is shown"
        hint = "At a smaller one no epsilon is finite."
        require(found.lower < math.inf, "delta", self.text, rule, hint)
        return found

    def point(self, curve: PrivacyCurve) -> dict[str, Enclosure]:
        return self.with_answer(self.of(curve))

    def with_answer(self, answer: Enclosure) -> dict[str, Enclosure]:
        found = {self.given: Enclosure.of_exact(self.value), self.answer: answer}
        return {key: found[key] for key in ("epsilon", "delta")}

    def added(self, releases: Sequence[Written]) -> Enclosure | None:
        """Basic composition: every release at an even share; None where no share is left.

        Of δ, what shows everything with some probability is given that beforehand.
        """
        many = sum(each.count for each in releases)
        if self.given == "epsilon":
            share = self.value / many
            delta = cache(lambda curve: curve.delta_at(share))
            least = [delta(each.what.curve) for each in releases]
        else:
            certain = [infinity_mass(each.what.curve) for each in releases]
            left = self.value - sum(
                (each.count * mass for each, mass in zip(releases, certain, strict=True)),
                Fraction(0),
            )
            if left < 0:
                return None
            epsilon = cache(lambda curve, mass: curve.epsilon_at(mass + left / many))
            least = [
                epsilon(each.what.curve, mass) for each, mass in zip(releases, certain, strict=True)
            ]
        ends = [
            sum(
                (each.count * Fraction(end) for each, end in zip(releases, side, strict=True)),
                Fraction(0),
            )
            for side in ([found.lower for found in least], [found.upper for found in least])
        ]
        lower, upper = (Enclosure.of_exact(end) for end in ends)
        return Enclosure(lower.lower, upper.upper)


def _target(epsilon: str | None, delta: str | None) -> _Target:
    if (epsilon is None) == (delta is None):
        raise click.UsageError(
            "give one of --epsilon, to find the delta, and --delta, to find the epsilon."
        )
    name: Literal["epsilon", "delta"] = "delta" if epsilon is None else "epsilon"
    text = (delta if epsilon is None else epsilon) or ""
    return _Target(given=name, text=text, value=rational(name, exact_number(name, text)))


def _report(
    command: str,
    name: str,
    numbers: Facts,
    about: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    if as_json:
        ends = {
            key: value.as_json() if isinstance(value, Enclosure) else value
            for key, value in numbers.items()
        }
        emit_json(command, {"name": name, **about, **ends})
        return
    rows = [[key, *_cells(value)] for key, value in numbers.items()]
    emit_table(rows, headings=["", "at most (the safe end)", "at least"])
    _say_about(about)


def _say_about(about: Mapping[str, str]) -> None:
    for key, text in about.items():
        say(f"by {text}" if key == "theorem" else f"{key.replace('_', ' ')}: {text}")


def _cells(value: Enclosure | str | int) -> tuple[str, str]:
    if isinstance(value, Enclosure):
        ends = value.as_json()
        return ends["upper"], ends["lower"]
    return str(value), ""
