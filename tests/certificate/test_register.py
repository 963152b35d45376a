"""An entry for the registry of deployments: its fields, its YAML, and what it can't know."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpverify.certificate import register
from dpverify.certificate.schema import Certificate
from dpverify.errors import CertificateError, ParameterError
from tests.helpers.command_line import result, run

# Names and choices of the registry's schema, commit 3e9c812.
FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
VARIANTS = {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"}


@pytest.fixture
def made(certificate: dict[str, Any]) -> Certificate:
    return Certificate.model_validate(certificate)


def test_it_has_fields_of_the_schema_alone(made: Certificate) -> None:
    entry = register.entry(made, name="A", curators=["B", "C"], sector="Energy", link="https://x.y")
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    for section, fields in entry["deployment"].items():
        assert set(fields) <= set(FIELDS[section].split())
    assert entry["url_slug"] == f"a-b-c-{made.environment.created[:4]}"
    deployment = entry["deployment"]
    assert deployment["dp_variant"]["variant_name"] in VARIANTS
    inputs = made.inputs
    numbers = {"epsilon": float(inputs.epsilon), "delta": float(inputs.delta)}
    assert deployment["privacy_loss"]["privacy_parameters"] == numbers
    assert deployment["administrative"]["sources"].startswith("https://x.y A certificate")
    assert deployment["basic"]["description"] == "DECIDE"


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.7", "1e-6"), ("1.00000000000000001", "1e-400"), ("1/3", "0")]
)
def test_no_number_is_below_the_certified_one(made: Certificate, epsilon: str, delta: str) -> None:
    exact = {"epsilon": Fraction(epsilon), "delta": Fraction(delta)}
    inputs = made.inputs.model_copy(update=exact)
    text = register.yaml(register.entry(made.model_copy(update={"inputs": inputs})))
    for name, number in exact.items():
        (written,) = (line.split()[1] for line in text.split("\n") if f" {name}: " in line)
        assert (
            number <= Fraction(written) <= number * (1 + Fraction(1, 10**15)) + Fraction("5e-324")
        )


def test_its_yaml_says_the_same(made: Certificate) -> None:
    entry = register.entry(made)
    assert yaml.safe_load(register.yaml(entry)) == entry


@given(
    st.dictionaries(
        st.text("abc_", min_size=1).map(lambda key: f"k{key}"),
        st.text(st.characters() | st.sampled_from("\x7f\x85\u2028\ufeff\uffff\ud800"))
        | st.floats(1e-300, 1e300)
        | st.lists(st.text("a: #-'\"\\\n"), min_size=1),
        min_size=1,
    )
)
def test_any_text_and_number_is_read_as_it_was(fields: dict[str, Any]) -> None:
    assert yaml.safe_load(register.yaml({"a": fields})) == {"a": fields}


def test_what_cannot_be_registered_is_refused(made: Certificate) -> None:
    with pytest.raises(ParameterError, match=r"sector=Healthcar must be.*Did you mean Healthcare"):
        register.entry(made, sector="Healthcar")
    nothing = made.model_copy(update={"release": None})
    with pytest.raises(CertificateError, match="nothing was released"):
        register.entry(nothing)


def test_on_the_command_line(
    workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "births.yaml"
    words = ("--name", "Births", "--curator", "Office", "--author", "A. Lovelace")
    assert run("register", workplace / "out", *words, "--out", out) == 0
    assert "times DECIDE stands for what only you know" in capsys.readouterr().err
    deployment = yaml.safe_load(out.read_text())["deployment"]
    assert deployment["basic"]["name"] == "Births"
    assert "unsigned: nobody stands by it" in deployment["administrative"]["notes"]
    assert run("register", workplace / "out", *words, "--out", out) == 2  # nothing is replaced
    capsys.readouterr()
    assert run("register", workplace / "out", *words, "--json") == 0
    assert result(capsys, "register")["status"] == "Draft"
    forged = json.loads((workplace / "out" / "certificate.json").read_text())
    forged["inputs"]["epsilon"] = "0.5"
    (tmp_path / "certificate.json").write_text(json.dumps(forged))
    assert run("register", tmp_path / "certificate.json") == 1
    assert "No entry was written" in capsys.readouterr().err
