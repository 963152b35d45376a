"""Section 6: randomized response, Laplace and Gaussian noise, and many of them together."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import density, integral, number
from dpverify.ledger.statements import Correction, Statement

from .laws import at_one, divergence, greatest, response

__all__ = ["CLAIMS"]

_SCALES = [Fraction(1, 2), Fraction(1), Fraction(20)]
_LAPLACE = [(alpha, scale) for alpha in (Fraction(3, 2), Fraction(5)) for scale in _SCALES]
_GAUSSIAN = [
    (alpha, mu, sigma)
    for alpha in (Fraction(3, 2), Fraction(5))
    for mu, sigma in ((Fraction(1), Fraction(2)), (Fraction(3), Fraction(1)))
]
_KEPT = [Fraction(51, 100), Fraction(3, 4), Fraction(1, 4)]
_FAR = 200  # scales: what is beyond weighs less than e^−150


def _log(value: Any) -> Any:
    return number(value).log()


def _piece(alpha: Fraction, scale: Fraction, distance: Fraction, piece: str) -> Any:
    """∫ p^α q^(1 − α) of Laplace laws at 0 and a distance: left of both, between, right of both."""
    a, s, d = number(alpha), number(scale), number(distance)
    signs, low, high = {
        "left": ((1, 1), -_FAR * s, number(0)),
        "between": ((-1, 1), number(0), d),
        "right": ((-1, -1), d, d + _FAR * s),
    }[piece]

    def overlap(x: Any) -> Any:
        return ((signs[0] * a * x + signs[1] * (1 - a) * (x - d)) / s).exp() / (2 * s)

    return integral(overlap, low, high)


def _laplace(alpha: Fraction, scale: Fraction, distance: Fraction = Fraction(1)) -> Any:
    """D_α of Laplace laws a distance apart."""
    pieces = (_piece(alpha, scale, distance, piece) for piece in ("left", "between", "right"))
    return sum(pieces, number(0)).log() / number(alpha - 1)


def _laplace_entropy(scale: Fraction) -> Any:
    """∫ p ln(p/q) of Laplace laws at 0 and 1, where ln(p/q) is (|x − 1| − |x|)/λ."""
    s = number(scale)
    left = integral(lambda x: (x / s).exp() / (2 * s) / s, -_FAR * s, 0)
    middle = integral(lambda x: (-x / s).exp() / (2 * s) * (1 - 2 * x) / s, 0, 1)
    right = integral(lambda x: -(-x / s).exp() / (2 * s) / s, 1, 1 + _FAR * s)
    return left + middle + right


def _overlap(alpha: Fraction, mu: Any, sigma: Fraction) -> Any:
    """∫ p^α q^(1 − α) of normal laws at 0 and μ, in units of their deviation σ."""
    a, shift = number(alpha), number(mu) / number(sigma)
    centre = (1 - a) * shift  # where the integrand is largest
    return integral(
        lambda x: (
            (-a * x * x / 2 - (1 - a) * (x - shift) * (x - shift) / 2).exp() / (2 * arb.pi()).sqrt()
        ),
        centre - 25,
        centre + 25,
    )


def _gaussian(alpha: Fraction, mu: Fraction, sigma: Fraction, count: int = 1) -> Any:
    return count * _overlap(alpha, mu, sigma).log() / number(alpha - 1)


def _standard(count: int, epsilon: Any, baseline: Fraction) -> Any:
    """Section 2's e^ε′ + δ/Q at the best δ, between two ends.

    From one δ to a larger one it is above e^ε′ at the larger and δ/Q at the smaller one. Such
    pieces are halved, and those dropped that are above what another one reaches.
    """
    less = count * epsilon * (epsilon.exp() - 1)

    @cache
    def factor(delta: Fraction) -> Any:
        return ((2 * count * _log(1 / delta)).sqrt() * epsilon + less).exp()

    ends = [Fraction(1, 10**digits) for digits in range(14, -1, -1)]
    pieces, best = list(pairwise(ends)), factor(ends[0]) + number(ends[0] / baseline)
    for _ in range(10):
        middles = [(low + high) / 2 for low, high in pieces]
        best = min([best, *(factor(d) + number(d / baseline) for d in middles)], key=float)
        halves = [
            half
            for (low, high), middle in zip(pieces, middles, strict=True)
            for half in ((low, middle), (middle, high))
        ]
        pieces = [(a, b) for a, b in halves if not factor(b) + number(a / baseline) > best]
    lower = [factor(high) + number(low / baseline) for low, high in pieces]
    return best.union(min([factor(ends[0]), *lower], key=float))


def _curve(name: str, order: Fraction) -> Any:
    """D_α of the figure's mechanism, by table 2."""
    a = number(order)
    if name == "randomized response":
        return divergence(*response(Fraction(51, 49)), order)
    odds = (number(Fraction(1, 20)) * (a - 1)).exp() * a + (-a / 20).exp() * (a - 1)
    return (odds / (2 * a - 1)).log() / (a - 1)


