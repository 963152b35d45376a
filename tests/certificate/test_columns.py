"""Declared columns, from a configuration or a data frame to a certificate."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpverify as dpv
from dpverify.certificate.certify import Empty, certify, configured, document_digest, requested
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.derive import worth
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Range
from dpverify.errors import ConfigurationError, RecordsError
from dpverify_check import dpverify_check as second

COLUMNS: Mapping[str, Any] = {
    "age": dpv.Integers(0, 120),
    "sex": dpv.Categories("f", "m", missing=True),
}
PEOPLE = pl.DataFrame({"age": [31, 60, 90, 2], "sex": ["f", "m", None, "f"]})
SETTINGS: Mapping[str, Any] = {
    "columns": COLUMNS,
    "mechanism": "raw-data-g-opt",
    "noise": "laplace",
    "epsilon": 8,
    "adjacency": "cell",
    "audit": {"draws": 200, "moment_draws": 50},
}
TEXT = """
[data]
path = "people.csv"
[data.columns]
age = { type = "whole", low = 0, high = 120 }
sex = { type = "category", categories = ["f", "m"], missing = "indicator" }
[mechanism]
name = "raw-data-g-opt"
noise = "laplace"
[privacy]
epsilon = 8
delta = 0
adjacency = "cell"
[audit]
draws = 200
moment_draws = 50
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("made") / "out"
    return certify(PEOPLE, out, accept=lambda _: True, workers=1, **SETTINGS)


def test_columns_are_asked_for_what_the_mechanism_asks() -> None:
    """Of a release of all rows the numbers of two records, and not records made of the columns."""
    columns = {"age": dpv.Integers(0, 120), "weight": dpv.Reals(30, 200)}
    settings: dict[str, Any] = {"mechanism": "noise-addition", "epsilon": 5, "delta": 1e-6}
    settings |= {"columns": columns, "adjacency": {"kind": "attribute", "beta": 1}}
    _, inputs, built = configured(requested(Empty(30), None, None, settings))
    assert worth(inputs, built) is not None


