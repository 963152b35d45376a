"""The tasks of the front door, each as a user writes it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv

TINY = Fraction(1, 10**6)


def test_noise_for_a_target() -> None:
    sigma = dpv.calibrate(dpv.Gaussian, epsilon=1, delta=1e-6).sigma
    assert f"{float(sigma):.6f}" == "4.224679"  # type: ignore[arg-type]


@pytest.mark.parametrize(("times", "printed"), [(1, 0.36395), (10_000, 6.90739)])
def test_releases_on_samples(times: int, printed: float) -> None:
    curve = times * dpv.Gaussian(sigma=1).poisson_sampled(rate=0.01)
    assert "Gaussian(sigma=1).poisson_sampled(rate=0.01)" in str(curve)
    assert f"{curve.epsilon_at(1e-6):.5f}" == f"{printed}"


@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize(
    ("kind", "louder"),
    [
        (dpv.Gaussian, lambda curve: dpv.Gaussian(sigma=curve.sigma * Fraction(999, 1000))),
        (dpv.Laplace, lambda curve: dpv.Laplace(scale=curve.scale * Fraction(999, 1000))),
        (
            dpv.DiscreteGaussian,
            lambda curve: dpv.DiscreteGaussian(sigma=curve.sigma * Fraction(999, 1000)),
        ),
        (dpv.RandomizedResponse, lambda curve: dpv.RandomizedResponse(keep=curve.keep + TINY)),
    ],
)
def test_calibrated_noise_is_enough_and_little_less_is_not(
    kind: type[dpv.PrivacyCurve], louder: Any, epsilon: str, delta: str
) -> None:
    curve = dpv.calibrate(kind, epsilon=epsilon, delta=delta)
    assert Fraction(curve.delta_at(epsilon).upper) <= Fraction(delta)
    assert Fraction(louder(curve).delta_at(epsilon).lower) > Fraction(delta)


def test_what_cannot_be_calibrated_is_refused() -> None:
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (int, {}, "kind=int must be one of Gaussian, DiscreteGaussian, Laplace"),
        (dpv.ApproxDP, {}, "kind=ApproxDP must be one of"),
        (dpv.Gaussian, {"delta": 0}, "delta=0 must be positive with Gaussian noise"),
        (dpv.DiscreteGaussian, {"delta": 0}, "delta=0 must be in .* unbounded"),
        (dpv.DiscreteGaussian, {"sensitivity": 1.5}, "sensitivity=1.5 must be a whole number"),
        (dpv.Laplace, {"sensitivty": 1}, "Did you mean sensitivity"),
        (dpv.Laplace, {"epsilon": "much"}, "epsilon=much must be a finite real number"),
        (dpv.DiscreteGaussian, {"delta": "1e-400"}, "delta=.* must be 0, or in"),
        (dpv.DiscreteGaussian, {"epsilon": "1e400"}, "epsilon=.* must be in .0, 1e100"),
        (dpv.Laplace, {"epsilon": "1e-400", "delta": 0}, "scale=inf must be finite. Ask for"),
        (dpv.RandomizedResponse, {"values": 1}, "values=1 must be from 2"),
    ]
    for kind, options, message in refused:
        arguments: Any = {"epsilon": 1, "delta": 1e-6, **options}
        with pytest.raises(dpv.ParameterError, match=message):
            dpv.calibrate(kind, **arguments)


def test_what_a_noise_guarantees() -> None:
    assert f"{dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6):.4f}" == "1.0608"
    assert f"{dpv.Gaussian(sigma=4).delta_at(epsilon=1):.3g}" == "0.00000293"


def test_composition() -> None:
    total = (10 * dpv.Gaussian(sigma=4) + dpv.Laplace(scale=2)).epsilon_at(1e-6)
    assert total == dpv.compose(10 * dpv.Gaussian(sigma=4), dpv.Laplace(scale=2)).epsilon_at(1e-6)
    assert f"{total:.4f}" == "4.1424"


def noisy_sum(people: Any, rng: np.random.Generator) -> float:
    return float(people.sum()) + rng.laplace(scale=0.5)


def test_audit_a_function() -> None:
    people = dpv.Box(0, 1)
    report = dpv.audit(
        noisy_sum,
        epsilon=1,
        adjacency=dpv.Attribute(1),
        domain=people,
        of="dataset",
        attributes=1,
        rows=3,
        kinds=["black-box", "sequential"],
        draws=500,
        seed=1,
        workers=1,
    )
    assert report.verdict == "violation"
    assert report.epsilon_lower > 1
    assert str(report).startswith("noisy_sum: violation, at level 0.01\n  claim: epsilon 1 at ")
    assert report._repr_html_().startswith("<pre>noisy_sum: violation")
    assert report.to_dict()["findings"][0]["evidence"]["draws"] == 500


def my_mean(rows: list[dict[str, int]]) -> float:
    noise = np.random.default_rng()
    return sum(row["age"] for row in rows) / max(len(rows), 1) + noise.laplace(scale=120 / 50)


def test_audit_a_function_of_a_table() -> None:
    people = dpv.Table({"age": dpv.Integers(0, 120)}, rows=(0, 50))
    report = dpv.audit(
        my_mean,  # its noise is that of 50 rows, and rows come and go
        epsilon=1,
        adjacency=dpv.AddRemove(),
        domain=people,
        kinds=["black-box"],
        draws=200,
    )
    assert report.verdict == "violation"
    assert "pairs of 0 to 50 rows (age: a whole number from 0 to 120)" in str(report)


def test_audit_scores_that_somebody_has() -> None:
    rng = np.random.default_rng(1)
    with_, without = rng.normal(2, 1, 1000), rng.normal(0, 1, 700)
    audit = dpv.audit_scores(with_, without, delta=1e-5)
    assert 1 < audit.epsilon_lower < 9
    assert dpv.audit_scores(without, without, delta=1e-5).epsilon_lower == 0
    assert str(audit).startswith("epsilon is at least 2.8")
    assert audit.to_dict()["false_draws"] == 700


REFUSED = [
    ({}, "adjacency and epsilon=missing must be given for what isn"),
    ({"epsilon": 1}, "adjacency=missing must be given for what isn"),
    ({"kinds": "white-box"}, r"kinds='white-box' must be a list. Write kinds=\['white-box'\]."),
    ({"kinds": ["white-bx"]}, "kinds=white-bx must be .* Did you mean white-box?"),
    ({"without": ["precision"], "draws": 3}, "draws=3 must be at least 20"),
    ({"delta": 2}, r"delta=2 must be in \[0, 1\)"),
]


@pytest.mark.parametrize(("words", "says"), REFUSED)
def test_mistakes_are_one_sentence(words: dict[str, Any], says: str) -> None:
    claim: dict[str, Any] = {
        "epsilon": 1,
        "adjacency": dpv.Attribute(1),
        "of": "record",
    }
    whole = claim if words and "epsilon" not in words else {}
    with pytest.raises(dpv.ParameterError, match=says):
        dpv.audit(lambda record, rng: record, **whole | {"attributes": 1} | words)


def test_certify_and_verify(
    workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("records.npy", "release.toml"):
        (tmp_path / name).write_bytes((workplace / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    certified = dpv.certify("release.toml", out="out")
    assert str(certified).startswith("protects")
    assert dpv.verify("out").status == "agrees"


def test_open_a_release(workplace: Path) -> None:
    release = dpv.open_release(workplace / "out")
    distance = release.squared_distance(release.rows[0], release.rows[1])
    (first,) = release.mechanism.estimators()[0].estimate(release.rows[:1], release.rows[1:2])
    assert np.shape(distance) == ()
    assert float(distance) == first


def test_a_sketch_and_what_it_tells() -> None:
    sketch = dpv.mechanism(
        "dp-oporp",
        p=784,
        k=256,
        seed=1,
        epsilon=5,
        delta=1e-6,
        domain=dpv.Box(0, 1),
        adjacency=dpv.Attribute(1),
    )
    x = np.zeros((2, 784))
    x[0, :400] = 1
    rows = sketch.release(x)
    assert rows.shape == (2, 256)
    # The truth is 400; ten standard deviations from it are never seen.
    (first, *_) = sketch.estimators()
    deviation = first.variance(x[0], x[1]) ** 0.5
    assert deviation < 80
    assert abs(sketch.squared_distance(rows[0], rows[1]) - 400) < 10 * deviation
    assert "dp-oporp" in str(dpv.mechanisms())


def test_the_choice_before_a_release() -> None:
    best = dpv.design(
        "dp-oporp",
        at=[400],
        p=784,
        k=[64, 128, 256],
        epsilon=5,
        delta=1e-6,
        domain=dpv.Box(0, 1),
        adjacency=dpv.Attribute(1),
    ).best
    assert best.parameters == {"k": 256}
