"""Tables of the documentation that benchmarks write, and the figures of sentences that are from these tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
_TABLE = re.compile(r"<!-- begin: (.+?) -->\n(Measured at .*?)<!-- end: \1 -->", re.DOTALL)
FIGURE = re.compile(r"([\d.,]*\d)<!-- ([^|>]+) \| (.+?) \| ([^|>]+) -->")
"""A number of a sentence, and the table, the row and the column that it is from. The row is the name of one, or
``smallest of REGEX`` or ``largest of REGEX``."""


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write_table(name: str, lines: Sequence[str], page_name: str) -> None:
    """Replace a table between the comments ``begin: name`` and ``end: name``, and all figures that are from it.

    Raises SystemExit after that if sentences have figures that the table no longer has.
    """
    path = ROOT / "docs" / page_name
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    if begin not in text:
        raise SystemExit(f"{path} has no place for the table {name}")
    before, _, rest = text.partition(begin)
    path.write_text("".join([before, begin, *(f"{line}\n" for line in lines), end, rest.partition(end)[2]]), "utf-8")
    known = tables()
    missing: list[str] = []

    def renewed(found: re.Match[str]) -> str:
        if found[2] == name:
            try:
                return f"{figure(known, *found.groups()[1:])}{found[0][len(found[1]) :]}"
            except KeyError as error:
                missing.append(f"{page.name}: {error.args[0]}")
        return found[0]

    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := FIGURE.sub(renewed, text)) != text:
            page.write_text(new, encoding="utf-8")
    if missing:
        raise SystemExit("\n".join(["The table is written, but it lacks figures of sentences:", *missing]))


def tables() -> dict[str, list[dict[str, str]]]:
    """Return the rows of all tables that benchmarks write, by column; the name of the row is in the column ``""``."""
    found = {}
    for page in pages():
        for name, text in _TABLE.findall(page.read_text(encoding="utf-8")):
            lines = [line for line in text.splitlines() if line.startswith("|")]
            head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            found[name] = [dict(zip(head, row, strict=True)) | {"": row[0]} for row in rows]
    return found


def figure(known: Mapping[str, list[dict[str, str]]], table: str, row: str, column: str) -> str:
    """Return the text of a figure; raise KeyError if there is none, or only a dash, because two runs differ in it."""
    which, _, pattern = row.partition(" of ")
    if which not in ("smallest", "largest") or not pattern:
        which, pattern = "largest", f"^{re.escape(row)}$"
    texts = [one[column] for one in known[table] if re.search(pattern, one[""]) and one[column] not in ("", "–")]
    if not texts:
        raise KeyError(f"{table} | {row} | {column}")
    return (min if which == "smallest" else max)(texts, key=lambda text: float(text.replace(",", "")))
