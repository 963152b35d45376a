"""What the ledger of Stausholm 2021 builds on."""

from fractions import Fraction

import pytest

from dpverify.ledger.oracles import number
from dpverify.ledger.statements import judge
from dpverify_audits.papers.stausholm2021.comparison import noise_at_input
from dpverify_audits.papers.stausholm2021.fast import input_moments
from dpverify_audits.papers.stausholm2021.privacy import gaussian_statement


def test_the_classical_noise_needs_its_condition() -> None:
    statement = gaussian_statement("here", "here", "here", (Fraction(1),))
    found = judge(statement)
    assert (found.verdict, found.correction()) == ("refuted", "for ε below 1 alone")


@pytest.mark.parametrize("z", [(0, 0), (1, 0), (2, -1)])
def test_the_variance_of_a_noisy_input_is_that_of_all_draws(z: tuple[int, ...]) -> None:
    added = input_moments(3, 2, Fraction(1), z, 1)[1] - input_moments(3, 2, Fraction(1), z)[1]
    norm = Fraction(sum(a * a for a in z))
    assert float(noise_at_input(number(Fraction(1, 3)), 3, 2, norm)) == pytest.approx(
        float(added), 1e-12
    )
