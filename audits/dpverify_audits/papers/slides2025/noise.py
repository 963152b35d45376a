"""Pages 9 to 13 and appendix A: what privacy is, and how much noise gives it.

The truth for Gaussian noise is the integral of (density − e^ε·density)₊, which for a shift by v is
that of one dimension and a shift by ‖v‖; projections are tried on all binary vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, density, gaussian_delta, integral, number
from dpverify.ledger.statements import Reading, Statement

__all__ = ["CLAIMS", "appendix_a_sigma"]

_MATRIX = ((1, 2), (3, -1), (0, 2))
_SQUARE = ((1, 2), (3, 4))
_SMALL = Fraction(1, 10**6)
_TARGETS = [
    (Fraction(e), d)
    for e in ("1/10", "1", "5", "20")
    for d in (_SMALL, Fraction(1, 100), Fraction(49, 100))
]


def appendix_a_sigma(epsilon: Fraction, delta: Fraction) -> arb:
    """σ/w of theorem 1; a ball that is not a number where the radicand is negative."""
    e, d = number(epsilon), number(delta)
    return (2 * (-(2 * d).log() + e)).sqrt() / e


def _delta_at(formula: Any, epsilon: Fraction, delta: Fraction) -> tuple[arb, Any] | None:
    said = formula(epsilon, delta)
    return None if said is None else (gaussian_delta(number(epsilon), 1 / said), delta)


def _delta_nearer(formula: Any, e: Fraction, d: Fraction, share: Fraction) -> tuple[arb, Any]:
    return gaussian_delta(number(e), number(share) / formula(e, d)), d


def _laplace_loss(formula: Any, shift: tuple[int, ...], epsilon: Fraction) -> Any:
    """Largest privacy loss over a lattice of outputs, for the scale that the formula gives."""
    scale = formula(Fraction(sum(map(abs, shift))), epsilon)
    worst = max(
        sum(abs(x - v) - abs(x) for x, v in zip(point, shift, strict=True))
        for point in product(range(-4, 5), repeat=len(shift))
    )
    return worst / scale, epsilon


def _mean_loss(shift: tuple[int, ...]) -> arb:
    """Kullback-Leibler divergence of N(v, I) from N(0, I), coordinate by coordinate, integrated."""

    def part(v: arb) -> arb:
        def loss(x: Any) -> Any:
            return density(x - v) * v * (x - v / 2)

        return integral(loss, v - 40, v + 40)

    return sum((part(arb(v)) for v in shift), arb(0))


def _tail_is_lighter(t: Fraction, sigma_squared: Fraction, scale: arb) -> tuple[arb, arb]:
    """P(|N(0, σ²)| > t) and P(|Laplace(b)| > t)."""
    x = number(t)
    return 2 * cdf(-x / number(sigma_squared).sqrt()), (-x / scale).exp()


def _images(matrix: Sequence[Sequence[int]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(x, xP) for all binary x."""
    return [
        (x, tuple(sum(a * b for a, b in zip(x, c, strict=True)) for c in zip(*matrix, strict=True)))
        for x in product((0, 1), repeat=len(matrix))
    ]


def _sensitivity(matrix: Sequence[Sequence[int]]) -> int:
    """Largest ‖xP − x′P‖² over binary x and x′ that differ in one bit."""
    images = _images(matrix)
    return max(
        sum((a - b) ** 2 for a, b in zip(y, z, strict=True))
        for x, y in images
        for u, z in images
        if sum(a != b for a, b in zip(x, u, strict=True)) == 1
    )


def _longest_row(matrix: Sequence[Sequence[int]]) -> int:
    return max(sum(a * a for a in row) for row in matrix)


def _changed_rows(users: int) -> int:
    """Most rows of XP that change with one bit of X (every row of P is nonzero)."""
    table = list(product(_images(_MATRIX), repeat=users))
    first = table[0]
    counts = [
        sum(y != z for (_, y), (_, z) in zip(first, other, strict=True))
        for other in table
        if sum(
            a != b
            for (x, _), (u, _) in zip(first, other, strict=True)
            for a, b in zip(x, u, strict=True)
        )
        == 1
    ]
    return max(counts)


