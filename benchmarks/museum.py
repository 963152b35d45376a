"""Published and everyday bugs of functions of data, audited; prints ``docs/museum.md``.

Each is audited as a user would, with the level of the profile ci: nothing but the function, its
claim and what its data are made of is given. A bug gets 2,000 draws on each side, and as many as
its exhibit says (10,000 by default, those of ci) where these don't find it; its twin gets 2,000,
and with ``--seeds`` other seeds beside. What is done is kept in ``out/museum.jsonl``, from which an
interrupted run goes on. ``--picture docs/museum.svg`` draws the accountants' claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.kept import Kept
from benchmarks.wings import accountants_room, auditors_room, picture
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.config import fitting_delta
from dpverify.auditing.formatting import number
from dpverify.auditing.settings import PROFILES
from dpverify.guarantee import claimed_epsilon
from dpverify_audits.everyday import SUITE as EVERYDAY
from dpverify_audits.museum import ABSENT, ROOMS, SUITE, Exhibit
from dpverify_audits.museum import EXHIBITS as MUSEUM

__all__ = ["FEW", "LEVEL", "measure", "measured", "page"]

Told = Mapping[str, dict[str, Any]]
"""What audits said, by their keys."""

FEW = 2_000
"""Draws on each side that are tried first."""
LEVEL = PROFILES["ci"].alpha


def measured(exhibit: Exhibit, broken: bool, draws: int, seed: int) -> dict[str, Any]:
    """What one audit says, and its seconds of processor time."""
    start = process_time()
    mechanism = exhibit.broken() if broken else exhibit.twin()
    report = audit(
        mechanism, alpha=LEVEL, draws=draws, seed=seed, workers=1, without=exhibit.without
    )
    return {
        "verdict": report.verdict,
        "epsilon": report.epsilon_lower,
        "kinds": sorted({finding.audit for finding in report.violations}),
        "seconds": process_time() - start,
    }


def _key(exhibit: Exhibit, *, broken: bool, draws: int = FEW, seed: int = 1) -> str:
    return f"{exhibit.name}/{'broken' if broken else 'twin'}/{draws}" + f"/{seed}" * (seed > 1)


def measure(kept: Kept, exhibits: Sequence[Exhibit], seeds: int) -> None:
    """Audit what hasn't been: all bugs with few draws, their twins, then what was not found."""

    def told(exhibit: Exhibit, *, broken: bool, draws: int = FEW, seed: int = 1) -> dict[str, Any]:
        key = _key(exhibit, broken=broken, draws=draws, seed=seed)
        result: dict[str, Any] = kept.get(key, partial(measured, exhibit, broken, draws, seed))
        print(f"{result['verdict']} {result['seconds']:.1f} s: {key}", file=sys.stderr, flush=True)
        return result

    first = [told(exhibit, broken=True) for exhibit in exhibits]
    for exhibit, seed in product(exhibits, range(1, seeds + 1)):
        told(exhibit, broken=False, seed=seed)
    for exhibit, result in zip(exhibits, first, strict=True):
        if result["verdict"] != "violation":
            told(exhibit, broken=True, draws=exhibit.draws)


def _bug(told: Told, exhibit: Exhibit) -> dict[str, Any] | None:
    """Of the bug, with the draws that it took; None if all of them haven't been made."""
    for draws in (FEW, exhibit.draws):
        result = told.get(_key(exhibit, broken=True, draws=draws), {})
        if draws == exhibit.draws or result.get("verdict") == "violation":
            break
    return result | {"draws": draws} if result else None


def _twins(told: Told, exhibit: Exhibit, seeds: int) -> list[dict[str, Any]]:
    keys = [_key(exhibit, broken=False, seed=seed) for seed in range(1, seeds + 1)]
    return [told[key] for key in keys if key in told]


def _claim(exhibit: Exhibit) -> str:
    curve = exhibit.twin().privacy()
    if not isinstance(curve, ApproxDP):
        return f"`{curve!r}`" if len(repr(curve)) < 40 else type(curve).__name__
    delta = f", {number(curve.delta)}" if curve.delta else ""
    return f"{curve.epsilon_at(curve.delta).upper:.4g}{delta}"


def _row(exhibit: Exhibit, bug: dict[str, Any], twins: Sequence[dict[str, Any]]) -> str:
    found = bug["verdict"] == "violation"
    accused = sum(twin["verdict"] == "violation" for twin in twins)
    said = "refuted" if found else bug["verdict"].replace("_", " ")
    return (
        f"| {exhibit.name} | {_claim(exhibit)} | {said} | {bug['epsilon']:.3g} "
        f"| {', '.join(bug['kinds']) or '–'} | {bug['draws']:,} | {bug['seconds']:.1f} "
        f"| {max((twin['epsilon'] for twin in twins), default=0.0):.3g} "
        f"| {accused} of {len(twins)} |"
    )


_HEAD = (
    "| bug | claim (ε, δ) | verdict | ε at least | found by | draws | s "
    "| twin: ε at least | accused |\n|---|---|---|---|---|---|---|---|---|"
)


def _table(rows: Mapping[str, str], exhibits: Iterable[Exhibit]) -> str:
    return "\n".join([_HEAD, *(rows[exhibit.name] for exhibit in exhibits)])


