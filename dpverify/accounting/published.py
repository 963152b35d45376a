"""Gaussian noise levels as the papers publish them, kept to be shown beside the exact one.

Every level here is an upper bound that its paper proves under conditions, which are enforced: a
level used outside its conditions proves nothing. `sigma_gaussian` is the least that suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from flint import arb

from dpverify.enclosure import Enclosure, Exact, enclose, rational, squared, to_arb
from dpverify.errors import ParameterError, require

__all__ = [
    "STATEMENTS",
    "published_delta",
    "published_sigmas",
    "sigma_classical",
    "sigma_kenthapadi",
    "sigma_kenthapadi_any_projection",
    "sigma_li",
    "sigma_li_any_projection",
]


STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "published_delta": ("kenthapadi2013.theorem-1",),
    "sigma_classical": ("mironov2017.section-2.gaussian", "stausholm2021.lemma-2"),
    "sigma_kenthapadi": ("kenthapadi2013.theorem-1",),
    "sigma_kenthapadi_any_projection": ("kenthapadi2013.lemma-2",),
    "sigma_li": ("li2023.theorem-3.1",),
    "sigma_li_any_projection": ("li2023.theorem-3.4",),
}
"""What each of these functions computes, by ids of the ledger."""


def sigma_classical(epsilon: Fraction, delta: Fraction, *, sensitivity: Exact) -> Enclosure:
    """Δ·√(2 ln(1.25/δ))/ε for ε < 1: Dwork and Roth 2014, theorem A.1; Stausholm 2021, lemma 2.

    The latter leaves out the condition ε < 1, without which it is false for large ε.
    """
    _check(epsilon, delta)
    require(epsilon < 1, "epsilon", epsilon, "below 1 for the classical Gaussian mechanism")
    return _level(sensitivity, lambda: (2 * (arb(5) / 4 / to_arb(delta)).log()).sqrt(), epsilon)


def sigma_kenthapadi(epsilon: Fraction, delta: Fraction, *, sensitivity: Exact) -> Enclosure:
    """Δ·√(2(ln(1/2δ) + ε))/ε for δ < ½: Kenthapadi et al. 2013, theorem 1."""
    _check(epsilon, delta)
    require(delta < Fraction(1, 2), "delta", delta, "below 1/2 for theorem 1")
    return _level(
        sensitivity,
        lambda: (2 * ((1 / (2 * to_arb(delta))).log() + to_arb(epsilon))).sqrt(),
        epsilon,
    )


def sigma_li(epsilon: Fraction, delta: Fraction, *, sensitivity: Exact) -> Enclosure:
    """Δ·√(2(ln(1/δ) + ε))/ε for δ < ½: Li and Li 2023, theorem 3.1 (DP-RP-G).

    It quotes Kenthapadi et al. 2013, theorem 1, and drops the factor 2 under the logarithm: safe,
    and a little larger.
    """
    _check(epsilon, delta)
    require(delta < Fraction(1, 2), "delta", delta, "below 1/2 for theorem 3.1")
    return _level(
        sensitivity, lambda: (2 * ((1 / to_arb(delta)).log() + to_arb(epsilon))).sqrt(), epsilon
    )


def sigma_kenthapadi_any_projection(
    epsilon: Fraction, delta: Fraction, *, beta: Exact, p: int, k: int
) -> Enclosure:
    """4β·√ln(1/δ)/ε, whatever Gaussian P is drawn: Kenthapadi et al. 2013, lemma 2.

    It holds over the draw of P, under k > 2(ln p + ln(2/δ)) and ε < ln(1/δ).
    """
    _check(epsilon, delta)
    if not _certainly(lambda: k - 2 * (to_arb(Fraction(p)) * 2 / to_arb(delta)).log()):
        raise ParameterError("k", k, f"greater than 2(ln {p} + ln(2/delta)) for lemma 2")
    if not _certainly(lambda: (1 / to_arb(delta)).log() - to_arb(epsilon)):
        raise ParameterError("epsilon", epsilon, "below ln(1/delta) for lemma 2")
    return _level(beta, lambda: 4 * (1 / to_arb(delta)).log().sqrt(), epsilon)


def sigma_li_any_projection(
    epsilon: Fraction, delta: Fraction, *, beta: Exact, p: int, k: int
) -> Enclosure:
    """Level whatever Gaussian P is drawn: Li and Li 2023, theorem 3.4 (analytic DP-RP-G).

    β·√(1 + 2√(ln(2p/δ)/k) + 2 ln(2p/δ)/k)·√(2(ln(2/δ) + ε))/ε, over the draw of P, for δ < ½.
    """
    _check(epsilon, delta)
    require(delta < Fraction(1, 2), "delta", delta, "below 1/2 for theorem 3.4")

    def factor() -> arb:
        share = (2 * to_arb(Fraction(p)) / to_arb(delta)).log() / k
        norm = (1 + 2 * share.sqrt() + 2 * share).sqrt()
        return norm * (2 * ((2 / to_arb(delta)).log() + to_arb(epsilon))).sqrt()

    return _level(beta, factor, epsilon)


def published_sigmas(
    epsilon: Fraction,
    delta: Fraction,
    *,
    sensitivity: Exact,
    any_gaussian: tuple[Exact, int, int] | None = None,
) -> Mapping[str, Enclosure]:
    """Every published level whose conditions hold, by its statement.

    Parameters
    ----------
    epsilon, delta : the target
    sensitivity : of the realised projection, in ℓ2
    any_gaussian : β, p and k of a Gaussian projection for one attribute, for the levels that hold
        whatever projection was drawn
    """
    known: dict[str, Callable[[], Enclosure]] = {
        "kenthapadi2013 theorem 1": lambda: sigma_kenthapadi(
            epsilon, delta, sensitivity=sensitivity
        ),
        "li2023 theorem 3.1": lambda: sigma_li(epsilon, delta, sensitivity=sensitivity),
        "classical, epsilon below 1": lambda: sigma_classical(
            epsilon, delta, sensitivity=sensitivity
        ),
    }
    if any_gaussian is not None:
        beta, p, k = any_gaussian
        known["kenthapadi2013 lemma 2, any projection"] = lambda: sigma_kenthapadi_any_projection(
            epsilon, delta, beta=beta, p=p, k=k
        )
        known["li2023 theorem 3.4, any projection"] = lambda: sigma_li_any_projection(
            epsilon, delta, beta=beta, p=p, k=k
        )
    levels = {}
    for name, level in known.items():
        try:
            levels[name] = level()
        except ParameterError:
            continue  # its conditions don't hold, so it says nothing here
    return levels


def published_delta(epsilon: Fraction, *, mu_squared: Fraction) -> Enclosure | None:
    """½·e^(ε − ε²/2μ²) for Gaussian noise: Kenthapadi et al. 2013, theorem 1, solved for δ.

    Its σ = Δ·√(2(ln(1/2δ) + ε))/ε with σ = Δ/μ says ε²/μ² = 2(ln(1/2δ) + ε).

    Parameters
    ----------
    epsilon : ≥ 0, in nats
    mu_squared : (Δ/σ)² > 0

    Returns
    -------
    Enclosure, or None where that δ is ½ or more and the theorem says nothing.
    """
    require(epsilon >= 0, "epsilon", epsilon, "at least 0")
    require(mu_squared > 0, "mu_squared", mu_squared, "positive")
    exponent = epsilon - epsilon * epsilon / (2 * mu_squared)
    return enclose(lambda: to_arb(exponent).exp() / 2) if exponent < 0 else None


def _level(sensitivity: Exact, factor: Callable[[], arb], epsilon: Fraction) -> Enclosure:
    require(squared(sensitivity) > 0, "sensitivity", sensitivity, "positive")
    return enclose(lambda: to_arb(sensitivity) * factor() / to_arb(epsilon))


def _check(epsilon: Fraction, delta: Fraction) -> None:
    require(rational("epsilon", epsilon) > 0, "epsilon", epsilon, "positive")
    require(0 < rational("delta", delta) < 1, "delta", delta, "in (0, 1)")


def _certainly(difference: Callable[[], arb]) -> bool:
    """Whether the value is provably positive."""
    return bool(difference() > 0)
