"""Text from elsewhere, of which a terminal would obey a part and a reader not see another.

Control characters move the cursor, clear the screen and forge lines; format characters turn the
direction of writing or have no width. Documents that are verified may hold none of them (`hidden`),
and what is printed shows them as escapes (`escaped`). Text of foreign code may be of any length, or
raise while it is made (`raised`, `shown`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from dpverify.errors import PASSING

__all__ = ["escaped", "hidden", "raised", "shown"]

_LONGEST = 1000
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def hidden(text: str) -> str | None:
    """The first control, format or separator character but a space, as an escape; None without."""
    if text.isprintable():  # as nearly all are: such characters aren't
        return None
    return next((escaped(c) for c in text if unicodedata.category(c) in _HIDDEN), None)


def escaped(text: str, *, lines: bool = False) -> str:
    r"""The text with everything but visible characters and spaces as ``\x1b`` or ``\u202e``.

    Parameters
    ----------
    text : any
    lines : whether line feeds stay: where the text is ours and what it quotes has been escaped
    """
    if text.isprintable():
        return text
    return "".join(c if lines and c == "\n" else _escape(c) for c in text)


def raised(error: BaseException) -> str:
    """What a foreign exception says, with its type: short, even where saying it fails."""
    said = _short(str, error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shown(value: object) -> str:
    """The representation of a foreign object: short, even where it fails."""
    return _short(repr, value)


def _short(text_of: Callable[[Any], str], value: object) -> str:
    try:
        text = text_of(value)
    except PASSING:
        raise
    except BaseException as error:  # foreign code, or a whole number of too many digits
        return f"({type(value).__name__}, which can't be shown: {type(error).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def _escape(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
