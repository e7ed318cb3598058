"""Removes what a model does not need to compute its outputs."""

from __future__ import annotations

from ovir.editing.transaction import editing
from ovir.graph.layers import Layer
from ovir.graph.model import Model
from ovir.graph.rt_info import NO_RT_INFO
from ovir.ops.state import AssignBase, ReadValueBase


def prune(model: Model) -> list[Layer]:
    """Remove dead layers; see ``Model.prune``."""
    removed: list[Layer] = []
    with editing(model):
        for graph in model.graphs():
            dead = graph.dead_layers - _read_variables(graph)
            for layer in reversed(graph.layers):
                if layer in dead and not any(port.readers for port in layer.outputs):
                    removed.append(layer)
                    graph.remove_layer(layer)
    return removed


def _read_variables(graph: Model) -> set[Layer]:
    """Return the ReadValues of variables that an Assign sets; an Assign without ReadValue is an error."""
    assigned = {op.variable_id for layer in graph.layers if isinstance(op := layer.operator, AssignBase)}
    return {
        layer
        for layer in graph.layers
        if isinstance(op := layer.operator, ReadValueBase) and op.variable_id in assigned
    }


def strip_rt_info(model: Model) -> None:
    """Remove all runtime information; see ``Model.strip_rt_info``."""
    with editing(model):
        for graph in model.graphs():
            graph.rt_info = NO_RT_INFO
            for layer in graph.layers:
                layer.rt_info_source = None
                for port in (*layer.inputs, *layer.outputs):
                    port.rt_info = NO_RT_INFO
