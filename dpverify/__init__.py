"""Privacy accounting and verification.

A mechanism makes a claim, the accountant proves it, the auditor attacks it, and a certificate
records both so that anyone can check it again. ``import dpverify as dpv`` is how to begin: each
name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpverify._version import __version__

if TYPE_CHECKING:
    from dpverify.accounting.composition.compose import compose
    from dpverify.auditing.engine import Report
    from dpverify.auditing.finding import Finding
    from dpverify.auditing.targets.functions import adapt
    from dpverify.catalogue import mechanism, mechanisms
    from dpverify.certificate.open_release import open_release
    from dpverify.data.domain import Ball, Box, Graphs, Sets
    from dpverify.enclosure import Enclosure
    from dpverify.errors import DPVerifyError, ParameterError
    from dpverify.guarantee import Guarantee, PrivacyCurve
    from dpverify.privacy import Estimator, Mechanism, Pair

__all__ = [
    "Ball",
    "Box",
    "DPVerifyError",
    "Enclosure",
    "Estimator",
    "Finding",
    "Graphs",
    "Guarantee",
    "Mechanism",
    "Pair",
    "ParameterError",
    "PrivacyCurve",
    "Report",
    "Sets",
    "__version__",
    "adapt",
    "compose",
    "mechanism",
    "mechanisms",
    "open_release",
]

# Where each name is defined: one line a module, the same as under TYPE_CHECKING above.
_MODULES = {
    "dpverify.accounting.composition.compose": ("compose",),
    "dpverify.auditing.engine": ("Report",),
    "dpverify.auditing.finding": ("Finding",),
    "dpverify.auditing.targets.functions": ("adapt",),
    "dpverify.catalogue": ("mechanism", "mechanisms"),
    "dpverify.certificate.open_release": ("open_release",),
    "dpverify.data.domain": ("Ball", "Box", "Graphs", "Sets"),
    "dpverify.enclosure": ("Enclosure",),
    "dpverify.errors": ("DPVerifyError", "ParameterError"),
    "dpverify.guarantee": ("Guarantee", "PrivacyCurve"),
    "dpverify.privacy": ("Estimator", "Mechanism", "Pair"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # which would take every misspelt name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # later uses don't come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
