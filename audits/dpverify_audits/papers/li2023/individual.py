"""Section 6: individual privacy, which perturbs only signs that a neighbour may change.

Rules are tried for all neighbours at β = ½ on the lattice of quarters, in units of 1/√k, in which
entries are ±1. `f(x, z)` says whether the value z of a record that is released is perturbed, where
the record that is to be protected has the value x there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import cdf, gaussian_delta, number
from dpverify.ledger.statements import Correction, Reading, Statement

from .inner_products import dot
from .sign_flips import (
    BINS,
    DENSE,
    moves,
    neighbours,
    plus,
    sensitivity,
)

__all__ = ["CLAIMS"]

_F = Fraction
_HALF = _F(1, 2)
_DELTA = _F(1, 10**6)
Moves = Sequence[tuple[Fraction, Fraction]]
_MOVES: Moves = moves(DENSE)
_BIN_MOVES: Moves = moves(BINS)


def _changes(x: Fraction, y: Fraction) -> bool:
    return ((x > 0) - (x < 0)) != ((y > 0) - (y < 0))


def _least(rule: Callable[[Fraction], bool], moves: Moves = _MOVES) -> Fraction:
    """The least |x| of which a rule says that no neighbour changes the sign."""
    return min(abs(x) for x, _ in moves if rule(abs(x)))


def _safe_from(moves: Moves = _MOVES) -> Fraction:
    """The least |x| above all of which a neighbour changes the sign."""
    changed = max(abs(x) for x, y in moves if _changes(x, y))
    return min(abs(x) for x, _ in moves if abs(x) > changed)


@cache
def _noise() -> arb:
    """σ of equation 9 for Δ₂ = 1, ε = 1 and δ = 10⁻⁶, up to 10⁻⁹, from above."""
    low, high = arb(0.01), arb(100)
    for _ in range(40):
        middle = (low + high).mid() / 2
        if gaussian_delta(arb(1), 1 / middle) <= number(_DELTA):
            high = middle
        else:
            low = middle
    return high


def _signs(
    f: Any, x: Sequence[Fraction], z: Sequence[Fraction], up: Callable[[Fraction, int], Any]
) -> list[Any]:
    """Law of the signs of z; `up` is P(+1) of a value that is perturbed, as one of how many."""
    noisy = [f(a, b) for a, b in zip(x, z, strict=True)]
    ups = [
        up(b, sum(noisy)) if perturbed else int(b > 0)
        for b, perturbed in zip(z, noisy, strict=True)
    ]
    return [
        prod(p if sign else 1 - p for p, sign in zip(ups, signs, strict=True))
        for signs in product((True, False), repeat=len(z))
    ]


def _least_delta(f: Any, matrix: Any, up: Callable[[Fraction, int], Any], factor: Any) -> Any:
    """The largest over all records of the least δ between one and a neighbour, e^ε = factor."""
    found: list[Any] = []
    for u, v in neighbours(len(matrix), _HALF):
        x, y = ([dot(row, z) for row in matrix] for z in (u, v))
        laws = _signs(f, x, x, up), _signs(f, x, y, up)
        for one, other in (laws, laws[::-1]):
            gains = (a - factor * b for a, b in zip(one, other, strict=True))
            found.append(sum(gain for gain in gains if gain > 0))
    return max(found, key=float)


@cache
def _flipped(z: Fraction, count: int) -> Fraction:
    """Kept with odds e^(ε/count), e^ε = 9."""
    return _F(plus(z, 2 // count))


@cache
def _noisy(z: Fraction, count: int) -> arb:
    """With noise for a sensitivity of β√count."""
    return cdf(number(z) / (_noise() * number(_HALF) * arb(count).sqrt()))


_SIZES = [(((1,),),), (DENSE,)]
_ONE_SET = "u’s noise set for its neighbours too"
_PLACE = (
    "section 6, “iDP essentially follows the local sensitivity (Definition 2.4) when computing the "
    "noise level”, that of u; so do the proofs, whose A is that of u for x′ too"
)
_COVERS = "every record u, with all of its neighbours"
_INSTEAD = (
    "Perturb every sign: who runs the algorithm gives each record a set of its own, and one output "
    "can tell two neighbours apart."
)


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.section-4.2.safe",
        where="section 4.2, second item below “local perturbation”; section 6.1, text; theorem 6.1",
        text="No neighbour changes the sign where |x| ≥ β max |w|.",
        conditions="β = ½, w = ±1",
        printed=lambda: _least(lambda x: x >= _HALF),
        corrections={
            "|x| > β max |w|": Correction(
                lambda: _least(lambda x: x > _HALF),
                place="algorithm 10, line 4, which perturbs at equality",
                change="> for ≥",
            )
        },
        check=at_most(lambda f: (_safe_from(), f()), [()], "enumeration"),
        mechanisms=("idp-signrp-rr", "idp-signrp-g"),
        reason="At equality a neighbour reaches 0, which has no sign. Algorithm 10 has it right.",
        instead="Perturb at equality too.",
    ),
    Statement(
        id="li2023.algorithm-10",
        where="section 6.1, algorithm 10, line 4; p = 2, β = ½, in units of 1/√k",
        text="Where β/√k < |z|, no neighbour changes the sign.",
        printed=lambda: _least(lambda x: x > _HALF),
        check=at_most(lambda f: (_safe_from(), f()), [()], "enumeration"),
        mechanisms=("idp-signrp-rr", "idp-signrp-g"),
    ),
    Statement(
        id="li2023.theorem-6.1",
        where="section 6.1, theorem 6.1 and its proof; p = k, of 1 and 2",
        text="Noise on the noise set alone is (ε, δ)-iDP: least δ at ε = 1 at most 10⁻⁶.",
        printed=lambda x, z: abs(z) <= _HALF,
        readings={
            _ONE_SET: Reading(lambda x, z: abs(x) <= _HALF, place=_PLACE, covers=_COVERS),
        },
        check=at_most(
            lambda f, matrix: (_least_delta(f, matrix, _noisy, arb(1).exp()), _DELTA),
            _SIZES,
            "quadrature",
        ),
        mechanisms=("idp-signrp-g",),
        reason="Algorithm 9 reads the noise set off its input, and a neighbour has another one. At "
        "k = 1 and β = ½ the sign of u = ¼ is perturbed and that of u′ = ¾ isn’t: the least δ at "
        "ε = 1 is 0.45. With u’s set for both it is below the δ that is asked for.",
        instead=_INSTEAD,
    ),
    Statement(
        id="li2023.section-6.2.budget",
        where="section 6.2, text above theorem 6.2",
        text="e^ε′ = ε/Ñ₊; Ñ₊ flipped signs then have the largest ratio e^ε.",
        printed=lambda e, n: number(e / n),
        corrections={
            "ε′ = ε/Ñ₊, as in algorithm 11": Correction(
                lambda e, n: number(e / n).exp(),
                place="algorithm 11, line 6, where ε′ is ε/Ñ₊",
                change="ε′ for e^ε′",
            )
        },
        check=equals(
            lambda e, n: number(e).exp(),
            [(_F(1), 4), (_F(5), 2)],
            "enclosure",
            of=lambda f: lambda e, n: f(e, n) ** n,
        ),
        mechanisms=("idp-signrp-rr",),
        reason="Printed is e^ε′ = ε/Ñ₊ for ε′ = ε/Ñ₊. By the text ε′ is negative for ε < Ñ₊: "
        "signs would be flipped more often than kept. Algorithm 11 has it right.",
        instead="Use algorithm 11.",
    ),
    Statement(
        id="li2023.section-6.2.scale",
        where="section 6.2, iDP-SignOPORP",
        text="The average scale of each projected value is much smaller in an OPORP.",
        reason="The paper names no measure of scale. By E x² both are the same, ‖u‖²/k. By E|x| an "
        "OPORP's values are smaller for u = (1, 0, …), 1/4 for 1/2 at p = 8 and k = 4, and larger "
        "by a ninth for u = (1, 1, 0, …) at p = 8 and k = 2. It needs more signs perturbed as one "
        "attribute moves its value by β, and a projection’s by β/√k: compare z with that.",
    ),
    Statement(
        id="li2023.section-6.2.oporp",
        where="section 6.2, iDP-SignOPORP: “we only need to replace x in Line 3”",
        text="With an OPORP for x and nothing else changed no neighbour changes a sign where "
        "algorithm 10 has |z| > β/√k.",
        conditions="β = ½, k = 2 bins of one attribute each",
        printed=lambda: _least(lambda x: 2 * x * x > _HALF**2, _BIN_MOVES),
        corrections={
            "β for β/√k": Correction(
                lambda: _least(lambda x: x > _HALF, _BIN_MOVES),
                place="algorithm 8, line 5, where an OPORP's |x_j| is divided by β",
            )
        },
        check=at_most(lambda f: (_safe_from(_BIN_MOVES), f()), [()], "enumeration"),
        mechanisms=("idp-signoporp",),
        reason="An attribute moves the value of its bin by β, and not by β/√k as in a projection. "
        "At β = ½ and k = 2 the value ½ is above β/√k, and a neighbour takes it to 0.",
        instead="Compare |z| with β for an OPORP.",
    ),
    Statement(
        id="li2023.section-6.2.oporp.sensitivity",
        where="section 6.2, iDP-SignOPORP, with algorithm 9, line 6",
        text="Δ₂ of n of the k values of an OPORP is β√(n/k).",
        conditions="β = 1, k = 2",
        printed=lambda n: _F(n, 2),
        corrections={
            "β": Correction(lambda n: _F(1), place="algorithm 5, line 4: “Set sensitivity Δ₂ = β”")
        },
        check=equals(
            lambda n: sensitivity(_F(1), ((1, 0)[:n], (0, -1)[:n]), "attribute", 2),
            [(1,), (2,)],
            "enumeration",
        ),
        mechanisms=("idp-signoporp",),
        reason="That is a projection’s, each of whose values an attribute moves by β/√k. "
        "In an OPORP "
        "it moves one value by β, so that for n below k the noise of line 6 is too small.",
        instead="Take Δ₂ = β, as algorithm 5 does.",
    ),
    Statement(
        id="li2023.algorithm-9.sensitivity",
        where="section 6.1, algorithm 9, line 6 (k = 4)",
        text="√k·Δ₂ on n of the k projections is β√n.",
        printed=lambda n: Fraction(n),
        check=equals(
            lambda n: sensitivity(Fraction(1), ((1, -1, 1, 1)[:n], (-1, 1, 1, -1)[:n]), "l1", 2),
            [(1,), (2,), (4,)],
            "enumeration",
        ),
    ),
    Statement(
        id="li2023.algorithm-9.text",
        where="section 6.1, step 2 of the list",
        text="Δ₂² on n of k projections is β² times the squared row norm, without 1/k.",
        conditions="k = 4",
        printed=lambda n: Fraction(n),
        check=equals(
            lambda n: sensitivity(Fraction(1), ((1, -1, 1, 1)[:n],), "attribute", 2) / 4,
            [(1,), (4,)],
            "enumeration",
        ),
        corrections={
            "divided by k, as in algorithm 9": Correction(
                lambda n: Fraction(n, 4),
                place="algorithm 9, line 6, which has it under the root",
                change="a factor 1/√k",
            )
        },
        reason=(
            "The text leaves out the 1/k that algorithm 9 has under the root. Noise by the text is"
            " k times too much in variance, which is safe and needless."
        ),
        instead="Use algorithm 9.",
    ),
    Statement(
        id="li2023.theorem-6.2",
        where="section 6.2, theorem 6.2; p = k, of 1 and 2",
        text="Randomized response on the noise set alone is ε-iDP: least δ at e^ε = 9 is 0.",
        conditions="printed of “Algorithm 6”, where the algorithm of section 6.2 is meant",
        printed=lambda x, z: abs(z) <= _HALF,
        readings={
            _ONE_SET: Reading(lambda x, z: abs(x) <= _HALF, place=_PLACE, covers=_COVERS),
        },
        check=at_most(
            lambda f, matrix: (_least_delta(f, matrix, _flipped, _F(9)), _F(0)),
            _SIZES,
            "enumeration",
        ),
        mechanisms=("idp-signrp-rr",),
        reason="Algorithm 11 reads the noise set off its input, and a neighbour has another one. "
        "At k = 1 and β = ½ the sign of u = ¼ may be flipped and that of u′ = ¾ can’t: a flipped "
        "one tells them apart. With u’s set for both no output is more than e^ε times as likely.",
        instead=_INSTEAD,
    ),
)
