"""How many secret rows to release: by the exact deviation of a cut, or by the paper's bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpverify.enclosure import enclose, to_arb
from dpverify.errors import require
from dpverify_mechanisms.secret.sketch import CutSketch

__all__ = ["CutDesign", "cut_designs", "rows_for_accuracy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutDesign:
    """A choice of rows with its smoothing and the standard deviation of a cut's estimate."""

    rows: int
    w: Fraction
    deviation: float


def cut_designs(
    *,
    p: int,
    epsilon: Fraction,
    delta: Fraction,
    size: int,
    cut: float,
    most_rows: int = 16384,
) -> tuple[CutDesign, ...]:
    """Calibrated designs with rows doubling up to `most_rows`, the least deviation last or near it.

    With γ calibrated, w/(1 − w/n) = 2/γ, so a cut of value C around s vertices has the standard
    deviation √(2/r)·(2s(n − s)/(nγ) + C). As √(r/2)·γ rises to the μ of the Gaussian mechanism
    with the same (ε, δ), it falls to 2s(n − s)/(nμ) with growing r, whatever C: more rows cost
    computation only. Take the first design whose deviation is good enough.

    Parameters
    ----------
    p, epsilon, delta : as in `CutSketch.calibrated`
    size, cut : s and C of the cut of interest
    most_rows : largest r
    """
    designs = []
    rows = 16
    while rows <= most_rows:
        sketch = CutSketch.calibrated(p=p, sketch_rows=rows, epsilon=epsilon, delta=delta)
        lifted = float(sketch.w / sketch.share) * size * (p - size) / p
        deviation = math.sqrt(2 / rows) * (lifted + cut)
        designs.append(CutDesign(rows=rows, w=sketch.w, deviation=deviation))
        rows *= 2
    return tuple(designs)


def rows_for_accuracy(*, eta: Fraction, nu: Fraction) -> int:
    """Rows r = ⌈8 ln(2/ν)/η²⌉: a relative error of η with probability 1 − ν, for one query.

    Blocki et al. 2012, section 3: the error is relative to the smoothed graph's cut.
    """
    require(0 < eta < 1, "eta", eta, "in (0, 1)")
    require(0 < nu < 1, "nu", nu, "in (0, 1)")
    return math.ceil(enclose(lambda: 8 * (2 / to_arb(nu)).log() / to_arb(eta) ** 2).upper)
