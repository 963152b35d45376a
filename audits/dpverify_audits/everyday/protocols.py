"""Selection, local reports, counters and adaptive releases whose arguments are a little off."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import AddRemove, LInf, Replace
from dpverify.data.columns import Booleans, Categories, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, Release, exhibit
from dpverify_audits.museum.local import kept_with
from dpverify_audits.museum.selection import exponential, noisy_max, sparse_vector
from dpverify_audits.museum.thresholds import discrete_laplace
from dpverify_audits.museum.training import clipped

__all__ = ["EXHIBITS"]

_PERSON = Table({"choice": Integers(0, 5)}, rows=1)
_STREAM = Table({"bit": Booleans()}, rows=8, make="numpy")
_UNIT = Table({"x": Reals(0, 1)}, rows=(0, 9), make="numpy")
_SIZED = Table({"x": Reals(0, 1)}, rows=9, make="numpy")
_GRADIENTS = Table({"u": Reals(-5, 5), "v": Reals(-5, 5)}, rows=(0, 10), make="numpy")
_WORDS = Table({"id": Integers(1, 4), "word": Categories(*"abc")}, rows=(0, 9))
_LETTERS = Table({"letter": Categories(*"abc")}, rows=(0, 10))
_DIGITS = Table({"x": Integers(0, 9)}, rows=(0, 10), make="numpy")
_K = 6
"""Choices of a person."""


def _queries(name: str, mistake: str, broken: Release, correct: Release, **words: Any) -> Exhibit:
    """Of five answers that each move by at most 1."""
    usual: dict[str, Any] = {"adjacency": LInf(1), "of": "record", "attributes": 5}
    return exhibit(name, mistake, broken=broken, correct=correct, **usual | words)


def _report(name: str, mistake: str, broken: Release, correct: Release, **words: Any) -> Exhibit:
    """Of one person's choice."""
    usual: dict[str, Any] = {"domain": _PERSON, "adjacency": Replace()}
    return exhibit(name, mistake, broken=broken, correct=correct, **usual | words)


# --- selection --------------------------------------------------------------------------------


def _thresholds(x: Any, rng: Any, *, query: float) -> Any:
    """After each find a new threshold, so that all finds are to be paid."""
    limit, answers = 1 + rng.laplace(scale=query / 2), []
    for answer in x.tolist():
        answers.append(bool(answer + rng.laplace(scale=query) >= limit))
        if answers[-1]:
            limit = 1 + rng.laplace(scale=query / 2)
    return answers


def _nearest_row(x: Any, rng: Any, *, rows: bool) -> float:
    """A median by the exponential mechanism, among the rows or on a public grid."""
    choices = x if rows else np.linspace(0, 1, 11)
    ranks = np.abs((x[:, None] < choices).sum(axis=0) - len(x) / 2)
    return float(choices[exponential(-ranks, rng)])


def _private_mode(x: Any, rng: Any, *, weight: float) -> int:
    return exponential(weight * np.bincount(x.astype(int), minlength=10), rng, sensitivity=1)


# --- local reports ----------------------------------------------------------------------------


def _k_ary(rows: Any, rng: Any, *, keep: float) -> int:
    """The true choice with this probability, else any other."""
    truth = rows[0]["choice"]
    return int(truth if rng.random() < keep else (truth + rng.integers(1, _K)) % _K)


def _subset(rows: Any, rng: Any, *, with_truth: float) -> Any:
    """Three of six choices, with the true one among them with this probability."""
    truth = rows[0]["choice"]
    others = [choice for choice in range(_K) if choice != truth]
    kept = [truth] if rng.random() < with_truth else []
    drawn = rng.choice(others, size=3 - len(kept), replace=False)
    return sorted([*kept, *drawn.tolist()])


def _hashed(rows: Any, rng: Any, *, keep: float, seeds: int | None = 50) -> Any:
    """A public hash to four buckets, and the bucket by randomized response."""
    choice = rows[0]["choice"]
    seed = choice if seeds is None else int(rng.integers(seeds))
    bucket = (choice * 7919 + seed * 104729) // 97 % 4
    return seed, int(bucket if rng.random() < keep else (bucket + rng.integers(1, 4)) % 4)


