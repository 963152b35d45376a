"""Check a dpverify certificate again, sharing nothing with the program that made it.

    python dpverify_check.py certificate.json [sketch.npz] [--key PUBLIC.pem]

This one file needs the standard library and mpmath (`cryptography` where a signature is checked, or
the keys of a MinHash sketch). It was written from docs/specification.md, which says of every field
how it follows from the others; the sections there have the names of the sections here.

It reads the document, and recomputes from `inputs` and the recorded counts what they imply: the
projection from its seed, its exact sensitivity, the noise, the privacy curve in interval
arithmetic, what the curve leaves to an attacker, and the answers to hazards that follow from a
rule. It draws nothing again: counts are taken as they are recorded. What it can't check it says,
line by line, and then it never says that the certificate agrees.

Exit codes: 0 all lines agree, 1 one differs, 2 bad input, 3 something was not checked.

**Numbers.** An exact number is a `Fraction`. Every other number is an interval of mpmath's `iv`,
whose basic operations, exponential, logarithm and root are rounded outwards; what `iv` lacks is
enclosed in section 3, with its proof. Doubles appear where the specification itself says "in
doubles" (statistics of nine digits, which prove nothing), and to propose what is then proven.
"""

from __future__ import annotations

import argparse
import base64
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
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, pairwise, product
from json.encoder import encode_basestring
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

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
    status : "agrees", "differs", "not checked" (this program can't), or "left out" (nobody can from
        the certificate alone: the draws, what isn't there)
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
    return "not checked" if "not checked" in found else "agrees"


def require(good: bool, where: str, why: str) -> None:
    """Raise `Differs` unless good."""
    if not good:
        raise Differs(where, why)


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
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 100 else text[:100] + "..."


# 2. Documents: strict JSON, the schema, canonical JSON, the digest


MAX_BYTES = 64 << 20
MAX_SEED = 2**53 - 1


def read_json(content: bytes) -> Any:
    """JSON in UTF-8 without a key twice, without NaN and infinities."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise BadInputError("an object has one key twice")
        return made

    def refuse(name: str) -> None:
        raise BadInputError(f"{name} is not a number of JSON")

    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"this is not JSON: {error}") from None


def canonical_json(value: Any) -> bytes:
    """RFC 8785, for what certificates hold: objects, lists, texts, whole numbers, booleans, null.

    Keys are in the order of their UTF-16 code units; texts escape what they must and nothing else.
    """
    match value:
        case None:
            return b"null"
        case bool():
            return b"true" if value else b"false"
        case int() if abs(value) <= MAX_SEED:
            return str(value).encode()
        case str():
            return encode_basestring(value).encode("utf-8")
        case list():
            return b"[" + b",".join(map(canonical_json, value)) + b"]"
        case dict():
            keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
            parts = (canonical_json(key) + b":" + canonical_json(value[key]) for key in keys)
            return b"{" + b",".join(parts) + b"}"
    raise ValueError(f"{value!r} has no place in a certificate")


def digest_of(fields: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of all fields but the digest."""
    body = {name: value for name, value in fields.items() if name != "digest"}
    return hashlib.sha256(canonical_json(body)).hexdigest()


def hidden(text: str) -> bool:
    """Whether a text has control, format, separator or surrogate characters."""
    if text.isprintable():
        return False
    return any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


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
        raise ValueError("is no exact number")
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        raise ValueError("is no exact number") from None
    if exact_string(value) != text:
        raise ValueError("is no exact number in its one form")
    return value


# The schema is a table of shapes. A shape is a dict (an object with exactly these keys), a list of
# one shape (a list of such), or a function that raises ValueError for what it refuses.

Shape = Any


def _text(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError("is no text")


def _flag(value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")


def _whole(low: int = 0, high: int = MAX_SEED) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"is no whole number from {low} to {high}")

    return shape


def _integer(value: Any) -> None:
    if type(value) is not int:
        raise ValueError("is no whole number")


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
        raise ValueError("is no number of nine significant digits in its one form")


def _maybe(inner: Shape) -> Callable[[Any], None]:
    return lambda value: None if value is None else fits(value, inner, "")


def _map(inner: Shape, keys: Shape = _text) -> Callable[[Any], None]:
    def shape(value: Any) -> None:
        if not isinstance(value, dict):
            raise ValueError("is no object")
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
        raise ValueError("has none of the forms that it may have")

    return shape


def _exact(value: Any) -> None:
    exact_number(value)


def _own_words(value: Any) -> None:
    _text(value)
    if not 1 <= len(value) <= 200 or " ".join(value.split()) != value:
        raise ValueError("is not of 1 to 200 characters with single spaces between words")


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


# fmt: off
SCHEMA: Shape = {
    "schema": _one_of("dpverify-certificate/1"),
    "inputs": {
        "mechanism": _text, "parameters": _map(_either(_COUNT, _text)),
        "rows": _whole(1, 10**12), "attributes": _whole(1, 10**9),
        "domain": _KIND, "outside": _one_of("refuse", "clip", None), "ranges?": [_RANGE],
        "columns?": [_map(lambda _: None)],
        "adjacency": _KIND, "epsilon": _exact, "delta": _exact, "projection_seed": _COUNT,
        "alpha": _exact, "draws": _whole(1, 10**9), "moment_draws": _whole(2, 10**9),
        "audit_seed": _COUNT, "purpose?": _maybe(_RANGE),
        "about?": _map(_own_words, _one_of(*_ABOUT)),
        "owner?": _map({"answer": _one_of("pass", "fail", "not_applicable"), "reason": _text}),
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
        "file": _one_of("sketch.npz"), "sha256": _HASH, "array": _one_of("steps"),
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
"""A key that ends in a question mark may be missing."""


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
                raise ValueError("is no object")
            known = {key.removesuffix("?"): part for key, part in shape.items()}
            if not {key for key in shape if not key.endswith("?")} <= value.keys() <= known.keys():
                raise ValueError(f"must have the keys {sorted(known)}")
            for key, part in value.items():
                fits(part, known[key], key)
        elif isinstance(shape, list):
            if not isinstance(value, list):
                raise ValueError("is no list")
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


BITS = 256
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
    are positive, and from the n-th on each is at most r = x²/(2n+3) times the one before; once
    r < ½ all that follow the n-th add up to at most t_n·r/(1 − r) ≤ 2·r·t_n. Subtracting from ½
    loses up to x²/(2 ln 2) < 289 bits, which are added to the precision.

    For x > 20 by Mills' ratio: integrating by parts N times,

        Φ(−x) = φ(x)/x·(1 − 1/x² + 1·3/x⁴ − … + (−1)^N (2N−1)!!/x^{2N}) + R_N,

    where the remainder R_N = (−1)^{N+1} (2N+1)!! ∫_x^∞ φ(t) t^{−2N−2} dt has the sign of the first
    term left out, and is smaller: t^{−2N−2} = t·t^{−2N−3} ≤ t·x^{−2N−3} under the integral, and
    ∫ t φ = φ(x). So the truth lies between two consecutive partial sums. The smallest term is
    below e^{−x²/2} < 2^{−288} of the sum.
    """
    bits = iv.prec
    try:
        iv.prec = bits + 320
        if x.b < 0:
            return 1 - normal_tail(-x)
        density = iv.exp(-x * x / 2) / iv.sqrt(2 * iv.pi)
        if x.a <= 20:
            if x.a < 0:  # thin around 0: Φ(−x) falls
                low, high = normal_tail(iv.mpf(x.b)), 1 - normal_tail(iv.mpf(-x.a))
                return hull(low, high)
            square, term, total, n = x * x, x, x, 0
            least = iv.mpf(2) ** (-iv.prec - 8)
            while True:
                n += 1
                term = term * square / (2 * n + 1)
                total = total + term
                ratio = square / (2 * n + 3)
                if ratio.b < 0.5 and term.b <= (total * least).b:
                    break
            rest = 2 * ratio * term
            total = hull(total, total + rest)
            return iv.mpf(1) / 2 - density * total
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
    return -below(-value)


def decimal_string(value: float | Fraction, rounding: str, digits: int = 18) -> str:
    """A double in at most `digits` significant digits, rounded to a side; E beyond 17 places."""
    written = Decimal(value)  # type: ignore[arg-type]
    if written.is_finite():
        written = Context(prec=digits, rounding=rounding).plus(written).normalize()
    return f"{written:f}" if -7 < written.adjusted() < 17 else f"{written:E}"


def read_end(where: str, text: str, rounding: str) -> Fraction:
    """The double that an end of an enclosure is, which must be written in its one form."""
    try:
        value = float(text)
    except ValueError:
        raise Differs(where, f"{_short(text)} is no number") from None
    finite = math.isfinite(value)
    require(finite and decimal_string(value, rounding) == text, where, f"{text} isn't its one form")
    return Fraction(value)


def read_ends(where: str, ends: Mapping[str, str]) -> Span:
    """Both ends of an enclosure, in order."""
    low = read_end(f"{where}.lower", ends["lower"], ROUND_FLOOR)
    high = read_end(f"{where}.upper", ends["upper"], ROUND_CEILING)
    require(low <= high, where, "has its ends the wrong way round")
    return Span(low, high)


def tight(value: Span, most: Fraction | None = None) -> Callable[[str, Any], None]:
    """Both ends are the doubles next to a number; neither is above `most`.

    Where the number is so near to a double that its own enclosure holds that double, either answer
    is taken.
    """

    def shape(where: str, stated: Any) -> None:
        require(isinstance(stated, dict) and stated.keys() == {"lower", "upper"}, where, "no ends")
        found = read_ends(where, stated)
        lows = {Fraction(below(end)) for end in value}
        highs = {Fraction(above(end)) for end in value}
        if most is not None:
            lows, highs = ({min(end, most) for end in ends} for ends in (lows, highs))
        require(found.low in lows, f"{where}.lower", f"isn't the double below {_near(value)}")
        require(found.high in highs, f"{where}.upper", f"isn't the double above {_near(value)}")

    return shape


def around(value: Span, slack: Fraction) -> Callable[[str, Any], None]:
    """Both ends hold a number, and are at most a relative `slack` away from it."""

    def shape(where: str, stated: Any) -> None:
        require(isinstance(stated, dict) and stated.keys() == {"lower", "upper"}, where, "no ends")
        found = read_ends(where, stated)
        require(found.low <= value.high, f"{where}.lower", f"is above {_near(value)}")
        require(found.high >= value.low, f"{where}.upper", f"is below {_near(value)}")
        far = slack * max(abs(value.low), abs(value.high))
        require(value.low - found.low <= far, f"{where}.lower", f"is far from {_near(value)}")
        require(found.high - value.high <= far, f"{where}.upper", f"is far from {_near(value)}")

    return shape


def nearly(value: Span, slack: Fraction) -> Callable[[str, Any], None]:
    """Both ends are within a relative slack of a number that is itself known to some doubles."""

    def shape(where: str, stated: Any) -> None:
        require(isinstance(stated, dict) and stated.keys() == {"lower", "upper"}, where, "no ends")
        for end in read_ends(where, stated):
            far = abs(end - value.low) > slack * abs(value.low)
            require(not far, where, f"is far from {_near(value)}")

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
            (
                (one + turn * 0x9E3779B97F4A7C15) % WORD,
                (two + turn * 0xBB67AE8584CAA73B) % WORD,
            )
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
    """

    def __init__(
        self,
        name: str,
        rows: Sequence[Row],
        k: int,
        scale: Fraction,
        pair: Fraction,
        diagonal: Fraction,
        common: Fraction = Fraction(0),
    ) -> None:
        self.name, self.rows, self.k, self.scale = name, rows, k, scale
        self.pair, self.diagonal, self.common = pair, diagonal, common
        self.p = len(rows)
        self.factors: tuple[list[int], list[Row]] | None = None  # of the FJLT: D and Q

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


def _rounded_moments(scale: int) -> tuple[Fraction, Fraction]:
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
    require(k % repetitions == 0, where, f"is no multiple of {repetitions}")
    width = k // repetitions
    parts = [oporp(p, width, word) for word in Words(seed, "repeated oporp").words(repetitions)]
    rows = [
        {n * width + c: v for n, part in enumerate(parts) for c, v in part.rows[place].items()}
        for place in range(p)
    ]
    share = Fraction(1, repetitions)
    return Matrix("repeated oporp", rows, k, share, parts[0].pair * share, Fraction(0))


def sjlt(p: int, k: int, seed: int, sparsity: int, construction: str, independence: int) -> Matrix:
    """S signs in each row: one in each of s blocks, or in s of all columns, or by hashing."""
    s, rng, where = sparsity, Words(seed, "sjlt"), "inputs.parameters"
    require(construction == "graph" or k % s == 0, where, "k is no multiple of the sparsity")
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
    matrix = Matrix(
        "fjlt", rows, k, 1 / (k * order * second), (1 + excess) / k, (2 + excess) / k, excess / k
    )
    matrix.factors = flips, mixing
    return matrix


def larger_than_norm(gram: Sequence[Sequence[int]], bound: Fraction) -> bool:
    """Whether bound² is above the largest eigenvalue of a Gram matrix, with proof either way.

    Elimination without exchange of rows keeps the inertia: bound²·I − G is positive definite
    exactly if all pivots are positive, and a negative pivot shows a negative eigenvalue
    (Sylvester).
    """
    if len(gram) > 64:
        raise Left("the spectral norm of a projection with more than 64 rows and columns")
    square = bound**2
    rows = [
        [number(square * (a == b) - value) for b, value in enumerate(line)]
        for a, line in enumerate(gram)
    ]
    while rows:
        (pivot, *first), *others = rows
        if not pivot.a > 0:
            if pivot.b < 0:
                return False
            raise Left("a bound that is too near to the spectral norm")
        rows = [
            [
                value - line[0] * above_ / pivot
                for value, above_ in zip(line[1:], first, strict=True)
            ]
            for line in others
        ]
    return True


# 6. Privacy curves


TIGHT = Fraction(1, 10**14)
"""Relative width to which dpverify evaluates a closed form before its ends become doubles."""
_TINY = Fraction(5e-324)


def closed_form(value: Span) -> Callable[[str, Any], None]:
    """The enclosure of a closed form: tight but for a relative 10⁻¹⁴."""
    return around(value, TIGHT + Fraction(1, 2**51))


class Curve:
    """A privacy curve δ(ε).

    `delta` encloses it, `delta_ends` and `epsilon_ends` say what the certificate's ends must be.
    `false_rate` is P[L ≥ t] under the second of the worst pair's laws, in doubles.
    """

    slack: ClassVar[float] = 1e-9  # by which the threshold of an attacker may be off

    def delta(self, epsilon: Fraction) -> Span:
        """Encloses δ(ε)."""
        raise NotImplementedError

    def delta_ends(self, epsilon: Fraction) -> Callable[[str, Any], None]:
        """What the ends of δ(ε) must be."""
        value = self.delta(epsilon)
        return exactly(value.low) if value.low == value.high else closed_form(value)

    def epsilon(self, delta: Fraction) -> Span:
        """Encloses ε(δ), where there is a closed form."""
        raise NotImplementedError

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        """What the ends of ε(δ) must be."""
        value = self.epsilon(delta)
        return exactly(value.low) if value.low == value.high else closed_form(value)

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
            require(not wide, where, "is too wide")

        return shape

    def rates(self, threshold: float) -> tuple[float, float]:
        """P[L ≥ threshold] under both laws of the worst pair, in doubles, for planning."""
        raise NotImplementedError

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
            return lambda where, stated: same(
                where, stated, {"lower": "0", "upper": "4.94065645841246545E-324"}
            )
        return closed_form(value)

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        return self.root_ends(delta)

    def rates(self, threshold: float) -> tuple[float, float]:
        mu = float(self.square) ** 0.5
        own, other = (side * mu / 2 - threshold / mu for side in (1, -1))
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

    def rates(self, threshold: float) -> tuple[float, float]:
        epsilon = above(root_of(self.square).high)
        p = 1 / (1 + math.exp(-min(epsilon, 700.0)))
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

    def epsilon_ends(self, delta: Fraction) -> Callable[[str, Any], None]:
        return exactly(self.most) if delta == 0 else self.root_ends(delta)

    slack: ClassVar[float] = 2.0**-12  # of ε₀: the proposal is made on a lattice

    def rates(self, threshold: float) -> tuple[float, float]:
        """From δ alone, and by a difference quotient of it.

        δ′(t) = −e^t·Q[L ≥ t] and P[L ≥ t] = δ(t) + e^t·Q[L ≥ t] for t ≥ 0; and the law of −L under
        the second law is that of L under the first.
        """
        t, most, step = Fraction(abs(threshold)), self.most, self.most / 2**40
        if t > most:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        t = min(max(t, step), most - step)
        slope = float((self.delta(t - step).low - self.delta(t + step).low) / (2 * step))
        other = math.exp(-float(t)) * slope
        own = float(self.delta(t).low) + slope
        return (own, other) if threshold >= 0 else (1 - other, 1 - own)


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

    def rates(self, threshold: float) -> tuple[float, float]:
        """A loss of j steps counts where the double j·s reaches the threshold."""
        step = above(self.step().high)
        if step == 0:
            return (1.0, 1.0) if threshold <= 0 else (0.0, 0.0)
        j = math.ceil(max(min(threshold / step, self.reach + 1), -self.reach))
        while j <= self.reach and j * step < threshold:
            j += 1
        while j > -self.reach and (j - 1) * step >= threshold:
            j -= 1
        own, other = self.tails()
        if j > 0:
            return _rate(own, j), _rate(other, j)
        return 1 - _rate(other, 1 - j), 1 - _rate(own, 1 - j)


def _rate(tail: Sequence[Interval], j: int) -> float:
    return float(span(tail[j]).low) if j < len(tail) else 0.0


@dataclass(frozen=True)
class StepCurve(LatticeCurve):
    """Each of m positions loses +s, −s or 0, with probability k, o and the rest; s = ln(k/o)."""

    keep: Fraction
    other: Fraction
    positions: int

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
        return _tails(self.keep, self.other, self.positions, iv.prec)


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

    def at(self, differ: Fraction) -> StepCurve:
        """The curve of one probability."""
        return StepCurve(self.keep * differ, self.other * differ, self.positions)

    def delta(self, epsilon: Fraction) -> Span:
        low = self.at(self.differ.low).delta(epsilon).low if self.differ.low else Fraction(0)
        return Span(low, self.at(self.differ.high).delta(epsilon).high)

    def epsilon(self, delta: Fraction) -> Span:
        low = self.at(self.differ.low).epsilon(delta).low if self.differ.low else Fraction(0)
        return Span(low, self.at(self.differ.high).epsilon(delta).high)

    def rates(self, threshold: float) -> tuple[float, float]:
        return self.at(self.differ.high).rates(threshold)


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

    def rates(self, threshold: float) -> tuple[float, float]:
        wide, half = 1 + float(self.gamma), self.rows / 2 * math.log1p(self.gamma)
        t, u = (wide / (wide - 1) * (side * threshold + half) for side in (1, -1))
        wider = _chi_square(self.rows, t / wide), _chi_square(self.rows, t)
        narrower = 1 - _chi_square(self.rows, u), 1 - _chi_square(self.rows, u / wide)
        odds = math.exp(min(threshold, 700.0))
        better = wider[0] - odds * wider[1] >= narrower[0] - odds * narrower[1]
        return wider if better else narrower


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


def unit_of(adjacency: Kind) -> str:
    """The unit of privacy in words."""
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


_K = {"k": Parameter("whole")}
_NOISE = {"noise": _choice("gaussian", "laplace")}
_LADDER = {"ladder": _choice("smooth", "steepest")}
_REPEATED = {"repetitions": Parameter("whole", 1)}
_NUMERIC = ("attribute", "l1-ball", "record", "items"), ("box", "ball", "sets")
_BOUNDED, _ALL_SIGNS = (
    (("attribute", "l1-ball"), ("box",)),
    (("attribute", "l1-ball", "record"), ("box",)),
)
_HASHES = {
    **_K,
    "buckets": Parameter("whole", low=2),
    "reading": _choice("over the draw", "realised"),
}
_SETS = ("items",), ("sets",)

FAMILIES: Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], Mapping[str, Parameter]]] = {
    "raw-data-g-opt": (_NUMERIC, _NOISE),
    "dp-rp-g": (_NUMERIC, _K),
    "dp-rp-g-opt": (_NUMERIC, _K),
    "dp-rp-l": (_NUMERIC, _K),
    "dp-rp-g-opt-b": (_NUMERIC, _K | _NOISE),
    "dp-oporp": (_NUMERIC, _K | _NOISE),
    "private-projection": (
        _NUMERIC,
        _K
        | {
            "projection": _choice(
                "gaussian", "rademacher", "achlioptas", "very-sparse", "uniform", "dks"
            ),
            "copies": Parameter("whole", 4),
            "sigma": _choice(
                "analytic", "kenthapadi", "li", "classical", "kenthapadi-any", "li-any"
            ),
        },
    ),
    "sjlt": (
        _NUMERIC,
        _K
        | {
            "sparsity": Parameter("whole", high="k"),
            "construction": _choice("block", "graph"),
            "independence": Parameter("whole", 0, low=4, off=0),
        }
        | _NOISE,
    ),
    "fjlt": (
        _NUMERIC,
        _K
        | {"density": Parameter("number", low=0, high=1), "at": _choice("output", "input")}
        | _NOISE,
    ),
    "dp-signrp-rr": (
        _ALL_SIGNS,
        _K | {"least_norm": Parameter("number", Fraction(0), low=0, off=0)},
    ),
    "dp-signrp-rr-smooth": (
        _BOUNDED,
        _K | {"projection": _choice("rademacher", "gaussian")} | _LADDER,
    ),
    "dp-signoporp-rr": (_ALL_SIGNS, _K | _REPEATED),
    "dp-signoporp-rr-smooth": (_BOUNDED, _K | _REPEATED | _LADDER),
    "rr-min-hash": (_SETS, _HASHES),
    "noisy-min-hash": (_SETS, _HASHES),
    "jl-graph-cuts": ((("edge",), ("graph",)), {"sketch_rows": Parameter("whole")}),
    "jl-covariance": ((("row",), ("ball",)), {"sketch_rows": Parameter("whole", low=4)}),
    "randomized-response": ((("bit-flip", "record"), ("box",)), {}),
    "noise-addition": ((("bit-flip", "attribute"), ("box",)), {}),
}
_UNSEEDED = (
    "raw-data-g-opt",
    "jl-graph-cuts",
    "jl-covariance",
    "randomized-response",
    "noise-addition",
)


def _parameters(name: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, defaults filled in."""
    known = FAMILIES[name][1]
    where = "inputs.parameters"
    require(set(stated) <= set(known), where, f"has a parameter that {name} doesn't take")
    values: dict[str, Any] = {}
    for key, rule in known.items():
        place, value = f"{where}.{key}", stated.get(key, rule.default)
        require(value is not None, place, "is missing")
        if rule.kind == "choice":
            require(value in rule.choices, place, f"is none of {', '.join(rule.choices)}")
        elif rule.kind == "whole":
            most = values.get(rule.high, rule.high) if isinstance(rule.high, str) else rule.high
            good = type(value) is int
            good = good and (value == rule.off or rule.low <= value <= (most or value))
            require(good, place, "isn't a whole number in its range")
        else:
            if key in stated:
                try:
                    value = exact_number(value)
                except ValueError:
                    raise Differs(place, "is no exact number in its one form") from None
            good = value == rule.off or (rule.low < value <= (rule.high or value))
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


def read_inputs(stated: Mapping[str, Any]) -> Inputs:
    """The inputs, in the one form that they have."""
    if stated.get("columns"):
        raise Left("declared columns")
    name = stated["mechanism"]
    require(name in FAMILIES, "inputs.mechanism", f"{_short(name)} is unknown")
    (adjacencies, domains), _ = FAMILIES[name]
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
    seed = stated["projection_seed"]
    require(seed == 0 or name not in _UNSEEDED, "inputs.projection_seed", "isn't 0 without a use")
    ranges = stated.get("ranges", [])
    if ranges:
        require(len(ranges) == stated["attributes"], "inputs.ranges", "must be one an attribute")
        unit = domain.name == "box" and domain["low"] == 0 and domain["high"] == 1
        require(unit, "inputs.domain", "must be [0, 1] where there are ranges")
        for place, one in enumerate(ranges):
            good = exact_number(one["low"]) < exact_number(one["high"])
            require(good, f"inputs.ranges[{place}]", "has no width")
    if purpose := stated.get("purpose"):
        good = exact_number(purpose["low"]) < exact_number(purpose["high"])
        require(good, "inputs.purpose", "has no width")
    inputs = Inputs(
        name, _parameters(name, stated["parameters"]), stated["rows"], stated["attributes"],
        domain, outside == "clip", adjacency, epsilon, delta, seed, alpha,
        stated["draws"], stated["moment_draws"], stated["audit_seed"], bool(ranges),
    )  # fmt: skip
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
    curve: Curve
    claim: Claim
    shape: list[int]
    dtype: str
    step: Span | None = None
    within: Callable[[int], Interval] | None = None

    def possible(self, row: bytes) -> bool:
        """Whether it can release this row of bytes."""
        del row
        return True


def _recorded(facts: Any, section: str, name: str) -> Any:
    where = f"derived.facts.{section}"
    good = isinstance(facts.get(section), dict) and name in facts[section]
    require(good, where, f"has no {name}")
    return facts[section][name]


def _double(where: str, text: Any, low: Fraction) -> Fraction:
    """A recorded scale of noise: the exact value of a double in its range."""
    try:
        value = exact_number(text)
    except ValueError as error:
        raise Differs(where, str(error)) from None
    require(low <= value <= 2**44, where, "is out of its range")
    require(Fraction(float(value)) == value, where, "is no double")
    return value


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

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
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
        self.spectral = Fraction(0)  # set below where a bound needs it
        spectral_fact: dict[str, Any] = {}
        if adjacency.name == "record":
            stated = _recorded(facts, "projection", "integer_spectral_norm")
            spectral_fact["integer_spectral_norm"] = self._spectral_norm(stated)
        elif adjacency.name == "items":
            self._items_norm(_recorded(facts, "sensitivity", "l2_squared_in_steps"))
        self.l1, self.l2 = self._distance(1), self._distance(2)
        require(self.l2 > 0, "inputs.projection_seed", "draws a projection of zeros")
        reach = self.grid.reach(domain)
        largest = reach * self.matrix.largest_column()
        require(largest < 2**53, "inputs.domain", "is too wide for exact sums")
        noise = "derived.facts.noise.scale_in_steps"
        text = _recorded(facts, "noise", "scale_in_steps")
        self.scale = _double(noise, text, Fraction(1, 64) if self.laplace else Fraction(1))
        if not self.at_input:
            self.within = laplace_within(self.scale) if self.laplace else normal_within(self.scale)
        self.unit = self.grid.step**2 * self.matrix.scale  # square of a released step
        self.noise_unit = self.grid.step**2 if self.at_input else self.unit
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
        self.step = root_of(self.unit)

    # How far apart neighbours are

    def _spectral_norm(self, stated: Any) -> Callable[[str, Any], None]:
        """Take the recorded upper end for ‖P‖₂, once it is proven to be a bound, and a near one."""
        where = "derived.facts.projection.integer_spectral_norm"
        fits_ends = isinstance(stated, dict) and stated.keys() == {"lower", "upper"}
        require(fits_ends, where, "has no ends")
        found, name = read_ends(where, stated), self.before.name
        self.spectral = found.high
        if name in ("oporp", "identity"):
            most = max(_bins(self.before.p, self.before.k)) if name == "oporp" else 1
            return tight(root_of(Fraction(most)))
        wide = found.high - found.low > found.high * Fraction(self.before.k + 1, 10**12)
        require(not wide, where, "is too wide")
        gram = self.before.gram()
        require(larger_than_norm(gram, found.high), f"{where}.upper", "is below the norm")
        require(not larger_than_norm(gram, found.low), f"{where}.lower", "is above the norm")
        return lambda *_: None

    def _items_norm(self, text: Any) -> None:
        """The same where the norm isn't recorded, but what follows from it may be."""
        where, count = "derived.facts.sensitivity.l2_squared_in_steps", self._changes()
        name, gram = self.before.name, self.before.gram()
        if name in ("oporp", "identity"):
            most = max(_bins(self.before.p, self.before.k)) if name == "oporp" else 1
            self.spectral = Fraction(above(root_of(Fraction(most)).high))
            return
        try:
            square = Fraction(text)
        except (ValueError, TypeError, ZeroDivisionError):
            raise Differs(where, "is no number") from None
        if square == count**2 * self.before.row_norm(2):
            # The other bound, n rows; the norm's is then no smaller.
            self.spectral = Fraction(above(root_of(square / count).high)) * (1 + Fraction(1, 2**40))
            low = self.spectral * (1 - Fraction(1, 2**30))
            require(not larger_than_norm(gram, low), where, "is above what the norm proves")
            return
        root = root_of(square / count)
        require(root.low == root.high, where, "comes from no double")
        self.spectral = root.low
        near = not larger_than_norm(gram, root.low * (1 - Fraction(1, 10**9)))
        require(larger_than_norm(gram, root.low) and near, where, "comes from no bound of the norm")

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

    def _least_noise(self, where: str) -> None:
        """Whether the recorded scale is what the theorem asks for."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta
        if self.laplace and (delta == 0 or isinstance(self.curve, PureCurve)):
            due = above(root_of(self.l1 / epsilon**2).high)
            require(self.scale == Fraction(due), where, "isn't the least")
            return
        level = self.inputs.parameters.get("sigma", "analytic")
        if self.inputs.mechanism == "dp-rp-g":
            level = "li"
        if level != "analytic":
            due_span = _published_level(level, epsilon, delta, self.l2, self._any_projection(level))
            if due_span is None:
                raise Differs("inputs.parameters.sigma", "is of a theorem that says nothing here")
            low, high = Fraction(above(due_span.low)), Fraction(above(due_span.high))
            near = low * (1 - TIGHT) <= self.scale <= high * (1 + TIGHT)
            require(near, where, "isn't what its theorem asks for")
            return
        require(delta > 0, "inputs.delta", "must be positive with Gaussian noise")
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

    def _published(self) -> dict[str, Any]:
        """What published theorems ask for, for the ε that this curve has at δ = 10⁻⁶."""
        delta, square = Fraction(1, 10**6), self.l2 * self.noise_unit
        epsilon = root_of_curve(self.curve, delta)
        if epsilon.high == 0:
            return {}
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
        found = {}
        for name, (level, size) in levels.items():
            value = _published_level(level, epsilon.high, delta, square, size)
            if value is not None:
                # ε itself is known to a few doubles alone.
                found[f"sigma_by_{name}"] = nearly(value, Fraction(1, 2**46))
        return found


def _slope(one: tuple[int, int], other: tuple[int, int]) -> Fraction:
    return Fraction(other[1] - one[1], other[0] - one[0])


@lru_cache(maxsize=256)
def root_of_curve(curve: Curve, delta: Fraction) -> Span:
    """ε(δ) to a relative 2⁻⁴⁸; 0 where δ(0) ≤ δ.

    The rule of false position on ln δ proposes a double, and δ on both sides of it is the proof.
    """
    if curve.delta(Fraction(0)).high <= delta:
        return Span(Fraction(0), Fraction(0))

    def excess(epsilon: float) -> float:
        return math.log(curve.delta(Fraction(epsilon)).high / delta)

    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    above_, below_, at, side = excess(low), excess(high), high, 0
    for _ in range(100):
        now = excess(at)
        if abs(now) <= 1e-14:
            break
        if now > 0:  # an end that stays twice counts half (the Illinois rule)
            below_ /= 1 + (side > 0)
            low, above_, side = at, now, 1
        else:
            above_ /= 1 + (side < 0)
            high, below_, side = at, now, -1
        at = (low * below_ - high * above_) / (below_ - above_)
    span_ = Span(*(Fraction(at) * (1 + Fraction(sign, 2**48)) for sign in (-1, 1)))
    if not curve.delta(span_.low).low >= delta >= curve.delta(span_.high).high:
        raise Left("a root of a curve")
    return span_


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

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
        domain, adjacency, rows = inputs.domain, inputs.adjacency, inputs.rows
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
        self.step = Span(unit_, unit_)


COIN = WORD
MAX_KEEP = COIN - (1 << 24)
"""Most of the 2⁶⁴ words on which a coin keeps."""


def _largest_keep(
    where: str, keep: int, pure: int, holds: Callable[[int], bool], exact: bool
) -> None:
    """Whether a recorded coin is the largest that the target allows: from the pure one's on."""
    require(pure <= keep <= MAX_KEEP, where, "isn't a coin of this target")
    require(holds(keep), where, "keeps more than the target allows")
    if keep < MAX_KEEP:
        more = keep + 1 if exact else keep + max(1, (MAX_KEEP - pure) >> 38)
        require(more > MAX_KEEP or not holds(more), where, "keeps less than the target allows")


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

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
        domain = inputs.domain
        unit = domain["low"] == 0 and domain["high"] == 1
        require(unit, "inputs.domain", "must be [0, 1]: bits")
        m = 1 if inputs.adjacency.name == "bit-flip" else inputs.p
        text, where = (
            _recorded(facts, "coins", "flip_numerator"),
            "derived.facts.coins.flip_numerator",
        )
        good = isinstance(text, str) and re.fullmatch("[0-9]{1,20}", text) is not None
        require(good and str(int(text)) == text, where, "is no whole number")
        keep = COIN - int(text)
        require(COIN < 2 * keep <= 2 * MAX_KEEP, where, "isn't in [2**24, 2**63)")

        def holds(parts: int) -> bool:
            curve = _coins(parts, 2, m)
            return Fraction(above(curve.delta(inputs.epsilon).high)) <= inputs.delta

        pure = pure_keep(inputs.epsilon, m, 2)
        if inputs.delta == 0:
            require(keep == pure, where, "isn't the coin of this epsilon")
        else:
            _largest_keep(where, keep, pure, holds, exact=True)
        curve = self.curve = _coins(keep, 2, m)
        flip = Fraction(COIN - keep, COIN)
        self.facts = {
            "coins": {
                "flip_numerator": text,
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


def _coins(keep: int, values: int, positions: int, differ: Fraction = Fraction(1)) -> StepCurve:
    """The curve of answers that keep on `keep` of 2⁶⁴ words."""
    kept = Fraction(keep, COIN)
    return StepCurve(kept * differ, (1 - kept) / (values - 1) * differ, positions)


def _unused_are_zero(row: bytes, bits: int) -> bool:
    return not row[-1] & (0xFF >> (bits - 1) % 8 + 1)


def _recorded_coin(facts: Mapping[str, Any], name: str) -> int:
    """A whole number of 2⁻⁶⁴ in the section noise, as ``n/2**64``."""
    text = _recorded(facts, "noise", name)
    good = isinstance(text, str) and re.fullmatch(r"[0-9]{1,20}/2\*\*64", text) is not None
    require(good, f"derived.facts.noise.{name}", "is no coin")
    return int(text.removesuffix("/2**64"))


class SignSketch(Mechanism):
    """Signs of records @ P, each flipped by a coin that its level decides."""

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
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
        first = _recorded_coin(facts, "flip_at_level_1")
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
        self._least_flips(where, first)
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
                default=Fraction(1),
            )  # fmt: skip
            ratio = max(ratio, Fraction(COIN - first, first))
        keep = ratio / (ratio + 1)
        if self.differ is not None:
            return MixedCurve(keep, 1 - keep, self.matrix.k, doubles(self.differ))
        return StepCurve(keep, 1 - keep, self.positions)

    def _least_flips(self, where: str, first: int) -> None:
        """Whether the recorded coin is the one of this target, by the curve of N plain answers."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta
        positions = self.matrix.k if self.differ is not None else self.positions_of_draft()
        pure = pure_keep(epsilon, positions, 2)
        keep = COIN - first
        reached = Fraction(above(self.curve.delta(epsilon).high)) <= delta
        require(reached, where, "flips less than the target needs")
        if delta == 0:
            require(keep == pure, where, "isn't the coin of this epsilon")
            return

        def holds(parts: int) -> bool:
            if self.differ is None:
                curve: Curve = _coins(parts, 2, positions)
            else:
                kept = Fraction(parts, COIN)
                curve = MixedCurve(kept, 1 - kept, positions, doubles(self.differ))
            return Fraction(above(curve.delta(epsilon).high)) <= delta

        _largest_keep(where, keep, pure, holds, exact=True)

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

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
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
        parts = _recorded_coin(facts, name)
        self._least_randomness(f"derived.facts.noise.{name}", parts, drawn)
        self.curve = self._curve(parts, drawn)
        noise: dict[str, Any] = {
            name: f"{parts}/2**64",
            "loss_step": closed_form(self.curve.step()),
        }
        if self.noisy:
            q = Fraction(parts, COIN)
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

    def _least_randomness(self, where: str, parts: int, drawn: bool) -> None:
        """Whether the recorded coin or ratio is the one of this target."""
        epsilon, delta = self.inputs.epsilon, self.inputs.delta

        def holds(n: int) -> bool:
            return Fraction(above(self._curve(n, drawn).delta(epsilon).high)) <= delta

        if not self.noisy:
            require(0 < parts <= MAX_KEEP and parts * self.b >= COIN, where, "isn't a coin of this")
            pure = pure_keep(epsilon, self.k, self.b)
            if delta == 0:
                require(parts == pure, where, "isn't the coin of this epsilon")
            else:  # by forty halvings where the draw counts
                _largest_keep(where, parts, pure, holds, exact=not drawn)
            return
        share = enclosed(lambda: COIN * iv.exp(number(-epsilon / (self.k * (self.b - 1)))))
        if math.floor(share.low) != math.floor(share.high):
            raise Left("a ratio that is too near to a multiple of 2**-64")
        pure, least = max(math.floor(share.low) + 1, 1 << 24), 1 << 24
        require(
            least <= parts <= min(pure, COIN - (1 << 50)), where, "isn't a ratio of this target"
        )
        if delta == 0:
            require(parts == pure, where, "isn't the ratio of this epsilon")
            return
        require(holds(parts), where, "is too little noise for the target")
        fewer = parts - max(1, (pure - least) >> 38)
        require(fewer < least or not holds(fewer), where, "is more noise than the target needs")

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

    def __init__(self, inputs: Inputs, facts: Mapping[str, Any]) -> None:
        n, rows = inputs.p, inputs.parameters["sketch_rows"]
        require(n >= 2, "inputs.attributes", "are fewer than two vertices")
        require(inputs.delta > 0, "inputs.delta", "must be positive with normal rows")
        moved = min(Fraction(math.ceil(inputs.adjacency["weight"] * 2**20), 2**20), Fraction(1))
        finest = (2**62 - 1) // (2 * n**2 * 2**20)
        require(finest >= 1, "inputs.attributes", "are too many vertices")
        steps = min(1 << 10, 1 << (finest.bit_length() - 1))
        where, text = "derived.facts.sketch.floor", _recorded(facts, "sketch", "floor")
        try:
            w = exact_number(text)
        except ValueError as error:
            raise Differs(where, str(error)) from None
        require((w * steps).denominator == 1 and 0 < w < n, where, "isn't on its grid")

        def at(floor: Fraction) -> NormalRowsCurve:
            return NormalRowsCurve(rows, 2 * moved * (1 - floor / n) / floor)

        curve = self.curve = at(w)
        require(curve.delta(inputs.epsilon).high <= inputs.delta, where, "is too low")
        lower = w - Fraction(1, steps)
        if lower > 0:
            more = at(lower).delta(inputs.epsilon).low > inputs.delta
            require(more, where, "is higher than the target needs")
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
                "floor": text,
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
    proven = Fraction(derived["guarantee"]["delta"]["upper"])
    where = "derived.guarantee.delta.upper"
    require(Fraction(float(proven)) <= inputs.delta, where, "misses the target")
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
            "shown": lambda where_, stated, e=epsilon: _shown(where_, stated, limits, e),
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


def _shown(
    where: str, stated: str, limits: Sequence[tuple[float, float]], epsilon: Fraction
) -> None:
    """Nine digits, rounded down, of max(p₋ − e^ε·q₊), less 10⁻¹² in doubles."""
    ratio = math.exp(min(float(epsilon), 700.0)) * (1 + 1e-12)
    due = max([p - ratio * q * (1 + 1e-12) - 1e-12 for p, q in limits], default=0.0)
    slack = 1e-11 * max([1.0, *(ratio * q for p, q in limits if p > ratio * q)])
    try:
        found = Decimal(stated)
    except ArithmeticError:
        found = Decimal("nan")
    good = found.is_finite() and _nine_down(found) == stated
    require(good, where, "isn't in its one form")
    unit = 10.0 ** (found.adjusted() - 8) if found else 0.0
    near = max(due, 0.0) - slack - unit <= float(found) <= max(due, 0.0) + slack
    require(near, where, f"is {stated}, and not {max(due, 0.0):.9g}")


def _nine_down(value: Decimal) -> str:
    """Nine digits, rounded down."""
    written = Context(prec=9, rounding=ROUND_FLOOR).plus(value).normalize()
    return f"{written:f}" if -7 < written.adjusted() < 17 else f"{written:E}"


@lru_cache(maxsize=65536)
def clopper_pearson(successes: int, draws: int, level: float) -> float:
    """Lower limit of a proportion: the largest p with P[Bin(draws, p) ≥ successes] ≤ level.

    Proposed in doubles and proven to be that within a relative 10⁻¹².
    """
    if successes == 0:
        return 0.0
    goal = math.log(level)
    choose = math.log(math.comb(draws, successes))

    def excess(p: float) -> float:
        """Log of the tail, less that of the level; the sum of ratios to its first term."""
        ratio, total, j = 1.0, 1.0, successes
        while ratio > 1e-18 * total and j < draws:
            ratio *= (draws - j) * p / ((j + 1) * (1 - p))
            total, j = total + ratio, j + 1
        own = successes * math.log(p)
        own += (draws - successes) * math.log1p(-p) if p < 1 else 0.0
        return choose + own + math.log(total) - goal

    low, high = 0.0, successes / draws
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    if successes == draws:  # exactly level^(1/draws)
        low = math.exp(goal / draws)
    proven = binomial_tail(low * (1 - 1e-12), successes, draws).high <= level
    near = low * (1 + 1e-12) >= 1 or binomial_tail(low * (1 + 1e-12), successes, draws).low >= level
    if not (proven and near):
        raise Left("a limit of Clopper and Pearson")
    return low


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
    size = number(math.comb(draws, successes))

    def value() -> Interval:
        at = number(Fraction(hit, whole))
        first = size * at**successes * (1 - at) ** (draws - successes)
        return first * iv.mpf([total, most]) / 2**200

    return enclosed(value, Fraction(1, 2**60))


def check_attacker(mechanism: Mechanism, derived: Mapping[str, Any]) -> None:
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
            raise Differs(f"{at}.threshold", "is no number") from None
        require(repr(float(s)) == one["threshold"], f"{at}.threshold", "isn't its one form")
        rate, delta = Fraction(text), curve.delta(abs(s))
        values = [_attacker_bound(s, rate, end) for end in delta]
        value = Span(min(values[0].low, Fraction(1)), min(values[1].high, Fraction(1)))
        # δ is known to a relative 10⁻¹⁴, and its part of the bound is at most e^|s|δ.
        share: Fraction = max(iv_high(s), Fraction(1)) * delta.high / max(value.high, _TINY)
        slack = (1 + share) * (TIGHT + Fraction(1, 2**50))
        around(value, slack)(f"{at}.true_positive_rate", one["true_positive_rate"])
        high = read_ends(at, one["true_positive_rate"]).high
        require(high <= 1, f"{at}.true_positive_rate.upper", "is above 1")
        near = curve.quantile(float(rate))
        good = abs(float(s) - near) <= curve.slack * max(1.0, abs(near))
        require(good, f"{at}.threshold", f"isn't the quantile {near!r}")


@lru_cache(maxsize=4096)
def iv_high(s: Fraction) -> Fraction:
    """An upper bound of e^s."""
    return enclosed(lambda: iv.exp(number(s))).high


@lru_cache(maxsize=4096)
def _attacker_bound(s: Fraction, rate: Fraction, delta: Fraction) -> Span:
    def value() -> Interval:
        ratio = iv.exp(number(s))
        if s >= 0:
            return ratio * number(rate) + number(delta)
        return 1 - ratio * number(1 - rate - delta)

    return enclosed(value)


EVENTS = ("tail", "reach", "middle")


def check_attack(inputs: Inputs, derived: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
    """What of the attack follows from the inputs alone: pairs, events, orders and levels."""
    attack, where = derived["white_box"], "derived.white_box"
    pairs = evidence["white_box"]
    require(bool(pairs), "evidence.white_box", "has no pair")
    level = float(inputs.alpha) * 39.0 / 40.0 * (1 - 1e-12)
    total = 6 * len(pairs) - 1.0
    total += 38 * total
    findings = []
    for number_, pair in enumerate(pairs):
        good = len(pair["counts"]) == 6
        require(good, f"evidence.white_box[{number_}].counts", "must be of six events")
        for place in range(6):
            weight = 38 * (6 * len(pairs) - 1.0) if (number_, place) == (0, 0) else 1.0
            share = level * weight / total * (1 - 1e-12)
            findings.append(
                {
                    "pair": pair["pair"],
                    "event": EVENTS[place % 3],
                    "order": (
                        "record against neighbour" if place < 3 else "neighbour against record"
                    ),
                    "level": decimal_string(share, ROUND_CEILING, 9),
                }
            )
    same(f"{where}.tests", attack["tests"], len(findings))
    require(len(attack["findings"]) == len(findings), f"{where}.findings", "are too few or many")
    for place, (stated, due) in enumerate(zip(attack["findings"], findings, strict=True)):
        same(f"{where}.findings[{place}]", {key: stated[key] for key in due}, due)
    bounds = [finding["epsilon_lower"] for finding in attack["findings"]]
    same(f"{where}.epsilon_lower", attack["epsilon_lower"], max(bounds, key=float))
    refuted = any(finding["refuted_at"] is not None for finding in attack["findings"])
    blind = attack["power"]["noise_scale"] is None and attack["power"]["reach"] is None
    verdict = "violation" if refuted else "inconclusive" if blind else "no_violation_found"
    same(f"{where}.verdict", attack["verdict"], verdict)


def check_counts(inputs: Inputs, evidence: Mapping[str, Any]) -> None:
    """That the evidence has the form that the inputs lay down."""
    draws = evidence["draws"]
    same("evidence.draws", draws, inputs.draws)
    require(len(evidence["roc"]) == 17, "evidence.roc", "must have 17 thresholds")
    counts = [count for pair in evidence["white_box"] for count in pair["counts"]]
    for count in [*counts, *evidence["roc"]]:
        require(max(count.values()) <= draws, "evidence", "has more hits than draws")
    for place, moments in enumerate(evidence["moments"]):
        total = moments["draws"] + moments["undefined"]
        same(f"evidence.moments[{place}].draws", total, inputs.moment_draws)


# 10. Hazards


def _written(value: Decimal, largest: int = 15) -> str:
    """A number for people."""
    if value.is_infinite():
        return "∞" if value > 0 else "−∞"
    if value.is_nan():
        return "undefined"
    if value == 0:
        return "0"
    sign, value = "−" if value < 0 else "", abs(value)

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
    owner = stated.get("owner", {})
    known = {hazard.id for hazard in HAZARDS if hazard.owners}
    require(owner.keys() <= known, "inputs.owner", "answers what isn't the owner's to answer")
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


# 11. The released file, and the signature


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


def check_file(path: Path, release: Mapping[str, Any], mechanism: Mechanism) -> bytes:
    """The released file: its SHA-256, its container byte for byte, and what its numbers may be.

    Returns the numbers.
    """
    where = "released file"
    require(stat.S_ISREG(path.lstat().st_mode), where, "is a link or a device")
    content = path.read_bytes()
    own = hashlib.sha256(content).hexdigest() == release["sha256"]
    require(own, where, "has another SHA-256 than the one that was certified")
    header, item = npy_header(mechanism.shape, mechanism.dtype), _TYPES[mechanism.dtype][1]
    size = len(header) + item * math.prod(mechanism.shape)
    opening, closing = zip_parts(0, 0, 0)
    packed = len(content) - len(opening) - len(closing)
    require(0 < packed <= size + size // 1000 + 100, where, "holds more than the array, or less")
    deflated = content[len(opening) : len(opening) + packed]
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        raw = inflate.decompress(deflated, size + 1)
    except zlib.error as error:
        raise Differs(where, f"can't be unpacked: {error}") from None
    whole = inflate.eof and not inflate.unused_data and len(raw) == size
    require(whole and raw.startswith(header), where, "holds something else than the array")
    around_ = zip_parts(zlib.crc32(raw), size, packed)
    framed = content == around_[0] + deflated + around_[1]
    require(framed, where, "has a container that isn't as certify writes it")
    row = item * math.prod(mechanism.shape[1:])
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
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInputError(f"{path} is no public key in PEM: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInputError(f"{path} is no Ed25519 key")
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
    require(path.is_file() and not path.is_symlink(), where, f"there is no {path.name}")
    content = path.read_bytes()
    try:
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
        raise Differs(where, f"{path.name} is no DSSE envelope") from None
    good = standard and canonical_json(envelope) + b"\n" == content
    require(good, where, f"{path.name} isn't in its one form")
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    own = [one for one in envelope["signatures"] if one["keyid"] == name]
    require(bool(own), where, "there is none by this key")
    for one in own:
        try:
            key.verify(base64.b64decode(one["sig"]), signed)
        except InvalidSignature:
            raise Differs(where, "doesn't hold") from None
    require(envelope["payloadType"] == PAYLOAD_TYPE, where, "is over another type of payload")
    release = fields["release"]
    require(release is not None, where, "is over nothing that was released")
    subject = [{"name": release["file"], "digest": {"sha256": release["sha256"]}}]
    report, hashed = path.with_name("report.html"), None
    if report.is_file():
        hashed = hashlib.sha256(report.read_bytes()).hexdigest()
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
    require(payload == canonical_json(due), where, "is over another certificate, file or report")
    return f"Ed25519 over DSSE, by {name[:16]}"


# 12. The whole check


_MECHANISMS: dict[str, Callable[[Inputs, Mapping[str, Any]], Mechanism]] = {
    "noise-addition": NoiseAddition,
    "randomized-response": RandomizedResponse,
    "jl-graph-cuts": CutSketch,
    "rr-min-hash": MinHash,
    "noisy-min-hash": MinHash,
    **dict.fromkeys(
        (
            *("raw-data-g-opt", "dp-rp-g", "dp-rp-g-opt", "dp-rp-l", "dp-rp-g-opt-b"),
            *("dp-oporp", "private-projection", "sjlt", "fjlt"),
        ),
        LinearSketch,
    ),
    **dict.fromkeys(
        (
            *("dp-signrp-rr", "dp-signrp-rr-smooth"),
            *("dp-signoporp-rr", "dp-signoporp-rr-smooth"),
        ),
        SignSketch,
    ),
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
            self.lines.append(Line(name, "not checked", f"this program can't check {error}"))
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
    make = _MECHANISMS.get(name)
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

    def digest() -> None:
        own = digest_of(fields) == fields["digest"]
        require(own, "digest", "the document was changed after it was written")

    checker.run("digest", "SHA-256 of the canonical JSON", digest)
    stated, derived, evidence = fields["inputs"], fields["derived"], fields["evidence"]
    inputs = checker.run("inputs", "in range, and in their one form", lambda: read_inputs(stated))
    if inputs is None:
        return checker.lines
    checker.add("replay", "left out", "nothing is drawn again: the counts are as recorded")

    def made() -> Mechanism:
        mechanism = _made(inputs.mechanism, json.dumps([stated, derived["facts"]]))
        same("derived.protects", derived["protects"], unit_of(inputs.adjacency))
        same("derived.facts", derived["facts"], mechanism.facts)
        return mechanism

    recomputed = "recomputed from the inputs, in intervals"
    mechanism = checker.run("projection and sensitivity", recomputed, made)
    form = "of the form that the inputs lay down"
    checker.run("evidence", form, lambda: check_counts(inputs, evidence))
    if mechanism is None:
        for name in ("guarantee", "curve", "attacker"):
            checker.add(name, "not checked", "without the mechanism")
    else:
        checker.run("guarantee", recomputed, lambda: check_guarantee(inputs, mechanism, derived))
        both = f"{recomputed}, and from the counts"
        checker.run("curve", both, lambda: check_curve(inputs, mechanism, derived, evidence))
        checker.run("attacker", recomputed, lambda: check_attacker(mechanism, derived))
    levels = "pairs, events, levels and verdict"
    checker.run("attack", levels, lambda: check_attack(inputs, derived, evidence))
    checker.add("power", "not checked", "thresholds, bounds of single events, ceiling and power")
    checker.add("estimators", "not checked", "formulas, verdicts, predictions, usefulness, sizes")
    rules = "answered again by their rules"
    checker.run(
        "checklist", rules, lambda: check_hazards(inputs, stated, derived, fields["checklist"])
    )
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
        checker.add("release", "not checked", "shape, type and step, without the mechanism")
        if file is not None and file.exists():
            own = hashlib.sha256(file.read_bytes()).hexdigest() == release["sha256"]
            checker.add("released file", "not checked" if own else "differs", "SHA-256 alone")
        return

    def terms() -> None:
        same("release.shape", release["shape"], mechanism.shape)
        same("release.dtype", release["dtype"], mechanism.dtype)
        step = mechanism.step
        same("release.step", release["step"], None if step is None else tight(step))

    checker.run("release", "shape, type and step", terms)
    if file is None or not file.exists():
        checker.add("released file", "not checked", "it isn't there")
        return
    whole = "SHA-256, container byte for byte, possible values"
    numbers = checker.run("released file", whole, lambda: check_file(file, release, mechanism))
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
        content = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path} can't be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise BadInputError(f"{path} is larger than {MAX_BYTES} bytes")
    fields = read_json(content)
    if not isinstance(fields, dict):
        raise BadInputError(f"{path} must hold one JSON object")
    lines = check_fields(fields, file or path.with_name("sketch.npz"))
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


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; see the top of this file."""
    parser = argparse.ArgumentParser(prog="dpverify_check", description=__doc__.splitlines()[0])
    parser.add_argument("certificate", type=Path)
    parser.add_argument("release", type=Path, nargs="?", help="sketch.npz beside it by default")
    parser.add_argument("--key", type=Path, action="append", default=[], metavar="PUBLIC.pem")
    chosen = parser.parse_args(arguments)
    try:
        lines = check(chosen.certificate, chosen.release, chosen.key)
    except BadInputError as error:
        print(f"dpverify_check: {_visible(str(error))}", file=sys.stderr)
        return 2
    width = max(len(line.name) for line in lines)
    for line in lines:
        print(f"{line.status:<11}  {line.name:<{width}}  {_visible(line.detail)}")
    found = status(lines)
    print(f"\n{found}")
    return {"agrees": 0, "differs": 1, "not checked": 3}[found]


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


if __name__ == "__main__":
    sys.exit(main())
