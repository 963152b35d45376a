"""All attacks by name, in the order in which a report has them."""

from __future__ import annotations

from collections.abc import Mapping

from dpverify.auditing.attacks.base import Attack
from dpverify.auditing.attacks.black_box import BlackBoxAttack
from dpverify.auditing.attacks.determinism import DeterminismAttack
from dpverify.auditing.attacks.exhaustive import ExhaustiveAttack
from dpverify.auditing.attacks.frozen_outputs import FrozenOutputsAttack
from dpverify.auditing.attacks.grey_box import GreyBoxAttack
from dpverify.auditing.attacks.precision import PrecisionAttack
from dpverify.auditing.attacks.sequential import SequentialAttack
from dpverify.auditing.attacks.trade_off import TradeOffAttack
from dpverify.auditing.attacks.white_box import WhiteBoxAttack
from dpverify.auditing.settings import AuditKind

__all__ = ["ATTACKS"]

ATTACKS: Mapping[AuditKind, Attack] = {
    attack.name: attack
    for attack in (
        ExhaustiveAttack(),
        GreyBoxAttack(),
        FrozenOutputsAttack(),
        DeterminismAttack(),
        PrecisionAttack(),
        WhiteBoxAttack(),
        BlackBoxAttack(),
        TradeOffAttack(),
        SequentialAttack(),
    )
}
"""To add an attack, write a class beside these, name it here and in `settings.AuditKind`."""
