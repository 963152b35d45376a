"""dpverify itself, by the same protocol: the upper end of the enclosure."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.peers.protocol import Case, Method, serve
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import Log, PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.enclosure import Enclosure

__all__ = ["ours"]


def ours(case: Case) -> Enclosure:
    """Enclose the answer to a case, by composing the releases' exact privacy losses."""
    losses = ((_loss(case, Fraction(parameter)), case.count) for parameter in case.parameters)
    curve = Composed(losses=tuple(losses))
    return curve.epsilon_at(case.given) if case.solve == "epsilon" else curve.delta_at(case.given)


def _loss(case: Case, parameter: Fraction) -> PrivacyLoss:
    if case.mechanism == "gaussian":
        return GaussianLoss(mu_squared=1 / parameter**2)
    if case.mechanism == "laplace":
        return LaplaceLoss(shift=1 / parameter)
    return ResponseLoss(step=Log(parameter / (1 - parameter)))


if __name__ == "__main__":
    serve("dpverify", {"enclosure": Method(claim="upper", answer=lambda case: ours(case).upper)})
