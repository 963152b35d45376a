"""Randomized response on survey answers, each one of several choices.

Every answer is kept with probability k and replaced by each other choice with probability
o = (1 − k)/(c − 1), by a coin and a die of its own. Where two people's answers differ, the loss is
at most ln(k/o), and answers that agree lose nothing: the curve is dpverify's, exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import (
    RandomizedResponse,
    keep_probability_curve,
)
from dpverify.data.adjacency import Attribute, Record
from dpverify.data.domain import Box, as_rows
from dpverify.enclosure import Enclosure
from dpverify.errors import RecordsError, require
from dpverify.guarantee import Guarantee
from dpverify.privacy import Certifiable, Estimator, Exhaustive, Pair
from dpverify.sampling.coins import flips, uniform_below
from dpverify.sampling.words import Words, release_words

_COIN = 2**64  # a coin's probability is a whole number of these parts


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyAnswers(Certifiable, Exhaustive):
    """Release of answers, each kept with probability `keep` or replaced by another choice.

    Parameters
    ----------
    questions : p, answers of a person
    choices : c ≥ 2; an answer is a whole number from 0 to c − 1
    keep : k, a whole number of 2⁻⁶⁴ of at least 1/c
    adjacency : one answer changes, or all of a person's answers do
    outside : what is done with values outside the choices, "refuse" or "clip"
    """

    questions: int
    choices: int
    keep: Fraction
    adjacency: Attribute | Record
    outside: Literal["refuse", "clip"] = "refuse"

    def __post_init__(self) -> None:
        require(self.choices >= 2, "choices", self.choices, "at least 2")
        whole = (self.keep * _COIN).denominator == 1
        require(whole and self.keep < 1, "keep", self.keep, "a whole number of 2**-64, below 1")

    @classmethod
    def calibrated(
        cls,
        *,
        questions: int,
        choices: int,
        epsilon: Fraction,
        delta: Fraction,
        adjacency: Attribute | Record,
        outside: Literal["refuse", "clip"] = "refuse",
    ) -> Self:
        """The mechanism that keeps as many answers as (ε, δ) allows; δ may be 0."""
        positions = questions if isinstance(adjacency, Record) else 1
        keep = keep_probability_curve(epsilon, delta, positions=positions, values=choices)
        return cls(
            questions=questions, choices=choices, keep=keep, adjacency=adjacency, outside=outside
        )

    @property
    def name(self) -> str:
        """What reports call it: audits of several need names that tell them apart."""
        return f"survey-answers, {self.adjacency.unit}"

    # The claim

    @property
    def p(self) -> int:
        """Number of questions."""
        return self.questions

    @property
    def domain(self) -> Box:
        """All choices."""
        return Box(low=Fraction(0), high=Fraction(self.choices - 1), outside=self.outside)

    @property
    def other(self) -> Fraction:
        """Probability of each particular other choice."""
        return (1 - self.keep) / (self.choices - 1)

    def privacy(self) -> RandomizedResponse:
        """Exact curve."""
        everything = isinstance(self.adjacency, Record)
        return RandomizedResponse(
            keep=self.keep, other=self.other, positions=self.questions if everything else 1
        )

    def guarantee(self) -> Guarantee:
        return Guarantee(
            curve=self.privacy(),
            adjacency=self.adjacency,
            randomness="the coins and dice of the answers, all of them secret",
            data_choice="at any time: nothing is drawn before the data",
            theorem="independent losses of 0 or ±ln(keep/other), one for each answer that differs",
        )

    def facts(self) -> Mapping[str, Any]:
        return {
            "coins": {
                "choices": self.choices,
                "keep_numerator": str(self.keep * _COIN),
                "keep": Enclosure.of_exact(self.keep),
                "loss_of_one_answer": self.privacy().loss(),
            }
        }

    # The release

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[np.int64]:
        """Answers of shape (n, questions), of which some are replaced."""
        rng, answers = release_words(rng), self._answers(records)
        kept = flips(int(self.keep * _COIN), answers.shape, rng=rng)
        # The other choices in a circle from the true one, so that each is as likely.
        turned = 1 + uniform_below(self.choices - 1, answers.shape, rng=rng)
        return np.where(kept, answers, (answers + turned) % self.choices)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.questions

    def dtype(self) -> np.dtype[np.int64]:
        return np.dtype(np.int64)

    def possible(self, released: NDArray[np.int64]) -> bool:
        """Whether all are answers: dpverify looks for nothing else in a released file."""
        return bool(((released >= 0) & (released < self.choices)).all())

    def _answers(self, records: Any) -> NDArray[np.int64]:
        admitted = self.domain.admit(as_rows(records), attributes=self.questions)
        if not np.all(admitted == np.floor(admitted)):
            raise RecordsError(f"answers must be whole numbers from 0 to {self.choices - 1}.")
        return np.asarray(admitted, dtype=np.int64)

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        first, second = (self._answers(data) for data in (record, neighbour))
        differs = first != second
        own = ((outputs == first) & differs).sum(axis=(1, 2))
        other = ((outputs == second) & differs).sum(axis=(1, 2))
        return np.asarray((own - other) * self.privacy().loss().upper)

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbours that differ in as many answers as the adjacency allows."""
        first, last = np.zeros((1, self.questions)), np.zeros((1, self.questions))
        if isinstance(self.adjacency, Record):
            last[:] = self.choices - 1
            return [Pair(name="first choices or last choices", record=first, neighbour=last)]
        last[0, 0] = min(int(self.adjacency.beta), self.choices - 1)
        return [Pair(name="one answer changes", record=first, neighbour=last)]

    def distribution(self, record: Any) -> Mapping[tuple[int, ...], Fraction]:
        """Exact probability of every release of one person's answers."""
        (answers,) = self._answers(record).tolist()
        return {
            output: prod(
                (
                    self.keep if one == answer else self.other
                    for one, answer in zip(output, answers, strict=True)
                ),
                start=Fraction(1),
            )
            for output in product(range(self.choices), repeat=self.questions)
        }

    # Utility

    def estimators(self) -> Sequence[Estimator]:
        """In how many answers two people agree."""
        return (Agreement(mechanism=self),)

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic people who agree in nothing, a little, …, everything."""
        base = uniform_below(self.choices, (self.questions,), rng=rng)
        moved = [np.arange(self.questions) < count for count in range(self.questions, -1, -1)]
        return [
            Pair(
                name=f"synthetic {number}",
                record=base[None].astype(float),
                neighbour=((base + move) % self.choices)[None].astype(float),
            )
            for number, move in enumerate(moved, start=1)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Estimator):
    """Unbiased estimate of the number of answers in which two people agree.

    Answers that agree still do with probability a = k² + (c − 1)o², answers that differ come to
    agree with probability b = 2ko + (c − 2)o². So of the number A of answers that agree after the
    release, (A − pb)/(a − b) is unbiased, with the variance of independent coins.
    """

    name: ClassVar[str] = "agreement"

    mechanism: SurveyAnswers

    def _agree(self) -> tuple[Fraction, Fraction]:
        k, o, c = self.mechanism.keep, self.mechanism.other, self.mechanism.choices
        return k * k + (c - 1) * o * o, 2 * k * o + (c - 2) * o * o

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Estimates from released rows of shapes (…, questions)."""
        same, different = self._agree()
        found = (first == second).sum(axis=-1) - float(self.mechanism.questions * different)
        return np.asarray(found / float(same - different))

    def truth(self, record: Any, other: Any) -> float:
        """The number of answers in which both agree."""
        return float((np.asarray(record) == np.asarray(other)).sum())

    def variance(self, record: Any, other: Any) -> float:
        """Over the coins and dice."""
        same, different = self._agree()
        agree = int(self.truth(record, other))
        coins = agree * same * (1 - same)
        coins += (self.mechanism.questions - agree) * different * (1 - different)
        return float(coins / (same - different) ** 2)
