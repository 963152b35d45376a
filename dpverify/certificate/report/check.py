"""Compare a report with the one that its certificate gives.

The report is a function of the certificate, so it can be rendered again. Text and numbers come out
the same wherever one version of dpverify and jinja2 renders them. Figures depend on more: the
libraries that lay them out and draw, and the machine's arithmetic.
"""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree

__all__ = ["Likeness", "likeness"]

Likeness = Literal["same", "figures", "text"]

_FIGURE = re.compile(r'(<svg [^>]*viewBox=")[^"]*("[^>]*>)(.*?)(?=</svg>)', re.DOTALL)


def likeness(page: bytes, due: bytes) -> Likeness:
    """What sets a page apart from the one that is due: nothing, its figures alone, or its text.

    A figure is what stands in one of the due page's frames, is well formed, so that browsers see it
    end where it does here, and has no other elements, elements in elements, or attributes than the
    due figures, so that it stays in its frame and can't write elsewhere on the page. The time is
    linear in the page's size, whatever it holds.
    """
    if page == due:
        return "same"
    try:
        found, wanted = page.decode(), due.decode()
    except UnicodeDecodeError:
        return "text"
    known = {part for figure in _FIGURE.finditer(wanted) for part in _parts(figure[3])}
    place = 0
    # Text, the opening of a frame up to its size, the rest of it, the figure, and so on.
    for number, part in enumerate(_FIGURE.split(wanted)):
        start = place
        match number % 4:
            case 2:  # the size ends where this begins
                start = found.find(part[0], place)
            case 3:
                place = found.find("</svg>", place)
                try:
                    if place < 0 or not known.issuperset(_parts(found[start:place])):
                        return "text"
                except ElementTree.ParseError:
                    return "text"
                continue
        if start < 0 or not found.startswith(part, start):
            return "text"
        place = start + len(part)
    return "figures" if place == len(found) else "text"


def _parts(figure: str) -> set[tuple[str, ...]]:
    """A figure's elements with those they stand in, and its attributes.

    Raises
    ------
    ParseError
        If it isn't well-formed XML.
    """
    # Without a document type, which can't stand in an element, nothing is expanded or fetched.
    elements = list(ElementTree.fromstring(f"<svg>{figure}</svg>").iter())  # noqa: S314
    nested = {(outer.tag, inner.tag) for outer in elements for inner in outer}
    return nested | {(name,) for element in elements for name in element.attrib}
