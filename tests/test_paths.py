"""Paths that users give: what no file can be called is refused by the parameter's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.certificate.answer import answer
from dpverify.certificate.configuration import load_configuration
from dpverify.errors import DPVerifyError, ParameterError

RECORDS = np.full((2, 3), 0.5)
SETTINGS: Mapping[str, Any] = {
    "mechanism": "dp-oporp",
    "k": 3,
    "epsilon": 1,
    "delta": 0.1,
    "domain": dpv.Box(0, 1),
    "adjacency": dpv.Attribute(1),
}
ANSWERS = {"unit-of-privacy": {"answer": "pass", "reason": "Because."}}
DOOR: dict[str, Callable[[Any], object]] = {
    "certify, out": lambda path: dpv.certify(RECORDS, path, **SETTINGS),
    "certify, configuration": lambda path: dpv.certify(RECORDS, "out", configuration=path),
    "certify, base": lambda path: dpv.certify(RECORDS, "out", base=path, **SETTINGS),
    "plan": lambda path: dpv.plan(RECORDS, configuration=path),
    "load_configuration": load_configuration,
    "verify": dpv.verify,
    "verify, keys": lambda path: dpv.verify("out", keys=[path]),
    "verify, answer_keys": lambda path: dpv.verify("out", answer_keys=[path]),
    "verify, keys that are a text": lambda path: dpv.verify("out", keys=path),
    "open_release": dpv.open_release,
    "sign, certificate": lambda path: dpv.sign(path, "signer.pem"),
    "sign, key": lambda path: dpv.sign("out", path),
    "answer, key": lambda path: answer("out", path, ANSWERS, by="Ada"),
    "Budget": lambda path: dpv.Budget(epsilon=1, path=path),
    "Budget.open": dpv.Budget.open,
}


class Odd(os.PathLike[bytes]):
    """A path of bytes."""

    def __fspath__(self) -> bytes:
        return b"out"


@pytest.mark.parametrize("name", DOOR)
def test_no_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("a\0b", "\ud800", b"out", 3, Odd()):
        with pytest.raises(DPVerifyError, match=r"must be|can't be read"):
            DOOR[name](path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", [name for name in DOOR if "base" not in name])
def test_a_name_that_is_too_long(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("x" * 300, Path("a", *["b"] * 3000)):
        with pytest.raises(DPVerifyError):
            DOOR[name](path)
    assert not [*tmp_path.iterdir()]


def test_a_path_is_named() -> None:
    with pytest.raises(ParameterError, match=r"out='a\\x00b' must be a path that a file can have"):
        dpv.certify(RECORDS, "a\0b", **SETTINGS)
    with pytest.raises(ParameterError, match=r"keys='signer.pem' must be a list of paths"):
        dpv.verify("out", keys="signer.pem")
