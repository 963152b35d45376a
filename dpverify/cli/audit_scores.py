"""``dpverify audit-scores``: bounds ε by scores that somebody has in a file."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import click
import numpy as np
from numpy.typing import NDArray

from dpverify._json import each_once
from dpverify.auditing.attacks import scores
from dpverify.auditing.attacks.scores import HELD, INEXACT, Design
from dpverify.cli.output import Choice, Double, emit_json, exact_number, json_option, say
from dpverify.errors import ConfigurationError, did_you_mean

__all__ = ["audit_scores", "read_scores"]

_WITH = {"1", "1.0", "true", "with", "in", "member"}
_WITHOUT = {"0", "0.0", "-1", "-1.0", "false", "without", "out", "non-member"}
_DELIMITERS = ",;\t"
_SIDES = ("with", "without")


@click.command("audit-scores", short_help="Bound epsilon by scores in a file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--delta", metavar="NUMBER", required=True, help="Where epsilon is bounded.")
@click.option(
    "--alpha",
    type=Double(),
    default=0.05,
    show_default=True,
    metavar="NUMBER",
    help="Level: how likely a bound above the true epsilon may be.",
)
@click.option(
    "--design",
    type=Choice(get_args(Design)),
    default="independent",
    show_default=True,
    help="How the scores came about: each of a run of its own, or canaries of one run.",
)
@click.option("--epsilon", metavar="NUMBER", help="What is claimed; exit code 1 if it is refuted.")
@json_option
def audit_scores(
    file: Path, delta: str, alpha: float, design: str, epsilon: str | None, *, as_json: bool
) -> int:
    """Bound epsilon from below by the scores in FILE, with the record and without it.

    FILE is a .csv, with commas, semicolons or tabs, and with columns label (1, in, with, member or
    true; 0, -1, out, without, non-member or false), score and perhaps run, or a .json or .npz with
    the lists "with" and "without".

    \b
    dpverify audit-scores scores.csv --delta 1e-5
    dpverify audit-scores canaries.npz --delta 1e-5 --design one-run --epsilon 2
    """  # noqa: D301  # click keeps the lines after a backspace
    claimed = None if epsilon is None else exact_number("epsilon", epsilon)
    sides, runs = read_scores(file)
    audit = scores.audit_scores(
        *sides,
        delta=exact_number("delta", delta),
        alpha=alpha,
        design=cast("Design", design),
        runs=runs,
    )
    refuted = claimed is not None and audit.epsilon_lower > claimed
    if as_json:
        emit_json(
            "audit-scores", audit.to_dict() | ({} if claimed is None else {"refuted": refuted})
        )
    else:
        say(str(audit), lines=True)
        if claimed is not None:
            verb = "refute" if refuted else "don't refute"
            say(f"  they {verb} the claimed epsilon of {epsilon}")
    return int(refuted)


_Sides = tuple[list[float], list[float]]
_Runs = tuple[list[str], list[str]] | None


def read_scores(file: Path) -> tuple[_Sides, _Runs]:
    """Scores with and without of a file, and of which runs they are if it says so.

    Raises
    ------
    ConfigurationError
        Naming the row and the rule, if the file isn't one of scores.
    """
    readers = {".csv": _from_csv, ".json": _from_json, ".npz": _from_npz}
    if file.suffix not in readers:
        raise ConfigurationError(f"{file} must be a .csv, .json or .npz file of scores.")
    try:
        return readers[file.suffix](file)
    except (ConfigurationError, MemoryError):
        raise
    except Exception as error:  # a damaged file can make a parser raise anything
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ConfigurationError(f"{file} can't be read: {reason}.") from error


def _from_csv(file: Path) -> tuple[_Sides, _Runs]:
    sides: _Sides = ([], [])
    runs: tuple[list[str], list[str]] = ([], [])
    with file.open(encoding="utf-8-sig", newline="") as lines:
        head = lines.readline()
        lines.seek(0)
        rows = csv.DictReader(
            lines,
            restkey="",
            strict=True,
            skipinitialspace=True,
            delimiter=max(_DELIMITERS, key=head.count),
        )
        columns = list(rows.fieldnames or [])
        for name in ("label", "score"):
            if name not in columns:
                rule = "Its first line names the columns, with commas, semicolons or tabs."
                hint = did_you_mean(name, columns, otherwise=rule)
                raise ConfigurationError(f"{file} must have a column {name}. {hint}")
        for name in ("label", "score", "run"):
            if columns.count(name) > 1:
                raise ConfigurationError(f"{file} must have one column {name}, and has several.")
        for row in rows:
            where = f"{file}, row {rows.line_num}"
            if "" in row:
                raise ConfigurationError(
                    f"{where}: it must have as many fields as the first line, and a decimal "
                    "point in numbers."
                )
            side = _side(where, row["label"])
            sides[side].append(_number(where, row["score"]))
            runs[side].append(row.get("run") or "")
    for side, (own, other) in enumerate((("1", "0"), ("0", "1"))):
        if not sides[side]:
            labels = (
                f"all labels are {other}, and none is {own}" if any(sides) else "it has no rows"
            )
            raise ConfigurationError(
                f"{file} must have scores with the record and without it: {labels}."
            )
    return sides, runs if "run" in columns else None


def _side(where: str, label: str | None) -> int:
    word = (label or "").strip().lower()
    if word not in _WITH | _WITHOUT:
        raise ConfigurationError(
            f"{where}: label={label or 'missing'} must be 1 for a score with the record and 0 for "
            "one without it."
        )
    return int(word in _WITHOUT)


def _number(where: str, value: Any) -> float:
    """A score; infinities are, and what isn't a number isn't."""
    text = str(value)
    other = isinstance(value, bool) or "_" in text or not text.isascii()
    try:
        number = math.nan if other else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ConfigurationError(f"{where}: score={value!r} must be a number.")
    if abs(number) >= INEXACT and text.strip().lstrip("+-").isdecimal():
        raise ConfigurationError(f"{where}: score={value!r} must be {HELD}.")
    return number


def _from_json(file: Path) -> tuple[_Sides, _Runs]:
    return _from_lists(
        file, json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=each_once)
    )


def _from_npz(file: Path) -> tuple[_Sides, _Runs]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return _from_lists(file, {name: _row(np.asarray(arrays[name])) for name in arrays})
    except ValueError as error:  # pickled objects, or no archive at all
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{file} must be an archive of numpy's arrays.") from error


def _row(array: NDArray[Any]) -> Any:
    """A column or a row of a matrix is a row of numbers too."""
    return (array.ravel() if array.ndim == 2 and 1 in array.shape else array).tolist()


def _from_lists(file: Path, lists: Any) -> tuple[_Sides, _Runs]:
    named = lists if isinstance(lists, Mapping) else {}
    for name in _SIDES:
        if not isinstance(named.get(name), list):
            raise ConfigurationError(f'{file} must have a list of scores "{name}".')
    with_, without = (list(_numbers(file, name, named[name])) for name in _SIDES)
    return (with_, without), None


def _numbers(file: Path, name: str, values: Iterable[Any]) -> Iterator[float]:
    return (_number(f"{file}, {name}[{place}]", value) for place, value in enumerate(values))
