"""Claims: the privacy curve δ(ε), and the guarantee that a mechanism makes with it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    SupportsIndex,
    TypeVar,
    cast,
    get_args,
    runtime_checkable,
)

import numpy as np

from dpverify._axes import axes_or_new
from dpverify.data.adjacency import Adjacency, Group
from dpverify.enclosure import (
    Enclosure,
    Real,
    exact_string,
    number_string,
    rational,
    short_string,
)
from dpverify.errors import ParameterError, require, require_known
from dpverify.execution.arithmetic import usual_errors
from dpverify.numbers import whole

if TYPE_CHECKING:
    from dpverify.accounting.losses.base import Losses
    from dpverify.accounting.losses.shared_randomness import PositionLoss
    from dpverify.accounting.notions.risk import Risk

_LONGEST_DOUBLE = 24  # characters
_TINIEST = Fraction(1, 2**1000)
_FARTHEST = 2**1001  # twice as far as any finite loss of noise may lie
_MOST_NOISE = Fraction(2**20)
Notion = Literal["differential privacy", "individual differential privacy"]
_Adjacent = TypeVar("_Adjacent", Adjacency, Adjacency | None)

__all__ = [
    "Draw",
    "Guarantee",
    "Notion",
    "OnADraw",
    "PrivacyBound",
    "PrivacyCurve",
    "check_no_draw",
    "claimed_epsilon",
    "common_adjacency",
    "group_adjacency",
    "is_curve",
    "to_adjacency",
]


@dataclass(frozen=True, slots=True)
class Draw:
    """A public projection or hash, as far as composition has to know it.

    Attributes
    ----------
    source : the random words that it is made from, as a projection's kind and seed name them. Draws
        from one source overlap, whatever their sizes.
    realised : what was made of them, and all else that decides at which positions records differ
    """

    source: str
    realised: str


@runtime_checkable
class OnADraw(Protocol):
    """A curve over a public draw that decides which positions differ."""

    def position_loss(self) -> tuple[PositionLoss, int]:
        """Loss of one position with the draw kept apart, and how many positions there are."""
        ...


class PrivacyBound(ABC):
    """A function δ(ε) that may be promised, known by proven enclosures.

    Both ends are proven, so ``delta_at(e).upper`` and ``epsilon_at(d).upper`` are what may be
    promised. Numbers are read and checked here: a subclass writes `_delta` and `_epsilon`, which
    get exact numbers of their domain.

    Attributes
    ----------
    statements : of papers, the theorems that it computes as printed, by their ids in the ledger
    """

    __slots__ = ()
    statements: ClassVar[tuple[str, ...]] = ()

    def delta_at(self, epsilon: Real) -> Enclosure:
        """Encloses δ(ε), for ε ≥ 0 in nats."""
        exact = rational("epsilon", epsilon)
        require(exact >= 0, "epsilon", epsilon, "at least 0")
        with usual_errors():
            found = self._delta(exact)
        return Enclosure(min(found.lower, 1.0), min(found.upper, 1.0))

    def epsilon_at(self, delta: Real) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in [0, 1)."""
        exact = rational("delta", delta)
        require(0 <= exact < 1, "delta", delta, "in [0, 1)")
        with usual_errors():
            return self._epsilon(exact)

    def risk(self, *, prior: Real = Fraction(1, 2)) -> Risk:
        """What it means to a person in the data: how well anybody can guess; see `Risk`.

        Parameters
        ----------
        prior : probability, before the release, of what is to be guessed

        Examples
        --------
        >>> import dpverify as dpv
        >>> round(dpv.Gaussian(sigma=4).risk().success.upper, 4)
        0.5497
        """
        from dpverify.accounting.notions.risk import Risk  # which imports this

        return Risk(curve=self, prior=prior)

    @abstractmethod
    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε)."""

    @abstractmethod
    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""

    def to_dict(self) -> dict[str, Any]:
        """What it is and its parameters, as JSON holds them: exact numbers as text."""
        names = [field.name for field in getattr(self, "__attrs_attrs__", ()) if field.repr]
        values = {name.lstrip("_"): _plain(getattr(self, name)) for name in names}
        if "curve" in values:  # what it was made from
            values = {"base": values.pop("curve"), **values}
        return {"curve": type(self).__name__, **{k: v for k, v in values.items() if v is not None}}

    def __str__(self) -> str:
        (_, name), *parameters = self.to_dict().items()
        shown = {key: _shortened(getattr(self, key, value), value) for key, value in parameters}
        return f"{name}({', '.join(f'{key}={value}' for key, value in shown.items())})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{key}</th><td>{escape(str(x))}</td></tr>" for key, x in self._points())
        return f"<table><caption>{escape(str(self))}</caption>{''.join(rows)}</table>"

    def _points(self) -> Iterator[tuple[str, str]]:
        """The ε of a few δ, for a table."""
        for exponent in (3, 6, 9):
            epsilon = self.epsilon_at(Fraction(1, 10**exponent))
            yield f"epsilon at delta=1e-{exponent}", f"at most {epsilon:.6g}"

    def plot(self, axes: Any = None) -> Any:
        """Draw δ(ε), its proven upper end, and return matplotlib's axes.

        Parameters
        ----------
        axes : where to draw; new ones by default
        """
        axes = axes_or_new(axes)
        reach = self.epsilon_at(Fraction(1, 10**9)).upper
        points = [reach * step / 40 for step in range(41)] if math.isfinite(reach) else [0.0]
        axes.semilogy(points, [max(self.delta_at(point).upper, 1e-300) for point in points])
        axes.set(xlabel="ε", ylabel="δ, at most", title=str(self))
        return axes


class PrivacyCurve(PrivacyBound):
    """A certified δ(ε): the least function that its theorem proves for all neighbouring pairs.

    Where the theorem is exact, that is the supremum of their hockey-stick divergences. Curves of
    the same neighbours add up, and a whole number of times a curve is that many releases.

    Examples
    --------
    >>> import dpverify as dpv
    >>> total = 10 * dpv.Gaussian(sigma=4) + dpv.Laplace(scale=2)
    >>> round(total.epsilon_at(delta=1e-6).upper, 4)
    4.1423
    """

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # numpy's numbers leave multiplication to us

    @property
    def adjacency(self) -> Adjacency | None:
        """Whom it protects, where that was said."""
        return None

    @property
    def unit(self) -> str | None:
        """The unit of privacy in words, where the adjacency is known."""
        return None if self.adjacency is None else self.adjacency.unit

    @property
    def is_bound(self) -> bool:
        """Whether it is for a move that bounds those of all neighbours, and that none may make.

        By default, whether `curve` is, or any of `curves`, which it is made from.
        """
        inner = (getattr(self, "curve", None), *getattr(self, "curves", ()))
        return any(getattr(curve, "is_bound", False) for curve in inner)

    def rates(self, threshold: Real, *, noise: Real = 1.0) -> tuple[float, float]:
        """Rates of true and of false positives of the test {L ≥ threshold} at its worst pair.

        In doubles, for planning an audit and its power, not for proof.

        Parameters
        ----------
        threshold : in nats; an infinite one is taken for one beyond all finite losses
        noise : factor from 2⁻²⁰ to 2²⁰ by which the noise is scaled, the loss still being computed
            for the claimed noise
        """
        place = threshold
        if not isinstance(place, float) or math.isfinite(place):
            place = rational("threshold", place)
        elif math.isnan(place):
            raise ParameterError("threshold", threshold, "a real number, or infinite")
        scale = rational("noise", noise)
        require(1 / _MOST_NOISE <= scale <= _MOST_NOISE, "noise", noise, "from 2**-20 to 2**20")
        with usual_errors(), np.errstate(over="ignore"):
            return self._rates(float(min(max(place, -_FARTHEST), _FARTHEST)), float(scale))

    @abstractmethod
    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """Those rates, for a threshold of at most 2**1001 on either side."""

    def losses(self) -> Losses:
        """Independent privacy losses with their multiplicities, for composition.

        Raises
        ------
        ParameterError
            If the law of the privacy loss isn't known.
        """
        raise ParameterError(
            "curve",
            type(self).__name__,
            "one whose privacy loss is known",
            "Compose an ApproxDP of one of its points instead.",
        )

    def poisson_sampled(self, *, rate: Real, replaced: bool = False) -> PrivacyCurve:
        """The curve of the same mechanism on a sample that every record enters by its own coin.

        Parameters
        ----------
        rate : probability of a record to be in the sample, in (0, 1]; of a user with all rows,
            where the curve is of users
        replaced : whether neighbours have one record replaced; by default one more or less. The
            curve itself is that of adding or removing one in either case

        Returns
        -------
        PrivacyCurve
            See `PoissonSampled`, and `PoissonReplaced` for records that are replaced.

        Examples
        --------
        >>> import dpverify as dpv
        >>> training = 1000 * dpv.Gaussian(sigma=1).poisson_sampled(rate=0.01)
        >>> round(training.epsilon_at(delta=1e-6).upper, 4)
        2.1245
        """
        # Both import this module.
        from dpverify.accounting.curves.poisson_replaced import PoissonReplaced
        from dpverify.accounting.curves.poisson_sampled import PoissonSampled

        require(replaced in (0, 1), "replaced", replaced, "True or False")
        return (PoissonReplaced if replaced else PoissonSampled)(curve=self, rate=rate)

    def sampled_without_replacement(self, *, size: int, out_of: int) -> PrivacyCurve:
        """The curve of the same mechanism on a batch of a fixed size, for a record replaced.

        Parameters
        ----------
        size : of the batch, drawn without replacement for every release anew
        out_of : how many records there are; users, each drawn with all rows, where the curve is of
            users

        Returns
        -------
        PrivacyCurve
            See `SampledWithoutReplacement`: this curve has to be that of replacing a record, of
            noise for *twice* the norm that records are clipped to.

        Examples
        --------
        >>> import dpverify as dpv
        >>> step = dpv.Gaussian(sigma=2, sensitivity=2).sampled_without_replacement(
        ...     size=1, out_of=100
        ... )
        >>> round(step.epsilon_at(delta=1e-6).upper, 4)
        0.3639
        """
        from dpverify.accounting.curves.without_replacement import (  # which imports this
            SampledWithoutReplacement,
        )

        return SampledWithoutReplacement(curve=self, size=size, out_of=out_of)

    def shuffled(self, *, users: int) -> PrivacyCurve:
        """The curve of many users' answers, each by the same mechanism, once nobody knows whose.

        Parameters
        ----------
        users : how many answer, each once

        Returns
        -------
        PrivacyCurve
            See `Shuffled`: this curve has to be that of one user's answer, for any two of his
            values, and of a largest loss.

        Examples
        --------
        >>> import dpverify as dpv
        >>> answers = dpv.ApproxDP(epsilon=1).shuffled(users=10_000)
        >>> round(answers.epsilon_at(delta=1e-6).upper, 4)
        0.053
        """
        from dpverify.accounting.curves.shuffled import Shuffled  # which imports this

        return Shuffled(answer=self, users=users)

    def group(self, size: int) -> PrivacyBound:
        """What it guarantees to groups: neighbours that are up to `size` changes apart.

        Exact for Gaussian, discrete Gaussian and one-dimensional Laplace noise, and for randomized
        response. For any other curve it is the bound that the curve alone proves: see `GroupBound`.
        Groups of parts that were released apart give a sharper sum than the group of their sum.

        Examples
        --------
        >>> import dpverify as dpv
        >>> dpv.Laplace(scale=8).group(3).epsilon_at(delta=0).upper
        0.375
        >>> household = (5 * dpv.ApproxDP(epsilon="0.1", delta="1e-9")).group(4)
        >>> round(household.epsilon_at(delta="1e-6").upper, 4)
        2.0
        """
        from dpverify.accounting.composition.group import GroupBound  # which imports this

        return GroupBound(one=self, size=size)

    def __mul__(self, times: SupportsIndex) -> PrivacyCurve:
        return self._composed([self], whole("times", cast("int", times)))

    __rmul__ = __mul__

    def __add__(self, other: PrivacyCurve) -> PrivacyCurve:
        return self._composed([self, other]) if isinstance(other, PrivacyCurve) else NotImplemented

    @staticmethod
    def _composed(curves: Sequence[PrivacyCurve], times: int = 1) -> PrivacyCurve:
        from dpverify.accounting.composition.curve import Composed  # which imports this

        return Composed.of(curves, times=times)


@lru_cache(maxsize=256)
def claimed_epsilon(curve: PrivacyCurve, delta: Fraction) -> float:
    """Upper end of the curve's ε(δ), the one that may be promised; computed once for each curve.

    An audit asks for it at each event that it judges, and a root of a curve can take a second.
    """
    return curve.epsilon_at(delta).upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a mechanism promises, to whom, and over which randomness.

    Attributes
    ----------
    curve : the whole claim; an (ε, δ) is one of its points.
    adjacency : whom it protects.
    randomness : over which randomness it holds ("the noise, for this realised projection").
    data_choice : what it assumes about when the data was chosen.
    theorem : the statement that proves it, with paper and version.
    notion : differential privacy, or a weaker notion that must not be called so.
    assumptions : what it rests on in addition to the secrecy of the noise, each a sentence.
    draws : the public projections or hashes that count as random, none where the guarantee holds
        for what was realised. Over a draw it says nothing of the one that was realised, an audit
        draws it anew for every release, and releases that share it aren't independent: `compose`
        looks here.
    given : sources of the projections whose realised numbers the curve is for; for others it may be
        a different one, so that it can't be averaged over them.
    parts : the guarantees that this one composes, if it does.
    statements : of papers, which the proof uses as printed, by their ids in the ledger.
        Where the check of one doesn't find it true, nothing is certified by this guarantee.
    """

    curve: PrivacyCurve
    adjacency: Adjacency
    randomness: str
    data_choice: str
    theorem: str
    notion: Notion = "differential privacy"
    assumptions: tuple[str, ...] = ()
    draws: tuple[Draw, ...] = ()
    given: tuple[str, ...] = ()
    parts: tuple[Guarantee, ...] = ()
    statements: tuple[str, ...] = ()

    __array_ufunc__: ClassVar[None] = None  # numpy's numbers leave multiplication to us

    def __post_init__(self) -> None:
        require_known("notion", self.notion, get_args(Notion))

    def __mul__(self, times: SupportsIndex) -> Guarantee:
        count = whole("times", cast("int", times))
        require(count >= 1, "times", times, "at least 1")
        return self._composed([self] * count)

    __rmul__ = __mul__

    def __add__(self, other: Guarantee) -> Guarantee:
        return self._composed([self, other]) if isinstance(other, Guarantee) else NotImplemented

    @staticmethod
    def _composed(parts: Sequence[Guarantee]) -> Guarantee:
        from dpverify.accounting.composition.compose import compose  # which imports this

        return compose(*parts)

    @property
    def over_the_draw(self) -> bool:
        """Whether public randomness counts as random."""
        return bool(self.draws)


