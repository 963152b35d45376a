"""Audit the Laplace, Gaussian and geometric mechanisms of OpenDP and diffprivlib as they stand.

    pip install opendp diffprivlib "scikit-learn<1.7"
    python examples/audit_libraries.py

A library that isn't installed is left out, and said to be. Both draw from the system's entropy, so
that a second run has other counts. docs/auditing-libraries.md explains what is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
from dpverify.auditing.audit import audit
from dpverify.auditing.report import Report
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair

ONE = Attribute(beta=Fraction(1))
DELTA = Fraction(1, 100_000)
# Whole numbers, which all of them take.
PAIR = Pair(name="up from zero", record=np.array([[0.0]]), neighbour=np.array([[1.0]]))


def _adapted(name: str, mechanism: Any, claim: PrivacyCurve) -> Mechanism:
    return adapt(mechanism, adjacency=ONE, claim=claim, name=name)


def opendp() -> Iterator[Mechanism]:
    """OpenDP's mechanisms; the claim is what their maps say of neighbours 1 apart."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    for name, made, one in (
        ("Laplace", dp.m.make_laplace(*real, scale=1.0), 1.0),
        ("Laplace, k = -2", dp.m.make_laplace(*real, scale=1.0, k=-2), 1.0),
        ("geometric", dp.m.make_geometric(*whole, scale=1.0), 1),
    ):
        claim = ApproxDP(epsilon=Fraction(made.map(one)))
        yield _adapted(f"OpenDP {name}", made, claim)
    # Its map is in zero-concentrated privacy, 1/2 here, which is more than the noise's own curve.
    # The noise is discrete, for floats on the grid of the smallest one, 2**-1074.
    for name, domain, steps in (("Gaussian", real, 2**1074), ("discrete Gaussian", whole, 1)):
        curve = DiscreteGaussian(sigma=steps, sensitivity=steps)
        yield _adapted(f"OpenDP {name}", dp.m.make_gaussian(*domain, scale=1.0), curve)


def diffprivlib() -> Iterator[Mechanism]:
    """The mechanisms of diffprivlib; the claim is the epsilon and delta that they are made for."""
    from diffprivlib import mechanisms

    pure = {"epsilon": 1, "sensitivity": 1}
    both = {**pure, "delta": float(DELTA)}
    for name, made, leak in (
        ("Laplace", mechanisms.Laplace(**pure), Fraction(0)),
        ("geometric", mechanisms.Geometric(**pure), Fraction(0)),
        ("Gaussian", mechanisms.Gaussian(**both), DELTA),
        ("analytic Gaussian", mechanisms.GaussianAnalytic(**both), DELTA),
        ("discrete Gaussian", mechanisms.GaussianDiscrete(**both), DELTA),
    ):
        yield _adapted(f"diffprivlib {name}", made, ApproxDP(epsilon=Fraction(1), delta=leak))


def main(draws: int = 2_000) -> None:
    reports: list[Report] = []
    for library, subjects in (("opendp", opendp), ("diffprivlib", diffprivlib)):
        try:
            found = list(subjects())
        except ImportError as error:
            print(f"{library} is left out: {error}.")
            continue
        # Each mechanism has a level of its own; 10 in all, at most 0.01 together.
        reports += [audit(each, pairs=[PAIR], draws=draws, seed=1, alpha=0.001) for each in found]
    for report in reports:
        by = ", ".join(dict.fromkeys(finding.audit for finding in report.violations))
        print(f"{report.mechanism:30}{report.verdict:22}{by}".rstrip())
    for report in reports:
        for finding in report.violations:
            print("", report.mechanism, finding, sep="\n")


if __name__ == "__main__":
    main()
