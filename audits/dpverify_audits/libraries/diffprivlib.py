"""diffprivlib (IBM): mechanisms, tools and models.

It claims the ε and δ that an object is made with. Its documentation reads neighbours as data sets
of one size of which one row differs, except for counts and histograms. All noise is drawn from the
system's entropy, as it is by default.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from diffprivlib import mechanisms, models, tools

from dpverify.data.adjacency import AddRemove, Adjacency, LInf, Replace
from dpverify_audits.libraries.entry import DataSets, Entry, claimed

__all__ = ["entries"]

_PLAIN = {"epsilon": 1, "sensitivity": 1}
_NUMBER = (([0.0], [1.0]), ([3.0], [2.0]))
_ANSWERS = (([0.0, 0.0, 0.0], [1.0, 0.0, 1.0]), ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]))
_SWAP = (([0.0, 1.0, 1.0, 1.0], [1.0] * 4), ([0.5, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0]))
_MECHANISM = "epsilon (and delta) that the mechanism is made with, at its sensitivity"
_TOOL = "epsilon of the call; one row is replaced"


def _entry(
    name: str,
    function: Callable[[Any], Any],
    pairs: tuple[DataSets, ...],
    adjacency: Adjacency,
    reading: str,
    delta: float = 0.0,
    **remarks: Any,
) -> Entry:
    return Entry(
        name=name,
        reading=reading,
        function=function,
        claim=claimed(1, delta),
        adjacency=adjacency,
        pairs=pairs,
        **{"draws": 300, **remarks},
    )


def _mechanisms() -> Iterator[Entry]:
    bounds = {"lower": 0, "upper": 5}
    reals: dict[str, tuple[dict[str, Any], float]] = {
        "Laplace": (_PLAIN, 0.0),
        "Laplace with delta": ({**_PLAIN, "delta": 0.05}, 0.05),
        "LaplaceTruncated": (_PLAIN | bounds, 0.0),
        "LaplaceFolded": (_PLAIN | bounds, 0.0),
        "LaplaceBoundedDomain": (_PLAIN | bounds, 0.0),
        "LaplaceBoundedNoise": ({**_PLAIN, "delta": 0.05}, 0.05),
        "Snapping": ({**_PLAIN, "lower": -4, "upper": 8}, 0.0),
        "Staircase": (_PLAIN, 0.0),
        "Gaussian": ({**_PLAIN, "delta": 0.02}, 0.02),
        "GaussianAnalytic": ({**_PLAIN, "delta": 0.02}, 0.02),
    }
    for name, (options, delta) in reals.items():
        made = getattr(mechanisms, name.split()[0])(**options)

        def number(data: Any, made: Any = made) -> Any:
            return made.randomise(float(data[0]))

        yield _entry(name, number, _NUMBER, LInf(1), _MECHANISM, delta)
    wholes: dict[str, tuple[dict[str, Any], float]] = {
        "Geometric": (_PLAIN, 0.0),
        "GeometricTruncated": (_PLAIN | bounds, 0.0),
        "GeometricFolded": (_PLAIN | bounds, 0.0),
        "GaussianDiscrete": ({"epsilon": 1, "delta": 0.02}, 0.02),
    }
    for name, (options, delta) in wholes.items():
        made = getattr(mechanisms, name)(**options)

        def whole(data: Any, made: Any = made) -> Any:
            return made.randomise(int(data[0]))

        yield _entry(name, whole, _NUMBER, LInf(1), _MECHANISM, delta)
    noise = mechanisms.Uniform(delta=0.2, sensitivity=1)
    uniform = _entry(
        "Uniform", lambda x: noise.randomise(float(x[0])), _NUMBER, LInf(1), _MECHANISM
    )
    yield Entry(**_fields(uniform) | {"claim": claimed(0, 0.2)})
    for name in ("Exponential", "PermuteAndFlip"):
        kind = getattr(mechanisms, name)

        def chosen(data: Any, kind: Any = kind, **options: Any) -> Any:
            made = kind(epsilon=1, sensitivity=1, utility=data.tolist(), **options)
            return made.randomise()

        yield _entry(name, chosen, _ANSWERS, LInf(1), _MECHANISM)
        up = (([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]), ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0]))
        monotonic = partial(chosen, monotonic=True)
        yield _entry(f"{name}, monotonic", monotonic, up, LInf(1), _MECHANISM)
    coin = mechanisms.Binary(epsilon=1, value0="no", value1="yes")
    answers = ((["no"], ["yes"]),)
    yield _entry("Binary", lambda x: coin.randomise(x[0]), answers, Replace(), _MECHANISM)
    distances = [("a", "b", 1.0), ("a", "c", 1.0), ("b", "c", 1.0)]
    categories = mechanisms.ExponentialCategorical(epsilon=1, utility_list=distances)
    texts = ((["a"], ["b"]), (["c"], ["a"]))
    name = "ExponentialCategorical"
    yield _entry(name, lambda x: categories.randomise(x[0]), texts, Replace(), _MECHANISM)
    tree = mechanisms.ExponentialHierarchical(epsilon=1, hierarchy=[["a", "b"], ["c", "d"]])
    texts = ((["a"], ["b"]), (["c"], ["a"]))
    name = "ExponentialHierarchical"
    yield _entry(name, lambda x: tree.randomise(x[0]), texts, Replace(), _MECHANISM)
    matrix = mechanisms.Bingham(epsilon=1, sensitivity=1.0)
    squares = (([1.0, 0.0], [0.0, 1.0]),)

    def direction(data: Any) -> Any:
        first, second = data
        return matrix.randomise(np.array([[first, 0.0], [0.0, second]])) ** 2

    name = "Bingham, squares of the direction"
    yield _entry(name, direction, squares, LInf(1), _MECHANISM)


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in Entry.__slots__}


def _applied(tool: Any, options: dict[str, Any], data: Any) -> Any:
    return tool(np.array(data), **options)


def _tools() -> Iterator[Entry]:
    swap = partial(_entry, pairs=_SWAP, adjacency=Replace(), reading=_TOOL, draws=300)
    bounded: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1)}
    for name in ("mean", "sum", "var", "std", "median", "nanmean", "nansum", "nanvar", "nanstd"):
        tool = getattr(tools, name)
        yield swap(f"tools.{name}", partial(_applied, tool, bounded))
    missing = (([0.0, 1.0, 1.0], [float("nan"), 1.0, 1.0]), ([1.0, 0.0], [float("nan"), 0.0]))
    for name in ("nanmean", "nansum", "nanvar"):
        tool = getattr(tools, name)
        yield swap(
            f"tools.{name}, a missing value",
            partial(_applied, tool, bounded),
            pairs=missing,
        )
    yield swap("tools.quantile", lambda x: tools.quantile(np.array(x), 0.25, **bounded))
    yield swap("tools.percentile", lambda x: tools.percentile(np.array(x), 75, **bounded))
    yield swap(
        "tools.quantile, several",
        lambda x: tools.quantile(np.array(x), [0.25, 0.75], **bounded),
    )
    yield swap(
        "tools.mean of whole numbers",
        lambda x: tools.mean(np.array(x, dtype=int), **bounded),
        pairs=(([0, 1, 1], [1, 1, 1]),),
    )
    yield swap(
        "tools.sum of whole numbers",
        lambda x: tools.sum(np.array(x, dtype=int), **bounded),
        pairs=(([0, 1, 1], [1, 1, 1]),),
    )
    columns = (([[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]),)
    for name in ("mean", "sum", "var"):
        tool = getattr(tools, name)
        yield swap(
            f"tools.{name} by column",
            partial(_applied, tool, {**bounded, "axis": 0}),
            pairs=columns,
        )
    count = "epsilon of the call"
    come: Any = (([1.0, 1.0], [1.0, 1.0, 1.0]), ([], [1.0]))
    yield _entry(
        "tools.count_nonzero, add/remove",
        lambda x: tools.count_nonzero(np.array(x), epsilon=1),
        come,
        AddRemove(),
        count,
        known="by convention: the number of rows is public, and bounds the noise",
        example=_COUNT,
    )
    yield swap("tools.count_nonzero", lambda x: tools.count_nonzero(np.array(x), epsilon=1))

    def histogram(data: Any) -> Any:
        return tools.histogram(np.array(data), epsilon=1, bins=2, range=(0, 1))[0]

    moved = (([0.1, 0.1], [0.9, 0.1]), ([0.9, 0.9, 0.1], [0.1, 0.9, 0.1]))
    yield _entry("tools.histogram, add/remove", histogram, come, AddRemove(), count)
    yield swap(
        "tools.histogram",
        histogram,
        pairs=moved,
        known="documented: histograms are for rows added or removed",
        example=_HISTOGRAM,
    )

    def grid(data: Any) -> Any:
        x, y = np.array(data).T
        return tools.histogram2d(x, y, epsilon=1, bins=2, range=[(0, 1), (0, 1)])[0].ravel()

    points = (([[0.1, 0.1]] * 2, [[0.1, 0.1]] * 3), ([[0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]))
    yield _entry("tools.histogram2d, add/remove", grid, points, AddRemove(), count)


_COUNT = """\
import numpy as np
from diffprivlib.tools import count_nonzero
for data in (np.ones(2), np.ones(3)):  # one row is added
    print(len(data), "largest of 1,000:", max(count_nonzero(data, epsilon=1) for _ in range(1000)))
