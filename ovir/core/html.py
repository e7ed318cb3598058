"""Tables in HTML, as notebooks show objects. The reports of ovir/reports/ are pages of their own."""

from __future__ import annotations

from collections.abc import Sequence

MOST_ROWS = 50
"""The number of rows that a table shows."""


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table under a title; it shows the first rows and says how many follow."""
    from html import escape  # imports the names of 2,000 characters, and most processes make no HTML

    def cell(value: object) -> str:
        return f'<td style="text-align:left">{escape(str(value))}</td>'

    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><p><b>{escape(title)}</b></p>{table}{more}</div>"
