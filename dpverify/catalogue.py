"""The mechanisms that installed packages announce, by name."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from dpverify._registry import ADJACENCIES, DOMAINS
from dpverify._tables import html_table, text_table
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Domain
from dpverify.enclosure import Real, rational
from dpverify.errors import ConfigurationError, did_you_mean, require
from dpverify.family import MechanismFamily, Request
from dpverify.numbers import count
from dpverify.privacy import Certifiable

__all__ = ["HEADINGS", "Catalogue", "families", "family_of", "mechanism", "mechanisms"]

_GROUP = "dpverify.mechanisms"


def families() -> Mapping[str, MechanismFamily]:
    """Every mechanism that an installed package announces, by name.

    An entry point of the group ``dpverify.mechanisms`` is a sequence of `MechanismFamily`.
    """
    found = [family for entry in entry_points(group=_GROUP) for family in entry.load()]
    return {family.name: family for family in sorted(found, key=lambda family: family.name)}


def family_of(name: str) -> MechanismFamily:
    """What was announced by this name.

    Raises
    ------
    ConfigurationError
        If nothing was, with the name that was probably meant.
    """
    name, known = str(name), _known()
    if name not in known:  # perhaps in a package that was installed meanwhile
        _known.cache_clear()
        known = _known()
    if name not in known:
        raise ConfigurationError(f"there is no mechanism {name}. {did_you_mean(name, known)}")
    return known[name]


_known = cache(families)  # to look through all installed packages takes longer than most checks


def mechanism(
    name: str,
    *,
    p: int,
    epsilon: Real,
    delta: Real = 0,
    domain: Domain | None = None,
    adjacency: Adjacency | None = None,
    rows: int = 1,
    seed: int | None = None,
    **parameters: Any,
) -> Certifiable:
    """The mechanism of this name that is (ε, δ)-differentially private, with the least noise.

    Parameters
    ----------
    name : as `mechanisms` lists it
    p : number of attributes of a record: items of sets, vertices of a graph
    epsilon, delta : the target
    domain : what a record may be, declared and never read off the data; may be left out for graphs
    adjacency : whom the claim protects; may be left out where the first kind that the mechanism
        supports has no number
    rows : number of records, where the noise depends on it
    seed : of the public randomness; drawn by default
    parameters : the mechanism's own, as `mechanisms` lists them

    Raises
    ------
    ConfigurationError
        If there is no such mechanism, it doesn't support this, or can't be certified.
    ParameterError
        If a number is outside its range.

    Examples
    --------
    >>> import dpverify as dpv
    >>> from dpverify.data.adjacency import Attribute
    >>> unit = dpv.Box(0, 1)
    >>> by_one = Attribute(1)
    >>> sketch = dpv.mechanism(
    ...     "dp-oporp", p=784, k=256, seed=1, epsilon=5, delta=1e-6, domain=unit, adjacency=by_one
    ... )
    >>> sketch.privacy().epsilon_at(1e-6).upper <= 5
    True
    """
    family = family_of(name)
    if domain is not None:
        require(isinstance(domain, Domain), "domain", domain, "a domain, as dpv.Box(0, 1)")
    if adjacency is not None:
        is_one = isinstance(adjacency, Adjacency)
        require(is_one, "adjacency", adjacency, "an adjacency, as dpv.Record() or dpv.Attribute(1)")
    request = Request(
        rows=count("rows", rows),
        p=count("p", p),
        domain=DOMAINS.make(family.domain[0], {}) if domain is None else domain,
        adjacency=(ADJACENCIES.make(family.adjacency[0], {}) if adjacency is None else adjacency),
        epsilon=rational("epsilon", epsilon),
        delta=rational("delta", delta),
        seed=secrets.randbits(64) if seed is None else seed,
        parameters=parameters,
    )
    require(request.epsilon > 0, "epsilon", epsilon, "positive")
    require(0 <= request.delta < 1, "delta", delta, "in [0, 1)")
    return family.make(request)


class Catalogue(tuple[MechanismFamily, ...]):
    """Mechanisms; printed, a table of them."""

    __slots__ = ()

    def rows(self) -> list[list[str]]:
        """Name, paper, guarantee and adjacency of each; a star marks what can't be certified."""
        return [
            [
                family.name + ("" if family.build else " *"),
                family.paper,
                family.guarantee,
                ", ".join(family.adjacency),
            ]
            for family in self
        ]

    def __repr__(self) -> str:
        return text_table(self.rows(), headings=HEADINGS)

    def _repr_html_(self) -> str:
        return html_table(self.rows(), headings=HEADINGS)

    def to_dict(self) -> list[dict[str, Any]]:
        """All that each of them announces, in plain values."""
        return [family.to_dict() for family in self]


HEADINGS = ("name", "paper", "guarantee", "adjacency")


def mechanisms() -> Catalogue:
    """All mechanisms that `mechanism` knows: a tuple that prints itself.

    Those marked with a star can't be certified: they are kept for comparison or as a warning.

    Examples
    --------
    >>> import dpverify as dpv
    >>> [family.name for family in dpv.mechanisms() if family.domain == ("graph",)]
    ['jl-graph-cuts']
    """
    return Catalogue(families().values())
