"""Accountants.

No noise in this room, and no data: functions that say what ε is. Each is held against a proven
enclosure of the truth, so that one number is enough, and no doubt is left. Those that say too
little are as good as no proof; those that say too much spend somebody's budget on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.auditing.accountants import AccountantReport, CellVerdict, Solves, audit_accountant
from dpverify.guarantee import PrivacyCurve
from dpverify_audits.museum.formulas import (
    advanced,
    amplified,
    answers_curve,
    bit,
    central_limit,
    classical,
    concentrated,
    documented,
    epochs,
    exact,
    flipped_curve,
    fractional_orders,
    odometer,
    permuted,
    promised,
    renyi,
    sampled_curve,
    sampled_delta,
    trained_curve,
    transformed,
    unclamped,
    weighted,
)

__all__ = ["EXHIBITS", "NAME", "AccountantExhibit"]

NAME = "Accountants"
_ROUNDING = Fraction(1, 10**9)
"""Doubles may miss the truth by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantExhibit:
    """A function that computes ε or δ, and computes it wrongly.

    Attributes
    ----------
    name, mistake, source : as of other exhibits
    leak : what follows from it, in one sentence
    broken, correct : the function, and the corrected one
    grid, curve, solves : what both are asked, and what is true: see `audit_accountant`
    shown : the verdict on its worst claim: most are unsafe, some loose, and one is none
    """

    name: str
    mistake: str
    leak: str
    source: str
    broken: Callable[..., Any]
    correct: Callable[..., Any]
    grid: Mapping[str, Sequence[Any]]
    curve: Callable[..., PrivacyCurve]
    solves: Solves = "epsilon"
    shown: CellVerdict = "unsafe"

    def held(self, *, broken: bool) -> AccountantReport:
        """The function, or the corrected one, held against the truth."""
        return audit_accountant(
            self.broken if broken else self.correct,
            self.grid,
            curve=self.curve,
            solves=self.solves,
            tolerance=_ROUNDING,
            name=self.name if broken else f"{self.name}, corrected",
        )

    def audited(self, *, alpha: float) -> AccountantReport:
        """For the command line; no level is needed."""
        return self.held(broken=True)


_SMALL, _TINY = 1e-5, 1e-18


