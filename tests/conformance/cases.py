"""The releases that the conformance vectors are made from: one small configuration each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.catalogue import family_of

__all__ = ["CASES", "WRONG", "Case"]

_UNIT = {"low": 0, "high": 1}
_WIDE = {"low": -1, "high": 2}
_BALL = {"kind": "ball", "radius": 2}
_SETS = {"kind": "sets", "min_size": 2, "max_size": 4}
_RECORD = {"kind": "record"}
_HALF = {"kind": "attribute", "beta": Decimal("0.5")}


TABLE = """age,sex,paid,day,note
10,f,true,2020-01-05,red fox
90,m,false,2020-02-01,blue
50,f,true,2020-01-31,
"""
_COLUMNS = {
    "age": {"type": "whole", "low": 0, "high": 120, "missing": "indicator"},
    "sex": {"type": "category", "categories": ["f", "m"]},
    "paid": {"type": "boolean"},
    "day": {"type": "date", "first": "2020-01-01", "last": "2020-12-31"},
    "note": {"type": "text", "buckets": 3, "most": 4, "missing": "indicator"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A configuration in short.

    Attributes
    ----------
    mechanism : its name and its parameters
    domain, adjacency : as a configuration has them; for a table its columns in place of a domain
    epsilon, delta : the target
    shape : of the records
    more : other keys of the table data
    """

    mechanism: Mapping[str, Any]
    domain: Mapping[str, Any]
    adjacency: Mapping[str, Any]
    epsilon: Any = 2
    delta: Any = Decimal("1e-3")
    shape: tuple[int, int] = (3, 6)
    more: Mapping[str, Any] | None = None

    def tables(self, folder: Path) -> dict[str, Any]:
        """The configuration, with records that are written to a folder."""
        if "columns" in self.domain:
            (folder / "records.csv").write_text(TABLE, encoding="utf-8")
            data = {"path": "records.csv", **self.domain}
        else:
            np.save(folder / "records.npy", self.records())
            data = {"path": "records.npy", "domain": dict(self.domain), **(self.more or {})}
        return {
            "data": data,
            "mechanism": dict(self.mechanism),
            "privacy": {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "adjacency": dict(self.adjacency),
            },
            "projection": {"seed": 11} if family_of(self.mechanism["name"]).seeded else {},
            "audit": {"alpha": Decimal("0.05"), "draws": 200, "moment_draws": 50, "seed": 5},
            "owner": {"trust-model": {"answer": "pass", "reason": "One office holds them."}},
        }

    def records(self) -> NDArray[np.float64]:
        """Records of the domain, the same at every call."""
        rows, columns = self.shape
        match self.domain.get("kind", "box"):
            case "sets":
                return np.array(
                    [[(c + r) % columns < 3 for c in range(columns)] for r in range(rows)], float
                )
            case "graph":
                return np.asarray(np.ones((rows, columns)) - np.eye(rows))
            case "ball":
                return np.full(self.shape, 0.25)
        low = float(self.domain.get("low", 0))
        if self.adjacency["kind"] == "bit-flip" or self.mechanism["name"] == "randomized-response":
            return np.asarray(np.indices(self.shape).sum(axis=0) % 2.0)
        return np.linspace(max(low, 0), max(low, 0) + 1, rows * columns).reshape(self.shape)


def _linear(name: str, domain: Any = _UNIT, adjacency: Any = _HALF, **more: Any) -> Case:
    size = {} if name == "raw-data-g-opt" else {"k": 4}
    keys = {"epsilon", "delta", "shape", "more"}
    own = {key: value for key, value in more.items() if key not in keys}
    rest = {key: value for key, value in more.items() if key in keys}
    return Case(mechanism={"name": name, **size, **own}, domain=domain, adjacency=adjacency, **rest)


