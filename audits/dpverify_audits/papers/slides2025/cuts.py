"""Appendix E: cuts of a graph, recovered from its smoothed and projected Laplacian.

Graphs and cuts are enumerated in fractions; w, which the slides leave open, is that of the paper
they summarise, and the rows are as many as appendix C's lemma asks for.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Correction, Statement

from .distances import outside
from .graphs import changed, flat, form, graphs, laplacian, smoothed

__all__ = ["CLAIMS"]

_SMALL = Fraction(1, 10**6)
_W = Fraction(3, 2)  # below the four vertices that are enumerated


def _cut(weights: tuple[Fraction, ...], s: tuple[int, ...], w: Fraction) -> Fraction:
    pairs = combinations(range(len(s)), 2)
    return sum((u for u, (i, j) in zip(weights, pairs, strict=True) if s[i] != s[j]), Fraction(0))


def _recovery(y: Fraction, w: Fraction, n: int, size: int) -> Fraction:
    return (y - w / n * size * (n - size)) / (1 - w / n)


def _printed_recovery(weights: tuple[Fraction, ...], s: tuple[int, ...], w: Fraction) -> Fraction:
    return _recovery(form(smoothed(len(s), weights, w), s), w, len(s), sum(s))


def _shift(direction: str, n: int, w: Fraction) -> Fraction:
    """Shift of the eigenvalue of one edge's Laplacian that belongs to an eigenvector."""
    edge = changed([Fraction(0)] * (n * (n - 1) // 2), 1)
    x, eigenvalue = {
        "constant": ([1] * n, 0),
        "edge": ([1, -1, *[0] * (n - 2)], 2),
        "across": ([1, 1, -2, *[0] * (n - 3)], 0),
    }[direction]
    return form(smoothed(n, edge, w), x) / sum(a * a for a in x) - (1 - w / n) * eigenvalue


def _rows(width: Fraction, failure: Fraction) -> arb:
    return 8 * (2 / number(failure)).log() / number(width) ** 2


def _cut_fails(f: Any, width: Fraction, failure: Fraction) -> tuple[arb, Fraction]:
    """For the next even number of rows."""
    r = 2 * (int(float(f(width, failure))) // 2 + 1)
    return outside(r, width), failure


def _additive(f: Any, n: int, w: Fraction, size: int, width: Fraction) -> tuple[Fraction, Fraction]:
    """Error of the recovered cut of the empty graph when its smoothed value is 1 + η times it."""
    y = (1 + width) * w / n * size * (n - size)
    return abs(_recovery(y, w, n, size)), f(n, w, size, width)


def _growth(coarse: Fraction, fine: Fraction, failure: Fraction, delta: Fraction) -> arb:
    """(w·η at fine η)/(w·η at coarse η): 1 if it depends on ε, δ and ν alone."""
    ends = [
        (32 * r * (2 / number(delta)).log()).sqrt() * (4 * r / number(delta)).log() * number(x)
        for x, r in ((x, _rows(x, failure)) for x in (coarse, fine))
    ]
    return ends[1] / ends[0]


def _log_growth(coarse: Fraction, fine: Fraction, failure: Fraction, delta: Fraction) -> arb:
    one, other = ((4 * _rows(x, failure) / number(delta)).log() for x in (coarse, fine))
    return other / one


def _sketched(weights: tuple[Fraction, ...], s: tuple[int, ...], rows: int) -> Fraction:
    """Mean of ‖ME1_S‖²/r over all sign matrices M; weights are 0 or 1."""
    pairs = combinations(range(len(s)), 2)
    image = [u * (s[i] - s[j]) for u, (i, j) in zip(weights, pairs, strict=True)]
    draws = list(product((1, -1), repeat=len(image)))
    one = sum(
        (sum((m * v for m, v in zip(row, image, strict=True)), Fraction(0)) ** 2 for row in draws),
        Fraction(0),
    )
    return rows * one / len(draws) / rows


def _recovered(weights: tuple[Fraction, ...], s: tuple[int, ...], width: Fraction) -> Fraction:
    """The cut recovered from 1 + η times its smoothed value."""
    n = len(s)
    return _recovery((1 + width) * form(smoothed(n, weights, _W), s), _W, n, sum(s))


_LETTER, *_WEIGHTS = letters("w a b c")
_LETTERED = [(tuple(_WEIGHTS), s) for s in product((0, 1), repeat=3)]
_CUTS = [(u, s) for u in graphs(3) for s in ((1, 0, 0), (1, 1, 0), (1, 1, 1))]
_ETAS = [(Fraction(1, 2), Fraction(1, 64), Fraction(1, 100), _SMALL)]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.appendix-e.matrix",
        where="appendix E, smooth Laplacian",
        text="(w/n)K + (1 − w/n)L is the Laplacian of smoothed weights, K of all pairs.",
        printed=lambda n, w, u: tuple(
            w / n * (n * (i == j) - 1) + (1 - w / n) * laplacian(n, u)[i][j]
            for i in range(n)
            for j in range(n)
        ),
        check=equals(
            lambda n, w, u: flat(smoothed(n, u, w)),
            [(3, _LETTER, tuple(_WEIGHTS))],
            "identity",
        ),
        mechanisms=("jl-graph-cuts",),
    ),
    Statement(
        id="slides2025.appendix-e.shift",
        where="appendix E, smooth Laplacian",
        text="Smoothing shifts all eigenvalues, scaled by 1 − w/n, by w/n.",
        printed=lambda direction, n, w: w / n,
        corrections={
            "by w, and by 0 on the constants": Correction(
                lambda direction, n, w: w * (direction != "constant"),
                place="appendix D, second item, “σᵢ(L_G) ≥ w”, which a shift by w/n wouldn't "
                "give, and where the constants are left out",
            )
        },
        check=equals(
            _shift,
            [(x, n, _LETTER) for x in ("edge", "across", "constant") for n in (3, 4, 5)],
            "identity",
        ),
        reason="(w/n)K has the eigenvalue w across the constants, since K has n, and 0 on them. At "
        "n = 3 the printed shift is a third of w.",
        instead="Shift by w, across the constants.",
    ),
    Statement(
        id="slides2025.appendix-e.recovery",
        where="appendix E, query recovery",
        text="(y − (w/n)s(n − s))/(1 − w/n) is the cut, y its smoothed value.",
        printed=_printed_recovery,
        check=equals(
            _cut,
            [(*case, _LETTER) for case in _LETTERED],
            "identity",
        ),
        mechanisms=("jl-graph-cuts",),
    ),
    Statement(
        id="slides2025.appendix-e.form",
        where="appendix E, JL preservation, right side",
        text="1_SᵀL1_S is the weight of the cut.",
        printed=lambda u, s: form(laplacian(len(s), u), s),
        check=equals(lambda u, s: _cut(u, s, _W), _LETTERED, "identity"),
    ),
    Statement(
        id="slides2025.appendix-e.mean",
        where="appendix E, JL preservation, left side",
        text="‖ME1_S‖²/r is the cut in the mean.",
        printed=lambda u, s, rows: form(laplacian(len(s), u), s),
        check=equals(_sketched, [(*cut, r) for cut in _CUTS for r in (1, 2)], "enumeration"),
    ),
    Statement(
        id="slides2025.appendix-e.complete",
        where="appendix E, query recovery, the term s(n − s)",
        text="The complete graph's cut is s(n − s).",
        printed=lambda n, size: Fraction(size * (n - size)),
        check=equals(
            lambda n, size: _cut(
                (Fraction(1),) * (n * (n - 1) // 2), (1,) * size + (0,) * (n - size), _W
            ),
            [(n, size) for n in (2, 5) for size in range(1, n)],
            "enumeration",
        ),
    ),
    Statement(
        id="slides2025.appendix-e.multiplicative",
        where="appendix E, error",
        text="A smoothed value that is 1 + η times the true one gives 1 + η times the cut, "
        "plus η(w/n)s(n − s)/(1 − w/n).",
        printed=lambda u, s, width: (
            (1 + width) * _cut(u, s, _W)
            + width * _W / len(s) * sum(s) * (len(s) - sum(s)) / (1 - _W / len(s))
        ),
        check=equals(
            _recovered, [(*cut, Fraction(x, 10)) for cut in _CUTS for x in (-1, 5)], "enumeration"
        ),
        mechanisms=("jl-graph-cuts",),
        reason="The slide has the order only; this is the whole error.",
    ),
    Statement(
        id="slides2025.appendix-e.rows",
        where="appendix E, JL preservation, with appendix C's lemma",
        text="r = 8 ln(2/ν)/η² rows keep one cut within 1 ± η but for probability ν.",
        printed=_rows,
        check=at_most(
            _cut_fails,
            [(Fraction(x), Fraction(v)) for x in ("1/4", "1/2") for v in ("1/100", "1/10000")],
            "enclosure",
        ),
        mechanisms=("jl-graph-cuts",),
    ),
    Statement(
        id="slides2025.appendix-e.additive",
        where="appendix E, error, O(s·η)",
        text="Smoothing adds an error of at most O(s·η), here 10·s·η.",
        printed=lambda n, w, s, width: 10 * s * width,
        corrections={
            "w·s·η·(n − s)/(n − w) for w < n, at most 2·s·w·η for w ≤ n/2": Correction(
                lambda n, w, s, width: w * s * width * (n - s) / (n - w),
                proof="the smoothed empty graph has a cut of (w/n)·s(n − s), a share η of which "
                "is divided by 1 − w/n",
            )
        },
        check=at_most(
            _additive,
            [
                (n, Fraction(w), s, Fraction(1, 10))
                for n, w in ((4, 2), (1000, 100), (100, 90))
                for s in (1, n // 2)
            ],
            "points",
        ),
        reason=(
            "The factor w is left out, which grows with the number of rows and 1/ε. No constant "
            "stands in for it: the error of the empty graph is w·s·η·(n − s)/(n − w)."
        ),
        instead="Expect an additive error of w·s·η·(n − s)/(n − w) for w below n, large near n.",
    ),
    Statement(
        id="slides2025.appendix-e.additive.logarithm",
        where="appendix E, error, second form",
        text="s·η, read as s·w·η, is O(s√(ln(1/δ) ln(1/ν))/ε): it doesn't grow as η falls.",
        conditions="w of the paper, r = 8 ln(2/ν)/η², η from ½ to 1/64",
        printed=lambda *case: Fraction(1),
        corrections={
            "with the factor ln(4r/δ)": Correction(
                _log_growth, proof="w is √(32r ln(2/δ))·ln(4r/δ)/ε, and r is 8 ln(2/ν)/η²"
            )
        },
        check=equals(_growth, _ETAS, "enclosure"),
        reason="w itself holds a logarithm of r and 1/δ, which the second form leaves out. From "
        "η = ½ to 1/64 it grows by a third, and without end as η goes to 0.",
        instead="Keep the factor ln(4r/δ) when you compute w.",
    ),
)
