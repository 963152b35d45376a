"""The precision attack: outputs that one neighbour's floats can reach and the other's can't.

Doubles are not evenly spread. 0 + noise keeps every low bit that the noise has; 1 + noise is a
multiple of half the spacing of doubles near 1, and loses them: Mironov 2012, "On significance of
the least significant bits for differential privacy". So a small output with finer bits than 1 +
noise can have tells which neighbour it was, whatever the scale of the noise. The same holds of a
lattice: whole-number noise on 0.25 and on 0.5 gives outputs of different phases.

**Views.** A view puts every coordinate of an output into a cell, and says how deep it goes there.

- *grid*: one cell for all finite numbers; of y = (odd number)·2^t the depth is −t.
- *binade*: a cell for each sign and exponent of y, pooled over the coordinates or apart for each;
  the depth is −t.
- *phase*: y modulo 2^j in sixteenths, for several j; the depth is 0.
- *residue*: ⌊y⌋ modulo m, for several m: what a whole number shows beside its size, such as its
  parity or its last digit; the depth is 0.

The draws are those that other attacks count, too.

Both zeros and both infinities have cells of their own, in every view.

**Events.** For a view, an ordered pair of neighbours and the first eighth of the draws, the event
is that some coordinate is deeper in its cell than the other side ever was (or in a cell where it
never was), for the cells in which the own side did so at least `_LEAST` times. The second eighth
chooses among the views; the rest is counted and tested by the exact test of two binomials. An event
is a function of the output, chosen by draws that the test doesn't use, so the level holds whatever
was learned; each ordered pair has an equal share of it. Of outputs that aren't arrays of one shape
the coordinates are features (`features`), learned from that eighth too. Integer outputs are read as
doubles, those beyond 2⁵³ as two: the last 32 bits, and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.attacks.base import Attack, Target, counted
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import EventEvidence, Finding, Verdict
from dpverify.auditing.outputs.arrays import whole
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.leaves import inexact, low_bits
from dpverify.auditing.outputs.values import Value
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import Judgement, judge
from dpverify.auditing.statistics.power import DETECTION, least_hits
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Mechanism, Pair

__all__ = ["VIEWS", "PrecisionAttack", "Unreached", "View", "smallest_share", "unreached"]

View = Callable[[NDArray[np.float64]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Cells and depths of outputs of shape (draws, coordinates), both of that shape."""

_LEAST = 5  # training outputs that must have been deeper than the other side's
_SPECIAL = 1 << 40  # cells from here on are those of ±0 and ±∞
_APART = 1 << 16  # distance of the cells of different coordinates, above all exponents
_MODULI = range(-20, 1, 2)  # j of the phase views
_PHASES = 16
_RESIDUES = (3, 4, 5, 7, 10, 16, 100, 256)  # m of the residue views; of 2 the low bits tell
_LARGEST = 50.0  # nats; no draws reach beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """The event that some coordinate goes deeper in its cell than the other side ever did.

    Attributes
    ----------
    cells : sorted, of shape (n,)
    depths : for each, the largest depth of the other side; the least int64 where it never was
    """

    cells: NDArray[np.int64]
    depths: NDArray[np.int64]

    def holds(self, cells: NDArray[np.int64], depths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether it happened, of shape (draws,), for a view's (draws, coordinates)."""
        if self.cells.size == 0:
            return np.zeros(len(cells), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.cells, cells), self.cells.size - 1)
        deeper = (self.cells[place] == cells) & (depths > self.depths[place])
        return np.asarray(deeper.any(axis=1))


