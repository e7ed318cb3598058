"""All layers of a model as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ovir.graph.layers import Layer
from ovir.reports.page import Cell, Column, Page, Table

Extra = Callable[[Layer], Sequence[Cell]]
"""Returns the cells of a layer for columns that a report adds."""


def add_layers(page: Page, layers: Iterable[Layer], columns: Sequence[Column] = (), extra: Extra | None = None) -> None:
    """Add a section with layers, which are in the index of the page already, and with further columns."""
    heads = [Column("id", "count"), Column("layer", "layer", width=2.4), Column("operation", "type")]
    heads += [Column("output type", "tensor", width=1.4), *columns, Column("line", "count")]
    rows = [
        (
            *(layer.id, page.layers.cell(layer), layer.type, ", ".join(str(port.type) for port in layer.outputs)),
            *(extra(layer) if extra is not None else ()),
            layer.line,
        )
        for layer in layers
    ]
    if rows:
        page.add("Layers", Table(heads, rows), note="Click a layer to see its attributes and its neighbors.")