def _exhibits() -> tuple[AccountantExhibit, ...]:
    return (
        AccountantExhibit(
            name="The central limit",
            mistake="The privacy loss of many steps is taken for normal, as it is in the limit.",
            leak="The limit isn't reached in the tail, where δ is.",
            source="Opacus, GDP accountant, issue 384 and pull request 400; Gopi, Lee and "
            "Wutschitz, NeurIPS 2021 (arXiv:2106.02848)",
            broken=central_limit,
            correct=renyi,
            grid={"sigma": [0.6, 0.8], "rate": [0.01], "steps": [100, 1000], "delta": [_SMALL]},
            curve=sampled_curve,
        ),
        AccountantExhibit(
            name="A series that ends before it begins",
            mistake="The sum over i stops at a term below e^−30, and the first term may be one.",
            leak="At q = 0.4 and order 59 the largest terms come in the middle, and aren't added.",
            source="dp_accounting before September 2024, fractional Rényi orders; "
            "google/differential-privacy commit 6f7deb3",
            broken=partial(fractional_orders, absolute=True),
            correct=partial(fractional_orders, absolute=False),
            grid={"sigma": [12.0], "rate": [0.4], "steps": [10, 1000], "delta": [_SMALL]},
            curve=sampled_curve,
        ),
        AccountantExhibit(
            name="One direction for both",
            mistake="The two directions of a pair differ, and one is taken for both.",
            leak="A record that is added shows less than one that is removed.",
            source="dp_accounting before October 2024, PLDs of two mass functions; "
            "google/differential-privacy commit 0e99a6f",
            broken=partial(sampled_delta, both=False),
            correct=partial(sampled_delta, both=True),
            grid={"sigma": [1.0, 4.0], "rate": [0.1], "epsilon": [0.05, 0.5]},
            curve=lambda sigma, rate: Gaussian(sigma=sigma).poisson_sampled(rate=rate),
            solves="delta",
        ),
        AccountantExhibit(
            name="δ below the last digit of a transform",
            mistake="Probabilities come out of a fast Fourier transform with errors of 10⁻¹⁷.",
            leak="A smaller δ is noise, of either sign, and any ε may seem to do.",
            source="prv_accountant, issue 17",
            broken=transformed,
            correct=lambda sigma, steps, delta: exact(sigma, delta, steps),
            grid={"sigma": [10.0], "steps": [1000], "delta": [1e-15, _TINY]},
            curve=lambda sigma, steps: steps * Gaussian(sigma=sigma),
        ),
        AccountantExhibit(
            name="√(1/δ) for √ln(1/δ)",
            mistake="The logarithm is missing in the formula of optimal composition.",
            leak="The budget is spent long before it is used: nobody leaks, and nobody answers.",
            source="SmartNoise SDK, odometer; issue 621",
            broken=partial(odometer, log=False),
            correct=partial(odometer, log=True),
            grid={"epsilon": [0.01], "queries": [1000], "delta": [_SMALL]},
            curve=answers_curve,
            shown="loose",
        ),
        AccountantExhibit(
            name="Less noise, less spent",
            mistake="σ stands where its inverse belongs.",
            leak="Whoever asks for no noise at all pays nothing.",
            source="PySyft 0.7; issue 6914 (our reconstruction of its effect)",
            broken=partial(concentrated, inverse=False),
            correct=partial(concentrated, inverse=True),
            grid={"sigma": [0.01, 1.0, 100.0], "delta": [_SMALL]},
            curve=lambda sigma: Gaussian(sigma=sigma),
        ),
        AccountantExhibit(
            name="A sign in the analytic Gaussian",
            mistake="A root is subtracted where it should be added, and σ is too small.",
            leak="For (1, 10⁻⁵) it asks for σ = 0.134, and 3.73 is needed.",
            source="SmartNoise Core; issue 316",
            broken=partial(promised, sign=-1),
            correct=partial(promised, sign=1),
            grid={"sigma": [0.5, 1.0, 2.0], "delta": [_SMALL]},
            curve=lambda sigma: Gaussian(sigma=sigma),
        ),
        AccountantExhibit(
            name="The textbook's σ above ε = 1",
            mistake="σ = √(2 ln(1.25/δ))/ε is proved for ε below 1, and used for any.",
            leak="At σ = 0.2 it promises 24 where 33 is true.",
            source="programming-dp, issue 45; SmartNoise SDK, issue 462; Balle and Wang, ICML 2018 "
            "(arXiv:1805.06530), theorem 4",
            broken=classical,
            correct=exact,
            grid={"sigma": [0.05, 0.2, 8.0], "delta": [_SMALL]},
            curve=lambda sigma: Gaussian(sigma=sigma),
        ),
        AccountantExhibit(
            name="Half of advanced composition",
            mistake="The term that grows like k is left out, and the other one doubled.",
            leak="500 answers of ε = 1 seem to cost 215.",
            source="programming-dp, issue 56",
            broken=partial(advanced, whole=False),
            correct=partial(advanced, whole=True),
            grid={"epsilon": [1], "queries": [50, 500], "delta": [_SMALL]},
            curve=answers_curve,
        ),
        AccountantExhibit(
            name="The last batch doesn't count",
            mistake="Steps of an epoch are rounded down; the last, smaller batch is a step too.",
            leak="With 1,000 rows and batches of 600, half of the steps aren't paid.",
            source="Opacus, compute_dp_sgd_privacy; issue 19",
            broken=partial(epochs, last=False),
            correct=partial(epochs, last=True),
            grid={
                "sigma": [8.0],
                "rows": [1000],
                "batch": [600],
                "epochs": [10],
                "delta": [_SMALL],
            },
            curve=trained_curve,
        ),
        AccountantExhibit(
            name="A fixed batch, accounted as Poisson",
            mistake="A batch of so many rows, drawn without replacement, is accounted as coins.",
            leak="Whoever comes in pushes another one out, and the sum moves by twice as much.",
            source="Lebeda, Regehr, Kamath and Steinke, 2024 (arXiv:2405.20769); warned of in "
            "autodp, issue 3",
            broken=renyi,
            correct=lambda sigma, rate, steps, delta: renyi(sigma / 2, rate, steps, delta),
            grid={"sigma": [2.0], "rate": [0.05], "steps": [200], "delta": [_SMALL]},
            curve=lambda sigma, rate, steps: sampled_curve(sigma / 2, rate, steps),
        ),
        AccountantExhibit(
            name="A microbatch counts double",
            mistake="A microbatch's mean is clipped to 1, and one row is said to move it by 1.",
            leak="It turns the mean round: from one end to the other it is 2.",
            source="tensorflow-privacy, compute_dp_sgd_privacy, issue 620; Ponomareva and others, "
            "JAIR 2023 (arXiv:2303.00654), section 5.6",
            broken=exact,
            correct=lambda sigma, delta: exact(sigma / 2, delta),
            grid={"sigma": [1.0, 4.0], "delta": [_SMALL]},
            curve=lambda sigma: Gaussian(sigma=sigma / 2),
        ),
        AccountantExhibit(
            name="One sample, amplified again and again",
            mistake="Answers on one sample are each amplified as if each had a sample of its own.",
            leak="Who is in the sample is in it for every answer.",
            source="OpenDP, make_population_amplification; issue 2933",
            broken=partial(amplified, again=True),
            correct=partial(amplified, again=False),
            grid={"epsilon": [1], "rate": [0.1], "queries": [2, 10]},
            curve=lambda epsilon, rate, queries: (
                queries * Laplace(scale=1 / epsilon)
            ).poisson_sampled(rate=rate),
        ),
        AccountantExhibit(
            name="The rate of the sampler",
            mistake="The sampling rate is the batch's share of what a sampler draws in an epoch.",
            leak="500 are drawn of 10,000: a rate twenty times too large, and the budget is gone "
            "after an epoch.",
            source="Opacus, WeightedRandomSampler; issue 813, where 128 were drawn of 100,000",
            broken=partial(weighted, of="drawn"),
            correct=partial(weighted, of="rows"),
            grid={
                "sigma": [1.0],
                "rows": [10_000],
                "drawn": [500],
                "batch": [100],
                "steps": [100],
                "delta": [_SMALL],
            },
            curve=lambda sigma, rows, drawn, batch, steps: sampled_curve(
                sigma, Fraction(batch, rows), steps
            ),
            shown="loose",
        ),
        AccountantExhibit(
            name="A negative ε",
            mistake="The conversion of a Rényi bound isn't cut off at 0.",
            leak="A budget that is charged with it grows.",
            source="Opacus, issue 585 and pull request 844",
            broken=unclamped,
            correct=lambda sigma, delta: max(0.0, unclamped(sigma, delta)),
            grid={"sigma": [10.0], "delta": [0.5]},
            curve=lambda sigma: Gaussian(sigma=sigma),
            shown="failed",
        ),
        AccountantExhibit(
            name="A lie that may be true",
            mistake="With probability 1 − p a coin is told instead, and the coin may be the truth.",
            leak="At p = 3/4 the truth is told in 15 of 16 cases where 3 of 4 are accounted.",
            source="OpenDP, make_randomized_response_bool; issue 480",
            broken=partial(bit, lie=1.0),
            correct=lambda p: bit(p, lie=1 - p),
            grid={"p": [0.5, 0.75]},
            curve=lambda p: RandomizedResponse(keep=1 - (1 - Fraction(p)) ** 2),
        ),
        AccountantExhibit(
            name="Laplace(ε) for Laplace(1/ε)",
            mistake="The documentation has the scale upside down.",
            leak="Whoever wants more privacy, and reads it, gets less.",
            source="WICG attribution-reporting-api; issue 1329",
            broken=partial(documented, inverse=False),
            correct=partial(documented, inverse=True),
            grid={"scale": [0.125, 1.0, 8.0]},
            curve=lambda scale: Laplace(scale=scale),
        ),
        AccountantExhibit(
            name="ρ = ε²/8 for permute-and-flip",
            mistake="The exponential mechanism's bound is claimed for another selection.",
            leak="Its loss isn't spread over a range of ε, and costs up to four times as much.",
            source="OpenDP before 0.16; issue 2911",
            broken=partial(permuted, eighth=True),
            correct=partial(permuted, eighth=False),
            grid={"epsilon": [0.25], "times": [1000], "delta": [_SMALL]},
            curve=flipped_curve,
        ),
    )


EXHIBITS: tuple[AccountantExhibit, ...] = _exhibits()
