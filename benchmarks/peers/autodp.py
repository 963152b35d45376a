"""autodp: its three ways to compose.

`Composition`, by Rényi DP, is the one that its tutorials start with, and its conversion is a proven
bound. `ComposeAFA` inverts characteristic functions numerically; its paper calls it exact up to
quadrature, whose error the library does not add. `ComposeGaussian` with `ExactGaussianMechanism`
("to use in practice") and the analytic formula behind it are root searches that promise no side.
"""

from __future__ import annotations

import math

from autodp import dp_bank, mechanism_zoo
from autodp.transformer_zoo import (
    ComposeAFA,
    ComposeGaussian,
    Composition,
)

from benchmarks.peers.protocol import Case, Method, serve

MECHANISMS = {
    "gaussian": mechanism_zoo.GaussianMechanism,
    "laplace": mechanism_zoo.LaplaceMechanism,
    "randomized-response": mechanism_zoo.RandresponseMechanism,
}


def renyi(case: Case) -> float:
    kinds = [MECHANISMS[case.mechanism](parameter) for parameter in case.parameters]
    composed = Composition()(kinds, [case.count] * len(kinds))
    ask = composed.get_approxDP if case.solve == "epsilon" else composed.get_approx_delta
    return float(ask(case.given))


def fourier(case: Case) -> float:
    kinds = [MECHANISMS[case.mechanism](parameter, phi_off=False) for parameter in case.parameters]
    composed = ComposeAFA()(kinds, [case.count] * len(kinds))
    ask = composed.get_approxDP if case.solve == "epsilon" else composed.get_approx_delta
    return float(ask(case.given))


def closed_form(case: Case) -> float | None:
    if case.mechanism != "gaussian" or case.others:
        return None
    one = mechanism_zoo.ExactGaussianMechanism(case.parameter)
    composed = ComposeGaussian()([one], [case.count])
    if case.solve == "epsilon":
        return float(composed.get_approxDP(case.given))
    sigma = case.parameter / math.sqrt(case.count)
    return math.exp(dp_bank.get_logdelta_ana_gaussian(sigma, case.given))


if __name__ == "__main__":
    serve(
        "autodp",
        {
            "Rényi": Method(claim="upper", answer=renyi),
            "Fourier": Method(claim="estimate", answer=fourier),
            "closed form": Method(claim="estimate", answer=closed_form),
        },
    )
