"""``dpverify design``: choose a mechanism's parameters by exact errors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from dpverify.certificate.named import named_mechanism
from dpverify.cli.output import (
    NamedCommand,
    Whole,
    emit_json,
    emit_table,
    exact_number,
    json_option,
    key_values,
    say,
)
from dpverify.data.atomic_files import write_file
from dpverify.designs import Design
from dpverify.designs import design as designed
from dpverify.errors import ConfigurationError, ParameterError, extra

__all__ = ["design"]

_FORMATS = (".svg", ".png", ".pdf")
_WAY_OUT = (
    "Numbers are for squared distances and similarities, SIZE:CUT is for graphs; for signs and "
    "covariances, which need pairs of records, use dpv.design in Python."
)


@click.command(cls=NamedCommand, short_help="Choose parameters by exact errors.")
@click.argument("name")
@click.option(
    "-p",
    "parameters",
    multiple=True,
    metavar="KEY=VALUE[,VALUE…]",
    help="A parameter, or what to choose it from; may be repeated.",
)
@click.option(
    "--at",
    required=True,
    metavar="NUMBER[,NUMBER…]",
    help="What is of interest: squared distances, similarities of sets, or SIZE:CUT of graphs.",
)
@click.option("--draws", type=Whole(), default=16, show_default=True, help="Public seeds.")
@click.option("--figure", metavar="FILE", help="Draw the errors: .svg, .png or .pdf.")
@json_option
def design(
    name: str, parameters: tuple[str, ...], at: str, draws: int, figure: str | None, as_json: bool
) -> int:
    """Compare choices of parameters at one guarantee, by the exact error of an estimate.

    Every combination is made for the same -p epsilon and -p delta; the error is the root of the
    mean square over what is of interest, from formulas and not from data.

    \b
    dpverify design dp-oporp -p k=64,128,256 -p noise=gaussian,laplace --at 100 \\
      -p attributes=784 -p domain.low=0 -p domain.high=1 -p adjacency.beta=1 \\
      -p epsilon=5 -p delta=1e-6 --figure design.svg
    """  # noqa: D301  # click wants the character
    if figure is not None and Path(figure).suffix not in _FORMATS:
        raise ConfigurationError(f"--figure {figure} must end in one of {', '.join(_FORMATS)}.")
    given = {
        key: text.split(",") if "," in text else text
        for key, text in key_values(parameters).items()
    }

    def make(**texts: str) -> Any:
        return named_mechanism(name, texts)

    try:
        found = designed(make, at=_interests(at), draws=draws, **given)
    except TypeError:
        raise ParameterError("--at", at, f"what {name} estimates", _WAY_OUT) from None
    if figure is not None:
        write_file(Path(figure), _drawn(found, Path(figure).suffix[1:]))
    if as_json:
        emit_json("design", {"name": name, **found.to_dict()})
    else:
        rows = [
            [str(point), f"{point.error:.4g}", "best" if point is found.best else ""]
            for point in found.curve
        ]
        emit_table(rows, headings=["choice", "error of one estimate", ""])
    for chosen, error in found.refused:
        say(f"refused: {', '.join(f'{k}={v}' for k, v in chosen.items())}: {error}", err=True)
    if figure is not None:
        say(f"wrote {figure}", err=True)
    return 0


def _interests(at: str) -> list[Any]:
    interests: list[Any] = []
    for item in at.split(","):
        try:
            numbers = tuple(float(exact_number("--at", part)) for part in item.split(":"))
        except (ParameterError, OverflowError):
            rule = "numbers with commas between them"
            raise ParameterError("--at", at, rule, "As 1,10,100, or 5:10 for a cut.") from None
        interests.append(numbers if len(numbers) > 1 else numbers[0])
    return interests


def _drawn(found: Design, form: str) -> bytes:
    with extra("report", "a figure"):
        from matplotlib.figure import Figure
    axes = found.plot(Figure(figsize=(6.4, 4), layout="constrained").add_subplot())
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format=form)
    return buffer.getvalue()