def _noisy_choice(rows: Any, rng: Any, *, scale: float) -> int:
    return int(rows[0]["choice"] + discrete_laplace(rng, scale))


def _honest_few(rows: Any, rng: Any, *, share: float) -> int:
    """Tell the truth, or any choice: with a share of 1/2, odds are 1 + K."""
    return int(rows[0]["choice"] if rng.random() < share else rng.integers(_K))


# --- streams ----------------------------------------------------------------------------------


def _counter(x: Any, rng: Any, *, scale: float) -> Any:
    """Running counts by sums over dyadic intervals, of which four hold each bit."""
    sums = [
        x[start : start + size].sum() + rng.laplace(scale=scale)
        for size in (1, 2, 4, 8)
        for start in range(0, 8, size)
    ]
    return np.array(sums)


def _each_day(x: Any, rng: Any, *, scale: float) -> Any:
    """Each day's running count has noise of its own."""
    return np.cumsum(x) + rng.laplace(scale=scale, size=len(x))


def _changes(x: Any, rng: Any, *, noisy: bool) -> Any:
    """A new answer only when the count has changed."""
    answers, last = [], -9.0
    for count in np.cumsum(x).tolist():
        now = count + rng.laplace(scale=8)
        moved = abs(now - last) > 1 if noisy else count != last
        answers.append(bool(moved))
        last = now if noisy else count
    return answers


def _each_noisy(x: Any, rng: Any) -> Any:
    return _each_day(x, rng, scale=8)


# --- data-dependent noise ---------------------------------------------------------------------


def _propose(x: Any, rng: Any, *, noisy: bool) -> Any:
    """Propose-test-release of a median: no answer where it might move far."""
    ordered = np.sort(x)
    distance = 0
    while distance < 4 and ordered[4 + distance + 1] - ordered[4 - distance - 1] < 0.2:
        distance += 1
    if distance + (rng.laplace(scale=2) if noisy else 0.0) <= (2 * math.log(50) if noisy else 1):
        return None
    return float(ordered[4] + rng.laplace(scale=0.4))


def _smooth(x: Any, rng: Any, *, beta: float) -> float:
    """Nissim, Raskhodnikova and Smith's median, with noise of Cauchy's kind."""
    padded = np.concatenate([np.zeros(10), np.sort(x), np.ones(10)])
    middle = 14
    scales = [
        math.exp(-beta * k)
        * max(padded[middle + t] - padded[middle + t - k - 1] for t in range(k + 2))
        for k in range(10)
    ]
    return float(padded[middle] + 6 * max(scales) * rng.standard_cauchy())


def _sampled(x: Any, rng: Any, *, most: int) -> float:
    """A count of a sample, with the smaller noise that sampling allows."""
    rate = 0.2
    scale = 1 / math.log(1 + (math.e - 1) / rate)
    chosen = x[rng.permutation(len(x))[:most]] if most else x[rng.random(len(x)) < rate]
    return float(chosen.sum() + rng.laplace(scale=scale))


# --- steps ------------------------------------------------------------------------------------


def _momentum(g: Any, rng: Any, *, noisy: bool) -> Any:
    """A step, and the momentum that is kept for the next."""
    total = clipped(g).sum(axis=0)
    step = total + rng.normal(scale=2, size=2)
    return step, 0.9 * (step if noisy else total)


def _until_good(g: Any, rng: Any, *, exact: bool) -> Any:
    """A step, and whether to stop."""
    step = clipped(g).sum(axis=0) + rng.normal(scale=2, size=2)
    loss = np.abs(g).sum() if exact else np.abs(step).sum()
    return step, bool(loss > 4)


def _epochs(g: Any, rng: Any, *, sigma: float) -> Any:
    """Four passes over all rows."""
    return clipped(g).sum(axis=0) + rng.normal(scale=sigma, size=(4, 2))


