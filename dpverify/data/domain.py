"""Declared domains: what a record may be, fixed before anyone looks at the data.

A domain is frozen data that admits records (or refuses them, in words for the owner alone) and
draws synthetic ones for audits. Whatever a certificate says about records is about its domain,
never about the data. Records are doubles: the ends of a box that count are the doubles nearest to
the declared ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import attrs
import numpy as np
from attrs import field, frozen
from attrs.converters import optional
from numpy.typing import NDArray

from dpverify.enclosure import short_string
from dpverify.errors import RecordsError, require, require_known
from dpverify.numbers import to_count, to_rational
from dpverify.sampling.words import Words

if TYPE_CHECKING:
    import scipy

__all__ = [
    "LARGEST",
    "PROBES",
    "Ball",
    "Box",
    "Domain",
    "Graphs",
    "Records",
    "Sets",
    "Vectors",
    "as_matrix",
    "as_rows",
    "dense",
    "first_where",
    "indicator",
    "is_sparse",
    "require_finite",
    "row_norms",
    "shape_of",
    "uniform",
]

_Outside = Literal["refuse", "clip"]
Records: TypeAlias = "NDArray[Any] | scipy.sparse.csr_array"

LARGEST = 2**100
"""Of the numbers of a domain or an adjacency, so that their eighth powers are doubles."""

PROBES = 40
"""Synthetic pairs that `probes` draws."""


def _known(_: Any, field: attrs.Attribute[Any], value: str) -> None:
    require_known(field.name, value, get_args(_Outside))


@frozen
class Box:
    """Every attribute lies in [low, high].

    Attributes
    ----------
    low, high : the range, both ends included. Declared, never read off the data. Records are
        doubles, so the ends that count are the doubles nearest to these: a stored 0.1 is inside
        [0, 0.1], though that double is above one tenth.
    outside : "refuse" raises, "clip" moves the value to the nearest end. Clipping is monotone and
        never moves two values apart, so it keeps every adjacency of this package.
    """

    low: Fraction = field(converter=to_rational)
    high: Fraction = field(converter=to_rational)
    outside: _Outside = field(default="refuse", kw_only=True, validator=_known)

    def __attrs_post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            require(abs(end) <= LARGEST, name, short_string(end), "between -2**100 and 2**100")
        require(self.low < self.high, "high", self.high, f"greater than low={self.low}")
        width = self.high - self.low
        require(width * LARGEST >= 1, "high - low", short_string(width), "at least 2**-100")

    def admit(self, records: Any, *, attributes: int | None = None) -> Any:
        """Records as a matrix of doubles inside the domain, of shape (rows, attributes).

        A scipy sparse array stays sparse (CSR); its missing entries are zeros, which the domain
        must then hold.

        Raises
        ------
        RecordsError
            If the shape is wrong, a value is NaN or infinite, or one is outside the domain and the
            rule is to refuse. The message is for the owner: it names a value of the data.
        """
        x = as_matrix(records, attributes=attributes)
        values = x.data if is_sparse(x) else x
        low, high = self.ends
        if is_sparse(x) and not low <= 0 <= high:
            raise RecordsError(
                f"sparse records have zeros, and the declared domain [{low}, {high}] has none. "
                "Declare a domain that holds 0, or give dense records."
            )
        if values.size == 0:
            return x
        least, most = values.min(), values.max()  # NaN spreads to both
        if low <= least and most <= high:
            return x
        require_finite(x)
        if self.outside == "clip":
            if not is_sparse(x):
                return np.clip(x, low, high)
            return _with_values(x, np.clip(x.data, low, high))
        row, column, value = first_where(x, lambda v: (v < low) | (v > high))
        raise RecordsError(
            f", attribute {column} is {value}, outside the declared domain "
            f"[{low}, {high}]. Widen the domain if it was declared too "
            'narrow, or set outside = "clip".',
            record=row,
        )

    def count_outside(self, records: Any) -> int:
        """Number of values outside the domain: a fact about the data, never to be published."""
        x = as_matrix(records)
        values = x.data if is_sparse(x) else x
        low, high = self.ends
        return int(np.count_nonzero((values < low) | (values > high)))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest double of the domain."""
        return float(self.low), float(self.high)

    def probes(self, attributes: int, rng: Words) -> Sequence[tuple[Any, Any]]:
        """Pairs of synthetic records, from almost equal to independent, each of shape (1, p)."""
        low, high = self.ends

        def draw() -> NDArray[np.float64]:
            unit = uniform(attributes, rng)
            return np.clip(low + (high - low) * unit, low, high)

        pairs = []
        for number in range(1, PROBES + 1):
            record, fresh = draw(), draw()
            changed = int(attributes * number / PROBES)
            other = np.where(np.arange(attributes) < changed, fresh, record)
            pairs.append((record[None], other[None]))
        return pairs


