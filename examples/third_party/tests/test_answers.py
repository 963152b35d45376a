"""The mechanism keeps what it claims, and a broken one is found."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_survey.answers import SurveyAnswers
from dp_survey.family import SUITE

import dpverify as dpv

CONFIGURATION = Path(__file__).parents[1] / "survey.toml"


@pytest.mark.dp_audit
@pytest.mark.parametrize("mechanism", SUITE, ids=lambda mechanism: mechanism.adjacency.unit)
def test_the_claim(dp_audit: Any, mechanism: SurveyAnswers) -> None:
    dp_audit(mechanism)


class Twice(SurveyAnswers):
    """Draws again what was replaced, so that more is kept than it claims."""

    def release(self, records: Any, *, rng: Any = None) -> Any:
        """Answers of shape (n, questions)."""
        first, second = (SurveyAnswers.release(self, records, rng=rng) for _ in range(2))
        return np.where(first == np.asarray(records), first, second)


@pytest.mark.dp_audit
def test_a_broken_one_is_found(dp_audit: Any) -> None:
    right = SUITE[0]
    broken = Twice(**{field.name: getattr(right, field.name) for field in fields(right)})
    dp_audit(broken, expect="violation")


def test_probabilities_add_up() -> None:
    law = SUITE[0].distribution([[1, 3]])
    assert sum(law.values()) == 1
    odds = law[1, 3] / law[0, 3]
    assert odds == SUITE[0].keep / SUITE[0].other
    assert float(odds) == pytest.approx(2.718281828459045)


def test_it_certifies(tmp_path: Path) -> None:
    certified = dpv.certify(CONFIGURATION, tmp_path / "out")
    assert certified.certificate.derived.white_box.verdict == "no_violation_found"
    assert dpv.verify(certified.folder).ok