"""

_HISTOGRAM = """\
import numpy as np
from diffprivlib.tools import histogram
sums = []
for data in ([0.1, 0.1], [0.9, 0.1]):
    draws = np.array([histogram(np.array(data), epsilon=1, bins=2, range=(0, 1))[0]
                      for _ in range(20_000)])
    sums.append(np.mean((draws[:, 0] >= 2) & (draws[:, 1] <= 0)))
print("one row replaced, log of the ratio:", np.log(sums[0] / sums[1]), "epsilon claimed: 1")
"""


def _models() -> Iterator[Entry]:
    reading = "epsilon of the estimator, bounds given; one row of (X, y) is replaced"
    model = partial(_entry, adjacency=Replace(), reading=reading, draws=150)
    lines = (
        ([[100.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]),
        ([[50.0, 1.0]] * 4, [[50.0, 1.0]] * 3 + [[100.0, -1.0]]),
    )

    def line(low: float, high: float, data: Any, **options: Any) -> Any:
        x, y = np.array(data).T
        given = {"bounds_X": (low, high), "bounds_y": (-1, 1), "epsilon": 1, **options}
        made = models.LinearRegression(**given).fit(x[:, None], y)
        return [*made.coef_.ravel(), np.ravel(made.intercept_)[0]]

    yield model(
        "LinearRegression, bounds (0, 100), no intercept",
        partial(line, 0, 100, fit_intercept=False),
        lines[:1],
        draws=40,  # the minimum that it looks for is slow to find
        known="diffprivlib issue 105",
        example=_REGRESSION,
    )
    even = (([[1.0, 1.0], [0.0, 0.0]], [[-1.0, 1.0], [0.0, 0.0]]),)
    name = "LinearRegression, bounds (-1, 1), no intercept"
    yield model(name, partial(line, -1, 1, fit_intercept=False), even)
    yield model("LinearRegression, bounds (-1, 1)", partial(line, -1, 1), even)

    def bayes(data: Any) -> Any:
        rows = np.array(data)
        made = models.GaussianNB(epsilon=1, bounds=(0, 1)).fit(rows[:, :1], rows[:, 1])
        return {"means": made.theta_.tolist(), "counts": made.class_count_.tolist()}

    classes = (([[0.1, 0], [0.9, 0], [0.5, 1]], [[0.1, 0], [0.9, 0], [0.5, 0]]),)
    yield model(
        "GaussianNB, a class of one row",
        bayes,
        classes,
        known="arXiv 2602.17454: classes are read off the data",
        example=_CLASSES,
    )
    same = (([[0.0, 0], [0.0, 0], [0.5, 1]], [[1.0, 0], [0.0, 0], [0.5, 1]]),)
    yield model("GaussianNB, classes that both have", bayes, same)

    points = (([[0.0, 0.0]] * 4, [[1.0, 1.0], *[[0.0, 0.0]] * 3]),)

    def scaler(data: Any) -> Any:
        made = models.StandardScaler(epsilon=1, bounds=(0, 1)).fit(np.array(data))
        return [*made.mean_, *made.var_]

    yield model("StandardScaler", scaler, points)

    def clusters(data: Any) -> Any:
        made = models.KMeans(2, epsilon=1, bounds=(0, 1)).fit(np.array(data))
        return np.sort(made.cluster_centers_.ravel()).tolist()

    yield model("KMeans, 2 clusters", clusters, points)

    def components(data: Any) -> Any:
        given = {"epsilon": 1, "data_norm": 2.0, "bounds": (-1, 1)}
        made = models.PCA(1, **given).fit(np.array(data))
        return [*np.abs(made.components_.ravel()), *made.mean_]

    spread = (([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1]], [[0.0, 1.0], [-1.0, 0.0], [0.0, 0.1]]),)
    yield model("PCA, 1 component", components, spread)

    def logistic(data: Any) -> Any:
        rows = np.array(data)
        made = models.LogisticRegression(epsilon=1, data_norm=1.0).fit(rows[:, :1], rows[:, 1])
        return [*made.coef_.ravel(), *made.intercept_]

    labels = (([[1.0, 1], [0.5, 0], [0.5, 1]], [[1.0, 0], [0.5, 0], [0.5, 1]]),)
    yield model("LogisticRegression", logistic, labels, draws=40)  # as slow
    rare = (([[1.0, 0], [0.5, 1], [0.5, 2]], [[1.0, 0], [0.5, 1], [0.5, 0]]),)
    yield model(
        "LogisticRegression, a class of one row",
        logistic,
        rare,
        draws=40,
        known="diffprivlib issue 106",
        example=_LABELS,
    )

    def tree(data: Any) -> Any:
        rows = np.array(data)
        given = {"epsilon": 1, "bounds": (0, 1), "classes": [0, 1], "max_depth": 2}
        made = models.DecisionTreeClassifier(**given).fit(rows[:, :1], rows[:, 1])
        return made.predict(np.array([[0.1], [0.4], [0.6], [0.9]])).tolist()

    yield model("DecisionTreeClassifier, predictions", tree, labels)

    def forest(data: Any) -> Any:
        rows = np.array(data)
        given = {"epsilon": 1, "bounds": (0, 1), "classes": [0, 1], "max_depth": 2}
        made = models.RandomForestClassifier(2, **given).fit(rows[:, :1], rows[:, 1])
        return made.predict(np.array([[0.1], [0.4], [0.6], [0.9]])).tolist()

    yield model("RandomForestClassifier, predictions", forest, labels)


_REGRESSION = """\
import numpy as np
from diffprivlib.models import LinearRegression
for x in (100.0, 0.0):  # one row is (x, 1), the other (0, 0)
    slopes = []
    for _ in range(200):
        model = LinearRegression(epsilon=1, bounds_X=(0, 100), bounds_y=(-1, 1),
                                 fit_intercept=False)
        slopes.append(model.fit(np.array([[x], [0.0]]), np.array([1.0, 0.0])).coef_[0])
    print(x, np.quantile(slopes, [0.05, 0.5, 0.95]))
"""

_CLASSES = """\
import numpy as np
from diffprivlib.models import GaussianNB
X = np.array([[0.1], [0.9], [0.5]])
for y in ([0, 0, 1], [0, 0, 0]):  # one row is replaced
    model = GaussianNB(epsilon=1, bounds=(0, 1)).fit(X, np.array(y))
    print(model.classes_, model.theta_.shape)
"""


_LABELS = """\
import numpy as np
from diffprivlib.models import LogisticRegression
X = np.array([[1.0], [0.5], [0.5]])
for y in ([0, 1, 2], [0, 1, 0]):  # one row is replaced
    model = LogisticRegression(epsilon=1, data_norm=1.0).fit(X, np.array(y))
    print(model.classes_, model.coef_.shape)
"""


def entries() -> Iterator[Entry]:
    """All of them."""
    warnings.filterwarnings("ignore", module="diffprivlib|sklearn")
    yield from _mechanisms()
    yield from _tools()
    yield from _models()
