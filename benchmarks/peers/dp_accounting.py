"""Google's dp-accounting.

Pessimistic privacy-loss distributions, with the documentation's defaults (connect the dots, a grid
of 1e-4): the docstring calls the divergence "an upper estimate to the real value". All mechanisms
are composed by `self_compose`, and different ones by `compose`, one after another; Gaussians also
as one of scale σ/√T, as the `PLDAccountant` does. Besides, `get_epsilon_gaussian`, an "exact
conversion" that promises no side.
"""

from __future__ import annotations

import math
from functools import reduce

from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld

from benchmarks.peers.protocol import Case, Method, serve


def self_composed(case: Case) -> float:
    alike = (_alike(case, parameter) for parameter in case.parameters)
    return asked(reduce(lambda one, other: one.compose(other), alike), case)


def _alike(case: Case, parameter: float) -> pld.PrivacyLossDistribution:
    if case.mechanism == "gaussian":
        one = pld.from_gaussian_mechanism(parameter)
    elif case.mechanism == "laplace":
        one = pld.from_laplace_mechanism(parameter)
    else:
        # Its parameter is the probability of a fair coin in place of the truth: 2(1 − p), exactly.
        one = pld.from_randomized_response(2 * (1 - parameter), 2)
    return one.self_compose(case.count) if case.count > 1 else one


def one_gaussian(case: Case) -> float | None:
    if case.mechanism != "gaussian" or case.others:
        return None
    return asked(pld.from_gaussian_mechanism(case.parameter / math.sqrt(case.count)), case)


def asked(distribution: pld.PrivacyLossDistribution, case: Case) -> float:
    if case.solve == "epsilon":
        return float(distribution.get_epsilon_for_delta(case.given))
    return float(distribution.get_delta_for_epsilon(case.given))


def closed_form(case: Case) -> float | None:
    if case.mechanism != "gaussian" or case.solve != "epsilon" or case.others:
        return None
    return float(get_epsilon_gaussian(case.parameter / math.sqrt(case.count), case.given))


if __name__ == "__main__":
    serve(
        "dp-accounting",
        {
            "self_compose": Method(claim="upper", answer=self_composed),
            "one Gaussian": Method(claim="upper", answer=one_gaussian),
            "closed form": Method(claim="estimate", answer=closed_form),
        },
    )
