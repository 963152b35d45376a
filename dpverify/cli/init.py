"""``dpverify init``: a commented configuration for a file, from its shape and types alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template

import click

from dpverify.certificate.configuration import UNDECIDED
from dpverify.cli.output import emit_json, emit_table, json_option, talk, talk_options
from dpverify.data.atomic_files import write_file
from dpverify.data.frame import Spelling
from dpverify.data.loading import Shape, is_headless, shape_of
from dpverify.data.proposals import Proposal, Proposals, propose
from dpverify.errors import ConfigurationError, OutputError

__all__ = ["Draft", "configuration_text", "draft", "init"]

_SKETCHED = 64
"""Attributes from which a sketch is proposed: with fewer, noise on the records loses less."""

_PAIRED = 3
"""Columns up to which a table may be a list: of who visited what, or of the edges of a graph."""

_TARGET = {
    "privacy.epsilon": "how much a release may reveal, in nats",
    "privacy.delta": "the probability that is left out of that promise",
}

_TEXT = """\
# A certified release of $name: $rows rows, $attributes columns.
#
# Written by `dpverify init` from the shape and the types of the file. No value in it was used, and
# none should be used below: a range read off the records is a fact about the records, and it is
# published with the certificate. Decide from what you know without looking.
#
# Replace every "$undecided". Then: dpverify plan $config
# and when it is worth it: dpverify certify $config --out out

[data]
path = $path
$data

[mechanism]
$mechanism
# `dpverify mechanisms` lists the others, docs/mechanisms.md says how to choose.

[privacy]
# Smaller protects more. Up to 1 counts as cautious; the report's first page says what the strongest
# attacker gains.
epsilon = "$undecided"
# Far less than 1/$rows, one in the number of rows: 1e-6 is common. $pure
delta = "$undecided"
# Whose privacy? One of these, in place of "$undecided":
$units
adjacency = "$undecided"
$public
[audit]
alpha = 0.01          # the audits accuse a correct mechanism with at most this probability
draws = $draws# more draws would find smaller mistakes
seed = 0

# What you call it: shown on the report's first page, as your word. Leave out what you like.
# [about]
# title = "Visits per clinic, 2025"
# organisation = "Office of Health"
# data_set = "Register of visits"
# purpose = "Comparing clinics by the age and sex of their patients"
# period = "January to December 2025"
# contact = "privacy@health.example"

# What the release is for: the range of what will be estimated, $estimated say.
# dpverify plan sets the errors against it; without it, against records made up from the domain.
# [purpose]
# low = 0
# high = 1

