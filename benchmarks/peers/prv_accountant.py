"""Microsoft's prv-accountant: the upper one of its three values, which it documents as a bound.

The docstring recommends ``eps_error`` "around 0.1" and ``delta_error`` around 10⁻³·δ; a ten times
finer ε is tried too, since the error is added to every upper value. Where δ is asked for, the
README's ``delta_error=1e-10`` stands in. Randomized response with log-odds ε₀ is `PureDPMechanism`,
whose privacy loss it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import prv_accountant

from benchmarks.peers.protocol import Case, Method, serve


def upper(eps_error: float) -> Callable[[Case], float]:
    def answer(case: Case) -> float:
        if case.mechanism == "gaussian":
            prvs = [prv_accountant.GaussianMechanism(sigma) for sigma in case.parameters]
        elif case.mechanism == "laplace":
            prvs = [prv_accountant.LaplaceMechanism(mu=1 / b) for b in case.parameters]
        else:
            log_odds = [math.log1p((2 * p - 1) / (1 - p)) for p in case.parameters]
            prvs = [prv_accountant.PureDPMechanism(epsilon) for epsilon in log_odds]
        counts = [case.count] * len(prvs)
        asks_epsilon = case.solve == "epsilon"
        accountant = prv_accountant.PRVAccountant(
            prvs=prvs,
            max_self_compositions=counts,
            eps_error=eps_error,
            delta_error=1e-3 * case.given if asks_epsilon else 1e-10,
        )
        ask = accountant.compute_epsilon if asks_epsilon else accountant.compute_delta
        return float(ask(case.given, counts)[2])

    return answer


if __name__ == "__main__":
    serve(
        "prv-accountant",
        {
            "eps_error 0.1": Method(claim="upper", answer=upper(0.1)),
            "eps_error 0.01": Method(claim="upper", answer=upper(0.01)),
        },
    )
