"""The accountant: proves what a mechanism claims, as enclosures."""

from dpverify.accounting.curves.gaussian import (
    Gaussian,
    delta_gaussian,
    epsilon_gaussian,
    sigma_gaussian,
)

__all__ = [
    "Gaussian",
    "delta_gaussian",
    "epsilon_gaussian",
    "sigma_gaussian",
]
