"""Appendix A.2: the displays of the proof of lemma 4.2, at σy = 1 and σx = r.

With X = r·t for a standard normal t, Y given X is normal of mean ρt and variance 1 − ρ². Every
truth here is an integral over t of what that law says; the displays are the printed formulas.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import acb, arb, arb_series, ctx

from dpverify.ledger.checks import equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, density, integral, number
from dpverify.ledger.statements import Correction, Reading, Statement

__all__ = ["CLAIMS"]

_F = Fraction
_PAIRS = [(_F(1, 2), _F(1, 3)), (_F(1), _F(0)), (_F(2), _F(-3, 5))]
_POINTS = [(r, rho, _F(t)) for r, rho in _PAIRS for t in ("1/2", "-2")]
_FAR = 30


def _slopes(r: Fraction, rho: Fraction) -> tuple[arb, arb]:
    """(r − ρ)/√(1 − ρ²) and (r + ρ)/√(1 − ρ²)."""
    root = (1 - number(rho) ** 2).sqrt()
    return (number(r) - number(rho)) / root, (number(r) + number(rho)) / root


def _kept(r: Fraction, rho: Fraction, t: Fraction) -> arb:
    """P(|Y| < r|t| given t), as an integral of the normal density."""
    mean, deviation = number(rho * t), (1 - number(rho) ** 2).sqrt()
    bound = number(r * abs(t))
    return integral(lambda y: density((y - mean) / deviation) / deviation, -bound, bound)


def _below(end: Fraction, rho: Fraction, t: Any) -> Any:
    """P(Y < end·t given t), from Y's mean ρt and variance 1 − ρ²."""
    return cdf((number(end) * t - number(rho) * t) / (1 - number(rho) ** 2).sqrt())


def _over(function: Any, power: int, start: Any = 0) -> arb:
    """∫ t^power·φ(t)·function(t) dt from a start on."""
    return integral(lambda t: t**power * density(t) * function(t), number(start), _FAR)


def _whole(r: Fraction, rho: Fraction, power: int, start: Any = 0) -> arb:
    """E[|t|^power over |X| > |Y| and |t| > start]; for t < 0 the same as for t > 0, by symmetry."""
    return 2 * _over(lambda t: _below(r, rho, t) - _below(-r, rho, t), power, start)


def _first(r: Fraction, rho: Fraction, power: int) -> arb:
    """A₁ (power 1) or P₁ (power 0): what Φ of the upper end contributes, for t of either sign."""
    return _over(lambda t: _below(r, rho, t) + _below(r, -rho, t), power)


def _second(r: Fraction, rho: Fraction, power: int) -> arb:
    """The same of the lower end."""
    return _over(lambda t: _below(-r, rho, t) + _below(-r, -rho, t), power)


def _fractions(r: Fraction, rho: Fraction) -> arb:
    a, b = number(r), number(rho)
    return (a - b) / (1 + a * a - 2 * a * b).sqrt() + (a + b) / (1 + a * a + 2 * a * b).sqrt()


def _atans(r: Fraction, rho: Fraction) -> arb:
    return sum((slope.atan() for slope in _slopes(r, rho)), arb(0))


def _tail(r: Fraction, rho: Fraction, start: Fraction) -> arb:
    """P(|t| > start, |X| > |Y|)."""
    return _whole(r, rho, 0, start)


def _polar(low: arb, high: arb, start: Fraction) -> arb:
    """(1/π)∫ exp(−start²/(2cos²θ)) dθ."""
    square = number(start**2) / 2

    def weight(theta: acb) -> acb:
        return (-square / theta.cos() ** 2).exp()

    return integral(weight, low, high) / arb.pi()


def _polar_from_pole(slope: arb, start: Fraction) -> arb:
    """(1/2π)∫ exp(−start²/(2cos²θ)) dθ from −π/2 to atan(slope).

    Within 10⁻² of −π/2 the integrand is below exp(−start²·4999), and left out.
    """
    low = -arb.pi() / 2 + arb(1) / 100
    return _polar(low, slope.atan(), start) / 2


def _derivative(r: Fraction, rho: Fraction) -> arb:
    """Derivative in ρ of (28), by its power series."""
    kept = ctx.cap
    ctx.cap = 2
    try:
        b = arb_series([number(rho), 1])
        root = (1 - b * b).sqrt()
        total = ((number(r) - b) / root).atan() + ((number(r) + b) / root).atan()
        found: arb = total[1] / arb.pi()
    finally:
        ctx.cap = kept
    return found


