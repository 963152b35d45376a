"""Section 6.1 and appendix D: the sparser Johnson-Lindenstrauss transform, by enumeration.

Every hash function and every sign of tiny transforms is tried, so all moments are fractions. The
weights of a column don't depend on the independence that the paper asks for: products of four
entries need 4-wise independent functions, and all functions are.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.statements import Correction, Statement

from .transforms import Matrix, image, moments, power, sjlt, whole

__all__ = ["CLAIMS"]

_SIZES = [(2, 1, 2), (4, 2, 2), (4, 4, 2), (6, 2, 2)]  # k, s, d
_VECTORS = [(1, 0), (1, 1), (2, -1)]
_CASES = [(*size, z) for size in _SIZES for z in _VECTORS] + [(4, 2, 3, (1, 1, -2))]
_USED_BY = ("sjlt",)


def _expected(k: int, s: int, d: int, value: Any) -> Fraction:
    """E[value(√s·S)]."""
    matrices, total = whole(sjlt(k, s, d))
    return Fraction(sum(p * value(m) for m, p in matrices), total)


def _mean(k: int, s: int, d: int, z: tuple[int, ...], blocks: bool = True) -> Fraction:
    return moments(image(sjlt(k, s, d, blocks), z), Fraction(1, s))[0]


def _variance(k: int, s: int, d: int, z: tuple[int, ...], blocks: bool = True) -> Fraction:
    return moments(image(sjlt(k, s, d, blocks), z), Fraction(1, s))[1]


def _joint(k: int, s: int, r: int, i: int, j: int, t: int, n: int, m: int) -> Fraction:
    """E[ξ_ri(j) ξ_tn(m)] with blocks, rows and columns counted from 0."""
    first, second = r * (k // s) + i, t * (k // s) + n
    return _expected(k, s, 2, lambda a: abs(a[first][j] * a[second][m]))


def _lemma_13(k: int, s: int, r: int, i: int, j: int, t: int, n: int, m: int) -> Fraction:
    if j != m or r != t:
        return Fraction(s * s, k * k)
    return Fraction(s, k) if i == n else Fraction(0)


def _square_of_a(k: int, s: int, d: int, z: tuple[int, ...]) -> Fraction:
    return _expected(k, s, d, lambda m: _a(m, z) ** 2)


def _a(m: Matrix, z: tuple[int, ...]) -> int:
    return sum(x * x * e * e for row in m for x, e in zip(z, row, strict=True))


def _b(m: Matrix, z: tuple[int, ...]) -> int:
    return sum(sum(x * e for x, e in zip(z, row, strict=True)) ** 2 for row in m) - _a(m, z)


def _mean_of_signs(r: int, i: int, j: int, t: int, v: int, w: int) -> Fraction:
    """E[φ_r(i)φ_r(j)φ_t(v)φ_t(w)] over all pairs of functions from three columns to signs."""
    values = [
        signs[r][i] * signs[r][j] * signs[t][v] * signs[t][w]
        for signs in product(product((-1, 1), repeat=3), repeat=2)
    ]
    return Fraction(sum(values), len(values))


def _collisions(index: Any, k: int, s: int) -> int:
    """How many of the k pairs (i, r) don't get a number in 1, …, k of their own."""
    pairs = product(range(1, k // s + 1), range(1, s + 1))
    return k - len({index(i, r, k, s) for i, r in pairs} & set(range(1, k + 1)))


_JOINT = [(4, 2, r, i, j, t, n, m) for r, i, j, t, n, m in product((0, 1), repeat=6)]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="stausholm2021.section-6.1.hash-mean",
        where="section 6.1, before the definition of S",
        text="E[ξ_ri(j)²] = E[ξ_ri(j)] = s/k.",
        printed=lambda k, s, d: Fraction(s, k),
        check=equals(
            lambda k, s, d: _expected(k, s, d, lambda m: m[0][0] ** 2), _SIZES, "enumeration"
        ),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.section-6.1.index",
        where="section 6.1, display of (Sx)_i′",
        text="Row (i, r) of S, i of k/s and r of s, is entry i′ = i·r of Sx.",
        printed=lambda i, r, k, s: i * r,
        corrections={
            "s blocks of k/s rows": Correction(
                lambda i, r, k, s: (r - 1) * (k // s) + i,
                place="the display below, “(Sx)_i′ = (Sx)_(i,r)”, and the next sentence, “s "
                "blocks, each of length k/s”",
                change="(i, r) for i·r",
            )
        },
        check=equals(
            lambda k, s: 0,
            [(2, 1), (4, 2), (6, 2), (6, 3)],
            "enumeration",
            of=lambda formula: lambda k, s: _collisions(formula, k, s),
        ),
        mechanisms=_USED_BY,
        reason="(1, 2) and (2, 1) would share a row, and some rows would stay empty. The next "
        "sentence has “s blocks, each of length k/s”.",
        instead="Take row (r − 1)k/s + i.",
    ),
    Statement(
        id="stausholm2021.lemma-9",
        where="section 6.1 and appendix D.1, construction c",
        text="E‖Sx‖² = ‖x‖².",
        printed=lambda k, s, d, z: Fraction(power(z, 2)),
        check=equals(_mean, _CASES, "enumeration"),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.lemma-9.construction-b",
        where="section 6.1 and appendix D.1, “a similar proof”",
        text="E‖Sx‖² = ‖x‖² for s distinct rows a column.",
        printed=lambda k, s, d, z: Fraction(power(z, 2)),
        check=equals(lambda k, s, d, z: _mean(k, s, d, z, blocks=False), _CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.lemma-10",
        where="section 6.1, lemma 10; appendix D.2",
        text="Var‖Sx − Sy‖² ≤ (2/k)‖x − y‖⁴.",
        printed=lambda k, s, d, z: Fraction(2 * power(z, 2) ** 2, k),
        check=at_most(lambda f, *c: (_variance(*c), f(*c)), _CASES, "enumeration"),
        mechanisms=_USED_BY,
        reason="reached in the limit of many equal entries only: the factor is 1 − ‖z‖₄⁴/‖z‖⁴",
    ),
    Statement(
        id="stausholm2021.lemma-10.exact",
        where="appendix D.2, last display",
        text="Var‖Sx‖² = (2/k)(‖x‖⁴ − ‖x‖₄⁴).",
        printed=lambda k, s, d, z: Fraction(2 * (power(z, 2) ** 2 - power(z, 4)), k),
        check=equals(_variance, _CASES, "enumeration"),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.lemma-10.construction-b",
        where="section 6.1, “similar arguments”",
        text="The variance is the same for s distinct rows a column.",
        printed=lambda k, s, d, z: Fraction(2 * (power(z, 2) ** 2 - power(z, 4)), k),
        check=equals(lambda k, s, d, z: _variance(k, s, d, z, blocks=False), _CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.lemma-13",
        where="appendix D.2, lemma 13",
        text="E[ξ_ri(j) ξ_tn(m)] is s/k if all indices agree, 0 if only i ≠ n, else s²/k².",
        printed=_lemma_13,
        check=equals(_joint, _JOINT, "enumeration"),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.a-squared",
        where="appendices D.2 and D.2.1",
        text="E[a²] = s²‖x‖⁴ for a = Σ x_j² ξ_ri(j).",
        printed=lambda k, s, d, z: Fraction(s * s * power(z, 2) ** 2),
        check=equals(_square_of_a, _CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.a-squared.parts",
        where="appendix D.2.1, last line but one for a²",
        text="s‖x‖₄⁴ + (s(s²−s)/k)‖x‖₄⁴ + (1−s/k)(s²−s)‖x‖₄⁴ + s²(‖x‖⁴ − ‖x‖₄⁴) = E[a²].",
        printed=lambda k, s, d, z: (
            (s + Fraction(s * (s * s - s), k) + (1 - Fraction(s, k)) * (s * s - s)) * power(z, 4)
            + s * s * (power(z, 2) ** 2 - power(z, 4))
        ),
        check=equals(_square_of_a, _CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.b-squared",
        where="appendices D.2 and D.2.1",
        text="E[b²] = (2s²/k)(‖x‖⁴ − ‖x‖₄⁴) for the cross terms b.",
        printed=lambda k, s, d, z: Fraction(2 * s * s * (power(z, 2) ** 2 - power(z, 4)), k),
        check=equals(
            lambda k, s, d, z: _expected(k, s, d, lambda m: _b(m, z) ** 2), _CASES, "enumeration"
        ),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.fourth-moment",
        where="appendix D.2, after the three claims",
        text="E‖Sx‖⁴ = ‖x‖⁴ + (2/k)(‖x‖⁴ − ‖x‖₄⁴); with E[ab] = 0 from s²E‖Sx‖⁴ = E(a + b)².",
        printed=lambda k, s, d, z: (
            power(z, 2) ** 2 + Fraction(2 * (power(z, 2) ** 2 - power(z, 4)), k)
        ),
        check=equals(
            lambda k, s, d, z: _expected(
                k, s, d, lambda m: Fraction((_a(m, z) + _b(m, z)) ** 2, s * s)
            ),
            _CASES,
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.signs",
        where="appendix D.2.1, the display of E[φφφφ] in the proof of claim 2",
        text="E[φ_r(i)φ_r(j)φ_t(v)φ_t(w)], i ≠ j and v ≠ w, is 1 if r = t and {i, j} = {v, w}, "
        "else 0.",
        printed=lambda r, i, j, t, v, w: Fraction(r == t and {i, j} == {v, w}),
        check=equals(
            _mean_of_signs,
            [
                (r, i, j, t, v, w)
                for r, t in product((0, 1), repeat=2)
                for i, j in permutations(range(3), 2)
                for v, w in permutations(range(3), 2)
            ],
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.appendix-d.2.ab",
        where="appendices D.2 and D.2.1",
        text="E[a(a + b)] = E[a²], that is E[ab] = 0.",
        printed=lambda k, s, d, z: Fraction(s * s * power(z, 2) ** 2),
        check=equals(
            lambda k, s, d, z: _expected(k, s, d, lambda m: _a(m, z) * (_a(m, z) + _b(m, z))),
            _CASES,
            "enumeration",
        ),
        reason="stated as E[a²] + E[ab] so that a factor on the value can be noticed",
    ),
    Statement(
        id="stausholm2021.section-6.2.3.l1-sensitivity",
        where="section 6.2.3",
        text="Δ₁ = √s, here squared, for every draw of S.",
        printed=lambda k, s, d: Fraction(s),
        check=equals(
            lambda k, s, d: max(
                Fraction(sum(abs(row[j]) for row in m) ** 2, s)
                for m in sjlt(k, s, d)
                for j in range(d)
            ),
            _SIZES,
            "enumeration",
        ),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.section-6.2.3.l2-sensitivity",
        where="section 6.2.3",
        text="Δ₂ = 1, here squared, for every draw of S.",
        printed=lambda k, s, d: Fraction(1),
        check=equals(
            lambda k, s, d: max(
                Fraction(sum(row[j] ** 2 for row in m), s) for m in sjlt(k, s, d) for j in range(d)
            ),
            _SIZES,
            "enumeration",
        ),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.section-6.1.dimension",
        where="section 6.1, first lines",
        text="k = Θ(α⁻² log n).",
        reason="n is not defined there; everywhere else in the paper it is log(1/β)",
    ),
)
