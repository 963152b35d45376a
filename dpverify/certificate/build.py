"""The mechanism that a certificate's inputs describe, and the one form that its inputs have."""

from __future__ import annotations

from fractions import Fraction

from dpverify._registry import ADJACENCIES, DOMAINS
from dpverify.catalogue import family_of
from dpverify.certificate.limits import check_release, check_size, check_target
from dpverify.certificate.schema import Inputs, KindInput
from dpverify.data.domain import Box
from dpverify.enclosure import exact_string
from dpverify.errors import ConfigurationError, require
from dpverify.family import Request
from dpverify.guarantee import Guarantee
from dpverify.privacy import Certifiable

__all__ = ["build", "canonical", "protected_unit"]


def build(inputs: Inputs) -> Certifiable:
    """The mechanism that the inputs describe.

    Raises
    ------
    ConfigurationError
        If no such mechanism is installed, or its parameters aren't those given.
    ParameterError
        If a parameter is outside its domain, or the inputs ask for more than `limits` allows.
    """
    check_size(inputs)
    family = family_of(inputs.mechanism)
    if inputs.ranges and len(inputs.ranges) != inputs.attributes:
        raise ConfigurationError(
            f"{len(inputs.ranges)} ranges are given for {inputs.attributes} attributes: each needs "
            "one."
        )
    _check_columns(inputs)
    _check_ranges(inputs)
    check_target(inputs.epsilon, inputs.delta)
    mechanism = family.make(
        Request(
            rows=inputs.rows,
            p=inputs.attributes,
            domain=inputs.declared_domain(),
            adjacency=inputs.protected(),
            epsilon=inputs.epsilon,
            delta=inputs.delta,
            seed=inputs.projection_seed,
            parameters=inputs.parameters,
        )
    )
    check_release(inputs, mechanism)
    return mechanism


def _check_columns(inputs: Inputs) -> None:
    """Refuse columns that don't make up the attributes, or a unit that they don't fit."""
    if not inputs.columns:
        return
    if sum(len(column.attributes) for column in inputs.columns) != inputs.attributes:
        raise ConfigurationError(f"the columns don't become {inputs.attributes} attributes.")
    if inputs.declared_domain() != Box(0, 1, outside=inputs.outside or "refuse") or inputs.ranges:
        raise ConfigurationError("columns become attributes in [0, 1], without other ranges.")
    wide = [column.name for column in inputs.columns if len(column.attributes) > 1]
    if wide and inputs.adjacency.kind not in ("l1-ball", "record"):
        raise ConfigurationError(
            f"adjacency.kind={inputs.adjacency.kind} isn't for columns of several attributes "
            f'({", ".join(wide)}), which move together. Protect a "cell", one column of one '
            'record, or a "record".'
        )


def _check_ranges(inputs: Inputs) -> None:
    """Refuse ranges that no configuration may have: a certificate may come from anyone."""
    purpose = [] if inputs.purpose is None else [inputs.purpose]
    for name, ranges in (("ranges", inputs.ranges), ("purpose", purpose)):
        for one in ranges:
            ends = f"{exact_string(one.low)} to {exact_string(one.high)}"
            require(one.low < one.high, name, ends, "in increasing order, the lower end first")
    unit = KindInput(kind="box", numbers={"low": Fraction(0), "high": Fraction(1)})
    if inputs.ranges and inputs.domain != unit:
        rule = "the box [0, 1], to which ranges bring every column"
        raise ConfigurationError(f"domain={inputs.domain.kind} must be {rule}.")


def canonical(inputs: Inputs) -> Inputs:
    """The same inputs in the one form that certificates have, of a mechanism that can be built.

    Every number of a kind is there, also where it has a default, parameters that are numbers are
    exact strings, what is done with records outside the domain is said wherever there is a choice,
    and the seed is 0 where nothing is made from it.
    """
    domain, family = inputs.declared_domain(), family_of(inputs.mechanism)
    values = family.read(inputs.parameters)
    return inputs.model_copy(
        update={
            "parameters": {
                name: exact_string(value) if isinstance(value, Fraction) else value
                for name, value in values.items()
                if name in inputs.parameters
            },
            "domain": KindInput.of(*DOMAINS.describe(domain)),
            "outside": getattr(domain, "outside", None),
            "adjacency": KindInput.of(*ADJACENCIES.describe(inputs.protected())),
            "projection_seed": inputs.projection_seed if family.seeded else 0,
        }
    )


def protected_unit(inputs: Inputs, guarantee: Guarantee) -> str:
    """Whom a release protects, in words: one cell of the table, where its columns are declared."""
    numbers = inputs.adjacency.numbers
    reach = {"attribute": "beta", "l1-ball": "radius"}.get(inputs.adjacency.kind)
    if inputs.columns and reach and numbers[reach] >= 1:
        return "one column of one record, whatever it changes to"
    return guarantee.adjacency.unit
