"""Metadata, and domains read off the data.

The numbers are noisy, and beside them lie the column names, the categories, the shape, the range
and the error message, as exact as they came. It takes no statistician to read them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpverify.data.adjacency import Replace
from dpverify.data.columns import Booleans, Categories, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["EXHIBITS", "NAME"]

NAME = "Metadata and domains"
_LABELLED = Table({"x": Reals(0, 1), "label": Categories("a", "b", "c")}, rows=(1, 10))
_LETTERS = Table({"letter": Categories(*"abcde")}, rows=(0, 12))
_AGES = Table({"age": Integers(0, 120)}, rows=(1, 12), make="numpy")
_BITS = Table({"bit": Booleans()}, rows=(0, 8))
_ODDS = np.e / (1 + np.e)


def _class_sums(rows: Any, rng: Any, *, public: bool) -> Any:
    """A sum for each class, as a naive Bayes learns."""
    labels = "abc" if public else sorted({row["label"] for row in rows})
    sums = [sum(row["x"] for row in rows if row["label"] == label) for label in labels]
    return np.array(sums) + rng.laplace(size=len(sums))


def _codes(rows: Any, rng: Any, *, by_appearance: bool) -> float:
    """Letters as numbers from 0 to 4, summed."""
    letters = [row["letter"] for row in rows]
    order = list(dict.fromkeys(letters)) if by_appearance else list("abcde")
    return float(sum(map(order.index, letters)) + rng.laplace(scale=4))


def _flipped(rows: Any, rng: Any, *, counted: bool) -> Any:
    """Randomized response of all bits; or a noisy count of them."""
    bits = [row["bit"] for row in rows]
    if counted:
        return float(sum(bits) + rng.laplace())
    return [bit if rng.random() < _ODDS else not bit for bit in bits]


def _binned(x: Any, rng: Any, *, ends: tuple[float, float] | None) -> Any:
    """A histogram of ten bins with its edges."""
    counts, edges = np.histogram(x, bins=10, range=ends)
    return counts + rng.laplace(size=10), edges


def _synthetic(x: Any, rng: Any, *, by_data: bool) -> Any:
    """Three synthetic ages about a noisy mean, kept inside the range."""
    low, high = (x.min(), x.max()) if by_data else (0, 120)
    centre = np.clip(x.mean(), 0, 120) + rng.laplace(scale=120)
    return np.clip(rng.normal(centre, 20, size=3).round(), low, high)


def _marginal(rows: Any, rng: Any, *, public: bool) -> Any:
    """A noisy marginal, from which ten synthetic letters are drawn."""
    known = list("abcde") if public else sorted({row["letter"] for row in rows}) or ["a"]
    counts = [sum(row["letter"] == each for row in rows) for each in known]
    noisy = np.maximum(np.array(counts) + rng.laplace(size=len(known)), 1e-9)
    return [str(each) for each in rng.choice(known, size=10, p=noisy / noisy.sum())]


def _guarded(x: Any, rng: Any, *, raises: bool) -> float:
    """A count by a query of the analyst's, who wrote an assertion into it."""
    if raises and np.any(x == 42):
        raise ZeroDivisionError("somebody is 42")
    return float(np.sum(x > 18) + rng.laplace())


def _labels(rows: Any, rng: Any, *, public: bool) -> Any:
    """One-hot columns of what was seen, each with a noisy sum, by name."""
    known = "abcde" if public else {row["letter"] for row in rows}
    return {
        f"letter_{each}": sum(row["letter"] == each for row in rows) + rng.laplace()
        for each in sorted(known)
    }


def _digits(x: Any, rng: Any, *, by_data: bool) -> float:
    """As many decimals as the data have."""
    finest = 0 if np.all(x == np.round(x)) else 2
    return float(round(x.sum() + rng.laplace(scale=10), finest if by_data else 1))


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Classes that were seen",
        "np.unique(y) decides how many rows the model has.",
        "The shape of the released arrays says whether anybody has a rare label.",
        broken=partial(_class_sums, public=False),
        correct=partial(_class_sums, public=True),
        source="diffprivlib, GaussianNB, and dpmm; dp-recorder, PETS 2026 (arXiv:2602.17454)",
        domain=_LABELLED,
        found_by=("determinism",),
    ),
    exhibit(
        "Codes in order of appearance",
        "Categories are numbered as they come, so that one row renumbers all others.",
        "The first row decides the number of everybody's category.",
        broken=partial(_codes, by_appearance=True),
        correct=partial(_codes, by_appearance=False),
        source="OpenDP 0.16.0, Polars `cut`; issue 2944",
        domain=_LETTERS,
    ),
    exhibit(
        "As many bits as people",
        "Each bit is flipped with care, and the length of the vector is the number of rows.",
        "To count the bits is to count the people.",
        broken=partial(_flipped, counted=False),
        correct=partial(_flipped, counted=True),
        source="OpenDP, bit vector domain; issue 2930",
        domain=_BITS,
        found_by=("determinism",),
    ),
    exhibit(
        "Bins from the smallest to the largest",
        "Bin edges are the data's own minimum and maximum, published with the counts.",
        "The oldest person's age is the last edge.",
        broken=partial(_binned, ends=None),
        correct=partial(_binned, ends=(0, 120)),
        source="diffprivlib's PrivacyLeakWarning; PrivBayes in dpart, pull request 6; "
        "PATE-GAN in synthcity, issue 278",
        domain=_AGES,
    ),
    exhibit(
        "Synthetic people within the real range",
        "What is generated is clipped to the smallest and largest value of the training data.",
        "Synthetic outliers pile up on the real one.",
        broken=partial(_synthetic, by_data=True),
        correct=partial(_synthetic, by_data=False),
        source="Stadler, Oprisanu and Troncoso, USENIX Security 2022 (arXiv:2011.07018)",
        domain=_AGES,
        adjacency=Replace(),
    ),
    exhibit(
        "The domain is what is there",
        "Categories of a marginal are read off the data that it is made of.",
        "A synthetic row with a rare category proves that somebody has it.",
        broken=partial(_marginal, public=False),
        correct=partial(_marginal, public=True),
        source="Ganev, Annamalai, Mahiou and De Cristofaro, 2025 (arXiv:2504.08254)",
        domain=_LETTERS,
    ),
    exhibit(
        "An error for one person",
        "A query may raise, and what it raised is shown to the analyst.",
        "It ends with an error if and only if somebody is 42.",
        broken=partial(_guarded, raises=True),
        correct=partial(_guarded, raises=False),
        source="Haeberlen, Pierce and Narayan, USENIX Security 2011",
        domain=_AGES,
    ),
    exhibit(
        "Columns named after the data",
        "One-hot encoding is fitted on the private rows.",
        "The names of the columns list everybody's categories.",
        broken=partial(_labels, public=False),
        correct=partial(_labels, public=True),
        source="what synthesizers read off the data: Annamalai, Ganev and De Cristofaro, USENIX "
        "Security 2024 (arXiv:2405.10994)",
        domain=_LETTERS,
        found_by=("determinism",),
    ),
    exhibit(
        "Decimals of the data",
        "The answer is rounded to as many decimals as the data have.",
        "Two decimals mean that one row isn't whole.",
        broken=partial(_digits, by_data=True),
        correct=partial(_digits, by_data=False),
        source="after Kifer and others, 2020 (arXiv:2002.04049), on what is computed beside",
        domain=Table({"x": Reals(0, 10)}, rows=(0, 8), make="numpy"),
    ),
)
