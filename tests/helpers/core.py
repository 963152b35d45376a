"""What the certified core answers, asked in a process of its own."""

from __future__ import annotations

__all__ = ["CORE"]

CORE = """
import ctypes, json, sys
how, library = sys.argv[1:3]
if how == "rounding":
    assert ctypes.CDLL(library).fesetround(int(sys.argv[3])) == 0
    one = float(sys.argv[2] != "")
    assert (one / 3, -one / 3, one / 10) != (0.3333333333333333, -0.3333333333333333, 0.1)
if how == "flush":
    ctypes.CDLL(library).flush()
    assert 5e-324 * 1.0 == 0
from dpverify.errors import DPVerifyError
from fractions import Fraction as F
from decimal import Decimal as D
from dpverify.accounting.curves.gaussian import delta_gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import GaussianProjection
import numpy as np

def sketch(which):
    made = LinearSketch.calibrated(
        GaussianProjection(p=40, k=12, seed=3), epsilon=F(2), delta=F(1, 10**6),
        domain=Box(low=F(0), high=F(1)), adjacency=Attribute(beta=F(1)),
    )
    if which == "curve":
        return str(made.privacy().epsilon_at(F(1, 10**6)))
    records = np.linspace(0, 1, 400).reshape(10, 40)
    return made.release(records, rng=ReplayableWords(5)).tolist()

answers = {}
for name, work in {
    "delta": lambda: str(delta_gaussian(D("1.3"), D("0.9"))),
    "tiny delta": lambda: str(delta_gaussian(D("30"), D("1.5"))),
    "epsilon": lambda: str(epsilon_gaussian(D("1e-300"), D("7.7"))),
    "sigma": lambda: str(sigma_gaussian(D("0.1"), D("1e-9"))),
    "sketch": lambda: sketch("curve"),
    "release": lambda: sketch("release"),
}.items():
    try:
        answers[name] = work()
    except DPVerifyError as error:
        answers[name] = f"refused: {error}"
print(json.dumps(answers))
"""
"""A program: prints each answer, or the refusal, as JSON."""