def _derivative_printed(r: Fraction, rho: Fraction) -> arb:
    a, b = number(r), number(rho)
    below = (1 + a * a - 2 * a * b) * (1 + a * a + 2 * a * b) * (1 - b * b).sqrt()
    return 2 * a * b * (a * a - 1) / below


_TAILS = [(r, rho, _F(t)) for r, rho in _PAIRS for t in ("1/2", "2")]
_ROOT = 1 / (2 * arb.pi()).sqrt()


def _printed_substitution(r: Fraction, rho: Fraction, t: Fraction) -> arb:
    """Inner integral after the substitution: limits ±|x|/σy − ρx/σx, density e^(−s²)."""
    low, high = (number(sign * r * abs(t) - rho * t) for sign in (-1, 1))
    return integral(lambda s: (-s * s).exp(), low, high) / (2 * arb.pi()).sqrt()


def _right_substitution(r: Fraction, rho: Fraction, t: Fraction) -> arb:
    root = (1 - number(rho) ** 2).sqrt()
    low, high = (number(sign * r * abs(t) - rho * t) / root for sign in (-1, 1))
    return integral(density, low, high)


def _bracketed(r: Fraction, rho: Fraction, start: Fraction, second: int) -> arb:
    """2∫φ(x)(Φ(z) − Φ(−z′)) dx from a start on; z has r − ρ, and z′ the first or second slope."""
    slopes = _slopes(r, rho)

    def weighted(x: acb) -> acb:
        return 2 * density(x) * (cdf(slopes[0] * x) - cdf(-slopes[second] * x))

    return integral(weighted, number(start), _FAR)


