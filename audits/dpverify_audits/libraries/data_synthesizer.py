"""DataSynthesizer: descriptions of a CSV file, with noise of numpy's and Python's generators."""

from __future__ import annotations

import contextlib
import io
import secrets
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

from dpverify.data.adjacency import Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]


def _described(rows: Any, *, seed: int | None, ages: tuple[int, int] | None) -> Any:
    describer = DataDescriber(histogram_bins=2, category_threshold=3)
    options: dict[str, Any] = {} if seed is None else {"seed": secrets.randbits(32)}
    given = {"age": ages} if ages else {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "people.csv"
        pd.DataFrame({"age": list(rows)}).to_csv(path, index=False)
        describer.describe_dataset_in_independent_attribute_mode(
            str(path),
            epsilon=1,
            attribute_to_datatype={"age": "Integer"},
            attribute_to_is_categorical={"age": False},
            attribute_to_is_candidate_key={"age": False},
            numerical_attribute_ranges=given,
            **options,
        )
    told = describer.data_description["attribute_description"]["age"]
    return [told["min"], told["max"], *told["distribution_probabilities"]]


def entries() -> Iterator[Entry]:
    """All of them."""
    entry = partial(
        Entry,
        reading="epsilon of describe_dataset_in_independent_attribute_mode; one row is replaced",
        claim=claimed(1),
        adjacency=Replace(),
        draws=100,
    )
    inside = (([10, 10, 10, 90], [90, 10, 10, 90]),)
    outer = (([10, 10, 10, 90], [10, 10, 10, 95]),)
    yield entry(
        name="independent attributes, range given, fresh seed",
        function=partial(_described, seed=1, ages=(0, 100)),
        pairs=inside,
    )
    yield entry(
        name="independent attributes, range of the data, fresh seed",
        function=partial(_described, seed=1, ages=None),
        pairs=outer,
        known="arXiv 2405.10994: minimum and maximum are read off the data",
        example=_RANGE,
    )
    yield entry(
        name="independent attributes, range given, seed by default",
        function=partial(_described, seed=None, ages=(0, 100)),
        pairs=inside,
        known="new: docs/reports/datasynthesizer-seed.md",
        example=_SEED,
    )


_RANGE = """\
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
for oldest in (90, 95):  # one row is replaced
    pd.DataFrame({"age": [10, 10, 10, oldest]}).to_csv("people.csv", index=False)
    made = DataDescriber(histogram_bins=2)
    made.describe_dataset_in_independent_attribute_mode("people.csv", epsilon=1, seed=oldest)
    print(made.data_description["attribute_description"]["age"]["max"])
"""

_SEED = """\
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
for first in (10, 10, 90):  # the first two are the same data set, in the third a row is replaced
    pd.DataFrame({"age": [first, 10, 10, 90]}).to_csv("people.csv", index=False)
    made = DataDescriber(histogram_bins=2)
    made.describe_dataset_in_independent_attribute_mode("people.csv", epsilon=1)
    print(made.data_description["attribute_description"]["age"]["distribution_probabilities"])
"""
