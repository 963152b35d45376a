"""The ε of a MinHash sketch by the paper's lemma 1, by the exact tail, and by the exact mixture.

Lemma 1 of Aumüller et al. 2020 says P[N > Kp′ + √(3 ln(1/δ)Kp′)] ≤ δ for the number N of differing
positions, with p′ = α/τ·(1 − 1/B). It uses a Chernoff bound that is proven up to twice the mean;
beyond, at Kp′ < 3 ln(1/δ), where all of the paper's experiments are, it fails. (The ceiling that
NoisyMinHash leaves out would do no harm if the bound were one, N being whole; as it is, more
settings fail.)
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from dpverify.accounting.curves.randomized_response import max_differing
from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve
from dpverify_mechanisms.min_hash.hashing import HashFamily
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketRule

__all__ = ["PAPER_DELTA", "levels", "published_differing"]

PAPER_DELTA = Fraction(1, 10**4)
"""δ of all experiments of the paper."""


def published_differing(positions: int, differ: Fraction, delta: Fraction) -> Enclosure:
    """Lemma 1 of the paper: Kp + √(3 ln(1/δ)Kp), which is no bound where Kp < 3 ln(1/δ).

    Parameters
    ----------
    positions : K
    differ : p, in the paper α/τ·(1 − 1/B)
    delta : in (0, 1)
    """
    require(0 < delta < 1, "delta", delta, "in (0, 1)")
    mean = positions * differ
    return enclose(lambda: to_arb(mean) + (-3 * to_arb(mean) * to_arb(delta).log()).sqrt())


def levels(
    rule: BucketRule,
    hashes: HashFamily,
    *,
    differ: Fraction,
    relative_change: Fraction,
    mixture: PrivacyCurve,
    delta: Fraction,
) -> Mapping[str, Enclosure]:
    """ε over the draw at this δ for the same randomness, by three theorems.

    "published" is lemma 1 of the paper as it stands in section 4 (with its ceiling) or 5
    (without), and no theorem; "exact_tail" takes lemma 1's step with the exact binomial tail;
    "exact_mixture" is the curve that `MinHash.over_the_draw` claims.

    Parameters
    ----------
    rule, hashes : of the sketch
    differ : the largest probability that neighbours' buckets differ
    relative_change : α/τ, from which the paper takes p′
    mixture : the exact curve
    delta : in (0, 1)
    """
    k, b = hashes.functions, hashes.buckets
    loss = rule.loss(b)
    noisy = isinstance(rule, BucketNoise)
    published = published_differing(k, relative_change * Fraction(b - 1, b), delta)
    if not noisy:
        published = Enclosure(*np.ceil([published.lower, published.upper]).tolist())
    tail = max_differing(k, differ, delta)
    steps = b - 1 if noisy else 1  # largest loss of a position
    return {
        "published": _product(published, loss, steps),
        "exact_tail": _product(Enclosure(tail, tail), loss, steps),
        "exact_mixture": mixture.epsilon_at(delta),
    }


def _product(count: Enclosure, loss: Enclosure, steps: int) -> Enclosure:
    ends = (
        Fraction(count.lower) * Fraction(loss.lower),
        Fraction(count.upper) * Fraction(loss.upper),
    )
    return Enclosure(
        Enclosure.of_exact(steps * ends[0]).lower, Enclosure.of_exact(steps * ends[1]).upper
    )
