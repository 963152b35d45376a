"""multi-freq-ldpy: local protocols of one or several categorical attributes (numpy's generator)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xxhash
from multi_freq_ldpy.long_freq_est import (
    L_GRR,
    L_OSUE,
    L_OUE,
    L_SOUE,
    L_SUE,
    dBitFlipPM,
)
from multi_freq_ldpy.mdim_freq_est import RSpFD_solution as rspfd
from multi_freq_ldpy.mdim_freq_est import SMP_solution as smp
from multi_freq_ldpy.mdim_freq_est import SPL_solution as spl
from multi_freq_ldpy.pure_frequency_oracles import (
    ADP,
    GRR,
    HE,
    LH,
    SS,
    UE,
)

from dpverify.data.adjacency import Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_VALUES = (([0], [1]), ([2], [3]))
_TUPLES = (([(0, 0)], [(1, 1)]), ([(2, 0)], [(0, 1)]))
_SIZES = [3, 2]


def _supports(report: Any, buckets: int) -> list[bool]:
    """Of which values a hashed report is one: what anybody can read off it."""
    told, seed = report
    hashed = (xxhash.xxh32(str(value), seed=seed).intdigest() % buckets for value in range(4))
    return [bucket == told for bucket in hashed]


def _told(bits: Any) -> Any:
    """With -1 for bits that aren't told."""
    return np.nan_to_num(bits, nan=-1)


def _of_value(release: Callable[[int], Any], data: Any) -> Any:
    return release(int(data[0]))


def _of_tuple(release: Callable[[Any], Any], data: Any) -> Any:
    return release(np.array(data[0]))


def _first_report(client: Any, data: Any) -> Any:
    return client(int(data[0]), 4, 2.0, 1.0)


def entries() -> Iterator[Entry]:
    """All of them."""
    one = partial(
        Entry,
        reading="epsilon of the call, for one value against any other",
        claim=claimed(1),
        adjacency=Replace(),
        pairs=_VALUES,
        draws=300,
    )
    single: dict[str, Callable[[int], Any]] = {
        "GRR": lambda v: GRR.GRR_Client(v, 4, 1.0),
        "SUE": lambda v: UE.UE_Client(v, 4, 1.0, False),
        "OUE": lambda v: UE.UE_Client(v, 4, 1.0, True),
        "ADP": lambda v: ADP.ADP_Client(v, 4, 1.0),
        "HE": lambda v: HE.HE_Client(v, 4, 1.0),
        "SS": lambda v: np.isin(np.arange(4), SS.SS_Client(v, 4, 1.0)).astype(int),
        "BLH, what it supports": lambda v: _supports(LH.LH_Client(v, 4, 1.0, False), 2),
        "OLH, what it supports": lambda v: _supports(LH.LH_Client(v, 4, 1.0, True), 4),
        "dBitFlipPM": lambda v: np.nan_to_num(
            dBitFlipPM.dBitFlipPM_Client(v, 4, 4, 2, 1.0), nan=-1
        ),
    }
    for name, release in single.items():
        yield one(name=name, function=partial(_of_value, release))
    long = partial(one, reading="eps_1 of the call, for one value against any other: one report")
    for name, client in (
        ("L-GRR", L_GRR.L_GRR_Client),
        ("L-SUE", L_SUE.L_SUE_Client),
        ("L-OUE", L_OUE.L_OUE_Client),
        ("L-OSUE", L_OSUE.L_OSUE_Client),
        ("L-SOUE", L_SOUE.L_SOUE_Client),
    ):
        yield long(
            name=f"{name}, first report",
            function=partial(_first_report, client),
        )
    several = partial(one, reading="epsilon of the call, for all attributes of one person")
    many: dict[str, Callable[[Any], Any]] = {
        "SPL[GRR]": lambda v: spl.SPL_GRR_Client(v, _SIZES, 2, 1.0),
        "SPL[OUE]": lambda v: spl.SPL_UE_Client(v, _SIZES, 2, 1.0, True),
        "SPL[ADP]": lambda v: spl.SPL_ADP_Client(v, _SIZES, 2, 1.0, True),
        "SMP[GRR]": lambda v: smp.SMP_GRR_Client(v, _SIZES, 2, 1.0),
        "SMP[OUE]": lambda v: smp.SMP_UE_Client(v, _SIZES, 2, 1.0, True),
        "SMP[ADP]": lambda v: smp.SMP_ADP_Client(v, _SIZES, 2, 1.0, True),
        "RS+FD[GRR]": lambda v: rspfd.RSpFD_GRR_Client(v, _SIZES, 2, 1.0),
        "RS+FD[OUE-z]": lambda v: rspfd.RSpFD_UE_zero_Client(v, _SIZES, 2, 1.0, True),
        "RS+FD[OUE-r]": lambda v: rspfd.RSpFD_UE_rnd_Client(v, _SIZES, 2, 1.0, True),
        "RS+FD[ADP]": lambda v: rspfd.RSpFD_ADP_Client(v, _SIZES, 2, 1.0, True),
    }
    for name, release in many.items():
        yield several(name=name, function=partial(_of_tuple, release), pairs=_TUPLES)
