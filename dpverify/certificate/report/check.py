"""Compare a report with the one that its certificate gives.

The report is a function of the certificate, so it can be rendered again. Text and numbers come out
the same wherever one version of dpverify and jinja2 renders them. Figures depend on more: the
libraries that lay them out and draw, and the machine's arithmetic.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Likeness", "likeness"]

Likeness = Literal["same", "figures", "text"]

_FIGURE = re.compile(r'(<svg [^>]*viewBox=")[^"]*("[^>]*>)(.*?)(?=</svg>)', re.DOTALL)
_TAG = re.compile(r"<[/!?]?([^\s/>]*)")


def likeness(page: bytes, due: bytes) -> Likeness:
    """What sets a page apart from the one that is due: nothing, its figures alone, or its text.

    A figure is what stands in one of the due page's frames and has no other elements than the due
    figures, so that it stays in its frame and can't write elsewhere on the page. The time is linear
    in the page's size, whatever it holds.
    """
    if page == due:
        return "same"
    try:
        found, wanted = page.decode(), due.decode()
    except UnicodeDecodeError:
        return "text"
    known = {tag for figure in _FIGURE.finditer(wanted) for tag in _TAG.findall(figure[3])}
    place = 0
    # Text, the opening of a frame up to its size, the rest of it, the figure, and so on.
    for number, part in enumerate(_FIGURE.split(wanted)):
        start = place
        match number % 4:
            case 2:  # the size ends where this begins
                start = found.find(part[0], place)
            case 3:
                place = found.find("</svg>", place)
                if place < 0 or not known.issuperset(_TAG.findall(found, start, place)):
                    return "text"
                continue
        if start < 0 or not found.startswith(part, start):
            return "text"
        place = start + len(part)
    return "figures" if place == len(found) else "text"
