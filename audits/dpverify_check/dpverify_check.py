"""Check a dpverify certificate again, sharing nothing with the program that made it.

    python dpverify_check.py certificate.json [sketch.npz or manifest.json] [--key PUBLIC.pem]

This one file needs the standard library and mpmath (`cryptography` where a signature is checked, or
the keys of a MinHash sketch). It was written from docs/specification.md, which says of every field
how it follows from the others; the sections there have the names of the sections here.

It reads the document, and recomputes from `inputs` and the recorded counts all that follows from
them: the projection from its seed, its exact sensitivity, the noise, the privacy curve in interval
arithmetic, what the curve leaves to an attacker, what the counts prove and could have proven, the
moments of estimators, and the answers to hazards that follow from a rule. It draws nothing again:
counts are taken as they are recorded, and which pairs of records they are of.

The verdict is one of three. *Agrees*: every line that follows from the file was recomputed. *Could
not check*: some line wasn't, and it says which. *Differs*: a line is wrong.

Exit codes: 0 agrees, 1 differs, 2 bad input, 3 could not check.

**In what order to read it.** First section 14, the whole check: `check_fields` calls everything
else in the order of the lines that are printed. Then, for one certificate in hand,

- 1 and 2: what a result is, and what a document is: strict JSON, its schema, its digest;
- 7: the inputs and the grid that records are put on;
- 8: of the mechanisms only that certificate's class, whose constructor makes all `facts` again,
  with its projection in 5, made of the words in 4, and its privacy curve in 6;
- 9: the guarantee, its curve and the attacker, which are that curve at some points;
- 12 and 13: the hazards, the released file and the signature.

What no promise of privacy rests on can wait: 10, what the recorded attack shows and could have
found, and 11, how good estimates are. Section 3 encloses what the others compute: each function has
its proof, and `enclosed` is the one to know.

**Numbers.** An exact number is a `Fraction`. Every other number is an interval of mpmath's `iv`,
whose basic operations, exponential, logarithm and root are rounded outwards; what `iv` lacks is
enclosed in section 3, with its proof. Doubles appear where the specification itself says "in
doubles" (statistics of nine digits, which prove nothing), and to propose what is then proven.
"""

from __future__ import annotations

import argparse
import base64
import cmath
import hashlib
import json
import math
import re
import stat
import struct
import sys
import unicodedata
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from heapq import heapify, heappush, heapreplace
from itertools import accumulate, chain, pairwise, product
from operator import add, mul, neg, sub
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

from mpmath import iv
from mpmath.libmp import to_rational

__all__ = ["BadInputError", "Line", "check", "check_fields", "main", "status"]


# 1. Results


class BadInputError(Exception):
    """The command was misused, or the certificate can't be read."""


class Differs(Exception):  # noqa: N818  # a finding, no failure of the program
    """A field isn't what it must be."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")


class Left(Exception):  # noqa: N818  # a gap, no failure of the program
    """Something that this program can't check."""


@dataclass(frozen=True)
class Line:
    """One line of the result.

    Attributes
    ----------
    name : what was checked
    status : "agrees", "differs", "could not check" (this program can't), or "left out" (nobody can
        from the certificate alone: the draws, what isn't there)
    detail : what was done, or why not
    """

    name: str
    status: str
    detail: str


def status(lines: Iterable[Line]) -> str:
    """What all lines say together."""
    found = {line.status for line in lines}
    if "differs" in found:
        return "differs"
    return "could not check" if "could not check" in found else "agrees"


def require(good: bool, where: str, why: str) -> None:
    """Raise `Differs` unless good."""
    if not good:
        raise Differs(where, why)


VERSION = "0.1.0"
"""The version of dpverify that encloses numbers as closely as the specification says."""

_of_another: ContextVar[bool] = ContextVar("of_another", default=False)


def close(good: bool, where: str, why: str) -> None:
    """The same of an end that holds and is further out than it should be.

    What another version certified may be enclosed less closely: it is as true.
    """
    require(good or _of_another.get(), where, why)


def same(where: str, stated: Any, due: Any) -> None:
    """Compare all leaves of two JSON values."""
    if isinstance(stated, dict) and isinstance(due, dict):
        require(stated.keys() == due.keys(), where, f"has the keys {sorted(stated)}")
        for key in due:
            same(f"{where}.{key}", stated[key], due[key])
    elif isinstance(stated, list) and isinstance(due, list):
        require(len(stated) == len(due), where, f"has {len(stated)} entries and not {len(due)}")
        for place, (one, other) in enumerate(zip(stated, due, strict=True)):
            same(f"{where}[{place}]", one, other)
    elif callable(due):
        due(where, stated)
    else:
        good = type(stated) is type(due) and stated == due
        require(good, where, f"is {_short(stated)}, and not {_short(due)}")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=lambda _: "...")  # of a rule in `due`
    return text if len(text) <= 100 else text[:100] + "..."


# 2. Documents: strict JSON, the schema, canonical JSON, the digest


MAX_BYTES = 64 << 20
MAX_SEED = 2**53 - 1


def read_json(content: bytes) -> Any:
    """JSON in UTF-8 without a key twice, without NaN and infinities."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise BadInputError("an object has the same key twice")
        return made

    def refuse(name: str) -> None:
        raise BadInputError(f"{name} is not a JSON number")

    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"this is not JSON: {error}") from None


def canonical_json(value: Any) -> bytes:
    """RFC 8785, for what certificates hold: objects, lists, texts, whole numbers, booleans, null.

    Keys are in the order of their UTF-16 code units; texts escape what they must and nothing else.
    """

    def ordered(part: Any) -> Any:
        if isinstance(part, dict):
            keys = sorted(part, key=lambda key: key.encode("utf-16-be"))
            return {key: ordered(part[key]) for key in keys}
        if isinstance(part, list):
            return [ordered(one) for one in part]
        if part is None or isinstance(part, str | bool):
            return part
        if isinstance(part, int) and abs(part) <= MAX_SEED:
            return part
        raise ValueError(f"{part!r} doesn't belong in a certificate")

    text = json.dumps(ordered(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def digest_of(fields: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of all fields but the digest."""
    body = {name: value for name, value in fields.items() if name != "digest"}
    return hashlib.sha256(canonical_json(body)).hexdigest()


IGNORABLE = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2065, 0x3164, 0xFFA0)
).union(range(0xFE00, 0xFE10), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))


def hidden(text: str) -> bool:
    """Whether a text has control, format, separator, surrogate or ignorable characters."""
    if text.isascii() and text.isprintable():
        return False
    categories = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return any(unicodedata.category(c) in categories or ord(c) in IGNORABLE for c in text)


def exact_string(value: Fraction) -> str:
    """The one form of an exact number: its decimal if that has at most 40 digits, else a/b."""
    try:
        quotient = Context(prec=40, traps=[Inexact]).divide(
            Decimal(value.numerator), Decimal(value.denominator)
        )
    except Inexact:
        return str(value)
    return f"{Context(prec=40).normalize(quotient):f}"


_EXACT = re.compile(r"-?[0-9]{1,1000}(\.[0-9]{1,1000})?(/[0-9]{1,1000})?")


def exact_number(text: Any) -> Fraction:
    """Read an exact number in its one form.

    Raises
    ------
    ValueError
        If it isn't one.
    """
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError("is not an exact number")
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        raise ValueError("is not an exact number") from None
    if exact_string(value) != text:
        raise ValueError("is not an exact number in canonical form")
    return value


# The schema is a table of shapes. A shape is a dict (an object with exactly these keys), a list of
# one shape (a list of such), or a function that raises ValueError for what it refuses.

Shape = Any


def _text(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError("is not text")


def _flag(value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")


def _whole(low: int = 0, high: int = MAX_SEED) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"is not a whole number from {low} to {high}")

    return shape


def _integer(value: Any) -> None:
    if type(value) is not int:
        raise ValueError("is not a whole number")


def _one_of(*values: Any) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if not any(type(value) is type(one) and value == one for one in values):
            raise ValueError("is none of " + ", ".join(map(str, values)))

    return shape


def _matches(pattern: str) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"doesn't match {pattern}")

    return shape


def _nine(value: Any) -> None:
    """A statistic: nine significant digits in their one form."""
    _text(value)
    if f"{float(value):.9g}" != value:
        raise ValueError("is not a number of nine significant digits in canonical form")


def _maybe(inner: Shape) -> Callable[[Any], None]:
    return lambda value: None if value is None else fits(value, inner, "")


def _map(inner: Shape, keys: Shape = _text) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        for key, part in value.items():
            keys(key)
            fits(part, inner, key)

    return shape


def _either(*shapes: Shape) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        for one in shapes:
            try:
                return fits(value, one, "")
            except ValueError:
                continue
        raise ValueError("has none of the allowed forms")

    return shape


def _exact(value: Any) -> None:
    exact_number(value)


def _own_words(value: Any) -> None:
    _text(value)
    if not 1 <= len(value) <= 200 or " ".join(value.split()) != value:
        raise ValueError("must be 1 to 200 characters, with single spaces between words")


_COUNT = _whole()
_ENDS = {"lower": _text, "upper": _text}
_KIND = {"kind": _text, "numbers": _map(_exact)}
_RANGE = {"low": _exact, "high": _exact}
_COUNTS = {"hits": _COUNT, "false_hits": _COUNT}
_HASH = _matches("[0-9a-f]{64}")
_MOMENT_VERDICT = _one_of("refuted", "confirmed_within_margin", "inconclusive")
_PROGRAMS = (
    *("dpverify", "numpy", "scipy", "python-flint", "python"),
    *("jinja2", "matplotlib", "kiwisolver", "freetype"),
)
_ABOUT = ("title", "organisation", "data_set", "purpose", "period", "contact")
POLICY = "secure: AES-256-CTR keyed from the operating system, key not kept"


def _versions(value: Any) -> None:
    _map(_matches("[0-9A-Za-z.!+_-]{1,100}"), _one_of(*_PROGRAMS))(value)
    if len(value) != len(_PROGRAMS):
        raise ValueError("doesn't name all programs")


def _label(value: Any) -> None:
    """A text of a declared column."""
    _text(value)
    if len(value) > 200:
        raise ValueError("is longer than 200 characters")


def _several(value: Any) -> None:
    fits(value, [_label], "")
    if not 2 <= len(value) <= 4096:
        raise ValueError("must have 2 to 4096 entries")


def _day(value: Any) -> None:
    if not isinstance(value, str) or date.fromisoformat(value).isoformat() != value:
        raise ValueError("is not a date such as 2020-01-31")


def _column(value: Any) -> None:
    """A declared column of a table: what it may hold."""
    numbers = {"low": _exact, "high": _exact}
    own: dict[str, Shape] = {
        "real": numbers,
        "whole": numbers,
        "date": {"first": _day, "last": _day},
        "boolean": {},
        "category": {"categories": _several},
        "text": {
            "words": _maybe(_several),
            "buckets": _maybe(_whole(2, 4096)),
            "ngrams": _maybe(_whole(1, 20)),
            "most": _whole(1, 2**16),
        },
    }
    kind = str(value.get("type")) if isinstance(value, dict) else ""
    _one_of(*own)(kind)
    missing = _either(_one_of("refuse", "indicator"), {"value": _label})
    common = {"type": _text, "name": _label, "unit": _label, "missing": missing}
    fits(value, common | own[kind], "")
    good = True
    if own[kind] is numbers:
        low, high = exact_number(value["low"]), exact_number(value["high"])
        good = -(2**100) <= low < high <= 2**100 and float(low) < float(high)
        good = good and (kind == "real" or low.denominator == high.denominator == 1)
    elif kind == "date":
        good = value["first"] < value["last"]
    elif kind == "category":
        good = len(set(value["categories"])) == len(value["categories"])
    elif kind == "text":
        words = value.get("words")
        good = (words is None) != (value.get("buckets") is None)
        if words is not None:
            lower = sorted({word.lower() for word in words})
            good = good and words == lower and value.get("ngrams") is None
    if not good:
        raise ValueError(f"declares a column of type {kind} that can't be")


def width_of(column: Mapping[str, Any]) -> int:
    """How many attributes hold the values of a column, without the one for missing ones."""
    listed = column.get("categories") or column.get("words")
    return len(listed) if listed else column.get("buckets") or 1


def attributes_of(column: Mapping[str, Any]) -> int:
    """How many attributes a column becomes."""
    return width_of(column) + (column.get("missing") == "indicator")


MANIFEST: Shape = {
    "schema": _one_of("dpverify-manifest/1"),
    "parts": [{"file": _text, "rows": _whole(1), "sha256": _HASH}],
}

