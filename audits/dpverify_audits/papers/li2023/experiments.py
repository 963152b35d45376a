"""Sections 5 and 6.3: the experiments, most of which no ledger can repeat."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from dpverify.ledger.checks import equals
from dpverify.ledger.statements import Statement

__all__ = ["CLAIMS"]

_NO_DATA = "the data set isn't part of this project, and the figure gives no numbers to compare"


def _retrieved(found: int, gold: int, total: int) -> Iterator[int]:
    """True positives of every set of `found` items where the first `gold` of `total` are right."""
    for chosen in combinations(range(total), found):
        yield sum(item < gold for item in chosen)


def _mean_precision(found: int, gold: int, total: int) -> Fraction:
    hits = list(_retrieved(found, gold, total))
    return sum((Fraction(hit, found) for hit in hits), Fraction(0)) / len(hits)


def _unrepeated(name: str, where: str, text: str, reason: str = _NO_DATA) -> Statement:
    return Statement(id=f"li2023.{name}", where=where, text=text, reason=reason)


CLAIMS: tuple[Statement, ...] = (
    _unrepeated(
        "names",
        "sections 3.1, 3.5 and 6.2; caption of figure 8",
        "Theorem 6.2 is of “Algorithm 6”; section 3.5 names “DP-SignRP (see Section 3.3)”; "
        "figure 8 "
        "is “same as in Figure 8”; section 3.1 has W of d × k.",
        "names that should be others, where nothing can be tried: algorithm 11, also in the proof "
        "and above the theorem; DP-RP, of which section 3.3 is; figure 7; p × k, as in algorithm 1",
    ),
    Statement(
        id="li2023.section-5.1.metrics",
        where="section 5.1, precision and recall",
        text="recall@R · (gold-standard neighbours) = precision@R · R; means for random sets.",
        printed=lambda found, gold, total: Fraction(found, total),
        check=equals(
            _mean_precision,
            [(2, 3, 6), (4, 2, 7)],
            "enumeration",
            of=lambda recall: lambda found, gold, total: recall(found, gold, total) * gold / found,
        ),
        reason="a random set of R items of n has a recall of R/n in the mean",
    ),
    _unrepeated(
        "section-5.1.mnist",
        "section 5.1, figures 10 and 11",
        "DP-OPORP and DP-RP-G-OPT-B retrieve more than DP-RP-G-OPT, that more than DP-RP-G.",
        "read off figures; our sample of MNIST is a twelfth of theirs. Remark 3.1 and theorems 3.9 "
        "and 3.10 say why",
    ),
    _unrepeated(
        "section-5.2.webspam",
        "section 5.2, figure 12",
        "Support vector machines on WEBSPAM rank the methods in the same order.",
    ),
    _unrepeated(
        "section-5.3.retrieval",
        "section 5.3, figure 13",
        "DP-SignOPORP retrieves more than DP-OPORP for ε below 10 to 15.",
        "read off a figure without numbers",
    ),
    _unrepeated(
        "section-5.3.accuracy",
        "section 5.3, below figure 14",
        "At ε of about 5 and k = 1024 accuracy is 95 %, with noise on the raw data about 60 %.",
    ),
    _unrepeated(
        "section-6.3.utility",
        "section 6.3; abstract; section 7",
        "iDP-SignRP retrieves well even for ε below 0.1.",
        "read off figures 15 and 16 without numbers; its ε is that of theorems 6.1 and 6.2, which "
        "hold for a noise set that is held at one record’s",
    ),
    _unrepeated(
        "theorem-4.6.limit",
        "section 4.1.2, theorem 4.6 and its proof",
        "√k·(estimated angle − θ) is normal of variance V_RR in the limit.",
        "a limit; the mean and variance are exact for every k and are checked",
    ),
)
