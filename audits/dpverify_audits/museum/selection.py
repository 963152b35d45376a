"""Sparse vectors and selection.

To say only *which* answer is large costs less than to say how large. The proofs are short, and they
hang on every noise that they name: leave one out, draw one too few, or give the winner's number
away, and nothing is left of them. Most of these were published as theorems.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.data.adjacency import Attribute, LInf
from dpverify_audits.museum.exhibit import Exhibit, Release, exhibit

__all__ = ["EXHIBITS", "NAME", "exponential", "noisy_max", "sparse_vector"]

NAME = "Sparse vectors and selection"
_LYU = "Lyu, Su and Li, VLDB 2017 (arXiv:1603.01699)"
_STATDP = "Ding, Wang, Wang, Zhang and Kifer, CCS 2018 (arXiv:1805.10207)"


def sparse_vector(
    x: Any,
    rng: Any,
    *,
    threshold: float = 2,
    query: float = 4,
    count: int | None = 1,
    at: float = 1,
    told: Callable[[float, float, Any], Any] = lambda answer, noisy, rng: True,
) -> Any:
    """One answer for each query: False below the noisy threshold, else `told`; ends after `count`.

    Parameters
    ----------
    threshold, query : scales of the noise of the threshold, and of each query
    at : the threshold
    told : of the answer, the noisy answer and a generator
    """
    answers: list[Any] = []
    limit, found = at + rng.laplace(scale=threshold), 0
    for answer in x.tolist():
        noisy = answer + (rng.laplace(scale=query) if query else 0.0)
        answers.append(told(answer, noisy, rng) if noisy >= limit else False)
        found += noisy >= limit
        if found == count:
            break
    return answers


def exponential(scores: Any, rng: Any, *, epsilon: float = 1, sensitivity: float = 1) -> int:
    """The place of a large score, by the exponential mechanism."""
    odds = np.exp(epsilon * (scores - scores.max()) / (2 * sensitivity))
    return int(rng.choice(len(scores), p=odds / odds.sum()))


def noisy_max(x: Any, rng: Any, *, scale: float = 2, value: bool = False) -> Any:
    """The place of the largest noisy answer, or its value."""
    noisy = x + rng.laplace(scale=scale, size=x.shape)
    return float(noisy.max()) if value else int(noisy.argmax())


def _exponential_max(x: Any, rng: Any, *, value: bool) -> Any:
    noisy = x + rng.exponential(scale=2, size=x.shape)
    return float(noisy.max()) if value else int(noisy.argmax())


def _fresh(share: float) -> Callable[[float, float, Any], float]:
    return lambda answer, noisy, rng: float(answer + rng.laplace(scale=share))


def _vectors(
    name: str, mistake: str, leak: str, broken: Release, correct: Release, **words: Any
) -> Exhibit:
    """Of a vector of answers, each of which moves by at most 1."""
    usual: dict[str, Any] = {"adjacency": LInf(1), "of": "record", "attributes": 5}
    return exhibit(name, mistake, leak, broken=broken, correct=correct, **usual | words)


def _unpicked_in_the_clear(x: Any, rng: Any) -> Any:
    """NVFlare's: weights that no comparison picked go out as they are."""
    picked = x + rng.laplace(scale=4, size=x.shape) > 1 + rng.laplace(scale=2)
    return np.where(picked, x + rng.laplace(scale=4, size=x.shape), x)


def _unpicked_left_out(x: Any, rng: Any) -> Any:
    return sparse_vector(x, rng, threshold=4, query=8, told=_fresh(2))


def _top(x: Any, rng: Any, *, scale: float, most: int) -> Any:
    """Which noisy answers are the largest."""
    noisy = x + rng.laplace(scale=scale, size=x.shape)
    return noisy >= np.sort(noisy)[-most]


def _permute_and_flip(x: Any, rng: Any, *, epsilon: float) -> int:
    """McKenna and Sheldon's: exponential noise, and the place of the largest."""
    return int((x + rng.exponential(scale=2 / epsilon, size=x.shape)).argmax())


def _best_of(x: Any, rng: Any, *, runs: int, scale: float) -> float:
    """Train several times, keep the best: the others cost too."""
    return float((x[0] + rng.laplace(scale=scale, size=runs)).max())


def _prefix_sums(x: Any, rng: Any, *, scale: float) -> Any:
    """Running sums of noisy numbers, which differ in one place for whoever comes."""
    return np.cumsum(x + rng.laplace(scale=scale, size=x.shape))


def _histogram(x: Any, rng: Any, *, scale: float) -> Any:
    return x + rng.laplace(scale=scale, size=x.shape)


def _gap(x: Any, rng: Any, *, scale: float) -> Any:
    """The place of the largest and how far it leads; correct for answers that all rise or fall."""
    noisy = np.sort(x + rng.laplace(scale=scale, size=x.shape))
    return float(noisy[-1] - noisy[-2])


