"""An audit of scores that somebody has: of canaries, say, or of any membership inference.

**Designs.** Which bound is valid depends on how the scores came about.

- ``independent``: every score is of a run of its own, with the record or without it (or of records
  whose scores are independent for another reason), and the function that scores was fixed before.
  ε is bounded by three arguments with fixed parts of the level, which add up: 9/20 for scores above
  ranks of the other side, 3/20 for those below (`tail_bound`), and 2/5 for one event that a sixth
  of the scores chooses, a quarter where they are few, and the others count, by the exact test of
  two binomials. Which of them choose is drawn without looking at the scores, so that both parts are
  independent draws of the same law, whatever order they are in. The first two find what large
  scores show, and the third what any event does: ties, both signs, few thresholds.
- ``one-run``: canaries were put into the training set each by its own fair coin, and one run, or
  several with coins of their own, scored them all (`one_run_bound`). The scores may depend on each
  other, but not on the coins except through the run. Limits of the ROC need independent scores, so
  there are none.

Other designs are refused where they can be seen: several scores of one run among those called
independent, a matrix of scores, coins that aren't fair. Scores of k canaries from each of n runs
are either n independent numbers, after each run was reduced to one, or nk canaries of one-run
design.

**Levels.** Each of these is wrong with probability at most α by itself: the bound on ε; the area
under the ROC's two limits together (`area_limits`); everything that is read off the band, at all
thresholds at once (`trade_off`): the rates of true positives, and ε and δ at other points.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify._axes import axes_or_new
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.attacks.trade_off import Band, band
from dpverify.auditing.formatting import at_least, at_most, exactly, jsonable
from dpverify.auditing.statistics.claim_test import curve_lines
from dpverify.auditing.statistics.gaussian_model import GaussianFit, gaussian_fit
from dpverify.auditing.statistics.score_bounds import (
    Shown,
    area_limits,
    one_run_bound,
    tail_bound,
)
from dpverify.data.rows import row_key
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import ParameterError, require, require_known
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import level
from dpverify.visible import shown

__all__ = ["HELD", "INEXACT", "Design", "Rate", "ScoreAudit", "audit_scores", "independent_bound"]

Array = NDArray[np.float64]
Design = Literal["independent", "one-run"]
INEXACT = 2**53
"""From here on two whole numbers may be one double."""
HELD = "a number that a double holds; so are the ranks of all scores"

_ABOVE, _BELOW, _CHOSEN = 0.45, 0.15, 0.40
_CHOOSING, _FEW = 6, 150  # one of so many scores chooses the event; a quarter up to so many
_LEAST_CHOOSING = 8  # scores of a side
_RATES = (0.001, 0.01)
_UNFAIR = 5.0  # standard errors: more often than once in a million fair coins don't differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The true positives of the threshold whose rate of false positives is at most `fpr`.

    Attributes
    ----------
    fpr : where it is taken
    tpr : of the scores themselves
    lower, upper : limits, of the band
    """

    fpr: float
    tpr: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAudit:
    """What scores of both sides show of any mechanism that they were computed from.

    Attributes
    ----------
    delta : where ε is bounded
    alpha : level of each limit
    design : how the scores came about
    draws, false_draws : numbers of scores with and without
    epsilon_lower : lower confidence limit of ε at delta, in nats
    event : what shows it, in words; "" for nothing
    auc, auc_limits : area under the ROC of {score ≥ t}, and its limits of independent scores
    rates : of true positives at 0.1 % and 1 % of false ones; of independent scores
    band : on the whole ROC, for bounds at other δ and ε; of independent scores
    gaussian_model : ε by a model that these scores don't reject, labelled as such, and never shown
        without it; of at least 8 independent scores a side and a positive delta
    roc : rates of false and true positives of the scores themselves
    """

    delta: Fraction
    alpha: float
    design: Design
    draws: int
    false_draws: int
    epsilon_lower: float
    event: str
    auc: float
    auc_limits: tuple[float, float] | None
    rates: tuple[Rate, ...]
    band: Band | None = field(repr=False)
    gaussian_model: GaussianFit | None
    roc: tuple[tuple[float, float], ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """By JSON's own types, without the curves."""
        names = (name for name in self.__slots__ if name not in ("band", "roc"))
        values = {name: jsonable(getattr(self, name)) for name in names}
        return values | {"delta": float(self.delta)}

    def __str__(self) -> str:
        return "\n".join([self._head, *(f"  {line}" for line in self._details())])

    @property
    def _head(self) -> str:
        bound = f"epsilon is at least {at_least(self.epsilon_lower)} at delta {exactly(self.delta)}"
        return f"{bound}, at level {self.alpha:g}"

    def _details(self) -> list[str]:
        size = f"{self.draws} scores with and {self.false_draws} without, {self.design}"
        lines = [f"{self.event}, of {size}" if self.event else f"by {size}"]
        limits = ""
        if self.auc_limits is not None:
            low, high = self.auc_limits
            limits = f", between {at_least(low, '.4f')} and {at_most(high, '.4f')}"
        lines.append(f"AUC {self.auc:.4f}{limits}")
        lines += [
            f"TPR {rate.tpr:.4f} at FPR {100 * rate.fpr:g} %, "
            f"between {at_least(rate.lower, '.4f')} and {at_most(rate.upper, '.4f')}"
            for rate in self.rates
        ]
        fit = self.gaussian_model
        if fit is None:
            return lines
        if fit.epsilon_lower is None:
            return [*lines, f"a Gaussian model doesn't fit (p = {fit.p_value:.3g})"]
        least = at_least(fit.epsilon_lower, ".4g")
        return [
            *lines,
            f"under a Gaussian model, which they don't reject (p = {fit.p_value:.3g}) and "
            f"can't show, mu = {fit.mu:.4g} and epsilon at least {least}",
        ]

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(line)}</li>" for line in self._details())
        return f"<p>{escape(self._head)}</p><ul>{items}</ul>"

    def plot(self, axes: Any = None, *, claim: PrivacyCurve | None = None) -> Any:
        """Draw the ROC in its band, and what a claim allows; return matplotlib's axes.

        Parameters
        ----------
        axes : where to draw; new ones by default
        claim : whose region is drawn; by default the ε and δ of the bound
        """
        axes = axes_or_new(axes)
        region = f"allowed by {claim}"
        if claim is None:
            claim = ApproxDP(epsilon=Fraction(self.epsilon_lower), delta=self.delta)
            region = f"allowed at ε = {at_least(self.epsilon_lower, '.3g')}"
        grid = np.concatenate([[0.0], np.geomspace(1e-5, 1, 400)])
        lines = curve_lines(claim, self.delta)
        allowed = np.clip(np.min([slope * grid + base for slope, base in lines], axis=0), 0, 1)
        # The complements of events are events too.
        others = 1 - np.interp(1 - grid, grid, allowed)
        axes.fill_between(grid, others, allowed, alpha=0.15, label=region)
        if self.band is not None:
            lower, upper = (np.array([(0, 0), *points, (1, 1)]).T for points in self.band.roc)
            least = np.maximum.accumulate(lower[1])
            most = np.minimum.accumulate(upper[1][::-1])[::-1]
            axes.step(lower[0], least, ":", color="grey", where="post", label="ROC, at least")
            axes.step(upper[0], most, "--", color="grey", where="pre", label="ROC, at most")
        axes.step(*np.array(self.roc).T, where="post", label=f"ROC, area {self.auc:.3f}")
        axes.set(xlabel="false positives", ylabel="true positives", title=self._head)
        axes.legend(loc="lower right")
        return axes


