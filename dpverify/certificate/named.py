"""A mechanism from flat ``key=value`` texts: what a configuration says, without data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpverify._registry import ADJACENCIES, DOMAINS, Kinds
from dpverify.catalogue import family_of
from dpverify.certificate.build import build
from dpverify.certificate.schema import Inputs, KindInput
from dpverify.enclosure import rational
from dpverify.errors import ConfigurationError
from dpverify.privacy import Certifiable

__all__ = ["named_mechanism"]

_DIGITS = re.compile("[0-9]{1,400}")
_WHOLE = {"rows": 1, "attributes": None, "seed": 0}


def named_mechanism(name: str, given: Mapping[str, str]) -> Certifiable:
    """The mechanism called `name`, made for a target.

    Parameters
    ----------
    name : as `dpverify mechanisms` lists it
    given : texts by key: ``epsilon``, ``delta``, ``attributes``, ``rows`` (1), ``seed`` (0),
        ``domain`` and ``adjacency``, or ``domain.kind`` and ``adjacency.kind`` (the family's first
        kind), their numbers as ``domain.low``, ``adjacency.beta`` and so on, and the mechanism's
        own parameters

    Raises
    ------
    ConfigurationError
        If a key is missing or unknown, or there is no such mechanism.
    ParameterError
        If a text is not a number.
    """
    family, left = family_of(name), dict(given)
    whole = {key: _whole(key, left.pop(key, default)) for key, default in _WHOLE.items()}
    for key in ("epsilon", "delta"):
        if key not in left:
            raise ConfigurationError(
                f"{key} is missing: {name} is made for an epsilon and a delta."
            )
    epsilon, delta = (rational(key, left.pop(key)) for key in ("epsilon", "delta"))
    domain = _kind(DOMAINS, left, family.domain[0])
    adjacency = _kind(ADJACENCIES, left, family.adjacency[0])
    return build(
        Inputs.checked(
            mechanism=name,
            parameters={key: _parameter(text) for key, text in left.items()},
            rows=whole["rows"],
            attributes=whole["attributes"],
            domain=domain,
            outside=None,
            adjacency=adjacency,
            projection_seed=whole["seed"],
            alpha=Fraction(1, 100),
            draws=1,
            moment_draws=2,
            audit_seed=0,
            epsilon=epsilon,
            delta=delta,
        )
    )


def _kind(kinds: Kinds[Any], left: dict[str, str], default: str) -> KindInput:
    """Take a kind and its dotted numbers out of what is left."""
    prefix = f"{kinds.what}."
    said = [left.pop(key) for key in (kinds.what, f"{prefix}kind") if key in left]
    if len(said) > 1:
        raise ConfigurationError(f"{kinds.what} and {prefix}kind are the same: give one of them.")
    kind = said[0] if said else default
    own = [key for key in left if key.startswith(prefix)]
    numbers = {key.removeprefix(prefix): rational(key, left.pop(key)) for key in own}
    return KindInput.of(*kinds.describe(kinds.make(kind, numbers)))


def _whole(key: str, text: str | int | None) -> int:
    if text is None:
        raise ConfigurationError(f"{key} is missing: the number of attributes of a record.")
    if not _DIGITS.fullmatch(str(text)):
        raise ConfigurationError(f"{key}={text} must be a whole number.")
    return int(text)


def _parameter(text: str) -> int | str:
    return int(text) if _DIGITS.fullmatch(text) else text
