"""Several releases about the same people: their total guarantee, by the exact privacy losses.

If for each release one pair of laws dominates all neighbouring pairs, the product of the pairs
dominates the joint release, also where later mechanisms are chosen by earlier outputs (Zhu, Dong
and Wang 2022, arXiv:2106.08567, adaptive composition). Every curve of this package knows its pair's
loss, and losses of independent noise add, so that the total is the curve of a sum: `Composed`.

**In one order.** Some pairs aren't mirror images: that of a Poisson sample with a record and
without it, or of a graph with a heavier edge. A record that one table gains as another one loses it
is behind the first law in one release and behind the second in the other, and the sum may be too
low. That it doesn't is assumed, and stated as an assumption where two such releases are composed.

**Shared draws.** A guarantee over the draw of a public projection or hash averages over it. Two
releases that use the same draw are independent given the draw, not on average: where the draw is
unlucky both lose more. So their losses are composed for each position of the draw first and then
averaged (`PositionLoss`). That takes the same positions to differ in both: it is so for the very
same records, which only those who released them know, and not for other records of the same people.
Draws from one source of random words that aren't the same overlap (the first 99 of 100 hash
functions are 99 hash functions), and nothing is proven of them. Releases with draws from different
sources multiply, as do those whose guarantee holds for every realised projection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload, runtime_checkable

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.data.adjacency import Adjacency
from dpverify.errors import ParameterError
from dpverify.guarantee import (
    Draw,
    Guarantee,
    OnADraw,
    PrivacyBound,
    PrivacyCurve,
    common_adjacency,
)

__all__ = ["THEOREM", "Claims", "Release", "compose", "grouped", "guarantee_of"]

THEOREM = (
    "Zhu, Dong and Wang 2022 (arXiv:2106.08567), adaptive composition of dominating pairs, on the "
    "exact privacy losses"
)
_ONE_ORDER = (
    "what adds to the records of one release takes nothing from those of another, where the order "
    "of neighbours matters: on samples, in graphs, and for pairs that aren't mirror images"
)


@runtime_checkable
class Claims(Protocol):
    """A mechanism, as far as composition is concerned."""

    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""
        ...


@runtime_checkable
class _Curved(Protocol):
    """A mechanism that claims a curve, and says no more of it."""

    @property
    def adjacency(self) -> Adjacency:
        """Whom the claim protects."""
        ...

    def privacy(self) -> PrivacyCurve:
        """The claim."""
        ...


Release = PrivacyCurve | Guarantee | Claims | _Curved
"""What composes: a curve, a guarantee, or what has one, as mechanisms and certificates do."""


@overload
def compose(*releases: PrivacyCurve) -> PrivacyCurve: ...  # type: ignore[overload-overlap]  # curves alone
@overload
def compose(*releases: Release, same_records: bool = False) -> Guarantee: ...
def compose(*releases: Release, same_records: bool = False) -> PrivacyCurve | Guarantee:
    """What all releases guarantee together, for the same people and the same adjacency.

    Parameters
    ----------
    releases : one for each release: guarantees, mechanisms, certificates, or curves; a mechanism
        that releases twice is named twice. Among others a curve has to say whom it protects, and a
        published (ε, δ) is the curve `ApproxDP`. Certificates aren't verified here
    same_records : your word that releases which share a public draw are of the very same records;
        without it they don't compose. It is asked for nowhere else.

    Returns
    -------
    Guarantee, or PrivacyCurve for curves
        The curve is exact where the parts' curves are; `curve.method` says how it is computed, and
        `parts` are the releases'.

    Raises
    ------
    ParameterError
        If there is no release, the adjacencies differ, a part is a weaker notion than differential
        privacy or has no privacy loss that is known, parts share a draw and `same_records` isn't
        stated, or they have draws that overlap in a way that isn't known to compose.

    Examples
    --------
    >>> import dpverify as dpv
    >>> total = dpv.compose(10 * dpv.Gaussian(sigma=4), dpv.Laplace(scale=2))
    >>> round(total.epsilon_at(delta=1e-6).upper, 4)
    4.1423
    """
    if not releases:
        raise ParameterError("releases", "none", "at least one")
    curves = [release for release in releases if isinstance(release, PrivacyCurve)]
    if len(curves) == len(releases):
        return Composed.of(curves)
    parts = tuple(_flat(releases))
    adjacency = common_adjacency([part.adjacency for part in parts])
    for part in parts:
        if part.notion != "differential privacy":
            raise ParameterError(
                "notion", part.notion, "differential privacy", "No composition is proven for it."
            )
    _check_draws(parts, same_records=same_records)
    return Guarantee(
        curve=Composed(
            losses=tuple(pair for group in grouped(parts) for pair in group),
            drawn=any(part.over_the_draw for part in parts),
            is_bound=any(part.curve.is_bound for part in parts),
        ),
        adjacency=adjacency,
        randomness="; ".join(dict.fromkeys(part.randomness for part in parts)),
        data_choice=_strictest(parts),
        theorem="; ".join(dict.fromkeys([THEOREM, *(part.theorem for part in parts)])),
        assumptions=(
            *dict.fromkeys(a for part in parts for a in part.assumptions),
            *([_ONE_ORDER] if sum(_ordered(part.curve) for part in parts) > 1 else []),
        ),
        draws=tuple(dict.fromkeys(draw for part in parts for draw in part.draws)),
        given=tuple(dict.fromkeys(source for part in parts for source in part.given)),
        parts=parts,
        statements=tuple(dict.fromkeys(claim for part in parts for claim in part.statements)),
    )


def _flat(releases: Iterable[Release]) -> Iterator[Guarantee]:
    for release in releases:
        guarantee = release if isinstance(release, Guarantee) else guarantee_of(release)
        yield from guarantee.parts or (guarantee,)


def guarantee_of(release: Release) -> Guarantee:
    """The guarantee of a release, or one that says that its curve alone was stated."""
    if isinstance(release, Guarantee):
        return release
    if isinstance(release, Claims):
        return release.guarantee()
    curve = release.privacy() if isinstance(release, _Curved) else release
    if not isinstance(curve, PrivacyCurve):
        hint = "A published (epsilon, delta) is dpverify.ApproxDP(epsilon=…, delta=…)."
        if isinstance(curve, PrivacyBound):
            hint = (
                "No pair of laws is known that a bound stands for: its own class adds bounds up, "
                "and groups are of a sum: (one + other).group(size)."
            )
        rule = "a curve, a guarantee, a mechanism or a certificate"
        raise ParameterError("release", release, rule, hint)
    adjacency = release.adjacency
    if adjacency is None:
        raise ParameterError(
            "release",
            curve,
            "a curve with the adjacency of the other releases, which are guarantees",
            f"Say whom it protects: {type(curve).__name__}(…, adjacency=…).",
        )
    return Guarantee(
        curve=curve,
        adjacency=adjacency,
        randomness=f"that of a release of which {curve} was stated",
        data_choice="as for the release of which the curve was stated",
        theorem=f"stated, not derived: {curve}",
        assumptions=(
            f"a release keeps to the curve that was stated for it, {curve}, whatever the other "
            "releases showed before it",
        ),
    )


def _ordered(curve: PrivacyCurve) -> bool:
    """Whether its two orders have different losses."""
    return any(loss != loss.reverse() for loss, _ in curve.losses())


def _strictest(parts: Sequence[Guarantee]) -> str:
    """What is assumed of the data's choice: that of a draw, where one is averaged over."""
    drawn = [part.data_choice for part in parts if part.over_the_draw]
    return "; ".join(dict.fromkeys(drawn or [part.data_choice for part in parts]))