_X, _Y, _RHO = letters("x y rho")

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.appendix-a.2.density",
        where="appendix A.2, the joint density and its second line; σx = σy = 1",
        text="(x² − 2ρxy + y²)/(1 − ρ²) = x² + (y − ρx)²/(1 − ρ²), in the exponents.",
        printed=lambda x, y, rho: x**2 + (y - rho * x) ** 2 / (1 - rho**2),
        check=equals(
            lambda x, y, rho: (x**2 - 2 * rho * x * y + y**2) / (1 - rho**2),
            [(_X, _Y, _RHO)],
            "identity",
        ),
    ),
    Statement(
        id="li2023.appendix-a.2.substitution",
        where="appendix A.2, A after the change of variables, first line",
        text="P(|Y| < |x| given x) = ∫ e^(−s²)/√(2π) ds between ±|x|/σy − ρx/σx.",
        printed=_printed_substitution,
        corrections={
            "e^(−s²/2), limits divided by √(1 − ρ²)": Correction(
                _right_substitution,
                place="A₁ below, a Φ whose arguments are divided by √(1 − ρ²)",
            )
        },
        check=equals(_kept, _POINTS, "quadrature"),
        reason=(
            "The exponent should be −s²/2 and the limits divided by √(1 − ρ²). Y given X = x is "
            "normal, of mean ρσy·x/σx and deviation σy√(1 − ρ²)."
        ),
        instead="Use A₁ and A₂, which are right.",
    ),
    Statement(
        id="li2023.appendix-a.2.normal",
        where="appendix A.2, A after the change of variables, second line",
        text="P(|Y| < |x|) given X = x is Φ(|x|/σy − ρx/σx) − Φ(−|x|/σy − ρx/σx).",
        printed=lambda r, rho, t: (
            cdf(number(r * abs(t) - rho * t)) - cdf(number(-r * abs(t) - rho * t))
        ),
        corrections={
            "arguments divided by √(1 − ρ²)": Correction(
                lambda r, rho, t: (
                    lambda root: (
                        cdf(number(r * abs(t) - rho * t) / root)
                        - cdf(number(-r * abs(t) - rho * t) / root)
                    )
                )((1 - number(rho) ** 2).sqrt()),
                place="A₁ two lines below, whose arguments are divided by √(1 − ρ²)",
                change="a division by √(1 − ρ²)",
            )
        },
        check=equals(_kept, _POINTS, "quadrature"),
        reason="Φ's arguments lack the division by √(1 − ρ²), the deviation of Y given X. At ρ = "
        "0 both agree; lemma 4.2 has it right.",
        instead="Use A₁ and A₂, which are right.",
    ),
    Statement(
        id="li2023.appendix-a.2.argument",
        where="appendix A.2, A after the change of variables, third line; t > 0",
        text="The integrand's difference is Φ(z) − Φ(−z) with z = (r + ρ)t/√(1 − ρ²).",
        reason="Our text of the line has σx/σy without |t|, x/σx for t, and r + ρ in both "
        "arguments. "
        "Look in print for r − ρ in the first one, which A₁ in the next line has.",
    ),
    Statement(
        id="li2023.appendix-a.2.a1",
        where="appendix A.2, A₁, last line; σx = 1",
        text="A₁ = 1/√(2π) + (1/2√(2π))((r−ρ)/√(1+r²−2rρ) + (r+ρ)/√(1+r²+2rρ)).",
        printed=lambda r, rho: _ROOT + _ROOT / 2 * _fractions(r, rho),
        check=equals(lambda r, rho: _first(r, rho, 1), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.appendix-a.2.a2",
        where="appendix A.2, A₂, last line; σx = 1",
        text="A₂ = 1/√(2π) − (1/2√(2π))((r−ρ)/√(1+r²−2rρ) + (r+ρ)/√(1+r²+2rρ)).",
        printed=lambda r, rho: _ROOT - _ROOT / 2 * _fractions(r, rho),
        check=equals(lambda r, rho: _second(r, rho, 1), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.equation-27",
        where="appendix A.2, equation 27; in units of σx",
        text="E[|X| over |X| > |Y|] = (1/√(2π))((r−ρ)/√(1+r²−2rρ) + (r+ρ)/√(1+r²+2rρ)).",
        printed=lambda r, rho: _ROOT * _fractions(r, rho),
        check=equals(lambda r, rho: _whole(r, rho, 1), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.appendix-a.2.p-bracket",
        where="appendix A.2, the conditional density of the tail bound",
        text="P(|Y| < |x| given x) = Φ(z) − Φ(−z) with z = (r|t| − ρt)/√(1 − ρ²).",
        printed=lambda r, rho, t: (lambda z: cdf(z) - cdf(-z))(
            number(r * abs(t) - rho * t) / (1 - number(rho) ** 2).sqrt()
        ),
        corrections={
            "Φ(z) − Φ(−(r|t| + ρt)/√(1 − ρ²))": Correction(
                lambda r, rho, t: (
                    lambda root: (
                        cdf(number(r * abs(t) - rho * t) / root)
                        - cdf(-number(r * abs(t) + rho * t) / root)
                    )
                )((1 - number(rho) ** 2).sqrt()),
                place="P₁ and P₂ in the next lines",
                change="the sign of ρ in the second argument",
            )
        },
        check=equals(_kept, _POINTS, "quadrature"),
        reason="The second argument should have r|t| + ρt. The integrals over t and −t together "
        "come out the same, so that P and the tail stand.",
        instead="Nothing: P stands.",
    ),
    Statement(
        id="li2023.appendix-a.2.p-integral",
        where="appendix A.2, P before P₁ and P₂",
        text="P = ∫φ(t)(Φ(z) − Φ(−z))dt over all t, with z = (r|t| − ρt)/√(1 − ρ²).",
        printed=lambda r, rho: (_bracketed(r, rho, _F(0), 0) + _bracketed(r, -rho, _F(0), 0)) / 2,
        check=equals(lambda r, rho: _whole(r, rho, 0), _PAIRS, "quadrature"),
        reason="the bracket is another one at each t, see appendix-a.2.p-bracket",
    ),
    Statement(
        id="li2023.appendix-a.2.p1",
        where="appendix A.2, P₁, last line",
        text="P₁ = ½ + (1/2π)(atan((r−ρ)/√(1−ρ²)) + atan((r+ρ)/√(1−ρ²))).",
        printed=lambda r, rho: arb(1) / 2 + _atans(r, rho) / (2 * arb.pi()),
        check=equals(lambda r, rho: _first(r, rho, 0), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.appendix-a.2.p2",
        where="appendix A.2, P₂",
        text="P₂ = ½ − (1/2π)(atan((r−ρ)/√(1−ρ²)) + atan((r+ρ)/√(1−ρ²))).",
        printed=lambda r, rho: arb(1) / 2 - _atans(r, rho) / (2 * arb.pi()),
        check=equals(lambda r, rho: _second(r, rho, 0), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.equation-28",
        where="appendix A.2, equation 28",
        text="P = (1/π)(atan((r−ρ)/√(1−ρ²)) + atan((r+ρ)/√(1−ρ²))).",
        printed=lambda r, rho: _atans(r, rho) / arb.pi(),
        check=equals(lambda r, rho: _whole(r, rho, 0), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.appendix-a.2.derivative",
        where="appendix A.2, ∂P/∂ρ",
        text="∂P/∂ρ = 2rρ(r²−1)/((1+r²−2rρ)(1+r²+2rρ)√(1−ρ²)).",
        printed=_derivative_printed,
        corrections={
            "divided by π": Correction(
                lambda r, rho: _derivative_printed(r, rho) / arb.pi(),
                place="equation 28, which has the factor 1/π",
                change="a factor 1/π",
            )
        },
        check=equals(_derivative, [(_F(1, 2), _F(1, 3)), (_F(2), _F(-3, 5))], "enclosure"),
        reason="P has the factor 1/π, and so has its derivative. Its sign, which is what the "
        "proof uses, is right.",
        instead="Nothing: the sign, which the proof uses, is right.",
    ),
    Statement(
        id="li2023.appendix-a.2.polar",
        where="appendix A.2, P̃₁ (P̃₂ is the same at another slope); tσx for t",
        text="∫_t φ(x)Φ((r−ρ)x/√(1−ρ²)) dx in polar coordinates, from −π/2 to the slope.",
        printed=lambda r, rho, t: _polar_from_pole(_slopes(r, rho)[0], t),
        check=equals(
            lambda r, rho, t: _over(lambda x: _below(r, rho, x), 0, t),
            [(r, rho, _F(2)) for r, rho in _PAIRS],
            "quadrature",
        ),
    ),
    Statement(
        id="li2023.appendix-a.2.tail-integral",
        where="appendix A.2, the display above P̃₁: P(|X| > t, |X| > |Y|); σx = 1",
        text="It is 2∫_t φ(x)(Φ(z) − Φ(−z)) dx with z = (r|x| − ρx)/√(1 − ρ²).",
        printed=lambda r, rho, t: _bracketed(r, rho, t, 0),
        corrections={
            "r + ρ in the second argument": Correction(
                lambda r, rho, t: _bracketed(r, rho, t, 1),
                place="P̃₂ below it, whose angle goes up to the arctangent of −(r + ρ)/√(1 − ρ²)",
                change="+ for − before ρx in the second argument",
            )
        },
        check=equals(_tail, _TAILS, "quadrature"),
        reason="The second argument has r|x| − ρx for r|x| + ρx. The factor 2 stands for both "
        "signs of x, so that the two no longer make up for each other, as they do in P.",
        instead="Use P̃₁ and P̃₂, which have the right arguments.",
    ),
    Statement(
        id="li2023.appendix-a.2.tail-limits",
        where="appendix A.2, P(|X| > t, |X| > |Y|), first line",
        text="The angle runs from atan((r−ρ)/√(1−ρ²)) to itself.",
        reason="Our text has r − ρ in both limits, and no sign before the lower one. Look in "
        "print for −(r + ρ) there, which P̃₂ has; with it the angles are those of "
        "equation 28.",
    ),
    Statement(
        id="li2023.appendix-a.2.tail-limits.second",
        where="appendix A.2, P(|X| > t, |X| > |Y|), second line",
        text="The angle runs between ±atan((r−ρ)/√(1−ρ²)).",
        reason="Our text has r − ρ in the lower limit too. Look in print for r + ρ there, "
        "which P̃₂ and equation 28 have; both agree for ρ = 0 only.",
    ),
    Statement(
        id="li2023.appendix-a.2.p-as-angle",
        where="appendix A.2, “P in (28) can be written as”",
        text="P = (1/π)·(the angle between ±atan((r−ρ)/√(1−ρ²))).",
        reason="Our text has r − ρ in the lower limit too. Look in print for r + ρ there, "
        "which equation 28 has; both agree for ρ = 0 only.",
    ),
    Statement(
        id="li2023.appendix-a.2.boundary",
        where="appendix A.2, last lines: ρ = ±1",
        text="P(|X| > |Y|) = 0, that is P(|X| ≤ |Y|) = 1; by |X| = r|Y|.",
        conditions="not stated: r ≤ 1",
        printed=lambda r: _F(1),
        readings={
            "for r of at most 1": Reading(
                lambda r: _F(1) if r <= 1 else None,
                place="lemma 4.2, part 1, whose proof it concludes: “When r ≤ 1”",
                covers="the r of lemma 4.3, β/‖u‖ up to 1",
            )
        },
        # both signs of Y at one value, the law of |Y| doesn't matter
        check=equals(
            lambda r: _F(sum(1 - (abs(r * y) > abs(y)) for y in (-1, 1)), 2),
            [(_F(1, 2),), (_F(1),), (_F(2),)],
            "enumeration",
        ),
        reason="At ρ = ±1 |X| is r|Y|, so that for r > 1 the probability is 1 and not 0. It is 0 "
        "up to r = 1.",
        instead="Treat ρ = ±1 with r > 1 apart.",
    ),
)
