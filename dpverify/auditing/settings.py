"""How audits run by default: profiles, and the table that a project keeps beside its code.

    [tool.dpverify]          # in pyproject.toml; at the top level of dpverify.toml
    profile = "ci"
    draws = 20000
    kinds = ["black-box", "sequential"]

**Which value counts.** Sources in order: the command line, the environment (DPVERIFY_PROFILE), the
file, the defaults. The first source that says something about a setting decides it. Within one
source a value given by name comes before what the source's profile says, so ``--profile nightly``
on the command line takes its draws from the profile, whatever the file says of draws.

**Which kinds run** is one choice: the source that names `kinds` or `without` decides both.

Nothing heavy is imported: pytest reads the table in every run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dpverify.errors import ConfigurationError, ParameterError, did_you_mean, require
from dpverify.toml import read_toml

__all__ = [
    "DEFAULTS",
    "KINDS",
    "OMITTABLE",
    "PROFILES",
    "VARIABLE",
    "AuditKind",
    "Omittable",
    "Profile",
    "Setting",
    "Source",
    "checked",
    "settings_file",
    "settle",
]

AuditKind = Literal[
    "exhaustive",
    "grey-box",
    "frozen-outputs",
    "determinism",
    "precision",
    "white-box",
    "black-box",
    "trade-off",
    "sequential",
]

KINDS: tuple[AuditKind, ...] = get_args(AuditKind)
"""Kinds of audit that test a privacy claim, in the order of reports: those of `ATTACKS`."""

Omittable = AuditKind | Literal["precision-of-doubles"]
OMITTABLE: tuple[Omittable, ...] = (*KINDS, "precision-of-doubles")
"""What an audit may be made without: a kind, or the precision of outputs that aren't all whole."""

VARIABLE = "DPVERIFY_PROFILE"
"""Of the environment, names a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How hard an audit tries.

    Attributes
    ----------
    draws : on each side of each pair
    alpha : level of one call of `dp_audit`, or of one run of `dpverify audit`; with a seed that
        stays the same a false alarm stays too, so it is rare
    without : what is left out unless it is asked for
    """

    draws: int
    alpha: float
    without: tuple[Omittable, ...] = ()


# Doubles from a continuous distribution fail the precision audit, and rightly so. Those who develop
# on paper's terms first see it where a release is near. Whole numbers have no such excuse.
PROFILES: Mapping[str, Profile] = {
    "dev": Profile(draws=2_000, alpha=1e-3, without=("precision-of-doubles",)),
    "ci": Profile(draws=10_000, alpha=1e-4, without=("precision-of-doubles",)),
    "nightly": Profile(draws=100_000, alpha=1e-4),
    "certify": Profile(draws=1_000_000, alpha=1e-6),
}

DEFAULTS: Mapping[str, Any] = {
    "profile": None,
    "alpha": 0.01,
    "draws": 10_000,
    "seed": 0,
    "kinds": None,
    "without": (),
    "workers": -1,
    "time_limit": 10.0,
}
"""Of ``dpverify audit``; these are all settings there are. Kinds of None are those that apply."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where settings come from, and what it says; None and what is absent say nothing."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that counts, and where it came from."""

    value: Any
    origin: str


def settle(
    given: Source, *, folder: Path, defaults: Mapping[str, Any] = DEFAULTS
) -> dict[str, Setting]:
    """The value of every setting.

    Parameters
    ----------
    given : the command line's values
    folder : where the search for the file begins
    defaults : of what nobody says anything about

    Raises
    ------
    ConfigurationError
        If a source names an unknown setting or a value outside its domain, or the file can't be
        read.
    """
    environment = Source(VARIABLE, {"profile": os.environ.get(VARIABLE) or None})
    sources = [given, environment, settings_file(folder), Source("default", defaults)]
    settled: dict[str, Setting] = {}
    for source in sources:
        for name, setting in _spoken(source).items():
            settled.setdefault(name, setting)
    return {name: settled.get(name, Setting(None, "default")) for name in DEFAULTS}


def settings_file(folder: Path) -> Source:
    """The nearest dpverify.toml, or pyproject.toml with a table ``tool.dpverify``.

    Looked for in the folder and those above it; in one folder dpverify.toml comes first.

    Raises
    ------
    ConfigurationError
        If a file on the way can't be read, or isn't TOML.
    """
    for place in (folder.resolve(), *folder.resolve().parents):
        for name, table in (("dpverify.toml", ()), ("pyproject.toml", ("tool", "dpverify"))):
            found: Any = _read(place / name)
            for key in table:
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                where = str(place / name)
                if not isinstance(found, dict):
                    raise ConfigurationError(f"{where}: tool.dpverify={found} must be a table.")
                return Source(where, found)
    return Source("no file", {})


def _read(path: Path) -> dict[str, Any] | None:
    if not os.path.lexists(path):
        return None
    if not path.is_file():  # passed over, it would leave a run with other settings than it says
        raise ConfigurationError(f"{path}: is not a file, but a folder, a pipe or a broken link.")
    return read_toml(path)


def _spoken(source: Source) -> dict[str, Setting]:
    """What a source says: its own values, then its profile's."""
    said = {name: value for name, value in source.values.items() if value is not None}
    for name in said:
        if name not in DEFAULTS:
            hint = did_you_mean(name, DEFAULTS)
            raise ConfigurationError(f"{source.name}: unknown setting {name}. {hint}")
    values = {
        name: value if value is DEFAULTS[name] else checked(source.name, name, value)
        for name, value in said.items()
    }
    spoken = {name: Setting(value, source.name) for name, value in values.items()}
    if "profile" in values:
        profile, origin = PROFILES[values["profile"]], f"profile {values['profile']}, {source.name}"
        for name in ("draws", "alpha", "without"):
            spoken.setdefault(name, Setting(getattr(profile, name), origin))
    # Which kinds run is one choice: who speaks of one of the two decides both.
    for one, other, neutral in (("kinds", "without", ()), ("without", "kinds", None)):
        if one in spoken:
            spoken.setdefault(other, Setting(neutral, spoken[one].origin))
    return spoken


_FEWEST_DRAWS = 20
_NAMES: Mapping[str, Sequence[str]] = {
    "profile": tuple(PROFILES),
    "kinds": KINDS,
    "without": OMITTABLE,
}


def checked(where: str, name: str, value: Any) -> Any:
    """The value, if the setting may have it.

    Parameters
    ----------
    where : who says so, for the error
    name, value : of the setting

    Raises
    ------
    ConfigurationError
        If the setting can't have this value.
    """
    if name not in _NAMES:
        from dpverify.auditing.config import AuditConfig  # too slow for a suite without audits

        try:
            number = getattr(AuditConfig(**{name: value}), name)
            enough = name != "draws" or number >= _FEWEST_DRAWS
            require(enough, name, value, f"at least {_FEWEST_DRAWS}")
        except ParameterError as error:
            raise ConfigurationError(f"{where}: {error}") from None
        return number
    known, several = _NAMES[name], name != "profile"
    if several and not isinstance(value, list | tuple):
        raise ConfigurationError(f"{where}: {name}={value} must be a list of names.")
    if name == "kinds" and not value:
        raise ConfigurationError(f"{where}: kinds is empty: name one, or leave it out.")
    for item in value if several else [value]:
        if item not in known:
            hint = did_you_mean(str(item), known)
            raise ConfigurationError(f"{where}: {name}={item} is unknown. {hint}")
    return tuple(value) if several else value
