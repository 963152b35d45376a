"""Figures as SVG to stand inside HTML: pure functions of a certificate, or of counted verdicts.

Colours are from the Okabe-Ito palette, and every series has a line style or a marker of its own, so
that nothing is told by colour alone. Text stays text. No string of a certificate is drawn, only
numbers read from it.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.notions.people_figure import people_figure
from dpverify.certificate.meaning import SIZES
from dpverify.certificate.schema import Certificate
from dpverify.enclosure import Enclosure, rational
from dpverify.errors import NumericalError, extra
from dpverify.ledger.statements import Verdict

with extra("report", "a report"):
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

__all__ = [
    "distance_plot",
    "number",
    "outside_band",
    "people_plot",
    "privacy_plot",
    "right_guesses",
    "roc_plot",
    "size_plot",
    "verdict_plot",
]

BLUE, SKY, GREEN, VERMILLION, GREY = "#0072B2", "#56B4E9", "#007A59", "#C24A00", "#5A5A5A"
BAND = 2
"""Predicted standard deviations on each side of the truth that the band covers."""

_WIDTH = 7.4  # inches, that is 533 points: the width of the printed column
_LEFT, _RIGHT, _UNDER, _TITLE = 0.72, 0.12, 0.55, 0.3  # inches around axes; the legend is beneath
_SMALLEST = 1e-300  # an enclosure's upper end can be the smallest double, which no axis can show
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpverify",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.4,
}
_VERDICTS: Mapping[Verdict, tuple[str, str]] = {  # face, hatching; what fails is darkest
    "confirmed_exactly": ("#FFFFFF", ""),
    "confirmed_statistically": ("#FFFFFF", "..."),
    "conservative": ("#CFE6F5", ""),
    "holds_under_reading": ("#F0E442", "///"),
    "misprint": ("#E69F00", ""),
    "refuted": ("#A03A00", ""),
    "not_checkable": ("#E3E3E3", "xxx"),
}
_DPI = 72  # of every SVG of matplotlib's
_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_BELOW: Final = "lower center"


def number(text: str) -> float:
    """Double nearest to a number of a certificate: decimal, fraction, "inf" or "nan"."""
    try:
        return float(text)
    except ValueError:
        return float(Fraction(text))


def outside_band(certificate: Certificate) -> int:
    """Number of synthetic pairs whose estimate lies outside the predicted band."""
    _, expected, deviation, estimate = _distances(certificate)
    return int(np.count_nonzero(~(np.abs(estimate - expected) <= BAND * deviation)))


def people_plot(certificate: Certificate) -> str:
    """What the claim means to a hundred people, as inline SVG."""
    at_most = Enclosure.of_exact(right_guesses(certificate)).upper
    return people_figure(Fraction(1, 2), min(at_most, 1.0), question="Was that change made?")


def right_guesses(certificate: Certificate) -> Fraction:
    """How likely a guess at even odds is right, at most: (1 + δ(0))/2, as `Risk.success`."""
    return (1 + rational("delta", _at_zero(certificate))) / 2


def _at_zero(certificate: Certificate) -> str:
    return next(point.delta.upper for point in certificate.derived.curve if point.epsilon == "0")


def privacy_plot(certificate: Certificate) -> str:
    """Privacy curve with the claimed point and what the audit says about it, as inline SVG."""
    label = "Privacy curve: delta against epsilon."
    return _drawn("privacy", label, 3.7, lambda figure: _privacy(figure, certificate))


def roc_plot(certificate: Certificate) -> str:
    """The attack's ROC against the region that the claim allows, as inline SVG."""
    label = "ROC of the attack: measured points against the region that the claim allows."
    return _drawn("roc", label, 4.5, lambda figure: _roc(figure, certificate))


def distance_plot(certificate: Certificate) -> str:
    """Estimates against truth for the synthetic pairs, as inline SVG."""
    label = "Estimates against the truth for synthetic records, with the predicted band."
    return _drawn("distances", label, 3.9, lambda figure: _estimates(figure, certificate))


def size_plot(certificate: Certificate) -> str:
    """Predicted error against the sketch's size at the same guarantee, as inline SVG."""
    label = "Predicted error of the first estimator against the size of the sketch."
    return _drawn("sizes", label, 3.3, lambda figure: _errors(figure, certificate))


def verdict_plot(counts: Mapping[str, Mapping[Verdict, int]]) -> str:
    """Number of a paper's statements by verdict, for each paper, as inline SVG."""
    label = "Statements of each paper by verdict."
    height, left = 1.2 + 0.42 * len(counts), 0.2 + 0.08 * max(map(len, counts), default=0)
    return _drawn("verdicts", label, height, lambda f: _verdicts(f, counts), left=left)


