"""``dpverify design``: the library's numbers, a picture, and what can't be chosen from."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpverify as dpv
from dpverify.data.adjacency import Attribute
from tests.helpers.command_line import result, run

OPORP = (
    *("design", "dp-oporp", "-p", "attributes=12", "-p", "epsilon=5", "-p", "delta=1e-6"),
    *("-p", "domain.low=0", "-p", "domain.high=1", "-p", "adjacency.beta=1"),
)
CHOICES = ("-p", "k=4,8,12", "-p", "noise=gaussian,laplace")


def test_the_example_of_its_help_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design", "--help") == 0
    shown = capsys.readouterr().out.partition("dpverify design dp-oporp")[2].partition("\n\n")[0]
    example = shown.replace("\\\n", "").replace("design.svg", str(tmp_path / "a.svg")).split()
    assert run("design", "dp-oporp", *example) == 0


def test_the_numbers_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*OPORP, *CHOICES, "--at", "1,9", "--json") == 0
    found = result(capsys, "design")
    same = dpv.design(
        "dp-oporp",
        at=[1.0, 9.0],
        k=[4, 8, 12],
        noise=["gaussian", "laplace"],
        p=12,
        epsilon=5,
        delta="1e-6",
        domain=dpv.Box(0, 1),
        adjacency=Attribute(1),
    )
    assert found["best"] == {name: str(value) for name, value in same.best.parameters.items()}
    errors = [candidate["error"] for candidate in found["candidates"]]
    assert errors == [point.error for point in same.curve]
    assert found["refused"] == []


def test_a_picture_and_what_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "design.svg"
    chosen = ("-p", "k=4,12,13", "-p", "noise=laplace", "--at", "4", "--figure", str(figure))
    assert run(*OPORP, *chosen) == 0
    said = capsys.readouterr()
    assert "k=12" in said.out
    assert "best" in said.out
    assert "refused: k=13: " in said.err
    assert "<svg" in figure.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at", "x"), "--at=x must be numbers with commas between them"),
        (("--at", "1_00"), "--at=1_00 must be numbers with commas between them"),
        (("--at", "1,٤"), "must be numbers with commas between them"),
        (("--at", "inf"), "--at=inf must be numbers with commas between them"),
        (
            ("--at", "1e400", "-p", "k=4"),
            "must be such that doubles hold the squares of the errors",
        ),
        (
            ("--at", "1e300", "-p", "k=4"),
            "must be such that doubles hold the squares of the errors",
        ),
        (("--at", "4", "--figure", "a.doc"), "--figure a.doc must end in one of .svg"),
        (("--at", "4", "-p", "k=13,14"), "must be at most p=12"),
        (("--at", "4", "-p", "k=4", "-p", "nosie=laplace"), "nosie"),
    ],
)
def test_what_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*OPORP, *arguments) == 2
    assert message in capsys.readouterr().err


def test_pairs_of_records_are_for_python(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dp-signrp-rr" if word == "dp-oporp" else word for word in OPORP]
    assert run(*command, "-p", "k=4,8", "--at", "0.5") == 2
    assert "use dpv.design in Python" in capsys.readouterr().err
