"""dpverify itself, by the same protocol: the upper end of the enclosure."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.peers.protocol import Case, Method, serve
from dpverify.accounting import GaussianCurve
from dpverify.accounting.laplace import LaplaceCurve
from dpverify.accounting.randomized_response import RandomizedResponseCurve
from dpverify.enclosure import Enclosure

__all__ = ["ours"]


def ours(case: Case) -> Enclosure:
    """Enclose the answer to a case, by the exact curve of the composed mechanism."""
    parameter = Fraction(case.parameter)
    curve: GaussianCurve | LaplaceCurve | RandomizedResponseCurve
    if case.mechanism == "gaussian":
        curve = GaussianCurve(mu_squared=case.count / parameter**2)
    elif case.mechanism == "laplace":
        curve = LaplaceCurve(shifts=((1 / parameter, case.count),))
    else:
        curve = RandomizedResponseCurve(keep=parameter, other=1 - parameter, positions=case.count)
    return curve.epsilon(case.given) if case.solve == "epsilon" else curve.delta(case.given)


if __name__ == "__main__":
    serve("dpverify", {"enclosure": Method(claim="upper", answer=lambda case: ours(case).upper)})
