"""What exact accounting saves: published bound beside exact one, at the same (epsilon, delta).

``python -m benchmarks.improvement`` prints one row for each family: the noise that the published
theorem asks for, what the exact curve asks for, and the variance of the estimate at a typical pair
under both. A ratio above 1 is what a reader of the paper pays for nothing; where it is below 1 the
published bound doesn't give the privacy that it names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from attrs import evolve

from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.published import (
    sigma_classical,
    sigma_kenthapadi,
    sigma_kenthapadi_any_projection,
    sigma_li,
    sigma_li_any_projection,
)
from dpverify.accounting.published_counts import differing_signs
from dpverify.data.adjacency import Attribute, BitFlip, Items
from dpverify.data.domain import Ball, Box, Sets
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition, published_sigma
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.rules import BucketResponse
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import GaussianProjection
from dpverify_mechanisms.projections.sjlt import SJLT
from dpverify_mechanisms.secret.rows import rows_for_accuracy
from dpverify_mechanisms.secret.sketch import CovarianceSketch
from dpverify_mechanisms.sign.flip_rules import Ladder
from dpverify_mechanisms.sign.sketch import SignSketch

UNIT = Box(low=Fraction(0), high=Fraction(1))
ONE = Attribute(beta=Fraction(1))
DELTA = Fraction(1, 10**6)
DISTANCE = 118.4  # mean squared distance of two of the 5,000 MNIST digits
P, K = 784, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published bound beside the exact one."""

    mechanism: str
    statement: str
    noise: str
    published: float
    exact: float
    variance: float

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [
            self.mechanism,
            self.statement,
            self.noise,
            f"{self.published:.5g}",
            f"{self.exact:.5g}",
            f"{self.published / self.exact:.3g}",
            f"{self.variance:.3g}",
        ]


def linear(epsilon: Fraction) -> Iterator[Row]:
    """Gaussian noise on linear sketches of the digits; the variance is the noise's part."""
    sketches: dict[str, Projection] = {
        "Gaussian projection": GaussianProjection(p=P, k=K, seed=1),
        "SJLT, s = 8": SJLT(p=P, k=K, seed=1, sparsity=8),
        "FJLT": FJLT(p=P, k=K, seed=1, density=Fraction(1, 4)),
    }
    for name, projection in sketches.items():
        exact = LinearSketch.calibrated(
            projection, epsilon=epsilon, delta=DELTA, domain=UNIT, adjacency=ONE
        )
        sensitivity = Fraction(exact.facts()["sensitivity"]["l2"].upper)
        levels = {
            "kenthapadi2013 theorem 1": sigma_kenthapadi(epsilon, DELTA, sensitivity=sensitivity),
            "li2023 theorem 3.1": sigma_li(epsilon, DELTA, sensitivity=sensitivity),
        }
        if epsilon < 1:
            levels["classical"] = sigma_classical(epsilon, DELTA, sensitivity=sensitivity)
        if isinstance(projection, GaussianProjection):
            for statement, any_projection in (
                ("kenthapadi2013 lemma 2", sigma_kenthapadi_any_projection),
                ("li2023 theorem 3.4", sigma_li_any_projection),
            ):
                levels[statement] = any_projection(epsilon, DELTA, beta=Fraction(1), p=P, k=K)
        sigma = exact.facts()["noise"]["sigma"].upper
        best = SquaredDistance(sketch=exact).noise_variance(DISTANCE)
        for statement, level in levels.items():
            noise = evolve(exact.noise, scale=exact.noise.scale * level.upper / sigma)
            louder = SquaredDistance(sketch=evolve(exact, noise=noise)).noise_variance(DISTANCE)
            yield Row(
                mechanism=name,
                statement=statement,
                noise="sigma",
                published=level.upper,
                exact=sigma,
                variance=louder / best,
            )


def signs(epsilon: Fraction) -> Row:
    """DP-SignRP-RR at the cell of the paper's figure 5: p = 1,024, k = 512, norms of 10·beta."""
    exact = SignSketch.dp_signrp_rr(
        p=1024,
        k=512,
        seed=1,
        epsilon=epsilon,
        delta=DELTA,
        domain=Box(low=Fraction(-1), high=Fraction(1)),
        adjacency=ONE,
        least_norm=Fraction(10),
    )
    budget = float(epsilon) / differing_signs(512, 1024, Fraction(1, 10), DELTA).upper
    odds = Fraction(math.exp(budget))
    published = evolve(exact, rule=Ladder.response(odds / (1 + odds)))
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 1024))
    variances = [sketch.estimators()[0].variance(x, y) for sketch in (published, exact)]
    assert isinstance(exact.rule, Ladder)
    flip = exact.rule.flips[1] / 2**64
    return Row(
        mechanism="DP-SignRP-RR, k = 512",
        statement="li2023 proposition 4.5",
        noise="1 / budget of a sign",
        published=1 / budget,
        exact=1 / math.log((1 - flip) / flip),
        variance=variances[0] / variances[1],
    )