def _same_noise(g: Any, rng: Any, *, again: bool) -> Any:
    """Two steps over two halves of the features, with one noise or two."""
    total = clipped(g).sum(axis=0)
    noise = rng.normal(scale=2, size=2)
    return total + (noise if again else noise[0])


# --- partitions -------------------------------------------------------------------------------


def _listed(rows: Any, rng: Any, *, threshold: int, each: int = 1) -> Any:
    """Words by how many users have them, each user counted in so many words."""
    words: dict[int, list[str]] = {}
    for row in rows:
        theirs = words.setdefault(row["id"], [])
        if len(theirs) < each and row["word"] not in theirs:
            theirs.append(row["word"])
    counts = {w: sum(w in theirs for theirs in words.values()) for w in "abc"}
    return sorted(
        w for w, n in counts.items() if n and n + discrete_laplace(rng, each) >= threshold
    )


def _by_survivors(rows: Any, rng: Any, *, half: bool) -> Any:
    """Letters above a threshold by one noise, counted with another, each for a whole ε or half."""
    scale = 2 if half else 1
    counts = {x: sum(row["letter"] == x for row in rows) for x in "abc"}
    return {
        x: n + rng.laplace(scale=scale)
        for x, n in counts.items()
        if n + rng.laplace(scale=scale) > 3
    }


_OLH = math.e / (math.e + 3)
_BITS: dict[str, Any] = {"domain": _STREAM, "adjacency": Replace()}
_STEPS: dict[str, Any] = {"domain": _GRADIENTS}

