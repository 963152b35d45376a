"""The museum of published bugs: each a small function of data, beside its correct twin.

A room is a module; what its docstring says hangs at the door. What is found, with how many draws,
is measured by ``python -m benchmarks.museum``, which prints ``docs/museum.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from dpverify_audits.museum import (
    budgets,
    floats,
    local,
    metadata,
    selection,
    sensitivity,
    thresholds,
    training,
)
from dpverify_audits.museum.exhibit import Exhibit

__all__ = ["ABSENT", "ROOMS", "SUITE", "Exhibit"]

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
SUITE: tuple[Exhibit, ...] = tuple(exhibit for room in ROOMS for exhibit in room.EXHIBITS)
ABSENT: Mapping[str, str] = {
    "Time": "samplers that are slower where noise is large (Jin and others, S&P 2022): no output",
    "Accountants": "bugs of functions that compute ε, such as Opacus issues 384, 400 and 813, "
    "dp_accounting 0e99a6f and 6f7deb3, prv_accountant issue 17, synthcity issue 276, SmartNoise "
    "issue 621, PySyft issue 6914 and sampling without replacement accounted as Poisson "
    "(arXiv:2405.20769): draws don't refute a number; "
    "see [Accountants compared](accountants-compared.md)",
    "Auditors": "lower bounds that null scores refute (jax_privacy issue 270), and probabilities "
    "too small to be counted (arXiv:2411.16516); see [Scores, measured](scores-compared.md)",
    "Whole trainings": "DPWGAN's (arXiv:2405.10994), which is more than one step",
}
"""What was published too and can't be shown as a function of data, with the reason."""
