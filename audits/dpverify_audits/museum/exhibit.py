"""What an exhibit is: a planted bug that is a function of data, audited as a user audits one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.settings import Omittable
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import AddRemove
from dpverify.enclosure import Real, rational
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism
from dpverify_audits.planted.bug import FoundBy, PlantedBug

__all__ = ["Exhibit", "Release", "exhibit"]

Release = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit(PlantedBug[Mechanism]):
    """A mistake in a function of data, with no pair, no event and no feature given to the audit.

    Mistakes that everybody makes (`dpverify_audits.everyday`) have neither leak nor source: the
    mistake says it all.

    Attributes
    ----------
    leak : what an attacker learns, in one sentence
    source : who found it, and where that was published
    without : what its audit leaves out; nothing where the low bits of doubles are the leak
    why : why it needs more than the usual draws, or isn't found; else empty
    """

    leak: str = ""
    source: str = ""
    without: tuple[Omittable, ...] = ("precision-of-doubles",)
    why: str = ""


def exhibit(  # noqa: PLR0913 - a keyword for each word of a claim
    name: str,
    mistake: str,
    leak: str = "",
    *,
    broken: Release,
    correct: Release,
    source: str = "",
    domain: Any = None,
    adjacency: Any = AddRemove(),  # noqa: B008 - frozen
    epsilon: Real = 1,
    delta: Real = 0,
    curve: PrivacyCurve | None = None,
    of: Any = None,
    attributes: int | None = None,
    found_by: tuple[FoundBy, ...] = ("black-box",),
    draws: int = 10_000,
    why: str = "",
    without: tuple[Omittable, ...] = ("precision-of-doubles",),
) -> Exhibit:
    """An exhibit of two functions that make one claim: (ε, δ), or a whole curve."""
    claim = curve or ApproxDP(epsilon=rational("epsilon", epsilon), delta=rational("delta", delta))
    words: dict[str, Any] = {
        "adjacency": adjacency,
        "domain": domain,
        "of": of,
        "attributes": attributes,
    }

    def made(function: Release, called: str) -> Mechanism:
        return adapt(function, claim=claim, name=called, **words)

    return Exhibit(
        name=name,
        mistake=mistake,
        leak=leak,
        source=source,
        twin=partial(made, correct, f"{name}, corrected"),
        plant=lambda _: made(broken, name),
        found_by=found_by,
        draws=draws,
        without=without,
        why=why,
    )
