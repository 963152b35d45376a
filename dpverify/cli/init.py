"""``dpverify init``: a commented configuration for a file, from its shape and type alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from string import Template

import click

from dpverify.certificate.configuration import UNDECIDED
from dpverify.cli.output import emit_json, emit_table, json_option, talk, talk_options
from dpverify.data.atomic_files import write_file
from dpverify.data.loading import Shape, shape_of
from dpverify.errors import OutputError

__all__ = ["configuration_text", "init"]

_SKETCHED = 64
"""Attributes from which a sketch is proposed: with fewer, noise on the records loses less."""

_DECISIONS = {
    "data.domain": "the least and the largest value that an attribute may have",
    "privacy.epsilon": "how much a release may reveal, in nats",
    "privacy.delta": "the probability that is left out of that promise",
    "privacy.adjacency": "whose privacy is protected: of an attribute, or of a whole record",
}

_TEXT = Template("""\
# A certified release of $name: $rows rows, $attributes columns.
#
# Written by `dpverify init` from the shape and the type of the file. No value in it was used, and
# none should be used below: a range read off the records is a fact about the records, and it is
# published with the certificate. Decide from what you know without looking.
#
# Replace every "$undecided". Then: dpverify certify $config --out out

[data]
path = $path
$domain
outside = "refuse"    # a value outside stops the release; "clip" moves it to the nearest end

[mechanism]
$mechanism
# `dpverify mechanisms` lists the others, docs/mechanisms.md says how to choose.

[privacy]
# Smaller protects more. Up to 1 counts as cautious; the report's first page says what the strongest
# attacker gains.
epsilon = "$undecided"
# Far less than 1/$rows, one in the number of rows: 1e-6 is common. 0 needs noise = "laplace".
delta = "$undecided"
# Whose privacy? One of these, in place of "$undecided":
#   { kind = "attribute", beta = 1 }   one attribute of one record, changed by at most beta (the
#                                      whole width of the domain, for any change of it)
#   { kind = "record" }                one whole record; costs much more noise
#   { kind = "items", changes = 1 }    of sets: one item of one set, added or removed
# A person who is in several records is protected in none of them as a whole.
adjacency = "$undecided"

[projection]
seed = 0              # public; any number

[audit]
alpha = 0.01          # the audits accuse a correct mechanism with at most this probability
draws = 100000        # more draws would find smaller mistakes
seed = 0

# What the release is for: the range of what will be estimated, squared distances of records say.
# dpverify plan sets the errors against it; without it, against records made up from the domain.
# [purpose]
# low = 0
# high = 1

# What no program can judge, you can answer for the report; the first page lists what waits.
# [owner]
# unit-of-privacy = { answer = "pass", reason = "Each person is in one record alone." }
# other-releases = { answer = "pass", reason = "None was made, none is planned." }
""")

_BOX = """\
# The least and the largest value that any attribute may have, in every column, from what the
# columns mean (a percentage: 0 and 100). Are they in different units? Then low = 0, high = 1, and
# a line that gives every column its own range, in order, from which it is brought to [0, 1]:
#   ranges = [[18, 100], [0, 250000], [1, 5]]
# Sets, as rows of zeros and ones: { kind = "sets", min_size = 1 }, and no line `outside`.
domain = { low = "$undecided", high = "$undecided" }"""
_BITS = "domain = { low = 0, high = 1 }    # of bits, by the type of the file"
_RAW = 'name = "raw-data-g-opt"    # noise on the records as they are; they are too short to sketch'
_SKETCH = """\
name = "dp-oporp"     # a sketch that keeps distances between records
k = $k                # numbers kept of each record; the report shows the error against k"""


def configuration_text(shape: Shape, *, path: str, config: str) -> str:
    """A configuration with its decisions left open.

    Parameters
    ----------
    shape : all that is known of the records
    path, config : of the records and of the configuration, as they shall be written
    """
    size = 1 << max(0, (shape.attributes // 4).bit_length() - 1)
    blanks = {
        "undecided": UNDECIDED,
        "rows": str(shape.rows),
        "attributes": str(shape.attributes),
        "name": json.dumps(Path(path).name, ensure_ascii=False),
        "path": json.dumps(path, ensure_ascii=False),
        "config": json.dumps(config, ensure_ascii=False) if " " in config else config,
        "k": str(size),
    }
    parts = {
        "domain": _BITS if shape.only_bits else _BOX,
        "mechanism": _SKETCH if shape.attributes >= _SKETCHED else _RAW,
    }
    filled = {name: Template(part).substitute(blanks) for name, part in parts.items()}
    return _TEXT.substitute(blanks | filled)


@click.command(short_help="Begin a configuration for a file.")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration to write; DATA's name with .toml by default. Never overwritten.",
)
@json_option
@talk_options
def init(data: Path, out: Path | None, as_json: bool) -> int:
    """Write a commented configuration for the records in DATA.

    It is made from the shape and the type of the file, never from its values, and leaves to you
    what only you can decide: certify refuses it until that is done.
    """
    config = data.with_suffix(".toml") if out is None else out
    if config.exists():
        raise OutputError(f"{config}: is there already, and init never overwrites. Choose --out.")
    shape = shape_of(data)
    talk(f"{data}: its shape and the type of its numbers, and no value", detail=True)
    path = Path(os.path.relpath(data, config.parent)).as_posix()
    text = configuration_text(shape, path=path, config=str(config))
    write_file(config, text.encode())
    decide = {key: what for key, what in _DECISIONS.items() if not _decided(key, shape)}
    if as_json:
        result = {"file": str(config), "rows": shape.rows, "attributes": shape.attributes}
        emit_json("init", result | {"decide": decide})
        return 0
    emit_table(
        [
            ["configuration", str(config)],
            ["records", f"{shape.rows} rows, {shape.attributes} columns"],
            *(
                ["to decide" if number == 0 else "", f"{key}: {what}"]
                for number, (key, what) in enumerate(decide.items())
            ),
        ]
    )
    talk(f"Replace every {UNDECIDED} in {config}, then ask what the release will be worth:")
    talk(f"  dpverify plan {config}")
    talk(f"and when it is worth it: dpverify certify {config} --out out")
    return 0


def _decided(key: str, shape: Shape) -> bool:
    return key == "data.domain" and shape.only_bits
