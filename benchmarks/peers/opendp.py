"""OpenDP: the maps of composed measurements, which it rounds conservatively.

Gaussian noise is a measurement under zero-concentrated DP, turned into an (ε, δ) curve by
`make_zCDP_to_approxDP`. Laplace noise and randomized response are pure; composed, they are private
both with the sum of their ε and by way of zero-concentrated DP, and the smaller one counts.
"""

from __future__ import annotations

import math

import opendp.prelude as dp

from benchmarks.peers.protocol import Case, Method, serve

dp.enable_features("contrib")


def certified(case: Case) -> float:
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    distance: float = 1.0
    if case.mechanism == "gaussian":
        kinds = [dp.m.make_gaussian(*real, sigma) for sigma in case.parameters]
    elif case.mechanism == "laplace":
        kinds = [dp.m.make_laplace(*real, b) for b in case.parameters]
    else:
        kinds, distance = [dp.m.make_randomized_response_bool(p) for p in case.parameters], 1
    pure = math.inf
    if case.mechanism != "gaussian":
        pure = dp.c.make_composition(kinds * case.count).map(distance)
        kinds = [dp.c.make_pureDP_to_zCDP(one) for one in kinds]
    composed = dp.c.make_composition(kinds * case.count)
    curve = dp.c.make_zCDP_to_approxDP(composed).map(distance)
    if case.solve == "epsilon":
        return min(float(pure), float(curve.epsilon(case.given)))
    return 0.0 if case.given >= pure else float(curve.delta(case.given))


if __name__ == "__main__":
    serve("opendp", {"zCDP": Method(claim="upper", answer=certified)})
