"""What a certificate may ask of whoever verifies it, and a configuration of whoever certifies.

A certificate may come from anyone. Its inputs say how large a mechanism to rebuild and how much to
draw, so a few digits in it could cost the reader all memory, or days. `check_size` refuses such
inputs from their numbers alone, before anything is built. The limits are one rule for both sides:
what can be certified can be verified. They are far above any release that a machine of today makes
in an hour, and say nothing about how long one within them takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dpverify.accounting.targets import check_delta
from dpverify.auditing.outputs.samples import CHUNK
from dpverify.certificate.schema import Inputs
from dpverify.enclosure import short_string
from dpverify.errors import require
from dpverify.privacy import Certifiable, Streaming

__all__ = [
    "EPSILONS",
    "MOST_AT_ONCE",
    "MOST_DRAWN",
    "MOST_DRAWS",
    "MOST_ENTRIES",
    "MOST_IN_A_RECORD",
    "MOST_MOMENT_DRAWS",
    "MOST_OF_A_PARAMETER",
    "check_release",
    "check_size",
    "check_target",
]

MOST_IN_A_RECORD = 2**24
"""Numbers of one record, a graph's weights included: 80 synthetic ones take 10 GiB as doubles."""
MOST_OF_A_PARAMETER = 2**20
"""Of a mechanism's whole number: an audit holds 500 releases of this many values, 4 GiB."""
MOST_ENTRIES = 2**34
"""Of a projection, attributes times a mechanism's whole number: 10,000,000 x 1,024 fit."""
MOST_DRAWS = 2**27
"""An audit holds one score a draw on each side, 1 GiB of doubles."""
MOST_MOMENT_DRAWS = 2**24
"""Each is drawn from a stream of its own, which is named by a smaller number."""
MOST_DRAWN = 2**40
"""Numbers that all draws of one side read or release: 100,000 draws of 10,000,000 fit."""
MOST_AT_ONCE = 2**30
"""Numbers of the releases that an audit holds, 8 GiB, where they are of whole data sets."""
EPSILONS = (Fraction(1, 10**300), Fraction(10**6))
"""Smallest and largest target; outside, doubles that only guide the proof overflow."""


def check_size(inputs: Inputs) -> None:
    """Refuse inputs that would take memory or time beyond the limits.

    Raises
    ------
    ParameterError
        Naming what is too large, and by which limit.
    """
    for name, size, most in _sizes(inputs):
        require(size <= most, name, size, f"at most {most}", "See dpverify.certificate.limits.")


def check_release(inputs: Inputs, mechanism: Certifiable) -> None:
    """Refuse a release of a whole data set that is too large to be drawn again and again.

    Raises
    ------
    ParameterError
        Naming its size, and the limit.
    """
    if isinstance(mechanism, Streaming):  # an audit draws single records
        return
    held = math.prod(mechanism.shape(inputs.rows)) * min(inputs.draws, CHUNK)
    rule = f"at most {MOST_AT_ONCE}"
    require(held <= MOST_AT_ONCE, "numbers drawn at once", held, rule, "Release fewer records.")


def check_target(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse a privacy target outside what the accountants are made for.

    Raises
    ------
    ParameterError
        Naming the value and the range.
    """
    least, most = EPSILONS
    require(least <= epsilon <= most, "epsilon", short_string(epsilon), "in [1e-300, 1e6]")
    check_delta(delta)


def _sizes(inputs: Inputs) -> Iterator[tuple[str, int, int]]:
    record = inputs.attributes
    if inputs.domain.kind == "graph":  # one is a matrix of weights
        record *= inputs.attributes
    yield "attributes", record, MOST_IN_A_RECORD
    whole = {n: value for n, value in inputs.parameters.items() if isinstance(value, int)}
    for name, value in whole.items():
        yield name, value, MOST_OF_A_PARAMETER
        yield f"attributes * {name}", inputs.attributes * value, MOST_ENTRIES
    largest = max([inputs.attributes, *whole.values()])
    for name, draws, most in (
        ("draws", inputs.draws, MOST_DRAWS),
        ("moment_draws", inputs.moment_draws, MOST_MOMENT_DRAWS),
    ):
        yield name, draws, most
        yield f"{name} * {largest}", draws * largest, MOST_DRAWN