CASES: Mapping[str, Case] = {
    "oporp": _linear("dp-oporp"),
    "oporp-laplace": _linear("dp-oporp", noise="laplace", delta=0),
    "oporp-l1": _linear("dp-oporp", adjacency={"kind": "l1-ball", "radius": 1}),
    "oporp-record": _linear("dp-oporp", _WIDE, _RECORD),
    "oporp-ranges": _linear("dp-oporp", more={"outside": "clip", "ranges": [[0, 2]] * 6}),
    "oporp-columns": _linear("dp-oporp", {"columns": _COLUMNS}, {"kind": "cell"}),
    "oporp-items": _linear("dp-oporp", _SETS, {"kind": "items", "changes": 2}),
    "oporp-sets": _linear("dp-oporp", _SETS, _RECORD),
    "gaussian": _linear("dp-rp-g"),
    "gaussian-opt": _linear("dp-rp-g-opt", _WIDE),
    "gaussian-ball": _linear("dp-rp-g-opt", _BALL, _RECORD),
    "gaussian-laplace": _linear("dp-rp-l"),
    "gaussian-record": _linear("dp-rp-g-opt", _UNIT, _RECORD, shape=(3, 14)),
    "rademacher": _linear("dp-rp-g-opt-b"),
    "rademacher-laplace": _linear("dp-rp-g-opt-b", noise="laplace"),
    "identity": _linear("raw-data-g-opt"),
    "identity-laplace": _linear("raw-data-g-opt", noise="laplace", delta=0),
    "uniform": _linear("private-projection", projection="uniform", sigma="kenthapadi"),
    "achlioptas": _linear("private-projection", projection="achlioptas"),
    "very-sparse": _linear("private-projection", projection="very-sparse", sigma="li"),
    "dks": _linear("private-projection", projection="dks", copies=3),
    "sjlt-block": _linear("sjlt", sparsity=2),
    "sjlt-graph": _linear("sjlt", sparsity=2, construction="graph", noise="laplace"),
    "sjlt-hashed": _linear("sjlt", sparsity=2, independence=4),
    "fjlt": _linear("fjlt", density=Decimal("0.5")),
    "fjlt-input": _linear("fjlt", density=Decimal("0.5"), at="input"),
    "fjlt-record": _linear("fjlt", _UNIT, _RECORD, density=1, shape=(3, 8)),
    "noise-addition": Case(mechanism={"name": "noise-addition"}, domain=_UNIT, adjacency=_HALF),
    "noise-addition-bits": Case(
        mechanism={"name": "noise-addition"}, domain=_UNIT, adjacency={"kind": "bit-flip"}
    ),
    "response": Case(
        mechanism={"name": "randomized-response"}, domain=_UNIT, adjacency={"kind": "bit-flip"}
    ),
    "response-record": Case(
        mechanism={"name": "randomized-response"}, domain=_UNIT, adjacency=_RECORD
    ),
    "signs": _linear("dp-signrp-rr", _WIDE, delta=0),
    "signs-record": _linear("dp-signrp-rr", _WIDE, _RECORD, delta=Decimal("0.05")),
    "signs-drawn": _linear("dp-signrp-rr", {"low": 1, "high": 2}, least_norm=2),
    "signs-smooth": _linear("dp-signrp-rr-smooth", _WIDE, delta=0),
    "signs-oporp": _linear("dp-signoporp-rr", _WIDE, repetitions=2),
    "signs-oporp-smooth": _linear("dp-signoporp-rr-smooth", _WIDE, ladder="steepest"),
    "min-hash": Case(
        mechanism={"name": "rr-min-hash", "k": 4, "buckets": 4},
        domain={"kind": "sets", "min_size": 2},
        adjacency={"kind": "items", "changes": 1},
    ),
    "min-hash-realised": Case(
        mechanism={"name": "rr-min-hash", "k": 4, "buckets": 2, "reading": "realised"},
        domain={"kind": "sets", "min_size": 2},
        adjacency={"kind": "items", "changes": 1},
    ),
    "min-hash-noisy": Case(
        mechanism={"name": "noisy-min-hash", "k": 4, "buckets": 4},
        domain={"kind": "sets", "min_size": 2},
        adjacency={"kind": "items", "changes": 2},
    ),
    "cuts": Case(
        mechanism={"name": "jl-graph-cuts", "sketch_rows": 1},
        domain={"kind": "graph"},
        adjacency={"kind": "edge", "weight": 1},
        shape=(8, 8),
        epsilon=8,
        delta=Decimal("0.1"),
    ),
    "covariance": Case(
        mechanism={"name": "jl-covariance", "sketch_rows": 4},
        domain=_BALL,
        adjacency={"kind": "row", "radius": 1},
        shape=(5, 3),
    ),
}
"""By name: every mechanism that can be certified, and every way in which its claim is computed."""