def _drawn(
    key: str, label: str, height: float, draw: Callable[[Figure], None], *, left: float = _LEFT
) -> str:
    # The default style first: a user's own settings must not change the bytes.
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
        FigureCanvasSVG(figure)  # which measures text as it will be drawn
        draw(figure)
        _framed(figure, height, left)
        buffer = io.StringIO()
        empty = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=empty)
    return _inline(buffer.getvalue(), key, label)


def _framed(figure: Figure, height: float, left: float) -> None:
    """Leave room for the legend and for what is written at axes of numbers.

    Constrained layout measures every label of every tick, twice, and takes as long as the drawing.
    """
    (legend,) = figure.legends
    below = legend.get_window_extent().height / _DPI
    titled = any(axes.get_title() for axes in figure.axes)
    figure.subplots_adjust(
        left=left / _WIDTH,
        right=1 - _RIGHT / _WIDTH,
        bottom=(below + _UNDER) / height,
        top=1 - (_TITLE if titled else _RIGHT) / height,
        wspace=0.25,
    )


def _inline(document: str, key: str, label: str) -> str:
    """An SVG document as an element of an HTML page, its ids made the figure's own."""
    opening = re.search(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', document)
    if opening is None:
        raise NumericalError(f"drawing {key} gave no figure")
    body = document[opening.end() :]
    # This style would hold for the whole page; the page's own sheet says the same for figures.
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{key}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{key}-', body)
    body = re.sub(r"url\(#", f"url(#{key}-", body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{opening[1]}" role="img" '
        f'aria-label="{escape(label)}" aria-describedby="{key}-caption">{body.strip()}'
    )


def _privacy(figure: Figure, certificate: Certificate) -> None:
    attack = certificate.derived.white_box
    epsilon, delta = float(certificate.inputs.epsilon), float(certificate.inputs.delta)
    points, allowed = _curve(certificate)
    lower = number(attack.epsilon_lower)
    refuted = sorted({number(f.refuted_at) for f in attack.findings if f.refuted_at is not None})
    right = max([float(points[-1]), lower * 1.05, *refuted]) or 1.0
    # A δ of 0 is below every logarithmic axis: the curve leaves it there, and the claim sits on it.
    band = [number(point.shown) for point in certificate.derived.curve]
    shown = [value for value in (*allowed.tolist(), delta) if value > _SMALLEST]
    bottom, top = min(shown, default=0.5) / 2, min(max(*shown, *band, 0.0) * 2 or 0.5, 1.0)
    claimed = max(delta, bottom)

    axes = figure.add_subplot()
    axes.set_yscale("log")
    axes.set(xlim=(0, right), ylim=(bottom, top))
    if attack.power.reach is not None:
        reach = number(attack.power.reach)
        axes.axvspan(0, reach, facecolor=SKY, alpha=0.25, linewidth=0, label="within reach")
        axes.axvline(reach, color=GREY, linewidth=1)
        if reach < 0.6 * right and not refuted:  # the corner that falling curves leave free
            axes.annotate(
                "beyond the shaded part the claim\nrests on its proof alone",
                xy=(1, 1),
                xycoords="axes fraction",
                xytext=(-4, -4),
                textcoords="offset points",
                horizontalalignment="right",
                verticalalignment="top",
                color="#333333",
            )
    axes.plot(points, allowed, color=BLUE, linewidth=2, label="δ(ε), proven")
    _beside(axes, certificate, bottom)
    axes.plot([epsilon, epsilon, 0], [bottom, claimed, claimed], color=GREY, linestyle=":")
    axes.plot(
        [epsilon], [claimed], "o", color=VERMILLION, markersize=8, clip_on=False, label="claimed"
    )
    bound = f"audit at this δ: ε at least {math.floor(lower * 1000) / 1000:g}"
    axes.plot([lower], [claimed], ">", color=GREEN, markersize=8, clip_on=False, label=bound)
    for place in refuted:
        label = "refuted here" if place == refuted[0] else None
        axes.axvline(
            place, color=VERMILLION, linestyle="--", linewidth=2, clip_on=False, label=label
        )
    axes.set(xlabel="ε (nats)", ylabel="δ")
    _decades(axes, "y", top / bottom)
    figure.legend(loc=_BELOW, ncols=4)


def _beside(axes: Axes, certificate: Certificate, bottom: float) -> None:
    """The published bound above the curve, and the audit's band that ends below it."""
    curve = certificate.derived.curve
    above = [(number(p.epsilon), number(p.published)) for p in curve if p.published is not None]
    if above:
        axes.plot(*zip(*above, strict=True), color=VERMILLION, linestyle=(0, (7, 2, 1.5, 2)))
        axes.lines[-1].set_label("δ(ε), as published")
    shown = [(number(p.epsilon), number(p.shown)) for p in curve]
    last = next((i for i, (_, value) in enumerate(shown) if value <= 0), len(shown) - 1)
    if last:  # where the band ends it goes to 0, that is through the foot of the axis
        below = [(x, max(value, bottom / 10)) for x, value in shown[: last + 1]]
        axes.plot(*zip(*below, strict=True), color=GREEN, linestyle=(0, (5, 2)), linewidth=1.5)
        axes.lines[-1].set_label("audit's band, from below")


def _roc(figure: Figure, certificate: Certificate) -> None:
    evidence, attack = certificate.evidence, certificate.derived.white_box
    draws = evidence.draws
    false = np.array([counts.false_hits / draws for counts in evidence.roc])
    true = np.array([counts.hits / draws for counts in evidence.roc])
    tested = [counts for pair in evidence.white_box for counts in pair.counts]
    q = np.array([counts.false_hits / draws for counts in tested])
    p = np.array([counts.hits / draws for counts in tested])
    refuted = np.array([finding.refuted_at is not None for finding in attack.findings])

    whole, tail = figure.subplots(1, 2)
    rates = np.linspace(0, 1, 201)
    _region(whole, rates, certificate)
    whole.plot(false, true, "o", color=VERMILLION, markersize=4, clip_on=False)
    whole.lines[-1].set_label("measured, {L ≥ t}")
    whole.plot(q[~refuted], p[~refuted], "s", color=GREEN, fillstyle="none", clip_on=False)
    whole.lines[-1].set_label("tested events")
    if refuted.any():
        whole.plot(q[refuted], p[refuted], "X", color="black", markersize=7, clip_on=False)
        whole.lines[-1].set_label("tested events that refute the claim")
    whole.set(xlim=(0, 1), ylim=(0, 1), title="All events")
    whole.set(xlabel="false positive rate", ylabel="true positive rate")

    # Seen from the other side, the complement of an event has rates (1 − true, 1 − false); the
    # claim holds in both orders, so both tails are under the one boundary.
    rates_below = [rate for rate in (*false, *(1 - true), *q) if rate > 0]
    least = 0.5 * max(min(rates_below, default=1 / draws), 0.3 / draws)
    _region(tail, np.geomspace(least, 1, 201), certificate)
    tail.set_xscale("log")
    tail.set_yscale("log")
    tail.plot(*_positive(false, true), "o", color=VERMILLION, markersize=4)
    complement = "measured, {L < t} in the other order"
    tail.plot(*_positive(1 - true, 1 - false), "v", color=GREY, markersize=4, label=complement)
    tail.plot(*_positive(q[~refuted], p[~refuted]), "s", color=GREEN, fillstyle="none")
    tail.plot(*_positive(q[refuted], p[refuted]), "X", color="black", markersize=7)
    tail.set(xlim=(least, 1), ylim=(least, 1.3), title="Both tails")
    tail.set(xlabel="false positive rate", ylabel="true positive rate")
    for axis in ("x", "y"):
        _decades(tail, axis, 1 / least)
    handles, names = whole.get_legend_handles_labels()
    more, others = tail.get_legend_handles_labels()
    extra = [(h, n) for h, n in zip(more, others, strict=True) if n not in names]
    figure.legend(
        [*handles, *(h for h, _ in extra)], [*names, *(n for _, n in extra)], loc=_BELOW, ncols=2
    )


def _region(axes: Axes, rates: NDArray[np.float64], certificate: Certificate) -> None:
    low, high = _allowed(rates, certificate)
    axes.fill_between(rates, low, high, color=SKY, alpha=0.25, linewidth=0, label="allowed")
    axes.plot(rates, high, color=BLUE, linewidth=1.5, label="the claim's boundary")
    axes.plot(rates, low, color=BLUE, linewidth=1.5)
    axes.plot(
        rates, rates, color=GREY, linestyle="--", linewidth=1, label="an attack that knows nothing"
    )


def _allowed(
    rates: NDArray[np.float64], certificate: Certificate
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and largest true positive rate that every stored point of the curve allows.

    An event and its complement, in both orders: four inequalities P ≤ e^ε Q + δ for each point.
    """
    points, deltas = _curve(certificate)
    factor, delta = np.exp(np.minimum(points, 700.0))[:, None], deltas[:, None]
    high = np.minimum(factor * rates + delta, 1 - (1 - rates - delta) / factor).min(axis=0)
    low = np.maximum((rates - delta) / factor, 1 - factor * (1 - rates) - delta).max(axis=0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _estimates(figure: Figure, certificate: Certificate) -> None:
    columns = _distances(certificate)
    order = np.argsort(columns[0], kind="stable")
    truth, expected, deviation, estimate = (column[order] for column in columns)
    inside = np.abs(estimate - expected) <= BAND * deviation
    axes = figure.add_subplot()
    axes.fill_between(
        truth,
        expected - BAND * deviation,
        expected + BAND * deviation,
        facecolor=SKY,
        alpha=0.25,
        linewidth=0,
        label=f"±{BAND} predicted standard deviations",
    )
    axes.plot(truth, truth, color=BLUE, linewidth=1.5, label="truth")
    axes.plot(truth[inside], estimate[inside], "o", color=VERMILLION, markersize=4.5)
    axes.lines[-1].set_label("estimate")
    if not inside.all():
        axes.plot(truth[~inside], estimate[~inside], "X", color="black", markersize=7)
        axes.lines[-1].set_label("estimate outside the band")
    axes.set(xlabel="true value, synthetic gridded records", ylabel="estimate")
    figure.legend(loc=_BELOW, ncols=4)


def _errors(figure: Figure, certificate: Certificate) -> None:
    points = certificate.derived.sizes
    sizes, errors = [point.size for point in points], [number(point.error) for point in points]
    parameters = certificate.inputs.parameters
    chosen = next((parameters[name] for name in SIZES if name in parameters), None)
    axes = figure.add_subplot()
    axes.set_xscale("log", base=2)
    axes.plot(sizes, errors, color=BLUE, marker="o", markersize=4.5, label="predicted error")
    best = min(range(len(sizes)), key=errors.__getitem__)
    axes.plot([sizes[best]], [errors[best]], "D", color=GREEN, markersize=10, fillstyle="none")
    axes.lines[-1].set_label("least of these")
    if chosen in sizes:
        place = sizes.index(int(chosen))
        axes.plot([sizes[place]], [errors[place]], "s", color=VERMILLION, markersize=7)
        axes.lines[-1].set_label("chosen")
    axes.set_ylim(bottom=0)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="size of the sketch", ylabel="root mean squared error")
    figure.legend(loc=_BELOW, ncols=3)


def _distances(
    certificate: Certificate,
) -> tuple[NDArray[np.float64], ...]:
    """Truth, predicted mean, predicted deviation and estimate of every probe."""
    predictions = certificate.derived.predictions
    return (
        np.array([number(prediction.truth) for prediction in predictions]),
        np.array([number(prediction.expectation) for prediction in predictions]),
        np.array([number(prediction.deviation) for prediction in predictions]),
        np.array([number(estimate) for estimate in certificate.evidence.probe_estimates]),
    )


def _curve(certificate: Certificate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Stored points: ε, and the upper end of δ(ε), which is what may be promised."""
    curve = certificate.derived.curve
    deltas = np.array([number(point.delta.upper) for point in curve])
    return np.array([number(point.epsilon) for point in curve]), np.maximum(deltas, _SMALLEST)


def _positive(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points that a logarithmic axis can show."""
    kept = (x > 0) & (y > 0)
    return x[kept], y[kept]


def _decades(axes: Axes, name: str, ratio: float) -> None:
    """Plain-text tick labels for a logarithmic axis, also where it spans less than a decade."""
    axis = axes.yaxis if name == "y" else axes.xaxis
    axis.set_major_locator(LogLocator(numticks=9) if ratio > 30 else MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(_power))
    axis.set_minor_locator(NullLocator())  # a fourth of the time of drawing


def _power(value: float, _: object) -> str:
    if value <= 0:
        return ""
    exponent = round(math.log10(value))
    if exponent == 0 or not math.isclose(value, 10.0**exponent, rel_tol=1e-9):
        return f"{value:g}"
    return "10" + str(exponent).translate(_DIGITS)


def _verdicts(figure: Figure, counts: Mapping[str, Mapping[Verdict, int]]) -> None:
    axes = figure.add_subplot()
    papers = list(counts)
    start = np.zeros(len(papers))
    for verdict, (face, hatch) in _VERDICTS.items():
        sizes = np.array([counts[paper].get(verdict, 0) for paper in papers], dtype=float)
        if not sizes.any():
            continue
        bars = axes.barh(
            papers,
            sizes,
            left=start,
            height=0.62,
            facecolor=face,
            edgecolor="#333333",
            linewidth=0.8,
            hatch=hatch,
            label=verdict.replace("_", " "),
        )
        for bar, size, left in zip(bars, sizes, start, strict=True):
            if size:
                axes.annotate(
                    f"{size:.0f}",
                    xy=(left + size / 2, bar.get_y() + bar.get_height() / 2),
                    horizontalalignment="center",
                    verticalalignment="center",
                    fontsize=8,
                    color="#FFFFFF" if verdict == "refuted" else "#1B1B1B",
                    bbox={"facecolor": face, "linewidth": 0, "pad": 0.6} if hatch else None,
                )
        start += sizes
    axes.invert_yaxis()  # the first paper on top
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="statements", xlim=(0, max(start.max(initial=0), 1) * 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc=_BELOW, ncols=4)
