"""OpenDP: measurements, pipelines, and queries of Polars frames.

A measurement says itself what it claims: `map` of the distance between neighbours. We read its
answer as ε, (ε, δ) or ρ by the measurement's output measure. All draw from the system's entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import opendp.prelude as dp

from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.data.adjacency import L2, AddRemove, Adjacency, Attribute, LInf, Replace
from dpverify.guarantee import PrivacyBound
from dpverify_audits.libraries.entry import DataSets, Entry, claimed

__all__ = ["entries"]

pl: Any = import_module("polars")  # with the name space `dp`, which its types lack

_NUMBER = (([0.0], [1.0]), ([3.0], [2.0]))
_VECTOR = (([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]), ([2.0, 1.0, 5.0], [2.0, 1.0, 4.0]))
_ANSWERS = (([0.0, 0.0, 0.0], [1.0, -1.0, 1.0]), ([1.0, 1.0, 1.0], [2.0, 0.0, 0.0]))
_ROWS: Any = (([1, 2, 3], [1, 2, 3, 4]), ([], [4]), ([4, 0, 4], [4, 4]))
_SWAPS = (([0, 2, 3], [4, 2, 3]), ([4, 4, 4], [4, 4, 0]))
_CONTRIB = "the measurement's own `map({})`"


def _curve(loss: Any) -> PrivacyBound:
    """What a privacy map says in max-divergence: ε, or (ε, δ)."""
    return claimed(*loss) if isinstance(loss, tuple) else claimed(loss)


def _rho(loss: float) -> PrivacyBound:
    return ZCDP(rho=Fraction(loss))


def _measured(
    name: str,
    measurement: Any,
    distance: Any,
    adjacency: Adjacency,
    pairs: Sequence[DataSets],
    *,
    argument: Callable[[Any], Any] = list,
    read: Callable[[Any], PrivacyBound] = _curve,
    output: Callable[[Any], Any] = lambda answer: answer,
    **remarks: Any,
) -> Entry:
    return Entry(
        name=name,
        reading=_CONTRIB.format(distance),
        function=lambda data: output(measurement(argument(data))),
        claim=read(measurement.map(distance)),
        adjacency=adjacency,
        pairs=tuple(pairs),
        **remarks,
    )


def _reals(data: Any) -> list[float]:
    return [float(value) for value in data]


def _wholes(data: Any) -> list[int]:
    return [int(value) for value in data]


def _noise() -> Iterator[Entry]:
    real = dp.atom_domain(T=float, nan=False)
    single = dp.atom_domain(T="f32", nan=False)
    whole = dp.atom_domain(T=int)

    def one(data: Any) -> float:
        return float(data[0])

    def one_whole(data: Any) -> int:
        return int(data[0])

    number = partial(_measured, adjacency=LInf(1), pairs=_NUMBER)
    absolute = dp.absolute_distance(T=float)
    steps = dp.absolute_distance(T=int)
    for label, options in (("", {}), (", k = -2", {"k": -2}), (", k = 1", {"k": 1})):
        made = dp.m.make_laplace(real, absolute, 1.0, **options)
        yield number(f"make_laplace of a float{label}", made, 1.0, argument=one)
    made = dp.m.make_laplace(single, dp.absolute_distance(T="f32"), 1.0)
    yield number("make_laplace of a single-precision float", made, 1.0, argument=one)
    for scale in (1.0, 0.5, 10.0):
        made = dp.m.make_laplace(whole, steps, scale)
        name = f"make_laplace of a whole number, scale {scale:g}"
        yield number(name, made, 1, argument=one_whole)
    made = dp.m.make_geometric(whole, steps, 1.0, bounds=(0, 3))
    yield number("make_geometric with bounds", made, 1, argument=one_whole)
    made = dp.m.make_gaussian(real, absolute, 1.0)
    yield number("make_gaussian of a float", made, 1.0, argument=one, read=_rho)
    made = dp.m.make_gaussian(whole, steps, 1.0)
    yield number("make_gaussian of a whole number", made, 1, argument=one_whole, read=_rho)
    made = dp.m.make_gaussian(whole, steps, 0.5)
    name = "make_gaussian of a whole number, scale 0.5"
    yield number(name, made, 1, argument=one_whole, read=_rho)
    made = dp.m.make_canonical_noise(real, absolute, d_in=1.0, d_out=(1.0, 0.01))
    yield number("make_canonical_noise", made, 1.0, argument=one)

    vectors = partial(_measured, pairs=_VECTOR)
    reals, wholes = dp.vector_domain(real), dp.vector_domain(whole)
    made = dp.m.make_laplace(reals, dp.l1_distance(T=float), 1.0)
    yield vectors("make_laplace of floats", made, 1.0, Attribute(1), argument=_reals)
    made = dp.m.make_laplace(wholes, dp.l1_distance(T=int), 1.0)
    yield vectors("make_laplace of whole numbers", made, 1, Attribute(1), argument=_wholes)
    made = dp.m.make_gaussian(reals, dp.l2_distance(T=float), 1.0)
    yield vectors("make_gaussian of floats", made, 1.0, L2(1), argument=_reals, read=_rho)
    made = dp.m.make_gaussian(wholes, dp.l2_distance(T=float), 1.0)
    yield vectors("make_gaussian of whole numbers", made, 1.0, L2(1), argument=_wholes, read=_rho)


def _selection() -> Iterator[Entry]:
    wholes, far = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    pure, concentrated = dp.max_divergence(), dp.zero_concentrated_divergence()
    answers = partial(_measured, adjacency=LInf(1), pairs=_ANSWERS, argument=_wholes)
    made = dp.m.make_noisy_max(wholes, far, pure, 2.0)
    yield answers("make_noisy_max", made, 1)
    made = dp.m.make_noisy_max(wholes, far, pure, 2.0, negate=True)
    yield answers("make_noisy_max, of the least", made, 1)
    made = dp.m.make_noisy_max(wholes, far, concentrated, 1.0)
    yield answers("make_noisy_max in zCDP (mended: issue 2911)", made, 1, read=_rho)
    made = dp.m.make_noisy_top_k(wholes, far, pure, 2, 4.0)
    yield answers("make_noisy_top_k, k = 2", made, 1)
    made = dp.m.make_noisy_top_k(wholes, far, concentrated, 2, 2.0)
    yield answers("make_noisy_top_k in zCDP, k = 2", made, 1, read=_rho)
    made = dp.m.make_noisy_max(wholes, dp.linf_distance(T=int, monotonic=True), pure, 1.0)
    up = (([0.0, 0.0, 0.0], [1.0, 1.0, 0.0]), ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]))
    yield _measured("make_noisy_max, monotonic", made, 1, LInf(1), up, argument=_wholes)


def _local() -> Iterator[Entry]:
    report = partial(_measured, adjacency=Replace())
    for p in (0.75, 0.55):
        made = dp.m.make_randomized_response_bool(prob=p)
        name = f"make_randomized_response_bool, {p}"
        yield report(name, made, 1, pairs=(([True], [False]),), argument=lambda x: bool(x[0]))
    made = dp.m.make_randomized_response(["a", "b", "c"], 0.6)
    pairs = ((["a"], ["b"]), (["c"], ["not listed"]))
    yield report("make_randomized_response", made, 1, pairs=pairs, argument=lambda x: x[0])
    bits = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    made = dp.m.make_randomized_response_bitvec(*bits, 0.5)
    one_hot = ((b"\x01",), (b"\x80",)), ((b"\x01",), (b"\x00",))
    yield _measured(
        "make_randomized_response_bitvec (mended: issue 2707)",
        made,
        1,
        Replace(),
        [([a], [b]) for (a,), (b,) in one_hot],
        argument=lambda x: x[0],
        output=list,
    )


def _pipelines() -> Iterator[Entry]:
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    noise = dp.m.then_laplace
    free = partial(_measured, distance=1, adjacency=AddRemove(), pairs=_ROWS, argument=_wholes)
    clamped = rows >> dp.t.then_clamp((0, 4))
    histogram = rows >> dp.t.then_count_by_categories([1, 2, 3])
    whole = rows >> dp.t.then_count_by_categories([0, 1, 2, 3, 4], null_category=False)
    for name, transformation, scale in (
        ("count", rows >> dp.t.then_count(), 1.0),
        ("clamp, sum", clamped >> dp.t.then_sum(), 4.0),
        ("split sum", dp.t.make_bounded_int_split_sum((0, 4)), 4.0),
        ("monotonic sum", dp.t.make_bounded_int_monotonic_sum((0, 4)), 4.0),
        ("ordered sum", dp.t.make_bounded_int_ordered_sum((0, 4)), 4.0),
        ("count distinct", rows >> dp.t.then_count_distinct(), 1.0),
        ("count by categories", histogram, 1.0),
        (
            "equal to 2, sum",
            rows >> dp.t.then_is_equal(2) >> dp.t.then_cast_default(int) >> dp.t.then_clamp((0, 1))
            >> dp.t.then_sum(),
            1.0,
        ),
        ("tree of counts", whole >> dp.t.then_b_ary_tree(leaf_count=5, branching_factor=2), 4.0),
    ):  # fmt: skip
        yield free(f"{name}, Laplace noise", transformation >> noise(scale=scale))
    squares = dp.t.make_count_by_categories(*rows, [1, 2], MO=dp.L2Distance[int])
    made = squares >> dp.m.then_gaussian(1.0)
    yield free("count by categories, Gaussian noise", made, read=_rho)
    quantile = rows >> dp.t.then_quantile_score_candidates([0, 1, 2, 3, 4], 0.5)
    made = quantile >> dp.m.then_noisy_max(dp.max_divergence(), 2.0)
    yield free("median by scores of candidates", made)
    made = dp.m.make_private_quantile(*rows, dp.max_divergence(), [0, 1, 2, 3, 4], 0.25, 1.0)
    yield free("make_private_quantile, 1/4", made)
    floats = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    missing = floats >> dp.t.then_impute_constant(0.0) >> dp.t.then_clamp((0.0, 4.0))
    made = missing >> dp.t.then_resize(4, 0.0) >> dp.t.then_sum() >> noise(8.0)
    nan = float("nan")
    pairs: Any = (([1.0, nan], [1.0, nan, 4.0]), ([1.0], [1.0, nan]), ([4.0] * 4, [4.0] * 5))
    yield free("impute, clamp, resize, sum", made, argument=_reals, pairs=pairs)
    for kind in ("Pairwise<f64>", "Sequential<f64>"):
        made = dp.t.make_bounded_float_checked_sum(10, (0.0, 4.0), S=kind) >> noise(4.0)
        yield free(f"checked sum of floats, {kind}", made, argument=_reals)
    made = dp.t.make_bounded_float_ordered_sum(10, (0.0, 4.0)) >> noise(4.0)
    yield free("ordered sum of floats", made, argument=_reals)
    two = dp.c.make_composition([rows >> dp.t.then_count() >> noise(2.0)] * 2)
    yield free("make_composition of two counts", two)
    made = dp.c.make_zCDP_to_approxDP(rows >> dp.t.then_count() >> dp.m.then_gaussian(2.0))
    yield free("make_fix_delta of a Gaussian count", dp.c.make_fix_delta(made, 0.01))

    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 4.0)), size=3), dp.symmetric_distance()
    swap = partial(_measured, distance=2, adjacency=Replace(), pairs=_SWAPS, argument=_reals)
    for name, transformation, scale in (
        ("sum of known size", sized >> dp.t.then_sum(), 4.0),
        ("mean of known size", sized >> dp.t.then_mean(), 4 / 3),
        ("variance of known size", sized >> dp.t.then_variance(), 4.0),
    ):
        yield swap(f"{name}, Laplace noise", transformation >> noise(scale=scale))
    counted = dp.vector_domain(dp.atom_domain(bounds=(0, 4)), size=3), dp.symmetric_distance()
    total = counted >> dp.t.then_sum() >> noise(scale=4.0)
    yield swap("sum of known size, whole numbers", total, argument=_wholes)

    count_by = dp.t.make_count_by(*texts)
    made = count_by >> dp.m.then_laplace_threshold(scale=1.0, threshold=3)
    yield _measured(
        "count by, Laplace threshold 3",
        made,
        1,
        AddRemove(),
        (([], ["a"]),),
        draws=1_500,
        known="OpenDP issue 2922",
        example=_THRESHOLD,
    )
    pairs = ((["a"] * 9, ["a"] * 10), (["a"] * 5, ["a"] * 4))
    name = "count by, Laplace threshold 3, keys that both have"
    yield _measured(name, made, 1, AddRemove(), pairs)


_THRESHOLD = """\
import opendp.prelude as dp
dp.enable_features("contrib")
texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
release = dp.t.make_count_by(*texts) >> dp.m.then_laplace_threshold(scale=1.0, threshold=3)
people = [f"person {i}" for i in range(100_000)]  # each alone with a key
print("delta claimed", release.map(1)[1], "keys shown", len(release(people)) / len(people))
"""


# --- Polars

_PEOPLE = ({"age": 20, "city": "a", "pay": 1.0}, {"age": 40, "city": "b", "pay": 4.0})
_PERSON = {"age": 100, "city": "a", "pay": 3.5}
_FRAMES: Any = (
    (list(_PEOPLE), [*_PEOPLE, _PERSON]),
    ([_PERSON] * 4, [_PERSON] * 3),
    ([], [_PERSON]),
)
_SCHEMA = {"age": pl.Int64, "city": pl.String, "pay": pl.Float64}


def _context(
    name: str,
    query: Callable[[Any], Any],
    *margins: Any,
    pairs: Sequence[DataSets] = _FRAMES,
    read: Callable[[Any], PrivacyBound] = _curve,
    keys: bool = False,
    **loss: float,
) -> Entry:
    """A query of a context whose whole budget it may spend."""
    loss = loss or {"epsilon": 1.0}
    context = dp.Context.compositor(
        data=pl.LazyFrame([], schema=_SCHEMA),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=list(margins),
    )
    measurement = query(context.query()).resolve()

    def released(rows: Any) -> Any:
        answer = measurement(pl.LazyFrame(list(rows), schema=_SCHEMA)).collect()
        return dict(answer.rows()) if keys else answer.rows()

    claim = read(tuple(loss.values()) if len(loss) > 1 else next(iter(loss.values())))
    return Entry(
        name=f"Polars: {name}",
        reading="the budget of the context, `loss_of`, `unit_of(contributions=1)`",
        function=released,
        claim=claim,
        adjacency=AddRemove(),
        pairs=tuple(pairs),
        draws=200,
    )


def _polars() -> Iterator[Entry]:
    margin = dp.polars.Margin
    some, ages, pay = margin(max_length=10), pl.col("age").fill_null(0), pl.col("pay")
    signed = {"signed": True}
    whole = pay.fill_null(0.0).fill_nan(0.0)
    yield _context("len", lambda q: q.select(dp.len(**signed)))
    yield _context("len, clamped at 0", lambda q: q.select(dp.len(signed=False)))
    yield _context("len, Gaussian", lambda q: q.select(dp.len(**signed)), read=_rho, rho=0.5)
    yield _context("sum", lambda q: q.select(ages.dp.sum((0, 100))), some)
    yield _context("sum of floats", lambda q: q.select(whole.dp.sum((0.0, 4.0))), some)
    yield _context("median", lambda q: q.select(ages.dp.median([0, 20, 40, 60, 80, 100])), some)
    yield _context("quantile", lambda q: q.select(ages.dp.quantile(0.25, [0, 20, 40, 100])), some)
    yield _context("count", lambda q: q.select(pl.col("age").dp.count(**signed)))
    yield _context("null_count", lambda q: q.select(pl.col("age").dp.null_count(**signed)))
    yield _context("n_unique", lambda q: q.select(pl.col("city").dp.n_unique(**signed)))
    yield _context("filter, len", lambda q: q.filter(pl.col("age") > 30).select(dp.len(**signed)))
    yield _context(
        "sum and len",
        lambda q: q.select(ages.dp.sum((0, 100)).alias("s"), dp.len(**signed).alias("n")),
        some,
    )
    cities = pl.LazyFrame({"city": ["a", "b", "c"]})
    grouped: Any = {"keys": True}
    yield _context(
        "group_by, len, with keys",
        lambda q: q.group_by("city").agg(dp.len(**signed)).with_keys(cities),
        **grouped,
    )
    invariant = margin(by=["city"], invariant="keys", max_length=10)
    yield _context(
        "group_by, sum, public keys",
        lambda q: q.group_by("city").agg(ages.dp.sum((0, 100))),
        invariant,
        pairs=(([*_PEOPLE], [*_PEOPLE, _PERSON]), ([_PERSON] * 4, [_PERSON] * 3)),
        **grouped,
    )
    yield _context(
        "group_by, len, keys above a threshold",
        lambda q: q.group_by("city").agg(dp.len(**signed)),
        epsilon=1.0,
        delta=1e-3,
        **grouped,
    )
    yield _reported_2944()
    yield _reported_2945()
    yield _reported_2949()


def _lazy(schema: Any, column: str) -> Callable[[Any], Any]:
    return lambda rows: pl.LazyFrame({column: list(rows)}, schema=schema)


def _reported_2944() -> Entry:
    schema = {"x": pl.Float64}
    codes = pl.col("x").cut([1.0]).to_physical()
    query = pl.LazyFrame(schema=schema).select(codes.dp.sum((0, 1), scale=1.0))
    column = dp.series_domain("x", dp.atom_domain(T=float, nan=False))
    made = dp.m.make_private_lazyframe(
        dp.with_margin(dp.lazyframe_domain([column]), dp.polars.Margin(max_length=21)),
        dp.frame_distance(dp.symmetric_distance()),
        dp.max_divergence(),
        query,
    )
    one = [dp.polars.Bound(per_group=1)]
    return Entry(
        name="Polars: cut, to_physical, sum",
        reading=_CONTRIB.format("[Bound(per_group=1)]"),
        function=lambda rows: made(_lazy(schema, "x")(rows)).collect().item(),
        claim=claimed(made.map(one)),
        adjacency=AddRemove(),
        pairs=(([0.5] * 20, [2.0, *[0.5] * 20]),),
        draws=200,
        known="OpenDP issue 2944",
        example=_CUT,
    )


_CUT = """\
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
codes = pl.col("x").cut([1.0]).to_physical()
query = pl.LazyFrame(schema={"x": pl.Float64}).select(codes.dp.sum((0, 1), scale=1.0))
column = dp.series_domain("x", dp.atom_domain(T=float, nan=False))
frames = dp.with_margin(dp.lazyframe_domain([column]), dp.polars.Margin(max_length=21))
metric = dp.frame_distance(dp.symmetric_distance())
made = dp.m.make_private_lazyframe(frames, metric, dp.max_divergence(), query)
for x in ([0.5] * 20, [2.0] + [0.5] * 20):
    print(made.map([dp.polars.Bound(per_group=1)]), made(pl.LazyFrame({"x": x})).collect().item())
