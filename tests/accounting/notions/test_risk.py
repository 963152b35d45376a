"""Risk from a curve, against closed forms, enumeration and riskcal; and noise for a risk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from xml.etree import ElementTree as ET

import mpmath
import pytest
from matplotlib.figure import Figure

import dpverify as dpv
from dpverify.accounting.composition.group import GroupBound
from dpverify.accounting.notions.people_figure import people_figure
from dpverify.accounting.notions.risk import Risk
from dpverify.enclosure import Enclosure, Exact, squared
from dpverify.errors import ParameterError
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night

SIGMAS = day_and_night("4", "0.3", "1", "40")
PRIORS = day_and_night("0.5", "0.01", "0.2", "0.9")


def encloses(found: Enclosure, exact: mpmath.mpf, width: float = 1e-12) -> bool:
    return found.lower <= exact <= found.upper and found.width <= width


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_noise_in_closed_form(sigma: str, prior: str) -> None:
    """The best test is a threshold: at x = 1/2 + σ² ln((1 − π)/π) for N(0, σ²) and N(1, σ²)."""
    risk = dpv.Gaussian(sigma=sigma).risk(prior=prior)
    with mpmath.workdps(40):
        s, p = mpmath.mpf(sigma), mpmath.mpf(prior)
        at = mpmath.mpf(1) / 2 + s * s * mpmath.log((1 - p) / p)
        right = p * mpmath.ncdf((1 - at) / s) + (1 - p) * mpmath.ncdf(at / s)
        assert encloses(risk.success, right)
        assert encloses(risk.bayes_risk, 1 - right, 1e-9)
        assert encloses(risk.advantage, 2 * mpmath.ncdf(1 / (2 * s)) - 1)
        for rate in ("0.01", "0.5"):
            f = mpmath.mpf(rate)
            power = mpmath.ncdf(1 / s + mpmath.sqrt(2) * mpmath.erfinv(2 * f - 1))
            assert encloses(risk.tpr_at(rate), power)


def outcomes(keep: Fraction, positions: int) -> list[tuple[Fraction, Fraction]]:
    """Probabilities of all answers to `positions` questions, truly yes or truly no."""
    rows = product((keep, 1 - keep), repeat=positions)
    one = Fraction(1)
    return [(math.prod(row, start=one), math.prod((1 - p for p in row), start=one)) for row in rows]


@pytest.mark.parametrize("prior", ["0.5", "0.05", "0.7"])
def test_the_best_guess_by_enumeration(prior: str) -> None:
    laws, share = outcomes(Fraction(3, 5), 3), Fraction(prior)
    exact = sum(max(share * p, (1 - share) * q) for p, q in laws)
    risk = dpv.RandomizedResponse(keep="0.6", positions=3).risk(prior=prior)
    assert encloses(risk.success, mpmath.mpf(exact.numerator) / exact.denominator)
    # What one output shows at most is what the three answers together do.
    most = max(share * p / (share * p + (1 - share) * q) for p, q in laws)
    assert most <= risk.posterior_at() <= float(most) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("curve", "rate"),
    day_and_night(
        (dpv.Laplace(scale=1), "0.3"),
        *product(
            (dpv.Laplace(scale=1), dpv.RandomizedResponse(keep="0.75", positions=2)),
            ("1e-6", "0.01", "0.9"),
        ),
    ),
    ids=str,
)
def test_kinks_are_enclosed(curve: dpv.PrivacyCurve, rate: str) -> None:
    """Where the curve has corners the best threshold sits in one of them."""
    f = Fraction(rate)
    if isinstance(curve, dpv.Laplace):
        x = mpmath.mpf(f.numerator) / f.denominator
        quantile = -mpmath.log(2 * x) if f <= Fraction(1, 2) else mpmath.log(2 * (1 - x))
        beyond = quantile - 1
        exact = mpmath.exp(-beyond) / 2 if beyond >= 0 else 1 - mpmath.exp(beyond) / 2
    else:
        power, left = Fraction(0), f
        for p, q in sorted(outcomes(Fraction(3, 4), 2), key=lambda pair: -pair[0] / pair[1]):
            taken = min(left / q, Fraction(1))
            power, left = power + taken * p, left - taken * q
        exact = mpmath.mpf(power.numerator) / power.denominator
    found = curve.risk().tpr_at(rate)
    assert found.lower <= exact * (1 + 1e-15)
    assert exact <= found.upper * (1 + 1e-15)
    assert found.upper - found.lower <= max(1e-14, 1e-12 * found.upper)


@pytest.mark.nightly
def test_one_of_four_records_is_guessed_no_better_than_the_bound() -> None:
    """Randomized response of four values, any of which may be true: the answer is the guess."""
    keep = Fraction(7, 10)
    bound = dpv.RandomizedResponse.of_values(4, keep=keep).risk().reconstruction_at(4)
    assert keep <= bound.upper < 1


def test_the_bound_on_reconstruction_is_attained() -> None:
    """A record answers truly with probability 1/2, else by one of the three others; nobody, by any.

    The odds against nobody's answer are 2 and 2/3, the answer is right in half of the cases, and so
    the bound for three or for five candidates (a planted bug) is not the one for four.
    """
    exact, odds = Fraction(1, 2), dpv.ApproxDP.from_odds(2).risk()
    assert encloses(odds.reconstruction_at(4), mpmath.mpf("0.5"))
    assert odds.reconstruction_at(5).upper < exact < odds.reconstruction_at(3).lower


@pytest.mark.parametrize("failure", ["1e-6", "0.01"])
def test_more_belief_than_the_bound_is_as_rare_as_it_says(failure: str) -> None:
    sigma, prior = 2, 0.25
    belief = dpv.Gaussian(sigma=sigma).risk(prior=prior).posterior_at(failure)
    loss = mpmath.log(belief / (1 - belief) * (1 - prior) / prior)
    # L ~ N(1/2σ², 1/σ²) under the first law, where more belief is likeliest.
    chance = mpmath.ncdf((mpmath.mpf(1) / (2 * sigma**2) - loss) * sigma)
    assert chance <= float(failure)
    assert chance >= float(failure) / 50
    assert dpv.Gaussian(sigma=sigma).risk().posterior_at() == 1.0
    tiny = dpv.Gaussian(sigma=sigma).risk().posterior_at("1e-300")
    assert tiny == 1.0  # its shares are below all targets, of which nobody was asked


def test_an_infinite_loss_shows_everything() -> None:
    open_risk = dpv.ApproxDP(epsilon=1, delta="1e-3").risk()
    assert open_risk.posterior_at() == open_risk.posterior_at("1e-4") == 1.0
    assert open_risk.posterior_at("0.1") < 0.75


KINDS = day_and_night(
    (dpv.Gaussian, {}, "0.1", "0.01"),
    (dpv.Laplace, {}, "0.9", "0.5"),
    (dpv.Laplace, {}, "0.1", "0.01"),
    (dpv.RandomizedResponse, {"positions": 5}, "0.5", "0.1"),
    (dpv.DiscreteGaussian, {}, "0.6", "0.2"),
    (dpv.Gaussian, {"times": 10, "rate": "0.1"}, "0.2", "0.1"),
)


@pytest.mark.parametrize(("kind", "query", "tpr", "fpr"), KINDS)
def test_noise_for_a_rate_is_proven_and_no_more_than_needed(
    kind: type[dpv.PrivacyCurve], query: dict[str, object], tpr: str, fpr: str
) -> None:
    noise = dpv.calibrate(kind, tpr=tpr, fpr=fpr, **query)  # type: ignore[arg-type]
    whole = noise
    if "rate" in query:
        whole = 10 * noise.poisson_sampled(rate="0.1")
    found = whole.risk().tpr_at(fpr)
    assert float(tpr) * (1 - 1e-6) <= found.upper <= float(tpr)


def to_float(number: Exact) -> float:
    return math.sqrt(squared(number))


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (dpv.Gaussian, {}),
        (dpv.Laplace, {"times": 2}),
        (dpv.RandomizedResponse, {"values": 100, "positions": 2}),
        (dpv.curves.Staircase, {}),
    ],
)
def test_right_guesses_with_calibrated_noise_are_in_doubles_too_at_most_as_many_as_asked_for(
    kind: type[dpv.PrivacyCurve], query: dict[str, Fraction]
) -> None:
    for share, prior in product(range(1, 10), ("0.5", "0.49", "0.066", "0.9")):
        least = max(Fraction(prior), 1 - Fraction(prior))
        success = least + (1 - least) * Fraction(share, 11)
        noise = dpv.calibrate(kind, success=success, prior=prior, **query)
        found = (int(query.get("times", 1)) * noise).risk(prior=prior).success
        assert Fraction(found.upper) <= success <= Fraction(found.upper) * (1 + Fraction(1, 10**11))


LIMITED = (
    (dpv.curves.TruncatedLaplace, {"scale": 10}, "0.3", "0.1"),
    (dpv.curves.TruncatedLaplace, {"scale": 10}, "0.03", "0.01"),
    (dpv.curves.sparse_vector, {"threshold_scale": 1}, "0.15", "0.05"),
    (dpv.curves.gaussian_threshold, {"sigma": 3, "groups": 2}, "0.22", "0.05"),
    (dpv.curves.laplace_threshold, {"scale": 2}, "0.15", "0.05"),
)


@pytest.mark.parametrize(("kind", "query", "tpr", "fpr"), LIMITED)
def test_noise_that_reaches_some_points_only_reaches_rates_by_the_best_of_these(
    kind: Callable[..., dpv.PrivacyCurve], query: dict[str, int], tpr: str, fpr: str
) -> None:
    found = dpv.calibrate(kind, tpr=tpr, fpr=fpr, **query).risk().tpr_at(fpr)
    assert float(tpr) * (1 - 1e-6) <= found.upper <= float(tpr)


def test_noise_for_an_advantage_or_for_right_guesses() -> None:
    sigma = to_float(dpv.calibrate(dpv.Gaussian, advantage="0.05").sigma)
    with mpmath.workdps(30):
        least = 1 / (2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf("0.05")))
    assert least <= mpmath.mpf(sigma) <= least * (1 + 1e-12)
    same = to_float(dpv.calibrate(dpv.Gaussian, success="0.525").sigma)
    assert sigma <= same <= sigma * (1 + 1e-13)  # the last digit of 0.525 less
    rare = dpv.calibrate(dpv.Laplace, success="0.992", prior="0.01").risk(prior="0.01")
    assert 0.992 * (1 - 1e-12) <= rare.success.upper <= 0.992


@pytest.mark.parametrize(
    ("goals", "refused"),
    [
        ({}, "target=missing must be one of"),
        ({"epsilon": 1, "advantage": 0.1}, "target=epsilon and advantage"),
        ({"tpr": 0.1}, "target=tpr"),
        ({"tpr": 0.1, "fpr": 0.2}, "above fpr="),
        ({"tpr": 0.1, "fpr": 0}, r"fpr=0 must be in \(0, 1\)"),
        ({"tpr": 1, "fpr": 0.1}, "tpr=1 must be above"),
        ({"success": "0.4"}, "above 1/2, which a guess without the release reaches"),
        ({"success": "0.6", "prior": 0}, "prior=0"),
        ({"epsilon": 1, "prior": "0.5"}, "prior=.* must be left out for epsilon"),
        ({"advantage": "0.1", "delta": "1e-6"}, "delta=.* must be left out for advantage"),
        ({"advantage": 0}, r"advantage=0 must be in \(0, 1\)"),
        ({"advantage": 1}, r"advantage=1 must be in \(0, 1\)"),
        ({"advantage": math.nan}, "advantage=nan"),
    ],
)
def test_targets_that_are_none(goals: dict[str, float], refused: str) -> None:
    with pytest.raises(ParameterError, match=refused):
        dpv.calibrate(dpv.Gaussian, **goals)


def test_numbers_outside_their_domain_are_refused() -> None:
    risk = dpv.Gaussian(sigma=1).risk()
    for prior in (0, 1, -1, math.nan, "half"):
        with pytest.raises(ParameterError, match="prior="):
            dpv.Gaussian(sigma=1).risk(prior=prior)
    for candidates in (0, 1, 2.5):
        with pytest.raises(ParameterError, match="candidates="):
            risk.reconstruction_at(candidates)
    with pytest.raises(ParameterError, match="failure="):
        risk.posterior_at(1)
    with pytest.raises(ParameterError, match="false_positive_rate="):
        risk.tpr_at(0)


def drawn(svg: str) -> Counter[str]:
    """People by the colour of their outline, those of the legend left out."""
    root = ET.fromstring(svg)  # noqa: S314  # our own text
    inner = [g.get("stroke", "") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    counts = Counter(colour for colour in inner if colour)
    return Counter({colour: number - 1 for colour, number in counts.items()})


@pytest.mark.parametrize(
    ("anyway", "most", "people"),
    [
        (Fraction(1, 2), 0.5498, (50, 5, 45)),
        (Fraction(1, 2), 0.5, (50, 0, 50)),
        (Fraction(1, 2), 0.5 + 2**-50, (50, 1, 49)),
        (Fraction(995, 1000), 0.996, (99, 1, 0)),
        (Fraction(1, 2), 1.0, (50, 50, 0)),
    ],
)
def test_the_picture_counts_to_the_unsafe_side(
    anyway: Fraction, most: float, people: tuple[int, int, int]
) -> None:
    svg = people_figure(anyway, most)
    counts = drawn(svg)
    assert tuple(counts[colour] for colour in ("#0072B2", "#C24A00", "#5A5A5A")) == people
    assert not any(word in svg for word in ("script", "href", "url(", " id="))
    assert 'role="img" aria-label="Of 100 people' in svg


def test_a_risk_prints_itself() -> None:
    risk = Risk(curve=dpv.Gaussian(sigma=4))
    shown = str(risk)
    assert shown.startswith("Of 100 people, a guess is right for 50 without the release, and for ")
    assert "54.98" in shown
    assert risk._repr_html_().count("<tr>") == len(risk.rows())
    assert risk.to_html().startswith("<!DOCTYPE html>")
    plain = risk.to_dict()
    assert plain["prior"] == "0.5"
    assert [row["fpr"] for row in plain["rates"]] == ["0.001", "0.01", "0.1"]
    axes = risk.plot(Figure().add_subplot())
    assert axes.get_xlabel() == "false positive rate"


@pytest.mark.parametrize("prior", ["1/3", "0.123456", "0.99999", "1e-7"])
def test_a_row_is_true_of_the_rounded_prior_that_it_names(prior: str) -> None:
    curve = dpv.Laplace(scale=3)
    rows = dict(Risk(curve=curve, prior=prior).rows())
    name = next(name for name in rows if name.startswith("belief of"))
    shown = Fraction(name.split()[2]) / 100
    belief = Risk(curve=curve, prior=shown).posterior_at(Fraction(1, 10**6))
    assert belief <= Fraction(rows[name].split()[0]) / 100
    without = Fraction(rows["right guesses without the release"].split()[0]) / 100
    assert without <= Risk(curve=curve, prior=prior).anyway


def test_the_picture_of_the_documentation_is_todays() -> None:
    kept = (ROOT / "docs" / "figures" / "risk.svg").read_text(encoding="utf-8")
    assert kept == dpv.Gaussian(sigma=4).risk().to_svg()


@pytest.mark.nightly
@pytest.mark.parametrize("mu", [0.05, 0.25, 1.0, 3.0])
def test_riskcal_has_the_same_numbers_on_the_safe_side(mu: float) -> None:
    """riskcal 1.5: equal within 1e-9, and never below what it says by more than its doubles."""
    analysis = pytest.importorskip("riskcal.analysis")
    risk = dpv.Gaussian.from_mu_squared(Fraction(mu) ** 2).risk()
    assert risk.advantage.upper == pytest.approx(analysis.get_advantage_from_gdp(mu), abs=1e-9)
    for prior in (0.01, 0.2, 0.5, 0.9):
        theirs = 1 - analysis.get_bayes_risk_from_gdp(mu, prior)
        ours = dpv.Gaussian.from_mu_squared(Fraction(mu) ** 2).risk(prior=prior).success
        assert ours.upper == pytest.approx(theirs, abs=1e-9)
        assert ours.upper >= theirs - 1e-14
    for rate in (1e-6, 0.001, 0.01, 0.3, 0.9):
        theirs = 1 - analysis.get_beta_from_gdp(mu, rate)
        ours_at = risk.tpr_at(rate).upper
        assert ours_at == pytest.approx(theirs, abs=1e-9)
        assert ours_at >= theirs - 1e-14


TOP = Fraction(math.log(1e30))
COIN = Fraction(1, 10**30)
LARGE = [
    dpv.ApproxDP(epsilon=TOP),
    dpv.ApproxDP(epsilon=TOP).shuffled(users=20),
    dpv.RandomizedResponse(keep=1 - COIN),
    dpv.RandomizedResponse(keep=1 - COIN, positions=3),
    dpv.curves.Staircase(epsilon=TOP, gamma="0.3"),
    5 * dpv.ApproxDP(epsilon=TOP / 5),
]


@pytest.mark.parametrize("fpr", ["1e-310", "1e-200"])
@pytest.mark.parametrize("curve", LARGE, ids=str)
def test_tiny_false_positive_rates_beside_a_large_loss(curve: dpv.PrivacyCurve, fpr: str) -> None:
    """At most e^ε times as many true ones; it was 1, as doubles have no loss's chance next to 1."""
    most = mpmath.exp(mpmath.mpf(curve.epsilon_at(0).upper)) * mpmath.mpf(fpr)
    assert mpmath.mpf(fpr) <= curve.risk().tpr_at(fpr).upper <= most * (1 + 1e-12)


def test_groups_have_a_risk_too() -> None:
    """Of what is a bound alone, and no less than where it is exact."""
    bound = GroupBound(one=dpv.Gaussian(sigma=2), size=3).risk()
    exact = dpv.Gaussian(sigma=2).group(3).risk()
    assert isinstance(dpv.Gaussian(sigma=2).group(3), dpv.Gaussian)
    assert exact.advantage.upper <= bound.advantage.upper <= 1.5 * exact.advantage.upper
    assert exact.tpr_at("0.05").upper <= bound.tpr_at("0.05").upper < 1
    assert exact.posterior_at("1e-4") <= bound.posterior_at("1e-4")
