"""Control and invisible characters in text from elsewhere: found, or shown as escapes.

Control characters move the cursor, clear the screen and forge lines; format characters turn the
direction of writing or have no width, and neither have variation selectors and fillers. Documents
that are verified may hold none of them (`hidden`), and what is printed shows them as escapes
(`escaped`). Text of foreign code may be of any length, or raise while it is made (`raised`,
`shown`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from dpverify.errors import PASSING

__all__ = ["escaped", "hidden", "raised", "shown", "worded"]

_LONGEST = 1000
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_IGNORED = re.compile(  # what Unicode calls default ignorable beside these categories
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2065\u3164\ufe00-\ufe0f\uffa0"
    r"\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def hidden(text: str) -> str | None:
    """The first character that is obeyed or has no width, as an escape; None without."""
    if _is_plain(text):  # as nearly all are
        return None
    return next((escaped(c) for c in text if _is_hidden(c)), None)


def escaped(text: str, *, lines: bool = False) -> str:
    r"""The text with everything but visible characters and spaces as ``\x1b`` or ``\u202e``.

    Parameters
    ----------
    text : any
    lines : whether line feeds stay: where the text is ours and what it quotes has been escaped
    """
    if _is_plain(text):
        return text
    return "".join(c if lines and c == "\n" else _escape(c) for c in text)


def raised(error: BaseException) -> str:
    """What a foreign exception says, with its type: short, even where saying it fails."""
    said = _short(str, error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shown(value: object) -> str:
    """The representation of a foreign object: short, even where it fails."""
    return _short(repr, value)


def worded(value: object) -> str:
    """What a foreign object says as text: short, even where it fails."""
    return _short(str, value)


def _short(text_of: Callable[[Any], str], value: object) -> str:
    try:
        text = text_of(value)
    except PASSING:
        raise
    except BaseException as error:  # foreign code, or a whole number of too many digits
        return f"({type(value).__name__}, which can't be shown: {type(error).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def _is_plain(text: str) -> bool:
    return text.isprintable() and not _IGNORED.search(text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or bool(_IGNORED.match(character))


def _escape(character: str) -> str:
    if _is_plain(character) or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