_EPSILONS = {"randomized response": _log(Fraction(51, 49)), "Laplace": number(Fraction(1, 20))}
_ORDERS = [1 + Fraction(5, 4) ** step / 10 for step in range(45)]


@cache
def _curves(name: str) -> list[tuple[Any, Any]]:
    return [(number(order), _curve(name, order)) for order in _ORDERS]


def _preserved(name: str, count: int, baseline: Fraction) -> Any:
    """Probability preservation's factor at the best order tried, ∞ among them."""
    log = _log(1 / baseline)
    exponents = [(count * d - log) * (1 - 1 / a) + log for a, d in _curves(name)]
    return min([*exponents, count * _EPSILONS[name]], key=float).exp()


def _tighter(formula: Any, name: str, count: int, baseline: Fraction) -> tuple[Any, Any]:
    epsilon = _EPSILONS[name]
    generic = formula(count, epsilon, _log(1 / baseline))
    standard = _standard(count, epsilon, baseline)
    return _preserved(name, count, baseline), min(*generic, standard.lower(), key=float)


def _outperformed(
    formula: Any, name: str, first: int, last: int, baseline: Fraction
) -> tuple[Any, Any] | None:
    """For all numbers of mechanisms from the first to the last: with them both bounds grow."""
    epsilon = _EPSILONS[name]
    bound = formula(first, epsilon, _log(1 / baseline), baseline)
    return None if bound is None else (_standard(last, epsilon, baseline), bound)