def is_curve(value: Any) -> bool:
    """Whether it offers what a curve has to; a class of curves lacks its parameters."""
    offers = hasattr(value, "delta_at") and hasattr(value, "epsilon_at")
    return offers and not isinstance(value, type)


def check_no_draw(curve: PrivacyCurve) -> None:
    """Refuse a curve over a public draw, of which it can't say whether another release shares it.

    Raises
    ------
    ParameterError
        If it is one.
    """
    if isinstance(curve, OnADraw) or getattr(curve, "drawn", False):
        raise ParameterError(
            "curve",
            curve,
            "one that averages over no public draw",
            "Releases that share the draw aren't independent, and a curve doesn't say which draw "
            "it is: give the mechanism, or its guarantee, in its place.",
        )


def to_adjacency(value: Adjacency | None) -> Adjacency | None:
    """Read a curve's adjacency."""
    good = value is None or all(hasattr(value, name) for name in ("unit", "relates"))
    require(good, "adjacency", value, "an adjacency, with `unit` and `relates`")
    return value


def group_adjacency(one: Adjacency | None, size: int) -> Adjacency | None:
    """That of up to so many changes; of one that wasn't said, several don't add up with one."""
    return None if one is None and size == 1 else Group(one, size)


def common_adjacency(adjacencies: Sequence[_Adjacent]) -> _Adjacent:
    """The adjacency of all releases; None where it was said of none.

    Raises
    ------
    ParameterError
        If two differ, or it was said of some alone.
    """
    first, *others = adjacencies
    for other in others:
        require(
            other == first,
            "adjacency",
            other and other.unit,
            f"the same for all releases, here {first and first.unit}",
            "Guarantees for different neighbours don't add up.",
        )
    return first


def _shortened(value: Any, plain: Any) -> Any:
    """A fraction, in few digits if it is no double, a curve as it prints itself; or as it is."""
    match value:
        case PrivacyBound():
            return str(value)
        case Fraction() if len(number := number_string(value)) <= _LONGEST_DOUBLE:
            return number
        case Fraction():
            far = value and not _TINIEST < abs(value) < 1 / _TINIEST  # perhaps no double
            return f"~{short_string(value)}" if far else f"~{float(value):.6g}"
    return plain


def _plain(value: Any) -> Any:
    """As JSON holds it."""
    match value:
        case Fraction():
            return exact_string(value)
        case Enclosure():
            return value.as_json()
        case tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | str():
            return value
        case PrivacyBound():
            return value.to_dict()
    return getattr(value, "unit", str(value))
