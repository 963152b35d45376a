"""The museum's wings without data: accountants held against the truth, auditors on null scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

from benchmarks.kept import Kept
from benchmarks.plaques import plaque
from dpverify.auditing.outputs.journal import fingerprint
from dpverify_audits.museum import accountants, auditors
from dpverify_audits.museum.accountants import AccountantExhibit
from dpverify_audits.museum.auditors import AuditorExhibit

__all__ = ["accountants_room", "auditors_room", "picture"]

_LEVEL = 1e-6
_LEFT, _WIDTH, _ROW = 330, 720, 20
_DECADES = (-2, 2)


def _key(exhibit: AccountantExhibit | AuditorExhibit) -> str:
    """Its name, and a digest of the functions that are held against the truth."""
    return f"{exhibit.name}/{fingerprint(exhibit)}"


def _held(exhibit: AccountantExhibit) -> dict[str, Any]:
    broken, correct = exhibit.held(broken=True), exhibit.held(broken=False)
    worst = broken.cells[0]
    (twin,) = (cell for cell in correct.cells if cell.parameters == worst.parameters)
    return {
        "asked": ", ".join(f"{key} = {value:g}" for key, value in worst.parameters.items()),
        "solves": "ε" if exhibit.solves == "epsilon" else "δ",
        "claim": worst.claim,
        "truth": worst.truth.lower,
        "verdict": worst.verdict,
        "corrected": twin.claim,
        "accused": sum(cell.verdict not in ("tight", "loose") for cell in correct.cells),
    }


def _tried(exhibit: AuditorExhibit) -> dict[str, Any]:
    broken, correct = (exhibit.tried(broken=side, alpha=_LEVEL) for side in (True, False))
    worst = max(broken.parts, key=lambda part: part.above / part.runs)
    most = max(correct.parts, key=lambda part: part.above / part.runs)
    return {
        "scores": worst.null.name,
        "epsilon": worst.null.epsilon,
        "above": worst.above,
        "runs": worst.runs,
        "largest": worst.largest if math.isfinite(worst.largest) else "∞",
        "verdict": broken.verdict,
        "corrected": most.above,
        "accused": correct.verdict != "no_violation_found",
    }


def _room(module: Any, table: str) -> str:
    text = str(module.__doc__).partition("\n\n")[2].strip()
    plaques = "\n".join(map(plaque, module.EXHIBITS))
    return "\n\n".join((f"## {module.NAME}", text, plaques, table)) + "\n"


def _numbers(kept: Kept) -> list[tuple[AccountantExhibit, dict[str, Any]]]:
    return [(each, kept.get(_key(each), partial(_held, each))) for each in accountants.EXHIBITS]


def accountants_room(kept: Kept) -> str:
    """Its plaques, and a number against the truth for each."""
    rows = [
        "| bug | asked | claimed | truth, at least | verdict | corrected |",
        "|---|---|---|---|---|---|",
    ]
    told = [held for _, held in _numbers(kept)]
    for each, held in _numbers(kept):
        claim = "–" if held["claim"] is None else f"{held['claim']:.4g}"
        rows.append(
            f"| {each.name} | {held['asked']} | {held['solves']} = {claim} "
            f"| {held['truth']:.4g} | {held['verdict']} | {held['corrected']:.4g} |"
        )
    verdicts = [each["verdict"] for each in told]
    said = (
        f"Of {len(told)}, {verdicts.count('unsafe')} are below the truth, for certain, "
        f"{verdicts.count('loose')} far above it, and {verdicts.count('failed')} is no ε at all; "
        f"{sum(each['accused'] for each in told)} claims of the corrected ones are accused. The "
        "worst claim of each, as `audit_accountant` puts it first:"
    )
    drawn = "![Claims as shares of the truth](museum.svg)"
    return _room(accountants, "\n".join([said, "", drawn, "", *rows]))


def auditors_room(kept: Kept) -> str:
    """Its plaques, and how often each bound is above the truth."""
    rows = [
        "| bug | scores | true ε | above it | largest bound | corrected: above it |",
        "|---|---|---|---|---|---|",
    ]
    for each in auditors.EXHIBITS:
        told = kept.get(_key(each), partial(_tried, each))
        largest = told["largest"] if isinstance(told["largest"], str) else f"{told['largest']:.3g}"
        rows.append(
            f"| {each.name} | {told['scores']} | {told['epsilon']:.4g} "
            f"| {told['above']} of {told['runs']} | {largest} "
            f"| {told['corrected']} of {told['runs']} |"
        )
    tried = [kept.values[_key(each)] for each in auditors.EXHIBITS]
    said = (
        f"{sum(told['verdict'] == 'violation' for told in tried)} of {len(tried)} are refuted, at "
        f"level {_LEVEL:g} each, and {sum(told['accused'] for told in tried)} of the corrected. "
        "Bounds of level 0.05, on the scores that show most:"
    )
    return _room(auditors, "\n".join([said, "", *rows]))


def picture(kept: Kept) -> str:
    """Claims as shares of the truth, on a logarithmic scale, as SVG."""
    shown = [(each, told) for each, told in _numbers(kept) if told["verdict"] != "failed"]
    low, high = _DECADES
    height = _ROW * (len(shown) + 2)

    def place(ratio: float) -> float:
        exponent = min(max(math.log10(ratio) if ratio > 0 else low, low), high)
        return _LEFT + (_WIDTH - _LEFT - 20) * (exponent - low) / (high - low)

    lines: Sequence[str] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        *(
            f'<text x="{place(10.0**e):.0f}" y="14" text-anchor="middle">{10.0**e:g}</text>'
            f'<line x1="{place(10.0**e):.0f}" x2="{place(10.0**e):.0f}" y1="20" y2="{height}" '
            f'stroke="{"black" if e == 0 else "#ccc"}"/>'
            for e in range(low, high + 1)
        ),
        *(
            _bar(each.name, place(1.0), place(told["claim"] / told["truth"]), 24 + _ROW * row)
            for row, (each, told) in enumerate(shown)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bar(name: str, one: float, end: float, y: int) -> str:
    colour = "#b2182b" if end < one else "#999"
    return (
        f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{min(one, end):.1f}" y="{y}" width="{abs(end - one):.1f}" height="14" '
        f'fill="{colour}"/>'
    )
