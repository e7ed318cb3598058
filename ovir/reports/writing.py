"""Renders a page and writes it.

The file has everything that it shows: styles, scripts, the data as JSON, and compressed DataTables if there is
a table, and plotly.js if there is a chart. A policy in its head lets the browser run these scripts alone, and fetch
nothing; ``blob:`` in it is for DataTables, which is a module, so that a page can only load it from an address.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from ovir.checks.rules import CODES
from ovir.core.short_names import short_names
from ovir.core.tables import NUMBERS, Table
from ovir.diagnostics.codes import section
from ovir.diagnostics.errors import require_packages
from ovir.diagnostics.wording import escaped
from ovir.reports.charts import Chart
from ovir.reports.page import Detail, Excerpt, Explanation, Link, Markdown, Page, Pairs, Text
from ovir.system.files import Kind, target_paths, writing_pair

REPORT = Kind("report", ".html", "", "")
SCRIPTS = ("values.js", "tables.js", "charts.js", "details.js", "main.js")
"""The scripts of a page in their order; they share one scope."""


def require_report(path: str | os.PathLike[str]) -> None:
    """Raise InputError if no report can be written to a path: it has another ending, or a package is missing."""
    target_paths(path, REPORT)
    require_packages("a report", "html", "jinja2", "plotly", "itables")


def write_report(page: Page, path: str | os.PathLike[str], version: str) -> None:
    """Write a page as one file, which replaces an older one when it is complete; ``version`` is the version of ovir.

    Raise InputError as ``require_report`` does, and WriteError if the file cannot be written.
    """
    require_report(path)
    text = render(page, version)
    with writing_pair(path, REPORT, has_data=False) as (file,):
        file.write(text.encode("utf-8"))


def render(page: Page, version: str) -> str:
    """Return a page as HTML; ``version`` is the version of ovir."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("ovir.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    script = "".join(map(_template, SCRIPTS))
    datatables = _datatables() if any(True for _ in page.tables) else None
    plotly = _plotly() if any(True for _ in page.charts) else None
    policy = [f"'{_hash(script)}'", *(["blob:"] if datatables else []), *([f"'{plotly.hash}'"] if plotly else [])]
    return environment.get_template("page.html").render(
        page=page,
        shown=escaped,
        breakable=lambda text: Markup("<wbr>").join(_parts(escaped(text))),
        is_table=lambda block: isinstance(block, Table),
        is_chart=lambda block: isinstance(block, Chart),
        version=version,
        styles=_template("page.css"),
        script=script,
        policy=" ".join(policy),
        data=embedded(to_data(page)),
        datatables=None if datatables is None else datatables.packed,
        plotly=None if plotly is None else plotly.packed,
    )


def _parts(text: str) -> list[str]:
    """Return the parts between which a path may be broken: its folders, and words of a name too long for a line."""
    folders = re.split(r"(?<=[/\\])", text)
    return [part for x in folders for part in (re.split(r"(?<=[_.:-])", x) if len(x) > SHORTEST_COLUMN else [x])]


def _template(name: str) -> str:
    return resources.files("ovir.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


class _Library:
    """A script of others, compressed, as a text, with the hash of the script that the page runs."""

    def __init__(self, script: str) -> None:
        self.packed = base64.b64encode(gzip.compress(script.encode("utf-8"), compresslevel=6, mtime=0)).decode()
        self.hash = _hash(script)


@cache
def _plotly() -> _Library:
    from plotly.offline import get_plotlyjs

    return _Library(get_plotlyjs())


@cache
def _datatables() -> _Library:
    """Return DataTables, a module of JavaScript that itables has for notebooks."""
    return _Library(resources.files("itables").joinpath("html", "dt_bundle.js").read_text(encoding="utf-8"))


# --------------------------------------------------------------------------- data


def embedded(data: Any) -> str:
    """Return JSON that is safe inside of a script element: it contains none of the characters of markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def to_data(page: Page) -> dict[str, Any]:
    """Return the data that the scripts of a page read."""
    blocks = [block for part in page.sections for block in part.blocks]
    tables = [_table(page, table) for table in page.tables]
    return {
        "tables": tables,
        "short": _short_forms(page, tables),
        "charts": [_plain(block) for block in blocks if isinstance(block, Chart)],
        "layers": page.layers.to_data(),
        "sources": page.sources.to_data(),
        "codes": {code: {"meaning": CODES[code].meaning, "text": section(code)} for code in sorted(page.codes)},
    }


SHORTEST_COLUMN = 24
"""The number of characters that the narrowest column of names shows."""
_NAMES = ("layer", "name", "path")
"""The kinds of columns whose texts are shortened."""


def _short_forms(page: Page, tables: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return short forms of the long names in the tables of a page; those of different names differ."""
    found = dict.fromkeys(page.layers.keys())
    for table in tables:
        places = [place for place, column in enumerate(table["columns"]) if column["kind"] in _NAMES]
        cells = (row[place] for row in table["rows"] for place in places)
        found |= dict.fromkeys(cell for cell in cells if isinstance(cell, str))
    pairs = zip(found, short_names(list(found), SHORTEST_COLUMN), strict=True)
    return {name: short for name, short in pairs if short != name}


_KINDS = {"amount": "count", "error": "real", "names": "name", "values": "tensor"}
_KINDS |= dict.fromkeys(("list", "sentence", "counts"), "text")
"""The looks of columns that a report shows like others."""


def _table(page: Page, table: Table) -> dict[str, Any]:
    """Return a table without the columns that have nothing in any row."""
    shown = table.without(["texts"])
    rows = [[_cell(page, c.kind, cell) for c, cell in zip(shown.columns, row, strict=True)] for row in shown.rows]
    kept = [place for place in range(len(shown.columns)) if any(row[place] not in (None, "") for row in rows)]
    looks = [{**vars(column), "kind": _KINDS.get(column.kind, column.kind)} for column in shown.columns]
    return {
        "columns": [looks[place] for place in kept],
        "rows": [[row[place] for place in kept] for row in rows],
        "details": _plain(table.details),
    }


def _cell(page: Page, kind: str, value: Any) -> Any:
    if kind == "layer" and value is not None:
        return page.layers.cell(value)
    if isinstance(value, Link):
        return _plain(vars(value))
    if kind in ("amount", "bytes"):
        value = value or None
    return _plain(value if value is None or kind in NUMBERS else str(value))


def _plain(value: Any) -> Any:
    """Return a value for JSON, which has no infinities and no NaN: texts are escaped, and blocks have their kind."""
    match value:
        case str():
            return escaped(value)
        case float():
            return float(f"{value:.7g}") if math.isfinite(value) else str(value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items() if item is not None}
        case Detail() | Text() | Markdown() | Link() | Pairs() | Explanation() | Chart():
            fields = {key: _plain(item) for key, item in vars(value).items()}
            if isinstance(value, Text | Markdown):
                fields["text"] = "\n".join(map(escaped, value.text.split("\n")))
            return {"kind": type(value).__name__.lower(), **fields}
        case Excerpt():
            return {"kind": "excerpt", **vars(value)}  # the sources have the name of the file as it is
    return value
