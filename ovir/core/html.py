"""Tables in HTML, as notebooks show objects. The reports of ovir/reports/ are pages of their own."""

from __future__ import annotations

from collections.abc import Sequence

MOST_ROWS = 50
"""The number of rows that a table shows."""


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table under a title; it shows the first rows and says how many follow."""
    from html import escape  # imports the names of 2,000 characters, and most processes make no HTML

    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(f'<{tag} style="text-align:left">{escape(str(value))}</{tag}>' for value in values)

    head = cells("th", header)  # notebooks align it right by themselves
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><p><b>{escape(title)}</b></p>{table}{more}</div>"