"""


def _reported_2945() -> Entry:
    schema = {"key": pl.String, "x": pl.Int32}
    total = pl.col("x").dp.sum((-10, 10), scale=30.0)
    query = pl.LazyFrame(schema=schema).group_by("key").agg(total)
    columns = [
        dp.series_domain("key", dp.atom_domain(T=str)),
        dp.series_domain("x", dp.atom_domain(T="i32")),
    ]
    margin = dp.polars.Margin(by=["key"], max_length=3, max_groups=1, invariant="keys")
    made = dp.m.make_private_lazyframe(
        dp.with_margin(dp.lazyframe_domain(columns), margin),
        dp.symmetric_distance(),
        dp.max_divergence(),
        query,
    )

    def released(rows: Any) -> Any:
        frame = pl.LazyFrame({"key": ["a"] * len(rows), "x": list(rows)}, schema=schema)
        return made(frame).collect()["x"].item()

    return Entry(
        name="Polars: group_by, sum, Margin(max_length=3)",
        reading=_CONTRIB.format("6") + ": three rows out and three in",
        function=released,
        claim=claimed(made.map(6)),
        adjacency=AddRemove(k=6),
        pairs=(([10] * 3, [-10] * 3),),
        draws=500,
        known="OpenDP issue 2945",
        example=_MARGIN,
    )


_MARGIN = """\
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
total = pl.col("x").dp.sum((-10, 10), scale=30.0)
query = pl.LazyFrame(schema={"key": pl.String, "x": pl.Int32}).group_by("key").agg(total)
kinds = {"key": str, "x": "i32"}
columns = [dp.series_domain(name, dp.atom_domain(T=kind)) for name, kind in kinds.items()]
margin = dp.polars.Margin(by=["key"], max_length=3, max_groups=1, invariant="keys")
frames = dp.with_margin(dp.lazyframe_domain(columns), margin)
made = dp.m.make_private_lazyframe(frames, dp.symmetric_distance(), dp.max_divergence(), query)
print("claimed", made.map(6), "and the sum moves by 60 at scale 30, so it is at least", 60 / 30)
"""


def _reported_2949() -> Entry:
    schema = {"id": pl.Int64, "g": pl.Int64}
    counts = (
        pl.LazyFrame(schema=schema)
        .filter(pl.int_range(pl.len()).over("id", "g") < 1)
        .filter(pl.struct("g").rank("dense").over("id") < 101)
        .with_columns(g=pl.lit(0, dtype=pl.Int64))
        .group_by("g")
        .agg(dp.len(scale=1.0))
    )
    query = pl.LazyFrame({"g": [0]}).join(counts, on="g", how="left")
    columns = [dp.series_domain(name, dp.atom_domain(T="i64")) for name in schema]
    made = dp.m.make_private_lazyframe(
        dp.lazyframe_domain(columns),
        dp.symmetric_id_distance(identifier=pl.col("id")),
        dp.zero_concentrated_divergence(),
        query,
    )

    def released(rows: Any) -> Any:
        return made(pl.LazyFrame(list(rows), schema=schema)).collect()["len"].item()

    user = [{"id": 0, "g": g} for g in range(100)]
    other = [{"id": 1, "g": g} for g in range(100)]
    return Entry(
        name="Polars: truncation, then the column redefined",
        reading=_CONTRIB.format(1) + " in zCDP: all rows of one identifier",
        function=released,
        claim=_rho(made.map(1)),
        adjacency=AddRemove(user="id"),
        pairs=((user + other, other),),
        draws=200,
        known="OpenDP issue 2949",
        example=_REDEFINED,
    )


_REDEFINED = """\
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
few = pl.LazyFrame(schema={"id": pl.Int64, "g": pl.Int64}).filter(
    pl.int_range(pl.len()).over("id", "g") < 1, pl.struct("g").rank("dense").over("id") < 101)
counts = few.with_columns(g=pl.lit(0, dtype=pl.Int64)).group_by("g").agg(dp.len(scale=1.0))
query = pl.LazyFrame({"g": [0]}).join(counts, on="g", how="left")
frames = dp.lazyframe_domain([dp.series_domain(n, dp.atom_domain(T="i64")) for n in ("id", "g")])
metric, rho = dp.symmetric_id_distance(identifier=pl.col("id")), dp.zero_concentrated_divergence()
made = dp.m.make_private_lazyframe(frames, metric, rho, query)
print("rho claimed", made.map(1), "and one user moves the count by 100 at scale 1:", 100**2 / 2)
"""


def entries() -> Iterator[Entry]:
    """All of them."""
    dp.enable_features("contrib", "honest-but-curious")
    yield from _noise()
    yield from _selection()
    yield from _local()
    yield from _pipelines()
    yield from _polars()