@usual_arithmetic()
def audit_scores(
    with_: ArrayLike,
    without: ArrayLike,
    *,
    delta: Real,
    alpha: Real = 0.05,
    design: Design = "independent",
    runs: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> ScoreAudit:
    """Bound ε from below by scores that somebody has.

    Scores with the record should be the larger ones, for the rates and the area; the bound on ε
    finds other differences too.

    Parameters
    ----------
    with_, without : array_like of shape (n,) and (m,)
        Scores of runs with the record, and of runs without it; of one-run design those of canaries
        that were in, and of canaries that were out. Infinities are scores.
    delta : real in [0, 1)
        Where ε is bounded.
    alpha : real in (0, 1)
        Probability with which the bound is above the true ε.
    design : "independent" or "one-run"
        How the scores came about: see this module's first lines.
    runs : two sequences
        Of which run each score is, by any name; independent scores are of different runs.

    Raises
    ------
    ParameterError
        If the scores aren't two rows of numbers, a value is outside its domain, or the design
        isn't one of those.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> audit = audit_scores(rng.normal(3, 1, 500), rng.normal(0, 1, 500), delta="1e-5")
    >>> audit.epsilon_lower > 3.5
    True
    >>> audit.event
    '321 of 500 scores pass the rank 1 of 500 on the other side'
    """
    exact = rational("delta", delta)
    require(0 <= exact < 1, "delta", delta, "in [0, 1)")
    alpha = level("alpha", alpha)
    require_known("design", design, get_args(Design))
    own, other = _scores("with_", with_), _scores("without", without)
    if runs is not None:
        _require_designed(own, other, runs, design)
    at = Enclosure.of_exact(exact).upper
    require(at < 1, "delta", delta, "below 1 as a double")
    if design == "one-run":
        _require_fair(own.size, other.size)
        shown = one_run_bound(own, other, delta=at, alpha=alpha)
    else:
        shown = independent_bound(own, other, delta=at, alpha=alpha)
    independent = design == "independent"
    limits = band(own, other, alpha=alpha) if independent else None
    area, *ends = area_limits(own, other, alpha=alpha)
    roc = _roc(own, other)
    model = None
    if independent and exact > 0 and min(own.size, other.size) >= _LEAST_CHOOSING:
        model = gaussian_fit(own, other, delta=exact, alpha=alpha)
    return ScoreAudit(
        delta=exact,
        alpha=alpha,
        design=design,
        draws=own.size,
        false_draws=other.size,
        epsilon_lower=shown.epsilon,
        event=shown.event,
        auc=area,
        auc_limits=(ends[0], ends[1]) if independent else None,
        rates=tuple(_rate(fpr, roc, limits) for fpr in _RATES) if limits else (),
        band=limits,
        gaussian_model=model,
        roc=roc,
    )


def independent_bound(
    own: Array, other: Array, *, delta: float, alpha: float, best: Shown | None = None
) -> Shown:
    """The largest of three lower bounds on ε, whose levels add up to alpha.

    Parameters
    ----------
    own, other : independent scores, of shapes (n,) and (m,)
    delta : in [0, 1)
    alpha : level of the bound, in (0, 1)
    best : another bound, given back where this one isn't larger
    """
    best = tail_bound(own, other, delta=delta, alpha=_ABOVE * alpha, best=best)
    best = tail_bound(-other, -own, delta=delta, alpha=_BELOW * alpha, best=best)
    if min(own.size, other.size) >= _LEAST_CHOOSING:
        best = _chosen_bound(own, other, delta=delta, alpha=_CHOSEN * alpha, best=best)
    return best


def _chosen_bound(own: Array, other: Array, *, delta: float, alpha: float, best: Shown) -> Shown:
    """Lower bound on ε by one event that a part of the scores chooses, and the others count.

    The best of the others where it isn't larger.
    """
    drawn = np.random.Generator(np.random.PCG64(0))
    own, other = drawn.permutation(own), drawn.permutation(other)
    first, second = (max(n // _CHOOSING, min(n // 4, _FEW)) for n in (own.size, other.size))
    choice = choose(own[:first], other[:second], delta=delta, classifiers=False)
    counts = choice.count(own[first:], other[second:])
    epsilon = counts.epsilon_lower(
        delta=delta, alpha=alpha, caution=choice.caution, least=best.epsilon
    )
    if epsilon <= best.epsilon:
        return best
    event = (
        f"{choice.event.replace('output', 'score')}: {counts.hits} of {counts.draws} on its own "
        f"side, {counts.false_hits} of {counts.false_draws} on the other"
    )
    return Shown(epsilon=epsilon, event=event)


def _roc(own: Array, other: Array) -> tuple[tuple[float, float], ...]:
    """Rates of false and true positives at every threshold, from none to all."""
    thresholds = np.unique(np.concatenate([own, other]))[::-1]
    rates = [
        (side.size - np.searchsorted(np.sort(side), thresholds, side="left")) / side.size
        for side in (other, own)
    ]
    return ((0.0, 0.0), *zip(*(rate.tolist() for rate in rates), strict=True))


def _rate(fpr: float, roc: tuple[tuple[float, float], ...], limits: Band) -> Rate:
    """A threshold below one with more false positives has more still: the upper limit's reason."""
    lower, upper = limits.roc
    return Rate(
        fpr=fpr,
        tpr=max(true for false, true in roc if false <= fpr),
        lower=max((true for false, true in lower if false <= fpr), default=0.0),
        upper=min((true for false, true in upper if false > fpr), default=1.0),
    )


def _scores(name: str, given: ArrayLike) -> Array:
    rule = "a row of at least 2 numbers"
    require(not np.ma.isMaskedArray(given), name, "a masked array", rule, "Leave the masked out.")
    try:
        scores = np.asarray(given)
    except ValueError:
        raise ParameterError(name, "rows of several lengths", rule) from None
    numbers = scores.ndim == 1 and scores.size >= 2 and scores.dtype.kind in "biuf"
    way_out = "Reduce each run to one score, or say design='one-run'." if scores.ndim == 2 else ""
    seen = f"{scores.dtype} of shape {scores.shape}"
    require(numbers, name, seen, rule, way_out)
    read: Array = scores.astype(np.float64)
    for wrong, rule in (
        (np.isnan(read), "a number"),
        (_rounded(scores, read), HELD),
    ):
        place = int(np.argmax(wrong))
        require(not wrong[place], f"{name}[{place}]", scores[place], rule)
    return read


def _rounded(scores: NDArray[Any], read: Array) -> NDArray[np.bool]:
    """Which scores may be other numbers than the doubles that they are read as."""
    return np.abs(read) >= INEXACT if scores.dtype.kind in "iu" else read != scores


def _require_designed(
    own: Array, other: Array, runs: tuple[Sequence[Any], Sequence[Any]], design: Design
) -> None:
    rule = f"two rows of names, one for each score, {own.size} and {other.size}"
    try:
        sides = [list(side) for side in runs]
    except TypeError:
        raise ParameterError("runs", runs, rule) from None
    sizes = tuple(map(len, sides))
    require(sizes == (own.size, other.size), "runs", f"of lengths {sizes}", rule)
    names = [name for side in sides for name in side]
    keys = Counter(map(row_key, names))
    if design == "independent" and len(keys) < len(names):
        key, number = keys.most_common(1)[0]
        repeated = next(name for name in names if row_key(name) == key)
        times = (
            f"{number} scores of run {repeated if isinstance(repeated, str) else shown(repeated)}"
        )
        way_out = (
            "Scores of one run depend on each other: reduce each run to one score; or, if each "
            "canary was put in by its own fair coin, say design='one-run'."
        )
        require(False, "runs", times, "different for independent scores", way_out)


def _require_fair(inside: int, outside: int) -> None:
    fair = abs(inside - outside) <= _UNFAIR * math.sqrt(inside + outside)
    require(
        fair,
        "design",
        f"one-run with {inside} canaries in and {outside} out",
        "with as many of both as fair coins give",
        "Of other designs no bound is known here.",
    )
