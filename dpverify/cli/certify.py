"""``dpverify certify``: from a configuration to a release with its certificate."""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter

import click

from dpverify.certificate import certify as certifying
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.schema import Certificate, Usefulness
from dpverify.cli.output import emit_json, json_option, progress_bar, say, talk, talk_options
from dpverify.cli.where import where_options, workers_option
from dpverify.enclosure import exact_string
from dpverify.errors import ConfigurationError
from dpverify.execution.compiled import loops_by

__all__ = ["certify"]


@click.command(short_help="Release data with a certificate.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for certificate, report and sketch; replaced as a whole at the end.",
)
@click.option(
    "--budget",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Spend the release from this budget before it is drawn; see dpverify budget.",
)
@click.option("--yes", is_flag=True, help="Release also what is useless; asked for on a terminal.")
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
@talk_options
@workers_option
@where_options
def certify(
    config: Path,
    out: Path,
    budget: Path | None,
    yes: bool,
    allow_inconclusive: bool,
    as_json: bool,
    workers: int,
) -> int:
    """Certify the release that CONFIG describes.

    Builds the mechanism, proves its guarantee, attacks it on synthetic neighbours, releases the
    records with fresh secure noise, and writes certificate.json, report.html and sketch.npz.
    What describes the real records goes to a folder of its own beside --out.

    A --budget is spent when all checks are done, just before the draw. What fails after that stays
    spent.
    """
    began = perf_counter()
    configuration = load_configuration(config)
    for name, setting in configuration.audit.model_dump().items():
        shown = exact_string(setting) if isinstance(setting, Fraction) else setting
        talk(f"audit.{name}: {shown}", detail=True)
    with progress_bar() as start:
        certified = certifying.certify(
            configuration,
            out,
            base=config.parent,
            budget=budget,
            accept=partial(_accepted, yes=yes),
            announce=start,
            workers=workers,
        )
    talk(f"released after {perf_counter() - began:.1f} s; loops by {loops_by()}", detail=True)
    if as_json:
        emit_json("certify", certified.to_dict())
    else:
        say(str(certified), lines=True)
    if certified.owner_file is not None:
        talk(f"For the owner only, not to be released: {certified.owner_file}")
    if certified.certificate.release is None:
        talk("An audit found a violation: nothing was released. See the report.")
    return _exit_code(certified.certificate, allow_inconclusive=allow_inconclusive)


def _accepted(judged: Usefulness, *, yes: bool) -> bool:
    """Say what the release will be worth; ask about a useless one where somebody can answer.

    Where nobody can, the refusal says it.
    """
    useless = judged.verdict == "useless" and not yes
    if useless and not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    talk(str(judged))
    if useless and not click.confirm("Spend the privacy budget on it?", err=True):
        raise ConfigurationError(
            "nothing was drawn or released, as you said. dpverify plan says what would help."
        )
    return True


def _exit_code(certificate: Certificate, *, allow_inconclusive: bool) -> int:
    derived = certificate.derived
    # The delta method's formulas are approximations by name: reported, and no failure.
    exact = [e for e in derived.estimators if e.formulas == "exact"]
    formulas = [v for e in exact for v in (e.mean_verdict, e.variance_verdict)]
    verdicts = {derived.white_box.verdict, *formulas}
    if verdicts & {"violation", "refuted"}:
        return 1
    return 3 if "inconclusive" in verdicts and not allow_inconclusive else 0
