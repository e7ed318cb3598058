"""What a file declares of its ports, held against what is inferred of them."""

from __future__ import annotations

from ovir.core.element_types import dynamic
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import DECLARED_SHAPE, DECLARED_TYPE, INPUT_SHAPE, INPUT_TYPE, OWN_SHAPE, OWN_TYPE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.layers import Port

SHAPES = (DECLARED_SHAPE, OWN_SHAPE, INPUT_SHAPE)
"""The codes of shapes that differ from the inferred ones."""


def declared_type(port: Port) -> TensorType:
    """What the file says of a port; no dims at all may mean a scalar or an unknown rank."""
    return TensorType(port.declared_element_type or dynamic, port.declared_shape or PartialShape(None))


def has_declared(port: Port) -> bool:
    """Whether the file says anything of a port's shape."""
    return bool(port.declared_shape)


def agrees(port: Port, tensor: TensorType) -> bool:
    """Whether a tensor may be what the file declares of a port.

    A port without dims is a scalar or of unknown rank; the format does not tell which.
    """
    shape, element_type = port.declared_shape, port.declared_element_type
    if shape is not None and shape is not tensor.shape and shape.rank and not shape.compatible(tensor.shape):
        return False
    return (
        element_type is None
        or element_type is tensor.element_type
        or (element_type.merged_with(tensor.element_type) is not None)
    )


def difference(port: Port, tensor: TensorType, ir_version: int) -> list[Diagnostic]:
    """The diagnostics on a port that declares something else than ``tensor``.

    They are warnings where the layer is dropped, at an output that nothing reads, and in files of version 10, whose
    writers left stale types and shapes.
    """
    layer = port.layer
    kind = "output" if port.is_output else "input"
    is_own = layer.type in ("Parameter", "Const")
    if not port.is_output:
        codes, there = (INPUT_SHAPE, INPUT_TYPE), "its tensor has"
    elif is_own:
        codes, there = (OWN_SHAPE, OWN_TYPE), f"the {layer.type} itself has"
    else:
        codes, there = (DECLARED_SHAPE, DECLARED_TYPE), "inferred is"
    is_unread = port.is_output and not port.readers and layer.type != "Result"
    severity = Severity.WARNING if layer.is_dead or is_unread or ir_version < 11 else None
    found = []
    declared = port.declared_shape
    if declared is not None and declared.rank and not declared.compatible(tensor.shape):
        message = f"{kind} port {port.id} declares shape {declared}, {there} {tensor.shape}"
        hint = "OpenVINO infers again and ignores what is declared; whoever reads the file may not"
        found.append(diagnose(codes[0], message, port.place, hint=hint, port=port.id, severity=severity))
    declared_type = port.declared_element_type
    if declared_type is not None and declared_type.merged_with(tensor.element_type) is None:
        message = f"{kind} port {port.id} declares type {declared_type}, {there} {tensor.element_type}"
        found.append(diagnose(codes[1], message, port.place, port=port.id, severity=severity))
    return found
