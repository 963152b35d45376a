"""Appendices A to C: the criticism of Yan et al., the Laplace tail, and the running example."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Correction, Statement

from .laplace import estimate as from_squares
from .laws import PAIRS, Items, binomial, jaccard, min_hash_law
from .responses import estimate as from_shares

__all__ = ["CLAIMS"]

_X, _Y = frozenset({2, 3, 5}), frozenset({3, 5, 6})
_SKETCH_X, _SKETCH_Y = (2, 0, 1, 2), (2, 0, 2, 2)
_KEPT_X, _KEPT_Y = (2, 0, 2, 2), (0, 0, 2, 2)
_NOISY_X = tuple(Fraction(v) for v in ("1.98", "0.02", "1.23", "1.08"))
_NOISY_Y = tuple(Fraction(v) for v in ("2.49", "1.68", "2.03", "1.50"))
_KEEP = Fraction(3, 4)
_BASES = (Fraction(2), Fraction(10))


def _matches(one: Any, other: Any) -> int:
    return sum(a == b for a, b in zip(one, other, strict=True))


def _second_meets_first(x: Items, y: Items) -> Fraction:
    """P that the second item of x in a random order is the first one of y."""
    union = sorted(x | y)
    hits = sum(
        [item for item in order if item in x][1] == next(item for item in order if item in y)
        for order in permutations(union)
    )
    return Fraction(hits, factorial(len(union)))


def _chosen(order: tuple[int, ...], items: Items, r: Fraction) -> dict[int, Fraction]:
    """Law of the exponential mechanism: N − 1 powers of r for the first item, 0 for the last."""
    ranked = [item for item in order if item in items]
    weights = {item: r ** (len(ranked) - 1 - place) for place, item in enumerate(ranked)}
    total = sum(weights.values(), Fraction(0))
    return {item: weight / total for item, weight in weights.items()}


def _told(formula: Any, x: Items, y: Items, r: Fraction) -> tuple[Fraction, Fraction]:
    """The least chance, over orders, of an item that x answers with and y can't."""
    return formula(x, y, r), min(
        sum((p for item, p in _chosen(order, x, r).items() if item not in y), Fraction(0))
        for order in permutations(sorted(x | y))
    )


def _chosen_alike(x: Items, y: Items, r: Fraction) -> Fraction:
    """P that both answer with the same item, over orders and choices."""
    union = sorted(x | y)
    total = Fraction(0)
    for order in permutations(union):
        one, other = _chosen(order, x, r), _chosen(order, y, r)
        total += sum((p * other.get(item, Fraction(0)) for item, p in one.items()), Fraction(0))
    return total / factorial(len(union))


def _told_apart(x: Items, y: Items) -> Fraction:
    """Share of the orders in which x and y answer differently for certain."""
    return 1 - sum((w for (a, b), w in min_hash_law(x, y).items() if a == b), Fraction(0))


def _squares() -> tuple[Fraction, Fraction]:
    """The squared distance of the printed vectors, and what their rounding may have changed."""
    gaps = [a - b for a, b in zip(_NOISY_X, _NOISY_Y, strict=True)]
    step = Fraction(1, 100)
    return sum((g * g for g in gaps), Fraction(0)), sum(
        ((abs(g) + step) ** 2 - g * g for g in gaps), Fraction(0)
    )


def _estimate_off(formula: Any) -> tuple[Any, Any]:
    """How far the printed estimate is from equation 5, against what rounding explains."""
    square, change = _squares()
    truth = from_squares(square, 4, 3, Fraction(1, 100))
    return abs(formula() - truth), 6 * change / 32 + Fraction(1, 200)


def _largest_noise(formula: Any) -> tuple[Any, Any]:
    """One in a thousand, against P that the largest of 8 draws is as large as the example's."""
    noise = max(
        abs(a - b) for a, b in zip((*_NOISY_X, *_NOISY_Y), (*_SKETCH_X, *_SKETCH_Y), strict=True)
    )
    return Fraction(1, 1000), 1 - (1 - (-number(noise / formula())).exp()) ** 8


