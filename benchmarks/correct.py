"""Correct mechanisms of many kinds of control flow, audited; prints ``docs/correct-mechanisms.md``.

Ours are `dpverify_audits.control_flow`; the others are of libraries (`benchmarks.peers.correct`),
which are audited where they are installed beside dpverify: an environment of its own, made with
``pip install . -r benchmarks/peers/requirements-audited.txt``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kept import Kept
from benchmarks.peers import correct
from dpverify.auditing.audit import audit
from dpverify_audits.control_flow import CASES, Case

__all__ = ["ALPHA", "found", "page"]

ALPHA = 1e-3
"""Level of one audit, that of the profile dev."""


def found(mechanism: Any, draws: int, seed: int) -> dict[str, Any]:
    """The verdict, the kinds that accuse, and what the grey-box check says of its model."""
    report = audit(mechanism, alpha=ALPHA, draws=draws, seed=seed, without=["precision"])
    (grey,) = [finding for finding in report.findings if finding.audit == "grey-box"]
    return {
        "verdict": report.verdict.replace("_", " "),
        "accused by": sorted({finding.audit for finding in report.violations}),
        "outside": "outside the model" in grey.statement,
        "grey-box": grey.verdict.replace("_", " "),
    }


def page(kept: Kept, cases: list[Case], *, draws: int, seed: int) -> str:
    """The documentation page."""
    lines, verdicts = [], Counter[str]()
    for case in cases:
        print(case.library, case.name, file=sys.stderr, flush=True)
        key = f"{case.library}/{case.name}/{draws}/{seed}"
        told = kept.get(key, partial(found, case.mechanism, draws, seed))
        verdicts[told["verdict"]] += 1
        model = ", outside its model" if told["outside"] else ""
        by = ", ".join(told["accused by"]) or "none"
        lines.append(
            f"| {case.library} | {case.name} | {case.flow} | {told['verdict']} | {by} "
            f"| {told['grey-box']}{model} |"
        )
    return _PAGE.format(
        mechanisms=len(cases),
        flows=len({case.flow for case in cases}),
        libraries=len({case.library for case in cases}) - 1,
        draws=f"{draws:,}",
        each=draws,
        seed=seed,
        alpha=f"{ALPHA:g}",
        verdicts=", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common()),
        table="\n".join(lines),
    )


_PAGE = """\
# Correct mechanisms, audited

{mechanisms} correct mechanisms with {flows} kinds of control flow, written by us or from
{libraries} libraries. Each is audited by all kinds that apply, except precision (which is about the
low bits of doubles, and accuses many of them, rightly), with {draws} draws on each side, level
{alpha} each, seed {seed}. Verdicts: {verdicts}. Printed by
`python -m benchmarks.correct --draws {each}`.

Nearly all of ours have a broken twin in `tests/auditing/test_control_flow.py`. If a mechanism is
outside the model of the grey-box check, that check says so, and the verdict is that of the other
kinds.

| library | mechanism | control flow | verdict | accused by | grey-box |
|---|---|---|---|---|---|
{table}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=500, help="on each side")
    parser.add_argument("--seed", type=int, default=1, help="of every audit")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    kept = Kept(given.out / "correct.jsonl")
    print(page(kept, [*CASES, *correct.cases()], draws=given.draws, seed=given.seed), end="")


if __name__ == "__main__":
    main()