# fmt: off
SCHEMA: Shape = {
    "schema": _one_of("dpverify-certificate/1"),
    "inputs": {
        "mechanism": _text, "parameters": _map(_either(_COUNT, _text)),
        "rows": _whole(1, 10**12), "attributes": _whole(1, 10**9),
        "domain": _KIND, "outside": _one_of("refuse", "clip", None), "ranges": [_RANGE],
        "columns": [_column],
        "adjacency": _KIND, "epsilon": _exact, "delta": _exact, "projection_seed": _COUNT,
        "alpha": _exact, "draws": _whole(1, 10**9), "moment_draws": _whole(2, 10**9),
        "audit_seed": _COUNT, "purpose": _maybe(_RANGE),
        "about": _map(_own_words, _one_of(*_ABOUT)),
        "owner": _map({"answer": _one_of("pass", "fail", "not_applicable"), "reason": _text}),
    },
    "evidence": {
        "draws": _COUNT,
        "white_box": [{"pair": _text, "counts": [_COUNTS]}],
        "roc": [_COUNTS],
        "moments": [{
            "estimator": _text, "mean": _nine, "variance": _nine, "kurtosis": _nine,
            "draws": _COUNT, "undefined": _COUNT,
        }],
        "probe_estimates": [_nine],
    },
    "derived": {
        "protects": _text,
        "guarantee": {
            "notion": _one_of("differential privacy", "individual differential privacy"),
            "epsilon": _ENDS, "delta": _ENDS, "randomness": _text, "data_choice": _text,
            "theorem": _text, "assumptions": [_text],
            "statements": [{
                "id": _text,
                "verdict": _one_of("confirmed_exactly", "confirmed_statistically", "conservative"),
            }],
        },
        "facts": _map(_map(_either(_text, _ENDS, _integer))),
        "curve": [{"epsilon": _text, "delta": _ENDS, "published": _maybe(_text), "shown": _text}],
        "far_delta": _ENDS,
        "attacker": [
            {"false_positive_rate": _text, "threshold": _text, "true_positive_rate": _ENDS}
        ],
        "white_box": {
            "verdict": _one_of("violation", "no_violation_found", "inconclusive"),
            "tests": _COUNT, "epsilon_lower": _text, "ceiling": _text,
            "findings": [{
                "pair": _text, "event": _text,
                "order": _one_of("record against neighbour", "neighbour against record"),
                "threshold": _text, "level": _text, "epsilon_lower": _text,
                "refuted_at": _maybe(_text),
            }],
            "power": {
                "noise_scale": _maybe(_text), "smallest_excess": _text, "reach": _maybe(_text)
            },
            "roc_thresholds": [_text],
        },
        "moment_level": _text, "margin_mean": _text, "margin_variance": _text,
        "estimators": [{
            "name": _text, "formulas": _one_of("exact", "delta method"), "truth": _text,
            "expectation": _text, "variance": _text,
            "mean_verdict": _MOMENT_VERDICT, "variance_verdict": _MOMENT_VERDICT,
        }],
        "predictions": [{"truth": _text, "expectation": _text, "deviation": _text}],
        "usefulness": _maybe({
            "quantity": _text, "low": _nine, "high": _nine, "declared": _flag, "error": _nine,
            "verdict": _one_of("useful", "coarse", "useless"),
        }),
        "sizes": [{"size": _COUNT, "error": _text}],
    },
    "checklist": [{
        "id": _text, "title": _text, "section": _text, "evidence": _text, "owner": _flag,
        "answer": _one_of("pass", "fail", "needs_owner", "not_applicable"),
    }],
    "release": _maybe({
        "file": _one_of("sketch.npz", "manifest.json"), "sha256": _HASH, "array": _one_of("steps"),
        "shape": [_COUNT], "dtype": _text, "step": _maybe(_ENDS), "randomness": _one_of(POLICY),
    }),
    "environment": {
        "created": _matches(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\+00:00"),
        "versions": _versions,
        "platform": _matches("[!-~]{1,50} [!-~]{0,50}"),
    },
    "digest": _HASH,
}
# fmt: on


def fits(value: Any, shape: Shape, where: str) -> None:
    """Refuse what isn't of a shape.

    Raises
    ------
    ValueError
        Naming where, and the rule.
    """
    try:
        if isinstance(shape, dict):
            if not isinstance(value, dict):
                raise ValueError("is not an object")
            if value.keys() != shape.keys():
                raise ValueError(f"must have the keys {sorted(shape)}")
            for key, part in value.items():
                fits(part, shape[key], key)
        elif isinstance(shape, list):
            if not isinstance(value, list):
                raise ValueError("is not a list")
            for place, part in enumerate(value):
                fits(part, shape[0], f"[{place}]")
        else:
            shape(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}" if where else str(error)) from None


def texts_of(value: Any) -> Iterator[str]:
    """All keys and texts of a document, without recursion."""
    left = [value]
    while left:
        match left.pop():
            case dict() as part:
                left += [*part, *part.values()]
            case list() as part:
                left += part
            case str() as text:
                yield text


# 3. Intervals: numbers with two proven ends, and the functions that mpmath's iv lacks


BITS = 192
"""Working precision. Whatever cancels more is tried again with twice as many, up to 16 times."""

Interval = Any  # of mpmath, which has no types


class Span(NamedTuple):
    """Two exact ends between which a number is proven to lie."""

    low: Fraction
    high: Fraction


def number(value: Fraction | int) -> Interval:
    """The interval of an exact number at the working precision."""
    value = Fraction(value)
    return iv.mpf(value.numerator) / iv.mpf(value.denominator)


def span(value: Interval) -> Span:
    """The exact ends of an interval."""
    low, high = (Fraction(*map(int, to_rational(end))) for end in value._mpi_)
    return Span(low, high)


def hull(low: Interval, high: Interval) -> Interval:
    """The interval from the lower end of one to the upper end of another."""
    return iv.mpf([low.a, high.b])


def enclosed(compute: Callable[[], Interval], narrow: Fraction = Fraction(1, 2**120)) -> Span:
    """Ends of an interval whose relative width is at most `narrow`, at rising precision."""
    bits = BITS
    while bits <= 16 * BITS:
        iv.prec = bits
        try:
            found = span(compute())
        except (OverflowError, ZeroDivisionError, ValueError):  # infinite ends
            found = None
        finally:
            iv.prec = BITS
        if found and found.high - found.low <= narrow * min(abs(found.low), abs(found.high)):
            return found
        bits *= 2
    raise Left("an interval stays wide at 4,096 bits")


iv.prec = BITS


def normal_tail(x: Interval) -> Interval:
    """Encloses Φ(−x) = P[N(0, 1) > x], for a thin interval x.

    For |x| ≤ 20 by the series

        Φ(x) − ½ = φ(x)·Σ_{n≥0} x^{2n+1}/(2n+1)!!,

    which follows from f(x) = (Φ(x) − ½)/φ(x) solving f′ = 1 + x·f, f(0) = 0. Its terms for x ≥ 0
    are positive and rise with x: whole numbers of 2^−bits, all rounded down for the lower end and
    up for the upper. From the n-th on each is at most r = x²/(2n+3) times the one before; once
    r < ½ all that follow the n-th add up to at most t_n·r/(1 − r) ≤ t_n. Subtracting from ½
    loses up to x²/(2 ln 2) bits, which are added to the precision.

    For x > 20 by Mills' ratio: integrating by parts N times,

        Φ(−x) = φ(x)/x·(1 − 1/x² + 1·3/x⁴ − … + (−1)^N (2N−1)!!/x^{2N}) + R_N,

    where the remainder R_N = (−1)^{N+1} (2N+1)!! ∫_x^∞ φ(t) t^{−2N−2} dt has the sign of the first
    term left out, and is smaller: t^{−2N−2} = t·t^{−2N−3} ≤ t·x^{−2N−3} under the integral, and
    ∫ t φ = φ(x). So the truth lies between two consecutive partial sums. The smallest term is
    below e^{−x²/2} < 2^{−288} of the sum.
    """
    if x.b < 0:
        return 1 - normal_tail(-x)
    if x.a < 0:  # thin around 0: Φ(−x) falls
        return hull(normal_tail(iv.mpf(x.b)), 1 - normal_tail(iv.mpf(-x.a)))
    bits = iv.prec
    try:
        iv.prec = bits + 32 + (int(0.73 * float(x.b) ** 2) if x.a <= 20 else 0)
        density = iv.exp(-x * x / 2) / iv.sqrt(2 * iv.pi)
        if x.a <= 20:
            sums = [_series(end, iv.prec, up) for up, end in enumerate(span(x * x))]
            return iv.mpf(1) / 2 - density * x * iv.mpf(sums) / iv.mpf(2) ** iv.prec
        inverse, term, total, n = 1 / (x * x), iv.mpf(1), iv.mpf(1), 0
        while True:
            n += 1
            following = -term * (2 * n - 1) * inverse
            if abs(following).b >= abs(term).a or abs(following).b < iv.mpf(2) ** (-bits - 8):
                ends = total, total + following
                low, high = (ends[1], ends[0]) if following.b < 0 else ends
                return density / x * hull(low, high)
            total, term = total + following, following
    finally:
        iv.prec = bits


def _series(square: Fraction, bits: int, up: int) -> int:
    """Σ x^{2n}/(2n+1)!! in 2^−bits, from below, or from above if up is 1."""
    factor, term, total, n = math.floor(square * (1 << bits)) + up, 1 << bits, 1 << bits, 0
    while term > 4 or 2 * square >= 2 * n + 3:
        n += 1
        term = (term * factor >> bits) // (2 * n + 1) + up
        total += term
    return total + up * term


def log1p(x: Interval) -> Interval:
    """Encloses ln(1 + x)."""
    return iv.log(1 + x)


# Doubles, and how they are written


def below(value: Fraction) -> float:
    """The largest double that isn't above."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    return near if near != math.inf and near <= value else math.nextafter(near, -math.inf)


def above(value: Fraction) -> float:
    """The smallest double that isn't below."""
    return 0.0 - below(-value)  # and never −0


def decimal_string(value: float | Fraction | Decimal, rounding: str, digits: int = 18) -> str:
    """A double in at most `digits` significant digits, rounded to a side; E beyond 17 places."""
    written = Decimal(value or 0)  # type: ignore[arg-type]  # whose zero has no sign
    if written.is_finite():
        written = Context(prec=digits, rounding=rounding).normalize(written)
    return f"{written:f}" if -7 < written.adjusted() < 17 else f"{written:E}"


def read_end(where: str, text: str, rounding: str) -> Fraction:
    """The double that an end of an enclosure is, which must be written in its one form."""
    try:
        value = float(text)
    except ValueError:
        raise Differs(where, f"{_short(text)} is no number") from None
    finite = math.isfinite(value)
    require(
        finite and decimal_string(value, rounding) == text, where, f"{text} isn't in canonical form"
    )
    return Fraction(value)


def read_ends(where: str, ends: Any) -> Span:
    """Both ends of an enclosure, in order."""
    require(isinstance(ends, dict) and ends.keys() == {"lower", "upper"}, where, "has no two ends")
    low = read_end(f"{where}.lower", ends["lower"], ROUND_FLOOR)
    high = read_end(f"{where}.upper", ends["upper"], ROUND_CEILING)
    require(low <= high, where, "has its ends in the wrong order")
    return Span(low, high)


def tight(value: Span, most: Fraction | None = None) -> Callable[[str, Any], None]:
    """Both ends are the doubles next to a number; neither is above `most`.

    Where the number is so near to a double that its own enclosure holds that double, either answer
    is taken.
    """
    return tight_ends(value, value, most)


def tight_ends(low: Span, high: Span, most: Fraction | None = None) -> Callable[[str, Any], None]:
    """The same of two numbers: the double below one, and the double above the other."""

    def shape(where: str, stated: Any) -> None:
        found = read_ends(where, stated)
        lows = {Fraction(below(end)) for end in low}
        highs = {Fraction(above(end)) for end in high}
        if most is not None:
            lows, highs = ({min(end, most) for end in ends} for ends in (lows, highs))
            close(found.high <= most, f"{where}.upper", f"is above {_near(Span(most, most))}")
        require(found.low <= max(lows), f"{where}.lower", f"is above {_near(low)}")
        require(found.high >= min(highs), f"{where}.upper", f"is below {_near(high)}")
        close(found.low in lows, f"{where}.lower", f"isn't the double below {_near(low)}")
        close(found.high in highs, f"{where}.upper", f"isn't the double above {_near(high)}")

    return shape


def around(value: Span, slack: Fraction, rough: Span | None = None) -> Callable[[str, Any], None]:
    """Both ends hold a number, and are at most a relative `slack` away from it.

    Where it follows from doubles around another one, they are that far from what these prove.
    """
    reach = rough or value

    def shape(where: str, stated: Any) -> None:
        found = read_ends(where, stated)
        require(found.low <= value.high, f"{where}.lower", f"is above {_near(value)}")
        require(found.high >= value.low, f"{where}.upper", f"is below {_near(value)}")
        far = slack * max(abs(reach.low), abs(reach.high))
        close(reach.low - found.low <= far, f"{where}.lower", f"is far from {_near(value)}")
        close(found.high - reach.high <= far, f"{where}.upper", f"is far from {_near(value)}")

    return shape


def nearly(value: Span, slack: Fraction) -> Callable[[str, Any], None]:
    """Both ends are within a relative slack of a number that is itself known to some doubles."""

    def shape(where: str, stated: Any) -> None:
        found, far = read_ends(where, stated), slack * abs(value.low)
        require(found.low <= value.low + far, f"{where}.lower", f"is above {_near(value)}")
        require(found.high >= value.low - far, f"{where}.upper", f"is below {_near(value)}")
        close(found.low >= value.low - far, f"{where}.lower", f"is far from {_near(value)}")
        close(found.high <= value.low + far, f"{where}.upper", f"is far from {_near(value)}")

    return shape


def exactly(value: Fraction) -> Callable[[str, Any], None]:
    """The tightest enclosure of an exact number."""
    return tight(Span(value, value))


def root_of(square: Fraction) -> Span:
    """Encloses the root of a fraction; one point where that is a fraction itself."""
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    return Span(root, root) if root * root == square else enclosed(lambda: iv.sqrt(number(square)))


def _near(value: Span) -> str:
    try:
        return f"{float(value.low):.17g}"
    except OverflowError:
        return "a number beyond doubles"


# 4. Random words: SeedSequence, Philox-4x64-10, and what is drawn with them


WORD = 1 << 64
_M32 = 0xFFFFFFFF


def _words32(value: int) -> list[int]:
    """A number in 32-bit words, the lowest first; 0 is one word."""
    found = [value & _M32]
    while value := value >> 32:
        found.append(value & _M32)
    return found


def seed_state(seed: int, key: Sequence[int], count: int) -> list[int]:
    """`count` 64-bit words of numpy's SeedSequence(seed, spawn_key=key) (O'Neill's seed_seq_fe)."""
    entropy = _words32(seed)
    if key:
        entropy += [0] * (4 - len(entropy))
        entropy += [word for part in key for word in _words32(part)]
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * 0x931E8875 & _M32
        value = value * constant & _M32
        return value ^ value >> 16

    def mixed(one: int, other: int) -> int:
        value = (one * 0xCA01F9DD - other * 0x4973F715) & _M32
        return value ^ value >> 16

    pool = [hashed(entropy[place] if place < len(entropy) else 0) for place in range(4)]
    for source in range(4):
        for place in range(4):
            if place != source:
                pool[place] = mixed(pool[place], hashed(pool[source]))
    for word in entropy[4:]:
        for place in range(4):
            pool[place] = mixed(pool[place], hashed(word))
    halves, constant = [], 0x8B51F9DD
    for place in range(2 * count):
        value = pool[place % 4] ^ constant
        constant = constant * 0x58F38DED & _M32
        value = value * constant & _M32
        halves.append(value ^ value >> 16)
    return [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]


class Words:
    """Raw words of Philox-4x64-10 (Salmon et al. 2011) for a seed and the key of a case."""

    def __init__(self, seed: int, *key: int | str) -> None:
        parts = [
            part if isinstance(part, int) else int.from_bytes(b"\x01" + part.encode(), "big")
            for part in key
        ]
        one, two = seed_state(seed, parts, 2)
        self._keys = [
            ((one + turn * 0x9E3779B97F4A7C15) % WORD, (two + turn * 0xBB67AE8584CAA73B) % WORD)
            for turn in range(10)
        ]
        self._counter, self._left = 0, list[int]()

    def words(self, count: int) -> list[int]:
        """The next `count` words."""
        found = self._left[:count]
        self._left = self._left[count:]
        mask = WORD - 1
        while len(found) < count:
            self._counter += 1  # the first block is that of counter 1
            a, b, c, d = self._counter & mask, self._counter >> 64, 0, 0
            for one, two in self._keys:
                left, right = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
                a, b, c, d = (
                    (right >> 64) ^ b ^ one,
                    right & mask,
                    (left >> 64) ^ d ^ two,
                    left & mask,
                )
            found += (a, b, c, d)
        found, self._left = found[:count], found[count:] + self._left
        return found


def signs(count: int, rng: Words) -> list[int]:
    """Fair signs: bits of the words' little-endian bytes, each byte from its highest; 1 is −1."""
    raw = b"".join(word.to_bytes(8, "little") for word in rng.words(-(-count // 64)))
    return [1 - 2 * (raw[n >> 3] >> (7 - (n & 7)) & 1) for n in range(count)]


def uniform_below(bound: int, count: int, rng: Words) -> list[int]:
    """Words modulo the bound; those from its largest multiple on are drawn again, after all."""
    found, limit = rng.words(count), WORD - WORD % bound
    again = [place for place, word in enumerate(found) if word >= limit]
    while again:
        for place, word in zip(again, rng.words(len(again)), strict=True):
            found[place] = word
        again = [place for place in again if found[place] >= limit]
    return [word % bound for word in found]


def rounded_gaussian(scale: int, count: int, rng: Words) -> list[int]:
    """round(scale·N(0, 1)), a word each; words that leave it open take more after all others.

    The lowest bit of a word is the sign (1 is −), the other 63 bits w say that the upper tail
    probability p lies in [w, w + 1)·2⁻⁶⁴. A double proposes |z|; where scale·|z| is within 10⁻⁵ of
    a half, or p is small, intervals decide. A wrong proposal elsewhere would be found by the
    SHA-256 of the projection: it could only make this program say that a right certificate differs.
    """
    quantile, found, open_ = NormalDist().inv_cdf, [], []
    for place, word in enumerate(rng.words(count)):
        w = word >> 1
        size = -quantile((w + 0.5) * 2.0**-64) * scale if w >= 1 << 39 else 0.5
        near = round(size)
        if abs(size - near) > 0.49999:
            open_.append((place, word))
        found.append(-near if word & 1 else near)
    for place, word in open_:
        cell, bits = word >> 1, 64
        while (decided := _decided(scale, cell, bits)) is None:
            cell, bits = cell << 64 | rng.words(1)[0], bits + 64
        found[place] = -decided if word & 1 else decided
    return found


def _decided(scale: int, cell: int, bits: int) -> int | None:
    """The n that scale·z(p) rounds to for every p of the cell [cell, cell + 1)·2^−bits, if one.

    n ≥ 1 is it if Φ(−(n+½)/s) ≤ p ≤ Φ(−(n−½)/s) at both ends of the cell, n = 0 if the first holds.
    """

    def tail(n: int) -> Span:
        """Of Φ(−(n + ½)/s)."""
        return enclosed(lambda: normal_tail(number(Fraction(2 * n + 1, 2 * scale))))

    low, high = Fraction(cell, 1 << bits), Fraction(cell + 1, 1 << bits)
    few, many = 0, 40 * scale  # the least n with Φ(−(n + ½)/s) ≤ low, by halving
    while few < many:
        middle = (few + many) // 2
        ends = tail(middle)
        if ends.high <= low:
            many = middle
        elif ends.low > low:
            few = middle + 1
        else:
            return None
    if few == 0 or tail(few - 1).low >= high:
        return few
    return None


# 5. Projections: whole-number matrices rebuilt from their seeds


Row = dict[int, int]
"""Columns and values of the entries that aren't 0, the columns rising."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A realised projection.

    Parameters
    ----------
    name : its kind, as `facts` names it
    rows : the integer matrix
    k : columns
    scale : square of the number that it is multiplied by
    pair, diagonal, common : c, d and e: over the draw, of an entry of P·Pᵀ off the diagonal the
        variance, of one on it the variance, and the covariance of two of these
    factors : D and Q of an FJLT
    """

    name: str
    rows: Sequence[Row]
    k: int
    scale: Fraction
    pair: Fraction
    diagonal: Fraction
    common: Fraction = Fraction(0)
    factors: tuple[list[int], list[Row]] | None = None

    @property
    def p(self) -> int:
        """Rows: attributes."""
        return len(self.rows)

    @property
    def sha256(self) -> str:
        """Of the text ``p k``, then the digests of three streams: sizes, columns, values of rows.

        Of an FJLT the text ``fjlt p k``, then the streams of D as one row, then those of Q.
        """
        if self.factors is None:
            return _digest(f"{self.p} {self.k}", self.rows)
        flips, mixing = self.factors
        return _digest(f"fjlt {self.p} {self.k}", [dict(enumerate(flips))], mixing)

    def row_norm(self, norm: int) -> int:
        """Largest Σ|entry|^norm of a row."""
        sizes = (map(abs, row.values()) for row in self.rows)
        return max(sum(size if norm == 1 else size * size for size in row) for row in sizes)

    def columns(self) -> list[int]:
        """Σ|entry| of every column."""
        sums = [0] * self.k
        for row in self.rows:
            for column, value in row.items():
                sums[column] += abs(value)
        return sums

    def largest_column(self) -> int:
        """Bound on the absolute terms of a sum in the product, for records within one step."""
        if self.factors is None:
            return max(self.columns())
        mixing = self.factors[1]
        order = 1 << (self.p - 1).bit_length()
        squares = max(sum(value * value for value in row.values()) for row in mixing)
        return max(self.p, math.isqrt(order * self.p * squares) + 1)

    def column_maxima(self) -> list[int]:
        """max|entry| of every column, at least 1."""
        most = [1] * self.k
        for row in self.rows:
            for column, value in row.items():
                most[column] = max(most[column], abs(value))
        return most

    def product(self, record: Sequence[int]) -> list[int]:
        """Record @ matrix."""
        sums = [0] * self.k
        for steps, row in zip(record, self.rows, strict=True):
            if steps:
                for column, value in row.items():
                    sums[column] += steps * value
        return sums

    def gram(self) -> list[list[int]]:
        """MMᵀ or MᵀM, whichever is smaller: both have the same largest eigenvalue."""
        if self.p <= self.k:
            lines: list[Row] = list(self.rows)
        else:
            lines = [{} for _ in range(self.k)]
            for place, row in enumerate(self.rows):
                for column, value in row.items():
                    lines[column][place] = value
        return [[sum(v * b.get(c, 0) for c, v in a.items()) for b in lines] for a in lines]


def _digest(text: str, *matrices: Sequence[Row]) -> str:
    total = hashlib.sha256(text.encode())
    for rows in matrices:
        streams = (
            [len(row) for row in rows],
            [column for row in rows for column in row],
            [value for row in rows for value in row.values()],
        )
        for stream in streams:
            total.update(hashlib.sha256(struct.pack(f"<{len(stream)}q", *stream)).digest())
    return total.hexdigest()


def _dense(p: int, k: int, draw: Callable[[int], list[int]]) -> list[Row]:
    """Rows of k independent entries, drawn in blocks of ⌊2²⁰/k⌋ rows (at least one)."""
    rows, height = list[Row](), max(1, (1 << 20) // k)
    while len(rows) < p:
        count = min(height, p - len(rows))
        drawn = draw(count * k)
        for start in range(0, count * k, k):
            entries = enumerate(drawn[start : start + k])
            rows.append({column: value for column, value in entries if value})
    return rows


def _independent(name: str, rows: list[Row], k: int, second: Fraction, fourth: Fraction) -> Matrix:
    """Independent entries of these moments: scale 1/√(k·second), c = 1/k, d = (κ − 1)/k."""
    diagonal = (fourth / second**2 - 1) / k
    return Matrix(name, rows, k, 1 / (k * second), Fraction(1, k), diagonal)


def _rounded_moments(scale: int | Fraction) -> tuple[Fraction, Fraction]:
    """E Z² and E Z⁴ of round(scale·N(0, 1)), up to e^(−2π²·scale²)."""
    square = Fraction(scale) ** 2
    return square + Fraction(1, 12), 3 * square**2 + square / 2 + Fraction(1, 80)


def gaussian(p: int, k: int, seed: int) -> Matrix:
    """Entries round(2²⁰·N(0, 1))."""
    rng = Words(seed, "gaussian")
    rows = _dense(p, k, lambda count: rounded_gaussian(1 << 20, count, rng))
    return _independent("gaussian", rows, k, *_rounded_moments(1 << 20))


def rademacher(p: int, k: int, seed: int) -> Matrix:
    """Entries ±1."""
    rng = Words(seed, "rademacher")
    rows = _dense(p, k, lambda count: signs(count, rng))
    return _independent("rademacher", rows, k, Fraction(1), Fraction(1))


def uniform_entries(p: int, k: int, seed: int) -> Matrix:
    """Odd entries from 1 − 2¹⁶ to 2¹⁶ − 1: 2u − (2¹⁶ − 1) for the words' 16-bit parts u."""
    rng = Words(seed, "uniform")

    def draw(count: int) -> list[int]:
        raw = b"".join(word.to_bytes(8, "little") for word in rng.words(-(-count // 4)))
        return [2 * u - 65535 for u in struct.unpack(f"<{len(raw) // 2}H", raw)[:count]]

    most = 2**32 - 1
    fourth = Fraction(most * (3 * 2**32 - 7), 15)
    return _independent("uniform", _dense(p, k, draw), k, Fraction(most, 3), fourth)


def sparse(p: int, k: int, seed: int, sparsity: int) -> Matrix:
    """Entries 1 and −1 where a die of 2s sides shows 0 and 1, else 0."""
    rng, values = Words(seed, "sparse"), {0: 1, 1: -1}

    def draw(count: int) -> list[int]:
        return [values.get(die, 0) for die in uniform_below(2 * sparsity, count, rng)]

    part = Fraction(1, sparsity)
    return _independent("sparse", _dense(p, k, draw), k, part, part)


def identity(p: int) -> Matrix:
    """The records themselves."""
    zero = Fraction(0)
    return Matrix("identity", [{place: 1} for place in range(p)], p, Fraction(1), zero, zero)


def _bins(p: int, k: int) -> list[int]:
    size, more = divmod(p, k)
    return [size + 1 if place < more else size for place in range(k)]


def oporp(p: int, k: int, seed: int) -> Matrix:
    """One sign a row: the coordinates in the order of p distinct words fill the bins one by one."""
    require(k <= p, "inputs.parameters.k", "is more than the attributes, for OPORP")
    rng = Words(seed, "oporp")
    while len(set(keys := rng.words(p))) < p:
        pass
    order = sorted(range(p), key=keys.__getitem__)
    bins = [place for place, size in enumerate(_bins(p, k)) for _ in range(size)]
    columns = dict(zip(order, bins, strict=True))
    flips = signs(p, rng)
    rows = [{columns[place]: flips[place]} for place in range(p)]
    shared = sum(size * (size - 1) for size in _bins(p, k))
    pair = Fraction(shared, p * (p - 1)) if p > 1 else Fraction(0)
    return Matrix("oporp", rows, k, Fraction(1), pair, Fraction(0))


def repeated_oporp(p: int, k: int, seed: int, repetitions: int) -> Matrix:
    """OPORPs of k/repetitions bins side by side, whose seeds are words."""
    where = "inputs.parameters.k"
    require(k % repetitions == 0, where, f"is not a multiple of {repetitions}")
    width = k // repetitions
    parts = [oporp(p, width, word) for word in Words(seed, "repeated oporp").words(repetitions)]
    rows = [
        {n * width + c: v for n, part in enumerate(parts) for c, v in part.rows[place].items()}
        for place in range(p)
    ]
    share = Fraction(1, repetitions)
    return Matrix("repeated oporp", rows, k, share, parts[0].pair * share, Fraction(0))


def sjlt(p: int, k: int, seed: int, sparsity: int, construction: str, independence: int) -> Matrix:
    """Rows of s signs: one in each of s blocks, or in s of all columns, or by hashing."""
    s, rng, where = sparsity, Words(seed, "sjlt"), "inputs.parameters"
    require(construction == "graph" or k % s == 0, where, "k is not a multiple of the sparsity")
    size = k // s
    if independence:
        good = construction == "block" and size & (size - 1) == 0
        require(good, where, "polynomial hashing needs blocks whose size is a power of two")
        rows = _hashed_rows(p, s, size, independence, rng)
    else:
        if construction == "block":
            bins = uniform_below(size, p * s, rng)
            places = [[bins[n * s + b] + size * b for b in range(s)] for n in range(p)]
        else:
            places = _subsets(p, k, s, rng)
        flips = signs(p * s, rng)
        rows = [
            {column: flips[n * s + place] for place, column in enumerate(columns)}
            for n, columns in enumerate(places)
        ]
    return Matrix("sjlt", rows, k, Fraction(1, s), Fraction(1, k), Fraction(0))


def _subsets(p: int, k: int, s: int, rng: Words) -> list[list[int]]:
    """Floyd's algorithm in all rows at once: for last = k − s, …, k − 1 a die of last + 1 sides."""
    chosen: list[list[int]] = [[] for _ in range(p)]
    for last in range(k - s, k):
        for row, drawn in zip(chosen, uniform_below(last + 1, p, rng), strict=True):
            row.append(last if drawn in row else drawn)
    return [sorted(row) for row in chosen]


def _hashed_rows(p: int, s: int, size: int, degree: int, rng: Words) -> list[Row]:
    """Polynomials over GF(2³²), one a block: the last bit is the sign, the bits above the bin."""
    drawn = [word >> 32 for word in rng.words(s * degree)]

    def times(a: int, b: int) -> int:
        made = 0
        for bit in range(31, -1, -1):
            made <<= 1
            made ^= (made >> 32) * 0x10000008D
            made ^= a * (b >> bit & 1)
        return made

    rows = []
    for element in range(p):
        row = {}
        for block in range(s):
            value, power = drawn[block * degree], 1
            for place in range(1, degree):
                power = times(power, element) if place > 1 else element
                value ^= times(power, drawn[block * degree + place])
            row[(value >> 1 & (size - 1)) + size * block] = 1 - 2 * (value & 1)
        rows.append(row)
    return rows


def dks(p: int, k: int, seed: int, copies: int) -> Matrix:
    """Copies of each attribute, each with a bin and a sign of its own; in one bin they add up."""
    rng = Words(seed, "dks")
    bins = uniform_below(k, p * copies, rng)
    flips, rows = signs(p * copies, rng), []
    for start in range(0, p * copies, copies):
        row: Counter[int] = Counter()
        for place in range(start, start + copies):
            row[bins[place]] += flips[place]
        rows.append({column: row[column] for column in sorted(row) if row[column]})
    diagonal = Fraction(2 * (copies - 1), copies * k)
    return Matrix("dks", rows, k, Fraction(1, copies), Fraction(1, k), diagonal)


def fjlt(p: int, k: int, seed: int, density: Fraction) -> Matrix:
    """D·H·Qᵀ: signs, the Walsh-Hadamard matrix of order m ≥ p, and sparse round(2¹⁰·N(0, 1))."""
    require(0 < density <= 1, "inputs.parameters.density", "isn't in (0, 1]")
    rng, order = Words(seed, "fjlt"), 1 << (p - 1).bit_length()
    flips, coin = signs(p, rng), math.ceil(density * 2**63)
    mixing, columns = list[Row](), []
    for _ in range(k):
        hits = [place for place, word in enumerate(rng.words(order)) if word >> 1 < coin]
        values = rounded_gaussian(1 << 10, len(hits), rng)
        mixing.append({c: v for c, v in zip(hits, values, strict=True) if v})
        column = [mixing[-1].get(place, 0) for place in range(order)]
        half = 1
        while half < order:
            for start in range(0, order, 2 * half):
                for place in range(start, start + half):
                    a, b = column[place], column[place + half]
                    column[place], column[place + half] = a + b, a - b
            half *= 2
        columns.append(column)
    rows = [
        {c: flips[n] * column[n] for c, column in enumerate(columns) if column[n]} for n in range(p)
    ]
    hit = Fraction(coin, 2**63)
    second, fourth = (hit * moment for moment in _rounded_moments(1 << 10))
    excess = (fourth / second**2 - 3) / order
    scale, pair, diagonal = 1 / (k * order * second), (1 + excess) / k, (2 + excess) / k
    return Matrix("fjlt", rows, k, scale, pair, diagonal, excess / k, (flips, mixing))


def _pivots(shift: Any, gram: Sequence[Sequence[int]], of: Callable[[Any], Any]) -> Iterator[Any]:
    """Pivots of shift·I − G by elimination without exchange of rows, in the numbers of `of`."""
    rows = [
        [of(shift * (a == b) - value) for b, value in enumerate(line)]
        for a, line in enumerate(gram)
    ]
    while rows:
        (pivot, *first), *others = rows
        yield pivot
        rows = [
            [value - line[0] * up / pivot for value, up in zip(line[1:], first, strict=True)]
            for line in others
        ]


def _larger_than_norm(gram: Sequence[Sequence[int]], square: Fraction) -> bool:
    """Whether a number is above the largest eigenvalue of a Gram matrix, with proof either way.

    Elimination keeps the inertia: square·I − G is positive definite exactly if all pivots are
    positive, and a negative pivot shows a negative eigenvalue (Sylvester).
    """
    for pivot in _pivots(square, gram, number):
        if pivot.b < 0:
            return False
        if not pivot.a > 0:
            raise Left("a spectral norm on the grid of its bounds")
    return True


def largest_eigenvalue(gram: Sequence[Sequence[int]]) -> Span:
    """The neighbours of a Gram matrix's largest eigenvalue among the odd multiples of a unit.

    The unit is the largest power of two that is at most 2⁻²⁰ of the mean eigenvalue, tr G/k. No
    eigenvalue is above tr G. Pivots in doubles propose the neighbours, and intervals prove them.
    """
    size, trace = len(gram), sum(line[place] for place, line in enumerate(gram))
    if size > 64:
        raise Left("the spectral norm of a projection with more than 64 rows and columns")
    if trace == 0:
        return Span(Fraction(0), Fraction(0))
    unit = Fraction(1)
    while unit * size * 2**20 > trace:
        unit /= 2
    while 2 * unit * size * 2**20 <= trace:
        unit *= 2
    low, high = -1, size * 2**20
    while high - low > 1:
        middle = (low + high) // 2
        larger = all(pivot > 0 for pivot in _pivots(float((2 * middle + 1) * unit), gram, float))
        low, high = (low, middle) if larger else (middle, high)
    while not _larger_than_norm(gram, (2 * high + 1) * unit):
        high += 1
    while _larger_than_norm(gram, (2 * high - 1) * unit):
        high -= 1
    return Span((2 * high - 1) * unit, (2 * high + 1) * unit)


# 6. Privacy curves


TIGHT = Fraction(1, 10**14)
"""Relative width to which dpverify evaluates a closed form before its ends become doubles."""
_TINY = Fraction(5e-324)


def closed_form(value: Span, rough: Span | None = None) -> Callable[[str, Any], None]:
    """The enclosure of a closed form: tight but for a relative 10⁻¹⁴."""
    return around(value, TIGHT + Fraction(1, 2**51), rough)


class Curve:
    """A privacy curve δ(ε).

    `delta` encloses it, `delta_ends` and `epsilon_ends` say what the certificate's ends must be.
    `rates` are P[L ≥ t] under both of the worst pair's laws, in doubles.
    """

    @property
    def rough(self) -> Curve:
        """The curve that is proven from doubles around its numbers, where it isn't this one."""
        return self

    def delta(self, epsilon: Fraction) -> Span:
        """Encloses δ(ε)."""
        raise NotImplementedError

    def delta_ends(self, epsilon: Fraction) -> Callable[[str, Any], None]:
        """What the ends of δ(ε) must be."""
        value, rough = self.delta(epsilon), self.rough.delta(epsilon)
        return exactly(value.low) if value.low == value.high else closed_form(value, rough)

    def epsilon(self, delta: Fraction) -> Span:
        """Encloses ε(δ)."""
        return root_of_curve(self, delta)

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        """What the ends of ε(δ) must be."""
        value, rough = self.epsilon(delta), self.rough.epsilon(delta)
        return exactly(value.low) if value.low == value.high else closed_form(value, rough)

    def root_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        """Where there is none: a bracket of the root, of a relative width of 2⁻⁴⁰ at most."""

        def shape(where: str, stated: Any) -> None:
            found = read_ends(where, stated)
            if found.high == 0:
                require(self.delta(Fraction(0)).low <= delta, where, "isn't 0")
                return
            require(self.delta(found.high).low <= delta, f"{where}.upper", "promises too much")
            least = found.low == 0 or self.delta(found.low).high >= delta
            require(least, f"{where}.lower", "is above the root")
            wide = found.high - found.low > max(found.high, Fraction(1, 2**10)) / 2**40
            close(not wide, where, "is too wide")

        return shape

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] under both laws of the worst pair, in doubles, for planning.

        With `noise` that of the mechanism is scaled by it, and the loss is not.
        """
        raise NotImplementedError

    @lru_cache(maxsize=4096)  # noqa: B019  # of few curves
    def quantile(self, rate: float) -> float:
        """Where `rates(t)[1]` falls below a rate, by a hundred halvings of [−700, 700]."""
        low, high = -700.0, 700.0
        for _ in range(100):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self.rates(middle)[1] >= rate else (low, middle)
        return low


@dataclass(frozen=True)
class GaussianCurve(Curve):
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ): Balle and Wang 2018, theorem 8."""

    square: Fraction  # μ²

    @lru_cache(maxsize=4096)  # noqa: B019  # of few curves
    def delta(self, epsilon: Fraction) -> Span:
        # Chernoff's bound: δ(ε) ≤ P[L > ε] ≤ exp(−(ε − μ²/2)²/2μ²), here below e^−745 < 2^−1074.
        beyond = epsilon - self.square / 2
        if beyond > 0 and beyond**2 >= 2 * 745 * self.square:
            return Span(Fraction(0), _TINY)

        def value() -> Interval:
            mu, at = iv.sqrt(number(self.square)), number(epsilon)
            own, other = at / mu - mu / 2, at / mu + mu / 2
            return normal_tail(own) - iv.exp(at) * normal_tail(other)

        return enclosed(value)

    def delta_ends(self, epsilon: Fraction) -> Callable[[str, Any], None]:
        value = self.delta(epsilon)
        if value == Span(Fraction(0), _TINY):
            return tight_ends(Span(value.low, value.low), Span(value.high, value.high))
        return closed_form(value)

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        return self.root_ends(delta)

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        mu = float(self.square) ** 0.5
        own, other = ((side * mu / 2 - threshold / mu) / noise for side in (1, -1))
        return math.erfc(-own / 2**0.5) / 2, math.erfc(-other / 2**0.5) / 2


@dataclass(frozen=True)
class PureCurve(Curve):
    """What ε₀ alone implies, (e^ε₀ − e^ε)⁺/(1 + e^ε₀): Kairouz, Oh and Viswanath 2015."""

    square: Fraction  # ε₀²

    def delta(self, epsilon: Fraction) -> Span:
        if epsilon**2 >= self.square:
            return Span(Fraction(0), Fraction(0))

        def value() -> Interval:
            most = iv.exp(iv.sqrt(number(self.square)))
            return (most - iv.exp(number(epsilon))) / (1 + most)

        return enclosed(value)

    def epsilon(self, delta: Fraction) -> Span:
        if delta == 0:
            return root_of(self.square)

        def excess() -> Interval:
            most = iv.exp(iv.sqrt(number(self.square)))
            return most - number(delta) * (1 + most)

        if enclosed(excess).high <= 1:
            return Span(Fraction(0), Fraction(0))
        return enclosed(lambda: iv.log(excess()))

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        epsilon = above(root_of(self.square).high)
        p = 1 / (1 + math.exp(-min(epsilon / noise, 700.0)))
        if threshold > epsilon:
            return 0.0, 0.0
        return (p, 1 - p) if threshold > -epsilon else (1.0, 1.0)


@dataclass(frozen=True)
class LaplaceCurve(Curve):
    """Independent Laplace noise on a vector that moves by shifts, in units of the noise's scale.

    With ε₀ = Σaᵢ, T = (ε₀ − ε)/2 and m shifts, for ε < ε₀

        δ(ε) = 2^(1−m)·e^(−T)·Σ over subsets of size l and sum Λ < T of G_l(T − Λ),

    G_l being the original of (p+1)^(m−l−1)(p−1)^(l−1)/p^m: the loss is ε₀ − 2S, S the sum of
    independent min(max(x, 0), aᵢ), whose Laplace transforms multiply. With
    (p+1)^(m−l−1)(p−1)^(l−1) = Σ c_k pᵏ,

        G_l(t) = Σ_k c_k t^(m−1−k)/(m−1−k)!,          1 ≤ l < m,
        G_0(t) = 2^(m−1)e^t − Σ_{k<m} B_k t^(m−1−k)/(m−1−k)!,   B_k = Σ_{i≤k} C(m−1, i).
    """

    shifts: tuple[tuple[Fraction, int], ...]

    @property
    def most(self) -> Fraction:
        """ε₀."""
        return sum((shift * count for shift, count in self.shifts), Fraction(0))

    @property
    def size(self) -> int:
        """How many coordinates move."""
        return sum(count for _, count in self.shifts)

    @lru_cache(maxsize=4096)  # noqa: B019
    def delta(self, epsilon: Fraction) -> Span:
        m, most = self.size, self.most
        if epsilon >= most:
            return Span(Fraction(0), Fraction(0))
        if math.prod(count + 1 for _, count in self.shifts) * m > 300_000:
            raise Left("the curve of Laplace noise on rows of many different sizes")
        total = (most - epsilon) / 2
        exact = -_original(m, 0, total)
        for subset, taken, ways in self._subsets():
            if taken and subset < total:
                exact += ways * _original(m, taken, total - subset)

        def value() -> Interval:
            return number(2) ** (1 - m) * (
                number(2) ** (m - 1) + iv.exp(number(-total)) * number(exact)
            )

        return enclosed(value)

    def _subsets(self) -> list[tuple[Fraction, int, int]]:
        """Sum, size and number of the subsets of the coordinates that may count."""
        half, found = self.most / 2, Counter({(Fraction(0), 0): 1})
        for shift, count in self.shifts:
            grown: Counter[tuple[Fraction, int]] = Counter()
            for (subset, taken), ways in found.items():
                for more in range(count + 1):
                    if subset + more * shift < half:
                        key = subset + more * shift, taken + more
                        grown[key] += ways * math.comb(count, more)
            found = grown
        return [(subset, taken, ways) for (subset, taken), ways in found.items()]

    def epsilon(self, delta: Fraction) -> Span:
        return super().epsilon(delta) if delta else Span(self.most, self.most)

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        return exactly(self.most) if delta == 0 else self.root_ends(delta)

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        """By the law of S on a lattice; seen from the other side S is ε₀ − S."""
        most = float(self.most)
        if abs(threshold) > most:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        step, below = most / LATTICE, _lattice(self.shifts, most / LATTICE, noise)

        def at_most(s: float) -> float:
            place = math.floor(s / step + 1e-6)
            return 0.0 if place < 0 else below[min(place, len(below) - 1)]

        least = math.ceil((most + threshold) / 2 / step - 1e-6) * step
        return at_most((most - threshold) / 2), 1.0 - at_most(least - step)


LATTICE = 1 << 14


@lru_cache(maxsize=64)
def _lattice(shifts: tuple[tuple[Fraction, int], ...], step: float, noise: float) -> list[float]:
    """P[S ≤ j·step], every value of a part min(max(x, 0), a) split between its two neighbours."""
    laws = []
    for size, count in shifts:
        shift = float(size)
        cells = int(shift / step)
        ends = [math.exp(-n * step / noise) for n in range(cells + 1)] + [math.exp(-shift / noise)]
        law = [0.5] + [0.0] * (cells + 1)
        for n, (one, two) in enumerate(pairwise(ends)):
            law[n] += (one - two) / 4
            law[n + 1] += (one - two) / 4
        part = shift / step - cells
        law[cells] += (1 - part) * ends[-1] / 2
        law[cells + 1] += part * ends[-1] / 2
        laws.append((law, count))
    if len(laws) > 1 or laws[0][1] > 1:
        total = [1 + 0j] * (2 * LATTICE)
        for law, count in laws:
            turned = _fourier(law + [0.0] * (2 * LATTICE - len(law)), -1)
            total = [one * two**count for one, two in zip(total, turned, strict=True)]
        law = [value.real / (2 * LATTICE) for value in _fourier(total, 1)]
    return [min(max(part, 0.0), 1.0) for part in accumulate(law)]


def _fourier(values: Sequence[complex], sign: int) -> list[complex]:
    """The discrete Fourier transform of a power of two of values, by halves."""
    if len(values) == 1:
        return list(values)
    even, odd = _fourier(values[::2], sign), _fourier(values[1::2], sign)
    odd = list(map(mul, odd, _roots(len(values), sign)))
    return [*map(add, even, odd), *map(sub, even, odd)]


@cache
def _roots(size: int, sign: int) -> list[complex]:
    return [cmath.exp(sign * 2j * math.pi * n / size) for n in range(size // 2)]


@cache
def _transform(m: int, taken: int) -> tuple[int, ...]:
    """c_k of G_l for l ≥ 1, B_k for l = 0."""
    if taken == 0:
        return tuple(accumulate(math.comb(m - 1, k) for k in range(m)))
    made = [1]
    for sign, power in ((1, m - taken - 1), (-1, taken - 1)):
        for _ in range(power):
            made = [sign * a + b for a, b in zip([*made, 0], [0, *made], strict=True)]
    return (*made, 0)


def _original(m: int, taken: int, t: Fraction) -> Fraction:
    """G_l(t), for l = 0 without its exponential and with the sign turned."""
    terms = (
        c * t ** (m - 1 - k) / math.factorial(m - 1 - k)
        for k, c in enumerate(_transform(m, taken))
        if c
    )
    return sum(terms, Fraction(0))


class LatticeCurve(Curve):
    """A loss of whole steps, the same under both laws but for its sign.

    With A(j) = P[L ≥ js] and B(j) the same under the other law, by Neyman and Pearson's lemma

        δ(ε) = max over 1 ≤ j ≤ m + 1 of A(j) − e^ε B(j),
        ε(δ) = ln max(1, max over 1 ≤ j ≤ m of (A(j) − δ)/B(j)).
    """

    reach: int
    """m, most steps."""

    def step(self) -> Span:
        """The size s of a step."""
        raise NotImplementedError

    def tails(self) -> tuple[list[Interval], list[Interval]]:
        """A(j) and B(j) for 0 ≤ j ≤ m, at the working precision."""
        raise NotImplementedError

    def with_noise(self, scale: float) -> LatticeCurve:
        """That of answers whose log-odds are divided by a scale, in doubles."""
        raise NotImplementedError

    @lru_cache(maxsize=4096)  # noqa: B019
    def delta(self, epsilon: Fraction) -> Span:
        step = self.step().low
        if self.reach == 0 or epsilon >= self.reach * self.step().high:
            return Span(Fraction(0), Fraction(0))
        best = math.floor(min(epsilon / step, Fraction(self.reach + 1))) + 1
        lines = range(max(best - 1, 1), min(best + 1, self.reach) + 1)

        def value() -> Interval:
            own, other = self.tails()
            factor, most = iv.exp(number(epsilon)), iv.mpf(0)
            for j in lines:
                line = own[j] - factor * other[j]
                most = iv.mpf([max(most.a, line.a), max(most.b, line.b)])
            return most

        return enclosed(value)

    def epsilon(self, delta: Fraction) -> Span:
        def excess() -> Interval:
            own, other = self.tails()
            most = iv.mpf(-1)
            for j in range(1, self.reach + 1):
                line = (own[j] - other[j] - number(delta)) / other[j]
                most = iv.mpf([max(most.a, line.a), max(most.b, line.b)])
            return most

        if self.reach == 0 or excess().b <= 0:
            return Span(Fraction(0), Fraction(0))
        return enclosed(lambda: log1p(excess()))

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        """A loss of j steps counts where the double j·s reaches the threshold."""
        step = above(self.step().high)
        if step == 0:
            return (1.0, 1.0) if threshold <= 0 else (0.0, 0.0)
        j = math.ceil(max(min(threshold / step, self.reach + 1), -self.reach))
        while j <= self.reach and j * step < threshold:
            j += 1
        while j > -self.reach and (j - 1) * step >= threshold:
            j -= 1
        own, other = (self if noise == 1 else self.with_noise(noise)).tails()
        if j >= 0:  # not from the other side: where no loss is 0, this is what it is at 1, exactly
            return _rate(own, j), _rate(other, j)
        return 1 - _rate(other, 1 - j), 1 - _rate(own, 1 - j)


def _rate(tail: Sequence[Interval], j: int) -> float:
    return float(span(tail[j]).low) if j < len(tail) else 0.0


@dataclass(frozen=True)
class StepCurve(LatticeCurve):
    """Each of m positions loses +s, −s or 0, with probability kD, oD and the rest; s = ln(k/o)."""

    keep: Fraction
    other: Fraction
    positions: int
    differ: Fraction = Fraction(1)

    def step(self) -> Span:
        if self.keep == self.other:
            return Span(Fraction(0), Fraction(0))
        return _log(self.keep / self.other)

    @property
    def reach(self) -> int:  # type: ignore[override]
        return 0 if self.keep == self.other else self.positions

    def tails(self) -> tuple[list[Interval], list[Interval]]:
        """The weights of (k·x + rest + o/x)^m, x counting steps.

        They obey a three-term recurrence from x^m down, whose terms are all positive; P[−j] is
        (o/k)^j·P[j].
        """
        if self.positions > 1 << 14:
            raise Left("a curve of more than 16,384 positions")
        return _tails(self.keep * self.differ, self.other * self.differ, self.positions, iv.prec)

    def with_noise(self, scale: float) -> LatticeCurve:
        """What isn't kept stays evenly spread."""
        odds = math.exp(min(above(self.step().high) / scale, 700.0))
        rest = odds + float((1 - self.keep) / self.other)
        return replace(self, keep=Fraction(odds / rest), other=Fraction(1 / rest))


@dataclass(frozen=True)
class GeometricCurve(LatticeCurve):
    """Two-sided geometric noise of ratio q on m integers, each shifted by a revealed random amount.

    Beside a shift s the noisy value o has the loss s at o ≤ 0, −s at o ≥ s and s − 2o between, in
    steps of ln(1/q), with probabilities 1/(1 + q), q^s/(1 + q) and (1 − q)/(1 + q)·q^o.
    """

    ratio: Fraction
    positions: int
    shifts: tuple[tuple[int, Fraction], ...]

    def step(self) -> Span:
        return _log(1 / self.ratio)

    @property
    def reach(self) -> int:  # type: ignore[override]
        return self.positions * max(shift for shift, _ in self.shifts)

    def tails(self) -> tuple[list[Interval], list[Interval]]:
        """Of the m-th power of one position's law; P[−j] is q^j·P[j]."""
        return _geometric_tails(self, iv.prec)

    def with_noise(self, scale: float) -> LatticeCurve:
        return replace(self, ratio=Fraction(math.exp(-above(self.step().high) / scale)))


@lru_cache(maxsize=16)
def _geometric_tails(curve: GeometricCurve, _: int) -> tuple[list[Interval], list[Interval]]:
    q, most, reach = number(curve.ratio), max(shift for shift, _ in curve.shifts), curve.reach
    law = [iv.mpf(0)] * (2 * most + 1)  # of the losses most, most − 1, …, −most
    law[most] = number(1 - sum(share for _, share in curve.shifts))
    for shift, share in curve.shifts:
        for noisy in range(shift + 1):
            inner = 1 - q if 0 < noisy < shift else iv.mpf(1)
            place = most - shift + 2 * noisy
            law[place] = law[place] + number(share) * inner * q**noisy / (1 + q)
    weights = [iv.mpf(1)]  # of the losses from the largest down to 0
    for _ in range(curve.positions):
        made = [iv.mpf(0)] * min(len(weights) + 2 * most, reach + 1)
        for one, weight in enumerate(weights):
            for two, share in enumerate(law[: len(made) - one]):
                made[one + two] = made[one + two] + weight * share
        weights = made
    own = list(accumulate(weights))
    other = list(accumulate(w * q ** (reach - n) for n, w in enumerate(weights)))
    return own[::-1], other[::-1]


@dataclass(frozen=True)
class MixedCurve(Curve):
    """Positions that differ with a probability that is known between two ends, revealed."""

    keep: Fraction
    other: Fraction
    positions: int
    differ: Span

    @property
    def rough(self) -> MixedCurve:
        return replace(self, differ=doubles(self.differ))

    def at(self, differ: Fraction) -> StepCurve:
        """The curve of one probability."""
        return StepCurve(self.keep, self.other, self.positions, differ)

    def delta(self, epsilon: Fraction) -> Span:
        low = self.at(self.differ.low).delta(epsilon).low if self.differ.low else Fraction(0)
        return Span(low, self.at(self.differ.high).delta(epsilon).high)

    def epsilon(self, delta: Fraction) -> Span:
        low = self.at(self.differ.low).epsilon(delta).low if self.differ.low else Fraction(0)
        return Span(low, self.at(self.differ.high).epsilon(delta).high)

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        return self.at(self.rough.differ.high).rates(threshold, noise)


@lru_cache(maxsize=64)
def _tails(
    keep: Fraction, other: Fraction, m: int, _: int
) -> tuple[list[Interval], list[Interval]]:
    low, up, middle = number(other / keep), number(keep / other), number((1 - keep - other) / keep)
    ratio, before, weight = low**m, iv.mpf(0), number(keep) ** m
    own, opposite = [weight], [weight * ratio]
    for i in range(m):
        before, weight = (
            weight,
            ((m - i) * middle * weight + (2 * m - i + 1) * low * before) / (i + 1),
        )
        ratio = ratio * up
        own.append(own[-1] + weight)
        opposite.append(opposite[-1] + weight * ratio)
    return own[::-1], opposite[::-1]


@dataclass(frozen=True)
class NormalRowsCurve(Curve):
    """r draws of N(0, 1) against r of N(0, 1 + γ), the larger divergence of both directions.

    The loss rises with the sum of the squares, which is χ²_r, times 1 + γ for the second law. With
    Q(y) = P[χ²_r > 2y] and t(ε) = ((1 + γ)/γ)(ε + (r/2)·ln(1 + γ)) the divergences are
    Q(t(ε)/(1 + γ)) − e^ε·Q(t(ε)) and 1 − Q(u) − e^ε(1 − Q(u/(1 + γ))) at u = t(−ε), 0 if u ≤ 0.
    """

    rows: int
    gamma: Fraction

    @lru_cache(maxsize=4096)  # noqa: B019
    def delta(self, epsilon: Fraction) -> Span:
        def at(sign: int) -> Interval:
            wide = number(1 + self.gamma)
            share = wide / number(self.gamma)
            return share * (sign * number(epsilon) + iv.mpf(self.rows) / 2 * iv.log(wide))

        def value() -> Interval:
            wide, factor = number(1 + self.gamma), iv.exp(number(epsilon))
            t, u = at(1), at(-1)
            own = chi_square_tail(self.rows, t / wide) - factor * chi_square_tail(self.rows, t)
            if u.b <= 0:
                return own
            if u.a <= 0:
                raise ValueError("undecided: more precision")
            other = 1 - chi_square_tail(self.rows, u / wide)
            other = 1 - chi_square_tail(self.rows, u) - factor * other
            return iv.mpf([max(own.a, other.a), max(own.b, other.b)])

        return enclosed(value)

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        return self.root_ends(delta)

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        wide, half = 1 + float(self.gamma), self.rows / 2 * math.log1p(self.gamma)
        t, u = (wide / (wide - 1) * (side * threshold + half) for side in (1, -1))
        # The variance that both laws share is scaled, and the change isn't.
        own, base = noise + float(self.gamma), noise
        wider = _chi_square(self.rows, t / own), _chi_square(self.rows, t / base)
        narrower = 1 - _chi_square(self.rows, u / base), 1 - _chi_square(self.rows, u / own)
        odds = math.exp(min(threshold, 700.0))
        better = wider[0] - odds * wider[1] >= narrower[0] - odds * narrower[1]
        return wider if better or threshold == 0 else narrower  # at 0 they are the same


def chi_square_tail(rows: int, y: Interval) -> Interval:
    """Encloses P[χ²_r > 2y] = Γ(r/2, y)/Γ(r/2) for y ≥ 0.

    By parts Γ(a + 1, y)/Γ(a + 1) is Γ(a, y)/Γ(a) plus y^a·e^(−y)/Γ(a + 1); it starts at e^(−y) for
    a = 1, and at 2Φ(−√(2y)) for a = ½, where Γ(3/2) = √π/2.
    """
    if rows > 1 << 12:
        raise Left("normal rows beyond 4,096")
    decay = iv.exp(-y)
    if rows % 2:
        total, term, a = 2 * normal_tail(iv.sqrt(2 * y)), 2 * iv.sqrt(y / iv.pi) * decay, 0.5
    else:
        total, term, a = decay, y * decay, 1.0
    while a < rows / 2:
        total, a = total + term, a + 1
        term = term * y / a
    return total


def _chi_square(rows: int, y: float) -> float:
    """The same in doubles; 1 below 0."""
    if y <= 0:
        return 1.0
    if rows % 2:
        total, term, a = math.erfc(math.sqrt(y)), 2 * math.sqrt(y / math.pi) * math.exp(-y), 0.5
    else:
        total, term, a = math.exp(-y), y * math.exp(-y), 1.0
    while a < rows / 2:
        total, a = total + term, a + 1
        term = term * y / a
    return min(total, 1.0)


# 7. Inputs: kinds, limits, the grid


@dataclass(frozen=True)
class Kind:
    """An adjacency or a domain with its numbers."""

    name: str
    numbers: Mapping[str, Fraction]

    def __getitem__(self, name: str) -> Fraction:
        return self.numbers[name]


_KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # its numbers that must be there, and that may be
    "attribute": (("beta",), ()),
    "bit-flip": ((), ()),
    "l1-ball": (("radius",), ()),
    "record": ((), ()),
    "items": (("changes",), ()),
    "edge": (("weight",), ()),
    "row": (("radius",), ()),
    "box": (("low", "high"), ()),
    "ball": (("radius",), ()),
    "sets": (("min_size",), ("max_size",)),
    "graph": ((), ()),
}
_LARGEST = 2**100


def _kind(where: str, stated: Mapping[str, Any], allowed: Sequence[str]) -> Kind:
    name = stated["kind"]
    require(name in allowed, f"{where}.kind", f"{_short(name)} isn't one of {', '.join(allowed)}")
    needed, more = _KINDS[name]
    keys = set(stated["numbers"])
    require(set(needed) <= keys <= {*needed, *more}, where, f"has the numbers {sorted(keys)}")
    numbers = {key: exact_number(text) for key, text in stated["numbers"].items()}
    for key, value in numbers.items():
        place = f"{where}.numbers.{key}"
        if key in ("changes", "min_size", "max_size"):
            require(value.denominator == 1 and 1 <= value <= 2**4096, place, "isn't a count")
        elif name == "box":
            require(abs(value) <= _LARGEST, place, "is beyond 2**100")
        else:
            least = Fraction(1, _LARGEST) if name == "ball" else Fraction(0)
            good = 0 < value <= _LARGEST and value >= least
            require(good, place, "isn't positive, or is beyond 2**100")
    if name == "box":
        width = numbers["high"] - numbers["low"]
        require(width * _LARGEST >= 1, where, "has no width")
    if name == "sets" and "max_size" in numbers:
        require(numbers["max_size"] >= numbers["min_size"], where, "has max_size below min_size")
    return Kind(name, numbers)


UNITS = {
    "attribute": "one attribute of one record, changed by at most {beta}",
    "bit-flip": "one bit of one record, flipped",
    "l1-ball": "one record, changed by at most {radius} in l1 distance",
    "record": "one whole record, replaced by any other of the declared domain",
    "items": "at most {changes} items of one record's set, added or removed",
    "edge": "one edge of the graph, its weight changed by at most {weight}",
    "row": "one row of the matrix, moved by at most {radius} in l2 distance",
}


def unit_of(inputs: Inputs) -> str:
    """The unit of privacy in words: where columns are declared, one of one record."""
    adjacency = inputs.adjacency
    bound = adjacency.numbers.get(
        {"attribute": "beta", "l1-ball": "radius"}.get(adjacency.name, "")
    )
    if inputs.columns and bound is not None and bound >= 1:
        return "one column of one record, whatever it changes to"
    numbers = {name: exact_string(value) for name, value in adjacency.numbers.items()}
    text = UNITS[adjacency.name].format(**numbers)
    return text.replace("1 items", "1 item") if numbers.get("changes") == "1" else text


@dataclass(frozen=True)
class Inputs:
    """The owner's choices, read."""

    mechanism: str
    parameters: Mapping[str, Any]
    rows: int
    p: int
    domain: Kind
    clip: bool
    adjacency: Kind
    epsilon: Fraction
    delta: Fraction
    seed: int
    alpha: Fraction
    draws: int
    moment_draws: int
    audit_seed: int
    ranges: bool
    columns: Sequence[Mapping[str, Any]]


class Parameter(NamedTuple):
    """What a parameter may be; as the table in the specification has it."""

    kind: str  # "whole", "number" or "choice"
    default: Any = None
    low: int = 1
    high: int | str | None = None
    off: int | None = None
    choices: tuple[str, ...] = ()


def _choice(*choices: str) -> Parameter:
    return Parameter("choice", choices[0], choices=choices)


_PARAMETERS = {
    "k": Parameter("whole"),
    "sketch_rows": Parameter("whole"),
    "sketch_rows from 4": Parameter("whole", low=4),
    "buckets": Parameter("whole", low=2),
    "sparsity": Parameter("whole", high="k"),
    "independence": Parameter("whole", 0, low=4, off=0),
    "copies": Parameter("whole", 4),
    "repetitions": Parameter("whole", 1),
    "density": Parameter("number", low=0, high=1),
    "least_norm": Parameter("number", Fraction(0), low=0, off=0),
    "noise": _choice("gaussian", "laplace"),
    "at": _choice("output", "input"),
    "construction": _choice("block", "graph"),
    "ladder": _choice("smooth", "steepest"),
    "reading": _choice("over the draw", "realised"),
    "projection": _choice("gaussian", "rademacher", "achlioptas", "very-sparse", "uniform", "dks"),
    "projection of signs": _choice("rademacher", "gaussian"),
    "sigma": _choice("analytic", "kenthapadi", "li", "classical", "kenthapadi-any", "li-any"),
}
_GROUPS = {  # adjacencies and domains
    "numeric": (("attribute", "l1-ball", "record", "items"), ("box", "ball", "sets")),
    "signs": (("attribute", "l1-ball", "record"), ("box",)),
    "levels": (("attribute", "l1-ball"), ("box",)),
    "sets": (("items",), ("sets",)),
    "graph": (("edge",), ("graph",)),
    "rows": (("row",), ("ball",)),
    "bits": (("bit-flip", "record"), ("box",)),
    "distances": (("bit-flip", "attribute"), ("box",)),
}
_DRAWN = ("numeric", "signs", "levels", "sets")
"""Groups whose projections are public."""
_FAMILIES = """
raw-data-g-opt; numeric; noise
dp-rp-g; numeric; k
dp-rp-g-opt; numeric; k
dp-rp-l; numeric; k
dp-rp-g-opt-b; numeric; k, noise
dp-oporp; numeric; k, noise
private-projection; numeric; k, projection, copies, sigma
sjlt; numeric; k, sparsity, construction, independence, noise
fjlt; numeric; k, density, at, noise
dp-signrp-rr; signs; k, least_norm
dp-signrp-rr-smooth; levels; k, projection of signs, ladder
dp-signoporp-rr; signs; k, repetitions
dp-signoporp-rr-smooth; levels; k, repetitions, ladder
rr-min-hash; sets; k, buckets, reading
noisy-min-hash; sets; k, buckets, reading
jl-graph-cuts; graph; sketch_rows
jl-covariance; rows; sketch_rows from 4
randomized-response; bits
noise-addition; distances
"""
"""Mechanism, group, parameters."""


def _families() -> Iterator[tuple[str, tuple[str, dict[str, Parameter]]]]:
    for line in _FAMILIES.strip().split("\n"):
        name, group, *taken = re.split("[;,] ", line)
        yield name, (group, {one.split(" ")[0]: _PARAMETERS[one] for one in taken})


FAMILIES = dict(_families())
"""Group and parameters of every mechanism."""


def _parameters(name: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, defaults filled in."""
    known = FAMILIES[name][1]
    where = "inputs.parameters"
    require(set(stated) <= set(known), where, f"has a parameter that {name} doesn't take")
    values: dict[str, Any] = {}
    for key, rule in known.items():
        place, value = f"{where}.{key}", stated.get(key, rule.default)
        most: Any = values.get(str(rule.high), rule.high)
        require(value is not None, place, "is missing")
        if rule.kind == "choice":
            require(value in rule.choices, place, f"is none of {', '.join(rule.choices)}")
        elif rule.kind == "whole":
            good = type(value) is int
            good = good and (value == rule.off or rule.low <= value <= (most or value))
            require(good, place, "isn't a whole number in its range")
        else:
            value = _exact_at(place, value) if key in stated else value
            good = value == rule.off or (rule.low < value <= (most or value))
            require(good, place, "isn't a number in its range")
        values[key] = value
    return values


def _limits(inputs: Inputs) -> None:
    """What a certificate may ask of whoever checks it."""
    whole = [value for value in inputs.parameters.values() if type(value) is int]
    record = inputs.p**2 if inputs.domain.name == "graph" else inputs.p
    largest = max([inputs.p, *whole])
    sizes = [(record, 2**24), *((value, 2**20) for value in whole)]
    sizes += [(inputs.p * value, 2**34) for value in whole]
    for draws in (inputs.draws, inputs.moment_draws):
        sizes += [(draws, 2**27), (draws * largest, 2**40)]
    require(all(size <= most for size, most in sizes), "inputs", "ask for more than the limits")


def _columns(inputs: Inputs) -> None:
    """That declared columns make up the attributes, and are whole under what is protected."""
    where, domain = "inputs.columns", inputs.domain
    sizes = list(map(attributes_of, inputs.columns))
    require(sum(sizes) == inputs.p, where, f"don't make {inputs.p} attributes")
    unit = domain.name == "box" and domain["low"] == 0 and domain["high"] == 1
    require(unit and not inputs.ranges, where, "become attributes in [0, 1]")
    wide = max(sizes) > 1 and inputs.adjacency.name not in ("l1-ball", "record")
    require(not wide, where, "of several attributes move together")
    require(inputs.mechanism != "noise-addition", where, "are for records of their own")


def read_inputs(stated: Mapping[str, Any]) -> Inputs:
    """The inputs, in the one form that they have."""
    name = stated["mechanism"]
    if name not in FAMILIES:
        raise Left(f"{_short(name)}, a mechanism that it doesn't know, and what rests on it")
    adjacencies, domains = _GROUPS[FAMILIES[name][0]]
    domain = _kind("inputs.domain", stated["domain"], domains)
    adjacency = _kind("inputs.adjacency", stated["adjacency"], adjacencies)
    outside = stated["outside"]
    if domain.name in ("box", "ball"):
        require(outside in ("refuse", "clip"), "inputs.outside", "must be refuse or clip")
    else:
        require(outside is None, "inputs.outside", "must be null where there is no choice")
    epsilon, delta, alpha = (exact_number(stated[key]) for key in ("epsilon", "delta", "alpha"))
    good = Fraction(1, 10**300) <= epsilon <= 10**6
    require(good, "inputs.epsilon", "isn't in [1e-300, 1e6]")
    good = delta == 0 or Fraction(1, 10**300) <= delta <= 1 - Fraction(1, 10**15)
    require(good, "inputs.delta", "is neither 0 nor in [1e-300, 1 - 1e-15]")
    require(0 < alpha < 1, "inputs.alpha", "isn't in (0, 1)")
    seed, drawn = stated["projection_seed"], FAMILIES[name][0] in _DRAWN
    require(
        seed == 0 or (drawn and name != "raw-data-g-opt"),
        "inputs.projection_seed",
        "isn't 0 without a use",
    )
    ranges = stated["ranges"]
    if ranges:
        require(len(ranges) == stated["attributes"], "inputs.ranges", "must be one an attribute")
        unit = domain.name == "box" and domain["low"] == 0 and domain["high"] == 1
        require(unit, "inputs.domain", "must be [0, 1] where there are ranges")
        for place, one in enumerate(ranges):
            good = exact_number(one["low"]) < exact_number(one["high"])
            require(good, f"inputs.ranges[{place}]", "has no width")
    if purpose := stated["purpose"]:
        good = exact_number(purpose["low"]) < exact_number(purpose["high"])
        require(good, "inputs.purpose", "has no width")
    inputs = Inputs(
        name, _parameters(name, stated["parameters"]), stated["rows"], stated["attributes"],
        domain, outside == "clip", adjacency, epsilon, delta, seed, alpha,
        stated["draws"], stated["moment_draws"], stated["audit_seed"], bool(ranges),
        stated["columns"]
    )  # fmt: skip
    if inputs.columns:
        _columns(inputs)
    _limits(inputs)
    return inputs


def ends_of(box: Kind) -> tuple[Fraction, Fraction]:
    """The doubles nearest to the declared ends of a box: the ends that count."""
    return Fraction(float(box["low"])), Fraction(float(box["high"]))


@dataclass(frozen=True)
class Grid:
    """The grid of step h that records are put on, by ⌊x/h + ½⌋."""

    step: Fraction

    def steps(self, value: Fraction) -> int:
        """⌊value/h + ½⌋."""
        return math.floor(value / self.step + Fraction(1, 2))

    def gridded(self, record: Any, p: int) -> list[int]:
        """A record in steps; a set as a row of ones."""
        if isinstance(record, set):
            return [int(place in record) for place in range(p)]
        return [self.steps(Fraction(value)) for value in record]

    def width(self, box: Kind) -> int:
        """Steps from one end of a box to the other."""
        low, high = map(self.steps, ends_of(box))
        return high - low

    def reach(self, domain: Kind) -> int:
        """Largest number of steps from 0."""
        match domain.name:
            case "box":
                most = max(abs(self.steps(end)) for end in ends_of(domain))
            case "ball":
                most = self.steps(reach_of(domain))
            case _:
                most = self.steps(Fraction(1))
        require(most < 2**52, "inputs.domain", "is too wide for the grid")
        return most

    def moves(self, adjacency: Kind, domain: Kind, p: int) -> int:
        """Largest ℓ1 distance, in steps, of the gridded records of neighbours."""
        bounds = {"attribute": "beta", "l1-ball": "radius", "items": "changes"}
        name = bounds.get(adjacency.name)
        bound = (Fraction(1) if name is None else adjacency[name]) / self.step
        require(bound.denominator == 1, "inputs.adjacency", "isn't a whole number of steps")
        moves = bound.numerator
        if adjacency.name == "l1-ball":
            return moves + p - 1
        if adjacency.name == "attribute" and domain.name == "box":
            whole = adjacency["beta"] >= domain["high"] - domain["low"]
            return max(moves, self.width(domain)) if whole else moves
        return moves


def reach_of(ball: Kind) -> Fraction:
    """Bound on the norm of every record that is admitted."""
    return ball["radius"] * (1 + Fraction(1, 2**20))


def grid_of(inputs: Inputs, p: int) -> Grid:
    """The grid of linear and sign sketches: 1,024 steps for what the adjacency bounds."""
    domain, adjacency = inputs.domain, inputs.adjacency
    if domain.name == "sets":
        return Grid(Fraction(1))
    match adjacency.name:
        case "attribute":
            bound = adjacency["beta"]
            if domain.name == "box":
                width = domain["high"] - domain["low"]
                require(bound <= width, "inputs.adjacency", "is wider than the domain")
        case "l1-ball":
            bound = adjacency["radius"]
        case "record" if domain.name == "box":
            bound = domain["high"] - domain["low"]
        case "record":
            finer = 1 << ((p - 1).bit_length() + 1) // 2
            return Grid(domain["radius"] / (1024 * finer))
        case _:
            raise Differs("inputs.adjacency", "is for sets alone")
    return Grid(bound / 1024)


# 8. Mechanisms: what each one's facts, guarantee and shape must be


class Claim(NamedTuple):
    """What follows of the guarantee, but for its curve."""

    randomness: str
    data_choice: str
    theorem: str
    statements: tuple[str, ...]
    assumptions: tuple[str, ...] = ()


ANY_TIME = "at any time, also by someone who has seen the {}"
NOTHING_DRAWN = "at any time: nothing is drawn before the data"
BALLE = "Balle and Wang 2018 (arXiv:1805.06530v2), theorem 8"


class Mechanism:
    """What the inputs and the recorded noise make.

    Attributes
    ----------
    facts : as `same` compares them with the certificate's
    curve, claim : of the guarantee
    shape, dtype, step : of the release; `step` None where its numbers count nothing
    within : encloses P[|Z| < size] for the noise Z that every released number has of its own; None
        where a release isn't of that kind
    """

    facts: dict[str, Any]
    inputs: Inputs
    curve: Curve
    claim: Claim
    shape: list[int]
    dtype: str
    step: Span | None = None
    within: Callable[[int], Interval] | None = None

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        """From the recorded facts; where there are none, with noise that is sought anew."""
        raise NotImplementedError

    def possible(self, row: bytes) -> bool:
        """Whether it can release this row of bytes."""
        del row
        return True

    def estimators(self) -> list[Estimator]:
        """Its estimators, the most important first."""
        raise NotImplementedError

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        """Synthetic arguments of the estimators."""
        raise NotImplementedError


def _exact_at(where: str, text: Any) -> Fraction:
    """The exact number that a field states."""
    try:
        return exact_number(text)
    except ValueError as error:
        raise Differs(where, str(error)) from None


def _recorded(facts: Any, section: str, name: str) -> Any:
    where = f"derived.facts.{section}"
    good = isinstance(facts.get(section), dict) and name in facts[section]
    require(good, where, f"has no {name}")
    return facts[section][name]


def _double(where: str, text: Any, low: Fraction) -> Fraction:
    """A recorded scale of noise: the exact value of a double in its range."""
    value = _exact_at(where, text)
    require(low <= value <= 2**44, where, "is out of its range")
    require(Fraction(float(value)) == value, where, "is not a double")
    return value


def _recorded_coin(facts: Any, section: str, name: str, suffix: str) -> int:
    """A recorded whole number of 2⁻⁶⁴."""
    text, where = _recorded(facts, section, name), f"derived.facts.{section}.{name}"
    good = isinstance(text, str) and re.fullmatch("[0-9]{1,20}" + re.escape(suffix), text)
    require(bool(good), where, "is not a multiple of 2**-64")
    return int(text.removesuffix(suffix))


def normal_within(scale: Fraction) -> Callable[[int], Interval]:
    """P[|Z| < t] for Z = round(N(0, scale²)), which is so where |N| < t − ½."""
    return lambda size: 1 - 2 * normal_tail(number((size - Fraction(1, 2)) / scale))


def laplace_within(scale: Fraction) -> Callable[[int], Interval]:
    """The same for Laplace noise, rounded."""
    return lambda size: 1 - iv.exp(-number((size - Fraction(1, 2)) / scale))


def geometric_within(ratio: Fraction) -> Callable[[int], Interval]:
    """The same for P[Z = z] = (1 − q)/(1 + q)·q^|z|."""
    return lambda size: 1 - 2 * number(ratio) ** size / number(1 + ratio)


class LinearSketch(Mechanism):
    """Records @ P + noise, or (records + noise) @ P."""

    step: Span

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        self.inputs, self.matrix = inputs, projection_of(inputs)
        values = inputs.parameters
        self.laplace = inputs.mechanism == "dp-rp-l" or values.get("noise") == "laplace"
        self.at_input = values.get("at") == "input"
        p, domain, adjacency = inputs.p, inputs.domain, inputs.adjacency
        self.grid = grid_of(inputs, p)
        if adjacency.name == "items":
            require(domain.name == "sets", "inputs.domain", "must be sets, where items change")
        if domain.name == "ball" and inputs.clip:
            require(adjacency.name == "record", "inputs.outside", "clipping a ball moves all")
        # What the noise is added to is what neighbours move.
        self.before = identity(p) if self.at_input else self.matrix
        self.spectral = Fraction(0)  # of ‖P‖₂ the double above, where a bound needs it
        spectral_fact: dict[str, Any] = {}
        if adjacency.name in ("record", "items"):
            low, high = map(root_of, self._squared_spectral_norm())
            self.spectral = Fraction(above(high.high))
            if adjacency.name == "record":
                spectral_fact["integer_spectral_norm"] = tight_ends(low, high)
        self.l1, self.l2 = self._distance(1), self._distance(2)
        require(self.l2 > 0, "inputs.projection_seed", "draws a projection of zeros")
        reach = self.grid.reach(domain)
        largest = reach * self.matrix.largest_column()
        require(largest < 2**53, "inputs.domain", "is too wide for exact sums")
        noise = "derived.facts.noise.scale_in_steps"
        self.unit = self.grid.step**2 * self.matrix.scale  # square of a released step
        self.noise_unit = self.grid.step**2 if self.at_input else self.unit
        self.step = root_of(self.unit)
        least = Fraction(1, 64) if self.laplace else Fraction(1)
        if facts is None:
            self.scale = Fraction(self._sought_noise())
            allowed = least <= self.scale <= 2**44
            require(allowed, "inputs.epsilon", "asks for noise that is too fine or too wide")
            return
        self.scale = _double(noise, _recorded(facts, "noise", "scale_in_steps"), least)
        if not self.at_input:
            self.within = laplace_within(self.scale) if self.laplace else normal_within(self.scale)
        self.curve = self._curve(self.scale)
        self._least_noise(noise)
        self.facts = self._facts(reach, largest, spectral_fact)
        self.claim = Claim(
            "the noise alone, for this realised public projection",
            ANY_TIME.format("projection"),
            "Dwork, McSherry, Nissim and Smith 2006, proposition 1" if self.laplace else BALLE,
            ("slides2025.page-10.laplace" if self.laplace else "li2023.theorem-3.5",),
        )
        self.shape, self.dtype = [inputs.rows, self.matrix.k], "int64"

    # How far apart neighbours are

    def _squared_spectral_norm(self) -> Span:
        """Bounds of ‖P‖₂²: columns of oporp and the identity are orthogonal."""
        if self.before.name in ("oporp", "identity"):
            bins = _bins(self.before.p, self.before.k) if self.before.name == "oporp" else [1]
            return Span(Fraction(max(bins)), Fraction(max(bins)))
        return largest_eigenvalue(self.before.gram())

    def _changes(self) -> int:
        """How many items of a set may differ."""
        if self.inputs.adjacency.name == "items":
            return int(self.inputs.adjacency["changes"])
        most = self.inputs.domain.numbers.get("max_size")
        if most is None:
            raise Differs("inputs.domain", "must declare max_size where whole sets change")
        return min(2 * int(most), self.inputs.p)

    def _distance(self, norm: int) -> Fraction:
        """Square of the bound on the ℓ1 or ℓ2 distance of neighbours' sketches, in steps."""
        domain, adjacency, before = self.inputs.domain, self.inputs.adjacency, self.before
        p, k = self.inputs.p, before.k
        row = Fraction(before.row_norm(norm)) ** (2 if norm == 1 else 1)  # squared
        many = k if norm == 1 else 1

        def of_norm(span_squared: Fraction | int) -> Fraction:
            return span_squared * self.spectral**2 * many

        if adjacency.name == "items" or (domain.name == "sets" and adjacency.name == "record"):
            count = self._changes()
            return min(of_norm(count), count**2 * row)
        if adjacency.name != "record":
            return self.grid.moves(adjacency, domain, p) ** 2 * row
        if domain.name == "ball":
            span_ = 2 * reach_of(domain) / self.grid.step + math.isqrt(p - 1) + 1
            return of_norm(span_**2)
        width = self.grid.width(domain)
        if p <= 12:
            return Fraction(width**2) * self._largest_vertex(norm)
        columns = before.columns()
        together = sum(columns) ** 2 if norm == 1 else sum(c * c for c in columns)
        return min(of_norm(width**2 * p), Fraction(width**2 * together))

    def _largest_vertex(self, norm: int) -> int:
        """Square of the largest ‖sP‖ over vectors s of signs, tried one by one."""
        best = 0
        for flips in product((1, -1), repeat=self.inputs.p - 1):
            sizes = (abs(value) ** norm for value in self.before.product((1, *flips)))
            best = max(best, sum(sizes))
        return best**2 if norm == 1 else best

    def _row(self) -> tuple[tuple[Fraction, int], ...] | None:
        """A move that none of neighbours' is worse than under Laplace noise; None where unknown."""
        if self.inputs.adjacency.name == "record":
            return None
        sums = [0] * self.before.k
        for row in self.before.rows:
            sizes = sorted((abs(value) for value in row.values()), reverse=True)
            totals = list(accumulate(sizes + [0] * (self.before.k - len(sizes))))
            sums = [max(pair) for pair in zip(sums, totals, strict=True)]
        points = list(enumerate(sums[: sums.index(sums[-1]) + 1], start=1))
        corners = [(0, 0)]
        for point in points:
            while len(corners) > 1 and _slope(*corners[-2:]) <= _slope(corners[-1], point):
                corners.pop()
            corners.append(point)
        moves = self.grid.moves(self.inputs.adjacency, self.inputs.domain, self.inputs.p)
        sizes_ = Counter[Fraction]()
        for one, other in pairwise(corners):
            sizes_[moves * _slope(one, other)] += other[0] - one[0]
        total = sum((size * count for size, count in sizes_.items()), Fraction(0))
        return tuple(sorted(sizes_.items())) if total**2 <= self.l1 else None

    # The noise and its curve

    def _curve(self, scale: Fraction) -> Curve:
        if not self.laplace:
            return GaussianCurve(self.l2 / scale**2)
        row = self._row()
        if row is None:
            return PureCurve(self.l1 / scale**2)
        return LaplaceCurve(tuple((size / scale, count) for size, count in row))

    def _by_formula(self) -> Span | None:
        """The scale as a theorem has it; None where it is the least that the curve allows."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta
        if self.laplace and (delta == 0 or isinstance(self._curve(Fraction(1)), PureCurve)):
            return root_of(self.l1 / epsilon**2)
        level = self.inputs.parameters.get("sigma", "analytic")
        level = "li" if self.inputs.mechanism == "dp-rp-g" else level
        if level == "analytic":
            require(delta > 0, "inputs.delta", "must be positive with Gaussian noise")
            return None
        due = _published_level(level, epsilon, delta, self.l2, self._any_projection(level))
        if due is None:
            raise Differs("inputs.parameters.sigma", "belongs to a theorem that doesn't apply here")
        return due

    def _sought_noise(self) -> float:
        """The least scale, by Brent's method on ln δ from 1 for the norm of the distance."""
        if (due := self._by_formula()) is not None:
            return above(due.high)
        epsilon, goal = self.inputs.epsilon, self.inputs.delta
        distance = float(root_of(self.l1 if self.laplace else self.l2).high)

        def excess(power: float) -> float:
            delta = self._curve(Fraction(distance * math.exp(power))).delta(epsilon).high
            return math.log(max(delta, _TINY) / goal)

        low = high = 0.0
        while excess(high) > 0:
            high += 1
        while excess(low) < 0:
            low -= 1
        return distance * math.exp(brent(excess, low, high, 0.0))

    def _least_noise(self, where: str) -> None:
        """Whether the recorded scale is what the theorem asks for."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta
        if (due := self._by_formula()) is not None:
            slack = 0 if self.laplace else TIGHT
            low, high = (Fraction(above(end)) for end in due)
            near = low * (1 - slack) <= self.scale <= high * (1 + slack)
            require(near, where, "isn't what its theorem asks for")
            return
        least = 1 - Fraction(1, 2**40 if self.laplace else 2**49)
        enough = self._curve(self.scale).delta(epsilon).high <= delta
        require(enough, where, "is too little for the target")
        if least * self.scale * (64 if self.laplace else 1) >= 1:
            more = self._curve(self.scale * least).delta(epsilon).low > delta
            require(more, where, "is more than the target needs")

    def _any_projection(self, level: str) -> tuple[Fraction, int, int] | None:
        if not level.endswith("-any"):
            return None
        inputs = self.inputs
        good = (
            inputs.parameters["projection"] == "gaussian" and inputs.adjacency.name == "attribute"
        )
        require(good, "inputs.parameters.sigma", "is for gaussian projections of an attribute")
        moves = self.grid.moves(inputs.adjacency, inputs.domain, inputs.p)
        return moves**2 / self.matrix.scale, inputs.p, self.matrix.k

    def _facts(self, reach: int, largest: int, spectral: Mapping[str, Any]) -> dict[str, Any]:
        matrix, name = self.matrix, "scale" if self.laplace else "sigma"
        distance = self.l1 if self.laplace else self.l2
        variance = laplace_variance(self.scale) if self.laplace else gaussian_variance(self.scale)
        place = "input" if self.at_input else "output"
        facts: dict[str, Any] = {
            "grid": {
                "step": exact_string(self.grid.step),
                "largest_value_in_steps": str(reach),
                "largest_partial_sum": str(largest),
            },
            "projection": {
                "kind": matrix.name,
                "rows": matrix.p,
                "columns": matrix.k,
                "sha256": matrix.sha256,
                "scale_squared": str(matrix.scale),
                "integer_row_norm_l1": str(matrix.row_norm(1)),
                "integer_row_norm_l2_squared": str(matrix.row_norm(2)),
                **spectral,
            },
            "sensitivity": {
                "l1_squared_in_steps": str(self.l1),
                "l2_squared_in_steps": str(self.l2),
                "l1" if self.laplace else "l2": tight(root_of(distance * self.noise_unit)),
            },
            "noise": {
                "distribution": ("Laplace" if self.laplace else "Gaussian")
                + f", rounded exactly to the grid of the {place}",
                "scale_in_steps": exact_string(self.scale),
                name: closed_form(root_of(self.scale**2 * self.noise_unit)),
                "variance_in_steps": closed_form(variance),
            },
        }
        if not self.laplace:
            facts["published"] = self._published()
        return facts

    def _published(self) -> Callable[[str, Any], None]:
        """What published theorems ask for, for the ε that this curve has at δ = 10⁻⁶."""
        delta, square = Fraction(1, 10**6), self.l2 * self.noise_unit
        epsilon = root_of_curve(self.curve, delta)
        if epsilon.high == 0:
            return lambda where, stated: same(where, stated, {})
        inputs, any_ = self.inputs, None
        drawn = self.matrix.name == "gaussian" and not self.at_input
        if drawn and inputs.adjacency.name in ("attribute", "l1-ball"):
            moves = self.grid.moves(inputs.adjacency, inputs.domain, inputs.p)
            any_ = (self.grid.step * moves) ** 2, inputs.p, self.matrix.k
        levels: dict[str, tuple[str, tuple[Fraction, int, int] | None]] = {
            "kenthapadi2013_theorem_1": ("kenthapadi", None),
            "li2023_theorem_3.1": ("li", None),
            "classical_epsilon_below_1": ("classical", None),
        }
        if any_ is not None:
            levels |= {
                "kenthapadi2013_lemma_2_any_projection": ("kenthapadi-any", any_),
                "li2023_theorem_3.4_any_projection": ("li-any", any_),
            }
        # ε itself is known to a few doubles alone. A theorem that holds at one end of them (all are
        # for ε below something) may be there or not: a target of ε = 1 at this δ is such an end.
        low, high = (
            {
                f"sigma_by_{name}": nearly(value, Fraction(1, 2**46))
                for name, (level, size) in levels.items()
                if (value := _published_level(level, end, delta, square, size)) is not None
            }
            for end in epsilon
        )

        def shape(where: str, stated: Any) -> None:
            same(where, stated, {n: due for n, due in low.items() if n in high or n in stated})

        return shape

    # Estimators, of gridded records. Doubles from here on.

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        for pair in synthetic_pairs(self.inputs, self.inputs.p, rng):
            yield tuple(self.grid.gridded(record, self.inputs.p) for record in pair)

    def _noise(self) -> tuple[float, float, int]:
        """The moments v and w, second and fourth of the noise, and of how many values of a row."""
        step = float(self.grid.step) if self.at_input else above(self.step.high)
        law = laplace_variance if self.laplace else gaussian_variance
        variance, fourth = above(law(self.scale).high), fourth_moment(self.scale, self.laplace)
        values = self.inputs.p if self.at_input else self.matrix.k
        return variance * step**2, fourth * step**4, values

    def _exact(self, *vectors: Sequence[int]) -> Fraction:
        """Σ of products in the records' unit."""
        return dot(*vectors) * self.grid.step ** len(vectors)

    def _over_projection(self, crossed: Any, product: Any, same_: Any) -> Any:
        """Variance over P of ⟨uP, tP⟩: c(crossed − 2S) + dS + e(product − S)."""
        matrix = self.matrix
        return (
            matrix.pair * (crossed - 2 * same_)
            + matrix.diagonal * same_
            + matrix.common * (product - same_)
        )

    def estimators(self) -> list[Estimator]:
        """Kenthapadi et al. 2013, theorem 2, Stausholm 2021, lemma 3, Li and Li 2023, 3.9, 3.10."""
        found = [
            Estimator("squared distance", "exact", self._distance_moments),
            Estimator("inner product", "exact", self._product_moments),
        ]
        cosine = Estimator("cosine", "delta method", self._cosine_moments)
        return found if self.at_input else [*found, cosine]

    def _distance_moments(self, x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
        """For z = x − y: 8v‖z‖² + n(2w + 2v²), and the variance of ‖zP‖² over P.

        At the input P applies to z and noise: with s = 2v and w₂ = 2w + 6v² in every attribute.
        """
        v, w, values = map(Fraction, self._noise())
        z = [a - b for a, b in zip(x, y, strict=True)]
        zz, fourth = self._exact(z, z), self._exact(z, z, z, z)
        spread = 8 * v * zz + values * (2 * w + 2 * v * v)
        squared = zz * zz
        if self.at_input:
            fourth += 12 * v * zz + values * (2 * w + 6 * v * v)
            squared = spread + (zz + 2 * values * v) ** 2
        spread += self._over_projection(2 * squared, squared, fourth)
        return float(zz), float(zz), float(spread)

    def _product_moments(self, x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
        """For the noise v(‖x‖² + ‖y‖²) + nv², and Var⟨xP, yP⟩ over P; at the input with noise."""
        v, _, values = map(Fraction, self._noise())
        xy, xx, yy, fourth = (self._exact(*of) for of in ((x, y), (x, x), (y, y), (x, x, y, y)))
        spread = v * (xx + yy) + values * v * v
        squared, norms = xy * xy, xx * yy
        if self.at_input:
            squared, fourth = squared + spread, fourth + spread
            norms = (xx + values * v) * (yy + values * v)
        spread += self._over_projection(norms + squared, squared, fourth)
        return float(xy), float(xy), float(spread)

    def _cosine_moments(self, x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
        """A/√(BC) of A ≈ ⟨x, y⟩, B ≈ ‖x‖², C ≈ ‖y‖²: second order mean, first order variance.

        The gradient is (1, −a/2b, −a/2c)/√(bc). Where x and y are nearly parallel all cancels: what
        P adds is summed exactly, and the noise's share has 1 − ρ² put in.
        """
        (v, w, k), exact, forms = self._noise(), self._exact, ((x, y), (x, x), (y, y))
        xy, xx, yy = (exact(*form) for form in forms)
        if xx * yy == 0:  # a record of norm 0 has no cosine
            return math.nan, math.nan, math.nan
        a, b, c = float(xy), float(xx), float(yy)
        root = math.sqrt(b * c)
        rho, kurtosis = a / root, k * (w - v * v)
        noise = [
            [v * (b + c) + k * v * v, 2 * v * a, 2 * v * a],
            [2 * v * a, 4 * v * b + kurtosis, 0.0],
            [2 * v * a, 0.0, 4 * v * c + kurtosis],
        ]
        drawn = [
            [
                self._over_projection(
                    exact(p, r) * exact(q, s) + exact(p, s) * exact(q, r),
                    exact(p, q) * exact(r, s),
                    exact(p, q, r, s),
                )
                for r, s in forms
            ]
            for p, q in forms
        ]
        one, two = -1 / (2 * b * root), -1 / (2 * c * root)
        second = [
            [0.0, one, two],
            [one, 3 * rho / (4 * b * b), rho / (4 * b * c)],
            [two, rho / (4 * b * c), 3 * rho / (4 * c * c)],
        ]
        places, slopes = list(product(range(3), repeat=2)), (1, -xy / (2 * xx), -xy / (2 * yy))
        bias = sum(second[i][j] * (noise[i][j] + drawn[i][j]) for i, j in places) / 2
        spread = sum(slopes[i] * drawn[i][j] * slopes[j] for i, j in places) / (xx * yy)
        square = xy * xy / (xx * yy)
        parts = (
            float(spread),
            v * float(1 - square) * (1 / b + 1 / c),
            k * v * v / (b * c),
            kurtosis * float(square) * (1 / b**2 + 1 / c**2) / 4,
        )
        return rho, rho + bias, sum(parts)


def _slope(one: tuple[int, int], other: tuple[int, int]) -> Fraction:
    return Fraction(other[1] - one[1], other[0] - one[0])


@lru_cache(maxsize=256)
def root_of_curve(curve: Curve, delta: Fraction) -> Span:
    """ε(δ) to a relative 2⁻⁴⁸; 0 where δ(0) ≤ δ.

    Brent's method on ln δ proposes a double, and δ on both sides of it is the proof.
    """
    if curve.delta(Fraction(0)).high <= delta:
        return Span(Fraction(0), Fraction(0))

    def excess(epsilon: float) -> float:
        return math.log(max(curve.delta(Fraction(epsilon)).high, _TINY) / delta)

    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    at = brent(excess, low, high, 0.0)
    span_ = Span(*(Fraction(at) * (1 + Fraction(sign, 2**48)) for sign in (-1, 1)))
    if not curve.delta(span_.low).low >= delta >= curve.delta(span_.high).high:
        raise Left("a root of a curve")
    return span_


@lru_cache(maxsize=4096)
def _log(value: Fraction) -> Span:
    return enclosed(lambda: iv.log(number(value)))


def _published_level(
    level: str,
    epsilon: Fraction,
    delta: Fraction,
    square: Fraction,
    any_projection: tuple[Fraction, int, int] | None = None,
) -> Span | None:
    """σ as a theorem has it, for a sensitivity of this square; None where it says nothing."""
    if not (0 < delta < 1 and epsilon > 0):
        return None
    inside: dict[
        str, tuple[int, Fraction, Fraction, bool]
    ] = {  # of the root, as a ratio whose logarithm it holds; all but the first add ε to it
        "classical": (2, Fraction(5, 4) / delta, Fraction(0), epsilon < 1),
        "kenthapadi": (2, 1 / (2 * delta), epsilon, 2 * delta < 1),
        "li": (2, 1 / delta, epsilon, 2 * delta < 1),
        "li-any": (2, 2 / delta, epsilon, 2 * delta < 1),
        "kenthapadi-any": (16, 1 / delta, Fraction(0), True),
    }
    factor, ratio, added, holds = inside[level]
    if any_projection is not None:
        square, p, k = any_projection
    if level == "kenthapadi-any":
        logs, most = _log(2 * p / delta), _log(ratio)
        holds = k > 2 * logs.high and epsilon < most.low
    if not holds:
        return None

    def value() -> Interval:
        inner = factor * (iv.log(number(ratio)) + number(added))
        if level == "li-any":
            share = iv.log(number(2 * p / delta)) / k
            inner = inner * (1 + 2 * iv.sqrt(share) + 2 * share)
        return iv.sqrt(number(square) * inner) / number(epsilon)

    return enclosed(value)


@lru_cache(maxsize=256)
def gaussian_variance(scale: Fraction) -> Span:
    """Var round(N(0, s²)).

    E Z² = 2·Σ_{n≥0} (2n + 1)·P[Z > n], and P[Z > n] = Φ(−(n + ½)/s). For s ≥ 8 Poisson's summation
    gives s² + 1/12 up to Σ_m 8(s² + 1)·e^(−2π²s²m²) < 2⁻¹⁸⁰⁰·s² (docs/accounting-gaussian.md,
    section 10).
    """
    if scale >= 8:
        exact = scale**2 + Fraction(1, 12)
        return Span(exact - Fraction(1, 2**1000), exact + Fraction(1, 2**1000))

    def value() -> Interval:
        total = iv.mpf(0)
        for n in range(math.ceil(30 * scale)):
            total = total + 2 * (2 * n + 1) * normal_tail(number((n + Fraction(1, 2)) / scale))
        # What is left out is below Σ 2(2n+1)e^(−(n+½)²/2s²) from x = 30 on: below 2⁻⁵⁰⁰.
        return total + iv.mpf([0, 2.0**-500])

    return enclosed(value)


def laplace_variance(scale: Fraction) -> Span:
    """Var round(Laplace(b)): cosh r/(2·sinh² r) with r = 1/2b, by summing n²·sinh(r)·2e^(−2rn)."""

    def value() -> Interval:
        up = iv.exp(number(1 / (2 * scale)))
        sinh, cosh = (up - 1 / up) / 2, (up + 1 / up) / 2
        return cosh / (2 * sinh * sinh)

    return enclosed(value)


def fourth_moment(scale: Fraction, laplace: bool) -> float:
    """E Z⁴ of rounded noise, in doubles."""
    s = float(scale)
    if laplace:
        x, rest = math.exp(-1 / s), -math.expm1(-1 / s)
        return 2 * math.sinh(1 / (2 * s)) * x * (1 + 11 * x + 11 * x**2 + x**3) / rest**5
    if s >= 8:
        return float(_rounded_moments(scale)[1])
    tails = [math.erfc((n + 0.5) / s / 2**0.5) for n in range(math.ceil(40 * s))]
    return sum(n**4 * (one - two) for n, (one, two) in enumerate(pairwise(tails), start=1))


@lru_cache(maxsize=64)
def _projection(name: str, p: int, seed: int, values: tuple[tuple[str, Any], ...]) -> Matrix:
    chosen = dict(values)
    k = chosen.get("k", p)
    match name:
        case "raw-data-g-opt":
            return identity(p)
        case "dp-oporp":
            return oporp(p, k, seed)
        case "dp-rp-g-opt-b":
            return rademacher(p, k, seed)
        case "sjlt":
            return sjlt(
                p, k, seed, chosen["sparsity"], chosen["construction"], chosen["independence"]
            )
        case "fjlt":
            return fjlt(p, k, seed, chosen["density"])
        case "dp-signoporp-rr" | "dp-signoporp-rr-smooth":
            return repeated_oporp(p, k, seed, chosen["repetitions"])
    match chosen.get("projection", "gaussian"):
        case "rademacher":
            return rademacher(p, k, seed)
        case "achlioptas":
            return sparse(p, k, seed, 3)
        case "very-sparse":
            return sparse(p, k, seed, max(1, round(p**0.5)))
        case "uniform":
            return uniform_entries(p, k, seed)
        case "dks":
            return dks(p, k, seed, chosen["copies"])
    return gaussian(p, k, seed)


def projection_of(inputs: Inputs) -> Matrix:
    """The realised projection that the inputs name."""
    size = inputs.p * inputs.parameters.get("k", 1)
    if size > 2**22:
        raise Left("projections of more than 4,194,304 entries")
    values = tuple(sorted(inputs.parameters.items()))
    return _projection(inputs.mechanism, inputs.p, inputs.seed, values)


class NoiseAddition(Mechanism):
    """All pairwise squared distances of one data set, plus Gaussian noise."""

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        self.inputs, domain, adjacency, rows = inputs, inputs.domain, inputs.adjacency, inputs.rows
        require(rows >= 2, "inputs.rows", "must be 2 or more")
        require(rows * inputs.p <= 2**26, "inputs.rows", "times the attributes is too much")
        bits = adjacency.name == "bit-flip"
        if bits:
            unit = domain["low"] == 0 and domain["high"] == 1
            require(unit, "inputs.domain", "must be [0, 1] for bits")
        bound = Fraction(1) if bits else adjacency["beta"]
        good = bound <= domain["high"] - domain["low"]
        require(good, "inputs.adjacency", "is wider than the domain")
        grid = Grid(bound / 1024)
        grid.reach(domain)
        width = grid.width(domain)
        moves = min(grid.moves(adjacency, domain, inputs.p), width)
        change = moves * (2 * width - moves)
        square = Fraction((rows - 1) * change**2)
        largest = inputs.p * width**2
        require(largest < 2**53, "inputs.domain", "is too wide for exact distances")
        where = "derived.facts.noise.scale_in_steps"
        scale = _double(where, _recorded(facts, "noise", "scale_in_steps"), Fraction(1))
        self.within = normal_within(scale)
        curve = self.curve = GaussianCurve(square / scale**2)
        require(inputs.delta > 0, "inputs.delta", "must be positive with Gaussian noise")
        require(curve.delta(inputs.epsilon).high <= inputs.delta, where, "is too little")
        if scale * (1 - Fraction(1, 2**49)) >= 1:
            less = GaussianCurve(square / (scale * (1 - Fraction(1, 2**49))) ** 2)
            more = less.delta(inputs.epsilon).low > inputs.delta
            require(more, where, "is more than the target needs")
        unit_ = grid.step**2
        delta = Fraction(1, 10**6)
        epsilon = root_of_curve(curve, delta).high
        published = enclosed(
            lambda: (
                number(change * unit_)
                * iv.sqrt(2 * rows * (number(epsilon) - iv.log(number(2 * delta))))
                / number(epsilon)
            )
        )
        self.facts = {
            "grid": {
                "step": exact_string(grid.step),
                "width_in_steps": width,
                "largest_distance_in_steps": str(largest),
            },
            "sensitivity": {
                "entries_changed": rows - 1,
                "change_of_an_entry_in_steps": str(change),
                "l2_squared_in_steps": str(square),
                "l2": tight(root_of(square * unit_**2)),
            },
            "noise": {
                "distribution": "Gaussian, rounded exactly to the grid of the distances",
                "scale_in_steps": exact_string(scale),
                "sigma": exactly(scale * unit_),
                "variance_in_steps": closed_form(gaussian_variance(scale)),
                "published_sigma": nearly(published, Fraction(1, 2**46)),
            },
        }
        self.claim = Claim(
            "the noise alone: there is no other randomness",
            NOTHING_DRAWN,
            BALLE,
            ("li2023.theorem-3.5",),
        )
        self.shape, self.dtype = [rows * (rows - 1) // 2], "int64"
        self.step, self.grid, self.scale = Span(unit_, unit_), grid, scale

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        """Four data sets with two of their rows."""
        (low, high), rows, p = (
            map(float, ends_of(self.inputs.domain)),
            self.inputs.rows,
            self.inputs.p,
        )
        for _ in range(4):
            unit = uniform(rows * p, rng)
            if self.inputs.adjacency.name == "bit-flip":
                unit = [float(round(value)) for value in unit]
            (first,), (shift,) = uniform_below(rows, 1, rng), uniform_below(rows - 1, 1, rng)
            other, data = (first + 1 + shift) % rows, list[list[int]]()
            for start in (first * p, other * p):
                chosen = (
                    min(max(low + (high - low) * u, low), high) for u in unit[start : start + p]
                )
                data.append(self.grid.gridded(chosen, p))
            yield tuple(data)

    def estimators(self) -> list[Estimator]:
        """A released distance as it is, whose variance is that of the rounded noise."""
        variance = above(gaussian_variance(self.scale).high) * float(self.grid.step**4)

        def moments(x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
            truth = sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) * float(self.grid.step**2)
            return truth, truth, variance

        return [Estimator("squared distance", "exact", moments)]


COIN = WORD
MAX_KEEP = COIN - (1 << 24)
"""Most of the 2⁶⁴ words on which a coin keeps."""


def last_that(holds: Callable[[int], bool], good: int, bad: int, halvings: int = 9999) -> int:
    """By halving between a number that holds and one that need not, the last one that does."""
    while abs(bad - good) > 1 and halvings:
        middle, halvings = (good + bad) // 2, halvings - 1
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


class Search(NamedTuple):
    """Where a coin or a ratio, in 2⁻⁶⁴, is sought: from the one for δ = 0, that holds, to the last.

    So many halvings lead next to the last one that holds; without a limit, to it.
    """

    pure: int
    last: int
    holds: Callable[[int], bool]
    halvings: int = 9999

    def found(self, delta: Fraction) -> int:
        """The one that the target has."""
        return last_that(self.holds, *self[:2], self.halvings) if delta else self.pure

    def check(self, where: str, stated: int, delta: Fraction) -> None:
        """Whether a recorded one is that."""
        if delta == 0:
            require(stated == self.pure, where, "isn't the one of this epsilon")
            return
        low, high = sorted(self[:2])
        require(low <= stated <= high, where, "isn't one of this target")
        require(self.holds(stated), where, "is too little randomness for the target")
        step = max(1, high - low >> 38) if self.halvings == 40 else 1
        beyond = stated + (step if self.last > self.pure else -step)
        least = not low <= beyond <= high or not self.holds(beyond)
        require(least, where, "is more randomness than the target needs")


def pure_keep(epsilon: Fraction, positions: int, values: int) -> int:
    """⌊2⁶⁴·k⌋ for the largest k with positions·ln(k/o) ≤ ε, o = (1 − k)/(values − 1)."""
    found = enclosed(lambda: COIN / (1 + (values - 1) * iv.exp(number(-epsilon / positions))))
    low, high = math.floor(found.low), math.floor(found.high)
    if low != high and low < MAX_KEEP:
        raise Left("a coin that is too near to a multiple of 2**-64")
    require(min(low, MAX_KEEP) * values >= COIN, "inputs.epsilon", "is below what coins resolve")
    return min(low, MAX_KEEP)


class RandomizedResponse(Mechanism):
    """Every bit flipped by a coin of its own."""

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        self.inputs, domain = inputs, inputs.domain
        unit = domain["low"] == 0 and domain["high"] == 1
        require(unit, "inputs.domain", "must be [0, 1]: bits")
        m = 1 if inputs.adjacency.name == "bit-flip" else inputs.p
        where = "derived.facts.coins.flip_numerator"
        flips = _recorded_coin(facts, "coins", "flip_numerator", "")
        keep = COIN - flips
        require(COIN < 2 * keep <= 2 * MAX_KEEP, where, "isn't in [2**24, 2**63)")

        def holds(parts: int) -> bool:
            curve = _coins(parts, 2, m)
            return Fraction(above(curve.delta(inputs.epsilon).high)) <= inputs.delta

        search = Search(pure_keep(inputs.epsilon, m, 2), MAX_KEEP, holds)
        search.check(where, keep, inputs.delta)
        curve = self.curve = _coins(keep, 2, m)
        self.flip = flip = Fraction(COIN - keep, COIN)
        self.facts = {
            "coins": {
                "flip_numerator": str(flips),
                "flip_denominator": str(COIN),
                "flip": exactly(flip),
            },
            "loss": {
                "bits_that_may_differ": m,
                "loss_of_one_bit": closed_form(curve.step()),
                "pure_epsilon": curve.epsilon_ends(Fraction(0)),
            },
        }
        self.claim = Claim(
            "the coins of the bits, all of them secret",
            NOTHING_DRAWN,
            "Kenthapadi et al. 2013, lemma 3, as the exact curve of independent coins",
            ("kenthapadi2013.lemma-3",),
        )
        self.shape, self.dtype, self.bits = [inputs.rows, -(-inputs.p // 8)], "uint8", inputs.p

    def possible(self, row: bytes) -> bool:
        return _unused_are_zero(row, self.bits)

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        for pair in synthetic_pairs(self.inputs, self.bits, rng):
            yield tuple([round(value) for value in record] for record in pair)

    def estimators(self) -> list[Estimator]:
        """Kenthapadi et al. 2013, algorithm 6: with γ = (1 − 2f)² and c = 2f(1 − f)."""
        p, contrast, change = self.bits, (1 - 2 * self.flip) ** 2, 2 * self.flip * (1 - self.flip)

        def distance(x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
            truth = float(sum(a != b for a, b in zip(x, y, strict=True)))
            return truth, truth, float(p * change * (1 - change) / contrast**2)

        def inner(x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
            truth, v = float(dot(x, y)), change / 2 / contrast
            return truth, truth, float(p * v * v + v * (sum(x) + sum(y)))

        return [
            Estimator("squared distance", "exact", distance),
            Estimator("inner product", "exact", inner),
        ]


def _coins(keep: int, values: int, positions: int, differ: Fraction = Fraction(1)) -> StepCurve:
    """The curve of answers that keep on `keep` of 2⁶⁴ words."""
    kept = Fraction(keep, COIN)
    return StepCurve(kept, (1 - kept) / (values - 1), positions, differ)


def _unused_are_zero(row: bytes, bits: int) -> bool:
    return not row[-1] & (0xFF >> (bits - 1) % 8 + 1)


class SignSketch(Mechanism):
    """Signs of records @ P, each flipped by a coin that its level decides."""

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        self.inputs, self.matrix = inputs, projection_of(inputs)
        domain, adjacency = inputs.domain, inputs.adjacency
        self.grid = grid_of(inputs, 1)
        self.whole = adjacency.name == "record"
        self.smooth = inputs.mechanism.endswith("-smooth")
        self.moves = (
            self.grid.width(domain) if self.whole else self.grid.moves(adjacency, domain, inputs.p)
        )
        largest = self.grid.reach(domain) * self.matrix.largest_column()
        require(largest < 2**53, "inputs.domain", "is too wide for exact sums")
        least = inputs.parameters.get("least_norm", Fraction(0))
        where = "derived.facts.noise.flip_at_level_1"
        if facts is None:
            self.differ = self._differ(least) if least else None
            self.flips = self._ladder(COIN - self._search().found(inputs.delta))
            return
        first = _recorded_coin(facts, "noise", "flip_at_level_1", "/2**64")
        require(1 << 24 <= first <= COIN // 2, where, "isn't in [2**24, 2**63]")
        self.flips = self._ladder(first)
        live = self._live(self.flips)
        if adjacency.name == "attribute":
            touched = max(sum(live[c] for c in row) for row in self.matrix.rows)
        else:
            touched = sum(live)
        self.positions = max(touched, 1)
        self.differ = self._differ(least) if least else None
        self.curve = self._curve(first)
        reached = Fraction(above(self.curve.delta(inputs.epsilon).high)) <= inputs.delta
        require(reached, where, "flips less than the target needs")
        self._search().check(where, COIN - first, inputs.delta)
        low, high = map(self.grid.steps, ends_of(domain))
        self.facts = {
            "grid": {
                "step": exact_string(self.grid.step),
                "low_steps": low,
                "high_steps": high,
                "largest_partial_sum": str(largest),
            },
            "projection": {
                "kind": self.matrix.name,
                "rows": self.matrix.p,
                "columns": self.matrix.k,
                "sha256": self.matrix.sha256,
            },
            "sensitivity": {
                "steps_moved": self.moves,
                "live_columns": sum(live),
                "signs_that_can_differ": self.positions,
            },
            "noise": {
                "distribution": "independent coins of 64 bits that flip the signs",
                "levels": str(len(self.flips) - 1),
                "flip_at_0": "1/2",
                "flip_at_level_1": f"{first}/2**64",
                "flip_at_last_level": f"{self.flips[-1]}/2**64",
            },
        }
        self.claim = self._claim(least)
        if self.differ is not None:
            self.facts["draw"] = {
                "least_norm": exact_string(least),
                "sign_differs_with_probability_at_most": closed_form(self.differ),
                "charged_for_rounding_the_matrix": closed_form(enclosed(self._slack)),
            }
        self.shape, self.dtype = [inputs.rows, -(-self.matrix.k // 8)], "uint8"

    def _ladder(self, first: int) -> list[int]:
        """Flip numerators of the levels: level 0 is a fair coin, the last one holds for all beyond.

        Each is at least the one before over R = (2⁶⁴ − f₁)/f₁, and 2²⁴; the paper's rule asks for
        1/(1 + Rⁿ), its inverse powers on 192 bits, if that is more.
        """
        table, kept, one = [COIN // 2, first], COIN - first, 1 << 192
        inverse = one * first // kept
        paper = self.inputs.parameters.get("ladder") == "smooth"
        while self.smooth and first < kept and table[-1] > 1 << 24 and len(table) <= 1 << 14:
            least = max(-(-table[-1] * first // kept), 1 << 24)
            inverse = inverse * first // kept
            wanted = -(-COIN * inverse // (one + inverse)) if paper else 0
            table.append(max(least, wanted))
        return table

    def _live(self, flips: Sequence[int]) -> list[int]:
        """Columns whose sign (or level, where levels matter) isn't the same all over the domain."""
        low, high = map(self.grid.steps, ends_of(self.inputs.domain))
        above_, below_ = [0] * self.matrix.k, [0] * self.matrix.k
        for row in self.matrix.rows:
            for column, value in row.items():
                if value > 0:
                    above_[column] += value
                else:
                    below_[column] -= value
        divisors = [self.moves * most for most in self.matrix.column_maxima()]
        found = []
        for up, down, divisor in zip(above_, below_, divisors, strict=True):
            levels = []
            for end in (low * up - high * down, high * up - low * down):
                sign = (end > 0) - (end < 0)
                levels.append(sign * -(-abs(end) // divisor) if len(flips) > 2 else sign)
            found.append(int(levels[0] != levels[1]))
        return found

    def _curve(self, first: int) -> Curve:
        flips = self._ladder(first)
        if self.whole:
            ratio = Fraction(COIN - flips[-1], flips[-1])
        else:
            ratio = max(
                (Fraction(own, other) for one, two in pairwise(flips)
                 for own, other in ((one, two), (COIN - two, COIN - one))),
                default=Fraction(1)
            )  # fmt: skip
            ratio = max(ratio, Fraction(COIN - first, first))
        keep = ratio / (ratio + 1)
        if self.differ is not None:
            return MixedCurve(keep, 1 - keep, self.matrix.k, self.differ)
        return StepCurve(keep, 1 - keep, self.positions)

    def _search(self) -> Search:
        """For the coin of this target, by the curve of N plain answers."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta
        positions = self.matrix.k if self.differ is not None else self.positions_of_draft()

        def holds(parts: int) -> bool:
            if self.differ is None:
                curve: Curve = _coins(parts, 2, positions)
            else:
                kept = Fraction(parts, COIN)
                curve = MixedCurve(kept, 1 - kept, positions, self.differ)
            return Fraction(above(curve.rough.delta(epsilon).high)) <= delta

        return Search(pure_keep(epsilon, positions, 2), MAX_KEEP, holds)

    def positions_of_draft(self) -> int:
        """N as the calibration counts it, with the ladder of a coin that keeps ¾."""
        live = self._live(self._ladder(COIN // 4))
        if self.inputs.adjacency.name == "attribute":
            return max(*(sum(live[c] for c in row) for row in self.matrix.rows), 1)
        return max(sum(live), 1)

    def _slack(self) -> Interval:
        """η = √(2p/π)/2²¹, for rounding the matrix."""
        return iv.sqrt(2 * self.inputs.p / iv.pi) / 2**21

    def _differ(self, least: Fraction) -> Span:
        """Bound on the probability that a sign differs, (2/π)·arcsin(b/2m) + 2η, at most 1.

        b is how far neighbours are apart, m the least norm less what the grid may take, h√p/2.
        arcsin(x) = arctan(x/√(1 − x²)), which `_arctan` encloses.
        """
        inputs, step = self.inputs, self.grid.step
        require(self.matrix.name == "gaussian" and not self.whole, "inputs", "has no angle's law")
        require(inputs.delta > 0, "inputs.delta", "must be positive over the draw")
        low, high = ends_of(inputs.domain)
        nearest, farthest = max(low, -high, Fraction(0)), max(abs(low), abs(high))
        implied = nearest**2 * inputs.p >= least**2
        require(implied or not inputs.clip, "inputs.outside", "clipping can take the norm below it")
        some = farthest**2 * inputs.p >= least**2
        require(some, "inputs.parameters.least_norm", "is above all norms of the domain")
        lost = step**2 * inputs.p / 4

        def half_sine() -> Interval:
            return number(step * self.moves) / (2 * (number(least) - iv.sqrt(number(lost))))

        if least**2 <= lost or enclosed(half_sine).high >= 1:
            return Span(Fraction(1), Fraction(1))

        def value() -> Interval:
            sine = half_sine()
            return 2 * _arctan(sine / iv.sqrt(1 - sine * sine)) / iv.pi + 2 * self._slack()

        found = enclosed(value)
        return Span(min(found.low, Fraction(1)), min(found.high, Fraction(1)))

    def _claim(self, least: Fraction) -> Claim:
        if not least:
            return Claim(
                "the flips alone, for this realised public projection",
                ANY_TIME.format("projection"),
                "Kairouz, Oh and Viswanath 2015 (arXiv:1311.0776v4), theorem 3.1, for each sign; "
                "Li and Li 2023, theorems 4.1, 4.7 and 4.8 for sums in whole grid steps",
                (
                    *("li2023.theorem-4.1.ratio", "li2023.theorem-4.7"),
                    *("li2023.theorem-4.8.rr", "li2023.theorem-4.8.smooth"),
                ),
            )
        low, high = ends_of(self.inputs.domain)
        declared: tuple[str, ...] = (
            "Every record, as it is projected but for its rounding to the grid (after scaling by "
            f"data.ranges, where these are given), has an l2 norm of at least {exact_string(least)}"
            ": that is declared, and refusing records can't establish it.",
        )
        if max(low, -high, Fraction(0)) ** 2 * self.inputs.p >= least**2:
            declared = ()
        drawn = (
            "Words of Philox-4x64 under numpy's SeedSequence stand for uniform ones, and the "
            "projection's seed was drawn at random, independently of the records."
        )
        return Claim(
            "the flips and the draw of the public projection",
            "before the projection was drawn, without knowledge of its seed",
            "Li and Li 2023, theorem 4.1, for the pair's own number of differing signs; "
            "the angle's law is equation 3",
            ("li2023.theorem-4.1.ratio", "li2023.equation-3"),
            (*declared, drawn),
        )

    def possible(self, row: bytes) -> bool:
        return _unused_are_zero(row, self.matrix.k)

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        for pair in synthetic_pairs(self.inputs, self.inputs.p, rng):
            yield tuple(self.grid.gridded(record, self.inputs.p) for record in pair)

    def estimators(self) -> list[Estimator]:
        """Over the draw where the angle's law is known, else over the flips alone."""
        agreement = Estimator("bit agreement", "exact", partial(self._moments, "agreement"))
        if len(self.flips) > 2:
            return [agreement]
        collision = Estimator("sign collision", "exact", partial(self._moments, "collision"))
        if self.matrix.name != "gaussian":
            return [collision, agreement]
        return [
            collision,
            Estimator("angle", "exact", partial(self._moments, "angle")),
            Estimator("cosine", "exact", partial(self._moments, "cosine")),
        ]

    def _moments(self, of: str, x: Synthetic, y: Synthetic) -> tuple[float, float, float]:
        """Of what follows from the share of released bits that agree, bit j with p_j.

        ½ + (share − ½)/c² with c = 1 − 2f, Li and Li 2023, equation 21; the angle is π times one
        less that; its cosine's mean is a value of the characteristic function of their number.
        """
        k, kept = self.matrix.k, 1 - 2 * self.flips[1] / COIN
        if self.matrix.name == "gaussian" and len(self.flips) == 2:
            truth = 1 - _angle(x, y) / math.pi
            agree = [0.5 + kept**2 * (0.5 - (1 - truth))] * k
        else:
            means = [self._means(record) for record in (x, y)]
            pairs = list(zip(*means, strict=True))
            truth = 0.5 + 0.5 * sum(((a > 0) - (a < 0)) * ((b > 0) - (b < 0)) for a, b in pairs) / k
            agree = [(1 + a * b) / 2 for a, b in pairs]
        spread = sum(p * (1 - p) for p in agree)
        if of == "agreement":
            mean = sum(agree) / k
            return mean, mean, spread / k**2
        if of == "cosine":
            unit = math.pi / (k * kept**2)
            turned = math.prod(1 - p + p * cmath.exp(-1j * unit) for p in agree)
            mean = (cmath.exp(1j * (math.pi / 2 + k * unit / 2)) * turned).real
            half = math.cos if mean < 0 else math.sin
            least = math.pi / 2 * (1 - 1 / kept**2)
            squares = [2 * half((unit * differ + least) / 2) ** 2 for differ in range(k + 1)]
            return math.cos(math.pi * (1 - truth)), mean, _spread(agree[0], squares)
        variance = spread / (k**2 * kept**4)
        if of == "angle":
            truth, variance = math.pi * (1 - truth), math.pi**2 * variance
        return truth, truth, variance

    def _means(self, record: Sequence[int]) -> list[float]:
        """Mean of every released sign."""
        last, found = len(self.flips) - 1, []
        divisors = [self.moves * most for most in self.matrix.column_maxima()]
        for value, divisor in zip(self.matrix.product(record), divisors, strict=True):
            level = min(-(-abs(value) // divisor), last) if last > 1 else min(abs(value), 1)
            found.append(((value > 0) - (value < 0)) * (1 - 2 * (self.flips[level] / COIN)))
        return found


def _spread(agree: float, values: Sequence[float]) -> float:
    """Variance of the value of how many of so many bits differ, each with the same probability."""
    k, odds = len(values) - 1, (1 - agree) / agree
    mode = min(int((k + 1) * (1 - agree)), k)
    shares = [1.0] * (k + 1)  # as multiples of the largest
    for place in range(mode, k):
        shares[place + 1] = shares[place] * ((k - place) / (place + 1) * odds)
    for place in range(mode, 0, -1):
        shares[place - 1] = shares[place] / ((k + 1 - place) / place * odds)
    total = math.fsum(shares)
    mean = math.fsum(map(mul, shares, values)) / total
    squares = [(value - mean) ** 2 for value in values]
    return math.fsum(map(mul, shares, squares)) / total


def _angle(x: Synthetic, y: Synthetic) -> float:
    """By the formula that keeps its digits near 0 and π; zeros are at right angles to all."""
    if not (any(x) and any(y)):
        return math.pi / 2
    one, two = ([value / math.hypot(*v) for value in v] for v in (x, y))
    apart = math.hypot(*(a - b for a, b in zip(one, two, strict=True)))
    return 2 * math.atan2(apart, math.hypot(*(a + b for a, b in zip(one, two, strict=True))))


def doubles(value: Span) -> Span:
    """The doubles around a number, which later proofs start from."""
    return Span(Fraction(below(value.low)), Fraction(above(value.high)))


def _arctan(x: Interval) -> Interval:
    """Encloses arctan(x) for x ≥ 0.

    arctan(x) = 2·arctan(x/(1 + √(1 + x²))), three times: then x < 0.2, and the series
    x − x³/3 + x⁵/5 − … alternates with falling terms, so that the truth lies between two
    consecutive partial sums.
    """
    for _ in range(3):
        x = x / (1 + iv.sqrt(1 + x * x))
    power, total, n = x, x, 1
    while True:
        power, n = -power * x * x, n + 2
        following = total + power / n
        if abs(power).b < iv.mpf(2) ** (-iv.prec - 8):
            return 8 * iv.mpf([min(total.a, following.a), max(total.b, following.b)])
        total = following


class MinHash(Mechanism):
    """Buckets of sets under public hash functions, randomized by coins or by geometric noise."""

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        values, domain = inputs.parameters, inputs.domain
        self.inputs, self.k, self.b, p = inputs, values["k"], values["buckets"], inputs.p
        tau, alpha = int(domain["min_size"]), int(inputs.adjacency["changes"])
        require(p >= tau, "inputs.attributes", "are fewer than the least set has")
        differing = min(alpha, 2 * tau, 2 * (p - tau))
        if domain.numbers.get("max_size") == tau:
            differing -= differing % 2
        require(differing >= 1, "inputs.domain", "has no two neighbours")
        union = tau + -(-differing // 2)
        self.differ = Fraction(differing, union) * (1 - Fraction(1, self.b))
        self.noisy = inputs.mechanism == "noisy-min-hash"
        drawn = values["reading"] == "over the draw"
        name = "ratio" if self.noisy else "keep"
        if facts is None:
            self.parts = self._search(drawn).found(inputs.delta)
            return
        self.parts = parts = _recorded_coin(facts, "noise", name, "/2**64")
        self._search(drawn).check(f"derived.facts.noise.{name}", parts, inputs.delta)
        self.curve = self._curve(parts, drawn)
        noise: dict[str, Any] = {
            name: f"{parts}/2**64",
            "loss_step": closed_form(self.curve.step()),
        }
        if self.noisy:
            q = Fraction(parts, COIN)
            require(
                q <= 1 - Fraction(1, 1 << 14), f"derived.facts.noise.{name}", "is too near to 1"
            )
            self.within = geometric_within(q)
            noise["variance"] = exactly(2 * q / (1 - q) ** 2)
            noise["distribution"] = "two-sided geometric on the integers, sampled exactly"
        else:
            noise["distribution"] = (
                "randomized response by coins of 64 bits, the other buckets evenly"
            )
        description = f"AES-128 ranks and buckets, {p} items, {self.k} x {self.b}: ".encode()
        key = b"".join(w.to_bytes(8, "little") for w in Words(inputs.seed, "min-hash").words(2))
        self.facts = {
            "projection": {
                "kind": "AES-128 ranks and buckets",
                "rows": p,
                "columns": self.k,
                "buckets": self.b,
                "sha256": hashlib.sha256(description + key).hexdigest(),
            },
            "sensitivity": {
                "least_similarity_of_neighbours": str(1 - Fraction(differing, union)),
                "published_least_similarity": str(1 - Fraction(alpha, tau)),
                "bucket_differs_with_probability_at_most": str(self.differ),
                **self._levels(Fraction(alpha, tau), parts),
                "epsilon_realised": self._curve(parts, drawn=False).epsilon_ends(Fraction(0)),
            },
            "noise": noise,
        }
        self.claim = self._claim(drawn)
        self.shape = [inputs.rows, self.k]
        self.dtype = "uint8" if self.b <= 1 << 8 else "uint16" if self.b <= 1 << 16 else "uint32"
        self.dtype = "int64" if self.noisy else self.dtype

    def _curve(self, parts: int, drawn: bool) -> LatticeCurve:
        """The curve for a coin, or a ratio, of so many 2⁻⁶⁴."""
        k, b = self.k, self.b
        if not self.noisy:
            return _coins(parts, b, k, self.differ if drawn else Fraction(1))
        shifts: tuple[tuple[int, Fraction], ...] = ((b - 1, Fraction(1)),)
        if drawn:  # two different uniform buckets are s apart with probability 2(B − s)/(B(B − 1))
            of = self.differ * Fraction(2, b * (b - 1))
            shifts = tuple((shift, of * (b - shift)) for shift in range(1, b))
        if k * b > 1 << 10:
            raise Left("geometric noise on so many buckets")
        return GeometricCurve(Fraction(parts, COIN), k, shifts)

    def _search(self, drawn: bool) -> Search:
        """For the coin or ratio of this target: by forty halvings where the draw counts."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta

        def holds(n: int) -> bool:
            return Fraction(above(self._curve(n, drawn).delta(epsilon).high)) <= delta

        if not self.noisy:
            pure = pure_keep(epsilon, self.k, self.b)
            return Search(pure, MAX_KEEP, holds, 40 if drawn else 9999)
        share = enclosed(lambda: COIN * iv.exp(number(-epsilon / (self.k * (self.b - 1)))))
        if math.floor(share.low) != math.floor(share.high):
            raise Left("a ratio that is too near to a multiple of 2**-64")
        return Search(max(math.floor(share.low) + 1, 1 << 24), 1 << 24, holds, 40)

    def _claim(self, drawn: bool) -> Claim:
        theorem = (
            "Ghosh, Roughgarden and Sundararajan 2009, definition 2.2, for each position; its "
            "exact curve for Aumüller et al. 2020, section 5"
            if self.noisy
            else "Aumüller et al. 2020, lemma 2, for each number of differing values; its exact "
            "curve"
        )
        statement = "section-5.sensitivity" if self.noisy else "lemma-2"
        if not drawn:
            return Claim(
                "the randomized buckets alone, for any public hash functions",
                ANY_TIME.format("hash functions"),
                theorem,
                (f"aumuller2020.{statement}",),
            )
        return Claim(
            "the randomized buckets and the draw of the public hash functions",
            "before the hash functions were drawn, without knowledge of their seed",
            f"{theorem}; mixed over the exact law of their number",
            (f"aumuller2020.{statement}", "aumuller2020.section-3.1.range-b"),
            (
                "AES-128 under a random key is a pseudorandom function, numpy's SeedSequence "
                "and Philox-4x64 make such a key of a random seed, and the hash functions' "
                "seed was drawn at random, independently of the records.",
            ),
        )

    def _levels(self, change: Fraction, parts: int) -> dict[str, Any]:
        """ε over the draw at δ = 10⁻⁴ by three theorems."""
        k, b = self.k, self.b
        delta, mean = Fraction(1, 10**4), k * change * Fraction(b - 1, b)
        count = enclosed(lambda: number(mean) + iv.sqrt(-3 * number(mean) * iv.log(number(delta))))
        tail, many, share = Fraction(0), k, self.differ
        while many > 0:  # the smallest N with P[Bin(k, differ) > N] ≤ δ
            tail += math.comb(k, many) * share**many * (1 - share) ** (k - many)
            if tail > delta:
                break
            many -= 1
        if self.noisy:  # the paper rounds up in section 4 alone, and a position loses b − 1 steps
            published, steps = count, b - 1
        else:
            published, steps = Span(*[Fraction(math.ceil(count.high))] * 2), 1
        loss = self._curve(parts, drawn=True).step()

        def times(low: Fraction, high: Fraction) -> Callable[[str, Any], None]:
            return closed_form(Span(low * steps * loss.low, high * steps * loss.high))

        name = "epsilon_over_the_draw_at_delta_1e-4_"
        return {
            f"{name}published": times(*published),
            f"{name}exact_tail": times(Fraction(many), Fraction(many)),
            f"{name}exact_mixture": self._curve(parts, drawn=True).epsilon_ends(delta),
        }

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        domain = self.inputs.domain
        most = int(domain.numbers.get("max_size", max(domain["min_size"], Fraction(256))))
        return synthetic_pairs(self.inputs, min(self.inputs.p, 4 * most), rng)

    def estimators(self) -> list[Estimator]:
        """Aumüller et al. 2020, equation 1 (the share of equal values) or 5 (their distance)."""
        b, share = self.b, Fraction(self.parts, COIN)

        def moments(x: set[int], y: set[int]) -> tuple[float, float, float]:
            similar = Fraction(len(x & y), len(x | y))
            if self.noisy:
                v, spread = 2 * share / (1 - share) ** 2, Fraction(b * b - 1, 6)
                fourth = 2 * share * (1 + 10 * share + share**2) / (1 - share) ** 4
                mean = (1 - similar) * spread + 2 * v
                square = (1 - similar) * spread * (Fraction(2 * b * b - 3, 5) + 12 * v)
                variance = (square + 2 * fourth + 6 * v * v - mean**2) / spread**2
            else:
                slope = Fraction(b - 1, b) * ((b * share - 1) / (b - 1)) ** 2
                equal = Fraction(1, b) + slope * similar
                variance = equal * (1 - equal) / slope**2
            return float(similar), float(similar), float(variance / self.k)

        return [Estimator("Jaccard similarity", "exact", moments, (0.0, 1.0))]

    def possible(self, row: bytes) -> bool:
        if self.noisy:
            return True
        item = _TYPES[self.dtype][1]
        return all(
            int.from_bytes(row[place : place + item], "little") < self.b
            for place in range(0, len(row), item)
        )


class CutSketch(Mechanism):
    """Secret normal rows whose covariance is a graph's Laplacian over a floor w."""

    step: Span

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any] | None) -> None:
        self.inputs, n, rows = inputs, inputs.p, inputs.parameters["sketch_rows"]
        require(n >= 2, "inputs.attributes", "are fewer than two vertices")
        require(inputs.delta > 0, "inputs.delta", "must be positive with normal rows")
        moved = min(Fraction(math.ceil(inputs.adjacency["weight"] * 2**20), 2**20), Fraction(1))
        finest = (2**62 - 1) // (2 * n**2 * 2**20)
        require(finest >= 1, "inputs.attributes", "are too many vertices")
        steps = min(1 << 10, 1 << (finest.bit_length() - 1))

        def at(floor: Fraction) -> NormalRowsCurve:
            return NormalRowsCurve(rows, 2 * moved * (1 - floor / n) / floor)

        def holds(count: int) -> bool:
            return at(Fraction(count, steps)).delta(inputs.epsilon).high <= inputs.delta

        if facts is None:
            enough, most = 1, n * steps - 1
            while not holds(enough):
                require(enough < most, "inputs.epsilon", "is too small for so few vertices")
                enough = min(2 * enough, most)
            w = Fraction(last_that(holds, enough, 0), steps)
        else:
            where, text = "derived.facts.sketch.floor", _recorded(facts, "sketch", "floor")
            w = _exact_at(where, text)
            good = (w * steps).denominator == 1 and 0 < w < n
            require(good, where, "isn't on its grid")
            require(holds(int(w * steps)), where, "is too low")
            least = w * steps == 1 or not holds(int(w * steps) - 1)
            require(least, where, "is higher than the target needs")
        self.floor, curve = w, at(w)
        self.curve = curve
        ratio = w / 2**32
        exponent = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2 + 1
        step = Fraction(2) ** exponent
        while step**2 > ratio:
            step /= 2
        delta = Fraction(1, 10**6)
        published = enclosed(
            lambda: (
                iv.sqrt(32 * rows * iv.log(number(2 / delta)))
                * iv.log(number(4 * rows / delta))
                / number(w)
            )
        )
        self.facts = {
            "sketch": {
                "rows": rows,
                "columns": n,
                "floor": exact_string(w),
                "share": exact_string(1 - w / n),
                "step": exact_string(step),
            },
            "claim": {
                "relative_change": exact_string(curve.gamma),
                "delta": exact_string(delta),
                "epsilon": curve.epsilon_ends(delta),
                "epsilon_published": nearly(published, Fraction(1, 2**46)),
            },
        }
        self.claim = Claim(
            "the secret projection, which is all that is random and is never stored",
            "before the release; the projection stays secret for ever",
            "exact curve of a covariance's rank-one change, "
            "`dpverify.accounting.curves.rank_one`, for Blocki et al. 2012 (arXiv:1204.2136), "
            "section 3",
            (
                "slides2025.appendix-d.determinants.exact",
                "slides2025.appendix-d.floor",
                "slides2025.appendix-e.matrix",
            ),
        )
        self.shape, self.dtype, self.step = [rows, n], "int64", Span(step, step)

    def probes(self, rng: Words) -> Iterator[tuple[Any, ...]]:
        """Forty random graphs, as lists of their edges, with random sets of vertices."""
        n = self.inputs.p
        for number_ in range(1, 41):
            draws = uniform(n * n, rng)
            edges = [
                (a, b) for a in range(n) for b in range(a + 1, n) if draws[a * n + b] < number_ / 40
            ]
            chosen = [u < 0.5 for u in uniform(n, rng)]
            chosen[0], chosen[-1] = True, False
            yield edges, chosen

    def estimators(self) -> list[Estimator]:
        """The cut around a set of vertices, of variance 2V²/r for V = cᵀΣc + ‖c‖²h²/12.

        c is the set's indicator less its mean, so that ‖c‖² = s(n − s)/n for s vertices, and
        Σ = w·I + (1 − w/n)·L.
        """
        n, share, step = self.inputs.p, 1 - self.floor / self.inputs.p, above(self.step.high)

        def moments(edges: Any, chosen: Sequence[bool]) -> tuple[float, float, float]:
            cut = sum(chosen[a] != chosen[b] for a, b in edges)
            norm = Fraction(sum(chosen) * (n - sum(chosen)), n)
            form = float(self.floor * norm + share * cut) + step**2 / 12 * float(norm)
            return float(cut), float(cut), 2 * (form / float(share)) ** 2 / self.shape[0]

        return [Estimator("cut", "exact", moments)]


# 9. What is derived: guarantee, curve, attacker, counts


OUTSIDE = {
    False: "A record outside the declared domain stops the release; whether there is one is not "
    "protected.",
    True: "Records outside the declared domain are moved to its nearest point first.",
}


def check_guarantee(inputs: Inputs, mechanism: Mechanism, derived: Mapping[str, Any]) -> None:
    """The guarantee and its whole curve."""
    curve, claim = mechanism.curve, mechanism.claim
    due = {
        "notion": "differential privacy",
        "epsilon": curve.epsilon_ends(inputs.delta),
        "delta": curve.delta_ends(inputs.epsilon),
        "randomness": claim.randomness,
        "data_choice": claim.data_choice,
        "theorem": claim.theorem,
        "assumptions": [*claim.assumptions, OUTSIDE[inputs.clip]],
        "statements": [{"id": name, "verdict": "confirmed_exactly"} for name in claim.statements],
    }
    same("derived.guarantee", derived["guarantee"], due)
    stated = float(Fraction(derived["guarantee"]["delta"]["upper"]))
    where = "derived.guarantee.delta.upper"
    require(stated <= above(inputs.delta), where, "misses the target")
    proven = stated <= inputs.delta or curve.delta(inputs.epsilon).high <= inputs.delta
    require(proven, where, "misses the target, between two doubles")
    same("derived.far_delta", derived["far_delta"], curve.delta_ends(10 * inputs.epsilon))


def check_curve(
    inputs: Inputs, mechanism: Mechanism, derived: Mapping[str, Any], evidence: Mapping[str, Any]
) -> None:
    """δ(ε) at 27 points, what is published, and what the counts show."""
    curve, limits = mechanism.curve, shown_limits(evidence, inputs.alpha)
    points = derived["curve"]
    require(len(points) == 27, "derived.curve", "must have 27 points")
    for place, point in enumerate(points):
        epsilon, where = inputs.epsilon * place / 20, f"derived.curve[{place}]"
        published: Any = None
        if isinstance(curve, GaussianCurve):
            exponent = epsilon - epsilon**2 / (2 * curve.square)
            if exponent < 0:
                published = _upper_end(_half_exp(exponent))
        due = {
            "epsilon": exact_string(epsilon),
            "delta": curve.delta_ends(epsilon),
            "published": published,
            "shown": _shown(limits, epsilon),
        }
        same(where, point, due)


@lru_cache(maxsize=4096)
def _half_exp(exponent: Fraction) -> Span:
    return enclosed(lambda: iv.exp(number(exponent)) / 2)


def _upper_end(value: Span) -> Callable[[str, Any], None]:
    def shape(where: str, stated: Any) -> None:
        require(isinstance(stated, str), where, "is missing")
        found = read_end(where, stated, ROUND_CEILING)
        require(found >= value.low, where, f"is below {_near(value)}")
        far = found - value.high <= value.high * (TIGHT + Fraction(1, 2**51)) + _TINY
        require(far, where, f"is above {_near(value)}")

    return shape


Counts = tuple[int, int]


def shown_limits(evidence: Mapping[str, Any], alpha: Fraction) -> list[tuple[float, float]]:
    """Limits p ≥ p₋ and q ≤ q₊ of every event, simultaneously at level α."""
    draws = evidence["draws"]
    events = [count for pair in evidence["white_box"] for count in pair["counts"]]
    counts = [(event["hits"], event["false_hits"]) for event in [*events, *evidence["roc"]]]
    counts += [(draws - e["false_hits"], draws - e["hits"]) for e in evidence["roc"]]
    if not counts:
        return []
    level = float(alpha) / (2 * len(counts))
    return [
        (clopper_pearson(x, draws, level), 1 - clopper_pearson(draws - y, draws, level))
        for x, y in counts
    ]


def _shown(limits: Sequence[tuple[float, float]], epsilon: Fraction) -> Callable[[str, Any], None]:
    """max(p₋ − e^ε·q₊), less 10⁻¹² in doubles."""
    ratio = math.exp(min(float(epsilon), 700.0)) * (1 + 1e-12)
    due = max([p - ratio * q * (1 + 1e-12) - 1e-12 for p, q in limits], default=0.0)
    slack = 1e-11 * max([1.0, *(ratio * q for p, q in limits if p > ratio * q)])
    return rounded_down(max(due, 0.0), slack)


def rounded_down(due: float, slack: float) -> Callable[[str, Any], None]:
    """Nine digits, rounded down, of a double that is known to so much."""

    def shape(where: str, stated: Any) -> None:
        try:
            found = Decimal(stated)
        except ArithmeticError:
            found = Decimal("nan")
        good = found.is_finite() and decimal_string(found, ROUND_FLOOR, 9) == stated
        require(good, where, "isn't in canonical form")
        unit = 10.0 ** (found.adjusted() - 8) if found else 0.0
        near = due - slack - unit <= float(found) <= due + slack
        require(near, where, f"is {stated}, and not {due:.9g}")

    return shape


@lru_cache(maxsize=65536)
def clopper_pearson(successes: int, draws: int, level: float) -> float:
    """Lower limit of a proportion: the largest p with P[Bin(draws, p) ≥ successes] ≤ level.

    Proposed in doubles and proven to be that within a relative 10⁻¹².
    """
    if successes == 0:
        return 0.0
    goal = math.log(level)
    choose = float(span(log_choose(draws, successes)).low)

    def excess(p: float) -> float:
        """Log of the tail, less that of the level; the sum of ratios to its first term."""
        ratio, total, j = 1.0, 1.0, successes
        while ratio > 1e-18 * total and j < draws:
            ratio *= (draws - j) * p / ((j + 1) * (1 - p))
            total, j = total + ratio, j + 1
        own = successes * math.log(p)
        own += (draws - successes) * math.log1p(-p) if p < 1 else 0.0
        return choose + own + math.log(total) - goal

    if successes == draws:
        low = math.exp(goal / draws)
    else:  # from where the first term's bound C(n, x)·pˣ is the level
        start = (goal - choose) / successes
        low = math.exp(brent(lambda u: excess(math.exp(u)), start, math.log(successes / draws), 0))
    proven = binomial_tail(low * (1 - 1e-12), successes, draws).high <= level
    near = low * (1 + 1e-12) >= 1 or binomial_tail(low * (1 + 1e-12), successes, draws).low >= level
    if not (proven and near):
        raise Left("a limit of Clopper and Pearson")
    return low


_STIRLING = [Fraction(*pair) for pair in (
    (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400)
)]  # fmt: skip


def log_choose(draws: int, successes: int) -> Interval:
    """Encloses ln C(n, x).

    By Stirling's series ln n! = (n + ½)ln n − n + ½ ln 2π + 1/12n − 1/360n³ + …, between two of
    whose partial sums the truth lies; for n < 64 from the factorial itself.
    """

    def log_factorial(n: int) -> Interval:
        if n < 64:
            return iv.log(iv.mpf(math.factorial(n)))
        sums = list(accumulate(c / n ** (2 * k + 1) for k, c in enumerate(_STIRLING)))
        rest = hull(*map(number, sorted(sums[-2:])))
        return (n + iv.mpf(1) / 2) * iv.log(iv.mpf(n)) - n + iv.log(2 * iv.pi) / 2 + rest

    return log_factorial(draws) - log_factorial(successes) - log_factorial(draws - successes)


def binomial_tail(p: float, successes: int, draws: int) -> Span:
    """Encloses P[Bin(draws, p) ≥ successes] for p below successes/draws.

    The first term is an interval. From j to j + 1 the terms fall by
    r_j = (n − j)p/((j + 1)(1 − p)), which falls itself and is below 1 here. The
    ratios to the first are summed in integers of 2⁻²⁰⁰, each rounded down: the i-th is less than i
    too small (each step scales the error before it by r < 1 and adds less than 1). The sum ends at
    a ratio of 0, whose truth is below K, their number, as all that follow together are below
    K·r/(1 − r).
    """
    hit, whole = p.as_integer_ratio()
    miss = whole - hit
    up, down = (draws - successes) * hit, (successes + 1) * miss
    ratio, total, terms = 1 << 200, 0, 0
    while ratio:
        terms, total = terms + 1, total + ratio
        ratio = ratio * up // down
        up, down = up - hit, down + miss
    most = total + terms * terms + (terms * down // (down - up) + 1 if up > 0 else terms)

    def value() -> Interval:
        at = number(Fraction(hit, whole))
        first = (
            iv.exp(log_choose(draws, successes)) * at**successes * (1 - at) ** (draws - successes)
        )
        return first * iv.mpf([total, most]) / 2**200

    return enclosed(value, Fraction(1, 2**60))


def check_attacker(inputs: Inputs, mechanism: Mechanism, derived: Mapping[str, Any]) -> None:
    """The bound on the strongest attacker, at the recorded threshold, and that threshold.

    With δ₋ ≤ δ(|s|) ≤ δ₊ in doubles the bound at s is e^s f + δ where s ≥ 0, and
    1 − e^s(1 − f − δ) where not: it rises with δ.
    """
    curve, rates = mechanism.curve, ("0.01", "0.05")
    stated = derived["attacker"]
    where = "derived.attacker"
    require(len(stated) == len(rates), where, "must have two rates")
    for place, (text, one) in enumerate(zip(rates, stated, strict=True)):
        at = f"{where}[{place}]"
        same(f"{at}.false_positive_rate", one["false_positive_rate"], text)
        try:
            s = Fraction(float(one["threshold"]))
        except (ValueError, OverflowError):
            raise Differs(f"{at}.threshold", "is not a number") from None
        require(repr(float(s)) == one["threshold"], f"{at}.threshold", "isn't in canonical form")
        rate, delta = Fraction(text), curve.delta(abs(s))
        value, rough = (
            Span(*(min(end, Fraction(1)) for end in _attacker_bounds(s, rate, deltas)))
            for deltas in (delta, curve.rough.delta(abs(s)))
        )
        # δ is known to a relative 10⁻¹⁴, and its part of the bound is at most e^|s|δ.
        share: Fraction = max(iv_high(s), Fraction(1)) * delta.high / max(value.high, _TINY)
        slack = (1 + share) * (TIGHT + Fraction(1, 2**50))
        around(value, slack, rough)(f"{at}.true_positive_rate", one["true_positive_rate"])
        high = read_ends(at, one["true_positive_rate"]).high
        require(high <= 1, f"{at}.true_positive_rate.upper", "is above 1")
        near = curve.quantile(float(rate))
        good = abs(float(s) - near) <= 1e-9 * max(1.0, abs(near))
        require(good, f"{at}.threshold", f"isn't the quantile {near!r}")


@lru_cache(maxsize=4096)
def iv_high(s: Fraction) -> Fraction:
    """An upper bound of e^s."""
    return enclosed(lambda: iv.exp(number(s))).high


@lru_cache(maxsize=4096)
def _attacker_bounds(s: Fraction, rate: Fraction, deltas: Span) -> Span:
    def bound(delta: Fraction) -> Span:
        def value() -> Interval:
            ratio = iv.exp(number(s))
            if s >= 0:
                return ratio * number(rate) + number(delta)
            return 1 - ratio * number(1 - rate - delta)

        return enclosed(value)

    return Span(bound(deltas.low).low, bound(deltas.high).high)


def check_counts(inputs: Inputs, evidence: Mapping[str, Any]) -> bool:
    """That the evidence has the form that the inputs lay down."""
    draws = evidence["draws"]
    same("evidence.draws", draws, inputs.draws)
    require(bool(evidence["white_box"]), "evidence.white_box", "has no pair")
    for place, pair in enumerate(evidence["white_box"]):
        good = len(pair["counts"]) == 6
        require(good, f"evidence.white_box[{place}].counts", "must be of six events")
    require(len(evidence["roc"]) == 17, "evidence.roc", "must have 17 thresholds")
    counts = [count for pair in evidence["white_box"] for count in pair["counts"]]
    for count in [*counts, *evidence["roc"]]:
        require(max(count.values()) <= draws, "evidence", "has more hits than draws")
    for place, moments in enumerate(evidence["moments"]):
        total = moments["draws"] + moments["undefined"]
        same(f"evidence.moments[{place}].draws", total, inputs.moment_draws)
    return True


# 10. The attack: the exact test of an event's counts, what was planned, what would have been found


Bound = tuple[float, float]
"""Slope and intercept of p ≤ slope·q + intercept: what a claim says of an event."""

ULP = 2.0**-52
FARTHEST = 50.0  # nats, beyond which no draws reach
ROUND_OFF = 64  # ULPs by which a term of a sum of weights may be off, at the most


def claim_bounds(epsilon: float, delta: float) -> tuple[Bound, Bound]:
    """P ≤ e^ε·q + δ and, of the complement, 1 − q ≤ e^ε(1 − p) + δ; rounded up."""
    ratio = math.exp(min(epsilon, 700.0))
    up, down = ratio * (1 + 4 * ULP), (1 / ratio) * (1 + 8 * ULP)
    return (up, delta), (down, 1 - (1 - delta) / up * (1 - 8 * ULP))


def evenly(low: float, high: float, count: int) -> list[float]:
    """So many numbers from low to high."""
    step = (high - low) / (count - 1)
    return [low + place * step for place in range(count - 1)] + [high]


def brent(function: Callable[[float], float], low: float, high: float, near: float) -> float:
    """A root by Brent's method (1973, chapter 4), in the order of steps of scipy's brentq."""
    last, now, other = low, high, 0.0
    at_last, at_now, at_other = function(last), function(now), 0.0
    step = before = 0.0
    if at_last == 0:
        return last
    for _ in range(400):
        if at_last and at_now and (at_last < 0) != (at_now < 0):
            other, at_other, step = last, at_last, now - last
            before = step
        if abs(at_other) < abs(at_now):
            last, now, other = now, other, now
            at_last, at_now, at_other = at_now, at_other, at_now
        least, half = (near + 4 * ULP * abs(now)) / 2, (other - now) / 2
        if at_now == 0 or abs(half) < least:
            return now
        tried = math.inf
        if abs(before) > least and abs(at_now) < abs(at_last):
            if last == other:
                tried = -at_now * (now - last) / (at_now - at_last)
            else:
                one = (at_last - at_now) / (last - now)
                two = (at_other - at_now) / (other - now)
                tried = (
                    -at_now
                    * (at_other * two - at_last * one)
                    / (two * one * (at_other - at_last) or math.nan)
                )
        if 2 * abs(tried) < min(abs(before), 3 * abs(half) - least):
            before, step = step, tried
        else:
            before = step = half
        last, at_last = now, at_now
        now += step if abs(step) > least else math.copysign(least, half)
        at_now = function(now)
    raise Left("a root that isn't found in 400 steps")


class Window(NamedTuple):
    """The counts of Bin(n, p) within ten standard deviations and 60 of its mode."""

    first: int
    weights: list[float]  # relative to the mode
    total: float
    rest: float  # bounds the weights of all other counts together


def _reach(draws: int, p: float) -> tuple[int, int]:
    wide, mode = 10 * math.sqrt(draws * p * (1 - p)) + 60, math.floor(min(p, 1.0) * (draws + 1))
    return max(0, math.floor(mode - wide)), min(draws, math.ceil(mode + wide))


def _round_off(terms: int) -> float:
    return 1 + ROUND_OFF * (terms + 4) * ULP


@lru_cache(maxsize=1024)
def window(draws: int, p: float) -> Window:
    """The weights are products of ratios, the rest is below a geometric series."""
    (first, last), rest = _reach(draws, p), 0.0
    if 0 < p < 1:
        odds = p / (1 - p)
        mode = min(max(math.floor(p * (draws + 1)), first), last)
        ups = ((draws - n) / (n + 1) * odds for n in range(mode, last))
        downs = (n / ((draws - n + 1) * odds) for n in range(mode, first, -1))
        lower = [*accumulate(downs, mul, initial=1.0)]
        weights = [*reversed(lower[1:]), *accumulate(ups, mul, initial=1.0)]
        for inside, weight, ratio in (
            (last < draws, weights[-1], (draws - last) / (last + 1) * odds),
            (first > 0, weights[0], first / ((draws - first + 1) * odds)),
        ):
            if inside:
                rest += weight * ratio / (1 - ratio) * (1 + 1e-9) if ratio < 1 else math.inf
    else:
        weights = [0.0] * (last - first + 1)
        weights[(0 if p <= 0 else draws) - first] = 1.0
    return Window(first, weights, sum(weights), rest)


@lru_cache(maxsize=1024)
def upper_tails(draws: int, p: float) -> list[float]:
    """Upper bounds of P[count or more] for all of a window, and for all counts beyond it."""
    at = window(draws, p)
    sums = list(accumulate(reversed(at.weights)))[::-1]
    safe = _round_off(len(sums)) / sums[0]
    tails = [(part + at.rest) * safe for part in sums]
    tails[: bisect_left(tails, -1.0, key=neg)] = [1.0] * bisect_left(tails, -1.0, key=neg)
    beyond = at.rest * safe if at.first + len(sums) <= draws else 0.0
    return [*tails, beyond]


class EventTest:
    """The exact test of p ≤ g(q) from x of n hits and y of n false ones.

    Outcomes are ordered by T, the lower limit of ln((p − δ′)/q) that the delta method gives; R are
    those not below the one seen. A claim is rejected if P[R] at (g(q), q) is at most the level less
    γ for all q of y's exact interval of confidence 1 − γ (Berger and Boos 1994; the specification
    has all numbers). `_most` bounds P[R] between two q by the log-likelihood's curvature.
    """

    def __init__(self, hits: int, false_hits: int, draws: int, level: float, order: float) -> None:
        self.x, self.y, self.n, self.alpha, self.order = hits, false_hits, draws, level, order
        self.z = max(-NormalDist().inv_cdf(level), 0.5)
        gamma = level / 500
        self.level = (level - gamma) * (1 - 4 * ULP)
        low = clopper_pearson(false_hits, draws, gamma / 2)
        high = upper_limit(false_hits, draws, gamma / 2)
        self.grid = evenly(low, high, 17)
        self.first = max(_reach(draws, low)[0] - 2, 0)
        self.known: dict[tuple[float, float], float] = {}
        self.region = self._region(min(_reach(draws, high)[1] + 2, draws))

    def _ranks(self, y: int) -> Callable[[int], float]:
        """T(x, y) of one y."""
        n, z, order, shifted = self.n, self.z, self.order, y + self.z**2 / 4
        least, inverse = math.log(shifted / n), 1 / shifted

        def rank(x: int) -> float:
            share = x / n
            if (excess := share - order) <= 0:
                return -math.inf
            spread = share * (1 - share) / (n * excess**2) + inverse
            return math.log(excess) - least - z * math.sqrt(spread)

        return rank

    def _region(self, last: int) -> list[int]:
        """For each y from `first` on the least x in R, which rises; n + 1 where there is none."""
        seen, least, found = self._ranks(self.y)(self.x), 0, list[int]()
        for y in range(self.first, last + 1):
            rank, few, many, step = self._ranks(y), least - 1, least, 1
            while many <= self.n and rank(many) < seen:
                few, many, step = many, min(many + step, self.n + 1), 2 * step
            while many - few > 1:
                middle = (few + many) // 2
                few, many = (few, middle) if rank(middle) >= seen else (middle, many)
            least = max(least, min(many, self.x) if y <= self.y else many)
            found.append(least)
        return found

    def p_value(self, p: float, q: float) -> float:
        """Upper bound on P[R] at (p, q), tight but for round-off."""
        if (found := self.known.get((p, q))) is None:
            own, tails, other = window(self.n, p).first, upper_tails(self.n, p), window(self.n, q)
            start = other.first - self.first
            region, weights = self.region[start : start + len(other.weights)], other.weights
            # Of a region that rises: what any count reaches, what is in the window, what is beyond.
            low, high = bisect_left(region, own), bisect_left(region, own + len(tails) - 1)
            last = bisect_left(region, self.n + 1)
            total = tails[0] * sum(weights[:low]) + tails[-1] * sum(weights[high:last]) + other.rest
            total += sum(map(mul, weights[low:high], (tails[x - own] for x in region[low:high])))
            found = min(1.0, total / other.total * _round_off(len(weights)))
            self.known[p, q] = found
        return found

    def refutes(self, bounds: Sequence[Bound]) -> bool:
        """Whether these are rejected together."""
        if self.x / self.n <= self.order:  # R is everything
            return False
        if any(self.p_value(_least(bounds, q), q) > self.level for q in self.grid):
            return False
        queue = [(-self._most(bounds, a, b), a, b) for a, b in pairwise(self.grid)]
        heapify(queue)
        for _ in range(4000):
            worst, a, b = queue[0]
            if -worst <= self.level:
                return True
            middle = (a + b) / 2
            attained = self.p_value(_least(bounds, middle), middle)
            if attained > self.level or -worst - attained < 1e-4 * self.level:
                return False
            heapreplace(queue, (-self._most(bounds, a, middle), a, middle))
            heappush(queue, (-self._most(bounds, middle, b), middle, b))
        return False

    def _most(self, bounds: Sequence[Bound], a: float, b: float) -> float:
        """Bound on P[R] at (g(q), q) for a ≤ q ≤ b, along the bound that is least in the middle."""
        line = min(bounds, key=lambda bound: bound[0] * (a + b) / 2 + bound[1])
        low, high = _least([line], a), _least([line], b)
        if not (min(a, low) > 1e-12 and b < 1 and high < 1):
            return self.p_value(_least(bounds, b), a)
        ends = max(self.p_value(low, a), self.p_value(high, b))
        kappa, share = (
            (b - a) ** 2 / 8 * (line[0] ** 2 * own + other) * (1 + 1e-9)
            for own, other in zip(
                _information(self.n, low, high), _information(self.n, a, b), strict=True
            )
        )
        most = (kappa / 2 + math.sqrt(kappa**2 / 4 + ends)) ** 2
        if share < 1:
            most = min(most, (ends + math.exp(-80.0)) / (1 - share))
        return min(most * (1 + 1e-12), 1.0)

    def limit(self, delta: float) -> float:
        """ε₋: an ε that is rejected at δ, next to the largest such one, or 0."""
        if delta != self.order:
            return self._halved(delta)
        share = self.x / self.n
        if share <= delta or not self.refutes(claim_bounds(0.0, delta)):
            return 0.0
        rare = clopper_pearson(self.y, self.n, self.alpha / 2) or 1e-300
        most = math.log(upper_limit(self.x, self.n, self.alpha / 2) / rare)

        def excess(epsilon: float) -> float:
            bounds = claim_bounds(epsilon, delta)
            worst = max(self.p_value(_least(bounds, q), q) for q in self.grid)
            return math.log(max(worst, 1e-300) / self.level)

        root = most if excess(most) < 0 else brent(excess, 0.0, most, 1e-7)
        step = math.sqrt((share * (1 - share) + 1 / self.n) / self.n) / (share - delta) / 300
        for _ in range(20):
            root -= step
            if root <= 0:
                return 0.0
            if self.refutes(claim_bounds(root, delta)):
                return root
            step *= 2
        return 0.0

    def _halved(self, delta: float) -> float:
        """By halving, up to the ratio of the counts, where R is another δ's."""
        odds = (self.x + 1) / (self.y + 1), (self.n + 1 - self.y) / (self.n + 1 - self.x)
        low, high = 0.0, math.log(max(odds))
        if not self.refutes(claim_bounds(low, delta)):
            return low
        while high - low > 1e-3 * (1 + low):
            middle = (low + high) / 2
            rejected = self.refutes(claim_bounds(middle, delta))
            low, high = (middle, high) if rejected else (low, middle)
        return low


def _least(bounds: Sequence[Bound], q: float) -> float:
    """g(q)."""
    return min(1.0, min(slope * q + base for slope, base in bounds) * (1 + 4 * ULP))


def _information(draws: int, low: float, high: float) -> tuple[float, float]:
    """κ's and λ's share of E[1_R(X/p² + (n − X)/(1 − p)²)] for low ≤ p ≤ high."""
    kappa = share = 0.0
    for p in (low, 1 - high):
        mean = draws * p
        kappa += draws / p * math.sqrt(1 + (1 - p) / mean)
        share += draws / p * (1 + (160 / 3 + math.sqrt(160 * mean) + 1) / mean)
    return kappa, share


def upper_limit(successes: int, draws: int, level: float) -> float:
    """Clopper and Pearson's upper limit."""
    return min(1.0, math.nextafter(1 - clopper_pearson(draws - successes, draws, level), math.inf))


def few_hits(p: float, draws: int) -> int:
    """The least k with P[Bin(draws, p) ≤ k] ≥ 0.005."""
    at = window(draws, p)
    below = accumulate(at.weights)
    return next(at.first + n for n, part in enumerate(below) if part >= at.total * (1 - 0.99) / 2)


@dataclass(frozen=True)
class Plan:
    """What the claim alone decides: events, thresholds and power. In doubles; proves nothing."""

    curve: Curve
    epsilon: Fraction
    delta: Fraction
    alpha: float
    draws: int
    levels: tuple[float, ...]  # of the first pair's events in record order

    @cached_property
    def events(self) -> list[tuple[float, float]]:
        """Thresholds t of {L ≥ t}, and the δ′ that outcomes are ordered by."""
        reach = self._farthest(self.levels[0])
        tail = self._best_tail(self.levels[0]), above(self.delta)
        chosen = tail, (reach, self._delta(reach)), (0.0, self._delta(0.0))
        return [(threshold, min(order, 0.99)) for threshold, order in chosen]

    @cached_property
    def seen(self) -> float:
        """Where δ(ε) is one in so many draws."""
        return self._epsilon(Fraction(1, max(self.draws, 10)))

    def _epsilon(self, delta: Fraction) -> float:
        """ε(δ), as far as draws can reach."""
        return min(above(self.curve.epsilon(delta).high), FARTHEST)

    def _delta(self, epsilon: float) -> float:
        return min(above(self.curve.delta(Fraction(epsilon)).high), 1.0)

    def _best_tail(self, level: float) -> float:
        """Where the delta method's limit of ln((p − δ)/q) is largest, of 201 thresholds."""
        z, grid = max(-NormalDist().inv_cdf(level), 0.5), evenly(0.0, max(self.seen, 1e-9), 201)

        def limit(threshold: float) -> float:
            p, q = self.curve.rates(threshold)
            excess, shifted = max(p - float(self.delta), 1e-100), q + z**2 / 4 / self.draws
            spread = (p * (1 - p) / excess**2 + (1 - q) / shifted) / self.draws
            return math.log(excess / shifted) - z * math.sqrt(spread)

        return max(grid, key=limit)

    def _farthest(self, level: float) -> float:
        """The largest of 101 thresholds t at which {L ≥ t} would show twice the δ(t), or 0."""
        z = -NormalDist().inv_cdf(level / 100) - NormalDist().inv_cdf(1 - 0.99)
        for t in reversed(evenly(0.0, self.seen, 101)):
            (p, q), delta = self.curve.rates(t), self._delta(t)
            p = min(p + delta, 1.0)
            if delta > z * math.sqrt((p * (1 - p) + math.exp(2 * t) * q * (1 - q)) / self.draws):
                return t
        return 0.0

    @cached_property
    def points(self) -> list[tuple[float, float]]:
        """The claimed point of the curve, and 64 to where draws see nothing of it any more."""
        claimed = self._epsilon(self.delta)
        floor = max(Fraction(self._delta(FARTHEST)), Fraction(1, 10**9))
        last = max(claimed, self._epsilon(min(floor, self.delta)))
        return [
            (epsilon, self._delta(epsilon)) for epsilon in sorted({claimed, *evenly(0.0, last, 64)})
        ]

    @cached_property
    def bounds(self) -> list[Bound]:
        """All that these points say."""
        return [bound for point in self.points for bound in claim_bounds(*point)]

    @lru_cache(maxsize=4096)  # noqa: B019
    def judge(self, place: int, x: int, y: int, level: float) -> tuple[float, float | None]:
        """An event's lower bound on ε at δ, and where its counts refute the curve, if they do."""
        test = EventTest(x, y, self.draws, level, self.events[place % 3][1])
        bound = test.limit(above(self.delta))
        beyond = bound > above(self.curve.epsilon(self.delta).high)
        if not beyond and not test.refutes(self.bounds):
            return bound, None
        share = y / self.draws
        return bound, min(
            self.points, key=lambda point: min(s * share + c for s, c in claim_bounds(*point))
        )[0]

    def _finds(self, place: int, p: float, q: float, bounds: Sequence[Bound]) -> bool:
        """Whether few hits with p and many with q (quantiles at ½ %) refute, by an event."""
        x, y = few_hits(p, self.draws), self.draws - few_hits(1 - q, self.draws)
        test = EventTest(x, y, self.draws, self.levels[place], self.events[place][1])
        return test.refutes(bounds)

    def _finds_noise(self, scale: float) -> bool:
        events = enumerate(self.events)
        return any(self._finds(n, *self.curve.rates(t, scale), self.bounds) for n, (t, _) in events)

    @cached_property
    def noise_scale(self) -> float | None:
        """The factor on the noise, nearest to 1 from below, that would have been found."""
        low, high = 0.01, 1.0
        if not self._finds_noise(low):
            return None
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (middle, high) if self._finds_noise(middle) else (low, middle)
        return low

    @cached_property
    def reach(self) -> float | None:
        """The largest of 51 ε at which twice the δ(ε) would have been found."""
        leaks = [self.curve.rates(t)[1] for t, _ in self.events]
        for epsilon in reversed(evenly(0.0, float(self.epsilon), 51)):
            allowed = self._delta(epsilon)
            bounds, double = (
                claim_bounds(epsilon, allowed),
                claim_bounds(epsilon, min(2 * allowed, 1.0)),
            )
            for place, q in enumerate(leaks):
                p = min(1.0, *(slope * q + base for slope, base in double))
                if self._finds(place, p, q, bounds):
                    return epsilon
        return None

    @cached_property
    def smallest_excess(self) -> float:
        """The least p − (e^ε·q + δ) that would have been found on the first event."""
        (t, order), draws = self.events[0], self.draws
        q, epsilon = self.curve.rates(t)[1], float(self.epsilon)
        y, bounds = draws - few_hits(1 - q, draws), claim_bounds(epsilon, order)[:1]
        few, many = 0, 1

        def refuted(x: int) -> bool:
            return EventTest(x, y, draws, self.levels[0], order).refutes(bounds)

        while not refuted(many):
            if many == draws:
                return math.inf
            few, many = many, min(2 * many, draws)
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if refuted(middle) else (middle, many)
        p = 1 - clopper_pearson(draws - many + 1, draws, (1 - 0.99) / 2)
        return p - (math.exp(epsilon) * q + order)

    @cached_property
    def ceiling(self) -> float:
        """ε₋ of the expected counts of the best event, tested alone."""
        x, y = (round(self.draws * rate) for rate in self.curve.rates(self._best_tail(self.alpha)))
        delta = above(self.delta)
        return EventTest(x, y, self.draws, self.alpha, delta).limit(delta)


plan_of = lru_cache(maxsize=64)(Plan)


def attack_levels(alpha: float, tests: int) -> list[float]:
    """39 of 40 parts of α: 38 of 39 of these for the first test, all others alike."""
    level, others = alpha * 39.0 / 40.0 * (1 - 1e-12), tests - 1.0
    weights = [38 * others, *[1.0] * (tests - 1)]
    return [level * weight / sum(weights) * (1 - 1e-12) for weight in weights]


def check_attack(
    inputs: Inputs, mechanism: Mechanism, derived: Mapping[str, Any], evidence: Mapping[str, Any]
) -> None:
    """Events, levels, thresholds, what the counts prove, and what would have been found."""
    pairs, curve, alpha = evidence["white_box"], mechanism.curve, float(inputs.alpha)
    levels = attack_levels(alpha, 6 * len(pairs))
    key = curve, inputs.epsilon, inputs.delta, alpha, inputs.draws, tuple(levels[:3])
    plan, findings, bounds, refuted = plan_of(*key), list[Any](), [0.0], False
    tests = [
        (pair["pair"], place, count) for pair in pairs for place, count in enumerate(pair["counts"])
    ]
    for level, (pair, place, count) in zip(levels, tests, strict=True):
        bound, at = plan.judge(place % 3, count["hits"], count["false_hits"], level)
        bounds.append(bound)
        refuted = refuted or at is not None
        findings.append(
            {
                "pair": pair,
                "event": ("tail", "reach", "middle")[place % 3],
                "order": ("record against neighbour", "neighbour against record")[place // 3],
                "threshold": statistic(plan.events[place % 3][0]),
                "level": decimal_string(level, ROUND_CEILING, 9),
                "epsilon_lower": rounded_down(bound, 1e-10 * bound),
                "refuted_at": None if at is None else statistic(at),
            }
        )
    scale, reach = plan.noise_scale, plan.reach
    blind = scale is None and reach is None
    farthest = above(curve.epsilon(Fraction(1, 1000)).high)
    due = {
        "verdict": "violation" if refuted else "inconclusive" if blind else "no_violation_found",
        "tests": len(findings),
        "epsilon_lower": rounded_down(max(bounds), 1e-10 * max(bounds)),
        "ceiling": statistic(plan.ceiling),
        "findings": findings,
        "power": {
            "noise_scale": None if scale is None else statistic(scale),
            "smallest_excess": statistic(plan.smallest_excess),
            "reach": None if reach is None else statistic(reach),
        },
        "roc_thresholds": [statistic(t) for t in evenly(-farthest, farthest, 17)],
    }
    same("derived.white_box", derived["white_box"], due)


# 11. Estimators: their moments for synthetic records, and what a release is good for


Synthetic = Sequence[Any]
"""A record in steps or bits, a set, or a data set; or what is asked of one."""


class Estimator(NamedTuple):
    """An estimate from a release, with its moments for two records (or a data set and a query)."""

    name: str
    formulas: str  # "exact" or "delta method"
    moments: Callable[[Any, Any], tuple[float, float, float]]  # truth, expectation, variance
    limits: tuple[float, float] | None = None  # of the truth, whatever the domain


def uniform(count: int, rng: Words) -> list[float]:
    """Synthetic numbers in [0, 1)."""
    return [(word >> 11) * 2.0**-53 for word in rng.words(count)]


def _drawn(column: Mapping[str, Any], rng: Words) -> list[float]:
    """Attributes of any value of a declared column."""
    values, width, kind = [0.0] * attributes_of(column), width_of(column), column["type"]
    unit = uniform(1, rng)[0]
    if kind == "category":
        values[int(unit * width)] = 0.5
    elif kind == "text":
        most = column.get("most", 100)
        found = Counter(int(u * width) for u in uniform(1 + int(unit * most), rng))
        for place, count in found.items():
            values[place] = count * 2**19 // most / 2**20
    else:
        values[0] = float(round(unit)) if kind == "boolean" else unit
    return values


def synthetic_pairs(inputs: Inputs, p: int, rng: Words) -> Iterator[tuple[Any, ...]]:
    """Forty pairs of records (sets as sets), from almost equal to independent."""
    domain = inputs.domain
    for number_ in range(1, 41):
        if inputs.columns:
            parts, fresh_ = ([_drawn(one, rng) for one in inputs.columns] for _ in range(2))
            changed = len(parts) * number_ // 40
            yield tuple([*chain(*rows)] for rows in (parts, fresh_[:changed] + parts[changed:]))
            continue
        match domain.name:
            case "box":
                low, high = map(float, ends_of(domain))
                record, fresh = (
                    [min(max(low + (high - low) * u, low), high) for u in uniform(p, rng)]
                    for _ in range(2)
                )
                changed = int(p * number_ / 40)
                yield record, fresh[:changed] + record[changed:]
            case "ball":
                scale, part = float(domain["radius"]) / math.sqrt(p), number_ / 40
                record, fresh = ([scale * (2 * u - 1) for u in uniform(p, rng)] for _ in range(2))
                pairs = zip(record, fresh, strict=True)
                yield record, [(1 - part) * one + part * two for one, two in pairs]
            case "sets":
                most = min(int(domain.numbers.get("max_size", p)), p)
                size = min(max(int(domain["min_size"]), most // 4), most)
                order = sorted(range(p), key=rng.words(p).__getitem__)
                shift = min(p - size, -(-size * number_ // 80))
                yield set(order[:size]), set(order[shift : shift + size])


def dot(*vectors: Sequence[int]) -> int:
    """Σ of the products of entries."""
    return sum(map(math.prod, zip(*vectors, strict=True)))


def statistic(value: float, slack: float = 1e-11) -> Callable[[str, Any], None]:
    """Nine digits of a double that is known to a relative slack."""
    due = {f"{value * (1 + sign * slack):.9g}" for sign in (-1, 0, 1)}

    def shape(where: str, stated: Any) -> None:
        require(stated in due, where, f"is {_short(stated)}, and not {value:.9g}")

    return shape


def check_estimators(
    inputs: Inputs, mechanism: Mechanism, derived: Any, evidence: Any, stated: Mapping[str, Any]
) -> None:
    """Formulas, what the draws say of them, predictions, usefulness, sizes."""
    estimators = mechanism.estimators()
    level = float(inputs.alpha) * 1.0 / 40.0 * (1 - 1e-12) / (2 * len(estimators))
    probes = list(mechanism.probes(Words(inputs.audit_seed, "synthetic")))
    names = [one["estimator"] for one in evidence["moments"]]
    same("evidence.moments", names, [one.name for one in estimators])
    count = len(evidence["probe_estimates"])
    require(count == len(probes), "evidence.probe_estimates", f"must be {len(probes)}")
    first = [estimators[0].moments(*probe) for probe in probes]
    due = {
        "moment_level": statistic(level),
        "margin_mean": "0.15",
        "margin_variance": "0.25",
        "estimators": [
            _estimator(one, probes[-1], sample, level)
            for one, sample in zip(estimators, evidence["moments"], strict=True)
        ],
        "predictions": [
            {
                "truth": statistic(truth),
                "expectation": statistic(mean),
                "deviation": statistic(variance**0.5),
            }
            for truth, mean, variance in first
        ],
    }
    same("derived", {key: derived[key] for key in due}, due)
    useful = _usefulness(stated["purpose"], estimators[0], derived["predictions"])
    same("derived.usefulness", derived["usefulness"], useful)
    same("derived.sizes", derived["sizes"], list(_sizes(json.dumps(stated))))


def _estimator(one: Estimator, probe: Any, sample: Any, level: float) -> dict[str, Any]:
    """Its moments, and whether those of the draws refute or confirm them.

    A formula is refuted outside of the normal limit's interval, confirmed where all of it lies
    within the margin; the delta method claims nothing that draws could refute.
    """
    truth, mean, variance = one.moments(*probe)
    verdicts, draws = ["inconclusive"] * 2, sample["draws"]
    told = draws >= 2 and float(sample["variance"]) > 0 and not sample["undefined"]
    if told and variance > 0:
        z, ratio = -NormalDist().inv_cdf(level / 2), float(sample["variance"]) / variance
        apart = (float(sample["mean"]) - mean) / math.sqrt(variance)
        wide = z * ratio * math.sqrt(max(float(sample["kurtosis"]) - 1, 0.0) / draws)
        spreads = (apart, z * math.sqrt(ratio / draws), 0.15), (ratio - 1, wide, 0.25)
        for place, (difference, spread, margin) in enumerate(spreads):
            if not abs(difference) <= spread:
                verdicts[place] = "refuted" if one.formulas == "exact" else "inconclusive"
            elif abs(difference) + spread <= margin:
                verdicts[place] = "confirmed_within_margin"
    return {
        "name": one.name,
        "formulas": one.formulas,
        "truth": statistic(truth),
        "expectation": statistic(mean),
        "variance": statistic(variance),
        "mean_verdict": verdicts[0],
        "variance_verdict": verdicts[1],
    }


def _usefulness(purpose: Any, one: Estimator, predictions: Sequence[Any]) -> dict[str, Any] | None:
    """The error of one estimate against the range of what is estimated, from the recorded texts."""
    rows = [
        [float(row[key]) for key in ("truth", "expectation", "deviation")] for row in predictions
    ]
    truths = [row[0] for row in rows]
    if min(truths) == max(truths):
        truths.append(0.0)
    low, high = one.limits or (min(truths), max(truths))
    if purpose:
        low, high = (float(exact_number(purpose[end])) for end in ("low", "high"))
    if not low < high:
        return None
    away = [max(low - row[0], row[0] - high, 0.0) for row in rows]
    sizes = [math.hypot(mean - truth, deviation) for truth, mean, deviation in rows]
    near = [size for size, distance in zip(sizes, away, strict=True) if distance == min(away)]
    error = sorted(math.inf if math.isnan(size) else size for size in near)[len(near) // 2]
    share, useful = error / (high - low), 1 / (4 * math.sqrt(2) * NormalDist().inv_cdf(0.9))
    return {
        "quantity": one.name,
        "low": statistic(low),
        "high": statistic(high),
        "declared": bool(purpose),
        "error": statistic(error),
        "verdict": "useless" if not share <= 1 else "useful" if share <= useful else "coarse",
    }


@lru_cache(maxsize=64)
def _sizes(text: str) -> tuple[dict[str, Any], ...]:
    """The first estimator's error at other sizes of the sketch, each calibrated anew."""
    stated = json.loads(text)
    name = next((name for name in ("k", "sketch_rows") if name in stated["parameters"]), None)
    if name is None:
        return ()
    chosen, found = stated["parameters"][name], []
    sizes = {round(chosen * 2.0**power) for power in range(-4, 5)}
    probe = list(_calibrated(text).probes(Words(stated["audit_seed"], "synthetic")))[-1]
    for size in sorted(n for n in sizes if 1 <= n <= max(chosen, stated["attributes"])):
        try:
            other = _calibrated(
                json.dumps(stated | {"parameters": stated["parameters"] | {name: size}})
            )
        except Differs:  # a size that the mechanism doesn't allow
            continue
        truth, mean, variance = other.estimators()[0].moments(*probe)
        error = math.sqrt(variance + (mean - truth) ** 2) if variance >= 0 else math.nan
        if math.isfinite(error):
            found.append({"size": size, "error": statistic(error, 1e-9)})
    return tuple(found)


def _calibrated(text: str) -> Mechanism:
    """The mechanism of some inputs, its noise sought."""
    inputs = read_inputs(json.loads(text))
    return _MECHANISMS[FAMILIES[inputs.mechanism][0]](inputs, None)


# 12. Hazards


def _written(value: Decimal, largest: int = 15) -> str:
    """A number for people."""
    if value.is_infinite():
        return "∞" if value > 0 else "−∞"
    if value.is_nan():
        return "undefined"
    if value == 0:
        return "0"
    sign, value = "−" if value < 0 else "", value.copy_abs()

    def bare(text: str) -> str:
        return text.rstrip("0").rstrip(".") if "." in text else text

    exponent = value.adjusted()
    if -5 <= exponent < largest:
        return sign + bare(f"{value:f}")
    mantissa = bare(f"{value.scaleb(-exponent, Context(prec=60)):f}")
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return sign + (power if mantissa == "1" else f"{mantissa}×{power}")


def rounded(text: str | Fraction, rounding: str) -> str:
    """Four significant digits, rounded to a side."""
    value = Fraction(text) if isinstance(text, Fraction) or "/" in text else None
    if value is None:
        decimal = Decimal(str(text))
    else:
        exact = exact_string(value)
        if "/" in exact:
            division = Context(prec=60, rounding=rounding)
            decimal = division.divide(Decimal(value.numerator), Decimal(value.denominator))
        else:
            decimal = Decimal(exact)
    return _written(Context(prec=4, rounding=rounding).plus(decimal), largest=7)


def _percent(text: str) -> str:
    return rounded(str(Fraction(text) * 100), ROUND_CEILING) + "\N{NO-BREAK SPACE}%"


def _large_epsilon(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    text = derived["guarantee"]["epsilon"]["upper"]
    most = rounded(text, ROUND_CEILING)
    if Decimal(text) <= 1:
        return "pass", f"ε is at most {most}, which the publication calls conservative."
    left = ", ".join(
        f"{_percent(one['true_positive_rate']['upper'])} at {_percent(one['false_positive_rate'])}"
        for one in derived["attacker"]
    )
    return "needs_owner", (
        f"ε is up to {most}. It leaves the strongest attacker a true positive rate "
        f"of at most {left} of false positives. Is that little enough here?"
    )


def _catastrophic_failure(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    delta, far = inputs.delta, derived["far_delta"]["upper"]
    if delta == 0:
        return "pass", "δ = 0: pure differential privacy."
    if delta * inputs.rows >= 1:
        return "fail", (
            f"δ times the {inputs.rows} records is 1 or more: a mechanism that publishes "
            "one record in clear would meet such a claim."
        )
    at_most = rounded(far, ROUND_CEILING)
    if Fraction(far) * 1000 <= delta:
        return "pass", (
            "The proven δ goes on falling: at ten times the asked ε it is at most "
            f"{at_most}, less than a thousandth of the δ asked for."
        )
    return "needs_owner", (
        f"At ten times the asked ε the proven δ is still up to {at_most}: a chance that "
        "protection fails altogether. Is that little enough here?"
    )


def _unit_hazard(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    text = f"Protected: {derived['protects']}. Is every harm that matters such a change?"
    return "needs_owner", text


def _event_level(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    whole = inputs.adjacency.name == "record"
    part = "A whole record is protected." if whole else "Less than a whole record is protected."
    return "needs_owner", f"{part} How many records can come from one person?"


def _conversion(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    return "pass", (
        f"The curve δ(ε) is proven directly and given at {len(derived['curve'])} points, "
        "with the numbers that it follows from: anyone can read it at another δ."
    )


def _implementation(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    found = derived["white_box"]
    how = (
        f"{found['verdict']} by the likelihood-ratio attack on the code that releases, "
        f"{inputs.draws} draws per side, {found['tests']} tests at level "
        f"{exact_string(inputs.alpha)}"
    )
    if found["verdict"] == "violation":
        return "fail", f"{how}."
    if found["verdict"] == "inconclusive":
        return "needs_owner", f"{how}. What else speaks for this implementation?"
    scale = found["power"]["noise_scale"]
    power = ""
    if scale:
        power = f"; noise scaled by {rounded(scale, ROUND_FLOOR)} would have been found"
    return "pass", f"{how}{power}. No attack proves that there is no mistake."


def _statistical_bias(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    exact = [one for one in derived["estimators"] if one["formulas"] == "exact"]
    names = ", ".join(one["name"] for one in exact)
    verdicts = {one["mean_verdict"] for one in exact}
    if "refuted" in verdicts:
        return "fail", f"Draws refute a closed form of the mean (of {names})."
    if verdicts == {"confirmed_within_margin"}:
        return "pass", (
            f"Bias is known in closed form; draws confirm the means ({names}) within "
            f"{derived['margin_mean']} predicted standard deviations. Clipped records bias "
            "estimates beside that."
        )
    return "needs_owner", "The draws don't confirm the closed forms of the means."


def _declared_bounds(inputs: Inputs, derived: Mapping[str, Any]) -> tuple[str, str]:
    def shown(value: Fraction) -> str:
        text = exact_string(value)
        return text if "/" in text else _written(Decimal(text))

    numbers = ", ".join(
        f"{name} = {shown(value)}" for name, value in sorted(inputs.domain.numbers.items())
    )
    declared = inputs.domain.name + (f" with {numbers}" if numbers else "")
    ranges = ", and a range of each attribute" if inputs.ranges else ""
    ranges = ", and what each column may hold" if inputs.columns else ranges
    return "needs_owner", (
        f"Declared: {declared}{ranges}. Where do these numbers come from, if not from the records?"
    )


_RULES = {
    "large-epsilon": _large_epsilon,
    "catastrophic-failure": _catastrophic_failure,
    "unit-of-privacy": _unit_hazard,
    "event-level": _event_level,
    "large-delta-in-conversion": _conversion,
    "custom-implementation": _implementation,
    "statistical-bias": _statistical_bias,
    "declared-bounds": _declared_bounds,
}
_HAZARDS = """
large-epsilon; 2.2; owner; large_epsilon
A large ε may protect too little

catastrophic-failure; 2.3; owner; catastrophic_failure
δ may be the probability of a complete failure

unit-of-privacy; 2.4; owner; unit_hazard
The unit of privacy may not cover the harm that is feared

event-level; 2.4; owner; event_level
Protecting a record doesn't protect a person who is in several

different-delta; 2.5; certificate; not_applicable
Guarantees with different δ can't be compared
One guarantee, compared with no other. Its whole curve is given, to compare at any δ.

different-units; 2.5; certificate; not_applicable
Guarantees for different units of privacy can't be compared
One guarantee, compared with no other.

large-delta-in-conversion; 2.5; certificate; conversion
A conversion at a large δ makes ε look small

other-releases; 2.6; owner; needs_owner
Other releases of the same data are not protected by this one
What else was or will be released from these records, with which guarantees?

custom-implementation; 3; owner; implementation
An implementation may not do what was proven

systemic-bias; 3.3.1; owner; needs_owner
Noise can create or magnify bias against small groups
Who uses the estimates for what, and were errors for small groups considered?

human-bias; 3.3.2; owner; needs_owner
Making results look plausible can distort them
Will negative or fractional estimates be cut off or rounded before use?

statistical-bias; 3.3.3; owner; statistical_bias
Estimates can be biased

bounded-contributions; 3.4.1; certificate; not_applicable
Bounding a person's contributions needs more noise
Contributions are not bounded here; for persons with several records see event-level.

histogram-bins; 3.4.1; certificate; not_applicable
The bins of a histogram may reveal data
No histogram: the shape of the release follows from public parameters alone.

declared-bounds; 3.4.2 (a key takeaway); owner; declared_bounds
Bounds on the values may have been read off the data

machine-learning; 3.5; certificate; not_applicable
Machine learning doesn't protect privacy by itself
No model is trained. Models trained on the release alone are covered by its guarantee.

synthetic-data; 3.6 (two boxes); certificate; not_applicable
Synthetic data may be unprotected, or of poor quality
No synthetic data is released; that of the audits is made from the domain alone.

unstructured-data; 3.7; owner; needs_owner
In text, images or sound the unit of privacy may mean little
Do the rows stand for text, images or sound, and whose are they?

interactive-queries; 4.1; certificate; not_applicable
Answering queries raises problems of budget and security
One release of a fixed form. No queries on the records are answered afterwards.

trust-model; 4.2; owner; needs_owner
The trust that the guarantee assumes may not hold
Central model: who holds the records and ran the release, and are they trusted?

floating-point; 4.3; certificate; pass
Floating-point noise can reveal what it should hide
Records are read on a grid, and the release is drawn exactly on integers, bits or hash values; a
mechanism that adds floating-point noise can't be certified.

timing-channels; 4.3; owner; needs_owner
Running time or failures may reveal data
Running times are not protected, and error messages about records are for their owner. Could
anyone else time or watch the release?

data-security; 4.4; owner; needs_owner
A breach of the original records makes the guarantee void
How are the original records kept, at rest and during the release?

access-control; 4.4; owner; needs_owner
Whoever may read the original records must be chosen
Who may read the original records and the folder that is for the owner only?

data-collection; 4.5; owner; needs_owner
Differential privacy doesn't justify collecting more
Was all of this data needed?
"""
"""Paragraphs: id, section, who answers, and the answer where it is the same in every certificate (a
rule's name where not); the title; the question or reason of such an answer."""


class Hazard(NamedTuple):
    """A hazard: who may answer where its rule leaves it open, and its rule."""

    id: str
    section: str
    title: str
    owners: bool
    rule: Callable[[Inputs, Mapping[str, Any]], tuple[str, str]]


def _hazards() -> Iterator[Hazard]:
    for paragraph in _HAZARDS.strip().split("\n\n"):
        head, title, *text = paragraph.split("\n")
        name, section, who, answer = head.split("; ")
        same_ = answer, " ".join(text)
        rule = _RULES.get(name, lambda _, __, said=same_: said)
        yield Hazard(name, section, title, who == "owner", rule)


HAZARDS = tuple(_hazards())


def check_hazards(
    inputs: Inputs, stated: Mapping[str, Any], derived: Mapping[str, Any], listed: Any
) -> None:
    """Every hazard answered again, the owner's word where the rule leaves it open."""
    owner = stated["owner"]
    known = {hazard.id for hazard in HAZARDS if hazard.owners}
    require(owner.keys() <= known, "inputs.owner", "answers a hazard that the owner can't answer")
    due = []
    for hazard in HAZARDS:
        answer, evidence = hazard.rule(inputs, derived)
        owned = answer == "needs_owner" and hazard.id in owner
        if owned:
            answer, evidence = owner[hazard.id]["answer"], owner[hazard.id]["reason"]
        due.append(
            {
                "id": hazard.id,
                "title": hazard.title,
                "section": hazard.section,
                "answer": answer,
                "evidence": evidence,
                "owner": owned,
            }
        )
    same("checklist", listed, due)


# 13. The released file, and the signature


_TYPES = {"int64": ("<i8", 8), "uint8": ("|u1", 1), "uint16": ("<u2", 2), "uint32": ("<u4", 4)}


def npy_header(shape: Sequence[int], dtype: str) -> bytes:
    """Version 1.0 of numpy's format, least padded."""
    size = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    text = f"{{'descr': '{_TYPES[dtype][0]}', 'fortran_order': False, 'shape': {size}, }}"
    padded = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode()


def zip_parts(crc: int, size: int, packed: int) -> tuple[bytes, bytes]:
    """What stands before and behind the deflated member of a released file."""
    name = b"steps.npy"
    sizes = struct.pack("<2H2Q", 1, 16, size, packed)
    most = 0xFFFFFFFF
    entry = struct.pack("<5H3I2H", 45, 0, 8, 0, 33, crc, most, most, len(name), len(sizes))
    opening = b"PK\3\4" + entry + name + sizes
    start, made_by = len(opening) + packed, 3 << 8 | 45
    directory = b"PK\1\2" + struct.pack("<H", made_by) + entry
    directory += struct.pack("<3H2I", 0, 0, 0, 0o100644 << 16, 0) + name + sizes
    length = len(directory)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, made_by, 45, 0, 0, 1, 1, length, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + length, 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, length, min(start, most), 0)
    return opening, directory + end64 + locator + end


def limited_content(path: Path) -> bytes:
    """Bytes of a file whose size nobody vouches for."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInputError(f"{path} is larger than {MAX_BYTES} bytes")
    return content


def own_content(path: Path, sha256: str, where: str) -> bytes:
    """Bytes of the file that was certified, which lies there itself; read once the hash agrees."""
    try:
        require(stat.S_ISREG(path.lstat().st_mode), where, "is a link or a device")
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").hexdigest() == sha256
            require(own, where, "has another SHA-256 than the one that was certified")
            file.seek(0)
            return file.read()
    except OSError as error:
        raise Differs(where, f"can't be read: {error.strerror}") from None


def check_release_files(path: Path, release: Mapping[str, Any], mechanism: Mechanism) -> bytes:
    """The released file; or the manifest, to the last byte, and its parts, which lie beside it.

    Returns the numbers.
    """
    if release["file"] != "manifest.json":
        return check_file(path, release["sha256"], mechanism.shape, mechanism)
    where = "manifest.json"
    content = own_content(path, release["sha256"], where)
    try:
        manifest = read_json(content)
    except BadInputError as error:
        raise Differs(where, str(error)) from None
    fits(manifest, MANIFEST, "")
    parts = manifest["parts"]
    names = [f"sketch-{number:05}.npz" for number in range(len(parts))]
    same(f"{where}.file", [part["file"] for part in parts], names)
    same(f"{where}.rows", sum(part["rows"] for part in parts), mechanism.shape[0])
    require(
        canonical_json(manifest) + b"\n" == content, where, "isn't canonical JSON and a line feed"
    )
    others = mechanism.shape[1:]
    return b"".join(
        check_file(path.with_name(part["file"]), part["sha256"], [part["rows"], *others], mechanism)
        for part in parts
    )


def check_file(path: Path, sha256: str, shape: Sequence[int], mechanism: Mechanism) -> bytes:
    """A released file: its SHA-256, its container byte for byte, and what its numbers may be."""
    where = path.name
    content = own_content(path, sha256, where)
    header, item = npy_header(shape, mechanism.dtype), _TYPES[mechanism.dtype][1]
    size = len(header) + item * math.prod(shape)
    opening, closing = zip_parts(0, 0, 0)
    packed = len(content) - len(opening) - len(closing)
    require(0 < packed <= size + size // 1000 + 100, where, "doesn't hold exactly the array")
    deflated = content[len(opening) : len(opening) + packed]
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        raw = inflate.decompress(deflated, size + 1)
    except zlib.error as error:
        raise Differs(where, f"can't be unpacked: {error}") from None
    whole = inflate.eof and not inflate.unused_data and len(raw) == size
    require(whole and raw.startswith(header), where, "holds something other than the array")
    around_ = zip_parts(zlib.crc32(raw), size, packed)
    framed = content == around_[0] + deflated + around_[1]
    require(framed, where, "has a container that isn't as certify writes it")
    row = item * math.prod(shape[1:])
    for start in range(len(header), size, max(row, 1)):
        possible = mechanism.possible(raw[start : start + row])
        require(possible, where, "holds values that this mechanism can't release")
    return raw[len(header) :]


def noise_limits(within: Callable[[int], Interval], total: int) -> Iterator[tuple[int, Span]]:
    """Sizes t with F(t) + √(ln 10⁹/2n), as long as that is below 1.

    Data plus independent noise that is symmetric and falls away from 0 have more than that share of
    n numbers below t, for any t, with probability at most 10⁻⁹: at each place of the data no number
    is more likely to be small than the noise alone, so that the empirical law is bounded by that
    of n draws of the noise, and Massart 1990 (doi:10.1214/aop/1176990746) bounds how far that
    exceeds F.
    """
    slack = iv.sqrt(iv.log(iv.mpf(10**9)) / (2 * total))
    later = (digits << shift for shift in range(58) for digits in range(32, 64))
    for size in chain(range(1, 32), later):
        limit = span(within(size) + slack)
        if limit.low >= 1:
            return
        yield size, limit


def check_noise(numbers: bytes, limits: Sequence[tuple[int, Span]]) -> None:
    """Whether released numbers are too small for any data with the noise."""
    sizes = sorted(abs(value) for (value,) in struct.iter_unpack("<q", numbers))
    for size, limit in limits:
        share = Fraction(bisect_left(sizes, size), len(sizes))
        most = f"of which at most {float(limit.high):.4f}"
        where, why = "released file", f"has {float(share):.4f} of its numbers below {size} steps"
        require(share <= limit.high, where, f"{why}, {most} are with this noise, whatever the data")


PAYLOAD_TYPE = "application/vnd.in-toto+json"


def public_key(path: Path) -> tuple[Any, str]:
    """An Ed25519 public key of a PEM file, and its name: SHA-256 of its DER."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            PublicFormat,
            load_pem_public_key,
        )
    except ImportError:
        raise BadInputError("to check a signature, install cryptography") from None
    try:
        key = load_pem_public_key(limited_content(path))
    except (OSError, ValueError) as error:
        raise BadInputError(f"{path} is not a public key in PEM: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInputError(f"{path} is not an Ed25519 key")
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    prime = 2**255 - 19
    y = int.from_bytes(raw, "little") % 2**255 % prime
    order8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
    if y in (0, 1, prime - 1, order8, prime - order8):
        raise BadInputError(f"{path} is a point of small order, under which anyone can sign")
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return key, hashlib.sha256(der).hexdigest()


def check_signature(path: Path, fields: Mapping[str, Any], key: Any, name: str) -> str:
    """A DSSE envelope in its one form, with a signature by this key over this certificate."""
    from cryptography.exceptions import InvalidSignature

    where = "signature"
    require(path.is_file() and not path.is_symlink(), where, f"{path.name} is missing")
    try:
        content = limited_content(path)
        envelope = read_json(content)
        shape = {
            "payload": _text,
            "payloadType": _text,
            "signatures": [{"keyid": _text, "sig": _text}],
        }
        fits(envelope, shape, "")
        texts = [envelope["payload"], *(one["sig"] for one in envelope["signatures"])]
        standard = all(
            base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
            for text in texts
        )
    except (ValueError, BadInputError):
        raise Differs(where, f"{path.name} is not a DSSE envelope") from None
    good = standard and canonical_json(envelope) + b"\n" == content
    require(good, where, f"{path.name} isn't in canonical form")
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    own = [one for one in envelope["signatures"] if one["keyid"] == name]
    require(bool(own), where, "there is no signature by this key")
    for one in own:
        try:
            key.verify(base64.b64decode(one["sig"]), signed)
        except InvalidSignature:
            raise Differs(where, "doesn't hold") from None
    require(envelope["payloadType"] == PAYLOAD_TYPE, where, "signs another type of payload")
    release = fields["release"]
    require(release is not None, where, "signs nothing that was released")
    subject = [{"name": release["file"], "digest": {"sha256": release["sha256"]}}]
    report, hashed = path.with_name("report.html"), None
    if report.is_file():
        hashed = hashlib.sha256(limited_content(report)).hexdigest()
    else:  # one that was signed need not be here
        stated = read_json(payload)
        for one in stated.get("subject", []) if isinstance(stated, dict) else []:
            if isinstance(one, dict) and one.get("name") == "report.html":
                hashed = one.get("digest", {}).get("sha256")
    if isinstance(hashed, str):
        subject.append({"name": "report.html", "digest": {"sha256": hashed}})
    due = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "urn:dpverify:certificate:1",
        "predicate": dict(fields),
    }
    require(payload == canonical_json(due), where, "signs another certificate, file or report")
    return f"Ed25519 over DSSE, by {name[:16]}"


# 14. The whole check


_MECHANISMS: dict[str, type[Mechanism]] = {  # by group
    "numeric": LinearSketch,
    "signs": SignSketch,
    "levels": SignSketch,
    "sets": MinHash,
    "graph": CutSketch,
    "bits": RandomizedResponse,
    "distances": NoiseAddition,
}


@dataclass
class _Checker:
    """Collects lines: each part is run for itself."""

    lines: list[Line] = field(default_factory=list)

    def run(self, name: str, detail: str, part: Callable[[], Any]) -> Any:
        """Add the line of a part, and return what the part returned; None where it failed."""
        try:
            found = part()
        except Differs as error:
            self.lines.append(Line(name, "differs", str(error)))
        except (ValueError, ArithmeticError) as error:  # of a text that should be a number
            self.lines.append(Line(name, "differs", f"can't be read: {error}"))
        except Left as error:
            self.lines.append(Line(name, "could not check", f"this program can't check {error}"))
        else:
            self.lines.append(Line(name, "agrees", detail))
            return found
        return None

    def add(self, name: str, found: str, detail: str) -> None:
        """Add a line."""
        self.lines.append(Line(name, found, detail))


@lru_cache(maxsize=64)
def _made(name: str, text: str) -> Mechanism:
    stated, facts = json.loads(text)
    make = _MECHANISMS.get(FAMILIES[name][0])
    if make is None:
        raise Left(f"{name}: neither its facts nor its curve")
    return make(read_inputs(stated), facts)


def check_fields(fields: Mapping[str, Any], file: Path | None = None) -> list[Line]:
    """Check a certificate that was read, and its released file where one is given."""
    checker = _Checker()
    try:
        if any(map(hidden, texts_of(fields))):
            raise ValueError("a text holds a hidden character")
        fits(fields, SCHEMA, "")
    except (ValueError, RecursionError) as error:
        checker.add("schema", "differs", str(error))
        return checker.lines
    checker.add("schema", "agrees", "dpverify-certificate/1")
    _of_another.set(fields["environment"]["versions"]["dpverify"] != VERSION)

    def digest() -> None:
        own = digest_of(fields) == fields["digest"]
        require(own, "digest", "the document was changed after it was written")

    checker.run("digest", "SHA-256 of the canonical JSON", digest)
    stated, derived, evidence = fields["inputs"], fields["derived"], fields["evidence"]
    inputs = checker.run("inputs", "in range, and in their one form", lambda: read_inputs(stated))
    if inputs is None:
        if checker.lines[-1].status != "differs":  # another's mechanism: its bytes can be checked
            _check_release(checker, fields, None, file)
        return checker.lines
    checker.add("replay", "left out", "nothing is drawn again: the counts are as recorded")

    def made() -> Mechanism:
        mechanism = _made(inputs.mechanism, json.dumps([stated, derived["facts"]]))
        same("derived.protects", derived["protects"], unit_of(inputs))
        same("derived.facts", derived["facts"], mechanism.facts)
        return mechanism

    recomputed = "recomputed from the inputs, in intervals"
    mechanism = checker.run("projection and sensitivity", recomputed, made)
    form = "of the form that the inputs lay down"
    counted = checker.run("evidence", form, lambda: check_counts(inputs, evidence))
    counts = "events, levels, bounds of the counts, ceiling, power and verdict"
    formulas = "formulas, verdicts, predictions, usefulness and sizes"
    parts: dict[str, tuple[str, Callable[..., None], tuple[Any, ...]]] = {
        "guarantee": (recomputed, check_guarantee, ()),
        "curve": (f"{recomputed}, and from the counts", check_curve, (evidence,)),
        "attacker": (recomputed, check_attacker, ()),
        "attack": (counts, check_attack, (evidence,)),
        "estimators": (formulas, check_estimators, (evidence, stated)),
    }
    for name, (detail, part, more) in parts.items():
        if mechanism is None or counted is None:
            checker.add(name, "could not check", "without the mechanism or its counts")
        else:
            checker.run(name, detail, partial(part, inputs, mechanism, derived, *more))
    answered = partial(check_hazards, inputs, stated, derived, fields["checklist"])
    checker.run("checklist", "answered again by their rules", answered)
    _check_release(checker, fields, mechanism, file)
    checker.add("report", "left out", "the page isn't rendered again")
    checker.add("environment", "left out", "held by the digest alone")
    return checker.lines


def _check_release(
    checker: _Checker, fields: Mapping[str, Any], mechanism: Mechanism | None, file: Path | None
) -> None:
    release = fields["release"]
    refuted = fields["derived"]["white_box"]["verdict"] == "violation"
    if refuted:
        checker.add("verdict", "differs", "the certificate's own attack refutes its claim")
    if release is None:
        good = "left out" if refuted else "differs"
        checker.add("release", good, "nothing was released")
        return
    if mechanism is None:
        checker.add("release", "could not check", "shape, type and step, without the mechanism")
        if file is not None and file.exists():
            try:
                own_content(file, release["sha256"], "release.file")
            except Differs as error:
                checker.add("released file", "differs", str(error))
            else:
                checker.add("released file", "could not check", "more than its SHA-256")
        return

    def terms() -> None:
        same("release.shape", release["shape"], mechanism.shape)
        same("release.dtype", release["dtype"], mechanism.dtype)
        step = mechanism.step
        same("release.step", release["step"], None if step is None else tight(step))

    checker.run("release", "shape, type and step", terms)
    if file is None or not file.exists():
        checker.add("released file", "could not check", "it isn't there")
        return
    whole = "SHA-256, container byte for byte, possible values"
    numbers = checker.run(
        "released file", whole, lambda: check_release_files(file, release, mechanism)
    )
    if numbers is None:
        return
    if mechanism.within is None:
        checker.add("noise", "left out", "this release isn't data with noise on every number")
        return
    limits = list(noise_limits(mechanism.within, max(1, len(numbers) // 8)))
    if not limits:
        checker.add("noise", "left out", "there are too few numbers to tell")
        return
    small = "the numbers are not too small for it, but for a chance of 1e-9"
    checker.run("noise", small, lambda: check_noise(numbers, limits))


def check(path: Path, file: Path | None = None, keys: Sequence[Path] = ()) -> list[Line]:
    """Check a certificate's file, its released file and signatures by these keys.

    Raises
    ------
    BadInputError
        If it isn't one JSON object, or a key can't be read.
    """
    try:
        content = limited_content(path)
    except OSError as error:
        raise BadInputError(f"{path} can't be read: {error.strerror}") from None
    fields = read_json(content)
    if not isinstance(fields, dict):
        raise BadInputError(f"{path} must hold one JSON object")
    lines = check_fields(fields, file or _released_beside(path, fields))
    envelope = path.with_suffix(".dsse.json")
    if not keys:
        there = "there is one: give --key" if envelope.exists() else "nobody stands by this"
        lines.append(Line("signature", "left out", there))
    for key, name in map(public_key, keys):
        signed = _Checker()
        part = partial(check_signature, envelope, fields, key, name)
        signed.run("signature", f"Ed25519 over DSSE, by {name[:16]}", part)
        lines += signed.lines
    return lines


def _released_beside(path: Path, fields: Mapping[str, Any]) -> Path:
    """Where the released file lies, or the manifest of a release in parts."""
    release = fields.get("release")
    in_parts = isinstance(release, dict) and release.get("file") == "manifest.json"
    return path.with_name("manifest.json" if in_parts else "sketch.npz")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; see the top of this file."""
    parser = argparse.ArgumentParser(prog="dpverify_check", description=__doc__.splitlines()[0])
    parser.add_argument("certificate", type=Path)
    parser.add_argument("release", type=Path, nargs="?", help="beside it by default")
    parser.add_argument("--key", type=Path, action="append", default=[], metavar="PUBLIC.pem")
    chosen = parser.parse_args(arguments)
    try:
        lines = check(chosen.certificate, chosen.release, chosen.key)
    except BadInputError as error:
        print(f"dpverify_check: {_visible(str(error))}", file=sys.stderr)
        return 2
    width = max(len(line.name) for line in lines)
    for line in lines:
        print(f"{line.status:<15}  {line.name:<{width}}  {_visible(line.detail)}")
    found = status(lines)
    named = ", ".join(line.name for line in lines if line.status == found)
    whole = "all that follows from the file was recomputed; its draws were not drawn again"
    print(f"\n{found}: {whole if found == 'agrees' else named}")
    return {"agrees": 0, "differs": 1, "could not check": 3}[found]


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


if __name__ == "__main__":
    sys.exit(main())