_SETTINGS = [
    (name, count, baseline)
    for name in _EPSILONS
    for count in (1, 50, 250)
    for baseline in (Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6))
]
_ENDS = [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 26, 34, 44, 58, 78, 106, 148, 211, 251]
_RANGES = [
    (name, first, after - 1, baseline)
    for name in _EPSILONS
    for first, after in pairwise(_ENDS)
    for baseline in (Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6))
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="mironov2017.proposition-5",
        where="section 6, A, proposition 5; table 2",
        text="Randomized response has D_α = ln(p^α(1 − p)^(1 − α) + (1 − p)^α p^(1 − α))/(α − 1).",
        printed=lambda p, alpha: (
            (
                number(p) ** number(alpha) * number(1 - p) ** number(1 - alpha)
                + number(1 - p) ** number(alpha) * number(p) ** number(1 - alpha)
            ).log()
            / number(alpha - 1)
        ),
        check=equals(
            lambda p, alpha: divergence(*response(p / (1 - p)), alpha),
            [(p, alpha) for p in _KEPT for alpha in (Fraction(3, 2), Fraction(8))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-5.one",
        where="section 6, A, proposition 5; table 2",
        text="At α = 1 it is (2p − 1)·ln(p/(1 − p)).",
        printed=lambda p: number(2 * p - 1) * number(p / (1 - p)).log(),
        check=equals(lambda p: at_one(*response(p / (1 - p))), [(p,) for p in _KEPT], "enclosure"),
    ),
    Statement(
        id="mironov2017.table-2.response",
        where="section 6, table 2, first row",
        text="Randomized response is |ln(p/(1 − p))|-private.",
        conditions="our text has lost all large delimiters, bars among them",
        printed=lambda p: abs(number(p / (1 - p)).log()),
        check=equals(
            lambda p: number(greatest(*response(p / (1 - p)))).log(),
            [(p,) for p in _KEPT],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-6.pieces",
        where="section 6, B, proof of proposition 6",
        text="Left of both centres, between them and right of both the integral is "
        "e^((α − 1)/λ)/2, (e^((α − 1)/λ) − e^(−α/λ))/(2(2α − 1)) and e^(−α/λ)/2.",
        printed=lambda alpha, scale, piece: {
            "left": number((alpha - 1) / scale).exp() / 2,
            "between": (number((alpha - 1) / scale).exp() - number(-alpha / scale).exp())
            / number(2 * (2 * alpha - 1)),
            "right": number(-alpha / scale).exp() / 2,
        }[piece],
        check=equals(
            lambda alpha, scale, piece: _piece(alpha, scale, Fraction(1), piece),
            [(*case, piece) for case in _LAPLACE for piece in ("left", "between", "right")],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.proposition-6",
        where="section 6, B, proposition 6; table 2",
        text="D_α(Λ(0, λ)‖Λ(1, λ)) = "
        "ln(α/(2α − 1)·e^((α − 1)/λ) + (α − 1)/(2α − 1)·e^(−α/λ))/(α − 1).",
        conditions="α = 1, where it is a limit, has a statement of its own",
        printed=lambda alpha, scale: (
            (
                number(alpha / (2 * alpha - 1)) * number((alpha - 1) / scale).exp()
                + number((alpha - 1) / (2 * alpha - 1)) * number(-alpha / scale).exp()
            ).log()
            / number(alpha - 1)
        ),
        check=equals(_laplace, _LAPLACE, "quadrature"),
    ),
    Statement(
        id="mironov2017.corollary-2",
        where="section 6, B, corollary 2",
        text="Laplace noise of scale λ on a sensitivity of 1 is (α, ε)-RDP with proposition 6's "
        "ε, also where neighbours are nearer.",
        printed=lambda alpha, scale: (
            (
                number(alpha / (2 * alpha - 1)) * number((alpha - 1) / scale).exp()
                + number((alpha - 1) / (2 * alpha - 1)) * number(-alpha / scale).exp()
            ).log()
            / number(alpha - 1)
        ),
        check=at_most(
            lambda formula, alpha, scale, distance: (
                _laplace(alpha, scale, distance),
                formula(alpha, scale),
            ),
            [(*case, distance) for case in _LAPLACE[1:3] for distance in (1, Fraction(1, 3))],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.section-6.laplace.infinity",
        where="section 6, B, after corollary 2",
        text="D_∞(Λ(0, λ)‖Λ(1, λ)) = 1/λ.",
        printed=lambda scale: 1 / scale,
        check=equals(
            lambda scale: max((abs(x - 1) - abs(x)) / scale for x in (-1, 0, 1, 2)),
            [(scale,) for scale in _SCALES],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-6.laplace.one",
        where="section 6, B, after corollary 2; table 2",
        text="At α = 1 the divergence of the Laplace laws is 1/λ + e^(−1/λ) − 1.",
        printed=lambda scale: number(1 / scale) + number(-1 / scale).exp() - 1,
        check=equals(_laplace_entropy, [(scale,) for scale in _SCALES], "quadrature"),
    ),
    Statement(
        id="mironov2017.table-2.laplace",
        where="section 6, table 2, second row; B, after corollary 2",
        text="At α = 1 the divergence of the Laplace laws is .5/λ² + O(1/λ³).",
        conditions="O is at most 1/6, the next coefficient, for every λ that was tried",
        printed=lambda scale: 1 / (2 * scale**2),
        check=at_most(
            lambda formula, scale: (
                abs(_laplace_entropy(scale) - number(formula(scale))),
                number(1 / (6 * scale**3)),
            ),
            [(scale,) for scale in (*_SCALES, Fraction(1000))],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.section-6.gaussian.deviation",
        where="section 6, C, after the definition of G_σ",
        text="N(0, σ²) has the standard deviation σ².",
        printed=lambda sigma: sigma**2,
        corrections={
            "σ": Correction(
                lambda sigma: sigma,
                place="section 6, proof of proposition 7, whose density is e^(−x²/(2σ²))/(σ√(2π))",
                change="σ for σ²",
            )
        },
        check=equals(
            lambda sigma: integral(lambda x: (x * number(sigma)) ** 2 * density(x), -25, 25).sqrt(),
            [(Fraction(2),), (Fraction(1, 3),)],
            "quadrature",
        ),
        reason=(
            "σ² is the variance, of which σ is the root. Noise of deviation σ² has the budget "
            "curve α/(2σ⁴), and not the α/(2σ²) of corollary 3."
        ),
        instead="Draw noise of variance σ².",
    ),
    Statement(
        id="mironov2017.proposition-7.integral",
        where="section 6, C, proof of proposition 7, last but one line",
        text="∫ p^α q^(1 − α) = exp((α² − α)μ²/(2σ²)) for N(0, σ²) and N(μ, σ²).",
        printed=lambda alpha, mu, sigma: number((alpha**2 - alpha) * mu**2 / (2 * sigma**2)).exp(),
        check=equals(_overlap, _GAUSSIAN, "quadrature"),
    ),
    Statement(
        id="mironov2017.proposition-7",
        where="section 6, C, proposition 7; table 2",
        text="D_α(N(0, σ²)‖N(μ, σ²)) = αμ²/(2σ²).",
        printed=lambda alpha, mu, sigma: alpha * mu**2 / (2 * sigma**2),
        check=equals(_gaussian, _GAUSSIAN, "quadrature"),
    ),
    Statement(
        id="mironov2017.corollary-3",
        where="section 6, C, corollary 3",
        text="Gaussian noise on a sensitivity of 1 is (α, α/(2σ²))-RDP.",
        printed=lambda alpha, sigma: alpha / (2 * sigma**2),
        check=at_most(
            lambda formula, alpha, distance, sigma: (
                _gaussian(alpha, distance, sigma),
                number(formula(alpha, sigma)),
            ),
            [
                (Fraction(3), Fraction(1), Fraction(4)),
                (Fraction(3), Fraction(1, 3), Fraction(4)),
                (Fraction(10), Fraction(1), Fraction(1)),
            ],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.section-6.gaussian.composition",
        where="section 6, C, after corollary 3",
        text="n Gaussian mechanisms have the budget curve of one with σ/√n.",
        printed=lambda alpha, sigma, n: alpha / (2 * (sigma**2 / n)),
        check=equals(
            lambda alpha, sigma, n: _gaussian(alpha, Fraction(1), sigma, n),
            [(Fraction(3), Fraction(4), 10), (Fraction(3, 2), Fraction(1), 3)],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.figure-2.tighter",
        where="section 6, D, with figure 2",
        text="The analysis by the mechanism's own curve is never worse than a generic bound.",
        conditions="1, 50 and 250 mechanisms; at the orders that were tried, ∞ among them",
        printed=lambda n, epsilon, log: (
            (n * epsilon).exp(),
            (2 * epsilon * (n * log).sqrt()).exp(),
        ),
        check=at_most(_tighter, _SETTINGS, "enclosure"),
        reason="“tighter” but for few mechanisms, where it is the naïve bound, which is order ∞",
    ),
    Statement(
        id="mironov2017.figure-2.generic",
        where="section 6, D, with figure 2",
        text="Proposition 4 is consistently outperformed by the standard theorem with the best δ.",
        conditions="up to 250 mechanisms; the standard theorem is that of section 2",
        printed=lambda n, epsilon, log, baseline: (2 * epsilon * (n * log).sqrt()).exp(),
        corrections={
            "for the events of 10⁻³ and 10⁻⁶": Correction(
                lambda n, epsilon, log, baseline: (
                    (2 * epsilon * (n * log).sqrt()).exp() if baseline < Fraction(1, 10) else None
                ),
                proof="both bounds grow with the number of mechanisms, and are compared at the "
                "ends of ranges that have every number up to 250",
            )
        },
        check=at_most(_outperformed, _RANGES, "enclosure"),
        reason=(
            "For an event of probability .1 and few mechanisms proposition 4 is the better one. "
            "It is up to 218 responses and up to 140 Laplace mechanisms: a δ costs δ/Q there "
            "before it saves anything."
        ),
        instead="Compute both and take the smaller one, or compose the mechanisms' own curves.",
    ),
)
