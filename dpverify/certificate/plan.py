"""Plan a release: its guarantee, and what it will be worth, from public numbers alone.

Nothing is drawn, and of the records only the number of rows and columns is read. Errors are those
that the estimators' closed forms predict for synthetic records of the declared domain; what they
are held to is in `dpverify.certificate.usefulness`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dpverify._registry import ADJACENCIES
from dpverify._tables import html_table, text_table
from dpverify.auditing.outputs.time_limit import Late, within
from dpverify.catalogue import families
from dpverify.certificate import meaning
from dpverify.certificate.build import build, protected_unit
from dpverify.certificate.certify import Empty, configured, requested
from dpverify.certificate.configuration import Configuration
from dpverify.certificate.derive import synthetic, worth
from dpverify.certificate.rounding import about, percent_at_most
from dpverify.certificate.schema import AttackerRate, Ends, Inputs, KindInput, SizeError, Usefulness
from dpverify.certificate.usefulness import recall
from dpverify.data.adjacency import Attribute
from dpverify.data.declared import cell
from dpverify.enclosure import exact_string
from dpverify.errors import DPVerifyError
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.privacy import Certifiable

__all__ = ["Forecast", "Plan", "plan"]

_FACTORS = [Fraction(2) ** power for power in range(-3, 11)]
_NEAREST = 10
_GAIN = 0.9  # of the error: less isn't worth another mechanism
_PATIENCE = 1.0  # seconds for another mechanism, twice at the most


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What another choice would give, everything else as it is.

    Attributes
    ----------
    choice : what is chosen otherwise
    usefulness : of the first estimator
    """

    choice: str
    usefulness: Usefulness


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A release that hasn't been made. It prints itself.

    Attributes
    ----------
    inputs : what the owner chose, as a certificate would hold it
    protects : the unit of privacy, in words
    epsilon, delta : what is proven, at the δ and the ε that were asked for
    attacker : what the curve leaves to the strongest attacker
    usefulness : of the first estimator; None where nothing is estimated over a range
    others : of the other estimators, each held to its limits or to the synthetic records
    recall : expected share of the ten nearest records that the estimates find among all rows, and
        that of chance; None where records aren't compared
    by_epsilon : the same mechanism at other ε, until it is useful
    by_size : predicted error at other sizes of the sketch; empty where there is none to choose
    by_mechanism : mechanisms with this guarantee that estimate the same, the best first
    advice : what would help
    """

    inputs: Inputs
    protects: str
    epsilon: Ends
    delta: Ends
    attacker: tuple[AttackerRate, ...]
    usefulness: Usefulness | None
    others: tuple[Usefulness, ...]
    recall: tuple[float, float] | None
    by_epsilon: tuple[Forecast, ...]
    by_size: tuple[SizeError, ...]
    by_mechanism: tuple[Forecast, ...]
    advice: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The verdict in a sentence."""
        if self.usefulness is None:
            return "none: nothing is estimated over a range"
        return str(self.usefulness)

    def to_dict(self) -> dict[str, Any]:
        """The plan in plain values."""
        judged = self.usefulness
        return {
            "mechanism": self.inputs.mechanism,
            "protects": self.protects,
            "epsilon": self.epsilon.model_dump(),
            "delta": self.delta.model_dump(),
            "attacker": [rate.model_dump() for rate in self.attacker],
            "usefulness": judged and judged.model_dump(),
            "verdict": self.verdict,
            "others": [other.model_dump() for other in self.others],
            "recall": self.recall and dict(zip(("expected", "chance"), self.recall, strict=True)),
            "by_epsilon": {f.choice: f.usefulness.model_dump() for f in self.by_epsilon},
            "by_size": {size.size: size.error for size in self.by_size},
            "by_mechanism": {f.choice: f.usefulness.model_dump() for f in self.by_mechanism},
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        return text_table(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """The plan as rows of a table."""
        inputs = self.inputs
        settings = ", ".join(f"{name} = {value}" for name, value in inputs.parameters.items())
        delta = f"<= {self.delta.upper}" if inputs.delta else "= 0"
        rows = [
            ("protects", self.protects),
            ("mechanism", f"{inputs.mechanism} {settings}".rstrip()),
            ("data", f"{inputs.rows:,} rows, {_width(inputs)}"),
            *(("" if number else "columns", str(c)) for number, c in enumerate(inputs.columns)),
            ("guarantee", f"epsilon = {exact_string(inputs.epsilon)}, delta {delta}"),
            *(("risk" if number == 0 else "", _risk(r)) for number, r in enumerate(self.attacker)),
            ("verdict", self.verdict),
        ]
        if self.recall is not None:
            found, chance = self.recall
            rows.append(
                (
                    "neighbours",
                    f"of the {_NEAREST} nearest of {inputs.rows:,} records spread evenly over that "
                    f"range, about {found:.1%} are found; by chance {chance:.1%}",
                )
            )
        rows += [
            (
                "" if number else "also",
                f"{other.quantity}, from {about(other.low, 3)} to {about(other.high, 3)}: "
                f"{_short(other)}",
            )
            for number, other in enumerate(self.others)
        ]
        for name, forecasts in (("epsilon", self.by_epsilon), ("mechanisms", self.by_mechanism)):
            rows += [
                (name if number == 0 else "", f"{f.choice}: {_short(f.usefulness)}")
                for number, f in enumerate(forecasts)
            ]
        rows += [
            ("size" if number == 0 else "", f"{size.size}: error {about(size.error, 3)}")
            for number, size in enumerate(self.by_size)
        ]
        rows += [("advice" if number == 0 else "", text) for number, text in enumerate(self.advice)]
        return rows


@usual_arithmetic()
def plan(
    source: Any = None,
    *,
    configuration: Configuration | Path | str | Mapping[str, Any] | None = None,
    base: Path | str | None = None,
    rows: int | None = None,
    **settings: Any,
) -> Plan:
    """What a configuration will guarantee, and what its release will be worth.

    Parameters
    ----------
    source : a configuration, or data, as for `certify`. Of data only the number of rows and the
        types of columns are read
    configuration, settings : of data, as for `certify`. The range of interest, of what the first
        estimator estimates, is `purpose`, in a configuration the table ``[purpose]``; without it
        that of synthetic records
    base : folder that a relative data path starts from; the configuration file's by default
    rows : how many there are, in place of data, for declared `columns`

    Raises
    ------
    DPVerifyError
        As `certify` would, if anything is wrong with the configuration.

    Examples
    --------
    >>> import dpverify as dpv
    >>> print(dpv.plan("release.toml"))  # doctest: +SKIP
    >>> columns = {"age": dpv.Integers(0, 120), "sex": dpv.Categories("f", "m")}
    >>> plan = dpv.plan(
    ...     rows=5000,
    ...     columns=columns,
    ...     mechanism="raw-data-g-opt",
    ...     noise="laplace",
    ...     epsilon=8,
    ...     adjacency="cell",
    ... )
    >>> plan.protects, plan.verdict.partition(":")[0]
    ('one column of one record, whatever it changes to', 'coarse')
    """
    asked = requested(source if rows is None else Empty(rows), configuration, base, settings)
    _, inputs, mechanism = configured(asked)
    return _planned(inputs, mechanism)


def _width(inputs: Inputs) -> str:
    if not inputs.columns:
        return f"{inputs.attributes:,} columns"
    return f"{len(inputs.columns):,} columns, which become {inputs.attributes:,} attributes"


def _planned(inputs: Inputs, mechanism: Certifiable) -> Plan:
    """The plan of inputs whose mechanism was built."""
    guarantee = mechanism.guarantee()
    judged = worth(inputs, mechanism)
    by_epsilon = tuple(_by_epsilon(inputs)) if judged else ()
    by_mechanism = tuple(_by_mechanism(inputs, judged, _truth(inputs, mechanism))) if judged else ()
    estimators = mechanism.estimators()
    others = (worth(inputs, mechanism, of=place) for place in range(1, len(estimators)))
    return Plan(
        inputs=inputs,
        protects=protected_unit(inputs, guarantee),
        epsilon=Ends.of(guarantee.curve.epsilon_at(inputs.delta)),
        delta=Ends.of(guarantee.curve.delta_at(inputs.epsilon)),
        attacker=tuple(meaning.attacker_rates(guarantee.curve)),
        usefulness=judged,
        others=tuple(filter(None, others)),
        recall=(
            (recall(judged, inputs.rows, _NEAREST), min(1.0, _NEAREST / inputs.rows))
            if judged and estimators[0].compares == "records"
            else None
        ),
        by_epsilon=by_epsilon,
        by_size=tuple(meaning.size_errors(inputs, synthetic(inputs, mechanism)[-1], build)),
        by_mechanism=by_mechanism,
        advice=tuple(_advice(inputs, judged, by_epsilon, by_mechanism)),
    )


def _forecast(
    choice: str, inputs: Inputs, *, truth: float | None = None, **changed: Any
) -> Forecast | None:
    """What other inputs would give.

    None where they can't be had, or where what is estimated of the synthetic records isn't `truth`,
    but for what grids change: then another quantity is estimated, or of other records.
    """
    other = inputs.model_copy(update=changed)
    try:
        mechanism = build(other)
        judged = worth(other, mechanism)
    except DPVerifyError:
        return None
    alike = truth is None or math.isclose(_truth(other, mechanism), truth, rel_tol=0.01)
    return Forecast(choice=choice, usefulness=judged) if judged and alike else None


def _truth(inputs: Inputs, mechanism: Certifiable) -> float:
    probe = synthetic(inputs, mechanism)[-1]
    return mechanism.estimators()[0].truth(probe.record, probe.neighbour)


def _by_epsilon(inputs: Inputs) -> Iterator[Forecast]:
    """From an eighth of the asked ε, doubling until twice the first one that is useful."""
    enough = False
    for factor in _FACTORS:
        epsilon = inputs.epsilon * factor
        forecast = _forecast(exact_string(epsilon), inputs, epsilon=epsilon)
        if forecast is not None:
            yield forecast
            if enough and factor > 1:
                return
            enough = forecast.usefulness.verdict == "useful"


def _by_mechanism(inputs: Inputs, judged: Usefulness, truth: float) -> list[Forecast]:
    """Other mechanisms and noises, with the parameters that they share and defaults for the rest.

    Those that take long to calibrate are left out.
    """
    found = []
    for family in families().values():
        fits = inputs.domain.kind in family.domain and inputs.adjacency.kind in family.adjacency
        if family.build is None or not fits:
            continue
        known = {parameter.name: parameter for parameter in family.parameters}
        shared = {name: x for name, x in inputs.parameters.items() if name in known}
        noises = known["noise"].choices if "noise" in known else ()
        for choice in [{"noise": noise} for noise in noises] or [{}]:
            name = " ".join([family.name, *choice.values()])
            other = {"mechanism": family.name, "parameters": shared | choice}
            with suppress(Late):
                made = partial(_forecast, name, inputs, truth=truth, **other)
                found.append(within(_PATIENCE, (), made))
    same = [f for f in found if f and f.usefulness.quantity == judged.quantity]
    return sorted(same, key=lambda forecast: float(forecast.usefulness.error))


def _advice(
    inputs: Inputs,
    judged: Usefulness | None,
    by_epsilon: tuple[Forecast, ...],
    by_mechanism: tuple[Forecast, ...],
) -> Iterator[str]:
    if judged is None or judged.verdict == "useful":
        return
    useful = next((f for f in by_epsilon if f.usefulness.verdict == "useful"), None)
    if useful is None:
        yield "No larger epsilon that was tried makes one estimate useful."
    else:
        yield (
            f"One estimate is useful at epsilon = {useful.choice}. Whether that protects anyone is "
            "another question: see the risk at it first."
        )
    if by_mechanism:
        best = by_mechanism[0]
        if float(best.usefulness.error) < _GAIN * float(judged.error):
            yield (
                f"{best.choice} has an error of {about(best.usefulness.error, 3)} at the same "
                "guarantee."
            )
    if inputs.adjacency.kind == "record" and inputs.domain.kind == "box":
        ends = inputs.domain.numbers
        unit = cell(inputs.columns) if inputs.columns else Attribute(ends["high"] - ends["low"])
        smaller = KindInput.of(*ADJACENCIES.describe(unit))
        forecast = _forecast("attribute", inputs, adjacency=smaller)
        if forecast is not None:
            name = "cell (one column of one record)" if inputs.columns else "attribute"
            yield (
                f"Protecting one {name} in place of a whole record is a weaker promise: with it, "
                f"{_short(forecast.usefulness)}."
            )
    yield (
        "If only means, counts or histograms are needed, they cost far less noise from a trusted "
        "curator's library, such as OpenDP: a sketch of every record protects each one alone."
    )


def _risk(rate: AttackerRate) -> str:
    caught = percent_at_most(rate.true_positive_rate.upper)
    alarms = percent_at_most(rate.false_positive_rate)
    return (
        f"who guesses from the release whether that change was made, with {alarms} of false "
        f"alarms, is right about at most {caught} of the changes"
    )


def _short(judged: Usefulness) -> str:
    return f"{judged.verdict}, error {about(judged.error, 3)}"
