"""What the ledger of Stausholm 2021 builds on."""

import math
from fractions import Fraction

import pytest
from flint import arb

from dpverify.ledger.oracles import chi_square, number
from dpverify.ledger.statements import judge, known_statement
from dpverify_audits.papers.stausholm2021 import noisy_input, privacy, technical
from dpverify_audits.papers.stausholm2021.comparison import noise_at_input
from dpverify_audits.papers.stausholm2021.fast import input_moments


def test_up_to_where_the_classical_noise_is_enough() -> None:
    """The borders and factors that the ledger names in words, at δ = 10⁻⁶."""

    def asked(epsilon: str) -> float:
        case = Fraction(epsilon), Fraction(1, 10**6), Fraction(1)
        real, wanted = privacy._at_output(privacy._sigma, *case)
        return float(real) / float(wanted)

    assert asked("8.7") < 1 < asked("8.8")
    assert (round(asked("12"), 1), round(asked("20"))) == (5.2, 161)


@pytest.mark.parametrize(("k", "d", "squared"), [(64, 65, "1.45"), (1000, 10**4, "1.18")])
def test_about_half_of_all_projections_have_a_longest_column_of_that_square(
    k: int, d: int, squared: str
) -> None:
    """What sections 1.2 and 7 are judged by."""
    longer = 1 - (1 - chi_square(k, number(Fraction(squared) * k))) ** d
    assert 0.48 < float(longer) < 0.51


def test_one_comparison_has_one_answer() -> None:
    """Laplace against Gaussian noise, which the paper compares in sections 1.2, 6.2.3 and 7."""
    for name in ("section-1.2.improvement", "section-6.2.3.smaller-variance"):
        statement = known_statement(f"stausholm2021.{name}")
        assert judge(statement).verdict == "holds_under_reading"
        assert "1.25·exp(−√(7/4)·s" in statement.instead


@pytest.mark.parametrize(("share", "holds"), [(1, True), ("1.01", False)])
def test_the_exact_threshold_of_the_advice(share: int | str, holds: bool) -> None:
    def less(s: Fraction, k: int, norm: Fraction) -> bool:
        delta = number(Fraction(share) * Fraction(5, 4)) * (-number(s) * arb(7).sqrt() / 2).exp()
        laplace, gaussian = technical._crossing((delta, Fraction(1)), s, k, norm)
        return bool(laplace < gaussian * number(Fraction(10**9 + 1, 10**9)))

    assert all(less(*case) for case in technical._CROSSINGS) is holds


@pytest.mark.parametrize("z", [(0, 0), (1, 0), (2, -1)])
def test_the_variance_of_a_noisy_input_is_that_of_all_draws(z: tuple[int, ...]) -> None:
    added = input_moments(3, 2, Fraction(1), z, 1)[1] - input_moments(3, 2, Fraction(1), z)[1]
    norm = Fraction(sum(a * a for a in z))
    assert float(noise_at_input(number(Fraction(1, 3)), 3, 2, norm)) == pytest.approx(
        float(added), 1e-12
    )


@pytest.mark.parametrize("q", [Fraction(1), Fraction(9, 11), Fraction(1, 4)])
@pytest.mark.parametrize("x", [(1, 0), (2, -1)])
def test_the_variance_with_one_noise_is_that_of_all_draws(x: tuple[int, ...], q: Fraction) -> None:
    drawn = noisy_input._variance_of_sum(2, 2, q, x) / 4
    assert noisy_input._one_noise_variance(2, 2, q, x) == drawn


@pytest.mark.parametrize("d", [32, 1000])
def test_no_constant_makes_up_for_the_lost_mean(d: int) -> None:
    """At k = 1 and the least q what is missing grows as d³σ⁴, and O(·) has d²σ⁴."""
    size = math.isqrt(d // 2)
    case = 1, d, Fraction(9, d + 9), (size,) * d
    missing = noisy_input._one_noise_variance(*case) - noisy_input._with_noise_terms(1, *case)
    assert missing > (d**3 - 32 * d**2) / Fraction(9)
    assert noisy_input._one_noise_variance(*case) <= noisy_input._with_noise_terms(2, *case)
