"""dpmm: synthetic data from noisy marginals, in a process of its own.

One row comes or goes, as the sensitivity of its counts says. All noise is drawn from the system's
entropy; what is resampled by numpy's generators is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from dpverify.data.adjacency import AddRemove
from dpverify_audits.libraries.apart import command
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]


def _person(age: float | None, city: str, pet: str) -> dict[str, Any]:
    return {"age": age, "city": city, "pet": pet}


_FEW = [_person(20, "a", "cat"), _person(40, "b", "dog"), _person(60, "a", "dog")]
_SAME = [_person(20, city, "cat") for city in "abababab"]
_TEXTS = [{"city": row["city"], "pet": row["pet"]} for row in _FEW]
_CODES: list[dict[str, Any]] = [{"x": 0}, {"x": 0}, {"x": 1}]
_PAIR_OF_CODES = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]
_RARE = [{"a": 0, "b": 0, "c": 0}] * 999 + [{"a": 1, "b": 0, "c": 1}]


def entries() -> Iterator[Entry]:
    """All of them."""
    report = "new: docs/reports/dpmm.md"
    whole = partial(
        Entry,
        reading="epsilon and delta of the pipeline, and proc_epsilon for its bins; one row comes "
        "or goes; the domain is given",
        claim=claimed(1, 0.05),
        adjacency=AddRemove(),
        function=command("dpmm", "PrivBayes"),
        draws=40,
    )
    yield whole(name="PrivBayesPipeline", pairs=((_FEW, [*_FEW, _person(80, "c", "dog")]),))
    yield whole(
        name="PrivBayesPipeline, a column of one value but for one row",
        pairs=((_SAME, [*_SAME, _person(80, "a", "dog")]),),
        known=report,
        example=_STATIC,
    )
    yield whole(
        name="PrivBayesPipeline, a value missing in one row",
        pairs=((_FEW, [*_FEW, _person(None, "a", "dog")]),),
        known=report,
        example=_MISSING,
    )
    yield whole(
        name="PrivBayesPipeline without a domain",
        reading="epsilon and delta of the pipeline; one row comes or goes; no domain is given, and "
        "the library logs “PrivacyLeakage” for it",
        function=command("dpmm", "PrivBayes without a domain"),
        pairs=((_TEXTS, [*_TEXTS, {"city": "c", "pet": "dog"}]),),
        known="dpmm issue 24, and its own warning",
        example=_UNBOUNDED,
    )
    part = partial(
        Entry,
        reading="epsilon and delta of the model; one row comes or goes; what it measures",
        claim=claimed(1, 0.05),
        adjacency=AddRemove(),
        draws=200,
    )
    pairs = ((_CODES, [*_CODES, {"x": 2}]),)
    yield part(name="MSTGM, counts", function=command("dpmm", "counts of MST"), pairs=pairs)
    yield part(
        name="AIMGM, counts",
        function=command("dpmm", "counts of AIM"),
        pairs=((_PAIR_OF_CODES, [*_PAIR_OF_CODES, {"x": 2, "y": 1}]),),
    )
    yield part(
        name="PrivBayesGM, counts", function=command("dpmm", "counts of PrivBayes"), pairs=pairs
    )
    yield part(
        name="MSTGM without a domain, counts",
        function=command("dpmm", "counts without a domain"),
        pairs=pairs,
        known="dpmm issue 18",
        example=_LARGEST,
    )
    yield part(
        name="PrivBayesGM, which marginals it measures",
        function=command("dpmm", "marginals of PrivBayes"),
        pairs=((_RARE, [*_RARE, {"a": 1, "b": 1, "c": 0}]),),
        draws=100,
        known=report,
        example=_CHOICE,
    )
    yield part(
        name="processing.utils.approx_bounds",
        reading="epsilon of the call; one row comes or goes",
        claim=claimed(1),
        function=command("dpmm", "approx_bounds"),
        pairs=(([{"age": 3.0}] * 9, [*[{"age": 3.0}] * 9, {"age": 70.0}]),),
    )


_STATIC = """\
import pandas as pd
from dpmm.pipelines import PrivBayesPipeline
people = pd.DataFrame({"age": [20.0] * 9, "pet": ["cat", "dog", "cat"] * 3})
more = pd.concat([people, pd.DataFrame({"age": [80.0], "pet": ["dog"]})])  # one row is added
domain = {"age": {"lower": 0.0, "upper": 80.0}, "pet": {"categories": ["cat", "dog"]}}
for data in (people, more):
    made = PrivBayesPipeline(epsilon=1, delta=1e-5, n_bins=4, n_jobs=1, gen_kwargs={"n_iters": 100})
    made.fit(data, domain=domain)
    print(len(data), "rows:", made.generate(n_records=5)["age"].tolist())
"""

_MISSING = """\
import pandas as pd
from dpmm.processing.table_binner import TableBinner
pets = ["cat", "dog", "cat", "dog"]
domain = {"age": {"lower": 0.0, "upper": 80.0}, "pet": {"categories": ["cat", "dog"]}}
for last in (80.0, None):  # one value is missing
    binner = TableBinner(domain=dict(domain), binner_settings={"epsilon": 1, "n_bins": 4})
    coded = binner.fit_transform(pd.DataFrame({"age": [20.0, 40.0, 60.0, last], "pet": pets}))
    print("columns that the model measures:", list(coded))
"""

_UNBOUNDED = """\
import pandas as pd
from dpmm.pipelines import PrivBayesPipeline
for cities, pets in (("abab", "cdcd"), ("ababc", "cdcdc")):  # one row is added
    made = PrivBayesPipeline(epsilon=1, delta=1e-5, n_jobs=1, gen_kwargs={"n_iters": 100})
    made.fit(pd.DataFrame({"city": list(cities), "pet": list(pets)}))
    print(made.proc.categories["city"])
"""

_LARGEST = """\
import pandas as pd
from dpmm.models import MSTGM
for codes in ([0, 0, 1], [0, 0, 1, 2]):  # one row is added
    model = MSTGM(epsilon=1, delta=1e-5, compress=False, n_jobs=1)
    model.fit(pd.DataFrame({"x": codes}), marginals_only=True)
    print("counts told:", model.generator.measures[0][1].size)
"""

_CHOICE = """\
import pandas as pd
from dpmm.models import PrivBayesGM
rows, joined, domain = [[0, 0, 0]] * 999 + [[1, 0, 1]], [], dict.fromkeys("abc", 2)
for data in (rows, [*rows, [1, 1, 0]]):  # one row is added
    chosen = []
    for _ in range(20):
        model = PrivBayesGM(epsilon=1, delta=1e-5, domain=domain, n_jobs=1)
        model.fit(pd.DataFrame(data, columns=list("abc")), marginals_only=True)
        chosen.append(any({"a", "b"} <= set(clique) for clique in model.generator.cliques))
    print("a and b are measured together in", sum(chosen), "of 20")
"""
