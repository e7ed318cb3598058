"""What is told of duplicate ids and cycles, and how the rest of such a model can be looked at all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ovir.diagnostics.codes import CYCLE, DUPLICATE_ID
from ovir.diagnostics.collector import Diagnostics
from ovir.graph.layers import Layer, path_text
from ovir.graph.model import Edge
from ovir.ir.edges import Lost


def distinct(found: Sequence[Layer], edges: Sequence[Edge], lost: Lost, diagnostics: Diagnostics) -> dict[int, Layer]:
    """The layers by id; each id that stands twice is told.

    Of two layers with one id one may be meant by edges that name an id which no layer has. If its ports fit those
    edges it is given that id, otherwise the second of the two is left out.
    """
    layers: dict[int, Layer] = {}
    doubles: list[Layer] = []
    for layer in found:
        other = layers.setdefault(layer.id, layer)
        if other is not layer:
            doubles.append(layer)
    if not doubles:
        return layers
    named = {e.from_layer for e in edges} | {e.to_layer for e in edges}
    missing = named - layers.keys() - {number for number in lost.layers if number is not None}
    for layer in doubles:
        other = layers[layer.id]
        scores = [
            (_fit(candidate, number, edges), _in_order(candidate, number, found), number, candidate)
            for number in missing
            for candidate in (layer, other)
        ]
        score, _, number, renamed = max(scores, key=lambda item: item[:2], default=(0, False, -1, layer))
        kept = other if renamed is layer else layer
        hint = f"edges name a layer {number}, which does not exist: perhaps that is its id" if score else None
        message = f"id {layer.id} is also that of layer '{kept.name}' on line {kept.line}"
        diagnostics.report(DUPLICATE_ID, message, renamed.place, hint)
        if score:
            missing.discard(number)
            layers[layer.id] = kept
            renamed.id = number
            layers[number] = renamed
        else:
            lost.doubled.add(layer.id)
    if len(lost.doubled) >= len(missing):  # those that are left out may be the ones that edges miss
        lost.layers.update(missing)
    return layers


def _fit(layer: Layer, number: int, edges: Iterable[Edge]) -> int:
    """How many edges of layer ``number`` find their ports in ``layer``; 0 if one does not."""
    inputs, outputs = {port.id for port in layer.inputs}, {port.id for port in layer.outputs}
    count = 0
    for edge in edges:
        if number in (edge.from_layer, edge.to_layer):
            if edge.from_layer == number and edge.from_port not in outputs:
                return 0
            if edge.to_layer == number and edge.to_port not in inputs:
                return 0
            count += 1
    return count


def _in_order(layer: Layer, number: int, found: Sequence[Layer]) -> bool:
    """Whether the id would rise there from layer to layer, as it does in what OpenVINO writes."""
    position = found.index(layer)
    before, behind = found[max(position - 1, 0) : position], found[position + 1 : position + 2]
    return all(other.id < number for other in before) and all(number < other.id for other in behind)


def without_cycles(layers: Mapping[int, Layer], edges: Sequence[Edge], diagnostics: Diagnostics) -> list[Edge]:
    """The edges without those that lead backwards in the file within a cycle; each cycle is told."""
    position = {number: i for i, number in enumerate(layers)}
    if all(position[e.from_layer] < position[e.to_layer] for e in edges):
        return list(edges)
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph((e.from_layer, e.to_layer) for e in edges)
    component = {number: i for i, found in enumerate(nx.strongly_connected_components(graph)) for number in found}
    kept: list[Edge] = []
    told: set[int] = set()
    for edge in edges:
        inside = component[edge.from_layer] == component[edge.to_layer]
        if not inside or position[edge.from_layer] < position[edge.to_layer]:
            kept.append(edge)
            continue
        target = layers[edge.to_layer]
        port = next(port for port in target.inputs if port.id == edge.to_port)
        port.source = None
        if component[edge.to_layer] not in told:
            told.add(component[edge.to_layer])
            ids = [*nx.shortest_path(graph, edge.to_layer, edge.from_layer), edge.to_layer]
            path = path_text([layers[i] for i in ids])
            diagnostics.report(CYCLE, f"these layers depend on each other: {path}", target.at(edge.line))
    return kept
