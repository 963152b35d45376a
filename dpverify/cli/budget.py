"""``dpverify budget``: a limit for releases, kept in a file that processes share."""

from __future__ import annotations

from decimal import ROUND_CEILING
from pathlib import Path
from typing import Any, Literal, cast

import click

from dpverify.accounting._budget_file import rounded
from dpverify.accounting.budget import Budget
from dpverify.accounting.composition.filters import FILTERS
from dpverify.cli.output import Choice, emit_json, emit_table, exact_number, json_option, say
from dpverify.cli.releases import read, total_of

__all__ = ["budget"]

_file = click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))


@click.group(short_help="Keep a privacy budget, and spend from it.")
def budget() -> None:
    """A limit of (epsilon, delta) that releases about the same people are spent from.

    Each may be chosen by what the others showed. Nothing is spent that would exceed the limit, and
    two processes can't spend the same part of it.
    """


@budget.command(short_help="Make a budget.")
@_file
@click.option("--epsilon", metavar="NUMBER", required=True, help="For all releases, in nats.")
@click.option("--delta", metavar="NUMBER", default="0", help="For all releases; 0 by default.")
@click.option(
    "--composition",
    type=Choice(list(FILTERS)),
    default="basic",
    help="What is added up: epsilon and delta; mu squared, for Gaussian noise; or rho.",
)
@click.option(
    "--slack",
    metavar="NUMBER",
    default="0",
    help="Share of delta for releases known by an (epsilon, delta); not in basic composition.",
)
@click.option("--unit", metavar="TEXT", help="Whom it protects.")
@json_option
def new(
    path: Path,
    epsilon: str,
    delta: str,
    composition: str,
    slack: str,
    unit: str | None,
    as_json: bool,
) -> None:
    """Make a budget in FILE, which mustn't be there.

    dpverify budget new team.db --epsilon 3 --delta 1e-6
    """
    made = Budget(
        epsilon=exact_number("epsilon", epsilon),
        delta=exact_number("delta", delta),
        composition=cast("Literal['basic', 'gaussian', 'zcdp']", composition),
        slack=exact_number("slack", slack),
        unit=unit,
        path=path,
    )
    _report("budget new", made, as_json=as_json)


@budget.command(short_help="What is spent and left.")
@_file
@json_option
def show(path: Path, as_json: bool) -> None:
    """What was spent from the budget in FILE, and what is left."""
    found = Budget.open(path)
    _report("budget show", found, as_json=as_json)
    if as_json:
        return
    spends = found.history
    if spends:
        rows = [
            [str(spend.number), spend.date, spend.label or spend.release, _shown(spend.to_dict())]
            for spend in spends
        ]
        emit_table(rows, headings=["", "date", "release", "cost"])
    say(f"head: {found.head}")


@budget.command(short_help="Spend releases.")
@_file
@click.argument("releases", nargs=-1, required=True, metavar="RELEASE…")
@click.option("--delta", metavar="NUMBER", help="Count them as one (epsilon, delta) at this delta.")
@click.option("--label", metavar="TEXT", help="What they are; by default as they were written.")
@click.option("--unit", metavar="TEXT", help="Your word: whom they protect.")
@click.option(
    "--same-records",
    is_flag=True,
    help="Your word: mechanisms on one public draw are of the very same records.",
)
@json_option
def spend(
    path: Path,
    releases: tuple[str, ...],
    delta: str | None,
    label: str | None,
    unit: str | None,
    same_records: bool,
    as_json: bool,
) -> None:
    """Spend releases from the budget in FILE, all together or none, before they are drawn.

    RELEASE is "COUNT x NAME key=value …" as for `dpverify account compose`, a .csv or .toml file of
    such, or the .json file of a certificate. Exit code 1 says that they don't fit.

    \b
    dpverify budget spend team.db "4 x laplace scale=10" --label "quarterly report"
    dpverify budget spend team.db "gaussian sigma=8" --delta 1e-7
    """  # noqa: D301  # click keeps the lines after a backspace
    written = read(releases)
    total = total_of(written, same_records=same_records)
    found = Budget.open(path)
    spent = found.spend(
        total.guarantee or total.curve,
        delta=None if delta is None else exact_number("delta", delta),
        label="; ".join(map(str, written)) if label is None else label,
        unit=unit,
    )
    if as_json:
        emit_json("budget spend", {**spent.to_dict(), "left": found.to_dict()["left"]})
        return
    say(f"spent as {spent.number}: {_shown(spent.to_dict())}")
    say(str(found))


@budget.command(short_help="Check a budget's history.")
@_file
@click.option("--head", metavar="HASH", help="A hash noted earlier, to be in the history.")
@json_option
def verify(path: Path, head: str | None, as_json: bool) -> None:
    """Check the chain of hashes in FILE, its sums, and the proof of its limits.

    Whoever may write the file can make all of it anew: note the head, which `show` prints, where
    they can't, and give it with --head.
    """
    found = Budget.open(path)
    last = found.verify(head=head)
    if as_json:
        emit_json("budget verify", {"agrees": True, "entries": len(found.history), "head": last})
    else:
        say(f"agrees: {len(found.history)} entries; head: {last}")


def _report(command: str, found: Budget, *, as_json: bool) -> None:
    if as_json:
        emit_json(command, found.to_dict())
        return
    fields = found.to_dict()
    say(f"{fields['composition']} budget of epsilon={fields['epsilon']}, delta={fields['delta']}")
    emit_table([list(row) for row in found.rows()], headings=["", "limit", "spent", "left"])
    if fields["unit"]:
        say(f"protects: {fields['unit']}")
    say(f"odometer: epsilon={rounded(found.odometer, ROUND_CEILING)}, delta={fields['delta']}")
    say(f"by {fields['theorem']}")


def _shown(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in fields["cost"].items())
