"""``dpverify account`` and ``dpverify calibrate``: the accountant of a noise distribution."""

from __future__ import annotations

from decimal import Decimal

import click

from dpverify.accounting.gaussian import (
    THEOREM,
    delta_gaussian,
    epsilon_gaussian,
    sigma_gaussian,
)
from dpverify.cli.output import decimal, emit_json, emit_table, json_option, parse_parameters
from dpverify.enclosure import Enclosure, rational

__all__ = ["account", "calibrate"]

_name = click.argument("name", metavar="NAME", type=click.Choice(["gaussian"]))
_parameters = click.option(
    "-p", "parameters", multiple=True, metavar="KEY=VALUE", help="A parameter; may be repeated."
)
_SENSITIVITY = {"sensitivity": "the l2-sensitivity of the query"}
_SIGMA = {"sigma": "the standard deviation of the noise"}


@click.command(short_help="What a noise level guarantees.")
@_name
@_parameters
@click.option("--epsilon", help="Find the delta at this epsilon.")
@click.option("--delta", help="Find the epsilon at this delta.")
@json_option
def account(
    name: str, parameters: tuple[str, ...], epsilon: str | None, delta: str | None, as_json: bool
) -> None:
    r"""What noise of a known scale guarantees.

    \b
    dpverify account gaussian -p sensitivity=1 -p sigma=4.2 --delta 1e-6
    """
    if (epsilon is None) == (delta is None):
        raise click.UsageError("give either --epsilon or --delta, and not both.")
    values = parse_parameters(parameters, _SENSITIVITY | _SIGMA)
    sensitivity, sigma = values["sensitivity"], values["sigma"]
    if epsilon is not None:
        eps = decimal("epsilon", epsilon)
        ends = (_given(eps), delta_gaussian(eps, sigma, sensitivity=sensitivity))
    else:
        target = decimal("delta", delta or "")
        ends = (
            epsilon_gaussian(target, sigma, sensitivity=sensitivity),
            _given(target),
        )
    _report("account", name, *ends, _given(sigma), as_json=as_json)


@click.command(short_help="The noise that a guarantee needs.")
@_name
@_parameters
@click.option("--epsilon", required=True, help="The epsilon to reach, in nats.")
@click.option("--delta", required=True, help="The delta to reach.")
@json_option
def calibrate(
    name: str, parameters: tuple[str, ...], epsilon: str, delta: str, as_json: bool
) -> None:
    r"""The least noise that reaches (epsilon, delta); use its upper end.

    \b
    dpverify calibrate gaussian -p sensitivity=1 --epsilon 1 --delta 1e-6
    """
    values = parse_parameters(parameters, _SENSITIVITY)
    eps, target = decimal("epsilon", epsilon), decimal("delta", delta)
    sigma = sigma_gaussian(eps, target, sensitivity=values["sensitivity"])
    ends = (_given(eps), _given(target))
    _report("calibrate", name, *ends, sigma, as_json=as_json)


def _given(value: Decimal) -> Enclosure:
    return Enclosure.of_exact(rational("value", value))


def _report(
    command: str,
    name: str,
    epsilon: Enclosure,
    delta: Enclosure,
    sigma: Enclosure,
    *,
    as_json: bool,
) -> None:
    ends = {"epsilon": epsilon.as_json(), "delta": delta.as_json(), "sigma": sigma.as_json()}
    if as_json:
        emit_json(command, {"name": name, "theorem": THEOREM, **ends})
        return
    rows = [[quantity, end["upper"], end["lower"]] for quantity, end in ends.items()]
    emit_table(rows, headings=["", "at most (the safe end)", "at least"])
    click.echo(f"by {THEOREM}")