def _rotated_ratio(x: Any, v: tuple[int, int], norm: int) -> Any:
    """2σ² times the log of the ratio of densities at x."""
    return sum(a * a for a in x) - sum((a - b) ** 2 for a, b in zip(x, v, strict=True))


def _along(x: Any, v: tuple[int, int], norm: int) -> Any:
    """The same by x's coordinate along v alone."""
    coordinate = sum(a * b for a, b in zip(x, v, strict=True)) / norm
    return 2 * norm * coordinate - norm**2


def _regions(formula: Any, e: Fraction, d: Fraction) -> tuple[arb, arb]:
    """Least R that the outer region needs, and largest that the inner one bears, in units of σ."""
    mu = 1 / formula(e, d)
    return (-2 * (2 * number(d)).log()).sqrt(), number(e) / mu - mu / 2


_LAPLACE = arb(1)
CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-9.definition",
        where="Differential Privacy: Concept and Definition",
        text="(ε, δ): P(S) ≤ e^ε·Q(S) + δ for data sets that differ in one individual, every S.",
        reason="a definition, and the usual one; page 9 and appendix A differ on the neighbours",
    ),
    Statement(
        id="slides2025.page-10.laplace",
        where="Mechanisms for Differential Privacy",
        text="Laplace noise of scale Δ₁/ε, Δ₁ the ℓ1-sensitivity, is (ε, 0)-private.",
        printed=lambda size, epsilon: size / epsilon,
        check=at_most(
            _laplace_loss,
            [(v, Fraction(e)) for v in ((1,), (2, -1), (3, 0)) for e in (1, 5)],
            "enumeration",
        ),
        mechanisms=("dp-oporp", "dp-rp-g-opt-b", "dp-rp-l", "fjlt", "raw-data-g-opt", "sjlt"),
    ),
    Statement(
        id="slides2025.page-10.gaussian",
        where="Mechanisms for Differential Privacy",
        text="The privacy loss of N(0, I) noise depends on the ℓ2-norm: its mean is ‖v‖²/2.",
        printed=lambda v: Fraction(sum(a * a for a in v), 2),
        check=equals(_mean_loss, [((1,),), ((3, 4),), ((1, -2, 2),)], "quadrature"),
    ),
    Statement(
        id="slides2025.page-10.concentration",
        where="Mechanisms for Differential Privacy",
        text="Gaussian noise for (ε, δ) is more concentrated around 0 than Laplace noise for "
        "(ε, 0), here by P(|noise| > t).",
        conditions="not stated: for how many numbers; ε = 1, δ = 10⁻⁶, the noise of appendix A",
        printed=lambda: [
            (Fraction(t), Fraction(28), scale) for t in (1, 4, 8) for scale in (_LAPLACE, arb(8))
        ],
        readings={
            "64 numbers xP with P of ±1/8, “scaled to ℓ2-sensitivity”": Reading(
                lambda: [(Fraction(t), Fraction(28), arb(8)) for t in (1, 4, 8)],
                place="the same item: “Adds Gaussian noise scaled to ℓ2-sensitivity”",
                covers="projections to many numbers, the use of the slides",
            )
        },
        check=wherever(_tail_is_lighter, "enclosure"),
        reason="For one number of sensitivity 1 Gaussian noise has 14 times the variance, and is "
        "outside ±1 with 85 % in place of 37 %. It saves with many numbers, whose "
        "ℓ1-sensitivity, here 8, is far above the ℓ2 one.",
        instead="For one number take Laplace noise.",
    ),
    Statement(
        id="slides2025.page-12.sensitivity",
        where="Privacy via JL Transform, step 2, with appendix A's w₂(P) = maxᵢ ‖eᵢP‖",
        text="One bit moves the projection by at most the longest row of P.",
        conditions="appendix A projects by xP, page 12 by Px",
        printed=lambda matrix: _longest_row(list(zip(*matrix, strict=True))),
        readings={
            "xP, as in appendix A: bits belong to rows": Reading(
                lambda matrix: _longest_row(matrix),
                place="appendix A: “A bit-flip in X changes a single row of XP”",
                covers="xP, the form in which appendix A proves privacy",
            )
        },
        check=equals(_sensitivity, [(_MATRIX,), (_SQUARE,)], "enumeration"),
        reason="Page 12 multiplies from the left, appendix A from the right: take rows for xP, "
        "columns for Px. The wrong ones give a sensitivity, and noise, that may be too small.",
        instead="Take rows for xP and columns for Px.",
    ),
    Statement(
        id="slides2025.appendix-a.w2",
        where="appendix A, first item",
        text="w₂(P)² is the largest squared norm of a row of P: xP's squared sensitivity.",
        printed=_longest_row,
        check=equals(_sensitivity, [(_MATRIX,), (_SQUARE,)], "enumeration"),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="slides2025.appendix-a.one-row",
        where="appendix A, proof sketch, step 1",
        text="A flipped bit of X changes one row of XP.",
        printed=lambda users: 1,
        check=equals(_changed_rows, [(1,), (2,)], "enumeration"),
    ),
    Statement(
        id="slides2025.appendix-a.sigma",
        where="appendix A, first item",
        text="σ = w₂(P)·√(2(ln(1/2δ) + ε))/ε is (ε, δ)-private.",
        conditions="δ < ½, as the paper that is summarised says",
        printed=appendix_a_sigma,
        check=at_most(_delta_at, _TARGETS, "quadrature"),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="slides2025.appendix-a.sigma.condition",
        where="appendix A, first item: δ < ½ is left out",
        text="The noise of appendix A also suffices for δ above ½.",
        printed=appendix_a_sigma,
        readings={
            "for δ below ½": Reading(
                lambda e, d: appendix_a_sigma(e, d) if d < Fraction(1, 2) else None,
                place="page 9: “usually very small”, of δ",
                covers="every δ that the slides have in mind",
            )
        },
        check=at_most(
            _delta_at,
            [
                (Fraction(1), Fraction(13, 25)),
                (Fraction(39221, 10**6), Fraction(13, 25)),
                (Fraction(1), Fraction(49, 100)),
                (Fraction(1, 10), Fraction(1, 100)),
            ],
            "quadrature",
        ),
        reason="Above δ = ½ the logarithm turns negative: the formula gives too little noise or "
        "none. Such δ are no privacy at all.",
        instead="Never choose δ of ½ or more.",
    ),
    Statement(
        id="slides2025.appendix-a.core-lemma",
        where="appendix A, core lemma",
        text="The noise of appendix A also suffices for points that are nearer than w.",
        printed=appendix_a_sigma,
        check=at_most(
            _delta_nearer,
            [(e, d, Fraction(s)) for e, d in _TARGETS[::4] for s in ("1/4", "1/2", "1")],
            "quadrature",
        ),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="slides2025.appendix-a.rotation",
        where="appendix A, proof sketch, step 2",
        text="The ratio of densities depends on the coordinate along the change alone.",
        printed=_along,
        check=equals(
            _rotated_ratio,
            [(letters("a b"), (3, 4), 5)],
            "identity",
        ),
    ),
    Statement(
        id="slides2025.appendix-a.outer",
        where="appendix A, proof sketch, step 3",
        text="Beyond R = σ√(2 ln(1/2δ)) the noise has mass at most δ.",
        printed=lambda d: (-2 * (2 * number(d)).log()).sqrt(),
        check=at_most(
            lambda f, d: (cdf(-f(d)), d),
            [(_SMALL,), (Fraction(1, 100),), (Fraction(49, 100),)],
            "enclosure",
        ),
        reason="The slide names the region; R is in section 3.2.1 of the paper.",
    ),
    Statement(
        id="slides2025.appendix-a.partition",
        where="appendix A, proof sketch, step 3",
        text="With that σ the outer region begins where densities still differ by ≤ e^ε.",
        printed=appendix_a_sigma,
        check=at_most(_regions, _TARGETS, "enclosure"),
    ),
    Statement(
        id="slides2025.appendix-c.gaussian-mechanism",
        where="appendix C, first item",
        text="σ = S·√(2(ln(1/2δ) + ε))/ε is (ε, δ)-private at sensitivity S, δ < ½.",
        printed=lambda s, e, d: s * appendix_a_sigma(e, d),
        check=at_most(
            lambda f, s, e, d: (gaussian_delta(number(e), s / f(s, e, d)), d),
            [(s, *target) for s in (1, 7) for target in _TARGETS[::5]],
            "quadrature",
        ),
    ),
)
