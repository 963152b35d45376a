"""A picture of a hundred people, for readers without statistics.

It is SVG without scripts, ids or anything to fetch, so that a page can hold several of them. Who is
counted is told by shape as well as by colour: guessed right anyway is filled, guessed right by the
release has a ring around it, and the others are outlines.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from html import escape

from dpverify._decimals import context

__all__ = ["people", "people_figure", "people_sentence"]

_BLUE, _VERMILLION, _GREY = "#0072B2", "#C24A00", "#5A5A5A"
_WIDTH, _CELL, _LEFT, _TOP, _COLUMNS = 360, 34, 10, 54, 10
_PEOPLE = 100
_BODY = "M-7 12 v-4 a7 7 0 0 1 14 0 v4 z"


def people_sentence(anyway: Fraction, at_most: float) -> str:
    """What the picture shows, in a sentence.

    Parameters
    ----------
    anyway : how often the best guess without the release is right, at least 1/2
    at_most : how often one with the release is right, a proven upper bound
    """
    before, after = people(anyway, rounding=ROUND_FLOOR), people(at_most)
    return (
        f"Of 100 people, a guess is right for {before} without the release, "
        f"and for at most {after} with it."
    )


def people_figure(
    anyway: Fraction, at_most: float, *, question: str = "Was this person in the data?"
) -> str:
    """The picture as SVG; whole people are drawn, rounded to the unsafe number of them.

    Parameters
    ----------
    anyway, at_most : as for `people_sentence`
    question : that is answered a hundred times
    """
    before = math.floor(anyway * _PEOPLE)
    after = max(before, min(math.ceil(Fraction(at_most) * _PEOPLE), _PEOPLE))
    rows = _PEOPLE // _COLUMNS
    shapes = [
        _person(
            _LEFT + _CELL * (number % _COLUMNS) + _CELL // 2,
            _TOP + _CELL * (number // _COLUMNS) + _CELL // 2,
            "anyway" if number < before else "release" if number < after else "wrong",
        )
        for number in range(_PEOPLE)
    ]
    foot = _TOP + rows * _CELL + 26
    without = people(anyway, rounding=ROUND_FLOOR)
    difference = context().subtract(Decimal(people(at_most)), Decimal(without))
    more = max(difference, Decimal(0))  # as the sentence has it
    legend = [
        ("anyway", f"{without} right without the release"),
        ("release", f"at most {more:f} more with it"),
        ("wrong", "the others wrong all the same"),
    ]
    for place, (kind, text) in enumerate(legend):
        y = foot + 30 * place
        shapes += [_person(_LEFT + 16, y, kind), _text(_LEFT + 40, y + 6, text)]
    sentence = escape(people_sentence(anyway, at_most))
    title = _text(_LEFT, 22, question, weight=600)
    who = _text(_LEFT, 44, "100 guesses of one who knows all else")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{sentence}" '
        f'viewBox="0 0 {_WIDTH} {foot + 84}" style="width:100%;max-width:22rem;height:auto" '
        f'font-family="system-ui, sans-serif" font-size="15">\n<title>{sentence}</title>\n'
        + "\n".join([title, who, *shapes])
        + "\n</svg>\n"
    )


def _person(x: int, y: int, kind: str) -> str:
    colour = {"anyway": _BLUE, "release": _VERMILLION, "wrong": _GREY}[kind]
    fill = "#FFFFFF" if kind == "wrong" else colour
    ring = f'<circle r="15" fill="none" stroke="{colour}" stroke-width="2"/>'
    return (
        f'<g transform="translate({x} {y})">{ring if kind == "release" else ""}'
        f'<g transform="scale(0.8)" fill="{fill}" stroke="{colour}" stroke-width="1.4">'
        f'<circle cy="-6" r="5"/><path d="{_BODY}"/></g></g>'
    )


def _text(x: int, y: int, text: str, *, weight: int = 400) -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}" fill="#1B1B1B">{escape(text)}</text>'


def people(share: Fraction | float, *, rounding: str = ROUND_CEILING) -> str:
    """A share as a number of a hundred people, of four digits; rounded up by default."""
    number = 100 * Fraction(share)
    rounded = context(4, rounding)
    divided = rounded.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{rounded.normalize(divided):f}"
