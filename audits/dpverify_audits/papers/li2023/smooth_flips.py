"""Sections 4.2 to 4.4: the steps of the proofs on flips by level, and on OPORPs.

Rules are tried for all neighbours on the lattice of quarters, with odds e^(ε/k) = 3.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import ceil
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, number
from dpverify.ledger.statements import Correction, Statement

from .gaussian_signs import maximum_bound
from .sign_flips import (
    BINS,
    DENSE,
    R,
    moves,
    plus,
    privacy,
    smooth,
)

__all__ = ["CLAIMS"]

_F = Fraction

_LEVELS = [pair for pair in sorted({(smooth(x), smooth(y)) for x, y in moves(DENSE)}) if all(pair)]
"""(L, L′) of neighbours."""
_LETTERED: list[tuple[Any, int, int]] = [(letters("r")[0], *pair) for pair in _LEVELS]


def _bin(p: int, k: int, position: int) -> int:
    """Bin of a position among p, from the consecutive bins themselves."""
    width = p // k
    bins = [range(j * width + 1, (j + 1) * width + 1) for j in range(k)]
    return next(j for j, part in enumerate(bins, 1) if position in part)


def _touched(p: int, k: int) -> int:
    """Most projected values that one attribute changes, over all permutations."""
    width = p // k
    return max(
        sum(i in order[j * width : (j + 1) * width] for j in range(k))
        for order in permutations(range(p))
        for i in range(p)
    )


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.theorem-4.7.levels",
        where="section 4.2, proof of theorem 4.7, case I",
        text="|L − L′| of neighbours is 0 or 1; its largest value.",
        printed=lambda: 1,
        check=equals(
            lambda: max(abs(smooth(x) - smooth(y)) for x, y in moves(DENSE)), [()], "enumeration"
        ),
        mechanisms=("dp-signrp-rr-smooth",),
    ),
    Statement(
        id="li2023.theorem-4.7.ratio",
        where="section 4.2, proof of theorem 4.7, case I, first display; R = e^(ε/k)",
        text="P(s̃ = 1)/P(s̃′ = 1) = R^(L−L′)(R^L′ + 1)/(R^L + 1).",
        printed=lambda r, a, b: r ** (a - b) * (r**b + 1) / (r**a + 1),
        check=equals(lambda r, a, b: plus(_F(1), a, r) / plus(_F(1), b, r), _LETTERED, "identity"),
    ),
    Statement(
        id="li2023.theorem-4.7.ratio-step",
        where="section 4.2, proof of theorem 4.7, case I, second display; L = L′ + 1",
        text="The ratio of the probabilities to keep a sign is (R^L + R)/(R^L + 1).",
        printed=lambda r, a, b: (r**a + r) / (r**a + 1),
        check=equals(
            lambda r, a, b: plus(_F(1), a, r) / plus(_F(1), b, r),
            [case for case in _LETTERED if case[1] == case[2] + 1],
            "identity",
        ),
    ),
    Statement(
        id="li2023.theorem-4.7.ratio-minus",
        where="section 4.2, proof of theorem 4.7, case I, display for −1",
        text="P(s̃ = −1)/P(s̃′ = −1) = (R^L′ + 1)/(R^L + 1).",
        printed=lambda r, a, b: (r**b + 1) / (r**a + 1),
        check=equals(
            lambda r, a, b: (1 - plus(_F(1), a, r)) / (1 - plus(_F(1), b, r)),
            _LETTERED,
            "identity",
        ),
    ),
    Statement(
        id="li2023.theorem-4.7.case-two",
        where="section 4.2, proof of theorem 4.7, case II; R = e^(ε/k)",
        text="If the sign changes, at L = L′ = 1, the two ratios are R and 1/R.",
        printed=lambda r: (r, 1 / r),
        check=equals(
            lambda r: (
                plus(_F(1), 1, r) / plus(_F(-1), 1, r),
                (1 - plus(_F(1), 1, r)) / (1 - plus(_F(-1), 1, r)),
            ),
            [letters("r")],
            "identity",
        ),
    ),
    Statement(
        id="li2023.theorem-4.7.identity",
        where="section 4.2, proof of theorem 4.7, “numeric identity”",
        text="(a + c)/(b + c) ≤ a/b for a ≥ b > 0 and c > 0; 1 at a = b.",
        printed=lambda a, b, c: a / b,
        check=at_most(
            lambda f, a, b, c: ((a + c) / (b + c), f(a, b, c)),
            [(_F(a), _F(b), _F(c)) for b in (1, 2) for a in (2, 5) for c in (1, 9)],
            "points",
        ),
    ),
    Statement(
        id="li2023.section-4.2.smooth",
        where="section 4.2, above algorithm 7’s theorem: “smooth”",
        text="P(sign kept) ≤ e^(ε/k)·P(sign kept) of any neighbour.",
        printed=lambda r: r,
        check=at_most(
            lambda f, r: (max(plus(_F(1), a) / plus(_F(1), b) for a, b in _LEVELS), f(r)),
            [(R,)],
            "enumeration",
        ),
        mechanisms=("dp-signrp-rr-smooth",),
    ),
    Statement(
        id="li2023.section-4.2.comparison",
        where="section 4.2, comparison with DP-SignRP-RR, last paragraph",
        text="At L = 1 a sign is flipped with 1/(e^(ε/k) + 1), the most of all L ≥ 1.",
        printed=lambda r: 1 / (r + 1),
        check=at_most(
            lambda f, r: (max(1 - plus(_F(1), level) for level in range(1, 5)), f(r)),
            [(R,)],
            "enumeration",
        ),
    ),
    Statement(
        id="li2023.section-4.3.smaller-value",
        where="section 4.3, end of the first paragraph, of the second of the “both quantities”, L",
        text="The smaller of two L has the smaller flipping probability 1/(e^(Lε/k) + 1).",
        printed=lambda low, high: low,
        corrections={
            "the larger one": Correction(
                lambda low, high: high,
                place="the end of the section: “larger L_j leads to smaller probability of sign "
                "flipping”",
                change="larger for smaller",
            )
        },
        check=equals(
            lambda low, high: min((low, high), key=lambda level: 1 / (R**level + 1)),
            [(1, 2), (2, 5)],
            "enumeration",
        ),
        reason=(
            "The probability falls as L grows. At e^(ε/k) = 3 it is 1/4 for L = 1 and 1/10 for L "
            "= 2; of N₊, the first quantity, the sentence is right."
        ),
        instead="Want L large and N₊ small.",
    ),
    Statement(
        id="li2023.section-4.3.rademacher",
        where="section 4.3, below figure 7, by equations 23 and 24",
        text="2Φ(β/‖u‖) − 1 is less than P₊(β/‖u‖, p) for p from 10 to 1000.",
        printed=lambda r, p: maximum_bound(r, p),
        check=at_most(
            lambda f, r, p: (2 * cdf(number(r)) - 1, f(r, p)),
            [(r, p) for r in (_F(1, 100), _F(1, 10), _F(1)) for p in (10, 1000)],
            "enclosure",
        ),
        reason="what is compared are two formulas; for records on a lattice neither is (22), and "
        "at u = (1, …, 1), p = 100 and β = 0.1 signs have 0.080, normal w 0.022",
    ),
    Statement(
        id="li2023.theorem-4.8.bin",
        where="section 4.4, proof of theorem 4.8",
        text="Attribute i is in bin ⌈π(i)/(p/k)⌉.",
        printed=lambda p, k, position: ceil(_F(position * k, p)),
        check=equals(
            _bin, [(p, k, i) for p, k in ((6, 3), (6, 2)) for i in range(1, p + 1)], "enumeration"
        ),
        mechanisms=("dp-signoporp-rr", "dp-signoporp-rr-smooth"),
    ),
    Statement(
        id="li2023.section-4.4.one-bin",
        where="section 4.4, benefit of binning",
        text="One attribute changes exactly one projected value.",
        printed=lambda p, k: 1,
        check=equals(_touched, [(4, 2), (6, 3)], "enumeration"),
        mechanisms=("dp-oporp",),
    ),
    Statement(
        id="li2023.theorem-4.8.empty-bin.minus",
        where="section 4.4, proof of theorem 4.8, second ratio",
        text="A flipped sign against a fair coin: ratio 2/(R + 1), at least 1/R.",
        printed=lambda r: 2 / (r + 1),
        check=equals(
            lambda r: (1 - plus(_F(1), 1, r)) / plus(_F(0), 1, r), [letters("r")], "identity"
        ),
    ),
    Statement(
        id="li2023.section-4.4.repetitions",
        where="section 4.4, multiple repetitions; t = 2",
        text="t sign OPORPs with budget ε/t each are ε-DP together; R = e^(ε/t).",
        printed=lambda x: 1,
        check=at_most(
            lambda f, kind: privacy(f, (*BINS, (1, 0), (0, 1)), 2, kind),
            [("attribute",)],
            "enumeration",
        ),
        mechanisms=("dp-signoporp-rr",),
    ),
)
