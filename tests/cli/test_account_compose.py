"""``dpverify account compose``: one grammar for releases, typed or in a file."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpverify as dpv
from dpverify.enclosure import Enclosure, Real
from dpverify.guarantee import PrivacyCurve
from tests.helpers.command_line import result, run
from tests.helpers.profiles import day_and_night

OPORP = "dp-oporp k=4 attributes=9 domain.low=0 domain.high=1 adjacency.beta=1 epsilon=1 delta=1e-6"
YEAR = """\
count,mechanism,parameters,label,date
10,gaussian,sigma=4,weekly counts,2026-01-05

1,laplace,scale=2 sensitivity=1,"budget, of 2026",
1,approximate-dp,epsilon=1 delta=1e-6,from a vendor,2026-07-01
"""
SAME_YEAR = """\
[[releases]]
count = 10
mechanism = "gaussian"
parameters = { sigma = 4 }
label = "weekly counts"
date = 2026-01-05

[[releases]]
mechanism = "laplace"
parameters = { scale = 2, sensitivity = 1 }
label = "budget, of 2026"

[[releases]]
mechanism = "approximate-dp"
parameters = { epsilon = 1, delta = 1e-6 }
label = "from a vendor"
date = 2026-07-01
"""


def epsilon_of(capsys: pytest.CaptureFixture[str], *releases: str | Path) -> Decimal:
    assert run("account", "compose", *releases, "--delta", "1e-5", "--json") == 0
    found = result(capsys, "account")
    assert Decimal(found["epsilon"]["lower"]) <= Decimal(found["epsilon"]["upper"])
    return Decimal(found["epsilon"]["upper"])


def test_it_is_the_sum_of_the_curves(capsys: pytest.CaptureFixture[str]) -> None:
    releases = ("10 x gaussian sigma=4", "5 x laplace scale=2", "randomized-response keep=0.75")
    curves = 10 * dpv.Gaussian(sigma=4) + 5 * dpv.Laplace(scale=2)
    whole = curves + dpv.RandomizedResponse(keep="0.75")
    safe = whole.epsilon_at("1e-5").upper
    assert epsilon_of(capsys, *releases) == pytest.approx(Decimal(safe), rel=Decimal("1e-15"))
    assert run("account", "compose", *releases, "--epsilon", "4", "--json") == 0
    delta = result(capsys, "account")["delta"]
    assert float(delta["upper"]) == pytest.approx(whole.delta_at(4).upper, rel=1e-15)


def test_what_each_costs_alone_and_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    releases = ("2 x gaussian sigma=4", "3 x approximate-dp epsilon=1 delta=1e-6")
    assert run("account", "compose", *releases, "--delta", "1e-5", "--json") == 0
    found = result(capsys, "account")
    shown = [(part["count"], part["release"]) for part in found["releases"]]
    assert shown == [(2, "gaussian sigma=4"), (3, "approximate-dp epsilon=1 delta=1e-6")]
    alone = [Decimal(part["epsilon_alone"]["upper"]) for part in found["releases"]]
    assert (
        max(alone) < Decimal(found["epsilon"]["upper"]) < Decimal(found["added_epsilon"]["upper"])
    )
    # 3e-6 of delta go to the points, and what is left is shared by five.
    share = Fraction(7, 5 * 10**6)
    point = dpv.ApproxDP(epsilon=1, delta="1e-6").epsilon_at(Fraction(1, 10**6) + share)
    added = 2 * dpv.Gaussian(sigma=4).epsilon_at(share).upper + 3 * point.upper
    assert float(found["added_epsilon"]["upper"]) == pytest.approx(added, rel=1e-14)
    assert run("account", "compose", *releases, "--delta", "1e-5") == 0
    text = capsys.readouterr().out
    assert "2 x gaussian sigma=4" in text
    assert "added up" in text


def test_equal_releases_of_a_file_are_asked_about_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "year.csv"
    path.write_text("mechanism,parameters\n" + "gaussian,sigma=4\ngaussian,sigma=5\n" * 50)
    asked: list[PrivacyCurve] = []

    def noted(curve: PrivacyCurve, delta: Real, known: Any = PrivacyCurve.epsilon_at) -> Enclosure:
        asked.append(curve)
        return known(curve, delta)  # type: ignore[no-any-return]

    monkeypatch.setattr(PrivacyCurve, "epsilon_at", noted)
    assert run("account", "compose", path, "--delta", "1e-5", "--json") == 0
    assert len(result(capsys, "account")["releases"]) == 100
    assert sum(isinstance(curve, dpv.Gaussian) for curve in asked) <= 5


def test_a_file_is_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = epsilon_of(
        capsys,
        "10 x gaussian sigma=4",
        "laplace scale=2",
        "approximate-dp epsilon=1 delta=1e-6",
    )
    for name, text in (("year.csv", YEAR), ("year.toml", SAME_YEAR)):
        path = tmp_path / name
        path.write_text(text)
        assert epsilon_of(capsys, path) == typed
        assert run("account", "compose", path, "--delta", "1e-5", "--json") == 0
        second = result(capsys, "account")["releases"][1]
        assert second["label"] == "budget, of 2026"
        assert run("account", "compose", path, "--delta", "1e-5") == 0
        assert "weekly counts" in capsys.readouterr().out


def test_a_fraction_is_a_number_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a release, in a file, as a target, and in code."""
    truth = dpv.Gaussian(sigma="7/2").poisson_sampled(rate="1/3").epsilon_at("1/1000000")
    files = {
        "year.csv": "mechanism,parameters\ngaussian,sigma=7/2 rate=1/3\n",
        "year.toml": '[[releases]]\nmechanism = "gaussian"\n'
        'parameters = { sigma = 3.5, rate = "1/3" }\n',
    }
    written: list[str | Path] = ["gaussian sigma=7/2 rate=1/3"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        written.append(tmp_path / name)
    for release in written:
        assert run("account", "compose", release, "--delta", "1/1000000", "--json") == 0
        assert float(result(capsys, "account")["epsilon"]["upper"]) == pytest.approx(truth.upper)
    assert run("account", "compose", written[0], "--delta", "1/0") == 2
    assert "delta='1/0' must be a number" in capsys.readouterr().err


@pytest.mark.nightly
def test_mechanisms_and_samples(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("account", "compose", f"3 x {OPORP}", "gaussian sigma=4", "--delta", "1e-6", "--json")
        == 0
    )
    found = result(capsys, "account")
    assert found["protects"] == "one attribute of one record, changed by at most 1"
    assert float(found["epsilon"]["upper"]) > 1.8
    sampled = "100 x gaussian sigma=1 rate=0.01"
    assert run("account", "compose", sampled, "--delta", "1e-6", "--json") == 0
    found = result(capsys, "account")
    step = 100 * dpv.Gaussian(sigma=1).poisson_sampled(rate="0.01")
    safe = step.epsilon_at("1e-6").upper
    assert float(found["epsilon"]["upper"]) == pytest.approx(safe, rel=1e-14)


@pytest.mark.parametrize(
    ("release", "curve"),
    [
        (
            "gaussian sigma=1 rate=0.01 replaced=1",
            dpv.Gaussian(sigma=1).poisson_sampled(rate="0.01", replaced=True),
        ),
        (
            "gaussian sigma=1 sensitivity=2 size=1 out_of=100",
            dpv.Gaussian(sigma=1, sensitivity=2).sampled_without_replacement(size=1, out_of=100),
        ),
        (
            "randomized-response keep=0.75 users=100",
            dpv.RandomizedResponse(keep="0.75").shuffled(users=100),
        ),
        ("approximate-dp epsilon=1 users=100", dpv.ApproxDP(epsilon=1).shuffled(users=100)),
    ],
)
def test_samples_of_replaced_records(
    release: str, curve: dpv.PrivacyCurve, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("account", "compose", release, "--delta", "1e-6", "--json") == 0
    found = result(capsys, "account")
    safe = curve.epsilon_at("1e-6").upper
    assert float(found["epsilon"]["upper"]) == pytest.approx(safe, rel=1e-14)


@pytest.mark.parametrize(
    "said", day_and_night("rate=1 replaced=1", "sensitivity=2 size=1 out_of=1")
)
def test_noise_beside_replaced_records_says_what_it_is_stated_for(
    capsys: pytest.CaptureFixture[str], said: str
) -> None:
    """What one record adds, or how far one moves that is replaced: a factor of 2 in sensitivity."""
    sampled, noise = "gaussian sigma=2 rate=0.1 replaced=1", "gaussian sigma=2"
    assert run("account", "compose", sampled, noise, "--delta", "1e-6") == 2
    assert "rate=1 replaced=1 if it is what one record adds" in capsys.readouterr().err
    step = dpv.Gaussian(sigma=2).poisson_sampled(rate="0.1", replaced=True)
    doubled = dpv.Gaussian(sigma=2, sensitivity=2, adjacency=dpv.Replace())
    truth = (step + doubled).epsilon_at("1e-6")
    stated = f"{noise} {said}"
    assert run("account", "compose", sampled, stated, "--delta", "1e-6", "--json") == 0
    found = result(capsys, "account")["epsilon"]
    assert float(found["lower"]) <= truth.upper
    assert truth.lower <= float(found["upper"]) < 1.00001 * truth.upper


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("10 x gaussian sgma=4", "release '10 x gaussian sgma=4': there is no parameter sgma. Did"),
        ("gausian sigma=4", "Did you mean gaussian?"),
        ("gaussian", "sigma is missing, the standard deviation of the noise: give -p sigma=…"),
        ("0 x gaussian sigma=4", "count=0 must be at least 1"),
        ("1.5 x gaussian sigma=4", "count=1.5 must be a whole number"),
        ("1.000 x gaussian sigma=4", "count=1.000 must be a whole number without a point"),
        ("many x gaussian sigma=4", "count='many' must be a number"),
        ("gaussian sigma=-4", "sigma=-4 must be positive"),
        ("gaussian sigma=4 rate=1.5", "rate=1.5 must be in (0, 1]"),
        ("gaussian sigma=4 rate=0.1 replaced=2", "replaced=2 must be 0 or 1"),
        ("gaussian sigma=4 size=3", "sample=size=3 must be a rate, with replaced=1 or without, or"),
        ("gaussian sigma=4 size=3 out_of=2", "size=3 must be at most out_of=2"),
        ("gaussian sigma=4 size=1.5 out_of=2", "size=1.5 must be a whole number"),
        (
            "gaussian sigma=4 users=9",
            "curve=Gaussian(sigma=4, sensitivity=1) must be one with a finite epsilon",
        ),
        ("laplace scale=4 users=9 rate=0.5", "sample=rate=0.5 users=9 must be a rate, with"),
        ("laplace scale=4 users=0", "users=0 must be at least 1"),
        ("approximate-dp epsilon=1 delta=1", "delta=1 must be in [0, 1)"),
        ("approximate-dp epsilon=1 delta=1e-4", "at least the probability with which everything"),
        ("  ", "must be written as"),
        ("3 gaussian sigma=4", 'must be written as "10 x gaussian sigma=4"'),
        (f"gaussian sigma=4 rate=0.1;{OPORP}", "the same for all releases"),
        (
            f"{OPORP.replace('beta=1', 'kind=record')};gaussian sigma=4",
            "state the kind of its sensitivity: in Python",
        ),
        ("missing.csv", "there is no such file"),
        ("missing.toml", "there is no such file"),
    ],
)
def test_mistakes_are_named(release: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "compose", *release.split(";"), "--delta", "1e-6") == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "count,what\n1,2\n", "line 1: the columns are"),
        ("a.csv", "mechanism,labels\n", "line 1: 'labels' is no column. Did you mean label?"),
        ("a.csv", "mechanism,mechanism\n", "two columns mechanism"),
        (
            "a.csv",
            "mechanism,parameters\ngaussian,sigma=4\ngaussian,sigma=x\n",
            "line 3: sigma='x'",
        ),
        ("a.csv", "mechanism,parameters\ngaussian\n", "line 2: has 1 cells, not 2"),
        ("a.csv", "mechanism,count\n,3\n", "line 2: mechanism is empty"),
        ("a.csv", "mechanism,count,parameters\nlaplace,,scale=1\n", "line 2: count is empty"),
        ("a.csv", "mechanism,count,parameters\nlaplace,1.000,scale=1\n", "without a point"),
        ("a.csv", 'mechanism\n"x', "can't be read"),
        ("a.csv", "mechanism,parameters\n\n", "has no release"),
        ("a.toml", "releases = []\n", "has no release"),
        ("a.toml", "x = 1\n", "write a [[releases]] for each release"),
        (
            "a.toml",
            '[[releases]]\nmechanism = "laplace"\nparameters = { scale = -1 }\n',
            "releases[0]: scale=-1",
        ),
        ("a.toml", "releases = [1]\n", "releases[0]: is not a table"),
        (
            "a.toml",
            '[[releases]]\nmechanism = "laplace"\nparameters = "scale"\n',
            "must be a table",
        ),
        ("a.toml", "[[releases]\n", "is not TOML"),
        (
            "a.toml",
            f"[[releases]]\nmechanism = 'laplace'\nparameters = {{ scale = 0x{'f' * 5000} }}\n",
            "a number in it is too large",
        ),
        (
            "a.toml",
            '[[releases]]\nmechanism = "laplace"\nparameters = { scale = 1 }\nlabel = ["x"]\n',
            "releases[0]: label must be text",
        ),
        (
            "a.toml",
            "[[releases]]\nmechanism = { a = 1 }\nparameters = { scale = 1 }\n",
            "releases[0]: mechanism must be text",
        ),
        ("a.csv", "mechanism,parameters\ngaussian,sigma=1e400\n", "line 2: mu_squared=1E-800 must"),
        (
            "a.csv",
            "mechanism,parameters,count\ngaussian,sigma=4,1e400\n",
            "… (401 characters) must",
        ),
        (
            "a.csv",
            f"mechanism,parameters\ngaussian,sigma={'9' * 6000}\n",
            "999… (6,000 characters) must be a number of at most 4,000 digits",
        ),
    ],
)
def test_mistakes_of_a_file_are_named(
    name: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert run("account", "compose", path, "--delta", "1e-6") == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert str(path) in shown
    assert len(shown) < 500 + len(str(path))


def test_one_of_epsilon_and_delta(capsys: pytest.CaptureFixture[str]) -> None:
    for point in ((), ("--epsilon", "1", "--delta", "1e-6")):
        assert run("account", "compose", "laplace scale=1", *point) == 2
        assert "give one of --epsilon" in capsys.readouterr().err
    assert run("account", "compose", "--delta", "1e-6") == 2
    assert "RELEASE" in capsys.readouterr().err
