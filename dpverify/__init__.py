"""Privacy accounting and verification.

A mechanism makes a claim, the accountant proves it, the auditor attacks it, and a certificate
records both so that anyone can check it again. ``import dpverify as dpv`` is how to begin: each
name below is loaded when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpverify._version import __version__

if TYPE_CHECKING:
    from dpverify import curves as curves
    from dpverify.accounting.budget import Budget
    from dpverify.accounting.calibrate import calibrate
    from dpverify.accounting.composition.compose import compose
    from dpverify.accounting.curves.approximate_dp import ApproxDP
    from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
    from dpverify.accounting.curves.gaussian import Gaussian
    from dpverify.accounting.curves.laplace import Laplace
    from dpverify.accounting.curves.randomized_response import RandomizedResponse
    from dpverify.accounting.notions.renyi import RDP
    from dpverify.accounting.notions.zcdp import ZCDP
    from dpverify.auditing.accountants import audit_accountant
    from dpverify.auditing.attacks.scores import ScoreAudit, audit_scores
    from dpverify.auditing.audit import audit
    from dpverify.auditing.finding import Finding
    from dpverify.auditing.report import Report
    from dpverify.auditing.targets.command import Command
    from dpverify.auditing.targets.functions import adapt
    from dpverify.auditing.targets.primitives import ensure_equal, primitive
    from dpverify.catalogue import mechanism, mechanisms
    from dpverify.certificate.certify import certify
    from dpverify.certificate.open_release import Release, open_release
    from dpverify.certificate.plan import plan
    from dpverify.certificate.schema import Certificate
    from dpverify.certificate.sign import sign
    from dpverify.certificate.verify import verify
    from dpverify.data.adjacency import (
        L2,
        AddRemove,
        Adjacency,
        Attribute,
        BitFlip,
        Edge,
        Items,
        L1Ball,
        LInf,
        Permutation,
        Record,
        Replace,
        Row,
    )
    from dpverify.data.columns import Booleans, Categories, Dates, Integers, Reals, Text
    from dpverify.data.domain import Ball, Box, Graphs, Sets
    from dpverify.data.table import Table
    from dpverify.designs import design
    from dpverify.enclosure import Enclosure
    from dpverify.errors import DPVerifyError, ParameterError
    from dpverify.guarantee import Guarantee, PrivacyCurve
    from dpverify.privacy import Estimator, Mechanism, Pair

__all__ = [
    "L2",
    "RDP",
    "ZCDP",
    "AddRemove",
    "Adjacency",
    "ApproxDP",
    "Attribute",
    "Ball",
    "BitFlip",
    "Booleans",
    "Box",
    "Budget",
    "Categories",
    "Certificate",
    "Command",
    "DPVerifyError",
    "Dates",
    "DiscreteGaussian",
    "Edge",
    "Enclosure",
    "Estimator",
    "Finding",
    "Gaussian",
    "Graphs",
    "Guarantee",
    "Integers",
    "Items",
    "L1Ball",
    "LInf",
    "Laplace",
    "Mechanism",
    "Pair",
    "ParameterError",
    "Permutation",
    "PrivacyCurve",
    "RandomizedResponse",
    "Reals",
    "Record",
    "Release",
    "Replace",
    "Report",
    "Row",
    "ScoreAudit",
    "Sets",
    "Table",
    "Text",
    "__version__",
    "adapt",
    "audit",
    "audit_accountant",
    "audit_scores",
    "calibrate",
    "certify",
    "compose",
    "design",
    "ensure_equal",
    "mechanism",
    "mechanisms",
    "open_release",
    "plan",
    "primitive",
    "sign",
    "verify",
]

# Where each name is defined: one line a module, the same as under TYPE_CHECKING above.
_MODULES = {
    "dpverify.accounting.budget": ("Budget",),
    "dpverify.accounting.calibrate": ("calibrate",),
    "dpverify.accounting.composition.compose": ("compose",),
    "dpverify.accounting.curves.approximate_dp": ("ApproxDP",),
    "dpverify.accounting.curves.discrete_gaussian": ("DiscreteGaussian",),
    "dpverify.accounting.curves.gaussian": ("Gaussian",),
    "dpverify.accounting.curves.laplace": ("Laplace",),
    "dpverify.accounting.curves.randomized_response": ("RandomizedResponse",),
    "dpverify.accounting.notions.renyi": ("RDP",),
    "dpverify.accounting.notions.zcdp": ("ZCDP",),
    "dpverify.auditing.accountants": ("audit_accountant",),
    "dpverify.auditing.attacks.scores": ("ScoreAudit", "audit_scores"),
    "dpverify.auditing.audit": ("audit",),
    "dpverify.auditing.report": ("Report",),
    "dpverify.auditing.finding": ("Finding",),
    "dpverify.auditing.targets.command": ("Command",),
    "dpverify.auditing.targets.functions": ("adapt",),
    "dpverify.auditing.targets.primitives": ("ensure_equal", "primitive"),
    "dpverify.catalogue": ("mechanism", "mechanisms"),
    "dpverify.certificate.certify": ("certify",),
    "dpverify.designs": ("design",),
    "dpverify.certificate.open_release": ("Release", "open_release"),
    "dpverify.certificate.plan": ("plan",),
    "dpverify.certificate.schema": ("Certificate",),
    "dpverify.certificate.sign": ("sign",),
    "dpverify.certificate.verify": ("verify",),
    "dpverify.data.adjacency": (
        "AddRemove",
        "Adjacency",
        "Attribute",
        "BitFlip",
        "Edge",
        "Items",
        "L1Ball",
        "L2",
        "LInf",
        "Permutation",
        "Record",
        "Replace",
        "Row",
    ),
    "dpverify.data.columns": ("Booleans", "Categories", "Dates", "Integers", "Reals", "Text"),
    "dpverify.data.domain": ("Ball", "Box", "Graphs", "Sets"),
    "dpverify.data.table": ("Table",),
    "dpverify.enclosure": ("Enclosure",),
    "dpverify.errors": ("DPVerifyError", "ParameterError"),
    "dpverify.guarantee": ("Guarantee", "PrivacyCurve"),
    "dpverify.privacy": ("Estimator", "Mechanism", "Pair"),
}
_PARTS = ("curves",)  # modules one step behind the door
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # which would take every misspelt name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            said = f"module {__name__!r} has no attribute {name!r}"
            curves = () if name.startswith("_") else import_module(f"{__name__}.curves").__all__
            if name in curves:
                said += f": it is {__name__}.curves.{name}"
            raise AttributeError(said, name=name, obj=sys.modules[__name__])
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # later uses don't come here
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS})
