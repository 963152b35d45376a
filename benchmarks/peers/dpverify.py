"""dpverify itself, by the same protocol: the upper end of the enclosure."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.peers.protocol import Case, Method, serve
from dpverify.accounting.composed import ComposedCurve
from dpverify.accounting.loss import GaussianLoss, LaplaceLoss, Log, PrivacyLoss, ResponseLoss
from dpverify.enclosure import Enclosure

__all__ = ["ours"]


def ours(case: Case) -> Enclosure:
    """Enclose the answer to a case, by composing one release's exact privacy loss."""
    parameter = Fraction(case.parameter)
    loss: PrivacyLoss
    if case.mechanism == "gaussian":
        loss = GaussianLoss(mu_squared=1 / parameter**2)
    elif case.mechanism == "laplace":
        loss = LaplaceLoss(shift=1 / parameter)
    else:
        loss = ResponseLoss(step=Log(parameter / (1 - parameter)))
    curve = ComposedCurve(losses=((loss, case.count),))
    return curve.epsilon(case.given) if case.solve == "epsilon" else curve.delta(case.given)


if __name__ == "__main__":
    serve("dpverify", {"enclosure": Method(claim="upper", answer=lambda case: ours(case).upper)})
