"""What a certified curve means: to an attacker, beside published bounds, and for a sketch's size.

Everything here is derived from inputs and evidence; none of it decides a verdict.

**What the counts show of δ.** For each event whose threshold was fixed before any draw (the tested
ones, those of the ROC and the complements of these in the other order), limits of Clopper and
Pearson give p ≥ p₋ on its own side and q ≤ q₊ on the other; they all hold together with probability
at least 1 − α where each limit has level α/2m for m events. Then δ(ε) ≥ p₋ − e^ε q₊ at every ε.
This band has a level α of its own, beside that of the verdict, which comes from a sharper test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Final

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.notions.attacker_rates import attacker_bound
from dpverify.accounting.published import published_delta
from dpverify.auditing.statistics.clopper_pearson import lower_limit, upper_limit
from dpverify.certificate.rounding import exact
from dpverify.certificate.schema import (
    AttackerRate,
    CurvePoint,
    Ends,
    Evidence,
    Inputs,
    SizeError,
)
from dpverify.enclosure import decimal_string, exact_string
from dpverify.errors import ConfigurationError, ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Certifiable, Pair

__all__ = ["FAR", "SIZES", "attacker_rates", "curve_points", "domain_in_words", "size_errors"]

FALSE_POSITIVE_RATES: Final = (Decimal("0.01"), Decimal("0.05"))
FAR: Final = 10
"""Times the asked ε: a δ that is still there is a chance that protection fails altogether."""
SIZES: Final = ("k", "sketch_rows")
"""Parameters that are the size of a sketch."""

_POINTS, _TO_THE_CLAIM = 27, 20
_SAFE = 1e-12  # relative: what an exponential in doubles may have lost
_HALVINGS = 4


def attacker_rates(curve: PrivacyCurve) -> list[AttackerRate]:
    """Bounds on the strongest attacker at false positive rates of 1 % and 5 %."""
    bounds = [attacker_bound(curve, rate) for rate in FALSE_POSITIVE_RATES]
    return [
        AttackerRate(
            false_positive_rate=str(rate),
            threshold=repr(float(bound.threshold)),
            true_positive_rate=Ends.of(bound.true_positive_rate),
        )
        for rate, bound in zip(FALSE_POSITIVE_RATES, bounds, strict=True)
    ]


def curve_points(
    inputs: Inputs, curve: PrivacyCurve, evidence: Evidence, alpha: float
) -> list[CurvePoint]:
    """The curve from 0 to 1.3 times the asked ε, beside what is published and what is shown."""
    limits = _limits(evidence, alpha)
    claimed = inputs.epsilon
    return [
        CurvePoint(
            epsilon=exact_string(epsilon),
            delta=Ends.of(curve.delta_at(epsilon)),
            published=_published(curve, epsilon),
            shown=_shown(limits, epsilon),
        )
        for epsilon in (claimed * step / _TO_THE_CLAIM for step in range(_POINTS))
    ]


def size_errors(
    inputs: Inputs, probe: Pair, build: Callable[[Inputs], Certifiable]
) -> list[SizeError]:
    """Predicted error of the first estimator for one synthetic pair, by the sketch's size.

    Every size has the same guarantee. Sizes that the mechanism doesn't allow are left out, and so
    are those above the number of attributes, which are no sketches. Empty where the mechanism has
    no size to choose.
    """
    name = next((name for name in SIZES if name in inputs.parameters), None)
    if name is None:
        return []
    chosen = int(inputs.parameters[name])
    sizes = {round(chosen * 2.0**power) for power in range(-_HALVINGS, _HALVINGS + 1)}
    errors = []
    for size in sorted(s for s in sizes if 1 <= s <= max(chosen, inputs.attributes)):
        parameters = inputs.parameters | {name: size}
        try:
            other = build(inputs.model_copy(update={"parameters": parameters}))
            error = _error(other, probe)
        except (ConfigurationError, ParameterError):
            continue
        if math.isfinite(error):
            errors.append(SizeError(size=size, error=f"{error:.9g}"))
    return errors


def _error(mechanism: Certifiable, probe: Pair) -> float:
    """Root mean squared error over what the estimator's moments are over."""
    first = mechanism.estimators()[0]
    variance = first.variance(probe.record, probe.neighbour)
    bias = first.expectation(probe.record, probe.neighbour) - first.truth(
        probe.record, probe.neighbour
    )
    return math.sqrt(variance + bias * bias) if variance >= 0 else math.nan


def _published(curve: PrivacyCurve, epsilon: Fraction) -> str | None:
    if not isinstance(curve, Gaussian):
        return None
    found = published_delta(epsilon, mu_squared=curve.mu_squared)
    return None if found is None else Ends.of(found).upper


def _limits(evidence: Evidence, alpha: float) -> list[tuple[float, float]]:
    """p₋ and q₊ of every tested event, simultaneously at level alpha."""
    draws = evidence.draws
    tested = [counted for pair in evidence.white_box for counted in pair.counts]
    counts = [(counted.hits, counted.false_hits) for counted in [*tested, *evidence.roc]]
    # The complement of {L ≥ t} is an event of the other order.
    counts += [(draws - other.false_hits, draws - other.hits) for other in evidence.roc]
    if not counts:
        return []
    level = alpha / (2 * len(counts))
    return [
        (lower_limit(hits, draws, level), upper_limit(false_hits, draws, level))
        for hits, false_hits in counts
    ]


def _shown(limits: list[tuple[float, float]], epsilon: Fraction) -> str:
    ratio = math.exp(min(float(epsilon), 700.0)) * (1 + _SAFE)
    # A difference of doubles in [0, 1] loses at most 2⁻⁵³ each.
    shown = max((p - ratio * q * (1 + _SAFE) - _SAFE for p, q in limits), default=0.0)
    return decimal_string(max(shown, 0.0), ROUND_FLOOR, digits=9)


def domain_in_words(inputs: Inputs) -> str:
    """The declared domain in words."""
    numbers = inputs.domain.numbers
    match inputs.domain.kind:
        case "box":
            if inputs.columns:
                return "every column brought from what it may hold to [0, 1]"
            if inputs.ranges:
                return "every attribute brought from its own range to [0, 1]"
            return f"every attribute in [{exact(numbers['low'])}, {exact(numbers['high'])}]"
        case "ball":
            return f"every record of l2 norm at most {exact(numbers['radius'])}"
        case "sets":
            most = f" and at most {numbers['max_size']}" if "max_size" in numbers else ""
            return f"every record a set of at least {numbers['min_size']}{most} items"
        case "graph":
            return "one graph with weights in [0, 1]"
    listed = ", ".join(f"{name} = {exact_string(value)}" for name, value in sorted(numbers.items()))
    return f"{inputs.domain.kind} {listed}"
