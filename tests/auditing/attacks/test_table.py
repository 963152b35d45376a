"""What an attack is registered with, beside its module."""

from __future__ import annotations

import pytest

from dpverify.auditing.attacks.table import ATTACKS
from dpverify.auditing.report import _MEANINGS
from dpverify.auditing.settings import KINDS


def test_every_kind_has_an_attack_and_a_line_on_what_it_refutes() -> None:
    assert tuple(ATTACKS) == KINDS
    assert _MEANINGS.keys() == ATTACKS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_an_attack_is_written_as_code_by_a_replay(kind: str) -> None:
    (attack,) = [attack for name, attack in ATTACKS.items() if name == kind]
    assert eval(repr(attack), {type(attack).__name__: type(attack)}) == attack  # noqa: S307
