"""The museum of published bugs: each a small function, beside its correct twin.

A room is a module; what its docstring says hangs at the door. Most exhibits are functions of data,
from which an audit draws; those of accountants compute a number, and those of auditors bound one.
What is found, with how many draws, is measured by ``python -m benchmarks.museum``, which prints
``docs/museum.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from dpverify_audits.museum import (
    accountants,
    auditors,
    budgets,
    floats,
    local,
    metadata,
    selection,
    sensitivity,
    thresholds,
    training,
)
from dpverify_audits.museum.accountants import AccountantExhibit
from dpverify_audits.museum.auditors import AuditorExhibit
from dpverify_audits.museum.exhibit import Exhibit

__all__ = ["ABSENT", "EXHIBITS", "ROOMS", "SUITE", "AccountantExhibit", "AuditorExhibit", "Exhibit"]

ROOMS: tuple[ModuleType, ...] = (
    floats,
    selection,
    sensitivity,
    metadata,
    thresholds,
    budgets,
    training,
    local,
)
EXHIBITS: tuple[Exhibit, ...] = tuple(exhibit for room in ROOMS for exhibit in room.EXHIBITS)
"""Functions of data, from which an audit draws."""
SUITE: tuple[Exhibit | AccountantExhibit | AuditorExhibit, ...] = (
    *EXHIBITS,
    *accountants.EXHIBITS,
    *auditors.EXHIBITS,
)
"""These, and the two wings that have no data: who computes ε, and who bounds it."""
ABSENT: Mapping[str, str] = {
    "Time": "samplers that are slower where noise is large (Jin and others, S&P 2022): no output",
    "The votes of one data set": "PATE-GAN's moments accountants, with brackets or a logarithm "
    "missing (synthcity issue 276, SmartNoise SDK issue 596, private-data-generation issue 11): "
    "they bound what these votes cost, and aren't a bound for all neighbours, corrected or not",
    "What auditors miss": "events of small probability that they ignore (arXiv:2411.16516): they "
    "don't accuse the innocent, they let others go",
    "Whole trainings": "DPWGAN's (arXiv:2405.10994), which is more than one step",
}
"""What was published too and can't be shown as a function of data, with the reason."""
