"""Pages 9 to 20: what the summaries say more broadly than the papers that they summarise.

Each statement is tried where the papers' conditions hold and where they don't.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import Formula, at_most, wherever
from dpverify.ledger.oracles import cdf, gaussian_delta, number
from dpverify.ledger.statements import Reading, Statement

from .distances import outside

__all__ = ["CLAIMS"]

_SMALL = Fraction(1, 10**6)
_MATRIX = ((1, 2), (3, -1), (0, 2))
Rows = Sequence[Sequence[int]]


def _longest_suffices(matrix: Rows, bits: int) -> tuple[int, int]:
    """How far a change of that many bits of a record moves xP, squared, and P's longest row."""
    records = list(product((0, 1), repeat=len(matrix)))
    longest = max(sum(v * v for v in row) for row in matrix)
    return max(
        sum(
            sum((a - b) * v for a, b, v in zip(x, y, column, strict=True)) ** 2
            for column in zip(*matrix, strict=True)
        )
        for x, y in product(records, repeat=2)
        if sum(a != b for a, b in zip(x, y, strict=True)) <= bits
    ), longest


def _loss_above(formula: Formula, e: Fraction, mu: Fraction) -> tuple[arb, arb]:
    """P(privacy loss > ε) of Gaussian noise, and the δ."""
    return cdf(number(mu / 2 - e / mu)), formula(e, mu)


def _keeps(
    when: str, vertices: int, rows: int, width: Fraction, failure: Fraction
) -> tuple[Any, Fraction]:
    """Whether r rows of signs keep a cut of an empty graph, smoothed, within 1 ± η but for ν.

    Of a fixed cut the probability that they don't, and ν. Else a lower end of how many times its
    smoothed value a cut comes out that is chosen after the rows, in the mean over them. The first
    row has a value g at each vertex, of variance w(n − 1)/n, which sum to 0; the cut of the
    vertices where g > 0 comes out as (Σ|g|/2)²/r and more, and is wn/4 at most. As E g⁴ is at most
    3(E g²)², E|g| is at least √(E g²/3), so that this is (n − 1)/3r times.
    """
    if when == "chosen from the sketch":
        return Fraction(vertices - 1, 3 * rows), 1 + width
    return outside(rows, width), failure


_UNLIMITED = (10_000, 170, Fraction(1, 2), Fraction(1, 100))

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-9.individual",
        where="Differential Privacy: Concept and Definition, with appendix A",
        text="Data sets differ by one individual's data, and P's longest row is the sensitivity.",
        conditions="the paper that appendix A summarises: one attribute of one individual",
        printed=lambda: [(_MATRIX, 3)],
        readings={
            "one attribute": Reading(
                lambda: [(_MATRIX, 1)],
                place="appendix A: “A bit-flip in X changes a single row of XP”",
                covers="one bit of one individual, which appendix A proves",
            )
        },
        check=wherever(_longest_suffices, "enumeration"),
        mechanisms=("dp-rp-g",),
        reason=(
            "Three bits of one individual can move the output by more than the longest row of P. "
            "It hides one attribute."
        ),
        instead="For whole records use the norm of a record’s largest change.",
    ),
    Statement(
        id="slides2025.page-9.failure",
        where="Differential Privacy: Concept and Definition, last item",
        text="δ is the probability that the guarantee of ε fails: the privacy loss of "
        "Gaussian noise is above ε with probability at most δ.",
        conditions="not stated: which of the δ that a mechanism has at ε",
        printed=lambda e, mu: gaussian_delta(number(e), number(mu)),
        readings={
            "δ as appendix A relates it to the noise": Reading(
                lambda e, mu: number(e - e * e / (2 * mu * mu)).exp() / 2,
                place="appendix A, step 3 of the proof: “Outer region: use Gaussian tail bound to "
                "cap mass by δ”",
                covers="the noise of appendix A, the only one of the slides",
            )
        },
        check=at_most(
            _loss_above,
            [(Fraction(1), Fraction(1, 2)), (Fraction(5), Fraction(1, 2))],
            "enclosure",
        ),
        reason=(
            "The definition bounds what events may gain, not the chance of a loss above ε. With "
            "the least δ that a mechanism has, the privacy loss exceeds ε six times as often at "
            "ε = 1 and μ = ½."
        ),
        instead="Read δ as what events may gain, not as the chance of a failure.",
    ),
    Statement(
        id="slides2025.page-11.requirements",
        where="Key Differences, data requirements of Kenthapadi et al.",
        text="Noisy projections have no stringent requirements on data structure.",
        mechanisms=("dp-rp-g",),
        reason="“Stringent” is no setting, and structure isn't range. Appendix A's noise is for an "
        "attribute that moves by 1: scale or clip attributes to [0, 1] first.",
    ),
    Statement(
        id="slides2025.page-11.scalability",
        where="Key Differences, utility advantage of Blocki et al.",
        text="The magnitude of the noise doesn't depend on the number of vertices.",
        reason="The w of Blocki et al., which the slides summarise, is a formula without n: there "
        "is nothing to try. The error of a cut is another thing, and grows with its smaller "
        "side, as appendix E has it.",
    ),
    Statement(
        id="slides2025.page-16.unlimited",
        where="JL-Based Differential Privacy for Graphs, result",
        text="Unlimited accurate queries: with 8 ln(2/ν)/η² rows a cut is within 1 ± η but for ν.",
        conditions="not stated: whether cuts may be chosen after the sketch is seen; η = 1/2, "
        "ν = 1/100",
        printed=lambda: [("chosen from the sketch", *_UNLIMITED)],
        readings={
            "cuts fixed before the sketch": Reading(
                lambda: [("fixed before", *_UNLIMITED)],
                place="appendix E: “w.p. 1 − ν by JL lemma”, which is of a cut that is fixed "
                "before M is drawn",
                covers="cuts that are chosen without the sketch",
            )
        },
        check=wherever(_keeps, "enclosure"),
        mechanisms=("jl-graph-cuts",),
        reason="A cut that is chosen from the published sketch is off by more than η. At n = "
        "10,000 vertices and r = 170 rows, for which w is 5,714 at ε = 1 and δ = 10⁻⁶, an empty "
        "graph has one that comes out at (n − 1)/3r = 20 times its smoothed value and more, in "
        "the mean.",
        instead="Fix the queries before the release, or take ν over all cuts at once.",
    ),
    Statement(
        id="slides2025.page-17.weight",
        where="Flowchart: JL-Based DP for Graphs, smoothing",
        text="The weight that is added to all edges is small.",
        mechanisms=("jl-graph-cuts",),
        reason=(
            "The slide doesn't say which weight is small. With the w of the summarised paper at "
            "ε = 1, δ = 10⁻⁶, η = 1/10 and ν = 1/100 w/n is 0.033 at a million vertices and "
            "above 1 at 10,000; it goes to all pairs, edges or not."
        ),
    ),
    Statement(
        id="slides2025.page-18.table",
        where="Comparison of Differential Privacy Mechanisms, table",
        text="Ticks and crosses for input and output perturbation, multiplicative weights and "
        "projections.",
        reason="The table names no measure; where the slides say more, it is checked there "
        "(page 15, appendices B, E and F).",
    ),
    Statement(
        id="slides2025.page-20.similar",
        where="Discussion & Open Questions, second item",
        text="Improving accuracy for very similar data points remains a challenge.",
        reason="No measure is named. By appendix B similar points are told with less variance, and "
        "with more of it relative to their squared distance.",
    ),
)
