"""Reports duplicate ids and cycles, and recovers from them so that the rest of the model can be inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ovir.diagnostics.codes import CYCLE, DUPLICATE_ID
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.connections import Edge
from ovir.graph.layers import Layer, path_text, separate
from ovir.ir.edges import Gaps


def layers_by_id(
    found: Sequence[Layer], edges: Sequence[Edge], gaps: Gaps, diagnostics: Diagnostics
) -> dict[int, Layer]:
    """Return the layers by id if some have the same one, and report each duplicate id.

    If edges name a layer that does not exist, one of the two layers with a duplicate id may be meant. If its ports
    match those edges, it gets that id; otherwise the second layer is left out.
    """
    layers: dict[int, Layer] = {}
    doubles: list[Layer] = []
    for layer in found:
        other = layers.setdefault(layer.id, layer)
        if other is not layer:
            doubles.append(layer)
    named = {e.from_layer for e in edges} | {e.to_layer for e in edges}
    missing = named - layers.keys() - {number for number in gaps.layers if number is not None}
    edges_of: dict[int, list[Edge]] = {number: [] for number in missing}
    for edge in edges:
        for number in {edge.from_layer, edge.to_layer} & missing:
            edges_of[number].append(edge)
    position = {layer: i for i, layer in enumerate(found)}
    for layer in doubles:
        other = layers[layer.id]
        scores = [
            (
                _matching_edges(candidate, number, edges_of[number]),
                _in_order(position[candidate], number, found),
                number,
                candidate,
            )
            for number in (missing if len(doubles) <= _MAX_DUPLICATES else ())
            for candidate in (layer, other)
        ]
        score, _, number, renamed = max(scores, key=lambda item: item[:2], default=(0, False, -1, layer))
        kept = other if renamed is layer else layer
        hint = f"edges name a layer {number}, which does not exist: perhaps this layer is meant" if score else None
        message = f"id {layer.id} is also used by layer '{kept.name}' on line {kept.line}"
        diagnostics.report(DUPLICATE_ID, message, renamed.place, hint)
        if score:
            missing.discard(number)
            layers[layer.id] = kept
            renamed.id = number
            layers[number] = renamed
        else:
            gaps.duplicated.add(layer.id)
    if len(gaps.duplicated) >= len(missing):  # a layer that was left out may be the one that edges name
        gaps.layers.update(missing)
    return layers


def _matching_edges(layer: Layer, number: int, edges: Iterable[Edge]) -> int:
    """Return the number of edges of layer ``number`` that match ports of ``layer``; 0 if one of them does not."""
    inputs, outputs = {port.id for port in layer.inputs}, {port.id for port in layer.outputs}
    count = 0
    for edge in edges:
        if edge.from_layer == number and edge.from_port not in outputs:
            return 0
        if edge.to_layer == number and edge.to_port not in inputs:
            return 0
        count += 1
    return count


_MAX_DUPLICATES = 20
"""The number of layers with duplicate ids for which another id is looked for. A file with more has another fault."""


def _in_order(position: int, number: int, layers: Sequence[Layer]) -> bool:
    """Return whether ids would still increase from layer to layer, as in files that OpenVINO writes."""
    before, after = layers[max(position - 1, 0) : position], layers[position + 1 : position + 2]
    return all(other.id < number for other in before) and all(number < other.id for other in after)


def cut_cycles(layers: Mapping[int, Layer], diagnostics: Diagnostics) -> None:
    """Remove the edges within a cycle that lead backwards in the file, and report each cycle."""
    import networkx as nx

    position = {layer: i for i, layer in enumerate(layers.values())}
    inputs = [(port.source.layer, port) for layer in position for port in layer.inputs if port.source is not None]
    graph: nx.DiGraph[Layer] = nx.DiGraph()
    graph.add_edges_from((source, port.layer) for source, port in inputs)
    component = {layer: i for i, found in enumerate(nx.strongly_connected_components(graph)) for layer in found}
    reported: set[int] = set()
    for source, port in inputs:
        target = port.layer
        if component[source] != component[target] or position[source] < position[target]:
            continue
        line = port.edge_line
        separate(port)
        if component[target] not in reported:
            reported.add(component[target])
            path = path_text([*nx.shortest_path(graph, target, source), target])
            diagnostics.report(CYCLE, f"these layers depend on each other: {path}", target.at(line))
