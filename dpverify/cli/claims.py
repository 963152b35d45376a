"""``dpverify claims``: what the papers say, and what their formulas come out as."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from dpverify.certificate.report import statements
from dpverify.certificate.report.errata import page, sheet
from dpverify.cli.output import emit_json, emit_table, json_option, progress_bar, say
from dpverify.cli.where import where_options, workers_option
from dpverify.data.atomic_files import write_file
from dpverify.errors import OutputError, did_you_mean
from dpverify.ledger.reliance import relation, users
from dpverify.ledger.statements import (
    Correction,
    Judgement,
    Reading,
    Statement,
    Verdict,
    judge,
    judge_all,
    known_papers,
    known_statements,
)

__all__ = ["claims"]


@click.group(
    invoke_without_command=True, short_help="Statements of the papers, checked by machine."
)
@click.option("--paper", help="Only this paper's.")
@click.option("--verdict", type=click.Choice(get_args(Verdict)), help="Only with this verdict.")
@click.option("--markdown", is_flag=True, help="Print the page of errata.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page of errata, with a search, to this file; it prints well.",
)
@workers_option
@json_option
@where_options
@click.pass_context
def claims(
    context: click.Context,
    paper: str | None,
    verdict: str | None,
    markdown: bool,
    html: Path | None,
    workers: int,
    as_json: bool,
) -> None:
    """Check every statement of the papers and list the verdicts.

    The exit code is 0 whatever the papers got wrong.
    """
    if context.invoked_subcommand is not None:
        return
    _require_folder(html)
    chosen = [statement for statement in known_statements() if paper in (None, statement.paper)]
    if not chosen:
        papers = sorted({statement.paper for statement in known_statements()})
        raise click.UsageError(
            f"there is no statement of {paper}. {did_you_mean(paper or '', papers)}"
        )
    found = [found for found in _judged(chosen, workers) if verdict in (None, found.verdict)]
    if as_json:
        emit_json("claims", [_described(judgement) for judgement in found])
        return
    if html is not None:
        write_file(html, statements.page(found, known_papers()).encode())
    if markdown:
        say(statements.markdown(found, known_papers()), lines=True)
    if markdown or html is not None:
        return
    if found:
        rows = [[j.statement.id, j.verdict, j.statement.where, _remark(j)] for j in found]
        emit_table(rows, headings=["id", "verdict", "where", ""])
    counts = {name: sum(j.verdict == name for j in found) for name in get_args(Verdict)}
    say(", ".join(f"{count} {name}" for name, count in counts.items() if count))


@claims.command(short_help="One statement, with its numbers.")
@click.argument("id")
@json_option
def show(id: str, as_json: bool) -> None:  # noqa: A002  # the word that users know
    """Check one statement and show what was computed."""
    known = {statement.id: statement for statement in known_statements()}
    if id not in known:
        hint = did_you_mean(id, known, otherwise="`dpverify claims` lists them.")
        raise click.UsageError(f"there is no statement {id}. {hint}")
    judgement = judge(known[id])
    if as_json:
        emit_json("claims", _described(judgement))
        return
    emit_table(_details(judgement))


@claims.command(short_help="What to send to a paper's authors.")
@click.argument("paper")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write its tables, a page to print, to this file.",
)
@workers_option
def errata(paper: str, html: Path | None, workers: int) -> None:
    """Check the statements of PAPER and print its sheet of errata, in Markdown."""
    titles = known_papers()
    if paper not in titles:
        raise click.UsageError(f"there is no paper {paper}. {did_you_mean(paper, titles)}")
    _require_folder(html)
    chosen = [statement for statement in known_statements() if statement.paper == paper]
    found = _judged(chosen, workers)
    if html is not None:
        write_file(html, page(found, titles[paper]).encode())
    say(sheet(found, titles[paper]).removesuffix("\n"), lines=True)


def _require_folder(html: Path | None) -> None:
    if html is not None and not html.parent.is_dir():
        raise OutputError(f"{html}: there is no folder {html.parent}.")


def _judged(chosen: list[Statement], workers: int) -> list[Judgement]:
    with progress_bar() as start:
        return judge_all(chosen, workers=workers, progress=start("checking", len(chosen)))


def _remark(judgement: Judgement) -> str:
    if correction := judgement.correction():
        return f"true: {correction}"
    if reading := judgement.reading():
        return f"if {reading}"
    if judgement.printed is None:
        return judgement.statement.reason
    return judgement.printed.counterexample or judgement.printed.slack


def _described(judgement: Judgement) -> dict[str, Any]:
    statement = judgement.statement
    tried = {"printed": judgement.printed, **judgement.others}
    return {
        "id": statement.id,
        "paper": statement.paper,
        "where": statement.where,
        "statement": statement.text,
        "conditions": statement.conditions,
        "verdict": judgement.verdict,
        "oracle": None if statement.check is None else statement.check.oracle,
        "correction": judgement.correction(),
        "reading": judgement.reading(),
        "beside": {
            **{
                name: {"place": one.place, "covers": one.covers}
                for name, one in statement.readings.items()
            },
            **{
                name: {"place": one.place, "change": one.change, "proof": one.proof}
                for name, one in statement.corrections.items()
            },
        },
        "users": list(users(statement)),
        "reason": statement.reason,
        "instead": statement.instead,
        "evidence": {
            name: {
                "holds": evidence.holds,
                "oracle": evidence.oracle,
                "digits": evidence.digits,
                "level": evidence.level,
                "cases": evidence.cases,
                "tight": evidence.tight,
                "slack": evidence.slack,
                "counterexample": evidence.counterexample,
                "numbers": {key: str(value) for key, value in evidence.numbers.items()},
            }
            for name, evidence in tried.items()
            if evidence is not None
        },
    }


def _details(judgement: Judgement) -> list[list[str]]:
    statement = judgement.statement
    rows = [
        ["id", statement.id],
        ["where", statement.where],
        ["statement", statement.text],
        ["conditions", statement.conditions],
        ["verdict", judgement.verdict],
        ["oracle", "" if statement.check is None else statement.check.oracle],
        ["true is", judgement.correction()],
        ["holds if", judgement.reading()],
        [relation(judgement), ", ".join(users(statement))],
        ["note", statement.reason],
        ["instead", statement.instead],
    ]
    beside: dict[str, Reading | Correction] = {**statement.readings, **statement.corrections}
    for name, evidence in {"as printed": judgement.printed, **judgement.others}.items():
        if evidence is None:
            continue
        rows.append([name, f"{'holds' if evidence.holds else 'fails'}, {evidence.how}"])
        if name in beside:
            rows.append(["", beside[name].place or "a claim of ours"])
            ours = statement.corrections.get(name)
            rows.append(["", "" if ours is None else ours.proof])
        rows += [["", text] for text in (evidence.slack, evidence.counterexample) if text]
        rows += [["", f"{key} = {value}"] for key, value in evidence.numbers.items()]
    return [row for row in rows if row[1]]