@frozen
class Ball:
    """Every record has an ℓ2 norm of at most `radius`.

    Attributes
    ----------
    radius : declared, never read off the data. Norms are computed in doubles; the bound that a
        guarantee may use is `reach`, which holds for every record that is admitted.
    outside : "refuse" raises, "clip" scales the record down to the sphere. That is the projection
        onto a convex set, so it never moves two records apart in ℓ2, but for what lies between
        `radius` and `reach`. It moves every attribute, though: where one attribute or an ℓ1
        distance is protected, a clipped ball keeps no bound, and mechanisms refuse it.
    """

    radius: Fraction = field(converter=to_rational)
    outside: _Outside = field(default="refuse", kw_only=True, validator=_known)

    def __attrs_post_init__(self) -> None:
        good = 1 <= self.radius * LARGEST <= LARGEST**2
        require(good, "radius", short_string(self.radius), "between 2**-100 and 2**100")

    @property
    def reach(self) -> Fraction:
        """Proven bound on the norm of every admitted record: the radius and 2⁻²⁰ of it.

        A norm of p terms in doubles is off by less than (p + 2)·2⁻⁵³ relatively (sum of squares in
        any order, then a root), so that for p < 2³⁰ a computed norm of at most R(1 + 2⁻²³) belongs
        to a record of norm at most R(1 + 2⁻²⁰). Scaling rounds each value by at most 2⁻⁵² of it.
        """
        return self.radius * (1 + Fraction(1, 2**20))

    def admit(self, records: Any, *, attributes: int | None = None) -> Any:
        """Records as a matrix of doubles inside the ball; see `Box.admit`."""
        x = as_matrix(records, attributes=attributes)
        require(x.shape[1] < 2**30, "attributes", x.shape[1], "less than 2**30")
        require_finite(x)
        limit = float(self.radius) * (1 + 2.0**-23)
        norms = row_norms(x)
        far = np.flatnonzero(~(norms <= limit))
        if far.size == 0:
            return x
        if self.outside == "refuse":
            raise RecordsError(
                f" has norm {norms[far[0]]}, outside the declared ball of radius "
                f'{float(self.radius)}. Declare a larger radius, or set outside = "clip".',
                record=int(far[0]),
            )
        # What others are decides nothing: a record up to the limit stays, whoever is beyond it.
        factor = np.where(norms <= limit, 1.0, float(self.radius) / np.maximum(norms, limit))
        if is_sparse(x):
            return _with_values(x, x.data * np.repeat(factor, np.diff(x.indptr)))
        return x * factor[:, None]

    def count_outside(self, records: Any) -> int:
        """Number of records outside the ball: a fact about the data, never to be published."""
        x = as_matrix(records)
        return int(np.count_nonzero(row_norms(x) > float(self.radius) * (1 + 2.0**-23)))

    def probes(self, attributes: int, rng: Words) -> Sequence[tuple[Any, Any]]:
        """Pairs of synthetic records of norm at most the radius, from close to independent."""
        scale = float(self.radius) / math.sqrt(attributes)
        pairs = []
        for number in range(1, PROBES + 1):
            record, fresh = (scale * (2 * uniform(attributes, rng) - 1) for _ in range(2))
            weight = number / PROBES
            pairs.append((record[None], ((1 - weight) * record + weight * fresh)[None]))
        return pairs


