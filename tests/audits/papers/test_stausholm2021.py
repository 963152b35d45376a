"""What the ledger of Stausholm 2021 builds on."""

from fractions import Fraction

import pytest

from dpverify.ledger.oracles import number
from dpverify_audits.papers.stausholm2021 import privacy
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


@pytest.mark.parametrize("z", [(0, 0), (1, 0), (2, -1)])
def test_the_variance_of_a_noisy_input_is_that_of_all_draws(z: tuple[int, ...]) -> None:
    added = input_moments(3, 2, Fraction(1), z, 1)[1] - input_moments(3, 2, Fraction(1), z)[1]
    norm = Fraction(sum(a * a for a in z))
    assert float(noise_at_input(number(Fraction(1, 3)), 3, 2, norm)) == pytest.approx(
        float(added), 1e-12
    )