def _tail(formula: Any, k: int, delta: Fraction) -> tuple[Any, Any]:
    return 1 - (1 - (-formula(k, delta)).exp()) ** k, delta


def _spread(k: int, j: Fraction) -> Fraction:
    law = binomial(k, j)
    return sum((w * (Fraction(n, k) - j) ** 2 for n, w in enumerate(law)), Fraction(0))


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="aumuller2020.appendix-a.error",
        where="appendix A.2, second point",
        text="The share of K equal MinHash values has standard error at most √(1/K).",
        printed=lambda k, j: Fraction(1, k),
        check=at_most(
            lambda formula, k, j: (_spread(k, j), formula(k, j)),
            [(4, Fraction(1, 2)), (10, Fraction(1, 10))],
            "enumeration",
        ),
        reason="Here squared; J(1 − J)/K is at most a quarter of the bound.",
    ),
    Statement(
        id="aumuller2020.appendix-a.bias",
        where="appendix A.2, second point",
        text="The second item of one set is the first one of the other with a probability "
        "that isn't J: in two examples it is off by a tenth, which is ours, and more.",
        printed=lambda x, y: Fraction(1, 10),
        check=at_most(
            lambda f, x, y: (f(x, y), abs(_second_meets_first(x, y) - jaccard(x, y))),
            [PAIRS[0], PAIRS[3]],
            "enumeration",
        ),
        mechanisms=("exponential-min-hash",),
    ),
    Statement(
        id="aumuller2020.appendix-a.support",
        where="appendix A.2, first point",
        text="An item that the neighbour lacks can be the answer for one and never for the "
        "other, at every ε: in every order with a chance of (r − 1)/(rᴺ − 1) or more.",
        printed=lambda x, y, r: (r - 1) / (r ** len(x) - 1),
        check=at_most(
            _told, [(*pair, r) for pair in (PAIRS[0], PAIRS[1]) for r in _BASES], "enumeration"
        ),
        mechanisms=("exponential-min-hash",),
        reason="So no ε does, whatever the exponent; δ is at least that item's probability.",
    ),
    Statement(
        id="aumuller2020.appendix-a.mean",
        where="appendix A.2, second point",
        text="The share of equal answers of the exponential mechanism isn't J in the mean: in two "
        "examples it is off by a twentieth, which is ours, and more.",
        printed=lambda x, y, r: Fraction(1, 20),
        check=at_most(
            lambda f, x, y, r: (f(x, y, r), abs(_chosen_alike(x, y, r) - jaccard(x, y))),
            [(*pair, r) for pair in (PAIRS[0], PAIRS[3]) for r in _BASES],
            "enumeration",
        ),
        mechanisms=("exponential-min-hash",),
    ),
    Statement(
        id="aumuller2020.appendix-a.deterministic",
        where="appendix A.2, third point",
        text="If only the smallest value is left to choose from, records are told apart for "
        "certain in a share 1 − J of the draws of a function.",
        printed=lambda x, y: 1 - jaccard(x, y),
        check=equals(_told_apart, PAIRS, "enumeration"),
    ),
    Statement(
        id="aumuller2020.appendix-a.self-adaptation",
        where="appendix A.2, third point",
        text="At ε = 1 the self-adaptation of Yan et al. leaves two values, from 1.2 on one.",
        reason="It depends on their parameters, which the paper cites without giving them.",
    ),
    Statement(
        id="aumuller2020.theorem-b.1",
        where="appendix B, theorem 0.B.1",
        text="Of K Laplace draws one reaches ln(K/δ) scales with probability at most δ.",
        printed=lambda k, delta: number(k / delta).log(),
        check=at_most(
            _tail,
            [(1, Fraction(1, 10)), (10, Fraction(1, 100)), (5, Fraction(1))],
            "enclosure",
        ),
    ),
    Statement(
        id="aumuller2020.appendix-c.jaccard",
        where="appendix C",
        text="{2, 3, 5} and {3, 5, 6} have J = 1/2.",
        printed=lambda: Fraction(1, 2),
        check=equals(lambda: jaccard(_X, _Y), [()], "enumeration"),
    ),
    Statement(
        id="aumuller2020.appendix-c.sketches",
        where="appendix C",
        text="The sketches (2, 0, 1, 2) and (2, 0, 2, 2) differ in the third position alone.",
        printed=lambda: 3,
        check=equals(
            lambda: sum(
                place
                for place, (a, b) in enumerate(zip(_SKETCH_X, _SKETCH_Y, strict=True), start=1)
                if a != b
            ),
            [()],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.appendix-c.responses",
        where="appendix C, first case; figure 3",
        text="One of four values is flipped in each sketch, as flips of 1/4 have it.",
        printed=lambda sketch, kept: Fraction(1, 4),
        check=equals(
            lambda sketch, kept: 1 - Fraction(_matches(sketch, kept), 4),
            [(_SKETCH_X, _KEPT_X), (_SKETCH_Y, _KEPT_Y)],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.appendix-c.collisions",
        where="appendix C, first case",
        text="The responses (2, 0, 2, 2) and (0, 0, 2, 2) have 2 collisions.",
        printed=lambda: 2,
        corrections={
            "3": Correction(
                lambda: 3,
                place="the vectors two lines above: “(2,0,2,2)” and “(0,0,2,2)”",
                change="3 for 2",
            )
        },
        check=equals(lambda: _matches(_KEPT_X, _KEPT_Y), [()], "enumeration"),
        reason=(
            "(2, 0, 2, 2) and (0, 0, 2, 2) differ in the first place alone. Three of four places "
            "agree, where two are counted."
        ),
        instead="Count the places again when you test your code against the example.",
    ),
    Statement(
        id="aumuller2020.appendix-c.estimate",
        where="appendix C, first case",
        text="Equation 1 gives 0.64 for these responses.",
        printed=lambda: Fraction("0.64"),
        corrections={
            "1.6": Correction(
                lambda: Fraction("1.6"),
                place="equation 1, with the 3 collisions of the vectors printed above",
                change="1.6 for 0.64",
            )
        },
        check=equals(
            lambda: from_shares(Fraction(_matches(_KEPT_X, _KEPT_Y), 4), 3, _KEEP),
            [()],
            "points",
        ),
        mechanisms=("rr-min-hash",),
        reason=(
            "It follows from the 2 collisions counted: with the 3 that there are equation 1 gives "
            "1.6. So this is no slip of its own; 1.6 is an estimate above 1."
        ),
        instead="Test your code with equation 1 at 2 collisions, which is 0.64, or at 3, which "
        "is 1.6; cut estimates to [0, 1] afterwards.",
    ),
    Statement(
        id="aumuller2020.appendix-c.estimate-of-two",
        where="appendix C, first case",
        text="Equation 1 gives 0.64 for 2 collisions of 4.",
        printed=lambda: Fraction("0.64"),
        check=equals(lambda: from_shares(Fraction(1, 2), 3, _KEEP), [()], "points"),
    ),
    Statement(
        id="aumuller2020.appendix-c.laplace",
        where="appendix C, second case",
        text="Equation 5 gives 0.32 for the noisy vectors, at scale 0.1.",
        conditions="the vectors are “rounded to two digits”",
        printed=lambda: Fraction("0.32"),
        check=at_most(_estimate_off, [()], "enumeration"),
        reason="The printed digits give 0.31; 0.32 is within the rounding of the vectors.",
    ),
    Statement(
        id="aumuller2020.appendix-c.scale",
        where="appendix C, second case",
        text="The noise of the example is drawn at scale 0.1.",
        printed=lambda: Fraction(1, 10),
        check=at_most(_largest_noise, [()], "enclosure"),
        reason=(
            "The example adds noise of 1.68 to a coordinate, far more than scale 0.1 gives. One "
            "of 8 draws is as large with a probability of 4 in 10 million."
        ),
        instead="Don’t calibrate a test to the printed vectors.",
    ),
)
