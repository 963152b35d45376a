"""Published and everyday bugs of functions of data, audited; prints ``docs/museum.md``.

Each is audited as a user would, with the level of the profile ci: nothing but the function, its
claim and what its data are made of is given. A bug gets 2,000 draws on each side, and as many as
its exhibit says (10,000 by default, those of ci) where these don't find it; its twin gets 2,000.
Twins are audited in short runs beside, ten at the pairs that a search of the first of them finds.

What is done is kept in ``benchmarks/results/museum.jsonl``, which belongs to the repository. A
later run goes on from there, seed by seed over all exhibits, so that every row has as many
wherever it stops; an exhibit whose functions have changed begins anew. ``--picture
docs/museum.svg`` draws the accountants' claims.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median, median_high
from time import process_time
from types import ModuleType
from typing import Any
from zlib import crc32

from benchmarks.kept import Kept, stamp
from benchmarks.plaques import plaque
from benchmarks.wings import accountants_room, auditors_room, picture
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.config import fitting_delta
from dpverify.auditing.formatting import number
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.auditing.settings import PROFILES
from dpverify.guarantee import claimed_epsilon
from dpverify_audits.everyday import SUITE as EVERYDAY
from dpverify_audits.museum import ABSENT, ROOMS, SUITE, Exhibit
from dpverify_audits.museum import EXHIBITS as MUSEUM
from tests.helpers.levels import ALPHA, most

__all__ = ["FEW", "LEVEL", "RESULTS", "measure", "measured", "page"]

Told = Sequence[Mapping[str, Any]]
"""What audits of one exhibit said."""

FEW = 2_000
"""Draws on each side that are tried first."""
SHORT = 40
"""Draws of a short run."""
BLOCK = 10
"""Short runs that share a search, and are kept together."""
LEVEL = PROFILES["ci"].alpha
RESULTS = Path(__file__).with_name("results") / "museum.jsonl"


def measured(exhibit: Exhibit, broken: bool, draws: int, seed: int) -> dict[str, Any]:
    """What one audit says, and its seconds of processor time."""
    start = process_time()
    mechanism = exhibit.broken() if broken else exhibit.twin()
    report = audit(
        mechanism, alpha=LEVEL, draws=draws, seed=seed, workers=1, without=exhibit.without
    )
    return {
        "verdict": report.verdict,
        "epsilon": round(report.epsilon_lower, 4),
        "kinds": sorted({finding.audit for finding in report.violations}),
        "draws": draws,
        "seconds": round(process_time() - start, 2),
        "by": stamp(),
    }


def _bug(exhibit: Exhibit, seed: int) -> dict[str, Any]:
    """What finds it, or what all of its draws say."""
    result = measured(exhibit, True, FEW, seed)
    if result["verdict"] != "violation" and exhibit.draws > FEW:
        result = measured(exhibit, True, exhibit.draws, seed)
    return result


def _short(exhibit: Exhibit, first: int) -> dict[str, int]:
    """Verdicts of a block of short runs of the twin, by their number.

    Some exhibits have the same twin, so that each name has seeds of its own.
    """
    verdicts, pairs = Counter[str](), None
    start = crc32(exhibit.name.encode()) + first
    for seed in range(start, start + BLOCK):
        report = audit(
            exhibit.twin(),
            pairs=pairs,
            alpha=ALPHA,
            draws=SHORT,
            seed=seed,
            workers=1,
            without=exhibit.without,
        )
        verdicts[report.verdict] += 1
        found = {finding.pair.name: finding.pair for finding in report.findings if finding.pair}
        pairs = pairs or list(found.values()) or None
    return dict(verdicts)


@cache
def _key(exhibit: Exhibit) -> str:
    """Its name, and a digest of what is audited: another one, if its functions are changed."""
    audited = (exhibit.broken(), exhibit.twin(), exhibit.draws, exhibit.without)
    return f"{exhibit.name}/{fingerprint(audited)}"


def measure(kept: Kept, exhibits: Sequence[Exhibit], *, seeds: int, runs: int) -> None:
    """Audit what hasn't been, seed by seed: all bugs; once their twins; then short runs of these.

    Parameters
    ----------
    kept : has what is done, and gets the rest
    exhibits : in the order in which they are audited
    seeds : of the audits of each bug
    runs : short ones of each twin, rounded up to blocks of 10
    """

    def told(exhibit: Exhibit, what: str, make: partial[dict[str, Any]]) -> None:
        key = f"{_key(exhibit)}/{what}"
        if key not in kept.values:
            print(key, kept.get(key, make), file=sys.stderr, flush=True)

    firsts = range(1, runs + 1, BLOCK)
    for turn in range(max(seeds, len(firsts))):
        if turn < seeds:
            for exhibit in exhibits:
                told(exhibit, f"bug/{turn + 1}", partial(_bug, exhibit, turn + 1))
        if turn == 0:
            for exhibit in exhibits:
                told(exhibit, "twin", partial(measured, exhibit, False, FEW, 1))
        for exhibit in exhibits if turn < len(firsts) else ():
            first = firsts[turn]
            told(exhibit, f"short/{first}", partial(_short, exhibit, first))


def _claim(exhibit: Exhibit) -> str:
    curve = exhibit.twin().privacy()
    if not isinstance(curve, ApproxDP):
        return f"`{curve!r}`" if len(repr(curve)) < 40 else type(curve).__name__
    delta = f", {number(curve.delta)}" if curve.delta else ""
    return f"{curve.epsilon_at(curve.delta).upper:.4g}{delta}"


@dataclass(frozen=True, slots=True)
class _Row:
    """What is kept of an exhibit: of its bug by each seed, of its twin, and of the short runs."""

    exhibit: Exhibit
    bugs: Told
    twins: Told
    short: Counter[str]

    @classmethod
    def of(cls, kept: Kept, exhibit: Exhibit) -> _Row:
        def told(what: str) -> Told:
            start = f"{_key(exhibit)}/{what}"
            return [value for key, value in kept.values.items() if key.startswith(start)]

        return cls(
            exhibit, told("bug/"), told("twin"), sum(map(Counter, told("short/")), Counter())
        )

    @property
    def finds(self) -> int:
        """Seeds by which the bug is found."""
        return sum(bug["verdict"] == "violation" for bug in self.bugs)

    @property
    def found(self) -> bool:
        """Whether it is by most of them."""
        return 2 * self.finds > len(self.bugs)

    def median(self, name: str) -> float:
        """Of the bug's audits."""
        return float(median(bug[name] for bug in self.bugs))

    def cells(self) -> str:
        """A row of the table."""
        kinds = Counter(kind for bug in self.bugs for kind in bug["kinds"])
        often = [kind for kind in sorted(kinds) if 2 * kinds[kind] >= max(self.finds, 1)]
        twin = max((each["epsilon"] for each in self.twins), default=math.nan)
        accused = self.short["violation"] + sum(t["verdict"] == "violation" for t in self.twins)
        return (
            f"| {self.exhibit.name} | {_claim(self.exhibit)} | {self.finds} of {len(self.bugs)} "
            f"| {self.median('epsilon'):.3g} | {', '.join(often) or '–'} "
            f"| {median_high(bug['draws'] for bug in self.bugs):,} | {self.median('seconds'):.1f} "
            f"| {twin:.3g} | {accused} of {len(self.twins) + self.short.total()} |"
        )

    def bar(self) -> str:
        """What was promised and what leaks, four blocks to 1."""
        curve = self.exhibit.twin().privacy()
        promised = round(4 * claimed_epsilon(curve, fitting_delta(curve)))
        shown = "█" * max(0, round(4 * self.median("epsilon")) - promised)
        return f"{self.exhibit.name:<52} {'░' * promised}{shown}"