def _picture(exhibits: Iterable[Exhibit], bugs: Mapping[str, dict[str, Any]]) -> str:
    """What was promised and what leaks, as bars, four blocks to 1."""
    lines = []
    for exhibit in exhibits:
        curve, bug = exhibit.twin().privacy(), bugs[exhibit.name]
        promised = round(4 * claimed_epsilon(curve, fitting_delta(curve)))
        bar = "░" * promised + "█" * max(0, round(4 * bug["epsilon"]) - promised)
        lines.append(f"{exhibit.name:<52} {bar}")
    return "\n".join(["```text", *lines, "```"])


def _plaque(exhibit: Exhibit) -> str:
    return f"- **{exhibit.name}.** {exhibit.mistake} *{exhibit.leak}* ({exhibit.source})"


def page(kept: Kept, exhibits: Sequence[Exhibit], seeds: int) -> str:
    """The documentation page, of those exhibits whose bugs were audited."""
    told: Told = kept.values
    bugs = {e.name: bug for e in exhibits if (bug := _bug(told, e)) is not None}
    shown = [exhibit for exhibit in exhibits if exhibit.name in bugs]
    twins = {exhibit.name: _twins(told, exhibit, seeds) for exhibit in shown}
    rows = {e.name: _row(e, bugs[e.name], twins[e.name]) for e in shown}
    unfound = [
        f"- *{exhibit.name}*: {exhibit.why or 'not explained yet'}."
        for exhibit in shown
        if bugs[exhibit.name]["verdict"] != "violation"
    ]
    rooms = []
    for room in ROOMS:
        hung = [exhibit for exhibit in room.EXHIBITS if exhibit.name in rows]
        text = str(room.__doc__).partition("\n\n")[2].strip()
        plaques = "\n".join(map(_plaque, hung))
        parts = (f"## {room.NAME}", text, plaques, _picture(hung, bugs), _table(rows, hung))
        rooms.append("\n\n".join(parts) + "\n")
    street = [exhibit for exhibit in EVERYDAY if exhibit.name in rows]
    corrected = [twin for each in twins.values() for twin in each]
    seconds = [bug["seconds"] for bug in bugs.values()]
    found = len(bugs) - len(unfound)
    return _PAGE.format(
        all=len(SUITE),
        wings=len(SUITE) - len(MUSEUM),
        museum=len(MUSEUM),
        everyday=len(EVERYDAY),
        few=f"{FEW:,}",
        level=f"{LEVEL:g}",
        found=found,
        bugs=len(bugs),
        left=len(exhibits) - len(bugs) or "none",
        share=f"{found / len(bugs):.1%}",
        median=f"{median(seconds):.1f}",
        slowest=f"{max(seconds):.0f}",
        twins=len(corrected),
        accused=sum(twin["verdict"] == "violation" for twin in corrected),
        inconclusive=sum(twin["verdict"] == "inconclusive" for twin in corrected),
        unfound="\n".join(unfound) or "None.",
        rooms="\n".join([*rooms, accountants_room(kept), auditors_room(kept)]),
        street="\n".join(f"- **{exhibit.name}**: {exhibit.mistake}" for exhibit in street),
        outside=_table(rows, street),
        absent="\n".join(f"- {what}: {why}" for what, why in ABSENT.items()),
    )


_PAGE = """\
# The museum of published bugs

Welcome. Everything on show was meant to be private, most of it was published with a proof or
shipped with a version number, and all of it can be touched: each exhibit is a few lines of Python
in `dpverify_audits.museum`, with its correct twin beside it. `dpverify audit museum` walks through
all {all} of them. {wings} hang in two wings of their own, at the end: [accountants](#accountants),
who say what ε is, and [auditors](#auditors), who say what it is at least.

The others are functions of data, and nobody tells the auditor where to look. It gets the function,
the claim, who is a neighbour of whom, and what data sets are made of, as in

```text
dpv.audit(covariance, epsilon=1, adjacency=dpv.Replace(), domain=points)
```

and it makes the data sets, finds the pair, learns the event, and counts. The tables say what came
out: a lower bound on ε, which kinds of audit refute the claim, with how many draws on each side
({few}, or where these don't do, as many as the profile ci takes), in how many seconds of processor
time, at level {level}. In the pictures ░ is the ε that was promised, and █ what is shown to leak
beyond it, both at the claim's own δ; four blocks are 1. Printed by `python -m benchmarks.museum`.

**{found} of {bugs} bugs are found ({share})**, of {museum} in the museum and {everyday} everyday
ones from the street outside; still to be audited: {left}. The median takes {median} s, the
slowest {slowest} s. Of {twins} audits of correct twins {accused} end in an accusation, and
{inconclusive} are inconclusive.

Not found:

{unfound}

{rooms}
## The street outside

No one publishes these, for they are fixed on the day on which they are seen. They are in
`dpverify_audits.everyday`; `dpverify audit everyday` runs them.

{street}

{outside}

## What isn't on show

{absent}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1, help="of the audits of each twin")
    parser.add_argument("--only", default="", help="those whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    parser.add_argument("--picture", type=Path, help="write the picture of the accountants there")
    parser.add_argument("--kept", action="store_true", help="print what is done, and audit nothing")
    given = parser.parse_args()
    exhibits = [exhibit for exhibit in (*MUSEUM, *EVERYDAY) if given.only in exhibit.name]
    kept = Kept(given.out / "museum.jsonl")
    if not given.kept:
        measure(kept, exhibits, given.seeds)
    if given.picture:
        given.picture.write_text(picture(kept), encoding="utf-8")
    print(page(kept, exhibits, given.seeds), end="")


if __name__ == "__main__":
    main()
