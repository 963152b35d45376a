"""Choosing the parameters of a mechanism before it is released, by exact errors.

A design answers "which k, and how much noise, for the distances I care about?" It builds every
candidate at the same guarantee, so that privacy is never what is traded, and keeps the whole curve
around the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from dpverify.catalogue import mechanism
from dpverify.errors import DPVerifyError, require
from dpverify.privacy import Certifiable

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All candidates in the order tried, and the best of them.

    Attributes
    ----------
    curve : candidates that were made
    refused : choices that no mechanism meets the target with, and why
    """

    curve: tuple[DesignPoint, ...]
    refused: tuple[tuple[Mapping[str, Any], DPVerifyError], ...] = ()

    @property
    def best(self) -> DesignPoint:
        """The candidate of least mean squared error; the first one of equals."""
        return min(self.curve, key=lambda point: point.mean_squared_error)

    def __str__(self) -> str:
        best, rows = self.best, []
        for point in self.curve:
            chosen = ", ".join(f"{name}={value}" for name, value in point.parameters.items())
            mark = "  (best)" if point is best else ""
            rows.append(f"{chosen}: error {point.mean_squared_error**0.5:.4g}{mark}")
        return "\n".join(rows)


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
        errors = made.errors_at(at, draws=draws)
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
    return Design(curve=tuple(points), refused=tuple(refused))
