"""Choosing the parameters of a mechanism before it is released, by exact errors.

A design answers "which k, and how much noise, for the distances I care about?" It builds every
candidate at the same guarantee, so that privacy is never what is traded, and keeps the whole curve
around the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from dpverify._axes import axes_or_new
from dpverify._tables import html_table
from dpverify.catalogue import mechanism
from dpverify.errors import DPVerifyError, ParameterError, require
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.privacy import Certifiable, Errors
from dpverify.visible import escaped

__all__ = ["Design", "DesignPoint", "design"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPoint:
    """A candidate.

    Attributes
    ----------
    parameters : what was chosen, by name, and what its estimate takes
    variance : exact variance of the estimate, averaged over what is of interest
    squared_bias : of the estimate, averaged likewise; 0 where it is unbiased
    mechanism : calibrated, ready for release
    """

    parameters: Mapping[str, Any]
    variance: float
    squared_bias: float
    mechanism: Certifiable

    @property
    def mean_squared_error(self) -> float:
        """Variance and squared bias: what a design minimises."""
        return self.variance + self.squared_bias

    @property
    def error(self) -> float:
        """The root of the mean squared error, in the unit of what is estimated."""
        return math.sqrt(self.mean_squared_error)

    def __str__(self) -> str:
        return _text(self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """What was chosen, and its errors."""
        return {
            "parameters": dict(self.parameters),
            "error": self.error,
            "variance": self.variance,
            "squared_bias": self.squared_bias,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All candidates in the order tried, and the best of them.

    Attributes
    ----------
    curve : candidates that were made
    refused : choices that no mechanism meets the target with, and why
    varied : names of what was chosen from
    """

    curve: tuple[DesignPoint, ...]
    refused: tuple[tuple[Mapping[str, Any], DPVerifyError], ...] = ()
    varied: tuple[str, ...] = ()

    @property
    def best(self) -> DesignPoint:
        """The candidate of least mean squared error; the first one of equals."""
        return min(self.curve, key=lambda point: point.mean_squared_error)

    def __str__(self) -> str:
        lines = [f"{point}: error {point.error:.4g}{self._mark(point)}" for point in self.curve]
        lines += [f"{_text(chosen)}: refused: {error}" for chosen, error in self.refused]
        return "\n".join(map(escaped, lines))

    def _repr_html_(self) -> str:
        rows = [[str(point), f"{point.error:.4g}{self._mark(point)}"] for point in self.curve]
        rows += [[_text(chosen), f"refused: {error}"] for chosen, error in self.refused]
        return html_table(rows, headings=["choice", "error of one estimate"])

    def to_dict(self) -> dict[str, Any]:
        """Every candidate with its error, the best one, and what was refused."""
        return {
            "best": dict(self.best.parameters),
            "candidates": [point.to_dict() for point in self.curve],
            "refused": [
                {"parameters": dict(chosen), "reason": str(error)} for chosen, error in self.refused
            ],
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw the error of one estimate over the first choice of numbers; return the axes.

        A line for each combination of the other choices; the best candidate has a ring.

        Parameters
        ----------
        axes : where to draw; new ones by default

        Raises
        ------
        MissingExtraError
            If matplotlib isn't installed.
        """
        axes = axes_or_new(axes)
        names = list(self.best.parameters)
        along = next((name for name in names if _is_number(self.best.parameters[name])), None)
        lines: dict[str, list[tuple[Any, float]]] = {}
        for place, point in enumerate(self.curve):
            others = {n: v for n, v in point.parameters.items() if n in self.varied and n != along}
            x = place if along is None else float(point.parameters[along])
            lines.setdefault(_text(others), []).append((x, point.error))
            if point is self.best:
                axes.plot(x, point.error, "o", markersize=12, fillstyle="none", color="black")
        for label, points in lines.items():
            axes.plot(*zip(*sorted(points), strict=True), marker=".", label=label or None)
        ticks = sorted({x for points in lines.values() for x, _ in points})
        positive = along is not None and ticks[0] > 0
        axes.set(xlabel=along or "candidate", ylabel="error of one estimate", yscale="log")
        axes.set_xscale("log" if positive else "linear")
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        if any(lines):
            axes.legend()
        return axes

    def _mark(self, point: DesignPoint) -> str:
        return "  (best)" if point is self.best else ""


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _text(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


@usual_arithmetic()
def design(
    name: str | Callable[..., Certifiable], *, at: Sequence[Any], draws: int = 16, **choices: Any
) -> Design:
    """The choice with the least mean squared error of the estimate, at one guarantee.

    Parameters
    ----------
    name : a mechanism's, as `mechanisms` lists it, or a function that makes one of the choices
    at : what is of interest, public or synthetic: squared distances for linear sketches,
        similarities for sets, pairs of records for signs, sizes and values of cuts; `errors_at` of
        the mechanism says which
    draws : of the public randomness, to average over where no closed form does
    choices : arguments of `mechanism`; of a list or range each value is tried. The seed is 0 unless
        it is given

    Returns
    -------
    Design with every combination in order, whose `best` is ready for release. It prints itself.

    Raises
    ------
    ParameterError
        If there is nothing to choose from, or nothing of interest.
    DPVerifyError
        If every candidate is refused: the first one's reason.

    Examples
    --------
    >>> import dpverify as dpv
    >>> from dpverify.data.adjacency import Attribute
    >>> dpv.design(
    ...     "dp-oporp",
    ...     at=[100.0],
    ...     k=[64, 128, 256],
    ...     noise=["gaussian", "laplace"],
    ...     p=784,
    ...     epsilon=5,
    ...     delta=1e-6,
    ...     domain=dpv.Box(0, 1),
    ...     adjacency=Attribute(1),
    ... ).best.parameters
    {'k': 256, 'noise': 'laplace'}
    """
    require(len(at) > 0, "at", at, "non-empty")
    make = partial(mechanism, name) if isinstance(name, str) else name
    if isinstance(name, str):
        choices = {"seed": 0} | choices
    varied = {name: list(x) for name, x in choices.items() if isinstance(x, list | tuple | range)}
    for choice, values in varied.items():
        require(bool(values), choice, values, "non-empty")
    points: list[DesignPoint] = []
    refused: list[tuple[Mapping[str, Any], DPVerifyError]] = []
    for combination in product(*varied.values()):
        chosen = dict(zip(varied, combination, strict=True))
        try:
            made = make(**(choices | chosen))
        except DPVerifyError as error:
            refused.append((chosen, error))
            continue
        errors = _errors(made, at, draws)
        points.append(
            DesignPoint(
                parameters=chosen | dict(errors.notes),
                variance=errors.variance,
                squared_bias=errors.squared_bias,
                mechanism=made,
            )
        )
    if not points:
        raise refused[0][1]
    return Design(curve=tuple(points), refused=tuple(refused), varied=tuple(varied))


def _errors(made: Certifiable, at: Sequence[Any], draws: int) -> Errors:
    """Those of a mechanism, if doubles hold them."""
    with suppress(OverflowError):
        errors = made.errors_at(at, draws=draws)
        if math.isfinite(errors.variance) and math.isfinite(errors.squared_bias):
            return errors
    raise ParameterError("at", at, "such that doubles hold the squares of the errors")
