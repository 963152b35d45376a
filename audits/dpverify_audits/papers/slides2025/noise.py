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

from dpverify.ledger.checks import Formula, at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, density, gaussian_delta, integral, number
from dpverify.ledger.statements import Reading, Statement

__all__ = ["CLAIMS", "appendix_a_sigma"]

_MATRIX = ((1, 2), (3, -1), (0, 2))
_SQUARE = ((1, 3), (2, 4))
_SMALL = Fraction(1, 10**6)
_TARGETS = [
    (Fraction(e), d)
    for e in ("1/10", "1", "5", "20")
    for d in (_SMALL, Fraction(1, 100), Fraction(49, 100))
]
_FEW = (Fraction(39221, 10**6), Fraction(13, 25))
"""Just above ε = ln(2δ), where the formula gives next to no noise."""


def appendix_a_sigma(epsilon: Fraction, delta: Fraction) -> arb:
    """σ/w of theorem 1; a ball that is not a number where the radicand is negative."""
    e, d = number(epsilon), number(delta)
    return (2 * (-(2 * d).log() + e)).sqrt() / e


def _delta_at(formula: Any, epsilon: Fraction, delta: Fraction) -> tuple[arb, Any] | None:
    said = formula(epsilon, delta)
    return None if said is None else (gaussian_delta(number(epsilon), 1 / said), delta)


def _delta_nearer(
    formula: Any, e: Fraction, d: Fraction, share: Fraction
) -> tuple[arb, Any] | None:
    said = formula(e, d)
    return None if said is None else (gaussian_delta(number(e), number(share) / said), d)


def _per_unit(formula: Any, sensitivity: int, e: Fraction, d: Fraction) -> arb | None:
    said = formula(e, d, sensitivity)
    return None if said is None else said / sensitivity


def _usual(formula: Formula) -> dict[str, Reading]:
    """For δ below ½, which the slides leave out and the summarised paper has."""
    return {
        "for δ below ½": Reading(
            lambda e, d, *rest: formula(e, d, *rest) if d < Fraction(1, 2) else None,
            place="page 9: “usually very small”, of δ",
            covers="every δ that the slides have in mind",
        )
    }


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


def _moved(formula: Any, side: str, matrix: Sequence[Sequence[int]]) -> tuple[int, Any] | None:
    """The sensitivity of xP, or of Px, squared, and what is said."""
    said = formula(side, matrix)
    rows = matrix if side == "xP" else list(zip(*matrix, strict=True))
    return None if said is None else (_sensitivity(rows), said)


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
        text="Gaussian noise goes by the ℓ2-sensitivity: the mean privacy loss of N(0, I) is "
        "‖v‖²/2.",
        reason="the slide says what the noise goes by; the formula is ours",
        printed=lambda v: Fraction(sum(a * a for a in v), 2),
        check=equals(_mean_loss, [((1,),), ((3, 4),), ((1, -2, 2),)], "quadrature"),
    ),
    Statement(
        id="slides2025.page-10.concentration",
        where="Mechanisms for Differential Privacy",
        text="Gaussian noise is used for its tighter concentration around 0.",
        reason="Neither a measure nor how many numbers get noise is said. By variance, with "
        "appendix A's noise and P of ±1/√k, it is from k = ln(1/2δ) + ε numbers on, 15 at ε = 1 "
        "and δ = 10⁻⁶; for fewer Laplace noise is smaller.",
    ),
    Statement(
        id="slides2025.page-12.sensitivity",
        where="Privacy via JL Transform, step 2, with appendix A's w₂(P) = maxᵢ ‖eᵢP‖",
        text="One bit moves the projection by at most the longest row of P, squared norms.",
        conditions="appendix A projects by xP, page 12 by Px",
        printed=lambda side, matrix: _longest_row(matrix),
        readings={
            "xP, as in appendix A: bits belong to rows": Reading(
                lambda side, matrix: _longest_row(matrix) if side == "xP" else None,
                place="appendix A: “A bit-flip in X changes a single row of XP”",
                covers="xP, the form in which appendix A proves privacy",
            )
        },
        check=at_most(
            _moved,
            [
                (side, matrix)
                for matrix in (_SQUARE, tuple(zip(*_SQUARE, strict=True)))
                for side in ("Px", "xP")
            ],
            "enumeration",
        ),
        reason="Page 12 multiplies from the left, appendix A from the right: take rows for xP, "
        "columns for Px. At P = ((1, 3), (2, 4)) the longest row has the squared norm 20, and one "
        "bit moves Px by 25.",
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
        conditions="not stated: δ < ½",
        printed=appendix_a_sigma,
        readings=_usual(appendix_a_sigma),
        check=at_most(_delta_at, [*_TARGETS, _FEW], "quadrature"),
        mechanisms=("dp-rp-g",),
        reason="For δ above ½ and ε just above ln(2δ) the formula gives next to no noise. At "
        "δ = 0.52 and ε = 0.039221 σ is 0.02·w₂(P), and the δ that it has is 1.",
        instead="Never choose δ of ½ or more.",
    ),
    Statement(
        id="slides2025.appendix-a.core-lemma",
        where="appendix A, core lemma",
        text="The noise of appendix A also suffices for points that are nearer than w.",
        conditions="not stated: δ < ½, as in the item before",
        printed=appendix_a_sigma,
        readings=_usual(appendix_a_sigma),
        check=at_most(
            _delta_nearer,
            [(e, d, Fraction(s)) for e, d in (*_TARGETS[::4], _FEW) for s in ("1/4", "1/2", "1")],
            "quadrature",
        ),
        mechanisms=("dp-rp-g",),
        reason="The noise is that of the item before, which is next to none where ε is just above "
        "ln(2δ). At δ = 0.52 and ε = 0.039221 even points at a distance of w/4 have a δ of 1.",
        instead="Never choose δ of ½ or more.",
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
        conditions="the slide names the region: R, for δ < ½, is where it sends one, “See Section "
        "3.2.1 of the paper for full derivation”",
        printed=lambda d: (-2 * (2 * number(d)).log()).sqrt(),
        check=at_most(
            lambda f, d: (cdf(-f(d)), d),
            [(_SMALL,), (Fraction(1, 100),), (Fraction(49, 100),)],
            "enclosure",
        ),
    ),
    Statement(
        id="slides2025.appendix-a.partition",
        where="appendix A, proof sketch, step 3",
        text="With that σ the outer region begins where densities still differ by ≤ e^ε.",
        conditions="the slide names the region: R, for δ < ½, is where it sends one, “See Section "
        "3.2.1 of the paper for full derivation”",
        printed=appendix_a_sigma,
        check=at_most(_regions, _TARGETS, "enclosure"),
    ),
    Statement(
        id="slides2025.appendix-c.gaussian-mechanism",
        where="appendix C, first item",
        text="σ = S·√(2(ln(1/2δ) + ε))/ε is (ε, δ)-private at sensitivity S.",
        conditions="not stated: δ < ½",
        printed=lambda e, d, s: s * appendix_a_sigma(e, d),
        readings=_usual(lambda e, d, s: s * appendix_a_sigma(e, d)),
        check=at_most(
            lambda f, e, d, s: _delta_at(lambda *target: _per_unit(f, s, *target), e, d),
            [(*target, s) for s in (1, 7) for target in (*_TARGETS[::5], _FEW)],
            "quadrature",
        ),
        reason="For δ above ½ and ε just above ln(2δ) the formula gives next to no noise. At "
        "δ = 0.52 and ε = 0.039221 σ is 0.02·S, and the δ that it has is 1.",
        instead="Never choose δ of ½ or more.",
    ),
)
