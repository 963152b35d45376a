"""Every option at the door that is one of a few names: others are refused, the right one named."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args, get_origin

import attrs
import pytest

import dpverify as dpv
from dpverify.accounting.notions.renyi import PureRenyi
from dpverify.execution.parallel import workplace
from dpverify.family import Parameter
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.sjlt import SJLT

TABLE = dpv.Table({"age": dpv.Integers(0, 9)})
LAPLACE = dpv.Laplace(scale=1)
SPARSE = partial(SJLT, p=4, k=2, seed=1, sparsity=1)
REQUEST: Any = {
    "epsilon": 1,
    "delta": "1e-6",
    "domain": dpv.Box(0, 1),
    "adjacency": dpv.Attribute(1),
}


def audited(**option: Any) -> dpv.Report:
    return dpv.audit(
        lambda rows: len(rows), epsilon=1, adjacency=dpv.AddRemove(), domain=TABLE, **option
    )


def adapted(of: Any) -> Any:
    return dpv.adapt(len, adjacency=dpv.AddRemove(), claim=LAPLACE, of=of, domain=TABLE)


def accountants(solves: Any) -> Any:
    return dpv.audit_accountant(
        lambda delta: 1.0, {"delta": ["0.1"]}, curve=lambda: LAPLACE, solves=solves
    )


def placed(backend: Any) -> None:
    with workplace(backend=backend):
        pass


def guaranteed(notion: Any) -> dpv.Guarantee:
    said: Any = {"randomness": "", "data_choice": "", "theorem": ""}
    return dpv.Guarantee(curve=LAPLACE, adjacency=dpv.Attribute(1), notion=notion, **said)


def sketched(at: Any) -> LinearSketch:
    return attrs.evolve(LinearSketch.calibrated(SPARSE(), **REQUEST), at=at)


# What is called, the option's name, and a name that is nearly right.
OPTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "Ball.outside": (partial(dpv.Ball, 1), "clipp"),
    "Box.outside": (partial(dpv.Box, 0, 1), "refused"),
    "Budget.composition": (partial(dpv.Budget, epsilon=1), "basik"),
    "Enclosure.safe_end": (partial(dpv.Enclosure, 0, 1), "uper"),
    "Guarantee.notion": (guaranteed, "diferential privacy"),
    "LinearSketch.calibrated.at": (partial(LinearSketch.calibrated, SPARSE(), **REQUEST), "inputs"),
    "LinearSketch.calibrated.noise": (
        partial(LinearSketch.calibrated, SPARSE(), **REQUEST),
        "gausian",
    ),
    "LinearSketch.at": (sketched, "ouput"),
    "Parameter.kind": (partial(Parameter, name="k", meaning="size"), "numbr"),
    "SJLT.construction": (SPARSE, "grahp"),
    "Table.make": (partial(dpv.Table, {"age": dpv.Integers(0, 9)}), "nunpy"),
    "ZCDP.conversion": (partial(dpv.ZCDP, rho=1), "bun-stienke"),
    "RDP.conversion": (partial(dpv.RDP, parts=((PureRenyi(epsilon=1), 1),)), "mirnov"),
    "ZCDP.gaussian.conversion": (partial(dpv.ZCDP.gaussian, Fraction(1)), "bun-stienke"),
    "ZCDP.pure.conversion": (partial(dpv.ZCDP.pure, Fraction(1)), "bun-stienke"),
    "adapt.of": (adapted, "recrod"),
    "audit.kinds": (lambda kinds: audited(kinds=[kinds]), "blackbox"),
    "audit.of": (audited, "datasets"),
    "audit.without": (lambda without: audited(without=[without]), "precison"),
    "audit_accountant.solves": (accountants, "epsilonn"),
    "audit_scores.design": (partial(dpv.audit_scores, [1.0], [0.0], delta=0), "onerun"),
    "mechanism.name": (partial(dpv.mechanism, p=4, k=2, **REQUEST), "dp-oprop"),
    "primitive.norm": (partial(dpv.primitive, sensitivity=1, noise=LAPLACE), "l11"),
    "workplace.backend": (placed, "daks"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_name_that_is_nearly_right(option: str) -> None:
    call, nearly = OPTIONS[option]
    name = option.rpartition(".")[2]
    with pytest.raises(dpv.DPVerifyError, match=r"Did you mean .+\?$") as refused:
        call(**{name: nearly})
    assert nearly in str(refused.value)


@pytest.mark.parametrize("option", sorted(OPTIONS.keys() - {"audit.of", "adapt.of"}))
@pytest.mark.parametrize("value", [None, 3, ["basic"], {}, float("nan")], ids=str)
def test_what_is_no_name(option: str, value: Any) -> None:
    with pytest.raises(dpv.DPVerifyError, match=r"must be|there is no mechanism"):
        OPTIONS[option][0](**{option.rpartition(".")[2]: value})


MADE = {"Certificate.schema", "Finding.audit", "Finding.verdict", "ScoreAudit.design"}
"""Names in results, which nobody chooses."""


def test_none_is_left_out() -> None:
    assert set(options()) <= OPTIONS.keys() | MADE


def options() -> Iterator[str]:
    """Of the front door, as far as types say so."""
    for name in dpv.__all__:
        thing = getattr(dpv, name)
        if not callable(thing):
            continue
        methods = vars(thing).items() if isinstance(thing, type) else ()
        calls = {name: thing} | {
            f"{name}.{method}": getattr(thing, method)
            for method, call in methods
            if not method.startswith("_") and callable(getattr(thing, method))
        }
        names = vars(sys.modules[thing.__module__]) if hasattr(thing, "__module__") else {}
        for called, call in calls.items():
            try:
                parameters = inspect.signature(call).parameters.values()
            except (TypeError, ValueError):
                continue
            for parameter in parameters:
                if any(map(_closed, _types(str(parameter.annotation), names))):
                    yield f"{called}.{parameter.name}"


def _types(annotation: str, names: dict[str, Any]) -> Iterator[Any]:
    for word in re.findall(r"\w+", annotation):
        yield Literal if word == "Literal" else names.get(word)


def _closed(kind: Any) -> bool:
    return kind is Literal or any(get_origin(one) is Literal for one in (kind, *get_args(kind)))
