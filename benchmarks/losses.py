"""``python -m benchmarks.losses``: compositions by exact privacy losses, widths and times.

Every line is one first call for ε at δ, nothing cached, in this process; the relative width is that
of the proven enclosure. Where one number is known by other means (a Gaussian, a binomial) the tests
compare with it; here only cost and width are shown.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import Log, Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.sampling.words import ReplayableWords

DELTA = Fraction(1, 10**6)
DEEP = Fraction(1, 10**300)
SEED = 4


def different_bits(count: int) -> Losses:
    """Flip probabilities of 62 random bits: no two losses have a common unit."""
    words = ReplayableWords(SEED, "bits").words(count) >> np.uint64(9)
    keeps = [Fraction(1, 2) + Fraction(2 * int(word) + 1, 2**62) for word in words]
    return tuple((ResponseLoss(step=Log(keep / (1 - keep))), 1) for keep in keeps)


def multiples(count: int) -> Losses:
    """Losses that are random multiples of 1/20,000 nat, below a tenth."""
    words = ReplayableWords(SEED, "multiples").words(count) % np.uint64(1999)
    return tuple((ResponseLoss(step=Fraction(int(word) + 1, 20_000)), 1) for word in words)


def works() -> Iterator[tuple[str, Losses, Fraction]]:
    """What is measured."""
    coin = ResponseLoss(step=Log(Fraction(51, 49)))
    for times in (1, 10, 100, 1000, 10_000):
        yield f"randomized response, {times} times", ((coin, times),), DELTA
    yield "randomized response, 10000 times", ((coin, 10_000),), DEEP
    yield (
        "Gaussian, mu = 1/30, 1000 times",
        ((GaussianLoss(mu_squared=Fraction(1, 900)), 1000),),
        DEEP,
    )
    for count in (64, 256, 1024, 4096):
        yield f"{count} different bits, no common lattice", different_bits(count), DELTA
    yield "4096 bits, random multiples of 1/20000 nat", multiples(4096), DELTA
    rows = NormalRowsLoss(rows=4239, gammas=(Fraction(1, 100),))
    yield "4239 normal rows, rank one", ((rows, 1),), DELTA
    release = ResponseLoss(step=Fraction(1, 4))
    shared = PositionLoss(differ=Fraction(1, 30), losses=((release, 10),))
    yield "10 releases over one draw of 512 positions", ((shared, 512),), DELTA
    mixed: Losses = (
        (coin, 300),
        (GaussianLoss(mu_squared=Fraction(1, 100)), 10),
        (LaplaceLoss(shift=Fraction(1, 10)), 20),
        (rows, 1),
    )
    yield "bits, Gaussian, Laplace and normal rows together", mixed, DELTA


def main() -> None:
    """Print the table."""
    print("| composition | delta | method | epsilon | relative width | ms |")
    print("|---|---|---|---|---|---|")
    for name, losses, delta in works():
        start = time.perf_counter()
        curve = Composed(losses=losses)
        found = curve.epsilon_at(delta)
        took = (time.perf_counter() - start) * 1e3
        print(
            f"| {name} | {float(delta):.0e} | {curve.method} | {found.upper:.12g} "
            f"| {found.width:.1e} | {took:.0f} |"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 2**20
    print(f"\npeak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
