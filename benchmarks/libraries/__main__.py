"""``python -m benchmarks.libraries``: audits all libraries, and prints ``docs/libraries.md``.

Each is audited in its own environment (`benchmarks.libraries.install`). What is done is kept in
``benchmarks/results/libraries``, which belongs to the repository, and from which a later run goes
on; ``--print`` prints the page of it, and needs none of the libraries.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept import Kept
from benchmarks.libraries.install import INTO, PINS, RESULTS, python_of, reasons
from benchmarks.plaques import linked
from dpverify_audits.libraries import LIBRARIES
from dpverify_audits.libraries.apart import APART, variable
from tests.helpers.paths import ROOT

__all__ = ["page", "results"]

_MEASURE = ("-W", "ignore", "-m", "benchmarks.libraries.measure")
_PATHS = (ROOT, ROOT / "mechanisms", ROOT / "audits")
_VERDICTS = {"violation": "refuted", "no_violation_found": "none found"}
_LOW_BITS = {"violation": "seen", "no_violation_found": "not seen", "whole": ""}


def _measured(library: str, into: Path, kept: Path) -> None:
    """Audit one library in its environment; what it prints is no part of the page.

    A library that can't be imported beside the auditor answers from its environment, and the
    auditor runs in this one.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _PATHS))}
    python = str(python_of(library, into))
    if library in APART:
        environment[variable(library)], python = python, sys.executable
    command = [python, *_MEASURE, library, "--kept", str(kept)]
    subprocess.run(command, env=environment, cwd=ROOT, stdout=sys.stderr, check=False)  # noqa: S603


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """What was found of each mechanism, by its name, of each library that was audited."""
    files = {library: folder / f"{library}.jsonl" for library in LIBRARIES}
    return {
        library: {key.rpartition("/")[0]: told for key, told in Kept(file).values.items()}
        for library, file in files.items()
        if file.exists()
    }


def _bound(told: Mapping[str, Any]) -> str:
    return "∞" if told["lower"] == "inf" else f"{told['lower']:.2f}"