def unreached(
    own: tuple[NDArray[np.int64], NDArray[np.int64]],
    other: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Unreached:
    """Learn the event from both sides' training draws, each a view's cells and depths."""
    never = np.iinfo(np.int64).min
    cells = np.unique(own[0])
    depths = np.full(cells.size, never)
    place = np.minimum(np.searchsorted(cells, other[0]), cells.size - 1)
    known = cells[place] == other[0]
    np.maximum.at(depths, place[known], other[1][known])
    place = np.searchsorted(cells, own[0])
    deeper = own[1] > depths[place]
    kept = np.bincount(place[deeper], minlength=cells.size) >= _LEAST
    return Unreached(cells=cells[kept], depths=depths[kept])


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionAttack(Attack):
    """Looks for outputs of one neighbour whose low bits, zeros or phases the other can't have.

    A coordinate that is 0 without noise for one of the neighbours shows most. Of the draws on each
    side of each pair three quarters are counted.

    Parameters
    ----------
    only_whole : whether to say nothing (inconclusive) once an output isn't a whole number
    """

    name: ClassVar[AuditKind] = "precision"
    shares: ClassVar[bool] = True
    only_whole: bool = False

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """One finding of all pairs.

        Inconclusive where the draws are too few to refute the claim by any event.

        Raises
        ------
        DrawError
            If the mechanism can't be drawn from.
        ParameterError
            If there are fewer than 40 draws, or outputs that aren't numbers.
        """
        require(config.draws >= 40, "draws", config.draws, "at least 40")
        mechanism, pairs, curve = target.mechanism, target.drawable, target.claim
        delta = config.delta_for(curve)
        # Rounded down, so that no sum passes alpha.
        level = config.alpha / (2 * len(pairs)) * (1 - 1e-12)
        ratio = math.exp(min(claimed_epsilon(curve, delta), _LARGEST))
        tested: list[_Tested] = []
        for pair in pairs:
            if target.spares(pair, any(one.refuted for one in tested)):
                continue
            outputs = counted(target, pair, config).outputs
            if self.only_whole and not all(whole(side) for side in outputs):
                return [_left_out(mechanism, pair, config.alpha)]
            own, other = _coordinates(*outputs, mechanism)
            for swapped, sides in ((False, (own, other)), (True, (other, own))):
                view, counts = _counted(*sides, ratio=ratio)
                judged = judge(counts, curve, delta, level) if _leans(counts) else _NOTHING
                tested.append(
                    _Tested(pair=pair, swapped=swapped, view=view, counts=counts, judged=judged)
                )
        best = max(tested, key=lambda one: (one.refuted, one.judged.epsilon_lower))
        share = smallest_share(curve, delta, config.draws - config.draws // 4, level)
        return [best.finding(mechanism, config.alpha, share)]


def _left_out(mechanism: Mechanism, pair: Pair, alpha: float) -> Finding:
    statement = (
        f"{display_name(mechanism)}, at the pair “{pair.name}”: not all outputs are whole numbers, "
        "and the precision of doubles is left out"
    )
    return Finding(
        audit="precision", verdict="inconclusive", statement=statement, level=alpha, pair=pair
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """What was found at one pair in one order.

    Attributes
    ----------
    pair, swapped : whether the event's own side is the neighbour
    view : that was chosen in training, "" for none
    counts, judged : of its event on the draws left for that, and what they prove
    """

    pair: Pair
    swapped: bool
    view: str
    counts: Counts
    judged: Judgement

    @property
    def refuted(self) -> bool:
        """Whether the counts refute the claim."""
        return self.judged.refuted_at is not None

    def finding(self, mechanism: Mechanism, alpha: float, share: float | None) -> Finding:
        """The finding; `share` is the smallest that would have been found, None if none would."""
        counts, name = self.counts, display_name(mechanism)
        silent: Verdict = "no_violation_found" if share is not None else "inconclusive"
        side, opposite = ("neighbour", "record") if self.swapped else ("record", "neighbour")
        statement = f"{name}: no detail of its outputs came from one neighbour alone"
        if self.view:
            statement = (
                f"{name}, at the pair “{self.pair.name}”: outputs that in training the {opposite} "
                f"never reached ({self.view}) came {counts.hits} times of {counts.draws} from the "
                f"{side}, and {counts.false_hits} times from the {opposite}"
            )
        return Finding(
            audit="precision",
            verdict="violation" if self.refuted else silent,
            statement=statement,
            level=alpha,
            pair=self.pair,
            epsilon_lower=self.judged.epsilon_lower,
            evidence=EventEvidence(
                event=self.view,
                swapped=self.swapped,
                hits=counts.hits,
                draws=counts.draws,
                false_hits=counts.false_hits,
                false_draws=counts.false_draws,
                refuted_at=self.judged.refuted_at,
            ),
            power={"smallest_share": share},
        )


_NOTHING = Judgement(epsilon_lower=0.0, refuted_at=None)


def _coordinates(
    own: NDArray[Any], other: NDArray[Any], mechanism: Mechanism
) -> list[NDArray[np.float64]]:
    if own.dtype == object and isinstance(own[0], Value):
        # Learned where events are: what is counted has no part in it.
        eighth = len(own) // 8
        leaves = features(np.concatenate([own[:eighth], other[:eighth]]))
        return [leaves.matrix(outputs) for outputs in (own, other)]
    for outputs in (own, other):
        if outputs.dtype.kind not in "biuf":
            raise ParameterError(
                "outputs",
                f"{outputs.dtype} of {display_name(mechanism)}",
                "numbers",
                "Sets have no precision to attack.",
            )
    sides = [outputs.reshape(len(outputs), -1) for outputs in (own, other)]
    # By the first eighth alone: what is an event must not depend on the draws that are counted.
    if all(flat.dtype.kind in "iu" for flat in sides) and any(
        np.any(inexact(flat[: len(flat) // 8])) for flat in sides
    ):
        sides = [np.concatenate([flat >> 32, low_bits(flat)], axis=1) for flat in sides]
    return [flat.astype(np.float64) for flat in sides]


def _leans(counts: Counts) -> bool:
    """Whether the event came more often on its own side; else nothing is to be refuted by it."""
    return counts.hits > counts.false_hits


def _counted(
    own: NDArray[np.float64], other: NDArray[np.float64], *, ratio: float
) -> tuple[str, Counts]:
    """The view chosen, "" for none, and the counts of its event on the draws left for them."""
    first, second = len(own) // 8, len(own) // 4
    chosen, best, event = "", 0.0, None
    for name, view in VIEWS.items():
        trained = unreached(view(own[:first]), view(other[:first]))
        if trained.cells.size == 0:
            continue
        hits, false_hits = (
            int(trained.holds(*view(side[first:second])).sum()) for side in (own, other)
        )
        # Excess over the claim in its standard errors.
        score = (hits - ratio * false_hits) / math.sqrt(hits + ratio**2 * (false_hits + 1))
        if score > best:
            chosen, best, event = name, score, trained
    if event is None:
        return "", Counts(hits=0, false_hits=0, draws=len(own) - second)
    view = VIEWS[chosen]
    counted, leaked = (int(event.holds(*view(side[second:])).sum()) for side in (own, other))
    return chosen, Counts(hits=counted, false_hits=leaked, draws=len(own) - second)


def _lowest_bit(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The t of (odd number)·2^t, for finite values other than 0; 0 for the others."""
    usual = np.isfinite(values) & (values != 0)
    fraction, exponent = np.frexp(np.where(usual, np.abs(values), 1.0))
    digits = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return np.asarray(np.where(usual, exponent - 53 + zeros, 0), dtype=np.int64)


def _with_specials(
    values: NDArray[np.float64], cells: NDArray[np.int64], depths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells with ±0 and ±∞ set apart."""
    special = ~np.isfinite(values) | (values == 0)
    kind = 2 * np.isinf(values) + np.signbit(values)
    return np.where(special, _SPECIAL + kind, cells), np.where(special, 0, depths)


def _grid(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return _with_specials(values, np.zeros(values.shape, dtype=np.int64), -_lowest_bit(values))


def _binade(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))[1].astype(np.int64)
    return _with_specials(values, 2 * exponent + np.signbit(values), -_lowest_bit(values))


def _apart(view: View) -> View:
    """The view with cells of their own for every coordinate."""

    def view_apart(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cells, depths = view(values)
        return cells + _APART * np.arange(values.shape[1]), depths

    return view_apart


def _phase(power: int) -> View:
    def view(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(values, -power)
        turns = np.where(np.isfinite(scaled), scaled, 0.0) % 1.0  # so large ones are whole turns
        # Half a sixteenth off, so that round-off near a multiple of the modulus stays in one cell.
        cells = np.floor(turns * _PHASES + 0.5).astype(np.int64) % _PHASES
        return _with_specials(values, cells, np.zeros(values.shape, dtype=np.int64))

    return view


def _residue(modulus: int) -> View:
    def view(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        finite = np.where(np.isfinite(values), values, 0.0)
        cells = (np.floor(finite) % modulus).astype(np.int64)
        return np.where(np.isfinite(values), cells, _SPECIAL), np.zeros(values.shape, np.int64)

    return view


VIEWS: Mapping[str, View] = MappingProxyType(
    {
        "low bits": _grid,
        "low bits, by coordinate": _apart(_grid),
        "low bits, by binade": _binade,
        "low bits, by coordinate and binade": _apart(_binade),
        **{f"phase modulo 2**{power}": _phase(power) for power in _MODULI},
        **{f"residue modulo {modulus}": _residue(modulus) for modulus in _RESIDUES},
    }
)
"""All views, by the name that a finding gives them."""


@lru_cache(maxsize=256)
def smallest_share(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> float | None:
    """Share of outputs out of the other side's reach that are found with probability 0.99.

    Given that the training draws chose their event: p with P[Bin(draws, p) ≥ least] = 0.99, for
    the least number of hits that refutes the claimed (ε, δ) without any false hits; None if none.
    """
    lines = claim_lines(min(claimed_epsilon(curve, delta), _LARGEST), float(delta))

    def refuted(hits: int) -> bool:
        counts = Counts(hits=hits, false_hits=0, draws=draws)
        return counts.refutes(lines, alpha=level, delta=float(delta))

    hits = least_hits(refuted, draws)
    if hits is None:
        return None
    return float(scipy.special.betaincinv(hits, draws - hits + 1, DETECTION))
