"""δ(ε) of bounded losses near the largest that they can be, on a grid that is rounded both ways.

Where few losses are composed, M stays high along its line; and far out, where δ is tiny, no number
of nodes resolves what lies next to ε. But there little can happen. Let
each loss be its largest value less a drop D ≥ 0, and g the gap from ε to the sum of the largest
ones. Then f(ε) = E[(1 − e^{D − g})₊] of the sum D of the drops: it falls where drops are rounded up
and rises where they are rounded down, and drops of g or more count for nothing. So the laws of the
drops are put on a grid of step h over [0, g], and multiplied as power series in balls, cut off at
its end. Drops of 0, the atoms at the top, are exact.

A sum of n drops is off by at most nh, and so is ε. That is a share of g, not of ε: where δ is tiny
g is as well. Elsewhere other methods are sharper, and this is the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from flint import arb, arb_poly, ctx

from dpverify.accounting.losses.base import Losses, PrivacyLoss
from dpverify.accounting.losses.continuous import LaplaceLoss
from dpverify.accounting.losses.discrete import AtomicLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.enclosure import to_arb
from dpverify.errors import NumericalError

__all__ = ["Drops", "has_drops"]

_CELLS = 1 << 12
_FIRST_LOOK, _PRECISION = 2048, 192
_MOST = 10**9  # losses, of which each may be off by a cell

_Tails = tuple[list[arb], list[arb]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """f(ε) between its values for drops that are rounded up and down."""

    losses: Losses

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        with ctx.workprec(_FIRST_LOOK):
            gap = _largest(self.losses) - epsilon
            if not gap > 0:
                return arb(0).union(gap.upper().max(arb(0)))  # f ≤ 1 − e^{−g} ≤ g
            exponent = math.ceil(float(gap.upper().log() / arb(2).log()) + 1e-9)
        with ctx.workprec(_PRECISION + 2 * max(-exponent, 0)):
            step = arb(2) ** exponent / _CELLS
            low, high = (_sums(self.losses, exponent, ctx.prec, up) for up in (True, False))
            return _value(low, gap.lower(), step).union(_value(high, gap.upper(), step))


def has_drops(losses: Losses) -> bool:
    """Whether all losses are bounded, few enough for a grid, of laws that can be put on one."""
    return sum(count for _, count in losses) <= _MOST and all(
        has_drops(loss.losses)
        if isinstance(loss, PositionLoss)
        else isinstance(loss, AtomicLoss | LaplaceLoss)
        for loss, _ in losses
    )


def _value(sums: _Tails, gap: arb, step: arb) -> arb:
    """E[(1 − e^{D − g})₊] for an exact gap."""
    last = (gap / step).floor().unique_fmpz()
    if last is None:
        raise NumericalError(f"the gap {gap} is on the grid")
    own, other = (column[min(int(last), _CELLS)] for column in sums)
    return (own - (-gap).exp() * other).max(arb(0))


@lru_cache(maxsize=16)
def _sums(losses: Losses, exponent: int, precision: int, up: bool) -> _Tails:
    """Σ w and Σ w·e^{drop} over the first cells, at a precision, the one in force."""
    step = arb(2) ** exponent / _CELLS
    law = _product(losses, step, up).coeffs()
    law += [arb(0)] * (_CELLS + 1 - len(law))
    grown = (weight * (k * step).exp() for k, weight in enumerate(law))
    return list(accumulate(law)), list(accumulate(grown))


def _product(losses: Losses, step: arb, up: bool) -> arb_poly:
    total = arb_poly([1])
    for loss, count in losses:
        square, left = _law(loss, step, up), count
        while left:
            if left % 2:
                total = (total * square).truncate(_CELLS + 1)
            left //= 2
            if left:
                square = (square * square).truncate(_CELLS + 1)
    return total


def _law(loss: PrivacyLoss, step: arb, up: bool) -> arb_poly:
    """Drops of one loss on the grid, those beyond it left out."""
    if isinstance(loss, LaplaceLoss):
        return _laplace(to_arb(2 * loss.shift), step, up)
    if isinstance(loss, PositionLoss):
        inner, most = _product(loss.losses, step, up), _largest(loss.losses)
        if not (most >= 0 or most < 0):
            raise NumericalError(f"the sign of {most} stays open")
        share = to_arb(loss.differ)
        zero = arb(0)
        idle, differing = (most, zero) if most >= 0 else (zero, -most)
        moved = _on_grid([(differing, share)], step, up) * inner
        return (moved + _on_grid([(idle, 1 - share)], step, up)).truncate(_CELLS + 1)
    assert isinstance(loss, AtomicLoss)  # noqa: S101
    atoms = sorted(loss.atoms(), key=lambda atom: atom[1].mid(), reverse=True)
    top = atoms[0][1]
    if not all(place < top for _, place in atoms[1:]):
        raise NumericalError(f"atoms near {top} stay unordered")
    return _on_grid(
        [(arb(0), atoms[0][0]), *((top - place, weight) for weight, place in atoms[1:])], step, up
    )


def _laplace(most: arb, step: arb, up: bool) -> arb_poly:
    """Half is at 0; drops of x or more, up to 2a = `most`, have the mass e^{−x/2}/2."""
    last = min(int((most / step).lower().floor().unique_fmpz()), _CELLS + 1)
    fall = (-step / 2).exp()
    cell = -(-step / 2).expm1() / 2
    cells = list(accumulate([fall] * max(last - 1, 0), lambda x, y: x * y, initial=cell))[:last]
    inner = arb_poly([arb(0), *cells] if up else cells).truncate(_CELLS + 1)
    rest = (-step * last / 2).exp() / 2
    # What is left lies between the last whole cell and the end.
    end = most if up else step * last
    return inner + _on_grid([(arb(0), arb(1) / 2), (end, rest)], step, up)


def _on_grid(drops: Iterable[tuple[arb, arb]], step: arb, up: bool) -> arb_poly:
    cells = [arb(0)] * (_CELLS + 1)
    for drop, weight in drops:
        place = drop / step
        end = place.upper().ceil() if up else place.lower().floor()
        if end <= _CELLS:
            cells[max(int(end.unique_fmpz()), 0)] += weight
    return arb_poly(cells)


def _largest(losses: Losses) -> arb:
    total = arb(0)
    for loss, count in losses:
        most = loss.max_loss()
        assert most is not None  # noqa: S101
        total += count * most
    return total