def _check_draws(parts: Sequence[Guarantee], *, same_records: bool) -> None:
    """Refuse public draws of which no composition is proven, or on a word that wasn't given."""
    again = "Release one again with a seed of its own."
    first: dict[str, tuple[int, Guarantee]] = {}
    for number, part in enumerate(parts, start=1):
        for source in {draw.source for draw in part.draws}:
            earlier, user = first.setdefault(source, (number, part))
            both = f"releases {earlier} and {number}"
            if part.draws != user.draws:
                rule = f"the source of one draw: {both} make different draws from it, which overlap"
                raise ParameterError("draws", source, rule, again)
            if number > earlier and not same_records:
                raise ParameterError(
                    "same_records",
                    same_records,
                    f"stated, because {both} share the public draw of {source}",
                    "On one draw they are not independent, and no composition is proven for "
                    "different records. If both are of the very same records, state it: "
                    f"same_records=True, on the command line --same-records. {again}",
                )
    for number, part in enumerate(parts, start=1):
        for source in part.given:
            if source in first:
                both = f"releases {first[source][0]} and {number}"
                rule = f"either averaged over or realised, and {both} differ in that"
                raise ParameterError("draws", source, rule, again)


def grouped(parts: Sequence[Guarantee]) -> Iterator[Losses]:
    """The losses of groups of releases that are independent of each other.

    Every release is a group, but those on one public draw are one together.
    """
    shared: dict[tuple[Draw, ...], list[Guarantee]] = {}
    for part in parts:
        if not part.draws:
            yield part.curve.losses()
        else:
            shared.setdefault(part.draws, []).append(part)
    for draws, users in shared.items():
        if len(users) == 1:
            yield users[0].curve.losses()
        else:
            yield (_on_one_draw(draws, [user.curve for user in users]),)


def _on_one_draw(
    draws: tuple[Draw, ...], curves: Sequence[PrivacyCurve]
) -> tuple[PositionLoss, int]:
    """One loss a position: what all releases lose there together, if it differs."""
    found = [curve.position_loss() for curve in curves if isinstance(curve, OnADraw)]
    counts = {count for _, count in found}
    if len(found) < len(curves) or len(counts) > 1:
        raise ParameterError(
            "draws",
            ", ".join(draw.source for draw in draws),
            "used once, or by releases of one kind with equally many positions",
            "Guarantees for what was realised compose without this.",
        )
    # A position differs for all or for none. δ(ε) rises with the probability that it does.
    return PositionLoss(
        differ=max(loss.differ for loss, _ in found),
        losses=tuple(inner for loss, _ in found for inner in loss.losses),
    ), counts.pop()
