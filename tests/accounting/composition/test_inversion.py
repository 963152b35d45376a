"""The trapezoid sums: every line and kernel gives a proven answer, and the bounds are needed."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.composition._enumeration import Enumeration
from dpverify.accounting.composition._inversion import (
    Inversion,
    LatticeKernel,
    Line,
    PlainKernel,
    invert,
)
from dpverify.accounting.curves.gaussian import delta_gaussian
from dpverify.accounting.losses.base import Log, Transforms
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.nodes import Nodes
from dpverify.enclosure import to_arb
from tests.helpers.profiles import examples

F = Fraction
LINE = Line(c=2.0, b=6.0, period=40.0, threshold=-40.0, most_nodes=1 << 18, most_work=10**7)
BITS: Transforms = (
    (ResponseLoss(step=Log(F(3, 2))), 3),
    (ResponseLoss(step=F(1, 3)), 4),
    (FiniteLoss(pairs=((F(1, 2), F(1, 8)), (F(1, 2), F(3, 4)), (F(0), F(1, 8)))), 2),
)
EPSILONS = (F(0), F(1, 3), F(1), F(5, 2))


@examples(30)
@given(
    c=st.floats(0.3, 8),
    beyond=st.floats(0.2, 8),
    period=st.floats(3, 60),
    threshold=st.floats(-60, -4),
    epsilon=st.fractions(0, 4),
)
def test_any_line_encloses(
    c: float, beyond: float, period: float, threshold: float, epsilon: Fraction
) -> None:
    """Whatever is left out and wherever the sum runs, the answer is in the ball."""
    line = replace(LINE, c=c, b=c + beyond, period=period, threshold=threshold)
    with ctx.workprec(160):
        found = invert(((GaussianLoss(mu_squared=F(2)), 1),), PlainKernel(), line)
        assert found is not None
        true = delta_gaussian(epsilon, 1, sensitivity=2**0.5)
        ball = found.value(to_arb(epsilon))
        assert ball.lower() <= arb(true.upper) + 1e-14
        assert ball.upper() >= arb(true.lower) - 1e-14


@pytest.mark.parametrize("c", [0.4, 2.0, 7.0])
@pytest.mark.parametrize("period", [2.0, 5.0, 60.0])
@pytest.mark.parametrize("threshold", [-3.0, -40.0])
def test_lattice_lines_enclose(c: float, period: float, threshold: float) -> None:
    losses = ((ResponseLoss(step=Log(F(3, 2)), share=F(4, 5)), 9),)
    line = replace(LINE, c=c, b=c + 3, period=period, threshold=threshold)
    with ctx.workprec(160):
        step = (arb(3) / 2).log()
        kernel = LatticeKernel(base=arb(0), unit=step)
        found = invert(losses, kernel, line)
        assert found is not None
        exact = Enumeration.of(losses)
        for epsilon in (arb(0), step / 3, 3 * step, to_arb(F(2)), 8 * step + step / 2):
            assert found.value(epsilon).overlaps(exact.value(epsilon))
            assert _holds(found.value(epsilon), exact.value(epsilon))


def _holds(outer: arb, inner: arb) -> bool:
    """Whether the value is enclosed, up to the round-off of both balls."""
    return bool(outer.lower() <= inner.upper() and inner.lower() <= outer.upper())


def test_kernel_bounds() -> None:
    y = np.geomspace(0.01, 1e5, 60)
    for height, bound in zip(y, PlainKernel().log_bound(1.5, y), strict=True):
        s = acb(1.5, height)
        size = float(abs(1 / (s * (s + 1))).log().upper())
        assert size <= bound <= size + 1e-6


def test_lattice_kernel_bounds() -> None:
    """For every place θ between two lattice points."""
    kernel = LatticeKernel(base=arb(0), unit=arb(0.75))
    y = np.linspace(0.0, math.pi / 0.75, 40)
    for c in (0.1, 1.0, 30.0):
        for height, bound in zip(y, kernel.log_bound(c, y), strict=True):
            z = (acb(c, height) * 0.75).exp()
            for theta in (0.0, 0.3, 0.75):
                value = 1 / (z - 1) - arb(theta).exp() / (z * arb(0.75).exp() - 1)
                assert float((abs(value) * 0.75).upper()) <= math.exp(bound)


def test_too_many_nodes() -> None:
    """Atoms never die out: the sum has no end, and says so."""
    assert invert(BITS, PlainKernel(), LINE) is None
    few = replace(LINE, most_work=500)
    assert invert(((GaussianLoss(mu_squared=F(1, 1000)), 1),), PlainKernel(), few) is None


@pytest.mark.parametrize("count", [1, 2, 17, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_all_nodes_together_are_their_terms_added_up(count: int, sparse: bool) -> None:
    """Whatever the table's shape, and with half of the first term."""
    weights = [acb(k % 7 - 3, k % 5 + 1) for k in range(count)]
    c, period, epsilon = arb(2), arb(40), arb("0.3")
    line = {"b": arb(6), "period": period, "dropped": arb(0), "beyond": arb(0)}
    nodes = Nodes.of(c, 2 * arb.pi() / period, (k * k if sparse else k for k in range(count)))
    _, found = Inversion.of(nodes, [weights], **line).total(epsilon)
    terms = [(w * (-s * epsilon).exp()).real for w, s in zip(weights, nodes.points, strict=True)]
    assert found.overlaps(2 * sum(terms, arb(0)) - terms[0])
    assert found.rad() < 1e-9
