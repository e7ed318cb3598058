"""Checks what a model declares of its variables."""

from __future__ import annotations

from ovir.diagnostics.codes import NO_READ_VALUE, VARIABLE_TYPE
from ovir.diagnostics.collector import Diagnostics
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ops.state import AssignBase, ReadValueBase


def _may_read(layer: Layer, variable_id: str) -> bool:
    """Return whether a layer that could not be read may be the ReadValue of a variable."""
    if layer.operator is not None:
        return False
    return layer.type == "ReadValue" or layer.attributes.get("variable_id") == variable_id


def check_variables(model: LayerGraph, diagnostics: Diagnostics) -> None:
    """Report Assigns without a ReadValue, and Assigns whose input contradicts the type that the ReadValue declares."""
    assigns = [layer for layer in model.layers if layer.type == "Assign"]
    declared = {op.variable_id: layer for layer in model.layers if isinstance(op := layer.operator, ReadValueBase)}
    for layer in assigns:
        if not isinstance(op := layer.operator, AssignBase) or not layer.inputs:
            continue
        reader = declared.get(op.variable_id)
        if reader is None and any(_may_read(layer, op.variable_id) for layer in model.layers):
            continue
        if reader is None:
            message = f"no ReadValue reads the variable '{op.variable_id}'; ReadValue layers read {sorted(declared)}"
            diagnostics.report(NO_READ_VALUE, message, layer.place)
            continue
        value, variable = layer.inputs[0].type, reader.outputs[0].type
        same_type = value.element_type.merged_with(variable.element_type) is not None
        if not same_type or not value.shape.compatible(variable.shape):
            message = f"assigns {value} to the variable '{op.variable_id}', which {reader.title} declares as {variable}"
            diagnostics.report(VARIABLE_TYPE, message, layer.place)