@frozen
class Sets:
    """Every record is a set of items, as a row of zeros and ones, dense or sparse.

    A set that is too small or too large is always refused: no clipping establishes a bound on sizes
    without changing what its neighbours are.

    Attributes
    ----------
    min_size : of a set that is admitted, at least 1
    max_size : of a set that is admitted, or None for no limit
    """

    min_size: int = field(default=1, converter=to_count, kw_only=True)
    max_size: int | None = field(default=None, converter=optional(to_count), kw_only=True)

    def __attrs_post_init__(self) -> None:
        size = self.max_size
        rule = f"at least min_size={self.min_size}"
        require(size is None or size >= self.min_size, "max_size", size, rule)

    def admit(self, records: Any, *, attributes: int | None = None) -> scipy.sparse.csr_array:
        """Sets as a CSR array of ones with sorted indices, of shape (rows, attributes)."""
        x = _csr(as_matrix(records, attributes=attributes))
        if np.any(x.data == 0):
            x = x.copy()
            x.eliminate_zeros()
        if not np.all(x.data == 1):
            row, column, value = first_where(x, lambda v: v != 1)
            raise RecordsError(
                f", item {column} is {value}: sets are rows of zeros and ones.", record=row
            )
        sizes = np.diff(x.indptr)
        wrong = self._wrong(sizes)
        if wrong.size:
            bounds = f"at least {self.min_size}" + (
                "" if self.max_size is None else f", at most {self.max_size}"
            )
            raise RecordsError(
                f" has {sizes[wrong[0]]} items, and the declared domain has sets "
                f"of {bounds}. Declare a domain that holds all records; leaving some out would "
                "reveal that they exist.",
                record=int(wrong[0]),
            )
        return x

    def count_outside(self, records: Any) -> int:
        """Number of sets of another size: a fact about the data, never to be published."""
        x = _csr(as_matrix(records))
        return int(self._wrong(np.diff(x.indptr)).size)

    def _wrong(self, sizes: NDArray[Any]) -> NDArray[np.intp]:
        most = np.inf if self.max_size is None else self.max_size
        return np.flatnonzero((sizes < self.min_size) | (sizes > most))

    def probes(self, attributes: int, rng: Words) -> Sequence[tuple[Any, Any]]:
        """Pairs of synthetic sets of one size, from almost equal to sharing half of their items.

        Disjoint sets would say little: their hashes collide by chance alone.
        """
        most = attributes if self.max_size is None else min(self.max_size, attributes)
        size = min(max(self.min_size, most // 4), most)
        pairs = []
        for number in range(1, PROBES + 1):
            # A random order of the items; the second set is the first one shifted along it.
            order = np.argsort(rng.words(attributes), kind="stable")
            shift = min(attributes - size, -(-size * number // (2 * PROBES)))
            one, other = order[:size], order[shift : shift + size]
            pairs.append((indicator(one, attributes), indicator(other, attributes)))
        return pairs


@frozen
class Graphs:
    """The data set is one graph: its symmetric matrix of edge weights in [0, 1], diagonal 0."""

    def admit(self, records: Any, *, attributes: int | None = None) -> NDArray[np.float64]:
        """The weights as a dense (n, n) matrix."""
        x = as_matrix(records, attributes=attributes)
        weights = dense(x)
        require_finite(weights)
        if weights.shape[0] != weights.shape[1]:
            raise RecordsError(f"weights of shape {weights.shape} must form a square matrix.")
        if not (weights.min() >= 0 and weights.max() <= 1):
            row, column, value = first_where(weights, lambda v: (v < 0) | (v > 1))
            raise RecordsError(f"edge ({row}, {column}) has weight {value}, outside [0, 1].")
        if not np.array_equal(weights, weights.T) or weights.diagonal().any():
            raise RecordsError("weights must form a symmetric matrix with an empty diagonal.")
        return weights

    def count_outside(self, records: Any) -> int:
        """Number of weights outside [0, 1]: a fact about the data, never to be published."""
        x = as_matrix(records)
        values = x.data if is_sparse(x) else x
        return int(np.count_nonzero((values < 0) | (values > 1)))

    def probes(self, attributes: int, rng: Words) -> Sequence[tuple[Any, Any]]:
        """Random graphs of rising density, each with a random set of vertices as its query."""
        pairs = []
        for number in range(1, PROBES + 1):
            draws = uniform(attributes * attributes, rng).reshape(attributes, attributes)
            upper = np.triu(draws < number / PROBES, 1).astype(np.float64)
            chosen = uniform(attributes, rng) < 0.5
            chosen[0], chosen[-1] = True, False
            pairs.append((upper + upper.T, chosen.astype(np.float64)[None]))
        return pairs


Vectors = Box | Ball | Sets
"""Domains whose records are vectors, one a row."""
Domain = Vectors | Graphs


def indicator(items: NDArray[Any], attributes: int) -> scipy.sparse.csr_array:
    """A set as one sparse row of ones, of shape (1, attributes)."""
    columns = np.sort(items)
    return _csr((np.ones(columns.size), columns, np.array([0, columns.size])), (1, attributes))


def uniform(count: int, rng: Words) -> NDArray[np.float64]:
    """Synthetic numbers in [0, 1): for audits' inputs, never for noise."""
    return np.asarray((rng.words(count) >> np.uint64(11)) * 2.0**-53)


def shape_of(data: Any) -> tuple[int, ...]:
    """Shape of data, dense or sparse; () where it is no array, like lists of different lengths."""
    try:
        return np.shape(data)
    except ValueError:
        return ()


def as_matrix(records: Any, *, attributes: int | None = None) -> Any:
    """Records as a float64 matrix, dense or CSR, that isn't empty.

    A sparse array may hold several entries for one place, which stand for their sum. They are
    added up here, in a copy: whoever looks at one entry after the other (to round it, to compare
    it with a domain) would else look at something that isn't the record.
    """
    if np.iscomplexobj(records):
        raise RecordsError("records must be real numbers, and these are complex.")
    if np.ma.is_masked(records):  # what is below a mask would be read as a value
        raise RecordsError(
            "records are masked in places, and must all be there. Fill in missing values before "
            "the release."
        )
    if is_sparse(records):
        known = _csr(records)
        # A new one around the same arrays: what the old one remembers of them may have changed.
        x: Any = _csr((known.data, known.indices, known.indptr), known.shape)
        try:
            x.check_format()
        except ValueError as error:
            raise RecordsError(
                f"records are no sparse array that holds together: {error}."
            ) from None
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
    else:
        try:
            x = np.asarray(records, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RecordsError(f"records must be numbers: {error}.") from None
    if x.ndim != 2 or 0 in x.shape:
        raise RecordsError(
            f"records of shape {x.shape} must form a matrix with a row for each record, "
            "with at least one row and one column."
        )
    if attributes is not None and x.shape[1] != attributes:
        raise RecordsError(
            f"records of shape {x.shape} must have {attributes} attributes, "
            "as many as the mechanism was made for."
        )
    return x


def _csr(entries: Any, shape: Any = None) -> scipy.sparse.csr_array:
    """Entries as a CSR array of doubles: themselves, if they are one."""
    from scipy import sparse  # takes its time, and most domains see dense records alone

    if isinstance(entries, sparse.csr_array) and entries.dtype == np.float64:
        return entries
    array: scipy.sparse.csr_array = sparse.csr_array(entries, shape=shape, dtype=np.float64)
    return array


def is_sparse(x: Any) -> bool:
    """Whether x is a scipy sparse array; a plain bool, by which the stubs narrow nothing."""
    # There is none before that is loaded, which scipy does when it is first asked for.
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def dense(x: Any) -> NDArray[Any]:
    """An array, or a scipy sparse one made dense."""
    return np.asarray(x.toarray() if is_sparse(x) else x)


def as_rows(record: Any) -> Any:
    """One record as a matrix of one row, or rows as they are; dense or sparse."""
    return record if is_sparse(record) else np.atleast_2d(record)


def require_finite(x: Any) -> None:
    """Refuse NaN and infinities."""
    values = x.data if is_sparse(x) else x
    if not np.isfinite(values).all():
        row, column, value = first_where(x, lambda v: ~np.isfinite(v))
        raise RecordsError(
            f", attribute {column} is {value}: "
            "records must be finite. Fill in missing values before the release.",
            record=row,
        )


def row_norms(x: Any) -> NDArray[np.float64]:
    """ℓ2 norms of the rows, in doubles."""
    with np.errstate(over="ignore", under="ignore"):  # a warning would tell of the records
        squares = x.multiply(x).sum(axis=1) if is_sparse(x) else np.vecdot(x, x)
    norms: NDArray[np.float64] = np.sqrt(np.asarray(squares).ravel())
    return norms


def first_where(x: Any, wrong: Any) -> tuple[int, int, float]:
    """Row, column and value of the first entry for which `wrong` holds."""
    if is_sparse(x):
        place = int(np.flatnonzero(wrong(x.data))[0])
        row = int(np.searchsorted(np.asarray(x.indptr), place, side="right")) - 1
        return row, int(x.indices[place]), float(x.data[place])
    row, column = np.argwhere(wrong(x))[0].tolist()
    return row, column, float(x[row, column])


def _with_values(x: Any, values: NDArray[np.float64]) -> Any:
    return _csr((values, x.indices, x.indptr), x.shape)
