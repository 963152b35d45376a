"""``dpverify certify``: from a configuration to a release with its certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from dpverify.certificate.archive import SKETCH
from dpverify.certificate.certify import CERTIFICATE, REPORT, Outcome
from dpverify.certificate.certify import certify as make_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.derive import total_draws
from dpverify.certificate.schema import Certificate, Inputs, Release
from dpverify.cli.output import (
    emit_json,
    emit_table,
    json_option,
    progress_bar,
    talk,
    talk_options,
)
from dpverify.cli.where import where_options, workers_option
from dpverify.privacy import Certifiable

__all__ = ["certify"]


@click.command(short_help="Release data with a certificate.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for certificate, report and sketch; replaced as a whole at the end.",
)
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
@talk_options
@workers_option
@where_options
def certify(config: Path, out: Path, allow_inconclusive: bool, as_json: bool, workers: int) -> int:
    """Certify the release that CONFIG describes.

    Builds the mechanism, proves its guarantee, attacks it on synthetic neighbours, releases the
    records with fresh secure noise, and writes certificate.json, report.html and sketch.npz.
    What describes the real records goes to a folder of its own beside --out.
    """
    began = perf_counter()
    configuration = load_configuration(config)
    for name, setting in configuration.audit.model_dump().items():
        talk(f"audit.{name}: {setting}", detail=True)
    with progress_bar("auditing") as start:

        def announce(inputs: Inputs, mechanism: Certifiable) -> Callable[[int], None]:
            return start(total_draws(inputs, mechanism))

        outcome = make_certificate(
            configuration, out, base=config.parent, announce=announce, workers=workers
        )
    talk(f"released after {perf_counter() - began:.1f} s", detail=True)
    paths = {name: str(out / name) for name in _written(outcome)}
    verdict = outcome.certificate.derived.white_box.verdict
    if as_json:
        emit_json("certify", _result(outcome.certificate, paths))
    else:
        emit_table(_rows(outcome.certificate, paths))
    if outcome.owner_file is not None:
        talk(f"For the owner only, not to be released: {outcome.owner_file}")
    if verdict == "violation":
        talk("An audit found a violation: nothing was released. See the report.")
    return _exit_code(outcome.certificate, allow_inconclusive=allow_inconclusive)


def _written(outcome: Outcome) -> list[str]:
    names = [CERTIFICATE, REPORT]
    return names if outcome.certificate.release is None else [*names, SKETCH]


def _exit_code(certificate: Certificate, *, allow_inconclusive: bool) -> int:
    derived = certificate.derived
    verdicts = [derived.white_box.verdict]
    # The delta method's formulas are approximations by name: reported, and no failure.
    exact = [e for e in derived.estimators if e.formulas == "exact"]
    formulas = [v for e in exact for v in (e.mean_verdict, e.variance_verdict)]
    if "violation" in verdicts or "refuted" in formulas:
        return 1
    if "inconclusive" in [*verdicts, *formulas] and not allow_inconclusive:
        return 3
    return 0


def _result(certificate: Certificate, paths: dict[str, str]) -> dict[str, Any]:
    derived = certificate.derived
    return {
        "protects": derived.protects,
        "mechanism": certificate.inputs.mechanism,
        "epsilon": derived.guarantee.epsilon.model_dump(),
        "delta": derived.guarantee.delta.model_dump(),
        "sigma": _ends(certificate, "noise", "sigma"),
        "verdict": derived.white_box.verdict,
        "epsilon_lower": derived.white_box.epsilon_lower,
        "ceiling": derived.white_box.ceiling,
        "estimators": [e.model_dump() for e in derived.estimators],
        "attacker": [rate.model_dump() for rate in derived.attacker],
        "hazards": {answer.id: answer.answer for answer in certificate.checklist},
        "files": paths,
    }


def _ends(certificate: Certificate, section: str, name: str) -> Any:
    value = certificate.derived.facts.get(section, {}).get(name)
    return value if value is None or isinstance(value, str | int) else value.model_dump()


def _rows(certificate: Certificate, paths: dict[str, str]) -> list[list[str]]:
    inputs, derived, release = certificate.inputs, certificate.derived, certificate.release
    attack, guarantee = derived.white_box, derived.guarantee
    sigma = _ends(certificate, "noise", "sigma")
    released = "nothing" if release is None else _released(release)
    reach = attack.power.reach
    rows = [
        ["protects", derived.protects],
        ["mechanism", f"{' '.join([inputs.mechanism, *_settings(inputs)])}, released: {released}"],
        ["proven", f"{guarantee.notion}, epsilon = {inputs.epsilon}, delta = {inputs.delta}"],
        ["", f"by {guarantee.theorem}"],
        ["", f"delta({inputs.epsilon}) <= {guarantee.delta.upper}"],
    ]
    if isinstance(sigma, dict):
        rows.append(["noise", f"sigma = {sigma['upper']}, exactly rounded to the grid"])
    rows += [
        ["attacked", f"{attack.verdict}, at level {inputs.alpha} with {inputs.draws} draws a side"],
        ["", f"epsilon >= {attack.epsilon_lower} shown, {attack.ceiling} to be expected at best"],
        ["", f"would have found noise scaled by: {attack.power.noise_scale or 'nothing'}"],
        ["", f"could have refuted the curve up to epsilon: {reach or 'nowhere'}"],
    ]
    rows += [
        [
            "estimator" if number == 0 else "",
            f"{e.name} ({e.formulas}): mean {e.mean_verdict}, variance {e.variance_verdict}",
        ]
        for number, e in enumerate(derived.estimators)
    ]
    words: Counter[str] = Counter(answer.answer for answer in certificate.checklist)
    order = ("pass", "fail", "needs_owner", "not_applicable")
    rows.append(["hazards", ", ".join(f"{words[word]} {word}" for word in order)])
    return rows + [[name.rpartition(".")[0], path] for name, path in paths.items()]


def _released(release: Release) -> str:
    size = " x ".join(map(str, release.shape))
    return f"{size} {'bytes' if release.dtype == 'uint8' else 'whole numbers'}"


def _settings(inputs: Inputs) -> list[str]:
    settings = ", ".join(f"{name} = {value}" for name, value in inputs.parameters.items())
    return [settings] if settings else []