# What no program can judge, you can answer for the report; the first page lists what waits.
# [owner]
# unit-of-privacy = { answer = "pass", reason = "Each person is in one record alone." }
# other-releases = { answer = "pass", reason = "None was made, none is planned." }
"""

_OUTSIDE = """
outside = "refuse"    # a value outside stops the release; "clip" moves it to the nearest end"""
_COLUMNS = """

# What each column may hold, from what it means: the least and the largest value, the first and the
# last day, the categories in use. Drop what names people, and what nobody needs:
#   NAME = { drop = true }
# Texts are categories, or bags of words:
#   NAME = { type = "text", buckets = 64 }
# Where numbers are proposed as a category, some values are no numbers. Do they stand for missing
# ones? Say so with the lines above: missing = ["", "unknown"]
# Where a value may be missing: missing = "indicator" shows that it is, { value = 0 } puts a value
# of yours there.
[data.columns]
"""
_GUESSED = "    # a guess: another one, if letters below look wrong"
_BOX = """\
# The least and the largest value that any attribute may have, in every column, from what the
# columns mean (a percentage: 0 and 100). Are they in different units? Then low = 0, high = 1, and
# a line that gives every column its own range, in order, from which it is brought to [0, 1]:
#   ranges = [[18, 100], [0, 250000], [1, 5]]
domain = { low = "DECIDE", high = "DECIDE" }"""
_BITS = "domain = { low = 0, high = 1 }    # of bits, by the type of the file"
_SETS = """\
# Sets, each a row of zeros and ones, since the file is sparse. How many items has each of them at
# least, from what you know? The more there are, the less one of them tells.
# Of numbers: domain = { low = 0, high = 1 }, and a mechanism that takes a box, as dp-oporp.
domain = { kind = "sets", min_size = "DECIDE" }"""
_GRAPH = """\
# A graph, since the matrix is square: its weights, from 0 to 1, the same in both directions.
# Of records: domain = { low = 0, high = 1 }, and a mechanism that takes a box, as dp-oporp.
domain = { kind = "graph" }"""
_RAW = 'name = "raw-data-g-opt"    # noise on the records as they are; they are too short to sketch'
_RAW_CELLS = """\
name = "raw-data-g-opt"    # noise on the records as they are
noise = "laplace"          # least for cells; without this line Gaussian, for whole records"""
_SKETCH = """\
name = "dp-oporp"     # a sketch that keeps distances between records
k = %-18d# numbers kept of each record; the report shows the error against k"""
_PUBLIC = """
[projection]
seed = 0              # public; any number
"""
_HASHES = """\
name = "rr-min-hash"  # hash values that tell how alike two sets are
k = 32                # of each set; dpverify plan shows the error of other numbers
buckets = 2           # values that each of them may have"""
_CUTS = """\
name = "jl-graph-cuts"    # a sketch that tells the weight between some vertices and all others
sketch_rows = 64          # more of them take longer, and leave a smaller error"""
_CELLS = """\
#   { kind = "cell" }      one column of one record, whatever it changes to
#   { kind = "record" }    one whole record; costs much more noise
# A person who is in several records is protected in none of them as a whole."""
_ATTRIBUTES = """\
#   { kind = "attribute", beta = 1 }   one attribute of one record, changed by at most beta (the
#                                      whole width of the domain, for any change of it)
#   { kind = "record" }                one whole record; costs much more noise
# A person who is in several records is protected in none of them as a whole."""
_ITEMS = """\
#   { kind = "items", changes = 1 }    so many items of one set, added or removed
# A person with several sets is protected in none of them as a whole."""
_EDGE = """\
#   { kind = "edge", weight = 1 }      one edge, whose weight changes by at most so much
# A person with several edges is protected in none of them as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is proposed for one kind of data.

    Attributes
    ----------
    data, mechanism, units, public, pure : lines of the configuration; the last says what δ = 0
        needs, `public` has the seed of a mechanism that makes something public from one
    estimated : by the mechanism
    draws : on each side of each pair of neighbours, for audits of a few minutes
    decide : what is left open, by key
    """

    data: str
    mechanism: str
    units: str
    public: str = ""
    pure: str = '0 needs noise = "laplace".'
    estimated: str = "squared distances of records"
    draws: int = 100_000
    decide: Mapping[str, str]


