"""Parallel composition: releases of disjoint parts of the data cost as much as the dearest.

Let the parts be disjoint, and which part a row is in decided by that row alone. Neighbours by one
row that comes or goes then differ in one part, which nobody has to know. Releases of the other
parts have the same laws on both sides, so that the joint pair is that of the one part, with what is
common: δ(ε) is the part's, and the guarantee is the maximum of the parts' δ(ε) (McSherry 2009,
theorem 4, for pure privacy). So it is where a later release is chosen by earlier ones of other
parts: given the past, all but one of the factors are equal.

A row that is *replaced* may leave one part and enter another, and the rows of one user, or of a
group, may be in many; another order of the rows, and answers that all move, change every part. Then
several parts differ, and their curves add up, if each is the same in both orders, as one part may
lose a row that another gains: `parallel` refuses such neighbours. Values that move
while the rows keep their places are fine where the places decide the parts.

**Composed with others.** Several releases of the same parts add up part by part, and the maximum
comes last: ``parallel(a + c, b + d)``. A sum of maxima would be more. So this curve has the losses
of one part only where that part's noise is known to dominate the others'.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.data.adjacency import (
    L2,
    AddRemove,
    Adjacency,
    Edge,
    Group,
    LInf,
    Permutation,
    Replace,
)
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, check_no_draw, common_adjacency

__all__ = ["Parallel", "parallel"]

_SEVERAL = AddRemove | Replace | Group | Permutation | L2 | LInf | Edge  # may change several parts


def parallel(*curves: PrivacyCurve) -> PrivacyCurve:
    """What releases of disjoint parts of the data guarantee together.

    Parameters
    ----------
    curves : of each part, for the same neighbours: one row comes or goes, as where they don't say
        whom they protect, or moves in its place

    Raises
    ------
    ParameterError
        If there is no curve, the adjacencies differ, or a row may change its part.

    Examples
    --------
    >>> import dpverify as dpv
    >>> from dpverify.accounting.composition.parallel import parallel
    >>> north, south = dpv.Laplace(scale=2), dpv.Laplace(scale=4)
    >>> parallel(north, south).epsilon_at(delta=0).upper
    0.5
    >>> parallel(3 * north, 5 * south).epsilon_at(delta=0).upper
    1.5
    """
    require(bool(curves), "curves", "none", "at least one")
    return Parallel(curves=curves)


def _to_parts(values: tuple[PrivacyCurve, ...]) -> tuple[PrivacyCurve, ...]:
    for value in values:
        require(isinstance(value, PrivacyCurve), "curve", value, "a privacy curve")
        check_no_draw(value)
    adjacency = common_adjacency([value.adjacency for value in values])
    if isinstance(adjacency, _SEVERAL) and adjacency != AddRemove():
        raise ParameterError(
            "adjacency",
            adjacency.unit,
            "one by which a single part changes",
            "A replaced row may leave one part and enter another, and a user, a group or an order "
            "be of many: add up the curves of as many parts as may change, of samples those with "
            "replaced=True.",
        )
    return values


@frozen(kw_only=True)
class Parallel(PrivacyCurve):
    """The largest of several curves at every ε: see `parallel`.

    Parameters
    ----------
    curves : of the parts
    """

    curves: tuple[PrivacyCurve, ...] = field(converter=_to_parts)

    @property
    def adjacency(self) -> Adjacency:
        """That of all parts; one row, added or removed, where that wasn't said."""
        return self.curves[0].adjacency or AddRemove()

    def __str__(self) -> str:
        return f"parallel({', '.join(map(str, self.curves))})"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return _largest([curve.delta_at(epsilon) for curve in self.curves])

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return _largest([curve.epsilon_at(delta) for curve in self.curves])

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """Those of the part that has the largest δ at this threshold."""
        at = max(threshold, 0.0)
        worst = max(self.curves, key=lambda curve: curve.delta_at(at).upper)
        return worst.rates(threshold, noise=noise)

    def losses(self) -> Losses:
        """Those of the part that dominates, where one is known to.

        Raises
        ------
        ParameterError
            If none is.
        """
        every = [curve.losses() for curve in self.curves]
        for one in every:
            if all(_dominates(one, other) for other in every):
                return one
        raise ParameterError(
            "curve",
            self,
            "one whose privacy loss is known",
            "Add up the releases of each part, and take parallel(…) of the sums.",
        )


def _dominates(one: Losses, other: Losses) -> bool:
    """Whether a release is known to tell all that another tells."""
    if one == other:
        return True
    match one, other:
        case ((GaussianLoss() as first, n),), ((GaussianLoss() as second, m),):
            return n * first.mu_squared >= m * second.mu_squared
        case ((LaplaceLoss() as first, n),), ((LaplaceLoss() as second, m),):
            return n >= m and first.shift >= second.shift
    return False


def _largest(values: list[Enclosure]) -> Enclosure:
    return Enclosure(max(value.lower for value in values), max(value.upper for value in values))
