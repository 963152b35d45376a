"""Private sketches as scikit-learn transformers (extra ``audit`` or ``mnist``).

Any mechanism whose records are rows, by its name: linear sketches, sign sketches, MinHash. What
comes out is what was released, so that whatever model follows is post-processing.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.composition.compose import compose
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.catalogue import family_of, mechanism
from dpverify.data.adjacency import Adjacency, Attribute, Items
from dpverify.data.domain import Box, Domain, Sets, is_sparse
from dpverify.errors import ParameterError, extra, require
from dpverify.guarantee import Guarantee, PrivacyCurve

with extra("audit", "PrivateSketch"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["PrivateSketch"]

_WIDTH = 32  # numbers that are kept where nobody says how many


class PrivateSketch(  # scikit-learn has no types
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Release of private sketches of the rows, as a transformer.

    `fit` reads the numbers of columns and rows, and nothing else. **Every `transform` is a
    release**: it draws fresh noise, and what it costs adds up for rows that are released again. So
    a row that was released is refused a second time unless ``again=True``; rows are known by their
    content, for as long as this object lives: a clone begins anew, and a pickled or deep copy knows
    what was spent and no rows. Rows that stand in X several times, as resampling has them, are
    released as often. The noise shifts all squared distances alike, so that nearest neighbours
    need no correction.

    Parameters
    ----------
    mechanism : as `dpverify.mechanisms` lists it
    k : numbers, signs or hash values that are kept of a row; the smaller of 32 and their columns by
        default; left out for mechanisms that don't take it
    epsilon, delta : the target of one release. At δ = 0 mechanisms that have a choice take Laplace
        noise
    domain : declared, never read off the data; [0, 1] by default, with what is outside moved to its
        nearest end, which a warning says
    adjacency : whom the release protects; one value of one row, whatever it changes to, by default,
        and one item of sets
    parameters : of the mechanism's own, more of them
    seed : of the public randomness
    again : whether rows may be released again, which spends again

    Attributes
    ----------
    mechanism_ : that releases, with its estimators and its guarantee

    Examples
    --------
    >>> import numpy as np
    >>> from dpverify.sklearn import PrivateSketch
    >>> sketch = PrivateSketch(k=4, epsilon=2)
    >>> rows = np.linspace(0, 1, 24).reshape(4, 6)
    >>> sketch.fit_transform(rows).shape, float(sketch.spent().epsilon_at(0))
    ((4, 4), 2.0)
    >>> sketch.transform(rows)
    Traceback (most recent call last):
    ...
    dpverify.errors.ParameterError: again=False must be True to release rows again: 4 of 4 were \
released before, or stand here twice. It spends 2 once more for each.
    """

    def __init__(
        self,
        mechanism: str = "dp-oporp",
        *,
        k: int | None = None,
        epsilon: Any = 1.0,
        delta: Any = 0.0,
        domain: Domain | None = None,
        adjacency: Adjacency | None = None,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
        again: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self.k = k
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.adjacency = adjacency
        self.parameters = parameters
        self.seed = seed
        self.again = again

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the mechanism for so many columns; no value of X counts, and nothing is spent."""
        X = validate_data(self, X, accept_sparse="csr")
        columns = X.shape[1]
        domain = self._domain()
        require(isinstance(domain, Domain), "domain", domain, "a domain, as dpv.Box(0, 1)")
        is_table = self.parameters is None or isinstance(self.parameters, Mapping)
        require(is_table, "parameters", self.parameters, 'a dictionary, as {"noise": "laplace"}')
        known = {parameter.name: parameter for parameter in family_of(self.mechanism).parameters}
        given = dict(self.parameters or {})
        if "k" in known:
            given.setdefault("k", min(columns, _WIDTH) if self.k is None else self.k)
        if self.delta == 0 and "noise" in known:
            given.setdefault("noise", "laplace")
        self.mechanism_ = mechanism(
            self.mechanism,
            p=columns,
            rows=X.shape[0],
            epsilon=self.epsilon,
            delta=self.delta,
            domain=domain,
            adjacency=_unit(domain) if self.adjacency is None else self.adjacency,
            seed=self.seed,
            **given,
        )
        self._spends = self.epsilon
        if not hasattr(self, "_released"):  # what was spent stays spent
            self._released = _Released()
        self._n_features_out = self._width()
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Release the rows of X with fresh noise: what each was released as, of shape (n, k).

        Linear sketches are in the records' unit; signs are −1 and 1; hash values are whole numbers.

        Raises
        ------
        ParameterError
            If one of the rows was released before, and `again` is False.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        if self.domain is None and (outside := self._domain().count_outside(X)):
            warnings.warn(
                f"{outside} values are outside [0, 1] and count as its nearest end. Declare what "
                "values may be: PrivateSketch(domain=dpv.Box(low, high)).",
                stacklevel=2,
            )
        digests = self._released.digests(self._domain().admit(X))
        before = self._released.count(digests, self.mechanism_.guarantee(), again=self.again)
        if before and not self.again:
            raise ParameterError(
                "again",
                self.again,
                f"True to release rows again: {before} of {len(digests)} were released before, "
                "or occur twice here",
                f"For each of them that spends {self._spends} once more.",
            )
        released = self.mechanism_.release(X)
        step = self.mechanism_.step()
        if step is not None:
            return np.asarray(released * float(step))
        if self._packed():
            bits = np.unpackbits(released, axis=-1, count=self._width())
            return np.asarray(2.0 * bits - 1, dtype=np.float64)
        return np.asarray(released, dtype=np.float64)

    def spent(self) -> PrivacyCurve:
        """The curve of all releases of one row, of the one that was released most often.

        Rows of which each was released once cost one release, since one of them is protected. What
        was spent before this object was copied is added: its rows are known no more.
        """
        check_is_fitted(self)
        costs = self._released.costs()
        return compose(*costs, same_records=True).curve if costs else ApproxDP(epsilon=0)

    def _domain(self) -> Domain:
        return Box(0, 1, outside="clip") if self.domain is None else self.domain

    def _packed(self) -> bool:
        """Whether eight signs are released as one byte."""
        names = {estimator.name for estimator in self.mechanism_.estimators()}
        return bool(names & {"sign collision", "bit agreement"})

    def _width(self) -> int:
        if self._packed():
            return int(self.mechanism_.projection.k)  # type: ignore[attr-defined]
        return int(self.mechanism_.shape(1)[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags


class _Released:
    """How often rows were released at which cost, by digests; no copy takes these along.

    Rows that a domain doesn't tell apart, or single precision, have one digest.
    """

    def __init__(self, before: Sequence[Guarantee] = ()) -> None:
        self.before = before
        self.key = secrets.token_bytes(32)
        self.times: defaultdict[Guarantee, Counter[bytes]] = defaultdict(Counter)
        self.lock = threading.Lock()

    def count(self, digests: Sequence[bytes], cost: Guarantee, *, again: bool) -> int:
        """Count a release of these rows, before it is drawn, if each is its first or `again`.

        Returns how many of them were released before, or stand here twice.
        """
        with self.lock:  # of two threads at once one comes first
            new = {d for d in digests if not any(d in known for known in self.times.values())}
            before = len(digests) - len(new)
            if again or not before:
                self.times[cost].update(digests)
        return before

    def costs(self) -> list[Guarantee]:
        """What the row that was released most often cost at each guarantee, and copies before."""
        with self.lock:
            most = {cost: max(times.values()) for cost, times in self.times.items() if times}
        return [*self.before, *(cost for cost, n in most.items() for _ in range(n))]

    def digests(self, rows: Any) -> list[bytes]:
        """One of each row."""
        dense = (row.toarray() if is_sparse(rows) else row for row in rows)
        return [
            hashlib.blake2b((np.float32(row) + np.float32(0)).tobytes(), key=self.key).digest()
            for row in dense  # −0 + 0 is 0
        ]

    def __reduce__(self) -> Any:  # digests with their key would tell of the rows
        return _Released, (self.costs(),)


def _unit(domain: Domain) -> Adjacency:
    match domain:
        case Box(low=low, high=high):
            return Attribute(high - low)
        case Sets():
            return Items(1)
    raise ParameterError("adjacency", None, f"given for a domain of {type(domain).__name__}")
