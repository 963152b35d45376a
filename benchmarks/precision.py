"""The precision attack on textbook noise, on other libraries' and on ours.

Every mechanism claims ε = 1 for a number that moves by 1, at the pair 0 and 1. Its outputs are
drawn first, in one go, and then played to the audit, so that the seconds of drawing and of the
attack add up to those of an audit. Other libraries live in an environment of their own (see
`benchmarks.accountants`), whose interpreter is given as ``--peers-python`` or in
DPVERIFY_PEERS_PYTHON; without one their rows say so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.precision import PrecisionAttack
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import EventEvidence
from dpverify.data.adjacency import Adjacency, L1Ball
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords, Words

__all__ = ["Played", "attacked"]

ALPHA = 0.05
_ADJACENCY = L1Ball(radius=Fraction(1))
_PAIR = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))

Drawn = tuple[NDArray[np.float64], float]
"""Outputs, and the seconds that they took."""


@dataclass(slots=True)
class Played(Mechanism):
    """Gives out, for 0 and for 1, what was drawn before.

    Attributes
    ----------
    name : of the mechanism that drew
    outputs : of shape (2, draws), for 0 and for 1
    """

    name: str
    outputs: NDArray[np.float64]
    adjacency: Adjacency = _ADJACENCY
    places: list[int] = field(default_factory=lambda: [0, 0])

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        """The next output."""
        del rng
        side = int(records[0, 0])
        self.places[side] += 1
        return self.outputs[side, self.places[side] - 1 : self.places[side]]

    def privacy(self) -> ApproxDP:
        """ε = 1."""
        return ApproxDP(epsilon=Fraction(1))


def attacked(name: str, outputs: NDArray[np.float64]) -> tuple[str, str, float]:
    """Verdict, what showed it, and the attack's seconds of processor time."""
    start = process_time()
    config = AuditConfig(alpha=ALPHA, draws=outputs.shape[1], workers=1)
    (finding,) = PrecisionAttack().run(Target(Played(name, outputs), [_PAIR]), config)
    seconds = process_time() - start
    seen = finding.evidence
    assert isinstance(seen, EventEvidence)
    shown = (
        f"{seen.event}: {seen.hits:,} of {seen.draws:,} from "
        f"{'1' if seen.swapped else '0'}, {seen.false_hits:,} from the other"
        if finding.verdict == "violation"
        else ""
    )
    return finding.verdict, shown, seconds


def here(draw: Callable[[float, int], NDArray[np.float64]], value: float, draws: int) -> Drawn:
    """Drawn in this process."""
    start = process_time()
    return draw(value, draws), process_time() - start


def there(python: str, library: str, value: float, draws: int) -> Drawn:
    """Drawn by another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "drawn.npy"
        module = ["-m", "benchmarks.peers.draws", library, str(value), str(draws), str(out)]
        ran = subprocess.run(  # noqa: S603
            [python, *module],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        return np.load(out), float(ran.stdout)


def _numpy_laplace(value: float, draws: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(int(value))
    return np.array([value + rng.laplace() for _ in range(draws)])


def _textbook(value: float, draws: int) -> NDArray[np.float64]:
    """Inverse of the distribution function, of 53 bits."""
    uniform = np.random.default_rng(int(value)).random(draws) - 0.5
    noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return np.asarray(value + noise)


def _exact(value: float, draws: int) -> NDArray[np.float64]:
    """Exactly rounded noise on a grid of 2⁻¹⁰, which 0 and 1 are on; in the records' unit."""
    noise = RoundedLaplace(scale=1024.0).sample((draws,), rng=ReplayableWords(int(value), "noise"))
    return np.asarray((1024 * int(value) + noise) / 1024)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers-python", default=os.environ.get("DPVERIFY_PEERS_PYTHON"))
    parser.add_argument("--full", action="store_true", help="1e6 draws of the exact path, 1e5")
    given = parser.parse_args()
    exact, opendp = (500_000, 50_000) if given.full else (50_000, 5_000)
    rows: list[tuple[str, int, Callable[[float, int], Drawn] | None]] = [
        ("numpy: x + rng.laplace()", 1_000, partial(here, _numpy_laplace)),
        ("inverse of the distribution function, in doubles", 1_000, partial(here, _textbook)),
        ("dpverify: exactly rounded noise on a grid", exact, partial(here, _exact)),
    ]
    for library, draws in (("diffprivlib", 1_000), ("opendp", 1_000), ("opendp", opendp)):
        python = given.peers_python
        rows.append(
            (f"{library}: Laplace", draws, partial(there, python, library) if python else None)
        )
    print("| mechanism | runs | verdict | shown by | seconds to draw | to attack |")
    print("|---|---|---|---|---|---|")
    for name, draws, draw in rows:
        if draw is None:
            print(f"| {name} | – | not installed | | | |")
            continue
        (own, first), (other, second) = draw(0.0, draws), draw(1.0, draws)
        verdict, shown, seconds = attacked(name, np.stack([own, other]))
        print(
            f"| {name} | {2 * draws:,} | {verdict} | {shown} | {first + second:.2f} "
            f"| {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