_MORE: Any = {"lower": "0.1", "upper": "0.1"}

WRONG: Sequence[tuple[str, Sequence[str | int], Any, bool, str]] = (
    ("oporp", ("inputs", "rows"), 4, False, "digest"),
    ("oporp", ("surprise",), 1, True, "schema"),
    ("oporp", ("inputs", "epsilon"), "2.0", True, "schema"),
    ("oporp", ("inputs", "epsilon"), "٢", True, "schema"),
    ("oporp", ("inputs", "mechanism"), "dp-oporp\x1b[2J", True, "schema"),
    ("oporp", ("inputs", "about"), {"heading": "A"}, True, "schema"),
    ("oporp", ("inputs", "about"), {"title": "A  B"}, True, "schema"),
    ("oporp", ("inputs", "about"), {"title": ""}, True, "schema"),
    ("oporp", ("inputs", "about"), {"title": "A" * 201}, True, "schema"),
    ("oporp", ("inputs", "outside"), None, True, "inputs"),
    ("oporp", ("inputs", "parameters", "k"), 7, True, "projection and sensitivity"),
    ("oporp", ("inputs", "projection_seed"), 12, True, "projection and sensitivity"),
    ("oporp", ("inputs", "epsilon"), "1", True, "projection and sensitivity"),
    ("oporp", ("inputs", "rows"), 4, True, "release"),
    ("oporp-ranges", ("inputs", "ranges", 0, "low"), "3", True, "inputs"),
    ("oporp-ranges", ("inputs", "outside"), "refuse", True, "guarantee"),
    ("oporp", ("evidence", "white_box", 0, "counts", 0, "hits"), 201, True, "evidence"),
    ("oporp", ("evidence", "white_box", 0, "counts", 0, "hits"), 199, True, "curve"),
    ("oporp", ("derived", "protects"), "everybody", True, "projection and sensitivity"),
    ("oporp", ("derived", "guarantee", "epsilon", "upper"), "1", True, "guarantee"),
    ("oporp", ("derived", "guarantee", "statements"), [], True, "guarantee"),
    ("oporp", ("derived", "far_delta", "upper"), "0", True, "guarantee"),
    ("oporp", ("derived", "curve", 20, "delta"), _MORE, True, "curve"),
    ("oporp", ("derived", "curve", 3, "shown"), "0.9", True, "curve"),
    ("response", ("derived", "curve", 22, "shown"), "-0", True, "curve"),
    ("response", ("derived", "far_delta", "lower"), "-0", True, "guarantee"),
    ("oporp", ("derived", "attacker", 0, "true_positive_rate"), _MORE, True, "attacker"),
    ("oporp", ("derived", "attacker", 0, "threshold"), "1.0", True, "attacker"),
    ("oporp", ("derived", "white_box", "verdict"), "inconclusive", True, "attack"),
    ("oporp", ("derived", "white_box", "findings", 0, "level"), "0.05", True, "attack"),
    ("oporp", ("derived", "white_box", "findings", 0, "threshold"), "0.8", True, "attack"),
    ("oporp", ("derived", "white_box", "findings", 3, "epsilon_lower"), "0.120634473", True,
     "attack"),
    ("oporp", ("derived", "white_box", "findings", 3, "refuted_at"), "1", True, "attack"),
    ("oporp", ("derived", "white_box", "ceiling"), "2", True, "attack"),
    ("oporp", ("derived", "white_box", "power", "noise_scale"), "0.9", True, "attack"),
    ("oporp", ("derived", "white_box", "power", "smallest_excess"), "0.1", True, "attack"),
    ("oporp", ("derived", "white_box", "power", "reach"), "1", True, "attack"),
    ("oporp", ("derived", "white_box", "roc_thresholds", 0), "-3", True, "attack"),
    ("oporp", ("derived", "moment_level"), "0.01", True, "estimators"),
    ("oporp", ("derived", "estimators", 0, "variance"), "1", True, "estimators"),
    ("oporp", ("derived", "estimators", 1, "mean_verdict"), "refuted", True, "estimators"),
    ("oporp", ("derived", "predictions", 7, "truth"), "1", True, "estimators"),
    ("oporp", ("derived", "usefulness", "verdict"), "useful", True, "estimators"),
    ("oporp", ("derived", "usefulness"), None, True, "estimators"),
    ("oporp", ("derived", "sizes", 0, "error"), "0.1", True, "estimators"),
    ("oporp", ("evidence", "moments", 0, "estimator"), "distance", True, "estimators"),
    ("oporp", ("inputs", "audit_seed"), 6, True, "estimators"),
    ("oporp-columns", ("inputs", "columns", 0, "high"), "0", True, "schema"),
    ("oporp-columns", ("inputs", "columns", 1, "categories"), ["f", "m", "x"], True, "inputs"),
    ("oporp-columns", ("derived", "protects"), "one record", True, "projection and sensitivity"),
    ("signs-smooth", ("derived", "estimators", 0, "expectation"), "0.5", True, "estimators"),
    ("response", ("derived", "estimators", 1, "variance"), "3", True, "estimators"),
    ("min-hash", ("derived", "estimators", 0, "variance"), "3", True, "estimators"),
    ("cuts", ("derived", "sizes", 0, "error"), "3", True, "estimators"),
    ("oporp", ("checklist", 0, "answer"), "pass", True, "checklist"),
    ("oporp", ("release", "step"), None, True, "release"),
    ("oporp", ("release", "shape"), [], True, "release"),
    ("oporp", ("release", "sha256"), "0" * 64, True, "released file"),
    ("oporp", ("release",), None, True, "release"),
    ("oporp", ("release", "randomness"), "numpy", True, "schema"),
    ("oporp-sets", ("derived", "white_box", "verdict"), "no_violation_found", True, "attack"),
    ("gaussian-opt", ("derived", "facts", "noise", "scale_in_steps"), "1024", True,
     "projection and sensitivity"),
    ("gaussian-ball", ("derived", "facts", "projection", "integer_spectral_norm"), _MORE, True,
     "projection and sensitivity"),
    ("fjlt", ("derived", "facts", "projection", "sha256"), "0" * 64, True,
     "projection and sensitivity"),
    ("response", ("derived", "facts", "coins", "flip_numerator"), "1099511627776", True,
     "projection and sensitivity"),
    ("signs-smooth", ("derived", "facts", "noise", "flip_at_last_level"), "1/2**64", True,
     "projection and sensitivity"),
    ("signs-drawn", ("inputs", "parameters", "least_norm"), "4", True,
     "projection and sensitivity"),
    ("min-hash", ("derived", "facts", "noise", "keep"), "18446744073692774400/2**64", True,
     "projection and sensitivity"),
    ("noise-addition", ("derived", "facts", "sensitivity", "entries_changed"), 3, True,
     "projection and sensitivity"),
    ("cuts", ("derived", "facts", "sketch", "floor"), "1", True, "projection and sensitivity"),
    ("cuts", ("derived", "facts", "claim", "epsilon"), "1", True, "projection and sensitivity"),
)  # fmt: skip
"""Edits: of which case, where, the new value, is the digest renewed, and which line differs."""
