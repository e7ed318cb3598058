"""Reads the edges of a <net> or body, and joins the ports of its layers by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from ovir.diagnostics import BAD_EDGE, MISSING_INPUT, Findings, Place
from ovir.ir.elements import line_of, unsigned
from ovir.model import Edge, Layer


@dataclass
class Lost:
    """What could not be read, and has been told. What only follows from that is not told."""

    layers: set[int | None] = field(default_factory=set)
    """Ids of layers; None stands for a layer whose id is unknown."""
    ports: set[int] = field(default_factory=set)
    """Ids of the layers of which a port could not be read."""
    inputs: set[tuple[int, int | None]] = field(default_factory=set)
    """Ids of layer and input port to which an edge that was refused leads; None stands for an unknown port."""

    def has_layer(self, number: int) -> bool:
        return number in self.layers or None in self.layers

    def has_input(self, layer: int, port: int) -> bool:
        return (layer, port) in self.inputs or (layer, None) in self.inputs


def read_edges(
    element: etree._Element, layers: Mapping[int, Layer], lost: Lost, file: str | None, findings: Findings
) -> list[Edge]:
    """The edges of a <net> or body, their ports joined; what is wrong is added to ``findings``."""
    edges: list[Edge] = []
    for item in element.iterfind("edges/edge"):
        place = Place(file, line_of(item))
        keys = ("from-layer", "from-port", "to-layer", "to-port")
        from_layer, from_port, to_layer, to_port = (unsigned(item, key, place, findings) for key in keys)
        if from_layer is None or from_port is None or to_layer is None or to_port is None:
            if to_layer is not None:
                lost.inputs.add((to_layer, to_port))
            continue
        edge = Edge(from_layer, from_port, to_layer, to_port, place.line)
        if _connect(edge, layers, lost, place, findings):
            edges.append(edge)
    _missing_inputs(layers, lost, file, findings)
    return edges


def _connect(edge: Edge, layers: Mapping[int, Layer], lost: Lost, place: Place, findings: Findings) -> bool:
    source, target = layers.get(edge.from_layer), layers.get(edge.to_layer)
    if target is None:  # nothing can miss the edge
        if not lost.has_layer(edge.to_layer):
            message = f"the edge leads to layer {edge.to_layer}, which does not exist; it is ignored"
            findings.warning(BAD_EDGE, message, place)
        return False
    if source is None:
        if not lost.has_layer(edge.from_layer):
            findings.error(BAD_EDGE, f"the edge leads from layer {edge.from_layer}, which does not exist", place)
        lost.inputs.add((edge.to_layer, edge.to_port))
        return False
    output = next((p for p in source.outputs if p.id == edge.from_port), None)
    target_port = next((p for p in target.inputs if p.id == edge.to_port), None)
    for kind, number, layer, port in (
        ("output", edge.from_port, source, output),
        ("input", edge.to_port, target, target_port),
    ):
        if port is None and layer.id not in lost.ports:
            ids = [p.id for p in (layer.outputs if kind == "output" else layer.inputs)]
            message = f"the edge names {kind} port {number} of {layer.title}, whose {kind} ports are {ids}"
            findings.error(BAD_EDGE, message, place)
    if output is None or target_port is None:
        lost.inputs.add((edge.to_layer, target_port.id if target_port is not None else None))
        return False
    if target_port.source is not None:
        other = target_port.source.layer
        message = f"a second edge into port {edge.to_port} of {target.title}; the first comes from {other.title}"
        findings.error(BAD_EDGE, message, place)
        return False
    target_port.source = output
    return True


def _missing_inputs(layers: Mapping[int, Layer], lost: Lost, file: str | None, findings: Findings) -> None:
    for layer in layers.values():
        for port in layer.inputs:
            if port.source is None and not lost.has_input(layer.id, port.id):
                place = Place(file, port.line, layer.title, layer.id)
                findings.error(MISSING_INPUT, f"no edge leads to input port {port.id}", place)
        if layer.type == "Result" and not layer.inputs and layer.id not in lost.ports:
            findings.error(MISSING_INPUT, "the Result has no input port", layer.place)
