"""The layers on whose values the results of a model depend."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap
from ovir.ops.control_flow import CONDITIONS, known_truth

Wired = tuple[Layer, BodyMap, Model]
"""A layer, the wiring of one of its bodies, and that body."""


def needed_layers(model: Model) -> set[Layer]:
    """Return the layers on whose values a Result of the model or the state of a variable depends, bodies included.

    A layer is not needed if only its shape matters, if it feeds a result of a body that nobody reads, or if it lies in
    a branch that a constant condition excludes. A model without Results and Assigns needs no layer.
    """
    graphs = list(model.graphs())
    fed = {
        body.inputs[index].layer: (wired, index)
        for graph in graphs
        for layer in graph.layers
        for wired in _wired(layer)
        for body in wired[2:]
        for index in range(len(body.inputs))
    }
    ends = [layer for layer in model.layers if layer.type == "Result"]
    ends += [layer for graph in graphs for layer in graph.layers if layer.type == "Assign"]
    needed = set(ends)
    pending = [source for layer in ends for source in _read(layer)]
    seen: set[Port] = set()
    while pending:
        if (port := pending.pop()) is None or port in seen:
            continue
        seen.add(port)
        needed.add(port.layer)
        if port.layer in fed:
            pending += _feeding(*fed[port.layer])
        elif port.layer.bodies:
            pending += _computing(port)
        else:
            pending += _read(port.layer)
    return needed


def _wired(layer: Layer) -> Iterator[Wired]:
    wiring = layer.operator.wiring if layer.operator is not None else {}
    return ((layer, wiring[key], body) for key, body in layer.bodies.items() if key in wiring)


def _read(layer: Layer) -> Iterator[Port | None]:
    """Yield the tensors whose elements a layer reads."""
    unread = layer.operator.shape_inputs if layer.operator is not None else ()
    return (port.source for port in layer.inputs if port.index not in unread)


def _feeding(wired: Wired, index: int) -> Iterator[Port | None]:
    """Yield the tensors that a parameter of a body gets, from outside or from the iteration before."""
    layer, wiring, body = wired
    for item in wiring.inputs:
        if item.parameter == index and 0 <= item.external < len(layer.inputs):
            yield layer.inputs[item.external].source
    for edge in wiring.back_edges:
        if edge.parameter == index:
            yield body.outputs[edge.result].source


def _computing(port: Port) -> Iterator[Port | None]:
    """Yield the tensors that an output of a layer with bodies is computed from, apart from those that feed bodies."""
    layer = port.layer
    wired = list(_wired(layer))
    if len(wired) < len(layer.bodies):  # a faulty wiring, of which nothing is known
        yield from _read(layer)
        for body in layer.bodies.values():
            yield from (result.source for result in body.outputs)
        return
    yield from (read.source for read in layer.inputs[: CONDITIONS.get(layer.type, 0)])
    truth = known_truth(layer.inputs[0].type) if layer.type == "If" and layer.inputs else None
    for (_, wiring, body), key in zip(wired, layer.bodies, strict=True):
        if truth is not None and key != ("then" if truth else "else"):
            continue
        for item in wiring.outputs:
            if item.external in (port.index, -1):
                yield body.outputs[item.result].source
