"""Training.

A private step clips each row's gradient, adds the clipped ones, adds noise in proportion to the
clip, and divides by a number that everybody knows. Four verbs, and each has been got wrong. The
gradients here are the rows.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import Replace
from dpverify.data.columns import Categories, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["DRAWN", "EXHIBITS", "NAME", "SHUFFLED", "clipped"]

NAME = "Training"
_GRADIENTS = Table({"u": Reals(-5, 5), "v": Reals(-5, 5)}, rows=(0, 12), make="numpy")
_SCALARS = Table({"g": Reals(-1, 1)}, rows=(0, 12), make="numpy")
_LABELS = Table({"label": Categories("cat", "dog")}, rows=(0, 12))
_FEW = Table({"g": Reals(-1, 1)}, rows=(7, 9), make="numpy")
_LAYERS = Table({name: Reals(-5, 5) for name in "stuv"}, rows=(0, 6), make="numpy")
_STEP = Gaussian(sigma=2)
_BATCHES = 4
# δ at ε = 1/2 of samples of rate 1/4, rounded up: four with σ = 1/2, and one with σ = 1.
SHUFFLED, DRAWN = Fraction("0.32838"), Fraction("0.02069")


def clipped(g: Any, most: float = 1) -> Any:
    """Rows of at most this ℓ2 norm."""
    norms = np.sqrt((g**2).sum(axis=1, keepdims=True))
    return g / np.maximum(norms / most, 1)


def _step(g: Any, rng: Any, *, clip: Any = clipped, sigma: float = 2, by: float = 10) -> Any:
    """One step: the noisy sum of clipped gradients, divided by a public number."""
    return (clip(g).sum(axis=0) + rng.normal(scale=sigma, size=2)) / by


def _mean_clipped(g: Any) -> Any:
    return clipped(g.mean(axis=0, keepdims=True)) * len(g) if len(g) else g


def _by_n(g: Any, rng: Any) -> Any:
    """The noisy sum, divided by how many rows the batch has."""
    return _step(g, rng, by=max(len(g), 1))


def _noisy_mean(g: Any, rng: Any) -> Any:
    """Noise for a mean, by an expected number of rows; the mean is by the true one."""
    return clipped(g).sum(axis=0) / max(len(g), 1) + rng.normal(scale=2 / 10, size=2)


def _accumulated(g: Any, rng: Any, *, always: bool) -> Any:
    """Two steps over halves; the second forgets its noise under a condition that always holds."""
    sums = [clipped(half).sum(axis=0) for half in (g[::2], g[1::2])]
    noise = rng.normal(scale=2, size=(2, 2))
    return np.array(sums) + (noise if always else noise * [[1], [0]])


def _votes(rows: Any, rng: Any, *, teachers: int, shared: str, scale: float = 2) -> Any:
    """PATE: each teacher learns the majority of its part and votes, and the votes are noisy."""
    labels = [row["label"] for row in rows]
    if shared == "resampled":
        parts = [labels] * teachers
    elif shared == "first":
        parts = [labels[: max(len(labels) // teachers, 1)]] * teachers
    else:  # where a row goes doesn't depend on how many there are
        parts = [labels[i::teachers] for i in range(teachers)]
    cats = sum(part.count("cat") > part.count("dog") for part in parts)
    return np.array([cats, teachers - cats]) + rng.laplace(scale=scale, size=2)


def _voted(rows: Any, rng: Any) -> Any:
    """The same, of teachers whose row is found by what it is, so that one vote moves."""
    counts = [sum(row["label"] == label for row in rows) for label in ("cat", "dog")]
    return np.array(counts) + rng.laplace(scale=2, size=2)


def _epoch(g: Any, rng: Any, *, shuffled: bool) -> Any:
    """An epoch of noisy sums of batches: parts of a shuffled list, or samples by coins."""
    if shuffled:
        batches = np.array_split(rng.permutation(g), _BATCHES)
    else:
        batches = [g[rng.random(len(g)) < 1 / _BATCHES] for _ in range(_BATCHES)]
    return np.array([batch.sum() for batch in batches]) + rng.normal(scale=0.5, size=_BATCHES)


def _fixed(g: Any, rng: Any, *, coins: bool) -> float:
    """The noisy sum of two rows of about eight, or of a sample by coins."""
    batch = g[rng.random(len(g)) < 1 / 4] if coins else rng.choice(g, 2, replace=False)
    return float(batch.sum() + rng.normal())


def _by_layer(g: Any, rng: Any, *, scale: float) -> Any:
    """Each of four layers is clipped to 1, or all of them to 1 together."""
    return (np.clip(g, -scale, scale)).sum(axis=0) + rng.normal(scale=2, size=4)


def _accumulating(g: Any, rng: Any, *, batches: int) -> float:
    """Small samples by coins, whose sums are added up before there is noise."""
    samples = (g[rng.random(len(g)) < 1 / 8].sum() for _ in range(batches))
    return float(sum(samples) + rng.normal())


def _in_pairs(g: Any) -> Any:
    """The clipped means of microbatches of two."""
    if not len(g):
        return g
    means = [pair.mean(axis=0) for pair in np.split(g, range(2, len(g), 2))]
    return clipped(np.array(means))


def _clipped_after(g: Any, rng: Any) -> Any:
    noisy = g.sum(axis=0) + rng.normal(scale=2, size=2)
    return clipped(noisy[None], 10)[0]


def _sampled(g: Any, rng: Any, *, skips: bool) -> float:
    """A sample by coins; where nobody is in it, there may be nothing to do."""
    batch = g[rng.random(len(g)) < 1 / 4]
    if skips and not len(batch):
        return 0.0
    return float(batch.sum() + rng.normal())


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Noise that is smaller by the batch size",
        "The clip is for a row's gradient, and the noise is divided by the batch size once more.",
        "At a batch of ten σ is 0.2 and not 2.",
        broken=partial(_step, sigma=0.2),
        correct=_step,
        source="backpropagation clipping, refuted by Tramèr and others, 2022 (arXiv:2202.12219)",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "The mean by the true n",
        "Sum and noise are scaled by the expected batch, and the mean by the number of rows.",
        "The scale of the step says how many rows there are.",
        broken=_noisy_mean,
        correct=_step,
        source="Opacus; issue 571",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "The clip that is ignored",
        "A fast path for ghost clipping doesn't hand max_grad_norm on.",
        "A gradient of 7 goes in with noise for 1.",
        broken=partial(_step, clip=lambda g: clipped(g, 10)),
        correct=_step,
        source="Opacus, fast gradient clipping; pull request 664",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "A redundant if",
        "The accumulated gradient is noised under a condition that never holds.",
        "The second half of every step is exact.",
        broken=partial(_accumulated, always=False),
        correct=partial(_accumulated, always=True),
        source="DPBayes/ADADP; pull request 3",
        domain=_GRADIENTS,
        adjacency=Replace(),
        curve=Gaussian(sigma=1),
    ),
    exhibit(
        "A noisy sum, divided by the batch that came",
        "The number of rows in the batch is a secret, and it scales the noise.",
        "Small batches are loud.",
        broken=_by_n,
        correct=_step,
        source="Average and expected-average SGM, 2026 (arXiv:2605.15648)",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "Clipped after the mean",
        "The gradient of the batch is clipped, and not that of each row.",
        "One row turns the mean of all others.",
        broken=partial(_step, clip=_mean_clipped),
        correct=_step,
        source="warned of by Ponomareva and others, JAIR 2023 (arXiv:2303.00654)",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "Teachers who share a class",
        "Each of PATE's teachers resamples all of the data.",
        "One row sways all twenty votes, and the noise is for one.",
        broken=partial(_votes, teachers=20, shared="resampled"),
        correct=_voted,
        source="synthcity, PATE-GAN; issue 275; Ganev and others, 2025 (arXiv:2406.13985)",
        domain=_LABELS,
    ),
    exhibit(
        "Every teacher gets the first part",
        "The data are split, and each teacher is handed part number one.",
        "The votes are twenty copies of one vote.",
        broken=partial(_votes, teachers=20, shared="first"),
        correct=_voted,
        source="mlforhealthlab, PATE-GAN; mlforhealthlabpub issue 29",
        domain=_LABELS,
    ),
    exhibit(
        "Shuffled, and reported as Poisson",
        "An epoch goes through a shuffled list; the account is of batches by coins.",
        "Coins may leave a row out of all four batches. A shuffled list never does.",
        broken=partial(_epoch, shuffled=True),
        correct=partial(_epoch, shuffled=False),
        source="Chua and others, ICML 2024 (arXiv:2403.17673); Annamalai and others, 2024 "
        "(arXiv:2411.10614); jax_privacy, issue 84",
        domain=_SCALARS,
        epsilon=Fraction(1, 2),
        delta=SHUFFLED,
    ),
    exhibit(
        "Two of eight, reported as Poisson",
        "A batch of fixed size is drawn without replacement, and accounted as coins.",
        "Who comes in pushes another one out: the sum moves by 2.",
        broken=partial(_fixed, coins=False),
        correct=partial(_fixed, coins=True),
        source="Lebeda, Regehr, Kamath and Steinke, 2024 (arXiv:2405.20769); warned of in "
        "private-transformers, issue 7",
        domain=_FEW,
        epsilon=Fraction(1, 2),
        delta=DRAWN,
    ),
    exhibit(
        "A clip for each layer, noise for one",
        "Four layers are clipped to 1 each, and the noise is for a norm of 1 in all.",
        "The norm of four layers of 1 is 2.",
        broken=partial(_by_layer, scale=1),
        correct=partial(_by_layer, scale=0.5),
        source="warned of in jax_privacy's guide of pitfalls, on sensitivity; Opacus, issue 202, "
        "asks why it is done right",
        domain=_LAYERS,
        curve=_STEP,
        found_by=("black-box", "grey-box"),
    ),
    exhibit(
        "Small batches, added up",
        "Four samples of rate 1/8 are added before there is noise, and one is accounted.",
        "A row is in one of them four times as often, or in several.",
        broken=partial(_accumulating, batches=4),
        correct=partial(_accumulating, batches=1),
        source="warned of in jax_privacy's guide of pitfalls, on gradient accumulation",
        domain=_SCALARS,
        curve=Gaussian(sigma=1).poisson_sampled(rate=Fraction(1, 8)),
    ),
    exhibit(
        "The mean of a microbatch",
        "Gradients are averaged in twos, and the averages are clipped.",
        "One row turns the clipped mean of its microbatch round.",
        broken=partial(_step, clip=_in_pairs),
        correct=_step,
        source="tensorflow-privacy, microbatches; issues 81 and 620",
        domain=_GRADIENTS,
        curve=_STEP,
        found_by=("black-box", "grey-box"),
    ),
    exhibit(
        "The clip, squared",
        "The noise is scaled by the square of the clip, as a variance would be.",
        "With a clip of 1/2 half of the noise is missing.",
        broken=partial(_step, clip=lambda g: 2 * clipped(g, 0.5), sigma=1),
        correct=partial(_step, clip=lambda g: 2 * clipped(g, 0.5)),
        source="SPRINT_gan; issue 5",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "Noise first",
        "The noisy sum is clipped, and not what is in it.",
        "A gradient of 7 goes in with noise for 1.",
        broken=_clipped_after,
        correct=_step,
        source="DPGAN; illidanlab/dpgan issue 4",
        domain=_GRADIENTS,
        curve=_STEP,
    ),
    exhibit(
        "Nobody came, nothing was done",
        "Where a Poisson sample is empty, the step is skipped, and its noise with it.",
        "An exact 0 says that nobody was drawn, of how many there are.",
        broken=partial(_sampled, skips=True),
        correct=partial(_sampled, skips=False),
        source="warned of in jax_privacy's guide of pitfalls, on batches of size zero",
        domain=_SCALARS,
        curve=Gaussian(sigma=1).poisson_sampled(rate=Fraction(1, 4)),
    ),
)