def draft(shape: Shape, proposals: Proposals | None = None) -> Draft:
    """What is proposed for data of a shape, or for a table whose columns are declared."""
    unit, range_ = "privacy.adjacency", "data.domain"
    if proposals is not None:
        return Draft(
            data="\n".join(_spelled(proposals.spelling))
            + _OUTSIDE
            + _COLUMNS
            + "\n".join(map(_column, proposals.columns)),
            mechanism=_RAW_CELLS,
            units=_CELLS,
            decide={
                "data.columns": "what each column may hold: ranges, categories; which are dropped",
                **_TARGET,
                unit: "whose privacy: of one column of a record, or of all of it",
            },
        )
    match shape.kind:
        case "sets":
            return Draft(
                data=_SETS,
                mechanism=_HASHES,
                units=_ITEMS,
                public=_PUBLIC,
                pure="0 needs far more noise.",
                estimated="Jaccard similarities of sets",
                draws=20_000,
                decide={
                    range_: "the least number of items that a set may have",
                    **_TARGET,
                    unit: "whose privacy: of how many items of a set",
                },
            )
        case "graph":
            return Draft(
                data=_GRAPH,
                mechanism=_CUTS,
                units=_EDGE,
                pure="It can't be 0.",
                estimated="weights of cuts",
                draws=10_000,
                decide={**_TARGET, unit: "whose privacy: of how much of an edge's weight"},
            )
        case "numbers" | "bits" as kind:
            size = 1 << max(0, (shape.attributes // 4).bit_length() - 1)
            decide = {
                **_TARGET,
                unit: "whose privacy: of one attribute of a record, or of all of it",
            }
            sketched = shape.attributes >= _SKETCHED
            least = {range_: "the least and the largest value that an attribute may have"}
            return Draft(
                data=(_BITS if kind == "bits" else _BOX) + _OUTSIDE,
                mechanism=_SKETCH % size if sketched else _RAW,
                units=_ATTRIBUTES,
                public=_PUBLIC if sketched else "",
                decide=decide if kind == "bits" else least | decide,
            )


def configuration_text(shape: Shape, draft: Draft, *, path: str, config: str) -> str:
    """A configuration with its decisions left open.

    Parameters
    ----------
    shape : all that is known of the records
    draft : what is proposed for them
    path, config : of the records and of the configuration, as they shall be written
    """
    blanks = asdict(draft) | {
        "draws": f"{draft.draws:<14}",
        "undecided": UNDECIDED,
        "rows": str(shape.rows),
        "attributes": str(shape.attributes),
        "name": json.dumps(Path(path).name, ensure_ascii=False),
        "path": json.dumps(path, ensure_ascii=False),
        "config": json.dumps(config, ensure_ascii=False) if " " in config else config,
    }
    return Template(_TEXT).substitute(blanks).replace("\n\noutside", "\noutside")


def _spelled(spelling: Spelling) -> Iterator[str]:
    """Lines that say how a file is written, where that isn't the default."""
    default, dates = Spelling(), {"date": "dates"}
    for name, value in asdict(spelling).items():
        if value != getattr(default, name):
            given = list(value) if isinstance(value, tuple) else value
            line = f"{dates.get(name, name)} = {json.dumps(given, ensure_ascii=False)}"
            yield line + (_GUESSED if value == "cp1252" else "")


def _column(column: Proposal) -> str:
    """The line of a column."""
    bare = re.fullmatch("[A-Za-z0-9_-]+", column.name)
    name = column.name if bare else json.dumps(column.name, ensure_ascii=False)
    if column.kind == "drop":
        return f"{name} = {{ drop = true }}"
    open_ = {"real": "low high", "whole": "low high", "date": "first last", "boolean": ""}
    needed = open_.get(column.kind, "categories").split()
    needed += ["missing"] if column.missing else []
    settings = [f'type = "{column.kind}"', *(f'{key} = "{UNDECIDED}"' for key in needed)]
    return f"{name} = {{ {', '.join(settings)} }}"


def _proposals(data: Path, table: str) -> Proposals | None:
    """Of a table whose columns are declared one by one; None where they are alike, or unnamed."""
    if data.suffix.lower() in (".npy", ".npz") or is_headless(data):
        return None
    proposals = propose(data, table=table)
    alike = all(c.kind in ("real", "whole") and not c.missing for c in proposals.columns)
    plain = proposals.spelling == Spelling()
    return None if alike and plain and len(proposals.columns) >= _SKETCHED else proposals


@click.command(short_help="Begin a configuration for a file.")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration to write; DATA's name with .toml by default. Never overwritten.",
)
@click.option("--table", default="", help="Table of a database; its only one by default.")
@json_option
@talk_options
def init(data: Path, out: Path | None, table: str, as_json: bool) -> int:
    """Write a commented configuration for the records in DATA.

    It is made from the names and types of the columns, never from their values, and leaves to you
    what only you can decide: certify refuses it until that is done.
    """
    if not data.name:
        raise ConfigurationError(f"{data}: is a folder, and init reads a file: name one.")
    config = data.with_suffix(".toml") if out is None else out
    if config.exists():
        raise OutputError(
            f"{config}: exists, and init never overwrites a file: choose another with --out."
        )
    proposals = _proposals(data, table)
    if proposals is None:
        shape = shape_of(data)
    else:
        shape = Shape(rows=proposals.rows, attributes=len(proposals.columns), kind="numbers")
    talk(f"{data}: its shape and the types of its columns, and no value", detail=True)
    path = Path(os.path.relpath(data, config.parent)).as_posix()
    drafted = draft(shape, proposals)
    text = configuration_text(shape, drafted, path=path, config=str(config))
    write_file(config, text.encode())
    if as_json:
        result = {"file": str(config), "rows": shape.rows, "attributes": shape.attributes}
        emit_json("init", result | {"decide": drafted.decide})
        return 0
    emit_table(
        [
            ["configuration", str(config)],
            ["records", f"{shape.rows} rows, {shape.attributes} columns"],
            *(
                ["to decide" if number == 0 else "", f"{key}: {what}"]
                for number, (key, what) in enumerate(drafted.decide.items())
            ),
        ]
    )
    if proposals is not None and 2 <= shape.attributes <= _PAIRED:
        talk(
            "Is it a list, of who visited which page, or of the edges of a graph? Then make one "
            "row of each person, or the graph's matrix, first: docs/tables.md, Sets and graphs."
        )
    talk(f"Replace every {UNDECIDED} in {config}, then ask what the release will be worth:")
    talk(f"  dpverify plan {config}")
    talk(f"and when it is worth it: dpverify certify {config} --out out")
    return 0