_HEAD = (
    "| bug | claim (ε, δ) | found | ε at least | found by | draws | s "
    "| twin: ε at least | twin accused |\n|---|---|---|---|---|---|---|---|---|"
)


def _table(rows: Iterable[_Row]) -> str:
    return "\n".join([_HEAD, *(row.cells() for row in rows)])


def _room(room: ModuleType, rows: Mapping[str, _Row]) -> str:
    """What hangs at the door, and in the room, of that which was audited."""
    hung = [rows[exhibit.name] for exhibit in room.EXHIBITS if exhibit.name in rows]
    text = str(room.__doc__).partition("\n\n")[2].strip()
    plaques = "\n".join(plaque(row.exhibit) for row in hung)
    bars = "\n".join(["```text", *(row.bar() for row in hung), "```"])
    return "\n\n".join((f"## {room.NAME}", text, plaques, bars, _table(hung))) + "\n"


def _unfound(row: _Row) -> str:
    """Why most seeds don't find it, or how many do."""
    said = row.exhibit.why or f"found with {row.finds} of {len(row.bugs)} seeds"
    return f"- *{row.exhibit.name}*: {said}."


def _from_to(numbers: Iterable[int]) -> str:
    """One number, or the least and the most."""
    counts = sorted(set(numbers))
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def page(kept: Kept, exhibits: Sequence[Exhibit]) -> str:
    """The documentation page, of those exhibits whose bugs were audited."""
    audited = [row for exhibit in exhibits if (row := _Row.of(kept, exhibit)).bugs]
    rows = {row.exhibit.name: row for row in audited}
    unfound = [row for row in audited if not row.found]
    corrected = [twin for row in audited for twin in row.twins]
    short = sum((row.short for row in audited), Counter[str]())
    seconds = [row.median("seconds") for row in audited]
    street = [rows[exhibit.name] for exhibit in EVERYDAY if exhibit.name in rows]
    found = len(audited) - len(unfound)
    return _PAGE.format(
        all=len(SUITE),
        wings=len(SUITE) - len(MUSEUM),
        museum=len(MUSEUM),
        everyday=len(EVERYDAY),
        few=f"{FEW:,}",
        level=f"{LEVEL:g}",
        found=found,
        bugs=len(audited),
        left=len(exhibits) - len(audited) or "none",
        share=f"{found / len(audited):.1%}",
        seeds=_from_to(len(row.bugs) for row in audited),
        audits=f"{sum(len(row.bugs) for row in audited):,}",
        finds=f"{sum(row.finds for row in audited):,}",
        median=f"{median(seconds):.1f}",
        slowest=f"{max(seconds):.0f}",
        long=sum(each > 60 for each in seconds) or "none",
        twins=len(corrected),
        accused=sum(twin["verdict"] == "violation" for twin in corrected),
        inconclusive=sum(twin["verdict"] == "inconclusive" for twin in corrected),
        runs=_from_to(row.short.total() for row in audited),
        short=f"{SHORT}",
        alpha=f"{ALPHA:g}",
        one_in=f"{1 / ALPHA:.0f}",
        all_runs=f"{short.total():,}",
        all_accused=short["violation"],
        above=sum(row.short["violation"] > most(row.short.total()) for row in audited) or "none",
        by="; ".join(sorted({bug["by"] for row in audited for bug in row.bugs})),
        unfound="\n".join(map(_unfound, unfound)) or "None.",
        rooms="\n".join(
            [*(_room(room, rows) for room in ROOMS), accountants_room(kept), auditors_room(kept)]
        ),
        street="\n".join(f"- **{row.exhibit.name}**: {row.exhibit.mistake}" for row in street),
        outside=_table(street),
        absent="\n".join(f"- {what}: {why}" for what, why in ABSENT.items()),
    )


