"""How a package announces its mechanisms, and how one is made as a configuration asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from dpverify._registry import ADJACENCIES, DOMAINS
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Domain
from dpverify.enclosure import exact_string, rational
from dpverify.errors import ConfigurationError, ParameterError, did_you_mean, require, require_known
from dpverify.privacy import Certifiable

__all__ = ["MechanismFamily", "Parameter", "Request"]


Kind = Literal["whole", "number", "choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a mechanism, as a configuration, the command line or code gives it.

    Attributes
    ----------
    name : what it is called
    meaning : what it is
    kind : a whole number (int), an exact number (Fraction), or one of `choices` (str)
    default : taken where none is given; None means that one must be
    min_ : smallest whole number; of an exact number the bound that it must exceed
    max_ : largest number, or the name of the parameter that is the largest; None for no limit
    off : a number outside this range that is allowed too, and switches something off
    choices : all that a choice may be
    """

    name: str
    meaning: str
    kind: Kind = "whole"
    default: int | Fraction | str | None = None
    min_: int = 1
    max_: int | str | None = None
    off: int | None = None
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_known("kind", self.kind, get_args(Kind))

    @property
    def domain(self) -> str:
        """What it may be, as a rule that ends "must be"."""
        if self.kind == "choice":
            return " or ".join([*filter(None, [", ".join(self.choices[:-1])]), self.choices[-1]])
        if self.kind == "whole":
            rule = f"a whole number from {self.min_}"
            rule += "" if self.max_ is None else f" to {self.max_}"
        elif self.max_ is None and self.off == self.min_:
            return f"at least {self.min_}"
        elif self.max_ is None:
            rule = f"above {self.min_}"
        else:
            rule = f"in ({self.min_}, {self.max_}]"
        return rule if self.off is None else f"{self.off}, or {rule}"

    def read(self, value: object, others: Mapping[str, Any]) -> int | Fraction | str:
        """The value in its own type, in its range.

        Parameters
        ----------
        value : as it was given: a number or its decimal, a fraction ``a/b``, or a choice's name
        others : values of all parameters, for a `max_` that is one of them

        Raises
        ------
        ParameterError
            If it isn't what `domain` says.
        """
        if self.kind == "choice":
            require_known(self.name, value, self.choices)
            return str(value)
        number = _exact(self.name, value, self.domain)
        if number != self.off:
            most = others.get(self.max_) if isinstance(self.max_, str) else self.max_
            whole = self.kind == "whole"
            good = number.denominator == 1 and number >= self.min_ if whole else number > self.min_
            good = good and (most is None or number <= _exact(str(self.max_), most, "a number"))
            require(good, self.name, value, self.domain)
        return number.numerator if self.kind == "whole" else number


def _exact(name: str, value: Any, rule: str) -> Fraction:
    """A number as it was given, or its text."""
    try:
        return rational(name, value)
    except ParameterError as error:
        raise ParameterError(name, value, rule) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a mechanism.

    Attributes
    ----------
    rows, p : numbers of records and of their attributes, which are public
    domain, adjacency : what a record may be, and whom the claim protects
    epsilon, delta : the target, exact
    seed : of the public randomness
    parameters : by name
    """

    rows: int
    p: int
    domain: Domain
    adjacency: Adjacency
    epsilon: Fraction
    delta: Fraction
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismFamily:
    """What a package announces in the entry-point group ``dpverify.mechanisms``.

    Attributes
    ----------
    name : as in the paper, lower case
    paper : where it is described, with the algorithm's number
    guarantee : its kind, "(epsilon, delta)", "epsilon" or the name of a weaker notion
    adjacency : kinds of adjacency that it supports, as configurations name them
    domain : kinds of domain that it supports, as configurations name them
    estimates : what its estimators estimate
    parameters : what it takes in addition to the privacy target
    build : makes the mechanism that meets a request; None where it can't be certified
    refusal : why it can't be certified, where it can't
    seeded : whether it makes anything public from the request's seed
    """

    name: str
    paper: str
    guarantee: str
    adjacency: tuple[str, ...]
    domain: tuple[str, ...]
    estimates: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    build: Callable[[Request], Certifiable] | None
    refusal: str = ""
    seeded: bool = True

    def make(self, request: Request) -> Certifiable:
        """The mechanism that meets a request, whose parameters are read and checked here.

        Raises
        ------
        ConfigurationError
            If it can't be certified, doesn't support the adjacency or the domain, doesn't know a
            parameter, needs one that isn't given, or misses the target.
        ParameterError
            If a parameter is outside its domain.
        """
        if self.build is None:
            raise ConfigurationError(f"{self.name} can't be certified: {self.refusal}")
        for kinds, asked, supported in (
            (ADJACENCIES, request.adjacency, self.adjacency),
            (DOMAINS, request.domain, self.domain),
        ):
            kind = kinds.kind(asked)
            if kind not in supported:
                raise ConfigurationError(
                    f"{kinds.what}.kind={kind} must be one of {', '.join(supported)} for "
                    f"{self.name}."
                )
        mechanism = self.build(replace(request, parameters=self.read(request.parameters)))
        # Calibration meets the target; a published noise level may miss it. Of a δ near 1 doubles
        # may be too coarse to tell, and of the ε there they aren't.
        curve = mechanism.privacy()
        reached = curve.delta_at(request.epsilon)
        if reached.upper > request.delta and (
            curve.epsilon_at(request.delta).upper > request.epsilon
        ):
            raise ConfigurationError(
                f"{self.name} with these parameters has delta({exact_string(request.epsilon)}) of "
                f"up to {reached.upper}, and not {exact_string(request.delta)}: it can't be "
                "certified for this target."
            )
        return mechanism

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters by name, each in its own type, defaults filled in."""
        known = {parameter.name: parameter for parameter in self.parameters}
        takes = ", ".join(known) or "no parameters"
        for name in sorted(given.keys() - known.keys()):
            hint = did_you_mean(name, known, otherwise=f"It takes {takes} beside its name.")
            raise ConfigurationError(f"{self.name} doesn't know {name}. {hint}")
        values = {name: given.get(name, known[name].default) for name in known}
        for name, value in values.items():
            if value is None:
                raise ConfigurationError(
                    f"{self.name} needs {name}: it takes {takes} besides its name."
                )
        return {name: known[name].read(value, values) for name, value in values.items()}

    def to_dict(self) -> dict[str, Any]:
        """All that it announces, in plain values."""
        return {
            "name": self.name,
            "paper": self.paper,
            "guarantee": self.guarantee,
            "adjacency": list(self.adjacency),
            "domain": list(self.domain),
            "estimates": list(self.estimates),
            "certifiable": self.build is not None,
            "refusal": self.refusal,
            "parameters": {p.name: f"{p.meaning}; {_range(p)}" for p in self.parameters},
        }


def _range(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" (default {parameter.default})"
    return f"{parameter.domain}{default}"