@pytest.mark.nightly
def test_a_data_frame_and_a_file_have_one_certificate(made: Any, tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    config = tmp_path / "people.toml"
    config.write_text(TEXT.replace('"cell"', '{ kind = "cell" }'))
    other = certify(config, tmp_path / "out", accept=lambda _: True, workers=1)
    assert other.certificate.inputs == made.certificate.inputs
    assert other.certificate.derived == made.certificate.derived


@pytest.mark.nightly
def test_what_the_certificate_says(made: Any) -> None:
    inputs = made.certificate.inputs
    assert (inputs.rows, inputs.attributes) == (4, 4)
    assert inputs.model_dump()["columns"] == [
        {
            "name": "age",
            "unit": "",
            "missing": "refuse",
            "type": "whole",
            "low": "0",
            "high": "120",
        },
        {
            "name": "sex",
            "unit": "",
            "missing": "indicator",
            "type": "category",
            "categories": ["f", "m"],
        },
    ]
    assert inputs.adjacency.kind == "l1-ball"
    assert made.certificate.derived.protects == "one column of one record, whatever it changes to"
    page = render(made.certificate)
    assert "age: whole numbers from 0 to 120<br>sex: one of f, m, or missing" in page


@pytest.mark.nightly
def test_it_verifies_and_a_change_doesnt(made: Any) -> None:
    fields = made.certificate.to_dict()
    checks = check_certificate(fields, made.folder, workers=1)
    assert {check.status for check in checks} <= {"agrees", "not_checked"}
    changes: tuple[Any, ...] = (
        lambda inputs: inputs["columns"].pop(),
        lambda inputs: inputs["columns"][1]["categories"].append("x"),
        lambda inputs: inputs["columns"][0].update(type="real", low="0.50"),
        lambda inputs: inputs["columns"][0].update(surprise=1),
        lambda inputs: inputs.update(ranges=[{"low": "0", "high": "1"}] * 4),
        lambda inputs: inputs.update(adjacency={"kind": "attribute", "numbers": {"beta": "1"}}),
    )
    for change in changes:
        changed = copy.deepcopy(fields)
        change(changed["inputs"])
        changed["digest"] = document_digest(changed)
        found = check_certificate(changed, made.folder, replay=False)
        assert any(check.status == "differs" for check in found)


@pytest.mark.nightly
def test_what_was_released_has_names_units_and_errors(made: Any) -> None:
    release = dpv.open_release(made)
    assert release.names == ["age", "sex = f", "sex = m", "sex missing"]
    frame = release.to_pandas()
    assert list(frame.columns) == release.names
    step = release.mechanism.step()
    assert step is not None
    assert release.to_numpy() == pytest.approx(release.rows * float(step))
    # Of what becomes 0 to 1, numbers are back in years; halves of categories stay.
    assert frame.to_numpy() == pytest.approx(release.to_numpy() * [120, 1, 1, 1])
    found = made.certificate.derived.estimators[0]
    assert release.errors[found.name] == pytest.approx(float(found.variance) ** 0.5)
    assert set(release.estimators) >= set(release.errors)
    assert "4 of 4 numbers: age to sex missing" in str(release)
    assert "<table" in release._repr_html_()
    pairs = release.squared_distance(release.rows[:2], release.rows[2:])
    assert pairs.shape == (2,)


@pytest.mark.nightly
@pytest.mark.usefixtures("no_figures")
def test_a_data_frame_has_the_owners_units(tmp_path: Path) -> None:
    """At so large an epsilon the noise is less than a fiftieth of each range."""
    days = [date(2020, 1, 1), date(2020, 7, 1), date(2020, 12, 31), date(2020, 3, 1)]
    data = pl.DataFrame({"day": days, "weight": [-10.0, 0.0, 30.0, None]})
    weight = {"type": "real", "low": -10, "high": 30, "missing": "indicator"}
    settings: dict[str, Any] = {
        **SETTINGS,
        "columns": {"day": dpv.Dates("2020-01-01", "2020-12-31"), "weight": weight},
        "epsilon": 10**4,
    }
    release = dpv.open_release(certify(data, tmp_path / "out", workers=1, **settings))
    frame = release.to_pandas()
    assert list(frame.columns) == ["day (days since 1970)", "weight", "weight missing"]
    due = [[18262, -10, 0], [18444, 0, 0], [18627, 30, 0], [18322, 10, 0.5]]
    assert (np.abs(frame.to_numpy() - due) < np.array([365, 40, 1]) / 50).all()
    # And so in the units of ranges by place.
    ranges = [Range(low=Fraction(low), high=Fraction(low + 2)) for low in range(3)]
    inputs = release.certificate.inputs.model_copy(update={"columns": [], "ranges": ranges})
    by_place = release.certificate.model_copy(update={"inputs": inputs})
    frame = replace(release, certificate=by_place).to_pandas()
    assert list(frame.columns) == ["attribute 0", "attribute 1", "attribute 2"]
    assert frame.to_numpy() == pytest.approx([0, 1, 2] + 2 * release.to_numpy())


def test_an_impossible_error_of_a_cosine_is_not_shown(made: Any) -> None:
    release = dpv.open_release(made)
    (cosine,) = (e for e in made.certificate.derived.estimators if e.name == "cosine")
    for variance, shown in (("0.25", True), ("9", False)):
        found = cosine.model_copy(update={"variance": variance, "expectation": cosine.truth})
        derived = release.certificate.derived.model_copy(update={"estimators": [found]})
        certificate = release.certificate.model_copy(update={"derived": derived})
        assert ("cosine" in replace(release, certificate=certificate).errors) == shown


def test_a_table_of_one_attribute_a_column_takes_sign_sketches() -> None:
    columns = {f"answer {n}": dpv.Integers(1, 5) for n in range(20)}
    settings = {"mechanism": "dp-signoporp-rr", "k": 8, "epsilon": 4, "adjacency": "cell"}
    asked = requested(Empty(50), None, None, settings | {"columns": columns})
    _, inputs, mechanism = configured(asked)
    assert inputs.adjacency.kind == "attribute"
    assert mechanism.adjacency == dpv.Attribute(1)


def test_a_category_is_not_protected_by_attributes() -> None:
    with pytest.raises(ConfigurationError, match=r"\(sex\), which move together. Protect a"):
        dpv.plan(PEOPLE, **{**SETTINGS, "adjacency": dpv.Attribute(1)})
    assert dpv.plan(PEOPLE, **{**SETTINGS, "adjacency": dpv.Record()}).inputs.attributes == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('path = "people.csv"', 'path = "x"\ndomain = { low = 0, high = 1 }', "leave out domain"),
        ("[data.columns]", "[data.colums]", "Did you mean columns"),
        ("low = 0,", 'low = "DECIDE",', "data.columns.age.low"),
        ('["f", "m"]', '"DECIDE"', "data.columns.sex.categories"),
        ('"whole"', '"number"', "data.columns.age.type=number is unknown"),
        (
            'path = "people.csv"',
            'path = "x"\nencoding = "utf-7000"',
            "is not an encoding that Python knows",
        ),
        ('path = "people.csv"', 'path = "x"\nthousands = "."', "decimal and thousands are both"),
    ],
)
def test_configurations_that_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(TEXT.replace('"cell"', '{ kind = "cell" }').replace(old, new))
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(path)
    assert said in str(caught.value)


