"""What a privacy curve means to the people in the data: how well anybody can guess.

Somebody knows everything but which of two neighbouring data sets was released from: say, all
records and whether one more person's is among them. P and Q are the laws of the output, both orders
of the neighbours are possible, and H_y(P ‖ Q) = sup_S P[S] − y·Q[S] ≤ δ(ln y) for y ≥ 1. Each of
these is exact where the curve is the supremum over the pairs, and a proven bound for any claim.

**Advantage.** The true less the false positive rate of a guess is at most sup_S P[S] − Q[S] = δ(0),
the total variation distance.

**Right guesses.** If P has prior probability π ≤ 1/2, a guess of P on S is right with probability
πP[S] + (1 − π)(1 − Q[S]) = 1 − π + π·(P[S] − y·Q[S]) for y = (1 − π)/π ≥ 1, so at most
1 − π + π·δ(ln y): without the release it is 1 − π. If π > 1/2 the two change places. What is
missing to 1 is the Bayes risk.

**True positive rate** at a false positive rate: the largest that the curve allows, see
`attacker_rates`. A pair of laws reaches it where it is its own mirror image, and may else reach
less, as the curve is of both orders.

**Belief.** After an output of loss L = ln p/q, the probability of P is 1/(1 + e^{−L}(1 − π)/π). The
loss is at most ε(0) where that is finite. Otherwise, for ε′ < ε,

    δ(ε′) ≥ E[(1 − e^{ε′−L})₊] ≥ (1 − e^{ε′−ε})·P[L > ε],

so that L ≤ ε′ − ln(1 − δ(ε′)/β) but for a probability of β: any ε′ with δ(ε′) < β proves it.

**Reconstruction.** A record Z of law π is to be guessed from the output of law P_Z; R is the guess,
right if it is close enough to Z. Let Q be the law without Z's record, κ the largest probability
that one fixed guess is right, E_z the outputs whose guess is right for z. Let T(f) be the largest
true positive rate at the false positive rate f: it is concave and rises. Then

    P[R is right] = E P_Z[E_Z] ≤ E T(Q[E_Z]) ≤ T(E Q[E_Z]) ≤ T(κ),

since under Q the guess doesn't depend on Z. That is theorem 2 of Hayes, Mahloujifar and Balle 2023
(arXiv:2302.07225) with Jensen's inequality, for any prior and any rule of being close enough. For
one of M records of equal probability κ = 1/M. If neighbours replace a record, Q may be the law for
any fixed record.
"""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import ROUND_FLOOR
from fractions import Fraction
from html import escape
from typing import Any

from attrs import field, frozen
from flint import arb, ctx

from dpverify._axes import axes_or_new
from dpverify.accounting.notions.attacker_rates import trade_off
from dpverify.accounting.notions.people_figure import people, people_figure, people_sentence
from dpverify.enclosure import Enclosure, Real, enclose, exact_string, rational, rational_of, to_arb
from dpverify.errors import NumericalError, ParameterError, require
from dpverify.guarantee import PrivacyBound
from dpverify.numbers import count

__all__ = ["Risk"]

_RATES = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10))
_CANDIDATES = 10
_FAILURE = Fraction(1, 10**6)
_SHARES = tuple(Fraction(1, share) for share in (2, 4, 8, 16, 32, 64, 128))
_PRECISION = 256


def _to_prior(value: Real) -> Fraction:
    prior = rational("prior", value)
    require(0 < prior < 1, "prior", value, "in (0, 1)")
    return prior


