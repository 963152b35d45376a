"""Tumult Core's noise, on which Tumult Analytics is built, in a process of its own.

The sessions of Tumult Analytics aren't audited: each release starts jobs of Spark, and takes
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.data.adjacency import LInf
from dpverify_audits.libraries.apart import command
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]


def entries() -> Iterator[Entry]:
    """All of them."""
    for name, release, claim in (
        ("AddLaplaceNoise of a float", "Laplace", claimed(1)),
        ("AddLaplaceNoise of a whole number", "Laplace, whole", claimed(1)),
        ("AddGeometricNoise", "geometric", claimed(1)),
        ("AddDiscreteGaussianNoise", "discrete Gaussian", ZCDP(rho=Fraction(1, 2))),
        ("AddGaussianNoise of a float", "Gaussian", ZCDP(rho=Fraction(1, 2))),
    ):
        yield Entry(
            name=name,
            reading="the measurement's own `privacy_function(1)`",
            function=command("tmlt-analytics", release),
            claim=claim,
            adjacency=LInf(1),
            pairs=(([0.0], [1.0]), ([3.0], [2.0])),
            draws=500,
        )
