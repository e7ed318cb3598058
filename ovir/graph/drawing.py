"""The display of a model in notebooks: a table of its inputs and outputs, and a link that opens its graph.

The graph is an SVG in the same page, without scripts and requests, so it can be seen wherever the notebook can. Layers
lie in rows, each below all layers that it reads; layers computed from constants alone are left out.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape

from ovir.core.html import html_table
from ovir.core.short_names import without_middle
from ovir.diagnostics.wording import plural
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layer_graph import LayerGraph, state_ports
from ovir.graph.layers import Layer, Port

MOST_LAYERS = 400
"""The most layers that are drawn; a notebook keeps the drawing in each cell that shows the model."""

Place = tuple[float, float]
"""The center of the box of a layer."""

_WIDTH, _HEIGHT = 150, 34  # of a box
_ACROSS, _DOWN = 170, 58  # from box to box
_CHARACTERS = 22  # that fit into a box
_SWEEPS = 4  # over all rows, to bring layers near those that they are connected with


def html_of_model(model: LayerGraph) -> str:
    """Return the inputs and outputs of a model, and a link that opens its graph."""
    title = f"Model {model.name!r}: {plural(len(model.layers), 'layer')}"
    table = html_of_ports(title, model)
    constant = all_constant_layers(model)
    layers = [layer for layer in model.layers if layer not in constant]
    command = f"<code>ovir view {escape(shlex.quote(model.path))}</code>" if model.path else ""
    if len(layers) > MOST_LAYERS:
        too_many = f"{plural(len(layers), 'layer')} are too many to be drawn here"
        return f"{table}<p>Graph: {too_many}{f'; {command} shows them' if command else ''}</p>"
    more = f"<p>With all attributes and constants: {command}</p>" if command else ""
    style = "cursor:pointer;text-decoration:underline"
    frame = "overflow:auto;max-height:80vh;border:1px solid currentColor"
    drawing = f'<div style="{frame}">{svg_of(layers)}</div>'
    return f'{table}<details><summary style="{style}">Graph</summary>{drawing}{more}</details>'


def html_of_ports(title: str, model: LayerGraph) -> str:
    """Return the inputs, outputs and states of a model as a table in HTML."""
    rows = [("input", port.any_name, port.type) for port in model.inputs]
    rows += [("output", port.any_name, port.type) for port in model.outputs]
    rows += [("state", name, port.type) for name, port in state_ports(model.walk()).items()]
    return html_table(title, ("", "name", "type"), rows)


def svg_of(layers: Sequence[Layer]) -> str:
    """Return a drawing of layers, which come in topological order."""
    sources = {layer: _sources(layer) for layer in layers}
    places = _placed(sources)
    width = max((x for x, _ in places.values()), default=0) + _WIDTH / 2 + _ACROSS / 2
    height = max((y for _, y in places.values()), default=0) + _DOWN
    edges = "".join(
        _edge(places[source], places[layer], port)
        for layer in layers
        for source, port in sources[layer].items()
        if source in places
    )
    boxes = "".join(_box(layer, places[layer]) for layer in layers)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="sans-serif" font-size="11" text-anchor="middle" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="graph" {size} {font}>{edges}{boxes}</svg>'


def _sources(layer: Layer) -> dict[Layer, Port]:
    """Return the layers that a layer reads, each with the tensor."""
    return {port.source.layer: port.source for port in layer.inputs if port.source is not None}


def _placed(sources: Mapping[Layer, Mapping[Layer, Port]]) -> dict[Layer, Place]:
    """Return the place of each layer: rows by the longest way from an input, in them near connected layers."""
    ranks: dict[Layer, int] = {}
    for layer, read in sources.items():
        ranks[layer] = 1 + max((ranks[source] for source in read if source in ranks), default=-1)
    rows: dict[int, list[Layer]] = defaultdict(list)
    near: dict[Layer, list[Layer]] = defaultdict(list)
    for layer, rank in ranks.items():
        rows[rank].append(layer)
        for source in filter(ranks.__contains__, sources[layer]):
            near[layer].append(source)
            near[source].append(layer)
    across = {layer: float(i) for row in rows.values() for i, layer in enumerate(row)}
    for sweep in range(_SWEEPS):
        for rank in sorted(rows, reverse=bool(sweep % 2)):
            row = sorted(rows[rank], key=lambda layer: _mean([across[other] for other in near[layer]]))
            across.update({layer: i - (len(row) - 1) / 2 for i, layer in enumerate(row)})
    left = min(across.values(), default=0)
    return {
        layer: ((across[layer] - left) * _ACROSS + _ACROSS / 2, rank * _DOWN + _DOWN / 2)
        for layer, rank in ranks.items()
    }


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _box(layer: Layer, place: Place) -> str:
    """Return the box of a layer, with its name, attributes and types as a tooltip."""
    x, y = place
    attributes = "".join(f"\n{name}: {value}" for name, value in layer.attributes.items())
    tooltip = f"{layer.title}: {', '.join(str(port.type) for port in layer.outputs)}{attributes}"
    corner = f'x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"'
    name = without_middle(layer.name, _CHARACTERS)
    return (
        f'<g><title>{escape(tooltip)}</title><rect {corner} fill="#8884" stroke="currentColor"/>'
        f'<text x="{x:g}" y="{y - 3:g}" font-weight="bold">{escape(layer.type)}</text>'
        f'<text x="{x:g}" y="{y + 11:g}">{escape(name)}</text></g>'
    )


def _edge(start: Place, end: Place, port: Port) -> str:
    """Return the line of a tensor; one that passes rows of layers makes a bow around them."""
    (x1, y1), (x2, y2) = (start[0], start[1] + _HEIGHT / 2), (end[0], end[1] - _HEIGHT / 2)
    bow = _ACROSS * 0.7 if end[1] - start[1] > 1.5 * _DOWN else 0.0
    middle = (y2 - y1) / 2 if not bow else _DOWN
    path = f"M{x1:g},{y1:g}C{x1 + bow:g},{y1 + middle:g} {x2 + bow:g},{y2 - middle:g} {x2:g},{y2:g}"
    tooltip = escape(f"{port.any_name}: {port.type}")
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.5"><title>{tooltip}</title></path>'
