"""Which groups there are: noisy counts that are shown above a threshold, and the best selection.

**Thresholded noise.** Groups aren't known beforehand. A group that has somebody gets its count plus
noise, and count and name are shown where that reaches the threshold T; a group of nobody is never
shown. One person is in at most m groups and adds at most v to each. Neighbours have the person or
not; j of the groups have nobody else, and the others are there on both sides. Let π = P[v + noise ≥
T], c = (1 − π)^j, and δ′ the curve of m − j noisy counts that move by v, whether they are shown
being computed from them. Against the data set without the person the j groups show themselves with
probability 1 − c, and otherwise look as if they weren't there; the other way round they never do:

    with against without:    1 − c + c·δ′(ε − ln c),
    without against with:    H′(c·e^ε), which is δ′(ε + ln c) while c·e^ε ≥ 1, else
                             1 − y + y·δ′(−ln y) with y = c·e^ε.

Less than v, or fewer groups, is a post-processing of that for log-concave noise, and δ is the
largest of these over j: exact, for counts far above T are all shown.

**The best selection.** Desfontaines, Voss, Gipson and Mandayam 2022 (arXiv:2006.03684v4), theorem
1: a group of n people is shown with probability π_n, π_0 = 0, and of all (ε₀, δ₀)-private rules

    π_{n+1} = min(e^ε₀ π_n + δ₀,  1 − e^(−ε₀)(1 − π_n − δ₀),  1)

shows every group most often. So (ε₀, δ₀) is what it claims for one group: `ApproxDP`, m times for
m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.solve import falling_root
from dpverify.data.adjacency import AddRemove, Adjacency
from dpverify.enclosure import (
    Enclosure,
    Exact,
    Real,
    enclose,
    rational_of,
    short_string,
    to_arb,
)
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_count, to_rational

__all__ = ["PartitionSelection", "gaussian_threshold", "laplace_threshold"]

_TINY = 2.0**-1000  # of a logarithm whose exact digits may not fit in memory
_PRECISION = 256
_MOST_GROUPS = 1024
_FAR = Fraction(2**1023)  # an epsilon


def _and_unit(noise: Any) -> tuple[Any, Exact]:
    """Noises of one curve are equal; the threshold is stated in the unit of this one."""
    return noise, noise.sensitivity


@frozen(kw_only=True)
class PartitionSelection(PrivacyCurve):
    """Exact curve of groups that are shown, with noisy counts, where these reach a threshold.

    For adding or removing one person.

    Parameters
    ----------
    noise : of one count: Gaussian, Laplace of one move, or DiscreteLaplace, whose sensitivity
        is how much a person adds to it at most
    threshold : T, which the noisy count has to reach; exact
    groups : m, how many one person is in at most
    adjacency : whom it protects: one row, added or removed, or all rows of a user

    Examples
    --------
    >>> import dpverify as dpv
    >>> shown = dpv.curves.PartitionSelection(noise=dpv.Laplace(scale=1), threshold=14)
    >>> f"{shown.delta_at(epsilon=1):.3g}"
    '0.00000114'
    """

    noise: Gaussian | Laplace | DiscreteLaplace = field(eq=_and_unit)
    threshold: Fraction = field(converter=to_rational)
    groups: int = field(default=1, converter=to_count)
    adjacency: Adjacency | None = field(converter=to_adjacency)

    @adjacency.default
    def _(self) -> Adjacency:
        return getattr(self.noise, "adjacency", None) or AddRemove()

    def __attrs_post_init__(self) -> None:
        for known in (self.adjacency, getattr(self.noise, "adjacency", None)):
            if known is not None and not (isinstance(known, AddRemove) and known.k == 1):
                hint = "Whoever is replaced makes two changes: group(2) of this curve is for that."
                rule = "one row or user, added or removed"
                raise ParameterError("adjacency", known.unit, rule, hint)
        one_move = not isinstance(self.noise, Laplace) or self.noise.moves is None
        if not isinstance(self.noise, Gaussian | Laplace | DiscreteLaplace) or not one_move:
            rule = "Gaussian, Laplace of one move, or DiscreteLaplace"
            raise ParameterError("noise", self.noise, rule)
        require(self.groups <= _MOST_GROUPS, "groups", self.groups, f"at most {_MOST_GROUPS}")
        with ctx.workprec(_PRECISION):
            proven = self._log_hidden().is_finite()
        rule = (
            "nearer to the sensitivity: the chance that a group is hidden is too small to enclose"
        )
        require(proven, "threshold", short_string(self.threshold), rule)

    def shown(self) -> Enclosure:
        """Encloses π, how often a group of one person is shown."""
        return enclose(self._shown)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε): as narrow as what it takes of the noise's."""
        ends = [self._of_new(epsilon, new) for new in range(self.groups + 1)]
        return Enclosure(max(end.lower for end in ends), min(max(end.upper for end in ends), 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ): infinite where groups of the person alone are shown more often."""
        most = enclose(lambda: -(self.groups * self._log_hidden()).expm1())
        if delta < most.lower:
            return Enclosure(math.inf, math.inf)
        # Next to the least δ(ε) there may be no ε, or none that logarithms in doubles find.
        if Enclosure.of_exact(delta).lower <= self._delta(_FAR).upper * (1 + 2**-40):
            return Enclosure(0.0, math.inf)
        return falling_root(lambda epsilon: self._delta(Fraction(epsilon)), delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """Rates of the worst number of new groups, for the order that shows them."""
        best = max(
            range(self.groups + 1),
            key=lambda new: self._of_new(Fraction(max(threshold, 0.0)), new).upper,
        )
        with ctx.workprec(_PRECISION):
            log = float(best * self._log_hidden())
            hidden = math.exp(log)
        if best == self.groups:
            own = other = float(threshold <= log)
        else:
            rest = self._rest(best)
            own, other = rest.rates(threshold - log, noise=noise)
        return 1 - hidden + hidden * own, other

    def _of_new(self, epsilon: Fraction, new: int) -> Enclosure:
        """The larger one of both orders where so many groups have the person alone."""
        if new == 0:
            return self._rest(0).delta_at(epsilon)
        with ctx.workprec(_PRECISION):
            log = new * self._log_hidden()
            if log > arb(-_TINY):
                low, high = Fraction(-_TINY), Fraction(0)
            else:
                low, high = (rational_of(end) for end in (log.lower(), log.upper()))
        if new == self.groups:
            inner = reverse = Enclosure(0.0, 0.0)
            if epsilon + high < 0:
                reverse = enclose(lambda: -(log + to_arb(epsilon)).expm1())
        else:
            rest = self._rest(new)
            inner = Enclosure(
                rest.delta_at(epsilon - low).lower, rest.delta_at(epsilon - high).upper
            )
            ends = [_extended(rest, epsilon + end) for end in (high, low)]
            reverse = Enclosure(ends[0].lower, ends[1].upper)

        def shows(delta: float) -> Callable[[], arb]:
            def value() -> arb:
                hidden = new * self._log_hidden()
                return -hidden.expm1() + hidden.exp() * arb(delta)

            return value

        lower, upper = enclose(shows(inner.lower)).lower, enclose(shows(inner.upper)).upper
        return Enclosure(max(lower, reverse.lower), max(upper, reverse.upper))

    def _rest(self, new: int) -> PrivacyCurve:
        left = self.groups - new
        return self.noise if left == 1 else left * self.noise

    def _log_hidden(self) -> arb:
        """Ln(1 − π), where π is near 1 too."""
        shown, hidden = self._masses()
        return (-shown).log1p() if shown < hidden else hidden.log()

    def _shown(self) -> arb:
        """P[noise ≥ T − v]."""
        return self._masses()[0]

    def _masses(self) -> tuple[arb, arb]:
        """P[noise ≥ T − v] and P[noise < T − v], both to a relative precision."""
        match self.noise:
            case Gaussian(sigma=sigma, sensitivity=size):
                x = (to_arb(self.threshold) - to_arb(size)) / to_arb(sigma)
                x /= arb(2).sqrt()
                return x.erfc() / 2, (-x).erfc() / 2
            case Laplace(scale=scale, sensitivity=moved):
                x = (self.threshold - moved) / scale
                tail = to_arb(-abs(x)).exp() / 2
                return (tail, 1 - tail) if x >= 0 else (1 - tail, tail)
            case DiscreteLaplace(scale=scale, sensitivity=moved):
                least = math.ceil(self.threshold) - moved
                q = to_arb(-1 / scale).exp()
                tail = q ** max(least, 1 - least) / (1 + q)
                return (tail, 1 - tail) if least > 0 else (1 - tail, tail)


def _extended(curve: PrivacyCurve, epsilon: Fraction) -> Enclosure:
    """H at y = e^ε, below 1 too: there 1 − y + y·δ(−ε)."""
    if epsilon >= 0:
        return curve.delta_at(epsilon)
    delta = curve.delta_at(-epsilon)

    def value(end: float) -> Callable[[], arb]:
        return lambda: -to_arb(epsilon).expm1() + to_arb(epsilon).exp() * arb(end)

    return Enclosure(enclose(value(delta.lower)).lower, enclose(value(delta.upper)).upper)


def laplace_threshold(
    *, scale: Real, threshold: Real, groups: Real = 1, sensitivity: Real = 1
) -> PartitionSelection:
    """`PartitionSelection` with Laplace noise.

    Parameters
    ----------
    scale : b > 0 of the noise on a count
    threshold, groups : as there
    sensitivity : how much one person adds to a count at most
    """
    noise = Laplace(scale=scale, sensitivity=sensitivity)
    return PartitionSelection(noise=noise, threshold=threshold, groups=groups)


def gaussian_threshold(
    *, sigma: Real, threshold: Real, groups: Real = 1, sensitivity: Real = 1
) -> PartitionSelection:
    """`PartitionSelection` with Gaussian noise.

    Parameters
    ----------
    sigma : σ > 0 of the noise on a count
    threshold, groups : as there
    sensitivity : how much one person adds to a count at most
    """
    noise = Gaussian(sigma=sigma, sensitivity=sensitivity)
    return PartitionSelection(noise=noise, threshold=threshold, groups=groups)
