"""``dpverify account`` and ``dpverify calibrate``: the accountant of a noise or a mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import click

from dpverify.accounting.calibrate import DISTRIBUTIONS
from dpverify.cli.output import (
    decimal,
    emit_json,
    emit_table,
    json_option,
    key_values,
    parse_parameters,
    say,
)
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import ConfigurationError, did_you_mean
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Certifiable

__all__ = ["account", "calibrate"]

_DOWN = Context(prec=18, rounding=ROUND_FLOOR)

_name = click.argument("name", metavar="NAME")
_parameters = click.option(
    "-p", "parameters", multiple=True, metavar="KEY=VALUE", help="A parameter; may be repeated."
)
_Facts = Mapping[str, Enclosure | str | int]


@click.command(short_help="What a noise level or a mechanism guarantees.")
@_name
@_parameters
@click.option("--epsilon", metavar="NUMBER", help="Find the delta at this epsilon.")
@click.option("--delta", metavar="NUMBER", help="Find the epsilon at this delta.")
@json_option
def account(
    name: str, parameters: tuple[str, ...], epsilon: str | None, delta: str | None, as_json: bool
) -> None:
    """What noise of a known scale guarantees, or a mechanism made for -p epsilon, -p delta.

    NAME is gaussian, discrete-gaussian, laplace, randomized-response, or a mechanism's.

    \b
    dpverify account gaussian -p sensitivity=1 -p sigma=4.2 --delta 1e-6
    dpverify account randomized-response -p keep=0.75 -p positions=64 --delta 1e-6
    dpverify account dp-oporp -p k=256 -p attributes=784 -p domain.low=0 \\
      -p domain.high=1 -p adjacency.beta=1 -p epsilon=5 -p delta=1e-6 --delta 1e-9
    """  # noqa: D301  # click keeps the lines after a backspace
    if (epsilon is None) == (delta is None):
        raise click.UsageError(
            "give one of --epsilon, to find the delta, and --delta, to find the epsilon."
        )
    if name in DISTRIBUTIONS:
        noise = DISTRIBUTIONS[name]
        known = {**noise.query, noise.noise[0]: noise.noise[1]}
        values = _exact(parse_parameters(parameters, known, defaults=noise.defaults))
        curve = noise.curve(values)
        facts: _Facts = {noise.noise[0]: Enclosure.of_exact(values[noise.noise[0]])}
        about = {"theorem": noise.theorem}
    else:
        mechanism = _made(name, parameters)
        curve, facts, about = mechanism.privacy(), _facts(mechanism), _about(mechanism)
    _report("account", name, {**_point(curve, epsilon, delta), **facts}, about, as_json=as_json)


@click.command(short_help="The noise that a guarantee needs.")
@_name
@_parameters
@click.option("--epsilon", metavar="NUMBER", required=True, help="The epsilon to reach, in nats.")
@click.option("--delta", metavar="NUMBER", required=True, help="The delta to reach.")
@json_option
def calibrate(
    name: str, parameters: tuple[str, ...], epsilon: str, delta: str, as_json: bool
) -> None:
    """The least noise that reaches (epsilon, delta).

    NAME is gaussian, discrete-gaussian, laplace, randomized-response, or a mechanism's. Of noise
    use what is printed as the safe end, or alone.

    \b
    dpverify calibrate gaussian -p sensitivity=1 --epsilon 1 --delta 1e-6
    dpverify calibrate dp-oporp -p k=256 -p attributes=784 -p domain.low=0 \\
      -p domain.high=1 -p adjacency.beta=1 --epsilon 5 --delta 1e-6
    """  # noqa: D301  # click keeps the lines after a backspace
    goal = {"epsilon": decimal("epsilon", epsilon), "delta": decimal("delta", delta)}
    point = {key: Enclosure.of_exact(rational(key, value)) for key, value in goal.items()}
    if name in DISTRIBUTIONS:
        noise = DISTRIBUTIONS[name]
        values = _exact(parse_parameters(parameters, noise.query, defaults=noise.defaults))
        target = rational("epsilon", goal["epsilon"]), rational("delta", goal["delta"])
        least = noise.calibrate(values, *target)
        facts: _Facts = {
            noise.noise[0]: least if isinstance(least, Enclosure) else _safe_decimal(least)
        }
        about = {"theorem": noise.theorem}
    else:
        mechanism = _made(name, (*parameters, f"epsilon={epsilon}", f"delta={delta}"))
        facts, about = _facts(mechanism), _about(mechanism)
    _report("calibrate", name, {**point, **facts}, about, as_json=as_json)


def _safe_decimal(noise: Fraction) -> str:
    """A probability to keep, rounded down: less truthful answers are as private.

    The discrete Gaussian's sigma is a decimal of fewer digits, and stays as it is.
    """
    return str(_DOWN.divide(Decimal(noise.numerator), Decimal(noise.denominator)))


def _exact(values: Mapping[str, Real]) -> dict[str, Fraction]:
    return {name: rational(name, value) for name, value in values.items()}


def _point(curve: PrivacyCurve, epsilon: str | None, delta: str | None) -> dict[str, Enclosure]:
    if epsilon is not None:
        eps = decimal("epsilon", epsilon)
        return {"epsilon": Enclosure.of_exact(Fraction(eps)), "delta": curve.delta_at(eps)}
    target = decimal("delta", delta or "")
    return {"epsilon": curve.epsilon_at(target), "delta": Enclosure.of_exact(Fraction(target))}


def _made(name: str, parameters: Sequence[str]) -> Certifiable:
    # Imports every installed mechanism: a noise distribution's accountant doesn't wait for that.
    from dpverify.catalogue import families
    from dpverify.certificate.named import named_mechanism

    if name not in families():
        hint = did_you_mean(name, [*DISTRIBUTIONS, *families()])
        raise ConfigurationError(f"there is no mechanism {name}. {hint}")
    return named_mechanism(name, key_values(parameters))


def _facts(mechanism: Certifiable) -> _Facts:
    return {
        f"{section}.{name}": value
        for section, numbers in mechanism.facts().items()
        for name, value in numbers.items()
    }


def _about(mechanism: Certifiable) -> dict[str, str]:
    guarantee = mechanism.guarantee()
    return {
        "theorem": guarantee.theorem,
        "protects": guarantee.adjacency.unit,
        "randomness": guarantee.randomness,
        "data_choice": guarantee.data_choice,
    }


def _report(
    command: str,
    name: str,
    numbers: _Facts,
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
    for key, text in about.items():
        say(f"by {text}" if key == "theorem" else f"{key.replace('_', ' ')}: {text}")


def _cells(value: Enclosure | str | int) -> tuple[str, str]:
    if isinstance(value, Enclosure):
        ends = value.as_json()
        return ends["upper"], ends["lower"]
    return str(value), ""
