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
        if (port := pending.pop()) in seen:
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


def _read(layer: Layer) -> Iterator[Port]:
    """Yield the tensors whose elements a layer reads."""
    unread = layer.operator.shape_inputs if layer.operator is not None else ()
    return (port.source for port in layer.inputs if port.source is not None and port.index not in unread)


def _feeding(wired: Wired, index: int) -> Iterator[Port]:
    """Yield the tensors that a parameter of a body gets, from outside or from the iteration before."""
    layer, wiring, body = wired
    for item in wiring.inputs:
        if item.parameter == index and 0 <= item.external < len(layer.inputs):
            yield from _sources(layer.inputs[item.external])
    for edge in wiring.back_edges:
        if edge.parameter == index:
            yield from _sources(body.outputs[edge.result])


def _computing(port: Port) -> Iterator[Port]:
    """Yield the tensors that an output of a layer with bodies is computed from, apart from those that feed bodies."""
    layer = port.layer
    wired = list(_wired(layer))
    if len(wired) < len(layer.bodies):  # a faulty wiring, of which nothing is known
        yield from _read(layer)
        for body in layer.bodies.values():
            yield from (source for result in body.outputs for source in _sources(result))
        return
    for read in layer.inputs[: CONDITIONS.get(layer.type, 0)]:
        yield from _sources(read)
    truth = known_truth(layer.inputs[0].type) if layer.type == "If" and layer.inputs else None
    for (_, wiring, body), key in zip(wired, layer.bodies, strict=True):
        if truth is not None and key != ("then" if truth else "else"):
            continue
        for item in wiring.outputs:
            if item.external in (port.index, -1):
                yield from _sources(body.outputs[item.result])


def _sources(port: Port) -> Iterator[Port]:
    if port.source is not None:
        yield port.source