_PAGE = """\
# The museum of published bugs

{all} bugs, most of them published with a proof or shipped in a library. Each exhibit is a few lines
of Python in `dpverify_audits.museum`, with its correct twin; `dpverify audit museum` audits all of
them. {wings} of them are [accountants](#accountants), which compute ε, and [auditors](#auditors),
which compute lower bounds on it.

The others are functions of data. The audit gets nothing but the function, its claim, the adjacency,
and what data sets are made of, as in

```text
dpv.audit(covariance, epsilon=1, adjacency=dpv.Replace(), domain=points)
```

and finds the neighbours and the event itself. The tables have the lower bound on ε, the kinds of
audit that refute the claim, the draws on each side ({few}; if these aren't enough, the number of
the profile ci) and the seconds of processor time, at level {level}. In the pictures ░ is the
claimed ε and █ the additional leak that was shown, both at the claim's δ; four blocks are ε = 1.
Printed by `python -m benchmarks.museum`.

**{found} of {bugs} audited bugs are found ({share}).** {museum} functions are published bugs, and
{everyday} are [everyday bugs](#everyday-bugs); still to be audited: {left}.

| | |
|---|---|
| seeds for each bug; the tables have medians | {seeds} |
| audits of bugs that find them | {finds} of {audits} |
| seconds of an audit: median, slowest | {median}, {slowest} |
| bugs that take over 60 s | {long} |
| audits of correct twins that accuse one | {accused} of {twins} |
| of these, inconclusive | {inconclusive} |
| short audits for each twin: {short} draws, at level {alpha} | {runs} |
| short audits that accuse a twin; the level allows one in {one_in} | {all_accused} of {all_runs} |
| twins accused more often than the level explains | {above} |
| audited by dpverify | {by} |

Not found:

{unfound}

{rooms}
## Everyday bugs

Nobody publishes these, since they are fixed as soon as somebody sees them. They are in
`dpverify_audits.everyday`, and `dpverify audit everyday` audits them.

{street}

{outside}

## What isn't here

{absent}
"""


def main() -> None:
    """Audit what isn't kept yet, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1, help="of the audits of each bug")
    parser.add_argument("--runs", type=int, default=BLOCK, help="short ones of each twin, in tens")
    parser.add_argument("--only", default="", help="those whose name has this in it")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of what is done")
    parser.add_argument("--picture", type=Path, help="write the picture of the accountants there")
    parser.add_argument("--print", action="store_true", help="audit nothing")
    given = parser.parse_args()
    exhibits = [exhibit for exhibit in (*MUSEUM, *EVERYDAY) if given.only in exhibit.name]
    kept = Kept(given.results)
    if not given.print:
        measure(kept, exhibits, seeds=given.seeds, runs=given.runs)
    if given.picture:
        given.picture.write_text(picture(kept), encoding="utf-8")
    print(page(kept, exhibits), end="")


if __name__ == "__main__":
    main()