EXHIBITS: tuple[Exhibit, ...] = (
    _queries(
        "a threshold without noise",
        "The threshold is public, and only the answers are noisy.",
        partial(sparse_vector, threshold=0, query=2, count=None),
        partial(sparse_vector, threshold=2, query=4),
    ),
    _queries(
        "new thresholds for nothing",
        "After each find the threshold's noise is new, and unpaid.",
        partial(_thresholds, query=1),
        partial(_thresholds, query=24),
        attributes=24,
        epsilon=4,
    ),
    _queries(
        "ten finds at the price of one",
        "The count of finds isn't in the noise.",
        partial(sparse_vector, threshold=1, query=1, count=10),
        partial(sparse_vector, threshold=2, query=40, count=10),
        attributes=12,
    ),
    _queries(
        "noisy max for counts that oppose",
        "The noise is for answers that all rise or all fall.",
        partial(noisy_max, scale=1),
        partial(noisy_max, scale=2),
        attributes=2,
    ),
    _queries(
        "noisy max of Gaussians, at δ = 0",
        "Normal noise has no pure ε, and a small scale none at all.",
        lambda x, rng: int((x + rng.normal(scale=1, size=x.shape)).argmax()),
        noisy_max,
        attributes=2,
    ),
    _queries(
        "exponential mechanism without its half",
        "exp(ε u) where answers oppose.",
        partial(exponential, epsilon=2),
        exponential,
    ),
    _queries(
        "an answer that nobody asked noise for",
        "The place is noisy, and its answer is told.",
        lambda x, rng: (place := noisy_max(x, rng), float(x[place])),
        lambda x, rng: (
            place := noisy_max(x, rng, scale=4),
            float(x[place] + rng.laplace(scale=2)),
        ),
    ),
    exhibit(
        "a median among the rows",
        "The exponential mechanism chooses one of the data's values.",
        broken=partial(_nearest_row, rows=True),
        correct=partial(_nearest_row, rows=False),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    exhibit(
        "a mode of weighted counts",
        "Counts times four, with sensitivity 1.",
        broken=partial(_private_mode, weight=4),
        correct=partial(_private_mode, weight=1),
        domain=_DIGITS,
    ),
    _report(
        "k-ary response by a coin's odds",
        "e^ε/(e^ε + 1) for six choices.",
        partial(_k_ary, keep=kept_with(1)),
        partial(_k_ary, keep=math.e / (math.e + 5)),
    ),
    _report(
        "a subset that holds the truth",
        "The true choice is among the three nine times in ten.",
        partial(_subset, with_truth=0.9),
        partial(_subset, with_truth=kept_with(1)),
    ),
    _report(
        "hashed, and kept as a bit",
        "Four buckets, and a coin for two.",
        partial(_hashed, keep=kept_with(1)),
        partial(_hashed, keep=_OLH),
    ),
    _report(
        "a hash seed by the choice",
        "The seed isn't random, and is told.",
        partial(_hashed, keep=_OLH, seeds=None),
        partial(_hashed, keep=_OLH),
    ),
    _report(
        "noise for one of six",
        "Choices as numbers, with noise for a step of 1.",
        partial(_noisy_choice, scale=1),
        partial(_noisy_choice, scale=5),
    ),
    _report(
        "half the time the truth",
        "Two coins, as in the survey, where there are six choices.",
        partial(_honest_few, share=0.5),
        partial(_honest_few, share=(math.e - 1) / (math.e + 5)),
    ),
    exhibit(
        "four levels, noise for one",
        "Each bit is in four dyadic sums.",
        broken=partial(_counter, scale=1),
        correct=partial(_counter, scale=4),
        **_BITS,
    ),
    exhibit(
        "a running count, noise for a day",
        "One bit moves all counts behind it.",
        broken=partial(_each_day, scale=1),
        correct=_each_noisy,
        **_BITS,
    ),
    exhibit(
        "silence while nothing changes",
        "The count is compared without noise.",
        broken=partial(_changes, noisy=False),
        correct=_each_noisy,
        **_BITS,
    ),
    exhibit(
        "propose, test without noise, release",
        "Whether the data are stable is told exactly.",
        broken=partial(_propose, noisy=False),
        correct=partial(_propose, noisy=True),
        domain=_SIZED,
        adjacency=Replace(),
        delta="0.02",
    ),
    exhibit(
        "smooth sensitivity that isn't smooth",
        "β is thirty times too large, and local sensitivity is left.",
        broken=partial(_smooth, beta=5),
        correct=partial(_smooth, beta=1 / 6),
        domain=_SIZED,
        adjacency=Replace(),
    ),
    exhibit(
        "a sample that holds everybody",
        "At most ten rows are drawn, of at most nine.",
        broken=partial(_sampled, most=10),
        correct=partial(_sampled, most=0),
        domain=_UNIT,
    ),
    exhibit(
        "momentum without noise",
        "The noisy step is published, and the exact momentum saved with it.",
        broken=partial(_momentum, noisy=False),
        correct=partial(_momentum, noisy=True),
        curve=Gaussian(sigma=2),
        **_STEPS,
    ),
    exhibit(
        "early stopping by the true loss",
        "When training ends is decided without noise.",
        broken=partial(_until_good, exact=True),
        correct=partial(_until_good, exact=False),
        curve=Gaussian(sigma=2),
        **_STEPS,
    ),
    exhibit(
        "four epochs for one",
        "Each pass adds noise, and one is accounted.",
        broken=partial(_epochs, sigma=2),
        correct=partial(_epochs, sigma=4),
        curve=Gaussian(sigma=2),
        **_STEPS,
    ),
    exhibit(
        "one normal for all coordinates",
        "The same number is added to each coordinate.",
        broken=partial(_same_noise, again=False),
        correct=partial(_same_noise, again=True),
        curve=Gaussian(sigma=2),
        **_STEPS,
    ),
    exhibit(
        "a threshold of two",
        "Words of at least two noisy users, at δ = 10⁻².",
        broken=partial(_listed, threshold=2),
        correct=partial(_listed, threshold=6),
        domain=_WORDS,
        adjacency=AddRemove(user="id"),
        delta="0.01",
    ),
    exhibit(
        "three words of each, δ for one",
        "δ isn't split among the words of a user.",
        broken=partial(_listed, threshold=6, each=3),
        correct=partial(_listed, threshold=19, each=3),
        domain=_WORDS,
        adjacency=AddRemove(user="id"),
        delta="0.01",
    ),
    exhibit(
        "chosen and counted for one ε",
        "A threshold and a count each take the whole budget.",
        broken=partial(_by_survivors, half=False),
        correct=partial(_by_survivors, half=True),
        domain=_LETTERS,
    ),
)