def _row(name: str, told: Mapping[str, Any]) -> str:
    epsilon, delta = told["claim"]
    claim = f"ε = {epsilon:.4g}" + (f", δ = {delta:.2g}" if delta else "")
    reach = told["reach"]
    cells = (
        name,
        claim,
        told["verdict"] if told["verdict"] not in _VERDICTS else _VERDICTS[told["verdict"]],
        _bound(told),
        _linked(told["known"]),
        "" if reach is None else f"{reach:.2f}",
        _LOW_BITS.get(told["low bits"], told["low bits"]),
        f"{told['draws']:,}",
        f"{told['seconds']:.0f}",
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _linked(known: str) -> str:
    """Where it is written, with links to issues, papers and drafts of reports."""
    return linked(re.sub(r"docs/(reports/\S+\.md)", r"[draft of a report](\1)", known))


_KINDS = {
    "new": "New: we know of no report but our [drafts](reports/index.md)",
    "documented": "By the library's own documentation or convention",
    "published": "Published before, and found again",
    "mended": "Published, and fixed since",
}
"""What may be known of a mechanism that refutes its claim, or of one that once did."""


def _kind(name: str, told: Mapping[str, Any]) -> str | None:
    """Of which kind a finding is; that of all others is none."""
    if "(mended: " in name:
        return "mended"
    if told["verdict"] != "violation":
        return None
    word = told["known"].partition(":")[0]
    return {"new": "new", "documented": "documented", "by convention": "documented"}.get(
        word, "published"
    )


def _findings(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of what was found, by what is known of it."""
    rows: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for library in filter(found.get, PINS):
        for name, told in found[library].items():
            if kind := _kind(name, told):
                verdict = _VERDICTS.get(told["verdict"], told["verdict"])
                known = _linked(told["known"].removeprefix("new: ")) or linked(
                    f"{_NAMES.get(library, library)} {name.partition('(mended: ')[2].rstrip(')')}"
                )
                rows[kind].append(f"| {library} | {name} | {verdict} | {_bound(told)} | {known} |")
    head = "| library | mechanism | verdict | ε ≥ | known |\n|---|---|---|---|---|"
    return "\n\n".join(
        "\n".join([f"**{title}** ({len(rows[kind])}).", "", head, *rows[kind]])
        for kind, title in _KINDS.items()
        if rows[kind]
    )


_NAMES = {"opendp": "OpenDP", "opacus": "Opacus", "smartnoise-synth": "SmartNoise SDK"}
"""Repositories of libraries, as the museum names them."""


_HEAD = (
    "| mechanism | claim | verdict | ε ≥ | known | reach | low bits | draws | s |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def _section(library: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """The readings of a library, its table, and what shows each accusation."""
    readings: dict[tuple[str, str], list[str]] = {}
    for name, told in found.items():
        readings.setdefault((told["reading"], told["unit"]), []).append(name)
    lines = [f"## {library}", "", f"Pinned: {', '.join(f'`{pin}`' for pin in PINS[library])}.", ""]
    lines += ["Claims as we read them, and whom they protect:", ""]
    lines += [
        f"- {reading}; neighbours: {unit} ({len(names)})"
        for (reading, unit), names in readings.items()
    ]
    lines += ["", _HEAD, *(_row(name, told) for name, told in found.items()), ""]
    for name, told in found.items():
        if told["verdict"] == "violation":
            lines += [f"**{name}** refutes the claim as we read it. {told['found']}", ""]
        if told["verdict"] == "violation" and told["example"]:
            lines += [f"<!-- unrun: needs {library} -->", "```python", told["example"].rstrip()]
            lines += ["```", ""]
    return "\n".join(lines)


def page(found: Mapping[str, Mapping[str, Any]], missing: Mapping[str, str]) -> str:
    """The documentation page: by library what was found, and why libraries are missing."""
    rows, verdicts, stamps = [], Counter[str](), set[str]()
    for library in PINS:
        entries = found.get(library, {})
        counts = Counter(told["verdict"] for told in entries.values())
        verdicts += counts
        stamps |= {told["by"] for told in entries.values()}
        pins = PINS[library][0].partition("==")[2]
        known = sum(bool(told["known"]) for told in entries.values())
        left_out = (_PARTLY if entries else _OTHERS | dict.fromkeys(LIBRARIES, _UNMEASURED)).get(
            library, ""
        )
        remark = missing.get(library, "") or left_out
        rows.append(
            f"| {library} {pins} | {len(entries) or ''} | {counts['violation'] or ''} | "
            f"{counts['no_violation_found'] or ''} | "
            f"{sum(counts.values()) - counts['violation'] - counts['no_violation_found'] or ''} | "
            f"{known or ''} | {remark} |"
        )
    return _PAGE.format(
        libraries=sum(bool(entries) for entries in found.values()),
        mechanisms=sum(verdicts.values()),
        refuted=verdicts["violation"],
        by="; ".join(sorted(stamps)),
        table="\n".join(rows),
        recorded=_recorded(found),
        findings=_findings(found),
        sections="\n".join(
            _section(library, found[library]) for library in PINS if found.get(library)
        ),
    )


_ACCOUNTANT = "an accountant: [accountants compared](accountants-compared.md)"
_UNAUDITED = "installs; its mechanisms aren't audited yet"
_UNMEASURED = "installs; `dpverify audit libraries` audits it, and nothing of it is kept here yet"
_PARTLY = {
    "tmlt-analytics": "noise of its core; each release of a session starts jobs of Spark",
    "smartnoise-synth": "covariances and transformers; a fit of a synthesizer takes long",
    "jax-privacy": "the first of its 13 entries; also an auditor of scores: "
    "[scores compared](scores-compared.md)",
    "opacus": "without `secure_mode`, whose torchcsprng, of 2021, has no wheel for Python 3.11",
}
"""What is left out of a library of which something is audited."""
_OTHERS = dict.fromkeys(PINS, _UNAUDITED) | {
    "riskcal": "an accountant of risk: [compared](risk.md#compared)",
    "dp-accounting": _ACCOUNTANT,
    "autodp": _ACCOUNTANT,
    "prv-accountant": _ACCOUNTANT,
    "opake-auditing": "an auditor of scores, whose bound is above 0 too often where scores know "
    "nothing: [a report's draft](reports/opake-auditing.md)",
    "mbi": "installs; its wheel estimates from measurements that others make, and draws no noise",
}
"""Why a library that is installed has no mechanisms here."""

_MAPPED = "named in the artifact, by the tests that stand for it"
_RECORDER = (
    (
        "the lower bound twice, for both bounds",
        "diffprivlib",
        "Bounds that are one bound",
        "LinearRegression, bounds (0, 100)",
        "issue 105",
    ),
    (
        "classes read off the data",
        "diffprivlib",
        "Classes that were seen",
        "GaussianNB, a class",
        "issue 106, of LogisticRegression; here GaussianNB, which reads them off alike",
    ),
    (
        "a domain read off the data",
        "dpmm",
        "The domain is what is there",
        "MSTGM without a domain",
        "issue 18, mended after this version",
    ),
    (
        "a sensitivity of data that are clipped, and a sum of those that aren't",
        "dpmm",
        "Covariance that forgets its clipping",
        "",
        _MAPPED,
    ),
    (
        "data clipped, and then not used",
        "smartnoise-synth",
        "Covariance that forgets its clipping",
        "DPcovariance, a value outside of its range",
        "smartnoise-sdk issue 622, mended",
    ),
    (
        "a log missing in the odometer",
        "smartnoise-sql",
        "√(1/δ) for √ln(1/δ)",
        "",
        "smartnoise-sdk issue 621, mended; the accountant says too much",
    ),
    (
        "the number of rows as a scale",
        "opacus",
        "The mean by the true n",
        "one step by the mean loss",
        "issues 571 and 819",
    ),
    ("the number of rows, taken for public", "synthcity", "Mean by a secret n", "", _MAPPED),
    (
        "a sensitivity of 0 by hyperparameters",
        "synthcity",
        "Hyperparameters that make the sensitivity 0",
        "",
        _MAPPED,
    ),
    (
        "the data decide whether an edge of the network is too weak",
        "synthcity",
        "",
        "",
        "named in the kept results of the artifact",
    ),
    (
        "2 for 4 in the exponential mechanism",
        "mbi",
        "Exponential mechanism with 2 for 4",
        "",
        "issue 65, mended; JAM isn't in the wheel",
    ),
    ("a budget spent twice", "MOSTLY AI", "Spent twice", "", _MAPPED),
    ("NaN passes a clip", "five of them", "NaN passes the clip", "", _MAPPED),
)
"""What dp-recorder's artifact and its authors' issues name: the finding, its library, the exhibit
of the museum, how the library's mechanism begins that is audited here, and a remark."""


def _recorded(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for what, library, exhibit, begins, remark in _RECORDER:
        live = [
            _VERDICTS.get(told["verdict"], told["verdict"])
            for name, told in found.get(library, {}).items()
            if begins and name.startswith(begins)
        ]
        shown = exhibit or "–"
        rows.append(f"| {what} | {library} | {', '.join(live) or '–'} | {shown} | {remark} |")
    return "\n".join(rows)


_PAGE = """\
# Libraries, audited

{mechanisms} mechanisms of {libraries} libraries, each audited by all kinds that apply, against what
its library claims as we understand it. For {refuted} of them the claim was refuted; [What was
found](#what-was-found) lists them. **No verdict says that a mechanism is private**: “none found”
means that these draws refute nothing.

- *verdict*: “refuted” if two runs with different seeds both refute the claim, each at level
  0.001; the evidence, and code to replay it, are below each table. *ε ≥* is the smaller of the two
  lower bounds, at the δ of the claim.
- *known*: a public report, or the library's own documentation. For new findings,
  [reports](reports/index.md) has a draft.
- *reach*: the smallest ε that the attack on outputs finds 99 times in 100 with these draws.
- *low bits*: whether the low bits of doubles reveal the neighbour
  ([auditing floats](auditing-floats.md)), which most libraries' documentation doesn't exclude;
  empty if outputs aren't doubles.
- *draws* are on each side of each pair, *s* seconds of processor time.

All of these draw from the system's entropy, or from generators seeded by it, so the counts differ
from run to run. To audit a library that is installed: `dpverify audit libraries --library opendp`.
`python -m benchmarks.libraries.install` makes environments for them, and
`python -m benchmarks.libraries` prints this page. Audited by dpverify {by}.

| library | mechanisms | refuted | none found | other | known | |
|---|---|---|---|---|---|---|
{table}

## What was found

{findings}

## What dp-recorder found

Cebere, Erb, Desfontaines, Bellet and Fitzsimons (PETS 2026,
[arXiv:2602.17454](https://arxiv.org/abs/2602.17454)) report 13 violations in 12 libraries. These
are those that their artifact, its results and their issues name; we had no access to the paper's
own list, which may count them differently. *Here* is the verdict on the library itself, if it is
audited; the *exhibit* of [the museum](museum.md) has the same mistake, which is found there.

| finding | library | here | exhibit | |
|---|---|---|---|---|
{recorded}

{sections}"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Audit what isn't kept yet, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(LIBRARIES))
    parser.add_argument("--environments", type=Path, default=INTO, help="where they are")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of what is done")
    parser.add_argument("--print", action="store_true", help="audit nothing")
    given = parser.parse_args(arguments)
    for library in () if given.print else given.libraries or LIBRARIES:
        if python_of(library, given.environments).exists():
            _measured(library, given.environments, given.results / f"{library}.jsonl")
    print(page(results(given.results), reasons()), end="")


if __name__ == "__main__":
    main()