def test_a_cell_needs_columns() -> None:
    with pytest.raises(ConfigurationError, match=r"one column of one record, for data\.columns"):
        dpv.plan(
            np.zeros((3, 2)),
            domain=dpv.Box(0, 1),
            **{**SETTINGS, "columns": None},
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": PEOPLE}, "data need a configuration, or settings"),
        ({"source": PEOPLE, "configuration": {}, "epsilon": 1}, "and not both"),
        ({"source": PEOPLE, "columns": COLUMNS}, "missing 3 required keyword-only arguments"),
        ({"source": 7, **SETTINGS}, "int is not a table"),
    ],
)
def test_arguments_that_dont_fit(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigurationError, RecordsError)) as caught:
        dpv.plan(**arguments)
    assert said in str(caught.value)


def test_nothing_is_released_of_a_table_that_isnt_as_declared(tmp_path: Path) -> None:
    wrong = PEOPLE.with_columns(pl.Series("age", [31, 60, 900, 2]))
    with pytest.raises(RecordsError, match=r"age: 1 outside the range \(row 3\)"):
        certify(wrong, tmp_path / "out", accept=lambda _: True, **SETTINGS)
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "raw-data-g-opt", "noise": "laplace"},
        pytest.param({"mechanism": "dp-signrp-rr", "k": 1}, marks=pytest.mark.nightly),
    ],
    ids=["cosine of nothing", "signs of nothing"],
)
def test_synthetic_records_may_be_zeros(mechanism: Mapping[str, Any], tmp_path: Path) -> None:
    """Of truth values alone all may be false; then no cosine is defined, and it is said."""
    answers = pl.DataFrame({"yes": [True, False]})
    settings = {**SETTINGS, "columns": {"yes": dpv.Booleans()}}
    del settings["mechanism"], settings["noise"]
    made = certify(answers, tmp_path / "out", accept=lambda _: True, **settings, **mechanism)
    found = {each.name: each for each in made.certificate.derived.estimators}
    if "noise" in mechanism:
        assert found["cosine"].expectation == "nan"
    else:  # signs of 0 agree half
        assert found["sign collision"].expectation == "0.5"
    fields = made.certificate.model_dump(by_alias=True)
    lines = second.check_fields(fields, made.folder / "sketch.npz")
    assert {line.status for line in lines if line.name in ("attack", "estimators")} == {"agrees"}
