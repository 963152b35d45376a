"""Tables of results, as text and as HTML, for `__str__` and `_repr_html_`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dpverify.visible import escaped

__all__ = ["html_table", "text_table"]


def text_table(rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> str:
    """Columns of text, each as wide as its widest cell; cells can't forge a line."""
    table = [[escaped(cell) for cell in row] for row in ([headings] if headings else []) + [*rows]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)
    return "\n".join(lines)


def html_table(rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> str:
    """An HTML table whose cells are escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        inner = "".join(f"<{tag}>{escape(escaped(cell))}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    body = [line(headings, "th")] if headings else []
    return f"<table>{''.join([*body, *(line(row, 'td') for row in rows)])}</table>"
