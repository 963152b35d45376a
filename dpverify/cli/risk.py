"""``dpverify account --risk``: what a curve means to the people in the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from dpverify.accounting.notions.risk import Risk
from dpverify.cli.output import emit_json, emit_table, exact_number, say
from dpverify.data.atomic_files import write_file
from dpverify.enclosure import Enclosure
from dpverify.errors import ConfigurationError
from dpverify.guarantee import PrivacyCurve

__all__ = ["report_risk", "risk_options", "risk_wanted"]

_FORMATS = {".svg": Risk.to_svg, ".html": Risk.to_html}


def risk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, which a command hands to `risk_wanted` and `report_risk` as they are."""
    for option in (
        click.option("--figure", metavar="FILE", help="Write a picture of it, .svg or .html."),
        click.option("--prior", metavar="NUMBER", help="Prior of what is guessed; 0.5 by default."),
        click.option("--risk", is_flag=True, help="Say how well anybody can guess."),
    ):
        command = option(command)
    return command


def risk_wanted(*, risk: bool, prior: str | None, figure: str | None) -> bool:
    """Whether any of the options was given; a figure of another format is refused at once."""
    if figure is not None and Path(figure).suffix not in _FORMATS:
        raise ConfigurationError(f"--figure {figure} must end in one of {', '.join(_FORMATS)}.")
    return risk or prior is not None or figure is not None


def report_risk(
    name: str,
    curve: PrivacyCurve,
    about: Mapping[str, str],
    *,
    point: Mapping[str, Enclosure],
    prior: str | None,
    figure: str | None,
    as_json: bool,
) -> None:
    """Print the risk of a curve, and write its picture if there is a name for it.

    A `point` of the curve that was asked for stands with it.
    """
    known = Risk(curve=curve, prior=exact_number("prior", "0.5" if prior is None else prior))
    if figure is not None:
        write_file(Path(figure), _FORMATS[Path(figure).suffix](known).encode())
    if as_json:
        ends = {key: value.as_json() for key, value in point.items()}
        emit_json("account", {"name": name, **about, **ends, "risk": known.to_dict()})
        return
    say(known.sentence)
    asked = [(f"{key}, at most", value.as_json()["upper"]) for key, value in point.items()]
    emit_table([*asked, *known.rows()])
    for key, text in about.items():
        say(f"by {text}" if key == "theorem" else f"{key.replace('_', ' ')}: {text}")
    if figure is not None:
        say(f"wrote {figure}", err=True)