@frozen(kw_only=True)
class Risk:
    """How well anybody can guess who knows everything else: certified, from a privacy curve.

    Parameters
    ----------
    curve : a claim that holds in both orders of the neighbours
    prior : probability, before the release, of what is to be guessed

    Examples
    --------
    >>> import dpverify as dpv
    >>> risk = dpv.Gaussian(sigma=4).risk()
    >>> print(f"{risk.advantage:.4f}, {risk.success:.4f}, {risk.tpr_at(fpr='0.01'):.4f}")
    0.0995, 0.5498, 0.0190
    >>> print(str(risk).splitlines()[0])
    Of 100 people, a guess is right for 50 without the release, and for at most 54.98 with it.
    """

    curve: PrivacyBound
    prior: Fraction = field(default=Fraction(1, 2), converter=_to_prior)

    @property
    def anyway(self) -> Fraction:
        """How often the best guess without the release is right."""
        return max(self.prior, 1 - self.prior)

    @property
    def advantage(self) -> Enclosure:
        """Encloses the largest true less false positive rate: δ(0), the total variation."""
        return self.curve.delta_at(0)

    @property
    def success(self) -> Enclosure:
        """Encloses how often the best guess with the release is right."""
        most, least = self.anyway, 1 - self.anyway
        with ctx.workprec(_PRECISION):
            ratio = (to_arb(most) / to_arb(least)).log()
            ends = [max(rational_of(end), Fraction(0)) for end in (ratio.lower(), ratio.upper())]

        def right(delta: float) -> Enclosure:
            return enclose(lambda: to_arb(most) + to_arb(least) * arb(delta))

        low = right(self.curve.delta_at(ends[1]).lower)
        high = right(self.curve.delta_at(ends[0]).upper)
        return Enclosure(low.lower, min(high.upper, 1.0))

    @property
    def bayes_risk(self) -> Enclosure:
        """Encloses how often the best guess is wrong; the lower end is the safe one."""
        success = self.success
        ends = [Enclosure.of_exact(1 - Fraction(end)) for end in (success.upper, success.lower)]
        return Enclosure(ends[0].lower, ends[1].upper, "lower")

    def tpr_at(self, fpr: Real) -> Enclosure:
        """Encloses the largest true positive rate that the curve allows at a false positive rate.

        Parameters
        ----------
        fpr : in (0, 1)
        """
        return trade_off(self.curve, fpr)

    def posterior_at(self, failure: Real = 0) -> float:
        """How sure somebody can become of what has the prior, but for a probability of `failure`.

        Parameters
        ----------
        failure : β in [0, 1) that an output shows more, whichever data set was released from

        Returns
        -------
        float
            A proven upper bound; 1 where the privacy loss is unbounded and `failure` is 0.
        """
        share = rational("failure", failure)
        require(0 <= share < 1, "failure", failure, "in [0, 1)")
        loss = self._loss(share)
        if math.isinf(loss):
            return 1.0
        odds = self.prior / (1 - self.prior)
        belief = enclose(lambda: 1 / (1 + (-arb(loss)).exp() / to_arb(odds)))
        return min(belief.upper, 1.0)

    def reconstruction_at(self, candidates: Real) -> Enclosure:
        """Bound how often somebody names the right one of so many equally probable records.

        Parameters
        ----------
        candidates : M of at least 2

        Returns
        -------
        Enclosure
            Of the true positive rate at a false positive rate of 1/M, whose upper end is proven.
        """
        number = count("candidates", candidates)
        require(number >= 2, "candidates", candidates, "at least 2")
        return self.tpr_at(Fraction(1, number))

    def _loss(self, failure: Fraction) -> float:
        """A loss that is exceeded with at most this probability."""
        losses: list[Enclosure] = []
        with suppress(ParameterError):  # the loss is unbounded
            losses.append(self.curve.epsilon_at(0))
        for share in _SHARES if failure else ():
            with suppress(ParameterError, NumericalError):  # no target is so small
                epsilon = self.curve.epsilon_at(failure * share).upper
                if not math.isinf(epsilon):
                    losses.append(_beyond(epsilon, share))
        return min((loss.upper for loss in losses), default=math.inf)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as JSON holds them."""
        return {
            "curve": self.curve.to_dict(),
            "prior": exact_string(self.prior),
            "advantage": self.advantage.as_json(),
            "success": self.success.as_json(),
            "bayes_risk": self.bayes_risk.as_json(),
            "rates": [
                {"fpr": exact_string(rate), "tpr": self.tpr_at(rate).as_json()} for rate in _RATES
            ],
            "posterior": {"failure": exact_string(_FAILURE), "upper": self.posterior_at(_FAILURE)},
            "reconstruction": {
                "candidates": _CANDIDATES,
                "success": self.reconstruction_at(_CANDIDATES).as_json(),
            },
        }

    def rows(self) -> list[tuple[str, str]]:
        """The numbers in words: rounded up, and those without the release down."""
        rows = [
            ("right guesses without the release", f"{_before(self.anyway)} of 100"),
            ("right guesses with it, at most", _of_hundred(self.success.upper)),
            ("advantage: true less false positive rate, at most", f"{self.advantage:.4g}"),
        ]
        rows += [
            (
                f"noticed with {people(rate)} % false alarms, at most",
                _of_hundred(self.tpr_at(rate).upper),
            )
            for rate in _RATES
        ]
        prior, belief = _before(self.prior), people(self.posterior_at(_FAILURE))
        return [
            *rows,
            (f"belief of {prior} % becomes, but once in a million, at most", f"{belief} %"),
            (
                f"the right one of {_CANDIDATES} records named, at most",
                _of_hundred(self.reconstruction_at(_CANDIDATES).upper),
            ),
        ]

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"{text}: {number}" for text, number in self.rows())])

    @property
    def sentence(self) -> str:
        """What the picture shows, in words."""
        return people_sentence(self.anyway, self.success.upper)

    def to_svg(self) -> str:
        """The picture of a hundred people, to stand in a page or alone."""
        return people_figure(self.anyway, self.success.upper)

    def _repr_html_(self) -> str:
        rows = (
            f'<tr><th scope="row">{escape(text)}</th><td>{escape(number)}</td></tr>'
            for text, number in self.rows()
        )
        caption = f"<caption>{escape(str(self.curve))}</caption>"
        return f"<figure>{self.to_svg()}</figure><table>{caption}{''.join(rows)}</table>"

    def to_html(self) -> str:
        """The picture and the numbers as a page that needs nothing else."""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.sentence)}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n<p>{escape(self.sentence)}</p>\n{self._repr_html_()}\n</main>\n"
            "</body>\n</html>\n"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw the true over the false positive rate, its proven upper end; returns the axes.

        Parameters
        ----------
        axes : where to draw; new ones by default
        """
        axes = axes_or_new(axes)
        rates = [Fraction(step, 24) for step in range(1, 24)]
        axes.plot([*map(float, rates), 1.0], [*(self.tpr_at(r).upper for r in rates), 1.0])
        axes.plot([0, 1], [0, 1], linestyle="--", color="#5A5A5A")
        axes.set(
            xlabel="false positive rate",
            ylabel="true positive rate, at most",
            title=str(self.curve),
        )
        return axes


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;color:#1b1b1b;margin:1rem auto;max-width:34rem;"
    "padding:0 .8rem}figure{margin:1rem 0}table{border-collapse:collapse;width:100%}"
    "caption{text-align:left;color:#5a5a5a;padding:.3rem 0}th{text-align:left;font-weight:400}"
    "th,td{border-top:1px solid #ddd;padding:.3rem .4rem;vertical-align:top}"
    "td{text-align:right;white-space:nowrap}@media print{body{margin:0}}"
)


def _beyond(epsilon: float, share: Fraction) -> Enclosure:
    """ε − ln(1 − share)."""
    return enclose(lambda: arb(epsilon) - to_arb(1 - share).log())


def _before(share: Fraction) -> str:
    """A share without the release in people of a hundred, rounded down."""
    return people(share, rounding=ROUND_FLOOR)


def _of_hundred(share: Fraction | float) -> str:
    """A share in people of a hundred, rounded up."""
    return f"{people(share)} of 100"
