"""The accountant: proves what a mechanism claims, as enclosures."""

from dpverify.accounting.curves.gaussian import (
    GaussianCurve,
    delta_gaussian,
    epsilon_gaussian,
    sigma_gaussian,
)

__all__ = [
    "GaussianCurve",
    "delta_gaussian",
    "epsilon_gaussian",
    "sigma_gaussian",
]
