"""The costs of layers as a table in a terminal, and as a CSV file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ovir.analysis.costs import Cost, GroupCost, LayerCost, by_prefix, by_type, together
from ovir.analysis.summary import Summary
from ovir.cli.terminal.output import say, say_filled, say_table
from ovir.core.shapes import Dimension
from ovir.core.tables import Table, columns
from ovir.diagnostics.wording import count_text, escaped, plural
from ovir.system.files import write_text

Row = LayerCost | GroupCost

MEASURES: dict[str, Callable[[Cost], float]] = {
    "macs": lambda cost: _order(cost.macs),
    "params": lambda cost: cost.parameters,
    "bytes": lambda cost: cost.weight_bytes,
    "activations": lambda cost: _order(cost.amounts.written.upper),
}
"""The numbers by which the table is sorted, by the name of the option's value."""


def _order(number: int | None) -> float:
    return float("inf") if number is None else number


def cost_rows(layers: Sequence[LayerCost], pattern: str | None, by: str | None, sort: str | None) -> list[Row]:
    """Return the rows of the layers whose names match a regular expression, each or in groups, the largest first.

    Without ``sort``, rows are sorted by multiply-accumulates, and then by parameters; ``name`` sorts by name.
    """
    chosen = [row for row in layers if pattern is None or re.search(pattern, row.name)]
    measure = MEASURES.get(sort or "macs", MEASURES["macs"])
    rows: Sequence[Row] = chosen
    if chosen and by is not None:
        rows = by_type(chosen) if by == "type" else by_prefix(chosen, measure)
    if sort == "name":
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=lambda row: (-measure(row), -row.parameters, -_order(row.operations)))


def say_costs(rows: Sequence[Row], chosen: bool, summary: Summary, limit: int) -> None:
    """Print the first rows; the others, those that were ``chosen``, and the whole model are summed in a line each."""
    layers = summary.layers
    total = replace(together("", layers), amounts=summary.costs.total)  # of an If, one branch counts
    heads = "layer: layer; type: text" if not rows or isinstance(rows[0], LayerCost) else "layers: name; number: count"
    heads += "; MACs: count; share: count; params: count; stored: count; written: count; op/byte: count"
    cells = [[*_head(row), *_numbers(row, total)] for row in rows[:limit]]
    if len(rows) > limit:
        cells.append([f"{len(rows) - limit:,} more", "", *_numbers(together("", rows[limit:]), total)])
    if chosen and rows:
        cells.append(["chosen", "", *_numbers(together("", rows), total)])
    elif chosen:
        say("no name matches")
    cells.append([f"all {plural(len(layers), 'layer')}", "", *_numbers(total, total)])
    say_table(Table(columns(heads), cells, least=("op/byte", "written", "share", "type")))
    if shared := [row for row in rows if isinstance(row, LayerCost) and row.shared]:
        first, owner = escaped(shared[0].name), escaped(next(iter(shared[0].shared.values())))
        say_filled(
            f"{plural(len(shared), 'layer')} also read constants that count for another layer: "
            f"{first} reads those of {owner}; --json names all"
        )


def _head(row: Row) -> tuple[str, str]:
    if isinstance(row, LayerCost):
        return escaped(row.name), row.layer.type
    return escaped(row.name), f"{row.layers:,}"


def _numbers(cost: Cost, total: Cost) -> list[str]:
    is_certain = cost.amounts.macs.is_static and total.amounts.macs.is_static and total.macs
    share = (cost.macs or 0) / (total.macs or 1) if is_certain else 0
    intensity = cost.intensity
    return [
        interval_text(cost.amounts.macs),
        f"{share:.1%}" if share else "-",
        count_text(cost.parameters) if cost.parameters else "-",
        _bytes(cost.weight_bytes),
        interval_text(cost.amounts.written, _bytes),
        f"{intensity:.2g}" if intensity else "-",
    ]


def _bytes(amount: int) -> str:
    text = count_text(amount)
    return "-" if not amount else f"{text} B" if amount < 1000 else f"{text}B"


def interval_text(number: Dimension, text: Callable[[int], str] = count_text) -> str:
    """Return a count in short, the most of one that is not certain: ``≤ 1.2 G``."""
    if number.upper is None:
        return "?"
    return "-" if not number.upper else f"{'' if number.is_static else '≤ '}{text(number.upper)}"


def write_csv(rows: Sequence[Row], path: str) -> None:
    """Write all rows, with the keys of ``costs`` in the JSON as heads."""
    import csv  # which most commands do not need
    from io import StringIO

    documents = [row.to_dict() for row in rows]
    text = StringIO()
    writer = csv.DictWriter(text, list(documents[0]) if documents else ["name"], lineterminator="\n")
    writer.writeheader()
    for document in documents:
        writer.writerow({key: _csv_cell(value) for key, value in document.items()})
    write_text(path, text.getvalue(), "write the costs")


def _csv_cell(value: object) -> object:
    """Return the cell for a value; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if isinstance(value, dict):
        value = ";".join(f"{name} of {owner}" for name, owner in value.items())
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
