"""The tasks of the front door, as they are written down."""

from __future__ import annotations

import dpverify as dpv


def test_noise_for_a_target() -> None:
    sigma = dpv.calibrate(dpv.Gaussian, epsilon=1, delta=1e-6).sigma
    assert f"{float(sigma):.6f}" == "4.224679"  # type: ignore[arg-type]


def test_what_a_noise_guarantees() -> None:
    assert f"{dpv.Gaussian(sigma=4).epsilon_at(delta=1e-6):.4f}" == "1.0608"
    assert f"{dpv.Gaussian(sigma=4).delta_at(epsilon=1):.3g}" == "0.00000293"


def test_composition() -> None:
    total = (10 * dpv.Gaussian(sigma=4) + dpv.Laplace(scale=2)).epsilon_at(1e-6)
    assert total == dpv.compose(10 * dpv.Gaussian(sigma=4), dpv.Laplace(scale=2)).epsilon_at(1e-6)
    assert f"{total:.4f}" == "4.1424"
