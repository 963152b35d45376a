"""What taped calls lose where their inputs move: distances, losses, and their sum."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.composition.compose import compose
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.auditing.attacks._noise_model import ROUND_OFF
from dpverify.auditing.attacks._taped_call import REUSED, TapedCall, digest
from dpverify.errors import DPVerifyError
from dpverify.guarantee import PrivacyCurve

__all__ = ["Calls", "composed", "known", "located", "loss", "moved", "relative", "too_much"]

Calls = list[tuple[TapedCall, TapedCall]]
"""Those of the recording, each with that of the replay."""

_NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
_USUAL = Fraction(1, 10**6)  # δ at which a single loss is told
_LISTED = 64  # Laplace variables that are composed exactly; of more the pure epsilons add up


def located(call: TapedCall, twin: TapedCall) -> bool:
    """Whether additive noise had its input as its location."""
    additive = call.kind in ("normal", "laplace") and not call.sums and call.raw.startswith("noise")
    return additive and bool(np.any(call.inputs) or np.any(twin.inputs))


def known(call: TapedCall, twin: TapedCall, move: float) -> bool:
    """Whether noise was added to equal numbers alone, however often: then it is known itself."""
    return call.raw == REUSED and move == 0 and digest(call.again) == digest(twin.again)


def moved(call: TapedCall, twin: TapedCall) -> float:
    """By how much the input moves, in the norm that its noise has; infinite if unmeasured."""
    if call.inputs is None and twin.inputs is None:
        return 0.0 if call.kind not in ("marked", "opendp") else math.inf
    if call.inputs is None or twin.inputs is None:
        return math.inf
    if call.kind == "opendp":
        return _between(str(call.loss.input_metric), call.inputs, twin.inputs)
    if call.inputs.shape != twin.inputs.shape:
        return math.inf
    if call.kind == "choice":
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(call.inputs) - np.log(twin.inputs)
        ratios = ratios[(call.inputs > 0) | (twin.inputs > 0)]
        return float(np.max(np.abs(ratios), initial=0.0))
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        difference = np.abs(call.inputs - twin.inputs).astype(np.float64)
    if np.any(np.isnan(difference)):
        return math.inf
    if call.declared is not None:
        return float(np.linalg.norm(difference, _NORMS[call.declared.norm]))
    if call.kind in ("normal", "laplace"):
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where(difference == 0, 0.0, difference / (call.scales * call.factors))
        return float(np.linalg.norm(units, 1 if call.kind == "laplace" else 2))
    return float(difference.sum())


def _between(metric: str, one: NDArray[Any], other: NDArray[Any]) -> float:
    """The distance of two inputs in a metric of OpenDP's, by its name; infinite if unknown."""
    if metric.startswith(("SymmetricDistance", "InsertDelete")):
        counts, others = Counter(one.tolist()), Counter(other.tolist())
        return float(((counts - others) + (others - counts)).total())
    if one.shape != other.shape:
        return math.inf
    if metric.startswith(("ChangeOne", "Hamming")):
        return float(np.count_nonzero(one != other))
    for name, norm in {"Absolute": 1, "L1": 1, "L2": 2, "LInf": np.inf}.items():
        if metric.startswith(name):
            return float(np.linalg.norm((one - other).astype(np.float64), norm))
    return math.inf


def relative(call: TapedCall, move: float) -> float:
    return move / max(float(call.declared.sensitivity), 1e-300) if call.declared else move


def loss(call: TapedCall, move: float) -> PrivacyCurve | None:
    """How private the call is where its input moves so far; None where it doesn't."""
    if move == 0 or not math.isfinite(move):
        return None
    if call.declared is not None:
        return call.declared.noise
    if call.kind == "normal":
        return Gaussian.from_mu_squared((Fraction(move) * (1 - Fraction(ROUND_OFF))) ** 2)
    if call.kind == "opendp":
        return _of_measurement(call.loss, move)
    if call.kind == "diffprivlib":
        epsilon, most = call.loss["epsilon"], call.loss["sensitivity"]
        times = move / most if most else 1.0
        pure = call.loss["delta"] == 0
        return ApproxDP(
            epsilon=_rounded(epsilon * times if pure else epsilon),
            delta=Fraction(call.loss["delta"]),
        )
    return ApproxDP(epsilon=_rounded(move))


def _rounded(size: float) -> Fraction:
    """Nine digits, and then below the truth."""
    return Fraction(f"{size:.9g}") * (1 - Fraction(ROUND_OFF))


def _of_measurement(measurement: Any, move: float) -> PrivacyCurve:
    """What OpenDP's own map says of this move."""
    sets = ("Symmetric", "InsertDelete", "ChangeOne", "Hamming")
    whole = str(measurement.input_metric).startswith(sets)
    lost = measurement.map(round(move) if whole else move)
    if isinstance(lost, tuple):
        return ApproxDP(epsilon=_rounded(lost[0]), delta=Fraction(lost[1]))
    if "Concentrated" in str(measurement.output_measure):
        return Gaussian.from_mu_squared(2 * _rounded(lost))
    return ApproxDP(epsilon=_rounded(lost))


def composed(calls: Calls, losses: list[PrivacyCurve | None]) -> PrivacyCurve | None:
    """All losses together."""
    curves = [
        lost
        for (call, _), lost in zip(calls, losses, strict=True)
        if lost is not None and call.kind != "laplace"
    ]
    sizes = []
    for call, twin in calls:
        if call.kind == "laplace" and call.inputs is not None and twin.inputs is not None:
            moves = np.abs(call.inputs - twin.inputs)
            moved = moves > 0
            units = moves[moved] / (call.scales * call.factors)[moved]
            sizes += [_rounded(size) for size in units.tolist()]
    if 0 < len(sizes) <= _LISTED:
        curves.append(Laplace.of_row(sizes, scale=1))
    elif sizes:
        curves.append(ApproxDP(epsilon=sum(sizes, Fraction(0))))
    if len(curves) < 2:
        return curves[0] if curves else None
    try:
        return compose(*curves)
    except DPVerifyError:  # no way to compose these: nothing is said of their sum
        return None


def too_much(calls: Calls, losses: list[PrivacyCurve | None], allowed: float) -> str:
    """The call that loses most, and the sum's excess, in words."""
    charged = [
        (lost.epsilon_at(_USUAL).upper, call)
        for (call, _), lost in zip(calls, losses, strict=True)
        if lost is not None
    ]
    most, call = max(charged, key=lambda item: item[0])
    one = f"call {call.number}, {call.kind} at {call.place}, loses {most:.6g}"
    if len(charged) == 1:
        return f"{one}, and ε = {allowed:.6g} is claimed"
    moving = f"{len(charged)} calls whose inputs move"
    return f"{moving} lose more together than the claimed ε = {allowed:.6g}; most: {one}"
