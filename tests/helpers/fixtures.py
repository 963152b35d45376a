"""Fixtures that several suites share: one small certified release, made once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from dpverify.auditing import engine, search
from dpverify.certificate.certify import CERTIFICATE, certify
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.report import plots
from dpverify.certificate.schema import Certificate
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP

# Two slow cores must not turn a property into a flaky deadline. What runs with every change has the
# same 10 examples every time, where a test asks for no other number; the nightly run 100 others.
settings.register_profile("nightly", deadline=None)
settings.register_profile("every change", deadline=None, derandomize=True, max_examples=10)


def pytest_configure(config: pytest.Config) -> None:
    """Choose Hypothesis' examples by what is run."""
    settings.load_profile("every change" if by_day(config) else "nightly")


def by_day(config: pytest.Config) -> bool:
    """Whether this is what runs with every change."""
    return bool(config.getoption("markexpr") == "not nightly")


ALL = search.CANDIDATES
CONFIGURATION = """
[data]
path = "records.npy"
domain = { low = 0, high = 1 }
[mechanism]
name = "dp-oporp"
k = 4
[privacy]
epsilon = 2
delta = 1e-3
adjacency = { kind = "attribute", beta = 0.5 }
[projection]
seed = 11
[audit]
alpha = 0.05
draws = 200
moment_draws = 50
seed = 5
"""


Figures = dict[tuple[object, ...], str]
SHARED = ("any certificate's will do",)


@pytest.fixture(scope="session", autouse=True)
def figures(pytestconfig: pytest.Config) -> Iterator[Figures]:
    """Figures, each drawn once from the same numbers: they are most of the time of a report.

    By day every certificate has those that were drawn first, but for the `workplace`.
    """
    drawn: Figures = {SHARED: "yes"} if by_day(pytestconfig) else {}

    def once(draw: Callable[[Certificate], str]) -> Callable[[Certificate], str]:
        def kept(certificate: Certificate) -> str:
            fields = certificate.model_dump(mode="json", include={"inputs", "evidence", "derived"})
            numbers = json.dumps(fields, sort_keys=True)  # a file has its own order
            some = (draw, plots._drawn)
            own = (*some, numbers)
            if own not in drawn:
                shared = SHARED in drawn and some in drawn
                drawn[own] = drawn[some] if shared else draw(certificate)
                drawn.setdefault(some, drawn[own])
            return drawn[own]

        return kept

    with pytest.MonkeyPatch.context() as patch:
        for name in ("privacy_plot", "roc_plot", "distance_plot", "size_plot"):
            patch.setattr(plots, name, once(getattr(plots, name)))
        yield drawn


@pytest.fixture(scope="module")
def own_figures(figures: Figures) -> Iterator[None]:
    """Where figures are what is tested, or where other processes draw them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(figures, SHARED, raising=False)
        yield


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is said beside them: drawing takes most of the time."""
    monkeypatch.setattr(plots, "_drawn", lambda *_: "<svg></svg>")


@pytest.fixture(scope="session", autouse=True)
def unhurried() -> Iterator[None]:
    """No audit is brief because the machine is busy: what is compared must not hang on a clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_SLOW", 20 * engine._SLOW)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_candidates(pytestconfig: pytest.Config) -> Iterator[None]:
    """By day, where a search is only a part: it takes most of the time of a small audit."""
    with pytest.MonkeyPatch.context() as patch:
        if by_day(pytestconfig):
            patch.setattr(search, "CANDIDATES", 8)
        yield


@pytest.fixture(scope="module")
def all_candidates() -> Iterator[None]:
    """Where it is the search that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CANDIDATES", ALL)
        yield


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory, figures: Figures) -> Path:
    """A folder with a configuration and its records, and an output made from them."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "release.toml").write_text(CONFIGURATION)
    np.save(folder / "records.npy", np.random.default_rng(3).random((7, 18)))
    configuration = load_configuration(folder / "release.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(figures, SHARED, raising=False)
        certify(configuration, folder / "out", base=folder)
    return folder


@pytest.fixture(scope="session")
def certificate(workplace: Path) -> dict[str, Any]:
    """The certificate of that output, as JSON."""
    fields: dict[str, Any] = json.loads((workplace / "out" / CERTIFICATE).read_text())
    return fields


@pytest.fixture(scope="session")
def small_sketch() -> Callable[..., LinearSketch]:
    """Makes a calibrated OPORP sketch of 12 attributes to 4 values."""

    def make(epsilon: Fraction = Fraction(2), delta: Fraction = Fraction(1, 1000)) -> LinearSketch:
        return LinearSketch.calibrated(
            OPORP(p=12, k=4, seed=1),
            epsilon=epsilon,
            delta=delta,
            domain=Box(low=Fraction(0), high=Fraction(1)),
            adjacency=Attribute(beta=Fraction(1)),
        )

    return make