EXHIBITS: tuple[Exhibit, ...] = (
    _vectors(
        "Sparse vector, Algorithm 3",
        "Releases the noisy answer that was compared, not one with fresh noise.",
        "A number that is told bounds the threshold from above, and with it all answers before.",
        partial(sparse_vector, threshold=1, query=1, at=0, told=lambda answer, noisy, rng: noisy),
        partial(sparse_vector, threshold=1.5, query=3, at=0, told=_fresh(1.5)),
        source=f"lecture notes of 2011; {_LYU}, Algorithm 3",
        attributes=20,
        epsilon=2,
    ),
    _vectors(
        "Sparse vector, Algorithm 4",
        "The noise of the queries doesn't grow with the number of answers that are allowed.",
        "Each find is paid as if it were the only one, and ten of them add up.",
        partial(sparse_vector, threshold=4, query=4 / 3, count=10),
        partial(sparse_vector, threshold=4, query=80 / 3, count=10),
        source=f"Lee and Clifton, KDD 2014; {_LYU}, Algorithm 4",
        attributes=20,
    ),
    _vectors(
        "Sparse vector, Algorithm 5",
        "No noise on the queries, only on the threshold.",
        "The answers above and below one threshold order the true counts exactly.",
        partial(sparse_vector, query=0, count=None),
        partial(sparse_vector, threshold=2, query=20, count=5),
        source=f"Stoddard, Chen and Machanavajjhala, arXiv:1411.5428; {_LYU}, Algorithm 5",
    ),
    _vectors(
        "Sparse vector, Algorithm 6",
        "It never stops: as many finds as there are queries, at the price of one.",
        "Each query adds its own coin, and twenty coins are as good as an answer.",
        partial(sparse_vector, query=2, count=None),
        partial(sparse_vector, query=4, count=1),
        source=f"Chen, Xiao, Zhang and Xu, KDD 2015; {_LYU}, Algorithm 6",
        attributes=20,
    ),
    _vectors(
        "Noisy max that tells the value",
        "Returns the largest noisy answer, where the proof is of its place.",
        "Everybody's answer moves the maximum, and the noise is that for a place.",
        partial(noisy_max, value=True),
        noisy_max,
        source=f"{_STATDP}, noisy max 3",
        attributes=20,
    ),
    _vectors(
        "Noisy max of exponential noise that tells the value",
        "One-sided noise, and the largest value is released.",
        "A value below the neighbour's smallest possible one names the neighbour for certain.",
        partial(_exponential_max, value=True),
        partial(_exponential_max, value=False),
        source=f"{_STATDP}, noisy max 4",
        attributes=2,
    ),
    _vectors(
        "Histogram of the inverse scale",
        "Noise of scale ε where 1/ε was meant.",
        "At ε = 0.5 each count has a quarter of its noise.",
        partial(_histogram, scale=0.5),
        partial(_histogram, scale=2),
        source=f"{_STATDP}, noisy histogram",
        adjacency=Attribute(1),
        epsilon="0.5",
    ),
    _vectors(
        "Weights that weren't picked",
        "A sparse vector over weights replaces those above the threshold, and sends the rest.",
        "A weight that was not picked is in the message as it is.",
        _unpicked_in_the_clear,
        _unpicked_left_out,
        source="NVFlare, SVTPrivacy; issue 343",
        found_by=("determinism",),
    ),
    _vectors(
        "Permute-and-flip accounted as exponential",
        "ρ = ε²/8, the exponential mechanism's, claimed for permute-and-flip.",
        "Its privacy loss isn't spread over a range of ε, and costs four times as much.",
        partial(_permute_and_flip, epsilon=1),
        exponential,
        source="OpenDP before 0.16; issue 2911",
        attributes=2,
        curve=ZCDP(rho="0.125"),
    ),
    _vectors(
        "Exponential mechanism with 2 for 4",
        "Scores of sensitivity 2 are divided by 2 and not by 2 × 2.",
        "The choice follows the data twice as closely as its budget pays for.",
        lambda x, rng: exponential(2 * x, rng, epsilon=3, sensitivity=1),
        lambda x, rng: exponential(2 * x, rng, epsilon=3, sensitivity=2),
        source="mbi, JAM; issue 65",
        epsilon=3,
    ),
    _vectors(
        "The best of many runs",
        "Ten models are trained, each ε-private, and the best is published as ε-private.",
        "Ten noises have been looked at, and the largest tells more than any of them.",
        partial(_best_of, runs=10, scale=1),
        partial(_best_of, runs=1, scale=1),
        source="Papernot and Steinke, ICLR 2022 (arXiv:2110.03620)",
        attributes=1,
    ),
    _vectors(
        "Running sums, each number paid alone",
        "Noise on each number for one that moves, where all of them do.",
        "Whoever is in all five periods is told five times.",
        partial(_prefix_sums, scale=1),
        partial(_prefix_sums, scale=5),
        source="after Wang, Ding, Kifer and Zhang, CCS 2020 (arXiv:2008.07485), BadPartialSum",
    ),
    _vectors(
        "The gap is not free",
        "How far the winner leads, with the noise that pays for who it is where answers oppose.",
        "One answer rises while the other falls, so the lead moves by 2.",
        partial(_gap, scale=1),
        partial(_gap, scale=2),
        source="after Ding, Wang, Zhang and Kifer, VLDB 2019 (arXiv:1904.12773)",
        attributes=2,
    ),
    _vectors(
        "Ten winners for one price",
        "The ten largest of twenty noisy answers are named with the noise of one.",
        "Each further winner is one more selection.",
        partial(_top, scale=2, most=10),
        partial(_top, scale=20, most=10),
        attributes=20,
        source="after Durfee and Rogers, NeurIPS 2019 (arXiv:1905.04273), whose noise grows with k",
    ),
)