def min_hash(epsilon: Fraction) -> Row:
    """RRMinHash over the draw: lemma 1 of the paper is no bound where it misuses Chernoff's."""
    k, buckets = 40, 4
    exact = MinHash.rr_min_hash(
        p=2000,
        k=k,
        buckets=buckets,
        seed=1,
        epsilon=epsilon,
        delta=Fraction(1, 10**4),
        domain=Sets(min_size=500),
        adjacency=Items(changes=2),
    )
    level = exact.levels(Fraction(1, 10**4))["published"]
    # The published level at the exact coins is `level`; its coins for epsilon are in proportion.
    assert isinstance(exact.rule, BucketResponse)
    loss = exact.rule.loss(buckets).upper
    budget = loss * float(epsilon) / level.upper
    odds = Fraction(math.exp(budget))
    published = evolve(exact, rule=BucketResponse(keep=_coin(odds / (odds + buckets - 1))))
    x = np.zeros((1, 2000))
    y = np.zeros((1, 2000))
    x[0, :500], y[0, 250:750] = 1, 1
    variances = [sketch.estimators()[0].variance(x, y) for sketch in (published, exact)]
    return Row(
        mechanism="RRMinHash, K = 40, B = 4, 500 items",
        statement="aumuller2020 lemma 1",
        noise="1 / budget of a hash",
        published=1 / budget,
        exact=1 / loss,
        variance=variances[0] / variances[1],
    )


def _coin(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * 2**64), 2**64)


def secret(epsilon: Fraction) -> Iterator[Row]:
    """Graph cuts and covariances at eta = 0.1, nu = 0.01; the smoothing's part of the variance."""
    rows = rows_for_accuracy(eta=Fraction(1, 10), nu=Fraction(1, 100))
    eps, log = float(epsilon), math.log(2 / float(DELTA))
    root = math.sqrt(rows * log)
    w = 2 / float(RankOneNormal.max_gamma(rows, epsilon=epsilon, delta=DELTA))  # of a large graph
    published = math.sqrt(32) * root * math.log(4 * rows / float(DELTA)) / eps
    yield Row(
        mechanism=f"JL for graph cuts, r = {rows:,}",
        statement="blocki2012 theorem 3.2",
        noise="w",
        published=published,
        exact=w,
        variance=(published / w) ** 2,
    )
    covariance = CovarianceSketch.calibrated(
        p=64, sketch_rows=rows, epsilon=epsilon, delta=DELTA, domain=Ball(radius=Fraction(1))
    )
    published = 16 * root * math.log(16 * rows / float(DELTA)) / eps
    w = math.sqrt(covariance.w_squared)
    yield Row(
        mechanism=f"JL for covariances, r = {rows:,}",
        statement="blocki2012 theorem 4.1",
        noise="w",
        published=published,
        exact=w,
        variance=(published / w) ** 4,
    )


def distances(epsilon: Fraction) -> Row:
    """The matrix of squared distances of 100 rows of bits."""
    exact = NoiseAddition.calibrated(
        rows=100, p=784, epsilon=epsilon, delta=DELTA, domain=UNIT, adjacency=BitFlip()
    )
    published = published_sigma(epsilon, DELTA, rows=100).upper
    sigma = exact.facts()["noise"]["sigma"].upper
    return Row(
        mechanism="NoiseAddition, n = 100",
        statement="kenthapadi2013 section 4.1",
        noise="sigma",
        published=published,
        exact=sigma,
        variance=(published / sigma) ** 2,
    )


def rows(epsilon: Fraction) -> Iterator[Row]:
    """Every family at one epsilon."""
    yield from linear(epsilon)
    yield distances(epsilon)
    yield signs(epsilon)
    yield min_hash(epsilon)
    yield from secret(epsilon)


def table(epsilon: Fraction) -> str:
    """Markdown."""
    headings = ["mechanism", "published by", "noise", "published", "exact", "ratio", "variance"]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows(epsilon)]
    return "\n".join(lines)


def tables() -> str:
    """At three targets."""
    return "\n\n".join(
        f"epsilon = {target}, delta = 1e-6 (MinHash: 1e-4)\n\n{table(target)}"
        for target in (Fraction(1, 2), Fraction(1), Fraction(5))
    )


if __name__ == "__main__":
    print(tables())
